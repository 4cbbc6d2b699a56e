"""Whole applications, held against what Python computes, or a standard says."""

from __future__ import annotations

import cmath
import hashlib
import math
import struct
import zlib
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


def test_a_coarse_fourier_transform() -> None:
    found = [complex(*row) for row in rows("coarsefft.str", 2, "reference")]
    x = [[(frame + 3 * i) % 11 + 1j * (i == 2) for i in range(8)] for frame in (0, 1)]
    expected = [
        sum(each[n] * cmath.exp(-2j * math.pi * k * n / 8) for n in range(8)) for each in x for k in range(8)
    ]
    assert found == [pytest.approx(each, abs=1e-4) for each in expected]


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


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_data_encryption_standard(tmp_path: Path, backend: str) -> None:
    plain = bytes.fromhex("0123456789ABCDEF")
    assert written("des.str", plain, tmp_path, backend).hex().upper() == "85E813540F0AB405"


def rows(name: str, iterations: int, backend: str) -> list[list[float]]:
    """The numbers that stand in the lines that a program prints."""
    return [
        [float(word.strip(",")) for word in line.split()]
        for line in printed(name, iterations, backend).splitlines()
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_merge_sort(backend: str) -> None:
    state = 42
    expected: list[list[float]] = []
    for _ in range(3):
        items: list[int] = []
        for _ in range(8):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            items.append((state >> 16) % 100 - 20)
        expected.append([float(item) for item in sorted(items)])
    assert rows("mergesort.str", 3, backend) == expected


def test_a_recursive_bitonic_sort() -> None:
    keys = [(i * 7 + 3) % 16 * 5 - 16 for i in range(16)]
    assert rows("bitonicsort.str", 2, "reference") == [sorted(k + n for k in keys) for n in range(2)]


def test_a_product_of_matrices() -> None:
    numbers = iter(float(n % 10) for n in range(60))
    expected: list[list[float]] = []
    for _ in range(3):
        a = [[next(numbers) for _ in range(4)] for _ in range(3)]
        b = [[next(numbers) for _ in range(2)] for _ in range(4)]
        expected += [
            [math.fsum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)]
            for row in a
        ]
    assert rows("matrixmult.str", 3, "reference") == expected


def test_a_beam_former() -> None:
    channels, beams, samples = 4, 3, 16

    def fir(x: list[complex], taps: int, thin: int) -> list[complex]:
        w = [(math.sin(j) / j, math.cos(j) / j) for j in range(1, taps + 1)]
        kept = x[::thin]  # what is dropped is not seen
        found: list[complex] = []
        for n in range(len(kept)):
            past = [(kept[n - i], *w[i]) for i in range(min(taps, n + 1))]
            found.append(
                complex(
                    sum(z.real * r + z.imag * m for z, r, m in past),
                    sum(z.imag * r + z.real * m for z, r, m in past),
                )
            )
        return found

    thinned: list[list[complex]] = []
    for c in range(channels):
        x = [complex(-(c + 1) / 10, 0.25 * n / samples) for n in range(samples)]
        x[4] = complex(math.sqrt(4 * (c + 1)), 1 - math.sqrt(4 * (c + 1)))
        thinned.append(fir(fir(x, 4, 1), 3, 2))
    expected: list[list[float]] = []
    for b in range(beams):
        w = [complex(math.sin(j), math.cos(j)) / (b + j) for j in range(1, channels + 1)]
        beam = [sum(w[c] * thinned[c][n] for c in range(channels)) for n in range(8)]
        sizes = [abs(z) for z in fir(beam, 8, 1)]
        expected += [[(b + 1) * (n == 2) + 1000 * (v >= 0.5), v] for n, v in enumerate(sizes)]
    in_turns = [expected[8 * b + n] for n in range(8) for b in range(beams)]
    found = rows("beamformer.str", 8, "reference")
    assert [row[0] for row in found] == [row[0] for row in in_turns]
    assert {row[0] for row in found} > {0, 1000, 1003}
    assert [row[1] for row in found] == pytest.approx([row[1] for row in in_turns], rel=1e-4, abs=1e-4)


def test_a_channel_vocoder() -> None:
    tone = [-0.70867825, 0.9750938, -0.009129746, 0.28532153, -0.42127264, -0.95795095, 0.68976873, 0.99901736, -0.8581795,
            0.9863592, 0.909825]  # fmt: skip
    x = [tone[n % 11] for n in range(60)]

    def low(x: list[float], gain: float, cut: float) -> list[float]:
        h = [gain * (cut / math.pi if k == 0 else math.sin(cut * k) / (math.pi * k)) for k in range(-3, 5)]
        return [sum(x[n + i] * h[i] for i in range(8)) for n in range(len(x) - 7)]

    x = low(x, 1, 2 * math.pi * 5000 / 8000)
    clipped = [min(0.75, max(-0.75, v)) for v in x]
    expected: list[list[float]] = []
    bands: list[list[float]] = []
    for i in range(4):
        high, below = (low(x, 2, 400 * (i + k) / 8000 * 2 * math.pi) for k in (1, 0))
        bands.append([a - b for a, b in zip(high, below, strict=True)])
    for n in range(0, 25, 5):
        window = clipped[n : n + 20]
        peak = max(0.0, *(sum(window[i] * v for v in window[i:]) / 20 for i in range(20)))
        expected.append([peak if peak > 0.07 else 0.0, *(band[n] for band in bands)])
    found = rows("channelvocoder.str", 5, "reference")
    assert found == [pytest.approx(row, rel=1e-4, abs=1e-5) for row in expected]


@pytest.mark.slow
def test_serpent(tmp_path: Path) -> None:
    """The first vector with a key of 256 bits of the algorithm's submission."""
    expected = "A223AA1288463C0E2BE38EBD825616C0"
    assert written("serpent.str", bytes(16), tmp_path, "reference").hex().upper() == expected


def test_time_delay_equalisation() -> None:
    found = [complex(*row) for row in rows("tde.str", 2, "reference")]
    expected: list[complex] = []
    for block in (range(16), range(16, 32)):
        x = [complex(t * t % 11 - 5, t % 3) for t in block]
        expected += [0.5 * x[(n - 3) % 16] for n in range(16)]
    assert found == [pytest.approx(each, abs=1e-5) for each in expected]


def test_a_radar() -> None:
    assert printed("radar.str", 2, "reference") == 2 * "velocity 0 range 5\nvelocity 1 range 14\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_decoder_of_blocks(tmp_path: Path, backend: str) -> None:
    blocks = [
        [(0, 40), (0, -9), (0, 7), (2, 3), (1, -2), (5, 4), (20, 1), (9, 0)],
        [(0, -55), (3, 6), (0, 0), (10, -3), (30, 2), (40, 9), (0, 0), (0, 0)],
    ]
    order = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
    expected: list[int] = []
    last = 0
    for block in blocks:
        line = [0] * 64
        at = 0
        for run, value in block:
            at += run
            if at < 64:
                line[at] = value
            at += 1
        last += line[0]
        line[0] = last
        c = [0] * 64
        for i, place in enumerate(order):
            c[place] = line[i] * (3 + place // 8 + place % 8)

        def basis(u: int, x: int) -> float:
            return math.sqrt((1 if u == 0 else 2) / 8) * math.cos(u * (2 * x + 1) * math.pi / 16)

        for y in range(8):
            for x in range(8):
                v = sum(c[8 * i + j] * basis(i, y) * basis(j, x) for i in range(8) for j in range(8))
                expected.append(min(255, max(0, round(v + 128))))
    data = struct.pack("<32i", *(n for block in blocks for pair in block for n in pair))
    found = struct.unpack("<128i", written("blockdecoder.str", data, tmp_path, backend))
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= 1
    assert sum(a != b for a, b in zip(found, expected, strict=True)) <= 2
    assert len(set(expected)) > 30


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_convolutional_code(backend: str) -> None:
    register = 0x2A5
    expected: list[str] = []
    for _ in range(3):
        bits = ""
        for _ in range(20):
            bits += str(register & 1)
            register = ((register >> 1) & 0x7FFF) | (((register ^ (register >> 1)) & 1) << 14)
        expected.append(f"{bits} 0")
    assert printed("convolution.str", 3, backend).splitlines() == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_television_transmitter(backend: str) -> None:
    data, state = [0] * 60, 7
    while len(data) < 96:
        state = (state * 5 + 3) & 255
        data.append(state & 3)
    expected = [f"{''.join(map(str, data[i : i + 12]))} 0 of {i + 12}" for i in range(0, 96, 12)]
    assert printed("television.str", 8, backend).splitlines() == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_rays(backend: str) -> None:
    def wall(x: int, y: int) -> bool:
        return x in (0, 15) or y in (0, 7) or (x * 5 + y * 3) % 13 == 0

    expected: list[str] = []
    for ray in range(9):
        x, y, steps = (7 << 8) + 128, (4 << 8) + 100, 0
        while not steps or not wall(x >> 8, y >> 8):
            x += int(64 * math.cos(ray * math.pi / 8) + math.copysign(1e-4, math.cos(ray * math.pi / 8)))
            y += int(64 * math.sin(ray * math.pi / 8) + math.copysign(1e-4, math.sin(ray * math.pi / 8)))
            steps += 1
        expected.append(f"ray {ray} at {x >> 8},{y >> 8} after {steps}")
    assert printed("raycast.str", 3, backend).splitlines() == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_decoder_of_pictures_that_move(backend: str) -> None:
    old, new = ([[0] * 8 for _ in range(8)] for _ in range(2))
    expected: list[str] = []
    last = 0
    for n in range(26):
        kind = 1 if n // 4 % 3 == 0 else 2
        mx, my = n % 3 - 1, n // 2 % 3 - 1
        if kind != last:
            expected.append(f"type {kind}")
        last, total = kind, 0
        for i in range(16):
            y, x = n % 4 // 2 * 4 + i // 4, n % 2 * 4 + i % 4
            value = (i * (n + 3) % 5 + (20 if kind == 1 else 0)) * 3
            value += old[max(0, min(7, y + my))][max(0, min(7, x + mx))] if kind == 2 else 0
            new[y][x] = value & 255
            total = (total * 33 + new[y][x]) & 0xFFFF
        expected.append(f"{n}: {total}")
        old = [list(row) for row in new] if n % 4 == 3 else old
    assert printed("video.str", 26, backend).splitlines() == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_antennas_are_told_apart(backend: str) -> None:
    lines = rows("zeroforcing.str", 3, backend)
    for turn in range(3):
        numbers = [(turn * 31 + i * 17) % 23 / 8 - 1 for i in range(18)]
        z = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
        a = [[z[3 * i + j] * (1 + 0.5j) for i in range(2)] for j in range(3)]

        def product(left: int, right: list[complex], a: list[list[complex]] = a) -> complex:
            return sum((a[j][left].conjugate() * right[j] for j in range(3)), start=0j)

        x = [complex(*row) for row in lines[2 * turn : 2 * turn + 2]]
        for i in range(2):
            there = sum(product(i, [row[k] for row in a]) * x[k] for k in range(2)) + 0.1 * x[i]
            assert there == pytest.approx(product(i, z[6:]), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_encoder_of_pictures_and_its_decoder(backend: str) -> None:
    def basis(u: int, x: int) -> float:
        return math.sqrt((1 if u == 0 else 2) / 8) * math.cos(u * (2 * x + 1) * math.pi / 16)

    text = (PROGRAMS / "jpeg.str").read_text().partition("QUANT = {")[2].partition("};")[0]
    quant = [int(word) for word in text.replace("{", " ").replace("}", " ").replace(",", " ").split()]
    places = range(8)
    for block, found in enumerate(rows("jpeg.str", 2, backend)):
        pixels = [
            [(x * x * (block + 1) + y * 3 * (x + block) + (40 if x > 3 else 0)) % 256 for x in places]
            for y in places
        ]
        c = {
            (u, v): sum((pixels[y][x] - 128) * basis(u, y) * basis(v, x) for y in places for x in places)
            for u in places
            for v in places
        }
        kept = {(u, v): math.floor(c[u, v] / quant[8 * u + v] + 0.5) * quant[8 * u + v] for u, v in c}
        total, line = 0, list[int]()
        for y in places:
            for x in places:
                value = sum(each * basis(u, y) * basis(v, x) for (u, v), each in kept.items())
                line.append(max(0, min(255, math.floor(value + 0.5) + 128)))
                total = (total * 31 + line[-1]) & 0xFFFFFF
        assert found == [*line[:8], total]


def test_a_message_digest() -> None:
    letters = bytes(ord("a") + i % 26 for i in range(39))
    expected = [hashlib.md5(letters[:n], usedforsecurity=False).hexdigest() for n in (0, 13, 26, 39)]
    assert printed("md5.str", 4, "multicore").split() == expected


def test_a_transmitter_of_symbols() -> None:
    register, bits = 0x5A, list[int]()
    for _ in range(400):
        bit = ((register >> 6) ^ (register >> 5)) & 1
        register = (register << 1 | bit) & 0x7F
        bits.append(bit)
    state, sent = [1, 0, 1, 1, 1, 0, 1], [0] * 6
    for bit in bits:
        mask = state[6] ^ state[3]
        sent.append(bit ^ mask)
        state = [mask, *state[:6]]
    coded: list[int] = []
    for w in (sent[i : i + 7] for i in range(len(bits))):
        coded += [w[0] ^ w[1] ^ w[3] ^ w[4] ^ w[6], w[0] ^ w[3] ^ w[4] ^ w[5] ^ w[6]]
    kept = [bit for i, bit in enumerate(coded) if i % 4 != 3]
    expected: list[complex] = []
    for start in range(0, 96, 48):
        mixed = [kept[start + i] for row in range(12) for i in range(row, 48, 12)]
        points = [
            complex(2 * a - 1, 2 * b - 1) / math.sqrt(2) for a, b in zip(mixed[::2], mixed[1::2], strict=True)
        ]
        carriers = [0j] * 8 + points
        wave = [
            sum(c * cmath.exp(2j * math.pi * k * n / 32) for k, c in enumerate(carriers)) / 32
            for n in range(32)
        ]
        expected += [*wave[24:], *wave]
    found = [complex(*row) for row in rows("ofdm.str", 2, "multicore")]
    assert len(found) == len(expected)
    assert found == [pytest.approx(each, abs=1e-4) for each in expected]


def test_a_decoder_mends_what_a_channel_spoils() -> None:
    x, expected = 1, list[str]()
    for _ in range(30):
        x = (x * 75 + 74) % 65537
        bit = (x >> 3) & 1
        expected.append(f"{bit}{bit} 0")
    assert printed("viterbi.str", 30, "multicore").splitlines() == expected


def test_a_game_in_a_loop_beside_check_sums() -> None:
    alive, expected, letters = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}, list[str](), 0
    for _ in range(9):
        word = bytes(ord("a") + (letters + i) % 26 for i in range(9))
        letters += 9
        (crc,) = struct.unpack("<i", struct.pack("<I", zlib.crc32(word)))
        near: dict[tuple[int, int], int] = {}
        for x, y in alive:
            for place in ((x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy):
                wrapped = place[0] % 6, place[1] % 6
                near[wrapped] = near.get(wrapped, 0) + 1
        alive = {place for place, n in near.items() if n == 3 or (n == 2 and place in alive)}
        expected += [str(crc), *("".join(".#"[(x, y) in alive] for x in range(6)) for y in range(6))]
    assert printed("life.str", 9, "multicore").splitlines() == expected
