"""Code that is made quickly at first: calls go over to the better code when it is there, at any time, and lose nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native import NativeOperator, compile_native, shared, tiers
from backends.native.jit import OPTIMISATION, Code, optimised
from backends.native.tiers import Improver, Tier, while_running
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNTS = """river 1;
input x: {k: string, n: i64};
output y: {k: string, n: i64};
var $v: map<string, i64> = {};
operator counts(x: {k: string, n: i64}; $v: map<string, i64>) -> (y: {k: string, n: i64}) {
  on x(r) { with c = $v[r.k] else SEED { c = c + r.n; emit y {k: r.k, n: c}; } }
}
(y, $v) <- counts(x, $v);
"""


@pytest.fixture(autouse=True)
def _as_for_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty cache, and nobody who states how much code is optimised."""
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    monkeypatch.setattr(shared, "stated", lambda: False)
    monkeypatch.setattr(tiers, "_KNOWN", [])
    with optimised(OPTIMISATION):
        yield


def counts(seed: int) -> NativeOperator:
    """An operator of which nobody has code: `seed` is where it begins to count."""
    graph = verify(parse(Source("test.river", COUNTS.replace("SEED", str(seed)))), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    made = compile_native(instance.operator)
    assert isinstance(made, NativeOperator)
    return made


def forget() -> None:
    """Operators are new to the process, as they are to another one."""
    for key in [key for key in shared._KNOWN if "operator" in key]:
        del shared._KNOWN[key]
    tiers._KNOWN.clear()


def fired(native: NativeOperator, *rows: tuple[str, int]) -> list[Any]:
    (found,), how = native.fire_batch([rows])
    assert how.row == len(rows)
    return found


def test_state_goes_over_to_the_better_code() -> None:
    with while_running():
        native = counts(41)
        other = native.again()
        tier = native.code.tier
        assert tier is not None
        assert fired(native, ("a", 1), ("b", 2), ("a", 3)) == [("a", 42), ("b", 43), ("a", 45)]
        assert tier.seconds > 0
        tier.improve()
        assert tier.better is not None
        assert tier.better.addresses != native.code.addresses
        before = tier.seconds
        assert fired(native, ("a", 1), ("c", 1)) == [("a", 46), ("c", 42)]
        assert fired(other, ("a", 5)) == [("a", 46)]
        assert tier.seconds == before


def test_nothing_is_optimised_before_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int] = []
    make = shared.machine_code

    def made(text: str, level: int) -> bytes:
        levels.append(level)
        return make(text, level)

    monkeypatch.setattr(shared, "machine_code", made)
    monkeypatch.setattr(shared, "_KNOWN", {})
    with while_running():
        native = counts(31)
        assert fired(native, ("a", 1)) == [("a", 32)]
        assert native.code.tier is not None
        assert len(levels) > 1  # with parts of the runtime library
        assert set(levels) == {0}
        native.code.tier.improve()
        assert fired(native, ("a", 1)) == [("a", 33)]
        assert OPTIMISATION in levels


@pytest.mark.slow
def test_outside_of_runs_code_is_optimised() -> None:
    assert counts(51).code.tier is None
    with while_running():
        assert counts(51).code.tier is None
        quick = counts(52).code.tier
        assert quick is not None
        assert quick.better is None
    assert counts(52).code.tier is quick
    assert quick.better is not None


def test_code_that_is_kept_is_used_as_it_is() -> None:
    with while_running():
        tier = counts(61).code.tier
        assert tier is not None
        tier.improve()
    forget()
    with while_running():
        assert counts(61).code.tier is None


@pytest.mark.parametrize(("ran", "later"), [(0.6, False), (0.3, True)])
def test_what_has_run_for_long_in_all_is_optimised_while_the_next_run_begins(
    ran: float, *, later: bool
) -> None:
    for _ in range(2):
        with while_running():
            tier = counts(71 + later).code.tier
            assert tier is not None
            tier.seconds = ran * tiers.LONG
        forget()
    with while_running() as improver:
        tier = counts(71 + later).code.tier
        assert tier is not None
        assert tier.better is None
        improver.look()
        if improver.thread is not None:
            improver.thread.join()
        assert (tier.better is None) == later


@pytest.mark.parametrize(("rows", "quick"), [(10, True), (tiers.LARGE // 64, False)])
def test_a_run_on_much_has_optimised_code(monkeypatch: pytest.MonkeyPatch, rows: int, *, quick: bool) -> None:
    begun: list[str] = []
    begin = shared._begun

    def noted(key: str, *more: Any) -> Code:
        begun.append(key)
        return begin(key, *more)

    class Few(list[Any]):
        """Rows that are said to be more."""

        def __len__(self) -> int:
            return rows

    monkeypatch.setattr(shared, "_begun", noted)
    text = COUNTS.replace("SEED", str(80 + quick))
    found = river.compile(text, "river").run({"x": Few([{"k": "a", "n": 1}])})
    assert found["y"].to_pylist() == [{"k": "a", "n": 81 + quick}]
    assert bool(begun) == quick


def test_what_runs_longest_is_improved_first() -> None:
    made: list[str] = []

    def tier(name: str, seconds: float) -> Tier:
        def make() -> Code:
            made.append(name)
            return Code({})

        found = Tier(make, lambda ran: made.append(f"{name} ran {ran}"), seconds=seconds)
        tiers.known(found)
        return found

    some = [tier("a", 1.0), tier("b", 3.0), tier("c", tiers.LONG / 2)]
    improver = Improver()
    for _ in range(4):
        improver.look()
        if improver.thread is not None:
            improver.thread.join()
    assert made == ["b", "a"]
    assert [one.better is not None for one in some] == [True, True, False]
    improver.stop()
    assert made == ["b", "a", f"c ran {tiers.LONG / 2}"]
