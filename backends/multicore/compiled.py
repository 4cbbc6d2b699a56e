"""Which instances of a plan run as machine code, and the variables that these keep in native memory."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from backends.firing.remarks import refused
from river.classes import define, field
from river.diagnostics import Diagnostic, Severity
from river.lang import typed
from river.lang.evaluate import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.multicore.plan import Plan
    from backends.native.operator import NativeOperator, NativeVariable, Reason, Refused
    from backends.native.parameters import Parameters


@define
class NativeCode:
    """By instance its machine code, or why it has none: then the evaluator runs it. Variables by name.

    `python`: the instances that run in Python though machine code is wanted, those of `extern` operators included.
    """

    native: dict[int, NativeOperator] = field(factory=dict[int, "NativeOperator"])
    refused: dict[int, tuple[Reason, ...]] = field(factory=dict[int, "tuple[Reason, ...]"])
    variables: dict[str, NativeVariable] = field(factory=dict[str, "NativeVariable"])
    python: frozenset[int] = frozenset()
    remarks: tuple[Diagnostic, ...] = ()

    def host_calls(self, index: int, fired: int) -> int:
        """How often Python ran for an instance that has fired so often, though machine code is wanted."""
        native = self.native.get(index)
        return native.calls.count if native is not None else fired if index in self.python else 0

    @property
    def wanted(self) -> bool:
        """Whether anything runs as machine code, so that columns are what to read."""
        return bool(self.native)


def compiled(plan: Plan) -> NativeCode:
    """The machine code of a plan's instances; nothing where llvmlite is not installed or not wanted.

    A variable lives in one place: if one of the instances that use it has no machine code, none of them has.
    """
    found = NativeCode()
    if plan.options.native == "off":
        return found
    from backends.native.llvm import available

    if not available():
        found.remarks = (_missing(),)
        return found
    from backends.native import Refused

    for index, made in _made(plan):
        if isinstance(made, Refused):
            found.refused[index] = made.reasons
        else:
            found.native[index] = made
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


def _made(plan: Plan) -> Iterator[tuple[int, NativeOperator | Refused]]:
    """By instance its machine code. Several operators are compiled side by side: LLVM runs without the GIL."""
    from backends.native import compile_native
    from backends.native.parameters import parameters
    from backends.native.shared import side_by_side

    indices, operators = list[int](), list[typed.Operator]()
    for node in plan.nodes:
        if isinstance(node.instance.operator, typed.Operator):
            indices.append(node.instance.index)
            operators.append(node.instance.operator)

    def compile_(operator: typed.Operator, own: Parameters | None) -> NativeOperator | Refused:
        return compile_native(operator, debug=plan.options.native == "debug", lend=True, parameters=own)

    found = parameters(operators)
    jobs = list(zip(operators, found, strict=True))
    firsts: dict[int, int] = {}  # by operator that is compiled, one that it is for
    for i, (operator, own) in enumerate(jobs):
        firsts.setdefault(id(operator if own is None else own.operator), i)
    numbers = list(firsts.values())

    def first(number: int) -> NativeOperator | Refused:
        with inside(plan.graph.instances[indices[number]].use.within):
            return compile_(*jobs[number])

    made = dict(zip(numbers, side_by_side(first, numbers, plan.workers), strict=True))
    for i, (index, job) in enumerate(zip(indices, jobs, strict=True)):
        yield index, made[i] if i in made else compile_(*job)


def _refused(plan: Plan, found: NativeCode) -> tuple[Diagnostic, ...]:
    """One warning for the operators that the evaluator runs, with the reasons."""
    reasons = [
        (node.instance.name, reason)
        for node in plan.nodes
        for reason in found.refused.get(node.instance.index, ())
    ]
    return refused(reasons, len(found.refused))


def _missing() -> Diagnostic:
    message = "operators are not compiled, which is many times slower: llvmlite is not installed"
    return Diagnostic(
        "native-missing", message, None, Severity.WARNING, help="pip install llvmlite, or say `--no-native`"
    )


def _together(plan: Plan, found: NativeCode) -> None:
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
