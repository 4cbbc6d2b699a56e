"""Standard output as the place of outputs that have no file."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TextIO

from river.classes import define, field
from river.io.sinks import Scoped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from river.cli.terminal import Streams
    from river.io.display import Entry
    from river.io.sinks import Sink
    from river.lang.types import Type

BINARY = ("arrow", "parquet")
"""Formats that are not text: nothing can stand beside them."""

LINES = ("csv", "tsv", "jsonl", "entries")
"""Formats of lines, which may be made by others."""


@define
class Screen:
    """Standard output as the place of outputs that have no file: at once when there is one, else one after the other.

    In a `live` run several outputs are printed as they come, under a line with the name wherever that changes. Those in
    `texts` are always printed as they come, and as they are: what a program prints. The rows of those in `errors` are told on
    standard error, the first of them, and counted in `failed`. Those in `sent` go to files in
    `folder`, or to commands, if these may run.
    """

    streams: Streams
    format: str | None
    limit: int | None
    several: bool
    live: bool = False
    texts: Mapping[str, str] = field(factory=dict[str, str])
    errors: frozenset[str] = frozenset()
    sent: Mapping[str, str] = field(factory=dict[str, str])
    folder: str | None = None
    commands: bool = False
    indices: Mapping[str, tuple[int, int]] = field(factory=dict[str, tuple[int, int]])
    failed: int = 0
    held: list[Print] = field(factory=list["Print"])
    lock: Lock = field(factory=Lock)
    shown: str | None = None

    def target(self, name: str, type_: Type) -> Sink:
        """The sink of output `name`."""
        if name in self.errors:
            return Errors(self)
        if name in self.sent:
            return self._sent(name)
        if name in self.texts:
            stream = self.streams.stderr if self.texts[name] == "stderr" else self.streams.stdout
            self.held.append(PrintTables(stream, name, type_, "raw", self.limit, hold=False))
            return self.held[-1]
        form = self.format or ("table" if self.streams.stdout.isatty() else "csv")
        hold = self.several and not self.live
        under = self.under if self.several and self.live else None
        kind = PrintTables if form in BINARY else PrintLines if form in LINES else Print
        if form == "parquet":
            from river.io.schema import growable

            type_ = growable(type_)  # as record batches for it are made
        index = self.indices.get(name, (0, 0))
        self.held.append(
            kind(self.streams.stdout, name, type_, form, self.limit, hold=hold, under=under, index=index)
        )
        return self.held[-1]

    def _sent(self, name: str) -> Sink:
        from river.diagnostics import Diagnostic, Rejected
        from river.io.sent import Commands, SentFiles

        if self.sent[name] == "file":
            if self.folder is None:
                message = f"output `{name}` goes to files that the program names"
                hint = f"say in which folder: `--out-dir DIR`; or `--out {name}=FILE` for all of it"
                raise Rejected([Diagnostic("run-out-dir", message, help=hint)])
            return SentFiles(folder=Path(self.folder), name=name)
        if not self.commands:
            message = f"output `{name}` goes to commands that the program names"
            hint = f"`--allow-proc` runs them; or `--out {name}=FILE`"
            raise Rejected([Diagnostic("run-proc", message, help=hint)])
        return Commands(name=name, show=lambda text: print(text, end="", file=self.streams.stdout))

    @contextmanager
    def under(self, name: str) -> Generator[None]:
        """For rows of output `name`, while no others are printed."""
        with self.lock:
            if self.shown != name:
                self.streams.stdout.write(f"# {name}\n")
                self.shown = name
            yield

    def finish(self) -> None:
        """Prints what was held back, each output under its name, and says what the limit left out."""
        for sink in self.held:
            sink.show()


SHOWN = 10
"""Rows of errors that are told."""


@define
class Errors(Scoped):
    """A sink of rows that are errors: the first are told on standard error, all are counted."""

    screen: Screen

    def write(self, items: Sequence[Any]) -> None:
        """Takes rows."""
        from river.cli.terminal import say
        from river.diagnostics import Diagnostic, Severity

        for place, why in items[: max(0, SHOWN - self.screen.failed)]:
            say(
                self.screen.streams,
                [Diagnostic("run-undefined", why, place=place, severity=Severity.WARNING)],
            )
        self.screen.failed += len(items)

    def close(self) -> None:
        """Nothing is left to do."""

    def abort(self) -> None:
        """What is told is told."""


@define
class Print(Scoped):
    """A sink that prints its first `limit` rows; `hold` keeps them until the end, `under` prints whose they are.

    What is held back is what will be printed; but of a table the rows, because all of them decide how wide it is.
    """

    stream: TextIO
    name: str
    type: Type
    format: str
    limit: int | None
    hold: bool
    under: Callable[[str], AbstractContextManager[None]] | None = None
    index: tuple[int, int] = (0, 0)
    seen: int = 0
    rows: list[Any] = field(factory=list[Any])
    sink: Sink | None = None
    kept: io.BytesIO | None = None

    @property
    def room(self) -> int | None:
        """How many more rows it prints; None: all."""
        return None if self.limit is None else max(0, self.limit - self.seen)

    def skip(self, rows: int) -> None:
        """Takes note of rows that it is not given, because there is no room."""
        self.seen += rows

    def write(self, items: Sequence[Any]) -> None:
        """Takes rows."""
        shown = items[: self.room]
        self.seen += len(items)
        if self.hold and self.format == "table":
            self.rows.extend(shown)
        elif shown or (self.sink is None and self.under is None):
            self.put(lambda sink: sink.write(shown))

    def put(self, write: Callable[[Any], None]) -> None:
        """Has something written, under the name of the output if there are others."""
        if self.under is None:
            write(self._open())
            return
        with self.under(self.name):
            self.stream.flush()  # whose rows these are
            write(self._open())

    def _open(self) -> Sink:
        from river.io.sinks import open_sink

        if self.sink is None:
            if self.hold and self.format != "table":
                self.kept = io.BytesIO()
            target = self._target() if self.kept is None else self.kept
            self.sink = open_sink(target, self.type, name=self.name, format=self.format, index=self.index)
        return self.sink

    def _target(self) -> Any:
        """Where bytes can go, if the stream has them as they are; what was written to it before stands before them."""
        if self.format in BINARY or _is_utf8(self.stream):
            self.stream.flush()
            return getattr(self.stream, "buffer", self.stream)
        return self.stream

    def close(self) -> None:
        """Ends the output unless it is held back."""
        if not self.hold and (self.under is None or self.sink is not None):
            self._open().close()

    def abort(self) -> None:
        """What is printed is printed; what is held back is dropped."""
        self.rows.clear()
        if self.sink is not None:
            self.sink.abort()

    def show(self) -> None:
        """Prints what was held back, and how much the limit left out."""
        if self.hold:
            if self.format not in (*BINARY, "entries"):  # the lines of entries have the name
                self.stream.write(f"# {self.name}\n")
            sink = self._open()
            if self.rows:
                sink.write(self.rows)
            sink.close()
            if self.kept is not None:
                self._print(self.kept.getbuffer())
        if self.limit is not None and self.seen > self.limit and self.format == "table":
            self.stream.write(f"... {self.seen - self.limit:,} more rows\n")

    def _print(self, data: memoryview) -> None:
        from river.io.atomic import AtomicOutput

        AtomicOutput(self._target()).write_bytes(data)


class PrintLines(Print):
    """One of csv, tsv, jsonl or entries, which takes lines as they are (`sinks.TextSink`)."""

    @property
    def entry(self) -> Entry | None:
        """How lines of entries are."""
        from river.io.display import Entry

        return Entry(self.name, self.index) if self.format == "entries" else None

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Takes lines; how many rows they are, `skip` is told."""
        self.put(lambda sink: sink.write_bytes(data))


class PrintTables(Print):
    """One of Arrow data, which takes record batches (`sinks.ArrowSink`)."""

    def write_table(self, batch: Any) -> None:
        """Takes rows."""
        shown = batch if self.room is None else batch.slice(0, self.room)
        self.seen += batch.num_rows
        if shown.num_rows:
            self.put(lambda sink: sink.write_table(shown))


def _is_utf8(stream: TextIO) -> bool:
    """Whether text that is written to a stream becomes UTF-8."""
    import codecs

    try:
        return codecs.lookup(stream.encoding).name == "utf-8"
    except (AttributeError, LookupError, TypeError):
        return False
