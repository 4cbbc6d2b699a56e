"""Values as values of other types: what variables begin with, conversions, types that contain themselves, tags of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall import displays
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.operations import CONVERTERS, OPERATIONS, named
from frontends.sawzall.types import BASIC, FINGERPRINT, Proto, Recursive, plain
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from frontends.sawzall.expressions import Expressions
    from river.source import Span


def outermost(place: z.Expr) -> z.Opened | None:
    """The outermost value in a place whose type contains itself: none stands around it."""
    found = None
    while isinstance(place, z.Field | z.Item | z.Slice | z.Opened):
        if isinstance(place, z.Opened):
            found = place
        place = place.value
    return found


def opened(checker: Expressions, node: z.Expr) -> z.Expr:
    """What a value is made of, if its type contains itself."""
    if not isinstance(node.type, Recursive):
        return node
    if isinstance(node, z.Closed):
        return node.value
    return z.Opened(checker.names.recursive[node.type.number], node, span=node.span)


def closed(checker: Expressions, expr: a.Expr, wanted: Recursive, *, converts: bool) -> z.Expr:
    """The typed form of `expr` as a value of a type that contains itself. `converts`: as `initial`, else as `check`."""
    content = checker.names.recursive[wanted.number]
    if displays.composite(expr):
        made = initial(checker, expr, content) if converts else checker.check(expr, content)
        return z.Closed(wanted, made, span=expr.span)
    node = checker.infer(expr, content)
    if node.type == wanted:
        return node
    if not converts and plain(node.type) != plain(content):
        raise checker.mismatch(wanted, node.type, expr.span)
    return converted_basic(checker, node, wanted, expr.span)


def shaped(checker: Expressions, node: z.Expr, wanted: t.Type) -> z.Expr:
    """A value as one of a type that differs in nothing but the tags of tuples: all fields are there then."""
    span = node.span
    match node, wanted:
        case _, type_ if node.type == type_:
            return node
        case z.RecordOf(_, values), t.Record(fields):
            parts = (shaped(checker, value, to) for value, (_, to) in zip(values, fields, strict=True))
            return z.RecordOf(wanted, tuple(parts), span=span)
        case z.Read() | z.Field(), t.Record(fields):
            assert isinstance(node.type, t.Record)  # noqa: S101 - they are alike
            given = node.type.fields
            values = (
                shaped(checker, z.Field(of, node, name, span=span), to)
                for (name, to), (_, of) in zip(fields, given, strict=True)
            )
            return z.RecordOf(wanted, tuple(values), span=span)
        case _, t.Record():
            whole = checker.temporary("whole", node.type)
            result = z.Result(shaped(checker, z.Read(node.type, whole, span=span), wanted), span=span)
            return z.StatementValue(
                wanted, (z.Declare(whole, node, needed=True, span=span), result), span=span
            )
        case _, t.List(item):
            return each_item(checker, node, lambda each: shaped(checker, each, item), wanted, span)
        case _, t.Map():
            return reshaped(checker, node, wanted, span)
        case _:
            raise checker.mismatch(wanted, node.type, span)


def reshaped(checker: Expressions, node: z.Expr, wanted: t.Map, span: Span | None) -> z.Expr:
    """As `shaped`, of a map."""
    assert isinstance(node.type, t.Map)  # noqa: S101 - they are alike
    keys = t.List(node.type.key)
    whole, found, named_, at = (
        checker.temporary("map", node.type), checker.temporary("shaped", wanted), checker.temporary("keys", keys),
        checker.temporary("at", t.I64),
    )  # fmt: skip
    index = z.Read(t.I64, at)
    key = z.Item(node.type.key, z.Read(keys, named_), index, span=span)
    value = z.Item(node.type.value, z.Read(node.type, whole), key, span=span)
    put = z.Assign(
        z.Item(wanted.value, z.Read(wanted, found), key, span=span),
        shaped(checker, value, wanted.value),
        span=span,
    )
    less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (z.Read(keys, named_),))))
    return z.StatementValue(
        wanted,
        (
            z.Declare(whole, node, needed=True, span=span),
            z.Declare(named_, z.Apply(keys, "keys", (z.Read(node.type, whole),))),
            z.Declare(found, z.MapOf(wanted, ())),
            z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), (put,), span=span),
            z.Result(z.Read(wanted, found), span=span),
        ),
        span=span,
    )


def initial(checker: Expressions, expr: a.Expr, wanted: t.Type) -> z.Expr:
    """The typed form of what a variable begins with: it is converted to the type of the variable."""
    if isinstance(wanted, Recursive):
        return closed(checker, expr, wanted, converts=True)
    if not displays.composite(expr):
        node = opened(checker, checker.infer(expr, wanted))
        if plain(node.type) == plain(wanted):
            return shaped(checker, node, wanted)
        return converted(checker, node, wanted, expr.span)
    found = checker.tried(lambda: checker.check(expr, wanted))
    if found is None:
        found = checker.tried(lambda: converted(checker, checker.infer(expr), wanted, expr.span))
    return checker.check(expr, wanted) if found is None else found


def converted(checker: Expressions, node: z.Expr, wanted: t.Type, span: Span | None) -> z.Expr:
    """A value as one of another type; bytes by way of a string; arrays item by item, also to tuples and maps."""
    match node.type, wanted:
        case t.List(item), t.List(to):
            return each_item(
                checker, node, lambda each: converted_basic(checker, each, to, span), wanted, span
            )
        case t.List(item), t.Record(fields):
            return as_tuple(checker, node, fields, wanted, span)
        case t.List(item), t.Map(key, value):
            del item
            return as_map(checker, node, key, value, span)
        case _:
            return converted_basic(checker, node, wanted, span)


def converted_basic(checker: Expressions, node: z.Expr, wanted: t.Type, span: Span | None) -> z.Expr:
    """A value as one of another basic type, or as a text."""
    wanted = wanted.inner if isinstance(wanted, t.Optional) else wanted
    if plain(node.type) == plain(wanted):
        return shaped(checker, node, wanted)
    if isinstance(wanted, Recursive) and not isinstance(node.type, Recursive):
        content = checker.names.recursive[wanted.number]
        alike = plain(node.type) == plain(content)
        made = shaped(checker, node, content) if alike else converted(checker, node, content, span)
        return z.Closed(wanted, made, span=span)
    node = opened(checker, node)
    if node.type == t.BYTES and isinstance(wanted, Proto):
        return z.Unpacked(wanted, node, span=span)
    if isinstance(node.type, Proto) and wanted == t.BYTES:
        return z.Packed(t.BYTES, node, span=span)
    if node.type == t.BYTES and wanted not in (t.STRING, t.BYTES, FINGERPRINT):
        node = converted_basic(checker, node, t.STRING, span)
    if isinstance(node, z.Constant) and (node.type, wanted) == (t.I64, t.F64):
        return z.Constant(t.F64, float(node.value), span=span)
    name = next((name for name, type_ in BASIC.items() if type_ == wanted), None)
    found = None if name is None else OPERATIONS.get(named(name, (node.type,)))
    if name is None or found is None or name not in CONVERTERS or found.rule((node.type,)) is None:
        raise checker.mismatch(wanted, node.type, span)
    return z.Apply(wanted, named(name, (node.type,)), (node,), span=span)


def each_item(
    checker: Expressions, node: z.Expr, each: Callable[[z.Expr], z.Expr], wanted: t.List, span: Span | None
) -> z.Expr:
    """An array of what `each` makes of the items of another one."""
    assert isinstance(node.type, t.List)  # noqa: S101 - asked before
    if isinstance(node, z.ArrayOf):
        return z.ArrayOf(wanted, tuple(map(each, node.items)), span=span)
    whole, found, at = (
        checker.temporary("items", node.type), checker.temporary("converted", wanted), checker.temporary("at", t.I64),
    )  # fmt: skip
    read, index = z.Read(node.type, whole), z.Read(t.I64, at)
    less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
    body = (z.Append(found, each(z.Item(node.type.item, read, index, span=span)), span=span),)
    return z.StatementValue(
        wanted,
        (
            z.Declare(whole, node, needed=True, span=span),
            z.Declare(found, z.ArrayOf(wanted, ())),
            z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), body, span=span),
            z.Result(z.Read(wanted, found), span=span),
        ),
        span=span,
    )


def as_tuple(
    checker: Expressions,
    node: z.Expr,
    fields: tuple[tuple[str, t.Type], ...],
    wanted: t.Type,
    span: Span | None,
) -> z.Expr:
    """An array as a tuple of so many fields."""
    assert isinstance(node.type, t.List)  # noqa: S101 - asked before
    assert isinstance(wanted, t.Record)  # noqa: S101 - asked before
    if isinstance(node, z.ArrayOf):
        if len(node.items) != len(fields):
            raise checker.mismatch(wanted, node.type, span)
        values = (
            converted_basic(checker, item, to, span) for item, (_, to) in zip(node.items, fields, strict=True)
        )
        return z.RecordOf(wanted, tuple(values), span=span)
    whole = checker.temporary("items", node.type)
    read = z.Read(node.type, whole)
    length = z.Apply(t.I64, "len", (read,))
    unequal = z.Apply(t.BOOL, "!=", (length, z.Constant(t.I64, len(fields))))
    parts = tuple(
        converted_basic(checker, z.Item(node.type.item, read, z.Constant(t.I64, i), span=span), to, span)
        for i, (_, to) in enumerate(fields)
    )
    refuse = z.Evaluate(z.Item(node.type.item, read, length, span=span), span=span)
    return z.StatementValue(
        wanted,
        (
            z.Declare(whole, node, needed=True, span=span),
            z.If(unequal, (refuse,)),
            z.Result(z.RecordOf(wanted, parts, span=span), span=span),
        ),
        span=span,
    )


def as_map(checker: Expressions, node: z.Expr, key: t.Type, value: t.Type, span: Span | None) -> z.Expr:
    """An array of keys and values as a map."""
    assert isinstance(node.type, t.List)  # noqa: S101 - asked before
    wanted = t.Map(key, value)
    if isinstance(node, z.ArrayOf) and len(node.items) % 2 == 0:
        keys = (converted_basic(checker, each, key, span) for each in node.items[::2])
        values = (converted_basic(checker, each, value, span) for each in node.items[1::2])
        return z.MapOf(wanted, tuple(zip(keys, values, strict=True)), span=span)
    whole, found, at = (
        checker.temporary("items", node.type), checker.temporary("entries", wanted), checker.temporary("at", t.I64),
    )  # fmt: skip
    read, index = z.Read(node.type, whole), z.Read(t.I64, at)
    two = z.Constant(t.I64, 2)
    behind = z.Apply(t.I64, "+", (index, z.Constant(t.I64, 1)))
    first = converted_basic(checker, z.Item(node.type.item, read, index, span=span), key, span)
    second = converted_basic(checker, z.Item(node.type.item, read, behind, span=span), value, span)
    less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
    put = z.Assign(z.Item(value, z.Read(wanted, found), first, span=span), second, span=span)
    step = z.Assign(index, z.Apply(t.I64, "+", (index, two)))
    return z.StatementValue(
        wanted,
        (
            z.Declare(whole, node, needed=True, span=span),
            z.Declare(found, z.MapOf(wanted, ())),
            z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (step,), (put,), span=span),
            z.Result(z.Read(wanted, found), span=span),
        ),
        span=span,
    )


def conversion(
    checker: Expressions, wanted: t.Type, value: s.Argument, params: tuple[s.Argument, ...], span: Span | None
) -> z.Expr:
    """`convert(T, value, ...)`, or `T(value, ...)` of a declared type."""
    name = next((name for name, type_ in BASIC.items() if type_ == wanted), None)
    if wanted == t.List(t.I64) and len(params) == 1 and checker.infer(value).type == t.STRING:
        return points(checker, value, params[0], span)
    if name is not None and params:
        return checker.operation(name, (value, *params), wanted, span)
    if isinstance(wanted, t.List) and params:
        return each_converted(checker, value, params, wanted, span)
    return initial(checker, value, wanted)


def each_converted(
    checker: Expressions, value: s.Argument, params: tuple[s.Argument, ...], wanted: t.List, span: Span | None
) -> z.Expr:
    """`convert(array of T, a, how)`: each item is converted so."""
    node, given = checker.infer(value), tuple(map(checker.infer, params))
    name = next((name for name, type_ in BASIC.items() if type_ == wanted.item), "")
    types = (
        node.type.item if isinstance(node.type, t.List) else node.type,
        *(each.type for each in given),
    )
    found = OPERATIONS.get(named(name, types)) if name in CONVERTERS else None
    if not isinstance(node.type, t.List) or found is None or found.rule(types) is None:
        raise checker.mismatch(wanted, node.type, span)
    return each_item(
        checker,
        node,
        lambda each: z.Apply(wanted.item, named(name, types), (each, *given), span=span),
        wanted,
        span,
    )


def points(checker: Expressions, value: s.Argument, how: s.Argument, span: Span | None) -> z.Expr:
    """`convert(array of int, text, "unicode")`: the code points of a text."""
    wanted = t.List(t.I64)
    if not isinstance(how, s.String) or how.value.lower() != "unicode":
        raise checker.error("sawzall-arguments", "code points are those of `unicode`", span, '`"unicode"`')
    text, found, at = (
        checker.temporary("text", t.STRING), checker.temporary("points", wanted), checker.temporary("at", t.I64),
    )  # fmt: skip
    read, index = z.Read(t.STRING, text), z.Read(t.I64, at)
    less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
    body = (z.Append(found, z.Item(t.I64, read, index, span=span), span=span),)
    return z.StatementValue(
        wanted,
        (
            z.Declare(text, checker.check(value, t.STRING), needed=True, span=span),
            z.Declare(found, z.ArrayOf(wanted, ())),
            z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), body, span=span),
            z.Result(z.Read(wanted, found), span=span),
        ),
        span=span,
    )


def through(checker: Expressions, stmt: z.Assign | z.Step) -> z.Stmt:
    """A change of a part of a value whose type contains itself: the value is opened, changed and closed again."""
    opened = outermost(stmt.place)
    if opened is None:
        return stmt
    whole = checker.temporary("opened", opened.type)

    def within(node: s.Node) -> s.Node:
        if node is opened:
            return z.Read(opened.type, whole, span=opened.span)
        assert isinstance(node, z.Field | z.Item | z.Slice | z.Opened)  # noqa: S101 - it leads there
        return evolve(node, value=within(node.value))

    change = through(checker, evolve(stmt, place=within(stmt.place)))
    return z.Within(opened.value, whole, change, span=stmt.span)
