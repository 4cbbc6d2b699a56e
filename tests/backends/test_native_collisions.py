"""Keys whose hashes are made to be alike, which needs the secrets: all stays right, and by other secrets they are not alike."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native, jit
from backends.native.contract import ARENA_SIZE
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from backends.native.operator import NativeVariable
    from river.il.graph import Graph

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


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def small(word: int) -> bytes:
    return word.to_bytes(8, "little")


def keys_for(kind: str, words: Sequence[int], many: int = MANY) -> list[Any]:
    """Keys whose hashes are alike where the secrets are `words`: the second of them makes a factor zero."""
    match kind:
        case "{a: i64, b: i64}":
            return [(a, signed(words[1])) for a in range(-many // 2, many // 2)]
        case "bytes":
            return [small(words[1]) + small(i) for i in range(many)]
        case "(bytes, i64)":  # longer ones, in their middle
            return [(b"x" * 16 + small(words[1]) + small(i) + b"y" * 32, 1) for i in range(many)]
        case _:
            raise AssertionError(kind)


KINDS = ("bytes", "(bytes, i64)", "{a: i64, b: i64}")
PUBLIC = (0x9E3779B97F4A7C15, 0xD1342543DE82EF95, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB)
"""Words that everybody can read: those of `hash64`, and one of wyhash."""


@pytest.fixture
def secrets() -> Iterator[Callable[[Sequence[int]], None]]:
    """Sets the secrets, for as long as a test runs."""
    before = list(jit.secrets)

    def given(words: Sequence[int]) -> None:
        jit.secrets[:] = list(words)

    yield given
    given(before)


def compiled(key: str, *, debug: bool = False) -> tuple[Graph, typed.Operator, NativeOperator]:
    graph = verify(parse(Source("test.river", PROGRAM.replace("KEY", key))), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    native = compile_native(instance.operator, debug=debug)
    assert isinstance(native, NativeOperator)
    return graph, instance.operator, native


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("key", KINDS)
def test_keys_whose_hashes_are_alike(key: str, *, debug: bool) -> None:
    graph, operator, native = compiled(key, debug=debug)
    chance = seeds.chance("native collisions", key)
    keys = keys_for(key, list(jit.secrets), 150 if debug else MANY)
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


# ------------------------------------------------------------------------------------------------------- the index


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def segments(variable: NativeVariable) -> set[int]:
    """Where the segments of the index of a map lie."""
    map_ = variable.block.address + ARENA_SIZE
    index, mask = word(map_ + 24), word(map_ + 32)
    return {word(index + 8 * place) & (1 << 48) - 1 for place in range(mask + 1)}


def longest(variable: NativeVariable) -> int:
    """How many words of its index a map reads at most when it looks for a key that is there (`runtime/map.rt`)."""
    found = 0
    for segment in segments(variable):
        last = word(segment)
        for i in range(last + 1):
            entry = word(segment + 32 + 8 * i)
            if entry:
                found = max(found, 1 + (i - (entry >> 48) & last))
    return found


def probes(key: str, keys: list[Any]) -> int:
    """The longest search in a map of these keys."""
    _, operator, native = compiled(key)
    _, fired = native.fire_batch([[(0, each) for each in keys]])
    assert fired.trap is None
    assert len(native.variables[0].get()) == len(keys)
    assert operator.vars[0].name == "m"
    return longest(native.variables[0])


@pytest.mark.parametrize("key", KINDS)
def test_keys_are_alike_by_one_secret_only(key: str, secrets: Callable[[Sequence[int]], None]) -> None:
    keys, chance = keys_for(key, PUBLIC), seeds.chance("native collisions", key)
    secrets(PUBLIC)
    assert probes(key, keys) == MANY
    assert usual(key, keys, chance, secrets) < 50


def usual(key: str, keys: list[Any], chance: Random, secrets: Callable[[Sequence[int]], None]) -> int:
    """The longest search, in the middle of three secrets: by one in a thousand, keys in even steps lie in rows of some dozens."""
    found: list[int] = []
    for _ in range(3):
        secrets([chance.getrandbits(64) for _ in PUBLIC])
        found.append(probes(key, keys))
    return sorted(found)[1]


def scattered(kind: str, many: int) -> list[Any]:
    """Keys as they come, some of which simple hashes deal badly."""
    match kind:
        case "i64":
            return [(1 << 40) + (i << 20) for i in range(many)]
        case "f64":
            return [i / 4 for i in range(many)]
        case "string":
            return [f"{'x' * (i % 60)}{i}" for i in range(many)]
        case "(string, string)":
            return [(f"place {i}", f"place {i}") for i in range(many)]
        case "{a: i64, b: i64, c: i64?}":
            return [(i % 32, i // 32, i if i % 3 else None) for i in range(many)]
        case "(list<i32>, bool)":
            return [((i, i), True) for i in range(many)]
        case _:
            raise AssertionError(kind)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "key", ["i64", "f64", "string", "(string, string)", "{a: i64, b: i64, c: i64?}", "(list<i32>, bool)"]
)
def test_keys_as_they_come_are_found_soon(key: str, secrets: Callable[[Sequence[int]], None]) -> None:
    chance = seeds.chance("native collisions", key)
    assert usual(key, scattered(key, MANY), chance, secrets) < 50


def test_state_does_not_know_the_secrets(secrets: Callable[[Sequence[int]], None]) -> None:
    key = "{a: i64, b: i64}"
    rows = [(0, each) for each in scattered("{a: i64, b: i64, c: i64?}", MANY)]
    rows = [(what, (a, b)) for what, (a, b, _) in rows]
    outcomes: list[Any] = []
    for words in (PUBLIC, PUBLIC[::-1]):
        secrets(words)
        _, _, native = compiled(key)
        native.fire_batch([rows])
        kept = [variable.get() for variable in native.variables]
        secrets(range(7, 11))
        again = native.again()
        for variable, value in zip(again.variables, kept, strict=True):
            variable.set(value)
        found, fired = again.fire_batch([[(1, rows[3][1]), *rows, (6, rows[0][1])]])
        outcomes.append((repr(kept), list(found), fired))
    assert outcomes[0] == outcomes[1]


def test_code_does_not_know_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.native import shared

    made: list[bytes] = []

    def kept(_parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
        made.append(build())
        return made[-1]

    monkeypatch.setattr(shared, "kept", kept)
    compiled("{only: string, here: i64}")
    assert made
    assert not any(small(word) in code for word in jit.secrets for code in made)


def test_keys_are_found_in_an_index_that_is_larger_than_the_caches() -> None:
    """Its segments are filled to a half, not a third."""
    program = """river 1;
    input t: {what: i64, k: (i64, i64)};
    var $m: map<(i64, i64), i64> = {};
    operator f(t: {what: i64, k: (i64, i64)}; $m: map<(i64, i64), i64>) -> () {
      on t(x) {
        if x.what == 0 { with n = $m[x.k] else 0 { n = n * 2 + 1; } }
        if x.what == 1 { if delete($m, x.k) {} }
      }
    }
    ($m) <- f(t, $m);
    """
    (instance,) = verify(parse(Source("test.river", program)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    native = compile_native(instance.operator)
    assert isinstance(native, NativeOperator)
    (variable,) = native.variables
    chance, many = seeds.chance("large index"), 420_000
    rows = [(0, (i, -i)) for i in range(many)]
    rows += [(chance.randrange(2), (i, -i)) for i in chance.sample(range(2 * many), many // 4)]
    wanted = dict[Any, int]()
    for what, key in rows:
        if what == 0:
            wanted[key] = wanted.get(key, 0) * 2 + 1
        else:
            wanted.pop(key, None)
    for start in range(0, len(rows), many):
        _, fired = native.fire_batch([rows[start : start + many]])
        assert fired.trap is None
        if not start:
            loads = [word(each + 8) / (word(each) + 1) for each in segments(variable)]
            assert len(loads) >= 2048
            assert 1 / 3 < max(loads) <= 0.51
    assert dict(variable.get()) == wanted
    assert longest(variable) < 100
