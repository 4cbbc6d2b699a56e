"""Every diagnostic code is a literal that can be searched for, and occurs in a test.

The codes are read off the syntax of the packages: the first argument, or `code=`, of each `Diagnostic(...)`. A function
that passes its own parameter on as the code (`self._error("cql-window-empty", ...)`) is followed to its callers.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("calculus", "river", "frontends", "optimizers", "backends")


@frozen
class Emitter:
    """A callable that takes a code, and where among its arguments."""

    name: str
    keyword: str
    position: int


@frozen
class Emission:
    """A call of an emitter: what it gives as the code, and the parameters of the function around it."""

    place: str
    code: ast.expr
    within: ast.FunctionDef | ast.AsyncFunctionDef | None


DIAGNOSTIC = Emitter("Diagnostic", "code", 0)


def emissions(module: ast.AST, place: str, emitter: Emitter) -> Iterator[Emission]:
    def visit(node: ast.AST, within: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Iterator[Emission]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and called(child) == emitter.name:
                code = argument(child, emitter)
                if code is not None:
                    yield Emission(f"{place}:{child.lineno}", code, within)
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from visit(child, child if inner else within)

    yield from visit(module, None)


def called(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def argument(call: ast.Call, emitter: Emitter) -> ast.expr | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == emitter.keyword]
    return (named or call.args[emitter.position : emitter.position + 1] or [None])[0]


def forwards(emission: Emission) -> Emitter | None:
    """The function around the emission, when the code is one of its parameters."""
    match emission:
        case Emission(
            code=ast.Name(parameter), within=ast.FunctionDef() | ast.AsyncFunctionDef() as function
        ):
            arguments = function.args
            positional = [a.arg for a in arguments.posonlyargs + arguments.args]
            positional = positional[1:] if positional[:1] in (["self"], ["cls"]) else positional
            if parameter in positional:
                return Emitter(function.name, parameter, positional.index(parameter))
            if parameter in [a.arg for a in arguments.kwonlyargs]:
                return Emitter(function.name, parameter, len(positional) + 1_000)
            return None
        case _:
            return None


def literals(code: ast.expr) -> list[str] | None:
    """The codes an expression may be, or None when that cannot be read off."""
    match code:
        case ast.Constant(str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=orelse):
            left, right = literals(body), literals(orelse)
            return None if left is None or right is None else left + right
        case _:
            return None


def collect(modules: dict[str, ast.AST]) -> tuple[dict[str, str], list[str]]:
    """Each code with a place that emits it, and the places whose code is no literal."""
    codes: dict[str, str] = {}
    unreadable: list[str] = []
    waiting, seen = [DIAGNOSTIC], {DIAGNOSTIC}
    while waiting:
        emitter = waiting.pop()
        for place, module in modules.items():
            for emission in emissions(module, place, emitter):
                forwarder, found = forwards(emission), literals(emission.code)
                if forwarder is not None:
                    waiting += [forwarder] if forwarder not in seen else []
                    seen.add(forwarder)
                elif found is not None:
                    codes.update(dict.fromkeys(found, emission.place))
                else:
                    unreadable.append(emission.place)
    return codes, unreadable


@pytest.fixture(scope="module")
def collected() -> tuple[dict[str, str], list[str]]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return collect(
        {
            path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(paths)
        }
    )


def test_codes_are_literals(collected: tuple[dict[str, str], list[str]]) -> None:
    assert collected[1] == []


def test_codes_look_alike(collected: tuple[dict[str, str], list[str]]) -> None:
    assert [code for code in collected[0] if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", code)] == []


def test_every_code_is_tested(collected: tuple[dict[str, str], list[str]]) -> None:
    tests = [path for path in (ROOT / "tests").rglob("*") if path.is_file() and path != Path(__file__)]
    text = "\n".join(f"{path.stem}\n{path.read_text('utf-8')}" for path in tests if path.suffix in TEXTS)
    mentioned = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", text))
    assert {code: place for code, place in collected[0].items() if code not in mentioned} == {}


TEXTS = {".py", ".golden", ".river", ".cql", ".szl", ".str", ".txt"}

CODES = """
def check():
    Diagnostic("a-a", "")
    d.Diagnostic(message="", code="b-b" if x else "c-c")
    report("d-d")
    report(code="e-e")
    Checker().fail(node, "f-f")
    named(why="g-g")
    Diagnostic(f"h-{x}", "")

def report(code):
    Diagnostic(code, "")

class Checker:
    def fail(self, node, code):
        report(code)

def named(*, why):
    raise Rejected([Diagnostic(why, "")])
"""


def test_the_collector_sees_every_form() -> None:
    codes, unreadable = collect({"m.py": ast.parse(CODES)})
    assert sorted(codes) == ["a-a", "b-b", "c-c", "d-d", "e-e", "f-f", "g-g"]
    assert unreadable == ["m.py:9"]
