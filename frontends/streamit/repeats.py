"""Branches of a splitjoin that do the same to whole blocks of items: one of them can do it for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frontends.streamit import typed as ty
from frontends.streamit.balance import block
from frontends.streamit.elaborate import prints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from frontends.streamit.operators import Used

FEWEST: Final = 16
"""Branches that have to go, or all stay: few are soon made, and may become one function with what follows (pass `fusion`)."""

Key = tuple[object, ...]
"""What a part does; equal ones do the same."""


def standing(graph: ty.SplitJoin, used: Mapping[int, Used]) -> int:
    """How many branches, from the first, do what all of them do, if theirs were all items.

    They are fewer than all where the branches repeat, keep nothing from one turn to the next, and use their items up in each:
    then item for item the same comes out, however many items come.
    """
    count, split, join = len(graph.parts), graph.split, graph.join
    if count <= FEWEST or split is None or not all(split) or not all(join):
        return count
    keys: list[tuple[Key, int, int]] = []
    for part, taken, given in zip(graph.parts, split, join, strict=True):
        key = _key(part, used)
        if key is None:
            return count
        keys.append((key, taken, given))
    first = next(
        n for n in range(1, count + 1) if count % n == 0 and all(keys[i] == keys[i % n] for i in range(count))
    )
    turns = zip(graph.parts[:first], split, join, strict=False)
    return first if first <= count - FEWEST and all(_whole(*turn) for turn in turns) else count


def _whole(part: ty.Graph, taken: int, given: int) -> bool:
    """Whether a part that takes and gives so many items in each turn is as it was behind it."""
    takes, gives = block(part)
    return taken % takes == 0 and taken // takes * gives == given


def _key(part: ty.Graph, used: Mapping[int, Used]) -> Key | None:
    """What a part does; None where firings depend on those before, or have other effects than the items that they give."""
    match part:
        case ty.Node(filter_, rates=rates, first=first, portals=portals):
            own = used[id(part)]
            fixed = rates.push and rates.pop and rates.peek <= rates.pop and not rates.asks and first is None
            alone = not (own.variables or own.heard or own.sent or portals or prints(filter_, heard=False))
            return (own.instance,) if fixed and alone else None
        case ty.Identity(item):
            return ("", item)
        case ty.Pipeline(parts=parts):
            return _all("pipeline", parts, used)
        case ty.SplitJoin(split=split, parts=parts, join=join):
            inner = _all("splitjoin", parts, used)
            return None if inner is None else (*inner, split, join)
        case _:
            return None


def _all(kind: str, parts: Sequence[ty.Graph], used: Mapping[int, Used]) -> Key | None:
    keys: list[Key] = []
    for part in parts:
        key = _key(part, used)
        if key is None:
            return None
        keys.append(key)
    return (kind, *keys)
