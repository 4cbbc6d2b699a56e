"""Results that are combined of parts: written by hand, and as `expand` writes out regions whose reducers commute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import river
from backends.multicore import BACKEND
from optimizers import Expand, Fission
from river.checkpoint import Checkpoint
from river.diagnostics import Rejected
from river.il.pretty import pretty
from river.passes import apply
from river.platform import Platform

if TYPE_CHECKING:
    from pathlib import Path

    from river.driver import Compiled
    from river.passes import Pass

COUNTS = """river 1;
type R = {k: string, n: i64};
input rows: R;
output totals: R = rows($v, shown);
var $v.0: map<string, i64> = {("a"): 100};
var $v.1: map<string, i64> = {};
result $v = combine($v.0, $v.1);
fn shown(k: string, n: i64) -> list<R> { return [{k: k, n: n}]; }
operator count(r: R; $v: map<string, i64>) -> () { on r(x) { with n = $v[x.k] else 0 { n = n +% x.n; } } }
operator split = std.rr_split<T = R, w = [1, 1]>;
(a, b) <- split(rows);
($v.0) <- count(a, $v.0);
($v.1) <- count(b, $v.1);
"""
ROWS = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("c", 5)]
MOST = "operator most(r: R; $v: map<string, i64>) -> () { on r(x) { with n = $v[x.k] else 0 { n = max(n, x.n); } } }\n"
LOG = """
t: table sum[origin: string] of n: int;
longest: table maximum(2) of origin: string weight n: int;
kinds: table sum[n: int][origin: string] of { count: int, total: int };
record: { origin: string, n: int } = input;
if (record.n > 1) emit t[record.origin] <- record.n;
emit longest <- record.origin weight record.n;
emit kinds[record.n][record.origin] <- { 1, record.n };
"""


def told(rejected: pytest.ExceptionInfo[Rejected]) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in rejected.value.diagnostics]


@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_what_parts_have_gathered_is_one_value(backend: str, native: Any) -> None:
    results = river.compile(COUNTS, lang="river").run({"rows": ROWS}, backend=backend, native=native)
    assert results["totals"].to_pylist() == [{"k": "a", "n": 108}, {"k": "b", "n": 2}, {"k": "c", "n": 5}]
    assert {name: dict(value) for name, value in results.variables.items()} == {
        "v": {"a": 108, "b": 2, "c": 5}
    }


def test_what_is_kept_of_a_run_are_the_parts(tmp_path: Path) -> None:
    program, kept = river.compile(COUNTS, lang="river"), Checkpoint(tmp_path / "state")
    (tmp_path / "rows.csv").write_text("k,n\n" + "".join(f"{k},{n}\n" for k, n in ROWS))
    for _ in range(2):  # the second run finds all done
        results = program.run(
            {"rows": str(tmp_path / "rows.csv")}, {"totals": str(tmp_path / "out.csv")}, checkpoint=kept
        )
        assert dict(results.variables["v"]) == {"a": 108, "b": 2, "c": 5}
        assert (tmp_path / "out.csv").read_text() == "k,n\na,108\nb,2\nc,5\n"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("$v.1: map<string, i64> = {}", '$v.1: map<string, i64> = {("b"): 1}', "`$v.1` does not begin with what is neutral"),
        ("n = n +% x.n", "n = n *% x.n", "`count` does more with `$v.0` than to accumulate"),
        ("n = n +% x.n", "n = n + x.n", "`count` does more with `$v.0` than to accumulate"),
        ("$v.1) <- count(b, $v.1", "$v.0) <- count(b, $v.0", "`$v.0` is not the variable of one operator"),
        (
            "($v.1) <- count",
            MOST + "($v.1) <- most",
            "`most` accumulates otherwise into `$v.1` than the first into `$v.0`",
        ),
    ],
)  # fmt: skip
def test_parts_that_cannot_be_combined_are_refused(old: str, new: str, reason: str) -> None:
    text = COUNTS.replace(old, new)
    assert text != COUNTS
    with pytest.raises(Rejected) as rejected:
        _ = river.compile(text, lang="river").graph
    ((code, message),) = told(rejected)
    assert code == "il-result"
    assert message.startswith(f"the parts of `$v` cannot be combined: {reason}")


def written_out(compiled: Compiled, cores: int) -> Compiled:
    """The program with its regions as replicas."""
    passes = (Fission(auto=True, rules="runtime"), Expand())
    applied = apply(compiled.program, passes, Platform(1, cores), compiled.templates)
    return river.compile(pretty(applied.program), lang="river")


@pytest.mark.parametrize("cores", [2, 3])
def test_several_tables_are_one_region(cores: int) -> None:
    program = river.compile(LOG, lang="sawzall")
    apart = written_out(program, cores)
    assert [len(result.parts) for result in apart.graph.results] == [cores] * 3
    assert apart.text.count("@Region(r1, replica)") == cores * len(program.graph.instances)
    rows = [(f"o{i * i % 7}", i % 5) for i in range(40)]
    found: list[Any] = []
    for compiled, backend in ((program, "reference"), (apart, "reference"), (apart, "multicore")):
        results = compiled.run({"record": rows}, backend=backend)
        found.append({name: results[name].to_pylist() for name in results.collected})
    assert found[0] == found[1] == found[2]
    assert all(found[0].values())
    again = apart.tuned(BACKEND.passes, Platform(2)).graph
    assert [result.parts for result in again.results] == [result.parts for result in apart.graph.results]


def opted(text: str, *passes: Pass, cores: int = 3) -> tuple[Compiled, list[str]]:
    """The program after passes, and their remarks."""
    compiled = river.compile(text, lang="river")
    applied = apply(compiled.program, passes, Platform(1, cores), compiled.templates)
    return river.compile(pretty(applied.program), lang="river"), [each.message for each in applied.remarks]


BOTH = """river 1;
input x: i64; output y: i64; var $n: i64 = 0;
operator both(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }
operator few(x: i64) -> (a: i64) { on x(v) { if v > 2 { emit a v; } } }
operator sum(x: i64; $n: i64) -> () { on x(v) { $n = $n +% v; } }
"""
NUMBERS = [5, 1, 3, 2, 9, 8, 4]


def test_what_leaves_in_order_is_merged_beside_what_is_combined() -> None:
    text = BOTH + "(z, a) <- both(x); (y) <- few(z); ($n) <- sum(a, $n);"
    apart, _ = opted(text, Fission(auto=True, rules="runtime"), Expand(epoch=2))
    assert "std.merge_seq<T = i64, n = 3>" in apart.text
    for compiled, backend in (
        (river.compile(text, lang="river"), "reference"),
        (apart, "reference"),
        (apart, "multicore"),
    ):
        results = compiled.run({"x": NUMBERS}, backend=backend)
        assert results["y"].to_pydict() == {"value": [5, 3, 9, 8, 4]}
        assert results.variables["n"] == sum(NUMBERS)


def test_each_exit_is_put_together_as_who_reads_it_asks() -> None:
    """One exit in order, one that nobody sees the order of, and one that sends an item for each."""
    text = BOTH + (
        "operator deal(x: i64) -> (a: i64, b: i64, c: i64) { on x(v) { emit a v; if v > 2 { emit b v; } emit c v; } }"
        "output w: i64; (y, w, a) <- deal(x); @Commutative() ($n) <- sum(a, $n);"
    )
    said, _ = opted(text.replace("(y, w", "@Parallel(2) (y, w"), Fission())
    assert "@Region(r1, seqno_marks) @Exits(r1, seqno, seqno_marks, unordered)" in " ".join(said.text.split())
    apart, remarks = opted(said.text, Expand(epoch=2))
    assert remarks == []
    assert [apart.text.count(f"std.{name}<") for name in ("merge_seq", "gather_seq")] == [2, 1]
    for backend in ("reference", "multicore"):
        results = apart.run({"x": NUMBERS}, backend=backend)
        assert results["y"].to_pydict() == {"value": NUMBERS}
        assert results["w"].to_pydict() == {"value": [n for n in NUMBERS if n > 2]}
        assert results.variables["n"] == sum(NUMBERS)


def test_an_order_that_is_seen_is_not_given_up() -> None:
    for region in ("@Parallel(2) @Region(r, seqno_marks)", "@Region(r, combine)"):
        read = f"{BOTH.replace('input x', '@Region(r, combine) input x')}" if "combine" in region else BOTH
        text = f"{read}{region} (z, a) <- both(x); {region} ($n) <- sum(a, $n); {region} @Exits(r, unordered) (y) <- few(z);"
        apart, remarks = opted(text, Expand())
        assert "merge" not in apart.text
        assert remarks == ["no expand: `y` is to leave the region `r` in any order, which can be seen"]


def test_several_entries_are_split_by_what_instants_keep_together() -> None:
    said = "@Parallel(2) @Region(r, seqno_marks)"
    text = (
        BOTH
        + f"input u: i64; output w: i64; {said} (z, a) <- both(x); {said} (w) <- few(u); ($n) <- sum(a, $n); (y) <- few(z);"
    )
    _, remarks = opted(text, Expand())
    assert remarks == ["no expand: the region `r` has 2 entries, which no instants keep together"]
