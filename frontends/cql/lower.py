"""The arrow from typed programs to River IL: one operator for each operator of the algebra, on queues of deltas.

Paper: River sections 3.1, 3.4. A queue carries `{tau, ins, del}` at ascending instants tau, and nothing where nothing changes;
what feeds an `rstream`, or an aggregate without groups, also carries instants without change: it is not quiet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from frontends.cql import borders, closed, present, windowing
from frontends.cql import typed as ty
from frontends.cql.check import SIGN
from frontends.cql.groups import Accumulator, applied, over
from frontends.cql.plan import Plan, plan
from frontends.cql.trees import fields, key_of, record
from frontends.cql.windowing import partition
from frontends.sql import dates, decimals
from frontends.sql import typed as r
from river.classes import define, evolve, field, frozen
from river.il import program as p
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from frontends.cql.externs import Called
    from river.source import Span

Args = tuple[tuple[str, s.TemplateArg], ...]

FIRST = {t.I64: -BOUNDS[t.I64][1], t.TIME: -62_135_596_800_000_000}
"""The instant at which tables are there, before all others; of times, the first that can be written: the year 1."""


def lower(program: ty.Program) -> p.Program:
    """The program as River IL; its operators are instances of the templates of namespace `cql`."""
    return Lowering(program).program()


@frozen
class Deltas:
    """What travels along a queue: deltas of `row`, whose type is written `type`."""

    queue: str
    row: t.Record
    type: s.TypeExpr


@define
class Lowering:
    """The declarations made so far."""

    source: ty.Program
    types: list[p.TypeDecl] = field(factory=list[p.TypeDecl])
    operators: list[p.Decl] = field(factory=list[p.Decl])
    variables: list[p.Decl] = field(factory=list[p.Decl])
    uses: list[p.Decl] = field(factory=list[p.Decl])
    taken: set[str] = field(factory=set[str])
    copies: dict[str, list[str]] = field(factory=dict[str, list[str]])
    named: dict[str, Deltas] = field(factory=dict[str, Deltas])
    stamps: list[s.Fn] = field(factory=list[s.Fn])
    functions: dict[tuple[t.Type, int], s.Fn] = field(factory=dict["tuple[t.Type, int]", s.Fn])
    folds: dict[r.Fold, s.Fn] = field(factory=dict["r.Fold", s.Fn])
    loud: frozenset[str] = frozenset()
    plan: Plan = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.plan = plan(self.source)

    # -- the whole

    def program(self) -> p.Program:
        """All declarations: types, inputs, variables, operators, uses, outputs."""
        named = (*self.source.inputs, *self.source.views, *self.source.functions)
        self.taken = {"delta", *(each.name for each in named)}
        self.loud = _loud(self.source, self.plan.now)
        delta = s.RecordType(
            (
                s.FieldType("tau", self.tau),
                *(s.FieldType(n, s.TypeName("list", (s.TypeName("R"),))) for n in ("ins", "del")),
            )
        )
        self.types.append(p.TypeDecl("delta", ("R",), delta))
        inputs = [self.input(one) for one in self.source.inputs]
        outputs = [output for view in self.source.views for output in self.view(view)]
        return p.Program(
            (
                *self.types,
                *self.source.functions,
                *self.functions.values(),
                *self.folds.values(),
                *self.stamps,
                *inputs,
                *self.variables,
                *self.operators,
                *self.uses,
                *outputs,
            )
        )

    @property
    def tau(self) -> s.TypeExpr:
        """The type of instants."""
        return expression(self.source.tau)

    def range(self, ticks: int) -> Args:
        """The arguments of a window of this length."""
        last = ("last", self.instant(self.last - ticks - 1))
        (kind, span), (_, one) = self.span(ticks), self.span(1)
        return ("Span", kind), ("span", span), ("granule", one), last

    def span(self, ticks: int) -> tuple[s.TypeExpr, s.Expr]:
        """The type of lengths of time, and one of them."""
        if self.source.tau == t.I64:
            return self.tau, s.Int(ticks)
        return expression(t.DURATION), s.Call("duration", (s.Int(ticks),))

    @property
    def last(self) -> int:
        """The last instant that there is."""
        return BOUNDS[self.source.tau][1]

    def instant(self, ticks: int) -> s.Expr:
        """An instant, as a text would have it."""
        number = s.Int(ticks) if ticks >= 0 else s.Unary("-", s.Int(-ticks))
        return number if self.source.tau == t.I64 else s.Call("time", (number,))

    # -- names and declarations

    def fresh(self, name: str) -> str:
        """`name`, or one like it that nothing bears yet."""
        found = fresh(_plain(name), self.taken)
        self.taken.add(found)
        return found

    def declare(self, title: str, type_: s.TypeExpr, span: Span | None) -> s.TypeExpr:
        """Declares a type under a name like `title`, in capitals; one that is there already is used again."""
        title = _plain(title)
        name = "".join(part[:1].upper() + part[1:] for part in title.split("_")) or title
        for known in self.types:
            if known.type == type_ and known.name == name:
                return s.TypeName(name)
        name = self.fresh(name)
        self.types.append(p.TypeDecl(name, (), type_, span=span))
        return s.TypeName(name)

    def variable(self, name: str, type_: s.TypeExpr, initial: s.Expr, span: Span | None) -> str:
        """Declares a variable; its name as it stands in uses."""
        own = self.fresh(name)
        self.variables.append(p.Variable(own, type_, initial, span=span))
        return f"${own}"

    def use(
        self,
        out: str,
        operator: str,
        ins: tuple[str, ...],
        variables: tuple[str, ...],
        span: Span | None,
        *notes: p.Annotation,
    ) -> None:
        """A use whose operator writes all of its variables."""
        self.uses.append(p.Use((out, *variables), operator, (*ins, *variables), notes, span=span))

    def instance(self, title: str, template: str, args: Args, span: Span | None) -> str:
        """Declares an instance of a template; its name."""
        name = self.fresh(title)
        self.operators.append(p.Instance(name, f"cql.{template}", args, span=span))
        return name

    def listed(self, kind: t.Type, part: int) -> str:
        """The name of a function that lists counted values in their order, or part number `part` of each (-1: the values)."""
        known = self.functions.get((kind, part))
        if known is not None:
            return known.name
        item: s.Expr = s.Name("v") if part < 0 else s.Member(s.Name("v"), str(part))
        found = s.TypeName(
            "list", (expression(kind.items[part] if isinstance(kind, t.Tuple) and part >= 0 else kind),)
        )
        once = s.Block((s.Do(s.Call("push", (s.Name("found"), item))),))
        copies = s.For(None, ("i",), s.Range(s.Int(0), s.Name("c")), once)
        body = (
            s.VarDecl("found", found, s.ListValue(())),
            s.For(None, ("v", "c"), s.Name("values"), s.Block((copies,))),
            s.Return(s.Name("found")),
        )
        values = s.Param("values", s.TypeName("omap", (expression(kind), expression(t.I64))))
        made = s.Fn(self.fresh("listed"), (values,), found, s.Block(body))
        self.functions[kind, part] = made
        return made.name

    def folding(self, fold: r.Fold, kept: s.TypeExpr) -> str:
        """The name of a function that tells a state of the user's aggregate what came and went at an instant.

        That is told in the order of its values, and what came and went not at all: so the order of rows is in no result.
        """
        if fold in self.folds:
            return self.folds[fold].name
        a, state, row, count = s.Name("a"), s.Name("state"), s.Name("row"), s.Name("n")
        changes = s.Member(a, "changes")

        def told(function: s.Lambda, times: s.Expr) -> s.Stmt:
            change = s.Assign(state, applied(function, state, row))
            each = s.For(None, ("i",), s.Range(s.Int(0), times), s.Block((change,)))
            return s.For(None, ("row", "n"), changes, s.Block((each,)))

        before = s.Member(a, "state")
        body: tuple[s.Stmt, ...] = (
            s.VarDecl(
                "state",
                expression(fold.state),
                s.Call("coalesce", (before, fold.initial), span=fold.initial.span),
            ),
            told(fold.add, count),
        )
        if fold.remove is not None:
            body += (told(fold.remove, s.Unary("-", count)),)
        result = (s.FieldValue("state", state), s.FieldValue("changes", s.MapValue(())))
        body += (s.Return(s.RecordValue(result)),)
        made = s.Fn(self.fresh("folded"), (s.Param("a", kept),), kept, s.Block(body))
        self.folds[fold] = made
        return made.name

    def delta(self, row: s.TypeExpr) -> s.TypeExpr:
        """The type of a queue of deltas."""
        return s.TypeName("delta", (row,))

    # -- inputs

    def input(self, one: ty.Input) -> p.Input:
        """An input queue, and the operators that make deltas of it. Data have dates as times."""
        read = _each(one.row, dates.read)
        if read == one.row:
            return self.read(one, None)
        return self.read(evolve(one, row=read), one.row)

    def dated(self, rows: Deltas, row: t.Record, name: str, span: Span | None) -> Deltas:
        """Deltas as they are read, with dates."""
        made = record(
            (n, dates.from_data(s.Member(s.Name("r"), n), row.field(n) or k)) for n, k in rows.row.fields
        )
        shown = t.Record(tuple((n, row.field(n) or k) for n, k in rows.row.fields))
        return self.mapped(rows, shown, made, f"{name}_dated", span)

    def texts(self, rows: Deltas, name: str, span: Span | None) -> Deltas:
        """Deltas as they are told, with dates as texts."""
        row = _each(rows.row, dates.told)
        if row == rows.row:
            return rows
        made = record((n, dates.to_data(s.Member(s.Name("r"), n), k)) for n, k in rows.row.fields)
        return self.mapped(rows, row, made, f"{name}_told", span)

    def mapped(self, rows: Deltas, row: t.Record, made: s.Expr, name: str, span: Span | None) -> Deltas:
        """Deltas with each row `r` as what is made of it."""
        type_ = self.declare(name, expression(row), span)
        args: Args = (
            ("R", rows.type), ("O", type_), ("Tau", self.tau), ("keep", r.ALL), ("row", s.Lambda(("r",), made)),
            ("quiet", s.Bool(value=False)),
        )  # fmt: skip
        queue = self.fresh(name)
        self.use(
            queue,
            self.instance(name, "select", args, span),
            (rows.queue,),
            (),
            span,
            p.Annotation("Parallel"),
        )
        return Deltas(queue, row, type_)

    def read(self, one: ty.Input, dated: t.Record | None) -> p.Input:
        """An input queue of rows as data have them; `dated`: what the program takes them for, if they have dates."""
        row = self.declare(one.name, expression(one.row), one.span)
        operator, queue = self.fresh(f"{one.name}_in"), self.fresh(f"{one.name}_deltas")
        shown, kept, value = one.row, row, s.Name("r")
        if one.name in self.plan.read and _each(self.plan.read[one.name], dates.read) != one.row:
            shown = _each(self.plan.read[one.name], dates.read)
            kept = self.declare(f"{one.name}_read", expression(shown), one.span)
            value = record((name, s.Member(value, name)) for name, _ in shown.fields)
        if one.table:
            return self.table(one, operator, row, Deltas(queue, shown, kept), value, dated)
        now = self.variable(f"{one.name}_now", s.OptionalType(self.tau), s.NoneValue(), one.span)
        ins = self.variable(f"{one.name}_ins", s.TypeName("list", (kept,)), s.ListValue(()), one.span)
        variables, carried = (now, ins), row
        if one.kind == "stream":
            made = borders.stream_in(
                operator,
                row,
                kept,
                value,
                self.delta(kept),
                self.tau,
                self.instant(self.last),
                one.stamp.name,
                one.span,
            )
        else:
            columns = ((one.stamp.name, self.source.tau), (SIGN, t.STRING), *one.row.fields)
            carried = self.declare(f"{one.name}_change", expression(t.Record(columns)), one.span)
            deleted = self.variable(f"{one.name}_del", s.TypeName("list", (row,)), s.ListValue(()), one.span)
            rows = self.variable(f"{one.name}_rows", s.TypeName("bag", (row,)), s.MapValue(()), one.span)
            variables = (now, ins, deleted, rows)
            fields = tuple(name for name, _ in one.row.fields)
            made = borders.changes_in(
                operator,
                carried,
                row,
                fields,
                self.delta(row),
                self.tau,
                self.instant(self.last),
                one.stamp.name,
                SIGN,
                one.span,
            )
        self.operators.append(made)
        self.use(queue, operator, (one.name,), variables, one.span)
        rows = Deltas(queue, shown, kept)
        self.publish(
            one.name, rows if dated is None else self.dated(rows, dated, one.name, one.span), one.span
        )
        notes: tuple[p.Annotation, ...] = ()
        if one.computed is not None:
            columns = (
                one.row.fields
                if one.kind == "stream"
                else ((one.stamp.name, self.source.tau), (SIGN, t.STRING), *one.row.fields)
            )
            rest = expression(t.Record(tuple(each for each in columns if each[0] != one.stamp.name)))
            name = self.fresh(f"{one.name}_stamp")
            made = s.Fn(name, (s.Param("r", rest),), self.tau, one.computed.body, span=one.computed.span)
            self.stamps.append(made)
            notes = (p.Annotation("Stamp", (s.Name(name),)),)
        return p.Input(one.name, carried, one.stamp.name, notes, span=one.span)

    def table(
        self,
        one: ty.Input,
        operator: str,
        row: s.TypeExpr,
        rows: Deltas,
        value: s.Expr,
        dated: t.Record | None,
    ) -> p.Input:
        """A queue of one item, all rows of a table, and the operator that makes the first delta of them.

        `value` is what is kept of the row `r`.
        """
        whole = s.TypeName("list", (row,))
        first = self.instant(FIRST[self.source.tau])
        self.operators.append(
            borders.table_in(operator, whole, value, self.delta(rows.type), first, one.span)
        )
        self.use(rows.queue, operator, (one.name,), (), one.span)
        known = rows if dated is None else self.dated(rows, dated, one.name, one.span)
        self.publish(one.name, known, one.span)
        return p.Input(one.name, whole, None, (p.Annotation("Whole"),), span=one.span)

    def publish(self, name: str, rows: Deltas, span: Span | None, *extra: str) -> None:
        """Makes the queue of a name known, duplicated if several read it; `extra`: further readers."""
        readers = [
            source.label
            for view in self.source.views
            if view.name not in self.plan.own
            for source in view.query.sources
            if source.name == name
        ]
        count = len(readers) + len(extra)
        self.named[name] = rows
        if count < 2:
            self.copies[name] = [rows.queue]
            return
        copies = [self.fresh(f"{name}_{i + 1}") for i in range(count)]
        operator = self.fresh(f"copy_{name}")
        args: Args = (("T", self.delta(rows.type)), ("n", s.Int(count)), ("by", s.Name("tau")))
        self.operators.append(p.Instance(operator, "std.duplicate", args, span=span))
        self.uses.append(p.Use(tuple(copies), operator, (rows.queue,), span=span))
        self.copies[name] = copies

    # -- views

    def view(self, view: ty.View) -> tuple[p.Output, ...]:
        """A query, and what the world sees of it."""
        if view.name in self.plan.looked_up:
            return ()
        own = self.declare(view.name, expression(view.row), view.span)
        quiet = view.query.operator != "rstream" and view.name not in self.loud
        inner = Query(self, view)
        if view.name in self.plan.now:
            rows = present.stream(inner, own)
        else:
            rows = inner.relation(view.query.relation, quiet=quiet)
            if view.query.operator is not None:
                rows = inner.stream(rows, view.query.operator, own, quiet=quiet)
        if view.called is not None:
            rows = self.called(rows, view, view.called, own)
        shown = [
            source
            for other in self.source.views
            for source in other.query.sources
            if source.name == view.name
        ]
        if not shown:
            return (self.output(view, evolve(rows, row=view.row, type=own)),)
        extra = ("output",) if view.output else ()
        self.publish(view.name, Deltas(rows.queue, view.row, own), view.span, *extra)
        if not view.output:
            return ()
        return (self.output(view, Deltas(self.copies[view.name].pop(), view.row, own)),)

    def called(self, rows: Deltas, view: ty.View, called: Called, own: s.TypeExpr) -> Deltas:
        """Deltas with what a function in Python gives for each row."""
        columns = tuple((n, s.Member(s.Name("r"), n)) for n, _ in rows.row.fields)
        given = t.Record((*rows.row.fields, (called.column, called.operand_types)))
        made = record((*columns, (called.column, called.operands.body)))
        before = self.mapped(rows, given, made, f"{view.name}_operands", called.span)
        operator, queue = self.fresh(f"{view.name}_python"), self.fresh(f"{view.name}_values")
        port, out = s.Port("x", self.delta(before.type), "tau"), s.Out("y", self.delta(own), "tau")
        self.operators.append(
            s.Extern(operator, (port,), (), (out,), called.target, scalar=True, span=called.span)
        )
        self.use(queue, operator, (before.queue,), (), called.span)
        return Deltas(queue, view.row, own)

    def output(self, view: ty.View, rows: Deltas) -> p.Output:
        """The output of a view: the net changes of a relation, or the stamped rows of a stream."""
        span = view.span
        rows = self.texts(rows, view.name, span)
        own, row = rows.type, rows.row
        if view.kind == "relation":
            args: Args = (("R", own), ("Tau", self.tau))
            if not _is_net(self.source, view.query, view.query.relation) or view.name in self.loud:
                operator = self.instance(f"net_{view.name}", "net", args, span)
                self.use(view.name, operator, (rows.queue,), (), span, p.Annotation("Parallel"))
            else:
                self.rename(rows.queue, view.name)
            return p.Output(view.name, self.delta(own), "tau", span=span)
        made: s.Expr = s.Name("r")
        carried = own
        if not view.stamp.column:
            values = (s.FieldValue(name, s.Member(s.Name("r"), name)) for name, _ in row.fields)
            made = s.RecordValue((s.FieldValue(view.stamp.name, s.Member(s.Name("x"), "tau")), *values))
            columns = ((view.stamp.name, self.source.tau), *row.fields)
            carried = self.declare(f"{view.name}_row", expression(t.Record(columns)), span)
        operator = self.fresh(f"{view.name}_out")
        self.operators.append(
            borders.stream_out(operator, self.delta(own), carried, made, view.stamp.name, span)
        )
        self.use(view.name, operator, (rows.queue,), (), span)
        return p.Output(view.name, carried, view.stamp.name, span=span)

    def rename(self, queue: str, name: str) -> None:
        """Gives a queue the name of the output that it is."""
        for i, use in enumerate(self.uses):
            if isinstance(use, p.Use) and queue in use.outs:
                self.uses[i] = evolve(use, outs=tuple(name if out == queue else out for out in use.outs))


@define
class Query:
    """The operators of one view."""

    whole: Lowering
    view: ty.View

    def name(self, what: str, *more: str) -> str:
        """A telling name: what is done, for which view, to what."""
        return "_".join((what, self.view.name, *more))

    def row_type(self, what: str, row: t.Record, span: Span | None) -> s.TypeExpr:
        """The declared type of rows: that of the view itself where they are its rows."""
        expr = expression(row)
        name = self.view.name if row == self.view.row else f"{self.view.name}_{what}"
        return self.whole.declare(name, expr, span)

    def add(
        self, template: str, args: Args, ins: tuple[str, ...], variables: tuple[str, ...], made: Deltas, node: s.Node, *,
        title: str = "", keys: tuple[str, ...] | None = None, name: str = "", promise: str = "",
        apart: tuple[str, ...] | None = None,
    ) -> Deltas:  # fmt: skip
        """One operator: its instance and its use. `keys`: by which of the rows' columns its state is kept, if it is.

        `name`: what is done, if that is not the template's name. `promise`: an annotation that is true of the template,
        though its text does not show it. `apart`: the rows' columns of which it does not show that they keep rows apart.
        """
        span = node.span or self.view.span
        told = self.name(name or template, *([title] if title else []))
        operator = self.whole.instance(told, template, args, span)
        notes: tuple[p.Annotation, ...] = (p.Annotation(promise),) if promise else ()
        if keys is not None:
            notes = (p.Annotation("Parallel"),)
            notes += (p.Annotation("Keys", tuple(map(s.Name, keys))),) if keys else ()
        if apart:
            notes += (p.Annotation("Apart", tuple(map(s.Name, apart))),)
        self.whole.use(made.queue, operator, ins, variables, span, *notes)
        return made

    def queue(self, what: str) -> str:
        """A name for a queue."""
        return self.whole.fresh(f"{self.view.name}_{what}")

    # -- stream to relation

    def window(self, source: ty.Source, *, quiet: bool) -> Deltas:
        """A source through its window."""
        whole, title, rows = self.whole, source.label, self.copy(source)
        args: Args = (("R", rows.type), ("Tau", whole.tau))
        match source.window:
            case None | ty.Unbounded():
                return rows
            case ty.Range(length, step) if step:
                return windowing.sliding(self, source, rows, length, step)
            case ty.Range(length):
                item = s.RecordType((s.FieldType("t", whole.tau), s.FieldType("r", rows.type)))
                kept = self.variable(
                    f"window_{title}", s.TypeName("deque", (item,)), s.ListValue(()), source.span
                )
                args += (*whole.range(length), ("end", whole.instant(whole.last)))
                made = Deltas(self.queue(f"range_{title}"), rows.row, rows.type)
                apart = tuple(name for name, _ in rows.row.fields)  # rows have nothing to do with one another
                return self.add("range", args, (rows.queue,), (kept,), made, source, title=title, apart=apart)
            case ty.Expiring() | ty.RowSteps() | ty.Buckets() | ty.Sessions():
                return windowing.window(self, source, source.window, rows)
            case ty.RowWindow(count, ()):
                kept = self.variable(
                    f"window_{title}", s.TypeName("deque", (rows.type,)), s.ListValue(()), source.span
                )
                made = Deltas(self.queue(f"rows_{title}"), rows.row, rows.type)
                return self.add(
                    "rows", (*args, ("n", s.Int(count))), (rows.queue,), (kept,), made, source, title=title
                )
            case ty.RowWindow(1, keys) if keys:
                return self.last(source, rows, Deltas("", rows.row, rows.type), s.Name("r"), quiet=quiet)
            case ty.RowWindow(count, keys):
                kind, key = partition(keys, rows.row)
                state = s.TypeName("map", (kind, s.TypeName("deque", (rows.type,))))
                kept = self.variable(f"window_{title}", state, s.MapValue(()), source.span)
                args += (("K", kind), ("key", key), ("n", s.Int(count)))
                made = Deltas(self.queue(f"rows_{title}"), rows.row, rows.type)
                return self.add("rows_by", args, (rows.queue,), (kept,), made, source, title=title, keys=keys)

    def last(self, source: ty.Source, rows: Deltas, shown: Deltas, value: s.Expr, *, quiet: bool) -> Deltas:
        """Of the last row of each key what `value` makes of the row `r`, like `shown`."""
        assert isinstance(source.window, ty.RowWindow)  # noqa: S101 - for those alone
        keys, tau = source.window.keys, self.whole.tau
        kind, key = partition(keys, rows.row)
        item = s.RecordType((s.FieldType("row", shown.type), s.FieldType("at", s.OptionalType(tau))))
        kept = self.variable(
            f"window_{source.label}", s.TypeName("map", (kind, item)), s.MapValue(()), source.span
        )
        args: Args = (
            ("R", rows.type), ("O", shown.type), ("Tau", tau), ("K", kind), ("key", key),
            ("row", s.Lambda(("r",), value)), ("quiet", s.Bool(quiet)),
        )  # fmt: skip
        made = evolve(shown, queue=self.queue(f"last_{source.label}"))
        return self.add("last_by", args, (rows.queue,), (kept,), made, source, title=source.label, keys=keys)

    def copy(self, source: ty.Source) -> Deltas:
        """What a source says, for one reader."""
        return evolve(self.whole.named[source.name], queue=self.whole.copies[source.name].pop(0))

    def variable(self, what: str, type_: s.TypeExpr, initial: s.Expr, span: Span | None) -> str:
        """A variable of this view."""
        return self.whole.variable(f"{self.view.name}_{what}", type_, initial, span or self.view.span)

    # -- relation to relation

    def relation(self, node: r.Relation, *, quiet: bool) -> Deltas:
        """The queue of a relation."""
        match node:
            case r.Input(index, _):
                return self.window(self.view.query.sources[index], quiet=quiet)
            case r.Filter():
                return self.filter(node, quiet=quiet)
            case r.Unnest():
                rows = self.relation(node.input, quiet=quiet)
                values = (node.items.body, node.keep.body, node.make.body)
                return self.with_items(self.settled(rows, node.input, values, quiet=quiet), node, quiet=quiet)
            case r.Join():
                return self.join(node, quiet=quiet)
            case r.Group():
                return self.group(node, quiet=quiet)
            case r.Distinct(input, row):
                rows = self.relation(input, quiet=quiet)
                copies = t.Record((("n", t.I64), ("seen", t.BOOL), ("was", t.BOOL)))
                counts = s.TypeName("map", (rows.type, expression(copies)))
                kept = self.variable("copies", counts, s.MapValue(()), node.span)
                args: Args = (("R", rows.type), ("Tau", self.whole.tau), ("quiet", s.Bool(quiet)))
                once = closed.apart(self.view.query.sources, node)
                growing = not once and _only_comes(self.whole.source, self.view.query, input)
                args += (("once", s.Bool(once)), ("growing", s.Bool(growing)))
                keys = tuple(name for name, _ in row.fields)
                made = Deltas(self.queue("distinct"), row, rows.type)
                return self.add("distinct", args, (rows.queue,), (kept,), made, node, keys=keys)
            case r.Combine():
                return self.combine(node, quiet=quiet)
            case r.Outer():
                return self.outer(node, quiet=quiet)
            case r.Top():
                return self.top(node, quiet=quiet)

    def top(self, node: r.Top, *, quiet: bool) -> Deltas:
        """The first rows of each key, perhaps with their numbers."""
        rows = self.relation(node.input, quiet=quiet)
        type_ = self.row_type("first", node.row, node.span)
        key, order = (
            expression(node.key_type),
            self.row_type("order", node.order_type, node.span),
        )
        place = s.RecordType((s.FieldType("p", order), s.FieldType("r", rows.type)))
        entry = s.RecordType((
            s.FieldType("rows", s.TypeName("omap", (place, expression(t.I64)))),
            s.FieldType("was", s.TypeName("list", (type_,))), s.FieldType("seen", s.OptionalType(self.whole.tau)),
        ))  # fmt: skip
        state = self.variable("first", s.TypeName("map", (key, entry)), s.MapValue(()), node.span)
        more: s.Expr = (
            s.Bool(value=True) if node.most is None else s.Binary("<=", s.Name(node.by), s.Int(node.most))
        )
        growing = node.by == "number" and _only_comes(self.whole.source, self.view.query, node.input)
        kept = node.most if growing and node.most is not None else 0
        args: Args = (
            ("R", rows.type), ("O", type_), ("Tau", self.whole.tau), ("K", key), ("P", order), ("key", node.key),
            ("order", node.order), ("skipped", s.Int(node.skipped)), ("more", s.Lambda(r.NUMBERS[1:], more)),
            ("row", node.make), ("quiet", s.Bool(quiet)),
            ("once", s.Bool(closed.apart(self.view.query.sources, node))), ("kept", s.Int(kept)),
        )  # fmt: skip
        made = Deltas(self.queue("first"), node.row, type_)
        keys = _columns((node.key.body,), "r")
        return self.add("top", args, (rows.queue,), (state,), made, node, keys=keys or None)

    def combine(self, node: r.Combine, *, quiet: bool) -> Deltas:
        """`union all`, `except`, `intersect`."""
        left, right = (self.relation(side, quiet=quiet) for side in (node.left, node.right))
        args: Args = (("R", left.type), ("Tau", self.whole.tau), ("quiet", s.Bool(quiet)))
        made = Deltas(self.queue(node.word), node.row, left.type)
        queues = (left.queue, right.queue)
        if node.word == "union":
            return self.add("union", args, queues, (), made, node)
        a, b, none, one = s.Name("l"), s.Name("r"), s.Int(0), s.Int(1)
        match node.word, node.every:
            case "except", True:
                count: s.Expr = s.Call("max", (s.Binary("-", a, b), none))
            case "except", _:
                there = s.Binary("and", s.Binary(">", a, none), s.Binary("==", b, none))
                count = s.IfExpr(there, one, none)
            case _, True:
                count = s.Call("min", (a, b))
            case _:
                there = s.Binary("and", s.Binary(">", a, none), s.Binary(">", b, none))
                count = s.IfExpr(there, one, none)
        counts = t.Record((("l", t.I64), ("r", t.I64), ("was", t.I64), ("seen", t.BOOL)))
        state = s.TypeName("map", (left.type, expression(counts)))
        kept = self.variable("copies", state, s.MapValue(()), node.span)
        keys = tuple(name for name, _ in node.row.fields)
        args = (*args, ("count", s.Lambda(("l", "r"), count)))
        return self.add("combine", args, queues, (kept,), made, node, keys=keys, name=node.word)

    def filter(self, node: r.Filter, *, quiet: bool) -> Deltas:
        """Selection and projection; nothing where another operator reads what would be the rows as they come."""
        if node.keep == r.ALL and isinstance(node.input, r.Input):
            source = self.view.query.sources[node.input.index]
            match source.window:
                case ty.RowWindow(1, keys) if keys:
                    shown = Deltas("", node.row, self.row_type("selected", node.row, node.span))
                    return self.last(source, self.copy(source), shown, node.make.body, quiet=quiet)
                case _:
                    pass
        rows = self.relation(node.input, quiet=quiet)
        if node is not self.view.query.relation and node.row == rows.row and _keeps_rows(node):
            return rows
        rows = self.settled(rows, node.input, (node.keep.body, node.make.body), quiet=quiet)
        return self.selected(rows, node, quiet=quiet)

    def settled(
        self, rows: Deltas, relation: r.Relation, values: Iterable[s.Argument], *, quiet: bool
    ) -> Deltas:
        """The rows of a relation of which values are computed next: if one may trap, only those that stay for an instant.

        A row that comes and goes within one, such as one that lacks a partner until that comes, is in no bag.
        """
        if not any(map(_may_trap, values)) or _lasts(self.whole.source, self.view.query, relation):
            return rows
        args: Args = (("R", rows.type), ("Tau", self.whole.tau), ("quiet", s.Bool(quiet)))
        made = evolve(rows, queue=self.queue("settled"))
        return self.add("settled", args, (rows.queue,), (), made, relation, keys=())

    def selected(self, rows: Deltas, node: r.Filter, *, quiet: bool) -> Deltas:
        """Those of the rows that are kept, as they are made."""
        made = evolve(rows, queue=self.queue("selected"))
        if node.make != r.SAME and node.row != rows.row:
            made = Deltas(made.queue, node.row, self.row_type("selected", node.row, node.span))
        args: Args = (
            ("R", rows.type), ("O", made.type), ("Tau", self.whole.tau), ("keep", node.keep), ("row", node.make),
            ("quiet", s.Bool(quiet)),
        )  # fmt: skip
        return self.add("select", args, (rows.queue,), (), made, node, keys=())

    def with_items(self, rows: Deltas, node: r.Unnest, *, quiet: bool) -> Deltas:
        """The rows with the items of a list that each holds."""
        made = Deltas(self.queue("items"), node.row, self.row_type("items", node.row, node.span))
        alone = s.Lambda(("l",), s.ListValue(() if node.alone is None else (node.alone.body,)))
        args: Args = (
            ("R", rows.type), ("I", expression(node.item)), ("O", made.type), ("Tau", self.whole.tau), ("items", node.items),
            ("keep", node.keep), ("row", node.make), ("alone", alone), ("quiet", s.Bool(quiet)),
        )  # fmt: skip
        return self.add("unnest", args, (rows.queue,), (), made, node, keys=())

    def join(self, node: r.Join, *, quiet: bool) -> Deltas:
        """An equi-join, or the product if the key is unit."""
        left, right = self.relation(node.left, quiet=quiet), self.relation(node.right, quiet=quiet)
        if not _may_trap(node.make.body) or _lasts(self.whole.source, self.view.query, node):
            return self.met(node, left, right, quiet=quiet)
        pairs, made = _apart(node, left.row, right.row)
        rows = self.met(pairs, left, right, quiet=quiet)
        return self.selected(self.settled(rows, pairs, (made.make.body,), quiet=quiet), made, quiet=quiet)

    def met(self, node: r.Join, left: Deltas, right: Deltas, *, quiet: bool) -> Deltas:
        """The rows of a join of what its sides are."""
        type_ = self.row_type("joined", node.row, node.span)
        key, query = expression(node.key), self.view.query
        sides = (("left", left, node.left), ("right", right, node.right))
        once = closed.apart(query.sources, node)
        if node.band is not None:
            return self.banded(node, node.band, (left, right), type_, quiet=quiet, once=once)
        lasting = not once and all(_lasts(self.whole.source, query, side) for _, _, side in sides)
        orders = [lasting and _in_order(query, side) for _, _, side in sides]
        kinds = [
            s.TypeName("deque" if order else "bag", (rows.type,))
            for order, (_, rows, _) in zip(orders, sides, strict=True)
        ]
        state = [
            self.variable(side, s.TypeName("map", (key, kind)), s.MapValue(()), node.span)
            for kind, (side, _, _) in zip(kinds, sides, strict=True)
        ]
        args: Args = (
            ("L", left.type), ("R", right.type), ("O", type_), ("Tau", self.whole.tau), ("K", key),
            ("left", node.left_key), ("right", node.right_key), ("row", node.make), ("quiet", s.Bool(quiet)),
        )  # fmt: skip
        if lasting:
            args += (("Left", kinds[0]), ("Right", kinds[1]))
            for order, (side, _, _) in zip(orders, sides, strict=True):
                kept, row = s.Name("s"), s.Name("x")
                add = s.Call("push_back" if order else "add", (kept, row))
                remove = s.Call("pop_front", (kept,)) if order else s.Call("remove", (kept, row))
                args += (
                    (f"add_{side}", s.Lambda(("s", "x"), add)),
                    (f"remove_{side}", s.Lambda(("s", "x"), remove)),
                )
        else:
            args += (("once", s.Bool(once)),)
        made = Deltas(self.queue("joined"), node.row, type_)
        template = "join_lasting" if lasting else "join"
        return self.add(
            template,
            args,
            (left.queue, right.queue),
            tuple(state),
            made,
            node,
            keys=_shared_keys(node),
            name="join",
        )

    def banded(
        self,
        node: r.Join,
        band: r.Band,
        sides: tuple[Deltas, Deltas],
        type_: s.TypeExpr,
        *,
        quiet: bool,
        once: bool,
    ) -> Deltas:
        """A join of rows whose values lie near one another, which are kept in their order."""
        (left, right), key, kind = sides, expression(node.key), expression(band.type)
        state = tuple(
            self.variable(
                side,
                s.TypeName("map", (key, s.TypeName("omap", (kind, s.TypeName("bag", (rows.type,)))))),
                s.MapValue(()),
                node.span,
            )
            for side, rows in (("left", left), ("right", right))
        )
        args: Args = (
            ("L", left.type), ("R", right.type), ("O", type_), ("Tau", self.whole.tau), ("K", key), ("V", kind),
            ("left", node.left_key), ("right", node.right_key), ("row", node.make), *_near(band),
            ("quiet", s.Bool(quiet)), ("once", s.Bool(once)),
        )  # fmt: skip
        made = Deltas(self.queue("joined"), node.row, type_)
        keys = _shared_keys(node)
        return self.add(
            "join_band", args, (left.queue, right.queue), state, made, node, keys=keys, name="join"
        )

    def outer(self, node: r.Outer, *, quiet: bool) -> Deltas:
        """A join that keeps rows without partner."""
        left, right = self.relation(node.left, quiet=quiet), self.relation(node.right, quiet=quiet)
        type_, key = self.row_type("joined", node.row, node.span), expression(node.key)
        nothing = s.Call("zero", ())  # never asked for
        args: Args = (
            ("L", left.type), ("R", right.type), ("O", type_), ("Tau", self.whole.tau), ("K", key),
            ("left", node.left_key), ("right", node.right_key), ("row", node.make),
            ("left_can", node.left_can), ("right_can", node.right_can),
            ("left_alone", node.left_alone or s.Lambda(("l",), nothing)),
            ("right_alone", node.right_alone or s.Lambda(("r",), nothing)),
            ("keep_left", s.Bool(node.left_alone is not None)), ("keep_right", s.Bool(node.right_alone is not None)),
            ("quiet", s.Bool(quiet)),
        )  # fmt: skip
        template, more = "outer", cast("Args", ())
        if node.meets is not None:
            template, more = "outer_on", (("meets", node.meets),)
        if node.meets is not None and node.band is not None:
            template = "outer_band"
            more = (*more, ("V", expression(node.band.type)), *_near(node.band))
        state = tuple(
            self.variable(
                side, s.TypeName("map", (key, _partners(node, rows.type))), s.MapValue(()), node.span
            )
            for side, rows in (("left", left), ("right", right))
        )
        made = Deltas(self.queue("joined"), node.row, type_)
        queues = (left.queue, right.queue)
        return self.add(template, (*args, *more), queues, state, made, node, name="outer")

    def parts(self, node: r.Group) -> GroupParts:
        """The keys, accumulators and functions of groups; declares their types."""
        whole, title = self.whole, self.view.name
        growing = _only_comes(whole.source, self.view.query, node.input)
        kept = Accumulator(
            always=bool(node.keys), growing=growing, listed=whole.listed, folding=whole.folding
        )
        places = {a.name: kept.read(a) for a in node.aggregates}
        single = len(node.keys) == 1
        for key in node.keys:
            places[key.name] = s.Name("k") if single else s.Member(s.Name("k"), key.name)
        acc = whole.declare(f"{title}_acc", kept.type(), node.span)
        params = ("k", "a") if node.keys else ("a",)
        keep, make = (s.Lambda(params, over(expr, places), span=expr.span) for expr in (node.keep, node.make))
        kind: s.TypeExpr = s.RecordType(())
        if single:
            kind = expression(node.keys[0].type)
        elif node.keys:
            key_row = t.Record(tuple((key.name, key.type) for key in node.keys))
            kind = whole.declare(f"{title}_key", expression(key_row), node.span)
        value = key_of([(key.name, key.value) for key in node.keys])
        return GroupParts(kind, acc, s.Lambda(("r",), value), kept, keep, make)

    def group(self, node: r.Group, *, quiet: bool) -> Deltas:
        """Grouping and aggregation."""
        whole = self.whole
        rows = self.relation(node.input, quiet=quiet and bool(node.keys))
        read = (*(key.value for key in node.keys), *(a.argument for a in node.aggregates if a.argument))
        rows = self.settled(rows, node.input, read, quiet=quiet and bool(node.keys))
        type_ = self.row_type("grouped", node.row, node.span)
        parts = self.parts(node)
        once = bool(node.keys) and closed.apart(self.view.query.sources, node)
        args: Args = (("R", rows.type), ("O", type_), ("Tau", whole.tau))
        tail: Args = (
            ("Acc", parts.acc), *([("key", parts.key)] if node.keys else []), *parts.kept.arguments(), ("keep", parts.keep),
        )  # fmt: skip
        last: Args = (("row", parts.make), ("quiet", s.Bool(quiet)))
        made = Deltas(self.queue("grouped"), node.row, type_)
        if not node.keys:
            state = (
                self.variable("acc", parts.acc, parts.kept.zero(), node.span),
                self.variable("was", s.OptionalType(type_), s.NoneValue(), node.span),
            )
            return self.add("group_all", (*args, *tail, *last), (rows.queue,), state, made, node)
        told, value, row = self.told(node, parts, type_)
        entry = parts.entry(
            s.FieldType("seen", s.OptionalType(whole.tau)), s.FieldType("was", s.OptionalType(told))
        )
        args = (
            *args,
            ("K", parts.kind),
            ("V", told),
            *tail,
            ("value", value),
            ("row", row),
            last[1],
            ("once", s.Bool(once)),
        )
        groups = s.TypeName("map", (parts.kind, entry))
        state = (self.variable("groups", groups, s.MapValue(()), node.span),)
        keys = _columns((k.value for k in node.keys), "r")
        return self.add("group", args, (rows.queue,), state, made, node, keys=keys)

    def told(
        self, node: r.Group, parts: GroupParts, type_: s.TypeExpr
    ) -> tuple[s.TypeExpr, s.Lambda, s.Lambda]:
        """What is kept of the row that was told of a group last: its type, and the functions that make it and rows of it.

        That is what does not follow from the key; all, where equal keys may look different.
        """
        shown = fields(parts.make.body)
        single = len(node.keys) == 1
        keys = [s.Name("k") if single else s.Member(s.Name("k"), key.name) for key in node.keys]
        values = {name: value for name, value in shown.items() if value not in keys}
        floats = any(t.contains(key.type, *t.FLOATS) for key in node.keys)
        if floats or not values or len(shown) != len(node.row.fields):
            return type_, parts.make, s.Lambda(("k", "v"), s.Name("v"))
        kept = t.Record(tuple((name, kind) for name, kind in node.row.fields if name in values))
        row = record(
            (name, s.Member(s.Name("v"), name) if name in values else value) for name, value in shown.items()
        )
        made = self.whole.declare(f"{self.view.name}_told", expression(kept), node.span)
        value = s.Lambda(parts.make.params, record(values.items()), span=parts.make.span)
        return made, value, s.Lambda(("k", "v"), row, span=parts.make.span)

    # -- relation to stream

    def stream(self, rows: Deltas, operator: ty.Operator, own: s.TypeExpr, *, quiet: bool) -> Deltas:
        """`istream`, `dstream`, `rstream`; a stamp that is a column is filled in."""
        view = self.view
        if (
            operator == "istream"
            and quiet
            and not view.stamp.column
            and _only_comes(self.whole.source, view.query, view.query.relation)
        ):
            return rows
        args: Args = (
            ("R", rows.type), ("O", own), ("Tau", self.whole.tau), ("row", s.Lambda(("tau", "r"), self.stamped())),
        )  # fmt: skip
        out = Deltas(self.queue(operator), view.row, own)
        if operator == "rstream":
            state = self.variable("rows", s.TypeName("bag", (rows.type,)), s.MapValue(()), view.span)
            return self.add(operator, args, (rows.queue,), (state,), out, view)
        net = _is_net(self.whole.source, view.query, view.query.relation)
        return self.add(operator, (*args, ("net", s.Bool(net))), (rows.queue,), (), out, view, keys=())

    def stamped(self) -> s.Expr:
        """The row `r` of the view's relation as one of the stream, at the instant `tau`."""
        view = self.view
        if not view.stamp.column:
            return s.Name("r")
        return record(
            (name, s.Name("tau") if name == view.stamp.name else s.Member(s.Name("r"), name))
            for name, _ in view.row.fields
        )


@frozen
class GroupParts:
    """What groups are made of: types of keys and accumulators, the key of a row `r`, and functions of a group."""

    kind: s.TypeExpr
    acc: s.TypeExpr
    key: s.Lambda
    kept: Accumulator
    keep: s.Lambda
    make: s.Lambda

    def entry(self, *more: s.FieldType) -> s.TypeExpr:
        """The state of a group."""
        return s.RecordType((s.FieldType("acc", self.acc), *more))


def _each(row: t.Record, of: Callable[[t.Type], t.Type]) -> t.Record:
    """A row with another type for each column."""
    return t.Record(tuple((name, of(kind)) for name, kind in row.fields))


def _moved(by: int | None) -> s.Lambda:
    """A bound: a value and so much, but no more than there is; or none."""
    value: s.Expr = s.Name("v")
    if by:
        wide = s.Binary("+", s.Call("i128", (value,)), s.Call("i128", (s.Int(by),)))
        value = s.Call("i64.sat", (wide,))
    return s.Lambda(("v",), s.NoneValue() if by is None else value)


def _partners(node: r.Outer, row: s.TypeExpr) -> s.TypeExpr:
    """What is kept of the rows of a key: a bag, or how often each is there and how many partners it has."""
    if node.meets is None:
        return s.TypeName("bag", (row,))
    counted = s.TypeName("map", (row, expression(t.Record((("n", t.I64), ("partners", t.I64))))))
    return counted if node.band is None else s.TypeName("omap", (expression(node.band.type), counted))


def _near(band: r.Band) -> Args:
    """The values of both sides by which rows are kept in order, and which of them lie near one another."""
    low, high = band.low, band.high
    return (
        ("left_value", band.left), ("right_value", band.right), ("low", _moved(low)), ("high", _moved(high)),
        ("low_left", _moved(high and -high)), ("high_left", _moved(low and -low)),
    )  # fmt: skip


def _shared_keys(node: r.Join) -> tuple[str, ...] | None:
    """The columns that are the key of a join on both sides, if there are such."""
    a, b = _columns((node.left_key.body,), "l"), _columns((node.right_key.body,), "r")
    return (a or None) if a == b else None


def _plain(name: str) -> str:
    """A name as a plain word, whatever the text calls it."""
    return re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)


def _columns(values: Iterable[s.Expr], side: str) -> tuple[str, ...] | None:
    """The names of the columns that key expressions are, or None if some are no plain columns."""
    found: list[str] = []
    for value in values:
        match value:
            case s.Member(s.Name(row), name) if row == side:
                found.append(name)
            case s.TupleValue(items):
                inner = _columns(items, side)
                if inner is None:
                    return None
                found += inner
            case _:
                return None
    return tuple(found)


def _is_net(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never hold a row on both sides: each group, or part, shows its key."""
    if _only_comes(program, query, query.relation):
        return True
    match relation:
        case r.Distinct():
            return True
        case r.Combine(word="except" | "intersect"):
            return True
        case r.Top(key=key):
            return key.body == s.TupleValue(())
        case r.Group(_, _, keys, _, _, make):
            shown = fields(make.body).values()
            return all(s.Member(s.Name("g"), key.name) in shown for key in keys)
        case r.Filter(r.Input(index, _), _, keep, make) if keep == r.ALL:
            shown = fields(make.body).values()
            return all(s.Member(s.Name("r"), key) in shown for key in _last(query, index) or ("",))
        case r.Filter(input, _, _, make) if make == r.SAME:
            return _is_net(program, query, input)
        case r.Input(index, _):
            return bool(_last(query, index))
        case _:
            return False


def _may_trap(expr: s.Node) -> bool:
    """Whether a value that is not there may end the run: something is divided by it, or read from it as a text."""
    for node in walk(expr):
        match node:
            case s.Binary("/", _, by) | s.Call("div.trap" | "div.trunc" | "rem.trunc", (_, by)):
                if not isinstance(by, s.Int | s.Float):
                    return True
            case s.Call("cql.one_row" | "cql.time_like", _):
                return True
            case s.Call("cql.int_of" | "cql.float_of" | "cql.bool_of" | "cql.time_of", _):
                return True
            case s.Call(name, _) if decimals.is_cast(name):
                return True
            case _:
                pass
    return False


def _apart(join: r.Join, left: t.Record, right: t.Record) -> tuple[r.Join, r.Filter]:
    """A join whose rows are pairs of these rows, and what is made of them behind it."""
    sides = t.Record((("l", left), ("r", right)))
    pairs = evolve(join, row=sides, make=s.Lambda(("l", "r"), record((n, s.Name(n)) for n in ("l", "r"))))

    def read(node: s.Node) -> s.Node:
        match node:
            case s.Name("l" | "r" as side):
                return s.Member(s.Name("r"), side)
            case _:
                return rebuild(node, read)

    made = s.Lambda(("r",), cast("s.Expr", read(join.make.body)))
    return pairs, r.Filter(pairs, join.row, r.ALL, made, span=join.span)


def _lasts(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never delete a row at the instant at which it came."""
    match relation:
        case r.Input(index, _):
            source = query.sources[index]
            match source.window:
                case ty.RowWindow():
                    return bool(_last(query, index))
                case ty.Expiring(count=count):
                    return count == 0
                case ty.RowSteps():
                    return False
                case ty.Range() | ty.Buckets() | ty.Sessions():
                    return True
                case None | ty.Unbounded():
                    pass
            views = {view.name: view for view in program.views}
            if source.name in views:
                view = views[source.name]
                return view.kind == "stream" or _lasts(program, view.query, view.query.relation)
            return all(one.kind == "stream" or one.table for one in program.inputs if one.name == source.name)
        case r.Filter(input, _, _, _) | r.Unnest(input):
            return _lasts(program, query, input)
        case r.Join(left, right, band=band):
            return band is None and _lasts(program, query, left) and _lasts(program, query, right)
        case r.Group() | r.Distinct() | r.Top():
            return True
        case r.Outer():
            return False
        case r.Combine(left, right, _, word):
            return word != "union" or (_lasts(program, query, left) and _lasts(program, query, right))


def _in_order(query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's rows, those of each key too, go in the order in which they came."""
    match relation:
        case r.Input(index, _):
            return isinstance(query.sources[index].window, ty.Range)
        case r.Filter(input, _, _, _):
            return _in_order(query, input)
        case _:
            return False


def _only_comes(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never hold deletions: what is seen of streams stays, and what is made of it."""
    sources = (query.sources[i] for i in _sources(relation))
    return closed.grows(query.sources, relation) and all(_is_growing(program, one) for one in sources)


def _is_growing(program: ty.Program, source: ty.Source) -> bool:
    """Whether the deltas of a source never hold deletions."""
    match source.window:
        case ty.Unbounded() | ty.Buckets():
            return True
        case ty.Sessions(grows=grows):
            return grows
        case None:
            pass
        case _:
            return False
    for view in program.views:
        if view.name == source.name:
            return view.kind == "relation" and _only_comes(program, view.query, view.query.relation)
    return any(one.table for one in program.inputs if one.name == source.name)


def _last(query: ty.Query, index: int) -> tuple[str, ...]:
    """The keys of whose last rows a source consists, if it does."""
    window = query.sources[index].window
    return window.keys if isinstance(window, ty.RowWindow) and window.count == 1 else ()


def _loud(program: ty.Program, now: frozenset[str]) -> frozenset[str]:
    """The relations whose instants without change matter to a query that uses them."""
    loud: set[str] = set()
    for view in reversed(program.views):
        whole = (view.query.operator == "rstream" and view.name not in now) or (
            view.name in loud and view.kind == "relation"
        )
        heard = _sources(view.query.relation) if whole else _sources_of_totals(view.query.relation)
        loud |= {view.query.sources[i].name for i in heard if view.query.sources[i].window is None}
    return frozenset(loud)


def _sources(relation: r.Relation) -> set[int]:
    match relation:
        case r.Input(index, _):
            return {index}
        case r.Join(left, right) | r.Outer(left, right) | r.Combine(left, right):
            return _sources(left) | _sources(right)
        case (
            r.Filter(input, _, _, _) | r.Unnest(input) | r.Distinct(input, _) | r.Group(input) | r.Top(input)
        ):
            return _sources(input)


def _sources_of_totals(relation: r.Relation) -> set[int]:
    """The sources below an aggregate without groups."""
    match relation:
        case r.Input():
            return set()
        case r.Join(left, right) | r.Outer(left, right) | r.Combine(left, right):
            return _sources_of_totals(left) | _sources_of_totals(right)
        case r.Group(input, _, keys):
            return _sources_of_totals(input) if keys else _sources(input)
        case r.Filter(input, _, _, _) | r.Unnest(input) | r.Distinct(input, _) | r.Top(input):
            return _sources_of_totals(input)


def _keeps_rows(node: r.Filter) -> bool:
    """Whether a filter of rows of the type that it makes changes nothing."""
    made = fields(node.make.body)
    same = all(made.get(name) == s.Member(s.Name("r"), name) for name, _ in node.row.fields)
    return node.keep == r.ALL and (node.make == r.SAME or same)
