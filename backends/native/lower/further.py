"""Calls that go on another stack when this one is used up (`runtime/guard.rt`), of operators whose functions call themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.ir import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.native.module import Module


def further(module: Module, function: str, kinds: Sequence[str]) -> str:
    """The name of the function that calls `function`, which has parameters of these LLVM types, on another stack.

    It gives 0 or 1 as that does, or 2 if there is no memory for a stack.
    """
    name = f"{function}.further"
    if name in module.functions:
        return name
    record = f"{{ {', '.join(kinds)} }}"
    inside, b = f"{function}.given", Builder()
    given = [f"{kind} {b.op(f'load {kind}, ptr {b.op(_field(record, i))}')}" for i, kind in enumerate(kinds)]
    trapped = b.call("i1", function, given)
    b.end(f"ret i64 {b.op(f'zext i1 {trapped} to i64')}")
    module.add(b.finish(inside, f"define internal i64 @{inside}(ptr %context, ptr %given) noinline nounwind"))
    b = Builder()
    b.slots.append(f"  %given = alloca {record}, align 16")
    for i, kind in enumerate(kinds):
        b.do(f"store {kind} %p{i}, ptr {b.op(_field(record, i))}")
    b.calls.add(inside)
    b.end(f"ret i64 {b.call('i64', 'further', ('ptr %p0', f'ptr @{inside}', 'ptr %given'))}")
    params = ", ".join(f"{kind} %p{i}" for i, kind in enumerate(kinds))
    module.add(b.finish(name, f"define internal i64 @{name}({params}) noinline cold nounwind"))
    return name


def _field(record: str, index: int) -> str:
    return f"getelementptr inbounds {record}, ptr %given, i32 0, i32 {index}"
