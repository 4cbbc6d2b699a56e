"""Declared types and functions, and the arrow from type expressions to types."""

from __future__ import annotations

from collections import ChainMap
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from river.classes import field, frozen
from river.diagnostics import Diagnostic, Note, Rejected, closest
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.source import Span

ALIASES: Mapping[str, t.Type] = MappingProxyType({
    "bit": t.I32,
    "char": t.I32,
    "complex": t.Record((("re", t.F32), ("im", t.F32))),
    "fingerprint": t.U64,
})  # fmt: skip
GENERIC = {"list": 1, "deque": 1, "bag": 1, "map": 2, "omap": 2, "array": 2, "decimal": 2}
LARGEST_ARRAY = 1 << 24


@frozen
class Declared:
    """A declared type: parameters and what they make."""

    params: tuple[str, ...]
    type: s.TypeExpr
    span: Span | None = field(default=None, eq=False, repr=False)


@frozen(slots=False, eq=False)
class Scope:
    """What operators may name besides their own: declared types and library functions."""

    types: Mapping[str, Declared] = field(factory=dict[str, Declared])
    fns: Mapping[str, s.Fn] = field(factory=dict[str, s.Fn])
    resolved: dict[tuple[str, tuple[t.Type, ...]], t.Type | Rejected] = field(
        factory=dict[tuple[str, tuple[t.Type, ...]], "t.Type | Rejected"], init=False, repr=False
    )
    """What declared types are, or why not, by name and arguments, as far as somebody has asked."""

    def extended(self, types: Mapping[str, Declared], fns: Iterable[s.Fn] = ()) -> Scope:
        """This scope with further declarations, which win."""
        return Scope(
            {**self.types, **types}, ChainMap({fn.name: fn for fn in fns}, cast("dict[str, s.Fn]", self.fns))
        )


EMPTY = Scope()


def reject(code: str, message: str, span: Span | None, help: str | None = None, *notes: Note) -> Rejected:
    """A Rejected of one error."""
    return Rejected([Diagnostic(code, message, span, help=help, notes=notes)])


def resolve(expr: s.TypeExpr, scope: Scope = EMPTY) -> t.Type:
    """The type that `expr` denotes.

    Raises: Rejected with lang-unknown-type, lang-type-arguments, lang-recursive-type, lang-nested-optional, lang-key-type,
    lang-duplicate-field, lang-hole, lang-type-size.
    """
    return _Resolver(scope, {}, ()).resolve(expr)


def integer(expr: s.Expr | s.TypeExpr) -> int | None:
    """The value of a constant integer expression of literals, + - * and div.trunc; None if it is none."""
    match expr:
        case s.Int(value):
            return value
        case s.Unary("-", value):
            inner = integer(value)
            return None if inner is None else -inner
        case s.Binary(op, left, right) if op in "+-*":
            a, b = integer(left), integer(right)
            if a is None or b is None:
                return None
            return a + b if op == "+" else a - b if op == "-" else a * b
        case s.Call("div.trunc" | "rem.trunc" | "min" | "max" as name, (left, right)):
            a, b = _argument(left), _argument(right)
            if a is None or b is None or ("trunc" in name and b == 0):
                return None
            quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return {"div.trunc": quotient, "rem.trunc": a - quotient * b, "min": min(a, b), "max": max(a, b)}[
                name
            ]
        case _:
            return None


def _argument(expr: s.Argument) -> int | None:
    return None if isinstance(expr, s.Lambda) else integer(expr)


@frozen
class _Resolver:
    scope: Scope
    params: Mapping[str, t.Type]
    open: tuple[str, ...]

    def resolve(self, expr: s.TypeExpr) -> t.Type:
        type_ = self._found(expr)
        if type(type_) is not t.Primitive and (excess := t.excess(type_)):
            raise reject("lang-type-size", excess, expr.span)
        return type_

    def _found(self, expr: s.TypeExpr) -> t.Type:
        match expr:
            case s.OptionalType(inner):
                type_ = self.resolve(inner)
                if isinstance(type_, t.Optional):
                    raise reject(
                        "lang-nested-optional", "an optional of an optional has no meaning", expr.span
                    )
                return t.Optional(type_)
            case s.TupleType(items):
                return t.Tuple(tuple(self.resolve(item) for item in items)) if items else t.UNIT
            case s.RecordType(fields):
                return self._record(fields)
            case s.TypeName():
                return self._name(expr)
            case s.FunctionType() | s.HoleType():
                raise reject("lang-hole", "holes and function types stand only in templates", expr.span)

    def _record(self, fields: tuple[s.FieldTypeItem, ...]) -> t.Type:
        found: dict[str, t.Type] = {}
        for item in fields:
            if not isinstance(item, s.FieldType):
                raise reject("lang-hole", "holes stand only in templates", item.span)
            if item.name in found:
                raise reject("lang-duplicate-field", f"field `{item.name}` is declared twice", item.span)
            found[item.name] = self.resolve(item.type)
        return t.Record(tuple(found.items()))

    def _name(self, expr: s.TypeName) -> t.Type:
        name, args = expr.name, expr.args
        if name in self.params:
            return self.params[name]
        if name in self.scope.types:
            return self._declared(expr, self.scope.types[name])
        wanted = GENERIC.get(name, 0 if name in t.PRIMITIVES or name in ALIASES else None)
        if wanted is None:
            known = [*t.PRIMITIVES, *GENERIC, *ALIASES, *self.scope.types, *self.params]
            raise reject("lang-unknown-type", f"unknown type `{name}`", expr.span, closest(name, known))
        if len(args) != wanted:
            raise self._arity(expr, wanted)
        if wanted == 0:
            return ALIASES.get(name) or t.Primitive(name)
        if name == "decimal":
            precision, scale = integer(args[0]), integer(args[1])
            if precision is None or scale is None or not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise reject(
                    "lang-type-arguments",
                    "`decimal` takes a precision of 1 to 38 and a scale up to it",
                    expr.span,
                )
            return t.Decimal(precision, scale)
        first = self._type(args[0])
        if name == "array":
            size = integer(args[1])
            if size is None or not 0 <= size <= LARGEST_ARRAY:
                raise reject("lang-type-arguments", "`array` takes a type and a constant size", expr.span)
            return t.Array(first, size)
        if name in ("map", "omap", "bag") and not t.is_key(first):
            raise reject("lang-key-type", f"values of this type cannot be keys of a `{name}`", args[0].span)
        match name:
            case "list":
                return t.List(first)
            case "deque":
                return t.Deque(first)
            case "bag":
                return t.Bag(first)
            case "map":
                return t.Map(first, self._type(args[1]))
            case _:
                return t.OMap(first, self._type(args[1]))

    def _declared(self, expr: s.TypeName, declared: Declared) -> t.Type:
        if expr.name in self.open:
            raise reject(
                "lang-recursive-type", f"type `{expr.name}` contains itself", declared.span or expr.span
            )
        if len(expr.args) != len(declared.params):
            raise self._arity(expr, len(declared.params))
        args = tuple(map(self._type, expr.args))
        known = self.scope.resolved.get((expr.name, args))
        if isinstance(known, Rejected):
            raise known
        if known is not None:
            return known
        if len(self.open) >= t.DEEPEST:
            message = f"types are declared by others more than {t.DEEPEST} in a row"
            raise reject("lang-type-size", message, declared.span or expr.span)
        params = dict(zip(declared.params, args, strict=True))
        try:
            found = _Resolver(self.scope, params, (*self.open, expr.name)).resolve(declared.type)
        except Rejected as rejected:
            self.scope.resolved[expr.name, args] = rejected
            raise
        self.scope.resolved[expr.name, args] = found
        return found

    def _arity(self, expr: s.TypeName, wanted: int) -> Rejected:
        message = f"`{expr.name}` takes {wanted} type argument{'s' * (wanted != 1)}, {len(expr.args)} given"
        return reject("lang-type-arguments", message, expr.span)

    def _type(self, arg: s.TypeExpr | s.Expr) -> t.Type:
        if isinstance(
            arg, s.TypeName | s.OptionalType | s.RecordType | s.TupleType | s.FunctionType | s.HoleType
        ):
            return self.resolve(arg)
        raise reject("lang-type-arguments", "a type is wanted here", arg.span)


def show(type_: t.Type) -> str:
    """The type as text, as in the IL."""
    match type_:
        case t.Primitive(name):
            return name
        case t.Decimal(precision, scale):
            return f"decimal({precision}, {scale})"
        case t.Optional(inner):
            return f"{show(inner)}?"
        case t.Record(fields):
            return "{" + ", ".join(f"{name}: {show(field)}" for name, field in fields) + "}"
        case t.Tuple(items):
            return "(" + ", ".join(map(show, items)) + ")"
        case t.Array(item, size):
            return f"array<{show(item)}, {size}>"
        case t.List(item):
            return f"list<{show(item)}>"
        case t.Deque(item):
            return f"deque<{show(item)}>"
        case t.Bag(item):
            return f"bag<{show(item)}>"
        case t.Map(key, value):
            return f"map<{show(key)}, {show(value)}>"
        case t.OMap(key, value):
            return f"omap<{show(key)}, {show(value)}>"
        case t.Function(params, result):
            return f"fn({', '.join(map(show, params))}) -> {'any' if result is None else show(result)}"


def expression(type_: t.Type) -> s.TypeExpr:
    """The type as a type expression: the way back from `resolve`."""
    match type_:
        case t.Primitive(name):
            return s.TypeName(name)
        case t.Decimal(precision, scale):
            return s.TypeName("decimal", (s.Int(precision), s.Int(scale)))
        case t.Optional(inner):
            return s.OptionalType(expression(inner))
        case t.Record(fields):
            return s.RecordType(tuple(s.FieldType(name, expression(field)) for name, field in fields))
        case t.Tuple(items):
            return s.TupleType(tuple(map(expression, items)))
        case t.Array(item, size):
            return s.TypeName("array", (expression(item), s.Int(size)))
        case t.List(item):
            return s.TypeName("list", (expression(item),))
        case t.Deque(item):
            return s.TypeName("deque", (expression(item),))
        case t.Bag(item):
            return s.TypeName("bag", (expression(item),))
        case t.Map(key, value):
            return s.TypeName("map", (expression(key), expression(value)))
        case t.OMap(key, value):
            return s.TypeName("omap", (expression(key), expression(value)))
        case t.Function(params, result):
            return s.FunctionType(tuple(map(expression, params)), expression(result or t.UNIT))
