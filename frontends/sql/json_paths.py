"""Texts of JSON are read by paths such as `$.user.tags[0]`: the steps that `cql.json_at` goes, and the calls that ask for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from frontends.sql.values import spelled, strip
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions
    from frontends.sql.values import Found

NAMES = frozenset(
    {
        "json_value", "json_query", "json_extract", "json_extract_string", "json_extract_scalar", "get_json_object",
        "extractjsonfield",
    }
)  # fmt: skip
"""Functions of a text and a path, as engines call them."""

_STEP = re.compile(r"""\.(\w+)|\."([^"]*)"|\['([^']*)'\]|\["([^"]*)"\]|\[(\d{1,9})\]""")


def _steps(path: str) -> tuple[str, ...] | None:
    """The steps of a path; None if it is none, or asks for several values."""
    at, found = 0, list[str]()
    text = path.removeprefix("lax ").removeprefix("strict ").strip()
    if not text.startswith("$"):
        return None
    text = text[1:]
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        name = next((part for part in step.groups()[:4] if part is not None), None)
        found.append(f"#{int(step[5])}" if name is None else f".{name}")
        at = step.end()
    return tuple(found)


def step(name: s.Expr) -> str | None:
    """The step that a name, or a number counted from 0, stands for where it is written out."""
    match name:
        case s.String(text):
            return f".{text}"
        case s.Int(number):
            return f"#{number}"
        case _:
            return None


def _at(text: s.Expr, path: tuple[str, ...]) -> s.Expr:
    """The value there, as a text that may be none."""
    return s.Call("cql.json_at", (text, s.ListValue(tuple(map(s.String, path)))))


def read(over: RowExpressions, value: s.Expr, path: tuple[s.Expr, ...], expr: s.Call) -> Found:
    """The value at a path of a text of JSON."""
    match path:
        case (s.String(text),) if (path_steps := _steps(text)) is not None:
            return stepped(over, value, path_steps, expr)
        case _:
            return stepped(over, value, (None,), expr)


def stepped(over: RowExpressions, value: s.Expr, steps: tuple[str | None, ...], expr: s.Call) -> Found:
    """The value at the end of steps into a text of JSON."""
    found, path = over.find(value), tuple(step for step in steps if step is not None)
    if len(path) < len(steps):
        message = "a path into JSON is written out, and leads to one value"
        raise over.report.error(
            "sql-json-path", message, expr.span, "write `json_value(x, '$.user.tags[0]')`"
        )
    if strip(found.type) != t.STRING:
        message = f"JSON is read from a text, this is `{spelled(found.type)}`"
        help_line = "fields of records are read by their path: `x.user.id`"
        raise over.report.error("sql-function-operands", message, expr.span, help_line)
    return over.lifted((found,), lambda parts: evolve(_at(parts[0], path), span=expr.span), expr)
