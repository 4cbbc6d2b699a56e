"""Damaged Arrow and Parquet files end in an error or in rows that they hold: no crash, no mistake of ours, no hang.

`RIVER_CASES` says how many files of each kind.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

import pyarrow as pa
from pyarrow import parquet

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


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_damaged_files_are_read_or_refused(kind: str) -> None:
    read(kind, 0, 12)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_many_damaged_files_are_read_or_refused(kind: str, first: int) -> None:
    read(kind, first, min(CHUNK, CASES - first))


COPY = """river 1;
input a: {s: string?};
output o: {s: string?};
operator copy(a: {s: string?}) -> (o: {s: string?}) { on a(x) { emit o x; } }
(o) <- copy(a);
"""


def test_sizes_of_a_column_that_are_damaged_are_told(tmp_path: Path) -> None:
    """The library throws where it looks at such a column, and the process ends if nobody asked it to read."""
    out = io.BytesIO()
    parquet.write_table(pa.table({"s": ["a", "b", None, "a"] * 100}), out)
    levels = bytes.fromhex("1906"), bytes.fromhex("1926c801d804")  # none of repetition, two of definition
    data = out.getvalue()
    assert data.count(b"".join(levels)) == 1
    (tmp_path / "a.parquet").write_bytes(data.replace(b"".join(levels), b"".join(levels[::-1])))
    (tmp_path / "p.river").write_text(COPY)
    run = ["-m", "river", "run", "p.river", "--in", "a=a.parquet", "--out", "o=-"]
    done = subprocess.run([sys.executable, *run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[data-unreadable]" in done.stderr
    assert "level histogram size mismatch" in done.stderr
