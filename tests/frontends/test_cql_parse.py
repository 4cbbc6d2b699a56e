"""River-CQL text to syntax."""

from __future__ import annotations

import subprocess
import sys

import pytest

from frontends.cql import FRONTEND
from frontends.cql import syntax as c
from frontends.cql.parse import PARSER
from frontends.sql import syntax as q
from river.diagnostics import Rejected
from river.lang import syntax as s
from river.source import Source

FIGURE_3B = """congested: { speed: int; seg_no: int;
                  dir: int; hwy: int } relation
  = select avg(speed), seg_no, dir, hwy
    from seg_speed[range 300];
"""


def parse(text: str) -> c.Program:
    return FRONTEND.parse(Source("<query>", text))


def query(text: str) -> c.Query:
    (decl,) = parse(f"r: relation = {text};").decls
    assert decl.query is not None
    return decl.query


def select(text: str) -> q.Select:
    return query(text).select


def where(text: str) -> s.Expr | None:
    return select(f"select a from s where {text}").where


def codes(text: str) -> list[str]:
    with pytest.raises(Rejected) as refused:
        parse(text)
    return [d.code for d in refused.value.diagnostics]


def test_the_grammar_has_no_two_readings() -> None:
    PARSER.build(strict=True)


def test_figure_3b() -> None:
    (decl,) = parse(FIGURE_3B).decls
    assert (decl.name, decl.kind, decl.by, decl.output) == ("congested", "relation", None, False)
    columns = ("speed", "seg_no", "dir", "hwy")
    assert decl.type == s.RecordType(tuple(s.FieldType(name, s.TypeName("int")) for name in columns))
    plain = tuple(q.Item(s.Name(name)) for name in columns[1:])
    items = (q.Item(s.Call("avg", (s.Name("speed"),))), *plain)
    assert decl.query == c.Query(q.Select(items, (c.Windowed("seg_speed", window=c.Range(300)),)))


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("a IS NULL", "a is null"),
        ("a IS NOT NULL AND b Is None", "a is not null and b is none"),
        ("NOT a OR TRUE = FALSE", "not a or true = false"),
        ("coalesce(a, NULL)", "coalesce(a, none)"),
    ],
)
def test_keywords_are_read_in_either_case(upper: str, lower: str) -> None:
    assert where(upper) == where(lower)


def test_importing_the_language_is_light() -> None:
    code = "import frontends.cql, sys; print(*sorted({'lark', 'pyarrow', 'networkx', 'river.lang'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"
