"""What the driver tells the tasks of an epoch to do, and what they tell it, as text: both travel as JSON.

Paper: River §4.6.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from backends.spark.parts import GivenFile
from backends.spark.rowwise import imported
from backends.spark.task import ShippedProgram
from river.backend import Options
from river.classes import define, field, frozen
from river.diagnostics import Diagnostic, Note, Severity
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@frozen(hash=False)
class EpochErrand:
    """What tasks are to do for epoch `number` of the run `run`.

    `files`: what came of each input, in order; `more`: the inputs of which more may come. `order`, `before`: what the epoch
    before left, none at the beginning: how far the inputs have been read, and the state by channel. `outputs`: folder and format
    of each, and the columns by which it is divided; `states`: the folder for the state. `letters`: where rows go that are wrong,
    None: nowhere. `streamed`: the inputs whose rows the task that reads is given. `keys`: the columns by which each input is
    divided among `groups`, which `channels` have; empty where the state is in one piece. `portion`: about how many bytes of the
    files a task reads, 0: one task reads them all. `orders`: the columns that put the rows of each input in order where tasks
    get rows of streams as Spark has them and do that; empty: one is given all, in order. `shares`: rows may go to any channel,
    since they are taken one by one ("rows") or accumulated ("tables"): each has some of the portions, and a state of its own of
    what is accumulated. The rest: see `river.backend.Options` and `Job`.
    """

    program: ShippedProgram
    run: str
    number: int
    files: Mapping[str, tuple[GivenFile, ...]]
    more: tuple[str, ...]
    order: str | None
    before: tuple[str, ...]
    outputs: Mapping[str, tuple[str, str, tuple[str, ...]]]
    states: str
    letters: str | None = None
    on_error: Literal["stop", "skip", "dead-letter"] = "stop"
    until: int | None = None
    lateness: int = 0
    externs: tuple[str, ...] = ()
    native: Literal["on", "off", "debug"] = "on"
    batch: int = Options().batch
    streamed: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"])
    groups: int = 1
    channels: int = 1
    portion: int = 0
    shares: Literal["", "rows", "tables"] = ""
    orders: Mapping[str, tuple[str, ...]] = field(factory=dict[str, "tuple[str, ...]"])

    @property
    def several(self) -> bool:
        """Whether several tasks read what came."""
        return bool(self.portion or self.orders)

    def text(self) -> str:
        """As JSON."""
        files = {name: [file.cells() for file in found] for name, found in self.files.items()}
        return json.dumps([
            self.program.text, self.program.namespaces, self.run, self.number, files, self.more, self.order, self.before,
            self.outputs, self.states, self.letters, self.on_error, self.until, self.lateness, self.externs, self.native,
            self.batch, self.streamed, self.keys, self.groups, self.channels, self.portion, self.shares,
            self.orders,
        ])  # fmt: skip

    @staticmethod
    def read(text: str) -> EpochErrand:
        """The errand that a text states."""
        program, namespaces, run, number, files, more, order, before, outputs, *rest = json.loads(text)
        (
            states,
            letters,
            on_error,
            until,
            lateness,
            externs,
            native,
            batch,
            streamed,
            keys,
            groups,
            channels,
            portion,
            shares,
            orders,
        ) = rest
        given = {name: tuple(GivenFile.of(cells) for cells in found) for name, found in files.items()}
        places = {name: (folder, format_, tuple(by)) for name, (folder, format_, by) in outputs.items()}
        return EpochErrand(
            ShippedProgram(program, tuple(namespaces)), run, number, given, tuple(more), order, tuple(before), places, states,
            letters, on_error, until, lateness, tuple(externs), native, batch, tuple(streamed),
            {name: tuple(columns) for name, columns in keys.items()}, groups, channels, portion, shares,
            {name: tuple(columns) for name, columns in orders.items()},
        )  # fmt: skip

    def name(self, channel: int, attempt: str, suffix: str) -> str:
        """The name of a file that this attempt writes."""
        return f"{self.run}-{self.number:09}-{channel:04}-{attempt}{suffix}"

    def options(self) -> Options:
        """How the program runs in a task."""
        return Options(
            workers=1,
            batch=self.batch,
            native=self.native,
            until=self.until,
            externs={target: imported(target) for target in self.externs},
        )


@define
class EpochTelling:
    """What tasks tell of an epoch; that of a channel knows what was told by the task that read.

    `channel`: whose; `files`: of each output that got rows the files and how many these are; `order`: the file that says how far
    the inputs have been read; `states`: the files of the state by channel, and their bytes; `read`: rows by input; `reached`: of
    each the largest time stamp, and that of the last row given; `held`: rows that wait for others; `letters`: the file of wrong
    rows; `refusals`: rows that were left out, by input and code, with the first of them; `skipped`: items by operator;
    `operators`: their figures; `refused`: what is wrong, if the epoch cannot be; `remarks`: see `Summary`. `again`: whether one
    task has to read all that came, since several have found something wrong. What one of these tells has of each input the first
    and the last time stamp as `reached`.
    """

    channel: int = 0
    files: dict[str, list[tuple[str, int]]] = field(factory=dict[str, "list[tuple[str, int]]"])
    order: str | None = None
    states: list[tuple[str, int]] = field(factory=list["tuple[str, int]"])
    read: dict[str, int] = field(factory=dict[str, int])
    reached: dict[str, tuple[int | None, int | None]] = field(
        factory=dict[str, "tuple[int | None, int | None]"]
    )
    held: int = 0
    letters: str | None = None
    refusals: dict[str, tuple[dict[str, int], Diagnostic]] = field(
        factory=dict[str, "tuple[dict[str, int], Diagnostic]"]
    )
    skipped: dict[str, int] = field(factory=dict[str, int])
    trap: Diagnostic | None = None
    operators: dict[str, list[Any]] = field(factory=dict[str, "list[Any]"])
    refused: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    again: bool = False

    def text(self) -> str:
        """As JSON."""
        refusals = {name: [counts, told(first)] for name, (counts, first) in self.refusals.items()}
        trap = None if self.trap is None else told(self.trap)
        return json.dumps([
            self.channel, self.files, self.order, self.states, self.read, self.reached, self.held, self.letters, refusals,
            self.skipped, trap, self.operators,
            [told(each) for each in self.refused], [told(each) for each in self.remarks], self.again,
        ])  # fmt: skip

    @staticmethod
    def read_text(text: str) -> EpochTelling:
        """What a text tells."""
        number, files, order, states, read, reached, held, letters, refusals, skipped, *rest = json.loads(
            text
        )
        trap, operators, refused, remarks, again = rest
        return EpochTelling(
            number,
            {name: [(file, rows) for file, rows in found] for name, found in files.items()},
            order,
            [(file, size) for file, size in states],
            read,
            {name: (top, given) for name, (top, given) in reached.items()},
            held,
            letters,
            {name: (counts, heard(first)) for name, (counts, first) in refusals.items()},
            skipped,
            None if trap is None else heard(trap),
            operators,
            tuple(map(heard, refused)),
            tuple(map(heard, remarks)),
            again,
        )

    def add(self, other: EpochTelling) -> None:
        """What another channel tells of its own, too: all know what was read."""
        for name, found in other.files.items():
            self.files.setdefault(name, []).extend(found)
        self.states += other.states
        self.held += other.held
        self.skipped = dict(Counter(self.skipped) + Counter(other.skipped))
        self.trap = self.trap or other.trap
        self.remarks = tuple(dict.fromkeys((*self.remarks, *other.remarks)))
        self.refused = self.refused or other.refused
        self.again = self.again or other.again
        for name, figures in other.operators.items():
            self.operators[name] = _both(self.operators.get(name), figures)


def _both(one: list[Any] | None, other: list[Any]) -> list[Any]:
    """The figures of an operator that ran twice."""
    if one is None:
        return other
    fired, skipped, batches, seconds, workers, native = one
    more = other[:4]
    summed = [a + b for a, b in zip((fired, skipped, batches, seconds), more, strict=True)]
    return [*summed, max(workers, other[4]), native]


def together(tellings: Iterable[EpochTelling]) -> EpochTelling:
    """What all channels tell of an epoch."""
    first, *others = sorted(tellings, key=lambda each: each.channel)
    for each in others:
        first.add(each)
    return first


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
