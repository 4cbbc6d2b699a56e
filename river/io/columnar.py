"""Parquet, Arrow IPC and Arrow data in memory: record batches to items, declared columns only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from river.aside import Ahead, ahead
from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.io.batches import Batch, Origin, assemble
from river.io.errors import RowError, unreadable
from river.io.jsonlines import mismatch
from river.io.pieces import pieces
from river.io.schema import arrow, columns, decode, refusal, to_batch
from river.io.validate import validate
from river.lang import memory
from river.lang.types import Record, Type
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

_FEWEST, _MOST = 1 << 12, 1 << 17  # rows that are decoded at once
_DECODED = 16 << 20  # bytes of them

_MOST_WAITING, _WAITING = 16, 64 << 20
"""How often rows are decoded before those are taken that came first, and how many bytes these may be: as much as is
done with one core while a run begins on the other."""

_WORD: Final = 8
"""Bytes of a value of a column that are counted at least: in the file it may be a number of a few bits."""


@frozen(eq=False)
class TablePart:
    """Consecutive rows of a table, whose schema has been checked: `before` rows come before them."""

    data: Any  # a pyarrow.RecordBatch
    fields: Sequence[tuple[str, Type]]
    type: Type
    origin: Origin
    before: int

    def batch(self) -> Batch:
        """The items, and errors for rows that are none."""
        with _readable(self.origin):
            return _batch(self.data, self.fields, isinstance(self.type, Record), self.origin, self.before)


class _Decoder:
    """What `rows` gives, one by one and None behind them, whichever thread asks."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows
        self._lock = threading.Lock()

    def __call__(self) -> Any:
        with self._lock:
            return next(self._rows, None)

    def end(self) -> None:
        """Returns when nobody is at the rows; from then on there are none."""
        with self._lock:
            self._rows = iter(())


class Tables(Iterator[Batch]):
    """Batches of items of Arrow data. Who has a better use for record batches takes `parts` instead.

    `parts`: of at most so many rows; taken once, and before any batch. `decoders`: what threads read them by, if they do.
    `at_hand`: how many bytes they are, where whoever asks for the next ones waits for nobody; else 0.
    """

    def __init__(self, parts: Callable[[int], Iterator[TablePart]], size: int) -> None:
        self.parts = parts
        self.decoders: Sequence[_Decoder] = ()
        self.at_hand = 0
        self._mine = parts(size)

    def end(self) -> None:
        """Returns when nothing reads any longer; nothing does from then on."""
        for each in self.decoders:
            each.end()

    def __next__(self) -> Batch:
        return next(self._mine).batch()

    def limited(self, count: int) -> Tables:
        """The first so many rows; taken before any batch of these."""
        return Tables(lambda most: _first(self.parts(most), count), min(count, _FEWEST) or 1)


def read(
    schema: Any, batches: Callable[[int], Iterable[Any]], type_: Type, origin: Origin, size: int
) -> Tables:
    """Batches of at most `size` items; the schema is checked now. `batches`: by how many rows are wanted at once.

    Raises: Rejected("data-column") for columns that are not there, ("data-type") for those of another type.
    """
    fields = check(schema, type_, origin)
    return Tables(lambda most: _parts(batches(most), fields, type_, origin, most), size)


def check(schema: Any, type_: Type, origin: Origin) -> Sequence[tuple[str, Type]]:
    """The columns of `schema` to read, with the types to read them as. Raises: Rejected, see `read`."""
    fields = columns(type_)
    place = origin.file or origin.input
    with _readable(origin):
        names: list[str] = schema.names
    if not isinstance(type_, Record) and len(names) == 1:
        fields = ((names[0], type_),)
    wrong: list[Diagnostic] = []
    for name, field in fields:
        found = names.count(name)
        if found == 0:
            known = ", ".join(f"`{column}`" for column in names) or "none"
            help_ = closest(name, names) or f"the columns are {known}"
            wrong.append(Diagnostic("data-column", f"there is no column `{name}`", place=place, help=help_))
        elif found > 1:
            message = f"the column `{name}` occurs {found} times"
            wrong.append(Diagnostic("data-column", message, place=place))
        else:
            why = refusal(field, schema.field(name).type)
            if why is not None:
                message = f"field `{name}{why.path}`: {why.reason}"
                wrong.append(Diagnostic(why.code, message, place=place, help=why.help))
    if wrong:
        raise Rejected(wrong)
    return fields


def filled(tables: Tables, type_: Type, given: Mapping[str, Any], size: int) -> Tables:
    """The rows of `tables`, of the other columns of `type_`, with the values `given`. No batch of `tables` has been taken."""
    fields = columns(type_)
    stated = tuple(field for field in fields if field[0] in given)
    one = to_batch(Record(stated), [tuple(given[name] for name, _ in stated)])

    def whole(part: TablePart) -> TablePart:
        data, pa = part.data, arrow()
        arrays = [
            pa.repeat(one.column(name)[0], data.num_rows) if name in given else data.column(name)
            for name, _ in fields
        ]
        found = pa.RecordBatch.from_arrays(arrays, [name for name, _ in fields])
        return evolve(part, data=found, fields=fields, type=type_)

    return Tables(lambda most: map(whole, tables.parts(most)), size)


def _first(parts: Iterable[TablePart], count: int) -> Iterator[TablePart]:
    """The first so many rows."""
    for part in parts:
        if count <= 0:
            return
        yield evolve(part, data=part.data.slice(0, count))
        count -= part.data.num_rows


def _parts(
    batches: Iterable[Any], fields: Sequence[tuple[str, Type]], type_: Type, origin: Origin, size: int
) -> Iterator[TablePart]:
    names = [name for name, _ in fields]
    done = 0
    following = iter(batches)
    while (whole := _next(following, names, origin)) is not None:
        for start in range(0, whole.num_rows, size):
            yield TablePart(whole.slice(start, size), fields, type_, origin, done + start)
        done += whole.num_rows


def _next(batches: Iterator[Any], names: Sequence[str], origin: Origin) -> Any:
    """The columns `names` of the next record batch, whose buffers may be followed; None if there is none."""
    with _readable(origin):
        found = next(batches, None)
        return None if found is None else validate(found, names)


@contextmanager
def _readable(origin: Origin) -> Generator[None]:
    """A broken file is the user's to hear of, whatever Arrow's readers say of it."""
    try:
        yield
    except (arrow().ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        if memory.refused(error) and memory.limited() is not None:
            raise
        help_ = None
        if getattr(error, "errno", None) is None:  # else the system has said why
            help_ = "it may be damaged or cut off: make it again, or try another reader of such data on it"
        raise Rejected([unreadable(origin.file or origin.input, error, help_)]) from error


def _batch(part: Any, fields: Sequence[tuple[str, Type]], record: bool, origin: Origin, before: int) -> Batch:
    found = [decode(type_, part.column(name)) for name, type_ in fields]

    def text(row: int) -> str:
        columns = (_spelled(part.column(name).slice(row, 1)) for name, _ in fields)
        cells = (column.to_string(skip_new_lines=True) for column in columns)
        return ", ".join(f"{name}: {cell[1:-1]}" for (name, _), cell in zip(fields, cells, strict=True))

    faults: dict[int, RowError] = {}
    for (name, _), column in zip(fields, found, strict=True):
        for row, fault in column.faults.items():
            if row not in faults:
                faults[row] = mismatch(
                    origin, before + row + 1, fault.inside(name if record else ""), text(row)
                )
    parts = [column.values for column in found]
    lines = range(before + 1, before + part.num_rows + 1)
    return assemble(parts, lines, text, [], faults, record=record)


def _spelled(column: Any) -> Any:
    """A column with its values, not their numbers."""
    return column.dictionary_decode() if arrow("types").is_dictionary(column.type) else column


Share = tuple[int, int]
"""Which part of a file is meant, of how many: of equally many row groups of Parquet, or record batches of Arrow, about."""


def _shared(count: int, share: Share) -> range:
    """The numbers of so many things that belong to a share."""
    number, of = share
    return range(count * number // of, count * (number + 1) // of)


def parquet(
    file: Any, type_: Type, origin: Origin, size: int, share: Share = (0, 1), *, early: bool = False
) -> Tables:
    """Items of an open Parquet file, row group after row group.

    `early`: the first rows are decoded at once, if there is a core for that; who closes the file ends that before (`Tables.end`).
    """
    # Not where memory is limited: if a thread gets none to begin, the library goes on with what is no longer there. Without
    # `pre_buffer`, which takes no less time, it begins none by itself.
    several = here().cores > 1 and memory.limited() is None
    with _readable(origin):
        opened = arrow("parquet").ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
        schema = opened.schema_arrow
    names = [name for name, _ in check(schema, type_, origin)]
    texts = [name for name in names if _is_text(schema.field(name).type)]
    with _readable(origin):
        numbered = _numbered(file, opened.metadata, texts)
    if numbered:
        with _readable(origin):
            opened = arrow("parquet").ParquetFile(
                file,
                metadata=opened.metadata,
                page_checksum_verification=True,
                pre_buffer=False,
                read_dictionary=numbered,
            )
            schema = opened.schema_arrow

    groups = _shared(opened.num_row_groups, share)
    least, width = _at_once(opened.metadata)

    def decoded(most: int) -> Iterator[Any]:
        return opened.iter_batches(max(most, least), groups, columns=names, use_threads=several)

    if not several:
        return read(schema, decoded, type_, origin, size)
    # Else whoever runs a program waits for rows when it is done with the last ones, and then these wait for it.
    decoders: list[_Decoder] = []

    def decoder(most: int) -> tuple[Callable[[], Any], str, int]:
        decoders.append(_Decoder(decoded(most)))
        each = max(most, least) * max(width, _WORD * len(names))
        return decoders[-1], "river-decoder", max(1, min(_MOST_WAITING, int(_WAITING / each)))

    if early:
        begun = Ahead(*decoder(size))
        tables = read(schema, lambda _: begun.values(), type_, origin, size)
    else:
        tables = read(schema, lambda most: ahead(*decoder(most)), type_, origin, size)
    tables.decoders = decoders
    return tables


_PLAIN: Final = 4
"""Bytes that a text takes at least in a page of Parquet that holds texts, not numbers of them."""

_PROBE: Final = 1 << 16
"""Bytes that are read at once of a column of which one row is wanted."""


def _is_text(type_: Any) -> bool:
    types = arrow("types")
    return types.is_string(type_) or types.is_binary(type_)


def _numbered(file: Any, metadata: Any, texts: Sequence[str]) -> list[str]:
    """The columns of texts that a file has as numbers of different ones, which are read as such: it takes half as long.

    A column that has so many different ones that later pages hold them as they are takes longer so. The first group of rows
    tells. It is read from first, one row of it: the library ends the process where what a file says of a column is damaged,
    unless it finds that when it reads.
    """
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    known = [name for name in texts if name in places]
    if not known or not metadata.num_row_groups:
        return []
    opened = arrow("parquet").ParquetFile(file, metadata=metadata, buffer_size=_PROBE, pre_buffer=False)
    next(opened.iter_batches(1, [0], known, use_threads=False), None)
    group = metadata.row_group(0)

    def small(name: str) -> bool:
        found = group.column(places[name])
        return found.has_dictionary_page and found.total_uncompressed_size < _PLAIN * found.num_values

    return [name for name in known if small(name)]


def _at_once(metadata: Any) -> tuple[int, float]:
    """How many rows of a Parquet file are decoded at once, and how many bytes each takes, about.

    Few at a time take longer, many wide ones much memory. A group of rows is divided evenly: what reaches into the next one comes
    in two pieces.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    width = max(sum(each.total_byte_size for each in groups), 1) / max(metadata.num_rows, 1)
    most = max(_FEWEST, min(_MOST, int(_DECODED / width)))
    largest = max((each.num_rows for each in groups), default=0)
    return -(-largest // -(-largest // most)) if largest > _FEWEST else most, width


def ipc(file: Any, type_: Type, origin: Origin, size: int, share: Share = (0, 1)) -> Tables:
    """Items of an Arrow IPC file or stream; which one, its first bytes say. The first share of a stream is all of it."""
    pa = arrow("ipc")
    with _readable(origin):
        if not (file.seekable() and _begins(file, b"ARROW1")):
            stream = pa.open_stream(file)
            return read(stream.schema, lambda _: () if share[0] else stream, type_, origin, size)
        opened = pa.open_file(file)
        names = [name for name, _ in check(opened.schema, type_, origin)]
        found = pieces(file, opened, names) if share[1] == 1 else None
        if found is not None:
            return read(opened.schema, found.read, type_, origin, size)
        whole = (opened.get_batch(i) for i in _shared(opened.num_record_batches, share))
        return read(opened.schema, lambda _: whole, type_, origin, size)


def _begins(file: Any, mark: bytes) -> bool:
    start = file.read(len(mark))
    file.seek(0)
    return start == mark


def in_memory(data: Any, type_: Type, origin: Origin, size: int) -> Tables | None:
    """Items of Arrow data, of a frame that offers it, or of a list of these; None if `data` is none of them."""
    with _readable(origin):
        reader = _reader(data, origin)
    if reader is None:
        return None
    found = read(reader.schema, lambda _: reader, type_, origin, size)
    found.at_hand = _at_hand(data)
    return found


def _at_hand(data: Any) -> int:
    """How many bytes the rows have; 0 where they may have to be waited for."""
    if isinstance(data, list | tuple):
        sizes = [_at_hand(part) for part in cast("Sequence[object]", data)]
        return sum(sizes) if all(sizes) else 0
    return data.nbytes if isinstance(data, arrow().Table | arrow().RecordBatch) else 0


def is_arrow(data: object) -> bool:
    """Whether `data` is Arrow data, or a frame that offers it."""
    return any(hasattr(data, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow"))


def _reader(data: Any, origin: Origin) -> Any:
    if hasattr(data, "__arrow_c_stream__"):
        return arrow().RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = arrow().record_batch(data)
        return arrow().RecordBatchReader.from_batches(batch.schema, [batch])
    if hasattr(data, "to_arrow"):
        return _reader(data.to_arrow(), origin)
    if isinstance(data, list | tuple) and data and all(map(is_arrow, cast("Sequence[object]", data))):
        readers = [_reader(part, origin) for part in cast("Sequence[object]", data)]
        whole = readers[0].schema
        for number, each in enumerate(readers, 1):
            if each.schema != whole:
                message = (
                    f"input `{origin.input}`: part {number} of the list has other columns than the first"
                )
                help_ = "let all have the columns of the first, in its order and with its types"
                raise Rejected([Diagnostic("data-format", message, help=help_)])
        return arrow().RecordBatchReader.from_batches(whole, (b for each in readers for b in each))
    return None
