"""An operator on deltas whose rows carry tags: each row that it sends has the tag of the row that it was made for.

So rows that were sent by several, each of which had a part of the rows, can be put in the order in which one would have sent
them: by their tags. Of an operator of which that can be seen: it goes through the rows of its delta in loops, and what it puts
into a list in such a loop stands there for the row of that turn. A list may be filled in one loop and gone through in
another; then each of its items stands for the row for which it was put in. One that merges inputs does so with the rows of each,
the inputs one after the other.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final, cast

from river.classes import define, evolve, field, fields, frozen
from river.il.annotations import row_type
from river.il.carried import carries, with_rows
from river.il.trees import Same
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Measure
from river.lang.trees import effect, nodes

TAG: Final = "seq"
SIDES: Final = (1, 2)
"""The places of the insertions and of the deletions in a delta."""

KEY: Final = 0
"""The slot of the instant, where inputs are merged."""


def tag(row: t.Type) -> t.Record:
    """A row with its tag before it."""
    return t.Record(((TAG, t.I64), ("v", row)))


def tag_delta(delta: t.Type) -> t.Record:
    """A delta whose rows carry tags."""
    row = row_type(delta)
    assert isinstance(delta, t.Record)  # noqa: S101 - who calls this has asked for its rows
    assert row is not None  # noqa: S101 - likewise
    tau, *sides = delta.fields
    return t.Record((tau, *((name, t.List(tag(row))) for name, _ in sides)))


def tagged(op: typed.Operator) -> typed.Operator | None:
    """The operator on deltas whose rows carry tags, None if it is not seen which row each row that it sends is for.

    It expects the tags of the insertions, and then those of the deletions, to ascend, and then those of the next input that it
    merges. Those of each list that it sends ascend then, too; rows of one tag stand in the order in which they were sent.
    """
    return _tagged(Same(op))


@lru_cache(1_000)
def _tagged(same: Same[typed.Operator]) -> typed.Operator | None:
    op = same.value
    if carries(op):
        row = row_type(op.ports[0].type)
        assert row is not None  # noqa: S101 - it has rows to carry
        return with_rows(op, row, tag(row))
    if len(op.outs) != 1 or op.mark is not None:
        return None
    if any(row_type(end.type) is None for end in (*op.ports, *op.outs)):
        return None
    if any(port.initial for port in op.ports) or any(fn.emits for fn in op.fns):
        return None
    ends = {
        "ports": tuple(evolve(port, type=tag_delta(port.type)) for port in op.ports),
        "outs": tuple(evolve(out, type=tag_delta(out.type)) for out in op.outs),
    }
    match op.items, op.merge:
        case (handler,), None if len(op.ports) == 1:
            deltas, optional = {0: _Given(tag_delta(op.ports[0].type), 0)}, dict[int, _Given]()
        case (), typed.MergeHandler(ports) as handler if ports == tuple(range(len(op.ports))):
            deltas = dict[int, _Given]()
            optional = {1 + port: _Given(tag_delta(op.ports[port].type), len(SIDES) * port) for port in ports}
        case _:
            return None
    rewriting = _Tagging(deltas, optional, _lists(handler.body), handler.slots)
    try:
        body = rewriting.node(handler.body)
    except _Unseen:
        return None
    made = evolve(handler, body=body, slots=rewriting.slots)
    return evolve(op, **ends, items=(made,)) if op.merge is None else evolve(op, **ends, merge=made)


class _Unseen(Exception):  # noqa: N818 - says what was found
    """It is not seen which row some row is for."""


def _lists(body: typed.Block) -> frozenset[int]:
    """The slots of the lists that are sent, and of those that are gone through to fill or to make others.

    What is declared within a loop is not among them: it is of the row at hand.
    """
    inner = {
        each.slot
        for loop in nodes(body)
        if isinstance(loop, typed.For | typed.While)
        for each in nodes(loop.body)
        if isinstance(each, typed.Var | typed.Let)
    }
    sent = {
        value.slot
        for node in nodes(body)
        if isinstance(node, typed.Emit) and isinstance(node.value, typed.MakeRecord)
        for value in node.value.values[1:]
        if isinstance(value, typed.Local)
    }
    while True:
        more = {
            loop.range.slot
            for loop in nodes(body)
            if isinstance(loop, typed.For) and isinstance(loop.range, typed.Local)
            if any(_pushed(node) in sent for node in nodes(loop.body))
        } - inner
        more |= {
            each.value.range.slot
            for each in nodes(body)
            if isinstance(each, typed.Let) and each.slot in sent
            if isinstance(each.value, typed.Comprehension) and isinstance(each.value.range, typed.Local)
        }
        if more <= sent:
            return frozenset(sent)
        sent |= more


def _pushed(node: typed.Node) -> int | None:
    """The slot of the local list into which a node puts something."""
    match node:
        case typed.Apply(_, _, (typed.Local(t.List(), slot), _)) if effect(node).pushes:
            return slot
        case _:
            return None


@frozen
class _Given:
    """A delta, with its type; `before`: how many sides there are of the inputs before that of which it is."""

    type: t.Record
    before: int


@define
class _Filled:
    """For the rows of which sides a list was filled, from the first to the last, and in which loop last."""

    first: int
    last: int
    loop: int


@define
class _Tagging:
    """The rewriting of one handler.

    `deltas`: those that are given, by slot; `optional`: those of inputs that are merged, of which there may be none. `lists`: the
    slots of the lists whose items carry tags. `rows`: the names of rows, or of items of such lists, in scope. `named`: the names
    of sides of deltas. `slots`: how many names there are. `loop`: the outermost loop that is open, and `over` the sides whose
    rows it goes through, if it does.
    """

    deltas: dict[int, _Given]
    optional: dict[int, _Given]
    lists: frozenset[int]
    slots: int
    named: dict[int, int] = field(factory=dict[int, int])
    rows: dict[int, t.Record] = field(factory=dict[int, t.Record])
    loop: int | None = None
    over: tuple[int, int] | None = None
    row: typed.Expr | None = None
    filled: dict[int, _Filled] = field(factory=dict[int, _Filled])
    made: set[int] = field(factory=set[int])

    def node(self, node: typed.Node) -> Any:
        """A node with tags."""
        match node:
            case typed.Var(slot, _, value) | typed.Let(slot, _, value) if slot in self.lists:
                if self.loop is not None or slot in self.made:
                    raise _Unseen
                self.made.add(slot)
                return evolve(node, value=self.list_of(value))
            case typed.Let(slot, _, value) if (side := self.side(value)) is not None:
                self.named[slot] = side
                return evolve(node, value=self.list_of(value))
            case typed.For(range=typed.Counted()) | typed.While():
                return self.within(node)
            case typed.For():
                return self.over_rows(node) if self.is_list(node.range) else self.within(node)
            case typed.Comprehension() if self.is_list(node.range):
                return self.comprehension(node)
            case typed.Apply() if (slot := _pushed(node)) in self.lists:
                return self.put(node, slot)
            case typed.Apply(args=(listed,)) if (
                self.is_list(listed) and effect(node).measure is Measure.COUNT
            ):
                return evolve(node, args=(self.list_of(cast("typed.Expr", listed)),))
            case typed.At(type_, listed, index, _) if self.is_list(listed):
                found = evolve(node, type=tag(type_), value=self.list_of(listed), index=self.node(index))
                return typed.Get(type_, found, 1, "v")
            case typed.Emit(_, value):
                if self.loop is not None:
                    raise _Unseen
                return evolve(node, value=self.sent(value))
            case typed.Bind(typed.Local(_, given) as value, slot) if given in self.optional:
                self.deltas[slot] = self.optional[given]
                return evolve(node, value=evolve(value, type=t.Optional(self.deltas[slot].type)))
            case typed.Get(_, typed.Local(_, slot) as delta, 0) if slot in self.deltas:
                return evolve(node, value=evolve(delta, type=self.deltas[slot].type))
            case typed.Local(type_, slot) if slot in self.rows:
                return typed.Get(type_, evolve(node, type=self.rows[slot]), 1, "v")
            case typed.Local(_, slot) if (
                slot in self.deltas or slot in self.optional or slot in self.lists or slot in self.named
            ):
                raise _Unseen
            case typed.Return() | typed.Mark():
                raise _Unseen
            case _:
                return self.inside(node)

    def inside(self, node: typed.Node) -> Any:
        """A node with tags in what is inside it."""
        return evolve(node, **{name: self.value(getattr(node, name)) for name in _inside(type(node))})

    def value(self, value: object) -> object:
        match value:
            case typed.Node():
                return self.node(value)
            case tuple():
                return tuple(self.value(each) for each in cast("tuple[object, ...]", value))
            case _:
                return value

    # -- loops

    def within(self, loop: typed.For | typed.While) -> Any:
        """A loop over anything else: what it does, it does for the row at hand, if there is one."""
        if self.loop is not None:
            return self.inside(loop)
        self.loop = loop.loop
        found = self.inside(loop)
        self.loop = None
        return found

    def over_rows(self, loop: typed.For) -> typed.For:
        """A loop over rows, or over items that stand for some."""
        if self.loop is not None or isinstance(loop.range, typed.Counted):
            raise _Unseen
        range_, slot = self.list_of(loop.range), loop.slots[-1]
        self.loop, self.over = loop.loop, self.sides(loop.range)
        self.row = self.bound(slot, loop.names[-1], range_)
        body = self.node(loop.body)
        self.loop = self.over = self.row = None
        del self.rows[slot]
        return evolve(loop, range=range_, body=body)

    def bound(self, slot: int, name: str, range_: typed.Expr) -> typed.Expr:
        """Brings the name of a loop over a list with tags into scope; the tag of what it stands for."""
        assert isinstance(range_.type, t.List)  # noqa: S101 - it is such a list
        assert isinstance(range_.type.item, t.Record)  # noqa: S101 - likewise
        self.rows[slot] = range_.type.item
        return typed.Get(t.I64, typed.Local(range_.type.item, slot, name), 0, TAG)

    def sides(self, range_: typed.Expr) -> tuple[int, int]:
        """The sides for whose rows the items of a list stand, the first and the last."""
        if (side := self.side(range_)) is not None:
            return side, side
        match range_:
            case typed.Local(_, slot) if slot in self.named:
                return self.named[slot], self.named[slot]
            case typed.Local(_, slot) if slot in self.filled:
                return self.filled[slot].first, self.filled[slot].last
            case _:
                raise _Unseen

    # -- lists of rows

    def is_list(self, expr: object) -> bool:
        """Whether an expression is a list whose items stand for rows."""
        match expr:
            case typed.Get(_, typed.Local(_, slot), side, _):
                return slot in self.deltas and side in SIDES
            case typed.Local(_, slot):
                return slot in self.lists or slot in self.named
            case _:
                return False

    def side(self, expr: typed.Expr) -> int | None:
        """Which side of a delta an expression is, if it is one: they are numbered, one input after the other."""
        match expr:
            case typed.If(_, typed.Literal(_, bool() as holds), then, other):
                return self.side(then if holds else other)
            case typed.Get(_, typed.Local(_, slot), side, _) if slot in self.deltas and side in SIDES:
                return self.deltas[slot].before + side
            case _:
                return None

    def list_of(self, expr: typed.Expr) -> typed.Expr:
        """A list with tags."""
        match expr:
            case typed.If(_, typed.Literal(_, bool() as holds), then, other):
                return self.list_of(then if holds else other)
            case typed.Get(type_, typed.Local(_, slot) as delta, side, _) if (
                slot in self.deltas and side in SIDES
            ):
                return evolve(expr, type=_tag_list(type_), value=evolve(delta, type=self.deltas[slot].type))
            case typed.Local(type_, slot) if slot in self.lists or slot in self.named:
                return evolve(expr, type=_tag_list(type_))
            case typed.MakeList(type_, ()) | typed.MakeMap(type_, ()):
                return evolve(expr, type=_tag_list(type_))
            case typed.Apply(type_, _, (items, others)) if (
                effect(expr).matches
                and not isinstance(items, typed.Lambda)
                and not isinstance(others, typed.Lambda)
                and self.loop is None
            ):  # rows are told by what they are, not by their tags
                item = t.parts(type_)[0]
                one, self.slots = typed.Local(tag(item), self.slots, "one"), self.slots + 1
                by = typed.Lambda(
                    t.Function((one.type,), item), (one.slot,), (one.name,), typed.Get(item, one, 1, "v")
                )
                return evolve(
                    expr, type=_tag_list(type_), args=(self.list_of(items), self.list_of(others), by)
                )
            case typed.Comprehension(_, _, slots, names, range_) if (
                self.is_list(range_) and self.loop is None
            ):
                found = self.comprehension(expr)
                range_ = self.list_of(cast("typed.Expr", range_))
                seq = self.bound(slots[-1], names[-1], range_)
                del self.rows[slots[-1]]
                return evolve(found, type=_tag_list(expr.type), value=_with_tag(seq, found.value))
            case _:
                raise _Unseen

    def comprehension(self, expr: typed.Comprehension) -> typed.Comprehension:
        """What is made of each row of a list; without tags."""
        range_ = self.list_of(cast("typed.Expr", expr.range))
        self.bound(expr.slots[-1], expr.names[-1], range_)
        cond = None if expr.cond is None else self.node(expr.cond)
        found = evolve(expr, range=range_, value=self.node(expr.value), cond=cond)
        del self.rows[expr.slots[-1]]
        return found

    def put(self, apply: typed.Apply, slot: int) -> typed.Apply:
        """Something is put into a list, for the row at hand: not before what later rows have put into it."""
        if self.row is None or self.over is None or self.loop is None:
            raise _Unseen
        before = self.filled.get(slot)
        if before is not None and before.loop != self.loop and before.last >= self.over[0]:
            raise _Unseen
        first = self.over[0] if before is None else before.first
        self.filled[slot] = _Filled(first, self.over[1], self.loop)
        place, value = cast("tuple[typed.Expr, typed.Expr]", apply.args)
        return evolve(apply, args=(self.list_of(place), _with_tag(self.row, self.node(value))))

    def sent(self, value: typed.Expr) -> typed.Expr:
        """A delta that is sent: of the same instant, made of lists that are known, or the whole."""
        match value:
            case typed.MakeRecord(type_, (tau, *sides), _) if self.instant(tau):
                return evolve(
                    value, type=tag_delta(type_), values=(self.node(tau), *map(self.list_of, sides))
                )
            case typed.Local(_, slot) if slot in self.deltas:
                return evolve(value, type=self.deltas[slot].type)
            case _:
                raise _Unseen

    def instant(self, tau: typed.Expr) -> bool:
        """Whether a value is the instant of what is handled."""
        match tau:
            case typed.Get(_, typed.Local(_, slot), 0):
                return slot in self.deltas
            case typed.Local(_, slot):
                return bool(self.optional) and slot == KEY
            case _:
                return False


def _tag_list(type_: t.Type) -> t.List:
    assert isinstance(type_, t.List)  # noqa: S101 - by the caller
    return t.List(tag(type_.item))


def _with_tag(seq: typed.Expr, value: typed.Expr) -> typed.MakeRecord:
    return typed.MakeRecord(tag(value.type), (seq, value), (0, 1))


@cache
def _inside(kind: type[typed.Node]) -> tuple[str, ...]:
    """The fields of a class that may hold nodes, or tuples of them; a literal's value is none."""
    if kind is typed.Literal:
        return ()
    return tuple(each.name for each in fields(kind) if each.name != "span")
