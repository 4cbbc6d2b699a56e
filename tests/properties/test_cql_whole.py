"""Random queries of the whole grammar say at every instant what DuckDB makes of the bags of that instant.

Subqueries, combinations, joins of every kind, windows that slide, sessions, windows as tables, aggregates over groups and over
other rows, numbered and first rows are put together at random, each as text for both. Where DuckDB means something else, its text
says what CQL means: comparisons of floats are those of IEEE. Floats are dyadic, so that all sums are exact.
`RIVER_CASES` says how many queries are tried.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from attrs import define, field, frozen

from calculus.observe import Finished
from calculus.run import run
from calculus.schedule import Seeded
from frontends.cql import FRONTEND
from river.backend import Options
from river.il import erase
from river.il.templates import Library
from river.il.verify import verify
from river.lang.evaluate import Trap
from river.lang.values import NAN, Mark
from river.platform import Platform
from river.source import Source
from river.testing import laws, seeds

if TYPE_CHECKING:
    from random import Random

    from river.il.graph import Graph

CASES: Final = int(os.environ.get("RIVER_CASES", "16"))
LIBRARY: Final = Library.of({"cql": FRONTEND.templates})
LAST: Final = 7
INPUTS: Final = """
s: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
t: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
p: {at: int; a: int; k: string; q: int?; x: float} relation by at;
"""
COLUMNS: Final = (("a", "int"), ("k", "string"), ("q", "maybe"), ("x", "float"))
ENDS: Final = (*COLUMNS, ("window_start", "int"), ("window_end", "int"))
FLOATS: Final = (0.0, -0.0, 0.5, -1.5, 2.25, NAN, math.inf)


def last_rows(name: str, by: str, count: int) -> str:
    over = f"partition by {by} order by seq desc" if by else "order by seq desc"
    inner = f"select *, row_number() over ({over}) as nth from {name} where ts <= {{now}}"
    return f"(select * from ({inner}) where nth <= {count})"


def told(name: str, step: int, size: int) -> str:
    return (
        f"(select {name}.*, w * {step} as window_start, w * {step} + {size} as window_end from {name}, range(-9, 9) as i(w)"
        f" where ts >= w * {step} and ts < w * {step} + {size} and w * {step} + {size} <= {{now}})"
    )


def sessions(name: str, by: str, gap: int) -> str:
    """Rows with the ends of their sessions; the instant at which the last one is over is `window_end` + 1."""
    part = f"partition by {by} " if by else ""
    return f"""(
        select * exclude (new, nth), min(ts) over whole as window_start, max(ts) over whole + {gap} as window_end
        from (select *, sum(new) over in_order as nth from
              (select *, case when ts - lag(ts) over in_order <= {gap} then 0 else 1 end as new
               from {name} where ts <= {{now}} window in_order as ({part}order by seq))
              window in_order as ({part}order by seq))
        window whole as (partition by {f"{by}, " if by else ""}nth))"""


def seen(chance: Random) -> tuple[str, str, tuple[tuple[str, str], ...], bool]:
    """A source: as CQL writes it, its bag at `{now}`, its columns, and whether rows of the first instant are in it at once."""
    name = chance.choice("sstt")
    n, m = chance.randint(1, 3), chance.randint(1, 3)
    past = f"(select * from {name} where ts <= {{now}}"
    then = f"({{now}} // {m} * {m})"
    match chance.choice(["p", "p", "all", "now", "range", "range", "range", "slide", "rows", "by", "steps", "session",
                         "session by", "expire", "tumble", "hop", "sessions"]):  # fmt: skip
        case "p":
            return "p", "p_then", COLUMNS, True
        case "all":
            return name, f"{past})", COLUMNS, True
        case "now":
            return f"{name}[now]", f"{past} and ts = {{now}})", COLUMNS, True
        case "range":
            return f"{name}[range {n}]", f"{past} and ts >= {{now}} - {n})", COLUMNS, True
        case "slide":
            shown = f"(select * from {name} where ts <= {then} and ts >= {then} - {n})"
            return f"{name}[range {n} slide {m}]", shown, COLUMNS, True
        case "rows":
            return f"{name}[rows {n}]", last_rows(name, "", n), COLUMNS, True
        case "by":
            return f"{name}[partition by k rows {n}]", last_rows(name, "k", n), COLUMNS, True
        case "steps":
            inner = f"select *, row_number() over (order by seq) as i, count(*) over () // {m} * {m} as n from {past}) z"
            return (
                f"{name}[rows {n} slide {m}]",
                f"(select * from ({inner}) where i <= n and i > n - {n})",
                COLUMNS,
                False,
            )
        case "session":
            return (
                f"{name}[session {n}]",
                f"(select * from {sessions(name, '', n)} where window_end >= {{now}})",
                COLUMNS,
                True,
            )
        case "session by":
            shown = f"(select * from {sessions(name, 'k', n)} where window_end >= {{now}})"
            return f"{name}[partition by k session {n}]", shown, COLUMNS, True
        case "expire":
            inner = "select *, row_number() over (partition by k order by seq desc) as nth from"
            inner += f" {sessions(name, 'k', n)} where window_end >= {{now}}"
            return (
                f"{name}[partition by k rows {m} expire after {n}]",
                f"(select * from ({inner}) where nth <= {m})",
                COLUMNS,
                True,
            )
        case "tumble":
            return f"tumble({name}, {n})", told(name, n, n), ENDS, False
        case "hop":
            return f"hop({name}, {m}, {n})", told(name, m, n), ENDS, False
        case _:
            return f"session({name} partition by k, {n})", sessions(name, "k", n), ENDS, True


@frozen
class Expr:
    cql: str
    sql: str
    kind: str  # int, maybe (an optional int), string, float, real (an optional float)

    @classmethod
    def both(cls, form: str, kind: str, *parts: Expr) -> Expr:
        """What both languages write alike."""
        return cls(form.format(*(x.cql for x in parts)), form.format(*(x.sql for x in parts)), kind)


@frozen
class Query:
    cql: str
    sql: str
    kinds: tuple[str, ...]
    begun: bool  # whether it is known at the first instant


NUMBERS: Final = ("int", "maybe")
TEXTS: Final = ("string", "text")
LOOSE: Final = {"int": "maybe", "float": "real", "string": "text"}
"""The same types where values may be none."""


@define
class Maker:
    """Makes queries, whose sources have names that differ."""

    chance: Random
    count: int = 0
    begun: bool = True
    outer: list[Expr] = field(factory=list[Expr])

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def likely(self, part: float) -> bool:
        return self.chance.random() < part

    # -- sources

    def source(self, depth: int) -> tuple[str, str, list[Expr]]:
        """A source with its alias, and its columns."""
        label = self.name("u")
        if depth and self.likely(0.3):
            inner = self.query(depth - 1)
            columns = [Expr(f"{label}.c{i}", f"{label}.c{i}", kind) for i, kind in enumerate(inner.kinds)]
            columns = [x for x in columns if x.kind not in ("truth", "opaque")]
            if columns:
                self.begun &= inner.begun
                return f"({inner.cql}) as {label}", f"({inner.sql}) as {label}", columns
        cql, sql, known, begun = seen(self.chance)
        self.begun &= begun
        columns = [Expr(f"{label}.{name}", f"{label}.{name}", kind) for name, kind in known]
        return f"{cql} as {label}", f"{sql} as {label}", columns

    def sources(self, depth: int) -> tuple[str, str, list[Expr]]:
        """What stands after `from`."""
        cql, sql, columns = self.source(depth)
        if self.likely(0.4):
            cql2, sql2, others = self.source(depth)
            pairs = [(x, y) for x in columns for y in others if joinable(x, y)]
            kind = self.chance.choice(["join", "join", "left join", "right join", "full join", "cross join"])
            if not pairs or kind == "cross join":
                return f"{cql} cross join {cql2}", f"{sql} cross join {sql2}", [*columns, *others]
            on = equal(*self.chance.choice(pairs))
            if self.likely(0.3):
                on = Expr.both("{} and {}", "bool", on, equal(*self.chance.choice(pairs)))
            near = [(x, y) for x in columns for y in others if x.kind in NUMBERS and y.kind in NUMBERS]
            if near and self.likely(0.4):
                n, m = self.chance.randint(0, 1), self.chance.randint(0, 1)
                band = Expr.both(
                    f"({{0}} >= {{1}} - {n} and {{0}} <= {{1}} + {m})", "bool", *self.chance.choice(near)
                )
                on = Expr.both("{} and {}", "bool", on, band) if self.likely(0.4) else band
            if kind in ("right join", "full join"):
                columns = [loose(x) for x in columns]
            if kind in ("left join", "full join"):
                others = [loose(x) for x in others]
            cql, sql = f"{cql} {kind} {cql2} on {on.cql}", f"{sql} {kind} {sql2} on {on.sql}"
            columns = [*columns, *others]
        if self.likely(0.2):
            return self.with_values(cql, sql, columns)
        return cql, sql, columns

    def with_values(self, cql: str, sql: str, columns: list[Expr]) -> tuple[str, str, list[Expr]]:
        """The same with rows that are written out beside it, or with the items of a list of each row."""
        label, texts = self.name("v"), [x for x in columns if x.kind in TEXTS]
        numbers = [x for x in columns if x.kind in NUMBERS]
        if texts and self.likely(0.5):
            text, item = self.chance.choice(texts), Expr(f"{label}.w", f"{label}.w", "string")
            made = (
                f"unnest({name}({getattr(text, of)}, 'x')) as {label}(w)"
                for name, of in (("split", "cql"), ("string_split", "sql"))
            )
            own, other = (f"{each} cross join {more}" for each, more in zip((cql, sql), made, strict=True))
            return own, other, [*columns, item]
        rows = f"(values (0, 'x'), (1, null), (1, 'y'), (7, 'y')) as {label}(i, w)"
        written = [Expr(f"{label}.i", f"{label}.i", "int"), loose(Expr(f"{label}.w", f"{label}.w", "string"))]
        if not numbers or self.likely(0.3):
            return f"{cql} cross join {rows}", f"{sql} cross join {rows}", [*columns, *written]
        on = equal(self.chance.choice(numbers), written[0])
        if self.begun and " join " not in cql and self.likely(0.4):
            first = f"{rows} left join "
            return f"{first}{cql} on {on.cql}", f"{first}{sql} on {on.sql}", [*map(loose, columns), *written]
        kind = self.chance.choice(["join", "left join"])
        written = [loose(x) for x in written] if kind == "left join" else written
        return f"{cql} {kind} {rows} on {on.cql}", f"{sql} {kind} {rows} on {on.sql}", [*columns, *written]

    # -- expressions

    def value(self, columns: list[Expr]) -> Expr:
        small = [x for x in columns if x.kind in NUMBERS]
        if small and self.likely(0.3):
            x, y = self.chance.choice(small), self.chance.choice(small)
            kind = "maybe" if "maybe" in (x.kind, y.kind) else "int"
            n = self.chance.randint(1, 3)
            forms = [("({} + {})", kind), (f"({{}} * {n} - {{}})", kind), (f"(case when {{}} > {n} then {{}} end)", "maybe"),
                     (f"coalesce({{}}, {{}}, {n})", "int"), ("greatest({}, {})", kind), ("nullif({}, {})", "maybe")]  # fmt: skip
            form, kind = self.chance.choice(forms)
            if "maybe" in (x.kind, y.kind) and "greatest" in form:
                kind = "int" if "int" in (x.kind, y.kind) else "maybe"
            return Expr.both(form, kind, x, y)
        return self.chance.choice(columns)

    def literal(self, kind: str) -> Expr:
        if kind in TEXTS:
            text = f"'{self.chance.choice('wxyz')}'"
        elif kind in ("float", "real"):
            text = self.chance.choice(["0.0", "0.5", "-1.5"])
        else:
            text = str(self.chance.randint(-1, 3))
        return Expr(text, text, kind)

    def condition(self, columns: list[Expr], depth: int) -> Expr:
        shape = self.chance.choice(
            ["compare"] * 4 + ["null", "between", "in", "not", "and", "or"] + ["nested"] * (3 * (depth > 0))
        )
        if shape in ("and", "or"):
            return Expr.both(
                f"({{}} {shape} {{}})", "bool", self.condition(columns, 0), self.condition(columns, depth)
            )
        if shape == "not":
            return Expr.both("not ({})", "bool", self.condition(columns, depth))
        if shape == "nested":
            return self.nested(columns, depth - 1)
        x = self.value(columns)
        if shape == "null":
            return Expr.both(f"{{}} is {self.chance.choice(['', 'not '])}null", "bool", x)
        if shape == "compare" or x.kind in ("float", "real"):
            alike = [y for y in columns if same(x, y)]
            y = self.chance.choice(alike) if alike and self.likely(0.5) else self.literal(x.kind)
            return compare(self.chance.choice(["=", "<>", "<", "<=", ">", ">="]), x, y)
        y, z = self.literal(x.kind), self.literal(x.kind)
        no = self.chance.choice(["", "not "])
        return Expr.both(
            f"{{}} {no}between {{}} and {{}}" if shape == "between" else f"{{}} {no}in ({{}}, {{}})",
            "bool",
            x,
            y,
            z,
        )

    def nested(self, columns: list[Expr], depth: int) -> Expr:
        """A condition with a query in it, which may read columns of the one around."""
        plain = [x for x in columns if x.kind in (*NUMBERS, *TEXTS)]
        before, self.outer = self.outer, plain
        begun = self.begun
        cql, sql, own = self.source(0)
        ties = [(x, y) for x in own for y in plain if joinable(x, y)]
        where = []
        if ties and self.likely(0.6):
            where.append(equal(*self.chance.choice(ties)))
        if self.likely(0.4):
            where.append(self.condition(own, depth))
        self.outer = before
        self.begun = begun
        tail = [" and ".join(getattr(c, of) for c in where) for of in ("cql", "sql")]
        tail = [f" where {text}" if text else "" for text in tail]
        pairs = [(x, y) for x in plain for y in own if same(x, y)]
        shape = self.chance.choice(
            ["exists", "not exists"] + ["in", "not in", "any", "all", "value"] * bool(pairs)
        )
        if shape in ("exists", "not exists"):
            return Expr(
                f"{shape} (select * from {cql}{tail[0]})", f"{shape} (select * from {sql}{tail[1]})", "bool"
            )
        x, y = self.chance.choice(pairs)
        if shape in ("in", "not in"):
            return Expr(
                f"{x.cql} {shape} (select {y.cql} from {cql}{tail[0]})",
                f"{x.sql} {shape} (select {y.sql} from {sql}{tail[1]})",
                "bool",
            )
        op = self.chance.choice(["<", "<=", ">", ">=", "=", "<>"])
        if shape in ("any", "all"):
            return Expr(
                f"{x.cql} {op} {shape} (select {y.cql} from {cql}{tail[0]})",
                f"{x.sql} {op} {shape} (select {y.sql} from {sql}{tail[1]})",
                "bool",
            )
        fn = self.chance.choice(["max", "min", "count"] if x.kind in NUMBERS else ["max", "min"])
        return Expr(
            f"{x.cql} {op} (select {fn}({y.cql}) from {cql}{tail[0]})",
            f"{x.sql} {op} (select {fn}({y.sql}) from {sql}{tail[1]})",
            "bool",
        )

    def aggregate(self, columns: list[Expr], *, always: bool) -> Expr:
        """`always`: there is at least one row."""
        fn = self.chance.choice(["count", "count", "sum", "sum", "avg", "min", "max", "median", "bool_or"])
        only = self.condition(columns, 0) if self.likely(0.25) else None
        sure = always and only is None
        if fn == "bool_or":
            made = Expr.both("bool_or({})", "truth", self.condition(columns, 0))
        elif fn == "count" and self.likely(0.5):
            made = Expr("count(*)", "count(*)", "int")
        else:
            x = self.value(columns)
            if fn in ("sum", "avg", "median") and x.kind in TEXTS:
                fn = "max"
            once = (
                "distinct "
                if fn in ("count", "sum") and x.kind in (*NUMBERS, *TEXTS) and self.likely(0.3)
                else ""
            )
            kind = {"count": "int", "avg": "float", "median": "float"}.get(fn, x.kind)
            if fn != "count" and (not sure or x.kind in ("maybe", "real")):
                kind = LOOSE.get(kind, kind)
            made = Expr.both(f"{fn}({once}{{}})", kind, x)
        if only is not None:
            made = Expr.both("{} filter (where {})", made.kind, made, only)
        return made

    # -- queries

    def query(self, depth: int) -> Query:
        """A query whose columns are called c0, c1, ..."""
        begun, self.begun = self.begun, True
        made = self.block(depth)
        if self.likely(0.25):
            other = self.block(depth)
            made, other = self.inside(made), self.inside(other)
            if len(other.kinds) == len(made.kinds) and all(map(alike, made.kinds, other.kinds)):
                word = self.chance.choice(
                    ["union", "union all", "except", "except all", "intersect", "intersect all"]
                )
                kinds = tuple(
                    x if x == y else LOOSE.get(x, x) for x, y in zip(made.kinds, other.kinds, strict=True)
                )
                cql, sql = f"{made.cql} {word} {other.cql}", f"{made.sql} {word} {other.sql}"
                made = self.inside(Query(cql, sql, kinds, begun=made.begun and other.begun))
        found, self.begun = Query(made.cql, made.sql, made.kinds, begun=self.begun), begun
        return found

    def inside(self, query: Query) -> Query:
        """The same as one block that may be combined with others."""
        label = self.name("d")
        cql, sql = (f"select * from ({text}) as {label}" for text in (query.cql, query.sql))
        return Query(cql, sql, query.kinds, query.begun)

    def block(self, depth: int) -> Query:
        cql, sql, columns = self.sources(depth)
        begun = self.begun
        wheres = [self.condition(columns, depth)] if self.likely(0.4) else []
        tail, sql_tail = (" where " + getattr(wheres[0], of) if wheres else "" for of in ("cql", "sql"))
        distinct, order = "", ""
        shape = self.chance.choice(
            ["rows", "rows", "distinct", "group", "group", "group", "whole", "over", "first"]
        )
        if shape == "whole" and not begun:
            shape = "group"
        if shape in ("group", "whole"):
            keys = (
                self.chance.sample(columns, min(len(columns), self.chance.randint(1, 2)))
                if shape == "group"
                else []
            )
            items = [
                *keys,
                *(self.aggregate(columns, always=bool(keys)) for _ in range(self.chance.randint(1, 2))),
            ]
            if keys:
                tail += f" group by {', '.join(x.cql for x in keys)}"
                sql_tail += f" group by {', '.join(x.sql for x in keys)}"
                if self.likely(0.3):
                    limit = f" having count(*) > {self.chance.randint(0, 2)}"
                    tail, sql_tail = tail + limit, sql_tail + limit
        elif shape == "over":
            part, by = (
                self.chance.choice(columns),
                self.chance.choice([x for x in columns if x.kind not in ("float", "real")] or columns),
            )
            number = self.chance.choice(["rank()", "dense_rank()", "count(*)", "max({0})"])
            over = f"{number} over (partition by {{0}} order by {{1}} nulls last)"
            kind = (
                "int"
                if "max" not in number
                else {"int": "int"}.get(part.kind, "maybe" if part.kind in NUMBERS else "opaque")
            )
            items = [part, Expr.both(over, kind, part, by)]
        else:
            items = [self.value(columns) for _ in range(self.chance.randint(1, 3))]
            distinct = "distinct " if shape == "distinct" else ""
        names = [f"c{i}" for i in range(len(items))]
        if shape == "first":
            sort = [
                f"{name} {self.chance.choice(['', 'desc '])}nulls {self.chance.choice(['first', 'last'])}"
                for name in names
            ]
            order = f" order by {', '.join(sort)} limit {self.chance.randint(1, 3)}"
            if self.likely(0.3):
                order += " offset 1"
        shown = [
            ", ".join(f"{getattr(x, of)} as {n}" for x, n in zip(items, names, strict=True))
            for of in ("cql", "sql")
        ]
        return Query(
            f"select {distinct}{shown[0]} from {cql}{tail}{order}",
            f"select {distinct}{shown[1]} from {sql}{sql_tail}{order}",
            tuple(x.kind for x in items),
            begun=begun,
        )


def loose(x: Expr) -> Expr:
    """A column that may be none, because its side has no partner."""
    return Expr(x.cql, x.sql, LOOSE.get(x.kind, x.kind))


def same(x: Expr, y: Expr) -> bool:
    return alike(x.kind, y.kind)


def alike(x: str, y: str) -> bool:
    return x == y or {x, y} <= set(NUMBERS) or {x, y} <= {"float", "real"} or {x, y} <= {"string", "text"}


def joinable(x: Expr, y: Expr) -> bool:
    return same(x, y) and x.kind in (*NUMBERS, *TEXTS)


def equal(x: Expr, y: Expr) -> Expr:
    return Expr.both("{} = {}", "bool", x, y)


def compare(op: str, x: Expr, y: Expr) -> Expr:
    made = Expr.both(f"{{}} {op} {{}}", "bool", x, y)
    if not {x.kind, y.kind} & {"float", "real"}:
        return made
    nan = f"(isnan({x.sql}::double)::int + isnan({y.sql}::double)::int > 0)"  # unknown where one of them is
    return Expr(made.cql, f"({made.sql} or {nan})" if op == "<>" else f"({made.sql} and not {nan})", "bool")


# ------------------------------------------------------------------------------------------------------ data and runs


def random_data(chance: Random) -> dict[str, list[Any]]:
    """Two streams and a change log, of few values; each has a row at the first instant, so all is known from there on."""

    def row() -> tuple[Any, ...]:
        return chance.randint(0, 2), chance.choice("xyz"), chance.choice([None, 0, 1]), chance.choice(FLOATS)

    data: dict[str, list[Any]] = {
        name: [(at, *row()) for at in sorted([0, *(chance.randint(0, LAST) for _ in range(6))])]
        for name in "st"
    }
    there: list[Any] = []
    data["p"] = log = []
    for at in sorted([0, *(chance.randint(0, LAST) for _ in range(8))]):
        if there and chance.random() < 0.4:
            log.append((at, "-", *there.pop(chance.randrange(len(there)))))
        else:
            there.append(row())
            log.append((at, "+", *there[-1]))
    return data


def says(graph: Any, data: dict[str, list[Any]], seed: int) -> dict[int, Counter[Any]]:
    """The bag of the relation at each instant at which it changes."""
    given = {name: tuple(rows) for name, rows in data.items() if name in graph.inputs}
    outcome = run(erase.erase(graph), erase.inputs(graph, given), Seeded(seed)).outcome
    assert isinstance(outcome, Finished), outcome
    ((_, items),) = outcome.outputs
    changes: list[Any] = [item for item in items if not isinstance(item, Mark)]
    bag: Counter[Any] = Counter()
    found: dict[int, Counter[Any]] = {}
    for tau, ins, gone in changes:
        bag.update(map(shown, ins))
        bag.subtract(map(shown, gone))
        assert min(bag.values(), default=0) >= 0
        assert tau not in found
        found[tau] = +bag
    return found


def shown(row: Any) -> tuple[Any, ...]:
    """A row in which equal values are the same."""
    return tuple(
        "nan" if isinstance(v, float) and math.isnan(v) else v + 0.0 if isinstance(v, float) else v
        for v in row
    )


@pytest.fixture(scope="module")
def duckdb():
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("set threads to 1")
    for name in ("s", "t"):
        connection.execute(
            f"create table {name} (seq bigint, ts bigint, a bigint, k varchar, q bigint, x double)"
        )
    connection.execute("create table p_then (a bigint, k varchar, q bigint, x double)")
    yield connection
    connection.close()


def filled(duckdb: Any, name: str, rows: list[Any]) -> None:
    duckdb.execute(f"delete from {name}")
    if rows:
        duckdb.executemany(f"insert into {name} values ({', '.join('?' * len(rows[0]))})", rows)


def lowered(query: str) -> Graph:
    program = FRONTEND.check(FRONTEND.parse(Source("<query>", f"{INPUTS}output v: relation = {query};")))
    return verify(FRONTEND.lower(program), LIBRARY)


@pytest.mark.parametrize("case", range(CASES))
def test_a_query_says_at_every_instant_what_sql_says(duckdb: Any, case: int) -> None:
    chance = seeds.chance("whole", case)
    query = Maker(chance).query(2)
    graph, data = lowered(query.cql), random_data(chance)
    found = says(graph, data, case)
    for name in ("s", "t"):
        filled(duckdb, name, [(i, *row) for i, row in enumerate(data[name])])
    last = max((row[0] for name in graph.inputs for row in data[name]), default=0)
    assert max(found, default=0) <= last
    now: Counter[Any] = Counter()
    there: list[Any] = []
    for at in range(last + 1):
        for when, sign, *values in data["p"]:
            if when == at:
                there.append(values) if sign == "+" else there.remove(values)
        filled(duckdb, "p_then", there)
        now = found.get(at, now)
        expected = Counter(map(shown, duckdb.execute(query.sql.replace("{now}", str(at))).fetchall()))
        if now != expected:
            pytest.fail(
                f"{query.cql}\n{query.sql.replace('{now}', str(at))}\n{data}\nat {at}: {now}, SQL {expected}"
            )


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("case", range(CASES))
def test_a_query_sends_the_same_with_any_number_of_workers(case: int) -> None:
    """Row for row, wherever operators can be divided: joins, groups and windows by their keys."""
    pytest.importorskip("llvmlite")
    from backends.multicore import BACKEND

    chance = seeds.chance("whole on several workers", case)
    query = Maker(chance).query(2)
    graph, data = lowered(query.cql), random_data(chance)

    def sent(workers: int, size: int, batch: int, bound: int) -> tuple[list[Any], str | None]:
        rows: list[Any] = []
        options = Options(workers, batch, bound, experiment={"gate": "open"})
        plan = BACKEND.plan(laws.after(graph, laws.REGIONS, workers), Platform(workers), options)
        given = {
            name: [data[name][i : i + size] for i in range(0, len(data[name]), size)] for name in graph.inputs
        }
        try:
            BACKEND.run(plan, given, {"v": rows.extend})
        except Trap as trap:
            return rows, trap.code
        return rows, None

    whole = sent(1, 4, 64, 64)
    for workers in (2, chance.choice([3, 4, 5])):
        way = workers, chance.choice([1, 3, 50]), chance.choice([1, 4, 64]), chance.choice([1, 8, 64])
        assert repr(sent(*way)) == repr(whole), f"{way}: {query.cql}"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        # what may be none, and is no number, equals nothing, not even itself
        ("select c from (select s.x as c from s left join t on s.a = t.a) as u where u.c = u.c", [(0.5,)]),
        (
            "select c from (select s.x as c from s full join t on s.a = t.a) as u where not (u.c > 0.0)",
            [("nan",)],
        ),
        (
            "select u.a from s as u join (select s.x, s.a from s left join t on s.a = t.a) as v on v.x = u.x",
            [(1,)],
        ),
        # but it is a part like any other
        ("select x, count(*) over (partition by x) as n from s", [("nan", 1), (0.5, 1)]),
        ("select x, max(a) over (partition by x order by a) as n from s", [("nan", 0), (0.5, 1)]),
    ],
)
def test_what_is_no_number(query: str, rows: list[Any]) -> None:
    program = FRONTEND.check(FRONTEND.parse(Source("<query>", f"{INPUTS}output v: relation = {query};")))
    data: dict[str, list[Any]] = {"s": [(0, 0, "x", None, NAN), (0, 1, "y", None, 0.5)], "t": [], "p": []}
    assert says(verify(FRONTEND.lower(program), LIBRARY), data, 0) == {0: Counter(rows)}
