"""Native ingest is the general reader, quicker: the same items, the same errors in the same places, whatever the bytes."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backends.native.ingest import open_native
from river.io.errors import SKIP, STOP
from river.io.schema import arrow
from river.io.sources import open_source
from river.lang import types as t
from tests.backends.ingest_files import (
    ALL,
    BLOCKS,
    DAMAGES,
    ENDS,
    FLOATS,
    FOLDER,
    TYPES,
    cell_texts,
    damaged,
    general,
    native,
    same,
)

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("llvmlite")


PIECES = [
    b'"', b'""', b",", b"\t", b"\n", b"\r", b"\r\n", b"a", b"1", b"-", b".", b"e9", b"{", b"}", b":", b'{"a":', b'"b":', b" ",
    b'{"a":1,"b":"x"}\n', b"1,x\n", b"\xff", b"\xf0\x9f", b"\x00", b"\\", b"\\u12", b"12345678", b"x" * 33,
]  # fmt: skip


@pytest.mark.slow
@given(st.data(), st.sampled_from([*ALL, ("l", t.Optional(t.I64)), ("m", t.Optional(t.STRING))]), BLOCKS)
def test_lines_of_text_give_what_the_general_reader_gives(data, field, block):
    _, type_ = field
    lines = data.draw(
        st.lists(st.one_of(cell_texts(type_, usual=True), cell_texts(type_, usual=False)), max_size=8)
    )
    text = "".join(line + data.draw(ENDS) for line in lines)
    if data.draw(st.booleans()):
        text = text.removesuffix("\n")
    same("x.txt", damaged(text.encode(), data.draw(DAMAGES)), type_, block)


@given(st.data(), st.sampled_from(["x.csv", "x.tsv", "x.jsonl", "x.txt", "x.lines"]), BLOCKS)
def test_bytes_of_any_kind_do_no_harm(data, name, block):
    body = data.draw(
        st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join))
    )
    head = {"x.csv": b"a,b\n", "x.tsv": b"a\tb\n"}.get(name, b"")
    type_ = {"x.txt": t.STRING, "x.lines": t.BYTES}.get(name, TYPES["two"])
    same(name, head + body, type_, block, form="lines" if name == "x.lines" else None)


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(FLOATS, st.floats(allow_nan=False).map(lambda x: f"{x:.17e}")), min_size=1, max_size=30
    )
)
@example(
    [
        "9007199254740993",
        "9007199254740992.5",
        "2.2250738585072011e-308",
        "1e23",
        "8.5e22",
        "123456789012345678e-30",
        "0.1e-5",
    ]
)
@example(
    [
        f"{m}e{e}"
        for m in (1, 9007199254740993, 18446744073709551615, 4503599627370497)
        for e in range(-330, 310, 7)
    ]
)
def test_floats_are_the_nearest(texts):
    same("f.txt", "\n".join(texts).encode(), t.F64)
    same("f.jsonl", "\n".join(f'{{"d":{text}}}' for text in texts).encode(), t.Record((("d", t.F64),)))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=30), st.booleans(), BLOCKS, st.booleans()
)
def test_rows_that_go_back_are_refused_in_their_places(rows, ascending, block, lines):
    keys = sorted(key for key, _ in rows) if ascending else [key for key, _ in rows]
    path = FOLDER / ("order.jsonl" if lines else "order.csv")
    texts = [
        ("bad" if bad else f'{{"a":{key},"b":"x"}}') if lines else ("bad" if bad else f'{key},"y\n"')
        for key, (_, bad) in zip(keys, rows, strict=True)
    ]
    path.write_text("".join(text + "\n" for text in ([] if lines else ["a,b"]) + texts))
    for policy in (SKIP, STOP):
        assert native(path, TYPES["two"], policy, block, by="a") == general(
            path, TYPES["two"], policy, by="a"
        )


@pytest.mark.parametrize("size", [3, 50, 300, 4096])
def test_a_record_too_long_to_be_read_natively_leaves_the_rest_to_the_general_reader(size):
    path = FOLDER / "long.csv"
    path.write_text('a,b\n1,x\n2,"' + "y\n" * size + '"\n3,z,\n4,"q"\nx,y\n')
    for policy in (SKIP, STOP):
        found = native(path, TYPES["two"], policy, block=16, largest=64)
        assert found == general(path, TYPES["two"], policy)
    path = FOLDER / "long.jsonl"
    path.write_text('{"a":1,"b":"x"}\n{"a":2,"b":"' + "y" * size + '"}\nnot\n{"a":4,"b":""}')
    for policy in (SKIP, STOP):
        found = native(path, TYPES["two"], policy, block=16, largest=64)
        assert found == general(path, TYPES["two"], policy)


def test_a_line_without_an_end_is_told_with_its_number(monkeypatch):
    monkeypatch.setattr("river.io.text.LONGEST", 1_000)
    path = FOLDER / "endless.txt"
    path.write_text("a\nb\n\n" + "x" * 300_000)
    found = native(path, t.STRING, SKIP, block=16, largest=64)
    assert "line 4 is longer than 1000 characters" in found.rejected[0].message
    assert found.rejected == general(path, t.STRING, SKIP).rejected


def test_the_header_may_be_long_and_have_lines():
    type_ = t.Record((("a\nb", t.I64), ("c" * 500, t.STRING)))
    head = '"a\nb",' + "c" * 500 + "\n"
    for block in (8, 1 << 20):
        same("head.csv", (head + "1,x\nx,y\n2,z\n").encode(), type_, block)
    path = FOLDER / "head.csv"
    assert native(path, type_, SKIP, block=8, largest=100) == general(path, type_, SKIP)


def packed(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(
        gzip.compress(data) if name.endswith(".gz") else arrow().compress(data, "zstd", asbytes=True)
    )
    return path


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_packed_files(suffix):
    text = b"a,b\n" + b"".join(b'%d,"name ""%d"""\n' % (i, i) for i in range(3000)) + b"x,y\n9,z"
    for policy in (SKIP, STOP):
        path = packed(f"p.csv.{suffix}", text)
        assert native(path, TYPES["two"], policy, block=1000) == general(path, TYPES["two"], policy)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] + b"\0\0\0\0" + whole[len(whole) // 2 + 4 :])
        ours, theirs = native(path, TYPES["two"], policy), general(path, TYPES["two"], policy)
        assert (ours.rejected, ours.errors) == (theirs.rejected, theirs.errors)
        assert ours.items == theirs.items
        assert ours.rejected or suffix == "zst"  # which has no check sum here


def test_blocks_are_parsed_on_any_thread_and_delivered_in_order():
    path = FOLDER / "many.jsonl"
    path.write_text("".join(f'{{"a":{i},"b":"number {i}"}}\n' for i in range(20_000)))
    reader = open_native(open_source(path, TYPES["two"], name="in"), 1000, block=5000)
    assert reader is not None
    with ThreadPoolExecutor(2) as pool:
        batches = [
            batch
            for parsed in pool.map(lambda b: b.parse(), reader.blocks())
            for batch in reader.deliver(parsed)
        ]
    reader.close()
    assert [row for batch in batches for row in batch.values()] == [(i, f"number {i}") for i in range(20_000)]


@pytest.mark.parametrize("bad", ["x,y", "+1,y", '1,y"', ""])
def test_a_file_of_rows_that_are_not_as_usual(bad):
    rows = [bad if i % 7 else f"{i},fine" for i in range(3_000)]
    same("bad.csv", "\n".join(["a,b", *rows]).encode(), TYPES["two"], rows=100)
    same("bad.jsonl", "\n".join(rows).encode(), TYPES["two"], rows=100)


def test_what_is_not_covered_has_no_native_reader():
    path = FOLDER / "n.jsonl"
    path.write_text("{}\n")
    for type_ in (t.I64, t.Record((("a", t.List(t.I64)),)), t.Record((("a", t.BYTES),)), t.Record(())):
        source = open_source(path, type_, name="in")
        assert open_native(source, 10) is None
        source.close()
    with path.open("rb") as file:
        assert open_native(open_source(file, TYPES["two"], name="in"), 10) is None
