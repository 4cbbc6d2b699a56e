"""What the annotations of inputs and outputs say: where the data are, and how many items a steady state takes or gives.

`@File("in/noise.bin", "raw")`, `@Once()`, `@Lines()`, `@Whole()`, `@Stamp(f)`, `@Printed()`, `@Errors()`, `@Sent("file")`,
`@Index(n)` and `@Steady(first, each)`; all others are kept and printed. Steady states: il.md P9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.il.program import Input, Output
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.il.program import Annotation

Stream = Literal["stdout", "stderr"]
"""Where a program prints."""

Sent = Literal["file", "proc"]
"""Where rows go that say themselves where: to files, or to commands."""


@frozen
class Border:
    """What is known of an input or output.

    `path`: where it is unless the user says otherwise, in `format`. `once`: without data it has one item, which is empty.
    `lines`: its items are the lines of files of texts as they are, whatever their suffixes say.
    `whole`: it has one item, the list of all rows of its data. `stamp`: the function of the program that makes the first
    field, its key, of the others.
    `printed`: its texts are one text, for people, on this stream. `errors`: each row is an error of the run. `sent`: each row is
    the name of a file, or a command, and bytes for it. `index`: how many of the first fields of a row are an index, and how many
    deviations stand behind a row, which is exact.
    `steady`: items at the start, before the first steady state, and in each steady state.
    """

    path: str | None = None
    format: str | None = None
    once: bool = False
    lines: bool = False
    whole: bool = False
    stamp: str | None = None
    printed: Stream | None = None
    errors: bool = False
    sent: Sent | None = None
    index: tuple[int, int] = (0, 0)
    steady: tuple[int, int] | None = None

    def items(self, iterations: int) -> int | None:
        """How many items there are in so many steady states; None where that is not known."""
        return None if self.steady is None else self.steady[0] + self.steady[1] * iterations


WANTS: Final = {
    "File": "a path and a format, as texts",
    "Once": "no arguments, at an input of texts or bytes",
    "Lines": "no arguments, at an input of bytes",
    "Whole": "no arguments, at an input of lists",
    "Stamp": "a function, at an input with a key",
    "Printed": 'no arguments, or "stderr"',
    "Errors": "no arguments",
    "Sent": '"file" or "proc", at an output of a text and bytes',
    "Index": "how many of the first fields are an index, and how many deviations stand behind",
    "Steady": "two whole numbers: items at the start and in each steady state",
}


def border(decl: Input | Output) -> Border:
    """What the annotations of `decl` say. Raises: Rejected("il-annotation-argument")."""
    found = Border()
    errors: list[Diagnostic] = []
    for annotation in decl.annotations:
        known = _read(annotation, found, decl)
        if known is None:
            message = f"`@{annotation.name}` wants {WANTS[annotation.name]}"
            errors.append(Diagnostic("il-annotation-argument", message, annotation.span))
        else:
            found = known
    if errors:
        raise Rejected(errors)
    return found


def _names_places(decl: Input | Output) -> bool:
    """Whether items are a text and bytes."""
    match decl.type:
        case s.RecordType((s.FieldType(_, s.TypeName("string")), s.FieldType(_, s.TypeName("bytes")))):
            return not isinstance(decl, Input)
        case _:
            return False


def _read(annotation: Annotation, before: Border, decl: Input | Output) -> Border | None:
    """What is known with one annotation more; None where its arguments are wrong."""
    match annotation.name, annotation.args:
        case "File", (s.String(path), s.String(format_)):
            return evolve(before, path=path, format=format_)
        case "Once", () if isinstance(decl, Input) and decl.type in (
            s.TypeName("string"),
            s.TypeName("bytes"),
        ):
            return evolve(before, once=True)
        case "Lines", () if isinstance(decl, Input) and decl.type == s.TypeName("bytes"):
            return evolve(before, lines=True)
        case "Stamp", (s.Name(name),) if isinstance(decl, Input) and decl.by is not None:
            return evolve(before, stamp=name)
        case "Whole", () if (
            isinstance(decl, Input) and isinstance(decl.type, s.TypeName) and decl.type.name == "list"
        ):
            return evolve(before, whole=True)
        case "Printed", ():
            return evolve(before, printed="stdout")
        case "Printed", (s.String("stderr"),):
            return evolve(before, printed="stderr")
        case "Errors", ():
            return evolve(before, errors=True)
        case "Sent", (s.String("file" | "proc" as word),) if _names_places(decl):
            return evolve(before, sent="file" if word == "file" else "proc")
        case "Index", (s.Int(count), *more) if isinstance(decl, Output) and isinstance(
            decl.type, s.RecordType
        ):
            fits = count <= len(decl.type.fields)
            match more:
                case []:
                    return evolve(before, index=(count, 0)) if fits else None
                case [s.Int(exact)]:
                    return evolve(before, index=(count, exact)) if fits else None
                case _:
                    return None
        case "Steady", (s.Int(first), s.Int(each)):
            return evolve(before, steady=(first, each))
        case name, _:
            return None if name in WANTS else before
