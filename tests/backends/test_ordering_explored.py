"""Every interleaving of small runs of the ordering structures, of their own text; and that planted faults are found.

Run with `-s` to see how many states there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attrs import define, field

from tests.backends.ordering_explorer import Explored, Scenario, Violation, explore, stepped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import SimpleNamespace

    from tests.backends.ordering_explorer import Thread

FAULTLESS = stepped()
Batch = list[tuple[int, str]]  # rows: partition and value


@define
class Downstream:
    """A bounded queue and who takes from it; without bound nobody needs to take.

    `slow`: draining takes more than a moment, so that two at once are seen.
    """

    bound: int | None
    wanted: list[Any]
    slow: bool = False
    unsent: list[Any] = field(factory=list)
    queue: list[Any] = field(factory=list)
    taken: list[Any] = field(factory=list)
    busy: bool = False

    def send(self, result: Any) -> Thread:
        self.enter()
        yield
        self.unsent.append(result)
        self.busy = False

    def drain(self) -> Thread:
        self.enter()
        if self.slow:
            yield
        queue = self.taken if self.bound is None else self.queue
        while self.unsent and self.room:
            queue.append(self.unsent.pop(0))
        self.busy = False
        return not self.unsent

    def enter(self) -> None:
        assert not self.busy, "two send at once"
        self.busy = True

    def consume(self, task: Task) -> Thread:
        for _ in self.wanted:
            yield lambda: bool(self.queue)
            self.taken.append(self.queue.pop(0))
            task.room_made()

    @property
    def room(self) -> bool:
        return self.bound is None or len(self.queue) < self.bound

    @property
    def done(self) -> bool:
        return len(self.taken) == len(self.wanted)


@define
class Task:
    """When a worker may run the operator: one at a time. Each method is a moment under the engine's lock.

    `missed`: somebody woke the task while it ran, so it runs again. `full`: it is set aside until there is room.
    """

    downstream: Downstream
    ready: bool = True
    running: bool = False
    missed: bool = False
    full: bool = False

    def take(self) -> None:
        self.ready, self.missed, self.running = False, False, True

    def queue(self) -> None:
        self.ready, self.running, self.full = True, False, False

    def leave(self, wait: str | None) -> None:
        """`wait`: the name of what the worker was told to wait for."""
        again = self.missed if wait == "NEXT" else not self.downstream.unsent or self.downstream.room
        if wait is None or again:
            self.queue()
        else:
            self.running, self.full = False, wait == "ROOM"

    def wake(self) -> None:
        if self.ready or self.running or self.full:
            self.missed = True
        else:
            self.queue()

    def room_made(self) -> None:
        if self.full:
            self.queue()


def reader(coming: list[Any], inputs: list[Any], task: Task) -> Thread:
    """Brings the inputs that are not there from the beginning."""
    while coming:
        yield
        inputs.append(coming.pop(0))
        task.wake()


def ended(order: Any, downstream: Downstream, fails: object) -> None:
    assert downstream.taken == downstream.wanted, "not what was wanted"
    assert not order.pending
    assert (None if order.failure is None else str(order.failure)) == (None if fails is None else str(fails))


# -- stateless operators


def stateless(
    code: SimpleNamespace,
    *,
    scheme: str = "ReorderBuffer",
    workers: int = 2,
    serials: int = 3,
    capacity: int = 2,
    bound: int | None = None,
    late: int = 0,
    nothing: Collection[int] = (),
    failing: Collection[int] = (),
    marks: Collection[int] = (),
    light: Collection[int] = (),
    looks: Callable[[Any], Thread] | None = None,
) -> Callable[[], Scenario]:
    """Workers on a stateless operator that makes of an input itself. `late`: so many inputs come after the beginning.

    `marks`: inputs that are not fired but handed in by who takes them. `light`: inputs at which a worker that is alone
    keeps the task, fires and sends himself. `looks`: how he finds out, if not by asking the worklist.
    """
    fails = min(failing, default=None)
    before = range(serials if fails is None else fails)
    wanted = [i for i in before if i not in nothing] + ([] if fails is None else [-fails])

    def make() -> Scenario:
        downstream = Downstream(bound, wanted, slow=bool(light))
        task = Task(downstream)
        order = getattr(code, scheme)(capacity, downstream.send, downstream.drain)
        inputs = list(range(serials - late))
        coming = list(range(serials - late, serials))
        worklist = code.Worklist(order, lambda: inputs.pop(0) if inputs else None)

        def made(item: int) -> Any:
            if item in failing:
                return code.FailedResult(Exception(item), -item)
            return code.NOTHING if item in nothing else item

        def together() -> Thread:
            """`Operate.step`."""
            room = yield from downstream.drain()
            if room:
                yield from downstream.send(inputs.pop(0))
                room = yield from downstream.drain()
            return None if room else "ROOM"

        def step() -> Thread:
            """`Parallel.step`: what was taken to be fired, or what to wait for."""
            if inputs and inputs[0] in light:
                alone = yield from (worklist.alone() if looks is None else looks(worklist))
                if alone:
                    wait = yield from together()
                    return None, wait
            taken = yield from worklist.take()
            if isinstance(taken, code.Wait):
                return None, taken.name
            if taken[1] not in marks:
                return taken, None
            room = yield from worklist.hand_in(*taken)
            return None, None if room else "ROOM"

        def worker() -> Thread:
            while True:
                yield lambda: task.ready or downstream.done
                if downstream.done:
                    return
                task.take()
                taken, wait = yield from step()
                yield
                if taken is None:
                    task.leave(wait)
                else:
                    task.queue()
                    yield from worklist.hand_in(taken[0], made(taken[1]))
                    yield
                    task.wake()
                del taken, wait  # they do not matter any more

        def check() -> None:
            assert worklist.given <= order.next + capacity, "more than there is capacity for"

        threads = [worker() for _ in range(workers)]
        if bound is not None:
            threads.append(downstream.consume(task))
        if late:
            threads.append(reader(coming, inputs, task))
        shared = [order, worklist, inputs, coming, downstream, task]
        return Scenario(threads, shared, lambda: ended(order, downstream, fails), check, alike=True)

    return make


def show(name: str, explored: Explored) -> None:
    print(f"\n{name}: {explored}")


SCHEMES = ("ReorderBuffer", "LockedReorder")
STATELESS: list[dict[str, Any]] = [
    {"serials": 3, "capacity": 1},
    {"serials": 3, "capacity": 2},
    {"serials": 2, "capacity": 2, "bound": 1},
    {"serials": 3, "capacity": 2, "nothing": (0, 2)},
    {"serials": 3, "capacity": 2, "failing": (1,)},
    {"serials": 3, "capacity": 3, "failing": (0, 1)},
    {"serials": 2, "capacity": 2, "bound": 1, "failing": (1,)},
    {"serials": 3, "capacity": 2, "marks": (1,)},
    {"serials": 2, "capacity": 2, "late": 1},
    {"serials": 3, "capacity": 2, "light": (1,)},
    {"serials": 3, "capacity": 2, "light": (0, 2)},
]
LARGER: list[dict[str, Any]] = [
    {"workers": 3, "serials": 2, "capacity": 2},
    {"serials": 5, "capacity": 2},
    {"serials": 3, "capacity": 2, "bound": 1},
    {"serials": 5, "capacity": 3},
    {"serials": 5, "capacity": 2, "bound": 1},
    {"serials": 5, "capacity": 3, "bound": 1},
    {"serials": 5, "capacity": 3, "bound": 1, "nothing": (0, 3)},
    {"serials": 5, "capacity": 3, "bound": 1, "failing": (2, 3)},
    {"serials": 4, "capacity": 3, "late": 2, "failing": (2,)},
    {"serials": 4, "capacity": 3, "bound": 1, "light": (1, 3)},
    {"serials": 4, "capacity": 3, "light": (0, 2), "failing": (3,), "marks": (1,)},
    {"workers": 3, "serials": 4, "capacity": 2},
    {"workers": 3, "serials": 3, "capacity": 3},
    {"workers": 3, "serials": 3, "capacity": 3, "light": (1,)},
    {"workers": 3, "serials": 3, "capacity": 2, "bound": 1},
    {"workers": 3, "serials": 3, "capacity": 3, "failing": (1, 2)},
]


@pytest.mark.some(6)
@pytest.mark.parametrize("options", STATELESS, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_results_are_sent_once_and_in_order(scheme: str, options: dict[str, Any]) -> None:
    show(f"{scheme} {options}", explore(stateless(FAULTLESS, scheme=scheme, **options)))


@pytest.mark.long
@pytest.mark.parametrize("options", LARGER, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_results_are_sent_once_and_in_order_in_larger_runs(scheme: str, options: dict[str, Any]) -> None:
    show(f"{scheme} {options}", explore(stateless(FAULTLESS, scheme=scheme, **options)))


RECHECK = """            if self._slots[serial % self.capacity] is EMPTY:  # L40: did it come while the flag was set?
                return True
"""
CLEARED = """                    self._slots[serial % self.capacity] = EMPTY  # L33, before that slot is given out again
                    serial += 1
                    self.next = serial  # L34
"""
NEXT_FIRST = """                    self.next = serial + 1
                    self._slots[serial % self.capacity] = EMPTY
                    serial += 1
"""
LEFT = "        room = self._order.hand_in(serial, result)\n        self._out.discard(serial)\n"
LEAVES_FIRST = "        self._out.discard(serial)\n        room = self._order.hand_in(serial, result)\n"
STATELESS_FAULTS: dict[str, tuple[tuple[str, str, str], str, dict[str, Any]]] = {
    "next before the slot is empty": (("reorder", CLEARED, NEXT_FIRST), "no thread can go on", {}),
    "no capacity needed": (
        ("worklist", "        if not self._order.admits(serial):\n            return Wait.NEXT\n", ""),
        "more than there is capacity for",
        {},
    ),
    "room is not looked at": (
        ("reorder", "            if not room:\n                return False\n", ""),
        "states",
        {"bound": 1},
    ),
    "what is due is not sent first": (
        ("worklist", "        if not self._order.flush():\n            return Wait.ROOM\n", ""),
        "no thread can go on",
        {"bound": 1},
    ),
    "a serial number is given twice": (
        ("worklist", "self.given = serial + 1", "self.given = serial + 1 if serial else serial"),
        "no thread can go on",
        {},
    ),
    "flag not set": (
        ("reorder", "while self._flag.acquire(False):", "while True:"),
        "release unlocked lock|two send at once",
        {},
    ),
    "goes on after a failure": (
        (
            "reorder",
            "= EMPTY  # for ever, as `next` does not move any more",
            "= EMPTY; self.next = serial + 1",
        ),
        "no thread can go on|not what was wanted",
        {"failing": (1,)},
    ),
    "alone while another drains": (
        ("worklist", "        if out:\n            return False\n", ""),
        "two send at once",
        {"light": (1, 2)},
    ),
    "alone before it has left": (("worklist", LEFT, LEAVES_FIRST), "two send at once", {"light": (1, 2)}),
    "alone before all is sent": (
        ("worklist", "self._order.next == self.given", "True"),
        "not what was wanted",
        {"serials": 5, "capacity": 3, "bound": 1, "light": (3, 4)},
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if "bound" in options and "light" in options else ())
        for name, (_, _, options) in STATELESS_FAULTS.items()
    ],
)
def test_a_fault_of_the_worklist_or_the_reorder_buffer_is_found(name: str) -> None:
    fault, said, options = STATELESS_FAULTS[name]
    with pytest.raises(Violation, match=said) as found:
        explore(stateless(stepped(fault), **{"serials": 4, "capacity": 2, **options}))
    print(f"\n{name}: {found.value}")


def places(code: SimpleNamespace, *, capacity_first: bool = True) -> Callable[[], Scenario]:
    """Workers without a task, each of which needs a place for its result, and comes back only with another one."""

    def make() -> Scenario:
        free, numbers, sent = [None], [0, 1, 2], []
        downstream = Downstream(None, [0, 1, 2])

        def send(result: int) -> Thread:
            yield
            free.append(None)
            sent.append(result)

        order = code.ReorderBuffer(9, send, downstream.drain)

        def worker() -> Thread:
            while True:
                yield lambda: not numbers or bool(free) or not capacity_first
                if not numbers:
                    return
                if capacity_first:
                    free.pop()
                    number = numbers.pop(0)
                else:
                    number = numbers.pop(0)
                    yield lambda: bool(free)
                    free.pop()
                yield from order.hand_in(number, number)

        def end() -> None:
            assert sent == downstream.wanted, "not what was wanted"

        threads = [worker() for _ in range(2)]
        return Scenario(threads, [order, downstream, free, numbers, sent], end, alike=True)

    return make


def test_a_number_taken_before_capacity_is_a_deadlock() -> None:
    """The places that results wait in are `capacity` many; who waits for one with a small number is waited for."""
    show("capacity, then a number", explore(places(FAULTLESS)))
    with pytest.raises(Violation, match="no thread can go on"):
        explore(places(FAULTLESS, capacity_first=False))


def test_a_result_that_comes_while_another_worker_leaves_is_sent() -> None:
    """With a task the next `take` would send it, too, but later."""
    no_recheck = ("reorder", RECHECK, "            return True\n")
    with pytest.raises(Violation, match="not what was wanted"):
        explore(places(stepped(no_recheck)))


# -- keyed operators


def split(code: SimpleNamespace) -> Callable[[Batch], Sequence[Any]]:
    def parts(batch: Batch) -> Sequence[Any]:
        found: dict[int, list[int]] = {}
        for position, (partition, _) in enumerate(batch):
            found.setdefault(partition, []).append(position)
        return [code.Part(key, [batch[i] for i in at], at) for key, at in found.items()]

    return parts


def keyed(
    code: SimpleNamespace,
    *,
    scheme: str = "HybridQueue",
    order_scheme: str = "ReorderBuffer",
    workers: int = 2,
    batches: Sequence[str],
    capacity: int = 2,
    bound: int | None = None,
    most: int = 9,
) -> Callable[[], Scenario]:
    """Workers on an operator that numbers the rows of a partition. A row is `a`, `b`, ... by partition; `A` fails."""
    rows: list[Batch] = [[(ord(row.lower()) - ord("a"), row) for row in batch] for batch in batches]
    wanted: list[list[list[Any]]] = []
    fails: str | None = None
    counts = [0] * 3
    for batch in rows:
        made: list[list[Any]] = []
        for partition, row in batch:
            if row.isupper():
                fails = row
                break
            made.append([(row, counts[partition])])
            counts[partition] += 1
        wanted.append(made)
        if fails:
            break

    def make() -> Scenario:
        downstream = Downstream(bound, wanted)
        order = getattr(code, order_scheme)(capacity, downstream.send, downstream.drain)
        inputs = list(rows)
        state, busy = [0] * 3, [False] * 3

        def operate(partition: int, batch: Batch) -> Thread:
            assert not busy[partition], "two fire one partition"
            assert state[partition] >= 0, "fires after a failure"
            busy[partition] = True
            yield
            busy[partition] = False
            made: list[list[Any]] = []
            for _, row in batch:
                if row.isupper():
                    state[partition] = -1
                    return code.FailedResult(Exception(row), made)
                made.append([(row, state[partition])])
                state[partition] += 1
            return made

        given = workers if scheme == "PartitionedQueues" else 3
        queue = getattr(code, scheme)(given, order, split(code), operate, code.by_position)
        task, working = Task(downstream), [False] * workers

        def source() -> Batch | None:
            return inputs.pop(0) if inputs else None

        def step() -> Thread:
            """`ShardedOperate.step`: whose pieces are to be fired, or what to wait for."""
            wait = yield from queue.feed(source)
            if wait is code.Wait.ROOM:
                return None, "ROOM"
            yield
            free = next((i for i, works in enumerate(working) if not works and queue.waiting(i)), None)
            return free, None if wait is None else "NEXT"

        def worker() -> Thread:
            while True:
                yield lambda: task.ready or downstream.done
                if downstream.done:
                    return
                task.take()
                found, wait = yield from step()
                if found is not None:
                    working[found] = True
                yield
                if found is None:
                    task.leave(wait)
                else:
                    task.queue()
                    yield from queue.work(found, most)
                    working[found] = False
                    yield
                    task.wake()
                del found, wait

        def check() -> None:
            assert queue.given <= order.next + capacity, "more than there is capacity for"

        threads = [worker() for _ in range(workers)]
        if bound is not None:
            threads.append(downstream.consume(task))
        shared = [order, queue, inputs, downstream, task, state, busy, working]
        return Scenario(threads, shared, lambda: ended(order, downstream, fails), check, alike=True)

    return make


KEYED: list[dict[str, Any]] = [
    {"batches": ["a", "a", "a"]},
    {"batches": ["ab", "a"], "capacity": 1},
    {"batches": ["ab", "b"]},
    {"batches": ["a", "", "b"], "capacity": 1},
    {"batches": ["a", "A", "a"], "capacity": 3},
    {"batches": ["AB"]},
    {"batches": ["a", "b"], "bound": 1},
    {"batches": ["a", "a"], "most": 1},
]
LARGER_KEYED: list[dict[str, Any]] = [
    {"batches": ["ab", "ab", "ab"], "capacity": 3},
    {"batches": ["ab", "ba", "a", "b"], "capacity": 2},
    {"batches": ["abc", "cab"], "capacity": 2},
    {"batches": ["ab", "aA", "Bb"], "capacity": 3},
    {"batches": ["ab", "b", "a"], "capacity": 2, "bound": 1},
    {"batches": ["a", "a", "b"], "workers": 3},
    {"batches": ["ab", "ab"], "workers": 3, "most": 1},
]
KEYED_SCHEMES = ("HybridQueue", "PartitionedQueues", "SharedQueue")


@pytest.mark.some(2)
@pytest.mark.slow
@pytest.mark.parametrize("options", KEYED, ids=str)
@pytest.mark.parametrize(
    "scheme", ["HybridQueue", *(pytest.param(scheme, marks=pytest.mark.long) for scheme in KEYED_SCHEMES[1:])]
)
def test_a_keyed_operator_makes_what_one_worker_makes(scheme: str, options: dict[str, Any]) -> None:
    order = "LockedReorder"  # fewer states, and what is looked at here is the queue
    show(f"{scheme} {options}", explore(keyed(FAULTLESS, scheme=scheme, order_scheme=order, **options)))


@pytest.mark.parametrize("scheme", KEYED_SCHEMES[1:])
def test_so_do_the_schemes_to_compare_with(scheme: str) -> None:
    options: dict[str, Any] = {"batches": ["a", "A", "a"], "capacity": 3, "order_scheme": "LockedReorder"}
    show(f"{scheme} {options}", explore(keyed(FAULTLESS, scheme=scheme, **options)))


@pytest.mark.long
@pytest.mark.parametrize("options", LARGER_KEYED, ids=str)
@pytest.mark.parametrize("scheme", KEYED_SCHEMES)
def test_a_keyed_operator_makes_what_one_worker_makes_in_larger_runs(
    scheme: str, options: dict[str, Any]
) -> None:
    show(f"{scheme} {options}", explore(keyed(FAULTLESS, scheme=scheme, **options)))


BOTH: list[Any] = [{"batches": ["a", "a"]}, {"batches": ["a", "A"]}]


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", BOTH + [pytest.param(each, marks=pytest.mark.long) for each in KEYED], ids=str
)
def test_the_hybrid_queue_with_the_reorder_buffer(options: dict[str, Any]) -> None:
    show(f"both {options}", explore(keyed(FAULTLESS, **options)))


L10 = "            if self._counts[partition].fetch_add() > 0:  # L10\n"
NOT_ONE_STEP = """            count = self._counts[partition]._value
            self._counts[partition].fetch_add()
            if count > 0:
"""
LAST = "        if parent.left.fetch_sub() > 1:\n"
NOT_ONE_COUNT = "        left = parent.left._value\n        parent.left.fetch_sub()\n        if left > 1:\n"
KEYED_FAULTS = {
    "ownership in two steps": (("hybrid", L10, NOT_ONE_STEP), "no thread can go on"),
    "leaves before it is done": (
        ("hybrid", "fetch_sub() > 1  # L14", "fetch_sub() > 2"),
        "no thread can go on",
    ),
    "does not leave": (("hybrid", "fetch_sub() > 1  # L14", "fetch_sub() > 0"), "has fewer pieces"),
    "master queue first": (
        (
            "hybrid",
            "        self._queues[partition].enqueue(piece)  # L4\n        self._master.enqueue(partition)  # L5\n",
            "        self._master.enqueue(partition)\n        self._queues[partition].enqueue(piece)\n",
        ),
        "has fewer pieces",
    ),
    "countdown in two steps": (("keyed", LAST, NOT_ONE_COUNT), "no thread can go on"),
    "fires after a failure": (
        ("keyed", "if failure is None and part.partition not in self._failed:", "if True:"),
        "fires after a failure",
    ),
    "Fig. 5: taken, then locked": (
        ("shared", "with self._taking:", "if True:"),
        "not what was wanted",
    ),
}


@pytest.mark.parametrize("name", KEYED_FAULTS)
def test_a_fault_of_the_keyed_queues_is_found(name: str) -> None:
    fault, said = KEYED_FAULTS[name]
    scheme = "SharedQueue" if fault[0] == "shared" else "HybridQueue"
    batches = (
        ["ab", "ab"] if "countdown" in name else ["a", "A", "a"] if "failure" in name else ["a", "a", "a"]
    )
    with pytest.raises(Violation, match=said) as found:
        explore(
            keyed(stepped(fault), scheme=scheme, order_scheme="LockedReorder", batches=batches, capacity=3)
        )
    print(f"\n{name}: {found.value}")


def test_a_line_that_touches_shared_things_twice_is_refused() -> None:
    with pytest.raises(AssertionError, match="twice"):
        stepped(
            (
                "reorder",
                "                    self.next = serial  # L34",
                "                    self.next = self.next + 1",
            )
        )
