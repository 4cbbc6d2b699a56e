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
    from river.source import Source, Span

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
_HELP = {
    "rate-violation": "emit as many on each way through the firing; where the rate is left open, it may differ",
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
        self.called: tuple[str, ...] = ()
        """Texts of the user's program in one of which it happened, where the place does not say it."""

    def placed(self, operator: Operator | Extern) -> None:
        """Stands in the user's text: at the operator if it has no place, which is code that no text was written for.

        What a language brings with it is no text of the user's. A trap in there stands where the user calls it: at the one call
        in the operator, else at the operator, with what may have been called. A deadline may pass anywhere: it is
        at the operator.
        """
        own = operator.span
        if self.span is None:
            self.span = own
        if own is None or self.span is None or self.span.source == own.source:
            return
        if self.code == "deadline":
            self.span = own
        elif calls := _calls(operator, self.site, own.source):
            self.span = calls[0] if len(calls) == 1 else own
            self.called = tuple(dict.fromkeys(call.text for call in calls)) if len(calls) > 1 else ()

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
        notes = tuple(Note(_one_of(names)) for names in (self.called, self.within) if names)
        return Diagnostic(
            f"trap-{self.code}", self._reason(), self.span, notes=notes, help=_HELP.get(self.code)
        )

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


def _one_of(names: tuple[str, ...]) -> str:
    """`in one of` these, of which the first are shown."""
    shown = [f"`{name}`" for name in names[:_MOST]]
    more = len(names) - len(shown)
    return f"in {'one of ' if len(shown) > 1 else ''}{', '.join(shown)}{f' and {more} more' if more else ''}"


def _calls(operator: Operator | Extern, site: int | None, own: Source) -> list[Span]:
    """The calls in `own`, the user's text, by which an operator may come to a site in functions that are written elsewhere."""
    from river.lang import typed
    from river.lang.trees import nodes

    if site is None or isinstance(operator, typed.Extern):
        return []
    called = [{n.function for n in nodes(fn) if isinstance(n, typed.Call)} for fn in operator.fns]
    reach = {
        i for i, fn in enumerate(operator.fns) if any(getattr(n, "site", None) == site for n in nodes(fn))
    }
    while more := {i for i, inside in enumerate(called) if inside & reach} - reach:
        reach |= more
    spans = (n.span for n in nodes(operator) if isinstance(n, typed.Call) and n.function in reach)
    return list(dict.fromkeys(span for span in spans if span is not None and span.source == own))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def rate_violation(operator: Operator | Extern, out: int, count: int) -> Trap:
    """The trap of a firing that did not emit as many items as an output states."""
    declared = operator.outs[out]
    text = f"`push` is {declared.push}, but a firing emitted {count}"
    return Trap("rate-violation", (count, declared.push), operator.name, None, declared.span, text)
