"""What makes the functions that are derived from types, and what it asks of the module that they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from backends.native.ir import FunctionText
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.layout import Keyed


class Derives(Protocol):
    """A module: it names functions of types, and makes those that it has not."""

    def derived(self, kind: str, type_: t.Type) -> str:
        """The name of the function of this kind for a type."""
        ...

    def map_function(self, name: str, type_: Keyed | t.Bag) -> str:
        """The name of function `name` of `map.rt` or `omap.rt` for containers of this type."""
        ...

    def entries_function(self, type_: t.Map | t.OMap | t.Bag) -> str:
        """The name of `entries_order` of `entries.rt` for maps of a type, or for bags."""
        ...


Maker = Callable[[Derives, t.Type, str], FunctionText]
"""The derived function of a type, under this name."""
