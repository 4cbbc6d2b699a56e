"""The rule for quotes, as one regular expression: where the records of a text are, and what is wrong with those that fail."""

from __future__ import annotations

import re

from attrs import frozen

QUOTED = '"(?:[^"]|"")*"'
SYNTAX = "data-syntax"
Row = tuple[int, tuple[str, ...]]
"""A record that is taken, behind the number of its first line."""


@frozen
class Bad:
    """A record that is refused: its code, line and text; `column` of one that breaks the syntax."""

    code: str
    line: int
    text: str
    column: int | None = None


def records(text: str, delimiter: str, width: int, most: int) -> tuple[list[Row], list[Bad]]:
    """The records of `width` cells, at least two, of a text, and what else is there.

    A record is the longest text that matches; it may go on in quotes while its lines have at most `most` bytes. Where
    none begins, the line is bad, and the next one is looked at.
    """
    plain = f'[^"{delimiter}\n]*'
    cell = f"(?:{QUOTED}|{plain})"
    record = re.compile(f"{cell}(?:{delimiter}{cell})*\r?\n")
    text = text if text.endswith("\n") or not text else text + "\n"
    rows: list[Row] = []
    bad: list[Bad] = []
    at = 0
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        found = record.match(text, at)
        if found is not None and len(text[at : text.rfind("\n", at, found.end() - 1) + 1].encode()) > most:
            found = None
        end = text.index("\n", at) + 1 if found is None else found.end()
        here = text[at:end].removesuffix("\n").removesuffix("\r")
        if found is None:
            bad.append(Bad(SYNTAX, line, here, failing(text[at:end], cell, delimiter) + 1))
        else:
            whole(text[at:end], here, line, cell, delimiter, width, rows, bad)
        at = end
    return rows, bad


def failing(line: str, cell: str, delimiter: str) -> int:
    """Where the first line of a failed record is wrong."""
    begun = re.match(f"(?:{cell}{delimiter})*", line)
    assert begun is not None
    at = begun.end()
    if line[at] != '"':
        return line.index('"', at)
    closed = re.compile(f'{QUOTED}(?!")').match(line, at)
    return at if closed is None else closed.end()


def whole(
    text: str,
    here: str,
    line: int,
    cell: str,
    delimiter: str,
    width: int,
    rows: list[Row],
    bad: list[Bad],
) -> None:
    """A record whose quotes close."""
    cells: list[str] = []
    at, turn = 0, None
    while True:
        found = re.compile(cell).match(here, at)
        assert found is not None
        if not here.startswith('"', at) and "\r" in found[0] and turn is None:
            turn = at + found[0].index("\r")
        cells.append(found[0][1:-1].replace('""', '"') if here.startswith('"', at) else found[0])
        at = found.end() + 1
        if at > len(here):
            break
    if turn is not None:
        number = text.count("\n", 0, turn)
        bad.append(Bad(SYNTAX, line + number, here, turn - text.rfind("\n", 0, turn)))
    elif len(cells) == width:
        rows.append((line, tuple(cells)))
    elif here:
        bad.append(misshapen(here, line, cells, cell, width))


def misshapen(here: str, line: int, cells: list[str], cell: str, width: int) -> Bad:
    """A record with too many cells is wrong at the first that is too many, one with too few at its end."""
    if len(cells) < width:
        return Bad("data-missing-field", line + here.count("\n"), here)
    at = 0
    for _ in range(width):
        found = re.compile(cell).match(here, at)
        assert found is not None
        at = found.end() + 1
    return Bad("data-extra-field", line + here.count("\n", 0, at), here)
