"""Walks over checked trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never, cast

from river.classes import fields
from river.lang import typed
from river.lang.operations import OPERATIONS, effect_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.lang.operations import Effect


def children(node: typed.Node) -> list[typed.Node]:
    """The nodes directly inside a node. A literal has none, however large its value."""
    found: list[typed.Node] = []
    for name in _INSIDE[node.__class__]:
        _gather(getattr(node, name), found)
    return found


class _Inside(dict["type[typed.Node]", "tuple[str, ...]"]):
    """By class of nodes, the fields that may hold nodes."""

    def __missing__(self, kind: type[typed.Node]) -> tuple[str, ...]:
        """Those of a class that is met for the first time."""
        every = () if issubclass(kind, typed.Literal) else fields(kind)
        found = self[kind] = tuple(each.name for each in every if each.type not in _LEAVES)
        return found


_INSIDE: Final = _Inside()

_LEAVES: Final = (
    "int",
    "int | None",
    "str",
    "str | None",
    "bool",
    "tuple[int, ...]",
    "tuple[tuple[int, int], ...]",
    "tuple[str, ...]",
    "Type",
    "Span | None",
)
"""Types of fields that hold no nodes, as they are written in `typed`."""


def nodes(tree: typed.Node | tuple[typed.Node, ...]) -> Iterator[typed.Node]:
    """All nodes of a tree or of several, what is outside first. Functions that are called are not entered."""
    left: list[typed.Node] = []
    _gather(tree, left)
    left.reverse()
    while left:
        node = left.pop()
        yield node
        inside = children(node)
        inside.reverse()
        left += inside


def reached(tree: typed.Node | tuple[typed.Node, ...], fns: tuple[typed.Fn, ...]) -> Iterator[typed.Node]:
    """All nodes of a tree and of the functions that it calls, each once, however many of these call one another in a row."""
    called: set[int] = set()
    left: list[typed.Node] = []
    _gather(tree, left)
    left.reverse()
    while left:
        node = left.pop()
        yield node
        inside = children(node)
        inside.reverse()
        left += inside
        if isinstance(node, typed.Call) and node.function not in called:
            called.add(node.function)
            left.append(fns[node.function].body)


def root(place: typed.Expr | typed.Lambda) -> typed.Expr | typed.Lambda:
    """What a place is a part of: a variable, or a name."""
    while isinstance(place, typed.Get | typed.At):
        place = place.value
    return place


def operands(
    node: typed.Expr | typed.Lambda | typed.Counted,
) -> tuple[typed.Expr | typed.Lambda | typed.Counted, ...]:
    """The expressions directly inside one; of a comprehension its range first, as they are evaluated."""
    match node:
        case typed.Literal() | typed.Local() | typed.State() | typed.ConstRef():
            return ()
        case typed.Get(_, value, _, _) | typed.Some(_, value):
            return (value,)
        case typed.At(_, value, index, _):
            return (value, index)
        case typed.Apply(_, _, args, _):
            return args
        case typed.Call(_, _, _, args, _):
            return args
        case typed.If(_, cond, then, other):
            return (cond, then, other)
        case typed.Logic(_, _, left, right) | typed.Counted(left, right):
            return (left, right)
        case typed.MakeRecord(_, values, _) | typed.MakeList(_, values):
            return values
        case typed.MakeMap(_, items):
            return tuple(part for item in items for part in item)
        case typed.Comprehension(_, value, _, _, range_, cond):
            return (range_, value) if cond is None else (range_, value, cond)
        case typed.Lambda(_, _, _, body):
            return (body,)
        case _:
            assert_never(node)


def effect(apply: typed.Apply) -> Effect:
    """What an operation does on its operands, as the table states it."""
    return effect_of(OPERATIONS[apply.operation], tuple(arg.type for arg in apply.args))


def applied(tree: typed.Node | tuple[typed.Node, ...]) -> Iterator[str]:
    """The names of the operations in a tree or in several."""
    return (node.operation for node in nodes(tree) if isinstance(node, typed.Apply))


def recursive(fns: tuple[typed.Fn, ...]) -> bool:
    """Whether some function can reach itself: no order remains when those that call no other are taken away."""
    left = {i: {n.function for n in nodes(fn) if isinstance(n, typed.Call)} for i, fn in enumerate(fns)}
    while left:
        leaves = [i for i, called in left.items() if called.isdisjoint(left)]
        if not leaves:
            return True
        for i in leaves:
            del left[i]
    return False


def _gather(value: object, found: list[typed.Node]) -> None:
    """Adds the nodes that a field holds."""
    if isinstance(value, typed.Node):
        found.append(value)
    elif isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            _gather(each, found)
