"""The values of the evaluator: a Python form for each type, directed by the type; no value carries its type.

bool: bool; whole numbers, time, duration: int; decimal(p, s): int scaled by 10^s; f64: float; f32: float that
is a single; string: str without surrogates; bytes: bytes; unit: (); regex: `patterns.Regex`; optional: None
or the value; record and tuple: tuple; fsum: `Sum`. Containers have two forms, both readable in the same ways:
frozen, deeply immutable and hashable (tuple, `FrozenMap`, `FrozenOMap`, `FrozenBag`), and mutable (list,
`deque`, dict, `OMap`, `Bag`), whose parts may have either form.

Every NaN is the one object `NAN`, so that Python's containers find it. Keys have no -0.0 (`keyer`).
"""

from __future__ import annotations

from river.lang.values.containers import Bag, FrozenBag, FrozenMap, FrozenOMap, OMap
from river.lang.values.forms import (
    default,
    freezer,
    frozen_class,
    frozen_form,
    keyer,
    mutable_form,
    thaw,
    thawer,
)
from river.lang.values.hashing import hash64
from river.lang.values.order import total_key
from river.lang.values.sameness import observed, same
from river.lang.values.scalars import (
    BOUNDS,
    END,
    INFINITY,
    MASK64,
    NAN,
    ZERO_SUM,
    Mark,
    Order,
    Sum,
    TrapSignal,
    Value,
    add_to_sum,
    single,
    sum_value,
)
from river.lang.values.welltyped import well_typed

__all__ = [
    "BOUNDS",
    "END",
    "INFINITY",
    "MASK64",
    "NAN",
    "ZERO_SUM",
    "Bag",
    "FrozenBag",
    "FrozenMap",
    "FrozenOMap",
    "Mark",
    "OMap",
    "Order",
    "Sum",
    "TrapSignal",
    "Value",
    "add_to_sum",
    "default",
    "freezer",
    "frozen_class",
    "frozen_form",
    "hash64",
    "keyer",
    "mutable_form",
    "observed",
    "same",
    "single",
    "sum_value",
    "thaw",
    "thawer",
    "total_key",
    "well_typed",
]
