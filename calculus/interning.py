"""A program over numbers that stands for a program over values: every function called once for each argument.

Functions are opaque and pure, so replacing each value by a number, the same for the same value, changes
nothing but the cost: configurations hash in the time of their length, and a firing seen before is a lookup.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

import attrs
from attrs import define, evolve, field, frozen

from calculus.program import Fault, Firing, Function, Program, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@define
class Interner:
    """A growing table of values; a value's number is its place.

    Two values share a number only if no function can tell them apart. This is finer than `==`: it separates 1,
    True and 1.0, as well as 0.0 and -0.0, also inside tuples, frozensets and attrs classes; but every NaN is the
    same NaN. Values of other classes are told apart by class and `==`.
    """

    values: list[Value] = field(factory=list[Value])
    _numbers: dict[Value, int] = field(factory=dict[Value, int], repr=False)
    _places: dict[int, int] = field(factory=dict[int, int], repr=False)

    def number(self, value: Value) -> int:
        """The number of `value`, a new one if it is new."""
        # The objects in the table live as long as it does, so their addresses are names: no need to look inside.
        known = self._places.get(id(value))
        if known is not None:
            return known
        key = self._key(value)
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(value)
            self._places[id(value)] = number
        return number

    def numbers(self, values: Iterable[Value]) -> tuple[int, ...]:
        """The numbers of `values`."""
        return tuple([self.number(value) for value in values])

    def value(self, number: Value) -> Value:
        """The value behind a number that this table gave."""
        return self.values[cast("int", number)]

    def decoded(self, numbers: Iterable[Value]) -> tuple[Value, ...]:
        """The values behind `numbers`."""
        return tuple([self.value(number) for number in numbers])

    def _key(self, value: Value) -> Value:
        """The class of `value` and the numbers of its parts, or itself if it has none."""
        kind = type(value)
        match value:
            case float():
                return (kind, value.hex())
            case tuple():
                return (kind, self.numbers(cast("tuple[Value, ...]", value)))
            case frozenset():
                return (kind, frozenset(self.numbers(cast("frozenset[Value]", value))))
            case _:
                compared = _compared(kind)
                return (
                    kind,
                    value if compared is None else self.numbers(getattr(value, f) for f in compared),
                )


@cache
def _compared(kind: type[Value]) -> tuple[str, ...] | None:
    """The fields that the equality of an attrs class compares; None for a class with an equality of its own.

    Classes that others make and describe to attrs say of their fields which are compared, but not how they were made.
    """
    if not attrs.has(kind) or ("__attrs_props__" in vars(kind) and not attrs.inspect(kind).added_eq):
        return None
    return tuple(f.name for f in attrs.fields(kind) if f.eq) or None


@frozen
class Interned:
    """A program and its inputs, over the numbers of `interner`."""

    program: Program
    inputs: Mapping[str, Sequence[Value]]
    interner: Interner


def intern(program: Program, inputs: Mapping[str, Sequence[Value]]) -> Interned:
    """The program and its inputs over numbers; its functions remember what they returned, faults included."""
    interner = Interner()
    numbered = evolve(
        program,
        functions={name: _remembered(function, interner) for name, function in program.functions.items()},
        initial={name: interner.number(value) for name, value in program.initial.items()},
    )
    return Interned(numbered, {queue: interner.numbers(items) for queue, items in inputs.items()}, interner)


def _remembered(function: Function, interner: Interner) -> Function:
    seen: dict[tuple[Value, int, tuple[Value, ...]], Firing | Fault] = {}

    def call(item: Value, port: int, reads: tuple[Value, ...]) -> Firing:
        key = (item, port, reads)
        known = seen.get(key)
        if known is None:
            try:
                firing = function(interner.value(item), port, interner.decoded(reads))
                known = Firing(
                    tuple([interner.numbers(items) for items in firing.pushed]),
                    interner.numbers(firing.written),
                )
            except Fault as fault:
                known = fault
            seen[key] = known
        match known:
            case Firing():
                return known
            case Fault():
                raise Fault(known.info)

    return call
