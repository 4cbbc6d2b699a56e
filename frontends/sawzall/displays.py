"""Values in braces: arrays, tuples and maps take their type from what is wanted of them, or from what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.types import kept_name, spelled
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sawzall.expressions import Expressions
    from river.source import Span


def composite(expr: a.Expr) -> bool:
    """Whether `expr` is values in braces, whose type is that of what they stand beside."""
    return isinstance(expr, s.ListValue | s.MapValue | s.RecordValue)


def array_value(
    checker: Expressions, items: tuple[s.Expr, ...], wanted: t.Type | None, span: Span | None
) -> z.Expr:
    """`{a, b}`: an array, or the values of a record in order; of different types a record without names."""
    match wanted:
        case t.List(item):
            return z.ArrayOf(wanted, tuple(checker.check(i, item) for i in items), span=span)
        case t.Record(fields):
            if len(items) != len(fields):
                counts = (
                    f"{n} {noun}{'s' * (n != 1)}"
                    for n, noun in ((len(fields), "field"), (len(items), "value"))
                )
                message = f"the record has {', '.join(counts)} given"
                raise checker.error("sawzall-type-mismatch", message, span, f"it is `{spelled(wanted)}`")
            values = tuple(checker.check(i, type_) for i, (_, type_) in zip(items, fields, strict=True))
            return z.RecordOf(wanted, values, span=span)
        case t.STRING | t.BYTES if not items:
            return z.Constant(wanted, "" if wanted == t.STRING else b"", span=span)
        case t.STRING | t.BYTES:
            numbers = z.ArrayOf(t.List(t.I64), tuple(checker.check(i, t.I64) for i in items), span=span)
            if wanted == t.BYTES:
                return z.Apply(wanted, "bytes of items", (numbers,), span=span)
            how = z.Constant(t.STRING, "unicode", span=span)
            return z.Apply(wanted, "string:?:text", (numbers, how), span=span)
        case t.Map() if not items:
            message = "`{}` is an empty array, not a map"
            raise checker.error("sawzall-type-mismatch", message, span, "an empty map is `{:}`")
        case _:
            if not items:
                hint = "state it: `x: array of int = {};`"
                raise checker.error("sawzall-needs-type", "the type of `{}` is not known here", span, hint)
            plain = [checker.infer(i) for i in items if not composite(i)]
            inner = (
                found for i in items if (found := checker.tried(lambda i=i: checker.infer(i))) is not None
            )
            item = plain[0].type if plain else next((found.type for found in inner), None)
            if item is not None:
                alike = checker.tried(
                    lambda: z.ArrayOf(t.List(item), tuple(checker.check(i, item) for i in items), span=span)
                )
                if alike is not None:
                    return alike
            nodes = tuple(map(checker.infer, items))
            type_ = t.Record(tuple((f"_{i}", n.type) for i, n in enumerate(nodes)))
            return z.RecordOf(type_, nodes, span=span)


def record_value(
    checker: Expressions, items: tuple[s.FieldValueItem, ...], wanted: t.Type | None, expr: s.RecordValue
) -> z.Expr:
    """`{a: v}`: a record; where a map is wanted, `a` is an expression."""
    given = [item for item in items if isinstance(item, s.FieldValue)]
    names = [item.name for item in given]
    variables = all(
        (known := checker.names.known(name)) is not None and known.what == "variable" for name in names
    )
    if isinstance(wanted, t.Map) or (variables and not isinstance(wanted, t.Record)):
        return map_value(
            checker, tuple((s.Name(i.name, span=i.span), i.value) for i in given), wanted, expr.span
        )
    names = [kept_name(name) for name in names]
    if len(set(names)) < len(names):
        raise checker.error("sawzall-duplicate", "a field is given twice", expr.span)
    if not isinstance(wanted, t.Record):
        nodes = tuple(checker.infer(item.value) for item in given)
        type_ = t.Record(tuple((name, node.type) for name, node in zip(names, nodes, strict=True)))
        return z.RecordOf(type_, nodes, span=expr.span)
    if sorted(names) != sorted(name for name, _ in wanted.fields):
        shown = ", ".join(f"`{name}`" for name, _ in wanted.fields)
        raise checker.error(
            "sawzall-type-mismatch", f"the record has the fields {shown}, each once", expr.span
        )
    values = {item.name: item.value for item in given}
    ordered = tuple(checker.check(values[name], type_) for name, type_ in wanted.fields)
    return z.RecordOf(wanted, ordered, span=expr.span)


def map_value(
    checker: Expressions, items: tuple[tuple[s.Expr, s.Expr], ...], wanted: t.Type | None, span: Span | None
) -> z.Expr:
    """`{k: v}`: a map."""
    if isinstance(wanted, t.Map):
        pairs = tuple((checker.check(k, wanted.key), checker.check(v, wanted.value)) for k, v in items)
        return z.MapOf(wanted, pairs, span=span)
    if not items:
        hint = "state it: `x: map [string] of int = {:};`"
        raise checker.error("sawzall-needs-type", "the type of `{:}` is not known here", span, hint)
    key, value = checker.infer(items[0][0]).type, checker.infer(items[0][1]).type
    if not t.is_key(key):
        raise checker.error("sawzall-key-type", f"`{spelled(key)}` cannot be the key of a map", span)
    return map_value(checker, items, t.Map(key, value), span)
