"""What the user should know of instances that Python runs though machine code is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.diagnostics import Diagnostic, Note, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.native.contract import Reason


def refused(reasons: Sequence[tuple[str, Reason]], count: int) -> tuple[Diagnostic, ...]:
    """One warning for `count` operators that the evaluator runs; `reasons`: with the name of the instance."""
    if not reasons:
        return ()
    name, first = reasons[0]
    what = f"`{name}` is" if count == 1 else f"{count} operators are"
    message = f"{what} not compiled, which is many times slower: {first.text}"
    notes = tuple(Note(f"`{other}`: {reason.text}", reason.span) for other, reason in reasons[1:])
    return (Diagnostic("native-refused", message, first.span, Severity.WARNING, notes),)
