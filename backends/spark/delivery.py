"""Rows of outputs on their way from Arrow's record batches to sinks, in the driver's process or in an executor's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backends.native.arrow import from_arrow
from backends.native.egress.sinks import column_sink
from backends.spark.marshal import of_records
from river.classes import frozen
from river.driver import CountedSink, Writer
from river.io.folders import FORMATS, Partitions
from river.io.partitions import PartitionedSink
from river.io.sinks import open_sink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.io.sinks import Sink
    from river.lang import types as t


@frozen
class StagedFolder:
    """Where executors leave the files of an output that goes to a folder: hidden until the run has ended well.

    `by`: columns whose values name the folders of files.
    """

    path: str
    format: str
    by: tuple[str, ...] = ()

    def target(self) -> str | Partitions:
        """Where one attempt of a task brings its rows."""
        return Partitions(self.path, self.format, self.by) if self.by else self.file()

    def file(self) -> str:
        """The path of a file, which is that of one attempt of a task."""
        return f"{self.path}/{uuid4().hex}.{FORMATS[self.format]}"

    def seen(self) -> bool:
        """Whether it is the same folder here as for who made it: its name was drawn at random."""
        return Path(self.path).is_dir()

    def write(self, name: str, type_: t.Type, batches: Iterable[Any]) -> list[tuple[str, int]]:
        """Files with the rows of output `name`, and how many there are. Raises: Rejected."""
        target = self.target()
        with opened_sink(name, type_, target, self.format) as sink:
            counted = CountedSink(sink)
            hand_over(Writer(type_, counted), batches)
        return made(target, counted.rows)


def opened_sink(name: str, type_: t.Type, target: str | Partitions, format_: str | None) -> Sink:
    """What writes rows of output `name` to a file, or to files; without a format its suffix tells. Raises: Rejected."""
    if isinstance(target, Partitions):
        return PartitionedSink(target, type_, name)
    return open_sink(target, type_, name=name, format=format_)


def made(target: str | Partitions, rows: int) -> list[tuple[str, int]]:
    """The files at a target that got so many rows, and how many each has."""
    return target.files if isinstance(target, Partitions) else [(target, rows)]


def hand_over(sink: Writer, batches: Iterable[Any]) -> None:
    """Hands record batches of rows to a sink of such rows."""
    taken: Any = column_sink(sink)
    columns = getattr(taken, "columns", None)
    for records in batches:
        batch = None if columns is None else from_arrow(sink.type, records)
        if columns is None or batch is None:
            taken(of_records(sink.type, records))
        else:
            columns(batch)
