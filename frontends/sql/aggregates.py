"""The names of aggregates, of which each engine has its own, and where a text calls one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.sql import syntax as q
from frontends.sql.functions import FUNCTIONS, SEVERAL
from river.il.trees import walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

AGGREGATES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        **{name: (name, 1) for name in ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")},
        **{name: (name, 1) for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "median", "mode")},
        **{name: (name, 2) for name in ("min_by", "max_by", "string_agg")},
        **{name: (name, 2) for name in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")},
        "regr_count": ("regr_count", 2),
        "mean": ("avg", 1), "every": ("bool_and", 1), "any_value": ("min", 1), "variance": ("var_samp", 1),
        "stddev": ("stddev_samp", 1), "quantile_cont": ("quantile", 2), "percentile_cont": ("quantile", 2),
        **{f"approx_{name}": ("quantile", 2) for name in ("percentile", "quantile")}, "percentile_approx": ("quantile", 2),
        "quantile_disc": ("disc", 2), "percentile_disc": ("disc", 2),
        "percentile_disc desc": ("disc_down", 2),
        "arg_min": ("min_by", 2), "arg_max": ("max_by", 2), "listagg": ("string_agg", 2), "count_if": ("count_if", 1),
        "countif": ("count_if", 1), "first_value": ("first", 1), "last_value": ("last", 1), "std": ("stddev_samp", 1),
        "first": ("first", 1), "last": ("last", 1), "array_agg": ("array_agg", 1), "collect_list": ("array_agg", 1),
        "collect": ("array_agg", 1), "list": ("array_agg", 1),
    }
)  # fmt: skip
"""Aggregates by each of their names: the name that they have from then on, and how many operands they take."""
PAIRS = frozenset(
    {"covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count"}
)
"""Aggregates of two numbers, of the rows that have both."""
OF_TWO = frozenset({"min_by", "max_by", "string_agg", "quantile", "disc", "disc_down"})
OF_DIFFERENT = {"approx_count_distinct": "count", "count_distinct": "count", "collect_set": "array_agg"}
"""Other names of aggregates of different values; for some, exact is close enough."""
IN_ORDER = frozenset({"array_agg", "string_agg"})
"""Aggregates to which the order of the rows matters; without one it is that of the values."""
EXTREMES = frozenset({"min", "max", "min_by", "max_by", "bool_and", "bool_or"})
"""Aggregates that count copies once anyhow."""


def is_known(name: str) -> bool:
    """Whether `name`, in small letters, is a function or an aggregate that every query knows."""
    return name in FUNCTIONS or name in SEVERAL or name in AGGREGATES or name in OF_DIFFERENT


def aggregate_of(expr: s.Node) -> str | None:
    """The aggregate function that `expr` calls, or None. With two arguments `min` and `max` are ordinary functions."""
    match expr:
        case s.Call("filter" | "ordered", (s.Call() as call, *_)):
            return aggregate_of(call)
        case q.Folded():
            return "fold"
        case s.Call(function, args):
            name, _, distinct = function.lower().partition(".")
            if name in OF_DIFFERENT and not distinct:
                name, distinct = OF_DIFFERENT[name], "distinct"
            known = AGGREGATES.get(name)
            if known is None or distinct not in ("", "distinct") or len(args) > known[1]:
                return None
            return known[0] if not distinct or known[0] in EXTREMES else f"{known[0]}_distinct"
        case _:
            return None


def has_aggregate(expr: s.Node) -> bool:
    """Whether an aggregate is called anywhere in `expr`."""
    return any(aggregate_of(node) for node in walk(expr))
