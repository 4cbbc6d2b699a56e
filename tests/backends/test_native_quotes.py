"""Quotes that do not close: every reader does what the rule says, in linear time, and keeps no more than it must."""

from __future__ import annotations

import gzip
import os
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native.ingest import arriving, open_native, reader
from backends.native.ingest.arriving import read_natively
from river.io import delimited
from river.io.batches import Origin
from river.io.errors import SKIP, STOP, OnError, Refusals
from river.io.sources import open_source
from river.lang import types as t
from river.testing import seeds
from tests.backends.ingest_files import FOLDER, Found, Recorder, taken
from tests.backends.test_native_live import PLACES, Chunks, input_of, pieces, read
from tests.river.quote_rule import Bad, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.native.ingest import Reader
    from backends.native.ingest.reader import RecordBlock

TEXTS = t.Record((("a", t.STRING), ("b", t.STRING)))
CASES = int(os.environ.get("RIVER_CASES", "60"))  # of each way to read
WAYS = ("general", "native", "in any order", "side by side", "packed", "live", "live, natively")


def in_any_order(path: Any, refusals: Refusals, block: int, chance: random.Random) -> Iterator[list[Any]]:
    """The items of a file whose blocks are parsed by whoever is free."""
    source = open_source(path, TEXTS, name="in", on_error=refusals)
    found = open_native(source, 3, block=block)
    assert found is not None
    try:
        blocks = list(found.blocks())
        order = chance.sample(range(len(blocks)), len(blocks))
        parsed = {i: blocks[i].parse() for i in order}
        for i in range(len(blocks)):
            for batch in found.deliver(parsed[i]):
                yield batch.values()
    finally:
        found.close()


def side_by_side(path: Any, refusals: Refusals, block: int) -> Iterator[list[Any]]:
    """The items of a file whose blocks are read and parsed by several threads."""
    source = open_source(path, TEXTS, name="in", on_error=refusals)
    found = open_native(source, 3, block=block)
    assert found is not None
    try:
        with ThreadPoolExecutor(3) as pool:
            for parsed in [pool.submit(each.parse) for each in found.spans()]:
                for batch in found.deliver(parsed.result()):
                    yield batch.values()
    finally:
        found.close()


def reading(
    way: str, kind: str, data: bytes, policy: OnError, block: int, size: int, places: list[int]
) -> Found:
    """What becomes of a text if it is read in one of these ways."""
    if way.startswith("live"):
        return read(kind, [pieces(data, places)], TEXTS, policy, native=way.endswith("natively"))
    path = FOLDER / f"quotes.{kind}{'.gz' if way == 'packed' else ''}"
    path.write_bytes(gzip.compress(data) if way == "packed" else data)
    if way == "general":
        return taken(policy, lambda r: open_source(path, TEXTS, name="in", on_error=r, batch=size))
    if way == "side by side":
        return taken(policy, lambda r: side_by_side(path, r, block))
    if way == "in any order":
        return taken(policy, lambda r: in_any_order(path, r, block, random.Random(block)))

    def batches(refusals: Recorder) -> Iterable[list[Any]]:
        found = open_native(open_source(path, TEXTS, name="in", on_error=refusals), size, block=block)
        assert found is not None
        for batch in found:
            yield batch.values()

    return taken(policy, batches)  # pyright: ignore[reportArgumentType]


def obeys(way: str, kind: str, body: str, most: int, block: int, size: int, places: list[int]) -> None:
    """A file is read as the rule says, and to its first bad record if that stops the run."""
    between = "\t" if kind == "tsv" else ","
    body = body.replace(",", between)
    rows, bad = records(body, between, 2, most)
    data = f"a{between}b\n{body}".encode()
    skipped = reading(way, kind, data, SKIP, block, size, places)
    assert skipped.items == [repr(row) for _, row in rows]
    assert bad == [
        Bad(e.code, e.line - 1, e.text, e.column if e.code == "data-syntax" else None) for e in skipped.errors
    ]
    stopped = reading(way, kind, data, STOP, block, size, places)
    until = bad[0].line if bad else len(data)
    assert stopped.items == [repr(row) for line, row in rows if line < until]
    assert list(stopped.rejected) == [error.diagnostic for error in skipped.errors[:1]]


TOKENS = [
    '"',
    '"',
    '""',
    ",",
    "a",
    "b,c",
    "\n",
    "\n",
    "\r\n",
    "\r",
    ',"',
    '",',
    '"\n',
    '\n"',
    "\n1,2\n",
    '\n1,"',
    '\n1,"",',
    "é",
]
BODIES = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)
BLOCKS = st.sampled_from([4, 9, 30, 100, 1 << 20])
SIZES = st.sampled_from([1, 2, 5, 4096])
MOST = st.sampled_from([0, 6, 12, 30, 1 << 24])


@pytest.mark.parametrize("way", WAYS)
def test_every_reader_obeys_the_rule(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @given(BODIES, st.sampled_from(["csv", "csv", "tsv"]), MOST, BLOCKS, SIZES, PLACES)
    @example('1,"x\n2,y\n3,z\n', "csv", 1 << 24, 4, 1, [8])  # the file ends
    @example('1,"x\n2,y"z\n3,z\n', "csv", 1 << 24, 4, 1, [9])  # text behind a closing quote
    @example('1,"x\n2,",y"\n3,z\n', "csv", 1 << 24, 4, 1, [9])  # a quote within a cell
    @example('1,"x\n2,y\n3,z\n4,"\n5,"u\n"\n', "csv", 6, 4, 1, [9])  # it is too long
    @example('1,"x\ny",q\rz,"u\nv"\n2,"\n"\n', "csv", 1 << 24, 4, 1, [9])  # what else is wrong cuts nothing
    @example('1,"x\ny"\r\n2,"\r\n"\r\n3,"z"\r4\r\n', "csv", 1 << 24, 4, 1, [9, 10, 11, 12])
    @settings(max_examples=CASES, deadline=None)
    def check(body: str, kind: str, most: int, block: int, size: int, places: list[int]) -> None:
        monkeypatch.setattr(delimited, "MOST", most)
        obeys(way, kind, body, most, block, size, places)

    check()


@given(BODIES, MOST, BLOCKS)
@example('1,"x\n2,y\n3,"\n4,"u\n', 1 << 24, 4)  # from within the record that fails
@settings(max_examples=40, deadline=None)
def test_a_file_can_be_read_on_from_every_block(body: str, most: int, block: int) -> None:
    def opened(refusals: Recorder) -> Reader:
        found = open_native(open_source(path, TEXTS, name="in", on_error=refusals), 1 << 16, block=block)
        assert found is not None
        return found

    def delivered(from_: Reader, blocks: Iterable[RecordBlock]) -> list[Any]:
        return [row for each in blocks for batch in from_.deliver(each.parse()) for row in batch.values()]

    path = FOLDER / "places.csv"
    path.write_bytes(b"a,b\n" + body.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "MOST", most)
        whole = Recorder(SKIP)
        first = opened(whole)
        rows: list[Any] = []
        anchors: list[tuple[int, int, int, int]] = []
        for each in first.blocks():
            anchors.append((each.place, first.lines, len(rows), len(whole.seen)))
            rows += delivered(first, [each])
        first.close()
        for place, lines, items, errors in anchors[1:]:
            behind = Recorder(SKIP)
            second = opened(behind)
            second.begin(place, lines, None)
            assert delivered(second, second.blocks()) == rows[items:]
            assert behind.seen == whole.seen[errors:]
            second.close()


# ------------------------------------------------------------------------------------------------ how long it takes


LIMITS = (300, 1 << 24)


def adverse(size: int, name: str) -> list[str]:
    """Some texts of about `size` characters whose quotes close late, or never, again and again."""
    patterns = [
        '1,"x\n',
        "1,x\n",
        '1,"",\n',
        '1,"x"y\n',
        '"\n',
        '1,"x\n"y"\n',
        '1,","\n',
        '"",""\n',
        ',"""\n',
    ]
    found: list[str] = []
    for first, second in product(patterns, repeat=2):
        found.append(first + second * (size // len(second)))
        found.append((first + second) * (size // len(first + second)))
        found.append((first + second * 20 + '"z\n') * (size // (len(first) + 20 * len(second) + 3)))
    always = ['1,"x\n' + row * (size // len(row)) for row in ("1,x\n", '1,"",\n')]
    return always + seeds.chance(name).sample(found, 22)


@pytest.mark.slow
def test_lines_are_looked_at_so_often_and_no_more_by_the_general_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = 0
    scan = delimited.scan

    def counting(text: str, delimiter: str, start: int = 0, starts: list[int] | None = None) -> Any:
        nonlocal looked
        try:
            cells, end = scan(text, delimiter, start, starts)
        except delimited.Unclosed:
            looked += len(text) - start
            raise
        except delimited.Fault as fault:
            looked += fault.at if fault.end is None else fault.end - start
            raise
        looked += end - start
        return cells, end

    monkeypatch.setattr(delimited, "scan", counting)
    for most, body in product(LIMITS, adverse(4000, "general")):
        monkeypatch.setattr(delimited, "MOST", most)
        looked = 0
        lines = body.splitlines()
        blocks = [lines[i : i + 3] for i in range(0, len(lines), 3)]
        for _ in delimited.Scanner(blocks, ",", Origin("in")):
            pass
        assert looked <= 5 * len(body), body[:60]


class Bytes:
    """The bytes that the runtime's language sees; those that it looks at are counted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.looked = 0

    def __getitem__(self, at: int) -> int:
        self.looked += 1
        return self.data[at]

    def stops(self, at: int, wanted: bytes) -> int:
        """The mask of 64 bytes from `at` on for those that are wanted, up to the first."""
        found = next((i for i, byte in enumerate(self.data[at : at + 64]) if byte in wanted), 64)
        self.looked += found
        return 1 << found if found < 64 else 0


def runtime() -> dict[str, Any]:
    """The functions of `ingest_csv.rt`, which is Python as well, over `Bytes`."""
    names: dict[str, Any] = {
        "DELIMITER": 44, "LINE": 10, "RETURN": 13, "QUOTE": 34,
        "p8": None, "i64": int, "i1": None, "Ingest": None, "inline": lambda function: function, "rare": bool,
        "offset": lambda data, at: (data, at),
        "ctz": lambda mask: (mask & -mask).bit_length() - 1 if mask else 64,
        "cell_stops": lambda here: here[0].stops(here[1], b',\n\r"'),
        "quote_stops": lambda here: here[0].stops(here[1], b'\n"'),
        "line_length": lambda here: here[0].data.index(b"\n", here[1]) - here[1],
    }  # fmt: skip
    exec(files("backends.native").joinpath("runtime/ingest_csv.rt").read_text(), names)  # noqa: S102 - our own
    return names


@pytest.mark.slow
def test_bytes_are_looked_at_so_often_and_no_more_by_native_code() -> None:
    functions = runtime()
    for limit, body in product(LIMITS, adverse(2000, "native")):
        data = Bytes(body.encode() + b"\n")
        state = SimpleNamespace(data=data, end=len(data.data), inner=0, size=0, limit=limit)
        functions["cut_slowly"](state)
        assert data.looked <= 8 * len(body), body[:60]
        data = state.data = Bytes(body.encode())
        state.end, at = len(data.data), 0
        while at < state.end:
            at = functions["record_end"](state, at)
        assert data.looked <= 8 * len(body), body[:60]


@pytest.mark.parametrize("live", [False, True])
def test_what_is_read_is_looked_at_again_only_when_as_much_has_come(
    live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def counting(way: Callable[..., Any]) -> Callable[..., Any]:
        def counted(parser: Any, data: bytearray, start: int, fill: int, *more: Any) -> Any:
            nonlocal looked
            looked += fill - start
            return way(parser, data, start, fill, *more)

        return counted

    for module in (reader, arriving):
        for name in {"cut", "cut_of_good"} & set(vars(module)):
            monkeypatch.setattr(module, name, counting(getattr(module, name)))
    for most, body in product(LIMITS, adverse(1500, "blocks")[:8]):
        monkeypatch.setattr(delimited, "MOST", most)
        looked = 0
        data = b"a,b\n" + body.encode()
        if live:
            read("csv", [pieces(data, list(range(0, len(data), 50)))], TEXTS, SKIP, native=True)
        else:
            path = FOLDER / "often.csv"
            path.write_bytes(data)
            found = open_native(open_source(path, TEXTS, name="in", on_error=SKIP), 100, block=50)
            assert found is not None
            for _ in found:
                pass
        assert looked <= 6 * len(data), body[:60]


# ----------------------------------------------------------------------------------------------------------- memory


@pytest.mark.slow
@pytest.mark.parametrize("way", ["general", "native", "live", "live, natively"])
def test_no_more_is_kept_than_a_record_may_have(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MOST", 1 << 16)
    count = 10_000
    data = b'a,b\n1,"x\n' + (b"1," + b"y" * 1000 + b"\n") * count
    path = FOLDER / "kept.csv"
    path.write_bytes(data)
    refusals = Refusals(SKIP)
    source = open_source(path, TEXTS, name="in", on_error=refusals)
    entries = live_entries(data, natively=way.endswith("natively"))
    rows = 0
    tracemalloc.start()
    try:
        if way == "general":
            rows = sum(map(len, source))
        elif way == "native":
            found = open_native(source, 1 << 12, block=1 << 14)
            assert found is not None
            rows = sum(batch.rows for batch in found)
        else:
            rows = sum(size for _, size in entries) - 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        source.close()
    assert rows == count
    assert most < len(data) // 2


def live_entries(data: bytes, *, natively: bool) -> Iterator[Any]:
    """What comes of a text that arrives in pieces of 4 KiB."""
    found = input_of(TEXTS, "csv", Recorder(SKIP))
    if natively:
        assert read_natively(found, None, 1 << 12)
    assert found.texts is not None
    chunks = [data[at : at + (1 << 12)] for at in range(0, len(data), 1 << 12)]
    stream = Chunks(found.live, "text", chunks)
    assert stream.begins()
    return found.texts.read(stream, "csv", Origin("in", "text"))
