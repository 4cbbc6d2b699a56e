"""Determinisation: a set of threads in order of priority is a state (Pike's machine, its steps remembered; Laurikari 2000).

A thread is where it is in the program; what it has captured is carried beside it, since it does not decide where threads go. A
match is seen one byte late, when the byte after it (or the end of the text) is known: so assertions need no states.
A search costs at most the length of the text times that of the program, whatever the pattern.
"""

from __future__ import annotations

from typing import Any, Final

from river.classes import define, field, frozen
from river.lang.automata.program import (
    AT_START,
    BYTE,
    END,
    HOLDS,
    MATCH,
    NOT_EMPTY,
    SAVE,
    SPLIT,
    PatternProgram,
)

Threads = tuple[int, ...]
Origin = tuple[
    int, tuple[int, ...]
]  # the number of the thread it came from, and the slots that get the position

MOST_STATES: Final = 4000


@frozen
class Transition:
    """What a symbol does: the threads afterwards, where each came from, what matched before the symbol; threads visited."""

    threads: Threads
    origins: tuple[Origin, ...]
    match: Origin | None
    work: int


_Tags = tuple[int, Any] | None  # the slot that was set last, and those before it


def _slots(tags: _Tags) -> tuple[int, ...]:
    found: list[int] = []
    while tags is not None:
        found.append(tags[0])
        tags = tags[1]
    return tuple(found)


def step(program: PatternProgram, threads: Threads, context: int, byte: int) -> Transition:
    """All threads over one byte."""
    instructions, held = program.instructions, program.holding(context, byte)
    seen: set[int] = set()
    arrived: set[int] = set()
    following: list[int] = []
    origins: list[Origin] = []
    match: Origin | None = None
    for number, first in enumerate(threads):
        stack: list[tuple[int, _Tags]] = [(first, None)]
        while stack:
            at, tags = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            what, a, b, on = instructions[at]
            if what == BYTE:
                if a <= byte <= b and on not in arrived:
                    arrived.add(on)
                    following.append(on)
                    origins.append((number, _slots(tags)))
            elif what == SPLIT:
                stack.append((b, tags))
                stack.append((a, tags))
            elif what == SAVE:
                stack.append((on, (a, tags)))
            elif what == HOLDS:
                if a in held:
                    stack.append((on, tags))
            elif what == MATCH and not context & NOT_EMPTY:
                match = (number, _slots(tags))
                break
        if match is not None:
            break  # the threads after it have lower priority
    return Transition(tuple(following), tuple(origins), match, len(seen))


Row = list[Any]  # by symbol: (next row, moves, match); then the state itself
Found = tuple[int, ...]

_NOWHERE: Final[Row] = []


@define(eq=False)
class Machine:
    """A program run on texts. States are made when a text leads there; from `MOST_STATES` on they are not remembered.

    Several Python threads may search at once: at worst a step is made twice.
    """

    program: PatternProgram
    most: int = MOST_STATES
    _rows: dict[tuple[Threads, int], Row] = field(factory=dict[tuple[Threads, int], Row], repr=False)
    _tests: dict[tuple[Threads, int], Row] = field(factory=dict[tuple[Threads, int], Row], repr=False)

    def search(self, text: bytes, symbols: bytes, start: int = 0, *, empty: bool = True) -> Found | None:
        """The slots of the first match from a byte on (-1: not set), in bytes. `symbols`: `program.read(text)`.

        `empty`: a match of nothing right at `start` counts.
        """
        row = self._row(self._rows, (self.program.start,), self.program.place(text, start, empty=empty))
        banks: list[Found] = [(-1,) * self.program.slots]
        found: tuple[int, Origin, list[Found]] | None = None
        moves: tuple[Origin, ...] | None
        for at, symbol in enumerate(memoryview(symbols)[start:], start):
            row, moves, match = row[symbol] or self._made(self._rows, row, symbol)
            if match is not None:
                found = (at, match, banks)
            if moves is not None:
                banks = [_moved(banks[number], tags, at) if tags else banks[number] for number, tags in moves]
            if not row:
                break
        if found is None:
            return None
        at, (number, tags), banks = found
        return _moved(banks[number], tags, at)

    def test(self, symbols: bytes) -> bool:
        """Whether there is a match."""
        row = self._row(self._tests, (self.program.start,), self.program.context & AT_START)
        for symbol in symbols:
            row, _, match = row[symbol] or self._made(self._tests, row, symbol)
            if match is not None:
                return True
            if not row:
                return False
        return False

    def _row(self, rows: dict[tuple[Threads, int], Row], threads: Threads, context: int) -> Row:
        if not threads:
            return _NOWHERE
        key = (threads, context)
        row = rows.get(key)
        if row is None:
            row = [*(None,) * len(self.program.bytes), key]
            if len(rows) < self.most:
                row = rows.setdefault(key, row)
        return row

    def _made(self, rows: dict[tuple[Threads, int], Row], row: Row, symbol: int) -> tuple[Row, Any, Any]:
        """The step from a state by a symbol, remembered if both states are."""
        threads, context = row[-1]
        byte = self.program.bytes[symbol]
        taken = step(self.program, threads, context, byte)
        following, origins = taken.threads, taken.origins
        if rows is self._tests:  # whether there is a match does not depend on the order
            following = () if taken.match else tuple(sorted(following))
        after = 0 if byte == END else self.program.after(byte)
        to = self._row(rows, following, after)
        still = all(number == i and not tags for i, (number, tags) in enumerate(origins))
        made = (to, None if still else origins, taken.match)
        if to is _NOWHERE or rows.get((following, after)) is to:
            row[symbol] = made
        return made


def _moved(bank: Found, tags: tuple[int, ...], at: int) -> Found:
    """A bank with the position in some of its slots."""
    new = list(bank)
    for slot in tags:
        new[slot] = at
    return tuple(new)
