"""From the tree of a pattern to a nondeterministic automaton over UTF-8 bytes (Thompson 1968, Cox 2010).

An instruction is four whole numbers: what it does, two operands, where it goes on. Threads run in order of priority, so
that the first that matches is the leftmost-first match; SPLIT prefers its first branch.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, assert_never

from river.classes import define, field, frozen
from river.lang.automata.tree import Assertion, Chars, Choice, Group, Repeat, Sequence, nullable

if TYPE_CHECKING:
    from collections.abc import Sequence as Items

    from river.lang.automata.tree import Pattern, Ranges

Instruction = tuple[int, int, int, int]

BYTE, SPLIT, SAVE, HOLDS, MATCH, FAIL = range(6)
"""A byte from .. to; two ways on; the position into a slot; an assertion of kind; the end; nothing."""

TEXT_START, TEXT_END, LINE_START, LINE_END, WORD, NOT_WORD, BOUNDARY = range(7)
"""Kinds of assertions. BOUNDARY: not inside a code point, where no match begins or ends."""

AT_START, AFTER_WORD, AFTER_LINE, NOT_EMPTY = 1, 2, 4, 8
"""What is known of a place besides the threads. NOT_EMPTY: a match that ends here, where the search begins, does not count."""

MOST_INSTRUCTIONS: Final = 100_000
END: Final = -1  # the "byte" after the last

_KINDS: Final = {
    "text-start": TEXT_START, "text-end": TEXT_END, "line-start": LINE_START, "line-end": LINE_END, "word": WORD,
    "not-word": NOT_WORD,
}  # fmt: skip
_NEWLINE: Final = 10
WORD_BYTES: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class TooLarge(Exception):  # noqa: N818 - it names what the pattern is
    """The pattern has more instructions than `MOST_INSTRUCTIONS`."""


@frozen(eq=False)
class PatternProgram:
    """A pattern as instructions.

    Bytes that no instruction tells apart are one symbol: `symbols[byte]`, an example in `bytes`; the last symbol is
    the end of the text. `context`: which of AT_START ... matter. `slots`: two for the match and for each group.
    """

    instructions: tuple[Instruction, ...]
    start: int
    slots: int
    symbols: bytes = field(repr=False)
    bytes: tuple[int, ...] = field(repr=False)
    context: int

    @property
    def end(self) -> int:
        """The symbol of the end of the text."""
        return len(self.bytes) - 1

    def read(self, text: bytes) -> bytes:
        """The symbols of a text and of its end."""
        return text.translate(self.symbols) + bytes((self.end,))

    def place(self, text: bytes, at: int, *, empty: bool = True) -> int:
        """The context of a search that begins at a byte. `empty`: an empty match there counts."""
        before = END if at == 0 else text[at - 1]
        return self.after(before) | (0 if empty else NOT_EMPTY & self.context)

    def after(self, byte: int) -> int:
        """The context after a byte (END: at the start)."""
        if byte == END:
            return AT_START & self.context
        found = (AFTER_WORD if byte in WORD_BYTES else 0) | (AFTER_LINE if byte == _NEWLINE else 0)
        return found & self.context

    def holding(self, context: int, byte: int) -> frozenset[int]:
        """The kinds of assertions that hold between a context and the byte that follows."""
        inside = 128 <= byte < 192
        word = bool(context & AFTER_WORD) != (byte in WORD_BYTES)
        facts = {
            TEXT_START: bool(context & AT_START), TEXT_END: byte == END,
            LINE_START: bool(context & (AT_START | AFTER_LINE)), LINE_END: byte in (END, _NEWLINE),
            WORD: word, NOT_WORD: not word and not inside, BOUNDARY: not inside,
        }  # fmt: skip
        return frozenset(kind for kind, holds in facts.items() if holds)


def program(tree: Pattern, groups: int) -> PatternProgram:
    """The program that searches a text for a pattern.

    Raises: TooLarge.
    """
    builder = _Builder()
    body = builder.build(Group(0, tree), builder.add(MATCH))
    empty = nullable(tree)
    if empty:
        body = builder.add(HOLDS, BOUNDARY, 0, body)
    start = builder.add(SPLIT)
    builder.found[start] = (SPLIT, body, builder.add(BYTE, 0, 255, start), 0)
    instructions = tuple(builder.found)
    kinds = {one[1] for one in instructions if one[0] == HOLDS}
    symbols, examples = _symbols(instructions, kinds)
    context = (AT_START if kinds & {TEXT_START, LINE_START} else 0) | (
        AFTER_WORD if kinds & {WORD, NOT_WORD} else 0
    )
    context |= (AFTER_LINE if LINE_START in kinds else 0) | (NOT_EMPTY if empty else 0)
    return PatternProgram(instructions, start, 2 * groups + 2, symbols, (*examples, END), context)


@define
class _Builder:
    found: list[Instruction] = field(factory=list[Instruction])

    def add(self, what: int, first: int = 0, second: int = 0, on: int = 0) -> int:
        self.found.append((what, first, second, on))
        if len(self.found) > MOST_INSTRUCTIONS:
            raise TooLarge
        return len(self.found) - 1

    def build(self, tree: Pattern, on: int) -> int:
        """Where a pattern begins that goes on at `on`."""
        match tree:
            case Chars(ranges):
                return self.chars(ranges, on)
            case Assertion(kind):
                return self.add(HOLDS, _KINDS[kind], 0, on)
            case Sequence(items):
                for item in reversed(items):
                    on = self.build(item, on)
                return on
            case Choice(items):
                return self.either([self.build(item, on) for item in items])
            case Repeat():
                return self.repeat(tree, on)
            case Group(number, item):
                inside = self.build(item, self.add(SAVE, 2 * number + 1, 0, on))
                return self.add(SAVE, 2 * number, 0, inside)
            case _:
                assert_never(tree)

    def either(self, ways: Items[int]) -> int:
        found = ways[-1]
        for way in reversed(ways[:-1]):
            found = self.add(SPLIT, way, found)
        return found

    def chars(self, ranges: Ranges, on: int) -> int:
        """The ways through the bytes of code points; equal ends are shared."""
        made: dict[tuple[int, int, int], int] = {}
        ways: list[int] = []
        for low, high in ranges:
            for sequence in utf8_sequences(low, high):
                at = on
                for first, last in reversed(sequence):
                    key = (first, last, at)
                    if key not in made:
                        made[key] = self.add(BYTE, *key)
                    at = made[key]
                ways.append(at)
        return self.either(ways) if ways else self.add(FAIL)

    def repeat(self, tree: Repeat, on: int) -> int:
        item, low, high = tree.item, tree.low, tree.high
        if high is not None:
            at = on
            for _ in range(high - low):
                at = self.add(SPLIT, *self.preferred(tree, self.build(item, at), on))
        elif low == 0 and nullable(item):  # x* is (x+)?, lest an empty round be missed (as in RE2)
            return self.add(
                SPLIT, *self.preferred(tree, self.build(Repeat(item, 1, None, tree.greedy), on), on)
            )
        else:
            loop = self.add(SPLIT)
            body = self.build(item, loop)
            self.found[loop] = (SPLIT, *self.preferred(tree, body, on), 0)
            at = loop if low == 0 else body
            low = max(low - 1, 0)
        for _ in range(low):
            at = self.build(item, at)
        return at

    @staticmethod
    def preferred(tree: Repeat, more: int, enough: int) -> tuple[int, int]:
        return (more, enough) if tree.greedy else (enough, more)


def utf8_sequences(low: int, high: int) -> list[list[tuple[int, int]]]:
    """The code points low .. high as sequences of ranges of bytes; surrogates have none."""
    for last in (0x7F, 0x7FF, 0xFFFF):
        if low <= last < high:
            return utf8_sequences(low, last) + utf8_sequences(last + 1, high)
    if low <= 0xDFFF and high >= 0xD800:
        before = utf8_sequences(low, 0xD7FF) if low < 0xD800 else []
        return before + (utf8_sequences(0xE000, high) if high > 0xDFFF else [])
    for digits in range(1, len(chr(high).encode())):
        mask = (1 << 6 * digits) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                return utf8_sequences(low, low | mask) + utf8_sequences((low | mask) + 1, high)
            if high & mask != mask:
                return utf8_sequences(low, (high & ~mask) - 1) + utf8_sequences(high & ~mask, high)
    return [list(zip(chr(low).encode(), chr(high).encode(), strict=True))]


def _symbols(instructions: tuple[Instruction, ...], kinds: set[int]) -> tuple[bytes, list[int]]:
    """The symbol of each byte, and a byte of each symbol."""
    ranges = {(one[1], one[2]) for one in instructions if one[0] == BYTE}
    if kinds & {WORD, NOT_WORD}:
        ranges |= {(48, 57), (65, 90), (95, 95), (97, 122)}
    if kinds & {NOT_WORD, BOUNDARY}:
        ranges.add((128, 191))
    if kinds & {LINE_START, LINE_END}:
        ranges.add((_NEWLINE, _NEWLINE))
    cuts = sorted({0, 256, *(low for low, _ in ranges), *(high + 1 for _, high in ranges)})
    numbers: dict[tuple[bool, ...], int] = {}
    examples: list[int] = []
    symbols = bytearray()
    for first, after in pairwise(cuts):
        told = tuple(low <= first <= high for low, high in ranges)
        if told not in numbers:
            numbers[told] = len(examples)
            examples.append(first)
        symbols += bytes((numbers[told],)) * (after - first)
    return bytes(symbols), examples


def close(found: set[int], ways: list[list[int]]) -> None:
    """Adds the states that ways lead to, by state, from those found."""
    todo = list(found)
    while todo:
        for to in ways[todo.pop()]:
            if to not in found:
                found.add(to)
                todo.append(to)
