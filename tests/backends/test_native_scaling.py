"""What becomes machine code grows with a program, and no faster."""

from __future__ import annotations

import re
from typing import Final

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native.jit import QUICK, host, machine_code
from backends.native.lower import batches
from backends.native.lower.batches import Lowered, lower
from backends.native.spelled import spelled
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


def wide(fields: int) -> typed.Operator:
    """An operator that sums up each of the fields of a row."""
    names = [f"c{i}" for i in range(fields)]
    row = ", ".join(f"{name}: i64" for name in names)
    zeros = ", ".join(f"{name}: 0" for name in names)
    sums = " ".join(f"$s.{name} = $s.{name} +% r.{name};" for name in names)
    text = (
        f"river 1; input t: {{{row}}}; output o: {{{row}}}; var $s: {{{row}}} = {{{zeros}}};\n"
        f"operator f(t: {{{row}}}; $s: {{{row}}}) -> (o: {{{row}}}) {{ on t(r) {{ {sums} emit o $s; }} }}\n"
        "(o, $s) <- f(t, $s);\n"
    )
    found = river.compile(text, "river").graph.instances[0].operator
    assert isinstance(found, typed.Operator)
    return found


def test_code_of_wide_rows_grows_with_their_fields() -> None:
    few, many = wide(40), wide(160)
    keys, code = [spelled(op) for op in (few, many)], [lower(op, host().architecture) for op in (few, many)]
    assert len(keys[1]) < 6 * len(keys[0])
    texts = [found.text for found in code if isinstance(found, Lowered)]
    assert len(texts[1]) < 6 * len(texts[0])


def test_what_a_tree_says_tells_it_from_others() -> None:
    texts = [spelled(operator(f"  fn g(x: i64) -> i64 {{ {body} }}\n", "g")) for body in (
        "return x +% 1;", "return x +% 2;", "return if x < 1 { 2 } else { 1 };", "let y: i32 = i32.wrap(x); return i64(y);",
        "var y = x; y = y +% 1; return y;",
    )]  # fmt: skip
    assert len({*texts}) == len(texts)
    assert spelled(wide(2)) == spelled(wide(2))


LOOP: Final = """define i64 @f(i64 %n) nounwind {
entry:
  br label %again
again:
  %i = phi i64 [0, %entry], [%j, %again]
  %x = phi i64 [1, %entry], [%y, %again]
  %y = mul i64 %x, 3
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %again, label %end
end:
  ret i64 %y
}
"""


def test_code_that_is_not_optimised_is_the_same_whatever_was_made_before() -> None:
    before, quick, after = (machine_code(LOOP, level) for level in (0, QUICK, 0))
    assert before == after != quick
