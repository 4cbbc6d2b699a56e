"""What options take with a unit: durations and sizes of memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Number = TypeVar("Number", int, float)


class Quantity(click.ParamType[Number]):
    """A number and a unit, which `read` takes apart; None if it is none. `such_as`: what to write instead."""

    def __init__(self, name: str, such_as: str, read: Callable[[str], Number | None]) -> None:
        self.name = name
        self.such_as = such_as
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Number:
        found = self.read(value)
        if found is None:
            name = self.name.lower()
            self.fail(
                f"`{value}` is no {name}: write a number and a unit, such as {self.such_as}", param, ctx
            )
        return found


def _seconds(text: str) -> float | None:
    from river.io.scalars import Mismatch, parse_duration

    try:
        micros = parse_duration(re.sub(r"(?<=\d)m$", "min", text))
    except Mismatch:
        return None
    return None if micros < 0 else micros / 1_000_000


DURATION: Final = Quantity[float]("DURATION", "500ms, 10s, 5min", _seconds)
"""A duration as in data, and `m` for minutes. Units: seconds."""

_MOST: Final = (1 << 62) - 1  # more than any machine has, and what the system takes
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kmgt])(i?b)?|b)?", re.IGNORECASE)


def _bytes(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    number, unit, power = found.groups()
    step = 1000 if power and power.lower() == "b" else 1024
    return int(min(float(number) * step ** (" kmgt".index(unit.lower()) if unit else 0), _MOST))


SIZE: Final = Quantity[int]("SIZE", "500M, 2G, 1.5GiB", _bytes)
"""A size of memory. Units: bytes; `500M` and `500MiB` are 500 times 1024 squared bytes, `500MB` 500 times 1000 squared."""
