"""Files as blocks of whole records, blocks as columns, columns in order as batches (runtime.md 2.4).

`blocks` is cheap and sequential, and so is `spans`; `RecordBlock.parse` does the work and may run on any thread, `deliver` takes
what was parsed, in the order of the blocks. The rules are those of the general readers (`river.io`): a row that the native parser
leaves is read by them, and so is the rest of a file from a line on that is longer than `LARGEST`.
"""

from __future__ import annotations

import io
import zlib
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import is_number
from backends.native.ingest.code import Parser, parser
from backends.native.ingest.delivery import Delivery
from backends.native.ingest.form import Form, covered, guesses
from backends.native.ingest.memory import BufferPool, Lease
from backends.native.ingest.parse import EDGE, GivenColumns, Parse, Segment, Strips, cut, parts
from backends.native.ingest.spans import POSSIBLE, Span, Spans
from river.classes import define, evolve, field, frozen
from river.diagnostics import Rejected
from river.io.delimited import CellTable
from river.io.errors import unreadable
from river.io.given import Filled
from river.io.schema import columns
from river.io.sources import unpacked
from river.io.text import CHUNK, UTF16, blocks, utf16

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.native.batch import Batch
    from river.io.batches import Batch as General
    from river.io.batches import FileInput, ItemSource
    from river.io.order import Ordering

BLOCK: Final = 1 << 20
LARGEST: Final = 1 << 22
"""Bytes of a block; of the longest line that is read natively."""

_SMALLEST: Final = 4
MARK: Final = b"\xef\xbb\xbf"
"""It may begin a text, and says nothing."""


def open_native(
    source: ItemSource,
    batch_rows: int,
    used: frozenset[str] | None = None,
    *,
    block: int = BLOCK,
    largest: int = LARGEST,
) -> Reader | None:
    """A native reader of what `source` would read, which it closes in the end; None if there is none for it.

    `used`: the fields that anybody reads; the columns of the others hold zeros, while their texts are still checked.
    Units: `block` and `largest` bytes.
    """
    form = form_of(source, used)
    if form is None or source.file is None:
        return None
    return Reader(source, source.file, form, max(batch_rows, 1), max(block, _SMALLEST), largest)


def form_of(source: ItemSource, used: frozenset[str] | None = None) -> Form | None:
    """The form of what a source reads, if there is a native reader for it. `used`: as for `open_native`."""
    file = source.file
    if file is None:
        return None
    rules, given = file.reader, frozenset[str]()
    if isinstance(rules, Filled):
        rules, given = rules.inner, frozenset(rules.given)
    table = rules if isinstance(rules, CellTable) else None
    width, places = (table.width, tuple(table.places)) if table else (0, ())
    form = Form(file.format, file.type, used if used is None else used | _keys(file), width, places, given)
    if not covered(form) or (file.key is not None and not is_number(columns(file.type)[file.key][1])):
        return None
    if file.key is not None and file.lateness:
        from backends.native.ingest.lateness import may_wait

        if not may_wait(file.type, file.key):
            return None
    return form


def _keys(file: FileInput) -> frozenset[str]:
    return frozenset() if file.key is None else frozenset({columns(file.type)[file.key][0]})


@frozen
class Parsed:
    """What a block holds: rows in order, how many lines they took; or why the file ends here, or what follows in it.

    `last`: no rows come after these.
    """

    segments: tuple[Segment, ...] = ()
    lines: int = 0
    block: RecordBlock | None = None
    failure: Rejected | None = None
    rest: bytes | None = None
    last: bool = False


@frozen(eq=False)
class RecordBlock:
    """Whole records: the bytes from `start` to `stop` of `data`, the last a line feed; or the end of the file as in `Parsed`.

    `place`: of the first byte in the file. `span`: what is still to be read, in place of all this.
    """

    reader: Reader
    lease: Lease
    data: bytearray = field(repr=False)
    start: int = 0
    stop: int = 0
    header: bool = False
    failure: Rejected | None = None
    rest: bytes | None = field(default=None, repr=False)
    place: int = 0
    last: bool = False
    span: Span | None = None

    @property
    def text(self) -> bytes:
        """The records."""
        return bytes(memoryview(self.data)[self.start : self.stop])

    def parse(self, strips: Strips | None = None) -> Parsed:
        """The rows as columns; on any thread. Errors wait for `Reader.deliver`. `strips`: see `Parse.run`."""
        if self.span is not None:
            found = self.span.read()
            if found is None:
                return Parsed()
            return RecordBlock(self.reader, *found[:2], EDGE, found[2]).parse(strips)
        if self.failure is not None or self.rest is not None or self.last:
            return Parsed(failure=self.failure, rest=self.rest, last=self.last)
        reader = self.reader
        lease = Lease(reader.pool)
        lease.others.append(self.lease)
        task = Parse(
            reader.form, reader.parser, reader.file.reader, lease, self.data, self.start, self.stop, reader.expected,
            bytearray(reader.follow), 1 if reader.file.refusals.stops else None, reader.given,
        )  # fmt: skip
        lines = task.run(header=self.header, strips=strips)
        reader.expected, reader.follow = task.rows / (task.stop - task.start), bytes(task.follow)
        return Parsed(tuple(task.segments), lines, self)


@define(eq=False)
class _Bytes:
    """The bytes of a file, until they end or fail; `left`: how many are wanted at most."""

    file: Any
    stream: Any
    left: float = inf
    waiting: bytes = b""
    ended: bool = False
    failure: Exception | None = None

    def fill(self, data: bytearray, at: int, end: int) -> int:
        """Reads into `data` from `at` to `end`, or to the end of the file; how far it came."""
        try:
            while at < end and not self.ended:
                at += self._some(data, at, end)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            self.failure = error
        return at

    def _some(self, data: bytearray, at: int, end: int) -> int:
        if self.stream is self.file:
            with memoryview(data) as whole, whole[at : int(min(end, at + self.left))] as part:
                count = self.file.readinto(part) if part else 0
            self.left -= count
            self.ended = not count
            return count
        if not self.waiting:
            self.waiting = self.read(CHUNK)
            self.ended = not self.waiting
        part, self.waiting = self.waiting[: end - at], self.waiting[end - at :]
        data[at : at + len(part)] = part
        return len(part)

    def read(self, size: int) -> bytes:
        """Some bytes as they come; none at the end."""
        if self.waiting:
            waiting, self.waiting = self.waiting, b""
            return waiting
        found = (getattr(self.stream, "read1", None) or self.stream.read)(int(min(size, self.left)))
        self.left -= len(found)
        return found

    def close(self) -> None:
        self.stream.close()
        self.file.close()


@define(eq=False)
class Rest:
    """Bytes at hand and then those that `following` reads, as `text.blocks` wants them."""

    parts: list[bytes]
    following: Callable[[int], bytes]

    def read1(self, size: int) -> bytes:
        """Some bytes; none at the end."""
        return self.parts.pop(0) if self.parts else self.following(size)


@define(eq=False)
class Reader:
    """A file that is read natively, once; `close` may be called early.

    `ordering`: of a file whose rows must ascend by a field; `expected`: rows per byte, as seen last; `follow`: of each
    record which field came after which, which came first, which after a member that is no field. `ends`: rows that wait are
    given out at its end.
    """

    source: ItemSource
    file: FileInput
    form: Form
    batch_rows: int
    block: int
    largest: int
    lines: int = 0
    expected: float = 1 / 32
    follow: bytes = field(init=False, repr=False)
    parser: Parser = field(init=False, repr=False)
    pool: BufferPool = field(factory=BufferPool, repr=False)
    ordering: Ordering | None = field(init=False, repr=False)
    given: GivenColumns | None = field(init=False, repr=False)
    _delivery: Delivery = field(init=False, repr=False)
    _bytes: _Bytes | None = field(default=None, init=False, repr=False)
    ends: bool = field(default=True, init=False)
    _place: int = field(default=0, init=False, repr=False)
    _stop: int | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.parser = parser(self.form)
        key = self.file.key
        late = self.file.lateness
        self.ordering = None
        if key is not None:
            from river.io.order import Ordering

            self.ordering = Ordering(self.form.type, key, late, self.file.origin)
        self._delivery = Delivery(self.form.type, self.file.refusals, self.ordering)
        self.follow = guesses(self.form)
        rules = self.file.reader
        self.given = GivenColumns.of(self.form.type, rules.given) if isinstance(rules, Filled) else None

    def begin(self, place: int, lines: int, given: int | None, stop: int | None = None) -> None:
        """Reads from a place where a record begins, behind so many lines, and items up to key `given`.

        `stop`: another such place, where the rows end; of a file that is not packed.
        """
        self._place, self._stop, self.lines = place, stop, lines
        if self.ordering is not None:
            self.ordering.top = self.ordering.given = given

    def deliver_by(self, delivery: Delivery) -> None:
        """Its rows go where those of other files wait, too; after its end there are more."""
        self.ordering, self._delivery, self.ends = delivery.ordering, delivery, False

    def blocks(self) -> Iterator[RecordBlock]:
        """The file as blocks. A failure to read is a block too, the last."""
        try:
            file = Path(self.file.path).open("rb", buffering=-1 if self.file.packed else 0)  # noqa: SIM115 - `close` does
        except OSError as error:
            yield self._failed(error)
            return
        self._bytes = bytes_ = _Bytes(file, unpacked(file, self.file.packed))
        if self._stop is not None:
            bytes_.left = self._stop - self._place
        yield from self._blocks_from(self._place, bytes_)

    def spans(self) -> Iterator[RecordBlock]:
        """The file as blocks for several threads that parse: most are read only then, and are to be parsed, all of them."""
        blocks = self.blocks()
        first = next(blocks, None)
        if first is None:
            return
        yield first
        bytes_ = self._bytes
        if bytes_ is None or not self._divides(first, bytes_):
            yield from blocks
            return
        spans = Spans(bytes_.file.fileno(), self.block, self.form, self.parser, self.pool)
        for span in spans.cut(self._place + first.stop - EDGE):
            yield RecordBlock(self, Lease(self.pool), bytearray(), span=span)
        yield from self._blocks_from(spans.rest(), bytes_)

    def _divides(self, first: RecordBlock, bytes_: _Bytes) -> bool:
        """Whether what comes behind the first block can be read by several threads."""
        whole = first.failure is None and first.rest is None and not first.last
        goes_on = not bytes_.ended and bytes_.failure is None
        return POSSIBLE and whole and goes_on and self._stop is None and not self.file.packed

    def _blocks_from(self, place: int, bytes_: _Bytes) -> Iterator[RecordBlock]:
        """The file as blocks, from a place on where a record begins."""
        bytes_.file.seek(place)
        rest, first, header = b"", not place, not place and self.form.headed
        while not bytes_.ended:
            lease = Lease(self.pool)
            size = max(self.block, min(len(rest), LARGEST))
            data = lease.take(len(rest) + size + 2 * EDGE)
            data[EDGE : EDGE + len(rest)] = rest
            fill = bytes_.fill(data, EDGE + len(rest), EDGE + len(rest) + size)
            start = EDGE
            if first and data.startswith(UTF16, start, fill):
                yield RecordBlock(self, lease, bytearray(), failure=utf16(self.file.path))
                return
            if first and data.startswith(MARK, start, fill):
                start += len(MARK)
            first = False
            if bytes_.ended and fill > start and data[fill - 1] != ord("\n"):
                data[fill] = ord("\n")
                fill += 1
            stop = fill if bytes_.ended else self._cut(data, start, fill)
            for begin, end in self._parts(data, start, stop):
                behind = 0 if begin == start else begin - EDGE
                yield RecordBlock(self, lease, data, begin, end, header, place=place + behind)
                header = False
            place += stop - EDGE
            rest = bytes(memoryview(data)[stop:fill])
            if bytes_.failure is not None:
                yield self._failed(bytes_.failure)
                return
            if len(rest) - rest.rfind(b"\n") > self.largest:
                yield RecordBlock(self, lease, data, rest=rest, last=True)
                return
        if self._delivery.waits and self.ends:
            yield RecordBlock(self, Lease(self.pool), bytearray(), last=True)

    def _cut(self, data: bytearray, start: int, fill: int) -> int:
        """How far it is known where records begin."""
        if self.form.delimited and data.find(b'"', start, fill) >= 0:
            return cut(self.parser, data, start, fill)
        return max(data.rfind(b"\n", start, fill) + 1, start)

    def _parts(self, data: bytearray, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Whole records as blocks: what a quote kept open for long, in vain, is more than one."""
        if self.form.delimited:
            return parts(self.parser, data, start, stop, self.block)
        return iter([(start, stop)] if stop > start else [])

    def _failed(self, error: Exception) -> RecordBlock:
        failure = Rejected([unreadable(self.file.path, error)])
        failure.__cause__ = error
        return RecordBlock(self, Lease(self.pool), bytearray(), failure=failure)

    def deliver(self, parsed: Parsed) -> Iterator[Batch]:
        """The rows of the next block; refused ones are counted, or end the run after those before them.

        Raises: Rejected, as the general reader does.
        """
        for batch in self.delivered(parsed):
            yield from self._batches(batch)

    def delivered(self, parsed: Parsed) -> Iterator[Batch]:
        """The same in batches of any size.

        Raises: Rejected, as the general reader does.
        """
        before = self.lines
        self.lines += parsed.lines
        block = parsed.block
        if block is not None:
            yield from self._delivery.take(
                parsed.segments, before, lambda: self._general(io.BytesIO(MARK + block.text), before)
            )
        if parsed.failure is not None:
            raise parsed.failure
        if parsed.rest is not None and self._bytes is not None:
            for batch in self._general(Rest([MARK + parsed.rest], self._bytes.read), self.lines):
                yield from self._delivery.general(batch)
        if parsed.last and self.ends:
            yield from self._delivery.release(None)

    def _general(self, text: Any, before: int) -> Iterator[General]:
        """What the general reader makes of a text behind `before` lines; the mark that begins it is no part of it."""
        made = self.file.reader.rest(blocks(text, self.file.path, self.file.size, before), before)
        return (evolve(batch, origin=self.file.origin) for batch in made)

    def _batches(self, batch: Batch) -> Iterator[Batch]:
        """Rows of a batch, so many at a time."""
        for first in range(0, batch.rows, self.batch_rows):
            yield batch[first : first + self.batch_rows]

    def close(self) -> None:
        """Releases the file and the source."""
        if self._bytes is not None:
            self._bytes.close()
        self.source.close()

    def __iter__(self) -> Iterator[Batch]:
        """All batches, read on this thread; the file is closed at the end."""
        try:
            for block in self.blocks():
                yield from self.deliver(block.parse())
        finally:
            self.close()
