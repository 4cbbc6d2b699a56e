"""Sharing: streams that are equal are computed once.

Queues are numbered by value: the outputs of a plain duplicate bear the number of its input, and two operators that compute the
same from inputs of equal numbers send streams of equal numbers; one of them goes, and the other's outputs are duplicated. What
reads one stream is fed by one duplicate, so chains of duplicates become one. An operator that reads equal streams at two
ports, and at the same rates, reads one at one.

Equal means: the same body up to names, no variables that are written, and nothing left to chance. A trap of the two is a
trap of the one.

Paper: River §4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from optimizers import numbers
from optimizers.numbers import Numbers
from optimizers.queries import Names, again, changed, source, type_text
from river.classes import define, evolve, field, frozen
from river.diagnostics import Note
from river.il.program import Instance, Program, Queue, Use
from river.il.standard import GROUP, WIDE
from river.il.trees import rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from river.il import graph as g
    from river.il.program import Decl
    from river.lang import types as t
    from river.passes import Verified
    from river.platform import Platform


@frozen
class Site:
    """Pairs of operators, of which the second does what the first does; with none only duplicates are put together."""

    pairs: tuple[tuple[int, int], ...]


@frozen
class Sharing:
    """`sharing`: operators that compute equal streams become one."""

    name: ClassVar[str] = "sharing"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        found = Numbers.of(verified.graph)
        if (
            found.pairs
            or found.twins
            or any(not stream.settled for stream in _streams(verified.graph, found))
        ):
            yield Site(tuple(found.pairs))
        for pair in found.apart:
            yield Site((pair,))

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        graph = verified.graph
        for kept, gone in site.pairs:
            one, other = graph.instances[kept], graph.instances[gone]
            if (reason := numbers.obstacle(graph, one, other)) is not None:
                names = f"`{one.use.operator}` and `{other.use.operator}` read the same, and stay two"
                return Note(f"{names}: {reason}", other.use.span)
        return None

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        return _Rewriting(verified, Numbers.of(verified.graph)).program()


# ---------------------------------------------------------------------------------------------------------- mechanism

OUTSIDE: Final = -1  # who reads an output of the program


@frozen
class _Stream:
    """A stream and who reads it: for each reader the queue that it reads now. `settled`: nothing is to be done."""

    source: str
    readers: tuple[tuple[int, str], ...]
    settled: bool
    split: bool  # duplicates feed the readers


def _streams(graph: g.Graph, equal: Numbers) -> list[_Stream]:
    """All streams: those of inputs and of operators that stay."""
    away = {gone for _, gone in equal.pairs} | equal.duplicates
    copies: dict[str, list[str]] = {}
    for queue, origin in equal.number.items():
        copies.setdefault(origin, []).append(queue)
    found: list[_Stream] = []
    for origin, queues in copies.items():
        ends = [(name, graph.queues[name].consumer) for name in queues]
        readers = tuple(
            (OUTSIDE if end is None else end.instance, name)
            for name, end in ends
            if end is None or not (end.instance in away or _twin(equal, end))
        )
        splits = [end.instance for _, end in ends if end is not None and end.instance in equal.duplicates]
        widths = [len(graph.instances[index].outs) for index in splits]
        split = len(readers) > 1 or any(_needed(graph, origin, name) for _, name in readers)
        alone = len(queues) == 1 + sum(widths)  # no output of an operator that goes is among them
        tree = len(splits) == split * _nodes(len(readers)) and max(widths, default=0) <= WIDE
        settled = alone and tree and len(readers) == max(1, sum(widths) - max(0, len(splits) - 1))
        found.append(_Stream(origin, readers, settled, split))
    return found


def _nodes(readers: int) -> int:
    """How many duplicates feed so many readers."""
    if readers <= WIDE:
        return 1
    groups = -(-readers // GROUP)
    return groups - (readers % GROUP == 1) + _nodes(groups)


def _twin(equal: Numbers, end: g.End) -> bool:
    return end.position in equal.twins.get(end.instance, {})


def _needed(graph: g.Graph, origin: str, reader: str) -> bool:
    """Whether an operator must stand between: an input cannot be an output, and order is checked by who reads."""
    if reader == origin:
        return False
    end, queue = graph.queues[reader].consumer, graph.queues[origin]
    if end is None:
        return queue.producer is None or queue.by is not None
    return queue.by != graph.instances[end.instance].operator.ports[end.position].by


@define
class _Rewriting:
    """The program with each stream computed once."""

    verified: Verified
    equal: Numbers
    names: Names = field(init=False)
    made: list[Instance | s.Operator] = field(factory=list["Instance | s.Operator"])
    renamed: dict[str, str] = field(factory=dict[str, str])  # of an operator's output
    reads: dict[str, str] = field(factory=dict[str, str])  # instead of a reader's queue
    uses: dict[str, tuple[Use, ...]] = field(
        factory=dict[str, tuple[Use, ...]]
    )  # duplicates, by what they read before
    types: Mapping[t.Type, str] = field(factory=dict["t.Type", str])
    singles: dict[int, str] = field(factory=dict[int, str])  # operators without twins, by instance

    def __attrs_post_init__(self) -> None:
        self.names = Names(self.verified.program)
        self.types = self.verified.type_names

    def program(self) -> Program:
        """The program rewritten."""
        graph = self.verified.graph
        settled: set[str] = set()
        for stream in _streams(graph, self.equal):
            if stream.settled:
                settled.add(stream.source)
            else:
                self.fed(stream)
        gone = {gone for _, gone in self.equal.pairs}
        gone |= {
            i for i in self.equal.duplicates if self.equal.number[graph.instances[i].ins[0]] not in settled
        }
        first = next(iter(self.verified.program.uses), None)
        by_use = {id(instance.use): instance for instance in graph.instances}
        fed = self.uses.items()
        before = [use for queue, uses in fed if graph.queues[queue].producer is None for use in uses]
        after = self.queues(gone)

        def change(decl: Decl) -> Decl | Iterable[Decl] | None:
            if isinstance(decl, Queue):
                return decl if decl.name in after else None
            if not isinstance(decl, Use):
                return decl
            instance = by_use[id(decl)]
            kept = () if instance.index in gone else (self.use(instance),)
            own = [use for out in instance.outs for use in self.uses.get(out, ())]
            return (*(before if decl is first else ()), *kept, *own)

        return changed(self.verified.program, change, self.made)

    def fed(self, stream: _Stream) -> None:
        """Feeds the readers of a stream: directly, or by duplicates."""
        graph = self.verified.graph
        name = stream.source
        if not stream.split:
            ((reader, queue),) = stream.readers
            if reader == OUTSIDE:
                self.renamed[name] = queue
            else:
                self.reads[queue] = name
            return
        outs = tuple(queue for _, queue in stream.readers)
        if name in outs:
            self.renamed[name] = self.names.queue(f"{name}_shared")
        self.uses[name] = tuple(self.duplicates(self.renamed.get(name, name), outs, graph.queues[name]))

    def duplicates(self, source: str, outs: tuple[str, ...], queue: g.Queue) -> Iterator[Use]:
        """One duplicate from a queue to others, or, where these are many, a tree of such."""
        if len(outs) <= WIDE:
            yield Use(outs, self.duplicate(queue, len(outs)), (source,))
            return
        groups = [outs[i : i + GROUP] for i in range(0, len(outs), GROUP)]
        own = tuple(group[0] if len(group) == 1 else self.names.queue(f"{source}_part") for group in groups)
        yield from self.duplicates(source, own, queue)
        for made, group in zip(own, groups, strict=True):
            if len(group) > 1:
                yield Use(group, self.duplicate(queue, len(group)), (made,))

    def duplicate(self, queue: g.Queue, count: int) -> str:
        """The name of a duplicate for the items of a queue."""
        by: tuple[tuple[str, s.TemplateArg], ...] = (
            () if queue.by is None else (("by", s.TypeName(queue.by)),)
        )
        type_ = type_text(queue.type, self.types)
        args: tuple[tuple[str, s.TemplateArg], ...] = (("T", type_), ("n", s.Int(count)), *by)
        here = (d for d in self.verified.program.decls if isinstance(d, Instance))
        for decl in (*self.made, *here):
            if isinstance(decl, Instance) and decl.template == "std.duplicate" and decl.args == args:
                return decl.name
        made = Instance(self.names.operator("duplicate"), "std.duplicate", args)
        self.made.append(made)
        return made.name

    def use(self, instance: g.Instance) -> Use:
        """The use of an operator that stays."""
        use = instance.use
        twins = self.equal.twins.get(instance.index, {})
        ins = tuple(self.reads.get(name, name) for i, name in enumerate(use.ins) if i not in twins)
        outs = tuple(self.renamed.get(name, name) for name in use.outs)
        return evolve(
            use, outs=outs, operator=self.single(instance, twins) if twins else use.operator, ins=ins
        )

    def single(self, instance: g.Instance, twins: Mapping[int, int]) -> str:
        """The name of the operator without some of its ports, which show what others show."""
        if instance.index not in self.singles:
            text = source(self.verified, instance.use.operator)
            assert isinstance(text, s.Operator)  # noqa: S101 - externs have no rates
            made = _single(text, twins)
            known = again(self.verified.program.decls, made)
            if known is None:
                made = evolve(made, name=self.names.operator(text.name))
                self.made.append(made)
            self.singles[instance.index] = known or made.name
        return self.singles[instance.index]

    def queues(self, gone: set[int]) -> frozenset[str]:
        """The queues that still exist under their names."""
        kept = [self.use(i) for i in self.verified.graph.instances if i.index not in gone]
        made = (use for uses in self.uses.values() for use in uses)
        return frozenset(end for use in (*kept, *made) for end in (*use.ins, *use.outs))


def _single(operator: s.Operator, twins: Mapping[int, int]) -> s.Operator:
    """The operator without the ports that are twins: where it looked at their windows, it looks at the others'."""
    names = [port.name for port in operator.ports]
    same = {names[gone]: names[kept] for gone, kept in twins.items()}

    def shown(handler: s.Handler) -> s.Handler:
        if not isinstance(handler, s.RatedHandler):
            return handler
        windows = {rate.port: rate.name for rate in handler.rates}
        spelled = {windows[gone]: windows[kept] for gone, kept in same.items() if gone in windows}

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Name(name) if name in spelled:
                    return evolve(node, name=spelled[name])
                case _:
                    return rebuild(node, rewrite)

        rates = tuple(rate for rate in handler.rates if rate.port not in same)
        return evolve(handler, rates=rates, body=rebuild(handler.body, rewrite))

    return evolve(
        operator,
        ports=tuple(port for port in operator.ports if port.name not in same),
        handlers=tuple(map(shown, operator.handlers)),
    )
