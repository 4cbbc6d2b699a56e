"""Write signal.csv: two tones and a sweep on a frequency-modulated carrier, with a little noise.

Run it as `python make_data.py > signal.csv`. It needs only Python; the seed is fixed.
"""

from __future__ import annotations

import math
import random
import sys

RATE = 64_000.0
CARRIER = RATE / 4
DEVIATION = 3_000.0
SAMPLES = 2_000
NOISE = 0.01
SEED = 2011


def sound(t: float) -> float:
    """The audio signal at `t` seconds, between -1 and 1."""
    sweep = math.sin(2 * math.pi * (500 * t + 40_000 * t * t))
    return (math.sin(2 * math.pi * 440 * t) + math.sin(2 * math.pi * 1_800 * t) + sweep) / 3


def samples() -> list[float]:
    """The signal as it comes from the antenna."""
    noise = random.Random(SEED)
    phase = 0.0
    found: list[float] = []
    for n in range(SAMPLES):
        phase += 2 * math.pi * (CARRIER + DEVIATION * sound(n / RATE)) / RATE
        found.append(math.cos(phase) + noise.gauss(0, NOISE))
    return found


if __name__ == "__main__":
    sys.stdout.write("value\n")
    sys.stdout.writelines(f"{sample:.6f}\n" for sample in samples())
