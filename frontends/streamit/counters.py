"""`while` loops that count: they are the `for` loops that somebody else would have written."""

from __future__ import annotations

from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from frontends.streamit import typed as ty
from frontends.streamit.trees import breaks, named, updated
from river.classes import evolve
from river.il.trees import rebuild, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from river.lang import syntax as s

COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = MappingProxyType(
    {"<": lt, "<=": le, ">": gt, ">=": ge}
)

STEPS: Final = ("+%", "-%")


def as_for(loop: ty.While | ty.For, before: Sequence[ty.Stmt]) -> ty.For | None:
    """`while (i < n) { ...; i++; }` as `for (i = 0; i < n; i++) ...`, wherever in it the step is.

    `before`: the statements in front of it in the same block, which may say what the counter begins with; if they do not, that is
    the counter itself. A `for` without a beginning is such a loop, too.
    """
    match loop.cond:
        case ty.Apply(_, compare, (ty.Local(ty.INT, key) as counter, bound)) if compare in COMPARE:
            pass
        case _:
            return None
    start = _start(counter, before)
    if isinstance(loop, ty.For):
        step, body = loop.steps, loop.body
        if loop.first:
            return None
    else:
        if loop.late and not _turns(compare, start, bound):
            return None
        found = None if breaks(loop.body, ty.Continue, (ty.For, ty.While)) else _step(loop.body.items, key)
        if found is None:
            return None
        step, body = (found[0],), evolve(loop.body, items=found[1])
    place = evolve(counter)  # one of its own: what is stored is told from what is read by the object
    begin = ty.Do(ty.Update(ty.INT, place, None, start, span=loop.span), span=loop.span)
    return ty.For((begin,), loop.cond, step, body, span=loop.span)


def _start(counter: ty.Local, before: Sequence[ty.Stmt]) -> ty.Expr:
    """What a counter begins with: a number, if one is given to it last."""
    for item in reversed(before):
        names = item.items if isinstance(item, ty.Block) else ()
        several = all(isinstance(each, ty.Declare) for each in names)  # `int a = 1, b = a;`
        for each in reversed(names if names and several else (item,)):
            match each:
                case ty.Declare(counter.key, _, None):
                    return ty.Constant(ty.INT, 0, span=each.span)
                case ty.Declare(counter.key, _, ty.Constant() as value) | ty.Do(
                    ty.Update(_, ty.Local(_, counter.key), None, ty.Constant() as value)
                ):
                    return value
                case _ if counter.key in updated(each):
                    return counter
                case _:
                    pass
    return counter


def _turns(compare: str, start: ty.Expr, bound: ty.Expr) -> bool:
    """Whether the body surely runs."""
    match start, bound:
        case ty.Constant(_, low), ty.Constant(_, high):
            return COMPARE[compare](low, high)
        case _:
            return False


def _step(items: tuple[ty.Stmt, ...], key: str) -> tuple[ty.Update, tuple[ty.Stmt, ...]] | None:
    """What moves the counter in each turn, once, and what else is done in a turn that ends with it."""
    for at, item in enumerate(items):
        step = _moves(item.value, key) if isinstance(item, ty.Do) else None
        if step is not None:
            return step, (*items[:at], *(_behind(each, step) for each in items[at + 1 :]))
    return _within(items, key)


def short(value: ty.Expr) -> ty.Expr:
    """`i = i + 1` as `i += 1`."""
    match value:
        case ty.Update(
            ty.INT, ty.Local(_, key), None, ty.Apply(_, operation, (ty.Local(_, read), ty.Constant() as size))
        ) if key == read and operation in STEPS:
            return evolve(value, operation=operation, value=size)
        case _:
            return value


def _moves(value: ty.Expr, key: str) -> ty.Update | None:
    match found := short(value):
        case ty.Update(ty.INT, ty.Local(_, moved), operation, ty.Constant()) if moved == key:
            return found if operation in STEPS else None
        case _:
            return None


def _behind(item: ty.Stmt, step: ty.Update) -> ty.Stmt:
    """A statement behind the step, in front of it: where it reads the counter, it means what that will be."""
    key = named(step.place)

    def moved(node: s.Node) -> s.Node:
        return _stepped(step) if isinstance(node, ty.Local) and node.key == key else rebuild(node, moved)

    return item if key in updated(item) else rebuild(item, moved)


def _stepped(step: ty.Update) -> ty.Expr:
    assert step.operation is not None  # noqa: S101 - it is a step
    return ty.Apply(step.type, step.operation, (step.place, step.value), span=step.span)


def _within(items: tuple[ty.Stmt, ...], key: str) -> tuple[ty.Update, tuple[ty.Stmt, ...]] | None:
    """`a[i++] = pop();`, where that is all that a turn says of the counter."""
    said = [node for item in items for node in walk(item) if isinstance(node, ty.Local) and node.key == key]
    if len(said) != 1:
        return None
    for item in items:
        nodes = list(walk(item))
        found = [node for node in nodes if isinstance(node, ty.Update) and _moves(node, key) is not None]
        if not found or not isinstance(item, ty.Do | ty.Push | ty.Print | ty.Declare):
            continue
        if any(isinstance(node, ty.Logic | ty.Choose) for node in nodes):
            return None
        (step,) = found

        def told(node: s.Node, step: ty.Update = step) -> s.Node:
            if node is step:
                return step.place if step.after else _stepped(step)
            return rebuild(node, told)

        return step, tuple(rebuild(each, told) for each in items)
    return None
