"""The rows of a view, made by the evaluator.

This is apart from `observe`, which knows the calculus: most runs make rows of views, and none of them reads the calculus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.lang import values
from river.lang.evaluate import Trap, compile_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.il.graph import View

Value = Any


def rows_of(
    view: View, value: Value, failed: Callable[[Trap, Value], Exception] | None = None
) -> tuple[Value, ...]:
    """The rows of a view of a variable's frozen value, frozen, in the total order.

    Raises: Trap, of the view's function, or what `failed` makes of it and of the key of the entry (None for the whole value).
    """
    function = compile_function(view.fns, view.function)
    by_entry = len(view.fns[view.function].params) == 2
    found: list[Value] = []
    calls: Iterable[tuple[Value, ...]] = value.items() if by_entry else [(value,)]
    for args in calls:
        try:
            found += function(*args)
        except Trap as trap:
            if failed is None:
                raise
            raise failed(trap, args[0] if by_entry else None) from trap
    freeze = values.freezer(view.type)
    key, leading = values.total_key(view.order), view.leading
    ordered = sorted(found, key=key if leading is None else _of_first(key, leading))
    return tuple(ordered if freeze is None else map(freeze, ordered))


def _of_first(key: Callable[[Any], Any] | None, leading: int) -> Callable[[Value], Any]:
    """The key of the first fields of rows."""
    return (lambda row: row[:leading]) if key is None else (lambda row: key(row[:leading]))
