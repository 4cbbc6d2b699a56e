"""What verification understood of a program: every use with its checked operator, every queue with its type and ends.

The typed side of River IL: erasure, models and planners read only this (style.md 2.3). Made by `verify.verify`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from river.classes import field, frozen
from river.lang.types import Record, Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.diagnostics import Diagnostic
    from river.il.program import Program, Use
    from river.lang import typed


@frozen
class End:
    """One end of a queue: instance number and position among its ports or outs."""

    instance: int
    position: int


@frozen
class Queue:
    """A queue: one-to-one (paper section 2). Without producer it is an input, without consumer an output."""

    name: str
    type: Type
    by: str | None
    producer: End | None
    consumer: End | None

    def key(self) -> int | None:
        """The position of the key field in the item record, or None without key."""
        if self.by is None:
            return None
        assert isinstance(self.type, Record)  # noqa: S101 - verify has seen to it
        return self.type.index(self.by)


@frozen
class Variable:
    """A variable of the program with its initial value (frozen)."""

    name: str
    type: Type
    initial: typed.Value = field(hash=False)


@frozen
class Instance:
    """An operator use, resolved.

    `ins`, `outs`: queue names by position; `variables`: program variables by position in the operator's signature. An
    operator writes those whose `written` flag is set in its signature; they stand on the left of the use.
    """

    index: int
    use: Use
    operator: typed.Operator | typed.Extern
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name for messages and plans: `operator#index`."""
        return f"{self.use.operator}#{self.index}"


@frozen
class View:
    """An output that is a view of a variable: `fns[function]` makes rows of it.

    For a map variable with a two-parameter function: called per entry (key, value); else once with the value. Returns a
    list of rows of `type`. `leading`: how many fields put the rows in order, where those that are equal in them stay as
    the function gives them; None: all.
    """

    name: str
    variable: str
    type: Type
    fns: tuple[typed.Fn, ...]
    function: int
    leading: int | None = None

    @property
    def order(self) -> Type:
        """The type of the part of a row by which rows are ordered, which stands at its beginning."""
        if self.leading is None or not isinstance(self.type, Record):
            return self.type
        return Record(self.type.fields[: self.leading])


@frozen
class Result:
    """A program variable observed as the union of its parts (il.md P2), or as these `combined`, as those who write them tell."""

    name: str
    parts: tuple[str, ...]
    combined: bool = False


@frozen(slots=False)
class Graph:
    """A verified program."""

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    views: tuple[View, ...]
    queues: Mapping[str, Queue] = field(hash=False)
    variables: tuple[Variable, ...]
    results: tuple[Result, ...]
    instances: tuple[Instance, ...]
    remarks: tuple[Diagnostic, ...] = ()

    def behind(self, view: View) -> tuple[str, ...]:
        """The variables that a view is made of: one, or the parts of a result that is combined."""
        return next(
            (result.parts for result in self.results if result.name == view.variable), (view.variable,)
        )

    @cached_property
    def users(self) -> Mapping[str, tuple[int, ...]]:
        """The instances that read or write a variable, by its name."""
        found: dict[str, list[int]] = {variable.name: [] for variable in self.variables}
        for instance in self.instances:
            for name in dict.fromkeys(instance.variables):
                found[name].append(instance.index)
        return {name: tuple(indices) for name, indices in found.items()}

    @cached_property
    def written(self) -> frozenset[str]:
        """The variables that any operator writes; all others are constants."""
        return frozenset(
            name
            for instance in self.instances
            for name, param in zip(instance.variables, instance.operator.vars, strict=True)
            if param.written
        )

    @cached_property
    def looping(self) -> frozenset[int]:
        """The instances that are part of loops."""
        from river.il.loops import loops

        return frozenset[int]().union(*loops(self))

    @property
    def deterministic(self) -> bool:
        """Whether the program is deterministic by construction (il.md P1): Kahn's class, decided by syntax."""
        return not any(r.code == "il-not-deterministic" for r in self.remarks)
