"""Machine code kept on disk: a file's name is the hash of all that the code depends on, its first bytes that of its content.

The folder is the user's alone: code that somebody else could have put there is not run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from river.digests import sha256
from river.lang.tables import evict, keep, own_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT: Final = "3"
MOST: Final = 4096
"""Files that are kept; when there are more, the older half goes."""

_DIGEST: Final = 32


def kept(parts: tuple[str, ...], build: Callable[[], bytes]) -> bytes:
    """What `build` makes from `parts`, from the cache if it is there and whole, else built and kept."""
    return kept_as(name_of(parts), build)


def kept_as(name: str, build: Callable[[], bytes]) -> bytes:
    """What is kept by a name, if it is whole, else what `build` makes, which is kept."""
    there = found_as(name)
    if there is not None:
        return there
    made, file = build(), _file(name)
    if file is not None:
        with suppress(OSError):  # a cache that cannot be written is slow, not wrong
            keep(file, sha256(made).digest() + made)
            evict(file.parent, MOST)
    return made


def found(parts: tuple[str, ...]) -> bytes | None:
    """What was built from `parts`, if it is in the cache and whole."""
    return found_as(name_of(parts))


def found_as(name: str) -> bytes | None:
    """What is kept by a name, if it is whole."""
    file = _file(name)
    return None if file is None else _read(file)


def there(name: str) -> bool:
    """Whether anything is kept by a name."""
    file = _file(name)
    return file is not None and file.exists()


def noted(parts: tuple[str, ...]) -> float:
    """The sum of what was noted of `parts`."""
    file = _file(name_of(parts))
    try:
        return 0.0 if file is None else float(file.with_suffix(".s").read_text())
    except (OSError, ValueError):
        return 0.0


def note(parts: tuple[str, ...], number: float) -> None:
    """Adds to what is noted of `parts`."""
    file = _file(name_of(parts))
    if file is not None:
        with suppress(OSError):
            keep(file.with_suffix(".s"), str(noted(parts) + number).encode())


def name_of(parts: tuple[str, ...]) -> str:
    """By what name that is kept which was built from `parts`."""
    return sha256("\x00".join((FORMAT, *parts)).encode()).hexdigest()[:40]


def _file(name: str) -> Path | None:
    folder = own_folder("native")
    return None if folder is None else folder / f"{name}.o"


def _read(file: Path) -> bytes | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if sha256(content).digest() == data[:_DIGEST] else None
