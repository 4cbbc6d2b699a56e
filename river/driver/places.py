"""What a command reads and writes, so that nothing that it reads is overwritten, and no two outputs go to one file.

A place is a regular file, told apart by its device and inode, whatever links lead to it, or a folder with the files that it
holds or gains later. Pipes, terminals and devices take what comes and are no places.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from river.classes import field, frozen
from river.diagnostics import Diagnostic, Note, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from river.driver.job import Job

Identity = tuple[object, ...]
"""Device and inode of a file; of one that is not there yet, those of its folder, and its name."""


@frozen
class Endpoint:
    """Something that is read or written: a path, or an open file; `option` is how it was asked for.

    `takes`: of a folder, the names of files that are read or written in it, now or later. `whole`: of an input, it is read
    to its end before the outputs appear; of an output, it appears whole, beside what was there.
    """

    option: str
    target: object
    takes: Callable[[str], bool] | None = None
    whole: bool = False
    identity: Identity | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "identity", _identity(self.target, folder=self.takes is not None))


def check_places(read: Iterable[Endpoint], written: Iterable[Endpoint], *, in_place: bool = False) -> None:
    """Checks that what is written is none of what is read, and that no two outputs go to the same file.

    `in_place`: a whole output may take the place of an input that is read as a whole.
    Raises: Rejected("data-overwrite"), ("data-output").
    """
    inputs, outputs = list(read), list(written)
    errors: list[Diagnostic] = []
    for i, one in enumerate(outputs):
        errors += [
            _overwritten(one, other)
            for other in inputs
            if _meet(one, other) and not (in_place and one.whole and other.whole)
        ]
        errors += [_shared(other, one) for other in outputs[:i] if _meet(one, other)]
    if errors:
        raise Rejected(errors)


def _shared(one: Endpoint, other: Endpoint) -> Diagnostic:
    message = f"{one.option} and {other.option} go to the same place"
    return Diagnostic("data-output", message, notes=_links(one, other), help="name a file for each")


def _overwritten(written: Endpoint, read: Endpoint) -> Diagnostic:
    if written.takes is not None or read.takes is not None:
        message = f"{written.option} and {read.option}: what is written would be read, or overwritten"
    else:
        message = f"{written.option} would overwrite {read.option}"
    help_ = "name another file"
    if written.whole and read.whole:
        help_ += "; `--in-place` replaces the input when the run has ended well"
    return Diagnostic("data-overwrite", message, notes=_links(written, read), help=help_)


def _links(one: Endpoint, other: Endpoint) -> tuple[Note, ...]:
    """Where two paths look different and lead to the same file."""
    paths = [each.target for each in (one, other)]
    if one.takes is not None or other.takes is not None or not all(isinstance(p, str) for p in paths):
        return ()
    names = [os.path.normpath(str(path)) for path in paths]
    return () if names[0] == names[1] else (Note(f"`{paths[0]}` and `{paths[1]}` are the same file"),)


def _meet(one: Endpoint, other: Endpoint) -> bool:
    """Whether two places are the same, or one is a file that the other, a folder, takes."""
    if one.identity is None or other.identity is None:
        return False
    if one.identity == other.identity:
        return True
    if (one.takes is None) == (other.takes is None):
        return False
    folder, file = (one, other) if one.takes is not None else (other, one)
    return _holds(folder, file)


def _holds(folder: Endpoint, file: Endpoint) -> bool:
    """Whether a folder takes a file, by its name or through a link in it."""
    takes, target = folder.takes, file.target
    if takes is None:
        return False
    if isinstance(target, str):
        final = Path(os.path.realpath(target))
        if takes(final.name) and _identity(str(final.parent), folder=True) == folder.identity:
            return True
    try:
        with os.scandir(cast("str", folder.target)) as entries:
            device = os.stat(cast("str", folder.target)).st_dev  # noqa: PTH116 - a path may be no `Path`
            for entry in entries:
                if not takes(entry.name):
                    continue
                # only links need to be followed: a folder may hold very many files
                found = _identity(entry.path) if entry.is_symlink() else (device, entry.inode())
                if found == file.identity:
                    return True
    except (OSError, ValueError):  # who opens it says what is wrong
        return False
    return False


def _identity(target: object, *, folder: bool = False) -> Identity | None:
    """What tells a place from others; None where there is none."""
    try:
        if not isinstance(target, str):
            found = os.fstat(cast("Any", target).fileno())
            return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
        try:
            found = os.stat(target)  # noqa: PTH116 - `Path` would drop a slash at the end
        except FileNotFoundError:
            final = Path(os.path.realpath(target))
            return _identity(str(final.parent), folder=True), final.name
        wanted = stat.S_ISDIR(found.st_mode) if folder else stat.S_ISREG(found.st_mode)
    except (OSError, ValueError, AttributeError):  # who opens it says what is wrong
        return None
    return (found.st_dev, found.st_ino) if wanted else None


# ------------------------------------------------------------------------------------------------ jobs


def check_job(job: Job) -> None:
    """The same for all that a job reads and writes. Raises: Rejected."""
    inputs = [place for name, spec in job.inputs.items() for place in _inputs(name, spec, job)]
    read = [*inputs, *job.read, *extern_places(job.options.externs)]
    live = job.live is not None or job.checkpoint is not None
    if live and job.in_place:
        message = "`--in-place` is for runs that end before their outputs appear, and this one writes them as it goes"
        raise Rejected([Diagnostic("usage", message, help="name another file")])
    written = [_output(name, target, live=live) for name, target in job.outputs.items() if target is not None]
    for option, path in (("on-error dead-letter=", job.on_error.path), ("metrics ", job.metrics)):
        if path is not None:
            written.append(Endpoint(f"`--{option}{_shown(path)}`", _target(path)))
    if job.checkpoint is not None:
        from river.checkpoint import is_kept

        folder = job.checkpoint.folder
        written.append(Endpoint(f"`--checkpoint {_shown(folder)}`", _target(folder), is_kept))
    check_places(read, [*written, *job.written], in_place=job.in_place)


def program_place(name: str, target: object = None) -> Endpoint:
    """The text of a program: the file `name`, or the open file `target`."""
    return Endpoint(f"the program `{name}`", name if target is None else target)


def extern_places(externs: Mapping[str, object]) -> tuple[Endpoint, ...]:
    """The files of the Python modules whose functions operators may call, which have been imported."""
    modules = {name.partition(":")[0] for name in externs}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules)}
    return tuple(Endpoint(f"`--extern {name}`", file) for name, file in files.items() if file is not None)


def _inputs(name: str, spec: object, job: Job) -> Iterator[Endpoint]:
    """What an input reads: a file, or several."""
    from river.io.several import files_of

    files = files_of(spec)
    for each in [spec] if files is None else files.paths:
        place = _input(name, each, job)
        if place is not None:
            yield place


def _input(name: str, spec: object, job: Job) -> Endpoint | None:
    from river.io.live import Follow, in_folder

    if isinstance(spec, Follow):
        folder = spec.path.endswith("/") or Path(spec.path).is_dir()
        takes = in_folder(spec.format or job.formats.get(name)) if folder else None
        return Endpoint(f"`--in {name}={spec.path}`", spec.path, takes)
    if not isinstance(spec, str | os.PathLike) and not callable(getattr(spec, "fileno", None)):
        return None  # of DataFrames of Spark Connect any attribute is a column
    path = _target(cast("object", spec))
    return Endpoint(f"`--in {name}={_shown(path)}`", path, whole=job.live is None)


def _output(name: str, target: object, *, live: bool) -> Endpoint:
    from river.io.folders import is_folder

    takes = _everything if is_folder(target) else None
    return Endpoint(f"`--out {name}={_shown(target)}`", _target(target), takes, whole=not live)


def _everything(_name: str) -> bool:
    return True


def _shown(target: object) -> str:
    path = _target(target)
    name = path if isinstance(path, str) else getattr(path, "name", None)
    return str(name) if isinstance(name, str) and name not in ("<stdin>", "<stdout>") else "-"


def _target(target: object) -> object:
    return os.fspath(cast("os.PathLike[str]", target)) if isinstance(target, os.PathLike) else target
