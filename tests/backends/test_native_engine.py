"""What surrounds native code: batches that are left and resumed, marks, the cache, the control word, the runtime's language."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import Batch, NativeOperator, cache, compile_native, pages
from backends.native.batch import OutputBlock
from backends.native.rtlang import RuntimeSourceError, Unit, compile_tree
from backends.native.shared import compile_text
from river.diagnostics import InternalError
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import memory
from river.lang import types as t
from river.lang.values import Mark
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path


def native(text: str) -> NativeOperator:
    graph = verify(parse(Source("test.river", "river 1;\n" + text)), Library.of({}))
    (instance,) = graph.instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found


COPY = """input t: i64; output o: i64; var $n: i64 = 0;
operator f(t: i64; $n: i64) -> (o: i64) { on t(x) { $n = $n + 1; for i in 0 .. x { emit o i; } let y = 1 << 62; emit o y * x; } }
(o, $n) <- f(t, $n);"""


def test_a_trap_withdraws_its_firing_only() -> None:
    op = native(COPY)
    (items,), fired = op.fire_batch([[1, 0, 2, 1]])
    assert items == [0, 1 << 62, 0]
    assert fired.row == 2
    assert fired.trap is not None
    assert (fired.trap.code, fired.trap.row, fired.trap.operands) == ("overflow", 2, (1 << 62, 2))


def test_a_full_output_is_left_and_resumed() -> None:
    op = native(COPY)
    batch = Batch.of(op.handlers[0].slots[0], [1, 1, 1, 1])
    first = op.fire("item.0", batch.addresses, 0, 4, limit=3)
    assert (first.row, first.full) == (2, True)
    assert op.variables[0].get() == 2
    op.outputs[0].clear()
    second = op.fire("item.0", batch.addresses, first.row, 4)
    assert (second.row, second.full, op.outputs[0].rows) == (4, False, 4)


def test_marks_stand_between_items() -> None:
    op = native("""input t: {k: i64} by k; output o: {k: i64} by k;
        operator f(t: {k: i64} by k) -> (o: {k: i64} by k) {
          on t(x) { emit o x; mark o x.k; emit o x; } on mark(k) { mark o k; } }
        (o) <- f(t);""")
    (items,), _ = op.fire_batch([[(3,), (5,)]])
    assert items == [(3,), Mark(3), (3,), (5,), Mark(5), (5,)]
    assert op.fire_batch([[9]], "mark")[0] == ([Mark(9)],)


def test_deep_recursion_traps() -> None:
    op = native("""input t: i64; output o: i64;
        fn down(n: i64) -> i64 { if n == 0 { return 0; } return 1 + down(n - 1); }
        operator f(t: i64) -> (o: i64) { on t(x) { emit o down(x); } }
        (o) <- f(t);""")
    (items,), fired = op.fire_batch([[999_999, 1_000_000]])
    assert items == [999_999]
    assert fired.trap is not None
    assert (fired.trap.code, fired.trap.row) == ("recursion-depth", 1)


def test_a_map_of_many_keys() -> None:
    op = native("""input t: i64; output o: i64; var $m: map<i64, i64> = {};
        operator f(t: i64; $m: map<i64, i64>) -> (o: i64) {
          on t(x) { with e = $m[x] else 0 { e = e + 1; if e == 2 { drop e; } } emit o len($m); } }
        (o, $m) <- f(t, $m);""")
    keys = [(i * 0x9E3779B97F4A7C15 & (1 << 64) - 1) - (1 << 63) if i % 3 else i for i in range(20_000)]
    _, fired = op.fire_batch([keys])
    assert fired.trap is None
    assert op.variables[0].get() == dict.fromkeys(keys, 1)
    _, fired = op.fire_batch([keys[::2]])
    assert op.variables[0].get() == dict.fromkeys(keys[1::2], 1)
    assert op.fire_batch([keys[::2]])[1].trap is None
    assert list(op.variables[0].get()) == keys[1::2] + keys[::2]


@pytest.mark.slow
def test_ordered_maps_and_bags_of_many_items() -> None:
    op = native("""input t: {k: i64, add: bool}; output o: {low: i64?, floor: i64?, ceil: i64?, n: i64};
        var $m: omap<i64, string> = {}; var $b: bag<string> = {};
        operator f(t: {k: i64, add: bool}; $m: omap<i64, string>, $b: bag<string>)
            -> (o: {low: i64?, floor: i64?, ceil: i64?, n: i64}) {
          on t(x) {
            let s = "the text of a number: " + string(x.k);
            if x.add { $m[x.k] = s; add($b, s); } else { if delete($m, x.k) { remove($b, s); } }
            emit o {low: first_key($m), floor: floor($m, x.k + 1), ceil: ceil($m, x.k - 1), n: count($b, s)};
          } }
        (o, $m, $b) <- f(t, $m, $b);""")
    chance = seeds.chance("native engine", 3)
    items = [(chance.randrange(-900, 900), chance.random() < 0.6) for _ in range(3000)]
    (found,), fired = op.fire_batch([items])
    assert fired.trap is None
    keys: set[int] = set()
    texts: list[int] = []
    for (k, add), got in zip(items, found, strict=True):
        if add:
            keys.add(k)
            texts.append(k)
        elif k in keys:
            keys.remove(k)
            texts.remove(k)
        below, above = [x for x in keys if x <= k + 1], [x for x in keys if x >= k - 1]
        expected = (
            min(keys, default=None),
            max(below, default=None),
            min(above, default=None),
            texts.count(k),
        )
        assert got == expected
    assert list(op.variables[0].get()) == sorted(keys)
    assert list(op.variables[1].get()) == [f"the text of a number: {k}" for k in texts]


def test_memory_of_a_steady_state_does_not_grow() -> None:
    op = native(
        """input t: i64; output o: i64; var $m: map<string, list<string>> = {};
        operator f(t: i64; $m: map<string, list<string>>) -> (o: i64) {
          on t(x) {
            with l = $m["a key that is not short " + string(x % 100)] else [] {
              push(l, "an item that is not short " + string(x));
              if len(l) > 10 { drop l; }
            } } }
        (o, $m) <- f(t, $m);""".replace("x % 100", "mod.floor(x, 100)")
    )
    used = []
    for _ in range(6):
        _, fired = op.fire_batch([list(range(5000))])
        assert fired.trap is None
        used.append(op.variables[0].memory)
    assert used[1] == used[-1] > 0


def test_a_list_beyond_memory_traps() -> None:
    op = native("""input t: i64; output o: i64;
        operator f(t: i64) -> (o: i64) { on t(x) { let l: list<i64> = fill(1, x); emit o len(l); } }
        (o) <- f(t);""")
    (items,), fired = op.fire_batch([[3, 1 << 60]])
    assert items == [3]
    assert fired.trap is not None
    assert fired.trap.code == "arena-limit"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not there")
def test_small_numbers_are_not_flushed_to_zero(tmp_path: Path) -> None:
    """Loading a library linked with -ffast-math may set flush-to-zero for the thread."""
    source = tmp_path / "flush.c"
    source.write_text("#include <xmmintrin.h>\nvoid flush(int on) { _mm_setcsr(on ? 0x9fc0 : 0x1f80); }\n"
                      "int word(void) { return _mm_getcsr(); }\n")  # fmt: skip
    made = subprocess.run(
        [shutil.which("gcc") or "gcc", "-shared", "-fPIC", source, "-o", tmp_path / "flush.so"],
        check=False,
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("not an x86 processor")
    library = ctypes.CDLL(str(tmp_path / "flush.so"))
    op = native(
        "input t: f64; output o: f64; operator f(t: f64) -> (o: f64) { on t(x) { emit o x * 0.5; } } (o) <- f(t);"
    )
    batch = Batch.of(op.handlers[0].slots[0], [1e-310])
    library.flush(1)
    try:
        op.fire("item.0", batch.addresses, 0, 1)
        left = library.word()
    finally:
        library.flush(0)
    assert op.outputs[0].batch().values() == [1e-310 * 0.5]
    assert left & 0x8040 == 0x8040  # and what was set is set again


def test_the_cache_rebuilds_what_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    calls: list[int] = []

    def build() -> bytes:
        calls.append(1)
        return b"code"

    assert [cache.kept(("a",), build), cache.kept(("a",), build), cache.kept(("b",), build)] == [b"code"] * 3
    assert len(calls) == 2
    for file in (tmp_path / "native").iterdir():
        assert file.suffix == ".o"
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert cache.kept(("a",), build) == b"code"
    assert len(calls) == 3


def test_a_module_that_is_not_correct_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="not well formed"):
        compile_text("define i64 @f() { ret i32 0 }", ["f"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(a: i64) -> i64:\n    return a + i32(1)", "bad.rt:2: operands are i64 and i32"),
        ("def f(a: i64) -> i64:\n    return g(a)", "bad.rt:2: `g` of 1 is not known"),
        ("def f(a: i64) -> i64:\n    a = i32(a)\n    return a", "bad.rt:2: `a` is i64, not i32"),
        ("def f(a: int) -> i64:\n    return a", "bad.rt:1: `int` is no type"),
        ("def f(a: i64) -> i64:\n    if a == 0:\n        return 1", "bad.rt:1: no result at the end"),
        ("def f():\n    return\ndef f():\n    return", "bad.rt:3: there are two functions `f`"),
    ],
)
def test_mistakes_in_runtime_sources_have_a_line(source: str, message: str) -> None:
    import ast

    with pytest.raises(RuntimeSourceError) as caught:
        compile_tree(ast.parse(source), "bad.rt", Unit())
    assert str(caught.value) == message


def test_importing_the_package_does_not_load_llvm() -> None:
    code = "import sys, backends.native; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def values(op: NativeOperator) -> Any:
    return [output.batch().values() for output in op.outputs]


def test_code_is_kept_in_a_folder_that_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    made = []

    def build() -> bytes:
        made.append(1)
        return b"code"

    assert [cache.kept(("a",), build) for _ in range(2)] == [b"code"] * 2
    assert len(made) == 1
    (file,) = (tmp_path / "native").iterdir()
    file.write_bytes(file.read_bytes()[:-1])  # damaged: made again
    assert cache.kept(("a",), build) == b"code"
    assert len(made) == 2
    (tmp_path / "native").chmod(0o777)  # others may write: nothing is read
    assert cache.kept(("a",), build) == b"code"
    assert len(made) == 3


def test_the_older_half_goes_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "MOST", 5)
    for i in range(6):
        cache.kept((str(i),), lambda: b"code")
        newest = max((tmp_path / "native").iterdir(), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, ns=(i, i))
    assert len(list((tmp_path / "native").iterdir())) == 3


SENDS = """input t: i64; output o: {n: i64, l: list<i64>, s: string};
operator f(t: i64) -> (o: {n: i64, l: list<i64>, s: string}) {
  on t(x) { emit o {n: x, l: [i for i in 0 .. rem.trunc(x, 5)], s: string(x)}; }
}
(o) <- f(t);"""


def test_few_rows_of_large_tables_are_taken_as_copies() -> None:
    """What keeps them does not keep the memory of many, which is filled again."""
    op = native(SENDS)
    rows = [{"n": i, "l": list(range(i % 5)), "s": str(i)} for i in range(40_000)]
    taken: list[Batch] = []
    for first, last in ((0, 30_000), (30_000, 30_900), (30_900, 31_000), (31_000, 31_000), (31_000, 40_000)):
        batch = Batch.of(op.handlers[0].slots[0], list(range(first, last)))
        assert op.fire("item.0", batch.addresses, 0, last - first).row == last - first
        ((_, found, _),) = list(op.take()) or [(0, None, None)]
        if found is not None:
            taken.append(found)
    where = [each.addresses[0] for each in taken]
    assert len(set(where)) == 4
    values = [row for each in taken for row in each.values()]
    assert [dict(zip(("n", "l", "s"), map(_plain, row), strict=True)) for row in values] == rows


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.usefixtures("others_are_no_garbage")
def test_large_memory_is_kept_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    op = native(
        "input t: i64; output o: i64; operator f(t: i64) -> (o: i64) { on t(x) { emit o x + 1; } } (o) <- f(t);"
    )
    items = Batch.of(op.handlers[0].slots[0], list(range(1 << 18)))
    kept: list[Batch] = []
    for _ in range(3):
        op.fire("item.0", items.addresses, 0, 1 << 18)
        kept += [batch for _, batch, _ in op.take()]
    assert [batch.values()[-1] for batch in kept] == [1 << 18] * 3
    where = {batch.addresses[0] for batch in kept}
    assert len(where) == 3
    del kept[:], op
    gc.collect()
    assert set(pages._waiting[1 << 21]) >= where
    assert pages.take(1 << 21, 1 << 21) in where


def test_what_is_expected_has_room_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at a line of the caches, does not move while it is filled, and little is not asked for."""
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    op = native(
        "input t: f32; output o: f32;"
        "operator f(t: f32) -> (o[push 1]: f32) { on t[pop 1](w) { emit o w[0]; } } (o) <- f(t);"
    )
    (out,) = op.outputs
    op.expect(100)
    assert out.words[1] == 0
    item = op.operator.ports[0].type
    items = Batch.of(item, [float(i) for i in range(300_000)])
    for _ in range(2):
        op.expect(300_000)
        room, where = out.words[1], out.words[3]
        assert room == 1 << 19
        assert where % 64 == 0
        op.fire("rated", items.addresses, 0, 300_000)
        ((_, found, _),) = op.take()
        assert found.addresses == (where,)
        assert found.values() == items.values()
    op.fire("rated", items.addresses, 0, 10)
    before = tuple(out.words)
    op.expect(1 << 20)
    assert tuple(out.words) == before
    op.clear()


def test_memory_that_is_too_small_for_what_is_expected_is_kept_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    op = native(
        "input t: f32; output o: f32;"
        "operator f(t: f32) -> (o[push 1]: f32) { on t[pop 1](w) { emit o w[0]; } } (o) <- f(t);"
    )
    (out,) = op.outputs
    op.expect(20_000)
    room, where = out.words[1], out.words[3]
    assert room == 1 << 15
    op.expect(300_000)
    assert list(pages._waiting[4 * room]) == [where]
    assert pages.take(4 * room, 4 * room) == where
    pages.give(where, 4 * room)


def test_tables_that_are_filled_again_have_room_for_what_came_before() -> None:
    out = OutputBlock(t.I64)
    pool, like = out._pool, out.words[:]
    pool.put(pool.get(like))
    like[0] = 20_000
    found = pool.get(like)  # the one that was there, which had no room
    like[0] = 100
    other = pool.get(like)  # as large as it is now and then
    assert (found[1], other[1]) == (1 << 15, 1 << 15)
    for words in (found, other):
        pool.free(words)


def test_so_many_pieces_of_memory_are_kept_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes are for the C library at once; of what is small there is not as much as of what is large."""
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    for size, kept in ((1 << 15, 0), (1 << 16, 64), (1 << 20, 32), (1 << 24, 2), (1 << 26, 0)):
        places = [pages.take(size, 0) for _ in range(kept + 1)]
        assert len(set(places)) == kept + 1
        for place in places:
            pages.give(place, size)
        assert list(pages._waiting[size]) == places[:kept]
        for place in pages._waiting.pop(size):
            pages.free(place, size)


def test_who_fires_no_more_gives_memory_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is read until later; it may fire again all the same."""
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    op = native(
        "input t: i64; output o: i64; operator f(t: i64) -> (o: i64) { on t(x) { emit o x + 1; } } (o) <- f(t);"
    )
    items = Batch.of(op.handlers[0].slots[0], list(range(1 << 17)))
    kept: list[Batch] = []
    for _ in range(2):
        op.fire("item.0", items.addresses, 0, 1 << 17)
        kept += [batch for _, batch, _ in op.take()]
    first, second = (batch.addresses[0] for batch in kept)
    del kept[0]
    op.rest()
    assert first in pages._waiting[1 << 20]
    assert second not in pages._waiting[1 << 20]
    assert kept[0].values()[-1] == 1 << 17
    del kept[0]
    assert second in pages._waiting[1 << 20]
    op.fire("item.0", items.addresses, 0, 1 << 17)
    ((_, found, _),) = op.take()
    assert found.values()[0] == 1


def test_large_pages_are_asked_for_within_memory_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what others have beside it nothing is said, and nothing at all where no large page lies in it, or memory is limited."""
    asked: list[tuple[int, int, int]] = []

    class System:
        @staticmethod
        def madvise(place: int, size: int, how: int) -> None:
            asked.append((place, size, how))

    monkeypatch.setattr(pages, "_soon", System)
    monkeypatch.setattr(pages, "HUGE", 14)
    page = 1 << 21
    pages.large(5 * page - 64, 2 * page + 128)
    pages.large(5 * page, page)
    assert asked == [(5 * page, 2 * page, 14), (5 * page, page, 14)]
    pages.large(5 * page + 1, 2 * page - 2)
    monkeypatch.setattr(memory, "limited", lambda: 1 << 30)
    pages.large(5 * page, page)
    monkeypatch.setattr(pages, "HUGE", -1)
    monkeypatch.setattr(memory, "limited", lambda: None)
    pages.large(5 * page, page)
    assert len(asked) == 2


def test_memory_for_numbers_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By others, too, that need less; not where memory is limited, of which each takes what it needs."""
    monkeypatch.setattr(pages, "_waiting", defaultdict[int, "deque[int]"](deque))
    taken: list[int] = []
    take = pages.take
    monkeypatch.setattr(pages, "take", lambda size, used: taken.append(size) or take(size, used))
    first = pages.words(40_000)
    place = ctypes.addressof(first)
    kept = (ctypes.c_int64 * 10).from_buffer(first, 80)
    del first
    assert ctypes.addressof(pages.words(50_000)) != place  # as a part of it is in use
    del kept
    assert place in {ctypes.addressof(each) for each in [pages.words(60_000) for _ in range(2)]}
    monkeypatch.setattr(memory, "limited", lambda: 1 << 30)
    assert len(pages.words(40_000)) == 40_000
    assert len(pages.words(3)) == 3
    assert taken == [8 << 16] * 4 + [320_000]


def test_pages_that_are_touched_stay_as_they_are() -> None:
    size = 1 << 20
    place = pages.take(size, size)
    ctypes.memset(place, 7, size)
    pages.touch(place + 100, size - 200)
    pages.touch(place, 10)  # in which no page lies
    assert ctypes.string_at(place, size) == bytes([7]) * size
    pages.give(place, size)
