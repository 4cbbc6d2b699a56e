from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest

from river.diagnostics import Rejected
from river.il import parse as il
from river.il import program as p
from river.il.parse import parse, parse_templates
from river.il.pretty import pretty, pretty_decl
from river.lang import syntax as s
from river.lang.parse import RESERVED
from river.source import Source

SKETCHES = Path(__file__).with_name("sketches.river")

i64, T = s.TypeName("i64"), s.TypeName("T")
one = s.Int(1)
record = s.RecordType((s.FieldType("n", i64),))
second = s.Lambda(("r",), s.Member(s.Name("r"), "v"))
signature = ("f", (s.Port("q", i64),), (s.VarParam("v", i64),), (s.Out("y", i64),))


def program(*lines: str) -> p.Program:
    return parse(Source("<il>", "\n".join(["river 1;", *lines])))


def codes(text: str, read=parse) -> list[str]:
    with pytest.raises(Rejected) as caught:
        read(Source("<il>", text))
    return [d.code for d in caught.value.diagnostics]


DECLS = {
    "type Row = {n: i64};": p.TypeDecl("Row", (), record),
    "type Tag<T, U> = T;": p.TypeDecl("Tag", ("T", "U"), T),
    "input q: i64;": p.Input("q", i64),
    "input q: i64 by tau;": p.Input("q", i64, "tau"),
    "output q: i64;": p.Output("q", i64),
    "output q: i64 by tau;": p.Output("q", i64, "tau"),
    "output q: i64 = rows($v.0, f);": p.Output("q", i64, None, p.View("v.0", "f")),
    "output q: i64 = rows($v, f, 2);": p.Output("q", i64, None, p.View("v", "f", 2)),
    "queue q: i64 by tau;": p.Queue("q", i64, "tau"),
    "var $v: i64 = 1;": p.Variable("v", i64, one),
    "var $v.0: i64 = 1;": p.Variable("v.0", i64, one),
    "result $v = union($v.0, $v.1);": p.Result("v", ("v.0", "v.1")),
    "fn f() = 1;": s.Fn("f", (), None, one),
    "operator f(q: i64; $v: i64) -> (y: i64) {}": s.Operator(*signature),
    'operator f(q: i64; $v: i64) -> (y: i64) = extern python "m:f";': s.Extern(*signature, "m:f"),
    "template <#T: type, #F: fields, #n: i64, #k: fn(T, i64) -> i64, #g: fn() -> T>\n"
    "operator f(q: i64; $v: i64) -> (y: i64) {}": s.Template(
        (
            s.TemplateParam("T", "type"),
            s.TemplateParam("F", "fields"),
            s.TemplateParam("n", i64),
            s.TemplateParam("k", s.FunctionType((T, i64), i64)),
            s.TemplateParam("g", s.FunctionType((), T)),
        ),
        s.Operator(*signature),
    ),
    "operator a = std.merge;": p.Instance("a", "std.merge"),
    "operator a = lift.a<n = 1>;": p.Instance("a", "lift.a", (("n", one),)),
    "operator a = std.merge<T = i64?, U = {n: i64}, W = {n: i64}?>;": p.Instance(
        "a", "std.merge", (("T", s.OptionalType(i64)), ("U", record), ("W", s.OptionalType(record)))
    ),
    "operator a = t<F = {n: i64, s: T = fn(r) => r.v, t: T = 1 > 2}>;": p.Instance(
        "a",
        "t",
        (
            (
                "F",
                s.FieldsArg(
                    (
                        s.FieldArg("n", i64),
                        s.FieldArg("s", T, second),
                        s.FieldArg("t", T, s.Binary(">", one, s.Int(2))),
                    )
                ),
            ),
        ),
    ),
    "operator a = t<key = fn(r) => r.v, n = 1 + 2 * 3, w = [2, 3], b = (1 > 2), m = (1 >> 2)>;": p.Instance(
        "a",
        "t",
        (
            ("key", second),
            ("n", s.Binary("+", one, s.Binary("*", s.Int(2), s.Int(3)))),
            ("w", s.ListValue((s.Int(2), s.Int(3)))),
            ("b", s.Binary(">", one, s.Int(2))),
            ("m", s.Binary(">>", one, s.Int(2))),
        ),
    ),
    "operator a = t<k = fn(r) => (r > 1)>;": p.Instance(
        "a", "t", (("k", s.Lambda(("r",), s.Binary(">", s.Name("r"), one))),)
    ),
    "operator a = t<K = list<list<i64>>>;": p.Instance(
        "a", "t", (("K", s.TypeName("list", (s.TypeName("list", (i64,)),))),)
    ),
    "operator c = lift(count, seq);": p.Lift("c", "count", "seq"),
    "() <- f();": p.Use((), "f", ()),
    "@Fuse(1) @Keys(a, b.c) @Parallel() (q, $v.0) <- f(p, $v.0);": p.Use(
        ("q", "$v.0"),
        "f",
        ("p", "$v.0"),
        (
            p.Annotation("Fuse", (one,)),
            p.Annotation("Keys", (s.Name("a"), s.Member(s.Name("b"), "c"))),
            p.Annotation("Parallel"),
        ),
    ),
}


@pytest.mark.parametrize("text", DECLS)
def test_declarations(text):
    assert program(text).decls == (DECLS[text],)
    assert pretty_decl(DECLS[text]) == text


def test_the_sketches_of_the_design_parse_and_print():
    source = Source(SKETCHES.name, SKETCHES.read_text(encoding="utf-8"))
    sketches = parse(source)
    text = pretty(sketches)
    assert parse(Source("<again>", text)) == sketches
    assert pretty(parse(Source("<again>", text))) == text
    names = {d.name for d in sketches.decls if isinstance(d, s.Operator)}
    names |= {d.operator.name for d in sketches.decls if isinstance(d, s.Template)}
    assert names == {
        *("group", "range", "join", "map", "fir", "join23", "echo_in", "combine", "cmpx", "delay", "counter"),
        *("top", "count"),
    }
    for decl in sketches.decls:
        assert decl.span is not None
        assert decl.span.source is source


def test_the_layout_of_a_program():
    text = """\
river 1;

type Trade = {symbol: string, volume: i64};
type Total = {symbol: string, volume: i64};

input trades: Trade;
output totals: Total;
var $volume: map<string, i64> = {};

operator count(t: Trade; $v: map<string, i64>) -> (out: Total) {
  on t(x) {
    with v = $v[x.symbol] else 0 {
      v = v + x.volume;
      emit out {symbol: x.symbol, volume: v};
    }
  }
}

fn twice(n: i64) -> i64 = n + n;

fn thrice(n: i64) -> i64 = twice(n) + n;

operator a = std.merge_seq<T = Trade, n = 2>;
operator c = lift(count, seq);

@Parallel() @Keys(symbol) (totals, $volume) <- count(trades, $volume);
"""
    assert pretty(parse(Source("<il>", text))) == text


def test_long_uses_break_after_their_annotations():
    ends = tuple(f"a_queue_with_a_long_name_{i}" for i in range(3))
    use = p.Use(ends, "f", ("q",), (p.Annotation("Parallel", (one,)), p.Annotation("Fuse", (one,))))
    assert pretty_decl(use) == f"@Parallel(1)\n@Fuse(1)\n({', '.join(ends)}) <- f(q);"


# ---------------------------------------------------------------------------------------------- versions, mistakes


@pytest.mark.parametrize(
    "text", ["", "input q: i64;", "// river 1;\n", "river;", "river 2;", "river 1.5; new things"]
)
def test_a_program_states_its_version(text):
    assert codes(text) == ["il-version"]


def test_the_version_may_follow_comments():
    assert parse(Source("<il>", "// hello\n/* there */ river\n1 ;")) == p.Program(())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("input q i64;", "syntax-unexpected"),
        ("input q: i64", "syntax-end"),
        ("river 1;", "syntax-unexpected"),
        ("operator a = t<n = 1 > 2>;", "syntax-unexpected"),
        ("operator a = t<n = a == b>;", "syntax-unexpected"),
        ("operator a = t<T = 1>;", "syntax-unexpected"),
        ("operator a = t<n = list<i64>>;", "syntax-unexpected"),
        ("operator a = t<T = {n: i64 = 1}?>;", "syntax-payload"),
        ("operator a = t<T = {#F, n: i64 = 1}>;", "syntax-payload"),
        ("type T = {n: i64 = 1};", "syntax-unexpected"),
        ("template <#t: type> operator f() -> () {}", "syntax-parameter"),
        ("template <#N: i64> operator f() -> () {}", "syntax-parameter"),
        ("(q) <- f(p)", "syntax-end"),
        ("input fn: i64;", "syntax-reserved"),
        ('operator f() -> () = extern python "\\q";', "syntax-string"),
        ('operator f() -> () = extern python "shouting";', "syntax-extern"),
        ('operator f() -> () = extern python "./shouting.py:shout";', "syntax-extern"),
        ("fn f() { x() = 1; }", "syntax-place"),
    ],
)
def test_mistakes(text, code):
    assert codes("river 1;" + text) == [code]


def test_where_a_declaration_could_stand_the_message_says_so():
    with pytest.raises(Rejected) as caught:
        program("inptu q: i64;")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "unexpected `inptu`"
    assert diagnostic.help == "expected one of a declaration or the end of the text"


# ---------------------------------------------------------------------------------------------- template files


def test_template_files():
    text = "river 1; type A = i64; fn f() = 1; template <#T: type> operator o(a: #T) -> () {}"
    first, second, third = parse_templates(Source("<templates>", text))
    assert isinstance(first, p.TypeDecl)
    assert isinstance(second, s.Fn)
    assert isinstance(third, s.Template)
    assert codes(text + " input q: A; (q) <- o(q);", parse_templates) == ["il-template-file"] * 2
    assert codes(text.removeprefix("river 1;"), parse_templates) == ["il-version"]


# ---------------------------------------------------------------------------------------------- the grammar


@pytest.mark.slow
def test_the_grammar_is_strict():
    il.PARSER.build(strict=True)


def test_no_keyword_takes_a_name_away():
    """As for the operator language; `lift` is taken back by `generic`, `type` and `fields` are kinds of parameters."""
    found: set[tuple[str, ...]] = set()
    terminals = il.PARSER.tables.terminals
    for state in map(il.PARSER.tables.states.__getitem__, il.PARSER.tables.states):
        if "NAME" in state:
            words = (terminals[name].text or "" for name in state if name in terminals)
            found.add(tuple(sorted(w for w in words if w.isidentifier() and w not in RESERVED)))
    assert found - {()} == {
        ("mark",), ("ref",), ("mark", "merge"), ("array", "decimal"), ("lift",),
        ("array", "decimal", "fields", "type"),
    }  # fmt: skip


def test_parsing_is_fast():
    """300 lines in well under a second on any machine."""
    text = SKETCHES.read_text(encoding="utf-8")
    twice = Source("<il>", text + text.removeprefix("river 1;"))
    parse(twice)  # builds the tables
    start = thread_time()
    parse(twice)
    assert thread_time() - start < 1
