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

    `full`: a sender left for want of room, and nobody has come back yet.
    """

    bound: int | None
    wanted: list[Any]
    unsent: list[Any] = field(factory=list)
    queue: list[Any] = field(factory=list)
    taken: list[Any] = field(factory=list)
    sending: bool = False
    full: bool = False

    def send(self, result: Any) -> Thread:
        assert not self.sending, "two send at once"
        self.sending = True
        yield
        self.unsent.append(result)
        self.sending = False

    def drain(self) -> bool:
        assert not self.sending, "two send at once"
        queue = self.taken if self.bound is None else self.queue
        while self.unsent and (self.bound is None or len(queue) < self.bound):
            queue.append(self.unsent.pop(0))
        return not self.unsent

    def consume(self) -> Thread:
        for _ in self.wanted:
            yield lambda: bool(self.queue)
            self.taken.append(self.queue.pop(0))

    @property
    def done(self) -> bool:
        return len(self.taken) == len(self.wanted)

    @property
    def room(self) -> bool:
        return self.full and (self.bound is None or len(self.queue) < self.bound)


def resume(downstream: Downstream, order: Any) -> Thread:
    """What the scheduler does for one that found no room, when there is some."""
    if downstream.room:
        downstream.full = False
        if not (yield from order.flush()):
            downstream.full = True


def ended(order: Any, downstream: Downstream, fails: object) -> None:
    assert downstream.taken == downstream.wanted, "not what was wanted"
    assert not order.pending
    assert (None if order.failure is None else str(order.failure)) == (None if fails is None else str(fails))


# -- the reorder buffer


def stateless(
    code: SimpleNamespace,
    *,
    scheme: str = "ReorderBuffer",
    workers: int = 2,
    serials: int = 3,
    capacity: int = 2,
    bound: int | None = None,
    nothing: Collection[int] = (),
    failing: Collection[int] = (),
    patient: bool = True,
) -> Callable[[], Scenario]:
    """Workers on a stateless operator that makes of an input itself. `patient`: they wait until one is admitted."""
    fails = min(failing, default=None)
    before = range(serials if fails is None else fails)
    wanted = [i for i in before if i not in nothing] + ([] if fails is None else [-fails])

    def make() -> Scenario:
        downstream = Downstream(bound, wanted)
        order = getattr(code, scheme)(capacity, downstream.send, downstream.drain)
        inputs = list(range(serials))
        worklist = code.Worklist(order, lambda: inputs.pop(0) if inputs else None)

        def may_take() -> bool:
            admitted = order.failure is None and worklist._serial < order.next + capacity
            return bool(inputs) and (admitted or not patient)

        def worker() -> Thread:
            while True:
                yield lambda: downstream.done or downstream.room or may_take()
                if downstream.done:
                    return
                yield from resume(downstream, order)
                taken = yield from worklist.take()
                if taken is not None:
                    serial, item = taken
                    result = code.NOTHING if item in nothing else item
                    if item in failing:
                        result = code.Failed(Exception(item), -item)
                    room = yield from order.hand_in(serial, result)
                    if not room:
                        downstream.full = True
                    del serial, item, result, room  # they do not matter any more
                del taken

        def check() -> None:
            assert worklist._serial <= order.next + capacity or not patient

        threads = [worker() for _ in range(workers)]
        if bound is not None:
            threads.append(downstream.consume())
        shared = [order, worklist, inputs, downstream]
        return Scenario(threads, shared, lambda: ended(order, downstream, fails), check, alike=True)

    return make


def show(name: str, explored: Explored) -> None:
    print(f"\n{name}: {explored}")


SCHEMES = ("ReorderBuffer", "LockedReorder")
STATELESS: list[dict[str, Any]] = [
    {"workers": 2, "serials": 4, "capacity": 1},
    {"workers": 2, "serials": 4, "capacity": 2},
    {"workers": 2, "serials": 3, "capacity": 3},
    {"workers": 2, "serials": 2, "capacity": 2, "bound": 1},
    {"workers": 3, "serials": 2, "capacity": 2},
    {"workers": 2, "serials": 4, "capacity": 2, "nothing": (0, 2)},
    {"workers": 2, "serials": 3, "capacity": 2, "bound": 1, "nothing": (1,)},
    {"workers": 2, "serials": 4, "capacity": 3, "failing": (1,)},
    {"workers": 2, "serials": 4, "capacity": 3, "failing": (2, 1)},
    {"workers": 2, "serials": 3, "capacity": 2, "bound": 1, "failing": (1,)},
]
LARGER: list[dict[str, Any]] = [
    {"workers": 2, "serials": 5, "capacity": 2},
    {"workers": 2, "serials": 3, "capacity": 2, "bound": 1},
    {"workers": 2, "serials": 5, "capacity": 3},
    {"workers": 2, "serials": 5, "capacity": 2, "bound": 1},
    {"workers": 2, "serials": 5, "capacity": 3, "bound": 1},
    {"workers": 2, "serials": 5, "capacity": 3, "bound": 1, "nothing": (0, 3)},
    {"workers": 2, "serials": 5, "capacity": 3, "bound": 1, "failing": (2, 3)},
    {"workers": 3, "serials": 4, "capacity": 2},
    {"workers": 3, "serials": 3, "capacity": 3},
    {"workers": 3, "serials": 3, "capacity": 2, "bound": 1},
    {"workers": 3, "serials": 3, "capacity": 3, "failing": (1, 2)},
]


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
STATELESS_FAULTS = {
    "no recheck": (("reorder", RECHECK, "            return True\n"), "no thread can go on"),
    "next before the slot is empty": (
        (
            "reorder",
            CLEARED,
            NEXT_FIRST,
        ),
        "no thread can go on",
    ),
    "no capacity needed": (
        ("worklist", "            if not self._order.admits(serial):\n                return None\n", ""),
        "was not admitted",
    ),
    "room is not looked at": (
        ("reorder", "            if not room:\n                return False\n", ""),
        "states",
    ),
    "number and input not taken together": (
        ("worklist", "with self._lock:", "if True:"),
        "no thread can go on",
    ),
    "flag not set": (
        ("reorder", "while self._flag.acquire(blocking=False):", "while True:"),
        "release unlocked lock",
    ),
    "goes on after a failure": (
        (
            "reorder",
            "= EMPTY  # for ever, as `next` does not move any more",
            "= EMPTY; self.next = serial + 1",
        ),
        "no thread can go on",
    ),
}


@pytest.mark.parametrize("name", STATELESS_FAULTS)
def test_a_fault_of_the_reorder_buffer_is_found(name: str) -> None:
    fault, said = STATELESS_FAULTS[name]
    options: dict[str, Any] = {"serials": 4, "capacity": 2}
    options |= {"bound": 1} if "room" in name else {"failing": (1,)} if "failure" in name else {}
    options |= {"patient": "capacity" not in name}
    with pytest.raises(Violation, match=said) as found:
        explore(stateless(stepped(fault), **options))
    print(f"\n{name}: {found.value}")


@pytest.mark.parametrize("capacity_first", [True, False])
def test_a_number_taken_before_capacity_is_a_deadlock(capacity_first: bool) -> None:
    """The places that results wait in are `capacity` many; who waits for one with a small number is waited for."""

    def make() -> Scenario:
        places, numbers, sent = [None], [0, 1, 2], []
        downstream = Downstream(None, [0, 1, 2])

        def send(result: int) -> Thread:
            yield
            places.append(None)
            sent.append(result)

        order = FAULTLESS.ReorderBuffer(9, send, downstream.drain)

        def worker() -> Thread:
            while True:
                yield lambda: not numbers or bool(places) or not capacity_first
                if not numbers:
                    return
                if capacity_first:
                    places.pop()
                    number = numbers.pop(0)
                else:
                    number = numbers.pop(0)
                    yield lambda: bool(places)
                    places.pop()
                yield from order.hand_in(number, number)

        def end() -> None:
            assert sent == downstream.wanted

        threads = [worker() for _ in range(2)]
        return Scenario(threads, [order, places, numbers, sent], end, alike=True)

    if capacity_first:
        show("capacity, then a number", explore(make))
    else:
        with pytest.raises(Violation, match="no thread can go on"):
            explore(make)


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
                    return code.Failed(Exception(row), made)
                made.append([(row, state[partition])])
                state[partition] += 1
            return made

        given = workers if scheme == "PartitionedQueues" else 3
        queue = getattr(code, scheme)(given, order, split(code), operate, code.by_position)

        def source() -> Batch | None:
            return inputs.pop(0) if inputs else None

        def may_feed() -> bool:
            admitted = order.failure is None and queue._serial < order.next + capacity
            return bool(inputs) and admitted and not queue._feeding.locked()

        def worker(i: int) -> Thread:
            while True:
                yield lambda: downstream.done or downstream.room or may_feed() or queue.waiting(i) > 0
                if downstream.done:
                    return
                yield from resume(downstream, order)
                fed = yield from queue.feed(source)
                if not fed:
                    downstream.full = True
                worked = yield from queue.work(i, most)
                if not worked:
                    downstream.full = True
                del fed, worked

        own = scheme == "PartitionedQueues"  # then it matters who comes
        threads = [worker(i if own else 0) for i in range(workers)]
        if bound is not None:
            threads.append(downstream.consume())
        shared = [order, queue, inputs, downstream, state, busy]
        return Scenario(threads, shared, lambda: ended(order, downstream, fails), alike=not own)

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


@pytest.mark.parametrize("options", KEYED, ids=str)
@pytest.mark.parametrize("scheme", KEYED_SCHEMES)
def test_a_keyed_operator_makes_what_one_worker_makes(scheme: str, options: dict[str, Any]) -> None:
    show(
        f"{scheme} {options}",
        explore(keyed(FAULTLESS, scheme=scheme, order_scheme="LockedReorder", **options)),
    )


@pytest.mark.long
@pytest.mark.parametrize("options", LARGER_KEYED, ids=str)
@pytest.mark.parametrize("scheme", KEYED_SCHEMES)
def test_a_keyed_operator_makes_what_one_worker_makes_in_larger_runs(
    scheme: str, options: dict[str, Any]
) -> None:
    show(f"{scheme} {options}", explore(keyed(FAULTLESS, scheme=scheme, **options)))


@pytest.mark.parametrize("options", KEYED[:1] + KEYED[3:5], ids=str)
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
