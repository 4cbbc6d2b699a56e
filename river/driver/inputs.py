"""Inputs of a run: which there must be, where their items come from, how many have been read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Rejected, closest
from river.driver.borders import limited, most, placed, stamps, wholes
from river.driver.instants import timed
from river.driver.libraries import library
from river.driver.places import check_job
from river.lang.scope import show
from river.lang.types import UNIT, List, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from river.backend import Backend, Items
    from river.driver.compilation import Compiled
    from river.driver.job import Inputs, Job
    from river.il.graph import Graph, Queue
    from river.io.batches import ItemSource
    from river.io.errors import Refusals
    from river.io.live import Arriving, Live
    from river.lang.types import Type

Given = TypeVar("Given")

CLOCK = "clock"
"""The input, of type unit, whose items are the iterations of a program that makes its own items (il.md P9)."""


def check_names(what: str, way: str, known: Iterable[str], given: Iterable[str], *, required: bool) -> None:
    """Raises: Rejected where names are given that the program does not have, or not all that are required.

    `way`: how one gives it, with `NAME` for its name.
    """
    known, given = tuple(known), tuple(given)
    shown = ", ".join(f"`{k}`" for k in known) or "none"
    errors = [
        Diagnostic(
            f"unknown-{what}",
            f"the program has no {what} `{name}`",
            help=closest(name, known) or f"{what}s: {shown}",
        )
        for name in given
        if name not in known
    ]
    if required:
        errors += [
            Diagnostic(
                f"missing-{what}",
                f"{what} `{name}` has no data",
                help="say how often: `--iterations N`"
                if name == CLOCK
                else f"give it: `{way.replace('NAME', name)}`",
            )
            for name in known
            if name not in given
        ]
    if errors:
        raise Rejected(errors)


def read_of(compiled: Compiled, job: Job) -> Job:
    """The job without what is given for inputs that the program declares and nothing in it reads."""
    inputs, order_by = read_by(compiled, job.inputs), read_by(compiled, job.order_by)
    return evolve(job, inputs=inputs, order_by=order_by)


def read_by(compiled: Compiled, given: Mapping[str, Given]) -> Mapping[str, Given]:
    """What is given for those inputs that something in the program reads; a warning has told of the others."""
    unread = {each.unread for each in compiled.warnings}
    return {name: each for name, each in given.items() if name not in unread}


def given_inputs(graph: Graph, job: Job) -> Inputs:
    """The inputs that have data, the clock among them when iterations are asked for."""
    if job.iterations is None:
        return job.inputs
    if CLOCK not in graph.inputs or graph.queues[CLOCK].type != UNIT:
        if any(name in most(graph.program, job) for name in graph.inputs):
            return job.inputs
        message = f"the program has no input `{CLOCK}`, whose iterations could be counted"
        raise Rejected([Diagnostic("run-iterations", message, help="it runs as long as it gets data")])
    if CLOCK in job.inputs:
        raise Rejected(
            [Diagnostic("run-iterations", f"`{CLOCK}` is given iterations and data: one is enough")]
        )
    return {**job.inputs, CLOCK: _ticks(job.iterations, job.options.batch)}


def _ticks(count: int, batch: int) -> Iterator[Items]:
    for start in range(0, count, batch):
        yield [()] * min(batch, count - start)


def live_job(job: Job, platform: Backend[Any]) -> tuple[Job, Live]:
    """The job with `live` where one of its inputs asks for that, and how its run goes on in any case.

    Raises: Rejected("run-live") where the backend cannot do what was asked for.
    """
    from river.io.live import Live, asked

    live = Live() if job.live is None else job.live
    live.lateness = job.lateness
    wanted = [name for name, spec in job.inputs.items() if asked(spec)]
    if not wanted and job.live is None:
        return job, live
    if not getattr(platform, "live", False):
        what = f"input `{wanted[0]}` is live" if wanted else "the run is to be live"
        message = f"{what}, and the backend `{platform.name}` reads inputs to their end"
        raise Rejected([Diagnostic("run-live", message, help="use `multicore`")])
    return evolve(job, live=live), live


def check_order(job: Job, far: Sequence[str]) -> None:
    """Raises: Rejected("usage") for columns that are to put rows in order which have one. `far`: addresses of the run."""
    for name, columns in job.order_by.items():
        frame = job.checkpoint is not None and hasattr(job.inputs.get(name), "mapInArrow")
        if not far and not frame:
            option = f"`--order-by {name}={','.join(columns)}`"
            message = f"{option}: the rows of `{name}` have an order, that in which they stand in their files"
            help_ = "it is for what Spark reads from addresses and tables; time stamps are the program's to say: `stream by`"
            raise Rejected([Diagnostic("usage", message, help=help_)])


def check_live(job: Job, sources: Iterable[object]) -> None:
    """Raises: Rejected("run-live") where a live run has no live input: what was said of it would have no effect."""
    from river.io.live import Arriving

    if job.live is not None and not any(isinstance(source, Arriving) for source in sources):
        help_ = "follow a file or a folder, read a pipe, or listen at `tcp://127.0.0.1:PORT` or `unix:PATH`"
        raise Rejected([Diagnostic("run-live", "the run is to be live, and no input is", help=help_)])


def open_input(
    graph: Graph, name: str, job: Job, refusals: Refusals, live: Live | None
) -> Iterable[Items] | Arriving:
    """The source of input `name`; `live`: for inputs that go on, None where the backend cannot read them as they come."""
    from river.io.live import arriving
    from river.io.sources import open_source

    queue, format_ = graph.queues[name], job.formats.get(name)
    if name == CLOCK and job.iterations is not None:
        return _ticks(job.iterations, job.options.batch)
    spec, batch = job.inputs[name], job.options.batch
    if name in wholes(graph.program):
        return _whole(queue, spec, format_, refusals, batch)
    if (function := stamps(graph.program).get(name)) is not None:
        return _stamped(graph, queue, function, job, refusals)
    if live is not None:
        found = arriving(spec, queue.type, live, name=name, refusals=refusals, format=format_, batch=batch)
        if found is not None:
            return found
    source = open_source(
        spec,
        queue.type,
        name=name,
        format=format_,
        on_error=refusals,
        batch=batch,
        by=queue.by,
        lateness=job.lateness,
        early=True,
    )
    count = most(graph.program, job).get(name)
    return source if count is None else limited(source, count)


def given_type(graph: Graph, name: str) -> Type:
    """The type of the rows that people give an input: one item may be all of them, or have a computed key in front."""
    type_ = graph.queues[name].type
    match type_:
        case List(row) if name in wholes(graph.program):
            return row
        case Record(fields) if name in stamps(graph.program):
            return Record(fields[1:])
        case _:
            return type_


def _whole(queue: Queue, spec: object, format_: str | None, refusals: Refusals, batch: int) -> ItemSource:
    """All rows of an input as one item. Raises: Rejected("run-live") for data that do not end."""
    from river.io.batches import Batch
    from river.io.live import asked
    from river.io.sources import open_source

    if asked(spec):
        message = f"input `{queue.name}` is live, but all of its rows are to be there at the beginning"
        raise Rejected([Diagnostic("run-live", message, help="give it a file that is complete")])
    assert isinstance(queue.type, List)  # noqa: S101 - so `@Whole` wants it
    source = open_source(
        spec, queue.type.item, name=queue.name, format=format_, on_error=refusals, batch=batch
    )

    def gathered() -> Iterator[Batch]:
        rows: list[Any] = []
        for each in source.batches:
            if each.errors:
                yield Batch([], (), [(0, error) for _, error in each.errors])
            rows += each.items
        yield Batch([tuple(rows)], (1,))

    whole = source.derived(queue.type, gathered())
    whole.rows = source
    return whole


def _stamped(graph: Graph, queue: Queue, function: str, job: Job, refusals: Refusals) -> ItemSource:
    """The rows of an input with the keys that a function makes of them, in their order.

    Raises: Rejected("run-live") for data that do not end, Rejected("il-annotation-argument") where it is no such function.
    """
    from river.io import order
    from river.io.live import asked
    from river.io.sources import open_source

    name = queue.name
    if asked(job.inputs[name]):
        message = f"input `{name}` is live, but the time stamps of its rows are computed"
        raise Rejected([Diagnostic("run-live", message, help="let a column of the rows be their time stamp")])
    stamp, rest = _function(graph, queue, function)
    source = open_source(
        job.inputs[name],
        rest,
        name=name,
        format=job.formats.get(name),
        on_error=refusals,
        batch=job.options.batch,
    )
    return order.ordered(order.stamped(source, queue.type, stamp), 0, job.lateness)


def _function(graph: Graph, queue: Queue, name: str) -> tuple[Callable[[Any], int | str], Record]:
    """The function that makes the keys of a queue, or tells why a row has none; and the type of the rows that it takes."""
    from river.il.verify import scope
    from river.lang import check
    from river.lang.evaluate import Trap, compile_function

    whole = queue.type
    known = scope(graph.program, library(graph.program))
    if not isinstance(whole, Record) or queue.key() != 0 or name not in known.fns:
        message = (
            f"`@Stamp({name})` wants a function of the program, at an input whose first field is its key"
        )
        raise Rejected([Diagnostic("il-annotation-argument", message)])
    found, index = check.function(name, known)
    rest = Record(whole.fields[1:])
    if [each.type for each in found[index].params] != [rest] or found[index].result != whole.fields[0][1]:
        message = f"`{name}` is no function of `{show(rest)}` that makes the field `{whole.fields[0][0]}`"
        raise Rejected([Diagnostic("il-annotation-argument", message)])
    made = compile_function(found, index)

    def stamp(row: Any) -> int | str:
        try:
            return made(row)
        except Trap as trap:
            return trap.diagnostic().message

    return stamp, rest


def collected(graph: Graph, job: Job) -> dict[str, list[Any]]:
    """All items of all inputs, which are read to their ends. Raises: Rejected where one is missing or has no end."""
    from river.io.errors import Refusals as Counter
    from river.io.live import asked

    job = timed(graph, placed(graph.program, job))
    check_job(job)
    refusals = Counter(job.on_error)
    check_names("input", "--in NAME=FILE", graph.inputs, given_inputs(graph, job), required=True)
    for name, spec in job.inputs.items():
        if asked(spec):
            message = f"input `{name}` is live: it has no end up to which it could be read"
            raise Rejected(
                [Diagnostic("check-live", message, help="keep what comes in a file, and check with that")]
            )
    return {
        name: [item for batch in open_input(graph, name, job, refusals, None) for item in batch]
        for name in graph.inputs
    }


@define
class ItemCounter:
    """Counts the items that sources give, for people."""

    watch: Callable[[int], None] | None
    items: int = field(default=0, init=False)

    def counted(self, source: Iterable[Items] | Arriving) -> Iterable[Items]:
        """`source`, counted."""
        from river.io.live import Arriving

        if isinstance(source, Arriving):
            source.count = self.add
            return source
        return Reading(source, self.add)

    def add(self, items: int) -> None:
        """So many more have been read."""
        self.items += items
        if self.watch is not None:
            self.watch(self.items)


@define(eq=False)
class Reading:
    """A source that counts the items read.

    Who reads what is behind `source` by other means says how many items these are, with `count`.
    """

    source: Iterable[Items]
    count: Callable[[int], None]

    def __iter__(self) -> Iterator[Items]:
        for batch in self.source:
            self.count(len(batch))
            yield batch
