"""What is used for the last time is not copied, and nobody sees that."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.lower.moves import moved
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import compile_operator
from river.lang.trees import nodes
from river.source import Source

PROGRAM = """river 1;
input x: i64;
operator f(x: i64) -> (y: list<i64>) {
  on x(n) {
    var kept: list<list<i64>> = [];
    var all: list<i64> = [];
    for i in 0 .. n {
      var made: list<i64> = [i];
      push(made, n);
      all = made;
      push(all, 7);
      var other: list<i64> = [i, i];
      push(kept, other);
      var twice: list<i64> = [i];
      push(kept, twice);
      push(twice, 1);
      push(all, len(twice));
      var seen: list<i64> = [i];
      for a in seen { all = seen; push(all, a); }
      var rows: list<list<i64>> = [[i]];
      let row = rows[0];
      kept = rows;
      kept[0][0] = 5;
      push(all, row[0]);
    }
    for each in kept { for a in each { push(all, a); } }
    emit y all;
  }
}
(y) <- f(x);
output y: list<i64>;
"""


def operator() -> typed.Operator:
    (instance,) = verify(parse(Source("moves.river", PROGRAM)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


def test_nobody_sees_that_a_value_is_not_copied() -> None:
    op = operator()
    native, fire = compile_native(op), compile_operator(op).item[0]
    assert isinstance(native, NativeOperator)
    assert fire is not None
    for n in range(4):
        outs: list[list[Any]] = [[]]
        fire([], n, outs)
        found, _ = native.fire_batch([[n]])
        assert list(found) == outs


def test_what_is_moved() -> None:
    (handler,) = operator().items
    blocks = [node for node in nodes(handler.body) if isinstance(node, typed.Block)]
    uses = {id(node): node.name for node in nodes(handler.body) if isinstance(node, typed.Local)}
    assert sorted(uses[each] for block in blocks for each in moved(block)) == ["made", "other"]
