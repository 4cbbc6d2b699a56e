"""Machine code kept on disk: a file's name is the hash of all that the code depends on, its first bytes that of its content.

The folder is the user's alone: code that somebody else could have put there is not run.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from river.lang.tables import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT: Final = "2"
MOST: Final = 4096
"""Files that are kept; when there are more, the older half goes."""

_DIGEST: Final = 32


def kept(parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
    """What `build` makes from `parts`, from the cache if it is there and whole, else built and kept."""
    name = hashlib.sha256("\x00".join((FORMAT, *parts)).encode()).hexdigest()
    folder = _folder()
    if folder is None:
        return build()
    file = folder / f"{name[:40]}.o"
    found = _read(file)
    if found is not None:
        return found
    made = build()
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        _write(file, made)
        _evict(folder)
    return made


def _folder() -> Path | None:
    """Where code is kept; None where there can be no such folder, or others may write to it."""
    folder = cache_folder() / "native"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stat = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (stat.st_uid != os.getuid() or stat.st_mode & 0o022):
        return None
    return folder


def _read(file: Path) -> bytes | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def _write(file: Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.{token_hex(4)}.part")
    part.write_bytes(hashlib.sha256(content).digest() + content)
    part.replace(file)


def _evict(folder: Path) -> None:
    with os.scandir(folder) as entries:
        files = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    if len(files) > MOST:
        for _, path in sorted(files)[: len(files) // 2]:
            with suppress(OSError):  # another run may have done it
                os.unlink(path)  # noqa: PTH108 - as it was listed
