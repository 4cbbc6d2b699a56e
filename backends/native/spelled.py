"""What a tree says, in a text that is as long as the tree: each type of it stands there once, and then its number.

Every expression has its type, so in the `repr` of what handles rows of a thousand columns there are thousands of these rows.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from river.classes import fields, has_fields
from river.lang import types as t

if TYPE_CHECKING:
    from river.lang import typed

_TYPES: Final = frozenset(get_args(t.Type))


def spelled(tree: typed.Operator) -> str:
    """The text of a tree: that of another one only if they are equal."""
    numbers: dict[t.Type, str] = {}

    def text(value: Any) -> str:
        kind = value.__class__
        if kind in _TYPES:
            known = numbers.get(value)
            if known is None:
                known = numbers[value] = f"#{len(numbers)}"
                return f"{known} {value!r}"
            return known
        if kind is tuple:
            return f"({','.join(map(text, value))})"
        shown = _shown(kind)
        if shown is None:
            return repr(value)
        return f"{kind.__name__}({','.join([text(getattr(value, name)) for name in shown])})"

    return text(tree)


@cache
def _shown(kind: type) -> tuple[str, ...] | None:
    """The fields of a class whose values its text has; None: its values are no trees."""
    return tuple(each.name for each in fields(kind) if each.repr) if has_fields(kind) else None
