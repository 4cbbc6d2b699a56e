"""Rows dealt to shards and put in order again, against lists of values."""

from __future__ import annotations

import ctypes
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch
from backends.native.deal import Dealer, Share, divide, gathered, joined
from river.lang import typed
from river.lang import types as t
from river.lang.values import frozen_form, hash64
from river.testing.value_strategies import values_of

KEYED = t.Record((("k", t.STRING), ("f", t.F64), ("r", t.List(t.Optional(t.I64))), ("n", t.I64)))
DEEP = t.Tuple((
    t.List(t.Optional(t.List(t.STRING))), t.Array(t.List(t.BOOL), 2), t.FSUM, t.I128, t.Map(t.STRING, t.List(t.F32)),
    t.Array(t.Array(t.I32, 3), 2), t.Optional(t.Tuple((t.UNIT, t.TIME))), t.Bag(t.BYTES), t.Array(t.I64, 0),
))  # fmt: skip
MAP = t.Map(t.Tuple((t.I64, t.STRING)), t.List(t.STRING))
OMAP = t.OMap(t.Tuple((t.I64, t.STRING)), t.List(t.STRING))

few = settings(max_examples=40)


@pytest.mark.slow
@given(st.data())
@few
def test_columns_are_gathered_by_rows(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from([KEYED, DEEP, MAP]))
    values = data.draw(st.lists(values_of(type_), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=6))
    found = gathered(Batch.of(type_, values), words(rows), len(rows))
    assert repr(found.values()) == repr([values[row] for row in rows])


@given(st.lists(values_of(KEYED), max_size=12), st.sampled_from([1, 2, 8]), st.integers(0, 3))
@few
def test_rows_go_where_their_key_says_and_come_back(values: list[Any], count: int, cut: int) -> None:
    dealer = Dealer.of(KEYED, ((0,), (2,)), count)
    assert dealer is not None
    batch = Batch.of(KEYED, values)[cut:]
    values = values[cut:]
    dealt = dealer.deal(batch)
    key = t.Tuple((t.STRING, t.List(t.Optional(t.I64))))
    shards = [hash64(key, (value[0], value[2])) % count for value in values]
    seen: list[int] = []
    shares: list[Share] = []
    for shard, start, end in dealt.shards():
        wanted = [i for i, each in enumerate(shards) if each == shard]
        positions = dealt.positions(start, end)
        assert list(positions) == wanted
        assert repr(dealt.rows[start:end].values()) == repr([values[i] for i in wanted])
        shares.append(Share(dealt.rows[start:end], positions, end - start, None))
        seen += wanted
    assert sorted(seen) == list(range(len(values)))
    for stop in (len(values), len(values) // 2):
        found = joined(shares, len(values), stop)
        assert repr([] if found is None else found.values()) == repr(values[:stop])


def words(numbers: list[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=3)), max_size=20), st.data()
)
def test_what_rows_made_comes_in_the_order_of_the_rows(
    made: list[tuple[int, list[int]]], data: st.DataObject
) -> None:
    shares: list[Share] = []
    seen: dict[int, list[int]] = {}
    for shard in range(4):
        rows = [i for i, (where, _) in enumerate(made) if where == shard]
        fired = data.draw(st.integers(0, len(rows)))  # a firing may trap
        items = [made[i][1] for i in rows[:fired]]
        seen.update(zip(rows, items, strict=False))
        before = [(at, 0) for at in accumulate(map(len, items), initial=0)][:fired]
        firsts = Batch.of(t.Tuple((t.I64, t.I64)), before)
        shares.append(Share(Batch.of(t.I64, [v for each in items for v in each]), words(rows), fired, firsts))
    stop = data.draw(st.integers(0, len(made)))
    found = joined(shares, len(made), stop)
    wanted = [v for row in range(stop) for v in seen.get(row, ())]
    assert ([] if found is None else found.values()) == wanted


def holder(type_: t.Type) -> NativeOperator:
    op = typed.Operator(
        "holder", (typed.Port("x", t.I64, None),), (typed.VarParam("v", type_, written=False),), (), (), (), (),
        items=(typed.ItemHandler(0, 1, typed.Block(())),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


@pytest.fixture(scope="module")
def holders() -> dict[t.Type, NativeOperator]:
    return {type_: holder(type_) for type_ in (MAP, OMAP)}


@pytest.mark.slow
@given(st.data(), st.sampled_from([1, 2, 8]))
@few
def test_maps_are_divided_by_a_part_of_their_key(
    holders: dict[t.Type, NativeOperator], data: st.DataObject, count: int
) -> None:
    type_ = data.draw(st.sampled_from([MAP, OMAP]))
    value = data.draw(values_of(type_))
    native = holders[type_]
    (variable,) = native.variables
    parts = [native.again().variables[0] for _ in range(count)]
    variable.set(value)
    assert divide(variable, ((1,),), parts)
    assert repr(variable.get()) == repr(value)
    for shard, part in enumerate(parts):
        wanted = [(k, v) for k, v in value.items() if hash64(t.STRING, k[1]) % count == shard]
        assert repr(part.get()) == repr(frozen_form(type_, wanted))
