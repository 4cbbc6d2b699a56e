"""Several files as columns, one after the other; rows that may come late wait for those of the next file, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.ingest.delivery import Delivery
from backends.native.ingest.lateness import may_wait
from backends.native.ingest.reader import open_native
from backends.native.ingest.tables import converted
from river.classes import evolve
from river.io.columnar import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.native.ingest.reader import Reader
    from river.backend import Items, Rows
    from river.io.batches import ItemSource


def in_columns(source: ItemSource) -> bool:
    """Whether its rows need not wait for late ones, or can in columns."""
    return source.ordering is None or may_wait(source.type, source.ordering.key)


def one_by_one(
    source: ItemSource,
    most: int,
    used: frozenset[str] | None,
    parsed: Callable[[Reader], Iterator[Rows]],
) -> Iterator[Items | Rows]:
    """The rows of the files of a source, each read by machine code if there is some; `parsed`: those of a reader.

    `used`: see `open_native`.
    """
    assert source.members is not None  # noqa: S101 - it is several files
    if source.ordering is None:
        for member in source.members():
            yield from _in_order(member, most, used, parsed)
        return
    delivery = Delivery(source.type, source.refusals, source.ordering)
    for member in source.members():
        reader, tables = open_native(member, most, used), member.unordered
        if reader is not None:
            reader.deliver_by(delivery)
            yield from parsed(reader)
        elif isinstance(tables, Tables):
            yield from converted(member, tables, most, delivery.waiting)
        else:
            for batch in member.batches:
                for rows in delivery.general(evolve(batch, origin=batch.origin or member.origin)):
                    yield from (rows[first : first + most] for first in range(0, rows.rows, most))
    for rows in delivery.release(None):
        yield from (rows[first : first + most] for first in range(0, rows.rows, most))


def _in_order(
    member: ItemSource,
    most: int,
    used: frozenset[str] | None,
    parsed: Callable[[Reader], Iterator[Rows]],
) -> Iterator[Items | Rows]:
    """The rows of one of these files, which come in order."""
    before = None if member.ordering is None else member.ordering.given
    reader, tables = open_native(member, most, used), member.unordered
    if reader is not None:
        reader.begin(0, 0, before)
        yield from parsed(reader)
        if member.ordering is not None and reader.ordering is not None:
            member.ordering.given = reader.ordering.given
    elif isinstance(tables, Tables):
        yield from converted(member, tables, most)
    else:
        yield from member
