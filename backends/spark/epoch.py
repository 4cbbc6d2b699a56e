"""What a task does for an epoch: it runs the program on what came, from the state that the epoch before left.

It is the body of a `mapInArrow`; its argument is the errand as text. Files of outputs and the state get names that carry epoch,
channel and attempt, and nothing is renamed: what a task has written counts when the driver's manifest names it, and never
otherwise, however late the task comes. Nothing is raised for rows that are wrong or for a trap, which would come again.

Paper: River §4.6.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from backends.native.llvm import available
from backends.spark.kernels import ready, tagged
from backends.spark.parts import GivenFile
from backends.spark.rowwise import imported
from backends.spark.sequels import Sequel
from backends.spark.task import ShippedProgram
from river import plugins
from river.backend import Options
from river.checkpoint import Checkpoint, Keeper, Snapshot, read_state, write_state
from river.classes import define, evolve, field, frozen
from river.diagnostics import Diagnostic, Note, Rejected, Severity
from river.driver import CountedSink, Job, Writer, open_input, trap_diagnostic, wholes
from river.io import deltas
from river.io.atomic import settle_folder
from river.io.errors import OnError, Refusals, unwritable
from river.io.folders import FORMATS
from river.io.packed import Damaged
from river.io.schema import arrow
from river.io.sinks import open_sink
from river.lang.evaluate import Trap
from river.part import Part
from river.platform import here
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from river.backend import Items, Summary
    from river.driver import Compiled
    from river.il.graph import Graph

__all__ = ["EpochErrand", "EpochTelling", "epoch"]

STATE: Final = ".state"


@frozen(hash=False)
class EpochErrand:
    """What a task is to do for epoch `number` of the run `run`.

    `files`: what came of each input, in order; `more`: the inputs of which more may come. `state`: the file that the epoch
    before left, None at the beginning. `outputs`: folder and format of each; `states`: the folder for the state. `letters`: where
    rows go that are wrong, None: nowhere. `streamed`: the task is given the rows.
    The rest: see `river.backend.Options` and `Job`.
    """

    program: ShippedProgram
    run: str
    number: int
    files: Mapping[str, tuple[GivenFile, ...]]
    more: tuple[str, ...]
    state: str | None
    outputs: Mapping[str, tuple[str, str]]
    states: str
    letters: str | None = None
    on_error: Literal["stop", "skip", "dead-letter"] = "stop"
    until: int | None = None
    lateness: int = 0
    externs: tuple[str, ...] = ()
    native: Literal["on", "off", "debug"] = "on"
    batch: int = Options().batch
    streamed: tuple[str, ...] = ()

    def text(self) -> str:
        """As JSON."""
        files = {name: [file.cells() for file in found] for name, found in self.files.items()}
        return json.dumps([
            self.program.text, self.program.namespaces, self.run, self.number, files, self.more, self.state, self.outputs,
            self.states, self.letters, self.on_error, self.until, self.lateness, self.externs, self.native, self.batch,
            self.streamed,
        ])  # fmt: skip

    @staticmethod
    def read(text: str) -> EpochErrand:
        """The errand that a text states."""
        program, namespaces, run, number, files, more, state, outputs, *rest = json.loads(text)
        states, letters, on_error, until, lateness, externs, native, batch, streamed = rest
        given = {name: tuple(GivenFile(*cells) for cells in found) for name, found in files.items()}
        places = {name: (folder, format_) for name, (folder, format_) in outputs.items()}
        return EpochErrand(
            ShippedProgram(program, tuple(namespaces)), run, number, given, tuple(more), state, places, states, letters,
            on_error, until, lateness, tuple(externs), native, batch, tuple(streamed),
        )  # fmt: skip

    def name(self, attempt: str, suffix: str) -> str:
        """The name of a file that this attempt writes."""
        return f"{self.run}-{self.number:09}-0-{attempt}{suffix}"


@define
class EpochTelling:
    """What a task tells of an epoch.

    `files`: of each output that got rows the file and how many these are; `state`: the file of the state, and its bytes; `read`:
    rows by input; `held`: rows that wait for others; `letters`: the file of wrong rows; `refusals`: rows that were left out, by
    input and code, with the first of them; `skipped`: items by operator; `operators`: their figures;
    `refused`: what is wrong, if the epoch cannot be; `remarks`: see `Summary`.
    """

    files: dict[str, tuple[str, int]] = field(factory=dict[str, tuple[str, int]])
    state: tuple[str, int] | None = None
    read: dict[str, int] = field(factory=dict[str, int])
    held: int = 0
    letters: str | None = None
    refusals: dict[str, tuple[dict[str, int], Diagnostic]] = field(
        factory=dict[str, "tuple[dict[str, int], Diagnostic]"]
    )
    skipped: dict[str, int] = field(factory=dict[str, int])
    trap: Diagnostic | None = None
    operators: dict[str, list[Any]] = field(factory=dict[str, list[Any]])
    refused: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()

    def text(self) -> str:
        """As JSON."""
        refusals = {name: [counts, told(first)] for name, (counts, first) in self.refusals.items()}
        trap = None if self.trap is None else told(self.trap)
        return json.dumps([
            self.files, self.state, self.read, self.held, self.letters, refusals, self.skipped, trap, self.operators,
            [told(each) for each in self.refused], [told(each) for each in self.remarks],
        ])  # fmt: skip

    @staticmethod
    def read_text(text: str) -> EpochTelling:
        """What a text tells."""
        files, state, read, held, letters, refusals, skipped, *rest = json.loads(text)
        trap, operators, refused, remarks = rest
        return EpochTelling(
            {name: (file, rows) for name, (file, rows) in files.items()},
            None if state is None else (state[0], state[1]),
            read,
            held,
            letters,
            {name: (counts, heard(first)) for name, (counts, first) in refusals.items()},
            skipped,
            None if trap is None else heard(trap),
            operators,
            tuple(map(heard, refused)),
            tuple(map(heard, remarks)),
        )


def told(diagnostic: Diagnostic) -> list[Any]:
    """A diagnostic as JSON."""
    notes = [[note.message, _place(note.span)] for note in diagnostic.notes]
    return [
        diagnostic.code, diagnostic.message, _place(diagnostic.span), diagnostic.severity.value, notes, diagnostic.help,
        diagnostic.place,
    ]  # fmt: skip


def heard(said: list[Any]) -> Diagnostic:
    """The diagnostic that JSON tells."""
    code, message, span, severity, notes, help_, place = said
    return Diagnostic(
        code,
        message,
        _span(span),
        Severity(severity),
        tuple(Note(note, _span(where)) for note, where in notes),
        help_,
        place,
    )


def _place(span: Span | None) -> list[Any] | None:
    return None if span is None else [span.source.name, span.source.text, span.start, span.end]


def _span(said: list[Any] | None) -> Span | None:
    return None if said is None else Span(Source(said[0], said[1]), said[2], said[3])


# ------------------------------------------------------------------------------------------------------------- tasks


def epoch(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs the program on what came in one epoch; what there is to tell of it.

    The batches are the rows of inputs that are streams, tagged by input and in order, where the errand says so.
    """
    errand = EpochErrand.read(text)
    given = list(batches)
    work = _Work(errand, given if errand.streamed else [])
    try:
        work.run()
    except Rejected as rejected:
        work.give_up()
        work.telling = EpochTelling(refused=rejected.diagnostics)
    except BaseException:
        work.give_up()
        raise
    pa = arrow()
    yield pa.record_batch([pa.array([work.telling.text()], pa.string())], ["told"])


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


class _Work:
    """One attempt at an epoch."""

    def __init__(self, errand: EpochErrand, rows: list[Any]) -> None:
        self.errand = errand
        self.rows = rows
        self.telling = EpochTelling()
        self.attempt = uuid4().hex[:16]
        self._written: list[Path] = []
        self._files: dict[str, Any] = {}

    def place(self, folder: str, suffix: str) -> Path:
        """A file of this attempt."""
        found = Path(folder) / self.errand.name(self.attempt, suffix)
        self._written.append(found)
        return found

    def give_up(self) -> None:
        """Leaves nothing behind."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        for path in self._written:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def run(self) -> None:
        """Raises: Rejected."""
        errand = self.errand
        compiled = ready(errand.program)
        platform: Any = plugins.backend("multicore")
        options = self._options()
        compiled = compiled.tuned(options.through(platform), here(1))
        graph = compiled.graph
        header, state = self._before()
        refusals = Refusals(self._policy())
        tables = tagged(graph, self.rows, errand.streamed)
        relations = wholes(graph.program)
        sequels = {
            name: Sequel(
                graph.queues[name],
                [tables[name]] if name in tables else errand.files.get(name, ()),
                refusals,
                errand.lateness,
                last=name not in errand.more,
                native=errand.native != "off" and available(),
                batch=errand.batch,
                count=self._counting(name),
            )
            for name in graph.inputs
            if name not in relations
        }
        sources = {name: self._relation(graph, name, tables, refusals) for name in relations}
        if state is not None:
            for name, (top, given, waiting) in header["orders"].items():
                each = sequels[name]
                each.top, each.given, each.waiting = (top, given, state.get(graph.queues[name].type, waiting))
        for found in errand.files.values():
            for file in found:
                file.check()
        keeper = _PartKeeper(errand.states, Part(frozenset(errand.more)), state)
        trapped: list[Diagnostic] = []
        skip = None if errand.on_error == "stop" else trapped.append
        sinks = {name: self._sink(name, type_) for name, type_ in compiled.outputs.items()}
        try:
            writers = {n: Writer(graph.queues[n].type, sinks[n]) for n in graph.outputs}
            views = {
                v.name: sinks[v.name].write if deltas.is_delta(v.type) else Writer(v.type, sinks[v.name])
                for v in graph.views
            }
            plan = platform.plan(graph, here(1), evolve(options, keeper=keeper, on_trap=skip))
            summary = platform.run(plan, sequels | sources, writers | views)
            for sink in sinks.values():
                sink.sink.close()
        except Trap as trap:
            raise Rejected([trap_diagnostic(trap)]) from trap
        finally:
            refusals.close()
        self._tell(summary, sinks, refusals, trapped)
        self._keep(compiled, summary, keeper, sequels)

    def _relation(
        self, graph: Graph, name: str, tables: Mapping[str, Any], refusals: Refusals
    ) -> Iterator[Items]:
        """All rows of an input as one item, which comes with the first epoch."""
        errand = self.errand
        if errand.number:
            return
        file = next(iter(errand.files.get(name, ())), None)
        if file is None:
            job = Job({name: tables.get(name, [])}, {}, refusals.policy)
        else:
            job = Job({name: file.path}, {}, refusals.policy, {name: file.format})
        for items in open_input(graph, name, job, refusals, None):
            self._counting(name)(sum(map(len, items)))
            yield items

    def _options(self) -> Options:
        errand = self.errand
        return Options(
            workers=1,
            batch=errand.batch,
            native=errand.native,
            until=errand.until,
            externs={target: imported(target) for target in errand.externs},
        )

    def _policy(self) -> OnError:
        errand = self.errand
        if errand.on_error != "dead-letter" or errand.letters is None:
            return OnError(errand.on_error)
        return OnError("dead-letter", str(self.place(errand.letters, ".jsonl")))

    def _counting(self, name: str) -> Callable[[int], None]:
        def count(rows: int) -> None:
            self.telling.read[name] = self.telling.read.get(name, 0) + rows

        return count

    def _sink(self, name: str, type_: Any) -> CountedSink:
        folder, format_ = self.errand.outputs[name]
        path = self.place(folder, f".{FORMATS[format_]}")
        try:
            file = self._files[name] = path.open("xb")
        except OSError as error:
            raise Rejected([unwritable(str(path), error)]) from error
        return CountedSink(open_sink(file, type_, name=name, format=format_))

    # -- state

    def _before(self) -> tuple[Mapping[str, Any], Snapshot | None]:
        """What the epoch before left. Raises: Rejected("run-checkpoint-damaged")."""
        path = self.errand.state
        if path is None:
            return {}, None
        try:
            header, data = read_state(Path(path))
        except (Damaged, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            message = f"the state of the epoch before epoch {self.errand.number} cannot be read: `{path}`: {reason.lower()}"
            help_ = "put the file back; `--restart` begins anew"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=help_)]) from error
        return header, Snapshot(header["state"], bytearray(data))

    def _keep(
        self, compiled: Compiled, summary: Summary, keeper: _PartKeeper, sequels: Mapping[str, Sequel]
    ) -> None:
        """Writes the state, or, behind the last epoch, the variables. Raises: Rejected("run-checkpoint-write")."""
        graph = compiled.graph
        found = keeper.left
        orders: dict[str, Any] = {}
        if found is None:
            found = Snapshot()
            found.fields = {v.name: found.put(v.type, [summary.variables[v.name]]) for v in graph.variables}
        else:
            held = found.fields["held"]
            self.telling.held = sum(count for _, _, count in held.values())
            for name, each in sequels.items():
                waiting = found.put(graph.queues[name].type, each.waiting)
                orders[name] = [each.top, each.given, waiting]
                self.telling.held += len(each.waiting)
        path = self.place(self.errand.states, STATE)
        try:
            write_state(path, {"state": found.fields, "orders": orders}, found.data)
            self.telling.state = path.name, path.stat().st_size
            for folder in {each.parent for each in self._written}:
                settle_folder(folder)
        except OSError as error:
            message = f"cannot keep state in `{self.errand.states}`: {(error.strerror or str(error)).lower()}"
            raise Rejected([Diagnostic("run-checkpoint-write", message)]) from error

    # -- out

    def _tell(
        self,
        summary: Summary,
        sinks: Mapping[str, CountedSink],
        refusals: Refusals,
        trapped: list[Diagnostic],
    ) -> None:
        telling = self.telling
        for name, sink in sinks.items():
            path = Path(self._files[name].name)
            self._settle(path, self._files[name], keep=sink.rows > 0)
            if sink.rows:
                telling.files[name] = path.name, sink.rows
        telling.refusals = refusals.counts()
        if refusals.policy.path is not None:
            letters = Path(refusals.policy.path)
            with letters.open("rb") as file:
                self._settle(letters, file, keep=bool(telling.refusals))
            telling.letters = letters.name if telling.refusals else None
        telling.skipped = dict(summary.skipped)
        telling.remarks = summary.remarks
        telling.trap = trapped[0] if trapped else None
        if summary.metrics is not None:
            telling.operators = {
                name: [each.fired, each.skipped, each.batches, each.seconds, each.workers, each.native]
                for name, each in summary.metrics.operators.items()
            }

    def _settle(self, path: Path, file: Any, *, keep: bool) -> None:
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
