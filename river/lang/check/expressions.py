"""Expressions: untyped to typed, in both directions (a wanted type flows down, the found one up).

Literals, empty containers, records and lambdas take their type from what is wanted or from the other operand; everything
else states its own. Conversions are explicit, except that a value stands where its optional is wanted (il.md P7).
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from struct import pack, unpack
from typing import TYPE_CHECKING, assert_never

from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.check.environment import Context, Path, StatementFailed, overlap, path_of
from river.lang.operations import OPERATIONS, Borrows, Signature, traps_of
from river.lang.scope import show
from river.lang.trees import effect, operands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from river.lang.operations.table import Rule

INTEGER_BOUNDS = {
    t.I32: (-(1 << 31), (1 << 31) - 1),
    t.I64: (-(1 << 63), (1 << 63) - 1),
    t.U64: (0, (1 << 64) - 1),
    t.I128: (-(1 << 127), (1 << 127) - 1),
}
UNARY = {"-": "neg", "-%": "neg%", "~": "~", "not": "not"}


def check(c: Context, expr: s.Expr, wanted: t.Type) -> typed.Expr:
    """The typed form of `expr`, which must have type `wanted` (or the inside of it, when `wanted` is optional)."""
    node = infer(c, expr, wanted)
    fitted = coerce(node, wanted)
    if fitted is None:
        raise mismatch(c, expr, wanted, node.type)
    return fitted


def mismatch(c: Context, expr: s.Argument, wanted: t.Type, found: t.Type) -> StatementFailed:
    """The error that `expr` has another type than wanted, with a way to mend it."""
    return c.error(
        "lang-type-mismatch",
        f"expected `{show(wanted)}`, found `{show(found)}`",
        expr.span,
        _conversion(wanted, found),
    )


def _conversion(wanted: t.Type, found: t.Type) -> str | None:
    numeric = t.INTEGERS | t.FLOATS
    if wanted in numeric and found in numeric:
        return f"convert it: `{show(wanted)}(...)`"
    if found == t.Optional(wanted):
        return "it may be none: test it with `if ... is x`, or insist with `!`"
    return None


def coerce(node: typed.Expr, wanted: t.Type) -> typed.Expr | None:
    """`node` as a `wanted`, or None."""
    if node.type == wanted:
        return node
    if isinstance(wanted, t.Optional) and node.type == wanted.inner:
        return typed.Some(wanted, node, span=node.span)
    return None


def flexible(c: Context, expr: s.Argument) -> bool:
    """Whether the type of `expr` depends on what is wanted of it."""
    match expr:
        case (
            s.Int() | s.Float() | s.NoneValue() | s.Lambda() | s.RecordValue() | s.MapValue() | s.ListValue()
        ):
            return True
        case s.TupleValue(items):
            return any(flexible(c, item) for item in items)
        case s.Unary(_, value):
            return flexible(c, value)
        case s.Binary(op, left, right):
            return (
                op not in ("==", "!=", "<", "<=", ">", ">=", "and", "or")
                and flexible(c, left)
                and flexible(c, right)
            )
        case s.IfExpr(_, then, other):
            return flexible(c, then) and flexible(c, other)
        case s.Comprehension(value, _, _, _):
            return flexible(c, value)
        case s.Call(function, args):
            if c.declares(function):
                return False  # the program's own function of that name, whose result has one type
            if function in ("fill", "to_decimal", "rescale"):
                return True  # what is wanted decides, whatever the operands are
            return (
                function in OPERATIONS
                and all(flexible(c, arg) for arg in args)
                and _heeds(function, len(args))
            )
        case _:
            return False


@cache
def _heeds(name: str, count: int) -> bool:
    """Whether an operation's result on operands of unknown type depends on what is wanted of it."""
    hints = (None, t.I32, t.F32, t.F64, t.List(t.I32), t.Deque(t.F64), t.Decimal(9, 2), t.FSUM, t.TIME)
    signatures = [OPERATIONS[name].rule((None,) * count, hint) for hint in hints]
    return None in signatures or len({s.result for s in signatures if s is not None}) > 1


def telling(expr: s.Argument) -> bool:
    """Whether a flexible `expr` has a type worth asking for: a number with a point, or something in a display."""
    match expr:
        case s.Float():
            return True
        case s.ListValue(items) | s.TupleValue(items) | s.MapValue(items):
            return bool(items)
        case s.RecordValue(fields):
            return bool(fields)
        case s.Unary(_, value):
            return telling(value)
        case s.Binary(_, left, right) | s.IfExpr(_, left, right):
            return telling(left) or telling(right)
        case s.Call(_, args):
            return any(map(telling, args))
        case _:
            return False


def infer(c: Context, expr: s.Expr, wanted: t.Type | None = None, *, inner: bool = False) -> typed.Expr:
    """The typed form of `expr`; `wanted` is a hint. `inner`: a larger place is being built, which will be checked itself."""
    node = _infer(c, expr, wanted)
    if type(node.type) is not t.Primitive and (excess := t.excess(node.type)):
        raise c.error("lang-type-size", excess, expr.span, "keep what belongs together in several values")
    if not inner:
        c.use(path_of(node), expr.span, write=False)
    return node


def _infer(c: Context, expr: s.Expr, wanted: t.Type | None) -> typed.Expr:
    span = expr.span
    match expr:
        case s.Int(value):
            return number(c, value, wanted, expr)
        case s.Float(value):
            return real(c, value, wanted, expr)
        case s.String(value):
            return typed.Literal(t.STRING, value, span=span)
        case s.Bytes(value):
            return typed.Literal(t.BYTES, value, span=span)
        case s.Bool(value):
            return typed.Literal(t.BOOL, value, span=span)
        case s.NoneValue():
            if not isinstance(wanted, t.Optional):
                if wanted is not None:
                    raise c.error("lang-type-mismatch", f"expected `{show(wanted)}`, found `none`", span)
                raise c.error(
                    "lang-needs-type",
                    "the type of `none` is not known here",
                    span,
                    "state it: `let x: T? = none`",
                )
            return typed.Literal(wanted, None, span=span)
        case s.Name(name):
            return _name(c, name, expr)
        case s.Var(name):
            return _variable(c, name, expr)
        case s.Hole(name, _):
            raise c.error("lang-hole", f"`#{name}` stands only in templates", span)
        case s.Member(value, name):
            return _member(c, value, name, expr)
        case s.Index(value, index):
            return _index(c, value, index, expr)
        case s.Slice(value, low, high):
            return operation(c, "slice", (value, low, high), wanted, expr)
        case s.Force(value):
            return operation(
                c, "force", (value,), None if wanted is None else t.Optional(strip(wanted)), expr
            )
        case s.IsNone(value):
            return operation(c, "is_none", (value,), None, expr)
        case s.Unary(op, value):
            if op == "-" and isinstance(value, s.Int):
                return number(c, -value.value, wanted, expr)
            if op == "-" and isinstance(value, s.Float):
                return real(c, -value.value, wanted, expr)
            return operation(c, UNARY[op], (value,), wanted, expr)
        case s.Binary("and" | "or" as op, left, right):
            return typed.Logic(t.BOOL, op, check(c, left, t.BOOL), check(c, right, t.BOOL), span=span)
        case s.Binary(op, left, right):
            return operation(c, op, (left, right), wanted, expr)
        case s.Call():
            return _call(c, expr, wanted)
        case s.IfExpr(cond, then, other):
            return _if(c, cond, then, other, wanted, expr)
        case s.RecordValue():
            return _record(c, expr, wanted)
        case s.TupleValue(items):
            return _tuple(c, items, wanted, expr)
        case s.ListValue(items):
            return _list(c, items, wanted, expr)
        case s.MapValue(items):
            return _map(c, items, wanted, expr)
        case s.Comprehension():
            return _comprehension(c, expr, wanted)
        case _:
            assert_never(expr)


# ---------------------------------------------------------------------------------------------- literals


def strip(type_: t.Type) -> t.Type:
    """The type without its question mark."""
    return type_.inner if isinstance(type_, t.Optional) else type_


def number(c: Context, value: int, wanted: t.Type | None, expr: s.Expr) -> typed.Literal:
    """A whole number as a literal of the wanted numeric type, i64 by default."""
    type_ = t.I64 if wanted is None else strip(wanted)
    if type_ in t.FLOATS:
        return real(c, float(value), type_, expr)
    if isinstance(type_, t.Decimal):
        return _decimal(c, Decimal(value), type_, expr)
    if type_ not in t.INTEGERS:
        type_ = t.I64
    low, high = INTEGER_BOUNDS[type_]
    if not low <= value <= high:
        raise c.error("lang-literal-range", f"{value} is out of the range of `{show(type_)}`", expr.span)
    return typed.Literal(type_, value, span=expr.span)


def real(c: Context, value: float, wanted: t.Type | None, expr: s.Expr) -> typed.Literal:
    """A number with a point as a literal of the wanted type, f64 by default."""
    type_ = t.F64 if wanted is None else strip(wanted)
    if isinstance(type_, t.Decimal):
        return _decimal(c, Decimal(repr(value)), type_, expr)
    if type_ == t.F32:
        return typed.Literal(t.F32, single(value), span=expr.span)
    return typed.Literal(t.F64, value, span=expr.span)


def single(value: float) -> float:
    """`value` rounded to 32 bits."""
    try:
        return unpack("f", pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _decimal(c: Context, value: Decimal, type_: t.Decimal, expr: s.Expr) -> typed.Literal:
    scaled = value.scaleb(type_.scale)
    if scaled != scaled.to_integral_value() or abs(scaled) >= 10**type_.precision:
        raise c.error("lang-literal-range", f"{value} does not fit `{show(type_)}`", expr.span)
    return typed.Literal(type_, int(scaled), span=expr.span)


# ---------------------------------------------------------------------------------------------- names and places


def _name(c: Context, name: str, expr: s.Name) -> typed.Expr:
    binding = c.lookup(name)
    if binding is None:
        raise c.unknown(name, expr.span)
    if binding.type is None:
        raise StatementFailed
    if binding.slot in c.frame.dropped and not binding.const:
        raise c.error("lang-drop", f"`{name}` may have been dropped here", expr.span, "`drop` comes last")
    if binding.const:
        return typed.ConstRef(binding.type, binding.slot, name, span=expr.span)
    return typed.Local(binding.type, binding.slot, name, binding.ref, span=expr.span)


def _variable(c: Context, name: str, expr: s.Var) -> typed.Expr:
    for index, (variable, type_) in enumerate(c.variables):
        if variable == name:
            if not c.may_touch_state:
                raise c.error(
                    "lang-variable-in-fn",
                    f"a function cannot name `${name}`",
                    expr.span,
                    "pass it as a `ref` parameter",
                )
            return typed.State(type_, index, name, span=expr.span)
    help_ = closest(name, [v for v, _ in c.variables])
    raise c.error("lang-unknown-name", f"unknown variable `${name}`", expr.span, help_)


def _member(c: Context, value: s.Expr, name: str, expr: s.Member) -> typed.Expr:
    node = infer(c, value, inner=True)
    match node.type:
        case t.Record(fields):
            index = node.type.index(name)
            if index is None:
                known = [field for field, _ in fields]
                help_ = closest(name, known) or f"it has {', '.join(f'`{k}`' for k in known)}"
                raise c.error(
                    "lang-unknown-field", f"no field `{name}` in `{show(node.type)}`", expr.span, help_
                )
            return typed.Get(fields[index][1], node, index, name, span=expr.span)
        case t.Tuple(items) if name.isdigit() and int(name) < len(items):
            return typed.Get(items[int(name)], node, int(name), name, span=expr.span)
        case t.Optional(t.Record()):
            help_ = "it may be none: test it with `if ... is x`, or insist with `!`"
            raise c.error("lang-not-a-record", f"`{show(node.type)}` has no fields", expr.span, help_)
        case _:
            raise c.error("lang-not-a-record", f"`{show(node.type)}` has no field `{name}`", expr.span)


def _index(c: Context, value: s.Expr, index: s.Expr, expr: s.Index) -> typed.Expr:
    node = infer(c, value, inner=True)
    match node.type:
        case t.Map(key, item) | t.OMap(key, item):
            position = check(c, index, key)
            steady(c, (node, position), expr)
            return typed.At(item, node, position, c.site(("key-missing",), expr.span), span=expr.span)
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            return _at(c, item, node, index, expr)
        case t.Primitive("string"):
            return _at(c, t.I32, node, index, expr)
        case t.Primitive("bytes"):
            return _at(c, t.I32, node, index, expr)
        case _:
            raise c.error("lang-not-indexed", f"`{show(node.type)}` cannot be indexed", expr.span)


def _at(c: Context, item: t.Type, node: typed.Expr, index: s.Expr, expr: s.Index) -> typed.Expr:
    position = infer(c, index, t.I64)
    if position.type == t.I32:
        position = typed.Apply(t.I64, "i64", (position,), span=position.span)
    if position.type != t.I64:
        raise mismatch(c, index, t.I64, position.type)
    steady(c, (node, position), expr)
    return typed.At(item, node, position, c.site(("index-range",), expr.span), span=expr.span)


def place(c: Context, expr: s.Expr, why: str) -> typed.Expr:
    """A typed place that may be written; notes which variable that writes."""
    node = _infer(c, expr, None)
    path = path_of(node)
    if path is None:
        raise c.error("lang-not-a-place", f"{why} needs a place: a variable, a field or an entry", expr.span)
    c.use(path, expr.span, write=True)
    root = node
    while isinstance(root, typed.Get | typed.At):
        root = root.value
        if root.type == t.STRING or isinstance(root.type, t.Optional):
            raise c.error(
                "lang-not-assignable", f"a part of `{show(root.type)}` cannot be changed", expr.span
            )
    if isinstance(root, typed.State):
        c.written.add(root.index)
    elif isinstance(root, typed.Local):
        binding = c.lookup(root.name)
        if binding is not None and not binding.writable:
            help_ = "parameters, loop names and `let` borrow: declare it with `var` to change a copy"
            raise c.error("lang-not-assignable", f"`{root.name}` cannot be changed", expr.span, help_)
    return node


# ---------------------------------------------------------------------------------------------- operations and calls


def operation(
    c: Context, name: str, args: tuple[s.Argument, ...], wanted: t.Type | None, expr: s.Expr
) -> typed.Expr:
    """A library operation applied: operands that know their type first, the others by what the operation wants."""
    found = OPERATIONS[name]
    nodes: list[typed.Expr | typed.Lambda | None] = [None] * len(args)
    for i, arg in enumerate(args):
        if i == 0 and found.mutates is not None:
            assert not isinstance(arg, s.Lambda)  # noqa: S101 - the grammar has no lambda there
            nodes[0] = place(c, arg, f"`{name}`")
        elif not isinstance(arg, s.Lambda) and not flexible(c, arg):
            nodes[i] = infer(c, arg)
    if name in ("==", "!=", "same") and len(args) == 2:
        _lift(nodes, args)
    _lead(c, name, nodes, wanted, args)
    if name == "coalesce" and len(args) == 2:
        _second(c, nodes, args, wanted)
    final = signature = _signature(c, name, nodes, wanted, args, expr)
    known = all(nodes)
    for i, arg in enumerate(args):
        if nodes[i] is None:
            node = _operand(c, arg, signature.params[i], nodes)
            nodes[i] = node if isinstance(node, typed.Lambda) else coerce(node, signature.params[i]) or node
            if i + 1 < len(args) or isinstance(arg, s.Lambda):
                signature = _signature(c, name, nodes, wanted, args, expr)
    if not known:
        final = _signature(c, name, nodes, wanted, args, expr)
    operands: list[typed.Expr | typed.Lambda] = []
    for arg, node, param in zip(args, nodes, final.params, strict=True):
        if isinstance(node, typed.Lambda) or node is None:
            operands += [node] if node is not None else []
            continue
        fitted = coerce(node, param)
        if fitted is None:
            raise mismatch(c, arg, param, node.type)
        operands.append(fitted)
    if found.mutates is None:
        steady(c, operands, expr)
    types = tuple(node.type for node in operands)
    codes = traps_of(found, types, final.result)
    site = c.site(codes, expr.span) if codes else None
    return typed.Apply(final.result, name, tuple(operands), site, span=expr.span)


def _lead(
    c: Context, name: str, nodes: list[typed.Expr | typed.Lambda | None], wanted: t.Type | None,
    args: tuple[s.Argument, ...],
) -> None:  # fmt: skip
    """Where neither an operand nor what is wanted tells the type, asks the first operand that has one."""
    rule = OPERATIONS[name].rule
    if any(nodes) or (
        wanted is not None and rule((None,) * len(args), wanted) != rule((None,) * len(args), None)
    ):
        return
    for tells in (telling, _may_be_some):
        for i, arg in enumerate(args):
            if not isinstance(arg, s.Lambda) and tells(arg):
                nodes[i] = infer(c, arg)
                return


def _second(
    c: Context, nodes: list[typed.Expr | typed.Lambda | None], args: tuple[s.Argument, ...], wanted: t.Type | None
) -> None:  # fmt: skip
    """What stands for none may be none itself: `coalesce(a, if c {1} else {none})`."""
    first, second = args
    if nodes[1] is not None or isinstance(first, s.Lambda) or isinstance(second, s.Lambda):
        return
    if not _may_be_none(second):
        return
    if nodes[0] is None and wanted is not None:
        nodes[0] = infer(c, first, t.Optional(strip(wanted)))
    if nodes[0] is not None:
        nodes[1] = infer(c, second, t.Optional(strip(nodes[0].type)))


def _lift(nodes: list[typed.Expr | typed.Lambda | None], args: tuple[s.Argument, ...]) -> None:
    """Makes the two sides of an equality the same type where one is the optional of the other, or is seen to be none at times."""
    for i, arg in enumerate(args):
        beside = nodes[1 - i]
        if nodes[i] is None and not isinstance(beside, typed.Lambda | None) and not isinstance(arg, s.Lambda):
            nodes[1 - i] = coerce(beside, _beside(arg, beside.type)) or beside
    left, right = nodes
    if left is None or right is None or isinstance(left, typed.Lambda) or isinstance(right, typed.Lambda):
        return
    nodes[0] = coerce(left, right.type) or left
    nodes[1] = coerce(right, left.type) or right


def _signature(
    c: Context, name: str, nodes: list[typed.Expr | typed.Lambda | None], wanted: t.Type | None,
    args: tuple[s.Argument, ...], expr: s.Expr,
) -> Signature:  # fmt: skip
    types = tuple(None if node is None else node.type for node in nodes)
    signature = _offered(OPERATIONS[name].rule, types, wanted)
    if signature is None or len(signature.params) != len(args):
        shown = ", ".join("?" if type_ is None else f"`{show(type_)}`" for type_ in types)
        what = f"`{name}` does not apply to {shown}" if types else f"`{name}` needs a known type here"
        raise c.error("lang-operation-types", what, expr.span, _advice(name, types))
    return signature


def _offered(rule: Rule, types: tuple[t.Type | None, ...], wanted: t.Type | None) -> Signature | None:
    """What an operation's rule offers: what has the wanted result, else the first, by what is wanted and by the operands."""
    if wanted is None:
        return rule(types, None)
    first: Signature | None = None
    for hint in (wanted, wanted.inner, None) if isinstance(wanted, t.Optional) else (wanted, None):
        found = rule(types, hint)
        if found is not None and wanted in (found.result, t.Optional(found.result)):
            return found
        first = first or found
    return first


def _advice(name: str, types: tuple[t.Type | None, ...]) -> str | None:
    known = [type_ for type_ in types if type_ is not None]
    if name == "/" and known and all(type_ in t.INTEGERS for type_ in known):
        return "whole numbers divide by `div.trunc(a, b)` or `div.floor(a, b)`"
    if len(known) > 1 and known[0] != known[1] and all(type_ in t.INTEGERS | t.FLOATS for type_ in known):
        return f"convert one of them, for instance `{show(known[0])}(...)`"
    if any(isinstance(type_, t.Optional) for type_ in known):
        return "an operand may be none: test it with `if ... is x`, or insist with `!`"
    return OPERATIONS[name].doc or None


def _operand(
    c: Context, arg: s.Argument, wanted: t.Type, nodes: list[typed.Expr | typed.Lambda | None]
) -> typed.Expr | typed.Lambda:
    if not isinstance(arg, s.Lambda):
        node = infer(c, arg, wanted)
        if coerce(node, wanted) is None and all(n is None or n.type != node.type for n in nodes):
            raise mismatch(c, arg, wanted, node.type)
        return node
    if not isinstance(wanted, t.Function) or len(wanted.params) != len(arg.params):
        raise c.error(
            "lang-lambda", "a function with other parameters (or none at all) is wanted here", arg.span
        )
    with c.block():
        slots = tuple(
            c.bind(name, type_, arg.span) for name, type_ in zip(arg.params, wanted.params, strict=True)
        )
        body = infer(c, arg.body) if wanted.result is None else check(c, arg.body, wanted.result)
    return typed.Lambda(t.Function(wanted.params, body.type), slots, arg.params, body, span=arg.span)


def _call(c: Context, expr: s.Call, wanted: t.Type | None) -> typed.Expr:
    from river.lang.check.functions import function_index

    index = function_index(c, expr.function)
    if index is None:
        if expr.function in OPERATIONS:
            return operation(c, expr.function, expr.args, wanted, expr)
        known = [*OPERATIONS, *c.local_fns, *c.scope.fns]
        raise c.error(
            "lang-unknown-function",
            f"unknown function `{expr.function}`",
            expr.span,
            closest(expr.function, known),
        )
    entry = c.fns[index]
    if entry.result is None and entry.failed:
        raise StatementFailed
    if entry.result is None:
        raise c.error(
            "lang-recursive-result",
            f"`{expr.function}` calls itself: its result type must be stated",
            entry.source.span,
        )
    if len(expr.args) != len(entry.params):
        count = len(entry.params)
        message = f"`{expr.function}` takes {count} argument{'s' * (count != 1)}, {len(expr.args)} given"
        raise c.error("lang-arguments", message, expr.span)
    args: list[typed.Expr] = []
    for arg, param in zip(expr.args, entry.params, strict=True):
        if isinstance(arg, s.Lambda):
            raise c.error("lang-lambda", "only library operations take functions", arg.span)
        if param.ref:
            node = place(c, arg, f"the `ref` parameter `{param.name}`")
            if node.type != param.type:
                raise mismatch(c, arg, param.type, node.type)
        else:
            node = check(c, arg, param.type)
        args.append(node)
    _refuse_aliases(c, entry.params, args, expr)
    steady(c, [arg for arg, param in zip(args, entry.params, strict=True) if not param.ref], expr)
    c.frame.calls.add(index)
    site = c.site(("recursion-depth",), expr.span)
    return typed.Call(entry.result, index, expr.function, tuple(args), site, span=expr.span)


def _refuse_aliases(
    c: Context, params: tuple[typed.Param, ...], args: list[typed.Expr], expr: s.Call
) -> None:
    used = [_only(path_of(a)) if p.ref else borrowed(a) for p, a in zip(params, args, strict=True)]
    for i, param in enumerate(params):
        for j, others in enumerate(used):
            if param.ref and i != j and any(a[:2] == b[:2] for a in used[i] for b in others):
                raise c.error(
                    "lang-alias",
                    f"`ref` argument {i + 1} and argument {j + 1} are parts of the same variable",
                    expr.span,
                )


def _only(path: Path | None) -> tuple[Path, ...]:
    return () if path is None else (path,)


def _if(
    c: Context, cond: s.Expr, then: s.Expr, other: s.Expr, wanted: t.Type | None, expr: s.Expr
) -> typed.Expr:
    condition = check(c, cond, t.BOOL)
    unsure = flexible(c, then) and not _is_none(other)
    if (
        wanted is None
        and unsure
        and (not flexible(c, other) or _is_none(then) or (telling(other) and not telling(then)))
    ):
        second = infer(c, other)
        first = infer(c, then, _beside(then, second.type))
    else:
        first = infer(c, then, wanted)
        second = infer(c, other, wanted or (_beside(other, first.type) if flexible(c, other) else None))
    left = coerce(first, second.type) or first
    right = coerce(second, left.type)
    if right is None:
        raise mismatch(c, other, left.type, second.type)
    return typed.If(left.type, condition, left, right, span=expr.span)


def _beside(expr: s.Expr, type_: t.Type) -> t.Type:
    """What is wanted of the branch `expr` when the other one is of type `type_`."""
    return t.Optional(strip(type_)) if _may_be_none(expr) else type_


def _may_be_some(expr: s.Expr) -> bool:
    """Whether a flexible expression is an optional value whatever is wanted of it: `if c {1} else {none}`."""
    match expr:
        case s.IfExpr(_, then, other):
            return _may_be_none(expr) and not (_is_none(then) and _is_none(other))
        case _:
            return False


def _is_none(expr: s.Expr) -> bool:
    match expr:
        case s.NoneValue():
            return True
        case s.IfExpr(_, then, other):
            return _is_none(then) and _is_none(other)
        case _:
            return False


def _may_be_none(expr: s.Expr) -> bool:
    match expr:
        case s.NoneValue():
            return True
        case s.IfExpr(_, then, other):
            return _may_be_none(then) or _may_be_none(other)
        case _:
            return False


# ---------------------------------------------------------------------------------------------- displays


def _record(c: Context, expr: s.RecordValue, wanted: t.Type | None) -> typed.Expr:
    target = None if wanted is None else strip(wanted)
    given: dict[str, typed.Expr] = {}
    if target is not None and not isinstance(target, t.Record):
        help_ = (
            "write `{(key): value}` for a map whose key is a name"
            if isinstance(target, t.Map | t.OMap)
            else None
        )
        raise c.error("lang-type-mismatch", f"expected `{show(target)}`, found a record", expr.span, help_)
    for item in expr.fields:
        if not isinstance(item, s.FieldValue):
            raise c.error("lang-hole", "`#each` stands only in templates", item.span)
        if item.name in given:
            raise c.error("lang-duplicate-field", f"field `{item.name}` is given twice", item.span)
        type_ = None if target is None else target.field(item.name)
        if target is not None and type_ is None:
            help_ = closest(item.name, [name for name, _ in target.fields])
            raise c.error(
                "lang-unknown-field", f"no field `{item.name}` in `{show(target)}`", item.span, help_
            )
        given[item.name] = infer(c, item.value) if type_ is None else check(c, item.value, type_)
    type_ = target or t.Record(tuple((name, node.type) for name, node in given.items()))
    missing = [name for name, _ in type_.fields if name not in given]
    if missing:
        raise c.error(
            "lang-missing-field",
            f"field `{missing[0]}` is missing",
            expr.span,
            f"the type is `{show(type_)}`",
        )
    names = [name for name, _ in type_.fields]
    order = tuple(names.index(name) for name in given)
    return typed.MakeRecord(type_, tuple(given[name] for name in names), order, span=expr.span)


def _tuple(c: Context, items: tuple[s.Expr, ...], wanted: t.Type | None, expr: s.Expr) -> typed.Expr:
    if not items:
        return typed.Literal(t.UNIT, (), span=expr.span)
    target = None if wanted is None else strip(wanted)
    hints: tuple[t.Type | None, ...] = (None,) * len(items)
    if isinstance(target, t.Tuple) and len(target.items) == len(items):
        hints = target.items
    nodes = tuple(infer(c, i) if h is None else check(c, i, h) for i, h in zip(items, hints, strict=True))
    type_ = t.Tuple(tuple(node.type for node in nodes))
    return typed.MakeRecord(type_, nodes, tuple(range(len(nodes))), span=expr.span)


def _list(c: Context, items: tuple[s.Expr, ...], wanted: t.Type | None, expr: s.Expr) -> typed.Expr:
    match None if wanted is None else strip(wanted):
        case t.List(item) | t.Array(item, _) as target:
            nodes = tuple(check(c, i, item) for i in items)
            if isinstance(target, t.Array) and target.size != len(nodes):
                message = f"expected {target.size} items, found {len(nodes)}"
                raise c.error("lang-type-mismatch", message, expr.span)
            return typed.MakeList(target, nodes, span=expr.span)
        case t.Deque() as target if not items:
            return typed.MakeMap(target, span=expr.span)
        case None if not items:
            raise c.error(
                "lang-needs-type",
                "the type of `[]` is not known here",
                expr.span,
                "state it: `var l: list<T> = []`",
            )
        case None:
            known = next((i for i in items if not flexible(c, i)), next(filter(telling, items), items[0]))
            first = infer(c, known)  # once: what is looked at twice on each level takes exponential time
            nodes = tuple(first if i is known else check(c, i, first.type) for i in items)
            return typed.MakeList(t.List(first.type), nodes, span=expr.span)
        case target:
            raise c.error("lang-type-mismatch", f"expected `{show(target)}`, found a list", expr.span)


def _map(
    c: Context, items: tuple[tuple[s.Expr, s.Expr], ...], wanted: t.Type | None, expr: s.Expr
) -> typed.Expr:
    match None if wanted is None else strip(wanted):
        case t.Map(key, value) | t.OMap(key, value) as target:
            pairs = tuple((check(c, k, key), check(c, v, value)) for k, v in items)
            return typed.MakeMap(target, pairs, span=expr.span)
        case (t.Deque() | t.Bag() | t.List()) as target if not items:
            return typed.MakeMap(target, span=expr.span)
        case t.Record(()) as target if not items:
            return typed.MakeRecord(target, (), (), span=expr.span)
        case None if not items:
            raise c.error(
                "lang-needs-type",
                "the type of `{}` is not known here",
                expr.span,
                "state it: `var m: map<K, V> = {}`",
            )
        case None:
            key, value = infer(c, items[0][0]), infer(c, items[0][1])
            rest = tuple((check(c, k, key.type), check(c, v, value.type)) for k, v in items[1:])
            return typed.MakeMap(t.Map(key.type, value.type), ((key, value), *rest), span=expr.span)
        case target:
            raise c.error("lang-type-mismatch", f"expected `{show(target)}`, found a map", expr.span)


def _comprehension(c: Context, expr: s.Comprehension, wanted: t.Type | None) -> typed.Expr:
    target = None if wanted is None else strip(wanted)
    with c.block():
        range_, slots = loop_names(c, expr.names, expr.range, expr)
        cond = None if expr.cond is None else check(c, expr.cond, t.BOOL)
        value = check(c, expr.value, target.item) if isinstance(target, t.List) else infer(c, expr.value)
    return typed.Comprehension(t.List(value.type), value, slots, expr.names, range_, cond, span=expr.span)


def loop_names(
    c: Context, names: tuple[str, ...], range_: s.Range | s.Expr, expr: s.Node
) -> tuple[typed.Counted | typed.Expr, tuple[int, ...]]:
    """The range of a loop and the slots of its names, bound in the current block; guards what is iterated."""
    if isinstance(range_, s.Range):
        if len(names) != 1:
            raise c.error("lang-loop-names", "a counted loop has one name", expr.span)
        if flexible(c, range_.low) and not flexible(c, range_.high):
            high = infer(c, range_.high, t.I64)
            low = infer(c, range_.low, high.type)
        else:
            low = infer(c, range_.low, t.I64)
            high = infer(c, range_.high, low.type)
        for side, node in ((range_.low, low), (range_.high, high)):
            if node.type not in (t.I32, t.I64) or node.type != low.type:
                raise mismatch(c, side, t.I64, node.type)
        slot = c.bind(names[0], low.type, expr.span)
        return typed.Counted(low, high, span=range_.span), (slot,)
    node = infer(c, range_)
    types = _loop_types(node.type, len(names))
    if types is None:
        raise c.error(
            "lang-loop-names", f"a loop over `{show(node.type)}` cannot have {len(names)} names", expr.span
        )
    for path in borrowed(node):
        c.guard(path, reads=False, name=_shown(range_), why="is being looped over")
    return node, tuple(c.bind(name, type_, expr.span) for name, type_ in zip(names, types, strict=True))


def _loop_types(type_: t.Type, count: int) -> tuple[t.Type, ...] | None:
    match type_:
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            found = (t.I64, item)[-count:] if count in (1, 2) else None
        case t.Map(key, value) | t.OMap(key, value):
            found = (key, value)[:count] if count in (1, 2) else None
        case t.Bag(item):
            found = (item,) if count == 1 else None
        case t.Primitive("string"):
            found = (t.I64, t.I32)[-count:] if count in (1, 2) else None
        case _:
            found = None
    return found


def _shown(expr: s.Expr) -> str:
    match expr:
        case s.Name(name):
            return name
        case s.Var(name):
            return f"${name}"
        case s.Member(value, name):
            return f"{_shown(value)}.{name}"
        case s.Index(value, _):
            return f"{_shown(value)}[..]"
        case _:
            return "it"


def borrowed(node: typed.Expr) -> tuple[Path, ...]:
    """The places of which `node` is a part or an alias, when its type is not flat."""
    if t.is_flat(node.type):
        return ()
    path = path_of(node)
    if path is not None:
        return (path,)
    match node:
        case typed.Some(_, value):
            return borrowed(value)
        case typed.If(_, _, then, other):
            return borrowed(then) + borrowed(other)
        case typed.Apply(_, _, args, _) if effect(node).borrows is not Borrows.NOTHING:
            return tuple(p for arg in args if not isinstance(arg, typed.Lambda) for p in borrowed(arg))
        case typed.MakeRecord(_, values, _) | typed.MakeList(_, values):
            return tuple(p for value in values for p in borrowed(value))
        case _:
            return ()


# ---------------------------------------------------------------------------------------------- order of evaluation


def steady(c: Context, nodes: Sequence[typed.Expr | typed.Lambda], expr: s.Node) -> None:
    """Refuses operands that change what an operand before them has borrowed. Places do not count: they are sought last."""
    for i, node in enumerate(nodes[:-1]):
        used = () if isinstance(node, typed.Lambda) else borrowed(node)
        if used and any(overlap(u, w) for later in nodes[i + 1 :] for w in changed(c, later) for u in used):
            message = f"operand {i + 1} is still in use when a later one changes it"
            raise c.error(
                "lang-operand-order",
                message,
                expr.span,
                "bind what changes it with `let` in a statement before",
            )


def changed(c: Context, node: typed.Expr | typed.Lambda | typed.Counted) -> Iterator[Path]:
    """The places that evaluating `node` changes."""
    match node:
        case typed.Apply(_, name, (place_, *_), _) if OPERATIONS[name].mutates is not None:
            assert not isinstance(place_, typed.Lambda)  # noqa: S101 - the checker made it
            found = [place_]
        case typed.Call(_, function, _, args, _):
            found = [arg for arg, param in zip(args, c.fns[function].params, strict=True) if param.ref]
        case _:
            found = []
    yield from (path for path in map(path_of, found) if path is not None)
    for inner in operands(node):
        yield from changed(c, inner)
