"""What ties a nested query to the block around it: its keys, which are equal to values of that block, and the join by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql.blocks import Names, aggregates, column_of, has_nested, mapped
from frontends.sql import syntax as q
from frontends.sql.operations import conjuncts
from river.classes import evolve, frozen
from river.il.trees import children
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.cql.unnesting import Unnesting
    from river.source import Span


@frozen
class Closed:
    """A block that reads nothing of the block around it, and what ties the two: key of the one, value of the other.

    `same`: also none is equal to none.
    """

    block: q.Select
    keys: tuple[tuple[s.Expr, s.Expr], ...] = ()
    same: bool = False

    def keyed(self) -> q.Select:
        """The block with its groups told apart by the keys, too."""
        block = self.block
        keys = tuple(key for key, _ in self.keys)
        grouped = block.group or any(True for item in block.items for _ in aggregates(item))
        return evolve(block, group=(*block.group, *keys)) if grouped else block

    def tied(self, label: str, names: list[str]) -> list[s.Expr]:
        """The conditions that a row of the block around it is joined by."""
        sides = [(value, column_of(label, name)) for (_, value), name in zip(self.keys, names, strict=True)]
        if self.same:
            return [s.Call("alike", side) for side in sides]
        return [s.Binary("==", *side, span=side[0].span) for side in sides]


def closed(work: Unnesting, body: q.Select) -> Closed:
    """A nested block as one that reads nothing of the block around it."""
    inner = work.names_of(body)
    found = _reads(work, body, inner)
    if not found:
        return Closed(body)
    if all(source.joining is None or source.joining.kind == "inner" for source in body.sources):
        moved = [
            e
            for x in body.sources
            if x.joining is not None and x.joining.on is not None
            for e in conjuncts(x.joining.on)
        ]
        sources = tuple(
            evolve(x, joining=None if x.joining is None else evolve(x.joining, on=None)) for x in body.sources
        )  # fmt: skip
        where = [*moved, *(conjuncts(body.where) if body.where is not None else ())]
        body = evolve(body, sources=sources, where=s.joined("and", where) if where else None)
    keys: list[tuple[s.Expr, s.Expr]] = []
    kept: list[s.Expr] = []
    for conjunct in conjuncts(body.where) if body.where is not None else ():
        key = _key(work, conjunct, inner)
        kept.append(conjunct) if key is None else keys.append(key)
    tied = evolve(body, where=s.joined("and", kept) if kept else None)
    if not _reads(work, tied, inner):
        return Closed(tied, tuple(keys))
    return _over_values(work, body, found, inner)


def join(work: Unnesting, name: str, label: str, on: list[s.Expr], kind: str, span: Span | None) -> None:
    """One more source."""
    joining = q.Joining(kind, s.joined("and", on) if on else None, span=span)
    work.added.append(q.Source(name, label, joining, span=span))


def _key(work: Unnesting, conjunct: s.Expr, inner: Names) -> tuple[s.Expr, s.Expr] | None:
    """Both sides of an equality between a nested query and the block around it."""
    match conjunct:
        case s.Binary("==", a, b) if not has_nested(conjunct):
            for own, other in ((a, b), (b, a)):
                if not _reads(work, own, inner) and _reads(work, other, inner) and not _is_of(other, inner):
                    return (own, other) if _is_of(own, inner) else None
        case _:
            pass
    return None


def _over_values(work: Unnesting, body: q.Select, found: list[s.Expr], inner: Names) -> Closed:
    """A nested block joined with the different values of the columns that it reads of the block around it."""
    names = [work.fresh(each.name if isinstance(each, s.Name | s.Member) else "value") for each in found]
    shown = tuple(q.Item(each, name, span=each.span) for each, name in zip(found, names, strict=True))
    where = s.joined("and", work.plain) if work.plain else None
    sources, _ = work.conditions()
    values = q.Select(shown, sources, where, distinct=True, span=body.span)
    name, label = work.declared(values), work.label("around")

    def read(expr: s.Expr) -> s.Expr:
        at = next(i for i, other in enumerate(found) if work.names.place(expr) == work.names.place(other))
        return column_of(label, names[at], expr.span)

    read_there = cast("q.Select", mapped(body, (inner,), work.names, read, work.names_of))
    around = q.Source(name, label, span=body.span)
    early = any(x.joining is not None and x.joining.kind != "inner" for x in body.sources)
    first, *rest = read_there.sources
    first = evolve(first, joining=q.Joining("inner", span=body.span)) if early else first
    sources = (around, first, *rest) if early else (*read_there.sources, around)
    keys = tuple((column_of(label, name, each.span), each) for name, each in zip(names, found, strict=True))
    return Closed(evolve(read_there, sources=sources), keys, same=True)


def _is_of(node: s.Node, inner: Names) -> bool:
    """Whether an expression names a column of the nested query."""
    match node:
        case s.Name() | s.Member(s.Name()):
            return inner.has(node)
        case _:
            return any(_is_of(child, inner) for child in children(node))


def _reads(work: Unnesting, node: s.Node, inner: Names) -> list[s.Expr]:
    """The columns of the block around that a part of a nested query reads."""
    found: list[s.Expr] = []

    def note(expr: s.Expr) -> s.Expr:
        if all(work.names.place(expr) != work.names.place(other) for other in found):
            found.append(expr)
        return expr

    mapped(node, (inner,), work.names, note, work.names_of)
    return found
