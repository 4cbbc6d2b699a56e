"""River-CQL: continuous queries over streams and relations (paper sections 3.1 to 3.3, Figure 3 b).

Nouns: `syntax` (what a text says), `typed` (windows, relational algebra, stream operators). Verbs: `parse`, `assume` (sources
that are not declared), `check`, `lower`. The operators are templates, in `templates/*.river`, namespace `cql`.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from frontends.cql import syntax, typed
    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source


class Cql:
    """The frontend of River-CQL. Its modules are imported when they are used."""

    name: ClassVar[str] = "cql"
    suffix: ClassVar[str] = ".cql"

    @property
    def templates(self) -> tuple[Traversable, ...]:
        folder = resources.files("frontends.cql") / "templates"
        files = (file for file in folder.iterdir() if file.name.endswith(".river"))
        return tuple(sorted(files, key=lambda file: file.name))

    def parse(self, source: Source, /) -> syntax.Program:
        from frontends.cql.parse import parse

        return parse(source)

    def check(self, ast: syntax.Program, /) -> typed.Program:
        from frontends.cql.check import check

        return check(ast)

    def lower(self, typed: typed.Program, /) -> Program:
        from frontends.cql.lower import lower

        return lower(typed)

    def warnings(self, typed: typed.Program, /) -> tuple[Diagnostic, ...]:
        return typed.remarks


FRONTEND = Cql()
