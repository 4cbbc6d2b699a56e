"""What an operation does is stated in the table of operations: nothing else decides by its name.

Allowed to are those that give an operation its meaning or its text: the table, the checker and the printer of texts, who makes
machine code or SQL of it, and the languages. All others ask for its line, `effect` above all.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from river.lang import types as t
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
EMITTERS = tuple(
    f"backends/native/lower/{name}.py"
    for name in (
        "arithmetic", "containers", "conversions", "decimals", "expressions", "functions", "lambdas", "lists", "maps",
        "mutations", "regex", "texts",
    )
)  # fmt: skip
NAMED = (
    "river/lang/operations/",
    "river/lang/check/",
    "river/lang/pretty.py",
    "river/testing/",
    "backends/native/lanes/body.py",
    "backends/native/lanes/operations.py",
    "backends/spark/sql.py",
    *EMITTERS,
)
SOURCES = [
    path
    for layer in ("river", "optimizers", "backends")
    for path in sorted((ROOT / layer).rglob("*.py"))
    if not path.relative_to(ROOT).as_posix().startswith(NAMED)
]
WORDS = frozenset(OPERATIONS)
ELSEWHERE = frozenset(
    {
        "*",
        "/",
        "~",
        "&",
        "|",
        "^",
        *(type_.name for type_ in (*t.INTEGERS, *t.FLOATS, t.STRING, t.TIME, t.DURATION)),
    }
)
"""Symbols of paths and formats, and types, by whose names conversions are called."""


def decisions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that tell an operation by its name: a pattern of a typed node, a comparison, a set, of two words at least."""
    for node in ast.walk(tree):
        match node:
            case ast.MatchClass(ast.Attribute(attr="Apply"), patterns, _, named):
                of_name = patterns[1:2] + [
                    p for p, key in zip(named, node.kwd_attrs, strict=True) if key == "operation"
                ]
                for inner in (each for pattern in of_name for each in ast.walk(pattern)):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        yield inner.lineno, inner.value
            case ast.Compare(left, _, comparators):
                sides = [left, *comparators]
                if any(isinstance(side, ast.Attribute) and side.attr == "operation" for side in sides):
                    yield node.lineno, ast.unparse(node)
            case ast.Match(ast.Attribute(attr="operation")):
                yield node.lineno, ast.unparse(node.subject)
            case ast.Set(items) | ast.Tuple(items) | ast.List(items):
                texts = {item.value for item in items if isinstance(item, ast.Constant)}
                words = {text for text in texts if isinstance(text, str)}
                if len(words) > 1 and words == texts and len(words & WORDS - ELSEWHERE) == len(words):
                    yield node.lineno, ast.unparse(node)
            case _:
                pass


WORD = re.compile(rf"[\"']({'|'.join(map(re.escape, sorted(WORDS - ELSEWHERE)))})[\"']")


def may_decide(text: str) -> bool:
    """Whether a text has any of the words without which nothing in it decides: most need not be taken apart."""
    return "Apply(" in text or "operation" in text or len(set(WORD.findall(text))) > 1


CASES = {
    "match node:\n  case typed.Apply(_, 'len', (rows,), _): pass": ["len"],
    "match node:\n  case typed.Apply(operation='push' | 'add'): pass": ["push", "add"],
    "match node:\n  case typed.Apply(type_, name, args): pass": [],
    "if node.operation == 'delete': pass": ["node.operation == 'delete'"],
    "if 'delete' != node.operation: pass": ["'delete' != node.operation"],
    "match node.operation:\n  case 'get': pass": ["node.operation"],
    "READS = frozenset({'hash64', 'slice'})": ["{'hash64', 'slice'}"],
    "if name in ('min', 'max'): pass": ["('min', 'max')"],
    "stated = effect(node)": [],
}


@pytest.mark.parametrize("text", CASES)
def test_decisions_by_name_are_seen(text: str) -> None:
    assert [found for _, found in decisions(ast.parse(text))] == CASES[text]
    assert may_decide(text) or not CASES[text]


def test_nothing_decides_by_the_name_of_an_operation() -> None:
    assert len(SOURCES) > 100
    texts = {path.relative_to(ROOT): path.read_text() for path in SOURCES}
    found = [
        f"{path}:{line}: {what}"
        for path, text in texts.items()
        if may_decide(text)
        for line, what in decisions(ast.parse(text))
    ]
    assert found == []


def test_every_line_states_its_effect() -> None:
    """Unstated is the worst: none of ours is left at it."""
    from river.lang.operations.effects import WORST

    assert [name for name, operation in OPERATIONS.items() if operation.effect == WORST] == []
