"""Code that checks itself: before each access it asks whether the memory is there and in use.

In the text of every function but those that keep the memory: a call before each load, store and copy that does not
name a variable of its own; a number behind each variable on the stack that must be whole at the end; no optimisation. The
arenas note of every byte whether it is in use, and spoil it when it is not. What may be reached besides (columns, the
blocks of outputs, constants) is given as regions. A bad access ends the firing as `InternalError`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from backends.native.ir import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backends.native.ir import FunctionText

NEEDED: Final = ("debug_check", "debug_fail")
_TRUSTED: Final = re.compile(
    r"debug_|leave$|fail$|claim$|unclaim$|arena_more|block$|alloc$|recycle$|release$|flush|reset|arena_close|frame|further|on_thread"
)
_LOAD: Final = re.compile(r"\s+\S+ = load (?:volatile )?(.+?), ptr (%[^,\s]+)")
_STORE: Final = re.compile(r"\s+store (?:volatile )?(<[^>]*>|\S+) .+, ptr (%[^,\s]+)")
_COPY: Final = re.compile(r"\s+call void @llvm\.memcpy\S*\(ptr ([^,]+), ptr ([^,]+), i64 ([^,]+),")
_FILL: Final = re.compile(r"\s+call void @llvm\.memset\S*\(ptr ([^,]+), i8 [^,]+, i64 ([^,]+),")
_OTHER: Final = re.compile(r".*call \S+ @mem(?:cmp|move)\(ptr ([^,]+), ptr ([^,]+), i64 ([^,)]+)\)")
_SEARCH: Final = re.compile(r".*call \S+ @memmem\(ptr ([^,]+), i64 ([^,]+), ptr ([^,]+), i64 ([^,)]+)\)")
_SLOT: Final = re.compile(r"\s+(\S+) = alloca (.+?)(, align \d+)?$")
_GLOBAL: Final = re.compile(r"(@\S+) = (?:private |external )?(?:unnamed_addr )?(?:constant|global) (.+)")
_CANARY: Final = 0x5AFE5AFE5AFE5AFE


def instrumented(globals_: Sequence[str], functions: Sequence[FunctionText]) -> list[str]:
    """The texts of functions with their checks, and what these need."""
    return [*_support(globals_), *(_checked(f, i) for i, f in enumerate(functions))]


def places(functions: Sequence[FunctionText]) -> tuple[str, ...]:
    """By number, the function in which a bad access is."""
    return tuple(f.name for f in functions)


def _support(globals_: Sequence[str]) -> list[str]:
    found: list[tuple[str, int]] = []
    for text in globals_:
        for name, rest in _GLOBAL.findall(text):
            found.append((name, size_of(_type_of(rest))[0]))
    cells = ", ".join(f"i64 {cell}" for n, s in found for cell in (f"ptrtoint (ptr {n} to i64)", s))
    count = 2 * len(found)
    return [
        "@debug.context = internal global ptr null",
        f"@debug.globals = private constant [{count} x i64] [{cells}]" if found
        else "@debug.globals = private constant [1 x i64] zeroinitializer",
        f"""define internal void @debug.check(ptr %p, i64 %n, i64 %where) noinline nounwind {{
  %c = load ptr, ptr @debug.context
  %top = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %top to i64
  %at = ptrtoint ptr %p to i64
  call void @debug_check(ptr %c, i64 %here, i64 %at, i64 %n, i64 %where, ptr @debug.globals, i64 {len(found)})
  ret void
}}
define internal void @debug.whole(ptr %p, i64 %where) noinline nounwind {{
  %x = load i64, ptr %p
  %same = icmp eq i64 %x, {_CANARY}
  br i1 %same, label %good, label %bad
good:
  ret void
bad:
  %c = load ptr, ptr @debug.context
  %at = ptrtoint ptr %p to i64
  call void @debug_fail(ptr %c, i64 %at, i64 %where)
  unreachable
}}""",
    ]  # fmt: skip


def _type_of(text: str) -> str:
    """The type at the start of a constant's definition."""
    depth = 0
    for i, letter in enumerate(text):
        depth += letter in "[{<"
        depth -= letter in "]}>"
        if depth == 0 and letter in "]} ":
            return text[: i + 1].replace("<", "").replace(">", "")
    return text


def _checked(function: FunctionText, where: int) -> str:
    head, *lines = function.text.splitlines()
    if _TRUSTED.match(function.name):
        return function.text
    head = re.sub(r"\b(alwaysinline|noinline|cold|optnone) ", "", head)
    found = [head.replace(" nounwind {", " noinline optnone nounwind {")]
    slots = {m[1] for line in lines if (m := _SLOT.match(line))}
    canaries: list[str] = []
    guard = "@_setjmp" in function.text
    for line in lines:
        if slot := _SLOT.match(line):
            canary = f"{slot[1]}.whole"
            kind = f"{{ {slot[2]}, i64 }}"
            canaries.append(canary)
            found += [
                f"  {slot[1]} = alloca {kind}{slot[3] or ''}",
                f"  {canary} = getelementptr inbounds {kind}, ptr {slot[1]}, i32 0, i32 1",
                f"  store i64 {_CANARY}, ptr {canary}",
            ]
            continue
        if "@_setjmp" in line:
            found.append("  store ptr %a.C, ptr @debug.context")
        if line.startswith("  ret ") and guard:
            found.append("  store ptr null, ptr @debug.context")
        if line.startswith("  ret "):
            found += [f"  call void @debug.whole(ptr {canary}, i64 {where})" for canary in canaries]
        for pointer, size in _accesses(line):
            if pointer not in slots and pointer.startswith("%"):
                found.append(f"  call void @debug.check(ptr {pointer}, i64 {size}, i64 {where})")
        found.append(line)
    return "\n".join(found) + "\n"


def _accesses(line: str) -> Iterator[tuple[str, str]]:
    """What a line reads or writes: address and size."""
    if found := _LOAD.match(line) or _STORE.match(line):
        yield found[2], str(size_of(found[1])[0])
    elif found := _COPY.match(line) or _OTHER.match(line):
        yield found[1], found[3]
        yield found[2], found[3]
    elif found := _FILL.match(line):
        yield found[1], found[2]
    elif found := _SEARCH.match(line):
        yield found[1], found[2]
        yield found[3], found[4]
