"""River-StreamIt: graphs of filters with fixed rates, C-like code, and functions of the operator language.

Nouns: `syntax` (what a text says), `typed` (declarations with types, and the graph). Verbs: `parse`, `check` (with `code`,
`elaborate`, `rates`, `balance`), `lower` (with `operators`, `translate`). Paper: River section 3.3, Figure 3 (e) and (f).
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from frontends.streamit import syntax, typed
    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source


class StreamIt:
    """The frontend of River-StreamIt. Its modules are imported when they are used."""

    name: ClassVar[str] = "streamit"
    suffix: ClassVar[str] = ".str"

    @property
    def templates(self) -> tuple[Traversable, ...]:
        folder = resources.files("frontends.streamit") / "templates"
        files = (file for file in folder.iterdir() if file.name.endswith(".river"))
        return tuple(sorted(files, key=lambda file: file.name))

    def parse(self, source: Source, /) -> syntax.Program:
        from frontends.streamit.parse import parse

        return parse(source)

    def check(self, ast: syntax.Program, /) -> typed.Program:
        from frontends.streamit.check import check

        return check(ast)

    def lower(self, typed: typed.Program, /) -> Program:
        from frontends.streamit.lower import lower

        return lower(typed)

    def warnings(self, typed: typed.Program, /) -> tuple[Diagnostic, ...]:
        return typed.remarks


FRONTEND = StreamIt()
