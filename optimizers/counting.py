"""Loops that count alike become one, so that each has the time in which the others wait for their sums.

Statements are put into another order, in which none goes before another that it depends on: all that is ready first, then all
loops of one range. What a name gets is computed as before, in the same order. Bodies that do more than compute local names and
emit are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import evolve, frozen
from river.il.trees import binders, rebuild, walk
from river.lang import syntax as s
from river.lang.scope import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def together(body: s.Block) -> s.Block:
    """The body with its counted loops of equal ranges made one, where nothing stands between them."""
    statements = [_Step.of(statement) for statement in body.items]
    if sum(step.range is not None for step in statements) < 2 or not all(step.plain for step in statements):
        return body
    return s.Block(tuple(_ordered(statements)), span=body.span)


@frozen
class _Step:
    """A statement, the local names that it reads, and those that it makes or writes. `range`: of a counted loop."""

    statement: s.Stmt
    reads: frozenset[str]
    writes: frozenset[str]
    plain: bool
    sends: bool
    range: tuple[int, int] | None

    @classmethod
    def of(cls, statement: s.Stmt) -> _Step:
        """What is known of a statement."""
        nodes = list(walk(statement))
        plain = all(isinstance(node, _PLAIN) for node in nodes)
        reads = frozenset(node.name for node in nodes if isinstance(node, s.Name))
        writes = frozenset(name for node in nodes for name in _written(node))
        sends = any(isinstance(node, s.Emit) for node in nodes)
        return cls(statement, reads, writes, plain, sends, None if sends else _range(statement))

    def before(self, other: _Step) -> bool:
        """Whether it must stay before a later statement."""
        clash = self.writes & (other.reads | other.writes) or self.reads & other.writes
        return bool(clash) or (self.sends and other.sends)


_PLAIN = (
    s.Let, s.VarDecl, s.Assign, s.For, s.Emit, s.Block, s.Range, s.Name, s.Index, s.Binary, s.Unary, s.Int, s.Float, s.Bool,
    s.ListValue, s.Member, s.IfExpr, s.If, s.TypeName,
)  # fmt: skip
"""What may be moved: it calls nothing, which might write to what it is given, and does not touch variables."""


def _written(node: s.Node) -> Iterator[str]:
    match node:
        case s.Assign(place, _):
            while isinstance(place, s.Index | s.Member):
                place = place.value
            if isinstance(place, s.Name):
                yield place.name
        case _:
            yield from binders(node)


def _range(statement: s.Stmt) -> tuple[int, int] | None:
    match statement:
        case s.For(None, (_,), s.Range(low, high), _):
            bounds = integer(low), integer(high)
            return None if None in bounds else (bounds[0] or 0, bounds[1] or 0)
        case _:
            return None


def _ordered(steps: Sequence[_Step]) -> Iterator[s.Stmt]:
    """The statements, each after those that it depends on; loops last of what is ready, those of a range as one."""
    after: list[list[int]] = [[] for _ in steps]
    waits = [0] * len(steps)
    for i, step in enumerate(steps):
        for k in range(i):
            if steps[k].before(step):
                after[k].append(i)
                waits[i] += 1
    ready = [i for i, count in enumerate(waits) if not count]
    while ready:
        simple = [i for i in ready if steps[i].range is None]
        chosen = simple[:1] or [i for i in ready if steps[i].range == steps[ready[0]].range]
        for i in chosen:
            ready.remove(i)
            for k in after[i]:
                waits[k] -= 1
                if not waits[k]:
                    ready.append(k)
        ready.sort()
        yield steps[chosen[0]].statement if len(chosen) == 1 else _one([steps[i].statement for i in chosen])


def _one(loops: Sequence[s.Stmt]) -> s.For:
    """One loop for several that count alike and share no name that one of them writes."""
    first, *others = [loop for loop in loops if isinstance(loop, s.For)]
    items = list(first.body.items)
    (counter,) = first.names
    for other in others:
        (own,) = other.names

        def rewrite(node: s.Node, own: str = own) -> s.Node:
            return (
                evolve(node, name=counter)
                if node == s.Name(own)
                else rebuild(node, lambda n: rewrite(n, own))
            )

        items += rebuild(other.body, rewrite).items
    return evolve(first, body=s.Block(tuple(items)))
