"""Entry points and versions as the files beside installed packages tell them.

`importlib.metadata` says the same, but its import and its look at every distribution take as long as a small run; it is
asked where something else than folders is on the path.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution, EntryPoint

_SUFFIXES: Final = (".dist-info", ".egg-info")


@frozen
class Entry:
    """An entry point of a distribution, whose metadata lie in `folder`."""

    name: str
    value: str
    folder: str

    @property
    def module(self) -> str:
        """The module that it is in."""
        return self._parts[0]

    @property
    def dist(self) -> Distribution:
        """The distribution that offers it."""
        from importlib.metadata import Distribution

        return Distribution.at(self.folder)

    def load(self) -> Any:
        """What it names. Raises: ImportError, AttributeError."""
        module, attribute = self._parts
        found = import_module(module)
        return reduce(getattr, attribute.split("."), found) if attribute else found

    @property
    def _parts(self) -> tuple[str, str]:
        module, _, attribute = self.value.partition("[")[0].partition(":")
        return module.strip(), attribute.strip()


def entries(*groups: str) -> dict[str, tuple[Entry | EntryPoint, ...]]:
    """The entry points of groups; of distributions of one name the first one on the path counts."""
    folders = _folders()
    if folders is None:
        return {group: _asked(group) for group in groups}
    found: dict[str, list[Entry]] = {group: [] for group in groups}
    for folder in folders.values():
        for group, entry in _read(folder, groups):
            found[group].append(entry)
    return {group: tuple(each) for group, each in found.items()}


def version(name: str) -> str:
    """The version of an installed distribution. Raises: importlib.metadata.PackageNotFoundError."""
    folder = (_folders() or {}).get(_normal(name))
    for file in ("METADATA", "PKG-INFO") if folder is not None else ():
        with suppress(OSError, UnicodeDecodeError), open(f"{folder}/{file}", encoding="utf-8") as text:  # noqa: PTH123 - as above
            for line in text:
                if line.startswith("Version:"):
                    return line.partition(":")[2].strip()
    from importlib import metadata

    return metadata.version(name)


def _folders() -> dict[str, str] | None:
    """The metadata of each distribution on the path, by its name; None where something else than folders is there."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return None
    folders: dict[str, str] = {}
    for path in sys.path:
        try:
            with os.scandir(path or ".") as found:
                for each in found:
                    if each.name.endswith(_SUFFIXES):
                        name = each.name.rpartition(".")[0].partition("-")[0]
                        folders.setdefault(_normal(name), each.path)
        except NotADirectoryError:  # an archive
            return None
        except OSError:
            continue
    return folders


def _asked(group: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _normal(name: str) -> str:
    """What names of one distribution have in common (PEP 503)."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _read(folder: str, groups: tuple[str, ...]) -> Iterator[tuple[str, Entry]]:
    """The entry points of a distribution, with their groups."""
    text = ""
    with suppress(OSError, UnicodeDecodeError), open(f"{folder}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123 - a hundred of them
        text = file.read()
    if not any(f"[{group}]" in text for group in groups):
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section in groups and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield section, Entry(name.strip(), value.strip(), folder)
