"""Which instances of a plan run as machine code, and the variables that these keep in native memory."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from attrs import define, field

from river.diagnostics import Diagnostic, Note, Severity
from river.lang import typed

if TYPE_CHECKING:
    from backends.multicore.plan import Plan
    from backends.native.operator import NativeOperator, Reason, Variable


@define
class Compiled:
    """By instance its machine code, or why it has none: then the evaluator runs it. Variables by name.

    `python`: the instances that run in Python though machine code is wanted, those of `extern` operators included.
    """

    native: dict[int, NativeOperator] = field(factory=dict[int, "NativeOperator"])
    refused: dict[int, tuple[Reason, ...]] = field(factory=dict[int, "tuple[Reason, ...]"])
    variables: dict[str, Variable] = field(factory=dict[str, "Variable"])
    python: frozenset[int] = frozenset()
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def wanted(self) -> bool:
        """Whether anything runs as machine code, so that columns are what to read."""
        return bool(self.native)


def compiled(plan: Plan) -> Compiled:
    """The machine code of a plan's instances; nothing where llvmlite is not installed or not wanted.

    A variable lives in one place: if one of the instances that use it has no machine code, none of them has.
    """
    found = Compiled()
    if plan.options.native == "off":
        return found
    from backends.native.jit import available

    if not available():
        found.remarks = (_missing(),)
        return found
    from backends.native import Refused, compile_native

    for node in plan.nodes:
        operator = node.instance.operator
        if isinstance(operator, typed.Operator):
            made = compile_native(operator, debug=plan.options.native == "debug", lend=True)
            if isinstance(made, Refused):
                found.refused[node.instance.index] = made.reasons
            else:
                found.native[node.instance.index] = made
    _together(plan, found)
    found.python = frozenset(node.instance.index for node in plan.nodes) - found.native.keys()
    found.remarks = _refused(plan, found)
    initial = {variable.name: variable.initial for variable in plan.graph.variables}
    for node in plan.nodes:
        native = found.native.get(node.instance.index)
        if native is not None:
            for i, name in enumerate(node.instance.variables):
                if name in found.variables:
                    native.share(i, found.variables[name])
                else:
                    found.variables[name] = native.variables[i]
                    native.variables[i].set(initial[name])
    return found


def _refused(plan: Plan, found: Compiled) -> tuple[Diagnostic, ...]:
    """One warning for the operators that the evaluator runs, with the reasons."""
    reasons = [
        (node.instance.name, reason)
        for node in plan.nodes
        for reason in found.refused.get(node.instance.index, ())
    ]
    if not reasons:
        return ()
    count, (name, first) = len(found.refused), reasons[0]
    what = f"`{name}` is" if count == 1 else f"{count} operators are"
    message = f"{what} not compiled, which is many times slower: {first.text}"
    notes = tuple(Note(f"`{other}`: {reason.text}", reason.span) for other, reason in reasons[1:])
    return (Diagnostic("native-refused", message, first.span, Severity.WARNING, notes),)


def _missing() -> Diagnostic:
    message = "operators are not compiled, which is many times slower: llvmlite is not installed"
    return Diagnostic(
        "native-missing", message, None, Severity.WARNING, help="pip install llvmlite, or say `--no-native`"
    )


def _together(plan: Plan, found: Compiled) -> None:
    """Gives up the machine code of instances that share a variable with one that has none."""
    users: dict[str, list[int]] = defaultdict(list)
    names: dict[int, tuple[str, ...]] = {}
    for node in plan.nodes:
        names[node.instance.index] = node.instance.variables
        for name in node.instance.variables:
            users[name].append(node.instance.index)
    left: list[Any] = [index for index in names if index not in found.native]
    while left:
        for name in names[left.pop()]:
            for other in users[name]:
                if other in found.native:
                    del found.native[other]
                    found.refused[other] = ()
                    left.append(other)
