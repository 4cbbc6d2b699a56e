"""The threaded backend: back-pressure, locks, loops, marks, traps, and how a run ends."""

from __future__ import annotations

import _thread
import itertools
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

from backends.firing.queues import Queue
from backends.locks import lock_each, one_lock
from backends.multicore import BACKEND, assembly
from backends.multicore.parallel import SLICE, WORTH, Firings, Parallel
from backends.multicore.plan import plan
from backends.multicore.run import Engine
from backends.multicore.scheduling.task import Outcome
from backends.multicore.tasks import Operate
from backends.native.batch import Batch
from backends.reference import BACKEND as REFERENCE
from river.backend import BATCH, BOUND, Options
from river.diagnostics import InternalError, Rejected
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import types as t
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source
from river.testing.laws import REGIONS, after, check_no_thread_left

BODIES = Path(__file__).parents[1] / "bodies"
LIBRARY = Library.of({})
MACHINE = Platform(2)


def graph(*lines: str):
    return verify(parse(Source("test.river", "\n".join(["river 1;", *lines]))), LIBRARY)


def run(program, sources, sinks=None, **options):
    """What the outputs got, and the summary."""
    found = {name: [] for name in program.outputs}
    program = after(program, REGIONS, options.get("workers") or MACHINE.cores)
    made = BACKEND.plan(program, MACHINE, Options(**options))
    summary = BACKEND.run(made, sources, {name: found[name].extend for name in found} | (sinks or {}))
    return found, summary


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = threading.enumerate()
    yield
    check_no_thread_left(before)


COPY = "operator copy(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }"
SAME = "operator same(x: i64) -> (y: i64) { on x(v) { emit y v; } }"
ADD = "operator add(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s + v; emit y v; } }"
RARE = "operator rare(x: i64) -> (y: i64) { on x(v) { if rem.trunc(v, 50) == 0 { emit y v; } } }"
PAIR = "operator pair(a: i64, b: i64) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; } }"
CHECK = 'operator check(x: i64) -> (y: i64) { on x(v) { if v == 13 { trap "thirteen"; } emit y v; } }'
LINE = ("input xs: i64;", "output ys: i64;", "(ys) <- {}(xs);")


def line(operator: str, name: str):
    return graph(operator, *(text.format(name) for text in LINE))


# ---------------------------------------------------------------------------------------------- queues


def test_a_queue_counts_items_and_marks_until_they_are_consumed():
    queue = Queue("q", 3, None, 0)
    queue.put([1, 2])
    assert (queue.size, queue.room, queue.take(), queue.take()) == (2, 1, [1, 2], None)
    assert queue.size == 2
    queue.took(2)
    assert (queue.size, queue.room, queue.used) == (0, 3, True)


def test_a_closed_queue_takes_everything_and_keeps_nothing():
    queue = Queue("q", 1, None, 0)
    queue.put([1])
    queue.close()
    queue.put([2, 3])
    assert queue.take() is None
    assert queue.room > 1_000_000


# ---------------------------------------------------------------------------------------------- back-pressure


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_bound_of_one_is_kept(workers, monkeypatch):
    most = {}

    class Watched(Queue):
        def put(self, chunk):
            super().put(chunk)
            most[self.name] = max(most.get(self.name, 0), self.size)

    monkeypatch.setattr(assembly, "Queue", Watched)
    program = graph(
        SAME, "input xs: i64;", "output ys: i64;", "(q) <- same(xs);", "(r) <- same(q);", "(ys) <- same(r);"
    )
    found, summary = run(program, {"xs": [list(range(200))]}, workers=workers, bound=1)
    assert found == {"ys": list(range(200))}
    assert most == {"xs": 1, "q": 1, "r": 1, "ys": 1}
    assert summary.fired == {"same#0": 200, "same#1": 200, "same#2": 200}


def test_a_slow_sink_holds_back_the_source():
    read = itertools.count()
    last = 0

    def source():
        for last_read in read:
            if last_read >= 400:  # the sink takes numbers, too
                return
            yield [last_read]

    ahead = []

    def sink(items):
        nonlocal last
        last = items[-1]
        time.sleep(0.001)
        ahead.append(next(read) - last)

    program = line(SAME, "same")
    run(program, {"xs": source()}, {"ys": sink}, bound=4, batch=4, workers=2)
    assert max(ahead) < 40


def test_two_operators_that_share_a_variable_with_a_full_queue_between_them():
    program = graph(
        ADD, "input xs: i64;", "output ys: i64;", "var $s: i64 = 0;",
        "(q, $s) <- add(xs, $s);", "(ys, $s) <- add(q, $s);",
    )  # fmt: skip
    for workers in (1, 2, 4):
        found, summary = run(program, {"xs": [list(range(300))]}, bound=1, batch=16, workers=workers)
        assert found == {"ys": list(range(300))}
        assert summary.variables == {"s": 2 * sum(range(300))}


def test_a_variable_in_different_places_of_two_operators_is_one():
    program = graph(
        ADD, "operator both(x: i64; $n: i64, $s: i64) -> (y: i64) { on x(v) { $n = $n + 1; $s = $s + v; emit y $s; } }",
        "input xs: i64;", "input zs: i64;", "output ys: i64;", "output us: i64;", "var $s: i64 = 0;", "var $n: i64 = 0;",
        "(ys, $s) <- add(xs, $s);", "(us, $n, $s) <- both(zs, $n, $s);",
    )  # fmt: skip
    for scheme in (one_lock, lock_each):
        made = plan(program, MACHINE, Options(batch=3, workers=3), scheme)
        sinks = {"ys": lambda _items: None, "us": lambda _items: None}
        summary = BACKEND.run(made, {"xs": [[1] * 500], "zs": [[2] * 500]}, sinks)
        assert summary.variables == {"s": 1500, "n": 500}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_quiet_branch_between_a_split_and_a_join_makes_the_full_queue_grow(workers):
    program = graph(
        COPY, RARE, PAIR, "input xs: i64;", "output ys: i64;",
        "(a, b) <- copy(xs);", "(c) <- rare(b);", "(ys) <- pair(a, c);",
    )  # fmt: skip
    found, _ = run(program, {"xs": [list(range(1, 501))]}, bound=1, workers=workers)
    joined = [v for pair in zip(range(1, 501), range(50, 501, 50), strict=False) for v in pair]
    assert found == {"ys": [*joined, 11]}


def test_a_program_that_cannot_move_says_so(monkeypatch):
    monkeypatch.setattr(Operate, "step", lambda *_: Outcome.FULL)
    with pytest.raises(InternalError, match="nothing can run"):
        run(line(SAME, "same"), {"xs": [[1]]})


# ---------------------------------------------------------------------------------------------- loops, marks


def test_a_feedback_loop_runs_until_the_input_ends():
    program = graph(
        "operator join(x: i64, l: i64 = [0]) -> (y: i64) { phase 1 on x(v) { emit y v; } phase 1 on l(v) { emit y v; } }",
        "operator body(x: i64) -> (y: i64, l: i64) { on x[pop 2](w) { emit y w[0] + w[1]; emit l w[0] + w[1]; } }",
        "input xs: i64;", "output ys: i64;", "(j) <- join(xs, loop);", "(ys, loop) <- body(j);",
    )  # fmt: skip
    for bound in (1, 64):
        found, _ = run(program, {"xs": [list(range(100))]}, bound=bound, workers=2)
        assert found == {"ys": list(itertools.accumulate(range(100)))}


def test_a_merge_releases_what_a_heartbeat_allows_before_the_end():
    """Input `b` is silent; what `a` sent must come out while `a` still waits for more."""
    row = "{t: i64, v: i64}"
    program = graph(
        f"operator both(a: {row} by t, b: {row} by t) -> (y: i64) "
        "{ on merge(a(p), b(q)) { if p is p { emit y p.v; } if q is q { emit y q.v; } } }",
        f"input a: {row} by t;", f"input b: {row} by t;", "output ys: i64;", "(ys) <- both(a, b);",
    )  # fmt: skip
    seen = threading.Event()

    def source():
        yield [(t, t) for t in range(10)]
        assert seen.wait(5)
        yield [(10, 10)]

    found, _ = run(
        program, {"a": source(), "b": []}, {"ys": lambda items: seen.set() if 8 in items else None}
    )
    assert found == {"ys": []}
    assert seen.is_set()


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_fission_written_out_keeps_order(batch):
    program = verify(parse(Source("split.river", (BODIES / "d_split_merge.river").read_text())), LIBRARY)
    items = [v if v % 3 else -v for v in range(1, 200)]
    for bound, workers in ((1, 1), (2, 4), (64, 2)):
        found, summary = run(program, {"xs": [items]}, batch=batch, bound=bound, workers=workers)
        assert found == {"ys": [v for v in items if v > 0]}
        assert summary.variables == {"n": len(items)}


def test_the_prework_of_a_delay_comes_first():
    program = verify(parse(Source("delay.river", (BODIES / "c_delay.river").read_text())), LIBRARY)
    found, _ = run(program, {"x": [[1.0, 2.0]]})
    assert found == {"y": [0.0] * 5 + [1.0, 2.0]}


def test_a_starved_operator_lets_the_others_end():
    """Once `pair` has no more from `xs` it takes nothing: the long input must not wait for it."""
    program = graph(PAIR, "input xs: i64;", "input zs: i64;", "output ys: i64;", "(ys) <- pair(xs, zs);")
    found, _ = run(program, {"xs": [[1]], "zs": [[v] for v in range(2, 300)]}, bound=1)
    assert found == {"ys": [1, 2]}


# ---------------------------------------------------------------------------------------------- traps


@pytest.mark.parametrize("workers", [1, 2])
def test_a_trap_ends_the_run_after_what_came_before_it(workers):
    found = []
    with pytest.raises(Trap) as caught:
        run(line(CHECK, "check"), {"xs": [list(range(100))]}, {"ys": found.extend}, workers=workers, batch=64)
    assert (caught.value.code, caught.value.text) == ("assert", "thirteen")
    assert found == list(range(13))


@pytest.mark.parametrize("native", ["on", "off"])
def test_outputs_of_the_firing_that_traps_are_withdrawn(native):
    operator = """operator f(x: i64) -> (a: i64, b: i64) {
      on x(v) { emit a v; emit b v; if v == 2 { trap "two"; } emit a v; }
    }"""
    program = graph(operator, "input xs: i64;", "output a: i64;", "output b: i64;", "(a, b) <- f(xs);")
    found = {"a": [], "b": []}
    with pytest.raises(Trap):
        run(program, {"xs": [[1, 2, 3]]}, {name: found[name].extend for name in found}, native=native)
    assert found == {"a": [1, 1], "b": [1]}


def test_a_trap_ends_a_run_whose_source_has_no_end():
    with pytest.raises(Trap):
        run(line(CHECK, "check"), {"xs": ([v] for v in itertools.count())}, bound=4)


def test_of_two_traps_the_one_upstream_is_raised():
    other = CHECK.replace("check", "other").replace("thirteen", "other")
    program = graph(
        COPY, CHECK, other, SAME, "input xs: i64;", "output a: i64;", "output b: i64;",
        "(p, q) <- copy(xs);", "(q1) <- same(q);", "(b) <- other(q1);", "(a) <- check(p);",
    )  # fmt: skip
    for workers, bound in itertools.product((1, 2, 4), (1, 64)):
        with pytest.raises(Trap) as caught:
            run(program, {"xs": [list(range(50))]}, workers=workers, bound=bound)
        assert caught.value.text == "thirteen"


def test_items_that_trap_are_skipped_where_that_is_allowed():
    reported = []
    found, summary = run(
        line(CHECK, "check"), {"xs": [[12, 13, 14, 13], [13, 15]]}, on_trap=reported.append, workers=2
    )
    assert found == {"ys": [12, 14, 15]}
    assert summary.skipped == {"check#0": 3}
    assert summary.fired == {"check#0": 3}
    assert [d.code for d in reported] == ["trap-assert"] * 3


def test_a_stateful_operator_is_not_skipped():
    operator = "operator f(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = div.trunc(10, v); emit y $s; } }"
    program = graph(
        operator, "input xs: i64;", "output ys: i64;", "var $s: i64 = 0;", "(ys, $s) <- f(xs, $s);"
    )
    with pytest.raises(Trap) as caught:
        run(program, {"xs": [[1, 0]]}, on_trap=lambda _d: None)
    assert caught.value.code == "division-by-zero"


@pytest.mark.parametrize(
    ("join", "skipped"),
    [
        ("phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; }", False),
        ("on a(v) { emit y v; } on b(v) { emit y v; }", True),
    ],
)
def test_replicas_that_are_joined_in_turns_skip_nothing(join, skipped):
    program = graph(
        "operator deal(x: i64) -> (a: i64, b: i64) { on x(v) { if v < 9 { emit a v; } else { emit b v; } } }",
        f"operator join(a: i64, b: i64) -> (y: i64) {{ {join} }}", CHECK, "input xs: i64;", "output ys: i64;",
        "@Region(r, split) (p, q) <- deal(xs);", "@Region(r, replica) (p1) <- check(p);",
        "@Region(r, replica) (q1) <- check(q);", "@Region(r, merge) (ys) <- join(p1, q1);",
    )  # fmt: skip
    if skipped:
        found, _ = run(program, {"xs": [[1, 13, 2, 14]]}, on_trap=lambda _d: None)
        assert sorted(found["ys"]) == [1, 2, 14]
    else:
        with pytest.raises(Trap):
            run(program, {"xs": [[1, 13, 2, 14]]}, on_trap=lambda _d: None)


def test_keys_that_fall_are_an_order_violation():
    row = "{t: i64}"
    program = graph(
        f"operator turn(x: i64) -> (y: {row} by t) {{ on x(v) {{ mark y 0; emit y {{t: v}}; }} }}",
        f"operator look(x: {row} by t) -> (y: i64) {{ on x(r) {{ emit y r.t; }} }}",
        "input xs: i64;", "output ys: i64;", "(q) <- turn(xs);", "(ys) <- look(q);",
    )  # fmt: skip
    found = []
    with pytest.raises(Trap) as caught:
        run(program, {"xs": [[1, 5, 5, 4, 9]]}, {"ys": found.extend})
    assert (caught.value.code, caught.value.operands) == ("order-violation", ((4,),))
    assert found == [1, 5, 5]


def test_a_rate_that_is_not_kept_is_a_rate_violation():
    operator = "operator f(x: i64) -> (y[push 2]: i64) { on x[pop 1](w) { emit y w[0]; for i in 0 .. w[0] { emit y i; } } }"
    found = []
    with pytest.raises(Trap) as caught:
        run(line(operator, "f"), {"xs": [[1, 1, 2]]}, {"ys": found.extend})
    told = caught.value.diagnostic()
    assert (told.code, told.message) == ("trap-rate-violation", "`push` is 2, but a firing emitted 3")
    assert found == [1, 0, 1, 0]
    with pytest.raises(Trap) as caught:
        REFERENCE.run(
            REFERENCE.plan(line(operator, "f"), MACHINE, Options()), {"xs": [[2]]}, {"ys": found.extend}
        )
    assert (caught.value.diagnostic().message, caught.value.span) == (told.message, told.span)


# ---------------------------------------------------------------------------------------------- operators in Python

EXTERN = 'operator f(x: i64; $n: i64) -> (y: i64) = extern python "m:f";'
EXTERN_LINE = (EXTERN, "input xs: i64;", "output ys: i64;", "var $n: i64 = 0;", "(ys, $n) <- f(xs, $n);")


def test_a_python_operator_updates_variables_and_emits():
    def f(port, item, variables):
        variables[0] += item
        yield 0, variables[0]
        yield 0, port

    found, summary = run(graph(*EXTERN_LINE), {"xs": [[1, 2]]}, externs={"m:f": f})
    assert found == {"ys": [1, 0, 3, 0]}
    assert summary.variables == {"n": 3}


def test_operators_that_share_a_variable_fire_one_at_a_time():
    """Each reads, waits and writes: what the other wrote meanwhile would be lost."""

    def f(_port, item, variables):
        before = variables[0]
        time.sleep(0.001)
        variables[0] = before + item
        yield 0, item

    program = graph(
        EXTERN, "input xs: i64;", "input zs: i64;", "output ys: i64;", "output us: i64;", "var $n: i64 = 0;",
        "(ys, $n) <- f(xs, $n);", "(us, $n) <- f(zs, $n);",
    )  # fmt: skip
    sources = {"xs": [[1]] * 30, "zs": [[1]] * 30}
    _, summary = run(program, sources, externs={"m:f": f}, workers=2, batch=1)
    assert summary.variables == {"n": 60}


def test_operators_of_a_group_are_run_by_its_worker_and_those_of_none_by_any():
    seen: dict[str, set[str]] = {name: set() for name in ("m:f", "m:g", "m:h")}

    def told(target):
        def f(_port, item, _variables):
            seen[target].add(threading.current_thread().name)
            time.sleep(1e-4)
            yield 0, item

        return f

    lines = [f'operator {name}(x: i64) -> (y: i64) = extern python "m:{name}";' for name in "fgh"]
    uses = ("@Group(a) (p) <- f(xs);", "@Group(b) (q) <- g(p);", "(ys) <- h(q);")
    program = graph(*lines, "input xs: i64;", "output ys: i64;", *uses)
    items = list(range(60))
    found, _ = run(
        program,
        {"xs": [items[i : i + 4] for i in range(0, 60, 4)]},
        externs={t: told(t) for t in seen},
        batch=2,
        bound=4,
    )
    assert found == {"ys": items}
    assert seen["m:f"] == {"river-worker-0"}
    assert seen["m:g"] == {"river-worker-1"}
    assert seen["m:h"] <= {"river-worker-0", "river-worker-1", "river-reader"}


@pytest.mark.parametrize(
    "f",
    [
        lambda _p, _i, _v: 1 / 0,
        lambda _p, _i, _v: [(0, "text")],
        lambda _p, _i, _v: [(1, 1)],
        lambda _p, _i, _v: [7],
        lambda _p, _i, _v: [(0, 1 << 70)],
        lambda _p, _i, v: v.__setitem__(0, "text") or [],
        lambda _p, _i, v: v.append(1) or [],
    ],
)
def test_a_python_operator_that_fails_traps(f):
    with pytest.raises(Trap) as caught:
        run(graph(*EXTERN_LINE), {"xs": [[1]]}, externs={"m:f": f})
    assert caught.value.code == "extern-failed"
    assert "`m:f`" in caught.value.diagnostic().message


def test_a_python_operator_that_nobody_gave_is_refused_before_the_start():
    with pytest.raises(Rejected) as caught:
        BACKEND.plan(graph(*EXTERN_LINE), MACHINE, Options())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "run-extern"
    assert "`--extern m`" in str(diagnostic.help)


# ---------------------------------------------------------------------------------------------- how a run ends


def test_an_endless_run_is_interrupted():
    interrupted = threading.Timer(0.2, _thread.interrupt_main)
    interrupted.start()
    with pytest.raises(KeyboardInterrupt):
        run(
            line(SAME, "same"),
            {"xs": ([v] for v in itertools.count())},
            {"ys": lambda _items: None},
            workers=2,
        )
    interrupted.join()


def test_an_endless_firing_is_interrupted_too():
    operator = (
        "operator f(x: i64) -> (y: i64) { on x(v) { var n = 0; while n >= 0 { n = n +% 1 - n; } emit y n; } }"
    )
    interrupted = threading.Timer(0.2, _thread.interrupt_main)
    interrupted.start()
    with pytest.raises(KeyboardInterrupt):
        run(line(operator, "f"), {"xs": [[1]]})
    interrupted.join()


def test_a_run_stops_when_it_is_told():
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(
            line(SAME, "same"),
            {"xs": ([v] for v in itertools.count())},
            {"ys": lambda _items: None},
            stopping=lambda: time.monotonic() > start + 0.2,
        )


def test_errors_of_sources_and_sinks_are_raised():
    def source():
        yield [1, 2]
        raise OSError("no more")

    found = []
    with pytest.raises(OSError, match="no more"):
        run(line(SAME, "same"), {"xs": source()}, {"ys": found.extend})
    assert found == [1, 2]

    def sink(items):
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        run(line(SAME, "same"), {"xs": ([v] for v in itertools.count())}, {"ys": sink})


def test_an_input_without_source_is_empty():
    assert run(line(SAME, "same"), {})[0] == {"ys": []}


def test_unknown_inputs_and_outputs_are_refused():
    with pytest.raises(ValueError, match="not inputs of the program: zs"):
        run(line(SAME, "same"), {"zs": []})
    with pytest.raises(ValueError, match="not outputs of the program: zs"):
        run(line(SAME, "same"), {}, {"zs": print})


# ---------------------------------------------------------------------------------------------- the plan


def test_the_plan_is_printed():
    program = graph(
        ADD, "operator fir(x: i64) -> (y: i64) { on x[peek 64, pop 1](w) { emit y w[0]; } }",
        "operator turn(x: i64, l: i64 = [0]) -> (y: i64, m: i64) "
        "{ on x[pop 1](v), l[pop 1](w) { emit y v[0]; emit m w[0]; } }",
        "input xs: i64;", "output ys: i64;", "var $s: i64 = 0;", "var $t: i64 = 0;",
        "(q, $s) <- add(xs, $s);", "(r, $s) <- add(q, $s);", "(u, $t) <- add(r, $t);", "(v) <- fir(u);", "(ys, l) <- turn(v, l);",
    )  # fmt: skip
    made = BACKEND.plan(after(program, REGIONS, 2), MACHINE, Options(bound=16, batch=8))
    assert made.show().splitlines() == [
        "multicore: 2 workers, batches of at most 8 items",
        "  lock 0: $s",
        "  queue xs: bound 16, outside -> add#0",
        "  queue ys: bound 16, turn#4 -> outside",
        "  queue q: bound 16, add#0 -> add#1",
        "  queue r: bound 16, add#1 -> add#2",
        "  queue u: bound 64, add#2 -> fir#3",
        "  queue v: bound 16, fir#3 -> turn#4",
        "  queue l: unbounded: part of a loop, turn#4 -> turn#4",
        "  input xs: up to 2 workers parse a file, whose rows come in its order",
        "  add#0: (q) <- (xs, $s), component 0, locks 0",
        "  add#1: (r) <- (q, $s), component 1, locks 0",
        "  add#2: (u) <- (r, $t), component 2",
        "  fir#3: (v) <- (u), component 3",
        "    up to 2 workers where it pays: without state, shared worklist, reorder buffer",
        "  turn#4: (ys, l) <- (v, l), component 4",
    ]
    assert made.cyclic


@pytest.mark.parametrize(
    ("type_", "options", "batch"),
    [
        ("f32", {}, 64 * BATCH),
        ("{a: i64, b: f64}", {}, 16 * BATCH),
        ("array<i32, 20>", {}, 3 * BATCH),
        ("array<i32, 80>", {}, BATCH),
        ("string", {}, 4 * BATCH),
        ("{a: i64, b: string}", {}, 4 * BATCH),
        ("{a: string, b: array<i64, 10>}", {}, 2 * BATCH),
        ("list<f32>", {}, BATCH),
        ("f32", {"batch": 4}, 4),
        ("f32", {"bound": 4}, BATCH),
        ("f32", {"native": "off"}, BATCH),
    ],
)
def test_more_narrow_items_are_handled_at_once(type_, options, batch):
    program = graph(
        f"operator same(x: {type_}) -> (y: {type_}) {{ on x(v) {{ emit y v; }} }}",
        f"input xs: {type_};", f"output ys: {type_};", "(ys) <- same(xs);",
    )  # fmt: skip
    made = BACKEND.plan(program, MACHINE, Options(**options))
    assert made.batch == batch
    stated = options.get("bound", BOUND)
    assert {edge.bound for edge in made.edges} == {stated * batch // BATCH if batch > BATCH else stated}


def test_batches_are_shorter_where_they_pass_between_operators():
    program = graph(
        "operator same(x: f32) -> (y: f32) { on x(v) { emit y v; } }",
        "input xs: f32;", "output zs: f32;", "(ys) <- same(xs);", "(zs) <- same(ys);",
    )  # fmt: skip
    assert BACKEND.plan(program, MACHINE, Options()).batch == 16 * BATCH


@pytest.mark.parametrize(("between", "longer"), [("f32", 4), ("string", 1)])
def test_texts_that_only_leave_the_program_leave_batches_of_what_comes_before_longer(
    between: str, longer: int
):
    made = {"f32": "v", "string": "string(v)"}[between]
    shown = {"f32": "string(v)", "string": "v"}[between]
    program = graph(
        f"operator first(x: f32) -> (y: {between}) {{ on x(v) {{ emit y {made}; }} }}",
        f"operator show(x: {between}) -> (y: string) {{ on x(v) {{ emit y {shown}; }} }}",
        "input xs: f32;", "output zs: string;", "(ys) <- first(xs);", "(zs) <- show(ys);",
    )  # fmt: skip
    assert BACKEND.plan(program, MACHINE, Options()).batch == longer * BATCH


@pytest.mark.parametrize(("pop", "longer"), [(1, 1.0), (3, 1.5), (100, 1.94)])
def test_batches_are_longer_where_operators_get_a_part_of_the_items(pop: int, longer: float):
    program = graph(
        f"operator few(x: f32) -> (y: f32) {{ on x[pop {pop}](w) {{ emit y w[0]; }} }}",
        "input xs: f32;", "output zs: f32;", "(ys) <- few(xs);", "(zs) <- few(ys);",
    )  # fmt: skip
    batch = BACKEND.plan(program, MACHINE, Options()).batch
    assert batch == pytest.approx(16 * BATCH * longer, rel=0.01)


@pytest.mark.parametrize(("push", "pop", "longer"), [(1, 1, 4), (100, 1, 4), (100, 100, 31)])
def test_batches_of_what_ticks_make_are_as_long_as_of_what_comes_in(push: int, pop: int, longer: int):
    """And as much longer as less is printed."""
    program = graph(
        f"operator source(clock: unit) -> (y[push {push}]: f32) {{ on clock(_) {{ for i in 0 .. {push} {{ emit y 0.5; }} }} }}",
        f"operator few(x: f32) -> (y: string) {{ on x[pop {pop}](w) {{ emit y string(w[0]); }} }}",
        "input ticks: unit;", "output zs: string;", "(ys) <- source(ticks);", "(zs) <- few(ys);",
    )  # fmt: skip
    assert BACKEND.plan(program, MACHINE, Options()).batch // BATCH == longer


def handed_out(operator: str, type_: str = "f32", **options: Any) -> Parallel:
    """The task of an operator `first` on windows of its input, which two workers share. `operator`: its text behind its name."""
    pytest.importorskip("llvmlite")
    program = graph(
        f"operator first{operator}",
        f"input xs: {type_};", f"output ys: {type_};", "@Parallel(2) @Region(r, halo) (ys) <- first(xs);",
    )  # fmt: skip
    (task,) = Engine(BACKEND.plan(program, MACHINE, Options(workers=2, **options)), {}, None)._operators
    assert isinstance(task, Parallel)
    return task


def test_who_sends_much_for_each_window_handles_as_many_windows_at_once_as_fit_into_a_batch():
    task = handed_out("(x: f32) -> (y[push 8]: f32) { on x[pop 8](w) { for v in w { emit y v; } } }")
    task._spent, task._fired = SLICE, float(task._part)
    task._took(time.thread_time() - SLICE, task._part)
    assert task.machine.batch == task._whole == 8 * task._part


@pytest.mark.parametrize(("workers", "fired"), [(1, [1600, 400]), (2, [200, 1600, 200])])
def test_who_reads_an_input_fires_on_a_part_of_a_batch_first_where_others_could_go_on_with_that(
    workers: int, fired: list[int]
):
    pytest.importorskip("llvmlite")
    program = graph(
        "operator sums(x: i64; $n: i64) -> (y: i64) { on x[pop 1](w) { $n = $n +% w[0]; emit y $n; } }",
        "input xs: i64;", "output zs: i64;", "var $a: i64 = 0;", "var $b: i64 = 0;",
        "(ys, $a) <- sums(xs, $a);", "(zs, $b) <- sums(ys, $b);",
    )  # fmt: skip
    engine = Engine(BACKEND.plan(program, MACHINE, Options(workers=workers, batch=1600)), {}, None)
    first, second = engine._operators
    for task, found in ((first, fired), (second, [1600, 400])):
        task.ports[0].queue.put(Batch.of(t.I64, [1] * 2000))
        before, counted = 0, list[int]()
        while task.instance.fired < 2000:
            task.instance.fire()
            counted.append(task.instance.fired - before)
            before = task.instance.fired
        assert counted == found


@pytest.mark.parametrize(
    ("rate", "options", "batch"),
    [
        ("pop 200", {}, 64 * BATCH - 64 * BATCH % 200),
        ("peek 2, pop 1", {}, 64 * BATCH),
        ("pop 7", {"batch": 4}, 4),
        ("pop 7", {"native": "off"}, BATCH - BATCH % 7),
    ],
)
def test_a_batch_has_whole_windows(rate, options, batch):
    program = graph(
        f"operator first(x: f32) -> (y: f32) {{ on x[{rate}](w) {{ emit y w[0]; }} }}",
        "input xs: f32;", "output ys: f32;", "(ys) <- first(xs);",
    )  # fmt: skip
    assert BACKEND.plan(program, MACHINE, Options(**options)).batch == batch


@pytest.mark.parametrize(
    ("type_", "rate", "options", "most"),
    [
        ("f32", "peek 3, pop 1", {}, 64 * BATCH),
        ("f32", "pop 64", {}, 2 * BATCH),  # who sends less than it takes
        ("f32", "pop 64", {"batch": 100}, 100),
        ("array<i32, 80>", "pop 2", {}, BATCH),
    ],
)
def test_workers_are_handed_firings_on_as_many_narrow_items_as_a_batch_or_two_have(
    type_, rate, options, most
):
    task = handed_out(
        f"(x: {type_}) -> (y: {type_}) {{ on x[{rate}](w) {{ emit y w[0]; }} }}", type_, **options
    )
    assert task._part == most


def test_who_keeps_a_task_that_is_worth_handing_out_fires_on_a_batch_if_that_is_soon_done():
    task = handed_out("(x: f32) -> (y: f32) { on x[pop 64](w) { emit y w[0]; } }")
    found = []
    for seconds in (1.2 * SLICE, 0.2 * SLICE, 0.05 * SLICE):
        task._spent, task._fired = seconds, float(task._part)
        task._took(time.thread_time(), task._part)
        found.append(task.machine.batch)
    assert found[0] == task._part < found[1] < found[2] <= task._whole


@pytest.mark.parametrize(("cost", "timed"), [(WORTH / 2, 1), (2 * WORTH, 8)])
def test_of_short_steps_few_are_timed_and_all_that_may_be_worth_handing_out(
    monkeypatch: pytest.MonkeyPatch, cost: float, timed: int
):
    """What a step takes says how soon the next one may be handed out: many items may have come meanwhile."""
    task = handed_out("(x: f32) -> (y: f32) { on x[pop 2](w) { emit y w[0]; } }")
    counted: list[int] = []
    monkeypatch.setattr(Parallel, "_took", lambda _, __, firings: counted.append(firings))
    task._spent, task._fired, task.cost = 0.0, 1.0, cost
    for _ in range(8):
        task.ports[0].queue.put(Batch.of(t.F32, [0.0] * 200))
        task.step(cast("Any", None))
    assert len(counted) == timed


@pytest.mark.parametrize(("limit", "goes"), [(100_000, [1937, 449, 1551]), (4000, [1937])])
def test_few_windows_over_the_end_of_a_batch_go_with_those_behind_them(limit: int, goes: list[int]):
    task = handed_out("(x: f32) -> (y: f32) { on x[peek 64, pop 1](w) { emit y w[0]; } }")
    for _ in range(2):
        task.ports[0].queue.put(Batch.of(t.F32, [0.0] * 2000))
    task._spent, task._fired = SLICE, float(limit)
    taken = task._take()
    assert isinstance(taken, Firings)
    assert [each.stop - each.start for each in (taken, *taken.then)] == goes


@pytest.mark.parametrize("options", [{"batch": 0}, {"bound": 0}, {"workers": -1}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match="must be at least 1"):
        BACKEND.plan(line(SAME, "same"), MACHINE, Options(**options))


def test_what_is_only_read_needs_no_lock():
    reader = "operator look(x: i64; $s: i64) -> (y: i64) { on x(v) { emit y v + $s; } }"
    program = graph(
        reader, "input xs: i64;", "output ys: i64;", "var $s: i64 = 1;", "(q) <- look(xs, $s);", "(ys) <- look(q, $s);"
    )  # fmt: skip
    assert plan(program, MACHINE, Options()).locks == ()
    assert evolve(plan(program, MACHINE, Options()), workers=1).workers == 1
    assert run(program, {"xs": [[1]]})[0] == {"ys": [3]}
