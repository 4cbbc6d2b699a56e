"""Native text is byte for byte what the sink writes, for every type and format; deltas are their change log."""

from __future__ import annotations

import io
import math
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native.batch import Batch
from backends.native.egress import Encoder, encoder
from backends.native.egress.changelog import change_log
from backends.native.egress.sinks import ColumnSink, column_sink
from river.diagnostics import Rejected
from river.driver import CountedSink, Writer
from river.io import deltas, scalars
from river.io.display import Entry
from river.io.schema import columns, from_arrow, growable, to_batch
from river.io.sinks import Collector, open_sink
from river.io.sources import open_source
from river.lang import types as t
from river.lang.values import NAN, FrozenMap
from river.testing.value_strategies import item_types, values_of

if TYPE_CHECKING:
    from pathlib import Path

ROW = t.Record((
    ("b", t.BOOL), ("i", t.I32), ("n", t.I64), ("u", t.U64), ("f", t.F64), ("g", t.F32), ("s", t.STRING), ("y", t.BYTES),
    ("m", t.Decimal(38, 3)), ("w", t.Decimal(38, 38)), ("z", t.Decimal(9, 0)), ("t", t.TIME), ("d", t.DURATION),
    ("o", t.Optional(t.STRING)), ("ob", t.Optional(t.BYTES)), ("of", t.Optional(t.F32)), ('q"x,', t.UNIT),
))  # fmt: skip
DEEP = t.Record((
    ("l", t.List(t.Optional(t.List(t.STRING)))), ("a", t.Array(t.List(t.I64), 2)), ("e", t.List(t.Tuple(()))),
    ("m", t.Map(t.STRING, t.List(t.F64))), ("k", t.Map(t.Tuple((t.F64, t.I32)), t.Map(t.I64, t.UNIT))),
    ("r", t.Optional(t.Record((("käse", t.TIME), ("d", t.DURATION), ("f", t.Optional(t.F64)))))), ("z", t.Array(t.F32, 0)),
    ("p", t.Tuple((t.UNIT, t.BYTES, t.Decimal(20, 5), t.BOOL))),
))  # fmt: skip
FIXED = (ROW, DEEP, t.Optional(t.STRING), t.List(ROW), t.STRING)
DELTAS = (
    t.delta(t.Record((("n", t.I32), ("op", t.Optional(t.STRING)))), t.TIME),
    t.delta(t.Record((("f", t.F64), ("l", t.List(t.F32)), ("m", t.Map(t.STRING, t.UNIT)), ("a", t.Array(t.BOOL, 2)))), t.I64),
    t.delta(t.Record(()), t.I64),
)  # fmt: skip
FORMATS = ("csv", "tsv", "jsonl", "entries")
ENTRY = Entry("tab\u00e9", (2, 1))
PIECES = [
    "a\u00e9\u20ac\U0010ffff".encode()[start:stop] for start in range(10) for stop in range(start + 1, 11)
]  # of characters, too
SPECIAL = st.text(alphabet=' ,\t"\n\r\\aé\x00\x1f\x7f', max_size=30)

few = settings(max_examples=min(15, settings().max_examples * 2 // 3), deadline=None)


def general(type_: t.Type, format_: str, items: list[Any]) -> bytes:
    """What the sink writes, without a header."""
    target = io.BytesIO()
    with open_sink(target, type_, name=ENTRY.name, format=format_, index=ENTRY.index) as sink:
        start = len(target.getvalue())
        sink.write(items)
    return target.getvalue()[start:]


def found(type_: t.Type, format_: str) -> Encoder:
    made = encoder(type_, format_, ENTRY if format_ == "entries" else None)
    assert made is not None
    return made


def encoded(type_: t.Type, format_: str, items: list[Any]) -> bytes:
    got = found(type_, format_).encode(Batch.of(type_, items))
    assert got is not None
    return bytes(got.data)


@given(st.data())
@few
@pytest.mark.parametrize("format_", FORMATS)
def test_text_is_that_of_the_sink(format_: str, data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(FIXED))
    items = data.draw(st.lists(values_of(type_, 3), max_size=4))
    assert encoded(type_, format_, items) == general(type_, format_, items)


@given(item_types(), st.data())
@settings(max_examples=4, deadline=None)
def test_text_of_any_type_is_that_of_the_sink(type_: t.Type, data: st.DataObject) -> None:
    check_any(type_, data)


@given(item_types(8), st.data())
@settings(max_examples=80, deadline=None)
@pytest.mark.long
def test_text_of_many_types_is_that_of_the_sink(type_: t.Type, data: st.DataObject) -> None:
    check_any(type_, data)


def check_any(type_: t.Type, data: st.DataObject) -> None:
    items = data.draw(st.lists(values_of(type_, 3), max_size=4))
    for format_ in ("csv", "jsonl", "entries"):
        if type_ == t.Record(()) and format_ != "jsonl":
            assert encoder(type_, format_) is None
        else:
            assert encoded(type_, format_, items) == general(type_, format_, items)


@pytest.mark.slow
@given(st.lists(SPECIAL | st.text(max_size=40), max_size=20))
@few
@pytest.mark.parametrize("format_", FORMATS)
def test_texts_are_quoted_and_escaped(format_: str, items: list[str]) -> None:
    assert encoded(t.STRING, format_, items) == general(t.STRING, format_, items)


def test_each_byte_at_each_place_is_quoted_and_escaped() -> None:
    items = [
        "x" * before + chr(c) + "y" * after
        for c in range(130)
        for before in range(0, 20, 3)
        for after in (0, 3, 9)
    ]
    for format_ in FORMATS:
        assert encoded(t.STRING, format_, items) == general(t.STRING, format_, items)


@given(st.lists(st.tuples(st.floats(), st.floats(width=32)), max_size=50))
@few
def test_floats_are_those_of_python(items: list[tuple[float, float]]) -> None:
    type_ = t.Tuple((t.F64, t.F32))
    assert encoded(type_, "jsonl", items) == general(type_, "jsonl", items)


def test_floats_near_powers_and_ties_are_those_of_python() -> None:
    doubles = [
        math.nextafter(2.0**k, toward)
        for k in range(-1074, 1024, 3)
        for toward in (-math.inf, 2.0**k, math.inf)
    ]
    doubles += [float(f"1e{k}") for k in range(-323, 309)] + [n / 100 for n in range(-200, 200)]
    text = encoded(t.F64, "csv", doubles).decode()
    assert text.splitlines() == [repr(x) for x in doubles]
    doubles += [NAN, math.inf, -math.inf, 0.0, -0.0, 0.1 + 0.2]
    assert encoded(t.F64, "entries", doubles) == general(t.F64, "entries", doubles)
    bits = [sign | exponent << 23 | fraction for sign in (0, 1 << 31) for exponent in range(256)
            for fraction in (0, 1, 2, 0x400000, 0x7FFFFE, 0x7FFFFF)]  # fmt: skip
    singles = array("f", array("I", bits).tobytes()).tolist()
    singles += array("f", [10.0**k for k in range(-45, 39)]).tolist()
    singles += [
        n / 2**k for k in (0, 1, 2, 6, 10) for n in range((1 << 23) + 4_000_001, (1 << 23) + 4_000_400)
    ]
    text = encoded(t.F32, "csv", singles).decode()
    assert text.splitlines() == [scalars.format_f32(x) for x in singles]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**17), 10**17), max_size=30))
@few
def test_times_are_those_of_the_sink(items: list[int]) -> None:
    for type_ in (t.TIME, t.DURATION):
        assert encoded(type_, "csv", items) == general(type_, "csv", items)


def test_years_and_fractions() -> None:
    year = 31_556_952_000_000
    items = [k * year for k in range(-12_000, 12_000, 7)] + [k * year for k in range(-290_000, 290_000, 997)]
    items += [1, 10, 999, 1000, 1001, 500_000, 123_000, 1_000_000, -1, -1000, 0]
    for type_ in (t.TIME, t.DURATION):
        assert encoded(type_, "csv", items) == general(type_, "csv", items)


@given(st.data())
@few
def test_deltas_are_their_change_log(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(DELTAS))
    row = deltas.row_type(type_)
    some = data.draw(st.lists(values_of(row, 2), min_size=1, max_size=4))
    rows = st.lists(st.sampled_from(some), max_size=12).map(tuple)
    items = data.draw(st.lists(st.tuples(st.integers(0, 9), rows, rows), max_size=4))
    check_deltas(type_, items)


def check_deltas(type_: t.Type, items: list[Any]) -> None:
    log = deltas.changelog(type_)
    rows = [row for item in items for row in deltas.changelog_rows(item)]
    for format_ in ("csv", "jsonl", "entries"):
        got = found(type_, format_).encode(Batch.of(type_, items))
        assert got is not None
        assert bytes(got.data) == general(log, format_, rows)
        assert got.rows == len(rows)


@given(st.lists(st.binary(max_size=20) | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)))
@few
def test_bytes_of_entries_are_text_as_far_as_they_are(items: list[bytes]) -> None:
    assert encoded(t.BYTES, "entries", items) == general(t.BYTES, "entries", items)


def test_records_inside_of_entries_may_be_undefined() -> None:
    pair = t.Record((("a", t.I64), ("b", t.Optional(t.F64))))
    type_ = t.Record((("p", t.Optional(pair)), ("l", t.List(t.Optional(pair))), ("m", t.Map(t.BYTES, pair))))
    items = [(None, (None, (1, None)), FrozenMap({})), ((2, 0.5), (), FrozenMap({b"\xff": (3, 1e300)}))]
    lines = [
        "tab\u00e9[undefined, { undefined, { 1, undefined } }] = {:}, 0",
        "tab\u00e9[2, 0.5, {  }] = { \ufffd: { 3, 1e+300 } }, 0",
    ]
    assert general(type_, "entries", items).decode().splitlines() == lines
    assert encoded(type_, "entries", items).decode().splitlines() == lines


@given(st.lists(st.integers(0, 40), max_size=300), st.lists(st.integers(0, 40), max_size=300))
@few
def test_large_deltas_are_netted(ins: list[int], dels: list[int]) -> None:
    check_deltas(DELTAS[0], [(1, tuple((n, str(n)) for n in ins), tuple((n, str(n)) for n in dels))] * 2)


def test_nan_and_zero_are_netted_as_values_are_compared() -> None:
    rows = [(x, (x,), FrozenMap({}), (True, False)) for x in (0.0, -0.0, NAN, 1.0)]
    check_deltas(DELTAS[1], [(1, tuple(rows * 30), tuple(reversed(rows * 20)))])


@given(st.lists(st.text(alphabet="a\n\r é", max_size=15), max_size=4))
@few
def test_lines_hold_one_line(items: list[str]) -> None:
    got = found(t.STRING, "text").encode(Batch.of(t.STRING, items))
    bad = any("\n" in item or item.endswith("\r") for item in items)
    assert (got is None) == bad
    if got is not None:
        assert bytes(got.data) == general(t.STRING, "text", items)


def test_a_record_of_one_value_is_a_line() -> None:
    type_, items = t.Record((("value", t.F64),)), [(0.1,), (-2.0,)]
    assert encoded(type_, "text", items) == general(type_, "text", items) == b"0.1\n-2.0\n"
    assert encoder(t.Record((("a", t.I64), ("b", t.I64))), "text") is None


def test_parts_of_batches() -> None:
    items = [(i, str(i) * i) for i in range(50)]
    type_ = t.Tuple((t.I64, t.STRING))
    batch = Batch.of(type_, items)
    made = found(type_, "jsonl").again()
    for start, stop in ((0, 50), (7, 7), (7, 8), (49, 50)):
        got = made.encode(batch, start, stop)
        assert got is not None
        assert (bytes(got.data), got.rows) == (general(type_, "jsonl", items[start:stop]), stop - start)
    with pytest.raises(IndexError):
        made.encode(batch, 0, 51)


def test_the_buffer_grows() -> None:
    items = [("x" * 100_000 + '"', '"' * 50_000)] * 20
    type_ = t.Tuple((t.STRING, t.STRING))
    for format_ in ("csv", "jsonl"):
        assert encoded(type_, format_, items) == general(type_, format_, items)


def test_what_does_not_travel_has_no_encoder() -> None:
    assert encoder(t.Deque(t.I64), "jsonl") is None
    assert encoder(t.List(t.I64), "text") is None
    assert encoder(t.I64, "parquet") is None
    assert encoder(t.Record(()), "csv") is None


# ------------------------------------------------------------------------------------------------------------- sinks

PLAIN = t.Record((("n", t.I64), ("s", t.Optional(t.STRING)), ("a", t.Array(t.F64, 2))))
ITEMS: list[Any] = [(i, None if i % 3 else "x" * i, (i / 4, -0.0)) for i in range(40)]


def delivered(type_: t.Type, rows: t.Type, items: list[Any], target: Any, format_: str | None) -> CountedSink:
    """What has been written through columns and through items, in turns."""
    counted = CountedSink(open_sink(target, rows, name="out", format=format_))
    sink = column_sink(Writer(type_, counted))
    assert isinstance(sink, ColumnSink)
    sink(items[:10])
    sink.columns(Batch.of(type_, items[10:25]))
    sink.columns(Batch.of(type_, items)[25:30])
    sink(items[30:])
    sink.columns(Batch.of(type_, []))
    counted.sink.close()
    return counted


def test_files_of_entries_are_those_of_the_general_path() -> None:
    files = io.BytesIO(), io.BytesIO()
    delivered(PLAIN, PLAIN, ITEMS, files[0], "entries")
    with open_sink(files[1], PLAIN, name="out", format="entries") as sink:
        sink.write(ITEMS)
    assert files[0].getvalue() == files[1].getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.arrow"])
def test_files_are_those_of_the_general_path(name: str, tmp_path: Path) -> None:
    assert delivered(PLAIN, PLAIN, ITEMS, tmp_path / name, None).rows == len(ITEMS)
    with open_sink(tmp_path / f"general-{name}", PLAIN, name="out") as sink:
        sink.write(ITEMS)
    if name.endswith(("csv", "tsv", "jsonl")):
        assert (tmp_path / name).read_bytes() == (tmp_path / f"general-{name}").read_bytes()
    assert [x for part in open_source(tmp_path / name, PLAIN, name="in") for x in part] == ITEMS


def test_tables_in_memory() -> None:
    counted = delivered(PLAIN, PLAIN, ITEMS, None, None)
    assert counted.rows == len(ITEMS)
    assert isinstance(counted.sink, Collector)
    general = Collector(PLAIN)
    general.write(ITEMS)
    assert counted.sink.table().equals(general.table())
    assert counted.sink.table().equals(general.table())


def test_open_files_of_text_take_lines() -> None:
    target = io.StringIO()
    counted = delivered(t.STRING, t.STRING, [f"käse {i}" for i in range(40)], target, "text")
    assert (target.getvalue(), counted.rows) == ("".join(f"käse {i}\n" for i in range(40)), 40)


def check_tables(type_: t.Type, items: list[Any]) -> None:
    log = deltas.changelog(type_)
    rows = [row for item in items for row in deltas.changelog_rows(item)]
    for wanted in (log, growable(log)):
        made, general = change_log(wanted, Batch.of(type_, items)), to_batch(wanted, rows)
        made.validate(full=True)
        assert made.schema == general.schema
        assert [repr(from_arrow(of, made.column(name))) for name, of in columns(wanted)] == [
            repr(from_arrow(of, general.column(name))) for name, of in columns(wanted)
        ]


@pytest.mark.slow
@given(st.data())
@few
def test_deltas_are_their_change_log_in_arrow_too(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(DELTAS[:2]))
    some = data.draw(st.lists(values_of(deltas.row_type(type_), 2), min_size=1, max_size=4))
    rows = st.lists(st.sampled_from(some), max_size=12).map(tuple)
    check_tables(type_, data.draw(st.lists(st.tuples(st.integers(0, 9), rows, rows), max_size=4)))


def test_rows_without_fields_are_a_change_log_too() -> None:
    check_tables(DELTAS[2], [(1, ((), ()), ((),)), (2, (), ((), ())), (3, (), ())])


def test_relations_in_memory() -> None:
    type_ = DELTAS[0]
    items = [(i, ((i, "a"), (1, None), (i, "b")), ((i, "b"), (1, None), (7, ""))) for i in range(40)]
    rows = [r for item in items for r in deltas.changelog_rows(item)]
    counted = delivered(type_, deltas.changelog(type_), items, None, None)
    assert counted.rows == len(rows)
    assert isinstance(counted.sink, Collector)
    general = Collector(deltas.changelog(type_))
    general.write(rows)
    assert counted.sink.table().combine_chunks().equals(general.table().combine_chunks())


def test_relations_are_counted_by_rows(tmp_path: Path) -> None:
    row = t.Record((("n", t.I64),))
    type_ = t.delta(row, t.I64)
    items = [(i, ((i,), (1,), (i,)), ((i,), (1,), (7,))) for i in range(40)]
    counted = delivered(type_, deltas.changelog(type_), items, tmp_path / "a.csv", None)
    rows = [r for item in items for r in deltas.changelog_rows(item)]
    assert counted.rows == len(rows)
    assert (tmp_path / "a.csv").read_bytes() == b"ts,op,n\n" + general(deltas.changelog(type_), "csv", rows)


def test_a_line_end_in_a_line_is_refused_as_ever() -> None:
    counted = CountedSink(open_sink(io.BytesIO(), t.STRING, name="out", format="text"))
    sink = column_sink(Writer(t.STRING, counted))
    assert isinstance(sink, ColumnSink)
    with pytest.raises(Rejected, match="line end"):
        sink.columns(Batch.of(t.STRING, ["a", "b\n"]))


def test_other_sinks_stay_as_they_are() -> None:
    got: list[Any] = []
    assert not isinstance(column_sink(got.extend), ColumnSink)
    table = Writer(t.I64, CountedSink(open_sink(io.BytesIO(), t.I64, name="out", format="table")))
    assert column_sink(table) is table
