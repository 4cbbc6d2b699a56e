"""When messages are handled: for each sender and receiver, which firings of one go with which firings of the other.

SDEP(b) of two filters, one downstream of the other, is the least number of firings of the one upstream after which the other
has had items for b firings. A message of the sender's firing n with latency k is handled as if it had been sent with none in
firing n + k: by a receiver downstream before its first firing that depends on that firing, by a receiver upstream behind
the last firing on which that firing depends. So one list of messages belongs to each firing of the receiver, and it is known
how many lists are complete after each firing of the sender. Splitters and joiners pass single items on.

Only what lies between the two counts: a filter elsewhere may take and give as many items as it likes. Where some do, there is no
steady state of the whole, but one of each part of the graph in which all rates are fixed.

Paper: Thies, Karczmarek, Sermulins, Rabbah, Amarasinghe, Teleport Messaging for Distributed Stream Programs (PPoPP 2005, with
the timing of messages upstream of its revision of 2006).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.paths import parts, paths
from frontends.streamit.rates import Intervals
from frontends.streamit.starts import End, MessageLists
from frontends.streamit.trees import Usage
from river.classes import define, field, frozen
from river.il.trees import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from river.lang import types as t
    from river.report import Report
    from river.source import Span

LONGEST = 1 << 16
"""Firings after which the way of two filters must repeat itself."""

MOST = 1 << 20
"""Firings that a message may wait."""


def messages(
    graph: ty.Graph,
    firings: Mapping[int, int],
    concrete: Callable[[ty.Type, dict[str, object]], t.Type],
    report: Report,
) -> tuple[tuple[ty.Channel, ...], Mapping[str, ty.Message]]:
    """The ways of all messages, and what filters are told. `firings`: those of a steady state.

    Raises: Failed, when it is reported (codes streamit-portal, streamit-latency, streamit-size).
    """
    nodes = _filters(graph)
    sorts = _sorts(nodes)
    if not sorts:
        return (), {}
    work = _Messages(graph, firings, concrete, report, tuple(nodes), sorts)
    found = work.channels()
    return found, work.told(found)


def handled(node: ty.Node, sorts: Mapping[str, Iterable[str]]) -> tuple[ty.Block, ...]:
    """What runs with the stream in a filter: its work, and the handlers of what it may be told."""
    filter_ = node.filter
    names = sorts.get(filter_.name, ()) if node.portals else ()
    own = [filter_.work.body, *(h.body for h in filter_.helpers if h.name in names)]
    return tuple(own) if filter_.prework is None else (*own, filter_.prework.body)


def _filters(graph: ty.Graph) -> list[ty.Node]:
    found: list[ty.Node] = []
    stack = [graph]
    while stack:
        part = stack.pop()
        stack += reversed(parts(part))
        if isinstance(part, ty.Node):
            found.append(part)
    return found


def _sorts(nodes: Iterable[ty.Node]) -> dict[str, tuple[str, ...]]:
    """The handlers that messages of the program name, by filter."""
    found: dict[str, dict[str, None]] = {}
    for filter_ in {id(node.filter): node.filter for node in nodes}.values():
        for send in walk(filter_):
            if isinstance(send, ty.Send) and isinstance(send.portal.type, ty.Portal):
                found.setdefault(send.portal.type.receiver, {})[send.handler] = None
    return {name: tuple(sorted(handlers)) for name, handlers in found.items()}


@define
class _Messages:
    graph: ty.Graph
    firings: Mapping[int, int]
    concrete: Callable[[ty.Type, dict[str, object]], t.Type]
    report: Report
    nodes: tuple[ty.Node, ...]
    sorts: Mapping[str, tuple[str, ...]]
    network: _Counts = field(init=False)
    ways: dict[tuple[int, int], _Dependence] = field(factory=dict[tuple[int, int], "_Dependence"])

    def __attrs_post_init__(self) -> None:
        self.network = _Counts()
        self.network.wire(self.graph)
        if not self.firings:
            self.firings = self.network.firings()

    def channels(self) -> tuple[ty.Channel, ...]:
        """A channel for each sender, portal and receiver, in the order of the graph."""
        found: list[ty.Channel] = []
        for sender in self.nodes:
            usage = Usage.of(sender.filter)
            sends = usage.sends(handled(sender, self.sorts))
            for portal in dict.fromkeys(send.portal.name for send in sends):
                number = sender.values[portal]
                own = [send for send in sends if send.portal.name == portal]
                heard = [node for node in self.nodes if number in node.portals]
                if not heard:
                    self.report.warn("streamit-portal", "nobody listens to this portal", own[0].span)
                found += (self.channel(sender, portal, receiver, own) for receiver in heard)
        if found:
            self.play(found)
        return tuple(found)

    def channel(
        self, sender: ty.Node, portal: str, receiver: ty.Node, sends: Sequence[ty.Send]
    ) -> ty.Channel:
        """The messages of one filter to another."""
        span = sends[0].span
        names = paths(self.graph)
        if sender is receiver:
            message = f"`{names[id(sender)]}` would send messages to itself"
            raise self.report.error("streamit-latency", message, span, "call the handler")
        who = f"`{names[id(sender)]}` and `{names[id(receiver)]}`"
        down = self.network.upstream(sender, receiver)
        if down == self.network.upstream(receiver, sender):
            why = "feed one another" if down else "stand side by side"
            message = f"{who} {why}: no firing of one says when the other has come as far"
            raise self.report.error("streamit-latency", message, span)
        self.fixed(sender, receiver, span, down=down)
        latencies = {send.number: self.latency(send, sender, down=down) for send in sends}
        least = min(latencies.values())
        way = self.way(sender, receiver) if down else self.way(receiver, sender)
        if way is None:
            raise self.report.error("streamit-latency", f"{who} do not come to a steady state", span)
        known = way.of if not down else way.count

        def complete(firing: int) -> int:
            """How many lists are, after so many firings of the sender."""
            return known(firing + least + (not down))

        def late(number: int, firing: int) -> int:
            """How many lists later a message of a firing is handled."""
            shift = firing - down
            return known(shift + latencies[number]) - known(shift + least)

        period = self.firings[id(sender)]
        begin = max(1, way.settled(down=down) - least + 2)
        if begin + period > LONGEST or complete(0) > MOST:
            raise self.report.error("streamit-latency", f"the messages between {who} wait too long", span)
        rows = {number: tuple(late(number, n) for n in range(1, begin + period)) for number in latencies}
        counts = [complete(n) for n in range(begin + period)]
        gives = tuple(after - before for before, after in pairwise(counts))
        while begin > 1 and all(row[begin - 2] == row[begin - 2 + period] for row in (gives, *rows.values())):
            begin -= 1
        whole = begin + period - 1
        rows = {number: row[:whole] for number, row in rows.items() if any(row)}
        return ty.Channel(sender, portal, receiver, counts[0], gives[:whole], period, rows, span=span)

    def fixed(self, sender: ty.Node, receiver: ty.Node, span: Span | None, *, down: bool) -> None:
        """Refuses filters between which some rate differs from firing to firing, and receivers that ask for their items."""
        upper, lower = (sender, receiver) if down else (receiver, sender)
        numbers = self.network.numbers
        names = paths(self.graph)
        way = self.network.between(numbers[id(upper)], numbers[id(lower)])
        open_ = next((each for each in self.network.open if {each.giver, each.taker} <= way), None)
        if open_ is not None:
            node = next(node for node in self.nodes if numbers[id(node)] == open_.cause)
            gives = "gives" if open_.cause == open_.giver else "takes"
            ends = f"`{names[id(upper)]}` and `{names[id(lower)]}`"
            message = f"between {ends} all filters must take and give fixed numbers of items"
            help_line = f"`{names[id(node)]}` {gives} another number at each firing, or does not say how many"
            raise self.report.error("streamit-latency", message, span, help_line)
        if receiver.rates.asks or (receiver.first is not None and receiver.first.asks):
            message = (
                f"`{names[id(receiver)]}` takes as many items as it asks for: such a filter is told nothing"
            )
            raise self.report.error(
                "streamit-latency", message, span, "put a filter with a fixed `pop` behind it"
            )

    def latency(self, send: ty.Send, sender: ty.Node, *, down: bool) -> int:
        """The least latency of a message that can be."""
        if send.least is None or send.most is None:
            return 0
        seen = Intervals(sender.values, {})
        least, most = seen.exact(send.least), seen.exact(send.most)
        if not isinstance(least, int) or not isinstance(most, int):
            raise self.report.error("streamit-latency", "this latency cannot be computed", send.span)
        if least > most:
            message = f"the least latency is {least}, the greatest {most}"
            raise self.report.error("streamit-latency", message, send.span)
        if not down and most < 0:
            message = "a message upstream cannot be handled before the items that were there when it was sent"
            raise self.report.error("streamit-latency", message, send.span, "give it a latency of 0 or more")
        return least if down else max(least, 0)

    def way(self, upper: ty.Node, lower: ty.Node) -> _Dependence | None:
        """SDEP of two filters."""
        key = id(upper), id(lower)
        if not self.firings.keys() >= set(key):
            return None
        if key not in self.ways:
            period, shift = self.firings[id(lower)], self.firings[id(upper)]
            found = self.network.dependence(upper, lower, period, shift)
            if found is None:
                return None
            self.ways[key] = found
        return self.ways[key]

    def play(self, found: Sequence[ty.Channel]) -> None:
        """Refuses messages for which the filters that would send them wait."""
        rounds = 2 + max(
            max(len(each.gives) // each.period, each.waiting // self.firings[id(each.receiver)])
            for each in found
        )
        if self.network.short(self.firings, rounds):
            return  # it stops without any message: that is told where it does
        self.network.tell(found)
        short = self.network.short(self.firings, rounds)
        for channel in found:
            if self.network.numbers[id(channel.receiver)] not in short:
                continue
            names = paths(self.graph)
            sender, receiver = (names[id(node)] for node in (channel.sender, channel.receiver))
            message = f"`{receiver}` waits for what `{sender}` may tell it, and that waits for `{receiver}`"
            raise self.report.error("streamit-latency", message, channel.span, "a greater latency may do")

    def told(self, found: Sequence[ty.Channel]) -> Mapping[str, ty.Message]:
        """The types of all messages; those to filters of one name are the same."""
        made: dict[str, ty.Message] = {}
        for channel in found:
            receiver = channel.receiver
            functions = {helper.name: helper for helper in receiver.filter.helpers}
            types: dict[str, tuple[t.Type, ...]] = {}
            for name in self.sorts[receiver.filter.name]:
                params = functions[name].params
                types[name] = tuple(self.concrete(param.type, dict(receiver.values)) for param in params)
            known = made.setdefault(receiver.filter.name, ty.Message(types))
            if known.handlers != types:
                message = f"the arrays that messages bring to `{receiver.filter.name}` have several sizes"
                raise self.report.error("streamit-size", message, channel.span)
            self.fit(channel, known)
        return made

    def fit(self, channel: ty.Channel, message: ty.Message) -> None:
        """Refuses arrays of other sizes."""
        sender = channel.sender
        for send in Usage.of(sender.filter).sends(handled(sender, self.sorts)):
            if send.portal.name == channel.portal:
                for arg, wanted in zip(send.args, message.handlers[send.handler], strict=True):
                    if isinstance(arg.type, ty.Vector):
                        found = self.concrete(arg.type, dict(sender.values))
                        if found != wanted:
                            message_ = f"the array has another size than `{send.handler}` takes"
                            raise self.report.error("streamit-size", message_, arg.span)


@frozen
class _Dependence:
    """SDEP of a filter and one downstream, for the firings of the latter; the last `period` go on for ever, `shift` further."""

    table: tuple[int, ...]
    period: int
    shift: int

    def of(self, firing: int) -> int:
        """The least number of firings of the filter upstream for so many."""
        if firing <= 0:
            return 0
        beyond = firing - len(self.table)
        if beyond <= 0:
            return self.table[firing - 1]
        rounds, rest = divmod(beyond - 1, self.period)
        return self.table[len(self.table) - self.period + rest] + (rounds + 1) * self.shift

    def count(self, firings: int) -> int:
        """How many firings so many of the filter upstream allow."""
        if firings < 0:
            return 0
        last = self.table[-1]
        rounds = 0 if firings < last else (firings - last) // self.shift + 1
        return bisect_right(self.table, firings - rounds * self.shift) + rounds * self.period

    def settled(self, *, down: bool) -> int:
        """The firing of the sender from which on all goes on in turns."""
        return self.table[-1] if down else len(self.table) - self.period


# ---------------------------------------------------------------------------------------------- the graph, item by item


@frozen
class _FilterEnd:
    """A queue's end at a filter, which counts its firings."""

    end: End | MessageLists

    def needed(self, count: int) -> int:
        """Items that must have come for so many."""
        end = self.end
        if count == 0 or not isinstance(end, End):
            return 0
        if count == 1 and end.first is not None:
            return end.first_peek
        return max(end.items(count - 1) + end.peek, 0 if end.first is None else end.first_peek)

    def given(self, count: int) -> int:
        """Items that so many give."""
        return self.end.items(count)

    def giving(self, items: int) -> int:
        """The fewest that give so many items."""
        return self.end.firings(items)

    @property
    def turn(self) -> int:
        """After how many it does the same again."""
        return 1

    @property
    def share(self) -> Fraction:
        """Items at each, on the average."""
        return Fraction(self.end.each)


@frozen
class _TurnEnd:
    """A queue's end at a splitter or joiner, which counts all its items: in each turn these `weight` ones behind others."""

    turn: int
    before: int
    weight: int

    def needed(self, count: int) -> int:
        """Items of this queue among so many."""
        turns, rest = divmod(count, self.turn)
        return turns * self.weight + min(max(rest - self.before, 0), self.weight)

    given = needed

    def giving(self, items: int) -> int:
        """The fewest among which so many are of this queue."""
        if items <= 0:
            return 0
        turns, rest = divmod(items - 1, self.weight)
        return turns * self.turn + self.before + rest + 1

    @property
    def share(self) -> Fraction:
        """Items of this queue among all, on the average."""
        return Fraction(self.weight, self.turn)


_ITEM = _TurnEnd(1, 0, 1)


@frozen
class _Queue:
    giver: int
    gives: _FilterEnd | _TurnEnd
    taker: int
    takes: _FilterEnd | _TurnEnd
    waiting: int = 0


@frozen
class _OpenQueue:
    """A queue into which a filter gives, or from which it takes, another number of items at each firing: `cause`."""

    giver: int
    taker: int
    cause: int


_Port = tuple[int, "_FilterEnd | _TurnEnd | None"]
"""A part, and how it takes or gives; None where no number says how many items a firing does."""


@define
class _Counts:
    """A graph as counts: firings of filters, items of splitters and joiners, and the queues that tie them."""

    parts: int = 0
    numbers: dict[int, int] = field(factory=dict[int, int])  # identity of a filter to its number
    queues: list[_Queue] = field(factory=list[_Queue])
    open: list[_OpenQueue] = field(factory=list[_OpenQueue])

    def part(self) -> int:
        """A new part."""
        self.parts += 1
        return self.parts - 1

    def tie(self, giver: _Port | None, taker: _Port | None, waiting: int = 0) -> None:
        """A queue, where both ends are there."""
        if giver is None or taker is None:
            return
        (before, gives), (after, takes) = giver, taker
        if gives is None or takes is None:
            self.open.append(_OpenQueue(before, after, before if gives is None else after))
        else:
            self.queues.append(_Queue(before, gives, after, takes, waiting))

    def wire(self, graph: ty.Graph) -> tuple[_Port | None, _Port | None]:
        """The ends at which a part takes and gives."""
        match graph:
            case ty.Node(rates=rates, first=first):
                number = self.numbers[id(graph)] = self.part()
                begun = (None, 0) if first is None else (first.pop, first.peek)
                asks = rates.asks or (first is not None and first.asks)
                taker = None if asks else _FilterEnd(End(number, rates.pop, rates.peek, *begun))
                pushes = (rates.push, 0 if first is None else first.push)
                giver = None
                if pushes[0] is not None and pushes[1] is not None:
                    giver = _FilterEnd(End(number, pushes[0], first=None if first is None else pushes[1]))
                return (
                    None if graph.input == ty.VOID else (number, taker),
                    None if graph.output == ty.VOID else (number, giver),
                )
            case ty.Identity():
                number = self.part()
                return (number, _ITEM), (number, _ITEM)
            case ty.File(reads=reads):
                number = self.part()
                return (None, (number, _ITEM)) if reads else ((number, _ITEM), None)
            case ty.Pipeline(parts=inner):
                ends = [self.wire(each) for each in inner]
                for (_, giver), (taker, _) in pairwise(ends):
                    self.tie(giver, taker)
                return ends[0][0], ends[-1][1]
            case ty.SplitJoin(split=split, parts=inner, join=join):
                ends = [self.wire(each) for each in inner]
                into = [_ITEM] * len(ends) if split is None else _turns(split)
                splitter, joiner = self.part(), self.part()
                for (taker, giver), given, taken in zip(ends, into, _turns(join), strict=True):
                    if given.weight:
                        self.tie((splitter, given), taker)
                    if taken.weight:
                        self.tie(giver, (joiner, taken))
                return (
                    None if graph.input == ty.VOID else (splitter, _ITEM),
                    None if graph.output == ty.VOID else (joiner, _ITEM),
                )
            case ty.FeedbackLoop(join=join, body=body, loop=loop, split=split, waiting=waiting):
                joiner, splitter = self.part(), self.part()
                (into, made), (fed, back) = self.wire(body), self.wire(loop)
                outer, inner_ = _turns(join)
                out, round_ = (_ITEM, _ITEM) if split is None else _turns(split)
                self.tie((joiner, _ITEM), into)
                self.tie(made, (splitter, _ITEM))
                self.tie((splitter, round_), fed)
                self.tie(back, (joiner, inner_), len(waiting))
                return (
                    None if graph.input == ty.VOID else (joiner, outer),
                    None if graph.output == ty.VOID else (splitter, out),
                )
            case _:
                assert_never(graph)

    def tell(self, channels: Iterable[ty.Channel]) -> None:
        """Adds the lists of messages, of which each firing takes one."""
        for channel in channels:
            giver, taker = self.numbers[id(channel.sender)], self.numbers[id(channel.receiver)]
            lists = MessageLists.of(giver, channel)
            self.tie((giver, _FilterEnd(lists)), (taker, _FilterEnd(End(taker, 1, 1))), channel.waiting)

    def upstream(self, upper: ty.Node, lower: ty.Node) -> bool:
        """Whether items go from one filter to another."""
        return bool(self.between(self.numbers[id(upper)], self.numbers[id(lower)]))

    def between(self, upper: int, lower: int) -> set[int]:
        """The parts on all ways from one part to another, both included; none if there is no way."""
        pairs = [(queue.giver, queue.taker) for queue in (*self.queues, *self.open)]
        return _reached(upper, pairs) & _reached(lower, [(after, before) for before, after in pairs])

    def firings(self) -> dict[int, int]:
        """How often each filter fires while all parts that are tied to it by fixed rates come to be as they were, by identity.

        Where there is no such number, because items would pile up, that filter is left out.
        """
        # Parts tied to each, with how many items or firings they count for each that it counts.
        tied: dict[int, list[tuple[int, Fraction]]] = {}
        turns = [1] * self.parts  # a splitter, which counts items, goes round in whole turns
        for queue in self.queues:
            given, taken = queue.gives.share, queue.takes.share
            turns[queue.giver] = lcm(turns[queue.giver], queue.gives.turn)
            turns[queue.taker] = lcm(turns[queue.taker], queue.takes.turn)
            if given and taken:
                tied.setdefault(queue.giver, []).append((queue.taker, given / taken))
                tied.setdefault(queue.taker, []).append((queue.giver, taken / given))
        found: dict[int, int] = {}
        seen: set[int] = set()
        for number in self.numbers.values():
            if number in seen:
                continue
            shares = {number: Fraction(1)}
            stack = [number]
            while stack:
                at = stack.pop()
                for other, share in tied.get(at, ()):
                    if other not in shares:
                        shares[other] = shares[at] * share
                        stack.append(other)
            seen |= shares.keys()
            if all(shares[other] == shares[at] * share for at in shares for other, share in tied.get(at, ())):
                whole = lcm(*((share / turns[at]).denominator for at, share in shares.items()))
                found.update((at, int(share * whole)) for at, share in shares.items())
        return {key: found[number] for key, number in self.numbers.items() if number in found}

    # -- what is needed

    def dependence(self, upper: ty.Node, lower: ty.Node, period: int, shift: int) -> _Dependence | None:
        """SDEP, firing by firing until all parts that matter go on in turns; None if that is never."""
        goal, start = self.numbers[id(upper)], self.numbers[id(lower)]
        way = self.between(goal, start)
        queues = [queue for queue in self.queues if {queue.giver, queue.taker} <= way]
        into: dict[int, list[_Queue]] = {}
        for queue in queues:
            into.setdefault(queue.taker, []).append(queue)
        counts = [0] * self.parts
        table: list[int] = []
        ends: list[list[int]] = []
        while len(table) < LONGEST:
            for _ in range(period):
                counts[start] = len(table) + 1
                if not self.demand(counts, start, into):
                    return None
                table.append(counts[goal])
            ends.append(list(counts))
            if len(ends) > 2 and table[-1] - table[-1 - period] == shift and _repeats(queues, *ends[-3:]):
                return _Dependence(tuple(table), period, shift)
        return None

    def demand(self, counts: list[int], start: int, into: Mapping[int, Sequence[_Queue]]) -> bool:
        """Raises the counts of all parts to what those of others need; whether that ends."""
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            for queue in into.get(at, ()):
                wanted = queue.gives.giving(queue.takes.needed(counts[at]) - queue.waiting)
                if wanted > counts[queue.giver]:
                    if wanted >= MOST:
                        return False
                    counts[queue.giver] = wanted
                    waiting.append(queue.giver)
        return True

    # -- what can be

    def short(self, firings: Mapping[int, int], rounds: int) -> set[int]:
        """The filters that cannot fire as often as in so many steady states, whatever comes first."""
        filters = {number: firings[key] for key, number in self.numbers.items() if key in firings}
        demand = [0] * self.parts
        into: dict[int, list[_Queue]] = {}
        out: dict[int, list[_Queue]] = {}
        for queue in self.queues:
            into.setdefault(queue.taker, []).append(queue)
            out.setdefault(queue.giver, []).append(queue)
        for number, count in filters.items():
            demand[number] = max(demand[number], rounds * count + 1)
            if not self.demand(demand, number, into):
                return set(filters)
        counts = [0] * self.parts
        waiting = deque(range(self.parts))
        while waiting:
            at = waiting.popleft()
            able = demand[at]
            for queue in into.get(at, ()):
                there = queue.gives.given(counts[queue.giver]) + queue.waiting
                able = min(able, _able(queue.takes, there, counts[at], able))
            if able > counts[at]:
                counts[at] = able
                waiting.extend(queue.taker for queue in out.get(at, ()))
        return {number for number in filters if counts[number] < demand[number]}


def _repeats(
    queues: Iterable[_Queue], first: Sequence[int], second: Sequence[int], third: Sequence[int]
) -> bool:
    """Whether all parts that count at all do the same in a period as in the one before, in whole turns, and so for ever."""
    steps = [after - before for before, after in zip(second, third, strict=True)]
    if steps != [after - before for before, after in zip(first, second, strict=True)]:
        return False
    moving = [i for i, count in enumerate(third) if count]
    if any(first[i] < 2 for i in moving):
        return False
    for queue in queues:
        step, back = steps[queue.taker], steps[queue.giver]
        if third[queue.taker]:
            if step % queue.takes.turn or back % queue.gives.turn:
                return False
            items = queue.takes.needed(third[queue.taker]) - queue.takes.needed(second[queue.taker])
            if queue.gives.given(third[queue.giver]) - queue.gives.given(second[queue.giver]) != items:
                return False
    return True


def _reached(start: int, pairs: Iterable[tuple[int, int]]) -> set[int]:
    """All that can be reached from a part, itself included."""
    further: dict[int, list[int]] = {}
    for before, after in pairs:
        further.setdefault(before, []).append(after)
    found, stack = {start}, [start]
    while stack:
        new = set(further.get(stack.pop(), ())) - found
        found |= new
        stack += new
    return found


def _able(takes: _FilterEnd | _TurnEnd, there: int, least: int, most: int) -> int:
    """The greatest count for which so many items are enough."""
    return least + bisect_right(range(least + 1, most + 1), there, key=takes.needed)


def _turns(weights: Sequence[int]) -> list[_TurnEnd]:
    """The ends at a splitter or joiner."""
    return [
        _TurnEnd(sum(weights), before, weight)
        for before, weight in zip(accumulate((0, *weights)), weights, strict=False)
    ]
