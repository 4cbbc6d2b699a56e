"""What tasks do for an epoch: they run the program on what came, from the state that the epoch before left.

They are bodies of `mapInArrow`; their first argument is the errand as text. Where the inputs are divided by key one task reads
what came and divides it, or several read portions of it, and one for each channel runs the program for the groups of keys that
are its own (`channels`). Where rows are taken one by one, or accumulated, each task has a share of what came and a state of its
own (`apart`). Files of outputs and the state get names that carry epoch, channel and attempt, and nothing is renamed: what a task
has written counts when the driver's manifest names it, and never otherwise, however late the task comes. Nothing is raised for
rows that are wrong or for a trap, which would come again.

Paper: River §4.6.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, suppress
from functools import lru_cache
from functools import partial as partial_
from importlib import import_module
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from backends.spark.channels import (
    Divider,
    in_order,
    items_of,
    machine_code,
    ordered,
    read_groups,
    read_named,
    write_groups,
    write_named,
)  # fmt: skip
from backends.spark.delivery import hand_over
from backends.spark.errands import EpochErrand, EpochTelling
from backends.spark.kernels import combined, instant, ready, runs, tagged
from backends.spark.parts import GivenFile, portions
from backends.spark.parts import read as read_part
from backends.spark.sequels import Sequel, in_any_order
from river import plugins
from river.backend import Options
from river.checkpoint import Checkpoint, Keeper, Snapshot
from river.classes import evolve
from river.diagnostics import Diagnostic, Rejected
from river.driver import CountedSink, Job, Writer, open_input, row_types, trap_diagnostic, traps_told, wholes
from river.il.combine import start
from river.il.partial import Partial, partial
from river.io import deltas
from river.io.atomic import settle_folder
from river.io.errors import OnError, Refusals, unwritable
from river.io.folders import FORMATS, Partitions
from river.io.packed import Damaged
from river.io.partitions import PartitionedSink
from river.io.schema import arrow
from river.io.sinks import Collector, open_sink
from river.lang import types as t
from river.lang.evaluate import Trap
from river.part import Part
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from backends.spark.task import ShippedProgram
    from river.backend import Items, Rows, Summary
    from river.driver import Compiled
    from river.il.graph import Graph
    from river.io.columnar import Share

__all__ = [
    "apart",
    "apart_of_streams",
    "channel",
    "drop",
    "epoch",
    "of_shares",
    "read",
    "read_portions",
    "read_streams",
]

STATE: Final = ".state"
ORDER: Final = ".order"


# ------------------------------------------------------------------------------------------------------------- tasks


@contextmanager
def _came(work: _Work, given: list[Any]) -> Generator[_Reading]:
    """What came in one epoch, of which it is kept how far it was read if all went well."""
    reading = _Reading(work, _tuned(work.errand), given if work.errand.streamed else [])
    reading.open()
    try:
        yield reading
    finally:
        reading.close()
    reading.keep()


def epoch(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs the program on what came in one epoch; what there is to tell of it. All channels are in this task, if there are any.

    The batches are the rows of inputs that are streams, tagged by input and in order, where the errand says so.
    """
    errand = EpochErrand.read(text)
    if errand.keys:
        yield from channel(text, read(text, batches))
        return
    given = list(batches)
    work = _Work(errand)

    with work.trying(), _came(work, given) as reading:
        work.run_whole(reading.sequels | reading.relations)
    yield work.told()


def apart(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs the program on shares of what came, whose numbers are given, each from the state that belongs to it.

    Where anything is wrong in one, all is to be read again: what is wrong is for one task to say, which reads all in order.
    """
    errand = EpochErrand.read(text)
    (name,) = _tuned(errand).graph.inputs
    pieces = portions(errand.files, errand.portion)
    for number in (int(each) for batch in batches for each in batch.column(0).to_pylist()):
        first, behind = (len(pieces) * each // errand.channels for each in (number, number + 1))
        ours = [(file, share) for found in pieces[first:behind] for _, file, share in found]
        yield _share(errand, number, partial_(_portion, errand, name, ours))


def apart_of_streams(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The same of rows of a stream: the number of a share is that of its partition."""
    errand = EpochErrand.read(text)
    context: Any = import_module("pyspark").TaskContext.get()

    def rows(telling: EpochTelling) -> Iterator[Items | Rows]:
        for table in runs(batches):
            for name, found in tagged(_tuned(errand).graph, table.to_batches(), errand.streamed).items():
                yield from _of_stream(errand, name, found, telling)

    yield _share(errand, context.partitionId(), rows)


def _share(errand: EpochErrand, number: int, rows: Callable[[EpochTelling], Iterator[Items | Rows]]) -> Any:
    """Runs the program on a share of the rows of its only input."""
    (name,) = _tuned(errand).graph.inputs
    work = _Work(errand, EpochTelling(number))
    well = False
    with work.trying():
        work.run_whole({name: rows(work.telling)})
        well = True
    if not well:
        work.telling = EpochTelling(number, again=True)
    return work.told()


def of_shares(errand: EpochErrand, tellings: Iterable[EpochTelling]) -> EpochTelling:
    """What the tasks tell that have shares, as one; keeps how far the inputs have been read."""
    in_order = sorted(tellings, key=lambda each: each.channel)
    work = _Work(errand)
    with work.trying():
        work.join(in_order)
    for each in in_order:
        work.telling.add(each)
    return work.telling


def drop(errand: EpochErrand, tellings: Iterable[EpochTelling]) -> None:
    """Removes what tasks have written that does not count."""
    for each in tellings:
        files = [
            Path(errand.outputs[name][0]) / file for name, found in each.files.items() for file, _ in found
        ]
        files += [Path(errand.states) / file for file, _ in each.states]
        for path in files:
            with suppress(OSError):  # what stays is removed when the run goes on
                path.unlink(missing_ok=True)


def read(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The rows that came in one epoch, in the order in which they count, as chunks for groups of keys: rows as `EXCHANGE` says.

    `part` is the task that read them, `place` tells order, group and input. All channels are told the same.
    """
    errand = EpochErrand.read(text)
    given = list(batches)
    work = _Work(errand)
    with work.trying(), _came(work, given) as reading:
        counts = Counter[int]()
        for name, sequel in reading.sequels.items():
            yield from _chunks(errand, 0, counts, name, sequel)
    yield from _to_all(errand, 0, work.telling)


def read_portions(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The same of portions of the files, whose numbers are given. Where anything is wrong in one, all is to be read again.

    What is wrong then, and where, and what becomes of it, is so for one task to say, which reads all in order.
    """
    errand = EpochErrand.read(text)
    for part in (int(number) for batch in batches for number in batch.column(0).to_pylist()):
        telling, counts = EpochTelling(), Counter[int]()
        try:
            pieces = portions(errand.files, errand.portion)[part]
            for name in dict.fromkeys(name for name, _, _ in pieces):
                ours = [(file, share) for input_, file, share in pieces if input_ == name]
                yield from _chunks(errand, part, counts, name, _portion(errand, name, ours, telling))
        except Rejected:
            telling.again = True
        yield from _to_all(errand, part, telling)


def read_streams(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The same of rows of streams as one task of Spark has them: in no order, in which the channels put them.

    They stay rows of the DataFrame, since that may have columns that the program has not, and that put rows in order.
    """
    errand = EpochErrand.read(text)
    graph = _tuned(errand).graph
    context: Any = import_module("pyspark").TaskContext.get()
    part = context.partitionId()
    telling, counts = EpochTelling(), Counter[int]()
    try:
        for table in runs(batches):
            for name, found in tagged(graph, table.to_batches(), errand.streamed).items():
                rows = _divider(errand, name).places(_of_stream(errand, name, found, telling))
                for group, places in enumerate(rows):
                    if len(places):
                        yield _row_for(errand, part, counts, name, group, _as_bytes(found.take(places)))
    except Rejected:
        telling.again = True
    yield from _to_all(errand, part, telling)


def _of_stream(errand: EpochErrand, name: str, table: Any, telling: EpochTelling) -> Iterator[Items | Rows]:
    """The rows of a stream in a table, in no order; it is told how many there are, and from when to when. Raises: Rejected."""
    queue = _tuned(errand).graph.queues[name]
    for batch in in_any_order(queue, table, native=machine_code(errand.native), batch=errand.batch):
        telling.read[name] = telling.read.get(name, 0) + len(batch)
        yield batch
    if queue.by is not None and table.num_rows:  # behind what finds stamps that are none
        ends = arrow("compute").min_max(table.column(queue.by))
        first, last = instant(ends["min"]), instant(ends["max"])
        begun, given = telling.reached.get(name, (first, last))
        assert begun is not None  # noqa: S101 - it was told here
        assert given is not None  # noqa: S101 - likewise
        telling.reached[name] = min(begun, first), max(given, last)


def _as_bytes(table: Any) -> bytes:
    pa = arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _put_in_order(errand: EpochErrand, name: str, chunks: Sequence[bytes]) -> list[Any]:
    """The rows of a stream that a group has, out of what several tasks have read."""
    pa = arrow()
    table = pa.concat_tables([pa.ipc.open_stream(chunk).read_all() for chunk in chunks])
    found = ordered(table, errand.orders[name])
    queue = _tuned(errand).graph.queues[name]
    return [*in_any_order(queue, found, native=machine_code(errand.native), batch=errand.batch)]


def _portion(
    errand: EpochErrand, name: str, pieces: Sequence[tuple[GivenFile, Share]], telling: EpochTelling
) -> Iterator[Items | Rows]:
    """The rows of one input in parts of its files, of which it is told how many there are, and from when to when."""
    queue = _tuned(errand).graph.queues[name]
    key = queue.key()
    for file, share in pieces:
        for batch in (each for each in read_part(file, queue, share) if len(each)):
            if key is None:
                telling.read[name] = telling.read.get(name, 0) + len(batch)
                yield batch
                continue
            first, last = batch.number(key, 0), batch.number(key, len(batch) - 1)
            begun, given = telling.reached.get(name, (first, first))
            telling.again = telling.again or (given is not None and first < given)
            telling.reached[name] = begun, last
            telling.read[name] = telling.read.get(name, 0) + len(batch)
            yield batch


def _chunks(
    errand: EpochErrand, part: int, counts: Counter[int], name: str, batches: Iterable[Items | Rows]
) -> Iterator[Any]:
    """The rows of an input, divided. `counts`: how many chunks each group has been sent by this task."""
    for group, chunk in _divider(errand, name).chunks(batches):
        yield _row_for(errand, part, counts, name, group, chunk)


def _divider(errand: EpochErrand, name: str) -> Divider:
    """What divides the rows of an input by the groups of their keys."""
    type_ = _tuned(errand).graph.queues[name].type
    assert isinstance(type_, t.Record)  # noqa: S101 - its fields are the keys
    keys = tuple(place for key in errand.keys[name] if (place := type_.index(key)) is not None)
    return Divider(type_, keys, errand.groups, machine_code(errand.native))


def _row_for(
    errand: EpochErrand, part: int, counts: Counter[int], name: str, group: int, chunk: bytes
) -> Any:
    """The row that brings a chunk to the channel of a group; its place says what it is."""
    inputs = _tuned(errand).graph.inputs
    place = (counts[group] * errand.groups + group) * len(inputs) + inputs.index(name)
    counts[group] += 1
    return _sent(group % errand.channels, part, place, chunk)


def _to_all(errand: EpochErrand, part: int, telling: EpochTelling) -> Iterator[Any]:
    """What a task that read tells all channels."""
    text = telling.text()
    for number in range(errand.channels):
        yield _sent(number, part, -1, None, text)


def _sent(number: int, part: int, place: int, chunk: bytes | None, telling: str | None = None) -> Any:
    """A batch of one row: together they may have more bytes than a column of Arrow's takes."""
    pa = arrow()
    numbers = [pa.array([each], pa.int32()) for each in (number, part, place)]
    return pa.record_batch(
        [*numbers, pa.array([chunk], pa.binary()), pa.array([telling], pa.string())], _SENT
    )


_SENT: Final = ["channel", "part", "place", "items", "told"]


def channel(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs the program for the groups of channels, on the rows that `read` gives."""
    errand = EpochErrand.read(text)
    rows: Iterator[tuple[Any, ...]] = (
        row for batch in batches for row in zip(*map(_cells, batch.columns), strict=True)
    )
    for number, found in groupby(rows, lambda row: row[0]):
        tables: dict[int, dict[str, list[Any]]] = {}
        tellings: list[EpochTelling] = []
        for _, _, place, chunk, said in found:
            if said is None:
                graph = _tuned(errand).graph
                before, input_ = divmod(int(place), len(graph.inputs))
                name = graph.inputs[input_]
                items = chunk
                if not errand.orders:
                    items = items_of(graph.queues[name].type, chunk, native=machine_code(errand.native))
                tables.setdefault(before % errand.groups, {}).setdefault(name, []).append(items)
            else:
                tellings.append(EpochTelling.read_text(said))
        work = _Work(errand, EpochTelling(number))
        with work.trying():
            if errand.several:
                work.join(tellings)
            else:
                (work.telling,) = tellings
                work.telling.channel, work.telling.held = number, 0 if number else work.telling.held
            if errand.orders and not work.telling.again:
                for group, chunks in tables.items():
                    tables[group] = {name: _put_in_order(errand, name, ours) for name, ours in chunks.items()}
            work.run_groups(tables)
        yield work.told()


def _cells(column: Any) -> list[Any]:
    return column.to_pylist()


@lru_cache(maxsize=16)
def _tuned_for(program: ShippedProgram) -> Compiled:
    platform: Any = plugins.backend("multicore")
    return ready(program).tuned(Options().through(platform), here(1))


def _tuned(errand: EpochErrand) -> Compiled:
    """The program as it runs in a task: on one core; with the operators whose variables the plan has found to be combined."""
    return ready(errand.program) if errand.shares else _tuned_for(errand.program)


class _PartKeeper(Keeper):
    """Takes the state when all that an epoch brought has been dealt with."""

    def __init__(self, folder: str, part: Part, found: Snapshot | None) -> None:
        super().__init__(Checkpoint(folder), {}, part=part)
        self.found = found
        self.left: Snapshot | None = None

    @property
    def due(self) -> bool:
        return False

    def save(self, state: Snapshot, **_: Any) -> None:
        self.left = state


class _Reading:
    """What came of the inputs in an epoch, in order, from where the epoch before left off."""

    def __init__(self, work: _Work, compiled: Compiled, rows: list[Any]) -> None:
        errand, graph = work.errand, compiled.graph
        self.work = work
        self.graph = graph
        self.refusals = Refusals(self._policy())
        tables = tagged(graph, rows, errand.streamed)
        relations = wholes(graph.program)
        self.sequels = {
            name: Sequel(
                graph.queues[name],
                [tables[name]] if name in tables else errand.files.get(name, ()),
                self.refusals,
                errand.lateness,
                last=name not in errand.more,
                native=machine_code(errand.native),
                batch=errand.batch,
                count=self._counting(name),
            )
            for name in graph.inputs
            if name not in relations
        }
        self.relations = {name: self._relation(name, tables) for name in relations}

    def open(self) -> None:
        """Stands where the epoch before left off. Raises: Rejected."""
        errand = self.work.errand
        if errand.order is not None:
            header, data = self.work.before(errand.order, read_named)
            state = Snapshot({}, bytearray(data))
            for name, (top, given, waiting) in header["orders"].items():
                each = self.sequels[name]
                each.top, each.given = top, given
                each.waiting = state.get(self.graph.queues[name].type, waiting)
        for found in errand.files.values():
            for file in found:
                file.check()

    def close(self) -> None:
        """Nothing more is read."""
        self.refusals.close()

    def keep(self) -> None:
        """Writes how far the inputs have been read, and tells of it. Raises: Rejected."""
        work, telling = self.work, self.work.telling
        telling.refusals = self.refusals.counts()
        if self.refusals.policy.path is not None:
            letters = Path(self.refusals.policy.path)
            with letters.open("rb") as file:
                work.settle(letters, file, keep=bool(telling.refusals))
            telling.letters = letters.name if telling.refusals else None
        found, orders = Snapshot(), dict[str, Any]()
        for name, each in self.sequels.items():
            orders[name] = [each.top, each.given, found.put(self.graph.queues[name].type, each.waiting)]
            telling.reached[name] = each.top, each.given
            telling.held += len(each.waiting)
        if work.errand.more:
            telling.order = work.write(ORDER, lambda path: write_named(path, {"orders": orders}, found.data))[
                0
            ]

    def _relation(self, name: str, tables: Mapping[str, Any]) -> Iterator[Items]:
        """All rows of an input as one item, which comes with the first epoch."""
        errand = self.work.errand
        if errand.number:
            return
        file = next(iter(errand.files.get(name, ())), None)
        if file is None:
            job = Job({name: tables.get(name, [])}, {}, self.refusals.policy)
        else:
            job = Job({name: file.path}, {}, self.refusals.policy, {name: file.format})
        for items in open_input(self.graph, name, job, self.refusals, None):
            self._counting(name)(sum(map(len, items)))
            yield items

    def _policy(self) -> OnError:
        errand = self.work.errand
        if errand.on_error != "dead-letter" or errand.letters is None:
            return OnError(errand.on_error)
        return OnError("dead-letter", str(self.work.place(errand.letters, ".jsonl")))

    def _counting(self, name: str) -> Callable[[int], None]:
        read = self.work.telling.read

        def count(rows: int) -> None:
            read[name] = read.get(name, 0) + rows

        return count


class _Work:
    """One attempt at an epoch, or at one channel of it."""

    def __init__(self, errand: EpochErrand, telling: EpochTelling | None = None) -> None:
        self.errand = errand
        self.telling = telling or EpochTelling()
        self.attempt = uuid4().hex[:16]
        self._written: list[Path] = []
        self._files: dict[str, Any] = {}
        self._divided: dict[str, tuple[PartitionedSink, Partitions]] = {}
        self._count_of_names = count()
        self._trapped: list[Diagnostic] = []

    def told(self) -> Any:
        """What there is to tell, as the only row of a batch."""
        pa = arrow()
        return pa.record_batch([pa.array([self.telling.text()], pa.string())], ["told"])

    @contextmanager
    def trying(self) -> Generator[None]:
        """Work that is told of. Where anything is wrong nothing is left behind."""
        try:
            yield
        except Rejected as rejected:
            self.give_up()
            self.telling = EpochTelling(self.telling.channel, refused=rejected.diagnostics)
        except BaseException:
            self.give_up()
            raise

    def place(self, folder: str, suffix: str) -> Path:
        """A file of this attempt."""
        found = Path(folder) / self.errand.name(self.telling.channel, self.attempt, suffix)
        self._written.append(found)
        return found

    def give_up(self) -> None:
        """Leaves nothing behind."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        for sink, target in self._divided.values():
            with suppress(OSError, Rejected):
                sink.abort()
            begun = self.errand.name(self.telling.channel, self.attempt[:8], "")
            self._written += Path(target.root).rglob(f"{begun}*")
        for path in self._written:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def join(self, tellings: Iterable[EpochTelling]) -> None:
        """What the tasks tell that read portions, in their order, as if one had read all. Raises: Rejected.

        Those of files go on where the one before ended, those of streams where the epoch before did. The first channel writes
        how far the inputs have been read. No row waits for others: then one task reads.
        """
        errand, telling = self.errand, self.telling
        queues = {name: _tuned(errand).graph.queues[name] for name in _tuned(errand).graph.inputs}
        before: dict[str, list[Any]] = {}
        if errand.order is not None:
            before = self.before(errand.order, read_named)[0]["orders"]
        for name in queues:
            top, given, *_ = before.get(name, (None, None))
            telling.reached[name] = top, given
        began = dict(telling.reached)
        for each in tellings:
            telling.again = telling.again or each.again
            for name, (first, last) in each.reached.items():
                given = (began if errand.orders else telling.reached)[name][1]
                telling.again = telling.again or (given is not None and first is not None and first < given)
                reached = telling.reached[name][1]
                if last is not None and (reached is None or not errand.orders or last > reached):
                    telling.reached[name] = last, last
            for name, rows in each.read.items():
                telling.read[name] = telling.read.get(name, 0) + rows
        if errand.more and not telling.channel and not telling.again:
            none = Snapshot()
            orders = {
                name: [*telling.reached[name], none.put(queue.type, [])] for name, queue in queues.items()
            }
            telling.order, _ = self.write(
                ORDER, lambda path: write_named(path, {"orders": orders}, none.data)
            )

    # -- the program

    def run_whole(self, sources: Mapping[str, Any]) -> None:
        """Runs the program on all rows of sources, as they are read. Raises: Rejected."""
        errand, graph = self.errand, _tuned(self.errand).graph
        sinks = {name: self._sink(name, type_) for name, type_ in row_types(graph).items()}
        begun = self._accumulated() if errand.shares == "tables" else None
        if begun is None:
            found = self._groups_before([0]).get(0)
        else:
            found, graph = begun
        left = self._ran(found, sources, sinks, Part(frozenset(errand.more)), graph=graph)
        for sink in sinks.values():
            sink.sink.close()
        self._tell(sinks)
        if errand.shares != "rows" or not errand.more:  # of rows that are taken one by one nothing is left
            self._keep({0: left})

    def _accumulated(self) -> tuple[Snapshot | None, Graph]:
        """The state that a channel goes on from, and the program whose variables begin with what is neutral, if it has none.

        The states of the epoch before are dealt to the channels, whatever their number was: those of one are combined.
        Raises: Rejected.
        """
        errand, number = self.errand, self.telling.channel
        graph = _tuned(errand).graph
        found = partial(graph, graph.inputs[0])
        assert isinstance(found, Partial)  # noqa: S101 - by who made the plan
        ours = errand.before[number :: errand.channels]
        states = [self.before(path, read_groups)[0] for path in ours]
        if len(states) > 1:
            return self._combined(graph, found, states), graph
        if not states and number:  # the first one begins with what the variables have
            hows = dict(found.combined)
            graph = evolve(
                graph,
                variables=tuple(
                    evolve(each, initial=start(hows[each.name], each.type, each.initial))
                    if each.name in hows
                    else each
                    for each in graph.variables
                ),
            )
        return (states[0] if states else None), graph

    def _combined(self, graph: Graph, found: Partial, states: Sequence[Snapshot]) -> Snapshot:
        """States as one. Nothing of them differs but what operators have accumulated. Raises: Rejected."""
        whole = Snapshot({**states[0].fields}, bytearray(states[0].data))
        whole.fields["variables"] = {**whole.fields["variables"]}
        types = {each.name: each.type for each in graph.variables}
        for name, _ in found.combined:
            references = [state.fields["variables"][name] for state in states]
            values = [state.get(types[name], each)[0] for state, each in zip(states, references, strict=True)]
            with traps_told():
                value = combined(graph, found, name, values, sum(size for _, size, _ in references))
            whole.fields["variables"][name] = whole.put(types[name], [value])
        return whole

    def run_groups(self, tables: Mapping[int, Mapping[str, list[Any]]]) -> None:
        """Runs the program on the rows of each group that ever had some. Raises: Rejected."""
        errand, telling = self.errand, self.telling
        if telling.refused or telling.again:
            return
        graph, types = _tuned(errand).graph, row_types(_tuned(errand).graph)
        mine = range(telling.channel, errand.groups, errand.channels)
        before = self._groups_before(mine)
        reached = {name: given for name, (_, given) in telling.reached.items() if given is not None}
        tops = [top for top, _ in telling.reached.values() if top is not None]
        last = max((each for each in (*tops, errand.until) if each is not None), default=None)
        logs: dict[str, list[Any]] = {name: [] for name in graph.outputs}
        left: dict[int, Snapshot] = {}
        for group in (each for each in mine if each in before or each in tables):
            kept = {name: Collector(types[name]) for name in graph.outputs}
            left[group] = self._ran(
                before.get(group),
                tables.get(group, {}),
                {name: CountedSink(found) for name, found in kept.items()},
                Part(frozenset(errand.more), reached=reached),
                until=last,
            )
            for name, found in kept.items():
                table = found.table()
                if table.num_rows:
                    logs[name].append(table)
        sinks = {name: self._sink(name, types[name]) for name, tables in logs.items() if tables}
        for name, sink in sinks.items():
            hand_over(Writer(types[name], sink), in_order(logs[name]).combine_chunks().to_batches())
            sink.sink.close()
        self._tell(sinks)
        self._keep(left)

    def _ran(
        self,
        found: Snapshot | None,
        sources: Mapping[str, Any],
        sinks: Mapping[str, CountedSink],
        part: Part,
        until: int | None = None,
        graph: Graph | None = None,
    ) -> Snapshot:
        """Runs the program from a state on; what it leaves, or, behind the last epoch, its variables. Raises: Rejected."""
        errand, telling = self.errand, self.telling
        platform: Any = plugins.backend("multicore")
        graph = _tuned(errand).graph if graph is None else graph
        keeper = _PartKeeper(errand.states, part, found)
        skip = None if errand.on_error == "stop" else self._trapped.append
        writers = {n: Writer(graph.queues[n].type, sinks[n]) for n in graph.outputs}
        views = {
            v.name: sinks[v.name].write if deltas.is_delta(v.type) else Writer(v.type, sinks[v.name])
            for v in graph.views
        }
        options = evolve(errand.options(), keeper=keeper, on_trap=skip)
        if until is not None:
            options = evolve(options, until=until)
        try:
            summary = platform.run(platform.plan(graph, here(1), options), sources, writers | views)
        except Trap as trap:
            raise Rejected([trap_diagnostic(trap)]) from trap
        self._count(summary)
        left = keeper.left
        if left is None:
            left = Snapshot()
            left.fields = {v.name: left.put(v.type, [summary.variables[v.name]]) for v in graph.variables}
        else:
            telling.held += sum(count for _, _, count in left.fields["held"].values())
        return left

    def _count(self, summary: Summary) -> None:
        """Tells of a run."""
        found = EpochTelling(skipped=dict(summary.skipped), remarks=summary.remarks)
        found.trap = self._trapped[0] if self._trapped else None
        if summary.metrics is not None:
            found.operators = {
                name: [each.fired, each.skipped, each.batches, each.seconds, each.workers, each.native]
                for name, each in summary.metrics.operators.items()
            }
        self.telling.add(found)

    # -- state

    def before(self, path: str, reader: Callable[[Path], Any]) -> Any:
        """What stands in a file that the epoch before left. Raises: Rejected("run-checkpoint-damaged")."""
        try:
            return reader(Path(path))
        except (Damaged, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            message = f"the state of the epoch before epoch {self.errand.number} cannot be read: `{path}`: {reason.lower()}"
            help_ = "put the file back; `--restart` begins anew"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=help_)]) from error

    def _groups_before(self, groups: Sequence[int]) -> dict[int, Snapshot]:
        """The states that the epoch before left of groups, whatever channels they were in. Raises: Rejected."""
        files = self.errand.before
        found: dict[int, Snapshot] = {}
        for number in sorted({group % len(files) for group in groups} if files else ()):
            there = self.before(files[number], read_groups)
            found |= {group: state for group, state in there.items() if group in groups}
        return found

    def _keep(self, groups: Mapping[int, Snapshot]) -> None:
        """Writes the state, or, behind the last epoch, the variables. Raises: Rejected("run-checkpoint-write")."""
        self.telling.states = [self.write(STATE, lambda path: write_groups(path, groups))]

    def write(self, suffix: str, writer: Callable[[Path], None]) -> tuple[str, int]:
        """Writes a file of the state; its name and its bytes. Raises: Rejected("run-checkpoint-write")."""
        path = self.place(self.errand.states, suffix)
        try:
            writer(path)
            for folder in {each.parent for each in self._written}:
                settle_folder(folder)
            return path.name, path.stat().st_size
        except OSError as error:
            message = f"cannot keep state in `{self.errand.states}`: {(error.strerror or str(error)).lower()}"
            raise Rejected([Diagnostic("run-checkpoint-write", message)]) from error

    # -- out

    def _sink(self, name: str, type_: Any) -> CountedSink:
        folder, format_, by = self.errand.outputs[name]
        if by:
            target = Partitions(folder, format_, by, named=self._named)
            sink = PartitionedSink(target, type_, name)
            self._divided[name] = sink, target
            return CountedSink(sink)
        path = self.place(folder, f".{FORMATS[format_]}")
        try:
            file = self._files[name] = path.open("xb")
        except OSError as error:
            raise Rejected([unwritable(str(path), error)]) from error
        return CountedSink(open_sink(file, type_, name=name, format=format_))

    def _named(self) -> str:
        """The name of a file of this attempt, of which there are many."""
        attempt = f"{self.attempt[:8]}{next(self._count_of_names):08x}"
        return self.errand.name(self.telling.channel, attempt, "")

    def _tell_divided(self, name: str, root: Path, files: Iterable[tuple[str, int]]) -> None:
        """The same of an output whose files are in folders by columns."""
        for file, rows in sorted(files):
            path = Path(file)
            with path.open("rb") as opened:
                self.settle(path, opened, keep=True)
            inner = path.relative_to(root)
            self._written += (root / each for each in (inner, *inner.parents[:-1]))
            self.telling.files.setdefault(name, []).append((str(inner), rows))

    def _tell(self, sinks: Mapping[str, CountedSink]) -> None:
        """Brings the files of outputs to the disk, and tells of those that have rows. Raises: Rejected("data-output")."""
        for name, sink in sinks.items():
            if name in self._divided:
                _, target = self._divided[name]
                self._tell_divided(name, Path(target.root), target.files)
                continue
            path = Path(self._files[name].name)
            self.settle(path, self._files[name], keep=sink.rows > 0)
            if sink.rows:
                self.telling.files[name] = [(path.name, sink.rows)]

    def settle(self, path: Path, file: Any, *, keep: bool) -> None:
        """Brings a file that has been written to the disk, or removes one without rows. Raises: Rejected("data-output")."""
        try:
            if keep:
                if file.writable():
                    file.flush()
                os.fsync(file.fileno())
            file.close()
            if not keep:
                path.unlink()
        except OSError as error:
            raise Rejected([unwritable(str(path), error)]) from error
