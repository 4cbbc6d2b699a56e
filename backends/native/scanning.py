"""Code for patterns whose every step the next byte decides (`river.lang.automata.direct`).

    i1 scan(text, bytes, slots)

Whether the pattern is found, and where: the slots get positions in bytes, -1 where nothing is. Long stretches of a class are
passed over 16 bytes at a time. No byte outside of the text is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from backends.native.idioms import if_
from backends.native.ir import Builder, FunctionText
from river.classes import define, field
from river.lang.automata.direct import AtEnd, Direct, Rounds, Save, Steps, Stretch, Ways

if TYPE_CHECKING:
    from backends.native.module import Module

_ALL: Final = (1 << 256) - 1
_AT_ONCE: Final = 16
_FEW_RANGES: Final = 4
"""Ranges that are compared one by one; a class of more is a table."""
_FEW_BYTES: Final = 4
"""Bytes of a stretch that are looked at one by one."""
_WORD: Final = 8


def scan(module: Module, pattern: Direct, name: str) -> str:
    """The name of the function that looks for a pattern, which is made if it is not there."""
    if name not in module.functions:
        module.add(_Scan(module, pattern).function(name))
    return name


def _ranges(bytes_: int) -> list[tuple[int, int]]:
    """A set as ranges {least, how many}."""
    found: list[tuple[int, int]] = []
    byte = 0
    while bytes_ >> byte:
        rest = bytes_ >> byte
        byte += (rest & -rest).bit_length() - 1
        count = (~(bytes_ >> byte) & -~(bytes_ >> byte)).bit_length() - 1
        found.append((byte, count))
        byte += count
    return found


def _told(bytes_: int) -> tuple[list[tuple[int, int]], bool]:
    """The ranges that tell whether a byte is in a set: its own, or, if it is true, those of all others."""
    inside, outside = _ranges(bytes_), _ranges(_ALL & ~bytes_)
    return (outside, True) if len(outside) < len(inside) else (inside, False)


def _within(b: Builder, value: str, kind: str, ranges: list[tuple[int, int]], *, others: bool) -> str:
    """Whether bytes of a type (one, or a vector) lie in some ranges, or in none of them."""
    lanes = kind != "i8"

    def constant(byte: int) -> str:
        return f"<{', '.join([f'i8 {byte}'] * _AT_ONCE)}>" if lanes else str(byte)

    truth = f"<{_AT_ONCE} x i1>" if lanes else "i1"
    found = ""
    for least, count in ranges:
        if count == 1:
            one = b.op(f"icmp eq {kind} {value}, {constant(least)}")
        else:
            from_ = b.op(f"sub {kind} {value}, {constant(least)}") if least else value
            one = b.op(f"icmp ult {kind} {from_}, {constant(count)}")
        found = b.op(f"or {truth} {found}, {one}") if found else one
    if not found:
        found = f"<{', '.join(['i1 false'] * _AT_ONCE)}>" if lanes else "false"
    if others:
        every = f"<{', '.join(['i1 true'] * _AT_ONCE)}>" if lanes else "true"
        found = b.op(f"xor {truth} {found}, {every}")
    return found


def _inside(module: Module, b: Builder, byte: str, bytes_: int) -> str:
    """Whether a byte is in a set."""
    ranges, others = _told(bytes_)
    if len(ranges) <= _FEW_RANGES:
        return _within(b, byte, "i8", ranges, others=others)
    table = module.constant("[256 x i8]", f"[{', '.join(f'i8 {bytes_ >> i & 1}' for i in range(256))}]")
    place = b.op(f"getelementptr inbounds i8, ptr {table}, i64 {b.op(f'zext i8 {byte} to i64')}")
    return b.op(f"icmp ne i8 {b.op(f'load i8, ptr {place}')}, 0")


def _byte(b: Builder, at: str) -> str:
    return b.op(f"load i8, ptr {b.op(f'getelementptr inbounds i8, ptr %p, i64 {at}')}, align 1")


def _pass(module: Module, bytes_: int) -> str:
    """The name of `i64 pass(text, i, n)`: the first place from i to n where no byte of a set stands."""
    name = f"pass.{bytes_:x}"
    if name in module.functions:
        return name
    b = Builder()
    place = b.slot("i64")
    b.do(f"store i64 %i, ptr {place}")
    ranges, others = _told(bytes_)
    if len(ranges) <= _FEW_RANGES:
        _pass_blocks(b, place, ranges, others=others)
    b.at("single")
    at = b.op(f"load i64, ptr {place}")
    b.branch(b.op(f"icmp slt i64 {at}, %n"), "look", "over")
    b.at("look")
    b.branch(_inside(module, b, _byte(b, at), bytes_), "more", "over")
    b.at("more")
    b.do(f"store i64 {b.op(f'add nsw i64 {at}, 1')}, ptr {place}")
    b.go("single")
    b.at("over")
    b.end(f"ret i64 {at}")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %p, i64 %i, i64 %n) nounwind"))
    return name


def _pass_blocks(b: Builder, place: str, ranges: list[tuple[int, int]], *, others: bool) -> None:
    """Of texts of 16 bytes and more, 16 at a time; the last ones are looked at together with some before them."""
    kind = f"<{_AT_ONCE} x i8>"
    last = b.op(f"sub i64 %n, {_AT_ONCE}")
    b.branch(b.op(f"icmp slt i64 {last}, 0"), "single", "block")

    def stops(at: str) -> str:
        where = b.op(f"getelementptr inbounds i8, ptr %p, i64 {at}")
        data = b.op(f"load {kind}, ptr {where}, align 1")
        found = _within(b, data, kind, ranges, others=not others)
        return b.op(f"zext i16 {b.op(f'bitcast <{_AT_ONCE} x i1> {found} to i16')} to i64")

    def first(mask: str, at: str) -> None:
        count = b.op(f"call i64 @llvm.cttz.i64(i64 {mask}, i1 true)")
        b.end(f"ret i64 {b.op(f'add nsw i64 {at}, {count}')}")

    b.at("block")
    at = b.op(f"load i64, ptr {place}")
    b.branch(b.op(f"icmp sle i64 {at}, {last}"), "whole", "rest")
    b.at("whole")
    mask = stops(at)
    b.branch(b.op(f"icmp ne i64 {mask}, 0"), "found", "further")
    b.at("found")
    first(mask, at)
    b.at("further")
    b.do(f"store i64 {b.op(f'add nsw i64 {at}, {_AT_ONCE}')}, ptr {place}")
    b.go("block")
    b.at("rest")
    b.branch(b.op(f"icmp slt i64 {at}, %n"), "part", "none")
    b.at("part")
    known = b.op(f"sub nsw i64 {at}, {last}")
    mask = b.op(f"lshr i64 {stops(last)}, {known}")
    b.branch(b.op(f"icmp ne i64 {mask}, 0"), "last", "none")
    b.at("last")
    first(mask, at)
    b.at("none")
    b.end("ret i64 %n")


@define(eq=False)
class _Scan:
    """A function under construction. `at`: where the position is kept."""

    module: Module
    pattern: Direct
    b: Builder = field(factory=Builder)
    at: str = ""

    def function(self, name: str) -> FunctionText:
        b, pattern = self.b, self.pattern
        self.at = b.slot("i64")
        start = "0"
        if not pattern.anchored:
            start = self.passed(_ALL & ~pattern.first, "0", "%n")
        b.do(f"store i64 {start}, ptr {self.at}")
        self.slot(0, start)
        for slot in range(2, pattern.slots):
            self.slot(slot, "-1")
        self.steps(pattern.steps)
        self.slot(1, self.position())
        b.end("ret i1 true")
        b.at("failed")
        b.end("ret i1 false")
        return b.finish(name, f"define internal i1 @{name}(ptr %p, i64 %n, ptr %slots) nounwind")

    def position(self) -> str:
        return self.b.op(f"load i64, ptr {self.at}")

    def move(self, to: str) -> None:
        self.b.do(f"store i64 {to}, ptr {self.at}")

    def slot(self, number: int, value: str) -> None:
        self.b.do(
            f"store i64 {value}, ptr {self.b.op(f'getelementptr inbounds i64, ptr %slots, i64 {number}')}"
        )

    def unless(self, condition: str) -> None:
        """Fails unless a condition holds."""
        on = self.b.fresh("on")
        self.b.branch(condition, on, "failed")
        self.b.at(on)

    def passed(self, bytes_: int, at: str, end: str) -> str:
        """The first place from one to another where no byte of a set stands."""
        return self.b.call("i64", _pass(self.module, bytes_), ["ptr %p", f"i64 {at}", f"i64 {end}"])

    def steps(self, steps: Steps) -> None:
        fixed: list[int] = []
        for step in steps:
            match step:
                case Stretch(bytes_, low, high) if low == high and low <= _FEW_BYTES:
                    fixed += [bytes_] * low
                    continue
                case _:
                    self.fixed(fixed)
                    fixed = []
            match step:
                case Stretch():
                    self.stretch(step)
                case Save(number):
                    self.slot(number, self.position())
                case AtEnd():
                    self.unless(self.b.op(f"icmp eq i64 {self.position()}, %n"))
                case Ways(ways):
                    self.ways(ways)
                case Rounds():
                    self.rounds(step)
                case _:
                    assert_never(step)
        self.fixed(fixed)

    def fixed(self, sets: list[int]) -> None:
        """One byte of each set, one behind the other; single bytes are compared several at once."""
        if not sets:
            return
        b, at = self.b, self.position()
        end = b.op(f"add nsw i64 {at}, {len(sets)}")
        self.unless(b.op(f"icmp sle i64 {end}, %n"))
        i = 0
        while i < len(sets):
            word: list[int] = []
            while i + len(word) < len(sets) and len(word) < _WORD and sets[i + len(word)].bit_count() == 1:
                word.append(sets[i + len(word)].bit_length() - 1)
            del word[1 << max(len(word), 1).bit_length() - 1 :]
            place = b.op(f"add nsw i64 {at}, {i}") if i else at
            if word:
                kind = f"i{8 * len(word)}"
                where = b.op(f"getelementptr inbounds i8, ptr %p, i64 {place}")
                wanted = int.from_bytes(bytes(word), "little")
                self.unless(b.op(f"icmp eq {kind} {b.op(f'load {kind}, ptr {where}, align 1')}, {wanted}"))
            else:
                self.unless(_inside(self.module, b, _byte(b, place), sets[i]))
            i += len(word) or 1
        self.move(end)

    def stretch(self, step: Stretch) -> None:
        b, at = self.b, self.position()
        if step.low == 0 and step.high == 1:

            def look() -> None:
                more = b.op(f"zext i1 {_inside(self.module, b, _byte(b, at), step.bytes)} to i64")
                self.move(b.op(f"add nsw i64 {at}, {more}"))

            if_(b, b.op(f"icmp slt i64 {at}, %n"), look)
            return
        end = "%n"
        if step.high is not None:
            most = b.op(f"add nsw i64 {at}, {step.high}")
            end = b.op(f"select i1 {b.op(f'icmp slt i64 {most}, %n')}, i64 {most}, i64 %n")
        after = self.passed(step.bytes, at, end)
        if step.low:
            least = b.op(f"add nsw i64 {at}, {step.low}")
            self.unless(b.op(f"icmp sge i64 {after}, {least}"))
        self.move(after)

    def ways(self, ways: tuple[tuple[int, Steps], ...]) -> None:
        b, after = self.b, self.b.fresh("chosen")
        at = self.position()
        self.unless(b.op(f"icmp slt i64 {at}, %n"))
        byte = _byte(b, at)
        for first, steps in ways:
            this, other = b.fresh("way"), b.fresh("other")
            b.branch(_inside(self.module, b, byte, first), this, other)
            b.at(this)
            self.steps(steps)
            b.go(after)
            b.at(other)
        b.go("failed")
        b.at(after)

    def rounds(self, step: Rounds) -> None:
        b = self.b
        count = b.slot("i64")
        b.do(f"store i64 0, ptr {count}")
        again, look, once, after = (b.fresh(stem) for stem in ("again", "look", "round", "after"))
        b.at(again)
        done, at = b.op(f"load i64, ptr {count}"), self.position()
        more = b.op(f"icmp slt i64 {at}, %n")
        if step.high is not None:
            more = b.op(f"and i1 {more}, {b.op(f'icmp slt i64 {done}, {step.high}')}")
        b.branch(more, look, after)
        b.at(look)
        b.branch(_inside(self.module, b, _byte(b, at), step.first), once, after)
        b.at(once)
        self.steps(step.steps)
        b.do(f"store i64 {b.op(f'add nsw i64 {done}, 1')}, ptr {count}")
        b.go(again)
        b.at(after)
        if step.low:
            self.unless(b.op(f"icmp sge i64 {done}, {step.low}"))
