"""How the operators of a plan run as machine code, for people (`river explain --native`)."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Final

from backends.native.lanes import Lanes, lanes_of
from river.classes import evolve
from river.il.forwards import forwarded
from river.lang import typed
from river.lang.operations import OPERATIONS
from river.lang.trees import applied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backends.native.operator import NativeOperator, Refused
    from river.il.graph import Instance
    from river.source import Span

_WIDTH: Final = 100
_LONGEST: Final = 120
_CLASSES: Final = {
    "inline": "in place",
    "rt": "runtime library",
    "host": "Python, which compiles patterns that are made while the program runs, each once",
}


def native_report(instances: Sequence[Instance]) -> str:
    """Operators that run alike stand together: as machine code, in how many lanes, with what operations, or why not."""
    from backends.native.llvm import available

    if not available():
        return "native: llvmlite is not installed, the evaluator runs all operators, many times slower"
    from backends.native import NativeOperator, compile_native

    alike: dict[tuple[str, ...], list[str]] = {}
    native = 0
    for instance in instances:
        operator = instance.operator
        if isinstance(operator, typed.Operator):
            made = compile_native(operator)
            native += isinstance(made, NativeOperator)
            lines = tuple(_lines(made))
        else:
            lines = (f"PYTHON, one call a firing: the function `{operator.target}`",)
        alike.setdefault(lines, []).append(instance.name)
    found = [_head(native, len(instances))]
    for lines, names in alike.items():
        found += ["", fill(", ".join(names), _WIDTH, initial_indent="  ", subsequent_indent="  ")]
        found += [
            fill(line, _WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False)
            for line in lines
        ]
    return "\n".join(found)


def _head(native: int, count: int) -> str:
    if native == count:
        return f"native: machine code runs {'the operator' if count == 1 else f'all {count} operators'}"
    return f"native: machine code runs {native} of {count} operators, Python the others"


def _lines(made: NativeOperator | Refused) -> Iterator[str]:
    from backends.native import Refused

    if isinstance(made, Refused):
        yield "PYTHON, many times slower: the evaluator runs it, because there is no machine code for"
        for reason in made.reasons:
            yield f"- {reason.text}{_place(reason.span)}"
        return
    if forwarded(made.operator) is not None:
        yield "nothing is fired: what it sends is made of columns that it gets, nothing is copied"
        return
    lanes = lanes_of(made.operator)
    if not lanes:
        yield f"machine code, one firing after the other: {_kind(made.operator)}"
    for handler, how in lanes.items():
        told = "machine code" if len(lanes) == 1 else f"machine code for `{_handler(made.operator, handler)}`"
        if isinstance(how, Lanes):
            yield f"{told}, many firings side by side in vectors"
        elif handler == "rated":
            yield f"{told}, ONE FIRING AFTER THE OTHER, many times slower: {_said(how.reason)}{_place(how.span)}"
        else:
            yield f"{told}, one firing after the other: {_said(how.reason)}{_place(how.span)}"
    used = _operations(made)
    for name, text in _CLASSES.items():
        if used[name]:
            yield f"operations {text}: {' '.join(sorted(used[name]))}"


def _operations(made: NativeOperator) -> dict[str, set[str]]:
    """The library operations that firings use, by class."""
    op = made.operator
    found: dict[str, set[str]] = {name: set() for name in _CLASSES}
    for name in applied(evolve(op, consts=())):
        found[OPERATIONS[name].native].add(name)
    if not made.code.facts["host"]:
        found["host"] = set()  # all patterns are constants
    return found


def _kind(op: typed.Operator) -> str:
    return "it merges by keys" if op.merge is not None else "its inputs take turns"


def _handler(op: typed.Operator, name: str) -> str:
    """A handler as the text has it."""
    kind, _, port = name.partition(".")
    return f"on {op.ports[int(port)].name}" if kind == "item" else name


def _said(reason: str) -> str:
    """A reason that is not too long."""
    cut = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}...`"
    return f"{cut} do not fit into vectors" if cut.startswith("items of") else cut


def _place(span: Span | None) -> str:
    if span is None:
        return ""
    line, column = span.source.position(span.start)
    return f" ({span.source.name}:{line}:{column})"
