"""The loop over blocks of firings: windows dealt, a block in lanes, its items stored; the twin does what is left.

The twin, which is the scalar code of the handler, fires the rows of a block in which a lane traps, or an output does not
get its number of items: traps, their rows and what is delivered are those of the scalar code. It fires rows near the limit
of an output, too. Where the rows that are left do not fill a block, the last block begins earlier: some rows are fired
again, and their items written again over the same ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.contract import STOP
from backends.native.ir import Builder, FunctionText
from backends.native.lanes import shuffle
from backends.native.lanes.body import Body
from backends.native.lanes.leaves import item_kind, item_size, leaves
from backends.native.lanes.places import LaneValue, Leaf
from backends.native.lanes.prefetch import Prefetch, Stream
from backends.native.lanes.uniformity import (
    Fireable,
    Lanes,
    Scalar,
    written,
)
from backends.native.lanes.vectors import registers
from backends.native.layout import Unsupported, columns
from backends.native.lower import outputs, values
from backends.native.lower.firing import PARAMETERS, empty, leave, prologue
from backends.native.lower.frame import Frame
from backends.native.lower.statements import Refusal, output
from backends.native.lower.values import Row, Value
from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.trees import reached, root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backends.native.module import Module


@frozen
class _Window:
    """A window that varies: items of its type from column `column` on, `pop` of them consumed by a firing."""

    slot: int
    item: t.Type
    column: int
    peek: int
    pop: int

    def groups(self, lanes: int, size: int) -> int:
        """Squares of rows, of `pop` items each, that a block reads."""
        rows = lanes + -(-self.peek // self.pop) - 1
        return -(-rows // size)

    def firings(self, lanes: int) -> int:
        """How many firings must be left, so that a block reads no item that is not there."""
        if self.pop == 1:
            return lanes
        sizes = {shuffle.square(item_kind(leaf)) for leaf, _ in leaves(self.item)}
        return max(lanes, *(self.groups(lanes, n) * n + 1 - self.peek // self.pop for n in sizes))


def widened(
    module: Module, op: typed.Operator, handler: Fireable, plan: Lanes,
    functions: tuple[str, ...], constants: tuple[Value, ...],
) -> Lanes | Scalar:  # fmt: skip
    """Puts lanes before the scalar code of a handler, or says what of it has no lanes."""
    name, twin = f"inside.{handler.name}", f"twin.{handler.name}"
    before = dict(module.functions)
    try:
        made = _lanes(module, op, handler, plan, name, twin, functions, constants)
    except Refusal as refused:
        found = Scalar(refused.reason, refused.node.span or op.span)
    except Unsupported as refused:
        found = Scalar(refused.reason, op.span)
    else:
        code = module.functions[name]
        module.add(FunctionText(twin, code.text.replace(f"@{name}(", f"@{twin}(", 1), code.calls))
        module.add(made)
        return plan
    module.functions = before
    return found


def _lanes(
    module: Module, op: typed.Operator, handler: Fireable, plan: Lanes, name: str, twin: str,
    functions: tuple[str, ...], constants: tuple[Value, ...],
) -> FunctionText:  # fmt: skip
    """`i64 name(context, columns, from, to)`: what the twin does, in lanes.

    Raises: Unsupported, Refusal.
    """
    b = Builder()
    prologue(b)
    f = Frame(module, op, b, "again", functions=functions, constants=constants)
    width = _width(op, handler, plan)
    body = Body(f, width, plan=plan)
    body.outputs()
    body.last = handler.body.items[-1] if handler.body.items else None
    windows = _windows(f, handler, plan)
    limit = b.op(f"load i64, ptr {f.context('limit')}")
    outs = {i: output(f, i) for i, count in enumerate(plan.counts) if count}
    cursor, since = (
        b.slot("i64"),
        b.slot("i64"),
    )  # the next row, and from where on all rows were fired in lanes
    for place in (cursor, since):
        b.do(f"store i64 %from, ptr {place}")
    least = max([width, *(w.firings(width) for w in windows)])
    last = b.op(f"sub nsw i64 %to, {least}")

    b.at("next")
    row = b.op(f"load i64, ptr {cursor}")
    late = b.op(f"icmp sgt i64 {row}, {last}")
    start = b.op(f"select i1 {late}, i64 {last}, i64 {row}")
    following = b.op(f"add nsw i64 {start}, {width}")
    inside = b.op(f"icmp sge i64 {start}, {b.op(f'load i64, ptr {since}')}")
    onward = b.op(f"icmp sgt i64 {following}, {row}")
    b.branch(b.op(f"and i1 {inside}, {onward}"), "enough", "rest")
    b.at("enough")
    stop = b.op(f"load volatile i64, ptr {f.context('stop')}")
    b.branch(b.op(f"icmp ne i64 {stop}, 0"), "stopped", "goes", rare=True)
    b.at("goes")
    b.do(
        f"store volatile i64 {row}, ptr {f.context('row')}"
    )  # memory may be refused in the block (see `lower.guard`)
    again = b.op(f"sub nsw i64 {row}, {start}")
    ends = {i: _reserve(f, op.outs[i].type, outs[i], limit, plan.counts[i], again, width) for i in outs}
    b.do(f"store {body.vector('i1')} zeroinitializer, ptr {body.hits}")
    squares = sum(_dealt_squares(window, width) for window in windows)
    squares += sum(_sent_squares(op.outs[i].type, plan.counts[i], width) for i in outs)
    body.prefetch = Prefetch(b, [*_sent(body, outs, ends), *_read(body, windows, start)], squares)
    body.prefetch.begin(handler.body)
    for window in windows:
        place = _dealt(body, window, start)
        body.bind(window.slot, place if handler.windows else body.read(body.element(place, "0")))

    def finish(_result: Value | None) -> None:
        body.complete()
        if not b.ended:
            b.go("fired")

    f.finish = finish
    body.block(handler.body)
    if not b.ended:
        finish(None)
    b.at("fired")
    hit = body.some(b.op(f"load {body.vector('i1')}, ptr {body.hits}"))
    b.branch(hit, "again", "good", rare=True)
    b.at("good")
    for i, block in outs.items():
        _deliver(body, i, block, ends[i])
    empty(module, b)
    b.do(f"store i64 {following}, ptr {cursor}")
    b.go("next")

    b.at("again")
    empty(module, b)
    found = b.call("i64", twin, ["ptr %context", "ptr %columns", f"i64 {row}", f"i64 {following}"])
    b.branch(b.op(f"icmp eq i64 {found}, {b.op(f'shl i64 {following}, 2')}"), "done", "left")
    b.at("done")
    for place in (cursor, since):
        b.do(f"store i64 {following}, ptr {place}")
    b.go("next")
    b.at("left")
    b.end(f"ret i64 {found}")
    b.at("stopped")
    leave(b, row, STOP)
    b.at("rest")
    found = b.call("i64", twin, ["ptr %context", "ptr %columns", f"i64 {row}", "i64 %to"])
    b.end(f"ret i64 {found}")
    return b.finish(name, f"define internal i64 @{name}({PARAMETERS}) noinline nounwind")


def _width(op: typed.Operator, handler: Fireable, plan: Lanes) -> int:
    """How many firings at once: as many as keep the sums of a loop in registers."""
    types = {leaf for i in plan.windows for leaf, _ in leaves(handler.item(i))}
    types |= {
        leaf for out, count in zip(op.outs, plan.counts, strict=True) if count for leaf, _ in leaves(out.type)
    }
    variables = [node for node in reached(handler.body, op.fns) if isinstance(node, typed.Var)]
    wide = any(item_size(each) == 8 for each in types)
    large = any(t.contains(each.value.type, t.Array) for each in variables) or any(
        pop >= 16 for i, pop in enumerate(handler.pops) if i in plan.windows
    )
    live = len(variables) + max([0, *plan.counts])
    if large:
        return 16
    if live > 8:
        return 32 if not wide and _sums(op, handler.body) and live * 32 * 4 <= registers() else 16
    if live > 3 and not wide and _sums(op, handler.body) and live * 64 * 4 <= registers():
        return 64
    return (64 if live <= 3 else 32) // (2 if wide else 1)


def _sums(op: typed.Operator, body: typed.Block) -> bool:
    """Whether variables are there for loops to add to: then little else is alive at a time."""
    inside = {
        source.slot
        for loop in reached(body, op.fns)
        if isinstance(loop, typed.For)
        for node in reached(loop.body, op.fns)
        for place in written(op, node)
        if isinstance(source := root(place), typed.Local)
    }
    return all(item.slot in inside for item in body.items if isinstance(item, typed.Var))


def _windows(f: Frame, handler: Fireable, plan: Lanes) -> list[_Window]:
    """The windows that vary; those that do not are slots of the frame."""
    found: list[_Window] = []
    for i, (slot, pop) in enumerate(zip(handler.slots, handler.pops, strict=True)):
        item, first = handler.item(i), len(f.columns)
        for _ in columns(item).columns:
            place = f.b.op(f"getelementptr inbounds ptr, ptr %columns, i64 {len(f.columns)}")
            f.columns.append(f.b.op(f"load ptr, ptr {place}"))
        if i in plan.windows:
            peek = slot.size if handler.windows and isinstance(slot, t.Array) else 1
            found.append(_Window(i, item, first, max(peek, 1), pop))
        else:
            f.slots[i] = Row(slot, first, "0") if handler.windows else values.Scalar(slot, "0")
    return found


def _dealt(body: Body, window: _Window, row: str) -> LaneValue:
    """The windows of a block of firings."""
    b, f = body.b, body.f
    made: list[Leaf] = []
    for k, (leaf, _) in enumerate(leaves(window.item)):
        kind, column = item_kind(leaf), f.columns[window.column + k]
        start = b.op(f"mul nsw i64 {row}, {window.pop}")
        items = b.op(f"getelementptr inbounds {kind}, ptr {column}, i64 {start}")
        if window.pop == 1:
            made.append(Leaf(leaf, items, 1))
            continue
        size = shuffle.square(kind)
        groups = window.groups(body.lanes, size)
        length = groups * size
        body.take(length * window.pop * item_size(leaf))
        to = body.memory(leaf, -(-length * window.pop // body.lanes))
        shuffle.deal(b, f.module, kind, window.pop, items, to, groups, length, body.beside)
        made.append(Leaf(leaf, to, length, phases=0 if window.peek <= window.pop else window.pop))
    return LaneValue(t.Array(window.item, window.peek), tuple(made), ("0",) * len(made))


def _dealt_squares(window: _Window, lanes: int) -> int:
    """How many squares of a block are dealt."""
    kinds = [item_kind(leaf) for leaf, _ in leaves(window.item)]
    return sum(
        shuffle.squares(kind, window.pop, window.groups(lanes, shuffle.square(kind))) for kind in kinds
    )


def _sent_squares(type_: t.Type, count: int, lanes: int) -> int:
    """How many squares of a block are gathered."""
    kinds = [item_kind(leaf) for leaf, _ in leaves(type_)]
    return sum(shuffle.squares(kind, count, lanes // shuffle.square(kind)) for kind in kinds)


def _read(body: Body, windows: Sequence[_Window], row: str) -> Iterator[Stream]:
    """What the next block reads of windows that are dealt.

    Squares take a little of many lines, and by itself a processor fetches only what is gone through in order. It does so too late
    where few phases are dealt, since nothing is read while the firings are computed.
    """
    b, f = body.b, body.f
    for window in windows:
        for k, (leaf, _) in enumerate(leaves(window.item)):
            kind = item_kind(leaf)
            if window.pop > 1:
                next_ = b.op(f"mul nsw i64 {b.op(f'add nsw i64 {row}, {body.lanes}')}, {window.pop}")
                begin = b.op(f"getelementptr {kind}, ptr {f.columns[window.column + k]}, i64 {next_}")
                yield Stream(begin, body.lanes * window.pop * item_size(leaf), written=False)


def _sent(body: Body, outs: dict[int, str], ends: dict[int, str]) -> Iterator[Stream]:
    """Where the next block sends what is gathered by squares."""
    b = body.b
    for i, block in outs.items():
        count = body.plan.counts[i]
        for k, (leaf, _) in enumerate(leaves(body.f.operator.outs[i].type)):
            kind = item_kind(leaf)
            if count >= shuffle.square(kind):
                column = b.op(
                    f"load ptr, ptr {b.op(f'getelementptr inbounds i64, ptr {block}, i64 {3 + k}')}"
                )
                next_ = b.op(f"add nsw i64 {ends[i]}, {count * body.lanes}")
                begin = b.op(f"getelementptr {kind}, ptr {column}, i64 {next_}")
                yield Stream(begin, count * body.lanes * item_size(leaf), written=True)


def _reserve(
    f: Frame, type_: t.Type, block: str, limit: str, count: int, again: str, width: int
) -> str:  # fmt: skip
    """Makes room for `count` items of each lane, unless they would reach the limit; where they begin.

    `again`: so many of the lanes have sent theirs already.
    """
    b = f.b
    rows = b.op(f"load i64, ptr {block}")
    before = b.op(f"sub nsw i64 {rows}, {b.op(f'mul nsw i64 {again}, {count}')}")
    after = b.op(f"add nsw i64 {before}, {count * width}")
    fits, grown, enough, grow = (b.fresh(name) for name in ("fits", "room", "enough", "grow"))
    b.branch(b.op(f"icmp slt i64 {after}, {limit}"), fits, "rest")
    b.at(fits)
    b.at(grown)
    room = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {block}, i64 1')}")
    b.branch(b.op(f"icmp slt i64 {room}, {after}"), grow, enough, rare=True)
    b.at(grow)
    outputs.grow(f, type_, block)
    b.go(grown)
    b.at(enough)
    return before


def _deliver(body: Body, out: int, block: str, before: str) -> None:
    """Appends the items of a block of firings to an output."""
    b, f, count = body.b, body.f, body.plan.counts[out]
    place = body.items[out]
    for k, leaf in enumerate(place.leaves):
        kind = item_kind(leaf.type)
        column = b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds i64, ptr {block}, i64 {3 + k}')}")
        to = b.op(f"getelementptr inbounds {kind}, ptr {column}, i64 {before}")
        if count == 1:
            wide, align = body.vector(kind), item_size(leaf.type)
            found = b.op(f"load {wide}, ptr {leaf.base}, align {align}")
            b.do(f"store {wide} {found}, ptr {to}, align {align}")
        else:
            groups = body.lanes // shuffle.square(kind)
            shuffle.gather(b, f.module, kind, count, leaf.base, to, groups, body.lanes, body.beside)
    after = b.op(f"add nsw i64 {before}, {count * body.lanes}")
    for place in (block, b.op(f"getelementptr inbounds i64, ptr {block}, i64 2")):
        b.do(f"store i64 {after}, ptr {place}")


__all__ = ["widened"]
