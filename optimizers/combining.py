"""Regions of the strategy `combine`, written out: items are dealt in turns, each replica accumulates apart, parts are combined.

A replica has a copy of all operators of the region, and of all that they write; what they wrote in the end is combined by
`result $v = combine(...)`. On one machine blocks of a file are dealt, not items: reducers commute. What leaves the region
leaves it as its exits say: in the order of the input, by serial numbers that items get when they are dealt, or as it comes.

Paper: River §4.4, §6 (each mapper is fused with its splitter, each reducer with its merger).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from optimizers.fission import UNORDERED, unseen
from optimizers.queries import Names, changed, source, type_text
from river.classes import evolve, frozen
from river.diagnostics import Rejected
from river.il import annotations as a
from river.il.annotations import COMBINE, annotated, annotation
from river.il.combine import start
from river.il.lift import lift
from river.il.partial import Partial, partial
from river.il.program import Input, Instance, Lift, Queue, Result, Use, Variable
from river.il.sources import source as read_as
from river.lang import syntax as s
from river.lang.values import default, same

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from river.il import graph as g
    from river.il.program import Annotation, Decl, Program
    from river.passes import Verified
    from river.platform import Platform
    from river.source import Span


SEQ: Final = "seq"


@frozen
class Parts:
    """A region `id` on the items of an input, as so many replicas.

    `exits`: by queue how what leaves it is put together. `epoch`: after how many items marks follow.
    """

    id: str
    input: str
    degree: int
    exits: tuple[tuple[str, str], ...]
    epoch: int

    @property
    def tagged(self) -> bool:
        """Whether its items carry serial numbers, because somebody sees in which order they leave."""
        return any(how != UNORDERED for _, how in self.exits)


def parts(graph: g.Graph, platform: Platform, epoch: int) -> Iterator[Parts]:
    """The regions of a program whose results are combined, where there is anybody to share them with."""
    for name in graph.inputs:
        region = read_as(graph, name).combined
        if region is None:
            continue
        members = [instance for instance in graph.instances if _region(instance) == region]
        said = (annotated(member.use).parallel for member in members)
        stated = [each.degree for each in said if each is not None and each.degree is not None]
        degree = min(stated, default=platform.cores * platform.machines)
        if degree > 1:
            yield Parts(region.id, name, degree, tuple(_exits(members, region)), epoch)


def _exits(members: Sequence[g.Instance], region: a.Region) -> Iterator[tuple[str, str]]:
    """The queues by which items leave a region, and how what leaves is put together."""
    taken = {queue for member in members for queue in member.ins}
    for member in members:
        leaving = [queue for queue in member.outs if queue not in taken]
        yield from zip(leaving, annotated(member.use).leaving(region, len(leaving)), strict=True)


def _region(instance: g.Instance) -> a.Region | None:
    return next((region for region in annotated(instance.use).regions if region.what == COMBINE), None)


def obstacle(verified: Verified, site: Parts) -> tuple[str, Span | None] | None:
    """Why a region cannot be written out, and where that is said."""
    graph = verified.graph
    found = partial(graph, site.input)
    if not isinstance(found, Partial):
        return found.message, found.span
    members = [graph.instances[i] for i in found.members]
    stray = next((i for i in graph.instances if _is(i, site) != (i in members)), None)
    if stray is not None:
        return (
            f"`{stray.use.operator}` cannot be in the region of what gathers behind `{site.input}`",
            stray.use.span,
        )
    for queue, how in site.exits:
        if how == UNORDERED and not unseen(graph, queue):
            return f"`{queue}` is to leave the region `{site.id}` in any order, which can be seen", members[
                0
            ].use.span
    for member in members if site.tagged else ():
        try:
            lift(_text(verified, member), SEQ, member.use.span)
        except Rejected as rejected:
            return rejected.diagnostics[0].message, member.use.span
    for name, how in found.combined:
        variable = next(v for v in graph.variables if v.name == name)
        if _begins(how, variable) is None:
            return f"`${name}` begins with a value of which parts are neutral and parts are not", None
    return None


def _text(verified: Verified, instance: g.Instance) -> s.Operator | s.Extern:
    text = source(verified, instance.use.operator)
    assert text is not None  # noqa: S101 - the program is verified
    return text


def _is(instance: g.Instance, site: Parts) -> bool:
    region = _region(instance)
    return region is not None and region.id == site.id


def _begins(how: object, variable: g.Variable) -> bool | None:
    """Whether other parts begin with the same as the first; if not, with zero; None: with something else."""
    type_, initial = variable.type, variable.initial
    first = start(how, type_, initial)  # pyright: ignore[reportArgumentType]
    equal = same(type_)
    return True if equal(first, initial) else False if equal(first, default(type_)) else None


def written_out(verified: Verified, site: Parts) -> Program:
    """The program with the region as replicas."""
    graph, names = verified.graph, Names(verified.program)
    found = partial(graph, site.input)
    assert isinstance(found, Partial)  # noqa: S101 - the guard has approved
    members = [graph.instances[i] for i in found.members]
    inner = {queue for member in members for queue in member.outs}
    apart = {
        name: tuple(names.variable(f"{name}.{m}") for m in range(site.degree)) for name, _ in found.combined
    }
    exits = {queue for queue, _ in site.exits}
    flows = [
        {queue: names.queue(f"{queue}_{m}") for queue in (site.input, *inner)} for m in range(site.degree)
    ]
    added, uses = _split(verified, site, [flow[site.input] for flow in flows], members[0].use.span, names)
    lifts = {member.use.operator: member.use.operator for member in members}
    if site.tagged:
        lifts = {name: names.operator(f"{name}_{SEQ}") for name in lifts}
        added += [Lift(lifted, name, SEQ, span=members[0].use.span) for name, lifted in lifts.items()]
    for m, flow in enumerate(flows):
        own = {name: each[m] for name, each in apart.items()}
        uses += [_replica(member, site, m, flow, own, lifts[member.use.operator]) for member in members]
    for queue, how in site.exits:
        template = "merge_seq" if how != UNORDERED else "gather_seq" if site.tagged else "gather"
        type_ = type_text(verified.graph.queues[queue].type, verified.type_names)
        operator = names.operator(f"{site.id}_merge")
        added.append(Instance(operator, f"std.{template}", (("T", type_), ("n", s.Int(site.degree)))))
        merging = (annotation(a.Region(site.id, "merge")),)
        uses.append(Use((queue,), operator, tuple(flow[queue] for flow in flows), merging))
    return _replaced(verified, site, members, uses, added, apart, found, inner - exits)


def _split(
    verified: Verified, site: Parts, flows: Sequence[str], span: Span | None, names: Names
) -> tuple[list[Decl], list[Use]]:
    """What deals the items in turns, with serial numbers or without."""
    split = names.operator(f"{site.id}_split")
    type_ = type_text(verified.graph.queues[site.input].type, verified.type_names)
    dealing = (annotation(a.Region(site.id, "split")),)
    if not site.tagged:
        operator = Instance(
            split, "std.rr_split", (("T", type_), ("w", s.ListValue((s.Int(1),) * site.degree))), span=span
        )
        return [operator], [Use(tuple(flows), split, (site.input,), dealing, span=span)]
    counter = names.variable(f"{site.id}_n")
    args = ("T", type_), ("n", s.Int(site.degree)), ("epoch", s.Int(site.epoch))
    added: list[Decl] = [
        Instance(split, "std.split_rr", args, span=span),
        Variable(counter, s.TypeName("i64"), s.Int(0), span=span),
    ]
    use = Use((*flows, f"${counter}"), split, (site.input, f"${counter}"), dealing, span=span)
    return added, [use]


def _replica(
    member: g.Instance, site: Parts, number: int, flow: dict[str, str], own: dict[str, str], operator: str
) -> Use:
    """A use of an operator in a replica."""
    named = [f"${own.get(name, name)}" for name in member.variables]
    written = [name for name, param in zip(named, member.operator.vars, strict=True) if param.written]
    said = annotated(member.use)
    known: list[a.Known] = [a.Region(site.id, "replica"), a.Group(f"{site.id}_{number}")]
    known += [a.Commutative()] if said.commutative else []
    known += [said.keys] if said.keys is not None and not site.tagged else []  # it is the tag that has fields
    return Use(
        (*(flow[queue] for queue in member.outs), *written),
        operator,
        (*(flow[queue] for queue in member.ins), *named),
        tuple(map(annotation, known)),
        member.use.within,
        span=member.use.span,
    )


def _says(annotation_: Annotation, id_: str) -> bool:
    """Whether an annotation is of a region."""
    known = a.read(annotation_) if annotation_.name == "Region" else None
    return isinstance(known, a.Region) and known.id == id_


def _replaced(
    verified: Verified,
    site: Parts,
    members: Sequence[g.Instance],
    uses: Sequence[Use],
    added: Sequence[Decl],
    apart: dict[str, tuple[str, ...]],
    found: Partial,
    gone_queues: set[str],
) -> Program:
    gone, how = {id(member.use) for member in members}, dict(found.combined)
    variables = {variable.name: variable for variable in verified.graph.variables}
    placed = False

    def change(decl: Decl) -> Decl | Iterable[Decl] | None:
        nonlocal placed
        match decl:
            case Variable(name) if name in apart:
                alike = _begins(how[name], variables[name])
                other = decl if alike else evolve(decl, initial=s.Call("zero", ()))
                first, *others = apart[name]
                return [
                    evolve(decl, name=first),
                    *(evolve(other, name=part) for part in others),
                    Result(name, apart[name], combined=True, span=decl.span),
                ]
            case Input(name) if name == found.input:
                left = tuple(each for each in decl.annotations if not _says(each, site.id))
                return evolve(decl, annotations=left)
            case Queue(name) if name in gone_queues:
                return None
            case Use() if id(decl) in gone:
                first_, placed = not placed, True
                return uses if first_ else None
            case _:
                return decl

    return changed(verified.program, change, added)
