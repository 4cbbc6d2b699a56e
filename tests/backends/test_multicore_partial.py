"""Files read, mapped and reduced block by block: the results of the reference, for any number of workers.

`small` cuts files into many small blocks and has every worker's copy of the operators take its turn, however fast it is; several
threads combine maps of a few entries.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import river
from backends.multicore import BACKEND
from backends.multicore import copies as copies_
from backends.multicore import partial as blocks
from backends.native import combine
from backends.native.jit import host
from backends.native.lower.batches import Lowered, lower
from backends.native.places import behind
from river.backend import Options
from river.diagnostics import Rejected
from river.driver import Reading
from river.il.combine import Entries, combines, combining
from river.io.errors import OnError, Refusals
from river.io.sources import open_source
from river.lang import typed, values
from river.lang import types as t
from river.lang.evaluate import Trap
from river.platform import Platform
from river.testing.laws import REGIONS, after

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from river.driver import Compiled, Results

HEAD = "r: {k: string, s: string, n: int, x: float} = input;\n"
TABLES = {
    "total": ("table sum[k: string] of {n: int, x: float}", "emit total[r.k] <- {r.n, r.x};"),
    "plain": ("table sum of n: int", "emit plain <- r.n;"),
    "heavy": ("table top(2)[k: string] of s: string weight n: int", "emit heavy[r.k] <- r.s weight r.n;"),
    "top": ("table top(3) of s: string weight x: float", "emit top <- r.s weight r.x;"),
    "parts": ("table sum[s: string] of m: map [string] of int", "emit parts[r.s] <- {r.k: r.n};"),
    "most": ("table maximum(2)[k: string] of s: string weight n: int", "emit most[r.k] <- r.s weight r.n;"),
    "least": ("table minimum(3) of s: string weight x: float", "emit least <- r.s weight r.x;"),
    "kinds": ("table unique(9)[k: string] of s: string", "emit kinds[r.k] <- r.s;"),
    "middle": ("table quantile(3) of n: int", "emit middle <- r.n;"),
    "chosen": ("table distinctsample(2) of s: string weight x: float", "emit chosen <- r.s weight r.x;"),
    "items": ("table sum[k: string] of a: array of int", "emit items[r.k] <- {r.n, 1};"),
    "again": (
        "table bootstrapsum(2) of n: int weight f: fingerprint",
        "emit again <- r.n weight fingerprintof(r.s);",
    ),
    "different": ("table set(3)[k: string] of n: int", "emit different[r.k] <- r.n;"),
    "every": ("table collection of {s: string, n: int}", "emit every <- {r.s, r.n};"),
}
CONDITIONS = ("", "if (r.n > 2) ", 'if (r.k != "a") ', "if (10 / r.n > 1) ", "if (int(r.s) > 0) ")
"""Some are undefined for some records, which is told in an output of its own."""
TEXTS = st.sampled_from(
    ["a", "b", "7", "", "é", "a text, and a comma", 'a "quoted" one', "two\nlines", "x" * 40]
)
ROWS = st.lists(
    st.tuples(
        TEXTS,
        TEXTS,
        st.sampled_from([0, 1, 2, 5, -3, (1 << 63) - 1]),
        st.sampled_from([0.5, 1e300, -1e300, 0.1, -0.0]),
    ),
    max_size=60,
)


@pytest.fixture
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", 64)
        patch.setattr(combine, "PROBE", 1)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("partial")


def written(path: Path, rows: list[tuple[str, str, int, float]], bad: dict[int, str]) -> Path:
    """The rows as a file, in place of some of them other lines."""
    if path.suffix == ".csv":
        lines = [",".join(f'"{v.replace(chr(34), chr(34) * 2)}"' if isinstance(v, str) else repr(v) for v in row)
                 for row in rows]  # fmt: skip
    else:
        lines = [json.dumps(dict(zip("ksnx", row, strict=True))) for row in rows]
    lines = [bad.get(i, line) for i, line in enumerate(lines)]
    head = ["k,s,n,x"] if path.suffix == ".csv" else []
    path.write_text("".join(f"{line}\n" for line in [*head, *lines]), encoding="utf-8", newline="")
    return path


def seen(program: Compiled, found: Results) -> Any:
    """What there is to see of a run."""
    rows = {name: found[name].to_pylist() for name in program.outputs}
    variables = {v.name: values.observed(v.type, found.variables[v.name]) for v in program.graph.variables}
    return repr(rows), variables, found.read, [w.message for w in found.warnings]


def ran(program: Compiled, path: Path, **options: Any) -> Any:
    """What there is to see of a run, or how it ended."""
    try:
        return seen(program, program.run({program.graph.inputs[0]: path}, **options))
    except Rejected as rejected:
        return [(each.code, each.message, each.place) for each in rejected.diagnostics]


def blockwise(program: Compiled, path: Path, workers: int, **options: Any) -> Any:
    """The same of a run in blocks."""
    return ran(program, path, workers=workers, experiment={"gate": "open"}, **options)


ALL = HEAD + "\n".join(
    [*(f"{name}: {kind};" for name, (kind, _) in TABLES.items()),
     *(condition + emit for condition, (_, emit) in zip([*CONDITIONS, *CONDITIONS], TABLES.values(), strict=False))]
)  # fmt: skip
"""All tables at once: some are reduced in blocks, the others are sent to in order."""


@st.composite
def programs(draw: st.DrawFn) -> str:
    chosen = draw(st.lists(st.sampled_from(sorted(TABLES)), min_size=1, max_size=4, unique=True))
    tables = [f"{name}: {TABLES[name][0]};" for name in chosen]
    emits = [draw(st.sampled_from(CONDITIONS)) + TABLES[name][1] for name in chosen]
    return HEAD + "\n".join([*tables, *emits])


BAD = st.dictionaries(st.integers(0, 59), st.sampled_from(["x", '"', "a,b,c,d,e", "{}"]), max_size=2)
FORMATS = st.sampled_from(["csv", "jsonl"])


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@settings(max_examples=min(6, settings().max_examples // 5))
@given(
    rows=ROWS, format_=FORMATS, bad=BAD, on_error=st.sampled_from(["stop", "skip"]), workers=st.integers(2, 5)
)
def test_any_number_of_workers_sees_what_the_reference_sees(
    folder: Path, rows: list[Any], format_: str, bad: dict[int, str], on_error: str, workers: int
) -> None:
    program = river.compile(ALL, "sawzall")
    path = written(folder / f"rows.{format_}", rows, bad)
    wanted = ran(program, path, backend="reference", on_error=on_error)
    assert blockwise(program, path, workers, on_error=on_error) == wanted


@pytest.mark.long
@pytest.mark.usefixtures("small")
@given(text=programs(), rows=ROWS, format_=FORMATS, bad=BAD)
def test_so_do_programs_of_any_tables(
    folder: Path, text: str, rows: list[Any], format_: str, bad: dict[int, str]
) -> None:
    program = river.compile(text, "sawzall")
    path = written(folder / f"rows.{format_}", rows, bad)
    for on_error in ("stop", "skip") if bad else ("stop",):
        wanted = ran(program, path, backend="reference", on_error=on_error)
        for workers in (1, 2, 3, 5):
            assert blockwise(program, path, workers, on_error=on_error) == wanted, workers


# --------------------------------------------------------------------------------------------------- one program at hand

COUNTS = """river 1;
type R = {k: string, s: string, n: i64, x: f64};
input r: R;
output o: i64;
output c: {k: string, n: i64} = rows($c, f);
var $c: map<string, i64> = {("a"): 7};
var $most: i64 = 3;
fn f(k: string, n: i64) -> list<{k: string, n: i64}> { return [{k: k, n: n}]; }
operator split(r: R) -> (a: R, o: i64) {
  on r(x) {
    var n = x.n;
    while n == 999 { n = n * 1; }
    emit o div.trunc(10, n);
    emit a x;
  }
}
operator count(a: R; $c: map<string, i64>, $most: i64) -> () {
  on a(x) { with e = $c[x.k] else 0 { e = e +% x.n; } $most = max($most, x.n); }
}
(a, o) <- split(r);
@Commutative() ($c, $most) <- count(a, $c, $most);
"""


@pytest.fixture(scope="module")
def counts() -> Compiled:
    program = river.compile(COUNTS, "river")
    assert program.graph.inputs == ("r",)  # it is compiled, and nothing is wrong with it
    return program


def many(count: int, **others: int) -> list[tuple[str, str, int, float]]:
    """Rows; `n` of those that are named `at_5` and so on is another than usual."""
    return [("abc"[i % 3], f"text {i}", others.get(f"at_{i}", i % 7 + 1), 0.5) for i in range(count)]


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many copies reduced something in each run, when it ended well."""
    seen: list[int] = []

    def combine(self: Any, look: Any) -> None:
        seen.append(sum(copy.reduced > 0 for copy in self._copies))
        real(self, look)

    real = blocks.Blocks.combine
    monkeypatch.setattr(blocks.Blocks, "combine", combine)
    return seen


@pytest.mark.usefixtures("small")
def test_copies_work_apart_and_are_combined(tmp_path: Path, counts: Compiled, copies: list[int]) -> None:
    path = written(tmp_path / "rows.csv", many(200), {})
    wanted = ran(counts, path, backend="reference")
    for workers in (1, 2, 4):
        assert blockwise(counts, path, workers) == wanted
    assert copies == [2, 4]  # one worker has no copies


def test_a_file_of_one_block_has_one_copy(tmp_path: Path, counts: Compiled, copies: list[int]) -> None:
    path = written(tmp_path / "rows.csv", many(200), {})
    wanted = ran(counts, path, backend="reference")
    assert blockwise(counts, path, 4) == wanted
    assert ran(counts, path, workers=4) == wanted  # nobody could help, so it is read as ever
    assert copies == [1, 0]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("why", ["large", "no code"])
def test_reducers_get_what_copies_do_not_reduce(
    tmp_path: Path, counts: Compiled, copies: list[int], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "large":  # once they have reduced a block
        monkeypatch.setattr(copies_, "LARGE", -1)
        monkeypatch.setattr(copies_, "GROWTH", 0)
    else:
        monkeypatch.setattr(combine, "compile_combine", lambda *_, **_given: None)
    path = written(tmp_path / "rows.csv", many(200), {})
    found = counts.run({"r": path}, workers=3, experiment={"gate": "open"})
    assert seen(counts, found) == ran(counts, path, backend="reference")
    assert copies in ([[1], [2], [3]] if why == "large" else [[0]])
    metrics = found.summary.metrics
    assert metrics is not None
    assert [one.fired for one in metrics.operators.values()] == [200, 200]
    assert metrics.queues["a"].peak > 0


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many entries of maps are combined: by handler, whose keys are there and any."""
    found, whole = Counter[str](), combine.NativeCombine._fired

    def told(self: Any, native: Any, handler: str, places: int, start: int, stop: int) -> None:
        found[handler] += stop - start
        whole(self, native, handler, places, start, stop)

    monkeypatch.setattr(combine.NativeCombine, "_fired", told)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("different", "there", "others"),
    [(15_013, (256, 15_013), (0, 7_500)), (60_000, (64, 64), (256, 30_000))],
)
def test_large_tables_are_combined(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fired: Counter[str],
    different: int,
    there: tuple[int, int],
    others: tuple[int, int],
) -> None:
    """Of so many keys that what is looked up in them is fetched ahead; one copy has some, or all, that the other has not.

    `there`, `others`: the least and most entries that several threads combine, who put none in, and that one does.
    """
    monkeypatch.setattr(blocks, "BLOCK", 1 << 15)
    monkeypatch.setattr(combine, "PROBE", 1 << 6)
    program = river.compile(
        HEAD + "total: table sum[k: string] of n: int;\nemit total[r.k] <- r.n;", "sawzall"
    )
    keys = [f"key number {i * 7919 % different}" for i in range(60_000)]
    path = tmp_path / "rows.csv"
    path.write_text("k,s,n,x\n" + "".join(f"{key},,{i % 5},0\n" for i, key in enumerate(keys)), newline="")
    found = program.run({"r": path}, workers=2, experiment={"gate": "open"})
    wanted = Counter[str]()
    for i, key in enumerate(keys):
        wanted[key] += i % 5
    assert {row["k"]: row["n"] for row in found["total"].to_pylist()} == wanted
    assert [row["k"] for row in found["total"].to_pylist()] == sorted(wanted)
    assert there[0] <= fired["item.1"] <= there[1]
    assert others[0] <= fired["item.0"] <= others[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("kind", "emit", "several"),
    [
        ("table sum[k: string] of {n: int, m: int}", "{r.n, 1}", True),
        ("table sum[k: string][s: string] of n: int", "r.n", True),
        ("table sum[k: string] of x: float", "r.x", False),  # exact sums may grow
        ("table sum[k: string] of m: map [string] of int", "{r.s: r.n}", False),
        ("table maximum(2)[k: string] of s: string weight n: int", "r.s weight r.n", False),
    ],
)
def test_several_threads_combine_what_takes_no_memory(
    tmp_path: Path, fired: Counter[str], kind: str, emit: str, several: bool
) -> None:
    index = "[r.k][r.s]" if "[s: string]" in kind else "[r.k]"
    program = river.compile(f"{HEAD}t: {kind};\nemit t{index} <- {emit};", "sawzall")
    rows = [(f"{i % 40}", f"{i % 3}", i, 0.5) for i in range(2_000)]
    path = written(tmp_path / "rows.csv", rows, {})
    assert blockwise(program, path, 3) == ran(program, path, backend="reference")
    assert bool(fired["item.1"]) == several


def test_what_several_threads_run_takes_no_memory_of_the_map() -> None:
    """Nothing that is called for entries whose keys are there takes or gives back memory; for any entries something does."""
    program = river.compile(f"{HEAD}t: table sum[k: string] of n: int;\nemit t[r.k] <- r.n;", "sawzall")
    (op,) = [
        each.operator
        for each in program.graph.instances
        if isinstance(each.operator, typed.Operator) and each.operator.vars
    ]
    (how,) = combines(op)
    assert isinstance(how, Entries)
    (type_,) = (var.type for var in op.vars)
    assert isinstance(type_, t.Map)
    made = lower(combining(op, 0, how, entry=True), host().architecture, parts=behind(type_))
    assert isinstance(made, Lowered)
    bodies = dict(re.findall(r"^define [^@]*@([\w.]+)\((.*?)^}", made.text, re.MULTILINE | re.DOTALL))

    def called(name: str) -> set[str]:
        found, open_ = set[str](), [name]
        while open_:
            if (each := open_.pop()) not in found:
                found.add(each)
                open_ += re.findall(r"@([\w.]+)", bodies.get(each, ""))
        return found

    memory = {"alloc", "piece", "arena_more", "recycle", "release", "flush"}
    assert called("inside.item.1") & memory == set()
    assert {"alloc", "recycle"} <= called("inside.item.0")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_the_first_trap_in_the_file_is_the_one_that_is_told(
    tmp_path: Path, counts: Compiled, on_error: str
) -> None:
    path = written(tmp_path / "rows.csv", many(200, at_120=0, at_31=0, at_190=0), {})
    wanted = ran(counts, path, backend="reference", on_error=on_error)
    for workers in (2, 5):
        assert blockwise(counts, path, workers, on_error=on_error) == wanted


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("bad", "trap"), [((50, 150), 100), ((100, 150), 50)])
def test_what_stands_first_in_the_file_ends_the_run(
    tmp_path: Path, counts: Compiled, bad: tuple[int, int], trap: int
) -> None:
    path = written(tmp_path / "rows.csv", many(200, **{f"at_{trap}": 0}), dict.fromkeys(bad, "x"))
    wanted = ran(counts, path, backend="reference")
    assert blockwise(counts, path, 4) == wanted
    (found,) = wanted
    assert found[0] == ("data-missing-field" if bad[0] < trap else "trap-division-by-zero")


@pytest.mark.usefixtures("small")
def test_dead_letters_stand_in_the_order_of_the_file(tmp_path: Path, counts: Compiled) -> None:
    path = written(tmp_path / "rows.csv", many(200), dict.fromkeys(range(3, 200, 17), "x"))
    letters = [tmp_path / "one", tmp_path / "two"]
    runs = [
        ran(counts, path, backend="reference", on_error=f"dead-letter={letters[0]}"),
        blockwise(counts, path, 4, on_error=f"dead-letter={letters[1]}"),
    ]
    assert letters[0].read_text() == letters[1].read_text()
    assert runs[0][:3] == runs[1][:3]
    assert len(letters[0].read_text().splitlines()) == 12


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", ["trap", "row"])
def test_nothing_behind_an_error_is_delivered_and_all_before_it_is(
    tmp_path: Path, counts: Compiled, error: str
) -> None:
    """Several times: how many blocks are under way when the error is found is a matter of chance."""
    rows, bad = (many(300, at_60=0), {}) if error == "trap" else (many(300), {60: "x"})
    path = written(tmp_path / "rows.csv", rows, bad)
    graph = after(counts.graph, REGIONS, 4)
    for _ in range(6):
        got: list[int] = []
        counted: list[int] = []
        refusals = Refusals(OnError())
        source = open_source(path, counts.graph.queues["r"].type, name="r", on_error=refusals)
        plan = BACKEND.plan(graph, Platform(4), Options(workers=4, experiment={"gate": "open"}))
        with pytest.raises((Trap, Rejected)):
            BACKEND.run(plan, {"r": Reading(source, counted.append)}, {"o": got.extend})
        assert got == [10 // n for _, _, n, _ in rows[:60]]
        assert error == "trap" or sum(counted) == 60


@pytest.mark.usefixtures("small")
def test_a_firing_that_takes_too_long_ends_a_run_in_blocks(tmp_path: Path, counts: Compiled) -> None:
    path = written(tmp_path / "rows.csv", many(100, at_40=999), {})
    found = blockwise(counts, path, 2, deadline=0.2)
    assert [code for code, _, _ in found] == ["trap-deadline"]


@pytest.mark.usefixtures("small")
def test_a_run_in_blocks_can_be_stopped(tmp_path: Path, counts: Compiled) -> None:
    path = written(tmp_path / "rows.csv", many(100, at_40=999), {})
    looks = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        blockwise(counts, path, 2, stopping=lambda: next(looks) > 2)


@pytest.mark.usefixtures("small")
def test_metrics_count_what_is_done_in_blocks(tmp_path: Path, counts: Compiled) -> None:
    path = written(tmp_path / "rows.csv", many(150), {7: "x"})
    found = counts.run({"r": path}, workers=3, experiment={"gate": "open"}, on_error="skip")
    metrics = found.summary.metrics
    assert metrics is not None
    assert metrics.inputs == {"r": 149}
    assert [one.fired for one in metrics.operators.values()] == [149, 149]
    assert all(one.seconds > 0 and one.batches > 0 for one in metrics.operators.values())
    assert metrics.outputs["o"].items == 149


def test_a_line_that_is_too_long_to_be_read_natively_is_read_after_all_before_it(
    tmp_path: Path, counts: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1 << 16)
    rows = many(2000)
    rows[1500] = ("a", "long " * 900_000, 5, 0.5)
    path = written(tmp_path / "rows.csv", rows, {1800: "x"})
    for on_error in ("skip", "stop"):
        wanted = ran(counts, path, workers=1, on_error=on_error)
        assert blockwise(counts, path, 3, on_error=on_error) == wanted


@pytest.mark.parametrize("how", ["packed", "items"])
def test_what_is_no_plain_file_is_read_as_ever(
    tmp_path: Path, counts: Compiled, copies: list[int], how: str
) -> None:
    rows = many(100)
    plain = written(tmp_path / "rows.csv", rows, {})
    wanted = ran(counts, plain, backend="reference")
    path: Any = plain
    if how == "packed":
        path = tmp_path / "rows.csv.gz"
        path.write_bytes(gzip.compress(plain.read_bytes()))
    if how == "items":
        path = rows
    assert blockwise(counts, path, 3) == wanted
    assert copies == [0]


def test_the_plan_says_what_works_in_blocks(counts: Compiled) -> None:
    graph = after(counts.graph, REGIONS, 3)
    shown = BACKEND.plan(graph, Platform(4), Options(workers=3)).show()
    assert (
        "  input r: up to 3 workers read blocks of a file, with split#0, count#1; combined: $c, $most"
        in shown
    )
    kept: Any = object()
    for options in (Options(workers=1), Options(workers=3, keeper=kept), Options(workers=3, native="off")):
        assert "blocks" not in BACKEND.plan(graph, Platform(4), options).show()
    assert "blocks" not in BACKEND.plan(counts.graph, Platform(4), Options(workers=3)).show(), (
        "no region says so"
    )


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        ("sum(x: i64; $n: i64) -> () { on x(v) { $n = $n + v; } }", "`sum` does more with `$n` than to accumulate"),
        ("sum(x: i64; $n: i64) -> () { on x(v) { $n = $n +% v; } }", None),
    ],
)  # fmt: skip
def test_blocks_that_operators_cannot_work_on_are_told(operators: str, reason: str | None) -> None:
    text = (
        f"river 1; @Region(r, combine) input x: i64; var $n: i64 = 0; operator {operators}"
        " @Region(r, combine) ($n) <- sum(x, $n);"
    )
    planned = BACKEND.plan(river.compile(text, "river").graph, Platform(4), Options(workers=2))
    told = [] if reason is None else [f"no operator gets blocks of `x`: {reason}"]
    assert [(each.code, each.message) for each in planned.remarks] == [("run-region", t) for t in told]


def test_what_is_in_another_group_does_not_work_on_the_same_blocks() -> None:
    def planned(of_split: str, of_count: str, workers: int) -> str:
        text = COUNTS.replace("(a, o) <-", f"{of_split} (a, o) <-")
        text = text.replace("@Commutative() (", f"@Commutative() {of_count} (")
        graph = after(river.compile(text, "river").graph, REGIONS, workers)
        return BACKEND.plan(graph, Platform(4), Options(workers=workers)).show()

    assert "up to 3 workers read blocks of a file, with split#0, count#1" in planned(
        "@Group(a)", "@Group(a)", 3
    )
    assert "blocks" not in planned("@Group(a)", "@Group(b)", 4)
    others = "operator nothing(x: i64) -> () { on x(v) { } } input more: i64; @Group(b) () <- nothing(more);"
    assert "up to 2 workers read blocks" in planned(f"{others} @Group(a)", "@Group(a)", 4)
    assert "blocks" not in planned(f"{others} @Group(a)", "@Group(a)", 2), (
        "one worker reads while others do something else"
    )


WAITS = """river 1;
type T = {k: string, n: i64};
input q: T;
var $v: map<string, i64> = {};
operator tally(x: T; $v: map<string, i64>) -> () { on x(v) { with c = $v[v.k] else 0 { c = c +% v.n; } } }
@Parallel() ($v) <- tally(q, $v);
"""


def test_what_could_read_blocks_does_not_forget_that_the_reader_waits_for_room() -> None:
    compiled = river.compile(WAITS, "river")
    for _ in range(12):
        compiled.run({"q": [("a", 1), ("a", 2)]}, batch=1, workers=2, bound=1, experiment={"gate": "open"})
