"""Expressions and places as closures (il.md P5).

Reading never copies. Whoever comes to own a value takes it by `own`, which freezes what is still part of a
place. A write first makes the containers on its way mutable: a frozen one is thawed (its items shared) and
stored back. Of `place = e` the indices of the place come first, then e, then the place is sought and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, assert_never

from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate.code import DEPTH, OUTS, VARIABLES, Compilation, Frame, Run, trapped
from river.lang.evaluate.further import NESTED, further
from river.lang.evaluate.traps import Trap
from river.lang.operations import OPERATIONS, Borrows, Operation
from river.lang.trees import effect
from river.lang.values import (
    TrapSignal,
    default,
    freezer,
    frozen_class,
    keyer,
    mutable_form,
    thawer,
)

if TYPE_CHECKING:
    from river.source import Span

# ---------------------------------------------------------------------------------------------- reading


def expression(code: Compilation, expr: typed.Expr) -> Run:
    """What computes `expr` from a frame."""
    match expr:
        case typed.Literal(_, value):
            return lambda _f: value
        case typed.Local(_, slot, _, _):
            return itemgetter(slot)
        case typed.State(_, index, _):
            return lambda f: f[VARIABLES][index]
        case typed.ConstRef(_, index, _):
            if index >= len(code.consts):  # in a function that the constants before this one do not call
                return _not_yet
            constant = code.consts[index]
            return lambda _f: constant
        case typed.Get():
            return _get(code, expr)
        case typed.At():
            return _at(code, expr)
        case typed.Apply():
            return _apply(code, expr)
        case typed.Call():
            return _call(code, expr)
        case typed.Some(_, value):
            return expression(code, value)
        case typed.If(_, cond, then, other):
            return _if(expression(code, cond), expression(code, then), expression(code, other))
        case typed.Logic(_, op, left, right):
            return _logic(op, expression(code, left), expression(code, right))
        case typed.MakeRecord():
            return _make_record(code, expr)
        case typed.MakeList():
            return _make_list(code, expr)
        case typed.MakeMap():
            return _make_map(code, expr)
        case typed.Comprehension():
            return _comprehension(code, expr)
        case _:
            assert_never(expr)


def own(code: Compilation, expr: typed.Expr) -> Run:
    """What computes `expr` as a value of which no place has a part that may change."""
    run, freeze = expression(code, expr), freezer(expr.type)
    if freeze is None or not _borrows(expr):
        return run
    return lambda f: freeze(run(f))


def own_result(code: Compilation, expr: typed.Expr) -> Run:
    """`own` for a value returned: a `var` of the frame that dies needs no copy."""
    if isinstance(expr, typed.Local) and expr.slot in code.owned:
        return itemgetter(expr.slot)
    return own(code, expr)


def _borrows(expr: typed.Expr) -> bool:
    match expr:
        case typed.Local() | typed.State() | typed.ConstRef() | typed.Get() | typed.At():
            return True
        case typed.Some(_, value):
            return _borrows(value)
        case typed.If(_, _, then, other):
            return _borrows(then) or _borrows(other)
        case typed.Apply(type_, _, _, _):
            borrows = effect(expr).borrows
            flat = borrows is Borrows.ITEMS and all(map(t.is_flat, t.parts(type_)))
            return borrows is not Borrows.NOTHING and not flat
        case _:
            return False


def _not_yet(_f: Frame) -> Any:
    message = "a constant is asked for before it is computed"
    raise AssertionError(message)


def _get(code: Compilation, expr: typed.Get) -> Run:
    index = expr.index
    if isinstance(expr.value, typed.Local):
        slot = expr.value.slot
        return lambda f: f[slot][index]
    value = expression(code, expr.value)
    return lambda f: value(f)[index]


def _at(code: Compilation, expr: typed.At) -> Run:
    value, index = expression(code, expr.value), expression(code, expr.index)
    match expr.value.type:
        case t.Map(key, _) | t.OMap(key, _):
            canonical = keyer(key)

            def entry(f: Frame) -> Any:
                entries, at = value(f), index(f)
                try:
                    return entries[at if canonical is None else canonical(at)]
                except KeyError:
                    raise Trap("key-missing", (at,), "[]", expr.site, expr.span) from None

            return entry
        case t.STRING:

            def point(f: Frame) -> int:
                text, at = value(f), index(f)
                if 0 <= at < len(text):
                    return ord(text[at])
                raise Trap("index-range", (at, len(text)), "[]", expr.site, expr.span)

            return point
        case _:

            def item(f: Frame) -> Any:
                items, at = value(f), index(f)
                if 0 <= at < len(items):
                    return items[at]
                raise Trap("index-range", (at, len(items)), "[]", expr.site, expr.span)

            return item


def _if(cond: Run, then: Run, other: Run) -> Run:
    return lambda f: then(f) if cond(f) else other(f)


def _logic(op: str, left: Run, right: Run) -> Run:
    if op == "and":
        return lambda f: left(f) and right(f)
    return lambda f: left(f) or right(f)


# ---------------------------------------------------------------------------------------------- making


def _make_record(code: Compilation, expr: typed.MakeRecord) -> Run:
    values = [own(code, value) for value in expr.values]
    if expr.order != tuple(range(len(values))):
        order = [(place, values[place]) for place in expr.order]

        def shuffled(f: Frame) -> tuple[Any, ...]:
            fields: list[Any] = [None] * len(values)
            for place, value in order:
                fields[place] = value(f)
            return tuple(fields)

        return shuffled
    match values:
        case []:
            return lambda _f: ()
        case [a]:
            return lambda f: (a(f),)
        case [a, b]:
            return lambda f: (a(f), b(f))
        case [a, b, c]:
            return lambda f: (a(f), b(f), c(f))
        case _:
            return lambda f: tuple([value(f) for value in values])


def _make_list(code: Compilation, expr: typed.MakeList) -> Run:
    if all(isinstance(value, typed.Literal) for value in expr.values):
        constant = tuple(value.value for value in expr.values if isinstance(value, typed.Literal))
        return lambda _f: constant
    values = [own(code, value) for value in expr.values]
    return lambda f: [value(f) for value in values]


def _make_map(code: Compilation, expr: typed.MakeMap) -> Run:
    type_ = expr.type
    if not expr.items:
        empty = default(type_)
        return lambda _f: empty
    canonical: Callable[[Any], Any] = keyer(t.parts(type_)[0]) or _itself
    pairs = [(own(code, key), own(code, value)) for key, value in expr.items]
    return lambda f: mutable_form(type_, [(canonical(key(f)), value(f)) for key, value in pairs])


def _itself(value: Any) -> Any:
    return value


def ranges(
    code: Compilation, over: typed.Counted | typed.Expr, names: int, span: Span | None
) -> Callable[[Frame], Iterable[Any]]:
    """What lists the items of a loop, or pairs when it has two names. `span`: of the loop."""
    source, tick = _range(code, over, names), code.tick

    def polled(f: Frame) -> Iterable[Any]:
        for item in source(f):
            tick(span)
            yield item

    return polled


def _range(
    code: Compilation, over: typed.Counted | typed.Expr, names: int
) -> Callable[[Frame], Iterable[Any]]:
    if isinstance(over, typed.Counted):
        low, high = expression(code, over.low), expression(code, over.high)
        return lambda f: range(low(f), high(f))
    value = expression(code, over)
    match over.type:
        case t.Map() | t.OMap():
            return value if names == 1 else lambda f: value(f).items()
        case t.STRING:
            return lambda f: map(ord, value(f)) if names == 1 else enumerate(map(ord, value(f)))
        case _:
            return value if names == 1 else _numbered(value)


def _numbered(value: Callable[[Frame], Iterable[Any]]) -> Callable[[Frame], Iterable[Any]]:
    return lambda f: enumerate(value(f))


def _comprehension(code: Compilation, expr: typed.Comprehension) -> Run:
    source, value = ranges(code, expr.range, len(expr.slots), expr.span), own(code, expr.value)
    cond = None if expr.cond is None else expression(code, expr.cond)
    if len(expr.slots) == 2:
        first, second = expr.slots

        def pairs(f: Frame) -> list[Any]:
            found: list[Any] = []
            for f[first], f[second] in source(f):  # noqa: B020 - its slots
                if cond is None or cond(f):
                    found.append(value(f))
            return found

        return pairs
    (slot,) = expr.slots

    def items(f: Frame) -> list[Any]:
        found: list[Any] = []
        for f[slot] in source(f):  # noqa: B020 - its slots
            if cond is None or cond(f):
                found.append(value(f))
        return found

    return items


# ---------------------------------------------------------------------------------------------- operations


def _apply(code: Compilation, expr: typed.Apply) -> Run:
    operation = OPERATIONS[expr.operation]
    meaning = operation.meaning(tuple(arg.type for arg in expr.args), expr.type)
    if operation.mutates is not None:
        return _change(code, expr, operation, meaning)
    args = [_argument(code, arg) for arg in expr.args]
    return _guard(_applied(meaning, expr, args), expr)


def _argument(code: Compilation, arg: typed.Expr | typed.Lambda) -> Run:
    if not isinstance(arg, typed.Lambda):
        return expression(code, arg)
    body, tick, span = expression(code, arg.body), code.tick, arg.span
    if len(arg.slots) == 1:
        (slot,) = arg.slots

        def one(f: Frame) -> Callable[[Any], Any]:
            def function(a: Any) -> Any:
                tick(span)
                f[slot] = a
                return body(f)

            return function

        return one
    slots = arg.slots

    def several(f: Frame) -> Callable[..., Any]:
        def function(*values: Any) -> Any:
            tick(span)
            for slot, value in zip(slots, values, strict=True):
                f[slot] = value
            return body(f)

        return function

    return several


def _applied(meaning: Callable[..., Any], expr: typed.Apply, args: Sequence[Run]) -> Run:
    """`meaning` of the arguments; the usual shapes avoid calls for names and literals."""
    match args, expr.args:
        case _, (typed.Local(_, slot, _, _),):
            return lambda f: meaning(f[slot])
        case _, (typed.Local(_, slot, _, _), typed.Literal(_, value)):
            return lambda f: meaning(f[slot], value)
        case _, (typed.Local(_, slot, _, _), typed.Local(_, other, _, _)):
            return lambda f: meaning(f[slot], f[other])
        case [a], _:
            return lambda f: meaning(a(f))
        case [a, _], (_, typed.Literal(_, value)):
            return lambda f: meaning(a(f), value)
        case [a, b], _:
            return lambda f: meaning(a(f), b(f))
        case _:
            return lambda f: meaning(*[arg(f) for arg in args])


def _guard(run: Run, expr: typed.Apply) -> Run:
    """`run`, its signals made traps of this site. The traps of operands pass: they are made already."""
    if expr.site is None:
        return run

    def guarded(f: Frame) -> Any:
        try:
            return run(f)
        except TrapSignal as signal:
            raise trapped(signal, expr, expr.operation, expr.site) from None

    return guarded


def _change(code: Compilation, expr: typed.Apply, operation: Operation, meaning: Callable[..., Any]) -> Run:
    target = expr.args[0]
    assert not isinstance(target, typed.Lambda)  # noqa: S101 - by the rule
    where = place(code, target)
    args = [
        own(code, arg) if not isinstance(arg, typed.Lambda) else _argument(code, arg) for arg in expr.args[1:]
    ]
    if operation.mutates == "container":
        container = mutable(where, target.type)
        return _guard(_change_container(where, container, args, meaning), expr)

    def replace(f: Frame) -> Any:
        ks = [index(f) for index in where.indices]
        operands = [arg(f) for arg in args]
        old = where.get(f, ks)
        new, result = meaning(old, *operands)
        if new is not old:
            where.set(f, ks, new)
        return result

    return _guard(replace, expr)


def _change_container(where: Place, container: Reach, args: list[Run], meaning: Callable[..., Any]) -> Run:
    if where.indices:

        def change(f: Frame) -> Any:
            ks = [index(f) for index in where.indices]
            operands = [arg(f) for arg in args]
            return meaning(container(f, ks), *operands)

        return change
    match args:
        case []:
            return lambda f: meaning(container(f, ()))
        case [a]:

            def change_one(f: Frame) -> Any:
                operand = a(f)
                return meaning(container(f, ()), operand)

            return change_one
        case _:

            def change_all(f: Frame) -> Any:
                operands = [arg(f) for arg in args]
                return meaning(container(f, ()), *operands)

            return change_all


# ---------------------------------------------------------------------------------------------- calls


def _call(code: Compilation, expr: typed.Call) -> Run:
    fn = code.fns[expr.function]
    refs = [
        (i, place(code, arg)) for i, (arg, p) in enumerate(zip(expr.args, fn.params, strict=True)) if p.ref
    ]
    pad = (None,) * (fn.slots - len(fn.params))
    if refs:
        return _call_by_reference(code, expr, dict(refs), pad)
    functions, number, tick = code.functions, expr.function, code.tick
    args = [expression(code, arg) for arg in expr.args]

    def call(f: Frame) -> Any:
        depth: int = f[DEPTH] + 1
        frame = [*[arg(f) for arg in args], *pad, (), depth, f[OUTS], f[VARIABLES]]
        tick(expr.span)
        run = functions[number]
        return run(frame) if depth % NESTED != 1 or depth == 1 else further(run, frame, depth, expr)

    return call


def _call_by_reference(
    code: Compilation, expr: typed.Call, refs: dict[int, Place], pad: tuple[None, ...]
) -> Run:
    """A call that lends places: their values move into the callee's slots and back. No other name reaches them meanwhile."""
    functions, number, tick = code.functions, expr.function, code.tick
    args = [None if i in refs else expression(code, arg) for i, arg in enumerate(expr.args)]
    wheres = list(refs.items())

    def call(f: Frame) -> Any:
        keys: dict[int, list[Any]] = {}
        slots: list[Any] = []
        for i, arg in enumerate(args):
            if arg is None:
                keys[i] = [index(f) for index in refs[i].indices]
                slots.append(None)
            else:
                slots.append(arg(f))
        tick(expr.span)
        for i, where in wheres:
            slots[i] = where.get(f, keys[i])
        depth: int = f[DEPTH] + 1
        frame = [*slots, *pad, (), depth, f[OUTS], f[VARIABLES]]
        run = functions[number]
        result = run(frame) if depth % NESTED != 1 or depth == 1 else further(run, frame, depth, expr)
        for i, where in wheres:
            if frame[i] is not slots[i]:
                where.set(f, keys[i], frame[i])
        return result

    return call


# ---------------------------------------------------------------------------------------------- places

Reach = Callable[[Frame, Sequence[Any]], Any]


@frozen
class Place:
    """Where a value stands. `get` and `set` take the values of `indices`, and make the containers on the way mutable."""

    indices: tuple[Run, ...]
    get: Reach
    set: Callable[[Frame, Sequence[Any], Any], None]


def place(code: Compilation, expr: typed.Expr) -> Place:
    """The place that `expr` names.

    Raises: TypeError if it names none (the checker refuses that).
    """
    match expr:
        case typed.Local(_, slot, _, _):
            return _slot_place(slot)
        case typed.State(_, index, _):
            return _state_place(index)
        case typed.Get(_, value, index, _):
            return _field_place(place(code, value), index)
        case typed.At(_, value, index, _):
            return _entry_place(place(code, value), value.type, expression(code, index), expr)
        case _:
            raise TypeError(f"not a place: {expr}")


def mutable(where: Place, type_: t.Type) -> Reach:
    """What finds the container at a place, mutable."""
    get, put, still, thaw = where.get, where.set, frozen_class(type_), thawer(type_)

    def reach(f: Frame, ks: Sequence[Any]) -> Any:
        container = get(f, ks)
        if type(container) is still:
            container = thaw(container)
            put(f, ks, container)
        return container

    return reach


def _slot_place(slot: int) -> Place:
    def put(f: Frame, _ks: Sequence[Any], value: Any) -> None:
        f[slot] = value

    return Place((), lambda f, _ks: f[slot], put)


def _state_place(index: int) -> Place:
    def put(f: Frame, _ks: Sequence[Any], value: Any) -> None:
        f[VARIABLES][index] = value

    return Place((), lambda f, _ks: f[VARIABLES][index], put)


def _field_place(inner: Place, index: int) -> Place:
    get, put = inner.get, inner.set

    def put_field(f: Frame, ks: Sequence[Any], value: Any) -> None:
        record = get(f, ks)
        put(f, ks, (*record[:index], value, *record[index + 1 :]))

    return Place(inner.indices, lambda f, ks: get(f, ks)[index], put_field)


def _composed(function: Callable[[Any], Any], value: Run) -> Run:
    return lambda f: function(value(f))


def _entry_place(inner: Place, type_: t.Type, index: Run, expr: typed.At) -> Place:
    container, number = mutable(inner, type_), len(inner.indices)
    if isinstance(type_, t.Map | t.OMap):
        canonical = keyer(type_.key)
        key: Run = index if canonical is None else _composed(canonical, index)

        def get_entry(f: Frame, ks: Sequence[Any]) -> Any:
            try:
                return container(f, ks)[ks[number]]
            except KeyError:
                raise Trap("key-missing", (ks[number],), "[]", expr.site, expr.span) from None

        def put_entry(f: Frame, ks: Sequence[Any], value: Any) -> None:
            container(f, ks)[ks[number]] = value

        return Place((*inner.indices, key), get_entry, put_entry)

    def checked(f: Frame, ks: Sequence[Any]) -> Any:
        items, at = container(f, ks), ks[number]
        if 0 <= at < len(items):
            return items
        raise Trap("index-range", (at, len(items)), "[]", expr.site, expr.span)

    def put_item(f: Frame, ks: Sequence[Any], value: Any) -> None:
        checked(f, ks)[ks[number]] = value

    return Place((*inner.indices, index), lambda f, ks: checked(f, ks)[ks[number]], put_item)
