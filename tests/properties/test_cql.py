"""CQL says the same by deltas, by whole bags at every instant, and by SQL asked anew at every instant.

Queries are made well-typed, as text for CQL and for DuckDB at once. Where DuckDB means something else, its text says what
CQL means: comparisons of floats are those of IEEE (DuckDB: NaN is the largest number and equals itself). Its float sums
depend on the order of rows, so there the floats are dyadic and all sums exact; the bags see arbitrary floats.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from calculus.observe import Faulted, Finished
from calculus.run import run
from calculus.schedule import Seeded
from frontends.cql import FRONTEND
from river.il import erase
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import NAN, Mark
from river.source import Source
from tests.oracles import cql_bag as bags

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY = Library.of({"cql": FRONTEND.templates})
LAST = 6  # of the instants of the data: few, and few values, so that rows meet

# ------------------------------------------------------------------------------------------------------ queries


@frozen
class Expr:
    cql: str
    sql: str
    kind: str  # int, big, float, string, maybe (an optional int)


@frozen
class Stream:
    """Something to select from: its name, how it may be seen, and its columns."""

    name: str
    relation: bool
    ordered: bool  # whether the order of its rows within an instant is defined, as `rows` wants
    columns: tuple[tuple[str, str], ...]


COLUMNS = (("ts", "int"), ("a", "int"), ("big", "big"), ("x", "float"), ("k", "string"), ("q", "maybe"))
CQL_TYPES = {"int": "int", "big": "int", "float": "float", "string": "string", "maybe": "int?"}
KEY = [name for name, _ in COLUMNS].index("k")
SQL_TYPES = {"int": "bigint", "big": "bigint", "float": "double", "string": "varchar", "maybe": "bigint"}
S = Stream("s", relation=False, ordered=True, columns=COLUMNS)
T = Stream("t", relation=False, ordered=True, columns=COLUMNS)
P = Stream("p", relation=True, ordered=False, columns=(("a", "int"), ("k", "string"), ("x", "float")))
DECLARED = f"""
s: {{{"; ".join(f"{name}: {CQL_TYPES[kind]}" for name, kind in COLUMNS)}}} stream by ts;
t: {{{"; ".join(f"{name}: {CQL_TYPES[kind]}" for name, kind in COLUMNS)}}} stream by ts;
p: {{at: int; a: int; k: string; x: float}} relation by at;
"""


@frozen
class Query:
    """A select block with its result columns; `ranges` are the lengths of range windows by stream."""

    cql: str
    sql: str  # with {name} for each source as it is seen at an instant
    seen: tuple[tuple[str, str, str, int], ...]  # label, stream, window, length or count
    columns: tuple[tuple[str, str], ...]
    monotonic: bool


@st.composite
def windows(draw, source: Stream, slides: bool) -> tuple[str, str, int]:
    """CQL text, kind and length of a window."""
    if source.relation:
        return "", "relation", 0
    kinds = ["none", "now", "range", "range", "range", "unbounded"] + (
        ["rows", "rows", "by"] if source.ordered else []
    )
    more = ["slide", "slide", "session"] + ["session by", "steps", "expiring", "recent"] * source.ordered
    kind = draw(st.sampled_from(kinds + more * slides))
    size = draw(st.integers(1, 3))
    now = draw(st.sampled_from(["[now]", "[range 0]"]))
    texts = {
        "none": "", "unbounded": "[unbounded]", "now": now, "range": f"[range {size}]", "rows": f"[rows {size}]",
        "by": f"[partition by k rows {size}]", "slide": f"[range {size} slide {draw(st.integers(1, 3))}]",
        "steps": f"[rows {size} slide {draw(st.integers(1, 3))}]", "session": f"[session {size}]",
        "session by": f"[partition by k session {size}]",
        "expiring": f"[partition by k rows {draw(st.integers(1, 3))} expire after {size}]",
        "recent": f"[{draw(st.sampled_from(['', 'partition by k ']))}rows {draw(st.integers(1, 3))} range {size}]",
    }  # fmt: skip
    return texts[kind], kind, 0 if kind == "now" else size


def column(label: str, name: str, kind: str, alone: bool) -> Expr:
    return Expr(name if alone else f"{label}.{name}", f"{label}.{name}", kind)


@st.composite
def values(draw, columns: list[Expr]) -> Expr:
    """A column, or arithmetic on small numbers."""
    small = [c for c in columns if c.kind == "int"]
    floats = [c for c in columns if c.kind == "float"]
    shapes = (
        ["column", "column"]
        + ["sum", "product", "quotient", "function"] * bool(small)
        + ["mixed"] * bool(small and floats)
    )
    shape = draw(st.sampled_from(shapes))
    if shape == "column":
        return draw(st.sampled_from(columns))
    a = draw(st.sampled_from(small))
    n = draw(st.integers(1, 3))
    match shape:
        case "sum":
            return Expr(f"({a.cql} - {n})", f"({a.sql} - {n})", "int")
        case "product":
            return Expr(f"-{a.cql} * {n}", f"(-{a.sql} * {n})", "int")
        case "function":
            return draw(functions(a, n, columns))
        case "quotient":
            return Expr(f"{a.cql} / {n}", f"trunc({a.sql} / {n})::bigint", "int")
        case _:
            x = draw(st.sampled_from(floats))
            return Expr(f"({a.cql} + {x.cql} * 2)", f"({a.sql}::double + {x.sql} * 2)", "float")


@st.composite
def functions(draw, a: Expr, n: int, columns: list[Expr]) -> Expr:
    """What both languages write alike: of a small number, of one that may be none, and of a text."""
    forms = [
        ("{a} % {n}", "int"), ("case when {a} < {n} then {a} end", "maybe"), ("case when {a} < {n} then 1 end", "maybe"),
        ("nullif({a}, {n})", "maybe"), ("abs({a})", "int"), ("cast({a} as bigint)", "int"),
        ("case when {a} is distinct from {n} then {n} else {a} end", "int"),
    ]  # fmt: skip
    maybe = [c for c in columns if c.kind == "maybe"]
    texts = [c for c in columns if c.kind == "string"]
    if maybe:
        forms += [
            ("coalesce({q}, {a})", "int"), ("coalesce({q}, nullif({a}, {n}), {n})", "int"), ("abs({q} * {a})", "maybe"),
            ("case when {q} is not distinct from {a} then {q} end", "maybe"),
        ]  # fmt: skip
    if texts:
        forms += [
            ("upper({k} || 'x')", "string"),
            ("substring({k}, 1, {n} - 1)", "string"),
            ("length({k})", "int"),
        ]
    form, kind = draw(st.sampled_from(forms))
    q, k = (draw(st.sampled_from(some)) if some else a for some in (maybe, texts))
    cql, sql = (form.format(a=texts[0], q=texts[1], k=texts[2], n=n) for texts in zip_texts(a, q, k))
    return Expr(cql, sql, kind)


def zip_texts(*parts: Expr) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of both languages."""
    return tuple(p.cql for p in parts), tuple(p.sql for p in parts)


def literal(draw, kind: str) -> Expr:
    if kind == "string":
        text = draw(st.sampled_from(["", "b", "z"]))
        return Expr(f"'{text}'", f"'{text}'", kind)
    if kind == "float":
        number = draw(st.sampled_from([-1.5, 0.0, 0.5]))
        return Expr(repr(number), repr(number), kind)
    return Expr(str(n := draw(st.integers(-1, 3))), str(n), kind)


@st.composite
def conditions(draw, columns: list[Expr], depth: int = 2) -> Expr:
    shape = draw(st.sampled_from(["compare", "compare", "compare", "null", "not", "and", "or", "sugar"]))
    if depth and shape in ("and", "or"):
        a, b = draw(conditions(columns, depth - 1)), draw(conditions(columns, depth - 1))
        return Expr(f"({a.cql} {shape} {b.cql})", f"({a.sql} {shape} {b.sql})", "bool")
    if depth and shape == "not":
        a = draw(conditions(columns, depth - 1))
        return Expr(f"not ({a.cql})", f"not ({a.sql})", "bool")
    maybe = [c for c in columns if c.kind == "maybe"]
    if shape == "null" and maybe:
        a = draw(st.sampled_from(maybe))
        is_null = draw(st.sampled_from(["is null", "is not null"]))
        return Expr(f"{a.cql} {is_null}", f"{a.sql} {is_null}", "bool")
    a = draw(values(columns))
    if shape == "sugar" and a.kind != "float":
        return draw(sugar(a))
    alike = [c for c in columns if c.kind == a.kind or {c.kind, a.kind} == {"int", "float"}]
    b = draw(st.sampled_from(alike)) if alike and draw(st.booleans()) else literal(draw, a.kind)
    return compare(draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), a, b)


@st.composite
def sugar(draw, a: Expr) -> Expr:
    """`between`, `in`, `like` and `case`, which both languages write alike."""
    b, c = literal(draw, a.kind), literal(draw, a.kind)
    forms = [f"between {b.cql} and {c.cql}", f"in ({b.cql}, {c.cql})", f"in ({b.cql})"]
    likes = ["like '%b'", "like 'a%'", "like '%b%'", "like '_'", "like 'b%_'", "like 'b'", "like '%'"]
    form = draw(st.sampled_from(forms + likes * (a.kind == "string") + ["case"]))
    if form == "case":
        text = f"case {{}} when {b.cql} then true when {c.cql} then false else {{}} > {b.cql} end"
        return Expr(text.format(a.cql, a.cql), text.format(a.sql, a.sql), "bool")
    negated = draw(st.sampled_from(["", "not "]))
    return Expr(f"{a.cql} {negated}{form}", f"({a.sql} {negated}{form})", "bool")


def compare(op: str, a: Expr, b: Expr) -> Expr:
    cql = f"{a.cql} {op} {b.cql}"
    if "float" not in (a.kind, b.kind):
        return Expr(cql, f"({a.sql} {op} {b.sql})", "bool")
    left, right = (e.sql if e.kind == "float" else f"{e.sql}::double" for e in (a, b))
    nan = f"(isnan({left}) or isnan({right}))"
    sql = f"({left} {op} {right} or {nan})" if op == "<>" else f"({left} {op} {right} and not {nan})"
    return Expr(cql, sql, "bool")


@st.composite
def aggregates(draw, columns: list[Expr], exact: bool) -> Expr:
    function = draw(st.sampled_from(["count", "distinct", "sum", "avg", "min", "max"]))
    if function == "count" and draw(st.booleans()):
        return Expr("count(*)", "count(*)", "int")
    allowed = {
        "sum": ("int", "big", "float", "maybe"),
        "avg": ("int", "float", "maybe") if exact else ("int", "big", "float", "maybe"),
    }.get(function, tuple(CQL_TYPES))
    fitting = [c for c in columns if c.kind in allowed and not c.sql.endswith("ts")]
    if not fitting:
        return Expr("count(*)", "count(*)", "int")
    c = draw(st.sampled_from(fitting))
    if not draw(st.integers(0, 3)):
        made = draw(values(columns))
        c = made if made.kind in allowed else c
    kind = {"count": "int", "distinct": "int", "avg": "float", "sum": "big" if c.kind != "float" else "float"}
    name = f"{function}(" if function != "distinct" else "count(distinct "
    sql = f"{name}{c.sql})"
    return Expr(f"{name}{c.cql})", sql, kind.get(function, c.kind))


@st.composite
def queries(draw, sources: list[Stream], exact: bool = False) -> Query:
    """`exact`: only what DuckDB computes exactly, too."""
    one = st.lists(st.sampled_from(sources), min_size=1, max_size=1)
    two = st.lists(st.sampled_from(sources), min_size=2, max_size=2)
    chosen = draw(st.one_of(one, one, two))
    alone = len(chosen) == 1
    parts: list[str] = []
    seen: list[tuple[str, str, str, int]] = []
    columns: list[Expr] = []
    by_source: list[list[Expr]] = []
    for i, source in enumerate(chosen):
        text, kind, size = draw(windows(source, slides=not exact))
        label = f"u{i}"
        parts.append(f"{source.name}{text} as {label}")
        seen.append((label, source.name, kind, size))
        by_source.append([column(label, name, kind, alone) for name, kind in source.columns])
        columns += by_source[-1]
    wheres: list[Expr] = []
    if not alone and draw(st.integers(0, 3)):
        pairs = [(a, b) for a in by_source[0] for b in by_source[1] if a.kind == b.kind != "big"]
        if pairs:
            wheres += [
                compare("=", *pair) for pair in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=1))
            ]
    wheres += [draw(conditions(columns))] if not draw(st.integers(0, 2)) else []
    where = "".join(f" {word} {c.cql}" for word, c in zip(["where", *["and"] * 9], wheres, strict=False))
    sql_where = "".join(f" {word} {c.sql}" for word, c in zip(["where", *["and"] * 9], wheres, strict=False))
    distinct = draw(st.sampled_from(["", "", "distinct "]))
    tail = sql_tail = ""
    grouped = draw(st.sampled_from([True, True, False]))
    if grouped:
        repeated = [c for c in columns if c.kind in ("string", "maybe") or c.sql.endswith(".a")] or columns
        sets = [st.just([]), *[st.lists(st.sampled_from(repeated), min_size=1, max_size=1)] * 2]
        keys = draw(st.one_of(*sets, st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)))
        shown = [k for k in keys if draw(st.integers(0, 2))]
        items = shown + draw(st.lists(aggregates(columns, exact), min_size=1, max_size=3))
        stated = keys if set(shown) != set(keys) or draw(st.booleans()) else []
        tail = f" group by {', '.join(k.cql for k in stated)}" if stated else ""
        sql_tail = f" group by {', '.join(k.sql for k in keys)}" if keys else ""
        if not draw(st.integers(0, 2)):
            n = draw(st.integers(0, 2))
            tail += f" having count(*) > {n}"
            sql_tail += f" having count(*) > {n}"
        loose = not keys
        items = [Expr(i.cql, i.sql, optional(i) if loose and "count" not in i.cql else i.kind) for i in items]
    else:
        items = draw(st.lists(values(columns), min_size=1, max_size=3))
    names = [f"c{i}" for i in range(len(items))]
    cql = ", ".join(f"{i.cql} as {name}" for i, name in zip(items, names, strict=True))
    sql = ", ".join(i.sql for i in items)
    froms = ", ".join(f"{{{label}}} as {label}" for label, *_ in seen)
    return Query(
        f"select {distinct}{cql} from {', '.join(parts)}{where}{tail}",
        f"select {distinct}{sql} from {froms}{sql_where}{sql_tail}",
        tuple(seen),
        tuple((name, i.kind) for name, i in zip(names, items, strict=True)),
        monotonic=not grouped and all(kind in ("none", "unbounded") for _, _, kind, _ in seen),
    )


def optional(item: Expr) -> str:
    return "maybe" if item.kind in ("int", "big", "maybe") else f"opaque {item.kind}"


# --------------------------------------------------------------------------------------------------------- data

DYADIC = (0.0, -0.0, 0.5, -1.5, 2.25, 1024.0, math.inf, -math.inf, NAN)
SMALL = st.integers(-1, 1)
LARGE = st.sampled_from([1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)])
BIG = st.one_of(*[st.sampled_from([0, 5, -7])] * 3, LARGE)
TEXTS = st.sampled_from(["a", "b", "é", "\U0001f30a"])


def canonical(x: float) -> float:
    return NAN if math.isnan(x) else x


def rows_of(floats: st.SearchStrategy[float]) -> st.SearchStrategy[list[Any]]:
    row = st.tuples(st.integers(0, LAST), SMALL, BIG, floats, TEXTS, st.none() | SMALL)
    return st.lists(row, min_size=4, max_size=12).map(lambda rows: sorted(rows, key=lambda r: r[0]))


@st.composite
def changes(draw, floats: st.SearchStrategy[float]) -> list[Any]:
    """A change log that deletes only what is there."""
    instants = sorted(draw(st.lists(st.integers(0, LAST), max_size=10)))
    there: list[Any] = []
    log: list[Any] = []
    for at in instants:
        if there and draw(st.booleans()):
            log.append((at, "-", *there.pop(draw(st.integers(0, len(there) - 1)))))
        else:
            there.append((draw(SMALL), draw(TEXTS), draw(floats)))
            log.append((at, "+", *there[-1]))
    return log


FINITE_FLOAT = st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.25])
ANY_FLOAT = FINITE_FLOAT | (st.sampled_from([0.1, 0.2, 0.3, 1e300, 1e16, *DYADIC]) | st.floats()).map(
    canonical
)
DYADIC_FLOAT = FINITE_FLOAT | st.sampled_from(DYADIC)


# ------------------------------------------------------------------------------------------------------ running


def checked(text: str):
    return FRONTEND.check(FRONTEND.parse(Source("<query>", text)))


def by_deltas(program, data, seed: int):
    """What the lowered program says: for each output and instant the rows that come and go; None if it traps."""
    graph = verify(FRONTEND.lower(program), LIBRARY)
    assert graph.deterministic
    used = {name: tuple(rows) for name, rows in data.items() if name in graph.inputs}
    outcome = run(erase.erase(graph), erase.inputs(graph, used), Seeded(seed)).outcome
    if isinstance(outcome, Faulted):
        return None
    assert isinstance(outcome, Finished)
    found: dict[str, dict[int, tuple[Counter[Any], Counter[Any]]]] = {}
    for name, items in outcome.outputs:
        said: dict[int, tuple[Counter[Any], Counter[Any]]] = {}
        view = next(v for v in program.views if v.name == name)
        values: list[Any] = [item for item in items if not isinstance(item, Mark)]
        if view.kind == "relation":
            taus = [tau for tau, _, _ in values]
            assert taus == sorted(set(taus))
            said = {tau: (Counter(ins), Counter(del_)) for tau, ins, del_ in values}
        else:
            assert [row[0] for row in values] == sorted(row[0] for row in values)
            for item in values:
                row = item if view.stamp.column else item[1:]
                said.setdefault(item[0], (Counter(), Counter()))[0][row] += 1
        found[name] = said
    return found


def by_bags(program, data):
    """The same from the history of whole bags."""
    try:
        history = bags.run(program, data)
    except bags.Trapped:
        return None, None
    found: dict[str, dict[int, tuple[Counter[Any], Counter[Any]]]] = {}
    for view in program.views:
        said: dict[int, tuple[Counter[Any], Counter[Any]]] = {}
        before: Counter[Any] = Counter()
        for tau in history.instants:
            now = Counter(history.rows[view.name][tau])
            if view.kind == "relation":
                change = (now - before, before - now)
                before = now
            else:
                change = (now, Counter())
            if change[0] or change[1]:
                said[tau] = change
        found[view.name] = said
    return found, history


# -------------------------------------------------------------------------------------------------------- tests

STREAMS = st.sampled_from(["relation", "relation", "istream", "dstream", "rstream", "plain"])


def declared(name: str, shape: str, query: Query) -> str:
    if shape == "relation":
        return f"output {name}: relation = {query.cql};"
    if shape == "plain":
        return f"output {name}: stream = {query.cql if query.monotonic else f'istream({query.cql})'};"
    return f"output {name}: stream = {shape}({query.cql});"


@st.composite
def programs(draw) -> str:
    """Two queries, of which the second may use the first."""
    first = draw(queries([S, T, P]))
    shape = draw(STREAMS)
    usable = tuple(c for c in first.columns if not c[1].startswith("opaque"))
    view = Stream("v", relation=shape == "relation", ordered=False, columns=usable)
    text = DECLARED + declared("v", shape, first)
    if not usable:
        return text
    return text + declared("w", draw(STREAMS), draw(queries([view, view, S, P])))


@pytest.mark.slow
@given(programs(), rows_of(ANY_FLOAT), rows_of(ANY_FLOAT), changes(ANY_FLOAT), st.integers(0, 99))
def test_deltas_say_what_bags_say(text: str, s, t, p, seed: int) -> None:
    program = checked(text)
    data = {"s": s, "t": t, "p": p}
    expected, _ = by_bags(program, data)
    assert by_deltas(program, data, seed) == expected


@pytest.mark.slow
@settings(max_examples=min(8, settings().max_examples // 3))
@given(programs(), rows_of(ANY_FLOAT), rows_of(ANY_FLOAT), changes(ANY_FLOAT), st.integers(0, 99))
@pytest.mark.parametrize("first", [-(1 << 63), (1 << 63) - 1 - LAST])
def test_so_they_do_at_the_ends_of_time(first: int, text: str, s, t, p, seed: int) -> None:
    program = checked(text)
    data = {name: [(at + first, *row) for at, *row in rows] for name, rows in (("s", s), ("t", t), ("p", p))}
    expected, _ = by_bags(program, data)
    found = by_deltas(program, data, seed)
    assert found == expected or (found is None and passing(text, data))


def test_windows_slide_from_the_first_instant_on() -> None:
    """The multiple before it is no instant."""
    program = checked(DECLARED + "output v: relation = select ts - a as c from s[range 1 slide 3];")
    rows = [(-(1 << 63) + at, 0, 0, 0.0, "a", None) for at in (0, 1, 2)]
    data = {"s": rows, "t": [], "p": []}
    expected = {"v": {rows[2][0]: (Counter({(rows[1][0],): 1, (rows[2][0],): 1}), Counter())}}
    assert by_bags(program, data)[0] == by_deltas(program, data, 0) == expected


def test_a_sum_is_asked_for_where_having_keeps_the_group() -> None:
    text = "output v: relation = select k as c0, sum(big) as c1 from s group by k having {};"
    rows = [(0, 0, (1 << 63) - 1, 0.0, "a", None), (0, 0, 5, 0.0, "a", None), (0, 0, 5, 0.0, "b", None)]
    data = {"s": rows, "t": [], "p": []}
    found = [
        (
            by_bags(checked(DECLARED + text.format(having)), data)[0],
            by_deltas(checked(DECLARED + text.format(having)), data, 0),
        )
        for having in ("count(*) < 2", "sum(big) > 1", "count(*) > 1")
    ]
    kept = {"v": {0: (Counter({("b", 5): 1}), Counter[Any]())}}
    assert found == [(kept, kept), (None, None), (None, None)]


def passing(text: str, data: Mapping[str, list[tuple[Any, ...]]]) -> bool:
    """Whether a row comes and goes at one instant: what traps for it may trap, though no bag has it.

    A change log says so; a window of the last rows is left at once where more come at an instant than it holds; and in a join
    with a row that goes, one that comes makes a row that passes.
    """
    signs: dict[Any, set[str]] = {}
    for at, sign, *row in data["p"]:
        signs.setdefault((at, *row), set()).add(sign)
    if any(len(both) == 2 for both in signs.values()):
        return True
    windows = re.findall(r"\b([st])\[(partition by k )?rows (\d+)(?: (?:expire after|range) \d+)?\]", text)
    if re.search(r"rows \d+ slide", text):
        return True
    assert len(windows) == len(re.findall(r"\brows \d", text))
    if " as u1" in text and _meet(text, data):
        return True
    return any(
        come > int(size)
        for name, by, size in windows
        for come in Counter((row[0], row[KEY] if by else None) for row in data[name]).values()
    )


def _meet(text: str, data: Mapping[str, list[tuple[Any, ...]]]) -> bool:
    """Whether rows may come at an instant at which others go: from a window, at any instant behind its first."""
    windowed = set(re.findall(r"\b([st])\[(?!unbounded)", text))
    goes = {at for at, sign, *_ in data["p"] if sign == "-"}
    comes = {at for at, sign, *_ in data["p"] if sign == "+"} | {
        row[0] for name in "st" for row in data[name]
    }
    first = min((row[0] for name in windowed for row in data[name]), default=None)
    return any(at in goes or (first is not None and at > first) for at in comes)


def test_what_goes_may_meet_what_comes() -> None:
    text = DECLARED + (
        "output v: relation = select u1.ts - 1 as c from p as u0, t[rows 1] as u1 where u0.a = 0;"
    )
    rows = [(at - (1 << 63), 0, 0, 0.0, "a", None) for at in (0, 1)]
    data = {"s": [], "t": rows, "p": [(1 - (1 << 63), "+", 0, "a", 0.0)]}
    assert by_bags(checked(text), data)[0] == {"v": {rows[1][0]: (Counter({(rows[0][0],): 1}), Counter())}}
    assert by_deltas(checked(text), data, 0) is None
    assert passing(text, data)
    assert not passing(text, {**data, "p": [(-(1 << 63), "+", 0, "a", 0.0)], "t": rows[:1]})


def test_a_row_that_passes_may_trap() -> None:
    text = DECLARED + "output v: relation = select p.a - 1 as c from p;"
    data = {"s": [], "t": [], "p": [(0, sign, -(1 << 63), "a", 0.0) for sign in "+-"]}
    assert by_bags(checked(text), data)[0] == {"v": {}}
    assert by_deltas(checked(text), data, 0) is None
    assert passing(text, data)


def test_a_row_that_a_window_has_no_room_for_passes() -> None:
    text = DECLARED + "output v: relation = select k from s[partition by k rows 1] as x;"
    rows = [(at, 0, 0, 0.0, k, None) for at, k in ((1, "a"), (1, "b"), (2, "a"))]
    assert not passing(text, {"s": rows, "t": [], "p": []})
    assert passing(text, {"s": [*rows, (2, 1, 1, 0.0, "a", None)], "t": [], "p": []})
    assert passing(text.replace("partition by k ", ""), {"s": rows, "t": [], "p": []})


@st.composite
def lookups(draw) -> str:
    """Present rows joined with groups of rows, by their key, in every shape that is lowered in a way of its own."""
    maybe = st.sampled_from
    keys = draw(maybe([["k"], ["a"], ["k", "a"], ["a", "k"], ["q"]]))
    source = draw(maybe(["s", "s", "t"]))
    window = draw(
        maybe(["[range 1]", "[range 2]", "[range 2]", "[now]", "[rows 2]", "[partition by k rows 1]"])
    )
    items = draw(
        maybe(["count(*) as n, avg(a) as m", "count(q) as n, avg(a) as m", "count(*) as n, 1.5 as m"])
    )
    where = draw(maybe(["", "", " where a > 1", " where 4 / (a - 9) < 0"]))
    having = draw(maybe(["", "", " having count(*) > 1", " having avg(a) < 1.5", " having sum(a) > 1"]))
    group = f"{', '.join(keys)}, {items} from {source}{window}{where} group by {', '.join(keys)}{having}"
    present = draw(maybe(["s[now] as l", "s[range 0] as l", "e[now] as l"]))
    sources = [present, "g"][:: draw(maybe([1, -1]))]
    matched = [f"l.{key} = g.{key}" for key in draw(st.permutations(keys))]
    more = draw(
        maybe(["", "", " and g.n > 1", " and l.a > 0", " and l.a + 1 > g.n", " and g.m >= 0.5 and g.n < 3"])
    )
    last = draw(maybe(["", "", "partition by k rows 1", "partition by a rows 1"]))
    third = draw(maybe(["", "", ", p where p.a = l.a and", ", h where h.a = l.a and"]))
    return f"""{DECLARED}
        g: relation = select {group};
        h: relation = select a, count(*) as c from s[range 2] group by a;
        e: stream = istream(select a, k, q from s[{last or "unbounded"}]);
        output w: stream{draw(maybe(["", " by at"]))} = {draw(maybe(["rstream", "rstream", "rstream", "istream"]))}(
          select l.a, g.n, g.m from {", ".join(sources)}{third or " where"} {" and ".join(matched)}{more});
        {draw(maybe(["", "", "output v: relation = select k, c from h, s[now] where h.a = s.a;"]))}
        """


@pytest.mark.slow
@settings(max_examples=12)
@given(
    lookups(), rows_of(ANY_FLOAT), rows_of(ANY_FLOAT), changes(ANY_FLOAT), st.integers(0, 99),
    st.sampled_from([0, 0, (1 << 63) - 1 - LAST]),
)  # fmt: skip
def test_joins_with_the_present_say_what_bags_say(text: str, s, t, p, seed: int, first: int) -> None:
    program = checked(text)
    data = {name: [(at + first, *row) for at, *row in rows] for name, rows in (("s", s), ("t", t), ("p", p))}
    expected, _ = by_bags(program, data)
    found = by_deltas(program, data, seed)
    if expected is not None:
        expected = {view.name: expected[view.name] for view in program.views if view.output}
    assert found == expected


@pytest.fixture(scope="module")
def duckdb():
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("set threads to 1")
    for name in ("s", "t"):
        columns = ", ".join(f"{column} {SQL_TYPES[kind]}" for column, kind in COLUMNS)
        connection.execute(f"create table {name} (seq bigint, {columns})")
    yield connection
    connection.close()


def seen_in_sql(name: str, kind: str, size: int, now: int) -> str:
    """What a window shows at an instant."""
    past = f"select * from {name} where ts <= {now}"
    match kind:
        case "now" | "range":
            return f"({past} and ts >= {now - size})"
        case "rows" | "by":
            over = "partition by k order by seq desc" if kind == "by" else "order by seq desc"
            return f"(select * from (select *, row_number() over ({over}) as nth from ({past})) where nth <= {size})"
        case _:
            return f"({past})"


@pytest.mark.slow
@given(queries([S, T], exact=True), STREAMS, rows_of(DYADIC_FLOAT), rows_of(DYADIC_FLOAT), st.integers(0, 99))
def test_every_instant_says_what_sql_says(duckdb, query: Query, shape: str, s, t, seed: int) -> None:
    program = checked(DECLARED + declared("v", shape, query))
    data = {one.name: {"s": s, "t": t}[one.name] for one in program.inputs}
    expected, history = by_bags(program, data)
    said = by_deltas(program, data, seed)
    if expected is None or history is None or said is None:
        assert expected == said
        return
    last = max((row[0] for rows in data.values() for row in rows), default=0)
    ends = {
        row[0] + size + 1
        for _, name, kind, size in query.seen
        if kind in ("now", "range")
        for row in data[name]
    }
    instants = sorted(
        {row[0] for rows in data.values() for row in rows} | {end for end in ends if end <= last}
    )
    assert list(history.instants) == instants
    for name, rows in data.items():
        duckdb.execute(f"delete from {name}")
        if rows:
            places = ", ".join("?" * (len(COLUMNS) + 1))
            duckdb.executemany(
                f"insert into {name} values ({places})", [(i, *row) for i, row in enumerate(rows)]
            )
    before: Counter[Any] = Counter()
    for now in instants:
        shown = {label: seen_in_sql(name, kind, size, now) for label, name, kind, size in query.seen}
        answer = Counter(
            tuple(canonical(v) if isinstance(v, float) else v for v in row)
            for row in duckdb.execute(query.sql.format(**shown)).fetchall()
        )
        change = {
            "relation": (answer - before, before - answer),
            "dstream": (before - answer, Counter()),
            "rstream": (answer, Counter()),
        }.get(shape, (answer - before, Counter()))
        assert said["v"].get(now, (Counter(), Counter())) == change, now
        before = answer
    assert set(said["v"]) <= set(instants)
