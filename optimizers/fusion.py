"""Fusion: connected operators become one, and the queues between them calls.

Asked for by `@Fuse(id)`: all uses with one id become one operator, queue by queue, as far as that is safe. With the
option `auto`, straight pipelines are fused without being asked to.

An inner queue goes, so what its two ends did to one item now happens in one firing. The fused operator has fewer schedules
than the two; an input on which one of them traps still ends in a trap, of one of them.

Paper: River §4.3 (fusion optimizer).
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

from optimizers.circles import Circle, circle_obstacle, circled, circles
from optimizers.joining import Link, joined
from optimizers.playing import SteadyState, steadies
from optimizers.queries import (
    Alike,
    Names,
    changed,
    convex,
    joint,
    source,
    successors,
    topological,
    type_text,
    users,
)
from optimizers.rated import links, rated_joined, rated_obstacle, repeated, repeats, small
from optimizers.steady import steadied
from river.classes import evolve, frozen
from river.diagnostics import Note, Rejected
from river.il import annotations as a
from river.il.annotations import bordered, row_type
from river.il.costs import costs
from river.il.flow import stamps_by_items
from river.il.forwards import forwarded
from river.il.model import instance_model
from river.il.program import Annotation, Program, Queue, Use
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from river.il import graph as g
    from river.il.costs import Costs
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform


DEEPEST: Final = 24
"""Functions of an operator that fusion makes of light ones: the code of one calls that of the next."""


@frozen
class Site:
    """Two operators, the first of which feeds the second; `second` is None if nothing connects what is to be fused."""

    first: int
    second: int | None


@frozen
class Fusion:
    """`fusion`: operators of one `@Fuse(id)` become one; `auto`: straight pipelines do so unasked.

    `light`: of those that fire at no stated rates only such as are soon done with an item, have no variables and send at most
    one: to others it matters more that several workers can be at them. Where it is known what operators take (`@Cost`), those
    that take long for an item stay apart, and what keeps state may be with what feeds it if nobody waits for both. `loops`:
    operators at stated rates that feed one another in a circle become one unasked. `steady`: operators between a split and the
    queue that leads out of what follows it become one unasked, which does a whole steady state at each firing.
    """

    name: ClassVar[str] = "fusion"
    auto: bool = False
    light: bool = False
    loops: bool = False
    steady: bool = False

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site | Circle | SteadyState]:
        graph = verified.graph
        around = tuple(circles(graph)) if self.loops else ()
        whole = tuple(steadies(verified)) if self.steady else ()
        order = {index: rank for rank, index in enumerate(topological(graph))}
        ids = _ids(graph)
        found: dict[Site, None] = {}
        taken = costs(graph)
        for first in order:
            for second in sorted(successors(graph, graph.instances[first]), key=order.__getitem__):
                asked = first in ids and ids[first] == ids.get(second)
                soon = _soon(taken, first, second, platform)
                if asked or (self.auto and _straight(graph, first, second, light=self.light, soon=soon)):
                    found[Site(first, second)] = None
        connected = {end for site in found for end in (site.first, site.second)}
        for id_ in dict.fromkeys(ids.values()):
            members = [index for index in order if ids.get(index) == id_]
            loose = [index for index in members if index not in connected]
            if len(members) > 1:
                found |= {Site(index, None): None for index in loose}
        return (*around, *whole, *found)

    def guard(self, verified: Verified, site: Site | Circle | SteadyState, /) -> Note | None:
        graph = verified.graph
        if isinstance(site, SteadyState):
            return None  # what stands in the way has made it another site, or none
        if isinstance(site, Circle):
            use, reason = graph.instances[site.members[0]].use, circle_obstacle(graph, site)
            return (
                None
                if reason is None
                else Note(f"the loop of `{use.operator}` stays as it is: {reason}", use.span)
            )
        first = graph.instances[site.first]
        if site.second is None:
            return Note(
                f"no queue connects `{first.use.operator}` with others of its `@Fuse`", first.use.span
            )
        second = graph.instances[site.second]
        if (reason := _obstacle(graph, first, second)) is not None:
            both = f"`{first.use.operator}` and `{second.use.operator}`"
            return Note(f"{both} stay apart: {reason}", second.use.span)
        return None

    def rewrite(self, verified: Verified, site: Site | Circle | SteadyState, /) -> Program:
        if isinstance(site, SteadyState):
            return steadied(verified, [site])
        if isinstance(site, Circle):
            return circled(verified, site)
        first, second = verified.graph.instances[site.first], _second(verified.graph, site)
        made = _made(verified, (first, second), Names(verified.program))
        program = _fused(verified, [made])
        if made.link is None or made.link.explicit or not _ordered(first, second):
            return program
        if not _unsaid(verified, program):
            return program
        return _fused(verified, [_made(verified, (first, second), Names(verified.program), explicit=True)])

    def together(self, verified: Verified, sites: Sequence[Site | Circle | SteadyState], /) -> Program:
        """Runs that have no operator in common; whoever is not the last of one feeds only the next, so that no circle arises.

        Where there are none, steady states that have no operator in common.
        """
        graph, names = verified.graph, Names(verified.program)
        pairs = [
            (graph.instances[site.first], _second(graph, site)) for site in sites if isinstance(site, Site)
        ]
        after = {
            first.index: second
            for first, second in pairs
            if len(first.outs) == 1 and not _ordered(first, second)
        }
        taken: set[int] = set()
        found: list[_FusedChain] = []
        for first, second in pairs:
            if after.get(first.index) is second and taken.isdisjoint((first.index, second.index)):
                run = _run(first, second, after, taken)
                found.append(_made(verified, run, names))
                taken |= {member.index for member in run}
        if found:
            return _fused(verified, found)
        if not isinstance(sites[0], SteadyState):
            return self.rewrite(verified, sites[0])
        states: list[SteadyState] = []
        for site in sites:
            if isinstance(site, SteadyState) and taken.isdisjoint(site.members):
                states.append(site)
                taken.update(site.members)
        return steadied(verified, states)


def _run(
    first: g.Instance, second: g.Instance, after: Mapping[int, g.Instance], taken: Collection[int]
) -> list[g.Instance]:
    """Two operators and, where they fire at stated rates, those that follow in a line, as far as one handler is not too large.

    What approves of two neighbours then approves of all: nothing in a line waits for anything else.
    """
    run = [first, second]
    while (one := after.get(run[-1].index)) is not None and one.index not in taken:
        members = [*run, one]
        uses = [a.annotated(member.use) for member in members]
        variables = [name for member in members for name in member.variables]
        if (
            len(one.ins) > 1
            or rated_obstacle(run[-1], one) is not None
            or repeats(run[-1], one) is not None
            or not small(*(member.operator for member in members))
            or any(use.fuse is not None for use in uses)
            or len({use.group for use in uses if use.group is not None}) > 1
            or len(set(variables)) < len(variables)
        ):
            break
        run = members
    return run


def _second(graph: g.Graph, site: Site) -> g.Instance:
    assert site.second is not None  # noqa: S101 - the guard has approved
    return graph.instances[site.second]


# ------------------------------------------------------------------------------------------------------------- policy


def _ids(graph: g.Graph) -> dict[int, str]:
    found = ((i.index, a.annotated(i.use).fuse) for i in graph.instances)
    return {index: fuse.id for index, fuse in found if fuse is not None}


SOON: Final = 2_000
"""Nanoseconds for an item of two operators, of which handing it over is no part that matters."""

LIGHT: Final = 200
"""Nanoseconds for an item of two operators, of which handing it over is a large part."""


class _Soon(Enum):
    """What is known of the time that two neighbours take for an item."""

    UNKNOWN = auto()
    NO = auto()
    YES = auto()
    STATE_TOO = auto()
    """So little, of what nobody waits for, that one of them may keep state."""


def _soon(taken: Costs, first: int, second: int, platform: Platform) -> _Soon:
    one, other = taken.each[first], taken.each[second]
    if one is None or other is None or not other.items:
        return _Soon.UNKNOWN
    each = (one.nanoseconds + other.nanoseconds) / other.items
    if each > SOON:
        return _Soon.NO
    waited = taken.waited_for((first, second), platform.cores)
    return _Soon.STATE_TOO if each <= LIGHT and not waited else _Soon.YES


def _straight(graph: g.Graph, first: int, second: int, *, light: bool, soon: _Soon) -> bool:
    """Whether two operators are neighbours in a pipeline, and keep their variables to themselves.

    At stated rates, several pipelines may end in one operator: the windows keep step. What does much already gains nothing.
    """
    one, other = graph.instances[first], graph.instances[second]
    rated = any(isinstance(i.operator, typed.Operator) and i.operator.rated for i in (one, other))
    if light and not rated:
        state = soon is _Soon.STATE_TOO and bool(other.outs) and not _skipped(one, other)
        if soon is _Soon.NO or not (
            all(_light(each, state=state) for each in (one, other)) and _few(one, other)
        ):
            return False
    alone = len(one.outs) == 1 and (small(one.operator, other.operator) if rated else len(other.ins) == 1)
    private = all(len(users(graph, v)) == 1 for v in (*one.variables, *other.variables))
    return alone and private and _obstacle(graph, one, other) is None


def _light(instance: g.Instance, *, state: bool = False) -> bool:
    """Whether an operator does little with each item, by itself, and would be fired for that; `state`: it may keep some."""
    op = instance.operator
    if (
        not isinstance(op, typed.Operator)
        or (op.vars and not state)
        or len(op.items) != 1
        or len(op.ports) != 1
        or op.mark
    ):
        return False
    if any(end.by is not None or row_type(end.type) is not None for end in (*op.ports, *op.outs)):
        return False
    rates = instance_model(instance).selectivity
    return all(rate.most == 1 for rate in rates) and forwarded(op) is None


def _skipped(one: g.Instance, other: g.Instance) -> bool:
    """Whether an item at which an operator traps may be left out as long as this keeps no state, which the other one does."""
    pair = (one, other)
    return any(each.operator.vars for each in pair) and any(
        not each.operator.vars and instance_model(each).can_trap for each in pair
    )


def _few(one: g.Instance, other: g.Instance) -> bool:
    """Whether what two become does not call too deep: each that was fused is a function that another one calls.

    Only one of them may trap, so that it does not depend on this which trap ends a run.
    """
    ops = (one.operator, other.operator)
    traps = sum(
        instance_model(each).can_trap for each in (one, other)
    )  # one at most: then it is always the same
    return traps < len(ops) and sum(len(op.fns) for op in ops if isinstance(op, typed.Operator)) < DEEPEST


# -------------------------------------------------------------------------------------------------------------- guard


def _obstacle(graph: g.Graph, first: g.Instance, second: g.Instance) -> str | None:
    """Why two operators, the first of which feeds the second, cannot become one."""
    one, other = first.operator, second.operator
    names = {first.index: f"`{first.use.operator}`", second.index: f"`{second.use.operator}`"}
    parts = {part for result in graph.results if result.combined for part in result.parts}
    if kept := sorted(parts & {*first.variables, *second.variables}):
        return f"`${kept[0]}` is a part that is combined, and only what accumulates alone is seen to do that"
    if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):
        name = names[first.index if isinstance(one, typed.Extern) else second.index]
        return f"the body of {name} is not text"
    if first.index == second.index or first.index in successors(graph, second):
        return "they feed one another in a circle"
    only = len(successors(graph, first)) == 1 and not graph.looping  # no way leads past the second
    if not only and not convex(graph, {first.index, second.index}):
        return "another path leads from one to the other"
    if bordered(first.use, second.use):
        return "a border of a parallel region is between them"
    groups = {group.args for use in (first.use, second.use) for group in _said(use, "Group")}
    if len(groups) > 1:
        return "they are placed in different groups"
    if shared := [v for v in first.variables if v in second.variables]:
        return f"both use `${shared[0]}`"
    if one.rated is not None or other.rated is not None:
        return rated_obstacle(first, second)
    stamped = [
        i
        for i, (out, queue) in enumerate(zip(one.outs, first.outs, strict=True))
        if out.by is not None and queue in second.ins
    ]
    if stamped and (others := [v for v in first.variables if graph.users[v] != (first.index,)]):
        return f"others use `${others[0]}`, too: whether what {names[first.index]} sends is in order is seen between them only"
    if any(stamps_by_items(one, out) for out in stamped):
        return f"whether the stamps that {names[first.index]} makes of what items say ascend shows between them only"
    if one.merge is None and not one.items:
        return f"{names[first.index]} reads its inputs in turns"
    if not other.items:
        return f"{names[second.index]} waits for {'several inputs' if other.merge else 'its inputs in turns'}"
    if any(out.push is not None for out in (*one.outs, *other.outs)):
        return "they state how many items they send"
    own = [port for port, queue in zip(other.ports, second.ins, strict=True) if queue not in first.outs]
    ordered = any(end.by is not None for op in (one, other) for end in op.ports)
    if own and ordered:
        return f"{names[second.index]} has another input, which would have to keep step with the marks of the first"
    linked = [port for port, queue in zip(other.ports, second.ins, strict=True) if queue in first.outs]
    if len(linked) > 1 and any(port.by is not None for port in linked):
        return f"{names[second.index]} waits for the marks of both its inputs"
    return None


def _said(use: Use, name: str) -> tuple[Annotation, ...]:
    return tuple(said for said in use.annotations if said.name == name)


# ---------------------------------------------------------------------------------------------------------- mechanism


def _link(verified: Verified, first: g.Instance, second: g.Instance) -> Link:
    one, other = first.operator, second.operator
    assert isinstance(one, typed.Operator)  # noqa: S101 - the guard has approved
    assert isinstance(other, typed.Operator)  # noqa: S101 - the guard has approved
    feeds = dict(zip(second.ins, other.ports, strict=True))
    ports = {
        out.name: feeds[queue].name for queue, out in zip(first.outs, one.outs, strict=True) if queue in feeds
    }
    keys = [port for port in feeds.values() if port.by is not None and port.name in ports.values()]
    forwards = bool(keys)
    key = _key_text(verified, keys[0]) if keys else None
    told = forwards and other.mark is not None
    own_order = not forwards and any(out.by is not None for out in other.outs)
    listens = any(port.by is not None for port in one.ports)
    explicit = one.mark is None and listens and (told or own_order)
    written = frozenset(v.name for v in other.vars if v.written)
    return Link(ports, written, key, forwards, explicit)


def _key_text(verified: Verified, port: typed.Port) -> s.TypeExpr:
    assert isinstance(port.type, t.Record)  # noqa: S101 - it has a key
    assert port.by is not None  # noqa: S101 - it has a key
    key = port.type.field(port.by)
    assert key is not None  # noqa: S101 - the program is verified
    return type_text(key, verified.type_names)


def _ordered(first: g.Instance, second: g.Instance) -> bool:
    """Whether an order comes in and an order goes out: then there are marks to tell of."""
    ports = (*first.operator.ports, *second.operator.ports)
    outs = (*first.operator.outs, *second.operator.outs)
    return any(port.by is not None for port in ports) and any(out.by is not None for out in outs)


def _unsaid(verified: Verified, program: Program) -> bool:
    """Whether the only thing wrong with the fused program is that it does not state its marks."""
    try:
        verified.become(program)
    except Rejected as rejected:
        if any(d.code != "il-mark" for d in rejected.diagnostics):
            raise
        return True
    return False


@frozen
class _FusedChain:
    """What operators become, each of which feeds the next; `link`: how two are joined, None at stated rates."""

    members: tuple[g.Instance, ...]
    operator: s.Operator
    link: Link | None


def _made(
    verified: Verified, members: Sequence[g.Instance], names: Names, *, explicit: bool = False
) -> _FusedChain:
    """`explicit`: the marks that pass through are stated."""
    texts = [source(verified, member.use.operator) for member in members]
    operators = [text for text in texts if isinstance(text, s.Operator)]
    assert len(operators) == len(members)  # noqa: S101 - the guard has approved
    name = members[0].use.operator
    for member in members[1:]:
        name = joint(name, member.use.operator)
    name = names.operator(name)
    if any(isinstance(handler, s.RatedHandler) for handler in operators[0].handlers):
        linked = [links(one, other) for one, other in pairwise(members)]
        if len(linked[0]) == 1 and (several := repeats(members[0], members[1])) is not None:
            operators[0] = repeated(operators[0], *several)
        return _FusedChain(tuple(members), rated_joined(name, operators, linked), None)
    first, second = members
    link = _link(verified, first, second)
    link = evolve(link, explicit=True) if explicit else link
    return _FusedChain((first, second), joined(name, operators[0], operators[1], link), link)


def _fused(verified: Verified, found: Sequence[_FusedChain]) -> Program:
    """The program with one use in place of those of each run."""
    ids = _ids(verified.graph)
    uses: dict[int, Use | None] = {}
    inner: set[str] = set()
    added: list[s.Operator] = []
    known = Alike(verified.program.decls)
    for each in found:
        name = known.name(each.operator)
        if name is None:
            known.add(each.operator)
            added.append(each.operator)
        members, indices = each.members, {member.index for member in each.members}
        between = {queue for one, other in pairwise(members) for queue in one.outs if queue in other.ins}
        first = members[0]
        others = [i for i in ids if ids[i] == ids.get(first.index) and i not in indices]
        for member in members:
            uses[id(member.use)] = None
        uses[id(first.use)] = Use(
            (
                *(q for member in members for q in member.outs if q not in between),
                *(f"${v}" for member in members for v in _written(member)),
            ),
            name or each.operator.name,
            (
                *(q for member in members for q in member.ins if q not in between),
                *(f"${v}" for member in members for v in member.variables),
            ),
            _annotations(members, keep_fuse=bool(others)),
            tuple(place for member in members for place in member.use.within),
            span=first.use.span,
        )
        inner |= between

    def change(decl: Decl) -> Decl | None:
        if isinstance(decl, Use):
            return uses.get(id(decl), decl)
        return None if isinstance(decl, Queue) and decl.name in inner else decl

    return changed(verified.program, change, added)


def _written(instance: g.Instance) -> tuple[str, ...]:
    params = zip(instance.variables, instance.operator.vars, strict=True)
    return tuple(name for name, param in params if param.written)


def _annotations(members: Sequence[g.Instance], *, keep_fuse: bool) -> tuple[Annotation, ...]:
    """What holds of all: a promise if all give it, the place of any, the unknown of all.

    That none cares how many marks there are is seen in their handlers, and no more where one is inside the other.
    """
    kept = members[0].use.annotations
    for member in members[1:]:
        kept = tuple(_kept(kept, member.use.annotations, keep_fuse=keep_fuse))
    kept = (*kept, *a.together([member.use for member in members]))
    told = any(isinstance(each.operator, typed.Operator) and each.operator.mark for each in members)
    return (*kept, a.annotation(a.Steady())) if told else kept


def _kept(one: Sequence[Annotation], other: Sequence[Annotation], *, keep_fuse: bool) -> Iterator[Annotation]:
    for said in one:
        match said.name:
            case "Fuse":
                if keep_fuse:
                    yield said
            case "Parallel" | "Commutative" | "Keys":
                if said in other:
                    yield said
            case (
                "Steady" | "Apart" | "Cost"
            ):  # what the first promises of its rows says nothing of what is made of them
                pass
            case _:
                yield said
    yield from (
        said
        for said in other
        if said not in one
        and said.name not in ("Fuse", "Parallel", "Commutative", "Keys", "Steady", "Apart", "Cost")
    )
