"""What threads make beside others."""

import threading
import time

import pytest

from river.aside import Ahead, ahead, in_turns, shared_out


def test_what_is_made_ahead_comes_in_order_and_ends():
    values = iter(range(1, 5))
    assert list(ahead(lambda: next(values, None), "test")) == [1, 2, 3, 4]


def test_the_next_one_is_made_before_it_is_asked_for():
    made = [threading.Event(), threading.Event()]
    values = iter(made)

    def make() -> threading.Event | None:
        value = next(values, None)
        if value is not None:
            value.set()
        return value

    found = ahead(make, "test")
    assert next(found) is made[0]
    assert made[1].wait(60)
    found.close()


def test_what_making_raises_is_raised_in_its_place():
    def make() -> int:
        if values:
            return values.pop()
        raise ValueError("damaged")

    values = [1]
    found = ahead(make, "test")
    assert next(found) == 1
    with pytest.raises(ValueError, match="damaged"):
        next(found)


def test_who_ends_early_waits_for_what_is_being_made():
    going, made = threading.Event(), list[int]()

    def make() -> int:
        if made:
            assert going.wait(60)
        made.append(len(made))
        return made[-1] + 1

    found = ahead(make, "test")
    assert next(found) == 1
    threading.Timer(0.05, going.set).start()
    found.close()
    assert made == [0, 1]


def test_as_many_as_are_wanted_are_made_before_the_first_is_taken():
    made, enough, more = list[int](), threading.Event(), threading.Event()

    def make() -> int:
        made.append(len(made))
        if len(made) == 3:
            enough.set()
        if len(made) == 4:
            more.set()
        return made[-1] + 1

    begun = Ahead(make, "test", 3)
    assert enough.wait(60)
    while any(thread.name == "test" for thread in threading.enumerate()):  # who makes them does not wait
        time.sleep(0.001)
    assert made == [0, 1, 2]
    assert begun.take() == 1
    assert more.wait(60)
    begun.end()
    assert made == [0, 1, 2, 3]


def test_who_gets_no_thread_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch):
    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    values = iter([1, 2, 3])
    found = ahead(lambda: next(values, None), "test")
    assert next(found) == 1
    monkeypatch.setattr("river.aside.memory.start", none)
    with pytest.raises(RuntimeError, match="thread"):
        list(found)


def test_shares_are_made_by_threads_of_their_own():
    together = threading.Barrier(3, timeout=60)

    def make(i: int) -> tuple[int, int]:
        together.wait()
        return i, threading.get_ident()

    found = shared_out(make, 3)
    assert [i for i, _ in found] == [0, 1, 2]
    assert len({thread for _, thread in found}) == 3
    assert found[0][1] == threading.get_ident()
    assert shared_out(lambda i: i, 1) == [0]


@pytest.mark.parametrize("fails", [0, 2])
def test_what_a_share_raises_is_raised_when_the_others_are_done(fails: int):
    done = list[int]()

    def make(i: int) -> None:
        if i == fails:
            raise ValueError("damaged")
        time.sleep(0.05)
        done.append(i)

    with pytest.raises(ValueError, match="damaged"):
        shared_out(make, 3)
    assert sorted(done) == [i for i in range(3) if i != fails]


@pytest.mark.parametrize(("count", "workers"), [(0, 2), (1, 3), (7, 1), (7, 2), (8, 3)])
def test_values_made_in_turns_come_in_order(count: int, workers: int):
    threads = set[int]()

    def make(i: int) -> int:
        threads.add(threading.get_ident())
        return i * i

    assert list(in_turns(make, count, workers, "test")) == [i * i for i in range(count)]
    assert len(threads) <= count
    assert (len(threads) > 1) == (min(count, workers) > 1)


def test_values_are_made_in_turns_while_those_before_are_used():
    third = threading.Event()

    def make(i: int) -> int:
        if i == 3:
            third.set()
        if i == 5:
            raise MemoryError("no room for the fifth")
        return i

    found = in_turns(make, 8, 2, "test")
    assert [next(found), next(found)] == [0, 1]
    assert third.wait(60)  # though nobody has asked for it
    assert [next(found), next(found), next(found)] == [2, 3, 4]
    with pytest.raises(MemoryError, match="the fifth"):
        next(found)


def test_who_ends_turns_early_waits_for_what_is_being_made():
    going, made = threading.Event(), list[int]()

    def make(i: int) -> int:
        if i == 3:
            assert going.wait(60)
        made.append(i)
        return i

    found = in_turns(make, 8, 2, "test")
    assert [next(found), next(found)] == [0, 1]
    threading.Timer(0.05, going.set).start()
    found.close()
    assert sorted(made) == [0, 1, 3]
