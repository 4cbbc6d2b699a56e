"""Outputs that are divided by columns: folders that Hive, Spark and pyarrow read back with the same rows."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import river
from river import cli
from river.diagnostics import Rejected
from river.io import folders, partitions
from river.io.folders import FolderOutput
from river.lang.types import I64, Record
from river.testing.seeds import chance

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEAD = """river 1; type R = {day: string, k: i64?, f: f64, b: bool, s: string?, l: list<i64>, t: time, d: decimal(5,2)};
operator same(x: R) -> (y: R) { on x(r) { emit y r; } }
input a: R; output o: R; (o) <- same(a);"""
SAME = river.compile(HEAD, "river")
KINDS = {
    "day": pa.string(), "k": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "s": pa.string(),
    "l": pa.list_(pa.int64()), "t": pa.timestamp("us", "UTC"), "d": pa.decimal128(5, 2),
}  # fmt: skip
STRANGE = "a/b:c=d%e\"f'g*h?i\\j{k[l]m^n#o\n\tp\x7f é+ &"


def row(n: int, **more: Any) -> dict[str, Any]:
    given = {
        "day": f"2024-01-{n % 3 + 1:02}", "k": n % 5 or None, "f": n / 4, "b": n % 2 == 0, "s": None if n % 4 else f"s{n}",
        "l": list(range(n % 3)), "t": f"2024-01-01T00:00:{n % 60:02}Z", "d": f"{n % 7}.50",
    }  # fmt: skip
    return given | more


ROWS = [row(n) for n in range(40)]


def put(
    target: object, by: Any, rows: Iterable[dict[str, Any]] = ROWS, backend: str = "multicore", **more: Any
) -> None:
    SAME.run({"a": list(rows)}, {"o": target}, backend=backend, partition_by={"o": by}, **more)


def plain(rows: Iterable[Any]) -> Counter[str]:
    """Rows as a bag."""
    return Counter(repr(sorted(each.items())) for each in rows)


def expected(rows: Iterable[dict[str, Any]] = ROWS) -> Counter[str]:
    return plain(SAME.run({"a": list(rows)}, backend="reference")["o"].to_pylist())


def held(folder: Path, format_: str = "parquet", by: Iterable[str] = ()) -> Counter[str]:
    """The rows that pyarrow finds in a folder."""
    given = pa.schema([(name, KINDS[name]) for name in by])
    found = ds.dataset(
        str(folder), format=format_, partitioning=ds.partitioning(given, flavor="hive"),
        schema=pa.schema(list(KINDS.items())),
    )  # fmt: skip
    return plain(found.to_table().to_pylist())


def inside(folder: Path) -> list[str]:
    """The folders of files."""
    return sorted(str(path.parent.relative_to(folder)) for path in folder.rglob("part-*"))


def refused(target: object, by: Any, rows: Iterable[dict[str, Any]] = ROWS, **more: Any) -> Any:
    with pytest.raises(Rejected) as rejected:
        put(target, by, rows, **more)
    (found,) = rejected.value.diagnostics
    return found


@pytest.mark.parametrize("backend", ["reference", "multicore"])
@pytest.mark.parametrize("by", [["day"], ["k", "day"], ["f"], ["b", "s"], ["t", "k"]])
def test_rows_with_equal_values_have_a_folder(by: list[str], backend: str, tmp_path: Path) -> None:
    put(f"{tmp_path}/out/", by, backend=backend)
    assert held(tmp_path / "out", by=by) == expected()
    assert len(inside(tmp_path / "out")) == len({tuple(map(str, (each[c] for c in by))) for each in ROWS})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for file in (tmp_path / "out").rglob("part-*"):
        assert pq.read_schema(file).names == [name for name in KINDS if name not in by]


@pytest.mark.parametrize("backend", ["reference", "multicore"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_of_text_leave_the_columns_out(kind: str, backend: str, tmp_path: Path) -> None:
    rows = [row(n, day="x" if n % 3 else "y", l=[n]) for n in range(9)]
    put(f"{tmp_path}/out.{kind}/", ["b", "day"], rows, backend)
    (x,) = (tmp_path / f"out.{kind}" / "b=true" / "day=x").iterdir()
    lines = x.read_text().splitlines()
    if kind == "csv":
        assert lines[:2] == ["k,f,s,l,t,d", "2,0.5,,[2],2024-01-01T00:00:02Z,2.50"]
        assert len(lines) == 1 + 3
    else:
        assert list(json.loads(lines[0])) == ["k", "f", "s", "l", "t", "d"]
        assert [json.loads(line)["l"] for line in lines] == [[2], [4], [8]]


def test_texts_are_escaped_as_in_hive(tmp_path: Path) -> None:
    texts = [STRANGE, "%41", "..", "01", " x ", "\u2028", "\0", *map(chr, range(1, 128))]
    rows = [row(n, day=text, s=text) for n, text in enumerate(texts)]
    put(f"{tmp_path}/out/", "day", rows)
    assert held(tmp_path / "out", by=["day"]) == expected(rows)
    found = inside(tmp_path / "out")
    assert "day=a%2Fb%3Ac%3Dd%25e%22f%27g%2Ah%3Fi%5Cj%7Bk%5Bl%5Dm%5En%23o%0A%09p%7F é+ &" in found
    assert {"day=%00", "day=%2541", "day=}", "day=|", "day=%1F", "day=..", "day= "} <= set(found)


def test_numbers_that_are_none_and_signs_of_zero(tmp_path: Path) -> None:
    rows = [row(1, f=f) for f in (math.nan, math.inf, -math.inf, -0.0, 0.0, math.nan, 1e300, 0.1)]
    put(f"{tmp_path}/out/", "f", rows)
    expected_ = ["-0.0", "-Infinity", "0.0", "0.1", "1e+300", "Infinity", "NaN"]
    assert sorted(inside(tmp_path / "out")) == [f"f={each}" for each in expected_]
    assert held(tmp_path / "out", by=["f"]) == expected(rows)


@pytest.mark.parametrize("held_bytes", [1, 3000])
def test_few_files_are_open_and_rows_keep_their_order(
    held_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, most, plain_begun = chance("partitions"), 0, partitions.PartitionedSink._begun

    def begun(self: Any, path: str) -> Any:
        nonlocal most
        found = plain_begun(self, path)
        most = max(most, len(self._parts) + 1)
        return found

    monkeypatch.setattr(partitions.PartitionedSink, "_begun", begun)
    monkeypatch.setattr(partitions, "OPEN", 3)
    monkeypatch.setattr(partitions, "HELD", held_bytes)
    rows = [row(n, day=random.choice("abcdefg"), s=None, l=[n]) for n in range(300)]
    put(f"{tmp_path}/out/", ["day", "s"], rows, batch=16)
    assert most == 3
    for day in "abcdefg":
        files = sorted((tmp_path / "out" / f"day={day}" / f"s={partitions.NULL}").iterdir())
        found = [n for file in files for (n,) in pq.read_table(file)["l"].to_pylist()]
        assert found == [each["l"][0] for each in rows if each["day"] == day]
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_run_without_rows_makes_the_folder(tmp_path: Path) -> None:
    put(f"{tmp_path}/out/", "day", [])
    assert list((tmp_path / "out").iterdir()) == []
    put(f"{tmp_path}/out/", "day", [row(1)], mode="append")
    assert inside(tmp_path / "out") == ["day=2024-01-02"]


def test_folders_are_added_to_and_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(f"{out}/", "day", ROWS[:5])
    assert refused(f"{out}/", "day").code == "data-folder"
    put(f"{out}/", "day", ROWS[5:], mode="append")
    assert held(out, by=["day"]) == expected()
    names = sorted(path.name for path in (out / "day=2024-01-01").iterdir())
    assert [name[:11] for name in names] == ["part-00000-", "part-00001-"]
    for by, message in (("k", "than by `k`"), (["day", "k"], "than by `day`, `k`")):
        found = refused(f"{out}/", by, mode="append")
        assert (found.code, found.message.endswith(message)) == ("data-folder", True)
    with pytest.raises(Rejected, match="otherwise than by no columns"):
        SAME.run({"a": ROWS}, {"o": f"{out}/"}, mode="append")
    (out / "_SUCCESS").touch()
    put(f"{out}/", ["k", "day"], ROWS[:7], mode="overwrite")
    assert held(out, by=["k", "day"]) == expected(ROWS[:7])
    stranger = out / "k=1" / "notes.md"
    stranger.touch()
    found = refused(f"{out}/", "day", mode="overwrite")
    assert [note.message for note in found.notes] == ["such as `k=1/notes.md`"]
    stranger.unlink()
    SAME.run({"a": ROWS}, {"o": f"{out}/"}, mode="overwrite")
    assert inside(out) == ["."]
    assert refused(f"{out}/", "day", mode="append").code == "data-folder"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("days", "has no column `days`"),
        (["day", "l"], "values of `list<i64>` name no folders"),
        (["day", "day"], "by a column twice"),
        ([], "by no column"),
        (list(KINDS), "values of `list<i64>` name no folders"),
    ],
)
def test_columns_that_divide_nothing(by: Any, message: str, tmp_path: Path) -> None:
    found = refused(f"{tmp_path}/out/", by)
    assert (found.code, message in found.message) == ("data-partition", True), found
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_divided(tmp_path: Path) -> None:
    def said(type_: str, by: list[str], target: str = "out/", **more: Any) -> str:
        text = HEAD.replace(HEAD[HEAD.index("type R") : HEAD.index("operator")], f"type R = {type_};\n")
        with pytest.raises(Rejected) as rejected:
            river.compile(text, "river").run(
                {"a": []}, {"o": f"{tmp_path}/{target}"}, partition_by={"o": by}, **more
            )
        (found,) = rejected.value.diagnostics
        assert found.code == "data-partition", found
        return found.message

    assert "by all its columns" in said("{a: i64, b: i64}", ["b", "a"])
    assert "`bytes` name no folders" in said("{a: bytes, b: i64}", ["a"])
    assert "pass over folders" in said("{_a: i64, b: i64}", ["_a"])
    assert "no columns" in said("i64", ["value"])
    assert "no Arrow form" in said("{a: i64, b: map<i64?, i64>}", ["a"])
    assert "single values" in said("{a: i64, b: string}", ["a"], "out.txt/")
    assert "is for outputs that are folders" in said("{a: i64, b: i64}", ["a"], "out.csv")
    with pytest.raises(Rejected, match="unknown-output"):
        SAME.run({"a": ROWS}, {"o": f"{tmp_path}/out/"}, partition_by={"q": ["day"]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", partitions.NULL])
def test_texts_that_readers_take_for_none_are_refused(text: str, tmp_path: Path) -> None:
    found = refused(f"{tmp_path}/out/", ["b", "s"], [*ROWS, row(3, s=text)])
    assert (found.code, "by `s`" in found.message) == ("data-partition", True)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_leaves_nothing(tmp_path: Path) -> None:
    assert refused(f"{tmp_path}/out/", "s", [*ROWS, row(3, s="/" * 99)]).code == "data-output"
    assert list(tmp_path.iterdir()) == []


def test_relations_are_divided_as_their_change_logs(tmp_path: Path) -> None:
    text = (
        "s: {ts: int; k: int} stream by ts; o: relation = select k, count(*) as n from s[range 9] group by k;"
    )
    rows = [{"ts": n, "k": n % 3} for n in range(30)]
    program = river.compile(text, "cql")
    found = program.run({"s": rows}, {"o": f"{tmp_path}/out/"}, partition_by={"o": ["op", "k"]})
    log = program.run({"s": rows}, backend="reference")["o"].to_pylist()
    assert found.rows == {"o": len(log)}
    assert inside(tmp_path / "out")[:3] == ["op=+/k=0", "op=+/k=1", "op=+/k=2"]
    table = ds.dataset(str(tmp_path / "out"), partitioning="hive").to_table().to_pylist()
    assert plain(table) == plain(log)


def test_the_command_line(tmp_path: Path) -> None:
    program, rows = tmp_path / "p.river", tmp_path / "rows.jsonl"
    program.write_text("river 1; type R = {day: string, k: i64, n: i64};" + HEAD[HEAD.index("operator") :])
    rows.write_text("".join(json.dumps({"day": f"d{n % 2}", "k": n % 3, "n": n}) + "\n" for n in range(9)))
    told = ["run", str(program), "--in", f"a={rows}", "--out", f"o={tmp_path}/out.csv/", "-q"]
    errors = io.StringIO()

    def main(*more: str) -> int:
        return cli.main([*told, *more], io.StringIO(), io.StringIO(), errors)

    assert main("--partition-by", "o=day,k") == 0
    assert (tmp_path / "out.csv").joinpath("day=d1", "k=0").is_dir()
    assert main("--partition-by", "o=day,k", "--mode", "append", "--backend", "reference") == 0
    assert sorted(inside(tmp_path / "out.csv")) == sorted([f"day=d{n % 2}/k={n % 3}" for n in range(6)] * 2)
    assert main("--partition-by", "o=dai") == 1
    assert main("--partition-by", "o") == 1
    assert "error[data-partition]: output `o` has no column `dai`" in errors.getvalue()


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("step", range(20))
def test_whoever_is_killed_leaves_all_or_nothing(
    mode: Any, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before any one of the steps of a commit; the next one that writes there puts in order what it left."""

    class Killed(BaseException):
        pass

    def begun(rows: list[str], mode: Any) -> FolderOutput:
        found = FolderOutput(f"{home}/", "csv", mode, ("k",))
        for each in rows:
            (found.staging / each).mkdir()
            (found.staging / each / "file").touch()
        found.adopt([(f"{found.staging}/{each}/file", 1) for each in rows])
        return found

    home = tmp_path / "out"
    begun(["k=1", "k=2"], "error").close()
    doomed, steps = begun(["k=2", "k=3"], mode), iter(range(100))
    with monkeypatch.context() as patched:
        patched.setattr(folders, "_ended", lambda *_: None)  # nobody clears up

        def counted(plain_: Any) -> Any:
            def call(*given: Any, **more: Any) -> Any:
                if next(steps) >= step:
                    raise Killed
                return plain_(*given, **more)

            return call

        for name in ("rename", "mkdir", "fsync"):
            patched.setattr(folders.os, name, counted(getattr(folders.os, name)))
        try:
            doomed.close()
            killed = False
        except Killed:
            killed = True
    FolderOutput(f"{home}/", "csv", "append", ("k",)).abort()
    new = ["k=1", "k=2", "k=2", "k=3"] if mode == "append" else ["k=2", "k=3"]
    assert inside(home) in (["k=1", "k=2"], new)
    assert killed or inside(home) == new
    assert {path.name for path in home.iterdir()} == set(inside(home))


def test_every_type_that_names_folders(tmp_path: Path) -> None:
    """Also where a value is missing: the names say what a cell of CSV says."""
    kinds = {
        "bool": True,
        "i32": -7,
        "i64": 1 << 40,
        "u64": 1 << 63,
        "f32": 0.1,
        "f64": 1.5,
        "decimal(9,2)": "-1.50",
    }
    kinds |= {"string": "é", "time": "2024-01-31T12:00:00.5Z", "duration": "-1.5s"}
    fields = ", ".join(f"c{n}: {kind}?" for n, kind in enumerate(kinds))
    program = river.compile(
        f"river 1; type R = {{{fields}, n: i64}};" + HEAD[HEAD.index("operator") :], "river"
    )
    given = {f"c{n}": value for n, value in enumerate(kinds.values())}
    rows = [given | {"n": 1}, dict.fromkeys(given) | {"n": 2}, given | {"n": 3}]
    program.run({"a": rows}, {"o": f"{tmp_path}/o.csv/"}, partition_by={"o": list(given)})
    program.run({"a": rows}, {"o": f"{tmp_path}/cells.csv"})
    cells = (tmp_path / "cells.csv").read_text().splitlines()[1].split(",")
    full = [f"{name}={folders.escaped(cell)}" for name, cell in zip(given, cells, strict=False)]
    none = [f"{name}={partitions.NULL}" for name in given]
    assert inside(tmp_path / "o.csv") == sorted("/".join(each) for each in (full, none))
    (file,) = (tmp_path / "o.csv").joinpath(*full).iterdir()
    assert file.read_text().split() == ["n", "1", "3"]


def test_who_writes_late_makes_no_folder(tmp_path: Path) -> None:
    target = folders.Partitions(f"{tmp_path}/gone", "csv", ("k",))
    sink = partitions.PartitionedSink(target, Record((("k", I64), ("n", I64))), "a")
    sink.write([(1, 2)])
    with pytest.raises(Rejected, match="data-output"):
        sink.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_any_rows_divided_by_any_columns_are_read_back(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, and those of a folder in their order."""
    random = chance("rows by columns", backend)
    for number in range(3):
        monkeypatch.setattr(partitions, "OPEN", random.randint(1, 20))
        monkeypatch.setattr(partitions, "HELD", random.choice([1, 500, 1 << 20]))
        by = random.sample(["day", "k", "f", "b", "s", "t"], random.randint(1, 4))
        texts = ["".join(random.choices("ab%/= é\n", k=random.randint(1, 4))) for _ in range(4)]
        rows = [
            row(
                random.randint(0, 9),
                day=random.choice(texts),
                s=random.choice([None, *texts]),
                f=random.choice([0.0, -0.0, math.nan, 0.1]),
                l=[n],
            )
            for n in range(random.randint(0, 60))
        ]
        out = tmp_path / str(number)
        put(f"{out}/", by, rows, backend, batch=random.randint(1, 30), workers=random.randint(1, 2))
        if rows:
            assert held(out, by=by) == expected(rows), by
        for folder in {path.parent for path in out.rglob("part-*")}:
            found = [n for file in sorted(folder.iterdir()) for (n,) in pq.read_table(file)["l"].to_pylist()]
            assert found == sorted(found)
