"""What is read from exact float sums (il.md P7). `add`, shared with bags, stands in containers.py."""

from __future__ import annotations

from river.lang import types as t
from river.lang.operations.effects import PURE, Neutral, combining
from river.lang.operations.table import Operation, first_of, fixed, plain
from river.lang.values import Sum, add_to_sum, sum_value

number = first_of(fixed((t.FSUM, t.F64), t.UNIT), fixed((t.FSUM, t.F32), t.UNIT))


def _sub(total: Sum, value: float) -> tuple[Sum, tuple[()]]:
    return add_to_sum(total, value, -1), ()


def _merge(total: Sum, other: Sum) -> tuple[Sum, tuple[()]]:
    a, b, c, d = total
    e, f, g, h = other
    return (a + e, b + f, c + g, d + h), ()


OPERATIONS: tuple[Operation, ...] = (
    Operation("sub", number, plain(_sub), "takes a number back out of an exact sum", mutates="value",
        effect=combining("sum", Neutral.ZERO)),
    Operation("merge", fixed((t.FSUM, t.FSUM), t.UNIT), plain(_merge),
        "adds the second exact sum to the first", mutates="value", effect=combining("sum", Neutral.ZERO)),
    Operation(
        "value", fixed((t.FSUM,), t.F64), plain(sum_value),
        "the exact sum, rounded once; infinite beyond the range; NaN for inf - inf", effect=PURE,
    ),
)  # fmt: skip
