"""Variables that copies of an operator have accumulated into, combined by machine code: entry by entry where they are maps.

Paper: River §6 (Sawzall: the tables of the mappers are merged).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from backends.native.contract import NotCompiled, handlers_of
from backends.native.explain import explained
from backends.native.jit import host, level
from backends.native.operator import NativeOperator
from backends.native.places import PLACES, addresses, behind, entries, walk
from backends.native.shared import ModuleText, shared
from backends.native.spelled import spelled
from river.classes import frozen
from river.il.combine import Entries, combining
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from backends.native.operator import NativeVariable
    from river.il.combine import Combine
    from river.lang import typed
    from river.lang import types as t

_HANDLER: Final = "item.0"


@frozen(eq=False)
class NativeCombine:
    """The code that combines variables of a type."""

    native: NativeOperator
    by_entry: bool

    def combine(self, into: NativeVariable, other: NativeVariable) -> None:
        """Combines a variable with another, which is left empty.

        Of two maps the smaller one is combined into the other one. Raises: Trap: "memory-limit", or "stopped" after
        `native.stop()`.
        """
        if self.by_entry and entries(into) < entries(other):
            into.swap(other)
        self.native.share(0, into)
        places: Any = addresses(self.native, other, by_entry=self.by_entry)
        at = ctypes.addressof(places)
        fired = self.native.fire(_HANDLER, (at,), 0, len(places))
        if fired.trap is not None:
            raise explained(self.native.operator, fired.trap)
        if fired.stopped:
            raise Trap("stopped")
        other.clear()


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
    return NativeCombine(NativeOperator(operator, handlers_of(operator), code, debug), by_entry)


__all__ = ["NativeCombine", "compile_combine"]
