"""What becomes machine code grows with a program, and no faster."""

from __future__ import annotations

import re
from typing import Final

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native.jit import host
from backends.native.lower import batches
from backends.native.lower.batches import Lowered, lower
from river.lang import typed

_FN: Final = re.compile(
    r"^define internal i1 @(fn\.[\w.]+)\([^)]*\)( noinline)? nounwind \{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)


def operator(fns: str, first: str) -> typed.Operator:
    """An operator that calls a function of its own."""
    text = (
        "river 1; input t: {x: i64}; output o: {x: i64};\noperator f(t: {x: i64}) -> (o: {x: i64}) {\n"
        f"{fns}  on t(r) {{ emit o {{x: {first}(r.x)}}; }}\n}}\n(o) <- f(t);\n"
    )
    found = river.compile(text, "river").graph.instances[0].operator
    assert isinstance(found, typed.Operator)
    return found


def chain(length: int) -> dict[str, tuple[bool, int, set[str]]]:
    """The functions of a chain: whether each is called whatever LLVM thinks, its lines, those that it calls."""
    fns = "".join(
        f"  fn f{i}(x: i64) -> i64 {{ return f{i - 1}(x) *% 3 +% {i}; }}\n" for i in range(1, length)
    )
    op = operator(f"  fn f0(x: i64) -> i64 {{ return x + 1; }}\n{fns}", f"f{length - 1}")
    found = lower(op, host().architecture)
    assert isinstance(found, Lowered)
    return {
        name: (bool(apart), body.count("\n"), set(re.findall(r"@(fn\.[\w.]+)\(", body)))
        for name, apart, body in _FN.findall(found.text)
    }


def inlined(functions: dict[str, tuple[bool, int, set[str]]]) -> int:
    """Lines that are optimised in all, if whatever may be inlined is."""
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            _, lines, called = functions[name]
            sizes[name] = lines + sum(size(each) for each in called if not functions[each][0])
        return sizes[name]

    return sum(map(size, functions))


def test_a_chain_of_functions_is_optimised_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(apart for apart, _, _ in chain(4).values())  # what is small is left to LLVM
    monkeypatch.setattr(batches, "_INLINED", 200)
    one, two = inlined(chain(40)), inlined(chain(80))
    assert one < two < 2.2 * one


def test_functions_that_call_one_another_are_kept_apart_alike_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    op = operator(
        "  fn a(x: i64) -> i64 { return if x < 1 { 0 } else { b(x - 1) }; }\n"
        "  fn b(x: i64) -> i64 { return if x < 1 { 1 } else { a(x - 1) }; }\n",
        "a",
    )
    monkeypatch.setattr(batches, "_INLINED", 10)
    one, two = (lower(op, host().architecture) for _ in range(2))
    assert isinstance(one, Lowered)
    assert isinstance(two, Lowered)
    assert one.text == two.text
    assert all(apart for _, apart, _ in _FN.findall(one.text))
