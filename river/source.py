"""A program text and places in it."""

from __future__ import annotations

import os
from bisect import bisect_right
from functools import cached_property
from importlib import import_module
from typing import Any

from river.classes import field, frozen


@frozen(slots=False)
class Source:
    """A named text: a file, an argument, or a template.

    `name` is what messages print before the colon (a path, or `<query>`).
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets at which lines begin; the first is 0."""
        return (0, *(i + 1 for i, c in enumerate(self.text) if c == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both counted from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


def packaged(package: str, name: str) -> Source:
    """The text of the file `name` of a package, which may be in an archive.

    `importlib.resources` takes 8 ms to be there: only packages without `__init__.py` need it, whose loaders read no files.
    """
    spec: Any = import_module(package).__spec__
    path = os.path.join(spec.submodule_search_locations[0], name)  # noqa: PTH118 - what loaders take
    if hasattr(spec.loader, "get_data"):
        data = spec.loader.get_data(path)
    else:
        from importlib.resources import files

        file = files(package) / name
        path, data = str(file), file.read_bytes()
    return Source(path, data.decode().replace("\r\n", "\n"))


@frozen
class Texts:
    """The texts of a program. `lang`: what the user said of the language; `main`: which part of the texts is the program."""

    texts: tuple[Source, ...]
    lang: str | None = None
    main: str | None = None


@frozen
class Span:
    """The characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other` (of the same source)."""
        return Span(self.source, self.start, other.end)

    def __contains__(self, other: Span) -> bool:
        return self.source == other.source and self.start <= other.start and other.end <= self.end

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]
