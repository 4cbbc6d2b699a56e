"""Sound files: WAV with samples that are whole numbers (PCM), read and written by Python's `wave`.

Floats are between -1 and 1; whole numbers are samples as they are stored. An array holds a sample of each channel. Files are
written with 16 bits a sample, `wav@8000` says how many samples a second there are; louder samples become the loudest there is.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, Final

from river.diagnostics import Diagnostic, Rejected
from river.io.schema import arrow, arrow_schema, columns, to_batch
from river.lang import types as t
from river.lang.scope import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from river.io.atomic import AtomicOutput

RATE: Final = 44_100
"""Samples a second of files that are written, if nothing else is said."""

_CHUNK: Final = 1 << 16
"""Samples of each channel that are read at once."""

_NAME: Final = re.compile(r"wav(?:@([1-9][0-9]{0,6}))?")
_LARGEST: Final = 0xFFFF_FFFF
_HEADER: Final = 36
"""Bytes that the size of a file counts beside its samples."""


def is_wav(format_: str | None) -> bool:
    """Whether a format is `wav`, or `wav@RATE`."""
    return format_ is not None and _NAME.fullmatch(format_) is not None


def rate_of(format_: str) -> int:
    """The samples a second that a format says."""
    found = _NAME.fullmatch(format_)
    return RATE if found is None or found[1] is None else int(found[1])


def sample_of(type_: t.Type) -> tuple[t.Type, int] | None:
    """The type of a sample, and the number of channels, of items that are sound."""
    inner, channels = (type_.item, type_.size) if isinstance(type_, t.Array) else (type_, 1)
    return (inner, channels) if inner in (t.F32, t.F64, t.I32, t.I64) and 1 <= channels <= 64 else None


def check(type_: t.Type, what: str) -> None:
    """Refuses items that are no sound; `what`: the input or output. Raises: Rejected("data-format")."""
    if sample_of(type_) is None:
        message = f"{what}: the format `wav` does not hold `{show(type_)}`"
        help_ = "items are samples, floats or whole numbers, or arrays of them, one for each channel"
        raise Rejected([Diagnostic("data-format", message, help=help_)])


# ------------------------------------------------------------------------------------------------ reading


def batches(file: Any, type_: t.Type, label: str) -> Iterator[Any]:
    """Record batches of the samples in an open file. Raises: Rejected("data-format", "data-truncated")."""
    import wave

    sample, channels = sample_of(type_) or (t.F32, 1)
    try:
        sound = wave.open(file)  # noqa: SIM115 - whoever opened the file closes it
    except (wave.Error, EOFError) as error:
        message = f"`{label}` is no WAV file of whole numbers: {error or 'it ends within its header'}"
        raise Rejected([Diagnostic("data-format", message)]) from error
    if sound.getnchannels() != channels:
        count = sound.getnchannels()
        message = f"`{label}` has {count} channel{'s' * (count != 1)}, the items have {channels}"
        help_ = f"let the items be `{show(t.Array(sample, count) if count > 1 else sample)}`"
        raise Rejected([Diagnostic("data-format", message, help=help_)])
    left = sound.getnframes()
    endless = (left + 1) * channels * sound.getsampwidth() > _LARGEST  # whoever wrote it could not go back
    while left:
        data = sound.readframes(min(left, _CHUNK))
        frames = len(data) // (channels * sound.getsampwidth())
        if not frames and endless:
            return
        if not frames:
            message = f"the file ends {left} sample{'s' * (left != 1)} too early"
            place = f"{label}, sample {sound.getnframes() - left + 1}"
            raise Rejected(
                [Diagnostic("data-truncated", message, place=place, help="was all of it written?")]
            )
        left -= frames
        values = _values(data[: frames * channels * sound.getsampwidth()], sound.getsampwidth(), sample)
        if isinstance(type_, t.Array):
            kind = arrow_schema(type_).field(0).type
            values = arrow().FixedSizeListArray.from_arrays(values, type=kind)
        yield arrow().record_batch([values], schema=arrow_schema(type_))


def _values(data: bytes, width: int, sample: t.Type) -> Any:
    """The samples in some bytes."""
    pa, pc = arrow(), arrow("compute")
    if width == 3:  # as the upper bytes of four
        wide = bytearray(len(data) // 3 * 4)
        for byte in range(3):
            wide[byte + 1 :: 4] = data[byte::3]
        data = bytes(wide)
    kinds = {1: pa.uint8(), 2: pa.int16(), 3: pa.int32(), 4: pa.int32()}
    kind = kinds[width]
    values = pa.Array.from_buffers(kind, len(data) // (kind.bit_width // 8), [None, pa.py_buffer(data)])
    values = values.cast(pa.int64())
    if width == 1:
        values = pc.subtract(values, 128)
    if width == 3:
        values = pc.shift_right(values, 8)
    if sample in t.INTEGERS:
        return values.cast(pa.int32() if sample == t.I32 else pa.int64())
    scaled = pc.multiply(values.cast(pa.float64()), 2.0 ** (1 - 8 * width))
    return scaled.cast(pa.float32() if sample == t.F32 else pa.float64())


# ------------------------------------------------------------------------------------------------ writing


class WavSink:
    """Samples of 16 bits behind a header; takes record batches (`sinks.ArrowSink`)."""

    def __init__(self, output: AtomicOutput, type_: t.Type, format_: str) -> None:
        self.type = type_
        self._output = output
        self._rate = rate_of(format_)
        _, self._channels = sample_of(type_) or (t.F32, 1)
        self._bytes = 0
        self._write(self._header(_LARGEST))

    def _header(self, size: int) -> bytes:
        """The first 44 bytes of a file with so many bytes of samples; the largest where that is not known."""
        frame = 2 * self._channels
        return struct.pack(
            "<4sI4s4sIHHIIHH4sI", b"RIFF", min(size + _HEADER, _LARGEST), b"WAVE", b"fmt ", 16, 1, self._channels,
            self._rate, self._rate * frame, frame, 16, b"data", min(size, _LARGEST),
        )  # fmt: skip

    def _write(self, data: bytes) -> None:
        try:
            self._output.write_bytes(data)
        except BaseException:
            self._output.abort()
            raise

    def write(self, items: Sequence[Any]) -> None:
        """Takes items."""
        if items:
            self.write_table(to_batch(self.type, items))

    def write_table(self, batch: Any) -> None:
        """Takes a record batch."""
        pa, pc = arrow(), arrow("compute")
        values = batch.column(0)
        if isinstance(columns(self.type)[0][1], t.Array):
            values = values.flatten()
        if pa.types.is_floating(values.type):
            values = pc.if_else(
                pc.is_nan(values), 0.0, pc.round(pc.multiply(values.cast(pa.float64()), 32768.0))
            )
        values = pc.min_element_wise(pc.max_element_wise(values, -32768), 32767).cast(pa.int16())
        data = (
            values.buffers()[1].slice(values.offset * 2, len(values) * 2).to_pybytes() if len(values) else b""
        )
        self._bytes += len(data)
        self._write(data)

    def settled(self) -> int | None:
        """How many bytes have been written, which are on the disk now. Raises: Rejected("data-output")."""
        return self._output.settled()

    def close(self) -> None:
        """Completes the output: where one can go back in it, the header says how long it is."""
        file = self._output.file
        if file.seekable():
            file.flush()
            begin = file.tell() - self._bytes - len(self._header(0))
            file.seek(begin)
            file.write(self._header(self._bytes))
            file.seek(0, 2)
        self._output.close()

    def abort(self) -> None:
        """Gives the output up."""
        self._output.abort()
