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
    inner: list[Doc] = []
    for item in items:
        inner += (",", SPACE, item) if inner else (SOFT, item)
    return Group((opening, Nest(tuple(inner)), SOFT, closing)) if inner else opening + closing


def braced(lines: Iterable[Doc]) -> Doc:
    """The documents in braces, each on its line."""
    inner = separated(lines, HARD)
    return ("{", Nest((HARD, inner)), HARD, "}") if inner else "{}"


def render(doc: Doc, width: int = WIDTH) -> str:
    """The text of the document."""
    out: list[str] = []
    column = indent = 0
    stack: list[Doc | None] = [doc]  # None: the end of a `Nest`; none of them is flat
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            column += len(top)
        elif isinstance(top, tuple):
            stack += top[::-1]
        elif isinstance(top, Group):
            flat = _flat(top.doc, indent, stack, width - column)
            if flat is None:
                stack.append(top.doc)
            else:
                out.append(flat)
                last = flat.rfind("\n") + 1
                column = len(flat) - last + (0 if last else column)
        elif isinstance(top, Line):
            out.append("\n" + " " * indent)
            column = indent
        elif top is None:
            indent -= INDENT
        else:
            indent += INDENT
            stack += (None, top.doc)
    return "".join(out)


def _flat(doc: Doc, indent: int, rest: list[Doc | None], room: int) -> str | None:
    """The text of `doc` laid flat, if it, and what follows it up to the next line end, is no longer than `room`.

    Lines that always break do so there, too: then all before the first one has to fit.
    """
    out: list[str] = []
    fits = False
    stack: list[Doc | None] = [doc]  # None: the end of a `Nest`
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack += top[::-1]
            continue
        if isinstance(top, Group):
            stack.append(top.doc)
            continue
        if isinstance(top, Nest):
            indent += INDENT
            stack += (None, top.doc)
            continue
        if top is None:
            indent -= INDENT
            continue
        text = top.flat if isinstance(top, Line) else top
        if text is None:
            text = "\n" + " " * indent
            fits = True
        out.append(text)
        room -= len(text)
        if room < 0 and not fits:
            return None
    return "".join(out) if fits or _ends(rest, room) else None


def _ends(rest: list[Doc | None], room: int) -> bool:
    """Whether what is left comes to a line end before it is longer than `room`."""
    for doc in reversed(rest):
        stack = [doc]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                room -= len(top)
                if room < 0:
                    return False
            elif isinstance(top, tuple):
                stack += top[::-1]
            elif isinstance(top, Line):
                return True
            elif top is not None:
                stack.append(top.doc)  # of what follows, the last bracket breaks first
    return True
