"""Who fires next: the free choice of the semantics, made by a small frozen object."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calculus.program import Program


@frozen
class Moment:
    """What a schedule may look at: the program, the choices, and the history.

    `eligible` is empty when the execution is over (quiescent or faulted). `arrived` gives, for each eligible
    queue, the serial number of its head item: items are numbered as they enter queues. `script` is all
    choices so far.
    """

    program: Program
    eligible: tuple[str, ...]
    arrived: Mapping[str, int]
    script: Sequence[str]


class Schedule(Protocol):
    """A pure choice; anything with this method is a schedule."""

    def choose(self, moment: Moment, /) -> str | None:
        """One of `moment.eligible`, or None to stop. It is asked once more when the execution is over."""
        ...


@frozen
class FirstCome:
    """The queue whose head item arrived first, in the whole program.

    The items of the inputs arrive before all others, in the order that `run` is given or else queue by queue.
    """

    def choose(self, moment: Moment, /) -> str | None:
        """The eligible queue with the oldest head."""
        return min(moment.eligible, key=lambda queue: moment.arrived[queue], default=None)


@frozen
class Seeded:
    """Any eligible queue with equal chance, from a reproducible seed."""

    seed: int

    def choose(self, moment: Moment, /) -> str | None:
        """A queue that depends on the seed, the number of the step and the eligible queues only."""
        if not moment.eligible:
            return None
        # A generator for each step keeps the schedule a frozen value: the same at every step of every run.
        return Random(f"{self.seed}/{len(moment.script)}").choice(moment.eligible)


@frozen
class RoundRobin:
    """The next eligible queue after the one that fired last, cyclically in the order of the wiring."""

    def choose(self, moment: Moment, /) -> str | None:
        """The first eligible queue beyond the last choice, or the first of all."""
        if not moment.eligible or not moment.script:
            return next(iter(moment.eligible), None)
        order = [consumer.queue for consumer in moment.program.wiring.consumers]
        last = order.index(moment.script[-1])
        return next(queue for queue in (*order[last + 1 :], *order[: last + 1]) if queue in moment.eligible)


class ScriptError(ValueError):
    """A script that is no execution: `position` is where it goes wrong, `queue` the choice there, if any."""

    def __init__(self, position: int, queue: str | None, eligible: tuple[str, ...]) -> None:
        said = "the script ends" if queue is None else f"the script says `{queue}`"
        super().__init__(f"choice {position}: {said}; eligible: {', '.join(eligible) or 'nothing'}")
        self.position = position
        self.queue = queue
        self.eligible = eligible


@frozen
class Scripted:
    """Exactly these choices, to the end of the execution: the replay of a `Run.script` or of a witness."""

    choices: tuple[str, ...]

    def choose(self, moment: Moment, /) -> str | None:
        """The next choice of the script.

        Raises: ScriptError if that queue is not eligible, or if script and execution do not end together.
        """
        position = len(moment.script)
        queue = self.choices[position] if position < len(self.choices) else None
        if queue not in (moment.eligible or (None,)):
            raise ScriptError(position, queue, moment.eligible)
        return queue
