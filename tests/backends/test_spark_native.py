"""Machine code in the stages of Spark, on the stand-in: the results, traps and state are those of the evaluator."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")
pytest.importorskip("llvmlite", reason="llvmlite is not installed")

from backends.multicore import BACKEND as MULTICORE
from backends.native.batch import Batch
from backends.native.lower import expressions
from backends.reference import BACKEND as REFERENCE
from backends.spark import columns, compiled, marshal, rowwise, task, worker
from backends.spark import network as networks
from backends.spark.marshal import Piece, to_plain
from backends.spark.plan import plan
from backends.spark.stages import StageKind
from river.backend import Options
from river.driver import Reading, compile_source
from river.il.observe import observed_variables
from river.io import columnar
from river.io.errors import OnError
from river.io.sources import open_source
from river.lang import types as t
from river.lang.evaluate import Trap
from river.lang.values import hash64
from river.platform import Platform
from river.source import Source
from river.testing.graph_strategies import contents, graphs
from river.testing.value_strategies import values_of
from tests.backends.spark_programs import HEAD, ROWS, data, go, programs
from tests.backends.spark_stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

few = settings(max_examples=6, deadline=None)


@pytest.fixture
def no_evaluator() -> Iterator[None]:
    """The evaluator fires nothing."""

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("the evaluator is asked for")

    together = worker.together

    def columns_only(*given: Any, columns: bool, **how: Any) -> Piece:
        assert columns
        return together(*given, columns=columns, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowwise.Rowwise, "__call__", refused)
        patch.setattr(networks, "make", refused)
        patch.setattr(worker, "together", columns_only)
        yield


@contextmanager
def without_code(out: set[int]) -> Iterator[None]:
    """Some instances have no machine code."""
    made = compiled._made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_made", lambda p, i, c, d: None if i in out else made(p, i, c, d))
        yield


CHAIN = (
    HEAD
    + """
operator either(a: R by k, b: R by k) -> (y: R by k) {
  on merge(a(p), b(q)) { if p is p { emit y p; } if q is q { emit y q; } }
}
operator turns(a: R by k, b: R) -> (y: R) { phase 2 on a(r) { emit y r; } phase 1 on b(r) { emit y r; } }
input l: R by k; input r: R by k; input i: R; input d: D by tau;
output joined: R; output counts: R; output groups: D by tau;
var $m: map<i64, i64> = {}; var $t: i64 = 0; var $g: map<string, i64> = {}; var $w: deque<R> = {};
(l1, $w) <- delay(l, $w);
(m) <- either(l1, r);
(p) <- pick(m);
(i1, i2) <- copy(i);
(f) <- window(i1);
(s, $t) <- total(f, $t);
(joined) <- turns(p, s);
(k) <- keep(i2);
(counts, $m) <- tally(k, $m);
(d1) <- rows(d);
@Parallel() @Keys(s) (groups, $g) <- group(d1, $g);
operator copy(x: R) -> (a: R, b: R) { on x(r) { emit a r; emit b r; } }
"""
)


def chain_items() -> dict[str, list[Any]]:
    return {
        "l": [(n // 3, "l", n) for n in range(60)],
        "r": [(n // 2, "é" * 9, n % 5) for n in range(50)],
        "i": [(n % 13, "", n) for n in range(150)],
        "d": [(n, ((n % 5, "x" * (n % 3), n % 4),) * (n % 3), ((1, "yé", 2),) * (n % 2)) for n in range(40)],
    }


@pytest.mark.usefixtures("no_evaluator")
def test_everything_that_compiles_runs_as_machine_code():
    made, found, summary = go(StandIn(2), CHAIN, chain_items(), Options(batch=16, workers=2))
    assert {stage.kind for stage in made.stages} == set(StageKind)
    assert all(found.values())
    assert not summary.remarks


@pytest.mark.usefixtures("no_evaluator")
def test_tables_of_arrow_stay_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a Parquet file are never Python values between the file and the executors."""
    text = (
        HEAD + "input b: R by k; output bo: R by k; var $m: map<string, i64> = {}; (bo, $m) <- count(b, $m);"
    )
    items = [(n // 3, "xé"[n % 2], n) for n in range(100)]
    _, expected, _ = go(REFERENCE, text, {"b": items}, Options())
    graph = compile_source(Source("p.river", text)).graph
    pq.write_table(
        pa.table(dict(zip("ksv", map(list, zip(*items, strict=True)), strict=True))), tmp_path / "b.parquet"
    )
    queue = graph.queues["b"]
    source = open_source(
        tmp_path / "b.parquet", queue.type, name="b", on_error=OnError.parse("stop"), batch=16, by=queue.by
    )

    def refused(*_: Any) -> Any:
        raise AssertionError("values are asked for")

    monkeypatch.setattr(columnar, "_batch", refused)
    found: list[Any] = []
    counted: list[int] = []
    backend = StandIn()
    made = backend.plan(graph, Platform(2), Options(batch=16, workers=2))
    backend.run(made, {"b": Reading(source, counted.append)}, {"bo": found.extend})
    assert found == expected["bo"]
    assert sum(counted) == len(items)


def test_what_python_runs_is_told_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(expressions._RULES, "re_test")
    text = """river 1;
type R = {pattern: string, text: string};
input r: R;
operator turn(o: bool) -> (q: bool) { on o(x) { emit q not x; } }
operator find(r: R) -> (o: bool) {
  on r(x) {
    if len(re_strs(regex(x.pattern), x.text)) > 1 { emit o true; }
    emit o re_test(regex(x.pattern), x.text);
  }
}
operator look(r: R) -> (o: list<string>) { on r(x) { emit o re_strs(regex(x.pattern), x.text); } }
operator two(r: R) -> (a: R, b: R) { on r(x) { emit a x; emit b x; } }
(a, b) <- two(r);
(o) <- find(a);
(q) <- turn(o);
(p) <- look(b);
output q: bool;
output p: list<string>;
"""
    items = {"r": [("a+", "xaa"), ("b", "c"), ("a+", "")] * 9}
    _, found, summary = go(StandIn(2), text, items, Options(batch=8, workers=2))
    _, expected, _ = go(REFERENCE, text, items, Options())
    assert found == expected
    (remark,) = summary.remarks
    assert remark.code == "native-refused"
    assert remark.message == "`find#1` is not compiled, which is many times slower: `re_test`"
    assert remark.span is not None
    assert remark.span.source.name == "p.river"
    assert summary.host_calls["find#1"] == 27
    assert summary.host_calls["look#3"] >= 2
    assert len(summary.host_calls) == 2


@pytest.mark.slow
@pytest.mark.parametrize("native", ["on", "off", "debug"])
def test_results_counts_and_state_are_those_of_other_backends(native):
    options = Options(batch=16, workers=2, native=native)
    seen: list[Any] = []
    for backend in (MULTICORE, StandIn(1)):
        made, found, summary = go(backend, CHAIN, chain_items(), options)
        variables = observed_variables(made.graph, summary.variables)
        fired = {name: n for name, n in summary.fired.items() if "group" not in name}  # it is fired by parts
        seen.append((found, variables, fired))
    assert seen[1] == seen[0]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(text=graphs(6), items=contents(9), batch=st.sampled_from([1, 4, 4096]), out=st.sets(st.integers(0, 9)))
def test_graphs_with_some_operators_that_the_evaluator_runs(text, items, batch, out):
    graph = compile_source(Source("p.river", text)).graph
    given_ = {name: [items[name]] for name in graph.inputs}
    seen: list[Any] = []
    for backend in (REFERENCE, StandIn()):
        found: dict[str, list[Any]] = {name: [] for name in graph.outputs}
        with without_code(out):
            ready = backend.plan(graph, Platform(2), Options(batch=batch, workers=2))
            summary = backend.run(ready, given_, {name: got.extend for name, got in found.items()})
        seen.append((found, observed_variables(graph, summary.variables)))
    assert seen[1] == seen[0]


@pytest.mark.slow
@few
@given(text=programs(4), items=data(), out=st.sets(st.integers(0, 9)), seed=st.integers(0, 9))
def test_stages_with_some_operators_that_the_evaluator_runs(text, items, out, seed):
    options = Options(batch=7, workers=2)
    _, expected, meaning = go(REFERENCE, text, items, options)
    with without_code(out):
        ready, found, summary = go(StandIn(seed), text, items, options)
    assert found == expected
    variables = [observed_variables(ready.graph, s.variables) for s in (summary, meaning)]
    assert variables[0] == variables[1]


@pytest.mark.slow
@few
@given(items=st.lists(ROWS, max_size=30), batch=st.sampled_from([1, 5, 99]))
def test_state_is_the_same_text(items, batch):
    text = f"""{HEAD}
input a: R; output o: R; output p: R; var $m: map<i64, i64> = {{}}; var $p: map<{{k: i64, s: string}}, i64> = {{}};
var $t: i64 = 0; var $w: deque<R> = {{}};
operator both(x: R) -> (a: R, b: R) {{ on x(r) {{ emit a r; emit b r; }} }}
operator keeps(x: R; $t: i64, $w: deque<R>) -> (y: R) {{ on x(r) {{ $t = $t +% r.v; push_back($w, r); emit y r; }} }}
(b, c) <- both(a); (o, $m) <- tally(b, $m); (d, $t, $w) <- keeps(c, $t, $w); (p, $p) <- pairs(d, $p);"""
    told: list[Any] = []
    for native in ("on", "off"):
        made, _, summary = go(StandIn(), text, {"a": items}, Options(batch=batch, workers=2, native=native))
        types = {v.name: v.type for v in made.graph.variables}
        told.append({name: to_plain(types[name])(value) for name, value in summary.variables.items()})
    assert told[0] == told[1]


# ------------------------------------------------------------------------------------------------------------ traps


def trapped(backend: Any, text: str, items: dict[str, list[Any]], **options: Any) -> tuple[Any, ...]:
    with pytest.raises(Trap) as caught:
        go(backend, text, items, Options(batch=3, workers=2, **options))
    trap = caught.value
    return trap.code, trap.operator, trap.site, trap.diagnostic(), trap.operands, trap.item, trap.span


RISKY = """
type K = {k: i64, v: i64};
operator items(x: K) -> (y: K) { on x(r) { emit y {k: r.k, v: div.trunc(6, r.v)}; } }
operator keys(x: K; $m: map<i64, i64>) -> (y: K) {
  on x(r) { with n = $m[r.k] else 0 { n = n + 1; emit y {k: r.k, v: div.trunc(6, r.v)}; } }
}
operator first(x: K; $t: i64) -> (y: K) { on x(r) { $t = $t + 1; emit y {k: r.k, v: div.trunc(6, r.v)}; } }
operator windows(x: K) -> (y: K) { on x[peek 3, pop 2](w) { emit y {k: w[0].k, v: div.trunc(6, w[2].v)}; } }
operator phases(a: K, b: K) -> (y: K) {
  phase 2 on a(r) { emit y {k: r.k, v: div.trunc(6, r.v)}; } phase 1 on b(r) { emit y {k: r.k, v: div.trunc(7, r.v)}; }
}
operator merges(a: K by k, b: K by k) -> (y: K) {
  on merge(a(p), b(q)) { if p is p { emit y {k: p.k, v: div.trunc(6, p.v)}; } if q is q { emit y q; } }
}
operator marks(x: K by k; $t: i64) -> (y: K by k) {
  on x(r) { $t = r.v; emit y r; } on mark(k) { emit y {k: k, v: div.trunc(6, $t)}; mark y k; }
}
operator word(x: K) -> (y: K) { on x(r) { if r.v == 0 { trap "zero"; } emit y r; } }
"""
USES = {
    "items": "input a: K; output o: K; (o) <- items(a);",
    "keys": "input a: K; output o: K; var $m: map<i64, i64> = {}; (o, $m) <- keys(a, $m);",
    "first": "input a: K; output o: K; var $t: i64 = 0; (o, $t) <- first(a, $t);",
    "windows": "input a: K; output o: K; (o) <- windows(a);",
    "phases": "input a: K; input b: K; output o: K; (o) <- phases(a, b);",
    "merges": "input a: K by k; input b: K by k; output o: K; (o) <- merges(a, b);",
    "marks": "input a: K by k; output o: K by k; var $t: i64 = 0; @Steady() (o, $t) <- marks(a, $t);",
    "word": "input a: K; output o: K; (o) <- word(a);",
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.usefixtures("no_evaluator")
def test_traps_are_those_of_the_evaluator(use):
    text = "river 1;\n" + RISKY + USES[use]
    a = [(n, (n - 14) * (n - 17)) for n in range(30)]
    items = {"a": a, "b": [(n, n - 11) for n in range(30)]}
    items = {name: found for name, found in items.items() if f"input {name}:" in text}
    found = trapped(StandIn(1), text, items)
    expected = trapped(MULTICORE, text, items, native="off")
    assert found[:5] == expected[:5]
    assert found[6] == expected[6]
    assert (found[5] is None) == (use in ("windows", "merges", "marks"))


@pytest.mark.parametrize("native", ["on", "off"])
def test_items_that_trap_are_left_out_where_that_is_wanted(native):
    text = (
        "river 1;\n" + RISKY + "input a: K; output o: K; (b) <- items(a); (c) <- windows(b); (o) <- items(c);"
    )
    items = {"a": [(n, n % 5) for n in range(40)]}
    told: list[Any] = []
    options = Options(batch=7, workers=2, on_trap=told.append, native=native)
    _, found, summary = go(StandIn(1), text, items, options)
    expected = go(REFERENCE, text, items, Options(batch=7, on_trap=lambda _: None))
    assert found == expected[1]
    assert summary.skipped == expected[2].skipped
    assert len(told) == sum(summary.skipped.values())


def test_without_llvmlite_the_evaluator_runs_and_one_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "available", lambda: False)
    _, found, summary = go(StandIn(1), CHAIN, chain_items(), Options(batch=16, workers=2))
    _, expected, silent = go(StandIn(1), CHAIN, chain_items(), Options(batch=16, workers=2, native="off"))
    assert found == expected
    assert [remark.code for remark in summary.remarks] == ["native-missing"]
    assert not silent.remarks


def test_code_is_loaded_once_in_a_process() -> None:
    compiled._made.cache_clear()
    for _ in range(2):
        go(StandIn(1), CHAIN, chain_items(), Options(batch=16, workers=2))
    held = compiled._made.cache_info()
    assert held.misses == held.currsize


# ---------------------------------------------------------------------------------------------------------- columns


def as_items(piece: Piece, type_: t.Type) -> tuple[Any, ...]:
    items = columns.as_batch(type_, piece.items).values()
    return list(piece.places), items, piece.marks


KEYS = [
    t.I64, t.U64, t.I32, t.F64, t.BOOL, t.STRING, t.BYTES, t.TIME, t.Decimal(9, 2), t.Optional(t.STRING), t.List(t.I64),
    t.Tuple((t.I64, t.STRING)), t.Record((("a", t.F32), ("b", t.Optional(t.I64)))),
]  # fmt: skip


@few
@given(key=st.sampled_from(KEYS), more=st.sampled_from([(), (2,)]), data=st.data(), count=st.integers(1, 4))
def test_columns_are_divided_as_values_are(key, more, data, count):
    type_ = t.Record((("n", t.I64), ("key", key), ("s", t.STRING)))
    items = data.draw(st.lists(values_of(type_, 3), max_size=8))
    split, channel_of = (
        columns.splitter(type_, (1, *more), count, rows=False),
        columns.hashed(type_, (1, *more), count),
    )
    assert split is not None
    found = split(Piece(range(len(items)), Batch.of(type_, items), ((1, 5),)))
    for channel, piece in enumerate(found):
        places = [n for n, item in enumerate(items) if channel_of(item) == channel]
        assert as_items(piece, type_) == (places, [items[n] for n in places], ((1, 5),))


def test_a_key_that_may_be_missing_has_the_channel_of_one_that_is_always_there() -> None:
    """Rows of two inputs meet whose key may be missing in one of them alone."""
    for kind, keys in ((t.STRING, ["", "a", "bc"]), (t.I64, [0, -1, 7])):
        plain, optional = (t.Record((("key", each),)) for each in (kind, t.Optional(kind)))
        there, maybe = (columns.hashed(each, (0,), 8) for each in (plain, optional))
        assert [there((key,)) for key in keys] == [maybe((key,)) for key in keys]
        assert [there((key,)) for key in keys] == [hash64(kind, key) % 8 for key in keys]
        assert maybe((None,)) == there((keys[0],))


ROW = t.Record((("k", t.I64), ("s", t.STRING), ("v", t.I64)))
DELTA = t.Record((("tau", t.I64), ("ins", t.List(ROW)), ("del", t.List(ROW))))
SIDE = st.lists(ROWS, max_size=4).map(tuple)


@few
@given(sides=st.lists(st.tuples(SIDE, SIDE), max_size=8), count=st.integers(1, 4), seed=st.randoms())
def test_deltas_are_divided_and_joined_again(sides, count, seed):
    items = [(n, *both) for n, both in enumerate(sides)]
    split = columns.splitter(DELTA, (1, 0), count, rows=True)
    assert split is not None
    found = split(Piece(range(len(items)), Batch.of(DELTA, items)))
    both = t.Tuple((t.STRING, t.I64))
    for channel, piece in enumerate(found):
        expected = [
            (n, *(tuple(r for r in side if hash64(both, (r[1], r[0])) % count == channel) for side in sides_))
            for n, *sides_ in items
        ]
        kept = [
            (n, *sides_)
            for (n, *sides_), (_, *whole) in zip(expected, items, strict=True)
            if any(sides_) or (channel == 0 and not any(whole))
        ]
        assert as_items(piece, DELTA) == ([n for n, *_ in kept], kept, ())
    coder = marshal.coder(DELTA)
    parts = [(marshal.place_bytes(p.places), coder.encode(p.items), ()) for p in found]
    seed.shuffle(parts)
    joined = columns.gathered(DELTA, parts, rows=True)
    by_value = marshal.joined(
        [
            Piece(marshal.read_places(at, len(got)), got)
            for at, data, _ in parts
            for got in [coder.decode(data)]
        ],
        rows=True,
    )
    assert as_items(joined, DELTA) == (list(by_value.places), by_value.items, ())


@given(places=st.lists(st.integers(0, 99), unique=True).map(sorted))
def test_places_travel(places):
    data = marshal.place_bytes(places)
    assert list(marshal.read_places(data, len(places))) == places
    assert list(marshal.numbers(marshal.longs(places))) == places
    assert (data == b"") == (places == list(range(len(places))))


def test_a_task_says_how_operators_run() -> None:
    graph = compile_source(Source("p.river", CHAIN)).graph
    made = plan(graph, Platform(2), Options(native="debug"))
    program = task.portable(made)
    told = {task.read(task.text(made, stage, program)).native for stage in made.stages}
    assert told == {"debug"}


def test_a_program_travels_with_the_languages_whose_functions_it_calls() -> None:
    """Also where nothing but its own operators does: no template of a language is left in it."""
    text = "t: {ts: int; s: string} stream by ts; o: stream = select cast(s as int) as n from t;"
    made = plan(compile_source(Source("q.cql", text)).graph, Platform(2), Options())
    program = task.portable(made)
    assert program.namespaces == ("cql",)
    assert list(task.verified(program).outputs) == ["o"]
