"""The scalar functions of SQL, in one table: names, operands, and the expression of the operator language that each is.

A function is *strict*, as in SQL, if its entry says nothing else: it is none where an operand is none, and what it makes is made
of operands that are there. What is no single operation is a function of the namespace `cql` (`templates/functions.river`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from frontends.sql.decimals import DIGITS, decimal_named, made
from frontends.sql.time_formats import named
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Kind = Literal["text", "int", "float", "number", "time", "instant", "list", "any", "pattern", "flag g"]
"""What an operand is: `float` any number, as one; `number` any number, as it is; `pattern` a text that is written out;
`flag g` the text 'g'; `instant` a number of seconds, or a text.
"""

Parts = tuple[s.Expr, ...]


@frozen
class SqlFunction:
    """A function: its names (the first is its own), what it takes, and what it is.

    `make` gets the operands and the type of the first. The last `optional` operands may be left out.
    """

    names: tuple[str, ...]
    takes: tuple[Kind, ...]
    make: Callable[[Parts, t.Type], s.Expr]
    optional: int = 0

    @property
    def signature(self) -> str:
        """How it is called, for people."""
        least = len(self.takes) - self.optional
        shown = ", ".join(self.takes[:least])
        for i, kind in enumerate(self.takes[least:]):
            shown += f"[{', ' if least + i else ''}{kind}"
        return f"`{self.names[0]}({shown}{']' * self.optional})`"


def _is(operation: str) -> Callable[[Parts, t.Type], s.Expr]:
    """An operation of the operator language."""
    return lambda parts, _type: s.Call(operation, parts)


def _own(name: str, *defaults: s.Expr) -> Callable[[Parts, t.Type], s.Expr]:
    """A function of the namespace `cql`; `defaults` stand for operands that are left out."""

    def make(parts: Parts, _type: t.Type) -> s.Expr:
        given = defaults[len(parts) - 1 :] if defaults else ()
        return s.Call(f"cql.{name}", (*parts, *given))

    return make


def _whole(operation: str) -> Callable[[Parts, t.Type], s.Expr]:
    """An operation that changes no whole number; of a decimal it is a float."""

    def make(parts: Parts, type_: t.Type) -> s.Expr:
        return parts[0] if type_ in t.INTEGERS else s.Call(operation, _real(parts, type_))

    return make


def _real(parts: Parts, type_: t.Type) -> Parts:
    """A number that is not whole as a float."""
    return (s.Call("f64", parts[:1]),) if isinstance(type_, t.Decimal) else parts


def _substring(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("cql.substring" if len(parts) == 3 else "cql.substring_from", parts)


def _position(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Binary("+", s.Call("find", parts), s.Int(1))


def _round(parts: Parts, type_: t.Type) -> s.Expr:
    match parts, type_:
        case (value, s.Int(digits)), t.Decimal(precision, scale):  # exactly
            kind = t.Decimal(min(precision - scale + digits + 1, DIGITS), digits)
            return value if digits >= scale else made(value, type_, kind) or value
        case _:
            pass
    if len(parts) == 2:
        return s.Call("cql.round_to", (s.Call("f64", parts[:1]) if type_ != t.F64 else parts[0], parts[1]))
    return _whole("round")(parts, type_)


def _trunc(parts: Parts, type_: t.Type) -> s.Expr:
    if len(parts) == 2:
        return s.Call("cql.trunc_to", (s.Call("f64", parts[:1]) if type_ != t.F64 else parts[0], parts[1]))
    return _whole("trunc")(parts, type_)


def _sign(parts: Parts, type_: t.Type) -> s.Expr:
    if type_ in t.INTEGERS:
        return s.Call("cql.whole_sign_of", parts)
    return s.Call("cql.sign_of", _real(parts, type_))


def _matches(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("re_test", (s.Call("regex", (parts[1],)), parts[0]))


def _replaced(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("re_replace", (s.Call("regex", (parts[1],)), parts[0], parts[2]))


def _extracted(parts: Parts, _type: t.Type) -> s.Expr:
    found = s.Call("re_strs", (s.Call("regex", (parts[1],)), parts[0]))
    return s.Call("get", (found, parts[2] if len(parts) == 3 else s.Int(0)))


def _logarithm(parts: Parts, _type: t.Type) -> s.Expr:
    if len(parts) == 1:
        return s.Call("log10", parts)
    return s.Call("div.trap", (s.Call("log", (parts[1],)), s.Call("log", (parts[0],))))


def _times(factor: float) -> Callable[[Parts, t.Type], s.Expr]:
    return lambda parts, _type: s.Binary("*", parts[0], s.Float(factor))


def _seconds_of(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("div.floor", (s.Call("micros", parts), s.Int(1_000_000)))


def _millis_of(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("div.floor", (s.Call("micros", parts), s.Int(1_000)))


def _time_of_ticks(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("cql.time_of_ticks", (parts[0], parts[1] if len(parts) == 2 else s.Int(3)))


def _octets(parts: Parts, _type: t.Type) -> s.Expr:
    return s.Call("len", (s.Call("encode", parts),))


def _time_of_seconds(parts: Parts, type_: t.Type) -> s.Expr:
    if type_ == t.STRING:
        return s.Call("cql.time_of", parts)
    if type_ in t.INTEGERS:
        return s.Call("time", (s.Binary("*", s.Call("i64", parts), s.Int(1_000_000)),))
    micros = s.Binary("*", s.Call("f64", parts), s.Float(1e6))
    return s.Call("time", (s.Call("i64", (s.Call("round", (micros,)),)),))


_SPACE = s.String(" ")

_TABLE = (
    # what a query that stands for a value is (its name is nobody's to write)
    SqlFunction(("one row",), ("int",), _own("one_row")),
    # texts
    SqlFunction(("length", "len", "char_length", "character_length"), ("text",), _is("len")),
    SqlFunction(("octet_length",), ("text",), _octets),
    SqlFunction(("lower", "lcase"), ("text",), _is("lower")),
    SqlFunction(("upper", "ucase"), ("text",), _is("upper")),
    SqlFunction(("trim", "btrim"), ("text", "text"), _own("trim_of", _SPACE), 1),
    SqlFunction(("ltrim",), ("text", "text"), _own("ltrim", _SPACE), 1),
    SqlFunction(("rtrim",), ("text", "text"), _own("rtrim", _SPACE), 1),
    SqlFunction(("substring", "substr"), ("text", "int", "int"), _substring, 1),
    SqlFunction(("left",), ("text", "int"), _own("left")),
    SqlFunction(("right",), ("text", "int"), _own("right")),
    SqlFunction(("lpad",), ("text", "int", "text"), _own("lpad", _SPACE, _SPACE), 1),
    SqlFunction(("rpad",), ("text", "int", "text"), _own("rpad", _SPACE, _SPACE), 1),
    SqlFunction(("repeat",), ("text", "int"), _own("repeat")),
    SqlFunction(("reverse",), ("text",), _is("reverse")),
    SqlFunction(("replace",), ("text", "text", "text"), _is("replace")),
    SqlFunction(("split_part",), ("text", "text", "int"), _own("split_part")),
    SqlFunction(("split_index",), ("text", "text", "int"), _is("cql.split_index")),
    SqlFunction(("initcap",), ("text",), _is("cql.initcap")),
    SqlFunction(("regexp_extract", "regexp_substr"), ("text", "pattern", "int"), _extracted, 1),
    SqlFunction(("position", "strpos", "instr"), ("text", "text"), _position),
    SqlFunction(("starts_with",), ("text", "text"), _is("starts_with")),
    SqlFunction(("ends_with",), ("text", "text"), _is("ends_with")),
    SqlFunction(("contains",), ("text", "text"), _is("contains")),
    SqlFunction(("ascii",), ("text",), _own("ascii")),
    SqlFunction(("chr",), ("int",), lambda parts, _type: s.Call("char", (s.Call("i32", parts),))),
    SqlFunction(("regexp_like", "regexp_matches"), ("text", "pattern"), _matches),
    SqlFunction(("regexp_replace_all",), ("text", "pattern", "text"), _replaced),
    SqlFunction(("regexp_replace",), ("text", "pattern", "text", "flag g"), _replaced),
    SqlFunction(("cardinality", "array_length"), ("list",), _is("len")),
    SqlFunction(("split", "string_split", "string_to_array"), ("text", "text"), _is("split")),
    SqlFunction(("array_to_string", "array_join"), ("list", "text"), _is("join")),
    # numbers
    SqlFunction(("abs",), ("number",), _is("abs")),
    SqlFunction(("sign",), ("number",), _sign),
    SqlFunction(("floor",), ("number",), _whole("floor")),
    SqlFunction(("ceil", "ceiling"), ("number",), _whole("ceil")),
    SqlFunction(("trunc", "truncate"), ("number", "int"), _trunc, 1),
    SqlFunction(("round",), ("number", "int"), _round, 1),
    SqlFunction(("mod",), ("number", "number"), _is("rem.trunc")),
    SqlFunction(("power", "pow"), ("float", "float"), _is("pow")),
    SqlFunction(("sqrt",), ("float",), _is("sqrt")),
    SqlFunction(("exp",), ("float",), _is("exp")),
    SqlFunction(("ln",), ("float",), _is("log")),
    SqlFunction(("log10",), ("float",), _is("log10")),
    SqlFunction(("log",), ("float", "float"), _logarithm, 1),
    SqlFunction(("degrees",), ("float",), _times(57.29577951308232)),
    SqlFunction(("radians",), ("float",), _times(0.017453292519943295)),
    SqlFunction(("log2",), ("float",), _is("log2")),
    SqlFunction(("sin",), ("float",), _is("sin")),
    SqlFunction(("cos",), ("float",), _is("cos")),
    SqlFunction(("tan",), ("float",), _is("tan")),
    SqlFunction(("asin",), ("float",), _is("asin")),
    SqlFunction(("acos",), ("float",), _is("acos")),
    SqlFunction(("atan",), ("float",), _is("atan")),
    SqlFunction(("atan2",), ("float", "float"), _is("atan2")),
    SqlFunction(("pi",), (), lambda _parts, _type: s.Float(3.141592653589793)),
    # times, in UTC
    SqlFunction(("to_timestamp", "from_unixtime"), ("instant",), _time_of_seconds),
    SqlFunction(("to_timestamp_ltz",), ("int", "int"), _time_of_ticks, 1),
    SqlFunction(("unix_timestamp", "epoch_seconds"), ("time",), _seconds_of),
    SqlFunction(("epoch",), ("time",), lambda parts, _type: FIELDS["epoch"](parts[0])),
    SqlFunction(("epoch_ms",), ("time",), _millis_of),
    SqlFunction(("last_day",), ("time",), _is("cql.last_day")),
    SqlFunction(("dayname",), ("time",), lambda parts, _type: named(parts[0], "%A")),
    SqlFunction(("monthname",), ("time",), lambda parts, _type: named(parts[0], "%B")),
    SqlFunction(("dayofyear",), ("time",), _is("yearday")),
    SqlFunction(("dayofmonth",), ("time",), _is("day")),
    *(
        SqlFunction((name,), ("time",), _is(name))
        for name in ("year", "month", "day", "hour", "minute", "second")
    ),
    SqlFunction(("quarter",), ("time",), _own("quarter")),
    SqlFunction(("week",), ("time",), _own("week")),
)

FUNCTIONS: Mapping[str, SqlFunction] = MappingProxyType({name: f for f in _TABLE for name in f.names})
"""The functions by each of their names, in small letters."""

UNITS: Mapping[str, int] = MappingProxyType(
    {
        "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
        "day": 86_400_000_000, "week": 604_800_000_000,
    }
)  # fmt: skip
"""Units of lengths of time, in microseconds."""

SEVERAL = frozenset(
    {"coalesce", "ifnull", "isnull", "nvl", "greatest", "least", "nullif", "concat", "concat_ws"}
)
"""Functions whose operands are of one type, whichever it is, and which are not strict."""

_DAY = 86_400_000_000

FIELDS: Mapping[str, Callable[[s.Expr], s.Expr]] = MappingProxyType(
    {
        **{name: lambda at, name=name: s.Call(name, (at,)) for name in ("year", "month", "day", "hour", "minute", "second")},
        "quarter": lambda at: s.Call("cql.quarter", (at,)),
        "week": lambda at: s.Call("cql.week", (at,)),
        "isodow": lambda at: s.Call("weekday", (at,)),
        "dow": lambda at: s.Call("rem.trunc", (s.Call("weekday", (at,)), s.Int(7))),
        "doy": lambda at: s.Call("yearday", (at,)),
        "milliseconds": lambda at: s.Call("div.trunc", (s.Call("cql.second_micros", (at,)), s.Int(1_000))),
        "microseconds": lambda at: s.Call("cql.second_micros", (at,)),
        "epoch": lambda at: s.Binary("/", s.Call("f64", (s.Call("micros", (at,)),)), s.Float(1e6)),
    }
)  # fmt: skip
"""What `extract(... from t)` may ask for."""

TRUNCATED: Mapping[str, Callable[[s.Expr], s.Expr]] = MappingProxyType(
    {
        **{
            name: lambda at, size=size, origin=origin: s.Call("cql.truncated", (at, s.Int(size), s.Int(origin)))
            for name, size, origin in (
                ("milliseconds", 1_000, 0), ("second", 1_000_000, 0), ("minute", 60_000_000, 0),
                ("hour", 3_600_000_000, 0), ("day", _DAY, 0), ("week", 7 * _DAY, 4 * _DAY),
            )
        },
        "month": lambda at: s.Call("cql.month_begin", (at,)),
        "quarter": lambda at: s.Call("cql.quarter_begin", (at,)),
        "year": lambda at: s.Call("cql.year_begin", (at,)),
    }
)  # fmt: skip
"""What `date_trunc('...', t)` may cut a time to. Weeks begin on Monday: 1970-01-05 is one."""

TYPES: Mapping[str, t.Type] = MappingProxyType(
    {
        **dict.fromkeys(
            ("int", "integer", "bigint", "smallint", "tinyint", "int2", "int4", "int8", "long", "i64"), t.I64
        ),
        **dict.fromkeys(("float", "double", "doubleprecision", "real", "float4", "float8", "f64"), t.F64),
        **dict.fromkeys(
            ("string", "text", "varchar", "nvarchar", "char", "character", "uuid", "json", "jsonb"), t.STRING
        ),
        **dict.fromkeys(("bool", "boolean"), t.BOOL),
        **dict.fromkeys(("time", "timestamp", "timestamptz", "timestamp_ltz", "datetime"), t.TIME),
    }
)
"""What `cast` casts to, and columns may be of, beside `decimal(p, s)` and dates."""

SIZED = frozenset(name for name, kind in TYPES.items() if name != "time" and kind != t.BOOL)
"""Types with a number behind them: of texts and times all is kept, numbers are as wide as they are."""


def type_named(name: str) -> t.Type | None:
    """The type that a text such as `int` or `decimal(10, 2)` names, or None."""
    plain, _, sizes = name.lower().replace(" ", "").partition("(")
    if plain in ("decimal", "numeric"):
        return decimal_named(name)
    if sizes and plain not in SIZED:
        return None
    return TYPES.get(plain)


def cast_of(value: s.Expr, kind: t.Type, type_: t.Type) -> s.Expr | None:
    """A value of `kind`, which is there, as a `type_`; None if there is no such conversion."""
    if kind == type_:
        return value
    numbers = kind in t.INTEGERS or kind in t.FLOATS or isinstance(kind, t.Decimal)
    match type_:
        case t.STRING:
            return s.Call("string", (value,))
        case t.Decimal():
            return made(value, kind, type_)
        case t.I64 | t.F64 if numbers:
            return s.Call("i64" if type_ == t.I64 else "f64", (value,))
        case t.I64 | t.F64 if kind == t.BOOL:
            one, zero = (s.Int(1), s.Int(0)) if type_ == t.I64 else (s.Float(1.0), s.Float(0.0))
            return s.IfExpr(value, one, zero)
        case t.BOOL if kind in t.INTEGERS:
            return s.Binary("!=", value, s.Int(0))
        case t.I64 | t.F64 | t.BOOL | t.TIME if kind == t.STRING:
            name = {t.I64: "int_of", t.F64: "float_of", t.BOOL: "bool_of", t.TIME: "time_of"}[type_]
            return s.Call(f"cql.{name}", (value,))
        case _:
            return None
