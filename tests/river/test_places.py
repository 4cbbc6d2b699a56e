"""What is read is not written: whatever the option, and whatever links lead there."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected

QUERY = "s: {ts: int; x: int} stream by ts;\nq: relation = select x from s[now];\np: relation = select x from s[rows 1];\n"
DATA = "ts,x\n1,5\n2,6\n"


def run(*argv: str) -> tuple[int, str]:
    err = io.StringIO()
    status = main(list(argv), io.StringIO(), io.StringIO(), err)
    return status, err.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `p.cql`, its data `a.csv`, links to both, a folder of data, and no other file of that name."""
    monkeypatch.chdir(tmp_path)
    Path("p.cql").write_text(QUERY)
    Path("a.csv").write_text(DATA)
    for name in ("a.csv", "p.cql"):
        Path(f"soft-{name}").symlink_to(name)
        Path(f"hard-{name}").hardlink_to(name)
    Path("logs").mkdir()
    Path("logs/1.csv").write_text(DATA)
    Path("logs/soft.csv").symlink_to("../outside.csv")
    Path("outside2.csv").write_text("keep\n")
    Path("logs/hard.csv").hardlink_to("outside2.csv")
    Path("same").symlink_to("logs")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


RUN = ("run", "p.cql", "-q")
OVERWRITING = {
    "out": (*RUN, "--in", "s=a.csv", "--out", "q=a.csv"),
    "out soft": (*RUN, "--in", "s=a.csv", "--out", "q=soft-a.csv"),
    "out hard": (*RUN, "--in", "s=hard-a.csv", "--out", "q=a.csv"),
    "out spelled otherwise": (*RUN, "--in", "s=a.csv", "--out", "q=logs/../a.csv"),
    "out other case of format": (*RUN, "--in", "s=a.csv", "--out", "q=a.csv", "--out-format", "q=parquet"),
    "metrics": (*RUN, "--in", "s=a.csv", "--metrics", "a.csv"),
    "metrics soft": (*RUN, "--in", "s=a.csv", "--metrics", "soft-a.csv"),
    "dead letters": (*RUN, "--in", "s=a.csv", "--on-error", "dead-letter=a.csv"),
    "dead letters hard": (*RUN, "--in", "s=a.csv", "--on-error", "dead-letter=hard-a.csv"),
    "dead letters of check": ("check", "p.cql", "--in", "s=a.csv", "--on-error", "dead-letter=a.csv"),
    "followed": (*RUN, "--in", "s=a.csv", "--follow", "--out", "q=a.csv", "--idle-exit", "100ms"),
    "followed, not there": (*RUN, "--in", "s=new.csv", "--follow", "--out", "q=new.csv", "--idle-exit", "1s"),
    "followed, metrics": (*RUN, "--in", "s=a.csv", "--follow", "--metrics", "hard-a.csv", "--idle-exit", "1s"),
    "checkpoint": (*RUN, "--in", "s=a.csv", "--checkpoint", "ck", "--out", "q=a.csv", "--out", "p=p.csv"),
    "checkpoint, in place": (*RUN, "--in", "s=a.csv", "--checkpoint", "ck", "--out", "q=a.csv", "--in-place"),
    "file of the checkpoint": (*RUN, "--in", "s=a.csv", "--checkpoint", "ck", "--out", "q=ck/lock"),
    "input of the checkpoint": (*RUN, "--in", "s=ck/1.checkpoint", "--in-format", "s=csv", "--checkpoint", "ck"),
    "program": (*RUN, "--in", "s=a.csv", "--out", "q=p.cql", "--out-format", "q=csv"),
    "program, metrics": (*RUN, "--in", "s=a.csv", "--metrics", "soft-p.cql"),
    "program, in place": (*RUN, "--in", "s=a.csv", "--out", "q=p.cql", "--out-format", "q=csv", "--in-place"),
    "compile": ("compile", "p.cql", "-o", "p.cql"),
    "compile soft": ("compile", "p.cql", "-o", "soft-p.cql"),
    "compile hard": ("compile", "hard-p.cql", "-o", "p.cql"),
    "opt": ("opt", "p.cql", "-o", "p.cql"),
    "graph": ("graph", "p.cql", "--format", "svg", "-o", "p.cql"),
    "folder": (*RUN, "--in", "s=logs/", "--follow", "--out", "q=logs/2.csv", "--idle-exit", "1s"),
    "folder by a link": (*RUN, "--in", "s=same/", "--follow", "--out", "q=logs/2.csv", "--idle-exit", "1s"),
    "link in a folder": (*RUN, "--in", "s=logs", "--follow", "--out", "q=outside.csv", "--idle-exit", "1s"),
    "hard link in a folder": (*RUN, "--in", "s=logs", "--follow", "--metrics", "outside2.csv", "--idle-exit", "1s"),
    "folder not there": (*RUN, "--in", "s=new/", "--follow", "--out", "q=./new/2.csv", "--idle-exit", "1s"),
    "folder, any suffix": (
        *(*RUN, "--in", "s=logs/", "--follow", "--in-format", "s=csv"),
        *("--checkpoint", "logs", "--out", "q=q.csv", "--out", "p=p.csv"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OVERWRITING)
def test_what_is_read_is_not_written(folder: Path, case: str) -> None:
    before = contents(folder)
    status, err = run(*OVERWRITING[case])
    codes = {"checkpoint, in place": "usage", "file of the checkpoint": "data-output"}
    code = codes.get(case, "data-overwrite")
    assert (status, f"error[{code}]" in err) == (1, True), err
    assert contents(folder) == before


def test_both_options_are_named(folder: Path) -> None:
    _, err = run(*RUN, "--in", "s=a.csv", "--out", "q=soft-a.csv")
    assert "error[data-overwrite]: `--out q=soft-a.csv` would overwrite `--in s=a.csv`" in err
    assert "`soft-a.csv` and `a.csv` are the same file" in err
    assert "`--in-place` replaces the input" in err
    _, err = run(*RUN, "--in", "s=a.csv", "--metrics", "p.cql")
    assert "`--metrics p.cql` would overwrite the program `p.cql`" in err
    assert "--in-place" not in err


def test_a_module_that_is_called_is_not_overwritten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    Path("called_by_places.py").write_text("def f(x):\n    return x\n")
    before = contents(folder)
    status, err = run(
        "graph", "p.cql", "--extern", "called_by_places", "-o", "called_by_places.py", "--format", "svg"
    )
    assert (status, "error[data-overwrite]" in err) == (1, True)
    args = ("--in", "s=a.csv", "--extern", "called_by_places", "--metrics", "called_by_places.py")
    assert "would overwrite `--extern called_by_places`" in run(*RUN, *args)[1]
    assert {k: v for k, v in contents(folder).items() if "__pycache__" not in k} == before


ALLOWED = {
    "null": (*RUN, "--in", "s=a.csv", "--metrics", "/dev/null", "--out", "q=/dev/null", "--out-format", "q=csv"),
    "null twice": (*RUN, "--in", "s=/dev/null", "--in-format", "s=jsonl", "--on-error", "dead-letter=/dev/null"),
    "beside": (
        *(*RUN, "--in", "s=more", "--follow", "--idle-exit", "100ms"),
        *("--out", "q=more/q.parquet", "--out", "p=more/.p.csv"),
    ),
    "one input twice": ("compile", "soft-p.cql", "-o", "q.river"),
    "within the folder of the checkpoint": (
        *(*RUN, "--in", "s=a.csv", "--checkpoint", "ck", "--out", "q=ck/q.csv", "--out", "p=ck/p.csv"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALLOWED)
def test_what_harms_nothing_is_allowed(folder: Path, case: str) -> None:
    Path("ck").mkdir()
    Path("more").mkdir()
    Path("more/1.csv").write_text(DATA)
    status, err = run(*ALLOWED[case])
    assert (status, err) == (0, "")


@pytest.mark.parametrize("link", ["a.csv", "soft-a.csv"])
def test_an_input_is_replaced_in_place(folder: Path, link: str) -> None:
    status, err = run(*RUN, "--in", "s=a.csv", "--out", f"q={link}", "--in-place", "--out", "p=p.csv")
    assert (status, err) == (0, "")
    assert Path("a.csv").read_text() == "ts,op,x\n1,+,5\n2,-,5\n2,+,6\n"
    assert Path("soft-a.csv").is_symlink()
    assert Path("hard-a.csv").read_text() == DATA


def test_an_input_stays_when_the_run_that_would_replace_it_fails(folder: Path) -> None:
    Path("a.csv").write_text(DATA + "3,nonsense\n")
    before = contents(folder)
    status, err = run(*RUN, "--in", "s=a.csv", "--out", "q=a.csv", "--in-place")
    assert (status, "error[data-type]" in err) == (1, True)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "args",
    [
        ("--out", "q=o.csv", "--out", "p=o.csv"),
        ("--out", "q=o.csv", "--out", "p=logs/../o.csv"),
        ("--out", "q=a2.csv", "--out", "p=b2.csv"),
        ("--out", "q=o.csv", "--metrics", "o.csv"),
        ("--metrics", "o.csv", "--on-error", "dead-letter=./o.csv"),
    ],
)
def test_no_two_outputs_go_to_one_file(folder: Path, args: tuple[str, ...]) -> None:
    Path("a2.csv").write_text("")
    Path("b2.csv").hardlink_to("a2.csv")
    before = contents(folder)
    status, err = run(*RUN, "--in", "s=a.csv", *args)
    assert (status, "error[data-output]" in err, "go to the same place" in err) == (1, True, True)
    assert contents(folder) == before


def test_standard_streams_are_files_too(folder: Path) -> None:
    command = (sys.executable, "-c", "from river.cli import run; run()", *RUN)
    with Path("a.csv").open() as data, Path("a.csv").open("a") as out:
        args = (*command, "--in", "s=-", "--in-format", "s=csv")
        found = subprocess.run(args, stdin=data, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, "standard output would overwrite `--in s=-`" in found.stderr) == (1, True)
    assert Path("a.csv").read_text() == DATA


def test_python_refuses_alike(folder: Path) -> None:
    program = river.load("p.cql")
    cases: list[tuple[dict[str, Path], dict[str, Any]]] = [
        ({"q": Path("a.csv")}, {}),
        ({"q": folder / "soft-a.csv"}, {}),
        ({}, {"metrics": "a.csv"}),
        ({}, {"metrics": "hard-p.cql"}),
        ({}, {"on_error": "dead-letter=a.csv"}),
    ]
    for outputs, more in cases:
        with pytest.raises(Rejected) as caught:
            program.run({"s": "a.csv"}, outputs, **more)
        assert [found.code for found in caught.value.diagnostics] == ["data-overwrite"]
    with Path("a.csv").open("rb") as file, pytest.raises(Rejected, match="data-overwrite"):
        program.run({"s": file}, {"q": "soft-a.csv"})
    program.run({"s": "a.csv"}, {"q": "a.csv", "p": "p.csv"}, in_place=True)
    assert Path("a.csv").read_text().startswith("ts,op,x\n")


def test_a_folder_of_many_files_is_looked_through_without_opening_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from river.driver import places

    for i in range(50):
        Path(f"logs/many{i}.csv").write_text("")
    asked: list[object] = []
    identity = places._identity  # pyright: ignore[reportPrivateUsage]

    def counted(target: object, *, folder: bool = False) -> object:
        asked.append(target)
        return identity(target, folder=folder)

    monkeypatch.setattr(places, "_identity", counted)
    read = places.Endpoint("`--in s=logs`", "logs", lambda name: name.endswith(".csv"))
    places.check_places([read], [places.Endpoint("`--out q=new.csv`", "new.csv")])
    assert "logs/soft.csv" in asked
    assert not [path for path in asked if str(path).startswith("logs/many")]


@pytest.mark.parametrize(
    ("inputs", "outputs", "more", "code"),
    [
        ("a\0.csv", {}, {}, "data-unreadable"),
        ("a.csv", {"q": "q\0.csv"}, {}, "data-output"),
        ("a.csv", {}, {"on_error": "dead-letter=q\0.jsonl"}, "data-output"),
        ("a.csv", {}, {"metrics": "q\0.jsonl"}, "data-output"),
    ],
)
def test_names_that_no_file_can_have(
    folder: Path, inputs: str, outputs: dict[str, str], more: dict[str, Any], code: str
) -> None:
    with pytest.raises(Rejected) as caught:
        river.load("p.cql").run({"s": inputs}, outputs, **more)
    assert [found.code for found in caught.value.diagnostics] == [code]
