"""Whole applications, held against what Python computes, or a standard says."""

from __future__ import annotations

import cmath
import math
import struct
from pathlib import Path
from typing import Any

import pytest

import river

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "streamit"
BACKENDS = ("multicore", "reference")


def printed(name: str, iterations: int, backend: str) -> str:
    results = river.load(str(PROGRAMS / name)).run({}, iterations=iterations, backend=backend)
    return "".join(results["stdout"]["value"].to_pylist())


def written(name: str, data: bytes, tmp_path: Path, backend: str) -> bytes:
    """What a program makes of the one file that it reads."""
    (tmp_path / "in.bin").write_bytes(data)
    compiled = river.load(str(PROGRAMS / name))
    (read,), (out,) = compiled.inputs, compiled.outputs
    compiled.run({read: str(tmp_path / "in.bin")}, {out: str(tmp_path / "out.bin")}, backend=backend)
    return (tmp_path / "out.bin").read_bytes()


def samples(frame: int) -> list[complex]:
    numbers = range(8 * frame, 8 * frame + 8)
    return [complex(math.sin(0.7 * n) + 0.1 * n, math.cos(1.3 * n)) for n in numbers]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fourier_transform(backend: str) -> None:
    lines = printed("fft.str", 2, backend).splitlines()
    assert len(lines) == 2 * 9
    for frame in range(2):
        x = samples(frame)
        head, *rest = lines[9 * frame : 9 * frame + 9]
        assert head.startswith(f"frame {frame} ")
        assert float(head.split()[2]) == pytest.approx(sum(abs(each) ** 2 for each in x), rel=1e-5)
        expected = [sum(x[n] * cmath.exp(-2j * math.pi * k * n / 8) for n in range(8)) for k in range(8)]
        found = [complex(*map(float, line.split())) for line in rest]
        assert found == [pytest.approx(each, rel=1e-4, abs=1e-4) for each in expected]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cosine_transform(tmp_path: Path, backend: str) -> None:
    block = [(7 * x * x + 3 * y + x * y) % 256 - 128 for y in range(8) for x in range(8)]
    found = struct.unpack("<64f", written("dct.str", struct.pack("<64i", *block), tmp_path, backend))

    def basis(u: int, x: int) -> float:
        return (math.sqrt(0.5) if u == 0 else 1) / 2 * math.cos((2 * x + 1) * u * math.pi / 16)

    expected = [
        sum(block[8 * y + x] * basis(u, x) * basis(v, y) for y in range(8) for x in range(8))
        for v in range(8)
        for u in range(8)
    ]
    assert list(found) == pytest.approx(expected, rel=1e-4, abs=1e-2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_filter_bank_and_an_echo(backend: str) -> None:
    count = 32
    found = [float(line) for line in printed("filterbank.str", count // 4, backend).splitlines()]
    tone = [n % 7 - 3 + n % 3 for n in range(400)]

    def fir(x: list[Any], h: list[float]) -> list[Any]:
        return [sum(x[n + k] * h[k] for k in range(12)) for n in range(len(x) - 11)]

    bands: list[list[float]] = []
    for i in range(4):
        h = [((k + i) % 5 - 2) / 8 for k in range(12)]
        thin = fir(tone, h)[::4]
        bands.append(fir([v for item in thin for v in (item, 0, 0, 0)], h))
    expected: list[float] = []
    for n in range(count):
        expected.append(sum(band[n] for band in bands) + 0.5 * (expected[n - 3] if n >= 3 else 0))
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_data_encryption_standard(tmp_path: Path, backend: str) -> None:
    plain = bytes.fromhex("0123456789ABCDEF")
    assert written("des.str", plain, tmp_path, backend).hex().upper() == "85E813540F0AB405"
