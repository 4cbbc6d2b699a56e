"""Scalar functions in Python: what a query with them gives is what it gives with the same functions as formulas."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from pathlib import Path

FORMULAS = """
fn plural(word: string): string = word || 's';
fn half(n: int): int = n / 2;
fn size(k: string): int? = nullif(length(k), 4);
"""
IN_PYTHON = """
fn plural(word: string): string = extern python 'words:plural';
fn half(n: int): int = extern python "words:half";
fn size(k: string): int? = extern python 'words:size';
"""
INPUT = "s: {ts: int; k: string; n: int; q: int?} stream by ts;\n"
QUERIES = """
told: stream = select plural(k) as many, n from s;
groups: relation
  = select plural(plural(k)) as many, count(*) as n, sum(case when n % 2 = 0 then half(n) else 0 end) as halves
    from s[range 3] group by plural(plural(k)) having size(max(k)) is not null or plural(min(k)) = 'inkss';
coming: stream
  = istream(select k, size(k) as size, half(q) as q, half(size(k) * 2) as again
    from s[range 2] where k <> 'cup' and (q is null or half(q + n + n) > 2));
pairs: relation
  = select x.k, plural(y.k || x.k) as both from s[rows 1] as x join s[range 2] as y on plural(x.k) = plural(y.k);
ended: stream = select window_end, max(half(n * 2)) as most from tumble(s, 4 seconds) group by window_end;
visits: relation
  = select k, window_end, sum(half(q)) as halves from session(s partition by k, 2 seconds) group by k, window_end;
alike: relation
  = select k from s[range 3] as a where exists (select * from s[range 5] as b where plural(b.k) = plural(a.k) and b.n <> a.n);
"""
ROWS = [
    {"ts": 1, "k": "pen", "n": 4, "q": None},
    {"ts": 2, "k": "inks", "n": 4, "q": 6},
    {"ts": 2, "k": "pen", "n": 3, "q": None},
    {"ts": 4, "k": "pen", "n": 7, "q": 6},
    {"ts": 9, "k": "cup", "n": 8, "q": None},
]


def half(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n // 2


FUNCTIONS: dict[str, Any] = {
    "words:plural": lambda word: word + "s",
    "words:half": half,
    "words:size": lambda k: None if len(k) == 4 else len(k),
}


def results(text: str, rows: list[dict[str, Any]] = ROWS, **options: Any) -> dict[str, Any]:
    program = river.compile(INPUT + text, "cql")
    found = program.run({"s": rows}, backend="reference", **options)
    return {name: list(found[name]) for name in program.outputs}


@pytest.mark.slow
def test_functions_in_python_are_as_formulas() -> None:
    """A call inside of a `case`, or behind a condition, is made for the rows that come to it: half of an odd number raises."""
    expected = results(FORMULAS + QUERIES)
    assert results(IN_PYTHON + QUERIES, externs=FUNCTIONS) == expected
    assert all(expected.values())


def test_machine_code_runs_beside_python() -> None:
    text = (
        IN_PYTHON
        + "v: relation = select plural(k) as many, sum(half(n * 2)) as n from s[range 2] group by plural(k);"
    )
    program = river.compile(INPUT + text, "cql")
    found = program.run({"s": ROWS}, externs=FUNCTIONS)
    assert list(found["v"]) == results(text, externs=FUNCTIONS)["v"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("fn plural(x: int): int = extern python 'a:b'; v: stream = select k from s;", "cql-function"),
        ("fn upper(x: int): int = extern python 'a:b'; v: stream = select k from s;", "cql-function"),
        ("fn f(x: int, x: int): int = extern python 'a:b'; v: stream = select k from s;", "cql-function"),
        ("fn f(x: int): int = extern python 'a-b'; v: stream = select k from s;", "syntax-extern"),
        ("fn f(x: int): int = extern python 'a'; v: stream = select k from s;", "syntax-extern"),
        ("v: stream = select plural(n) as x from s;", "sql-function-operands"),
        ("v: stream = select plural(k, k) as x from s;", "cql-function"),
        ("v: relation = select s.k from s left join s as t on plural(s.k) = t.k;", "cql-extern"),
        ("t: {x: int} stream by half(x); v: stream = select x from t;", "cql-extern"),
        (
            "aggregate a(x: int): int {init: {y: 0}; add: {y: half(x)}; value: y}; v: stream = select k from s;",
            "cql-extern",
        ),
        ("v: stream = select x from s, unnest(split(plural(k), ',')) as x;", "cql-extern"),
    ],
)
def test_what_is_refused(query: str, code: str) -> None:
    with pytest.raises(Rejected) as rejected:
        river.compile(INPUT + IN_PYTHON + query, "cql")
    assert code in {one.code for one in rejected.value.diagnostics}


def test_only_modules_that_the_command_names_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q.cql").write_text(
        INPUT + IN_PYTHON + "v: stream = select plural(k) as x, half(n) as n from s;"
    )
    (tmp_path / "s.csv").write_text("ts,k,n,q\n1,pen,4,\n2,ink,3,\n")
    (tmp_path / "words.py").write_text(
        "def plural(word):\n    return word + 's'\ndef half(n):\n    return n / 2\n"
    )
    monkeypatch.chdir(tmp_path)

    def command(*options: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        given = ["run", "q.cql", "--in", "s=s.csv", "--backend", "reference", "-q", *options]
        return main(given, io.StringIO(), out, err), out.getvalue(), err.getvalue()

    status, out, err = command()
    assert (status, out) == (1, "")
    assert "error[run-extern]" in err
    assert "add `--extern words`" in err
    status, out, err = command("--extern", "words")
    assert status == 1
    assert "error[trap-extern-failed]" in err
    assert "`words:half`: gave 2.0 for `half`, not `i64`" in err
