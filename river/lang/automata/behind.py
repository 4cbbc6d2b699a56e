"""A pattern that only matches at the end of a text, as a DFA that reads backwards from there: it says where matches begin.

A state is what a match may still come from: the instructions behind which the bytes that were read lead to the end. So it
is the program with its arrows turned round, determinised by sets; priority does not matter for where matches begin, and all
of them end at the same place. An assertion is tested when the byte before it is known: what is after it is part of the state.

As words: {symbol of the end, 1 if what matches may be sought forwards as well}, 256 bytes of symbols, then the states, the
first one first: by symbol of the byte before (of the end: there is none) the next state with flags. HIT: a match begins
between both bytes. STAYS: hardly any text ends the search in that state, so it is better done forwards.
"""

from __future__ import annotations

from array import array
from typing import Final

from river.classes import define, field
from river.lang.automata.program import (
    BOUNDARY,
    BYTE,
    END,
    HOLDS,
    LINE_END,
    MATCH,
    NOT_WORD,
    SAVE,
    SPLIT,
    TEXT_END,
    TEXT_START,
    WORD,
    WORD_BYTES,
    PatternProgram,
    close,
)

BEHIND_HEAD: Final = 2
BEHIND_STATES: Final = BEHIND_HEAD + 64  # where the states begin

STAYS: Final = 1 << 28  # forwards: the next state is another one, where bytes may be passed over
DEAD: Final = 1 << 27  # there is no next state
HIT: Final = 1 << 26  # forwards: a match is seen

MOST_WORK: Final = 100_000  # parts of sets looked at: about 20 ms
_MOST_INSTRUCTIONS: Final = 4000
_COMMON: Final = frozenset((9, *range(32, 127)))  # the bytes of lines of text

_State = tuple[
    int, int
]  # places of the program, a bit each; the byte after, or one of which the same is to be known


class _TooLarge(Exception):  # noqa: N818 - it names what the automaton is
    """It takes more than there may be."""


def behind(program: PatternProgram, most: int, work: int, *, alone: bool) -> array[int]:
    """The words of the DFA that reads backwards; none where a match may end elsewhere, or where it would not help.

    `alone`: there is no DFA that reads forwards. More than `most` states, or more `work`, are too many.
    """
    if not _through(program, TEXT_END, MATCH) or not (alone or not _through(program, TEXT_START, BYTE)):
        return array("i")
    if len(program.instructions) > min(_MOST_INSTRUCTIONS, work):
        return array("i")
    try:
        return _words(program, _Backwards(program, most, min(work, MOST_WORK)).rows(), alone=alone)
    except _TooLarge:
        return array("i")


def _through(program: PatternProgram, kind: int, goal: int) -> bool:
    """Whether every way from where a match begins to an instruction that does `goal` leads through an assertion."""
    instructions = program.instructions
    if not any(one[:2] == (HOLDS, kind) for one in instructions):
        return False
    todo, seen = [instructions[program.start][1]], {program.start}
    while todo:
        at = todo.pop()
        what, a, b, on = instructions[at]
        if at in seen or (what, a) == (HOLDS, kind):
            continue
        if what == goal:
            return False
        seen.add(at)
        todo += (a, b) if what == SPLIT else (on,) if what in (BYTE, SAVE, HOLDS) else ()
    return True


@define(eq=False)
class _Backwards:
    """The program turned round.

    A bit stands for a place that a byte leads to, or where a match begins (`begin`), or for an assertion that has to
    hold; `kinds`: the assertions by bit. `into`: by bit and symbol, the bits after that byte was read.
    """

    program: PatternProgram
    most: int
    work: int
    begin: int = field(init=False)
    first: int = field(init=False)
    kinds: dict[int, tuple[int, int]] = field(init=False)
    into: list[list[int]] = field(init=False)
    _bits: dict[tuple[bool, int], int] = field(factory=dict[tuple[bool, int], int])
    _before: list[list[int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        instructions, begin = self.program.instructions, self.program.instructions[self.program.start][1]
        self._before = [[] for _ in instructions]
        reads: list[int] = []
        for at, (what, a, b, on) in enumerate(instructions):
            if what == BYTE and on != self.program.start:  # else it searches for where a match begins
                reads.append(at)
                self._bit(on)
            elif at != self.program.start:
                for to in (a, b) if what == SPLIT else (on,) if what in (SAVE, HOLDS) else ():
                    self._before[to].append(at)
        self.begin = 1 << self._bit(begin)
        self.first = self._from(next(at for at, one in enumerate(instructions) if one[0] == MATCH))
        asserted = [at for at, one in enumerate(instructions) if one[0] == HOLDS]
        self.kinds = {
            1 << self._bit(at, asserted=True): (instructions[at][1], self._from(at)) for at in asserted
        }
        froms = [(at, self._from(at)) for at in reads]
        self.into = [[0] * self.program.end for _ in self._bits]
        for at, places in froms:
            _, low, high, on = instructions[at]
            row = self.into[self._bit(on)]
            for symbol, byte in enumerate(self.program.bytes[:-1]):
                if low <= byte <= high:
                    row[symbol] |= places

    def _bit(self, at: int, *, asserted: bool = False) -> int:
        return self._bits.setdefault((asserted, at), len(self._bits))

    def _from(self, at: int) -> int:
        """The bits from which an instruction is reached, without a byte or an assertion between."""
        found, todo, seen = 0, [at], {at}
        while todo:
            self._count(1)
            one = todo.pop()
            if (False, one) in self._bits:
                found |= 1 << self._bit(one)
            for before in self._before[one]:
                if self.program.instructions[before][0] == HOLDS:
                    found |= 1 << self._bit(before, asserted=True)
                elif before not in seen:
                    seen.add(before)
                    todo.append(before)
        return found

    def _count(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise _TooLarge

    def rows(self) -> list[list[tuple[int, bool]]]:
        """By state and symbol, the number of the next state (-1: none), and whether a match begins here."""
        program = self.program
        kinds = {kind for kind, _ in self.kinds.values()}
        contexts = [program.after(byte) for byte in program.bytes]
        known = [_known(byte, kinds) for byte in program.bytes]
        numbers: dict[_State, int] = {(self.first, END): 0}
        states = [*numbers]
        found: list[list[tuple[int, bool]]] = []
        for places, after in states:
            row: list[tuple[int, bool]] = []
            reached: dict[int, list[int]] = {}
            for symbol, context in enumerate(contexts):
                if context not in reached:
                    reached[context] = self._reached(places, program.holding(context, after))
                bits = reached[context]
                self._count(1 + len(bits))
                following = 0
                if symbol != program.end:
                    for bit in bits:
                        following |= self.into[bit][symbol]
                to = -1
                if following:
                    state = (following, known[symbol])
                    to = numbers.setdefault(state, len(states))
                    if to == len(states):
                        states.append(state)
                row.append((to, self.begin.bit_length() - 1 in bits))
            found.append(row)
            if len(states) > self.most:
                raise _TooLarge
        return found

    def _reached(self, places: int, held: frozenset[int]) -> list[int]:
        """The numbers of the bits from which a match goes on, where some assertions hold."""
        todo = True
        used: set[int] = set()
        while todo:
            todo = False
            for bit, (kind, more) in self.kinds.items():
                if places & bit and kind in held and bit not in used:
                    used.add(bit)
                    self._count(1)
                    places |= more
                    todo = True
        found: list[int] = []
        while places:
            low = places & -places
            places ^= low
            found.append(low.bit_length() - 1)
        return found


def _known(byte: int, kinds: set[int]) -> int:
    """A byte of which the same is to be known as of another, once it is the one after an assertion."""
    if byte in WORD_BYTES and kinds & {WORD, NOT_WORD}:
        return b"0"[0]
    if byte == b"\n"[0] and LINE_END in kinds:
        return byte
    return 128 if 128 <= byte < 192 and kinds & {NOT_WORD, BOUNDARY} else 0


def _words(program: PatternProgram, rows: list[list[tuple[int, bool]]], *, alone: bool) -> array[int]:
    lasting = set[int]() if alone else _lasting(program, rows)
    if 0 in lasting:
        return array("i")
    columns = len(program.bytes)
    found = array("i", [program.end, 0 if alone else 1])
    found.frombytes(program.symbols)
    for row in rows:
        for to, begins in row:
            word = DEAD if to < 0 else to * columns | (STAYS if to in lasting else 0)
            found.append(word | (HIT if begins else 0))
    return found


def _lasting(program: PatternProgram, rows: list[list[tuple[int, bool]]]) -> set[int]:
    """The states that no line of common text ends."""
    common = sorted({program.symbols[byte] for byte in _COMMON})
    before: list[list[int]] = [[] for _ in rows]
    ended = set[int]()
    for number, row in enumerate(rows):
        following = {row[symbol][0] for symbol in common}
        if -1 in following:
            ended.add(number)
        for to in following - {-1}:
            before[to].append(number)
    close(ended, before)
    return {*range(len(rows))} - ended
