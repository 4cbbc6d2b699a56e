"""Values in columns and in native memory: what goes in comes out, and hashes as the evaluator says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, Refused, batch, compile_native
from backends.native.batch import Batch, concat, strides
from backends.native.layout import widths
from backends.native.listing import listed
from backends.native.lower import expressions
from river.lang import typed
from river.lang import types as t
from river.lang.values import NAN, FrozenMap, default, hash64
from river.testing.value_strategies import values_of

ROW = t.Record((
    ("b", t.BOOL), ("i", t.I32), ("n", t.I64), ("u", t.U64), ("f", t.F64), ("g", t.F32), ("s", t.STRING), ("y", t.BYTES),
    ("m", t.Decimal(38, 3)), ("t", t.TIME), ("o", t.Optional(t.STRING)), ("p", t.Tuple((t.UNIT, t.I64))),
))  # fmt: skip
DEEP = t.Record((
    ("l", t.List(t.Optional(t.List(t.STRING)))), ("a", t.Array(t.List(t.I64), 2)), ("e", t.List(t.Tuple(()))),
    ("m", t.Map(t.STRING, t.List(t.F64))), ("k", t.Map(t.Tuple((t.F64, t.I32)), t.Map(t.I64, t.UNIT))),
))  # fmt: skip
FLAT = t.Record((("n", t.I32), ("s", t.STRING), ("a", t.Array(t.F64, 2)), ("b", t.BOOL)))
STATE = t.Tuple((
    DEEP, t.FSUM, t.I128, t.Deque(t.STRING), t.OMap(t.Optional(t.F64), t.FSUM), t.Bag(t.Record((("s", t.STRING), ("n", t.I64)))),
))  # fmt: skip
KEYS = (ROW, t.List(ROW), t.Array(t.F64, 3), t.Optional(t.List(t.BYTES)), t.Map(t.F64, t.STRING), t.Bag(t.STRING),
        t.OMap(t.I32, t.F32), t.Deque(t.BOOL))  # fmt: skip

few = settings(max_examples=min(40, settings().max_examples))


def hashing(type_: t.Type) -> NativeOperator:
    """An operator that keeps its item and sends its hash."""
    item = typed.Local(type_, 0, "x")
    body = typed.Block(
        (
            typed.Assign(typed.State(type_, 0, "v"), item),
            typed.Emit(0, typed.Apply(t.U64, "hash64", (typed.State(type_, 0, "v"),))),
        )
    )
    op = typed.Operator(
        "hashing", (typed.Port("x", type_, None),), (typed.VarParam("v", type_, written=True),),
        (typed.Out("h", t.U64, None, None),), (), (), (), items=(typed.ItemHandler(0, 1, body),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


@pytest.fixture(scope="module")
def hashers() -> dict[t.Type, NativeOperator]:
    return {type_: hashing(type_) for type_ in KEYS}


@pytest.fixture(scope="module")
def keeper() -> NativeOperator:
    op = typed.Operator(
        "keeper", (typed.Port("x", t.I64, None),), (typed.VarParam("v", STATE, written=False),), (), (), (), (),
        items=(typed.ItemHandler(0, 1, typed.Block(())),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


@pytest.mark.parametrize(
    "type_", [t.F32, ROW, DEEP, STATE, t.UNIT, t.Array(t.Tuple((t.F64, t.BOOL)), 3), t.Tuple(())]
)
@given(data=st.data())
@settings(max_examples=15)
def test_rows_of_several_batches_come_one_after_the_other(type_: t.Type, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(values_of(type_, 3), max_size=3), min_size=1, max_size=4))
    skipped = data.draw(st.integers(0, 2))
    batches = [Batch.of(type_, values)[skipped:] for values in parts]
    found = concat(batches)
    assert len(found) == sum(map(len, batches))
    wanted = [value for values in parts for value in values[skipped:]]
    del batches
    assert repr(found.values()) == repr(wanted)


@pytest.mark.parametrize("type_", [t.F32, ROW, DEEP, STATE, t.UNIT, t.Tuple(()), t.List(t.STRING), t.STRING])
@given(data=st.data())
@settings(max_examples=10)
def test_a_row_is_repeated(type_: t.Type, data: st.DataObject) -> None:
    """Of a type with lists the one where these are empty."""
    listed_ = 0 in strides(type_) or type_ == STATE
    value = default(type_) if listed_ else data.draw(values_of(type_))
    count = data.draw(st.integers(0, 5))
    found = Batch.of(type_, [value]).repeated(count)
    assert len(found) == count
    assert repr(found.values()) == repr([value] * count)


@given(st.data())
@settings(max_examples=30)
def test_all_rows_are_listed_however_many_were_expected(data: st.DataObject) -> None:
    """What nobody reads is zero; in rows with lists all is there."""
    type_ = data.draw(st.sampled_from([FLAT, DEEP, t.UNIT]))
    parts = data.draw(st.lists(st.lists(values_of(type_, 3), max_size=5), max_size=4))
    read = [data.draw(st.booleans()) or type_ != FLAT for _ in range(widths(type_)[0])]
    expected = data.draw(st.integers(0, 9))
    found = listed(type_, (Batch.of(type_, values) for values in parts), read, lambda: expected)
    wanted = tuple(value for values in parts for value in values)
    if type_ == FLAT:
        wanted = tuple(
            tuple(
                value if is_read else zero
                for value, zero, is_read in zip(row, default(FLAT), read, strict=True)
            )
            for row in wanted
        )
    assert repr(found.values()) == repr([wanted])


@given(st.data())
@few
def test_columns_hold_what_was_put_in(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from([ROW, DEEP, STATE, *KEYS]))
    values = data.draw(st.lists(values_of(type_), max_size=4))
    assert repr(Batch.of(type_, values).values()) == repr(values)


@pytest.mark.slow
@given(values_of(STATE), values_of(STATE))
@few
def test_variables_keep_their_value(keeper: NativeOperator, first: Any, second: Any) -> None:
    (variable,) = keeper.variables
    for value in (first, second):
        variable.set(value)
        assert repr(variable.get()) == repr(value)
        assert repr(variable.get()) == repr(value)


@pytest.mark.slow
@given(st.sampled_from(KEYS), st.data())
@settings(max_examples=min(100, 3 * settings().max_examples))
def test_hashes_are_those_of_the_evaluator(
    hashers: dict[t.Type, NativeOperator], type_: t.Type, data: st.DataObject
) -> None:
    values = data.draw(st.lists(values_of(type_), min_size=1, max_size=3))
    (hashes,), fired = hashers[type_].fire_batch([values])
    assert fired.trap is None
    assert hashes == [hash64(type_, value) for value in values]
    assert repr(hashers[type_].variables[0].get()) == repr(values[-1])


def test_zeros_and_nan_hash_alike(hashers: dict[t.Type, NativeOperator]) -> None:
    zeros = [(0.0, -0.0, NAN), (-0.0, 0.0, math.nan)]
    (hashes,), _ = hashers[t.Array(t.F64, 3)].fire_batch([zeros])
    assert hashes == [hash64(t.Array(t.F64, 3), zeros[0])] * 2


def test_a_variable_in_use_can_be_shared(keeper: NativeOperator) -> None:
    other = keeper.again()
    other.share(0, keeper.variables[0])
    value = (
        ((), ((), ()), (), FrozenMap(), FrozenMap()),
        (0, 0, 0, 0),
        5,
        ("a string that is not short",),
        None,
        None,
    )
    value = (
        *value[:4],
        *Batch.of(t.Tuple((STATE.items[4], STATE.items[5])), []).values(),
        *zero_of(STATE)[4:],
    )
    keeper.variables[0].set(value)
    assert other.variables[0].get() == value


def zero_of(type_: t.Type) -> Any:
    from river.lang.values import default

    return default(type_)


def test_what_is_not_compiled_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(expressions._RULES, "re_test")  # every operation has its rule
    text = typed.Local(t.STRING, 0, "x")
    found_at_runtime = typed.Apply(t.REGEX, "regex", (text,), 0)
    body = typed.Block((typed.Emit(0, typed.Apply(t.BOOL, "re_test", (found_at_runtime, text))),))
    op = typed.Operator(
        "seek", (typed.Port("x", t.STRING, None),), (), (typed.Out("o", t.BOOL, None, None),), (), (), (typed.TrapSite(()),),
        items=(typed.ItemHandler(0, 1, body),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, Refused)
    assert [reason.text for reason in found.reasons] == ["`re_test`"]


@pytest.fixture(scope="module")
def copiers() -> dict[t.Type, NativeOperator]:
    """Operators that send what comes."""
    return {type_: copying(type_) for type_ in (ROW, DEEP)}


def copying(type_: t.Type) -> NativeOperator:
    body = typed.Block((typed.Emit(0, typed.Local(type_, 0, "x")),))
    op = typed.Operator(
        "copying", (typed.Port("x", type_, None),), (), (typed.Out("y", type_, None, None),), (), (), (),
        items=(typed.ItemHandler(0, 1, body),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("type_", [ROW, DEEP], ids=["row", "deep"])
@given(st.data())
@settings(max_examples=12)
def test_tables_with_the_room_of_those_before(
    copiers: dict[t.Type, NativeOperator], type_: t.Type, data: st.DataObject
) -> None:
    """What was made is kept, so that every batch has tables of its own: some are too small, some have never grown."""
    op = copiers[type_]
    values = data.draw(
        st.lists(st.lists(values_of(type_, 3), min_size=1, max_size=6), min_size=2, max_size=4)
    )
    kept: list[Batch] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch, "_MANY", 1)
        for items in (*values, values[0] * 30):
            given = Batch.of(type_, items)
            assert op.fire("item.0", given.addresses, 0, len(items)).trap is None
            kept += [made for _, made, _ in op.take([given])]
    assert repr([made.values() for made in kept]) == repr([*values, values[0] * 30])
