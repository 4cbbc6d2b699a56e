r"""Regular expressions (RE2's syntax: river/lang/patterns.py). Positions count code points.

A search is linear in the text; `re_replace` makes one after each match, so that a pattern that reads on beyond its
match, as `(a*b)?`, may take the square here; machine code finds all matches in linear time (`runtime/matches.rt`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.lang import types as t
from river.lang.operations.effects import PURE
from river.lang.operations.table import Operation, fixed, plain
from river.lang.patterns import BadPattern, Regex, compile_pattern
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.lang.automata.machine import Found


def _regex(pattern: str) -> Regex:
    try:
        return compile_pattern(pattern)
    except BadPattern as bad:
        raise TrapSignal("bad-regex", pattern, str(bad)) from bad


def _test(regex: Regex, text: str) -> bool:
    machine = regex.machine
    return machine.test(machine.program.read(text.encode()))


def _search(regex: Regex, data: bytes) -> Found | None:
    machine = regex.machine
    return machine.search(data, machine.program.read(data))


def _strings(regex: Regex, text: str) -> list[str]:
    data = text.encode()
    found = _search(regex, data) or ()
    return [_part(data, found, group) for group in range(len(found) // 2)]


def _part(data: bytes, found: Found, group: int) -> str:
    """The text of a group; empty if it took no part."""
    start, end = found[2 * group : 2 * group + 2]
    return data[start:end].decode() if start <= end else ""


def _positions(regex: Regex, text: str) -> list[int]:
    data = text.encode()
    found = _search(regex, data) or ()
    if text.isascii():
        return list(found)
    return [at if at < 0 else len(data[:at].decode()) for at in found]


def _replace(regex: Regex, text: str, replacement: str) -> str:
    r"""All matches replaced; `\0` to `\9` stand for the match and its groups, `\\` for a backslash."""
    pieces = _pieces(regex, replacement)
    data = text.encode()
    parts: list[str] = []
    done = 0
    for found in _matches(regex, data):
        parts.append(data[done : found[0]].decode())
        parts += [piece if isinstance(piece, str) else _part(data, found, piece) for piece in pieces]
        done = found[1]
    return "".join([*parts, data[done:].decode()])


def _matches(regex: Regex, data: bytes) -> Iterator[Found]:
    """The matches from left to right. Where an empty one was, the next is not empty; one may follow another at once."""
    machine = regex.machine
    symbols = machine.program.read(data)
    at, empty = 0, True
    while (found := machine.search(data, symbols, at, empty=empty)) is not None:
        yield found
        at, empty = found[1], found[0] != found[1]


def _pieces(regex: Regex, replacement: str) -> list[str | int]:
    """A replacement as texts and numbers of groups."""
    literal, *rest = replacement.split("\\")
    found: list[str | int] = [literal]
    escapes = iter(rest)
    for piece in escapes:
        digit = piece[:1]
        if piece == "" and (following := next(escapes, None)) is not None:  # two backslashes
            found.append("\\" + following)
        elif digit.isascii() and digit.isdigit() and int(digit) <= regex.groups:
            found += [int(digit), piece[1:]]
        else:
            raise TrapSignal("bad-regex", replacement, f"bad reference `\\{digit}`")
    return found


OPERATIONS: tuple[Operation, ...] = (
    Operation("regex", fixed((t.STRING,), t.REGEX), plain(_regex), "the pattern in a text, in RE2's syntax",
        ("bad-regex",), "host", effect=PURE),
    Operation("re_test", fixed((t.REGEX, t.STRING), t.BOOL), plain(_test),
        "whether the pattern occurs in the text", effect=PURE),
    Operation(
        "re_strs", fixed((t.REGEX, t.STRING), t.List(t.STRING)), plain(_strings),
        "the first match and its groups (empty where a group took no part); empty without a match",
        effect=PURE,
    ),
    Operation(
        "re_find", fixed((t.REGEX, t.STRING), t.List(t.I64)), plain(_positions),
        "start and end of the first match and of its groups (-1 where a group took no part); empty without a match",
        effect=PURE,
    ),
    Operation(
        "re_replace", fixed((t.REGEX, t.STRING, t.STRING), t.STRING), plain(_replace),
        r"all matches replaced; `\0` to `\9` in the replacement are the match and its groups",
        ("bad-regex",), effect=PURE,
    ),
)  # fmt: skip
