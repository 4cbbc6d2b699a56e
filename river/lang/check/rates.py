"""How many items a body emits: an interval, found without running it."""

from __future__ import annotations

from typing import assert_never

from river.lang import typed
from river.lang import types as t
from river.lang.trees import operands

Interval = tuple[int, int | None]  # at least, at most (None: unbounded or unknown)
ZERO: Interval = (0, 0)


def emitted(body: typed.Block, out: int, fns: tuple[typed.Fn, ...]) -> Interval:
    """The least and greatest number of items that `body` emits to output `out`, over all paths that do not trap."""
    return _Counter(out, fns, ()).block(body)


def unproven(op: typed.Operator) -> tuple[tuple[int, int], ...]:
    """Outputs with the rate that they state, where the bodies do not show that every firing keeps it."""
    handlers = (*op.items, *((op.rated,) if op.rated is not None else ()), *op.phases)
    return tuple(
        (i, out.push)
        for i, out in enumerate(op.outs)
        if out.push is not None
        if any(emitted(handler.body, i, op.fns) != (out.push, out.push) for handler in handlers)
    )


class _Counter:
    def __init__(self, out: int, fns: tuple[typed.Fn, ...], open_: tuple[int, ...]) -> None:
        self.out = out
        self.fns = fns
        self.open = open_
        self.calls = any(fn.emits for fn in fns)

    def block(self, body: typed.Block) -> Interval:
        low, high = ZERO
        for item in body.items:
            a, b = self.statement(item)
            if _may_leave(item) and not isinstance(item, typed.Return):
                return low, None  # what follows may be skipped: only what was emitted before is sure
            low, high = low + a, None if high is None or b is None else high + b
            if isinstance(item, typed.Return):
                break
        return low, high

    def statement(self, item: typed.Stmt) -> Interval:
        low, high = self.structure(item)
        return low, None if self.calls and any(map(self.emits, _expressions(item))) else high

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
            case typed.For(_, _, _, range_, body):
                return _times(_trips(range_), self.block(body))
            case typed.While(_, _, body):
                return 0, (0 if self.block(body) == ZERO else None)
            case typed.Do(typed.Call(_, function, _, _, _)):
                fn = self.fns[function]
                if function in self.open:
                    return 0, None
                if not fn.emits or not isinstance(fn.body, typed.Block):
                    return ZERO
                return _Counter(self.out, self.fns, (*self.open, function)).block(fn.body)
            case _:
                return ZERO

    def emits(self, expr: typed.Expr | typed.Lambda | typed.Counted) -> bool:
        """Whether evaluating the expression calls a function that emits."""
        if isinstance(expr, typed.Call) and self.fns[expr.function].emits:
            return True
        return any(map(self.emits, operands(expr)))


def _expressions(item: typed.Stmt) -> tuple[typed.Expr | typed.Lambda | typed.Counted, ...]:
    """What a statement evaluates itself, its blocks and a function called for its effect aside."""
    match item:
        case typed.Let(_, _, value) | typed.Var(_, _, value) | typed.Emit(_, value) | typed.Mark(_, value):
            return (value,)
        case typed.Assign(place, value):
            return (place, value)
        case typed.With(_, _, container, key, default, _, _):
            return (container, key) if default is None else (container, key, default)
        case typed.Branch(cond, _, _):
            return (cond.value if isinstance(cond, typed.Bind) else cond,)
        case typed.While(_, cond, _):
            return (cond,)
        case typed.For(_, _, _, range_, _):
            return (range_,)
        case typed.Return(value):
            return () if value is None else (value,)
        case typed.Do(call):
            return call.args
        case typed.Drop() | typed.Break() | typed.Continue() | typed.Trap():
            return ()
        case _:
            assert_never(item)


def _may_leave(item: typed.Stmt) -> bool:
    """Whether control may leave the enclosing block in the middle of the statement."""
    match item:
        case typed.Return() | typed.Break() | typed.Continue():
            return True
        case typed.Branch(_, then, other):
            return any(map(_may_leave, then.items)) or (
                other is not None and any(map(_may_leave, other.items))
            )
        case typed.With(_, _, _, _, _, body, _) | typed.For(_, _, _, _, body) | typed.While(_, _, body):
            return any(map(_may_leave, body.items))
        case _:
            return False


def _trips(range_: typed.Counted | typed.Expr) -> Interval:
    match range_:
        case typed.Counted(typed.Literal(_, low), typed.Literal(_, high)):
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
