"""Operators that only pass on: what they send is made of parts of their item, and of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

Path = tuple[int, ...]
"""Positions of fields, from the item inwards."""


@frozen
class ListedParts:
    """`[{k: r.k} for r in x.rows]`: all items of the list at `list`, of each the parts at `parts`."""

    list: Path
    parts: tuple[Path, ...]


Parts = tuple["Path | ListedParts | typed.Literal | typed.MakeList", ...]
"""What an item is made of, in order: parts of the item that came in, rows of its lists, constants, and empty lists."""


def forwarded(op: typed.Operator) -> Sequence[tuple[int, Parts]] | None:
    """What goes to each output, if all that an operator does is to send, once at most, fields of its item and constants."""
    if len(op.items) != 1 or op.mark is not None:
        return None
    sent: list[tuple[int, Parts]] = []
    for item in op.items[0].body.items:
        parts = _parts(item.value) if isinstance(item, typed.Emit) else None
        if parts is None or not isinstance(item, typed.Emit):
            return None
        sent.append((item.out, parts))
    return sent if len({out for out, _ in sent}) == len(sent) else None


def _parts(expr: typed.Expr) -> Parts | None:
    """The parts of a value, if it is made of nothing else."""
    match expr:
        case typed.Literal(type_):
            return (expr,) if isinstance(type_, t.Primitive) and type_ != t.FSUM else None
        case typed.MakeList(t.List(), ()):
            return (expr,)
        case typed.Comprehension(_, made, (row,), _, rows, None) if isinstance(rows, typed.Local | typed.Get):
            where, parts = _path(rows), _paths(made, row)
            listed = isinstance(rows.type, t.List)
            return (
                (ListedParts(where, parts),) if listed and where is not None and parts is not None else None
            )
        case typed.MakeRecord(_, values, _):
            found = [_parts(value) for value in values]
            return None if None in found else tuple(part for parts in found for part in parts or ())
        case typed.Local() | typed.Get():
            path = _path(expr)
            return None if path is None else (path,)
        case _:
            return None


def _paths(expr: typed.Expr, row: int) -> tuple[Path, ...] | None:
    """The parts of the row in a slot that a value consists of, if it is made of nothing else."""
    if isinstance(expr, typed.MakeRecord):
        found = [_paths(value, row) for value in expr.values]
        return None if None in found else tuple(path for paths in found for path in paths or ())
    path = _path(expr, row)
    return None if path is None else (path,)


def _path(expr: typed.Expr, of: int = 0) -> Path | None:
    """Where in the item, or in what else stands in a slot, a value stands."""
    match expr:
        case typed.Local(_, slot, _, _):
            return () if slot == of else None
        case typed.Get(_, inner, index, _) if isinstance(inner.type, t.Record | t.Tuple):
            before = _path(inner, of)
            return None if before is None else (*before, index)
        case _:
            return None
