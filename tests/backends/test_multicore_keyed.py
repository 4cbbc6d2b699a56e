"""Operators with state by key on several workers: the results of the calculus, in whatever way they run.

`always` makes every such operator run in shards from its first batch on, however cheap it is; `slow` lets pieces take a
random time, so that they are done in any order.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.multicore import BACKEND, sharded
from backends.multicore.experiments import EXPERIMENTS
from backends.multicore.parallel import Parallel, portion
from backends.multicore.regions import Region
from backends.multicore.run import Engine
from backends.multicore.sharded import ShardedOperate
from backends.native.operator import NativeOperator
from river.backend import Options
from river.checkpoint import Checkpoint
from river.diagnostics import Rejected
from river.driver import Compiled, compile_source, observe
from river.il.parse import parse
from river.il.regions import Sharded, divided
from river.il.templates import Library
from river.il.verify import verify
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source
from river.testing import laws, seeds
from river.testing.graph_strategies import contents, graphs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backends.multicore.plan import Plan
    from river.il.graph import Graph

TWO = Platform(2)

TEXT = """river 1;
type R = {t: i64, k: string, n: i64};
type S = {t: i64, k: string, n: i64, last: string};
input r: R by t;
var $m: map<string, {n: i64, last: string}> = {("k3"): {n: 7, last: "before"}};
var $c: omap<{a: i64, k: string}, i64> = {};
var $known: map<string, i64> = {("k1"): 1};
operator count(r: R by t; $m: map<string, {n: i64, last: string}>) -> (o: S by t) {
  on r(x) {
    with e = $m[x.k] else {n: 0, last: ""} {
      if x.n > 0 { emit o {t: x.t, k: x.k, n: e.n, last: e.last}; }
      if x.n > 2 { emit o {t: x.t, k: x.k, n: -e.n, last: "second"}; }
      e.n = e.n + 1;
      e.last = x.k + ", which is a long text";
    }
  }
}
operator each(r: S by t; $c: omap<{a: i64, k: string}, i64>, $known: map<string, i64>) -> (o: i64, p: string, q: S by t) {
  on r(x) {
    with c = $c[{a: x.n, k: x.k}] else 0 {
      c = c + 1;
      var more = 0;
      if get($known, x.k) is v { more = v; }
      emit o c + more;
      emit p x.last;
      if c > 1 { emit q x; }
    }
  }
}
@Parallel() (q, $m) <- count(r, $m);
(o, p, s, $c) <- each(q, $c, $known);
output o: i64;
output p: string;
output s: S by t;
"""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the state could be divided, by operator that asked for it."""
    divided: list[bool] = []
    before = ShardedOperate._divided

    def noted(task: ShardedOperate) -> bool:
        divided.append(before(task))
        return divided[-1]

    monkeypatch.setattr(sharded, "GAIN", 0.0)
    monkeypatch.setattr(sharded, "LEAST", 0.0)
    monkeypatch.setattr(ShardedOperate, "_divided", noted)
    return divided


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, before = seeds.chance("multicore keyed", 1), ShardedOperate._operate

    def delayed(task: ShardedOperate, shard: int, piece: Any) -> Any:
        time.sleep(chance.choice([0.0, 0.0, 0.0, 0.0003]))
        return before(task, shard, piece)

    monkeypatch.setattr(ShardedOperate, "_operate", delayed)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = threading.enumerate()
    yield
    laws.check_no_thread_left(before)


def program(text: str) -> Compiled:
    return compile_source(Source("keyed.river", text))


def planned(graph: Graph, options: Options) -> Plan:
    """The plan of a program whose operators are in regions wherever that is safe."""
    return BACKEND.plan(laws.after(graph, laws.REGIONS, options.workers or TWO.cores), TWO, options)


def rows(size: int, seed: int) -> list[tuple[int, str, int]]:
    chance = seeds.chance("multicore keyed", seed)
    found = [(chance.randrange(size), f"k{chance.randrange(9)}", chance.randrange(5)) for _ in range(size)]
    return sorted(found)


BOUNDS = (1, 2, 64)
PAIRS = [
    Options(workers=workers, batch=batch, bound=BOUNDS[(i + j) % 3])
    for (i, workers), (j, batch) in product(enumerate((1, 2, 4)), enumerate((1, 7, 64, 4096)))
]
"""Any two of the three together, with one of the third."""
SOME = [Options(2, 1, 1), Options(4, 7, 2), Options(2, 64, 64, native="debug"), Options(2, 4096, 9)]


@pytest.mark.slow
def test_the_same_for_workers_batches_and_bounds(always: list[bool], slow: None) -> None:
    compiled = program(TEXT)
    given_ = {"r": rows(70, 2)}
    expected = observe(compiled, "reference", given_, Options())
    for options in PAIRS:
        assert observe(compiled, "multicore", given_, options) == expected, options
    several = sum(options.workers != 1 for options in PAIRS)
    # Both operators ask in each of these runs, but for one that had no item yet when it became narrow.
    assert 3 / 4 * 2 * several < len(always) <= 2 * several
    assert all(always)


def test_regions_that_widen_and_narrow_in_the_middle_of_a_run(
    always: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """State is divided when some items have been fired; what has none goes to one worker and to several, at any step."""
    chance, pays = seeds.chance("in the middle", 1), ShardedOperate._pays
    at = [0]
    monkeypatch.setattr(ShardedOperate, "_pays", lambda task: task.machine.fired >= at[0] and pays(task))
    monkeypatch.setattr(ShardedOperate, "_worth", property(lambda _: True))
    monkeypatch.setattr(Parallel, "_worth", property(lambda _: chance.random() < 0.5))
    compiled = program(TEXT)
    given_ = {"r": rows(70, 4)}
    expected = observe(compiled, "reference", given_, Options())
    for workers in (2, 3, 5):
        for at[0] in (1, chance.randrange(2, 60), 69):
            options = Options(workers=workers, batch=chance.choice((1, 7)), bound=chance.choice((1, 64)))
            assert observe(compiled, "multicore", given_, options) == expected, (at, options)
    assert len(always) >= 9
    assert all(always)


WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 7, 64, 4096]),
    workers=st.sampled_from([1, 2, 4]),
    bound=st.sampled_from([1, 2, 64]),
    experiment=st.fixed_dictionaries(
        {},
        optional={
            "scheduler": st.sampled_from(EXPERIMENTS["scheduler"]),
            "reordering": st.sampled_from(EXPERIMENTS["reordering"]),
            "sharding": st.sampled_from(EXPERIMENTS["sharding"]),
        },
    ),
)


@pytest.mark.slow
@given(graphs(6), contents(20), st.lists(WAYS, min_size=2, max_size=2), st.integers(1, 30))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_graphs_give_what_the_calculus_computes(
    always: list[bool], slow: None, text: str, items: Any, ways: list[Options], size: int
) -> None:
    graph = verify(parse(Source("graph.river", text)), Library.of({}))
    laws.check_agrees(BACKEND, graph, {name: items[name] for name in graph.inputs}, TWO, ways, size=size)


@pytest.mark.some(4)
@pytest.mark.slow
@pytest.mark.parametrize("sharding", EXPERIMENTS["sharding"])
@pytest.mark.parametrize("reordering", EXPERIMENTS["reordering"])
def test_the_same_for_all_queues_and_orders(
    sharding: str, reordering: str, always: list[bool], slow: None
) -> None:
    compiled = program(TEXT)
    given_ = {"r": rows(150, 3)}
    expected = observe(compiled, "reference", given_, Options())
    for options in SOME:
        options = evolve(options, experiment={"sharding": sharding, "reordering": reordering})
        found = observe(compiled, "multicore", given_, options)
        assert found == expected, options
    assert bool(always) == (sharding != "off")


@pytest.mark.some(2)
@pytest.mark.parametrize("scheduler", EXPERIMENTS["scheduler"])
def test_the_same_for_all_schedulers(scheduler: str, always: list[bool]) -> None:
    compiled = program(TEXT)
    given_ = {"r": rows(150, 4)}
    expected = observe(compiled, "reference", given_, Options())
    for workers, batch, bound in ((1, 1, 1), (2, 7, 2), (4, 64, 64)):
        options = Options(workers, batch, bound, experiment={"scheduler": scheduler})
        assert observe(compiled, "multicore", given_, options) == expected, options


# ------------------------------------------------------------------------------------------------ traps, ends

TRAP = """river 1;
type R = {k: i64, v: i64};
input r: R;
var $m: map<i64, i64> = {};
operator f(r: R; $m: map<i64, i64>) -> (o: i64) {
  on r(x) { with n = $m[x.k] else 0 { n = n + 1; emit o n; emit o div.trunc(100, x.v); } }
}
(o, $m) <- f(r, $m);
output o: i64;
"""


@pytest.mark.parametrize("zeros", [[0], [37], [99, 41, 40], [5, 6], []])
@pytest.mark.parametrize(("batch", "bound"), [(1, 1), (16, 2), (100, 64)])
def test_everything_before_the_first_item_that_traps_is_delivered(
    zeros: list[int], batch: int, bound: int, always: list[bool], slow: None
) -> None:
    graph = program(TRAP).graph
    items = [(i * 7 % 5, 0 if i in zeros else i + 1) for i in range(100)]
    counts: dict[int, int] = {}
    wanted: list[int] = []
    for key, value in items[: min(zeros, default=100)]:
        counts[key] = counts.get(key, 0) + 1
        wanted += [counts[key], 100 // value]
    for workers in (2, 4):
        found: list[int] = []
        plan = planned(graph, Options(workers=workers, batch=batch, bound=bound))
        sources = {"r": [items[i : i + 25] for i in range(0, 100, 25)]}
        if not zeros:
            summary = BACKEND.run(plan, sources, {"o": found.extend})
            assert summary.fired == {"f#0": 100}
            assert dict(summary.variables["m"]) == counts
        else:
            with pytest.raises(Trap) as caught:
                BACKEND.run(plan, sources, {"o": found.extend})
            assert caught.value.code == "division-by-zero"
            assert caught.value.item is not None
            assert caught.value.item[1] == items[min(zeros)]
        assert found == wanted


def test_keys_that_fall_end_the_run_after_what_came_before(always: list[bool]) -> None:
    text = """river 1;
type R = {k: i64, v: i64};
input r: R;
var $m: map<i64, i64> = {};
operator turn(r: R) -> (o: R by v) { on r(x) { emit o x; } }
operator f(r: R by v; $m: map<i64, i64>) -> (o: i64) { on r(x) { with n = $m[x.k] else 0 { n = n + 1; emit o n; } } }
(q) <- turn(r);
(o, $m) <- f(q, $m);
output o: i64;
"""
    graph = program(text).graph
    for batch in (1, 3, 64):
        found: list[int] = []
        items = [[(i % 3, i) for i in range(20)], [(0, 20), (1, 19), (2, 30)]]
        plan = planned(graph, Options(workers=2, batch=batch))
        with pytest.raises(Trap) as caught:
            BACKEND.run(plan, {"r": items}, {"o": found.extend})
        assert caught.value.code == "order-violation"
        assert found == [*(i // 3 + 1 for i in range(20)), 8]


@pytest.mark.slow
def test_a_long_firing_in_a_shard_is_stopped(always: list[bool]) -> None:
    text = TRAP.replace(
        "emit o n;", "var i = 0; while x.v == 7 and i >= 0 { i = rem.trunc(i + 1, 5); } emit o n;"
    )
    began = time.monotonic()
    plan = BACKEND.plan(
        program(text).graph, TWO, Options(workers=2, batch=4, stopping=lambda: time.monotonic() > began + 0.5)
    )
    with pytest.raises(KeyboardInterrupt):
        BACKEND.run(plan, {"r": ([(i % 3, min(i, 6) + 1)] for i in count())}, {})


def test_a_state_in_shards_is_kept_and_gone_on_from(always: list[bool], tmp_path: Path) -> None:
    compiled = program(TEXT)
    source = tmp_path / "r.csv"
    lines = [f"{t},{k},{n}" for t, k, n in rows(300, 5)]
    source.write_text("t,k,n\n" + "\n".join(lines) + "\n")
    outputs = ("o", "p", "s")
    want = {name: tmp_path / f"want-{name}.csv" for name in outputs}
    got = {name: tmp_path / f"got-{name}.csv" for name in outputs}
    compiled.run({"r": source}, want, workers=1)

    seen = [0]

    def stopping() -> bool:
        seen[0] += 1
        return seen[0] > 2

    folder = tmp_path / "state"
    kept = Checkpoint(folder, every=0.0)
    with suppress(KeyboardInterrupt):
        compiled.run({"r": source}, got, workers=2, batch=8, checkpoint=kept, stopping=stopping)
    compiled.run({"r": source}, got, workers=4, batch=16, checkpoint=kept)
    assert any(always)
    for name in outputs:
        assert got[name].read_bytes() == want[name].read_bytes()


# -------------------------------------------------------------------------------------------- decisions


def test_a_cheap_operator_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardedOperate, "_divided", lambda _: pytest.fail("it is divided"))
    items = [(i % 100, i + 1) for i in range(20_000)]
    plan = planned(program(TRAP).graph, Options(workers=2, batch=1000))
    BACKEND.run(plan, {"r": [items]}, {})


def test_the_gate_may_stand_open(monkeypatch: pytest.MonkeyPatch) -> None:
    divided: list[bool] = []
    before = ShardedOperate._divided
    monkeypatch.setattr(ShardedOperate, "_divided", lambda task: divided.append(before(task)) or divided[-1])
    compiled = program(TEXT)
    given_ = {"r": rows(100, 6)}
    options = Options(2, 16, experiment={"gate": "open"})
    expected = observe(compiled, "reference", given_, Options())
    assert observe(compiled, "multicore", given_, options) == expected
    assert divided == [True, True]


SHARED = """river 1;
type R = {k: i64, v: i64};
input r: R;
var $m: map<i64, i64> = {};
var $n: map<{a: i64, b: i64}, i64> = {};
operator f(r: R; $m: map<i64, i64>) -> (o: R) { on r(x) { with n = $m[x.k] else 0 { n = n + 1; emit o x; } } }
operator g(r: R; $n: map<{a: i64, b: i64}, i64>) -> (o: R) {
  on r(x) { $n[{a: x.k, b: 0}] = 1; if x.v > 0 { $n[{a: 0, b: x.k}] = 1; } emit o x; }
}
operator h(r: R; $n: map<{a: i64, b: i64}, i64>) -> (o: R) { on r(x) { $n[{a: x.v, b: x.k}] = 1; emit o x; } }
operator less(r: R) -> (o: R) { on r(x) { if x.v > 1 { emit o x; } } }
"""


COUNTED = "with n = $m[x.k] else 0 { n = n + 1;"


def shown(*uses: str, **options: Any) -> list[str]:
    graph = verify(parse(Source("plan.river", "\n".join((SHARED, *uses, "output o: R;")))), Library.of({}))
    lines = planned(graph, Options(**options)).show().splitlines()
    return [line.strip() for line in lines if line.startswith("    ")]


HYBRID = "up to 2 workers where it pays: keyed by (k), 8 shards, hybrid queue, reorder buffer"


def test_the_plan_tells_regions_degrees_and_strategies() -> None:
    one = "(o, $m) <- f(r, $m);"
    assert shown(one) == [HYBRID]
    assert shown(one, workers=1) == []
    assert shown(f"@Parallel(1) {one}") == []
    assert shown(f"@Parallel(2) {one}", workers=3) == [HYBRID]
    assert shown(one, workers=40)[0].startswith("up to 40 workers where it pays: keyed by (k), 64 shards")
    locked = {"sharding": "partitioned", "reordering": "locked"}
    assert shown(one, experiment=locked) == [
        "up to 2 workers where it pays: keyed by (k), 2 shards, partitioned queues, reorder buffer with a lock"
    ]
    assert shown(one, experiment={"sharding": "shared"}) == [HYBRID.replace("hybrid", "shared")]
    assert shown(one, experiment={"sharding": "off"}) == ["one worker at a time: as the experiment says"]
    assert shown("(o) <- less(r);") == [
        "up to 2 workers where it pays: without state, shared worklist, reorder buffer"
    ]
    assert shown("(o, $n) <- h(r, $n);") == [HYBRID.replace("(k)", "(v, k)")]
    assert shown("@Keys(k) (o, $n) <- h(r, $n);") == [HYBRID]


def refused(*uses: str) -> list[str]:
    """Why operators cannot be divided."""
    graph = verify(parse(Source("plan.river", "\n".join((SHARED, *uses, "output o: R;")))), Library.of({}))
    return [how for how in (divided(graph, each) for each in graph.instances) if isinstance(how, str)]


def test_why_keyed_state_is_not_divided() -> None:
    assert (
        refused("(q, $m) <- f(r, $m);", "(o, $m) <- f(q, $m);") == ["shares `$m` with another operator"] * 2
    )
    assert refused("(o, $n) <- g(r, $n);") == ["has state that is not known to be kept by key: `$n`"]
    assert refused("(o, $n) <- h(r, $n);") == []


def test_a_region_that_cannot_be_obeyed_is_a_remark() -> None:
    """Regions are what the program says, whoever wrote them; what is not safe is not done."""
    head = "@Parallel(2) @Region(r1, seqno, {}) "
    uses = {
        "k": ("(o, $n) <- h(r, $n);", None),
        "v, k": ("(o, $n) <- h(r, $n);", None),
        "v": (
            "(o, $m) <- f(r, $m);",
            "`f` runs on one worker at a time: it keeps its state by (k), not by `v`",
        ),
    }
    for keys, (use, message) in uses.items():
        text = "\n".join((SHARED, head.format(keys) + use, "output o: R;"))
        plan = BACKEND.plan(verify(parse(Source("plan.river", text)), Library.of({})), TWO, Options())
        assert [(each.code, each.message) for each in plan.remarks] == (
            [] if message is None else [("run-region", message)]
        )
    text = f"{SHARED}\n@Parallel(2) @Region(r1, seqno) (o, $m) <- f(r, $m);\noutput o: R;"
    plan = BACKEND.plan(verify(parse(Source("plan.river", text)), Library.of({})), TWO, Options())
    assert [each.message for each in plan.remarks] == [
        "`f` runs on one worker at a time: it is keyed by (k), and its region names no keys"
    ]


def placed(workers: int, *uses: str) -> Plan:
    """The plan of operators in groups, behind the passes of a run."""
    text = "\n".join((SHARED, *uses))
    return planned(verify(parse(Source("plan.river", text)), Library.of({})), Options(workers=workers))


def test_groups_are_dealt_to_workers_in_the_order_of_the_text() -> None:
    uses = (
        "@Group(b) (p) <- less(r);",
        "@Group(a) (q) <- less(p);",
        "@Group(c) (o) <- less(q);",
        "output o: R;",
    )
    by_workers = {
        1: {"b": range(1), "a": range(1), "c": range(1)},
        2: {"b": range(1), "a": range(1, 2), "c": range(1)},
        3: {"b": range(1), "a": range(1, 2), "c": range(2, 3)},
        5: {"b": range(1), "a": range(1, 3), "c": range(3, 5)},
    }
    for workers, groups in by_workers.items():
        plan = placed(workers, *uses)
        assert plan.groups == groups
        degrees = [node.region.degree if isinstance(node.region, Region) else 1 for node in plan.nodes]
        assert degrees == [len(each) for each in groups.values()]
        told = [(each.code, each.message) for each in plan.remarks]
        alike = {1: "`b`, `a`, `c`", 2: "`b`, `c`"}
        assert (
            told
            == [
                (
                    "run-group",
                    f"the groups {alike[workers]} share a worker: there are more groups than workers",
                )
                for _ in alike
                if workers in alike
            ][:1]
        )


def test_what_cannot_run_on_the_workers_of_its_group_is_a_remark() -> None:
    """A region wider than the group that it is in is narrower, and none if one worker has the group."""
    uses = ("@Group(a) (p) <- less(r);", "@Group(b) @Parallel(3) (o) <- less(p);", "output o: R;")
    (remark,) = placed(2, *uses).remarks
    assert remark.code == "run-region"
    assert remark.message == "`less` runs on one worker at a time: it is in a group that one worker runs"
    wider = placed(4, *uses)
    assert [node.region.degree for node in wider.nodes if isinstance(node.region, Region)] == [2, 2]
    assert wider.remarks == ()


@pytest.mark.parametrize(
    ("ports", "outs", "variable", "body", "reason"),
    [
        ("x: R", "o: R by k", "map<i64, i64>", f"on x(x) {{ {COUNTED} emit o x; mark o x.k; }} }}", "sends marks of its own"),
        (
            "x: D by tau", "o: D by tau", "map<i64, i64>", f"on x(d) {{ for i, x in d.ins {{ {COUNTED} }} }} emit o d; }}",
            "cannot be given parts of a delta: it looks at the rows of an instant together",
        ),
    ],
)  # fmt: skip
def test_keyed_state_that_is_not_divided(
    ports: str, outs: str, variable: str, body: str, reason: str
) -> None:
    type_ = ports.partition(": ")[2].partition(" =")[0]
    text = f"""river 1; type R = {{k: i64, v: i64}}; type D = {{tau: i64, ins: list<R>, del: list<R>}};
operator f({ports}; $m: {variable}) -> ({outs}) {{ {body} }}
input r: {type_}; output {outs}; var $m: {variable} = {{}}; (o, $m) <- f(r, $m);"""
    graph = verify(parse(Source("plan.river", text)), Library.of({}))
    assert divided(graph, graph.instances[0]) == reason


def test_keyed_state_in_a_loop_is_not_divided() -> None:
    text = """river 1;
type R = {k: i64, v: i64};
operator join(a: R, b: R) -> (o: R) { on a(x) { emit o x; } on b(x) { if x.v > 0 { emit o x; } } }
operator f(r: R; $m: map<i64, i64>) -> (o: R, l: R) {
  on r(x) { with n = $m[x.k] else 0 { n = n + 1; emit o x; emit l {k: x.k, v: x.v - 1}; } }
}
var $m: map<i64, i64> = {};
input r: R;
output o: R;
"""
    looping = "(q) <- join(r, l); (o, l, $m) <- f(q, $m);"
    graph = verify(parse(Source("plan.river", text + looping)), Library.of({}))
    assert divided(graph, graph.instances[1]) == "is part of a loop"
    straight = "(o, l, $m) <- f(r, $m); output l: R;"
    graph = verify(parse(Source("plan.river", text + straight)), Library.of({}))
    assert isinstance(divided(graph, graph.instances[0]), Sharded)


def test_who_acts_on_marks_is_not_divided() -> None:
    text = f"""river 1; type R = {{k: i64, v: i64}}; var $m: map<i64, i64> = {{}};
operator f(x: R by k; $m: map<i64, i64>) -> (o: R by k) {{ on x(x) {{ {COUNTED} emit o x; }} }} on mark(k) {{ mark o k; }} }}
input r: R by k; output o: R by k; (o, $m) <- f(r, $m);"""
    graph = verify(parse(Source("plan.river", text)), Library.of({}))
    assert (
        divided(graph, graph.instances[0])
        == "follows the time of all items, and each worker would see that of its own"
    )


@pytest.mark.parametrize(
    ("experiment", "message", "help_"),
    [
        ({"scheduler": "FIFO"}, "`scheduler` cannot be `FIFO`", "it is one of LP, QST, ET, CT"),
        ({"shardin": "off"}, "the backend `multicore` has no experiment `shardin`", "did you mean `sharding`?"),
        (
            {"x": "y"}, "the backend `multicore` has no experiment `x`",
            "experiments: scheduler, reordering, sharding, gate, width",
        ),
    ],
)  # fmt: skip
def test_experiments_that_there_are_not(experiment: dict[str, str], message: str, help_: str) -> None:
    with pytest.raises(Rejected) as caught:
        BACKEND.plan(program(TRAP).graph, TWO, Options(experiment=experiment))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == ("run-experiment", message, help_)


def test_a_backend_without_experiments_says_so() -> None:
    with pytest.raises(Rejected) as caught:
        program(TRAP).run({"r": []}, backend="reference", experiment={"scheduler": "LP"})
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("run-experiment", "it offers none")


def test_no_more_workers_than_are_allowed_and_no_two_fire_the_same_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: dict[str, dict[int, threading.Lock]] = {}
    before = NativeOperator.fire

    def fire(native: NativeOperator, *given_: Any) -> Any:
        mine = used.setdefault(native.operator.name, {}).setdefault(id(native), threading.Lock())
        assert mine.acquire(blocking=False)
        time.sleep(0.001)
        try:
            return before(native, *given_)
        finally:
            mine.release()

    monkeypatch.setattr(NativeOperator, "fire", fire)
    uses = ("@Parallel(2) (q) <- less(r);", "@Parallel(3) (o, $m) <- f(q, $m);", "output o: R;")
    graph = verify(parse(Source("plan.river", "\n".join((SHARED, *uses)))), Library.of({}))
    items = [(i % 7, i) for i in range(200)]
    found: list[Any] = []
    plan = planned(graph, Options(6, 4, 16, experiment={"gate": "open"}))
    summary = BACKEND.run(plan, {"r": [items]}, {"o": found.extend})
    assert found == items[2:]
    assert dict(summary.variables["m"]) == {k: sum(i % 7 == k for i in range(2, 200)) for k in range(7)}
    assert len(used["less"]) == 2
    assert len(used["f"]) <= 12


@given(st.integers(1, 1 << 18), st.integers(0, 1 << 20), st.floats(0, 1e3), st.sampled_from((4e-3, 8e-3)))
def test_so_much_is_handed_out_as_takes_a_slice(most: int, firings: int, seconds: float, aim: float) -> None:
    found = portion(most, firings, seconds, aim)
    assert 1 <= found <= most
    if firings and found > 1:
        assert found * seconds / firings <= aim * 1.001
    if firings and found < most:
        assert (found + 1) * seconds / firings >= aim * 0.999


@pytest.mark.parametrize("state", ["", "; $m: map<i64, i64>"])
def test_few_items_are_tried_before_many_so_that_what_takes_long_is_shared_from_the_start(state: str) -> None:
    """All 300 lie in one batch; whatever a firing takes, the first step must not take them all."""
    counted = "with n = $m[v.k] else 0 { n = n + 1; }" if state else "for i in 0 .. v.k { }"
    text = f"""river 1;
    input x: {{k: i64}}; output y: i64; {"var $m: map<i64, i64> = {};" if state else ""}
    operator f(x: {{k: i64}}{state}) -> (y: i64) {{ on x(v) {{ {counted} emit y v.k * 2; }} }}
    (y{", $m" if state else ""}) <- f(x{", $m" if state else ""});
    """
    results = compile_source(Source("tried.river", text)).run({"x": [(i,) for i in range(300)]}, workers=2)
    assert results["y"].column(0).to_pylist() == [2 * i for i in range(300)]
    metrics = results.summary.metrics
    assert metrics is not None
    assert metrics.operators["f#0"].batches > 1


@pytest.mark.parametrize("turns", [1, 3_000_000])
def test_what_surely_takes_little_is_not_tried_on_few_items_first(turns: int) -> None:
    """How many steps a firing takes is known before it runs: of short ones many are the first, of long ones it is one."""
    text = f"""river 1;
    input x: i64; output y: i64;
    operator f(x: i64) -> (y: i64) {{ on x(v) {{ var s = v; for i in 0 .. {turns} {{ s = s ^ i; }} emit y s; }} }}
    (y) <- f(x);
    """
    graph = compile_source(Source("tried.river", text)).graph
    (task,) = Engine(planned(graph, Options(workers=2)), {}, None)._operators
    assert isinstance(task, Parallel)
    assert task.machine.batch > 1000 if turns == 1 else task.machine.batch == 1
