"""Raw files hold what `struct` and integers say."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from river.diagnostics import Rejected
from river.io.sinks import open_sink
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from pathlib import Path

POINT = t.Record((("x", t.F32), ("n", t.Array(t.I32, 2)), ("on", t.BOOL), ("y", t.F64)))

CASES: list[tuple[t.Type, str, list[Any], bytes]] = [
    (t.I32, "raw", [1, -2, 1 << 30], struct.pack("<3i", 1, -2, 1 << 30)),
    (t.F32, "raw", [0.5, -0.0, 3.0], struct.pack("<3f", 0.5, -0.0, 3.0)),
    (t.I64, "raw", [1 << 40], struct.pack("<q", 1 << 40)),
    (t.BOOL, "raw", [True, False], b"\1\0"),
    (t.Array(t.F32, 3), "raw", [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)], struct.pack("<6f", 1, 2, 3, 4, 5, 6)),
    (t.Array(t.Array(t.I32, 2), 2), "raw", [((1, 2), (3, 4))], struct.pack("<4i", 1, 2, 3, 4)),
    (POINT, "raw", [(1.0, (2, 3), True, 4.0), (5.0, (6, 7), False, 8.0)],
     struct.pack("<fii?d", 1, 2, 3, True, 4) + struct.pack("<fii?d", 5, 6, 7, False, 8)),
    (t.Array(t.Record((("re", t.F32), ("im", t.F32))), 2), "raw", [((1.0, 2.0), (3.0, 4.0)), ((5.0, 6.0), (7.0, 8.0))],
     struct.pack("<8f", 1, 2, 3, 4, 5, 6, 7, 8)),
    (t.I32, "bits", [1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0], b"\xb1\xf0"),
]  # fmt: skip


def written(type_: t.Type, format_: str, batches: list[list[Any]]) -> bytes:
    file = io.BytesIO()
    sink = open_sink(file, type_, name="out", format=format_)
    for items in batches:
        sink.write(items)
    sink.close()
    return file.getvalue()


def read(data: bytes, type_: t.Type, format_: str, batch: int = 4096) -> list[Any]:
    source = open_source(io.BytesIO(data), type_, name="in", format=format_, batch=batch)
    return [item for items in source for item in items]


@pytest.mark.parametrize(("type_", "format_", "items", "data"), CASES)
def test_items_are_their_bytes(type_: t.Type, format_: str, items: list[Any], data: bytes) -> None:
    assert written(type_, format_, [items[:1], [], items[1:]]) == data
    assert read(data, type_, format_) == items
    assert read(data, type_, format_, batch=1) == items


def test_the_last_byte_of_bits_is_filled_with_zeros() -> None:
    assert written(t.I32, "bits", [[1, 1], [1]]) == b"\xe0"
    assert read(b"\xe0", t.I32, "bits") == [1, 1, 1, 0, 0, 0, 0, 0]


@given(st.lists(st.lists(st.integers(0, 1), max_size=20), max_size=6))
def test_bits_are_packed_whatever_the_batches(batches: list[list[int]]) -> None:
    bits = [bit for batch in batches for bit in batch]
    whole = bits + [0] * (-len(bits) % 8)
    assert read(written(t.I32, "bits", batches), t.I32, "bits") == whole


def test_texts_are_written_as_they_are() -> None:
    assert written(t.STRING, "raw", [["a\n", ""], ["ä,", '"']]) == 'a\nä,"'.encode()


def test_more_than_a_chunk() -> None:
    items = list(range(700_000))
    data = struct.pack("<700000i", *items)
    assert read(data, t.I32, "raw") == items


def test_a_truncated_item_is_told_behind_what_is_whole() -> None:
    source = open_source(io.BytesIO(b"\1\0\0\0\2\0"), t.I32, name="in", format="raw")
    items = iter(source)
    assert next(items) == [1]
    with pytest.raises(Rejected) as refused:
        next(items)
    (told,) = refused.value.diagnostics
    assert told.code == "data-truncated"
    assert "2 bytes of 4 are there, behind 4 bytes" in told.message
    assert told.place == "<in>, item 2"


def test_a_truncated_item_is_counted_through_all_chunks() -> None:
    source = open_source(io.BytesIO(bytes(8 * 300_000 + 5)), t.F64, name="in", format="raw")
    with pytest.raises(Rejected) as refused:
        list(source)
    assert refused.value.diagnostics[0].place == "<in>, item 300001"


@pytest.mark.parametrize(("type_", "format_"), [(t.STRING, "raw"), (t.F32, "bits"), (t.List(t.I32), "raw")])
def test_what_has_no_raw_form(type_: t.Type, format_: str) -> None:
    with pytest.raises(Rejected) as refused:
        read(b"", type_, format_)
    assert [told.code for told in refused.value.diagnostics] == ["data-format"]


def test_suffixes(tmp_path: Path) -> None:
    path = tmp_path / "n.bin"
    with open_sink(str(path), t.I32, name="out") as sink:
        sink.write([7])
    assert path.read_bytes() == b"\7\0\0\0"
    assert [item for items in open_source(str(path), t.I32, name="in") for item in items] == [7]
