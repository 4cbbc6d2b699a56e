"""What options say about time: how late rows may be, and how far time goes on behind the last of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from pathlib import Path

TICKS = "s: {ts: int; x: int} stream by ts; v: relation = select x from s[range 3];"
TIMES = "s: {ts: time; x: int} stream by ts; v: relation = select x from s[range 3 seconds];"
PLAIN = """river 1;
input q: {x: i64};
operator f(q: {x: i64}) -> (out: {x: i64}) { on q(r) { emit out r; } }
(o) <- f(q);
output o: {x: i64};"""


def changes(text: str, rows: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    table = river.compile(text, "cql").run({"s": rows}, **options)["v"]
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("backend", ["reference", "multicore"])
@pytest.mark.parametrize(
    ("until", "gone"), [(None, []), (7, []), (8, [1]), (9, [1]), (10, [1, 2]), ((1 << 63) - 1, [1, 2])]
)
def test_time_goes_on_behind_the_last_row(backend: str, until: int | None, gone: list[int]) -> None:
    found = changes(TICKS, [(4, 1), (6, 2)], backend=backend, until=until)
    assert found == [(4, "+", 1), (6, "+", 2), *((6 + 2 * x, "-", x) for x in gone)]


def test_an_end_of_time_before_the_last_row_takes_nothing_away() -> None:
    assert changes(TICKS, [(4, 1), (9, 2)], until=5) == changes(TICKS, [(4, 1), (9, 2)])


def test_time_goes_on_where_there_are_no_rows() -> None:
    text = TICKS.replace("select x", "select count(*) as n")
    assert changes(text, [], until=9) == []


def run(tmp_path: Path, text: str, data: str, *options: str, suffix: str = ".cql") -> tuple[int, str, str]:
    (tmp_path / f"q{suffix}").write_text(text)
    (tmp_path / "s.csv").write_text(data)
    out, err = io.StringIO(), io.StringIO()
    given = [
        "run",
        str(tmp_path / f"q{suffix}"),
        "--in",
        f"{'s' if suffix == '.cql' else 'q'}={tmp_path / 's.csv'}",
    ]
    status = main([*given, "--backend", "reference", "-q", *options], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


TIMED = "ts,x\n2026-01-31T12:00:00,1\n2026-01-31T12:00:02,2\n"


def test_the_end_of_time_may_be_a_time(tmp_path: Path) -> None:
    status, out, _ = run(tmp_path, TIMES, TIMED, "--until", "2026-01-31 12:00:05")
    assert status == 0
    assert out.splitlines()[-1].endswith("03.000001Z,-,1")


def test_lateness_may_have_a_unit_and_what_is_later_is_kept(tmp_path: Path) -> None:
    late = TIMED + "2026-01-31T12:00:01,3\n2026-01-31T11:59:59.5,4\n"
    dead = tmp_path / "dead.jsonl"
    status, out, _ = run(tmp_path, TIMES, late, "--lateness", "2s", "--on-error", f"dead-letter={dead}")
    assert status == 0
    assert [line.rpartition(",")[2] for line in out.splitlines()[1:]] == ["1", "3", "2"]
    assert "11:59:59.5" in dead.read_text()
    assert "data-late" in dead.read_text()


@pytest.mark.parametrize(
    ("text", "data", "options", "code"),
    [
        (TICKS, "ts,x\n", ("--until", "soon"), "run-until"),
        (TICKS, "ts,x\n", ("--until", "99999999999999999999"), "run-until"),
        (TICKS, "ts,x\n", ("--until", "2026-01-31"), "run-until"),
        (TICKS, "ts,x\n", ("--lateness", "2s"), "run-lateness"),
        (TIMES, "ts,x\n", ("--lateness", "soon"), "run-lateness"),
        (TIMES, "ts,x\n", ("--lateness", "-2s"), "run-lateness"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, data: str, options: tuple[str, ...], code: str) -> None:
    status, _, err = run(tmp_path, text, data, *options)
    assert status != 0
    assert f"[{code}]" in err


def test_no_length_of_time_is_below_nothing() -> None:
    compiled = river.compile(TICKS, "cql")
    (name,) = compiled.graph.inputs
    with pytest.raises(Rejected, match="`-1` is no length of time"):
        compiled.run({name: []}, lateness=-1)


def test_a_program_without_time_has_no_end_of_time(tmp_path: Path) -> None:
    status, _, err = run(tmp_path, PLAIN, "x\n1\n", "--until", "3", suffix=".river")
    assert status != 0
    assert "[run-until]" in err
