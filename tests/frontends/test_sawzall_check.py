"""What River-Sawzall refuses: each code, with its place; and what the checker makes of what it accepts."""

from __future__ import annotations

import pytest

from frontends.sawzall import FRONTEND
from frontends.sawzall import typed as z
from frontends.sawzall.types import spelled
from river.diagnostics import Diagnostic, Rejected
from river.lang import types as t
from river.source import Source

HEAD = """
r: {i: int, u: uint, f: float, s: string, a: array of int, m: map [string] of int, o: int?} = input;
t: table sum[k: string] of int;
best: table top(3) of s: string weight n: int;
"""


def check(text: str, head: str = HEAD) -> z.Program:
    return FRONTEND.check(FRONTEND.parse(Source("<program>", head + text)))


def refused(text: str, head: str = HEAD) -> tuple[Diagnostic, ...]:
    with pytest.raises(Rejected) as found:
        check(text, head)
    return found.value.diagnostics


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("x: int = 1; x: int = 2;", "sawzall-duplicate", "x: int = 2"),
        ("type T = int; type T = int;", "sawzall-duplicate", "type T = int"),
        ("type T = {a: int, a: int};", "sawzall-duplicate", "a: int"),
        ("x: nothing;", "sawzall-unknown-type", "nothing"),
        (
            "type A = {" + ", ".join(["int"] * 100) + "}; x: {" + ", ".join(["A"] * 100) + "};",
            "sawzall-type",
            "{" + ", ".join(["A"] * 100) + "}",
        ),
        ("x: t;", "sawzall-unknown-type", "t"),
        ("type T = int; x := T;", "sawzall-not-a-value", "T"),
        ("x := len(array of int);", "sawzall-not-a-value", "array of int"),
        ("x: uint = 5P + 1U;", "sawzall-operands", "5P + 1U"),
        ("x := 18446744073709551616U;", "sawzall-literal-range", "18446744073709551616U"),
        ('x := T"Mon";', "sawzall-time", 'T"Mon"'),
        ('x := T"Mon Oct 16 09:30:00 NOWHERE 2006";', "sawzall-time", 'T"Mon Oct 16 09:30:00 NOWHERE 2006"'),
        ("n: int = 3; q: table top(n) of string weight int;", "sawzall-table", "n"),
        ("undefined: int;", "sawzall-duplicate", "undefined: int"),
        ("undefined: table sum of int;", "sawzall-duplicate", "undefined: table sum of int;"),
        ("x := {a: 1, a: 2};", "sawzall-duplicate", "{a: 1, a: 2}"),
        ("x: int = y;", "sawzall-unknown-name", "y"),
        ("x: int = t;", "sawzall-not-a-value", "t"),
        ('x: int; x = "a";', "sawzall-type-mismatch", '"a"'),
        ("x: int = r.a;", "sawzall-type-mismatch", "r.a"),
        ("x: {a: int, b: int} = {1};", "sawzall-type-mismatch", "{1}"),
        ("x: {a: int} = {b: 1};", "sawzall-type-mismatch", "{b: 1}"),
        ("x: int = 9223372036854775808;", "sawzall-literal-range", "9223372036854775808"),
        ("x := r.q;", "sawzall-unknown-field", "r.q"),
        ("x := r.i.q;", "sawzall-unknown-field", "r.i.q"),
        ("x := r.i[0];", "sawzall-not-indexed", "r.i[0]"),
        ("x := r.i[0:1];", "sawzall-not-indexed", "r.i[0:1]"),
        ("x := r.i + r.f;", "sawzall-operands", "r.i + r.f"),
        ("s: string = r.s; s++;", "sawzall-operands", "s++"),
        ("x := nothing(1);", "sawzall-unknown-function", "nothing(1)"),
        ("x := loader(`a`);", "sawzall-unknown-function", "loader(`a`)"),
        ("x := sort({1}, 2);", "sawzall-type-mismatch", "2"),
        ('x := saw(r.s, "(");', "sawzall-pattern", '"("'),
        ("x := saw(r.s);", "sawzall-arguments", "saw(r.s)"),
        ('x := sawn(r.s, "a", "b");', "sawzall-type-mismatch", "r.s"),
        ('q: string; x := sawzall(r.s, rest q, "b");', "sawzall-arguments", "rest q"),
        ('x := saw(r.s, "a", rest n);', "sawzall-unknown-name", "n"),
        ('x := saw(r.s, "a", rest r);', "sawzall-arguments", "rest r"),
        ('x := match(skip "a", r.s);', "sawzall-arguments", 'skip "a"'),
        ("x := regex(string);", "sawzall-arguments", "regex(string)"),
        ("x := regex(int, 37);", "sawzall-arguments", "regex(int, 37)"),
        ("x := hourof(r.s);", "sawzall-operands", "hourof(r.s)"),
        ("q: table sample of int;", "sawzall-table", "sample"),
        ('q: table sum of n: int format("%d", n);', "sawzall-table", 'format("%d", n)'),
        ('q: table sum of n: int file("x");', "sawzall-table", 'file("x")'),
        ('q: table collection of n: int file("x");', "sawzall-table", "n: int"),
        ('q: table collection of bytes file("x") proc("y");', "sawzall-table", 'file("x")'),
        ('q: table collection of bytes file("x") file("y");', "sawzall-table", 'file("y")'),
        ("q: table collection of bytes file(); emit q <- B`x`;", "sawzall-format", "file()"),
        ("static q: int;", "sawzall-static", "static q: int;"),
        ("q: table quantile(1) of int;", "sawzall-table", "quantile"),
        ("q: table text[int] of string;", "sawzall-table", "int"),
        ("q: table text of int;", "sawzall-table", "int"),
        ("q: table bootstrapsum(3) of int weight int;", "sawzall-table", "int"),
        ("q: table distinctsample(3) of int;", "sawzall-table", "distinctsample"),
        ("q: table sum of array of string;", "sawzall-table", "array of string"),
        (
            "{ g: function() { later(); }; } later: function() { return; };",
            "sawzall-unknown-function",
            "later()",
        ),
        ("{ type T = int; } x: T;", "sawzall-unknown-type", "T"),
        ("q: table summ of int;", "sawzall-unknown-table", "summ"),
        ("f: function(x: int): int { return x; }; y := f();", "sawzall-arguments", "f()"),
        ("x := def(1, 2);", "sawzall-arguments", "def(1, 2)"),
        ("assert(true, 1);", "sawzall-type-mismatch", "1"),
        ("x := new(int, 3, 0);", "sawzall-arguments", "new(int, 3, 0)"),
        ("x := new(array of int, 3);", "sawzall-arguments", "new(array of int, 3)"),
        ("x := convert(r, 3);", "sawzall-arguments", "convert(r, 3)"),
        ("f: function() { return; }; x := f();", "sawzall-no-result", "f()"),
        ("x := assert(true);", "sawzall-no-result", "assert(true)"),
        ('x := match("(", r.s);', "sawzall-pattern", '"("'),
        ("x := format(r.f);", "sawzall-type-mismatch", "r.f"),
        ('x := format("%d");', "sawzall-format", 'format("%d")'),
        ('x := format("a", 1);', "sawzall-format", 'format("a", 1)'),
        ('x := format("%5z", 1);', "sawzall-format", "1"),
        ('x := format("%#d", 1);', "sawzall-format", "1"),
        ('x := format("%100d", 1);', "sawzall-format", '"%100d"'),
        ('x := format("%", 1);', "sawzall-format", "1"),
        ('x := format("%x", 1.0);', "sawzall-format", "1.0"),
        ('x := format("%d", r.s);', "sawzall-format", "r.s"),
        ("x := {};", "sawzall-needs-type", "{}"),
        ("x := {:};", "sawzall-needs-type", "{:}"),
        ("x: map [string] of int = {};", "sawzall-type-mismatch", "{}"),
        ("x := {r.m: 1, r.m: 2};", "sawzall-key-type", "{r.m: 1, r.m: 2}"),
        ("q: table sum[map [int] of int] of int;", "sawzall-key-type", "map [int] of int"),
        ("x: int?;", "sawzall-optional", "int?"),
        ("x: i32;", "sawzall-unknown-type", "i32"),
        ("static k: int = r.i;", "sawzall-static", "r"),
        ("f: function(): int { return r.i; }; static k: int = f();", "sawzall-static", "f()"),
        ("f: function(): int { emit t[r.s] <- 1; return 1; }; static k: int = f();", "sawzall-static", "f()"),
        ("static k: int = 1; k = 2;", "sawzall-assign", "k"),
        ("when (i: each int; r.a[i] > 0) i = 1;", "sawzall-assign", "i"),
        ("f: function(): array of int { return {1}; }; f()[0] = 1;", "sawzall-assign", "f()"),
        ("x: {a: {b: int}?}; x.a.b = 1;", "sawzall-assign", "x.a"),
        ("q: table top of int weight int;", "sawzall-table", "top"),
        ("q: table sum(3) of int;", "sawzall-table", "sum"),
        ("q: table set(0) of int;", "sawzall-table", "set"),
        ("q: table sum of string;", "sawzall-table", "string"),
        ("q: table mrcounter of float;", "sawzall-table", "float"),
        ("q: table maximum(3) of int;", "sawzall-table", "maximum"),
        ("q: table sum of int weight int;", "sawzall-table", "int"),
        ("q: table top(3) of int weight string;", "sawzall-table", "string"),
        ("emit t <- 1;", "sawzall-emit", "t"),
        ('emit t["a"] <- 1 weight 2;', "sawzall-emit", 'emit t["a"] <- 1 weight 2;'),
        ('emit best <- "a";', "sawzall-emit", 'emit best <- "a";'),
        ("q: table top(3) of int; emit q <- 1 weight 2;", "sawzall-emit", "emit q <- 1 weight 2;"),
        ("emit r <- 1;", "sawzall-emit", "r"),
        ("when (i: some int; r.i > 0) ;", "sawzall-when", "i: some int;"),
        ("when (i: all int; j: some int; r.a[i] > r.a[j]) ;", "sawzall-when", "j: some int;"),
        ("when (i: some string; r.a[0] > 0 && r.a[i] > 0) ;", "sawzall-type-mismatch", "i: some string;"),
        ("break;", "sawzall-jump", "break;"),
        ("while (true) { when (i: each int; r.a[i] > 0) break; }", "sawzall-jump", "break;"),
        ("while (true) { when (i: each int; r.a[i] > 0) continue; }", "sawzall-jump", "continue;"),
        ("switch (1) { case 1: continue; default: ; }", "sawzall-jump", "continue;"),
        ("return 1;", "sawzall-return", "return 1;"),
        ("f: function(): int { return; };", "sawzall-return", "return;"),
        ("q: {a: int} = input;", "sawzall-input", "q: {a: int} = input"),
    ],
)
def test_refused(text: str, code: str, place: str) -> None:
    (found,) = refused(text)
    assert found.code == code
    assert found.span is not None
    assert found.span.text == place


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("x: string = input; r: {a: int} = input;", ["sawzall-input"]),
        ("r: {a: int} = input; x: string = input;", ["sawzall-input"]),
        ("r: {} = input;", ["sawzall-input"]),
        ("emit nothing <- 1;", ["sawzall-unknown-name"]),
        ("r: {a: int} = input; t: table sum of int; emit t <- q; emit t <- z;", ["sawzall-unknown-name"] * 2),
        ("r: {a: nothing} = input; t: table sum of int; emit t <- r.a;", ["sawzall-unknown-type"]),
        ("r: {a: int} = input; t: table summ of int; emit t <- r.a;", ["sawzall-unknown-table"]),
    ],
)
def test_whole_programs(text: str, codes: list[str]) -> None:
    assert [d.code for d in refused(text, "")] == codes


@pytest.mark.parametrize(
    ("text", "help_line"),
    [
        ("f: function(x) { return; };", "a parameter is written `x: int`, with its type"),
        (
            "f: function(strng): int { return 1; };",
            "a parameter is written `strng: int`, with its type; or did you mean `string`?",
        ),
        ('emit sdtout <- "a";', "did you mean `stdout`?"),
        ("emit total <- 1;", "declare it: `total: table sum of int;`"),
        (
            "emit late <- 1;\nlate: table sum of int;",
            "it is declared in line 6: declare it before it is used",
        ),
        ("x: T;\n\ntype T = { a: int };", "it is declared in line 7: declare it before it is used"),
        ("q: table sum(3) of int;", "write `sum`"),
        ("q: table top(3) of int weight string;", "weights are added: they are numbers, or tuples of them"),
        (
            'q: table collection of { s: string } format("%s", s);',
            "give the value a name, `of v: {...}`, and write `v.s`",
        ),
        ('q: table collection of u: { s: string } format("%s", s);', "write `u.s`"),
        ('x := format("%#d", 3);', "leave `#` out"),
        ('b := B"a"; x := b.n;', "bytes that are a message are read by its type: `T(b)`"),
        (
            "x: int = null;",
            "a variable without a value is declared by `x: int;`, and `def(x)` is whether it has one",
        ),
        ('s := "abc"; s[0] = "z";', "a character is written `'z'`"),
        ('a := {"x"}; a = a + "y";', "an item is put behind an array by `a + { x }`"),
        ('x := 1 + "a";', "convert one of them, for instance `string(...)`"),
        ('println("a");', "`emit stdout <- ...;` prints a line, `format(...)` makes one"),
        ('x := substr("abc", 1, 2);', "a part of a text, bytes or an array is `s[from:to]`"),
        ('s := "abc"; n := s.length;', "how many there are is `len(x)`"),
        ("a: array of int = {1}; a.push(2);", "`a = a + { x };` puts an item behind an array"),
        (
            's := "abc"; x := s[0] == "a";',
            "a character is an `int`, as in `s[0] == 'a'`; a text is one by `string(...)`",
        ),
        (
            'x := int(B"1");',
            '`int(string(b), 10)` is the number in a text, `int(b, "fixed32-big")` in bytes',
        ),
        ('emit stdout <- B"a";', "convert it: `string(...)`"),
        ("x := 5; if (x) ;", "a condition compares: `x != 0`"),
        ('q: table sum[k: string][i: int] of int; emit q["a"] <- 1;', "write `emit q[...][...] <- ...;`"),
        (
            'q: table top(3) of string; emit q <- "a" weight 1;',
            "a table whose values weigh is declared by `... of v: T weight w: int;`",
        ),
        ('x := format("%d", "a");', "`%s` does"),
        ('x := format("%s", {1});', "`%v` does"),
        ('x := format("%s", B"a");', 'write it as text: `%s` of `string(b)`, or of `string(b, "hex")`'),
        ("x := r.ii;", "did you mean `i`?"),
        ("x := lenn(r.s);", "did you mean `len`?"),
        ("x: int; x = r.f;", "convert it: `int(...)`"),
        ("x := r.u + r.i;", "convert one of them, for instance `uint(...)`"),
        ("q: table topp(3) of int;", "did you mean `top`?"),
        ("x := 30 * MINUTE;", "a time is a number by `int(t)`, a number of microseconds a time by `time(n)`"),
        (
            "x := now() / HOUR;",
            "a time is a number by `int(t)`, a number of microseconds a time by `time(n)`",
        ),
        (
            'x := tobase64("a");',
            "in base 64; if the second is true, with - and _ and no = at the end; it takes (bytes, bool)",
        ),
        ("m: table maximum(1) of int weight int; emit m <- 1;", "write `emit m <- ... weight ...;`"),
        ("a: { x: int } = { 1, 2 };", "it is `{x: int}`"),
        (
            'a: { x: int, y: string } = { 1, "" }; b: { n: int, y: string } = a;',
            "tuples whose fields have other names are of another type: `{ a.x, a.y }`",
        ),
    ],
)
def test_help(text: str, help_line: str) -> None:
    (found,) = refused(text)
    assert found.help == help_line


def types(text: str) -> list[str]:
    program = check(text)
    return [spelled(v.type) for v in program.variables if v.kind == "local"]


def test_initialisers_convert_literals() -> None:
    text = (
        "a: float = 1; b := r.u + 1U; c := 1.0 * r.f; d: {x: float, y: int?} = {1, 2}; e: uint = 2 + 3; f := -1; "
        "g: array of float = {1, 2};"
    )
    assert types(text) == ["float", "uint", "float", "{x: float, y: int?}", "uint", "int", "array of float"]


def test_braces_are_what_is_wanted() -> None:
    text = 'k: string = "a"; z := {(k): 1}; a := {k: 1}; b: map [string] of int = {k: 1}; c := {"a": 1}; d: array of int = {};'
    assert types(text)[1:] == [
        "map [string] of int",
        "map [string] of int",
        "map [string] of int",
        "map [string] of int",
        "array of int",
    ]


def test_fields_of_tables_have_names() -> None:
    text = "q: table maximum(2)[int][value: string] of float weight float;"
    table = check(text).tables[-1]
    assert table.index == (("key0", t.I64), ("value", t.STRING))
    assert table.value == (("value_1", t.F64),)
    assert table.weight == (("weight", t.F64),)


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("x: int; x = 1; emit t[r.s] <- x;", False),
        ("x: int; if (r.i > 0) x = 1; emit t[r.s] <- x;", True),
        ("x: int; if (r.i > 0) x = 1; else x = 2; emit t[r.s] <- x;", False),
        ("x: int; if (r.i > 0) x = 1; else return; emit t[r.s] <- x;", False),
        ("x: int; for (i: int = 0; i < 3; i++) x = 1; emit t[r.s] <- x;", True),
        ("x: int; switch (r.i) { case 1: x = 1; default: x = 2; } emit t[r.s] <- x;", False),
        (
            "x: int; switch (r.i) { case 1: if (r.i > 0) break; x = 1; default: x = 2; } emit t[r.s] <- x;",
            True,
        ),
        ("x: int; f: function(): int { return x; }; x = 1; emit t[r.s] <- f();", True),
        ("x: int = 1; f: function(): int { if (r.i > 0) return x; return x; }; emit t[r.s] <- f();", False),
    ],
)
def test_what_may_be_read_before_it_has_a_value(text: str, loose: bool) -> None:
    (variable,) = [v for v in check(text).variables if v.name == "x" and v.kind == "local"]
    assert variable.loose == loose


@pytest.mark.parametrize(
    ("text", "fails", "ends"),
    [
        ("f: function(x: int): int { return x + 1; };", False, False),
        ("f: function(x: int): int { return 1 / x; };", True, False),
        ("f: function(x: int): bool { return def(1 / x); };", False, False),
        ("f: function(x: int): int { if (x > 0) return 1; };", False, True),
        ("f: function(x: int): int { if (x > 0) return 1; else return f(x + 1); };", False, False),
        ("f: function(): int { return r.o; };", True, False),
        ("f: function() { m: map [int] of int = {:}; m[1] = 2; };", False, False),
        ("f: function() { m: map [int] of int = {:}; m[1]++; };", False, True),
        ("f: function(x: int): int { y: int = 1 / x; return 1; };", False, False),
        ("f: function(x: int): int { y: int = 1 / x; return y; };", True, False),
        ("f: function(x: int): int { y: int = 1 / x; if (def(y)) return y; return 0; };", False, False),
        (
            "f: function(x: int): int { y: int = 1 / x; if (!def(y) || y > 3) return 0; return 1; };",
            False,
            False,
        ),
        ("f: function(x: int): int { y: int; y = 1 / x; return y; };", False, True),
        ("f: function(x: int) { when (i: some int; r.a[i] / x > 0) return; };", False, False),
        (
            "f: function(x: int): bool { return def(g(x)); }; g: function(x: int): int { x = 1 / x; return x; };",
            False,
            True,
        ),
    ],
)
def test_which_functions_may_be_undefined(text: str, fails: bool, ends: bool) -> None:
    assert (check(text).functions[0].fails, check(text).functions[0].ends) == (fails, ends)


def test_captures_are_passed_on() -> None:
    text = """
    x: int = 1; y: int = 2;
    f: function(n: int): int { if (n == 0) return x; return f(n - 1); };
    g: function(): int { return f(3) + y; };
    """
    f, g = check(text).functions
    variables = check(text).variables
    assert [variables[outside].name for outside, _ in f.captures] == ["x"]
    assert [variables[outside].name for outside, _ in g.captures] == ["x", "y"]
