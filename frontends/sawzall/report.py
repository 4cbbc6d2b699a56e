"""What is found while a program is checked: everything is gathered before anything is refused."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import define, field

from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from collections.abc import Generator

    from river.source import Span


class Failed(Exception):  # noqa: N818 - the error is reported; this leaves the statement
    """What was being checked is given up; the report says why."""


@define
class Report:
    """Errors in the order in which they were found."""

    found: list[Diagnostic] = field(factory=list[Diagnostic])

    def error(self, code: str, message: str, span: Span | None, help_line: str | None = None) -> Failed:
        """Notes an error; the result may be raised."""
        self.found.append(Diagnostic(code, message, span, help=help_line))
        return Failed()

    @contextmanager
    def recover(self) -> Generator[None, None, None]:
        """Goes on behind the block when something in it fails; refusals of inner arrows join the report."""
        try:
            yield
        except Failed:
            pass
        except Rejected as rejected:
            self.found += [d for d in rejected.diagnostics if d not in self.found]
