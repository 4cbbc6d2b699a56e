"""How the operators of a plan run as machine code, for people (`river explain --native`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.lanes import Lanes, lanes_of
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.multicore.plan import Plan
    from backends.native.operator import NativeOperator, Refused
    from river.source import Span


def native_report(plan: Plan) -> str:
    """A line or more for each instance: machine code and in how many lanes, or why not."""
    from backends.native.jit import available

    if not available():
        return "native: llvmlite is not installed, the evaluator runs all operators"
    from backends.native import compile_native

    lines = ["native:"]
    for node in plan.nodes:
        operator = node.instance.operator
        if isinstance(operator, typed.Operator):
            made = compile_native(operator)
            lines += [f"  {node.instance.name}: {line}" for line in _lines(made)]
        else:
            lines.append(f"  {node.instance.name}: Python, `{operator.target}`")
    return "\n".join(lines)


def _lines(made: NativeOperator | Refused) -> Iterator[str]:
    from backends.native import Refused

    if isinstance(made, Refused):
        reasons = "; ".join(f"{reason.text}{_place(reason.span)}" for reason in made.reasons)
        yield f"evaluator, because there is no machine code for {reasons}"
        return
    yield "machine code"
    for handler, how in lanes_of(made.operator).items():
        if isinstance(how, Lanes):
            yield f"  {handler}: many firings side by side"
        elif handler == "rated":
            yield f"  {handler}: ONE FIRING AFTER THE OTHER, many times slower: {how.reason}{_place(how.span)}"


def _place(span: Span | None) -> str:
    if span is None:
        return ""
    line, column = span.source.position(span.start)
    return f" ({span.source.name}:{line}:{column})"
