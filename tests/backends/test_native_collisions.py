"""Keys whose hashes are made to be alike: maps, bags and differences stay right, natively as in the evaluator."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.module import runtime
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator
from river.source import Source

WORD = (1 << 64) - 1
MANY = 1500

PROGRAM = """river 1;
type K = KEY;
input t: {what: i64, k: K}; output o: i64;
var $m: map<K, i64> = {}; var $b: bag<K> = {}; var $l: list<K> = []; var $w: map<K, map<K, i64>> = {};
operator f(t: {what: i64, k: K}; $m: map<K, i64>, $b: bag<K>, $l: list<K>, $w: map<K, map<K, i64>>) -> (o: i64) {
  on t(x) {
    if x.what == 0 { with n = $m[x.k] else 0 { n = n + 1; } add($b, x.k); push($l, x.k); }
    if x.what == 1 { if delete($m, x.k) { emit o -1; } }
    if x.what == 2 { remove($b, x.k); }
    if x.what == 3 { var both: list<K> = bag_minus($l, to_list($b)); emit o len(both); clear($l); }
    if x.what == 4 { with inner = $w[x.k] else {} { inner[x.k] = len(inner) + len($m); } }
    if x.what == 5 { clear($m); }
    if x.what == 6 { var n = 0; for k, v in $m { n = n *% 31 +% v; } emit o n; }
    emit o len($m); emit o get($m, x.k, 0); emit o count($b, x.k); emit o len($w);
  }
}
(o, $m, $b, $l, $w) <- f(t, $m, $b, $l, $w);
"""


def fold(h: int, word: int) -> int:
    """A step of the hash, as `text.rt` has it."""
    product = ((h ^ word) & WORD) * (runtime().constants["STEP"] & WORD)
    return (product ^ product >> 64) & WORD


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def pairs() -> list[Any]:
    """Records of two numbers: the second makes up for the first."""
    seed = runtime().constants["SEED"] & WORD
    return [(a, signed(fold(seed, a & WORD) ^ 12345)) for a in range(-MANY // 2, MANY // 2)]


def halves() -> list[Any]:
    """Bytes whose first half takes the second half out of the product."""
    seed = (runtime().constants["SEED"] & WORD).to_bytes(8, "little")
    return [seed + i.to_bytes(8, "little") for i in range(MANY)]


def tails() -> list[Any]:
    """The same for texts that are longer, in their middle."""
    step = (runtime().constants["STEP"] & WORD).to_bytes(8, "little")
    return [b"x" * 16 + step + i.to_bytes(8, "little") + b"y" * 32 for i in range(MANY)]


KEYS = {"{a: i64, b: i64}": pairs(), "bytes": halves(), "(bytes, i64)": [(key, 1) for key in tails()]}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("key", sorted(KEYS))
def test_keys_whose_hashes_are_alike(key: str, *, debug: bool) -> None:
    graph = verify(parse(Source("test.river", PROGRAM.replace("KEY", key))), Library.of({}))
    (instance,) = graph.instances
    operator = instance.operator
    assert isinstance(operator, typed.Operator)
    native = compile_native(operator, debug=debug)
    assert isinstance(native, NativeOperator)
    chance, keys = random.Random(key), KEYS[key][: 150 if debug else MANY]
    rows = [(0, each) for each in keys]
    kinds = [0, 0, 1, 1, 2, 4, 4]
    rows += [(chance.choice(kinds), chance.choice(keys)) for _ in range(2 * len(keys))]
    rows += [(what, chance.choice(keys)) for what in (6, 3, 1, 5, 0, 6, 3, 0, 2, 6)]
    body, outs = compile_operator(operator).item[0], [[]]
    assert body is not None
    variables: list[Any] = [variable.initial for variable in graph.variables]
    kept = []
    for row in rows:
        try:
            body(variables, row, outs)
        except Trap:  # nothing to remove; what was emitted is nothing, too
            continue
        kept.append(row)
    found, fired = native.fire_batch([kept])
    assert fired.trap is None
    assert list(found) == outs
