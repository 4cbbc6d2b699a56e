"""Columns to and from Arrow are what the general path makes of the values, whatever form the Arrow data has."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from weakref import ref

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native.arrow import from_arrow, to_arrow
from backends.native.batch import Batch
from river.diagnostics import Rejected
from river.io.schema import arrow_schema, columns, growable, to_batch
from river.io.schema import from_arrow as from_column
from river.io.sources import open_source
from river.lang import types as t
from river.testing.value_strategies import item_types, values_of

ROW = t.Record((
    ("b", t.BOOL), ("i", t.I32), ("n", t.I64), ("u", t.U64), ("f", t.F64), ("g", t.F32), ("s", t.STRING), ("y", t.BYTES),
    ("m", t.Decimal(38, 3)), ("t", t.TIME), ("d", t.DURATION), ("o", t.Optional(t.STRING)), ("ob", t.Optional(t.BOOL)),
    ("oi", t.Optional(t.I32)), ("p", t.Tuple((t.UNIT, t.I64))),
))  # fmt: skip
DEEP = t.Record((
    ("l", t.List(t.Optional(t.List(t.STRING)))), ("a", t.Array(t.List(t.I64), 2)), ("e", t.List(t.Tuple((t.UNIT,)))),
    ("m", t.Map(t.STRING, t.List(t.F64))), ("k", t.Map(t.Tuple((t.DURATION, t.I32)), t.Map(t.I64, t.UNIT))),
    ("r", t.Optional(t.Record((("t", t.TIME), ("s", t.STRING), ("m", t.Decimal(5, 2)), ("q", t.Tuple((t.Optional(t.BYTES),))))))),
))  # fmt: skip

few = settings(max_examples=min(40, settings().max_examples), deadline=None)


def sayable(type_: t.Type) -> t.Type:
    """The type with bools for units in optionals, and a tuple's fields for a record without any."""
    match type_:
        case t.Optional(t.UNIT):
            return t.Optional(t.BOOL)
        case t.Optional(inner):
            return t.Optional(sayable(inner))
        case t.Record(fields):
            return t.Record(tuple((name, sayable(part)) for name, part in fields) or (("x", t.BOOL),))
        case t.Tuple(items):
            return t.Tuple(tuple(map(sayable, items)))
        case t.List(item):
            return t.List(sayable(item))
        case t.Array(item, size):
            return t.Array(sayable(item), max(size, 1))
        case t.Map(key, value):
            return t.Map(key_of(sayable(key)), sayable(value))
        case _:
            return type_


def key_of(type_: t.Type) -> t.Type:
    """The type as Arrow takes it for keys, which are never null."""
    return t.BOOL if type_ == t.UNIT else type_.inner if isinstance(type_, t.Optional) else type_


def plain(table: Any, type_: t.Type) -> str:
    """The values of a table, told by the general path."""
    return repr([from_column(of, table.column(i)) for i, (_, of) in enumerate(columns(type_))])


def general(type_: t.Type, data: Any) -> list[Any]:
    """What the general reader makes of a table."""
    return [item for part in open_source(data, type_, name="in") for item in part]


def read(type_: t.Type, data: Any) -> list[Any]:
    batch = from_arrow(type_, data)
    assert batch is not None
    assert len(batch.addresses) == len(Batch.of(type_, []).addresses)
    return batch.values()


def check_out(type_: t.Type, values: list[Any]) -> Any:
    batch = Batch.of(type_, values)
    made, wanted = to_arrow(type_, batch), to_batch(type_, values)
    made.validate(full=True)
    assert made.schema == wanted.schema
    assert plain(made, type_) == plain(wanted, type_)
    assert [c.null_count for c in made.columns] == [c.null_count for c in wanted.columns]
    return made


@pytest.mark.slow
@given(st.data())
@few
@pytest.mark.parametrize("type_", [ROW, DEEP], ids=["row", "deep"])
def test_both_ways(type_: t.Type, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(type_, 3), max_size=12))
    made = check_out(type_, values)
    for table in (made, to_batch(type_, values)):
        assert repr(read(type_, table)) == repr(values)
        start = len(values) // 3
        assert repr(read(type_, table.slice(start, 5))) == repr(values[start : start + 5])
    batch = Batch.of(type_, values)
    for start in range(0, len(values), 3):
        stop = min(start + 4, len(values))
        part = to_arrow(type_, batch, start, stop)
        part.validate(full=True)
        assert plain(part, type_) == plain(to_batch(type_, values[start:stop]), type_)
        copied = to_arrow(type_, batch, start, stop, copied=True)
        copied.validate(full=True)
        assert plain(copied, type_) == plain(part, type_)


def test_what_is_copied_does_not_keep_the_batch() -> None:
    type_ = t.Record((("n", t.I64), ("s", t.STRING), ("o", t.Optional(t.F64))))
    values = [(i, f"text {i}", None if i % 3 else i / 2) for i in range(100)]
    shared, copied = (to_arrow(type_, Batch.of(type_, values), copied=copied) for copied in (False, True))
    batch = Batch.of(type_, values)
    gone = ref(batch)
    kept = to_arrow(type_, batch)
    del batch
    assert gone() is not None
    assert kept.equals(shared)
    assert kept.equals(copied)
    batch = Batch.of(type_, values)
    gone = ref(batch)
    kept = to_arrow(type_, batch, copied=True)
    del batch
    assert gone() is None
    assert kept.equals(shared)


@pytest.mark.slow
@given(item_types(8).map(sayable), st.data())
@settings(max_examples=min(60, 2 * settings().max_examples), deadline=None)
def test_any_type(type_: t.Type, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(type_, 3), max_size=6))
    made = check_out(type_, values)
    assert repr(general(type_, made)) == repr(values)
    batch = from_arrow(type_, made)
    if batch is not None:
        assert repr(batch.values()) == repr(values)
    larger = growable(type_)
    wanted = to_batch(larger, values)
    grown = to_arrow(larger, Batch.of(type_, values))
    grown.validate(full=True)
    assert grown.schema == wanted.schema
    assert plain(grown, larger) == plain(wanted, larger)


TEXTS = ["", "a", "twelve bytes", "thirteen byte", "käse", "käse und noch viel mehr", None, "x" * 300]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
             pa.dictionary(pa.int32(), pa.large_string())], ids=str,
)  # fmt: skip
def test_forms_of_texts(kind: Any) -> None:
    type_ = t.Optional(t.STRING)
    column = pa.array(TEXTS * 3, pa.string()).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(
        TEXTS * 3, pa.string()
    ).dictionary_encode().cast(kind)  # fmt: skip
    table = pa.record_batch({"value": column})
    assert read(type_, table) == TEXTS * 3
    assert read(type_, table.slice(3, 9)) == (TEXTS * 3)[3:12]
    assert from_arrow(t.STRING, table) is None


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_forms_of_bytes(kind: Any) -> None:
    values = [b"", b"\xff", b"thirteen byte", None, bytes(range(256))]
    assert read(t.Optional(t.BYTES), pa.record_batch({"value": pa.array(values, kind)})) == values


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        (t.I64, pa.array([1, -2, 3], pa.int8())),
        (t.I32, pa.array([1, 2], pa.uint64())),
        (t.I64, pa.array([1.0, -2.0])),
        (t.U64, pa.array([1, 2], pa.int16())),
        (t.F64, pa.array([1, 2**53], pa.int64())),
        (t.F64, pa.array([1.5], pa.float32())),
        (t.F32, pa.array([0.1, float("nan"), 1e30])),
        (t.TIME, pa.array([1, -(2**40)], pa.timestamp("s"))),
        (t.TIME, pa.array([1, -5], pa.timestamp("ms", tz="Europe/Berlin"))),
        (t.TIME, pa.array([1000, -5000], pa.timestamp("ns"))),
        (t.TIME, pa.array([dt.date(1969, 1, 1)], pa.date32())),
        (t.TIME, pa.array([dt.date(2169, 1, 1)], pa.date64())),
        (t.DURATION, pa.array([7, -7], pa.duration("s"))),
        (t.List(t.I64), pa.array([[1], [], [2, 3]], pa.large_list(pa.int64()))),
    ],
)
def test_other_types_that_fit(type_: t.Type, column: Any) -> None:
    table = pa.record_batch({"value": column})
    assert repr(read(type_, table)) == repr(general(type_, table))


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        (t.I64, pa.array([1, None])),
        (t.I32, pa.array([2**31])),
        (t.U64, pa.array([-1])),
        (t.I64, pa.array([1.5])),
        (t.F64, pa.array([2**53 + 1])),
        (t.F32, pa.array([1e300])),
        (t.TIME, pa.array([1], pa.timestamp("ns"))),
        (t.TIME, pa.array([2**62], pa.timestamp("s"))),
        (t.TIME, pa.array([2**31 - 1], pa.date32())),
        (t.Decimal(3, 2), pa.array([Decimal("12.34")], pa.decimal128(4, 2))),
        (t.List(t.I64), pa.array([[1, None]])),
        (t.Array(t.I64, 2), pa.array([[1, 2], [3]])),
        (t.Record((("x", t.Record((("y", t.I64),))),)), pa.array([{"y": None}])),
    ],
)
def test_what_does_not_fit_is_left_to_the_general_path(type_: t.Type, column: Any) -> None:
    table = pa.record_batch({"x" if isinstance(type_, t.Record) else "value": column})
    assert from_arrow(type_, table) is None
    with pytest.raises(Rejected):
        general(type_, table)


def test_nulls_inside_an_absent_record() -> None:
    inner = t.Record((("n", t.I64), ("s", t.STRING), ("l", t.List(t.I64))))
    type_ = t.Record((("r", t.Optional(inner)),))
    column = pa.array([None, {"n": 1, "s": "a", "l": [1]}, None])
    assert read(type_, pa.record_batch({"r": column})) == [(None,), ((1, "a", (1,)),), (None,)]
    bad = pa.array([None, {"n": None, "s": "a", "l": [1]}])
    assert from_arrow(type_, pa.record_batch({"r": bad})) is None


def test_fields_in_another_order_and_more_of_them() -> None:
    type_ = t.Record((("a", t.I64), ("r", t.Record((("y", t.BOOL), ("x", t.STRING))))))
    table = pa.record_batch(
        {"z": pa.array([1]), "r": pa.array([{"x": "q", "w": 1, "y": True}]), "a": pa.array([7])}
    )
    assert read(type_, table) == [(7, (True, "q"))]


def texts_of(offsets: list[int], data: bytes, kind: Any = None) -> Any:
    """A column of texts that nobody has checked."""
    buffers = [
        None,
        pa.py_buffer(b"".join(o.to_bytes(4, "little", signed=True) for o in offsets)),
        pa.py_buffer(data),
    ]
    return pa.record_batch({"value": pa.Array.from_buffers(kind or pa.string(), len(offsets) - 1, buffers)})


@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 9, 4], [0, -1, 3], [0, 2**31 - 1, 4]])
def test_offsets_are_not_followed_out_of_the_data(offsets: list[int]) -> None:
    assert from_arrow(t.STRING, texts_of(offsets, b"abcd")) is None


@pytest.mark.slow
@given(st.binary(max_size=20))
@settings(max_examples=300)
def test_texts_are_utf8(data: bytes) -> None:
    found = from_arrow(t.STRING, texts_of([0, len(data)], data))
    try:
        wanted = [data.decode()]
    except UnicodeDecodeError:
        assert found is None
    else:
        assert found is not None
        assert found.values() == wanted


def test_all_short_sequences_of_bytes_are_checked_as_python_does() -> None:
    marks = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1,
             0xF4, 0xF5, 0xFF)  # fmt: skip
    for a in marks:
        for b in marks:
            for more in (b"", b"\x80", b"\x80\x80", b"\xbfx", b"\x80\xc0"):
                data = bytes((a, b)) + more
                try:
                    data.decode()
                    good = True
                except UnicodeDecodeError:
                    good = False
                assert (from_arrow(t.STRING, texts_of([0, len(data)], data)) is not None) == good, data


def test_views_are_not_followed_out_of_their_buffers() -> None:
    good = pa.array(["a text of more than twelve bytes"], pa.string_view())
    view = good.buffers()[1].to_pybytes()
    for word, value in ((0, 1000), (0, -1), (8, 1), (8, -1), (12, 30), (12, -1)):
        bad = view[:word] + value.to_bytes(4, "little", signed=True) + view[word + 4 :]
        array = pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(bad), good.buffers()[2]])
        assert from_arrow(t.STRING, pa.record_batch({"value": array})) is None


def test_list_offsets_are_not_followed_out_of_the_items() -> None:
    items = pa.array([1, 2, 3])
    for offsets in ([0, 9, 3], [0, -1, 3], [0, 2, 1, 3], [1, 0, 3]):
        buffer = pa.py_buffer(b"".join(o.to_bytes(4, "little", signed=True) for o in offsets))
        rows = len(offsets) - 1
        array = pa.Array.from_buffers(pa.list_(pa.int64()), rows, [None, buffer], children=[items])
        assert from_arrow(t.List(t.I64), pa.record_batch({"value": array})) is None


def test_a_key_that_occurs_twice_is_left_to_the_general_path() -> None:
    kind = arrow_schema(t.Map(t.STRING, t.I64)).field(0).type
    table = pa.record_batch({"value": pa.array([[("a", 1), ("b", 2)], [("a", 1), ("a", 2)]], kind)})
    type_ = t.Map(t.STRING, t.I64)
    assert from_arrow(type_, table) is None
    assert from_arrow(type_, table.slice(0, 1)) is not None


def test_memory_lives_as_long_as_the_data() -> None:
    type_ = t.Record((("n", t.I64), ("s", t.STRING)))
    values = [(i, str(i) * 20) for i in range(1000)]
    made = to_arrow(type_, Batch.of(type_, values))
    batch = from_arrow(type_, made)
    del made
    again = [bytearray(b"\xff" * 8000) for _ in range(20)]
    assert batch is not None
    assert batch.values() == values
    assert again
