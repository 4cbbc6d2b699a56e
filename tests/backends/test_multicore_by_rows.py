"""Operators that keep apart the rows of deltas, on several workers: the results of one, to the byte, rows in order.

`now` makes them run in shards after their first batches, however cheap they are.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.multicore import BACKEND, by_rows, sharded
from backends.multicore.by_rows import ByRowsOperate
from backends.multicore.regions import Alone, Region, region
from backends.native.batch import Batch
from backends.native.deltas import DeltaDealer, behind, instants, rising, woven
from river.backend import Options
from river.driver import Compiled, compile_source, observe
from river.il.annotations import annotated
from river.il.carried import carries, carries_by_key
from river.il.model import instance_model
from river.il.parse import parse
from river.il.regions import ByRows, chain, divided, divided_together, passed
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source
from river.testing import laws, seeds

if TYPE_CHECKING:
    from river.il.graph import Graph

TWO = Platform(2)
OPEN = {"gate": "open"}
WAYS = [
    Options(1, 4, 4),
    *(Options(w, b, n, experiment=OPEN) for w, b, n in ((2, 1, 1), (3, 7, 2), (5, 64, 64))),
]

HEAD = "requests: { ts: int; size: int; origin: string } stream by ts;\n"
NOW = """counts: relation = select origin, count(*) as n from requests[range 3] group by origin having count(*) > 1;
answers: stream by ts
  = rstream(select r.origin, r.size, c.n from requests[now] as r, counts as c where r.origin = c.origin);
"""

TYPES = """river 1;
type R = {k: string, v: i64};
type S = {v: i64, k: string, n: i64};
type D = {tau: i64, ins: list<R>, del: list<R>};
type E = {tau: i64, ins: list<S>, del: list<S>};
input d: D by tau;
"""
CHAIN = """
var $m: map<string, {n: i64, was: i64?}> = {};
var $w: map<string, deque<S>> = {};
operator sums(d: D by tau; $m: map<string, {n: i64, was: i64?}>) -> (o: E by tau) {
  on d(x) {
    var touched: list<R> = [];
    for r in x.ins { with e = $m[r.k] else {n: 0, was: none} { e.n = e.n + 1; push(touched, r); } }
    for r in x.del { with e = $m[r.k] else {n: 0, was: none} { e.n = e.n - 1; push(touched, r); } }
    var ins: list<S> = [];
    var del: list<S> = [];
    for r in touched {
      let part = div.trunc(100, 7 - r.v);
      with e = $m[r.k] else {n: 0, was: none} {
        if e.was is w { push(del, {v: r.v, k: r.k, n: w}); }
        if e.n > 0 { push(ins, {v: r.v, k: r.k, n: part}); push(ins, {v: 0, k: r.k, n: e.n}); e.was = e.n; }
        if e.n == 0 { drop e; }
      }
    }
    emit o {tau: x.tau, ins: ins, del: del};
  }
}
operator last(d: E by tau; $w: map<string, deque<S>>) -> (o: E by tau) {
  on d(x) {
    var gone: list<S> = [];
    for r in x.ins { with w = $w[r.k] else {} { push_back(w, r); if len(w) > 2 { push(gone, pop_front(w)); } } }
    if len(x.ins) + len(gone) > 0 { emit o {tau: x.tau, ins: x.ins, del: gone}; }
  }
}
(q, $m) <- sums(d, $m);
(o, $w) <- last(q, $w);
output o: E by tau;
"""


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether operators could be divided, by operator that asked for it."""
    found: list[bool] = []
    before = ByRowsOperate._divided

    def noted(task: ByRowsOperate) -> bool:
        found.append(before(task))
        return found[-1]

    monkeypatch.setattr(ByRowsOperate, "_divided", noted)
    return found


@pytest.fixture
def now(done: list[bool], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Divided when two batches have been fired, however cheap they are."""
    for module, name in (
        (sharded, "GAIN"), (sharded, "LEAST"), (by_rows, "LARGE"), (by_rows, "BUSY"), (by_rows, "BETTER")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(by_rows, "SURE", 1)
    return done


def compiled(text: str, name: str = "by_rows.cql") -> Compiled:
    return compile_source(Source(name, text))


ONE = TYPES + CHAIN.partition("operator last")[0].replace("var $w: map<string, deque<S>> = {};", "")
ONE += "(o, $m) <- sums(d, $m); output o: E by tau;"


def requests(count: int, seed: int) -> list[tuple[int, int, str]]:
    chance, at = seeds.chance("by rows", seed), 0
    found: list[tuple[int, int, str]] = []
    for _ in range(count):
        at += chance.choice([0, 0, 0, 0, 0, 1, 1, 2, 9])
        found.append((at, chance.randrange(6), f"a name that is not short {chance.randrange(5)}"))
    return found


def deltas(count: int, seed: int) -> list[Any]:
    """Deltas of type D: some without rows, most with rows of several keys, in any order."""
    chance = seeds.chance("deltas", seed)

    def some() -> list[tuple[str, int]]:
        return [(f"k{chance.randrange(5)}", chance.randrange(7)) for _ in range(chance.randrange(5))]

    return [(3 * i, some(), some()) for i in range(count)]


@pytest.mark.slow
def test_what_a_promise_keeps_apart_is_the_same_for_all_workers(done: list[bool]) -> None:
    program = compile_source(Source("by_rows.cql", HEAD + NOW))
    given_ = {"requests": requests(70, 1)}
    expected = observe(program, "reference", given_, Options())
    assert len(expected["answers"]) > 9
    for options in WAYS:
        assert observe(program, "multicore", given_, options) == expected, options
    assert done == [True] * 3
    assert set(expected) == {"answers", "$requests_now", "$requests_ins"}


@pytest.mark.slow
def test_what_is_seen_to_be_kept_apart_is_the_same_for_all_workers(done: list[bool]) -> None:
    program = compile_source(Source("chain.river", TYPES + CHAIN))
    given_ = {"d": deltas(40, 2)}
    expected = observe(program, "reference", given_, Options())
    for options in (*WAYS, Options(3, 7, 9, native="debug", experiment=OPEN)):
        found = observe(program, "multicore", given_, options)
        assert found == expected, options
    assert done == [True] * 4


@pytest.mark.slow
def test_order_inside_deltas_is_kept(now: list[bool]) -> None:
    """`observe` compares deltas as bags; here rows stand in order. They are divided when something has been fired on."""
    graph = verify(parse(Source("chain.river", TYPES + CHAIN)), Library.of({}))
    given_ = deltas(60, 3)
    whole: list[Any] = []
    BACKEND.run(BACKEND.plan(graph, TWO, Options(1)), {"d": [given_]}, {"o": whole.extend})
    many = laws.after(graph, laws.REGIONS, 4)
    for batch in (5, 30):
        found: list[Any] = []
        plan = BACKEND.plan(many, Platform(4), Options(4, batch, 8))
        summary = BACKEND.run(
            plan, {"d": [given_[i : i + batch] for i in range(0, 60, batch)]}, {"o": found.extend}
        )
        assert found == whole
        assert summary.fired == {"sums#0": 60, "last#1": 60}
    assert now == [True] * 2


@pytest.mark.parametrize("at", [(17,), (23, 8, 9)])
def test_what_stands_before_a_delta_that_traps_is_delivered(at: tuple[int, ...], done: list[bool]) -> None:
    graph = laws.after(verify(parse(Source("chain.river", TYPES + CHAIN)), Library.of({})), laws.REGIONS, 3)
    more = (("k1", 7), ("k2", 7), ("k3", 7))
    given_ = [
        (tau, (*ins, *more) if tau // 3 in at else tuple(ins), tuple(gone))
        for tau, ins, gone in deltas(30, 4)
    ]
    found: list[list[Any]] = []
    for options in (Options(1), Options(3, 4, 4, experiment=OPEN)):
        found.append([])
        with pytest.raises(Trap) as caught:
            BACKEND.run(BACKEND.plan(graph, Platform(3), options), {"d": [given_]}, {"o": found[-1].extend})
        assert caught.value.code == "division-by-zero"
        assert caught.value.item is not None
        assert caught.value.item[1] == given_[min(at)]
    assert found[0] == found[1]
    assert done


WINDOW = """stays: relation = select origin, size, count(*) as n from requests[range 3] group by origin, size;
most: stream by ts = istream(select origin, max(n) as n, sum(size) as m from stays group by origin);
"""


LAST = "most: stream by ts = istream(select origin, size from requests[partition by origin rows 1]);\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "chained", "kept"),
    [
        (WINDOW, ("group_stays#2", "group_most#3", "istream_most#4"), ("stays_groups", "most_groups")),
        (LAST, ("istream_most#2",), ("most_window_requests",)),
    ],
)
def test_a_chain_from_a_window_on_is_one_region(
    query: str, chained: tuple[str, ...], kept: tuple[str, ...], now: list[bool]
) -> None:
    """Rows come, stay, and leave in shards: what is sent stands in the order of one worker, marks and the end included."""
    graph = compiled(HEAD + query).graph
    given_ = requests(300, 7)
    found: list[list[Any]] = []
    summaries: list[Any] = []
    for options in (Options(1), Options(2, 3, 8), Options(5, 40, 64)):
        workers = options.workers or 1
        many = graph if workers == 1 else laws.after(graph, laws.REGIONS, workers)
        plan = BACKEND.plan(many, Platform(workers), options)
        found.append([])
        source = [given_[i : i + options.batch] for i in range(0, len(given_), options.batch)]
        summaries.append(BACKEND.run(plan, {"requests": source}, {"most": found[-1].extend}))
        if workers > 1:
            (first, *others) = (node.region for node in plan.nodes if isinstance(node.region, Region))
            assert len(first.behind) == len(others) == len(chained)
    assert found[1:] == found[:1] * 2
    assert len(found[0]) > 100
    for each in summaries:
        for name in kept:
            assert sorted(each.variables[name].items()) == sorted(summaries[0].variables[name].items())
        for name in chained:
            assert each.fired[name] == summaries[0].fired[name]
    assert now == [True] * 2


@pytest.mark.slow
@pytest.mark.parametrize(("head", "then"), [("r.v", "7"), ("0", "7 - r.v")])
def test_a_trap_in_a_chain_is_told_at_its_operator_and_instant(head: str, then: str, now: list[bool]) -> None:
    text = (TYPES + CHAIN).replace("div.trunc(100, 7 - r.v)", f"div.trunc(100, 7 - {head})")
    text = text.replace("for r in x.ins { with w", f"for r in x.ins {{ let p = div.trunc(9, {then}); with w")
    graph = laws.after(verify(parse(Source("chain.river", text)), Library.of({})), laws.REGIONS, 3)
    given_ = [
        (tau, (*ins, *(9 * [("k1", 7), ("k2", 7), ("k3", 7)])) if tau == 54 else tuple(ins), tuple(gone))
        for tau, ins, gone in deltas(30, 4)
    ]
    found: list[Any] = []
    for options in (Options(1), Options(3, 2, 4)):
        sent: list[Any] = []
        with pytest.raises(Trap) as caught:
            BACKEND.run(
                BACKEND.plan(graph, Platform(3), options),
                {"d": [given_[i : i + 6] for i in range(0, 30, 6)]},
                {"o": sent.extend},
            )
        found.append((sent, caught.value.code, caught.value.operator, caught.value.item))
    assert found[0] == found[1]
    assert found[0][1] == "division-by-zero"
    assert now == [True]


def test_instants_that_come_twice_are_not_joined(done: list[bool]) -> None:
    graph = verify(parse(Source("chain.river", TYPES + CHAIN)), Library.of({}))
    given_ = [(i // 3, *rest) for i, (_, *rest) in enumerate(deltas(12, 5))]
    found: list[list[Any]] = []
    for options in (Options(1), Options(2, 8, 8, experiment=OPEN)):
        found.append([])
        plan = BACKEND.plan(laws.after(graph, laws.REGIONS, 2), TWO, options)
        BACKEND.run(plan, {"d": [given_]}, {"o": found[-1].extend})
    assert found[0] == found[1]
    assert done


class Clocks:
    """The clocks of a machine where each step takes a second: of a run that is at it for a part `busy` of the time.

    `had`: the processors that the process has on the average.
    """

    def __init__(self, busy: float, had: float) -> None:
        self.calls, self.busy, self.had = 0, busy, had

    def thread_time(self) -> float:
        self.calls += 1  # before and after a step
        return float(self.calls)

    def perf_counter(self) -> float:
        return self.calls / 2 / self.busy

    def process_time(self) -> float:
        return self.had * self.perf_counter()


@pytest.mark.parametrize(
    ("busy", "had", "wanted"), [(0.95, 1.2, True), (0.6, 1.2, False), (0.95, 1.8, False)]
)
def test_they_are_divided_where_the_run_waits_for_them_and_processors_are_left(
    busy: float, had: float, wanted: bool, done: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_rows, "LARGE", 0)
    monkeypatch.setattr(by_rows, "time", Clocks(busy, had))
    graph = laws.after(verify(parse(Source("one.river", ONE)), Library.of({})), laws.REGIONS, 2)
    given_ = [deltas(60, 6)[i : i + 5] for i in range(0, 60, 5)]
    BACKEND.run(BACKEND.plan(graph, TWO, Options(2, 5, 8)), {"d": given_}, {})
    assert done == [True] * wanted


@pytest.mark.parametrize(("work", "wanted"), [([6.0], True), ([5.0, 1.0], True), ([3.0, 3.0], False)])
def test_a_chain_is_divided_only_if_the_run_would_wait_for_one_of_its_operators(
    work: list[float], *, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six seconds of work in seven, in which the process has had eight: two that run side by side keep two workers busy."""
    clocks = SimpleNamespace(perf_counter=lambda: 7.0, process_time=lambda: 8.0)
    monkeypatch.setattr(by_rows, "time", clocks)
    task: Any = SimpleNamespace(_possible=True, _timed=9, _clock=0.0, _processors=0.0, _work=work, _degree=2)
    assert ByRowsOperate._waited_for(task, 0.5) == wanted


def test_a_chain_that_stays_whole_is_as_it_would_be_without_regions(done: list[bool]) -> None:
    graph = laws.after(verify(parse(Source("chain.river", TYPES + CHAIN)), Library.of({})), laws.REGIONS, 2)
    given_ = [deltas(60, 6)[i : i + 5] for i in range(0, 60, 5)]
    found: list[list[Any]] = []
    for options in (Options(1), Options(2, 5, 8)):
        found.append([])
        summary = BACKEND.run(BACKEND.plan(graph, TWO, options), {"d": given_}, {"o": found[-1].extend})
        assert summary.fired == {"sums#0": 60, "last#1": 60}
    assert found[0] == found[1]
    assert done == []


def test_who_is_led_is_fired_on_as_much_as_who_leads() -> None:
    graph = laws.after(compiled(HEAD + LAST).graph, laws.REGIONS, 2)
    given_ = [(at, at + i, f"origin {i}") for at in range(40) for i in range(40)]
    summary = BACKEND.run(BACKEND.plan(graph, TWO, Options(2)), {"requests": [given_]}, {})
    assert summary.metrics is not None
    batches = {name: each.batches for name, each in summary.metrics.operators.items()}
    assert summary.fired["istream_most#2"] == 40
    assert batches["istream_most#2"] == batches["last_by_most_requests#1"]


def test_cheap_ones_and_those_with_few_rows_stay_whole(done: list[bool]) -> None:
    program = compile_source(Source("by_rows.cql", HEAD + NOW))
    observe(program, "multicore", {"requests": requests(200, 3)}, Options(2))
    assert done == []


# ------------------------------------------------------------------------------------------------ columns

ROW = t.Record((("k", t.STRING), ("v", t.I64)))
DELTA = t.Record((("tau", t.I64), ("ins", t.List(ROW)), ("del", t.List(ROW))))
SIDE = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c", "a text of some length"]), st.integers(0, 3)), max_size=5
)


@pytest.mark.slow
@given(st.lists(st.tuples(SIDE, SIDE), max_size=6), st.integers(1, 4), st.integers(0, 3))
def test_what_is_dealt_and_put_together_is_as_before(
    sides: list[tuple[list[Any], list[Any]]], count: int, skipped: int
) -> None:
    values = [(10 * i, tuple(ins), tuple(gone)) for i, (ins, gone) in enumerate(sides)]
    batch = Batch.of(DELTA, values)[min(skipped, len(values)) :]
    values = values[skipped:]
    dealer = DeltaDealer.of(DELTA, ((0,),), count)
    assert dealer is not None
    parts = dealer.deal(batch)
    homes: dict[str, int] = {}
    for part in parts:
        assert [tau for tau, *_ in part.deltas.values()] == [values[i][0] for i in part.positions]
        for _, ins, gone in part.deltas.values():
            assert all(homes.setdefault(row[0], part.shard) == part.shard for _, row in (*ins, *gone))
            assert [seq for seq, _ in (*ins, *gone)] == sorted({seq for seq, _ in (*ins, *gone)})
    if parts:
        assert woven(DELTA, [part.deltas for part in parts]).values() == values
    assert sum(len(part.deltas) for part in parts) >= len(values)
    assert instants([part.deltas for part in parts]) == len(values)


@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=6), st.integers(1, 4))
def test_where_rows_may_stay_all_shards_get_all_instants_and_no_tag_comes_twice(
    sides: list[tuple[list[Any], list[Any]]], count: int
) -> None:
    dealer = DeltaDealer.of(DELTA, ((0,),), count, lasting=True)
    assert dealer is not None
    tags: list[int] = []
    for turn in range(3):
        values = [(10 * i + turn, tuple(ins), tuple(gone)) for i, (ins, gone) in enumerate(sides)]
        parts = dealer.deal(Batch.of(DELTA, values))
        assert [part.shard for part in parts] == list(range(count))
        assert {tuple(part.positions) for part in parts} == {tuple(range(len(values)))}
        found = sorted(
            seq for part in parts for _, ins, gone in part.deltas.values() for seq, _ in (*ins, *gone)
        )
        assert not tags or not found or found[0] > tags[-1]
        tags += found
        for part in parts:
            behind(part.deltas, 56)
        assert woven(DELTA, [part.deltas for part in parts]).values() == values
        gone_ = [seq for part in parts for _, _, gone in part.deltas.values() for seq, _ in gone]
        assert all(seq >> 56 == 1 for seq in gone_)
    assert len(set(tags)) == len(tags) == 3 * sum(len(ins) + len(gone) for ins, gone in sides)


def test_how_far_instants_rise() -> None:
    for taus, wanted in (((), 0), ((5,), 1), ((1, 2, 3), 3), ((1, 2, 2, 3), 2), ((4, 1), 1)):
        assert rising(Batch.of(DELTA, [(tau, [], []) for tau in taus])) == wanted


# ------------------------------------------------------------------------------------------------ what may be divided

MAP = "$m: map<string, i64>"
COUNTED = "with n = $m[r.k] else 0 { n = n + 1; }"


def how(body: str, variable: str = MAP, initial: str = "{}", use: str = "", after: str = "") -> ByRows | str:
    text = f"""{TYPES} operator f(d: D by tau; {variable}) -> (o: D by tau) {{ on d(x) {{ {body} }} }}
var {variable} = {initial}; {use} (o, $m) <- f(d, $m); output o: D by tau; {after}"""
    graph: Graph = verify(parse(Source("how.river", text)), Library.of({}))
    found = divided(graph, graph.instances[0])
    assert isinstance(found, ByRows | str)
    return found


LOOP = f"for r in x.ins {{ {COUNTED} }} emit o x;"
UNSEEN = "may send rows of which it is not seen what they are made of"
TOGETHER = "cannot be given parts of a delta: it looks at the rows of an instant together"
SENT = "var a: list<R> = []; {} if len(a) > 0 {{ emit o {{tau: x.tau, ins: a, del: []}}; }}"
IN, OUT = (f"for r in x.{side} {{ {COUNTED} push(a, r); }}" for side in ("ins", "del"))
SEEN = ByRows(("k",), (((0,),),), promised=False)
FILLS = (
    'push(a, {k: "k", v: len(x.ins)});',
    "a = x.ins;",
    "for i in 0 .. 2 { for r in x.ins { push(a, r); } }",
)
LIST, PUT = "$m: list<i64>", "push($m, 0); emit o x;"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((LOOP,), SEEN),
        ((SENT.format(IN + OUT),), SEEN),
        ((SENT.format(OUT + IN),), UNSEEN),
        (
            (LOOP.replace("emit o x", "emit o {tau: x.tau, ins: x.ins, del: bag_minus(x.del, x.ins)}"),),
            SEEN,
        ),
        ((LOOP, MAP, '{("a"): 1}'), "has `$m`, which is not empty at first"),
        ((LOOP.replace("for r", "for i, r"),), TOGETHER),
        ((PUT, LIST, "[]"), "has state that is not known to be kept by key: `$m`"),
        ((PUT, LIST, "[]", "@Apart(v, k)"), ByRows(("v", "k"), (((1,), (0,)),), promised=True)),
        *(((f"push($m, 0); {SENT.format(fill)}", LIST, "[]", "@Apart(k)"), UNSEEN) for fill in FILLS),
        ((LOOP, MAP, "{}", "@Apart(v)", "result $all = union($m);"), "has `$m`, which is part of the result"),
    ],
)
def test_what_may_be_divided_by_rows(arguments: tuple[str, ...], wanted: ByRows | str) -> None:
    assert how(*arguments) == wanted


def test_what_is_kept_for_a_restart_stays_in_one_piece() -> None:
    text = f"{TYPES} operator f(d: D by tau; {MAP}) -> (o: D by tau) {{ on d(x) {{ {LOOP} }} }}"
    use = f"var {MAP} = {{}}; @Parallel(2) @Region(r, time_merge, k) (o, $m) <- f(d, $m); output o: D by tau;"
    graph = verify(parse(Source("kept.river", text + use)), Library.of({}))
    (node,) = graph.instances
    assert isinstance(region(graph, node, 2, kept=False), Region)
    assert isinstance(region(graph, node, 2, kept=True), Alone)


# ------------------------------------------------------------------------------------------------ chains


def chained(*uses: str) -> Graph:
    """The operators of CHAIN, and what is used of them."""
    text = TYPES + CHAIN[: CHAIN.index("(q, $m) <-")] + " ".join(uses)
    return verify(parse(Source("chained.river", text)), Library.of({}))


def chained_by(key: str, also: str = "") -> Graph:
    """Both in a region by `key`; `also`: what is said of the second."""
    region = f"@Parallel(2) @Region(r, time_merge, {key})"
    return chained(
        f"{region} (q, $m) <- sums(d, $m);", f"{also} {region} (o, $w) <- last(q, $w);", "output o: E by tau;"
    )


@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        (chained_by("k"), ByRows(("k",), (((0,),),), promised=False)),
        (chained_by("v"), "not all of them keep rows apart by `v`"),
        (chained_by("k", "@Keys(v, k)"), "`last` keeps rows apart by (k), not by `v`"),
        (chained_by("k", "@Keys(k)"), ByRows(("k",), (((0,),),), promised=False)),
        (chained_by("k", "@Group(a)"), "`last` is in another group than the one before it"),
    ],
)
def test_what_may_be_divided_together(graph: Graph, wanted: ByRows | str) -> None:
    members = chain(graph, "r")
    assert members == (0, 1)
    keys = annotated(graph.instances[0].use).regions[0].keys
    assert divided_together(graph, members, keys) == wanted
    found = [region(graph, each, 2, kept=False) for each in graph.instances]
    if isinstance(wanted, str):
        assert found == [Alone(f"is in a region that cannot be divided: {wanted}")] * 2
    else:
        assert [(each.behind, each.first) for each in found if isinstance(each, Region)] == [
            ((1,), 0),
            ((), 0),
        ]


WAITS = """operator wait(d: D by tau; $w: deque<{t: i64, r: R}>) -> (o: D by tau) {
  fn leave(ref w: deque<{t: i64, r: R}>, now: i64) {
    while len(w) > 0 and front(w).t + 5 < now {
      let came = front(w).t;
      var gone: list<R> = [];
      while len(w) > 0 { if front(w).t != came { break; } push(gone, pop_front(w).r); }
      emit o {tau: came + 5, ins: [], del: gone};
    }
  }
  on d(x) { leave($w, x.tau); for r in x.ins { push_back($w, {t: x.tau, r: r}); } emit o {tau: x.tau, ins: x.ins, del: []}; }
  on mark(k) { leave($w, k); mark o k; }
}
var $w: deque<{t: i64, r: R}> = []; @Steady() (o, $w) <- wait(d, $w); output o: D by tau;
"""


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", True),
        ("push(gone, pop_front(w).r)", "push(gone, pop_back(w).r)", False),
        ("push(gone, pop_front(w).r)", "push(gone, front(w).r); let a = pop_front(w)", False),
        ("push(gone, pop_front(w).r);", "let a = pop_front(w); if a.r.v > 0 { push(gone, a.r); }", False),
        ("push(gone, pop_front(w).r)", 'let a = pop_front(w); push(gone, {k: "", v: 0})', False),
        ("r: r}); }", "r: r}); push_back($w, {t: x.tau, r: r}); }", False),
        ("for r in x.ins { push_back", "for r in x.del { push_back", False),
        (
            "{ push_back($w, {t: x.tau, r: r}); }",
            "{ for i in 0 .. 2 { push_back($w, {t: 0, r: r}); } }",
            False,
        ),
        ("ins: x.ins, del: []", "ins: x.ins, del: x.del", False),
        ("ins: x.ins, del: []", "ins: reverse(x.ins), del: []", False),
        ("ins: x.ins, del: []", "ins: [r for r in x.ins], del: []", False),
        ("emit o {tau: x.tau, ins: x.ins, del: []}", "emit o x", False),
    ],
)
def test_what_only_keeps_rows_and_passes_them_on(old: str, new: str, *, wanted: bool) -> None:
    text = (TYPES + WAITS).replace(old, new) if old else TYPES + WAITS
    (node,) = verify(parse(Source("waits.river", text)), Library.of({})).instances
    assert isinstance(node.operator, typed.Operator)
    assert carries(node.operator) == wanted


LASTS = """operator lasts(d: D by tau; $w: map<string, deque<R>>) -> (o: D by tau) {
  on d(x) {
    var gone: list<R> = [];
    for r in x.ins {
      let k = r.k;
      with w = $w[k] else {} { push_back(w, r); if len(w) > 2 { push(gone, pop_front(w)); } }
    }
    emit o {tau: x.tau, ins: x.ins, del: gone};
  }
}
var $w: map<string, deque<R>> = {}; (o, $w) <- lasts(d, $w); output o: D by tau;
"""


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", True),
        ("push(gone, pop_front(w))", "push(gone, front(w))", False),
        ("push(gone, pop_front(w))", 'let a = pop_front(w); push(gone, {k: "", v: 0})', False),
        ("push(gone, pop_front(w))", "push(gone, r)", False),
        ("push_back(w, r);", "push_back(w, {k: r.k, v: 0});", False),
        ("push_back(w, r);", "push_back(w, r); push_back(w, r);", False),
        ("push_back(w, r);", "for s in x.ins { push_back(w, s); }", False),
        ("push_back(w, r);", "push_back(w, x.ins[0]);", False),
        ("push_back(w, r);", "if len(w) > 0 { let a = pop_front(w); push_back(w, a); }", False),
        ("for r in x.ins", "for r in x.del", False),
        ("len(w) > 2 {", 'len(w) > 2 { w[0].k = "";', False),
        ("ins: x.ins, del: gone", "ins: x.ins, del: x.del", False),
    ],
)
def test_what_only_keeps_rows_by_key_and_passes_them_on(old: str, new: str, *, wanted: bool) -> None:
    text = (TYPES + LASTS).replace(old, new) if old else TYPES + LASTS
    (node,) = verify(parse(Source("lasts.river", text)), Library.of({})).instances
    assert isinstance(node.operator, typed.Operator)
    assert carries_by_key(node.operator) == wanted
    assert not carries(node.operator)
    assert not wanted or passed(node, instance_model(node))[0] == (("k", "k"),)
