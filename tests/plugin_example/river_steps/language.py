"""The frontend of Steps. Its modules are imported when they are used: start-up counts."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from river.diagnostics import Diagnostic
    from river.il.program import Program
    from river.source import Source

    from . import check, syntax


class Steps:
    """What the entry point names: three arrows, a name and a suffix."""

    name: ClassVar[str] = "steps"
    suffix: ClassVar[str] = ".steps"

    @property
    def templates(self) -> tuple[Traversable, ...]:
        return (resources.files("river_steps").joinpath("steps.river"),)

    def parse(self, source: Source, /) -> syntax.Program:
        from .parse import parse

        return parse(source)

    def check(self, ast: syntax.Program, /) -> check.Pipeline:
        from .check import check

        return check(ast)

    def lower(self, typed: check.Pipeline, /) -> Program:
        from .lower import lower

        return lower(typed)

    def warnings(self, typed: check.Pipeline, /) -> tuple[Diagnostic, ...]:
        return ()


FRONTEND = Steps()
