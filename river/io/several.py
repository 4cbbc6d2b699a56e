"""Inputs that are several files: a folder, or all whose names match a pattern, sorted by path; `chained` reads them.

Folders that are called `COLUMN=VALUE` say a column of the files in them (`given`).
"""

from __future__ import annotations

import glob
import os
import re
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

Folders = tuple[tuple[str, str | None], ...]
"""The columns that names of folders say, and their texts; None where there is no value."""

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The text that says there is none."""

_NUMBER: Final = re.compile(r"(?<==)([0-9]+)(?=/)")
_DIGITS: Final = 40


@frozen
class Files:
    """Several files as one input, in this order. `label`: what people call them; `format`: where suffixes do not tell.

    `folders`: the columns that the names of their folders say, of each file; empty where there are none.
    """

    paths: tuple[str, ...]
    label: str
    format: str | None = None
    folders: tuple[Folders, ...] = ()

    def each(self) -> Iterator[tuple[str, Folders]]:
        """The files, with these columns."""
        return zip(self.paths, self.folders or repeat(()), strict=False)


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
            found, begin = list(_inside(Path(path), path)), len(Path(path).parts)
        elif glob.has_magic(path) and not os.path.exists(path):  # noqa: PTH110 - the same
            matches = glob.glob(path, recursive=True)  # noqa: PTH207 - a path may be absolute
            found = [each for each in matches if not hidden(Path(each).name) and not Path(each).is_dir()]
            begin = _stated(path)
        else:
            return None
    except (OSError, ValueError) as error:
        raise Rejected([unreadable(path, error)]) from error
    if not found:
        raise Rejected(
            [Diagnostic("data-missing-file", f"there is no file `{path}{'*' * path.endswith('/')}`")]
        )
    found.sort(key=_place)
    folders = [_columns(each, begin) for each in found]
    return Files(tuple(found), path, None, tuple(folders) if any(folders) else ())


def _inside(folder: Path, label: str) -> Iterator[str]:
    """The files in a folder, and in those in it that are called by columns. Raises: Rejected("data-unreadable"); OSError."""
    for each in sorted(folder.iterdir()):
        if hidden(each.name):
            continue
        if not each.is_dir():
            yield str(each)
        elif column_of(each.name) is not None:
            yield from _inside(each, label)
        else:
            help_ = f"name its files: `{each}/*`"
            message = f"`{label}` holds the folder `{each}`"
            raise Rejected([Diagnostic("data-unreadable", message, help=help_)])


def _stated(pattern: str) -> int:
    """How many parts of a pattern come before those that may say columns: the last ones before its first star are such."""
    parts = PurePosixPath(pattern).parts
    here = next((n for n, part in enumerate(parts) if glob.has_magic(part)), 0)
    while here and column_of(parts[here - 1]) is not None:
        here -= 1
    return here


def _columns(path: str, begin: int) -> Folders:
    """The columns that the folders of a file say, from a part of its path on."""
    return tuple(filter(None, map(column_of, PurePosixPath(path).parts[begin:-1])))


def fixed(place: str) -> str:
    """The folder of a folder or pattern below which the names of folders say columns."""
    parts = PurePosixPath(place).parts
    return str(PurePosixPath(*parts[: _stated(place) if glob.has_magic(place) else len(parts)]))


def said(place: str, path: str) -> Folders:
    """The columns that the folders of a file say, which was found in a folder, or by a pattern."""
    return _columns(path, len(PurePosixPath(fixed(place)).parts))


def _place(path: str) -> tuple[str, str]:
    """By what files are sorted: the path, in which whole numbers that folders say have an order of their own."""
    return _NUMBER.sub(lambda found: found[1].zfill(_DIGITS), path), path


def column_of(folder: str) -> tuple[str, str | None] | None:
    """The column in the name of a folder, and its text; None for any other folder."""
    name, equals, text = folder.partition("=")
    if not equals or not name:
        return None
    return _unescaped(name), None if text == NULL else _unescaped(text)


def _unescaped(text: str) -> str:
    """What a name means in which signs are written as `%` and two hexadecimal digits for each byte."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text, errors="surrogateescape")


def hidden(name: str) -> bool:
    """Whether a file in a folder is none of its data by its name."""
    return name.startswith((".", "_"))
