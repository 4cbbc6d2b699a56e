"""The steady state of a graph: how often each part fires until every queue is as it was.

Paper: StreamIt's balance equations (synchronous data flow); River il.md P9.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.paths import parts, paths
from river.classes import define, field, frozen
from river.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SHOWN = 8
"""Branches of a splitjoin for which a message still writes the weights out."""


class NotFixed(Exception):  # noqa: N818 - no error: some rate differs from firing to firing
    """There is no steady state, because a push rate is not fixed."""


@frozen
class Flow:
    """Items into and out of a part in one of its own steady states."""

    taken: Fraction
    given: Fraction


def firings(graph: ty.Graph, report: Report) -> dict[int, int]:
    """How often each part fires in a steady state of the whole, by identity; empty when no steady state is known.

    Of a feedback loop it is how often its joiner goes round.

    Raises: Failed, when it is reported (code streamit-unbalanced).
    """
    balance = _Balance(graph, report)
    try:
        balance.flow(graph)
    except NotFixed:
        return {}
    return balance.firings(graph)


def block(graph: ty.Graph) -> tuple[int, int]:
    """How many items a part takes and gives in the smallest steady state of its own; all of its rates are fixed.

    Raises: Failed, when it is reported (code streamit-unbalanced).
    """
    balance = _Balance(graph, Report())
    flow = balance.flow(graph)
    times = balance.firings(graph)[id(graph)]
    return int(flow.taken * times), int(flow.given * times)


@define
class _Balance:
    graph: ty.Graph
    report: Report
    shares: dict[int, Fraction] = field(
        factory=dict[int, Fraction]
    )  # firings in one steady state of what is around
    ends: dict[int, Fraction] = field(
        factory=dict[int, Fraction]
    )  # turns of the joiner of a splitjoin, or the splitter of a loop, while the part goes round once

    def firings(self, graph: ty.Graph) -> dict[int, int]:
        """Shares multiplied along the graph, made whole."""
        found: dict[int, Fraction] = {}
        stack: list[tuple[ty.Graph, Fraction]] = [(graph, Fraction(1))]
        while stack:
            part, times = stack.pop()
            own = times * self.shares.get(id(part), Fraction(1))
            found[id(part)] = own
            stack += [(inner, own) for inner in parts(part)]
        ends = [own * self.ends[key] for key, own in found.items() if key in self.ends]
        whole = lcm(
            *(share.denominator for share in (*found.values(), *ends))
        )  # the least: the graph itself goes round once
        return {key: int(share * whole) for key, share in found.items()}

    def flow(self, graph: ty.Graph) -> Flow:
        """What a part takes and gives."""
        match graph:
            case ty.Node(rates=rates, first=first):
                if rates.push is None or rates.asks or (first is not None and first.asks):
                    raise NotFixed
                return Flow(Fraction(rates.pop), Fraction(rates.push))
            case ty.Identity():
                return Flow(Fraction(1), Fraction(1))
            case ty.File(_, reads):
                return Flow(Fraction(not reads), Fraction(reads))
            case ty.Pipeline(_, _, _, inner):
                return self.pipeline(graph, inner)
            case ty.SplitJoin():
                return self.split_join(graph)
            case ty.FeedbackLoop():
                return self.feedback(graph)
            case _:
                assert_never(graph)

    def share(self, part: ty.Graph, times: Fraction) -> None:
        """Notes how often a part goes round."""
        self.shares[id(part)] = times

    def unbalanced(
        self, graph: ty.Graph, message: str, *between: ty.Graph, help_line: str | None = None
    ) -> Exception:
        """The error that items would pile up or run out; `between`: the parts between which they would."""
        failed = self.report.error("streamit-unbalanced", message, graph.span, help_line)
        names = paths(self.graph)
        self.report.note(" and ".join(f"`{names[id(part)]}`" for part in between or (graph,)))
        return failed

    def pipeline(self, graph: ty.Pipeline, inner: Iterable[ty.Graph]) -> Flow:
        """Each part takes what the one before it gives."""
        flows = [self.flow(part) for part in inner]
        times = Fraction(1)
        self.share(graph.parts[0], times)
        for i, (before, after) in enumerate(itertools.pairwise(flows)):
            if before.given == 0 or after.taken == 0:
                if before.given != after.taken:
                    first, second = (
                        ("nothing", f"{after.taken}") if before.given == 0 else (f"{before.given}", "none")
                    )
                    message = f"part {i + 1} of this pipeline gives {first}, part {i + 2} takes {second}"
                    raise self.unbalanced(graph, message, graph.parts[i], graph.parts[i + 1])
            else:
                times = times * before.given / after.taken
            self.share(graph.parts[i + 1], times)
        return Flow(flows[0].taken, times * flows[-1].given)

    def split_join(self, graph: ty.SplitJoin) -> Flow:
        """Each branch takes its part of the splitter's turn and gives its part of the joiner's."""
        flows = [self.flow(part) for part in graph.parts]
        weights = (
            graph.split if graph.split is not None else tuple(int(p.input != ty.VOID) for p in graph.parts)
        )
        times: list[Fraction | None] = [
            Fraction(w) / f.taken if f.taken else None for w, f in zip(weights, flows, strict=True)
        ]
        turns: Fraction | None = None
        first = 0  # the branch that says how often the joiner turns
        for i, (own, flow, weight) in enumerate(zip(times, flows, graph.join, strict=True)):
            if own is None:
                continue
            if (own * flow.given == 0) != (weight == 0):
                message = f"the joiner takes {weight} from branch {i + 1}, which gives {own * flow.given}"
                raise self.unbalanced(graph, message, graph.parts[i])
            if weight:
                found = own * flow.given / weight
                if turns is not None and turns != found:
                    message = (
                        f"branch {i + 1} gives {own * flow.given} where the joiner takes {turns * weight}"
                    )
                    given = [0 if t is None else t * f.given for t, f in zip(times, flows, strict=True)]
                    raise self.unbalanced(
                        graph, message, graph.parts[first], graph.parts[i], help_line=_joined(given)
                    )
                first = i if turns is None else first
                turns = found
        turns = Fraction(1) if turns is None else turns
        if sum(graph.join):
            self.ends[id(graph)] = turns
        for part, own, flow, weight in zip(graph.parts, times, flows, graph.join, strict=True):
            if own is not None:
                self.share(part, own)
            elif flow.given:
                self.share(part, turns * weight / flow.given)
            else:
                self.share(part, Fraction(1))
        taken = sum(weights) if graph.split is not None else int(any(weights))
        return Flow(Fraction(taken), turns * sum(graph.join))

    def feedback(self, graph: ty.FeedbackLoop) -> Flow:
        """What goes round once, with one turn of the joiner."""
        body, loop = self.flow(graph.body), self.flow(graph.loop)
        joined = Fraction(sum(graph.join))
        if not (body.taken and body.given and loop.taken and loop.given):
            raise self.unbalanced(graph, "body and loop of a feedback loop must pass items on")
        times = joined / body.taken
        given = times * body.given
        out, back = (1, 1) if graph.split is None else graph.split
        turns = given if graph.split is None else given / (out + back)
        self.ends[id(graph)] = turns
        around = turns * back / loop.taken
        if around * loop.given != graph.join[1]:
            message = (
                f"the joiner takes {graph.join[1]} from the loop, which gives {around * loop.given} meanwhile"
            )
            raise self.unbalanced(graph, message)
        self.share(graph.body, times)
        self.share(graph.loop, around)
        return Flow(Fraction(graph.join[0]), turns * out if graph.output != ty.VOID else Fraction(0))


def _joined(given: Sequence[Fraction | int]) -> str | None:
    """The joiner that takes what the branches give; None where a branch gives what the splitter does not say, or too many."""
    if len(given) > _SHOWN or not all(given):
        return None
    whole = lcm(*(share.denominator for share in given))
    weights = [int(share * whole) for share in given]
    least = gcd(*weights)
    return f"as many: `join roundrobin({', '.join(str(weight // least) for weight in weights)});`"
