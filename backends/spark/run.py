"""A run of a plan: the inputs are written to a folder, each stage is a job from that folder to that folder.

The folder is a tree of Parquet files, one branch for each queue (`queue=N`). A stage starts when those before it have
ended, so that a trap is known before anything is built on what came after it, and nothing is computed twice. Sinks get
their items when all stages have ended well; a run that traps delivers nothing.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager, nullcontext, suppress
from heapq import merge
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote
from uuid import uuid4

from backends.native.egress.sinks import column_sink
from backends.native.llvm import available
from backends.spark import direct, report, task
from backends.spark.columns import is_columnar
from backends.spark.jobs import context_of
from backends.spark.lower import lower
from backends.spark.marshal import COLUMNS, REPORT, Piece
from backends.spark.session import FOLDER, session
from backends.spark.worker import MarshalledRow, packed, record_batch, together
from river.backend import Summary
from river.diagnostics import Diagnostic, Note, Rejected, Severity
from river.driver import Reading
from river.il.combined import with_results
from river.il.views import rows_of
from river.ingress import turns
from river.io.batches import ItemSource
from river.io.columnar import Tables
from river.io.schema import arrow
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from backends.native.ingest import Reader
    from backends.spark.plan import Plan
    from backends.spark.report import Caught, Report
    from backends.spark.session import Session
    from backends.spark.stages import Stage
    from backends.spark.task import ShippedProgram
    from river.backend import Items, Options, Rows, Sinks, Sources
    from river.ingress import Turn

POLL = 0.1
"""Seconds between two looks at whether the user wants to stop."""

ROWS_PER_FILE = 64
READ_AHEAD = 4


def run(plan: Plan, sources: Sources, sinks: Sinks) -> Summary:
    """Runs to the end of the sources. An output without sink is dropped; an input without source is empty.

    Raises: Trap; Rejected("spark-no-java", "spark-no-river", "spark-settings", "spark-failed");
        whatever a source or a sink raises; KeyboardInterrupt, also where `Options.stopping` says so.
    """
    views = {view.name for view in plan.graph.views}
    if strangers := sorted(set(sinks) - set(plan.graph.outputs) - views):
        raise ValueError(f"not outputs of the program: {', '.join(strangers)}")
    by_themselves = direct.direct(plan, sources, sinks)
    if by_themselves is not None:
        with _folder() as folder, session(plan.workers, plan.options.settings) as spark:

            def within(job: Callable[[], None]) -> None:
                watched(spark, job, "the plan", plan.options)

            def again(given: Sources) -> Mapping[str, Any]:
                return _by_stages(plan, given, {}).variables

            found = direct.run(by_themselves, spark, folder, within, again)
        if found is not None:
            return found
    return _by_stages(plan, sources, sinks)


@contextmanager
def _folder() -> Generator[Path]:
    """The folder of a run, which executors see."""
    with TemporaryDirectory(prefix="river-spark-", dir=os.environ.get(FOLDER)) as folder:
        yield Path(folder)


def _by_stages(plan: Plan, sources: Sources, sinks: Sinks) -> Summary:
    """Runs the stages one after the other."""
    with _folder() as folder:
        execution = _Execution(plan, folder)
        with session(plan.workers, plan.options.settings) if plan.stages else nullcontext() as spark:
            execution.take(sources)
            execution.compute(spark)
        execution.deliver({name: sink for name, sink in sinks.items() if name in plan.graph.outputs})
        summary = execution.summary()
        for view in plan.graph.views:
            if view.name in sinks:
                variables = with_results(plan.graph, summary.variables)
                sinks[view.name](list(rows_of(view, variables[view.variable])))
        return summary


class _Execution:
    """Where a run stands."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.reports: list[Report] = []
        self.numbers = {name: number for number, name in enumerate(plan.graph.queues)}
        self.native = plan.options.native != "off" and available()

    def branch(self, number: int) -> Path:
        """The folder of a queue's rows."""
        return self.folder / f"queue={number}"

    # -- in

    def take(self, sources: Sources) -> None:
        """Writes what the sources give, a row for each turn and queue."""
        writers: dict[str, _Writer] = {}
        try:
            opened = {name: self.opened(source) for name, source in sources.items()}
            given: Any = opened  # of columns too
            for chunk, turn in enumerate(
                turns(self.plan.graph, given, self.plan.options.batch, until=self.plan.options.until)
            ):
                self.look()
                for name, piece in _pieces(turn):
                    if name not in writers:
                        writers[name] = _Writer(self.branch(self.numbers[name]))
                    type_ = self.plan.graph.queues[name].type
                    writers[name].write(packed(self.numbers[name], type_, chunk, piece))
        finally:
            for writer in writers.values():
                writer.close()

    def opened(self, source: Iterable[Items]) -> Iterable[Items | Rows]:
        """The source; one that machine code can read gives columns."""
        if not (self.native and isinstance(source, Reading) and isinstance(source.source, ItemSource)):
            return source
        from backends.native.ingest import open_native
        from backends.native.ingest.tables import converted

        behind, batch = source.source, self.plan.options.batch
        reader = open_native(behind, batch, None)
        if reader is not None:
            return _counted(source, _parsed(reader))
        if behind.members is not None:
            from backends.native.ingest.several import in_columns, one_by_one

            if in_columns(behind):
                return _counted(source, one_by_one(behind, batch, None, _parsed))
        tables = behind.unordered
        return _counted(source, converted(behind, tables, batch)) if isinstance(tables, Tables) else source

    def look(self) -> None:
        """Raises: KeyboardInterrupt when told to stop."""
        _look(self.plan.options)

    # -- stages

    def compute(self, spark: Session) -> None:
        """Runs the stages, one after another. Raises: Trap."""
        program = task.portable(self.plan)
        late: list[Caught] = []
        for stage in self.plan.stages:
            self.stage(spark, program, stage)
            found = report.united(self.plan.graph, self.told(stage))
            self.reports.append(found)
            self.pass_on(stage, found)
            late += [caught for caught in found.traps if caught.late]
            traps = [caught for caught in found.traps if not caught.late]
            traps = traps or [caught for caught in late if caught.instance in stage.instances]
            if traps:
                raise min(traps, key=lambda caught: _serial(stage, caught)).trap
            for name in stage.ins:  # nobody else reads them
                rmtree(self.branch(self.numbers[name]), ignore_errors=True)

    def stage(self, spark: Session, program: ShippedProgram, stage: Stage) -> None:
        """Runs one stage. Raises: Rejected("spark-failed"); KeyboardInterrupt."""
        wanted = [self.numbers[name] for name in stage.ins]
        columns = [column.partition(" ")[0] for column in COLUMNS.split(", ")]

        def job() -> None:
            rows = spark.read.schema(COLUMNS).parquet(str(self.folder))
            rows = rows.where(rows["queue"].isin(wanted)).select(columns)
            made = lower(self.plan, stage, task.text(self.plan, stage, program), rows)
            made = made.sortWithinPartitions("queue", "chunk", "part")
            made.write.mode("append").partitionBy("queue").parquet(str(self.folder))

        watched(spark, job, f"stage {stage.number} of the plan", self.plan.options)

    def told(self, stage: Stage) -> list[Report]:
        """The reports of a stage's tasks."""
        pq = arrow("parquet")
        texts = [
            text.as_py()
            for file in sorted(self.branch(REPORT - stage.number).glob("*.parquet"))
            for text in pq.ParquetFile(file).read(["marks"]).column(0)
        ]
        return [report.read(self.plan.graph, text) for text in texts]

    def pass_on(self, stage: Stage, found: Report) -> None:
        """Tells of the items that were left out."""
        tell = self.plan.options.on_trap
        if tell is not None:
            for caught in sorted(found.passed, key=lambda caught: _serial(stage, caught)):
                tell(caught.trap.diagnostic())

    # -- out

    def deliver(self, sinks: Sinks) -> None:
        """Hands the outputs to their sinks, in order, reading a few chunks ahead."""
        for name, sink in sinks.items():
            maker = self.plan.producer(name)
            rows = merge(*map(_stored, sorted(self.branch(self.numbers[name]).glob("*.parquet"))), key=_order)
            type_ = self.plan.graph.queues[name].type
            wanted = self.native and is_columnar(type_)
            columns: Any = getattr(column_sink(sink), "columns", None) if wanted else None
            for _, group in groupby(rows, lambda row: row.chunk):
                self.look()
                deltas = maker is not None and maker.role.rows
                piece = together(type_, group, deltas=deltas, columns=columns is not None)
                if len(piece.places):
                    (columns or sink)(piece.items)

    def summary(self) -> Summary:
        """What the run leaves."""
        graph = self.plan.graph
        found = report.united(graph, self.reports)
        initial = {variable.name: variable.initial for variable in graph.variables}
        names = [graph.instances[index].name for index in sorted(found.python)]
        calls = {**{name: found.fired[name] for name in names if found.fired[name]}, **+found.asked}
        remarks = (_missing(),) if found.missing else report.uncompiled(graph, sorted(found.python))
        return Summary(initial | found.variables, found.fired, found.skipped, calls, remarks)


def _parsed(reader: Reader) -> Iterator[Rows]:
    """What machine code reads."""
    try:
        for block in reader.blocks():
            yield from reader.deliver(block.parse())
    finally:
        reader.close()


def _counted(source: Reading, batches: Iterable[Items | Rows]) -> Iterator[Items | Rows]:
    for batch in batches:
        source.count(len(batch))
        yield batch


def _pieces(turn: Turn) -> Iterator[tuple[str, Piece]]:
    """What a turn brings to each queue."""
    items = dict(turn.items)
    marks: dict[str, tuple[int, ...]] = {}
    for name, elements in turn.marks:
        keys = [e.key for e in cast("list[Any]", elements) if isinstance(e, Mark) and e != END]
        marks[name] = (*marks.get(name, ()), *keys)
    for name in dict.fromkeys((*items, *marks)):
        found = items.get(name, [])
        count = len(found)
        if count or marks.get(name):
            yield name, Piece(range(count), found, tuple((count, key) for key in marks.get(name, ())))


def _missing() -> Diagnostic:
    message = "operators are not compiled, which is many times slower: llvmlite is not installed where Spark runs them"
    help_ = "install llvmlite for the Python of the executors, or say `--no-native`"
    return Diagnostic("native-missing", message, None, Severity.WARNING, help=help_)


def _serial(stage: Stage, caught: Caught) -> tuple[int, int, int]:
    """The order of traps: first the instance that stands first in the direction of the data, then its first item."""
    known = {instance: order for order, instance in enumerate(stage.instances)}
    return known[caught.instance], caught.chunk, caught.place


def _look(options: Options) -> None:
    """Raises: KeyboardInterrupt when told to stop."""
    if options.stopping():
        raise KeyboardInterrupt


def watched(spark: Session, job: Callable[[], None], what: str, options: Options) -> None:
    """Runs a job of Spark in a thread of its own, so that it can be stopped.

    Raises: Rejected("spark-failed"); KeyboardInterrupt.
    """
    tag = f"river-{uuid4().hex}"
    failed: list[BaseException] = []
    context = context_of(spark)

    def work() -> None:
        try:
            spark.addTag(tag)
            if context is not None:  # jobs without a plan do not have the session's tags
                context.addJobTag(tag)
            job()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the job has not ended well: it is told below
            failed.append(error)
        finally:
            with suppress(Exception):  # Spark's Java may be gone, and the tag with it
                spark.removeTag(tag)

    thread = threading.Thread(target=work, name=f"river-spark, {what}", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            _look(options)
    except KeyboardInterrupt:
        spark.interruptTag(tag)
        if context is not None:
            context.cancelJobsWithTag(tag)
        raise
    if failed:
        raise Rejected([_failure(what, failed[0])]) from failed[0]


TOLD: Final = re.compile(
    r"^river\.diagnostics\.Rejected: (?:(.+): )?error\[([a-z0-9-]+)\]: (.+)$", re.MULTILINE
)
"""What Spark quotes of a diagnostic that ended a task."""


RAISED: Final = re.compile(
    r"\[USER_RAISED_EXCEPTION\] (?:(.+): )?error\[([a-z0-9-]+)\]: (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE
)
"""What Spark says of a diagnostic that a plan of its own has raised."""

MISMATCH: Final = re.compile(
    r"reading file (.+?)\. Data type mismatches when reading Parquet column \[(.+?)\]\. "
    r"Expected Spark type (.+?), actual Parquet type (\w+)\."
)
"""What Spark says of a file of Parquet whose column is of another type than that of the others."""


def _failure(what: str, error: BaseException) -> Diagnostic:
    """Why a job failed: what a task has refused, or what Spark says; of a Python error in a worker, its last line."""
    if (found := TOLD.search(str(error)) or RAISED.search(str(error))) is not None:
        place, code, message = found.groups()
        return Diagnostic(code, message, place=place)
    if (found := MISMATCH.search(str(error))) is not None:
        file, column, wanted, there = found.groups()
        message = f"field `{column.replace(', ', '.')}`: it is `{there}` in this file, and Spark reads it as `{wanted}`"
        help_ = (
            "the files of an input have to agree: write this one anew, or declare the column as the widest"
        )
        return Diagnostic("data-type", message, place=unquote(file), help=help_)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("at ", "File ", "JVM stacktrace", "..."))]
    last = next((line for line in reversed(told) if "Error" in line or "Exception" in line), "")
    notes = tuple(Note(line) for line in dict.fromkeys((first_said(error), last.removeprefix(": "))) if line)
    return Diagnostic("spark-failed", f"Spark could not run {what}", notes=notes)


def first_said(error: BaseException) -> str:
    """The first line of Spark's words that says something: not where Python called Java."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = (
        line.removeprefix(": ")
        for line in lines
        if line and not line.startswith("An error occurred while calling")
    )
    first = next(said, type(error).__name__)
    return first[first.index(": [") + 2 :] if ": [" in first else first


class _Writer:
    """Rows of one input to Parquet files, so many to each that executors can share the reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.file: Any = None
        folder.mkdir()

    def write(self, row: MarshalledRow) -> None:
        """Appends a row, a row group of its own."""
        if self.count % ROWS_PER_FILE == 0:
            self.close()
        batch = record_batch([row]).drop_columns(["queue"])
        if self.file is None:
            name = self.folder / f"input-{self.count // ROWS_PER_FILE:06d}.parquet"
            self.file = arrow("parquet").ParquetWriter(name, batch.schema, compression="snappy")
        self.file.write_batch(batch)
        self.count += 1

    def close(self) -> None:
        """Ends the file at hand."""
        if self.file is not None:
            self.file.close()
            self.file = None


def _stored(file: Path) -> Iterator[MarshalledRow]:
    """The rows of a file; their queue is that of the folder."""
    names = [column.partition(" ")[0] for column in COLUMNS.split(", ")][1:]
    with arrow("parquet").ParquetFile(file) as opened:
        for batch in opened.iter_batches(READ_AHEAD, columns=names):
            for cells in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                yield MarshalledRow(0, *cells)


def _order(row: MarshalledRow) -> tuple[int, int]:
    return row.chunk, row.part
