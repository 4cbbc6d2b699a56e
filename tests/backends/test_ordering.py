"""The ordering structures one call at a time and on real threads, and the heuristics by the paper's formulas."""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from backends.firing import instance
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from backends.multicore.ordering.heuristics import (
    DEFAULT,
    HEURISTICS,
    HeuristicConstants,
    Measurements,
    Operator,
    chain,
    cumulative,
    items_per_slice,
)
from backends.multicore.ordering.hybrid import HybridQueue
from backends.multicore.ordering.keyed import Part, by_position
from backends.multicore.ordering.partitioned import PartitionedQueues
from backends.multicore.ordering.reorder import NOTHING, FailedResult, LockedReorder, ReorderBuffer, Wait
from backends.multicore.ordering.shared import SharedQueue
from backends.multicore.ordering.worklist import Worklist
from river.diagnostics import InternalError
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import Mark
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ORDERS = (ReorderBuffer, LockedReorder)
KEYED = (HybridQueue, PartitionedQueues, SharedQueue)
orders = pytest.mark.parametrize("scheme", ORDERS)
keyed = pytest.mark.parametrize("scheme", KEYED)


def always() -> bool:
    return True


# -- reordering


@given(st.permutations(range(12)), st.sampled_from(ORDERS))
def test_results_leave_in_order_and_as_soon_as_they_can(serials: list[int], scheme: Any) -> None:
    sent: list[int] = []
    order = scheme(12, sent.append, always)
    come: set[int] = set()
    for serial in serials:
        assert order.admits(serial)
        assert order.hand_in(serial, serial)
        come.add(serial)
        due = next(i for i in range(13) if i not in come)
        assert sent == list(range(due))
        assert not order.pending


def merger(template: str) -> Callable[[int, Any], list[Any]]:
    """A merge of three channels of the standard library, at work: what it sends when something comes in on a channel."""
    item = "{seq: i64, v: i64} by seq" if "merge" in template else "i64"
    inputs = " ".join(f"input i{channel}: {item};" for channel in range(3))
    text = f"river 1; operator m = std.{template}; {inputs} (o) <- m(i0, i1, i2); output o: i64;"
    graph = verify(parse(Source("merger.river", text)), Library.of({}))
    (node,) = graph.instances
    queues = {name: Queue(name, UNBOUNDED, None, 0) for name in graph.queues}
    ports, outs = inputs_of(node, graph, queues, (), columns=False), outputs_of(node, queues, ())
    setting = instance.Setting(node.operator, ports, outs, [], 8, None)
    made = instance.make(setting, None, lambda: None)

    def comes(channel: int, item: Any) -> list[Any]:
        queues[f"i{channel}"].put(item if isinstance(item, Mark) else [item])
        while made.fire():
            pass
        made.drain()
        sent = list[Any]()
        while (chunk := queues["o"].take()) is not None:
            sent += cast("list[Any]", chunk)
        return sent

    return comes


def test_a_new_item_at_the_three_mergers() -> None:
    """One comes on channel 1. Paper: Auto-parallelizing (seed 000) Fig. 4."""
    turns = merger("rr_join<T = i64, w = [1, 1, 1]>")
    assert [turns(0, 10), turns(0, 11), turns(2, 12)] == [[10], [], []]
    assert turns(1, 13) == [13, 12, 11], "channel 1 was next, then 2 and 0 had something"
    assert turns(2, 14) == [], "and it is next again"
    for numbers in ORDERS:
        sent: list[int] = []
        order = numbers(16, sent.append, always)
        for serial in (0, 1, 2, 3, 4, 6, 9, 7):
            order.hand_in(serial, serial)
        assert sent == [0, 1, 2, 3, 4], "each firing sends one, so 5 has to come"
        order.hand_in(5, 5)
        assert sent[5:] == [5, 6, 7], "8 is next"
    pulses = merger("merge_seq<T = i64, n = 3>")
    sent = [x for channel, seq in ((0, 6), (0, 10), (2, 11)) for x in pulses(channel, (seq, seq))]
    assert sent == [], "5 may still come on channel 1"
    assert pulses(1, (8, 8)) == [6, 8], "it was left out; 9 may still come"
    assert pulses(1, Mark(11)) == [10], "it was left out, says the pulse"


@given(
    st.permutations(range(8)), st.sets(st.integers(0, 7)), st.sets(st.integers(0, 7)), st.sampled_from(ORDERS)
)
def test_nothing_is_sent_after_the_first_failure(
    serials: list[int], failing: set[int], nothing: set[int], scheme: Any
) -> None:
    sent: list[int] = []
    order = scheme(8, sent.append, always)
    for serial in serials:
        result = NOTHING if serial in nothing else serial
        order.hand_in(serial, FailedResult(ValueError(serial), -serial) if serial in failing else result)
    first = min(failing, default=8)
    assert sent == [i for i in range(first) if i not in nothing] + ([-first] if failing else [])
    assert (order.failure is None) == (not failing)
    assert order.failure is None or order.failure.args == (first,)
    assert order.admits(8) == (not failing)


@orders
def test_admits_as_many_as_there_are_places(scheme: Any) -> None:
    order = scheme(3, list[int]().append, always)
    assert [order.admits(i) for i in range(5)] == [True, True, True, False, False]
    order.hand_in(1, 1)
    assert not order.admits(3)
    order.hand_in(0, 0)
    assert [order.admits(i) for i in range(3, 6)] == [True, True, False]


def test_a_serial_number_without_a_place_is_a_mistake() -> None:
    with pytest.raises(InternalError, match="not admitted"):
        ReorderBuffer(2, print, always).hand_in(2, "x")


@orders
def test_who_finds_no_room_says_so_and_the_rest_comes_later(scheme: Any) -> None:
    unsent: list[str] = []
    got: list[str] = []
    room = False

    def drain() -> bool:
        if room:
            got.extend(unsent)
            unsent.clear()
        return not unsent

    order = scheme(4, unsent.append, drain)
    assert not order.hand_in(0, "a")
    assert not order.hand_in(1, "b")
    assert order.pending
    assert (unsent, got) == (["a"], [])
    assert not order.flush()
    room = True
    assert order.flush()
    assert got == ["a", "b"]
    assert not order.pending


@orders
def test_a_worklist_gives_no_number_without_a_place_or_an_input(scheme: Any) -> None:
    inputs = ["a", "b", "c"]
    order = scheme(2, print, always)
    worklist = Worklist(order, lambda: inputs.pop(0) if inputs else None)
    assert [worklist.take() for _ in range(3)] == [(0, "a"), (1, "b"), Wait.NEXT]
    worklist.hand_in(0, NOTHING)
    assert [worklist.take() for _ in range(2)] == [(2, "c"), Wait.NEXT]
    assert worklist.given == 3


@orders
def test_who_takes_and_finds_no_room_is_told_so(scheme: Any) -> None:
    sent: list[str] = []
    worklist: Worklist[str, str] = Worklist(scheme(2, sent.append, lambda: not sent), lambda: "a")
    assert worklist.take() == (0, "a")
    assert not worklist.hand_in(0, "made")
    assert worklist.take() is Wait.ROOM


@orders
def test_a_worker_is_alone_when_all_that_was_given_out_is_sent(scheme: Any) -> None:
    unsent: list[str] = []
    order = scheme(3, unsent.append, lambda: not unsent)
    worklist: Worklist[str, str] = Worklist(order, lambda: "input")
    assert worklist.alone()
    worklist.take()
    assert not worklist.alone()
    worklist.take()
    worklist.hand_in(0, "made")
    worklist.hand_in(1, NOTHING)  # all are back, one waits for room
    assert not worklist.alone()
    unsent.clear()
    order.flush()
    assert worklist.alone()


# -- keyed operators

Row = tuple[int, int]  # key and value
PARTITIONS = 4


def split(batch: list[Row]) -> Sequence[Part[list[Row]]]:
    found: dict[int, list[int]] = {}
    for position, (key, _) in enumerate(batch):
        found.setdefault(key % PARTITIONS, []).append(position)
    return [Part(key, [batch[i] for i in at], at) for key, at in found.items()]


class Sums:
    """Running sums by key, in a state for each partition; a value of 13 fails. Two at once in a partition are noticed."""

    def __init__(self) -> None:
        self.sums: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.busy = [threading.Lock() for _ in range(PARTITIONS)]

    def operate(self, partition: int, rows: list[Row]) -> Any:
        assert self.busy[partition].acquire(blocking=False)
        sums, made = self.sums[partition], []
        try:
            for key, value in rows:
                if value == 13:
                    return FailedResult(ValueError(key), made)
                sums[key] = sums.get(key, 0) + value
                made.append([(key, sums[key])] * (value % 3))
            return made
        finally:
            self.busy[partition].release()


def one_worker(batches: Sequence[list[Row]]) -> tuple[list[Row], int | None]:
    """What is sent, flat, and the key that fails."""
    sums: dict[int, int] = {}
    sent: list[Row] = []
    for key, value in (row for batch in batches for row in batch):
        if value == 13:
            return sent, key
        sums[key] = sums.get(key, 0) + value
        sent += [(key, sums[key])] * (value % 3)
    return sent, None


def flat(results: Sequence[list[list[Row]]]) -> list[Row]:
    return [row for result in results for made in result for row in made]


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=8), max_size=6)


@given(BATCHES, st.sampled_from(KEYED), st.integers(1, 4))
def test_a_keyed_operator_makes_what_a_loop_makes(
    batches: list[list[Row]], scheme: Any, capacity: int
) -> None:
    sent: list[Any] = []
    order = ReorderBuffer(capacity, sent.append, always)
    queue = scheme(PARTITIONS, order, split, Sums().operate, by_position)
    left = list(batches)
    while left and order.failure is None:
        wait = queue.feed(lambda: left.pop(0) if left else None)
        assert wait is not Wait.ROOM
        if len(left) % 2 or wait is Wait.NEXT:
            for worker in range(PARTITIONS):
                queue.work(worker)
    for worker in range(PARTITIONS):
        assert queue.work(worker)
        assert queue.waiting(worker) == 0
    wanted, failing = one_worker(batches)
    assert flat(sent) == wanted
    assert (order.failure is None) == (failing is None)
    assert order.failure is None or order.failure.args == (failing,)


@keyed
def test_a_join_that_forgets_a_failure_is_a_mistake(scheme: Any) -> None:
    order = ReorderBuffer(1, print, always)
    queue = scheme(PARTITIONS, order, split, Sums().operate, lambda *_: [])
    assert queue.feed(lambda: [(0, 13)]) is None
    with pytest.raises(InternalError, match="failure was lost"):
        queue.work(0)


# -- on threads


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Narrow:
    """A place downstream for a few results, which another thread takes from; who finds no room is called back."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.unsent: list[Any] = []
        self.queue: list[Any] = []
        self.taken: list[Any] = []
        self.sending = threading.Lock()
        self.full = threading.Event()

    def send(self, result: Any) -> None:
        assert self.sending.acquire(blocking=False), "two send at once"
        self.unsent.append(result)
        self.sending.release()

    def drain(self) -> bool:
        assert self.sending.acquire(blocking=False), "two send at once"
        while self.unsent and len(self.queue) < self.bound:
            self.queue.append(self.unsent.pop(0))
        self.sending.release()
        return not self.unsent


def on_threads(
    narrow: Narrow, order: Any, step: Callable[[int], bool], done: Callable[[], bool], workers: int
) -> None:
    """Runs `step` of each worker until all is done; the rest is flushed as there is room."""
    errors: list[BaseException] = []

    def worker(i: int) -> None:
        try:
            while not done() and not errors:
                if not step(i):
                    narrow.full.set()
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=worker, args=(i,)) for i in range(workers)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or narrow.queue or narrow.unsent:
        narrow.full.wait(0.0001)
        while narrow.queue:
            narrow.taken.append(narrow.queue.pop(0))
        if narrow.full.is_set():
            narrow.full.clear()
            if not order.flush():
                narrow.full.set()
    assert errors == []


@orders
@pytest.mark.usefixtures("often")
def test_a_stateless_operator_on_threads(scheme: Any) -> None:
    count, narrow = 600, Narrow(3)
    order = scheme(4, narrow.send, narrow.drain)
    inputs = iter(range(count))
    worklist = Worklist(order, lambda: next(inputs, None))
    task = threading.Lock()

    def step(_worker: int) -> bool:
        with task:
            taken = worklist.take()
        if isinstance(taken, Wait):
            return taken is Wait.NEXT
        return worklist.hand_in(taken[0], NOTHING if taken[1] % 5 == 0 else taken[1])

    on_threads(narrow, order, step, lambda: order.next == count, workers=4)
    assert narrow.taken == [i for i in range(count) if i % 5]


@keyed
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fails", [False, True])
def test_a_keyed_operator_on_threads(scheme: Any, fails: bool) -> None:
    chosen = seeds.chance("ordering", 7)
    batches = [[(int(chosen.gauss(5, 2)) % 10, chosen.randrange(13)) for _ in range(12)] for _ in range(100)]
    if fails:
        batches[70][5] = (3, 13)
        batches[71][0] = (4, 13)
    narrow = Narrow(3)
    order = ReorderBuffer(6, narrow.send, narrow.drain)
    queue = scheme(PARTITIONS, order, split, Sums().operate, by_position)
    inputs = iter(batches)
    task = threading.Lock()

    def step(worker: int) -> bool:
        with task:
            wait = queue.feed(lambda: next(inputs, None))
        return queue.work(worker) and wait is not Wait.ROOM

    def done() -> bool:
        return order.next == len(batches) or order.failure is not None

    on_threads(narrow, order, step, done, workers=PARTITIONS)
    wanted, failing = one_worker(batches)
    assert flat(narrow.taken) == wanted
    assert (order.failure is None) == (failing is None)


# -- heuristics

THREE = chain(
    [
        Operator("parse", queue=100, out=50, cost=2.0, selectivity=0.5, most=4),
        Operator("match", queue=50, out=10, cost=8.0, selectivity=4.0, most=4),
        Operator("count", queue=10, cost=1.0, most=1),
    ]
)
SETTING = HeuristicConstants(capacity=90, slice=4.0)


def chosen_by(name: str, operators: Sequence[Operator] = THREE) -> str | None:
    found = HEURISTICS[name](operators, SETTING)
    return None if found is None else operators[found].name


def test_the_last_in_the_pipeline_is_the_default() -> None:
    assert HEURISTICS["LP"] is DEFAULT
    assert list(HEURISTICS) == ["QST", "LP", "ET", "CT"]


def test_last_in_pipeline_takes_the_last_that_can_run() -> None:
    assert chosen_by("LP") == "count"
    assert chosen_by("LP", [*THREE[:2], evolve(THREE[2], workers=1)]) == "match"
    assert chosen_by("LP", [*THREE[:2], evolve(THREE[2], queue=0)]) == "match"


def test_queue_size_throttling_takes_the_first_below_its_threshold() -> None:
    assert cumulative(THREE) == [0.5, 2.0, 2.0]  # thresholds 10, 40, 40
    assert chosen_by("QST") == "match"
    assert chosen_by("QST", [evolve(THREE[0], out=9), *THREE[1:]]) == "parse"
    assert chosen_by("QST", [THREE[0], evolve(THREE[1], out=40), THREE[2]]) == "count"


def test_queue_size_throttling_runs_what_has_made_nothing_so_far() -> None:
    assert chosen_by("QST", [evolve(THREE[0], selectivity=0.0, out=0)]) == "parse"


def test_estimated_time_takes_the_longest_queue_in_time() -> None:
    assert chosen_by("ET") == "match"  # 200, 400, 10
    assert chosen_by("ET", [THREE[0], evolve(THREE[1], workers=2), THREE[2]]) == "parse"  # 200, 133, 10


def test_current_throughput_takes_the_one_that_has_done_least() -> None:
    spent = [evolve(each, spent=spent) for each, spent in zip(THREE, (10.0, 32.0, 6.0), strict=True)]
    assert chosen_by("CT", spent) == "match"  # 10/1, 32/16, 6/2
    busy = [spent[0], evolve(spent[1], workers=3), spent[2]]
    assert chosen_by("CT", busy) == "match"  # 10, 44/16, 3
    assert (
        chosen_by("CT", [busy[0], evolve(busy[1], workers=4 - 1, spent=40.0), busy[2]]) == "count"
    )  # 10, 3.25, 3


def test_current_throughput_begins_with_what_is_not_known() -> None:
    assert chosen_by("CT", [THREE[0], evolve(THREE[1], cost=0.0), evolve(THREE[2], spent=1.0)]) == "parse"
    never = evolve(THREE[1], selectivity=0.0, spent=1.0)
    assert chosen_by("CT", [evolve(THREE[0], spent=1.0), never]) == "parse"


def test_selectivity_accumulates_over_all_producers() -> None:
    both = [
        Operator("left", 1, selectivity=2.0),
        Operator("right", 1, selectivity=3.0),
        Operator("join", 1, selectivity=0.5, producers=(0, 1)),
    ]
    assert cumulative(both) == [2.0, 3.0, 2.5]


RECORDS = st.lists(
    st.builds(
        Operator,
        name=st.just("x"),
        queue=st.integers(0, 5),
        out=st.integers(0, 200),
        cost=st.floats(0, 1e3),
        selectivity=st.floats(0, 1e3),
        workers=st.integers(0, 3),
        most=st.integers(1, 3),
        spent=st.floats(0, 1e6),
    ),
    max_size=5,
)


@given(RECORDS, st.sampled_from(sorted(HEURISTICS)))
def test_only_what_can_run_is_chosen_and_something_is_unless_all_are_throttled(
    records: list[Operator], name: str
) -> None:
    found = HEURISTICS[name](chain(records), SETTING)
    able = [i for i, each in enumerate(records) if each.queue > 0 and each.workers < each.most]
    assert found is None or found in able
    if name != "QST":
        assert (found is None) == (not able)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6))
def test_throttling_never_stops_a_chain(known: list[tuple[int, int, int]]) -> None:
    """An operator's output is the next one's queue: if all that can run were throttled, nothing would ever move."""
    queues = [queue for queue, _, _ in known]
    records = [
        Operator(str(i), queue, [*queues[1:], 0][i] * 50, cost, selectivity)
        for i, (queue, cost, selectivity) in enumerate(known)
    ]
    assert HEURISTICS["QST"](chain(records), SETTING) is not None


def test_a_meter_follows_what_it_sees() -> None:
    meter = Measurements()
    assert (meter.cost, meter.selectivity) == (0.0, 1.0)
    meter.add(10, 5, 2.0)
    assert (meter.cost, meter.selectivity, meter.spent) == (0.2, 0.5, 2.0)
    for _ in range(200):
        meter.add(10, 20, 1.0)
    assert math.isclose(meter.cost, 0.1, rel_tol=1e-6)
    assert math.isclose(meter.selectivity, 2.0, rel_tol=1e-6)
    meter.window()
    assert meter.spent == 0.0


def test_a_slice_is_a_number_of_items() -> None:
    assert items_per_slice(0.5, SETTING, 100) == 8
    assert items_per_slice(0.0, SETTING, 100) == 100
    assert items_per_slice(9.0, SETTING, 100) == 1
    assert items_per_slice(1e-9, SETTING, 100) == 100
