"""Every diagnostic code begins with the name of what speaks, and occurs in a test.

A code is a string literal `FAMILY-words` of the packages. The families are listed here, so that a literal which is given
straight to `Diagnostic` and looks otherwise is found, too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("calculus", "river", "frontends", "optimizers", "backends")
FAMILIES = (
    "check", "cql", "data", "extern", "graph", "il", "lang", "missing", "native", "not", "pass", "plugin", "profile",
    "run", "sawzall", "spark", "sql", "streamit", "syntax", "trap", "unknown", "usage",
)  # fmt: skip
CODE = re.compile(rf"(?:{'|'.join(FAMILIES)})(?:-[a-z0-9]+)+")
TEXTS = {".py", ".golden", ".river", ".cql", ".szl", ".txt", ".str", ".md"}
Nodes = list[ast.AST]
MET = (ast.Constant, ast.Call, ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NOT_CODES = {"not-word"}
"""Literals of that form which are no codes."""


def constants(nodes: Nodes) -> list[ast.Constant]:
    """String literals of a module, without its docstrings."""
    docs = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def codes_of(nodes: Nodes, place: str) -> dict[str, str]:
    return {
        str(node.value): f"{place}:{node.lineno}"
        for node in constants(nodes)
        if CODE.fullmatch(str(node.value)) and node.value not in NOT_CODES
    }


def odd_codes(nodes: Nodes, place: str) -> list[str]:
    """Literals given straight to `Diagnostic` that are of no family."""
    found: list[str] = []
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Diagnostic":
            match call.args[:1]:
                case [ast.Constant(str(code))] if not CODE.fullmatch(code) and code != "usage":
                    found.append(f"{place}:{call.lineno}: {code}")
                case _:
                    pass
    return found


def read(text: str) -> Nodes:
    """What of a module may be a code, or say what is one."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, MET)]


@pytest.fixture(scope="module")
def modules() -> dict[str, Nodes]:
    """Those in which there may be a code; what can hold one of their trees, which are walked once."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(paths)}
    return {
        place: read(text)
        for place, text in texts.items()
        if "Diagnostic(" in text or re.search(rf"[\"']{CODE.pattern}[\"']", text)
    }


def test_codes_look_alike(modules: dict[str, Nodes]) -> None:
    assert [odd for place, nodes in modules.items() for odd in odd_codes(nodes, place)] == []


def test_every_code_is_tested(modules: dict[str, Nodes]) -> None:
    codes = {code: place for name, nodes in modules.items() for code, place in codes_of(nodes, name).items()}
    assert len(codes) > 100
    tests = [path for path in (ROOT / "tests").rglob("*") if path.is_file() and path != Path(__file__)]
    text = "\n".join(f"{path.stem}\n{path.read_text('utf-8')}" for path in tests if path.suffix in TEXTS)
    mentioned = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", text))
    assert {code: place for code, place in codes.items() if code not in mentioned} == {}


def test_the_collector_sees_literals_but_no_docstrings() -> None:
    nodes = read(
        'def f():\n    "lang-doc is no code"\n    fail("lang-a", x)\n    Diagnostic("odd", "")\n'
        '    return "data-b" if c else "cql-c"\n'
    )
    assert sorted(codes_of(nodes, "m")) == ["cql-c", "data-b", "lang-a"]
    assert odd_codes(nodes, "m") == ["m:4: odd"]
