"""From source to sink no Python runs for a row: calls are counted while files of different lengths go through."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.multicore import views
from river.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEEP = """river 1;
type R = {n: i64, s: string, x: f64};
input r: R;
output o: R;
operator keep(r: R) -> (o: R) { on r(v) { if v.x > 1.0 { emit o v; } } }
(o) <- keep(r);
"""
TABLES = """r: {n: int, s: string, x: float} = input;
total: table sum[n: int] of x: float;
pages: table top(2)[s: string] of n: int weight x: float;
emit total[r.n] <- r.x;
emit pages[r.s] <- r.n weight r.x;
"""
SHOWN = '''# total
n,x
0,0.0
1,6.0
# pages
s,n,x
"key ""0""",324,6.0
"key ""0""",3081,5.0
'''
FEW, MANY = 4_000, 24_000
PATHS = {
    "parquet to parquet": ("keep.river", "parquet", ["--out", "o={}/o.parquet"]),
    "csv to standard output": ("keep.river", "csv", []),
    "csv to standard output, some of it": ("keep.river", "csv", ["--limit", "900"]),
    "parquet to standard output as arrow": ("keep.river", "parquet", ["--format", "arrow"]),
    "tables to files": (
        "tables.szl", "csv", ["--out", "total={}/total.jsonl", "--out", "pages={}/pages.parquet"],
    ),
    "tables to standard output": ("tables.szl", "csv", []),
    "tables to standard output as entries": ("tables.szl", "csv", ["--format", "entries"]),
}  # fmt: skip


def stdout() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=False)


def calls(run: Callable[[], object]) -> int:
    """How often a function of Python or C is called meanwhile, in any thread."""
    counts: dict[int, int] = {}

    def count(_frame: Any, event: str, _of: Any) -> None:
        if event in ("call", "c_call"):
            here = threading.get_ident()
            counts[here] = counts.get(here, 0) + 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sum(counts.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    made = tmp_path_factory.mktemp("columns")
    (made / "keep.river").write_text(KEEP)
    (made / "tables.szl").write_text(TABLES)
    for count in (FEW, MANY):
        rows = range(count)
        table = pa.table({
            "n": [i * 7919 % count for i in rows], "s": [f'key "{i % 999}"' for i in rows],
            "x": [float(i % 7) for i in rows],
        })  # fmt: skip
        pc.write_csv(table, made / f"{count}.csv")
        pq.write_table(table, made / f"{count}.parquet")
    return made


@pytest.mark.some(2)
@pytest.mark.parametrize("path", PATHS)
def test_no_python_runs_for_a_row(path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "LEAST", 0)
    program, suffix, args = PATHS[path]

    def run(count: int) -> None:
        source = f"r={folder}/{count}.{suffix}"
        given = [
            "run",
            str(folder / program),
            "--in",
            source,
            *(a.format(folder) for a in args),
            "--workers",
            "1",
        ]
        errors = io.StringIO()
        assert main(given, io.StringIO(), stdout(), errors) == 0, errors.getvalue()

    run(FEW)  # what is made once is there then
    few, many = calls(lambda: run(FEW)), calls(lambda: run(MANY))
    assert many - few < (MANY - FEW) / 10, (few, many)


@pytest.mark.parametrize("form", ["csv", "jsonl", "tsv"])
def test_standard_output_has_the_bytes_of_a_file(form: str, folder: Path) -> None:
    given = ["run", str(folder / "keep.river"), "--in", f"r={folder}/{FEW}.csv", "-q"]
    data, target = io.BytesIO(), folder / f"same.{form}"
    out = io.TextIOWrapper(data, "utf-8")
    assert main([*given, "--format", form], io.StringIO(), out, io.StringIO()) == 0
    assert main([*given, "--out", f"o={target}"], io.StringIO(), out, io.StringIO()) == 0
    assert data.getvalue() == target.read_bytes()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", ""])
def test_several_outputs_stand_under_their_names_on_standard_output(encoding: str, folder: Path) -> None:
    data = io.BytesIO()
    plain = io.StringIO()
    out = io.TextIOWrapper(data, encoding) if encoding else plain
    source = f"r={folder}/{FEW}.csv"
    given = ["run", str(folder / "tables.szl"), "--in", source, "--limit", "2", "--format", "csv", "-q"]
    assert main(given, io.StringIO(), out, io.StringIO()) == 0
    out.flush()
    text = data.getvalue().decode(encoding) if encoding else plain.getvalue()
    assert text == SHOWN
