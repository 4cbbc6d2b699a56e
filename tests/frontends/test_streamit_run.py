"""StreamIt programs: graphs, functions and statements, traps, and what is printed."""

from __future__ import annotations

import io
import itertools
import math
import struct
import sys
from pathlib import Path

import pytest

import river
from frontends.streamit import FRONTEND
from river.cli import main
from river.diagnostics import Rejected
from river.source import Source
from river.testing.seeds import chance
from tests.frontends.streamit_runs import BACKENDS, COUNT, f32, lines, output, run
from tests.oracles import streamit_direct as direct

ROOT = Path(__file__).resolve().parents[2]


def test_moving_average() -> None:
    text = """
    float->float filter Mean(int n) {
      work push 1 pop 1 peek n {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += peek(i);
        push(sum / n);
        pop();
      }
    }
    float->float pipeline Main { add Mean(4); }"""
    assert output(text, [4.0, 8.0, 0.0, 4.0, 12.0]) == [4.0, 6.0]
    assert output(text, [1.0] * 3) == []


def printed(decimals: int | None, items: list[float]) -> list[str]:
    text = """
    float->void pipeline Main {
      add float->double filter { work pop 1 push 1 { println(peek(0)); push(pop()); } };
      add double->void filter {
        complex c = -1.5 + 0.25i;
        work pop 1 { println("x = " + pop() + " " + 2 + " " + 2.0 + " " + c); }
      };
    }"""
    line = "" if decimals is None else f"\n#river decimals {decimals}"
    return run(text + line, {"input": items})["stdout"].splitlines()


def test_floats_are_printed_as_c_prints_them() -> None:
    assert printed(None, [0.5]) == ["0.5", "x = 0.5 2 2.0 -1.5+0.25i"]
    assert printed(6, [0.5]) == ["0.500000", "x = 0.500000 2 2.000000 -1.500000+0.250000i"]
    assert printed(6, [math.inf, -math.inf, math.nan])[::2] == ["inf", "-inf", "nan"]


@pytest.mark.slow
def test_printed_floats_are_rounded_as_c_rounds_them() -> None:
    draw = chance("decimals")
    bits = [draw.getrandbits(32) for _ in range(300)]
    floats: list[float] = [x for (x,) in struct.iter_unpack("f", struct.pack("300I", *bits)) if x == x]
    near = [f32((draw.randrange(-2000, 2000) + 0.5) / 2**k) for k in range(24) for _ in range(5)]  # halves
    values = [*floats, *near, -0.0, 1e-7, 0.0078125, 3.4e38, 16777217.0, 0.9999995, -0.9999996]
    values = [f32(value) for value in values]
    for decimals in (0, 6, 18, 99):
        found = printed(decimals, values)
        assert found[::2] == [f"%.{decimals}f" % value for value in values]
        assert [line.split()[2] for line in found[1::2]] == found[::2]


def test_the_command_line_says_how_floats_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "third.str"
    path.write_text("void->void filter Main { work { println(1.0 / 3); } }", encoding="utf-8")
    for options, expected in (
        ((), "0.33333334"),
        (("--decimals", "0"), "0"),
        (("--decimals", "6"), "0.333333"),
    ):
        out = io.StringIO()
        assert main(["run", str(path), "--iterations", "1", *options, "-q"], io.StringIO(), out, out) == 0
        assert out.getvalue() == f"{expected}\n"
    table = river.load(path, decimals=2).run({}, iterations=1)["stdout"]
    assert table["value"].to_pylist() == ["0.33\n"]
    for number in (-1, 100):
        with pytest.raises(Rejected, match="`decimals`"):
            river.load(path, decimals=number)


def test_duplicate_and_weighted_round_robin() -> None:
    text = """
    int->int pipeline Main {
      add splitjoin {
        split roundrobin(2, 1);
        add splitjoin { split duplicate; add Scale(10); add Scale(100); join roundrobin(1, 1); };
        add Scale(-1);
        join roundrobin(4, 1);
      }
    }
    int->int filter Scale(int k) { work push 1 pop 1 { push(k * pop()); } }"""
    assert output(text, [1, 2, 3, 4, 5, 6]) == [10, 100, 20, 200, -3, 40, 400, 50, 500, -6]
    assert output(text, [1, 2]) == [10, 100, 20, 200]


def test_echo() -> None:
    text = """
    float->float feedbackloop Echo {
      join roundrobin(1, 1);
      body float->float filter { work pop 2 push 1 { push(pop() + 0.5 * pop()); } };
      loop Identity<float>;
      split duplicate;
      for (int i = 0; i < 3; i++) enqueue 0;
    }"""
    assert output(text, [8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) == [8.0, 0.0, 0.0, 4.0, 0.0, 0.0, 3.0]


def test_lines_come_by_steady_state_then_place_in_the_graph() -> None:
    text = """
    void->void pipeline Main { add Source; add Half; add Sink; }
    void->int filter Source { int i; work push 1 { println("source " + i); push(i++); } }
    int->int filter Half { work pop 2 push 1 { int x = pop() + pop(); println("half " + x); push(x); } }
    int->void filter Sink { work pop 1 { print("sink "); println(pop()); } }"""
    assert lines(text, 2) == [
        "source 0", "source 1", "half 1", "sink 1", "source 2", "source 3", "half 5", "sink 5",
    ]  # fmt: skip


def test_two_sources() -> None:
    text = """
    void->int pipeline Main {
      add splitjoin { split roundrobin(0); add Count(1); add Count(10); join roundrobin(1, 2); }
    }
    void->int filter Count(int by) { int n; work push 1 { push(n); n += by; } }"""
    assert run(text, iterations=2)["output"] == [0, 0, 10, 1, 20, 30]


def test_a_recursive_merge_sort() -> None:
    text = """
    int->int pipeline Main { add Sort(8); }
    int->int pipeline Sort(int n) {
      if (n > 1) {
        add splitjoin {
          split roundrobin(n / 2);
          for (int i = 0; i < 2; i++) add Sort(n / 2);
          join roundrobin(n / 2);
        }
        add Merge(n / 2);
      } else
        add Identity<int>;
    }
    int->int filter Merge(int n) {
      work push 2 * n pop 2 * n {
        int i = 0, j = n;
        while (i < n || j < 2 * n)
          if (j == 2 * n || (i < n && peek(i) <= peek(j))) push(peek(i++)); else push(peek(j++));
        for (i = 0; i < 2 * n; i++) pop();
      }
    }"""
    items = [5, 3, 8, -1, 9, 0, 2, 2, 7, 6, 5, 4, 3, 2, 1, 0, 99]
    assert output(text, items) == sorted(items[:8]) + sorted(items[8:16])


def test_a_recursive_bitonic_sorter() -> None:
    text = """
    int->int pipeline Main { add Sort(8, true); }
    int->int pipeline Sort(int n, boolean up) {
      if (n > 2) add splitjoin { split roundrobin(n / 2); add Sort(n / 2, true); add Sort(n / 2, false); join roundrobin(n / 2); }
      add Merge(n, up);
    }
    int->int pipeline Merge(int n, boolean up) {
      add splitjoin {
        split roundrobin;
        for (int i = 0; i < n / 2; i++) add Exchange(up);
        join roundrobin;
      }
      if (n > 2) add splitjoin { split roundrobin(n / 2); add Halves(n / 2, up); add Halves(n / 2, up); join roundrobin(n / 2); }
    }
    int->int pipeline Halves(int n, boolean up) { add Merge(n, up); }
    int->int filter Exchange(boolean up) {
      work push 2 pop 2 {
        int a = pop(), b = pop();
        if ((a > b) == up) { int c = a; a = b; b = c; }
        push(a); push(b);
      }
    }"""
    # the exchanges compare neighbours at distance n / 2 only when the items are dealt in turns: 2 of n / 2 branches
    text = text.replace("split roundrobin;", "split roundrobin(1);").replace(
        "join roundrobin;", "join roundrobin(1);"
    )
    items = [5, 3, 8, -1, 9, 0, 2, 2]
    assert output(text, items) == sorted(items)


def test_figure_3_f() -> None:
    text = """
    fn low_pass(a: f32, b: f32) -> f32 = 0.5 * (a + b);
    fn half(a: f32) -> f32 = 0.5 * a;
    fn subtractor(s: f32, x: f32) -> (f32, f32) { return (x, x - s); }
    fn amplify(s: i32, x: f32) -> (i32, f32) { return (s +% 1, x * f32(s)); }
    pipeline {
      pipeline {
        splitjoin {
          split duplicate;
          filter { work {tf <- low_pass(peek(1), peek(2)); push(tf); pop();} }
          filter { work {tm <- half(peek(1)); push(tm); pop();} }
          join roundrobin; }
        filter { work {s,tc <- subtractor(s,peek(1)); push(tc); pop();} } }
      filter { work {s,tc <- amplify(s,peek(1)); push(tc); pop();} } }"""
    x = [1.0, 3.0, 5.0, 9.0]
    joined = [v for a, b in itertools.pairwise(x) for v in ((a + b) / 2, a / 2)]
    gained = [v - before for before, v in zip([0.0, *joined], joined, strict=False)]
    compiled = river.compile(text, lang="streamit")
    for backend in BACKENDS:
        results = compiled.run({"input": x}, backend=backend)
        assert [row["value"] for row in results["output"].to_pylist()] == [
            k * v for k, v in enumerate(gained)
        ]


def test_a_division_by_zero_names_its_place() -> None:
    text = "int->int filter F { work pop 1 push 1 { push(1 / pop()); } }"
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit", name="f.str").run({"input": [1, 0]})
    (found,) = refused.value.diagnostics
    assert "division" in found.message
    assert found.span is not None
    assert found.span.text == "1 / pop()"


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_a_trap_names_the_stream(backend: str) -> None:
    text = """
      int->int filter Band(int k) { work pop 1 push 1 { push(12 / (pop() - k)); } }
      int->int pipeline Equalizer {
        add splitjoin { split roundrobin; for (int i = 1; i < 4; i++) add Band(i); join roundrobin; }
      }
      int->int filter Odd { int[2] t; work pop 1 push 1 { push(t[pop() % 3]); } }
      int->int pipeline Main { add Odd; add Identity<int>; add Equalizer; }
    """
    program = river.compile(text, lang="streamit")
    for items, path in (([0, 1, 2], "Main/Odd"), ([0, 0, 0, 0], "")):
        if not path:
            program = river.compile(text.replace("t[pop() % 3]", "1 + iter()"), lang="streamit")
            path = "Main/Equalizer/splitjoin_1/Band[0]"
        with pytest.raises(Rejected) as raised:
            program.run({"input": items}, backend=backend)
        (found,) = raised.value.diagnostics
        assert found.code in ("trap-index-range", "trap-division-by-zero")
        assert f"in `{path}`" in [note.message for note in found.notes]


def test_a_trap_in_what_runs_as_one_names_all_that_share_the_text() -> None:
    text = """
      int->int filter Over(int k) { work pop 1 push 1 { push(12 / (pop() - k)); } }
      int->int pipeline Main { add Over(1); add Over(4); add int->int filter { work pop 1 push 1 { push(-pop()); } }; }
    """
    with pytest.raises(Rejected) as raised:
        river.compile(text, lang="streamit").run({"input": [4]})
    assert [n.message for n in raised.value.diagnostics[0].notes] == [
        "in one of `Main/Over[0]`, `Main/Over[1]`"
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_trap_of_a_source_names_no_item(backend: str) -> None:
    text = "void->int filter F { int n; work push 1 { push(2 / (1 - n++)); } }"
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({}, iterations=3, backend=backend)
    (found,) = refused.value.diagnostics
    assert [note.message for note in found.notes] == ["in `F`"]


def test_names_never_collide() -> None:
    text = """
    int->int pipeline Main { add F(2, 3); add init(1); add F(2, 4); }
    int->int filter F(int let, int w) {
      int initial = let, y, x;
      int[w] in;
      init { for (int let_1 = 0; let_1 < w; let_1++) in[let_1] = let * w; y = in[0]; }
      int emit(int w) { x += w; return x; }
      work pop 1 push 1 { int let_1 = pop(), at = w; push(emit(let_1) + let * initial + y + at + in[w - 1]); }
    }
    int->int filter init(int init) { work pop 1 push 1 { int u = init; push(pop() + u); } }"""
    assert output(text, [1, 1]) == [1 + 4 + 6 + 3 + 6 + 1 + 4 + 8 + 4 + 8, 21 + 22 + 4 + 8 + 4 + 8]


def test_a_text_may_end_its_line_itself() -> None:
    text = (
        f"{COUNT} void->void pipeline Main {{ add Count; add Show; }} int->void filter Show {{ work pop 1 {{"
        r' int x = pop(); print(x + ":"); print(x + 1 + "\n"); println(); print("\n"); } }'
    )
    assert lines(text, 2) == ["0:1", "", "", "1:2", "", ""]


def test_what_is_printed_is_text() -> None:
    show = 'int->void filter Items { work pop 1 { print(pop()); print(", "); } }'
    text = f"{COUNT} {show} void->void pipeline Main {{ add Count; add Items; }}"
    assert run(text, iterations=3) == {"stdout": "0, 1, 2, "}


def test_files_are_inputs_and_outputs() -> None:
    text = """
    void->void pipeline Main {
      add FileReader<float>("in/noise.bin");
      add float->float filter { work pop 1 push 1 { push(2 * pop()); } };
      add FileWriter<float>("loud.bin");
    }"""
    assert run(text, {"noise": [1.0, 2.5]}) == {"loud": [2.0, 5.0]}


def test_words_of_the_operator_language_are_names() -> None:
    text = """
      struct In { int in; }
      int->In filter A { work pop 1 push 1 { In to; to.in = pop(); push(to); } }
      In->int filter B { In in; work pop 1 push 1 { In out = pop(); push(out.in + in.in); in = out; } }
      int->int pipeline Main { add A; add B; }"""
    assert output(text, [1, 2, 3]) == [1, 3, 5]


def test_items_behind_a_joiner_depend_on_all_that_it_passed_on_before() -> None:
    """The n-th item of `Last` is no item of `Tell`'s, but comes behind the one of its firing n - 1: SDEP(n) = n - 1."""
    text = """
    int->int filter Tell(portal<Last> p) { work pop 1 push 1 { p.add(peek(0)); push(pop()); } }
    int->int filter Last { int sum; work pop 1 push 1 { pop(); push(sum); } handler add(int x) { sum += x; } }
    int->int pipeline Main {
      portal<Last> p;
      add splitjoin { split duplicate; add Identity<int>(); add Tell(p); join roundrobin; }
      add splitjoin { split roundrobin; add Last to p; add Identity<int>(); join roundrobin; }
    }
    """
    assert output(text, [1, 10, 100]) == [0, 1, 1, 10, 11, 100]


def test_a_function_that_prints_need_not_be_called() -> None:
    debug = 'void->int filter { int n; void debug() { println("n is " + n); } work push 1 { push(n++); } }'
    text = f"void->void pipeline Main {{ add {debug}; add int->void filter {{ work pop 1 {{ println(pop()); }} }}; }}"
    assert lines(text, 3) == ["0", "1", "2"]


@pytest.mark.slow
def test_the_fm_radio() -> None:
    folder = ROOT / "examples" / "fm_radio"
    text = (folder / "fm_radio.str").read_text(encoding="utf-8")
    signal = [f32(float(line)) for line in (folder / "signal.csv").read_text().split()[1:]][:700]
    typed = FRONTEND.check(FRONTEND.parse(Source("fm_radio.str", text)))
    compiled = river.compile(text, lang="streamit")
    sound = [row["value"] for row in compiled.run({"input": signal})["output"].to_pylist()]
    assert sound == direct.run(typed, {"input": signal})["output"]
    expected = [float(line) for line in (folder / "expected.csv").read_text().split()[1:]]
    assert len(expected) == 32
    assert [f32(value) for value in expected] == sound[:32]


def test_the_signal_of_the_fm_radio_is_what_its_script_writes() -> None:
    import subprocess

    folder = ROOT / "examples" / "fm_radio"
    found = subprocess.run(
        [sys.executable, str(folder / "make_data.py")], capture_output=True, text=True, check=True
    )
    assert found.stdout == (folder / "signal.csv").read_text(encoding="utf-8")


def test_iter_counts_what_has_finished() -> None:
    text = """
    int->int filter F {
      prework pop 1 push 1 { push(pop() + 100 * iter()); }
      work pop 1 push 1 { int i = iter(); if (i == 1) { push(pop()); return; } push(pop() + 100 * i); }
    }"""
    assert output(text, [1, 2, 3, 4, 5]) == [1, 2, 3, 204, 305]


def test_helper_blocks_stand_outside_of_filters() -> None:
    text = """
    static { int N = 7; }
    helper Maths { int square(int x) { return x * x; } int more(int x) { int N2 = square(x); return N2 + N; } }
    int->int filter F(int N) { int x = 1; int square(int x) { return -x; } handler reset(int to) { x = to; }
      work pop 1 push 2 { push(Maths.more(pop()) + N + x); push(square(2)); } }
    int->int pipeline Main { add F(1000); }"""
    assert output(text, [3]) == [9 + 7 + 1000 + 1, -2]


def test_inner_streams_may_have_names() -> None:
    text = """
    int->int pipeline Main {
      for (int i = 1; i < 3; i++) add int->int filter Scale { work pop 1 push 1 { push(pop() * (i + 1)); } }
      add pipeline Scale { add Identity<int>; }
    }"""
    assert output(text, [1, 2]) == [6, 12]


def test_parts_of_what_has_an_effect() -> None:
    text = """int->float filter F { work pop 2 push 2 {
      complex c = (complex) pop(); push(c.real); push(((complex) pop() + 1i).imag); } }"""
    assert output(text, [1, 2, 3, 4]) == [1.0, 1.0, 3.0, 1.0]


def test_counters_may_be_declared_outside_of_their_loops() -> None:
    text = """
    void->void filter Main {
      int n;
      work {
        int i, j, k, s = 0;
        for (i = 0; i < 10; i += 3) s += i;
        print(i + " " + s + ", ");
        for (i = n; i <= 6; i++) s += i;
        print(i + " " + s + ", ");
        for (j = 10; j > n; j -= 4) s += j;
        print(j + " " + s + ", ");
        for (j = 10; j >= n; j--) s++;
        print(j + " " + s + ", ");
        for (k = 5; k < n; k++) s = 0;
        print(k + ", ");
        for (k = 0; k < 100; k++) if (k * k > 50) break;
        for (int m = 0; m < 9; m++) { if (m % 2 == 0) continue; s += k; }
        println(k + " " + s);
        n += 2;
      }
    }"""
    assert lines(text, 2) == [
        "12 18, 7 39, -2 57, -1 68, 5, 8 100",
        "12 18, 7 38, 2 54, 1 63, 5, 8 95",
    ]


def counted(order: str, compare: str, start: int, bound: int, step: int) -> tuple[str, str]:
    """A loop that counts, and what it prints."""
    one = f"i += {step};" if abs(step) != 1 else "i++;" if step > 0 else "i = i - 1;"
    inside = f"s = s * 7 + i{'++' if step > 0 else '--'};"
    body = {"first": f"{one} s = s * 7 + i;", "within": inside}.get(order, f"s = s * 7 + i; {one}")
    test = f"(i {compare} {bound})"
    loop = f"do {{ {body} }} while {test};" if order == "late" else f"while {test} {{ {body} }}"
    step = step if order != "within" else step // abs(step)
    goes = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}[compare]
    i, s, late = start, 0, order == "late"
    while late or goes(i, bound):
        s, late = s * 7 + (i + step if order == "first" else i), False
        i += step
    return f'i = {start}; s = 0; {loop} print(i + "," + s + " ");', f"{i},{s} "


def test_while_loops_that_count() -> None:
    cases = [
        counted(order, compare, start, bound, step * (1 if compare.startswith("<") else -1))
        for order in ("last", "first", "within", "late")
        for compare, start, bound, step in (
            ("<", 2, 7, 1),
            ("<=", -1, 3, 3),
            (">", 4, 0, 3),
            (">=", 1, 1, 1),
            ("<", 5, 5, 3),
        )
    ]
    body = " ".join(text for text, _ in cases)
    text = f"void->void filter Main {{ work {{ int i, s; {body} println(); }} }}"
    assert lines(text, 1) == ["".join(printed for _, printed in cases)]


def test_while_loops_that_count_from_somewhere() -> None:
    text = """void->void filter Main {
      int n;
      work {
        int a = 3, i = n, s = 0;
        while (i < 4) { if (i == 2) s += 100; s += i; i++; }
        for (; a < i; a++) s = s * 2;
        while (a > n) { a--; if (a == 1) { s++; continue; } s += 5; }
        while (i > 0) { i--; int k = i; while (k < 2) { k++; s += k; } if (s > 1000) break; }
        while (a < n + 3) { a++; n = n + a % 2; }
        println(i + " " + a + " " + s + " " + n);
      }
    }"""
    assert lines(text, 3) == run_by_hand(3)


def run_by_hand(times: int) -> list[str]:
    """What that program prints."""
    n, found = 0, list[str]()
    for _ in range(times):
        a, i, s = 3, n, 0
        while i < 4:
            s += i + (100 if i == 2 else 0)
            i += 1
        while a < i:
            s, a = s * 2, a + 1
        while a > n:
            a -= 1
            s += 1 if a == 1 else 5
        while i > 0:
            i -= 1
            for k in range(i, 2):
                s += k + 1
            if s > 1000:
                break
        while a < n + 3:
            a += 1
            n += a % 2
        found.append(f"{i} {a} {s} {n}")
    return found


def test_loops_whose_bounds_move() -> None:
    text = """int->int filter Main {
      work pop 6 push 2 {
        int c = 0;
        for (int i = 0; i < 10 - i; i++) c++;
        push(c);
        for (int i = 0; i < peek(0); i++) { pop(); c++; }
        push(c);
      }
    }"""
    assert output(text, [5, 2, 5, 2, 5, 2]) == [5, 8]


def test_wide_splitters_and_joiners_stand_in_trees() -> None:
    weights = [1 + i % 2 for i in range(33)]
    told = ", ".join(map(str, weights))
    text = f"""
    int->int splitjoin Main {{
      split roundrobin({told});
      for (int i = 0; i < 33; i++) {{ if (i % 16 == 0) add Plus(100 * i + 100); else add Identity<int>; }}
      join roundrobin({told});
    }}
    int->int filter Plus(int k) {{ work pop 1 push 1 {{ push(pop() + k); }} }}"""
    branches = [i for i, weight in enumerate(weights) for _ in range(weight)]
    items = list(range(2 * len(branches)))
    expected = [n + (100 * i + 100 if i % 16 == 0 else 0) for n, i in zip(items, 2 * branches, strict=True)]
    assert output(text, items) == expected
    widths = [
        len(line.split(","))
        for line in river.compile(text, lang="streamit").text.splitlines()
        if "<- " in line
    ]
    assert max(widths) <= 16


@pytest.mark.parametrize("split", ["duplicate", "roundrobin"])
def test_a_splitjoin_may_have_more_branches_than_one_operator_has_queues(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontends.streamit.lower.LARGEST", 4)
    monkeypatch.setattr("frontends.streamit.elaborate.WIDEST", 4)
    text = f"""int->int splitjoin Main {{
      split {split};
      for (int i = 0; i < 9; i++) add int->int filter {{ work pop 1 push 1 {{ push(pop() * (i + 1)); }} }}
      join roundrobin;
    }}"""
    items = [7] if split == "duplicate" else [7] * 9
    assert output(text, items) == [7 * (i + 1) for i in range(9)]
    if split == "duplicate":
        assert "n = 3" in river.compile(text, lang="streamit").text


def test_phases_are_functions() -> None:
    text = """
    int->int filter Main {
      phase sums peek 2 pop 1 push 1 { push(peek(0) + peek(1)); pop(); }
      phase twice pop 1 push 2 { int x = pop(); push(x); push(-x); }
      work { sums(); twice(); }
    }"""
    assert output(text, [1, 2, 3, 4]) == [3, 2, -2, 7, 4, -4]


def test_a_loop_that_only_return_leaves_ends_a_function() -> None:
    text = """
    struct P { int x; };
    void->void filter T {
      int f(int a) { while (true) { if (a > 3) return a; a++; } }
      P g(int a) { for (;;) { P p; p.x = a; if (a % 7 == 0) { return p; } a++; } }
      work { println(f(1) + g(3).x); }
    };"""
    assert lines(text, 1) == ["11"]


def test_any_expression_with_an_effect_is_a_statement() -> None:
    text = """
    void->void filter T {
      int n = 4; boolean f() { n += 10; return true; }
      work { n > 3 ? n-- : n++; n > 100 && f(); n == 3 && f(); println(n); }
    }"""
    assert lines(text, 2) == ["13", "12"]


def test_calls_are_statements_also_without_an_effect() -> None:
    text = """
    int->int filter T { work pop 1 push 1 { peek(1); iter(); abs(peek(0)); push(pop()); } }"""
    assert output(text, [1, 2, 3]) == [1, 2]


def test_functions_that_call_themselves_take_items() -> None:
    text = """
    int->int filter T {
      int run(int k) { if (pop() % 3 == 0) return k; return run(k + 1); }
      work pop * push 1 { push(run(0)); }
    }"""
    assert output(text, list(range(8))) == [0, 2, 2]
    with pytest.raises(Rejected, match="how many items a firing pops differs"):
        output(text.replace("pop * ", ""), [1])


def test_comments_may_be_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "t.str"
    path.write_bytes("void->void filter T { work { println(1); } } // Übung".encode("latin-1"))
    assert river.load(str(path)).run({}, iterations=1)["stdout"]["value"].to_pylist() == ["1\n"]


def test_functions_may_be_called_as_operations_are() -> None:
    text = """
    void->int filter S { work push 1 { push(1); } }
    int->void filter P {
      int zero(int a, int b) { return a - b; }
      int min(boolean a, boolean b) { return 7; }
      int max(int a, int b) { return a + b; }
      int round(int x) { return x; }
      float abs(float x) { return x * 2; }
      int string(int x) { return x; }
      float f32(int x) { return 9; }
      work pop 1 {
        int[3] a;
        int i = pop();
        boolean x = i == 1, y = a[1] == 0;
        float q = i;
        print(a[2] + " " + (x & y) + " " + (q + 2.5) + " " + min(x, y) + " " + zero(1, 2) + " ");
        println(string(3) + " " + f32(2) + " " + max(i, (int) abs(round(5))));
      }
    }
    void->void pipeline Main { add S; add P; }"""
    assert lines(text, 2) == ["0 true 3.5 7 -1 3 9.0 11"] * 2


def test_a_stream_may_be_called_as_one_of_the_library() -> None:
    text = """
    void->int filter S { work push 1 { push(5); } }
    int->int filter Identity(int k) { work pop 1 push 1 { push(pop() + k); } }
    int->void filter P { work pop 1 { println(pop()); } }
    void->void pipeline Main { add S; add Identity<int>; add Identity(2); add Identity<int>(); add P; }"""
    assert lines(text, 2) == ["7", "7"]


@pytest.mark.parametrize(
    ("branch", "split", "join", "filters"),
    [
        ("add Twice;", "roundrobin(2)", "roundrobin(1)", 1),
        ("add Twice;", "roundrobin(4)", "roundrobin(2)", 1),
        ("add Twice;", "roundrobin(1)", "roundrobin(1)", 18),  # a turn leaves an item waiting
        ("add Twice;", "roundrobin(4)", "roundrobin(1)", 18),  # what a turn gives waits
        ("add Add(i % 2);", "roundrobin(1)", "roundrobin(1)", 2),
        ("add Add(i % 3);", "roundrobin(1)", "roundrobin(1)", 18),  # 15 would go
        ("add Last;", "roundrobin(1)", "roundrobin(1)", 18),  # it keeps an item
        ("add Ahead;", "roundrobin(1)", "roundrobin(1)", 18),
        ("add pipeline { add Twice; add Twice; };", "roundrobin(4)", "roundrobin(1)", 2),
        ("add pipeline { add Twice; add Twice; };", "roundrobin(2)", "roundrobin(1)", 36),
        (
            "add splitjoin { split roundrobin(1, 2); add Add(1); add Twice; join roundrobin; };",
            "roundrobin(3)",
            "roundrobin(2)",
            2,
        ),
        (
            "add splitjoin { split duplicate; add Twice; add Twice; join roundrobin; };",
            "roundrobin(2)",
            "roundrobin(2)",
            2,
        ),
    ],
)
def test_branches_that_do_the_same_are_one(branch: str, split: str, join: str, filters: int) -> None:
    text = f"""
    int->int pipeline Main {{
      add splitjoin {{
        split {split};
        for (int i = 0; i < 18; i++) {branch}
        join {join};
      }}
    }}
    int->int filter Twice {{ work pop 2 push 1 {{ push(pop() + 10 * pop()); }} }}
    int->int filter Add(int k) {{ work pop 1 push 1 {{ push(pop() + k); }} }}
    int->int filter Last {{ int last; work pop 1 push 1 {{ push(last); last = pop(); }} }}
    int->int filter Ahead {{ work peek 2 pop 1 push 1 {{ push(peek(1)); pop(); }} }}"""
    assert sum(bool(use.within) for use in river.compile(text, lang="streamit").program.uses) == filters
    for count in (0, 1, 3, 4, 37, 55, 73, 150):
        output(text, list(range(count)))


def test_a_trap_in_one_of_equal_branches_names_all_of_them() -> None:
    text = """
    int->int splitjoin Main {
      split roundrobin;
      for (int i = 0; i < 17; i++) add pipeline Part { add F; }
      join roundrobin;
    }
    int->int filter F { work pop 1 push 1 { push(12 / pop()); } }"""
    with pytest.raises(Rejected) as raised:
        river.compile(text, lang="streamit").run({"input": [1, 2, 3, 4, 0]})
    (note,) = raised.value.diagnostics[0].notes
    assert note.message.startswith("in one of `Main/Part[0]/F`, `Main/Part[1]/F`, ")
    assert note.message.endswith(" and 13 more")


def test_what_is_computed_before_anything_runs_changes_items_once() -> None:
    text = """
    static {
      int[2][3] a; int i = 1; int j; int sum; float f = 1; bit[2] b;
      init {
        j = i++;
        a[1][i--] = 4; a[1][2] -= 2; sum = a[1][2]++; sum += a[1][2]-- + 2;
        a[0][i++] += 5;
        f /= 2; f += 1;
        b[1] = 1; b[1] ^= 1; b[0] |= 1;
        for (int q = 0; q < 3; q++) sum = sum * 10 + q + b[0];
      }
    }
    void->void filter F { work { println(i + " " + j + " " + a[1][2] + " " + a[0][1] + " " + sum + " " + f + " " + b[1]); } }"""
    assert lines(text, 1) == ["2 1 2 5 7123 1.5 0"]
