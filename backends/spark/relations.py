"""Outputs as Spark's own relations: a selection of an input's rows, or sums of them by key.

The operators on the way from an input to an output are read for one row that could be any: what they send for it, and on which
condition, as expressions of Spark's SQL. That is all there is to say of an output as a bag of rows if no operator has state but
one that only gathers the rows of an instant, or a table into which rows are summed. Deltas are read as what one row brings to
them: an operator that looks at their rows one by one does with all of them what it does with each.

What is not read is no error: it runs as River's own code (`door`).

Paper: River §4.4 (mappers and reducers); §3.4 (CQL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backends.spark import sql
from river.classes import define, evolve, field, frozen
from river.driver import stamps, wholes
from river.il.annotations import row_type
from river.il.combine import Cell as Summand
from river.il.combine import Entries, Fields, combines
from river.il.gathered import gathered
from river.io import deltas
from river.io.schema import columns
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Measure
from river.lang.trees import effect, recursive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.il.graph import Graph, Instance, View


@frozen
class Selected:
    """The rows of an input that meet the conditions, as columns: name and expression."""

    input: str
    conditions: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


@frozen
class Summed:
    """Sums of an input's rows by key. `columns` are made of columns called `key(n)`, and of `total(n)`.

    `totals`: sums, as expressions on the rows of a key.
    """

    input: str
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    totals: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


Relation = Selected | Summed


def read_by(found: Relation) -> tuple[str, ...]:
    """The expressions on the columns of the input."""
    match found:
        case Selected(_, conditions, shown):
            return (*conditions, *(text for _, text in shown))
        case Summed(_, conditions, keys, totals, _):
            return (*conditions, *keys, *totals)
        case _:
            assert_never(found)


def key(number: int) -> str:
    """The name of the column of a key's part."""
    return f"river_key_{number}"


def total(number: int) -> str:
    """The name of the column of a sum."""
    return f"river_total_{number}"


def shown_as(found: Summed) -> dict[str, str]:
    """The names of the output's columns by those of keys and sums, if it has these as they are, in this order; else nothing."""
    made = [*map(key, range(len(found.keys))), *map(total, range(len(found.totals)))]
    if not found.keys or [text for _, text in found.columns] != [*map(sql.name, made)]:
        return {}
    return dict(zip(made, (column for column, _ in found.columns), strict=True))


def relation(graph: Graph, output: str) -> Relation | None:
    """What an output is of one input, if Spark's SQL can say it."""
    try:
        view = next((view for view in graph.views if view.name == output), None)
        return _selected(graph, output) if view is None else _summed(graph, view)
    except _Unread:
        return None


class _Unread(Exception):  # noqa: N818 - it says what was found
    """What Spark's SQL cannot say."""


# ------------------------------------------------------------------------------------------------------------ values


@frozen
class ScalarText:
    """A scalar, as an expression."""

    text: str
    type: t.Type


@frozen
class RecordText:
    """A record or tuple."""

    values: tuple[Value, ...]


@frozen
class ListText:
    """What one row brings to a list of rows: each value if its conditions hold."""

    brought: tuple[tuple[tuple[str, ...], Value], ...] = ()


@frozen
class OtherColumn:
    """A column of a type that Spark does not have: an output in which it shows is not read."""

    name: str


Value = ScalarText | RecordText | ListText | OtherColumn


@frozen
class SentRow:
    """What is sent for one row if the conditions hold.

    `whole`: it is the row's part of what is sent once for many: of an instant's delta, or of all rows.
    """

    conditions: tuple[str, ...]
    value: Value
    whole: bool


def _plain(value: Value) -> bool:
    """Whether a value has no rows in it."""
    match value:
        case ScalarText():
            return True
        case RecordText(values):
            return all(map(_plain, values))
        case ListText() | OtherColumn():
            return False


# ------------------------------------------------------------------------------------------------------------- graph


def _queue(graph: Graph, name: str) -> tuple[str, tuple[SentRow, ...]]:
    """The input that a queue is made of, and what is sent there for one of its rows. Raises: _Unread."""
    queue = graph.queues[name]
    if queue.producer is None:
        return name, (_given(graph, name),)
    instance = graph.instances[queue.producer.instance]
    op = instance.operator
    if instance.index in graph.looping or not isinstance(op, typed.Operator) or len(op.ports) != 1:
        raise _Unread
    source, items = _queue(graph, instance.ins[0])
    kept = gathered(op)
    if kept is not None:
        return source, tuple(_gathers(graph, instance, kept, item) for item in items)
    if op.vars or op.ports[0].initial or len(op.items) != 1 or not _passes_marks(op):
        raise _Unread
    position = queue.producer.position
    place = queue.key()
    sent: list[SentRow] = []
    for item in items:
        body = _HandlerReading(op, item, {0: item.value})
        body.block(op.items[0].body, item.conditions)
        found = [each for out, each in body.sent if out == position]
        if place is not None and any(
            _part(each.value, place) != _stamp(graph, instance, item) for each in found
        ):
            raise _Unread  # the order of what is sent has to be checked
        sent += found
    return source, tuple(sent)


def _given(graph: Graph, name: str) -> SentRow:
    """A row of an input."""
    type_ = graph.queues[name].type
    if name in stamps(graph.program):
        raise _Unread
    whole = name in wholes(graph.program)
    row = t.parts(type_)[0] if whole else type_
    cells = tuple(
        ScalarText(sql.name(column), field) if sql.scalar(field) else OtherColumn(column)
        for column, field in columns(row)
    )
    value = RecordText(cells) if isinstance(row, t.Record) else cells[0]
    return SentRow((), ListText((((), value),)), whole=True) if whole else SentRow((), value, whole=False)


def _gathers(graph: Graph, instance: Instance, kept: typed.MakeRecord, item: SentRow) -> SentRow:
    """What a row brings to the delta of its instant."""
    initial = {variable.name: variable.initial for variable in graph.variables}
    op = instance.operator
    shared = any(len(graph.users[name]) > 1 or initial[name] for name in instance.variables)
    if item.whole or shared or not isinstance(op, typed.Operator):
        raise _Unread
    value = _HandlerReading(op, item, {0: item.value}).value(kept)
    delta = RecordText((_stamp(graph, instance, item), ListText((((), value),)), ListText()))
    return SentRow(item.conditions, delta, whole=True)


def _stamp(graph: Graph, instance: Instance, item: SentRow) -> Value:
    """The key of what an instance reads. Raises: _Unread if there is none."""
    place = graph.queues[instance.ins[0]].key()
    if place is None:
        raise _Unread
    return _part(item.value, place)


def _part(value: Value, place: int) -> Value:
    if not isinstance(value, RecordText):
        raise _Unread
    return value.values[place]


def _passes_marks(op: typed.Operator) -> bool:
    """Whether all that an operator does with marks is to pass them on."""
    return op.mark is None or all(
        isinstance(item, typed.Mark) and isinstance(item.value, typed.Local) for item in op.mark.body.items
    )


def _selected(graph: Graph, output: str) -> Selected:
    source, found = _queue(graph, output)
    type_ = graph.queues[output].type
    if len(found) != 1:
        raise _Unread
    (sent,) = found
    conditions, value = sent.conditions, sent.value
    if deltas.is_delta(type_):
        tau, inserted, deleted = (_part(value, place) for place in range(3))
        if not isinstance(inserted, ListText) or len(inserted.brought) != 1 or deleted != ListText():
            raise _Unread
        ((more, row),) = inserted.brought
        conditions, type_ = (*conditions, *more), deltas.changelog(type_)
        sign = ScalarText(sql.text(deltas.INSERTED), t.STRING)
        value = RecordText((tau, sign, *(row.values if isinstance(row, RecordText) else (row,))))
    elif sent.whole:
        raise _Unread
    return Selected(source, conditions, _columns(type_, value))


def _columns(type_: t.Type, value: Value) -> tuple[tuple[str, str], ...]:
    """The columns of rows of a type. Raises: _Unread for others than scalars."""
    cells = value.values if isinstance(value, RecordText) and isinstance(type_, t.Record) else (value,)
    found: list[tuple[str, str]] = []
    for (column, field_), cell in zip(columns(type_), cells, strict=True):
        if not isinstance(cell, ScalarText) or not sql.scalar(field_):
            raise _Unread
        found.append((column, cell.text))
    return tuple(found)


# ------------------------------------------------------------------------------------------------------------ tables


def _summed(graph: Graph, view: View) -> Summed:
    """A view of a map into which rows are summed. Raises: _Unread."""
    users = graph.users[view.variable]
    variable = next(each for each in graph.variables if each.name == view.variable)
    if len(users) != 1 or len(variable.initial) or any(view.variable in r.parts for r in graph.results):
        raise _Unread
    instance = graph.instances[users[0]]
    op = instance.operator
    if not isinstance(op, typed.Operator) or len(op.ports) != 1 or len(op.vars) != 1 or op.mark is not None:
        raise _Unread
    if op.outs or op.ports[0].initial or len(op.items) != 1 or instance.index in graph.looping:
        raise _Unread
    source, found = _queue(graph, instance.ins[0])
    if len(found) != 1 or found[0].whole:
        raise _Unread
    body = _HandlerReading(op, found[0], {0: found[0].value})
    keys, sums = body.adds(op.items[0].body)
    parts = [ScalarText(sql.name(key(number)), cell.type) for number, cell in enumerate(keys)]
    totals = [ScalarText(sql.name(total(number)), t.I64) for number in range(len(sums))]
    function = view.fns[view.function]
    if len(function.params) != 2:
        raise _Unread
    shown = _HandlerReading(
        op, found[0], {0: RecordText(tuple(parts)), 1: RecordText(tuple(totals))}, view.fns
    )
    match function.body:
        case typed.Block((typed.Return(typed.MakeList(_, (row,))),)):
            made = _columns(view.type, shown.value(row))
        case _:
            raise _Unread
    added = tuple(sql.COUNT if each.text == ONE else sql.summed(each.text) for each in sums)
    return Summed(source, found[0].conditions, tuple(cell.text for cell in keys), added, made)


ONE = sql.literal(t.I64, 1)


# ------------------------------------------------------------------------------------------------------------ bodies


@define(eq=False)
class _HandlerReading:
    """The reading of a handler for what one row brings. `slots`: what its names stand for."""

    op: typed.Operator
    item: SentRow
    slots: dict[int, Value]
    fns: tuple[typed.Fn, ...] | None = None
    sent: list[tuple[int, SentRow]] = field(factory=list["tuple[int, SentRow]"], init=False)
    inside: bool = field(default=False, init=False)

    # -- statements

    def block(self, block: typed.Block, conditions: tuple[str, ...]) -> None:
        for item in block.items:
            self.statement(item, conditions)

    def statement(self, item: typed.Stmt, conditions: tuple[str, ...]) -> None:
        match item:
            case typed.Let(slot, _, value):
                self.slots[slot] = self.value(value)
            case typed.Emit(out, value):
                self.emit(out, self.value(value), conditions)
            case typed.Branch(cond, then, other) if not isinstance(cond, typed.Bind):
                if other is None and self.guards(cond, then):
                    self.block(then, conditions)
                    return
                decided = self.cell(cond)
                self.block(then, (*conditions, decided))
                if other is not None:
                    self.block(other, (*conditions, f"(not {decided})"))
            case typed.For(_, (slot,), _, range_, body):
                rows = self.rows(range_)
                self.inside = True
                for more, value in rows.brought:
                    self.slots[slot] = value
                    self.block(body, (*conditions, *more))
                self.inside = False
            case _:
                raise _Unread

    def emit(self, out: int, value: Value, conditions: tuple[str, ...]) -> None:
        """A row for a row, a delta for a delta: what is sent once for many rows is not what is sent for each of them."""
        by_row = self.inside or not self.item.whole
        if by_row != _plain(value) or (not by_row and row_type(self.op.outs[out].type) is None):
            raise _Unread
        self.sent.append((out, SentRow(conditions, value, whole=not by_row)))

    def guards(self, cond: typed.Expr, then: typed.Block) -> bool:
        """Whether a delta is sent unless it has no rows: which is the same as to send it, for a bag of rows."""
        match then:
            case typed.Block((typed.Emit(_, typed.MakeRecord(_, (_, *sides), _)),)):
                asked = self.asked(cond)
                return asked is not None and all(
                    side in asked or self.value(side) == ListText() for side in sides
                )
            case _:
                return False

    def asked(self, cond: typed.Expr) -> list[typed.Expr] | None:
        """The lists of which a condition asks whether they are not all empty; it may hold in other cases, too."""
        match cond:
            case typed.Logic(_, "or", left, right):
                return self.asked(right) or self.asked(left)
            case typed.Apply(_, _, (sizes, typed.Literal(_, 0)), _) if effect(cond).measure is Measure.MORE:
                return self.sizes(sizes)
            case _:
                return None

    def sizes(self, expr: typed.Expr | typed.Lambda) -> list[typed.Expr] | None:
        match expr:
            case typed.Apply(_, _, (left, right), _) if effect(expr).measure is Measure.SUM:
                one, other = self.sizes(left), self.sizes(right)
                return None if one is None or other is None else one + other
            case typed.Apply(_, _, (typed.Local(t.List()) as rows,), _) if (
                effect(expr).measure is Measure.COUNT
            ):
                return [rows]
            case _:
                return None

    def adds(self, block: typed.Block) -> tuple[tuple[ScalarText, ...], tuple[ScalarText, ...]]:
        """What is added to the entry of which key. Raises: _Unread if more than that is done."""
        match block.items, combines(self.op):
            case (typed.With(slot, _, typed.State(_, 0), by, _, body),), (Entries(_, Fields(parts)),):
                pass
            case _:
                raise _Unread
        found: list[ScalarText | None] = [None] * len(parts)
        for item in body.items:
            match item:
                case typed.Assign(
                    typed.Get(t.I64, typed.Local(_, into), place) as cell, typed.Apply(_, _, (again, added))
                ) if into == slot and again == cell and found[place] is None:
                    assert not isinstance(added, typed.Lambda)  # noqa: S101 - of such a type
                    value = self.value(added)
                    found[place] = value if isinstance(value, ScalarText) else None
                case _:
                    raise _Unread
        whole = tuple(cell for cell in found if cell is not None)
        for part in parts:
            match part:
                case Summand(sql.SUM, _):
                    pass
                case _:
                    raise _Unread
        if len(whole) != len(parts):
            raise _Unread
        keys = self.value(by)
        cells = keys.values if isinstance(keys, RecordText) else (keys,)
        names = tuple(
            cell for cell in cells if isinstance(cell, ScalarText) and sql.kind_of(cell.type) in sql.KEYS
        )
        if len(names) != len(cells):
            raise _Unread
        return names, whole

    # -- expressions

    def cell(self, expr: typed.Expr) -> str:
        """A scalar's text."""
        found = self.value(expr)
        if not isinstance(found, ScalarText):
            raise _Unread
        return found.text

    def rows(self, expr: typed.Expr | typed.Counted) -> ListText:
        """The rows that a loop is over."""
        found = None if isinstance(expr, typed.Counted) or self.inside else self.value(expr)
        if not isinstance(found, ListText):
            raise _Unread
        return found

    def value(self, expr: typed.Expr) -> Value:
        match expr:
            case typed.Literal(type_, value):
                return _cell(type_, sql.literal(type_, value))
            case typed.Local(_, slot) if slot in self.slots:
                return self.slots[slot]
            case typed.ConstRef(_, index) if self.fns is None:
                return _HandlerReading(self.op, self.item, {}).value(self.op.consts[index].value)
            case typed.Get(_, value, index):
                return _part(self.value(value), index)
            case typed.Some(type_, value):
                found = self.value(value)
                return evolve(found, type=type_) if isinstance(found, ScalarText) else found
            case typed.Apply():
                return self.applied(expr)
            case typed.Call(_, index, _, args):
                return self.called(index, args)
            case typed.If(type_, cond, then, other):
                return _cell(type_, f"if({self.cell(cond)}, {self.cell(then)}, {self.cell(other)})")
            case typed.Logic(type_, op, left, right):
                return _cell(type_, f"({self.cell(left)} {op} {self.cell(right)})")
            case typed.MakeRecord(_, values):
                return RecordText(tuple(map(self.value, values)))
            case typed.MakeList(t.List(), ()) | typed.MakeMap(t.List(), ()):
                return ListText()
            case typed.Comprehension(_, value, (slot,), _, range_, cond):
                return self.comprehended(value, slot, self.rows(range_), cond)
            case _:
                raise _Unread

    def applied(self, expr: typed.Apply) -> ScalarText:
        """The result of an operation."""
        cells: list[ScalarText] = []
        for arg in expr.args:
            cell = None if isinstance(arg, typed.Lambda) else self.value(arg)
            if not isinstance(cell, ScalarText):
                raise _Unread
            cells.append(cell)
        types, texts = [cell.type for cell in cells], [cell.text for cell in cells]
        return _cell(expr.type, sql.apply(expr, types, texts))

    def called(self, index: int, args: Sequence[typed.Expr]) -> Value:
        """The result of a function that is one expression."""
        fns = self.op.fns if self.fns is None else self.fns
        if recursive(fns):
            raise _Unread
        values = dict(enumerate(map(self.value, args)))
        match fns[index].body:
            case typed.Block((typed.Return(value),)) if value is not None:
                pass
            case typed.Block():
                raise _Unread
            case value:
                pass
        return _HandlerReading(self.op, self.item, values, self.fns).value(value)

    def comprehended(self, value: typed.Expr, slot: int, rows: ListText, cond: typed.Expr | None) -> ListText:
        """What a row brings to a list that is made of another row by row."""
        self.inside = True
        brought: list[tuple[tuple[str, ...], Value]] = []
        for conditions, each in rows.brought:
            self.slots[slot] = each
            more = () if cond is None else (self.cell(cond),)
            made = self.value(value)
            if not _plain(made):
                raise _Unread
            brought.append(((*conditions, *more), made))
        self.inside = False
        return ListText(tuple(brought))


def _cell(type_: t.Type, text: str | None) -> ScalarText:
    """A scalar. Raises: _Unread if there is no text, or a long one."""
    if text is None or len(text) > sql.LONGEST:
        raise _Unread
    return ScalarText(text, type_)
