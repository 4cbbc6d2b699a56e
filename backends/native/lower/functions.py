"""Formulas (`river.lang.operations.formula`) as code, for one number and for vectors: the same steps in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, if_
from backends.native.ir import Builder, hexadecimal
from river.lang.operations import functions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.native.module import Module
    from river.lang.operations.formula import Formula, Step

GROUP: Final = 16
"""How many numbers are computed at once: two registers of eight, so that one need not wait for itself. The number of
lanes is a multiple."""

_PLAIN: Final = {
    "+": "fadd {r}", "-": "fsub {r}", "*": "fmul {r}", "/": "fdiv {r}", "neg": "fneg {r}",
    "<": "fcmp olt {r}", "<=": "fcmp ole {r}", "==": "fcmp oeq {r}",
    "and": "and {t}", "or": "or {t}", "whole.<": "icmp ult {w}",
    "whole.+": "add {w}", "whole.-": "sub {w}", "whole.*": "mul {w}", "whole.&": "and {w}", "whole.|": "or {w}",
    "whole.^": "xor {w}", "whole.<<": "shl {w}", "whole.>>": "lshr {w}",
}  # fmt: skip
"""Instructions on reals, wholes and truths whose operands follow their type."""
_INTRINSICS: Final = {"sqrt": ("sqrt", 1), "abs": ("fabs", 1), "copysign": ("copysign", 2)}


def scalar(module: Module, name: str) -> str:
    """The name of the code of a function: doubles to a double."""
    found = f"function.{name}"
    if found not in module.functions:
        formula, b = functions.formula(name), Builder()
        params = [f"%x{i}" for i in range(formula.operands)]
        b.end(f"ret double {_Code(module, b, 1).run(formula, params)}")
        head = (
            f"define internal double @{found}({', '.join(f'double {x}' for x in params)}) noinline nounwind"
        )
        module.add(b.finish(found, head))
    return found


def grouped(module: Module, name: str, kind: str) -> str:
    """The name of the code of a function on `float`s or `double`s in memory: where to, where from, how many groups."""
    found = f"functions.{name}.{kind}"
    if found in module.functions:
        return found
    formula, b = functions.formula(name), Builder()
    params = [f"%from{i}" for i in range(formula.operands)]
    wide, doubles = f"<{GROUP} x {kind}>", f"<{GROUP} x double>"
    code = _Code(module, b, GROUP)

    def one(i: str) -> None:
        first = b.op(f"mul nsw i64 {i}, {GROUP}")
        values: list[str] = []
        for param in params:
            place = b.op(f"getelementptr inbounds {kind}, ptr {param}, i64 {first}")
            value = b.op(f"load {wide}, ptr {place}, align 16")
            values.append(value if kind == "double" else b.op(f"fpext {wide} {value} to {doubles}"))
        result = code.run(formula, values)
        if kind != "double":
            result = b.op(f"fptrunc {doubles} {result} to {wide}")
        b.do(
            f"store {wide} {result}, ptr {b.op(f'getelementptr inbounds {kind}, ptr %to, i64 {first}')}, align 16"
        )

    counted(b, "%groups", one)
    b.end("ret void")
    head = f"define internal void @{found}(ptr %to, {', '.join(f'ptr {p}' for p in params)}, i64 %groups)"
    module.add(b.finish(found, f"{head} noinline nounwind"))
    return found


class _Code:
    """Steps on numbers, or on vectors of them."""

    def __init__(self, module: Module, b: Builder, width: int) -> None:
        self.module, self.b, self.width = module, b, width
        self.types = {key: self.wide(kind) for key, kind in (("r", "double"), ("w", "i64"), ("t", "i1"))}

    def wide(self, kind: str) -> str:
        """The type of a number, or of a vector."""
        return kind if self.width == 1 else f"<{self.width} x {kind}>"

    def constant(self, value: float) -> str:
        """A float, or the bits of one."""
        kind, text = ("double", hexadecimal(value)) if isinstance(value, float) else ("i64", str(value))
        return text if self.width == 1 else f"<{', '.join([f'{kind} {text}'] * self.width)}>"

    def run(self, formula: Formula, operands: Sequence[str]) -> str:
        """The register of the result."""
        found = [*operands, *map(self.constant, formula.constants)]
        for step in formula.steps:
            found.append(self.step(step, [found[arg] for arg in step.args]))
        return found[formula.result]

    def step(self, step: Step, args: list[str]) -> str:
        """The register of what a step computes."""
        b, (r, w, t) = self.b, self.types.values()
        match step.operation:
            case "sqrt" | "abs" | "copysign":
                return self.intrinsic(step.operation, args)
            case "not":
                truth = "true" if self.width == 1 else f"<{', '.join(['i1 true'] * self.width)}>"
                return b.op(f"xor {t} {args[0]}, {truth}")
            case "select" | "select.whole":
                kind = r if step.operation == "select" else w
                return b.op(f"select {t} {args[0]}, {kind} {args[1]}, {kind} {args[2]}")
            case "bits":
                return b.op(f"bitcast {r} {args[0]} to {w}")
            case "real":
                return b.op(f"bitcast {w} {args[0]} to {r}")
            case "whole.high":
                double = self.wide("i128")
                x, y = (b.op(f"zext {w} {arg} to {double}") for arg in args)
                half = "64" if self.width == 1 else f"<{', '.join(['i128 64'] * self.width)}>"
                upper = b.op(f"lshr {double} {b.op(f'mul {double} {x}, {y}')}, {half}")
                return b.op(f"trunc {double} {upper} to {w}")
            case "entry":
                return self.entry(step, args[0])
            case "rarely":
                return self.rarely(step, *args)
            case plain:
                return b.op(f"{_PLAIN[plain].format(**self.types)} {', '.join(args)}")

    def intrinsic(self, operation: str, args: list[str]) -> str:
        """A call of LLVM's function."""
        name, count = _INTRINSICS[operation]
        kind = self.types["r"]
        full = f"@llvm.{name}.{'' if self.width == 1 else f'v{self.width}'}f64"
        if self.width > 1:
            text = f"declare {kind} {full}({', '.join([kind] * count)})"
            if text not in self.module.texts:
                self.module.texts.append(text)
        return self.b.op(f"call {kind} {full}({', '.join(f'{kind} {arg}' for arg in args)})")

    def entry(self, step: Step, index: str) -> str:
        """An item of a table; of single numbers only."""
        assert self.width == 1  # noqa: S101 - only the rare formulas have tables
        size = len(step.table)
        table = self.module.constant(
            f"[{size} x i64]", f"[{', '.join(f'i64 {item}' for item in step.table)}]"
        )
        return self.b.op(
            f"load i64, ptr {self.b.op(f'getelementptr inbounds i64, ptr {table}, i64 {index}')}"
        )

    def rarely(self, step: Step, when: str, value: str, *args: str) -> str:
        """The value, or where `when` holds what another formula makes, number by number."""
        b, (r, _, t) = self.b, self.types.values()
        name = scalar(self.module, step.called)
        place = b.slot(r)
        b.do(f"store {r} {value}, ptr {place}, align 8")
        if self.width == 1:

            def call() -> None:
                b.do(f"store double {b.call('double', name, [f'double {arg}' for arg in args])}, ptr {place}")

            if_(b, when, call)
            return b.op(f"load {r}, ptr {place}, align 8")
        mask = b.op(f"zext i{self.width} {b.op(f'bitcast {t} {when} to i{self.width}')} to i64")
        places = [b.slot(r) for _ in args]

        def one(i: str) -> None:
            def far() -> None:
                at = [b.op(f"getelementptr inbounds double, ptr {p}, i64 {i}") for p in (place, *places)]
                found = b.call("double", name, [f"double {b.op(f'load double, ptr {p}')}" for p in at[1:]])
                b.do(f"store double {found}, ptr {at[0]}")

            if_(b, b.op(f"trunc i64 {b.op(f'lshr i64 {mask}, {i}')} to i1"), far)

        def each() -> None:
            for at, arg in zip(places, args, strict=True):
                b.do(f"store {r} {arg}, ptr {at}, align 8")
            counted(b, str(self.width), one)

        if_(b, b.op(f"icmp ne i64 {mask}, 0"), each)
        return b.op(f"load {r}, ptr {place}, align 8")
