"""A command's process ends at once, but not before what was to be done at its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, os, sys, threading, time
from river.cli.leaving import at_once, leave

class Late:
    def __del__(self):
        os.write(1, b"taken apart\\n")

atexit.register(print, "at exit")
late = Late()
if "known" in sys.argv:
    at_once()
if "thread" in sys.argv:
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
print("over")
leave(3)
"""


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], ["over", "at exit", "taken apart"]),
        (["known"], ["over", "at exit"]),
        (["known", "thread"], ["over", "thread", "at exit", "taken apart"]),
    ],
)
def test_what_is_done_at_the_end(args: list[str], told: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT, *args], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (3, told, "")
