"""Formulas: straight-line arithmetic on f64 and its bits, written once, computed anywhere with the same result.

A formula is recorded by calling a function with values that note what is done with them. It has no branches but `rarely`:
both sides of a choice are computed, so that one formula serves single numbers and vectors. Every step is exact or rounded
by IEEE 754, and no two are fused.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import field, frozen
from river.lang.values import INFINITY, NAN

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK: Final = (1 << 64) - 1


@frozen
class Step:
    """One step: the operation, its operands as places, and for `entry` the table, for `rarely` the formula called."""

    operation: str
    args: tuple[int, ...]
    table: tuple[int, ...] = ()
    called: str = ""


@frozen
class Formula:
    """Places are numbered: operands, then constants (a float, or 64 bits as an int), then what the steps compute."""

    name: str
    operands: int
    constants: tuple[float | int, ...]
    steps: tuple[Step, ...]
    result: int


# ---------------------------------------------------------------------------------------------- recording


@frozen(eq=False)
class _Recorder:
    steps: list[Step | float | int] = field(factory=list["Step | float | int"])
    known: dict[object, int] = field(factory=dict[object, int])

    def note(self, step: Step | float | int) -> int:
        """The place of a step; a step that was there before is not done again."""
        key = struct.pack("<d", step) if isinstance(step, float) else step
        if key not in self.known:
            self.known[key] = len(self.steps)
            self.steps.append(step)
        return self.known[key]


@frozen(eq=False)
class _Value:
    recorder: _Recorder
    place: int

    def note(
        self, operation: str, *args: _Value | float, table: tuple[int, ...] = (), called: str = ""
    ) -> int:
        """The place of a step on these operands."""
        places = [arg.place if isinstance(arg, _Value) else self.recorder.note(arg) for arg in args]
        return self.recorder.note(Step(operation, tuple(places), table, called))


@frozen(eq=False)
class Real(_Value):
    """An f64."""

    def _make(self, operation: str, *args: _Value | float) -> Real:
        return Real(self.recorder, self.note(operation, *args))

    def __add__(self, other: Real | float) -> Real:
        return self._make("+", self, other)

    def __radd__(self, other: float) -> Real:
        return self._make("+", other, self)

    def __sub__(self, other: Real | float) -> Real:
        return self._make("-", self, other)

    def __rsub__(self, other: float) -> Real:
        return self._make("-", other, self)

    def __mul__(self, other: Real | float) -> Real:
        return self._make("*", self, other)

    def __rmul__(self, other: float) -> Real:
        return self._make("*", other, self)

    def __truediv__(self, other: Real | float) -> Real:
        return self._make("/", self, other)

    def __rtruediv__(self, other: float) -> Real:
        return self._make("/", other, self)

    def __neg__(self) -> Real:
        return self._make("neg", self)

    def __abs__(self) -> Real:
        return self._make("abs", self)

    def __lt__(self, other: Real | float) -> Truth:
        return Truth(self.recorder, self.note("<", self, other))

    def __le__(self, other: Real | float) -> Truth:
        return Truth(self.recorder, self.note("<=", self, other))

    def __gt__(self, other: Real | float) -> Truth:
        return Truth(self.recorder, self.note("<", other, self))

    def __ge__(self, other: Real | float) -> Truth:
        return Truth(self.recorder, self.note("<=", other, self))

    def equals(self, other: Real | float) -> Truth:
        """Equal, by IEEE 754."""
        return Truth(self.recorder, self.note("==", self, other))

    def sqrt(self) -> Real:
        """The square root; NaN of negative numbers."""
        return self._make("sqrt", self)

    def signed(self, other: Real) -> Real:
        """The magnitude of this with the sign of another."""
        return self._make("copysign", self, other)

    def bits(self) -> Whole:
        """Its 64 bits."""
        return Whole(self.recorder, self.note("bits", self))

    def negative(self) -> Truth:
        """Whether it has a minus sign; -0.0 has."""
        return Truth(self.recorder, self.note("whole.<", _MASK >> 1, self.bits()))

    def constant(self, value: float) -> Real:
        """A number."""
        return Real(self.recorder, self.recorder.note(value))

    def rarely(self, when: Truth, called: str, *args: Real) -> Real:
        """This, but where a truth that seldom holds does, what the formula `called` makes of `args`."""
        return Real(self.recorder, self.note("rarely", when, self, *args, called=called))


@frozen(eq=False)
class Whole(_Value):
    """64 bits, without a sign; sums and products modulo 2^64."""

    def _make(self, operation: str, *args: _Value | int) -> Whole:
        return Whole(self.recorder, self.note(operation, *args))

    def __add__(self, other: Whole | int) -> Whole:
        return self._make("whole.+", self, other)

    def __sub__(self, other: Whole | int) -> Whole:
        return self._make("whole.-", self, other)

    def __rsub__(self, other: int) -> Whole:
        return self._make("whole.-", other, self)

    def __mul__(self, other: Whole | int) -> Whole:
        return self._make("whole.*", self, other)

    def __and__(self, other: Whole | int) -> Whole:
        return self._make("whole.&", self, other)

    def __or__(self, other: Whole | int) -> Whole:
        return self._make("whole.|", self, other)

    def __xor__(self, other: Whole | int) -> Whole:
        return self._make("whole.^", self, other)

    def __lshift__(self, other: Whole | int) -> Whole:
        return self._make("whole.<<", self, other)

    def __rshift__(self, other: Whole | int) -> Whole:
        return self._make("whole.>>", self, other)

    def __lt__(self, other: Whole | int) -> Truth:
        return Truth(self.recorder, self.note("whole.<", self, other))

    def high(self, other: Whole | int) -> Whole:
        """The upper 64 bits of a product."""
        return self._make("whole.high", self, other)

    def real(self) -> Real:
        """The f64 of these bits."""
        return Real(self.recorder, self.note("real", self))

    def entry(self, table: tuple[int, ...]) -> Whole:
        """The item of a table with this index, which must be inside."""
        return Whole(self.recorder, self.note("entry", self, table=table))


@frozen(eq=False)
class Truth(_Value):
    """Whether something holds."""

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.recorder, self.note("and", self, other))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.recorder, self.note("or", self, other))

    def __invert__(self) -> Truth:
        return Truth(self.recorder, self.note("not", self))

    def choose(self, then: Real | float, other: Real | float) -> Real:
        """One of two numbers."""
        return Real(self.recorder, self.note("select", self, then, other))

    def choose_whole(self, then: Whole | int, other: Whole | int) -> Whole:
        """One of two bit patterns."""
        return Whole(self.recorder, self.note("select.whole", self, then, other))


def record(name: str, make: Callable[..., Real], operands: int) -> Formula:
    """The formula that `make` computes."""
    recorder = _Recorder()
    places = [recorder.note(Step("operand", (i,))) for i in range(operands)]
    result = make(*(Real(recorder, place) for place in places))
    needed = {*places}
    left = [result.place]
    while left:
        place = left.pop()
        step = recorder.steps[place]
        if place not in needed:
            needed.add(place)
            left += step.args if isinstance(step, Step) else ()
    constants = [place for place in sorted(needed) if not isinstance(recorder.steps[place], Step)]
    computed = [place for place in sorted(needed) if place not in constants and place not in places]
    number = {place: i for i, place in enumerate([*places, *constants, *computed])}
    values = [recorder.steps[place] for place in constants]
    steps = [recorder.steps[place] for place in computed]
    return Formula(
        name,
        operands,
        tuple(value for value in values if not isinstance(value, Step)),
        tuple(
            Step(step.operation, tuple(number[arg] for arg in step.args), step.table, step.called)
            for step in steps
            if isinstance(step, Step)
        ),
        number[result.place],
    )


# ---------------------------------------------------------------------------------------------- evaluation


def _divide(x: float, y: float) -> float:
    if y:
        return x / y
    if not x or x != x:  # noqa: PLR0124 - NaN
        return NAN
    return math.copysign(INFINITY, x) * math.copysign(1.0, y)


def _select(condition: object, then: float, other: float) -> float:
    return then if condition else other


_REAL: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<Q")


def _bits(x: float) -> int:
    return _BITS.unpack(_REAL.pack(x))[0]


def _real(bits: int) -> float:
    return _REAL.unpack(_BITS.pack(bits))[0]


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else NAN


_WHOLES: Final[dict[str, Callable[[int, int], int]]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "whole.+": lambda a, b: a + b & _MASK, "whole.-": lambda a, b: a - b & _MASK,
    "whole.*": lambda a, b: a * b & _MASK, "whole.high": lambda a, b: a * b >> 64, "whole.&": lambda a, b: a & b,
    "whole.|": lambda a, b: a | b, "whole.^": lambda a, b: a ^ b, "whole.<<": lambda a, b: a << b & _MASK,
    "whole.>>": lambda a, b: a >> b, "whole.<": lambda a, b: a < b,
}  # fmt: skip
"""Of whole numbers and truths; counts of shifts are below 64."""
_MEANINGS: Final[dict[str, Callable[..., float]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "copysign": math.copysign,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "select": _select, "select.whole": _select, **_WHOLES,
}  # fmt: skip
_UNARY: Final[dict[str, Callable[[Any], float]]] = {
    "neg": operator.neg, "abs": abs, "not": operator.not_, "sqrt": _root, "bits": _bits, "real": _real,
}  # fmt: skip

_Function = Callable[..., float]


OFTEN: Final = 64
"""Calls after which a formula becomes Python code: making that takes as long as a few dozen calls, which then take a fifth."""


def evaluator(formula: Formula, called: Callable[[str], _Function]) -> _Function:
    """The function of a formula on Python numbers; `called`: that of another."""
    steps = [_meaning(step, called) for step in formula.steps]
    constants, result = formula.constants, formula.result
    calls, written = 0, None

    def apply(*args: float) -> float:
        nonlocal calls, written
        if written is not None:
            return written(*args)
        calls += 1
        if calls > OFTEN:
            written = compiled(formula, called)
            return written(*args)
        found = [*args, *constants]
        for function, operands in steps:
            found.append(function(*operands(found)))
        return found[result]

    return apply


def compiled(formula: Formula, called: Callable[[str], _Function]) -> _Function:
    """The same as Python code, a line for each step, with the same operations of Python's."""
    names: dict[str, Any] = {
        "divide": _divide, "copysign": math.copysign, "root": _root, "bits": _bits, "real": _real, "called": called,
    }  # fmt: skip
    first = formula.operands + len(formula.constants)
    names.update((f"v{i}", value) for i, value in enumerate(formula.constants, formula.operands))
    lines = [f"def apply({', '.join(f'v{i}' for i in range(formula.operands))}):"]
    for place, step in enumerate(formula.steps, first):
        names[f"t{place}"] = step.table
        given = {"args": ", ".join(f"v{i}" for i in step.args[2:]), "name": step.called, "place": place}
        text = _TEXTS[step.operation].format(*(f"v{i}" for i in step.args), **given)
        lines.append(f"    v{place} = {text}")
    exec("\n".join([*lines, f"    return v{formula.result}"]), names)  # noqa: S102 - our text
    return names["apply"]


_TEXTS: Final = MappingProxyType({
    "+": "{0} + {1}", "-": "{0} - {1}", "*": "{0} * {1}", "/": "divide({0}, {1})", "copysign": "copysign({0}, {1})",
    "<": "{0} < {1}", "<=": "{0} <= {1}", "==": "{0} == {1}", "select": "{1} if {0} else {2}",
    "select.whole": "{1} if {0} else {2}", "and": "{0} and {1}", "or": "{0} or {1}",
    "whole.+": f"{{0}} + {{1}} & {_MASK}", "whole.-": f"{{0}} - {{1}} & {_MASK}", "whole.*": f"{{0}} * {{1}} & {_MASK}",
    "whole.high": "{0} * {1} >> 64", "whole.&": "{0} & {1}", "whole.|": "{0} | {1}", "whole.^": "{0} ^ {1}",
    "whole.<<": f"{{0}} << {{1}} & {_MASK}", "whole.>>": "{0} >> {1}", "whole.<": "{0} < {1}", "neg": "-{0}",
    "abs": "abs({0})", "not": "not {0}", "sqrt": "root({0})", "bits": "bits({0})", "real": "real({0})",
    "entry": "t{place}[{0}]", "rarely": "called({name!r})({args}) if {0} else {1}",
})  # fmt: skip
"""The operations as Python text."""


def _meaning(
    step: Step, called: Callable[[str], _Function]
) -> tuple[_Function, Callable[[Sequence[float]], tuple[float, ...]]]:
    """A function, and what picks its operands."""
    if len(step.args) == 1:
        unary = step.table.__getitem__ if step.operation == "entry" else _UNARY[step.operation]
        (place,) = step.args
        return unary, lambda found: (found[place],)
    pick = cast("Callable[[Sequence[float]], tuple[float, ...]]", operator.itemgetter(*step.args))
    if step.operation != "rarely":
        return _MEANINGS[step.operation], pick

    def rarely(when: object, value: float, *args: float) -> float:
        return called(step.called)(*args) if when else value

    return rarely, pick
