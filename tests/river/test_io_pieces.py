"""Files of Arrow data read in pieces: the rows of Arrow's own reader, in memory that is used again only when it may be."""

from __future__ import annotations

import gzip
import io
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc

from river.diagnostics import Rejected
from river.io.pieces import LEAST, pieces
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = {
    "f32": pa.float32(),
    "f64": pa.float64(),
    "i32": pa.int32(),
    "small": pa.int8(),
    "i64": pa.int64(),
    "u64": pa.uint64(),
    "time": pa.timestamp("us"),
    "money": pa.decimal128(21, 2),
}
OTHERS = {"text": pa.string(), "flag": pa.bool_(), "raw": pa.binary()}


def column(kind: pa.DataType, start: int, rows: int) -> pa.Array:
    """Values that tell their row."""
    numbers = range(start, start + rows)
    if pa.types.is_boolean(kind):
        return pa.array([n % 3 == 0 for n in numbers], kind)
    if pa.types.is_int8(kind):
        return pa.array([n % 100 for n in numbers], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([str(n) for n in numbers], pa.string()).cast(kind)
    return pa.array(numbers, pa.int64()).cast(kind)


def record_batch(names: list[str], start: int, rows: int) -> pa.RecordBatch:
    kinds = KINDS | OTHERS
    return pa.record_batch([column(kinds[name], start, rows) for name in names], names=names)


def written(path: Path, batches: list[pa.RecordBatch], **options: Any) -> Path:
    with ipc.new_file(str(path), batches[0].schema, options=ipc.IpcWriteOptions(**options)) as out:
        for batch in batches:
            out.write_batch(batch)
    return path


def read(path: Path, names: list[str], most: int) -> list[pa.RecordBatch] | None:
    """What is read in pieces, all of it kept to the end."""
    with path.open("rb") as file:
        found = pieces(file, ipc.open_file(file), names)
        return None if found is None else list(found.read(most))


def floats(path: Path) -> list[Any]:
    return [item for part in open_source(str(path), t.F32, name="in") for item in part]


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.data())
def test_pieces_hold_the_rows_of_the_file_in_their_order(tmp_path_factory: Any, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([*KINDS, *OTHERS]), min_size=1, max_size=5, unique=True))
    wanted = [name for name in names if name in KINDS and data.draw(st.booleans())]
    sizes = data.draw(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 40_000)), min_size=1, max_size=6))
    most = data.draw(st.one_of(st.integers(1, 20), st.integers(1, 60_000)))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    batches = [record_batch(names, start, rows) for start, rows in zip(starts, sizes, strict=True)]
    path = written(tmp_path_factory.mktemp("pieces") / "in.arrow", batches)
    found = read(path, wanted, most)
    if not wanted:
        assert found is None
        return
    assert found is not None
    table = pa.Table.from_batches(batches).select(wanted)
    assert pa.Table.from_batches(found, table.schema).equals(table)
    width = sum(KINDS[name].bit_width // 8 for name in wanted)
    rows = max(most, LEAST // width)
    assert [len(piece) for piece in found[:-1]] == [rows] * (len(found) - 1)


def test_one_large_record_batch_is_read_in_pieces_and_small_ones_together(tmp_path: Path) -> None:
    large = written(tmp_path / "large.arrow", [record_batch(["f32"], 0, 100_000)])
    small = written(tmp_path / "small.arrow", [record_batch(["f32"], 1000 * i, 1000) for i in range(100)])
    for path in (large, small):
        found = read(path, ["f32"], 30_000)
        assert found is not None
        assert [len(piece) for piece in found] == [30_000, 30_000, 30_000, 10_000]


def test_memory_is_used_again_when_nobody_refers_to_it(tmp_path: Path) -> None:
    path = written(tmp_path / "in.arrow", [record_batch(["i64"], 0, 200_000)])

    def addresses(kept: int) -> list[int]:
        with path.open("rb") as file:
            found = pieces(file, ipc.open_file(file), ["i64"])
            assert found is not None
            held: list[Any] = []
            seen: list[int] = []
            for piece in found.read(10_000):
                values = piece.column(0)
                assert values[0].as_py() == 10_000 * len(seen)
                seen.append(values.buffers()[1].address)
                held = [*held, values][len(held) + 1 - kept :] if kept else []
                for i, each in enumerate(held):
                    assert each.to_pylist()[-1] == 10_000 * (len(seen) - len(held) + 1 + i) - 1
                del piece, values
            return seen

    assert len(set(addresses(0))) <= 2
    assert len(set(addresses(2))) <= 4


def test_a_slice_keeps_the_memory(tmp_path: Path) -> None:
    path = written(tmp_path / "in.arrow", [record_batch(["i64"], 0, 100_000)])
    with path.open("rb") as file:
        found = pieces(file, ipc.open_file(file), ["i64"])
        assert found is not None
        slices = [piece.slice(5, 2).column(0) for piece in found.read(10_000)]
    assert [each.to_pylist() for each in slices] == [[10_000 * i + 5, 10_000 * i + 6] for i in range(10)]


def test_record_batches_with_missing_values_are_left_to_arrow(tmp_path: Path) -> None:
    plain, odd = (
        record_batch(["f32"], 0, 50),
        pa.record_batch([pa.array([1, None, 3], pa.float32())], ["f32"]),
    )
    path = written(tmp_path / "in.arrow", [plain, odd, plain, plain, odd])
    found = read(path, ["f32"], 60)
    assert found is not None
    assert [len(each) for each in found] == [50, 3, 100, 3]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([plain, odd, plain, plain, odd]))
    source = iter(open_source(str(path), t.F32, name="in"))
    assert [next(source), next(source)] == [list(range(50)), [1.0]]
    with pytest.raises(Rejected, match="data-"):
        next(source)


def test_a_column_that_is_not_declared_may_be_anything_that_is_counted(tmp_path: Path) -> None:
    nulls = pa.array([None, "b", None], pa.string())
    path = written(
        tmp_path / "in.arrow",
        [pa.record_batch([nulls, column(pa.float32(), 0, 3), nulls], ["a", "value", "c"])] * 2,
    )
    assert read(path, ["value"], 1) is not None
    assert floats(path) == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int32()),
        pa.null(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.large_string(),
        pa.string_view(),
    ],
)
def test_files_with_other_columns_are_left_to_arrow(tmp_path: Path, kind: pa.DataType) -> None:
    batch = pa.record_batch([pa.array([], kind), column(pa.float32(), 0, 0)], ["other", "value"])
    path = written(tmp_path / "in.arrow", [batch])
    assert read(path, ["value"], 1) is None


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_files_are_left_to_arrow(tmp_path: Path, compression: str) -> None:
    batches = [record_batch(["f32"], 100 * i, 100) for i in range(3)]
    path = written(tmp_path / "in.arrow", batches, compression=compression)
    found = read(path, ["f32"], 1000)
    assert found is not None
    assert [len(each) for each in found] == [100, 100, 100]
    assert floats(path) == list(range(300))


def test_a_file_of_an_older_format_is_read(tmp_path: Path) -> None:
    batch = record_batch(["f32"], 0, 10)
    path = written(tmp_path / "v4.arrow", [batch], metadata_version=ipc.MetadataVersion.V4)
    assert floats(path) == list(range(10))
    path = written(tmp_path / "old.arrow", [batch], use_legacy_format=True)
    assert floats(path) == list(range(10))


def test_what_is_no_plain_file_is_left_to_arrow(tmp_path: Path) -> None:
    path = written(tmp_path / "in.arrow", [record_batch(["f32"], 0, 10)])
    data = path.read_bytes()
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(data))
    with gzip.open(packed, "rb") as unpacked:
        for file in (io.BytesIO(data), unpacked):
            assert pieces(file, ipc.open_file(file), ["f32"]) is None


def test_an_empty_file_has_no_pieces(tmp_path: Path) -> None:
    path = tmp_path / "in.arrow"
    with ipc.new_file(str(path), pa.schema([("value", pa.float32())])):
        pass
    assert read(path, ["value"], 10) == []
    assert floats(path) == []


def test_a_file_that_becomes_shorter_gives_what_was_read(tmp_path: Path) -> None:
    path = written(tmp_path / "in.arrow", [record_batch(["f32"], 10_000 * i, 10_000) for i in range(20)])
    size = path.stat().st_size
    source = iter(open_source(str(path), t.F32, name="in", batch=50_000))
    assert next(source) == list(range(50_000))
    with path.open("r+b") as file:
        file.truncate(size // 2 - 20_000)
    assert next(source) == list(range(50_000, 90_000))
    with pytest.raises(Rejected, match=r"in\.arrow"):
        next(source)


def _flipped(data: bytes, places: list[tuple[int, int]]) -> bytes:
    found = bytearray(data)
    for place, bit in places:
        found[place % len(found)] ^= 1 << bit
    return bytes(found)


@pytest.fixture(scope="module")
def original(tmp_path_factory: Any) -> bytes:
    batches = [record_batch(["i32", "text", "f32"], 10 * i, 10) for i in range(3)]
    return written(tmp_path_factory.mktemp("damaged") / "in.arrow", batches).read_bytes()


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(places=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 7)), min_size=1, max_size=4))
def test_damaged_files_give_rows_or_an_error(tmp_path_factory: Any, original: bytes, places: Any) -> None:
    path = tmp_path_factory.mktemp("damaged") / "in.arrow"
    path.write_bytes(_flipped(original, places))
    try:
        source = open_source(str(path), t.Record((("f32", t.F32), ("i32", t.I32))), name="in")
        assert sum(map(len, source)) <= 30
    except Rejected:
        pass


@pytest.mark.parametrize("number", [-1, 1, (1 << 31) - 1])
@pytest.mark.parametrize("start", [0, 4])
def test_any_word_of_the_format_may_be_wrong(
    tmp_path: Path, original: bytes, start: int, number: int
) -> None:
    path = tmp_path / "in.arrow"
    for place in range(start, len(original) - 4, 8):
        data = bytearray(original)
        data[place : place + 4] = struct.pack("<i", number)
        path.write_bytes(data)
        with path.open("rb") as file:
            try:
                opened = ipc.open_file(file)
                assert opened.schema.names
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                continue
            try:
                found = pieces(file, opened, ["f32", "i32"])
                rows = [] if found is None else _rows(found.read(100))
            except (pa.ArrowException, OSError, KeyError):  # a name may be another one
                continue
            assert len(rows) <= 30


def _rows(batches: Iterator[pa.RecordBatch]) -> list[Any]:
    return [row for batch in batches for row in batch.select(["f32", "i32"]).to_pylist()]
