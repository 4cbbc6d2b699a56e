"""River-Sawzall: a program for each record, and tables that gather what it emits (paper section 3.3, Figure 3 d).

Nouns: `syntax` (what a text says), `typed` (names resolved, types known), `operations` (operators and functions), `tables`
(kinds of tables). Verbs: `parse`, `check` (with `expressions`, `names`), `lower` (with `body`, `reduce`). The reducers are
templates, in `templates/*.river`, namespace `sawzall`.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from frontends.sawzall import syntax, typed
    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source


class Sawzall:
    """The frontend of River-Sawzall. Its modules are imported when they are used."""

    name: ClassVar[str] = "sawzall"
    suffix: ClassVar[str] = ".szl"

    @property
    def templates(self) -> tuple[Traversable, ...]:
        folder = resources.files("frontends.sawzall") / "templates"
        files = (file for file in folder.iterdir() if file.name.endswith(".river"))
        return tuple(sorted(files, key=lambda file: file.name))

    def parse(self, source: Source, /) -> syntax.Program:
        from frontends.sawzall.parse import parse

        return parse(source)

    def check(self, ast: syntax.Program, /) -> typed.Program:
        from frontends.sawzall.check import check

        return check(ast)

    def lower(self, typed: typed.Program, /) -> Program:
        from frontends.sawzall.lower import lower

        return lower(typed)

    def warnings(self, typed: typed.Program, /) -> tuple[Diagnostic, ...]:
        return ()


FRONTEND = Sawzall()
