"""What runs inside Spark's Python processes where these read the inputs' files: parts of files in, files of outputs' rows out.

Each function is the body of one task (`jobs`); its first argument is the errand as text. The first ones get numbers of parts.
Between two of them travel chunks of rows in Arrow's format (`EXCHANGE`); the last ones give one text for each task, which tells
where its rows are (`Telling`). Nothing is raised for rows that are wrong or for a trap: that stands in what they tell, so that
Spark does not try again what would fail again.

Paper: River §4.4 (mappers and reducers of one program), §4.6.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import chain, groupby, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from uuid import uuid4

from backends.native.arrow import to_arrow
from backends.native.egress.sinks import column_sink
from backends.native.llvm import available
from backends.spark.columns import splitter
from backends.spark.delivery import StagedFolder, made, opened_sink
from backends.spark.kernels import Copy, parts_of, ready, shown, variable_of
from backends.spark.marshal import Piece
from backends.spark.parts import GivenFile, as_one, read
from backends.spark.rowwise import imported
from backends.spark.task import ShippedProgram, verified
from river.backend import Options
from river.classes import define, evolve, field, frozen
from river.diagnostics import Rejected
from river.driver import CountedSink, Job, Writer, execute, row_types
from river.il.model import needed
from river.io.errors import STOP
from river.io.schema import arrow, arrow_schema
from river.io.several import Files
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from backends.native.batch import Batch
    from river.il.graph import Graph
    from river.io.columnar import Share
    from river.io.folders import Partitions

ROWS: Final = 1 << 17
"""Rows that are divided among channels at once."""


@frozen(hash=False)
class Errand:
    """What a task is to do. `files`: of each input, each with the number of parts in which it is read; `outputs`: what is wanted.

    `keys`, `channels`: by which fields the rows of inputs are divided, and among how many. `until`, `lateness`, `native`,
    `batch`: see `river.backend.Options` and `Job`. `folders`: where the files of outputs belong; of others, in `folder`.
    """

    program: ShippedProgram
    files: Mapping[str, tuple[tuple[GivenFile, int], ...]]
    outputs: tuple[str, ...]
    folder: str
    keys: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"])
    channels: int = 1
    until: int | None = None
    lateness: int = 0
    externs: tuple[str, ...] = ()
    native: Literal["on", "off", "debug"] = "on"
    batch: int = Options().batch
    folders: Mapping[str, StagedFolder] = field(factory=dict[str, StagedFolder])

    def text(self) -> str:
        """As JSON."""
        files = {name: [[file.cells(), parts] for file, parts in found] for name, found in self.files.items()}
        return json.dumps([
            self.program.text, self.program.namespaces, files, self.outputs, self.folder, self.keys, self.channels, self.until,
            self.lateness, self.externs, self.native, self.batch,
            {name: [folder.path, folder.format, folder.by] for name, folder in self.folders.items()},
        ])  # fmt: skip


@lru_cache(maxsize=64)
def _errand(text: str) -> Errand:
    """The errand that a text states."""
    (
        program,
        namespaces,
        files,
        outputs,
        folder,
        keys,
        channels,
        until,
        late,
        externs,
        native,
        batch,
        folders,
    ) = json.loads(text)
    given = {
        name: tuple((GivenFile.of(cells), parts) for cells, parts in found) for name, found in files.items()
    }
    by = {name: tuple(columns) for name, columns in keys.items()}
    return Errand(
        ShippedProgram(program, tuple(namespaces)), given, tuple(outputs), folder, by, channels, until, late,
        tuple(externs), native, batch,
        {name: StagedFolder(path, format_, tuple(by)) for name, (path, format_, by) in folders.items()},
    )  # fmt: skip


@define
class Telling:
    """What a task tells.

    `part`: of the file, or the channel; `rows`: how many were read; `first`, `last`: the keys of the first and the last of
    them; `files`: of each output the rows' file, and how many there are; `python`: the instances that Python had a part in;
    `refused`: why all this is void; `unseen`: a folder that is not there for the task.
    """

    part: int
    rows: int = 0
    first: int | None = None
    last: int | None = None
    files: list[tuple[str, str, int]] = field(factory=list[tuple[str, str, int]])
    fired: Counter[str] = field(factory=Counter[str])
    python: set[str] = field(factory=set[str])
    refused: str | None = None
    unseen: str | None = None

    def text(self) -> str:
        """As JSON."""
        return json.dumps([
            self.part, self.rows, self.first, self.last, self.files, self.fired, sorted(self.python), self.refused,
            self.unseen,
        ])  # fmt: skip

    @staticmethod
    def read(text: str) -> Telling:
        """What a text tells."""
        part, rows, first, last, files, fired, python, refused, unseen = json.loads(text)
        return Telling(part, rows, first, last, files, Counter(fired), set(python), refused, unseen)


# ------------------------------------------------------------------------------------------------------------- tasks


def row_by_row(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The outputs' rows for the rows of parts of the only input's file."""
    errand = _errand(text)
    ((name, _),) = errand.files.items()
    for part in _numbers(batches):
        telling = Telling(part)

        def work(told: Telling = telling) -> None:
            type_ = verified(errand.program).queues[name].type
            rows = [to_arrow(type_, batch, copied=True) for batch in _items(errand, name, told)]
            table = arrow().Table.from_batches(rows, arrow_schema(type_))
            _run(errand, {name: table}, told)

        yield _told(_tried(errand, telling, work))


def in_one_task(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The outputs' rows for all rows of all files."""
    errand = _errand(text)
    for part in _numbers(batches):
        telling = Telling(part)

        def work(told: Telling = telling) -> None:
            for file in (file for found in errand.files.values() for file, _ in found):
                file.check()
            _run(
                errand,
                {name: as_one([file for file, _ in found]) for name, found in errand.files.items()},
                told,
            )

        yield _told(_tried(errand, telling, work))


def reduced(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """What copies of the operators accumulate of parts of the file: a row for each variable, whose number is the channel.

    Rows of outputs that are no tables, but made row by row, go to files here.
    """
    errand = _errand(text)
    graph = verified(errand.program)
    tables = [name for name in errand.outputs if name not in graph.outputs]
    for part in _numbers(batches):
        telling, left = Telling(part), list[tuple[int, bytes]]()

        def work(told: Telling = telling, left: list[tuple[int, bytes]] = left) -> None:
            found = parts_of(graph, tables[0])
            assert found is not None  # noqa: S101 - by who made the plan
            copy = Copy(errand.program, graph, found, native=errand.native)
            with _written(errand, [name for name in errand.outputs if name in graph.outputs], told) as taken:
                copy.take(_items(errand, found.input, told), taken)
            left += copy.left()
            report = copy.report()
            told.fired += report.fired
            told.python |= {graph.instances[index].name for index in report.python} | {*+report.asked}

        _tried(errand, telling, work)
        shown_by = sorted({variable_of(graph, output) for output in tables})
        chunks = [(number, value) for number, value in left if number in shown_by]
        yield _exchange(part, [(number, 0, value) for number, value in chunks], telling, shown_by)


def united(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of the views of variables, of which the rows have the parts."""
    errand = _errand(text)
    graph = verified(errand.program)
    for number, rows in groupby(_rows(batches), lambda row: row.channel):
        chunks, tellings = _apart(rows)
        telling = _summed(errand, number, tellings)

        def work(
            told: Telling = telling, chunks: list[tuple[int, bytes]] = chunks, number: int = number
        ) -> None:
            for output in errand.outputs:
                if output not in graph.outputs and variable_of(graph, output) == number:
                    files = _shown(errand, graph, output, [part for _, part in chunks])
                    told.files += [(output, *file) for file in files]

        yield _told(_tried(errand, telling, work))


def scattered(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of parts of the inputs' files, divided among channels by their keys."""
    errand = _errand(text)
    for part in _numbers(batches):
        telling, chunks = Telling(part), list[tuple[int, int, bytes]]()

        def work(told: Telling = telling, chunks: list[tuple[int, int, bytes]] = chunks) -> None:
            name, _ = _whose(errand, told.part)
            type_ = verified(errand.program).queues[name].type
            assert isinstance(type_, t.Record)  # noqa: S101 - its fields are the keys
            keys = [place for key in errand.keys[name] if (place := type_.index(key)) is not None]
            split = splitter(type_, keys, errand.channels, rows=False)
            if split is None:
                raise _Refused("there is no machine code for the keys")
            for place, pieces in enumerate(_divided(_items(errand, name, told), split)):
                chunks.extend(
                    (channel, place, _stream(type_, records))
                    for channel, records in enumerate(pieces)
                    if records
                )

        _tried(errand, telling, work)
        yield _exchange(part, chunks, telling, range(errand.channels))


def gathered(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The outputs' rows for those of a channel, which come input by input, each in the order of its file."""
    errand = _errand(text)
    queues = verified(errand.program).queues
    for channel, rows in groupby(_rows(batches), lambda row: row.channel):
        chunks, tellings = _apart(rows)
        telling = _summed(errand, channel, tellings)

        def work(told: Telling = telling, chunks: list[tuple[int, bytes]] = chunks) -> None:
            if not chunks:
                return
            pa, ipc = arrow(), arrow("ipc")
            found: dict[str, list[Any]] = {name: [] for name in errand.files}
            for part, chunk in chunks:
                found[_whose(errand, part)[0]] += ipc.open_stream(pa.py_buffer(chunk))
            ends = [end for end in (told.last, errand.until) if end is not None]
            tables = {
                name: pa.Table.from_batches(parts, arrow_schema(queues[name].type))
                for name, parts in found.items()
            }
            _run(errand, tables, told, until=max(ends, default=None))

        yield _told(_tried(errand, telling, work))


# ------------------------------------------------------------------------------------------------------------ pieces


class _Refused(Exception):  # noqa: N818 - it says what was found
    """Why a task cannot do its errand, though nothing is wrong with the data."""


def _tried(errand: Errand, telling: Telling, work: Callable[[], None]) -> Telling:
    """What a task tells after its work, whatever came of it."""
    if not available():
        telling.refused = "llvmlite is not installed for it"
    unseen = (folder.path for folder in errand.folders.values() if not folder.seen())
    telling.unseen = telling.unseen or next(unseen, None)
    if telling.unseen is not None:
        telling.refused = "a folder is not there for it"
    if telling.refused is None:
        try:
            work()
        except Rejected as rejected:
            telling.refused = str(rejected)
        except _Refused as refused:
            telling.refused = str(refused)
    return telling


def _numbers(batches: Iterable[Any]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _items(errand: Errand, name: str, telling: Telling) -> Iterator[Batch]:
    """The items of a part, which is told of."""
    graph = verified(errand.program)
    queue = graph.queues[name]
    _, files = _whose(errand, telling.part)
    key, used = queue.key(), _used(graph, name)
    for batch in chain.from_iterable(read(file, queue, share, used) for file, share in files):
        if key is not None and len(batch):
            first = batch.number(key, 0)
            if telling.last is not None and first < telling.last:
                raise _Refused("its time stamps go back from one file to the next")
            telling.first = first if telling.first is None else telling.first
            telling.last = batch.number(key, len(batch) - 1)
        telling.rows += len(batch)
        yield batch


def _whose(errand: Errand, part: int) -> tuple[str, list[tuple[GivenFile, Share]]]:
    """The input that a part is of, and its file and which part of that it is, or its files: parts are counted through all."""
    for name, found in errand.files.items():
        for place, (file, of) in enumerate(found):
            if part < of:
                together = takewhile(lambda each: each[1] == 0, found[place + 1 :])
                return name, [(file, (part, of)), *((each, (0, 1)) for each, _ in together)]
            part -= of
    raise AssertionError


def _used(graph: Graph, name: str) -> frozenset[str] | None:
    """The fields of an input that anybody reads or gets; None: all of them."""
    queue = graph.queues[name]
    if queue.consumer is None or not isinstance(queue.type, t.Record):
        return None
    return needed(graph.instances[queue.consumer.instance])


def _run(errand: Errand, inputs: Mapping[str, Any], telling: Telling, until: int | None = None) -> None:
    """Runs the program, whose outputs go to files. Raises: Rejected."""
    files = {output: _place(errand, output) for output in errand.outputs}
    options = Options(
        workers=1,
        batch=errand.batch,
        native=errand.native,
        until=errand.until if until is None else until,
        externs={target: imported(target) for target in errand.externs},
    )
    of_files = {name for name, given in inputs.items() if isinstance(given, str | Files)}
    formats = {name: errand.files[name][0][0].format for name in of_files if isinstance(inputs[name], str)}
    job = Job(inputs, files, STOP, formats, lateness=errand.lateness, options=options)
    found = execute(ready(errand.program), "multicore", job)
    telling.files += [
        (output, *file) for output, target in files.items() for file in made(target, found.rows[output])
    ]
    telling.fired += Counter(found.summary.fired)
    telling.python |= {name for name, count in found.summary.host_calls.items() if count}
    if of_files:  # else they have been counted
        assert found.read is not None  # noqa: S101 - by this backend
        telling.rows = found.read


@contextmanager
def _written(
    errand: Errand, outputs: Iterable[str], telling: Telling
) -> Generator[Callable[[str, Piece], None]]:
    """What takes rows of outputs, which are told of when they are in files. Raises: Rejected."""
    queues = verified(errand.program).queues
    targets = {name: _place(errand, name) for name in outputs}
    writers: dict[str, tuple[Writer, Any]] = {}
    with ExitStack() as sinks:
        for name, target in targets.items():
            type_, folder = row_types(verified(errand.program))[name], errand.folders.get(name)
            opened = opened_sink(name, type_, target, None if folder is None else folder.format)
            writer = Writer(queues[name].type, CountedSink(sinks.enter_context(opened)))
            taken: Any = column_sink(writer)
            writers[name] = writer, taken

        def take(name: str, piece: Piece) -> None:
            if name in writers and len(piece.places):
                _, taken = writers[name]
                items: Any = piece.items
                columns = None if isinstance(items, list) else getattr(taken, "columns", None)
                if columns is None:
                    taken(piece.values())
                else:
                    columns(items)

        yield take
    telling.files += [
        (name, *file) for name, target in targets.items() for file in made(target, writers[name][0].sink.rows)
    ]


def _place(errand: Errand, output: str) -> str | Partitions:
    """A file of its own for each attempt of a task, or files."""
    folder = errand.folders.get(output)
    return _file(errand) if folder is None else folder.target()


def _file(errand: Errand) -> str:
    return f"{errand.folder}/{uuid4().hex}.arrow"


def _divided(batches: Iterable[Batch], split: Callable[[Piece], list[Piece]]) -> Iterator[list[list[Any]]]:
    """For each `ROWS` rows, about, the record batches of each channel."""
    held: list[list[Any]] = []
    count = 0
    for batch in batches:
        pieces = split(Piece(range(len(batch)), batch))
        held = held or [[] for _ in pieces]
        for records, piece in zip(held, pieces, strict=True):
            if len(piece.places):
                records.append(piece.items)
        count += len(batch)
        if count >= ROWS:
            yield held
            held, count = [], 0
    if held:
        yield held


def _stream(type_: t.Type, records: list[Any]) -> bytes:
    pa, ipc = arrow(), arrow("ipc")
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, arrow_schema(type_)) as writer:
        for batch in records:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _exchange(
    part: int, chunks: list[tuple[int, int, bytes]], telling: Telling, channels: Iterable[int]
) -> Any:
    """Rows as `EXCHANGE` says: the chunks with channel and place, and for each channel what the task tells.

    Counts and files are told once.
    """
    pa, bare = arrow(), evolve(telling, rows=0, fired=Counter(), python=set(), files=[])
    rows = [(channel, place, items, None) for channel, place, items in chunks]
    rows += [(channel, -1, None, (bare if n else telling).text()) for n, channel in enumerate(channels)]
    return pa.record_batch(
        [
            pa.array([channel for channel, _, _, _ in rows], pa.int32()),
            pa.array([part] * len(rows), pa.int32()),
            pa.array([place for _, place, _, _ in rows], pa.int32()),
            pa.array([items for _, _, items, _ in rows], pa.binary()),
            pa.array([text for _, _, _, text in rows], pa.string()),
        ],
        ["channel", "part", "place", "items", "told"],
    )


class _Sent(NamedTuple):
    """A row of an exchange: for which channel and of which part; a chunk, or what a task tells."""

    channel: int
    part: int
    items: bytes | None
    told: str | None


def _rows(batches: Iterable[Any]) -> Iterator[_Sent]:
    """The rows of an exchange."""
    for batch in batches:
        yield from map(_Sent, *(batch.column(name).to_pylist() for name in _Sent._fields))


def _told(telling: Telling) -> Any:
    """A row as `TOLD` says."""
    pa = arrow()
    return pa.record_batch([pa.array([telling.text()], pa.string())], ["told"])


def _apart(rows: Iterable[_Sent]) -> tuple[list[tuple[int, bytes]], list[Telling]]:
    """The chunks of a channel, each with its part, and what the tasks of all parts tell, in the order of the parts."""
    chunks: list[tuple[int, bytes]] = []
    tellings: list[Telling] = []
    for row in rows:
        if row.items is not None:
            chunks.append((row.part, row.items))
        if row.told is not None:
            tellings.append(Telling.read(row.told))
    return chunks, tellings


def _summed(errand: Errand, channel: int, tellings: list[Telling]) -> Telling:
    """What the tasks of all parts tell a channel, as one."""
    refused = next((each.refused for each in tellings if each.refused is not None), None)
    unseen = next((each.unseen for each in tellings if each.unseen is not None), None)
    for _, of_file in groupby(tellings, lambda each: _whose(errand, each.part)[0]):
        refused = refused or broken(of_file)
    found = Telling(channel, refused=refused, unseen=unseen)
    for each in tellings:
        found.rows += each.rows
        found.fired += each.fired
        found.python |= each.python
        found.files += each.files
    found.last = max((each.last for each in tellings if each.last is not None), default=None)
    return found


def broken(tellings: Iterable[Telling]) -> str | None:
    """What is wrong with the order of parts, which stand in that of the file; None if their keys ascend."""
    last: int | None = None
    for each in tellings:
        if each.first is not None and last is not None and each.first < last:
            return "the time stamps go back from one part of the file to another"
        last = last if each.last is None else each.last
    return None


def _shown(errand: Errand, graph: Graph, output: str, parts: list[bytes]) -> list[tuple[str, int]]:
    """The files with the rows of a view of a variable of which there are parts, and their number. Raises: Rejected for a trap."""
    table = shown(graph, output, parts)
    if (folder := errand.folders.get(output)) is not None:
        return folder.write(output, row_types(graph)[output], table.to_batches())
    pa, file = arrow(), _file(errand)
    with pa.OSFile(file, "wb") as opened, arrow("ipc").new_file(opened, table.schema) as writer:
        writer.write_table(table)
    return [(file, table.num_rows)]
