"""Syntax to typed: what the rows are after each step. All mistakes of a text are found at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from attrs import frozen

from river.diagnostics import Diagnostic, Rejected, closest
from river.lang import check as lang
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Declared, show

from . import syntax as y

if TYPE_CHECKING:
    from river.source import Span

SCOPE = lang.scope({"int": Declared((), s.TypeName("i64")), "float": Declared((), s.TypeName("f64"))})
"""The names that our texts may use besides River's own types."""


@frozen
class Typed:
    """A step, and the rows before and after it."""

    step: y.Step
    before: t.Record
    after: t.Record


@frozen
class Pipeline:
    """A checked text."""

    source: y.Source
    row: t.Record
    steps: tuple[Typed, ...]
    sink: y.Sink


def check(program: y.Program) -> Pipeline:
    """The pipeline with the type of every row. Raises: Rejected with `steps-*` and `lang-*` diagnostics."""
    errors: list[Diagnostic] = []
    if program.sink.name == program.source.name:
        message = f"`{program.sink.name}` is the source already"
        errors.append(Diagnostic("steps-same-name", message, program.sink.span, help="choose another name"))
    row: t.Record | None = None
    try:
        row = _row(lang.resolve(program.source.type, SCOPE), program.source.span)
    except Rejected as rejected:
        errors += rejected.diagnostics
    first, steps = row, list[Typed]()
    for step in program.steps:
        if row is None:
            break  # nobody knows what the fields are
        try:
            steps.append(Typed(step, row, _after(step, row)))
            row = steps[-1].after
        except Rejected as rejected:
            errors += rejected.diagnostics
            row = row if isinstance(step, y.Keep) else None
    if errors or first is None:
        raise Rejected(errors)
    return Pipeline(program.source, first, tuple(steps), program.sink)


def _after(step: y.Step, row: t.Record) -> t.Record:
    """The rows after a step."""
    match step:
        case y.Keep(condition):
            lang.expression(condition, dict(row.fields), SCOPE, t.BOOL)
            return row
        case y.Map(s.RecordValue() as made):
            return _row(lang.expression(made, dict(row.fields), SCOPE).type, made.span)
        case y.Map(other):
            raise _error("steps-map", "this makes no row", other.span, "write `map {name: value, ...}`")
        case y.Count(keys):
            return t.Record((*_keys(keys, row), ("count", t.I64)))
        case _:
            assert_never(step)


def _keys(keys: tuple[s.Name, ...], row: t.Record) -> tuple[tuple[str, t.Type], ...]:
    errors: list[Diagnostic] = []
    found: dict[str, t.Type] = {}
    for key in keys:
        type_ = row.field(key.name)
        if type_ is None:
            near = closest(key.name, [name for name, _ in row.fields])
            errors.append(Diagnostic("steps-unknown-field", f"no field `{key.name}`", key.span, help=near))
        elif key.name in found or key.name == "count":
            errors.append(Diagnostic("steps-twice", f"two fields `{key.name}`", key.span))
        elif not t.is_key(type_):
            errors.append(Diagnostic("steps-key", f"`{show(type_)}` cannot be counted by", key.span))
        else:
            found[key.name] = type_
    if errors:
        raise Rejected(errors)
    return tuple(found.items())


def _row(type_: t.Type | None, span: Span | None) -> t.Record:
    if not isinstance(type_, t.Record) or not t.is_item(type_):
        raise _error(
            "steps-row", "such rows cannot travel", span, "fields are plain values, lists or records"
        )
    return type_


def _error(code: str, message: str, span: Span | None, hint: str) -> Rejected:
    return Rejected([Diagnostic(code, message, span, help=hint)])
