"""How variables of copies become one: what is derived, what is not, and that it is what one copy would have done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river.il.combine import combines, combining, may_begin, start
from river.il.parse import parse
from river.il.partial import Partial, partial
from river.il.templates import Library
from river.il.verify import scope, verify
from river.lang import check, typed
from river.lang import syntax as s
from river.lang import types as t
from river.lang import values as v
from river.lang.evaluate import compile_operator, freeze_variables
from river.lang.operations import OPERATIONS, Neutral, effect_of
from river.source import Source
from river.testing.value_strategies import values_of

LIBRARY = Library.of({})
HEAD = "river 1;\ntype R = {k: string, n: i64, x: f64, m: map<string, i64>};\n"


def operator(body: str, variable: str) -> typed.Operator:
    found = parse(
        Source("test.river", f"{HEAD}operator f(x: R; $v: {variable}) -> () {{ on x(r) {{ {body} }} }}")
    )
    (decl,) = (d for d in found.decls if isinstance(d, s.Operator))
    made = check.operator(decl, scope(found, LIBRARY))
    assert isinstance(made, typed.Operator)
    return made


DERIVED = {
    "a count": ("$v = $v +% 1;", "i64", 7),
    "a product": ("$v = r.n *% $v;", "i64", 3),
    "a greatest": ("$v = max($v, r.n);", "i64", 2),
    "a least text": ("$v = min($v, r.k);", "string", "b"),
    "a greatest that is there": ("$v = sqlmax($v, r.n);", "i64?", None),
    "bits": ("$v = $v ^ r.n;", "i64", 5),
    "an exact sum": ("add($v, r.x);", "fsum", v.ZERO_SUM),
    "two fields": ("$v.a = $v.a +% r.n; add($v.b, r.x);", "{a: i64, b: fsum, c: i64}", (1, v.ZERO_SUM, 9)),
    "by key": ("with e = $v[r.k] else 0 { e = e +% r.n; }", "map<string, i64>", {"a": 5}),
    "by key, from a default": ("with e = $v[r.k] else 4 { e = max(e, r.n); }", "omap<string, i64>", {}),
    "by two keys": (
        "with e = $v[r.k] else {} { with f = e[r.n] else zero() { f.a = f.a +% 1; f.b = min(f.b, r.n); } }",
        "map<string, map<i64, {a: i64, b: i64}>>",
        {},
    ),
    "keys": ("with e = $v[r.k] else 1 { }", "map<string, i64>", {}),
    "a map": ("for k, n in r.m { with e = $v[k] else 0 { e = e +% n; } }", "map<string, i64>", {"a": 1}),
    "the least keys": ("with e = $v[r.n] else 0 { e = e +% 1; } keep_first($v, 2);", "omap<i64, i64>", {}),
    "the greatest, if any": (
        "if r.n > 0 { with e = $v[r.n] else {} { with f = e[r.k] else 0 { f = f ^ r.n; } keep_last(e, 1); } }",
        "map<i64, omap<string, i64>>",
        {},
    ),
    "least keys of many": (
        "for k, n in r.m { with e = $v[k] else 3 { e = max(e, n); } } keep_first($v, 1);",
        "omap<string, i64>",
        {},
    ),
    "what is kept in a field": (
        "$v.n = $v.n +% 1; with e = $v.kept[r.n] else 0 { } keep_last($v.kept, 2);",
        "{n: i64, kept: omap<i64, i64>}",
        (3, v.default(t.OMap(t.I64, t.I64))),
    ),
    "some": ("if r.n > 1 { $v = $v +% r.n; } else { $v = $v +% 3; }", "i64", 0),
}


@pytest.mark.some(9)
@pytest.mark.parametrize("name", DERIVED)
@settings(max_examples=8)
@given(data=st.data())
def test_copies_combined_are_one(name: str, data: st.DataObject) -> None:
    body, _, initial = DERIVED[name]
    op = operator(body, DERIVED[name][1])
    (how,) = combines(op)
    type_ = op.vars[0].type
    assert how is not None
    first = v.frozen_form(type_, initial.items()) if isinstance(initial, dict) else initial
    assert may_begin(how, first)
    item = st.tuples(
        st.sampled_from("ab"),
        st.sampled_from([0, 1, 7, -1, (1 << 63) - 1]),
        st.sampled_from([0.5, 1e300]),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2).map(
            lambda d: v.frozen_form(op.ports[0].type.fields[3][1], d.items())  # pyright: ignore[reportAttributeAccessIssue]
        ),
    )
    parts = data.draw(st.lists(st.lists(item, max_size=4), min_size=1, max_size=4))
    made = [fired(op, start(how, type_, first) if i else first, part) for i, part in enumerate(parts)]
    combined, *others = made
    order = data.draw(st.permutations(others))
    for other in order:
        combined = fired(combining(op, 0, how), combined, [other])
    whole = fired(op, first, [item for part in parts for item in part])
    assert v.observed(type_, combined) == v.observed(type_, whole)
    # The others may be combined with each other first.
    if len(others) > 1:
        rest = others[0]
        for other in others[1:]:
            rest = fired(combining(op, 0, how), rest, [other])
        assert v.observed(type_, fired(combining(op, 0, how), made[0], [rest])) == v.observed(type_, whole)


def fired(op: typed.Operator, variable: Any, items: list[Any]) -> Any:
    """The variable of an operator after firings."""
    variables = [variable]
    (fire,) = compile_operator(op).item
    assert fire is not None
    for each in items:
        fire(variables, each, [])
    return freeze_variables(op, variables)[0]


def test_entries_may_begin_with_what_a_function_or_a_constant_says() -> None:
    text = """operator f(x: R; $v: map<string, i64>) -> () {
      const LEAST: i64 = 4;
      fn least(n: i64) -> i64 { return div.trunc(n, 2); }
      on x(r) { with e = $v[r.k] else least(LEAST) { e = max(e, r.n); } }
    }"""
    (decl,) = (d for d in parse(Source("test.river", HEAD + text)).decls if isinstance(d, s.Operator))
    op = check.operator(decl, scope(parse(Source("test.river", HEAD + text)), LIBRARY))
    assert isinstance(op, typed.Operator)
    (how,) = combines(op)
    assert how is not None
    none = v.frozen_form(op.ports[0].type.fields[3][1], ())  # pyright: ignore[reportAttributeAccessIssue]
    parts = [fired(op, v.default(op.vars[0].type), [(key, n, 0.0, none)]) for key, n in (("a", 1), ("b", 9))]
    assert dict(fired(combining(op, 0, how), parts[0], [parts[1]])) == {"a": 2, "b": 9}


REFUSED = {
    "a sum that may trap": ("$v = $v + r.n;", "i64"),
    "a sum of floats": ("$v = $v + r.x;", "f64"),
    "a greatest float": ("$v = max($v, r.x);", "f64"),
    "the last": ("$v = r.n;", "i64"),
    "a difference": ("$v = $v -% r.n;", "i64"),
    "two operations": ("$v = $v +% 1; $v = $v *% 3;", "i64"),
    "what is read": ("if $v < 3 { $v = $v +% 1; }", "i64"),
    "a count from another beginning": ("with e = $v[r.k] else 4 { e = e +% 1; }", "map<string, i64>"),
    "a beginning that is the item's": ("with e = $v[r.k] else r.n { e = max(e, r.n); }", "map<string, i64>"),
    "two beginnings": (
        "with e = $v[r.k] else 0 { e = max(e, r.n); } with e = $v[r.k] else 1 { e = max(e, r.n); }",
        "map<string, i64>",
    ),
    "an entry that must be there": ("with e = $v[r.k] { e = e +% 1; }", "map<string, i64>"),
    "an entry that is read": ("$v[r.k] = $v[r.k] +% 1;", "map<string, i64>"),
    "an entry that goes": ("with e = $v[r.k] else 0 { e = e +% 1; drop e; }", "map<string, i64>"),
    "what is not always kept": (
        "with e = $v[r.n] else 0 { e = e +% 1; } if r.n > 1 { keep_first($v, 2); }",
        "omap<i64, i64>",
    ),
    "what is kept before": ("keep_first($v, 2); with e = $v[r.n] else 0 { e = e +% 1; }", "omap<i64, i64>"),
    "what may be left out": (
        "with e = $v[r.n] else 0 { e = e +% 1; } if r.n > 1 { return; } keep_first($v, 2);",
        "omap<i64, i64>",
    ),
    "both ends": ("with e = $v[r.n] else 0 { } keep_first($v, 2); keep_last($v, 1);", "omap<i64, i64>"),
    "as many as the item says": ("with e = $v[r.n] else 0 { } keep_first($v, r.n);", "omap<i64, i64>"),
    "what is kept of another entry": (
        'with e = $v[r.k] else {} { with f = e[r.n] else 0 { } } with e = $v["b"] else {} { keep_first(e, 2); }',
        "map<string, omap<i64, i64>>",
    ),
    "nothing put, some kept": ("keep_first($v, 2);", "omap<i64, i64>"),
    "a list": ("push($v, r.n);", "list<i64>"),
    "a bag, whose order shows": ("add($v, r.n);", "bag<i64>"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_proven_has_no_combine(name: str) -> None:
    assert combines(operator(*REFUSED[name])) == (None,)


def test_a_function_that_changes_a_place_is_not_followed() -> None:
    text = "fn f(ref a: i64, n: i64) -> unit { a = a +% n; }"
    source = f"{HEAD}operator f(x: R; $v: i64) -> () {{ {text} on x(r) {{ f($v, r.n); }} }}"
    (decl,) = (d for d in parse(Source("test.river", source)).decls if isinstance(d, s.Operator))
    made = check.operator(decl, scope(parse(Source("test.river", source)), LIBRARY))
    assert combines(made) == (None,)


def test_entries_that_did_not_begin_with_the_default_count_once() -> None:
    (how,) = combines(operator("with e = $v[r.k] else 4 { e = max(e, r.n); }", "map<string, i64>"))
    assert how is not None
    assert may_begin(how, {})
    assert not may_begin(how, {"a": 1})


@pytest.mark.parametrize(("step", "combined"), [("(m + 1) & 255", True), ("m | 1", False)])
def test_it_is_not_asked_for_ever_what_entries_begin_with(
    step: str, combined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("river.lang.patience.TURNS", 10_000)
    fn = f"fn first() -> i64 {{ var m: i64 = 1; while m != 0 {{ m = {step}; }} return m; }}"
    body = "with e = $v[r.k] else c { e = e +% 1; }"
    source = f"{HEAD}operator f(x: R; $v: map<string, i64>) -> () {{ {fn} const c: i64 = first(); on x(r) {{ {body} }} }}"
    found = parse(Source("test.river", source))
    (decl,) = (d for d in found.decls if isinstance(d, s.Operator))
    (how,) = combines(check.operator(decl, scope(found, LIBRARY)))
    assert (how is not None) is combined


def _cells() -> list[tuple[str, t.Type, Neutral]]:
    """The operations that combine cells, with the types of these."""
    kinds = (t.BOOL, t.I32, t.I64, t.U64, t.I128, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION, t.FSUM)
    found: list[tuple[str, t.Type, Neutral]] = []
    for name, operation in OPERATIONS.items():
        for type_ in (*kinds, *map(t.Optional, (t.I64, t.STRING)), t.Decimal(6, 2)):
            stated = effect_of(operation, (type_, type_))
            signature = operation.rule((type_, type_), None)
            if stated.neutral is not None and signature is not None and signature.params == (type_, type_):
                found.append((name, type_, stated.neutral))
    return found


CELLS = _cells()


def test_sums_products_bits_and_extremes_combine() -> None:
    assert {name for name, _, _ in CELLS} == {
        "+%", "*%", "&", "|", "^", "min", "max", "sqlmin", "sqlmax", "merge",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "type_", "neutral"), CELLS)
@settings(max_examples=8)
@given(data=st.data())
def test_combining_is_associative_and_commutative_with_a_neutral_element(
    name: str, type_: t.Type, neutral: Neutral, data: st.DataObject
) -> None:
    operation = OPERATIONS[name]
    meaning = operation.meaning((type_, type_), type_ if operation.mutates is None else t.UNIT)

    def both(a: Any, b: Any) -> Any:
        found = meaning(a, b)
        return found if operation.mutates is None else found[0]

    def same(a: Any, b: Any) -> bool:
        return v.observed(type_, a) == v.observed(type_, b)

    a, b, c = (data.draw(values_of(type_)) for _ in range(3))
    assert same(both(a, b), both(b, a))
    assert same(both(a, both(b, c)), both(both(a, b), c))
    match neutral:
        case Neutral.ZERO:
            assert same(both(a, v.default(type_)), a)
        case Neutral.ONE:
            assert same(both(a, 1), a)
        case Neutral.ANY:
            assert same(both(a, a), a)


# ------------------------------------------------------------------------------------------------ what works in blocks

PROGRAM = """river 1;
type R = {k: string, n: i64};
input r: R;
var $c: map<string, i64> = {};
var $f: i64 = 3;
output o: {k: string, n: i64} = rows($c, f);
fn f(k: string, n: i64) -> list<{k: string, n: i64}> { return [{k: k, n: n}]; }
operator split(r: R; $f: i64) -> (a: R, b: R) { on r(x) { if x.n > $f { emit a x; } emit b x; } }
operator count(r: R; $c: map<string, i64>) -> () { on r(x) { with e = $c[x.k] else 0 { e = e +% x.n; } } }
operator last(r: R; $l: R?) -> () { on r(x) { $l = x; } }
var $l: R? = none;
(a, b) <- split(r, $f);
@Commutative() ($c) <- count(a, $c);
($l) <- last(b, $l);
"""


SET = """($l) <- last(b, $l);
operator set(d: R; $f: i64) -> () { on d(x) { $f = x.n; } }
input d: R;
($f) <- set(d, $f)"""


def found(text: str) -> Any:
    graph = verify(parse(Source("test.river", text)), LIBRARY)
    return partial(graph, "r")


def test_reducers_behind_a_map_work_in_blocks_and_others_are_sent_to() -> None:
    at = found(PROGRAM)
    assert isinstance(at, Partial)
    assert (at.maps, at.reducers, at.exits) == ((0,), (1,), ("b",))
    assert [name for name, _ in at.combined] == ["c"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("input r: R;", "input r: R by n;", "in the order of `n`"),
        ("e +% x.n", "e + x.n", "does more with `$c` than to accumulate"),
        ("e +% x.n", "e +% div.trunc(5, x.n)", "may trap"),
        ("@Commutative() (", "@Parallel(1) (", "is not to be parallel"),
        ("else 0 { e = e +% x.n", "else 0 { e = max(e, x.n)", None),
        ("(a, b) <- split(r, $f);", "(a, b) <- split(r, $f);\n($c) <- count(d, $c);\ninput d: R;", "shares `$c`"),
        ("($l) <- last(b, $l)", SET, "reads `$f`, which is written"),
        ("var $c: map<string, i64> = {};\n", 'var $c: map<string, i64> = {("a"): 1};\n', None),
    ],
)  # fmt: skip
def test_what_keeps_operators_from_working_in_blocks(old: str, new: str, reason: str | None) -> None:
    assert old in PROGRAM
    at = found(PROGRAM.replace(old, new))
    if reason is None:
        assert isinstance(at, Partial)
    else:
        assert not isinstance(at, Partial)
        assert reason in at.message


def test_a_greatest_needs_entries_that_began_with_the_default() -> None:
    at = found(PROGRAM.replace("e = e +% x.n", "e = max(e, x.n)").replace("i64> = {};", 'i64> = {("a"): 1};'))
    assert "is not empty at first" in at.message


NESTED = (
    PROGRAM.replace("map<string, i64>", "map<string, map<i64, i64>>")
    .replace(
        "with e = $c[x.k] else 0 { e = e +% x.n; }",
        "with d = $c[x.k] else {} { with e = d[x.n] else 0 { e = e +% 1; } }",
    )
    .replace("fn f(k: string, n: i64)", "fn f(k: string, m: map<i64, i64>)")
)
ROWS = "return [{k: k, n: n}];"


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ("return [{k: k, n: n} for n, c in m];", False),
        ("return take([{k: k, n: n} for n, c in m], 1);", True),
        ("return take(sort_by([{k: k, n: n} for n, c in m], fn(r) => (r.n, r.k)), 1);", False),
        ("return take(sort_by([{k: k, n: n} for n, c in m], fn(r) => (~r.n, r)), 1);", False),
        ("return take(sort_by([{k: k, n: n} for n, c in m], fn(r) => r.k), 1);", True),
        ("return take(sort_by([{k: k, n: n} for n, c in m], fn(r) => ~r.n), 1);", False),
        ("return take(sort_by([{k: k, n: c} for n, c in m], fn(r) => ~r.n), 1);", True),
        ("return take(sort_by([{k: k, n: mod.floor(n, 2)} for n, c in m], fn(r) => ~r.n), 1);", True),
        ("var least = 0; for n, c in m { least = min(least, n); } return [{k: k, n: least}];", False),
        ("var last = 0; for n, c in m { last = n; } return [{k: k, n: last}];", True),
    ],
)
def test_a_view_that_shows_the_order_of_entries_keeps_its_variable_whole(rows: str, *, shown: bool) -> None:
    at = found(NESTED.replace(ROWS, rows))
    assert isinstance(at, Partial) is not shown
    assert not shown or "shows the order of its entries" in at.message
