"""Code that is made quickly at first: calls go over to the better code when it is there, at any time, and lose nothing."""

from __future__ import annotations

import os
import shutil
from ctypes import c_int64
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import views
from backends.native import NativeOperator, apart, compile_native, improving, jit, ranking, shared, tiers
from backends.native.apart import Order
from backends.native.ingest import code
from backends.native.jit import OPTIMISATION, QUICK, Code, optimised
from backends.native.tiers import AGAIN, BRIEF, STEADY, UNTIMED, Elsewhere, Improver, Tier, while_running
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
    """An empty cache, and nobody who states how much code is optimised; there can be no other process."""
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    monkeypatch.setattr(shared, "stated", lambda: False)
    monkeypatch.setattr(tiers, "_KNOWN", [])
    monkeypatch.setattr(tiers, "_ELSEWHERE", Elsewhere())
    monkeypatch.setattr(tiers, "begin", lambda _: None)
    with optimised(OPTIMISATION):
        yield


_USED: Final[dict[int, str]] = {}
"""Where operators begin to count, and in which test: what another one has made in this process would be found."""


def counts(seed: int) -> NativeOperator:
    """An operator of which nobody has code but this test: `seed` is where it begins to count."""
    test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    assert _USED.setdefault(seed, test) == test
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
        assert set(levels) == {QUICK}
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
    levels: list[int] = []
    make = shared.machine_code

    def made(text: str, level: int) -> bytes:
        if "fire.item" in text:  # an operator's
            levels.append(level)
        return make(text, level)

    class Few(list[Any]):
        """Rows that are said to be more."""

        def __len__(self) -> int:
            return rows

    monkeypatch.setattr(shared, "machine_code", made)
    text = COUNTS.replace("SEED", str(80 + quick))
    found = river.compile(text, "river").run({"x": Few([{"k": "a", "n": 1}])})
    assert found["y"].to_pylist() == [{"k": "a", "n": 81 + quick}]
    assert levels == [0 if quick else OPTIMISATION]


def test_what_runs_when_the_inputs_have_ended_is_made_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much the inputs are, that is on a table, and mostly over before the code would be better."""
    levels: dict[str, int] = {}
    make = shared.machine_code

    def made(text: str, level: int) -> bytes:
        kinds = {
            "@places(": "rows",
            "@arrow.rank_open(": "order",
            "@encode(": "text",
            "@fire.item.0(": "operator",
        }
        levels[next((kind for part, kind in kinds.items() if part in text), "")] = level
        return make(text, level)

    class Few(list[Any]):
        """Rows that are said to be more."""

        def __len__(self) -> int:
            return tiers.LARGE

    monkeypatch.setattr(shared, "machine_code", made)
    monkeypatch.setattr(views, "LEAST", 0)
    monkeypatch.setattr(ranking, "_ranking", ranking._ranking.__wrapped__)
    text = "t: table sum[key: string] of ends: int;\nr: {k: string, n: int} = input;\nemit t[r.k] <- r.n + 7171;\n"
    found = river.compile(text, "sawzall").run({"r": Few([{"k": "b", "n": 1}, {"k": "a", "n": 2}])})
    assert found["t"].to_pylist() == [{"key": "a", "ends": 7173}, {"key": "b", "ends": 7172}]
    assert levels["operator"] == OPTIMISATION
    assert {levels["rows"], levels["order"]} == {QUICK}


def test_the_code_that_parses_is_made_beside_that_of_the_operators(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun, seen = {"ingest": Event(), "operator": Event()}, list[bool]()
    make = shared.machine_code

    def made(text: str, level: int) -> bytes:
        kind = "ingest" if "@ingest_parse(" in text else "operator" if "@fire.item.0(" in text else None
        if kind is not None and not begun[kind].is_set():
            begun[kind].set()
            seen.append(all(each.wait(60) for each in begun.values()))
        return make(text, level)

    monkeypatch.setattr(shared, "machine_code", made)
    monkeypatch.setattr(code, "parser", code.parser.__wrapped__)
    file = tmp_path / "beside.csv"
    file.write_text("beside,n\na,1\n")
    text = "t: table sum[k: string] of n: int;\nr: {beside: string, n: int} = input;\nemit t[r.beside] <- r.n + 717;\n"
    found = river.compile(text, "sawzall").run({"r": file}, workers=2)
    assert found["t"].to_pylist() == [{"k": "a", "n": 718}]
    assert seen == [True, True]


@pytest.mark.parametrize(
    ("sizes", "effort"),
    [
        ([], QUICK),
        ([10], 0),
        ([10, tiers.SMALL], QUICK),
        ([10, 0], QUICK),  # nobody knows how large the other one is
        ([10, tiers.LARGE], QUICK),
    ],
)
def test_how_much_code_is_optimised_is_told_by_the_inputs(sizes: list[int], effort: int) -> None:
    assert tiers.effort_for(sizes) == effort
    assert bool(tiers.room_for(sizes)) == (sum(sizes) > tiers.LARGE)


def test_a_run_on_much_has_as_much_code_optimised_as_it_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no room for is made quickly, and may be improved later."""
    levels: list[int] = []
    sizes: list[int] = []
    make = shared.machine_code

    def made(text: str, level: int) -> bytes:
        if "fire.item" in text:
            levels.append(level)
            sizes.append(len(text))
        return make(text, level)

    with while_running(room=1 << 30):
        counts(195)  # the parts of the library are there now
    monkeypatch.setattr(shared, "machine_code", made)
    with while_running(room=1 << 30):
        counts(196)
    size = max(sizes)
    with while_running(room=2 * size - 1) as improver:
        native = [counts(197), counts(198)]
        assert improver.room < size
    assert levels == [OPTIMISATION, OPTIMISATION, QUICK]
    assert [each.code.tier is None for each in native] == [True, False]
    assert [fired(each, ("a", 1)) for each in native] == [[("a", 198)], [("a", 199)]]


@pytest.mark.parametrize("first", [0, QUICK])
def test_what_was_made_quickly_is_used_by_all_runs(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    with while_running(first):
        counts(85 + first)
    forget()
    levels: list[int] = []
    make = shared.machine_code
    monkeypatch.setattr(shared, "machine_code", lambda *given: levels.append(given[1]) or make(*given))
    with while_running(QUICK - first):
        assert fired(counts(85 + first), ("a", 1)) == [("a", 86 + first)]
    assert not levels


def test_what_is_large_is_not_optimised_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"
    passes = jit._quick_passes
    asked: list[int] = []
    monkeypatch.setattr(jit, "_quick_passes", lambda: asked.append(len(text)) or passes())
    for most in (len(text) + 1, len(text)):
        monkeypatch.setattr(jit, "LARGE", most)
        made = jit.linked(jit.machine_code(text, QUICK), ("f",), {})
        assert made.function("f", (c_int64,), c_int64)(41) == 42
    assert asked == [len(text)]


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


def times(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> tuple[float, int]:
    """Of calls that take so long each: what is counted of them, and how often the time was asked for."""
    now, asked = 0.0, 0
    left = iter(seconds)

    def clock() -> float:
        nonlocal asked
        asked += 1
        return now

    def quick() -> None:
        nonlocal now
        now += next(left)

    monkeypatch.setattr(tiers, "perf_counter", clock)
    tier = Tier(lambda: Code({}), lambda _: None)
    call = tier.function("quick", quick, (), None, short=False)
    for _ in seconds:
        call()
    return tier.seconds, asked


def test_long_calls_among_brief_ones_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ([BRIEF / 10] * 3 + [5e-3]) * 40
    assert times(monkeypatch, *calls)[0] == pytest.approx(sum(calls))


def test_where_all_calls_are_brief_few_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [BRIEF / 10] * (STEADY + 100 * (1 + UNTIMED))
    seconds, asked = times(monkeypatch, *calls)
    assert seconds == pytest.approx(sum(calls))
    assert asked == 2 * (STEADY + 100)


def runs_of(seed: int, *seconds: float) -> Tier:
    """The code of an operator that has run for so long in each of some runs."""
    for each in seconds:
        with while_running() as improver:
            tier = counts(seed).code.tier
            assert tier is not None
            improver.look()
            tier.seconds = each
    return tier


def test_what_is_run_again_is_improved_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[Order] = []
    monkeypatch.setattr(tiers, "begin", ordered.extend)
    once, seldom = runs_of(91, 2 * AGAIN), runs_of(92, AGAIN / 3, AGAIN / 3, AGAIN / 4)
    assert not ordered
    often = runs_of(93, AGAIN, 0.0)
    assert ordered == [often.order]
    improving.fulfil(ordered)
    with while_running():
        native = counts(93)
        assert fired(native, ("a", 1)) == [("a", 94)]
    assert often.better is not None
    assert once.better is seldom.better is None
    assert ordered == [often.order]
    forget()
    with while_running():
        assert counts(93).code.tier is None


def test_what_runs_for_long_is_improved_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work = [True]
    monkeypatch.setattr(tiers, "begin", lambda _: 1)
    monkeypatch.setattr(tiers, "ended", lambda _: None if at_work[0] else 0)
    with while_running() as improver:
        tier = counts(94).code.tier
        assert tier is not None
        assert tier.order is not None
        tier.seconds = 2 * tiers.LONG
        improver.look()
        improver.look()
        assert improver.thread is None
        at_work[0] = False  # without having made anything
        improver.look()
        assert improver.thread is not None
        improver.thread.join()
        assert tier.better is not None


@pytest.mark.slow
def test_a_process_of_its_own_improves_code() -> None:
    """It holds nothing that this one was started with: who reads a pipe learns that it has ended when this one has."""
    tier = runs_of(95, AGAIN)
    assert tier.order is not None
    assert not tier.order.done
    reads, writes = os.pipe()
    os.set_inheritable(writes, True)
    process = apart.begin([tier.order])
    os.close(writes)
    assert process is not None
    assert os.read(reads, 1) == b""
    assert apart.ended(process) is None, "it ended before that could be seen"
    os.close(reads)
    assert os.waitpid(process, 0)[1] == 0
    assert apart.ended(process) == 0
    with while_running():
        assert tier.order.done


def test_two_processes_do_not_improve_code_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tier = runs_of(96, AGAIN)
    assert tier.order is not None
    monkeypatch.setattr(improving, "_alone", lambda _: False)
    assert not improving.fulfil([tier.order])
    assert not tier.order.done
    monkeypatch.setattr("sys.argv", ["-c", tier.order.quick, tier.order.better, str(tier.order.level)])
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: None)
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    with pytest.raises(SystemExit) as left:
        improving.main()
    assert left.value.code == apart.ANOTHER


def test_while_the_process_of_another_run_is_at_work_code_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread would be in the way of the run, whose end waits for it."""
    begun: list[int] = []
    statuses = iter([None, apart.ANOTHER, apart.ANOTHER, None, 0])
    monkeypatch.setattr(tiers, "begin", lambda orders: begun.append(len(orders)) or len(begun))
    monkeypatch.setattr(tiers, "ended", lambda _: next(statuses))
    with while_running() as improver:
        tier = counts(99).code.tier
        assert tier is not None
        tier.seconds = 2 * tiers.LONG
        for _ in range(5):
            improver.look()
        assert begun == [1, 1, 1]
        assert improver.thread is None
        improver.look()  # it ended without having made anything
        assert improver.thread is not None


def test_a_cache_that_is_removed_meanwhile_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tier = runs_of(97, AGAIN)
    assert tier.order is not None
    improved = improving.improved
    done: list[str] = []

    def removed(data: bytes, level: int) -> bytes:
        made = improved(data, level)
        shutil.rmtree(tmp_path)
        done.append("improved")
        return made

    monkeypatch.setattr(improving, "improved", removed)
    monkeypatch.setattr(improving, "kept_as", lambda *_: done.append("kept"))
    improving.fulfil([tier.order, tier.order])
    assert done == ["improved"]
    assert not tmp_path.exists()


@pytest.mark.parametrize("program", ["", "/opt/app/server"])
def test_no_other_program_is_started_in_place_of_python(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr("sys.executable", program)
    assert apart.begin([Order("a", "b", OPTIMISATION)]) is None
