"""The meaning of a verified program: its erasure to the calculus (il.md 2.5, P1, P2).

A queue's elements are frozen values and `values.Mark`s. What a handler waits for becomes hidden variables:
`f#3.waiting` (tails of rated ports, FIFOs and position of a cycle, heads of a merge) and `f#3.progress` (marks, last
keys, ended inputs). An incomplete tail stays in the hidden variable when the input ends.

The end of input is forwarded when a firing can no longer happen: when all inputs have ended and, for cycles and rated
handlers, when the input that is waited for has ended. Queues that close loops carry no end (`loops.back_edges`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from calculus.program import Fault, Firing, Function, Op
from calculus.program import Program as CalculusProgram
from river.classes import evolve, frozen
from river.diagnostics import Rejected
from river.il.extern import compile_extern, not_given
from river.il.flow import item_findings
from river.il.loops import back_edges
from river.lang import typed, values
from river.lang import types as t
from river.lang.evaluate import CompiledOperator, Trap, compile_operator, inside, rate_violation
from river.lang.values import BOUNDS, END, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from river.il.extern import Function as UserFunction
    from river.il.graph import Graph, Queue

    Fire = Callable[[list[Any], Any, list[list[Any]]], None]

Value = Any


# ----------------------------------------------------------------------------------------------------- hidden state


@frozen
class Waiting:
    """What has arrived and waits: items by port, whether the prework is due, and where the cycle stands.

    `position` is the number of a phase and `count` how many of its firings are done, or how many items a rated handler has
    sent early.
    """

    items: tuple[tuple[Value, ...], ...]
    first: bool = False
    position: int = 0
    count: int = 0


@frozen
class Progress:
    """How far each input is: its mark and its last key (None: none yet), and whether it has ended.

    `given`: the largest mark sent on each output, kept only where the body itself sends marks.
    """

    marks: tuple[Value, ...]
    last: tuple[Value, ...]
    ended: tuple[bool, ...]
    given: tuple[Value, ...] = ()

    def level(self, ports: Iterable[int]) -> Value:
        """The mark that holds for all of `ports`: the least of those that go on, at the very end the greatest."""
        going = [self.marks[p] for p in ports if not self.ended[p]]
        if not going:
            return max((self.marks[p] for p in ports if self.marks[p] is not None), default=None)
        return None if any(mark is None for mark in going) else min(going)


# ---------------------------------------------------------------------------------------------------------- erasure


def erase(graph: Graph, externs: Mapping[str, UserFunction] | None = None) -> CalculusProgram:
    """The Brooklet program that `graph` means.

    A trap faults with `(instance, site, code, item)`; the item is what the firing consumed: the item, the windows, the
    key and sides of a merge, or the mark.

    Raises: Rejected("run-extern") if the function of an extern (`module:function`) is not among `externs`.

    Paper: River §3.4 (River IL), §2 (Brooklet).
    """
    closing = back_edges(graph)
    functions: dict[str, Function] = {}
    initial: dict[str, Value] = {v.name: v.initial for v in graph.variables}
    ops: list[Op] = []
    compiled: dict[int, _Handlers] = {}
    for instance in graph.instances:
        operator = instance.operator
        if id(operator) not in compiled:
            with inside(instance.use.within):
                compiled[id(operator)] = _handlers(operator, externs or {})
        counted = tuple(queue not in closing for queue in instance.ins)
        erased = _Erased(instance.name, operator, compiled[id(operator)], counted)
        hidden = erased.hidden()
        initial |= hidden
        written = tuple(n for n, p in zip(instance.variables, operator.vars, strict=True) if p.written)
        functions[instance.name] = erased.fire
        ops.append(
            Op(
                instance.outs,
                (*hidden, *written),
                instance.name,
                instance.ins,
                (*hidden, *instance.variables),
            )
        )
    return CalculusProgram(graph.inputs, graph.outputs, tuple(ops), functions, initial)


@frozen
class _Handlers:
    """What can fire: an item handler for each port, or the body of another kind of operator."""

    items: tuple[Fire | None, ...]
    body: CompiledOperator | None


def _handlers(operator: typed.Operator | typed.Extern, externs: Mapping[str, UserFunction]) -> _Handlers:
    match operator:
        case typed.Operator():
            body = compile_operator(operator)
            return _Handlers(body.item, body)
        case typed.Extern():
            function = externs.get(operator.target)
            if function is None:
                raise Rejected([not_given(operator, operator.span)])
            fire = compile_extern(operator, function)
            return _Handlers(tuple(_at(fire, port) for port in range(len(operator.ports))), None)
        case _:
            assert_never(operator)


def _at(fire: Callable[[int, Value, list[Value], list[list[Value]]], None], port: int) -> Fire:
    return lambda variables, item, outs: fire(port, item, variables, outs)


@frozen
class _Turn:
    """What one firing of the calculus works on: the operator's variables and what it pushes."""

    variables: list[Value]
    outs: list[list[Value]]


class _Erased:
    """One operator use as a firing function of the calculus.

    `counted`: the ports whose end counts. `waits`, `follows`: whether it has the hidden variables Waiting and Progress.
    """

    def __init__(
        self,
        name: str,
        operator: typed.Operator | typed.Extern,
        handlers: _Handlers,
        counted: tuple[bool, ...],
    ) -> None:
        ordered = tuple(_key_position(port) for port in operator.ports)
        self.name = name
        self.operator = operator
        self.handlers = handlers
        self.counted = counted
        self.keys = ordered
        self.greatest = tuple(map(_greatest, operator.ports, ordered))
        self.ordered = tuple(i for i, key in enumerate(ordered) if key is not None)
        self.freezers = tuple(values.freezer(p.type) for p in operator.vars)
        self.waits = isinstance(operator, typed.Operator) and not operator.items
        self.follows = len(operator.ports) > 1 or bool(self.ordered)
        self.sends_marks = bool(self.ordered) and _sends_marks(operator)

    def hidden(self) -> dict[str, Value]:
        """The hidden variables with their first values, in the order in which they are read."""
        op = self.operator
        found: dict[str, Value] = {}
        if self.waits and isinstance(op, typed.Operator):
            found[f"{self.name}.waiting"] = Waiting(tuple(p.initial for p in op.ports), op.first is not None)
        if self.follows:
            none = (None,) * len(op.ports)
            given = (None,) * len(op.outs) if self.sends_marks else ()
            found[f"{self.name}.progress"] = Progress(none, none, (False,) * len(op.ports), given)
        return found

    # -- one firing

    def fire(self, item: Value, port: int, reads: tuple[Value, ...]) -> Firing:
        """What one element of one input does.

        Raises: Fault when the body traps, or the element is out of order.
        """
        variables = list(reads)
        count = len(self.operator.ports)
        waiting: Waiting = variables.pop(0) if self.waits else Waiting(((),) * count)
        before: Progress = variables.pop(0) if self.follows else _unfollowed(count)
        outs: list[list[Value]] = [[] for _ in self.operator.outs]
        turn = _Turn(variables, outs)
        begun = waiting
        progress = self.arrived(item, port, before)
        if not isinstance(item, Mark):
            if self.waits:
                waiting = evolve(waiting, items=_put(waiting.items, port, (*waiting.items[port], item)))
            else:
                self.run(item, self.handlers.items[port], turn, item, counts=True)
        if self.waits:
            waiting = self.drain(waiting, progress, turn)
        progress = self.noted(progress, outs)
        self.mark(before, progress, turn)
        progress = self.noted(progress, outs)
        if self.over(waiting, progress) and not self.over(begun, before):
            for out in outs:
                out.append(END)
        hidden = ((waiting,) if self.waits else ()) + ((progress,) if self.follows else ())
        return Firing(tuple(map(tuple, outs)), (*hidden, *self.written(variables)))

    def written(self, variables: Sequence[Value]) -> Iterable[Value]:
        """The variables that the operator writes, frozen."""
        for value, freeze, param in zip(variables, self.freezers, self.operator.vars, strict=True):
            if param.written:
                yield value if freeze is None else freeze(value)

    def run(
        self,
        consumed: Value,
        handler: Callable[..., None] | None,
        turn: _Turn,
        *args: Any,
        counts: bool = False,
        sent: int = 0,
        now: int | None = None,
    ) -> None:
        """Calls a handler; `counts`: the stated push rates hold for it.

        Of the items of a firing that sends early, so many have been `sent` before, and `now` those up to a number are.
        """
        assert handler is not None  # noqa: S101 - the checker has seen to it
        sizes = [len(out) for out in turn.outs]
        try:
            handler(turn.variables, *args, turn.outs)
        except Trap as trap:
            raise Fault((self.name, trap.site, trap.code, consumed)) from trap
        for place, (out, size, items) in enumerate(zip(self.operator.outs, sizes, turn.outs, strict=True)):
            if counts and out.push is not None:
                count = sum(not isinstance(item, Mark) for item in items[size:])
                if count != out.push:
                    violation = rate_violation(self.operator, place, count)
                    raise Fault((self.name, None, violation.code, consumed)) from violation
            if sent or now is not None:
                items[size:] = items[size:][sent:now]

    # -- order

    def arrived(self, item: Value, port: int, progress: Progress) -> Progress:
        """The progress after the arrival of `item`; refuses what comes too late."""
        if item == END:
            return (
                evolve(progress, ended=_put(progress.ended, port, True)) if self.counted[port] else progress
            )
        position = self.keys[port]
        if position is None:
            return progress
        mark, last = progress.marks[port], progress.last[port]
        late = Fault((self.name, None, "order-violation", item))
        if isinstance(item, Mark):
            if mark is not None and item.key < mark:
                raise late
            return evolve(progress, marks=_put(progress.marks, port, item.key))
        key = item[position]
        if (mark is not None and key < mark) or (last is not None and key < last):
            raise late
        return evolve(progress, last=_put(progress.last, port, key))

    # -- handlers that wait

    def drain(self, waiting: Waiting, progress: Progress, turn: _Turn) -> Waiting:
        """Fires as long as something can fire."""
        op, body = self.operator, self.handlers.body
        assert isinstance(op, typed.Operator)  # noqa: S101 - externs have item handlers only
        assert body is not None  # noqa: S101 - so there is a body
        if op.merge is not None:
            return self.merge(op.merge, body.merge, waiting, progress, turn)
        if op.phases:
            return self.cycle(op.phases, body.phases, waiting, turn)
        while (rated := _due(op, waiting)) is not None and _filled(rated, waiting):
            windows = tuple(waiting.items[r.port][: r.peek] for r in rated.rates)
            handler = body.first if rated.first else body.rated
            self.run(windows, handler, turn, windows, counts=not rated.first, sent=waiting.count)
            items = waiting.items
            for rate in rated.rates:
                items = _put(items, rate.port, items[rate.port][rate.pop :])
            waiting = evolve(waiting, items=items, first=False, count=0)
        if rated is not None and rated.early and (now := rated.sent(len(waiting.items[0]))) > waiting.count:
            (rate,) = rated.rates
            begun = waiting.items[0]
            window = (*begun, *(values.default(op.ports[0].type),) * (rate.peek - len(begun)))
            self.run((window,), body.rated, turn, (window,), counts=True, sent=waiting.count, now=now)
            waiting = evolve(waiting, count=now)
        return waiting

    def cycle(
        self,
        phases: tuple[typed.PhaseHandler, ...],
        handlers: tuple[Fire, ...],
        waiting: Waiting,
        turn: _Turn,
    ) -> Waiting:
        """Takes items from the port at which the cycle stands, as long as it has some."""
        while (stand := _stand(phases, waiting)) is not None:
            position, count = stand
            port = phases[position].port
            waiting = evolve(waiting, position=position, count=count)
            if not waiting.items[port]:
                break
            item, *rest = waiting.items[port]
            self.run(item, handlers[position], turn, item, counts=True)
            waiting = evolve(waiting, items=_put(waiting.items, port, tuple(rest)), count=count + 1)
        return waiting

    def merge(
        self,
        handler: typed.MergeHandler,
        fire: Callable[..., None] | None,
        waiting: Waiting,
        progress: Progress,
        turn: _Turn,
    ) -> Waiting:
        """Fires for the smallest key that no input can undercut or join any more."""
        while True:
            heads = {p: waiting.items[p][0][self.keys[p]] for p in handler.ports if waiting.items[p]}
            key = min(heads.values(), default=None)
            if key is None or not all(p in heads or self.beyond(p, key, progress) for p in handler.ports):
                return waiting
            taken = [p for p in handler.ports if heads.get(p) == key]
            sides = tuple(waiting.items[p][0] if p in taken else None for p in handler.ports)
            self.run((key, sides), fire, turn, key, sides)
            items = waiting.items
            for p in taken:
                items = _put(items, p, items[p][1:])
            waiting = evolve(waiting, items=items)

    def beyond(self, port: int, key: Value, progress: Progress) -> bool:
        """Whether nothing of this key or a smaller one can arrive on `port`; the greatest key as a mark says that of itself."""
        mark = progress.marks[port]
        return progress.ended[port] or (mark is not None and (mark > key or mark == self.greatest[port]))

    # -- marks and ends

    def mark(self, before: Progress, progress: Progress, turn: _Turn) -> None:
        """Tells the operator, or its ordered outputs, of a mark that holds for all inputs and is new."""
        old, new = before.level(self.ordered), progress.level(self.ordered)
        if new is None or (old is not None and new <= old):
            return
        body = self.handlers.body
        if body is not None and body.mark is not None:
            self.run(Mark(new), body.mark, turn, new)
            return
        for i, out in enumerate(self.operator.outs):
            given = progress.given[i] if progress.given else None
            if out.by is not None and (given is None or given < new):
                turn.outs[i].append(Mark(new))

    def noted(self, progress: Progress, outs: list[list[Value]]) -> Progress:
        """The progress with the marks that the outputs bear now."""
        if not self.sends_marks:
            return progress
        sent = ([item.key for item in out if isinstance(item, Mark)] for out in outs)
        given = zip(progress.given, sent, strict=True)
        return evolve(progress, given=tuple(max([*now, *_known(old)], default=None) for old, now in given))

    def over(self, waiting: Waiting, progress: Progress) -> bool:
        """Whether nothing can fire any more, whatever arrives."""
        op = self.operator
        ended = progress.ended
        if isinstance(op, typed.Operator) and op.phases:
            stand = _stand(op.phases, waiting)
            return stand is None or (
                ended[op.phases[stand[0]].port] and not waiting.items[op.phases[stand[0]].port]
            )
        if isinstance(op, typed.Operator) and (rated := _due(op, waiting)) is not None:
            return any(ended[r.port] and len(waiting.items[r.port]) < r.peek for r in rated.rates)
        counted = [p for p, counts in enumerate(self.counted) if counts]
        return bool(counted) and all(ended[p] and not waiting.items[p] for p in counted)


def _due(op: typed.Operator, waiting: Waiting) -> typed.RatedHandler | None:
    """The rated handler that fires next."""
    return op.first if waiting.first else op.rated


def _stand(phases: tuple[typed.PhaseHandler, ...], waiting: Waiting) -> tuple[int, int] | None:
    """The phase that fires next and how many of its firings are done; None if no phase has any."""
    if not any(phase.count for phase in phases):
        return None
    position, count = waiting.position, waiting.count
    while count >= phases[position].count:
        position, count = (position + 1) % len(phases), 0
    return position, count


def _filled(rated: typed.RatedHandler, waiting: Waiting) -> bool:
    return all(len(waiting.items[rate.port]) >= rate.peek for rate in rated.rates)


def _greatest(port: typed.Port, key: int | None) -> Value:
    """The greatest key of an ordered port, None if its type has none."""
    bounds = None if key is None else BOUNDS.get(t.parts(port.type)[key])
    return None if bounds is None else bounds[1]


def _known(mark: Value) -> tuple[Value, ...]:
    return () if mark is None else (mark,)


def _unfollowed(ports: int) -> Progress:
    """The progress of an operator that keeps none: with one unordered input, only its end matters."""
    return Progress((None,) * ports, (None,) * ports, (False,) * ports)


def _put(items: tuple[Value, ...], position: int, item: Value) -> tuple[Value, ...]:
    return (*items[:position], item, *items[position + 1 :])


def _key_position(port: typed.Port) -> int | None:
    return port.type.index(port.by) if port.by is not None and isinstance(port.type, t.Record) else None


def _sends_marks(op: typed.Operator | typed.Extern) -> bool:
    """Whether a body sends marks besides those that are forwarded for it."""
    if isinstance(op, typed.Extern) or op.mark is not None:
        return False
    return any(findings.marks for findings in item_findings(op))


# ------------------------------------------------------------------------------------------------ inputs


def inputs(graph: Graph, data: Mapping[str, Sequence[Value]]) -> dict[str, tuple[Value, ...]]:
    """The contents of the input queues: `data` (frozen values) with marks, ready for the calculus.

    Time stops after the last instant of all inputs whose keys have one type: each ordered input ends with the mark of
    the instant that follows it, so that what expires at the last instant still does, and every input with the end.

    Raises: ValueError if `data` names a queue that is not an input.
    """
    if strangers := sorted(set(data) - set(graph.inputs)):
        message = f"not inputs of the program: {', '.join(strangers)}"
        raise ValueError(message)
    last: dict[t.Type, Value] = {}
    for name in graph.inputs:
        queue = graph.queues[name]
        position = queue.key()
        items = data.get(name, ())
        if position is not None and items:
            kind = _key_type(queue)
            last[kind] = max([*_known(last.get(kind)), *(item[position] for item in items)])
    found: dict[str, tuple[Value, ...]] = {}
    for name in graph.inputs:
        queue = graph.queues[name]
        instant = None if queue.key() is None else last.get(_key_type(queue))
        ends = (
            (END,) if instant is None else (Mark(min(instant + 1, values.BOUNDS[_key_type(queue)][1])), END)
        )
        found[name] = (*data.get(name, ()), *ends)
    return found


def _key_type(queue: Queue) -> t.Type:
    assert isinstance(queue.type, t.Record)  # noqa: S101 - verify has seen to it
    assert queue.by is not None  # noqa: S101 - asked of ordered queues only
    found = queue.type.field(queue.by)
    assert found is not None  # noqa: S101 - verify has seen to it
    return found
