from __future__ import annotations

import re

import pytest

from river.diagnostics import InternalError, Rejected
from river.lang import grammar
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, STMT, TYPES, Module, compose
from river.lang.parse import (
    PARSER,
    RESERVED,
    StmtBuilder,
    parse_block,
    parse_expr,
    parse_operator,
    parse_type,
)
from river.lang.pretty import pretty
from river.nesting import MAX_DEPTH
from river.source import Source

a, b, c = s.Name("a"), s.Name("b"), s.Name("c")
one, two = s.Int(1), s.Int(2)
i64 = s.TypeName("i64")


def expr(text: str) -> s.Expr:
    return parse_expr(Source("<expr>", text))


def kind(text: str) -> s.TypeExpr:
    return parse_type(Source("<type>", text))


def stmt(text: str) -> s.Stmt:
    (only,) = parse_block(Source("<block>", "{" + text + "}")).items
    return only


def codes(text: str, parse=parse_expr) -> list[str]:
    with pytest.raises(Rejected) as caught:
        parse(Source("<text>", text))
    return [d.code for d in caught.value.diagnostics]


# ---------------------------------------------------------------------------------------------- types

TYPE_CASES = {
    "i64": i64,
    "std.Tag<i64>": s.TypeName("std.Tag", (i64,)),
    "map<string, list<i64>>": s.TypeName("map", (s.TypeName("string"), s.TypeName("list", (i64,)))),
    "array<i64, 64>": s.TypeName("array", (i64, s.Int(64))),
    "array<#T, #n / 2>": s.TypeName("array", (s.HoleType("T"), s.Binary("/", s.Hole("n"), two))),
    "array<i64, (a & b)>": s.TypeName("array", (i64, s.Binary("&", a, b))),
    "decimal(10, 2)": s.TypeName("decimal", (s.Int(10), two)),
    "i64??": s.OptionalType(s.OptionalType(i64)),
    "{}": s.RecordType(()),
    "{a: i64}?": s.OptionalType(s.RecordType((s.FieldType("a", i64),))),
    "{#F, v: {#G}}": s.RecordType((s.SpliceType("F"), s.FieldType("v", s.RecordType((s.SpliceType("G"),))))),
    "{#each f in #F {f: #f}}": s.RecordType((s.EachType("f", "F", (s.FieldType("f", s.HoleType("f")),)),)),
    "()": s.TupleType(()),
    "(i64,)": s.TupleType((i64,)),
    "(i64, #K)": s.TupleType((i64, s.HoleType("K"))),
    "{rows: type, type: rows}": s.RecordType(
        (s.FieldType("rows", s.TypeName("type")), s.FieldType("type", s.TypeName("rows")))
    ),
}


@pytest.mark.parametrize("text", TYPE_CASES)
def test_types(text):
    assert kind(text) == TYPE_CASES[text]
    assert pretty(TYPE_CASES[text]) == text


def test_fields_may_be_separated_by_semicolons():
    assert kind("{a: i64; b: i64, c: i64;}") == kind("{a: i64, b: i64, c: i64}")


# ---------------------------------------------------------------------------------------------- expressions

EXPR_CASES = {
    "1": one,
    "0.5": s.Float(0.5),
    "1e+300": s.Float(1e300),
    '"a\\n\\"\\\\\\u{7}é"': s.String('a\n"\\\aé'),
    'b"\\xff\\0a"': s.Bytes(b"\xff\0a"),
    "true": s.Bool(True),
    "false": s.Bool(False),
    "none": s.NoneValue(),
    "$v": s.Var("v"),
    "$v.0": s.Member(s.Var("v"), "0"),
    "#n": s.Hole("n"),
    "#key()": s.Hole("key", ()),
    "a.b.0.1": s.Member(s.Member(s.Member(a, "b"), "0"), "1"),
    "(1).a": s.Member(one, "a"),
    "a[1][a:b]": s.Slice(s.Index(a, one), a, b),
    "a!.b!": s.Force(s.Member(s.Force(a), "b")),
    "a! != b": s.Binary("!=", s.Force(a), b),
    "a is none": s.IsNone(a),
    "div.trunc(a, b)": s.Call("div.trunc", (a, b)),
    "div.trap(a, b)": s.Call("div.trap", (a, b)),
    "any(a, fn(b, c) => b < c)": s.Call("any", (a, s.Lambda(("b", "c"), s.Binary("<", b, c)))),
    "f(fn() => 1)": s.Call("f", (s.Lambda((), one),)),
    "#o(a, b)": s.Hole("o", (a, b)),
    "-1": s.Unary("-", one),
    "- -%~a".replace(" ", ""): s.Unary("-", s.Unary("-%", s.Unary("~", a))),
    "(-a).b": s.Member(s.Unary("-", a), "b"),
    "-a.b": s.Unary("-", s.Member(a, "b")),
    "not a == b": s.Unary("not", s.Binary("==", a, b)),
    "(not a) == b": s.Binary("==", s.Unary("not", a), b),
    "a or b and c": s.Binary("or", a, s.Binary("and", b, c)),
    "(a or b) and c": s.Binary("and", s.Binary("or", a, b), c),
    "a + b - c": s.Binary("-", s.Binary("+", a, b), c),
    "a + (b -% c)": s.Binary("+", a, s.Binary("-%", b, c)),
    "a *% b / c +% 1": s.Binary("+%", s.Binary("/", s.Binary("*%", a, b), c), one),
    "a >> b >>> c << 1": s.Binary("<<", s.Binary(">>>", s.Binary(">>", a, b), c), one),
    "a & 1 | b ^ 2": s.Binary("^", s.Binary("|", s.Binary("&", a, one), b), two),
    "(a < b) == (b >= c)": s.Binary("==", s.Binary("<", a, b), s.Binary(">=", b, c)),
    "a > b >> 1": s.Binary(">", a, s.Binary(">>", b, one)),
    "if a {1} else {2}": s.IfExpr(a, one, two),
    "(if a {1} else {2}) + 1": s.Binary("+", s.IfExpr(a, one, two), one),
    "{a: 1, b: {}}": s.RecordValue((s.FieldValue("a", one), s.FieldValue("b", s.MapValue(())))),
    "{#each f in #F {f: x.f}, a: 1}": s.RecordValue(
        (
            s.EachValue("f", "F", (s.FieldValue("f", s.Member(s.Name("x"), "f")),)),
            s.FieldValue("a", one),
        )
    ),
    "{(a): 1}": s.MapValue(((a, one),)),
    "{(a): 1, 2: b}": s.MapValue(((a, one), (two, b))),
    "()": s.TupleValue(()),
    "(a,)": s.TupleValue((a,)),
    "(a, b)": s.TupleValue((a, b)),
    "[]": s.ListValue(()),
    "[a, b]": s.ListValue((a, b)),
    "[a for a in b]": s.Comprehension(a, ("a",), b),
    "[a for a, b in 0 .. c if b > a]": s.Comprehension(
        a, ("a", "b"), s.Range(s.Int(0), c), s.Binary(">", b, a)
    ),
}


@pytest.mark.parametrize("text", EXPR_CASES)
def test_expressions(text):
    assert expr(text) == EXPR_CASES[text]
    assert pretty(EXPR_CASES[text]) == text


def test_other_spellings():
    assert expr("0xFf") == s.Int(255)
    assert expr("2.5e3") == expr("2500.0")
    assert expr("f(a, [b,], (a, b,),)") == expr("f(a,[b],(a,b))")
    assert expr("a // to the end\n + /* * / ** */ b") == s.Binary("+", a, b)
    assert expr("{a: 1, 2: b}") == s.MapValue(((a, one), (two, b)))


def test_keywords_of_other_places_are_names():
    for word in [
        "first",
        "merge",
        "peek",
        "pop",
        "push",
        "mark",
        "by",
        "rows",
        "union",
        "queue",
        "input",
        "output",
    ]:
        assert stmt(f"{word}({word}.{word});") == s.Do(s.Call(word, (s.Member(s.Name(word), word),)))
    for word in ["result", "key", "type", "phase", "python", "seq", "mark", "on", "array"]:
        assert stmt(f"{word} = {{{word}: 1}};") == s.Assign(
            s.Name(word), s.RecordValue((s.FieldValue(word, one),))
        )


def test_every_node_knows_its_text():
    tree = expr("f(a, b + 10).c")
    assert isinstance(tree, s.Member)
    assert isinstance(tree.value, s.Call)
    assert tree.span is not None
    assert tree.span.text == "f(a, b + 10).c"
    second = tree.value.args[1]
    assert second.span is not None
    assert second.span.text == "b + 10"


# ---------------------------------------------------------------------------------------------- statements

STMT_CASES = {
    "let a: i64 = 1;": s.Let("a", i64, one),
    "let a = 1;": s.Let("a", None, one),
    "var a: list<i64> = [];": s.VarDecl("a", s.TypeName("list", (i64,)), s.ListValue(())),
    "var a = 1;": s.VarDecl("a", None, one),
    "a = 1;": s.Assign(a, one),
    "$v.f[a].0 = 1;": s.Assign(s.Member(s.Index(s.Member(s.Var("v"), "f"), a), "0"), one),
    "with a = b[c] {}": s.With("a", s.Index(b, c), None, s.Block()),
    "with a = $v[c] else {a: 1} {}": s.With(
        "a", s.Index(s.Var("v"), c), s.RecordValue((s.FieldValue("a", one),)), s.Block()
    ),
    "drop a;": s.Drop("a"),
    "if a {}": s.If(a, s.Block()),
    "if a is none {}": s.If(s.IsNone(a), s.Block()),
    "if a + 1 is b {}": s.If(s.Bind(s.Binary("+", a, one), "b"), s.Block()),
    "if (a == b) is c {}": s.If(s.Bind(s.Binary("==", a, b), "c"), s.Block()),
    "if a {} else if b {} else {}": s.If(a, s.Block(), s.If(b, s.Block(), s.Block())),
    "for a in b {}": s.For(None, ("a",), b, s.Block()),
    "l: for a, b in 0 .. c {}": s.For("l", ("a", "b"), s.Range(s.Int(0), c), s.Block()),
    "while a {}": s.While(None, a, s.Block()),
    "mark: while a {}": s.While("mark", a, s.Block()),
    "break;": s.Break(),
    "break l;": s.Break("l"),
    "continue;": s.Continue(),
    "continue l;": s.Continue("l"),
    "return;": s.Return(),
    "return (a, b);": s.Return(s.TupleValue((a, b))),
    "emit a by;": s.Emit("a", s.Name("by")),
    "emit out {a: 1};": s.Emit("out", s.RecordValue((s.FieldValue("a", one),))),
    "mark out -a;": s.Mark("out", s.Unary("-", a)),
    'trap "why";': s.Trap("why"),
    "push(a, b);": s.Do(s.Call("push", (a, b))),
    "#touch(a);": s.Do(s.Hole("touch", (a,))),
    "#each f in #F {}": s.Each("f", "F", s.Block()),
}


@pytest.mark.parametrize("text", STMT_CASES)
def test_statements(text):
    assert stmt(text) == STMT_CASES[text]
    assert pretty(STMT_CASES[text]) == text


def test_words_after_a_block_are_names():
    block = parse_block(Source("<block>", "{ if a {} queue = 1; if a {} first(); if a {} type: while a {} }"))
    assert len(block.items) == 6


# ---------------------------------------------------------------------------------------------- operators

OPERATOR = """\
operator f(p: i64 by tau = fill(0, 2), q: i64; $v: i64, $w: i64) -> (y[push 2 * #n]: i64 by seq, z: i64) {
  const h: i64 = 1;
  fn g(ref ref: i64, x: i64) -> i64 {
    return x;
  }
  fn k() = 1;
  on p(x) {
    emit y x;
  }
  on p[peek 3, pop 1](v), q[pop #n](w) {}
  first on p[pop 0](v) {}
  phase 2 on q(x) {}
  on merge(p(x), q(y)) {}
  on mark(k) {
    mark y k;
  }
}"""


def test_operators():
    tree = parse_operator(Source("<operator>", OPERATOR))
    assert pretty(tree) == OPERATOR
    fill = s.Call("fill", (s.Int(0), two))
    assert tree.ports == (s.Port("p", i64, "tau", fill), s.Port("q", i64))
    assert tree.vars == (s.VarParam("v", i64), s.VarParam("w", i64))
    assert tree.outs == (s.Out("y", i64, "seq", s.Binary("*", two, s.Hole("n"))), s.Out("z", i64))
    assert tree.consts == (s.Const("h", i64, one),)
    assert tree.fns == (
        s.Fn("g", (s.Param("ref", i64, True), s.Param("x", i64)), i64, s.Block((s.Return(s.Name("x")),))),
        s.Fn("k", (), None, one),
    )
    rates = (s.Rate("p", s.Int(3), one, "v"), s.Rate("q", None, s.Hole("n"), "w"))
    assert tree.handlers == (
        s.ItemHandler("p", "x", s.Block((s.Emit("y", s.Name("x")),))),
        s.RatedHandler(rates, s.Block()),
        s.RatedHandler((s.Rate("p", None, s.Int(0), "v"),), s.Block(), True),
        s.PhaseHandler(two, "q", "x", s.Block()),
        s.MergeHandler((("p", "x"), ("q", "y")), s.Block()),
        s.MarkHandler("k", s.Block((s.Mark("y", s.Name("k")),))),
    )


def test_an_operator_may_have_nothing():
    assert pretty(parse_operator(Source("<operator>", "operator f(;$v: i64)->(){}"))) == (
        "operator f(; $v: i64) -> () {}"
    )


# ---------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1 +", "syntax-end"),
        ("", "syntax-end"),
        ("f(", "syntax-end"),
        ("a b", "syntax-unexpected"),
        ("a == b == c", "syntax-unexpected"),
        ("a is none == b", "syntax-unexpected"),
        ("a > > b", "syntax-unexpected"),
        ("a ? b", "syntax-unexpected"),
        ("$", "syntax-unexpected"),
        ("f(a)(b)", "syntax-callee"),
        ("(f)(b)", "syntax-callee"),
        ("a.0(b)", "syntax-callee"),
        ("$v(b)", "syntax-callee"),
        ("#o(a)(b)", "syntax-callee"),
        ('"a', "syntax-string"),
        ('"a\nb"', "syntax-string"),
        ('b"a', "syntax-string"),
        (r'"\q"', "syntax-string"),
        (r'"\xff"', "syntax-string"),
        (r'"\u{d800}"', "syntax-string"),
        (r'"\u{110000}"', "syntax-string"),
        (r'"\u{}"', "syntax-string"),
        (r'b"\u{41}"', "syntax-string"),
        (r'b"\xf"', "syntax-string"),
        ('b"é"', "syntax-string"),
        ("a /* b", "syntax-comment"),
        ("1e999", "syntax-number"),
        ("9" * 2000, "syntax-number"),
        ("a.0x1", "syntax-number"),
        ("let", "syntax-reserved"),
        ("a.while", "syntax-reserved"),
        ("{a: 1, #each f in #F {f: 1}, 2: 3}", "syntax-record"),
        ("{#each f in #F {1: 1}}", "syntax-record"),
    ],
)
def test_mistakes_in_expressions(text, code):
    assert codes(text) == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a;", "syntax-statement"),
        ("a[1];", "syntax-statement"),
        ("f(a) = 1;", "syntax-place"),
        ("a! = 1;", "syntax-place"),
        ("a[1:2] = 1;", "syntax-place"),
        ("#n = 1;", "syntax-place"),
        ("f().x = 1;", "syntax-place"),
        ("with a = b {}", "syntax-place"),
        ("with a = f()[b] {}", "syntax-place"),
        ("f(a)(b);", "syntax-callee"),
        ("let a = 1", "syntax-unexpected"),
        ("let if = 1;", "syntax-reserved"),
        ("a + b;", "syntax-unexpected"),
        ("if {} {", "syntax-end"),
    ],
)
def test_mistakes_in_statements(text, code):
    assert codes("{" + text + "}", parse_block)[0] == code


@pytest.mark.parametrize("word", ["merge", "mark"])
def test_handlers_cannot_be_hidden_by_ports(word):
    assert codes(f"operator f({word}: i64) -> () {{}}", parse_operator) == ["syntax-reserved"]


def test_all_mistakes_are_told_in_the_order_of_the_text():
    assert codes(r'["\q", 1e999, f(a)(b), "\w"]') == [
        "syntax-string", "syntax-number", "syntax-callee", "syntax-string",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "help_line"),
    [
        ("1 +", "unexpected end of the text", "expected an expression"),
        ("[1 2]", "unexpected `2`", "expected one of an operator, `,`, `]` or `for`"),
        ("[a for b c]", "unexpected `c`", "expected one of `,` or `in`"),
        ('[a for "b c"]', 'unexpected `"b c"`', "expected a name"),
    ],
)
def test_messages_name_what_could_stand_there(text, message, help_line):
    with pytest.raises(Rejected) as caught:
        expr(text)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.message, diagnostic.help) == (message, help_line)


def test_a_mistake_shows_its_place():
    with pytest.raises(Rejected, match=re.escape("q.river:2:5: error[syntax-unexpected]: unexpected `)`")):
        parse_expr(Source("q.river", "f(a,\n  b +)".replace("b +", "b+")))


# ---------------------------------------------------------------------------------------------- size

NESTED = {
    "parentheses": ("(", "a", ")", 1),
    "lists": ("[", "a", "]", 1),
    "calls": ("f(", "a", ")", 2),
    "records": ("{a: ", "b", "}", 2),
    "sums": ("", "a", " + a", 1),
    "signs": ("-", "a", "", 1),
    "conditions": ("if a {", "b", "} else {c}", 1),
    "fields": ("", "a", ".b", 1),
}


@pytest.mark.parametrize("name", NESTED)
def test_the_deepest_text_can_be_read_by_recursion(name):
    before, middle, after, levels = NESTED[name]
    count = (MAX_DEPTH - 1) // levels
    tree = expr(before * count + middle + after * count)
    assert tree == expr(before * count + middle + after * count)
    assert hash(tree) == hash(expr(pretty(tree)))
    assert codes(before * 5_000 + middle + after * 5_000) == ["syntax-too-deep"]


def test_deep_blocks():
    count = (MAX_DEPTH - 2) // 2
    tree = parse_block(Source("<block>", "{" + "if a {" * count + "}" * count + "}"))
    assert parse_block(Source("<block>", pretty(tree))) == tree
    assert codes("{" + "if a {" * 3_000 + "}" * 3_000 + "}", parse_block) == ["syntax-too-deep"]


def test_long_texts_are_not_deep():
    assert len(parse_block(Source("<block>", "{" + "f(a); " * 3_000 + "}")).items) == 3_000
    many = expr("[" + "a, " * 3_000 + "]")
    assert isinstance(many, s.ListValue)
    assert len(many.items) == 3_000


# ---------------------------------------------------------------------------------------------- layout


def test_what_is_too_long_is_broken_at_brackets():
    call = s.Call("function", tuple(s.Name(f"argument_number_{i}") for i in range(8)))
    assert (
        pretty(s.Let("x", None, call))
        == "let x = function(\n" + ",\n".join(f"  argument_number_{i}" for i in range(8)) + "\n);"
    )
    total = s.Name("number_0")
    for i in range(1, 14):
        total = s.Binary("+", total, s.Name(f"number_{i}"))
    assert (
        pretty(s.Return(total))
        == "return number_0\n" + "\n".join(f"  + number_{i}" for i in range(1, 14)) + ";"
    )


# ---------------------------------------------------------------------------------------------- grammars


@pytest.mark.slow
def test_the_grammar_is_strict():
    compose(LEXICAL, TYPES, EXPR, STMT, start=("expr", "type", "block", "operator")).build(strict=True)


def test_no_keyword_takes_a_name_away():
    """Where the lexer may read a name, each keyword is reserved or the grammar takes it back as a name."""
    assert _ambiguous(PARSER.tables) == {
        ("mark",),  # head
        ("ref",),  # param_name
        ("mark", "merge"),  # PORT_RESERVED
        ("array", "decimal"),  # names of types that the language itself declares
    }


def _ambiguous(tables) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for state in (tables.states[number] for number in tables.states):
        if "NAME" in state:
            words = (tables.terminals[name].text or "" for name in state if name in tables.terminals)
            found.add(tuple(sorted(w for w in words if w.isidentifier() and w not in RESERVED)))
    return found - {()}


def test_a_later_module_extends_an_earlier_one():
    more = Module("more", '%extend atom: "now" -> now\n', "more.lark")

    class Builder(StmtBuilder):
        def now(self, tree, args):
            return s.Call("now", (), span=self.span(tree))

    source = Source("<expr>", "a + now")
    tree = compose(LEXICAL, TYPES, EXPR, more, start=("expr",)).parse(source)
    assert Builder(source).build(tree) == s.Binary("+", a, s.Call("now", ()))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\nmine: nothing\n", "mine.lark:2: "),
        ("\n\nmine: : :\n", "mine.lark:3: "),
        ("// a comment\nexpr: NAME\n", "mine.lark:2: "),
    ],
)
def test_a_mistake_in_a_grammar_names_the_module(text, place):
    mine = Module("mine", text, "mine.lark")
    with pytest.raises(InternalError, match="^" + re.escape(place)):
        compose(LEXICAL, TYPES, EXPR, mine, start=("expr",)).parse(Source("<expr>", "a"))


def test_modules_are_read_from_packages():
    found = grammar.module("river.lang", "types.lark")
    assert found == TYPES
    assert found.name == "types"
    assert found.path.endswith("types.lark")
