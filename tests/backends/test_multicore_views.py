"""Views on multicore: what is written is what the evaluator's rows are, byte for byte, however many workers keep the variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import views
from backends.native import views as native_views
from river.diagnostics import Rejected
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

TABLES = """
r: {user: int, site: string, page: string, ms: float} = input;
total: table sum[user: int][site: string] of {n: int, ms: float};
pages: table top(3)[site: string] of page: string weight ms: float;
slow: table maximum(5)[user: int] of page: string weight ms: float;
emit total[r.user][r.site] <- {n: 1, ms: r.ms};
emit pages[r.site] <- r.page weight r.ms;
emit slow[r.user] <- r.page weight r.ms;
"""
NAMES = ("total", "pages", "slow")

TRAPPING = """river 1;
type R = {k: string, n: i64};
input r: R;
fn shown(k: string, n: i64) -> list<i64> = [div.trunc(100, n - 3)];
operator add(r: R; $m: map<string, i64>) -> () { on r(x) { $m[x.k] = x.n; } }
var $m: map<string, i64> = {};
output o: i64 = rows($m, shown);
($m) <- add(r, $m);
"""
NESTED = TRAPPING.replace(
    "list<i64> = [div.trunc(100, n - 3)]", "list<map<string, i64>> = [{(k): n}]"
).replace("output o: i64", "output o: map<string, i64>")
WHOLE = TRAPPING.replace("k: string, n: i64) ->", "m: map<string, i64>) ->").replace(
    "[div.trunc(100, n - 3)]", "values(m)"
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "LEAST", 0)


def items(count: int) -> list[dict[str, Any]]:
    random = seeds.chance("tables as columns")
    texts = ["", 'a "b", c', "http://www.example.com/1", "http://www.example.com/10", "é\n"]
    floats = [0.0, -0.0, 1.5, float("nan"), float("inf"), -3.25, 1e300]
    return [
        {"user": random.randrange(-9, 9), "site": random.choice(texts), "page": random.choice(texts) * random.randrange(3),
         "ms": random.choice(floats)}
        for _ in range(count)
    ]  # fmt: skip


def written(folder: Path, rows: list[dict[str, Any]], suffix: str, **options: Any) -> dict[str, bytes]:
    """What each table's file holds."""
    files = {name: folder / f"{name}.{suffix}" for name in NAMES}
    river.compile(TABLES, "sawzall").run({"r": rows}, {k: str(v) for k, v in files.items()}, **options)
    return {name: path.read_bytes() for name, path in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_tables_are_those_of_the_evaluator(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = items(1200)
    made = written(tmp_path, rows, suffix, workers=1, batch=100)
    monkeypatch.setattr(views, "LEAST", 1 << 60)
    wanted = written(tmp_path, rows, suffix, workers=1, batch=1 << 20)
    if suffix != "parquet":  # of which pages and row groups may begin elsewhere
        assert made == wanted
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for name in NAMES:
            tables = [pq.read_table(pa.BufferReader(each[name])) for each in (made, wanted)]
            assert tables[0].schema == tables[1].schema
            assert str(tables[0].to_pylist()) == str(tables[1].to_pylist())


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "arrow"])
def test_tables_that_several_workers_keep(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whose rows several make, put in order, and make text of."""
    monkeypatch.setattr("backends.native.ranking.SEVERAL", 50)
    monkeypatch.setattr("backends.native.views.MANY", 50)
    rows = items(2000)
    options: dict[str, Any] = {"workers": 3, "batch": 50, "experiment": {"gate": "open"}}
    made = written(tmp_path, rows, suffix, **options)
    monkeypatch.setattr(views, "LEAST", 1 << 60)
    wanted = written(tmp_path, rows, suffix, workers=1)
    if suffix != "arrow":  # of which record batches may begin elsewhere
        assert made == wanted
        return
    import pyarrow as pa

    for name in NAMES:
        tables = [pa.ipc.open_file(pa.BufferReader(each[name])).read_all() for each in (made, wanted)]
        assert tables[0].schema == tables[1].schema
        assert str(tables[0].to_pylist()) == str(tables[1].to_pylist())


def ran(text: str, count: int = 9, **options: Any) -> Any:
    rows = [{"k": f"k{i}", "n": i} for i in range(count)]
    return river.compile(text, "river").run({"r": rows}, **options)


def test_traps_of_views_are_those_of_the_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Rejected) as native:
        ran(TRAPPING)
    monkeypatch.setattr(views, "LEAST", 1 << 60)
    with pytest.raises(Rejected) as evaluated:
        ran(TRAPPING)
    assert native.value.diagnostics == evaluated.value.diagnostics
    assert [each.code for each in native.value.diagnostics] == ["trap-division-by-zero"]


def test_rows_that_are_not_compiled_are_told_of() -> None:
    found = ran(NESTED)
    assert found["o"].to_pylist() == [{"value": [(f"k{i}", i)]} for i in range(9)]
    assert [each.code for each in found.warnings] == ["native-refused"]
    assert found.summary.host_calls == {"o": 9}


def test_views_of_a_whole_value() -> None:
    found = ran(WHOLE)
    assert found["o"].to_pylist() == [{"value": i} for i in range(9)]
    assert found.summary.host_calls == {}


def test_the_time_of_views_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.multicore import run

    monkeypatch.setattr(run, "SHOWN", 0.0)
    seen: list[str] = []
    found = ran(WHOLE, observe=lambda metrics: seen.append(metrics.doing))
    assert found.summary.metrics.outputs["o"].items == 9
    told = [each for each in seen if each]
    assert told[0].startswith("rows of `o`")
    assert told[-1] == "9 of 9 rows of `o` written"
    assert found.summary.metrics.doing == ""


@pytest.mark.parametrize("count", [29, 30])
def test_what_makes_rows_is_told_by_the_entries(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Not by their memory, which is another one in each run where several workers have made the table."""
    made: list[str] = []
    compile_view = native_views.compile_view

    def noted(view: Any, *more: Any, **options: Any) -> Any:
        made.append(view.name)
        return compile_view(view, *more, **options)

    monkeypatch.setattr(native_views, "compile_view", noted)
    monkeypatch.setattr(views, "LEAST", 30 * views.ENTRY)
    text = TRAPPING.replace("[div.trunc(100, n - 3)]", "[n + len(k)]")
    rows = [{"k": f"{i:>9999}", "n": i} for i in range(count)]
    found = river.compile(text, "river").run({"r": rows})
    assert found["o"].to_pylist() == [{"value": 9999 + i} for i in range(count)]
    assert made == ["o"] * (count == 30)
