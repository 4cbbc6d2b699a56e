"""Verified programs kept on disk: a text that has run before is neither parsed nor checked again, nor optimized.

A file is found by all that it depends on: the text, its name and language, and this version of River and of the language; after
the passes of a backend also by these, their version and the platform. It is JSON, of which only the classes of programs are
made, in a folder that is the user's alone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from river import plugins
from river.classes import frozen
from river.digests import sha256
from river.il.packing import NotPacked, packed, unpacked
from river.lang.tables import evict, fingerprint, keep, own_folder
from river.source import Source, Texts

if TYPE_CHECKING:
    from pathlib import Path

    from river.diagnostics import Diagnostic
    from river.il.graph import Graph
    from river.platform import Platform

MOST: Final = 256
"""Programs that are kept; when there are more, the older half goes."""


@frozen
class Stored:
    """What is kept of a program; see `river.driver.Compiled`."""

    graph: Graph
    warnings: tuple[Diagnostic, ...]
    lowered: bool
    remarks: tuple[Diagnostic, ...] = ()


@frozen
class ProgramFile:
    """The file of a program, which need not be there."""

    file: Path
    texts: Texts

    def read(self) -> Stored | None:
        """What is kept of the program; None if nothing is, or it cannot be read."""
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            data = json.loads(self.file.read_text(encoding="utf-8"))
            texts = (*self.texts.texts, *(Source(name, text) for name, text in data["sources"]))
            graph, warnings, lowered, remarks = unpacked(data["tree"], texts)
            return Stored(graph, warnings, lowered, remarks)
        return None

    def write(self, kept: Stored) -> None:
        """Keeps a program."""
        others: list[Source] = []
        with suppress(OSError, NotPacked):  # a cache that cannot be written is slow, not wrong
            tree = packed((kept.graph, kept.warnings, kept.lowered, kept.remarks), self.texts.texts, others)
            text = json.dumps({"sources": [[each.name, each.text] for each in others], "tree": tree})
            keep(self.file, text.encode())
            evict(self.file.parent, MOST)


def place(texts: Texts, passes: str | None = None, platform: Platform | None = None) -> ProgramFile | None:
    """Where a program is kept, after `passes` for a platform if there are any; None where there is no such place."""
    folder = own_folder("verified" if passes is None else "tuned")
    if folder is None:
        return None
    named = [part for text in texts.texts for part in (text.name, text.text)]
    parts = (
        fingerprint("river", *_packages(plugins.FRONTENDS)),
        texts.lang or "",
        texts.main or "",
        os.environ.get("TZ", ""),  # by which programs may tell times
        *named,
    )
    if passes is not None:
        parts = (*parts, fingerprint(*_packages(plugins.PASSES)), passes, repr(platform))
    name = sha256("\x00".join(parts).encode(errors="surrogateescape")).hexdigest()
    return ProgramFile(folder / f"{name[:40]}.json", texts)


def _packages(group: str) -> list[str]:
    """The packages that the plugins of a group are in."""
    return sorted({module.partition(".")[0] for module in plugins.modules(group)})
