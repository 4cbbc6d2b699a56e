"""Texts that arrive, as columns: what has come is cut behind its last whole record and parsed at once, however little it is.

A text is parsed in the thread that reads it, and put in order where it is taken. The rules are those of the general readers,
which read the rows that the parser leaves, and the rest of a text from a line on that is too long.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch, concat, is_number
from backends.native.ingest.code import parser
from backends.native.ingest.delivery import Delivery
from backends.native.ingest.form import Form, covered, guesses
from backends.native.ingest.lateness import may_wait
from backends.native.ingest.memory import BufferPool, Lease
from backends.native.ingest.parse import EDGE, Parse, Segment, cut, cut_of_good, parts, record_end
from backends.native.ingest.reader import BLOCK, LARGEST, MARK, Rest
from river.classes import define, evolve, field, frozen
from river.diagnostics import Rejected
from river.ingress.taking import of_senders
from river.io import delimited
from river.io.batches import Batch as General
from river.io.delimited import CellTable, waiting
from river.io.schema import columns
from river.io.sources import STREAMED, read_text
from river.io.text import CHUNK, blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.native.ingest.code import Parser
    from river.io.batches import Origin, RowReader
    from river.io.live import Arriving
    from river.io.live.streams import TextStream
    from river.io.live.texts import Entry

_BAD: Final = 4096
"""Bad rows of a block, about: what is said of each is an object, and every sender may have a block of them."""

_FORMS: Final = 16
"""Headers of an input for which code is made: whoever sends could have as many as they like."""


def read_natively(
    arriving: Arriving,
    key: int | None,
    batch_rows: int,
    used: frozenset[str] | None = None,
    *,
    largest: int = LARGEST,
) -> bool:
    """Has the texts of a live input read natively, if it has any and there can be parsers for them; whether that is so.

    `key`: the field that must ascend; `used`, `largest`: as for `open_native`.
    """
    texts = arriving.texts
    if texts is None:
        return False
    fields = columns(texts.type)
    if key is not None:
        if not is_number(fields[key][1]) or (arriving.live.lateness > 0 and not may_wait(texts.type, key)):
            return False
        used = used if used is None else used | {fields[key][0]}
    formats = STREAMED if texts.format is None else (texts.format,)
    if not any(covered(Form(each, texts.type, used)) for each in formats):
        return False
    if texts.format in ("jsonl", "text", "lines"):  # of others the header must be known
        parser(Form(texts.format, texts.type, used))
    stops = arriving.source.refusals.stops
    reader = _Reader(texts.type, used, texts.size, largest, 1 if stops else _BAD, stops)
    texts.read = reader.read
    arriving.taker = lambda ordering: _Taker(
        Delivery(texts.type, arriving.source.refusals, ordering), batch_rows
    )
    return True


@frozen(eq=False)
class _Block:
    """Whole records, parsed. `line`: how many lines of the text come before them."""

    text: _Text
    segments: tuple[Segment, ...]
    data: memoryview = field(repr=False)
    line: int

    @property
    def size(self) -> int:
        """Rows, bad ones included."""
        return sum(segment.batch.rows + len(segment.errors) for segment in self.segments)

    @property
    def origin(self) -> Origin:
        """Where it comes from."""
        return self.text.origin

    def again(self) -> Iterator[General]:
        """What the general reader makes of it."""
        return self.text.general(io.BytesIO(MARK + self.data), self.line)


@frozen(eq=False)
class _Taker:
    """Gives out what was parsed, at most `rows` together unless they came together. See `river.ingress.taking`."""

    delivery: Delivery
    rows: int

    def take(self, entries: list[_Block | General]) -> Iterator[Batch]:
        """See there."""
        found: list[Batch] = []
        rows = 0
        failure = None
        try:
            for batch in self._delivered(entries):
                if found and rows + batch.rows > self.rows:
                    yield concat(found)
                    found, rows = [], 0
                if batch.rows:
                    found.append(batch)
                    rows += batch.rows
        except Rejected as rejected:
            failure = rejected
        if found:
            yield concat(found)
        if failure is not None:
            raise failure

    def _delivered(self, entries: list[_Block | General]) -> Iterator[Batch]:
        return of_senders(entries, lambda entry: entry.origin, self._given)

    def _given(self, entry: _Block | General) -> Iterator[Batch]:
        if isinstance(entry, General):
            return self.delivery.general(entry)
        return self.delivery.take(entry.segments, entry.line, entry.again)

    def release(self, bound: int | None) -> Iterator[Batch]:
        """See there."""
        for batch in self.delivery.release(bound):
            if batch.rows:
                yield batch


@define(eq=False)
class _Reader:
    """Reads the texts of an input, several at a time if need be; `bad`: rows of a block, `stops`: such a row ends a text."""

    type: Any
    used: frozenset[str] | None
    size: int
    largest: int
    bad: int
    stops: bool
    pool: BufferPool = field(factory=BufferPool)
    _forms: set[Form] = field(factory=set[Form])

    def read(self, stream: TextStream, kind: str, origin: Origin) -> Iterator[Entry]:
        """What comes of a text, as it comes. Raises: Rejected; Stopped."""
        begun = _Begun(stream)
        general, batches = read_text(begun, kind, self.type, origin, self.size)
        form = self._form(kind, general)
        seen = begun.taken()
        if form is not None:
            text = _Text(self, form, parser(form), general, origin)
            with stream.leaving(lambda: text.waiting):
                yield from text.entries(seen, stream, ended=begun.ended)
            return
        with stream.leaving(lambda: waiting(general)):
            for batch in batches:
                yield evolve(batch, origin=origin), _size(batch)

    def _form(self, kind: str, general: RowReader) -> Form | None:
        """The form of a text, if there is a parser for it."""
        table = general if isinstance(general, CellTable) else None
        width, places = (table.width, tuple(table.places)) if table else (0, ())
        form = Form(kind, self.type, self.used, width, places)
        if not covered(form) or (len(self._forms) >= _FORMS and form not in self._forms):
            return None
        self._forms.add(form)
        return form


@define(eq=False)
class _Begun:
    """A text of which the header is read: what is read is remembered. `ended`: it was all."""

    stream: TextStream
    ended: bool = False
    _seen: list[bytes] | None = field(factory=list[bytes])

    def read1(self, size: int) -> bytes:
        """The next bytes."""
        data = self.stream.read1(size)
        self.ended = not data
        if self._seen is not None:
            self._seen.append(data)
        return data

    def taken(self) -> bytes:
        """All that was read."""
        seen, self._seen = self._seen or [], None
        return b"".join(seen)


@define(eq=False)
class _Text:
    """One text while it is read: `lines` of it have been parsed.

    `_seen`: so many bytes of what is left are known to be one record, which a quote keeps open there. `_over`: nothing that
    follows counts. `_expected`, `_follow`: as in `Reader`.
    """

    reader: _Reader
    form: Form
    parser: Parser
    rows: RowReader
    origin: Origin
    lines: int = 0
    _seen: int = 0
    _first: bool = True
    _over: bool = False
    _expected: float = 1 / 32
    _follow: bytearray = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._follow = bytearray(guesses(self.form))

    @property
    def waiting(self) -> int:
        """Bytes of the record that a quote keeps open: its whole lines."""
        return self._seen or waiting(self.rows)

    def entries(self, begun: bytes, stream: TextStream, *, ended: bool) -> Iterator[Entry]:
        """The text, of which `begun` has been read: the header, if it has one."""
        rest = bytearray()
        line = 0  # where in `rest` the last line begins, which has no end yet
        if self.form.delimited:
            while (
                len(begun) < len(MARK) and MARK.startswith(begun) and not ended
            ):  # nothing of it was looked at
                more = stream.read1(CHUNK)
                begun, ended = begun + more, not more
            begun = begun.removeprefix(MARK)
        chunk = begun or (b"" if ended else stream.read1(CHUNK))
        while chunk:
            before = len(rest)
            rest += chunk
            last = rest.rfind(b"\n", before) + 1
            line = last or line
            stop = self._cut(rest, last) if last else 0
            if stop:
                yield from self._parsed(rest, stop)
                if self._over:
                    self._seen = 0
                    rest.clear()
                    while not ended and stream.read1(CHUNK):
                        pass  # whoever takes the row that is bad ends the text, or the run
                    return
                del rest[:stop]
                line -= stop
            if len(rest) - line > self.reader.largest:
                mark = b"" if self._first and not self.form.delimited else MARK
                self._seen = 0
                following = Rest([mark + rest], (lambda _: b"") if ended else stream.read1)
                for batch in self.general(following, self.lines):
                    yield batch, _size(batch)
                return
            chunk = b"" if ended else stream.read1(CHUNK)
        if rest:
            rest += b"" if rest.endswith(b"\n") else b"\n"
            yield from self._parsed(rest, len(rest))

    def _cut(self, rest: bytearray, last: int) -> int:
        """How far it is known where records begin, which is at or before `last`, the end of the last line."""
        seen = self._seen
        if not self.form.delimited or rest.find(b'"', seen, last) < 0:
            end = 0 if seen else last
        elif not seen:
            end = self._cut_by(cut, rest[:last])
        else:
            # What was seen need not be seen again: behind it the quote is still open.
            end = self._cut_by(cut_of_good, b'"' + rest[seen:last])
            end = end + seen - 1 if end else end
        if end is None or (seen and last > delimited.MOST):  # the record has failed, or may have
            end = self._cut_by(cut, rest[:last])
        stop = end or 0
        self._seen = last - stop
        return stop

    def _cut_by(
        self, way: Callable[[Parser, bytearray, int, int], int | None], part: bytes | bytearray
    ) -> int | None:
        """What `way` finds, from the beginning of `part` on."""
        lease = Lease(self.reader.pool)
        data = lease.take(len(part) + 2 * EDGE)
        data[EDGE : EDGE + len(part)] = part
        end = way(self.parser, data, EDGE, EDGE + len(part))
        return end if end is None else end - EDGE

    def _parsed(self, rest: bytearray, stop: int) -> Iterator[Entry]:
        """The records up to `stop`."""
        lease = Lease(self.reader.pool)
        data = lease.take(stop + 2 * EDGE)
        start, end = EDGE, EDGE + stop
        data[start:end] = rest if stop == len(rest) else rest[:stop]
        if self._first:
            self._first = False
            if self.form.headed:
                header = record_end(self.parser, data, start, end)
                self.lines += data.count(b"\n", start, header)
                start = header
            elif not self.form.delimited and data.startswith(MARK, start, end):
                start += len(MARK)
            if start == end:
                return
        known = self.form.delimited and end - start > BLOCK
        for first, last in parts(self.parser, data, start, end, BLOCK) if known else ((start, end),):
            yield from self._blocks(lease, data, first, last)
            if self._over:
                break

    def _blocks(self, lease: Lease, data: bytearray, start: int, end: int) -> Iterator[Entry]:
        """Whole records, as several blocks if many are bad."""
        while start < end and not self._over:
            own = Lease(self.reader.pool)
            own.others.append(lease)
            task = Parse(
                self.form, self.parser, self.rows, own, data, start, end, self._expected, self._follow, self.reader.bad
            )  # fmt: skip
            line = self.lines
            self.lines += task.run()
            self._expected = task.rows / (task.stop - start)
            block = _Block(self, tuple(task.segments), memoryview(data)[start : task.stop], line)
            self._over = self.reader.stops and task.bad > 0
            yield block, block.size
            start = task.stop

    def general(self, text: Any, line: int) -> Iterator[General]:
        """What the general reader makes of a text behind so many lines."""
        label = self.origin.file or self.origin.input
        for batch in self.rows.rest(blocks(text, label, self.reader.size, line), line):
            yield evolve(batch, origin=self.origin)


def _size(batch: General) -> int:
    return len(batch.items) + len(batch.errors)
