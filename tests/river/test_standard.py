"""Whatever standard input, output and error are, a command ends in a diagnostic, or silently, and never in a traceback."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from river.cli import command, main

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "s: {ts: int; x: int} stream by ts;\nq: relation = select x from s[now];\n"
RIVER = (sys.executable, "-m", "river")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("standard")
    (found / "q.cql").write_text(QUERY)
    (found / "s.csv").write_text("ts,x\n" + "".join(f"{i},{i}\n" for i in range(20_000)))
    (found / "few.csv").write_text("ts,x\n1,1\n")
    return found


def river(folder: Path, *argv: str, redirect: str = "") -> tuple[int, str, str]:
    """Status, standard output and error of a command with redirections that a shell understands."""
    script = f'"$@" {redirect}'
    found = subprocess.run(
        ("bash", "-c", script, "bash", *RIVER, *argv),  # noqa: S607 - wherever it is
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=600,
    )
    return found.returncode, found.stdout.decode(), found.stderr.decode()


COMMANDS = {
    "help": ("--help",),
    "version": ("--version",),
    "versions": ("version",),
    "help of run": ("run", "--help"),
    "compile": ("compile", "q.cql"),
    "opt": ("opt", "q.cql", "-q"),
    "graph": ("graph", "q.cql"),
    "explain": ("explain", "q.cql"),
    "run": ("run", "q.cql", "--in", "s=s.csv", "-q"),
    "table": ("run", "q.cql", "--in", "s=s.csv", "-q", "--format", "table"),
    "arrow": ("run", "q.cql", "--in", "s=s.csv", "-q", "--format", "arrow"),
    "parquet": ("run", "q.cql", "--in", "s=s.csv", "-q", "--format", "parquet"),
    "check": ("check", "q.cql", "--in", "s=few.csv", "--backend", "multicore"),
}
FEW = ("help", "run")


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in COMMANDS]
)
def test_what_cannot_be_written_is_told(folder: Path, name: str) -> None:
    assert river(folder, *COMMANDS[name], redirect="> /dev/full") == (
        1,
        "",
        "error[data-output]: cannot write `<stdout>`: no space left on device\n",
    )


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name",
    [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in ("help", "run", "arrow", "compile")],
)
def test_an_output_that_is_closed_is_told(folder: Path, name: str) -> None:
    assert river(folder, *COMMANDS[name], redirect=">&-") == (
        1,
        "",
        "error[data-output]: cannot write `<stdout>`: bad file descriptor\n",
    )


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name", ["help", *(pytest.param(each, marks=pytest.mark.slow) for each in ("run", "arrow", "parquet"))]
)
def test_a_reader_that_has_had_enough_is_no_mistake(folder: Path, name: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        found = subprocess.run(
            (*RIVER, *COMMANDS[name]), cwd=folder, stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (found.returncode, found.stderr) == (141, b"")


@pytest.mark.parametrize("redirect", ["2>&-", pytest.param("2> /dev/full", marks=pytest.mark.slow)])
def test_messages_that_nobody_hears_change_nothing(folder: Path, redirect: str) -> None:
    good = ("run", "q.cql", "--in", "s=s.csv", "--limit", "1", "--summary")
    assert river(folder, *good, redirect=redirect) == (0, "ts,op,x\n0,+,0\n", "")
    assert river(folder, "run", "nowhere.cql", redirect=redirect) == (1, "", "")
    target = ("run", "q.cql", "--in", "s=s.csv", "--out", "q=q.csv")
    assert river(folder, *target, redirect=f"{redirect} >&-") == (0, "", "")
    assert (folder / "q.csv").read_text().startswith("ts,op,x\n0,+,0\n1,-,0\n")


@pytest.mark.slow
def test_a_closed_input_is_told(folder: Path) -> None:
    status, out, err = river(folder, "compile", "--lang", "cql", "-", redirect="<&-")
    assert (status, out, err) == (
        1,
        "",
        "error[missing-file]: cannot read standard input: bad file descriptor\n",
    )
    args = ("run", "q.cql", "--in", "s=-", "--in-format", "s=csv")
    status, out, err = river(folder, *args, redirect="<&-")
    assert (status, out, "error[data-unreadable]" in err) == (1, "", True)
    assert river(folder, "--version", redirect="<&-")[0] == 0


def test_a_program_that_is_no_text_is_told(folder: Path) -> None:
    status, _, err = river(folder, "compile", "--lang", "cql", "-", redirect=r"< <(printf 'a\xff')")
    assert (status, err) == (
        1,
        "error[not-text]: `<stdin>` is not UTF-8 text (byte 1)\n  = help: save it as UTF-8\n",
    )


@pytest.mark.slow
def test_names_that_are_no_text_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.fsdecode(b"\xff.cql")
    (folder / name).write_text(QUERY)
    status, out, err = river(folder, "explain", name, redirect="| cat -v; exit ${PIPESTATUS[0]}")
    assert (status, err) == (0, "")
    assert out.startswith("M-^?.cql: ")
    for argv in (("run", name, "--in", "s=s.csv", "-q", "--limit", "0"), ("graph", name, "-o", "q.svg")):
        monkeypatch.chdir(folder)
        shown = io.StringIO()
        assert (main([*argv], io.StringIO(), io.StringIO(), shown), shown.getvalue()) == (0, "")
    assert "\\udcff.cql" in (folder / "q.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_results_are_utf_8_whatever_the_locale(folder: Path) -> None:
    (folder / "texts.river").write_text(
        "river 1;\ninput a: string;\noutput b: string;\n"
        "operator f(a: string) -> (b: string) { on a(x) { emit b x; } }\n(b) <- f(a);\n"
    )
    (folder / "a.txt").write_text("häßlich\n", encoding="utf-8")
    args = ("run", "texts.river", "--in", "a=a.txt", "-q", "--format", "text")
    found = subprocess.run(
        (*RIVER, *args),
        cwd=folder,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (found.returncode, found.stdout.decode("utf-8"), found.stderr) == (0, "häßlich\n", b"")


@pytest.mark.slow
def test_what_does_not_block_is_waited_for(folder: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(write, "wb") as out, os.fdopen(read, "rb") as pipe:
        process = subprocess.Popen((*RIVER, *COMMANDS["run"]), cwd=folder, stdout=out)
        out.close()
        lines = pipe.read().splitlines()
    assert process.wait() == 0
    assert len(lines) == 40_000


SLOW = ("out parquet", "dead letters", "metrics", "checkpoint")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "option",
    ["out", "compile", *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, option: str) -> None:
    """A limit for the size of files stands for the end of the disk."""
    (tmp_path / "q.cql").write_text(QUERY)
    rows = ("no" if option == "dead letters" else i for i in range(60_000))
    (tmp_path / "s.csv").write_text("ts,x\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))
    start = ("run", "q.cql", "--in", "s=s.csv", "-q")
    argv = {
        "out": (*start, "--out", "q=q.csv"),
        "out parquet": (*start, "--out", "q=q.parquet"),
        "dead letters": (*start, "--on-error", "dead-letter=bad.jsonl"),
        "metrics": (*start, "--metrics", "m.json", "--out", "q=/dev/null", "--out-format", "q=csv"),
        "checkpoint": (*start, "--checkpoint", ".", "--out", "q=/dev/null", "--out-format", "q=csv"),
        "compile": ("compile", "q.cql", "-o", "q.river"),
    }[option]
    size = {"out": 10_000, "out parquet": 1_000, "dead letters": 10_000}.get(option, 1)
    before = {path.name for path in tmp_path.iterdir()}
    found = subprocess.run(
        (*RIVER, *argv),
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
        },  # Python would keep what it could write of its modules
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    err = found.stderr.decode()
    code = "run-checkpoint-write" if option == "checkpoint" else "data-output"
    assert (found.returncode, f"error[{code}]: cannot" in err, "file too large" in err) == (1, True, True), (
        err
    )
    left = {path.name for path in tmp_path.iterdir()} - before
    kept = {"dead letters": {"bad.jsonl"}, "metrics": {"m.json"}, "checkpoint": {"lock"}}
    assert left == kept.get(option, set())


def test_the_command_and_the_module_are_one() -> None:
    from importlib.metadata import entry_points, version

    (found,) = (each for each in entry_points(group="console_scripts") if each.name == "river")
    assert found.load() is command
    args = (*RIVER, "--version")
    assert (
        subprocess.run(args, capture_output=True, check=True, text=True).stdout
        == f"river {version('river-streams')}\n"
    )
