"""CSV and TSV (RFC 4180): records of cells, quoted where they hold the delimiter, quotes or line ends.

The first record names the columns; declared fields are found by name in any order, other columns are not
read. Without such a record (`csv-noheader`), or where it says their types (`csv-types`), the columns are the fields
in their order. A field in quotes may span lines; a quote inside it is doubled; a quote anywhere else, text
after a closing quote and a carriage return outside quotes (but before a line feed) are errors. A record whose
quotes close as they should is one, whatever its lines look like. Any other has failed: nobody knows where it
ends, so only its first line is taken for bad, and the next record begins at the next line. Where there is more
than one column, blank lines are skipped. Items that are not records come from the only column, or from the
column `value`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from river.classes import field, frozen
from river.diagnostics import Diagnostic, InternalError, Rejected, closest
from river.io.batches import Batch, Origin, assemble
from river.io.cells import EMPTY, converter
from river.io.jsonlines import mismatch
from river.io.schema import Column, columns
from river.lang.types import Record, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from river.io.batches import RowReader
    from river.io.errors import RowError

KINDS: Final = ("csv", "tsv", "csv-noheader", "tsv-noheader", "csv-types")
"""The formats that are read here."""

TYPED: Final = "csv-types"
"""The one whose first record says the types of the columns, which are the fields in their order: data of the STREAM system."""

_TYPE: Final = re.compile(r"\s*(i|f|b|c[0-9]+)\s*")

MOST: Final = 1 << 24
"""Bytes, as UTF-8, of the lines through which a record may go on in quotes: more are a quote that was not closed."""

_CLOSES: Final = "a closing quote stands before a delimiter or the end of a line; inside, a quote is doubled"


def has_header(kind: str) -> bool:
    """Whether the first record of a text of one of `KINDS` says something of the columns: their names, or their types."""
    return not kind.endswith("-noheader")


def delimiter_of(kind: str) -> str:
    """What stands between the cells of a text of one of `KINDS`."""
    return "\t" if kind.startswith("tsv") else ","


class Fault(Exception):  # noqa: N818 - control flow of this module
    """A record that breaks the rules: why, and at which of its characters.

    `end`: where the record ends in its text; None if its quotes do not tell, so that the record has failed.
    """

    help: str | None = None

    def __init__(self, reason: str, at: int, end: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        self.end = end


class Unclosed(Fault):
    """A quote that is open where the text ends."""

    help = _CLOSES

    def __init__(self, at: int) -> None:
        super().__init__("the quote is not closed", at)


@frozen
class Cells:
    """Scanned records: the cells of each, the number of its first line, its text."""

    rows: list[list[str]] = field(factory=list[list[str]])
    lines: list[int] = field(factory=list[int])
    texts: list[str] = field(factory=list[str])
    errors: list[tuple[int, RowError]] = field(factory=list[tuple[int, "RowError"]])


def scan(text: str, delimiter: str, start: int = 0, starts: list[int] | None = None) -> tuple[list[str], int]:
    """The cells of the record that begins at `start`, and where it ends: behind a line feed, as `text` does.

    `starts` receives where each cell begins. Raises: Fault, Unclosed.
    """
    cells: list[str] = []
    at, line, turn = start, -1, -1
    while True:
        if starts is not None:
            starts.append(at)
        if text[at] == '"':
            close = _closing(text, at, start)
            cell = text[at + 1 : close]
            cells.append(cell.replace('""', '"') or EMPTY)
            at = close + 1
            if text[at] == delimiter:
                at += 1
                continue
            if text[at] != "\n" and not text.startswith("\r\n", at):
                raise Fault("there is text after a closing quote", at - start)
            end = text.index("\n", at) + 1
            break
        if line < at:
            line = text.index("\n", at)
        stop = text.find(delimiter, at, line)
        cell = text[at:stop] if stop >= 0 else text[at:line].removesuffix("\r")
        if '"' in cell:
            raise Fault("there is a quote inside a cell without quotes", at + cell.index('"') - start)
        if turn < 0 and "\r" in cell:
            turn = at + cell.index("\r")
        cells.append(cell)
        if stop < 0:
            end = line + 1
            break
        at = stop + 1
    if turn >= 0:
        raise Fault("there is a carriage return outside quotes", turn - start, end)
    return cells, end


def _closing(text: str, at: int, start: int) -> int:
    """The quote that closes the one at `at`. Raises: Unclosed."""
    close = text.find('"', at + 1)
    while close >= 0 and text[close + 1] == '"':
        close = text.find('"', close + 2)
    if close < 0:
        raise Unclosed(at - start)
    return close


def _record(text: str, delimiter: str, at: int) -> tuple[list[str] | Fault, int]:
    """The cells of a record or what is wrong with it, and where what comes next begins. Raises: Unclosed."""
    try:
        cells, end = scan(text, delimiter, at)
    except Unclosed:
        raise
    except Fault as fault:
        if fault.end is None:
            return _failed(text, delimiter, at)
        cells, end = fault, fault.end
    if 4 * (end - at) > MOST and _size(text[at : text.rfind("\n", at, end - 1) + 1]) > MOST:
        return _failed(text, delimiter, at)
    return cells, end


def _failed(text: str, delimiter: str, at: int) -> tuple[Fault, int]:
    """What is wrong with the first line of a record that has failed, and where the next one begins."""
    end = text.index("\n", at) + 1
    try:
        scan(text[at:end], delimiter)
    except Fault as fault:
        return fault, end
    raise InternalError("a record of one line has failed without a reason")


def _size(text: str) -> int:
    """Bytes of a text as UTF-8, in which a byte that is none is a lone surrogate."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class Scanner:
    """The records of blocks of lines, block by block.

    A record that has failed gives its first line, and what follows is read as if it were not there. No line is looked at
    often: a line at whose end a quote stays open has an odd number of quotes if it was begun outside quotes, and an even
    number otherwise, so none of the lines that a failed record kept open begins another such record.

    `line`: how many lines have been scanned; `waiting`: bytes of the record that a quote keeps open.
    """

    def __init__(self, blocks: Iterable[list[str]], delimiter: str, origin: Origin) -> None:
        self._blocks = iter(blocks)
        self._ahead: deque[str] = deque()  # texts of blocks that were read in vain for the end of a record
        self._delimiter = delimiter
        self._origin = origin
        self.line = 0
        self.waiting = 0

    def _next(self) -> list[str] | None:
        """The lines of the next block."""
        return self._ahead.popleft()[:-1].split("\n") if self._ahead else next(self._blocks, None)

    def header(self) -> list[str] | None:
        """The cells of the first record, or None in an empty file. Raises: Rejected."""
        block = self._next()
        if block is None:
            return None
        text = _joined(block)
        try:
            cells, end = _record(text, self._delimiter, 0)
        except Unclosed:
            text, cells, end = self._longer(text)
        if isinstance(cells, Fault):
            raise Rejected([_fault(self._origin, cells, 1, text[:end]).diagnostic])
        self.line = text.count("\n", 0, end)
        if end < len(text):
            self._ahead.appendleft(text[end:])
        return cells

    def __iter__(self) -> Iterator[Cells]:
        while (block := self._next()) is not None:
            found = self._plain(block)
            if found is None:
                yield from self._careful(_joined(block))
            else:
                yield found

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

    def _careful(self, text: str) -> Iterator[Cells]:
        """The records that begin in a text of whole lines. Those at hand do not wait for the end of the next one."""
        found, at = Cells(), 0
        while at < len(text):
            try:
                cells, end = _record(text, self._delimiter, at)
            except Unclosed:
                if found.rows or found.errors:
                    yield found
                    found = Cells()
                text, cells, end = self._longer(text[at:])
                at = 0
            if isinstance(cells, Fault):
                error = _fault(self._origin, cells, self.line + 1, text[at:end])
                found.errors.append((len(found.rows), error))
            else:
                found.rows.append(cells)
                found.lines.append(self.line + 1)
                found.texts.append(_bare(text[at:end]))
            self.line += text.count("\n", at, end)
            at = end
        if found.rows or found.errors:
            yield found

    def _longer(self, text: str) -> tuple[str, list[str] | Fault, int]:
        """For a text that ends in quotes of its first record: the same, continued to its end; then as `_record`."""
        parts, size = [text], _size(text)
        while size <= MOST:
            self.waiting = size  # if nothing comes any more
            block = self._next()
            self.waiting = 0
            if block is None:
                break
            part = _joined(block)
            parts.append(part)
            try:
                _, end = scan('"' + part, self._delimiter)
            except Unclosed:
                size += _size(part)
                continue
            except Fault as fault:
                if fault.end is None:
                    break
                end = fault.end
            if size + _size(part[: part.rfind("\n", 0, end - 2) + 1]) > MOST:
                break
            text = "".join(parts)
            return (text, *_record(text, self._delimiter, 0))
        self._ahead.extendleft(reversed(parts[1:]))
        return (text, *_failed(text, self._delimiter, 0))


def _joined(block: list[str]) -> str:
    return "\n".join(block) + "\n"


def _bare(text: str) -> str:
    """The text of a record without its end."""
    return text.removesuffix("\n").removesuffix("\r")


def _fault(origin: Origin, fault: Fault, line: int, text: str) -> RowError:
    """The error of a record that begins at `line`."""
    number, column = _position(text, fault.at)
    return origin.error(
        line + number, "data-syntax", fault.reason, column=column, text=_bare(text), help=fault.help
    )


def _position(text: str, at: int) -> tuple[int, int]:
    """Line (from 0) and column (from 1) of a character."""
    return text.count("\n", 0, at), at - text.rfind("\n", 0, at)


def open_delimited(
    blocks: Iterable[list[str]], type_: Type, origin: Origin, kind: str
) -> tuple[CellTable, Iterator[Batch]]:
    """The columns, and batches of items; `kind`: one of `KINDS`. If there is a header, it is read now.

    Raises: Rejected("data-column") when it does not fit.
    """
    fields = columns(type_)
    delimiter = delimiter_of(kind)
    scanner = Scanner(blocks, delimiter, origin)
    if not has_header(kind):
        table = CellTable(list(range(len(fields))), len(fields), type_, delimiter, origin, headed=False)
        return table, table.scanned(scanner)
    header = scanner.header()
    names = ", ".join(f"`{name}`" for name, _ in fields)
    if header is None:
        says = "says the types of" if kind == TYPED else "names"
        raise Rejected([_column(origin, "the file is empty", f"the first line {says} the columns: {names}")])
    if kind != TYPED:
        places = _places(header, fields, origin, record=isinstance(type_, Record))
    elif len(header) == len(fields) and all(map(_TYPE.fullmatch, header)):
        places = list(range(len(fields)))
    else:
        message = f"the first line says no type for each of the columns {names}"
        help_ = "it is like `i,f,c20,b`, for an integer, a float, a text of 20 bytes, a byte"
        raise Rejected([_column(origin, message, help_)])
    table = CellTable(places, len(header), type_, delimiter, origin)
    return table, table.scanned(scanner)


def _column(origin: Origin, message: str, help: str | None) -> Diagnostic:
    return Diagnostic("data-column", message, place=f"{origin.file or origin.input}:1", help=help)


def _places(
    header: list[str], fields: Sequence[tuple[str, Type]], origin: Origin, *, record: bool
) -> list[int]:
    """The column of each field: that of its name, else the one that differs in case alone.

    Raises: Rejected with all fields that have none, or more than one.
    """
    if not record and len(header) == 1:
        return [0]
    wrong: list[Diagnostic] = []
    if len(header) == 1 and (other := _other_delimiter(header[0], fields)) is not None:
        raise Rejected([_column(origin, *other)])
    known = ", ".join(f"`{column}`" for column in header)
    names = f"the first line names the columns: {known}"
    if not any(name in header for name, _ in fields):
        names += "; where it is a row like the others, the format is `csv-noheader` or `tsv-noheader`"
    spelled = _spelled(header, [name for name, _ in fields])
    for name, _ in fields:
        if name in spelled:
            continue
        if header.count(name) == 0:
            blank = name in (column.strip() for column in header)
            around = "there are blanks around it in the first line: take them away, and those around cells"
            help_ = around if blank else closest(name, header) or names
            wrong.append(_column(origin, f"there is no column `{name}`", help_))
        elif header.count(name) > 1:
            wrong.append(_column(origin, f"the column `{name}` occurs {header.count(name)} times", None))
    if wrong:
        raise Rejected(wrong)
    return [header.index(spelled.get(name, name)) for name, _ in fields]


def _spelled(header: list[str], names: list[str]) -> dict[str, str]:
    """By name of a field the only column that may be meant, for names that are none: they differ in case alone."""
    free = [column for column in header if column not in names]
    strange = [name for name in names if name not in header]
    columns_, fields = (Counter(map(str.lower, each)) for each in (free, strange))
    lower = {column.lower(): column for column in free}
    return {name: lower[key] for name in strange if columns_[key := name.lower()] == 1 and fields[key] == 1}


def _other_delimiter(line: str, fields: Sequence[tuple[str, Type]]) -> tuple[str, str] | None:
    """What is wrong where something else separates the names of columns, and what to do then."""
    for mark, what, help_ in (
        ("\t", "tabs", "the format is `tsv`: name the file so, or say it by `--in-format`"),
        (",", "commas", "the format is `csv`: name the file so, or say it by `--in-format`"),
        (";", "`;`", "put commas in their places, or tabs, and name the file `.tsv`"),
        ("|", "`|`", "put commas in their places, or tabs, and name the file `.tsv`"),
    ):
        names = [name.strip() for name in line.split(mark)]
        if len(names) > 1 and any(name in names for name, _ in fields):
            return f"there is one column: {what} separate its names", help_
    return None


class CellTable:
    """From scanned cells to items: `places` says which of `width` columns each field is."""

    def __init__(
        self,
        places: list[int],
        width: int,
        type_: Type,
        delimiter: str,
        origin: Origin,
        *,
        headed: bool = True,
    ) -> None:
        fields = columns(type_)
        self._headed = headed
        self.places = places
        self.width = width
        self._names = [name for name, _ in fields]
        self._convert = [converter(field) for _, field in fields]
        self._delimiter = delimiter
        self._origin = origin
        self._record = isinstance(type_, Record)
        self._scanner: Scanner | None = None

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of records given one by one, with the line of each; of one that has failed, its first line is given."""
        found = Cells()
        for line, text in zip(lines, texts, strict=True):
            try:
                cells, _ = scan(text + "\n", self._delimiter)
            except Fault as fault:
                found.errors.append((len(found.rows), _fault(self._origin, fault, line, text)))
            else:
                found.rows.append(cells)
                found.lines.append(line)
                found.texts.append(_bare(text))
        return self.batch(found)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines; its header, if it has one, is skipped."""
        scanner = Scanner(blocks, self._delimiter, self._origin)
        scanner.line = line
        if line == 0 and self._headed:
            scanner.header()
        return self.scanned(scanner)

    def scanned(self, scanner: Scanner) -> Iterator[Batch]:
        """The batches of what a scanner finds."""
        self._scanner = scanner
        return map(self.batch, scanner)

    @property
    def waiting(self) -> int:
        """See `waiting`."""
        return 0 if self._scanner is None else self._scanner.waiting

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
        text = cells.texts[row] + "\n"
        starts: list[int] = []
        scan(text, self._delimiter, starts=starts)
        line, column = _position(text, starts[place])
        return cells.lines[row] + line, column

    def _shaped(self, cells: Cells) -> Cells:
        """The rows with as many cells as the header; errors for the others."""
        if all(len(row) == self.width for row in cells.rows):
            return cells
        kept = Cells()
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


def waiting(reader: RowReader) -> int:
    """Bytes of the record that a quote keeps open in the text that `reader` reads now."""
    return reader.waiting if isinstance(reader, CellTable) else 0


class Lines:
    """Text lines as items of a scalar type, or of a record of one: one value per line, a string being the line itself."""

    def __init__(self, type_: Type, origin: Origin) -> None:
        ((_, kind),) = columns(type_)
        self._convert = converter(kind)
        self._record = isinstance(type_, Record)
        self._origin = origin

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of lines, with the number of each."""
        values = [text.removesuffix("\r") for text in texts]
        column = self._convert(values)
        faults = {
            row: mismatch(self._origin, lines[row], fault, values[row], 1)
            for row, fault in column.faults.items()
        }
        return assemble([column.values], lines, values.__getitem__, [], faults, record=self._record)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines."""
        for block in blocks:
            yield self.rows(block, range(line + 1, line + len(block) + 1))
            line += len(block)


class Plain:
    """Lines as they are, whatever bytes are in them: every line is an item."""

    @staticmethod
    def rows(texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of lines, with the number of each."""
        items = [text.removesuffix("\r").encode("utf-8", "surrogateescape") for text in texts]
        return Batch(items, lines, (), lambda i: repr(items[i]))

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines."""
        for block in blocks:
            yield self.rows(block, range(line + 1, line + len(block) + 1))
            line += len(block)
