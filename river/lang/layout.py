"""Documents that fit themselves to a line width, after Wadler's prettier printer and Lindig's strict form of it.

A group is printed on one line if it and what follows up to the next possible line end fit, else all its own lines
break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 110
INDENT = 2


@frozen
class Line:
    """A place to break; printed as `flat` when its group stays on one line. None: it always breaks."""

    flat: str | None


@frozen
class Nest:
    """A document whose broken lines are indented one step further."""

    doc: Doc


@frozen
class Group:
    """A document that is flat if it fits."""

    doc: Doc


Doc = str | Line | Nest | Group | tuple["Doc", ...]

SPACE = Line(" ")
SOFT = Line("")
HARD = Line(None)


def separated(items: Iterable[Doc], separator: Doc) -> Doc:
    """The items with `separator` between them."""
    parts: list[Doc] = []
    for item in items:
        if parts:
            parts.append(separator)
        parts.append(item)
    return tuple(parts)


def enclosed(opening: str, items: Iterable[Doc], closing: str) -> Doc:
    """The items between brackets and with commas; on lines of their own when they do not fit."""
    inner = separated(items, (",", SPACE))
    if not inner:
        return opening + closing
    return Group((opening, Nest((SOFT, inner)), SOFT, closing))


def braced(lines: Iterable[Doc]) -> Doc:
    """The documents in braces, each on its line."""
    inner = separated(lines, HARD)
    return ("{", Nest((HARD, inner)), HARD, "}") if inner else "{}"


def render(doc: Doc, width: int = WIDTH) -> str:
    """The text of the document."""
    out: list[str] = []
    column = 0
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]  # indentation, flat?, document
    while stack:
        indent, flat, top = stack.pop()
        match top:
            case str():
                out.append(top)
                column += len(top)
            case tuple():
                stack += [(indent, flat, part) for part in reversed(top)]
            case Nest(inner):
                stack.append((indent + INDENT, flat, inner))
            case Group(inner):
                stack.append((indent, flat or _fits(inner, stack, width - column), inner))
            case Line(text) if flat and text is not None:
                out.append(text)
                column += len(text)
            case Line():
                out.append("\n" + " " * indent)
                column = indent
    return "".join(out)


def _fits(doc: Doc, rest: list[tuple[int, bool, Doc]], room: int) -> bool:
    """Whether `doc` laid flat, and what follows it up to the next line end, is no longer than `room`."""
    following = len(rest)
    stack: list[tuple[bool, Doc]] = [(True, doc)]
    while room >= 0:
        if not stack:
            if following == 0:
                return True
            following -= 1
            _, flat, top = rest[following]
        else:
            flat, top = stack.pop()
        match top:
            case str():
                room -= len(top)
            case tuple():
                stack += [(flat, part) for part in reversed(top)]
            case Nest(inner):
                stack.append((flat, inner))
            case Group(inner):
                stack.append((flat, inner))  # of what follows, the last bracket breaks first
            case Line(text) if flat and text is not None:
                room -= len(text)
            case Line():
                return True
    return False
