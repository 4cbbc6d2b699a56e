"""How many steps a firing takes at most, read off its body; no number where what comes decides.

A step is an operation on a few numbers: a nanosecond or a few of them in machine code, however quickly that was made. Who knows
the number knows before anything has run that firings on so many items are soon over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.rates import trips
from river.lang.trees import children

if TYPE_CHECKING:
    from collections.abc import Iterable

_CALLED: Final = 32
"""Steps of an operation that is more than a few instructions, on values of fixed size: functions of floats, parts of times."""

MOST: Final = 1 << 40
"""Beyond that nobody asks."""


def most_steps(op: typed.Operator) -> int | None:
    """The most steps that a firing of any of its handlers takes; None: there is no bound."""
    handlers = (*op.items, op.first, op.rated, *op.phases, op.merge, op.mark)
    counter = _Counter(op.fns)
    try:
        return max(counter.of(each.body) for each in handlers if each is not None)
    except _Unbounded:
        return None


class _Unbounded(Exception):  # noqa: N818 - an answer
    """What comes decides how long it takes."""


@define
class _Counter:
    """`open`: the functions that are being read; `known`: the steps of those that were."""

    fns: tuple[typed.Fn, ...]
    open: set[int] = field(factory=set[int])
    known: dict[int, int] = field(factory=dict[int, int])

    def of(self, node: typed.Node) -> int:
        """The most steps of a node with all inside it. Raises: _Unbounded."""
        match node:
            case typed.While() | typed.With() | typed.Drop() | typed.Comprehension() | typed.MakeMap():
                raise _Unbounded
            case typed.For(_, _, _, range_, body):
                most = trips(range_)[1]
                if most is None:
                    raise _Unbounded
                found = self.inside(children(range_)) + most * (1 + self.of(body))
            case typed.Apply(type_, name, args):
                operation = OPERATIONS[name]
                if operation.mutates is not None or operation.native == "host":
                    raise _Unbounded
                sizes = 1 + sum(_size(each) - 1 for each in (type_, *(arg.type for arg in args)))
                found = (1 if operation.native == "inline" else _CALLED) * sizes + self.inside(args)
            case typed.Call(type_, function, _, args):
                found = _size(type_) + self.inside(args) + self.called(function)
            case typed.Local() | typed.State() | typed.ConstRef():  # looked at where they lie
                found = 1
            case typed.Get(_, value) | typed.At(_, value):
                if isinstance(node, typed.At) and not isinstance(value.type, t.Array):
                    raise _Unbounded
                found = 1 + self.inside(children(node))
            case (
                typed.Let(_, _, value)
                | typed.Var(_, _, value)
                | typed.Emit(_, value)
                | typed.Assign(_, value)
            ):
                found = _size(value.type) + self.inside(children(node))
            case typed.Return(value):
                found = 1 if value is None else _size(value.type) + self.of(value)
            case (
                typed.Literal()
                | typed.Some()
                | typed.If()
                | typed.Logic()
                | typed.MakeRecord()
                | typed.MakeList()
            ):
                found = _size(node.type) + self.inside(children(node))
            case typed.Lambda():
                raise _Unbounded
            case _:  # statements around others
                found = 1 + self.inside(children(node))
        if found > MOST:
            raise _Unbounded
        return found

    def inside(self, parts: Iterable[typed.Node]) -> int:
        """The steps of all of these."""
        return sum(map(self.of, parts))

    def called(self, function: int) -> int:
        """The steps of a function; one that calls itself has no bound."""
        found = self.known.get(function)
        if found is None:
            if function in self.open:
                raise _Unbounded
            self.open.add(function)
            found = self.known[function] = self.of(self.fns[function].body)
            self.open.discard(function)
        return found


def _size(type_: t.Type) -> int:
    """How many numbers a value of a type has. Raises: _Unbounded if that depends on the value."""
    match type_:
        case t.Array(item, size):
            return 1 + size * _size(item)
        case t.Primitive():
            if type_ in (t.STRING, t.BYTES, t.FSUM, t.REGEX):
                raise _Unbounded
            return 1
        case t.Decimal():
            return 1
        case t.Optional() | t.Record() | t.Tuple():
            return 1 + sum(map(_size, t.parts(type_)))
        case _:
            raise _Unbounded
