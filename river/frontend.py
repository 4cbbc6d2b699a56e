"""The contract of a language: text to syntax to typed to Program (style: one arrow, one module)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypedDict, TypeVar

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.resources.abc import Traversable

    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source

Ast = TypeVar("Ast")
Typed = TypeVar("Typed")


@frozen
class CommandText:
    """A value as the text of a command line: its type is that of what it looks like."""

    text: str


class LanguageOptions(TypedDict, total=False):
    """What a user says, beside the text, of how a program is read. A language takes some of these, or none."""

    params: Mapping[str, str | float | bool | CommandText]
    """Values of the program's parameters."""
    undefined: Literal["stop", "skip"]
    """Whether what is undefined ends the record, or its statement alone."""
    zone: str
    """The time zone of times that name none, such as `America/Los_Angeles`."""
    env: Sequence[str]
    """The variables of the environment that the program may see."""
    load: Sequence[str]
    """The files that the program may read, under these names."""
    seed: int
    """With which random numbers begin."""
    decimals: int
    """How many digits behind the point floats are printed with, from 0 to 99; without it, the fewest that read back."""


class Frontend(Protocol[Ast, Typed]):
    """A source language. Registered under the entry-point group `river.frontends`.

    Paper: River section 3.5 (parser, type checker, code generator).
    """

    name: ClassVar[str]
    """The `--lang` value, also the namespace of its templates."""
    suffix: ClassVar[str]
    """The file suffix, with its dot."""

    @property
    def templates(self) -> tuple[Traversable, ...]:
        """Its `.river` template files."""
        ...

    def parse(self, source: Source, /) -> Ast:
        """Text to tree. Raises: Rejected with syntax errors."""
        ...

    def check(self, ast: Ast, /) -> Typed:
        """Tree to typed tree. Raises: Rejected with all errors at once."""
        ...

    # A language that makes one program of several texts, or lets the user choose which part of them is the program, has
    # `whole(asts, main)`, too: the one tree of all. One whose texts include files has `included(source)`: these files.
    # One that had texts before there was UTF-8 has `legacy`: how a text is read that is none.
    # One that takes `LanguageOptions` has `options`, the names of those, and `stated(source, options)`: the text that says them.
    # One whose typed programs are an algebra has `algebra(typed)`: its text, for people.

    def lower(self, typed: Typed, /) -> Program:
        """Typed tree to River IL: total, never fails on what `check` accepted."""
        ...

    def warnings(self, typed: Typed, /) -> tuple[Diagnostic, ...]:
        """What `check` accepted but people should know."""
        ...


class Language:
    """The base of a frontend whose modules have the usual names; they are imported from `package` when they are used.

    `parse.parse`, `check.check` and `lower.lower` are its arrows, `templates/*.river` its templates; what `check` makes may
    have `remarks`, which people should know.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    package: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()

    @property
    def templates(self) -> tuple[Traversable, ...]:
        """The template files, by name."""
        from importlib import resources  # archives and folders for a while come with it

        folder = resources.files(self.package) / "templates"
        files = (file for file in folder.iterdir() if file.name.endswith(".river"))
        return tuple(sorted(files, key=lambda file: file.name))

    def parse(self, source: Source, /) -> Any:
        """See `Frontend`."""
        return self._arrow("parse")(source)

    def check(self, ast: Any, /) -> Any:
        """See `Frontend`."""
        return self._arrow("check")(ast)

    def lower(self, typed: Any, /) -> Program:
        """See `Frontend`."""
        return self._arrow("lower")(typed)

    def stated(self, source: Source, options: LanguageOptions, /) -> Source:
        """See `Frontend`: `stated.stated`, which only a language with `options` has."""
        return import_module(f"{self.package}.stated").stated(source, options)

    def warnings(self, typed: Any, /) -> tuple[Diagnostic, ...]:
        """See `Frontend`."""
        return getattr(typed, "remarks", ())

    def _arrow(self, verb: str) -> Any:
        return getattr(import_module(f"{self.package}.{verb}"), verb)
