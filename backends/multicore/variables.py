"""The variables of a run: where instances find them, whole or divided among workers, and what they are at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from river.classes import define, field
from river.lang.values import freezer, frozen_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from backends.multicore.compiled import NativeCode
    from backends.multicore.plan import Plan
    from backends.native.operator import NativeVariable


@define(eq=False)
class DivisibleVariable:
    """A variable as those see it who do not know of shards; `parts`: where its entries are since it was divided."""

    variable: NativeVariable
    parts: list[NativeVariable] = field(factory=list["NativeVariable"])

    def get(self) -> Any:
        """Its value."""
        if not self.parts:
            return self.variable.get()
        return frozen_form(self.variable.type, chain.from_iterable(part.get().items() for part in self.parts))

    def set(self, value: Any) -> None:
        """Gives it another value, before a run."""
        self.variable.set(value)


class Variables:
    """The variables of an instance as the list that its firings use.

    Instances with the same variables share one list. A variable that stands in several lists lives in `shared` between
    firings; `moved` says where in the list such variables have their place.
    """

    __slots__ = ("_moved", "_shared", "values")

    def __init__(self, values: list[Any], moved: Sequence[tuple[int, str]], shared: dict[str, Any]) -> None:
        self.values = values
        self._moved = moved
        self._shared = shared

    def load(self) -> None:
        """Brings the values of shared variables into the list. Under the locks."""
        for place, name in self._moved:
            self.values[place] = self._shared[name]

    def store(self) -> None:
        """Takes them back. Under the locks."""
        for place, name in self._moved:
            self._shared[name] = self.values[place]


class Store:
    """The variables of a run."""

    def __init__(self, plan: Plan, compiled: NativeCode) -> None:
        self._compiled = compiled.variables
        self._divisible: dict[str, DivisibleVariable] = {}
        self._native: dict[str, NativeVariable | DivisibleVariable] = {**compiled.variables}
        lists = dict.fromkeys(
            node.instance.variables for node in plan.nodes if node.instance.index not in compiled.native
        )
        homes = Counter(name for names in lists for name in names)
        initial = {
            variable.name: variable.initial
            for variable in plan.graph.variables
            if variable.name not in self._native
        }
        self._shared = {name: initial[name] for name in initial if homes[name] != 1}
        self._lists = {names: [initial[name] for name in names] for names in lists}
        self._types = {variable.name: variable.type for variable in plan.graph.variables}

    def of(self, names: tuple[str, ...]) -> Variables:
        """The variables of an instance."""
        moved = [(place, name) for place, name in enumerate(names) if name in self._shared]
        return Variables(self._lists[names], moved, self._shared)

    def keep(self, name: str, variable: DivisibleVariable) -> None:
        """Leaves a variable in native memory to somebody who may divide it."""
        self._native[name] = self._divisible[name] = variable

    def leave_out(self, name: str) -> None:
        """Says that nobody may look at a variable any more: it is in pieces of which no value is made."""
        self._divisible.pop(name, None)
        self._native.pop(name, None)
        self._types.pop(name, None)

    def combined(self, name: str, variable: NativeVariable, parts: Iterable[str]) -> None:
        """A result is in a variable now that was the first of its parts, of which nothing is left."""
        for part in parts:
            self.leave_out(part)
            self._compiled.pop(part, None)
        self._compiled[name] = self._native[name] = variable
        self._types[name] = variable.type

    def parts(self, name: str) -> tuple[NativeVariable, ...]:
        """Where machine code keeps a variable: several places, if its entries were dealt; none, if Python keeps it."""
        if name in self._divisible:
            variable = self._divisible[name]
            return tuple(variable.parts) or (variable.variable,)
        return (self._compiled[name],) if name in self._compiled else ()

    def restore(self, values: Mapping[str, Any]) -> None:
        """Gives the variables other values, which are frozen."""
        for name in self._shared:
            self._shared[name] = values[name]
        for names, kept in self._lists.items():
            kept[:] = [values[name] for name in names]
        for name, variable in self._native.items():
            variable.set(values[name])

    def final(self) -> Mapping[str, Any]:
        """The values now, frozen."""
        found = dict(self._shared)
        for names, values in self._lists.items():
            found |= {
                name: value for name, value in zip(names, values, strict=True) if name not in self._shared
            }
        for name, value in found.items():
            freeze = freezer(self._types[name])
            found[name] = value if freeze is None else freeze(value)
        return Final(self._types, found, self._native)


class Final(Mapping[str, Any]):
    """Variables by name, frozen. What machine code keeps becomes a value when it is first asked for: a window may be long."""

    def __init__(
        self,
        names: Iterable[str],
        known: Mapping[str, Any],
        native: Mapping[str, NativeVariable | DivisibleVariable],
    ) -> None:
        self._names = tuple(names)
        self._known = dict(known)
        self._native = dict(native)

    def __getitem__(self, name: str) -> Any:
        if name not in self._known and name in self._native:
            self._known[name] = self._native.pop(name).get()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"
