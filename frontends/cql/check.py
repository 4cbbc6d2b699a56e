"""The arrow from syntax to typed programs: what names denote, windows, streams against relations."""

from __future__ import annotations

from collections import ChainMap
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from frontends.cql import closed, externs, windows
from frontends.cql import syntax as c
from frontends.cql import typed as ty
from frontends.cql.assume import STAMP, assumed
from frontends.cql.blocks import nests
from frontends.cql.combine import combined
from frontends.cql.flatten import flat
from frontends.cql.group_windows import with_tables
from frontends.cql.grouping_sets import separate
from frontends.cql.in_time import in_time
from frontends.cql.inline import inlined
from frontends.cql.leading import led
from frontends.cql.narrow import narrowed
from frontends.cql.quoted import settled, texts
from frontends.cql.sessions import growing
from frontends.cql.spelling import as_declared
from frontends.sql import decimals
from frontends.sql import syntax as q
from frontends.sql import typed as r
from frontends.sql.calls import EXTERN
from frontends.sql.check import select
from frontends.sql.columns import Column, substitute
from frontends.sql.dates import DATE, WRITTEN, from_data
from frontends.sql.dates import read as as_read
from frontends.sql.expressions import RowExpressions
from frontends.sql.functions import TYPES as NAMED
from frontends.sql.sources import joined_by_name, with_elements
from frontends.sql.values import spelled
from river.classes import define, evolve, field, frozen
from river.diagnostics import Diagnostic, Severity, closest
from river.il.namespaces import Library
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Declared, Scope, expression, resolve, show
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TYPES: Mapping[str, Declared] = MappingProxyType(
    {
        **{name: Declared((), s.TypeName(show(kind))) for name, kind in NAMED.items() if name != show(kind)},
        "byte": Declared((), s.TypeName("string")),
        "interval": Declared((), s.TypeName("duration")),
        "date": Declared((), WRITTEN),
    }
)
"""What CQL's own names of types stand for."""


@cache
def scope() -> Scope:
    """What expressions may name: CQL's types, and the functions of its templates."""
    from frontends.cql import FRONTEND  # the package imports this module when it checks

    library = Library.on_demand({FRONTEND.name: FRONTEND.templates})
    return Scope(TYPES, library.namespaces[FRONTEND.name].fns)


SIGN = "op"
"""The column of an input relation's change log that says `+` or `-`."""


def check(program: c.Program) -> ty.Program:
    """The program with all names resolved and all types known.

    Raises: Rejected with every error found (codes cql-*, sql-*, lang-*).
    """
    report = Report()
    program = as_declared(program)
    functions = decimals.Functions()
    stand_ins = [externs.stand_in(function) for function in program.externs]
    called = {fn.name: fn for fn in stand_ins}
    known = Scope(
        TYPES, ChainMap(*(cast("dict[str, s.Fn]", each) for each in (functions, called, scope().fns)))
    )
    return _Checker(
        flat(in_time(with_tables(inlined(program, known, report), report), report)),
        report,
        known,
        functions,
        _externs(program),
    ).program()


def _externs(program: c.Program) -> Mapping[str, externs.Extern]:
    """The functions in Python, by the names that expressions call."""
    found: dict[str, externs.Extern] = {}
    for each in program.externs:
        params = tuple((name, resolve(type_, Scope(TYPES))) for name, type_ in each.params)
        result = resolve(each.result, Scope(TYPES))
        found[f"{EXTERN}{each.name}"] = externs.Extern(each.name, each.target, params, result)
    return found


@frozen
class _Named:
    """What a name of the program denotes to the queries that use it."""

    kind: ty.Kind
    row: t.Record
    stamp: str | None
    monotonic: bool
    closed: tuple[tuple[str, int], ...] = ()
    hidden: str | None = None
    stamps: frozenset[str] = frozenset()
    """Columns of a stream that say the instant of each row, too."""


@define
class _Checker:
    ast: c.Program
    report: Report
    scope: Scope
    """What expressions may name."""
    functions: decimals.Functions
    """Those of `scope` that are the program's own."""
    externs: Mapping[str, externs.Extern]
    decls: dict[str, c.Decl] = field(factory=dict[str, c.Decl])
    named: dict[str, _Named] = field(factory=dict[str, _Named])
    views: list[ty.View] = field(factory=list[ty.View])
    computed: dict[str, s.Lambda] = field(factory=dict[str, s.Lambda])
    tau: t.Primitive = t.I64
    clock: windows.Clock = field(init=False)

    def program(self) -> ty.Program:
        """The whole program."""
        report = self.report
        for decl in self.ast.decls:
            if decl.name in self.decls or decimals.is_cast(decl.name):
                report.error("cql-duplicate-name", f"`{decl.name}` is declared twice", decl.name_span)
            self.decls.setdefault(decl.name, decl)
        for decl in assumed(tuple(self.decls.values()), report):
            self.decls[decl.name] = decl
        for decl in tuple(self.decls.values()):
            if decl.stamp is not None:
                with report.recover():
                    self.decls[decl.name] = self.with_stamp(decl, decl.stamp)
        used = self.used()
        found = [i for d in self.decls.values() if d.query is None for i in self.guarded(d)]
        inputs = tuple(i for i in found if i.name in used)
        self.stamps(inputs)
        self.clock = windows.clock(self.ast, self.tau, report)
        for decl in self.ordered():
            with report.recover():
                self.views.append(self.view(decl, output=decl.output or decl.name not in used))
        if not any(decl.query for decl in self.decls.values()):
            report.error("cql-no-query", "nothing is asked: no declaration has a query", self.ast.span)
        for unused in (i for i in found if i.name not in used):
            message = f"no query uses `{unused.name}`"
            told = Diagnostic("cql-unused-input", message, unused.span, Severity.WARNING, unread=unused.name)
            report.found.append(told)
        views = narrowed(tuple(self.views))
        for each in (*inputs, *views):
            for node in walk(each):
                if isinstance(node, s.Call):
                    self.functions.get(node.function)  # those that an expression was made of, unchecked
        return ty.Program(
            self.tau, inputs, views, tuple(self.functions.made.values()), report.remarks(), span=self.ast.span
        )

    def used(self) -> set[str]:
        """The names that queries read. An inner query that nobody reads is forgotten, with a warning."""
        while True:
            queries = [decl.query for decl in self.decls.values() if decl.query is not None]
            found = {name for query in queries for name in _sources(query)}
            idle = [decl for decl in self.decls.values() if decl.inner and decl.name not in found]
            if not idle:
                return found
            for decl in idle:
                self.report.warn("cql-unused-query", "nobody uses this query", decl.span)
                del self.decls[decl.name]

    # -- inputs

    def guarded(self, decl: c.Decl) -> tuple[ty.Input, ...]:
        """The input that a declaration without query makes, or nothing with its errors noted."""
        with self.report.recover():
            return (evolve(self.input(decl), file=decl.file),)
        return ()

    def with_stamp(self, decl: c.Decl, stamp: s.Expr) -> c.Decl:
        """The declaration of an input whose time stamp is computed, with a column for that; it is hidden if it has no name."""
        if decl.query is not None or decl.type is None:
            message = "the time stamp of a query is that of its instants: `by` names its column"
            raise self.report.error("cql-stamp-computed", message, stamp.span, "write `by ts`")
        row = self.row(decl.type)
        found = RowExpressions(self.report, self.scope, (decl.name,), (row,), "in `by`").find(
            texts(stamp, frozenset(dict(row.fields)))
        )
        externs.refuse(found.expr, self.report)
        if found.type not in (t.I64, t.TIME):
            message = f"a time stamp is `int` or `time`, this is `{spelled(found.type)}`"
            help_line = (
                "say what stands for none: `coalesce(x, 0)`" if isinstance(found.type, t.Optional) else None
            )
            raise self.report.error("cql-stamp-type", message, stamp.span, help_line)
        name = decl.by or fresh(STAMP, {name for name, _ in row.fields})
        places = {Column(0, each): from_data(s.Member(s.Name("r"), each), kind) for each, kind in row.fields}
        self.computed[decl.name] = s.Lambda(("r",), substitute(found.expr, places), span=stamp.span)
        column = s.FieldType(name, expression(found.type), span=stamp.span)
        whole = evolve(decl.type, fields=(column, *decl.type.fields))
        return evolve(decl, type=whole, by=name, hidden=decl.by is None, stamp=None)

    def input(self, decl: c.Decl) -> ty.Input:
        """An input stream or relation."""
        error = self.report.error
        if decl.output:
            raise error("cql-output", f"`{decl.name}` comes from outside: it has no query", decl.name_span)
        if decl.type is None:
            help_line = f"write `{decl.name}: {{ts: int; ...}} {decl.kind} by ts;`"
            raise error(
                "cql-needs-type", f"the columns of `{decl.name}` are not known", decl.name_span, help_line
            )
        if decl.stamp is not None:
            raise Failed  # it was refused
        row = self.row(decl.type)
        for name, column in row.fields:
            if t.contains(as_read(column), DATE):
                message = f"dates inside of other values are not read, as in `{name}`"
                raise error("cql-column-type", message, decl.type.span, "declare them as `time` there")
        if decl.by is None and decl.kind == "relation":
            self.named[decl.name] = _Named("relation", row, None, monotonic=True)
            return ty.Input(
                decl.name, "relation", row, ty.Stamp(STAMP, column=False), table=True, span=decl.name_span
            )
        if decl.by is None:
            help_line = "say which column is the time stamp: `by ts`"
            raise error("cql-needs-stamp", f"`{decl.name}` has no time stamp", decl.name_span, help_line)
        stamp = row.field(decl.by)
        if stamp is None:
            names = [name for name, _ in row.fields]
            near = closest(decl.by, names) or f"there are {', '.join(f'`{name}`' for name in names)}"
            raise error("sql-unknown-column", f"unknown column `{decl.by}`", decl.by_span or decl.span, near)
        if stamp not in (t.I64, t.TIME):
            message = f"a time stamp is `int` or `time`, `{decl.by}` is `{spelled(stamp)}`"
            raise error("cql-stamp-type", message, decl.by_span or decl.span, _as_stamp(decl.by, stamp))
        if decl.kind == "relation":
            if row.field(SIGN) is not None:
                message = f"`{SIGN}` is the sign of a change of `{decl.name}`, no column can have that name"
                raise error("cql-reserved-column", message, decl.type.span)
            row = t.Record(tuple(f for f in row.fields if f[0] != decl.by))
            if not row.fields:
                raise error(
                    "cql-needs-type", f"`{decl.name}` has no columns but its time stamp", decl.type.span
                )
        if decl.hidden and len(row.fields) == 1 and decl.kind == "stream":
            message = f"`{decl.name}` has no columns but its time stamp, which is hidden"
            raise error("cql-needs-type", message, decl.type.span)
        kind: ty.Kind = "relation" if decl.kind == "relation" else "stream"
        self.named[decl.name] = _Named(
            kind, row, decl.by, monotonic=kind == "stream", hidden=decl.by if decl.hidden else None
        )
        stamp_of = ty.Stamp(decl.by, column=kind == "stream")
        computed = self.computed.get(decl.name)
        return ty.Input(decl.name, kind, row, stamp_of, computed=computed, span=decl.name_span)

    def row(self, type_: s.RecordType) -> t.Record:
        """The rows that a text declares; their values can travel and be compared."""
        row = resolve(type_, Scope(TYPES))
        assert isinstance(row, t.Record)  # noqa: S101 - of a record type
        for name, column in row.fields:
            if not t.is_item(column) or not t.is_key(column):
                self.report.error(
                    "cql-column-type", f"`{name}` cannot be a column: it is `{spelled(column)}`", type_.span
                )
        return row

    def stamps(self, inputs: tuple[ty.Input, ...]) -> None:
        """Finds the one type of all time stamps."""
        types: dict[t.Type, ty.Input] = {}
        for one in inputs:
            declared = self.decls[one.name]
            if declared.type is not None and declared.by is not None:
                types.setdefault(self.row(declared.type).field(declared.by) or t.I64, one)
        if len(types) > 1:
            a, b = list(types.values())[:2]
            message = f"`{a.name}` and `{b.name}` have time stamps of different types"
            self.report.error("cql-stamp-mixed", message, b.span, "time runs in one unit: `int` or `time`")
        self.tau = t.TIME if next(iter(types), t.I64) == t.TIME else t.I64

    # -- views

    def ordered(self) -> tuple[c.Decl, ...]:
        """The declarations with queries, each after those that it uses."""
        found: dict[str, c.Decl] = {}
        done: set[str] = set()

        def visit(decl: c.Decl, path: tuple[str, ...]) -> None:
            if decl.name in path:
                circle = " uses ".join(f"`{name}`" for name in (*path[path.index(decl.name) :], decl.name))
                self.report.error("cql-cyclic", f"a query cannot use itself: {circle}", decl.name_span)
                return
            if decl.name in done or decl.query is None:
                return
            for name in _sources(decl.query):
                if name in self.decls:
                    visit(self.decls[name], (*path, decl.name))
            done.add(decl.name)
            found[decl.name] = decl

        for decl in self.decls.values():
            visit(decl, ())
        return tuple(found.values())

    def view(self, decl: c.Decl, *, output: bool) -> ty.View:
        """A derived stream or relation."""
        query = decl.query
        assert query is not None  # noqa: S101 - of a declaration with a query
        kind: ty.Kind = "relation" if decl.kind == "relation" else "stream"
        if kind == "relation" and query.operator is not None:
            message = f"`{query.operator}` makes a stream, but `{decl.name}` is declared as a relation"
            self.report.error(
                "cql-stream-found", message, query.span, f"declare it as `{decl.name}: ... stream`"
            )
        if kind == "relation" and decl.by is not None:
            message = "a relation that is asked for has no time stamp: its changes carry it"
            self.report.error("cql-relation-stamp", message, decl.span, f"leave out `by {decl.by}`")
        before = self.report.errors
        body = query.select
        if isinstance(body, q.Select):
            body = led(body, self.report, lambda one: self.declared(one, f"{decl.name}_one"))
            body = evolve(body, sources=tuple(map(self.shown, body.sources)))
            body = cast("q.Select", self.with_elements(body, ()))
            body = settled(body, self.row_of, self.report)
            if any(x.joining is not None and x.joining.natural for x in body.sources):
                body = joined_by_name(body, tuple(map(self.row_of, body.sources)))
            body = separate(body, f"{decl.name}_grouping", self)
        if isinstance(body, q.Select) and nests(body):
            from frontends.cql.unnesting import unnested  # few queries have others inside

            body = unnested(body, decl.name, self, named=decl.type is None)
        sources = tuple(self.source(source) for source in body.sources if not isinstance(source, q.Unnest))
        stated = None if decl.type is None else self.row(decl.type)
        real = iter(sources)
        rows = tuple(
            self.row_of(each) if isinstance(each, q.Unnest) else next(real).row for each in body.sources
        )
        wanted = self.without_stamp(decl, stated)
        match body:
            case c.Combined():
                relation = combined(body, rows, wanted, self.report)
            case block:
                relation = select(block, rows, wanted, self.scope, self.report)
        if query.columns:
            relation = self.renamed(relation, query)
        if self.report.errors > before:
            raise Failed
        sources, relation = self.calling(decl, sources, relation)
        sources, relation = growing(sources, relation, self.tau)
        self.removable(sources, relation)
        monotonic = closed.grows(sources, relation) and all(self.grows(source) for source in sources)
        operator = query.operator
        if decl.kind == "query" and operator is None and not monotonic:
            kind = "relation"
        if kind == "stream" and operator is None:
            if not monotonic:
                message = "this relation may lose rows, so it is no stream by itself"
                help_line = "say what the stream tells: `istream(...)`, `dstream(...)` or `rstream(...)`"
                raise self.report.error("cql-not-monotonic", message, query.span, help_line)
            operator = "istream"
        row, stamp = self.stamped(decl, stated, relation.row, sources)
        stays = monotonic and operator != "rstream"
        told = tuple(closed.columns(sources, relation).items()) if stays else ()
        self.named[decl.name] = _Named(
            kind,
            row,
            stamp.name,
            monotonic or kind == "stream",
            told,
            decl.by if decl.hidden else None,
            self.stamps_of(sources, relation) if kind == "stream" and operator == "istream" else frozenset(),
        )
        found = ty.Query(sources, relation, _OPERATORS[operator], span=query.span)
        return ty.View(decl.name, kind, row, stamp, found, output, span=decl.name_span)

    def calling(
        self, decl: c.Decl, sources: tuple[ty.Source, ...], relation: r.Relation
    ) -> tuple[tuple[ty.Source, ...], r.Relation]:
        """What calls functions in Python reads relations that do."""
        known = list(sources)

        def below(inner: r.Relation, called: externs.Called) -> r.Relation:
            name = fresh(f"{decl.name}_{called.column}", {*self.decls, *self.named})
            row = t.Record((*inner.row.fields, (called.column, called.type)))
            own, inner = growing(*_renumbered(known, inner), self.tau)
            self.removable(own, inner)
            stays = closed.grows(own, inner) and all(map(self.grows, own))
            told = tuple(closed.columns(own, inner).items()) if stays else ()
            self.named[name] = _Named("relation", row, None, stays, told)
            stamp = ty.Stamp(STAMP, column=False)
            query = ty.Query(own, inner, None, span=decl.span)
            self.views.append(
                ty.View(name, "relation", row, stamp, query, output=False, called=called, span=decl.name_span)
            )
            known.append(ty.Source(name, name, row, None, told, span=decl.span))
            return r.Input(len(known) - 1, row, span=inner.span)

        found = externs.apart(relation, self.externs, below, self.report)
        return (sources, relation) if found is relation else _renumbered(known, found)

    def removable(self, sources: tuple[ty.Source, ...], relation: r.Relation) -> None:
        """Refuses aggregates of the user's that do not say what a row that goes makes of them, where rows go."""
        for group in (node for node in walk(relation) if isinstance(node, r.Group)):
            below = [sources[node.index] for node in walk(group.input) if isinstance(node, r.Input)]
            stays = closed.grows(sources, group.input) and all(
                self.grows(source) or (isinstance(source.window, ty.Sessions) and source.window.grows)
                for source in below
            )
            for aggregate in group.aggregates:
                if aggregate.fold is not None and aggregate.fold.remove is None and not stays:
                    message = "this aggregate does not say what a row that goes makes of it, and here rows go"
                    help_line = "give it a part `remove: {...}`, or take windows from which no row goes: `tumble(s, 5 minutes)`"
                    raise self.report.error("cql-aggregate", message, aggregate.span, help_line)

    # -- what nested queries ask for (`World`)

    def row_of(self, source: q.Source) -> t.Record:
        """The rows of a source."""
        if isinstance(source, q.Unnest):
            if source.row is None:
                raise Failed  # it was refused
            return source.row
        return self.source(source).row

    def with_elements(self, node: s.Node, around: tuple[q.Source, ...]) -> s.Node:
        """A part of a block with the columns of its sources of values, also in queries inside of its expressions."""
        if not isinstance(node, q.Select):
            return rebuild(node, lambda child: self.with_elements(child, around))
        block = with_elements(node, self.row_of, self.scope, self.report, around)
        inside = (*around, *block.sources)
        return rebuild(block, lambda child: self.with_elements(child, inside))

    def renamed(self, relation: r.Relation, query: c.Query) -> r.Relation:
        """A relation whose first columns have the names that stand behind its query."""
        own = [name for name, _ in relation.row.fields]
        names = (*query.columns, *own[len(query.columns) :])
        if len(names) > len(own) or len(set(names)) < len(names):
            message = f"these {len(query.columns)} names do not fit {len(own)} columns"
            raise self.report.error("sql-arity", message, query.span, "write a name for each column")
        row = t.Record(
            tuple((name, kind) for name, (_, kind) in zip(names, relation.row.fields, strict=True))
        )
        values = tuple(
            s.FieldValue(name, s.Member(s.Name("r"), each)) for name, each in zip(names, own, strict=True)
        )
        return r.Filter(relation, row, r.ALL, s.Lambda(("r",), s.RecordValue(values)), span=query.span)

    def declared(self, query: c.Query, title: str) -> str:
        """The name of a relation that is made for a query."""
        name = fresh(title, set(self.decls))
        decl = c.Decl(name, None, "relation", None, query, name_span=query.span, inner=True, span=query.span)
        self.decls[name] = decl
        self.views.append(self.view(decl, output=False))
        return name

    # -- rows and stamps

    def shown(self, source: q.Source) -> q.Source:
        """A source with the column that `*` leaves out."""
        found = self.named.get(source.name)
        return source if found is None or found.hidden is None else evolve(source, hidden=found.hidden)

    def without_stamp(self, decl: c.Decl, stated: t.Record | None) -> t.Record | None:
        """What the select list must give: all declared columns but the time stamp, which River fills in."""
        if stated is None or decl.by is None or decl.kind == "relation":
            return stated
        found = stated.field(decl.by)
        if found is not None and found != self.tau:
            message = f"the time stamp `{decl.by}` is `{spelled(self.tau)}` here, not `{spelled(found)}`"
            self.report.error("cql-stamp-type", message, decl.span)
        return t.Record(tuple(f for f in stated.fields if f[0] != decl.by))

    def stamped(
        self, decl: c.Decl, stated: t.Record | None, row: t.Record, sources: tuple[ty.Source, ...]
    ) -> tuple[t.Record, ty.Stamp]:
        """The rows that the name denotes, and their time stamp."""
        if decl.kind == "stream" and decl.by is not None:
            if row.field(decl.by) is not None:
                message = f"`{decl.by}` is the time stamp, which is filled in"
                raise self.report.error(
                    "cql-stamp-selected", message, decl.span, "leave it out of the select list"
                )
            if stated is not None and stated.field(decl.by) is not None:
                return stated, ty.Stamp(decl.by, column=True)
            return t.Record(((decl.by, self.tau), *row.fields)), ty.Stamp(decl.by, column=True)
        taken = {name for name, _ in row.fields}
        stamps = (stamp for x in sources if (stamp := self.named[x.name].stamp) is not None)
        first = next(stamps, STAMP)
        return row, ty.Stamp(first if first not in taken else fresh("tau", taken), column=False)

    def stamps_of(self, sources: tuple[ty.Source, ...], relation: r.Relation) -> frozenset[str]:
        """The columns of what comes that are time stamps of a source as they are."""
        seen = [
            evolve(each, closed=tuple((name, 0) for name in self.columns_of_time(each))) for each in sources
        ]
        return frozenset(name for name, behind in closed.columns(seen, relation).items() if behind == 0)

    def columns_of_time(self, source: ty.Source) -> frozenset[str]:
        """The columns of a source that say at which instant its rows have come."""
        found = self.named[source.name]
        at_once = isinstance(source.window, ty.Unbounded) or (
            isinstance(source.window, ty.Range) and not source.window.slide
        )
        if found.kind != "stream" or not at_once:
            return frozenset()
        own = (
            {found.stamp}
            if found.stamp is not None and found.row.field(found.stamp) is not None
            else set[str]()
        )
        return found.stamps | own

    # -- sources and windows

    def source(self, source: q.Source) -> ty.Source:
        """A named stream through its window, or a named relation."""
        found = self.named.get(source.name)
        if found is None:
            raise Failed  # it is declared, and refused; or unknown, and said so
        window = source.window if isinstance(source, c.Windowed) else None
        if found.kind == "relation":
            if window is not None:
                inner = self.decls[source.name].inner if source.name in self.decls else False
                what = "this query" if inner else f"`{source.name}`"
                message = f"{what} is a relation: only streams are seen through windows"
                hint = "what comes into it is a stream: `from istream(select ...) [...]`"
                raise self.report.error("cql-window-on-relation", message, window.span, hint)
            return ty.Source(source.name, source.label, found.row, None, found.closed, span=source.span)
        view: ty.Window = ty.Unbounded(span=source.span)
        if window is not None:
            if isinstance(window, c.WindowTable) and not {ty.START, ty.END} & {
                n for n, _ in found.row.fields
            }:
                view = ty.Buckets(1, 1, span=window.span)
            with self.report.recover():  # the columns of a refused window are known all the same
                named = window.stamp if isinstance(window, c.WindowTable | c.Now) else None
                stamp = (
                    named.name if named is not None and named.name in found.stamps else found.stamp or STAMP
                )
                view = windows.seen(window, found.row, stamp, self.clock, self.report)
        row = windows.shown(found.row, view, self.tau)
        told = found.closed if isinstance(view, ty.Unbounded) else windows.closed(view)
        return ty.Source(source.name, source.label, row, view, told, span=source.span)

    def grows(self, source: ty.Source) -> bool:
        """Whether a source never loses a row."""
        return (source.window is None and self.named[source.name].monotonic) or isinstance(
            source.window, ty.Unbounded | ty.Buckets
        )


def _as_stamp(name: str, type_: t.Type) -> str | None:
    """What to write where a column of such a type should be the time stamp."""
    match type_:
        case t.Optional():
            return f"say what stands for none: `by coalesce({name}, ...)`"
        case t.Primitive("f64") | t.Primitive("f32") | t.Decimal():
            return f"write `by cast({name} * 1000 as int)`, after `tick 1 millisecond;`"
        case t.STRING:
            return f"write `by to_timestamp({name})`, or `by cast({name} as int)`"
        case _:
            return f"write `by cast({name} as timestamp)`" if type_ == DATE else None


def _renumbered(
    sources: Sequence[ty.Source], relation: r.Relation
) -> tuple[tuple[ty.Source, ...], r.Relation]:
    """A relation over those of the sources alone that it reads."""
    read = sorted({node.index for node in walk(relation) if isinstance(node, r.Input)})

    def rewrite(node: s.Node) -> s.Node:
        return (
            evolve(node, index=read.index(node.index))
            if isinstance(node, r.Input)
            else rebuild(node, rewrite)
        )

    return tuple(sources[i] for i in read), cast("r.Relation", rewrite(relation))


def _sources(query: c.Query) -> dict[str, None]:
    """The names that a query reads, in the order of the text; those inside of it, too."""
    return {node.name: None for node in walk(query) if isinstance(node, q.Source)}


_OPERATORS: Mapping[str | None, ty.Operator | None] = MappingProxyType(
    {None: None, "istream": "istream", "dstream": "dstream", "rstream": "rstream"}
)
