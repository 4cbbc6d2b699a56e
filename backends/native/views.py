"""Views as machine code: the rows of a variable in native memory, as columns.

A view is compiled as an operator that is fired on the places of entries of the map, or on that of the whole value: its function,
with what it returns sent row by row. So rows come as columns of an output, a trap leaves the rows of its entry out, and entries
may be cut into parts that are made by anybody, in any order.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from backends.native.contract import NotCompiled, Reason, handlers_of
from backends.native.explain import explained
from backends.native.jit import host, level
from backends.native.layout import Unsupported
from backends.native.operator import NativeOperator
from backends.native.places import PLACES, addresses, behind, walk
from backends.native.ranking import ranking
from backends.native.shared import ModuleText, shared
from backends.native.spelled import spelled
from river.aside import Aside
from river.classes import evolve, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.batch import Batch
    from backends.native.operator import NativeVariable, Refused
    from river.il.graph import View

SLICE: Final = 1 << 15
"""Entries that are fired on in one call: who waits may look in between."""

MANY: Final = 1 << 18
"""Rows from which on another thread gets memory for some of them."""

_HANDLER: Final = "item.0"


@frozen(eq=False)
class NativeView:
    """The code of a view of variables of a type."""

    native: NativeOperator
    by_entry: bool

    def rows(
        self, variables: Sequence[NativeVariable], seen: Callable[[int, int], None], workers: int = 1
    ) -> Batch:
        """The rows of all entries of some variables, in their order.

        `seen` is told again and again how many entries are done, of how many. The rows keep the variables, whose texts they
        share; these stay as they are meanwhile. With several workers another thread gets memory for the second half of them,
        which takes as long as to make them. Raises: Trap.
        """
        places = [addresses(self.native, variable, by_entry=self.by_entry) for variable in variables]
        many, block = sum(map(len, places)), self.native.outputs[0]
        block.expect(many)  # most send a row for each
        ahead = (
            Aside(partial(block.touch, many // 2, many), "river-rows")
            if workers > 1 and many >= MANY
            else None
        )
        try:
            self._fire(variables, places, seen)
        finally:
            if ahead is not None:
                ahead.done(None)
        for _, batch, _ in self.native.take([variables]):
            return batch
        return block.take()

    def _fire(
        self, variables: Sequence[NativeVariable], places: Sequence[Any], seen: Callable[[int, int], None]
    ) -> None:
        """Sends the rows of entries of variables at some places."""
        many, done = sum(map(len, places)), 0
        for variable, found in zip(variables, places, strict=True):
            self.native.share(0, variable)
            at = ctypes.addressof(found)
            for start in range(0, len(found), SLICE):
                stop = min(start + SLICE, len(found))
                fired = self.native.fire(_HANDLER, (at,), start, stop)
                if fired.trap is not None:
                    raise explained(self.native.operator, fired.trap)
                seen(done + stop, many)
            done += len(found)


def compile_view(view: View, type_: t.Type, *, debug: bool = False) -> NativeView | Refused:
    """The machine code of a view of a variable of a type, and that for the order of its rows; or why there is none."""
    from backends.native.operator import Refused

    operator, parts = _operator(view, type_)
    effort = 0 if debug else level()

    def make() -> ModuleText:
        from backends.native.lower.batches import Lowered, lower

        lowered = lower(operator, host().architecture, debug=debug, lend=True, parts=parts)
        if not isinstance(lowered, Lowered):
            raise NotCompiled(lowered)
        exports = (*lowered.exports, PLACES)
        return ModuleText(lowered.text + walk(), exports, {"host": lowered.host})

    try:
        code = shared(f"view {effort} {parts!r} {spelled(evolve(operator, name=''))}", make, effort)
        if view.order != t.Record(()):
            ranking(view.order)
    except NotCompiled as refused:
        return Refused(view.name, refused.reasons)
    except Unsupported as refused:
        return Refused(view.name, (Reason(refused.reason, view.fns[view.function].span),))
    return NativeView(NativeOperator(operator, handlers_of(operator), code, debug), len(parts) > 1)


# ----------------------------------------------------------------------------------------------------- as an operator


def _operator(view: View, type_: t.Type) -> tuple[typed.Operator, tuple[tuple[t.Type, int], ...]]:
    """The view as an operator, and what lies at the places that it is fired on."""
    fn = view.fns[view.function]
    parts: tuple[tuple[t.Type, int], ...] = ((type_, 0),)
    if len(fn.params) > 1:
        assert isinstance(type_, t.Map | t.OMap)  # noqa: S101 - verify has seen to it
        parts = behind(type_)
    body = _Sender(fn, view.function, view.type).block()
    operator = typed.Operator(
        view.name,
        ports=(typed.Port("place", t.I64, None),),
        vars=(typed.VarParam(view.variable, type_, written=False),),
        outs=(typed.Out("row", view.type, None, None),),
        consts=(),
        fns=view.fns,
        sites=(),
        items=(typed.ItemHandler(0, fn.slots + 1, body),),
        span=fn.span,
    )
    return operator, parts


@frozen
class _Sender:
    """The body of a view's function with its rows sent, not returned. A slot more than the function has holds a row of a list."""

    fn: typed.Fn
    index: int
    row: t.Type

    def block(self) -> typed.Block:
        body = self.fn.body
        if not isinstance(body, typed.Block):
            return typed.Block(self.sent(body))
        collected = self.collected(body)
        if collected is not None:
            return collected
        if not _returns_last(body):
            args = tuple(typed.Local(p.type, i, p.name) for i, p in enumerate(self.fn.params))
            return typed.Block(self.each(typed.Call(self.fn.result, self.index, self.fn.name, args, -1)))
        return self.last(body)

    def last(self, block: typed.Block) -> typed.Block:
        """A block of which only the last statement returns, or none of those inside it."""
        *before, end = block.items
        match end:
            case typed.Return(value) if value is not None:
                return typed.Block((*before, *self.sent(value)))
            case typed.Branch(_, then, other):
                ended = evolve(end, then=self.last(then), other=None if other is None else self.last(other))
                return typed.Block((*before, ended))
            case _:
                return block

    def sent(self, value: typed.Expr) -> tuple[typed.Stmt, ...]:
        """Statements that send the rows of a list."""
        match value:
            case typed.MakeList(t.List(), values):
                return tuple(typed.Emit(0, each, span=each.span) for each in values)
            case typed.If(_, cond, then, other):
                return (typed.Branch(cond, typed.Block(self.sent(then)), typed.Block(self.sent(other))),)
            case typed.Comprehension(t.List(), row, slots, names, range_, cond):
                send: typed.Stmt = typed.Emit(0, row, span=row.span)
                if cond is not None:
                    send = typed.Branch(cond, typed.Block((send,)), None)
                return (typed.For(self.loop, slots, names, range_, typed.Block((send,)), span=value.span),)
            case _:
                return self.each(value)

    def each(self, value: typed.Expr) -> tuple[typed.Stmt, ...]:
        slot = self.fn.slots
        send = typed.Emit(0, typed.Local(self.row, slot, "row"))
        return (typed.For(self.loop, (slot,), ("row",), value, typed.Block((send,)), span=value.span),)

    @property
    def loop(self) -> int:
        """A loop that the function does not have."""
        return 1 + max(
            (each.loop for each in nodes(self.fn) if isinstance(each, typed.For | typed.While)), default=0
        )

    def collected(self, body: typed.Block) -> typed.Block | None:
        """The same for `var rows = []; ... push(rows, row) ... return rows;`: what is pushed is sent. None for all others."""
        match body.items:
            case (typed.Var(slot, _, made), *rest, typed.Return(typed.Local(slot=last))) if (
                slot == last and made in (typed.MakeList(made.type, ()), typed.MakeMap(made.type))
            ):
                pass
            case _:
                return None
        pushes = [each for item in rest for each in nodes(item) if _pushed(each, slot) is not None]
        uses = [e for item in rest for e in nodes(item) if isinstance(e, typed.Local) and e.slot == slot]
        if len(pushes) != len(uses) or any(isinstance(e, typed.Return) for item in rest for e in nodes(item)):
            return None
        return typed.Block(tuple(_with_sends(item, slot) for item in rest))


def _pushed(node: typed.Node, slot: int) -> typed.Expr | None:
    """What a statement pushes to the list in a slot."""
    match node:
        case typed.Do(typed.Apply(args=(typed.Local(t.List(), to), value)) as put) if (
            to == slot and effect(put).pushes
        ):
            return None if isinstance(value, typed.Lambda) else value
        case _:
            return None


def _with_sends(item: typed.Stmt, slot: int) -> typed.Stmt:
    """A statement with what it pushes to the list in a slot sent."""

    def inside(block: typed.Block) -> typed.Block:
        return typed.Block(tuple(_with_sends(each, slot) for each in block.items))

    pushed = _pushed(item, slot)
    if pushed is not None:
        return typed.Emit(0, pushed, span=item.span)
    match item:
        case typed.With() | typed.For() | typed.While():
            return evolve(item, body=inside(item.body))
        case typed.Branch(_, then, other):
            return evolve(item, then=inside(then), other=None if other is None else inside(other))
        case _:
            return item


def _returns_last(block: typed.Block) -> bool:
    """Whether statements return only as the last ones, on every way."""
    if not block.items:
        return False
    *before, end = block.items
    if any(isinstance(each, typed.Return) for item in before for each in nodes(item)):
        return False
    match end:
        case typed.Return(value):
            return value is not None
        case typed.Branch(_, then, other):
            return _returns_last(then) and other is not None and _returns_last(other)
        case typed.Trap():
            return True
        case _:
            return False


__all__ = ["MANY", "SLICE", "NativeView", "compile_view"]
