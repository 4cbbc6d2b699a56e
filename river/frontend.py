"""The contract of a language: text to syntax to typed to Program (style: one arrow, one module)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

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

    def lower(self, typed: Typed, /) -> Program:
        """Typed tree to River IL: total, never fails on what `check` accepted."""
        ...

    def warnings(self, typed: Typed, /) -> tuple[Diagnostic, ...]:
        """What `check` accepted but people should know."""
        ...
