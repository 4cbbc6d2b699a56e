"""Expansion: parallel regions, until then annotations, become splits, replicas and merges.

Neighbouring regions are expanded together. Where one ends and the next begins, the merge and the split are rotated, if
that keeps the order: each replica of the first has a split, each of the second a merge, and no item passes through a
single operator. Each replica is a `@Group` of its own.

Paper: River §4.4 (fission optimizer, steps 1 to 3); Auto-parallelizing §4.4 (shuffles).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import field, frozen
from attrs.validators import ge

from optimizers.combining import SEQ, Parts, obstacle, parts, written_out
from optimizers.fission import UNHELD, UNORDERED, lasting, unseen
from optimizers.fission import region as fissible
from optimizers.queries import Names, changed, downstream, source, type_text
from river.classes import evolve
from river.diagnostics import Note, Rejected
from river.il import annotations as a
from river.il.annotations import HALO, ROLES, SERIAL, annotated, annotation, row_type
from river.il.arrangement import shows_entries
from river.il.combine import combines
from river.il.expand import expand as expanded
from river.il.lift import lift
from river.il.model import instance_model
from river.il.program import Instance, Lift, Program, Queue, Result, Use, Variable
from river.il.regions import BY_TIME, LOOPS
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform
    from river.source import Span

TAGS: Final = ("seqno", "seqno_marks")


@frozen
class Region:
    """An annotated region: operators, each behind the one that feeds it.

    `exits`: the queues by which items leave it, with their strategies; `entries`: those by which they come.
    """

    id: str
    strategy: str
    keys: tuple[str, ...]
    degree: int
    epoch: int
    members: tuple[int, ...]
    exits: tuple[tuple[str, str], ...]
    entries: tuple[str, ...]


@frozen
class Site:
    """Neighbouring regions, in the order in which items pass them."""

    regions: tuple[Region, ...]


@frozen
class Expand:
    """`expand`: the operators of `@Region`s become replicas. `epoch`: where the region says nothing of its marks."""

    name: ClassVar[str] = "expand"
    epoch: int = field(default=64, validator=ge(1))

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site | Parts]:
        graph = verified.graph
        yield from parts(graph, platform, self.epoch)
        regions = _regions(graph, self.epoch)
        entries = {region.members[0]: region for region in regions if len(region.entries) == 1}
        following: dict[str, Region] = {}
        for region in regions:
            ends = [graph.queues[out].consumer for out, _ in region.exits]
            ends = ends if len(ends) == 1 else []
            after = [entries[end.instance] for end in ends if end is not None and end.instance in entries]
            near = graph.looping.isdisjoint(m for each in (region, *after) for m in each.members)
            near = near and not any(
                each.strategy in TAGS and _ordered(graph.instances[m] for m in each.members)
                for each in (region, *after)
            )
            following |= {region.id: after[0]} if near and after and after[0] is not region else {}
        later = {after.id for after in following.values()}
        for region in regions:
            if region.id in later:
                continue
            chain = [region]
            while chain[-1].id in following:
                chain.append(following[chain[-1].id])
            for refused, found in groupby(chain, lambda each: _refused(verified, each, TAGS) is not None):
                neighbours = tuple(found)
                yield from (Site((each,)) for each in neighbours) if refused else (Site(neighbours),)

    def guard(self, verified: Verified, site: Site | Parts, /) -> Note | None:
        if isinstance(site, Parts):
            found = obstacle(verified, site)
            return None if found is None else Note(*found)
        tagging = TAGS if len(site.regions) == 1 else (*TAGS, "round_robin")
        found = (_refused(verified, region, tagging) for region in site.regions)
        return next((note for note in found if note is not None), None)

    def rewrite(self, verified: Verified, site: Site | Parts, /) -> Program:
        if isinstance(site, Parts):
            return written_out(verified, site)
        return _Expansion(verified, site.regions).program()


def _refused(verified: Verified, region: Region, tagging: Sequence[str]) -> Note | None:
    """Why a region cannot be written out. `tagging`: the strategies whose items carry serial numbers."""
    graph = verified.graph
    if len(region.entries) > 1 and region.strategy not in (BY_TIME, HALO):
        use = graph.instances[region.members[0]].use
        message = (
            f"the region `{region.id}` has {len(region.entries)} entries, which no instants keep together"
        )
        return Note(message, use.span)
    if (note := _shown(graph, region)) is not None:
        return note
    for member in region.members:
        instance = graph.instances[member]
        reason = _serial(graph, instance, region) or _obstacle(
            verified, instance, tagged=region.strategy in tagging
        )
        if reason is not None:
            return Note(f"`{instance.use.operator}` {reason}", instance.use.span)
    return None


def _regions(graph: g.Graph, epoch: int) -> tuple[Region, ...]:
    """The regions that stand as annotations."""
    found: dict[str, list[g.Instance]] = {}
    for instance in graph.instances:
        said = annotated(instance.use)
        region = said.region
        if region is None or region.what in ROLES:
            continue
        if said.parallel is not None and said.parallel.degree is not None:
            found.setdefault(region.id, []).append(instance)
    return tuple(_region(id_, _in_turn(members), epoch) for id_, members in found.items())


def _region(id_: str, members: Sequence[g.Instance], epoch: int) -> Region:
    said = annotated(members[0].use)
    assert said.parallel is not None  # noqa: S101 - a region has a degree
    degree = said.parallel.degree or 1
    what = said.region
    assert what is not None  # noqa: S101 - it is how the members were found
    stated = epoch if said.epoch is None else said.epoch.items
    taken = {queue for member in members for queue in member.ins}
    made = {queue for member in members for queue in member.outs}
    exits: list[tuple[str, str]] = []
    for member in members:
        leaving = [queue for queue in member.outs if queue not in taken]
        own = annotated(member.use).leaving(what, len(leaving))
        exits += zip(leaving, own, strict=True)
    indices = tuple(member.index for member in members)
    entries = tuple(queue for member in members for queue in member.ins if queue not in made)
    strategy = what.what
    if strategy == "round_robin" and _ordered(members):  # turns tell nothing of keys
        strategy = "seqno"
    if _timed(members, what):
        exits = [(queue, BY_TIME) for queue, _ in exits]
        return Region(id_, BY_TIME, (), degree, stated, indices, tuple(exits), entries)
    return Region(id_, strategy, what.keys, degree, stated, indices, tuple(exits), entries)


def _ordered(members: Iterable[g.Instance]) -> bool:
    """Whether items of a region come or go in the order of a key."""
    return any(
        end.by is not None for member in members for end in (*member.operator.ports, *member.operator.outs)
    )


def _hearing(graph: g.Graph, instance: g.Instance) -> g.Instance | None:
    """Who acts on marks that an operator passes on."""
    keyed = (
        out for out, end in zip(instance.outs, instance.operator.outs, strict=True) if end.by is not None
    )
    ends = (graph.queues[out].consumer for out in keyed)
    behind = sorted(downstream(graph, (end.instance for end in ends if end is not None)))
    operators = ((graph.instances[i], graph.instances[i].operator) for i in behind)
    return next((i for i, op in operators if isinstance(op, typed.Operator) and op.mark is not None), None)


def _timed(members: Sequence[g.Instance], what: a.Region) -> bool:
    """Whether all items of a region tell their order, so that it needs no numbers to be kept."""
    ends = (end for member in members for end in (*member.operator.ports, *member.operator.outs))
    return what.what in SERIAL and not what.keys and all(end.by is not None for end in ends)


def _shown(graph: g.Graph, region: Region) -> Note | None:
    """A refusal if items are to leave in any order where somebody can tell in which."""
    if region.strategy == UNORDERED:  # whoever asks for that asks for it everywhere
        return None
    for queue, how in region.exits:
        if how == UNORDERED and not unseen(graph, queue):
            producer = graph.queues[queue].producer
            use = None if producer is None else graph.instances[producer.instance].use
            message = f"`{queue}` is to leave the region `{region.id}` in any order, which can be seen"
            return Note(message, None if use is None else use.span)
    return None


def _in_turn(members: Sequence[g.Instance]) -> list[g.Instance]:
    """The members, each behind those that feed it, as far as no circle is among them."""
    left = {m.index: m for m in members}
    found: list[g.Instance] = []
    while left:
        made = {queue for member in left.values() for queue in member.outs}
        free = [m for m in left.values() if made.isdisjoint(m.ins)] or list(left.values())
        found.append(free[0])
        del left[free[0].index]
    return found


def _serial(graph: g.Graph, instance: g.Instance, region: Region) -> str | None:
    """Why an operator cannot be written out that only a runtime with serial numbers of its own can run as several."""
    op = instance.operator
    if annotated(instance.use).combined:
        return "works on blocks of an input, which are not written out"
    if len(op.ports) != 1 and region.strategy not in (BY_TIME, HALO):
        return f"has {len(op.ports)} inputs: only those of deltas are split alike"
    if instance.index in graph.looping and region.strategy not in UNHELD:
        return f"{LOOPS}, and what it sends would wait for what comes later"
    if region.strategy == HALO:
        found = fissible(graph, region.members)
        return found.message.removeprefix(f"`{instance.use.operator}` ") if isinstance(found, Note) else None
    if region.strategy in SERIAL and len(region.members) > 1 and _ordered([instance]):
        return "has ordered queues inside of a region, whose items are to be in order there"
    if region.strategy in SERIAL and (heard := _hearing(graph, instance)) is not None:
        return f"sends in order to `{heard.use.operator}`, which acts on marks: serial numbers carry none"
    if isinstance(op, typed.Operator) and (
        any(port.initial for port in op.ports) or not (op.items or op.merge)
    ):
        return "keeps items waiting between firings"
    if region.strategy == BY_TIME:
        found = fissible(graph, region.members)
        if isinstance(found, Note):
            return f"is in a region whose rows only a runtime keeps in order: {found.message}"
    return None


def _obstacle(verified: Verified, instance: g.Instance, *, tagged: bool) -> str | None:
    """Why one operator of a region cannot be written out as replicas."""
    graph = verified.graph
    initial = {variable.name: variable for variable in graph.variables}
    named = zip(instance.operator.vars, instance.variables, combines(instance.operator), strict=True)
    for param, name, how in named:
        if not param.written and name in graph.written:
            return f"reads `${name}`, which is written"
        if not param.written:
            continue
        if len(graph.users[name]) > 1 or instance.variables.count(name) > 1:
            return f"shares `${name}` with another operator"
        if initial[name].initial != default(initial[name].type):
            return f"has `${name}`, which is not empty at first"
        for view in (view for view in graph.views if view.variable == name):
            if how is None or shows_entries(view.fns, view.function):
                return (
                    f"has `${name}`, of which the output `{view.name}` is a view: it has to stay in one piece"
                )
    if tagged:
        text = source(verified, instance.use.operator)
        assert text is not None  # noqa: S101 - the program is verified
        try:
            lift(text, SEQ, instance.use.span)
        except Rejected as rejected:
            return "; ".join(d.message.removeprefix(f"`{text.name}` ") for d in rejected.diagnostics)
    return None


# ---------------------------------------------------------------------------------------------------------- mechanism


@frozen
class _Stream:
    """The type of what flows in one place of the original program."""

    type: t.Type
    by: str | None


class _Expansion:
    """One chain of regions being written out."""

    def __init__(self, verified: Verified, regions: tuple[Region, ...]) -> None:
        self.verified = verified
        self.graph = verified.graph
        self.regions = regions
        self.names = Names(verified.program)
        self.types = verified.type_names
        self.operators: list[Decl] = []
        self.uses: list[Use] = []
        self.parts: dict[str, tuple[str, ...]] = {}
        self.lifts: dict[str, str] = {}
        self.span: Span | None = None
        self.private = a.private(verified.graph)
        self.rotated = tuple(self.rotates(i) for i in range(len(regions) - 1))

    # -- how neighbours meet

    def rotates(self, i: int) -> bool:
        """Whether the merge after region `i` and the split after it may change places."""
        before, after = self.regions[i], self.regions[i + 1]
        if before.strategy == after.strategy == "time_merge":
            return True
        if before.strategy == after.strategy == "unordered":
            return True
        tags = (*TAGS, "round_robin")
        if before.strategy not in tags or after.strategy not in tags:
            return False
        # Items with one tag must leave by one replica: then a merge by tags finds their order again.
        models = (instance_model(self.graph.instances[m]) for m in before.members)
        return all((high := model.selectivity[0].most) is not None and high <= 1 for model in models)

    def tagged(self, i: int) -> bool:
        """Whether the items inside region `i` carry serial numbers."""
        if self.regions[i].strategy in TAGS:
            return True
        turns = self.regions[i].strategy == "round_robin"
        beside = (*self.rotated[i - 1 : i], *self.rotated[i : i + 1]) if i else self.rotated[:1]
        return turns and any(beside)

    # -- the program

    def program(self) -> Program:
        """The program with the regions written out."""
        flows: tuple[str, ...] = ()
        for i, region in enumerate(self.regions):
            self.span = self.graph.instances[region.members[0]].use.span
            if i > 0 and self.rotated[i - 1]:
                coming = {region.entries[0]: self.rotation(i, flows)}
            else:
                coming = {queue: self.split(i, queue) for queue in region.entries}
            leaving = self.replicas(i, coming)
            if i + 1 < len(self.regions) and self.rotated[i]:
                ((queue, _),) = region.exits
                flows = leaving[queue]
                continue
            for queue, how in region.exits:
                self.merge(i, leaving[queue], queue, how)
        return self.replaced()

    def stream(self, queue: str) -> _Stream:
        found, by = self.graph.queues[queue], None
        if (
            end := found.producer
        ) is not None:  # who sends in an order may do so to a queue that says nothing of it
            instance = self.graph.instances[end.instance]
            by = instance.operator.outs[instance.outs.index(queue)].by
        return _Stream(found.type, found.by or by)

    def entering(self, queue: str) -> _Stream:
        """What enters a region by a queue of the original program, as the operator takes it."""
        end = self.graph.queues[queue].consumer
        assert end is not None  # noqa: S101 - an operator of the region takes it
        instance = self.graph.instances[end.instance]
        port = instance.operator.ports[instance.ins.index(queue)]
        return _Stream(port.type, port.by)

    def text(self, type_: t.Type) -> s.TypeExpr:
        return type_text(type_, self.types)

    def tag(self, type_: t.Type) -> s.TypeExpr:
        """The type of a tagged item."""
        return s.RecordType((s.FieldType(SEQ, s.TypeName("i64")), s.FieldType("v", self.text(type_))))

    def instance(self, name: str, template: str, *args: tuple[str, s.TemplateArg]) -> str:
        """A new operator of the standard template `template`."""
        found = self.names.operator(name)
        self.operators.append(Instance(found, f"std.{template}", args, span=self.span))
        return found

    def use(
        self, role: str, i: int, replica: int | None, operator: str, ins: Iterable[str], outs: Iterable[str],
        said: Sequence[a.Known] = (),
    ) -> None:  # fmt: skip
        """A new use in region `i`, placed with replica `replica`, after the regions that enclose it."""
        region = self.regions[i]
        around = annotated(self.graph.instances[region.members[0]].use)
        known: list[a.Known] = [*around.regions[:-1], a.Region(region.id, role), *said]
        if replica is not None:
            known.append(a.Group(f"{region.id}_{replica}"))
        elif around.group is not None and not any(isinstance(each, a.Group) for each in said):
            known.append(around.group)
        self.uses.append(
            Use(tuple(outs), operator, tuple(ins), tuple(map(annotation, known)), span=self.span)
        )

    # -- splits and merges

    def queues(self, base: str, n: int) -> tuple[str, ...]:
        return tuple(self.names.queue(f"{base}_{m}") for m in range(n))

    def split(self, i: int, queue: str) -> tuple[str, ...]:
        """The split of region `i`, before which nothing is divided."""
        region, stream = self.regions[i], self.entering(queue)
        n = ("n", s.Int(region.degree))
        type_ = ("T", self.text(stream.type))
        outs = self.queues(queue, region.degree)
        name = f"{region.id}_split"
        if self.tagged(i):
            counter = self.names.variable(f"{region.id}_n")
            epoch = ("epoch", s.Int(region.epoch))
            by = () if stream.by is None else (("by", s.Name(stream.by)),)
            if region.keys:
                operator = self.instance(name, "split_hash", type_, ("key", _key(region.keys)), n, epoch, *by)
            else:
                operator = self.instance(name, "split_rr", type_, n, epoch, *by)
            self.operators.append(Variable(counter, s.TypeName("i64"), s.Int(0), span=self.span))
            self.use("split", i, None, operator, (queue, f"${counter}"), (*outs, f"${counter}"))
            return outs
        if region.strategy == HALO:
            self.windows(i, queue, outs)
            return outs
        if region.strategy in ("round_robin", "unordered") and not region.keys:
            weights = ("w", s.ListValue((s.Int(1),) * region.degree))
            operator = self.instance(name, "rr_split", type_, weights)
        else:
            operator = self.plain_split(i, stream, name)
        self.use("split", i, None, operator, (queue,), outs)
        return outs

    def windows(self, i: int, queue: str, outs: tuple[str, ...]) -> None:
        """The split of a region of windows: each replica gets all items of its own, those that it shares with others, too."""
        region, type_ = self.regions[i], ("T", self.text(self.entering(queue).type))
        name, port = f"{region.id}_split", self.graph.instances[region.members[0]].ins.index(queue)
        rate, first = self.rates(region)[port], self.text_of(region).ports[port].initial
        if rate.peek == rate.pop:
            weights = ("w", s.ListValue((s.Int(rate.pop),) * region.degree))
            operator = self.begun(self.instance(name, "rr_split", type_, weights), first)
            self.use("split", i, None, operator, (queue,), outs)
            return
        turn = self.names.variable(f"{region.id}_turn")
        self.operators.append(Variable(turn, s.TypeName("i64"), s.Int(0), span=self.span))
        shape = ("n", s.Int(region.degree)), ("peek", s.Int(rate.peek)), ("pop", s.Int(rate.pop))
        operator = self.begun(self.instance(name, "split_windows", type_, *shape), first)
        self.use("split", i, None, operator, (queue, f"${turn}"), (*outs, f"${turn}"))

    def begun(self, operator: str, first: s.Expr | None) -> str:
        """The operator that has just been added, with these items before all that come."""
        if first is not None:
            made = self.operators.pop()
            assert isinstance(made, Instance)  # noqa: S101 - it is of the standard library
            text = expanded(made, {}, self.verified.templates)
            assert isinstance(text, s.Operator)  # noqa: S101 - it is of the standard library
            ports = (evolve(text.ports[0], initial=first), *text.ports[1:])
            self.operators.append(evolve(text, name=operator, ports=ports))
        return operator

    def text_of(self, region: Region) -> s.Operator:
        """The text of the operator of a region of windows."""
        text = source(self.verified, self.graph.instances[region.members[0]].use.operator)
        assert isinstance(text, s.Operator)  # noqa: S101 - by the guard
        return text

    def rates(self, region: Region) -> Mapping[int, typed.Rate]:
        """How the operator of a region of windows takes its inputs, by port."""
        operator = self.graph.instances[region.members[0]].operator
        assert isinstance(operator, typed.Operator)  # noqa: S101 - by the guard
        assert operator.rated is not None  # noqa: S101 - by the guard
        return {rate.port: rate for rate in operator.rated.rates}

    def plain_split(self, i: int, stream: _Stream, name: str) -> str:
        """A split that neither counts nor tags."""
        region = self.regions[i]
        n = ("n", s.Int(region.degree))
        if region.strategy != "time_merge":
            return self.instance(
                name, "split_keys", ("T", self.text(stream.type)), ("key", _key(region.keys)), n
            )
        if region.keys:
            instances = any(lasting(self.graph.instances[m]) for m in region.members)
            template = "split_instants" if instances else "split_rows"
            return self.instance(name, template, *self.delta(stream.type), ("key", _key(region.keys)), n)
        assert stream.by is not None  # noqa: S101 - the strategy is for ordered queues
        by = ("by", s.Name(stream.by))
        return self.instance(name, "split_time", ("T", self.text(stream.type)), n, by)

    def delta(self, type_: t.Type) -> tuple[tuple[str, s.TemplateArg], ...]:
        """The arguments of a template on deltas of this type."""
        rows = row_type(type_)
        assert rows is not None  # noqa: S101 - the strategy is for deltas
        assert isinstance(type_, t.Record)  # noqa: S101 - a delta is one
        return ("R", self.text(rows)), ("Tau", self.text(type_.fields[0][1]))

    def merge(self, i: int, flows: tuple[str, ...], queue: str, how: str) -> None:
        """The merge of what leaves region `i` by a queue, after which nothing is divided."""
        region, stream = self.regions[i], self.stream(queue)
        n = ("n", s.Int(len(flows)))
        type_ = ("T", self.text(stream.type))
        name = f"{region.id}_merge"
        if how == HALO:
            instance = self.graph.instances[region.members[0]]
            sent = instance_model(instance).selectivity[instance.outs.index(queue)].least
            operator = self.instance(name, "rr_join", type_, ("w", s.ListValue((s.Int(sent),) * len(flows))))
        elif self.tagged(i):
            if how == UNORDERED:
                operator = self.instance(name, "gather_seq", type_, n)
            else:
                by = () if stream.by is None else (("by", s.Name(stream.by)),)
                operator = self.instance(name, "merge_seq", type_, n, *by)
        elif how == "round_robin":
            operator = self.instance(name, "rr_join", type_, ("w", s.ListValue((s.Int(1),) * len(flows))))
        else:
            operator = self.plain_merge(region, name, stream, len(flows), how)
        self.use("merge", i, None, operator, flows, (queue,))

    def plain_merge(self, region: Region, name: str, stream: _Stream, count: int, how: str) -> str:
        """A merge of items without tags, of `count` flows."""
        n = ("n", s.Int(count))
        if how == UNORDERED:
            return self.instance(name, "gather", ("T", self.text(stream.type)), n)
        if region.keys:
            return self.instance(name, "merge_rows", *self.delta(stream.type), n)
        by = stream.by
        assert by is not None  # noqa: S101 - the strategy is for ordered queues
        return self.instance(name, "merge_time", ("T", self.text(stream.type)), n, ("by", s.Name(by)))

    def rotation(self, i: int, flows: tuple[str, ...]) -> tuple[str, ...]:
        """A split after each of `flows`, the replicas of the region before, and a merge before each of this one's."""
        before, region = self.regions[i - 1], self.regions[i]
        (queue,) = region.entries
        stream = self.entering(queue)
        n = ("n", s.Int(region.degree))
        if self.tagged(i):
            tag = ("T", self.tag(stream.type))
            key = _key(region.keys, "v") if region.keys else s.Lambda(("m",), s.Member(s.Name("m"), SEQ))
            by = ("by", s.Name(SEQ))
            split = self.instance(f"{region.id}_split", "split_keys", tag, ("key", key), n, by)
            merge = self.instance(f"{before.id}_merge", "merge_time", tag, ("n", s.Int(len(flows))), by)
        elif region.strategy == "unordered" and not region.keys:
            weights = ("w", s.ListValue((s.Int(1),) * region.degree))
            split = self.instance(f"{region.id}_split", "rr_split", ("T", self.text(stream.type)), weights)
            merge = self.plain_merge(
                before, f"{before.id}_merge", self.stream(queue), len(flows), before.strategy
            )
        else:
            split = self.plain_split(i, stream, f"{region.id}_split")
            merge = self.plain_merge(
                before, f"{before.id}_merge", self.stream(queue), len(flows), before.strategy
            )
        parts = [self.queues(flow, region.degree) for flow in flows]
        for m, (flow, outs) in enumerate(zip(flows, parts, strict=True)):
            self.use("split", i, None, split, (flow,), outs, (a.Group(f"{before.id}_{m}"),))
        merged = self.queues(queue, region.degree)
        for m, out in enumerate(merged):
            self.use(
                "merge",
                i - 1,
                None,
                merge,
                [outs[m] for outs in parts],
                (out,),
                (a.Group(f"{region.id}_{m}"),),
            )
        return merged

    # -- replicas

    def replicas(self, i: int, taken: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The replicas of region `i` on what is `taken`; that and what they send, by the queue of the original program."""
        region = self.regions[i]
        for member in region.members:
            instance = self.graph.instances[member]
            self.span = instance.use.span
            operator = instance.use.operator
            if self.tagged(i):
                operator = self.lifted(operator)
            elif region.strategy == HALO:
                operator = self.apart(region, operator)
            named = zip(instance.variables, instance.operator.vars, strict=True)
            written = {v for v, p in named if p.written}  # all others are constants, which all may read
            variables = {
                v: self.divided(v, region.degree) if v in written else (v,) * region.degree
                for v in instance.variables
            }
            taken |= {out: self.queues(out, region.degree) for out in instance.outs}
            for m in range(region.degree):
                coming = [taken[queue][m] for queue in instance.ins]
                own = [f"${variables[v][m]}" for v in instance.variables]
                left = [f"${variables[v][m]}" for v in instance.variables if v in written]
                sent = [taken[out][m] for out in instance.outs]
                said = _replicated(instance.use, region.id, m, tagged=self.tagged(i))
                self.use("replica", i, m, operator, (*coming, *own), (*sent, *left), said)
        return taken

    def lifted(self, operator: str) -> str:
        """The operator on tagged items."""
        if operator not in self.lifts:
            self.lifts[operator] = self.names.operator(f"{operator}_{SEQ}")
            self.operators.append(Lift(self.lifts[operator], operator, SEQ, span=self.span))
        return self.lifts[operator]

    def apart(self, region: Region, operator: str) -> str:
        """The operator on windows that come with all their items, one behind the other."""
        text, rates = self.text_of(region), self.rates(region).values()
        ports = tuple(evolve(port, initial=None) for port in text.ports)
        if ports == text.ports and all(rate.peek == rate.pop for rate in rates):
            return operator
        found = self.names.operator(f"{operator}_apart")
        handlers = tuple(
            evolve(
                each, rates=tuple(evolve(rate, peek=None, pop=rate.peek or rate.pop) for rate in each.rates)
            )
            if isinstance(each, s.RatedHandler)
            else each
            for each in text.handlers
        )
        self.operators.append(evolve(text, name=found, ports=ports, handlers=handlers))
        return found

    def divided(self, variable: str, degree: int) -> tuple[str, ...]:
        """The parts of a variable, one for each replica."""
        if variable not in self.parts:
            self.parts[variable] = tuple(self.names.variable(f"{variable}.{m}") for m in range(degree))
        return self.parts[variable]

    # -- the new text

    def replaced(self) -> Program:
        """The program with the new declarations in place of the old uses and variables."""
        gone = {id(self.graph.instances[m].use) for region in self.regions for m in region.members}
        inner = self.inner()
        placed = False

        def change(decl: Decl) -> Decl | Iterable[Decl] | None:
            nonlocal placed
            match decl:
                case Variable(name) if name in self.parts:
                    return [evolve(decl, name=part) for part in self.parts[name]] + self.result(name)
                case Result(_, parts) if any(part in self.parts for part in parts):
                    flat = (self.parts.get(part, (part,)) for part in parts)
                    return evolve(decl, parts=tuple(part for own in flat for part in own))
                case Queue(name) if name in inner:
                    return None
                case Use() if id(decl) in gone:
                    first, placed = not placed, True
                    return self.uses if first else None
                case _:
                    return decl

        return changed(self.verified.program, change, self.operators)

    def result(self, name: str) -> list[Decl]:
        """What keeps a divided variable part of the result, unless it is part of one already, or of none.

        The union of what keys have divided; combined where a view looks at it.
        """
        if name in self.private or any(name in result.parts for result in self.graph.results):
            return []
        viewed = any(view.variable == name for view in self.graph.views)
        return [Result(name, self.parts[name], combined=viewed, span=self.span)]

    def inner(self) -> frozenset[str]:
        """The queues that are no more: those inside the regions, and those where a rotation is."""
        found: set[str] = set()
        for i, region in enumerate(self.regions):
            kept = () if i < len(self.rotated) and self.rotated[i] else {queue for queue, _ in region.exits}
            outs = (out for m in region.members for out in self.graph.instances[m].outs)
            found.update(out for out in outs if out not in kept)
        return frozenset(found)


def _key(keys: tuple[str, ...], inside: str | None = None) -> s.Lambda:
    """The function from an item, or a row, to its key."""
    item: s.Expr = s.Name("r") if inside is None else s.Member(s.Name("r"), inside)
    parts: Mapping[int, s.Expr] = {i: s.Member(item, key) for i, key in enumerate(keys)}
    return s.Lambda(("r",), parts[0] if len(parts) == 1 else s.TupleValue(tuple(parts.values())))


def _replicated(use: Use, region: str, replica: int, *, tagged: bool) -> list[a.Known]:
    """What is said of an operator and holds of each replica, too; of tagged items it is the tag that has fields."""
    said = annotated(use)
    found: list[a.Known] = []
    if said.fuse is not None:
        found.append(a.Fuse(f"{region}_{said.fuse.id}_{replica}"))
    if said.commutative:
        found.append(a.Commutative())
    if said.keys is not None and not tagged:
        found.append(said.keys)
    if said.apart is not None:  # what it keeps stays its own affair
        found.append(said.apart)
    return found
