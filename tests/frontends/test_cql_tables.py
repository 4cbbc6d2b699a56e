"""Tables, whose rows are there before the first instant, lines of text as rows, and time stamps that are computed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import river
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
words: { word: string } relation;
limits: { k: string; most: float } relation;
s: { at: int; k: string; x: float } stream by at;
dear: stream = select s.k, x, most from limits as l, s where l.k = s.k and x > most;
present: stream = rstream(select s.k from s[now], words where word = k);
n: relation = select count(*) as n from words;
"""
ROWS = [{"at": 1, "k": "a", "x": 4.0}, {"at": 2, "k": "b", "x": 9.0}, {"at": 2, "k": "c", "x": 1.0}]


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_a_table_is_there_before_the_first_instant(backend: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nc\n\nc")
    (tmp_path / "limits.csv").write_text("k,most\na,3\nb,9.5\na,3.5\n")
    data = {"words": tmp_path / "words.txt", "limits": tmp_path / "limits.csv", "s": ROWS}
    found = river.compile(TEXT, lang="cql").run(data, backend=backend)
    assert found["dear"].to_pylist() == [
        {"at": 1, "k": "a", "x": 4.0, "most": 3.0},
        {"at": 1, "k": "a", "x": 4.0, "most": 3.5},
    ]
    assert found["present"].to_pylist() == [{"at": 1, "k": "a"}, {"at": 2, "k": "c"}, {"at": 2, "k": "c"}]
    assert found["n"].to_pylist() == [{"ts": 1 - 2**63, "op": "+", "n": 4}]


def test_a_table_beside_times_is_there_in_the_year_1() -> None:
    text = """p: {k: string} relation; s: {at: time; k: string} stream by at;
    v: relation = select p.k, s.k as b from p left join s on p.k = s.k;"""
    found = river.compile(text, lang="cql").run({"p": [{"k": "a"}], "s": []}, backend="reference")
    assert [str(at) for at in found["v"].column("ts").to_pylist()] == ["0001-01-01 00:00:00+00:00"]


def test_rows_of_a_table_that_are_refused_are_told_like_others(tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text("k,most\na,3\nb,much\nc,4\n")
    text = "limits: {k: string; most: float} relation; v: relation = select k from limits;"
    program, data = river.compile(text, lang="cql"), {"limits": tmp_path / "limits.csv"}
    with pytest.raises(Rejected) as found:
        program.run(data, backend="reference")
    assert [(each.code, each.place) for each in found.value.diagnostics] == [
        ("data-type", f"{tmp_path}/limits.csv:3:3")
    ]
    kept = program.run(data, backend="reference", on_error="skip")
    assert kept["v"].column("k").to_pylist() == ["a", "c"]


def test_a_table_has_an_end() -> None:
    program = river.compile("p: {k: string} relation; v: relation = select k from p;", lang="cql")
    with pytest.raises(Rejected) as found:
        program.run({"p": river.follow("here.csv")})
    assert "run-live" in [each.code for each in found.value.diagnostics]


def test_only_lists_are_whole() -> None:
    text = """river 1; @Whole() input x: {k: string}; output y: {k: string};
    operator f(a: {k: string}) -> (b: {k: string}) { on a(r) { emit b r; } }
    (y) <- f(x);"""
    with pytest.raises(Rejected) as found:
        river.compile(text, lang="river").run({"x": []}, backend="reference")
    assert [each.code for each in found.value.diagnostics] == ["il-annotation-argument"]


STAMPED = """
tick 1 second;
m: { day: int; seconds: int; x: int } stream by day * 86400 + seconds;
log: { line: string } stream by cast(epoch(to_timestamp(left(line, 19))) as int);
both: relation = select x, substring(line, 21) as what from m[range 5 seconds] join log[range 2 seconds] on true;
all_of_it: stream = select * from log;
ts: relation = select ts, x from m;
"""
LOG = """1970-01-02 00:00:01 one
1970-01-02 00:00:03 two
yesterday three
1970-01-02 00:00:02 four
1970-01-02 00:00:09 five
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_time_stamps_may_be_computed(backend: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("x,day,seconds\n7,1,0\n8,1,4\n")
    (tmp_path / "app.log").write_text(LOG)
    data = {"m": tmp_path / "m.csv", "log": tmp_path / "app.log"}
    found = river.compile(STAMPED, lang="cql").run(data, backend=backend, on_error="skip")
    assert [tuple(row.values()) for row in found["both"].to_pylist()] == [
        (86401, "+", 7, "one"), (86403, "+", 7, "two"), (86404, "-", 7, "one"), (86404, "+", 8, "two"),
        (86406, "-", 7, "two"), (86406, "-", 8, "two"), (86409, "+", 8, "five"),
    ]  # fmt: skip
    assert found["all_of_it"].column_names == ["ts", "line"]
    assert found["all_of_it"].column("ts").to_pylist() == [86401, 86403, 86409]
    assert [tuple(row.values()) for row in found["ts"].to_pylist()] == [
        (86400, "+", 86400, 7),
        (86404, "+", 86404, 8),
    ]
    assert [each.code for each in found.warnings] == ["data-skipped"]


def test_rows_without_a_time_stamp_and_those_that_go_back_are_told_at_their_lines(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(LOG)
    text = "log: {line: string} stream by to_timestamp(left(line, 19)); v: stream = select line from log;"
    program, data = river.compile(text, lang="cql"), {"log": tmp_path / "app.log"}
    with pytest.raises(Rejected) as found:
        program.run(data, backend="reference")
    assert [(each.code, each.place) for each in found.value.diagnostics] == [
        ("data-stamp", f"{tmp_path}/app.log:3")
    ]
    letters = tmp_path / "bad.jsonl"
    program.run(data, backend="reference", on_error=f"dead-letter={letters}")
    assert [(each["line"], each["code"]) for each in map(json.loads, letters.read_text().splitlines())] == [
        (3, "data-stamp"), (4, "data-order"),
    ]  # fmt: skip
    late = program.run(data, backend="reference", on_error="skip", lateness=1_000_000)
    assert late["v"].column("line").to_pylist() == [
        line for line in sorted(LOG.splitlines()) if "three" not in line
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("s: {a: int?} stream by a + 1; v: stream = select a from s;", "cql-stamp-type"),
        ("s: {a: string} stream by upper(a); v: stream = select a from s;", "cql-stamp-type"),
        ("s: {a: int} stream by b + 1; v: stream = select a from s;", "sql-unknown-column"),
        ("s: {a: int; ts: int} stream by ts; v: stream by ts + 1 = select a from s;", "cql-stamp-computed"),
    ],
)
def test_time_stamps_that_cannot_be(text: str, code: str) -> None:
    with pytest.raises(Rejected) as found:
        river.compile(text, lang="cql")
    assert code in [each.code for each in found.value.diagnostics]


def test_a_stamp_is_a_function_of_the_other_fields() -> None:
    text = """river 1; fn f(r: {x: string}) -> i64 = 1; @Stamp(%s)
    input a: {ts: i64, x: i64} by ts; output b: {ts: i64, x: i64} by ts;
    operator o(p: {ts: i64, x: i64} by ts) -> (q: {ts: i64, x: i64} by ts) { on p(r) { emit q r; } }
    (b) <- o(a);"""
    for name in ("f", "g", "1"):
        with pytest.raises(Rejected) as found:
            river.compile(text % name, lang="river").run({"a": []}, backend="reference")
        assert [each.code for each in found.value.diagnostics] == ["il-annotation-argument"]


def test_an_input_with_computed_stamps_has_an_end() -> None:
    program = river.compile("s: {a: int} stream by a + 1; v: stream = select a from s;", lang="cql")
    with pytest.raises(Rejected) as found:
        program.run({"s": river.follow("here.csv")})
    assert "run-live" in [each.code for each in found.value.diagnostics]
