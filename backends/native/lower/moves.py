"""Locals that are used for the last time where their value goes somewhere else: it need not be copied.

    var found: list<string> = [];  ... push(found, s); ...  parts = found;

Nothing of the block that declares the local comes back to it, and no name borrows a part of it that whoever has the value
now could write to.
"""

from __future__ import annotations

from river.lang import typed
from river.lang.operations import OPERATIONS
from river.lang.trees import nodes


def moved(body: typed.Block) -> frozenset[int]:
    """The uses of locals, by `id`, that are the last ones, of those that statements of a block itself declare and use."""
    found: set[int] = set()
    begun: dict[int, int] = {}
    for i, item in enumerate(body.items):
        for used in _taken(item):
            if used.slot in begun and not _again(body, begun[used.slot], i, used):
                found.add(id(used))
        if isinstance(item, typed.Var):
            begun[item.slot] = i
    return frozenset(found)


def _taken(item: typed.Stmt) -> tuple[typed.Local, ...]:
    """The locals whose values a statement puts into a place."""
    match item:
        case typed.Var(value=typed.Local() as used) | typed.Assign(value=typed.Local() as used):
            return (used,)
        case typed.Do(typed.Apply(operation=name, args=(_, *rest))) if OPERATIONS[name].mutates is not None:
            return tuple(each for each in rest if isinstance(each, typed.Local))
        case _:
            return ()


def _again(body: typed.Block, begun: int, at: int, used: typed.Local) -> bool:
    """Whether a local is used once more, in this statement or behind it, or a name of the block borrows from it."""
    here = sum(_names(node, used.slot) for node in nodes(body.items[at]))
    later = any(_names(node, used.slot) for node in nodes(body.items[at + 1 :]))
    lets = tuple(item for item in body.items[begun:at] if isinstance(item, typed.Let))
    return here > 1 or later or any(_names(node, used.slot) for node in nodes(lets))


def _names(node: typed.Node, slot: int) -> bool:
    return isinstance(node, typed.Local) and node.slot == slot
