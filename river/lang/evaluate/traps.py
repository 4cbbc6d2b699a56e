"""Traps: how a firing ends when it cannot go on (il.md 2.4, P10)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from river.diagnostics import Diagnostic, Note
from river.lang.types import Record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from river.lang.typed import Extern, Operator, Value
    from river.lang.types import Type
    from river.source import Span

_REASONS = {
    "overflow": "the result is out of range",
    "division-by-zero": "division by zero",
    "shift-range": "the shift count is out of range",
    "conversion-range": "the value has no equal in the type wanted",
    "index-range": "the index is out of range",
    "key-missing": "there is no such key",
    "remove-missing": "there is nothing to remove",
    "optional-empty": "the value is none",
    "decimal-precision": "the result has too many digits",
    "bad-utf8": "the bytes are not UTF-8",
    "bad-parse": "the text cannot be read",
    "bad-regex": "the pattern is not a regular expression",
    "recursion-depth": "functions are nested too deeply",
    "assert": "the program gave up",
    "order-violation": "a key is below one that came before",
    "rate-violation": "not as many items were emitted as declared",
    "extern-failed": "the Python operator failed",
    "arena-limit": "the firing needs too much memory",
    "memory-limit": "the run needs too much memory",
    "deadline": "the firing took too long",
    "stopped": "the run was stopped",
}
_SHOWN = 80
_MOST = 4
"""Parts of a program that are named as where it may have happened."""


@contextmanager
def inside(within: Iterable[tuple[str, Span | None]]) -> Generator[None]:
    """Says of a trap of a constant in which parts of the user's program it happened."""
    try:
        yield
    except Trap as trap:
        trap.happened(within)
        raise


class Trap(Exception):  # noqa: N818 - the word of the IL
    """The end of a firing: the code of il.md 2.4 and its operands, the operation, the site and its span, the user's text."""

    def __init__(
        self, code: str, operands: tuple[Any, ...] = (), operator: str = "", site: int | None = None,
        span: Span | None = None,
        text: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(code, *operands)
        self.code = code
        self.operands = operands
        self.operator = operator
        self.site = site
        self.span = span
        self.text = text
        self.item: tuple[Type, Value] | None = None
        """The item that was being handled, with its type: whoever fires knows it and says so."""
        self.partly = False
        """Whether the item has further fields that nobody reads, and that therefore are not here."""
        self.within: tuple[str, ...] = ()
        """What users call the parts of their program in one of which it happened."""

    def placed(self, operator: Span | None) -> None:
        """Stands at its operator if it has no place: code that no text was written for, or nothing there is to blame.

        A deadline may pass anywhere, also in what a language brings with it, which is no text of the user's.
        """
        if self.span is None or (
            self.code == "deadline" and operator is not None and self.span.source != operator.source
        ):
            self.span = operator

    def happened(self, within: Iterable[tuple[str, Span | None]]) -> None:
        """Notes where it happened, of the parts whose work the operator does: those in whose text the trap stands, else all."""
        places = tuple(within)
        inside = [
            name for name, span in places if span is not None and self.span is not None and self.span in span
        ]
        self.within = tuple(inside) or tuple(name for name, _ in places)

    def show(self, fields: frozenset[str]) -> None:
        """Leaves of the item, a record, these fields: the others were not read, and may say anything."""
        if self.item is not None and isinstance(self.item[0], Record):
            declared, values = self.item[0].fields, self.item[1]
            kept = [(each, value) for each, value in zip(declared, values, strict=True) if each[0] in fields]
            self.item = Record(tuple(each for each, _ in kept)), tuple(value for _, value in kept)
            self.partly = len(kept) < len(declared)

    def diagnostic(self) -> Diagnostic:
        """The trap as a message: code `trap-...`, the reason with its operands, the place."""
        shown = [f"`{name}`" for name in self.within[:_MOST]]
        more = len(self.within) - len(shown)
        places = f"{', '.join(shown)}{f' and {more} more' if more else ''}"
        where = () if not shown else (Note(f"in {'one of ' if len(shown) > 1 else ''}{places}"),)
        return Diagnostic(f"trap-{self.code}", self._reason(), self.span, notes=where)

    def _reason(self) -> str:
        if self.text is not None:
            return self.text
        reason = _REASONS[self.code]
        match self.code, self.operands:
            case "index-range", (index, length):
                return f"{reason}: {index} of {length}"
            case _, ():
                return reason
            case _, operands if self.operator:
                return f"{reason}: `{self.operator}` of {', '.join(map(_shown, operands))}"
            case _, operands:
                return f"{reason}: {', '.join(map(_shown, operands))}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def rate_violation(operator: Operator | Extern, out: int, count: int) -> Trap:
    """The trap of a firing that did not emit as many items as an output states."""
    declared = operator.outs[out]
    text = f"`push` is {declared.push}, but a firing emitted {count}"
    return Trap("rate-violation", (count, declared.push), operator.name, None, declared.span, text)
