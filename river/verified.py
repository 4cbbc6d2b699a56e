"""Verified programs kept on disk: a text that has run before is neither parsed nor checked again.

A file is found by all that it depends on: the text, its name and language, and this version of River and of the language.
It is JSON, of which only the classes of programs are made, in a folder that is the user's alone.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from attrs import frozen

from river import plugins
from river.il.packing import NotPacked, packed, unpacked
from river.lang.tables import evict, fingerprint, keep, own_folder
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from river.diagnostics import Diagnostic
    from river.il.graph import Graph

MOST: Final = 256
"""Programs that are kept; when there are more, the older half goes."""


@frozen
class Kept:
    """What is kept of a program; see `river.driver.Compiled`."""

    graph: Graph
    warnings: tuple[Diagnostic, ...]
    lowered: bool


@frozen
class Place:
    """The file of a program, which need not be there."""

    file: Path

    def read(self, texts: Sequence[Source]) -> Kept | None:
        """What is kept of the program with these texts; None if nothing is, or it cannot be read."""
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            data = json.loads(self.file.read_text(encoding="utf-8"))
            sources = (*texts, *(Source(name, text) for name, text in data["sources"]))
            graph, warnings, lowered = unpacked(data["tree"], sources)
            return Kept(graph, warnings, lowered)
        return None

    def write(self, texts: Sequence[Source], kept: Kept) -> None:
        """Keeps a program."""
        others: list[Source] = []
        with suppress(OSError, NotPacked):  # a cache that cannot be written is slow, not wrong
            tree = packed((kept.graph, kept.warnings, kept.lowered), tuple(texts), others)
            text = json.dumps({"sources": [[each.name, each.text] for each in others], "tree": tree})
            keep(self.file, text.encode())
            evict(self.file.parent, MOST)


def place(texts: Sequence[Source], lang: str | None, main: str | None = None) -> Place | None:
    """Where a program is kept; None where there is no such place. `main`: what the user chose of the texts."""
    folder = own_folder("verified")
    if folder is None:
        return None
    languages = sorted({module.partition(".")[0] for module in plugins.modules(plugins.FRONTENDS)})
    named = [part for text in texts for part in (text.name, text.text)]
    parts = (fingerprint("river", *languages), lang or "", main or "", *named)
    name = hashlib.sha256("\x00".join(parts).encode(errors="surrogateescape")).hexdigest()
    return Place(folder / f"{name[:40]}.json")
