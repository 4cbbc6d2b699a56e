"""CSV and TSV (RFC 4180): records of cells, quoted where they hold the delimiter, quotes or line ends.

The first record names the columns; declared fields are found by name in any order, other columns are not
read. A field in quotes may span lines; a quote inside it is doubled; a quote anywhere else, text after a
closing quote and a carriage return outside quotes (but before a line feed) are errors. Where there is more
than one column, blank lines are skipped. Items that are not records come from the only column, or from the
column `value`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from river.diagnostics import Diagnostic, Rejected, closest
from river.io.batches import Batch, Origin, assemble
from river.io.cells import EMPTY, converter
from river.io.jsonlines import mismatch
from river.io.schema import Column, columns
from river.lang.types import Record, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from river.io.errors import RowError

MOST: Final = 1 << 24
"""Characters of the longest record: a longer one is a quote that was not closed."""


class Fault(Exception):  # noqa: N818 - control flow of this module
    """A record that breaks the rules: why, at which of its lines (from 0) and column (from 1)."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


@frozen
class Cells:
    """Scanned records: the cells of each, the number of its first line, its text."""

    rows: list[list[str]]
    lines: list[int]
    texts: list[str]
    errors: list[tuple[int, RowError]]


def scan(
    line: str,
    delimiter: str,
    more: Callable[[], str | None],
    starts: list[tuple[int, int]] | None = None,
) -> list[str]:
    """The cells of the record that begins with `line`; `more` gives further lines while a quote is open.

    `starts` receives the line (from 0) and column (from 1) of each cell. Raises: Fault.
    """
    cells: list[str] = []
    number, at = 0, 0
    while True:
        if starts is not None:
            starts.append((number, at + 1))
        if line[at : at + 1] != '"':
            end = line.find(delimiter, at)
            cell = line[at:] if end < 0 else line[at:end]
            if end < 0:
                cell = cell.removesuffix("\r")
            _check_plain(cell, number, at)
            cells.append(cell)
        else:
            begun = (number, at + 1)
            parts: list[str] = []
            size = 0
            at += 1
            while True:
                close = line.find('"', at)
                if close < 0:
                    parts.append(line[at:] + "\n")
                    size += len(line) + 1
                    following = more() if size <= MOST else None
                    if following is None:
                        raise Fault("the quote is not closed", *begun)
                    line = following
                    number, at = number + 1, 0
                elif line[close + 1 : close + 2] == '"':
                    parts.append(line[at : close + 1])
                    at = close + 2
                else:
                    parts.append(line[at:close])
                    break
            cells.append("".join(parts) or EMPTY)
            end = close + 1
            if line[end:] in ("", "\r"):
                return cells
            if line[end] != delimiter:
                raise Fault("there is text after a closing quote", number, end + 1)
        if end < 0:
            return cells
        at = end + 1


def _check_plain(cell: str, number: int, at: int) -> None:
    quote = cell.find('"')
    if quote >= 0:
        raise Fault("there is a quote inside a cell without quotes", number, at + quote + 1)
    turn = cell.find("\r")
    if turn >= 0:
        raise Fault("there is a carriage return outside quotes", number, at + turn + 1)


class Scanner:
    """The records of blocks of lines, block by block."""

    def __init__(self, blocks: Iterable[list[str]], delimiter: str, origin: Origin) -> None:
        self._blocks = iter(blocks)
        self._delimiter = delimiter
        self._origin = origin
        self._waiting: list[str] = []  # lines of a block that are not scanned yet, from the last to the first
        self._taken: list[str] = []  # lines that the record at hand has taken beyond its first
        self.line = 0

    def _more(self) -> str | None:
        if not self._waiting:
            block = next(self._blocks, None)
            if block is None:
                return None
            self._waiting = block[::-1]
        self._taken.append(self._waiting.pop())
        return self._taken[-1]

    def header(self) -> list[str] | None:
        """The cells of the first record, or None in an empty file. Raises: Rejected."""
        first = self._more()
        if first is None:
            return None
        self._taken = []
        self.line = 1
        try:
            cells = scan(first, self._delimiter, self._more)
        except Fault as fault:
            raise Rejected([_fault(self._origin, fault, self.line, first).diagnostic]) from None
        self.line += len(self._taken)
        return cells

    def __iter__(self) -> Iterator[Cells]:
        while True:
            if self._waiting:
                block = self._waiting[::-1]
                self._waiting = []
            else:
                following = next(self._blocks, None)
                if following is None:
                    return
                block = following
            yield self._plain(block) or self._careful(block)

    def _plain(self, block: list[str]) -> Cells | None:
        """The records of a block without quotes: one line each."""
        text = "\n".join(block)
        if '"' in text:
            return None
        lines = block
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in block]
            if any("\r" in line for line in lines):
                return None
        first = self.line + 1
        self.line += len(block)
        rows = [line.split(self._delimiter) for line in lines]
        return Cells(rows, list(range(first, self.line + 1)), lines, [])

    def _careful(self, block: list[str]) -> Cells:
        found = Cells([], [], [], [])
        self._waiting = block[::-1]
        wanted = self.line + len(block)
        while self.line < wanted:
            first = self._waiting.pop()
            self._taken = []
            self.line += 1
            try:
                found.rows.append(scan(first, self._delimiter, self._more))
                found.lines.append(self.line)
                found.texts.append(_record(first, self._taken))
            except Fault as fault:
                error = _fault(self._origin, fault, self.line, _record(first, self._taken))
                found.errors.append((len(found.rows), error))
            self.line += len(self._taken)
        return found


def _record(first: str, more: Sequence[str]) -> str:
    """The text of a record without its end."""
    return "\n".join((first, *more)).removesuffix("\r")


def _fault(origin: Origin, fault: Fault, line: int, text: str) -> RowError:
    """The error of a record that begins at `line`."""
    return origin.error(line + fault.line, "data-syntax", fault.reason, column=fault.column, text=text)


def open_delimited(
    blocks: Iterable[list[str]], type_: Type, origin: Origin, delimiter: str
) -> tuple[Table, Iterator[Batch]]:
    """The columns, and batches of items; the header is read now.

    Raises: Rejected("data-column") when it does not fit.
    """
    fields = columns(type_)
    scanner = Scanner(blocks, delimiter, origin)
    header = scanner.header()
    if header is None:
        names = ", ".join(f"`{name}`" for name, _ in fields)
        raise Rejected([_column(origin, "the file is empty", f"the first line names the columns: {names}")])
    places = _places(header, fields, origin, record=isinstance(type_, Record))
    table = Table(places, len(header), type_, delimiter, origin)
    return table, map(table.batch, scanner)


def _column(origin: Origin, message: str, help: str | None) -> Diagnostic:
    return Diagnostic("data-column", message, place=f"{origin.file or origin.input}:1", help=help)


def _places(
    header: list[str], fields: Sequence[tuple[str, Type]], origin: Origin, *, record: bool
) -> list[int]:
    """The column of each field. Raises: Rejected with all fields that have none, or more than one."""
    if not record and len(header) == 1:
        return [0]
    wrong: list[Diagnostic] = []
    for name, _ in fields:
        if header.count(name) == 0:
            known = ", ".join(f"`{column}`" for column in header)
            help_ = closest(name, header) or f"the columns are {known}"
            wrong.append(_column(origin, f"there is no column `{name}`", help_))
        elif header.count(name) > 1:
            wrong.append(_column(origin, f"the column `{name}` occurs {header.count(name)} times", None))
    if wrong:
        raise Rejected(wrong)
    return [header.index(name) for name, _ in fields]


class Table:
    """From scanned cells to items: `places` says which of `width` columns each field is."""

    def __init__(
        self,
        places: list[int],
        width: int,
        type_: Type,
        delimiter: str,
        origin: Origin,
    ) -> None:
        fields = columns(type_)
        self.places = places
        self.width = width
        self._names = [name for name, _ in fields]
        self._convert = [converter(field) for _, field in fields]
        self._delimiter = delimiter
        self._origin = origin
        self._record = isinstance(type_, Record)

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of records given one by one, with the line of each."""
        found = Cells([], [], [], [])
        for line, text in zip(lines, texts, strict=True):
            first, *following = text.split("\n")
            more = iter(following)
            try:
                found.rows.append(scan(first, self._delimiter, lambda more=more: next(more, None)))
                found.lines.append(line)
                found.texts.append(text.removesuffix("\r"))
            except Fault as fault:
                error = _fault(self._origin, fault, line, text.removesuffix("\r"))
                found.errors.append((len(found.rows), error))
        return self.batch(found)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines; at the start of a file that begins with the header."""
        scanner = Scanner(blocks, self._delimiter, self._origin)
        scanner.line = line
        if line == 0:
            scanner.header()
        return map(self.batch, scanner)

    def batch(self, cells: Cells) -> Batch:
        """The items of scanned records."""
        cells = self._shaped(cells)
        found: list[Column] = []
        for place, convert in zip(self.places, self._convert, strict=True):
            found.append(convert([row[place] for row in cells.rows]))
        faults: dict[int, RowError] = {}
        for number, column in enumerate(found):
            for row, fault in column.faults.items():
                if row not in faults:
                    line, start = self._start(cells, row, self.places[number])
                    fault.inside(self._names[number] if self._record else "")
                    faults[row] = mismatch(self._origin, line, fault, cells.texts[row], start)
        parts = [column.values for column in found]
        return assemble(
            parts, cells.lines, cells.texts.__getitem__, cells.errors, faults, record=self._record
        )

    def _start(self, cells: Cells, row: int, place: int) -> tuple[int, int]:
        """Line and column of a cell."""
        lines = cells.texts[row].split("\n")
        rest = iter(lines[1:])
        starts: list[tuple[int, int]] = []
        scan(lines[0], self._delimiter, lambda: next(rest, None), starts)
        line, column = starts[place]
        return cells.lines[row] + line, column

    def _shaped(self, cells: Cells) -> Cells:
        """The rows with as many cells as the header; errors for the others."""
        if all(len(row) == self.width for row in cells.rows):
            return cells
        kept = Cells([], [], [], [])
        earlier = iter([*cells.errors, (len(cells.rows) + 1, None)])
        position, error = next(earlier)
        for number, row in enumerate(cells.rows):
            while error is not None and position <= number:
                kept.errors.append((len(kept.rows), error))
                position, error = next(earlier)
            if len(row) == self.width:
                kept.rows.append(row)
                kept.lines.append(cells.lines[number])
                kept.texts.append(cells.texts[number])
            elif cells.texts[number]:
                kept.errors.append((len(kept.rows), self._misshapen(cells, number)))
        while error is not None:
            kept.errors.append((len(kept.rows), error))
            position, error = next(earlier)
        return kept

    def _misshapen(self, cells: Cells, row: int) -> RowError:
        here, text = len(cells.rows[row]), cells.texts[row]
        reason = f"{self.width} cells are needed, {here} are here"
        if here > self.width:
            line, column = self._start(cells, row, self.width)
            return self._origin.error(line, "data-extra-field", reason, column=column, text=text)
        last = text.removesuffix("\r").split("\n")
        line = cells.lines[row] + len(last) - 1
        return self._origin.error(line, "data-missing-field", reason, column=len(last[-1]) + 1, text=text)


class Lines:
    """Text lines as items of a scalar type: one value per line, a string being the line itself."""

    def __init__(self, type_: Type, origin: Origin) -> None:
        self._convert = converter(type_)
        self._origin = origin

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of lines, with the number of each."""
        values = [text.removesuffix("\r") for text in texts]
        column = self._convert(values)
        faults = {
            row: mismatch(self._origin, lines[row], fault, values[row], 1)
            for row, fault in column.faults.items()
        }
        return assemble([column.values], lines, values.__getitem__, [], faults, record=False)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines."""
        for block in blocks:
            yield self.rows(block, range(line + 1, line + len(block) + 1))
            line += len(block)
