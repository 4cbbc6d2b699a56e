"""Entries remembered beside the keys of a list: what is noted when a key is pushed spares the search in a later loop.

    with e = $m[k] { ... push(keys, k); ... }
    for k in keys { with e = $m[k] { ... } }

`keys` gets a list of addresses of entries at its side. Entries never move; one that was removed meanwhile bears a mark,
one that was used again has another key, and then the key is sought. Nothing may empty the map as a whole. Where entries are
removed only after the last one was put in, none is used again, and keys need not be compared.
"""

from __future__ import annotations

from river.classes import define, field
from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS, Change
from river.lang.trees import children, effect, nodes


@define
class Noted:
    """A list of keys of entries of `variable`. `steady`: no entry is used again. `list`: where the list of entries lies.

    `pushes`: the nodes that push to it, of which those in `lent` push keys whose texts are the input's.
    """

    variable: int
    steady: bool
    pushes: frozenset[int]
    list: str = ""
    lent: set[int] = field(factory=set[int])

    @property
    def lends(self) -> bool:
        """Whether the texts of all keys in it are known to be the input's."""
        return self.pushes <= self.lent


def noted(body: typed.Block) -> dict[int, Noted]:
    """By slot, the lists of keys that only grow by keys of entries at hand."""
    found: dict[int, Noted] = {}
    for item in body.items:
        if isinstance(item, typed.Var) and isinstance(item.value, typed.MakeList) and not item.value.values:
            variables: set[int] = set()
            if _pushed(body, item.slot, {}, variables) and len(variables) == 1:
                (variable,) = variables
                if not replaced(body, variable):
                    pushes = frozenset(id(node) for node in nodes(body) if _pushes(node, item.slot))
                    found[item.slot] = Noted(variable, _steady(body, variable), pushes)
    return found


def _pushes(node: typed.Node, list_: int) -> bool:
    match node:
        case typed.Apply(args=(typed.Local(slot=slot), _)):
            return slot == list_ and effect(node).pushes
        case _:
            return False


def _steady(body: typed.Block, variable: int) -> bool:
    """Whether every statement of a body that may put an entry into a map stands before all that may take one out."""
    comes = [i for i, item in enumerate(body.items) if any(_puts(node, variable) for node in nodes(item))]
    goes = [i for i, item in enumerate(body.items) if any(_takes(node) for node in nodes(item))]
    return not comes or not goes or max(comes) < min(goes)


def _puts(node: typed.Node, variable: int) -> bool:
    """Whether a statement or operation by itself may put an entry into a map."""
    match node:
        case typed.With(container=container, default=default):
            return default is not None and _within(container, variable)
        case typed.Assign(place=place):
            return _within(place, variable)
        case typed.Call(args=args):
            return any(_within(arg, variable) for arg in args)
        case typed.Apply(operation=name, args=[first, *_]):
            changes = OPERATIONS[name].mutates is not None and not _removes(node)
            return changes and _within(first, variable)
        case _:
            return False


def _within(place: typed.Node, variable: int) -> bool:
    return any(isinstance(node, typed.State) and node.index == variable for node in nodes(place))


def _takes(node: typed.Node) -> bool:
    """Whether a statement or operation by itself may take an entry out of some map."""
    return isinstance(node, typed.Drop) or (isinstance(node, typed.Apply) and _removes(node))


def _removes(apply: typed.Apply) -> bool:
    """Whether an operation takes out the entry of a key."""
    stated = effect(apply)
    on_map = stated.at_key and isinstance(apply.args[0].type, t.Map | t.OMap)
    return on_map and stated.change is Change.SHRINKS


def _pushed(node: typed.Node, list_: int, at_hand: dict[int, int], variables: set[int]) -> bool:
    """Whether a tree uses a list only in loops over it and in pushes of keys at hand; `variables` gets theirs."""

    def all_of(*parts: typed.Node) -> bool:
        return all(_pushed(part, list_, at_hand, variables) for part in parts)

    match node:
        case typed.Local(slot=slot):
            return slot != list_
        case typed.For(range=typed.Local(slot=slot)) if slot == list_:
            return all_of(node.body)
        case typed.Apply(args=(typed.Local(slot=slot), typed.Local(slot=key))) if (
            slot == list_ and effect(node).pushes
        ):
            if key not in at_hand:
                return False
            variables.add(at_hand[key])
            return True
        case typed.With(container=container, key=typed.Local(slot=key), default=default, body=body):
            inside = {slot: variable for slot, variable in at_hand.items() if slot != key}
            if isinstance(container, typed.State) and isinstance(container.type, t.Map):
                inside[key] = container.index
            given = (container,) if default is None else (container, default)
            return all_of(*given) and _pushed(body, list_, inside, variables)
        case _:
            return all_of(*children(node))


def replaced(body: typed.Node, variable: int) -> bool:
    """Whether a tree may empty a map, or replace it as a whole."""

    def whole(node: typed.Node) -> bool:
        return isinstance(node, typed.State) and node.index == variable

    for node in nodes(body):
        match node:
            case typed.Assign(place=place) if whole(place):
                return True
            case typed.Call(args=args) if any(map(whole, args)):
                return True
            case typed.Apply(operation=name, args=[first, *_]) if whole(first):
                if OPERATIONS[name].mutates is not None and not effect(node).at_key:
                    return True
            case _:
                pass
    return False


def stays(body: typed.Node, variable: int) -> bool:
    """Whether a tree takes no entry out of a map of a variable."""
    return not replaced(body, variable) and not any(map(_takes, nodes(body)))


__all__ = ["Noted", "noted", "replaced", "stays"]
