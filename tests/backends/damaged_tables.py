"""Damaged files of Arrow and Parquet data, read as River reads them: by the evaluator's reader, by the native one, by whole runs.

`RIVER_SEED=1 python -m tests.backends.damaged_tables arrow CASES [FIRST]` is a process of its own, because what is looked
for may end it: before each case it prints its number, and at the end one line of JSON. A case that takes a minute ends the
process with a traceback.
"""

from __future__ import annotations

import faulthandler
import io
import json
import resource
import struct
import sys
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from attrs import frozen
from pyarrow import ipc, parquet

from backends.native.arrow import from_arrow
from river.cli import main
from river.diagnostics import Rejected
from river.io.columnar import Tables
from river.io.errors import SKIP
from river.io.sources import open_source
from river.lang import types as t
from river.lang.scope import show
from river.testing import seeds
from tests.backends.ingest_files import Recorder

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

LONGEST: Final = 60
"""Seconds of a case."""

WHOLE: Final = 0.03
"""How many of the cases are whole runs, which take much longer."""

ROWS: Final = 12

# ------------------------------------------------------------------------------------------------------------- tables


@frozen
class Table:
    """A table: the rows that River reads it as, the Arrow types of its columns, and a value of each by row."""

    type: t.Record
    kinds: Sequence[pa.DataType]
    values: Sequence[Callable[[int], Any]]

    def rows(self, start: int, count: int, *, missing: bool) -> pa.RecordBatch:
        """A record batch. `missing`: with some values that are not there, where they need not be."""
        arrays = [
            pa.array(
                [
                    None if missing and isinstance(of, t.Optional) and (row + at) % 3 == 0 else value(row)
                    for row in range(start, start + count)
                ],
                kind,
            )
            for at, (kind, value, (_, of)) in enumerate(
                zip(self.kinds, self.values, self.type.fields, strict=True)
            )
        ]
        return pa.record_batch(arrays, names=[name for name, _ in self.type.fields])


def text(row: int) -> str:
    return ["", "a", "text", "twelve bytes", "a longer text, é", "x" * 40][row % 6] + str(row)


def table(*columns: tuple[t.Type, pa.DataType, Callable[[int], Any]]) -> Table:
    names = "abcdefghij"
    fields = tuple((names[i], of) for i, (of, _, _) in enumerate(columns))
    return Table(t.Record(fields), [kind for _, kind, _ in columns], [value for _, _, value in columns])


def optional(of: t.Type) -> t.Type:
    return t.Optional(of)


PAIR: Final = t.Record((("k", t.I64), ("s", t.Optional(t.STRING))))
PAIRS: Final = pa.struct(
    [pa.field("k", pa.int64(), nullable=False), ("s", pa.string()), ("more", pa.list_(pa.int8()))]
)


def pair(row: int) -> dict[str, Any]:
    return {"k": row, "s": None if row % 4 == 1 else text(row), "more": [1] * (row % 3)}


TABLES: Final = {
    "numbers": table(
        (t.I64, pa.int64(), lambda row: row * 1_000_003), (t.F64, pa.float64(), lambda row: row / 7),
        (t.I32, pa.int32(), lambda row: -row), (t.F32, pa.float32(), lambda row: row / 2),
        (t.U64, pa.uint64(), lambda row: 1 << row),
    ),
    "texts": table(
        (t.STRING, pa.string(), text), (optional(t.STRING), pa.large_string(), text),
        (t.BYTES, pa.binary(), lambda row: text(row).encode()), (t.I64, pa.int64(), lambda row: row),
    ),
    "views": table((t.STRING, pa.string_view(), text), (optional(t.BYTES), pa.binary_view(), lambda row: text(row).encode() * 2)),
    "optional": table(
        (optional(t.I64), pa.int64(), lambda row: row), (optional(t.BOOL), pa.bool_(), lambda row: row % 3 == 0),
        (optional(t.TIME), pa.timestamp("us", "UTC"), lambda row: row * 10**15), (optional(t.F64), pa.float64(), float),
        (optional(t.DURATION), pa.duration("us"), lambda row: row * 10**9),
    ),
    "lists": table(
        (t.List(t.STRING), pa.list_(pa.string()), lambda row: [text(row)] * (row % 4)),
        (optional(t.List(t.I64)), pa.large_list(pa.int64()), lambda row: list(range(row % 5))),
        (t.List(t.List(t.I32)), pa.list_(pa.list_(pa.int32())), lambda row: [[row], [], [1, 2]][: row % 4]),
        (t.List(PAIR), pa.list_(PAIRS), lambda row: [pair(row), pair(row + 1)][: row % 3]),
    ),
    "records": table(
        (PAIR, PAIRS, pair), (optional(PAIR), PAIRS, pair),
        (t.Array(t.I32, 2), pa.list_(pa.int32(), 2), lambda row: [row, -row]),
        (t.Map(t.STRING, t.I64), pa.map_(pa.string(), pa.int64()), lambda row: [(text(i), i) for i in range(row % 4)]),
    ),
    "others": table(
        (t.Decimal(9, 2), pa.decimal128(9, 2), lambda row: Decimal(row * 125).scaleb(-2)),
        (optional(t.TIME), pa.date32(), lambda row: row * 1000), (optional(t.TIME), pa.date64(), lambda row: row * 86_400_000),
        (t.TIME, pa.timestamp("ns"), lambda row: row * 10**12), (t.I64, pa.int16(), lambda row: row),
        (t.I32, pa.float64(), float), (t.F64, pa.int32(), lambda row: row), (t.Decimal(30, 3), pa.decimal256(40, 3), Decimal),
    ),
    "dictionaries": table(
        (t.STRING, pa.dictionary(pa.int8(), pa.string()), lambda row: text(row % 3)),
        (optional(t.STRING), pa.dictionary(pa.int32(), pa.large_string()), lambda row: text(row % 4)),
        (optional(t.I64), pa.dictionary(pa.uint16(), pa.int64()), lambda row: row % 5),
    ),
    "lists of dictionaries": table(
        (t.List(t.STRING), pa.list_(pa.dictionary(pa.int16(), pa.string())), lambda row: [text(row % 3)] * (row % 3)),
    ),
}  # fmt: skip


@frozen
class File:
    """A file that is whole. `plain`: what its columns say stands in it as they say it."""

    name: str
    type: t.Record
    data: bytes
    plain: bool = False


def _batches(made: Table, *, missing: bool) -> list[pa.RecordBatch]:
    return [made.rows(start, ROWS, missing=missing) for start in (0, ROWS, 2 * ROWS)]


def arrow_files() -> list[File]:
    """Files and streams of Arrow data, with and without compression."""
    found: list[File] = []
    for name, made in TABLES.items():
        for missing in (False, True):
            batches = pa.Table.from_batches(_batches(made, missing=missing)).unify_dictionaries().to_batches()
            for compression in (None, "lz4", "zstd"):
                for kind, opened in (("file", ipc.new_file), ("stream", ipc.new_stream)):
                    out = io.BytesIO()
                    options = ipc.IpcWriteOptions(compression=compression)
                    with opened(out, batches[0].schema, options=options) as writer:
                        for batch in batches:
                            writer.write_batch(batch)
                    plain = compression is None and name != "others" and "dictionaries" not in name
                    found.append(File(f"{name} {kind} {compression}.arrow", made.type, out.getvalue(), plain))
    return found


WAYS: Final[dict[str, dict[str, Any]]] = {
    "usual": {},
    "plain": {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
    "zstd": {"compression": "zstd", "write_page_checksum": True, "write_page_index": True},
    "gzip": {"compression": "gzip", "data_page_size": 64},
    "none": {"compression": "none"},
}
ENCODED: Final = {
    "numbers": {"a": "DELTA_BINARY_PACKED", "b": "BYTE_STREAM_SPLIT", "c": "DELTA_BINARY_PACKED"},
    "texts": {"a": "DELTA_BYTE_ARRAY", "b": "DELTA_LENGTH_BYTE_ARRAY", "c": "DELTA_BYTE_ARRAY"},
}


def parquet_files() -> list[File]:
    """Parquet files in several encodings."""
    found: list[File] = []
    for name, made in TABLES.items():
        if name == "lists of dictionaries":  # which pyarrow 26 writes, and does not read
            continue
        ways = dict(WAYS)
        if name in ENCODED:
            ways["delta"] = {"use_dictionary": False, "column_encoding": ENCODED[name], "compression": "none"}
        for missing in (False, True):
            data = pa.Table.from_batches(_batches(made, missing=missing))
            for way, options in ways.items():
                out = io.BytesIO()
                parquet.write_table(data, out, row_group_size=ROWS, **options)
                found.append(File(f"{name} {way}.parquet", made.type, out.getvalue()))
    return found


# ------------------------------------------------------------------------------------------------------------- damage

NUMBERS: Final = (
    0,
    1,
    -1,
    2,
    7,
    8,
    255,
    256,
    65535,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 31,
    (1 << 62),
    (1 << 63) - 1,
    -(1 << 63),
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes of which some are others, are gone, or are there twice; most of that happens where the format speaks."""
    found = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 1, 3])):
        size = len(found)
        if not size:
            break
        at = (
            chance.randrange(size)
            if chance.random() < 0.6
            else max(0, size - 1 - chance.randrange(min(size, 1200)))
        )
        match chance.randrange(9):
            case 0 | 1:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                found[at] = chance.randrange(256)
            case 3 | 4:
                word, at = chance.choice(["<i", "<q"]), at & ~3
                number = chance.choice([*NUMBERS, chance.randrange(100), -chance.randrange(100)])
                part = struct.pack("<q", number)[: struct.calcsize(word)]
                found[at : at + len(part)] = part[: max(0, size - at)]
            case 5:
                word, at = chance.choice(["<i", "<q"]), at & ~7
                length = struct.calcsize(word)
                if at + length <= size:
                    (number,) = struct.unpack_from(word, found, at)
                    number += chance.choice([-8, -1, 1, 8, 64, 4096])
                    part = struct.pack("<q", max(min(number, (1 << 63) - 1), -(1 << 63)))[:length]
                    found[at : at + length] = part
            case 6:
                other = chance.randrange(size)
                count = chance.choice([1, 4, 8, 16, 64])
                part = found[other : other + count]
                found[at : at + len(part)] = part[: max(0, size - at)]
            case 7:
                del found[at : at + chance.choice([1, 4, 8, size])]
            case _:
                found[at:at] = bytes(chance.choice([1, 4, 8, 64]))
    return bytes(found)


# ------------------------------------------------------------------------------------------------------------ reading


@frozen
class Found:
    """What became of a file: its rows, those refused, and why reading ended."""

    rows: list[Any]
    errors: list[Any]
    rejected: bool


def taken(read: Callable[[Recorder], Iterable[list[Any]]]) -> Found:
    recorder = Recorder(SKIP)
    rows: list[Any] = []
    try:
        for part in read(recorder):
            rows += part
    except Rejected:
        return Found(rows, recorder.seen, rejected=True)
    return Found(rows, recorder.seen, rejected=False)


def general(path: Path, type_: t.Record) -> Found:
    return taken(lambda recorder: open_source(path, type_, name="in", on_error=recorder, batch=5))


def native(path: Path, type_: t.Record) -> Found:
    def read(recorder: Recorder) -> Iterable[list[Any]]:
        source = open_source(path, type_, name="in", on_error=recorder)
        try:
            assert isinstance(source.unordered, Tables)
            for part in source.unordered.parts(7):
                batch = from_arrow(type_, part.data)
                if batch is None:
                    yield from source.accepted(part.batch())
                else:
                    yield batch.values()
        finally:
            source.close()

    return taken(read)


PACKED: Final = {
    t.I64: "bhiq",
    t.TIME: "q",
    t.DURATION: "q",
    t.U64: "BHIQ",
    t.I32: "bhi",
    t.F64: "efd",
    t.F32: "ef",
}


def held(value: Any, type_: t.Type, data: bytes) -> bool:
    """Whether a value stands in the bytes of a file."""
    match type_:
        case t.Optional(inner):
            return value is None or held(value, inner, data)
        case t.Record(fields):
            return all(held(part, of, data) for part, (_, of) in zip(value, fields, strict=True))
        case t.List(item) | t.Array(item, _):
            return all(held(part, item, data) for part in value)
        case t.Map(key, of):
            return all(held(k, key, data) and held(v, of, data) for k, v in value.items())
        case t.STRING:
            return value.encode() in data
        case t.BYTES:
            return value in data
        case t.TIME | t.DURATION:  # a bit of the schema says what the numbers count
            counts = [value * 1000, *(value // unit for unit in (1, 1000, 1_000_000) if value % unit == 0)]
            return any(part in data for count in counts for part in _packed(count, PACKED[type_]))
        case _ if type_ in PACKED:
            return value != value or any(part in data for part in _packed(value, PACKED[type_]))
        case _:
            return True


def _packed(value: Any, widths: str) -> Iterable[bytes]:
    """The bytes of a number; a bit of the schema says how many there are, and which comes first."""
    for order, width in product("<>", widths):
        with suppress(struct.error, OverflowError):
            yield struct.pack(order + width, value)


def agree(ours: Found, theirs: Found) -> bool:
    """Whether two readers say the same; where reading ends early, one may have come further."""
    if ours.rejected != theirs.rejected:
        return False
    pairs = [(list(map(repr, ours.rows)), list(map(repr, theirs.rows))), (ours.errors, theirs.errors)]
    if ours.rejected:
        return all(a[: len(b)] == b[: len(a)] for a, b in pairs)
    return all(a == b for a, b in pairs)


def run(path: Path, type_: t.Record, backend: str) -> int:
    """The status of a whole run that copies the rows of a file."""
    rows = show(type_)
    operator = f"operator copy(a: {rows}) -> (b: {rows}) {{ on a(r) {{ emit b r; }} }}"
    program = path.with_name("copy.river")
    program.write_text(f"river 1;\ninput xs: {rows};\noutput ys: {rows};\n{operator}\n(ys) <- copy(xs);\n")
    out, err = io.StringIO(), io.StringIO()
    argv = [
        "run",
        str(program),
        "--in",
        f"xs={path}",
        "--out",
        f"ys={path.with_name('ys.jsonl')}",
        "--backend",
        backend,
    ]
    status = main([*argv, "--on-error", "skip"], io.StringIO(), out, err)
    if status not in (0, 1) or "internal" in err.getvalue():
        raise AssertionError(f"status {status}: {err.getvalue()}")
    return status


def one(file: File, chance: random.Random, folder: Path, totals: dict[str, int]) -> None:
    path = folder / file.name.replace(" ", "-")
    data = damaged(file.data, chance)
    path.write_bytes(data)
    try:
        if chance.random() < WHOLE:
            for backend in ("reference", "multicore"):
                totals[f"{backend} {run(path, file.type, backend)}"] += 1
            return
        ours, theirs = native(path, file.type), general(path, file.type)
        assert agree(ours, theirs), f"{ours}\n{theirs}"
        if file.plain:
            for row in theirs.rows:
                assert held(row, file.type, data), f"{row} is not in the file"
        totals["rejected" if theirs.rejected else "errors" if theirs.errors else "read"] += 1
    finally:
        path.unlink()


def many(kind: str, cases: int, first: int = 0) -> None:
    faulthandler.enable()
    files = arrow_files() if kind == "arrow" else parquet_files()
    totals: dict[str, int] = Counter()
    with TemporaryDirectory() as folder:
        for file in files:  # also warms up what takes memory
            path = Path(folder) / "whole.parquet"
            path = path if kind == "parquet" else path.with_suffix(".arrow")
            path.write_bytes(file.data)
            ours, theirs = native(path, file.type), general(path, file.type)
            assert agree(ours, theirs), file.name
            assert len(theirs.rows) == 3 * ROWS, (file.name, theirs)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(first, first + cases):
            print(number, flush=True)
            faulthandler.dump_traceback_later(LONGEST, exit=True)
            chance = seeds.chance("damaged tables", kind, number)
            file = chance.choice(files)
            try:
                one(file, chance, Path(folder), totals)
            except BaseException:
                print(f"case {number}: {file.name}", file=sys.stderr)
                raise
        faulthandler.cancel_dump_traceback_later()
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(json.dumps({**totals, "grown": grown}))


if __name__ == "__main__":
    many(sys.argv[1], *map(int, sys.argv[2:]))
