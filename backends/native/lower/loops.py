"""Ways through numbers, items, entries and code points. Long ones ask now and then whether to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from backends.native.idioms import entries, key_of, value_of
from backends.native.ir import UNROLLED
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.lower.frame import Frame

StripPrefetch = tuple[int, Callable[[str, str], None]]
"""How many numbers a strip has at most, and what is done before each strip, which is told its start and end."""


def number_loop(
    f: Frame, low: str, high: str, body: Callable[[str], None],
    labels: Callable[[str, str], None] | None, ahead: StripPrefetch | None = None, *, unrolled: bool = False,
) -> None:  # fmt: skip
    """A loop over numbers. Long ones ask now and then whether to stop: before each strip of numbers.

    `unrolled`: the optimiser is to write the turns out one by one, if their number is known.
    """
    b, before = f.b, f.unpolled
    size = _known_size(low, high)
    short = size is not None and size * before <= _STRIP and ahead is None
    most = _STRIP if ahead is None else ahead[0]
    cursor = b.slot("i64")
    b.do(f"store i64 {low}, ptr {cursor}")
    strip, again, inside, on, after = (b.fresh(name) for name in ("strip", "for", "inside", "next", "left"))
    if labels is not None:
        labels(after, on)
    end = high
    if not short:
        b.at(strip)
        start = b.op(f"load i64, ptr {cursor}")
        polls = b.fresh("polls")
        b.branch(b.op(f"icmp slt i64 {start}, {high}"), polls, after)
        b.at(polls)
        f.poll()
        left = b.op(f"sub i64 {high}, {start}")
        step = b.op(f"select i1 {b.op(f'icmp ult i64 {left}, {most}')}, i64 {left}, i64 {most}")
        end = b.op(f"add i64 {start}, {step}")
        if ahead is not None:
            ahead[1](start, end)
    f.unpolled = before * size if short and size is not None else 1
    b.at(again)
    i = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp slt i64 {i}, {end}"), inside, after if short else strip)
    b.at(inside)
    body(i)
    b.at(on)
    b.do(f"store i64 {b.op(f'add nsw i64 {i}, 1')}, ptr {cursor}")
    b.end(f"br label %{again}, {UNROLLED}" if unrolled and short else f"br label %{again}")
    b.at(after)
    f.unpolled = before


_STRIP: Final = 1024  # how often a loop goes round between two looks at the flag


def _known_size(low: str, high: str) -> int | None:
    """How often a loop goes round, if both ends are constants."""
    try:
        return max(int(high) - int(low), 0)
    except ValueError:
        return None


def entry_loop(f: Frame, container: Value, slots: tuple[int, ...], body: Callable[[], None],
               labels: Callable[[str, str], None] | None) -> None:  # fmt: skip
    """A loop over the entries of a map or bag, bound to the slots."""
    b, kind = f.b, container.type
    arena = container.arena if isinstance(container, Memory) else TEMPORARY
    cursor = b.slot("i64")
    head = b.op(f"getelementptr inbounds i64, ptr {f.ptr(container)}, i64 1")
    b.do(f"store i64 {b.op(f'load i64, ptr {head}')}, ptr {cursor}")
    again, inside, on, after = (b.fresh(name) for name in ("for", "inside", "next", "left"))
    if labels is not None:
        labels(after, on)
    b.at(again)
    e = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp ne i64 {e}, 0"), inside, after)
    b.at(inside)
    f.poll()
    entry = b.op(f"inttoptr i64 {e} to ptr")
    f.slots[slots[0]] = f.load(t.parts(kind)[0], key_of(b, entry), arena)
    if len(slots) == 2 and isinstance(kind, t.Map | t.OMap):
        f.slots[slots[1]] = f.load(kind.value, value_of(b, kind, entry), arena)
    body()
    b.at(on)
    b.do(f"store i64 {b.op(f'load i64, ptr {entry}')}, ptr {cursor}")
    b.go(again)
    b.at(after)


def point_loop(f: Frame, text: Value, slots: tuple[int, ...], body: Callable[[], None],
               labels: Callable[[str, str], None] | None) -> None:  # fmt: skip
    """A loop over the code points of a text, bound to the slots."""
    b = f.b
    ptr = f.ptr(text)
    data = b.call("ptr", "text_data", [f"ptr {ptr}"])
    size = b.call("i64", "text_bytes", [f"ptr {ptr}"])
    place, number = b.slot("i64"), b.slot("i64")
    b.do(f"store i64 0, ptr {place}")
    b.do(f"store i64 0, ptr {number}")
    again, inside, on, after = (b.fresh(name) for name in ("for", "inside", "next", "left"))
    if labels is not None:
        labels(after, on)
    b.at(again)
    at = b.op(f"load i64, ptr {place}")
    i = b.op(f"load i64, ptr {number}")
    b.branch(b.op(f"icmp slt i64 {at}, {size}"), inside, after)
    b.at(inside)
    f.poll()
    here = b.op(f"getelementptr inbounds i8, ptr {data}, i64 {at}")
    if len(slots) == 2:
        f.slots[slots[0]] = Scalar(t.I64, i)
    f.slots[slots[-1]] = Scalar(t.I32, b.call("i32", "text_point", [f"ptr {here}"]))
    body()
    b.at(on)
    step = b.call("i64", "text_step", [f"ptr {here}"])
    b.do(f"store i64 {b.op(f'add nsw i64 {at}, {step}')}, ptr {place}")
    b.do(f"store i64 {b.op(f'add nsw i64 {i}, 1')}, ptr {number}")
    b.go(again)
    b.at(after)


def each_item(f: Frame, container: Value, body: Callable[[Value], None]) -> None:
    """A loop over the items of a list, array, deque or bag, in order."""
    if isinstance(container.type, t.Bag):
        inner = container.type.item

        def one(entry: str) -> None:
            f.poll()
            body(f.load(inner, key_of(f.b, entry)))

        entries(f.b, f.ptr(container), one)
        return
    at, count = f.extent(container)
    number_loop(f, "0", count, lambda i: body(at(i)), None)
