"""Blocks that are cut before they are read: those behind one that was cut within a record do not count, whoever comes first."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native.ingest import open_native
from river.io.errors import STOP, Refusals
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backends.native.ingest import Parsed, Reader, RecordBlock

ROW = t.Record((("a", t.I64), ("b", t.STRING)))
BLOCK = 64
LINES = [f"{n},the text of row {n}\n" for n in range(30)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def opened(path: Path, text: str) -> Reader:
    path.write_text(f"a,b\n{text}", newline="")
    found = open_native(open_source(path, ROW, name="in", on_error=Refusals(STOP)), 1000, block=BLOCK)
    assert found is not None
    return found


def rows(reader: Reader, parsed: Parsed) -> list[Any]:
    return [row for batch in reader.deliver(parsed) for row in batch.values()]


def late(blocks: Iterator[RecordBlock]) -> list[RecordBlock]:
    """The first block, which is read at once, and two that are not."""
    found = [next(blocks) for _ in range(3)]
    assert [each.span is None for each in found] == [True, False, False]
    return found


def parsed_backwards(blocks: list[RecordBlock]) -> list[Parsed]:
    """What was parsed by threads that begin with the last block."""
    with ThreadPoolExecutor(len(blocks)) as pool:
        return [each.result() for each in [pool.submit(b.parse) for b in blocks[::-1]][::-1]]


def finished(reader: Reader, found: list[Parsed], blocks: Iterator[RecordBlock]) -> list[Any]:
    made = [row for each in found for row in rows(reader, each)]
    made += [row for each in blocks for row in rows(reader, each.parse())]
    reader.close()
    return made


def test_blocks_are_cut_before_they_are_read(path: Path) -> None:
    """What stands in the file when they are parsed is what they hold."""
    reader = opened(path, "".join(LINES))
    blocks = reader.spans()
    given = late(blocks)
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"29,"))
        file.write(b"77,")
    found = finished(reader, parsed_backwards(given), blocks)
    assert found == [(77 if n == 29 else n, f"the text of row {n}") for n in range(30)]


@pytest.mark.parametrize("line", range(2, 8))
def test_a_line_feed_in_quotes_ends_no_block(path: Path, line: int) -> None:
    """Wherever blocks end: one that was cut there holds what comes before, the next one that was given out nothing."""
    lines = [f'{n},"' + "in\nquotes\n" * 9 + '"\n' if n == line else text for n, text in enumerate(LINES)]
    reader = opened(path, "".join(lines))
    blocks = reader.spans()
    given = late(blocks)
    found = parsed_backwards(given)
    assert finished(reader, found, blocks) == [
        (n, "in\nquotes\n" * 9 if n == line else f"the text of row {n}") for n in range(30)
    ]


def test_what_was_cut_behind_a_wrong_cut_counts_for_nothing(path: Path) -> None:
    reader = opened(path, "".join(LINES[:2]) + '2,"' + "in\nquotes\n" * 20 + '"\n' + "".join(LINES[3:]))
    blocks = reader.spans()
    given = late(blocks)
    wrong, behind = parsed_backwards(given)[1:]
    assert (wrong.block, behind.block) == (None, None)
    following = next(blocks)
    assert following.span is None
    assert following.text.startswith(b'2,"in')
    reader.close()


def test_a_file_that_becomes_shorter_ends_there(path: Path) -> None:
    reader = opened(path, "".join(LINES))
    blocks = reader.spans()
    given = late(blocks)
    os.truncate(path, path.read_bytes().index(b"5,the"))
    found = finished(reader, parsed_backwards(given), blocks)
    assert found == [(n, f"the text of row {n}") for n in range(5)]


def test_memory_that_is_refused_keeps_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot read a block ends the run; the blocks behind it hold nothing, since nobody knows whether they count."""
    reader = opened(path, "".join(LINES))
    given = late(reader.spans())[1:]
    span = given[0].span
    assert span is not None

    def refused(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(type(span), "_fill", refused)
        with pytest.raises(MemoryError):
            given[0].parse()
    assert given[1].parse().block is None
    reader.close()


def test_one_long_line_is_left_to_who_cuts_one_block_after_the_other(path: Path) -> None:
    long = "long " * BLOCK
    reader = opened(path, "".join(LINES) + f"30,{long}\n" + "".join(LINES))
    with ThreadPoolExecutor(2) as pool:
        blocks = list[Any]()
        for each in reader.spans():
            blocks.append((each.span is not None, pool.submit(each.parse)))
    kinds = [late for late, _ in blocks[1:]]
    assert kinds == sorted(kinds, reverse=True)
    assert {True, False} == set(kinds)
    assert len([row for _, each in blocks for row in rows(reader, each.result())]) == 61
    reader.close()
