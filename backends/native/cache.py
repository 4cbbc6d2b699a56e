"""Machine code kept on disk: a file's name is the hash of all that the code depends on, its first bytes that of its content.

The folder is the user's alone: code that somebody else could have put there is not run.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from river.lang.tables import evict, keep, own_folder

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
    folder = own_folder("native")
    if folder is None:
        return build()
    file = folder / f"{name[:40]}.o"
    found = _read(file)
    if found is not None:
        return found
    made = build()
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        keep(file, hashlib.sha256(made).digest() + made)
        evict(folder, MOST)
    return made


def _read(file: Path) -> bytes | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None
