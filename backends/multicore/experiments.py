"""What may be chosen for experiments: the ways of the ordered multicore paper, of which River takes the first of each."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from river.backend import chosen
from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.multicore.ordering.keyed import Join, Keyed, Operate, Split
    from backends.multicore.ordering.reorder import LockedReorder, ReorderBuffer
    from river.backend import Options

EXPERIMENTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "scheduler": ("LP", "QST", "ET", "CT"),
        "reordering": ("non-blocking", "locked"),
        "sharding": ("hybrid", "partitioned", "shared", "off"),
        "gate": ("measured", "open"),
        "width": ("measured", "fixed", "changing"),
    }
)
"""Names, with what each may be; what stands first is what River does unasked."""


@frozen
class Choices:
    """What was chosen. Paper: section 6 (`scheduler`), section 3 (`reordering`), section 4 (`sharding`).

    `gate`: several workers are let in where what was measured says that it pays, or always.
    `width`: as many workers may be at an operator as it keeps busy, by what was measured; always as many as may be; or another
    number each turn, as tests want it.
    """

    scheduler: str
    reordering: str
    sharding: str
    gate: str
    width: str

    @classmethod
    def of(cls, options: Options) -> Choices:
        """Raises: Rejected("run-experiment") for what there is not."""
        return cls(**chosen("multicore", EXPERIMENTS, options))

    @property
    def partitioned(self) -> bool:
        """Whether each worker has shards of its own."""
        return self.sharding == "partitioned"

    def order(self, capacity: int, send: Any, drain: Any) -> ReorderBuffer[Any] | LockedReorder[Any]:
        """What puts results in order."""
        from backends.multicore.ordering.reorder import LockedReorder, ReorderBuffer

        if self.reordering == "locked":
            return LockedReorder[Any](capacity, send, drain)
        return ReorderBuffer[Any](capacity, send, drain)

    def queue(
        self,
        shards: int,
        order: Any,
        split: Split[Any],
        operate: Operate[Any, Any],
        join: Join[Any, Any],
    ) -> Keyed[Any, Any]:
        """The queue of a keyed operator."""
        from backends.multicore.ordering.hybrid import HybridQueue
        from backends.multicore.ordering.partitioned import PartitionedQueues
        from backends.multicore.ordering.shared import SharedQueue

        made = {"partitioned": PartitionedQueues, "shared": SharedQueue}.get(self.sharding, HybridQueue)
        return made(shards, order, split, operate, join)
