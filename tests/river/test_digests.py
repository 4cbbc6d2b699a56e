"""SHA-256 for short texts: as `hashlib` has it, and without that in a run."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from river.digests import sha256

if TYPE_CHECKING:
    from pathlib import Path

RUN = """if True:
    import sys
    from river.cli import main
    status = main(["run", "p.cql", "--in", "s=s.csv", "--quiet"], sys.stdin, sys.stdout, sys.stderr)
    sys.exit(status or ("hashlib" in sys.modules and "hashlib was imported"))
"""


@given(parts=st.lists(st.binary()))
def test_digests_are_those_of_hashlib(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    found = sha256()
    for part in parts:
        found.update(part)
    assert found.digest() == sha256(whole).digest() == hashlib.sha256(whole).digest()
    assert found.hexdigest() == found.digest().hex()


@pytest.mark.skipif(
    not any(map(find_spec, ("_sha2", "_sha256"))), reason="this Python was built without a SHA-256 of its own"
)
def test_a_run_does_not_load_a_library_for_them(tmp_path: Path) -> None:
    (tmp_path / "p.cql").write_text("s: {ts: int; a: int} stream by ts; o: stream = select a from s;")
    (tmp_path / "s.csv").write_text("ts,a\n0,1\n0,2\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, ["ts,a", "0,1", "0,2"], "")
