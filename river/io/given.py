"""Columns that stand in the names of folders: of `year=2026/month=11/part-0.parquet` each row has the year 2026 and the month 11.

So Hive and Spark divide files, and `river.io.partitions` does. The files have the other columns only; if one of them has such
a column all the same, the name of its folder counts, as it does for Spark.
"""

from __future__ import annotations

from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, Any, Final

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.cells import cell_parser
from river.io.scalars import Mismatch, is_scalar
from river.io.schema import columns
from river.io.several import NULL
from river.lang.scope import show
from river.lang.types import BYTES, FLOATS, UNIT, Optional, Record, Type
from river.lang.values import NAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from river.io.batches import Batch, ItemSource, RowReader
    from river.io.several import Files, Folders

_FLOATS: Final = {"NaN": NAN, "Infinity": inf, "-Infinity": -inf}


def names_folders(type_: Type) -> bool:
    """Whether values of a type can be in the name of a folder."""
    inner = type_.inner if isinstance(type_, Optional) else type_
    return is_scalar(inner) and inner not in (BYTES, UNIT)


def given(type_: Type, folders: Folders, path: str) -> dict[str, Any]:
    """The values that the folders of a file say, of the columns of `type_`. Raises: Rejected("data-partition")."""
    fields = dict(type_.fields) if isinstance(type_, Record) else {}
    found: dict[str, Any] = {}
    for name, text in folders:
        if name not in fields:
            continue
        if name in found:
            raise _refused(path, f"its folders say the column `{name}` twice", "remove one of them")
        found[name] = _value(name, fields[name], text, path)
    if found and len(found) == len(fields):
        help_ = "read one more column, which is in the files"
        raise _refused(path, "all columns that are read stand in the names of folders", help_)
    return found


def _value(name: str, type_: Type, text: str | None, path: str) -> Any:
    """What the name of a folder says. Raises: Rejected("data-partition")."""
    inner = type_.inner if isinstance(type_, Optional) else type_
    if not names_folders(type_):
        help_ = "such columns have texts, numbers, truth values, times or durations"
        raise _refused(
            path, f"the column `{name}` is in the name of a folder, which says no `{show(type_)}`", help_
        )
    if text is None:
        if isinstance(type_, Optional):
            return None
        message = f"`{name}={NULL}` says that there is no value, and `{name}` is not optional"
        raise _refused(path, message, f"declare it as `{show(Optional(type_))}`, or leave that folder out")
    if not text:
        raise _refused(path, f"`{name}=` says no value", f"call the folder `{name}={NULL}` if there is none")
    if inner in FLOATS and text in _FLOATS:
        return _FLOATS[text]
    try:
        return cell_parser(inner)(text)
    except Mismatch as mismatch:
        help_ = mismatch.help or "rename the folder, or declare the column otherwise"
        raise _refused(path, f"`{name}={text}`: {mismatch.reason}", help_) from mismatch


def _refused(path: str, message: str, help_: str | None = None) -> Rejected:
    return Rejected([Diagnostic("data-partition", message, place=path, help=help_)])


def check_given(type_: Type, files: Files) -> None:
    """Checks what the folders of all files say: of the same columns of `type_`, a value of their types.

    Raises: Rejected("data-partition").
    """
    first: tuple[str, dict[str, Any]] | None = None
    for path, folders in files.each():
        found = given(type_, folders, path)
        other, known = first = first or (path, found)
        if found.keys() != known.keys():
            name = min(found.keys() ^ known.keys())
            lacks, says = (other, path) if name in found else (path, other)
            message = f"no folder of it says the column `{name}`, as one of `{says}` does"
            raise _refused(lacks, message, "files of one input have the same columns in the names of folders")


def without(type_: Type, given: Mapping[str, Any]) -> Type:
    """The type of what stands in the files themselves."""
    if not given or not isinstance(type_, Record):
        return type_
    return Record(tuple(field for field in type_.fields if field[0] not in given))


@frozen(eq=False)
class Filled:
    """The rules for rows of a text, to which the columns `given` are added; `inner`: for what stands there."""

    inner: RowReader
    type: Type
    given: Mapping[str, Any]

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """See `RowReader`."""
        return _whole(self.inner.rows(texts, lines), self.type, self.given)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """See `RowReader`."""
        return (_whole(batch, self.type, self.given) for batch in self.inner.rest(blocks, line))


def _whole(batch: Batch, type_: Type, given: Mapping[str, Any]) -> Batch:
    """A batch with all columns of `type_`."""
    count, cells = len(batch.items), iter([*zip(*batch.items, strict=True)])
    full = [repeat(given[name], count) if name in given else next(cells, ()) for name, _ in columns(type_)]
    return evolve(batch, items=[*zip(*full, strict=True)])


def filled(source: ItemSource, type_: Type, given: Mapping[str, Any], size: int) -> ItemSource:
    """The items of a source with the columns that are given: items of `type_`, in batches of `size`."""
    if not given:
        return source
    file = source.file
    if file is not None:
        file = evolve(file, type=type_, reader=Filled(file.reader, type_, given))
    from river.io import columnar

    if isinstance(source.batches, columnar.Tables):
        batches = columnar.filled(source.batches, type_, given, size)
    else:
        batches = (_whole(batch, type_, given) for batch in source.batches)
    found = source.derived(type_, batches, file)
    found.regular = source.regular
    return found
