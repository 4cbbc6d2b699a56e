"""A program as it is run from the command line: its files, what it prints, where its data are."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "void->int filter Source { int n; work push 1 { push(n++); } }\n"
SHOW = "int->void filter Show { work pop 1 { println(pop()); } }\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(["run", *argv, "-q"], io.StringIO(), out, err), out.getvalue(), err.getvalue()


def test_several_files_are_one_program_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.str").write_text("void->void pipeline P { add Source; add Show; }\n", "utf-8")
    (tmp_path / "b.str").write_text(
        SOURCE + "int->int filter Spare(int n) { work pop 1 push 1 { push(pop() + n); } }", "utf-8"
    )
    (tmp_path / "c.str").write_text(SHOW, "utf-8")
    for order in (("a.str", "b.str", "c.str"), ("c.str", "b.str", "a.str")):
        assert run(*order, "--iterations", "3") == (0, "0\n1\n2\n", "")
    (tmp_path / "d.str").write_text(
        "void->void pipeline Q { add Source; add Spare(7); add Show; }\n", "utf-8"
    )
    code, out, errors = run("d.str", "a.str", "b.str", "c.str", "--iterations", "1")
    assert (code, out) == (1, "")
    assert "`Q`, `P`" in errors
    assert "--main NAME" in errors
    assert run("d.str", "a.str", "b.str", "c.str", "--iterations", "1", "--main", "Q") == (0, "7\n", "")
    assert run("d.str", "a.str", "b.str", "c.str", "--iterations", "1", "--main", "P") == (0, "0\n", "")
    loaded = river.load("d.str", more=("b.str", "c.str"), main="Q")
    assert loaded.run({}, iterations=1)["stdout"].to_pylist() == [{"value": "7\n"}]


def test_a_stream_that_stands_in_two_files_is_told_with_both(tmp_path: Path) -> None:
    (tmp_path / "a.str").write_text("void->void pipeline P { add Source; add Show; }\n" + SHOW, "utf-8")
    (tmp_path / "b.str").write_text(SOURCE + SHOW, "utf-8")
    errors = run("a.str", "b.str", "--iterations", "1")[2]
    assert "b.str:2:18: error[streamit-duplicate-name]" in errors
    assert "a.str:2:18: note: here is the first one" in errors
    assert "= help: give one of the two files, or" in errors
    assert "= help: give the file once, or" in run("a.str", "a.str")[2]


def test_other_languages_have_one_text(tmp_path: Path) -> None:
    for name in ("a.szl", "b.szl"):
        (tmp_path / name).write_text("n: table sum of int; emit n <- 1;", "utf-8")
    assert "usage-texts" in run("a.szl", "b.szl")[2]
    with pytest.raises(Rejected) as refused:
        river.compile("river 1;", "river", main="Main")
    assert [found.code for found in refused.value.diagnostics] == ["usage-texts"]


def test_a_mistake_is_told_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.str").write_text("void->void pipeline P { add Source; add Show; }\n", "utf-8")
    (tmp_path / "b.str").write_text(SOURCE + "\n" + SHOW.replace("pop());", "pup());"), "utf-8")
    assert "b.str:3:" in run("a.str", "b.str", "--iterations", "1")[2]


COPY = """void->void pipeline Main {
  add FileReader<%s>("in/data.bin");
  add %s->%s filter { work peek 2 pop 1 push 1 { push(%s); pop(); } };
  add FileWriter<%s>("input");
}"""


def test_files_are_raw_and_where_the_program_says(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = tmp_path / "in" / "data.bin"
    data.write_bytes(struct.pack("<5f", 1, 2, 4, 8, 16))
    (tmp_path / "p.str").write_text(COPY % ("float", "float", "float", "peek(0) + peek(1)", "float"), "utf-8")
    assert run("p.str") == (0, "", "")
    assert (tmp_path / "input").read_bytes() == struct.pack("<4f", 3, 6, 12, 24)
    assert run("p.str", "--iterations", "2") == (0, "", "")
    assert (tmp_path / "input").read_bytes() == struct.pack("<2f", 3, 6)
    (tmp_path / "other.csv").write_text("value\n1\n1\n1\n", "utf-8")
    assert run("p.str", "--in", "data=other.csv", "--out", "input_1=sums.csv", "--iterations", "1") == (
        0,
        "",
        "",
    )
    assert (tmp_path / "sums.csv").read_text() == "value\n2.0\n"
    data.write_bytes(b"\0" * 9)
    code, _, errors = run("p.str")
    assert code == 1
    assert "in/data.bin, item 3: error[data-truncated]" in errors
    data.unlink()
    assert "missing-file" in run("p.str")[2]


def test_bits_are_packed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "data.bin").write_bytes(bytes([0b10110001, 0b11110000]))
    (tmp_path / "p.str").write_text(COPY % ("bit", "bit", "bit", "peek(0) ^ peek(1)", "bit"), "utf-8")
    assert run("p.str") == (0, "", "")
    assert (tmp_path / "input").read_bytes() == bytes([0b11010010, 0b00010000])


def test_a_file_may_be_read_twice_and_stems_may_be_equal(tmp_path: Path) -> None:
    (tmp_path / "x 1.dat").write_bytes(struct.pack("<3i", 1, 2, 3))
    (tmp_path / "p.str").write_text(
        """void->void pipeline Main { add splitjoin { split roundrobin(0);
             add FileReader<int>("x 1.dat"); add FileReader<int>("x 1.dat"); join roundrobin; }
           add FileWriter<int>("x 1.out"); }""",
        "utf-8",
    )
    assert run("p.str") == (0, "", "")
    assert (tmp_path / "x 1.out").read_bytes() == struct.pack("<6i", 1, 1, 2, 2, 3, 3)


def test_what_is_printed_and_what_is_written_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "p.str").write_text(
        "void->void pipeline Main { add Source; add splitjoin { split duplicate; add Show; "
        'add pipeline { add int->void filter { work pop 1 { print("<" + pop() + ">"); } } } join roundrobin(0); } }'
        + SOURCE + SHOW,
        "utf-8",
    )  # fmt: skip
    assert run("p.str", "--iterations", "3") == (0, "0\n<0>1\n<1>2\n<2>", "")
    assert run("p.str", "--iterations", "1", "--out", "stdout=texts.jsonl") == (0, "", "")
    assert (tmp_path / "texts.jsonl").read_text() == '"0\\n"\n"<0>"\n'
