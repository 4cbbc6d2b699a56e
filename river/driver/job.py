"""What is asked of a run, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from river.backend import Options
from river.classes import evolve, field, frozen
from river.io.addresses import address

if TYPE_CHECKING:
    import os

    from river.backend import Summary
    from river.checkpoint import Checkpoint
    from river.diagnostics import Diagnostic
    from river.driver.places import Endpoint
    from river.io.errors import OnError
    from river.io.folders import Mode
    from river.io.live import Live
    from river.io.sinks import Collector
    from river.lang.types import Type

Inputs = Mapping[str, Any]
"""Input queue to its data: a path, an Arrow table, a pandas or polars frame, an iterable of dicts or tuples."""


@frozen(slots=False)
class Job:
    """What to run over: data, targets, the policy for bad rows.

    `formats` states the format of inputs and outputs whose name does not tell; `default` is the target of outputs that
    `outputs` does not name (None: they are collected). `iterations`: how many ticks the input `clock` gets, and for how many
    steady states there are items at inputs and outputs of which the program says how many that takes.
    `watch` is called with the number of items read so far. `live`: the inputs go on, and outputs are written as they come.
    `checkpoint`: the state of the run is kept, and it goes on from there. `metrics`: a file for what the run tells of itself.
    `stated`: the lateness (in place of the number) and the end of time as people say them, by the names of their options.
    `in_place`: outputs may take the place of inputs. `mode`: what becomes of folders to which outputs go (None: `error`).
    `partition_by`: columns whose values name the folders of the rows of an output that goes to a folder, by output.
    `order_by`: columns by which rows are in order that have none, by input.
    `read`, `written`: what else is, for `river.driver.places`. `indices`: of outputs, as `Border.index`.
    """

    inputs: Inputs
    outputs: Mapping[str, Any]
    on_error: OnError
    formats: Mapping[str, str] = field(factory=dict[str, str])
    default: Callable[[str, Type], Any] | None = None
    lateness: int = 0
    stated: Mapping[str, str] = field(factory=dict[str, str])
    iterations: int | None = None
    options: Options = field(factory=Options)
    watch: Callable[[int], None] | None = None
    live: Live | None = None
    checkpoint: Checkpoint | None = None
    metrics: str | os.PathLike[str] | None = None
    in_place: bool = False
    mode: Mode | None = None
    partition_by: Mapping[str, str | Sequence[str]] = field(factory=dict[str, "str | Sequence[str]"])
    order_by: Mapping[str, Sequence[str]] = field(factory=dict[str, "Sequence[str]"])
    indices: Mapping[str, tuple[int, int]] = field(factory=dict[str, tuple[int, int]])
    read: tuple[Endpoint, ...] = ()
    written: tuple[Endpoint, ...] = ()


def without_addresses(job: Job) -> Job:
    """The same of data on this machine: addresses are left out, and what is said of what is written there."""
    inputs = {name: each for name, each in job.inputs.items() if address(each) is None}
    outputs = {name: each for name, each in job.outputs.items() if address(each) is None}
    if len(outputs) == len(job.outputs):
        return evolve(job, inputs=inputs)
    by = {name: columns for name, columns in job.partition_by.items() if name in outputs}
    return evolve(job, inputs=inputs, outputs=outputs, partition_by=by, mode=None)


def columns_of(given: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    """Columns by name, of which a single one may be given as it is."""
    return {name: (each,) if isinstance(each, str) else tuple(each) for name, each in (given or {}).items()}


@frozen(slots=False, eq=False)
class Results:
    """What a run gave.

    `tables`: outputs collected in memory, as Arrow tables; `rows`: how many rows each output got; `variables`: final
    values of the program's variables, but of those that operators keep to themselves (`private`, by `@Apart`); `warnings`: rows
    and items that were skipped. `remarks`: what the program says of how it should run and could not be done, and why. `read`: how
    many rows of inputs were read, None where only Spark knows.
    """

    collected: Mapping[str, Collector]
    rows: Mapping[str, int]
    summary: Summary
    seconds: float
    read: int | None
    warnings: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    private: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        """The collected output `name` as a pyarrow.Table."""
        if name not in self.collected:
            known = ", ".join(f"`{k}`" for k in self.collected) or "none"
            raise KeyError(f"no collected output `{name}`; collected: {known}")
        return self.collected[name].table()

    def __contains__(self, name: object) -> bool:
        """Whether such an output was collected."""
        return name in self.collected

    def __iter__(self) -> Iterator[str]:
        """The names of the collected outputs."""
        return iter(self.collected)

    @property
    def tables(self) -> Mapping[str, Any]:
        """All collected outputs as pyarrow.Tables."""
        return {name: self[name] for name in self.collected}

    @property
    def variables(self) -> Mapping[str, Any]:
        """Final values of the program's variables."""
        return _Without(self.summary.variables, self.private) if self.private else self.summary.variables


class _Without(Mapping[str, Any]):
    """A mapping without some names. A value is made when it is first asked for: a window may be long."""

    def __init__(self, every: Mapping[str, Any], private: frozenset[str]) -> None:
        self._every = every
        self._private = private

    def __getitem__(self, name: str) -> Any:
        if name in self._private:
            raise KeyError(name)
        return self._every[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._every if name not in self._private)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"
