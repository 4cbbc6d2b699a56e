"""Sawzall scripts run as they are: each in `tests/programs/sawzall` asserts what must hold, and ends no record early."""

from __future__ import annotations

import gzip
import io
import os
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import river
from river.cli import main
from river.diagnostics import Rejected
from river.driver import compile_source
from river.il.parse import parse
from river.il.pretty import pretty
from river.source import Source
from river.testing import seeds

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "sawzall"
BACKENDS = ["reference", "multicore"]


def shown(*args: str, text: str = "") -> tuple[int, str, str]:
    """The status of a command, and what it prints on standard output and on standard error."""
    out, err = io.StringIO(), io.StringIO()
    status = main(["run", *args, "--quiet"], io.StringIO(text), out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.mark.some(10)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.szl")))
def test_scripts_hold(name: str, backend: str) -> None:
    status, _, err = shown(str(PROGRAMS / name), "--backend", backend)
    assert (status, [line for line in err.splitlines() if "run-undefined" in line]) == (0, [])


@pytest.mark.some(8)
@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.szl")))
def test_the_programs_of_scripts_are_read_from_what_is_printed_of_them(name: str) -> None:
    program = compile_source(Source(name, (PROGRAMS / name).read_text("utf-8"))).program
    assert parse(Source("<il>", pretty(program))) == program


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


@pytest.mark.parametrize("name", ["printed.txt", "printed"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_printed_goes_to_a_file(backend: str, name: str, tmp_path: Path) -> None:
    script, target = tmp_path / "prints.szl", tmp_path / name
    script.write_text('emit stdout <- "one"; emit stdout <- "two\\n"; emit stderr <- "not here";')
    args = (str(script), "--backend", backend, "--out", f"stdout={target}")
    assert shown(*args) == (0, "", "not here\n")
    assert target.read_text() == "one\ntwo\n\n"


def test_debug_prints_without_a_line_end(tmp_path: Path) -> None:
    script = tmp_path / "debug.szl"
    script.write_text('DEBUG("print", "%d-%s", 3, string(input_key)); emit stdout <- "x";')
    assert shown(str(script), "--backend", "reference")[:2] == (0, "3-x\n")


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
    doubtful = [d.code for d in compiled.warnings if d.code not in ("sawzall-base", "sawzall-hidden")]
    return [*doubtful, *([] if undefined is None else undefined.to_pylist())]


TOGETHER = 40
"""How many small scripts are one program, each a block of it: the first that fails has all of them tried alone."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small.txt", "pairs.txt"])
def test_small_scripts_hold(name: str) -> None:
    scripts = small(name)
    for i in range(0, len(scripts), TOGETHER):
        some = scripts[i : i + TOGETHER]
        if outcome("".join(f"{{\n{text}\n}}\n" for text in some), "reference") != []:
            found = [(text, outcome(text, "reference")) for text in some]
            assert [(text, why) for text, why in found if why != []] == []
            pytest.fail(f"only together: {some}")
    drawn = seeds.chance(f"small scripts {name}", "native").sample(scripts, 2)
    cases = [(text, backend) for text in drawn for backend in BACKENDS]
    assert [case for case in cases if outcome(*case) != []] == []


def test_a_small_script_that_ends_early_or_fails_is_found() -> None:
    block = "{ assert(true); }\n{ %s }\n{ assert(true); }"
    assert outcome(block % "", "reference") == []
    assert outcome(block % "a: array of int = {1}; a[1] = 2;", "reference") == [
        {"at": "2:26", "why": "`a[1]`: index out of range"}
    ]
    assert outcome(
        block % 'a: array of string = {}; r: string = ""; saw(a[1], `x`, rest r);', "reference"
    ) == [{"at": "2:48", "why": "`a[1]`: index out of range"}]
    assert "trap-assert" in str(outcome(block % "assert(false);", "reference"))


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


SENT = r"""
type Lines = table collection of s: string file("/dev/stdout") format("%s|\n", s);
out: Lines;
static err: table collection of s: string file("/dev/stderr") format("!%s\n", s);
type Count = table sum[k: string] of n: float;
count: Count;
named: table collection[k: string] of F: { a: int, b: string } file("x/%s.txt", k) format("%d-%s\n", F.a, F.b);
raw: table collection[n: int] of bytes file("raw%d", n);
best: table maximum(2)[k: string] of v: int weight w: int format("<%04d>", v);
lists: table collection of { a: array of string, m: map [string] of int };
emit out <- "hello";
emit err <- "oops";
emit count["a"] <- 0.5;
emit named["one"] <- { 1, "z" };
emit named["two"] <- { 2, "y" };
emit named["one"] <- { 3, "x" };
emit raw[7] <- B"ab";
emit best["k"] <- 7 weight 1;
emit best["k"] <- 8 weight 2;
emit lists <- { {"a b"}, {:} };
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_say_where_their_values_go(backend: str, tmp_path: Path) -> None:
    script, folder = tmp_path / "sent.szl", tmp_path / "out"
    script.write_text(SENT)
    status, out, err = shown(str(script), "--backend", backend)
    assert (status, out) == (1, "")
    assert "run-out-dir" in err
    args = (str(script), "--backend", backend, "--format", "entries", "--out-dir", str(folder))
    status, out, err = shown(*args)
    assert (status, err) == (0, "!oops\n")
    lines = out.splitlines()
    assert lines[0] == "hello|"
    assert lines[1:] == [
        "lists[] = { a b }, {:}", "count[a] = 0.5", "best[k] = <0008>, 2", "best[k] = <0007>, 1"
    ]  # fmt: skip
    assert {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()} == {
        "x/one.txt": "1-z\n3-x\n", "x/two.txt": "2-y\n", "raw7": "ab",
    }  # fmt: skip


ENTRIES = """
a: table sum[c: string][{ h: int, tz: string }] of { n: int, rev: float };
emit a["c"][{ 1, "utc" }] <- { 2, 0.5 };
l: table collection[t: time] of { string, array of { int, { string, bool } } };
emit l[5T] <- { "x y", { { 1, { "q", true } }, { 2, { "", false } } } };
m: table collection of map [string] of array of float;
emit m <- { "k": { 1.0, 0.1 + 0.2 }, "e": {} };
b: table collection[fingerprint] of bytes;
emit b[0x10P] <- B"r\\xe9w";
"""


def test_entries_are_lines_as_szl_writes_them(tmp_path: Path) -> None:
    script = tmp_path / "entries.szl"
    script.write_text(ENTRIES)
    status, out, err = shown(str(script), "--backend", "reference", "--format", "entries")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "l[5] = x y, { { 1, q, true }, { 2, , false } }", "m[] = { k: { 1, 0.3 }, e: {  } }", "b[16] = r\ufffdw",
        "a[c, 1, utc] = 2, 0.5",
    ]  # fmt: skip


def test_entries_of_a_top_have_the_deviation_of_each_number_of_a_weight(tmp_path: Path) -> None:
    script = tmp_path / "tops.szl"
    script.write_text(
        't: table top(2) of string weight n: int; emit t <- "a" weight 3; emit t <- "a" weight 1;'
        "u: table top(1)[k: bool] of int weight { int, float }; emit u[true] <- 5 weight { 1, 0.5 };"
    )
    status, out, err = shown(str(script), "--backend", "reference", "--format", "entries")
    assert (status, err, out) == (0, "", "t[] = a, 4, 0\nu[true] = 5, 1, 0.5, 0, 0\n")


WEIGHTS = """
t: table top(1)[k: string] of s: string weight w: { n: int, x: { float, uint } };
emit t["k"] <- "a" weight { 1, { 2.0, 3U } };
emit t["k"] <- "b" weight { 2, { 1.0, 1U } };
emit t["k"] <- "a" weight { 1, { 0.5, 4U } };
d: table distinctsample(9) of s: string weight w: time;
emit d <- "x" weight 3T;
emit d <- "x" weight 4T;
h: table inversehistogram(9) of s: int weight w: { n: int, at: time };
emit h <- 1 weight { 1, 2T };
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_are_tuples_and_times(backend: str) -> None:
    def at(micros: int) -> datetime:
        return datetime(1970, 1, 1, microsecond=micros, tzinfo=UTC)

    found = river.compile(WEIGHTS, lang="sawzall").run({}, backend=backend)
    assert found["t"].to_pylist() == [{"k": "k", "s": "a", "w": {"n": 2, "x": {"_0": 2.5, "_1": 7}}}]
    assert found["d"].to_pylist() == [{"s": "x", "w": at(7)}]
    assert found["h"].to_pylist() == [
        {"w": {"n": 0, "at": at(0)}, "fraction": 1.0}, {"w": {"n": 1, "at": at(2)}, "fraction": 1.0}
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["../escaped", "/tmp/elsewhere.txt", "a/../../escaped", "."])  # noqa: S108 - refused
def test_no_file_is_written_outside_of_the_folder(place: str, tmp_path: Path) -> None:
    script = tmp_path / "escapes.szl"
    script.write_text(f'f: table collection[n: string] of bytes file("%s", n);\nemit f["{place}"] <- B"x";\n')
    status, _, err = shown(str(script), "--backend", "reference", "--out-dir", str(tmp_path / "out"))
    assert status == 1
    assert "data-escape" in err
    assert not (tmp_path / "escaped").exists()


def test_commands_run_if_that_is_allowed(tmp_path: Path) -> None:
    script = tmp_path / "commands.szl"
    script.write_text(
        'p: table collection[n: int] of s: string proc("tr a-z A-Z; exit %d", n) format("%s\\n", s);\n'
        'emit p[0] <- "one"; emit p[0] <- "two";\n'
    )
    args = (str(script), "--backend", "reference")
    status, out, err = shown(*args)
    assert (status, out) == (1, "")
    assert "run-proc" in err
    status, out, err = shown(*args, "--allow-proc")
    assert (status, out, err) == (0, "ONE\nTWO\n", "")
    script.write_text(script.read_text().replace("p[0]", "p[3]"))
    status, out, err = shown(*args, "--allow-proc")
    assert status == 1
    assert "run-command" in err


def test_what_is_undefined_in_a_file_that_is_included_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "part.szl"
    part.write_text("say: function(x: int) {\n  emit stdout <- string(10 / x);\n};\n")
    script = tmp_path / "main.szl"
    script.write_text('include "parts/part.szl"\na: array of int = {0};\nsay(a[0]);\n')
    _, _, err = shown(str(script), "--backend", "reference")
    assert err.startswith("parts/part.szl:2:25: warning[run-undefined]: `10 / x`: division by zero")
    script.write_text(script.read_text() + "say(a[1]);")
    part.write_text("say: function(x: int) {};\n")
    assert shown(str(script), "--backend", "reference")[2].startswith("4:5: warning[run-undefined]")


def test_names_of_fields_of_tables_need_not_differ(tmp_path: Path) -> None:
    script = tmp_path / "names.szl"
    script.write_text(
        "a: table sum[n: int][m: int] of { n: int };\n"
        "b: table maximum(3)[x: int][x: int] of x: int weight x: int;\n"
        "c: table top(1)[value: int][key2: int][int] of int weight int;\n"
        "emit a[1][2] <- { 3 };\nemit b[1][2] <- 3 weight 4;\nemit c[1][2][3] <- 4 weight 5;\n"
    )
    _, out, err = shown(str(script), "--backend", "reference", "--format", "csv")
    shapes = (
        "# a|key0,m,n|1,2,3|# b|x,key1,value,weight|1,2,3,4|# c|value,key2,key2_1,value_1,weight|1,2,3,4,5|"
    )
    assert (out, err) == (shapes.replace("|", "\n"), "")


def test_files_are_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "twice.szl").write_text(
        'include "once.szl"\ntwice: function(x: int): int { return 2 * once(x); };\n'
    )
    (tmp_path / "parts" / "once.szl").write_text("once: function(x: int): int { return x; };\n")
    script = tmp_path / "main.szl"
    script.write_text(
        'include "parts/twice.szl";\ninclude `parts/once.szl`\nemit stdout <- string(twice(4));\n'
    )
    compiled = river.load(str(script))
    assert [(d.code, d.span and d.span.text) for d in compiled.warnings] == [
        ("sawzall-included", "include `parts/once.szl`")
    ]
    assert shown(str(script), "--backend", "reference")[:2] == (0, "8\n")
    assert shown(str(script), "--backend", "reference")[:2] == (0, "8\n")
    (tmp_path / "parts" / "once.szl").write_text("once: function(x: int): int { return x + 1; };\n")
    assert shown(str(script), "--backend", "reference")[:2] == (0, "10\n"), "what is kept depends on it"
    (tmp_path / "parts" / "once.szl").write_text("once: function(x: int): int {\n  return y; };\n")
    status, _, err = shown(str(script), "--backend", "reference")
    assert status == 1
    assert f"{tmp_path}/parts/once.szl:2:10: error[sawzall-unknown-name]" in err
    inner = tmp_path / "parts" / "inner.szl"
    inner.write_text('include "../main.szl"\n')
    assert "sawzall-include" in shown(str(inner), "--backend", "reference")[2]


def test_the_command_line_says_how_a_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    script = tmp_path / "options.szl"
    script.write_text(
        "a: array of int = {}; emit stdout <- string(a[0]);\n"
        "emit stdout <- string(time(0)); emit stdout <- string(nrand(1000));\n"
    )
    args = (str(script), "--backend", "reference")
    assert shown(*args)[:2] == (1, "")
    status, out, err = shown(*args, "--undefined", "skip", "--zone", "America/Los_Angeles")
    assert (status, err) == (0, "")
    assert out.startswith("Wed Dec 31 16:00:00 PST 1969\n")
    drawn = {shown(*args, "--undefined", "skip", "--zone", "UTC", "--seed", str(n))[1] for n in (1, 1, 2)}
    assert len(drawn) == 2
    assert "there is no such zone" in shown(*args, "--zone", "Middle/Earth")[2]
    query = tmp_path / "query.cql"
    query.write_text("x")
    for flags in (("--undefined", "skip"), ("--zone", "UTC"), ("--env", "TZ"), ("--load", str(query))):
        assert f"programs in `cql` do not take the option `{flags[0][2:]}`" in shown(str(query), *flags)[2]
    for line in ("undefined go", "seed x", "speed 1", 'env "A" !', "load A YQ==", 'load "A'):
        script.write_text(f"x := 1;\n#river {line}\n")
        assert "2:1: error[sawzall-option]" in shown(*args)[2]


def test_the_zone_of_a_program_is_that_of_its_text_else_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    text = """emit stdout <- format("%d %d %s", hourof(time(0)), hourof(T"Jan 1 12:00:00 1970", "UTC"), string(addday(time(0))));
    where := "Asia/Tokyo"; emit stdout <- string(time(0), where) + string({time(0)});"""

    def printed(text: str, **options: Any) -> list[str]:
        rows = river.compile(text, "sawzall", **options).run({"input": ["x"]})["stdout"].to_pylist()
        return [line for row in rows for line in row["value"].splitlines()]

    there = [
        "16 20 Thu Jan  1 16:00:00 PST 1970",
        'Thu Jan  1 09:00:00 JST 1970{ "Wed Dec 31 16:00:00 PST 1969" }',
    ]
    tokyo = [
        "9 3 Fri Jan  2 09:00:00 JST 1970",
        'Thu Jan  1 09:00:00 JST 1970{ "Thu Jan  1 09:00:00 JST 1970" }',
    ]
    assert printed(text) == there
    assert printed(text, zone="Asia/Tokyo") == tokyo
    assert printed(f"{text}\n#river zone Asia/Tokyo") == tokyo
    assert os.environ["TZ"] == "America/Los_Angeles"
    with pytest.raises(Rejected) as refused:
        river.compile(text, "sawzall", zone="Middle/Earth")
    assert "there is no such zone" in refused.value.diagnostics[0].message


@pytest.mark.parametrize("command", ["check", "explain", "graph", "compile", "opt"])
def test_all_commands_are_told_how_a_script_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Else they would speak of another program than the one that runs: here, of one with an undefined value."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("PLACE", "here")
    script = tmp_path / "told.szl"
    script.write_text('emit stdout <- getenv("PLACE") + string(nrand(10)) + string(time(0));\n')
    said = ("--undefined", "skip", "--zone", "Asia/Tokyo", "--env", "PLACE")
    seeded = ("--seed", "7") if command == "check" else ()
    out, err = io.StringIO(), io.StringIO()
    assert main([command, str(script), *said, *seeded], io.StringIO(), out, err) == 0
    assert "sawzall" not in err.getvalue()
    main([command, str(script), *seeded], io.StringIO(), out, err)
    assert "sawzall-outside" in err.getvalue()


def test_a_script_asks_for_what_the_command_line_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", 'a "b"\nc')
    monkeypatch.delenv("NOTHING", raising=False)
    script, data = tmp_path / "asks.szl", tmp_path / "data.bin"
    data.write_bytes(b"\x00\xff\n")
    script.write_text(
        f'emit stdout <- format("%b %b %b", def(getenv("PLACE")), def(getenv("NOTHING")), def(load("{data}")));\n'
        f'emit stdout <- getenv("PLACE") + string(load("{data}"), "hex");\n'
    )
    args = (str(script), "--backend", "reference", "--undefined", "skip")
    assert shown(*args)[1] == "false false false\n"
    _, out, err = shown(*args, "--env", "PLACE", "--env", "NOTHING", "--load", str(data))
    assert out == 'true false true\na "b"\nc00ff0a\n'
    assert [line.split(": ")[1] for line in err.splitlines() if "warning" in line] == [
        "warning[sawzall-outside]"
    ]
    data.write_bytes(b"x")
    assert shown(*args, "--env", "PLACE", "--load", str(data))[1].endswith("c78\n")
    assert "cannot be loaded: [Errno 2]" in shown(*args, "--load", str(tmp_path / "none"))[2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_undefined_static_value_ends_the_run_at_its_start(backend: str) -> None:
    text = 'n: int = 0; emit stdout <- "x"; static a: array of int = {1};\nstatic b := a[3];'
    with pytest.raises(Rejected) as found:
        river.compile(text, lang="sawzall").run({}, backend=backend)
    assert [(d.span and d.span.source.position(d.span.start)[0]) for d in found.value.diagnostics] == [2]


SHAPES = """syntax = "proto2";
package shapes;
message Point { required int32 x = 1; optional sint32 y = 2 [default = -7]; }
"""
SHOP = r"""// Orders.
syntax = "proto2";
package shop;
import "parts/shapes.proto";
option java_package = "x";
/* message Not { } */
message Order {
  enum State { NEW = 0; PAID = 1; LOST = -1; }
  message Line { required string what = 1; optional double price = 2 [default = 1.5, deprecated = true]; }
  repeated Line line = 1;
  optional State state = 2 [default = PAID];
  optional Customer customer = 3;
  optional shapes.Point at = 4;
  oneof how { bool fast = 5; bytes note = 6 [default = "a\001"]; }
  map<string, Line> by = 7;
  repeated uint32 many = 8 [packed = true];
  optional group Extra = 9 { optional fixed64 f = 1; }
  optional string type = 10 [default = "no\"ne"];
  reserved 100 to 200;
  extensions 1000 to max;
}
message Customer { optional .shop.Kind kind = 1; optional string name = 2; }
enum Kind { GOOD = 0; BAD = 0x5; }
service S { rpc F(Order) returns (Order) { option x = 1; } }
"""
BUYS = r"""
proto "shop.proto"
proto `shop.proto`;
o: Order = B"";
assert(o.state == Order.PAID && o.customer.name == "" && o.at.y == -7 && o.note == B"a\x01" && o.type == "no\"ne");
o.line = { { "book", 3.5 } };
o.customer.kind = BAD;
o.at = { 1, 2 };
o.many = { 1U, 300U };
o.extra.f = 3U;
q: shop.Order = bytes(o);
assert(q == o && q.line[0].what == "book");
wire: string = "0a0f0a04626f6f6b110000000000000c40" + "1a020805" + "220408011004" + "4001" + "40ac02" + "4b0903000000000000004c";
assert(string(bytes(q), "hex") == wire);
l: Order.Line = { "x", 1.0 };
o.by = o.by + { { "k", l } };
p: shapes.Point = o.at;
assert(Order.State_names[o.state] + Kind.Kind_names[Kind.BAD] + shop.Order.State_names[shop.Order.LOST] == "PAIDBADLOST");
e: shop.Order.Extra = o.extra;
k: Kind.Kind = shop.Kind.GOOD;
assert(e.f == 3U && k == GOOD);
"""


@pytest.mark.slow
def test_declarations_of_protocol_buffers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "parts").mkdir()
    shapes, shop, script = tmp_path / "parts" / "shapes.proto", tmp_path / "shop.proto", tmp_path / "buys.szl"
    shapes.write_text(SHAPES)
    shop.write_text(SHOP)
    script.write_text(BUYS)
    status, _, err = shown(str(script), "--backend", "reference")
    assert status == 0, err
    assert err.count("sawzall-included") == 1
    shapes.write_text(SHAPES.replace("-7", "-8"))
    assert shown(str(script), "--backend", "reference")[0] == 1, "what is kept depends on it"
    for wrong, why in (
        ("message M { optional N n = 1; }", "2:22: error[sawzall-proto]: unknown type `N`"),
        ("message M { optional int32 n = x; }", "2:32: error[sawzall-proto]: expected a whole number"),
        ("message M {", "3:1: error[sawzall-proto]: expected a name, found the end"),
        ("message M { optional int32 n = 0; }", "2:22: error[sawzall-proto]"),
        ('import "../../etc/passwd";', "2:8: error[sawzall-include]"),
        ("message M { optional int32 a = 1; optional int32 b = 1; }", "2:44: error[sawzall-tag]"),
    ):
        shop.write_text(f"\n{wrong}\n")
        script.write_text('proto "shop.proto"\n')
        status, _, err = shown(str(script), "--backend", "reference")
        assert (status, why in err) == (1, True), err


MONEY = """syntax = "proto2";
package acme.common;
message Money { optional string currency = 1 [default = "USD"]; optional sint64 micros = 2; }
"""
SALES = """
package acme.log;
import public "money.proto";
message Sale {
  enum Kind { option allow_alias = true; NONE = 0; SOLD = 2; BOUGHT = 2; }
  message Part { enum Kind { NONE = 7; SOLD = 8; } optional Kind kind = 1 [default = SOLD]; optional common.Money paid = 2; }
  optional acme.common.Money total = 1;
  optional Kind kind = 2 [default = SOLD];
  repeated Part part = 3;
}
"""


def test_packages_whose_names_begin_alike_and_values_of_several_enumerations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    money, sales, script = tmp_path / "money.proto", tmp_path / "sales.proto", tmp_path / "sales.szl"
    money.write_text(MONEY)
    sales.write_text(SALES)
    script.write_text(r"""
        proto "sales.proto"
        s: acme.log.Sale = X"0a050a034555521a001a020807";
        paid: acme.common.Money = s.part[0].paid;
        emit stdout <- format("%v %s %s", s, paid.currency, Sale.Kind_names[s.kind]);
    """)
    status, out, err = shown(str(script), "--backend", "reference")
    assert (status, out) == (
        0,
        '{ { "EUR", 0 }, 2, { { 8, { "USD", 0 } }, { 7, { "USD", 0 } } } } USD SOLD\n',
    ), err
    sales.write_text(SALES.replace("= SOLD];\n  repeated", "= SOL];\n  repeated"))
    _, _, err = shown(str(script), "--backend", "reference")
    assert "error[sawzall-proto]: `Kind` has no value `SOL`" in err
    assert "did you mean `SOLD`?" in err


INSIDE = """syntax = "proto3";
package tree;
message A { B b = 1; int64 n = 2; C.D d = 3; group G = 9 { A up = 1; repeated G more = 3; } }
message B { A a = 1; repeated B bs = 2; map<string, A> as = 3; }
message C { message D { C c = 1; int64 k = 2; repeated D ds = 3; } D d = 1; C self = 3; }
"""


def test_messages_that_are_inside_of_themselves_are_bytes_there(tmp_path: Path) -> None:
    (tmp_path / "tree.proto").write_text(INSIDE)
    script = tmp_path / "tree.szl"
    script.write_text(r"""
        proto "tree.proto"
        c: C = X"0a0610051a0210071a040a021009";
        inner: C = c.self;
        inner.d.k++;
        c.self = bytes(inner);
        emit stdout <- format("%d %d %s", c.d.k, C(c.self).d.k, string(bytes(c), "hex"));
        a: A = X"0a041202120010034b4c";
        b: B = B(a.b.bs[0]).bs[0];
        emit stdout <- format("%d %d %d %d", a.n, len(a.g.up), len(a.b.a), len(b.bs));
    """)
    status, out, err = shown(str(script), "--backend", "reference")
    assert (status, out) == (0, "5 10 0a0610051a0210071a040a02100a\n3 0 0 0\n"), err


@pytest.mark.slow
def test_bytes_are_compressed_as_zlib_does() -> None:
    text = (
        "r: { d: bytes, g: bytes, z: bytes } = input;\n"
        "t: table collection of { g: bytes, z: bytes, ok: bool, broken: bool };\n"
        "ok := gunzip(r.g) == r.d && zlibuncompress(r.z) == r.d && gunzip(gzip(r.d)) == r.d;\n"
        "half := r.g[0:$ / 2]; r.g[$ - 9]++; broken := !def(gunzip(half)) && !def(gunzip(r.g));\n"
        "emit t <- { gzip(r.d), zlibcompress(r.d), ok, broken };"
    )
    chance = seeds.chance("compressed bytes", "zlib")
    whole = [
        b"",
        b"a",
        b"hello " * 9,
        bytes(chance.choices(b"ab", k=200)),
        chance.randbytes(99),
        bytes(range(250)) * 2,
    ]
    rows: list[dict[str, bytes]] = []
    for i, data in enumerate(whole):
        made = zlib.compressobj(9, zlib.DEFLATED, 31, 9, (0, zlib.Z_FIXED)[i % 2])
        rows.append(
            {"d": data, "g": made.compress(data) + made.flush(), "z": zlib.compress(data, 9 * (i % 2))}
        )
    found = river.compile(text, lang="sawzall").run({"r": rows}, backend="reference")["t"].to_pylist()
    assert [(each["ok"], each["broken"]) for each in found] == [(True, True)] * len(rows)
    for each, row in zip(found, rows, strict=True):
        assert (gzip.decompress(each["g"]), zlib.decompress(each["z"])) == (row["d"], row["d"])
    assert len(found[-1]["g"]) < 300


def test_now_is_when_the_run_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "now.szl"
    script.write_text(
        "static began := now();\nemit stdout <- format(`%d`, int(began));\nassert(now() >= began);\n"
    )
    before = time.time_ns() // 1000
    first, second = (int(shown(str(script), "--backend", "reference")[1]) for _ in range(2))
    assert before <= first < second <= time.time_ns() // 1000


def test_bytes_change_one_by_one_in_linear_time(tmp_path: Path) -> None:
    script = tmp_path / "bytes.szl"
    script.write_text("""
        flip: function(b: bytes): bytes { for (i: int = 0; i < len(b); i++) b[i] = b[i] ^ 255; return b; };
        b: bytes = new(bytes, 200000, 65);
        for (i: int = 0; i < len(b); i++) b[i] = i;
        emit stdout <- format("%d %d %b", len(b), b[199999], flip(flip(b)) == bytes(string(b, "hex"), "hex"));
    """)
    status, out, err = shown(str(script))  # copied each time, they would be 80 GB
    assert (status, out, err) == (0, "200000 63 true\n", "")
