"""Columns that the names of folders say: what is divided among folders is read back, row by row as from one file."""

from __future__ import annotations

import io
import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import river
from river import cli
from river.diagnostics import Rejected
from river.io.several import NULL, files_of
from river.testing.seeds import chance

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BACKENDS = ["reference", "multicore"]
HEAD = """river 1; type R = {day: string, k: i64?, f: f64, b: bool, s: string?, l: list<i64>, t: time, d: decimal(5,2)};
operator same(x: R) -> (y: R) { on x(r) { emit y r; } }
input a: R; output o: R; (o) <- same(a);"""
SAME = river.compile(HEAD, "river")
PLAIN = river.compile(HEAD.replace("l: list<i64>", "l: i64"), "river")
COUNT = river.compile(
    "x: {k: int, v: int} = input; n: table sum[k: int] of int; emit n[x.k] <- x.v;", "sawzall"
)
TIMED = river.compile(
    """t: {day: time; k: string; v: int} stream by day;
output o: relation = select k, count(*) as n, sum(v) as w from t[range 2 days] group by k;""",
    "cql",
)
STRANGE = "a/b:c=d%e\"f'g*h?i\\j{k[l]m^n#o\n\tp\x7f é+ & and so on"


def rows(count: int, *, lists: bool = True) -> list[dict[str, Any]]:
    random = chance("columns of folders", count)
    return [
        {
            "day": random.choice(["2024-01-31", "01", STRANGE]),
            "k": random.choice([None, -3, 1 << 40]),
            "f": random.choice([math.nan, -math.inf, -0.0, 0.1]),
            "b": random.random() < 0.5,
            "s": random.choice([None, "s", "longer than twelve bytes"]),
            "l": [n] if lists else n,
            "t": f"2024-01-01T00:00:0{n % 3}Z",
            "d": f"{n % 3}.50",
        }
        for n in range(count)
    ]


def plain(found: Iterable[Any]) -> list[str]:
    """Rows as a bag."""
    return sorted(repr(sorted(each.items())) for each in found)


def refused(spec: object, program: Any = COUNT, name: str = "x") -> Any:
    with pytest.raises(Rejected) as rejected:
        program.run({name: spec})
    (found,) = rejected.value.diagnostics
    return found


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.some(8)
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("by", [["day", "k"], ["s"], ["f", "b"], ["d", "t"]])
def test_what_is_divided_is_read_back(by: list[str], kind: str, tmp_path: Path) -> None:
    expected = rows(30)
    out = f"{tmp_path}/out.{kind}/"
    SAME.run({"a": expected}, {"o": out}, partition_by={"o": by})
    wanted = SAME.run({"a": expected}, backend="reference")["o"].to_pylist()
    first, second = (SAME.run({"a": out}, backend=backend)["o"].to_pylist() for backend in BACKENDS)
    assert repr(first) == repr(second)
    assert plain(first) == plain(wanted)


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_machine_code_reads_them(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody makes rows in Python, nor where rows may be late; the time stamp may be such a column, too."""
    if not find_spec("llvmlite"):
        pytest.skip("there is no machine code")
    expected, out = rows(40, lists=False), f"{tmp_path}/out.{kind}/"
    PLAIN.run({"a": expected}, {"o": out}, partition_by={"o": ["day", "f", "k"]})
    events = [{"day": f"2024-01-{n // 4 + 1:02}", "k": "abc"[n % 3], "v": n} for n in range(40)]
    timed = river.compile(
        "t: {day: time; k: string; v: int} stream by day; output o: stream = select istream * from t[now];",
        "cql",
    )
    logs = f"{tmp_path}/logs.{kind}/"
    timed.run({"t": events}, {"o": logs}, partition_by={"o": ["k", "day"]})
    later = TIMED.run({"t": logs}, backend="reference", lateness=40 * 86_400_000_000)
    with monkeypatch.context() as patched:
        patched.setattr("river.io.given._whole", None)
        patched.setattr("river.io.columnar.TablePart.batch", None)
        found = PLAIN.run({"a": out}, workers=2)["o"].to_pylist()
        late = TIMED.run({"t": f"{logs}*/*/*.*"}, lateness=40 * 86_400_000_000)["o"].to_pylist()
    assert plain(found) == plain(PLAIN.run({"a": expected}, backend="reference")["o"].to_pylist())
    assert late == later["o"].to_pylist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_are_wrong_are_told_with_their_places(backend: str, tmp_path: Path) -> None:
    put(tmp_path / "x" / "k=1" / "a.csv", "v\n1\nfive\n3\n")
    put(tmp_path / "x" / "k=2" / "a.jsonl", '{"v": 5}\n{"v": "x"}\n{"v": 7, "k": 9}\n')
    with pytest.raises(Rejected) as rejected:
        COUNT.run({"x": f"{tmp_path}/x"}, backend=backend)
    assert rejected.value.diagnostics[0].place == f"{tmp_path}/x/k=1/a.csv:3:1"
    found = COUNT.run({"x": f"{tmp_path}/x"}, backend=backend, on_error="skip", batch=2)
    assert "2 rows skipped" in found.warnings[0].message
    assert [each.as_py() for each in found["n"]["value"]] == [
        4,
        12,
    ]  # the name of the folder counts, not the file's own


def test_folders_of_numbers_are_in_their_order(tmp_path: Path) -> None:
    for year, month in [(2025, 12), (2026, 2), (2026, 10), (2026, 1)]:
        put(tmp_path / f"year={year}" / f"month={month}" / "a.csv", "v\n1\n")
    put(tmp_path / "year=2026" / "_temporary" / "a.csv", "v\n1\n")
    found = files_of(tmp_path)
    assert found is not None
    assert found.folders == tuple(
        (("year", y), ("month", m)) for y, m in [("2025", "12"), ("2026", "1"), ("2026", "2"), ("2026", "10")]
    )
    for pattern, columns in [
        ("year=2026/month=*/*.csv", ["year", "month"]),
        ("*/month=10/*", ["year", "month"]),
        ("**/*.csv", ["year", "month"]),
    ]:
        some = files_of(f"{tmp_path}/{pattern}")
        assert some is not None
        assert [name for name, _ in some.folders[-1]] == columns
    inner = files_of(f"{tmp_path}/year=2026/")
    assert inner is not None
    assert [name for name, _ in inner.folders[0]] == ["month"]


def test_folders_that_say_something_wrong(tmp_path: Path) -> None:
    def said(*folders: str, program: Any = COUNT, name: str = "x") -> str:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        for each in folders:
            put(home / each / "a.csv", "v\n1\n")
        found = refused(f"{home}/", program, name)
        assert (found.code, found.place.startswith(str(home))) == ("data-partition", True)
        return f"{found.message}; {found.help}"

    assert "`k=x`: 'x' is not a whole number" in said("k=1", "k=x")
    assert "out of the range" in said("k=99999999999999999999")
    assert "no value, and `k` is not optional; declare it as `i64?`" in said(f"k={NULL}")
    assert "`k=` says no value" in said("k=")
    assert "says the column `k`, as one of" in said("k=1", "j=1")
    assert "says the column `k`, as one of" in said("", "k=1")
    assert "the column `k` twice" in said("k=1/k=1")
    assert "all columns that are read" in said("k=1/v=2")
    assert "says no `list<i64>`" in said("l=[1]", program=SAME, name="a")
    put(tmp_path / "other" / "k=1" / "deep" / "a.csv", "v\n1\n")
    assert refused(f"{tmp_path}/other/").code == "data-unreadable"
    put(tmp_path / "none" / "j=1" / "a.csv", "v\n1\n")
    assert refused(f"{tmp_path}/none/").code == "data-column"


def test_folders_of_other_programs(tmp_path: Path) -> None:
    """Other escapes, and columns that the program does not read."""
    table = pa.table({"k": ["é/ü", "é/ü", "b"], "year": [1, 2, 2], "v": [1, 2, 3]})
    ds.write_dataset(
        table, tmp_path / "x", format="parquet", partitioning=["k", "year"], partitioning_flavor="hive"
    )
    program = river.compile(
        "x: {k: string, v: int} = input; n: table sum[k: string] of int; emit n[x.k] <- x.v;", "sawzall"
    )
    found = program.run({"x": f"{tmp_path}/x"})["n"].to_pylist()
    assert [tuple(row.values()) for row in found] == [("b", 3), ("é/ü", 3)]


def test_the_command_line(tmp_path: Path) -> None:
    program = tmp_path / "p.szl"
    program.write_text("x: {k: int, v: int} = input; n: table sum[k: int] of int; emit n[x.k] <- x.v;")
    put(tmp_path / "in.csv", "k,v\n1,2\n2,3\n1,5\n")
    out = f"{tmp_path}/sums.csv/"
    said = io.StringIO()

    def main(*more: str) -> int:
        return cli.main(["run", str(program), "-q", *more], io.StringIO(), said, io.StringIO())

    assert main("--in", f"x={tmp_path}/in.csv", "--out", f"n={out}", "--partition-by", "n=k") == 0
    again = tmp_path / "again.szl"
    again.write_text("x: {k: int, value: int} = input; n: table sum[k: int] of int; emit n[x.k] <- x.value;")
    assert cli.main(["run", str(again), "-q", "--in", f"x={out}"], io.StringIO(), said, io.StringIO()) == 0
    assert said.getvalue() == "k,value\n1,7\n2,3\n"
