"""Parquet files whose groups of rows are encoded side by side: the bytes of one writer's, however the rows come."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from river.classes import evolve
from river.diagnostics import InternalError, Rejected
from river.io import groups
from river.io.footers import Footer
from river.io.schema import arrow_schema, growable, to_batch
from river.io.sinks import open_sink
from river.io.sources import open_source
from river.lang import types as t
from river.platform import here
from river.testing.seeds import chance

if TYPE_CHECKING:
    import random
    from pathlib import Path

FLAT = t.Record((
    ("n", t.I64), ("s", t.Optional(t.STRING)), ("b", t.BOOL), ("u", t.UNIT), ("at", t.TIME), ("d", t.DURATION),
    ("m", t.Decimal(20, 2)), ("f", t.F32), ("y", t.BYTES),
))  # fmt: skip
DEEP = t.Record(
    (("l", t.List(t.Optional(t.STRING))), ("a", t.Array(t.I32, 2)), ("m", t.Map(t.STRING, t.F64)))
)
ROWS = 40


def rows_of(type_: t.Type, count: int) -> list[Any]:
    if type_ == FLAT:
        return [
            (i // 9, None if i % 5 == 4 else f"text {i % 7}" * (i % 3), i % 2 == 0, (), i * 10**9, -i,
             i * 7919, i / 4, bytes([i % 256]) * (i % 20))
            for i in range(count)
        ]  # fmt: skip
    return [(tuple([None, str(i)] * (i % 3)), (i, -i), {"k": i / 8} if i % 2 else {}) for i in range(count)]


def by_one_writer(type_: t.Type, rows: list[Any]) -> bytes:
    """What pyarrow's writer makes of the same groups."""
    out = io.BytesIO()
    kept = growable(type_)
    whole = pa.Table.from_batches([to_batch(kept, rows)])
    options: dict[str, Any] = groups._encodings(kept, whole) if rows else {"use_dictionary": False}
    with parquet.ParquetWriter(out, arrow_schema(kept), **options) as writer:
        if rows:
            writer.write_table(whole, ROWS)
    return out.getvalue()


def by_the_sink(type_: t.Type, rows: list[Any], chance: random.Random) -> bytes:
    """The rows as items and record batches of any size."""
    out = io.BytesIO()
    with open_sink(out, type_, name="out", format="parquet") as sink:
        at = 0
        while at < len(rows):
            part = rows[at : at + chance.choice((1, 7, ROWS, 3 * ROWS))]
            at += len(part)
            if chance.random() < 0.5:
                sink.write(part)
            else:
                sink.write_table(to_batch(growable(type_), part))  # pyright: ignore[reportAttributeAccessIssue]
    return out.getvalue()


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("type_", [FLAT, DEEP, t.STRING], ids=["flat", "deep", "single"])
def test_bytes_are_those_of_one_writer(type_: t.Type, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = chance("groups", cores)
    monkeypatch.setattr(groups, "GROUP", ROWS)
    monkeypatch.setattr(groups, "here", lambda: evolve(here(), cores=cores))
    for count in (
        0,
        1,
        ROWS - 1,
        ROWS,
        5 * ROWS,
        17 * ROWS + 3,
    ):  # so many groups that their list has a longer head
        rows = [f"row {i}" for i in range(count)] if type_ == t.STRING else rows_of(type_, count)
        assert by_the_sink(type_, rows, draw) == by_one_writer(type_, rows)


def test_the_first_rows_say_what_comes_often_however_few_come_first(tmp_path: Path) -> None:
    type_ = t.Record((("n", t.I64), ("s", t.STRING)))
    batch = to_batch(type_, [(i, "ab"[i % 2]) for i in range(3_000)])
    with open_sink(tmp_path / "a.parquet", type_, name="out") as sink:
        for start, stop in ((0, 1), (1, 4), (4, 3_000)):
            sink.write_table(batch.slice(start, stop - start))  # pyright: ignore[reportAttributeAccessIssue]
    group = parquet.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in (0, 1)] == [False, True]


def test_the_first_rows_say_how_columns_are_written(tmp_path: Path) -> None:
    kinds = {"at": t.TIME, "few": t.I64, "many": t.Optional(t.I32), "wide": t.U64, "f": t.F64, "s": t.STRING}
    type_ = t.Record(tuple(kinds.items()))
    rows = [
        (i // 4, i % 3, None if i % 9 == 4 else i * 7919 % 4001, (1 << 64) - 1 - i * i, i / 7, f"{i % 5}")
        for i in range(2_000)
    ]
    with open_sink(tmp_path / "a.parquet", type_, name="out") as sink:
        sink.write(rows)
    group = parquet.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    found = [{*group.column(i).encodings} - {"RLE"} for i in range(len(kinds))]
    steps, numbers = {"DELTA_BINARY_PACKED"}, {"PLAIN", "RLE_DICTIONARY"}
    assert found == [steps, numbers, steps, steps, {"PLAIN"}, numbers]
    source = open_source(tmp_path / "a.parquet", type_, name="in")
    assert [item for batch in source for item in batch] == rows


def test_rows_with_many_bytes_are_fewer_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUP_BYTES", 10_000)
    out = io.BytesIO()
    rows = ["x" * 300 + str(i) for i in range(100)]
    with open_sink(out, t.STRING, name="out", format="parquet") as sink:
        for each in range(0, 100, 10):
            sink.write_table(to_batch(t.STRING, rows[each : each + 10]))  # pyright: ignore[reportAttributeAccessIssue]
    found = parquet.ParquetFile(io.BytesIO(out.getvalue()))
    assert [found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)] == [40, 40, 20]
    assert found.read().column("value").to_pylist() == rows


class Full(io.BytesIO):
    """A disk with room for so many bytes."""

    room = 1_000

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(28, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_full_disk_is_told(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUP", ROWS)
    monkeypatch.setattr(groups, "here", lambda: evolve(here(), cores=cores))
    sink = open_sink(Full(), t.I64, name="out", format="parquet")

    def fill() -> None:
        for start in range(0, 1_000, ROWS):
            sink.write_table(to_batch(t.I64, range(start, start + ROWS)))  # pyright: ignore[reportAttributeAccessIssue]
        sink.close()

    with pytest.raises(Rejected, match="no space left"):
        fill()


def test_what_cannot_be_encoded_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise pa.ArrowInvalid("a value that does not fit")

    monkeypatch.setattr(groups, "_encoded", fail)
    with (
        pytest.raises(Rejected, match="does not fit"),
        open_sink(tmp_path / "a.parquet", t.I64, name="o") as sink,
    ):
        sink.write([1, 2])
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_is_none_is_a_mistake_of_ours() -> None:
    for data in (b"PAR1\0\0\0\0PAR2", b"PAR1\x10\0\0\0PAR1", b"PAR1" + bytes([0x1B, 1]) + b"\2\0\0\0PAR1"):
        with pytest.raises(InternalError):
            Footer().add(memoryview(data), 4)
    with pytest.raises(InternalError):
        Footer().text()
