"""What is known of the items that loops read and write."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

from backends.native.lanes.indices import filled, repeated
from river.lang import typed
from tests.backends.lanes import operator


def body(text: str) -> tuple[typed.Stmt, ...]:
    """The statements of a firing."""
    op = operator(f"operator f(x: i32) -> (y: i32) {{ on x[pop 8](w) {{ {text} }} }}", "i32")
    assert op.rated is not None
    return op.rated.body.items


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        ("for i in 0 .. 4 { a[i] = w[i]; } emit y a[3];", True),
        ("for i in 0 .. 2 { for j in 0 .. 2 { a[j * 2 + i] = w[i]; } } emit y a[3];", True),
        ("for i in 0 .. 4 { a[3 - i64(i)] = w[i]; } for i in 0 .. 4 { emit y a[i]; }", True),
        ("for i in 0 .. 2 { a[i] = w[i]; } for i in 0 .. 2 { a[i + 2] = a[1 - i]; } emit y a[2];", True),
        ("for i in 0 .. 3 { a[i] = w[i]; } emit y a[3];", False),
        ("for i in 0 .. 4 { a[i] = a[0]; } emit y a[3];", False),
        ("for i in 0 .. 4 { if w[0] > 0 { a[i] = w[i]; } } emit y a[3];", False),
        ("for i in 0 .. 4 { if i == 3 { break; } a[i] = w[i]; } emit y a[3];", False),
        ("for i in 0 .. 4 { if i == 3 { continue; } a[i] = w[i]; } emit y a[3];", False),
        ("for i in 0 .. 4 { a[i * i] = w[i]; } emit y a[2];", False),
        ("for i in 0 .. 4 { a[i] = w[i]; } for each in a { emit y each; }", False),
        ("for i in 0 .. 4 { var k: i64 = 0; while k < 4 { a[k] = 1; k = k + 1; } } emit y a[2];", False),
        ("let n = i64(w[0]); for i in 0 .. n { for j in 0 .. 4 { a[j] = w[0]; } } emit y a[2];", False),
    ],
)
def test_whether_zeros_are_read(rest: str, known: bool) -> None:
    variable, *others = body(f"var a: array<i32, 4> = zero(); {rest}")
    assert isinstance(variable, typed.Var)
    assert filled(variable, others) is known


@pytest.mark.parametrize(
    ("loop", "counts"),
    [
        ("for i in 0 .. 4 { for j in 0 .. 5 { emit y w[j] + w[i]; } }", {0: 5}),
        ("for i in 0 .. 4 { for j in 0 .. 5 { emit y w[j] + w[7 - j]; } }", {0: 8}),
        ("for i in 0 .. 4 { for j in 0 .. 3 { emit y w[i + j]; } }", {}),
        ("for i in 0 .. 4 { emit y w[i]; }", {}),
    ],
)
def test_what_every_turn_reads(loop: str, counts: dict[int, int]) -> None:
    (found,) = body(loop)
    assert isinstance(found, typed.For)
    assert repeated(found) == counts
