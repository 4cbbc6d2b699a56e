"""Linear operators that follow one another become one, where that takes fewer multiplications.

A linear operator sends sums of the items that it sees, each times a factor that never changes, and a constant. So do those of
several that are put one after the other, side by side behind a duplicate or a split by turns, and joined again: what goes
through the queues between them need not be computed. The items of a queue are written as such sums of those of other queues
(`PeriodicQueue`), along the graph; an operator whose sums would grow longer than those of the two apart begins anew with what
it reads.

An operator with a long sum is made anew alone, too: products are added with one rounding (`fma`), which is one step of a
processor, and what is loaded for firings side by side is multiplied several times.

Sums in another order round differently: so this pass is applied only where it is asked for. What it makes sends as many items as
the operators did, however many come: sums that would be ready earlier, or later, than those of the operators apart are left.

Paper: Lamb, Thies, Amarasinghe, "Linear analysis and optimization of stream programs" (2003), sections 3 and 4; Agrawal, Thies,
Amarasinghe, "Optimizing stream programs using linear state space analysis" (2005).
"""

from __future__ import annotations

import struct
from functools import partial
from math import gcd, isfinite, lcm
from typing import TYPE_CHECKING, ClassVar, Final

from optimizers.affine import sent
from optimizers.numbers import plain_duplicate
from optimizers.queries import Names, again, changed, topological, type_text
from river.classes import define, evolve, field, frozen
from river.il.annotations import directives
from river.il.program import Instance, Program, Queue, Use
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.unknowns import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.diagnostics import Note
    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform

MOST: Final = 4096
"""Factors of one operator that is made."""

TURN: Final = 1 << 16
"""Items of a turn that is looked at item by item."""

LARGEST: Final = 3e38
"""Factors beyond are no floats of 32 bits."""

UNROLLED: Final = 4
"""Terms of a sum that is written out."""

PARTS: Final = 4
"""Of a long sum."""

BLOCK: Final = 16
"""Each part has a multiple of so many terms: what processors add up at once."""


@frozen
class LinearItem:
    """One item: a constant, and a factor for each item of other queues; how many items of each must have come."""

    known: float
    terms: Mapping[tuple[str, int], float]
    needs: Mapping[str, int]

    @property
    def cost(self) -> int:
        """Multiplications; passing an item on is none."""
        return 0 if self.known == 0 and list(self.terms.values()) == [1.0] else len(self.terms)


@frozen
class PeriodicQueue:
    """The items of a queue, of which each period repeats: `steps` says how many items of each other queue it goes on.

    `operators`: those that compute it; `origin`: the queue of which it is a copy, `readers` for how many.
    """

    rows: tuple[LinearItem, ...]
    steps: Mapping[str, int]
    operators: frozenset[int]
    origin: str
    readers: int = 1

    @classmethod
    def of(cls, queue: str) -> PeriodicQueue:
        """A queue whose items are taken as they are."""
        return cls((LinearItem(0.0, {(queue, 0): 1.0}, {queue: 1}),), {queue: 1}, frozenset(), queue)

    @property
    def cost(self) -> float:
        """Multiplications for each item."""
        return sum(row.cost for row in self.rows) / len(self.rows)

    def row(self, number: int) -> LinearItem:
        """An item, by its number from the beginning on."""
        period, place = divmod(number, len(self.rows))
        row = self.rows[place]
        if not period:
            return row
        terms = {(name, i + period * self.steps[name]): factor for (name, i), factor in row.terms.items()}
        return LinearItem(
            row.known, terms, {name: n + period * self.steps[name] for name, n in row.needs.items()}
        )

    @property
    def even(self) -> bool:
        """Whether no item must wait for items of a period before that came later than its own."""
        last = self.rows[-1].needs
        return all(
            last[name] - step <= row.needs[name] for row in self.rows for name, step in self.steps.items()
        )

    @property
    def at_once(self) -> bool:
        """Whether a firing that sends a period can wait for what it looks at: all of it must have come for each item of it."""
        needs = self.rows[0].needs
        enough = all(needs[name] >= step for name, step in self.steps.items())
        return enough and all(row.needs == needs for row in self.rows)


@frozen
class LinearFiring:
    """What a linear operator takes of each queue that it reads, and what it sends to each of the others."""

    pops: Mapping[str, int]
    outs: Mapping[str, tuple[LinearItem, ...]]


@frozen
class Site:
    """What is to be made of the program: a stream for each queue that is computed anew, and the operators that stay.

    `copies`: from what duplicates send to what they read; they are laid anew.
    """

    made: Mapping[str, PeriodicQueue] = field(hash=False)
    kept: frozenset[int]
    copies: Mapping[str, str] = field(hash=False)


@frozen
class Linear:
    """`linear`: linear operators become fewer, with fewer multiplications. Results round differently."""

    name: ClassVar[str] = "linear"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        site = _Search(verified.graph, verified.program.decls).site()
        if site is not None:
            yield site

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        return None  # the search has looked at nothing else

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        return _Rewriting(verified, site).program()


# ------------------------------------------------------------------------------------------------------------- policy


@define
class _Search:
    graph: g.Graph
    decls: tuple[Decl, ...]
    firings: dict[int, LinearFiring] = field(factory=dict[int, LinearFiring])
    copies: dict[str, str] = field(factory=dict[str, str])  # what a duplicate sends, to what it reads

    def site(self) -> Site | None:
        """What pays, if anything does."""
        order = topological(self.graph)
        known: dict[int, Mapping[int, tuple[LinearItem, ...]] | None] = {}
        for index in order:
            instance = self.graph.instances[index]
            if index not in self.graph.looping and not directives(instance.use):
                if plain_duplicate(self.graph, instance) and _floats(instance.operator):
                    self.copies |= dict.fromkeys(instance.outs, instance.ins[0])
                elif (firing := _firing(instance, known)) is not None:
                    self.firings[index] = firing
        while True:
            streams = self.streams(order)
            made, kept = self.plan(streams)
            read = {self.origin(name) for i in kept for name in self.graph.instances[i].ins}
            read |= {name for stream in made.values() for name in stream.steps}
            read |= {self.origin(name) for name in self.graph.outputs}
            idle = [i for i in kept & set(self.firings) if not read.issuperset(self.graph.instances[i].outs)]
            if not idle:
                break
            for index in idle:  # one of its outputs would have no reader
                del self.firings[index]
        return Site(made, frozenset(kept), self.copies) if made else None

    def origin(self, queue: str) -> str:
        """The queue of which a queue is a copy."""
        return _origin(self.copies, queue)

    def streams(self, order: Sequence[int]) -> dict[str, PeriodicQueue]:
        """The items of all queues."""
        found = {name: PeriodicQueue.of(name) for name in self.graph.queues}
        for index in order:
            instance = self.graph.instances[index]
            if instance.outs and instance.outs[0] in self.copies:
                read = found[instance.ins[0]]
                each = evolve(read, readers=read.readers * len(instance.outs))
                found |= dict.fromkeys(instance.outs, each)
            elif index in self.firings:
                firing = self.firings[index]
                read_apart = {name: PeriodicQueue.of(found[name].origin) for name in instance.ins}
                alone = {
                    out: _behind(index, firing.pops, rows, read_apart, out)
                    for out, rows in firing.outs.items()
                }
                if None in alone.values():  # it sends too much in a turn: it stays as it is
                    del self.firings[index]
                    continue
                for out, apart in alone.items():
                    assert apart is not None  # noqa: S101 - see above
                    rows = firing.outs[out]
                    together = _behind(index, firing.pops, rows, {n: found[n] for n in instance.ins}, out)
                    found[out] = apart
                    if together is not None and together.cost <= self.price(apart, firing, rows, found):
                        found[out] = together
        return found

    def price(
        self,
        apart: PeriodicQueue,
        firing: LinearFiring,
        rows: Sequence[LinearItem],
        found: Mapping[str, PeriodicQueue],
    ) -> float:
        """Multiplications for each item if the inputs are computed, too; shared with others that read them."""
        inputs = (pop * found[name].cost / found[name].readers for name, pop in firing.pops.items())
        return apart.cost + sum(inputs) / len(rows)

    def plan(self, streams: Mapping[str, PeriodicQueue]) -> tuple[dict[str, PeriodicQueue], set[int]]:
        """What is made, and which operators stay."""
        graph = self.graph
        made: dict[str, PeriodicQueue] = {}
        copying = {i for i in range(len(graph.instances)) if {*graph.instances[i].outs} & self.copies.keys()}
        kept = set(range(len(graph.instances))) - self.firings.keys() - copying
        waiting = [name for i in kept for name in graph.instances[i].ins]
        waiting += graph.outputs
        seen: set[str] = set()
        while waiting:
            name = self.origin(waiting.pop())
            producer = graph.queues[name].producer
            if name in seen or producer is None or producer.instance in kept:
                continue
            seen.add(name)
            stream = streams[name]
            if self.pays(stream):
                made[name] = stream
                waiting += stream.steps
            else:
                kept.add(producer.instance)
                waiting += graph.instances[producer.instance].ins
        stays = {out for i in kept for out in graph.instances[i].outs}
        return {name: stream for name, stream in made.items() if name not in stays}, kept

    def pays(self, stream: PeriodicQueue) -> bool:
        """Whether an operator of its own computes a stream better than those that do now, and sends as many items."""
        costs = sum(
            row.cost > 0 for i in stream.operators for rows in self.firings[i].outs.values() for row in rows
        )
        fits = all(abs(f) < LARGEST for row in stream.rows for f in (row.known, *row.terms.values()))
        return costs > 0 and stream.at_once and fits and (len(stream.operators) > 1 or self.better(stream))

    def better(self, stream: PeriodicQueue) -> bool:
        """Whether the one operator that computes a stream has long sums, which it does not add up as ours do."""
        if all(len(row.terms) <= UNROLLED for row in stream.rows):
            return False
        (index,) = stream.operators
        use, type_ = self.graph.instances[index].use, self.graph.queues[stream.origin].type
        return again(self.decls, _operator(stream, type_)) != use.operator


def _origin(copies: Mapping[str, str], queue: str) -> str:
    while queue in copies:
        queue = copies[queue]
    return queue


def _floats(op: typed.Operator | typed.Extern) -> bool:
    """Whether an operator reads and sends floats of one type, and nothing else."""
    types = {end.type for end in (*op.ports, *op.outs)}
    return len(types) == 1 and types <= set(t.FLOATS)


def _firing(
    instance: g.Instance, known: dict[int, Mapping[int, tuple[LinearItem, ...]] | None]
) -> LinearFiring | None:
    """What an operator does, if it is linear; `known`: what has been found, by operator, of rows whose queues are numbers."""
    op = instance.operator
    if (
        isinstance(op, typed.Extern)
        or op.vars
        or op.first is not None
        or (op.rated is not None and op.rated.early)
        or op.mark is not None
        or op.merge is not None
    ):
        return None
    if not _floats(op) or any(end.by is not None for end in (*op.ports, *op.outs)):
        return None
    if any(port.initial for port in op.ports) or len(set(instance.ins)) < len(instance.ins):
        return None
    if id(op) not in known:
        known[id(op)] = _by_turns(op) if op.phases else _computed(op)
    rows = known[id(op)]
    if rows is None:
        return None
    if op.phases:
        pops = {i: sum(phase.count for phase in op.phases if phase.port == i) for i in range(len(op.ports))}
    else:
        pops = {0: 1} if op.rated is None else {rate.port: rate.pop for rate in op.rated.rates}
    if len(pops) < len(op.ports) or not all(pops.values()) or not all(rows.values()):
        return None
    ins = {str(i): name for i, name in enumerate(instance.ins)}
    named = {instance.outs[out]: tuple(_renamed(row, ins) for row in found) for out, found in rows.items()}
    return LinearFiring({instance.ins[port]: pop for port, pop in pops.items()}, named)


def _renamed(row: LinearItem, names: Mapping[str, str]) -> LinearItem:
    terms = {(names[name], i): factor for (name, i), factor in row.terms.items()}
    return LinearItem(row.known, terms, {names[name]: count for name, count in row.needs.items()})


def _computed(op: typed.Operator) -> Mapping[int, tuple[LinearItem, ...]] | None:
    """What an operator computes at each firing."""
    handler = op.rated or (op.items[0] if len(op.items) == len(op.ports) == 1 else None)
    if handler is None:
        return None
    rates = handler.rates if isinstance(handler, typed.RatedHandler) else (typed.Rate(0, 1, 1),)
    if sum(rate.peek for rate in rates) > MOST:
        return None
    try:
        outs = sent(op, handler)
    except Undecided:
        return None
    needs = {str(rate.port): rate.peek for rate in rates}
    found: dict[int, tuple[LinearItem, ...]] = {}
    for number, sums in enumerate(outs):
        rows: list[LinearItem] = []
        for each in sums:
            terms = {(str(rates[i].port), k): factor for (i, k), factor in each.terms.items() if factor}
            if not all(map(isfinite, (each.known, *each.terms.values()))):
                return None
            rows.append(LinearItem(each.known, terms, needs))
        found[number] = tuple(rows)
    return found


def _by_turns(op: typed.Operator) -> Mapping[int, tuple[LinearItem, ...]] | None:
    """What an operator sends in one turn of its phases, if it sends on what it reads and the turn is not too long."""
    if sum(phase.count for phase in op.phases) > TURN:
        return None
    found: dict[int, list[LinearItem]] = {out: [] for out in range(len(op.outs))}
    seen = dict.fromkeys(map(str, range(len(op.ports))), 0)
    for phase in op.phases:
        match phase.body.items:
            case (typed.Emit(out, typed.Local(_, 0)),):
                pass
            case _:
                return None
        for _ in range(phase.count):
            port = str(phase.port)
            seen[port] += 1
            found[out].append(LinearItem(0.0, {(port, seen[port] - 1): 1.0}, dict(seen)))
    return {out: tuple(rows) for out, rows in found.items()}


def _behind(
    index: int,
    pops: Mapping[str, int],
    rows: Sequence[LinearItem],
    read: Mapping[str, PeriodicQueue],
    out: str,
) -> PeriodicQueue | None:
    """What an operator sends, by the streams that it reads; None where it reads one at two speeds, or it would be too much."""
    firings = lcm(*(len(read[name].rows) // gcd(len(read[name].rows), pop) for name, pop in pops.items()))
    steps: dict[str, int] = {}
    for name, pop in pops.items():
        stream = read[name]
        if not stream.even:
            return None
        for source, step in stream.steps.items():
            whole = firings * pop * step // len(stream.rows)
            if steps.setdefault(source, whole) != whole:
                return None
    if firings * len(rows) > MOST:
        return None
    made: list[LinearItem] = []
    latest: dict[str, int] = dict.fromkeys(steps, 0)
    size = 0
    for number in range(firings):
        for row in rows:
            known, terms = row.known, dict[tuple[str, int], float]()
            for (name, i), factor in row.terms.items():
                part = read[name].row(number * pops[name] + i)
                known += factor * part.known
                for key, inner in part.terms.items():
                    terms[key] = terms.get(key, 0.0) + factor * inner
            size += len(terms)
            if size > MOST:
                return None
            for name, count in row.needs.items():
                if count:
                    stream = read[name]
                    needs = stream.row(number * pops[name] + count - 1).needs
                    latest = {source: max(n, needs.get(source, 0)) for source, n in latest.items()}
            made.append(
                LinearItem(known, {key: factor for key, factor in terms.items() if factor}, dict(latest))
            )
    operators = frozenset({index}).union(*(stream.operators for stream in read.values()))
    return PeriodicQueue(tuple(made), steps, operators, out)


# ---------------------------------------------------------------------------------------------------------- mechanism


@define
class _Rewriting:
    """The program with new operators in place of those that they do the work of."""

    verified: Verified
    site: Site
    names: Names = field(init=False)
    readers: dict[str, list[str]] = field(
        factory=dict[str, "list[str]"]
    )  # of each queue, what its copies are called
    added: list[Decl] = field(factory=list["Decl"])

    def __attrs_post_init__(self) -> None:
        self.names = Names(self.verified.program)

    def program(self) -> Program:
        """The whole."""
        graph, origin = self.verified.graph, partial(_origin, self.site.copies)
        reads: dict[str, str] = {}  # what a reader of a queue reads now
        for index in sorted(self.site.kept):
            for name in graph.instances[index].ins:
                self.readers.setdefault(origin(name), []).append(name)
        for name in graph.outputs:
            self.readers.setdefault(origin(name), []).append(name)
        ins: dict[str, tuple[str, ...]] = {}
        for made, stream in self.site.made.items():
            ins[made] = tuple(self.names.queue(f"{name}_linear") for name in stream.steps)
            for name, own in zip(stream.steps, ins[made], strict=True):
                self.readers.setdefault(name, []).append(own)
        sends: dict[str, str] = {}
        copies: dict[str, tuple[Use, ...]] = {}
        for name, readers in self.readers.items():
            self.connect(name, readers, reads, sends, copies)
        uses = {
            name: self.made(name, stream, ins[name], reads, sends) for name, stream in self.site.made.items()
        }
        first = next(iter(self.verified.program.uses))
        by_use = {id(instance.use): instance for instance in graph.instances}
        before = [
            use for name, found in copies.items() if graph.queues[name].producer is None for use in found
        ]

        def change(decl: Decl) -> Decl | Iterable[Decl] | None:
            if isinstance(decl, Queue):
                return decl if decl.name in named else None
            if not isinstance(decl, Use):
                return decl
            instance = by_use[id(decl)]
            found: list[Decl] = list(before) if decl is first else []
            if instance.index in self.site.kept:
                found.append(
                    evolve(
                        decl,
                        ins=tuple(reads.get(name, name) for name in decl.ins),
                        outs=tuple(sends.get(name, name) for name in decl.outs),
                    )
                )
            for out in instance.outs:
                found += [uses[out]] if out in uses else []
                found += copies.get(out, ())
            return found

        kept = [graph.instances[i].use for i in self.site.kept]
        named = {reads.get(name, name) for use in kept for name in use.ins}
        named |= {sends.get(name, name) for use in kept for name in use.outs}
        named |= {name for use in uses.values() for name in (*use.ins, *use.outs)}
        return changed(self.verified.program, change, self.added)

    def connect(
        self,
        name: str,
        readers: Sequence[str],
        reads: dict[str, str],
        sends: dict[str, str],
        copies: dict[str, tuple[Use, ...]],
    ) -> None:
        """Feeds the readers of a queue: directly, or by a duplicate."""
        graph = self.verified.graph
        outputs = [reader for reader in readers if reader in graph.outputs]
        if len(readers) == 1 and not outputs:
            reads[readers[0]] = name
        elif len(readers) == 1 and graph.queues[name].producer is not None:
            sends[name] = readers[0]
        else:
            if name in readers:
                reads[name] = self.names.queue(f"{name}_copy")
            type_ = type_text(graph.queues[name].type, {})
            args: tuple[tuple[str, s.TemplateArg], ...] = (("T", type_), ("n", s.Int(len(readers))))
            instance = self.instance(Instance("duplicate", "std.duplicate", args))
            outs = tuple(reads.get(reader, reader) for reader in readers)
            copies[name] = (Use(outs, instance, (name,)),)

    def instance(self, wanted: Instance) -> str:
        """The name of an instance of a template, which may be there already."""
        for decl in (*self.added, *self.verified.program.decls):
            if isinstance(decl, Instance) and evolve(decl, name=wanted.name) == wanted:
                return decl.name
        found = evolve(wanted, name=self.names.operator(wanted.name))
        self.added.append(found)
        return found.name

    def made(
        self,
        name: str,
        stream: PeriodicQueue,
        ins: Sequence[str],
        reads: Mapping[str, str],
        sends: Mapping[str, str],
    ) -> Use:
        """The use of a new operator."""
        queue = self.verified.graph.queues[name]
        operator = _operator(stream, queue.type)
        known = again((*self.added, *self.verified.program.decls), operator)
        if known is None:
            operator = evolve(operator, name=self.names.operator("linear"))
            self.added.append(operator)
        assert queue.producer is not None  # noqa: S101 - inputs are not made
        uses = [self.verified.graph.instances[i].use for i in sorted(stream.operators)]
        return Use(
            (sends.get(name, name),),
            known or operator.name,
            tuple(reads.get(i, i) for i in ins),
            within=tuple(place for use in uses for place in use.within),
            span=self.verified.graph.instances[queue.producer.instance].use.span,
        )


def _operator(stream: PeriodicQueue, item: t.Type) -> s.Operator:
    """The operator that computes a period of a stream at each firing."""
    type_, narrow = type_text(item, {}), item == t.F32
    ports = {name: f"x{i}" if len(stream.steps) > 1 else "x" for i, name in enumerate(stream.steps)}
    windows = {name: port.replace("x", "w") for name, port in ports.items()}
    consts: list[s.Const] = []
    body: list[s.Stmt] = []
    for number, row in enumerate(stream.rows):
        parts = {name: {i: f for (n, i), f in row.terms.items() if n == name} for name in stream.steps}
        total = f"sum{number}" if len(stream.rows) > 1 else "sum"
        body.append(s.VarDecl(total, type_, _number(row.known, narrow=narrow)))
        for name, factors in parts.items():
            if len(factors) <= UNROLLED:
                for i, factor in sorted(factors.items()):
                    term = s.Index(s.Name(windows[name]), s.Int(i))
                    body.append(_more(total, term, _number(factor, narrow=narrow)))
                continue
            low, high = min(factors), max(factors) + 1
            const = f"h{len(consts)}"
            values = s.ListValue(tuple(_number(factors.get(i, 0.0), narrow=narrow) for i in range(low, high)))
            kind = s.TypeName("array", (type_, s.Int(high - low)))
            consts.append(s.Const(const, kind, values))
            body += _summed(total, type_, windows[name], low, const, high - low, stream.steps[name])
        body.append(s.Emit("y", s.Name(total)))
    needs = stream.row(0).needs
    rates = tuple(
        s.Rate(ports[name], s.Int(max(needs[name], step)), s.Int(step), windows[name])
        for name, step in stream.steps.items()
    )
    return s.Operator(
        "linear",
        tuple(s.Port(port, type_) for port in ports.values()),
        (),
        (s.Out("y", type_, push=s.Int(len(stream.rows))),),
        tuple(consts),
        (),
        (s.RatedHandler(rates, s.Block(tuple(body))),),
    )


def _summed(
    total: str, type_: s.TypeExpr, window: str, low: int, const: str, count: int, step: int
) -> list[s.Stmt]:
    """Adds the products of so many items of a window, from `low` on, and the factors `const`.

    If items of one firing are seen by the next ones, a long sum is made of a few, whose items are blocks apart: so
    what is loaded for firings side by side is multiplied several times.
    """

    def terms(first: int, size: int, names: Sequence[str]) -> s.Stmt:
        found: list[s.Stmt] = []
        for part, name in enumerate(names):
            at, of = (_plus("i", first + part * size + more) for more in (low, 0))
            found.append(_more(name, s.Index(s.Name(window), at), s.Index(s.Name(const), of)))
        return s.For(None, ("i",), s.Range(s.Int(0), s.Int(size)), s.Block(tuple(found)))

    block = count // (PARTS * BLOCK) * BLOCK if step == 1 else 0
    if not block:
        return [terms(0, count, (total,))]
    names = [total, *(f"{total}_{const}_{part}" for part in range(1, PARTS))]
    found: list[s.Stmt] = [s.VarDecl(name, type_, s.Float(0.0)) for name in names[1:]]
    found.append(terms(0, block, names))
    if count > PARTS * block:
        found.append(terms(PARTS * block, count - PARTS * block, (total,)))
    found += (s.Assign(s.Name(total), s.Binary("+", s.Name(total), s.Name(name))) for name in names[1:])
    return found


def _plus(name: str, number: int) -> s.Expr:
    return s.Binary("+", s.Name(name), s.Int(number)) if number else s.Name(name)


def _more(total: str, item: s.Expr, factor: s.Expr) -> s.Stmt:
    """One more term of a sum."""
    return s.Assign(s.Name(total), s.Call("fma", (item, factor, s.Name(total))))


def _number(value: float, *, narrow: bool) -> s.Expr:
    """A float as it is written; `narrow`: of 32 bits."""
    (known,) = struct.unpack("<f", struct.pack("<f", value)) if narrow else (value,)
    size = s.Float(abs(known))
    return s.Unary("-", size) if known < 0 else size
