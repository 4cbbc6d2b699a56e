"""Those who connect to an input: whole lines count, and what one of them does wrong ends that one alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import river
from river.backend import Options
from river.cli import main
from river.diagnostics import Rejected
from river.driver import Job, execute
from river.io.errors import SKIP, STOP, OnError
from river.io.live import Inbox, Live
from river.io.live import connections as module
from river.io.live.connections import Door, serve
from river.io.live.control import Stopped
from river.io.live.sockets import listening
from river.lang.types import I64, Record
from tests.patience import PATIENCE, stop, until

WORD = "sécret"
NATIVE = pytest.mark.parametrize("native", ["on", "off"])
ROW = Record((("t", I64), ("v", I64)))


def echo(by=""):
    row = f"{{t: i64, v: i64}} {by}"
    return river.compile(
        f"river 1;\ninput a: {row};\noutput b: {row};\n"
        f"operator same(x: {row}) -> (y: {row}) {{ on x(r) {{ emit y r; }} }}\n(b) <- same(a);\n",
        "river",
    )


class Served:
    """A run whose input listens, in a thread."""

    def __init__(
        self,
        folder,
        policy=STOP,
        native: Any = "off",
        address="tcp://127.0.0.1:0",
        by="",
        format="csv",
        **more,
    ):
        self.told = []
        self.live = Live(tell=self.told.append, **more)
        self.path = folder / "b.csv"
        self.address = address
        self.failure: BaseException | None = None
        self.results: Any = None
        compiled = echo(by)
        job = Job(
            {"a": address},
            {"b": self.path},
            policy,
            formats={"a": format},
            options=Options(native=native),
            live=self.live,
        )

        def run():
            try:
                self.results = execute(compiled, "multicore", job)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.failure = error

        self.thread = threading.Thread(target=run)
        self.thread.start()
        until(lambda: self.failure is not None or (self.live.doors and self.path.exists()))
        if self.failure is not None:
            raise self.failure
        self.address = self.live.doors[0].address

    def connected(self):
        if self.address.startswith("unix:"):
            one = socket.socket(socket.AF_UNIX)
            one.connect(self.address.removeprefix("unix:"))
        else:
            one = socket.create_connection(("127.0.0.1", int(self.address.rpartition(":")[2])))
        one.settimeout(PATIENCE)
        return one

    def sends(self, data):
        """Somebody sends this and goes away in order."""
        with self.connected() as one:
            one.sendall(data)

    def rows(self):
        text = self.path.read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()[1:]
        return sorted(tuple(map(int, line.split(","))) for line in lines)

    def shows(self, *rows):
        until(lambda: self.failure is not None or self.rows() == [*rows])

    def codes(self):
        return [each.code for each in self.told if each.code != "data-address"]

    def ends(self, *codes):
        """The run ends well; so many connections have ended badly."""
        until(lambda: len(self.codes()) == len(codes))
        self.live.stop()
        self.thread.join(PATIENCE)
        assert self.failure is None
        assert sorted(self.codes()) == sorted(codes)
        counted = {code: codes.count(code) for code in codes}
        assert self.results.summary.metrics.connections["a"].closed == counted
        reports = [each for each in self.results.warnings if each.code == "data-connection"]
        assert len(reports) == bool(codes)
        for code, number in counted.items():
            assert f"{number} {code}" in reports[0].message
        return self.results


@contextmanager
def served(*arguments, **more):
    one = Served(*arguments, **more)
    try:
        yield one
    finally:
        stop(one.live, one.thread)


def reset(one):
    """Goes away without a word."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


def heard(one):
    """What is said to who sends, up to the end."""
    found = b""
    with suppress(ConnectionError):
        while data := one.recv(1 << 16):
            found += data
    return found.decode()


# ------------------------------------------------------------------------------------------------ whole lines


@NATIVE
@pytest.mark.parametrize("goes", [reset, socket.socket.close])
def test_a_line_that_somebody_did_not_finish_is_no_row(tmp_path, native, goes):
    with served(tmp_path, native=native) as run:
        one = run.connected()
        one.sendall(b"t,v\n1,10\n2,1234")
        run.shows((1, 10))
        goes(one)
        until(lambda: run.codes() == ["data-incomplete"])
        run.sends(b"t,v\n3,30\n")  # the others go on
        run.shows((1, 10), (3, 30))
        run.ends("data-incomplete")
        (told,) = [each for each in run.told if each.code == "data-incomplete"]
        assert told.place.endswith(":3")


@NATIVE
def test_so_it_is_counted_as_a_bad_row_where_these_are(tmp_path, native):
    letters = tmp_path / "bad.jsonl"
    with served(tmp_path, OnError("dead-letter", str(letters)), native) as run:
        run.sends(b"t,v\n1,10\n2,1234")
        run.shows((1, 10))
        results = run.ends("data-incomplete")
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert (letter["code"], letter["line"], letter["text"]) == ("data-incomplete", 3, "2,1234")
    assert sorted(each.code for each in results.warnings) == ["data-connection", "data-skipped"]


def test_a_reset_behind_a_whole_line_is_told_of(tmp_path):
    with served(tmp_path) as run:
        one = run.connected()
        one.sendall(b"t,v\n1,10\n")
        run.shows((1, 10))
        reset(one)
        run.ends("data-incomplete")
        assert run.rows() == [(1, 10)]


@NATIVE
@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_that_come_in_pieces(tmp_path, native, size):
    text = b"t,v\n1,10\n2,20\n"
    with served(tmp_path, native=native) as run:
        with run.connected() as one:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(text), size):
                one.sendall(text[start : start + size])
                time.sleep(0.002)
        run.shows((1, 10), (2, 20))
        results = run.ends()
        assert results.read == 2
        assert results.warnings == ()


def test_what_is_half_sent_when_the_run_ends_is_told_of(tmp_path):
    with served(tmp_path) as run, run.connected() as one:
        one.sendall(b"t,v\n1,10\n2,1")
        run.shows((1, 10))
        until(lambda: run.live.doors[0].held == 3)
        (remark,) = run.ends().warnings
        assert remark.code == "data-incomplete"
        assert "its 3 bytes were not read" in remark.message


# ------------------------------------------------------------------------------------------------ one stranger


@NATIVE
@pytest.mark.parametrize(
    ("by", "bad", "code"),
    [("", b"x,y\n", "data-type"), ("by t", b"0,0\n", "data-order"), ("", b"1\n", "data-missing-field")],
)
def test_a_bad_row_ends_the_connection_that_it_came_from(tmp_path, native, by, bad, code):
    with served(tmp_path, native=native, by=by) as run:
        with run.connected() as stranger, run.connected() as friend:
            friend.sendall(b"t,v\n1,10\n")
            run.shows((1, 10))
            stranger.sendall(b"t,v\n2,20\n" + bad + b"9,90\n")  # what is behind it is not taken
            said = heard(stranger)
            assert f"error[{code}]" in said
            assert f"{run.address} from " in said
            friend.sendall(b"3,30\n")
        run.shows((1, 10), (2, 20), (3, 30))
        assert run.ends(code).rows == {"b": 3}


@NATIVE
def test_a_late_row_ends_the_connection_that_it_came_from(tmp_path, native):
    with served(tmp_path, native=native, by="by t") as run:
        run.sends(b"t,v\n50,1\n60,1\n")
        run.shows((50, 1), (60, 1))
        run.sends(b"t,v\n60,2\n7,2\n99,2\n")
        until(lambda: run.codes() in (["data-order"], ["data-late"]))
        run.sends(b"t,v\n61,3\n")  # time has not gone on to 99
        run.shows((50, 1), (60, 1), (60, 2), (61, 3))
        run.ends(*run.codes())


@NATIVE
def test_a_header_that_does_not_fit_ends_the_connection(tmp_path, native):
    with served(tmp_path, native=native) as run:
        run.sends(b"nothing,here\n1,2\n")
        run.sends(b"v,t\n10,1\n")
        run.shows((1, 10))
        run.ends("data-column")


@NATIVE
def test_other_policies_leave_the_row_out_and_keep_the_connection(tmp_path, native):
    with served(tmp_path, SKIP, native) as run:
        run.sends(b"t,v\n1,10\nx,y\n2,20\n")
        run.shows((1, 10), (2, 20))
        (warning,) = run.ends().warnings
        assert warning.code == "data-skipped"


@pytest.mark.parametrize("policy", [STOP, SKIP])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_browser_is_told_and_gives_no_rows(tmp_path, policy, format):
    with served(tmp_path, policy, format=format) as run:
        with run.connected() as browser:
            browser.sendall(b"POST /t,v HTTP/1.1\r\nHost: localhost\r\n\r\nt,v\n1,1\n")
            said = heard(browser)
        head, _, body = said.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 400 Bad Request\r\n")
        assert f"Content-Length: {len(body)}" in head
        assert "error[data-http]" in body
        run.ends("data-http")
        assert run.rows() == []


def test_the_65th_is_told_that_there_are_64(tmp_path):
    with served(tmp_path) as run:
        door = run.live.doors[0]
        all_ = [run.connected() for _ in range(64)]
        until(lambda: door.accepted == 64)
        with run.connected() as late:
            assert "error[data-busy]: 64 senders are connected already" in heard(late)
        all_.pop().close()
        until(lambda: sum(t.name == "river-connection" for t in threading.enumerate()) == 63)
        run.sends(b"t,v\n1,10\n")
        run.shows((1, 10))
        for one in all_:
            one.close()
        run.ends("data-busy")


def test_who_connects_when_the_run_ends_is_told():
    live = Live()
    live.open()
    found = listening("tcp://127.0.0.1:0", "a")
    door = Door(live, "a", found.address, web=True, stops=True)
    lock = threading.Lock()
    with socket.create_connection(found.socket.getsockname()) as late:
        live.stop()
        with pytest.raises(Stopped):
            serve(door, found.socket, Inbox("a", threading.Condition(lock), lock, 1), lambda *_: None)
        assert "error[data-busy]: the run ends" in heard(late)
    assert door.figures().closed == {"data-busy": 1}
    found.close()
    live.close()


# ------------------------------------------------------------------------------------------------ tokens


@NATIVE
def test_who_knows_the_token_sends(tmp_path, native):
    with served(tmp_path, native=native, token=WORD) as run:
        run.sends(f"{WORD}\nt,v\n1,10\n".encode())
        run.sends(f"{WORD}\r\nt,v\r\n2,20\r\n".encode())
        run.shows((1, 10), (2, 20))
        run.ends()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"t,v\n1,10\n", "data-token"),
        (WORD[:-1].encode() + b"\nt,v\n1,10\n", "data-token"),
        (WORD.encode() + b"s\nt,v\n1,10\n", "data-token"),
        (b"\n" + WORD.encode() + b"\nt,v\n1,10\n", "data-token"),
        (b"x" * 5000, "data-token"),  # nobody waits for the end of that
        (b"GET / HTTP/1.1\r\n\r\n", "data-http"),
    ],
)
def test_who_does_not_know_it_is_told(tmp_path, data, code):
    with served(tmp_path, SKIP, token=WORD) as run:
        with run.connected() as one:
            one.sendall(data)
            assert f"error[{code}]" in heard(one)
        results = run.ends(code)
        assert run.rows() == []
        assert not any(WORD in each.message for each in (*results.warnings, *run.told))


# ------------------------------------------------------------------------------------------------ silence and endless lines


def test_who_stops_in_the_middle_of_a_line_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "OWED", 0.05)
    with served(tmp_path) as run, run.connected() as patient:
        patient.sendall(b"t,v\n1,10\n")
        with run.connected() as one:
            one.sendall(b"t,v\n2,2")
            assert "error[data-silence]: nothing came for 0.05 s in the middle of a line" in heard(one)
        patient.sendall(b"3,30\n")  # between lines one may be silent
        run.shows((1, 10), (3, 30))
        run.ends("data-silence")


def test_who_says_no_token_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "OWED", 0.05)
    with served(tmp_path, token=WORD) as run:
        with run.connected() as one:
            assert "error[data-silence]" in heard(one)
        run.ends("data-silence")


def test_silent_connections_end_where_that_is_asked_for(tmp_path):
    with served(tmp_path, hang_up=0.05) as run:
        with run.connected() as one:
            one.sendall(b"t,v\n1,10\n")
            assert "error[data-silence]: nothing came for 0.05 s\n" in heard(one)
        run.shows((1, 10))  # what came before counts
        run.ends("data-silence")


def test_lines_without_end_are_bounded_together(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNFINISHED", 1 << 20)
    monkeypatch.setattr(module, "SHARE", 1 << 14)
    most = []
    hold = Door.hold

    def noted(self, more):
        most.append(hold(self, more))
        return most[-1]

    monkeypatch.setattr(Door, "hold", noted)
    with served(tmp_path) as run, run.connected() as small:
        small.sendall(b"t,v\n1,1")
        until(lambda: run.live.doors[0].held == 3)
        crowd = [run.connected() for _ in range(8)]
        said = []

        def shout(one):
            with suppress(ConnectionError):
                while True:
                    one.sendall(b"x" * (1 << 16))
            said.append(heard(one))
            one.close()

        threads = [threading.Thread(target=shout, args=(one,)) for one in crowd]
        for thread in threads:
            thread.start()
        # the others end when there is no room for them; who is left last may hold all of it, but no more
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        small.sendall(b"0\n")
        run.shows((1, 10))
        run.ends(*["data-long-line"] * 8)
        assert run.live.doors[0].held == 0
    assert max(most) <= (1 << 20) + 8 * (1 << 18)  # what is read at a time


@NATIVE
@pytest.mark.parametrize("policy", [STOP, SKIP])
def test_so_are_records_whose_quotes_are_open(tmp_path, monkeypatch, policy, native):
    monkeypatch.setattr(module, "UNFINISHED", 1 << 18)
    monkeypatch.setattr(module, "SHARE", 1 << 14)
    with served(tmp_path, policy, native) as run:
        with run.connected() as one:
            one.sendall(b't,v\n1,10\n2,"')
            with suppress(ConnectionError):
                while True:
                    one.sendall(b"3,30\n" * 10_000)
            assert "error[data-long-line]" in heard(one)
        run.sends(b"t,v\n4,40\n")
        run.shows((1, 10), (4, 40))
        run.ends("data-long-line")
        assert run.live.doors[0].held == 0


# ------------------------------------------------------------------------------------------------ sockets in the file system


@NATIVE
def test_a_unix_socket_is_of_its_owner_alone_and_gone_in_the_end(tmp_path, native):
    place = tmp_path / "a.sock"
    with served(tmp_path, SKIP, native, address=f"unix:{place}") as run:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        run.sends(b"t,v\n1,10\nGET / HTTP/1.1\n")
        run.shows((1, 10))
        (warning,) = run.ends().warnings
        assert f"{place} from process {os.getpid()}:3" in warning.notes[0].message
    assert not place.exists()


def test_a_request_is_a_row_like_others_where_no_browser_comes(tmp_path):
    with served(tmp_path, SKIP, address=f"unix:{tmp_path / 'a.sock'}") as run:
        run.sends(b"GET /t,v HTTP/1.1\n")
        until(lambda: run.live.doors[0].accepted == 1)
        run.ends()


def test_the_socket_of_a_dead_process_is_replaced(tmp_path):
    place = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert place.exists()
    with served(tmp_path, address=f"unix:{place}") as run:
        run.sends(b"t,v\n1,10\n")
        run.shows((1, 10))
        run.ends()
    assert not place.exists()


@pytest.mark.parametrize(
    ("makes", "words"),
    [
        (lambda path: path.write_text("kept"), "is there and is no socket"),
        (lambda path: path.mkdir(), "is there and is no socket"),
        (lambda path: path.symlink_to(path.parent / "elsewhere"), "is there and is no socket"),
    ],
)
def test_what_is_no_socket_is_left_alone(tmp_path, makes, words):
    place = tmp_path / "a.sock"
    makes(place)
    before = place.lstat()
    with pytest.raises(Rejected, match=words) as caught:
        listening(f"unix:{place}", "a")
    assert caught.value.diagnostics[0].code == "data-address"
    assert place.lstat() == before


@pytest.mark.parametrize("backlog", [0, 5])
def test_a_socket_at_which_somebody_listens_is_left_alone(tmp_path, backlog):
    place = tmp_path / "a.sock"
    waiting = []
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(place))
        alive.listen(backlog)
        for _ in range(backlog == 0):  # it has no room for more
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].connect(str(place))
        with pytest.raises(Rejected, match="another process listens at"):
            listening(f"unix:{place}", "a")
    for one in waiting:
        one.close()
    assert place.exists()


def test_a_place_that_somebody_else_took_is_not_removed(tmp_path):
    place = tmp_path / "a.sock"
    found = listening(f"unix:{place}", "a")
    place.unlink()
    place.write_text("of somebody else")
    found.close()
    assert place.read_text() == "of somebody else"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("unix:", "data-address"),
        ("unix:nowhere/a.sock", "data-unreadable"),
        (f"unix:{'x' * 200}", "data-unreadable"),
    ],
)
def test_places_where_there_can_be_no_socket(tmp_path, monkeypatch, address, code):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Rejected, match=code):
        listening(address, "a")
    assert list(tmp_path.iterdir()) == []


def test_what_was_sent_to_a_socket_cannot_be_read_again(tmp_path):
    with pytest.raises(Rejected, match="run-checkpoint"):
        echo().run({"a": f"unix:{tmp_path / 'a'}"}, {"b": tmp_path / "b.csv"}, checkpoint=tmp_path / "state")


# ------------------------------------------------------------------------------------------------ the command line


def test_a_command_tells_of_connections(tmp_path):
    (tmp_path / "echo.river").write_text(echo().text)
    (tmp_path / "token").write_text("secret\nnot this\n")
    metrics = tmp_path / "m.jsonl"
    command = [sys.executable, "-c", "from river.cli import run; run()", "run", str(tmp_path / "echo.river")]
    command += [
        "--in",
        "a=tcp://127.0.0.1:0",
        "--in-format",
        "a=csv",
        "--no-native",
        "--format",
        "csv",
        "--summary",
    ]
    command += ["--token-file", str(tmp_path / "token"), "--metrics", str(metrics)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        address = process.stderr.readline()
        assert address.startswith("remark[data-address]: input `a` listens at `tcp://127.0.0.1:")
        port = int(address.rstrip("`\n").rpartition(":")[2])

        def sends(data):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.settimeout(PATIENCE)
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                return heard(one)

        assert "data-http" in sends(b"GET / HTTP/1.1\r\n\r\n")
        assert "data-token" in sends(b"t,v\n1,10\n")
        assert "warning[data-http]: its first line is one of HTTP" in process.stderr.readline()  # at once
        assert sends(b"secret\nt,v\n1,10\n") == ""
        assert process.stdout.readline() == "t,v\n"
        assert process.stdout.readline() == "1,10\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (
        "warning[data-connection]: input `a`: 3 connections, some of which ended badly (1 data-http, 1 data-token)"
        in err
    )
    assert ["a", "3", "1", "data-http,", "1", "data-token"] in [line.split() for line in err.splitlines()]
    last = json.loads(metrics.read_text().splitlines()[-1])
    assert last["connections"] == {"a": {"accepted": 3, "closed": {"data-http": 1, "data-token": 1}}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--token", "x"), "`--token` is for those who connect, and no input listens"),
        (("--token-file", "x"), "`--token-file` is for those who connect"),
        (("--hang-up", "5s"), "`--hang-up` is for those who connect"),
        (("--in", "a=tcp://127.0.0.1:0", "--token", "x", "--token-file", "y"), "both state a token"),
        (("--in", "a=tcp://127.0.0.1:0", "--token", " "), "a token is a line"),
        (("--in", "a=tcp://127.0.0.1:0", "--token", "x\ny"), "a token is a line"),
        (("--in", "a=tcp://127.0.0.1:0", "--token-file", "nowhere"), "there is no file `nowhere`"),
        (("--in", "a=tcp://127.0.0.1:0", "--token-file", "."), "'.' is a directory"),
    ],
)
def test_options_that_say_nothing_sensible(tmp_path, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "echo.river").write_text(echo().text)
    inputs = () if "--in" in arguments else ("--in", "a=a.csv")
    assert main(["run", "echo.river", *inputs, *arguments], sys.stdin, sys.stdout, sys.stderr) == 1
    assert words in capsys.readouterr().err
