"""Outputs that are folders of files: what a run brings to one appears whole, or not at all.

The files of a run are written to a hidden folder, under names that no other attempt has: by one process, or by many, of which
those files are taken that `adopt` names. When the run has ended well they come to their place in one step: a new folder gets its
name, an old one changes places with it, one file is moved. Several files that are added to a folder are moved one by one; if the
process is killed meanwhile, the next one that writes there moves the rest. It also removes what was never complete. Who writes
late finds no folder to write to.

Files are called `part-RUN-NUMBER-ID`: sorted by name they stand run by run, and of each run in the order of its rows. They
may be in folders of the folder, which `river.io.partitions` names by values of columns.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from river.classes import define, field
from river.diagnostics import Diagnostic, Note, Rejected
from river.io.atomic import AtomicOutput, settle_folder
from river.io.errors import unwritable
from river.io.suffixes import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Mode = Literal["error", "overwrite", "append"]
MODES: Final = get_args(Mode)
"""What becomes of a folder that holds something: the run is refused, what it holds is replaced, or more is added to it."""

FORMATS: Final = {
    "parquet": "parquet",
    "arrow": "arrow",
    "csv": "csv",
    "tsv": "tsv",
    "jsonl": "jsonl",
    "text": "txt",
}
"""Formats of the files in folders, and their suffixes."""

_PART: Final = re.compile(r"part-(\d+)-\d+-[0-9a-f]{8}\.\w+")
_ESCAPED: Final = re.compile(
    r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
)  # those that Spark and Hive escape, and NUL
_WHOLE, _OLD = "whole", "old"
_AT: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE


def is_folder(target: object) -> bool:
    """Whether an output that goes to `target` is a folder of files: a path with a slash behind it, or to a folder."""
    if not isinstance(target, str | os.PathLike):
        return False
    path = os.fspath(cast("str | os.PathLike[str]", target))
    return path.endswith("/") or os.path.isdir(path)  # noqa: PTH112 - which may be no name of a file


def format_in(folder: str, stated: str | None, name: str) -> str:
    """The format of the files in the folder of output `name`: as stated, or as its suffix says, or Parquet.

    Raises: Rejected("data-format").
    """
    found = stated or SUFFIXES.get(Path(folder).suffix.lower(), "parquet")
    if found not in FORMATS:
        message = f"output `{name}`: the files of a folder cannot be `{found}`"
        raise Rejected([Diagnostic("data-format", message, help=f"use {', '.join(FORMATS)}")])
    return found


@define(eq=False)
class Partitions:
    """A folder `root` where rows get folders by the columns `by`; `files`: the complete ones, with their numbers of rows.

    `named`: gives the files' names, but for suffixes; then they are written in place, else each appears when it is complete.
    """

    root: str
    format: str
    by: tuple[str, ...]
    files: list[tuple[str, int]] = field(factory=list[tuple[str, int]])
    named: Callable[[], str] | None = None


class FolderOutput(AtomicOutput):
    """The bytes of a file of its own in a folder, or instead of it files that others write to `staging`.

    `by`: columns that name the folders of files, which then are those of others only.

    Raises: Rejected("data-folder") for a folder that may not get them, ("data-output").
    """

    def __init__(self, target: str, format_: str, mode: Mode, by: tuple[str, ...] = ()) -> None:
        self.by = by
        self.format = format_
        self.folder = target
        self.mode: Mode = mode
        self._adopted: list[str] | None = None
        self._lock: int | None = None
        if "://" in target:
            raise Rejected([_elsewhere(target)])
        try:
            self._place = Path(os.path.realpath(target))
            self._inside = mode == "append" and self._place.is_dir()
            self._clear()
            self._check()
            home = self._place if self._inside else self._place.parent
            self.staging = home / f".{self._place.name}.{os.urandom(8).hex()}.part"
            self.staging.mkdir()
            self._lock = os.open(self.staging, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # of a system without locks, where nobody takes it for stale
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, ValueError) as error:
            self._release()
            raise Rejected([unwritable(target, error)]) from error
        try:
            super().__init__(str(self.staging / f"own.{FORMATS[format_]}"))
        except BaseException:
            self._release()
            raise
        self.label = target

    @property
    def adds(self) -> bool:
        """Whether files are added to what the folder holds."""
        return self._inside

    def adopt(self, files: Iterable[tuple[str, int]]) -> None:
        """Takes files in `staging` with their numbers of rows, in this order, in place of its own; empty ones only if all are."""
        found = list(files)
        full = [path for path, rows in found if rows]
        self._adopted = full if full or self.by else [path for path, _ in found[:1]] or None

    def close(self) -> None:
        """The run has ended well: its files come to their place. Raises: Rejected("data-folder", "data-output")."""
        if self._lock is None:
            return
        if self._adopted is None and not self.by:
            super().close()
            files = [str(self.staging / f"own.{FORMATS[self.format]}")]
        else:
            super().abort()
            files = self._adopted or []
        try:
            self._commit(files)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # as it was not when the run began
                raise Rejected([_exists(self.folder)]) from error
            raise Rejected([unwritable(self.folder, error)]) from error
        finally:
            self._release()

    def abort(self) -> None:
        """Gives the run's files up: the folder stays what it was. Nothing happens after `close`."""
        super().abort()
        self._release()

    def _release(self) -> None:
        """Removes what is hidden; what has begun to come to its place goes on."""
        if self._lock is not None:
            with suppress(OSError):
                _ended(self.staging, self._place)
            os.close(self._lock)
            self._lock = None

    # -- before

    def _clear(self) -> None:
        """Does away with what processes that are no more have left, and ends what they had begun to move."""
        hidden = re.compile(rf"\.{re.escape(self._place.name)}\.[0-9a-f]{{16}}\.part")
        for home in (self._place.parent, self._place):
            with suppress(FileNotFoundError, NotADirectoryError):
                for name in filter(hidden.fullmatch, _names(home)):
                    with suppress(OSError):
                        _cleared(home / name, self._place)

    def _check(self) -> None:
        """Raises: Rejected("data-folder") for a folder that must not get the files."""
        place = self._place
        if place.exists() and not place.is_dir():
            message = f"`{self.folder}` is a file, and the output is a folder of files"
            raise Rejected(
                [Diagnostic("data-folder", message, help="leave the slash out, or name another one")]
            )
        if not place.is_dir() or not _names(place):
            return
        match self.mode:
            case "error":
                raise Rejected([_exists(self.folder)])
            case "overwrite":
                if strangers := list(_strangers(place)):
                    message = (
                        f"`{self.folder}` holds more than files of data, and would be replaced as a whole"
                    )
                    notes = tuple(Note(f"such as `{name}`") for name in strangers[:3])
                    help_ = "name another folder, or remove it yourself"
                    raise Rejected([Diagnostic("data-folder", message, notes=notes, help=help_)])
            case "append":
                if (other := _unlike(place, self.by)) is not None:
                    raise Rejected([_divided_otherwise(self.folder, self.by, other)])

    # -- behind

    def _commit(self, files: Sequence[str]) -> None:
        """Moves files to their place. Raises: OSError."""
        run = 0
        if self._inside:
            inside = self._place.rglob("part-*") if self.by else self._place.iterdir()
            found = (_PART.fullmatch(path.name) for path in inside)
            run = max((int(match[1]) + 1 for match in found if match), default=0)
        made, whole = self.staging / "made", self.staging / _WHOLE
        made.mkdir()
        id_ = os.urandom(4).hex()
        for number, file in enumerate(files):
            name = f"part-{run:05d}-{number:05d}-{id_}.{FORMATS[self.format]}"
            staged = self.staging / file
            home = made / staged.parent.relative_to(self.staging)
            if home != made:
                home.mkdir(parents=True, exist_ok=True)
            staged.rename(home / name)
        _settle(made)
        made.rename(whole)
        if self._inside:
            settle_folder(self.staging)
            _moved(whole, self._place)
        elif self.mode == "overwrite" and self._place.is_dir():
            _exchanged(whole, self._place, self.staging / _OLD)
        else:
            whole.rename(self._place)
        settle_folder(self._place.parent)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _elsewhere(target: str) -> Diagnostic:
    message = f"`{target}` is no folder of a file system"
    return Diagnostic("data-folder", message, help="mount it, or let Spark write a DataFrame (`on_spark`)")


def _exists(folder: str) -> Diagnostic:
    message = f"there is a folder `{folder}` already, and it holds something"
    help_ = "`--mode append` adds files to it, `--mode overwrite` replaces them"
    return Diagnostic("data-folder", message, help=help_)


def _divided_otherwise(target: str, by: Sequence[str], other: str) -> Diagnostic:
    wanted = f"by {', '.join(f'`{each}`' for each in by)}" if by else "by no columns"
    message = f"`{target}` holds files that are divided otherwise than {wanted}"
    help_ = "name another folder, or `--mode overwrite` replaces them"
    return Diagnostic("data-folder", message, notes=(Note(f"such as `{other}`"),), help=help_)


def escaped(text: str) -> str:
    """A column's name, or a value, as part of the name of a folder."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _unlike(folder: Path, by: Sequence[str]) -> str | None:
    """What in a folder is not where files divided by columns are: readers find no columns for both. None if nothing is."""
    for name in _names(folder):
        if name.startswith(".") or (name.startswith("_") and "=" not in name):
            continue
        column, equals, _ = name.partition("=")
        divided = bool(equals) and (folder / name).is_dir()
        if divided != bool(by) or (by and column != escaped(by[0])):
            return name
        if by and (inner := _unlike(folder / name, by[1:])) is not None:
            return f"{name}/{inner}"
    return None


def _strangers(folder: Path) -> Iterator[str]:
    """What in a folder is no file such as writers of folders leave, also in folders that are named by values."""
    for name in _names(folder):
        path = folder / name
        if "=" in name and path.is_dir() and not path.is_symlink():
            yield from (f"{name}/{inner}" for inner in _strangers(path))
        elif not _is_data(path):
            yield name


def _is_data(path: Path) -> bool:
    """Whether that is a file such as writers of folders leave."""
    if not path.is_file() or path.is_symlink():
        return False
    suffixes = {suffix.lower() for suffix in path.suffixes}
    return not suffixes.isdisjoint(SUFFIXES) or path.name.startswith("_") or path.suffix == ".crc"


def _cleared(hidden: Path, place: Path) -> None:
    """Ends what somebody who is no more has left. Raises: OSError, also where somebody is at it."""
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _ended(hidden, place)
    finally:
        os.close(lock)


def _ended(hidden: Path, place: Path) -> None:
    """Brings to its place what has begun to come there, and removes the rest. Raises: OSError."""
    if hidden.parent == place and (hidden / _WHOLE).is_dir():
        _moved(hidden / _WHOLE, place)
    elif (hidden / _OLD).is_dir() and not place.exists():
        (hidden / _OLD).rename(place)
    from shutil import rmtree

    rmtree(hidden, ignore_errors=True)


def _moved(whole: Path, place: Path) -> None:
    """Moves all files of a folder, and of those in it, to another one. Raises: OSError."""
    for name in _names(whole):
        if (whole / name).is_dir():
            (place / name).mkdir(exist_ok=True)
            _moved(whole / name, place / name)
        else:
            (whole / name).rename(place / name)
    settle_folder(place)


def _settle(folder: Path) -> None:
    """Brings the names in a folder, and in those in it, to the disk. Raises: OSError."""
    for name in _names(folder):
        if (folder / name).is_dir():
            _settle(folder / name)
    settle_folder(folder)


def _exchanged(new: Path, place: Path, old: Path) -> None:
    """Puts a folder in the place of another one, in one step where the system can do that. Raises: OSError."""
    rename = _renameat2()
    if rename is not None and rename(_AT, os.fsencode(new), _AT, os.fsencode(place), _EXCHANGE) == 0:
        return
    place.rename(old)
    new.rename(place)


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """The function `renameat2`, where there is one."""
    try:
        function: Any = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
