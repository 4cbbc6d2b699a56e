"""What each operator of a program takes: measured by runs whose outputs go nowhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.driver.execution import execute
from river.profile import Profile, measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.driver.compilation import Compiled
    from river.driver.job import Job
    from river.lang.types import Type


@frozen
class Nowhere:
    """A sink that has no use for what it gets."""

    type: Type
    room: int = 0

    def write(self, items: Sequence[Any]) -> None:
        """Drops rows."""

    def write_table(self, batch: Any) -> None:
        """Drops rows in columns."""

    def close(self) -> None:
        """Does nothing."""

    def abort(self) -> None:
        """Does nothing."""


def _nowhere(_name: str, type_: Type) -> Nowhere:
    return Nowhere(type_)


def profiled(compiled: Compiled, job: Job) -> Profile:
    """What operators take of the program as it is, by one worker, one after the other.

    Where the inputs can be read again there are two runs: in the first one machine code is made and optimised.

    Raises: Rejected("profile-live") for inputs that go on; as `execute` does.
    """
    if job.live is not None or any("://" in spec for spec in job.inputs.values() if isinstance(spec, str)):
        message = "a profile is made of inputs that end"
        raise Rejected([Diagnostic("profile-live", message, help="name a file with some of their rows")])
    options = evolve(job.options, workers=1, optimize=False, passes="", alone=True)
    job = evolve(job, options=options, outputs={}, default=_nowhere)
    if all(_again(spec) for spec in job.inputs.values()):
        execute(compiled, "multicore", job)
    metrics = execute(compiled, "multicore", job).summary.metrics
    assert metrics is not None  # noqa: S101 - this backend tells
    return measured(compiled.graph, metrics)


def _again(spec: object) -> bool:
    """Whether an input can be read again."""
    return isinstance(spec, str | os.PathLike) or (hasattr(spec, "__len__") and not hasattr(spec, "read"))
