"""Inputs that go on: pipes, growing files and folders, connections, iterators that wait.

Each is read in a thread of its own, which puts what comes into an inbox; `river.ingress` takes from there what there
is, merges it by time, and hands it to the program. Nothing waits for a batch to fill.
"""

from river.io.live.control import Live, Stopped
from river.io.live.inbox import Arriving, Inbox, still
from river.io.live.opening import Follow, arriving, asked, in_folder, listens

__all__ = [
    "Arriving",
    "Follow",
    "Inbox",
    "Live",
    "Stopped",
    "arriving",
    "asked",
    "in_folder",
    "listens",
    "still",
]
