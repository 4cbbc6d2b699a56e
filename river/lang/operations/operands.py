"""The operands that operations on containers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from river.lang import types as t
from river.lang.operations.table import (
    Known,
    Rule,
    Signature,
    itself,
    optional,
    strip,
)  # fmt: skip
from river.lang.values import (
    keyer,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable


Rows = t.List | t.Array | t.Deque  # what is reached by position
Maps = t.Map | t.OMap


def agree(wanted: t.Type, given: t.Type | None) -> bool:
    """Whether an operand of type `given` (None: not known) may stand where `wanted` does."""
    return given is None or given == wanted or optional(given) == wanted


def canonical(type_: t.Type) -> Callable[[Any], Any]:
    """`values.keyer` as a function."""
    return keyer(type_) or itself


def on_items(
    kinds: type | tuple[type, ...], *more: t.Type | None, result: t.Type | Literal["same", "item"]
) -> Rule:
    """A container of `kinds`, then operands (None: an item). The result: a type, that of the container, or of its items."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        container = types[0] if types else None
        if container is None and result == "same":
            container = strip(wanted)
        if container is None or not isinstance(container, kinds) or len(types) != 1 + len(more):
            return None
        item = t.parts(container)[0]
        params = tuple(item if p is None else p for p in more)
        if not all(map(agree, params, types[1:])):
            return None
        found = container if result == "same" else item if result == "item" else result
        return Signature((container, *params), found)

    return rule
