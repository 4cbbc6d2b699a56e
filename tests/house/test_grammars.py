"""What lark reads of the grammars of our languages is in the packages, and is what it reads of them now.

Written by `pytest --update-golden tests/house/test_grammars.py`. A grammar that has changed since is read by lark at a first run.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from frontends.cql.parse import PARSER as CQL
from frontends.sawzall.parse import PARSER as SAWZALL
from frontends.streamit.parse import PARSER as STREAMIT
from river.il.parse import PARSER as IL
from river.lang.tables import rules

STRICT = Path(__file__).parent / "strict.sha256"
"""Of the grammar of CQL that has been read strictly: to prove that no two of its terminals overlap takes six seconds."""

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
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, (
        "run `pytest --update-golden tests/house/test_grammars.py`"
    )


def test_the_grammar_of_cql_has_no_two_readings(pytestconfig: pytest.Config) -> None:
    """The other languages have tests of their own, which are quick."""
    digest = sha256(CQL.text.encode()).hexdigest()
    if pytestconfig.getoption("--update-golden") or pytestconfig.getoption("--every-case"):
        CQL.build(strict=True)
    if pytestconfig.getoption("--update-golden"):
        STRICT.write_text(digest + "\n", encoding="utf-8")
    assert STRICT.read_text(encoding="utf-8").strip() == digest, (
        "the grammar has changed: run `pytest --update-golden tests/house/test_grammars.py`, which reads it strictly"
    )
