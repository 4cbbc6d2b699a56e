"""Times as texts by a pattern, and back: what `to_char`, `date_format` and `strftime` write, each in signs of its own.

A pattern is written out in the query, so it is taken apart when the query is checked: what is left is a sum of texts.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def _number(part: str, width: int) -> Callable[[s.Expr], s.Expr]:
    """A part of a time as a number of at least so many digits."""

    def make(at: s.Expr) -> s.Expr:
        digits = s.Call("string", (s.Call(part, (at,)),))
        return digits if width == 1 else s.Call("cql.lpad", (digits, s.Int(width), s.String("0")))

    return make


def _of(expression: Callable[[s.Expr], s.Expr], width: int) -> Callable[[s.Expr], s.Expr]:
    """A number that is computed from a time, with leading zeros."""
    return lambda at: s.Call("cql.lpad", (s.Call("string", (expression(at),)), s.Int(width), s.String("0")))


def _named(part: str, names: tuple[str, ...], length: int | None = None) -> Callable[[s.Expr], s.Expr]:
    """A part of a time by its name."""
    listed = s.ListValue(tuple(s.String(name[:length]) for name in names))
    return lambda at: s.Index(listed, s.Binary("-", s.Call(part, (at,)), s.Int(1)))


def _half(at: s.Expr) -> s.Expr:
    return s.Binary(
        "+", s.Call("rem.trunc", (s.Binary("+", s.Call("hour", (at,)), s.Int(11)), s.Int(12))), s.Int(1)
    )


def _noon(at: s.Expr) -> s.Expr:
    return s.IfExpr(s.Binary("<", s.Call("hour", (at,)), s.Int(12)), s.String("AM"), s.String("PM"))


def _short(at: s.Expr) -> s.Expr:
    return s.Call("rem.trunc", (s.Call("year", (at,)), s.Int(100)))


def _millis(at: s.Expr) -> s.Expr:
    return s.Call("div.trunc", (s.Call("microsecond", (at,)), s.Int(1000)))


_PARTS: Mapping[str, Callable[[s.Expr], s.Expr]] = MappingProxyType(
    {
        "year": _number("year", 4), "month": _number("month", 2), "day": _number("day", 2), "hour": _number("hour", 2),
        "minute": _number("minute", 2), "second": _number("second", 2), "micros": _number("microsecond", 6),
        "millis": _of(_millis, 3), "short": _of(_short, 2), "half": _of(_half, 2), "noon": _noon,
        "yearday": _number("yearday", 3), "quarter": _number("cql.quarter", 1), "weekday": _number("weekday", 1),
        "Monday": _named("weekday", DAYS), "Mon": _named("weekday", DAYS, 3),
        "January": _named("month", MONTHS), "Jan": _named("month", MONTHS, 3),
        "day.1": _number("day", 1), "month.1": _number("month", 1), "hour.1": _number("hour", 1),
    }
)  # fmt: skip

SIGNS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "to_char": {
            "YYYY": "year", "YY": "short", "MM": "month", "DDD": "yearday", "DD": "day", "HH24": "hour", "HH12": "half",
            "HH": "half", "MI": "minute", "SS": "second", "MS": "millis", "US": "micros", "AM": "noon", "PM": "noon",
            "Month": "January", "Mon": "Jan", "Day": "Monday", "Dy": "Mon", "Q": "quarter", "ID": "weekday",
        },
        "date_format": {
            "yyyy": "year", "yy": "short", "MMMM": "January", "MMM": "Jan", "MM": "month", "M": "month.1", "dd": "day",
            "d": "day.1", "DDD": "yearday", "HH": "hour", "H": "hour.1", "hh": "half", "mm": "minute", "ss": "second",
            "SSSSSS": "micros", "SSS": "millis", "a": "noon", "EEEE": "Monday", "EEE": "Mon", "u": "weekday",
        },
        "strftime": {
            "%Y": "year", "%y": "short", "%m": "month", "%d": "day", "%H": "hour", "%I": "half", "%M": "minute",
            "%S": "second", "%f": "micros", "%g": "millis", "%p": "noon", "%j": "yearday", "%A": "Monday", "%a": "Mon",
            "%B": "January", "%b": "Jan", "%u": "weekday", "%-d": "day.1", "%-m": "month.1", "%-H": "hour.1",
        },
    }
)  # fmt: skip
"""What the signs of a pattern stand for, by the function whose pattern it is."""

_LITERAL: Mapping[str, str] = MappingProxyType(
    {"to_char": r'"([^"]*)"', "date_format": r"'((?:[^']|'')*)'", "strftime": "(?!)()"}
)
_LONG = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%%": "%"}


def formatted(function: str, at: s.Expr, pattern: str) -> s.Expr | str:
    """The text of a time; or, if the pattern has a sign that nothing stands for, that sign."""
    if function == "date_format" and "%" in pattern:
        function = "strftime"
    pieces: list[s.Expr] = []
    for sign, text in _signs(function, pattern):
        if sign is None:
            pieces.append(s.String(text))
        elif sign in _PARTS:
            pieces.append(_PARTS[sign](at))
        else:
            return text
    whole: s.Expr = s.String("")
    for piece in _joined(pieces):
        whole = piece if whole == s.String("") else s.Binary("+", whole, piece)
    return whole


def _signs(function: str, pattern: str) -> Iterator[tuple[str | None, str]]:
    """The parts of a pattern: what a sign stands for (nothing: the empty text), or None for a text; and the sign or the text."""
    signs = SIGNS[function]
    if function == "strftime":
        pattern = pattern.replace("%F", _LONG["%F"]).replace("%T", _LONG["%T"])
    longest = sorted(signs, key=len, reverse=True)
    unknown = r"|(?P<odd>%.?)" if function == "strftime" else r"|(?P<odd>[A-Za-z]+)"
    known = "|".join(map(re.escape, longest))
    reader = re.compile(
        rf"{_LITERAL[function]}|(?P<plain>%%)|(?P<sign>{known}){unknown}|(?P<other>.)", re.DOTALL
    )
    for found in reader.finditer(pattern):
        if found["sign"]:
            yield signs[found["sign"]], found["sign"]
        elif found["odd"]:
            yield "", found["odd"]
        else:
            yield None, found["other"] or ("%" if found["plain"] else (found[1] or "").replace("''", "'"))


_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "year": "\ue001" * 4, "month": "\ue002" * 2, "day": "\ue003" * 2, "hour": "\ue004" * 2, "minute": "\ue005" * 2,
        "second": "\ue006" * 2, "millis": "\ue007" * 3, "micros": "\ue007" * 6, "Jan": "\ue008" * 3,
    }
)  # fmt: skip
"""The characters that stand for the digits, or letters, of a part of a time in the shape of a text (`cql.time_like`)."""


def shape(pattern: str) -> tuple[str, str | None]:
    """The shape of the texts that a pattern of any of the functions means, and the first sign that cannot be read so."""
    oracle = any(sign in pattern for sign in ("YYYY", "HH24", "MI", "DD"))
    function = "strftime" if "%" in pattern else "to_char" if oracle else "date_format"
    found = ""
    for sign, text in _signs(function, pattern):
        if sign is not None and sign not in _PLACES:
            return found, text
        found += text if sign is None else _PLACES[sign]
    return found, None


def named(at: s.Expr, sign: str) -> s.Expr:
    """The part of a time that a sign of `strftime` stands for."""
    return _PARTS[SIGNS["strftime"][sign]](at)


def _joined(pieces: list[s.Expr]) -> list[s.Expr]:
    """The pieces, texts that follow each other as one."""
    found: list[s.Expr] = []
    for piece in pieces:
        match found[-1:], piece:
            case [s.String(before)], s.String(text):
                found[-1] = s.String(before + text)
            case _:
                found.append(piece)
    return found
