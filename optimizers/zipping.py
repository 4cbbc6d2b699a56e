"""Zipping: operators that only deal items in turns go; who is behind or before them takes or sends the items by itself.

A join by turns (`phase 1 on a(x) {emit o x;} phase 1 on b(x) {emit o x;}`) puts no more than order into a queue. If who reads it
consumes whole turns at each firing, it knows which item comes from where: it gets a port for each producer. Likewise a
split by turns behind an operator that sends whole turns at each firing. Two joins, one behind the other, become one.

Paper: Thies, Karczmarek, Amarasinghe, "StreamIt" (2002), split-joins by `roundrobin`; River §4.1.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING, ClassVar, Final

from optimizers.queries import Alike, Names, changed, downstream, joint, source, successors, topological
from optimizers.windows import filled, sent
from river.classes import evolve, frozen
from river.diagnostics import Note
from river.il.annotations import annotated, bordered, together
from river.il.program import Program, Queue, Use
from river.il.standard import WIDE
from river.il.trees import Same, fresh, names, rebuild
from river.lang import syntax as s
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform


@frozen
class Site:
    """Two operators, the first of which feeds the second: a join and who reads it, or who feeds a split and that."""

    first: int
    second: int
    split: bool


@frozen
class Zipping:
    """`zipping`: joins and splits by turns go, where whole turns are consumed or sent."""

    name: ClassVar[str] = "zipping"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        graph = verified.graph
        for index in topological(graph):
            first = graph.instances[index]
            for after in successors(graph, first):
                second = graph.instances[after]
                if _joins(first.operator) and not _takes_one(second.operator):
                    yield Site(index, after, split=False)
                elif _splits(second.operator) and not _joins(first.operator):
                    yield Site(index, after, split=True)

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        graph = verified.graph
        first, second = graph.instances[site.first], graph.instances[site.second]
        reason = _apart(graph, first, second)
        if reason is None:
            reason = _split_obstacle(first, second) if site.split else _join_obstacle(graph, first, second)
        both = f"`{first.use.operator}` and `{second.use.operator}`"
        return None if reason is None else Note(f"{both} stay apart: {reason}", second.use.span)

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        return _zipped(verified, [_made(verified, site)])

    def together(self, verified: Verified, sites: Sequence[Site], /) -> Program:
        """Those that have no operator in common. A join feeds one, and one feeds a split, so that no circle arises."""
        taken: set[int] = set()
        found: list[_Zipped] = []
        for site in sites:
            if taken.isdisjoint((site.first, site.second)):
                found.append(_made(verified, site))
                taken |= {site.first, site.second}
        return _zipped(verified, found)


# ------------------------------------------------------------------------------------------------------------- policy


def _by_turns(op: typed.Operator | typed.Extern) -> bool:
    """Whether an operator sends each item on as it is, one after the other in a fixed order of ports and outputs."""
    return isinstance(op, typed.Operator) and bool(op.phases) and _deals(Same(op))


@lru_cache(maxsize=8192)
def _deals(same: Same[typed.Operator]) -> bool:
    """The same of an operator with phases, which is asked for each of its neighbours."""
    op = same.value
    if op.vars or op.mark is not None:
        return False
    types = {end.type for end in (*op.ports, *op.outs)}
    ordered = any(end.by is not None for end in (*op.ports, *op.outs))
    plain = all(_sends_on(phase.body) for phase in op.phases)
    return len(types) == 1 and not ordered and plain and all(out.push in (None, 1) for out in op.outs)


def _sends_on(body: typed.Block) -> bool:
    match body.items:
        case (typed.Emit(_, typed.Local(_, 0)),):
            return True
        case _:
            return False


def _joins(op: typed.Operator | typed.Extern) -> bool:
    return _by_turns(op) and len(op.outs) == 1 and len(op.ports) > 1


def _splits(op: typed.Operator | typed.Extern) -> bool:
    return _by_turns(op) and len(op.ports) == 1 and len(op.outs) > 1


def _takes_one(op: typed.Operator | typed.Extern) -> bool:
    """Whether an operator is not asked, because it reads item by item."""
    return isinstance(op, typed.Operator) and not op.phases and op.rated is None


def _too_long(op: typed.Operator) -> str | None:
    """Why a turn is not to be written out: nobody puts firings together from one that is so long."""
    length = sum(phase.count for phase in op.phases)
    return f"a turn of {length} items is more than {LONG}" if length > LONG else None


def _turn(op: typed.Operator) -> tuple[typed.PhaseHandler, ...]:
    """One item after the other: the phases, each as often as it fires. A turn is not `_too_long`."""
    return tuple(phase for phase in op.phases for _ in range(phase.count))


# -------------------------------------------------------------------------------------------------------------- guard

MOST: Final = 256
"""Items of one turn, or of a firing that is put together from turns."""

LONG: Final = 1 << 16
"""Items of a turn that is looked at item by item."""


def _apart(graph: g.Graph, first: g.Instance, second: g.Instance) -> str | None:
    """Why two operators must stay two, whatever they do."""
    one, other = annotated(first.use), annotated(second.use)
    if {first.index, second.index} & graph.looping:
        return "they are part of a loop"
    if bordered(first.use, second.use):
        return "a border of a parallel region is between them"
    if one.group is not None and other.group is not None and one.group != other.group:
        return "they are placed in different groups"
    if one.fuse is not None or other.fuse is not None:
        return "`@Fuse` says what becomes one"
    return None


def _join_obstacle(graph: g.Graph, join: g.Instance, reader: g.Instance) -> str | None:
    """Why a reader cannot take the items of a join by itself."""
    one, other = join.operator, reader.operator
    if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):
        return f"the body of `{reader.use.operator}` is not text"
    if one.consts or one.fns:
        return f"`{join.use.operator}` has names of its own"
    if (long := _too_long(one)) is not None:
        return long
    turn = _turn(one)
    if {phase.port for phase in turn} != set(range(len(one.ports))):
        return f"`{join.use.operator}` never reads one of its inputs"
    port = reader.ins.index(join.outs[0])
    if other.ports[port].initial:
        return f"`{reader.use.operator}` has items to begin with, which shift the turns"
    if other.phases:
        if (ports := len(one.ports) + len(other.ports) - 1) > WIDE:
            return f"{ports} inputs are more than {WIDE}"
        pops = [phase.count for phase in other.phases if phase.port == port]
        peeks = [max(pops)]
    elif other.first is not None:
        return f"the first firing of `{reader.use.operator}` is another one"
    else:
        assert other.rated is not None  # noqa: S101 - by the policy
        if other.rated.early:
            return f"`{reader.use.operator}` sends items before its window is complete"
        pops = [rate.pop for rate in other.rated.rates if rate.port == port]
        peeks = [rate.peek for rate in other.rated.rates if rate.port == port]
    if any(pop % len(turn) for pop in pops) or not any(pops):
        taken = " or ".join(str(pop) for pop in dict.fromkeys(pops))
        return f"`{reader.use.operator}` takes {taken} items at once, a turn of `{join.use.operator}` has {len(turn)}"
    if max(*peeks, len(turn)) > MOST:
        return f"{max(*peeks, len(turn))} items are more than {MOST}"
    if _endless(graph, join, reader):
        return f"`{join.use.operator}` is behind a loop, and may never tell of its end"
    return None


def _endless(graph: g.Graph, join: g.Instance, reader: g.Instance) -> bool:
    """Whether the end of an input may be told earlier than by the join, and somebody is there to hear it.

    A join ends with the input at which it stands; the reader with any. At last both end, unless a loop ran dry.
    """
    behind = join.index in downstream(graph, graph.looping)
    heard = (graph.instances[i].operator for i in downstream(graph, [reader.index]))
    return behind and any(port.by is not None for op in heard for port in op.ports)


def _split_obstacle(sender: g.Instance, split: g.Instance) -> str | None:
    """Why who feeds a split cannot deal its items by itself."""
    one, other = sender.operator, split.operator
    if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):
        return f"the body of `{sender.use.operator}` is not text"
    if (long := _too_long(other)) is not None:
        return long
    turn = _turn(other)
    out = sender.outs.index(split.ins[0])
    if {_out(phase) for phase in turn} != set(range(len(other.outs))):
        return f"`{split.use.operator}` never sends to one of its outputs"
    if other.ports[0].initial:
        return f"`{split.use.operator}` has items to begin with, which shift the turns"
    if one.merge is not None or one.mark is not None or any(port.by is not None for port in one.ports):
        return f"`{sender.use.operator}` also acts on order"
    if one.rated is not None and one.rated.early:
        return f"`{sender.use.operator}` sends items before its window is complete"
    bodies = [
        handler.body for handler in (*one.items, *one.phases, one.first, one.rated) if handler is not None
    ]
    counts = [sent(body, out, one.fns) for body in bodies]
    if any(count is None for count in counts):
        return f"`{sender.use.operator}` does not send its items one after the other"
    for count in counts:
        if count is None or count % len(turn):
            return f"`{sender.use.operator}` sends {count} items at once, a turn of `{split.use.operator}` has {len(turn)}"
    push = one.outs[out].push
    if push is not None and any(count != push for count in counts):
        return f"`{sender.use.operator}` does not send as many items as it states"
    return f"a turn of {len(turn)} items is more than {MOST}" if len(turn) > MOST else None


def _out(phase: typed.PhaseHandler) -> int:
    """The output to which a phase of a split sends."""
    (item,) = phase.body.items
    assert isinstance(item, typed.Emit)  # noqa: S101 - by the policy
    return item.out


# ---------------------------------------------------------------------------------------------------------- mechanism


@frozen
class _Zipped:
    """The operator in place of two, and what it is connected with."""

    first: g.Instance
    second: g.Instance
    operator: s.Operator
    ins: tuple[str, ...]
    outs: tuple[str, ...]


def _made(verified: Verified, site: Site) -> _Zipped:
    """What a site becomes."""
    graph = verified.graph
    first, second = graph.instances[site.first], graph.instances[site.second]
    one, other = source(verified, first.use.operator), source(verified, second.use.operator)
    assert isinstance(one, s.Operator)  # noqa: S101 - the guard has approved
    assert isinstance(other, s.Operator)  # noqa: S101 - the guard has approved
    return _split(first, second, one, other) if site.split else _joined(first, second, one, other)


def _zipped(verified: Verified, found: Sequence[_Zipped]) -> Program:
    """The program with one use in place of the two of each; an operator that is there already serves again."""
    program = verified.program
    names, known, added = Names(program), Alike(program.decls), list[s.Operator]()
    uses: dict[int, Use | None] = {}
    inner: set[str] = set()
    for each in found:
        first, second = each.first, each.second
        name = known.name(each.operator)
        if name is None:
            name = names.operator(joint(first.use.operator, second.use.operator))
            added.append(evolve(each.operator, name=name))
            known.add(added[-1])
        uses[id(first.use)], uses[id(second.use)] = None, _use(each, name)
        inner |= set(first.outs) & set(second.ins)

    def change(decl: Decl) -> Decl | None:
        if isinstance(decl, Use):
            return uses.get(id(decl), decl)
        return None if isinstance(decl, Queue) and decl.name in inner else decl

    return changed(program, change, added)


def _use(made: _Zipped, operator: str) -> Use:
    """The use in place of two."""
    first, second = made.first, made.second
    variables = tuple(f"${v}" for v in (*first.variables, *second.variables))
    written = tuple(
        f"${name}"
        for instance in (first, second)
        for name, param in zip(instance.variables, instance.operator.vars, strict=True)
        if param.written
    )
    every = dict.fromkeys((*first.use.annotations, *second.use.annotations))
    kept = (
        each for each in every if each.name not in ("Apart", "Cost")
    )  # which speak of the items of one of them
    return Use(
        (*made.outs, *written),
        operator,
        (*made.ins, *variables),
        (*kept, *together((first.use, second.use))),
        (*first.use.within, *second.use.within),
        span=second.use.span,
    )


def _joined(first: g.Instance, second: g.Instance, join: s.Operator, reader: s.Operator) -> _Zipped:
    """The reader with a port for each input of the join."""
    one, other = first.operator, second.operator
    assert isinstance(one, typed.Operator)  # noqa: S101 - the guard has approved
    assert isinstance(other, typed.Operator)  # noqa: S101 - the guard has approved
    at = second.ins.index(first.outs[0])
    port = reader.ports[at]
    taken = {end.name for end in (*reader.ports, *reader.outs)}
    new: list[s.Port] = []
    for each in join.ports:
        new.append(evolve(port, name=fresh(each.name, taken), initial=each.initial))
        taken.add(new[-1].name)
    turn = [new[phase.port] for phase in _turn(one)]
    phases = iter(other.phases)
    handlers: list[s.Handler] = []
    for handler in reader.handlers:
        match handler:
            case s.RatedHandler() if other.rated is not None:
                (rate,) = (rate for rate in other.rated.rates if rate.port == at)
                handlers.append(_rated(reader, handler, port, rate, turn))
            case s.PhaseHandler():
                phase = next(phases)
                if phase.port != at:
                    handlers.append(handler)
                    continue
                short = [
                    evolve(handler, count=s.Int(each.count), port=new[each.port].name) for each in one.phases
                ]
                handlers += short * (phase.count // len(turn))
            case _:
                handlers.append(handler)
    return _Zipped(
        first,
        second,
        evolve(
            reader,
            ports=(*reader.ports[:at], *new, *reader.ports[at + 1 :]),
            handlers=tuple(handlers),
        ),
        (*second.ins[:at], *first.ins, *second.ins[at + 1 :]),
        second.outs,
    )


def _rated(
    reader: s.Operator, handler: s.RatedHandler, port: s.Port, rate: typed.Rate, turn: Sequence[s.Port]
) -> s.RatedHandler:
    """The handler with a window for each port of the turn, in place of the window of one port."""
    taken = set(names(reader))
    windows: dict[str, str] = {}
    for each in turn:
        if each.name not in windows:
            windows[each.name] = fresh(each.name, taken)
            taken.add(windows[each.name])
    seen = dict.fromkeys(windows, 0)
    items: list[s.Expr] = []
    pops = dict(seen)
    for i in range(rate.peek):
        name = turn[i % len(turn)].name
        items.append(s.Index(s.Name(windows[name]), s.Int(seen[name])))
        seen[name] += 1
        pops[name] += i < rate.pop
    rates: list[s.Rate] = []
    window = ""
    for old in handler.rates:
        if old.port == port.name:
            window = old.name
            rates += [
                s.Rate(
                    name,
                    s.Int(seen[name]) if seen[name] > pops[name] else None,
                    s.Int(pops[name]),
                    windows[name],
                )
                for name in windows
            ]
        else:
            rates.append(old)
    return evolve(handler, rates=tuple(rates), body=s.Block(filled(handler.body, window, items, port.type)))


def _split(first: g.Instance, second: g.Instance, sender: s.Operator, split: s.Operator) -> _Zipped:
    """The sender with an output for each output of the split."""
    one, other = first.operator, second.operator
    assert isinstance(one, typed.Operator)  # noqa: S101 - the guard has approved
    assert isinstance(other, typed.Operator)  # noqa: S101 - the guard has approved
    at = first.outs.index(second.ins[0])
    out = sender.outs[at]
    taken = {end.name for end in (*sender.ports, *sender.outs)}
    turn = [_out(phase) for phase in _turn(other)]
    count = one.outs[at].push
    new: list[s.Out] = []
    for i, each in enumerate(split.outs):
        push = None if count is None else s.Int(count // len(turn) * turn.count(i))
        new.append(evolve(out, name=fresh(each.name, taken), push=push))
        taken.add(new[-1].name)

    def dealt(handler: s.Handler) -> s.Handler:
        places = cycle(turn)

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Emit(name, _) if name == out.name:
                    return evolve(node, out=new[next(places)].name)
                case _:
                    return rebuild(node, rewrite)

        return rebuild(handler, rewrite)

    return _Zipped(
        first,
        second,
        evolve(
            sender,
            outs=(*sender.outs[:at], *new, *sender.outs[at + 1 :]),
            handlers=tuple(map(dealt, sender.handlers)),
        ),
        first.ins,
        (*first.outs[:at], *second.outs, *first.outs[at + 1 :]),
    )
