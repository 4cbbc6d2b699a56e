"""Entries remembered beside the keys of a list: what is noted when a key is pushed spares the search in a later loop.

    with e = $m[k] { ... push(keys, k); ... }
    for k in keys { with e = $m[k] { ... } }

`keys` gets a list of addresses of entries at its side. Entries never move; one that was removed meanwhile bears a mark,
one that was used again has another key, and then the key is sought. Nothing may empty the map as a whole.
"""

from __future__ import annotations

from typing import Any

import attrs

from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.trees import nodes


def noted(body: typed.Block) -> dict[int, int]:
    """Slots of lists of keys that only grow by keys of entries at hand, with the variable that has the entries."""
    found: dict[int, int] = {}
    for item in body.items:
        if isinstance(item, typed.Var) and isinstance(item.value, typed.MakeList) and not item.value.values:
            variables: set[int] = set()
            if _pushed(body, item.slot, {}, variables) and len(variables) == 1:
                (variable,) = variables
                if not _replaced(body, variable):
                    found[item.slot] = variable
    return found


def _pushed(node: Any, list_: int, at_hand: dict[int, int], variables: set[int]) -> bool:
    """Whether a tree uses a list only in loops over it and in pushes of keys at hand; `variables` gets theirs."""

    def all_of(*parts: Any) -> bool:
        return all(_pushed(part, list_, at_hand, variables) for part in parts)

    match node:
        case typed.Local(slot=slot):
            return slot != list_
        case typed.For(range=typed.Local(slot=slot)) if slot == list_:
            return all_of(node.body)
        case typed.Apply(operation="push", args=(typed.Local(slot=slot), typed.Local(slot=key))) if (
            slot == list_
        ):
            if key not in at_hand:
                return False
            variables.add(at_hand[key])
            return True
        case typed.With(container=container, key=typed.Local(slot=key), default=default, body=body):
            inside = {slot: variable for slot, variable in at_hand.items() if slot != key}
            if isinstance(container, typed.State) and isinstance(container.type, t.Map):
                inside[key] = container.index
            return all_of(container, default) and _pushed(body, list_, inside, variables)
        case tuple():
            return all_of(*node)  # pyright: ignore[reportUnknownArgumentType]
        case typed.Node():
            names = (each.name for each in attrs.fields(type(node)))
            return all_of(*(getattr(node, name) for name in names if name not in ("span", "type")))
        case _:
            return True


def _replaced(body: typed.Block, variable: int) -> bool:
    """Whether a map may be emptied or replaced as a whole."""

    def whole(node: typed.Node) -> bool:
        return isinstance(node, typed.State) and node.index == variable

    for node in nodes(body):
        match node:
            case typed.Assign(place=place) if whole(place):
                return True
            case typed.Call(args=args) if any(map(whole, args)):
                return True
            case typed.Apply(operation=name, args=[first, *_]) if whole(first):
                if OPERATIONS[name].mutates is not None and name not in ("delete", "set"):
                    return True
            case _:
                pass
    return False


__all__ = ["noted"]
