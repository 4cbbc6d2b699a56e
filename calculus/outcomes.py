"""All executions: what a program may compute, over every schedule."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from calculus.interning import Interner, intern
from calculus.observe import Faulted, Finished, Outcome, finished
from calculus.program import Fault, Value
from calculus.state import Configuration, initial
from calculus.step import eligible, step
from calculus.stubborn import StubbornSets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calculus.program import Program


@frozen
class Exploration:
    """What an exhaustive search found.

    `complete` says that nothing was left out; without it `outcomes` is a part of the possible ones. `states`
    counts configurations visited, `firings` steps tried. `witnesses` has, for each outcome, one script that
    leads there (see `Scripted`). `diverges` says that some execution never ends because it returns to where
    it was; in a complete exploration, False means that every execution ends.
    """

    outcomes: frozenset[Outcome]
    complete: bool
    states: int
    firings: int
    witnesses: Mapping[Outcome, tuple[str, ...]]
    diverges: bool


class LimitReached(Exception):  # noqa: N818 - says what happened
    """The search was cut off before the question was decided; carries what it had found."""

    def __init__(self, exploration: Exploration) -> None:
        super().__init__(f"undecided after {exploration.states} configurations")
        self.exploration = exploration


def outcomes(
    program: Program,
    inputs: Mapping[str, Sequence[Value]],
    *,
    limit: int | None = None,
    reduce: bool = True,
) -> Exploration:
    """The outcomes of all executions, by depth-first search of the configurations, each visited once.

    With `reduce` only the choices of a stubborn set are followed, which finds the same outcomes and the same
    divergence: `calculus.stubborn` has the argument. A search that needs more than `limit` configurations
    stops. Outcomes are told apart by `==`.

    Raises: IllFormed; ValueError if `inputs` names a queue that is not an input.
    """
    interned = intern(program, inputs)
    search = _Search(
        interned.program, interned.interner, StubbornSets.of(interned.program) if reduce else None, limit
    )
    complete = search.explore(initial(interned.program, interned.inputs))
    return Exploration(
        outcomes=frozenset(search.witnesses),
        complete=complete,
        states=len(search.open),
        firings=search.firings,
        witnesses=MappingProxyType(search.witnesses),
        diverges=search.diverges,
    )


def is_confluent(program: Program, inputs: Mapping[str, Sequence[Value]], limit: int | None = None) -> bool:
    """Whether every execution ends, and all with the same outcome.

    Raises: LimitReached if `limit` configurations were not enough to tell.
    """
    found = outcomes(program, inputs, limit=limit)
    if len(found.outcomes) > 1 or found.diverges:
        return False
    if not found.complete:
        raise LimitReached(found)
    return len(found.outcomes) == 1


@define
class _Frame:
    """A configuration being explored: `choices[:tried]` are done, `eligible` is all there could be."""

    configuration: Configuration
    eligible: tuple[str, ...]
    choices: list[str]
    tried: int = 0

    def widen(self) -> None:
        """Explore every eligible queue."""
        self.choices += [queue for queue in self.eligible if queue not in self.choices]


@define
class _Search:
    """The state of one depth-first search, over the numbers of `interner`.

    `open` has every configuration seen; True while it is on the stack, that is, among `frames`. `path` is the
    choices that lead to the topmost frame.
    """

    program: Program
    interner: Interner
    stubborn: StubbornSets | None
    limit: int | None
    open: dict[Configuration, bool] = field(factory=dict[Configuration, bool])
    frames: list[_Frame] = field(factory=list[_Frame])
    path: list[str] = field(factory=list[str])
    witnesses: dict[Outcome, tuple[str, ...]] = field(factory=dict[Outcome, tuple[str, ...]])
    firings: int = 0
    diverges: bool = False

    def explore(self, start: Configuration) -> bool:
        """Search everything that `start` leads to; whether the limit allowed it."""
        target: Configuration | None = start
        while True:
            if target is not None:
                if self.limit is not None and len(self.open) >= self.limit:
                    return False
                self._enter(target)
            while self.frames and self.frames[-1].tried == len(self.frames[-1].choices):
                self._leave()
            if not self.frames:
                return True
            target = self._advance(self.frames[-1])

    def _enter(self, configuration: Configuration) -> None:
        choices = eligible(self.program, configuration)
        if not choices:
            self._end(self._decoded(finished(self.program, configuration)))
        explored = choices if self.stubborn is None else self.stubborn.choices(choices)
        self.open[configuration] = True
        self.frames.append(_Frame(configuration, choices, list(explored)))

    def _leave(self) -> None:
        self.open[self.frames.pop().configuration] = False
        if self.path:
            self.path.pop()

    def _advance(self, frame: _Frame) -> Configuration | None:
        """Try the next choice of the topmost frame; the configuration that it leads to if that is new."""
        queue = frame.choices[frame.tried]
        frame.tried += 1
        self.firings += 1
        self.path.append(queue)
        try:
            target = step(self.program, frame.configuration, queue)
        except Fault as fault:
            self._end(Faulted(fault.info))
            frame.widen()
        else:
            unfinished = self.open.get(target)
            if unfinished is None:
                return target
            if unfinished:
                self.diverges = True
                frame.widen()
        self.path.pop()
        return None

    def _end(self, outcome: Outcome) -> None:
        if outcome not in self.witnesses:
            self.witnesses[outcome] = tuple(self.path)

    def _decoded(self, end: Finished) -> Finished:
        """The outcome in values instead of numbers."""
        return Finished(
            tuple((queue, self.interner.decoded(items)) for queue, items in end.outputs),
            tuple((variable, self.interner.value(number)) for variable, number in end.variables),
        )
