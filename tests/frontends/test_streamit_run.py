from __future__ import annotations

import cmath
import importlib.util
import io
import itertools
import math
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

import river
from frontends.streamit import FRONTEND
from river import plugins
from river.cli import main
from river.diagnostics import Rejected
from river.source import Source

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location(
    "streamit_direct", ROOT / "tests" / "oracles" / "streamit_direct.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
direct = importlib.util.module_from_spec(_SPEC)
sys.modules["streamit_direct"] = direct  # its classes look their module up
_SPEC.loader.exec_module(direct)

BACKENDS = ("multicore", "reference")


def run(text: str, data: dict[str, list[Any]] | None = None, iterations: int | None = None) -> dict[str, Any]:
    """What both backends and the direct definition say, which must be the same; of `stdout`, the text."""
    compiled = river.compile(text, lang="streamit")
    typed = FRONTEND.check(FRONTEND.parse(Source("t.str", text)))
    expected = direct.run(typed, data or {}, iterations or 0)
    collected = dict.fromkeys(compiled.outputs)
    for backend in BACKENDS:
        results = compiled.run(data or {}, collected, backend=backend, iterations=iterations)
        found: dict[str, Any] = {
            name: [row["value"] for row in table.to_pylist()] for name, table in results.tables.items()
        }
        if "stdout" in found:
            found["stdout"] = "".join(found["stdout"])
        assert found == expected, backend
    return expected


def output(text: str, items: list[Any]) -> list[Any]:
    return run(text, {"input": items})["output"]


def lines(text: str, iterations: int) -> list[str]:
    return run(text, iterations=iterations)["stdout"].splitlines()


def f32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


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


FIR = """
float->float pipeline Main { add LowPass(250e6, 108e5, 16, 2); }
float->float filter LowPass(float rate, float cutoff, int taps, int decimation) {
  float[taps] h;
  init {
    float w = 2 * pi * cutoff / rate;
    for (int i = 0; i < taps; i++) {
      float t = i - (taps - 1) / 2.0;
      h[i] = sin(w * t) / (pi * t) * (0.54 - 0.46 * cos(2 * pi * i / (taps - 1)));
    }
  }
  work push 1 pop decimation peek taps {
    float sum = 0;
    for (int i = 0; i < taps; i++) sum += peek(i) * h[i];
    push(sum);
    for (int i = 0; i < decimation; i++) pop();
  }
}"""


def test_fir_with_taps_computed_by_init() -> None:
    pi, taps = f32(math.pi), []
    w = f32(f32(f32(2 * pi) * f32(108e5)) / f32(250e6))
    for i in range(16):
        t = f32(i - 7.5)
        sinc = f32(f32(math.sin(f32(w * t))) / f32(pi * t))
        angle = f32(f32(f32(2 * pi) * i) / 15)
        taps.append(f32(sinc * f32(f32(0.54) - f32(f32(0.46) * f32(math.cos(angle))))))
    x = [f32(math.sin(0.3 * n) + n % 3) for n in range(40)]
    expected = []
    for start in range(0, len(x) - 15, 2):
        total = 0.0
        for i in range(16):
            total = f32(total + f32(x[start + i] * taps[i]))
        expected.append(total)
    assert output(FIR, x) == expected


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


def test_whole_numbers_wrap_and_floats_are_single() -> None:
    text = "int->int filter F { work pop 1 push 3 { int x = pop(); push(x * x); push(-x / 2); push(x % 7 << 30); } }"
    assert output(text, [65536, -7, -(1 << 31)]) == [
        0, -32768, 2 << 30 & 0x7FFFFFFF or -(1 << 31), 49, 3, 0, 0, -(1 << 30), -(1 << 31),
    ]  # fmt: skip
    text = "float->float filter F { work pop 1 push 1 { push(pop() + 0.1); } }"
    assert output(text, [0.2 + 0j.imag, 1e8]) == [f32(f32(0.2) + f32(0.1)), 1e8]


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


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_trap_of_a_source_names_no_item(backend: str) -> None:
    text = "void->int filter F { int n; work push 1 { push(2 / (1 - n++)); } }"
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({}, iterations=3, backend=backend)
    (found,) = refused.value.diagnostics
    assert [note.message for note in found.notes] == ["in `F`"]


def test_a_firing_that_gives_too_little_is_a_trap_at_the_rate() -> None:
    text = "int->int filter F { work pop 1 push 3 { for (int i = pop(); i > 0; i--) push(i); } }"
    assert output(text, [3]) == [3, 2, 1]
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="streamit").run({"input": [2]})
    (found,) = refused.value.diagnostics
    assert found.code == "trap-rate-violation"
    assert found.span is not None
    assert found.span.text == "3"


def test_state_helpers_and_arrays() -> None:
    text = """
    int->int pipeline Main { add Window(3); }
    int->int filter Window(int n) {
      int[n] ring;
      int[2][n] table;
      int at = 0;
      boolean full;
      init { for (int i = 0; i < n; i++) { table[0][i] = i * i; table[1][i] = -i; } }
      void put(int x) { ring[at] = x; at = (at + 1) % n; full = full || at == 0; }
      int total() { int s; for (int i = 0; i < n; i++) s += ring[i] * table[0][i] + table[1][i]; return s; }
      work push 2 pop 1 { put(pop()); push(full ? total() : -1); push(at); }
    }"""
    assert output(text, [1, 2, 3, 4]) == [-1, 1, -1, 2, 2 + 12 - 3, 0, 2 + 12 - 3, 1]


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


COUNT = "void->int filter Count { int n; work push 1 { push(n++); } }"
SHOW = "int->void filter Show { work pop 1 { println(pop()); } }"


def test_a_constant_is_not_the_local_of_who_adds_the_stream() -> None:
    text = f"""
    static {{ int x = 3; }}
    void->void pipeline Main {{ int x = 5; add Source; add int->int filter {{ work pop 1 push 1 {{ push(10 * pop() + x); }} }}
      add Show; }}
    void->int filter Source {{ work push 1 {{ push(x); }} }} {SHOW}"""
    assert lines(text, 1) == ["35"]


def test_arrays_from_around_bring_their_sizes() -> None:
    text = f"""
    static {{ int N = 2; int[N][N + 1] T = {{{{1, 2, 3}}, {{4, 5, 6}}}}; }}
    void->void pipeline Main {{ add Count; add Look; int[2] h; h[1] = 100; add P(2, h); add Show; }}
    int->int filter Look {{ work pop 1 push 1 {{ int[3] row = T[1]; push(pop() + row[2]); }} }} {COUNT} {SHOW}"""
    text += """
    int->int pipeline P(int N, int[N] h) {
      add int->int filter { int N = 1000; work pop 1 push 1 {
        int[2] g = h; int[3] row = T[0]; push(pop() + g[1] + row[0] + N); } }
    }"""
    assert lines(text, 2) == ["1107", "1108"]


def test_arrays_keep_their_sizes_when_what_these_name_changes() -> None:
    """In `static` and in the bodies of streams; those that stand inside see the arrays as they are."""
    text = f"""
    static {{ int s = 2; int[s] e; s = 5; int[] d = e; init {{ d[1] = 100; }} }}
    void->void pipeline Main {{
      int n = 2; int[n] a; a[0] = 5; a[1] = 7;
      n = 3; int[] b = a; int[n][n - 1] m;
      n = 1; int[][] k = m; k[2][1] = 9;
      add Count; add P(n + 1, b);
      add int->int filter {{ work pop 1 push 1 {{ push(pop() + a[1] + k[2][1] + d[1]); }} }};
      add Show;
    }}
    int->int pipeline P(int n, int[n] w) {{
      n = 9; int[] c = w;
      add int->int filter {{ work pop 1 push 1 {{ push(pop() + 1000 * c[0]); }} }};
    }} {COUNT} {SHOW}"""
    assert lines(text, 2) == ["5116", "5117"]


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


def test_literals_beside_bits_are_bits() -> None:
    text = "bit->bit filter F { bit b; work pop 1 push 2 { b = pop(); b ^= 1; push(b); b |= 1; push(b & 0 ^ 1); } }"
    assert output(text, [0, 1]) == [1, 1, 0, 1]


def test_a_condition_counts_as_0_or_1() -> None:
    filter_ = "int->int filter F { work pop 1 push 1 { int i = pop(); push((i > 1) + (i > 2) * 10 - (true == (i == 4)) + -i); } }"
    assert output(filter_, [1, 2, 3, 4]) == [-1, -1, 8, 6]
    assert output(
        "int->int filter F { work { push(true < 2.5 ? (pop() == 1) + 0.5 > 1 : 7); } }", [1, 2]
    ) == [1, 0]


def test_booleans_may_both_be_looked_at() -> None:
    text = """
    boolean->boolean filter F { boolean any; work pop 2 push 4 {
      boolean a = pop(); push(a & peek(0)); push(a | peek(0)); push(a ^ pop()); any |= a; push(any); } }"""
    expected = [[a and b, a or b, a != b] for a in (False, True) for b in (False, True)]
    seen = [False, False, True, True]
    items = [x for a in (False, True) for b in (False, True) for x in (a, b)]
    assert output(text, items) == [x for row, any_ in zip(expected, seen, strict=True) for x in (*row, any_)]


def test_arrays_travel_on_channels() -> None:
    text = """
    int->int pipeline Main { add Pack(2); add Unpack; }
    int->int[2] filter Pack(int n) { work pop n push 1 { int[2] a; for (int i = 0; i < 2; i++) a[i] = pop(); push(a); } }
    int[2]->int filter Unpack { work pop 1 push 1 { int[2] a = pop(); push(a[0] - a[1]); } }"""
    assert output(text, [5, 3, 2, 9]) == [2, -7]


def test_an_array_may_change_when_it_has_been_pushed() -> None:
    text = """
    int->int pipeline Main { add Twice; add Sum; add Kept; add Sum; }
    int->int[2] filter Twice { work pop 1 push 1 { int[2] a; a[0] = pop(); a[1] = 1; push(a); a[0] = 1000; } }
    int[2]->int filter Sum {
      work pop 1 push 1 { int[2] a = pop(); int s = 0; for (int i = 0; i < 2; i++) s += a[i]; push(s); }
    }
    int->int[2] filter Kept {
      int[2] last;
      void next(int[2] a, int x) { a[0] = x; }
      work pop 1 push 1 { push(last); next(last, pop()); }
    }"""
    assert output(text, [5, 3, 2]) == [0, 6, 4]


def test_structs_with_arrays_are_values() -> None:
    text = """
    struct Cell { int[2] v; }
    int->int filter Swap {
      Cell[2] cells;
      int total(Cell a, int n, Cell b) { return 100 * a.v[0] + 10 * n + b.v[0]; }
      work pop 1 push 3 {
        cells[0].v[0] = pop();
        Cell c = cells[0];
        cells[0] = cells[1];
        cells[1] = c;
        push(c.v[0]);
        push(cells[0].v[0]);
        push(total(cells[1], cells[1].v[0]++, cells[1]));
      }
    }"""
    assert output(text, [4, 7]) == [4, 0, 445, 7, 5, 778]


def test_files_are_inputs_and_outputs() -> None:
    text = """
    void->void pipeline Main {
      add FileReader<float>("in/noise.bin");
      add float->float filter { work pop 1 push 1 { push(2 * pop()); } };
      add FileWriter<float>("loud.bin");
    }"""
    assert run(text, {"noise": [1.0, 2.5]}) == {"loud": [2.0, 5.0]}


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


def test_words_of_the_operator_language_are_names() -> None:
    text = """
      struct In { int in; }
      int->In filter A { work pop 1 push 1 { In to; to.in = pop(); push(to); } }
      In->int filter B { In in; work pop 1 push 1 { In out = pop(); push(out.in + in.in); in = out; } }
      int->int pipeline Main { add A; add B; }"""
    assert output(text, [1, 2, 3]) == [1, 3, 5]


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


def test_arrays_and_structs_in_braces() -> None:
    h, expected, pair = [30, 20, 1], list[str](), list[float]()
    for n in range(6):
        h = [h[1], h[2], h[0] + n]
        pair.append(1.5 * h[0] + 7 + 0 + (2 - n % 2) + 3)
        if n % 2:
            y, x = (2 * each for each in pair)
            expected += [str(x + 2 * y), str(3 * x + 4 * y + 1)]
            pair = []
    assert lines((ROOT / "tests/programs/streamit/braces.str").read_text(), 3) == expected


def test_sizes_that_what_is_given_says() -> None:
    first, last = [5, 6, 7], [5, 6, 7]
    given = list[float]()
    for n in range(4):
        first = [first[2], *first[:2]]
        x = first[0]
        last[0] += 1
        first[0] = last[0]
        x = 100 * x + 1100 + 111 + x + 23
        x = x + 11 + 12 + x + 23
        given += [6 * x, 7 * x, x + 7 + n + 14]
    expected = [0.5 * x + 2.25 * y for x, y in itertools.pairwise(given)]
    found = lines((ROOT / "tests/programs/streamit/sizes.str").read_text(), 3)
    assert [float(line) for line in found] == expected[:9]


def test_functions_take_arrays_of_any_size() -> None:
    text = """
      struct Point { float x; int[2] n; }
      int->int filter F(int[][] m, Point[] p, int[0] none) {
        int sum(int[][] x, int rows, int n) { int s = 0; for (int i = 0; i < rows; i++) s += of(x[i], n); return s; }
        int of(int[] x, int n) { return n == 0 ? 0 : x[n - 1] + of(x, n - 1); }
        void swap(int[] x, int[2] y) { int z = x[0]; x[0] = y[0]; y[0] = z; }
        int parts(Point[] q) { q[0].x += 1; return (int) q[0].x * 100 + q[0].n[1]; }
        work pop 1 push 4 {
          int[2] y = {pop(), 2};
          int[] z = m[0];
          swap(z, y);
          push(of(y, 2) + 100 * of(z, 3));
          push(sum(m, 2, 3) + sum({y}, 1, 2) + of(none, 0));
          push(parts(p));
          push(parts({{4, {5, 6}}}));
        }
      }
      int->int pipeline Main {
        int[][] m = {{1, 2, 3}, {4, 5, 6}};
        m[1] = {7, 8, 9};
        add F(m, {{2, {0, 1}}, {3, {4, 5}}}, {});
      }
    """
    assert output(text, [9, 4]) == [1403, 33, 301, 506, 903, 33, 401, 506]


def test_arrays_of_functions_may_be_as_long_as_another_parameter_says() -> None:
    text = """
      helper Sums { int sum(int n, int[n] a) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; } }
      int->int filter F(int n) {
        int trace(int[n][n] m, int n) { int s = 0; for (int i = 0; i < n; i++) s += m[i][i]; return s; }
        work pop 1 push 3 {
          int[3] a = {pop(), n, 5};
          push(Sums.sum(2, a)); push(Sums.sum(1, {7})); push(trace({{1, a[0]}, {a[0], 2}}, 2));
        }
      }
      int->int pipeline Main { add F(100); }
    """
    assert output(text, [9]) == [109, 7, 3]


def test_braces_hold_what_is_wanted() -> None:
    text = """
      struct Point { float x; int[2] n; }
      int->int filter F(Point p) {
        Point[2] a = {{1, {2, 3}}, p};
        complex z;
        int sum(Point q, int[2] m) { m = {m[1], m[0]}; return (int) q.x + 10 * q.n[1] + 100 * m[0]; }
        work pop 1 push 3 {
          int[2] m = {pop(), 5};
          push(sum({a[1].x, {m[1], m[0]}}, {7, 8}));
          push(sum(a[0], m));
          a[0].n = {m[0], m[1]};
          z = {m[0], m[1]};
          push(a[0].n[0] + a[0].n[1] + (int) z.real + (int) z.imag);
        }
      }
      int->int pipeline Main { add F({4, {5, 6}}); }
    """
    assert output(text, [9, 1]) == [894, 531, 28, 814, 591, 12]


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


TOLD = """
struct Pair { int a; float b; }
void->void pipeline Main {
  portal<Source> back;
  portal<Gain> gain;
  add Source to back;
  add splitjoin { split roundrobin(1, 3); add Gain(1) to gain; add Gain(2) to gain; join roundrobin(1, 3); }
  add Watch(back, gain, 2);
  add float->void filter { work pop 1 { println(pop()); } };
}
void->float filter Source {
  float n;
  float step = 1;
  work push 2 { push(n); n += step; push(n); n += step; }
  handler setStep(float s) { step = s; println("step " + s); }
}
float->float filter Gain(int k) {
  float[2] g;
  init { g[0] = k; g[1] = 1; }
  work pop 1 push 1 { push(pop() * g[0] + g[1]); }
  handler set(float[2] x, Pair p) { g = x; x[0] = 99; g[1] += p.a * p.b; }
  void mute() { g[0] = 0; }
}
float->float filter Watch(portal<Source> back, portal<Gain> gain, int late) {
  void tell(float v) { back.setStep(v / 8) [late : late + 3]; }
  prework pop 2 push 2 { push(pop()); push(pop()); }
  work pop 4 push 4 {
    for (int i = 0; i < 4; i++) {
      float v = pop();
      if (v > 20) tell(v);
      if (v > 30) { float[2] a = {v, 1}; Pair p; p.a = i; p.b = 0.5; gain.set(a, p) [4:]; }
      if (v > 60) gain.mute();
      push(v);
    }
  }
}
"""


def test_messages_go_up_and_down() -> None:
    found = lines(TOLD, 12)
    assert found[:8] == ["1.0", "3.0", "5.0", "7.0", "5.0", "11.0", "13.0", "15.0"]
    assert sum(line.startswith("step") for line in found) > 5


CHAIN = """
void->int filter Source { int n; work push 1 { push(n++); } }
int->int filter Add { int by; work pop 1 push 1 { push(pop() + by); } handler set(int x) { by += x; } }
int->int filter Send(int when, portal<Add> p) { work pop 1 push 1 { if (peek(0) == when) p.set(100) LATENCY; push(pop()); } }
int->int filter Pairs { work pop 2 push 2 { push(pop()); push(pop()); } }
int->void filter Show { work pop 1 { println(pop()); } }
void->void pipeline Main { portal<Add> p; add Source; PARTS add Show; }
"""


@pytest.mark.parametrize(
    ("parts", "latency", "changed"),
    [
        ("add Send(3, p); add Add to p;", "", 3),  # item 3 is of firing 4, and the first that depends on it
        ("add Send(3, p); add Add to p;", "@ 2", 5),
        ("add Send(3, p); add Add to p;", "[-2:0]", 1),
        ("add Send(3, p); add Pairs; add Add to p;", "@ -3", 0),
        ("add Send(3, p); add Pairs; add Add to p;", "", 2),  # the third item waits for the fourth
        ("add Add to p; add Send(3, p);", "", 4),
        ("add Add to p; add Send(3, p);", "[*]", 4),
        ("add Add to p; add Send(3, p);", "[-2:3]", 4),
        ("add Add to p; add Pairs; add Send(2, p);", "", 4),
        ("add Add to p; add Pairs; add Send(2, p);", "@ 2", 6),
    ],
)
def test_messages_are_handled_by_the_item(parts: str, latency: str, changed: int) -> None:
    found = lines(CHAIN.replace("PARTS", parts).replace("LATENCY", latency), 10)
    assert len(found) == (20 if "Pairs" in parts else 10)
    assert found == [str(n + 100 * (n >= changed)) for n in range(len(found))]


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


def test_messages_go_up_where_rates_differ_elsewhere() -> None:
    text = """
    int->int filter Skip { work pop * push 1 { int n = pop(); while (n > 5) n = pop(); push(n); } }
    int->int filter Add { int by; work pop 1 push 1 { push(pop() + by); } handler set(int x) { by += x; } }
    int->int filter Watch(portal<Add> p) { work pop 2 push 2 { if (peek(0) == 2) p.set(10) [1:1]; push(pop()); push(pop()); } }
    int->int filter Some { work pop 1 push * { int n = pop(); for (int i = 0; i < n % 4; i++) push(n); } }
    int->int pipeline Main { portal<Add> p; add Skip; add Add to p; add Watch(p); add Some; }
    """
    assert output(text, [7, 1, 2, 8, 9, 2, 3, 3, 1, 9, 1, 1, 1]) == [1, 2, 2, 2, 2, *[3] * 6, 1, *[11] * 6]


def test_firings_that_take_what_they_ask_for_give_what_is_stated() -> None:
    text = (
        "int->int filter F { work pop * push 2 { int n = pop(); for (int i = 0; i < n; i++) push(pop()); } }"
    )
    assert output(text, [2, 5, 6, 2, 7, 8]) == [5, 6, 7, 8]
    for backend in BACKENDS:
        with pytest.raises(Rejected, match="a firing gave more or fewer items than its `push` rate"):
            river.compile(text, lang="streamit").run({"input": [2, 5, 6, 1, 7, 8]}, backend=backend)


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


@pytest.mark.parametrize(
    ("parts", "latency"),
    [
        ("add Add to p; add Pairs; add Send(2, p);", "@ 3"),
        (
            "add Add to p; add int->int filter { work pop 1 push 2 { push(pop()); push(0); } }; add Send(6, p);",
            "",
        ),
        (
            "add Add to p; add int->int filter { work pop 2 push 3 { push(pop()); push(pop()); push(0); } }; add Send(4, p);",
            "@ 1",
        ),
    ],
)
def test_a_loop_of_messages_is_one_region(parts: str, latency: str, tmp_path: Path) -> None:
    text = CHAIN.replace("PARTS", parts).replace("LATENCY", latency)
    lines(text, 30)  # compares
    (tmp_path / "chain.str").write_text(text, encoding="utf-8")
    out = io.StringIO()
    assert main(["explain", str(tmp_path / "chain.str")], io.StringIO(), out, out) == 0
    assert "is a loop, which runs as one region: Add, " in out.getvalue()


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("n % 4 > 2 ? 2 : n % 3", ["0", "11", "22", "23", "14", "25"]),
        ("(n > 1 ? 1 : n) + 1", ["10", "21", "22", "23", "24", "25"]),
        ("n > 1 ? 1 : n > 0 ? 2 : n", ["0", "21", "12", "13", "14", "15"]),
    ],
)
def test_a_choice_as_an_index(index: str, expected: list[str]) -> None:
    fields = "int n; int[4] a; init { for (int i = 0; i < 4; i++) a[i] = i * 10; }"
    made = f"void->int filter {{ {fields} work push 1 {{ push(a[{index}] + n++); }} }}"
    text = f"void->void pipeline Main {{ add {made}; add int->void filter {{ work pop 1 {{ println(pop()); }} }}; }}"
    assert lines(text, 6) == expected


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


def test_a_function_that_prints_need_not_be_called() -> None:
    debug = 'void->int filter { int n; void debug() { println("n is " + n); } work push 1 { push(n++); } }'
    text = f"void->void pipeline Main {{ add {debug}; add int->void filter {{ work pop 1 {{ println(pop()); }} }}; }}"
    assert lines(text, 3) == ["0", "1", "2"]


@pytest.mark.slow
def test_the_radio_that_hops() -> None:
    text = (ROOT / "examples" / "frequency_hopping" / "radio.str").read_text(encoding="utf-8")
    good, bad = "100 % of the carrier", "0 % of the carrier"
    compiled = river.compile(text, lang="streamit")
    found = compiled.run({}, iterations=24)["stdout"]["value"].to_pylist()
    assert found == [f"{good}\n"] * 24
    deaf = river.compile(text.replace("tuner.tune(heard) [1:1];", ""), lang="streamit")
    found = deaf.run({}, iterations=8)["stdout"]["value"].to_pylist()
    assert found == [f"{good}\n"] * 4 + [f"{bad}\n"] * 4


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


# ---------------------------------------------------------------------------------------------- what programs are made of


def test_constants_are_values() -> None:
    text = """
    static { int N = 2; int[N] W; init { for (int i = 0; i < N; i++) W[i] = 10 * i; } }
    int->int filter F(int k) {
      int M = N + k, last;
      int[M] seen;
      work pop M push 1 {
        int half = M / 2;
        int[half + 1] firsts;
        for (int i = 0; i < M; i++) { seen[i] = pop(); if (i <= half) firsts[i] = seen[i]; }
        push(seen[M - 1] + firsts[half] + W[1] + last);
        last++;
      }
    }
    int->int pipeline Main { add F(2); }"""
    assert output(text, [1, 2, 3, 4, 5, 6, 7, 8]) == [4 + 3 + 10, 8 + 7 + 10 + 1]


def test_parameters_are_variables() -> None:
    text = """
    int->int pipeline Main { int n = 3; add Twice(n); n = 5; add Add(n); }
    int->int pipeline Twice(int n) { add Add(n); n *= 10; add Add(n); }
    int->int filter Add(int n) { work pop 1 push 1 { push(pop() + n); n++; } }"""
    assert output(text, [0, 0]) == [3 + 30 + 5, 4 + 31 + 6]


def test_iter_counts_what_has_finished() -> None:
    text = """
    int->int filter F {
      prework pop 1 push 1 { push(pop() + 100 * iter()); }
      work pop 1 push 1 { int i = iter(); if (i == 1) { push(pop()); return; } push(pop() + 100 * i); }
    }"""
    assert output(text, [1, 2, 3, 4, 5]) == [1, 2, 3, 204, 305]


def test_return_ends_init() -> None:
    text = """
    static { int S = 1; init { S = 2; if (S == 2) return; S = 3; } }
    int->int filter F(int n) {
      int kept, state, other = 7;
      int[4] table;
      init {
        println("init " + n);
        kept = 1;
        state = 10 * n;
        if (n < 0) other = 8;
        if (n < 0) return;
        for (int i = 0; i < 4; i++) {
          if (i == n) return;
          table[i] = S + i;
        }
        kept = 2;
        println("all");
        return;
      }
      handler reset(int x) { if (x == 0) return; state = x; }
      work pop 1 push 1 {
        int x = pop();
        if (x < 0) { push(-1); return; }
        reset(x % 2);
        push(x * 10000 + kept * 1000 + table[1] * 100 + table[2] * 10 + other + state++);
      }
    }
    int->int splitjoin Main {
      split duplicate;
      join roundrobin;
      add F(-1);
      add F(2);
      add F(9);
      if (S == 2) return;
      add F(10);
    }"""
    given = run(text, {"input": [2, -5, 4, 3]})
    assert given["stdout"] == "init -1\ninit 2\ninit 9\nall\n"
    first, last = [20998, 21327, 22437, -1, -1, -1], [40999, 41328, 42438, 31009, 31308, 32348]
    assert given["output"] == first + last


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


def test_helper_blocks_stand_outside_of_filters() -> None:
    text = """
    static { int N = 7; }
    helper Maths { int square(int x) { return x * x; } int more(int x) { int N2 = square(x); return N2 + N; } }
    int->int filter F(int N) { int x = 1; int square(int x) { return -x; } handler reset(int to) { x = to; }
      work pop 1 push 2 { push(Maths.more(pop()) + N + x); push(square(2)); } }
    int->int pipeline Main { add F(1000); }"""
    assert output(text, [3]) == [9 + 7 + 1000 + 1, -2]


def test_what_a_firing_does_not_take_is_dropped() -> None:
    text = "int->int filter F { work pop 3 push 1 { int x = pop(); if (x > 1) x += pop(); push(x); } }"
    assert output(text, [1, 2, 3, 4, 5, 6]) == [1, 9]


def test_conversions_are_those_of_c() -> None:
    text = """
    int->int filter F { bit low; work pop 1 push 4 {
      int x = pop(); low = x; push(low); x += 2.75; push(x); x *= 0.5; push(x);
      float big = 10000000000; double exact = 0.1; double sum = exact + 0.2;
      push((int) (big / 1e9) + (sum > 0.3 ? 100 : 0)); } }"""
    assert output(text, [5, -4]) == [1, 7, 3, 110, 0, -1, 0, 110]


def test_shifts_bind_like_products_and_bits_like_one_another() -> None:
    text = "int->int filter F { work pop 1 push 2 { int x = pop(); push(x + x << 2); push(x | 6 & 3 ^ 1); } }"
    assert output(text, [5]) == [5 + (5 << 2), ((5 | 6) & 3) ^ 1]


def test_inner_streams_may_have_names() -> None:
    text = """
    int->int pipeline Main {
      for (int i = 1; i < 3; i++) add int->int filter Scale { work pop 1 push 1 { push(pop() * (i + 1)); } }
      add pipeline Scale { add Identity<int>; }
    }"""
    assert output(text, [1, 2]) == [6, 12]


def test_complex_numbers() -> None:
    text = """
    static { complex W = 2i; complex[2] T = {1.0 + 0.5i, 3}; }
    void->void pipeline Main { add Source; add Identity<complex>; add Change(2i * W + 1); add Show; }
    void->complex filter Source { complex x; work push 1 { x.real += 1; x *= 1 + 1i; push(x); } }
    complex->complex filter Change(complex k) {
      complex[2] h;
      init { h[0] = k; h[1].imag = 3.5; }
      complex turned(complex z) { return -z * 1i; }
      work pop 1 push 1 {
        complex c = pop();
        complex d = c * h[0] + h[1] / (c + 1.0) - T[1];
        if (d == c || d != -d * -1) d = 0;
        push(sqrt(exp(turned(d) * 0.01)) + abs(c) + arg(c) + W);
      }
    }
    complex->void filter Show { work pop 1 { complex c = pop(); print(c.real + " "); println(c.imag); } }"""
    x, expected = 0j, []
    for _ in range(3):
        x = (x + 1) * (1 + 1j)
        d = x * -3 + 3.5j / (x + 1) - 3
        expected.append(cmath.sqrt(cmath.exp(-d * 1j * 0.01)) + abs(x) + cmath.phase(x) + 2j)
    found = [complex(*map(float, line.split())) for line in lines(text, 3)]
    assert found == [pytest.approx(value, rel=1e-5) for value in expected]


def test_functions_of_complex_numbers() -> None:
    text = """
    static { complex K = cosh(log(0.5 + 2i)) - sin(1i) * cos(1.5) + sinh(-0.5i) + cos(2.0 - 1i); }
    void->void pipeline Main { add Source; add Show; }
    void->complex filter Source {
      complex x = 0.75 - 0.5i;
      work push 1 { push(sin(x) + cos(x) * sinh(x) - cosh(log(x)) + K); x = x * 1.25i; }
    }
    complex->void filter Show { work pop 1 { complex c = pop(); print(c.real + " "); println(c.imag); } }"""
    k = (
        cmath.cosh(cmath.log(0.5 + 2j))
        - cmath.sin(1j) * cmath.cos(1.5)
        + cmath.sinh(-0.5j)
        + cmath.cos(2 - 1j)
    )
    x, expected = 0.75 - 0.5j, []
    for _ in range(4):
        expected.append(cmath.sin(x) + cmath.cos(x) * cmath.sinh(x) - cmath.cosh(cmath.log(x)) + k)
        x *= 1.25j
    found = [complex(*map(float, line.split())) for line in lines(text, 4)]
    assert found == [pytest.approx(value, rel=1e-5) for value in expected]


def test_complex_numbers_are_printed() -> None:
    text = """
    void->void filter Main { complex z = 0.5 - 1i; work { z = z * 1i; println("z = " + z); println(2.0 - 1i); } }"""
    assert lines(text, 2) == ["z = 1.0+0.5i", "2.0-1.0i", "z = -0.5+1.0i", "2.0-1.0i"]


def test_parts_of_complex_literals() -> None:
    text = "float->float filter F { work pop 1 push 1 { push(pop() * 0.5i.imag + (3.25 + 2i).real); } }"
    assert output(text, [1.0, 2.0]) == [3.75, 4.25]


def test_structs() -> None:
    text = """
    struct Line { Point from; Point[2] to; float in; }
    struct Point { int x; int[3] counts; }
    static { Point origin; init { origin.x = 7; origin.counts[1] = 9; } }
    void->void pipeline Main { add Count; add Points; add Pair(origin); add Show; } COUNT
    int->Point filter Points {
      Point last = origin;
      int next(Point p) { p.x++; return p.x; }
      work pop 1 push 1 { last.counts[2] = next(last) + pop(); last.x += 10; push(last); }
    }
    Point->Line filter Pair(Point base) {
      Line[2] both;
      work pop 2 push 1 {
        Line line;
        line.from = base;
        for (int i = 0; i < 2; i++) line.to[i] = pop();
        line.in = line.to[1].x + 0.5;
        both[1] = line;
        both[1].to[0].counts[0] = 1;
        push(both[1]);
      }
    }
    Line->void filter Show {
      work pop 1 {
        Line line = pop();
        print(line.from.counts[1] + " " + line.in);
        for (int i = 0; i < 2; i++) { Point p = line.to[i]; print(" " + p.x + " " + p.counts[0] + p.counts[2]); }
        println();
      }
    }""".replace("COUNT", COUNT)
    assert lines(text, 2) == ["9 27.5 17 18 27 019", "9 47.5 37 130 47 041"]


def test_complex_numbers_are_enqueued_and_written(tmp_path: Path) -> None:
    text = """
    void->void pipeline Main { add FileReader<float>("a.bin"); add Loop; add FileWriter<complex>("b.bin"); }
    float->complex pipeline Loop {
      add float->complex filter { work pop 1 push 1 { push(pop()); } };
      add complex->complex feedbackloop {
        join roundrobin;
        body complex->complex filter { work pop 2 push 1 { push(pop() + 0.5 * pop() * 1i); } };
        loop Identity<complex>;
        split duplicate;
        enqueue 2 - 4i;
      }
    }"""
    (tmp_path / "a.bin").write_bytes(struct.pack("<2f", 1, 2))
    for backend in BACKENDS:
        places = {"a": str(tmp_path / "a.bin")}, {"b": str(tmp_path / "b.bin")}
        river.compile(text, lang="streamit").run(*places, backend=backend)
        assert (tmp_path / "b.bin").read_bytes() == struct.pack("<4f", 1 + 2, 1, 2 - 0.5, 1.5)


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


def test_constants_say_how_large_the_arrays_of_structs_are() -> None:
    text = """
    struct Pair { Row[2] rows; }
    static { int N = 3; }
    struct Row { int[N] x; int[N - 1] y; }
    int->int pipeline Main { int K = 2; add Pack(K); add Identity<Pair>; add Unpack; }
    int->Pair filter Pack(int k) {
      work pop N push 1 { Pair p; for (int i = 0; i < N; i++) p.rows[1].x[i] = k * pop(); push(p); }
    }
    Pair->int filter Unpack {
      work pop 1 push 1 { Pair p = pop(); p.rows[0].y[N - 2] = 1; push(p.rows[1].x[2] + p.rows[0].y[1]); }
    }"""
    assert output(text, [1, 2, 3, 4, 5, 6]) == [7, 13]


def test_parts_of_what_has_an_effect() -> None:
    text = """int->float filter F { work pop 2 push 2 {
      complex c = (complex) pop(); push(c.real); push(((complex) pop() + 1i).imag); } }"""
    assert output(text, [1, 2, 3, 4]) == [1.0, 1.0, 3.0, 1.0]


def test_switch() -> None:
    text = """
    void->void filter Main {
      int n;
      work {
        switch (n) {
          case 0: print("none"); break;
          case 1: case 2: print("few ");
          case 3: { if (n == 2) break; print("three"); } print("!"); break;
          default: print("many");
        }
        for (int i = 0; i < 4; i++) switch (i % 3) { case 1: continue; default: print(i); }
        switch (n) { case 9: n = 0; }
        println("");
        n++;
      }
    }"""
    assert lines(text, 5) == ["none023", "few three!023", "few 023", "three!023", "many023"]


def test_a_switch_says_how_many_items_it_takes() -> None:
    text = """int->int filter Main {
      work {
        switch (peek(0) % 3) {
          case 0: { push(pop()); push(pop()); break; }
          case 1: push(10 * pop()); push(pop()); break;
          default: { int a = pop(), b = pop(); push(a + b); if (a > 4) b = 7; push(b); }
        }
      }
    }"""
    assert output(text, [0, 1, 4, 3, 5, 9, 2, 8]) == [0, 1, 40, 3, 14, 7, 10, 8]


def test_a_switch_may_choose_streams() -> None:
    text = """
    void->void pipeline Main {
      add void->int filter { work push 1 { push(7); } }
      for (int i = 0; i < 3; i++) add Part(i);
      add Show;
    }
    int->int pipeline Part(int k) { switch (k) { case 0: add By(2); break; default: add By(3); case 2: add By(5); } }
    int->int filter By(int k) { work pop 1 push 1 { push(pop() * k); } }
    int->void filter Show { work pop 1 { println(pop()); } }"""
    assert lines(text, 1) == [str(7 * 2 * 3 * 5 * 5)]


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


def test_counters_outside_cost_nothing() -> None:
    inside = "int->int filter F { work pop 4 push 4 { for (int i = 0; i < 4; i++) push(pop() + i); } }"
    outside = "int->int filter F { work pop 4 push 4 { int i; for (i = 0; i < 4; i++) push(pop() + i); } }"
    assert river.compile(inside, lang="streamit").text == river.compile(outside, lang="streamit").text


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


def test_functions_change_the_arrays_that_they_are_given() -> None:
    text = """
    helper Lib { void clear(int[2] b) { b[0] = 0; b[1] = 0; } }
    int->int filter Main {
      int[2] kept;
      int[2][2] table;
      int[3] squares;
      void fill(int[3] a) { for (int i = 0; i < 3; i++) a[i] = i * i; }
      void put(int[2] a, int i, int x) { set(a, i, x); }
      void set(int[2] a, int i, int x) { a[i] += x; x = 0; }
      int first(int[2] a) { a[0] = a[0] + 1; return a[0]; }
      int[2] pair(int x) { int[2] p; p[1] = x; return p; }
      init { fill(squares); }
      work pop 1 push 7 {
        int[2] own;
        int x = pop();
        put(kept, 0, x);
        put(own, 1, x);
        put(table[1], 1, x);
        push(kept[0]);
        push(own[1] + squares[2]);
        push(table[1][1] + table[0][1]);
        push(first(own) + own[0]);
        push(first(pair(x)));
        push(x);
        Lib.clear(own);
        push(own[1]);
      }
    }"""
    assert output(text, [1, 2]) == [1, 5, 1, 2, 1, 1, 0, 3, 6, 3, 2, 1, 2, 0]


def test_whole_numbers_are_conditions_and_conditions_whole_numbers() -> None:
    text = """int->int filter Main {
      work pop 1 push 4 {
        int x = pop(), c = 0;
        if (x & 1) c = 1;
        while (x) { x--; c += 10; }
        push(c); push(!c); push(c > 10); push(c && 1);
      }
    }"""
    assert output(text, [3, 0]) == [31, 0, 1, 1, 0, 1, 0, 0]


def test_sizes_may_name_parameters_behind_them() -> None:
    text = """
    int->int pipeline Main { int[3] v = {1, 2, 3}; add Add(v, 3); }
    int->int filter Add(int[N] v, int N) { work pop N push N { for (int i = 0; i < N; i++) push(pop() + v[i]); } }"""
    assert output(text, [10, 20, 30]) == [11, 22, 33]


def test_functions_of_c() -> None:
    text = "float->float filter Main { work pop 1 push 2 { push(fabs(peek(0))); push(fmod(pop(), 2)); } }"
    compiled = river.compile(text, lang="streamit")
    for backend in BACKENDS:
        found = compiled.run({"input": [-7.5, 7.5]}, backend=backend)["output"]["value"].to_pylist()
        assert found == [7.5, -1.5, 7.5, 1.5]


def test_arrays_of_structs_travel_on_channels() -> None:
    text = """
    struct Point { int x; int[2] y; }
    int->int pipeline Main { add Pair; add Turn; add Sum; }
    int->Point[2] filter Pair { work pop 2 push 1 {
      Point[2] p;
      for (int i = 0; i < 2; i++) { p[i].x = i; p[i].y[i] = pop(); } push(p); } }
    Point[2]->Point[2] filter Turn { work pop 1 push 1 { Point[2] p = pop(), q; q[0] = p[1]; q[1] = p[0]; push(q); } }
    Point[2]->int filter Sum { work pop 1 push 2 { push(100 * peek(0)[0].x + peek(0)[0].y[1]); push(pop()[1].y[0]); } }"""
    assert output(text, [3, 4]) == [104, 3]


def test_characters_are_texts() -> None:
    text = r"""void->void filter Main { work { print('a'); print('\t' + "b" + '\''); println('"'); } }"""
    assert lines(text, 1) == ["a\tb'\""]


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


def test_a_branch_may_give_the_joiner_nothing() -> None:
    text = """
    int->int splitjoin Main {
      split duplicate;
      add int->int filter { work pop 1 push 1 { push(pop() + 1); } };
      add int->void filter { work pop 1 { pop(); } };
      join roundrobin(1, 0);
    }"""
    assert output(text, [1, 2, 3]) == [2, 3, 4]


def test_phases_are_functions() -> None:
    text = """
    int->int filter Main {
      phase sums peek 2 pop 1 push 1 { push(peek(0) + peek(1)); pop(); }
      phase twice pop 1 push 2 { int x = pop(); push(x); push(-x); }
      work { sums(); twice(); }
    }"""
    assert output(text, [1, 2, 3, 4]) == [3, 2, -2, 7, 4, -4]


def test_vectors() -> None:
    text = """
    void->void pipeline Main {
      add Source;
      add Sums;
      add Identity<float3>;
      add float3->void filter { work pop 1 {
        float3 v = pop();
        println(v.x + " " + v.y + " " + v.z + " " + StreamItVectorLib.dot3(v, v) + " " + (v == -v));
        println(StreamItVectorLib.cross3(v, float3(1, 0, 0)).z + StreamItVectorLib.sqrtDist3(v, v + 1));
      } };
    }
    void->float3 filter Source { float n; work push 1 { push(float3(n, 1, n * 2) * 2 - float3(0, 4, 0) / 2.0); n += 1; } }
    float3->float3 filter Sums {
      float3[2] sums;
      float2 unit = float2(0, 1);
      init { sums[1] = float3(1, 2, 3); }
      work pop 1 push 1 { sums[0] += pop(); sums[1].x += unit.y; push(StreamItVectorLib.max3(sums[0], 2.0 * sums[1])); }
    }"""
    expected: list[str] = []
    sums = [0.0, 0.0, 0.0]
    for n in range(3):
        sums = [a + b for a, b in zip(sums, (2.0 * n, 0.0, 4.0 * n), strict=True)]
        v = [max(a, 2 * b) for a, b in zip(sums, (2.0 + n, 2.0, 3.0), strict=True)]
        expected.append(f"{v[0]} {v[1]} {v[2]} {sum(a * a for a in v)} false")
        expected.append(str(f32(f32(math.sqrt(3)) - v[1])))
    found = lines(text, 3)
    assert found[::2] == expected[::2]
    assert [float(line) for line in found[1::2]] == pytest.approx([float(line) for line in expected[1::2]])


DRAWS = """
void->void pipeline Main {
  add splitjoin { split roundrobin(0); add Noise(2.0); add Noise(2.0); join roundrobin; }
  add float->void filter { work pop 1 { println(pop()); } };
}
void->float filter Noise(float k) {
  float first = random(), second;
  float draw() { return k * random(); }
  init { second = draw(); }
  work push 1 { push(first + second + random()); }
}
"""


def test_random_numbers_are_those_of_the_original_library() -> None:
    state, drawn = 1182736490827, list[float]()
    for _ in range(5):
        parts: list[int] = []
        for bits in (26, 27):
            state = (state * 0x5DEECE66D + 0xB) % 2**48
            parts.append(state >> (48 - bits))
        drawn.append(f32(((parts[0] << 27) + parts[1]) / 2**53))
    found = lines(DRAWS, 3)
    assert [f32(float(line)) for line in found[::2]] == [
        f32(f32(drawn[0] + f32(2 * drawn[1])) + each) for each in drawn[2:]
    ]
    assert not set(found[::2]) & set(found[1::2])  # each filter has its own


def test_the_command_line_seeds_random_numbers(tmp_path: Path) -> None:
    path = tmp_path / "draws.str"
    path.write_text(DRAWS, encoding="utf-8")
    found: list[str] = []
    for seed in ("1", "1", "2"):
        out = io.StringIO()
        assert (
            main(["run", str(path), "--iterations", "2", "--seed", seed, "-q"], io.StringIO(), out, out) == 0
        )
        found.append(out.getvalue())
    assert found[0] == found[1] != found[2]


def test_first_values_may_change_other_fields() -> None:
    text = """
    void->void filter Main {
      int n = 3;
      int a = n++, b = n *= 2;
      work { println(a + " " + b + " " + n); n++; }
    }"""
    assert lines(text, 2) == ["3 8 8", "3 8 9"]


def test_what_init_prints_comes_first() -> None:
    text = """
    static { int N = 3; init { println("static " + N); } }
    void->void pipeline Main {
      portal<Gain> p;
      println("main");
      add Source;
      add Sender(p);
      for (int i = 1; i < N; i++) { println("gain " + i); add Gain(i) to p; }
      add Printer;
    }
    void->int filter Source { int x; init { x = 5; println("source"); } work push 1 { push(x++); } }
    int->int filter Sender(portal<Gain> p) { work pop 1 push 1 { push(pop()); if (iter() == 1) p.set(7); } }
    int->int filter Gain(int n) {
      int k = first(n);
      int[2] known;
      int later = 9;
      int m;
      int first(int x) { println("first " + x + m + later); known[1] = x; m = 2; return x; }
      void bye() { print("bye "); println(k); }
      handler set(int x) { k = x; println("set " + n); }
      init { println("init " + m); known[0] = 10; m += n; bye(); }
      work pop 1 push 1 { push(k * pop() + known[0] + known[1] + m); later = 0; }
    }
    int->void filter Printer { work pop 1 { println(pop()); } }"""
    begin = ["static 3", "main", "gain 1", "gain 2", "source"]
    gains = [["first 100", "init 2", "bye 1"], ["first 200", "init 2", "bye 2"]]
    expected = [*begin, *itertools.chain(*gains), "54", "set 1", "set 2", "408", "457"]
    assert lines(text, 3) == expected
    assert lines(text, 0) == expected[:-5]


def test_what_init_prints_needs_no_item() -> None:
    text = 'int->int filter A { init { println("a"); } work pop 1 push 1 { push(pop() + 1); } }'
    assert run(text, {"input": [1]}) == {"output": [2], "stdout": "a\n"}
    assert run(text, {"input": []}) == {"output": [], "stdout": "a\n"}
    many = """
    void->void pipeline M {
      for (int i = 0; i < 3001; i++) println(i);
      add void->void filter { work { println("w"); } };
    }"""
    assert lines(many, 1) == [*map(str, range(3001)), "w"]


def test_functions_of_helper_blocks_make_the_graph() -> None:
    text = """
    helper H {
      int lg(int x) { int r = 0; while (x > 1) { x = x / 2; r++; } return r; }
      int fib(int n) { if (n < 2) return n; return fib(n - 1) + fib(n - 2); }
      void fill(int[N] a) { int i = 0; while (i < N) a[i++] = 10 * lg(i + 1) + C; }
    }
    static { int C = 3; int N = H.lg(256); int[N] W; init { H.fill(W); } }
    void->void pipeline Main {
      add void->int filter { work push 1 { push(iter()); } };
      int m = 1;
      for (int i = 0; i < H.lg(8); i++) add Plus(H.fib(10) + m++ + m);
      add int->void filter { work pop 1 { println(pop() + W[7]); } };
    }
    int->int filter Plus(int n) {
      int k = H.lg(n) + C;
      work pop 1 push 1 { push(pop() + n + k); }
    }"""
    added = sum(55 + 2 * m + 1 + 5 + 3 for m in (1, 2)) + 55 + 7 + 5 + 3
    assert lines(text, 2) == [str(added + 33), str(added + 34)]


def test_arrays_are_read_from_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.txt").write_text("1\n 20 \n-300\n")
    (tmp_path / "taps.txt").write_text("0.5\n-2e1\n")
    text = """
    static { int[3] S = init_array_1D_int("steps.txt", 3); }
    int->float pipeline Main { add Steps(2); }
    int->float filter Steps(int n) {
      int[n + 1] step = init_array_1D_int("steps.txt", n + 1);
      float[n] tap;
      init { tap = init_array_1D_float("taps.txt", n); }
      work pop 1 push 1 { push(pop() + step[2] + tap[0] + tap[1] + S[1]); step[2]++; }
    }"""
    assert output(text, [0, 0]) == [-299.5, -298.5]
    (tmp_path / "steps.txt").write_text("1\n2\n3\n")
    assert output(text, [0]) == [-14.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "`a.txt` cannot be read: no such file or directory"),
        ("1\n2\n", "`a.txt` has 2 lines, but 3 numbers are wanted"),
        ("1\n2\n3.5\n", "line 3 of `a.txt` is no `int`: `3.5`"),
        ("1\n2\n2147483648\n", "line 3 of `a.txt` is no `int`: `2147483648`"),
    ],
)
def test_texts_that_are_no_arrays(
    content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "a.txt").write_text(content)
    text = 'void->void filter A { int[3] a = init_array_1D_int("a.txt", 3); work { println(a[iter()]); } }'
    with pytest.raises(Rejected) as error:
        river.compile(text, lang="streamit")
    (found,) = error.value.diagnostics
    assert (found.code, found.message) == ("streamit-file", message)


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


def test_rates_of_functions_name_their_parameters() -> None:
    text = """
    int->int filter T {
      int sum(int n) pop n { int s = 0; for (int i = 0; i < n; i++) s += pop(); return s; }
      int last(int n) { for (int i = 1; i < n; i++) pop(); return pop(); }
      work push 2 { push(sum(2)); push(last(3)); }
    }"""
    assert output(text, list(range(10))) == [1, 4, 11, 9]


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


@pytest.mark.parametrize("changes", ["t[0]++;", ""])
def test_a_trap_of_init_has_a_place_and_a_path(changes: str) -> None:
    text = f"""
    int->int filter F(int k) {{
      int[4] t; init {{ for (int i = 0; i < 4; i++) t[i] = 10 / (k - i); }}
      work pop 1 push 1 {{ {changes} push(t[pop() & 3]); }}
    }}
    int->int pipeline Main {{ add F(7); add F(2); }}"""
    for backend in BACKENDS:
        with pytest.raises(Rejected) as raised:
            river.compile(text, lang="streamit").run({"input": [1]}, backend=backend)
        (found,) = raised.value.diagnostics
        assert found.span is not None
        assert found.span.text == "10 / (k - i)"
        (note,) = found.notes
        assert "`Main/F[1]`" in note.message


@pytest.mark.parametrize("changes", ["k++;", ""])
def test_an_init_without_end_meets_the_deadline(tmp_path: Path, changes: str) -> None:
    path = tmp_path / "t.str"
    path.write_text(
        f"void->void filter F {{ int k; init {{ while (k >= 0) k = (k + 1) & 255; }} work {{ {changes} println(k); }} }}"
    )
    err = io.StringIO()
    argv = ["run", str(path), "--iterations", "1", "--deadline", "50ms"]
    assert main(argv, io.StringIO(), io.StringIO(), err) == 1
    assert "took too long" in err.getvalue()
    assert "while (k >= 0)" in err.getvalue()
    assert "in `F`" in err.getvalue()


def test_a_program_is_loaded_though_an_init_has_no_end_and_its_run_meets_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("river.lang.evaluate.patience.TURNS", 10_000)
    path, items = tmp_path / "t.str", tmp_path / "items.csv"
    path.write_text("""
    int->int filter F {
      int k; int[2] h; init { while (k >= 0) k = (k + 1) & 255; }
      work pop 1 push 1 { push(h[0]); h[0] = h[1]; h[1] = pop() + k; }
    }""")
    items.write_text("value\n1\n")
    program = river.load(path)  # asks whether what is kept are items, and what `k` is
    with pytest.raises(Rejected) as raised:
        program.run({"input": [1]}, deadline=0.05)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("trap-deadline", "the firing took too long")
    assert found.span is not None
    assert found.span.text.startswith("while (k >= 0)")
    err = io.StringIO()
    argv = ["run", str(path), "--in", f"input={items}", "--deadline", "50ms"]
    assert main(argv, io.StringIO(), io.StringIO(), err) == 1
    assert "error[trap-deadline]: the firing took too long" in err.getvalue()


def test_first_values_of_state_by_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    float->float filter F {
      float[40] t; float[3] u = {0.1, 2, 3};
      init { for (int i = 0; i < 40; i++) { u[i % 3] += sin(i) / 3; t[i] = u[0] * i - u[1]; } }
      work pop 1 push 1 { t[0] += u[2]; u[0] += pop(); push(t[0] + t[39] * u[0]); }
    }"""
    given = {"input": [0.5, 1.5, 2.5]}
    expected = output(text, given["input"])
    monkeypatch.setattr("river.lang.evaluate.LONG", -1.0)
    monkeypatch.setattr("river.lang.evaluate.code.POLL_EVERY", 1)
    made: list[str] = []
    backend = plugins.backend("multicore")
    usual = backend.constants  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    def noted(operator: Any) -> Any:
        made.append(operator.name)
        return usual(operator)  # pyright: ignore[reportUnknownVariableType]

    monkeypatch.setattr(type(backend), "constants", lambda _, operator: noted(operator))
    results = river.compile(text.replace("filter F", "filter G"), lang="streamit").run(
        given, {"output": None}
    )
    assert [row["value"] for row in results["output"].to_pylist()] == expected
    assert made == ["first"]


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


def test_branches_that_give_nothing_need_no_joiner() -> None:
    text = """
    void->int filter S { int n; work push 1 { push(n++); } }
    int->void filter P(int k) { work pop 1 { println(pop() + k); } }
    void->void pipeline Main { add S; add splitjoin { split duplicate; add P(0); add P(10); } }"""
    assert lines(text, 2) == ["0", "10", "1", "11"]


def test_a_number_too_large_for_an_int_is_a_float() -> None:
    text = """
    void->float filter S(float rate) {
      int least = -2147483648, bits = 0xFFFFFFFF;
      double d = 4000000000;
      work push 4 { push(rate / 2147483648); push(8589934592 / 4294967296); push(d / 2); push(least + bits + 0.0); }
    }
    float->void filter P { work pop 1 { println(pop()); } }
    void->void pipeline Main { float rate = 3221225472; add S(rate); add P; }"""
    assert lines(text.replace("d / 2", "(float) (d / 2)"), 1) == [
        "1.5",
        "2.0",
        "2000000000.0",
        "2147483600.0",
    ]


def test_characters_are_numbers_where_these_are_wanted() -> None:
    text = """
    void->int filter S { int x = 'H'; int n; work push 1 { push(x + n++ - 'A'); } }
    int->void filter P {
      float f = '0';
      work pop 1 { int c = pop(); println(c + " " + (c == 'B' - 'A' + 6) + " " + f + 'x' + '\\''); }
    }
    void->void pipeline Main { add S; add P; }"""
    assert lines(text, 2) == ["7 true 48.0x'", "8 false 48.0x'"]


def test_texts_are_parameters_and_variables() -> None:
    text = """
    static { String[2] NAMES = {"left", "right"}; }
    struct Channel { String name; int gain; }
    void->void pipeline Main {
      String mark = "> ";
      add Count;
      for (int i = 0; i < 2; i++) add Tell(mark + NAMES[i], i);
      add int->void filter { work pop 1 { pop(); } }
    }
    void->int filter Count { work push 1 { push(iter()); } }
    int->int filter Tell(String title, int gain) {
      Channel own;
      String last = "none";
      init { own.name = title; own.gain = gain; }
      String line(String text) { return text == last ? "as before" : text + ", before " + last; }
      work pop 1 push 1 {
        String now = own.name + " " + own.gain * peek(0);
        push(pop());
        println(line(now));
        last = now;
      }
    }"""
    assert lines(text, 2) == [
        "> left 0, before none",
        "> right 0, before none",
        "as before",
        "> right 1, before > right 0",
    ]


def test_texts_stand_on_no_numbers_and_in_no_files() -> None:
    with pytest.raises(Rejected) as caught:
        river.compile("void->void filter F { work { String s = 1; int n = s; } }", lang="streamit")
    assert [found.code for found in caught.value.diagnostics] == ["streamit-type"] * 2


def test_functions_of_c_for_floats_have_an_f_behind() -> None:
    text = """
    float->float filter F {
      work pop 1 push 8 {
        float x = pop();
        double d = 2.4999999999;  // of 32 bits it is 2.5
        push(sqrtf(x)); push(powf(x, 2)); push(fmodf(x, 1.5)); push(roundf(d)); push(fabsf(-d));
        push(fminf(x, 2)); push(fmax(1, 2)); push(trunc(-x));
      }
    }"""
    assert output(text, [2.25]) == [1.5, 5.0625, 0.75, 3.0, 2.5, 2.0, 2.0, -2.0]


def alike(text: str, items: list[Any]) -> list[Any]:
    """What both backends say, of what the direct definition has no word."""
    compiled = river.compile(text, lang="streamit")
    tables = [compiled.run({"input": items}, backend=backend)["output"] for backend in BACKENDS]
    first, second = ([row["value"] for row in table.to_pylist()] for table in tables)
    assert repr(first) == repr(second)
    return first


COMPUTED = {
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "cbrt": math.cbrt, "exp2": math.exp2,
    "expm1": math.expm1, "log1p": math.log1p, "rint": lambda x: math.copysign(round(x), x),
}  # fmt: skip
"""Functions of C that are computed from others, and Python's."""


@pytest.mark.parametrize("name", COMPUTED)
def test_functions_of_c_that_are_computed(name: str) -> None:
    """Also where they are constants, and of doubles, of which they have 14 digits."""
    text = f"""
    float->float filter F {{
      float known = {name}(0.75);
      work pop 1 push 4 {{
        float x = pop();
        double d = x;
        push({name}(x)); push({name}f(d)); push(1e15 * {name}(d) - 1e15 * ((double) {name}f(d))); push(known);
      }}
    }}"""

    def value(x: float) -> float:
        try:
            return COMPUTED[name](x)
        except ValueError:
            return math.nan

    inside = [-0.999, -0.5, -1e-6, 0.0, 1e-9, 0.3, 0.5, 0.875]
    given = inside if name == "atanh" else [*inside, 1.0, 1.5, 2.5, 3.5, 9.25, 20.0]
    given = [f32(x) for x in given if not math.isnan(value(f32(x)))]
    found = alike(text, given)
    known = found[3]
    assert (math.isnan(known) and name == "acosh") or known == pytest.approx(value(0.75), rel=1e-7)
    for i, x in enumerate(given):
        of_float, single, rest, _ = found[4 * i : 4 * i + 4]
        assert of_float == single == f32(value(x)), x
        assert math.copysign(1.0, of_float) == math.copysign(1.0, value(x)), x
        exact = value(x)
        assert rest == pytest.approx(
            1e15 * exact - 1e15 * f32(exact), rel=1e-5, abs=max(1.0, 20 * abs(exact))
        )


def test_hypotenuses_neither_overflow_nor_vanish() -> None:
    text = """
    float->float filter F {
      work pop 1 push 5 {
        float x = pop();
        double far = 1e200;
        push(hypot(3 * x, 4 * x)); push(hypot(0, -x)); push(hypot(far * x, 0.0) / far);
        push(hypot(3 * far, 4 * far) / far); push(hypot(3 / far, 4 / far) * far);
      }
    }"""
    assert alike(text, [1.0, 0.5]) == [5.0, 1.0, 1.0, 5.0, 5.0, 2.5, 0.5, 0.5, 5.0, 5.0]


def test_a_double_is_rounded_where_a_float_is_wanted() -> None:
    text = """
    void->void pipeline Main {
      double step = 0.1;
      add Source(step);
      add Echo;
      add float->void filter {
        float own(double x) { return x; }
        work pop 1 { println(own(pop())); }
      };
    }
    float->float feedbackloop Echo {
      join roundrobin(1, 1);
      body float->float filter { work pop 2 push 1 { push(pop() + pop()); } };
      loop Identity<float>;
      split duplicate;
      double first = 0.5;
      enqueue first;
    }
    void->float filter Source(float step) {
      double sum;
      float whole;
      work push 1 { sum += 0.25; whole += sum; float[2] a = {sum, whole}; push(a[1] + step); }
    }"""
    assert [float(line) for line in lines(text, 2)] == pytest.approx([0.85, 1.7])


def test_pi_is_written_either_way() -> None:
    text = "void->void filter F { work { println(PI == pi); } }"
    assert lines(text, 1) == ["true"]
    own = "static { float PI = 3; } void->void filter F { work { println(PI); } }"
    assert lines(own, 1) == ["3.0"]


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
