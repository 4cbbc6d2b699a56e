"""What evaluating an expression may do to places, and whether its value may be a part of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from river.lang import typed
from river.lang.operations import OPERATIONS, Borrows
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from backends.native.lower.frame import Frame


def changes(f: Frame, node: Any) -> bool:
    """Whether evaluating a tree may write to a place."""
    match node:
        case typed.Call(_, function, _, args, _):
            return any(p.ref for p in f.operator.fns[function].params) or any(changes(f, a) for a in args)
        case typed.Apply(_, name, args, _):
            return OPERATIONS[name].mutates is not None or any(changes(f, a) for a in args)
        case tuple():
            return any(changes(f, each) for each in node)  # pyright: ignore[reportUnknownVariableType]
        case typed.Literal():
            return False
        case typed.Node():
            fields = attrs.fields(type(node))
            return any(changes(f, getattr(node, a.name)) for a in fields if a.name not in ("span", "type"))
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
