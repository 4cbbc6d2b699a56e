"""Queues ordered by keys of every type that the language admits: merges, marks and their order, natively as in the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch
from river.backend import Options
from river.driver import Compiled, compile_source, observe
from river.lang import typed
from river.lang import types as t
from river.lang.check.operators import KEYS
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    import random

PROGRAM = """river 1;
type R = {name: string, t: KEY};
input r: R by t;
input s: R by t;
operator pass(r: R by t) -> (o: R by t) { on r(x) { emit o x; } on mark(k) { mark o k; } }
operator both(r: R by t, s: R by t) -> (o: {t: KEY, a: string?, b: string?} by t) {
  on merge(r(x), s(y)) {
    var a: string? = none;
    var b: string? = none;
    if x is x { a = x.name; }
    if y is y { b = y.name; }
    emit o {t: key, a: a, b: b};
  }
  on mark(k) { mark o k; }
}
(q) <- pass(r);
(o) <- both(q, s);
output o: {t: KEY, a: string?, b: string?} by t;
"""
RANGES = {
    "i32": (-(1 << 31), (1 << 31) - 1), "u64": (0, (1 << 64) - 1), "i64": (-(1 << 63), (1 << 63) - 1),
    "time": (-(1 << 63), (1 << 63) - 1), "duration": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip


def program(key: t.Primitive) -> Compiled:
    return compile_source(Source("keys.river", PROGRAM.replace("KEY", key.name)))


def rows(key: t.Primitive, count: int, chance: random.Random) -> list[tuple[Any, ...]]:
    low, high = RANGES[key.name]
    some = [low, low + 1, -1, 0, 1, high // 2, high // 2 + 1, high - 1, high]
    keys = sorted(max(low, chance.choice((*some, chance.randint(low, high)))) for _ in range(count))
    return [(chance.choice("abc"), each) for each in keys]


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_merges_of_every_key(key: t.Primitive) -> None:
    compiled, chance = program(key), seeds.chance("native keys", 1)
    for instance in compiled.graph.instances:
        assert isinstance(instance.operator, typed.Operator)
        assert isinstance(compile_native(instance.operator), NativeOperator)
    for count in (0, 1, 3, 200):
        given = {"r": rows(key, count, chance), "s": rows(key, count // 2, chance)}
        expected = repr(observe(compiled, "reference", given, Options()))
        for batch in (1, 64, 4096) if count == 200 else (1, chance.choice((64, 4096))):
            options = Options(batch=batch, native=chance.choice(("on", "debug")))
            assert repr(observe(compiled, "multicore", given, options)) == expected, options


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_where_keys_fall(key: t.Primitive) -> None:
    low, high = RANGES[key.name]
    type_ = t.Record((("name", t.STRING), ("t", key)))
    keys = [low, low, (low + high) // 2, high // 2 + 2, high, high]
    for turn in range(len(keys)):
        turned = [*keys[turn:], *keys[:turn]] * 7
        batch = Batch.of(type_, [("", each) for each in turned])
        assert list(batch.numbers(1)) == turned
        for least in (None, *keys):
            before = [low if least is None else least, *turned]
            falls = [i for i, each in enumerate(turned) if each < before[i]]
            assert batch.fall(1, least) == (falls[0] if falls else None)
