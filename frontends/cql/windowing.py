"""From streams to relations: the operators of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from frontends.cql import typed as ty
from frontends.cql.declarations import Deltas
from frontends.cql.trees import record
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args
    from frontends.cql.queries import Query


def window(query: Query, source: ty.Source, *, quiet: bool) -> Deltas:
    """A source through its window."""
    whole, title, rows = query.whole, source.label, query.copy(source)
    args: Args = (("R", rows.type), ("Tau", whole.tau))
    match source.window:
        case None | ty.Unbounded():
            return rows
        case ty.Range(length, step) if step:
            return _sliding(query, source, rows, length, step)
        case ty.Range(length):
            item = s.RecordType((s.FieldType("t", whole.tau), s.FieldType("r", rows.type)))
            kept = query.variable(
                f"window_{title}", s.TypeName("deque", (item,)), s.ListValue(()), source.span
            )
            args += (*whole.range(length), ("end", whole.instant(whole.last)))
            made = Deltas(query.queue(f"range_{title}"), rows.row, rows.type)
            apart = tuple(name for name, _ in rows.row.fields)  # rows have nothing to do with one another
            return query.add("range", args, (rows.queue,), (kept,), made, source, title=title, apart=apart)
        case ty.Expiring() | ty.Recent() | ty.RowSteps() | ty.Buckets() | ty.Sessions():
            return _shown(query, source, source.window, rows)
        case ty.RowWindow(count, ()):
            kept = query.variable(
                f"window_{title}", s.TypeName("deque", (rows.type,)), s.ListValue(()), source.span
            )
            made = Deltas(query.queue(f"rows_{title}"), rows.row, rows.type)
            return query.add(
                "rows", (*args, ("n", s.Int(count))), (rows.queue,), (kept,), made, source, title=title
            )
        case ty.RowWindow(1, keys) if keys:
            return last(query, source, rows, Deltas("", rows.row, rows.type), s.Name("r"), quiet=quiet)
        case ty.RowWindow(count, keys):
            kind, key = partition(keys, rows.row)
            state = s.TypeName("map", (kind, s.TypeName("deque", (rows.type,))))
            kept = query.variable(f"window_{title}", state, s.MapValue(()), source.span)
            args += (("K", kind), ("key", key), ("n", s.Int(count)))
            made = Deltas(query.queue(f"rows_{title}"), rows.row, rows.type)
            return query.add("rows_by", args, (rows.queue,), (kept,), made, source, title=title, keys=keys)


def last(
    query: Query, source: ty.Source, rows: Deltas, shown: Deltas, value: s.Expr, *, quiet: bool
) -> Deltas:
    """Of the last row of each key what `value` makes of the row `r`, like `shown`."""
    assert isinstance(source.window, ty.RowWindow)  # noqa: S101 - for those alone
    keys, tau = source.window.keys, query.whole.tau
    kind, key = partition(keys, rows.row)
    item = s.RecordType((s.FieldType("row", shown.type), s.FieldType("at", s.OptionalType(tau))))
    kept = query.variable(
        f"window_{source.label}", s.TypeName("map", (kind, item)), s.MapValue(()), source.span
    )
    args: Args = (
        ("R", rows.type), ("O", shown.type), ("Tau", tau), ("K", kind), ("key", key),
        ("row", s.Lambda(("r",), value)), ("quiet", s.Bool(quiet)),
    )  # fmt: skip
    made = evolve(shown, queue=query.queue(f"last_{source.label}"))
    return query.add("last_by", args, (rows.queue,), (kept,), made, source, title=source.label, keys=keys)


def _sliding(query: Query, source: ty.Source, rows: Deltas, length: int, step: int) -> Deltas:
    """A window that changes at multiples of `step` alone."""
    whole, title = query.whole, source.label
    top = whole.last // step * step
    args: Args = (
        ("R", rows.type), ("Tau", whole.tau), *numbered(query), ("span", s.Int(length)), ("step", s.Int(step)),
        ("top", s.Int(top)), ("last", s.Int(top - length - 1)), ("end", whole.instant(whole.last)),
    )  # fmt: skip
    state = tuple(_kept(query, source, what, "deque", _timed(rows)) for what in ("window", "pending"))
    made = evolve(rows, queue=query.queue(f"slide_{title}"))
    return query.add("slide", args, (rows.queue,), state, made, source, title=title, promise="Steady")


def _shown(
    query: Query,
    source: ty.Source,
    window: ty.Expiring | ty.Recent | ty.RowSteps | ty.Buckets | ty.Sessions,
    rows: Deltas,
) -> Deltas:
    """The rows that a window shows."""
    match window:
        case ty.Expiring() | ty.Recent():
            return _expiring(query, source, window, rows)
        case ty.RowSteps(count, step):
            args: Args = (
                ("R", rows.type), ("Tau", query.whole.tau), ("n", s.Int(count)), ("step", s.Int(step)),
            )  # fmt: skip
            state = tuple(_kept(query, source, what, "deque", rows.type) for what in ("window", "pending"))
            made = evolve(rows, queue=query.queue(f"rows_{source.label}"))
            return query.add("row_steps", args, (rows.queue,), state, made, source, title=source.label)
        case ty.Buckets():
            return _buckets(query, source, window, rows)
        case ty.Sessions():
            return _sessions(query, source, window, rows)
        case _:
            assert_never(window)


def partition(keys: tuple[str, ...], row: t.Record) -> tuple[s.TypeExpr, s.Lambda]:
    """The type of the key of a partition, and the key of a row `r`; without keys all rows have one."""
    members = tuple(s.Member(s.Name("r"), key) for key in keys)
    kinds = tuple(dict(row.fields)[key] for key in keys)
    if len(keys) == 1:
        return expression(kinds[0]), s.Lambda(("r",), members[0])
    return expression(t.Tuple(kinds) if kinds else t.UNIT), s.Lambda(("r",), s.TupleValue(members))


def numbered(query: Query) -> Args:
    """The arguments that make a number of an instant, and the opposite."""
    x, tick = s.Name("x"), query.whole.source.tau == t.I64
    to, back = (x, x) if tick else (s.Call("micros", (x,)), s.Call("time", (x,)))
    return ("ticks", s.Lambda(("x",), to)), ("at", s.Lambda(("x",), back))


def _expiring(query: Query, source: ty.Source, window: ty.Expiring | ty.Recent, rows: Deltas) -> Deltas:
    whole, title, word = query.whole, source.label, "recent" if isinstance(window, ty.Recent) else "expiring"
    kind, key = partition(window.keys, rows.row)
    if isinstance(window, ty.Recent):
        item = s.RecordType((s.FieldType("t", whole.tau), s.FieldType("r", rows.type)))
        kept = s.TypeName("deque", (item,))
    else:
        kept = s.RecordType(
            (s.FieldType("last", whole.tau), s.FieldType("rows", s.TypeName("deque", (rows.type,))))
        )
    args: Args = (
        ("R", rows.type), ("Tau", whole.tau), ("K", kind), ("key", key), ("n", s.Int(window.count)),
        *whole.range(window.span_of_time), ("end", whole.instant(whole.last)),
    )  # fmt: skip
    state = (
        _kept(query, source, "window", "map", kind, kept),
        _kept(query, source, "due", "deque", _due(whole.tau, kind)),
    )
    made = evolve(rows, queue=query.queue(f"{word}_{title}"))
    return query.add(word, args, (rows.queue,), state, made, source, title=title)


def _buckets(query: Query, source: ty.Source, window: ty.Buckets, rows: Deltas) -> Deltas:
    whole, title = query.whole, source.label
    shown, row = _with_ends(query, source, rows, "buckets")
    args: Args = (
        ("R", rows.type), ("O", shown.type), ("Tau", whole.tau), *numbered(query), ("row", row),
        ("size", s.Int(window.size)), ("step", s.Int(window.step)), ("top", s.Int(whole.last - window.size)),
        ("end", whole.instant(whole.last)),
    )  # fmt: skip
    state = (
        _kept(query, source, "window", "deque", _timed(rows)),
        query.variable(f"next_{title}", s.OptionalType(expression(t.I64)), s.NoneValue(), source.span),
    )
    return query.add("buckets", args, (rows.queue,), state, shown, source, title=title, promise="Steady")


def _sessions(query: Query, source: ty.Source, window: ty.Sessions, rows: Deltas) -> Deltas:
    title, tau = source.label, query.whole.tau
    kind, key = partition(window.keys, rows.row)
    shown, row = _with_ends(query, source, rows, "sessions")
    args: Args = (("R", rows.type), ("O", shown.type), ("Tau", tau), ("K", kind), ("key", key), ("row", row))
    number, name = expression(t.I64), "growing_sessions" if window.grows else "sessions"
    if window.grows:
        args += (
            numbered(query)[0],
            ("gap", s.Int(window.gap)),
            ("top", s.Int(query.whole.last - window.gap)),
        )
        open_ = (s.FieldType("start", tau), s.FieldType("last", number))
        due = _due(number, kind)
    else:
        span, gap = query.whole.span(window.gap)
        args += (("Span", span), ("gap", gap), ("top", query.whole.instant(query.whole.last - window.gap)))
        open_ = (
            s.FieldType("start", tau),
            s.FieldType("last", tau),
            s.FieldType("rows", s.TypeName("list", (rows.type,))),
        )
        due = _due(tau, kind)
    state = (
        _kept(query, source, "window", "map", kind, s.RecordType(open_)),
        _kept(query, source, "due", "deque", due),
    )
    return query.add(name, args, (rows.queue,), state, shown, source, title=title, promise="Steady")


def _with_ends(query: Query, source: ty.Source, rows: Deltas, what: str) -> tuple[Deltas, s.Lambda]:
    """Rows with the ends of their window behind their columns, and the function that makes them."""
    ends = tuple((name, kind) for name, kind in source.row.fields if name in (ty.START, ty.END))
    row = t.Record((*rows.row.fields, *ends))
    type_ = query.row_type(f"{what}_{source.label}", row, source.span)
    values = [(name, s.Member(s.Name("r"), name)) for name, _ in rows.row.fields]
    make = s.Lambda(("r", "a", "b"), record((*values, (ty.START, s.Name("a")), (ty.END, s.Name("b")))))
    return evolve(rows, queue=query.queue(f"{what}_{source.label}"), row=row, type=type_), make


def _timed(rows: Deltas) -> s.TypeExpr:
    """A row with the number of its instant."""
    return s.RecordType((s.FieldType("t", expression(t.I64)), s.FieldType("r", rows.type)))


def _due(instant: s.TypeExpr, key: s.TypeExpr) -> s.TypeExpr:
    """A key with the instant at which a row of it came."""
    return s.RecordType((s.FieldType("t", instant), s.FieldType("k", key)))


def _kept(query: Query, source: ty.Source, what: str, container: str, *of: s.TypeExpr) -> str:
    """A variable of a window, empty at first."""
    empty: s.Expr = s.MapValue(()) if container == "map" else s.ListValue(())
    return query.variable(f"{what}_{source.label}", s.TypeName(container, of), empty, source.span)
