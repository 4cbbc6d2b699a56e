"""Expressions of the operator language as Spark's SQL, where Spark's mean the same, for every value and setting.

What may trap has no such form: Spark would not compute a column that nobody reads, so the trap would come or not. Nor has what
Spark sees otherwise, unless the text below says River's meaning in Spark's words: floats compare by IEEE (Spark's NaN is
equal to itself and the greatest), and whole numbers wrap, with `spark.sql.ansi.enabled` and without, so sums are made of halves.

Paper: River §2.4 (the platform is chosen late).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS, traps_of

if TYPE_CHECKING:
    from collections.abc import Sequence


_SCALARS: Final[dict[t.Type, str]] = {
    t.BOOL: "boolean",
    t.I32: "int",
    t.I64: "bigint",
    t.F64: "double",
    t.STRING: "string",
    t.TIME: "timestamp",
}

LONGEST: Final = 1 << 14
"""Characters of an expression: texts of operands are repeated in that of wrapping sums."""

SUM: Final = "+%"
"""The operation by which whole numbers are summed."""

_LOW: Final = 0xFFFFFFFF  # the lower half of a whole number
_FACTOR: Final = 1 << 30  # what a half may be multiplied by without leaving 64 bits


def spelled(type_: t.Type) -> str | None:
    """Spark's name of a type whose values are the same there, or those and none; None if Spark has no such type."""
    match type_:
        case t.Optional(inner):
            return spelled(inner)
        case t.Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case _:
            return _SCALARS.get(type_)


def scalar(type_: t.Type) -> bool:
    """Whether Spark has all values of a type, or none and those."""
    return spelled(type_) is not None


def name(column: str) -> str:
    """A column's name as Spark's expressions have it."""
    return f"`{column.replace('`', '``')}`"


def literal(type_: t.Type, value: Any) -> str | None:
    """A constant; None if Spark has no such type."""
    kind = spelled(type_)
    if kind is None:
        return None
    if value is None:
        return f"cast(null as {kind})"
    match type_.inner if isinstance(type_, t.Optional) else type_:
        case t.STRING:
            return text(value)
        case t.BOOL:
            return str(value).lower()
        case t.TIME:
            return f"timestamp_micros(cast('{value}' as bigint))"
        case t.Decimal(_, scale):
            digits = f"{abs(value):0{scale + 1}}"
            at = len(digits) - scale
            shown = f"{'-' if value < 0 else ''}{digits[:at]}{'.' if scale else ''}{digits[at:]}"
            return f"cast('{shown}' as {kind})"
        case _:
            return f"cast('{value}' as {kind})"


def text(value: str) -> str:
    """A text, whatever the setting by which backslashes mean something or not."""
    if value.isascii() and value.isprintable() and "'" not in value and "\\" not in value:
        return f"'{value}'"
    return f"cast(X'{value.encode().hex()}' as string)"


def apply(expr: typed.Apply, types: Sequence[t.Type], args: Sequence[str]) -> str | None:
    """The result of an operation on operands of these types and texts; None if Spark's SQL does not have it."""
    if not all(map(scalar, (*types, expr.type))) or sum(map(len, args)) > LONGEST:
        return None
    if traps_of(OPERATIONS[expr.operation], tuple(types), expr.type):
        return None
    match expr:
        case typed.Apply(t.I64, "*%", (_, typed.Literal(_, factor))):
            return _times(args[0], factor)
        case typed.Apply(t.I64, "*%", (typed.Literal(_, factor), _)):
            return _times(args[1], factor)
        case _:
            if not _comparable(types):
                return None
            of = kind_of(types[0])
            written = (
                text for (name, kinds), text in _WRITTEN.items() if name == expr.operation and of in kinds
            )
            found = next(written, None)
            return None if found is None else found.format(*args)


def _comparable(types: Sequence[t.Type]) -> bool:
    """Whether Spark's common type of all decimals among these has all their digits."""
    inner = (type_.inner if isinstance(type_, t.Optional) else type_ for type_ in types)
    exact = [type_ for type_ in inner if isinstance(type_, t.Decimal)]
    whole = max((each.precision - each.scale for each in exact), default=0)
    return whole + max((each.scale for each in exact), default=0) <= _DECIMAL.precision


def _times(value: str, factor: int) -> str | None:
    """A whole number times a constant, wrapping; None for large ones."""
    if abs(factor) >= _FACTOR:
        return None
    high = f"shiftleft(shiftright({value}, 32) * {factor}, 32)"
    return wrapped(high, f"(({value} & {_LOW}) * {factor})")


def wrapped(a: str, b: str, carry: int = 0) -> str:
    """The sum of two whole numbers and a carry, modulo 2^64: no step leaves 64 bits."""
    low = f"(({a} & {_LOW}) + ({b} & {_LOW}) + {carry})"
    high = f"(shiftrightunsigned({a}, 32) + shiftrightunsigned({b}, 32) + shiftright({low}, 32))"
    return f"(shiftleft({high}, 32) | ({low} & {_LOW}))"


def summed(value: str) -> str:
    """The sum of a whole number of some rows modulo 2^64: that of upper halves, with their signs, and that of lower ones."""
    high, low = f"sum(shiftright({value}, 32))", f"sum({value} & {_LOW})"  # of which either stays in 64 bits
    carried = f"(({high} & {_LOW}) + shiftrightunsigned({low}, 32))"
    return f"(shiftleft({carried}, 32) | ({low} & {_LOW}))"


COUNT: Final = "coalesce(cast(sum(1e0) as bigint), 0)"
"""How many rows there are, never null. As whole numbers, Spark would look at each addition for an overflow, if it is told to
(`spark.sql.ansi.enabled`), by a call and two objects for each row. Floats add up ones exactly as far as 2^53: in a hundred days,
if there come a billion rows a second."""


_ZERO: Final = "cast('0' as bigint)"
_DECIMAL: Final = t.Decimal(38, 0)  # in the table below: any


def kind_of(type_: t.Type) -> t.Type:
    """The type for which the table says what an operation is: decimals are all alike."""
    match type_:
        case t.Optional(inner):
            return t.Optional(kind_of(inner))
        case t.Decimal():
            return _DECIMAL
        case _:
            return type_


_PLAIN: Final = frozenset(
    {t.BOOL, t.I32, t.I64, t.STRING, t.TIME, _DECIMAL}
)  # what compares alike there and here
KEYS: Final = _PLAIN  # and keys of these are grouped alike, and shown as they came
_SAME: Final = _PLAIN | {t.F64}  # by the total order, floats do, too
_MAYBE: Final = frozenset(t.Optional(type_) for type_ in _SAME)
_TRUTH: Final = frozenset({t.Optional(t.BOOL)})
_FLOAT: Final = frozenset({t.F64})
_WHOLE: Final = frozenset({t.I64})
_BOOL: Final = frozenset({t.BOOL})
_TEXT: Final = frozenset({t.STRING})
_ORDER: Final = ("<", "<=", ">", ">=")

_WRITTEN: Final[dict[tuple[str, frozenset[t.Type]], str]] = {
    ("==", _PLAIN): "({0} = {1})",
    ("!=", _PLAIN): "({0} <> {1})",
    **{(word, _PLAIN): f"({{0}} {word} {{1}})" for word in _ORDER},
    ("==", _FLOAT): "({0} = {1} and not isnan({0}))",
    ("!=", _FLOAT): "({0} <> {1} or isnan({0}))",
    ("<", _FLOAT): "({0} < {1} and not isnan({1}))",
    ("<=", _FLOAT): "({0} <= {1} and not isnan({1}))",
    (">", _FLOAT): "({0} > {1} and not isnan({0}))",
    (">=", _FLOAT): "({0} >= {1} and not isnan({0}))",
    ("same", _SAME): "({0} = {1})",
    ("eq3", _MAYBE): "({0} = {1})",
    ("ne3", _MAYBE): "({0} <> {1})",
    **{
        (name, _MAYBE): f"({{0}} {word} {{1}})"
        for name, word in zip(("lt3", "le3", "gt3", "ge3"), _ORDER, strict=True)
    },
    ("not", _BOOL): "(not {0})",
    ("and3", _TRUTH): "({0} and {1})",
    ("or3", _TRUTH): "({0} or {1})",
    ("not3", _TRUTH): "(not {0})",
    ("is_true", _TRUTH): "coalesce({0}, false)",
    ("is_none", _MAYBE): "({0} is null)",
    ("coalesce", _MAYBE): "coalesce({0}, {1})",
    ("+%", _WHOLE): wrapped("{0}", "{1}"),
    ("-%", _WHOLE): wrapped("{0}", "(~ {1})", 1),
    ("neg%", _WHOLE): wrapped(_ZERO, "(~ {0})", 1),
    ("neg_wrap", _WHOLE): wrapped(_ZERO, "(~ {0})", 1),
    **{(word, _WHOLE): f"({{0}} {word} {{1}})" for word in ("&", "|", "^")},
    ("~", _WHOLE): "(~ {0})",
    ("min", _PLAIN - _BOOL): "least({0}, {1})",
    ("max", _PLAIN - _BOOL): "greatest({0}, {1})",
    ("f64", _WHOLE): "cast({0} as double)",
    ("time", _WHOLE): "timestamp_micros({0})",
    **{(name, frozenset({t.TIME})): "unix_micros({0})" for name in ("i64", "micros")},
    **{(word, _FLOAT): f"({{0}} {word} {{1}})" for word in ("+", "-", "*")},
    ("neg", _FLOAT): "(- {0})",
    ("+", _TEXT): "concat({0}, {1})",
    ("len", _TEXT): "cast(length({0}) as bigint)",
}
