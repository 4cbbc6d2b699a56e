"""`case` with many alternatives, and inside one another: what it means, how deep it gets, and what it takes to check it."""

from __future__ import annotations

from typing import Any

import pytest

from frontends.sql import expressions, parse
from river.diagnostics import Rejected
from river.driver.compilation import Compiled, compile_source
from river.il.parse import parse as parse_il
from river.il.pretty import pretty
from river.il.trees import walk
from river.lang import check
from river.lang import syntax as s
from river.source import Source, Span

HEAD = "s: { ts: int; a: int; b: int? } stream by ts; output v: stream = istream(select ts, "
CASES = {
    "conditions": "case when a < 2 then a when b > 3 then 1 when a = 4 then 2 when b is null then 3 when a > 6 then 4 else 5 end",
    "nothing else": "case when a = 1 then 1 when a = 2 then 2 when a = 5 then 3 when b = 4 then 4 when a = 6 then 5 end",
    "nothing": "case when a = 1 then null when a = 2 then null when a = 5 then 3 when a = 6 then null when b = 4 then null"
    " else 7 end",
    "nothing twice": "case when a = 1 then 1 when a = 2 then null when a = 5 then null when a = 6 then 2 when a = 7 then 3"
    " else 7 end",
    "values": "case b when 1 then 'x' when 2 then 'y' when 5 then 'z' when 1 then 'w' when 0 then 'u' else 'v' end",
    "numbers": "case when a = 1 then 1 when a = 2 then 2 when a = 3 then 3 when a = 5 then 0.5 when b = 0 then 4 else 6 end",
    "traps": "case when a = 3 then 1 when 6 / (a - 3) > 2 then 2 when a = 7 then 3 when 6 / (a - 7) < 0 then 4 else 5 end",
    "unknown and a trap": "case when b > 100 then 0 when a = 3 then 1 when 6 / (a - 3) = b then 2 when a < 0 then 3 else 5 end",
}  # fmt: skip
ROWS = [(ts, ts % 9, None if ts % 4 == 1 else ts % 6) for ts in range(40)]


def compiled(value: str) -> Compiled:
    """The program with this value, made anew: who remembers texts has not seen this one with other groups."""
    return compile_source(Source("case.cql", f"{HEAD}{value} as c from s[now]); -- {parse.GROUP}"), "cql")


def found(value: str, native: str = "off") -> list[Any]:
    """What it computes. Its text can be read again."""
    program = compiled(value)
    assert parse_il(Source("again.river", pretty(program.graph.program))) == program.graph.program
    return [row["c"] for row in program.run({"s": ROWS}, native=native, workers=1)["v"].to_pylist()]


@pytest.mark.parametrize("name", CASES)
def test_groups_of_alternatives_mean_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    meant = found(CASES[name])
    for size in (2, 3):
        monkeypatch.setattr(parse, "GROUP", size)
        assert found(CASES[name]) == meant


@pytest.mark.slow
def test_a_long_case_runs_alike() -> None:
    arms = " ".join(f"when ts * 7 = {i} then {i * 7 % 11}" for i in reversed(range(120)))
    meant = [ts * 49 % 11 if ts * 7 < 120 else -1 for ts, _, _ in ROWS]
    value = f"case {arms} else -1 end"
    assert found(value) == found(value, "on") == meant


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 64, 65, 1000, 1024, 1025, 5000])
def test_no_alternative_is_deeper_than_is_told(count: int) -> None:
    span = Span(Source("t", ""), 0, 0)
    arms: list[tuple[s.Expr, s.Expr]] = [(s.Name(f"c{i}"), s.Int(i)) for i in range(count)]
    deep: dict[int, int] = {}
    seen: list[int] = [0] * count

    def look(node: s.Node, level: int) -> None:
        match node:
            case s.IfExpr(condition, then, other):
                for name in (each.name for each in walk(condition) if isinstance(each, s.Name)):
                    seen[int(name[1:])] += 1
                look(then, level + 1)
                look(other, level + 1)
            case s.Int(value):
                deep[value] = level
            case _:
                raise AssertionError(node)

    look(parse.chosen(arms, s.Int(count), span), 0)
    assert all(deep[i] <= parse.depth(i, count) for i in range(count))
    assert deep[count] <= parse.depth(count - 1, count)
    assert max(deep.values()) <= 3 * parse.GROUP
    assert max(seen) <= 3


def checked_nodes(value: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many nodes of expressions are looked at to find their types."""
    looked = 0

    def expression(expr: s.Expr, *args: Any) -> Any:
        nonlocal looked
        looked += sum(1 for _ in walk(expr))
        return check.expression(expr, *args)

    with monkeypatch.context() as patched:
        patched.setattr(expressions, "check", type("Check", (), {"expression": staticmethod(expression)}))
        compiled(value)
    return looked


@pytest.mark.parametrize("other", ["0", "null", "0.5"])
def test_what_is_inside_is_not_looked_at_again(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nested(levels: int) -> str:
        value = other
        for i in range(levels):
            value = f"case when a = {i} then {i} else {value} end"
        return value

    few, many = (checked_nodes(nested(levels), monkeypatch) for levels in (40, 160))
    assert many < 5 * few


def test_there_may_be_too_much_inside() -> None:
    value = "case when a = 1 then 1 else " * 250 + "0" + " end" * 250
    with pytest.raises(Rejected) as rejected:
        compiled(value)
    assert [d.code for d in rejected.value.diagnostics] == ["syntax-too-deep"]
