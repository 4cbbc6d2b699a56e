"""A file cut into blocks before it is read, so that whoever parses a block reads it, too.

Where it is read first, one thread at a time does that, and looks for quotes: a fifth of what parsing and counting take, so five
workers could not go on side by side. A line feed is found in the last bytes of a block.
"""

from __future__ import annotations

import os
from threading import Condition
from typing import TYPE_CHECKING, Final

from backends.native.ingest.memory import Lease
from backends.native.ingest.parse import EDGE, cut, quoted
from river.classes import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.native.ingest.code import Parser
    from backends.native.ingest.form import Form
    from backends.native.ingest.memory import BufferPool

POSSIBLE: Final = hasattr(os, "preadv")
"""Whether the system reads from a place of a file into given memory."""

_TAIL: Final = 1 << 14
"""Bytes in which a line feed is looked for at a time."""


@define(eq=False)
class Spans:
    """Blocks of a file that is not packed, each cut at its last line feed, which may lie inside of quotes.

    Whoever has read a block says where the last record in it ends, as far as one begins with its first byte. If that is not where
    it was cut, the blocks behind it do not count, and the file goes on there in blocks that are cut one after the other.
    """

    file: int
    size: int
    form: Form
    parser: Parser
    pool: BufferPool
    _given: int = field(default=0, init=False)
    _end: int = field(default=0, init=False)  # of the last one
    _changed: Condition = field(factory=Condition, init=False)
    _right: int = field(default=0, init=False)  # so many cuts are where a record ends
    _rest: int | None = field(default=None, init=False)  # behind the last that counts, if one was cut wrongly

    def cut(self, place: int) -> Iterator[Span]:
        """The blocks from a place on where a record begins."""
        end = os.fstat(self.file).st_size
        self._end = place
        while self._rest is None and end - place > self.size:
            stop = self._behind_line(place, place + self.size)
            if stop == place:  # a long line
                break
            yield Span(self, self._given, place, stop)
            self._end = place = stop
            self._given += 1

    def rest(self) -> int:
        """Where what comes behind them begins, when all that was given out has been read."""
        with self._changed:
            self._changed.wait_for(lambda: self._rest is not None or self._right == self._given)
            return self._end if self._rest is None else self._rest

    def _behind_line(self, start: int, stop: int) -> int:
        """Where the last line ends that ends there, `start` if none does."""
        while stop > start:
            first = max(start, stop - _TAIL)
            try:
                at = os.pread(self.file, stop - first, first).rfind(b"\n")
            except OSError:  # who reads it tells
                return start
            if at >= 0:
                return first + at + 1
            stop = first
        return start

    def settle(self, number: int, right: bool, rest: int) -> bool:
        """A block has been read: whether it was cut rightly, and where it ends. Whether it counts: all before it have said so.

        They have begun before it, so this seldom waits.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._rest is not None or self._right == number)
            if self._rest is not None:
                return False
            if right:
                self._right += 1
            else:
                self._rest = rest
            self._changed.notify_all()
            return True


@frozen(eq=False)
class Span:
    """One of them: from `place` to `stop` in the file. It is to be read, as others wait for what that says."""

    spans: Spans
    number: int
    place: int
    stop: int

    def read(self) -> tuple[Lease, bytearray, int] | None:
        """Memory with its records, which begin behind the edge, and where they end there; None if there are none."""
        lease, end, right = Lease(self.spans.pool), EDGE, False
        size = self.stop - self.place
        try:
            data = lease.take(size + 2 * EDGE)
            fill = self._fill(data, EDGE + size)
            if fill == EDGE + size and data[fill - 1] == ord("\n"):  # else the file has been changed
                may_go_on = self.spans.form.delimited and quoted(data, EDGE, fill)
                end = cut(self.spans.parser, data, EDGE, fill) if may_go_on else fill
                right = end == fill
        finally:
            counts = self.spans.settle(self.number, right, self.place + end - EDGE)
        return (lease, data, end) if counts and end > EDGE else None

    def _fill(self, data: bytearray, end: int) -> int:
        """Reads into `data`; how far it came, which is not to its end where the file fails."""
        at = EDGE
        with memoryview(data) as whole:
            while at < end:
                with whole[at:end] as part:
                    try:
                        count = os.preadv(self.spans.file, [part], self.place + at - EDGE)
                    except OSError:  # who reads on from here tells
                        return EDGE
                if not count:
                    break
                at += count
        return at


__all__ = ["POSSIBLE", "Span", "Spans"]
