"""The calls after `from` that show a stream in windows: `tumble(s, 10 minutes)`, and the same as other engines write it.

What a stream is, by which column its time runs, and how long windows are, is told by position or by name: `hop(s, ts, interval
'1' minute, interval '10' minutes)`, `table(hop(table s, descriptor(ts), size => ..., slide => ...))`.
"""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import frozen
from river.diagnostics import closest
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.lang.lalr import Token
    from river.lang.parse import Builder
    from river.source import Span

LENGTHS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tumble": ("size",), "hop": ("slide", "size"), "cumulate": ("step", "size"), "session": ("gap",)}
)
"""The functions, and the lengths that each takes in this order."""

USAGE: Mapping[str, str] = MappingProxyType(
    {
        "tumble": "`tumble(s, 10 minutes)`",
        "hop": "`hop(s, 1 minute, 10 minutes)`: a window of 10 minutes each minute",
        "cumulate": "`cumulate(s, 1 minute, 10 minutes)`: each minute what has come of a window of 10 minutes",
        "session": "`session(s partition by k, 10 minutes)`",
    }
)


@frozen
class TableOperand:
    """`table s partition by k` among the operands."""

    name: str
    keys: tuple[s.Expr, ...] = ()


@frozen
class Named:
    """`size => 10 minutes` among the operands."""

    name: str
    value: Any


def micros(interval: s.Expr, span: Span | None) -> c.Length:
    """A literal such as `interval '5' minute` as a length."""
    match interval:
        case s.Call("duration", (s.Int(value),)):
            return c.Length(Fraction(value), "microseconds", span=span)
        case _:
            raise AssertionError(interval)


def window_table(builder: Builder, function: Token, given: tuple[Any, ...], span: Span) -> q.Source:
    """The source that a call is; the errors (code syntax-window-function) are noted at `builder`.

    `S(x > 3, y = 1)` are those rows of the stream S that meet conditions, as Esper writes them.
    """
    name = str(function).lower()

    def refuse(message: str, at: Span | None = None, help_line: str | None = None) -> None:
        usage = f"write {USAGE[name]}" if name in USAGE else None
        builder.report("syntax-window-function", message, at or span, help_line or usage)

    if name not in LENGTHS:
        if all(isinstance(one, s.Binary | s.Unary | s.IsNone) for one in given):
            where = s.joined("and", given)
            some = q.Select((q.Star(span=span),), (q.Source(str(function), span=span),), where, span=span)
            query = c.Query(some, "istream", span=span)
            return c.Derived(f"derived_{span.start}", str(function), None, query, span=span)
        near = closest(name, LENGTHS) or "there are `tumble`, `hop`, `cumulate` and `session`"
        refuse(f"no function `{function}` makes windows", builder.token_span(function), near)
        return c.Windowed("?", None, None, c.Unbounded(), span=span)
    roles, found = LENGTHS[name], dict[str, Any]()
    waiting = ["data", *roles]
    for one in given:
        role, value = (one.name.lower(), one.value) if isinstance(one, Named) else (None, one)
        match value:
            case s.Call(descriptor, (s.Name() as column,)) if descriptor.lower() == "descriptor":
                role, value = "timecol", column
            case s.Name() if role is None and waiting[:1] != ["data"]:
                role = "timecol"
            case _ if role is None and waiting:
                role = waiting[0]
            case _:
                pass
        if role not in ("timecol", "data", *roles) or role in found:
            refuse(f"`{name}` does not take this operand" if role not in found else f"`{role}` is said twice")
            return c.Windowed("?", None, None, c.Unbounded(), span=span)
        waiting = [each for each in waiting if each != role]
        found[role] = value
    if waiting:
        refuse(f"`{name}` has no {waiting[0]}")
        return c.Windowed("?", None, None, c.Unbounded(), span=span)
    table = _table(found["data"])
    lengths = [length(found[role]) for role in roles]
    stamp = found.get("timecol")
    if table is None or None in lengths or not isinstance(stamp, s.Name | None):
        refuse(f"these are no operands of `{name}`: a stream, its time stamp, and lengths of time")
        return c.Windowed("?", None, None, c.Unbounded(), span=span)
    if table.keys and name != "session":
        refuse(f"windows of `{name}` are the same for all rows: group by the key")
    window = c.WindowTable(name, tuple(each for each in lengths if each), table.keys, stamp, span=span)
    return c.Windowed(table.name, None, None, window, span=span)


def _table(value: Any) -> TableOperand | None:
    match value:
        case TableOperand():
            return value
        case s.Name(name):
            return TableOperand(name)
        case _:
            return None


def length(value: Any) -> c.Length | None:
    """The length of time that an operand is, or None."""
    match value:
        case c.Length():
            return value
        case s.Int(number) | s.Float(number):
            return c.Length(Fraction(str(number)), span=value.span)
        case s.Call("duration", _):
            return micros(value, value.span)
        case _:
            return None
