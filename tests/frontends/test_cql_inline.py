"""Parameters and functions of a River-CQL program: what queries with them are, and what is refused."""

from __future__ import annotations

import io
from math import inf
from typing import TYPE_CHECKING

import pytest

import river
from frontends.cql import FRONTEND
from frontends.cql import typed as ty
from river.cli import main
from river.diagnostics import Diagnostic, Rejected
from river.frontend import CommandText
from river.source import Source

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = "s: {ts: int; i: int; q: int?; f: float; k: string} stream by ts;\n"


def check(text: str) -> ty.Program:
    return FRONTEND.check(FRONTEND.parse(Source("<query>", INPUTS + text)))


def refused(text: str) -> list[Diagnostic]:
    with pytest.raises(Rejected) as found:
        check(text)
    return list(found.value.diagnostics)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("fn twice(x: int): int = x * 2; v: stream = select twice(i) as c from s;", "i * 2"),
        ("fn twice(x: int): int = x * 2; v: stream = select twice(twice(q)) as c from s;", "q * 2 * 2"),
        ("fn half(x: float): float = x / 2; v: stream = select half(i + 1) as c from s;", "cast(i + 1 as float) / 2"),
        ("fn a(x: int): int = b(x) + 1; fn b(x: int): int = x - 1; v: stream = select a(i) as c from s;", "i - 1 + 1"),
        ("fn one(): int = 1; v: stream = select one() as c from s;", "1"),
        ("fn big(x: int): bool = x > :p; param p = 3; v: stream = select big(i) as c from s;", "i > 3"),
        ("param p = 3; param p = 4; v: stream = select i + :p as c from s;", "i + 4"),
        ("param p = 'a'; v: stream = select k || :p as c from s;", "k || 'a'"),
        ("param t = interval '5' minute; v: stream = select :t as c from s;", "interval '300 seconds'"),
        ("fn up(k: string): string = upper(k); v: stream = select up(s.k) as c from s;", "upper(k)"),
    ],
)  # fmt: skip
def test_what_is_written_out(text: str, same: str) -> None:
    plain = check(f"v: stream = select {same} as c from s;")
    assert check(text).views == plain.views


def test_names_of_functions_and_parameters_stay_names() -> None:
    assert check("param: relation = select i from s; fn2: relation = select i from param;").views


@pytest.mark.parametrize(
    ("text", "code", "help_line"),
    [
        ("v: stream = select i + :p as c from s;", "cql-parameter", "say it: `--param p=5`, or `param p = 5;` in the program"),
        ("param width = 3; v: stream = select i + :widht as c from s;", "cql-parameter", "did you mean `width`?"),
        ("param p = i; v: stream = select :p as c from s;", "cql-parameter", "write a number, a text or a time"),
        ("fn lower(x: string): string = x; v: stream = select i from s;", "cql-function", "give it another name"),
        ("fn a(x: int): int = x; fn a(x: int): int = x; v: stream = select i from s;", "cql-function", None),
        ("fn a(x: int, x: int): int = x; v: stream = select i from s;", "cql-function", None),
        ("fn a(x: int): int = a(x); v: stream = select a(i) as c from s;", "cql-function", "write it without that"),
        ("fn a(x: int): int = x; v: stream = select a(i, 2) as c from s;", "cql-function", None),
        ("fn a(x: int): int = i; v: stream = select a(i) as c from s;", "cql-function", None),
        ("fn a(x: int): int = x; v: stream = select a(k) as c from s;", "sql-function-operands", None),
        ("fn a(x: int): int = k; v: stream = select i from s;", None, None),
        ("fn a(x: int): string = x; v: stream = select a(i) as c from s;", "sql-function-operands", None),
        ("fn a(x: nope): int = x; v: stream = select a(i) as c from s;", "lang-unknown-type", None),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, code: str | None, help_line: str | None) -> None:
    if code is None:
        assert check(text).views  # what is not used is not looked at
        return
    found = [one for one in refused(text) if one.code == code]
    assert found
    if help_line is not None:
        assert found[0].help == help_line


def run(tmp_path: Path, *options: str, lang: str = "cql") -> tuple[int, str, str]:
    text = INPUTS + "param least = 1; v: stream = select k from s where i >= :least and k <> :other;"
    (tmp_path / f"q.{lang}").write_text(text)
    (tmp_path / "s.csv").write_text("ts,i,q,f,k\n1,1,,1.5,a\n2,2,,1.5,it's\n3,3,,1.5,c\n")
    out, err = io.StringIO(), io.StringIO()
    given = [
        "run",
        str(tmp_path / f"q.{lang}"),
        "--in",
        f"s={tmp_path / 's.csv'}",
        "--backend",
        "reference",
        "-q",
    ]
    status = main([*given, *options], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


def test_values_come_from_the_command(tmp_path: Path) -> None:
    assert run(tmp_path, "--param", "other=c")[1] == "ts,k\n1,a\n2,it's\n"
    assert run(tmp_path, "--param", "other=it's", "--param", "least=2")[1] == "ts,k\n3,c\n"


@pytest.mark.parametrize(
    ("least", "kept"),
    [(2, [3]), (CommandText("2"), [3]), (1.5, [2, 3]), ("2", "lang-operation-types"), (inf, "usage")],
)
def test_values_come_from_python(least: str | float | CommandText, kept: list[int] | str) -> None:
    """A text is a text there, whatever it looks like: only a command line has nothing else."""
    text = "s: {ts: int; i: int} stream by ts; v: stream = select i from s where i > :least;"
    if isinstance(kept, str):
        with pytest.raises(Rejected) as refused:
            river.compile(text, "cql", params={"least": least})
        assert [each.code for each in refused.value.diagnostics] == [kept]
        return
    results = river.compile(text, "cql", params={"least": least}).run(
        {"s": [{"ts": i, "i": i} for i in (1, 2, 3)]}
    )
    assert [row["i"] for row in results["v"].to_pylist()] == kept


@pytest.mark.parametrize(
    ("options", "lang", "code"),
    [
        ((), "cql", "cql-parameter"),
        (("--param", "a-b=3"), "cql", "usage"),
        (("--param", "a=3"), "river", "usage-option"),
    ],
)
def test_what_the_command_refuses(tmp_path: Path, options: tuple[str, ...], lang: str, code: str) -> None:
    status, _, err = run(tmp_path, *options, lang=lang)
    assert status != 0
    assert f"[{code}]" in err
