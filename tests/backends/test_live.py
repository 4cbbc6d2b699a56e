"""Live runs: what comes is processed when it comes, time goes on, nothing is lost, and everything ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import termios
import threading
import time
from array import array
from contextlib import contextmanager, suppress
from itertools import count
from queue import Queue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import river
from river.backend import Options
from river.diagnostics import Rejected
from river.driver import Job, execute
from river.ingress import turns
from river.io.errors import SKIP, STOP, OnError, Refusals
from river.io.live import Live, arriving
from river.io.scalars import format_time
from river.io.sources import open_source
from river.lang.values import END, Mark
from tests.patience import PATIENCE, stop, until


def echo(*inputs: str, key: str = "i64", by: str = "by t"):
    """A program that sends each input to the output of its name."""
    lines = ["river 1;"]
    for name in inputs:
        row = f"{{t: {key}, v: i64}} {by}"
        lines += [
            f"input {name}: {row};",
            f"output {name}_out: {row};",
            f"operator {name}_op(x: {row}) -> (y: {row}) {{ on x(r) {{ emit y r; }} }}",
            f"({name}_out) <- {name}_op({name});",
        ]
    return river.compile("\n".join(lines), "river")


def rows_of(items: Any) -> list[Any]:
    return items


class Running:
    """A run in a thread, whose outputs are files."""

    def __init__(self, compiled, inputs, folder, live=None, **options):
        self.live = live or Live()
        self.folder = folder
        self.failure: BaseException | None = None
        self.results: Any = None
        outputs = {name: folder / f"{name}.csv" for name in compiled.outputs}

        def run():
            try:
                self.results = compiled.run(inputs, outputs, live=self.live, native="off", **options)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.failure = error

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def rows(self, name):
        with suppress(FileNotFoundError):
            text = (self.folder / f"{name}.csv").read_text()
            return [tuple(map(int, line.split(","))) for line in text.splitlines()[1:] if text.endswith("\n")]
        return []

    def shows(self, name, rows):
        until(lambda: self.failure is not None or self.rows(name) == rows)
        assert self.failure is None
        assert self.rows(name) == rows

    def end(self):
        self.live.stop()
        return self.ends()

    def ends(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.failure is not None:
            raise self.failure
        return self.results


@contextmanager
def running(compiled, inputs, folder, live=None, **options):
    one = Running(compiled, inputs, folder, live, **options)
    try:
        yield one
    finally:
        stop(one.live, one.thread)


@pytest.fixture
def pipe():
    """The reading end as a file, and a function that writes rows into the other."""
    ends = os.pipe()
    reader = os.fdopen(ends[0], "rb")
    writer = os.fdopen(ends[1], "wb", buffering=0)
    yield reader, writer
    writer.close()
    reader.close()


def left(file):
    """How many bytes of a pipe nobody has read."""
    found = array("i", [0])
    fcntl.ioctl(file, termios.FIONREAD, found)
    return found[0]


class Named:
    """A file of bytes with a name that tells its format."""

    def __init__(self, file, name):
        self.file = file
        self.name = name

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_an_item_is_processed_when_it_is_there(pipe, tmp_path):
    reader, writer = pipe
    with running(echo("a"), {"a": Named(reader, "a.csv")}, tmp_path) as run:
        writer.write(b"t,v\n1,10\n2,2")
        run.shows("a_out", [(1, 10)])
        writer.write(b"0\n")
        run.shows("a_out", [(1, 10), (2, 20)])
        writer.write(b"3,30")
        writer.close()
        assert run.ends().read == 3  # at the end of a pipe the last line needs no end
        run.shows("a_out", [(1, 10), (2, 20), (3, 30)])


def test_what_was_read_is_finished_when_the_run_is_stopped(pipe, tmp_path):
    reader, writer = pipe
    with running(echo("a"), {"a": Named(reader, "a.jsonl")}, tmp_path, lateness=100) as run:
        for i in range(50):
            writer.write(json.dumps({"t": i, "v": i}).encode() + b"\n")
        writer.write(b'{"t": 50')
        until(lambda: run.results is not None or (tmp_path / "a_out.csv").exists())
        until(lambda: not left(reader))  # nothing can be seen before, as all may come late
        results = run.end()
        run.shows("a_out", [(i, i) for i in range(50)])
        (remark,) = results.warnings
        assert remark.code == "data-incomplete"
        assert "its 8 bytes were not read" in remark.message


def test_rows_of_a_generator_are_processed_one_by_one(tmp_path):
    waiting: Queue = Queue()
    with running(echo("a", by=""), {"a": iter(waiting.get, None)}, tmp_path) as run:
        row = {"t": 1, "v": 1}
        waiting.put(row)
        run.shows("a_out", [(1, 1)])
        row["v"] = 2  # whoever gives rows may use them again
        waiting.put(row)
        run.shows("a_out", [(1, 1), (1, 2)])
        waiting.put(None)
        run.ends()


def test_a_generator_needs_no_live_run():
    rows = ({"t": i, "v": i} for i in range(10_000))
    table = echo("a").run({"a": rows}, native="off")["a_out"]
    assert table.column("v").to_pylist() == [*range(10_000)]


def test_a_generator_that_fails_ends_the_run(tmp_path):
    def rows():
        yield {"t": 1, "v": 1}
        raise RuntimeError("enough")

    with running(echo("a"), {"a": rows()}, tmp_path) as run:
        with pytest.raises(RuntimeError, match="enough"):
            run.ends()
        run.failure = None
        assert run.rows("a_out") == [(1, 1)]


def test_a_generator_that_waits_does_not_keep_the_run_from_ending(tmp_path):
    waiting: Queue = Queue()
    with running(echo("a", "b", by=""), {"a": iter(waiting.get, None), "b": [(1, 1)]}, tmp_path) as run:
        run.shows("b_out", [(1, 1)])
        run.end()
        waiting.put(None)


def test_a_trap_ends_a_run_whose_inputs_are_silent(pipe, tmp_path):
    reader, writer = pipe
    program = river.compile(
        "river 1;\ninput a: {v: i64};\noutput a_out: {v: i64};\n"
        "operator inverse(x: {v: i64}) -> (y: {v: i64}) { on x(r) { emit y {v: div.trunc(100, r.v)}; } }\n"
        "(a_out) <- inverse(a);\n",
        "river",
    )
    with running(program, {"a": Named(reader, "a.csv")}, tmp_path) as run:
        writer.write(b"v\n5\n0\n")
        with pytest.raises(Rejected, match="zero"):
            run.ends()
        run.failure = None
        assert run.rows("a_out") == [(20,)]


def test_connections(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    program = river.compile(
        "river 1;\ninput a: {t: i64, v: i64};\noutput a_out: {t: i64, v: i64};\n"
        "operator id(x: {t: i64, v: i64}) -> (y: {t: i64, v: i64}) { on x(r) { emit y r; } }\n(a_out) <- id(a);\n",
        "river",
    )
    live = Live()
    letters = tmp_path / "bad.jsonl"
    job = Job(
        {"a": f"tcp://127.0.0.1:{port}"},
        {"a_out": tmp_path / "a_out.csv"},
        OnError("dead-letter", str(letters)),
        formats={"a": "csv"},
        options=Options(native="off"),
        live=live,
    )
    done = []
    thread = threading.Thread(target=lambda: done.append(execute(program, "multicore", job)))
    thread.start()

    def rows():
        path = tmp_path / "a_out.csv"
        return sorted(path.read_text().splitlines()[1:]) if path.exists() else []

    def connected():
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.01)

    try:
        with connected() as one, connected() as two:
            one.sendall(b"t,v\n1,10\n")
            two.sendall(b"v,t\n20,2\n")  # each has its own header
            until(lambda: rows() == ["1,10", "2,20"])
        with connected() as three:
            three.sendall(b"nothing,here\n1,2\n")  # does not fit, and ends neither the run nor the others
        with connected() as four:
            four.sendall(b"t,v\n4,40\n")
        until(lambda: rows() == ["1,10", "2,20", "4,40"])
    finally:
        live.stop()
        thread.join(PATIENCE)
    assert done[0].rows == {"a_out": 3}
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert (letter["code"], letter["line"]) == ("data-column", 1)
    assert letter["file"].startswith(f"tcp://127.0.0.1:{port} from ")
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("river-")])


def test_a_silent_input_holds_up_the_others_until_it_is_idle(pipe, tmp_path):
    reader, writer = pipe
    waiting: Queue = Queue()
    inputs = {"a": Named(reader, "a.csv"), "b": iter(waiting.get, None)}
    letters = tmp_path / "late.jsonl"
    with running(echo("a", "b"), inputs, tmp_path, Live(idle=0.3), on_error=f"dead-letter={letters}") as run:
        waiting.put((10, 1))
        waiting.put((20, 2))
        run.shows("b_out", [(10, 1), (20, 2)])
        writer.write(b"t,v\n15,3\n20,4\n")
        run.shows("a_out", [(20, 4)])
        waiting.put(None)
        results = run.end()
        assert [w.code for w in results.warnings] == ["data-skipped"]
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert (letter["input"], letter["code"], letter["line"], letter["text"]) == ("a", "data-late", 2, "15,3")
    assert letter["reason"] == "field `t`: is late: 15 came after time had gone on to 20"


def test_without_idle_the_others_wait(pipe, tmp_path):
    reader, writer = pipe
    waiting: Queue = Queue()
    with running(
        echo("a", "b"), {"a": Named(reader, "a.csv"), "b": iter(waiting.get, None)}, tmp_path
    ) as run:
        waiting.put((10, 1))
        waiting.put((20, 2))
        writer.write(b"t,v\n5,3\n15,4\n")
        run.shows("a_out", [(5, 3), (15, 4)])
        run.shows("b_out", [(10, 1)])  # 20 waits for what is before it
        time.sleep(0.1)
        assert run.rows("b_out") == [(10, 1)]
        waiting.put(None)
        run.end()
        run.shows("b_out", [(10, 1), (20, 2)])


def test_late_is_an_error_that_stops_by_default(pipe, tmp_path):
    reader, writer = pipe
    with running(
        echo("a", "b"), {"a": Named(reader, "a.csv"), "b": [(9, 9)]}, tmp_path, Live(idle=0.1)
    ) as run:
        run.shows("b_out", [(9, 9)])
        writer.write(b"t,v\n3,3\n")
        with pytest.raises(Rejected, match="data-late"):
            run.ends()
        run.failure = None


WINDOW = """
s: { ts: time; v: int } stream by ts;
n: relation = select count(*) as n from s[range 100 microseconds];
"""


def test_windows_expire_by_the_clock_of_the_wall(tmp_path):
    waiting: Queue = Queue()
    program = river.compile(WINDOW, "cql")
    target = tmp_path / "n.csv"

    class Held(Running):
        def rows(self, name):
            return (
                [line.split(",")[1:] for line in target.read_text().splitlines()[1:]]
                if target.exists()
                else []
            )

    run = Held(program, {"s": iter(waiting.get, None)}, tmp_path, Live(clock="wall"), lateness=500_000)
    try:
        waiting.put({"ts": format_time(time.time_ns() // 1000), "v": 1})
        # it counts, and no longer counts 100 microseconds later, although nothing else comes
        run.shows("n", [["+", "1"], ["-", "1"], ["+", "0"]])
        waiting.put(None)
    finally:
        run.end()


def test_the_clock_of_the_wall_is_for_time_stamps_that_are_times(tmp_path):
    with running(echo("a"), {"a": iter([])}, tmp_path, Live(clock="wall")) as run:
        with pytest.raises(Rejected, match="run-clock"):
            run.ends()
        run.failure = None


def test_what_cannot_be_used_yet_is_not_read(tmp_path):
    waiting: Queue = Queue()
    counting = count()
    inputs = {"a": ((t, 0) for t in counting), "b": iter(waiting.get, None)}
    with running(echo("a", "b"), inputs, tmp_path, batch=10) as run:
        waiting.put((100, 0))
        until(lambda: len(run.rows("a_out")) == 101)
        time.sleep(0.1)
        assert next(counting) < 101 + 50  # up to one batch at hand, two that have come, and one in the making
        waiting.put(None)
        run.end()


def test_a_live_is_for_one_run(tmp_path):
    live = Live()
    program = echo("a")
    assert program.run({"a": iter([(1, 1)])}, live=live, native="off").read == 1
    with pytest.raises(ValueError, match="for one run"):
        program.run({"a": iter([(1, 1)])}, live=live, native="off")


def test_a_run_ends_by_itself(tmp_path):
    for live in (Live(stop_after=0.2), Live(idle_exit=0.2)):
        waiting: Queue = Queue()
        waiting.put((1, 1))
        with running(echo("a"), {"a": iter(waiting.get, None)}, tmp_path, live) as run:
            # a busy machine may not have come to the item by then
            assert run.ends().rows == {"a_out": len(run.rows("a_out"))}
            waiting.put(None)


# ------------------------------------------------------------------------------------- the merge, without threads' chance

ROW = st.tuples(st.integers(0, 8), st.integers(0, 8))


@st.composite
def keyed(draw):
    """Rows for some inputs, each in order of key."""
    return {name: sorted(draw(st.lists(ROW, max_size=12))) for name in draw(st.sets(st.sampled_from("abc")))}


@given(keyed(), st.integers(1, 5), st.integers(0, 3))
def test_live_inputs_are_merged_as_others_are(rows, batch, lateness):
    compiled = echo("a", "b", "c")
    live = Live(lateness=lateness)
    sources: dict = {}
    for name, items in rows.items():
        sources[name] = arriving(
            iter(items), compiled.inputs[name], live, name=name, refusals=Refusals(STOP), batch=batch
        )
    seen: dict = {name: [] for name in "abc"}
    order = []
    for turn in turns(compiled.graph, sources, batch):
        assert sum(len(items) for _, items in turn.items) <= batch * 3
        order += sorted((key, name) for name, items in turn.items for key, _ in rows_of(items))
        for name, elements in (*turn.items, *turn.marks):
            seen[name] += elements
    still: dict = {name: [] for name in "abc"}
    for turn in turns(compiled.graph, {name: [items] for name, items in rows.items()}, 1 << 20):
        for name, elements in (*turn.items, *turn.marks):
            still[name] += elements
    assert order == sorted(order)  # equal keys in the order of the inputs
    keys = [key for items in rows.values() for key, _ in items]
    for name, elements in seen.items():
        items = [e for e in elements if not isinstance(e, Mark)]
        assert items == rows.get(name, [])
        assert elements[-2:] == still[name][-2:]  # the last mark and the end
        bound = -100
        for element in elements:
            if isinstance(element, Mark):
                assert element.key > bound
                bound = element.key
            else:
                assert element[0] >= bound
        assert elements.count(END) == 1
        assert not keys or elements[-2] == Mark(max(keys) + 1)


@given(st.lists(ROW, max_size=20), st.integers(0, 4))
def test_live_lateness_is_that_of_files(rows, lateness):
    """The same rows are late, and the same order comes out, as `order.ordered` makes."""
    compiled = echo("a")
    type_ = compiled.inputs["a"]
    expected = Refusals(SKIP)
    wanted = [
        item
        for items in open_source(rows, type_, name="a", by="t", lateness=lateness, on_error=expected)
        for item in items
    ]
    live, refusals = Live(lateness=lateness), Refusals(SKIP)
    source = arriving(iter(rows), type_, live, name="a", refusals=refusals, batch=3)
    assert source is not None
    found: list = []
    for turn in turns(compiled.graph, {"a": source}, 3):  # pyright: ignore[reportArgumentType]
        for _, items in turn.items:
            found += rows_of(items)
    assert found == wanted
    assert refusals.count() == expected.count()
