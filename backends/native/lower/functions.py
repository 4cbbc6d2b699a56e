"""Formulas (`river.lang.operations.formula`) as code, for one number and for vectors: the same steps in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, if_, void
from backends.native.ir import Builder, hexadecimal
from backends.native.lower.estimates import estimate
from river.lang.operations import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.estimates import Estimate
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
    guess = estimate(name) if kind == "float" else None
    return _exact(module, name, kind) if guess is None else _estimated(module, name, guess)


def _exact(module: Module, name: str, kind: str) -> str:
    """By the formula."""
    found, formula = f"functions.{name}.{kind}", functions.formula(name)

    def one(b: Builder, code: _Code, to: str, sources: Sequence[str]) -> None:
        result = code.run(formula, [_loaded(b, kind, source) for source in sources])
        if kind != "double":
            result = b.op(f"fptrunc {code.wide('double')} {result} to {code.wide(kind)}")
        b.do(f"store {code.wide(kind)} {result}, ptr {to}, align 16")

    return _by_groups(module, found, formula.operands, kind, one)


def _estimated(module: Module, name: str, guess: Estimate) -> str:
    """By an estimate: the groups in which it does not say how every number is rounded are left to the formula."""
    exact = _exact(module, name, "float")
    doubles, floats, truths = (f"<{GROUP} x {kind}>" for kind in ("double", "float", "i1"))

    def one(b: Builder, code: _Code, to: str, sources: Sequence[str]) -> None:
        middle = code.run(guess.formula, [_loaded(b, "float", source) for source in sources])
        low, high = (
            b.op(f"fptrunc {doubles} {b.op(f'fmul {doubles} {middle}, {code.constant(by)}')} to {floats}")
            for by in (1 - guess.error, 1 + guess.error)
        )
        known = b.op(f"bitcast {truths} {b.op(f'fcmp oeq {floats} {low}, {high}')} to i{GROUP}")
        left, told, after = (b.fresh(label) for label in ("left", "told", "after"))
        b.branch(b.op(f"icmp ne i{GROUP} {known}, -1"), left, told, rare=True)
        b.at(left)
        void(b, exact, *(f"ptr {place}" for place in (to, *sources)), "i64 1")
        b.go(after)
        b.at(told)
        b.do(f"store {floats} {low}, ptr {to}, align 16")
        b.go(after)
        b.at(after)

    return _by_groups(module, f"functions.{name}.estimated", guess.formula.operands, "float", one, fused=True)


def _loaded(b: Builder, kind: str, source: str) -> str:
    """A group as doubles."""
    value = b.op(f"load <{GROUP} x {kind}>, ptr {source}, align 16")
    return value if kind == "double" else b.op(f"fpext <{GROUP} x {kind}> {value} to <{GROUP} x double>")


def _by_groups(
    module: Module, found: str, operands: int, kind: str,
    one: Callable[[Builder, _Code, str, Sequence[str]], None], *, fused: bool = False,
) -> str:  # fmt: skip
    """A function that does `one` with each group: code, where to, where from. Both may be the same place."""
    if found in module.functions:
        return found
    b, params = Builder(), [f"%from{i}" for i in range(operands)]
    code = _Code(module, b, GROUP, fused=fused)

    def group(i: str) -> None:
        first = b.op(f"mul nsw i64 {i}, {GROUP}")
        to, *sources = (
            b.op(f"getelementptr inbounds {kind}, ptr {param}, i64 {first}") for param in ("%to", *params)
        )
        one(b, code, to, sources)

    counted(b, "%groups", group)
    b.end("ret void")
    head = f"define internal void @{found}(ptr %to, {', '.join(f'ptr {p}' for p in params)}, i64 %groups)"
    module.add(b.finish(found, f"{head} noinline nounwind"))
    return found


class _Code:
    """Steps on numbers, or on vectors of them. `fused`: products and sums may be rounded together."""

    def __init__(self, module: Module, b: Builder, width: int, *, fused: bool = False) -> None:
        self.module, self.b, self.width, self.fused = module, b, width, fused
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
            case "+" | "-" | "*" if self.fused:
                name, _, type_ = _PLAIN[step.operation].partition(" ")
                return b.op(f"{name} contract {type_.format(**self.types)} {', '.join(args)}")
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
