"""Walking and rebuilding trees of the operator language without naming every production; trees as keys of caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from river.classes import evolve, fields
from river.lang import syntax as s
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

N = TypeVar("N", bound=s.Node)
T = TypeVar("T")


class Same(Generic[T]):
    """A value as a key by identity: passes keep the objects that they do not change, and hashing a tree costs."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same object."""
        return isinstance(other, Same) and cast("Same[object]", other).value is self.value

    def __hash__(self) -> int:
        """The object's identity."""
        return id(self.value)


class SameBody(Same[T]):
    """An operator, or its text, as a key: those are equal that are the same objects but for name, place and values of constants.

    Instances of a template are that, where no argument but those of constants differ (`river.il.instantiate`).
    """

    __slots__ = ("_parts",)

    def __init__(self, value: T) -> None:
        super().__init__(value)
        kept = tuple(id(getattr(value, name)) for name in _BODY[value.__class__])
        self._parts: tuple[object, ...] = kept
        if isinstance(value, s.Operator):
            self._parts = (*kept, *((const.name, id(const.type)) for const in value.consts))

    def __eq__(self, other: object) -> bool:
        """Whether both are made of the same objects."""
        return isinstance(other, SameBody) and other._parts == self._parts

    def __hash__(self) -> int:
        """The identity of the parts."""
        return hash(self._parts)


_BODY: Final[Mapping[type, tuple[str, ...]]] = {
    s.Operator: ("ports", "vars", "outs", "fns", "handlers"),
    typed.Operator: (
        "ports", "vars", "outs", "fns", "sites", "items", "first", "rated", "phases", "merge", "mark",
    ),
}  # fmt: skip
"""What an operator is made of beside its constants."""


class _Inside(dict["type[s.Node]", "tuple[str, ...]"]):
    """By class of nodes, the fields that may hold nodes."""

    def __missing__(self, kind: type[s.Node]) -> tuple[str, ...]:
        """Those of a class that is met for the first time."""
        found = self[kind] = tuple(each.name for each in fields(kind) if each.type not in _LEAVES)
        return found


class _LastFirst(dict["type[s.Node]", "tuple[str, ...]"]):
    """The same fields, the last one first."""

    def __missing__(self, kind: type[s.Node]) -> tuple[str, ...]:
        """Those of a class that is met for the first time."""
        found = self[kind] = _INSIDE[kind][::-1]
        return found


_INSIDE: Final = _Inside()
_LAST_FIRST: Final = _LastFirst()

_LEAVES: Final = (
    "str", "str | None", "int", "int | None", "bool", "float", "t.Type", "t.Type | None", "tuple[str, ...]", "tuple[int, ...]",
    "frozenset[int]", "frozenset[str]", "Span | None",
)  # fmt: skip
"""Types of fields that hold no nodes, as they are written in trees."""


def children(node: s.Node) -> list[s.Node]:
    """The nodes directly inside `node`, in the order of the text."""
    found: list[s.Node] = []
    for name in _INSIDE[node.__class__]:
        value = getattr(node, name)
        if value.__class__ is tuple:
            if value:
                _gather(value, found)
        elif isinstance(value, s.Node):
            found.append(value)
    return found


def _gather(values: tuple[object, ...], found: list[s.Node]) -> None:
    for value in values:
        if isinstance(value, s.Node):
            found.append(value)
        elif isinstance(value, tuple):
            _gather(cast("tuple[object, ...]", value), found)


def walk(node: s.Node) -> Iterator[s.Node]:
    """`node` and all nodes inside it, each before what is inside it."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        for name in _LAST_FIRST[node.__class__]:  # the first one is the next one
            value = getattr(node, name)
            if value is None:
                continue
            if value.__class__ is not tuple:
                if isinstance(value, s.Node):
                    left.append(value)
            elif value:
                _stack(value, left)


def _stack(values: tuple[object, ...], left: list[s.Node]) -> None:
    for value in reversed(values):
        if isinstance(value, s.Node):
            left.append(value)
        elif isinstance(value, tuple):
            _stack(cast("tuple[object, ...]", value), left)


def rebuild(node: N, rewrite: Callable[[s.Node], s.Node | tuple[s.Node, ...]]) -> N:
    """`node` with each child rewritten; the same object if nothing changed."""
    changes: dict[str, Any] = {}
    for name in _INSIDE[node.__class__]:
        before = getattr(node, name)
        if before.__class__ is tuple:
            after = _rebuilt(before, rewrite) if before else before
        elif isinstance(before, s.Node):
            after = rewrite(before)
        else:
            continue
        if after is not before:
            changes[name] = after
    return evolve(node, **changes) if changes else node


def _rebuilt(
    values: tuple[object, ...], rewrite: Callable[[s.Node], s.Node | tuple[s.Node, ...]]
) -> tuple[object, ...]:
    items: list[object] = []
    same = True
    for value in values:
        if isinstance(value, s.Node):
            after = rewrite(value)
            if isinstance(after, tuple):  # in the place of one
                items += after
                same = same and len(after) == 1 and after[0] is value
                continue
        elif isinstance(value, tuple):
            after = _rebuilt(cast("tuple[object, ...]", value), rewrite)
        else:
            after = value
        items.append(after)
        same = same and after is value
    return values if same else tuple(items)


_BINDING: Final = frozenset({
    s.Let, s.VarDecl, s.With, s.Bind, s.For, s.Comprehension, s.Lambda, s.ItemHandler, s.PhaseHandler, s.MarkHandler, s.Rate,
    s.MergeHandler, s.Fn, s.Const,
})  # fmt: skip
"""The classes of nodes that bind names; of most it is quick to tell that they do not."""


def binders(node: s.Node) -> tuple[str, ...]:
    """The names that this one node binds."""
    if node.__class__ not in _BINDING:
        return ()
    match node:
        case s.Let(name, _, _) | s.VarDecl(name, _, _) | s.With(name, _, _, _) | s.Bind(_, name):
            return (name,)
        case s.For(_, names, _, _) | s.Comprehension(_, names, _, _) | s.Lambda(names, _):
            return names
        case (
            s.ItemHandler(_, name, _)
            | s.PhaseHandler(_, _, name, _)
            | s.MarkHandler(name, _)
            | s.Rate(_, _, _, name, _)
        ):
            return (name,)
        case s.MergeHandler(sides, _):
            return ("key", *(name for _, name in sides))
        case s.Fn(name, params, _, _):
            return (name, *(p.name for p in params))
        case s.Const(name, _, _):
            return (name,)
        case _:
            return ()


def is_number(node: s.Node) -> bool:
    """Whether an expression or argument is a number or truth that is written out, or a list of such."""
    match node:
        case s.Int() | s.Float() | s.Bool() | s.Unary("-", s.Int() | s.Float()):
            return True
        case s.ListValue(items):
            return all(map(is_number, items))
        case _:
            return False


def names(node: s.Node) -> frozenset[str]:
    """Every name of a value or function that is used or bound inside `node`."""
    found: set[str] = set()
    for inner in walk(node):
        if inner.__class__ is s.Name:
            found.add(cast("s.Name", inner).name)
        elif inner.__class__ is s.Call:
            found.add(cast("s.Call", inner).function)
        elif inner.__class__ in _BINDING:
            found.update(binders(inner))
    return frozenset(found)


def free_names(node: s.Node, bound: frozenset[str] = frozenset()) -> Iterator[s.Name]:
    """The names of an expression or lambda that nothing inside it binds."""
    match node:
        case s.Name(name):
            if name not in bound:
                yield node
        case s.Lambda(params, body):
            yield from free_names(body, bound.union(params))
        case s.Comprehension(value, own, range_, cond):
            yield from free_names(range_, bound)
            inside = bound.union(own)
            yield from free_names(value, inside)
            if cond is not None:
                yield from free_names(cond, inside)
        case _:
            for child in children(node):
                yield from free_names(child, bound)


def fresh(name: str, taken: frozenset[str] | set[str]) -> str:
    """`name`, or the first of `name_1`, `name_2` ... that is not taken."""
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
