"""Templates, in one place: the library of them, checking, instantiating, lifting, and what `--expand` prints (il.md P4)."""

from __future__ import annotations

from river.il.expand import expand, expand_instances, named_operators
from river.il.instantiate import instantiate
from river.il.lift import lift
from river.il.namespaces import Library, Namespace, check_template

__all__ = [
    "Library", "Namespace", "check_template", "expand", "expand_instances", "instantiate", "lift", "named_operators",
]  # fmt: skip
