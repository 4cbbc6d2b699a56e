"""Arrow data, of files and of memory, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.arrow import from_arrow
from backends.native.batch import Batch
from backends.native.ingest.lateness import Waiting, may_wait
from backends.native.layout import Unsupported
from river.classes import evolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.backend import Items
    from river.io.batches import ItemSource
    from river.io.columnar import Tables
    from river.io.order import Ordering


def converted(
    source: ItemSource, tables: Tables, most: int, shared: Waiting | None = None
) -> Iterator[Items | Batch]:
    """The rows of Arrow data in columns, where nothing about them is unusual; else as the source gives them."""
    ordering, waiting = source.ordering, shared
    late = ordering is not None and ordering.lateness
    if waiting is None and ordering and late and may_wait(source.type, ordering.key):
        waiting = Waiting(source.type, ordering)
    try:
        for part in tables.parts(most):
            batch = None if late and waiting is None else from_arrow(source.type, part.data)
            if batch is not None and waiting is not None and waiting.takes([batch]):
                yield waiting.push(batch)
            elif batch is not None and (ordering is None or (not late and _ascends(batch, ordering))):
                yield batch
            else:
                general = evolve(part.batch(), origin=part.origin)
                if waiting is None or ordering is None:
                    yield from source.accepted(general if ordering is None else ordering.push(general))
                else:
                    for items in source.accepted(ordering.sieved(general)):
                        yield waiting.push(Batch.of(source.type, items))
        if waiting is not None:
            if shared is None:
                yield waiting.release(None)
        elif ordering is not None and late:
            yield from source.accepted(ordering.release(None))
    finally:
        source.close()


def _ascends(batch: Batch, ordering: Ordering) -> bool:
    """Whether the keys of a batch ascend from those before; if they do, the order knows it."""
    if len(batch):
        try:
            if batch.fall(ordering.key, ordering.given) is not None:
                return False
        except Unsupported:
            return False
        ordering.top = ordering.given = batch.number(ordering.key, len(batch) - 1)
    return True
