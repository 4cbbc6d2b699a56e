"""Machine code kept on disk: a file's name is the hash of all that the code depends on, its first bytes that of its content."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from river.lang.tables import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT: Final = "1"
_DIGEST: Final = 32


def kept(parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
    """What `build` makes from `parts`, from the cache if it is there and whole, else built and kept."""
    name = hashlib.sha256("\x00".join((FORMAT, *parts)).encode()).hexdigest()
    file = cache_folder() / f"native-{name[:40]}.o"
    found = _read(file)
    if found is not None:
        return found
    made = build()
    with suppress(OSError):  # a cache that cannot be written is slow, not wrong
        _write(file, made)
    return made


def _read(file: Path) -> bytes | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{token_hex(4)}.part")
    part.write_bytes(hashlib.sha256(content).digest() + content)
    part.replace(file)
