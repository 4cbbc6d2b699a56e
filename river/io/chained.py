"""The items of several files, one file after the other: which files are one input, `several` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from river.classes import evolve
from river.io import order
from river.io.batches import ItemSource, Origin
from river.lang.types import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from river.io.batches import Batch
    from river.io.errors import Refusals
    from river.io.several import Files, Folders
    from river.lang.types import Type


class Opener(Protocol):
    """How one of the files is opened."""

    def __call__(self, path: str, folders: Folders, by: str | None, /) -> ItemSource:
        """The items of a file, ascending weakly by the field `by` if that is given. Raises: Rejected."""
        ...


def open_several(
    files: Files, type_: Type, name: str, opened: Opener, refusals: Refusals, by: str | None, lateness: int
) -> ItemSource:
    """A source of the items of files, one after the other; the first is looked at now. See `sources.open_source`."""
    if files.folders:
        from river.io.given import check_given

        check_given(type_, files)

    def members() -> Iterator[ItemSource]:
        given: int | None = None
        for path, folders in files.each():
            member = opened(path, folders, by)
            try:
                if member.ordering is not None:
                    member.ordering.top = member.ordering.given = given
                yield member
                given = given if member.ordering is None else member.ordering.given
            finally:
                member.close()

    first = opened(*next(files.each()), by)
    first.close()
    origin = Origin(name, files.label, rows=first.origin.rows)
    if by is None or lateness <= 0:
        found = ItemSource(type_, origin, _chained(members), refusals)
        found.members = members
    else:
        assert isinstance(type_, Record)  # noqa: S101 - it has the field
        key = type_.index(by)
        assert key is not None  # noqa: S101 - the first file has been opened

        def unordered() -> Iterator[ItemSource]:
            for path, folders in files.each():
                member = opened(path, folders, None)
                try:
                    yield member
                finally:
                    member.close()

        found = order.ordered(ItemSource(type_, origin, _chained(unordered), refusals), key, lateness)
        ordering = found.ordering

        def late() -> Iterator[ItemSource]:
            for member in unordered():
                member.ordering = ordering
                if member.file is not None:
                    member.file = evolve(member.file, key=key, lateness=lateness)
                yield member

        found.members = late
    found.several = files
    return found


def _chained(members: Callable[[], Iterator[ItemSource]]) -> Iterator[Batch]:
    """The batches of sources, each with the place where its rows are."""
    for member in members():
        for batch in member.batches:
            yield evolve(batch, origin=batch.origin or member.origin)
