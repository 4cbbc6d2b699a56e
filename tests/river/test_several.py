"""Inputs that are several files: the same rows as one file, and what is wrong with one is told with its place there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import river
from river.diagnostics import Rejected
from river.io.several import Files, files_of
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

QUERY = """t: {ts: int; k: string; v: int} stream by ts;
output o: relation = select k, count(*) as n, sum(v) as w from t[range 3] group by k;"""
TIMED = river.compile(QUERY, "cql")
TABLE = river.compile(
    "x: {k: string, v: int} = input; n: table sum[k: string] of int; emit n[x.k] <- x.v;", "sawzall"
)
ROWS = [{"ts": n // 3, "k": "abc"[n * n % 7 % 3], "v": n} for n in range(90)]
BACKENDS = ["reference", "multicore"]


def put(path: Path, rows: list[dict[str, Any]]) -> None:
    """A file of rows, in the format of its suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text("ts,k,v\n" + "".join(f"{row['ts']},{row['k']},{row['v']}\n" for row in rows))


@pytest.fixture(params=["csv", "parquet", "mixed"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Three files, of which one is empty, and what is hidden."""
    kinds = {"mixed": ["csv", "arrow", "parquet"]}.get(request.param, [request.param] * 3)
    for name, kind, rows in zip("abc", kinds, (ROWS[:40], [], ROWS[40:]), strict=True):
        if rows or kind == "csv":
            put(tmp_path / f"{name}.{kind}", rows)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.crc").touch()
    return tmp_path


@pytest.mark.parametrize("backend", BACKENDS)
def test_files_are_read_one_after_the_other(backend: str, folder: Path) -> None:
    expected = [TIMED.run({"t": ROWS}, backend="reference"), TABLE.run({"x": ROWS}, backend="reference")]
    for spec in (
        f"{folder}/",
        folder,
        f"{folder}/*.*",
        Files(tuple(sorted(map(str, folder.glob("?.*")))), "them"),
    ):
        for program, name, wanted in zip((TIMED, TABLE), "tx", expected, strict=True):
            found = program.run({name: spec}, backend=backend, workers=2, batch=16)
            assert found.read == len(ROWS)
            assert {each: found[each].to_pylist() for each in found.tables} == {
                each: wanted[each].to_pylist() for each in wanted.tables
            }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_time_goes_on_from_one_file_to_the_next(backend: str, kind: str, tmp_path: Path) -> None:
    put(tmp_path / f"a.{kind}", ROWS[:40])
    put(tmp_path / f"b.{kind}", ROWS[30:])
    with pytest.raises(Rejected) as refused:
        TIMED.run({"t": f"{tmp_path}/"}, backend=backend)
    (found,) = refused.value.diagnostics
    assert found.code == "data-order"
    assert found.place == (f"{tmp_path}/b.csv:2" if kind == "csv" else f"{tmp_path}/b.parquet, row 1")
    late = TIMED.run({"t": f"{tmp_path}/"}, backend=backend, lateness=9)
    rows = sorted(ROWS[:40] + ROWS[30:], key=lambda row: row["ts"])
    assert late["o"].to_pylist() == TIMED.run({"t": rows}, backend="reference")["o"].to_pylist()
    skipped = TIMED.run({"t": f"{tmp_path}/"}, backend=backend, on_error="skip")
    assert "9 rows skipped (9 data-order)" in skipped.warnings[0].message
    assert (
        skipped["o"].to_pylist()
        == TIMED.run({"t": ROWS[:40] + ROWS[39:]}, backend="reference")["o"].to_pylist()
    )


@pytest.mark.parametrize(
    "kinds", [("csv", "csv", "csv"), ("csv", "parquet", "csv"), ("arrow", "csv", "parquet")]
)
def test_rows_wait_for_those_of_the_next_file(
    kinds: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In columns; what is wrong is the same as where Python looks at every row, told with the same place."""
    chance = seeds.chance("late files", *kinds)
    shuffled = [row | {"ts": row["ts"] + chance.choice([-3, 0, 0, 0, 4])} for row in ROWS]
    for name, kind, (start, stop) in zip("abc", kinds, [(0, 31), (31, 60), (60, 90)], strict=True):
        put(tmp_path / f"{name}.{kind}", shuffled[start:stop])

    def outcomes(backend: str) -> list[Any]:
        found: list[Any] = []
        for lateness, on_error in ((7, "stop"), (9, "stop"), (4, "skip"), (1, "skip"), (1, "stop")):
            try:
                options = {"lateness": lateness, "on_error": on_error, "batch": 16}
                run = TIMED.run({"t": f"{tmp_path}/"}, backend=backend, **options)
                warned = [each.message for each in run.warnings]
                found.append((run["o"].to_pylist(), run.read, warned))
            except Rejected as refused:
                found += [(each.code, each.place, each.message) for each in refused.diagnostics]
        return found

    expected = outcomes("reference")
    assert any(each[0] == "data-late" for each in expected)
    if find_spec("llvmlite"):  # then nobody looks at all rows one by one
        monkeypatch.setattr("river.io.order.Ordering.push", None)
        monkeypatch.setattr("river.io.order.Ordering.release", None)
    assert outcomes("multicore") == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_that_is_wrong_is_told_with_its_place(backend: str, tmp_path: Path) -> None:
    put(tmp_path / "a.csv", ROWS[:40])
    (tmp_path / "b.csv").write_text("ts,k,v\n20,a,1\n21,b,five\n")
    with pytest.raises(Rejected) as refused:
        TABLE.run({"x": f"{tmp_path}/*.csv"}, backend=backend)
    (found,) = refused.value.diagnostics
    assert (found.code, found.place) == ("data-type", f"{tmp_path}/b.csv:3:6")


def test_what_is_no_such_input(tmp_path: Path) -> None:
    def code(spec: object) -> str:
        with pytest.raises(Rejected) as refused:
            TABLE.run({"x": spec})
        (found,) = refused.value.diagnostics
        return found.code

    assert code(f"{tmp_path}/*.csv") == "data-missing-file"
    assert code(f"{tmp_path}/") == "data-missing-file"
    assert code(f"{tmp_path}/none/") == "data-unreadable"
    (tmp_path / "inner").mkdir()
    assert code(f"{tmp_path}/") == "data-unreadable"
    put(tmp_path / "inner" / "a.csv", ROWS)
    assert TABLE.run({"x": f"{tmp_path}/**/*.csv"}).read == len(ROWS)
    (tmp_path / "inner" / "notes.md").touch()
    assert code(f"{tmp_path}/inner/") == "data-format"
    put(tmp_path / "b[1].csv", ROWS)
    assert TABLE.run({"x": f"{tmp_path}/b[1].csv"}).read == len(ROWS)  # a file of that name is no pattern
    assert files_of(f"{tmp_path}/b[1].csv") is None


def test_none_of_the_files_is_written(tmp_path: Path) -> None:
    for name in "ab":
        put(tmp_path / f"{name}.csv", ROWS)
    for target in (f"{tmp_path}/b.csv", f"{tmp_path}/"):
        with pytest.raises(Rejected) as refused:
            TABLE.run({"x": f"{tmp_path}/*.csv"}, {"n": target}, mode=None)
        assert {found.code for found in refused.value.diagnostics} == {"data-overwrite"}
    TABLE.run({"x": f"{tmp_path}/"}, {"n": f"{tmp_path}/"}, mode="overwrite", in_place=True)
    (path,) = tmp_path.iterdir()
    expected = TABLE.run({"x": ROWS + ROWS}, backend="reference")["n"].to_pylist()
    assert pq.read_table(path).to_pylist() == expected
