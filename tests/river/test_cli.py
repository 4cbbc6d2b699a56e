"""The command line, in process: what it prints, where, and with which status."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from river.cli import main

ROOT = Path(__file__).resolve().parents[2]
COUNT = """\
river 1;
input clicks: {ts: i64, page: string} by ts;
output counts: {page: string, n: i64};
var $n: map<string, i64> = {};
operator count(x: {ts: i64, page: string} by ts; $n: map<string, i64>) -> (out: {page: string, n: i64}) {
  on x(r) { with n = $n[r.page] else 0 { n = n + 1; emit out {page: r.page, n: n}; } }
}
(counts, $n) <- count(clicks, $n);
"""
INVERSE = """\
river 1;
input xs: {x: i64};
output ys: {y: i64};
operator inverse(a: {x: i64}) -> (b: {y: i64}) { on a(r) { emit b {y: div.trunc(100, r.x)}; } }
(ys) <- inverse(xs);
"""


def river(*argv, stdin=""):
    out, err = io.StringIO(), io.StringIO()
    status = main([str(a) for a in argv], io.StringIO(stdin), out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.fixture
def count(tmp_path):
    (tmp_path / "count.river").write_text(COUNT)
    (tmp_path / "clicks.csv").write_text("ts,page\n1,a\n2,b\n3,a\n")
    return tmp_path


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_run_prints_csv_where_there_is_no_terminal(count, backend):
    status, out, err = river(
        "run", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}", "--backend", backend
    )
    assert (status, out) == (0, "page,n\na,1\nb,1\na,2\n")
    assert "3 items" in err
    assert "counts: 3 rows" in err


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_outputs_go_to_files_by_suffix_and_come_back(count, suffix):
    target = count / f"counts.{suffix}"
    args = ("--in", f"clicks={count / 'clicks.csv'}", "--out", f"counts={target}", "-q")
    assert river("run", count / "count.river", *args) == (0, "", "")
    (count / "again.river").write_text(
        "river 1;\ninput counts: {page: string, n: i64};\noutput out: {page: string, n: i64};\n"
        "operator id(a: {page: string, n: i64}) -> (b: {page: string, n: i64}) { on a(r) { emit b r; } }\n"
        "(out) <- id(counts);\n"
    )
    status, out, _ = river("run", count / "again.river", "--in", f"counts={target}", "-q")
    assert (status, out) == (0, "page,n\na,1\nb,1\na,2\n")


@pytest.mark.slow
def test_limit_and_table(count):
    status, out, _ = river(
        "run",
        count / "count.river",
        "--in",
        f"clicks={count / 'clicks.csv'}",
        "--format",
        "table",
        "--limit",
        1,
    )
    assert status == 0
    assert out.splitlines()[0].split() == ["page", "n"]
    assert out.splitlines()[-1] == "... 2 more rows"


def test_standard_input(count):
    stdin = (count / "clicks.csv").read_text()
    args = ("--in", "clicks=-", "--in-format", "clicks=csv", "-q")
    assert river("run", count / "count.river", *args, stdin=stdin) == (0, "page,n\na,1\nb,1\na,2\n", "")


def test_check_compares_backends(count):
    args = ("check", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")
    status, out, _ = river(*args, "--backend", "multicore")
    assert status == 0
    assert out.splitlines()[0].startswith("reference  is the measure")
    assert out.splitlines()[1].startswith("multicore  agrees")


def test_check_says_which_backends_cannot_run_unless_they_are_named(count, monkeypatch):
    monkeypatch.setattr("river.plugins.backends", lambda: ("missing", "multicore", "reference"))
    args = ("check", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")
    status, out, _ = river(*args)
    assert status == 0
    assert "missing    not run: there is no backend `missing`" in out
    assert "multicore  agrees" in out
    assert river(*args, "--backend", "missing")[0] == 1


def test_check_leaves_out_what_takes_long_to_start_unless_it_is_named(count, monkeypatch):
    pytest.importorskip("pyspark")
    from river.driver import comparison

    monkeypatch.setattr(comparison, "observe", lambda *_: {})
    monkeypatch.setattr("river.plugins.backends", lambda: ("multicore", "reference", "spark"))
    args = ("check", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")

    def ran(*more):
        status, out, err = river(*args, *more)
        assert (status, err) == (0, "")
        return [line.split()[0] for line in out.splitlines() if "not run" not in line], out

    names, out = ran()
    assert names == ["reference", "multicore"]
    assert "spark      not run: it takes seconds to start; say `--backend spark`, or `--backend all`" in out
    assert ran("--backend", "all")[0] == ["reference", "multicore", "spark"]
    assert ran("--backend", "spark")[0] == ["reference", "spark"]
    assert ran("--spark-conf", "spark.ui.enabled=false")[0] == ["reference", "multicore", "spark"]


def test_check_compares_other_ways_to_run(count):
    args = ("check", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}", "--experiment")
    status, out, _ = river(*args, "scheduler=CT")
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["reference", "is"], ["multicore", "agrees"]]
    status, _, err = river(*args, "scheduler=FIFO")
    assert status == 1
    assert "`scheduler` cannot be `FIFO`" in err


def test_check_shows_differences(count, monkeypatch):
    from river.driver import comparison

    def observe(compiled, backend, data, options):
        return {"counts": ((1,), (2,)) if backend == "reference" else ((1,), (3,))}

    monkeypatch.setattr(comparison, "observe", observe)
    args = (
        "check",
        count / "count.river",
        "--in",
        f"clicks={count / 'clicks.csv'}",
        "--backend",
        "multicore",
    )
    status, out, err = river(*args)
    assert status == 1
    assert "`counts` differs from item 2 on: (2,) against (3,)" in out
    assert "error[check-differs]" in err


def test_compile_prints_what_it_can_read_again(count):
    status, out, _ = river("compile", count / "count.river")
    assert status == 0
    (count / "again.river").write_text(out)
    assert river("compile", count / "again.river") == (0, out, "")


def test_compile_to_a_file_is_atomic(count):
    target = count / "out.river"
    target.write_text("keep me")
    (count / "wrong.river").write_text(COUNT.replace("n + 1", "n + nothing"))
    assert river("compile", count / "wrong.river", "-o", target)[0] == 1
    assert target.read_text() == "keep me"
    assert river("compile", count / "count.river", "-o", target)[0] == 0
    assert target.read_text().startswith("river 1;")


def test_a_bad_row_stops_names_its_place_and_leaves_the_old_output(count):
    (count / "clicks.csv").write_text("ts,page\n1,a\nx,b\n")
    target = count / "out.csv"
    target.write_text("old")
    args = ("--in", f"clicks={count / 'clicks.csv'}", "--out", f"counts={target}")
    status, _, err = river("run", count / "count.river", *args)
    assert status == 1
    assert "clicks.csv:3:1: error[data-type]" in err
    assert target.read_text() == "old"
    assert sorted(p.name for p in count.iterdir()) == ["clicks.csv", "count.river", "out.csv"]


def test_bad_rows_can_be_skipped_or_kept_and_are_counted(count):
    (count / "clicks.csv").write_text("ts,page\n1,a\nx,b\n3,a\n")
    args = ("run", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")
    status, out, err = river(*args, "--on-error", "skip")
    assert (status, out) == (0, "page,n\na,1\na,2\n")
    assert "warning[data-skipped]: input `clicks`: 1 row skipped" in err
    letters = count / "bad.jsonl"
    assert river(*args, "--on-error", f"dead-letter={letters}")[0] == 0
    assert json.loads(letters.read_text())["line"] == 3


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_a_trap_names_the_place_the_reason_and_the_item(tmp_path, backend):
    (tmp_path / "inverse.river").write_text(INVERSE)
    (tmp_path / "xs.csv").write_text("x\n5\n0\n2\n")
    args = ("run", tmp_path / "inverse.river", "--in", f"xs={tmp_path / 'xs.csv'}", "--backend", backend)
    status, _, err = river(*args)
    assert status == 1
    assert "inverse.river:4:71: error[trap-division-by-zero]" in err
    assert 'while handling the item {"x":0}' in err


@pytest.mark.parametrize("backend", ["multicore", "reference"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_the_item_of_a_trap_shows_nothing_that_is_not_in_the_data(tmp_path, backend, suffix):
    rows = {"csv": "s,x,y\na,5,2\naaaa,0,3\n", "jsonl": '{"s":"a","x":5,"y":2}\n{"s":"aaaa","x":0,"y":3}\n'}
    (tmp_path / "inverse.river").write_text(INVERSE.replace("{x: i64}", "{s: string, x: i64, y: i64}"))
    (tmp_path / f"xs.{suffix}").write_text(rows[suffix])
    args = (
        "run",
        tmp_path / "inverse.river",
        "--in",
        f"xs={tmp_path / f'xs.{suffix}'}",
        "--backend",
        backend,
    )
    status, _, err = river(*args)
    assert status == 1
    (note,) = [line for line in err.splitlines() if "while handling" in line]
    whole = ': note: while handling the item {"s":"aaaa","x":0,"y":3}'
    parts = ': note: while handling the item {"x":0}; fields that nobody reads are not shown'
    assert note.replace("  = ", ": ") in ((whole, parts) if backend == "multicore" else (whole,))


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_items_of_stateless_operators_that_trap_can_be_skipped(tmp_path, backend):
    (tmp_path / "inverse.river").write_text(INVERSE)
    (tmp_path / "xs.csv").write_text("x\n5\n0\n2\n")
    args = ("run", tmp_path / "inverse.river", "--in", f"xs={tmp_path / 'xs.csv'}", "--backend", backend)
    status, out, err = river(*args, "--on-error", "skip")
    assert (status, out) == (0, "y\n20\n50\n")
    assert "warning[run-skipped]: 1 item skipped because an operator trapped" in err


TWO = """
s: {ts: int; x: int; k: string} stream by ts;
a: relation = select x from s[now];
b: relation = select k, sum(x) as x from s[rows 2] group by k;
"""


@pytest.fixture
def two(tmp_path):
    (tmp_path / "two.cql").write_text(TWO)
    (tmp_path / "s.csv").write_text("ts,x,k\n1,9223372036854775807,k\n")
    return tmp_path, ("run", tmp_path / "two.cql", "--in", f"s={tmp_path / 's.csv'}")


@pytest.mark.slow
def test_several_outputs_stand_under_their_names(two):
    _, args = two
    _, out, _ = river(*args)
    assert out == ("# a\nts,op,x\n1,+,9223372036854775807\n# b\nts,op,k,x\n1,+,k,9223372036854775807\n")


def test_what_is_no_text_stands_alone_on_standard_output(two):
    _, args = two
    status, out, err = river(*args, "--format", "parquet")
    assert (status, out) == (1, "")
    assert "error[data-format]: `parquet` on standard output can hold one output only" in err
    status, out, err = river(*args, "--format", "foo")
    assert (status, out) == (1, "")
    assert "there is no format `foo`" in err


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_changes_are_not_skipped_because_later_ones_build_on_them(two, backend):
    folder, args = two
    (folder / "two.cql").write_text(TWO + "c: relation = select x + 1 as y from s[now];")
    status, _, err = river(*args, "--backend", backend, "--on-error", "skip")
    assert status == 1
    assert "two.cql:5:22: error[trap-overflow]" in err


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_a_sum_that_does_not_fit_names_its_place(two, backend):
    folder, args = two
    (folder / "s.csv").write_text("ts,x,k\n1,9223372036854775807,k\n2,1,k\n")
    status, _, err = river(*args, "--backend", backend)
    assert status == 1
    assert "two.cql:4:25: error[trap-overflow]" in err


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_a_trap_in_code_of_the_frontend_names_the_declaration(tmp_path, backend):
    (tmp_path / "q.cql").write_text(
        "r: {ts: int; x: int} relation by ts;\nq: relation = select distinct x from r;\n"
    )
    (tmp_path / "r.csv").write_text("ts,op,x\n1,+,1\n2,-,2\n")
    status, _, err = river("run", tmp_path / "q.cql", "--in", f"r={tmp_path / 'r.csv'}", "--backend", backend)
    assert status == 1
    assert "q.cql:1:1: error[trap-remove-missing]" in err
    assert 'while handling the item {"ts":2,"op":"-","x":2}' in err


def test_help_version_and_usage():
    assert "river run delays.cql" in river("--help")[1] or river("--help")[0] == 0
    assert river("version")[1].startswith("river ")
    status, _, err = river("run")
    assert status == 1
    assert "error[usage]" in err
    status, _, err = river("run", "x.river", "--in", "nonsense")
    assert status == 1
    assert "NAME=FILE" in err or "missing-file" in err


def test_a_word_that_is_no_command(tmp_path):
    (tmp_path / "my q.cql").write_text(COUNT)
    told = {
        "rnu": "did you mean `run`?",
        str(tmp_path / "my q.cql"): f"`river run '{tmp_path}/my q.cql'` runs a program",
        "x" * 5000: "the commands are check, compile, explain, graph,",
    }
    for word, help_ in told.items():
        status, _, err = river(word)
        assert status == 1
        assert err.startswith(f"error[usage]: there is no command `{word}`\n  = help: {help_}")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["compile", "nowhere.river"], "missing-file"),
        (["compile", "q.xyz"], "missing-file"),
        (["compile", "-"], "unknown-language"),
        (["compile", "COUNT", "--lang", "cqll"], "unknown-language"),
        (["run", "COUNT"], "missing-input"),
        (["run", "COUNT", "--in", "click=CLICKS"], "unknown-input"),
        (["run", "COUNT", "--in", "clicks=CLICKS", "--out", "count=x.csv"], "unknown-output"),
        (["run", "COUNT", "--in", "clicks=CLICKS", "--backend", "multicor"], "unknown-backend"),
        (["run", "COUNT", "--in", "clicks=nowhere.csv"], "data-missing-file"),
        (["run", "COUNT", "--in", "clicks=-"], "data-format"),
        (["run", "COUNT", "--in", "clicks=CLICKS", "--extern", "no_such_module"], "extern-module"),
        (["run", "COUNT", "--in", "clicks=CLICKS", "--extern", "./shouting.py"], "extern-module"),
        (["run", "COUNT", "--in", "clicks=CLICKS", "--on-error", "ignore"], "data-on-error"),
        (["run", "-", "--lang", "river", "--in", "clicks=-", "--in-format", "clicks=csv"], "usage"),
    ],
)
def test_mistakes_of_arguments(count, argv, code):
    places = {"COUNT": str(count / "count.river"), "clicks=CLICKS": f"clicks={count / 'clicks.csv'}"}
    argv = [places.get(a, a.replace("CLICKS", str(count / "clicks.csv"))) for a in argv]
    status, out, err = river(*argv)
    assert (status, out) == (1, "")
    assert f"error[{code}]" in err
    assert "Traceback" not in err


def test_a_module_that_fails_is_refused(count, tmp_path, monkeypatch):
    (tmp_path / "failing_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    status, _, err = river("run", count / "count.river", "--extern", "failing_module")
    assert status == 1
    assert "cannot import module `failing_module`: ZeroDivisionError: division by zero" in err


def test_a_byte_order_mark_is_no_part_of_a_program(count):
    text = (count / "count.river").read_text()
    (count / "marked.river").write_text("\ufeff" + text)
    assert river("compile", count / "marked.river")[0] == 0
    assert river("compile", "-", "--lang", "river", stdin="\ufeff" + text)[0] == 0


def test_a_text_that_is_no_text(tmp_path):
    (tmp_path / "q.river").write_bytes(b"river 1;\xff")
    status, _, err = river("compile", tmp_path / "q.river")
    assert status == 1
    assert "error[not-text]" in err
    (tmp_path / "q.river").write_text("river 1;", encoding="utf-16")
    status, _, err = river("compile", tmp_path / "q.river")
    assert status == 1
    assert "q.river` is UTF-16, not UTF-8 text (byte 0)\n  = help: save it as UTF-8\n" in err


def test_a_program_that_is_not_deterministic_is_not_compared(tmp_path):
    (tmp_path / "race.river").write_text(
        "river 1;\ninput a: {x: i64};\ninput b: {x: i64};\noutput o: {x: i64};\n"
        "operator join(p: {x: i64}, q: {x: i64}) -> (o: {x: i64}) { on p(r) { emit o r; } on q(r) { emit o r; } }\n"
        "(o) <- join(a, b);\n"
    )
    (tmp_path / "a.csv").write_text("x\n1\n")
    data = tmp_path / "a.csv"
    status, _, err = river("check", tmp_path / "race.river", "--in", f"a={data}", "--in", f"b={data}")
    assert status == 1
    assert "error[check-nondeterministic]" in err


def test_internal_errors_ask_for_a_report(count, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("river.driver.execute", broken)
    status, _, err = river("run", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")
    assert status == 2
    assert "internal error: ZeroDivisionError: oops" in err
    assert "report" in err


def test_interrupt(count, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("river.driver.execute", interrupted)
    assert river("run", count / "count.river", "--in", f"clicks={count / 'clicks.csv'}")[0] == 130


def test_explain_tells_how_operators_run_as_machine_code(tmp_path):
    pytest.importorskip("llvmlite")
    (tmp_path / "f.str").write_text(
        "void->void pipeline Main { add Count; add Twice; add Sum; add Show; }\n"
        "void->float filter Count { float x; work push 1 { push(x); x = x + 1; } }\n"
        "float->float filter Twice { work pop 1 push 1 { push(pop() * 2); } }\n"
        "float->float filter Sum { float s; work pop 1 push 1 { s = s + pop(); push(s); } }\n"
        "float->void filter Show { work pop 1 { println(pop()); } }\n"
    )
    status, out, _ = river("explain", "--native", "--no-optimize", tmp_path / "f.str")
    assert status == 0
    report = out[out.index("native:") :]
    assert report.startswith("native: machine code runs all 4 operators\n\n  Count#0\n")
    side_by_side = "    machine code, many firings side by side in vectors\n    operations in place: *\n"
    assert f"  Twice#1\n{side_by_side}" in report
    assert "  Sum#2\n    machine code, ONE FIRING AFTER THE OTHER, many times slower: state `$s" in report
    assert "f.str:4:" in report


CALLS = """river 1;
input x: i64;
output y: i64;
operator f(x: i64) -> (y: i64) = extern python "told_here:f";
(y) <- f(x);
"""


def test_each_command_takes_the_modules_of_its_folder(tmp_path, monkeypatch):
    """Those that they import, too, though all commands are of one process."""
    for name, number in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "call.river").write_text(CALLS)
        (folder / "x.csv").write_text("x\n7\n")
        (folder / "told_by.py").write_text(f"WHAT = {number}\n")
        told = f"import told_by\ndef f(port, item, variables):\n    return [(0, {number}0 + told_by.WHAT)]\n"
        (folder / "told_here.py").write_text(told)
    asked = ("run", "call.river", "--in", "x=x.csv", "--extern", "told_here", "-q", "--format", "csv")
    for name, expected in (("one", 11), ("two", 22), ("two", 22), ("one", 11)):
        monkeypatch.chdir(tmp_path / name)
        status, out, err = river(*asked)
        assert (status, out.split()[-1], err) == (0, str(expected), "")
