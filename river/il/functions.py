"""Functions of the operator language that lowered programs call: those that a language has in files of its own."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from river.il.trees import walk
from river.lang import syntax as s
from river.source import packaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from river.source import Source


class FunctionFiles:
    """The functions in files of a package, each of which begins a line with `fn`. They are read when they are first asked for."""

    def __init__(self, package: str, files: tuple[str, ...]) -> None:
        """`files`: in the order in which programs have their functions."""
        self._package = package
        self._names = files
        self._read: dict[str, s.Fn] = {}

    @cached_property
    def _files(self) -> tuple[Source, ...]:
        return tuple(packaged(self._package, name) for name in self._names)

    @cached_property
    def _places(self) -> Mapping[str, tuple[Source, int, int]]:
        """The file that each function is in, and where it begins and ends there."""
        places: dict[str, tuple[Source, int, int]] = {}
        for file in self._files:
            found = list(re.finditer(r"^fn (\w+)", file.text, re.MULTILINE))
            ends = [*(each.start() for each in found[1:]), len(file.text)]
            places |= {each[1]: (file, each.start(), end) for each, end in zip(found, ends, strict=True)}
        return places

    @property
    def names(self) -> tuple[str, ...]:
        """Those of all functions."""
        return tuple(self._places)

    def function(self, name: str) -> s.Fn:
        """A function, which is all that is read of its file: to read all of them would take longer than most programs do."""
        if name not in self._read:
            self._read[name] = _function(*self._places[name])
        return self._read[name]

    def called(self, nodes: Iterable[s.Node]) -> Iterator[str]:
        """The names of functions that trees call, as often as they do."""
        for part in (part for node in nodes for part in walk(node)):
            if isinstance(part, s.Call) and part.function in self._places:
                yield part.function

    def needed(self, names: Iterable[str]) -> tuple[s.Fn, ...]:
        """Functions, and those that they call, in the order of the files."""
        wanted: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name not in wanted:
                wanted.add(name)
                left += self.called([self.function(name)])
        return tuple(self.function(name) for name in self._places if name in wanted) if wanted else ()


def _function(file: Source, begin: int, end: int) -> s.Fn:
    from river.il.packing import kept_part

    def parsed() -> s.Fn:
        from river.il.parse import parse_part  # the grammar is built only where there is text

        (decl,) = parse_part(file, begin, end)
        assert isinstance(decl, s.Fn)  # noqa: S101 - it begins as one
        return decl

    return kept_part(file, begin, end, (), parsed)
