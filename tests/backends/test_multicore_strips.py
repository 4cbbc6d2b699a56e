"""Blocks that are parsed and reduced strip by strip in one call of machine code: the results of the reference, for all tables.

`small` makes blocks of a few strips, and strips of a few rows.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import river
from backends.multicore import partial as blocks
from backends.multicore import strips
from backends.native.jit import Code
from backends.native.strips import Halt, StripLoop
from backends.native.tiers import Tier
from river.classes import evolve
from river.diagnostics import Rejected
from tests.backends.test_multicore_partial import (
    BAD,
    FORMATS,
    HEAD,
    ROWS,
    TABLES,
    blockwise,
    many,
    ran,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from river.driver import Compiled

FEW = 7
"""Rows of a strip."""

REDUCED = ("total", "plain", "heavy", "top", "most", "least", "kinds", "middle", "chosen")
"""The tables to which columns are only forwarded, and that have a combine."""


@pytest.fixture
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", 600)
        patch.setattr(strips, "ROOM", FEW)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strips")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the loop was called, and on how many rows all steps have fired in it."""
    found, run = Counter[str](), StripLoop.run

    def noted(self: StripLoop, state: Any, size: int) -> Halt | None:
        before = self.rows
        halt = run(self, state, size)
        found["calls"] += 1
        found["rows"] += self.rows - before
        return halt

    monkeypatch.setattr(StripLoop, "run", noted)
    return found


def program(*names: str) -> Compiled:
    """Tables that get what the file has, all of it."""
    tables = [f"{name}: {TABLES[name][0]};" for name in names]
    return river.compile(HEAD + "\n".join([*tables, *(TABLES[name][1] for name in names)]), "sawzall")


@st.composite
def programs(draw: st.DrawFn) -> Compiled:
    return program(*draw(st.lists(st.sampled_from(REDUCED), min_size=1, max_size=4, unique=True)))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@settings(max_examples=min(20, settings().max_examples))
@given(
    compiled=programs(),
    rows=ROWS,
    format_=FORMATS,
    bad=BAD,
    on_error=st.sampled_from(["stop", "skip"]),
    workers=st.integers(2, 4),
)
def test_any_number_of_workers_sees_what_the_reference_sees(
    folder: Path,
    compiled: Compiled,
    rows: list[Any],
    format_: str,
    bad: dict[int, str],
    on_error: str,
    workers: int,
) -> None:
    path = written(folder / f"rows.{format_}", rows, bad)
    wanted = ran(compiled, path, backend="reference", on_error=on_error)
    assert blockwise(compiled, path, workers, on_error=on_error) == wanted


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_one_call_does_a_block(tmp_path: Path, calls: Counter[str], suffix: str) -> None:
    compiled = program("plain", "kinds", "heavy")
    path = written(tmp_path / f"rows.{suffix}", many(300), {})
    wanted = ran(compiled, path, backend="reference")
    assert blockwise(compiled, path, 3) == wanted
    assert calls["rows"] == 300
    assert calls["calls"] <= path.stat().st_size / 600 + 4


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("emit", ["if (r.n > 2) emit plain <- r.n;", "emit plain <- r.n + 1;"])
def test_operators_that_compute_fire_one_after_the_other(
    tmp_path: Path, calls: Counter[str], emit: str
) -> None:
    compiled = river.compile(f"{HEAD}plain: {TABLES['plain'][0]};\n{emit}", "sawzall")
    path = written(tmp_path / "rows.csv", many(300), {})
    assert blockwise(compiled, path, 3) == ran(compiled, path, backend="reference")
    assert not calls


@pytest.mark.usefixtures("small")
def test_a_deadline_sees_each_firing(tmp_path: Path, calls: Counter[str]) -> None:
    compiled = program("plain", "kinds")
    path = written(tmp_path / "rows.csv", many(300), {})
    wanted = ran(compiled, path, backend="reference")
    assert blockwise(compiled, path, 3, deadline=60) == wanted
    assert not calls


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_what_the_general_reader_reads_is_fired_on_in_its_place(
    tmp_path: Path, calls: Counter[str], on_error: str
) -> None:
    compiled = program("kinds", "top", "total")
    quoted = [(row[0], f'with "quotes" {i}', row[2], row[3]) for i, row in enumerate(many(120))]
    path = written(tmp_path / "rows.csv", quoted, {50: "x", 51: "y", 90: "z"})
    wanted = ran(compiled, path, backend="reference", on_error=on_error)
    assert blockwise(compiled, path, 3, on_error=on_error) == wanted
    assert calls["rows"] < 120


def test_dead_letters_stand_in_the_order_of_the_file(tmp_path: Path, small: None) -> None:
    compiled = program("plain", "kinds")
    path = written(tmp_path / "rows.csv", many(200), dict.fromkeys(range(3, 200, 17), "x"))
    letters = [tmp_path / "one", tmp_path / "two"]
    wanted = ran(compiled, path, backend="reference", on_error=f"dead-letter={letters[0]}")
    assert blockwise(compiled, path, 3, on_error=f"dead-letter={letters[1]}")[:3] == wanted[:3]
    assert letters[0].read_text() == letters[1].read_text() != ""


@pytest.mark.usefixtures("small")
def test_wherever_firings_on_a_strip_end_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when memory is short: some steps have fired on all rows of a strip then, one on some, and the others on none."""
    places, halts = cycle([(0, 0), (1, 3), (2, 5), (0, 4), (2, 0)]), Counter[int]()

    def run(self: Any, state: Any, size: int) -> Halt | None:
        at = self._parser.words
        while state[at["at"]] < size:
            state[at["row"]] = state[at["doubt"]] = 0
            self._parser.code.function("ingest_parse", (ctypes.c_void_p,))(ctypes.addressof(state))
            if state[at["doubt"]]:
                return Halt()
            number, row = next(places)
            rows, row = state[at["row"]], min(row, state[at["row"]])
            for i, step in enumerate(self.steps[: number + 1]):
                step.native.fire(step.handler, step.batch.addresses, 0, rows if i < number else row)
            halts[number] += 1
            return Halt(number, row)
        return None

    monkeypatch.setattr(StripLoop, "run", run)
    compiled = program("kinds", "total", "most")
    path = written(tmp_path / "rows.csv", many(300), {40: "x"})
    options: dict[str, Any] = {"on_error": "skip"}
    wanted = ran(compiled, path, backend="reference", **options)
    assert blockwise(compiled, path, 3, **options) == wanted
    assert set(halts) == {0, 1, 2}
    found = compiled.run({"r": path}, workers=3, experiment={"gate": "open"}, **options)
    metrics = found.summary.metrics
    assert metrics is not None
    assert {one.fired for one in metrics.operators.values()} == {299}


@pytest.mark.usefixtures("small")
def test_firings_end_when_the_run_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Counter[str]
) -> None:
    path = written(tmp_path / "rows.csv", many(300), {})
    compiled = program("plain")
    whole = strips.CopyStrips.reduce
    ended = list[Any]()

    def stopped(self: Any, block: Any) -> Any:
        if not ended:
            self._copy.stop()
        found = whole(self, block)
        ended.append(found.trapped and found.trapped[1].code)
        return found

    monkeypatch.setattr(strips.CopyStrips, "reduce", stopped)
    blockwise(compiled, path, 2)
    assert ended[0] == "stopped"
    assert calls["rows"] < 300


@pytest.mark.usefixtures("small")
def test_it_is_told_how_long_each_operator_fired(tmp_path: Path, calls: Counter[str]) -> None:
    compiled = program("kinds", "top")
    path = written(tmp_path / "rows.csv", many(300), {})
    found = compiled.run({"r": path}, workers=2, experiment={"gate": "open"})
    metrics = found.summary.metrics
    assert metrics is not None
    assert calls["rows"] == 300
    assert {one.fired for one in metrics.operators.values()} == {300}
    reducers = [one for name, one in metrics.operators.items() if name.startswith(("kinds", "top"))]
    assert len(reducers) == 2
    assert all(one.seconds > 0 for one in reducers)


@pytest.mark.usefixtures("small")
def test_nothing_behind_an_error_is_fired_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fired = list[int]()
    whole = strips.CopyStrips.reduce

    def noted(self: Any, block: Any) -> Any:
        found = whole(self, block)
        fired.append(found.rows)
        return found

    monkeypatch.setattr(strips.CopyStrips, "reduce", noted)
    path = written(tmp_path / "rows.csv", many(20), {11: "x", 13: "y"})
    with pytest.raises(Rejected):
        program("plain").run({"r": path}, workers=2, experiment={"gate": "open"})
    assert fired[0] == 11


def test_code_that_is_fired_on_strips_becomes_better() -> None:
    found = list[float]()
    quick, better = Code({"fire": 1}), Code({"fire": 2})
    tier = Tier(lambda: better, found.append)
    code = evolve(quick, tier=tier)
    assert code.entry("fire") == 1
    code.ran(0.25)
    code.ran(0.25)
    assert tier.seconds == 0.5
    tier.better = better
    assert code.entry("fire") == 2
    better.ran(1.0)  # nobody waits for a still better one
    assert tier.seconds == 0.5
