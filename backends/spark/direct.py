"""A run over files that executors read: one or two kinds of tasks, which leave files of rows in the folder of the run.

What the tasks tell decides: only if none of them has refused its part are rows handed to the sinks, in the order of the files.
Otherwise nothing has happened, and the run goes by stages, which say what is wrong, and where.

Paper: River §4.4, §4.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, assert_never

from backends.native.llvm import available
from backends.spark import files, task
from backends.spark import parts as small
from backends.spark.delivery import StagedFolder, hand_over
from backends.spark.files import Errand, Telling
from backends.spark.jobs import tellings, tellings_of_channels
from backends.spark.parts import as_one, given_files
from backends.spark.plan import plan as planned
from backends.spark.report import uncompiled
from backends.spark.ways import ByKey, InOneTask, InParts, RowByRow, way
from river.backend import Summary
from river.classes import define, evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.driver import Reading, Writer, row_types
from river.io.batches import ItemSource
from river.io.schema import arrow
from river.io.sources import open_source
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from backends.spark.parts import GivenFile
    from backends.spark.plan import Plan
    from backends.spark.session import Session
    from backends.spark.ways import KeyedOutputs, Way
    from river.backend import Sinks, Sources
    from river.io.folders import FolderOutput

MEMORY = 1 << 28
"""Bytes of files whose rows one channel has in memory."""


@frozen(eq=False)
class DirectWork:
    """What such a run needs. `late`: how far back in time rows may come."""

    plan: Plan
    way: Way
    files: Mapping[str, tuple[GivenFile, ...]]
    late: int
    sources: Mapping[str, Reading]
    sinks: Mapping[str, Writer]


def direct(plan: Plan, sources: Sources, sinks: Sinks) -> DirectWork | None:
    """The run over the files behind the sources; None if they are no such files, or the program cannot be run so."""
    if plan.options.native == "off" or not available():
        return None
    found: dict[str, tuple[GivenFile, ...]] = {}
    readings: dict[str, Reading] = {}
    late = 0
    for name in plan.graph.inputs:
        reading = sources.get(name)
        source = reading.source if isinstance(reading, Reading) else None
        given = given_files(source) if isinstance(source, ItemSource) else ()
        if not given or not isinstance(source, ItemSource) or not isinstance(reading, Reading):
            return None
        found[name], readings[name] = given, reading
        late = max(late, 0 if source.ordering is None else source.ordering.lateness)
    writers = {name: sink for name, sink in sinks.items() if isinstance(sink, Writer)}
    how = way(plan) if len(writers) == len(sinks) else ""
    if isinstance(how, str) or (late and not isinstance(how, InOneTask)):
        return None
    return DirectWork(plan, how, found, late, readings, writers)


def run(
    work: DirectWork,
    spark: Session,
    folder: Path,
    watched: Callable[[Callable[[], None]], None],
    again: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Summary | None:
    """Runs, and hands the outputs to their sinks; None if a task has refused its part.

    `watched` runs a job of Spark. `again`: the final variables of a run by stages over sources.

    Raises: Rejected("spark-folder") for folders of outputs that executors do not see.
    """
    jobs = _Jobs(work, spark, str(folder), watched).all()
    tellings = list(chain.from_iterable(jobs))
    if unseen := next((telling.unseen for telling in tellings if telling.unseen is not None), None):
        raise Rejected([_unseen(work, unseen)])
    if any(telling.refused is not None for telling in tellings):
        return None
    for name, sink in work.sinks.items():
        in_order = sorted(tellings, key=lambda telling: telling.part)
        found = [(path, rows) for told in in_order for output, path, rows in told.files if output == name]
        _deliver(work, name, sink, found)
    next(iter(work.sources.values())).count(sum(telling.rows for telling in jobs[0]))
    fired = Counter[str]()
    for job in jobs:  # of which several may run the same operators on the same rows
        fired |= sum((telling.fired for telling in job), Counter[str]())
    graph = work.plan.graph
    remarks = (
        uncompiled(graph, range(len(graph.instances))) if any(telling.python for telling in tellings) else ()
    )
    return Summary(_Later(work, again), fired, remarks=remarks)


def _unseen(work: DirectWork, path: str) -> Diagnostic:
    names = (
        folder.folder
        for sink in work.sinks.values()
        if (folder := folder_of(sink)) and str(folder.staging) == path
    )
    message = f"the executors of Spark do not see the folder to which `{next(names)}` belongs"
    help_ = "name one that your machine and all executors have under that path"
    return Diagnostic("spark-folder", message, help=help_)


@define
class _Jobs:
    """Runs of the program over the files, each one job of Spark or two, and what their tasks tell, in the order of parts."""

    work: DirectWork
    spark: Session
    folder: str
    watched: Callable[[Callable[[], None]], None]

    def all(self) -> list[list[Telling]]:
        """What the tasks of each run tell."""
        plan = self.work.plan
        parts = {name: sum(count for _, count in found) for name, found in self.divided().items()}
        match self.work.way:
            case InOneTask():
                return [self.alone()]
            case InParts() | ByKey() if self.bytes() <= small.LEAST:  # which one part may be
                return [self.alone()]
            case RowByRow():
                (count,) = parts.values()
                text = self.errand(plan, self.wanted()).text()
                return [_in_order(self.told(count, partial(files.row_by_row, text)))]
            case InParts():
                (count,) = parts.values()
                tables = [view.name for view in plan.graph.views]
                outputs = self.wanted() if {*tables} & {*self.wanted()} else (*self.wanted(), tables[0])
                text = self.errand(plan, outputs).text()
                each = len(plan.graph.variables), partial(files.united, text)
                return [self.told(count, partial(files.reduced, text), each)]
            case ByKey(runs):
                return [self.by_key(each) for each in runs]
            case _:
                assert_never(self.work.way)

    def divided(self) -> dict[str, tuple[tuple[GivenFile, int], ...]]:
        """The files of each input, and into how many parts they are divided."""
        workers, whole = self.work.plan.workers, isinstance(self.work.way, InParts)
        return {name: small.divided(given, workers, whole=whole) for name, given in self.work.files.items()}

    def alone(self) -> list[Telling]:
        """What one task tells that runs the whole program."""
        return self.told(1, partial(files.in_one_task, self.errand(self.work.plan, self.wanted()).text()))

    def by_key(self, outputs: KeyedOutputs) -> list[Telling]:
        """What the tasks tell of outputs that are made together."""
        plan = planned(outputs.graph, here(), self.work.plan.options)
        channels = max(plan.workers, self.bytes() // MEMORY)
        errand = evolve(self.errand(plan, outputs.names), keys=outputs.found.columns, channels=channels)
        text = errand.text()
        count = sum(count for found in errand.files.values() for _, count in found)
        return self.told(count, partial(files.scattered, text), (channels, partial(files.gathered, text)))

    def bytes(self) -> int:
        """Of all files."""
        return sum(file.size for given in self.work.files.values() for file in given)

    def wanted(self) -> tuple[str, ...]:
        """The outputs that have sinks."""
        return tuple(self.work.sinks)

    def errand(self, plan: Plan, outputs: tuple[str, ...]) -> Errand:
        options = plan.options
        folders = {name: folder_of(sink) for name, sink in self.work.sinks.items()}
        return Errand(
            task.portable(plan), self.divided(), outputs, self.folder, until=options.until, lateness=self.work.late,
            externs=tuple(options.externs), native=options.native, batch=options.batch,
            folders={
                name: StagedFolder(str(folder.staging), folder.format, folder.by)
                for name, folder in folders.items() if folder is not None
            },
        )  # fmt: skip

    def told(self, count: int, task: Any, channels: tuple[int, Any] | None = None) -> list[Telling]:
        """Runs a job of so many tasks, and of one for each of so many channels."""
        found: list[Telling] = []

        def job() -> None:
            if channels is None:
                texts = tellings(self.spark, count, task)
            else:
                texts = tellings_of_channels(self.spark, count, task, *channels)
            found.extend(map(Telling.read, texts))

        self.watched(job)
        return found


def _in_order(tellings: list[Telling]) -> list[Telling]:
    """What parts tell, in their order; all void if keys go back from one to another."""
    tellings.sort(key=lambda telling: telling.part)
    if wrong := files.broken(tellings):
        tellings[0].refused = wrong
    return tellings


# --------------------------------------------------------------------------------------------------------------- out


def _deliver(work: DirectWork, name: str, sink: Writer, files: Sequence[tuple[str, int]]) -> None:
    """Hands the rows in files, of which the numbers are known, to the sink of an output."""
    if (folder := folder_of(sink)) is not None:
        folder.adopt(files)
        sink.sink.rows += sum(rows for _, rows in files)
        return
    paths = [path for path, _ in files]
    batches = _by_instant(paths) if isinstance(work.way, ByKey) else _one_by_one(paths)
    hand_over(Writer(row_types(work.plan.graph)[name], sink.sink), batches)


def folder_of(sink: Writer) -> FolderOutput | None:
    """The folder to which executors bring the files of an output; None for other sinks, and where not all rows are wanted."""
    return sink.sink.folder if sink.sink.most is None else None


def _one_by_one(paths: Iterable[str]) -> Iterator[Any]:
    """The record batches of files, one after the other."""
    pa, ipc = arrow(), arrow("ipc")
    for path in paths:
        with pa.memory_map(path) as file, ipc.open_file(file) as opened:
            for number in range(opened.num_record_batches):
                yield opened.get_batch(number)


def _by_instant(paths: Sequence[str]) -> Iterator[Any]:
    """The record batches of change logs of parts of a relation, as one: what goes at an instant stands before what comes."""
    logs = [_Log(_one_by_one([path])) for path in paths]
    while logs := [log for log in logs if log.fill()]:
        bound = min((log.last for log in logs if not log.ended), default=None)
        ready = [part for log in logs if (part := log.before(bound)).num_rows]
        if not ready:  # of which more may come
            for log in logs:
                if log.last == bound:
                    log.more()
            continue
        table = arrow().concat_tables(ready)
        instant, sign, *_ = table.column_names
        yield from table.sort_by([(instant, "ascending"), (sign, "descending")]).combine_chunks().to_batches()


@define(eq=False)
class _Log:
    """A change log, read batch by batch. `held`: what has been read and not been given out; `last`: its last instant."""

    batches: Iterator[Any]
    held: Any = None
    last: int = 0
    ended: bool = False

    def fill(self) -> bool:
        """Whether something is held."""
        while not self.ended and (self.held is None or not self.held.num_rows):
            self.more()
        return self.held is not None and self.held.num_rows > 0

    def more(self) -> None:
        """Reads one more batch."""
        batch = next(self.batches, None)
        self.ended = batch is None
        if batch is not None and batch.num_rows:
            table = arrow().Table.from_batches([batch])
            self.held = table if self.held is None else arrow().concat_tables([self.held, table])
            self.last = _instants(batch.column(0))[batch.num_rows - 1].as_py()

    def before(self, bound: int | None) -> Any:
        """Takes the rows before an instant; all for None."""
        compute = arrow("compute")
        count = self.held.num_rows
        if bound is not None:
            count = compute.sum(compute.less(_instants(self.held.column(0)), bound)).as_py() or 0
        taken, self.held = self.held.slice(0, count), self.held.slice(count)
        return taken


def _instants(column: Any) -> Any:
    """A column of instants as numbers."""
    return column.cast(arrow().int64())


class _Later(Mapping[str, Any]):
    """The final variables, which a second run, by stages, gives to whoever asks for one: tasks leave rows only."""

    def __init__(self, work: DirectWork, again: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self._work = work
        self._again = again
        self._found: Mapping[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        if self._found is None:
            graph = self._work.plan.graph
            sources: dict[str, Any] = {}
            for input_, given in self._work.files.items():
                for file in given:
                    file.check()
                queue = graph.queues[input_]
                sources[input_] = open_source(
                    as_one(given),
                    queue.type,
                    name=input_,
                    format=given[0].format if len(given) == 1 else None,
                    by=queue.by,
                    lateness=self._work.late,
                )
            self._found = self._again(sources)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (variable.name for variable in self._work.plan.graph.variables)

    def __len__(self) -> int:
        return len(self._work.plan.graph.variables)
