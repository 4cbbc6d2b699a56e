"""Steady states: what happens in a part of a graph until nothing waits in it, and again the same from there.

Operators without state that fire at stated rates are played through, item by item, with numbers in place of items: so it is
known which item of which firing every firing takes. What a split, a join or an identity does is to say where an item is.

Paper: Lee and Messerschmitt, "Synchronous data flow" (1987).
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from functools import lru_cache
from itertools import islice, repeat
from math import lcm
from typing import TYPE_CHECKING, Final

from optimizers.queries import topological
from optimizers.windows import may_trap
from river.classes import frozen
from river.il import annotations as a
from river.il.trees import Same, SameBody
from river.lang import typed
from river.lang import types as t
from river.lang.rates import emitted, unproven
from river.lang.trees import nodes, recursive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from river.il import graph as g
    from river.passes import Verified

WIDEST: Final = 1024
"""Items that a steady state takes or sends: more do not stay in the cache."""

LONGEST: Final = 8_192
"""Firings of a steady state, those of splits and joins among them."""

MOST_MEMBERS: Final = 2_048

MOST_STATEMENTS: Final = 400
"""Of different firings in the operator that is made."""

MOST_OPERATORS: Final = 12
"""Kinds of operators that make items: machine code of more, which differ in their numbers alone, is quicker made apart."""

TRIES: Final = 4

_FLAT: Final = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64)

Origin = tuple[int, int, int]
"""An item of a steady state: the firing, the output and the item's number there; of the input, firing -1."""


@frozen
class Move:
    """What an operator does next: how many items it takes of which queues, and what it sends, by queue.

    `copies`: where in what is taken the items stand that are sent, by number of the queue and of the item; None: they are new.
    """

    takes: tuple[tuple[str, int], ...]
    sends: tuple[tuple[str, int], ...]
    copies: tuple[tuple[str, int, int], ...] | None


@frozen
class Taking:
    """A firing in a steady state that makes items: of which operator, and the items that it takes, by port."""

    member: int
    takes: tuple[tuple[Origin, ...], ...]


@frozen
class SteadyState:
    """Operators between two queues, each after those that feed it, and what they do in a steady state.

    `width`: how many items of the input it takes; `sent`: what it sends; `early`: after so many items of the input how much
    of that, as far as it is before the last.
    """

    members: tuple[int, ...]
    entry: str
    exit: str
    width: int
    firings: tuple[Taking, ...]
    sent: tuple[Origin, ...]
    early: tuple[tuple[int, int], ...]


def steadies(verified: Verified) -> Iterator[SteadyState]:
    """The parts of a graph that begin with a split, and whose steady states can be one operator each."""
    graph = verified.graph
    if not any(_split(instance) for instance in graph.instances):
        return
    stages: dict[int, tuple[Move, ...] | None] = {}
    taken: set[int] = set()
    for index in topological(graph):
        if index in taken or not _split(graph.instances[index]):
            continue
        tried = _parts(graph, index, stages)
        turns = _turns(graph, tried[0][0] if tried else (), stages)
        for members, exit_ in islice(tried, TRIES):
            sent = _sent(turns, members, exit_)
            if sent is None or _takes_back(graph, members, exit_, stages, sent):
                continue
            found = _played(graph, members, exit_, stages)
            if found is not None and _worth(graph, found):
                taken |= set(members)
                yield found
                break


def _split(instance: g.Instance) -> bool:
    return len(instance.outs) > 1 and len(instance.ins) == 1


def _parts(
    graph: g.Graph, entry: int, stages: dict[int, tuple[Move, ...] | None]
) -> Sequence[tuple[tuple[int, ...], str]]:
    """What follows a split and has one queue that leads out, the largest first."""

    def fits(index: int) -> bool:
        if index not in stages:
            stages[index] = None if index in graph.looping else _stages(graph.instances[index])
        return stages[index] is not None

    if not fits(entry):
        return ()
    members: list[int] = []
    making: set[object] = set()
    waits: dict[int, int] = {}
    leaving: dict[str, None] = {}
    ready, found = deque([entry]), list[tuple[tuple[int, ...], str]]()
    group = _group(graph.instances[entry])
    while ready and len(members) < MOST_MEMBERS:
        index = ready.popleft()
        instance = graph.instances[index]
        members.append(index)
        if any(stage.copies is None for stage in stages[index] or ()):
            making.add(kind_of(instance))
        if len(making) > MOST_OPERATORS:
            break
        for queue in instance.ins:
            leaving.pop(queue, None)
        leaving |= dict.fromkeys(instance.outs)
        for queue in instance.outs:
            end = graph.queues[queue].consumer
            if end is None:
                continue
            waits[end.instance] = waits.get(end.instance, len(graph.instances[end.instance].ins)) - 1
            if (
                not waits[end.instance]
                and fits(end.instance)
                and _group(graph.instances[end.instance]) == group
            ):
                ready.append(end.instance)
        if len(leaving) == 1 and len(members) > 1:
            found.append((tuple(members), next(iter(leaving))))
    return found[::-1]


def _group(instance: g.Instance) -> object:
    """Where an operator is placed."""
    return a.annotated(instance.use).group


# ---------------------------------------------------------------------------------------------------- what may take part


def _stages(instance: g.Instance) -> tuple[Move, ...] | None:
    """What an operator does in turns; None if it does not do the same for ever, or keeps anything but its turn."""
    op, use = instance.operator, a.annotated(instance.use)
    if not isinstance(op, typed.Operator) or use.fuse is not None or use.regions:
        return None
    steps = _steps(SameBody(op))
    if steps is None:
        return None
    ins, outs = instance.ins, instance.outs
    return tuple(
        move
        for step, times in steps
        for move in repeat(
            Move(
                tuple((ins[port], count) for port, count in step.takes),
                tuple((outs[out], count) for out, count in step.sends),
                None if step.copies is None else tuple((outs[out], 0, 0) for out in step.copies),
            ),
            times,
        )
    )


@frozen
class _Step:
    """A `Move` by numbers of ports and outputs. `copies`: the outputs that the item is sent to that is taken."""

    takes: tuple[tuple[int, int], ...]
    sends: tuple[tuple[int, int], ...]
    copies: tuple[int, ...] | None


@lru_cache(maxsize=8192)
def _steps(same: Same[typed.Operator]) -> tuple[tuple[_Step, int], ...] | None:
    """What an operator does in turns, whoever uses it, each step with how often it comes: many uses may be of one operator."""
    op = same.value
    if (
        op.vars
        or op.first is not None
        or op.merge is not None
        or op.mark is not None
        or any(end.by is not None or not _flat(end.type) for end in (*op.ports, *op.outs))
        or any(port.initial for port in op.ports)
    ):
        return None
    if op.rated is not None:
        return _rated_step(op, op.rated)
    if op.phases:
        return _phase_steps(op.phases)
    if len(op.items) == 1 and len(op.ports) == 1:
        copied = _copied(0, op.items[0].body)
        return None if copied is None else ((copied, 1),)
    return None


def _flat(type_: t.Type) -> bool:
    """Whether items lie in lanes as they are."""
    match type_:
        case t.Record() | t.Tuple():
            return all(map(_flat, t.parts(type_)))
        case _:
            return type_ in _FLAT


def _phase_steps(phases: Sequence[typed.PhaseHandler]) -> tuple[tuple[_Step, int], ...] | None:
    found: list[tuple[_Step, int]] = []
    for phase in phases:
        copied = _copied(phase.port, phase.body)
        if copied is None:
            return None
        found.append((copied, phase.count))
    return tuple(found) if 0 < sum(count for _, count in found) <= LONGEST else None


def _copied(port: int, body: typed.Block) -> _Step | None:
    """A step that sends an item on as it is."""
    outs: list[int] = []
    for item in body.items:
        match item:
            case typed.Emit(out, typed.Local(_, 0)):
                outs.append(out)
            case _:
                return None
    return _Step(((port, 1),), tuple((out, outs.count(out)) for out in dict.fromkeys(outs)), tuple(outs))


def _rated_step(op: typed.Operator, handler: typed.RatedHandler) -> tuple[tuple[_Step, int], ...] | None:
    if (
        any(rate.peek != rate.pop or not rate.pop for rate in handler.rates)
        or handler.early
        or unproven(op)
        or any(fn.emits for fn in op.fns)
        or any(isinstance(node, typed.Return) for node in nodes(handler.body))
        or sum(rate.pop for rate in handler.rates) > WIDEST
    ):
        return None
    sends: list[tuple[int, int]] = []
    for out in range(len(op.outs)):
        low, high = emitted(handler.body, out, op.fns)
        if low != high or low > WIDEST:
            return None
        sends.append((out, low))
    return ((_Step(tuple((rate.port, rate.pop) for rate in handler.rates), tuple(sends), None), 1),)


# ------------------------------------------------------------------------------------------------ playing a steady state


@frozen
class _Turns:
    """Of operators, each after those that feed it: what the first so many take and send in a steady state of theirs.

    `whole`: how many turns the first has to make, so that the first 1, 2, ... operators all make whole ones; as far as that is
    few. `given`: how many items come by a queue for one turn of the first.
    """

    whole: Sequence[int]
    given: Mapping[str, Fraction]


def _turns(graph: g.Graph, members: Sequence[int], stages: Mapping[int, tuple[Move, ...] | None]) -> _Turns:
    """How large steady states must be, by what operators take and send in a whole turn each.

    Rates that do not go well together have steady states of thousands of firings: these need not be played to be refused. More
    operators have none that is smaller, so what the first of them need is found on the way.
    """
    given: dict[str, Fraction] = {}
    wholes: list[int] = []
    whole, fired = 1, Fraction(0)  # firings of all for one turn of the first
    entry = graph.instances[members[0]].ins[0] if members else ""
    for index in members:
        turn = stages[index] or ()
        takes, sends = dict[str, int](), dict[str, int]()
        for stage in turn:
            for total, moved in ((takes, stage.takes), (sends, stage.sends)):
                for queue, count in moved:
                    total[queue] = total.get(queue, 0) + count
        given.setdefault(entry, Fraction(takes.get(entry, 0)))
        queues = graph.instances[index].ins
        often = {given[queue] / takes[queue] if takes.get(queue) else None for queue in queues}
        many = often.pop()
        if many is None or often:
            break  # items pile up
        whole, fired = lcm(whole, many.denominator), fired + many * len(turn)
        if whole * given[entry] > WIDEST or whole * fired > LONGEST:
            break
        given |= {queue: many * sends.get(queue, 0) for queue in graph.instances[index].outs}
        wholes.append(whole)
    return _Turns(wholes, given)


def _sent(turns: _Turns, members: Sequence[int], exit_: str) -> Fraction | None:
    """How many items the smallest steady state sends that there can be; None if it is too large."""
    if len(members) > len(turns.whole):
        return None
    sent = turns.whole[len(members) - 1] * turns.given[exit_]
    return sent if sent <= WIDEST else None


def _takes_back(
    graph: g.Graph,
    members: Sequence[int],
    exit_: str,
    stages: Mapping[int, tuple[Move, ...] | None],
    sent: Fraction,
) -> bool:
    """Whether a trap takes items of another firing back, as `_worth` says: also known without playing, by who makes them."""
    producers = {queue: index for index in members for queue in graph.instances[index].outs}
    makers: dict[int, int] = {}  # how many items each sends that reach the end as they are, at a firing
    waiting, seen = [exit_], {exit_}
    while waiting:
        queue = waiting.pop()
        index = producers.get(queue, -1)
        for move in (() if index < 0 else stages[index]) or ():
            if move.copies is None:
                makers[index] = dict(move.sends).get(queue, 0)
            else:
                before = {move.takes[port][0] for out, port, _ in move.copies if out == queue} - seen
                seen |= before
                waiting += before
    several = len(makers) > 1 or any(count < sent for count in makers.values())
    found = (graph.instances[index].operator for index in members)
    return several and any(may_trap(op) for op in found if isinstance(op, typed.Operator))


def _played(
    graph: g.Graph, members: Sequence[int], exit_: str, stages: Mapping[int, tuple[Move, ...] | None]
) -> SteadyState | None:
    """What happens until nothing waits again, item by item; None if that is much."""
    turns = {index: stages[index] or () for index in members}
    waiting: dict[str, deque[Origin]] = {
        queue: deque() for index in members for queue in graph.instances[index].ins
    }
    readers = {queue: index for index in members for queue in graph.instances[index].ins}
    at = dict.fromkeys(members, 0)
    entry = graph.instances[members[0]].ins[0]
    firings: list[Taking] = []
    sent: list[Origin] = []
    inside_, moved, fired = (
        0,
        0,
        0,
    )  # items that wait, operators that are not at their first stage, all firings

    def put(queue: str, cell: Origin) -> int:
        if queue == exit_:
            sent.append(cell)
            return 0
        waiting[queue].append(cell)
        return 1

    early: list[tuple[int, int]] = []
    for width in range(1, WIDEST + 1):
        if len(sent) > (early[-1][1] if early else 0):
            early.append((width - 1, len(sent)))
        inside_ += put(entry, (-1, 0, width - 1))
        left = [members[0]]
        while left:
            index = left.pop()
            turn = turns[index]
            while True:
                stage = turn[at[index]]
                if any(len(waiting[queue]) < count for queue, count in stage.takes):
                    break
                fired += 1
                if fired > LONGEST:
                    return None
                taken = tuple(
                    tuple(waiting[queue].popleft() for _ in range(count)) for queue, count in stage.takes
                )
                inside_ -= sum(map(len, taken))
                if stage.copies is None:
                    outs = {queue: out for out, queue in enumerate(graph.instances[index].outs)}
                    new = [
                        (queue, (len(firings), outs[queue], n))
                        for queue, count in stage.sends
                        for n in range(count)
                    ]
                    firings.append(Taking(index, taken))
                else:
                    new = [(queue, taken[port][n]) for queue, port, n in stage.copies]
                for queue, cell in new:
                    inside_ += put(queue, cell)
                if len(sent) > WIDEST:
                    return None
                left += [
                    readers[queue] for queue, count in reversed(stage.sends) if count and queue in readers
                ]
                moved -= at[index] != 0
                at[index] = (at[index] + 1) % len(turn)
                moved += at[index] != 0
        if not inside_ and not moved:
            return (
                SteadyState(tuple(members), entry, exit_, width, tuple(firings), tuple(sent), tuple(early))
                if sent
                else None
            )
    return None


def _worth(graph: g.Graph, found: SteadyState) -> bool:
    """Whether what is made is not too large, and a trap of one firing takes nothing back that another one has sent.

    What sends items early fires on zeros in place of what is still to come: then it must end, and not trap.
    """
    operators = {
        index: op
        for index in found.members
        if isinstance(op := graph.instances[index].operator, typed.Operator)
    }
    different = {id(op): op for op in operators.values()}.values()
    if len({firing for firing, _, _ in found.sent}) > 1 and any(may_trap(op) for op in different):
        return False
    if found.early and any(may_trap(op) or _may_not_end(op) for op in different):
        return False
    firsts = [found.firings[group[0]].member for group in groups(graph, found)]
    return sum(map(statements, (operators[index] for index in firsts))) <= MOST_STATEMENTS


def _may_not_end(op: typed.Operator) -> bool:
    """Whether an operator has loops that need not end, or functions that call themselves."""
    return recursive(op.fns) or any(isinstance(node, typed.While) for node in nodes(op))


def statements(op: typed.Operator) -> int:
    """How many statements a firing has."""
    assert op.rated is not None  # noqa: S101 - it makes items
    kinds = (typed.Let, typed.Var, typed.Assign, typed.Emit, typed.Branch, typed.For, typed.While, typed.Do)
    return sum(isinstance(node, kinds) for node in nodes(op.rated.body))


def kind_of(instance: g.Instance) -> object:
    """What operators have in common whose firings may be one loop: the name, or all but numbers, which stand in tables then."""
    op = instance.operator
    if isinstance(op, typed.Operator) and not op.fns and all(map(_number, op.consts)):
        return SameBody(op)
    return instance.use.operator


def _number(const: typed.Const) -> bool:
    """Whether a constant can be an item of a table: it says what it is on its own."""
    others = (typed.ConstRef, typed.Call)
    return const.type in _FLAT and not any(isinstance(node, others) for node in nodes(const.value))


def groups(graph: g.Graph, site: SteadyState) -> list[list[int]]:
    """Firings, by number, that become one loop: of one kind, none after another. Each after those that feed it."""
    levels: list[int] = []
    kinds = {firing.member: kind_of(graph.instances[firing.member]) for firing in site.firings}
    found: dict[tuple[int, object], list[int]] = {}
    for number, firing in enumerate(site.firings):
        before = [levels[cell[0]] for cells in firing.takes for cell in cells if cell[0] >= 0]
        levels.append(1 + max(before, default=0))
        found.setdefault((levels[-1], kinds[firing.member]), []).append(number)
    return [found[key] for key in sorted(found, key=lambda key: key[0])]
