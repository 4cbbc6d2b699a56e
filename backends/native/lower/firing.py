"""Batch functions: what happens before and after each firing, and the three ways from one firing to the next.

`rows` fires for row after row. `cycles` fires the phases of a cycle after one another. `merged` fires for the smallest
key of several ordered inputs, as long as no input can undercut it any more (calculus: `river.il.erase`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.contract import ARENA_USED, CHUNK, CONTEXT, FULL, MARK, ROW, SIDE
from backends.native.idioms import void
from backends.native.ir import Builder, reachable
from backends.native.layout import LIST, columns, is_plain, register
from backends.native.lower import outputs
from backends.native.lower.ahead import MapPrefetch, NestedMapPrefetch, inside, sought
from backends.native.lower.fleeting import fleeting
from backends.native.lower.frame import Frame
from backends.native.lower.guard import guarded
from backends.native.lower.hints import noted, stays
from backends.native.lower.statements import block, output
from backends.native.lower.values import TEMPORARY, Row, Scalar, Value
from backends.native.runtime_library import may_release
from river.classes import define, field
from river.lang import typed
from river.lang import types as t
from river.lang.trees import reached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.ir import FunctionText
    from backends.native.module import Module

RATE: Final = "rate-violation"
LARGEST_FRAME: Final = 1 << 16

DECLARATIONS: Final = {
    "x86_64": "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
    "aarch64": "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n",
}  # of the floating-point control word, by architecture; others are refused
PARAMETERS: Final = "ptr noalias %context, ptr noalias %columns, i64 %from, i64 %to"
ABANDONED: Final = -1
"""What a function under a guard gives when it has trapped or is to stop: the guard withdraws the firing."""


def prologue(b: Builder) -> None:
    """What every function with a context begins with."""
    b.do(f"{TEMPORARY} = getelementptr inbounds i8, ptr %context, i64 {CONTEXT['temporary']}")


def empty(module: Module, b: Builder) -> None:
    """Gives back what firings have for their time, if they have any: here, or in functions that they call."""
    called = (function.text for function in reachable(module.functions, b.calls))
    if any(f"ptr {TEMPORARY}" in text for text in (*b.lines, *called)):
        void(b, "reset", f"ptr {TEMPORARY}")


def leave(b: Builder, row: str, code: int) -> None:
    """Returns row * 4 + code."""
    shifted = b.op(f"shl i64 {row}, 2")
    b.end(f"ret i64 {b.op(f'or i64 {shifted}, {code}')}")


@define(eq=False, repr=False)
class BatchWriter:
    """A batch function under construction.

    `row`: the slot of the number that is returned, of the firing at hand. `starts`: of each input, its first column.
    `flagged`: before the columns of each input stands one of validity, which is not in the table.
    """

    module: Module
    operator: typed.Operator
    name: str
    architecture: str
    functions: tuple[str, ...]
    constants: tuple[Value, ...]
    inputs: tuple[t.Type, ...]
    pushes: tuple[tuple[int, int], ...] = ()
    flagged: bool = False
    f: Frame = field(init=False)
    row: str = field(init=False)
    starts: list[int] = field(init=False, factory=list[int])
    limit: str = field(init=False)
    _full: dict[int, tuple[str, ...]] = field(
        init=False, factory=dict[int, "tuple[str, ...]"]
    )  # by output that firings send to, where the rows of its tables are counted: items, and those of lists inside

    def __attrs_post_init__(self) -> None:
        op, b = self.operator, Builder()
        prologue(b)
        self.f = f = Frame(self.module, op, b, "trapped", functions=self.functions, constants=self.constants)
        for i, input_ in enumerate(self.inputs):
            if self.flagged:
                f.columns.append("null")
            self.starts.append(len(f.columns))
            for _ in columns(input_).columns:
                f.columns.append(self.pointer(len(f.columns) - (i + 1) * self.flagged))
        self.limit = b.op(f"load i64, ptr {f.context('limit')}")
        self.row = b.slot("i64")

    def pointer(self, index: int) -> str:
        """An address out of the table of columns."""
        b = self.f.b
        return b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %columns, i64 {index}')}")

    def fire(self, bind: Callable[[], None], body: typed.Block) -> None:
        """One firing; the slots are bound by `bind`."""
        f, b = self.f, self.f.b
        at = b.op(f"load i64, ptr {self.row}")
        b.do(f"store volatile i64 {at}, ptr {f.context('row')}")  # memory may be refused anywhere
        f.poll()
        f.slots = {}
        f.fleeting = fleeting(body)
        f.noted = noted(body)
        for each in f.noted.values():
            each.list = b.slot(LIST)
        bind()
        fired = b.fresh("fired")
        f.finish = lambda _result: b.go(fired)
        block(f, body)
        b.at(fired)
        for out, push in self.pushes:
            rows, before = self._cursor(out)
            emitted = b.op(f"sub i64 {b.op(f'load i64, ptr {rows}')}, {b.op(f'load i64, ptr {before}')}")
            f.trap_if(b.op(f"icmp ne i64 {emitted}, {push}"), RATE, out, (emitted,))
        self._done(body)
        empty(self.module, b)
        releases = may_release(self.module.functions, b.calls)  # else nothing waits for the end of the firing
        for i, var in enumerate(self.operator.vars):
            if releases and var.written and not is_plain(var.type):
                void(b, "flush", f"ptr {f.block('variables', i)}")

    def again(self, following: str, next_: str) -> None:
        """Goes on unless an output is full, or there are as many texts as rows of `ROW` bytes; `following` is returned then."""
        b, full = self.f.b, None
        sizes = [b.op(f"load i64, ptr {rows}") for tables in self._full.values() for rows in tables]
        if any(t.contains(self.operator.outs[out].type, t.STRING, t.BYTES) for out in self._full):
            used = b.op(f"getelementptr inbounds i8, ptr %context, i64 {CONTEXT['texts'] + ARENA_USED}")
            more = b.op(
                f"sub nsw i64 {b.op(f'load i64, ptr {used}')}, {CHUNK}"
            )  # the first is there for any text
            sizes.append(b.op(f"sdiv i64 {more}, {ROW}"))
        for size in sizes:
            reached = b.op(f"icmp sge i64 {size}, {self.limit}")
            full = reached if full is None else b.op(f"or i1 {full}, {reached}")
        if full is None:
            b.go(next_)
            return
        stop = b.fresh("full")
        b.branch(full, stop, next_, rare=True)
        b.at(stop)
        leave(b, following, FULL)

    def finish(self) -> FunctionText:
        """The function, with the guard around it."""
        b = self.f.b
        b.at("trapped")
        b.end(f"ret i64 {ABANDONED}")
        b.move_slots(LARGEST_FRAME, "%context")
        name = f"inside.{self.name}"
        self.module.add(b.finish(name, f"define internal i64 @{name}({PARAMETERS}) noinline nounwind"))
        outs = self.operator.outs
        blocks = [*(out.type for out in outs), *(MARK for _ in outs)]
        return guarded(self.module, self.operator, f"fire.{self.name}", name, self.architecture, blocks)

    def _cursor(self, out: int) -> tuple[str, str]:
        b, place = self.f.b, output(self.f, out)
        return place, b.op(f"getelementptr inbounds i64, ptr {place}, i64 2")

    def _done(self, body: typed.Block) -> None:
        """Notes that what a firing has sent stays: it is what comes before the next firing (at first `guard` notes it)."""
        f, b = self.f, self.f.b
        found = tuple(reached(body, self.operator.fns))
        sent = sorted({each.out for each in found if isinstance(each, typed.Emit)})
        marked = sorted({each.out for each in found if isinstance(each, typed.Mark)})
        self._full |= {
            out: tuple(rows for rows, _ in outputs.cursors(b, self.operator.outs[out].type, output(f, out)))
            for out in sent
        }
        blocks = [(self.operator.outs[out].type, output(f, out)) for out in sent]
        blocks += [(MARK, f.block("outs", 2 * out + 1)) for out in marked]
        for type_, place in blocks:
            for rows, before in outputs.cursors(b, type_, place):
                b.do(f"store i64 {b.op(f'load i64, ptr {rows}')}, ptr {before}")


# ------------------------------------------------------------------------------------------- row after row


def rows(
    firing: BatchWriter, slots: tuple[t.Type, ...], pops: tuple[int, ...], body: typed.Block
) -> FunctionText:
    """A firing for each row from %from to %to - 1; a slot with a window begins at row * pop."""
    f, b = firing.f, firing.f.b
    item = firing.name.startswith("item.")
    looks: Sequence[MapPrefetch | NestedMapPrefetch] = ()
    if item:
        looks = _looks(firing, body, lambda f, row: f.row(slots[0], firing.starts[0], row))

    def bind(row: str) -> None:
        for i, (slot, pop) in enumerate(zip(slots, pops, strict=True)):
            if isinstance(slot, t.Array) and firing.name in ("first", "rated"):
                f.slots[i] = Row(slot, firing.starts[i], b.op(f"mul nsw i64 {row}, {pop}"))
            else:
                f.slots[i] = f.row(slot, firing.starts[i], row)

    return _each(firing, bind, body, looks)


def _looks(
    firing: BatchWriter, body: typed.Block, item: Callable[[Frame, str], Value]
) -> Sequence[MapPrefetch | NestedMapPrefetch]:
    """What is done before firings on rows for what they will look up; `item`: what is in slot 0 for a row."""
    found: list[MapPrefetch | NestedMapPrefetch] = []
    if (lookup := sought(body)) is not None:
        with_, asked = lookup
        assert isinstance(with_.container, typed.State)  # noqa: S101 - by `sought`
        found.append(MapPrefetch(firing, item, with_, asked, stays(body, with_.container.index)))
    if (both := inside(body)) is not None:
        found.append(NestedMapPrefetch(firing, item, *both))
    return found


def places(firing: BatchWriter, parts: tuple[tuple[t.Type, int], ...], body: typed.Block) -> FunctionText:
    """A firing for each address from %from to %to - 1 in the one column; the slots are what lies so many bytes behind it.

    The slot behind these is the address itself. Their texts are lent: what is there stays as long as anybody has what the
    firings emit.
    """

    def place(f: Frame, row: str) -> str:
        return f.b.op(f"getelementptr inbounds ptr, ptr {f.columns[0]}, i64 {row}")

    def part(f: Frame, row: str, i: int) -> Value:
        type_, offset = parts[i]
        at = f.b.op(f"load ptr, ptr {place(f, row)}")
        return f.load(type_, f.b.op(f"getelementptr inbounds i8, ptr {at}, i64 {offset}"), lent=True)

    def bind(row: str) -> None:
        f = firing.f
        for i in range(len(parts)):
            f.slots[i] = part(f, row, i)
        f.slots[len(parts)] = Scalar(t.I64, f.b.op(f"load i64, ptr {place(f, row)}"))

    return _each(firing, bind, body, _looks(firing, body, lambda f, row: part(f, row, 0)))


def _each(
    firing: BatchWriter,
    bind: Callable[[str], None],
    body: typed.Block,
    ahead: Sequence[MapPrefetch | NestedMapPrefetch],
) -> FunctionText:
    """A firing for each row, whose slots `bind` binds."""
    b = firing.f.b
    b.do(f"store i64 %from, ptr {firing.row}")
    b.at("next")
    row = b.op(f"load i64, ptr {firing.row}")
    b.branch(b.op(f"icmp slt i64 {row}, %to"), "fire", "done")
    b.at("fire")
    for each in ahead:
        each.look(row)
    firing.fire(lambda: bind(row), body)
    following = b.op(f"add nsw i64 {row}, 1")
    b.do(f"store i64 {following}, ptr {firing.row}")
    firing.again(following, "next")
    b.at("done")
    leave(b, "%to", 0)
    return firing.finish()


# ------------------------------------------------------------------------------------------- cycles of phases


def cycles(
    firing: BatchWriter, phases: tuple[typed.PhaseHandler, ...], ports: tuple[int, ...]
) -> FunctionText:
    """Whole cycles %from to %to - 1; columns are those of `ports`. What is returned counts firings from cycle 0 on."""
    f, b = firing.f, firing.f.b
    length = sum(phase.count for phase in phases)
    needs = {port: sum(p.count for p in phases if p.port == port) for port in ports}
    cycle_slot, k_slot = b.slot("i64"), b.slot("i64")
    b.do(f"store i64 %from, ptr {cycle_slot}")
    b.do(f"store i64 {b.op(f'mul nsw i64 %from, {length}')}, ptr {firing.row}")
    b.at("next")
    cycle = b.op(f"load i64, ptr {cycle_slot}")
    b.branch(b.op(f"icmp slt i64 {cycle}, %to"), "cycle", "done")
    b.at("cycle")
    taken = dict.fromkeys(ports, 0)
    for phase in phases:
        if not phase.count:
            continue
        port, again, after = phase.port, b.fresh("again"), b.fresh("after")
        first = b.op(f"add nsw i64 {b.op(f'mul nsw i64 {cycle}, {needs[port]}')}, {taken[port]}")
        taken[port] += phase.count
        b.do(f"store i64 0, ptr {k_slot}")
        b.at(again)
        k = b.op(f"load i64, ptr {k_slot}")

        def bind(port: int = port, first: str = first, k: str = k) -> None:
            place = ports.index(port)
            row = b.op(f"add nsw i64 {first}, {k}")
            f.slots[0] = f.row(firing.inputs[place], firing.starts[place], row)

        firing.fire(bind, phase.body)
        done = b.op(f"add nsw i64 {b.op(f'load i64, ptr {firing.row}')}, 1")
        b.do(f"store i64 {done}, ptr {firing.row}")
        following = b.op(f"add nsw i64 {k}, 1")
        b.do(f"store i64 {following}, ptr {k_slot}")
        b.branch(b.op(f"icmp slt i64 {following}, {phase.count}"), again, after)
        b.at(after)
    following = b.op(f"add nsw i64 {cycle}, 1")
    b.do(f"store i64 {following}, ptr {cycle_slot}")
    firing.again(b.op(f"load i64, ptr {firing.row}"), "next")
    b.at("done")
    leave(b, b.op(f"load i64, ptr {firing.row}"), 0)
    return firing.finish()


# ------------------------------------------------------------------------------------------- merging by key


def merged(firing: BatchWriter, key: t.Type, keys: tuple[int, ...], body: typed.Block) -> FunctionText:
    """At most %to firings, each for the smallest key; `keys` are the columns of the keys.

    After the columns of all sides the table has the state, `SIDE` words per side, which is brought up to date. What is
    returned counts firings.
    """
    f, b = firing.f, firing.f.b
    # Keys are compared as 64 bits; where there is no head stands the greatest.
    kind, unsigned = register(key), key == t.U64
    assert kind in ("i32", "i64")  # noqa: S101 - the checker admits no other keys
    most = "-1" if unsigned else "9223372036854775807"
    below, above_ = ("ult", "ugt") if unsigned else ("slt", "sgt")
    sides = range(len(firing.inputs))
    state = firing.pointer(len(f.columns) - len(firing.inputs))
    words = [
        [b.op(f"getelementptr inbounds i64, ptr {state}, i64 {SIDE * i + j}") for j in range(SIDE)]
        for i in sides
    ]
    flags = firing.module.constant("[2 x i8]", "[i8 0, i8 1]")
    counts, floors, over = ([b.op(f"load i64, ptr {words[i][j]}") for i in sides] for j in (1, 2, 3))
    endless = [b.op(f"icmp ne i64 {each}, 0") for each in over]
    b.do(f"store i64 0, ptr {firing.row}")
    b.at("next")
    fired = b.op(f"load i64, ptr {firing.row}")
    b.branch(b.op(f"icmp slt i64 {fired}, %to"), "heads", "done")
    b.at("heads")
    best, any_ = most, "false"
    rows, heads, theres = list[str](), list[str](), list[str]()
    for i in sides:
        row = b.op(f"load i64, ptr {words[i][0]}")
        there = b.op(f"icmp slt i64 {row}, {counts[i]}")
        load, join = b.fresh("head"), b.fresh("joined")
        before = b.block
        b.branch(there, load, join)
        b.at(load)
        place = b.op(f"getelementptr inbounds {kind}, ptr {f.columns[keys[i]]}, i64 {row}")
        head = b.op(f"load {kind}, ptr {place}")
        if kind == "i32":
            head = b.op(f"sext i32 {head} to i64")
        b.go(join)
        b.at(join)
        head = b.op(f"phi i64 [ {head}, %{load} ], [ {most}, %{before} ]")
        less = b.op(f"icmp {below} i64 {head}, {best}")
        best = b.op(f"select i1 {less}, i64 {head}, i64 {best}")
        any_ = b.op(f"or i1 {any_}, {there}")
        rows.append(row)
        heads.append(head)
        theres.append(there)
    allowed = any_
    for i in sides:
        above = b.op(f"or i1 {endless[i]}, {b.op(f'icmp {above_} i64 {floors[i]}, {best}')}")
        allowed = b.op(f"and i1 {allowed}, {b.op(f'or i1 {theres[i]}, {above}')}")
    b.branch(allowed, "fire", "done")
    b.at("fire")
    takes = [b.op(f"and i1 {theres[i]}, {b.op(f'icmp eq i64 {heads[i]}, {best}')}") for i in sides]

    def bind() -> None:
        f.slots[0] = Scalar(key, b.op(f"trunc i64 {best} to i32") if kind == "i32" else best)
        for i in sides:
            # The column of validity before that of the side: one byte, read at whatever row the side is at.
            flag = b.op(f"getelementptr i8, ptr {flags}, i64 {b.op(f'zext i1 {takes[i]} to i64')}")
            back = b.op(f"getelementptr i8, ptr {flag}, i64 {b.op(f'sub i64 0, {rows[i]}')}")
            f.columns[firing.starts[i] - 1] = back
            f.slots[1 + i] = Row(t.Optional(firing.inputs[i]), firing.starts[i] - 1, rows[i])

    firing.fire(bind, body)
    for i in sides:
        taken = b.op(f"zext i1 {takes[i]} to i64")
        b.do(f"store i64 {b.op(f'add i64 {rows[i]}, {taken}')}, ptr {words[i][0]}")
    following = b.op(f"add nsw i64 {fired}, 1")
    b.do(f"store i64 {following}, ptr {firing.row}")
    firing.again(following, "next")
    b.at("done")
    leave(b, b.op(f"load i64, ptr {firing.row}"), 0)
    return firing.finish()
