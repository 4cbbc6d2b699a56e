"""What a sink writes, a source reads back: the same values, for every format and every type that it can hold."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import river
from river.diagnostics import Rejected
from river.io import scalars
from river.io.schema import arrow_schema, arrow_type, from_arrow, to_arrow, to_batch
from river.io.sinks import Collector, open_sink
from river.io.sources import open_source
from river.lang import types as t
from river.lang.values import NAN, FrozenMap, keyer, well_typed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEAVES = [t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION]
scalar_types = st.one_of(
    st.sampled_from(LEAVES),
    st.integers(1, 38).flatmap(lambda p: st.builds(t.Decimal, st.just(p), st.integers(0, p))),
)


def grow(inner: st.SearchStrategy[t.Type]) -> st.SearchStrategy[t.Type]:
    present = inner.map(lambda i: i.inner if isinstance(i, t.Optional) else i)
    return st.one_of(
        st.builds(t.List, inner),
        st.builds(t.Array, inner, st.integers(1, 3)),
        st.builds(t.Tuple, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(t.Map, scalar_types, inner),
        records(inner),
        present.map(t.Optional),
    )


def records(inner: st.SearchStrategy[t.Type]) -> st.SearchStrategy[t.Type]:
    names = st.sampled_from(["a", "b", "c_1", "käse", "a b", 'q"q', "x,y"])
    fields = st.lists(st.tuples(names, inner), min_size=1, max_size=4, unique_by=lambda f: f[0])
    return fields.map(lambda f: t.Record(tuple(f)))


field_types = st.recursive(
    scalar_types | scalar_types.map(t.Optional) | st.just(t.UNIT), grow, max_leaves=4
).map(lambda type_: t.UNIT if type_ == t.Optional(t.UNIT) else type_)


def rebuilt(type_: t.Type, change: Callable[[t.Type], t.Type]) -> t.Type:
    """The type with `change` applied to every part, from the inside out."""

    def again(part: t.Type) -> t.Type:
        return rebuilt(part, change)

    match type_:
        case t.Optional(inner):
            return change(t.Optional(again(inner)))
        case t.Record(fields):
            return change(t.Record(tuple((name, again(f)) for name, f in fields)))
        case t.Tuple(items):
            return change(t.Tuple(tuple(map(again, items))))
        case t.List(item):
            return change(t.List(again(item)))
        case t.Array(item, size):
            return change(t.Array(again(item), size))
        case t.Map(key, value):
            return change(t.Map(again(key), again(value)))
        case _:
            return change(type_)


def no_unit_option(type_: t.Type) -> t.Type:
    """Optionals of unit have no Arrow form."""
    return rebuilt(type_, lambda part: t.UNIT if part == t.Optional(t.UNIT) else part)


def no_code(type_: t.Type) -> t.Type:
    """A caller's whole number is a number, not the integer that stands for a decimal, a time or a duration."""
    coded = (t.TIME, t.DURATION)
    return rebuilt(type_, lambda part: t.I64 if isinstance(part, t.Decimal) or part in coded else part)


item_types = st.one_of(records(field_types), scalar_types).map(no_unit_option)


def values(type_: t.Type) -> st.SearchStrategy[Any]:
    match type_:
        case t.Primitive("bool"):
            return st.booleans()
        case t.Primitive("i32" | "i64" | "u64"):
            return st.integers(*scalars.RANGES[type_])
        case t.Primitive("time" | "duration"):
            return st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2 * 10**15)
        case t.Primitive("f32" | "f64"):
            width = 32 if type_ == t.F32 else 64
            return st.floats(width=width).map(lambda x: NAN if x != x else x)
        case t.Primitive("string"):
            return st.text() | st.text(alphabet=' ,\t"\n\r\\a', max_size=5)
        case t.Primitive("bytes"):
            return st.binary()
        case t.Primitive("unit"):
            return st.just(())
        case t.Decimal(precision, _):
            return st.integers(-(10**precision) + 1, 10**precision - 1)
        case t.Optional(inner):
            return st.none() | values(inner)
        case t.Record(fields):
            return st.tuples(*(values(f) for _, f in fields))
        case t.Tuple(items):
            return st.tuples(*map(values, items))
        case t.List(item):
            return st.lists(values(item), max_size=3).map(tuple)
        case t.Array(item, size):
            return st.lists(values(item), min_size=size, max_size=size).map(tuple)
        case t.Map(key, value):
            canonical = keyer(key) or (lambda k: k)
            entries = st.dictionaries(values(key).map(canonical), values(value), max_size=3)
            return entries.map(FrozenMap)
        case _:
            raise AssertionError(type_)


@st.composite
def rows(draw: st.DrawFn, types: st.SearchStrategy[t.Type] = item_types) -> tuple[t.Type, list[Any]]:
    type_ = draw(types)
    items = draw(st.lists(values(type_), max_size=6))
    assert all(well_typed(type_, item) for item in items)
    return type_, items


def same(left: list[Any], right: list[Any]) -> None:
    assert left == right
    assert repr(left) == repr(right)  # -0.0 is not 0.0, True is not 1


def copy(type_: t.Type, items: list[Any], format_: str, batch: int = 4) -> list[Any]:
    target = io.BytesIO()
    with open_sink(target, type_, name="out", format=format_) as sink:
        for start in range(0, len(items), batch):
            sink.write(items[start : start + batch])
    source = open_source(io.BytesIO(target.getvalue()), type_, name="in", format=format_, batch=batch)
    return [item for part in source for item in part]


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "parquet", "arrow"])
@given(case=rows())
@settings(max_examples=60, deadline=None)
def test_written_items_are_read_back(format_: str, case: tuple[t.Type, list[Any]]) -> None:
    type_, items = case
    same(copy(type_, items, format_), items)


@given(case=rows(scalar_types.map(lambda s: t.I64 if s == t.STRING else s)))
@settings(max_examples=30, deadline=None)
def test_lines_of_text_are_read_back(case: tuple[t.Type, list[Any]]) -> None:
    type_, items = case
    same(copy(type_, items, "text"), items)
    one = t.Record((("value", type_),))
    records = [(item,) for item in items]
    same(copy(one, records, "text"), records)


@pytest.mark.slow
@given(case=rows())
@settings(max_examples=60, deadline=None)
def test_columns_of_a_table_are_read_back(case: tuple[t.Type, list[Any]]) -> None:
    type_, items = case
    sink = Collector(type_)
    sink.write(items)
    table = sink.table()
    assert table.schema == arrow_schema(type_)
    same([item for part in open_source(table, type_, name="in", batch=2) for item in part], items)
    sliced = table.slice(1)
    same([item for part in open_source(sliced, type_, name="in") for item in part], items[1:])


@pytest.mark.slow
@given(case=rows(item_types))
@settings(max_examples=40, deadline=None)
def test_a_column_is_values_and_back(case: tuple[t.Type, list[Any]]) -> None:
    type_, items = case
    column = to_arrow(type_, items)
    assert column.type == arrow_type(type_)
    same(from_arrow(type_, column), items)
    same(from_arrow(type_, pa.chunked_array([column, column])), items + items)
    with_nulls = t.Optional(type_)
    same(from_arrow(with_nulls, to_arrow(with_nulls, [None, *items])), [None, *items])


@given(case=rows(item_types.map(no_code)))
@settings(max_examples=40, deadline=None)
def test_tuples_are_taken_as_they_are(case: tuple[t.Type, list[Any]]) -> None:
    type_, items = case
    same([item for part in open_source(items, type_, name="in", batch=3) for item in part], items)


@given(case=rows(records(scalar_types).map(no_code)))
@settings(max_examples=40, deadline=None)
def test_dicts_are_records(case: tuple[t.Record, list[Any]]) -> None:
    type_, items = case
    dicts = [dict(zip([name for name, _ in type_.fields], item, strict=True)) for item in items]
    same([item for part in open_source(iter(dicts), type_, name="in") for item in part], items)


TRADE = t.Record((("ts", t.TIME), ("symbol", t.STRING), ("price", t.F64), ("note", t.Optional(t.STRING))))
TRADES = [(0, "A", 1.5, None), (1_500_000, 'B,"x"', -0.0, ""), (1_700_000_000_000_000, "", NAN, "n\nm")]


def test_csv_text_is_what_people_expect() -> None:
    target = io.StringIO()
    with open_sink(target, TRADE, name="out", format="csv") as sink:
        sink.write(TRADES)
    assert target.getvalue() == (
        "ts,symbol,price,note\n"
        "1970-01-01T00:00:00Z,A,1.5,\n"
        '1970-01-01T00:00:01.500Z,"B,""x""",-0.0,""\n'
        '2023-11-14T22:13:20Z,,nan,"n\nm"\n'
    )


def test_json_lines_are_what_people_expect() -> None:
    target = io.StringIO()
    with open_sink(target, TRADE, name="out", format="jsonl") as sink:
        sink.write(TRADES[1:])
    assert target.getvalue() == (
        '{"ts":"1970-01-01T00:00:01.500Z","symbol":"B,\\"x\\"","price":-0.0,"note":""}\n'
        '{"ts":"2023-11-14T22:13:20Z","symbol":"","price":"nan","note":"n\\nm"}\n'
    )


def test_a_table_is_aligned_and_shows_control_characters() -> None:
    type_ = t.Record((("name", t.STRING), ("n", t.I64)))
    target = io.StringIO()
    with open_sink(target, type_, name="out", format="table") as sink:
        sink.write([("x", 1), ("日本", 1000), ("a\x1bb", 20)])
    assert target.getvalue() == (
        "name     n\n------  ----\n".replace("name     n", "name       n")
        + "x          1\n日本    1000\na\\x1bb    20\n"
    )


def test_an_empty_table_has_its_header() -> None:
    target = io.StringIO()
    open_sink(target, t.Record((("a", t.I64),)), name="out", format="table").close()
    assert target.getvalue() == "a\n-\n"


@pytest.mark.parametrize(
    "suffix", [".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".ipc"]
)
def test_the_suffix_tells_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trades{suffix}"
    with open_sink(path, TRADE, name="out") as sink:
        sink.write(TRADES)
    same([item for part in open_source(path, TRADE, name="in") for item in part], TRADES)
    assert list(tmp_path.iterdir()) == [path]


def test_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8"))
    with open_sink("-", TRADE, name="out") as sink:
        sink.write(TRADES)
        assert out.getvalue().count(b"\n") == 5  # what is written is there at once
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.getvalue())))
    same([item for part in open_source("-", TRADE, name="in", format="csv") for item in part], TRADES)


def test_a_pipe_of_arrow_is_a_stream() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    target = io.BytesIO()
    with open_sink(target, TRADE, name="out", format="arrow") as sink:
        sink.write(TRADES)
    pipe = Pipe(target.getvalue())
    same([item for part in open_source(pipe, TRADE, name="in", format="arrow") for item in part], TRADES)


def failure(action: Any) -> list[str]:
    with pytest.raises(Rejected) as caught:
        action()
    return [d.code for d in caught.value.diagnostics]


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("old")
    assert failure(lambda: open_sink(path, t.Record(()), name="out")) == ["data-format"]
    assert failure(lambda: open_sink(path, TRADE, name="out", format="text")) == ["data-format"]
    assert failure(lambda: open_sink(path, t.Optional(t.UNIT), name="out", format="arrow")) == ["data-format"]
    assert failure(lambda: open_sink(path, TRADE, name="out", format="cvs")) == ["data-format"]
    assert failure(lambda: open_sink(tmp_path / "x.what", TRADE, name="out")) == ["data-format"]
    assert failure(lambda: open_sink(tmp_path / "no" / "x.csv", TRADE, name="out")) == ["data-output"]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_an_output_appears_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    path.chmod(0o640)

    def fail() -> None:
        with open_sink(path, TRADE, name="out") as sink:
            sink.write(TRADES)
            assert path.read_text() == "old"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    sink = open_sink(path, TRADE, name="out")
    sink.write(TRADES)
    assert path.read_text() == "old"
    sink.close()
    same([item for part in open_source(path, TRADE, name="in") for item in part], TRADES)
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    link.symlink_to(real)
    with open_sink(link, t.I64, name="out") as sink:
        sink.write([1, 2])
    assert link.is_symlink()
    assert real.read_text() == "value\n1\n2\n"


@given(st.integers(-(2**63), 2**63 - 1))
def test_times_and_durations_have_exact_texts(micros: int) -> None:
    assert scalars.parse_time(scalars.format_time(micros)) == micros
    assert scalars.parse_duration(scalars.format_duration(micros)) == micros


@given(st.datetimes())
def test_times_agree_with_the_standard_library(when: Any) -> None:
    micros = scalars.parse_time(when.isoformat())
    batch = to_batch(t.TIME, [micros])
    assert batch.column(0).to_pylist()[0].replace(tzinfo=None) == when


@pytest.mark.parametrize(
    "type_",
    [t.Map(t.Optional(t.I64), t.I64), t.Map(t.UNIT, t.I64), t.List(t.Map(t.Optional(t.STRING), t.UNIT)),
     t.I128, t.List(t.I128), t.FSUM, t.Bag(t.I64), t.Optional(t.UNIT)],
    ids=str,
)  # fmt: skip
def test_what_arrow_cannot_say_is_told(type_):
    with pytest.raises(Rejected) as caught:
        arrow_type(t.Record((("a", type_),)))
    assert [found.code for found in caught.value.diagnostics] == ["data-format"]
    with pytest.raises(Rejected):
        to_arrow(type_, [])


def test_a_map_with_optional_keys_is_written_as_text_and_refused_by_arrow(tmp_path):
    text = """river 1; input t: i64; output o: {m: map<i64?, i64>};
        operator f(t: i64) -> (o: {m: map<i64?, i64>}) {
          on t(x) { var m: map<i64?, i64> = {}; m[none] = x; let k: i64? = x; m[k] = 2; emit o {m: m}; } }
        (o) <- f(t);"""
    compiled = river.compile(text, "river")
    for native in ("on", "off"):
        compiled.run({"t": [1]}, {"o": str(tmp_path / "o.jsonl")}, native=native)
        assert (tmp_path / "o.jsonl").read_text() == '{"m":[[null,1],[1,2]]}\n'
        for name in ("o.parquet", "o.arrow"):
            with pytest.raises(Rejected) as caught:
                compiled.run({"t": [1]}, {"o": str(tmp_path / name)}, native=native)
            assert [found.code for found in caught.value.diagnostics] == ["data-format"]
