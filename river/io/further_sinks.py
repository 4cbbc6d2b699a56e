"""Sinks of formats that few runs write: bytes, sound, and tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.io import raw, wav
from river.io.display import Layout
from river.io.sinks import Scoped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.io.atomic import AtomicOutput
    from river.lang.types import Type


class RawOutput(raw.RawSink, Scoped):
    """Bytes of items."""


class WavOutput(wav.WavSink, Scoped):
    """Sound."""


class TableOutput(Scoped):
    """Aligned columns; the header waits for the first rows, to be as wide as they are."""

    def __init__(self, output: AtomicOutput, type_: Type) -> None:
        self._output = output
        self._layout = Layout(type_)
        self._begun = False

    def write(self, items: Sequence[Any]) -> None:
        rows = self._layout.rows(items)
        self._output.write(self._header() + self._layout.text(rows))

    def _header(self) -> str:
        header = "" if self._begun else self._layout.header()
        self._begun = True
        return header

    def close(self) -> None:
        self._output.write(self._header())
        self._output.close()

    def abort(self) -> None:
        self._output.abort()
