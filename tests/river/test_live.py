"""Files that grow, folders that get files, and the options of `river run` for inputs that go on."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import river
from river.backend import Options
from river.cli import main
from river.diagnostics import Rejected
from river.driver import Job, execute
from river.io.errors import STOP, Refusals
from river.io.live import Follow, Inbox, Live, arriving
from river.io.live.streams import Growing
from river.lang.types import I64, STRING, Record, Type
from tests.patience import PATIENCE, until

ROW = Record((("t", I64), ("v", I64)))
ECHO = """\
river 1;
input a: {t: i64, v: i64};
output b: {t: i64, v: i64};
output c: {v: i64};
operator both(x: {t: i64, v: i64}) -> (y: {t: i64, v: i64}, z: {v: i64}) { on x(r) { emit y r; emit z {v: r.v}; } }
(b, c) <- both(a);
"""


class Reading:
    """What is read of a live input."""

    def __init__(self, spec, type_: Type = STRING, **more):
        self.live = Live()
        self.live.open()
        self.items = []
        self.failure = None
        found = arriving(spec, type_, self.live, name="s", refusals=Refusals(STOP), **more)
        assert found is not None
        self.source = found
        self.prepared(found)
        lock = threading.Lock()
        self.inbox = Inbox("s", threading.Condition(lock), lock, 1 << 20)
        self.inbox.start(found.read)

    def prepared(self, found):
        """Before it is read."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def take(self):
        for batch in self.source.batches(self.inbox.take()):
            for items in self.source.source.accepted(batch):
                self.items += items

    def shows(self, *items):
        until(lambda: self.take() or len(self.items) >= len(items))
        assert self.items == [*items]

    def stop(self):
        self.live.stop()
        self.inbox.join(PATIENCE)
        self.take()
        self.source.source.close()
        return [remark.message for remark in self.live.remarks]


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def was_read(path):
    """Whether somebody has read a file to its end."""
    found = [each for each in Path("/proc/self/fd").iterdir() if os.path.realpath(each) == str(path)]
    positions = [Path(f"/proc/self/fdinfo/{each.name}").read_text().split()[1] for each in found]
    return str(path.stat().st_size) in positions


def test_a_file_that_grows(tmp_path):
    path = tmp_path / "s.txt"
    with Reading(Follow(str(path))) as reading:  # it need not be there
        append(path, "one\ntw")
        reading.shows("one")
        append(path, "o\nthree\n")
        reading.shows("one", "two", "three")
        append(path, "four")
        until(lambda: was_read(path))
        assert reading.stop() == ["the last line has no end yet: its 4 bytes were not read"]
        assert reading.items == ["one", "two", "three"]


def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path):
    path = tmp_path / "s.txt"
    append(path, "one\n")
    with Reading(Follow(str(path))) as reading:
        reading.shows("one")
        path.rename(tmp_path / "s.txt.1")
        append(tmp_path / "s.txt.1", "two\nlast")
        reading.shows("one", "two")
        append(path, "three\n")
        reading.shows("one", "two", "last", "three")  # nobody will add to the line without end
        assert reading.stop() == []


def test_a_file_that_gets_shorter_begins_again(tmp_path):
    path = tmp_path / "s.csv"
    append(path, "t,v\n1,10\n2,20\n")
    with Reading(Follow(str(path)), ROW) as reading:
        reading.shows((1, 10), (2, 20))
        path.write_text("v,t\n30,3\n")  # with its own header
        reading.shows((1, 10), (2, 20), (3, 30))


def test_a_folder(tmp_path):
    folder = tmp_path / "logs"
    with Reading(Follow(f"{folder}/"), ROW) as reading:
        folder.mkdir()
        (folder / ".b.csv").write_text("hidden")
        (folder / "README").write_text("no table")
        (folder / "old.csv.gz").write_text("packed")
        (folder / "2.csv").write_text("t,v\n2,20\n")
        reading.shows((2, 20))
        append(folder / "2.csv", "3,30\n")
        reading.shows((2, 20), (3, 30))
        (folder / ".3.jsonl").write_text('{"t": 4, "v": 40}\n{"t": 5, "v": 50}')
        (folder / ".3.jsonl").rename(folder / "3.jsonl")
        reading.shows((2, 20), (3, 30), (4, 40))
        (folder / "1.csv").write_text("v,t\n60,6\n")  # each file is read, also one whose name comes late
        reading.shows((2, 20), (3, 30), (4, 40), (5, 50), (6, 60))


def test_files_of_a_folder_that_are_not_read_are_told_of_and_counted(tmp_path):
    """Each once, the first ten at once; hidden ones are no data."""
    told = []

    class Telling(Reading):
        def prepared(self, found):
            self.live.tell = lambda reason: told.append(reason.message)

    for name in ("README", "old.csv.gz", "t.parquet", ".a.csv", "_b.csv"):
        (tmp_path / name).write_text("t,v\n1,1\n")
    (tmp_path / "inner").mkdir()
    with Telling(Follow(str(tmp_path)), ROW) as reading:
        (tmp_path / "z.csv").write_text("t,v\n1,1\n")
        reading.shows((1, 1))
        for n in range(20):
            (tmp_path / f"{n}.x").write_text("")
        (tmp_path / "zz.csv").write_text("t,v\n2,2\n")  # names have been looked up again when it is read
        reading.shows((1, 1), (2, 2))
        assert reading.live.unread() == {"s": 24}
        (found,) = reading.live.report()
    assert (found.code, found.message) == ("data-unread", "input `s`: 24 files that came were not read")
    assert len(told) == 10
    assert {
        f"input `s` does not read `{tmp_path}/README`: its suffix tells no format",
        f"input `s` does not read `{tmp_path}/old.csv.gz`: compressed files cannot be read while they are written",
        f"input `s` does not read `{tmp_path}/t.parquet`: parquet files cannot be read while they are written",
        f"input `s` does not read `{tmp_path}/inner`: it is no file",
    } < {*told}


def test_files_that_are_there_are_read_in_the_order_of_their_names(tmp_path):
    for i in range(9, -1, -1):
        (tmp_path / f"{i}.txt").write_text(f"{i}\n")
    with Reading(Follow(str(tmp_path))) as reading:
        reading.shows(*map(str, range(10)))


def test_errors_of_a_folder_name_the_file(tmp_path):
    (tmp_path / "a.csv").write_text("t,v\n1,1\n")
    (tmp_path / "b.csv").write_text("t,v\n1,x\n")
    with Reading(Follow(str(tmp_path)), ROW) as reading, pytest.raises(Rejected, match=r"b\.csv:2:3"):
        reading.shows((1, 1), "more")


def test_what_somebody_has_read_ahead_of_a_pipe_is_not_lost():
    inner, outer = os.pipe()
    os.write(outer, b"mine\nfirst\n")
    with os.fdopen(inner, "rb") as file:
        assert file.readline() == b"mine\n"
        with Reading(file, format="text") as reading:
            os.write(outer, b"second\n")
            os.close(outer)
            reading.shows("first", "second")


def test_a_named_pipe(tmp_path):
    path = tmp_path / "s.txt"
    os.mkfifo(path)
    with Reading(str(path)) as reading:
        with path.open("w") as file:
            file.write("one\n")
        reading.shows("one")
        until(lambda: reading.inbox.over(stopped=False))


@pytest.mark.parametrize(
    "spec", ["s.csv", "nowhere.csv", [(1, 1)], io.BytesIO(b"t,v\n"), io.StringIO("t,v\n")]
)
def test_these_are_not_live(spec):
    assert arriving(spec, ROW, Live(), name="s", refusals=Refusals(STOP), format="csv") is None


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("tcp://0.0.0.0:9000", "data-address", "on this machine only"),
        ("tcp://example.org:9000", "data-address", "on this machine only"),
        ("tcp://127.0.0.1", "data-address", "no address"),
        ("tcp://127.0.0.1:70000", "data-address", "no address"),
        ("tcp://[::1]:x", "data-address", "no address"),
    ],
)
def test_only_this_machine_can_connect(url, code, words):
    with pytest.raises(Rejected) as caught:
        arriving(url, ROW, Live(), name="s", refusals=Refusals(STOP), format="csv")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert words in diagnostic.message


@pytest.mark.parametrize("spec", [Follow("s.csv.gz"), Follow("s.parquet"), Follow("s"), "tcp://127.0.0.1:1"])
def test_what_cannot_be_read_while_it_is_written(spec):
    with pytest.raises(Rejected, match="data-format"):
        arriving(spec, ROW, Live(), name="s", refusals=Refusals(STOP))


# ------------------------------------------------------------------------------------------------ the command line


def run(*argv):
    out, err = io.StringIO(), io.StringIO()
    status = main([str(a) for a in argv], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


@pytest.fixture
def program(tmp_path):
    (tmp_path / "echo.river").write_text(ECHO)
    (tmp_path / "a.csv").write_text("t,v\n1,10\n2,20\n")
    return tmp_path / "echo.river"


def test_follow_and_idle_exit(program, tmp_path):
    target = tmp_path / "b.csv"
    target.write_text("old, and longer than what comes now\n")
    arguments = ("run", program, "--in", f"a={tmp_path / 'a.csv'}", "--out", f"b={target}", "--no-native")
    status, out, err = run(*arguments, "--follow", "--idle-exit", "100ms", "-q")
    assert (status, out, err) == (0, "v\n10\n20\n", "")
    assert target.read_text() == "t,v\n1,10\n2,20\n"


def test_a_run_is_not_idle_while_it_reads(program, tmp_path, monkeypatch):
    read = Growing._next

    def slow(self, size):
        time.sleep(0.2)
        return read(self, size)

    monkeypatch.setattr(Growing, "_next", slow)
    arguments = (
        "run",
        program,
        "--in",
        f"a={tmp_path / 'a.csv'}",
        "--out",
        f"b={tmp_path / 'b.csv'}",
        "--no-native",
    )
    status, out, err = run(*arguments, "--follow", "--idle-exit", "10ms", "-q")
    assert (status, out, err) == (0, "v\n10\n20\n", "")


def test_several_outputs_on_standard_output_say_whose_rows_they_are(program, tmp_path):
    arguments = (
        "run",
        program,
        "--in",
        f"a={tmp_path}/",
        "--follow-input",
        "a",
        "--idle-exit",
        "100ms",
        "-q",
    )
    status, out, err = run(*arguments, "--no-native")
    assert (status, err.count("warning[data-unread]")) == (0, 2)  # of the program: at once, and at the end
    found: dict = {}
    name = ""
    for line in out.splitlines():
        if line.startswith("# "):
            name = line[2:]
        else:
            found.setdefault(name, []).append(line)
    assert found == {"b": ["t,v", "1,10", "2,20"], "c": ["v", "10", "20"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--backend", "reference", "--follow"),
            "error[run-live]: input `a` is live, and the backend `reference`",
        ),
        (("--follow-input", "b"), "there is no `--in b=FILE`"),
        (("--idle", "5"), "`5` is no duration"),
        (("--idle", "-5s"), "`-5s` is no duration"),
        (("--follow", "--clock", "wall"), "error[run-clock]"),
        (("--clock", "wall"), "error[run-live]: the run is to be live, and no input is"),
    ],
)
def test_options_that_say_nothing_sensible(program, tmp_path, arguments, words):
    status, _, err = run("run", program, "--in", f"a={tmp_path / 'a.csv'}", "--no-native", *arguments)
    assert status == 1
    assert words in err


def test_check_refuses_live_inputs(program):
    status, _, err = run("check", program, "--in", "a=tcp://127.0.0.1:9000", "--in-format", "a=csv")
    assert status == 1
    assert "error[check-live]: input `a` is live" in err


@pytest.mark.parametrize("backend", ["multicore", "reference"])
def test_pipes_are_read_by_every_backend(program, backend):
    inner, outer = os.pipe()
    os.write(outer, b"t,v\n1,10\n2,20")
    os.close(outer)
    with os.fdopen(inner, "rb") as file:
        job = Job({"a": file}, {}, STOP, formats={"a": "csv"}, options=Options(native="off"))
        results = execute(river.load(str(program)), backend, job)
    assert results["c"].column("v").to_pylist() == [10, 20]


@pytest.mark.parametrize("suffix", ["jsonl", "arrow", "parquet"])
def test_outputs_of_other_formats(program, tmp_path, suffix):
    target = tmp_path / f"b.{suffix}"
    results = river.load(program).run(
        {"a": river.follow(tmp_path / "a.csv")},
        {"b": target},
        live=river.Live(idle_exit=0.1),
        native="off",
    )
    assert results.rows == {"b": 2, "c": 2}
    again = river.load(str(program)).run({"a": str(target)}, native="off")
    assert again["c"].column("v").to_pylist() == [10, 20]


# whoever runs the tests in the background has Ctrl-C ignored
COMMAND = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\nfrom river.cli import run; run()"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_run_well(program, tmp_path, number):
    target = tmp_path / "b.jsonl"
    command = [sys.executable, "-c", COMMAND, "run", str(program), "--no-native"]
    command += ["--in", f"a={tmp_path / 'a.csv'}", "--follow", "--out", f"b={target}", "--format", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["v\n", "10\n", "20\n"]
        append(tmp_path / "a.csv", "3,30\n")
        assert process.stdout.readline() == "30\n"
        until(lambda: len(target.read_text().splitlines()) == 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert err.startswith("3 items in ")
    assert [json.loads(line)["v"] for line in Path(target).read_text().splitlines()] == [10, 20, 30]


def test_ctrl_c_interrupts_a_run_over_a_pipe(program, tmp_path):
    target = tmp_path / "b.csv"
    command = [sys.executable, "-c", COMMAND, "run", str(program), "--no-native"]
    command += [
        "--in",
        "a=-",
        "--in-format",
        "a=csv",
        "--out",
        f"b={target}",
        "--out",
        f"c={tmp_path / 'c.csv'}",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("t,v\n1,10\n")
        process.stdin.flush()
        until(lambda: list(tmp_path.glob(".b.csv.*")))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "echo.river"]
