"""Which regions `expand` writes out of those that runs have: of all programs here, and what is refused, with reasons."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import optimizers
import river
from backends.multicore import BACKEND
from optimizers import Expand, Fission
from river.il.annotations import ROLES, annotated
from river.il.pretty import pretty
from river.passes import apply, pipeline
from river.platform import Platform
from river.testing.pass_laws import check_pipeline

if TYPE_CHECKING:
    from river.driver import Compiled
    from river.passes import Pass

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("examples", "tests/programs", "tests/bench/programs")
PROGRAMS: Final = sorted(
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cql", ".szl", ".str", ".river")
)
_IN_ORDER: Final = "is in a region whose rows only a runtime keeps in order"
REASONS: Final = {
    "the engine puts rows of one instant in order by tags, of which the calculus has none": (
        f"{_IN_ORDER}: `\\w+` may read the order of rows within an instant, which replicas would change",
        f"{_IN_ORDER}: `\\w+` compares rows, of which equal ones may come from different replicas",
    ),
    "the sides of a join have other names for its key, and an explicit region names its keys once": (
        f"{_IN_ORDER}: no key of `\\w+` reaches it unchanged through the region",
    ),
    "items with equal keys keep their order by serial numbers, and queues of these have no marks of the keys": (
        r"sends in order to `\w+`, which acts on marks: serial numbers carry none",
    ),
    "windows of which some send more than others have no turns in which what they send could be put together": (
        "does not send as many items for each window",
    ),
    "where firings do not all send as much, an item waits for a pulse, and a loop for the item": (
        r"is part of a loop, and what it sends would wait for what comes later",
    ),
}
"""Why regions are not written out. What the engine makes of them is compared with the calculus, to the byte, for one to five
workers, by the tests of divided rows, of loops and of whole programs."""


@cache
def find(name: str) -> type[Pass[Any]]:
    return getattr(optimizers, name.capitalize())


def expanded(compiled: Compiled) -> tuple[set[str], list[str]]:
    """The regions that are left of a program as two workers run it when they are written out, and what is refused."""
    passes = (*pipeline(BACKEND.passes, find), Expand())
    made = apply(compiled.program, passes, Platform(2), compiled.templates)
    said = (region for use in made.program.uses for region in annotated(use).regions)
    refused = [each.message for each in made.remarks if each.place == "expand"]
    return {region.id for region in said if region.what not in ROLES}, refused


@pytest.mark.some(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_regions_are_written_out_or_there_is_a_reason(program: str) -> None:
    left, refused = expanded(river.load(str(ROOT / program)))
    known = [pattern for patterns in REASONS.values() for pattern in patterns]
    stray = [each for each in refused if not any(re.fullmatch(f"no expand: `\\w+` {p}", each) for p in known)]
    assert not stray
    assert len(left) <= len(refused)


TABLES = """river 1;
type R = {k: string, n: i64};
@Region(a, seqno) input rows: R;
output totals: R = rows($v, shown);
output most: R = rows($m, shown);
var $v: map<string, i64> = {};
var $m: map<string, i64> = {};
fn shown(k: string, n: i64) -> list<R> { return [{k: k, n: n}]; }
operator both = std.duplicate<T = R, n = 2>;
operator count(r: R; $v: map<string, i64>) -> () { on r(x) { with n = $v[x.k] else 0 { n = n +% x.n; } } }
operator most(r: R; $v: map<string, i64>) -> () { on r(x) { with n = $v[x.k] else 0 { n = max(n, x.n); } } }
(a, b) <- both(rows);
@Parallel(3) @Region(r1, seqno, k) ($v) <- count(a, $v);
@Parallel(2) @Region(r2, seqno, k) ($m) <- most(b, $m);
"""


def out(text: str) -> tuple[Compiled, list[str]]:
    """A program with its regions written out, and what is refused."""
    compiled = river.compile(text, lang="river")
    apart = apply(compiled.program, (Expand(),), Platform(2), compiled.templates)
    return river.compile(pretty(apart.program), lang="river"), [each.message for each in apart.remarks]


def test_views_look_at_what_keys_have_divided() -> None:
    apart, refused = out(TABLES)
    assert refused == []
    assert [(r.name, len(r.parts), r.combined) for r in apart.graph.results] == [
        ("v", 3, True),
        ("m", 2, True),
    ]
    data = {"rows": [(f"k{i * i % 7}", i % 5) for i in range(40)]}
    was = river.compile(TABLES, lang="river").run(data, backend="reference", native="off")
    now = apart.run(data, backend="reference", native="off")
    for name in ("totals", "most"):
        assert now[name].to_pylist() == was[name].to_pylist() != []


LOOK = """river 1;
input x: i64; output y: i64;
var $w: list<i64> = [5, 7];
operator look(x: i64; $w: list<i64>) -> (y: i64) { on x(v) { emit y v +% $w[v & 1]; } }

"""
SEEN = """river 1; input x: {k: i64}; output y: i64;
operator count(x: {k: i64}; $m: map<i64, i64>) -> (y: i64) {
  on x(v) { with n = $m[v.k] else 0 { n = n +% 1; emit y n; } }
}
@Parallel(2) @Region(r, seqno, k) (y, $m) <- count(x, $m);
"""


def test_replicas_read_one_constant() -> None:
    text = LOOK + "@Parallel(2) @Region(r, round_robin) (y) <- look(x, $w);"
    apart, refused = out(text)
    assert refused == []
    assert apart.graph.deterministic
    data = {"x": list(range(9))}
    was = river.compile(text, lang="river").run(data, backend="reference", native="off")
    assert apart.run(data, backend="reference", native="off")["y"].to_pylist() == was["y"].to_pylist()


REFUSED = {
    "entries at first": (
        SEEN + "var $m: map<i64, i64> = {(1): 5};",
        "no expand: `count` has `$m`, which is not empty at first",
    ),
    "a variable that another one writes": (
        LOOK
        + "input z: i64; operator set(x: i64; $w: list<i64>) -> () { on x(v) { $w[0] = v; } } ($w) <- set(z, $w);"
        " @Parallel(2) @Region(r, round_robin) (y) <- look(x, $w);",
        "no expand: `look` reads `$w`, which is written",
    ),
    "a variable of two": (
        SEEN + "var $m: map<i64, i64> = {}; input z: {k: i64}; output w: i64; (w, $m) <- count(z, $m);",
        "no expand: `count` shares `$m` with another operator",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_state_that_cannot_be_in_parts_is_not_written_out(name: str) -> None:
    text, reason = REFUSED[name]
    assert out(text)[1] == [reason]


KEYED = """river 1;
type T = {ts: i64, k: i64};
type C = {ts: i64, k: i64, n: i64};
input a: T by ts;
output q: C by ts;
output r: T;
var $m: map<i64, i64> = {};
operator count(x: T by ts; $m: map<i64, i64>) -> (out: C by ts) {
  on x(v) { with n = $m[v.k] else 0 { n = n +% 1; if n != 2 { emit out {ts: v.ts, k: v.k, n: n}; } } }
}
operator free(x: C by ts) -> (out: T, again: C by ts) { on x(v) { emit out {ts: v.ts, k: v.n}; emit again v; } }
operator late(x: C by ts) -> (out: C by ts) { on x(v) { if v.n > 1 { emit out v; } } on mark(k) { mark out k; } }
"""
ROWS = [(1, 1), (1, 2), (1, 1), (2, 1), (2, 2), (5, 1)]


def test_items_with_equal_keys_keep_their_order() -> None:
    """Of two at one time, which come by other replicas, the first stays the first."""
    text = KEYED + (
        "@Parallel(2) @Region(r1, seqno_marks, k) (b, $m) <- count(a, $m);"
        " @Parallel(3) @Region(r2, round_robin) (r, q) <- free(b);"
    )
    compiled = river.compile(text, lang="river")
    made = check_pipeline(
        compiled.program, (Expand(epoch=2),), Platform(2), compiled.templates, {"a": ROWS}, limit=0
    )
    assert pretty(made).count("by = ts") == 4
    falling = {"a": [(2, 1), (1, 1)]}  # whoever reads the input traps
    check_pipeline(compiled.program, (Expand(epoch=2),), Platform(2), compiled.templates, falling, limit=0)


def test_serial_numbers_carry_no_marks() -> None:
    text = KEYED.replace("output r: T;", "") + (
        "@Parallel(2) @Region(r1, seqno_marks, k) (b, $m) <- count(a, $m); (q) <- late(b);"
    )
    assert out(text)[1] == [
        "no expand: `count` sends in order to `late`, which acts on marks: serial numbers carry none"
    ]


LOOP = """river 1;
input x: i64; output y: i64;
operator begin(x: i64, again: i64) -> (parts: i64, done: i64) {
  phase 1 on x(v) { for i in 0 .. 4 { emit parts v +% i; } }
  phase 3 on again(v) { for i in 0 .. 4 { emit parts v +% i; } }
  phase 1 on again(v) { emit done v; }
}
operator square(x: i64) -> (out: i64) { on x(v) { emit out v *% v +% 1; } }
operator pairs(x: i64) -> (out: i64) { on x[pop 2](w) { emit out w[0] *% 3 +% w[1]; } }
operator add(x: i64; $n: i64, $sum: i64) -> (out: i64) {
  on x(v) { $sum = $sum *% 5 +% v; $n = $n + 1; if $n == 2 { emit out $sum; $n = 0; $sum = 0; } }
}
var $n: i64 = 0; var $sum: i64 = 0;
(parts, y) <- begin(x, again);
@Parallel(3) (squares) <- square(parts);
@Parallel(2) (sums) <- pairs(squares);
(again, $n, $sum) <- add(sums, $n, $sum);
"""


@pytest.mark.parametrize("rules", ["paper", "runtime"])
def test_regions_in_loops_where_nothing_waits_for_what_comes_later(rules: str) -> None:
    compiled = river.compile(LOOP, lang="river")
    passes = Fission(rules=rules), Expand()
    said = pretty(apply(compiled.program, passes[:1], Platform(2), compiled.templates).program)
    assert "@Parallel(3) @Region(r1, round_robin)" in said
    assert "@Parallel(2) @Region(r2, halo)" in said
    for items in ([], [3], [3, 1, 4, 1, 5]):
        made = check_pipeline(
            compiled.program, passes, Platform(2), compiled.templates, {"x": items}, limit=0
        )
        assert pretty(made).count("@Region(r1, replica)") == 3


def test_what_reads_a_variable_that_is_written_runs_on_one_worker() -> None:
    text = REFUSED["a variable that another one writes"][0].replace(
        "@Parallel(2) @Region(r, round_robin)", "@Parallel()"
    )
    compiled = river.compile(text, lang="river")
    made = apply(compiled.program, pipeline(BACKEND.passes, find), Platform(2), compiled.templates)
    assert "no fission: `look` reads `$w`, which is written" in [each.message for each in made.remarks]
