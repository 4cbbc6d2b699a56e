"""The experiments of the ordered multicore paper run, and write plots where matplotlib is."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

FOLDER = Path(__file__).parent / "bench" / "experiments"
SMALL = {
    "skew": ("--items", "3000", "--micros", "1"),
    "latency": ("--messages", "3"),
    "reordering": ("--messages", "20"),
}
PLOTS = {
    "skew": ["skew"],
    "latency": ["latency"],
    "reordering": ["reordering-light", "reordering-selectivity"],
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch):
    def run(name: str, *arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_experiment_prints_tables_and_draws(
    name: str, script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(name, *SMALL[name], "--runs", "1", "--out", str(tmp_path / "plots"))
    shown = capsys.readouterr().out
    assert "(Fig. " in shown
    if find_spec("matplotlib") is None:
        assert "matplotlib is not installed" in shown
    else:
        assert {path.stem for path in (tmp_path / "plots").iterdir()} == set(PLOTS[name])


def test_without_matplotlib_the_tables_are_printed_all_the_same(
    script, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    script("reordering", "--messages", "10", "--runs", "1", "--out", str(tmp_path / "plots"))
    shown = capsys.readouterr().out
    assert "Fig. 13" in shown
    assert "no plot: matplotlib is not installed" in shown
    assert not (tmp_path / "plots").exists()
