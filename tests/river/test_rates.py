"""How many items a body emits, as far as its text says."""

from __future__ import annotations

import pytest

from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.rates import Interval, emitted
from river.source import Source

BREAKS = "var q = v; while q > 0 { q = div.trunc(q, 2); if q == 5 { break; } }"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"{BREAKS} emit y q;", (1, 1)),  # who leaves a loop inside skips nothing behind it
        ("for i in 0 .. 3 { if i == v { continue; } } emit y v;", (1, 1)),
        ("for i in 0 .. 3 { if i == v { break; } emit y v; }", (0, 3)),
        ("for i in 0 .. 3 { emit y i; if i == v { continue; } emit y v; }", (3, 6)),
        ("if v > 0 { emit y v; return; } else { emit y 0; } emit y 1;", (1, 2)),
        ("while v > 0 { emit y v; break; } emit y 1;", (1, None)),
        ("outer: for i in 0 .. 3 { for j in 0 .. 4 { if j == v { break outer; } emit y j; } }", (0, 12)),
    ],
)
def test_what_loops_and_those_who_leave_them_emit(body: str, found: Interval) -> None:
    text = f"""river 1;
    input xs: i64; output ys: i64;
    operator f(x: i64) -> (y: i64) {{ on x(v) {{ {body} }} }}
    (ys) <- f(xs);
    """
    (instance,) = verify(parse(Source("rates.river", text)), Library.of({})).instances
    op = instance.operator
    assert isinstance(op, typed.Operator)
    assert emitted(op.items[0].body, 0, op.fns) == found
