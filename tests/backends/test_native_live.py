"""Texts that arrive are read natively as the general readers read them, wherever what comes is cut."""

from __future__ import annotations

import os
import threading
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import river
from backends.native.batch import Batch
from backends.native.ingest import arriving as native_texts
from backends.native.ingest.arriving import read_natively
from river.diagnostics import Rejected
from river.ingress.taking import taker_of
from river.io.batches import ItemSource, Origin
from river.io.errors import SKIP, STOP, OnError
from river.io.live import Arriving, Live, arriving
from river.io.live.control import Stopped
from river.io.live.streams import TextStream
from river.io.live.texts import ArrivingTexts
from river.io.order import Ordering
from river.lang import types as t
from tests.backends.ingest_files import (
    DAMAGE,
    JSON_TYPES,
    TYPES,
    Found,
    Recorder,
    csv_files,
    damaged,
    json_files,
    taken,
)
from tests.river import test_live

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.ingress.taking import Taker

NATIVE = (False, True)
SIZE = 3
KEYED = t.Record((("t", t.I64), ("s", t.STRING)))


class Chunks(TextStream):
    """A text that comes in pieces."""

    def __init__(self, live: Live, label: str, chunks: list[bytes]) -> None:
        super().__init__(live, label)
        self.chunks = [chunk for chunk in chunks if chunk]

    def _next(self, size: int) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    """The bytes, cut at these places."""
    cuts = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(cuts)]


def input_of(type_: t.Type, kind: str | None, refusals: Recorder, lateness: int = 0) -> Arriving:
    """An input whose texts somebody else puts."""
    source = ItemSource(type_, Origin("in", "all"), (), refusals)
    texts = ArrivingTexts(type_, "in", SIZE, kind)
    return Arriving(source, Live(lateness=lateness), lambda _: None, texts=texts)


def ordering_of(live: Arriving, key: int | None) -> Ordering | None:
    lateness = live.live.lateness
    return None if key is None else Ordering(live.source.type, key, lateness, live.source.origin)


def rows_of(items: Any) -> list[Any]:
    return items.values() if isinstance(items, Batch) else items


def came(taker: Taker, entries: list[Any]) -> Iterator[list[Any]]:
    for items in taker.take(entries):
        assert len(items)
        yield rows_of(items)


def read(
    kind: str,
    texts: list[list[bytes]],
    type_: t.Type,
    policy: OnError,
    *,
    native: bool,
    key: int | None = None,
    lateness: int = 0,
    together: int = 1,
    batch: int = 1 << 16,
    **more: Any,
) -> Found:
    """All texts, one after the other; so many entries are taken at a time."""

    def batches(refusals: Recorder) -> Iterator[list[Any]]:
        found = input_of(type_, kind, refusals, lateness)
        if native:
            assert read_natively(found, key, batch, **more)
        taker = taker_of(found, ordering_of(found, key))
        assert found.texts is not None
        arrived: list[Any] = []
        failure = None
        try:
            for i, chunks in enumerate(texts):
                stream = Chunks(found.live, f"text {i}", chunks)
                if stream.begins():
                    entries = found.texts.read(stream, kind, Origin("in", stream.label))
                    arrived += [entry for entry, _ in entries]
        except Rejected as rejected:  # of a header; what came before it is taken
            failure = rejected
        for start in range(0, len(arrived), together):
            yield from came(taker, arrived[start : start + together])
        if failure is not None:
            raise failure
        for items in taker.release(None):
            yield rows_of(items)

    return taken(policy, batches)  # pyright: ignore[reportArgumentType]


def same(kind: str, texts: list[list[bytes]], type_: t.Type, **more: Any) -> None:
    for policy in (SKIP, STOP):
        found = read(kind, texts, type_, policy, native=True, **more)
        more.pop("largest", None)
        assert found == read(kind, texts, type_, policy, native=False, **more)


PLACES = st.lists(st.integers(0, 1 << 20), max_size=12)
TOGETHER = st.sampled_from([1, 2, 100])
LARGEST = st.sampled_from([20, 1 << 22])


@pytest.mark.some(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "texts", "all"])
def test_csv_cut_anywhere(name):
    type_ = TYPES[name]

    @given(csv_files(type_), PLACES, PLACES, TOGETHER, LARGEST)
    @settings(max_examples=15)
    def check(data, places, others, together, largest):
        texts = [pieces(data, places), pieces(data, others)]
        same("csv", texts, type_, together=together, largest=largest)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "nested", "optional"])
def test_json_cut_anywhere(name):
    type_ = JSON_TYPES[name]

    @given(json_files(type_), PLACES, PLACES, TOGETHER, LARGEST)
    @settings(max_examples=15)
    def check(data, places, others, together, largest):
        texts = [pieces(data, places), pieces(data, others)]
        same("jsonl", texts, type_, together=together, largest=largest)

    check()


@given(st.lists(st.sampled_from(["1", "x", "-7", "", "8\r", "99\r\n", "\xa0"]), max_size=8), PLACES)
@settings(max_examples=40)
def test_lines_of_text_cut_anywhere(lines, places):
    data = "\n".join(lines).encode("latin-1")
    for type_ in (t.I64, t.STRING):
        same("text", [pieces(data, places)], type_)


QUOTED = st.lists(
    st.sampled_from(['"', '""', "a", ",", "\n", "\r\n", "\n1,", '"\n', ',"', "\xff"]), max_size=30
).map("".join)


@given(QUOTED, PLACES, LARGEST)
@example('1,"a\n""b""\n', [3, 8, 9, 10, 11, 12, 13, 14, 15], 1 << 22)
@example('1,"a\n"x\n2,b\n', [9, 10], 20)
@settings(max_examples=40)
def test_quotes_cut_anywhere(text, places, largest):
    data = b"a,b\n" + text.encode("latin-1")
    same("csv", [pieces(data, places)], TYPES["two"], largest=largest)
    same("tsv", [pieces(data.replace(b",", b"\t"), places)], TYPES["two"], largest=largest)
    for bare in (data[4:], b"\xef\xbb\xbf" + data[4:]):
        same("csv-noheader", [pieces(bare, places)], TYPES["two"], largest=largest)
    same("csv-types", [pieces(b"i,c20\n" + data[4:], places)], TYPES["two"], largest=largest)


def test_every_byte_alone():
    for head in ("\ufeffb,a\r\n", '\ufeff"b","c\n""d""\ne",a\n'):
        cell = ",?" * (head.count(",") - 1)
        data = (head + f'"x\ny ""z""\nü"{cell},1\n{cell},2\nbad\n"open,3\n').encode()
        for chunks in ([data], [bytes([byte]) for byte in data]):
            same("csv", [chunks], TYPES["two"])
            same("csv", [chunks], TYPES["two"], largest=5)
    data = '\ufeff{"a": 1, "b": "\ufeff"}\n\ufeff{"a": 1, "b": ""}\n'.encode()
    for chunks in ([data], [bytes([byte]) for byte in data]):
        same("jsonl", [chunks], TYPES["two"])


@pytest.mark.parametrize("policy", [STOP, SKIP])
def test_few_bad_rows_are_held_at_a_time(policy, monkeypatch):
    """A quote that is never closed makes a bad row of each line of megabytes."""
    monkeypatch.setattr(native_texts, "_BAD", 300)
    text = [b't,s\n1,"open\n' + b"x\n" * 2000 + b"2,b\n", b"y\n" * 500]
    same("csv", [text], KEYED)
    found = input_of(KEYED, "csv", Recorder(policy))
    assert read_natively(found, None, 1 << 16)
    assert found.texts is not None
    stream = Chunks(found.live, "text", text)
    assert stream.begins()
    entries = [entry for entry, _ in found.texts.read(stream, "csv", Origin("in", "text"))]
    held = [sum(len(segment.errors) for segment in entry.segments) for entry in entries]
    assert max(held) < 300 + 256
    assert (sum(held) == 2501) if policy is SKIP else (len(held) == 1 and not stream.chunks)


@pytest.mark.parametrize("native", NATIVE)
def test_lines_behind_an_open_quote_are_not_left_silently_when_the_run_is_stopped(native):
    class Stopping(Chunks):
        def _next(self, size: int) -> bytes:
            if not self.chunks:
                raise Stopped
            return super()._next(size)

    def remarks(text: bytes) -> list[str]:
        found = input_of(TYPES["two"], "csv", Recorder(SKIP))
        if native:
            assert read_natively(found, None, 10)
        stream = Stopping(found.live, "text", [text])
        assert found.texts is not None
        assert stream.begins()
        with pytest.raises(Stopped):
            list(found.texts.read(stream, "csv", Origin("in", "text")))
        assert {remark.code for remark in found.live.remarks} <= {"data-incomplete"}
        return [remark.message for remark in found.live.remarks]

    assert remarks(b'a,b\n1,"x"\n') == []
    assert remarks(b'a,b\n1,x\n2,"x\n3,y\n') == [
        "the last record has a quote that is open: its 9 bytes were not read"
    ]
    assert remarks(b'a,b\n1,x\n2,"x\n3,y\n4') == [
        "the last line has no end yet: its 1 bytes were not read",
        "the last record has a quote that is open: its 9 bytes were not read",
    ]


ROWS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["x", "a text that lies outside", "", None])))


def text_of(kind: str, rows: list[tuple[int, str | None]]) -> bytes:
    """The rows; None stands for a bad one."""
    if kind == "csv":
        lines = ["t,s", *("bad" if s is None else f'{at},"{s} {i}"' for i, (at, s) in enumerate(rows))]
    else:
        lines = ["bad" if s is None else f'{{"t": {at}, "s": "{s} {i}"}}' for i, (at, s) in enumerate(rows)]
    return "".join(line + "\n" for line in lines).encode()


@given(ROWS, PLACES, st.sampled_from([0, 4, 100, (1 << 63) - 1]), st.booleans(), TOGETHER)
@settings(max_examples=40)
def test_order_and_lateness(rows, places, lateness, ascending, together):
    rows = sorted(rows, key=lambda row: row[0] // (lateness + 1)) if ascending else rows
    for kind in ("csv", "jsonl"):
        texts = [pieces(text_of(kind, rows), places)]
        same(kind, texts, KEYED, key=0, lateness=lateness, together=together, batch=5)


STEPS = st.lists(
    st.tuples(ROWS, st.sampled_from(["go on", "promise", "wall", "silence"]), st.integers(0, 40)), max_size=12
)


@given(STEPS, st.sampled_from([0, 3, 20]))
@example([([(20, "x")], "silence", 0), ([(5, "y"), (25, "z")], "promise", 22), ([(21, "u")], "wall", 24)], 20)
@settings(max_examples=40)
def test_what_was_promised_is_kept(steps, lateness):
    """Time goes on by the clock and by silence, too, and others are told so: the same rows are late."""
    takers: list[Taker] = []
    orders: list[Ordering] = []
    recorders = [Recorder(SKIP), Recorder(SKIP)]
    inputs = [input_of(KEYED, "jsonl", recorder, lateness) for recorder in recorders]
    for native, found in zip(NATIVE, inputs, strict=True):
        if native:
            assert read_natively(found, 0, 100)
        ordering = ordering_of(found, 0)
        assert ordering is not None
        takers.append(taker_of(found, ordering))
        orders.append(ordering)
    for rows, then, key in steps:
        seen: list[list[Any]] = [[], []]
        for out, taker, found, ordering in zip(seen, takers, inputs, orders, strict=True):
            stream = Chunks(found.live, "text", [text_of("jsonl", rows)])
            if stream.begins() and found.texts is not None:
                entries = found.texts.read(stream, "jsonl", Origin("in", "text"))
                for items in taker.take([entry for entry, _ in entries]):
                    out += rows_of(items)
            if then in ("wall", "silence"):
                for items in taker.release(key if then == "wall" else None):
                    out += rows_of(items)
            if then == "promise":
                ordering.promised = max(ordering.promised or 0, key)
        assert seen[0] == seen[1]
        assert orders[0].bound == orders[1].bound
    assert recorders[0].seen == recorders[1].seen


@given(st.lists(st.integers(0, 200), min_size=1, max_size=300), st.integers(1, 150))
@settings(max_examples=15)
def test_rows_that_come_alone_wait_in_order(keys, lateness):
    """Runs of all sizes are merged."""
    lines = [f'{{"t": {key}, "s": "number {i} of a text"}}\n'.encode() for i, key in enumerate(keys)]
    same("jsonl", [lines], KEYED, key=0, lateness=lateness)


def test_code_is_made_for_some_headers_only(monkeypatch):
    monkeypatch.setattr(native_texts, "_FORMS", 2)
    texts = [[b"a,b\n1,x\n"], [b"b,a\nx,2\n"], [b"a,c,b\n3,y,z\n", b"bad\n4,y,z\n"], [b"a,b\n5,x\n"]]
    same("csv", texts, TYPES["two"], together=2)


def test_what_cannot_be_parsed_natively_is_not():
    lists = t.Record((("a", t.List(t.I64)), ("t", t.I64)))
    assert not read_natively(input_of(lists, "jsonl", Recorder(SKIP)), None, 10)
    narrow = t.Record((("t", t.I32), ("s", t.STRING)))
    assert not read_natively(input_of(narrow, "csv", Recorder(SKIP), 3), 0, 10)
    assert read_natively(input_of(narrow, "csv", Recorder(SKIP)), 0, 10)
    rows = arriving(iter([]), KEYED, Live(), name="in", refusals=Recorder(SKIP))
    assert rows is not None
    assert not read_natively(rows, 0, 10)


# ------------------------------------------------------------------------------------------------ files, folders, pipes


class Native(test_live.Reading):
    """What is read of a live input natively."""

    def __init__(self, spec: Any, type_: t.Type = t.STRING, **more: Any) -> None:
        self.taker: Any = None
        super().__init__(spec, type_, **more)

    def prepared(self, found: Arriving) -> None:
        assert read_natively(found, None, 100)
        self.taker = taker_of(found, None)

    def take(self) -> None:
        for items in self.taker.take(self.inbox.take()):
            self.items += rows_of(items)


@pytest.mark.parametrize(
    "test",
    [
        test_live.test_a_file_that_grows,
        test_live.test_a_file_that_is_replaced_is_read_to_its_end,
        test_live.test_a_file_that_gets_shorter_begins_again,
        test_live.test_a_folder,
        test_live.test_files_that_are_there_are_read_in_the_order_of_their_names,
        test_live.test_errors_of_a_folder_name_the_file,
        test_live.test_a_named_pipe,
    ],
)
def test_streams(test, tmp_path, monkeypatch):
    monkeypatch.setattr(test_live, "Reading", Native)
    test(tmp_path)


# ------------------------------------------------------------------------------------------------ runs

PROGRAM = """river 1;
type R = {t: i64, s: string};
input a: R by t; input b: R by t; input c: R;
output o: {t: i64, s: string, n: i64} by t; output p: R;
var $n: i64 = 0;
operator both(x: R by t, y: R by t; $n: i64) -> (z: {t: i64, s: string, n: i64} by t) {
  on merge(x(p), y(q)) {
    if p is p { $n = $n + 1; emit z {t: p.t, s: p.s, n: $n}; }
    if q is q { $n = $n + 2; emit z {t: q.t, s: q.s, n: $n}; }
  }
}
operator same(x: R) -> (y: R) { on x(r) { emit y r; } }
(o, $n) <- both(a, b, $n);
(p) <- same(c);
"""


@cache
def compiled() -> Any:
    return river.compile(PROGRAM, "river")


def fed(chunks: list[bytes]) -> Any:
    """The reading end of a pipe into which somebody writes these."""
    inner, outer = os.pipe()

    def write():
        with os.fdopen(outer, "wb", buffering=0) as file:
            for chunk in chunks:
                try:
                    file.write(chunk)
                except BrokenPipeError:
                    return

    threading.Thread(target=write).start()
    return os.fdopen(inner, "rb")


class Pipe:
    """A file with a name that tells its format."""

    def __init__(self, file: Any, name: str) -> None:
        self.file = file
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


INPUTS = st.tuples(
    ROWS, PLACES, st.sampled_from(["csv", "jsonl"]), st.booleans(), st.lists(DAMAGE, max_size=1)
)


@pytest.mark.slow
@given(st.lists(INPUTS, min_size=3, max_size=3), st.sampled_from([0, 5]))
@settings(max_examples=10)
def test_runs_over_pipes(inputs, lateness):
    """Several inputs, with late and bad rows: the same rows come out, and the same are counted."""
    found = []
    for native in ("on", "off"):
        given_ = {}
        for name, (rows, places, kind, ascending, damage) in zip("abc", inputs, strict=True):
            kept = sorted(rows, key=lambda row: row[0] // 6) if ascending else rows
            data = text_of(kind, kept)
            head = 4 if kind == "csv" else 0
            data = data[:head] + damaged(data[head:], damage)
            given_[name] = Pipe(fed(pieces(data, places)), f"{name}.{kind}")
        try:
            results = compiled().run(given_, lateness=lateness, on_error="skip", native=native, batch=7)
        finally:
            for pipe in given_.values():
                pipe.file.close()
        tables = [results[name].to_pylist() for name in ("o", "p")]
        warned = sorted(map(str, results.warnings))  # which input is told of first is chance
        found.append((tables, warned, results.read))
    assert found[0] == found[1]
