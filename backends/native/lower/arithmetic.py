"""Operations on scalars (il.md 2.3): what LLVM has an instruction for, with the traps of the table."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.derived.equality import same_scalar
from backends.native.ir import hexadecimal
from backends.native.layout import Unsupported, is_text, register
from backends.native.lower import decimals, functions, texts
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import types as t
from river.lang.operations.functions import NAMES
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame
    from river.lang import typed

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]

_BITS: Final = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "i128": 128}
_NAN: Final = "0x7FF8000000000000"
_INFINITY: Final = "0x7FF0000000000000"


def is_float(type_: t.Type) -> bool:
    """f32 or f64."""
    return type_ in t.FLOATS


def kind_of(type_: t.Type) -> str:
    """The register type of a scalar.

    Raises: Unsupported.
    """
    kind = register(type_)
    if kind is None:
        raise Unsupported(f"arithmetic on {type_}")
    return kind


def operands(f: Frame, values: Sequence[Value]) -> tuple[str, ...]:
    """Registers of whole numbers as i64, for the record of a trap; wide ones are left out."""
    found: list[str] = []
    for value in values:
        if isinstance(value, Scalar):
            match register(value.type):
                case "i64":
                    found.append(value.reg)
                case "i32":
                    found.append(f.b.op(f"sext i32 {value.reg} to i64"))
                case _:
                    return ()
    return tuple(found)


# ------------------------------------------------------------------------------------------- + - * and kin

_OVERFLOWS: Final = {"+": "add", "-": "sub", "*": "mul"}


def _checked(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, name = expr.type, _OVERFLOWS[expr.operation]
    if is_text(type_):
        slot = f.empty(type_)
        f.b.call(
            "void",
            "text_concat",
            ["ptr %temporary", f"ptr {slot}", f"ptr {f.ptr(values[0])}", f"ptr {f.ptr(values[1])}"],
        )
        return Memory(type_, slot)
    kind, a, b = kind_of(type_), f.reg(values[0]), f.reg(values[1])
    if is_float(type_):
        return Scalar(type_, f.b.op(f"f{name} {kind} {a}, {b}"))
    if isinstance(type_, t.Decimal):
        return _decimal(f, expr, values)
    if kind == "i128" and name == "mul":
        return Scalar(type_, _multiply_wide(f, a, b, "overflow", expr.site))
    sign = "u" if type_ == t.U64 else "s"
    pair = f.b.op(f"call {{{kind}, i1}} @llvm.{sign}{name}.with.overflow.{kind}({kind} {a}, {kind} {b})")
    result = f.b.op(f"extractvalue {{{kind}, i1}} {pair}, 0")
    f.trap_if(f.b.op(f"extractvalue {{{kind}, i1}} {pair}, 1"), "overflow", expr.site, operands(f, values))
    return Scalar(type_, result)


def _multiply_wide(f: Frame, a: str, b: str, code: str, site: int | None) -> str:
    out = f.b.slot("i128")
    overflow = f.b.call("i1", "multiply_wide", [f"ptr {out}", f"i128 {a}", f"i128 {b}"])
    f.trap_if(overflow, code, site)
    return f.b.op(f"load i128, ptr {out}")


def _decimal(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_ = expr.type
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the caller
    if expr.operation != "*":
        return decimals.add(f, expr, values)
    result = _multiply_wide(f, f.reg(values[0]), f.reg(values[1]), "decimal-precision", expr.site)
    decimals.within(f, result, type_, expr.site)
    return Scalar(type_, result)


def _wrapping(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = _OVERFLOWS[expr.operation[0]]
    return Scalar(expr.type, f.b.op(f"{name} {kind_of(expr.type)} {f.reg(values[0])}, {f.reg(values[1])}"))


def _negate(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, a = expr.type, f.reg(values[0])
    kind = kind_of(type_)
    if is_float(type_):
        return Scalar(type_, f.b.op(f"fneg {kind} {a}"))
    if expr.operation == "neg" and not isinstance(type_, t.Decimal):
        bad = f"icmp ne i64 {a}, 0" if type_ == t.U64 else f"icmp eq {kind} {a}, {BOUNDS[type_][0]}"
        f.trap_if(f.b.op(bad), "overflow", expr.site, operands(f, values))
    return Scalar(type_, f.b.op(f"sub {kind} 0, {a}"))


def _absolute(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, a = expr.type, f.reg(values[0])
    kind = kind_of(type_)
    if is_float(type_):
        return Scalar(
            type_, f.b.op(f"call {kind} @llvm.fabs.{'f32' if kind == 'float' else 'f64'}({kind} {a})")
        )
    if type_ == t.U64:
        return values[0]
    if not isinstance(type_, t.Decimal):
        f.trap_if(
            f.b.op(f"icmp eq {kind} {a}, {BOUNDS[type_][0]}"), "overflow", expr.site, operands(f, values)
        )
    negative = f.b.op(f"icmp slt {kind} {a}, 0")
    opposite = f.b.op(f"sub {kind} 0, {a}")
    return Scalar(type_, f.b.op(f"select i1 {negative}, {kind} {opposite}, {kind} {a}"))


# ----------------------------------------------------------------------------------------------- division


def _divide(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_ = expr.type
    if not is_float(type_):
        return decimals.divide(f, expr, values)
    kind, a, b = kind_of(type_), f.reg(values[0]), f.reg(values[1])
    if expr.operation == "div.trap":
        f.trap_if(f.b.op(f"fcmp oeq {kind} {b}, 0.0"), "division-by-zero", expr.site)
    return Scalar(type_, f.b.op(f"fdiv {kind} {a}, {b}"))


def _whole_division(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, name = expr.type, expr.operation
    b = f.b
    if is_float(type_):
        x, y = (double(f, v) for v in values)
        return rounded(f, type_, b.op(f"call double @river_fmod(double {x}, double {y})"))
    first = values[0].type
    kind, x, y = kind_of(first), f.reg(values[0]), f.reg(values[1])
    f.trap_if(b.op(f"icmp eq {kind} {y}, 0"), "division-by-zero", expr.site, operands(f, values))
    quotient = name.startswith("div")
    if first == t.U64:
        return Scalar(type_, b.op(f"{'udiv' if quotient else 'urem'} i64 {x}, {y}"))
    low = BOUNDS[first][0] if not isinstance(first, t.Decimal) else None
    if low is not None:
        edge = b.op(f"and i1 {b.op(f'icmp eq {kind} {x}, {low}')}, {b.op(f'icmp eq {kind} {y}, -1')}")
        if name.endswith(".wrap"):
            y = b.op(f"select i1 {edge}, {kind} 1, {kind} {y}")
            if not quotient:
                pass  # MIN rem 1 is 0, too
        else:
            f.trap_if(edge, "overflow", expr.site, operands(f, values))
    if kind == "i128":
        out = b.slot("[2 x i128]")
        b.call("void", "divide_wide", [f"ptr {out}", f"i128 {x}", f"i128 {y}"])
        q = b.op(f"load i128, ptr {out}")
        r = b.op(f"load i128, ptr {b.op(f'getelementptr inbounds i128, ptr {out}, i64 1')}")
    else:
        q, r = b.op(f"sdiv {kind} {x}, {y}"), b.op(f"srem {kind} {x}, {y}")
    if "floor" in name:
        inexact = b.op(f"icmp ne {kind} {r}, 0")
        signs = b.op(f"icmp slt {kind} {b.op(f'xor {kind} {r}, {y}')}, 0")
        fix = b.op(f"and i1 {inexact}, {signs}")
        q = b.op(f"sub {kind} {q}, {b.op(f'zext i1 {fix} to {kind}')}")
        r = b.op(f"select i1 {fix}, {kind} {b.op(f'add {kind} {r}, {y}')}, {kind} {r}")
    return Scalar(type_, q if quotient else r)


# --------------------------------------------------------------------------------------------------- bits


def _bitwise(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = {"&": "and", "|": "or", "^": "xor"}[expr.operation]
    return Scalar(expr.type, f.b.op(f"{name} {kind_of(expr.type)} {f.reg(values[0])}, {f.reg(values[1])}"))


def _invert(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(expr.type, f.b.op(f"xor {kind_of(expr.type)} {f.reg(values[0])}, -1"))


def _shift(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, name = expr.type, expr.operation
    kind, a, n = kind_of(type_), f.reg(values[0]), f.reg(values[1])
    bits = _BITS[kind]
    if name.endswith(".trap"):
        f.trap_if(f.b.op(f"icmp uge {kind} {n}, {bits}"), "shift-range", expr.site, operands(f, values))
    else:
        n = f.b.op(f"and {kind} {n}, {bits - 1}")
    left = name in ("<<", "shl.trap")
    zeros = name in (">>>", "ushr.trap") or type_ == t.U64
    return Scalar(type_, f.b.op(f"{'shl' if left else 'lshr' if zeros else 'ashr'} {kind} {a}, {n}"))


# ---------------------------------------------------------------------------------------------- comparison

_ORDER: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def less(f: Frame, relation: str, x: Value, y: Value) -> str:
    """A relation of the IEEE order of two scalars or texts, as i1."""
    type_, name = x.type, _ORDER[relation]
    if is_text(type_):
        order = f.b.call("i64", "text_compare", [f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}"])
        return f.b.op(f"icmp s{name} i64 {order}, 0")
    kind = kind_of(type_)
    if isinstance(type_, t.Decimal):
        return decimals.order(f, f"s{name}", x, y)
    if is_float(type_):
        return f.b.op(f"fcmp o{name} {kind} {f.reg(x)}, {f.reg(y)}")
    sign = "u" if type_ in (t.U64, t.BOOL) else "s"
    return f.b.op(f"icmp {sign}{name} {kind} {f.reg(x)}, {f.reg(y)}")


def total_less(f: Frame, x: Value, y: Value) -> str:
    """Whether x comes before y in the total order."""
    if register(x.type) is None and not is_text(x.type):
        name = f.module.derived("order", x.type)
        order = f.b.call("i64", name, [f"ptr {TEMPORARY}", f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}"])
        return f.b.op(f"icmp slt i64 {order}, 0")
    if is_float(x.type):
        kind = kind_of(x.type)
        before = f.b.op(f"fcmp olt {kind} {f.reg(x)}, {f.reg(y)}")
        known = f.b.op(f"fcmp ord {kind} {f.reg(x)}, {f.reg(x)}")
        undefined = f.b.op(f"fcmp uno {kind} {f.reg(y)}, {f.reg(y)}")
        return f.b.op(f"or i1 {before}, {f.b.op(f'and i1 {known}, {undefined}')}")
    return less(f, "<", x, y)


def same(f: Frame, x: Value, y: Value) -> str:
    """Whether two values of one type are the same, as i1."""
    type_ = x.type
    if register(type_) is not None:
        return same_scalar(f.b, type_, f.reg(x), f.reg(y))
    if is_text(type_):
        return f.b.call("i1", "text_same", [f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}"])
    return f.b.call("i1", f.module.derived("same", type_), [f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}"])


def _equal(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    x, y = values
    if expr.operation != "same" and is_float(x.type):
        found = f.b.op(f"fcmp oeq {kind_of(x.type)} {f.reg(x)}, {f.reg(y)}")
    elif isinstance(x.type, t.Decimal) and expr.operation != "same":
        found = decimals.order(f, "eq", x, y)
    else:
        found = same(f, x, y)
    return Scalar(t.BOOL, f.b.op(f"xor i1 {found}, true") if expr.operation == "!=" else found)


def _relation(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.BOOL, less(f, expr.operation, values[0], values[1]))


def _compare(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    x, y = values
    above, below = total_less(f, y, x), total_less(f, x, y)
    a, b = (f.b.op(f"zext i1 {r} to i64") for r in (above, below))
    return Scalar(t.I64, f.b.op(f"sub i64 {a}, {b}"))


def _three_valued(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    x, y = values
    b = f.b
    known = b.op(f"and i1 {f.present(x)}, {f.present(y)}")
    assert isinstance(expr.type, t.Optional)  # noqa: S101 - by the rule
    wanted = expr.type

    def compared() -> Value:
        p, q = f.inner(x), f.inner(y)
        match expr.operation[:2]:
            case "eq":
                found = same(f, p, q)
            case "ne":
                found = b.op(f"xor i1 {same(f, p, q)}, true")
            case "lt":
                found = total_less(f, p, q)
            case "ge":
                found = b.op(f"xor i1 {total_less(f, p, q)}, true")
            case "gt":
                found = total_less(f, q, p)
            case _:
                found = b.op(f"xor i1 {total_less(f, q, p)}, true")
        return f.optional(wanted, Scalar(t.BOOL, found))

    return f.choice(wanted, known, compared, lambda: f.optional(wanted, None))


def _extreme3(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`sqlmin`, `sqlmax`: by the total order; none gives way."""
    x, y = values
    wanted = expr.type

    def both() -> Value:
        p, q = f.inner(x), f.inner(y)
        second = total_less(f, q, p) if expr.operation == "sqlmin" else total_less(f, p, q)
        return f.choice(wanted, second, lambda: y, lambda: x)

    def one() -> Value:
        return f.choice(wanted, f.present(x), lambda: x, lambda: y)

    return f.choice(wanted, f.b.op(f"and i1 {f.present(x)}, {f.present(y)}"), both, one)


def _extreme(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    x, y = values
    first = less(f, "<" if expr.operation == "min" else ">", y, x)
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        kind = kind_of(x.type)
        found = f.b.op(f"select i1 {first}, {kind} {y.reg}, {kind} {x.reg}")
        if is_float(x.type):
            undefined = f.b.op(f"fcmp uno {kind} {x.reg}, {y.reg}")
            found = f.b.op(f"select i1 {undefined}, {kind} {_NAN}, {kind} {found}")
        return Scalar(x.type, found)
    return Memory(x.type, f.b.op(f"select i1 {first}, ptr {f.ptr(y)}, ptr {f.ptr(x)}"))


# -------------------------------------------------------------------------------------------------- logic


def _not(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.BOOL, f.b.op(f"xor i1 {f.reg(values[0])}, true"))


def _truth(f: Frame, value: Value) -> tuple[str, str]:
    """Whether an optional truth is true, and whether it is false."""
    known = f.present(value)
    held = f.reg(f.inner(value))
    false = f.b.op(f"xor i1 {held}, true")
    return f.b.op(f"and i1 {known}, {held}"), f.b.op(f"and i1 {known}, {false}")


def _kleene(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    truths = [_truth(f, value) for value in values]
    match expr.operation:
        case "and3":
            true = b.op(f"and i1 {truths[0][0]}, {truths[1][0]}")
            false = b.op(f"or i1 {truths[0][1]}, {truths[1][1]}")
        case "or3":
            true = b.op(f"or i1 {truths[0][0]}, {truths[1][0]}")
            false = b.op(f"and i1 {truths[0][1]}, {truths[1][1]}")
        case "not3":
            false, true = truths[0]
        case _:
            return Scalar(t.BOOL, truths[0][0])
    assert isinstance(expr.type, t.Optional)  # noqa: S101 - by the rule
    wanted = expr.type
    known = b.op(f"or i1 {true}, {false}")
    return f.choice(
        wanted, known, lambda: f.optional(wanted, Scalar(t.BOOL, true)), lambda: f.optional(wanted, None)
    )


def _is_none(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.BOOL, f.b.op(f"xor i1 {f.present(values[0])}, true"))


def _force(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    f.trap_if(f.b.op(f"xor i1 {f.present(values[0])}, true"), "optional-empty", expr.site)
    return f.inner(values[0])


def _coalesce(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    first, second = values
    if second.type == first.type:
        return f.choice(expr.type, f.present(first), lambda: first, lambda: second)
    return f.choice(expr.type, f.present(first), lambda: f.inner(first), lambda: second)


def _zero(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    kind = register(expr.type)
    if kind is None:
        return Memory(expr.type, f.empty(expr.type))
    return Scalar(expr.type, {"float": "0.0", "double": "0.0", "i1": "false"}.get(kind, "0"))


# --------------------------------------------------------------------------------------------- conversions


def double(f: Frame, value: Value) -> str:
    """A float as f64."""
    return f.b.op(f"fpext float {f.reg(value)} to double") if value.type == t.F32 else f.reg(value)


def rounded(f: Frame, type_: t.Type, reg: str) -> Value:
    """An f64 rounded to a float type."""
    return Scalar(type_, f.b.op(f"fptrunc double {reg} to float") if type_ == t.F32 else reg)


def wide(f: Frame, value: Value) -> str:
    """A whole number or truth as i128."""
    kind = kind_of(value.type)
    if kind == "i128":
        return f.reg(value)
    way = "zext" if value.type in (t.U64, t.BOOL) else "sext"
    return f.b.op(f"{way} {kind} {f.reg(value)} to i128")


def _whole(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """The conversions named after whole types, with `.sat` and `.wrap`."""
    type_, b, value = expr.type, f.b, values[0]
    mode = expr.operation.partition(".")[2]
    low, high = BOUNDS[type_]
    kind, source = kind_of(type_), value.type
    if source == t.STRING:
        number, there = integer_in(f, type_, value, "10")
        f.trap_if(b.op(f"xor i1 {there}, true"), "bad-parse", expr.site)
        return Scalar(type_, number)
    if source == type_:
        return value
    if is_float(source):
        return _whole_of_float(f, expr, value, mode)
    if isinstance(source, t.Decimal):
        out = b.slot("[2 x i128]")
        b.call("void", "divide_wide", [f"ptr {out}", f"i128 {f.reg(value)}", f"i128 {10**source.scale}"])
        number = b.op(f"load i128, ptr {out}")
        fits = False
    else:
        number = wide(f, value)
        inside = (0, 1) if source == t.BOOL else BOUNDS[source]
        fits = low <= inside[0] and inside[1] <= high
    if not fits and mode != "wrap":
        over, under = b.op(f"icmp sgt i128 {number}, {high}"), b.op(f"icmp slt i128 {number}, {low}")
        if mode == "sat":
            number = b.op(f"select i1 {over}, i128 {high}, i128 {number}")
            number = b.op(f"select i1 {under}, i128 {low}, i128 {number}")
        else:
            f.trap_if(b.op(f"or i1 {over}, {under}"), "conversion-range", expr.site, operands(f, values))
    return Scalar(type_, number if kind == "i128" else b.op(f"trunc i128 {number} to {kind}"))


def integer_in(f: Frame, type_: t.Type, text: Value, base: str) -> tuple[str, str]:
    """The whole number of a type in a text, and whether there is one."""
    b, kind = f.b, kind_of(type_)
    low, high = BOUNDS[type_]
    out = b.slot("i128")
    b.do(f"store i128 0, ptr {out}")
    read = b.call("i1", "text_integer", [f"ptr {out}", f"ptr {f.ptr(text)}", f"i64 {base}"])
    number = b.op(f"load i128, ptr {out}")
    least, most = b.op(f"icmp sge i128 {number}, {low}"), b.op(f"icmp sle i128 {number}, {high}")
    there = b.op(f"and i1 {read}, {b.op(f'and i1 {least}, {most}')}")
    return number if kind == "i128" else b.op(f"trunc i128 {number} to {kind}"), there


def _whole_of_float(f: Frame, expr: typed.Apply, value: Value, mode: str) -> Value:
    type_, b = expr.type, f.b
    low, high = BOUNDS[type_]
    kind = kind_of(type_)
    x = double(f, value)
    cut = b.op(f"call double @llvm.trunc.f64(double {x})")
    above = b.op(f"fcmp oge double {cut}, {hexadecimal(float(high + 1))}")
    below = b.op(f"fcmp olt double {cut}, {hexadecimal(float(low))}")
    undefined = b.op(f"fcmp uno double {cut}, 0.0")
    outside = b.op(f"or i1 {b.op(f'or i1 {above}, {below}')}, {undefined}")
    if not mode:
        f.trap_if(outside, "conversion-range", expr.site)
    safe = b.op(f"select i1 {outside}, double 0.0, double {cut}")
    if kind == "i128":
        whole = b.call("i128", "i128_of_real", [f"double {safe}"])
    else:
        whole = b.op(f"{'fptoui' if type_ == t.U64 else 'fptosi'} double {safe} to {kind}")
    if mode == "wrap":
        whole = b.op(f"select i1 {outside}, {kind} {low or -(1 << 63)}, {kind} {whole}")
    elif mode == "sat":
        whole = b.op(f"select i1 {above}, {kind} {high if type_ != t.U64 else -1}, {kind} {whole}")
        whole = b.op(f"select i1 {below}, {kind} {low}, {kind} {whole}")
    return Scalar(type_, whole)


def _real(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    type_, value = expr.type, values[0]
    source = value.type
    if source == type_:
        return value
    if is_float(source):
        return rounded(f, type_, double(f, value))
    if isinstance(source, t.Decimal):
        return rounded(f, type_, decimals.to_real(f, value))
    if source == t.I128:
        return rounded(f, type_, f.b.call("double", "real_of_i128", [f"i128 {f.reg(value)}"]))
    if source == t.STRING:
        number, there = texts.real_in(f, type_, value)
        f.trap_if(f.b.op(f"xor i1 {there}, true"), "bad-parse", expr.site)
        return Scalar(type_, number)
    way = "uitofp" if source in (t.U64, t.BOOL) else "sitofp"
    return rounded(f, type_, f.b.op(f"{way} {kind_of(source)} {f.reg(value)} to double"))


def _narrow(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, x = f.b, f.reg(values[0])
    low, high = BOUNDS[t.I64]
    over, under = b.op(f"icmp sgt i128 {x}, {high}"), b.op(f"icmp slt i128 {x}, {low}")
    f.trap_if(b.op(f"or i1 {over}, {under}"), "overflow", expr.site)
    return Scalar(t.I64, b.op(f"trunc i128 {x} to i64"))


def _retyped(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(expr.type, f.reg(values[0]))


# -------------------------------------------------------------------------------------------------- floats


def _function(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    args = [f"double {double(f, value)}" for value in values]
    name = "llvm.sqrt.f64" if expr.operation == "sqrt" else functions.scalar(f.module, expr.operation)
    return rounded(f, expr.type, f.b.call("double", name, args))


def _fused(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    kind = kind_of(expr.type)
    args = [f"{kind} {f.reg(value)}" for value in values]
    return Scalar(expr.type, f.b.call(kind, f"llvm.fma.{'f32' if expr.type == t.F32 else 'f64'}", args))


def _rounded(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    if not is_float(values[0].type):
        raise Unsupported(f"`{expr.operation}` of {values[0].type}")
    x = double(f, values[0])
    if expr.operation != "round":
        return rounded(f, expr.type, b.op(f"call double @llvm.{expr.operation}.f64(double {x})"))
    cut = b.op(f"call double @llvm.trunc.f64(double {x})")
    rest = b.op(f"call double @llvm.fabs.f64(double {b.op(f'fsub double {x}, {cut}')})")
    one = b.op(f"call double @llvm.copysign.f64(double 1.0, double {x})")
    up = b.op(f"fcmp oge double {rest}, 0.5")
    found = b.op(f"select i1 {up}, double {b.op(f'fadd double {cut}, {one}')}, double {cut}")
    return rounded(f, expr.type, b.op(f"call double @llvm.copysign.f64(double {found}, double {x})"))


def _is_nan(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    kind, x = kind_of(values[0].type), f.reg(values[0])
    return Scalar(t.BOOL, f.b.op(f"fcmp uno {kind} {x}, {x}"))


def _special(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(expr.type, _INFINITY if expr.operation == "inf" else _NAN)


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys("+-*", _checked),
    **dict.fromkeys(("+%", "-%", "*%"), _wrapping),
    **dict.fromkeys(("neg", "neg%", "neg_wrap"), _negate),
    "abs": _absolute,
    **dict.fromkeys(("/", "div.trap"), _divide),
    **dict.fromkeys(
        ("div.trunc", "rem.trunc", "div.trunc.wrap", "rem.trunc.wrap", "div.floor", "mod.floor"), _whole_division
    ),
    **dict.fromkeys("&|^", _bitwise),
    "~": _invert,
    **dict.fromkeys(("<<", ">>", ">>>", "shl.trap", "shr.trap", "ushr.trap"), _shift),
    **dict.fromkeys(("==", "!=", "same"), _equal),
    **dict.fromkeys(_ORDER, _relation),
    "compare": _compare,
    **dict.fromkeys(("eq3", "ne3", "lt3", "le3", "gt3", "ge3"), _three_valued),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("sqlmin", "sqlmax"), _extreme3),
    **dict.fromkeys(("to_decimal", "rescale"), decimals.convert),
    "not": _not,
    **dict.fromkeys(("and3", "or3", "not3", "is_true"), _kleene),
    "is_none": _is_none,
    "force": _force,
    "coalesce": _coalesce,
    "zero": _zero,
    **dict.fromkeys([f"{name}{mode}" for name in ("i32", "i64", "u64", "i128") for mode in ("", ".sat", ".wrap")], _whole),
    **dict.fromkeys(("f32", "f64"), _real),
    "i64_of": _narrow,
    **dict.fromkeys(("time", "duration", "micros"), _retyped),
    **dict.fromkeys(("sqrt", *NAMES), _function),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), _rounded),
    "fma": _fused,
    "is_nan": _is_nan,
    **dict.fromkeys(("inf", "nan"), _special),
}  # fmt: skip
"""By operation: what computes it from its operands."""
