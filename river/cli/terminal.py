"""Where a command reads and writes, and what a person at a terminal sees: diagnostics in colour, a line of progress."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from river.classes import define, frozen
from river.diagnostics import Severity, render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.diagnostics import Diagnostic
    from river.metrics import Metrics


@frozen
class Streams:
    """Where a command reads and writes. `alone`: its process ends with it."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    alone: bool = False


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
    from river.io.atomic import AtomicOutput

    file = AtomicOutput(output)
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
