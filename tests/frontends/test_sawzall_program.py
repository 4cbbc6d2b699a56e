"""Sawzall scripts run as they are: each in `tests/programs/sawzall` asserts what must hold, and ends no record early."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected
from river.testing import seeds

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "sawzall"
BACKENDS = ["reference", "multicore"]


def shown(*args: str, text: str = "") -> tuple[int, str, str]:
    """The status of a command, and what it prints on standard output and on standard error."""
    out, err = io.StringIO(), io.StringIO()
    status = main(["run", *args, "--quiet"], io.StringIO(text), out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.szl")))
def test_scripts_hold(name: str, backend: str) -> None:
    status, _, err = shown(str(PROGRAMS / name), "--backend", backend)
    assert (status, [line for line in err.splitlines() if "warning" in line]) == (0, [])


def test_a_script_that_ends_early_does_not_end_well(tmp_path: Path) -> None:
    script = tmp_path / "early.szl"
    script.write_text(
        'a: array of int = {1};\nemit stdout <- "before";\nemit stdout <- string(a[3]);\nassert(false);\n'
    )
    status, out, err = shown(str(script), "--backend", "reference")
    assert (status, out) == (1, "before\n")
    assert "3:23: warning[run-undefined]: `a[3]`: index out of range" in err
    assert "run-unfinished" in err
    target = tmp_path / "undefined.csv"
    status, _, err = shown(str(script), "--backend", "reference", "--out", f"undefined={target}")
    assert (status, err) == (0, "")
    assert target.read_text() == "at,why\n3:23,`a[3]`: index out of range\n"
    script.write_text('assert(1 == 2, "numbers differ");')
    status, _, err = shown(str(script), "--backend", "reference")
    assert status == 1
    assert "numbers differ" in err


LINES = """
count: table sum of int;
total: table sum of float;
x: float = input;
emit count <- 1;
emit total <- x;
emit stdout <- string(input) + "!";
emit output <- B"\\xff\\n";
if (x > 1.5) emit stderr <- "much";
"""


@pytest.mark.parametrize("workers", ["1", "4"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_lines_are_read_and_printed_in_order(backend: str, workers: str, tmp_path: Path) -> None:
    script, data = tmp_path / "lines.szl", tmp_path / "numbers.log"
    script.write_text(LINES)
    data.write_text("".join(f"{i / 2}\n" for i in range(50)))
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    given = [
        "--in",
        f"input={data}",
        "--out",
        f"total={tmp_path / 'total.csv'}",
        "--out",
        f"count={tmp_path / 'count.csv'}",
    ]
    args = ["run", str(script), *given, "--backend", backend, "--workers", workers, "--batch", "7", "--quiet"]
    assert main(args, io.StringIO(), out, err) == 0
    out.flush()
    printed = out.buffer.getvalue()  # type: ignore[attr-defined] - the stream is one of bytes
    assert printed == b"".join(f"{i / 2}!\n".encode() + b"\xff\n" for i in range(50))
    assert err.getvalue() == "much\n" * 46
    assert (tmp_path / "total.csv").read_text() == "value\n612.5\n"
    assert (tmp_path / "count.csv").read_text() == "value\n50\n"


def test_without_lines_a_script_runs_once() -> None:
    text = 'emit stdout <- format("%d bytes", len(input)); t: table collection of bytes; emit t <- input;'
    once = river.compile(text, lang="sawzall").run({}, backend="reference")
    assert once["stdout"].to_pylist() == [{"value": "0 bytes\n"}]
    assert once["t"].to_pylist() == [{"value": b""}]
    twice = river.compile(text, lang="sawzall").run({"input": ["é", "ab"]}, backend="reference")
    assert twice["stdout"]["value"].to_pylist() == ["2 bytes\n", "2 bytes\n"]
    assert twice["t"]["value"].to_pylist() == ["é".encode(), b"ab"]


def test_words_look_at_both_sides() -> None:
    text = (
        "n: int = 0; emit stdout <- string(n != 0 && 1 / n > 0); emit stdout <- string(n != 0 and 1 / n > 0);"
    )
    compiled = river.compile(text, lang="sawzall")
    assert [d.code for d in compiled.warnings] == ["sawzall-deprecated"]
    found = compiled.run({}, backend="reference")
    assert found["stdout"]["value"].to_pylist() == ["false\n"]
    assert found["undefined"]["why"].to_pylist() == ["`1 / n`: division by zero"]


def test_annotations_of_what_runs_once_and_prints() -> None:
    for text in (
        "@Once() input x: i64; output x2: i64;",
        '@Printed("x") output x: string;',
        "@Errors(1) output x: string;",
    ):
        with pytest.raises(Rejected) as found:
            river.compile(f"river 1; {text}", lang="il").graph  # noqa: B018 - it is verified
        assert "il-annotation-argument" in {d.code for d in found.value.diagnostics}


def small(name: str) -> list[str]:
    """The scripts of a file of many."""
    return (PROGRAMS / name).read_text(encoding="utf-8").split("\n---\n")


def outcome(text: str, backend: str) -> object:
    """The undefined values of a script, or why it does not run."""
    try:
        compiled = river.compile(text, lang="sawzall")
        undefined = compiled.run({}, backend=backend).tables.get("undefined")
    except Rejected as rejected:
        return str(rejected)
    return [*compiled.warnings, *([] if undefined is None else undefined.to_pylist())]


def test_small_scripts_hold() -> None:
    scripts = small("small.txt")
    drawn = seeds.chance("small scripts", "native").sample(range(len(scripts)), 3)
    cases = [*enumerate(["reference"] * len(scripts)), *((i, "multicore") for i in drawn)]
    found = [(scripts[i], outcome(scripts[i], backend)) for i, backend in cases]
    assert [(text, why) for text, why in found if why != []] == []


def refusals(text: str) -> list[tuple[int, str]]:
    """The lines and codes of what is refused in a script."""
    try:
        river.compile(text, lang="sawzall")
    except Rejected as rejected:
        spans = [(d.span, d.code) for d in rejected.diagnostics]
        return [(span.source.position(span.start)[0], code) for span, code in spans if span is not None]
    return []


def test_broken_scripts_are_refused_on_their_lines() -> None:
    wrong: list[object] = []
    for text in small("refused.txt"):
        marked = [(i, line.split("#! ")[1]) for i, line in enumerate(text.splitlines(), 1) if "#! " in line]
        if (said := refusals(text)) != marked:
            wrong.append((text, said))
    assert wrong == []


def test_doubtful_scripts_run_with_a_warning_on_their_lines() -> None:
    for text in small("warned.txt"):
        marked = [(i, line.split("#? ")[1]) for i, line in enumerate(text.splitlines(), 1) if "#? " in line]
        compiled = river.compile(text, lang="sawzall")
        spans = [(d.span, d.code) for d in compiled.warnings]
        assert [(s.source.position(s.start)[0], code) for s, code in spans if s is not None] == marked, text
        undefined = compiled.run({}, backend="reference").tables.get("undefined")
        assert undefined is None or undefined.to_pylist() == [], text
