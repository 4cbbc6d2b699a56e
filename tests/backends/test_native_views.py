"""Views as machine code: the rows of the evaluator, in its order, to the bit; and its traps."""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

pytest.importorskip("llvmlite")

import river
from backends.native.batch import Batch
from backends.native.layout import Unsupported
from backends.native.operator import Refused
from backends.native.ranking import ranked, ranking
from backends.native.views import compile_view
from calculus.program import Fault
from river.diagnostics import Rejected
from river.il.graph import View
from river.il.observe import contents
from river.lang import check
from river.lang import types as t
from river.lang.evaluate import Trap
from river.lang.values import NAN, total_key
from river.testing import seeds
from river.testing.body_strategies import ViewCase, view_bodies

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping


def record_of(**fields: t.Type) -> t.Record:
    return t.Record(tuple(fields.items()))


def record(*fields: t.Type) -> t.Record:
    return t.Record(tuple((f"f{i}", field) for i, field in enumerate(fields)))


ROWS = (
    record(t.STRING, t.I64),
    record(t.F64, t.F32, t.U64, t.I32, t.BOOL),
    record(t.Optional(t.STRING), t.I128, t.BYTES, t.UNIT),
    record(t.I32, t.List(t.Optional(t.STRING)), t.F64),
    record(t.Array(t.STRING, 2), t.Decimal(10, 2), t.Optional(t.Tuple((t.BOOL, t.F64)))),
    record(*[t.BOOL] * 20),
    t.STRING,
)


def value(random: random.Random, type_: t.Type) -> Any:
    """A value of which others are often equal to in part: what the order is hard to tell of."""
    match type_:
        case t.STRING | t.BYTES:
            text = random.choice(
                ["", "a", "a\0", "ab\0", "x" * random.randrange(30), "é" * 7, "same " * 3 + "z" * 3]
            )
            text = "y" * random.randrange(700) if random.random() < 0.02 else text
            return text if type_ == t.STRING else text.encode()
        case t.F32 | t.F64:
            return random.choice([0.0, -0.0, NAN, 1.5, -1.5, float("inf"), -float("inf")])
        case t.BOOL:
            return random.random() < 0.5
        case t.UNIT:
            return ()
        case t.Primitive() | t.Decimal():
            least = 0 if type_ == t.U64 else -3
            far = {t.I128: 100, t.U64: 63}.get(type_, 29) if isinstance(type_, t.Primitive) else 29
            return random.choice([random.randrange(least, 3), random.randrange(least, 2) << far])
        case t.Optional(inner):
            return None if random.random() < 0.4 else value(random, inner)
        case t.List(inner):
            return tuple(value(random, inner) for _ in range(random.randrange(3)))
        case t.Array(inner, size):
            return tuple(value(random, inner) for _ in range(size))
        case _:
            return tuple(value(random, part) for part in t.parts(type_))


@pytest.mark.some(4)
@pytest.mark.parametrize("type_", ROWS, ids=str)
def test_rows_stand_in_the_total_order(type_: t.Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.native.ranking.SEVERAL", 50)
    random = seeds.chance("order of rows", type_)
    for count, workers in product((0, 1, 2, 40, 60, 400, 3000), (1, 2, 5)):
        rows = [value(random, type_) for _ in range(count)]
        made = [
            row for part in ranked(Batch.of(type_, rows), None, workers).parts(100) for row in part.values()
        ]
        assert repr(made) == repr(sorted(rows, key=total_key(type_)))


@pytest.mark.parametrize("least", [-(1 << 63), -3, (1 << 63) - 5])
def test_rows_of_which_several_parts_fit_into_a_word_stand_in_the_total_order(least: int) -> None:
    random = seeds.chance("order of near rows", least)
    pages = ["/shop/page-1", "/shop/page-12", "/shop/page", "/shop/pa", "/shop/p"]
    type_ = record(t.I64, t.STRING, t.I32)
    rows = [
        (
            least + random.randrange(5),
            random.choice(pages[: 2 + 3 * (random.random() < 0.1)]),
            random.randrange(9),
        )
        for _ in range(400)
    ]
    made = [row for part in ranked(Batch.of(type_, rows)).parts(100) for row in part.values()]
    assert made == sorted(rows)
    numbers = [(n, k) for n, _, k in rows]
    made = [
        row for part in ranked(Batch.of(record(t.I64, t.I32), numbers)).parts(100) for row in part.values()
    ]
    assert made == sorted(numbers)


def address(random: random.Random) -> str:
    return ".".join(str(random.randrange(100, 103)) for _ in range(4))


TEXTS: Mapping[str, Callable[[random.Random], str | bytes]] = {
    "few bytes": address,
    "one end is another's beginning": lambda random: "http://www." + "x" * random.choice([0, 16, 17, 40]),
    "behind the first bytes": lambda random: "same " * 9 + random.choice("ab") * random.randrange(3),
    "ends with zeros": lambda random: random.choice("ab") + "\0" * random.randrange(3),
    "none of some": lambda random: random.choice(["", "", "q", "qq"]),
    "many bytes": lambda random: random.choice("abcdefghijkl") * 8 + chr(random.randrange(33, 127)) * 3,
    "all bytes": lambda random: bytes([random.randrange(256), random.randrange(2)]) * random.randrange(1, 9),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_which_a_word_has_the_first_bytes_stand_in_the_total_order(kind: str) -> None:
    random = seeds.chance("order of texts", kind)
    of = t.BYTES if kind == "all bytes" else t.STRING
    type_ = record(t.I32, of, of, t.I64)
    rows = [
        (random.randrange(8), TEXTS[kind](random), TEXTS[kind](random), random.randrange(3))
        for _ in range(700)
    ]
    made = [row for part in ranked(Batch.of(type_, rows)).parts(1000) for row in part.values()]
    assert made == sorted(rows)


UNLIKE: Mapping[str, str] = {
    "begins otherwise": "9.1.2", "a byte that no other has": "1.2x", "longer": "1.2.990", "shorter": "1",
}  # fmt: skip
"""Texts that are not like those that are looked at, of many."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("unlike", [*UNLIKE, ""])
def test_texts_that_were_not_looked_at_stand_in_the_total_order(
    unlike: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.native.ranking.SEVERAL", 1000)
    random, count = seeds.chance("order of texts, some looked at", unlike), 20_000
    rows = [
        (f"1.{random.randrange(3)}.{random.randrange(100)}", random.randrange(3), i % 2) for i in range(count)
    ]
    if unlike:
        for i in random.sample(range(1, count, 4), 3):  # every fourth is looked at, beginning with the first
            rows[i] = (UNLIKE[unlike], *rows[i][1:])
    order = ranked(Batch.of(record(t.STRING, t.I64, t.I32), rows), None, workers)
    assert [row for part in order.parts(7000) for row in part.values()] == sorted(rows)


def test_rows_in_order_are_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.native.ranking.SEVERAL", 50)
    assert ranked(Batch.of(t.I64, [*range(500)]), None, 3).order is None
    assert ranked(Batch.of(t.I64, [0] * 400 + [1]), None, 3).order is None
    assert ranked(Batch.of(t.I64, [0] * 400 + [1, 0]), None, 3).order is not None
    assert ranked(Batch.of(t.I64, [-1, 0, 0, 7])).order is None
    assert ranked(Batch.of(t.I64, [])).order is None
    assert ranked(Batch.of(t.I64, [0, -1])).order is not None


def test_rows_with_maps_have_no_order_here() -> None:
    with pytest.raises(Unsupported):
        ranking(record(t.I64, t.Map(t.I64, t.I64)))


def outcome(make: Callable[[], list[Any]]) -> Any:
    """The rows as text, which tells every bit of them, or the trap; machine code shows operands that are whole numbers."""
    try:
        return repr(make())
    except Fault as fault:
        trap = fault.__cause__
    except Trap as found:
        trap = found
    if not isinstance(trap, Trap):
        raise TypeError(trap)
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in trap.operands)
    return trap.code, trap.site, trap.diagnostic() if whole and trap.operands else trap.span


@pytest.mark.slow
@given(view_bodies())
@settings(deadline=None, max_examples=int(os.environ.get("RIVER_CASES", "2")))
def test_rows_of_views_are_those_of_the_evaluator(case: ViewCase) -> None:
    fns, index = check.function("rows", case.scope)
    view = View("shown", "v", case.row, fns, index)
    made = compile_view(view, case.type, debug=True)
    assert not isinstance(made, Refused), made.reasons
    made.native.variables[0].set(case.value)
    wanted = outcome(lambda: list(contents(view, case.value)))
    seen: list[tuple[int, int]] = []
    variables = made.native.variables[:1]

    def native() -> list[Any]:
        rows = made.rows(variables, lambda *done: seen.append(done))
        return [row for part in ranked(rows).parts(3) for row in part.values()]

    assert outcome(native) == wanted
    assert all(done <= of for done, of in seen)


SCORES = """river 1;
input x: {k: string, n: i64};
var $best: map<{k: string}, {n: i64}> = {};
fn best(k: {k: string}, a: {n: i64}) -> list<{k: string, n: i64, half: i64}> = [{k: k.k, n: n, half: a.n} for n in [a.n, 9, 0]];
output scores: {k: string, n: i64, half: i64} = rows($best, best, LEADING);
operator keep(x: {k: string, n: i64}; $b: map<{k: string}, {n: i64}>) -> () { on x(x) { $b[{k: x.k}] = {n: x.n}; } }
($best) <- keep(x, $best);
"""


@pytest.mark.parametrize(("leading", "numbers"), [("1", [5, 9, 0, 7, 9, 0]), ("2", [0, 5, 9, 0, 7, 9])])
def test_leading_fields_alone_order_rows(leading: str, numbers: list[int]) -> None:
    graph = river.compile(SCORES.replace("LEADING", leading), lang="river").graph
    (view,) = graph.views
    type_ = t.Map(record_of(k=t.STRING), record_of(n=t.I64))
    made = compile_view(view, type_, debug=True)
    assert not isinstance(made, Refused), made.reasons
    value = {("b",): (7,), ("a",): (5,)}
    made.native.variables[0].set(value)
    rows = made.rows(made.native.variables[:1], lambda *_: None)
    native = [row for part in ranked(rows, view.order).parts(4) for row in part.values()]
    wanted = list(contents(view, value))
    assert native == wanted
    assert [row[1] for row in wanted] == numbers


def test_rows_are_ordered_by_fields_that_they_have() -> None:
    with pytest.raises(Rejected) as caught:
        _ = river.compile(SCORES.replace("LEADING", "4"), lang="river").graph
    assert [d.code for d in caught.value.diagnostics] == ["il-view"]
