"""What River says to people: a code, a place, a reason, something to try.

A mistake of the user's is a `Diagnostic`, gathered and raised together as `Rejected`; a mistake of ours is an
`InternalError`. `render` is pure; only the command line prints.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.source import Span


class Severity(Enum):
    """How bad a diagnostic is; the value is the word that is printed."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


@frozen
class Note:
    """A second place that explains the first, or a line without a place."""

    message: str
    span: Span | None = None


@frozen
class Diagnostic:
    """One message: `code` is stable and greppable; `message` is lower case without full stop, names in backquotes.

    `span` is None only where no text is at fault (a missing file, a wrong argument); `place` then says where.
    `unread`: the declared input of which it tells that nothing reads it, so that the program does not have it.
    """

    code: str
    message: str
    span: Span | None = None
    severity: Severity = Severity.ERROR
    notes: tuple[Note, ...] = ()
    help: str | None = None
    place: str | None = None
    unread: str | None = None


class Rejected(Exception):  # noqa: N818 - the name says what happened to the user's text
    """The user's input was refused; carries all diagnostics at once."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(render(d) for d in self.diagnostics))


class InternalError(Exception):
    """A mistake of River's own; the message carries the text around the fault."""


def closest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """A help line naming the candidate nearest to `name`, or None when nothing is near.

    `likeness`: how like the name it is at least, from 0 to 1 (`difflib.SequenceMatcher.ratio`).
    """
    from difflib import get_close_matches

    known = list(names)
    same = [each for each in known if each.casefold() == name.casefold()]
    near = same or get_close_matches(name, known, n=1, cutoff=likeness)
    return f"did you mean `{near[0]}`?" if near else None


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as text: place, code, message, the line with a caret, notes and help."""
    head = f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"
    lines: list[str] = []
    if diagnostic.span is not None:
        lines += _located(diagnostic.span, head)
    else:
        lines.append(f"{diagnostic.place}: {head}" if diagnostic.place else head)
    for note in diagnostic.notes:
        if note.span is None:
            lines.append(f"  = note: {note.message}")
        else:
            lines += ["  " + line for line in _located(note.span, f"note: {note.message}")]
    if diagnostic.help:
        lines.append(f"  = help: {diagnostic.help}")
    return "\n".join(lines)


def _located(span: Span, head: str) -> list[str]:
    source = span.source
    start = min(span.start, len(source.text))
    row, column = source.position(start)
    text = source.line(row).expandtabs(1)
    width = max(1, min(span.end, source.line_starts[row - 1] + len(text)) - start)
    return [f"{source.name}:{row}:{column}: {head}", f"  | {text}", f"  | {' ' * (column - 1)}{'^' * width}"]
