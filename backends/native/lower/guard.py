"""What stands around native code: where it goes when memory is refused in the midst of it.

The exported function stores a place to come back to in the context, tells the arenas of it, and calls the function inside.
The runtime's `leave` comes back there (C's longjmp): what was under way is abandoned, and nothing that it held in
registers is used any more, only what lies in the context and in the blocks of outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.contract import STOP, TRAPPED
from backends.native.ir import Builder, Function
from backends.native.lower.frame import Frame
from backends.native.module import void

if TYPE_CHECKING:
    from backends.native.module import Module
    from river.lang import typed
    from river.lang import types as t

_JUMP_WORDS: Final = 64  # a jmp_buf of every C library we know has at most 48
_STACK: Final = (
    3 << 19
)  # bytes that nested calls may take of the stack; the threads of Python have 2 MB or more
ARENA_CONTEXT: Final = 448  # where an arena keeps its context, then the pool (`runtime/arena.rt`)


def guarded(
    module: Module, op: typed.Operator, name: str, inside: str, architecture: str, blocks: list[t.Type]
) -> Function:
    """The exported batch function around `inside`; `blocks`: the types of the outputs' blocks, then of their marks'."""
    b = Builder()
    f = Frame(module, op, b, "failed")
    arenas = [f.context("temporary"), f.context("texts")]
    arenas += [f.block("variables", i) for i, var in enumerate(op.vars) if var.written]
    if architecture == "x86_64":
        control = b.slot("i32")
        b.do(f"call void @llvm.x86.sse.stmxcsr(ptr {control})")
    else:
        control = b.slot("i64")
        b.do(f"store i64 {b.op('call i64 @llvm.aarch64.get.fpcr()')}, ptr {control}")
    _enter(b, f, arenas)
    left = b.call("i64", inside, ["ptr %context", "ptr %columns", "i64 %from", "i64 %to"])
    b.end(f"ret i64 {left}")
    b.at("failed")
    void(b, "frames_close", "ptr %context")
    if architecture == "x86_64":
        b.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {control})")
    else:
        b.do(f"call void @llvm.aarch64.set.fpcr(i64 {b.op(f'load i64, ptr {control}')})")
    for i, type_ in enumerate(blocks):
        place = f.block("outs", 2 * i if i < len(op.outs) else 2 * (i - len(op.outs)) + 1)
        for first, _ in f.out_tables(type_):
            rows, before = (b.op(f"getelementptr inbounds i64, ptr {place}, i64 {first + k}") for k in (0, 2))
            b.do(f"store i64 {b.op(f'load i64, ptr {before}')}, ptr {rows}")
    void(b, "reset", f"ptr {arenas[0]}")
    at = b.op(f"load volatile i64, ptr {f.context('row')}")
    row = b.op(f"shl i64 {at}, 2")
    flag = b.op(f"load volatile i64, ptr {f.context('stop')}")
    how = b.op(f"select i1 {b.op(f'icmp ne i64 {flag}, 0')}, i64 {STOP}, i64 {TRAPPED}")
    b.end(f"ret i64 {b.op(f'or i64 {row}, {how}')}")
    return b.finish(name, f"define i64 @{name}(ptr %context, ptr %columns, i64 %from, i64 %to) nounwind")


def guarded_move(module: Module, op: typed.Operator, name: str, body: Builder) -> Function:
    """`i64 name(context, columns, block)` around a body with these parameters: 0, or 1 where it was refused memory."""
    inside = body.finish(
        f"inside.{name}",
        f"define internal void @inside.{name}(ptr %context, ptr %columns, ptr %block) noinline nounwind",
    )
    module.add(inside)
    b = Builder()
    f = Frame(module, op, b, "failed")
    _enter(b, f, [f.context("temporary"), f.context("texts"), "%block"])
    void(b, inside.name, "ptr %context", "ptr %columns", "ptr %block")
    b.end("ret i64 0")
    b.at("failed")
    void(b, "frames_close", "ptr %context")
    b.end("ret i64 1")
    return b.finish(name, f"define i64 @{name}(ptr %context, ptr %columns, ptr %block) nounwind")


def _enter(b: Builder, f: Frame, arenas: list[str]) -> None:
    """Stores the place to come back to, and goes on; coming back leads to `failed`."""
    jump = b.slot(f"[{_JUMP_WORDS} x i64]")
    b.do(f"store ptr {jump}, ptr {f.context('jump')}")
    here = b.op(f"ptrtoint ptr {jump} to i64")
    b.do(f"store i64 {b.op(f'sub i64 {here}, {_STACK}')}, ptr {f.context('stack')}")
    pool = b.op(f"load ptr, ptr {f.context('pool')}")
    for arena in arenas:
        b.do(
            f"store ptr %context, ptr {b.op(f'getelementptr inbounds i8, ptr {arena}, i64 {ARENA_CONTEXT}')}"
        )
        b.do(
            f"store ptr {pool}, ptr {b.op(f'getelementptr inbounds i8, ptr {arena}, i64 {ARENA_CONTEXT + 8}')}"
        )
    came = b.op(f"call i32 @_setjmp(ptr {jump}) returns_twice")
    go = b.fresh("go")
    b.branch(b.op(f"icmp ne i32 {came}, 0"), "failed", go, rare=True)
    b.at(go)
