"""What evaluating an expression may do to places, and whether its value may be a part of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.lang import typed
from river.lang.operations import OPERATIONS, Borrows
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from backends.native.lower.frame import Frame


def changes(f: Frame, node: typed.Node | tuple[typed.Node, ...]) -> bool:
    """Whether evaluating a tree may write to a place."""
    return any(_changes(f, each) for each in nodes(node))


def _changes(f: Frame, node: typed.Node) -> bool:
    match node:
        case typed.Call(_, function):
            return any(p.ref for p in f.operator.fns[function].params)
        case typed.Apply(_, name):
            return OPERATIONS[name].mutates is not None
        case _:
            return False


def is_short(fn: typed.Fn) -> bool:
    """Whether a function neither calls functions of the program nor goes round in loops of its own statements."""
    return not any(isinstance(each, typed.Call | typed.For | typed.While) for each in nodes(fn.body))


def borrows(expr: typed.Expr) -> bool:
    """Whether the value may be a part of a place."""
    match expr:
        case typed.Local() | typed.State() | typed.ConstRef() | typed.Get() | typed.At() | typed.Literal():
            return True
        case typed.Some(_, value):
            return borrows(value)
        case typed.If(_, _, then, other):
            return borrows(then) or borrows(other)
        case typed.Apply():
            return effect(expr).borrows is not Borrows.NOTHING
        case _:
            return False
