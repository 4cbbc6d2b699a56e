"""Where a command reads and writes, and what a person at a terminal sees: diagnostics in colour, a line of progress."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TextIO

from attrs import define, field, frozen

from river.diagnostics import Severity, render

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from contextlib import AbstractContextManager

    from river.diagnostics import Diagnostic
    from river.io.sinks import Sink
    from river.lang.types import Type
    from river.metrics import Metrics


@frozen
class Streams:
    """Where a command reads and writes."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.REMARK: "36;1"}


def say(streams: Streams, diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics to stderr, the severity in colour on a terminal."""
    for diagnostic in diagnostics:
        text = render(diagnostic)
        if coloured(streams.stderr):
            word = f"{diagnostic.severity.value}[{diagnostic.code}]"
            text = text.replace(word, f"\x1b[{COLOURS[diagnostic.severity]}m{word}\x1b[0m", 1)
        print(text, file=streams.stderr)


def coloured(stream: TextIO) -> bool:
    """Whether `stream` is a terminal whose user wants colours (`NO_COLOR`)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write(streams: Streams, output: str | None, text: str) -> None:
    """Writes `text` to the file `output`, all or nothing; `-` and None are standard output. Raises: Rejected."""
    if output is None or output == "-":
        streams.stdout.write(text)
        return
    from river.io.atomic import Output

    file = Output(output)
    try:
        file.write(text)
        file.close()
    except BaseException:
        file.abort()
        raise


@define
class Progress:
    """A line on a terminal that says how a run goes; nothing elsewhere.

    `observe` is for backends that tell of their runs, `update` for the others: items read.
    """

    stream: TextIO
    quiet: bool
    began: float = 0.0
    last: float = 0.0
    shown: bool = False
    before: Metrics | None = None

    @property
    def visible(self) -> bool:
        """Whether anybody sees it."""
        return not self.quiet and self.stream.isatty()

    def update(self, items: int) -> None:
        """Called from whichever thread reads: at most five lines a second, the first after half a second."""
        import time

        if self.before is not None or not self.visible:
            return
        now = time.monotonic()
        self.began = self.began or now
        if now - self.began < 0.5 or now - self.last < 0.2:
            return
        self.last = now
        self._show(f"{items:,} items, {items / (now - self.began):,.0f}/s")

    def observe(self, metrics: Metrics) -> None:
        """Called a few times a second: the rate since the last time, rows, who works most, and the longest queue."""
        before, self.before = self.before, metrics
        since = metrics.seconds - (before.seconds if before else 0.0)
        if metrics.seconds < 0.5 or since <= 0:
            return
        if metrics.doing:
            self._show(f"{metrics.read:,} items, {metrics.doing}")
            return
        rate = (metrics.read - (before.read if before else 0)) / since
        text = f"{metrics.read:,} items, {rate:,.0f}/s, {metrics.written:,} rows out"
        if metrics.operators:
            name, most = max(metrics.operators.items(), key=lambda pair: pair[1].seconds)
            text += f", {name} {metrics.share(most.seconds):.0%}"
        if metrics.queues:
            name, longest = max(metrics.queues.items(), key=lambda pair: pair[1].length)
            text += f", {longest.length:,} wait in {name}" if longest.length else ""
        self._show(text)

    def _show(self, text: str) -> None:
        import shutil

        self.shown = True
        self.stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        self.stream.flush()

    def clear(self) -> None:
        """Removes the line."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


BINARY = ("arrow", "parquet")
"""Formats that are not text: nothing can stand beside them."""


@define
class Screen:
    """Standard output as the place of outputs that have no file: at once when there is one, else one after the other.

    In a `live` run several outputs are printed as they come, under a line with the name wherever that changes.
    """

    streams: Streams
    format: str | None
    limit: int | None
    several: bool
    live: bool = False
    held: list[Print] = field(factory=list["Print"])
    lock: Lock = field(factory=Lock)
    shown: str | None = None

    def target(self, name: str, type_: Type) -> Print:
        """The sink of output `name`."""
        form = self.format or ("table" if self.streams.stdout.isatty() else "csv")
        hold = self.several and not self.live
        under = self.under if self.several and self.live else None
        self.held.append(Print(self.streams.stdout, name, type_, form, self.limit, hold=hold, under=under))
        return self.held[-1]

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


@define
class Print:
    """A sink that prints its first `limit` rows; `hold` keeps them until the end, `under` prints whose they are."""

    stream: TextIO
    name: str
    type: Type
    format: str
    limit: int | None
    hold: bool
    under: Callable[[str], AbstractContextManager[None]] | None = None
    seen: int = 0
    rows: list[Any] = field(factory=list[Any])
    sink: Sink | None = None

    def write(self, items: Sequence[Any]) -> None:
        """Takes rows."""
        room = len(items) if self.limit is None else max(0, self.limit - self.seen)
        self.seen += len(items)
        shown = items[:room]
        if self.hold:
            self.rows.extend(shown)
        elif shown and self.under is not None:
            with self.under(self.name):
                self._open().write(shown)
        elif shown or self.sink is None:
            self._open().write(shown)

    def _open(self) -> Sink:
        from river.io.sinks import open_sink

        if self.sink is None:
            binary = self.format in BINARY
            target = getattr(self.stream, "buffer", self.stream) if binary else self.stream
            self.sink = open_sink(target, self.type, name=self.name, format=self.format)
        return self.sink

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
            if self.format not in BINARY:
                self.stream.write(f"# {self.name}\n")
            sink = self._open()
            sink.write(self.rows)
            sink.close()
        if self.limit is not None and self.seen > self.limit and self.format == "table":
            self.stream.write(f"... {self.seen - self.limit:,} more rows\n")
