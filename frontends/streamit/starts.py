"""The initialisation schedule: how often each part of a graph fires before its first steady state.

Afterwards every `prework` has run, and behind each part waits what its windows look ahead, so that steady states can follow
one another. The numbers are the least that do: a fixpoint over the queues, from what waits in loops. Then one steady state is
played through, which tells the loops that stop.

Paper: Karczmarek, Thies, Amarasinghe, Phased Scheduling of Stream Programs (LCTES 2003).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.paths import paths
from river.classes import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from river.report import Report

MOST = 1 << 24
"""Firings of a part before the first steady state; what needs more never gets there."""

LONGEST = 100_000
"""Steps after which playing a steady state through gives up; many firings in a row are one step."""


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

    def ahead(self, items: int) -> int:
        """The fewest firings before the first steady state that so many items, and later ones, ask for."""
        return self.firings(items)

    def able(self, items: int, fired: int) -> int:
        """How many firings in a row so many items allow, after so many."""
        if fired == 0 and self.first is not None:
            return int(items >= self.first_peek)
        if items < self.peek:
            return 0
        return 1 + (items - self.peek) // self.each if self.each else MOST

    def needed(self, firings: int) -> int:
        """Items that must have come for so many firings, and for the windows behind them to be full."""
        begun = firings > 0 and self.first is not None
        return max(self.items(firings) + max(0, self.peek - self.each), self.first_peek if begun else 0)


@frozen
class MessageLists:
    """The end at which a filter gives lists of messages, to each firing another number; the last `period` go on for ever."""

    part: int
    sums: tuple[int, ...]  # after 0, 1, 2, ... firings
    period: int
    each: int = 0  # no number says how many there are at each firing

    @classmethod
    def of(cls, part: int, channel: ty.Channel) -> MessageLists:
        """The end of a channel."""
        return cls(part, (0, *accumulate(channel.gives)), channel.period)

    def items(self, firings: int) -> int:
        """Lists in so many firings."""
        whole = len(self.sums) - 1
        if firings <= whole:
            return self.sums[firings]
        rounds, rest = divmod(firings - whole, self.period)
        begin = whole - self.period
        return (
            self.sums[whole]
            + rounds * (self.sums[whole] - self.sums[begin])
            + self.sums[begin + rest]
            - self.sums[begin]
        )

    def firings(self, items: int) -> int:
        """The fewest firings that give so many lists."""
        return self._least(items, self.items)

    def ahead(self, items: int) -> int:
        """The fewest firings before the first steady state, so that as many lists are ahead in all later ones."""
        whole = len(self.sums) - 1
        each = self.sums[whole] - self.sums[whole - self.period]

        def least(firings: int) -> int:
            return min(
                self.items(firings + n * self.period) - n * each for n in range(whole // self.period + 2)
            )

        return self._least(items, least)

    def _least(self, items: int, given: Callable[[int], int]) -> int:
        most = 1
        while given(most) < items:
            most *= 2
        return bisect_left(range(most + 1), items, key=given)


@frozen
class FilledQueue:
    """A queue, and how much waits in it from the beginning."""

    giver: End | MessageLists
    taker: End
    waiting: int = 0


def starts(
    graph: ty.Graph, firings: Mapping[int, int], channels: Iterable[ty.Channel], report: Report
) -> Mapping[int, int]:
    """How often each part fires before the first steady state, by identity; of a loop it is its joiner's rounds.

    Warns of loops that stop (code streamit-starved). `firings`: those of a steady state.
    """
    work = _Starts()
    found = work.found(graph, channels)
    for loop, wanted, there in work.stopped(firings):
        items = "1 item" if wanted == 1 else f"{wanted} items"
        message = f"this loop stops: its joiner waits for {items} from the loop, and {there or 'none'} will be there"
        several = "" if wanted - there == 1 else f", {wanted - there} times"
        report.warn("streamit-starved", message, loop.span, f"put something in: `enqueue 0;`{several}")
        report.note(f"in `{paths(graph)[id(loop)]}`")
    return found


@define
class _Starts:
    queues: list[FilledQueue] = field(factory=list[FilledQueue])
    least: list[int] = field(factory=list[int])
    named: dict[int, int] = field(factory=dict[int, int])  # identity of a part to its number
    loops: list[tuple[ty.FeedbackLoop, FilledQueue]] = field(
        factory=list["tuple[ty.FeedbackLoop, FilledQueue]"]
    )
    fired: list[int] = field(factory=list[int])

    def found(self, graph: ty.Graph, channels: Iterable[ty.Channel]) -> Mapping[int, int]:
        """The numbers of firings."""
        self.wire(graph)
        for channel in channels:
            giver, taker = (self.named[id(node)] for node in (channel.sender, channel.receiver))
            lists = MessageLists.of(giver, channel)
            self.between(lists, End(taker, 1, 1), channel.waiting)
        firings = list(self.least)
        into: dict[int, list[FilledQueue]] = {}
        for queue in self.queues:
            into.setdefault(queue.taker.part, []).append(queue)
        # From the last part on: what a part needs is known when its turn comes, but for loops. From the first one, each of a
        # chain of filters that look ahead would be looked at again for each one behind it.
        waiting = deque(reversed(range(len(firings))))
        ahead = sum(q.taker.needed(0) + q.taker.first_peek + q.waiting for q in self.queues)
        left = [4 * (len(firings) + ahead)] * len(
            firings
        )  # each round of a loop that is not starved brings an item
        while waiting:
            part = waiting.popleft()
            for queue in into.get(part, ()):
                missing = queue.taker.needed(firings[part]) - queue.waiting
                wanted = queue.giver.ahead(missing)
                giver = queue.giver.part
                if firings[giver] < wanted < MOST and left[giver]:
                    firings[giver] = wanted
                    left[giver] -= 1
                    waiting.append(giver)
        self.fired = firings
        return {key: firings[part] for key, part in self.named.items()}

    def stopped(self, firings: Mapping[int, int]) -> list[tuple[ty.FeedbackLoop, int, int]]:
        """The loops that cannot go round so often, with what the joiner waits for and what is there."""
        if not self.loops:
            return []
        wanted = self.wanted(firings)
        fired, there = [0] * len(wanted), {id(queue): queue.waiting for queue in self.queues}
        into: dict[int, list[FilledQueue]] = {}
        out: dict[int, list[FilledQueue]] = {}
        for queue in self.queues:
            into.setdefault(queue.taker.part, []).append(queue)
            out.setdefault(queue.giver.part, []).append(queue)
        waiting = deque(range(len(wanted)))
        for _ in range(LONGEST):
            if not waiting:
                break
            part = waiting.popleft()
            count = wanted[part] - fired[part]
            for queue in into.get(part, ()):
                count = min(count, queue.taker.able(there[id(queue)], fired[part]))
            if count <= 0:
                continue
            for queue in into.get(part, ()):
                there[id(queue)] -= queue.taker.items(fired[part] + count) - queue.taker.items(fired[part])
            for queue in out.get(part, ()):
                there[id(queue)] += queue.giver.items(fired[part] + count) - queue.giver.items(fired[part])
                waiting.append(queue.taker.part)
            fired[part] += count
            waiting.append(part)
        else:
            return []
        return [
            (loop, back.taker.each, there[id(back)])
            for loop, back in self.loops
            if fired[back.taker.part] < wanted[back.taker.part] and there[id(back)] < back.taker.each
        ]

    def wanted(self, firings: Mapping[int, int]) -> list[int]:
        """How often each part has fired after a steady state; of splitters and joiners, by what is around them."""
        each = [0] * len(self.fired)
        for key, part in self.named.items():
            each[part] = firings[key]
        unknown = True
        while unknown:
            unknown = False
            for queue in self.queues:
                for one, other in ((queue.giver, queue.taker), (queue.taker, queue.giver)):
                    if each[one.part] and other.each and one.each and not each[other.part]:
                        each[other.part] = each[one.part] * one.each // other.each
                        unknown = True
        return [begun + more for begun, more in zip(self.fired, each, strict=True)]

    def part(self, graph: ty.Graph | None, least: int = 0) -> int:
        """A new part."""
        self.least.append(least)
        if graph is not None:
            self.named[id(graph)] = len(self.least) - 1
        return len(self.least) - 1

    def between(self, giver: End | MessageLists | None, taker: End | None, waiting: int = 0) -> None:
        """A queue, where both ends are there."""
        if giver is not None and taker is not None:
            self.queues.append(FilledQueue(giver, taker, waiting))

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
                splitter = self.part(None)
                ends = [self.wire(each) for each in inner]
                joiner = self.part(None)
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
                self.loops.append((graph, self.queues[-1]))
                return (
                    None if graph.input == ty.VOID else End(joiner, join[0], join[0]),
                    None if graph.output == ty.VOID else End(splitter, out),
                )
            case _:
                assert_never(graph)
