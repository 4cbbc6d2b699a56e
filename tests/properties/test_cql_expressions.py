"""Random expressions over columns, nulls and numbers that are written out have the values that DuckDB says.

Each case is one query of many columns over a few rows, so that every kind of expression stands inside of every other. Where
DuckDB writes or means something else, its form says what is meant here: whole numbers are divided by `//`, and nothing by 0.
`RIVER_CASES` says how many queries are tried.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import pytest

import river
from river.testing import seeds

if TYPE_CHECKING:
    from random import Random

CASES: Final = int(os.environ.get("RIVER_CASES", "8"))
COLUMNS: Final = (
    ("i", "int"), ("f", "float"), ("s", "string"), ("b", "bool"),
    ("qi", "int?"), ("qf", "float?"), ("qs", "string?"), ("qb", "bool?"),
)  # fmt: skip
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "int": (0, 1, -1, 2, 3, -3, 7, 10, -10, 100),
    "float": (0.0, 1.0, -1.5, 2.25, 0.5, 100.0, -7.75),
    "string": ("", "a", "ab", "abc", "A%", "b_c", "éa", "a b", "%", "10", "-3", "x'y", "\\"),
    "bool": (False, True),
}
ORDERED: Final = ("int", "float", "string")
FORMS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    # the form, the types of its parts in order, and how DuckDB writes it, if it does so otherwise
    "int": (
        ("({} + {})", "int int"), ("({} - {})", "int int"), ("({} * {})", "int int"), ("(- {})", "int"), ("abs({})", "int"),
        ("({} / nullif({}, 0))", "int int", "({} // nullif({}, 0))"), ("({} % nullif({}, 0))", "int int"),
        ("length({})", "string"), ("strpos({}, {})", "string string"),
        ("coalesce({}, {})", "int int"), ("nullif({}, {})", "int int"),
        ("greatest({}, {}, {})", "int int int"), ("least({}, {}, {})", "int int int"),
        ("case when {} then {} else {} end", "bool int int"), ("case when {} then {} when {} then {} end", "bool int bool int"),
        ("case {} when {} then {} else {} end", "int int int int"), ("case when {} then null else {} end", "bool int"),
        ("cast({} as int)", "bool", "cast({} as bigint)"), ("cast({} as int)", "float", "cast(trunc({}) as bigint)"),
        ("try_cast({} as int)", "string", "case when regexp_full_match({0}, '-?[0-9]+') then try_cast({0} as bigint) end"),
    ),
    "float": (
        ("({} + {})", "float float"), ("({} - {})", "float float"), ("({} * {})", "float float"), ("({} * {})", "int float"),
        ("({} / nullif({}, 0.0))", "float float"), ("floor({})", "float"), ("ceil({})", "float"), ("round({})", "float"),
        ("coalesce({}, {})", "float float"), ("nullif({}, {})", "float float"), ("greatest({}, {})", "float float"),
        ("case when {} then {} else {} end", "bool float float"), ("case when {} then {} else {} end", "bool int float"),
        ("cast({} as float)", "int", "cast({} as double)"),
    ),
    "string": (
        ("({} || {})", "string string"), ("upper({})", "string"), ("lower({})", "string"), ("trim({})", "string"),
        ("reverse({})", "string"),
        ("substring({}, 2, 2)", "string"), ("left({}, 2)", "string"), ("right({}, 2)", "string"),
        ("replace({}, {}, {})", "string string string"),
        ("split_part({}, 'a', 2)", "string"), ("coalesce({}, {})", "string string"), ("nullif({}, {})", "string string"),
        ("greatest({}, {})", "string string"), ("least({}, {})", "string string"), ("concat({}, {})", "string string"),
        ("case when {} then {} else {} end", "bool string string"), ("cast({} as string)", "int"), ("cast({} as string)", "bool"),
    ),
    "bool": (
        *((f"({{}} {op} {{}})", f"{kind} {kind}") for op in ("=", "<>", "<", "<=", ">", ">=") for kind in ORDERED),
        *((f"({{}} {word}between {{}} and {{}})", f"{kind} {kind} {kind}") for word in ("", "not ") for kind in ORDERED),
        *((f"({{}} {word}in ({{}}, {{}}))", f"{kind} {kind} {kind}") for word in ("", "not ") for kind in ORDERED),
        *((f"({{}} is {word}distinct from {{}})", f"{kind} {kind}") for word in ("", "not ") for kind in ORDERED),
        *((f"({{}} is {word}null)", kind) for word in ("", "not ") for kind in (*ORDERED, "bool")),
        ("({} and {})", "bool bool"), ("({} or {})", "bool bool"), ("(not {})", "bool"), ("({} = {})", "bool bool"),
        ("({} < {})", "int float"),
        ("({} is true)", "bool"), ("({} is not true)", "bool"), ("({} is false)", "bool"), ("coalesce({}, {})", "bool bool"),
        ("({} like 'a%')", "string"), ("({} not like '%b_c')", "string"), ("({} like '%!_%' escape '!')", "string"),
        ("starts_with({}, {})", "string string"), ("contains({}, {})", "string string"),
        ("case when {} then {} else {} end", "bool bool bool"),
    ),
}  # fmt: skip


def made(chance: Random, kind: str, depth: int) -> tuple[str, str]:
    """An expression of a type, as it is written here and for DuckDB."""
    if depth == 0 or chance.random() < 0.15:
        if chance.random() < 0.6:
            column = chance.choice([name for name, type_ in COLUMNS if type_.rstrip("?") == kind])
            return column, column
        value = chance.choice(VALUES[kind])
        text = f"'{value.replace(chr(39), chr(39) * 2)}'" if kind == "string" else f"({value})".lower()
        return text, f"{text}::double" if kind == "float" else text
    form, kinds, *other = chance.choice(FORMS[kind])
    parts = [made(chance, part, depth - 1) for part in kinds.split()]
    return form.format(*(ours for ours, _ in parts)), (other or [form])[0].format(
        *(their for _, their in parts)
    )


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("case", range(CASES))
def test_expressions_have_the_values_that_duckdb_says(case: int) -> None:
    duckdb = pytest.importorskip("duckdb").connect()
    duckdb.execute("set threads to 1")
    chance = seeds.chance("expressions", case)
    texts = [made(chance, chance.choice(list(FORMS)), 3) for _ in range(20)]
    rows = [
        (at, *(None if "?" in kind and chance.random() < 0.3 else chance.choice(VALUES[kind.rstrip("?")]) for _, kind in COLUMNS))
        for at in range(5)
    ]  # fmt: skip
    types = {"int": "bigint", "float": "double", "string": "varchar", "bool": "boolean"}
    columns = ", ".join(f"{name} {types[kind.rstrip('?')]}" for name, kind in COLUMNS)
    duckdb.execute(f"create table t (ts bigint, {columns})")
    duckdb.executemany(f"insert into t values ({', '.join('?' * (len(COLUMNS) + 1))})", rows)
    expected = duckdb.execute(
        f"select {', '.join(their for _, their in texts)} from t order by ts"
    ).fetchall()
    columns = "; ".join(f"{name}: {kind}" for name, kind in COLUMNS)
    items = ", ".join(f"{ours} as c{i}" for i, (ours, _) in enumerate(texts))
    program = river.compile(
        f"t: {{ ts: int; {columns} }} stream by ts;\nv: stream = select {items} from t;", lang="cql"
    )
    found = [
        tuple(row.values())[1:] for row in program.run({"t": rows}, backend="reference")["v"].to_pylist()
    ]
    for i, (ours, _) in enumerate(texts):
        assert [row[i] for row in found] == [row[i] for row in expected], ours
