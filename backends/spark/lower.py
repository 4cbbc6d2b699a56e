"""A stage as transformations of Spark: which rows meet in which partition, and in which order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from backends.spark import worker
from backends.spark.marshal import COLUMNS
from backends.spark.stages import StageKind

if TYPE_CHECKING:
    from backends.spark.plan import Plan
    from backends.spark.stages import Stage

Frame = Any
"""A DataFrame of pyspark."""


def lower(plan: Plan, stage: Stage, task: str, frame: Frame) -> Frame:
    """The rows that a stage makes of `frame`, which has those of its inputs in any order."""
    match stage.kind:
        case StageKind.ORDERED:
            return _mapped(
                frame.coalesce(1).sortWithinPartitions("chunk", "queue", "part"), worker.ordered, task
            )
        case StageKind.MAP:
            return _mapped(_whole(plan, stage, frame), worker.mapped, task)
        case StageKind.KEYED:
            scattered = _mapped(_whole(plan, stage, frame), worker.scattered, task)
            channels = by_channel(scattered, stage.role.channels)
            return _mapped(channels.sortWithinPartitions("channel", "chunk", "queue"), worker.keyed, task)


def _mapped(frame: Frame, function: Any, task: str) -> Frame:
    return frame.mapInArrow(partial(function, task), COLUMNS)


def _whole(plan: Plan, stage: Stage, frame: Frame) -> Frame:
    """The rows with all parts of a chunk in one place; what no channels have written is whole already."""
    makers = (plan.producer(queue) for queue in stage.ins)
    if all(maker is None or maker.kind is not StageKind.KEYED for maker in makers):
        return frame
    return frame.repartition(plan.workers, "chunk").sortWithinPartitions("chunk", "queue", "part")


def by_channel(frame: Frame, channels: int) -> Frame:
    """One partition for each channel. Before Spark 4.1 some may share one, which the worker does not mind."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(channels, frame["channel"])
    return frame.repartition(channels, "channel")
