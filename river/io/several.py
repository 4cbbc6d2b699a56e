"""Inputs that are several files: a folder, or all whose names match a pattern, read one after the other, sorted by path."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.io import order
from river.io.batches import ItemSource, Origin
from river.io.errors import unreadable
from river.lang.types import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from river.io.batches import Batch
    from river.io.errors import Refusals
    from river.lang.types import Type


@frozen
class Files:
    """Several files as one input, in this order. `label`: what people call them; `format`: where suffixes do not tell."""

    paths: tuple[str, ...]
    label: str
    format: str | None = None


def files_of(spec: object) -> Files | None:
    """The files that a path names, if that is a folder or a pattern (`logs/*.csv`); None for one file, and for other data.

    Hidden files, whose names begin with `.` or `_`, are not among them.
    Raises: Rejected("data-missing-file") where there is none, ("data-unreadable").
    """
    if isinstance(spec, Files):
        return spec
    if not isinstance(spec, str | os.PathLike):
        return None
    path = os.fspath(cast("str | os.PathLike[str]", spec))
    try:
        if path.endswith("/") or os.path.isdir(path):  # noqa: PTH112 - which may be no name of a file
            found = [str(each) for each in Path(path).iterdir() if not hidden(each.name)]
            if inner := next((each for each in sorted(found) if Path(each).is_dir()), None):
                help_ = f"name its files: `{inner}/*`"
                raise Rejected(
                    [Diagnostic("data-unreadable", f"`{path}` holds the folder `{inner}`", help=help_)]
                )
        elif glob.has_magic(path) and not os.path.exists(path):  # noqa: PTH110 - the same
            matches = glob.glob(path, recursive=True)  # noqa: PTH207 - a path may be absolute
            found = [each for each in matches if not hidden(Path(each).name) and not Path(each).is_dir()]
        else:
            return None
    except (OSError, ValueError) as error:
        raise Rejected([unreadable(path, error)]) from error
    if not found:
        raise Rejected(
            [Diagnostic("data-missing-file", f"there is no file `{path}{'*' * path.endswith('/')}`")]
        )
    return Files(tuple(sorted(found)), path)


def hidden(name: str) -> bool:
    """Whether a file in a folder is none of its data by its name."""
    return name.startswith((".", "_"))


def open_several(
    files: Files,
    type_: Type,
    name: str,
    format_: str | None,
    refusals: Refusals,
    batch: int,
    by: str | None,
    lateness: int,
) -> ItemSource:
    """A source of the items of files, one after the other; the first is looked at now. See `sources.open_source`."""
    from river.io.sources import open_source

    files = evolve(files, format=format_ or files.format)

    def opened(path: str, key: str | None) -> ItemSource:
        return open_source(
            path, type_, name=name, format=files.format, on_error=refusals, batch=batch, by=key
        )

    def members() -> Iterator[ItemSource]:
        given: int | None = None
        for path in files.paths:
            member = opened(path, by)
            try:
                if member.ordering is not None:
                    member.ordering.top = member.ordering.given = given
                yield member
                given = given if member.ordering is None else member.ordering.given
            finally:
                member.close()

    first = opened(files.paths[0], by)
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
            for path in files.paths:
                member = opened(path, None)
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
