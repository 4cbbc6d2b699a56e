"""What the next block reads and sends is fetched while this one is computed, a few lines of the caches at a time.

Squares (`shuffle`) take a little of many lines of memory, and by itself a processor fetches only what is gone through in
order. It has a dozen lines under way at a time: if those of a block were fetched at once, what follows would wait. They are
fetched in order, which is how memory is fast, and not into the first cache, which blocks fill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import define, field, frozen
from river.lang import typed
from river.lang.rates import bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backends.native.ir import Builder

LINE: Final = 64
FEW: Final = 8
"""Lines that are fetched in a turn of a loop, where there are enough turns."""


@frozen
class Stream:
    """Memory that is gone through: where the bytes of the next block begin, and how many there are."""

    begin: str
    size: int
    written: bool

    @property
    def lines(self) -> int:
        """Of the caches, in a block."""
        return -(-self.size // LINE)


@define(eq=False)
class Prefetch:
    """Fetches `streams` in the turns that `loops` make in a block, and what is read also beside each of so many `squares`."""

    b: Builder
    streams: Sequence[Stream]
    squares: int
    loops: Mapping[int, int] = field(init=False)
    cursors: list[str] = field(factory=list[str])

    def begin(self, body: typed.Block) -> None:
        """Chooses the outermost loops of a body that have enough turns."""
        lines, level = sum(stream.lines for stream in self.streams), _inside(body, 1)
        while sum(times for _, times in level) * FEW < lines:
            deeper = [each for loop, times in level for each in _inside(loop.body, times) or [(loop, times)]]
            if all(loop is other for (loop, _), (other, _) in zip(level, deeper, strict=False)):
                break
            level = deeper
        self.loops = {id(loop): times for loop, times in level}
        for stream in self.streams:
            self.cursors.append(self.b.slot("ptr"))
            self.b.do(f"store ptr {stream.begin}, ptr {self.cursors[-1]}")

    def square(self) -> None:
        """Beside a square."""
        for stream, cursor in zip(self.streams, self.cursors, strict=True):
            self._some(stream, cursor, self._beside(stream))

    def turn(self, loop: typed.For) -> None:
        """At the beginning of a turn of a loop."""
        if id(loop) not in self.loops:
            return
        turns = sum(self.loops.values())
        for stream, cursor in zip(self.streams, self.cursors, strict=True):
            left = stream.lines - self.squares * self._beside(stream)
            self._some(stream, cursor, -(-left // turns))

    def _beside(self, stream: Stream) -> int:
        """How many lines are fetched beside each square, if there are any: where there are loops, half of what is read."""
        if not self.squares:
            return 0
        if not self.loops:
            return -(-stream.lines // self.squares)
        return 0 if stream.written else stream.lines // (2 * self.squares)

    def _some(self, stream: Stream, cursor: str, lines: int) -> None:
        if lines <= 0:
            return
        b = self.b
        at = b.op(f"load ptr, ptr {cursor}")
        for _ in range(lines):
            b.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 {int(stream.written)}, i32 2, i32 1)")
            at = b.op(f"getelementptr i8, ptr {at}, i64 {LINE}")  # beyond the last item it does no harm
        b.do(f"store ptr {at}, ptr {cursor}")


def _inside(body: typed.Block, times: int) -> list[tuple[typed.For, int]]:
    """The loops in a block whose turns are known, and how many these are where the block runs so often.

    Not those that only send: there may be no code of them (`Body.lent`).
    """
    found: list[tuple[typed.For, int]] = []
    for item in body.items:
        match item:
            case typed.For(_, _, _, typed.Counted() as range_, inner) if (ends := bounds(range_)) is not None:
                if ends[0] < ends[1] and not all(isinstance(each, typed.Emit) for each in inner.items):
                    found.append((item, times * (ends[1] - ends[0])))
            case _:
                pass
    return found


__all__ = ["Prefetch", "Stream"]
