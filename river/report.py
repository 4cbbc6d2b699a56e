"""What is found while a text is checked: everything is gathered before anything is refused."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Note, Rejected, Severity

if TYPE_CHECKING:
    from collections.abc import Generator

    from river.source import Span


class Failed(Exception):  # noqa: N818 - the error is reported; this leaves what cannot go on
    """What was being checked is given up; the report says why."""


@define
class Report:
    """Diagnostics in the order in which they were found."""

    found: list[Diagnostic] = field(factory=list[Diagnostic])

    def error(self, code: str, message: str, span: Span | None, help_line: str | None = None) -> Failed:
        """Notes an error; the result may be raised."""
        found = Diagnostic(code, message, span, help=help_line)
        if found not in self.found:  # what is looked at twice is told once
            self.found.append(found)
        return Failed()

    def note(self, message: str, span: Span | None = None) -> None:
        """Adds a note to what was found last."""
        last = self.found[-1]
        self.found[-1] = evolve(last, notes=(*last.notes, Note(message, span)))

    def warn(self, code: str, message: str, span: Span | None, help_line: str | None = None) -> None:
        """Notes a warning."""
        self.found.append(Diagnostic(code, message, span, Severity.WARNING, help=help_line))

    def remark(self, code: str, message: str, span: Span | None, help_line: str | None = None) -> None:
        """Notes a remark."""
        self.found.append(Diagnostic(code, message, span, Severity.REMARK, help=help_line))

    @contextmanager
    def recover(self) -> Generator[None]:
        """Goes on behind the block when something in it fails; refusals of inner arrows join the report."""
        try:
            yield
        except Failed:
            pass
        except Rejected as rejected:
            self.found += [d for d in rejected.diagnostics if d not in self.found]

    @property
    def errors(self) -> int:
        """How many errors there are."""
        return sum(d.severity is Severity.ERROR for d in self.found)

    def remarks(self) -> tuple[Diagnostic, ...]:
        """What was found, in the order of the text, when nothing of it is an error.

        Raises: Rejected with all errors.
        """
        found = sorted(self.found, key=lambda d: -1 if d.span is None else d.span.start)
        if self.errors:
            raise Rejected([d for d in found if d.severity is Severity.ERROR])
        return tuple(found)
