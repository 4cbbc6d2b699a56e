"""StreamIt: what is computed before a program runs, constants, and random numbers."""

from __future__ import annotations

import io
import itertools
import math
from typing import TYPE_CHECKING, Any

import pytest

import river
from river import plugins
from river.cli import main
from river.diagnostics import Rejected
from tests.frontends.streamit_runs import BACKENDS, COUNT, SHOW, f32, lines, made, output, run

if TYPE_CHECKING:
    from pathlib import Path

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


def test_state_begins_with_structs_that_are_given() -> None:
    text = """
    struct Pair { int[2] x; float y; }
    static { Pair k; init { k.x[1] = 3; k.y = 0.5; } }
    void->void pipeline Main {
      Pair q = k;
      q.y = 2;
      add splitjoin { split roundrobin(0); add F(k, 1.5 + 2i); add F(q, 2i); join roundrobin; }
      add float->void filter { work pop 1 { println(pop()); } };
    }
    void->float filter F(Pair p, complex z) {
      Pair own, same = p;
      complex s;
      float part(complex c) { return c.imag + p.y; }
      init { own = p; own.y += part(z); s = z * z; }
      work push 1 { own.x[1]++; same.y += p.y; s = s + z; push(own.x[1] + own.y + same.y + s.real); }
    }"""
    assert lines(text, 2) == ["7.75", "10.0", "10.75", "13.0"]


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
    made.cache_clear()  # the program is the same, but not what it reads
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
    monkeypatch.setattr("river.lang.patience.TURNS", 10_000)
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
