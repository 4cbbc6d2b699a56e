"""Golden cases of diagnostics are called by the code that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[1] / "golden" / "check"


@pytest.mark.parametrize("path", sorted(CHECK.glob("*.golden")), ids=lambda p: p.stem)
def test_the_name_is_the_code(path):
    _, _, said = path.read_text(encoding="utf-8").partition("# STDERR\n")
    assert f"[{path.stem}]: " in said
