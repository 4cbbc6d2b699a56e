"""Commands that get a signal at any moment: no traceback, no status 0, and nothing half-written is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from river.cli import signals
from river.testing import seeds
from tests.patience import PATIENCE

if TYPE_CHECKING:
    import random

CASES = int(os.environ.get("RIVER_CASES", "6"))
WORDS = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n"}
ECHO = """\
river 1;
input a: {t: i64, v: i64};
output b: {t: i64, v: i64};
operator same(x: {t: i64, v: i64}) -> (y: {t: i64, v: i64}) { on x(r) { emit y r; } }
(b) <- same(a);
"""
ROWS = "t,v\n" + "".join(f"{i},{i}\n" for i in range(1000))

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="who heeds signals is read there"
)


def heeds(process: subprocess.Popen[str]) -> bool:
    """Whether River runs there: Python itself lets SIGTERM end it."""
    found = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in found.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def begun(command: list[str], interrupt: str = "SIG_DFL") -> subprocess.Popen[str]:
    """A command, from the moment at which it is River's: what comes before is between Python and the system.

    `interrupt`: what Ctrl-C does; whoever runs the tests in the background has it ignored.
    """
    text = (
        f"import signal; signal.signal(signal.SIGINT, signal.{interrupt})\nfrom river.cli import run; run()"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", text, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    deadline = time.monotonic() + PATIENCE
    while not heeds(process):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return process


@pytest.fixture
def program(tmp_path):
    (tmp_path / "echo.river").write_text(ECHO)
    (tmp_path / "a.csv").write_text(ROWS)
    return tmp_path / "echo.river"


def signalled(program: Path, chance: random.Random) -> None:
    """One command, one or two signals."""
    folder = program.parent / "out"
    folder.mkdir(exist_ok=True)
    target = folder / "b.csv"
    endless = chance.random() < 0.6
    native = ["--no-native"] if chance.random() < 0.5 else []
    data = ["--in", "a=-", "--in-format", "a=csv"] if endless else ["--in", f"a={program.parent / 'a.csv'}"]
    command = ["run", str(program), *data, *native, "-q", "--out", f"b={target}"]
    number = chance.choice([signal.SIGINT, signal.SIGTERM])
    wait = chance.uniform(0, 1.5)
    again = chance.choice([None, None, 0.0, chance.uniform(0, 0.05)])
    process = begun(command)
    try:
        if endless:
            assert process.stdin is not None
            process.stdin.write(ROWS)
            process.stdin.flush()
        time.sleep(wait)
        for pause in (0.0,) if again is None else (0.0, again):
            time.sleep(pause)
            process.send_signal(number)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert process.stdout is not None
        assert process.stderr is not None
        found = (process.returncode, process.stdout.read(), process.stderr.read())
    finally:
        process.kill()
        process.communicate()
    told = (128 + number, "", WORDS[number])
    left = [path.name for path in folder.iterdir()]
    if endless:
        # the second signal may find nothing left to do but to end
        assert found in ([told] if again is None else [told, (-number, "", WORDS[number])])
        assert left == []
        return
    # it may have come to its end before, or may be ending
    assert found in [told, (0, "", ""), (-number, "", ""), (-number, "", WORDS[number])]
    assert left in ([], ["b.csv"])
    if left:
        assert target.read_text() == ROWS
        target.unlink()
    else:
        assert found[0] == 128 + number or found[0] == -number


@pytest.mark.slow
def test_many_signals_at_any_moment(program):
    chance = seeds.chance("many signals")
    for _ in range(CASES):
        signalled(program, chance)


INTERRUPTED = """
import gc, signal, sys, time
from river.cli import signals
from river.testing import seeds
import river.cli.commands

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        for _ in range(10):  # a handler runs between two steps of Python
            pass

def main(*_, **__):
    if sys.argv[1] == "lost":
        Finalized()
        while True:
            time.sleep(0.01)
    if sys.argv[1] == "dropped":
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException:
            pass
        while True:
            time.sleep(0.01)
    if sys.argv[1] == "kept":
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException as error:
            kept = error
        for _ in range(100):  # it is raised later, and not sent again before that
            time.sleep(0.001)
        raise kept
    if sys.argv[1] == "packed":
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException as error:
            raise RuntimeError("something else") from error
    if sys.argv[1] == "swallowed":
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException:
            return 0
    if sys.argv[1] == "other":
        class Failing:
            def __del__(self):
                raise ValueError("of a finalizer")
        Failing()
        return 0

river.cli.main = main
river.cli.run()
"""


LONG = """
river 1;
input a: {t: i64, v: i64};
output b: {t: i64, v: i64};
output c: {t: i64, v: i64};
operator first(x: {t: i64, v: i64}) -> (y: {t: i64, v: i64}, z: {t: i64, v: i64}) {
  const k: i64 = long(); fn long() -> i64 { var n = 0; for i in 0 .. 1000000000 { n = n +% i; } return n; }
  on x(r) { emit y {t: r.t, v: k}; emit z r; }
}
operator second(x: {t: i64, v: i64}) -> (y: {t: i64, v: i64}) {
  const k: i64 = long(); fn long() -> i64 { var n = 1; for i in 0 .. 1000000000 { n = n +% i; } return n; }
  on x(r) { emit y {t: r.t, v: k}; }
}
(b, d) <- first(a);
(c) <- second(d);
"""


LARGE = LONG.replace("-> i64", "-> array<i64, 5000>").replace("const k: i64", "const k: array<i64, 5000>")
LARGE = (
    LARGE.replace("v: k", "v: k[7]").replace("return n;", "return fill(n);").replace("n +% i", "(n ^ i) *% 7")
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [LONG, LARGE], ids=["long", "large"])
def test_a_signal_ends_what_computes_constants_beside(program, text):
    """Operators become machine code side by side; nobody waits for the constants of one when the command is to end.

    Neither where the evaluator computes them, nor where machine code does.
    """
    program.write_text(text.replace("1000000000", "1000000000000"))
    process = begun(["run", str(program), "--in", f"a={program.parent / 'a.csv'}", "-q", "--workers", "2"])
    time.sleep(1)  # until they are computed; an earlier signal finds less to end
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (128 + signal.SIGTERM, "", WORDS[signal.SIGTERM])


@pytest.mark.some(2)
@pytest.mark.parametrize("how", ["lost", "dropped", "kept", "packed", "swallowed"])
def test_an_interrupt_that_others_catch_ends_the_command(how):
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, how], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (143, "", "terminated\n")


def test_other_errors_of_finalizers_are_told():
    command = [sys.executable, "-c", INTERRUPTED, "other"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0
    assert "ValueError: of a finalizer" in found.stderr


def test_a_signal_that_the_caller_has_ignored_is_ignored(program):
    command = [
        "run",
        str(program),
        "--in",
        "a=-",
        "--in-format",
        "a=csv",
        "--no-native",
        "-q",
        "--format",
        "csv",
    ]
    process = begun(command, "SIG_IGN")
    with process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(ROWS)
    assert (process.returncode, out, err) == (0, ROWS, "")


def test_a_command_inside_another_program_leaves_signals_alone():
    before = [signal.getsignal(number) for number in WORDS]
    with signals.ended_by_signals(None):
        assert [signal.getsignal(number) for number in WORDS] == before
