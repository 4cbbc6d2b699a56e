"""The tree of a pattern."""

from __future__ import annotations

from typing import Final, assert_never

from river.classes import frozen

Ranges = tuple[tuple[int, int], ...]

LAST_CODE_POINT: Final = 0x10FFFF


@frozen
class Chars:
    """One code point out of sorted, disjoint, inclusive ranges."""

    ranges: Ranges


@frozen
class Assertion:
    """A place: text-start, text-end, line-start, line-end, word, not-word."""

    kind: str


@frozen
class Sequence:
    """One after the other."""

    items: tuple[Pattern, ...]


@frozen
class Choice:
    """The first that leads to a match."""

    items: tuple[Pattern, ...]


@frozen
class Repeat:
    """`low` to `high` times (None: any number); as often as possible if `greedy`, else as rarely."""

    item: Pattern
    low: int
    high: int | None
    greedy: bool


@frozen
class Group:
    """A capture, numbered from 1 by its opening parenthesis."""

    number: int
    item: Pattern


Pattern = Chars | Assertion | Sequence | Choice | Repeat | Group


def nullable(tree: Pattern) -> bool:
    """Whether the empty text may match."""
    match tree:
        case Chars():
            return False
        case Assertion():
            return True
        case Sequence(items):
            return all(map(nullable, items))
        case Choice(items):
            return any(map(nullable, items))
        case Repeat(item, low, _, _):
            return low == 0 or nullable(item)
        case Group(_, item):
            return nullable(item)
        case _:
            assert_never(tree)
