"""The operators at a program's borders, where rows with a time stamp become deltas and deltas become rows.

They are no templates because the key of a queue is a name, here that of the stamp's column. `end` is the last instant that there
is: as a mark it says that it is over, too (`river.ingress`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span


def stream_in(
    name: str, row: s.TypeExpr, kept: s.TypeExpr, value: s.Expr, delta: s.TypeExpr, tau: s.TypeExpr, end: s.Expr,
    stamp: str, span: Span | None,
) -> s.Operator:  # fmt: skip
    """The rows of each instant as one insertion, sent when a later row or a mark shows that the instant is over.

    `value` is what is kept of the row `r`, of type `kept`.
    """
    at = _member("r", stamp)
    sent = s.Emit("out", _record(tau=s.Name("now"), ins=s.Var("ins"), del_=s.ListValue(())))
    forget = (sent, s.Assign(s.Var("ins"), s.ListValue(())), s.Assign(s.Var("now"), s.NoneValue()))
    take = (s.Assign(s.Var("now"), at), s.Do(s.Call("push", (s.Var("ins"), value))))
    variables = (s.VarParam("now", s.OptionalType(tau)), s.VarParam("ins", s.TypeName("list", (kept,))))
    handlers = (
        s.ItemHandler("x", "r", s.Block((_when_over(at, forget), *take))),
        _marks(forget, end),
    )
    return _operator(name, s.Port("x", row, stamp), variables, s.Out("out", delta, "tau"), handlers, span)


def changes_in(
    name: str, change: s.TypeExpr, row: s.TypeExpr, fields: tuple[str, ...], delta: s.TypeExpr, tau: s.TypeExpr,
    end: s.Expr, stamp: str, sign: str, span: Span | None,
) -> s.Operator:  # fmt: skip
    """The change log of a relation as deltas. Deleting a row that is not there is a trap."""
    at = _member("r", stamp)
    sent = s.Emit("out", _record(tau=s.Name("now"), ins=s.Var("ins"), del_=s.Var("del")))
    forget = (
        sent,
        s.Assign(s.Var("ins"), s.ListValue(())),
        s.Assign(s.Var("del"), s.ListValue(())),
        s.Assign(s.Var("now"), s.NoneValue()),
    )
    own = s.Let("row", row, s.RecordValue(tuple(s.FieldValue(f, _member("r", f)) for f in fields)))
    wrong = s.Block((s.Trap(f"`{sign}` of a change is neither + nor -"),))
    removed = s.If(_is_sign(sign, "-"), _recorded("remove", "del"), wrong)
    read = s.If(_is_sign(sign, "+"), _recorded("add", "ins"), removed)
    variables = (
        s.VarParam("now", s.OptionalType(tau)),
        s.VarParam("ins", s.TypeName("list", (row,))),
        s.VarParam("del", s.TypeName("list", (row,))),
        s.VarParam("rows", s.TypeName("bag", (row,))),
    )
    take: tuple[s.Stmt, ...] = (_when_over(at, forget), s.Assign(s.Var("now"), at), own, read)
    handlers = (s.ItemHandler("x", "r", s.Block(take)), _marks(forget, end))
    return _operator(name, s.Port("x", change, stamp), variables, s.Out("out", delta, "tau"), handlers, span)


def table_in(
    name: str, whole: s.TypeExpr, value: s.Expr, delta: s.TypeExpr, first: s.Expr, span: Span | None
) -> s.Operator:
    """All rows of a table, which are one item, as what is inserted at the first instant: `value` of each row `r`."""
    rows: s.Expr = s.Name("rows")
    if value != s.Name("r"):
        rows = s.Comprehension(value, ("r",), rows)
    sent = s.Emit("out", _record(tau=first, ins=rows, del_=s.ListValue(())))
    handlers = (s.ItemHandler("x", "rows", s.Block((sent,))),)
    return _operator(name, s.Port("x", whole), (), s.Out("out", delta, "tau"), handlers, span)


def stream_out(
    name: str, delta: s.TypeExpr, row: s.TypeExpr, value: s.Expr, stamp: str, span: Span | None
) -> s.Operator:
    """The rows of a stream one by one: `value` is made of the row `r` and the delta `x`."""
    send = s.For(None, ("r",), _member("x", "ins"), s.Block((s.Emit("out", value),)))
    handlers = (
        s.ItemHandler("d", "x", s.Block((send,))),
        s.MarkHandler("k", s.Block((s.Mark("out", s.Name("k")),))),
    )
    return _operator(name, s.Port("d", delta, "tau"), (), s.Out("out", row, stamp), handlers, span)


def row_by_row(
    name: str, row: s.TypeExpr, key: str, sent: s.Stmt, out: s.TypeExpr, stamp: str, span: Span | None
) -> s.Operator:  # fmt: skip
    """What is sent of each row `r` as it comes, whose stamp goes on."""
    handlers = (s.ItemHandler("x", "r", s.Block((sent,))),)
    return _operator(name, s.Port("x", row, key), (), s.Out("out", out, stamp), handlers, span)


def _operator(
    name: str, port: s.Port, variables: tuple[s.VarParam, ...], out: s.Out, handlers: tuple[s.Handler, ...],
    span: Span | None,
) -> s.Operator:  # fmt: skip
    return s.Operator(name, (port,), variables, (out,), (), (), handlers, span=span)


def _when_over(at: s.Expr, forget: tuple[s.Stmt, ...], *also: s.Expr) -> s.If:
    """If an instant is pending that is before `at`, or if `also` holds: sends it."""
    over: s.Expr = s.Binary("<", s.Name("now"), at)
    for each in also:
        over = s.Binary("or", over, each)
    return s.If(s.Bind(s.Var("now"), "now"), s.Block((s.If(over, s.Block(forget)),)))


def _marks(forget: tuple[s.Stmt, ...], end: s.Expr) -> s.MarkHandler:
    level = s.Name("k")
    last = s.Binary("==", level, end)
    over = _when_over(level, forget, last)
    return s.MarkHandler("k", s.Block((over, s.Mark("out", level))))


def _recorded(operation: str, changes: str) -> s.Block:
    row = s.Name("row")
    return s.Block(
        (s.Do(s.Call(operation, (s.Var("rows"), row))), s.Do(s.Call("push", (s.Var(changes), row))))
    )


def _is_sign(sign: str, which: str) -> s.Expr:
    return s.Binary("==", _member("r", sign), s.String(which))


def _member(value: str, name: str) -> s.Expr:
    return s.Member(s.Name(value), name)


def _record(*, tau: s.Expr, ins: s.Expr, del_: s.Expr) -> s.Expr:
    return s.RecordValue((s.FieldValue("tau", tau), s.FieldValue("ins", ins), s.FieldValue("del", del_)))
