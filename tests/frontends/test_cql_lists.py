"""Lists whose items become rows, and rows that are written out."""

from __future__ import annotations

from typing import Any

import pytest

import river
from river.diagnostics import Rejected

HEAD = """
o: { ts: int; id: int; k: string?; xs: list<int>?; items: list<{ sku: string; qty: int }> } stream by ts;
p: { at: int; id: int; n: int } relation by at;
"""
ROWS = [
    {"ts": 1, "id": 1, "k": "a b", "xs": [3, 3, 5], "items": [{"sku": "pen", "qty": 2}, {"sku": "ink", "qty": 1}]},
    {"ts": 2, "id": 2, "k": None, "xs": None, "items": []},
    {"ts": 4, "id": 3, "k": "b", "xs": [], "items": [{"sku": "pen", "qty": 4}]},
]  # fmt: skip
CHANGES = [{"at": 1, "op": "+", "id": 1, "n": 7}, {"at": 3, "op": "-", "id": 1, "n": 7}]


def told(query: str, kind: str = "relation", more: str = "") -> list[tuple[Any, ...]]:
    program = river.compile(f"{HEAD}{more}\noutput v: {kind} = {query};", lang="cql")
    given = {name: rows for name, rows in {"o": ROWS, "p": CHANGES}.items() if name in program.inputs}
    found = [program.run(given, backend=backend)["v"].to_pylist() for backend in ("reference", "multicore")]
    assert found[0] == found[1]
    return [tuple(row.values()) for row in found[0]]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select id, x from o, unnest(xs) as x", [(1, "+", 1, 3), (1, "+", 1, 3), (1, "+", 1, 5)]),
        (
            "select id, x from o[range 1] left join unnest(xs) x on x > 3",
            [(1, "+", 1, 5), (2, "+", 2, None), (3, "-", 1, 5), (4, "-", 2, None), (4, "+", 3, None)],
        ),
        (
            "select o.id, sku, m from o cross join unnest(o.items) with ordinality as t(sku, n, m) where m > 1",
            [(1, "+", 1, "ink", 2)],
        ),
        ("select id, unnest(split(k, ' ')) as w from o where id < 3", [(1, "+", 1, "a"), (1, "+", 1, "b")]),
        (
            "select p.id, i.sku from p join o on o.id = p.id, unnest(o.items) as i where i.qty + p.n > 8",
            [(1, "+", 1, "pen"), (3, "-", 1, "pen")],
        ),
        (
            "select id, (select sum(i.qty) from unnest(items) as i) as n from o[rows 1]",
            [(1, "+", 1, 3), (2, "-", 1, 3), (2, "+", 2, None), (4, "-", 2, None), (4, "+", 3, 4)],
        ),
        ("select id from o where 5 in (select x from unnest(xs) as x)", [(1, "+", 1)]),
        (
            "select v.id, count(o.id) as n from (values (1), (3)) as v(id) left join o[range 1] on o.id = v.id group by v.id",
            [
                (1, "+", 1, 1), (1, "+", 3, 0), (3, "-", 1, 1), (3, "+", 1, 0), (4, "-", 3, 0), (4, "+", 3, 1),
            ],
        ),
        (
            "with v(id, w) as (values (1, null), (3, 2.5)) select o.id, w * 2 as w from o, v where v.id = o.id",
            [(1, "+", 1, None), (4, "+", 3, 5.0)],
        ),
        ("select * from (values ('x')) as v cross join (select n from p) as q", [(1, "+", "x", 7), (3, "-", "x", 7)]),
    ],
)  # fmt: skip
def test_relations(query: str, rows: list[Any]) -> None:
    assert told(query) == rows


def test_streams_have_items() -> None:
    rows = [(1, 1, "pen"), (1, 1, "ink"), (4, 3, "pen")]
    assert told("select o.id, i.sku from o, unnest(items) as i", "stream") == rows
    now = "rstream(select o.id, i.sku from o[now], unnest(o.items) as i, p where p.id = o.id)"
    assert told(now, "stream") == rows[:2]


def test_declared_rows_have_the_declared_types() -> None:
    names = "names: { id: int; most: float; l: string? } relation = values (1, 2, null), (3, 0.5, 'x');"
    query = "select o.id, most, l from o join names on o.id = names.id"
    assert told(query, more=names) == [(1, "+", 1, 2.0, None), (4, "+", 3, 0.5, "x")]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select x from o, unnest(id) as x", "sql-unnest"),
        ("select x from o right join unnest(xs) as x on true", "sql-unnest"),
        ("select n from o, (values (1, 'x'), (2)) as v(n)", "sql-unnest"),
        ("select n from o, (values (1), ('x')) as v(n)", "sql-unnest"),
        ("select n from o, (values (null)) as v(n)", "sql-unnest"),
        ("select n from o, (values (1)) as v(n, m)", "sql-unnest"),
        ("select n from (values (1)) as v(n)", "cql-values"),
        ("select unnest(xs) as x, unnest(items) as y from o", "syntax-unnest"),
        ("select d.b from (select id from o) as d(b, c)", "sql-arity"),
        ("select x from o, unnest(ys) as x", "sql-unknown-column"),
    ],
)
def test_refused(query: str, code: str) -> None:
    with pytest.raises(Rejected) as found:
        river.compile(f"{HEAD}v: relation = {query};", lang="cql")
    assert [each.code for each in found.value.diagnostics] == [code]


def test_the_algebra_shows_the_list() -> None:
    from frontends.cql import FRONTEND
    from frontends.cql.algebra import algebra
    from river.source import Source

    text = f"{HEAD}v: relation = select id, x from o left join unnest(xs) as x on x > 3;"
    shown = algebra(FRONTEND.check(FRONTEND.parse(Source("q.cql", text))))
    assert "left unnest" in shown


def test_list_types_have_the_names_of_other_engines() -> None:
    text = "s: {ts: int; a: string[]; b: array<int?>; c: {x: int}[]?; d: int[][]} stream by ts;"
    text += "v: relation = select a[0] as a, array[b[1], 5] as b, c[0].x as c, cardinality(d) as d from s;"
    row = {"ts": 1, "a": ["q"], "b": [None, 1], "c": None, "d": [[1], [2]]}
    (found,) = river.compile(text, lang="cql").run({"s": [row]}, backend="reference")["v"].to_pylist()
    assert found == {"ts": 1, "op": "+", "a": "q", "b": [1, 5], "c": None, "d": 2}


def test_values_that_are_written_out_as_lists() -> None:
    query = "select id from o where id = any(array[1, 3]) and array_contains(array[k, 'x'], 'b')"
    assert told(query) == [(4, "+", 3)]
    assert told("select id, x from o, unnest(array[id, 9]) as x where id = 2") == [
        (2, "+", 2, 2),
        (2, "+", 2, 9),
    ]


def test_a_condition_without_columns_is_asked_behind_outer_joins() -> None:
    assert told("select p.n from o right join p on p.id = o.id where 1 = 0") == []
