"""Tables, whose rows are there before the first instant, and lines of text as rows."""

from __future__ import annotations

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
