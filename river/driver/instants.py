"""What the options of a run say about time, in the unit of the program's time stamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import evolve
from river.diagnostics import Diagnostic, Rejected
from river.lang import types as t
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from river.driver.job import Job
    from river.il.graph import Graph


def timed(graph: Graph, job: Job) -> Job:
    """The job with its lateness, and the end of time, as numbers.

    Raises: Rejected("run-until", "run-lateness") for what is no time, or not in the unit of the time stamps.
    """
    if job.lateness < 0:
        raise Rejected([Diagnostic("run-lateness", f"`{job.lateness}` is no length of time")])
    if not job.stated:
        return job
    clocks: set[t.Type] = set()
    for queue in map(graph.queues.__getitem__, graph.inputs):
        key = queue.key()
        if key is not None:
            clocks.add(t.parts(queue.type)[key])
    late, until = (job.stated.get(name) for name in ("lateness", "until"))
    if late is not None:
        job = evolve(job, lateness=_lateness(clocks, late))
    if until is not None:
        job = evolve(job, options=evolve(job.options, until=_until(clocks, until)))
    return job


def _lateness(clocks: set[t.Type], given: str) -> int:
    """How far back rows may come. Units: ticks, or microseconds."""
    from river.io.scalars import Mismatch, parse_duration

    if given.isdecimal():
        return int(given)
    try:
        found = parse_duration(given)
    except Mismatch:
        found = -1
    if found < 0:
        help_ = "write a whole number, or a number and a unit, such as 500ms, 2s, 5min"
        raise Rejected([Diagnostic("run-lateness", f"`{given}` is no length of time", help=help_)])
    if not clocks <= {t.TIME}:
        message = f"`{given}` is a length of time, and the time stamps are numbers"
        raise Rejected([Diagnostic("run-lateness", message, help="say it in their unit, without one")])
    return found


def _until(clocks: set[t.Type], given: str) -> int:
    """The instant up to which time goes on. Units: ticks, or microseconds since 1970."""
    from river.lang.operations import times

    if not clocks:
        message = "no input has a time stamp, so there is no time that could go on"
        raise Rejected([Diagnostic("run-until", message, help="leave out `--until`")])
    number = given.removeprefix("-").isdecimal()
    found = int(given) if number else times.parse_time(given)
    if found is None or not all(BOUNDS[clock][0] <= found <= BOUNDS[clock][1] for clock in clocks):
        message = f"`{given}` is no instant"
        help_ = "write a number, in the unit of the time stamps, or a time such as 2026-01-31T12:00:00"
        raise Rejected([Diagnostic("run-until", message, help=help_)])
    if not number and not clocks <= {t.TIME}:
        message = f"`{given}` is a time, and the time stamps are numbers"
        raise Rejected([Diagnostic("run-until", message, help="write a number, in their unit")])
    return found
