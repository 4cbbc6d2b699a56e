"""The contract of a platform: Graph to Plan to outputs.

`plan` is pure and printable; what a backend cannot do it says there, as Diagnostics, before anything starts. `run` takes
batches of items and hands batches of items to sinks; it returns the final variables, because a Brooklet result is output
queues and variables (paper section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar

from river.classes import field, frozen

if TYPE_CHECKING:
    from river.checkpoint import Keeper
    from river.diagnostics import Diagnostic
    from river.il.graph import Graph
    from river.metrics import Metrics
    from river.platform import Platform

PlanT = TypeVar("PlanT")

DEFAULT: Final = "multicore"
"""The backend that runs a program where nobody names one."""

Items = list[Any]
"""Items of one queue in order, in the evaluator's frozen form (river.lang.values)."""


class Rows(Protocol):
    """Items of one queue in order, in a form of the backend's own: columns."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Rows:
        """Consecutive items."""
        ...

    @property
    def weight(self) -> int:
        """How many items there are, or are in their lists, or would be as large as their texts: what memory they take."""
        ...

    def values(self) -> Items:
        """The items one by one."""
        ...

    def numbers(self, field_: int, /) -> Sequence[int]:
        """A field of all items, which are records."""
        ...

    def number(self, field_: int, row: int, /) -> int:
        """A field of one item, which is a record."""
        ...

    def fall(self, field_: int, least: int | None, /) -> int | None:
        """The first item whose number in a field is below that before it (or `least`), None if they ascend."""
        ...


Sources = Mapping[str, Iterable[Items]]
"""Input queue to its batches. Keyed inputs come in weakly ascending order of their key.

A source that is a `river.io.batches.ItemSource` may be read by the backend in a way of its own.
"""

Sinks = Mapping[str, Callable[[Items], None]]
"""Output queue, or view, to what takes its batches, called from one thread at a time, in order.

A sink with a method `columns` is given `Rows` there, if the backend has them.
"""


BATCH, BOUND = 32768, 65536
"""Items handled by one call, and held by a queue, unless stated otherwise; a backend may take more of narrow ones then."""


@frozen
class Options:
    """How to run: nothing here but `until` changes the result of a program that is deterministic by construction.

    `batch`: items handled by one call at most; `bound`: items a queue holds (soft, il.md P8); `seed`: which schedule the
    reference takes; `on_trap`: called with the diagnostic of a stateless operator's trap, whose item is then skipped
    (None: a trap ends the run); `native`: operators run as machine code where llvmlite is installed
    (`debug`: which checks every access to memory), or the evaluator runs them (`off`); `optimize`: the backend's passes are
    applied first, and before them `passes`; `keeper`: where the state of the run is kept, and what it goes on from; `observe`
    is called a few times a second with what the run tells of itself; `experiment`: ways to run that the backend offers for
    comparison, by name (`Backend.experiments`); `deadline`: seconds that the firing for one item may take, else it traps;
    `alone`: what operators take is told in seconds of a processor, not of the clock; `until`: behind the last items time goes on
    to this instant, if it has not come so far; `settings`: of the platform beneath, by the names that it gives them (Spark's
    `spark.executor.memory`).
    """

    workers: int | None = None
    batch: int = BATCH
    bound: int = BOUND
    seed: int | None = None
    externs: Mapping[str, Callable[..., Any]] = field(factory=dict[str, "Callable[..., Any]"])
    on_trap: Callable[[Diagnostic], None] | None = None
    native: Literal["on", "off", "debug"] = "on"
    optimize: bool = True
    passes: str = ""
    stopping: Callable[[], bool] = field(default=lambda: False)
    keeper: Keeper | None = None
    observe: Callable[[Metrics], None] | None = None
    experiment: Mapping[str, str] = field(factory=dict[str, str])
    deadline: float | None = None
    alone: bool = False
    until: int | None = None
    settings: Mapping[str, str] = field(factory=dict[str, str])

    def through(self, backend: object) -> str | None:
        """The pipeline that a program goes through before it runs on a backend; None if it is left as it is."""
        own = getattr(backend, "passes", None) if self.optimize else None
        return ",".join(filter(None, (self.passes, own))) or own


@frozen
class Summary:
    """What a run leaves: final variables (frozen values) and counts for people.

    `fired`: firings by instance name; `skipped`: items that trapped and were skipped, by instance name; `host_calls`:
    how often Python ran where machine code was wanted (firings, and patterns compiled meanwhile), by instance name;
    `remarks`: what the user should know of how it ran; `metrics`: where its time went, if the backend says so;
    `compiling`: seconds of the run in which machine code was made, which is kept on disk.
    """

    variables: Mapping[str, Any]
    fired: Mapping[str, int] = field(factory=dict[str, int])
    skipped: Mapping[str, int] = field(factory=dict[str, int])
    host_calls: Mapping[str, int] = field(factory=dict[str, int])
    remarks: tuple[Diagnostic, ...] = ()
    metrics: Metrics | None = None
    compiling: float = 0.0


class Backend(Protocol[PlanT]):
    """A platform. Registered under the entry-point group `river.backends`.

    It may have `passes`, the text of a pipeline that programs go through before they run, and `live`: that inputs may go on for
    ever, read through `river.ingress.turns`, whose turns may be empty then; `views`: that it hands the rows of views to sinks of
    theirs, in the total order, after the last items; `checkpoints`: that it uses `Options.keeper`; `metrics`: that it uses
    `Options.observe`, `deadlines`: `Options.deadline`, `settings`: `Options.settings`; `experiments`: what `Options.experiment`
    may say, by name, what it does unasked first; `follow`: a method that runs a compiled program as a job says whose inputs go
    on, or whose state is to be kept, and gives its results; `beyond`: the same of a job with addresses; `constants`: a method
    that computes those of an operator by machine code, or gives none; `ready`: one that imports what most runs need;
    `plain_arrow`: that it makes no array of numpy of Arrow data, and these of none, and needs no file system of pyarrow;
    `slow_start`: that its first run takes seconds to start, so that `river check` leaves it out where nobody names it.
    """

    name: ClassVar[str]

    def plan(self, graph: Graph, platform: Platform, options: Options, /) -> PlanT:
        """How it will run. Raises: Rejected with what cannot run here."""
        ...

    def run(self, plan: PlanT, sources: Sources, sinks: Sinks, /) -> Summary:
        """Runs to the end of the sources. Raises: evaluate.Trap of the smallest item that traps, or of a view."""
        ...


def chosen(backend: str, allowed: Mapping[str, tuple[str, ...]], options: Options) -> dict[str, str]:
    """What `options` chooses for experiments, by name; the first of each name's choices where it says nothing.

    Raises: Rejected("run-experiment") for what the backend does not have.
    """
    from river.diagnostics import Diagnostic, Rejected, closest

    errors: list[Diagnostic] = []
    for name, value in options.experiment.items():
        if name not in allowed:
            message = f"the backend `{backend}` has no experiment `{name}`"
            names = f"experiments: {', '.join(allowed)}" if allowed else "it offers none"
            errors.append(Diagnostic("run-experiment", message, help=closest(name, allowed) or names))
        elif value not in allowed[name]:
            message = f"`{name}` cannot be `{value}`"
            errors.append(
                Diagnostic("run-experiment", message, help=f"it is one of {', '.join(allowed[name])}")
            )
    if errors:
        raise Rejected(errors)
    return {name: options.experiment.get(name, values[0]) for name, values in allowed.items()}
