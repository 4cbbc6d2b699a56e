"""Operators: their functions, and a batch function for each handler.

`i64 fire.<n>(context*, columns*, from, to)` fires the handler on rows from .. to - 1 and returns row * 4 + how it
left: 0 done, 1 full (go on at the row), 2 stop, 3 trap (the context says where). Outputs of a firing that traps are
withdrawn. `load_variable.<n>`, `save_variable.<n>` bring variables in and out as one row of columns,
`drop_variable.<n>` empties them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from backends.native.ir import Builder, Function
from backends.native.layout import Unsupported, columns, is_plain, memory, register, size_align
from backends.native.lower.expressions import literal, owned
from backends.native.lower.frame import ARENA_SIZE, TEMPORARY, Frame, Memory, Row, Scalar, Value
from backends.native.lower.statements import MARK, Refusal, block, output
from backends.native.module import Module, clear, move, void
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, evaluate_const
from river.lang.evaluate.statements import owned_slots

if TYPE_CHECKING:
    from river.source import Span

FULL, STOP, TRAPPED = 1, 2, 3
_DEEPEST_FRAME: Final = 4096  # bytes, of a function that may call itself a thousand times
_LARGEST_FRAME: Final = 1 << 20


@frozen
class Handler:
    """What a batch function takes: the types of its slots, and how many items of a slot's window one firing consumes.

    `pops` is 0 for a slot that is one row per firing.
    """

    name: str
    slots: tuple[t.Type, ...]
    pops: tuple[int, ...]
    body: typed.Block


@frozen
class Reason:
    """Why an operator is not compiled."""

    text: str
    span: Span | None


@frozen
class Lowered:
    """The text of an operator's module, what it exports, and its batch functions."""

    text: str
    exports: tuple[str, ...]
    handlers: tuple[Handler, ...]


def handlers_of(op: typed.Operator) -> tuple[Handler, ...]:
    """The batch functions of an operator, by name: item.<port>, first, rated, phase.<n>, merge, mark."""
    found = [Handler(f"item.{each.port}", (op.ports[each.port].type,), (0,), each.body) for each in op.items]
    for name, rated in (("first", op.first), ("rated", op.rated)):
        if rated is not None:
            windows = tuple(t.Array(op.ports[rate.port].type, rate.peek) for rate in rated.rates)
            found.append(Handler(name, windows, tuple(rate.pop for rate in rated.rates), rated.body))
    for i, phase in enumerate(op.phases):
        found.append(Handler(f"phase.{i}", (op.ports[phase.port].type,), (0,), phase.body))
    if op.merge is not None:
        sides = tuple(t.Optional(op.ports[port].type) for port in op.merge.ports)
        found.append(Handler("merge", (_key(op), *sides), (0,) * (1 + len(sides)), op.merge.body))
    if op.mark is not None:
        found.append(Handler("mark", (_key(op),), (0,), op.mark.body))
    return tuple(found)


def _key(op: typed.Operator) -> t.Type:
    """The type of the key of marks and merges."""
    for port in op.ports:
        if port.by is not None and isinstance(port.type, t.Record):
            found = port.type.field(port.by)
            if found is not None:
                return found
    raise Unsupported("a key that is not a field")


def lower(op: typed.Operator, architecture: str) -> Lowered | tuple[Reason, ...]:
    """The module of an operator, or why there is none."""
    module = Module(texts=[DECLARATIONS.get(architecture, "")])
    reasons: list[Reason] = []
    exports: dict[str, Function] = {}

    def tried(node: typed.Node, make: object) -> None:
        assert callable(make)  # noqa: S101 - a function of this module
        try:
            made = make()
            if isinstance(made, Function):
                exports[made.name] = made
        except Refusal as refused:
            reasons.append(Reason(refused.reason, refused.node.span or node.span))
        except Unsupported as refused:
            reasons.append(Reason(refused.reason, node.span))

    if architecture not in DECLARATIONS:
        return (Reason(f"the processor {architecture}", op.span),)
    functions = tuple(module.fresh(f"fn.{i}") for i in range(len(op.fns)))
    constants: tuple[Value, ...] = ()
    values: list[object] = []
    for const in op.consts:
        try:
            values.append(evaluate_const(const.value, op.fns, values, const.slots))
            probe = Frame(module, op, Builder(), "trap")
            constants = (*constants, literal(probe, const.type, values[-1]))
        except Trap:
            return (Reason(f"the constant `{const.name}` traps", const.span),)
        except Unsupported as refused:
            return (Reason(refused.reason, const.span),)
    for i, fn in enumerate(op.fns):
        tried(
            fn, lambda i=i, fn=fn: module.add(_function(module, op, fn, functions, constants, functions[i]))
        )
    try:
        handlers = handlers_of(op)
    except Unsupported as refused:
        return (*reasons, Reason(refused.reason, op.span))
    for each in handlers:
        tried(op, lambda each=each: _batch(module, op, each, functions, constants, architecture))
    for i, var in enumerate(op.vars):
        tried(var, lambda i=i, var=var: _load(module, op, var.type, i))
        tried(var, lambda i=i, var=var: _save(module, op, var.type, i))
        tried(var, lambda i=i, var=var: _close(var.type, i))
    tried(op, _arena_close)
    if reasons:
        return tuple(dict.fromkeys(reasons))
    return Lowered(module.text(exports), tuple(exports), handlers)


def _prologue(b: Builder) -> None:
    b.do(f"{TEMPORARY} = getelementptr inbounds i8, ptr %context, i64 80")


# ----------------------------------------------------------------------------------------------- functions


def _function(
    module: Module,
    op: typed.Operator,
    fn: typed.Fn,
    functions: tuple[str, ...],
    constants: tuple[Value, ...],
    name: str,
) -> Function:
    """`i1 name(context, depth, result, arguments...)`: true when it has trapped."""
    b = Builder()
    _prologue(b)
    f = Frame(module, op, b, "trapped", functions=functions, constants=constants, depth="%depth")
    params = ["ptr %context", "i64 %depth", "ptr %result"]
    for i, param in enumerate(fn.params):
        kind = register(param.type)
        memory(param.type)
        if param.ref:
            params += [f"ptr %p{i}", f"ptr %a{i}"]
            f.slots[i] = Memory(param.type, f"%p{i}", f"%a{i}")
        elif kind is not None:
            params.append(f"{kind} %p{i}")
            f.slots[i] = Scalar(param.type, f"%p{i}")
        else:
            params.append(f"ptr %p{i}")
            f.slots[i] = Memory(param.type, f"%p{i}")

    def finish(result: Value | None) -> None:
        if result is not None and fn.result != t.UNIT:
            f.put(result, "%result")
        b.end("ret i1 false")

    f.finish = finish
    if isinstance(fn.body, typed.Block):
        f.result_owned = owned_slots(fn.body)
        block(f, fn.body)
        if not b.ended:
            finish(None)
    else:
        finish(owned(f, fn.body))
    b.at("trapped")
    b.end("ret i1 true")
    size = sum(_bytes(line) for line in b.slots)
    if size > _DEEPEST_FRAME and functions and any(name in b.calls for name in functions):
        raise Unsupported(f"a function that may be recursive with {size} bytes of variables")
    return b.finish(name, f"define internal i1 @{name}({', '.join(params)}) nounwind")


def _bytes(slot: str) -> int:
    """About how many bytes a stack slot has."""
    import re

    _, _, text = slot.partition("alloca")
    if not text:
        return 0
    wide = 8 * (text.count("i64") + text.count("ptr")) + 16 * text.count("i128") + 4 * text.count("float")
    factor = 1
    for count in re.findall(r"\[(\d+) x", text):
        factor *= int(count)
    return (wide + 16) * factor


# ------------------------------------------------------------------------------------------------- batches


def _batch(
    module: Module, op: typed.Operator, handler: Handler, functions: tuple[str, ...], constants: tuple[Value, ...],
    architecture: str,
) -> Function:  # fmt: skip
    """The batch function of a handler."""
    b = Builder()
    _prologue(b)
    f = Frame(module, op, b, "trapped", functions=functions, constants=constants)
    _floating_point(b, architecture)
    starts: list[int] = []
    for slot in handler.slots:
        item = slot.item if isinstance(slot, t.Array) and handler.name in ("first", "rated") else slot
        starts.append(len(f.columns))
        for _ in columns(item).columns:
            place = b.op(f"getelementptr inbounds ptr, ptr %columns, i64 {len(f.columns)}")
            f.columns.append(b.op(f"load ptr, ptr {place}"))
    limit = b.op(f"load i64, ptr {f.context('limit')}")
    outs = [output(f, i) for i in range(len(op.outs))]
    marks = [f.block("outs", 2 * i + 1) for i in range(len(op.outs))]
    blocks = [*zip((out.type for out in op.outs), outs, strict=True), *((MARK, each) for each in marks)]
    cursor = b.slot("i64")
    b.do(f"store i64 %from, ptr {cursor}")
    b.at("next")
    row = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp slt i64 {row}, %to"), "fire", "done")
    b.at("fire")
    if op.sites or op.fns:
        for words, saved in _cursors(f, blocks):
            b.do(f"store i64 {b.op(f'load i64, ptr {words}')}, ptr {saved}")
    for i, (slot, pop) in enumerate(zip(handler.slots, handler.pops, strict=True)):
        if isinstance(slot, t.Array) and handler.name in ("first", "rated"):
            f.slots[i] = Row(slot, starts[i], b.op(f"mul nsw i64 {row}, {pop}"))
        else:
            f.slots[i] = f.row(slot, starts[i], row)
    f.finish = lambda _result: b.go("fired")
    block(f, handler.body)
    b.at("fired")
    used = any(f"ptr {TEMPORARY}" in line for line in b.lines)
    if used:
        void(b, "reset", f"ptr {TEMPORARY}")
    for i, var in enumerate(op.vars):
        if var.written and not is_plain(var.type):
            void(b, "flush", f"ptr {f.block('variables', i)}")
    following = b.op(f"add nsw i64 {row}, 1")
    b.do(f"store i64 {following}, ptr {cursor}")
    full: str | None = None
    for out in outs:
        count = b.op(f"load i64, ptr {out}")
        reached = b.op(f"icmp sge i64 {count}, {limit}")
        full = reached if full is None else b.op(f"or i1 {full}, {reached}")
    if full is None:
        b.go("next")
    else:
        b.branch(full, "full", "next", rare=True)
        b.at("full")
        _exit(b, architecture)
        b.end(f"ret i64 {_left(b, following, FULL)}")
    b.at("done")
    _exit(b, architecture)
    b.end(f"ret i64 {_left(b, '%to', 0)}")
    b.at("trapped")
    if op.sites or op.fns:
        for words, saved in _cursors(f, blocks):
            b.do(f"store i64 {b.op(f'load i64, ptr {saved}')}, ptr {words}")
    at = b.op(f"load i64, ptr {cursor}")
    b.do(f"store i64 {at}, ptr {f.context('row')}")
    void(b, "reset", f"ptr {TEMPORARY}")
    _exit(b, architecture)
    stopped = b.op(f"icmp ne i64 {_stop(f)}, 0")
    code = b.op(f"select i1 {stopped}, i64 {STOP}, i64 {TRAPPED}")
    b.end(f"ret i64 {b.op(f'or i64 {_shifted(b, at)}, {code}')}")
    if sum(map(_bytes, b.slots)) > _LARGEST_FRAME:
        raise Unsupported("a handler with so large variables")
    head = f"define i64 @fire.{handler.name}(ptr noalias %context, ptr noalias %columns, i64 %from, i64 %to) nounwind"
    return b.finish(f"fire.{handler.name}", head)


def _stop(f: Frame) -> str:
    return f.b.op(f"load volatile i64, ptr {f.context('stop')}")


def _shifted(b: Builder, row: str) -> str:
    return b.op(f"shl i64 {row}, 2")


def _left(b: Builder, row: str, code: int) -> str:
    return b.op(f"or i64 {_shifted(b, row)}, {code}")


def _cursors(f: Frame, blocks: list[tuple[t.Type, str]]) -> list[tuple[str, str]]:
    """The addresses of the row counts of all tables of the outputs, and of what they were before the firing."""
    found: list[tuple[str, str]] = []
    for type_, place in blocks:
        for first, _ in f.out_tables(type_):
            rows = f.b.op(f"getelementptr inbounds i64, ptr {place}, i64 {first}")
            found.append((rows, f.b.op(f"getelementptr inbounds i64, ptr {place}, i64 {first + 2}")))
    return found


def _floating_point(b: Builder, architecture: str) -> None:
    """Round to nearest, no flushing of small numbers to zero; what was set before is restored at the end."""
    if architecture == "x86_64":
        b.do("%control = alloca i32, align 4")
        b.do("%standard = alloca i32, align 4")
        b.do(f"store i32 {_STANDARD_CONTROL}, ptr %standard")
        b.do("call void @llvm.x86.sse.stmxcsr(ptr %control)")
        b.do("call void @llvm.x86.sse.ldmxcsr(ptr %standard)")
    else:
        b.do("%control = call i64 @llvm.aarch64.get.fpcr()")
        b.do("call void @llvm.aarch64.set.fpcr(i64 0)")


def _exit(b: Builder, architecture: str) -> None:
    if architecture == "x86_64":
        b.do("call void @llvm.x86.sse.ldmxcsr(ptr %control)")
    else:
        b.do("call void @llvm.aarch64.set.fpcr(i64 %control)")


_STANDARD_CONTROL: Final = 0x1F80  # all exceptions masked, to nearest, no flush to zero

DECLARATIONS: Final = {
    "x86_64": "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
    "aarch64": "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n",
}  # of the floating-point control word, by architecture; others are refused


# ----------------------------------------------------------------------------------------------- variables


def _load(module: Module, op: typed.Operator, type_: t.Type, index: int) -> Function:
    """`void load_variable.<n>(context, columns, block)`: the variable from one row."""
    b = Builder()
    _prologue(b)
    f = Frame(module, op, b, "trapped")
    for i in range(len(columns(type_).columns)):
        f.columns.append(b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %columns, i64 {i}')}"))
    at = b.op(f"getelementptr inbounds i8, ptr %block, i64 {ARENA_SIZE}")
    f.keep(f.row(type_, 0, "0"), at, "%block")
    b.end("ret void")
    return b.finish(
        f"load_variable.{index}",
        f"define void @load_variable.{index}(ptr %context, ptr %columns, ptr %block) nounwind",
    )


def _save(module: Module, op: typed.Operator, type_: t.Type, index: int) -> Function:
    """`void save_variable.<n>(context, columns of an output, block)`: the variable as one more row."""
    b = Builder()
    _prologue(b)
    f = Frame(module, op, b, "trapped")
    at = b.op(f"getelementptr inbounds i8, ptr %block, i64 {ARENA_SIZE}")
    f.scatter(type_, f.load(type_, at, "%block"), "%out")
    void(b, "reset", f"ptr {TEMPORARY}")
    b.end("ret void")
    return b.finish(
        f"save_variable.{index}",
        f"define void @save_variable.{index}(ptr %context, ptr %out, ptr %block) nounwind",
    )


def _close(type_: t.Type, index: int) -> Function:
    """`void drop_variable.<n>(block)`: all memory of the variable given back."""
    b = Builder()
    void(b, "arena_close", "ptr %block")
    clear(b, type_, b.op(f"getelementptr inbounds i8, ptr %block, i64 {ARENA_SIZE}"))
    b.end("ret void")
    return b.finish(f"drop_variable.{index}", f"define void @drop_variable.{index}(ptr %block) nounwind")


def _arena_close() -> Function:
    """`void close(arena)`."""
    b = Builder()
    void(b, "arena_close", "ptr %arena")
    b.end("ret void")
    return b.finish("close", "define void @close(ptr %arena) nounwind")


__all__ = [
    "FULL",
    "MARK",
    "STOP",
    "TRAPPED",
    "Handler",
    "Lowered",
    "Reason",
    "handlers_of",
    "lower",
    "move",
    "size_align",
]
