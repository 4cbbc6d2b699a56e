"""Paths into texts of JSON, such as `$.user.tags[0]`: the steps that `cql.json_at` goes."""

from __future__ import annotations

import re

from river.lang import syntax as s

NAMES = frozenset(
    {
        "json_value", "json_query", "json_extract", "json_extract_string", "json_extract_scalar", "get_json_object",
        "extractjsonfield",
    }
)  # fmt: skip
"""Functions of a text and a path, as engines call them."""

_STEP = re.compile(r"""\.(\w+)|\."([^"]*)"|\['([^']*)'\]|\["([^"]*)"\]|\[(\d{1,9})\]""")


def steps(path: str) -> tuple[str, ...] | None:
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


def at(text: s.Expr, path: tuple[str, ...]) -> s.Expr:
    """The value there, as a text that may be none."""
    return s.Call("cql.json_at", (text, s.ListValue(tuple(map(s.String, path)))))
