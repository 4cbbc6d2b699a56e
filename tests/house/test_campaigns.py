"""The campaigns: what they name exists, and what comes out is written down."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.campaigns import run as campaigns

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TESTS = "def test_it():\n    assert {}\n"


def test_campaigns_name_tests_that_exist() -> None:
    assert len({one.name for one in campaigns.CAMPAIGNS}) == len(campaigns.CAMPAIGNS)
    for one in campaigns.CAMPAIGNS:
        path, _, name = one.tests[0].partition("::")
        text = (campaigns.ROOT / path).read_text("utf-8")
        assert "RIVER_CASES" in text, one
        words = [name] if name else [one.tests[2]] if one.tests[1:2] == ("-k",) else ["test_"]
        assert all(re.search(rf"def \w*{word}", text) for word in words), one


def test_the_table_of_the_document_is_made_of_campaigns() -> None:
    document = (campaigns.ROOT / "docs/trust.md").read_text("utf-8")
    assert campaigns.tabled(document, {}).replace(campaigns.HEAD, "") == document.replace(campaigns.HEAD, "")


def test_results_are_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "trust.md"
    table.write_text("before\n<!-- campaigns -->\n<!-- end -->\nafter\n")
    names = {"holds": "True", "fails": "False", "none": None}
    for name, said in names.items():
        (tmp_path / f"test_{name}.py").write_text("" if said is None else TESTS.format(said))
    made = [campaigns.Campaign(n, f"it {n}", 7, 2, (str(tmp_path / f"test_{n}.py"),)) for n in names]
    monkeypatch.setattr(campaigns, "CAMPAIGNS", tuple(made))
    monkeypatch.setattr(campaigns, "BUILD", tmp_path / "build")
    monkeypatch.setenv("RIVER_SEED", "5")
    assert campaigns.main(["--only", "holds", "--cases", "3", "--table", str(table)]) == 0
    assert campaigns.main(["--only", "fails", "--only", "none", "--table", str(table)]) == 1
    before, *rows, end, after = table.read_text().splitlines()
    assert (before, end, after) == ("before", "<!-- end -->", "after")
    assert [row.split(" | ")[:4] for row in rows[3:]] == [
        ["| holds", "it holds", "2 × 3", "holds"],
        ["| fails", "it fails", "2 × 7", "**1 of 1 tests fail**"],
        ["| none", "it none", "2 × 7", "**1 of 0 tests fail**"],
    ]
    found = json.loads((tmp_path / "build/holds.json").read_text())
    assert (found["cases"], found["tests"], found["failed"], found["seed"]) == (3, 1, 0, "5")
    assert "it holds" in capsys.readouterr().out
