"""How many items a body emits: an interval, found without running it.

It is put together from the intervals of the statements as the text is from these, each read once: there is no fact of any
value in it, and nothing to read again until it does not change (`river.lang.dataflow`).
"""

from __future__ import annotations

from operator import add, mul, sub
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.lang import typed
from river.lang import types as t
from river.lang.trees import children, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Interval = tuple[int, int | None]  # at least, at most (None: unbounded or unknown)
ZERO: Interval = (0, 0)
_Leap = tuple[type[typed.Node], int | None]  # return, break or continue; of which loop


def emitted(body: typed.Block, out: int, fns: tuple[typed.Fn, ...]) -> Interval:
    """The least and greatest number of items that `body` emits to output `out`, over all paths that do not trap."""
    return _Counter(out, fns, frozenset(i for i, fn in enumerate(fns) if fn.emits)).block(body)


def unproven(op: typed.Operator) -> tuple[tuple[int, int], ...]:
    """Outputs with the rate that they state, where the bodies do not show that every firing keeps it."""
    handlers = (*op.items, *((op.rated,) if op.rated is not None else ()), *op.phases)
    return tuple(
        (i, out.push)
        for i, out in enumerate(op.outs)
        if out.push is not None
        if any(emitted(handler.body, i, op.fns) != (out.push, out.push) for handler in handlers)
    )


@define
class _Counter:
    """`emitting`: the functions that emit; `open`: those that are being read; `known`: what those emit that were read.

    `left`: by the place of a node in memory, what `leaps` has found of it: blocks stand in blocks, and each asks of all of it.
    Once a function has met itself (`circular`) what is found depends on which are open, and is not kept.
    """

    out: int
    fns: tuple[typed.Fn, ...]
    emitting: frozenset[int]
    open: set[int] = field(factory=set[int])
    known: dict[int, Interval] = field(factory=dict[int, Interval])
    left: dict[int, frozenset[_Leap]] = field(factory=dict[int, "frozenset[_Leap]"])
    circular: bool = False

    def block(self, body: typed.Block) -> Interval:
        (low, high), sure = ZERO, True
        for item in body.items:
            a, b = self.statement(item)
            low, high = low + sure * a, None if high is None or b is None else high + b
            if isinstance(item, typed.Return | typed.Break | typed.Continue):
                break
            sure = sure and not self.leaps(item)  # else what follows may be skipped
        return low, high

    def statement(self, item: typed.Stmt) -> Interval:
        low, high = self.structure(item)
        return low, None if self.calls(item) else high

    def structure(self, item: typed.Stmt) -> Interval:
        """The items of a statement without those of functions that its expressions call."""
        match item:
            case typed.Emit(out, _):
                return (1, 1) if out == self.out else ZERO
            case typed.Branch(_, then, other):
                a, b = self.block(then)
                x, y = ZERO if other is None else self.block(other)
                return min(a, x), None if b is None or y is None else max(b, y)
            case typed.With(_, _, _, _, _, body, _):
                return self.block(body)
            case typed.For(loop, _, _, range_, body):
                low, high = trips(range_)
                ended = any(leap != (typed.Continue, loop) for leap in self.leaps(body))
                return _times((0 if ended else low, high), self.block(body))
            case typed.While(_, _, body):
                return 0, (0 if self.block(body) == ZERO else None)
            case typed.Do(typed.Call(_, function)):
                return self.called(function)
            case _:
                return ZERO

    def called(self, function: int) -> Interval:
        """The items of a function that is called for its effect."""
        if function in self.open:
            self.circular = True
            return 0, None
        body = self.fns[function].body
        if function not in self.emitting or not isinstance(body, typed.Block):
            return ZERO
        found = self.known.get(function)
        if found is None:
            self.open.add(function)
            found = self.block(body)
            self.open.discard(function)
            if not self.circular:
                self.known[function] = found
        return found

    def calls(self, item: typed.Stmt) -> bool:
        """Whether an expression that the statement evaluates itself calls a function that emits."""
        if not self.emitting:
            return False
        parts = item.call.args if isinstance(item, typed.Do) else tuple(children(item))
        own = tuple(part for part in parts if not isinstance(part, typed.Block))
        return any(isinstance(node, typed.Call) and node.function in self.emitting for node in nodes(own))

    def leaps(self, item: typed.Node) -> frozenset[_Leap]:
        """How control leaves a statement or block, but for ends of loops inside."""
        found = self.left.get(id(item))
        if found is None:
            found = self.left[id(item)] = self.leaps_now(item)
        return found

    def leaps_now(self, item: typed.Node) -> frozenset[_Leap]:
        match item:
            case typed.Return():
                return frozenset({(typed.Return, None)})
            case typed.Break(loop) | typed.Continue(loop):
                return frozenset({(item.__class__, loop)})
            case typed.Block(items):
                return frozenset[_Leap]().union(*map(self.leaps, items))
            case typed.For(loop, _, _, _, body) | typed.While(loop, _, body):
                return frozenset(leap for leap in self.leaps(body) if leap[1] != loop)
            case typed.With() | typed.Branch():
                blocks = (each for each in children(item) if isinstance(each, typed.Block))
                return frozenset[_Leap]().union(*map(self.leaps, blocks))
            case _:
                return frozenset()


def bounds(range_: typed.Counted) -> tuple[int, int] | None:
    """The bounds of a range, where they are numbers: literals, or sums, products and quotients of those."""
    low, high = _number(range_.low), _number(range_.high)
    return None if low is None or high is None else (low, high)


def _number(expr: typed.Expr) -> int | None:
    """The value of an expression of numbers, where no step of it leaves the smallest of the types."""
    match expr:
        case typed.Literal(_, int(value)):
            return value
        case typed.Apply(_, name, (one, other), _) if (
            name in _STEPS and not isinstance(one, typed.Lambda) and not isinstance(other, typed.Lambda)
        ):
            a, b = _number(one), _number(other)
            found = None if a is None or b is None or (name == "div.trunc" and not b) else _STEPS[name](a, b)
            return found if found is not None and abs(found) < 1 << 31 else None
        case _:
            return None


_STEPS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": add, "-": sub, "*": mul, "div.trunc": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
}  # fmt: skip


def trips(range_: typed.Counted | typed.Expr) -> Interval:
    """How many turns a loop over a range, or over the items of a container, has."""
    match range_:
        case typed.Counted() if (found := bounds(range_)) is not None:
            low, high = found
            return max(0, high - low), max(0, high - low)
        case typed.Counted():
            return 0, None
        case expr if isinstance(expr.type, t.Array):
            return expr.type.size, expr.type.size
        case _:
            return 0, None


def _times(a: Interval, b: Interval) -> Interval:
    high = 0 if 0 in (a[1], b[1]) else None if a[1] is None or b[1] is None else a[1] * b[1]
    return a[0] * b[0], high
