"""StreamIt: how many items a firing takes and gives, prework, and iterations."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import river
from frontends.streamit import FRONTEND
from river.cli import main
from river.diagnostics import Rejected
from river.lang import typed
from river.lang.rates import unproven
from river.lang.trees import nodes
from river.source import Source
from tests.frontends.streamit_runs import BACKENDS, COUNT, SHOW, lines, output, run
from tests.oracles import streamit_direct as direct

ROOT = Path(__file__).resolve().parents[2]


FIBONACCI = """
void->void pipeline Main { add Fibonacci; add Printer; }
void->int feedbackloop Fibonacci {
  join roundrobin(0, 1);
  body int->int filter { work push 1 pop 1 peek 2 { push(peek(0) + peek(1)); pop(); } };
  loop Identity<int>;
  split duplicate;
  enqueue 0;
  enqueue 1;
}
int->void filter Printer { work pop 1 { println(pop()); } }
"""


def test_fibonacci_is_a_loop_that_takes_nothing() -> None:
    assert lines(FIBONACCI, 9) == ["1", "2", "3", "5", "8", "13", "21", "34", "55"]
    assert lines(FIBONACCI, 0) == []


def test_prework_delays() -> None:
    text = """
    float->float filter Delay(int n) {
      prework push n { for (int i = 0; i < n; i++) push(0); }
      work push 1 pop 1 { push(pop()); }
    }
    float->float pipeline Main { add Delay(2); }"""
    assert output(text, [1.0, 2.0]) == [0.0, 0.0, 1.0, 2.0]


def test_prework_that_looks_ahead() -> None:
    text = """
    int->int filter Main {
      int last;
      prework pop 2 peek 3 push 1 { last = peek(2); push(pop() + pop()); }
      work push 1 pop 1 { int x = pop(); push(x * last); last = x; }
    }"""
    assert output(text, [1, 2, 3, 4, 5]) == [3, 9, 12, 20]
    assert output(text, [1, 2]) == []


def test_a_firing_that_takes_too_much_is_a_trap() -> None:
    text = (
        "int->int filter F { work pop 2 push 1 { int n = peek(0); while (n > 0) { n--; pop(); } push(n); } }"
    )
    assert output(text, [2, 9, 2, 9]) == [0, 0]
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({"input": [3, 1]})
    (found,) = refused.value.diagnostics
    assert found.message == "a firing takes more items than its `pop` rate"
    assert found.span is not None
    assert found.span.text == "pop()"
    with pytest.raises(Rejected) as refused:
        river.compile(text.replace("pop 2", "pop 2 peek 4"), lang="streamit").run({"input": [3, 1, 1, 1]})
    (found,) = refused.value.diagnostics
    assert found.span is not None
    assert found.span.text == "2"


@pytest.mark.parametrize(
    ("given", "index", "said"),
    [
        ("peek 3", "n", "its `peek` rate, which is 3:"),
        ("peek 3", "at(n)", "its `peek` rate, which is 3:"),
        ("", "n", "its `peek` rate, which is 1:"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_firing_that_looks_too_far_is_told_its_rate(
    given: str, index: str, said: str, backend: str
) -> None:
    text = f"""int->int filter F {{
      int at(int n) {{ return n; }}
      work pop 1 {given} push 1 {{ int n = 0; while (peek({index}) != 9) n++; push(n); pop(); }}
    }}"""
    assert output(text, [9, 9, 9]) == [0] * (1 if given else 3)
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({"input": [1, 2, 3, 9]}, backend=backend)
    (found,) = refused.value.diagnostics
    assert found.span is not None
    assert found.span.text.startswith("peek(")
    assert f"a firing looks beyond {said}" in found.message


def test_a_firing_that_gives_too_little_is_a_trap_at_the_rate() -> None:
    text = "int->int filter F { work pop 1 push 3 { for (int i = pop(); i > 0; i--) push(i); } }"
    assert output(text, [3]) == [3, 2, 1]
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({"input": [2]})
    (found,) = refused.value.diagnostics
    assert found.code == "trap-rate-violation"
    assert found.span is not None
    assert found.span.text == "3"
    assert found.help is not None
    assert "left open" in found.help
    assert output(text.replace("push 3", "push *"), [2]) == [2, 1]


def test_what_a_prework_skips_is_among_what_sources_give() -> None:
    text = """void->void pipeline Main { add From; add Body; add To; }
    void->int filter From { int n = 2; work push 1 { push(n++); } }
    int->int filter Body { prework pop %s { pop(); pop(); %s } work pop 1 push 1 { push(pop()); } }
    int->void filter To { work pop 1 { println(pop()); } }"""
    assert run(text % ("*", "if (peek(0) == 4) pop();"), iterations=5)["stdout"] == "5\n6\n"
    assert run(text % ("3", "pop();"), iterations=2)["stdout"] == "5\n6\n"


def test_iterations_come_after_windows_are_full() -> None:
    text = f"""void->void pipeline Main {{ add Count; add Sum(200); add Trace; add Show; }} {COUNT} {SHOW}
    int->int filter Sum(int n) {{
      work peek n pop 1 push 1 {{ int s; for (int i = 0; i < n; i++) s += peek(i); pop(); push(s); }} }}
    int->int filter Trace {{ prework push 1 {{ println("first"); push(7); }}
      work pop 1 push 1 {{ int x = pop(); if (x % 400 == 300) println("odd " + x); push(x); }} }}"""
    assert lines(text, 0) == ["first"]
    assert lines(text, 3) == ["first", "odd 19900", "7", "19900", "odd 20300", "20100"]


def test_several_print_and_not_the_same_in_each_firing() -> None:
    text = f"""void->void pipeline Main {{ add Count; add Some; add Pairs; }} {COUNT}
    int->void filter Pairs {{ work pop 2 {{ println(pop() + pop()); }} }}
    int->int filter Some {{ work pop 1 push 1 {{ int x = pop(); for (int i = 0; i < x % 3; i++) print("x"); push(x); }} }}"""
    assert run(text, iterations=3)["stdout"] == "x1\nxx5\nxxx9\n"


def test_booleans_may_both_be_looked_at() -> None:
    text = """
    boolean->boolean filter F { boolean any; work pop 2 push 4 {
      boolean a = pop(); push(a & peek(0)); push(a | peek(0)); push(a ^ pop()); any |= a; push(any); } }"""
    expected = [[a and b, a or b, a != b] for a in (False, True) for b in (False, True)]
    seen = [False, False, True, True]
    items = [x for a in (False, True) for b in (False, True) for x in (a, b)]
    assert output(text, items) == [x for row, any_ in zip(expected, seen, strict=True) for x in (*row, any_)]


def test_dynamic_push_rates() -> None:
    text = "int->int filter Positive { work push * pop 1 { int x = pop(); if (x > 0) push(x); } }"
    assert output(text, [1, -2, 3]) == [1, 3]


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_a_firing_may_ask_for_items(backend: str) -> None:
    items = [0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0]
    text = (ROOT / "tests/programs/streamit/prefixcode.str").read_text()
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", text)))
    assert direct.run(typed, {"input": items})["output"] == [0, 1, 2, 2, 2, 2, 2, 3, 1, 0]
    results = river.compile(text, lang="streamit").run({"input": items}, backend=backend)
    assert results["output"]["value"].to_pylist() == [0, 1, 2, 2, 2, 2, 2, 3, 1, 0]
    assert "".join(results["stdout"]["value"].to_pylist()) == "1: 0\n2: 1\n3: 2\n4: 3\n5: 1\n6: 0\n"


def test_a_firing_may_look_as_far_as_it_asks_for() -> None:
    text = "int->int filter F { work pop 1 peek * push 1 { int n = 0; while (peek(n) != 3) n++; push(n); pop(); } }"
    assert output(text, [0, 3, 1, 2, 3, 3, 0]) == [1, 0, 2, 1, 0, 0]
    assert output(text.replace("while (peek(n) != 3) n++;", "n = peek(2);"), [1, 2, 3, 4]) == [3, 4]


def test_of_a_range_of_what_a_firing_looks_at_the_most_counts() -> None:
    text = "int->int filter F { work pop 1 peek [1, 2, 3] push 1 { push(peek(peek(0))); pop(); } }"
    assert output(text, [0, 1, 2, 0, 2, 7]) == [0, 2, 2, 0]


def test_what_a_loop_leaves_out_passes_items_as_they_are() -> None:
    text = """int->int feedbackloop L {
      join roundrobin(1, 1);
      body int->int filter { work pop 2 push 2 { int sum = pop() + pop(); push(sum); push(sum); } };
      loop Identity<int>;
      split roundrobin(1, 1);
      enqueue 0;
    }"""
    assert output(text.replace("loop Identity<int>;", ""), [1, 2, 3]) == [1, 3, 6]
    text = (
        text.replace("body", "loop", 1)
        .replace("loop Identity<int>;", "")
        .replace("pop 2 push 2", "pop 1 push 1")
    )
    text = text.replace("pop() + pop(); push(sum);", "pop() + 1;")
    assert output(text, [1, 2, 3]) == [1, 2, 3]


def test_what_a_try_has_done_counts_only_with_enough_items() -> None:
    text = """
      int->int filter Frames {
        int[2] sums;
        int frames;
        work pop * push 1 {
          frames++;
          int n = pop();
          for (int i = 0; i < n; i++) sums[i & 1] += pop();
          push(frames * 1000 + sums[0] * 10 + sums[1]);
        }
      }
    """
    assert output(text, [2, 1, 2, 0, 1]) == [1012, 2012]
    assert output(text, [2, 1, 2, 0, 1, 5, 3, 9, 9]) == [1012, 2012, 3062]


def test_a_firing_that_asks_for_nothing_is_a_trap() -> None:
    text = "int->int filter F { work pop * push 1 { push(1); if (iter() < 2) pop(); } }"
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({"input": [1, 2, 3]})
    (found,) = refused.value.diagnostics
    assert found.code == "trap-assert"
    assert "took no item" in found.message


SKIPPING = """
int->int filter Frames(int skipped) {
  int frames;
  prework pop skipped peek skipped + 1 push 1 { push(100 * peek(skipped)); frames = 10; println("begins"); }
  work pop * push * {
    int n = pop();
    for (int i = 0; i < n; i++) push(frames * 100 + pop());
    frames++;
    println(n);
  }
}
int->int pipeline Main { add Frames(2); add Frames(0); }
"""


def test_prework_beside_an_open_rate() -> None:
    given = run(SKIPPING, {"input": [7, 7, 1, 5, 2, 3, 4, 3, 8]})
    # the first frame has 1 item, the second 2; then comes the head of one of which items are missing
    assert given["output"] == [10000]
    assert given["stdout"] == "begins\nbegins\n1\n2\n"
    assert run(SKIPPING, {"input": [7, 7]}) == {"output": [], "stdout": ""}


def test_what_prework_alone_changes_is_read_beside_an_open_rate() -> None:
    text = """
    int->int filter F {
      int k;
      prework pop 1 { k = pop(); }
      work pop * push 1 { int x = pop(); if (x > 5) x += pop(); push(k * x); }
    }"""
    assert output(text, [3, 4, 9, 1, 7]) == [12, 30]


def test_prework_that_takes_nothing_beside_an_open_rate() -> None:
    text = """
    int->int feedbackloop Main {
      join roundrobin(1, 1);
      body int->int filter { work pop 2 push 3 { int x = pop() + pop(); push(x); push(0); push(x); } };
      loop int->int filter {
        prework push 1 { push(100); }
        work pop * push 1 { int x = pop(); while (x % 2 == 1) x += 1 + pop(); push(x); }
      };
      split roundrobin(2, 1);
      enqueue 1;
    }"""
    assert output(text, [2, 4, 6]) == [3, 0, 104, 0, 114, 0]


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (
            "work pop * push 1 { int x = pop(); while (x < 5) x += pop(); push(x + skipped); n++; }",
            [3, 11, 10],
        ),
        ("work pop 2 peek 3 push 1 { n++; push(pop() * 10 + peek(1) + skipped); }", [3, 45, 26]),
    ],
)
def test_prework_may_ask_for_items(work: str, expected: list[int]) -> None:
    text = f"""
    int->int filter F {{
      int skipped, n;
      prework pop * push * {{ while (pop() != 0) skipped++; push(skipped); println("head"); }}
      {work}
    }}
    int->int pipeline Main {{ add F; add Identity<int>; }}"""
    given = run(text, {"input": [7, 7, 7, 0, 4, 4, 2, 5, 3]})
    assert given == {"output": expected, "stdout": "head\n"}
    assert run(text, {"input": [7, 7, 7]}) == {"output": [], "stdout": ""}


def test_rates_that_are_left_open_are_read_off_the_code() -> None:
    text = "int->int filter Main { work pop * push [1, 2, 3] { push(peek(0) + peek(2)); pop(); pop(); } }"
    assert output(text, [1, 2, 3, 4, 5]) == [4, 8]


def test_the_command_line_counts_iterations(tmp_path: Path) -> None:
    path = tmp_path / "fib.str"
    path.write_text(FIBONACCI, encoding="utf-8")

    def river_(*argv: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        return main(list(argv), io.StringIO(), out, err), out.getvalue(), err.getvalue()

    assert river_("run", str(path), "--iterations", "4", "--format", "csv", "-q") == (
        0,
        "1\n2\n3\n5\n",
        "",
    )
    code, shown, _ = river_("check", str(path), "--iterations", "4", "--backend", "multicore")
    assert (code, "multicore  agrees" in shown) == (0, True)
    code, _, errors = river_("run", str(path))
    assert code == 1
    assert "say how often: `--iterations N`" in errors


def test_iterations_are_for_programs_that_make_their_own_items() -> None:
    for given, iterations in (({"input": []}, 3), ({"clock": [], "input": []}, 3)):
        text = FIBONACCI if "clock" in given else "int->int filter F { work pop 1 push 1 { push(pop()); } }"
        with pytest.raises(Rejected) as refused:
            river.compile(text, lang="streamit").run(
                {k: v for k, v in given.items() if k == "clock" or text != FIBONACCI}, iterations=iterations
            )
        assert refused.value.diagnostics[0].code == "run-iterations"


PACKETS = """
int->int filter Parse(portal<Scale> p) {
  int sum;
  int body(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { int x = pop(); if (x < 0) p.by(-x) LATENCY; s += x; }
    return s;
  }
  work pop * push 2 {
    int n = pop();
    if (n > 2) p.by(n);
    int s = body(n);
    sum += s;
    push(s); push(sum);
  }
}
int->int filter Scale { int k = 1; work pop 1 push 1 { push(k * pop()); } handler by(int x) { k = 10 * k + x; } }
int->int filter Some { work pop 1 push * { int n = pop(); for (int i = 0; i < n % 3; i++) push(n); } }
int->int pipeline Main { portal<Scale> p; PARTS }
"""


@pytest.mark.parametrize(
    ("parts", "latency", "expected"),
    [
        (
            "add Parse(p); add Scale to p;",
            "[0:0]",
            [3, 3, 91, 130, *(134 * n for n in (1, 11, 0, 11, 1, 12, 2, 14, 5, 19))],
        ),
        (
            "add Parse(p); add Scale to p;",
            "@ 1",
            [3, 3, 91, 130, 13, 143, *(134 * n for n in (0, 11, 1, 12, 2, 14, 5, 19))],
        ),
        ("add Parse(p); add Scale to p;", "@ -2", None),
        (
            (
                "add Parse(p); add splitjoin { split roundrobin(2); add Scale to p; add Identity<int>; join roundrobin(2); } "
                "add Some;"
            ),
            "",
            None,
        ),
        ("add Some; add Parse(p); add Scale to p; add Some;", "[1:3]", None),
    ],
)
def test_who_tells_others_may_take_what_it_asks_for(
    parts: str, latency: str, expected: list[int] | None
) -> None:
    """What stands between the two has fixed rates; a firing that is tried too early has said nothing."""
    text = PACKETS.replace("PARTS", parts).replace("LATENCY", latency)
    found = output(text, [1, 3, 3, 1, 2, 4, 2, -4, 5, 0, 1, 1, 1, 2, 2, 2, 3])
    assert found == expected if expected is not None else len(found) > 4


def test_firings_that_take_what_they_ask_for_give_what_is_stated() -> None:
    text = (
        "int->int filter F { work pop * push 2 { int n = pop(); for (int i = 0; i < n; i++) push(pop()); } }"
    )
    assert output(text, [2, 5, 6, 2, 7, 8]) == [5, 6, 7, 8]
    for backend in BACKENDS:
        with pytest.raises(Rejected, match="a firing gave more or fewer items than its `push` rate"):
            river.compile(text, lang="streamit").run({"input": [2, 5, 6, 1, 7, 8]}, backend=backend)


def test_choices_look_at_items() -> None:
    chosen = "int->int filter { work pop 1 peek 5 push 1 { push(peek(peek(0) % 4 > 2 ? 2 : peek(0) % 3)); pop(); } }"
    made = "void->int filter { int n; work push 1 { push(n++); } }"
    shown = "int->void filter { work pop 1 { println(pop()); } }"
    assert lines(f"void->void pipeline Main {{ add {made}; add {chosen}; add {shown}; }}", 4) == [
        "0",
        "2",
        "4",
        "5",
    ]


def test_functions_take_look_at_and_give_items() -> None:
    text = """
    int->int filter F {
      int total;
      int ahead(int i) { return peek(i) - peek(0); }
      int sum(int n) pop 2 { int s; for (int i = 0; i < n; i++) s += pop(); total += s; return s; }
      void both(int x) { push(x); push(total); if (x < 0) return; total++; }
      prework pop 1 push 2 { both(pop()); }
      work pop 3 peek 4 push 5 { both(ahead(3)); int s = sum(2); both(s); push(pop() + ahead(0)); }
    }"""
    expected = [5, 0]  # 5 makes the total 1
    total, items = 1, [1, 2, 4, 8, 16, 32, 64]
    for at in (0, 3):
        expected += [items[at + 3] - items[at], total]
        total += 1
        total += items[at] + items[at + 1]
        expected += [items[at] + items[at + 1], total]
        total += 1
        expected += [items[at + 2]]
    assert output(text, [5, *items]) == expected


def test_what_a_firing_does_not_take_is_dropped() -> None:
    text = "int->int filter F { work pop 3 push 1 { int x = pop(); if (x > 1) x += pop(); push(x); } }"
    assert output(text, [1, 2, 3, 4, 5, 6]) == [1, 9]


LOOP = """
int->int filter Half { work pop 2 push 1 { push(pop() + pop() + 1); } }
int->int filter Wait(int n) {
  prework push n { for (int i = 0; i < n; i++) push(i); }
  work pop 1 push 1 { push(pop()); }
}"""


def test_prework_in_a_loop_fires_at_the_start() -> None:
    text = f"""int->int feedbackloop L {{
      join roundrobin(1, 1); body Half; loop pipeline {{ add Wait(2); add Wait(1); }} split duplicate; }} {LOOP}"""
    expected: list[int] = []
    back = [0, 0, 1]
    for item in (10, 20, 30, 40, 50):
        expected.append(item + back.pop(0) + 1)
        back.append(expected[-1])
    assert output(text, [10, 20, 30, 40, 50]) == expected


def test_prework_in_a_loop_that_takes_nothing() -> None:
    text = f"""void->void pipeline Main {{ add L; add Show; }} {SHOW} {LOOP}
    void->int feedbackloop L {{ join roundrobin(0, 1); body int->int filter {{ work pop 1 push 1 {{ push(pop() + 5); }} }}
      loop Wait(2); split duplicate; }}"""
    assert lines(text, 5) == ["5", "6", "10", "11", "15"]
    assert lines(text, 0) == []


def test_counters_outside_cost_nothing() -> None:
    inside = "int->int filter F { work pop 4 push 4 { for (int i = 0; i < 4; i++) push(pop() + i); } }"
    outside = "int->int filter F { work pop 4 push 4 { int i; for (i = 0; i < 4; i++) push(pop() + i); } }"
    assert river.compile(inside, lang="streamit").text == river.compile(outside, lang="streamit").text


@pytest.mark.parametrize(
    "loop",
    [
        "while (i < 4) { push(pop() + i); i++; }",
        "while (i < 4) { int k = i; i = i + 1; push(pop() + k); }",
        "while (i < 4) push(pop() + i++);",
        "do { push(pop() + i); i += 1; } while (i < 4);",
        "for (; i < 4; i = i + 1) push(pop() + i);",
    ],
)
def test_who_counts_by_while_pays_no_more(loop: str) -> None:
    text = f"int->int filter F {{ work pop 4 push 4 {{ int i = 0; {loop} }} }}"
    (operator,) = (each.operator for each in river.compile(text, lang="streamit").graph.instances)
    assert isinstance(operator, typed.Operator)
    assert not unproven(operator)
    assert operator.rated is not None
    assert not any(isinstance(node, typed.While) for node in nodes(operator.rated.body))


def test_a_branch_may_give_the_joiner_nothing() -> None:
    text = """
    int->int splitjoin Main {
      split duplicate;
      add int->int filter { work pop 1 push 1 { push(pop() + 1); } };
      add int->void filter { work pop 1 { pop(); } };
      join roundrobin(1, 0);
    }"""
    assert output(text, [1, 2, 3]) == [2, 3, 4]


def test_rates_of_functions_name_their_parameters() -> None:
    text = """
    int->int filter T {
      int sum(int n) pop n { int s = 0; for (int i = 0; i < n; i++) s += pop(); return s; }
      int last(int n) { for (int i = 1; i < n; i++) pop(); return pop(); }
      work push 2 { push(sum(2)); push(last(3)); }
    }"""
    assert output(text, list(range(10))) == [1, 4, 11, 9]


def test_branches_that_give_nothing_need_no_joiner() -> None:
    text = """
    void->int filter S { int n; work push 1 { push(n++); } }
    int->void filter P(int k) { work pop 1 { println(pop() + k); } }
    void->void pipeline Main { add S; add splitjoin { split duplicate; add P(0); add P(10); } }"""
    assert lines(text, 2) == ["0", "10", "1", "11"]
