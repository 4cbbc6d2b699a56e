"""What stands behind the sources, read in columns by machine code where that is possible.

Blocks of a file are parsed by several threads at once, and delivered in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from backends.native.layout import Unsupported
from river.driver import Reading
from river.il.model import instance_model
from river.io.batches import Source
from river.io.columnar import Tables
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backends.multicore.plan import Plan
    from backends.native.ingest import Reader
    from river.backend import Items, Rows, Sources
    from river.il.graph import Graph
    from river.io.order import Ordering


def opened(plan: Plan, sources: Sources) -> Mapping[str, Iterable[Items | Rows]]:
    """The sources; those that machine code can read give columns."""
    return {name: _opened(plan, name, source) for name, source in sources.items()}


def _opened(plan: Plan, name: str, source: Iterable[Items]) -> Iterable[Items | Rows]:
    if not (isinstance(source, Reading) and isinstance(source.source, Source)):
        return source
    from backends.native.ingest import open_native

    behind = source.source
    reader = open_native(behind, plan.options.batch, used(plan.graph, name))
    if reader is not None:
        return _counted(source, _parsed(reader, plan.workers))
    tables = behind.unordered
    lateness = 0 if behind.ordering is None else behind.ordering.lateness
    if isinstance(tables, Tables) and not lateness:
        return _counted(source, _converted(behind, tables))
    return source


def _counted(source: Reading, batches: Iterator[Items | Rows]) -> Iterator[Items | Rows]:
    for batch in batches:
        source.count(len(batch))
        yield batch


def _parsed(reader: Reader, threads: int) -> Iterator[Rows]:
    """The rows of all blocks. As many blocks are parsed ahead as there are threads."""
    blocks = reader.blocks()
    try:
        if threads == 1:
            for block in blocks:
                yield from reader.deliver(block.parse())
            return
        from concurrent.futures import ThreadPoolExecutor

        ahead: deque[Any] = deque()
        with ThreadPoolExecutor(threads, "river-parser") as pool:
            try:
                for block in blocks:
                    ahead.append(pool.submit(block.parse))
                    if len(ahead) > threads:
                        yield from reader.deliver(ahead.popleft().result())
                while ahead:
                    yield from reader.deliver(ahead.popleft().result())
            finally:
                for each in ahead:
                    each.cancel()
    finally:
        reader.close()


def _converted(source: Source, tables: Tables) -> Iterator[Items | Rows]:
    """The rows of Arrow data in columns, where nothing about them is unusual; else as the source gives them."""
    from backends.native.arrow import from_arrow

    ordering = source.ordering
    try:
        for part in tables.parts:
            batch = from_arrow(source.type, part.data)
            if batch is None or (ordering is not None and not _ascends(batch, ordering)):
                general = part.batch()
                yield from source.accepted(general if ordering is None else ordering.push(general))
            else:
                yield batch
    finally:
        source.close()


def _ascends(batch: Rows, ordering: Ordering) -> bool:
    """Whether the keys of a batch ascend from those before; if they do, the order knows it."""
    if len(batch):
        try:
            if batch.fall(ordering.key, ordering.given) is not None:
                return False
        except Unsupported:
            return False
        ordering.top = ordering.given = batch.numbers(ordering.key)[-1]
    return True


def used(graph: Graph, name: str) -> frozenset[str] | None:
    """The fields of an input whose values anybody reads; None: all of them."""
    queue = graph.queues[name]
    if queue.consumer is None or not isinstance(queue.type, t.Record):
        return None
    instance = graph.instances[queue.consumer.instance]
    model = instance_model(instance)
    if model.reads is None or model.rows or len(instance.ins) > 1:
        return None
    forwarded = {taken for pairs in model.forwarded for _, taken in pairs}
    return frozenset({*model.reads, *forwarded, *(() if queue.by is None else (queue.by,))})
