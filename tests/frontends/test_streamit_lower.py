from __future__ import annotations

from textwrap import dedent

import pytest

import river
from frontends.streamit import FRONTEND
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.program import Program, Use
from river.source import Source
from tests.frontends.streamit_runs import output


def lower(text: str) -> Program:
    compiled = river.compile(text, lang="streamit", name="t.str")
    assert compiled.graph.deterministic
    assert parse(Source("t.river", compiled.text)) == compiled.program
    return compiled.program


def text_of(text: str) -> str:
    return pretty(lower(text))


def handler(body: str, rates: str = "push 1 pop 1", members: str = "") -> str:
    """What stands in the handler of a filter's work function."""
    text = text_of(f"int->int filter F {{ {members} work {rates} {{ {body} }} }}")
    lines = text.partition("  on x[")[2].partition("\n  }\n")[0].splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines[1:])


PIPELINE = """
float->float pipeline Main {
  add Mean(3);
  add Count;
}
float->float filter Mean(int n) {
  float[n] h;
  init { for (int i = 0; i < n; i++) h[i] = 1.0 / n; }
  work push 1 pop 1 peek n {
    float sum = 0;
    for (int i = 0; i < n; i++)
      sum += peek(i) * h[i];
    push(sum);
    pop();
  }
}
float->float filter Count {
  int k = 1;
  work push 1 pop 1 { push(pop() + k++); }
}
"""


def test_a_pipeline_of_two_filters() -> None:
    assert text_of(PIPELINE) == dedent("""\
        river 1;

        input input: f32;
        output output: f32;
        var $Count_k: i32 = 1;

        template <#n: i32>
        operator Mean(x: f32) -> (y[push 1]: f32) {
          const n: i32 = #n;
          const h: array<f32, #n> = init();
          fn init() -> array<f32, #n> {
            var h_0: array<f32, #n> = zero();
            for i in 0 .. #n {
              h_0[i] = 1.0 / f32(#n);
            }
            return h_0;
          }
          on x[peek #n, pop 1](w) {
            var sum: f32 = 0.0;
            for i in 0 .. #n {
              sum = sum + w[i] * h[i];
            }
            emit y sum;
          }
        }

        operator Mean_1 = Mean<n = 3>;

        operator Count(x: f32; $k: i32) -> (y[push 1]: f32) {
          on x[pop 1](w) {
            let t: i32 = $k;
            $k = t +% 1;
            emit y w[0] + f32(t);
          }
        }

        (q1) <- Mean_1(input);
        (output, $Count_k) <- Count(q1, $Count_k);
        """).replace("  const n: i32 = #n;\n", "")


def test_what_init_sets_for_good_is_known_in_work() -> None:
    """Also as a rate; not what anything else sets, what is set in a branch, or behind a `return`."""
    filter_ = """
    int->int pipeline P { add F(3); }
    int->int filter F(int n) {
      int all, half, turns, last; int kept = 1;
      int looked() { return kept + all; }
      init { turns = looked(); all = 2 * n; half = all / 2; kept = 9; if (n > 3) last = n; if (n > 5) return; turns = 4; }
      work pop all push half {
        for (int i = 0; i < half; i++) push(peek(i) * kept);
        for (int i = 0; i < all; i++) pop();
      }
    }"""
    text = text_of(filter_)
    assert "on x[pop 2 * #n](w)" in text
    assert "init" not in text
    assert output(filter_, [1, 2, 3, 4, 5, 6]) == [9, 18, 27]
    shown = """
    int->int filter F {
      int a, b, c;
      int get() { return c; }
      init { c = get() + 1; %s }
      work pop 1 push 1 { push(pop() + a + 10 * b + 100 * c); }
    }"""
    assert output(shown % "a = 1; b = a; a++;", [0]) == [112]
    assert output(shown % "a = b; b = 5; { a = 3; }", [0]) == [153]
    assert output(shown % "a = 2; if (a == 0) return; b = 6;", [0]) == [162]


def test_uses_know_their_place_in_the_text() -> None:
    uses = [d for d in lower(PIPELINE).decls if isinstance(d, Use)]
    assert [use.span.text for use in uses if use.span is not None] == ["Mean(3)", "Count"]


def test_equal_arguments_share_an_instance_and_all_share_a_template() -> None:
    text = text_of(
        "float->float pipeline P { add Gain(2); add Gain(3); add Gain(2); }"
        "float->float filter Gain(float k) { work pop 1 push 1 { push(k * pop()); } }"
    )
    assert text.count("template <") == 1
    assert "operator Gain_1 = Gain<k = 2.0>;\noperator Gain_2 = Gain<k = 3.0>;\n" in text
    assert "(q1) <- Gain_1(input);\n(q2) <- Gain_2(q1);\n(output) <- Gain_1(q2);\n" in text


def test_rates_that_no_parameter_says_become_holes() -> None:
    text = text_of(
        "int->int pipeline P { add F(2); add F(3); } int->int filter F(int n) {"
        " work pop 1 << n push 1 { int s; for (int i = 0; i < 1 << n; i++) s += pop(); push(s); } }"
    )
    assert "template <#pop: i64>" in text
    assert "on x[pop #pop](w)" in text
    assert "F<pop = 4>" in text
    assert "F<pop = 8>" in text


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("push(pop());", "emit y w[0];"),
        ("pop(); push(peek(1));", "emit y w[2];"),
        ("int a = pop(), b = pop(); push(a - b);", "let a: i32 = w[0];\nlet b: i32 = w[1];\nemit y a -% b;"),
        ("push(peek(0) + pop());", "emit y w[0] +% w[0];"),
        (
            "int s; for (int i = 0; i < 4; i++) { s += pop(); pop(); } push(s + pop());",
            "var s: i32 = 0;\nfor i in 0 .. 4 {\n  s = s +% w[i * 2];\n}\nemit y s +% w[8];",
        ),
        (
            "for (int i = 4; i >= 0; i -= 2) push(peek(i) * i); pop();",
            "for k in 0 .. 3 {\n  emit y w[4 - k * 2] *% i32.wrap(4 - k * 2);\n}",
        ),
        (
            "int s = peek(0); push(s++ + s); pop();",
            "var s: i32 = w[0];\nlet t: i32 = s;\ns = t +% 1;\nemit y t +% s;",
        ),
        (
            "int n = peek(0); for (int i = 1; i < n; i++) if (i % 3 == 1) continue; else push(i); pop();",
            (
                "let n: i32 = w[0];\nfor i in 1 .. n {\n  if rem.trunc.wrap(i, 3) == 1 {\n    "
                "continue;\n  } else {\n    emit y i;\n  }\n}"
            ),
        ),
        (
            "int i = 9; while (i > 0) { if (i == 4) { i -= 3; continue; } i--; } push(i); pop();",
            (
                "var i: i32 = 9;\nwhile i > 0 {\n  if i == 4 {\n    i = i -% 3;\n    continue;\n "
                " }\n  i = i -% 1;\n}\nemit y i;"
            ),
        ),
        (
            "int i = 0; for (; i < peek(0); i += 2) { if (i == 4) continue; push(i); } pop();",
            (
                "var i: i32 = 0;\nwhile i < w[0] {\n  if i == 4 {\n    i = i +% 2;\n    "
                "continue;\n  }\n  emit y i;\n  i = i +% 2;\n}"
            ),
        ),
        (
            "int i; do { i++; } while (i * i < 5); push(i); pop();",
            "var i: i32 = 0;\nwhile true {\n  i = i +% 1;\n  if not i *% i < 5 {\n    break;\n  }\n}\nemit y i;",
        ),
        (
            "int k = peek(0); bit b = 1; if (b && k++ > 2) push(k); else push(~b + 1); pop();",
            (
                "var k: i32 = w[0];\nlet b: i32 = 1;\nvar t: bool = b != 0;\nif t {\n  let t_1: "
                "i32 = k;\n  k = t_1 +% 1;\n  t = t_1 > 2;\n}\n"
                "if t {\n  emit y k;\n} else {\n  emit y (b ^ 1) +% 1;\n}"
            ),
        ),
        (
            "float f = peek(0) / 2; push((int) (f / 2)); pop();",
            ("let f: f32 = f32(div.trunc.wrap(w[0], 2));\nemit y i32.wrap(f / 2.0);"),
        ),
        ("push(1 + 2 * 3 - 0x10); pop();", "emit y -9;"),
        ("push(0x7fffffff + 1); pop();", "emit y -2147483648;"),
        ("int let = pop(); push(let);", "let let_1: i32 = w[0];\nemit y let_1;"),
        (
            ("int a = 1; { int a = 2; push(a + peek(0)); } push(a); pop();"),
            ("let a: i32 = 1;\nlet a_1: i32 = 2;\nemit y a_1 +% w[0];\nemit y a;"),
        ),
    ],
)
def test_code(code: str, expected: str) -> None:
    assert handler(code, "push * peek 16") == expected


def test_items_are_counted_at_run_time_where_paths_differ() -> None:
    found = handler("int s; while (s < 3) { s += pop() & 1 | 1; } push(s);", "push 1 pop 3")
    assert found.splitlines()[:2] == ["var at: i64 = 0;", "var s: i32 = 0;"]
    assert found.endswith('if at > 3 {\n  trap "a firing took more items than its `pop` rate";\n}')


def test_functions_get_the_fields_that_they_use() -> None:
    text = text_of(
        "int->int filter F { int a = 1, b; int add(int x) { a += x; return twice(x); } "
        "int twice(int x) { x *= 2; return x + b; }"
        " init { b = add(5); } work pop 1 push 1 { push(add(pop())); } }"
    )
    assert (
        "fn add_1(x: i32, ref a_1: i32, b_1: i32) -> i32 {\n    a_1 = a_1 +% x;\n    return twice(x, b_1);\n  }"
        in text
    )
    assert "let t: i32 = add_1(w[0], $a, b);" in text
    assert "const b: i32 = init();" in text
    assert "var $F_a: i32 = F_init();" in text


def test_a_struct_that_functions_are_given_is_put_together_once() -> None:
    text = text_of("""
    struct Block { int[8] x; }
    Block->int filter F {
      int at(Block b, int i) { return b.x[i]; }
      work peek 2 pop 1 push 1 {
        Block given = pop(), seen = peek(0);
        int sum = 0;
        for (int i = 0; i < 8; i++) sum += at(given, i) * seen.x[i];
        push(sum);
      }
    }""")
    assert "var given: {x: array<i32, 8>} = w[0];" in text
    assert "let seen: {x: array<i32, 8>} = w[1];" in text


def test_prework_is_a_first_handler() -> None:
    text = text_of(
        "int->int filter F { prework push 2 { push(1); push(2); } work pop 1 push 1 { push(pop()); } }"
    )
    assert "  first on x[pop 0](w) {\n    emit y 1;\n    emit y 2;\n  }\n  on x[pop 1](w) {" in text


def test_a_source_fires_as_often_as_a_steady_state_asks() -> None:
    text = text_of(
        "void->int pipeline P { add S; add int->int filter { work pop 3 push 1 { "
        "push(pop() + pop() + pop()); } } }"
        "void->int filter S { int i; work push 1 { push(i++); } }"
    )
    assert (
        "operator S(clock: unit; $i: i32) -> (y[push 3]: i32) {\n  on clock(u) {\n    for turn in 0 .. 3 {"
        in text
    )
    assert "(q1, $S_i) <- S(clock, $S_i);" in text


def test_a_feedback_loop_begins_with_what_is_enqueued() -> None:
    text = text_of(
        "float->float feedbackloop Echo { join roundrobin(1, 1); body float->float filter { work pop 2 push 1 {"
        " push(pop() + 0.6 * pop()); } }; loop Identity<float>; split duplicate;"
        " for (int i = 0; i < 8; i++) enqueue 0; }"
    )
    assert (
        "operator loop_join = streamit.loop_join<T = f32, outer = 1, back = 1, waiting = fill(0.0, 8)>;"
        in text
    )
    uses = text.splitlines()[-4:]
    assert uses == [
        "(q1) <- loop_join(input, q4);",
        "(q2) <- filter_1(q1);",
        "(output, q3) <- duplicate(q2);",
        "(q4) <- pass(q3);",
    ]


def test_prints_of_several_filters_are_joined() -> None:
    text = text_of(
        'void->void pipeline P { add void->int filter { work push 2 { println("a"); '
        "push(1); push(2); } }; add int->void filter {"
        " work pop 1 { println(pop()); println(0); } } }"
    )
    assert "@Printed() @Steady(0, 3) output stdout: string;" in text
    assert "operator numbered_1 = streamit.numbered<starts = 0, each = 2, place = 1, all = 2>;" in text
    assert "(stdout) <- merged(q2, q3);" in text


def test_files_are_inputs_and_outputs() -> None:
    text = text_of(
        'void->void pipeline P { add FileReader<float>("d/noise.bin"); add FileWriter<float>("copy.bin"); }'
    )
    assert '@File("d/noise.bin", "raw") @Steady(0, 1) input noise: f32;' in text
    assert '@File("copy.bin", "raw") @Steady(0, 1) output copy: f32;' in text
    assert "(copy) <- pass(noise);" in text


def test_names_of_types_in_functions_are_replaced() -> None:
    text = text_of(
        "fn f(x: float, n: int) -> float = x * f32(n); filter { work { y <- f(peek(1), "
        "2); push(y); pop(); } }"
    )
    assert "fn f(x: f32, n: i32) -> f32 = x * f32(n);" in text


def test_importing_the_frontend_is_light() -> None:
    assert FRONTEND.suffix == ".str"
    assert [file.name for file in FRONTEND.templates] == ["loop.river", "message.river", "print.river"]


def test_of_init_runs_what_fields_depend_on() -> None:
    """State is computed when the program is compiled: a table that it does not need would take long."""
    text = """
    void->void filter F {
      float[8] h;
      int at, step;
      int[3] q;
      void fill(int j) { q[j] = step; }
      init {
        step = 2;
        for (int i = 0; i < 8; i++) h[i] = cos(i);
        int z = 5;
        if (step > 1) { z++; fill(1); }
        at = step + z;
        step = 7;
        fill(2);
      }
      work { q[0]++; println(at + " " + q[0] + " " + q[1] + " " + q[2] + " " + step + " " + h[0]); at++; }
    }"""
    compiled = river.compile(text, lang="streamit")
    results = compiled.run({}, iterations=2, backend="reference")
    assert results["stdout"].column("value").to_pylist() == ["8 1 2 7 7 1.0\n", "9 2 2 7 7 1.0\n"]
    assert compiled.text.count("cos(") == 1
