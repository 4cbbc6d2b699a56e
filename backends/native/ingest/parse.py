"""A block parsed: by native code, and row by row by the general reader where that leaves rows."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, Protocol

from backends.native import pages
from backends.native.batch import Batch
from backends.native.ingest.memory import address
from river.classes import define, evolve, field, frozen
from river.io import delimited
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backends.native.ingest.code import Parser
    from backends.native.ingest.form import Form
    from backends.native.ingest.memory import Lease
    from backends.native.strips import Halt, StripLoop
    from river.io.batches import RowReader
    from river.io.errors import RowError

EDGE: Final = 64
"""Bytes before and behind a block that may be read."""

_DOUBTS: Final = 256  # rows that are left to the general reader at a time
_ALIGNED: Final = 64
_NAMES: Final = 2 * 256  # words for the names of members that are skipped (`ingest_json.rt`)
_PARSE: Final = (ctypes.c_void_p,)
_END: Final = (ctypes.c_void_p, ctypes.c_int64)
_SCATTER: Final = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_libc: Final = ctypes.CDLL(None)
_libc.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
_libc.memchr.restype = ctypes.c_void_p
_COMPACT: Final = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@frozen
class Segment:
    """Consecutive rows; `(n, e)` of `errors` says that `e` stood before row `n`."""

    batch: Batch
    errors: tuple[tuple[int, RowError], ...] = ()


def until_error(segments: Sequence[Segment]) -> Sequence[Segment]:
    """What comes before the first error, and that."""
    for number, segment in enumerate(segments):
        if segment.errors:
            position, _ = segment.errors[0]
            last = evolve(segment, batch=segment.batch[:position], errors=segment.errors[:1])
            return [*segments[:number], last]
    return segments


def words(parser: Parser, data: bytearray, start: int, stop: int) -> Any:
    """The record `Ingest` for the bytes from `start` to `stop`, the last a line feed."""
    found = (ctypes.c_int64 * parser.count)()
    found[parser.words["data"]] = address(data) + start
    found[parser.words["end"]] = stop - start
    found[parser.words["limit"]] = delimited.MOST
    return found


def quoted(data: bytearray, start: int, stop: int) -> bool:
    """Whether a quote is between `start` and `stop`. The C library looks for one in a third of the time that a cut takes."""
    return _libc.memchr(address(data) + start, ord('"'), stop - start) is not None


def cut(parser: Parser, data: bytearray, start: int, fill: int) -> int:
    """How far it is known between `start` and `fill` where records begin: up to one that may go on behind `fill`.

    Byte `fill` is changed.
    """
    found = cut_of_good(parser, data, start, fill)
    return start + _cut("ingest_cut_slowly", parser, data, start, fill) if found is None else found


def cut_of_good(parser: Parser, data: bytearray, start: int, fill: int) -> int | None:
    """The same; None if there are quotes that do not close as they should, or there may be."""
    found = _cut("ingest_cut", parser, data, start, fill)
    return None if found < 0 else start + found


def _cut(name: str, parser: Parser, data: bytearray, start: int, fill: int) -> int:
    data[fill] = ord("\n")
    state = words(parser, data, start, fill + 1)
    return parser.code.function(name, _PARSE, ctypes.c_int64)(ctypes.addressof(state))


def record_end(parser: Parser, data: bytearray, start: int, stop: int) -> int:
    """Where the first record between `start` and `stop` ends; the last byte is a line feed."""
    state = words(parser, data, start, stop)
    end = parser.code.function("ingest_record_end", _END, ctypes.c_int64)
    return start + end(ctypes.addressof(state), 0)


def parts(parser: Parser, data: bytearray, start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Parts of `size` bytes or a few more, but the last, between `start` and `stop`, where in each a record begins."""
    border = parser.code.function("ingest_border", _END, ctypes.c_int64)
    while stop - start > 2 * size:
        state = words(parser, data, start, stop)
        end = start + border(ctypes.addressof(state), size)
        yield start, end
        start = end
    if stop > start:
        yield start, stop


@define(eq=False)
class _Left:
    """Rows that were left to the general reader: its items and their rows, the rows that are none, and why."""

    items: list[Any] = field(factory=list[Any])
    taken: list[int] = field(factory=list[int])
    gone: list[int] = field(factory=list[int])
    errors: list[tuple[int, RowError]] = field(factory=list["tuple[int, RowError]"])


@define(eq=False)
class GivenColumns:
    """Columns that have one value in all rows, those of the fields of `one`: a batch of one row."""

    one: Batch
    _made: Batch | None = field(default=None, init=False)

    @staticmethod
    def of(type_: t.Type, given: Mapping[str, Any]) -> GivenColumns:
        """The columns of the fields that are `given`."""
        fields = type_.fields if isinstance(type_, t.Record) else ()
        stated = tuple(each for each in fields if each[0] in given)
        return GivenColumns(Batch.of(t.Record(stated), [tuple(given[name] for name, _ in stated)]))

    def columns(self, rows: int, lease: Lease) -> list[int]:
        """Where they lie, of so many rows at least, for as long as `lease` is held."""
        found = self._made
        if found is None or len(found) < rows:
            self._made = found = self.one.repeated(rows)
        lease.others.append(found)
        return list(found.addresses)


class Strips(Protocol):
    """Who fires on rows as soon as they are parsed: on the first `columns`, of so many rows as there is `room` for."""

    columns: Sequence[int]
    room: int
    loop: StripLoop

    def finish(self, halt: Halt, rows: int) -> None:
        """Fires on the rest of a strip of so many rows, of which the loop did not fire on all. Raises: Trap."""
        ...

    def fire(self, batch: Batch) -> None:
        """Fires on rows of which some were left to the general reader. Raises: Trap."""
        ...


def columns_for(parser: Parser, given: GivenColumns | None, lease: Lease, room: int) -> list[int]:
    """Columns for so many rows, for as long as `lease` is held; what nobody reads is zero."""
    used = parser.live
    known = iter(() if given is None else given.columns(room, lease))
    spaces = [-(-size * room // _ALIGNED) * _ALIGNED for size in parser.sizes]
    at = address(lease.take(sum(compress(spaces, used)) + _ALIGNED))
    zeros = 0
    if not all(used):
        lease.others.append(nothing := pages.zeros(max(spaces)))
        zeros = address(nothing)
    addresses: list[int] = []
    for space, wanted, stated in zip(spaces, used, parser.stated, strict=True):
        addresses.append(next(known) if stated else at if wanted else zeros)
        at += space if wanted else 0
    return addresses


@define(eq=False)
class Parse:
    """One block while it is parsed. `expected`: rows per byte; `follow`: see `Reader`.

    `most`: it is parsed no further than about so many bad rows, and `stop` is then where it goes on; None: to its end.
    `given`: the columns that the file does not have.
    """

    form: Form
    parser: Parser
    general: RowReader
    lease: Lease
    data: bytearray
    start: int
    stop: int
    expected: float
    follow: bytearray
    most: int | None = None
    given: GivenColumns | None = None
    segments: list[Segment] = field(factory=list[Segment])
    rows: int = 0
    bad: int = 0
    _doubts: Any = field(factory=ctypes.c_int64 * (4 * _DOUBTS), init=False)

    def run(self, *, header: bool = False, strips: Strips | None = None) -> int:
        """Parses it; how many lines there are. `header`: the first record is none of the rows.

        Rows go to `segments`. With `strips` they are fired on at once, and only what was wrong goes there.
        """
        at = self.parser.words
        state = words(self.parser, self.data, self.start, self.stop)
        size = self.stop - self.start
        names = (ctypes.c_int64 * _NAMES)()
        state[at["doubts"]], state[at["most"]] = ctypes.addressof(self._doubts), _DOUBTS
        state[at["names"]] = ctypes.addressof(names)
        state[at["side"]] = address(self.lease.take(size + EDGE))
        state[at["follow"]] = address(self.follow)
        if header:
            end = self.parser.code.function("ingest_record_end", _END, ctypes.c_int64)
            state[at["at"]] = end(ctypes.addressof(state), 0)
            state[at["line"]] = 1
        if strips is None:
            self._in_segments(state, size)
        else:
            self._in_strips(state, size, strips)
        self.stop = self.start + state[at["at"]]
        return state[at["line"]] + state[at["inner"]]

    def _in_segments(self, state: Any, size: int) -> None:
        """Parses as many rows at a time as there will be, about."""
        at, here = self.parser.words, ctypes.addressof(state)
        parse = self.parser.code.function("ingest_parse", _PARSE)
        room = 32
        while state[at["at"]] < size and not self._full:
            left = size - state[at["at"]]
            room = min(max(int(left * self.expected * 1.1), 2 * room), left)
            addresses = columns_for(self.parser, self.given, self.lease, room)
            table = (ctypes.c_int64 * (len(addresses) + 1))(*addresses)
            before = state[at["at"]]
            state[at["columns"]], state[at["room"]], state[at["row"]] = ctypes.addressof(table), room, 0
            left_over = _Left()
            while state[at["at"]] < size and state[at["row"]] < room and not self._full:
                state[at["doubt"]] = 0
                parse(here)
                if state[at["doubt"]]:
                    self._leave(state[at["doubt"]], left_over)
            rows = state[at["row"]]
            self.rows += rows
            self.segments.append(self._finished(addresses, rows, left_over, state[at["at"]] - before))

    def _in_strips(self, state: Any, size: int, strips: Strips) -> None:
        """Parses a few rows at a time, which lie where the last ones did: nobody keeps them."""
        at, addresses = self.parser.words, strips.columns
        table = (ctypes.c_int64 * (len(addresses) + 1))(*addresses)
        state[at["columns"]], state[at["room"]] = ctypes.addressof(table), strips.room
        while state[at["at"]] < size and not self._full:
            halt = strips.loop.run(state, size)
            if halt is None:
                break
            rows = state[at["row"]]
            if halt.step is not None:
                strips.finish(halt, rows)
                continue
            left_over = _Left()
            self._leave(state[at["doubt"]], left_over)
            segment = self._finished(addresses, rows, left_over, 0)
            strips.fire(segment.batch if self.most is None else until_error([segment])[0].batch)
            if segment.errors:
                none = Batch.of(self.form.type, [])
                self.segments.append(Segment(none, tuple((0, error) for _, error in segment.errors)))
        self.rows = strips.loop.rows

    @property
    def _full(self) -> bool:
        return self.most is not None and self.bad >= self.most

    def _leave(self, count: int, left: _Left) -> None:
        """Has so many rows read by the general reader: each is a row, from where to where, and how many lines before."""
        doubts = [tuple(self._doubts[4 * i : 4 * i + 4]) for i in range(count)]
        texts = [
            self.data[self.start + first : self.start + last].decode("utf-8", "surrogateescape")
            for _, first, last, _ in doubts
        ]
        numbers = [line + 1 for _, _, _, line in doubts]
        found = self.general.rows(texts, numbers)
        known = set(found.lines)
        for (row, _, _, _), number in zip(doubts, numbers, strict=True):
            (left.taken if number in known else left.gone).append(row)
        left.items += found.items
        for _, error in found.errors:
            row = doubts[bisect_right(numbers, error.line) - 1][0]
            left.errors.append((row - bisect_left(left.gone, row), error))
        self.bad += len(found.errors)

    def _finished(self, addresses: Sequence[int], rows: int, left: _Left, size: int) -> Segment:
        """The rows that so many bytes are, without those that are none."""
        self._scatter(addresses, left.items, left.taken)
        self._compact(addresses, left.gone, rows)
        texts = size if self.parser.texts else 0
        batch = Batch(self.form.type, rows - len(left.gone), tuple(addresses), self.lease, texts)
        return Segment(batch, tuple(left.errors))

    def _scatter(self, addresses: Sequence[int], items: Sequence[Any], rows: list[int]) -> None:
        if not rows:
            return
        values = Batch.of(self.form.type, items)
        self.lease.others.append(values)
        scatter = self.parser.code.function("ingest_scatter", _SCATTER)
        places = (ctypes.c_int64 * len(rows))(*rows)
        for to, from_, size, used in zip(
            addresses, values.addresses, self.parser.sizes, self.parser.live, strict=True
        ):
            if used:
                scatter(to, from_, size, ctypes.addressof(places), len(rows))

    def _compact(self, addresses: Sequence[int], gone: list[int], rows: int) -> None:
        if not gone:
            return
        compact = self.parser.code.function("ingest_compact", _COMPACT)
        places = (ctypes.c_int64 * len(gone))(*gone)
        for column, size, used in zip(addresses, self.parser.sizes, self.parser.live, strict=True):
            if used:
                compact(column, size, ctypes.addressof(places), len(gone), rows)
