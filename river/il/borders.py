"""What the annotations of inputs and outputs say: where the data are, and how many items a steady state takes or gives.

`@File("in/noise.bin", "raw")`, `@Printed()` and `@Steady(first, each)`; all others are kept and printed. Steady states: il.md P9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from river.diagnostics import Diagnostic, Rejected
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.il.program import Annotation, Input, Output


@frozen
class Border:
    """What is known of an input or output.

    `path`: where it is unless the user says otherwise, in `format`. `printed`: its texts are one text, for people.
    `steady`: items at the start, before the first steady state, and in each steady state.
    """

    path: str | None = None
    format: str | None = None
    printed: bool = False
    steady: tuple[int, int] | None = None

    def items(self, iterations: int) -> int | None:
        """How many items there are in so many steady states; None where that is not known."""
        return None if self.steady is None else self.steady[0] + self.steady[1] * iterations


WANTS: Final = {
    "File": "a path and a format, as texts",
    "Printed": "no arguments",
    "Steady": "two whole numbers: items at the start and in each steady state",
}


def border(decl: Input | Output) -> Border:
    """What the annotations of `decl` say. Raises: Rejected("il-annotation-argument")."""
    found = Border()
    errors: list[Diagnostic] = []
    for annotation in decl.annotations:
        known = _read(annotation, found)
        if known is None:
            message = f"`@{annotation.name}` wants {WANTS[annotation.name]}"
            errors.append(Diagnostic("il-annotation-argument", message, annotation.span))
        else:
            found = known
    if errors:
        raise Rejected(errors)
    return found


def _read(annotation: Annotation, before: Border) -> Border | None:
    """What is known with one annotation more; None where its arguments are wrong."""
    match annotation.name, annotation.args:
        case "File", (s.String(path), s.String(format_)):
            return evolve(before, path=path, format=format_)
        case "Printed", ():
            return evolve(before, printed=True)
        case "Steady", (s.Int(first), s.Int(each)):
            return evolve(before, steady=(first, each))
        case name, _:
            return None if name in WANTS else before
