"""What stands behind the sources, read in columns by machine code where that is possible.

Blocks of a file are delivered in order. They are parsed by the reader, and ahead of it, where the input's `@Region` says so, by
other threads for as long as workers have nothing to do. More threads than processors would only take them from each other.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.driver import Reading
from river.il.model import needed
from river.io.batches import ItemSource
from river.io.live import Arriving
from river.lang import typed
from river.lang import types as t
from river.lang.trees import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future, ThreadPoolExecutor

    from backends.multicore.plan import Plan
    from backends.native.batch import Batch
    from backends.native.ingest import Parsed, Reader
    from river.backend import Items, Rows, Sources
    from river.il.graph import Graph


Anchor = tuple[int, int, int, int | None]
"""A place where a file can be read from: items before it, bytes, lines, and the key up to which items came."""


MORE: Final = 1.02
"""How many more rows than those that are known let expect."""

IDLE: Final = 0.5
"""How often workers must have nothing to do for blocks to be parsed by other threads."""


@define
class Anchors:
    """The places of one file; `first`: where it was begun, `items`: sent up to now."""

    places: deque[Anchor] = field(factory=deque[Anchor])
    items: int = 0

    def note(self, reader: Reader, parsed: Parsed) -> None:
        """What comes next has been parsed."""
        if parsed.block is not None and parsed.block.place:
            given = None if reader.ordering is None else reader.ordering.given
            self.places.append((self.items, parsed.block.place, reader.lines, given))

    def before(self, items: int) -> Anchor | None:
        """The last place before so many items; those before it are forgotten."""
        while len(self.places) > 1 and self.places[1][0] <= items:
            self.places.popleft()
        return self.places[0] if self.places and self.places[0][0] <= items else None


def opened(
    plan: Plan,
    sources: Sources,
    kept: Mapping[str, Anchors],
    spare: Callable[[], int],
    partly: dict[str, frozenset[str]],
) -> Mapping[str, Iterable[Items | Rows]]:
    """The sources; those that machine code can read give columns, from where `kept` says, which notes how far they are.

    `spare`: how many of the workers have nothing to do now, not counting one for the reader. `partly` gets, of inputs that are
    not read as a whole, the fields that are; what stands in the others is nothing that was read.
    """
    return {
        name: _opened(plan, name, source, kept.get(name), spare, partly) for name, source in sources.items()
    }


def _opened(
    plan: Plan,
    name: str,
    source: Iterable[Items],
    anchors: Anchors | None,
    spare: Callable[[], int],
    partly: dict[str, frozenset[str]],
) -> Iterable[Items | Rows]:
    if isinstance(source, Arriving):
        wanted = used(plan.graph, name)
        from backends.native.ingest.arriving import read_natively

        if read_natively(source, plan.graph.queues[name].key(), plan.batch, wanted) and wanted is not None:
            partly[name] = wanted
        return source
    if not (isinstance(source, Reading) and isinstance(source.source, ItemSource)):
        return source
    from backends.native.ingest import open_native

    behind, helpers = source.source, plan.readers(name) - 1
    if behind.rows is not None:
        reader = open_native(behind.rows, plan.batch, used(plan.graph, name))
        return source if reader is None else counted(source, _all(reader, behind.bytes, helpers, spare))
    wanted = used(plan.graph, name)
    reader = open_native(behind, plan.batch, wanted)
    if reader is not None:
        if wanted is not None:
            partly[name] = wanted
        if (
            anchors is not None
            and behind.file is not None
            and not behind.file.packed
            and not behind.file.lateness
            and behind.refusals.stops
        ):
            if anchors.places:
                anchors.items, place, lines, given = anchors.places[-1]
                reader.begin(place, lines, given)
            return counted(source, _parsed(reader, helpers, spare, anchors), anchors)
        if anchors is not None:
            anchors.places.clear()
        return counted(source, _parsed(reader, helpers, spare, None))
    if anchors is not None:
        anchors.places.clear()
    from river.io.columnar import Tables  # an input of lines does without

    tables = behind.unordered
    if isinstance(tables, Tables):
        from backends.native.ingest.tables import converted

        return counted(source, converted(behind, tables, plan.batch))
    if behind.members is not None:
        from backends.native.ingest.several import in_columns, one_by_one

        if not in_columns(behind):
            return source
        if wanted is not None:
            partly[name] = wanted

        def parsed(reader: Reader) -> Iterator[Rows]:
            return _parsed(reader, helpers, spare, None)

        return counted(source, one_by_one(behind, plan.batch, wanted, parsed))
    return source


def _all(reader: Reader, size: int, helpers: int, spare: Callable[[], int]) -> Iterator[Batch]:
    """One item, the list of all rows of so many bytes, if that is known."""
    from backends.native.listing import listed

    rows = _parsed(reader, helpers, spare, None)
    yield listed(reader.form.type, rows, reader.parser.live, lambda: int(reader.expected * size * MORE))


def counted(
    source: Reading, batches: Iterator[Items | Rows], anchors: Anchors | None = None
) -> Iterator[Items | Rows]:
    """The same batches, whose rows are counted as they come."""
    for batch in batches:
        source.count(len(batch))
        if anchors is not None:
            anchors.items += len(batch)
        yield batch


def _parsed(
    reader: Reader, helpers: int, spare: Callable[[], int], anchors: Anchors | None
) -> Iterator[Batch]:
    """The rows of all blocks. Up to so many helpers parse ahead of the caller, and so many blocks wait for it."""
    from backends.native.ingest import Parsed

    pool: ThreadPoolExecutor | None = None
    ahead: deque[Parsed | Future[Parsed]] = deque()
    idle = 0.0  # how often there was a worker with nothing to do, smoothed

    def done() -> bool:
        return isinstance(ahead[0], Parsed) or ahead[0].done()

    def delivered() -> Iterator[Batch]:
        found = ahead.popleft()
        parsed = found if isinstance(found, Parsed) else found.result()
        if anchors is not None:
            anchors.note(reader, parsed)
        return reader.deliver(parsed)

    try:
        for block in reader.blocks():
            free = spare() - sum(not (isinstance(each, Parsed) or each.done()) for each in ahead)
            idle += ((free > 0) - idle) / 8
            if helped := len(ahead) < helpers and free > 0 and idle > IDLE:
                if pool is None:
                    from concurrent.futures import ThreadPoolExecutor

                    pool = ThreadPoolExecutor(helpers, "river-parser")
                ahead.append(pool.submit(block.parse))
            else:
                ahead.append(block.parse())
            while ahead and (not helped or done()):
                yield from delivered()
        while ahead:
            yield from delivered()
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        reader.close()


def used(graph: Graph, name: str) -> frozenset[str] | None:
    """The fields of an input that anybody reads or gets, or of its rows where they are one item; None: all of them."""
    queue = graph.queues[name]
    if queue.consumer is None:
        return None
    instance = graph.instances[queue.consumer.instance]
    if isinstance(queue.type, t.List):
        return _of_rows(instance.operator)
    if not isinstance(queue.type, t.Record):
        return None
    found = needed(instance)
    return found if found is None or queue.by is None else found | {queue.by}


def _of_rows(op: typed.Operator | typed.Extern) -> frozenset[str] | None:
    """The fields that an operator reads of the rows of its items; None if it does more with these than to make others of them."""
    match op:
        case typed.Operator(
            items=(typed.ItemHandler(body=typed.Block((typed.Emit(_, typed.MakeRecord() as sent),))),),
            mark=None,
        ):
            pass
        case _:
            return None
    found: set[str] = set()
    for value in sent.values:
        match value:
            case typed.Comprehension(_, made, (row,), _, typed.Local(slot=0), None):
                fields = [each for each in nodes(made) if isinstance(each, typed.Get)]
                read = [each.name for each in fields if _is(each.value, row)]
                if len(read) != sum(_is(each, row) for each in nodes(made)):
                    return None
                found.update(read)
            case _ if any(isinstance(each, typed.Local) for each in nodes(value)):
                return None
            case _:
                pass
    return frozenset(found)


def _is(node: typed.Node, slot: int) -> bool:
    return isinstance(node, typed.Local) and node.slot == slot
