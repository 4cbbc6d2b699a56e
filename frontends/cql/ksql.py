"""Windows as ksqlDB writes them: `from s window tumbling (size 30 seconds) group by k`, `a join b within 1 hours on ...`.

There, rows are grouped by their window, too, without saying so; `windowstart` and `windowend` are its ends.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from frontends.cql import syntax as c
from frontends.cql import typed as ty
from river.classes import evolve
from river.il.trees import rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.sql import syntax as q
    from river.lang.parse import Builder
    from river.source import Span

_PARTS: Final = r"(?i)(size|advance\s+by|retention|grace\s+period)?\s*([0-9.]+)\s+([a-z]+)"
_WINDOWS: Final = {
    "tumbling": ("tumble", ("size",)),
    "hopping": ("hop", ("advance", "size")),
    "session": ("session", ("",)),
}
_ENDS: Final = {"windowstart": ty.START, "windowend": ty.END}


def windows_said(builder: Builder, text: str, span: Span) -> c.Window:
    """The windows of a stream; how long they are kept (`retention`, `grace period`) is no matter of its meaning here."""
    _, word, *_ = re.split(r"[\s(]+", text.lower())
    function, roles = _WINDOWS[word]
    found = {
        part.group(1).lower().split()[0] if part.group(1) else "": _length(part, span)
        for part in re.finditer(_PARTS, text)
    }
    if not all(role in found for role in roles):
        message, help_line = (
            f"`window {word}` does not say how long it is",
            "write `window tumbling (size 30 seconds)`",
        )
        builder.report("syntax-window-function", message, span, help_line)
        return c.Unbounded(span=span)
    return c.WindowTable(function, tuple(found[role] for role in roles), grouped=True, span=span)


def within_said(builder: Builder, text: str, span: Span) -> tuple[c.Length, c.Length]:
    """How far before and behind a row of the left side those of the right side may be; how long rows are kept is left out."""
    found = [_length(part, span) for part in re.finditer(_PARTS, text) if part.group(1) is None]
    if len(found) not in (1, 2):
        builder.report("syntax-within-time", "this is no time", span, "write `within 1 hours`")
        found = [c.Length(Fraction(1), span=span)]
    return found[0], found[-1]


def in_groups(block: q.Select) -> q.Select:
    """A block whose windows are written so, grouped by them, too."""
    match block.sources:
        case (c.Windowed(window=c.WindowTable(grouped=True) as window) as source,):
            pass
        case _:
            return block
    keys = tuple(s.Name(key.name, span=key.span) for key in block.group if isinstance(key, s.Name | s.Member))
    window = evolve(window, grouped=False, keys=keys if window.function == "session" else ())

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name.lower() in _ENDS:
                return evolve(node, name=_ENDS[name.lower()])
            case _:
                return rebuild(node, rewrite)

    found = rebuild(evolve(block, sources=(evolve(source, window=window),)), rewrite)
    ends = tuple(s.Name(name, span=window.span) for name in _ENDS.values())
    return evolve(found, group=(*found.group, *ends)) if block.group else found


def _length(part: re.Match[str], span: Span) -> c.Length:
    return c.Length(Fraction(part.group(2)), part.group(3), span=span)
