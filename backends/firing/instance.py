"""An operator instance at run time: what it may fire on, and the hot loops that fire it.

The rules are those of erasure (`river.il.erase`), on batches. A firing that traps leaves no trace in what is sent. Marks
take effect after the firings on the items before them; the end is forwarded when nothing can fire any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar

from backends.firing.ports import Out, Port  # noqa: TC001 - attrs reads the annotations
from river.classes import frozen
from river.il.extern import compile_extern
from river.il.trees import Same, SameBody
from river.io.deltas import is_delta
from river.lang import memory, rates, typed
from river.lang.evaluate import CompiledOperator, Trap, compile_operator, may_run_out, rate_violation
from river.lang.patience import POLL_EVERY
from river.lang.values import END, INFINITY, Mark, default

if TYPE_CHECKING:
    from backends.firing.queues import Queue
    from backends.native.deadline import Deadline
    from river.lang.types import Type

Fire = Callable[[list[Any], Any, list[list[Any]]], None]
Report = Callable[[Trap], None]

FIRST_BATCH = 64
"""How many items are fired at once before it is known how many each of them makes."""


@frozen
class Setting:
    """What an instance is put into.

    `variables`: the list that the firings read and write. `batch`: how many items it may take at once. `report` takes
    the traps that do not end the run, those of a stateless operator whose items may be skipped; None: every trap does.
    `deadline`: of each firing.
    """

    operator: typed.Operator | typed.Extern
    ports: Sequence[Port]
    outs: Sequence[Out]
    variables: list[Any]
    batch: int
    report: Report | None
    deadline: Deadline | None = None


class Instance:
    """What is common to all kinds of handlers. `fired`, `skipped`: counts for people.

    `KEPT`: what else than variables, inputs and outputs a firing depends on.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("fired", "skipped", "over", "_woken", "_level")

    def __init__(self, setting: Setting, mark: Fire | None = None) -> None:
        self.operator = operator = setting.operator
        self.ports = ports = setting.ports
        self.outs = outs = setting.outs
        self.variables = setting.variables
        self.batch = batch = setting.batch
        self.fired = 0
        self.skipped = 0
        self.over = False
        self._woken = False
        self._full = (
            False  # what the firings of this call have sent is so much that others have to take it first
        )
        self._pace = min(batch, FIRST_BATCH)
        self._emitted: list[list[Any]] = [[] for _ in outs]
        self._keyed = [port for port in ports if port.key is not None]
        self._counted = [port for port in ports if not port.back]
        self._level: Any = -INFINITY
        self._mark = mark
        self._report = setting.report if may_skip(operator) else None
        self._pushes: tuple[tuple[int, int], ...] = _uncertain_pushes(operator)
        self._guarded = (
            isinstance(operator, typed.Extern)
            or bool(operator.sites)
            or bool(self._pushes)
            or setting.deadline is not None
            or may_run_out(operator)
        )
        self._rest: Iterator[Any] = iter(())  # what is to be fired after the firing under way
        self._keys_done = 0
        self._unweighed = 0

    # -- what the scheduler calls

    def kept(self) -> dict[str, Any]:
        """Where it stands between firings, as JSON."""
        return {name: getattr(self, name) for name in self.KEPT}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Stands there again."""
        for name in self.KEPT:
            setattr(self, name, kept[name])

    @property
    def waiting(self) -> bool:
        """Whether output is left that found no room: then the instance does not fire. Paper: River §2.4."""
        return any(out.waiting for out in self.outs)

    def drain(self) -> bool:
        """Puts what there is room for; whether nothing is left. Paper: River Fig. 2, lines 9 and 10."""
        drained = True
        for out in self.outs:
            drained &= out.drain()
        return drained

    def ready(self) -> bool:
        """Whether there is anything to look at: False means that `fire` would do nothing."""
        return any(port.fill(1) or port.marks or port.violation is not None for port in self.ports)

    def wants(self) -> Queue | None:
        """The queue without whose next items nothing can be fired; None if there may be something to do, or it is not known.

        A mark on any input may be something to do: by it the instance may end.
        """
        return None

    def _lacking(self, needs: Iterable[tuple[Port, int]]) -> Queue | None:
        """The same, where firings need so many items of ports: the first port that has fewer."""
        lacking: Queue | None = None
        for port, need in needs:
            if port.fill(need) < need and lacking is None:
                lacking = port.queue
        for port in self.ports:
            if port.marks or port.ended or port.violation is not None:
                return None
        return lacking

    def awake(self) -> bool:
        """Whether anything has come yet: in the calculus a firing needs an arrival, whatever initial tails there are."""
        if not self._woken:
            self._woken = any(port.queue.used for port in self.ports)
        return self._woken

    def fire(self) -> bool:
        """Fires on what is there, at most a batch; whether more may be there. Output waits for `drain`.

        Raises: Trap, after which nothing may be fired, though what was emitted before may be drained.
        """
        if not self.awake():
            return False
        limit, before = min(self._pace, self.batch), self._made
        self._full = False
        try:
            left = self.work(limit)
        except Trap as trap:
            trap.placed(self.operator)
            raise
        finally:
            self.settle()
        done = limit - left
        if done:
            made = self._made - before
            self._pace = max(1, min(self.batch, self.batch * done // max(made, done)))
        return self._full or (left <= 0 and self.wants() is None)

    @property
    def _made(self) -> int:
        """Items and marks emitted so far."""
        made = 0
        for out in self.outs:
            made += out.made
        return made

    # -- for the kinds

    def work(self, limit: int) -> int:
        """Fires at most `limit` items or marks; how many of these were not there."""
        raise NotImplementedError

    def settle(self) -> None:
        """Moves what was emitted to the outs."""
        for i, elements in enumerate(self._emitted):
            if elements:
                self.outs[i].add(elements)
                self._emitted[i] = []

    def run(self, fire: Fire, arguments: Sequence[Any], type_: Type | None = None) -> None:
        """Fires once for each argument, in order; items that trap are skipped where that is allowed.

        `type_`: the type of the arguments where they are items, so that a trap can show its item.
        """
        variables, emitted = self.variables, self._emitted
        self._weigh(len(arguments))
        if not self._guarded:
            for argument in arguments:
                fire(variables, argument, emitted)
            self.fired += len(arguments)
            return
        self._rest = rest = iter(arguments)
        while True:
            left = length_hint(rest)
            try:
                self._careful(fire, rest)
            except Trap as trap:
                self.fired += left - length_hint(rest) - 1
                trap.placed(self.operator)
                if type_ is not None:
                    trap.item = type_, arguments[len(arguments) - length_hint(rest) - 1]
                if self._report is None or not own(trap):
                    raise
                self.skipped += 1
                self._report(trap)
                continue
            self.fired += left
            return

    @property
    def place(self) -> tuple[int, int, int]:
        """What tells the firing under way apart from others."""
        return self.fired + self.skipped, self._keys_done, length_hint(self._rest)

    def _weigh(self, firings: int) -> None:
        """Looks after the memory now and then: variables grow from firing to firing."""
        self._unweighed += firings
        if self._unweighed >= POLL_EVERY:
            self._unweighed = 0
            try:
                memory.check()
            except MemoryError:
                raise Trap("memory-limit") from None

    def fire_items(self, port: Port, fire: Fire, count: int) -> int:
        """Fires on at most the next `count` items of a port, which wait; how many that was."""
        items = port.items(count)
        port.pop(count)
        self.run(fire, items, self._type(port))
        return count

    def stop(self) -> None:
        """Lets a firing that is under way end soon, by a trap."""

    def rest(self) -> None:
        """Gives back what only firings need: there will be no more."""

    def _type(self, port: Port) -> Type:
        """The type of a port's items."""
        return self.operator.ports[self.ports.index(port)].type

    def _careful(self, fire: Fire, rest: Iterator[Any]) -> None:
        """Fires for each of `rest`; when one traps, what it has emitted is withdrawn."""
        variables, emitted, pushes = self.variables, self._emitted, self._pushes
        if len(emitted) == 1 and not pushes:
            out, size = emitted[0], 0
            try:
                for argument in rest:
                    size = len(out)
                    fire(variables, argument, emitted)
            except Trap:
                del out[size:]
                raise
            return
        sizes: list[int] = []
        try:
            for argument in rest:
                sizes = list(map(len, emitted))
                fire(variables, argument, emitted)
                for out, push in pushes:
                    self._count(out, push, emitted[out][sizes[out] :])
        except Trap:
            self._withdraw(sizes)
            raise

    def _withdraw(self, sizes: Iterable[int]) -> None:
        for elements, size in zip(self._emitted, sizes, strict=False):
            del elements[size:]

    def _count(self, out: int, push: int, found: list[Any]) -> None:
        """Raises: Trap("rate-violation") if a firing did not emit as many items as the output states."""
        count = sum(not isinstance(element, Mark) for element in found)
        if count != push:
            raise rate_violation(self.operator, out, count)

    # -- order, marks and the end

    def check(self, port: Port) -> None:
        """Raises: Trap("order-violation") if what comes next on `port` has a key below what came before."""
        late = port.violation
        if late is not None and port.key is not None:
            bound = port.promised if isinstance(late, Mark) else max(port.last, port.promised)
            raise late_trap(self.operator, self.ports.index(port), port.key, late, bound)

    def passes(self, starved: Sequence[Port]) -> bool:
        """Takes a mark that no firing comes before, if there is one: of inputs that are `starved`, or have no items at all."""
        return any(port.mark() is not None for port in self.ports if port in starved or not port.run)

    def risen(self) -> Any:
        """What the marks taken so far promise for all ordered inputs together, None if that is not new."""
        going = [port.progress for port in self._keyed if not port.ended]
        level = min(going) if going else max((port.progress for port in self._keyed), default=-INFINITY)
        if level <= self._level:
            return None
        self._level = level
        return level

    def marked(self) -> None:
        """Tells what the marks taken so far promise for all ordered inputs together."""
        level = self.risen()
        if level is None:
            return
        if self._fires_on_marks:
            sizes = list(map(len, self._emitted))
            try:
                self._fire_mark(level)
            except Trap:
                self._withdraw(sizes)
                raise
            self.fired += 1
        else:
            self._send(Mark(level), [i for i, out in enumerate(self.outs) if out.keyed])

    @property
    def _fires_on_marks(self) -> bool:
        """Whether the operator has a handler of marks."""
        return self._mark is not None

    def _fire_mark(self, level: Any) -> None:
        """The firing of that handler."""
        assert self._mark is not None  # noqa: S101 - see `_fires_on_marks`
        self._mark(self.variables, level, self._emitted)

    def finish(self) -> None:
        """Sends the end, once."""
        if not self.over:
            self.over = True
            self._send(END, [i for i, out in enumerate(self.outs) if not out.back])

    def _send(self, mark: Mark, outs: Iterable[int]) -> None:
        """Puts a mark after what was emitted."""
        for i in outs:
            if self._emitted[i]:
                self.outs[i].add(self._emitted[i])
                self._emitted[i] = []
            self.outs[i].add_mark(mark)

    @property
    def ended(self) -> bool:
        """Whether all inputs but those that close loops have ended, their items fired."""
        for port in self._counted:
            if not port.ended or port.run:
                return False
        return bool(self._counted)


class Items(Instance):
    """`on q(x)`, and operators in Python: a firing for each item of each input."""

    KEPT = (*Instance.KEPT, "_turn")

    def __init__(self, setting: Setting, fires: Sequence[Any], mark: Fire | None = None) -> None:
        super().__init__(setting, mark)
        self._fires = fires
        self._turn = 0

    def work(self, limit: int) -> int:
        left, idle = limit, 0
        while left > 0 and idle < len(self.ports) and not self._full:
            turn = self._turn
            self._turn = (turn + 1) % len(self.ports)
            port = self.ports[turn]
            done = self._port(port, self._fires[turn], left)
            left -= done
            # Where nothing is left there was less than was asked for, so that the queue is empty, too.
            idle = idle + 1 if not done else 0 if port.waiting else 1
        if self.ended:
            self.finish()
        return left

    def wants(self) -> Queue | None:
        return self._lacking([(self.ports[0], 1)]) if len(self.ports) == 1 else None

    def _port(self, port: Port, fire: Fire, limit: int) -> int:
        """Fires what waits before the next mark, or takes the mark; how much that was."""
        port.fill(limit)
        count = min(port.run, limit)
        if count:
            return self.fire_items(port, fire, count)
        if port.mark() is not None:
            self.marked()
            return 1
        self.check(port)
        return 0


class Rated(Instance):
    """`on q[peek p, pop o](w)`, after one `first on ...` if there is one.

    `sent`: how many items the next firing has sent early.
    """

    def __init__(
        self, setting: Setting, due: Sequence[tuple[typed.RatedHandler, Any]], mark: Fire | None = None
    ) -> None:
        super().__init__(setting, mark)
        self._due = list(due)
        self._stated = self._pushes
        self.sent = 0

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "due": len(self._due), "sent": self.sent}

    def restore(self, kept: Mapping[str, Any]) -> None:
        super().restore(kept)
        del self._due[: len(self._due) - kept["due"]]
        self.sent = kept["sent"]

    def work(self, limit: int) -> int:
        left = limit
        while left > 0 and not self._full:
            handler, fire = self._due[0]
            count = self.possible(handler, left)
            if count:
                left -= self._windows(handler, fire, count)
                if handler.first:
                    del self._due[0]
                continue
            if (most := self.early(handler)) > self.sent:
                self._begun(handler, fire, most)
            if self._take_mark():
                left -= 1
            else:
                break
        return left

    def wants(self) -> Queue | None:
        handler = self._due[0][0]
        return self._lacking([(self.ports[rate.port], rate.peek) for rate in handler.rates])

    def early(self, handler: typed.RatedHandler) -> int:
        """How many items of a firing for whose window items are missing can be sent."""
        return handler.sent(self.ports[handler.rates[0].port].run) if handler.early else 0

    def _begun(self, handler: typed.RatedHandler, fire: Any, most: int) -> None:
        """Sends what a firing can send before its window is complete, up to `most` items."""
        (rate,) = handler.rates
        port = self.ports[rate.port]
        begun = tuple(port.items(port.run))
        window = (*begun, *(default(self._type(port)),) * (rate.peek - len(begun)))
        emitted = self._emitted[0]
        size = len(emitted)
        self.run(fire, [(window,)])
        emitted[size:] = emitted[size:][self.sent : most]
        self.sent = most

    def possible(self, handler: typed.RatedHandler, limit: int) -> int:
        """How many firings there are windows for, before the next mark."""
        count = 1 if handler.first else limit
        for rate in handler.rates:
            port = self.ports[rate.port]
            port.fill(rate.peek + (count - 1) * rate.pop)
            spare = port.run - rate.peek
            if spare < 0:
                return 0
            if rate.pop:
                count = min(count, spare // rate.pop + 1)
        return count

    def _windows(self, handler: typed.RatedHandler, fire: Any, count: int) -> int:
        """Fires at most `count` times; how often."""
        columns: list[list[tuple[Any, ...]]] = []
        for rate in handler.rates:
            port, peek, pop = self.ports[rate.port], rate.peek, rate.pop
            run = tuple(port.items(peek + (count - 1) * pop))
            columns.append(
                [run[i : i + peek] for i in range(0, count * pop, pop)] if pop else [run[:peek]] * count
            )
            port.pop(count * pop)
        self._pushes = () if handler.first else self._stated
        size, sent, self.sent = len(self._emitted[0]) if self.sent else 0, self.sent, 0
        try:
            self.run(fire, list(zip(*columns, strict=True)))
        finally:  # a firing that traps has sent nothing, but those before it have
            if sent and len(self._emitted[0]) > size:
                del self._emitted[0][size : size + sent]
        return count

    def starved(self) -> Sequence[Port]:
        """The inputs that have no window for the next firing."""
        rates = self._due[0][0].rates
        return [port for rate in rates if (port := self.ports[rate.port]).run < rate.peek]

    def _take_mark(self) -> bool:
        """With no firing possible before it, takes a mark; says so where nothing will fire again."""
        starved = self.starved()
        taken = self.passes(starved)
        if taken:
            self.marked()
        if any(port.ended for port in starved):
            self.finish()
        for port in starved if not taken else ():
            self.check(port)
        return taken


class Phases(Instance):
    """`phase n on q(x)`, in a cycle."""

    KEPT = (*Instance.KEPT, "_place", "_left")

    def __init__(self, setting: Setting, fires: Sequence[Any], mark: Fire | None = None) -> None:
        super().__init__(setting, mark)
        assert isinstance(self.operator, typed.Operator)  # noqa: S101 - only these have phases
        phases = zip(self.operator.phases, fires, strict=True)
        self._cycle = [(phase.count, self.ports[phase.port], fire) for phase, fire in phases if phase.count]
        self._needs = {port: sum(n for n, p, _ in self._cycle if p is port) for _, port, _ in self._cycle}
        self._length = sum(self._needs.values())
        self._place = 0
        self._left = self._cycle[0][0] if self._cycle else 0

    def work(self, limit: int) -> int:
        left = limit
        while left > 0 and self._cycle and not self._full:
            cycles = self._cycles(left)
            done = self._whole(cycles) if cycles else self._one(left)
            if not done:
                break
            left -= done
        return left

    def wants(self) -> Queue | None:
        return self._lacking([(self._cycle[self._place][1], 1)]) if self._cycle else None

    def _cycles(self, limit: int) -> int:
        """How many whole cycles may fire from here, 0 in the middle of one."""
        if self._place or self._left != self._cycle[0][0] or self._guarded:
            return 0
        cycles = limit // self._length
        for port, need in self._needs.items():
            port.fill(cycles * need)
            cycles = min(cycles, port.run // need)
        return cycles

    def _whole(self, cycles: int) -> int:
        """Fires whole cycles of an operator that cannot trap."""
        variables, emitted = self.variables, self._emitted
        items: dict[Port, Iterator[Any]] = {}
        for port, need in self._needs.items():
            items[port] = iter(port.items(cycles * need))
            port.pop(cycles * need)
        steps = [(count, items[port], fire) for count, port, fire in self._cycle]
        for _ in range(cycles):
            for count, source, fire in steps:
                for item in islice(source, count):
                    fire(variables, item, emitted)
        self.fired += cycles * self._length
        return cycles * self._length

    def _one(self, limit: int) -> int:
        """Fires in the phase at hand, or takes a mark that comes first; how much that was."""
        _, port, fire = self._cycle[self._place]
        port.fill(min(limit, self._left))
        count = min(limit, self._left, port.run)
        if count:
            count = self.fire_items(port, fire, count)
            self._left -= count
            if not self._left:
                self._place = (self._place + 1) % len(self._cycle)
                self._left = self._cycle[self._place][0]
            return count
        taken = any(p.mark() is not None for p in self.ports if p is port or not p.run)
        if taken:
            self.marked()
        if port.ended and not port.run:
            self.finish()
        if not taken:
            self.check(port)
        return int(taken)


class Merge(Instance):
    """`on merge(a(x), b(y))`: fires for the smallest key that no input can undercut any more."""

    def __init__(self, setting: Setting, fire: Any, mark: Fire | None = None) -> None:
        super().__init__(setting, mark)
        operator = self.operator
        assert isinstance(operator, typed.Operator)  # noqa: S101 - only these merge
        assert operator.merge is not None  # noqa: S101 - by the kind
        self._fire = fire
        self._sides = [self.ports[port] for port in operator.merge.ports]
        # Nobody hears of its marks: they may be taken at once, for what they say of items to come.
        self._deaf = operator.mark is None and not any(out.keyed for out in self.outs)

    def work(self, limit: int) -> int:
        left = limit
        while left > 0 and not self._full:
            taken = 0
            for port in self._sides:
                port.fill(left)
                while (self._deaf or not port.run) and port.mark() is not None:
                    taken += 1
                    if not self._deaf:
                        self.marked()
                        port.fill(left)
            left -= taken
            done = self._keys(left) if left > 0 else 0
            left -= done
            if not done and not taken:
                break
        for port in self._sides:
            if not port.run:
                self.check(port)
        if self.ended:
            self.finish()
        return left

    def _keys(self, limit: int) -> int:
        """Fires for the keys that the items before the next marks allow; how many items that took at most per input."""
        fire, variables, emitted, guarded = self._fire, self.variables, self._emitted, self._guarded
        columns = [port.items(port.run) for port in self._sides]
        places = [0] * len(columns)
        indices = [port.key or 0 for port in self._sides]
        heads: list[Any] = [c[0][i] if c else INFINITY for c, i in zip(columns, indices, strict=True)]
        floors: list[Any] = [
            INFINITY if c or port.ended else port.progress
            for c, port in zip(columns, self._sides, strict=True)
        ]
        count, sizes = 0, list[int]()
        try:
            while count < limit:
                key = min(heads)
                if key == INFINITY or min(floors) <= key:
                    break
                sides: list[Any] = [None] * len(heads)
                for i, head in enumerate(heads):
                    if head == key:
                        column = columns[i]
                        sides[i] = column[places[i]]
                        places[i] += 1
                        if places[i] < len(column):
                            heads[i] = column[places[i]][indices[i]]
                        else:
                            heads[i] = INFINITY
                            floors[i] = INFINITY if self._sides[i].ended else -INFINITY
                if guarded:
                    sizes = list(map(len, emitted))
                fire(variables, key, tuple(sides), emitted)
                count += 1
                self._keys_done += 1
        except Trap:
            self._withdraw(sizes)
            raise
        finally:
            self.fired += count
        self._weigh(count)
        for port, place in zip(self._sides, places, strict=True):
            port.pop(place)
        return count


def make(setting: Setting, function: Callable[..., Any] | None, poll: Callable[[], None]) -> Instance:
    """The instance for an operator; `function` is that of an extern, `poll` may raise Trap to end a long firing."""
    match setting.operator:
        case typed.Extern() as extern:
            assert function is not None  # noqa: S101 - the plan has seen to it
            fire = compile_extern(extern, function)
            return Items(setting, [_on_port(fire, port) for port in range(len(extern.ports))])
        case typed.Operator() as operator:
            patience = _Patience(poll)
            made = _made(setting, operator, compile_operator(operator, patience.poll))
            if setting.deadline is not None:
                patience.late = setting.deadline.watch(lambda: made.place)
            return made


def _made(setting: Setting, operator: typed.Operator, body: CompiledOperator) -> Instance:
    if operator.rated is not None:
        both = ((operator.first, body.first), (operator.rated, body.rated))
        due = [(h, f) for h, f in both if h is not None and f is not None]
        return Rated(setting, due, body.mark)
    if body.phases:
        return Phases(setting, body.phases, body.mark)
    if body.merge is not None:
        return Merge(setting, body.merge, body.mark)
    return Items(setting, [fire for fire in body.item if fire is not None], body.mark)


class _Patience:
    """What the evaluator calls now and then: ends a firing when the run is stopped, or when it takes too long."""

    def __init__(self, poll: Callable[[], None]) -> None:
        self._poll = poll
        self.late: Callable[[], bool] | None = None

    def poll(self) -> None:
        self._poll()
        if self.late is not None and self.late():
            raise Trap("deadline")


def _on_port(fire: Callable[[int, Any, list[Any], list[list[Any]]], None], port: int) -> Fire:
    return lambda variables, item, outs: fire(port, item, variables, outs)


def may_skip(operator: typed.Operator | typed.Extern) -> bool:
    """Whether a firing may be left out without changing the others (il.md P10)."""
    if operator.vars or any(is_delta(out.type) for out in operator.outs):  # changes build on one another
        return False
    return isinstance(operator, typed.Extern) or bool(operator.items)


def _uncertain_pushes(operator: typed.Operator | typed.Extern) -> tuple[tuple[int, int], ...]:
    """Outputs with the rate that they state, where the bodies do not show that every firing keeps it."""
    if isinstance(operator, typed.Extern):
        return tuple((i, out.push) for i, out in enumerate(operator.outs) if out.push is not None)
    return _unproven(SameBody(operator))


@lru_cache(maxsize=8192)
def _unproven(operator: Same[typed.Operator]) -> tuple[tuple[int, int], ...]:
    """What bodies do not show, found once for all uses of an operator."""
    return rates.unproven(operator.value)


def own(trap: Trap) -> bool:
    """Whether the trap is the item's fault, not the machine's or the user's who stops the run."""
    return trap.code not in ("stopped", "memory-limit")


def late_trap(operator: typed.Operator | typed.Extern, port: int, place: int, late: Any, bound: Any) -> Trap:
    """The trap for an item or mark whose key is below `bound`; `place`: the position of the key in an item."""
    declared = operator.ports[port]
    key = late.key if isinstance(late, Mark) else late[place]
    text = f"`{declared.by}` falls from {bound} to {key} in input `{declared.name}` of `{operator.name}`"
    return Trap("order-violation", (late,), operator.name, None, operator.span, text)
