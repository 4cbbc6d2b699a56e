"""Which bytes a search may pass over: those that leave a state as it is, and those where no match begins.

How often bytes occur is guessed, from common text; only speed depends on it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.lang.automata.program import BYTE, HOLDS, MATCH, SAVE, SPLIT, PatternProgram

if TYPE_CHECKING:
    from collections.abc import Iterable

Words = tuple[int, ...]

RARELY: Final = (
    0.12  # how likely a byte of common text leaves a state at most that is worth a loop of its own
)
RARELY_IN_PAIRS: Final = 0.025  # the same where two bytes are a step
MOST_RANGES: Final = 4
ANY: Final = (0, 0, -1)  # all bytes
_DEEPEST: Final = 8  # bytes from where a match begins that are looked at
_WIDEST: Final = 500  # instructions that may be next, beyond which nothing is said
_SELDOM: Final = 0.001  # one check is enough if it lets pass so few bytes


def _shares() -> list[float]:
    """By byte, how much of common text it is: English letters, some digits and marks, hardly anything else."""
    found = [0.0002] * 128 + [0.00005] * 128
    letters = "etaoinsrhdlucmfywgpbvkxqjz"
    percent = (
        10,
        7.5,
        6.5,
        6.2,
        5.7,
        5.7,
        5.3,
        5,
        4,
        3.5,
        3.3,
        2.3,
        2.3,
        2,
        1.8,
        1.7,
        1.6,
        1.5,
        1.5,
        1.3,
        0.8,
        0.6,
        *[0.2] * 4,
    )
    for letter, share in zip(letters, percent, strict=True):
        found[ord(letter)] = share / 100
        found[ord(letter.upper())] = share / 1000
    for digit in b"0123456789":
        found[digit] = 0.008
    for mark in b"!\"#$%&'()*+-:;<=>?@[\\]^_`{|}~":
        found[mark] = 0.002
    found[ord(" ")] = 0.15
    for mark in b".,/\n":
        found[mark] = 0.01
    return found


_SHARES: Final = _shares()


def ranges(inside: Iterable[bool]) -> Words | None:
    """A set of bytes as three words, if they or all others are few ranges.

    The words: `MOST_RANGES` times two bytes {least, how many}, and 0 if they are the set, -1 if all others are.
    """
    known = list(inside)
    edges = [byte for byte in range(1, 256) if known[byte] != known[byte - 1]]
    pieces = [*zip([0, *edges], [*edges, 256], strict=True)]
    for wanted, flip in ((True, 0), (False, -1)):
        found = [(low, high - low) for low, high in pieces if known[low] == wanted]
        if len(found) <= MOST_RANGES and all(count < 256 for _, count in found):
            pairs = [*found, *[(0, 0)] * (MOST_RANGES - len(found))]
            return (*array("i", bytes(number for pair in pairs for number in pair)), flip)
    return None


def heads(program: PatternProgram) -> list[int]:
    """By distance from where a match begins, the bytes that may stand there, a bit each; as far as no match has ended."""
    instructions = program.instructions
    found: list[int] = []
    following = {instructions[program.start][1]}
    while len(found) < _DEEPEST:
        todo, seen = list(following), set(following)
        bytes_ = 0
        following = set[int]()
        while todo:
            what, a, b, on = instructions[todo.pop()]
            if what == MATCH or len(seen) > _WIDEST:
                return found
            if what == BYTE:
                bytes_ |= (1 << b + 1) - (1 << a)
                following.add(on)
                continue
            for way in (a, b) if what == SPLIT else (on,) if what in (SAVE, HOLDS) else ():
                if way not in seen:
                    seen.add(way)
                    todo.append(way)
        found.append(bytes_)
    return found


def checks(program: PatternProgram) -> Words | None:
    """What tells most places apart where no match begins; None: too many places are left.

    {the greater distance, 0 if both are one range}, then twice {distance, two bytes {least, how many} twice}. Both may be
    the same.
    """
    known: list[tuple[float, int, int]] = []
    for distance, bytes_ in enumerate(heads(program)):
        inside = [bool(bytes_ >> byte & 1) for byte in range(256)]
        match ranges(inside):
            case (word, 0, 0):
                share = sum(share for share, one in zip(_SHARES, inside, strict=True) if one)
                known.append((share, distance, word))
            case _:
                pass
    if not known:
        return None
    known.sort()
    (share, first, these), (_, second, those) = known[0], known[0]
    if share > _SELDOM and len(known) > 1:
        other, second, those = known[1]
        share *= other
    if share > RARELY:
        return None
    double = any(array("i", (word,)).tobytes()[3] for word in (these, those))
    return (max(first, second), int(double), first, these, second, those)


@define(eq=False)
class Alphabet:
    """The symbols of a program that are bytes: how much of common text each is, and what sets of them are as ranges."""

    program: PatternProgram
    shares: list[float] = field(init=False)
    _ranges: dict[frozenset[int], Words | None] = field(factory=dict[frozenset[int], "Words | None"])

    def __attrs_post_init__(self) -> None:
        self.shares = [0.0] * self.program.end
        for byte, symbol in enumerate(self.program.symbols):
            self.shares[symbol] += _SHARES[byte]

    def stay(self, row: list[int], wanted: tuple[int, ...]) -> tuple[int, frozenset[int]]:
        """The transition out of some that most bytes take (-1: none); the others."""
        best, least, left = -1, 1.0, frozenset[int]()
        for one in wanted:
            others = frozenset(symbol for symbol in range(self.program.end) if row[symbol] != one)
            share = self.share(others)
            if len(others) < self.program.end and (best < 0 or share < least):
                best, least, left = one, share, others
        return best, left

    def share(self, symbols: frozenset[int]) -> float:
        """How much of common text they are together."""
        return sum(self.shares[symbol] for symbol in symbols)

    def ranges(self, symbols: frozenset[int]) -> Words | None:
        """They as three words, if they or all others are few ranges of bytes."""
        if symbols not in self._ranges:
            self._ranges[symbols] = ranges(symbol in symbols for symbol in self.program.symbols)
        return self._ranges[symbols]
