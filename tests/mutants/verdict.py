"""A plugin of pytest: how the tests of a run ended, as JSON in the file that RIVER_VERDICT names.

What a test that fails raised decides whether it has found a fault: a claim of the test's own does, a broken import does not.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

_ENDS: dict[str, str] = {}


def pytest_sessionstart() -> None:
    """A case that fails is enough: nobody reads the smallest one."""
    settings.register_profile(
        "mutants", settings.default, phases=[Phase.explicit, Phase.generate], database=None
    )
    settings.load_profile("mutants")


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Notes what was raised, and where; `passed` if nothing was."""
    if call.excinfo is None:
        if call.when == "call":
            _ENDS.setdefault(item.nodeid, "passed")
        return
    kind = call.excinfo.type
    if issubclass(kind, pytest.skip.Exception):
        _ENDS[item.nodeid] = "skipped"
    elif call.when != "call":
        _ENDS[item.nodeid] = f"{call.when}: {kind.__name__}"
    elif issubclass(kind, AssertionError | pytest.fail.Exception) or kind.__name__ == "GoldenMismatch":
        _ENDS[item.nodeid] = "failed"
    else:
        _ENDS[item.nodeid] = kind.__name__


def pytest_sessionfinish() -> None:
    """Writes what was noted."""
    Path(os.environ["RIVER_VERDICT"]).write_text(json.dumps(_ENDS), encoding="utf-8")
