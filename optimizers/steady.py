"""Fusion of whole steady states: splits, joins and what lies between them become one operator, and their queues its locals.

All that happens in a steady state is known before anything runs (`optimizers.playing`), so one firing may do all of it. What
splits, joins and identities send on does not move. Firings of one operator that do not depend on one another are one loop,
whichever branches they were of, and so are those of operators that differ in numbers only: these stand in a table. What firings
read lies at places that are sums of multiples of the loop's counter and of the index, or stand in a table, too. The new operator
has no state, so that its firings run side by side.

Paper: River §4.3 (fusion optimizer).
"""

from __future__ import annotations

from operator import add, mul, sub
from typing import TYPE_CHECKING, Final

from optimizers.circles import said
from optimizers.playing import Origin, SteadyState, groups, kind_of, statements
from optimizers.queries import Alike, Names, changed, joint, source, type_text
from optimizers.windows import JoinedNames, apart, bounded
from river.classes import define, evolve, field, frozen
from river.il.program import Program, Queue, Use
from river.il.trees import binders, fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.rates import emitted
from river.lang.scope import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified


UNROLLED: Final = 128
"""Statements of the firings of a loop that are written out rather than looked up in a table."""

MOST_UNROLLED: Final = 1_500
"""Of all loops."""


def steadied(verified: Verified, sites: Sequence[SteadyState]) -> Program:
    """The program with one use in place of those of each site; no use is in two sites."""
    graph, names = verified.graph, Names(verified.program)
    known, added = Alike(verified.program.decls), list[s.Operator]()
    changes: dict[int, Use | None] = {}  # by declaration
    inner: set[str] = set()
    for site in sites:
        members = [graph.instances[index] for index in site.members]
        made = _SteadyText(verified, site, names).operator()
        name = known.name(made)
        if name is None:
            name = made.name
            known.add(made)
            added.append(made)
        inner |= {queue for member in members for queue in member.ins} - {site.entry}
        last = next(member for member in members if site.exit in member.outs)
        changes |= dict.fromkeys((id(member.use) for member in members), None)
        changes[id(last.use)] = Use(
            (site.exit,),
            name,
            (site.entry,),
            said(members),
            tuple(dict.fromkeys(place for member in members for place in member.use.within)),
            span=members[0].use.span,
        )

    def change(decl: Decl) -> Decl | None:
        if id(decl) in changes:
            return changes[id(decl)]
        return None if isinstance(decl, Queue) and decl.name in inner else decl

    return changed(verified.program, change, added)


@frozen
class _Affine:
    """The place of item e in firing r: `base + r // inner * row + r % inner * firing + e * item`."""

    base: int
    row: int
    firing: int
    item: int


@frozen
class _Counter:
    """The number of a firing: `row * inner + firing`, of two loops, or of one where `row` is zero."""

    row: s.Expr
    firing: s.Expr
    inner: int

    @property
    def value(self) -> s.Expr:
        """The number."""
        return _sum(_product(self.row, self.inner), self.firing)


Span = tuple[int, int]
"""The first and the last number of what is meant."""


@define
class _Maker:
    """Operators of a kind whose firings take part: the text of the first, with names that no other has, and what is known of it.

    `numbers`: by operator, where there are several, the values of its constants, in their order.
    """

    text: s.Operator
    known: typed.Operator
    bounded: frozenset[int]
    numbers: Mapping[str, tuple[s.Expr, ...]]

    @property
    def handler(self) -> s.RatedHandler:
        """Its only handler."""
        (found,) = (each for each in self.text.handlers if isinstance(each, s.RatedHandler))
        return found


@define
class _SteadyText:
    """The operator that a site becomes. `memory`: by type of items, the local array in which they lie, and its size.

    `places`: where the items of a firing's output lie. Items of the input are read where they are, unless a loop, or what
    is sent, mixes them with others: then they are put into memory first (`moved`).
    """

    verified: Verified
    site: SteadyState
    names: Names
    known: JoinedNames = field(init=False)
    parts: dict[str, _Maker] = field(factory=dict[str, _Maker])  # by operator; those of a kind have one
    groups: list[list[int]] = field(init=False)
    memory: dict[t.Type, tuple[str, int]] = field(factory=dict["t.Type", "tuple[str, int]"])
    places: dict[tuple[int, int], list[int]] = field(factory=dict[tuple[int, int], list[int]])
    moved: bool = False
    window: str = ""
    out: str = ""
    direct: int | None = None  # the group that sends at once
    tables: dict[tuple[int, ...], str] = field(factory=dict[tuple[int, ...], str])
    numbers: dict[tuple[str, ...], str] = field(factory=dict[tuple[str, ...], str])  # constants, by value
    consts: list[s.Const] = field(factory=list[s.Const])
    unrolled: int = 0

    def operator(self) -> s.Operator:
        """The operator, with a name of its own."""
        graph, site = self.verified.graph, self.site
        members = [graph.instances[index] for index in site.members]
        self._read(members)
        self.groups = groups(graph, site)
        self.window = self._local("window")
        self._order()
        self._allot()
        first = source(self.verified, members[0].use.operator)
        last = next(member for member in members if site.exit in member.outs)
        end = source(self.verified, last.use.operator)
        assert isinstance(first, s.Operator)  # noqa: S101 - it is eligible
        assert isinstance(end, s.Operator)  # noqa: S101 - it is eligible
        port, out = first.ports[0], end.outs[last.outs.index(site.exit)]
        self.out = fresh(out.name, {port.name})
        body = [
            *self._begin(),
            *(item for number, group in enumerate(self.groups) for item in self._group(number, group)),
        ]
        body += self._end()
        spelled = self.verified.type_names
        held = [
            s.VarDecl(name, s.TypeName("array", (type_text(type_, spelled), s.Int(size))), s.Call("zero", ()))
            for type_, (name, size) in self.memory.items()
            if size
        ]
        early = tuple(s.Early(s.Int(there), s.Int(sent)) for there, sent in site.early)
        rate = s.Rate(port.name, None, s.Int(site.width), self.window, early)
        makers = {id(part): part for part in self.parts.values()}.values()
        alone = [part.text for part in makers if not part.numbers]
        name = joint(members[0].use.operator, last.use.operator)
        return s.Operator(
            self.names.operator(name),
            (port,),
            (),
            (evolve(out, name=self.out, push=s.Int(len(site.sent))),),
            (*(const for text in alone for const in text.consts), *self.consts),
            tuple(fn for text in alone for fn in text.fns),
            (s.RatedHandler((rate,), s.Block((*held, *body)), span=first.span),),
            span=first.span,
        )

    def _begin(self) -> Iterator[s.Stmt]:
        """Puts the items of the input into memory, where they are read with others."""
        if self.moved:
            i, type_ = self._local("i"), self.verified.graph.queues[self.site.entry].type
            to = self._item(type_, _sum(s.Int(self.places[-1, 0][0]), s.Name(i)))
            put = s.Assign(to, s.Index(s.Name(self.window), s.Name(i)))
            yield s.For(None, (i,), s.Range(s.Int(0), s.Int(self.site.width)), s.Block((put,)))

    def _end(self) -> Iterator[s.Stmt]:
        """Sends what is in memory, where no loop has sent it at once."""
        if self.direct is None:
            i, sent = self._local("i"), self.site.sent
            kind, rows = self._where([sent])
            cell = self._item(kind, self._index(rows, _ONLY, s.Name(i), (0, len(sent) - 1)))
            send = s.Block((s.Emit(self.out, cell),))
            yield s.For(None, (i,), s.Range(s.Int(0), s.Int(len(sent))), send)

    # -- names and texts

    def _local(self, wanted: str) -> str:
        found = fresh(wanted, self.known.values)
        self.known.values.add(found)
        return found

    def _read(self, members: Sequence[g.Instance]) -> None:
        """The texts of those that make items, with names that no two kinds of them have in common."""
        self.known = JoinedNames(set(), set(), set())
        making = {firing.member for firing in self.site.firings}
        kinds: dict[object, dict[str, tuple[s.Operator, typed.Operator]]] = {}
        for member in members:
            if member.index in making:
                text, op = source(self.verified, member.use.operator), member.operator
                assert isinstance(text, s.Operator)  # noqa: S101 - it is eligible
                assert isinstance(op, typed.Operator)  # noqa: S101 - it is eligible
                kinds.setdefault(kind_of(member), {}).setdefault(member.use.operator, (text, op))
        for several in kinds.values():
            text, op = next(iter(several.values()))
            assert op.rated is not None  # noqa: S101 - it makes items
            numbers = {
                name: tuple(const.value for const in text.consts) for name, (text, _) in several.items()
            }
            text = apart(text, self.known)
            self.known.add(text)
            inside = bounded(op, op.rated.body, range(len(op.rated.rates)))  # which no single number tells
            part = _Maker(text, op, inside, numbers if len(several) > 1 else {})
            self.parts |= dict.fromkeys(several, part)

    def _part(self, firing: int) -> _Maker:
        member = self.verified.graph.instances[self.site.firings[firing].member]
        return self.parts[member.use.operator]

    def _pushes(self, firing: int) -> list[int]:
        """How many items a firing sends to each output."""
        op = self._part(firing).known
        assert op.rated is not None  # noqa: S101 - it makes items
        return [emitted(op.rated.body, out, op.fns)[0] for out in range(len(op.outs))]

    # -- where items lie

    def _order(self) -> None:
        """Puts the firings of each loop in an order in which places are sums; finds who sends at once.

        That in which they come is good for whoever reads what they make, but for those whose items are dealt to many.
        """
        sent = {cell: i for i, cell in enumerate(self.site.sent)}
        rank: dict[int, tuple[int, int, list[int]]] = {
            -1: (-1, 0, [0])
        }  # its loop, its number there, what it sends
        for number, group in enumerate(self.groups):

            def place(cell: Origin) -> tuple[tuple[int, int], int]:
                loop, i, count = rank[cell[0]]  # noqa: B023
                return (loop, cell[1]), i * count[cell[1]] + cell[2]

            def straight(firings: Sequence[int]) -> bool:
                windows = [self.site.firings[firing].takes for firing in firings]
                return all(
                    _straight([[place(cell) for cell in cells] for cells in port])
                    for port in zip(*windows, strict=True)
                )

            pushes = self._pushes(group[0])
            if len(pushes) == 1 and set(self.site.sent) == {
                (f, 0, n) for f in group for n in range(pushes[0])
            }:
                group.sort(key=lambda firing: min(sent[firing, 0, n] for n in range(pushes[0])))
                if tuple((firing, 0, n) for firing in group for n in range(pushes[0])) == self.site.sent:
                    self.direct = number
            if self.direct != number:
                group.sort()
                other = sorted(group, key=lambda firing: place(self.site.firings[firing].takes[0][0]))
                if other != group and straight(other) and not straight(group):
                    group[:] = other
            rank |= {firing: (number, i, pushes) for i, firing in enumerate(group)}

    def _allot(self) -> None:
        """Gives the items of each loop a place, which others get when nobody reads them any more."""
        last: dict[tuple[int, int], int] = {}
        mixed = False
        numbers = {firing: number for number, group in enumerate(self.groups) for firing in group}
        owner: Callable[[Origin], tuple[int, int]] = lambda cell: (numbers.get(cell[0], -1), cell[1])  # noqa: E731
        ends = [(len(self.groups), [self.site.sent])] if self.direct is None else []
        for number, group in enumerate(self.groups):
            ports = len(self.site.firings[group[0]].takes)
            ends += [(number, [self.site.firings[f].takes[port] for f in group]) for port in range(ports)]
        for number, rows in ends:
            from_ = {owner(cell) for row in rows for cell in row}
            mixed |= (-1, 0) in from_ and len(from_) > 1
            for each in from_:
                last[each] = max(last.get(each, 0), number)
        self.moved = mixed
        graph = self.verified.graph
        held: dict[t.Type, list[tuple[int, int, int]]] = {}  # begin, end, last use

        def put(type_: t.Type, size: int, now: int, until: int) -> int:
            blocks = sorted(block for block in held.get(type_, ()) if block[2] >= now)
            at = 0
            for begin, end, _ in blocks:
                if at + size <= begin:
                    break
                at = max(at, end)
            held[type_] = [*blocks, (at, at + size, until)]
            name, most = self.memory.get(type_) or (self._local("kept"), 0)
            self.memory[type_] = name, max(most, at + size)
            return at

        if self.moved:
            base = put(graph.queues[self.site.entry].type, self.site.width, -1, last[-1, 0])
            self.places[-1, 0] = list(range(base, base + self.site.width))
        for number, group in enumerate(self.groups):
            if number == self.direct:
                continue
            op = self._part(group[0]).known
            for out, count in enumerate(self._pushes(group[0])):
                base = put(op.outs[out].type, count * len(group), number, last.get((number, out), number))
                for i, firing in enumerate(group):
                    self.places[firing, out] = [base + i * count + n for n in range(count)]
            sent = {(firing, 0, n) for firing in group for n in range(sum(self._pushes(group[0])[:1]))}
            if sent == set(self.site.sent) and len(sent) == len(
                self.site.sent
            ):  # in the order in which they are sent
                base = min(place for firing in group for place in self.places[firing, 0])
                for i, (firing, _, n) in enumerate(self.site.sent):
                    self.places[firing, 0][n] = base + i

    def _where(self, rows: Sequence[Sequence[Origin]]) -> tuple[t.Type | None, list[list[int]]]:
        """Places of items, and in the memory of which type; None: in the window."""
        firing, out, _ = rows[0][0]
        if firing < 0 and not self.moved:
            return None, [[n for _, _, n in row] for row in rows]
        type_ = (
            self.verified.graph.queues[self.site.entry].type
            if firing < 0
            else self._part(firing).known.outs[out].type
        )
        return type_, [[self.places[firing, out][n] for firing, out, n in row] for row in rows]

    def _item(self, kind: t.Type | None, index: s.Expr) -> s.Index:
        return s.Index(s.Name(self.window if kind is None else self.memory[kind][0]), index)

    def _index(self, rows: Sequence[Sequence[int]], counter: _Counter, item: s.Expr, span: Span) -> s.Expr:
        """The place of an item of a firing, one of those in `span`: a sum, or from a table."""
        number = counter.value
        if isinstance(number, s.Int) and isinstance(item, s.Int):
            return s.Int(rows[number.value][item.value])
        known = [rows[number.value]] if isinstance(number, s.Int) else rows
        found = _affine(known, min(counter.inner, len(known)), span)
        if found is not None:
            places = (
                _product(counter.row, found.row),
                _product(counter.firing, found.firing) if found.firing else s.Int(0),
            )
            return _sum(s.Int(found.base), *places, _product(item, found.item))
        return s.Index(s.Name(self._table(rows)), _sum(_product(number, len(rows[0])), item))

    def _table(self, rows: Sequence[Sequence[int]]) -> str:
        """A constant of places."""
        flat = tuple(place for row in rows for place in row)
        if flat not in self.tables:
            self.tables[flat] = self._local("places")
            type_ = s.TypeName("array", (_NUMBER, s.Int(len(flat))))
            self.consts.append(s.Const(self.tables[flat], type_, s.ListValue(tuple(map(s.Int, flat)))))
        return self.tables[flat]

    # -- firings

    def _group(self, number: int, group: Sequence[int]) -> Iterator[s.Stmt]:
        """All firings of a loop."""
        part = self._part(group[0])
        windows = [
            self._where([self.site.firings[firing].takes[port] for firing in group])
            for port in range(len(part.known.ports))
        ]
        size, count = len(group) * statements(part.known), len(group)
        inner = self._inner(number, group, part, [rows for _, rows in windows])
        if inner != count and size <= UNROLLED and self.unrolled + size <= MOST_UNROLLED:
            self.unrolled += size
            for i in range(count):
                once = self._local("once")
                body = self._firing(number, group, part, windows, _Counter(s.Int(0), s.Int(i), count))
                yield s.For(None, (once,), s.Range(s.Int(0), s.Int(1)), body)
            return
        inner = inner or count
        outer, r = self._local("row"), self._local("r")
        row, firing = (
            s.Int(0) if many == 1 else s.Name(name) for many, name in ((count // inner, outer), (inner, r))
        )
        body = self._firing(number, group, part, windows, _Counter(row, firing, inner))
        loop = s.For(None, (r,), s.Range(s.Int(0), s.Int(inner)), body)
        yield (
            loop
            if inner == count
            else s.For(None, (outer,), s.Range(s.Int(0), s.Int(count // inner)), s.Block((loop,)))
        )

    def _inner(
        self, number: int, group: Sequence[int], part: _Maker, windows: Sequence[Sequence[Sequence[int]]]
    ) -> int | None:
        """How many firings the inner one of two loops must have, so that all places are sums; None if some never are.

        As many as there are, if one loop does.
        """
        looks: list[tuple[Sequence[Sequence[int]], Span]] = []
        for slot, (rate, rows) in enumerate(zip(part.handler.rates, windows, strict=True)):
            last = len(rows[0]) - 1
            spans = (
                _spans(part.handler.body, rate.name, (0, last))
                if slot in part.bounded
                else [(i, i) for i in range(last + 1)]
            )
            looks += ((rows, span) for span in spans)
        if number != self.direct:
            for out, pushed in enumerate(self._pushes(group[0])):
                if pushed:
                    looks.append(([self.places[firing, out] for firing in group], (0, pushed - 1)))
        count = len(group)
        fits = (
            inner
            for inner in range(count, 0, -1)
            if count % inner == 0 and all(_affine(rows, inner, span) is not None for rows, span in looks)
        )
        return next(fits, None)

    def _firing(
        self, number: int, group: Sequence[int], part: _Maker,
        windows: Sequence[tuple[t.Type | None, list[list[int]]]], counter: _Counter,
    ) -> s.Block:  # fmt: skip
        """What one firing does, of the number that `counter` is."""
        handler, before = part.handler, list[s.Stmt]()
        seen: dict[str, tuple[t.Type | None, list[list[int]]]] = {}
        assert part.known.rated is not None  # noqa: S101 - it makes items
        spelled = self.verified.type_names
        for slot, (rate, (kind, rows)) in enumerate(zip(handler.rates, windows, strict=True)):
            if slot in part.bounded:
                seen[rate.name] = kind, rows
                continue
            items = [
                self._item(kind, self._index(rows, counter, s.Int(i), (i, i))) for i in range(len(rows[0]))
            ]
            type_ = part.known.ports[part.known.rated.rates[slot].port].type
            array = s.TypeName("array", (type_text(type_, spelled), s.Int(len(items))))
            before.append(s.Let(rate.name, array, s.ListValue(tuple(items))))

        counters: dict[str, Span] = {}

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Index(s.Name(name), index) if name in seen:
                    kind, rows = seen[name]
                    span = _span(index, counters) or (0, len(rows[0]) - 1)
                    return self._item(kind, self._index(rows, counter, _whole(rebuild(index, rewrite)), span))
                case _:
                    _count(node, counters)
                    return rebuild(node, rewrite)

        body = self._numbered(s.Block(rebuild(handler.body, rewrite).items), group, counter)
        if number == self.direct:
            body = _sending(body, part.text.outs[0].name, self.out)
        else:
            for out, (end, count) in enumerate(zip(part.text.outs, self._pushes(group[0]), strict=True)):
                rows = [self.places[firing, out] for firing in group]
                body = self._kept(body, end.name, part.known.outs[out].type, rows, counter) if count else body
        return s.Block((*before, *body.items))

    def _numbered(self, body: s.Block, group: Sequence[int], counter: _Counter) -> s.Block:
        """The body of a firing with the numbers of its operator, where those of a loop may be of several."""
        part, graph = self._part(group[0]), self.verified.graph
        if not part.numbers:
            return body
        members = (graph.instances[self.site.firings[firing].member].use.operator for firing in group)
        rows = [part.numbers[name] for name in members]
        number = counter.value
        values: dict[str, s.Expr] = {}
        for const, column in zip(part.text.consts, zip(*rows, strict=True), strict=True):
            if isinstance(number, s.Int):
                column = (column[number.value],)
            told = [repr(value) for value in column]  # which tells 0.0 from -0.0
            one = told.count(told[0]) == len(told)
            key = (repr(const.type), *(told[:1] if one else told))
            if key not in self.numbers:
                self.numbers[key] = self._local(const.name)
                array = s.TypeName("array", (const.type, s.Int(len(column))))
                value = (const.type, column[0]) if one else (array, s.ListValue(column))
                self.consts.append(s.Const(self.numbers[key], *value))
            name = s.Name(self.numbers[key])
            values[const.name] = name if one else s.Index(name, number)

        def rewrite(node: s.Node) -> s.Node:
            return values.get(node.name, node) if isinstance(node, s.Name) else rebuild(node, rewrite)

        return s.Block(rebuild(body, rewrite).items)

    def _kept(
        self, body: s.Block, out: str, type_: t.Type, rows: Sequence[Sequence[int]], counter: _Counter
    ) -> s.Block:
        """The body with items put into memory that it sends to an output."""

        def put(number: s.Expr) -> s.Index:
            return self._item(type_, self._index(rows, counter, number, (0, len(rows[0]) - 1)))

        counted = _counted(body, out, s.Int(0), put)
        if counted is not None:
            return counted[0]
        sent = self._local("sent")

        def rewrite(node: s.Node) -> s.Node | tuple[s.Node, ...]:
            match node:
                case s.Emit(name, value) if name == out:
                    more = s.Binary("+%", s.Name(sent), s.Int(1))
                    return (
                        s.Assign(put(s.Name(sent)), value, span=node.span),
                        s.Assign(s.Name(sent), more),
                    )
                case _:
                    return rebuild(node, rewrite)

        return s.Block((s.VarDecl(sent, _NUMBER, s.Int(0)), *rebuild(body, rewrite).items))


_NUMBER: Final = s.TypeName("i64")

_ONLY: Final = _Counter(s.Int(0), s.Int(0), 1)
"""Of the only firing that there is."""


def _sending(body: s.Block, out: str, other: str) -> s.Block:
    """The body with another name for an output."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Emit(name, _) if name == out:
                return evolve(rebuild(node, rewrite), out=other)
            case _:
                return rebuild(node, rewrite)

    return rebuild(body, rewrite)


def _affine(rows: Sequence[Sequence[int]], inner: int, span: Span) -> _Affine | None:
    """The sum that the places of items in `span` are, if there is one."""
    low, high = span
    if low > high:  # a loop that does not turn looks at nothing
        return _Affine(0, 0, 0, 0)
    item = rows[0][low + 1] - rows[0][low] if high > low else 0
    base = rows[0][low] - low * item
    firing = rows[1][low] - rows[0][low] if inner > 1 else 0
    row = rows[inner][low] - rows[0][low] if len(rows) > inner else 0
    good = all(
        found[e] == base + r // inner * row + r % inner * firing + e * item
        for r, found in enumerate(rows)
        for e in range(low, high + 1)
    )
    return _Affine(base, row, firing, item) if good else None


def _span(expr: s.Expr, counters: Mapping[str, Span]) -> Span | None:
    """The least and greatest value of an index that is made of numbers and counters of loops."""
    value = integer(expr)
    if value is not None:
        return value, value
    match expr:
        case s.Name(name):
            return counters.get(name)
        case s.Call("i64" | "i32", (s.Node() as inner,)):
            return None if isinstance(inner, s.Lambda) else _span(inner, counters)
        case s.Binary("+" | "+%" | "-" | "-%" | "*" | "*%" as sign, left, right):
            one, other = _span(left, counters), _span(right, counters)
            if one is None or other is None:
                return None
            made = {"+": add, "-": sub, "*": mul}[sign[0]]
            values = [made(a, b) for a in one for b in other]
            return min(values), max(values)
        case _:
            return None


def _count(node: s.Node, counters: dict[str, Span]) -> None:
    """Knows the counter of a loop, until its name means something else; names do not hide one another."""
    for name in binders(node):
        counters.pop(name, None)
    match node:
        case s.For(_, (name,), s.Range(low, high), _):
            first, end = integer(low), integer(high)
            if first is not None and end is not None:
                counters[name] = first, end - 1
        case _:
            pass


def _spans(body: s.Block, window: str, whole: Span) -> list[Span]:
    """The items of a window at which a body looks, by place of the text."""
    counters: dict[str, Span] = {}
    found: list[Span] = []
    for node in walk(body):
        _count(node, counters)
        if isinstance(node, s.Index) and node.value == s.Name(window):
            found.append(_span(node.index, counters) or whole)
    return found


def _whole(expr: s.Expr) -> s.Expr:
    """An index as an i64."""
    found = integer(expr)
    return s.Call("i64", (expr,)) if found is None else s.Int(found)


def _product(expr: s.Expr, factor: int) -> s.Expr:
    if isinstance(expr, s.Int):
        return s.Int(expr.value * factor)
    return s.Int(0) if factor == 0 else expr if factor == 1 else s.Binary("*%", expr, s.Int(factor))


def _plus(one: s.Expr, other: s.Expr) -> s.Expr:
    if isinstance(other, s.Int) and other.value < 0:
        return s.Binary("-%", one, s.Int(-other.value))
    return s.Binary("+%", one, other)


def _sum(*exprs: s.Expr) -> s.Expr:
    known = sum(each.value for each in exprs if isinstance(each, s.Int))
    others = [each for each in exprs if not isinstance(each, s.Int)]
    found: s.Expr | None = None
    for each in (*others, *((s.Int(known),) if known or not others else ())):
        found = each if found is None else _plus(found, each)
    assert found is not None  # noqa: S101 - a number at least
    return found


def _counted(
    body: s.Block, out: str, start: s.Expr, put: Callable[[s.Expr], s.Index]
) -> tuple[s.Block, int] | None:
    """A body that puts its items, from number `start` on, where they belong, and how many there are; None: not known."""
    items: list[s.Stmt] = []
    many = 0
    for item in body.items:
        if not any(isinstance(node, s.Emit) and node.out == out for node in walk(item)):
            items.append(item)
            continue
        at = _sum(start, s.Int(many))
        match item:
            case s.Emit(_, value):
                items.append(s.Assign(put(at), value, span=item.span))
                many += 1
            case s.If(_, then, s.Block() as other):
                one, two = _counted(then, out, at, put), _counted(other, out, at, put)
                if one is None or two is None or one[1] != two[1]:
                    return None
                items.append(evolve(item, then=one[0], other=two[0]))
                many += one[1]
            case s.For(_, (name,), s.Range(low, high), inner):
                first, end = integer(low), integer(high)
                alone = _counted(inner, out, at, put)
                if first is None or end is None or alone is None:
                    return None
                passed = _sum(s.Call("i64", (s.Name(name),)), s.Int(-first))
                each = _counted(inner, out, _sum(at, _product(passed, alone[1])), put)
                assert each is not None  # noqa: S101 - it is the same body
                items.append(evolve(item, body=each[0]))
                many += max(0, end - first) * alone[1]
            case _:
                return None
    return s.Block(tuple(items)), many


def _straight(rows: Sequence[Sequence[tuple[tuple[int, int], int]]]) -> bool:
    """Whether the items of a loop's windows are those of one output, at places that are sums."""
    alike = len({origin for row in rows for origin, _ in row}) == 1
    places = [[place for _, place in row] for row in rows]
    return alike and _affine(places, len(rows), (0, len(rows[0]) - 1)) is not None
