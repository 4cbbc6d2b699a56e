"""Expressions, places and calls (il.md P5): what takes values of expressions inside.

As the evaluator has it: operands from left to right; of a change the indices of the place come first, then the operands, then
the place is sought. An operand that a later operand could change is taken as it is when its turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from backends.native.contract import ARENA_SIZE
from backends.native.idioms import if_, item, part
from backends.native.layout import Unsupported, is_text, memory, register
from backends.native.lower import (
    arithmetic,
    containers,
    conversions,
    lambdas,
    lists,
    maps,
    mutations,
    outputs,
    regex,
    sums,
    texts,
)
from backends.native.lower.containers import as_index, item_of, item_place
from backends.native.lower.effects import borrows, changes, is_short
from backends.native.lower.fetching import STRIP, Fetching, Search
from backends.native.lower.further import further
from backends.native.lower.lists import difference, display, reserve
from backends.native.lower.literals import literal
from backends.native.lower.loops import StripPrefetch, entry_loop, number_loop, point_loop
from backends.native.lower.maps import put_entry
from backends.native.lower.mutations import UNIT
from backends.native.lower.values import Memory, Parts, Row, Scalar, Sent, Value
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate.further import DEEPEST
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Reach = Callable[[], Memory]


def value(f: Frame, expr: typed.Expr, *, lent: bool = False) -> Value:
    """The value of an expression; it may be a part of a place. `lent`: so may be the parts of records."""
    match expr:
        case typed.Literal(type_, constant):
            return literal(f, type_, constant)
        case typed.Local(type_, slot, name, _):
            if slot not in f.slots:
                raise Unsupported(f"`{name}` here")
            found = f.slots[slot]
            if not isinstance(found, Memory):
                return found
            return f.load(type_, found.ptr, found.arena, lent=found.lent)
        case typed.State():
            found = _state(f, expr)
            return f.load(expr.type, found.ptr, found.arena)
        case typed.ConstRef(_, index, _):
            return f.constants[index]
        case typed.Get(_, inner, index, _):
            return f.field(value(f, inner, lent=True), index)
        case typed.At():
            return _at(f, expr)
        case typed.Apply():
            return apply(f, expr)
        case typed.Call():
            return call(f, expr)
        case typed.Some(type_, inner):
            assert isinstance(type_, t.Optional)  # noqa: S101 - by its type
            return f.optional(type_, value(f, inner))
        case typed.If(type_, cond, then, other):
            return f.choice(
                type_,
                f.reg(value(f, cond)),
                lambda: value(f, then, lent=lent),
                lambda: value(f, other, lent=lent),
            )
        case typed.Logic():
            return _logic(f, expr)
        case typed.MakeRecord():
            return _record(f, expr, lent=lent)
        case typed.MakeList():
            return display(f, expr.type, [owned(f, each) for each in expr.values])
        case typed.MakeMap():
            return _map(f, expr)
        case typed.Comprehension():
            return _comprehension(f, expr)
        case _:
            assert_never(expr)


def owned(f: Frame, expr: typed.Expr) -> Value:
    """The value as one of which no place has a part."""
    found = value(f, expr)
    if isinstance(found, Scalar) or not (borrows(expr) or isinstance(found, Row)) or id(expr) in f.moved:
        return found
    return f.owned(found)


def operands(f: Frame, exprs: Sequence[typed.Expr]) -> list[Value]:
    """Values from left to right, none changed by what comes after it."""
    found: list[Value] = []
    for i, expr in enumerate(exprs):
        one = value(f, expr, lent=True) if not changes(f, tuple(exprs)) else value(f, expr)
        if any(changes(f, later) for later in exprs[i + 1 :]):
            one = f.snapshot(one)
        found.append(one)
    return found


def _state(f: Frame, expr: typed.State) -> Memory:
    block = f.block("variables", expr.index)
    return Memory(expr.type, f.b.op(f"getelementptr inbounds i8, ptr {block}, i64 {ARENA_SIZE}"), block)


def _at(f: Frame, expr: typed.At) -> Value:
    container, index = operands(f, (expr.value, expr.index))
    return item_of(f, expr, container, index)


def _logic(f: Frame, expr: typed.Logic) -> Value:
    left = f.reg(value(f, expr.left))
    if expr.op == "and":
        return f.choice(t.BOOL, left, lambda: value(f, expr.right), lambda: Scalar(t.BOOL, "false"))
    return f.choice(t.BOOL, left, lambda: Scalar(t.BOOL, "true"), lambda: value(f, expr.right))


def _record(f: Frame, expr: typed.MakeRecord, *, lent: bool) -> Value:
    lend = lent and not any(changes(f, each) for each in expr.values)
    found: dict[int, Value] = {}
    for index in expr.order:
        one = expr.values[index]
        found[index] = value(f, one, lent=True) if lend else owned(f, one)
    parts = Parts(expr.type, tuple(found[i] for i in range(len(expr.values))))
    return parts if lend else Memory(expr.type, f.ptr(parts))


def _map(f: Frame, expr: typed.MakeMap) -> Value:
    slot = f.empty(expr.type)
    pairs = [(owned(f, key), owned(f, each)) for key, each in expr.items]
    for key, each in pairs:
        put_entry(f, Memory(expr.type, slot), key, each, fresh=True)
    return Memory(expr.type, slot)


def loop(f: Frame, over: typed.Counted | typed.Expr, slots: tuple[int, ...], body: Callable[[], None],
         labels: Callable[[str, str], None] | None = None,
         sized: Callable[[str], None] | None = None, ahead: tuple[Search, ...] = (),
         *, unrolled: bool = False) -> None:  # fmt: skip
    """Runs `body` for each item, bound to the slots. `labels` is told where leaving and going on lead.

    `sized` is told before how many items a container has. `ahead`: what the body seeks by parts of the item. `unrolled`: a
    loop over numbers is to be written out.
    """
    b = f.b
    if isinstance(over, typed.Counted):
        low, high = operands(f, (over.low, over.high))
        kind = low.type

        def number(i: str) -> None:
            f.slots[slots[0]] = Scalar(kind, b.op(f"trunc i64 {i} to i32") if kind == t.I32 else i)
            body()

        number_loop(f, as_index(f, low), as_index(f, high), number, labels, unrolled=unrolled)
        return
    container = value(f, over)
    if isinstance(container.type, t.Map | t.OMap | t.Bag):
        if not isinstance(container, Memory):
            container = Memory(container.type, f.ptr(container))
        if sized is not None:
            sized(b.op(f"load i64, ptr {container.ptr}"))
        entry_loop(f, container, slots, body, labels)
        return
    if is_text(container.type):
        point_loop(f, container, slots, body, labels)
        return
    if isinstance(container, Parts):
        container = Memory(container.type, f.ptr(container))
    item_at, count = f.extent(container)
    if sized is not None:
        sized(count)
    fetching = Fetching(
        f, slots[-1], ahead, lambda map_: _state(f, map_).ptr, lambda e: value(f, e, lent=True)
    )

    def each(i: str) -> None:
        fetching.step(i)
        if len(slots) == 2:
            f.slots[slots[0]] = Scalar(t.I64, i)
        f.slots[slots[-1]] = item_at(i)
        if isinstance(over, typed.Local) and over.slot in f.noted:
            noted, key = f.noted[over.slot], f.slots[slots[-1]]
            likely = item(b, t.I64, b.op(f"load ptr, ptr {noted.list}"), i)
            f.hints[slots[-1]] = noted, b.op(f"load i64, ptr {likely}")
            if isinstance(key, Memory):
                f.slots[slots[-1]] = Memory(key.type, key.ptr, key.arena, noted.lends)
        body()
        fetching.end()
        f.hints.pop(slots[-1], None)

    looked: StripPrefetch | None = None
    if ahead:
        looked = STRIP, lambda start, end: fetching.look(item_at, start, end)
    number_loop(f, "0", count, each, labels, looked)


def _comprehension(f: Frame, expr: typed.Comprehension) -> Value:
    slot = f.empty(expr.type)
    inner = t.parts(expr.type)[0]

    def room(count: str) -> None:
        reserve(f, slot, inner, count)

    _each(
        f,
        expr,
        lambda: f.put(owned(f, expr.value), f.pushed(slot, inner)),
        room if expr.cond is None else None,
    )
    return Memory(expr.type, slot)


def _each(
    f: Frame, expr: typed.Comprehension, add: Callable[[], None], room: Callable[[str], None] | None
) -> None:
    """Runs `add` for each item of a comprehension, its names bound; `room` as `sized` of `loop`."""

    def body() -> None:
        if expr.cond is None:
            add()
        else:
            if_(f.b, f.reg(value(f, expr.cond)), add)

    match expr.range:
        case typed.Apply(operation="bag_minus", args=args) if not changes(f, expr) and len(expr.slots) == 1:

            def rest(one: Value) -> None:
                f.slots[expr.slots[-1]] = one
                body()

            plain = [each for each in args if not isinstance(each, typed.Lambda)]
            difference(f, operands(f, plain), rest, room, told=_told(f, expr.range))
        case _:
            loop(f, expr.range, expr.slots, body, sized=room)


def _told(f: Frame, expr: typed.Apply) -> lists.Told | None:
    """By what a `bag_minus` tells items, if it has a function that says so."""
    by = expr.args[-1]
    return lambdas.told(expr, lambda *args: _lambda(f, expr, *args)) if isinstance(by, typed.Lambda) else None


def straight(f: Frame, expr: typed.Expr, list_: Sent) -> Sent:
    """A list whose items go to the columns of an output as they are made."""
    match expr:
        case typed.Comprehension():
            _each(f, expr, lambda: outputs.send(f, list_, value(f, expr.value, lent=True)), None)
        case typed.Apply(operation="bag_minus", args=args):
            plain = [each for each in args if not isinstance(each, typed.Lambda)]
            first, second = operands(f, plain)
            taken, told = f.b.slot("i1"), _told(f, expr)
            difference(f, (first, second), lambda one: outputs.send(f, list_, one), None, taken, told)
            if isinstance(first, Row) and isinstance(second, Row):  # these do not change
                f.compared[first, second, None if told is None else told.name] = taken
        case typed.MakeList(_, ()):
            pass
        case _:
            raise AssertionError(expr)
    return list_


_RULES: Final[dict[str, arithmetic.Rule]] = {
    **arithmetic.RULES, **conversions.RULES, **texts.RULES, **regex.RULES, **containers.RULES, **lists.RULES,
    **maps.RULES, **sums.RULES, **lambdas.RULES,
}  # fmt: skip
"""By operation; of ordered maps `floor` and `ceil` seek keys, of others they are arithmetic."""


def apply(f: Frame, expr: typed.Apply) -> Value:
    """A library operation.

    Raises: Unsupported.
    """
    name = expr.operation
    if OPERATIONS[name].mutates is not None:
        return _change(f, expr)
    match expr:
        case typed.Apply(
            _, "slice", (typed.Local(t.STRING) as text, low, typed.Apply(_, "len", (same,)))
        ) if text == same and not isinstance(low, typed.Lambda) and not changes(f, low):
            return lists.behind(f, expr, *operands(f, (text, low)))
        case typed.Apply(type_, "+") if is_text(type_) and len(parts := _concatenated(expr)) > 2:
            return texts.concatenated(f, type_, operands(f, parts))
        case _:
            pass
    plain = [arg for arg in expr.args if not isinstance(arg, typed.Lambda)]
    if len(plain) != len(expr.args):
        if name not in lambdas.WITH_FUNCTION:
            raise Unsupported(f"`{name}`")
        return lambdas.WITH_FUNCTION[name](f, expr, operands(f, plain), lambda *args: _lambda(f, expr, *args))
    rule = _RULES.get(name)
    if rule is None:
        raise Unsupported(f"`{name}`")
    return rule(f, expr, operands(f, plain))


_MANY: Final = 64
"""Texts that one call puts together, at most."""


def _concatenated(expr: typed.Apply) -> list[typed.Expr]:
    """The texts that a chain of `+` puts together, from left to right."""
    found: list[typed.Expr | typed.Lambda] = []
    left: typed.Expr | typed.Lambda = expr
    while isinstance(left, typed.Apply) and left.operation == "+" and len(found) < _MANY:
        left, last = left.args
        found.append(last)
    return [each for each in (left, *reversed(found)) if not isinstance(each, typed.Lambda)]


def _lambda(f: Frame, expr: typed.Apply, *args: Value) -> Value:
    function = expr.args[-1]
    assert isinstance(function, typed.Lambda)  # noqa: S101 - by the rule
    f.slots.update(zip(function.slots, args, strict=True))
    return value(f, function.body)


def place(f: Frame, expr: typed.Expr) -> Reach:
    """Evaluates the indices of a place; what finds it then. It must be there."""
    match expr:
        case typed.Local(_, slot, name, _):
            found = f.slots.get(slot)
            if not isinstance(found, Memory):
                raise Unsupported(f"writing to `{name}`")
            return lambda: found
        case typed.State():
            return lambda: _state(f, expr)
        case typed.Get(type_, inner, index, _):
            outer = place(f, inner)

            def field() -> Memory:
                where = outer()
                return Memory(type_, part(f.b, where.type, where.ptr, index), where.arena)

            return field
        case typed.At():
            container, index = _indexed(f, expr)
            return lambda: item_place(f, expr, container(), index)
        case _:
            raise Unsupported("a place of this form")


def _indexed(f: Frame, expr: typed.At) -> tuple[Reach, Value]:
    container = place(f, expr.value)
    index = value(f, expr.index)
    return container, index if isinstance(index, Scalar) else f.owned(index)


def assign(f: Frame, target: typed.Expr, new: typed.Expr) -> None:
    """`place = e`."""
    if isinstance(target, typed.At) and isinstance(target.value.type, t.Map | t.OMap):
        container, key = _indexed(f, target)
        found, fresh = _stored(f, new)
        put_entry(f, container(), key, found, fresh=fresh)
        return
    reach = place(f, target)
    found, fresh = _stored(f, new)
    where = reach()
    f.assign(found, where.ptr, where.arena, fresh=fresh)


def _stored(f: Frame, expr: typed.Expr) -> tuple[Value, bool]:
    """A value to be put in a place, and whether it is fresh. Before it is written it is complete."""
    found = owned(f, expr)
    return (found if isinstance(found, Scalar) else Memory(found.type, f.ptr(found))), True


def _change(f: Frame, expr: typed.Apply) -> Value:
    target, *rest = expr.args
    assert not isinstance(target, typed.Lambda)  # noqa: S101 - by the rule
    kind, name = target.type, expr.operation
    rule = mutations.RULES.get((name, type(kind)))
    if rule is None:
        raise Unsupported(f"`{name}` of {kind}")
    match target, rest:
        case typed.Local(slot=list_), [new] if isinstance(found := f.slots.get(list_), Sent):
            assert not isinstance(new, typed.Lambda)  # noqa: S101 - by the rule
            outputs.send(f, found, value(f, new, lent=True))
            return UNIT
        case _:
            pass
    reach = place(f, target)
    values = [owned(f, arg) for arg in rest if not isinstance(arg, typed.Lambda)]
    match target, rest:
        case typed.Local(slot=list_), [typed.Local(slot=key)] if list_ in f.noted:
            noted = f.noted[list_]
            f.b.do(f"store ptr {f.at_hand[key]}, ptr {f.pushed(noted.list, t.I64)}")
            if f.is_lent(values[0]):
                noted.lent.add(id(expr))
        case _:
            pass
    return rule(f, expr, reach(), values)


def call(f: Frame, expr: typed.Call) -> Value:
    """A call of a function of the program: context, depth, where the result goes, then the arguments."""
    b, fn = f.b, f.operator.fns[expr.function]
    reaches: list[Reach | None] = []
    values: list[Value | None] = []
    for i, (arg, param) in enumerate(zip(expr.args, fn.params, strict=True)):
        if param.ref:
            reaches.append(place(f, arg))
            values.append(None)
        else:
            one = value(f, arg)
            if any(p.ref for p in fn.params) or any(changes(f, later) for later in expr.args[i + 1 :]):
                one = f.snapshot(one)
            reaches.append(None)
            values.append(one)
    checked = f.depth != "0" or not is_short(fn)  # a handler has room for one more
    low = _used_up(f, expr) if checked else ""
    args = ["ptr %context", f"i64 {b.op(f'add i64 {f.depth}, 1')}"]
    result = b.slot(memory(fn.result))
    args.append(f"ptr {result}")
    for reach, one in zip(reaches, values, strict=True):
        if reach is not None:
            where = reach()
            args += [f"ptr {where.ptr}", f"ptr {where.arena}"]
        elif isinstance(one, Scalar):
            args.append(f"{register(one.type)} {one.reg}")
        else:
            assert one is not None  # noqa: S101 - either a place or a value
            args.append(f"ptr {f.ptr(one)}")
    trapped = _called(f, expr, args, low)
    on = b.fresh("returned")
    b.branch(trapped, f.exit, on, rare=True)
    b.at(on)
    if fn.result == t.UNIT:
        return UNIT
    return f.load(fn.result, result)


def _used_up(f: Frame, expr: typed.Call) -> str:
    """Whether the stack is used up, where the call goes on another; where none calls itself, that is a trap."""
    b = f.b
    deep = b.op(f"icmp sge i64 {f.depth}, {DEEPEST}")
    here = b.op(f"ptrtoint ptr {b.op('call ptr @llvm.frameaddress.p0(i32 0)')} to i64")
    limit = f.context("stack")
    low = b.op(f"icmp ult i64 {here}, {b.op(f'load i64, ptr {limit}')}")
    if not f.recursive:
        f.trap_if(b.op(f"or i1 {deep}, {low}"), "recursion-depth", expr.site)
        return ""
    f.trap_if(deep, "recursion-depth", expr.site)
    return low


def _called(f: Frame, expr: typed.Call, args: list[str], low: str) -> str:
    """The call; whether it has trapped."""
    b, name = f.b, f.functions[expr.function]
    if not low:
        return b.call("i1", name, args)
    here, far, done = b.fresh("here"), b.fresh("further"), b.fresh("called")
    b.branch(low, far, here, rare=True)
    b.at(here)
    trapped, near = b.call("i1", name, args), b.block
    b.go(done)
    b.at(far)
    elsewhere = further(f.module, name, [arg.rpartition(" ")[0] for arg in args])
    how = b.call("i64", elsewhere, args)
    f.trap_if(b.op(f"icmp eq i64 {how}, 2"), "recursion-depth", expr.site)
    left, last = b.op(f"icmp ne i64 {how}, 0"), b.block
    b.go(done)
    b.at(done)
    return b.op(f"phi i1 [ {trapped}, %{near} ], [ {left}, %{last} ]")
