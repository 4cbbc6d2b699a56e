"""Arrow data that contradict themselves end in an error with the name of their file, before anything follows them."""

from __future__ import annotations

import contextlib
import io
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from river.diagnostics import Rejected
from river.io.columnar import Tables
from river.io.errors import SKIP, Refusals
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 40
RECORD = t.Record((("n", t.I64), ("s", t.STRING)))
TEXTS = [f"text {row}" for row in range(ROWS)]


def ints(*numbers: int) -> Any:
    return pa.py_buffer(struct.pack(f"<{len(numbers)}i", *numbers))


def broken_text() -> Any:
    return pa.Array.from_buffers(pa.string(), 3, [None, ints(0, 2, 1 << 30, 4), pa.py_buffer(b"abcd")])


def broken_list(items: Any) -> Any:
    return pa.Array.from_buffers(pa.list_(items.type), 3, [None, ints(0, 2, 99, 2)], children=[items])


BROKEN: dict[str, tuple[t.Type, Callable[[], Any]]] = {
    "text": (t.STRING, broken_text),
    "text that may be missing": (t.Optional(t.STRING), broken_text),
    "bytes": (t.BYTES, lambda: broken_text().view(pa.binary())),
    "text in a record": (
        t.Record((("s", t.STRING),)),
        lambda: pa.StructArray.from_arrays([broken_text()], names=["s"]),
    ),
    "text in a list": (t.List(t.STRING), lambda: pa.FixedSizeListArray.from_arrays(broken_text(), 1)),
    "list": (t.List(t.I64), lambda: broken_list(pa.array([1, 2]))),
    "list of texts": (t.List(t.STRING), lambda: broken_list(pa.array(["a", "b"]))),
    "view": (
        t.STRING,
        lambda: pa.Array.from_buffers(
            pa.string_view(), 3, [None, pa.py_buffer(struct.pack("<i4sii", 99, b"text", 0, 5) * 3), pa.py_buffer(b"t")]
        ),
    ),
    "dictionary": (
        t.STRING,
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 7, 1], pa.int32()), pa.array(["a", "b"]), safe=False),
    ),
    "map": (
        t.Map(t.STRING, t.I64),
        lambda: pa.Array.from_buffers(
            pa.map_(pa.string(), pa.int64()), 3, [None, ints(0, 1, 50, 1)],
            children=[pa.StructArray.from_arrays([pa.array(["k"]), pa.array([1])], fields=[
                pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())])],
        ),
    ),
    "number of rows without values": (
        t.Optional(t.I64), lambda: pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x07"), pa.py_buffer(bytes(24))], 3),
    ),
}  # fmt: skip


def refused(spec: Any, type_: t.Type) -> str:
    """What the error says; the evaluator's reader and the one for machine code give the same."""
    found: list[str] = []
    for native in (False, True):
        source = open_source(spec, type_, name="xs")
        with contextlib.closing(source), pytest.raises(Rejected) as caught:
            _ = list(source.unordered.parts(100) if native else source)  # type: ignore[attr-defined]
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "data-unreadable"
        assert "damaged" in (diagnostic.help or "")
        found.append(diagnostic.message)
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("name", BROKEN)
def test_columns_from_python_are_not_followed_out_of_their_buffers(name: str) -> None:
    type_, make = BROKEN[name]
    data = pa.table({"Value": make(), "other": [1, 2, 3]})
    found = refused(data, t.Record((("Value", type_),)))
    # Where views lead is looked at before River sees them.
    assert found.startswith("cannot read `xs`: " + ("" if name == "view" else "column `Value`: "))


@pytest.mark.parametrize("opened", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("inside", [True, False])
def test_offsets_in_files_are_checked(tmp_path: Path, opened: Any, inside: bool) -> None:
    texts = pa.array(TEXTS)
    column = pa.StructArray.from_arrays([pa.array(range(ROWS)), texts], names=["n", "s"]) if inside else texts
    out = io.BytesIO()
    with opened(out, pa.schema({"v": column.type})) as writer:
        writer.write_batch(pa.record_batch({"v": column}))
    offsets = texts.buffers()[1].to_pybytes()[:64]
    assert out.getvalue().count(offsets) == 1
    at = out.getvalue().index(offsets) + 40
    path = tmp_path / "Damaged.arrow"
    for number in (-1, 1 << 20, 1 << 30):
        data = bytearray(out.getvalue())
        data[at : at + 4] = struct.pack("<i", number)
        path.write_bytes(data)
        message = refused(path, t.Record((("v", RECORD if inside else t.STRING),)))
        assert message.startswith(f"cannot read `{path}`: column `v`: ")


def test_memory_that_a_file_has_not_enough_bytes_for_is_not_there(tmp_path: Path) -> None:
    out = io.BytesIO()
    with ipc.new_stream(out, pa.schema({"v": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"v": list(range(1000))}))
    size = struct.pack("<q", 8000)
    assert out.getvalue().count(size) == 2  # of the body of the message, and of its only buffer
    path = tmp_path / "in.arrows"
    path.write_bytes(out.getvalue().replace(size, struct.pack("<q", 1 << 60)))
    assert str(path) in refused(path, t.Record((("v", t.I64),)))


def test_columns_that_nobody_declared_are_not_looked_at() -> None:
    data = pa.table({"n": [1, 2, 3], "s": broken_text()})
    assert list(open_source(data, t.Record((("n", t.I64),)), name="xs")) == [[(1,), (2,), (3,)]]


def test_records_of_units_are_no_contradiction() -> None:
    kind = pa.struct([("u", pa.null()), ("s", pa.string())])
    data = pa.table({"r": pa.array([None, {"u": None, "s": "a"}], kind)})
    type_ = t.Record((("r", t.Optional(t.Record((("u", t.UNIT), ("s", t.STRING))))),))
    assert list(open_source(data, type_, name="xs")) == [[(None,), (((), "a"),)]]


def test_what_values_say_is_a_matter_of_rows() -> None:
    latin = pa.array([b"a", b"\xe9", b"b"]).view(pa.string())
    inside = pa.StructArray.from_arrays([pa.array([1, 2, 3]), latin], names=["n", "s"])
    money = pa.array([b"\x01" + bytes(15), b"\xff" * 15 + b"\x7f", bytes(16)], pa.binary(16)).view(
        pa.decimal128(9, 2)
    )
    data = pa.table({"t": latin, "l": [["a"], ["b"], ["c"]], "r": inside, "m": money})
    type_ = t.Record((("t", t.STRING), ("l", t.List(t.STRING)), ("r", RECORD), ("m", t.Decimal(9, 2))))
    refusals = Refusals(SKIP)
    source = open_source(data, type_, name="xs", on_error=refusals)
    assert isinstance(source.unordered, Tables)
    assert list(source) == [[("a", ("a",), (1, "a"), 1), ("b", ("c",), (3, "b"), 0)]]
    assert refusals.count() == 1


def test_decimals_of_an_impossible_scale_are_refused() -> None:
    wide = pa.array([b"\x01" + bytes(31)], pa.binary(32)).view(pa.decimal256(40, -(1 << 31)))
    with pytest.raises(Rejected) as caught:
        list(open_source(pa.table({"m": wide}), t.Record((("m", t.Decimal(30, 3)),)), name="xs"))
    assert [found.code for found in caught.value.diagnostics] == ["data-unreadable"]


def test_checksums_of_parquet_pages_are_checked(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "in.parquet"
    parquet.write_table(
        pa.table({"s": TEXTS}), path, compression="none", use_dictionary=False, write_page_checksum=True, write_statistics=False
    )  # fmt: skip
    path.write_bytes(path.read_bytes().replace(b"text 7", b"text 8"))
    assert str(path) in refused(path, t.Record((("s", t.STRING),)))
