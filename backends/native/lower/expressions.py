"""Expressions, places, library operations on containers, calls (il.md P5).

As the evaluator has it: operands from left to right; of a change the indices of the place come first, then the operands, then
the place is sought. An operand that a later operand could change is taken as it is when its turn comes.
"""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

import attrs

from backends.native.contract import ARENA_SIZE
from backends.native.ir import hexadecimal
from backends.native.layout import Unsupported, is_plain, is_text, memory, register, shares, size_align
from backends.native.lower import arithmetic, constants, regex, texts
from backends.native.lower.fetching import Fetching, Search
from backends.native.lower.frame import TEMPORARY, Frame, Memory, Parts, Row, Scalar, Sent, Value
from backends.native.module import (
    clear,
    counted,
    entries,
    if_,
    item,
    key_of,
    list_parts,
    move,
    part,
    positions,
    value_of,
    void,
)
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate.code import DEEPEST
from river.lang.operations import OPERATIONS
from river.lang.operations.arithmetic import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Reach = Callable[[], Memory]

# ------------------------------------------------------------------------------------------------- effects


def changes(f: Frame, node: Any) -> bool:
    """Whether evaluating a tree may write to a place."""
    match node:
        case typed.Call(_, function, _, args, _):
            return any(p.ref for p in f.operator.fns[function].params) or any(changes(f, a) for a in args)
        case typed.Apply(_, name, args, _):
            return OPERATIONS[name].mutates is not None or any(changes(f, a) for a in args)
        case tuple():
            return any(changes(f, each) for each in node)  # pyright: ignore[reportUnknownVariableType]
        case typed.Literal():
            return False
        case typed.Node():
            fields = attrs.fields(type(node))
            return any(changes(f, getattr(node, a.name)) for a in fields if a.name not in ("span", "type"))
        case _:
            return False


def borrows(expr: typed.Expr) -> bool:
    """Whether the value may be a part of a place."""
    match expr:
        case typed.Local() | typed.State() | typed.ConstRef() | typed.Get() | typed.At() | typed.Literal():
            return True
        case typed.Some(_, value):
            return borrows(value)
        case typed.If(_, _, then, other):
            return borrows(then) or borrows(other)
        case typed.Apply(_, name, _, _):
            return OPERATIONS[name].borrows or name in ("min", "max")
        case _:
            return False


# ------------------------------------------------------------------------------------------------- reading


def value(f: Frame, expr: typed.Expr, *, lent: bool = False) -> Value:
    """The value of an expression; it may be a part of a place. `lent`: so may be the parts of records."""
    match expr:
        case typed.Literal(type_, constant):
            return literal(f, type_, constant)
        case typed.Local(type_, slot, name, _):
            if slot not in f.slots:
                raise Unsupported(f"`{name}` here")
            found = f.slots[slot]
            return f.load(type_, found.ptr, found.arena) if isinstance(found, Memory) else found
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
            return _list(f, expr)
        case typed.MakeMap():
            return _map(f, expr)
        case typed.Comprehension():
            return _comprehension(f, expr)
        case _:
            assert_never(expr)


def owned(f: Frame, expr: typed.Expr) -> Value:
    """The value as one of which no place has a part."""
    found = value(f, expr)
    if isinstance(found, Scalar) or not (borrows(expr) or isinstance(found, Row)):
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


def literal(f: Frame, type_: t.Type, constant: Any) -> Value:
    """A constant value."""
    if type_ == t.REGEX:
        return regex.constant(f, initial(f, type_, constant), constant)
    kind = register(type_)
    if kind is not None:
        return Scalar(type_, _scalar_text(type_, constant))
    return Memory(type_, f.module.constant(memory(type_), initial(f, type_, constant)))


def _scalar_text(type_: t.Type, constant: Any) -> str:
    match register(type_):
        case "i1":
            return "true" if constant else "false"
        case "float" | "double":
            return hexadecimal(constant)
        case "i8":
            return "0"
        case _:
            return str(constant if type_ != t.U64 or constant < 1 << 63 else constant - (1 << 64))


def initial(f: Frame, type_: t.Type, constant: Any) -> str:
    """A value as the initialiser of a global."""
    match type_:
        case t.BOOL:
            return "1" if constant else "0"
        case t.REGEX:
            return _text(f, constant.pattern)
        case t.STRING | t.BYTES:
            return _text(f, constant)
        case t.FSUM | t.Map() | t.OMap() | t.Deque() | t.Bag():
            if not (any(constant) if type_ == t.FSUM else len(constant)):
                return "zeroinitializer"
            return constants.image(f.module, type_, constant, lambda part, value: initial(f, part, value))
        case t.Optional(inner):
            if constant is None:
                return "zeroinitializer"
            return f"{{ {memory(inner)} {initial(f, inner, constant)}, i8 1 }}"
        case t.Record() | t.Tuple():
            fields = [
                f"{memory(each)} {initial(f, each, v)}"
                for each, v in zip(t.parts(type_), constant, strict=True)
            ]
            return "{ " + (", ".join(fields) or "i8 0") + " }"
        case t.Array(inner, size):
            if size == 0:
                return "zeroinitializer"
            return "[" + ", ".join(f"{memory(inner)} {initial(f, inner, v)}" for v in constant) + "]"
        case t.List(inner):
            if not constant:
                return "zeroinitializer"
            items = ", ".join(f"{memory(inner)} {initial(f, inner, v)}" for v in constant)
            name = f.module.constant(f"[{len(constant)} x {memory(inner)}]", f"[{items}]")
            return f"{{ ptr {name}, i64 {len(constant)}, i64 0 }}"
        case _:
            return _scalar_text(type_, constant)


def _text(f: Frame, constant: str | bytes) -> str:
    data = constant.encode() if isinstance(constant, str) else constant
    ascii_ = isinstance(constant, str) and constant.isascii()
    size = len(data) | (1 << 31 if ascii_ and data else 0)
    if len(data) <= 12:
        whole = data.ljust(12, b"\0")
        a = size | int.from_bytes(whole[:4], "little") << 32
        return f"{{ i64 {a}, i64 {int.from_bytes(whole[4:], 'little')} }}"
    a = size | int.from_bytes(data[:4], "little") << 32
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    name = f.module.constant(f"[{len(data)} x i8]", f'c"{escaped}"')
    return f"{{ i64 {a}, i64 ptrtoint (ptr {name} to i64) }}"


def _state(f: Frame, expr: typed.State) -> Memory:
    block = f.block("variables", expr.index)
    return Memory(expr.type, f.b.op(f"getelementptr inbounds i8, ptr {block}, i64 {ARENA_SIZE}"), block)


def _at(f: Frame, expr: typed.At) -> Value:
    b, kind = f.b, expr.value.type
    container, index = operands(f, (expr.value, expr.index))
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, f.ptr(container), index)
        f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "key-missing", expr.site)
        arena = container.arena if isinstance(container, Memory) else TEMPORARY
        return f.load(expr.type, value_of(b, kind, entry), arena)
    if is_text(kind):
        return _point(f, expr, container, _index(f, index))
    item_at, count = f.extent(container)
    at = _index(f, index)
    f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    return item_at(at)


def _index(f: Frame, index: Value) -> str:
    """A whole number as i64.

    Raises: Unsupported for keys, which only containers have that are not compiled.
    """
    if not isinstance(index, Scalar):
        raise Unsupported(f"entries by {index.type}")
    return f.b.op(f"sext i32 {f.reg(index)} to i64") if index.type == t.I32 else f.reg(index)


def _point(f: Frame, expr: typed.At, text: Value, at: str) -> Value:
    b, ptr = f.b, f.ptr(text)
    length = "text_bytes" if text.type == t.BYTES else "text_length"
    count = b.call("i64", length, [f"ptr {ptr}"])
    f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    if text.type == t.BYTES:
        data = b.call("ptr", "text_data", [f"ptr {ptr}"])
        byte = b.op(f"load i8, ptr {b.op(f'getelementptr inbounds i8, ptr {data}, i64 {at}')}")
        return Scalar(expr.type, b.op(f"zext i8 {byte} to {register(expr.type)}"))
    byte = b.call("i64", "text_seek", [f"ptr {ptr}", f"i64 {at}"])
    data = b.call("ptr", "text_data", [f"ptr {ptr}"])
    place = b.op(f"getelementptr inbounds i8, ptr {data}, i64 {byte}")
    point = b.call("i32", "text_point", [f"ptr {place}"])
    return Scalar(expr.type, point if expr.type == t.I32 else b.op(f"sext i32 {point} to i64"))


def _logic(f: Frame, expr: typed.Logic) -> Value:
    left = f.reg(value(f, expr.left))
    if expr.op == "and":
        return f.choice(t.BOOL, left, lambda: value(f, expr.right), lambda: Scalar(t.BOOL, "false"))
    return f.choice(t.BOOL, left, lambda: Scalar(t.BOOL, "true"), lambda: value(f, expr.right))


# -------------------------------------------------------------------------------------------------- making


def _record(f: Frame, expr: typed.MakeRecord, *, lent: bool) -> Value:
    lend = lent and not any(changes(f, each) for each in expr.values)
    found: dict[int, Value] = {}
    for index in expr.order:
        one = expr.values[index]
        found[index] = value(f, one, lent=True) if lend else owned(f, one)
    parts = Parts(expr.type, tuple(found[i] for i in range(len(expr.values))))
    return parts if lend else Memory(expr.type, f.ptr(parts))


def _list(f: Frame, expr: typed.MakeList) -> Value:
    b = f.b
    values = [owned(f, each) for each in expr.values]
    match expr.type:
        case t.Array(inner, _):
            slot = f.empty(expr.type)
            for i, each in enumerate(values):
                f.put(each, item(b, inner, slot, str(i)))
        case t.List(inner):
            slot = b.slot(memory(expr.type))
            void(
                b,
                "list_reserve",
                f"ptr {TEMPORARY}",
                f"ptr {slot}",
                f"i64 {len(values)}",
                f"i64 {size_align(inner)[0]}",
            )
            items = b.op(f"load ptr, ptr {slot}")
            for i, each in enumerate(values):
                f.put(each, item(b, inner, items, str(i)))
            _set_count(f, slot, str(len(values)))
        case _:
            raise Unsupported(f"displays of {expr.type}")
    return Memory(expr.type, slot)


def _set_count(f: Frame, list_: str, count: str) -> None:
    f.b.do(f"store i64 {count}, ptr {f.b.op(f'getelementptr inbounds i64, ptr {list_}, i64 1')}")


def _map(f: Frame, expr: typed.MakeMap) -> Value:
    slot = f.empty(expr.type)
    pairs = [(owned(f, key), owned(f, each)) for key, each in expr.items]
    for key, each in pairs:
        put_entry(f, Memory(expr.type, slot), key, each, fresh=True)
    return Memory(expr.type, slot)


def put_entry(f: Frame, map_: Memory, key: Value, new: Value, *, fresh: bool) -> None:
    """Writes an entry, in its old place if the key is there."""
    b, kind = f.b, map_.type
    assert isinstance(kind, t.Map | t.OMap)  # noqa: S101 - by its type
    key = key if isinstance(key, Scalar) else Memory(key.type, f.ptr(key))
    entry = f.find(kind, map_.ptr, key)

    def insert() -> None:
        place = f.entry(kind, map_.ptr, map_.arena, key)
        if fresh and map_.arena == TEMPORARY:
            f.put(new, place)
        else:
            f.keep(new, place, map_.arena)

    if_(b, b.op(f"icmp ne ptr {entry}, null"),
        lambda: f.assign(new, value_of(b, kind, entry), map_.arena, fresh=fresh), insert)  # fmt: skip


def loop(f: Frame, over: typed.Counted | typed.Expr, slots: tuple[int, ...], body: Callable[[], None],
         labels: Callable[[str, str], None] | None = None,
         sized: Callable[[str], None] | None = None, ahead: tuple[Search, ...] = ()) -> None:  # fmt: skip
    """Runs `body` for each item, bound to the slots. `labels` is told where leaving and going on lead.

    `sized` is told before how many items a container has. `ahead`: what the body seeks by parts of the item.
    """
    b = f.b
    if isinstance(over, typed.Counted):
        low, high = operands(f, (over.low, over.high))
        kind = low.type

        def number(i: str) -> None:
            f.slots[slots[0]] = Scalar(kind, b.op(f"trunc i64 {i} to i32") if kind == t.I32 else i)
            body()

        _counted(f, _index(f, low), _index(f, high), number, labels)
        return
    container = value(f, over)
    if isinstance(container.type, t.Map | t.OMap | t.Bag):
        if not isinstance(container, Memory):
            container = Memory(container.type, f.ptr(container))
        if sized is not None:
            sized(b.op(f"load i64, ptr {container.ptr}"))
        _entries(f, container, slots, body, labels)
        return
    if is_text(container.type):
        _points(f, container, slots, body, labels)
        return
    if isinstance(container, Parts):
        container = Memory(container.type, f.ptr(container))
    item_at, count = f.extent(container)
    if sized is not None:
        sized(count)
    fetching = Fetching(
        f, slots[-1], ahead, lambda map_: _state(f, map_).ptr, lambda e: value(f, e, lent=True)
    )
    if ahead:
        fetching.begin(item_at, count)

    def each(i: str) -> None:
        if ahead:
            fetching.step(item_at, count, i)
        if len(slots) == 2:
            f.slots[slots[0]] = Scalar(t.I64, i)
        f.slots[slots[-1]] = item_at(i)
        if isinstance(over, typed.Local) and over.slot in f.noted:
            variable, list_ = f.noted[over.slot]
            likely = item(b, t.I64, b.op(f"load ptr, ptr {list_}"), i)
            f.hints[slots[-1]] = variable, b.op(f"load i64, ptr {likely}")
        body()
        fetching.end()
        f.hints.pop(slots[-1], None)

    _counted(f, "0", count, each, labels)


def _counted(f: Frame, low: str, high: str, body: Callable[[str], None],
             labels: Callable[[str, str], None] | None) -> None:  # fmt: skip
    """A loop over numbers. Long ones ask now and then whether to stop: before each strip of numbers."""
    b, before = f.b, f.unpolled
    size = _known_size(low, high)
    short = size is not None and size * before <= _STRIP
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
        step = b.op(f"select i1 {b.op(f'icmp ult i64 {left}, {_STRIP}')}, i64 {left}, i64 {_STRIP}")
        end = b.op(f"add i64 {start}, {step}")
    f.unpolled = before * size if short and size is not None else 1
    b.at(again)
    i = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp slt i64 {i}, {end}"), inside, after if short else strip)
    b.at(inside)
    body(i)
    b.at(on)
    b.do(f"store i64 {b.op(f'add nsw i64 {i}, 1')}, ptr {cursor}")
    b.go(again)
    b.at(after)
    f.unpolled = before


_STRIP: Final = 1024  # how often a loop goes round between two looks at the flag


def _known_size(low: str, high: str) -> int | None:
    """How often a loop goes round, if both ends are constants."""
    try:
        return max(int(high) - int(low), 0)
    except ValueError:
        return None


def _entries(f: Frame, container: Value, slots: tuple[int, ...], body: Callable[[], None],
             labels: Callable[[str, str], None] | None) -> None:  # fmt: skip
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


def _points(f: Frame, text: Value, slots: tuple[int, ...], body: Callable[[], None],
            labels: Callable[[str, str], None] | None) -> None:  # fmt: skip
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


def _comprehension(f: Frame, expr: typed.Comprehension) -> Value:
    slot = f.empty(expr.type)
    inner = t.parts(expr.type)[0]

    def room(count: str) -> None:
        _reserve(f, slot, inner, count)

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
            _difference(f, operands(f, plain), rest, room)
        case _:
            loop(f, expr.range, expr.slots, body, sized=room)


def straight(f: Frame, expr: typed.Expr, list_: Sent) -> Sent:
    """A list whose items go to the columns of an output as they are made."""
    match expr:
        case typed.Comprehension():
            _each(f, expr, lambda: f.send(list_, value(f, expr.value, lent=True)), None)
        case typed.Apply(operation="bag_minus", args=args):
            plain = [each for each in args if not isinstance(each, typed.Lambda)]
            _difference(f, operands(f, plain), lambda one: f.send(list_, one), None)
        case typed.MakeList(_, ()):
            pass
        case _:
            raise AssertionError(expr)
    return list_


def _reserve(f: Frame, list_: str, inner: t.Type, count: str) -> None:
    size = size_align(inner)[0]
    void(f.b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {list_}", f"i64 {count}", f"i64 {size}")


# ----------------------------------------------------------------------------------------------- operations


def apply(f: Frame, expr: typed.Apply) -> Value:
    """A library operation.

    Raises: Unsupported.
    """
    name = expr.operation
    if OPERATIONS[name].mutates is not None:
        return _change(f, expr)
    plain = [arg for arg in expr.args if not isinstance(arg, typed.Lambda)]
    if len(plain) != len(expr.args):
        if name not in _WITH_FUNCTIONS:
            raise Unsupported(f"`{name}`")
        return _WITH_FUNCTIONS[name](f, expr, operands(f, plain))
    rule = _RULES.get(name) or arithmetic.RULES.get(name)
    if rule is None:
        raise Unsupported(f"`{name}`")
    return rule(f, expr, operands(f, plain))


def _length(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    (one,) = values
    b = f.b
    if isinstance(one, Sent):
        return Scalar(t.I64, f.length(one))
    match one.type:
        case t.STRING:
            return Scalar(t.I64, b.call("i64", "text_length", [f"ptr {f.ptr(one)}"]))
        case t.BYTES:
            return Scalar(t.I64, b.call("i64", "text_bytes", [f"ptr {f.ptr(one)}"]))
        case t.Map() | t.OMap() | t.Bag():
            return Scalar(t.I64, b.op(f"load i64, ptr {f.ptr(one)}"))
        case _:
            return Scalar(t.I64, f.extent(one)[1])


def _get(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, container, index, *rest = f.b, *values
    kind = container.type
    match expr.args:
        case [_, _, typed.MakeMap(type_, ())]:
            rest = [Memory(type_, f.module.constant(memory(type_), "zeroinitializer"))]
        case _:
            pass
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, f.ptr(container), index, expr)
        there = b.op(f"icmp ne ptr {entry}, null")

        def found() -> Value:
            return f.load(kind.value, value_of(b, kind, entry))
    else:
        at, count = f.extent(container)
        position = _index(f, index)
        there = b.op(f"icmp ult i64 {position}, {count}")

        def found() -> Value:
            return at(position)

    if rest:
        return f.choice(expr.type, there, found, lambda: rest[0])
    wanted = expr.type
    inner = t.parts(kind)[-1]
    if inner == wanted:
        return f.choice(wanted, there, found, lambda: Memory(wanted, f.empty(wanted)))
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    return f.choice(wanted, there, lambda: f.optional(wanted, found()), lambda: f.optional(wanted, None))


def _contains(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    container, wanted = values
    b = f.b
    if isinstance(container.type, t.Map | t.OMap | t.Bag):
        entry = f.find(container.type, f.ptr(container), wanted)
        return Scalar(t.BOOL, b.op(f"icmp ne ptr {entry}, null"))
    if is_text(container.type):
        at = b.call("i64", "text_search", [f"ptr {f.ptr(container)}", f"ptr {f.ptr(wanted)}", "i64 0"])
        return Scalar(t.BOOL, b.op(f"icmp sge i64 {at}, 0"))
    return Scalar(t.BOOL, b.op(f"icmp sge i64 {_position(f, container, wanted)}, 0"))


def _position(f: Frame, container: Value, wanted: Value) -> str:
    """Where an item first stands in a list, or -1."""
    at, count = f.extent(container)
    if not isinstance(wanted, Scalar):
        wanted = Memory(wanted.type, f.ptr(wanted))
    return _first(f, count, lambda i: arithmetic.same(f, at(i), wanted))


def _first(f: Frame, count: str, test: Callable[[str], str]) -> str:
    """The first number below `count` of which a test holds, or -1."""
    b = f.b
    found = b.slot("i64")
    b.do(f"store i64 -1, ptr {found}")
    after = b.fresh("found")

    def body(i: str) -> None:
        yes, no = b.fresh("yes"), b.fresh("no")
        b.branch(test(i), yes, no)
        b.at(yes)
        b.do(f"store i64 {i}, ptr {found}")
        b.go(after)
        b.at(no)

    counted(b, count, body)
    b.at(after)
    return b.op(f"load i64, ptr {found}")


def _index_of(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.I64, _position(f, values[0], values[1]))


def _collected(f: Frame, type_: t.Type, count: str, at: Callable[[str], Value]) -> Value:
    """A list of `count` items."""
    b, inner = f.b, t.parts(type_)[0]
    slot = b.slot(memory(type_))
    void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {count}", f"i64 {size_align(inner)[0]}")
    items = b.op(f"load ptr, ptr {slot}")
    _counted(f, "0", count, lambda i: _part(f, at(i), item(b, inner, items, i)), None)
    _set_count(f, slot, count)
    return Memory(type_, slot)


def _part(f: Frame, one: Value, to: str) -> None:
    """Writes an item to a new list: texts are shared, containers copied."""
    if shares(one.type):
        f.put(one, to)
    else:
        f.keep(one, to, TEMPORARY)


def _slice(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, container = f.b, values[0]
    low, high = f.reg(values[1]), f.reg(values[2])
    length = f.reg(_length(f, expr, (container,)))
    f.trap_if(b.op(f"icmp ugt i64 {low}, {length}"), "index-range", expr.site, (low, length))
    outside = b.op(f"or i1 {b.op(f'icmp slt i64 {high}, {low}')}, {b.op(f'icmp sgt i64 {high}, {length}')}")
    f.trap_if(outside, "index-range", expr.site, (high, length))
    if is_text(container.type):
        slot = f.empty(container.type)
        name = "text_slice" if container.type == t.STRING else "bytes_slice"
        void(
            b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(container)}", f"i64 {low}", f"i64 {high}"
        )
        return Memory(container.type, slot)
    at, _ = f.extent(container)
    count = b.op(f"sub i64 {high}, {low}")
    return _collected(f, expr.type, count, lambda i: at(b.op(f"add i64 {low}, {i}")))


def _taken(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    at, count = f.extent(values[0])
    asked = f.reg(values[1])
    asked = b.op(f"select i1 {b.op(f'icmp slt i64 {asked}, 0')}, i64 0, i64 {asked}")
    asked = b.op(f"select i1 {b.op(f'icmp sgt i64 {asked}, {count}')}, i64 {count}, i64 {asked}")
    if expr.operation == "take":
        return _collected(f, expr.type, asked, at)
    return _collected(
        f, expr.type, b.op(f"sub i64 {count}, {asked}"), lambda i: at(b.op(f"add i64 {asked}, {i}"))
    )


def _concat(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (x, y) = f.b, values
    if is_text(x.type):
        slot = f.empty(x.type)
        void(b, "text_concat", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}")
        return Memory(x.type, slot)
    (first, m), (second, n) = f.extent(x), f.extent(y)
    inner = t.parts(expr.type)[0]
    slot = b.slot(memory(expr.type))
    total = b.op(f"add i64 {m}, {n}")
    void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {total}", f"i64 {size_align(inner)[0]}")
    items = b.op(f"load ptr, ptr {slot}")
    counted(b, m, lambda i: _part(f, first(i), item(b, inner, items, i)))
    rest = item(b, inner, items, m)
    counted(b, n, lambda i: _part(f, second(i), item(b, inner, rest, i)))
    _set_count(f, slot, total)
    return Memory(expr.type, slot)


def _reverse(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    if is_text(values[0].type):
        return texts.reverse(f, values[0])
    b = f.b
    at, count = f.extent(values[0])
    last = b.op(f"sub i64 {count}, 1")
    return _collected(f, expr.type, count, lambda i: at(b.op(f"sub i64 {last}, {i}")))


def _to_list(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    if isinstance(values[0].type, t.Bag):
        inner, slot = t.parts(expr.type)[0], f.empty(expr.type)
        entries(
            f.b, f.ptr(values[0]), lambda e: _part(f, f.load(inner, key_of(f.b, e)), f.pushed(slot, inner))
        )
        return Memory(expr.type, slot)
    at, count = f.extent(values[0])
    return _collected(f, expr.type, count, at)


_LARGEST_LIST: Final = 1 << 32  # bytes, of a list made at once


def _fill(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, one = f.b, values[0]
    if not isinstance(one, Scalar):
        one = Memory(one.type, f.ptr(one))
    if isinstance(expr.type, t.Array):
        size = expr.type.size
        if len(values) == 2:
            count = f.reg(values[1])
            f.trap_if(b.op(f"icmp ne i64 {count}, {size}"), "index-range", expr.site, (count, str(size)))
        slot, inner = f.empty(expr.type), expr.type.item
        counted(b, str(size), lambda i: _part(f, one, item(b, inner, slot, i)))
        return Memory(expr.type, slot)
    count = f.reg(values[1])
    count = b.op(f"select i1 {b.op(f'icmp slt i64 {count}, 0')}, i64 0, i64 {count}")
    most = _LARGEST_LIST // size_align(one.type)[0]
    f.trap_if(
        b.op(f"icmp sgt i64 {count}, {most}"), "arena-limit", -1 if expr.site is None else expr.site, (count,)
    )
    return _collected(f, expr.type, count, lambda _i: one)


def _keys(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (map_,) = f.b, values
    kind, inner = map_.type, t.parts(expr.type)[0]
    if not isinstance(kind, t.Map | t.OMap):
        raise Unsupported(f"`{expr.operation}` of {kind}")
    slot = f.empty(expr.type)

    def add(entry: str) -> None:
        place = key_of(b, entry) if expr.operation == "keys" else value_of(b, kind, entry)
        _part(f, f.load(inner, place), f.pushed(slot, inner))

    entries(b, f.ptr(map_), add)
    return Memory(expr.type, slot)


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
    _counted(f, "0", count, lambda i: body(at(i)), None)


def _total(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, type_ = f.b, expr.type
    if arithmetic.is_float(type_):
        slot = f.empty(t.FSUM)
        each_item(f, values[0], lambda one: _add_float(f, slot, TEMPORARY, one, "0"))
        return arithmetic.rounded(
            f, type_, b.call("double", "sum_value", [f"ptr {TEMPORARY}", f"ptr {slot}"])
        )
    slot, beyond = (
        b.slot("i128"),
        b.slot("i64"),
    )  # the sum modulo 2^128, and what is left out, in units of 2^128
    b.do(f"store i128 0, ptr {slot}")
    b.do(f"store i64 0, ptr {beyond}")
    whole = arithmetic.kind_of(type_) == "i128"

    def add(one: Value) -> None:
        more = arithmetic.wide(f, one)
        before = b.op(f"load i128, ptr {slot}")
        after = b.op(f"add i128 {before}, {more}")
        b.do(f"store i128 {after}, ptr {slot}")
        if whole:
            over = b.op(
                f"and i128 {b.op(f'xor i128 {before}, {after}')}, {b.op(f'xor i128 {more}, {after}')}"
            )
            lost = b.op(f"icmp slt i128 {over}, 0")
            unit = b.op(f"select i1 {b.op(f'icmp slt i128 {more}, 0')}, i64 -1, i64 1")
            count = b.op(f"load i64, ptr {beyond}")
            b.do(
                f"store i64 {b.op(f'add i64 {count}, ' + b.op(f'select i1 {lost}, i64 {unit}, i64 0'))}, ptr {beyond}"
            )

    each_item(f, values[0], add)
    wide = b.op(f"load i128, ptr {slot}")
    low, high, code = bounds(type_)
    over, under = b.op(f"icmp sgt i128 {wide}, {high}"), b.op(f"icmp slt i128 {wide}, {low}")
    lost = b.op(f"icmp ne i64 {b.op(f'load i64, ptr {beyond}')}, 0")
    f.trap_if(b.op(f"or i1 {b.op(f'or i1 {over}, {under}')}, {lost}"), code, expr.site)
    return Scalar(type_, wide if whole else b.op(f"trunc i128 {wide} to {arithmetic.kind_of(type_)}"))


def _sum_value(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.F64, f.b.call("double", "sum_value", [f"ptr {TEMPORARY}", f"ptr {f.ptr(values[0])}"]))


def _hash64(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = f.module.derived("key_hash", values[0].type)
    return Scalar(t.U64, f.b.call("i64", name, [f"ptr {f.ptr(values[0])}"]))


def _starts(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = {"starts_with": "text_starts", "ends_with": "text_ends"}[expr.operation]
    return Scalar(t.BOOL, f.b.call("i1", name, [f"ptr {f.ptr(v)}" for v in values]))


def _find(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    start = f.reg(values[2]) if len(values) == 3 else "0"
    return Scalar(
        t.I64,
        f.b.call("i64", "text_find", [f"ptr {f.ptr(values[0])}", f"ptr {f.ptr(values[1])}", f"i64 {start}"]),
    )


def _string(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (one,) = f.b, values
    slot = f.empty(t.STRING)
    if one.type == t.STRING:
        return one
    if one.type == t.BOOL:
        return f.choice(
            t.STRING, f.reg(one), lambda: literal(f, t.STRING, "true"), lambda: literal(f, t.STRING, "false")
        )
    if one.type in (t.TIME, t.DURATION):
        name = "text_of_time" if one.type == t.TIME else "text_of_duration"
        void(b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {f.reg(one)}")
        return Memory(t.STRING, slot)
    if isinstance(one.type, t.Decimal):
        void(
            b,
            "text_of_decimal",
            f"ptr {TEMPORARY}",
            f"ptr {slot}",
            f"i128 {f.reg(one)}",
            f"i64 {one.type.scale}",
        )
        return Memory(t.STRING, slot)
    if one.type in t.FLOATS:
        return texts.real_text(f, one)
    void(b, "text_of_integer", f"ptr {TEMPORARY}", f"ptr {slot}", f"i128 {arithmetic.wide(f, one)}")
    return Memory(t.STRING, slot)


def _char(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.STRING)
    point = b.op(f"sext i32 {f.reg(values[0])} to i64")
    good = b.call("i1", "text_of_point", [f"ptr {slot}", f"i64 {point}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site, (point,))
    return Memory(t.STRING, slot)


def _join(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    items, count = list_parts(f.b, f.ptr(values[0]))
    void(
        f.b,
        "text_join",
        f"ptr {TEMPORARY}",
        f"ptr {slot}",
        f"ptr {items}",
        f"i64 {count}",
        f"ptr {f.ptr(values[1])}",
    )
    return Memory(t.STRING, slot)


def _split(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(expr.type)
    # the parts are views: of a copy, since a short text lies in the view that it is read from
    text = f.owned(values[0])
    void(
        f.b, "text_split", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(text)}", f"ptr {f.ptr(values[1])}"
    )
    return Memory(expr.type, slot)


def _encode(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.BYTES)
    f.put(Memory(t.BYTES, f.ptr(values[0])), slot)
    word = b.op(f"load i64, ptr {slot}")
    b.do(f"store i64 {b.op(f'and i64 {word}, {~(1 << 31)}')}, ptr {slot}")
    return Memory(t.BYTES, slot)


def _parse_bool(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, wanted = f.b, expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    true, false = (arithmetic.same(f, values[0], literal(f, t.STRING, text)) for text in ("true", "false"))
    known = b.op(f"or i1 {true}, {false}")
    return f.choice(
        wanted, known, lambda: f.optional(wanted, Scalar(t.BOOL, true)), lambda: f.optional(wanted, None)
    )


def _trim(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    void(f.b, "text_trim", f"ptr {slot}", f"ptr {f.ptr(values[0])}")
    return Memory(t.STRING, slot)


def _parse_integer(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    wanted = expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    base = f.reg(values[1]) if len(values) == 2 else "10"
    number, there = arithmetic.integer_in(f, wanted.inner, values[0], base)
    return f.choice(
        wanted,
        there,
        lambda: f.optional(wanted, Scalar(wanted.inner, number)),
        lambda: f.optional(wanted, None),
    )


def _time_field(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    out = f.b.slot("[3 x i64]")
    number = _TIME_FIELDS.index(expr.operation)
    return Scalar(
        t.I64, f.b.call("i64", "time_field", [f"i64 {f.reg(values[0])}", f"i64 {number}", f"ptr {out}"])
    )


def _civil(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    fields, out = b.slot("[6 x i64]"), b.slot("i64")
    for i in range(6):
        place = b.op(f"getelementptr inbounds i64, ptr {fields}, i64 {i}")
        b.do(f"store i64 {f.reg(values[i]) if i < len(values) else '0'}, ptr {place}")
    good = b.call("i1", "time_of", [f"ptr {out}", f"ptr {fields}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site)
    return Scalar(t.TIME, b.op(f"load i64, ptr {out}"))


def _sorted(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`sort`, `sort_by`: the numbers of the items are sorted by keys computed first, in order."""
    b = f.b
    at, count = f.extent(values[0])
    function = expr.args[-1]
    key = function.body.type if isinstance(function, typed.Lambda) else t.parts(expr.type)[0]
    keys = _collected(
        f,
        t.List(key),
        count,
        lambda i: _lambda(f, expr, at(i)) if isinstance(function, typed.Lambda) else at(i),
    )
    first, _ = list_parts(b, f.ptr(keys))
    name = f.module.sort_function(key)
    order = b.call(
        "ptr", name, [f"ptr {TEMPORARY}", f"ptr {first}", f"i64 {size_align(key)[0]}", f"i64 {count}"]
    )
    return _collected(
        f,
        expr.type,
        count,
        lambda i: at(b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {order}, i64 {i}')}")),
    )


_TIME_FIELDS: Final = (
    "year", "month", "day", "hour", "minute", "second", "microsecond", "weekday", "yearday",
)  # fmt: skip


def _end(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`front`, `back`."""
    b = f.b
    at, count = f.extent(values[0])
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    return at("0" if expr.operation == "front" else b.op(f"sub i64 {count}, 1"))


def _count(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    bag, one = values
    assert isinstance(bag.type, t.Bag)  # noqa: S101 - by the rule
    name = f.module.map_function("bag_count", bag.type)
    return Scalar(t.I64, f.b.call("i64", name, [f"ptr {f.ptr(bag)}", f"ptr {f.ptr(one)}"]))


def _sought(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """Keys of ordered maps: `first_key`, `last_key`, `floor`, `ceil`; the latter two also round floats."""
    b, kind, wanted = f.b, values[0].type, expr.type
    if not isinstance(kind, t.OMap):
        return arithmetic.RULES[expr.operation](f, expr, values)
    map_ = f.ptr(values[0])
    if expr.operation in ("floor", "ceil"):
        name = f.module.map_function(f"map_{expr.operation}", kind)
        entry = b.call("ptr", name, [f"ptr {map_}", f"ptr {f.canonical(values[1])}"])
    else:
        word = 1 if expr.operation == "first_key" else 2
        entry = b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds i64, ptr {map_}, i64 {word}')}")
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    return f.choice(
        wanted, b.op(f"icmp ne ptr {entry}, null"),
        lambda: f.optional(wanted, f.load(kind.key, key_of(b, entry))), lambda: f.optional(wanted, None),
    )  # fmt: skip


def _between(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`range`: the keys of an ordered map from one key to another."""
    b, (map_, low, high) = f.b, values
    kind = map_.type
    assert isinstance(kind, t.OMap)  # noqa: S101 - by the rule
    high = high if isinstance(high, Scalar) else Memory(high.type, f.ptr(high))
    slot, cursor = f.empty(expr.type), b.slot("ptr")
    first = b.call(
        "ptr", f.module.map_function("map_ceil", kind), [f"ptr {f.ptr(map_)}", f"ptr {f.canonical(low)}"]
    )
    b.do(f"store ptr {first}, ptr {cursor}")
    again, there, inside, after = (b.fresh(name) for name in ("again", "there", "inside", "after"))
    b.at(again)
    entry = b.op(f"load ptr, ptr {cursor}")
    b.branch(b.op(f"icmp ne ptr {entry}, null"), there, after)
    b.at(there)
    key = f.load(kind.key, key_of(b, entry))
    b.branch(arithmetic.total_less(f, key, high), inside, after)
    b.at(inside)
    _part(f, key, f.pushed(slot, kind.key))
    b.do(f"store ptr {b.op(f'load ptr, ptr {entry}')}, ptr {cursor}")
    b.go(again)
    b.at(after)
    return Memory(expr.type, slot)


def _bag_minus(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    inner = t.parts(expr.type)[0]
    slot = f.empty(expr.type)
    _difference(
        f,
        values,
        lambda one: _part(f, one, f.pushed(slot, inner)),
        lambda count: _reserve(f, slot, inner, count),
    )
    return Memory(expr.type, slot)


def _difference(f: Frame, values: Sequence[Value], body: Callable[[Value], None],
                sized: Callable[[str], None] | None) -> None:  # fmt: skip
    """A loop over the items of a list that another list does not take away; `sized` as of `loop`."""
    b, inner = f.b, t.parts(values[0].type)[0]
    size = size_align(inner)[0]
    (at, count), (other, others) = f.extent(values[0]), f.extent(values[1])
    bytes_ = b.op(f"add i64 {b.op(f'mul i64 {others}, {size}')}, 1")
    items = b.call("ptr", "alloc", [f"ptr {TEMPORARY}", f"i64 {bytes_}"])
    counted(b, others, lambda i: _part(f, other(i), item(b, inner, items, i)))
    make, taken = (f.module.minus_function(name, inner) for name in ("minus_table", "minus_taken"))
    table = b.call("ptr", make, [f"ptr {TEMPORARY}", f"ptr {items}", f"i64 {size}", f"i64 {others}"])
    if sized is not None:
        sized(count)

    def each(i: str) -> None:
        one = at(i)
        ptr = f.ptr(one)
        gone, kept, after = b.fresh("gone"), b.fresh("kept"), b.fresh("after")
        b.branch(b.call("i1", taken, [f"ptr {table}", f"ptr {ptr}", f"i64 {size}"]), gone, kept)
        b.at(gone)
        b.go(after)
        b.at(kept)
        body(one if isinstance(one, Scalar) else Memory(inner, ptr))
        b.at(after)

    counted(b, count, each)


_RULES: Final[dict[str, arithmetic.Rule]] = {
    "join": _join, "split": _split, "encode": _encode, "parse_bool": _parse_bool, "trim": _trim,
    **dict.fromkeys(("parse_i32", "parse_i64", "parse_u64", "parse_i128"), _parse_integer), "civil": _civil,
    **dict.fromkeys(_TIME_FIELDS, _time_field), "sort": _sorted,
    "front": _end, "back": _end, "count": _count, "first_key": _sought, "last_key": _sought, "floor": _sought, "ceil": _sought,
    "bag_minus": _bag_minus,
    "len": _length, "get": _get, "has": _contains, "contains": _contains, "index_of": _index_of, "slice": _slice,
    "take": _taken, "drop_first": _taken, "concat": _concat, "reverse": _reverse, "to_list": _to_list, "fill": _fill,
    "keys": _keys, "values": _keys, "sum": _total, "value": _sum_value, "hash64": _hash64, "starts_with": _starts,
    "ends_with": _starts, "find": _find, "string": _string, "char": _char, **regex.RULES,
    **texts.RULES, "range": _between,
}  # fmt: skip


def _lambda(f: Frame, expr: typed.Apply, *args: Value) -> Value:
    function = expr.args[-1]
    assert isinstance(function, typed.Lambda)  # noqa: S101 - by the rule
    f.slots.update(zip(function.slots, args, strict=True))
    return value(f, function.body)


def _mapped(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, inner = f.b, t.parts(expr.type)[0]
    at, count = f.extent(values[0])
    if isinstance(expr.type, t.Array):
        slot = f.empty(expr.type)
        _counted(f, "0", count, lambda i: _part(f, _lambda(f, expr, at(i)), item(b, inner, slot, i)), None)
        return Memory(expr.type, slot)
    return _collected(f, expr.type, count, lambda i: _lambda(f, expr, at(i)))


def _any(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, wanted = f.b, expr.operation == "any"
    result, after = b.slot("i1"), b.fresh("decided")
    b.do(f"store i1 {'false' if wanted else 'true'}, ptr {result}")

    def test(one: Value) -> None:
        held = f.reg(_lambda(f, expr, one))
        yes, on = b.fresh("yes"), b.fresh("on")
        b.branch(held, *((yes, on) if wanted else (on, yes)))
        b.at(yes)
        b.do(f"store i1 {'true' if wanted else 'false'}, ptr {result}")
        b.go(after)
        b.at(on)

    each_item(f, values[0], test)
    b.at(after)
    return Scalar(t.BOOL, b.op(f"load i1, ptr {result}"))


def _fold(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, type_ = f.b, expr.type
    slot = b.slot(memory(type_))
    f.put(f.owned(values[1]), slot)

    def step(one: Value) -> None:
        so_far = f.load(type_, slot)
        f.put(f.owned(_lambda(f, expr, so_far, one)), slot)

    each_item(f, values[0], step)
    return f.load(type_, slot)


_WITH_FUNCTIONS: Final[dict[str, arithmetic.Rule]] = {
    "sort_by": _sorted,
    "map": _mapped,
    "any": _any,
    "all": _any,
    "fold": _fold,
}


# --------------------------------------------------------------------------------------------------- places


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
            return lambda: _entry(f, expr, container(), index)
        case _:
            raise Unsupported("a place of this form")


def _indexed(f: Frame, expr: typed.At) -> tuple[Reach, Value]:
    container = place(f, expr.value)
    index = value(f, expr.index)
    return container, index if isinstance(index, Scalar) else f.owned(index)


def _entry(f: Frame, expr: typed.At, where: Memory, index: Value) -> Memory:
    b, kind = f.b, where.type
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, where.ptr, index)
        f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "key-missing", expr.site)
        return Memory(expr.type, value_of(b, kind, entry), where.arena)
    at = _index(f, index)
    match kind:
        case t.List() | t.Array() | t.Deque():
            place_at, count = positions(b, kind, where.ptr)
        case _:
            raise Unsupported(f"places in {kind}")
    f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    return Memory(expr.type, place_at(at), where.arena)


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
    rule = _CHANGES.get((name, type(kind)))
    if rule is None:
        raise Unsupported(f"`{name}` of {kind}")
    match target, rest:
        case typed.Local(slot=list_), [new] if isinstance(found := f.slots.get(list_), Sent):
            assert not isinstance(new, typed.Lambda)  # noqa: S101 - by the rule
            f.send(found, value(f, new, lent=True))
            return _UNIT
        case _:
            pass
    reach = place(f, target)
    values = [owned(f, arg) for arg in rest if not isinstance(arg, typed.Lambda)]
    match target, rest:
        case typed.Local(slot=list_), [typed.Local(slot=key)] if list_ in f.noted:
            to = f.pushed(f.noted[list_][1], t.I64)
            f.b.do(f"store ptr {f.at_hand[key]}, ptr {to}")
        case _:
            pass
    return rule(f, expr, reach(), values)


_UNIT: Final = Scalar(t.UNIT, "0")


def _push(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    inner = t.parts(where.type)[0]
    to = f.pushed(where.ptr, inner, where.arena)
    if where.arena == TEMPORARY:
        f.put(values[0], to)
    else:
        f.keep(values[0], to, where.arena)
    return _UNIT


def _pop(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b, inner = f.b, t.parts(where.type)[0]
    items, count = list_parts(b, where.ptr)
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    last = b.op(f"sub i64 {count}, 1")
    _set_count(f, where.ptr, last)
    return _taken_out(f, inner, item(b, inner, items, last), where.arena)


def _taken_out(f: Frame, type_: t.Type, at: str, arena: str) -> Value:
    """A value that has left its container."""
    found = f.load(type_, at)
    if isinstance(found, Scalar):
        return found
    found = f.owned(found)
    if arena != TEMPORARY and not is_plain(type_):
        void(f.b, f.module.derived("drop", type_), f"ptr {arena}", f"ptr {at}")
    return found


def _set(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    at = f.reg(values[0])
    place_at, count = positions(f.b, where.type, where.ptr)
    f.trap_if(f.b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    f.assign(values[1], place_at(at), where.arena, fresh=True)
    return _UNIT


def _push_back(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    to = f.pushed_back(where.ptr, t.parts(where.type)[0], where.arena)
    if where.arena == TEMPORARY:
        f.put(values[0], to)
    else:
        f.keep(values[0], to, where.arena)
    return _UNIT


def _pop_end(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    """`pop_front`, `pop_back`."""
    b = f.b
    place_at, count = positions(b, where.type, where.ptr)
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    last = b.op(f"sub i64 {count}, 1")
    at = place_at("0" if expr.operation == "pop_front" else last)
    _set_count(f, where.ptr, last)
    if expr.operation == "pop_front":
        room = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {where.ptr}, i64 2')}")
        first = b.op(f"getelementptr inbounds i64, ptr {where.ptr}, i64 3")
        following = b.op(f"add i64 {b.op(f'load i64, ptr {first}')}, 1")
        b.do(f"store i64 {b.op(f'and i64 {following}, ' + b.op(f'sub i64 {room}, 1'))}, ptr {first}")
    return _taken_out(f, t.parts(where.type)[0], at, where.arena)


def _add_item(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    f.add(where.type, where.ptr, where.arena, values[0])
    return _UNIT


def _remove_item(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b, kind = f.b, where.type
    assert isinstance(kind, t.Bag)  # noqa: S101 - by the table
    name = f.module.map_function("bag_take", kind)
    entry = b.call("ptr", name, [f"ptr {where.ptr}", f"ptr {f.ptr(values[0])}"])
    f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "remove-missing", expr.site)
    if not is_plain(kind.item):
        void(b, f.module.derived("drop", kind.item), f"ptr {where.arena}", f"ptr {key_of(b, entry)}")
    return _UNIT


def _set_entry(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    put_entry(f, where, values[0], values[1], fresh=True)
    return _UNIT


def remove_entry(f: Frame, map_: Memory, entry: str) -> None:
    """Takes an entry out of a map and drops what it has."""
    b, kind = f.b, map_.type
    assert isinstance(kind, t.Map | t.OMap)  # noqa: S101 - by the caller
    address = b.op(f"ptrtoint ptr {entry} to i64")
    void(b, f.module.map_function("map_remove", kind), f"ptr {map_.ptr}", f"i64 {address}")
    for type_, at in ((kind.key, key_of(b, entry)), (kind.value, value_of(b, kind, entry))):
        if not is_plain(type_):
            void(b, f.module.derived("drop", type_), f"ptr {map_.arena}", f"ptr {at}")


def _delete(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b = f.b
    entry = f.find(where.type, where.ptr, values[0])
    there = b.op(f"icmp ne ptr {entry}, null")
    if_(b, there, lambda: remove_entry(f, where, entry))
    return Scalar(t.BOOL, there)


def _clear(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    if not is_plain(where.type):
        void(f.b, f.module.derived("drop", where.type), f"ptr {where.arena}", f"ptr {where.ptr}")
    clear(f.b, where.type, where.ptr)
    return _UNIT


def _add_float(f: Frame, sum_: str, arena: str, one: Value, negative: str) -> None:
    void(
        f.b,
        "sum_add",
        f"ptr {arena}",
        f"ptr {sum_}",
        f"double {arithmetic.double(f, one)}",
        f"i64 {negative}",
    )


def _add(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    if where.type != t.FSUM:
        raise Unsupported(f"`{expr.operation}` of {where.type}")
    if expr.operation == "merge":
        void(f.b, "sum_merge", f"ptr {where.arena}", f"ptr {where.ptr}", f"ptr {f.ptr(values[0])}")
    else:
        _add_float(f, where.ptr, where.arena, values[0], "0" if expr.operation == "add" else "1")
    return _UNIT


_CHANGES: Final[dict[tuple[str, type], Callable[[Frame, typed.Apply, Memory, Sequence[Value]], Value]]] = {
    ("push", t.List): _push,
    ("pop", t.List): _pop,
    ("set", t.List): _set,
    ("set", t.Array): _set,
    ("set", t.Deque): _set,
    ("set", t.Map): _set_entry,
    ("set", t.OMap): _set_entry,
    ("delete", t.Map): _delete,
    ("delete", t.OMap): _delete,
    ("push_back", t.Deque): _push_back,
    ("pop_front", t.Deque): _pop_end,
    ("pop_back", t.Deque): _pop_end,
    ("add", t.Bag): _add_item,
    ("remove", t.Bag): _remove_item,
    **{("clear", kind): _clear for kind in (t.List, t.Array, t.Deque, t.Map, t.OMap, t.Bag)},
    **{(name, t.Primitive): _add for name in ("add", "sub", "merge")},
}


# ---------------------------------------------------------------------------------------------------- calls


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
    deep = b.op(f"icmp sge i64 {f.depth}, {DEEPEST}")
    here = b.op(f"ptrtoint ptr {b.op('call ptr @llvm.frameaddress.p0(i32 0)')} to i64")
    limit = b.op(f"load i64, ptr {f.context('stack')}")
    low = b.op(f"icmp ult i64 {here}, {limit}")
    f.trap_if(b.op(f"or i1 {deep}, {low}"), "recursion-depth", expr.site)
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
    trapped = b.call("i1", f.functions[expr.function], args)
    on = b.fresh("returned")
    b.branch(trapped, f.exit, on, rare=True)
    b.at(on)
    if fn.result == t.UNIT:
        return _UNIT
    return f.load(fn.result, result)


__all__ = [
    "apply",
    "assign",
    "borrows",
    "call",
    "changes",
    "loop",
    "move",
    "owned",
    "place",
    "remove_entry",
    "straight",
    "value",
]
