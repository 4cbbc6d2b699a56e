"""Outputs that appear whole or not at all, when their making is interrupted."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from river.io.atomic import Output


def test_nothing_is_left_of_an_output_that_nobody_has_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.csv"
    target.write_text("before")
    seen: list[str] = []

    def interrupted(path: Path, _: int) -> None:
        seen.append(path.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "chmod", interrupted)  # what comes right after the file was made
    with pytest.raises(KeyboardInterrupt) as raised:
        Output(target)
    assert [name for name in seen if name.endswith(".part")] == seen != []
    del raised
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]
    assert target.read_text() == "before"
