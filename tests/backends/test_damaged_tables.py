"""Damaged Arrow and Parquet files end in an error or in rows that they hold: no crash, no mistake of ours, no hang.

`RIVER_CASES` says how many files of each kind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 1000
CASES = int(os.environ.get("RIVER_CASES", "1000"))
MEMORY = 300 << 20
"""Bytes that the files, of a few KB each, may take beyond what whole ones take."""


def read(kind: str, first: int, cases: int) -> None:
    argv = [sys.executable, "-m", "tests.backends.damaged_tables", kind, str(cases), str(first)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    *numbers, last = done.stdout.splitlines() or [""]
    assert done.returncode == 0, f"{' '.join(argv[1:4])} 1 {last}: {done.returncode}\n{done.stderr}"
    totals = json.loads(last)
    assert len(numbers) == cases
    assert totals.pop("grown") < MEMORY
    print(f"{kind}: {totals}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_damaged_files_are_read_or_refused(kind: str) -> None:
    read(kind, 0, 25)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_many_damaged_files_are_read_or_refused(kind: str, first: int) -> None:
    read(kind, first, min(CHUNK, CASES - first))
