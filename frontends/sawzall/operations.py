"""The operators and built-in functions of Sawzall: types, when a result is undefined, and the operator language's words.

The checker reads `rule`, the lowering `river`, `guard` and `optional`, the user's page the names and `doc`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from frontends.sawzall.functions import PREFIX
from frontends.sawzall.times import OWN_ZONE, ZONES
from frontends.sawzall.types import FINGERPRINT, Recursive, spelled
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t

Known = tuple[t.Type | None, ...]
"""Types of operands; None for a whole number whose type is still open."""

Signature = tuple[tuple[t.Type, ...], t.Type]
Rule = Callable[[Known], Signature | None]
Args = tuple[s.Expr, ...]
Types = tuple[t.Type, ...]


@frozen
class Operation:
    """An operation on values that are defined.

    `undefined` says why there may be no result: then `guard` is the condition for that, or `optional` says that `river`
    is none. `repeats`: `river` names an operand more than once. `zoned`: the last operand names a zone; `river` says
    `clocks(operand)` for the clocks of it.
    """

    name: str
    rule: Rule
    river: Callable[[Args, Types], s.Expr]
    doc: str
    undefined: str | None = None
    guard: Callable[[Args, Types], s.Expr] | None = None
    optional: bool = False
    repeats: bool = False
    zoned: bool = False


INTEGERS = (t.I64, t.U64)
NUMBERS = (t.I64, t.U64, t.F64)
COMPARED = (*NUMBERS, t.STRING, t.BYTES, t.TIME)
ORDERED = (*COMPARED, FINGERPRINT)
SCALARS = (t.BOOL, *NUMBERS, t.STRING, t.TIME, FINGERPRINT)


# ---------------------------------------------------------------------------------------------- rules


def _fixed(result: t.Type, *params: t.Type) -> Rule:
    def rule(types: Known) -> Signature | None:
        fits = len(types) == len(params) and all(a in (None, b) for a, b in zip(types, params, strict=True))
        return (params, result) if fits else None

    return rule


def _alike(count: int, kinds: tuple[t.Type, ...], result: t.Type | None = None) -> Rule:
    """`count` operands of one type among `kinds`; the result has it, too, or is `result`."""

    def rule(types: Known) -> Signature | None:
        type_ = next((x for x in types if x is not None), t.I64)
        fits = len(types) == count and type_ in kinds and all(x in (None, type_) for x in types)
        return ((type_,) * count, result or type_) if fits else None

    return rule


def _first_of(*rules: Rule) -> Rule:
    def rule(types: Known) -> Signature | None:
        return next((found for r in rules if (found := r(types)) is not None), None)

    return rule


def _lists(types: Known) -> Signature | None:
    match types:
        case (t.List() as a, b) | (b, t.List() as a) if b in (None, a):
            return (a, a), a
        case _:
            return None


def _equal(types: Known) -> Signature | None:
    type_ = next((x for x in types if x is not None), t.I64)
    return ((type_, type_), t.BOOL) if len(types) == 2 and all(x in (None, type_) for x in types) else None


def recursive(type_: t.Type) -> bool:
    """Whether values of a type that contains itself are in those of a type."""
    return t.contains(type_, Recursive)


def compared(value: s.Expr, type_: t.Type, depth: int = 0) -> s.Expr:
    """What is the same for equal values: -0.0 equals 0.0, and has other bytes in a value of a type that contains itself."""
    if not recursive(type_):
        return value
    part = s.Name(f"{PREFIX}same{depth}")
    match type_:
        case Recursive(_, number):
            return s.Call(f"{SAME}{number}", (value,))
        case t.List(item):
            return s.Comprehension(compared(part, item, depth + 1), (part.name,), value)
        case t.Map(_, item):
            keys = s.Call("sort", (s.Call("keys", (value,)),))
            items = s.Comprehension(compared(s.Index(value, part), item, depth + 1), (part.name,), keys)
            return s.RecordValue((s.FieldValue("keys", keys), s.FieldValue("items", items)))
        case t.Record(fields):
            named = (
                s.FieldValue(name, compared(s.Member(value, name), inner, depth)) for name, inner in fields
            )
            return s.RecordValue(tuple(named))
        case _:
            raise AssertionError(type_)  # no other type holds values of others that a program compares


def _equality(op: str) -> Callable[[tuple[s.Expr, ...], tuple[t.Type, ...]], s.Expr]:
    """`==` or `!=`; most values that are equal have the same bytes."""

    def river(args: tuple[s.Expr, ...], types: tuple[t.Type, ...]) -> s.Expr:
        if not recursive(types[0]):
            return s.Binary(op, *args)
        left, right = (compared(arg, types[0]) for arg in args)
        return s.Binary("or" if op == "==" else "and", s.Binary(op, *args), s.Binary(op, left, right))

    return river


def _any(result: t.Type, kinds: Callable[[t.Type], bool]) -> Rule:
    """One operand whose type is one of `kinds`."""

    def rule(types: Known) -> Signature | None:
        if len(types) != 1:
            return None
        type_ = types[0] or t.I64
        return ((type_,), result) if kinds(type_) else None

    return rule


def _has_length(type_: t.Type) -> bool:
    return isinstance(type_, t.List | t.Map) or type_ in (t.STRING, t.BYTES)


def _sort(types: Known) -> Signature | None:
    match types:
        case (t.List(item) as whole,) if item in (*SCALARS, t.BYTES):
            return (whole,), whole
        case _:
            return None


def _sorted_indices(types: Known) -> Signature | None:
    found = _sort(types)
    return None if found is None else (found[0], t.List(t.I64))


def _places(args: Args, _types: Types) -> s.Expr:
    """The indices of a list, sorted by its items, equal ones as they stand."""
    (whole,) = args
    at = s.Name(f"{PREFIX}place")  # no variable is called so
    every = s.Comprehension(at, (at.name,), s.Range(s.Int(0), s.Call("len", (whole,))))
    return s.Call("sort_by", (every, s.Lambda((at.name,), s.TupleValue((s.Index(whole, at), at)))))


def _filled(types: Known) -> Signature | None:
    match types:
        case (t.I64 | None, item) if item is not None:
            return (t.I64, item), t.List(item)
        case _:
            return None


def _keys(types: Known) -> Signature | None:
    match types:
        case (t.Map(key, _) as whole,):
            return (whole,), t.List(key)
        case _:
            return None


def _has_key(types: Known) -> Signature | None:
    match types:
        case (t.Map(key, _) as whole, given) if given in (None, key):
            return (whole, key), t.BOOL
        case _:
            return None


def _lookup(types: Known) -> Signature | None:
    match types:
        case (t.Map(key, value) as whole, given, default) if given in (None, key) and default in (
            None,
            value,
        ):
            return (whole, key, value), value
        case _:
            return None


# ---------------------------------------------------------------------------------------------- in River's words


def _call(name: str) -> Callable[[Args, Types], s.Expr]:
    return lambda args, _types: s.Call(name, args)


def _binary(op: str, floats: str | None = None) -> Callable[[Args, Types], s.Expr]:
    """`op` on whole numbers and others, `floats` on floats."""
    return lambda args, types: s.Binary(floats if floats and types[0] == t.F64 else op, args[0], args[1])


def _bits(op: str, bools: str) -> Callable[[Args, Types], s.Expr]:
    """`op` on whole numbers, `bools` on bools."""
    return lambda args, types: s.Binary(bools if types[0] == t.BOOL else op, args[0], args[1])


def _sum(args: Args, types: Types) -> s.Expr:
    match types[0]:
        case type_ if type_ == FINGERPRINT:
            pair = (s.FieldValue("first", args[0]), s.FieldValue("second", args[1]))
            return s.Call("hash64", (s.RecordValue(pair),))
        case t.List():
            return s.Call("concat", args)
        case t.TIME:
            return s.Call(
                "time", (s.Binary("+%", s.Call("micros", (args[0],)), s.Call("micros", (args[1],))),)
            )
        case type_ if type_ in INTEGERS:
            return s.Binary("+%", *args)
        case _:
            return s.Binary("+", *args)


def _difference(args: Args, types: Types) -> s.Expr:
    if types[0] == t.TIME:
        return s.Call("time", (s.Binary("-%", s.Call("micros", (args[0],)), s.Call("micros", (args[1],))),))
    return s.Binary("-" if types[0] == t.F64 else "-%", *args)


def _quotient(args: Args, types: Types) -> s.Expr:
    return s.Binary("/", *args) if types[0] == t.F64 else s.Call("div.trunc.wrap", args)


def _remainder(args: Args, types: Types) -> s.Expr:
    if types[0] == t.TIME:
        return s.Call("time", (s.Call("rem.trunc.wrap", tuple(s.Call("micros", (arg,)) for arg in args)),))
    return s.Call("rem.trunc.wrap", args)


def _by_zero(args: Args, types: Types) -> s.Expr:
    return s.Binary("==", s.Call("micros", (args[1],)) if types[0] == t.TIME else args[1], s.Int(0))


def _negation(args: Args, types: Types) -> s.Expr:
    return s.Unary("-" if types[0] == t.F64 else "-%", args[0])


def _absolute(args: Args, types: Types) -> s.Expr:
    if types[0] != t.I64:
        return s.Call("abs", args)
    return s.IfExpr(s.Binary("<", args[0], s.Int(0)), s.Unary("-%", args[0]), args[0])


def _itself(args: Args, _types: Types) -> s.Expr:
    return args[0]


CLOCKS = f"{PREFIX}clocks"
"""Stands for the clocks of the zone of a name until the lowering puts a constant there."""

UNKNOWN_ZONE = "there is no such time zone"


def clocks(name: s.Expr) -> s.Expr:
    """The clocks of a zone."""
    return s.Call(CLOCKS, (name,))


def _zoned(name: str, *more: s.Expr) -> Callable[[Args, Types], s.Expr]:
    """A function of the library of a time, other operands, what `more` says, and the clocks of the last operand."""
    return lambda args, _types: s.Call(f"{PREFIX}{name}", (*args[:-1], *more, clocks(args[-1])))


def _shown_by(name: str) -> Callable[[Args, Types], s.Expr]:
    """An operation on what clocks show."""
    return lambda args, _types: s.Call(name, (s.Call(f"{PREFIX}there", (args[0], clocks(args[1]))),))


def _later(months: int, days: int) -> Callable[[Args, Types], s.Expr]:
    """So many times as many months and days later."""

    def river(args: Args, _types: Types) -> s.Expr:
        at, count, zone = args
        many = (s.Int(0) if unit == 0 else s.Binary("*%", count, s.Int(unit)) for unit in (months, days))
        return s.Call(f"{PREFIX}later", (at, *many, clocks(zone)))

    return river


def _text(args: Args, types: Types) -> s.Expr:
    if types[0] == t.TIME:
        at, *zone = args
        return s.Call(f"{PREFIX}time_text", (at, clocks(zone[0] if zone else s.String(OWN_ZONE))))
    if types[0] == FINGERPRINT:
        return _joined_texts(s.String("0x"), s.Call("format", (s.String("%016x"), *args)), s.String("P"))
    if types[0] == t.F64:
        return s.Call(f"{PREFIX}float_text", args)
    return args[0] if types[0] == t.STRING else s.Call("string", args)


def _whole(name: str) -> Callable[[Args, Types], s.Expr]:
    """A conversion to i64 or u64 that always has a result."""

    def river(args: Args, types: Types) -> s.Expr:
        match types[0]:
            case t.BOOL:
                return s.IfExpr(args[0], s.Int(1), s.Int(0))
            case t.TIME:
                micros = s.Call("micros", args)
                return micros if name == "i64" else s.Call(f"{name}.wrap", (micros,))
            case type_ if type_ == FINGERPRINT:
                return args[0] if name == "u64" else s.Call(f"{name}.wrap", args)
            case type_:
                return args[0] if type_ == t.Primitive(name) else s.Call(f"{name}.wrap", args)

    return river


def _in_form(args: Args, types: Types) -> s.Expr:
    """A number in a form of C's; the type of one that is written out must be said."""
    form, number = args
    said = "f64" if types[1] == t.F64 else "i64" if types[1] == t.I64 else "u64"
    return s.Call("format", (form, s.Call(said, (number,))))


def _filled_array(args: Args, _types: Types) -> s.Expr:
    count, value = args
    return s.Comprehension(
        value, (f"{PREFIX}each",), s.Range(s.Int(0), s.Call("max", (count, s.Int(0))))
    )  # no variable is called so


def _library(name: str) -> Callable[[Args, Types], s.Expr]:
    """A function of the library."""
    return _call(f"{PREFIX}{name}")


def _extreme(name: str, op: str) -> Callable[[Args, Types], s.Expr]:
    """The operation `name` of numbers; of others the one that is before or behind the other."""

    def river(args: Args, types: Types) -> s.Expr:
        if types[0] in NUMBERS:
            return s.Call(name, args)
        return s.IfExpr(s.Binary(op, *args), *args)

    return river


_INFINITE = s.Binary("/", s.Float(1.0), s.Float(0.0))


def _size(op: str) -> Callable[[Args, Types], s.Expr]:
    """How a float without its sign compares to infinity."""
    return lambda args, _types: s.Binary(op, s.Call("abs", args), _INFINITE)


def _normal(args: Args, _types: Types) -> s.Expr:
    least = s.Binary(">=", s.Call("abs", args), s.Float(2.0**-1022))
    return s.Binary("and", least, s.Binary("<", s.Call("abs", args), _INFINITE))


def _negative(args: Args, _types: Types) -> s.Expr:
    below = s.Binary("<", args[0], s.Float(0.0))
    angle = s.Call("atan2", (args[0], s.signed(-1.0)))  # that of -0.0 is below 0
    zero = s.Binary("and", s.Binary("==", args[0], s.Float(0.0)), s.Binary("<", angle, s.Float(0.0)))
    return s.Binary("or", below, zero)


def _read(name: str) -> Callable[[Args, Types], s.Expr]:
    """A whole number in a text, by a function of the library; without a base its prefix tells it."""
    return lambda args, _types: s.Call(f"{PREFIX}{name}", args if len(args) == 2 else (*args, s.Int(0)))


def _packed(args: Args, types: Types) -> s.Expr:
    """A whole number as bytes in an encoding."""
    number = args[0] if types[0] == t.I64 else s.Call("i64.wrap", (args[0],))
    return s.Call(f"{PREFIX}packed", (number, args[1], s.Bool(value=types[0] != t.I64)))


def _padded(args: Args, _types: Types, *, right: bool = False) -> s.Expr:
    """A text, and the blanks that fill it up to as many as there are in the second one."""
    text, blanks = args
    missing = s.Call("max", (s.Binary("-", s.Call("len", (blanks,)), s.Call("len", (text,))), s.Int(0)))
    fill = s.Slice(blanks, s.Int(0), missing)
    return s.Binary("+", text, fill) if right else s.Binary("+", fill, text)


def _no_character(args: Args, _types: Types) -> s.Expr:
    """That a number is no code point that a text may have."""
    (point,) = args
    outside = s.Binary("or", s.Binary("<=", point, s.Int(0)), s.Binary(">", point, s.Int(0x10FFFF)))
    surrogate = s.Binary("and", s.Binary(">=", point, s.Int(0xD800)), s.Binary("<", point, s.Int(0xE000)))
    return s.Binary("or", outside, surrogate)


def _truth(args: Args, _types: Types) -> s.Expr:
    return s.Call("starts_with", (s.Call("lower", args), s.String("t")))


def _moment(args: Args, types: Types) -> s.Expr:
    return args[0] if types[0] == t.TIME else s.Call("time", (s.Call("i64.wrap", args),))


def _time_of(args: Args, _types: Types) -> s.Expr:
    text, zone = args if len(args) == 2 else (*args, s.String(OWN_ZONE))
    hours = ((s.String(zone), s.signed(n)) for zone, n in ZONES.items())
    return s.Call(f"{PREFIX}moment", (text, s.MapValue(tuple(hours)), clocks(zone)))


def _compressed(whole: str, bare: str) -> Callable[[Args, Types], s.Expr]:
    """A function of the library, or where the second operand says so the other, without head and sum."""

    def river(args: Args, _types: Types) -> s.Expr:
        data, *skips = args
        full = s.Call(f"{PREFIX}{whole}", (data,))
        return s.IfExpr(skips[0], s.Call(f"{PREFIX}{bare}", (data,)), full) if skips else full

    return river


def _real(args: Args, types: Types) -> s.Expr:
    return args[0] if types[0] == t.F64 else s.Call("f64", args)


def _outside(low: float, high: float) -> Callable[[Args, Types], s.Expr]:
    """That a float, without its fraction, is not from low to high (exclusive); NaN is not."""

    def guard(args: Args, _types: Types) -> s.Expr:
        above = s.Binary(">=" if low < -1 else ">", args[0], s.signed(low))
        return s.Unary("not", s.Binary("and", above, s.Binary("<", args[0], s.Float(high))))

    return guard


def shown(type_: t.Type) -> bool:
    """Whether values have the text that a program would write for them: bytes themselves have one in an encoding."""
    return type_ != t.BYTES


def _quoted(value: s.Expr, sign: str) -> s.Expr:
    """A text between two signs, as a literal."""
    return s.Call(f"{PREFIX}quoted", (value, s.String(sign)))


OPEN, CLOSE, SHOWN, SAME, SIGNLESS = (
    f"{PREFIX}{word}_" for word in ("open", "close", "shown", "same", "signless")
)
"""How the functions of types that contain themselves are called, in front of the numbers of the types: see `recursive`."""


def shown_as(value: s.Expr, type_: t.Type) -> s.Expr:
    """The text of an array, a map or a record, as the program would write it."""
    return _shown(value, type_, 0)


def _shown(value: s.Expr, type_: t.Type, depth: int) -> s.Expr:
    """The text of a value that stands in another one, as szl writes it."""
    name = f"{PREFIX}part{depth}"
    part = s.Name(name)
    match type_:
        case t.STRING:
            return _quoted(value, '"')
        case t.List(item):
            texts = s.Comprehension(_shown(part, item, depth + 1), (name,), value)
            return _empty(value, "{  }", _braces(s.Call("join", (texts, s.String(", ")))))
        case t.Map(key, item):
            entry = _shown(s.Index(value, part), item, depth + 1)
            texts = s.Comprehension(
                _joined_texts(_shown(part, key, depth + 1), s.String(": "), entry),
                (name,),
                s.Call("keys", (value,)),
            )
            return _empty(value, "{ : }", _braces(s.Call("join", (texts, s.String(", ")))))
        case t.Record(fields):
            texts = [_shown(s.Member(value, field), inner, depth) for field, inner in fields]
            return _braces(s.Call("join", (s.ListValue(tuple(texts)), s.String(", "))))
        case t.BYTES:
            return s.Call(f"{PREFIX}bytes_text", (value,))
        case Recursive(_, number):
            return s.Call(f"{SHOWN}{number}", (value,))
        case t.Function():
            return s.String(spelled(type_))
        case t.U64:
            return _joined_texts(s.Call("string", (value,)), s.String("U"))
        case t.TIME:
            return _joined_texts(s.String('"'), _text((value,), (type_,)), s.String('"'))
        case type_ if type_ in (FINGERPRINT, t.F64):
            return _text((value,), (type_,))
        case t.Optional(inner):
            some = _shown(s.Force(value), inner, depth)
            return s.IfExpr(s.IsNone(value), s.String("undefined"), some)
        case _:
            return s.Call("string", (value,))


def _print(value: s.Expr, type_: t.Type, depth: int) -> s.Expr:
    """The fingerprint of a value."""
    if isinstance(type_, t.Map):
        key = s.Name(f"{PREFIX}item{depth}")
        entry = _both(_print(key, type_.key, depth + 1), _print(s.Index(value, key), type_.value, depth + 1))
        return _folded(s.Call("sort", (s.Call("keys", (value,)),)), key.name, entry, depth)
    if isinstance(type_, t.List):
        item = s.Name(f"{PREFIX}item{depth}")
        return _folded(value, item.name, _print(item, type_.item, depth + 1), depth)
    if isinstance(type_, t.Record) and not t.is_key(type_):
        found = _EMPTY_PRINT
        for field, inner in type_.fields:
            found = _both(found, _print(s.Member(value, field), inner, depth))
        return found
    return s.Call("hash64", (compared(value, type_),))


_EMPTY_PRINT = s.Call("hash64", (s.Call("i64", (s.Int(0),)),))


def _both(first: s.Expr, second: s.Expr) -> s.Expr:
    """The fingerprint of two in this order."""
    return s.Call("hash64", (s.RecordValue((s.FieldValue("first", first), s.FieldValue("second", second))),))


def _folded(items: s.Expr, name: str, item: s.Expr, depth: int) -> s.Expr:
    """The fingerprint of those of items, one behind the other."""
    so_far = s.Name(f"{PREFIX}so_far{depth}")
    return s.Call("fold", (items, _EMPTY_PRINT, s.Lambda((so_far.name, name), _both(so_far, item))))


def _printed(type_: t.Type) -> bool:
    """Whether values of a type have fingerprints."""
    return not t.contains(type_, t.Function)


def _empty(value: s.Expr, text: str, otherwise: s.Expr) -> s.Expr:
    return s.IfExpr(s.Binary("==", s.Call("len", (value,)), s.Int(0)), s.String(text), otherwise)


def _braces(text: s.Expr) -> s.Expr:
    return _joined_texts(s.String("{ "), text, s.String(" }"))


def _joined_texts(*parts: s.Expr) -> s.Expr:
    found = parts[0]
    for part in parts[1:]:
        found = s.Binary("+", found, part)
    return found


_CONVERSION = "cannot be converted"

OPERATORS: tuple[Operation, ...] = (
    Operation(
        "+",
        _first_of(_alike(2, (*NUMBERS, t.STRING, t.BYTES, t.TIME, FINGERPRINT)), _lists),
        _sum,
        "sum, or one behind the other; of fingerprints, one of both in this order",
    ),
    Operation("-", _alike(2, (*NUMBERS, t.TIME)), _difference, "difference"),
    Operation("*", _alike(2, NUMBERS), _binary("*%", "*"), "product"),
    Operation(
        "/",
        _alike(2, NUMBERS),
        _quotient,
        "quotient, of whole numbers towards zero",
        "division by zero",
        _by_zero,
    ),
    Operation("%", _alike(2, (*INTEGERS, t.TIME)), _remainder, "remainder", "division by zero", _by_zero),
    Operation(
        "&",
        _alike(2, (*INTEGERS, t.BOOL)),
        _bits("&", "and"),
        "bits in both; of bools, whether both are true",
    ),
    Operation(
        "|", _alike(2, (*INTEGERS, t.BOOL)), _bits("|", "or"), "bits in either; of bools, whether one is true"
    ),
    Operation("^", _alike(2, INTEGERS), _binary("^"), "bits in one"),
    Operation("<<", _alike(2, INTEGERS), _binary("<<"), "shift left; the count modulo 64"),
    Operation(
        ">>", _alike(2, INTEGERS), _binary(">>>"), "shift right, filling with zeros; the count modulo 64"
    ),
    Operation("==", _equal, _equality("=="), "whether equal"),
    Operation("!=", _equal, _equality("!="), "whether different"),
    *(Operation(op, _alike(2, COMPARED, t.BOOL), _binary(op), "comparison") for op in ("<", "<=", ">", ">=")),
    Operation("neg", _alike(1, (t.I64, t.F64)), _negation, "the negative"),
    Operation("pos", _alike(1, NUMBERS), _itself, "itself"),
    Operation("~", _alike(1, INTEGERS), lambda args, _: s.Unary("~", args[0]), "all bits inverted"),
    Operation("not", _fixed(t.BOOL, t.BOOL), lambda args, _: s.Unary("not", args[0]), "the opposite"),
)

CONVERSIONS: tuple[Operation, ...] = (
    Operation("int", _any(t.I64, lambda x: x in (t.BOOL, t.I64, t.U64, t.TIME, FINGERPRINT)), _whole("i64"), "as int"),
    Operation(
        "int", _fixed(t.I64, t.F64), _call("i64"), "a float without its fraction", _CONVERSION,
        _outside(-(2.0**63), 2.0**63),
    ),
    Operation("int", _fixed(t.I64, t.STRING), _read("whole"), "the number in a string", _CONVERSION, optional=True),
    Operation(
        "int", _fixed(t.I64, t.STRING, t.I64), _read("whole"), "the number in a string, to a base", _CONVERSION,
        optional=True,
    ),
    Operation("uint", _any(t.U64, lambda x: x in (t.BOOL, t.I64, t.U64, t.TIME, FINGERPRINT)), _whole("u64"), "as uint"),
    Operation(
        "fingerprint", _any(FINGERPRINT, lambda x: x in (t.I64, t.U64, FINGERPRINT)), _whole("u64"), "with these 64 bits"
    ),
    Operation(
        "uint", _fixed(t.U64, t.F64), _call("u64"), "a float without its fraction", _CONVERSION, _outside(-1.0, 2.0**64)
    ),
    Operation("uint", _fixed(t.U64, t.STRING), _read("natural"), "the number in a string", _CONVERSION, optional=True),
    Operation(
        "uint", _fixed(t.U64, t.STRING, t.I64), _read("natural"), "the number in a string, to a base", _CONVERSION,
        optional=True,
    ),
    Operation("bool", _fixed(t.BOOL, t.BOOL), _itself, "itself"),
    Operation("bool", _fixed(t.BOOL, t.STRING), _truth, "whether it begins with T or t"),
    Operation("time", _any(t.TIME, lambda x: x in (t.U64, t.TIME)), _moment, "so many microseconds after 1970"),
    Operation("bytes", _fixed(t.BYTES, t.BYTES), _itself, "itself"),
    Operation("float", _any(t.F64, lambda x: x in NUMBERS), _real, "as float"),
    Operation("float", _fixed(t.F64, t.STRING), _library("float"), "the number in a string", _CONVERSION, optional=True),
    Operation("string", _any(t.STRING, lambda x: x in SCALARS), _text, "as text"),
    Operation(
        "string", _fixed(t.STRING, t.TIME, t.STRING), _text, "a time by the clocks of a zone", UNKNOWN_ZONE, zoned=True
    ),
    Operation(
        "string", _any(t.STRING, lambda x: x not in SCALARS and shown(x)), lambda args, types: _shown(args[0], types[0], 0),
        "an array, map or record as it is written", repeats=True,
    ),
    Operation(
        "string", _fixed(t.STRING, t.BYTES), _library("decoded"), "the text in UTF-8, U+FFFD for a byte that is none",
        "there is a zero byte", optional=True,
    ),
    Operation("bytes", _fixed(t.BYTES, t.STRING), _call("encode"), "a string in UTF-8"),
    *(
        Operation("string", _fixed(t.STRING, type_, t.I64), _library(name), "its digits to a base", "no base", optional=True)
        for type_, name in ((t.I64, "signed_digits"), (t.U64, "unsigned_digits"))
    ),
    Operation(
        "bytes", _fixed(t.BYTES, t.STRING, t.STRING), _library("to_bytes"), "a string in `UTF-8`, `latin-1` or `hex`",
        _CONVERSION, optional=True,
    ),
    Operation(
        "string", _fixed(t.STRING, t.BYTES, t.STRING), _library("from_bytes"), "the text in `UTF-8`, `latin-1` or `hex`",
        _CONVERSION, optional=True,
    ),
    *(
        Operation(
            "bytes", _fixed(t.BYTES, type_, t.STRING), _packed, "a whole number as `varint`, `zigzag`, `fixed32-big`...",
            _CONVERSION, optional=True,
        )
        for type_ in INTEGERS
    ),
    Operation("int", _fixed(t.I64, t.BYTES, t.STRING), _library("unpacked_int"), "what is packed so", _CONVERSION, optional=True),
    Operation(
        "uint", _fixed(t.U64, t.BYTES, t.STRING), _library("unpacked_uint"), "what is packed so", _CONVERSION, optional=True
    ),
    Operation(
        "fingerprint", _fixed(FINGERPRINT, t.BYTES), lambda args, _: s.Call(f"{PREFIX}unpacked_uint", (*args, s.String("szl"))),
        "the 64 bits in 8 bytes", _CONVERSION, optional=True,
    ),
    Operation(
        "bytes", _fixed(t.BYTES, FINGERPRINT), lambda args, _: s.Force(_packed((*args, s.String("szl")), (t.U64,))),
        "its 8 bytes",
    ),
    Operation(
        "fingerprint", _fixed(FINGERPRINT, t.STRING), _read("natural"), "the number in a string", _CONVERSION, optional=True
    ),
    Operation(
        "fingerprint", _fixed(FINGERPRINT, t.STRING, t.I64), _read("natural"), "the number in a string, to a base",
        _CONVERSION, optional=True,
    ),
    Operation("time", _fixed(t.TIME, t.I64), _call("time"), "so many microseconds after 1970"),
    Operation(
        "time", _fixed(t.TIME, t.STRING), _time_of, "a time as `Mon Oct 16 09:30:00 PDT 2006`, or of ISO 8601", _CONVERSION,
        optional=True,
    ),
    Operation(
        "time", _fixed(t.TIME, t.STRING, t.STRING), _time_of, "such a time by the clocks of a zone, if it says none itself",
        _CONVERSION, optional=True, zoned=True,
    ),
)  # fmt: skip

POINTS = Operation(
    "string", _fixed(t.STRING, t.List(t.I64), t.STRING), _library("points"), "the text of code points, `unicode`",
    _CONVERSION, optional=True,
)  # fmt: skip

FUNCTIONS: tuple[Operation, ...] = (
    Operation("len", _any(t.I64, _has_length), _call("len"), "items, entries, code points or bytes"),
    Operation("abs", _alike(1, (t.I64, t.F64)), _absolute, "without its sign", repeats=True),
    Operation("min", _alike(2, ORDERED), _extreme("min", "<"), "the smaller; NaN if one is", repeats=True),
    Operation("max", _alike(2, ORDERED), _extreme("max", ">"), "the greater; NaN if one is", repeats=True),
    Operation("fabs", _fixed(t.F64, t.F64), _call("abs"), "without its sign"),
    Operation("highbit", _fixed(t.I64, t.I64), _library("highest"), "the position of the highest bit, from 1; 0 of 0"),
    Operation("strrfind", _fixed(t.I64, t.STRING, t.STRING), _library("last"), "where it is last, or -1"),
    Operation(
        "bytesfind", _fixed(t.I64, t.BYTES, t.BYTES), lambda args, _: s.Call(f"{PREFIX}bytes", (*args, s.Bool(value=False))),
        "where the first bytes are in the second, or -1",
    ),
    Operation(
        "bytesrfind", _fixed(t.I64, t.BYTES, t.BYTES), lambda args, _: s.Call(f"{PREFIX}bytes", (*args, s.Bool(value=True))),
        "where they are last, or -1",
    ),
    Operation("lowercase", _fixed(t.STRING, t.STRING), _call("lower"), "in lower case"),
    Operation("uppercase", _fixed(t.STRING, t.STRING), _call("upper"), "in upper case"),
    Operation(
        "strfind", _fixed(t.I64, t.STRING, t.STRING), lambda args, _: s.Call("find", (args[1], args[0])),
        "where the first string is in the second, or -1",
    ),
    Operation(
        "strreplace",
        _first_of(_fixed(t.STRING, t.STRING, t.STRING, t.STRING, t.BOOL), _fixed(t.STRING, t.STRING, t.STRING, t.STRING)),
        lambda args, _: s.Call(f"{PREFIX}replaced", args if len(args) == 4 else (*args, s.Bool(value=True))),
        "the first string with each second replaced by the third; with false behind it, only the first",
    ),
    Operation(
        "split", _fixed(t.List(t.STRING), t.STRING, t.STRING), _call("split"), "the parts between separators (not in szl)"
    ),
    Operation("sort", _sort, _call("sort"), "ascending"),
    Operation("sortx", _sorted_indices, _places, "the indices in the order that sorts the items", repeats=True),
    Operation("splitcsvline", _fixed(t.List(t.BYTES), t.BYTES), _library("csv_line"), "the fields of a line of CSV"),
    Operation(
        "splitcsv", _fixed(t.List(t.BYTES), t.BYTES, t.List(t.I64)), _library("csv"),
        "of each line of CSV the fields of these numbers, from 1", "a line has no such field", optional=True,
    ),
    Operation("gzip", _fixed(t.BYTES, t.BYTES), _library("gzip"), "compressed, as gzip does"),
    Operation(
        "gunzip", _fixed(t.BYTES, t.BYTES), _library("gunzip"), "what gzip has compressed", "not made by gzip", optional=True
    ),
    Operation(
        "zlibcompress", _first_of(_fixed(t.BYTES, t.BYTES), _fixed(t.BYTES, t.BYTES, t.BOOL)), _compressed("zlib", "deflated"),
        "compressed, as zlib does; with true behind it, without head and sum", repeats=True,
    ),
    Operation(
        "zlibuncompress", _first_of(_fixed(t.BYTES, t.BYTES), _fixed(t.BYTES, t.BYTES, t.BOOL)),
        _compressed("unzlib", "uncompressed"), "what zlib has compressed; with true behind it, without head and sum",
        "not made by zlib", optional=True, repeats=True,
    ),
    Operation(
        "tobase64", _fixed(t.BYTES, t.BYTES, t.BOOL), _library("to_base64"),
        "in base 64; if the second is true, with - and _ and no = at the end",
    ),
    Operation(
        "frombase64", _fixed(t.BYTES, t.BYTES, t.BOOL), _library("from_base64"), "what is in base 64", "not in base 64",
        optional=True,
    ),
    Operation("keys", _keys, _call("keys"), "the keys, in the order in which they came"),
    Operation("haskey", _has_key, _call("has"), "whether there is such a key"),
    Operation("lookup", _lookup, _call("get"), "the value of a key, or the third operand"),
    Operation(
        "fingerprintof", _any(FINGERPRINT, _printed), lambda args, types: _print(args[0], types[0], 0),
        "a stable hash; of an array, `fingerprintof(0)` combined with that of each item; a map is one of its entries",
        repeats=True,
    ),
    *(
        Operation(name, _fixed(t.F64, t.F64), _call(river), doc)
        for name, river, doc in (
            ("sqrt", "sqrt", "the square root"), ("exp", "exp", "e to the power"), ("ln", "log", "the natural logarithm"),
            ("log10", "log10", "the logarithm to base 10"), ("floor", "floor", "rounded down"),
            ("ceil", "ceil", "rounded up"), ("round", "round", "the nearest whole number, halves away from zero"),
            ("trunc", "trunc", "without the fraction"),
        )
    ),
    Operation("rand", _fixed(t.F64), lambda args, _: s.Call("zero", args), "a random number from 0 to 1 (exclusive)"),
    Operation(
        "nrand", _fixed(t.I64, t.I64), lambda args, _: s.Call("zero", args[1:]), "a random whole number from 0 to n (exclusive)",
        "there is no such number",
    ),
    Operation("pow", _fixed(t.F64, t.F64, t.F64), _call("pow"), "to the power"),
    *(
        Operation(name, _fixed(t.F64, t.F64), _call(name), f"the {name} of an angle or number")
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    ),
    Operation("asinh", _fixed(t.F64, t.F64), _library("asinh"), "the inverse of sinh"),
    Operation("acosh", _fixed(t.F64, t.F64), _library("acosh"), "the inverse of cosh"),
    Operation("atanh", _fixed(t.F64, t.F64), _library("atanh"), "the inverse of tanh"),
    Operation("atan2", _fixed(t.F64, t.F64, t.F64), _call("atan2"), "the angle of the second and the first as a point"),
    Operation("isnan", _fixed(t.BOOL, t.F64), _call("is_nan"), "whether it is NaN"),
    Operation("isinf", _fixed(t.BOOL, t.F64), _size("=="), "whether it is infinite"),
    Operation("isfinite", _fixed(t.BOOL, t.F64), _size("<"), "whether it is neither infinite nor NaN"),
    Operation("isnormal", _fixed(t.BOOL, t.F64), _normal, "whether it is none of 0, subnormal, infinite, NaN", repeats=True),
    Operation("signbit", _fixed(t.BOOL, t.F64), _negative, "whether it has the sign -, as -0.0 has", repeats=True),
    *(
        Operation(name, _fixed(t.I64, t.TIME, t.STRING), _shown_by(river), f"the {river} in a zone", UNKNOWN_ZONE, zoned=True)
        for name, river in (
            ("yearof", "year"), ("monthof", "month"), ("dayofmonth", "day"), ("dayofweek", "weekday"), ("hourof", "hour"),
            ("minuteof", "minute"), ("secondof", "second"), ("dayofyear", "yearday"),
        )
    ),
    *(
        Operation(
            f"truncto{unit}", _fixed(t.TIME, t.TIME, t.STRING), _zoned("part", s.Int(length)), f"the beginning of the {unit}",
            UNKNOWN_ZONE, zoned=True,
        )
        for unit, length in (("second", 1_000_000), ("minute", 60_000_000), ("hour", 3_600_000_000))
    ),
    *(
        Operation(
            f"truncto{unit}", _fixed(t.TIME, t.TIME, t.STRING), _zoned("begun", s.String(unit[0])),
            f"the beginning of the {unit}", UNKNOWN_ZONE, zoned=True,
        )
        for unit in ("day", "month", "year")
    ),
    *(
        Operation(
            f"add{unit}", _fixed(t.TIME, t.TIME, t.I64, t.STRING), _later(months, days), f"so many {unit}s later",
            "beyond the calendar", optional=True, zoned=True,
        )
        for unit, months, days in (("day", 0, 1), ("week", 0, 7), ("month", 1, 0), ("year", 12, 0))
    ),
    Operation(
        "formattime", _fixed(t.STRING, t.STRING, t.TIME, t.STRING), _zoned("in_form"), "a time in a form of `strftime`",
        UNKNOWN_ZONE, zoned=True,
    ),
)  # fmt: skip

DRAWS = frozenset({"rand", "nrand"})
"""Functions that draw random numbers, which the lowering writes."""

_SECOND = 1_000_000
CONSTANTS: Mapping[str, tuple[t.Type, int | float | bytes]] = MappingProxyType({
    "PI": (t.F64, math.pi), "input_key": (t.BYTES, b""),
    "inf": (t.F64, math.inf), "Inf": (t.F64, math.inf), "nan": (t.F64, math.nan), "NaN": (t.F64, math.nan),
    "SECOND": (t.TIME, _SECOND), "SEC": (t.TIME, _SECOND), "MINUTE": (t.TIME, 60 * _SECOND), "MIN": (t.TIME, 60 * _SECOND),
    "HOUR": (t.TIME, 3600 * _SECOND), "HR": (t.TIME, 3600 * _SECOND),
})  # fmt: skip
"""Names that have a value in every program; times in microseconds."""

PLACE = t.Record((
    ("before", t.STRING), ("number", t.STRING), ("verb", t.STRING), ("left", t.BOOL), ("blanks", t.STRING), ("most", t.I64),
))  # fmt: skip
"""A place of a format that is not known before the run, as `sawzall_places` of the library gives it."""

PLACES: tuple[Operation, ...] = (
    Operation(
        "format number", _first_of(*(_fixed(t.STRING, t.STRING, type_) for type_ in NUMBERS)), _in_form, "in a form of C's"
    ),
    Operation(
        "places of a format", _fixed(t.List(PLACE), t.STRING, t.List(t.STRING)), _library("places"), "see there",
        "the values do not fit the format", optional=True,
    ),
    Operation("pad left", _fixed(t.STRING, t.STRING, t.STRING), _padded, "behind as many blanks as are missing", repeats=True),
    Operation(
        "pad right", _fixed(t.STRING, t.STRING, t.STRING), lambda args, types: _padded(args, types, right=True),
        "in front of as many blanks as are missing", repeats=True,
    ),
    Operation("bytes of items", _fixed(t.BYTES, t.List(t.I64)), _library("of_items"), "a byte of the lowest 8 bits of each"),
    Operation("items of bytes", _fixed(t.List(t.I64), t.BYTES), _library("items"), "each byte as a whole number"),
    Operation("copies of a byte", _fixed(t.BYTES, t.I64, t.I64), _library("copies"), "one byte so often"),
    Operation("copies of a character", _fixed(t.STRING, t.I64, t.STRING), _library("text"), "one character so often"),
    Operation(
        "other character", _fixed(t.STRING, t.STRING, t.I64, t.STRING), _library("changed"), "a text with another character"
    ),
    Operation("characters", _fixed(t.STRING, t.BYTES), _library("characters"), "a text with a character for each byte"),
    Operation("bytes of characters", _fixed(t.BYTES, t.STRING), _library("of_characters"), "the way back"),
    Operation("new", _filled, _filled_array, "so many times a value", repeats=True),
    Operation("quoted character", _fixed(t.STRING, t.STRING), lambda args, _: _quoted(args[0], "'"), "as a literal"),
    Operation("quote", _fixed(t.STRING, t.STRING), lambda args, types: _shown(args[0], types[0], 0), "as a literal"),
    Operation(
        "character", _fixed(t.STRING, t.I64), lambda args, _: s.Call("char", (s.Call("i32", args),)), "the text of a code point",
        "no character", _no_character,
    ),
)  # fmt: skip
"""What the places of a format become; no program can name them."""

MATCHES: Mapping[str, tuple[str, t.Type]] = MappingProxyType({
    "match": ("re_test", t.BOOL), "matchstrs": ("re_strs", t.List(t.STRING)), "matchposns": ("re_find", t.List(t.I64)),
})  # fmt: skip
"""Functions of a constant pattern and a string: River's operation, and the type of the result."""


def named(name: str, types: Known) -> str:
    """The key in `OPERATIONS` of a built-in on operands of these types."""
    if name not in CONVERTERS or not types:
        return name
    first = types[0] or t.I64
    how = "" if len(types) == 1 else ":text" if types[1] == t.STRING else ":base"
    return f"{name}:{first.name if isinstance(first, t.Primitive) else '?'}{how}"


def _named() -> Mapping[str, Operation]:
    """All operations: conversions by name and the type of the first operand, `int:string`, the others by name."""
    found = {op.name: op for op in (*OPERATORS, *FUNCTIONS, *PLACES)}
    for op in CONVERSIONS:
        for type_ in (*SCALARS, t.BYTES):
            for param in (None, t.I64, t.STRING):
                given = (type_,) if param is None else (type_, param)
                if op.rule(given) is not None:
                    found[named(op.name, given)] = op
    found["string:?:text"] = POINTS
    found["string:?"] = next(op for op in CONVERSIONS if op.name == "string" and op.repeats)
    return MappingProxyType(found)


CONVERTERS = frozenset(op.name for op in CONVERSIONS)
OPERATIONS: Mapping[str, Operation] = _named()
