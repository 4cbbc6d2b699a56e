"""Fission: which operators run as replicas, in which regions, and how the order of items is kept.

The decision is written into the program as annotations, `@Parallel(degree) @Region(id, strategy, keys...)`: a platform
with an ordered runtime of its own obeys them as they stand, the pass `expand` makes splits, replicas and merges of them.

Regions are formed from left to right, as large as possible. A region is a tree of operators without state, or with state
that is keyed by fields which reach all of them; neighbours with other keys begin the next region, and a shuffle is
between the two. A join of deltas may be in it with what feeds it, if both sides are split by the same fields; else it has one
entry. It has any number of exits, each of which has a strategy (`@Exits`, where it is not that of the region): what nobody
sees the order of is not put in order.

    strategy      queues                            split            merge
    round_robin   in no order                       in turns         in turns; every firing sends exactly one item
    seqno         in no order                       by hash          by serial number; every firing sends exactly one
    seqno_marks   in no order                       in turns, hash   by serial number, and marks tell what will not come
    time_merge    ordered by a key                  by the key       by the key; the order is in the items
    time_merge    deltas, keyed state               by rows' keys    by the instant; the parts become one delta again
    halo          in no order, taken in windows     windows in turns in turns; a window's firing sends what its push rate says
    unordered     nobody can see the order          in turns, hash   as items come

A queue of deltas carries one delta for an instant, with its rows in any order (il.md P3): that is what the division by
rows relies on.

These are the rules of the papers, by which `expand` can write a region out (`rules=paper`). A platform whose runtime gives every
firing a serial number, and sends what firings made in that order, can do more (`rules=runtime`): each operator is a region of its
own, its queues may be ordered, it may have several outputs, which all keep their order, and be part of a loop if it has no state.
Where it is known what operators take (`@Cost`), a region has as many workers as it keeps busy, and what nobody waits for is none.
Where it divides deltas by their rows, these carry tags by which it puts them in order again (`time_merge`). Neighbours that can
be divided by one key are one region then, windows included: rows are dealt once, and put in order once.

Paper: River §4.4 (fission optimizer); Auto-parallelizing §3.1, §3.3 (region formation), Table 1 (strategies).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import field, frozen
from attrs.validators import ge, in_, optional

from optimizers.queries import downstream, successors, topological, users
from river.classes import evolve
from river.diagnostics import Note
from river.il import annotations as a
from river.il.annotations import annotated, annotation, row_type
from river.il.carried import carries
from river.il.costs import costs
from river.il.flow import item_findings
from river.il.groups import core_sets, cores_of
from river.il.model import Keyed, Selectivity, Stateless, Unknown, instance_model
from river.il.partial import Partial, partial, stated
from river.il.program import Input, Program, Use
from river.il.regions import (
    BY_TIME,
    LOOPS,
    MARKS,
    ByRows,
    Sharded,
    divided,
    divided_together,
    passed,
    pays,
    shown,
)
from river.il.rows import rowwise
from river.il.sources import BLOCKS, source
from river.lang import typed
from river.lang import types as t
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from river.il import graph as g
    from river.il.model import Model
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform

ONE: Final = Selectivity(1, 1)


@frozen
class Site:
    """Operators that may become a region, each behind the one that feeds it, with their degree."""

    members: tuple[int, ...]
    degree: int
    blocks: bool = False
    """Each worker runs them on blocks of an input."""
    input: str | None = None
    """The input that is read so; without members only that, and its rows come in order."""


@frozen
class RegionPlan:
    """How a region keeps order, and the fields of its items (or rows) by whose values they are divided.

    `exits`: the queues by which items leave it otherwise than in the order that follows from that, with their strategies.
    """

    strategy: str
    keys: tuple[str, ...]
    exits: tuple[tuple[str, str], ...] = ()


@frozen
class Fission:
    """`fission`: forms parallel regions where `@Parallel` asks for them; `auto`: wherever it is safe.

    `degree`: how many replicas where the directive does not say; without it, one for each core of the platform.
    `epoch`: after how many items of a split marks follow, where marks are needed. `rules`: `paper`, or `runtime` for a platform
    that keeps order by serial numbers of its own.
    """

    name: ClassVar[str] = "fission"
    degree: int | None = field(default=None, validator=optional(ge(1)))
    epoch: int = field(default=64, validator=ge(1))
    auto: bool = False
    rules: str = field(default="paper", validator=in_(("paper", "runtime")))

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        graph = verified.graph
        if self.rules == "runtime":
            yield from self.alone(graph, platform)
        else:
            yield from self.together_by_rules(graph, platform)
        yield from self.read(graph, platform)

    def read(self, graph: g.Graph, platform: Platform) -> Iterable[Site]:
        """The inputs whose blocks several workers may read. A file is read on one machine."""
        for name in graph.inputs:
            said = source(graph, name)
            asked = said.parallel is not None
            degree = (said.parallel and said.parallel.degree) or self.degree or platform.cores
            if said.blocks is None and (asked or (self.auto and self.rules == "runtime")) and degree > 1:
                yield Site((), degree, input=name)

    def together_by_rules(self, graph: g.Graph, platform: Platform) -> Iterable[Site]:
        """The regions that `expand` can write out."""
        here = platform.cores * platform.machines
        degrees = {i.index: self.wanted(i, here) for i in graph.instances}
        seen: set[int] = set()
        refused: list[Site] = []
        for start in topological(graph):
            degree = degrees[start]
            if degree == 1 or start in seen:
                continue
            members = (start,)
            alike = {index for index, own in degrees.items() if own == degree} - seen
            while (longer := _one_more(graph, members, alike)) is not None:
                members = longer
            members = _cut(graph, members)
            asked, works = self.asked(graph, members), not all(lasting(graph.instances[m]) for m in members)
            if (asked or works) and isinstance(region(graph, members), RegionPlan):
                seen.update(members)
                yield Site(members, degree)
            elif asked:
                refused.append(Site(members, degree))
        yield from (site for site in refused if seen.isdisjoint(site.members))

    def alone(self, graph: g.Graph, platform: Platform) -> Iterable[Site]:
        """The operators that may be regions of their own, and those that were to be and nothing else makes parallel."""
        sets = core_sets(graph, platform.cores)
        own = {i.index: len(cores_of(sets, i, platform.cores)) for i in graph.instances}
        degrees = {i.index: self.wanted(i, own[i.index] * platform.machines) for i in graph.instances}
        gathering = set[int]()
        for found in (partial(graph, name) for name in graph.inputs):
            if (
                isinstance(found, Partial)
                and self.auto
                and (own[found.members[0]] > 1 or platform.cores == 1)
            ):
                gathering.update(found.reducers)
                members = found.members
                if not stated(graph, found):
                    yield Site(members, 1, blocks=True, input=found.input)
        seen, taken = set[int](), costs(graph)
        for index in topological(graph):
            if index in seen:
                continue
            degree = degrees[index]
            members = (index,) if degree == 1 else self.by_one_key(graph, index, degrees)
            seen.update(members)
            if degree > 1 and not any(_fixed(graph.instances[m]) for m in members):
                degree = taken.degree(members, degree, own[index])
            told = self.asked(graph, members) and index not in gathering
            if degree > 1 and (told or isinstance(self.serially(graph, members), RegionPlan)):
                yield Site(members, degree)

    def by_one_key(self, graph: g.Graph, first: int, degrees: Mapping[int, int]) -> tuple[int, ...]:
        """An operator and those behind it that can be divided together with it; itself alone if it is none of several."""
        members = (first,)
        if not any(var.written for var in graph.instances[first].operator.vars):
            return members
        while len(after := successors(graph, graph.instances[members[-1]])) == 1 and after[0] not in members:
            if degrees[after[0]] != degrees[first]:
                break
            if isinstance(divided_together(graph, (*members, after[0])), str):
                break
            members = (*members, after[0])
        return members if any(_keeps_apart(graph.instances[m]) for m in members) else (first,)

    def serially(self, graph: g.Graph, members: tuple[int, ...]) -> RegionPlan | Note:
        """How operators can be a region where the runtime puts results in order."""
        if len(members) == 1:
            return _alone(graph, graph.instances[members[0]])
        found = divided_together(graph, members)
        return (
            Note(found, graph.instances[members[0]].use.span)
            if isinstance(found, str)
            else RegionPlan(BY_TIME, found.names)
        )

    def plan(self, graph: g.Graph, site: Site) -> RegionPlan | Note:
        """How a site can be a region, or why it cannot."""
        if not site.members:
            return RegionPlan(BLOCKS, ())
        if site.blocks:
            exits = (queue for _, queue in _leaving(graph, site.members))
            return RegionPlan(
                a.COMBINE, (), tuple((queue, UNORDERED) for queue in exits if unseen(graph, queue))
            )
        if self.rules == "runtime":
            return self.serially(graph, site.members)
        return region(graph, site.members)

    def wanted(self, instance: g.Instance, cores: int) -> int:
        """The degree that is asked for, 1 if none is. `cores`: on which it may run."""
        said = annotated(instance.use)
        if said.region is not None or (said.parallel is None and not self.auto):
            return 1
        here = cores if self.degree is None else self.degree
        return here if said.parallel is None or said.parallel.degree is None else said.parallel.degree

    def asked(self, graph: g.Graph, members: tuple[int, ...]) -> bool:
        """Whether somebody waits for an answer."""
        return any(annotated(graph.instances[m].use).parallel is not None for m in members)

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        found = self.plan(verified.graph, site)
        if isinstance(found, Note):
            return found
        if self.rules == "runtime":  # what is still apart could not be fused
            return None
        return _fused_outside(verified.graph, site.members)

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        return self.together(verified, (site,))

    def together(self, verified: Verified, sites: Sequence[Site], /) -> Program:
        """The program with all `sites` rewritten: no operator is in two of them, but for those of blocks."""
        graph = verified.graph
        uses: dict[int, tuple[a.Known, ...]] = {}
        blocks: dict[int, tuple[a.Known, ...]] = {}
        sources: dict[str, tuple[a.Known, ...]] = {}
        added: tuple[a.Known, ...]
        for id_, site in zip(_fresh(graph), sites, strict=False):
            plan = self.plan(graph, site)
            assert isinstance(plan, RegionPlan)  # noqa: S101 - the guard has approved
            region_ = a.Region(id_, plan.strategy, plan.keys)
            exits = _said(graph, site.members, region_, plan)
            if site.input is not None:
                here = (region_,) if site.blocks else (a.Parallel(site.degree), region_)
                sources[site.input] = (*sources.get(site.input, ()), *here)
            marks = self.rules == "paper" and plan.strategy in ("seqno", "seqno_marks")
            for m in site.members:
                use = id(graph.instances[m].use)
                if site.blocks:
                    blocks[use] = (region_, *exits[m])
                    continue
                added = (a.Parallel(site.degree), region_, *exits[m])
                first = marks and m == site.members[0]
                uses[use] = (*added, a.Epoch(self.epoch)) if first else added

        def change(decl: Decl) -> Decl:
            if isinstance(decl, Input) and decl.name in sources:
                known = sources[decl.name]
                bare = a.without(decl, "Parallel") if any(isinstance(k, a.Parallel) for k in known) else decl
                return evolve(bare, annotations=(*map(annotation, known), *bare.annotations))
            if not isinstance(decl, Use):
                return decl
            own = uses.get(id(decl), ())
            use = a.without(decl, "Parallel") if own else decl
            known = (*blocks.get(id(decl), ()), *own)
            return evolve(use, annotations=(*map(annotation, known), *use.annotations)) if known else decl

        return Program(tuple(map(change, verified.program.decls)))


def _fixed(instance: g.Instance) -> bool:
    """Whether somebody has said how many workers are to be at an operator."""
    said = annotated(instance.use).parallel
    return said is not None and said.degree is not None


def _said(
    graph: g.Graph, members: Sequence[int], region_: a.Region, plan: RegionPlan
) -> dict[int, tuple[a.Exits, ...]]:
    """What is said of the exits of operators in a region: of those that do not all leave as the region says."""
    own = dict(plan.exits)
    found: dict[int, list[str]] = {member: [] for member in members}
    for member, queue in _leaving(graph, members):
        found[member].append(own.get(queue, a.ordered(region_)))
    return {
        member: (a.Exits(region_.id, tuple(said)),) if set(said) - {a.ordered(region_)} else ()
        for member, said in found.items()
    }


def _fresh(graph: g.Graph) -> Iterator[str]:
    """Ids that no region bears."""
    known = {r.id for i in graph.instances for r in annotated(i.use).regions}
    known |= {r.id for s in (source(graph, n) for n in graph.inputs) for r in (s.combined, s.blocks) if r}
    return (id_ for id_ in map("r{}".format, count(1)) if id_ not in known)


def _alone(graph: g.Graph, instance: g.Instance) -> RegionPlan | Note:
    """How one operator can be a region where the runtime keeps the order of what firings make, or why it cannot."""
    op, said = instance.operator, annotated(instance.use)
    found = divided(graph, instance, () if said.keys is None else said.keys.fields)
    if isinstance(found, str):
        return Note(f"`{instance.use.operator}` {found}", instance.use.span)
    if isinstance(op, typed.Operator) and not pays(op):
        return Note(
            f"`{instance.use.operator}` passes on what it gets: there is nothing to do for several",
            instance.use.span,
        )
    exact = all(model == ONE for model in instance_model(instance).selectivity)
    if isinstance(found, Sharded):
        return RegionPlan("seqno" if exact else "seqno_marks", found.names)
    if isinstance(found, ByRows):
        return RegionPlan(BY_TIME, found.names)
    if _windowed(instance):
        return RegionPlan(a.HALO, ())
    return RegionPlan("round_robin" if exact else "seqno_marks", ())


def _keeps_apart(instance: g.Instance) -> bool:
    """Whether what an operator keeps of rows depends on those with the same key."""
    op, said = instance.operator, annotated(instance.use)
    kept = said.apart is not None or isinstance(instance_model(instance).state, Keyed)
    return kept and isinstance(op, typed.Operator) and not carries(op)


# ------------------------------------------------------------------------------------------------------------- fusion


def _fused_outside(graph: g.Graph, members: Sequence[int]) -> Note | None:
    """A refusal if a member is to be fused with an operator outside (Auto-parallelizing §3.1, the last condition)."""
    for member in members:
        use = graph.instances[member].use
        fuse = annotated(use).fuse
        for other in graph.instances:
            if fuse is not None and annotated(other.use).fuse == fuse and other.index not in members:
                message = f"`{use.operator}` is to be fused with `{other.use.operator}`, which cannot be in its region"
                return Note(message, use.span)
    return None


def _cut(graph: g.Graph, members: tuple[int, ...]) -> tuple[int, ...]:
    """The members before the first that is to be fused with an operator outside; at least one."""
    while len(members) > 1 and _fused_outside(graph, members) is not None:
        cut = next(i for i, m in enumerate(members) if _fused_outside_of(graph, m, members))
        members = members[: max(1, cut)]
    return members


def _fused_outside_of(graph: g.Graph, member: int, members: tuple[int, ...]) -> bool:
    fuse = annotated(graph.instances[member].use).fuse
    return fuse is not None and any(
        annotated(o.use).fuse == fuse and o.index not in members for o in graph.instances
    )


# ------------------------------------------------------------------------------------------------------------- safety


def _one_more(graph: g.Graph, members: tuple[int, ...], alike: Collection[int]) -> tuple[int, ...] | None:
    """The members and one more that can be in their region: behind them, or before a join; None if there is none."""
    instances = [graph.instances[member] for member in members]
    after = (each for instance in instances for each in successors(graph, instance))
    joins = any(len(instance.ins) > 1 for instance in instances)
    joined = (queue for instance in instances if joins for queue in instance.ins)
    ends = (graph.queues[queue].producer for queue in joined)
    before = (end.instance for end in ends if end is not None)
    for each in (*after, *before):
        if each in alike and each not in members:
            longer = _with(graph, members, each)
            if isinstance(region(graph, longer), RegionPlan):
                return longer
    return None


def _with(graph: g.Graph, members: tuple[int, ...], one: int) -> tuple[int, ...]:
    """Members and one more, behind those that feed it."""
    takes = graph.instances[one].ins
    feeding = [
        i for i, member in enumerate(members) if not set(graph.instances[member].outs).isdisjoint(takes)
    ]
    fed = any(set(graph.instances[one].outs) & set(graph.instances[member].ins) for member in members)
    place = len(members) if not fed else max(feeding, default=-1) + 1
    return (*members[:place], one, *members[place:])


def _leaving(graph: g.Graph, members: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The queues by which items leave operators for others, or for outputs, and who sends to them."""
    for member in members:
        for queue in graph.instances[member].outs:
            end = graph.queues[queue].consumer
            if end is None or end.instance not in members:
                yield member, queue


UNHELD: Final = ("round_robin", a.HALO)
"""The strategies by which what a firing sends waits for nothing that comes later: it may go round in a loop."""


def region(graph: g.Graph, members: tuple[int, ...]) -> RegionPlan | Note:
    """How `members`, each behind the one that feeds it, can be a region, or why not; about the last, if the others can."""
    found = _region(graph, members)
    looping = [graph.instances[member].use for member in members if member in graph.looping]
    if isinstance(found, RegionPlan) and looping and found.strategy not in UNHELD:
        return Note(f"`{looping[-1].operator}` {LOOPS}", looping[-1].span)
    return found


def _region(graph: g.Graph, members: tuple[int, ...]) -> RegionPlan | Note:
    """The same, where no loop is."""
    instances = [graph.instances[m] for m in members]
    if windowed := next(filter(_windowed, instances), None):
        reason = (
            _windows_obstacle(graph, windowed) if len(members) == 1 else "takes windows of what comes to it"
        )
        return (
            RegionPlan(a.HALO, ())
            if reason is None
            else Note(f"`{windowed.use.operator}` {reason}", windowed.use.span)
        )
    made = {queue for instance in instances for queue in instance.outs}
    for instance in instances:
        reason = _obstacle(graph, instance)
        if reason is None and not made.isdisjoint(instance.ins) and lasting(instance):
            reason = MARKS
        if reason is not None:
            return Note(f"`{instance.use.operator}` {reason}", instance.use.span)
    models = [instance_model(i) for i in instances]
    entering = list(_entering(instances))
    ordered = all(graph.queues[queue].by is not None and port.by is not None for queue, port in entering)
    for instance in instances:
        ends = (*instance.operator.ports, *instance.operator.outs)
        if any((end.by is not None) != ordered for end in ends):
            return Note(f"`{instance.use.operator}` begins or ends an order of its items", instance.use.span)
    keys = _keys(instances, models)
    if (
        len(entering) > 1 and keys is not None
    ):  # each entry is split by the same: what may be missing has another hash
        same = set[tuple[str, t.Type]].intersection(*({*_columns(port.type).items()} for _, port in entering))
        keys = keys & {name for name, _ in same}
    if keys == frozenset() or (len(entering) > 1 and keys is None):
        message = f"no key of `{instances[-1].use.operator}` reaches it unchanged through the region"
        return Note(message, instances[-1].use.span)
    if ordered:
        return _ordered(graph, instances, models, keys)
    names = () if keys is None else _in_order(instances[0], keys)
    exact = _exact(instances, models)
    exits = {queue: exact[queue] for _, queue in _leaving(graph, members) if not unseen(graph, queue)}
    free = tuple((queue, UNORDERED) for _, queue in _leaving(graph, members) if queue not in exits)
    if not exits:
        return RegionPlan(UNORDERED, names)
    if not all(exits.values()):
        return RegionPlan(
            "seqno_marks", names, (*free, *((queue, "seqno") for queue in exits if exits[queue]))
        )
    return RegionPlan("seqno" if names else "round_robin", names, free)


UNORDERED: Final = "unordered"


def _exact(instances: Sequence[g.Instance], models: Sequence[Model]) -> dict[str, bool]:
    """For each queue in a region, and out of it, whether one item is in it for each that comes into the region."""
    found = {instances[0].ins[0]: True}
    for instance, model in zip(instances, models, strict=True):
        for queue, rate in zip(instance.outs, model.selectivity, strict=True):
            found[queue] = found[instance.ins[0]] and rate == ONE
    return found


def _obstacle(graph: g.Graph, instance: g.Instance) -> str | None:
    """Why one operator cannot be replicated, whatever its neighbours."""
    op = instance.operator
    joins = isinstance(op, typed.Operator) and op.merge is not None
    if len(op.ports) != 1 and not (joins and all(row_type(port.type) is not None for port in op.ports)):
        return f"has {len(op.ports)} inputs, which are not deltas that it joins"
    model = instance_model(instance)
    if model.hidden and not joins:
        return "keeps items waiting between firings"
    apart = annotated(instance.use).apart
    if isinstance(op, typed.Operator) and op.mark is not None and (apart is None or not carries(op)):
        return "acts on marks, of which each replica would see its own"
    if isinstance(op, typed.Operator) and not lasting(instance) and any(f.marks for f in item_findings(op)):
        return "sends marks of its own"
    if isinstance(model.state, Unknown) and apart is None:
        return f"has state that is not known to be kept by key: {_shown(instance.variables)}"
    for variable in instance.variables:
        if len(users(graph, variable)) > 1:
            return f"shares `${variable}` with another operator"
        if not _starts_empty(graph, variable, any_type=apart is not None):
            return f"has `${variable}`, which is not empty at first"
        if apart is not None and shown(graph, variable):
            return f"has `${variable}`, which is part of the result"
    return None


def _windowed(instance: g.Instance) -> bool:
    """Whether an operator takes windows of its input."""
    return isinstance(instance.operator, typed.Operator) and instance.operator.rated is not None


def _windows_obstacle(graph: g.Graph, instance: g.Instance) -> str | None:
    """Why an operator on windows cannot have replicas to which they are dealt in turns."""
    op = instance.operator
    found = divided(graph, instance)
    if isinstance(found, str):
        return found
    if not isinstance(found, Stateless):
        return "keeps items waiting between firings"
    if any(end.by is not None for end in (*op.ports, *op.outs)):
        return "has ordered queues, of whose marks each replica would see its own"
    if isinstance(op, typed.Operator) and op.rated is not None and not all(r.pop for r in op.rated.rates):
        return "looks at items again and again that it never takes"
    if any(rate.most != rate.least or not rate.most for rate in instance_model(instance).selectivity):
        return "does not send as many items for each window"
    return None


def lasting(instance: g.Instance) -> bool:
    """Whether an operator keeps rows until their time is over, so that each replica has to learn of every instant."""
    op = instance.operator
    return isinstance(op, typed.Operator) and op.mark is not None


def _shown(variables: Iterable[str]) -> str:
    return ", ".join(f"`${v}`" for v in variables)


def _starts_empty(graph: g.Graph, name: str, *, any_type: bool) -> bool:
    variable = next(v for v in graph.variables if v.name == name)
    if any_type:
        return bool(variable.initial == default(variable.type))
    return isinstance(variable.type, t.Map | t.OMap) and len(variable.initial) == 0


def _keys(instances: Sequence[g.Instance], models: Sequence[Model]) -> frozenset[str] | None:
    """The fields of the first items by which the region may be divided; None if any will do, empty if none will.

    They are fields that every keyed operator keeps its state by, as they reach it: unchanged, perhaps renamed.
    """
    found: frozenset[str] | None = None
    for instance, model, arriving in zip(instances, models, _alive(instances, models), strict=True):
        if names := _kept_by(instance, model):
            said = annotated(instance.use).keys
            own = [key for key in names if said is None or key[0] in said.fields] or names
            came = (
                {alive.get(name) for alive, name in zip(arriving, key, strict=True)} for key in own
            )  # from all inputs of a join the same
            reached = frozenset(
                name for names in came if len(names) == 1 for name in names if name is not None
            )
            found = reached if found is None else found & reached
    return found


def _kept_by(instance: g.Instance, model: Model) -> list[tuple[str, ...]]:
    """The fields by which an operator keeps items apart, or rows: of each what it is in each input; none if it keeps nothing.

    As is seen, or as `@Apart` says.
    """
    if (apart := annotated(instance.use).apart) is not None:
        return [(name,) * len(instance.ins) for name in apart.fields]
    return list(zip(*model.state.keys, strict=True)) if isinstance(model.state, Keyed) else []


def _entering(instances: Sequence[g.Instance]) -> Iterator[tuple[str, typed.Port]]:
    """The queues by which items come into a region, with the ports that take them."""
    made = {queue for instance in instances for queue in instance.outs}
    for instance in instances:
        ends = zip(instance.ins, instance.operator.ports, strict=True)
        yield from ((queue, port) for queue, port in ends if queue not in made)


def _alive(instances: Sequence[g.Instance], models: Sequence[Model]) -> Iterator[tuple[dict[str, str], ...]]:
    """For each operator and input, which fields of its items are fields of those that come into the region, with their names."""
    arriving = {queue: {name: name for name in _fields(port.type)} for queue, port in _entering(instances)}
    for instance, model in zip(instances, models, strict=True):
        yield tuple(arriving[queue] for queue in instance.ins)
        here = (
            arriving[instance.ins[0]] if len(instance.ins) == 1 else {}
        )  # which side a field is of is not known
        for queue, pairs in zip(instance.outs, passed(instance, model), strict=True):
            arriving[queue] = {out: here[source] for out, source in pairs if source in here}


def _reaching(
    instances: Sequence[g.Instance], models: Sequence[Model], keys: frozenset[str]
) -> tuple[bool, ...]:
    """For each operator, whether the values of `keys` reach it unchanged."""
    return tuple(
        all(keys <= set(alive.values()) for alive in arriving) for arriving in _alive(instances, models)
    )


def _fields(type_: t.Type) -> tuple[str, ...]:
    return tuple(_columns(type_))


def _columns(type_: t.Type) -> dict[str, t.Type]:
    """The fields of items, or of the rows of deltas."""
    rows = row_type(type_)
    carrier = type_ if rows is None else rows
    return dict(carrier.fields) if isinstance(carrier, t.Record) else {}


def _in_order(first: g.Instance, keys: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in _fields(first.operator.ports[0].type) if name in keys)


# -------------------------------------------------------------------------------------------------------------- order


def _ordered(
    graph: g.Graph, instances: Sequence[g.Instance], models: Sequence[Model], keys: frozenset[str] | None
) -> RegionPlan | Note:
    """The plan of a region on ordered queues: the items themselves tell their order."""
    first = instances[0]
    for instance in instances:
        if not instance.operator.outs:
            message = f"`{instance.use.operator}` ends an ordered queue and sends nothing"
            return Note(message, instance.use.span)
    if keys is None:
        return RegionPlan("time_merge", ())
    if any(isinstance(m.state, Keyed) and not m.state.rows for m in models):
        by = first.operator.ports[0].by
        name = instances[-1].use.operator
        message = (
            f"`{name}` reads items in the order of `{by}`, of which two with equal `{by}` would change places"
        )
        return Note(message, instances[-1].use.span)
    for instance, reached in zip(instances, _reaching(instances, models, keys), strict=True):
        if annotated(instance.use).apart is not None:  # its author says that it may be given rows in parts
            continue
        rows = rowwise(instance.operator)
        if rows.obstacle is not None:
            return Note(
                f"`{instance.use.operator}` cannot be given parts of a delta: {rows.obstacle}",
                instance.use.span,
            )
        if rows.compares and not reached:
            message = f"`{instance.use.operator}` compares rows, of which equal ones may come from different replicas"
            return Note(message, instance.use.span)
    members = [instance.index for instance in instances]
    ends = (graph.queues[queue].consumer for _, queue in _leaving(graph, members))
    for index in sorted(downstream(graph, (end.instance for end in ends if end is not None))):
        after = graph.instances[index]
        if not _bag_reader(after):
            message = f"`{after.use.operator}` may read the order of rows within an instant, which replicas would change"
            return Note(message, instances[-1].use.span)
    return RegionPlan("time_merge", _in_order(first, keys))


def _bag_reader(instance: g.Instance) -> bool:
    """Whether the order of the rows inside a delta does not matter to an operator, but for that of its own output."""
    model = instance_model(instance)
    return model.commutative or (
        isinstance(model.state, Stateless) and rowwise(instance.operator).obstacle is None
    )


def unseen(graph: g.Graph, queue: str) -> bool:
    """Whether nobody can tell in which order items leave by a queue: who takes them commutes and sends nothing."""
    end = graph.queues[queue].consumer
    if end is None or graph.queues[queue].by is not None:
        return False
    after = graph.instances[end.instance]
    return annotated(after.use).commutative and not after.operator.outs
