"""The initialisation schedule: how often each part of a graph fires before its first steady state.

Afterwards every `prework` has run, and behind each part waits what its windows look ahead, so that steady states can follow
one another. The numbers are the least that do: a fixpoint over the queues, from what waits in loops.

Paper: Karczmarek, Thies, Amarasinghe, Phased Scheduling of Stream Programs (LCTES 2003).
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, assert_never

from attrs import define, field, frozen

from frontends.streamit import typed as ty

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1 << 24
"""Firings of a part before the first steady state; a loop that needs more has not enough in it."""


@frozen
class End:
    """One end of a queue: items at each firing, at the first one (`prework`), and how many a firing sees.

    `part`: whose end it is, by number.
    """

    part: int
    each: int
    peek: int = 0
    first: int | None = None
    first_peek: int = 0

    def items(self, firings: int) -> int:
        """Items in so many firings."""
        if firings == 0 or self.first is None:
            return self.each * firings
        return self.first + self.each * (firings - 1)

    def firings(self, items: int) -> int:
        """The fewest firings that give so many items; `MOST` where none do."""
        if items <= 0:
            return 0
        begun = 0 if self.first is None else 1
        rest = items - (self.first or 0)
        if rest <= 0:
            return begun
        return begun - (-rest // self.each) if self.each else MOST

    def needed(self, firings: int) -> int:
        """Items that must have come for so many firings, and for the windows behind them to be full."""
        begun = firings > 0 and self.first is not None
        return max(self.items(firings) + max(0, self.peek - self.each), self.first_peek if begun else 0)


@frozen
class Queue:
    """A queue, and how much waits in it from the beginning."""

    giver: End
    taker: End
    waiting: int = 0


def starts(graph: ty.Graph) -> Mapping[int, int]:
    """How often each part fires before the first steady state, by identity; of a loop it is its joiner's rounds."""
    return _Starts().found(graph)


@define
class _Starts:
    queues: list[Queue] = field(factory=list[Queue])
    least: list[int] = field(factory=list[int])
    named: dict[int, int] = field(factory=dict[int, int])  # identity of a part to its number

    def found(self, graph: ty.Graph) -> Mapping[int, int]:
        """The numbers of firings."""
        self.wire(graph)
        firings = list(self.least)
        into: dict[int, list[Queue]] = {}
        for queue in self.queues:
            into.setdefault(queue.taker.part, []).append(queue)
        waiting = deque(range(len(firings)))
        while waiting:
            part = waiting.popleft()
            for queue in into.get(part, ()):
                missing = queue.taker.needed(firings[part]) - queue.waiting
                wanted = queue.giver.firings(missing)
                if wanted > MOST:
                    continue  # the loop is starved: the run tells
                if wanted > firings[queue.giver.part]:
                    firings[queue.giver.part] = wanted
                    waiting.append(queue.giver.part)
        return {key: firings[part] for key, part in self.named.items()}

    def part(self, graph: ty.Graph | None, least: int = 0) -> int:
        """A new part."""
        self.least.append(least)
        if graph is not None:
            self.named[id(graph)] = len(self.least) - 1
        return len(self.least) - 1

    def between(self, giver: End | None, taker: End | None, waiting: int = 0) -> None:
        """A queue, where both ends are there."""
        if giver is not None and taker is not None:
            self.queues.append(Queue(giver, taker, waiting))

    def wire(self, graph: ty.Graph) -> tuple[End | None, End | None]:
        """The ends at which a part takes and gives."""
        match graph:
            case ty.Node(rates=rates, first=first):
                part = self.part(graph, 0 if first is None else 1)
                taker = End(
                    part,
                    rates.pop,
                    rates.peek,
                    None if first is None else first.pop,
                    0 if first is None else first.peek,
                )
                giver = End(part, rates.push or 0, first=None if first is None else first.push or 0)
                return (
                    None if graph.input == ty.VOID else taker,
                    None if graph.output == ty.VOID else giver,
                )
            case ty.Identity():
                part = self.part(graph)
                return End(part, 1, 1), End(part, 1)
            case ty.File(reads=reads):
                part = self.part(graph)
                return (None, End(part, 1)) if reads else (End(part, 1, 1), None)
            case ty.Pipeline(parts=inner):
                ends = [self.wire(each) for each in inner]
                for (_, giver), (taker, _) in pairwise(ends):
                    self.between(giver, taker)
                return ends[0][0], ends[-1][1]
            case ty.SplitJoin(split=split, parts=inner, join=join):
                ends = [self.wire(each) for each in inner]
                splitter, joiner = self.part(None), self.part(None)
                weights = (1,) * len(ends) if split is None else split
                for (taker, giver), into, out in zip(ends, weights, join, strict=True):
                    self.between(End(splitter, into), taker)
                    self.between(giver, End(joiner, out, out))
                taken = 1 if split is None else sum(split)
                return (
                    None if graph.input == ty.VOID else End(splitter, taken, taken),
                    None if graph.output == ty.VOID else End(joiner, sum(join)),
                )
            case ty.FeedbackLoop(join=join, body=body, loop=loop, split=split, waiting=waiting):
                joiner, splitter = self.part(graph), self.part(None)
                (into, made), (fed, back) = self.wire(body), self.wire(loop)
                out, round_ = split or (1, 1)
                taken = 1 if split is None else sum(split)
                self.between(End(joiner, sum(join)), into)
                self.between(made, End(splitter, taken, taken))
                self.between(End(splitter, round_), fed)
                self.between(back, End(joiner, join[1], join[1]), len(waiting))
                return (
                    None if graph.input == ty.VOID else End(joiner, join[0], join[0]),
                    None if graph.output == ty.VOID else End(splitter, out),
                )
            case _:
                assert_never(graph)
