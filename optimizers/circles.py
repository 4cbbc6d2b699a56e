"""Fusion of loops: operators that feed one another in a circle become one, and the queues between them its variables.

A loop whose operators fire at stated rates, and which items enter by one queue, does the same after each of these items,
in whatever order its operators are asked. So one operator may do it all: at each item it fires whoever can fire, until nobody
can. What waits in a queue lies in a ring, an array that is a variable of the program. How large it must be is found by playing
the loop through, numbers of items only, until a state comes again.

Paper: River §4.3 (fusion optimizer); Synchronous Data Flow (Lee and Messerschmitt 1987) for the states that come again.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from optimizers.queries import (
    Names,
    changed,
    downstream,
    joint,
    source,
    successors,
    type_text,
)
from optimizers.windows import JoinedNames, apart, filled
from river.classes import define, evolve, field, frozen
from river.il import annotations as a
from river.il.loops import back_edges, loops
from river.il.program import Program, Queue, Use, Variable
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang.rates import emitted, unproven

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified

LONGEST: Final = 100_000
"""Firings, and items from outside, in which a loop must come to a state in which it was before."""

LARGEST: Final = 1 << 20
"""Items of a ring."""

WIDEST: Final = 256
"""Items of a window that are put together one by one; more of them are copied in a loop."""


@frozen
class Circle:
    """A loop: its operators, those first that are entered first."""

    members: tuple[int, ...]


def circles(graph: g.Graph) -> Iterator[Circle]:
    """The loops of a graph."""
    for members in loops(graph) if graph.looping else ():
        entered = [
            i for i in sorted(members) if any(_outer(graph, members, q) for q in graph.instances[i].ins)
        ]
        yield Circle(tuple(_onward(graph, [*entered, *sorted(members)], members)))


def _onward(graph: g.Graph, roots: Sequence[int], members: Collection[int]) -> Iterator[int]:
    """The operators of a loop in the order in which items come to them."""
    found: list[int] = []
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[int, bool]] = [(root, False)]
        after: list[int] = []
        while stack:
            index, done = stack.pop()
            if done:
                after.append(index)
            elif index in members and index not in seen:
                seen.add(index)
                stack.append((index, True))
                stack += [(each, False) for each in successors(graph, graph.instances[index])]
        found += reversed(after)
    return iter(found)


# -------------------------------------------------------------------------------------------------------------- guard


def circle_obstacle(graph: g.Graph, circle: Circle) -> str | None:
    """Why the operators of a loop cannot become one."""
    members = [graph.instances[index] for index in circle.members]
    for member in members:
        if (reason := _unfit(member)) is not None:
            return reason
    entries = [queue for queue in _entries(graph, circle) if not _begins(graph, queue)]
    if len(entries) != 1:
        return "items enter it at several places" if entries else "nothing enters it"
    uses = [a.annotated(member.use) for member in members]
    if any(use.fuse is not None for use in uses):
        return "`@Fuse` says what becomes one"
    if any(use.regions for use in uses):
        return "a border of a parallel region goes through it"
    if len({use.group for use in uses if use.group is not None}) > 1:
        return "its operators are placed in different groups"
    variables = [name for member in members for name in member.variables]
    if len(set(variables)) < len(variables):
        return "two of its operators use one variable"
    return _unsettled(graph, circle)


def _unsettled(graph: g.Graph, circle: Circle) -> str | None:
    """Why what happens in a loop is not the same for ever, or cannot be told by its operators' rates alone."""
    play = Play.of(graph, circle)
    told = play.beginning or (play.entry,)  # by what an operator may hear that it may begin
    hearing = {
        end.instance for queue in told if (end := graph.queues[play.queues[queue]].consumer) is not None
    }
    for member, stages in zip(circle.members, play.stages, strict=True):
        if member not in hearing and all(play.initial[queue] >= need for queue, need in stages[0].needs):
            return f"`{graph.instances[member].use.operator}` waits for an item without using it"
    if not play.settle():
        return f"it does not come to a state in which it was before, in {LONGEST} firings"
    if max(play.most) > LARGEST:
        return f"{max(play.most)} items wait in it"
    heard = (graph.instances[i].operator for i in downstream(graph, circle.members))
    if not play.ends and any(port.by is not None for op in heard for port in op.ports):
        return "it may run dry and never tell of its end"
    return None


def _outer(graph: g.Graph, members: Collection[int], queue: str) -> bool:
    """Whether a queue comes from outside of a loop."""
    producer = graph.queues[queue].producer
    return producer is None or producer.instance not in members


def _entries(graph: g.Graph, circle: Circle) -> list[str]:
    """The queues that come from outside."""
    queues = (queue for index in circle.members for queue in graph.instances[index].ins)
    return [queue for queue in queues if _outer(graph, circle.members, queue)]


def _begins(graph: g.Graph, queue: str) -> bool:
    """Whether the items of a queue are never looked at: that one comes lets an operator fire for the first time."""
    end = graph.queues[queue].consumer
    op = None if end is None else graph.instances[end.instance].operator
    if end is None or not isinstance(op, typed.Operator) or op.first is None or op.rated is None:
        return False
    rates = [rate for handler in (op.first, op.rated) for rate in handler.rates if rate.port == end.position]
    return all(rate.peek == 0 for rate in rates)


def _unfit(member: g.Instance) -> str | None:
    """Why an operator cannot be one of several that are one."""
    op, name = member.operator, f"`{member.use.operator}`"
    if isinstance(op, typed.Extern):
        return f"the body of {name} is not text"
    if (
        op.merge is not None
        or op.mark is not None
        or any(end.by is not None for end in (*op.ports, *op.outs))
    ):
        return f"{name} acts on order"
    if op.items and len(op.ports) > 1:
        return f"{name} takes what comes first"
    if op.rated is not None and op.rated.early:
        return f"{name} sends items before its window is complete"
    if unproven(op):
        return f"{name} may send other numbers of items than it states"
    if (turn := sum(phase.count for phase in op.phases)) > LONGEST:
        return f"{name} fires {turn} times in a turn, more than {LONGEST}"
    for handler in _handlers(op):
        for out in range(len(op.outs)):
            low, high = emitted(handler.body, out, op.fns)
            if low != high:
                return f"{name} does not send the same number of items each time"
    return None


_Handler = typed.ItemHandler | typed.PhaseHandler | typed.RatedHandler


def _handlers(op: typed.Operator) -> Iterator[_Handler]:
    yield from op.items
    yield from op.phases
    yield from (handler for handler in (op.first, op.rated) if handler is not None)


# ----------------------------------------------------------------------------------------- playing a loop through


@frozen
class Stage:
    """What an operator does next: when it can, what it takes, what it gives, and what it does after that. Queues by number."""

    needs: tuple[tuple[int, int], ...]
    pops: tuple[tuple[int, int], ...]
    pushes: tuple[tuple[int, int], ...]
    following: int


@define
class Play:
    """A loop as numbers of items. `queues`: those that its operators read; `entry`: the one from outside, by number.

    `beginning`: those by which operators are told that they may begin. `most`: how many items have waited in each queue at
    most. `ends`: whether each operator at which a queue closes the loop has, whenever nobody could fire, waited for another
    queue, too: then an end of the input is told.
    """

    queues: tuple[str, ...]
    entry: int
    beginning: tuple[int, ...]
    initial: tuple[int, ...]
    closing: frozenset[int]
    stages: tuple[tuple[Stage, ...], ...]
    most: list[int] = field(factory=list[int])
    ends: bool = True

    @classmethod
    def of(cls, graph: g.Graph, circle: Circle) -> Play:
        """The loop at its beginning."""
        members = [graph.instances[index] for index in circle.members]
        queues = tuple(queue for member in members for queue in member.ins)
        numbers = {queue: number for number, queue in enumerate(queues)}
        outer = _entries(graph, circle)
        beginning = tuple(numbers[queue] for queue in outer if _begins(graph, queue))
        (entry,) = (numbers[queue] for queue in outer if numbers[queue] not in beginning)
        initial = tuple(len(port.initial) for member in members for port in member.operator.ports)
        closing = frozenset(numbers[queue] for queue in back_edges(graph) if queue in numbers)
        stages = tuple(_stages(member, numbers) for member in members)
        return cls(queues, entry, beginning, initial, closing, stages)

    def settle(self) -> bool:
        """Plays until a state comes again; whether one does."""
        counts, at = list(self.initial), [0] * len(self.stages)
        self.most = list(counts)
        seen = set[tuple[int, ...]]()
        left = self._run(counts, at, LONGEST) if self.beginning else LONGEST
        while left >= 0 and (state := (*counts, *at)) not in seen:
            seen.add(state)
            self._look(counts, at)
            self._push(counts, self.entry, 1)
            left = self._run(counts, at, left - 1)
        return left >= 0

    def _run(self, counts: list[int], at: list[int], left: int) -> int:
        """Fires until nobody can, or more than `left` times; how much of that is left."""
        busy = True
        while busy:
            busy = False
            for member, stages in enumerate(self.stages):
                while True:
                    stage = stages[at[member]]
                    if any(counts[queue] < need for queue, need in stage.needs):
                        break
                    left -= 1
                    if left < 0:
                        return left
                    for queue, count in stage.pushes:
                        self._push(counts, queue, count)
                    for queue, count in stage.pops:
                        counts[queue] -= count
                    at[member], busy = stage.following, True
        return left

    def _push(self, counts: list[int], queue: int, count: int) -> None:
        counts[queue] += count
        self.most[queue] = max(self.most[queue], counts[queue])

    def _look(self, counts: Sequence[int], at: Sequence[int]) -> None:
        """Sees who waits for what, now that nobody can fire."""
        for stages, stage in zip(self.stages, at, strict=True):
            missing = {queue for queue, need in stages[stage].needs if counts[queue] < need}
            self.ends = self.ends and not (missing and missing <= self.closing)


def _stages(member: g.Instance, numbers: Mapping[str, int]) -> tuple[Stage, ...]:
    op = member.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - the guard has approved
    ins = [numbers[queue] for queue in member.ins]

    def pushes(handler: _Handler) -> tuple[tuple[int, int], ...]:
        counts = ((queue, emitted(handler.body, out, op.fns)[0]) for out, queue in enumerate(member.outs))
        return tuple((numbers[queue], count) for queue, count in counts if queue in numbers)

    if op.phases:
        turn = [phase for phase in op.phases for _ in range(phase.count)]
        found: list[Stage] = []
        for i, phase in enumerate(turn):
            one = ((ins[phase.port], 1),)
            found.append(Stage(one, one, pushes(phase), (i + 1) % len(turn)))
        return tuple(found)
    if op.items:
        one = ((ins[0], 1),)
        return (Stage(one, one, pushes(op.items[0]), 0),)
    handlers = [handler for handler in (op.first, op.rated) if handler is not None]
    return tuple(
        Stage(
            tuple((ins[rate.port], rate.peek) for rate in handler.rates),
            tuple((ins[rate.port], rate.pop) for rate in handler.rates),
            pushes(handler),
            len(handlers) - 1,
        )
        for handler in handlers
    )


# ---------------------------------------------------------------------------------------------------------- mechanism

_NUMBER: Final = s.TypeName("i64")


def circled(verified: Verified, circle: Circle) -> Program:
    """The program with one use in place of those of a loop."""
    graph, program, names = verified.graph, verified.program, Names(verified.program)
    members = [graph.instances[index] for index in circle.members]
    play = Play.of(graph, circle)
    play.settle()
    made = _Making(verified, members, play, names)
    operator = made.operator()
    outer = [play.queues[queue] for queue in (play.entry, *play.beginning)]
    inner = set(play.queues) - set(outer)
    first = members[0]
    written = [
        name
        for member in members
        for name, param in zip(member.variables, member.operator.vars, strict=True)
        if param.written
    ]
    used = [name for member in members for name in member.variables]
    added = [variable.name for variable in made.variables]
    loop = a.Loop(tuple(dict.fromkeys(member.use.operator for member in members)))
    use = Use(
        (
            *(queue for member in members for queue in member.outs if queue not in inner),
            *(f"${name}" for name in (*written, *made.written)),
        ),
        operator.name,
        (*outer, *(f"${name}" for name in (*used, *added))),
        (*said(members), a.annotation(loop)),
        span=first.use.span,
    )
    gone = {id(member.use) for member in members}

    def change(decl: Decl) -> Decl | None:
        if decl is first.use:
            return use
        return None if id(decl) in gone or (isinstance(decl, Queue) and decl.name in inner) else decl

    return changed(program, change, (*made.variables, operator))


def said(members: Sequence[g.Instance]) -> tuple[a.Annotation, ...]:
    """What holds of all: where it is placed, and what nobody here understands."""
    every = dict.fromkeys(said for member in members for said in member.use.annotations)
    kept = (one for one in every if one.name == "Group" or one.name not in a.NAMES)
    return (*kept, *a.together([member.use for member in members]))


@define
class _Making:
    """The operator that a loop becomes. For each queue: the names of its ring, of where it begins, and of how many wait in it."""

    verified: Verified
    members: Sequence[g.Instance]
    play: Play
    fresh: Names
    known: JoinedNames = field(init=False)
    parts: list[s.Operator] = field(factory=list[s.Operator])
    starts: list[int] = field(factory=list[int])  # the number of the first queue of each member
    types: list[s.TypeExpr] = field(factory=list[s.TypeExpr])
    rings: list[str] = field(factory=list[str])
    heads: list[str] = field(factory=list[str])
    counts: list[str] = field(factory=list[str])
    sizes: list[int] = field(factory=list[int])
    at: str = ""
    kept: list[tuple[str, int]] = field(
        factory=list[tuple[str, int]]
    )  # local names that `at` keeps, and how they begin
    ringed: list[int] = field(factory=list[int])  # the queues of which anything is kept
    variables: list[Variable] = field(factory=list[Variable])
    written: list[str] = field(factory=list[str])  # of these, those in which anything changes

    def operator(self) -> s.Operator:
        """The operator; its new variables are `variables`, the last of `vars`."""
        self._read()
        self._queues()
        fns = [self._sending(number, fn) for number, part in enumerate(self.parts) for fn in part.fns]
        firings: list[s.Stmt] = []
        busy = self._local("busy")
        for member in range(len(self.members)):
            firings += self._firings(member, busy)
        run = (
            s.VarDecl(busy, None, s.Bool(True)),
            s.While(None, s.Name(busy), s.Block((s.Assign(s.Name(busy), s.Bool(False)), *firings))),
        )
        numbers = [
            s.VarDecl(name, _NUMBER, s.Index(s.Var(self.at), s.Int(i)))
            for i, (name, _) in enumerate(self.kept)
        ]
        back = [
            s.Assign(s.Index(s.Var(self.at), s.Int(i)), s.Name(name)) for i, (name, _) in enumerate(self.kept)
        ]
        every = {queue: port for port, queue in self._ports()}
        ports = [evolve(every[queue], initial=None) for queue in (self.play.entry, *self.play.beginning)]
        window = self._local("item")
        told = [s.Rate(port.name, s.Int(0), s.Int(0), self._local("begin")) for port in ports]
        span = self.parts[0].span
        fills, consts = self._fills()
        handlers: list[s.Handler] = []
        if fills or self.play.beginning:
            begin = s.Block((*numbers, *fills, *run, *back) if self.play.beginning else fills)
            handlers.append(s.RatedHandler(tuple(told), begin, first=True, span=span))
        pushed = self._push(self.play.entry, s.Index(s.Name(window), s.Int(0)))
        rates = (s.Rate(ports[0].name, None, s.Int(1), window), *told[1:])
        handlers.append(s.RatedHandler(rates, s.Block((*numbers, *pushed, *run, *back)), span=span))
        outs = tuple(
            evolve(out, push=None)
            for part, member in zip(self.parts, self.members, strict=True)
            for out, queue in zip(part.outs, member.outs, strict=True)
            if queue not in self.play.queues
        )
        self._finish()
        name = reduce(joint, (member.use.operator for member in self.members))
        own = tuple(s.VarParam(self.rings[queue], self._array(queue)) for queue in self.ringed)
        return s.Operator(
            self.fresh.operator(name),
            tuple(ports),
            (*(var for part in self.parts for var in part.vars), *own, s.VarParam(self.at, self._at_type())),
            outs,
            (*(const for part in self.parts for const in part.consts), *consts),
            tuple(fns),
            tuple(handlers),
            span=span,
        )

    # -- names

    def _read(self) -> None:
        """The members' texts, with names that no two of them have in common."""
        for member in self.members:
            text = source(self.verified, member.use.operator)
            assert isinstance(text, s.Operator)  # noqa: S101 - the guard has approved
            if self.parts:
                text = apart(text, self.known)
                self.known.add(text)
            else:
                self.known = JoinedNames.of(text)
            self.starts.append(sum(len(part.ports) for part in self.parts))
            self.parts.append(text)

    def _local(self, wanted: str) -> str:
        found = fresh(wanted, self.known.values)
        self.known.values.add(found)
        return found

    def _variable(self, wanted: str) -> str:
        found = fresh(wanted, self.known.variables)
        self.known.variables.add(found)
        return found

    def _ports(self) -> Iterator[tuple[s.Port, int]]:
        """All ports with the numbers of their queues."""
        return (
            (port, number) for number, port in enumerate(port for part in self.parts for port in part.ports)
        )

    def _queues(self) -> None:
        """Names all queues, and what is kept between items."""
        spelled = self.verified.type_names
        for number, (queue, most) in enumerate(zip(self.play.queues, self.play.most, strict=True)):
            self.types.append(type_text(self.verified.graph.queues[queue].type, spelled))
            self.sizes.append(
                1 << max(most - 1, 0).bit_length()
            )  # a power of two, so that places are cut off, not divided
            self.rings.append(self._variable(f"ring_{number + 1}"))
            self.heads.append(self._local(f"head_{number + 1}"))
            self.counts.append(self._local(f"count_{number + 1}"))
        self.at = self._variable("at")
        self.ringed = [queue for queue in range(len(self.rings)) if queue not in self.play.beginning]
        self.kept = [(self.heads[queue], 0) for queue in self.ringed]
        self.kept += [(self.counts[queue], self.play.initial[queue]) for queue in self.ringed]
        changing = {self.play.entry} | {queue for queue, count in enumerate(self.play.initial) if count}
        changing |= {
            queue for stages in self.play.stages for each in stages for queue, count in each.pushes if count
        }
        stem = self.members[0].use.operator
        for queue in self.ringed:
            name = self.fresh.variable(f"{stem}_{self.rings[queue]}")
            self.variables.append(Variable(name, self._array(queue), s.Call("zero", ())))
            if queue in changing:
                self.written.append(name)

    def _array(self, queue: int) -> s.TypeExpr:
        return s.TypeName("array", (self.types[queue], s.Int(self.sizes[queue])))

    def _at_type(self) -> s.TypeExpr:
        return s.TypeName("array", (_NUMBER, s.Int(len(self.kept))))

    # -- rings

    def _place(self, queue: int, behind: s.Expr) -> s.Expr:
        """A place in a ring, so many items behind its head."""
        if self.sizes[queue] == 1:
            return s.Index(s.Var(self.rings[queue]), s.Int(0))
        index = s.Binary("&", _plus(s.Name(self.heads[queue]), behind), s.Int(self.sizes[queue] - 1))
        return s.Index(s.Var(self.rings[queue]), index)

    def _push(self, queue: int, value: s.Expr) -> tuple[s.Stmt, ...]:
        count = s.Name(self.counts[queue])
        return (
            s.Assign(self._place(queue, count), value),
            s.Assign(count, _plus(count, s.Int(1))),
        )

    def _pop(self, queue: int, count: int) -> tuple[s.Stmt, ...]:
        if not count:
            return ()
        left = s.Name(self.counts[queue])
        gone = s.Assign(left, s.Binary("-%", left, s.Int(count)))
        if self.sizes[queue] == 1:
            return (gone,)
        head = s.Name(self.heads[queue])
        moved = s.Binary("&", _plus(head, s.Int(count)), s.Int(self.sizes[queue] - 1))
        return (s.Assign(head, moved), gone)

    def _fills(self) -> tuple[tuple[s.Stmt, ...], tuple[s.Const, ...]]:
        """What puts the items into the rings that wait from the beginning."""
        consts: list[s.Const] = []
        fills: list[s.Stmt] = []
        for port, queue in self._ports():
            many = self.play.initial[queue]
            if port.initial is not None and many:
                const, i = self._local("waiting"), self._local("i")
                consts.append(s.Const(const, s.TypeName("list", (self.types[queue],)), port.initial))
                place = s.Index(s.Var(self.rings[queue]), s.Name(i))
                put = s.Assign(place, s.Index(s.Name(const), s.Name(i)))
                fills.append(s.For(None, (i,), s.Range(s.Int(0), s.Int(many)), s.Block((put,))))
        return tuple(fills), tuple(consts)

    def _finish(self) -> None:
        """The variable of what is kept between items."""
        name = self.fresh.variable(f"{self.members[0].use.operator}_{self.at}")
        first = s.ListValue(tuple(s.Int(begin) for _, begin in self.kept))
        self.variables.append(Variable(name, self._at_type(), first))
        self.written.append(name)

    # -- firings

    def _firings(self, number: int, busy: str) -> Iterator[s.Stmt]:
        """Fires a member as often as it can."""
        part, op = self.parts[number], self.members[number].operator
        assert isinstance(op, typed.Operator)  # noqa: S101 - the guard has approved
        queues = [self.starts[number] + i for i in range(len(part.ports))]
        ports = {port.name: i for i, port in enumerate(part.ports)}
        fired = s.Assign(s.Name(busy), s.Bool(True))
        rated: dict[bool, tuple[s.Expr, tuple[s.Stmt, ...]]] = {}
        phases: list[tuple[int, int, tuple[s.Stmt, ...]]] = []  # firings, queue, what is done
        counted = iter(op.phases)
        for handler in part.handlers:
            match handler:
                case s.ItemHandler(port, name, body) | s.PhaseHandler(_, port, name, body):
                    queue = queues[ports[port]]
                    bound = s.VarDecl(name, self.types[queue], self._place(queue, s.Int(0)))
                    done = (*self._done(number, (bound, *body.items)), *self._pop(queue, 1), fired)
                    if isinstance(handler, s.ItemHandler):
                        yield s.While(None, self._enough(queue, 1), s.Block(done))
                    elif count := next(counted).count:
                        phases.append((count, queue, done))
                case s.RatedHandler(rates, body, first):
                    known = op.first if first else op.rated
                    assert known is not None  # noqa: S101 - it has the handler
                    rated[first] = self._rated(number, rates, body, known, queues, fired)
                case _:
                    raise AssertionError  # the guard has approved
        if phases:
            yield self._turns(phases)
        if True in rated:
            cond, done = rated[True]
            begun = self._local("fired")
            self.kept.append((begun, 0))
            due = s.Binary("and", s.Binary("==", s.Name(begun), s.Int(0)), cond)
            yield s.If(due, s.Block((*done, s.Assign(s.Name(begun), s.Int(1)))))
            cond, done = rated[False]
            yield s.While(None, s.Binary("and", s.Binary("==", s.Name(begun), s.Int(1)), cond), s.Block(done))
        elif rated:
            cond, done = rated[False]
            yield s.While(None, cond, s.Block(done))

    def _rated(
        self, number: int, rates: Sequence[s.Rate], body: s.Block, known: typed.RatedHandler,
        queues: Sequence[int], fired: s.Stmt,
    ) -> tuple[s.Expr, tuple[s.Stmt, ...]]:  # fmt: skip
        """When a firing at stated rates can be, and what it does."""
        conditions: list[s.Expr] = []
        pops: list[s.Stmt] = []
        for rate, told in zip(rates, known.rates, strict=True):
            queue = queues[told.port]
            if told.peek > WIDEST:
                body = s.Block((*self._copied(rate.name, queue, told.peek), *body.items))
            else:
                items = [self._place(queue, s.Int(i)) for i in range(told.peek)]
                body = s.Block(filled(body, rate.name, items, self.types[queue]))
            if told.peek:
                conditions.append(self._enough(queue, told.peek))
            pops += self._pop(queue, told.pop)
        cond = (
            reduce(lambda one, other: s.Binary("and", one, other), conditions) if conditions else s.Bool(True)
        )
        return cond, (*self._done(number, body.items), *pops, fired)

    def _copied(self, window: str, queue: int, count: int) -> tuple[s.Stmt, ...]:
        """A wide window, as an array of its own."""
        array, each = s.TypeName("array", (self.types[queue], s.Int(count))), self._local("k")
        copy = s.Assign(s.Index(s.Name(window), s.Name(each)), self._place(queue, s.Name(each)))
        return (
            s.VarDecl(window, array, s.Call("zero", ())),
            s.For(None, (each,), s.Range(s.Int(0), s.Int(count)), s.Block((copy,))),
        )

    def _turns(self, phases: Sequence[tuple[int, int, tuple[s.Stmt, ...]]]) -> s.Stmt:
        """Fires phases in turns."""
        turn = self._local("turn")
        self.kept.append((turn, 0))
        ends: list[int] = []
        for count, _, _ in phases:
            ends.append(count + (ends[-1] if ends else 0))
        enough: s.Expr = self._enough(phases[-1][1], 1)
        done = s.Block(phases[-1][2])
        for (_, queue, one), end in reversed(list(zip(phases[:-1], ends, strict=False))):
            here = s.Binary("<", s.Name(turn), s.Int(end))
            enough = s.IfExpr(here, self._enough(queue, 1), enough)
            done = s.Block((s.If(here, s.Block(one), done),))
        if len({queue for _, queue, _ in phases}) == 1:
            enough = self._enough(phases[0][1], 1)
        following = _plus(s.Name(turn), s.Int(1))
        again = s.IfExpr(s.Binary("==", following, s.Int(ends[-1])), s.Int(0), following)
        return s.While(None, enough, s.Block((*done.items, s.Assign(s.Name(turn), again))))

    def _enough(self, queue: int, need: int) -> s.Expr:
        return s.Binary(">=", s.Name(self.counts[queue]), s.Int(need))

    def _done(self, number: int, body: Sequence[s.Stmt]) -> tuple[s.Stmt, ...]:
        """What a firing of a member does: what it sends to the loop goes into rings; it may end early."""
        inner, sends = self._inner(number), self._sends(number)
        labels = {node.label for item in body for node in walk(item) if isinstance(node, s.For | s.While)}
        once = fresh("once", {label for label in labels if label is not None})

        def rewrite(node: s.Node) -> s.Node | tuple[s.Node, ...]:
            match node:
                case s.Emit(out, value) if out in inner:
                    return self._push(inner[out], value)
                case s.Call(function) if function in sends:
                    call = rebuild(node, rewrite)
                    rings = (arg for queue in sends[function] for arg in self._ring(queue))
                    return evolve(call, args=(*call.args, *rings))
                case s.Return(None):
                    return s.Continue(once)
                case _:
                    return rebuild(node, rewrite)

        found = rebuild(s.Block(tuple(body)), rewrite)
        if not any(isinstance(node, s.Return) for item in body for node in walk(item)):
            return found.items
        return (s.For(once, (self._local("k"),), s.Range(s.Int(0), s.Int(1)), found),)

    def _inner(self, number: int) -> dict[str, int]:
        """The queues of the loop that a member sends to, by its outputs."""
        numbers = {queue: i for i, queue in enumerate(self.play.queues)}
        outs = zip(self.parts[number].outs, self.members[number].outs, strict=True)
        return {out.name: numbers[queue] for out, queue in outs if queue in numbers}

    def _sends(self, number: int) -> dict[str, tuple[int, ...]]:
        """The queues of the loop that functions of a member send to, by themselves or by others that they call."""
        inner, part = self._inner(number), self.parts[number]
        found = {fn.name: frozenset[int]() for fn in part.fns}
        changing = True
        while changing:
            changing = False
            for fn in part.fns:
                nodes = list(walk(fn))
                own = frozenset(
                    inner[node.out] for node in nodes if isinstance(node, s.Emit) and node.out in inner
                )
                own = own.union(*(found.get(node.function, ()) for node in nodes if isinstance(node, s.Call)))
                changing = changing or own != found[fn.name]
                found[fn.name] = frozenset(own)
        return {name: tuple(sorted(queues)) for name, queues in found.items() if queues}

    def _ring(self, queue: int) -> tuple[s.Expr, ...]:
        """What a function must know of a queue to send to it."""
        return s.Var(self.rings[queue]), s.Name(self.heads[queue]), s.Name(self.counts[queue])

    def _sending(self, number: int, fn: s.Fn) -> s.Fn:
        """A function of a member: the rings that it sends to are parameters."""
        inner, sends = self._inner(number), self._sends(number)
        if fn.name not in sends:
            return fn
        names = {queue: [self._local(word) for word in ("ring", "head", "count")] for queue in sends[fn.name]}

        def rewrite(node: s.Node) -> s.Node | tuple[s.Node, ...]:
            match node:
                case s.Emit(out, value) if out in inner:
                    ring, head, count = map(s.Name, names[inner[out]])
                    place = s.Binary("&", _plus(head, count), s.Int(self.sizes[inner[out]] - 1))
                    return s.Assign(s.Index(ring, place), value), s.Assign(count, _plus(count, s.Int(1)))
                case s.Call(function) if function in sends:
                    call = rebuild(node, rewrite)
                    rings = (s.Name(name) for queue in sends[function] for name in names[queue])
                    return evolve(call, args=(*call.args, *rings))
                case _:
                    return rebuild(node, rewrite)

        more: list[s.Param] = []
        for queue, (ring, head, count) in names.items():
            more += (
                s.Param(ring, self._array(queue), True),
                s.Param(head, _NUMBER),
                s.Param(count, _NUMBER, True),
            )
        return evolve(rebuild(fn, rewrite), params=(*fn.params, *more))


def _plus(left: s.Expr, right: s.Expr) -> s.Expr:
    if isinstance(right, s.Int) and right.value == 0:
        return left
    return s.Binary("+%", left, right)
