"""Bad data: each has a clear outcome, no other record is lost, and what is lost is counted with its cause."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected
from river.io.text import blocks

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
done: table sum of int;
line: string = input;
i: int = 0;
while (line == "endless") i = i + 1;
deeper: function(n: int): int { return deeper(n + 1) + 1; };
if (line == "deep") i = deeper(0);
a: array of int = {1, 2};
if (line == "index") i = a[9223372036854775807];
if (line == "before") i = a[-9223372036854775807 - 1];
if (line == "letter") i = line[1000000];
if (line == "set") a[4294967296] = 1;
if (line == "key") i = {"a": 1}["b"];
if (line == "zero") i = 1 / i;
if (line == "number") i = int(line, 10);
assert(len(a[-9223372036854775807:9223372036854775807]) == 2 && line[9223372036854775806:5] == "", "parts are never undefined");
emit done <- 1;
"""
GOOD = ["one", "two", "three"]
UNDEFINED = {
    "index": "9:26", "before": "10:27", "letter": "11:27", "set": "12:20", "key": "13:24", "zero": "14:25", "number": "15:27",
}  # fmt: skip


def shown(*args: str) -> tuple[int, str, str]:
    """The status of a run, what it prints, and what it prints as errors."""
    out, err = io.StringIO(), io.StringIO()
    status = main(["run", *args], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


def test_absurd_records_are_counted_with_their_lines() -> None:
    lines = [line for pair in zip(GOOD * 3, UNDEFINED, strict=False) for line in pair]
    found = river.compile(SCRIPT, lang="sawzall").run({"input": lines}, backend="reference")
    assert found["done"].to_pylist() == [{"value": len(UNDEFINED)}]
    assert [row["at"] for row in found["undefined"].to_pylist()] == list(UNDEFINED.values())
    assert all(row["why"] for row in found["undefined"].to_pylist())


@pytest.mark.slow
def test_endless_records_meet_a_deadline_and_no_other_is_lost(tmp_path: Path) -> None:
    script, data = tmp_path / "script.szl", tmp_path / "lines.txt"
    script.write_text(SCRIPT)
    data.write_text("".join(f"{line}\n" for line in ("one", "endless", "two", "index", "endless", "three")))
    undefined = tmp_path / "undefined.csv"
    args = (str(script), "--in", f"input={data}", "--out", f"undefined={undefined}", "--batch", "2")
    status, out, err = shown(*args, "--deadline", "50ms", "--on-error", "skip")
    assert (status, out.split()) == (0, ["#", "done", "value", "3"])
    assert "warning[run-skipped]: 2 items skipped" in err
    assert "the firing took too long" in err
    assert undefined.read_text().splitlines()[1:] == ["9:26,`a[9223372036854775807]`: index out of range"]
    status, out, err = shown(*args, "--deadline", "50ms")
    assert status == 1
    assert "script.szl:5:1: error[trap-deadline]" in err
    assert 'while handling the item "endless"' in err
    data.write_text("one\ndeep\ntwo\n")
    status, out, err = shown(*args[:-2], "--on-error", "skip")
    assert (status, out.split()) == (0, ["#", "done", "value", "2"])
    assert "script.szl:6:40: warning[run-skipped]: 1 item skipped" in err
    assert "functions are nested too deeply" in err


LINES = """
size: table sum of int;
text: string = input;
emit size <- len(input);
emit stdout <- text;
assert(len(input) < 9, "too long");
"""


@pytest.mark.parametrize("backend", ["reference", "multicore"])
@pytest.mark.parametrize("name", ["lines.csv", "access", "lines.txt.gz"])
def test_lines_are_the_bytes_of_any_file(backend: str, name: str, tmp_path: Path) -> None:
    script, data = tmp_path / "count.szl", tmp_path / name
    script.write_text(LINES)
    written = b"good\n\xff\xfe bad\n\n\x00zero\nb\xe9tter\r\nlast"
    data.write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    args = (
        str(script),
        "--in",
        f"input={data}",
        "--backend",
        backend,
        "--out",
        f"undefined={tmp_path / 'u.csv'}",
    )
    status, out, err = shown(*args)
    assert (status, out.split()) == (
        0,
        ["good", "\ufffd\ufffd", "bad", "b\ufffdtter", "last", "#", "size", "value", "25"],
    ), err
    assert (tmp_path / "u.csv").read_text() == "at,why\n5:16,`text` has no value\n"


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_lines_in_memory_may_be_texts(backend: str) -> None:
    pa = pytest.importorskip("pyarrow")
    program = river.compile("n: table sum of int;\nemit n <- len(input);\n", lang="sawzall")
    texts = ["é", "", "longer than a view has room for"]
    kinds = [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.binary(),
    ]
    given = [
        texts,
        [text.encode() for text in texts],
        *(pa.table({"line": pa.array(texts, kind)}) for kind in kinds),
    ]
    for lines in given:
        found = program.run({"input": lines}, backend=backend)
        assert found["n"].to_pylist() == [{"value": 33}], lines


def test_the_line_that_ends_a_run_is_shown_as_text(tmp_path: Path) -> None:
    script, data = tmp_path / "count.szl", tmp_path / "lines.log"
    script.write_text(LINES)
    data.write_bytes(b"good\nover\xff long\n")
    status, _, err = shown(str(script), "--in", f"input={data}")
    assert status == 1
    assert r'while handling the item "over\\xff long"' in err


def test_records_that_are_none_are_told_and_the_others_read(tmp_path: Path) -> None:
    script, data, dead = tmp_path / "sum.szl", tmp_path / "rows.csv", tmp_path / "dead.jsonl"
    script.write_text("r: { n: int, s: string } = input;\ntotal: table sum of int;\nemit total <- r.n;\n")
    data.write_text("n,s\n1,a\nx,b\n3\n4,d,e\n99999999999999999999,f\n5,g\n")
    args = (str(script), "--in", f"r={data}", "--backend", "reference")
    status, _, err = shown(*args)
    assert status == 1
    assert f"{data}:3:1: error[data-" in err
    status, out, err = shown(*args, "--on-error", f"dead-letter={dead}")
    assert (status, out.split()) == (0, ["value", "6"])
    assert "4 rows sent to" in err
    assert [json.loads(line)["line"] for line in dead.read_text().splitlines()] == [3, 4, 5, 6]


LARGE = """
size: table sum of int;
words: table sum of int;
line: string = input;
emit size <- len(line);
emit words <- len(sawzall(line, `[a-z]+`));
"""


@pytest.mark.parametrize("letter", ["a", "é"])
def test_one_large_record_is_taken_apart_in_linear_time(letter: str, tmp_path: Path) -> None:
    """Copies of what is left behind each part would need 50 GB of memory."""
    script, data = tmp_path / "large.szl", tmp_path / "large.txt"
    script.write_text(LARGE)
    data.write_text("one two\n" + "ab \u00e9 "[: 3 if letter == "a" else 5] * 100_000 + "\nlast\n")
    status, out, err = shown(str(script), "--in", f"input={data}", "--deadline", "60s", "--format", "csv")
    large = 300_000 if letter == "a" else 500_000
    assert (status, out.split()) == (
        0,
        ["#", "size", "value", str(7 + large + 4), "#", "words", "value", "100003"],
    ), err


@pytest.mark.slow
def test_a_record_of_100_mb_is_a_record(tmp_path: Path) -> None:
    script, data = tmp_path / "large.szl", tmp_path / "large.txt"
    script.write_text(LARGE)
    data.write_text("one two\n" + "abcdefghi jklmnopqr " * 5_000_000 + "\nlast\n")
    status, out, err = shown(str(script), "--in", f"input={data}", "--format", "csv")
    assert (status, out.split()) == (
        0,
        ["#", "size", "value", "100000011", "#", "words", "value", "10000003"],
    ), err


def test_a_line_without_an_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("river.io.text.LONGEST", 1_000)
    with pytest.raises(Rejected) as caught:
        list(blocks(io.BytesIO(b"good\n" + b"x" * 300_000), "endless.txt", 10))
    assert "cannot read `endless.txt`: line 2 is longer than 1000 characters" in str(caught.value)
