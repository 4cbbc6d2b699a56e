"""Outputs of a run: where their rows go, and how many went there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from river.classes import define
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from river.backend import Items
    from river.driver.job import Job
    from river.il.graph import Graph
    from river.io.folders import FolderOutput
    from river.io.sinks import ArrowSink, Sink, TextSink
    from river.lang.types import Type
    from river.restart import RunKeeper


def row_types(graph: Graph) -> dict[str, Type]:
    """Types of the rows of outputs as they are written (a relation as its change log), by name."""
    from river.io import deltas

    types = {name: graph.queues[name].type for name in graph.outputs}
    rows = {name: deltas.changelog(t) if deltas.is_delta(t) else t for name, t in types.items()}
    return rows | {view.name: view.type for view in graph.views}


def open_output(
    job: Job, name: str, type_: Type, keeper: RunKeeper | None, most: int | None = None
) -> CountedSink:
    """The sink of output `name`, for so many rows at most; one that goes on, from where the checkpoint says."""
    from river.io.folders import Partitions, is_folder
    from river.io.sinks import open_sink

    position, rows = (None, 0) if keeper is None else keeper.position(name)
    if name not in job.outputs and job.default is not None:
        return CountedSink(job.default(name, type_), rows, most)
    target, format_ = job.outputs.get(name), job.formats.get(name)
    if isinstance(target, Partitions):
        from river.io.partitions import PartitionedSink

        return CountedSink(PartitionedSink(target, type_, name), rows, most)
    if target is not None and is_folder(target):
        return _in_folder(job, name, type_, most)
    in_place = job.live is not None or keeper is not None
    index = job.indices.get(name, (0, 0))
    sink = open_sink(
        target, type_, name=name, format=format_, in_place=in_place, resume=position, index=index
    )
    return CountedSink(sink, rows, most)


def check_folders(job: Job) -> None:
    """Checks that what is asked of outputs which are folders can be done.

    Raises: Rejected("data-folder") for runs that go on, ("usage") for a mode that is none, or where there are none,
    ("data-partition") for columns that are to divide what goes to none.
    """
    from river.io.folders import MODES, is_folder

    if job.mode is not None and job.mode not in MODES:
        raise Rejected(
            [Diagnostic("usage", f"there is no mode `{job.mode}`", help=f"use {', '.join(MODES)}")]
        )
    folders = [name for name, target in job.outputs.items() if is_folder(target)]
    if job.mode is not None and not folders:
        message = f"`--mode {job.mode}` is for outputs that are folders, and none is"
        raise Rejected(
            [Diagnostic("usage", message, help="write a slash behind the folder: `--out NAME=FOLDER/`")]
        )
    if undivided := [name for name in job.partition_by if name not in folders]:
        message = f"`--partition-by {undivided[0]}=...` is for outputs that are folders, and `{undivided[0]}` is none"
        help_ = f"write a slash behind the folder: `--out {undivided[0]}=FOLDER/`"
        raise Rejected([Diagnostic("data-partition", message, help=help_)])
    if folders and (job.live is not None or job.checkpoint is not None):
        message = f"output `{folders[0]}`: a folder gets its files when the run has ended, and this one is written as it goes"
        raise Rejected([Diagnostic("data-folder", message, help="name a file for it")])


def dividing(job: Job, name: str, type_: Type) -> tuple[str, ...]:
    """The columns by which the rows of an output are divided among folders, if they are. Raises: Rejected("data-partition")."""
    by = job.partition_by.get(name)
    if by is None:
        return ()
    from river.io.partitions import divisible

    columns = (by,) if isinstance(by, str) else tuple(by)
    divisible(name, type_, columns)
    return columns


def _in_folder(job: Job, name: str, type_: Type, most: int | None) -> CountedSink:
    """The sink of an output whose file, or files, go to a folder."""
    from river.io.folders import FolderOutput, Partitions, format_in
    from river.io.partitions import PartitionedSink
    from river.io.sinks import open_sink

    target = os.fspath(cast("str | os.PathLike[str]", job.outputs[name]))
    kind = format_in(target, job.formats.get(name), name)
    columns = dividing(job, name, type_)
    output = FolderOutput(target, kind, job.mode or "error", columns)
    try:
        if output.adds:
            from river.io.appended import check_added

            check_added(name, target, kind, type_, columns)
        if columns:
            sink = PartitionedSink(Partitions(str(output.staging), kind, columns), type_, name, output)
        else:
            sink = open_sink(output, type_, name=name, format=kind)
    except BaseException:
        output.abort()
        raise
    return CountedSink(sink, 0, most, output)


@define
class CountedSink:
    """A sink that knows how many rows it got; what comes behind the first `most` is no part of the output.

    `folder`: where its file is to be, if that is a folder, for those who bring files there by themselves.
    """

    sink: Sink
    rows: int = 0
    most: int | None = None
    folder: FolderOutput | None = None

    def write(self, items: Items) -> None:
        """Passes the rows on."""
        if self.most is not None:
            items = items[: max(0, self.most - self.rows)]
        self.rows += len(items)
        self.sink.write(items)

    @property
    def room(self) -> int | None:
        """How many more rows the sink has a use for; None: all."""
        own = None if self.most is None else max(0, self.most - self.rows)
        found = getattr(self.sink, "room", None)
        return own if found is None else found if own is None else min(own, found)

    def skip(self, rows: int) -> None:
        """Counts rows that the sink has no use for."""
        if self.most is not None:
            rows = min(rows, max(0, self.most - self.rows))
        if rows:
            self.rows += rows
            cast("Any", self.sink).skip(rows)

    def complete(self) -> None:
        """Does what may find something wrong with rows, so that no output is at its place before."""
        complete = getattr(self.sink, "complete", None)
        if complete is not None:
            complete()

    def write_bytes(self, data: bytes | memoryview, rows: int) -> None:
        """Passes lines on, to a `TextSink`."""
        self.rows += rows
        cast("TextSink", self.sink).write_bytes(data)
        if getattr(self.sink, "room", None) is not None:
            cast("Any", self.sink).skip(rows)

    def write_table(self, batch: Any) -> None:
        """Passes an Arrow record batch on, to an `ArrowSink`."""
        if self.most is not None:
            batch = batch.slice(0, max(0, self.most - self.rows))
        self.rows += batch.num_rows
        cast("ArrowSink", self.sink).write_table(batch)


@define(eq=False)
class Writer:
    """What takes the items of an output, which are of `type`: a delta is written as its rows in the change log."""

    type: Type
    sink: CountedSink

    def __call__(self, items: Items) -> None:
        """Writes items."""
        from river.io import deltas

        if deltas.is_delta(self.type):
            items = [row for item in items for row in deltas.changelog_rows(item)]
        self.sink.write(items)
