"""Texts as blocks of lines, as they arrive, in bounded memory.

A block is what one read of the stream completes, cut to the batch size: nothing waits for a batch to fill.
Bytes that are not UTF-8 survive as lone surrogates (PEP 383), so that the row that holds them can be named.
"""

from __future__ import annotations

import codecs
import zlib
from typing import TYPE_CHECKING, Any, Final

from river.diagnostics import Rejected
from river.io.errors import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK: Final = 1 << 18
LONGEST: Final = 1 << 28
"""Characters of the longest line: a longer one means that the file is no text of lines."""

UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How texts begin that some programs write, and that are never the beginning of UTF-8."""
_UTF16: Final = tuple(mark.decode("utf-8", "surrogateescape") for mark in UTF16)


def utf16(name: str) -> Rejected:
    """The error that a text is of another encoding than all are."""
    return Rejected([unreadable(name, ValueError("it is UTF-16, not UTF-8"), help_="save it as UTF-8")])


def blocks(stream: Any, name: str, size: int, before: int = 0) -> Iterator[list[str]]:
    """Lists of at most `size` lines of a binary or text stream, without their ends; a byte order mark is dropped.

    `before`: how many lines of the file come before the stream.

    Raises: Rejected("data-unreadable") when the stream fails, or begins as UTF-16 does.
    """
    rest: list[str] = []  # parts of the last line, which has no end yet
    length = 0  # its characters
    first = True
    for chunk in _texts(stream, name):
        if first:
            if chunk.startswith(_UTF16):
                raise utf16(name)
            first = not chunk
            chunk = chunk.removeprefix("\ufeff")
        lines = chunk.split("\n")
        if len(lines) > 1:
            lines[0] = "".join((*rest, lines[0]))
            rest, length = [], 0
        if last := lines.pop():
            rest.append(last)
            length += len(last)
        if length > LONGEST:
            here = before + len(lines) + 1
            raise Rejected([unreadable(name, ValueError(f"line {here} is longer than {LONGEST} characters"))])
        before += len(lines)
        for start in range(0, len(lines), size):
            yield lines[start : start + size]
    if rest:
        yield ["".join(rest)]


def _texts(stream: Any, name: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    read = getattr(stream, "read1", None) or stream.read
    while True:
        try:
            chunk: str | bytes = read(CHUNK)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise Rejected([unreadable(name, error)]) from error
        if not chunk:
            yield decoder.decode(b"", final=True)
            return
        yield chunk if isinstance(chunk, str) else decoder.decode(chunk)
