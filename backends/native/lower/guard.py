"""What stands around native code: where it goes when memory is refused in the midst of it (`runtime/guard.rt`).

The exported function has the runtime call the function inside, which comes back from wherever memory was refused: what was under
way is abandoned, and nothing that it held in registers is used any more, only what lies in the context and in the blocks
of outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import void
from backends.native.ir import Builder, FunctionText
from backends.native.lower import outputs

if TYPE_CHECKING:
    from backends.native.module import Module
    from river.lang import typed
    from river.lang import types as t

_STANDARD_CONTROL: Final = 0x1F80  # all exceptions masked, to nearest, no flush to zero


def guarded(
    module: Module, op: typed.Operator, name: str, inside: str, architecture: str, blocks: list[t.Type]
) -> FunctionText:
    """The exported batch function around `inside`; `blocks`: the types of the outputs' blocks, then of their marks'.

    Inside is rounded to nearest, and small numbers are not flushed to zero; what was set before is restored at the end.
    """
    b = Builder()
    written = [i for i, var in enumerate(op.vars) if var.written]
    tables: list[int] = []
    for i, type_ in enumerate(blocks):
        place = 2 * i if i < len(op.outs) else 2 * (i - len(op.outs)) + 1
        for first, _ in outputs.tables(type_):
            tables += (place, first)
    if architecture == "x86_64":
        control, standard = b.slot("i32"), b.slot("i32")
        b.do(f"store i32 {_STANDARD_CONTROL}, ptr {standard}")
        b.do(f"call void @llvm.x86.sse.stmxcsr(ptr {control})")
        b.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {standard})")
        restore = f"call void @llvm.x86.sse.ldmxcsr(ptr {control})"
    else:
        control = b.op("call i64 @llvm.aarch64.get.fpcr()")
        b.do("call void @llvm.aarch64.set.fpcr(i64 0)")
        restore = f"call void @llvm.aarch64.set.fpcr(i64 {control})"
    left = _guard(module, b, ("i64 %from", "i64 %to"), inside, written, tables)
    b.do(restore)
    b.end(f"ret i64 {left}")
    return b.finish(name, f"define i64 @{name}(ptr %context, ptr %columns, i64 %from, i64 %to) nounwind")


def guarded_move(module: Module, name: str, body: Builder) -> FunctionText:
    """`i64 name(context, columns, block)` around a body with these parameters: 0 unless it was refused memory."""
    body.lines.insert(0, "  %block = inttoptr i64 %at to ptr")
    inside = f"inside.{name}"
    head = f"define internal i64 @{inside}(ptr %context, ptr %columns, i64 %at, i64 %none) noinline nounwind"
    module.add(body.finish(inside, head))
    b = Builder()
    void(b, "known", "ptr %context", "ptr %block")
    at = b.op("ptrtoint ptr %block to i64")
    b.end(f"ret i64 {_guard(module, b, (f'i64 {at}', 'i64 0'), inside, [], [])}")
    return b.finish(name, f"define i64 @{name}(ptr %context, ptr %columns, ptr %block) nounwind")


def _guard(
    module: Module, b: Builder, given: tuple[str, str], inside: str, written: list[int], tables: list[int]
) -> str:
    """The call of `guard`: `given` are arguments of `inside` behind context and columns."""
    words = [len(written), *written, len(tables), *tables]
    kept = module.constant(f"[{len(words)} x i64]", f"[{', '.join(f'i64 {word}' for word in words)}]")
    b.calls.add(inside)
    return b.call("i64", "guard", ["ptr %context", "ptr %columns", *given, f"ptr @{inside}", f"ptr {kept}"])
