"""Whether what an operator does at marks may show how many there are.

How many marks a queue carries means nothing: a backend sends them when it pleases, between batches or while nothing comes,
and leaves out what later ones say. So a handler of marks must do by many marks what it does by the last of them, and the handlers
of items what they do behind a mark at their key. That holds of an operator which first lets go of what lies before a key, in
one loop that the key only ends:

    fn expire(ref w: deque<T>, before: i64) { while len(w) > 0 and front(w).at < before { let v = pop_front(w); emit out v; } }
    on x(v) { expire($w, v.at); ... }
    on mark(k) { expire($w, k); mark out k; }

For what such a loop does up to one key and then up to a later one, it does up to the later one: its steps do not know the key,
and a step that an earlier key allows, a later one allows, too. Whether an operator breaks the marks that it has sent is another
matter: who reads its queue traps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.il.flow import is_closed
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, evaluate_const
from river.lang.operations import OPERATIONS, Measure
from river.lang.trees import effect, nodes
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Hashable

BELOW: Final = frozenset({Measure.LESS, Measure.AT_MOST})
ABOVE: Final = frozenset({Measure.MORE, Measure.AT_LEAST})


@frozen
class _Key:
    """Where a body finds the key: what is in a slot, or a field of it."""

    slot: int
    index: int | None = None

    def is_(self, expr: object) -> bool:
        """Whether an expression is the key itself."""
        match expr:
            case typed.Local(_, slot, _, _):
                return self.index is None and slot == self.slot
            case typed.Get(_, typed.Local(_, slot, _, _), index, _):
                return index == self.index and slot == self.slot
            case _:
                return False

    def free(self, *trees: typed.Node) -> bool:
        """Whether nothing in these trees reads what the key is in."""
        return not any(isinstance(node, typed.Local) and node.slot == self.slot for node in nodes(trees))


def obstacle(op: typed.Operator) -> str | None:
    """Why what `op` does may depend on how many marks it is told of; None if it cannot."""
    if op.mark is None:
        return None
    if not op.items and op.merge is None:
        return "items wait inside a rated or phase handler while marks pass"
    key, rest = _Key(0), list(op.mark.body.items)
    while rest and isinstance(rest[-1], typed.Mark) and _passes(rest[-1].value, key):
        rest.pop()
    while rest and _at_the_end(rest[-1], key):
        rest.pop()
    if not rest:
        return None
    step = _step(rest[0], key) if len(rest) == 1 and _lets_go(op, rest[0], key) else None
    if step is None:
        return (
            "beside passing them on, it does more than to let go, in one loop, of what lies before the mark"
        )
    handlers = [(op.ports[h.port].name, h.body, _key_of(op, h.port)) for h in op.items]
    if op.merge is not None:
        handlers.append(("merge", op.merge.body, key))
    for name, body, own in handlers:
        if own is None or not body.items or _step(body.items[0], own) != step:
            return f"its handler `on {name}` does not begin with the same, up to its own key"
    return None


def _key_of(op: typed.Operator, port: int) -> _Key | None:
    type_, by = op.ports[port].type, op.ports[port].by
    return _Key(0, type_.index(by)) if by is not None and isinstance(type_, t.Record) else None


def _passes(value: typed.Expr, key: _Key) -> bool:
    """Whether the last of many marks of this value is the greatest, and traps if any does: the key, or later by so much."""
    match value:
        case typed.Apply(_, _, (first, typed.Literal(_, int() as more)), _):
            return key.is_(first) and more >= 0 and effect(value).measure is Measure.SUM
        case _:
            return key.is_(value)


def _at_the_end(item: typed.Stmt, key: _Key) -> bool:
    """Whether a statement does nothing at any key but the greatest, which comes as a mark only once, at the end."""
    return isinstance(item, typed.Branch) and item.other is None and _is_last(item.cond, key)


def _is_last(cond: object, key: _Key) -> bool:
    """Whether a condition asks if the key is the greatest of its type."""
    match cond:
        case typed.Apply(_, _, (first, second), _) if effect(cond).measure is Measure.SAME:
            last = second if key.is_(first) else first
            if (
                isinstance(last, typed.Lambda)
                or not (key.is_(first) or key.is_(second))
                or not _is_written(last)
            ):
                return False
            try:
                return last.type in BOUNDS and evaluate_const(last) == BOUNDS[last.type][1]
            except Trap:
                return False
        case _:
            return False


def _is_written(expr: typed.Expr) -> bool:
    """Whether the value of an expression stands in the text."""
    return is_closed(expr) and not any(isinstance(node, typed.ConstRef | typed.Call) for node in nodes(expr))


# ------------------------------------------------------------------------------------------------------------ the loop


def _lets_go(op: typed.Operator, item: typed.Stmt, key: _Key) -> bool:
    """Whether a statement is a loop that the key only ends, or the call of a function which is one."""
    match item:
        case typed.Do(typed.Call(_, function, _, args, _)):
            fn = op.fns[function]
            given = tuple(zip(fn.params, args, strict=True))
            keys = [i for i, (param, arg) in enumerate(given) if not param.ref and key.is_(arg)]
            others = [pair for i, pair in enumerate(given) if i not in keys]
            whole = all(
                isinstance(arg, typed.State) if param.ref else _is_written(arg) for param, arg in others
            )
            match fn.body:
                case typed.Block((one,)):
                    return len(keys) == 1 and whole and _loop(one, _Key(keys[0]))
                case _:
                    return False
        case _:
            return _loop(item, key)


def _loop(item: typed.Stmt, key: _Key) -> bool:
    match item:
        case typed.While(loop, cond, body):
            if not _pure(cond) or not _allows(cond, key, more=True):
                return False
            steps = list(body.items)
            while steps and _looks(steps[0], loop, key):
                steps.pop(0)
            left = any(
                isinstance(node, typed.Return) or (isinstance(node, typed.Break) and node.loop == loop)
                for node in nodes(tuple(steps))
            )
            return key.free(*steps) and not left
        case typed.Branch(
            typed.Bind(typed.State() | typed.Local(ref=True) as place, _),
            typed.Block((typed.Branch(cond, typed.Block((*steps, typed.Assign(emptied, none))), None),)),
            None,
        ):  # it is done once: then there is nothing any more to be bound
            once = emptied == place and isinstance(none, typed.Literal) and none.value is None
            left = any(isinstance(node, typed.Return) for node in nodes(tuple(steps)))
            plain = not isinstance(cond, typed.Bind) and _pure(cond) and _allows(cond, key, more=True)
            return once and plain and not left and key.free(*steps)
        case _:
            return False


def _looks(item: typed.Stmt, loop: int, key: _Key) -> bool:
    """Whether a statement changes nothing, and ends the loop if at all then at no later key than others."""
    match item:
        case typed.Let(_, _, value) | typed.Var(_, _, value):
            return _pure(value) and key.free(value)
        case typed.Branch(cond, typed.Block((typed.Break(left),)), None) if not isinstance(cond, typed.Bind):
            return left == loop and _pure(cond) and _allows(cond, key, more=False)
        case _:
            return False


def _pure(expr: typed.Expr) -> bool:
    return not any(
        isinstance(node, typed.Call)
        or (isinstance(node, typed.Apply) and OPERATIONS[node.operation].mutates is not None)
        for node in nodes(expr)
    )


def _allows(cond: typed.Expr, key: _Key, *, more: bool) -> bool:
    """Whether a condition that holds at a key does so at later ones, too (`more`), or at earlier ones.

    Nor may it trap at a key where it does not at the later one.
    """
    match cond:
        case _ if key.free(cond):
            return True
        case typed.Logic(_, op, left, right):
            skips = op == (
                "or" if more else "and"
            )  # the right side may then be evaluated at an earlier key alone
            safe = not skips or not any(getattr(node, "site", None) is not None for node in nodes(right))
            return safe and _allows(left, key, more=more) and _allows(right, key, more=more)
        case typed.Apply(_, _, (first, second), _) if first.type in BOUNDS:
            measure = effect(cond).measure
            if key.is_(second) and key.free(first):
                return measure in (BELOW if more else ABOVE)
            if key.is_(first) and key.free(second):
                return measure in (ABOVE if more else BELOW) or (more and _is_last(cond, key))
            return more and _is_last(cond, key)
        case _:
            return False


# ---------------------------------------------------------------------------------------------------- the same, elsewhere


def _step(item: typed.Stmt, key: _Key) -> Hashable:
    """What a statement does up to the key, wherever the key is from; None if it cannot be told."""
    match item:
        case typed.Do(typed.Call(_, function, _, args, _)):
            found = tuple(None if key.is_(arg) else arg for arg in args)
            return (function, found) if all(map(key.free, filter(None, found))) else None
        case typed.Branch(typed.Bind(value, slot), typed.Block((typed.Branch(cond, then, None),)), None):
            limit = _limit(cond, key)
            return None if limit is None or not key.free(value, then) else (value, slot, limit, then)
        case _:
            return None


def _limit(cond: typed.Expr | typed.Bind, key: _Key) -> Hashable:
    """A condition on the key, wherever that is from, and at any key but the last."""
    match cond:
        case typed.Logic(_, "or", left, right) if _is_last(right, key):
            return _limit(left, key)
        case typed.Apply(_, operation, args, _):
            return operation, tuple(None if key.is_(arg) else arg for arg in args)
        case _:
            return None
