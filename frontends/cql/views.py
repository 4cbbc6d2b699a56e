"""Windows as Esper writes them behind a stream: `Trades#time(30 sec)`, `Trades.win:length(5)`, `Trades#groupwin(k)#length(3)`.

Siddhi writes `Trades#window.time(30 sec)`. Such a window of time does not hold its older end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import syntax as c
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.lang.lalr import Token
    from river.lang.parse import Builder
    from river.source import Span

BATCHES = {
    "time_batch": "rows that come in batches are `#time_batch(10 sec)`, or `tumble(s, 10 seconds)`, grouped by `window_end`",
    "ext_timed": "time is that of the time stamp: `#time(30 sec)`",
    "firstevent": "the first rows are `order by ts limit 1`",
    "firstlength": "the first rows are `order by ts limit n`",
    "firstunique": "the first row of each key is `row_number() over (partition by k order by ts) = 1` after `qualify`",
    "sort": "the first rows by an order are `order by a limit n`",
    "rank": "the first rows by an order are `order by a limit n`",
    "expr": "windows are of lengths of time, and of numbers of rows",
    "time_accum": "rows until a pause are `s[session 10 seconds]`",
    "time_order": "late rows wait by `--lateness 10s`",
}
"""What does instead of the views that are not here."""


def viewed(
    builder: Builder, views: Sequence[tuple[Token, tuple[c.Length | str, ...]]], span: Span
) -> c.Window:
    """The window that a chain of views is; the errors (code syntax-view) are noted at `builder`."""

    def refuse(word: Token, help_line: str) -> c.Window:
        builder.report(
            "syntax-view", f"`{word}` with these operands is no window", builder.token_span(word), help_line
        )
        return c.Unbounded(span=span)

    keys: tuple[s.Expr, ...] = ()
    *before, (last, args) = views
    for word, named in before:
        if _name(word) != "groupwin" or keys or not _columns(named):
            return refuse(word, "one view stands alone, or behind `#groupwin(k)`")
        keys = _columns(named)
    match _name(last), args:
        case "time", (c.Length() as length,):
            return c.Range(length, None, keys, open=True, span=span)
        case "ext_timed", (str(), c.Length() as length):
            return c.Range(length, None, keys, open=True, span=span)
        case "time_batch", (c.Length() as length,) if not keys:
            return c.Range(length, length, open=True, span=span)
        case "ext_timed_batch", (str(), c.Length() as length) if not keys:
            return c.Range(length, length, open=True, span=span)
        case "length", (c.Length(number, None),) if number.denominator == 1:
            return c.RowWindow(int(number), keys, span=span)
        case "length_batch", (c.Length(number, None),) if number.denominator == 1 and not keys:
            return c.RowWindow(int(number), (), int(number), span=span)
        case "keepall", ():
            return c.Unbounded(span=span)
        case "lastevent", ():
            return c.RowWindow(1, keys, span=span)
        case "unique", (_, *_) if _columns(args) and not keys:
            return c.RowWindow(1, _columns(args), span=span)
        case name, _:
            known = "there are `#time(30 sec)`, `#length(5)`, `#unique(k)`, `#lastevent()` and `#keepall()`"
            return refuse(last, BATCHES.get(name, known))


def _name(word: Token) -> str:
    """The name of a view, without what stands before it."""
    return str(word).replace(".", ":").lstrip("#").rpartition(":")[2].lower()


def _columns(args: Sequence[c.Length | str]) -> tuple[s.Expr, ...]:
    """The columns that operands name, if all of them do."""
    names = [arg for arg in args if isinstance(arg, str)]
    return tuple(map(s.Name, names)) if len(names) == len(args) else ()
