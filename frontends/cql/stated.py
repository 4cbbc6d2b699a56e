"""Values of a program's parameters, said in its text."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

from river.diagnostics import Diagnostic, Rejected
from river.frontend import CommandText
from river.source import Source

if TYPE_CHECKING:
    from river.frontend import LanguageOptions


def stated(source: Source, options: LanguageOptions) -> Source:
    """The text of a program with values of its parameters behind it, as it says them itself.

    Raises: Rejected("usage") for a name that is none, and for a value that the language has not.
    """
    said: list[str] = []
    for name, value in options.get("params", {}).items():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
            raise Rejected([Diagnostic("usage", f"parameter `{name}`: this is no name")])
        said.append(f"\nparam {name} = {_literal(name, value)};")
    return Source(source.name, source.text + "".join(said))


def _literal(name: str, value: object) -> str:
    """A value as the text of a program; a `CommandText` is what it looks like: a number, a truth, a time, else a text."""
    match value:
        case CommandText(text):
            number = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
            plain = re.fullmatch(
                rf"(?i){number}|true|false|(timestamp|date|interval)\s*'[^']*'(\s*[a-z]+)?", text
            )
            return text if plain else _quoted(text)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if isfinite(value):
            return repr(value)
        case str():
            return _quoted(value)
        case _:
            message = f"parameter `{name}`: {value!r} is no value of the language"
            hint = "a text, a finite number or a truth"
            raise Rejected([Diagnostic("usage", message, help=hint)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
