"""Operators: their functions, and a batch function for each handler.

`i64 fire.<n>(context*, columns*, from, to)` fires the handler on rows from .. to - 1 and returns row * 4 + how it
left: 0 done, 1 full (go on at the row), 2 stop, 3 trap (the context says where). Outputs of a firing that traps are
withdrawn.
"""

from __future__ import annotations

from typing import Final

from backends.native.computed import compute, constant, has_room, needs_code
from backends.native.contract import ARENA_SIZE, Handler, Reason, handlers_of, key_type
from backends.native.deadline import in_function
from backends.native.idioms import void
from backends.native.ir import Builder, FunctionText
from backends.native.lanes import Lanes, fireable, widen
from backends.native.lanes import Scalar as NoLanes
from backends.native.layout import Unsupported, columns, memory, register, size_align, starts
from backends.native.lower import outputs
from backends.native.lower.effects import is_short
from backends.native.lower.expressions import owned
from backends.native.lower.firing import (
    DECLARATIONS,
    LARGEST_FRAME,
    BatchWriter,
    cycles,
    merged,
    places,
    prologue,
    rows,
)
from backends.native.lower.fleeting import fleeting
from backends.native.lower.frame import Frame
from backends.native.lower.guard import guarded_move
from backends.native.lower.literals import literal
from backends.native.lower.statements import Refusal, block
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from backends.native.module import Module
from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap
from river.lang.evaluate.statements import owned_slots
from river.lang.rates import unproven
from river.lang.trees import recursive

LARGEST_VARIABLE: Final = 1 << 30  # bytes
_DEEPEST_FRAME: Final = 512  # bytes, of a function that may call itself very often
_INLINED: Final = 1000
"""Lines up to which LLVM may write a function, with those that it calls, into those that call it. Each function of a long chain
would have all before it inside, and be optimised with them: time would grow with the square of the chain."""


@frozen(eq=False, repr=False)
class Lowered:
    """The text of an operator's module, what it exports, its batch functions, and which of them fire side by side.

    `rooms`: the constants, by position, that are to be computed to where these symbols are.
    """

    text: str
    exports: tuple[str, ...]
    handlers: tuple[Handler, ...]
    lanes: tuple[tuple[str, Lanes | NoLanes], ...] = ()
    rooms: tuple[tuple[int, str], ...] = ()

    @property
    def host(self) -> bool:
        """Whether the code may call Python (an operation of class `host`)."""
        return "@regex_lookup(" in self.text


def lower(
    op: typed.Operator,
    architecture: str,
    *,
    debug: bool = False,
    lend: bool = False,
    parts: tuple[tuple[t.Type, int], ...] | None = None,
) -> Lowered | tuple[Reason, ...]:
    """The module of an operator, or why there is none.

    `parts`: its one handler is fired on addresses, behind which these types lie so many bytes away (`firing.places`).
    """
    module = Module(texts=[DECLARATIONS.get(architecture, "")], debug=debug, lends=lend)
    reasons: list[Reason] = []
    exports: dict[str, FunctionText] = {}

    def tried(node: typed.Node, make: object) -> None:
        assert callable(make)  # noqa: S101 - a function of this module
        try:
            made = make()
            if isinstance(made, FunctionText):
                exports[made.name] = made
        except Refusal as refused:
            reasons.append(Reason(refused.reason, refused.node.span or node.span))
        except Unsupported as refused:
            reasons.append(Reason(refused.reason, node.span))

    if architecture not in DECLARATIONS:
        return (Reason(f"the processor {architecture}", op.span),)
    functions = tuple(module.fresh(f"fn.{i}") for i in range(len(op.fns)))
    again = recursive(op.fns)
    constants: tuple[Value, ...] = ()
    values: list[object] = []
    rooms: list[tuple[int, str]] = []
    for i, (const, coded) in enumerate(zip(op.consts, needs_code(op), strict=True)):
        if has_room(const):
            rooms.append((i, module.room(memory(const.type))))
            values.append(None)  # only code asks for it
            constants = (*constants, Memory(const.type, f"@{rooms[-1][1]}"))
            continue
        try:
            values.append(_coded(op, i, debug=debug) if coded else constant(op, i, values, debug=debug))
            probe = Frame(module, op, Builder(), "trap")
            constants = (*constants, literal(probe, const.type, values[-1]))
        except Trap:
            return (Reason(f"the constant `{const.name}` traps", const.span),)
        except Unsupported as refused:
            return (Reason(refused.reason, const.span),)
    for i, fn in enumerate(op.fns):
        tried(
            fn,
            lambda i=i, fn=fn: module.add(
                _function(module, op, fn, functions, constants, functions[i], again=again)
            ),
        )
    _keep_apart(module, frozenset(functions))
    try:
        handlers = handlers_of(op)
    except Unsupported as refused:
        return (*reasons, Reason(refused.reason, op.span))
    for each in handlers:
        tried(op, lambda each=each: _batch(module, op, each, functions, constants, architecture, parts))
    for var in op.vars:
        tried(var, lambda var=var: _fits(var.type))
        tried(var, lambda var=var: _movable(var.type))
    if reasons:
        return tuple(dict.fromkeys(reasons))
    wide = fireable(op) if parts is None else ()
    lanes = tuple((each.name, widen(module, op, each, functions, constants)) for each in wide)
    return Lowered(module.text(exports), tuple(exports), handlers, lanes, tuple(rooms))


def _coded(op: typed.Operator, index: int, *, debug: bool) -> object:
    made = compute(op, index, debug=debug)
    if isinstance(made, Reason):
        raise Unsupported(made.text)
    (value,) = made.values()
    return value


def _fits(type_: t.Type) -> None:
    """Raises: Unsupported for a variable whose block is too large to be there from the start."""
    size = size_align(type_)[0]
    if size > LARGEST_VARIABLE:
        raise Unsupported(f"a variable of {size} bytes")


# ----------------------------------------------------------------------------------------------- functions


def _function(
    module: Module,
    op: typed.Operator,
    fn: typed.Fn,
    functions: tuple[str, ...],
    constants: tuple[Value, ...],
    name: str,
    *,
    again: bool,
) -> FunctionText:
    """`i1 name(context, depth, result, arguments...)`: true when it has trapped. `again`: functions may call themselves."""
    b = Builder()
    prologue(b)
    f = Frame(module, op, b, "trapped", functions=functions, constants=constants, depth="%depth")
    f.recursive = again
    f.stands = in_function(functions.index(name))
    f.fleeting = fleeting(fn.body)
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
    if not is_short(fn):
        f.poll()
    if isinstance(fn.body, typed.Block):
        f.result_owned = owned_slots(fn.body)
        block(f, fn.body)
        if not b.ended:
            finish(None)
    else:
        finish(owned(f, fn.body))
    b.at("trapped")
    b.end("ret i1 true")
    calls = any(name in b.calls for name in functions)
    b.move_slots(_DEEPEST_FRAME if calls else LARGEST_FRAME, "%context")
    return b.finish(name, f"define internal i1 @{name}({', '.join(params)}) nounwind")


def _keep_apart(module: Module, names: frozenset[str]) -> None:
    """Has functions called that would be larger than `_INLINED` with what may be inlined into them."""
    sizes: dict[str, int] = {}
    open_: set[str] = set()
    stack = sorted(names & module.functions.keys())
    while stack:
        function = module.functions[stack[-1]]
        called = sorted(name for name in function.calls & names if name in module.functions)
        if function.name not in open_:
            open_.add(function.name)
            stack += [name for name in called if name not in open_]
            continue
        stack.pop()
        if function.name in sizes:
            continue
        size = function.text.count("\n") + sum(sizes.get(name, 0) for name in called)
        sizes[function.name] = size if size <= _INLINED else 1
        if size > _INLINED:
            apart = function.text.replace(" nounwind {", " noinline nounwind {", 1)
            module.add(FunctionText(function.name, apart, function.calls))


# ------------------------------------------------------------------------------------------------- batches


def _batch(
    module: Module, op: typed.Operator, handler: Handler, functions: tuple[str, ...], constants: tuple[Value, ...],
    architecture: str, parts: tuple[tuple[t.Type, int], ...] | None,
) -> FunctionText:  # fmt: skip
    """The batch function of a handler."""
    windows = handler.name in ("first", "rated")
    inputs = tuple(slot.item if windows and isinstance(slot, t.Array) else slot for slot in handler.slots)
    pushes = () if handler.name in ("first", "merge", "mark") else unproven(op)
    merging = handler.name == "merge"
    firing = BatchWriter(
        module, op, handler.name, architecture, functions, constants, inputs, pushes, merging
    )
    if handler.name == "cycle":
        made = cycles(firing, op.phases, tuple(dict.fromkeys(p.port for p in op.phases if p.count)))
    elif merging and op.merge is not None:
        made = merged(firing, key_type(op), _key_columns(op, firing), op.merge.body)
    else:
        assert handler.body is not None  # noqa: S101 - all but cycles have one
        if parts is not None:
            return places(firing, parts, handler.body)
        made = rows(firing, handler.slots, handler.pops, handler.body)
    return made


def _key_columns(op: typed.Operator, firing: BatchWriter) -> tuple[int, ...]:
    """Where the keys of the sides of a merge stand among its columns."""
    assert op.merge is not None  # noqa: S101 - by the caller
    found: list[int] = []
    for start, port in zip(firing.starts, op.merge.ports, strict=True):
        type_, by = op.ports[port].type, op.ports[port].by
        names = [name for name, _ in type_.fields] if isinstance(type_, t.Record) else []
        if by not in names:
            raise Unsupported("a key that is not a field")
        found.append(start + starts(type_)[names.index(by)][0])
    return tuple(found)


# ----------------------------------------------------------------------------------------------- variables


def moves(type_: t.Type, *, debug: bool) -> tuple[str, tuple[str, ...]]:
    """The module that brings variables of a type in and out (`load`, `save`), and what it exports.

    It is one of its own, for all operators with such variables: most variables begin at zero and are never read.
    """
    module = Module(debug=debug)
    op = typed.Operator("", (), (), (), (), (), ())
    made = (_load(module, op, type_), _save(module, op, type_))
    exports = {each.name: each for each in made}
    return module.text(exports), tuple(exports)


def _movable(type_: t.Type) -> None:
    """Raises: Unsupported if variables of a type cannot be brought in and out."""
    memory(type_)
    columns(type_)


def _load(module: Module, op: typed.Operator, type_: t.Type) -> FunctionText:
    """`i64 load(context, columns, block)`: the variable from one row; 1 if memory is refused, else 0."""
    b = Builder()
    prologue(b)
    f = Frame(module, op, b, "trapped")
    for i in range(len(columns(type_).columns)):
        f.columns.append(b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %columns, i64 {i}')}"))
    at = b.op(f"getelementptr inbounds i8, ptr %block, i64 {ARENA_SIZE}")
    f.keep(f.row(type_, 0, "0"), at, "%block")
    b.end("ret i64 0")
    return guarded_move(module, "load", b)


def _save(module: Module, op: typed.Operator, type_: t.Type) -> FunctionText:
    """`i64 save(context, columns of an output, block)`: the variable as one more row; the same result."""
    b = Builder()
    prologue(b)
    f = Frame(module, op, b, "trapped")
    at = b.op(f"getelementptr inbounds i8, ptr %block, i64 {ARENA_SIZE}")
    outputs.scatter(f, type_, f.load(type_, at, "%block"), "%columns")
    void(b, "reset", f"ptr {TEMPORARY}")
    b.end("ret i64 0")
    return guarded_move(module, "save", b)
