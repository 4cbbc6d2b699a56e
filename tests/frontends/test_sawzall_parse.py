"""What River-Sawzall texts say: Figure 3 (d), each production, and mistakes."""

from __future__ import annotations

import pytest

from frontends.sawzall import FRONTEND
from frontends.sawzall import syntax as z
from frontends.sawzall.parse import PARSER
from river.diagnostics import Rejected
from river.lang import syntax as s
from river.source import Source

FIGURE = """
queryOrigins: table sum[url:string] of count: int;
queryTargets: table sum[url:string] of count: int;
logRecord: { origin: string; target: string } = input;
emit queryOrigins[logRecord.origin] <- 1;
emit queryTargets[logRecord.target] <- 1;
"""
INT, STRING = s.TypeName("int"), s.TypeName("string")


def items(text: str) -> tuple[z.Stmt, ...]:
    return FRONTEND.parse(Source("<program>", text)).items


def expr(text: str) -> z.Expr:
    (item,) = items(f"x := {text};")
    assert isinstance(item, z.Declare)
    assert item.value is not None
    return item.value


@pytest.mark.slow
def test_the_grammar_is_strict() -> None:
    assert PARSER.build(strict=True)


def test_figure_3d() -> None:
    count, url = z.Element("count", INT), z.Element("url", STRING)
    record = z.TupleType(tuple(z.Tagged(name, STRING, None, None, None) for name in ("origin", "target")))
    assert items(FIGURE) == (
        z.TableDecl("queryOrigins", z.TableType("sum", None, (url,), count, None)),
        z.TableDecl("queryTargets", z.TableType("sum", None, (url,), count, None)),
        z.Declare("logRecord", record, s.Name("input")),
        z.Emit("queryOrigins", (s.Member(s.Name("logRecord"), "origin"),), s.Int(1), None),
        z.Emit("queryTargets", (s.Member(s.Name("logRecord"), "target"),), s.Int(1), None),
    )


def test_tables() -> None:
    (table,) = items("best: table top(10)[string][k: int] of url: string weight n: float;")
    assert table == z.TableDecl("best", z.TableType(
        "top", s.Int(10), (z.Element(None, STRING), z.Element("k", INT)), z.Element("url", STRING),
        z.Element("n", s.TypeName("float")),
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 << 2 + 3", "(1 << 2) + 3"),  # as in szl: shifts bind like products
        ("1 | 2 & 3", "1 | (2 & 3)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("a == 1 && b == 2 || c", "((a == 1) && (b == 2)) || c"),
        ("a and b or c", "(a and b) or c"),
        ("!a == b", "(!a) == b"),
        ("not a == b", "(!a) == b"),
        ("-x[1].y", "-(x[1].y)"),
        ("1 >> 2 > 3", "(1 >> 2) > 3"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert expr(text) == expr(same)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("'a'", s.Int(97)),
        (r"'\n'", s.Int(10)),
        (r"'\''", s.Int(39)),
        (r"`a\d`", s.String(r"a\d")),
        (r'"a\t"', s.String("a\t")),
        ("0x1f", s.Int(31)),
        ("052", s.Int(42)),
        ("0b101", s.Int(5)),
        ("5U", z.Number("uint", 5)),
        ("0x10t", z.Number("time", 16)),
        ("0x1dP", z.Number("fingerprint", 29)),
        ('T"now"', z.TimeText("now")),
        ("1.", s.Float(1.0)),
        (".5e1", s.Float(5.0)),
        (r'"\x41\u00e9\U0001F600\101\a\b\f\v\q"', s.String("A\u00e9\U0001f600A\a\b\f\vq")),
        (r'B"\xff\0"', s.Bytes(b"\xff\0")),
        ("B`a\\x`", s.Bytes(b"a\\x")),
        ('X"0aFF"', s.Bytes(b"\x0a\xff")),
        ("{}", s.ListValue(())),
        ("{1, 2}", s.ListValue((s.Int(1), s.Int(2)))),
        ("{:}", s.MapValue(())),
        ("{a: 1}", s.RecordValue((s.FieldValue("a", s.Int(1)),))),
        ("{(a): 1}", s.MapValue(((s.Name("a"), s.Int(1)),))),
        ("x[1:2]", s.Slice(s.Name("x"), s.Int(1), s.Int(2))),
        ("f(1, x)", s.Call("f", (s.Int(1), s.Name("x")))),
    ],
)
def test_values(text: str, tree: s.Expr) -> None:
    assert expr(text) == tree


def test_types() -> None:
    (item,) = items("x: array of map [string] of array of int;")
    assert isinstance(item, z.Declare)
    strings = s.TypeName("map", (STRING, s.TypeName("list", (INT,))))
    assert item.type == s.TypeName("list", (strings,))


def test_an_else_belongs_to_the_nearest_if() -> None:
    (item,) = items("if (a) for (;;) if (b) x = 1; else x = 2;")
    loop = z.For(None, None, None, (z.If(s.Name("b"), _set(1), _set(2)),))
    assert item == z.If(s.Name("a"), (loop,), ())


def _set(value: int) -> tuple[z.Stmt, ...]:
    return (z.Assign(s.Name("x"), s.Int(value)),)


def test_statements() -> None:
    text = """
    do x++; while (x < 3);
    switch (x) { case 1, 2: x = 1; break; default: ; }
    when (i: each int; k: all string; a[i] == m[k]) { x--; continue; }
    f: function(n: int): int { return n; };
    g: function() { return; };
    static k: int = 1;  # a comment
    type T = {a: int, b: float?};
    """
    do, switch, when, f, g, static, declared = items(text)
    assert do == z.DoWhile((z.Step(s.Name("x"), 1),), s.Binary("<", s.Name("x"), s.Int(3)))
    assert switch == z.Switch(s.Name("x"), (z.Case((s.Int(1), s.Int(2)), (*_set(1), z.Break())),), ())
    assert isinstance(when, z.When)
    assert [(q.name, q.quantity) for q in when.quantifiers] == [("i", "each"), ("k", "all")]
    assert when.body == (z.Step(s.Name("x"), -1), z.Continue())
    assert f == z.FunctionDecl("f", (z.Param("n", INT),), INT, (z.Return(s.Name("n")),))
    assert g == z.FunctionDecl("g", (), None, (z.Return(None),))
    assert static == z.StaticDecl("k", INT, s.Int(1))
    assert isinstance(declared, z.TypeDecl)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = ;", "syntax-unexpected"),
        ("x = 1; /* no comment */", "syntax-comment"),
        ("if (a) {", "syntax-end"),
        ('x = "a', "syntax-string"),
        ("emit: int = 1;", "syntax-unexpected"),
        ("each: int = 1;", "syntax-reserved"),
        ("x = 09;", "syntax-number"),
        (f"x = {'9' * 1001};", "syntax-number"),
        ('x = X"0g";', "syntax-string"),
        ('x = B"\u0100";', "syntax-string"),
        (r'x = "\x100";', "syntax-string"),
        (r'x = "\ud800";', "syntax-string"),
        (r'x = "\u12";', "syntax-string"),
        (r'x = "\0";', "syntax-string"),
        ("switch (x) { case 1: ; }", "syntax-statement"),
        ("switch (x) { default: ; default: ; }", "syntax-statement"),
        ("for (i = 0; i < 3; j: int = 1) ;", "syntax-statement"),
        ("x = 'ab';", "syntax-character"),
        ("x.y = fn(a) => a;", "syntax-unexpected"),
    ],
)
def test_mistakes(text: str, code: str) -> None:
    with pytest.raises(Rejected) as found:
        items(text)
    assert [d.code for d in found.value.diagnostics] == [code]


def test_what_is_missing_is_not_lost_among_operators() -> None:
    with pytest.raises(Rejected) as found:
        items("x = 1 y = 2;")
    (diagnostic,) = found.value.diagnostics
    assert (diagnostic.message, diagnostic.help) == ("unexpected `y`", "expected one of an operator or `;`")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x = 3; // three", "a comment begins with `#`, and ends with the line"),
        ("/* three */ x = 3;", "a comment begins with `#`, and ends with the line"),
        ("a[1].n += 2;", "write `a[1].n = a[1].n + ...;`"),
        ("x <<= 2;", "write `x = x << ...;`"),
        ("x = y > 1 ? 2 : 3;", "a choice is a statement, `if (c) ...; else ...;`"),
        ("x = y++;", "it has no value: write `y++;` as a statement of its own"),
        ("if x > 1 y = 2;", "write `if (...)`, with parentheses"),
        ("while x > 1 { y = 2; }", "write `while (...)`, with parentheses"),
        ("if (x = 1) y = 2;", "`=` is a statement: to compare is written `==`"),
        ("string s = 3;", "the type stands behind the name: `s: string = ...;`"),
        ("for (int i = 0; i < 3; i++) x = i;", "the type stands behind the name: `i: int = ...;`"),
        ("unsigned long n;", "the type stands behind the name, as in `n: int = ...;`"),
        ("const k = 3;", "write `k := ...;`"),
        ("for (x in xs) y = x;", "the items of `xs` are met by `for (i: int = 0; i < len(xs); i++)`"),
        ("x = (int) 3.5;", "a conversion is written `int(...)`"),
        ("x = y->z;", "a field is written `y.z`"),
        ("a: int[3];", "an array has the type `array of int`"),
        ('emit stdout << "a";', "a value is sent by `<-`"),
        ('emit t("a") <- 1;', "the indices of a table stand in brackets: `emit t[...] <- value;`"),
        ("m: map<string, int>;", "types are written `map [string] of int` and `array of int`"),
        ("f(a: int): int { return a; };", "a function is declared `f: function(a: int): int { ... };`"),
        (
            "f: function(): int { return 3 };",
            "put `;` in front of it: statements and declarations end with it",
        ),
        ("emit t[] <- 3;", "expected an expression"),
        ("x = 2;\ny = 3\n# the end", "put `;` at the end of line 2"),
        ("# two\nx = 2  # two\n\ny = 3;", "put `;` at the end of line 2"),
        ("f: function() { x = 2; }\ny = 3;", "put `;` at the end of line 1"),
        ("emt stdout <- s;", "a value is sent by `emit stdout <- value;`"),
        ("x: array of int = [1, 2];", "an array is written `{1, 2}`, an empty one `{}`"),
        ("m: map[string, int] of int;", "a map has the type `map[string] of int`"),
        ("a: array[int] of int;", "an array has the type `array of int`"),
        ("t := s[1:];", "a part up to the end is `s[1:$]`"),
        ("t := s[:1];", "a part from the beginning is `s[0:...]`"),
        ("switch (1) { case 1: ; default: }", "a branch has a statement"),
        ("switch (1) { case 1: default: ; }", "a branch has a statement"),
        (
            "function f(x: int): int { return x; };",
            "a function is declared `f: function(a: int): int { ... };`",
        ),
        ("if (b) x = 1 else x = 2;", "the statement in front of `else` ends with `;`"),
        ("t: table sum[a: int, b: int] of int;", "each index has brackets of its own"),
        ("emit t[1, 2] <- 1;", "each index has brackets of its own"),
        ("if (b) { x = 1; }; else x = 2;", "`else` stands behind the statement of its `if`"),
        ('if (b)\n{ x = 1; s = "{"; # {\n', "the `{` of line 2 has no `}`"),
        ("if (b) { x = 1; } }", "there is no `{` in front of it that is open"),
        ("x int = 3;", "the type stands behind a colon: `x: int ...;`"),
        ("x: int := 3;", "write `x: int = ...;`, or `x := ...;`"),
        ("c: top(3) of string;", "a table is declared `c: table top ...;`"),
        ("r: struct { a: int } = input;", "a record has no word in front"),
        ("if (b) then x = 4;", "behind `if (...)` stands the statement"),
        ("if (b) x = 4; elif (c) x = 6;", "write `else if (...)`"),
        ("f: function(x: int) -> int { return x; };", "the type of what a function gives stands behind `:`"),
        ("m: map of string to int;", "a map has the type `map [string] of int`"),
        ("try { x = 3; }", "what has no value is asked for by `def(x)`"),
        ('if ("a" in m) x = 1;', "whether a map has a key is `haskey(m, k)`"),
        ("s = `a;\nx = 3;", "a text in backquotes ends with one"),
        ("größe: int = 3;", "names are made of the letters a to z"),
        ("emit c < - 3;", "`<-` is one sign"),
        ("x = 1, y = 2;", "expected one of an operator or `;`"),
    ],
)
def test_habits_of_other_languages_are_told_what_is_written_here(text: str, hint: str) -> None:
    with pytest.raises(Rejected) as caught:
        items(text)
    (found,) = caught.value.diagnostics
    assert found.code in ("syntax-unexpected", "syntax-comment", "syntax-end")
    assert (found.help or "").startswith(hint)
