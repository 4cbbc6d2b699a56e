"""The text of LLVM functions: registers, labels, stack slots."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from river.classes import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RARE: Final = "!prof !0"  # weights of a branch whose first side is not taken

UNROLLED: Final = "!llvm.loop !1"  # the last jump of a loop that the optimiser is to write out turn by turn

METADATA: Final = '!0 = !{!"branch_weights", i32 1, i32 100000}\n!1 = distinct !{!1, !2}\n!2 = !{!"llvm.loop.unroll.full"}\n'

_DECLARED: Final = {line.partition("@")[2].partition("(")[0]: line for line in [
    "declare i64 @llvm.ctlz.i64(i64, i1)", "declare i64 @llvm.cttz.i64(i64, i1)", "declare i64 @llvm.bswap.i64(i64)",
    "declare i1 @llvm.expect.i1(i1, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    *(f"declare {{{w}, i1}} @llvm.{sign}{op}.with.overflow.{w}({w}, {w})"
      for w in ("i32", "i64", "i128") for sign in "su" for op in ("add", "sub", "mul")
      if (w, op) != ("i128", "mul")),
    *(f"declare double @llvm.{name}.f64(double)" for name in ("sqrt", "floor", "ceil", "trunc", "fabs")),
    *(f"declare float @llvm.{name}.f32(float)" for name in ("fabs",)),
    "declare double @llvm.copysign.f64(double, double)",
    "declare float @llvm.fma.f32(float, float, float)", "declare double @llvm.fma.f64(double, double, double)",
    "declare ptr @malloc(i64)", "declare void @free(ptr)", "declare ptr @realloc(ptr, i64)",
    "declare ptr @aligned_alloc(i64, i64)",
    "declare void @abort() noreturn", "declare void @longjmp(ptr, i32) noreturn",
    "declare ptr @llvm.frameaddress.p0(i32)",
    "declare i32 @_setjmp(ptr) returns_twice",
    "declare i32 @pthread_attr_init(ptr)", "declare i32 @pthread_attr_setstacksize(ptr, i64)",
    "declare i32 @pthread_attr_destroy(ptr)", "declare i32 @pthread_create(ptr, ptr, ptr, ptr)",
    "declare i32 @pthread_join(i64, ptr)",
    "declare i32 @memcmp(ptr, ptr, i64)", "declare ptr @memmem(ptr, i64, ptr, i64)", "declare ptr @memmove(ptr, ptr, i64)",
    "declare i32 @madvise(ptr, i64, i32)",
    "declare double @river_fmod(double, double)", "declare i32 @snprintf(ptr, i64, ptr, ...)",
]}  # fmt: skip
"""What there is of the system and of LLVM, by name."""

_CALLED: Final = re.compile(r"@([\w.]+)\(")


def module_text(texts: Iterable[str]) -> str:
    """A module of globals and functions, with what they call of the system and of LLVM."""
    text = "\n".join(texts)
    called = set(_CALLED.findall(text))
    return "\n".join((METADATA, *(line for name, line in _DECLARED.items() if name in called), text))


def hexadecimal(value: float) -> str:
    """A float as LLVM writes it."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@define(eq=False, repr=False)
class FunctionText:
    """A finished function: its text, and the functions it calls; `make` makes them when they are first asked for."""

    name: str
    _text: str = ""
    _calls: frozenset[str] = frozenset()
    _make: Callable[[], FunctionText] | None = field(default=None, alias="make")

    @property
    def text(self) -> str:
        """As LLVM reads it."""
        self._finish()
        return self._text

    @property
    def calls(self) -> frozenset[str]:
        """Names."""
        self._finish()
        return self._calls

    def _finish(self) -> None:
        if self._make is not None:
            made = self._make()
            self._text, self._calls = made.text, made.calls
            self._make = None  # last: another thread may be here, too


@define(eq=False, repr=False)
class Builder:
    """A function under construction. What follows a terminator stands in a block that nothing reaches."""

    lines: list[str] = field(factory=list[str])
    slots: list[str] = field(factory=list[str])
    calls: set[str] = field(factory=set[str])
    block: str = "entry"
    numbers: int = 0
    ended: bool = False

    def fresh(self, stem: str) -> str:
        """A name that nothing else in the function bears."""
        self.numbers += 1
        return f"{stem}{self.numbers}"

    def do(self, text: str) -> None:
        """An instruction without a result."""
        if self.ended:
            self.at(self.fresh("dead"))
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction; its register."""
        register = "%" + self.fresh("r")
        self.do(f"{register} = {text}")
        return register

    def end(self, text: str) -> None:
        """A terminator."""
        self.do(text)
        self.ended = True

    def at(self, label: str) -> None:
        """Begins a block; the one before falls into it."""
        if not self.ended:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.block, self.ended = label, False

    def go(self, label: str) -> None:
        """A jump."""
        self.end(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str, *, rare: bool = False) -> None:
        """A jump by a condition; `rare`: the first side hardly ever."""
        self.end(f"br i1 {condition}, label %{then}, label %{other}" + (f", {RARE}" if rare else ""))

    def slot(self, type_: str) -> str:
        """Memory on the stack, for the whole function."""
        register = "%" + self.fresh("m")
        self.slots.append(f"  {register} = alloca {type_}, align 16")
        return register

    def call(self, result: str, name: str, args: Iterable[str]) -> str:
        """A call of a function of the module; its result, or nothing for void."""
        self.calls.add(name)
        text = f"call {result} @{name}({', '.join(args)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def move_slots(self, most: int, context: str) -> None:
        """Leaves at most so many bytes of slots on the stack; the others get memory of their own while the function runs."""
        kept: list[str] = []
        moved: list[str] = []
        here = size = 0
        for line in self.slots:
            register, _, type_ = line.partition(" = alloca ")
            if not type_:
                kept.append(line)
                continue
            bytes_ = -(-size_of(type_.rpartition(", align")[0])[0] // 16) * 16
            if here + bytes_ <= most:
                here += bytes_
                kept.append(line)
            else:
                moved.append(f"{register} = getelementptr inbounds i8, ptr %frame, i64 {size}")
                size += bytes_
        if not moved:
            return
        self.calls |= {"frame_open", "frame_close"}
        opened = f"  %frame = call ptr @frame_open(ptr {context}, i64 {size})"
        self.slots = [*kept, opened, *moved]
        closed = f"  call void @frame_close(ptr {context})"
        self.lines = [
            line for each in self.lines for line in ((closed, each) if each.startswith("  ret ") else (each,))
        ]

    def finish(self, name: str, head: str) -> FunctionText:
        """The function; `head` is all that stands before its body."""
        if not self.ended:
            self.end("unreachable")
        body = "\n".join([*self.slots, *self.lines])
        return FunctionText(name, f"{head} {{\nentry:\n{body}\n}}\n", frozenset(self.calls))


_SIZES: Final = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "i128": 16,
    "float": 4,
    "double": 8,
    "ptr": 8,
}
_TOKEN: Final = re.compile(r"[{}\[\]<>,]|[a-z0-9]+")


def size_of(type_: str) -> tuple[int, int]:
    """Size and alignment of an LLVM type."""
    tokens = _TOKEN.findall(type_)
    at = 0

    def read() -> tuple[int, int]:
        nonlocal at
        word = tokens[at]
        at += 1
        if word in "[<":
            count = int(tokens[at])
            at += 2
            size, align = read()
            at += 1
            return count * size, align
        if word != "{":
            return _SIZES[word], _SIZES[word]
        end, most = 0, 1
        while tokens[at] != "}":
            if tokens[at] == ",":
                at += 1
                continue
            size, align = read()
            end = -(-end // align) * align + size
            most = max(most, align)
        at += 1
        return -(-end // most) * most, most

    return read()


def reachable(functions: dict[str, FunctionText], roots: Iterable[str]) -> list[FunctionText]:
    """The functions that `roots` call, directly or not, and they themselves."""
    found: dict[str, FunctionText] = {}
    left = list(roots)
    while left:
        name = left.pop()
        if name in functions and name not in found:
            found[name] = functions[name]
            left += functions[name].calls
    return [found[name] for name in sorted(found)]
