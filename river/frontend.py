"""The contract of a language: text to syntax to typed to Program (style: one arrow, one module)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source

Ast = TypeVar("Ast")
Typed = TypeVar("Typed")


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

    def warnings(self, typed: Any, /) -> tuple[Diagnostic, ...]:
        """See `Frontend`."""
        return getattr(typed, "remarks", ())

    def _arrow(self, verb: str) -> Any:
        return getattr(import_module(f"{self.package}.{verb}"), verb)
