"""Variables that copies of an operator have accumulated into, combined by machine code: entry by entry where they are maps.

Where most keys of a large map are in the other one, too, several threads combine the entries of these, each some; that puts no
entry in. The others are put in by one thread.

Paper: River §6 (Sawzall: the tables of the mappers are merged).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from backends.native.contract import NotCompiled, handlers_of
from backends.native.explain import explained
from backends.native.jit import host, level
from backends.native.layout import is_plain
from backends.native.operator import NativeOperator
from backends.native.places import PLACES, addresses, behind, entries, walk
from backends.native.shared import ModuleText, shared
from backends.native.spelled import spelled
from river.aside import shared_out
from river.classes import define, field
from river.il.combine import Entries, combining
from river.lang import types as t
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from backends.native.operator import NativeVariable
    from river.il.combine import Combine
    from river.lang import typed

_ANY: Final = "item.0"
_PRESENT: Final = "item.1"
"""What takes places of any entries, and of those whose keys are there: see `combining`."""

PROBE: Final = 1 << 14
"""Entries that tell how many of them are in the other map, too; with fewer than four times as many, threads take longer."""


@define(eq=False)
class NativeCombine:
    """The code that combines variables of a type; who uses it does so on one thread.

    `by_entry`: maps are combined entry by entry. `shared`: it may have several threads combine those whose keys are there.
    """

    native: NativeOperator
    by_entry: bool
    shared: bool
    _helpers: list[NativeOperator] = field(init=False, factory=list["NativeOperator"], repr=False)

    def combine(self, into: NativeVariable, other: NativeVariable, workers: int = 1) -> None:
        """Combines a variable with another, which is left empty, by so many threads where that pays.

        Of two maps the smaller one is combined into the other one. Raises: Trap: "memory-limit", or "stopped" after `stop`.
        """
        if self.by_entry and entries(into) < entries(other):
            into.swap(other)
        self.native.share(0, into)
        places: Any = addresses(self.native, other, by_entry=self.by_entry)
        at, count = ctypes.addressof(places), len(places)
        if not self.shared or workers == 1 or count < 4 * PROBE:
            self._fired(self.native, _ANY, at, 0, count)
        else:
            self._by_threads(into, at, count, workers)
        other.clear()

    def stop(self) -> None:
        """Ends what is under way in another thread."""
        for each in (self.native, *self._helpers):
            each.stop()

    def _by_threads(self, into: NativeVariable, places: int, count: int, workers: int) -> None:
        """Combines a map with so many entries of another: those whose keys it has by several threads, if most are such.

        `stop` may come while helpers are made: what it has told the first of all (`native`) is seen before these begin.
        """
        while len(self._helpers) < workers - 1:
            self._helpers.append(self.native.again())
        for each in self._helpers:
            each.share(0, into)

        def present(native: NativeOperator, start: int, stop: int) -> int:
            """Combines entries whose keys are there; how many others there were, whose places are in its output."""
            self._fired(native, _PRESENT, places, start, stop)
            return native.outputs[0].rows

        done = PROBE
        others = present(self.native, 0, done)
        if 2 * others < done:
            starts = [done + (count - done) * i // workers for i in range(workers + 1)]
            natives = (self.native, *self._helpers)
            shared_out(lambda i: present(natives[i], starts[i], starts[i + 1]), workers)
            done = count
        for each in (self.native, *self._helpers):
            for _, batch, _ in each.take():
                self._fired(self.native, _ANY, batch.addresses[0], 0, len(batch))
        self._fired(self.native, _ANY, places, done, count)

    def _fired(self, native: NativeOperator, handler: str, places: int, start: int, stop: int) -> None:
        fired = native.fire(handler, (places,), start, stop)
        if fired.trap is not None:
            raise explained(native.operator, fired.trap)
        if fired.stopped:
            raise Trap("stopped")


def compile_combine(
    op: typed.Operator, variable: int, found: Combine, *, debug: bool = False
) -> NativeCombine | None:
    """The machine code that combines a variable of an operator; None if there is none."""
    type_ = op.vars[variable].type
    by_entry = isinstance(found, Entries)
    operator = combining(op, variable, found, entry=by_entry)
    parts: tuple[tuple[t.Type, int], ...] = behind(type_) if by_entry else ((type_, 0),)  # pyright: ignore[reportArgumentType]

    def make() -> ModuleText:
        from backends.native.lower.batches import Lowered, lower

        lowered = lower(operator, host().architecture, debug=debug, parts=parts)
        if not isinstance(lowered, Lowered):
            raise NotCompiled(lowered)
        return ModuleText(lowered.text + walk(), (*lowered.exports, PLACES), {"host": lowered.host})

    effort = 0 if debug else level()
    try:
        code = shared(f"combine {effort} {debug} {parts!r} {spelled(operator)}", make, effort)
    except NotCompiled:
        return None
    native = NativeOperator(operator, handlers_of(operator), code, debug)
    several = len(operator.items) > 1 and isinstance(type_, t.Map) and is_plain(type_.value)
    return NativeCombine(native, by_entry, several)


__all__ = ["NativeCombine", "compile_combine"]
