"""Patterns of which the next byte says at each place how to go on. They need no automaton: code for them goes straight on.

    ^[^ ]+ "([A-Z]+) (?:png|gif)$

So it is where no two ways begin with the same byte. What has begun is then never gone back on, so there is one thread, and where
a group begins and ends is known on the way. What may end before its end (`(ab)*`, of which `aba` matches `ab`) is none of
these, nor is a search for what may fail after it has begun, which would not be linear in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from river.classes import frozen
from river.lang.automata.program import utf8_sequences
from river.lang.automata.tree import (
    LAST_CODE_POINT,
    Assertion,
    Chars,
    Choice,
    Group,
    Pattern,
    Ranges,
    Repeat,
    Sequence,
    nullable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_STEPS: Final = 64
_OTHERS: Final = ((1 << 128) - 1) << 128
"""The bytes that are not ASCII. Bytes are a set, a bit each."""


@frozen
class Stretch:
    """`low` to `high` (None: any number) bytes of a set, as many as there are."""

    bytes: int
    low: int
    high: int | None


@frozen
class Save:
    """The position goes to a slot of the match."""

    slot: int


@frozen
class AtEnd:
    """The text has ended."""


@frozen
class Ways:
    """The one of some ways that begins with the next byte."""

    ways: tuple[tuple[int, Steps], ...]


@frozen
class Rounds:
    """`low` to `high` (None: any number) times, as long as the next byte is one of those that it begins with."""

    first: int
    steps: Steps
    low: int
    high: int | None


Steps = tuple[Stretch | Save | AtEnd | Ways | Rounds, ...]


@frozen
class Direct:
    """A pattern, at the beginning of the text if it is `anchored`, else from the first of the bytes `first` on."""

    anchored: bool
    first: int
    steps: Steps
    slots: int


def direct(tree: Pattern, groups: int) -> Direct | None:
    """How a pattern is matched byte by byte; None if bytes alone do not say it."""
    anchored, rest = _anchored(tree)
    try:
        steps = _steps(rest, _Next(0, free=True))
        first = _first(rest, _Next(0, free=True)).bytes
    except _Undecided:
        return None
    if sum(1 for _ in _all(steps)) > MOST_STEPS or not (anchored or _certain(steps)):
        return None
    return Direct(anchored, first, steps, 2 * groups + 2)


@frozen
class _Next:
    """What may come next: bytes, the end of the text, or anything, since the pattern may be over."""

    bytes: int
    end: bool = False
    free: bool = False

    def __or__(self, other: _Next) -> _Next:
        return _Next(self.bytes | other.bytes, self.end or other.end, self.free or other.free)


class _Undecided(Exception):  # noqa: N818 - an answer, not a mistake
    """The next byte does not say how to go on."""


def _anchored(tree: Pattern) -> tuple[bool, Pattern]:
    """Whether a pattern begins where the text does, and the rest of it."""
    match tree:
        case Assertion("text-start"):
            return True, Sequence(())
        case Sequence((Assertion("text-start"), *rest)):
            return True, Sequence(tuple(rest))
        case _:
            return False, tree


def _certain(steps: Steps) -> bool:
    """Whether nothing fails behind the first byte."""
    match [step for step in steps if not isinstance(step, Save)]:
        case [Stretch(_, 1, _), *rest]:
            return all(isinstance(step, Stretch) and step.low == 0 for step in rest)
        case _:
            return False


def _all(steps: Steps) -> Iterator[object]:
    for step in steps:
        yield step
        match step:
            case Ways(ways):
                for _, inside in ways:
                    yield from _all(inside)
            case Rounds(_, inside, _, _):
                yield from _all(inside)
            case _:
                pass


def _sequence(ranges: Ranges) -> bytes | None:
    """The bytes of a class of one character."""
    if len(ranges) != 1 or ranges[0][0] != ranges[0][1]:
        return None
    found = utf8_sequences(*ranges[0])
    return bytes(low for low, _ in found[0]) if found else None


def _bytes(ranges: Ranges) -> int:
    """The bytes of the characters of a class that has all others or none but those of ASCII.

    Raises: _Undecided for other classes.
    """
    found = 0
    for low, high in ranges:
        if high >= 128 and (low > 128 or high != LAST_CODE_POINT):
            raise _Undecided
        found |= (1 << min(high, 127) + 1) - (1 << low)
        if high >= 128:
            found |= _OTHERS
    return found


def _first(tree: Pattern, then: _Next) -> _Next:
    """What may stand where a pattern begins that something follows."""
    match tree:
        case Chars(ranges):
            one = _sequence(ranges)
            return _Next(_bytes(ranges) if one is None else 1 << one[0])
        case Sequence(items):
            for item in reversed(items):
                then = _first(item, then)
            return then
        case Choice(items):
            found = _Next(0)
            for item in items:
                found |= _first(item, then)
            return found
        case Repeat(item, low, high, _):
            if high == 0:
                return then
            return _first(item, then) if low else _first(item, then) | then
        case Group(_, item):
            return _first(item, then)
        case Assertion("text-end"):
            return _Next(0, end=True)
        case Assertion():
            raise _Undecided
        case _:
            assert_never(tree)


def _steps(tree: Pattern, then: _Next) -> Steps:
    """The steps of a pattern that something follows."""
    match tree:
        case Chars(ranges):
            one = _sequence(ranges)
            if one is not None:
                return tuple(Stretch(1 << byte, 1, 1) for byte in one)
            if _bytes(ranges) & _OTHERS:
                raise _Undecided
            return (Stretch(_bytes(ranges), 1, 1),)
        case Sequence(items):
            found: Steps = ()
            for item in reversed(items):
                found = _steps(item, then) + found
                then = _first(item, then)
            return found
        case Choice(items):
            return _ways(items, then)
        case Repeat():
            return _rounds(tree, then)
        case Group(number, item):
            return (Save(2 * number), *_steps(item, then), Save(2 * number + 1))
        case Assertion("text-end"):
            return (AtEnd(),)
        case Assertion():
            raise _Undecided
        case _:
            assert_never(tree)


def _ways(items: tuple[Pattern, ...], then: _Next) -> Steps:
    found: list[tuple[int, Steps]] = []
    known = 0
    for item in items:
        first = _first(item, _Next(0)).bytes
        if nullable(item) or first & known:
            raise _Undecided
        known |= first
        found.append((first, _steps(item, then)))
    return (Ways(tuple(found)),)


def _rounds(tree: Repeat, then: _Next) -> Steps:
    item, low, high = tree.item, tree.low, tree.high
    if high == 0:
        return ()
    if nullable(item):
        raise _Undecided
    first = _first(item, _Next(0))
    single = isinstance(item, Chars) and (_sequence(item.ranges) is None or not first.bytes & _OTHERS)
    if low != high and (first.bytes & then.bytes or (then.free and not (tree.greedy and single))):
        raise _Undecided
    if single:
        if first.bytes & _OTHERS and (low > 1 or high is not None):
            raise _Undecided  # bytes are no characters
        return (Stretch(first.bytes, low, high),)
    return (Rounds(first.bytes, _steps(item, first | then), low, high),)
