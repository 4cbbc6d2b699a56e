"""Jobs of Spark whose tasks read and write files by themselves: what goes to them are numbers, what comes back are texts.

A session of this process runs them without a plan, as RDDs: a query of so little would take Spark's planner and its compiler
longer than the driver needs for all else. Sessions of Spark Connect, which have no RDDs, run them as DataFrames. The tasks are
the same functions over Arrow's batches, in the manner of `mapInArrow`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from backends.spark.lower import by_channel
from river.io.schema import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.spark.session import Session

    Task = Callable[[Iterable[Any]], Iterator[Any]]

EXCHANGE: Final = "channel int, part int, place int, items binary, told string"
"""Rows between two tasks: chunks for a channel in the order of the file, and, with place -1, what the task of a part tells."""

TOLD: Final = "told string"


def tellings(spark: Session, count: int, task: Task) -> list[str]:
    """What tasks tell of which each gets one number, from 0 on."""
    context = context_of(spark)
    if context is None:
        return told_by(_numbers(spark, count).mapInArrow(task, TOLD))
    return context.parallelize(range(count), count).mapPartitions(partial(_told, task)).collect()


def tellings_of_channels(spark: Session, count: int, task: Task, channels: int, then: Task) -> list[str]:
    """The same, of tasks that get what those of parts send to a channel, in the order of parts and places."""
    context = context_of(spark)
    if context is None:
        rows = by_channel(_numbers(spark, count).mapInArrow(task, EXCHANGE), channels)
        return told_by(rows.sortWithinPartitions("channel", "part", "place").mapInArrow(then, TOLD))
    sent = context.parallelize(range(count), count).mapPartitions(partial(_sent, task))
    return sent.partitionBy(channels, int).mapPartitions(partial(_met, then)).collect()


def told_by(frame: Any) -> list[str]:
    """The texts in the only column of a frame."""
    return [row[0] for row in frame.collect()]


def context_of(spark: Session) -> Any:
    """The context of a session of this process, None for others."""
    return getattr(spark, "_sc", None)


def _numbers(spark: Session, count: int) -> Any:
    """A frame with numbers, each in a partition of its own."""
    return spark.range(0, count, 1, count)


def _batches(numbers: Iterable[int]) -> Iterator[Any]:
    pa = arrow()
    found = list(numbers)
    if found:
        yield pa.record_batch([pa.array(found, pa.int64())], ["id"])


def _told(task: Task, numbers: Iterable[int]) -> Iterator[str]:
    for batch in task(_batches(numbers)):
        yield from batch.column(0).to_pylist()


def _sent(task: Task, numbers: Iterable[int]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of an exchange, each with its channel."""
    for batch in task(_batches(numbers)):
        columns = [batch.column(place) for place in range(batch.num_columns)]
        for at in range(batch.num_rows):
            channel, *rest = (column[at].as_py() for column in columns)
            yield channel, tuple(rest)


def _met(task: Task, rows: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[str]:
    """What a task tells of the rows that were sent to its channels."""
    in_order = sorted(rows, key=lambda row: (row[0], *row[1][:2]))
    for batch in task(_exchanged(in_order)):
        yield from batch.column(0).to_pylist()


def _exchanged(rows: list[tuple[int, tuple[Any, ...]]]) -> Iterator[Any]:
    """A batch for each row: together they may have more bytes than a column of Arrow's takes."""
    pa = arrow()
    kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.string())
    names = [column.partition(" ")[0] for column in EXCHANGE.split(", ")]
    for channel, rest in rows:
        columns = [pa.array([cell], kind) for cell, kind in zip((channel, *rest), kinds, strict=True)]
        yield pa.record_batch(columns, names)
