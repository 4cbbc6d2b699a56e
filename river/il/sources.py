"""How inputs are read on several workers at once, as regions before them say: a source is the first operator of its region.

Each worker reads blocks of bytes of its own, cut where a record ends. What a region says of the operators in it says so of the
source: `combine`, that a worker does with its block all that the region does, and that what is gathered is combined at the end;
`seqno`, that blocks have serial numbers, by which their rows are put in order before any operator gets them.

Paper: River §4.4, §6 (Sawzall: each worker reads its part); Auto-parallelizing §3 (sources inside of regions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected
from river.il import annotations as a
from river.il.annotations import COMBINE, annotated, read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from river.il.graph import Graph, Instance, Queue
    from river.il.program import Input
    from river.source import Span

BLOCKS: Final = "seqno"
"""What `@Region` says of an input whose blocks several workers read, and whose rows are in the order of these."""

WAYS: Final = (BLOCKS, COMBINE)


@frozen
class ReadDirectives:
    """What is said of how an input is read.

    `combined`: the region whose operators run on its blocks. `blocks`: the one in which it is alone. `parallel`: how many workers
    read it.
    """

    combined: a.Region | None = None
    blocks: a.Region | None = None
    parallel: a.Parallel | None = None

    def readers(self, workers: int) -> int:
        """How many of so many workers may read blocks of it, whose rows are in order."""
        if self.blocks is None:
            return 1
        stated = None if self.parallel is None else self.parallel.degree
        return workers if stated is None else min(workers, stated)


def source(graph: Graph, name: str) -> ReadDirectives:
    """How the input `name` is read."""
    known = [known for known, _ in _said(graph.program.input(name))]
    regions = [each for each in known if isinstance(each, a.Region)]
    return ReadDirectives(
        next((each for each in regions if each.what == COMBINE), None),
        next((each for each in regions if each.what == BLOCKS), None),
        next((each for each in known if isinstance(each, a.Parallel)), None),
    )


def _said(decl: Input) -> list[tuple[a.Known | None, Span | None]]:
    """What annotations say of how an input is read, and where. Raises: Rejected with il-annotation-argument."""
    return [(read(each), each.span) for each in decl.annotations if each.name in ("Region", "Parallel")]


def check_sources(
    inputs: Sequence[Input], queues: Mapping[str, Queue], instances: Sequence[Instance]
) -> Iterator[Diagnostic]:
    """The mistakes in what is said of inputs: blocks are read in a region with who takes them, or in one without operators.

    And of operators that work on blocks: an input is in their region. Codes: il-region, il-annotation-argument.
    """
    members: dict[str, tuple[Instance, a.Region]] = {}
    for instance in instances:
        for region in annotated(instance.use).regions:
            members.setdefault(region.id, (instance, region))
    read_so: set[str] = set()
    for decl in inputs:
        end = queues[decl.name].consumer
        first = () if end is None else annotated(instances[end.instance].use).regions
        try:
            said = _said(decl)
        except Rejected as rejected:
            yield from rejected.diagnostics
            continue
        for region, span in said:
            if isinstance(region, a.Region):
                read_so.add(region.id)
                yield from _mistakes(decl.name, region, first, members.keys(), span)
    for id_, (instance, region) in members.items():
        if region.what == COMBINE and id_ not in read_so:
            message = f"`{instance.use.operator}` is in the region `{id_}` of blocks, and no input is"
            span = next((each.span for each in instance.use.annotations if each.name == "Region"), None)
            help_ = f"before the input whose blocks it gets stands `@Region({id_}, {COMBINE})`"
            yield Diagnostic("il-region", message, span, help=help_)


def _mistakes(
    name: str, region: a.Region, first: Collection[a.Region], members: Collection[str], span: Span | None
) -> Iterator[Diagnostic]:
    """The mistakes in a region of an input. `first`: those of who takes its items; `members`: those that operators are in."""
    if region.what not in WAYS or region.keys:
        what = " by keys" if region.keys and region.what in WAYS else ""
        message = f"`{region.what}`{what} is no way to read the input `{name}`"
        help_ = f"it is one of {', '.join(WAYS)}, without keys"
    elif region.what == COMBINE and region not in first:
        message = (
            f"what takes the items of `{name}` is not in the region `{region.id}`, which gets its blocks"
        )
        help_ = f"it needs `@Region({region.id}, {COMBINE})`, too"
    elif region.what == BLOCKS and region.id in members:
        message = f"the region `{region.id}` of the input `{name}` has operators"
        help_ = f"those that get blocks say `{COMBINE}`; else a source is alone in its region"
    else:
        return
    yield Diagnostic("il-region", message, span, help=help_)


__all__ = ["BLOCKS", "ReadDirectives", "check_sources", "source"]
