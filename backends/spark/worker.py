"""What runs inside Spark's Python processes: rows of pieces in, rows of pieces out, a report at the end.

Each function is the body of one `mapInArrow`; its first argument is a task as text. None of them raises for a trap: it
ends the work of the task and stands in the report, so that Spark does not try again what would trap again.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from backends.firing.instance import late_trap
from backends.native.batch import concat
from backends.spark import marshal, task
from backends.spark.columns import Columnwise, gathered, hashed, splitter
from backends.spark.compiled import compiled, variables
from backends.spark.marshal import Piece
from backends.spark.network import Network
from backends.spark.report import Caught, Report, united
from backends.spark.rowwise import Rowwise, Trapped
from river.classes import astuple, frozen
from river.io.schema import arrow
from river.lang import types as t
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.spark.task import Task

ROWS_PER_BATCH = 16


@frozen
class MarshalledRow:
    """A row as `marshal.COLUMNS` says."""

    queue: int
    chunk: int
    channel: int
    part: int
    at: bytes
    items: bytes
    marks: str


def ordered(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """An ordered stage; rows come by chunk, queue, part. It is the only task of its stage."""
    return _batches(_ordered(task.read(text), _rows(batches)))


def mapped(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """A stage of a map; the rows of one chunk and queue stand together."""
    return _batches(_mapped(task.read(text), _rows(batches)))


def scattered(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The first half of a keyed stage: what comes before the state, and which channel gets what."""
    return _batches(_scattered(task.read(text), _rows(batches)))


def keyed(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The second half of a keyed stage; rows come by channel, chunk."""
    return _batches(_keyed(task.read(text), _rows(batches)))


# ------------------------------------------------------------------------------------------------------------- rows


def _rows(batches: Iterable[Any]) -> Iterator[MarshalledRow]:
    for batch in batches:
        for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield MarshalledRow(*cells)


def _batches(rows: Iterable[MarshalledRow]) -> Iterator[Any]:
    """The rows as Arrow batches, a few in one."""
    held: list[MarshalledRow] = []
    for row in rows:
        held.append(row)
        if len(held) == ROWS_PER_BATCH:
            yield record_batch(held)
            held = []
    if held:
        yield record_batch(held)


def record_batch(rows: list[MarshalledRow]) -> Any:
    """The Arrow batch of some rows."""
    pa = arrow()
    kinds = [pa.int32(), pa.int64(), pa.int32(), pa.int32(), pa.binary(), pa.binary(), pa.string()]
    names = [column.partition(" ")[0] for column in marshal.COLUMNS.split(", ")]
    cells = zip(*map(astuple, rows), strict=True)
    return pa.record_batch([pa.array(c, k) for c, k in zip(cells, kinds, strict=True)], names)


def packed(
    number: int, type_: t.Type, chunk: int, piece: Piece, channel: int = 0, part: int = 0
) -> MarshalledRow:
    """The row of a piece of queue `number`."""
    return MarshalledRow(
        number,
        chunk,
        channel,
        part,
        marshal.place_bytes(piece.places),
        marshal.coder(type_).encode(piece.items),
        json.dumps(piece.marks) if piece.marks else "",
    )


def unpacked(type_: t.Type, row: MarshalledRow) -> Piece:
    """The piece of a row, as values."""
    items = marshal.coder(type_).decode(row.items)
    return Piece(marshal.read_places(row.at, len(items)), items, _marks(row))


def _marks(row: MarshalledRow) -> tuple[tuple[int, int], ...]:
    return tuple((place, key) for place, key in json.loads(row.marks)) if row.marks else ()


def together(type_: t.Type, rows: Iterable[MarshalledRow], *, deltas: bool, columns: bool) -> Piece:
    """What the rows of one turn and queue have, as values or as `columns`. `deltas`: they are parts of deltas."""
    if columns:
        return gathered(type_, [(row.at, row.items, _marks(row)) for row in rows], rows=deltas)
    return marshal.joined([unpacked(type_, row) for row in rows], rows=deltas)


def _written(
    work: Task, queue: str, chunk: int, piece: Piece, channel: int = 0, part: int = 0
) -> Iterator[MarshalledRow]:
    """The row of a piece, if there is anything in it."""
    if len(piece.places) or piece.marks:
        yield packed(work.number(queue), work.graph.queues[queue].type, chunk, piece, channel, part)


def _report(work: Task, report: Report) -> MarshalledRow:
    return MarshalledRow(marshal.REPORT - work.stage, -1, 0, 0, b"", b"", report.text(work.graph))


def _pieces(
    work: Task, rows: Iterable[MarshalledRow], columns: Callable[[str], bool]
) -> Iterator[tuple[int, str, Piece]]:
    """Chunk, queue, and all the elements of that chunk in that queue, in order, as `columns` where that is wanted."""
    for (chunk, number), group in groupby(rows, lambda row: (row.chunk, row.queue)):
        queue = work.queue(number)
        type_ = work.graph.queues[queue].type
        deltas = work.joins.get(queue, False)
        yield chunk, queue, together(type_, group, deltas=deltas, columns=columns(queue)).whole()


# ------------------------------------------------------------------------------------------------------ map, channels


class Chain:
    """Instances without state, each fired on what the one before it has made of a piece."""

    def __init__(self, work: Task, report: Report) -> None:
        self.code = code = compiled(work, work.prefix)
        report.missing = code.missing
        variables(work.graph, code.native)
        initial = {v.name: v.initial for v in work.graph.variables}
        self.steps: dict[str, Rowwise | Columnwise] = {}
        for instance in (work.graph.instances[i] for i in work.prefix):
            native = code.native.get(instance.index)
            if native is not None:
                step = Columnwise(instance, native, report, skip=work.skip, counted=False)
            else:
                values = [initial[name] for name in instance.variables]
                step = Rowwise(instance, values, report, skip=work.skip)
            self.steps[instance.ins[0]] = step

    def columns(self, queue: str) -> bool:
        """Whether columns are what to read of a queue."""
        return isinstance(self.steps.get(queue), Columnwise)

    def __call__(self, chunk: int, queue: str, piece: Piece) -> Iterator[tuple[str, Piece]]:
        """The queues that leave the chain, with what leaves. Raises: Trapped."""
        step = self.steps.get(queue)
        if step is None:
            yield queue, piece.whole()
            return
        for out, made in zip(step.instance.outs, step(chunk, piece), strict=True):
            yield from self(chunk, out, made)


def _mapped(work: Task, rows: Iterable[MarshalledRow]) -> Iterator[MarshalledRow]:
    report = Report()
    chain = Chain(work, report)
    for chunk, queue, piece in _pieces(work, rows, chain.columns):
        try:
            for out, made in chain(chunk, queue, piece):
                yield from _written(work, out, chunk, made)
        except Trapped as trapped:
            report.traps.append(trapped.caught)
    chain.code.tell(report, work.graph)
    yield _report(work, report)


def _scattered(work: Task, rows: Iterable[MarshalledRow]) -> Iterator[MarshalledRow]:
    report = Report()
    chain = Chain(work, report)
    by_value = _split_rows(work) if work.rows else _split_items(work)
    by_column = None if work.native == "off" or report.missing else _split_columns(work)
    alone = by_column is not None and not work.prefix  # nothing is fired before the items are divided
    for chunk, queue, piece in _pieces(work, rows, lambda queue: alone or chain.columns(queue)):
        try:
            for out, made in chain(chunk, queue, piece):
                split = by_value if by_column is None or isinstance(made.items, list) else by_column
                for channel, part in enumerate(split(made)):
                    yield from _written(work, out, chunk, part, channel)
        except Trapped as trapped:
            report.traps.append(trapped.caught)
    chain.code.tell(report, work.graph)
    yield _report(work, report)


def _channel(work: Task, type_: t.Type) -> Callable[[Any], int]:
    """The channel of an item or row, by the hash of its key."""
    assert isinstance(type_, t.Record)  # noqa: S101 - it has the fields of the key
    return hashed(
        type_, [place for name in work.keys if (place := type_.index(name)) is not None], work.channels
    )


def _entry(work: Task) -> t.Type:
    """The type of the items that the keyed instance reads."""
    assert work.last is not None  # noqa: S101 - the stage is keyed
    return work.graph.instances[work.last].operator.ports[0].type


def _split_columns(work: Task) -> Callable[[Piece], list[Piece]] | None:
    """What divides columns, if machine code can."""
    entry = _entry(work)
    row = t.parts(t.parts(entry)[1])[0] if work.rows else entry
    assert isinstance(row, t.Record)  # noqa: S101 - it has the fields of the key
    places = [place for name in work.keys if (place := row.index(name)) is not None]
    return splitter(entry, places, work.channels, rows=work.rows)


def _split_items(work: Task) -> Callable[[Piece], list[Piece]]:
    channel = _channel(work, _entry(work))

    def split(piece: Piece) -> list[Piece]:
        found: list[tuple[list[int], list[Any]]] = [([], []) for _ in range(work.channels)]
        for place, item in zip(piece.places, piece.values(), strict=True):
            places, items = found[channel(item)]
            places.append(place)
            items.append(item)
        return [Piece(places, items, piece.marks) for places, items in found]

    return split


def _split_rows(work: Task) -> Callable[[Piece], list[Piece]]:
    """Each delta is divided by the keys of its rows; one without rows goes to the first channel (il.md P3)."""
    entry = _entry(work)
    rows = t.parts(entry)[1]
    channel = _channel(work, t.parts(rows)[0])

    def split(piece: Piece) -> list[Piece]:
        found: list[tuple[list[int], list[Any]]] = [([], []) for _ in range(work.channels)]
        for place, (tau, inserted, deleted) in zip(piece.places, piece.values(), strict=True):
            parts: dict[int, tuple[list[Any], list[Any]]] = {}
            for side, side_rows in enumerate((inserted, deleted)):
                for row in side_rows:
                    parts.setdefault(channel(row), ([], []))[side].append(row)
            for number, (ins, dels) in (parts or {0: ([], [])}).items():
                places, items = found[number]
                places.append(place)
                items.append((tau, tuple(ins), tuple(dels)))
        return [Piece(places, items, piece.marks) for places, items in found]

    return split


def _keyed(work: Task, rows: Iterable[MarshalledRow]) -> Iterator[MarshalledRow]:
    reports: list[Report] = []
    initial = {v.name: v.initial for v in work.graph.variables}
    assert work.last is not None  # noqa: S101 - the stage is keyed
    instance = work.graph.instances[work.last]
    for (told, channel), group in groupby(rows, lambda row: (row.queue < 0, row.channel)):
        if told:
            yield from group  # what the first half has to say
            continue
        code = compiled(work, (work.last,))
        native = code.native.get(work.last)
        report = Report(missing=code.missing)
        reports.append(report)
        if native is None:
            values = [initial[name] for name in instance.variables]
            step = Rowwise(instance, values, report, skip=False)
        else:
            variables(work.graph, {work.last: native})
            step = Columnwise(instance, native, report, skip=False, counted=True)
        for (chunk, number), same in groupby(group, lambda row: (row.chunk, row.queue)):
            type_ = work.graph.queues[work.queue(number)].type
            try:
                made = step(chunk, together(type_, same, deltas=False, columns=native is not None))
            except Trapped as trapped:
                report.traps.append(trapped.caught)
                break
            for out, piece in zip(instance.outs, made, strict=True):
                once = (
                    piece if channel == 0 else Piece(piece.places, piece.items)
                )  # all channels saw the marks
                yield from _written(work, out, chunk, once, part=channel)
        code.tell(report, work.graph)
        report.keep(work.graph, instance.variables, step.variables)
    yield _report(work, united(work.graph, reports))


# ----------------------------------------------------------------------------------------------------------- ordered


def _ordered(work: Task, rows: Iterable[MarshalledRow]) -> Iterator[MarshalledRow]:
    report = Report()
    network = Network(work, report)
    guards = {queue: _Guard(work, queue, report) for queue in work.guarded}
    last = -1
    for chunk, group in groupby(_pieces(work, rows, network.columns), lambda found: found[0]):
        last = chunk
        for _, queue, piece in group:
            network.feed(queue, piece)
        network.settle()
        yield from _left(work, network, guards, chunk)
        if network.caught:
            break
    else:
        for queue in work.ins:
            network.end(queue)
        network.settle()
        yield from _left(work, network, guards, last + 1)
    report.traps += network.caught
    network.close()
    network.code.tell(report, work.graph)
    yield _report(work, report)


def _left(work: Task, network: Network, guards: dict[str, _Guard], chunk: int) -> Iterator[MarshalledRow]:
    """The rows of what has left the network."""
    for queue in work.outs:
        runs: list[Any] = []
        marks: list[tuple[int, int]] = []
        guard = guards.get(queue)
        count = 0
        for found in network.taken(queue):
            if isinstance(found, Mark):
                if found != END and (guard is None or guard.passes(found, chunk)):
                    marks.append((count, found.key))
            else:
                run = found if guard is None else guard.passed(found, chunk)
                runs.append(run)
                count += len(run)
        yield from _written(work, queue, chunk, Piece(range(count), _joined(runs), tuple(marks)))


def _joined(runs: list[Any]) -> Any:
    """The items of several runs: as values if any run has values."""
    if runs and not any(isinstance(run, list) for run in runs):
        return concat(runs)
    return [item for run in runs for item in marshal.values_of(run)]


class _Guard:
    """Sees that the keys of a queue ascend, for a consumer in many places; from the first that falls it is shut."""

    def __init__(self, work: Task, queue: str, report: Report) -> None:
        found = work.graph.queues[queue]
        end = found.consumer
        assert end is not None  # noqa: S101 - it is read by a stage
        self.consumer = work.graph.instances[end.instance]
        self.key = found.key() if self.consumer.operator.ports[end.position].by is not None else None
        self.position = end.position
        self.report = report
        self.last: Any = None
        self.promised: Any = None
        self.shut = False

    def passed(self, run: Any, chunk: int) -> Any:
        """The items at the start of a run that the consumer may have."""
        if self.key is None:
            return run
        if self.shut:
            return []
        if isinstance(run, list):
            return [item for item in marshal.values_of(run) if self.passes(item, chunk)]
        least = max((b for b in (self.promised, self.last) if b is not None), default=None)
        at = run.fall(self.key, least)
        good = run if at is None else run[:at]
        if len(good):
            self.last = good.number(self.key, len(good) - 1)
        if at is not None:
            self.passes(run[at : at + 1].values()[0], chunk)
        return good

    def passes(self, element: Any, chunk: int) -> bool:
        """Whether the consumer may have the element."""
        if self.key is None:
            return True
        if self.shut:
            return False
        mark = isinstance(element, Mark)
        key: Any = element.key if mark else element[self.key]
        bounds = [b for b in (self.promised, None if mark else self.last) if b is not None]
        if bounds and key < max(bounds):
            self.shut = True
            trap = late_trap(self.consumer.operator, self.position, self.key, element, max(bounds))
            self.report.traps.append(Caught(trap, self.consumer.index, chunk, late=True))
            return False
        if mark:
            self.promised = key
        else:
            self.last = key
        return True
