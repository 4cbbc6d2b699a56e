"""StreamIt: values of all types, and what is computed of them."""

from __future__ import annotations

import cmath
import itertools
import math
import struct
from pathlib import Path
from typing import Any

import pytest

import river
from river.diagnostics import Rejected
from tests.frontends.streamit_runs import BACKENDS, COUNT, SHOW, f32, lines, output

ROOT = Path(__file__).resolve().parents[2]


def test_whole_numbers_wrap_and_floats_are_single() -> None:
    text = "int->int filter F { work pop 1 push 3 { int x = pop(); push(x * x); push(-x / 2); push(x % 7 << 30); } }"
    assert output(text, [65536, -7, -(1 << 31)]) == [
        0, -32768, 2 << 30 & 0x7FFFFFFF or -(1 << 31), 49, 3, 0, 0, -(1 << 30), -(1 << 31),
    ]  # fmt: skip
    text = "float->float filter F { work pop 1 push 1 { push(pop() + 0.1); } }"
    assert output(text, [0.2 + 0j.imag, 1e8]) == [f32(f32(0.2) + f32(0.1)), 1e8]


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


def test_literals_beside_bits_are_bits() -> None:
    text = "bit->bit filter F { bit b; work pop 1 push 2 { b = pop(); b ^= 1; push(b); b |= 1; push(b & 0 ^ 1); } }"
    assert output(text, [0, 1]) == [1, 1, 0, 1]


def test_a_condition_counts_as_0_or_1() -> None:
    filter_ = "int->int filter F { work pop 1 push 1 { int i = pop(); push((i > 1) + (i > 2) * 10 - (true == (i == 4)) + -i); } }"
    assert output(filter_, [1, 2, 3, 4]) == [-1, -1, 8, 6]
    assert output(
        "int->int filter F { work { push(true < 2.5 ? (pop() == 1) + 0.5 > 1 : 7); } }", [1, 2]
    ) == [1, 0]


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


def test_choices_between_numbers_have_32_bits() -> None:
    text = """
    int->int filter Choose {
      work pop 1 push 8 {
        boolean c = pop() > 0;
        push((c ? 3000 : 1) * 1000000 < 0 ? 1 : 0);
        push((c ? 2147483647 : 2) + (c ? 1 : 2) < 0 ? 1 : 0);
        push((c ? 0.1 : 0.2) + (c ? 0.2 : 0.1) == 0.3 ? 1 : 0);
        push((double) (c ? 0.1 : 0.2) > 0.1 ? 1 : 0);
        push(abs(-2147483648) < 0 ? 1 : 0);
        push(abs(c ? -3 : 4));
        int s = 0;
        for (int i = 0; i < ((c ? 123456789 : 25432) & 3); i++) s += i + 5;
        push(s);
        push((int) (1.0 * (c ? 5 : 4) / (c ? 2 : 3)));
      }
    }"""
    assert output(text, [1, 0]) == [1, 1, 1, 1, 1, 3, 5, 2, 0, 0, 1, 1, 1, 4, 0, 1]


def test_operands_keep_their_values_beside_branches_that_change_them() -> None:
    text = """
    int->int filter Count {
      int n = 3;
      int[2] a;
      work pop 1 push 2 {
        int x = pop();
        push((n + x) * (x > 1 ? 2 : n--));
        a[n = 1] = n * (x > 1 ? n++ : 5);
        push(10 * a[1] + n);
      }
    }"""
    assert output(text, [1, 2]) == [12, 51, 6, 12]


def test_an_assignment_goes_from_left_to_right_as_in_java() -> None:
    """In filters, in functions and in code that makes the graph."""
    text = """
    static { int[4] t; int y = 5; int k; init { y += (y = 1) + 0.5; t[k++] += 2.5; t[k++] = k; t[k] = k = 3; } }
    int->int pipeline Main { add F; }
    int->int filter F {
      int[4] a;
      int x;
      int twice() { x *= 2; return x; }
      work pop 4 push 6 {
        x = 5; x += (x = 1) + 0.5; push(x);
        x = 3; x -= twice(); push(x);
        a[pop()] = pop(); push(a[1]);
        int i; a[i++] += 1.5; a[i++] *= (i = 2) + 0.25; push(a[0] * 100 + a[1]);
        i = 0; a[i] = i = pop(); push(a[0]);
        push(10000 * y + 1000 * t[0] + 100 * t[1] + 10 * t[2] + t[3] + x + pop());
      }
    }"""
    assert output(text, [1, 3, 2, 9]) == [6, -3, 3, 106, 2, 62236]


def test_functions_that_change_a_field_are_given_it_as_it_was() -> None:
    text = """
    struct Cell { int[2] v; int n; }
    int->int filter Count {
      Cell cell;
      Cell[2] cells;
      int turn(Cell old, Cell other) { cell.v[1]++; cells[1].n = 5; return 100 * old.v[1] + 10 * cell.v[1] + other.n; }
      work pop 1 push 2 { cell.v[1] = pop(); push(turn(cell, cells[1])); push(turn(cells[0], cell)); }
    }"""
    assert output(text, [2, 7]) == [230, 40, 785, 90]


def test_a_struct_is_given_beside_an_array_of_its_own_that_the_function_changes() -> None:
    text = """
    struct Cell { int[2] v; int n; }
    int->int filter Fill {
      Cell field;
      int fill(int[2] a, Cell old, int n) { a[1] += n; return 100 * a[1] + 10 * old.v[1] + old.n; }
      work pop 1 push 3 {
        Cell[2] cells;
        cells[1].n = field.n = pop();
        push(fill(field.v, field, field.n));
        push(fill(cells[1].v, cells[1], 1));
        push(fill(cells[1].v, field, cells[1].n));
      }
    }"""
    assert output(text, [3, 2]) == [303, 103, 433, 532, 102, 352]


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


def test_parts_of_structs_may_share_a_type() -> None:
    text = """
    struct Pixel { int r, g, b; float[2] at; }
    void->void pipeline Main { add Count; add Paint; add Show; } COUNT
    int->Pixel filter Paint { work pop 1 push 1 { Pixel p; p.r = pop(); p.g = 7; p.b = p.r * 2; push(p); } }
    Pixel->void filter Show { work pop 1 { Pixel p = pop(); println(p.r + " " + p.g + " " + p.b); } }
    """.replace("COUNT", COUNT)
    first, second = lines(text, 2)
    assert [int(word) for word in second.split()] == [
        int(first.split()[0]) + 1,
        7,
        2 * int(second.split()[0]),
    ]


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
