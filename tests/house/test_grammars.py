"""What lark reads of the grammars of our languages is in the packages, and is what it reads of them now.

Written by `pytest --update-golden tests/house/test_grammars.py`, which proves first that they have no two readings. A grammar
that has changed since is read by lark at a first run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frontends.cql.parse import PARSER as CQL
from frontends.sawzall.parse import PARSER as SAWZALL
from frontends.streamit.parse import PARSER as STREAMIT
from river.il.parse import PARSER as IL
from river.lang.tables import rules

PARSERS = {"CQL": CQL, "Sawzall": SAWZALL, "StreamIt": STREAMIT, "River IL": IL}


def written(read: dict[str, Any]) -> str:
    """Rules as text, one a line, so that changes of several people go together."""
    lines = (
        f"{json.dumps(name)}: "
        + (
            "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
            if isinstance(value, list)
            else json.dumps(value)
        )
        for name, value in read.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("name", PARSERS)
def test_the_rules_in_the_package_are_those_of_the_grammar(name: str, pytestconfig: pytest.Config) -> None:
    parser = PARSERS[name]
    last = parser.modules[-1]
    file = Path(last.path).with_name(f"{last.name}.rules.json")
    text = written(rules(parser.text, parser.start, parser.build()))
    if pytestconfig.getoption("--update-golden"):
        parser.build(strict=True)  # what is written has no two readings
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, (
        "run `pytest --update-golden tests/house/test_grammars.py`"
    )
