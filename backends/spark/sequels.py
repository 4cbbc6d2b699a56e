"""The rows of files that continue an input: what came before says how their time stamps go on, and which rows wait.

As many files as there are: their rows are one sequence, in order or, with lateness, put in order, whatever file or epoch they
stand in. Machine code reads what it can; what it does not recognise the general readers read again, which say what is wrong.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch
from backends.native.ingest import open_native
from backends.native.ingest.lateness import Waiting, may_wait
from backends.native.ingest.tables import converted
from backends.spark.marshal import values_of
from backends.spark.parts import GivenFile
from river.classes import define, evolve, field
from river.diagnostics import Rejected
from river.io.batches import Origin
from river.io.columnar import Tables
from river.io.errors import STOP
from river.io.order import Ordering
from river.io.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from river.backend import Items, Rows
    from river.il.graph import Queue
    from river.io.batches import ItemSource
    from river.io.errors import OnError, Refusals


def in_any_order(queue: Queue, table: Any, *, native: bool, batch: int) -> Iterable[Items | Rows]:
    """The rows of an Arrow table, of which it does not matter when they were. Raises: Rejected."""
    source = open_source(table, queue.type, name=queue.name, on_error=STOP, batch=batch, by=None)
    tables = source.unordered
    return converted(source, tables, batch) if native and isinstance(tables, Tables) else source


SIZE: Final = 4096
"""Items that the general readers read at once."""


@define(eq=False)
class Sequel:
    """The files, or Arrow tables, that come next of the input behind `queue`, read once.

    `top`: the largest time stamp so far, `given`: that of the last row that was given out, `waiting`: rows that were read and
    may have to let others go first. All three go on from what they are at the end. `last`: no rows come after these files.
    """

    queue: Queue
    files: Sequence[GivenFile | Any]
    refusals: Refusals
    lateness: int = 0
    last: bool = False
    native: bool = True
    batch: int = SIZE
    count: Callable[[int], None] = lambda _: None
    top: int | None = None
    given: int | None = None
    waiting: Items = field(factory=list[Any])

    def __iter__(self) -> Iterator[Items | Rows]:
        """Raises: Rejected, as a source does."""
        key = self.queue.key()
        batches = self._in_order(key) if key is None or not self.lateness else self._put_in_order(key)
        for batch in batches:
            if len(batch):
                self.count(len(batch))
                yield batch

    def _open(self, file: GivenFile | Any, by: str | None, policy: OnError | Refusals) -> ItemSource:
        stored = isinstance(file, GivenFile)
        return open_source(
            file.path if stored else file,
            self.queue.type,
            name=self.queue.name,
            format=file.format if stored else None,
            on_error=policy,
            batch=self.batch,
            by=by,
        )

    # -- rows whose time stamps do not go back

    def _in_order(self, key: int | None) -> Iterator[Items | Rows]:
        for file in self.files:
            source = self._open(file, self.queue.by, self.refusals)
            if source.ordering is not None:
                source.ordering.top = source.ordering.given = self.given
            for batch in self._batches(source):
                if key is not None and len(batch):
                    end = batch[-1][key] if isinstance(batch, list) else batch.number(key, len(batch) - 1)
                    self.top = self.given = end
                yield batch

    def _batches(self, source: ItemSource) -> Iterable[Items | Rows]:
        reader = open_native(source, self.batch, None) if self.native else None
        if reader is not None:
            reader.begin(0, 0, self.given)
            return reader
        tables = source.unordered
        if self.native and isinstance(tables, Tables):
            return converted(source, tables, self.batch)
        return source

    # -- rows that may come late

    def _put_in_order(self, key: int) -> Iterator[Items | Rows]:
        ordering = Ordering(self.queue.type, key, self.lateness, Origin(self.queue.name))
        ordering.top, ordering.given = self.top, self.given
        ordering.hold(self.waiting)
        if self.native and may_wait(self.queue.type, key):
            yield from self._in_columns(ordering)
        else:
            for file in self.files:
                with closing(self._open(file, None, self.refusals)) as source:
                    for batch in source.batches:
                        yield from source.accepted(ordering.push(evolve(batch, origin=source.origin)))
            self.top, self.given, self.waiting = ordering.top, ordering.given, ordering.waiting
            if self.last:
                yield from [self.waiting]

    def _in_columns(self, ordering: Ordering) -> Iterator[Items | Rows]:
        waiting = Waiting(self.queue.type, ordering)
        if self.waiting:
            waiting.push(Batch.of(self.queue.type, self.waiting))
        for file in self.files:
            batches = self._regular(file)
            if batches is not None and waiting.takes(batches):
                for batch in batches:
                    yield waiting.push(batch)
            else:
                with closing(self._open(file, None, self.refusals)) as source:
                    for general in source.batches:
                        for items in source.accepted(ordering.sieved(evolve(general, origin=source.origin))):
                            yield waiting.push(Batch.of(self.queue.type, items))
        self.top, self.given = ordering.top, ordering.given
        rest = waiting.release(None)
        self.waiting = rest.values()
        if self.last:
            yield rest

    def _regular(self, file: GivenFile | Any) -> list[Batch] | None:
        """All rows of a file in columns; None if anything about it is unusual."""
        try:
            found = [*self._batches(self._open(file, None, STOP))]
        except Rejected:
            return None
        type_ = self.queue.type
        return [batch if isinstance(batch, Batch) else Batch.of(type_, values_of(batch)) for batch in found]
