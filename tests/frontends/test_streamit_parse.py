from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontends.streamit import syntax as c
from frontends.streamit.parse import PARSER, parse
from river.diagnostics import Rejected
from river.lang import syntax as s
from river.source import Source


def read(text: str) -> c.Program:
    return parse(Source("t.str", text))


def work(body: str) -> tuple[c.Stmt, ...]:
    (stream,) = read(f"int->int filter F {{ work {{ {body} }} }}").streams
    (member,) = stream.members
    assert isinstance(member, c.Work)
    return member.body.items


def expr(text: str) -> c.Expr:
    (item,) = work(f"x = {text};")
    assert isinstance(item, c.Do)
    assert isinstance(item.value, c.Assign)
    return item.value.value


@pytest.mark.slow
def test_no_two_terminals_overlap() -> None:
    PARSER.build(strict=True)


def test_a_filter() -> None:
    (stream,) = read(
        "float->float stateful filter F(int n, float[n] h) { float x = 1, y; init { x = 2; } "
        "prework push n { push(0); } work push 1 pop 2 peek n + 1 { push(pop()); } int f(int a) { return a; } }"
    ).streams
    assert (stream.kind, stream.name, len(stream.params)) == ("filter", "F", 2)
    assert stream.signature == (c.TypeName("float"), c.TypeName("float"))
    assert stream.params[1].type == c.TypeName("float", (s.Name("n"),))
    assert [type(member) for member in stream.members] == [c.Declare, c.Init, c.Work, c.Work, c.Helper]
    first, usual = stream.members[2:4]
    assert isinstance(first, c.Work)
    assert isinstance(usual, c.Work)
    assert (first.first, usual.first) == (True, False)
    assert [rate.word for rate in usual.rates] == ["push", "pop", "peek"]
    assert usual.rates[2].value == c.Binary("+", s.Name("n"), s.Int(1))
    assert stream.name_span is not None
    assert stream.name_span.text == "F"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("syntax-unexpected", "int->int filter F { work { change(3) [1:2]; } }"),
        ("syntax-unexpected", "int->int filter F { work { p[1] @ 2; } }"),
    ],
)
def test_what_is_not_understood(code: str, text: str) -> None:
    with pytest.raises(Rejected) as refused:
        read(text)
    assert {found.code for found in refused.value.diagnostics} == {code}


def test_a_semicolon_that_is_missing_is_named() -> None:
    with pytest.raises(Rejected) as refused:
        read("int->int filter F { work { push(pop()) } }")
    (found,) = refused.value.diagnostics
    assert (found.code, found.help) == ("syntax-unexpected", "put `;` in front of it: statements end with it")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("int->int filter F {\n  work pop 1 {\n    pop();\n}", 1),
        ('int->int filter F {\n  work pop 1 { // {\n    /* { */ println("{");', 2),
    ],
)
def test_a_brace_that_is_missing_is_named(text: str, line: int) -> None:
    with pytest.raises(Rejected) as refused:
        read(text)
    (found,) = refused.value.diagnostics
    assert found.code == "syntax-end"
    assert found.help == f"a `}}` is missing: the `{{` in line {line} is not closed"


def test_messages() -> None:
    text = """
    int->int pipeline P {
      portal<F> p, q;
      add F(1) to p;
      add int->int filter { work { } } to p, q;
    }
    int->int filter S(portal<F> p) {
      work { p.a(3) [1:2]; p.a() [*]; p.a() [:4]; p.a() [5:]; p.a() @ 6; p.a() @ [7:8]; p.a(); }
    }
    """
    first, second = read(text).streams
    declared, named, anonymous = first.body
    assert declared == c.Declare(
        c.TypeName("portal", receiver="F"), (c.Declarator("p", None), c.Declarator("q", None))
    )
    assert named == c.Add("add", c.Named("F", None, (s.Int(1),)), (s.Name("p"),))
    assert isinstance(anonymous, c.Add)
    assert (type(anonymous.creation), anonymous.portals) == (c.Stream, (s.Name("p"), s.Name("q")))
    assert second.params == (c.Param(c.TypeName("portal", receiver="F"), "p"),)
    (work,) = second.members
    assert isinstance(work, c.Work)
    *sends, plain = work.body.items
    bounds = [(1, 2), None, (0, 4), (5, 5), (6, 6), (7, 8)]
    numbers = (None if pair is None else tuple(map(s.Int, pair)) for pair in bounds)
    assert [send.latency for send in sends if isinstance(send, c.Send)] == [
        c.LatencyRange(*(pair or (None, None))) for pair in numbers
    ]
    assert plain == c.Do(c.Call("p.a", ()))


def test_composites() -> None:
    text = """
    int->int pipeline P {
      add A(1, 2.5);
      for (int i = 0; i < 3; i++) add B<int>;
      add splitjoin { split roundrobin(1, 2); add A(1); pipeline { add Identity<float>(); } join roundrobin; }
      add feedbackloop { join roundrobin(0, 1); body A; loop B(); split duplicate; enqueue -1; };
    }"""
    (stream,) = read(text).streams
    assert stream.kind == "pipeline"
    first, loop, split, feedback = stream.body
    assert first == c.Add("add", c.Named("A", None, (s.Int(1), s.Float(2.5))))
    assert isinstance(loop, c.For)
    assert loop.body == c.Add("add", c.Named("B", c.TypeName("int"), ()))
    assert isinstance(split, c.Add)
    assert isinstance(split.creation, c.Stream)
    assert [type(item) for item in split.creation.body] == [c.Split, c.Add, c.Add, c.Join]
    assert split.creation.body[0] == c.Split((s.Int(1), s.Int(2)))
    assert split.creation.body[-1] == c.Join(())
    assert isinstance(feedback, c.Add)
    assert isinstance(feedback.creation, c.Stream)
    roles = [item.role for item in feedback.creation.body if isinstance(item, c.Add)]
    assert roles == ["body", "loop"]


def test_the_papers_figure_3_e_and_f() -> None:
    text = """
    pipeline {
      pipeline {
        splitjoin {
          split duplicate;
          filter { work {tf <- low_pass(peek(1), peek(2)); push(tf); pop();} }
          filter { work {tm <- low_pass(peek(1)); push(tm); pop();} }
          join roundrobin; }
        filter { work {s,tc <- subtractor(s,peek(1)); push(tc); pop();} } }
      filter { work {s,tc <- amplify(s,peek(1)); push(tc); pop();} } }
    """
    (stream,) = read(text).streams
    assert stream.name is None
    assert stream.signature is None
    (last,) = (add.creation for add in stream.body[1:] if isinstance(add, c.Add))
    assert isinstance(last, c.Stream)
    (member,) = last.members
    assert isinstance(member, c.Work)
    call = c.Call("amplify", (s.Name("s"), c.Call("peek", (s.Int(1),))))
    assert member.body.items[0] == c.OutOfLine((s.Name("s"), s.Name("tc")), call)


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a << 1 < b", "(a << 1) < b"),
        ("a & b == c", "a & (b == c)"),
        ("a | b ^ c & d", "((a | b) ^ c) & d"),
        ("a || b && c", "a || (b && c)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("-a[1]", "-(a[1])"),
        ("(int) a + b", "((int) a) + b"),
        ("!a == b", "(!a) == b"),
        ("y = z = 1", "y = (z = 1)"),
        ("a++ + ++b", "(a++) + (++b)"),
    ],
)
def test_how_operators_bind(text: str, like: str) -> None:
    assert expr(text) == expr(like)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.", 1.0), (".5", 0.5), ("1.5f", 1.5), ("2f", 2.0), ("1e3", 1000.0), ("1.0e-2F", 0.01)],
)
def test_floats(text: str, value: float) -> None:
    assert expr(text) == s.Float(value)


def test_an_else_belongs_to_the_nearest_if() -> None:
    (item,) = work("if (a) if (b) x = 1; else x = 2;")
    assert isinstance(item, c.If)
    assert item.other is None
    assert isinstance(item.then, c.If)
    assert item.then.other is not None


@pytest.mark.parametrize("end", ["", ";", "  /* else */ ; // if\n"])
def test_an_else_behind_a_stream(end: str) -> None:
    stream = "int->int filter { work pop 1 push 1 { push(pop()); } }" + end
    text = f"int->int pipeline Main {{ if (a) add {stream} else if (b) add {stream} else add F; add {stream} add F; }}"
    body = read(text).streams[0].body
    first, *others = body
    assert isinstance(first, c.If)
    assert isinstance(first.other, c.If)
    assert first.other.other is not None
    assert [type(item) for item in others] == [c.Add, c.Add]


def test_loops() -> None:
    kinds = [type(item) for item in work("for (;;) break; while (a) continue; do { x++; } while (b); ; {}")]
    assert kinds == [c.For, c.While, c.While, c.Block]


def test_functions_and_constants() -> None:
    program = read("fn f(a: f32) -> f32 = a * 2.0; static { int N = 4; } int->int filter F { work { } }")
    assert program.fns[0].name == "f"
    assert program.statics[0].body == (c.Declare(c.TypeName("int"), (c.Declarator("N", s.Int(4)),)),)


def test_words_of_the_operator_language_are_names_here() -> None:
    assert work("int let = 1, var = in + is;")[0] == c.Declare(
        c.TypeName("int"),
        (c.Declarator("let", s.Int(1)), c.Declarator("var", c.Binary("+", s.Name("in"), s.Name("is")))),
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("int->int filter F { work { push(1) } }", "syntax-unexpected"),
        ("int->int filter F { work {", "syntax-end"),
        ('int->int filter F { work { println("a); } }', "syntax-string"),
        ("int->int filter F { work { x = return; } }", "syntax-reserved"),
        ("int->int filter F { work { int while = 1; } }", "syntax-reserved"),
        ("fn f(let: i64) -> i64 = let;", "syntax-reserved"),
        ("int->int filter float { work { } }", "syntax-reserved"),
        ("int->int filter F { work { x = 1e999; } }", "syntax-number"),
        ("/* int->int", "syntax-comment"),
    ],
)
def test_what_is_no_program(text: str, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        read(text)
    assert refused.value.diagnostics[0].code == code


@given(st.text('{}();=<>-+*/ \n"intfilorwkpush01.[]', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = None
    try:
        read(text)
    except Rejected as refused:
        found = refused.diagnostics
    assert found is None or len(found) > 0


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("#define N 8\nint->int filter F { }", "#define", "`static { int N = 8; }`"),
        ('#include "a.str"', "#include", "`river run a.str b.str`"),
        ("import a;", "a", "`river run a.str b.str`"),
        ("typedef struct { int x; } P;", "struct", "`struct Name { ... }`"),
        ("int N = 8;", "N", "`static { int N = 8; }`"),
        ("int f(int x) { return x; }", "f", "`Name.f(x)`"),
        ("int->int filter F { work pop 1 { int x = 1L; } }", "L", "no suffix"),
        ("int->int filter F { work() pop 1 { } }", "(", "rates in place of parameters"),
        ("int->int pipeline P { work { } }", "{", "`work` stands in a filter"),
        ("int->int filter F { unsigned int x; }", "x", "leave `unsigned` out"),
        ("int->int filter F { const int N = 4; }", "N", "leave `const` out"),
        (
            "int->int filter F { work pop 1 { pop(); }\nint->int filter G { work pop 1 { pop(); } }",
            "->",
            "is a `}` missing",
        ),
        ("int->int filter F { work pop 1 { pop(); }\nadd splitjoin { } }", "{", "is a `}` missing"),
        ("int filter F { work pop 1 { pop(); } }", "filter", "`float->float filter Name"),
        ("int->int filter F { static int x; }", "x", "leave `static` out: fields keep their values"),
        ("int->int filter F { public int x; }", "x", "leave `public` out"),
        ("int->int pipeline F { add A(1) add B(2); }", "add", "put `;` in front of it"),
        ("int->int filter F { work push 1 { push(1) push(2); } }", "push", "put `;` in front of it"),
        ("int->int filter F { work pop 1 { a: while (true) break a; } }", ":", "no labels"),
        ("int->int filter F { work pop 1 { while (true) continue a; } }", "a", "no labels"),
        ("int->int filter F(Portal<G> p) { }", "<", "write `portal<F>`"),
        ("int->int pipeline F { portal<G> p = new portal<G>(); }", "=", "has no value"),
        ("int->int pipeline F { add new A(1); }", "A", "leave `new` out"),
        ("int->int filter F { work pop 1 { int[] a = new int[3]; } }", "int", "by its declaration"),
        ("class Main extends Pipeline { }", "Main", "streams are declared as"),
        (
            "int->int splitjoin F { split duplicate; add A; join duplicate; }",
            "duplicate",
            "write `join roundrobin;`",
        ),
        ("int->int splitjoin F { split null; add A; join roundrobin; }", "null", "need no splitter"),
        ("int->int filter F { work pop 1 push 1 { push pop(); } }", "(", "write `push(pop(...))`"),
        ("int->int filter F { work pop 1, push 1 { push(pop()); } }", ",", "`work pop 1 push 1`"),
        ("int->int filter F { work pop=1 push=1 { push(pop()); } }", "=", "`pop 1`"),
        ("int->int pipeline F { add A(1), B; }", ",", "`add A; add B;`"),
        ("int->int Filter F { work pop 1 { pop(); } }", "Filter", "write `filter`"),
        ("filter F<T> { work pop 1 { pop(); } }", "<", "types are no parameters"),
        ("int->int filter F { int *p; }", "*", "no pointers"),
        ("int->int filter F { work pop 1 push 1 { push(pop() >>> 1); } }", ">", "no `>>>`"),
        ("int->int filter F { work push: 1 pop: 1 { push(pop()); } }", ":", "`push 1`"),
        ("int->int pipeline F { work pop 1 push 1 { push(pop()); } }", "1", "`work` stands in a filter"),
        ("int->int filter F { work pop 1 { pop(); } add Identity<int>; }", "<", "a filter has `work`"),
        ("int->int filter F { work pop 1 { else pop(); } }", "(", "no `if`"),
        ("int->int filter F { work pop 1 { for (int i = 0, i < 3, i++) pop(); } }", "<", "two `;`"),
        ("int->int splitjoin F { split duplicate(2); add A; join roundrobin; }", "2", "no numbers"),
        ("int->int filter F { work pop 1 { pop(); } } }", "}", "one `}` too many"),
        (
            "int->int filter F { work pop 1 { System.out.println(pop()); } }",
            "System.out.println(pop())",
            "`println(x)`",
        ),
        ("int→int filter F { work pop 1 { pop(); } }", "→", "write `->`"),
        ("#river digits 6", "#river", "write `#river decimals 6`"),
        ("int->int filter F { work pop 1 { pop(); else pop(); } }", "else", "no `if`"),
        ("int->int filter F { work pop 1 { if (pop() > 0) pop() else pop(); } }", "else", "`;`"),
        ("int->int pipeline F { add A(1) // one\n  add B(2); }", "add", "put `;` at the end of line 1"),
        (
            "int->int filter F { work pop 1 { for (int i = 0; i < 3; i++\n pop(); } }",
            "pop",
            "expected one of an operator, `)` or `,`",
        ),
    ],
)
def test_habits_of_other_languages_are_told_what_to_write(text: str, place: str, said: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(Source("t.str", text))
    (found,) = refused.value.diagnostics
    assert found.code == "syntax-unexpected"
    assert found.span is not None
    assert found.span.text == place
    assert said in (found.help or "")
