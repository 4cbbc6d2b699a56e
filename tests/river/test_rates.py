"""How many items a body emits, as far as its text says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from river.il import combine
from river.il.combine import combines
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import rates, trees, typed
from river.lang.rates import Interval, emitted
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

BREAKS = "var q = v; while q > 0 { q = div.trunc(q, 2); if q == 5 { break; } }"


def operator(body: str) -> typed.Operator:
    text = f"""river 1;
    input xs: i64; output ys: i64; var $n: i64 = 0;
    operator f(x: i64; $n: i64) -> (y: i64) {{ on x(v) {{ $n = $n +% 1; {body} }} }}
    (ys, $n) <- f(xs, $n);
    """
    (instance,) = verify(parse(Source("rates.river", text)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


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
    op = operator(body)
    assert emitted(op.items[0].body, 0, op.fns) == found


@pytest.mark.parametrize("read", [lambda op: emitted(op.items[0].body, 0, op.fns), combines])
def test_blocks_inside_of_blocks_are_read_once(
    read: Callable[[typed.Operator], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, children = 0, trees.children

    def counted(node: typed.Node) -> list[typed.Node]:
        nonlocal looked
        looked += 1
        return children(node)

    def steps(cases: int) -> int:
        nonlocal looked
        body = " else ".join(f"if v == {i} {{ $n = $n +% {i}; emit y {i}; }}" for i in range(cases))
        op, looked = operator(body), 0
        for module in (rates, combine, trees):
            monkeypatch.setattr(module, "children", counted)
        read(op)
        monkeypatch.undo()
        return looked

    assert steps(80) < 5 * steps(20)
