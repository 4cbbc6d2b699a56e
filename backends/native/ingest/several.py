"""Several files as columns, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.ingest.reader import open_native
from backends.native.ingest.tables import converted
from river.io.columnar import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.native.ingest.reader import Reader
    from river.backend import Items, Rows
    from river.io.batches import ItemSource


def one_by_one(
    members: Iterable[ItemSource],
    most: int,
    used: frozenset[str] | None,
    parsed: Callable[[Reader], Iterator[Rows]],
) -> Iterator[Items | Rows]:
    """The rows of the sources of files, each read by machine code if there is some; `parsed`: those of a reader.

    `members`, `used`: see `ItemSource` and `open_native`.
    """
    for member in members:
        before = None if member.ordering is None else member.ordering.given
        reader = open_native(member, most, used)
        tables = member.unordered
        if reader is not None:
            reader.begin(0, 0, before)
            yield from parsed(reader)
            if member.ordering is not None and reader.ordering is not None:
                member.ordering.given = reader.ordering.given
        elif isinstance(tables, Tables):
            yield from converted(member, tables, most)
        else:
            yield from member
