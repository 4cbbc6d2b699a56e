"""Outputs that are folders: what a run brings to one appears whole, or not at all."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

import river
from river import cli
from river.diagnostics import Rejected
from river.io import folders
from river.io.folders import MODES, FolderOutput, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """river 1; type R = {k: i64, s: string};
operator twice(x: R) -> (y: R) { on x(r) { emit y {k: 2 * r.k, s: r.s}; } }
operator both(x: R) -> (y: R, z: R) { on x(r) { emit y r; emit z {k: div.trunc(6, r.k), s: r.s}; } }
input a: R; output o: R; """
FINE = river.compile(HEAD + "(o) <- twice(a);", "river")
RISKY = river.compile(HEAD + "output p: R; (o, p) <- both(a);", "river")
ROWS = [{"k": 1, "s": "a,b"}, {"k": 2, "s": 'é"'}]
TWICE = [{"k": 2, "s": "a,b"}, {"k": 4, "s": 'é"'}]
READERS: dict[str, Any] = {
    "parquet": pq.read_table,
    "arrow": lambda path: pa.ipc.open_file(path).read_all(),
    "csv": pyarrow.csv.read_csv,
    "jsonl": pyarrow.json.read_json,
}


def put(target: object, rows: list[dict[str, Any]] = ROWS, **more: Any) -> None:
    FINE.run({"a": rows}, {"o": target}, backend="reference", **more)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def held(folder: Path) -> list[dict[str, Any]]:
    """The rows of the files of a folder, which holds nothing else, by their names."""
    found: list[dict[str, Any]] = []
    for name in names(folder):
        match = re.fullmatch(r"part-\d{5}-\d{5}-[0-9a-f]{8}\.(\w+)", name)
        assert match is not None, name
        found += READERS[match[1]](str(folder / name)).to_pylist()
    return found


def refused(target: object, **more: Any) -> Any:
    with pytest.raises(Rejected) as rejected:
        put(target, **more)
    (found,) = rejected.value.diagnostics
    return found


@pytest.mark.parametrize("name", ["plain", "rows.csv", "rows.jsonl", "rows.arrow", "rows.parquet"])
def test_a_folder_gets_a_file_of_the_format_that_its_name_tells(name: str, tmp_path: Path) -> None:
    put(f"{tmp_path}/{name}/")
    (file,) = names(tmp_path / name)
    assert file.endswith(f"{Path(name).suffix or '.parquet'}")
    assert held(tmp_path / name) == TWICE
    assert names(tmp_path) == [name]


def test_what_becomes_of_a_folder_that_holds_something(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    put(folder)  # an empty one, which needs no slash
    assert held(folder) == TWICE
    found = refused(f"{folder}/")
    assert found.code == "data-folder"
    assert "holds something" in found.message
    put(f"{folder}/", mode="append")
    put(folder, [{"k": 7, "s": ""}], mode="append")
    assert held(folder) == [*TWICE, *TWICE, {"k": 14, "s": ""}]
    put(f"{folder}/", [{"k": 8, "s": ""}], mode="overwrite")
    assert held(folder) == [{"k": 16, "s": ""}]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_what_is_added_has_the_columns_of_what_is_there(kind: str, tmp_path: Path) -> None:
    """In any order; of lines of text nothing is known but names."""
    folder = f"{tmp_path}/out/"
    put(folder, formats={"o": kind})
    others = {
        "{k: i64, s: string, t: i64}": ("{k: r.k, s: r.s, t: 1}", "there is no column `t`"),
        "{s: string}": ("{s: r.s}", "the column `k` is none of the output's"),
        "{s: string, k: i64}": ("{s: r.s, k: r.k}", None),
        "{k: i32, s: string}": ("{k: i32(r.k), s: r.s}", None if kind == "csv" else "and that of the output"),
    }
    for type_, (value, told) in others.items():
        text = f"river 1; type R = {{k: i64, s: string}}; type Q = {type_}; input a: R; output o: Q;"
        text += f"operator make(x: R) -> (y: Q) {{ on x(r) {{ emit y {value}; }} }} (o) <- make(a);"
        program, before = river.compile(text, "river"), len(names(tmp_path / "out"))
        try:
            program.run({"a": ROWS}, {"o": folder}, mode="append", formats={"o": kind}, backend="reference")
            assert told is None
        except Rejected as rejected:
            (found,) = rejected.diagnostics
            assert found.code == "data-folder"
            assert told is not None
            assert told in found.message
        assert len(names(tmp_path / "out")) == before + (told is None)
    other = "jsonl" if kind == "csv" else "csv"
    assert f"are to be {other}" in refused(folder, mode="append", formats={"o": other}).message
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_modes_make_a_folder_that_is_not_there(mode: str, tmp_path: Path) -> None:
    put(f"{tmp_path}/out/", mode=mode)
    assert held(tmp_path / "out") == TWICE


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_fails_leaves_nothing(mode: Mode, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    if mode != "error":
        put(f"{folder}/")
    targets = {"o": f"{folder}/", "p": f"{tmp_path}/other/"}
    with pytest.raises(Rejected, match="division by zero"):
        RISKY.run({"a": [*ROWS, {"k": 0, "s": ""}]}, targets, mode=mode, backend="reference")
    assert names(tmp_path) == ([] if mode == "error" else ["out"])
    if mode != "error":
        assert held(folder) == TWICE


def test_only_folders_of_data_are_replaced(tmp_path: Path) -> None:
    for name in ("part.csv.gz", "_SUCCESS", ".part.csv.crc", "old.parquet"):
        (tmp_path / name).touch()
    kept = tmp_path / "notes.md"
    kept.touch()
    found = refused(f"{tmp_path}/", mode="overwrite")
    assert found.code == "data-folder"
    assert [note.message for note in found.notes] == ["such as `notes.md`"]
    kept.unlink()
    (tmp_path / "more").mkdir()
    assert refused(f"{tmp_path}/", mode="overwrite").notes[0].message == "such as `more`"
    (tmp_path / "more").rmdir()
    put(f"{tmp_path}/", mode="overwrite")
    assert held(tmp_path) == TWICE


def test_what_cannot_be_such_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file.csv").touch()
    assert refused(f"{tmp_path}/file.csv/").code == "data-folder"
    assert refused("s3://bucket/out/").code == "data-address"
    assert refused(f"{tmp_path}/not/there/").code == "data-output"
    assert refused(f"{tmp_path}/out.wav/").code == "data-format"
    assert refused(f"{tmp_path}/out/", live=river.Live()).code in ("data-folder", "run-live")
    assert refused(f"{tmp_path}/o.csv", mode="append").code == "usage"
    assert refused(f"{tmp_path}/out/", mode="replace").code == "usage"
    assert names(tmp_path) == ["file.csv"]


def test_runs_that_go_on_write_no_folders(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="a folder gets its files when the run has ended"):
        FINE.run({"a": ROWS}, {"o": f"{tmp_path}/out/"}, checkpoint=tmp_path / "state")
    assert names(tmp_path) == []


def test_no_input_is_in_a_folder_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("k,s\n1,a\n")
    for mode in ("append", "overwrite"):
        with pytest.raises(Rejected) as rejected:
            FINE.run({"a": f"{tmp_path}/rows.csv"}, {"o": f"{tmp_path}/"}, mode=mode)
        assert [found.code for found in rejected.value.diagnostics] == ["data-overwrite"]
    with pytest.raises(Rejected) as rejected:
        RISKY.run({"a": ROWS}, {"o": f"{tmp_path}/x/", "p": f"{tmp_path}/x"}, mode="append")
    assert [found.code for found in rejected.value.diagnostics] == ["data-output"]


def test_the_command_line(tmp_path: Path) -> None:
    program, rows = tmp_path / "p.river", tmp_path / "rows.jsonl"
    program.write_text(FINE.text)
    rows.write_text('{"k": 1, "s": "a,b"}\n{"k": 2, "s": "é\\""}\n')
    told = [
        "run",
        str(program),
        "--in",
        f"a={rows}",
        "--out",
        f"o={tmp_path}/out/",
        "--out-format",
        "o=csv",
        "-q",
    ]
    errors = io.StringIO()
    codes = [
        cli.main([*told, *more], io.StringIO(), io.StringIO(), errors)
        for more in ([], [], ["--mode", "append"])
    ]
    assert codes == [0, 1, 0]
    assert "error[data-folder]: there is a folder" in errors.getvalue()
    assert held(tmp_path / "out") == [*TWICE, *TWICE]


# --------------------------------------------------------------------------------------------------- by hand


@pytest.fixture
def opened() -> Iterator[list[FolderOutput]]:
    made: list[FolderOutput] = []
    yield made
    for each in made:
        each.abort()


def begun(target: Path, mode: Any, opened: list[FolderOutput]) -> FolderOutput:
    """An output with two files that others have written, of which the second is empty, and one that nobody takes."""
    found = FolderOutput(f"{target}/", "csv", mode)
    opened.append(found)
    for name in ("x", "y", "late"):
        (found.staging / name).write_text(f"k\n{name}\n")
    found.adopt([("x", 1), ("none", 0), ("y", 1)])
    return found


def texts(folder: Path) -> list[str]:
    return [path.read_text().split()[1] for path in sorted(folder.glob("part-*"))]


@pytest.mark.parametrize("mode", ["error", "overwrite", "append"])
def test_files_of_others_are_taken_and_those_that_come_late_are_not(
    mode: str, opened: list[FolderOutput], tmp_path: Path
) -> None:
    first = begun(tmp_path / "out", mode, opened)
    late = (first.staging / "late").open("a")
    first.close()
    late.write("more")
    late.close()
    with pytest.raises(FileNotFoundError):
        (first.staging / "later").write_text("k\n")
    assert texts(tmp_path / "out") == ["x", "y"]
    assert names(tmp_path) == ["out"]
    if mode != "error":
        begun(tmp_path / "out", mode, opened).close()
        assert texts(tmp_path / "out") == ["x", "y"] * (1 + (mode == "append"))
        assert len(names(tmp_path / "out")) == len(texts(tmp_path / "out"))


def test_a_folder_that_came_meanwhile_stays(opened: list[FolderOutput], tmp_path: Path) -> None:
    first, second = (begun(tmp_path / "out", "error", opened) for _ in range(2))
    first.close()
    with pytest.raises(Rejected, match="holds something"):
        second.close()
    assert texts(tmp_path / "out") == ["x", "y"]
    assert names(tmp_path) == ["out"]


def test_two_may_add_to_a_folder_at_once(opened: list[FolderOutput], tmp_path: Path) -> None:
    begun(tmp_path, "append", opened).close()
    both = [begun(tmp_path, "append", opened) for _ in range(2)]
    for each in both:
        each.close()
    assert sorted(texts(tmp_path)) == ["x"] * 3 + ["y"] * 3


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("step", range(12))
def test_whoever_is_killed_leaves_all_or_nothing(
    mode: str,
    exchanges: bool,
    step: int,
    opened: list[FolderOutput],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process ends before any one of its steps; the next one that writes there puts in order what it left."""

    class Killed(BaseException):
        pass

    home = tmp_path / "out"
    begun(home, mode, opened).close()
    (path,) = (found for found in home.glob("part-*") if found.read_text() == "k\nx\n")
    path.write_text("k\nold\n")
    doomed = begun(home, mode, opened)
    steps = iter(range(100))
    if not exchanges:
        monkeypatch.setattr(folders, "_renameat2", lambda: None)

    def counted(name: str) -> None:
        plain = getattr(os, name)

        def call(*given: Any, **more: Any) -> Any:
            if next(steps) >= step:
                raise Killed
            return plain(*given, **more)

        monkeypatch.setattr(os, name, call)

    monkeypatch.setattr(folders, "_ended", lambda *_: None)  # nobody clears up
    for name in ("replace", "rename", "mkdir", "fsync"):
        counted(name)
    try:
        doomed.close()
        killed = False
    except Killed:
        killed = True
    finally:
        monkeypatch.undo()
    FolderOutput(f"{home}/", "csv", "append").abort()
    new = ["old", "y", "x", "y"] if mode == "append" else ["x", "y"]
    assert texts(home) in (["old", "y"], new)
    assert killed or texts(home) == new
    assert [name for name in names(tmp_path) if name != "out"] == []
    assert [name for name in names(home) if not name.startswith("part-")] == []


def test_nobody_clears_away_what_another_process_writes(opened: list[FolderOutput], tmp_path: Path) -> None:
    busy = begun(tmp_path / "out", "error", opened)
    FolderOutput(f"{tmp_path}/out/", "csv", "error").abort()
    busy.close()
    assert texts(tmp_path / "out") == ["x", "y"]
