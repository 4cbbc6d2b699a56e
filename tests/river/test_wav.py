"""Sound files are those that Python's `wave` reads and writes."""

from __future__ import annotations

import io
import struct
import wave
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.diagnostics import Rejected
from river.io.sinks import open_sink
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from pathlib import Path

STEREO = t.Array(t.F32, 2)


def sound(path: Path, data: bytes, *, width: int = 2, channels: int = 1) -> str:
    """A file that `wave` has written."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, 8000, 0, "NONE", ""))
        file.writeframes(data)
    return str(path)


def heard(path: str, type_: t.Type) -> list[Any]:
    return [item for items in open_source(path, type_, name="in") for item in items]


@pytest.mark.parametrize(
    ("width", "data", "whole"),
    [
        (1, bytes([0, 128, 255]), [-128, 0, 127]),
        (2, struct.pack("<3h", -32768, 0, 16384), [-32768, 0, 16384]),
        (3, b"\0\0\x80" + b"\xff\xff\xff" + b"\0\0\x40", [-(1 << 23), -1, 1 << 22]),
        (4, struct.pack("<3i", -(1 << 31), -1, 1 << 30), [-(1 << 31), -1, 1 << 30]),
    ],
)
def test_samples_of_all_widths(tmp_path: Path, width: int, data: bytes, whole: list[int]) -> None:
    path = sound(tmp_path / "a.wav", data, width=width)
    assert heard(path, t.I32) == whole
    assert heard(path, t.F64) == [value / (1 << (8 * width - 1)) for value in whole]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    items = [(0.5, -1.0), (0.25, 0.0), (7.0, float("nan"))]
    with open_sink(str(path), STEREO, name="out", format="wav@8000") as sink:
        sink.write(items[:2])
        sink.write(items[2:])
    with wave.open(str(path)) as file:
        assert file.getparams()[:4] == (2, 2, 8000, 3)
    assert heard(str(path), STEREO) == [(0.5, -1.0), (0.25, 0.0), (32767 / 32768, 0.0)]


def test_a_stream_that_cannot_be_gone_back_in_is_read_to_its_end(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    file = Pipe()
    with open_sink(file, t.I32, name="out", format="wav") as sink:
        sink.write([1, -2, 70_000])
    (tmp_path / "a.wav").write_bytes(file.getvalue())
    assert heard(str(tmp_path / "a.wav"), t.I32) == [1, -2, 32767]


@pytest.mark.parametrize(
    ("type_", "cut", "code", "said"),
    [
        (t.F32, 0, "data-format", "2 channels"),
        (t.STRING, 0, "data-format", "does not hold"),
        (STEREO, 4, "data-truncated", "1 sample too early"),
        (STEREO, 30, "data-format", "no WAV file"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, type_: t.Type, cut: int, code: str, said: str) -> None:
    path = sound(tmp_path / "a.wav", bytes(8), channels=2)
    data = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(data[: len(data) - cut])
    with pytest.raises(Rejected) as refused:
        heard(path, type_)
    (found,) = refused.value.diagnostics
    assert (found.code, said in found.message) == (code, True)


def test_an_echo_can_be_heard(tmp_path: Path) -> None:
    echo = """
      float->float feedbackloop Echo {
        join roundrobin(1, 1);
        body float->float filter { work pop 2 push 1 { push(pop() + 0.5 * pop()); } };
        loop Identity<float>;
        split duplicate;
        enqueue 0; enqueue 0;
      }
    """
    path = sound(tmp_path / "clap.wav", struct.pack("<5h", 16384, 0, 0, 0, 0))
    out = str(tmp_path / "echo.wav")
    river.compile(echo, lang="streamit").run({"input": path}, {"output": out})
    assert heard(out, t.F32) == [0.5, 0.0, 0.25, 0.0, 0.125]
