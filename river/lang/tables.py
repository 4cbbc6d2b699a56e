"""Parser tables kept on disk: building them from a grammar takes 0.3 s, reading them 20 ms.

The tables are JSON (lark's own cache is a pickle, which could run what somebody put there). A file's name is the hash of
all that the tables depend on; it appears by an atomic rename, and a damaged one is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMAT = 1


def cache_folder() -> Path:
    """Where River keeps what it can make again: `$RIVER_CACHE`, else `river` in the user's cache folder."""
    if named := os.environ.get("RIVER_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "river"


def own_folder(name: str) -> Path | None:
    """A folder in the cache that is the user's alone: for what is trusted. None where others may write to it."""
    folder = cache_folder() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stat = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (stat.st_uid != os.getuid() or stat.st_mode & 0o022):
        return None
    return folder


def keep(file: Path, content: bytes) -> None:
    """Makes a file of the cache appear whole, or not at all. Raises: OSError, and then nothing of it is left."""
    part = file.with_name(f".{file.name}.{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def evict(folder: Path, most: int) -> None:
    """Removes the older half of the files of a folder that has more than `most`."""
    with os.scandir(folder) as found:
        entries = list(found)
    if len(entries) > most:
        files = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
        for _, path in files[: len(files) // 2]:
            with suppress(OSError):  # another run may have done it
                os.unlink(path)  # noqa: PTH108 - as it was listed


@cache
def fingerprint(*packages: str) -> str:
    """What tells this version of River's packages from others: names, sizes and times of their files."""
    found = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)  # which does not import it
        if spec is None:
            continue
        files = (each for folder in spec.submodule_search_locations or () for each in _sources(folder))
        if spec.submodule_search_locations is None and spec.origin is not None:  # a module of one file
            files = ((spec.name, os.stat(spec.origin)),)  # noqa: PTH116 - as it is told
        for name, stat in files:
            found.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return found.hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    if not os.path.isdir(folder):  # noqa: PTH112 - as it is told
        yield _archive(folder)
        return
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(_SOURCES):
                yield entry.name, entry.stat()


def _archive(folder: str) -> tuple[str, os.stat_result]:
    """The file that a folder is in: of a package that is imported from a zip file, as Spark ships them."""
    place, inside = os.path.split(folder)
    while inside and not os.path.isfile(place):  # noqa: PTH113 - as it is told
        place, inside = os.path.split(place)
    return folder, os.stat(place)  # noqa: PTH116 - as it is told


_SOURCES = (".py", ".rt", ".lark", ".river")


def cached(grammar: str, start: tuple[str, ...], build: Callable[[], Any]) -> Any:
    """The `lark.Lark` of a grammar, from the cache if it can be read there, else built and kept."""
    import lark

    text = "\x00".join((str(FORMAT), lark.__version__, *start, grammar))
    file = cache_folder() / f"grammar-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError):
        return _load(json.loads(file.read_text(encoding="utf-8")))
    tables = build()
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        _store(file, tables)
    return tables


def _store(file: Path, tables: Any) -> None:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = tables.memo_serialize([TerminalDef, Rule])
    file.parent.mkdir(parents=True, exist_ok=True)
    keep(file, json.dumps({"data": data, "memo": memo}).encode())


def _load(kept: Any) -> Any:
    """The tables from their JSON, in which the keys that were numbers have become texts."""
    from lark import Lark

    load: Any = getattr(Lark, "load")  # noqa: B009 - its annotations are partial
    table = kept["data"]["parser"]["parser"]
    table["tokens"] = _numbered(table["tokens"])
    table["states"] = {state: _numbered(actions) for state, actions in _numbered(table["states"]).items()}
    return load({"data": kept["data"], "memo": _numbered(kept["memo"])})


def _numbered(mapping: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in mapping.items()}
