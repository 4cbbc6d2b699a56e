"""Operations on vectors, with the bits of the scalar ones (`lower.arithmetic`), and which lanes trap.

A lane that traps, or does not take part, goes on with some value: nothing here is undefined for any operand.
"""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from backends.native.idioms import counted
from backends.native.ir import hexadecimal
from backends.native.lanes.leaves import SCALARS
from backends.native.layout import register
from backends.native.lower import functions
from river.lang import types as t
from river.lang.operations.functions import NAMES
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.ir import Builder
    from backends.native.lower.frame import Frame
    from river.lang import typed

    Rule = Callable[["RuleContext", typed.Apply, Sequence[str], Sequence[t.Type]], str]

_BITS: Final = {"i1": 1, "i32": 32, "i64": 64}
_NAN: Final = "0x7FF8000000000000"
_WHOLE: Final = (t.I32, t.I64, t.U64)


class RuleContext(Protocol):
    """What a rule works with."""

    f: Frame
    lanes: int

    @property
    def b(self) -> Builder:
        """Where instructions go."""
        ...

    def declare(self, text: str) -> None:
        """Declares an intrinsic."""
        ...

    def hit(self, lanes: str) -> None:
        """These lanes trap."""
        ...


def kind(type_: t.Type) -> str:
    """The LLVM type of an element in a register."""
    found = register(type_)
    assert found is not None  # noqa: S101 - of a leaf
    return found


def vector(g: RuleContext, kind_: str) -> str:
    """The vector type of elements of an LLVM type."""
    return f"<{g.lanes} x {kind_}>"


def splat(g: RuleContext, kind_: str, element: str) -> str:
    """A vector of one element."""
    wide = vector(g, kind_)
    first = g.b.op(f"insertelement {wide} poison, {kind_} {element}, i64 0")
    return g.b.op(f"shufflevector {wide} {first}, {wide} poison, <{g.lanes} x i32> zeroinitializer")


def _intrinsic(g: RuleContext, name: str, kind_: str, result: str, *args: str) -> str:
    """A call of an intrinsic on vectors of a kind; all arguments are of it."""
    wide = vector(g, kind_)
    short = {"float": "f32", "double": "f64"}.get(kind_, kind_)
    full = f"@llvm.{name}.v{g.lanes}{short}"
    g.declare(f"declare {result} {full}({', '.join([wide] * len(args))})")
    return g.b.op(f"call {result} {full}({', '.join(f'{wide} {arg}' for arg in args)})")


def _not(g: RuleContext, mask: str) -> str:
    return g.b.op(f"xor {vector(g, 'i1')} {mask}, {splat(g, 'i1', 'true')}")


def _select(g: RuleContext, mask: str, wide: str, then: str, other: str) -> str:
    return g.b.op(f"select {vector(g, 'i1')} {mask}, {wide} {then}, {wide} {other}")


# -------------------------------------------------------------------------------------------- arithmetic

_NAMES: Final = {"+": "add", "-": "sub", "*": "mul"}


def _checked(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    name, k = _NAMES[expr.operation], kind(expr.type)
    wide = vector(g, k)
    if expr.type in t.FLOATS:
        return g.b.op(f"f{name} {wide} {args[0]}, {args[1]}")
    pair = f"{{{wide}, {vector(g, 'i1')}}}"
    sign = "u" if expr.type == t.U64 else "s"
    both = _intrinsic(g, f"{sign}{name}.with.overflow", k, pair, *args)
    g.hit(g.b.op(f"extractvalue {pair} {both}, 1"))
    return g.b.op(f"extractvalue {pair} {both}, 0")


def _wrapping(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    return g.b.op(f"{_NAMES[expr.operation[0]]} {vector(g, kind(expr.type))} {args[0]}, {args[1]}")


def _negate(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    k = kind(expr.type)
    wide = vector(g, k)
    if expr.type in t.FLOATS:
        return g.b.op(f"fneg {wide} {args[0]}")
    if expr.operation == "neg":
        relation, edge = ("ne", 0) if expr.type == t.U64 else ("eq", -(1 << _BITS[k] - 1))
        g.hit(g.b.op(f"icmp {relation} {wide} {args[0]}, {splat(g, k, str(edge))}"))
    return g.b.op(f"sub {wide} zeroinitializer, {args[0]}")


def _absolute(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    k = kind(expr.type)
    wide = vector(g, k)
    if expr.type in t.FLOATS:
        return _intrinsic(g, "fabs", k, wide, args[0])
    if expr.type == t.U64:
        return args[0]
    g.hit(g.b.op(f"icmp eq {wide} {args[0]}, {splat(g, k, str(-(1 << _BITS[k] - 1)))}"))
    negative = g.b.op(f"icmp slt {wide} {args[0]}, zeroinitializer")
    return _select(g, negative, wide, g.b.op(f"sub {wide} zeroinitializer, {args[0]}"), args[0])


def _divide(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    wide = vector(g, kind(expr.type))
    if expr.operation == "div.trap":
        g.hit(g.b.op(f"fcmp oeq {wide} {args[1]}, zeroinitializer"))
    return g.b.op(f"fdiv {wide} {args[0]}, {args[1]}")


def _whole_division(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    b, name, type_ = g.b, expr.operation, types[0]
    if type_ in t.FLOATS:
        return _rounded(
            g, expr.type, _by_lane(g, "fmod", [_double(g, *each) for each in zip(types, args, strict=True)])
        )
    k, (x, y), quotient = kind(type_), args, name.startswith("div")
    wide, masks = vector(g, k), vector(g, "i1")
    bad = b.op(f"icmp eq {wide} {y}, zeroinitializer")
    g.hit(bad)
    if type_ == t.U64:
        y = _select(g, bad, wide, splat(g, k, "1"), y)
        return b.op(f"{'udiv' if quotient else 'urem'} {wide} {x}, {y}")
    low = b.op(f"icmp eq {wide} {x}, {splat(g, k, str(-(1 << _BITS[k] - 1)))}")
    edge = b.op(f"and {masks} {low}, {b.op(f'icmp eq {wide} {y}, {splat(g, k, str(-1))}')}")
    if not name.endswith(".wrap"):
        g.hit(edge)
    y = _select(g, b.op(f"or {masks} {bad}, {edge}"), wide, splat(g, k, "1"), y)
    q, r = b.op(f"sdiv {wide} {x}, {y}"), b.op(f"srem {wide} {x}, {y}")
    if "floor" in name:
        inexact = b.op(f"icmp ne {wide} {r}, zeroinitializer")
        signs = b.op(f"icmp slt {wide} {b.op(f'xor {wide} {r}, {y}')}, zeroinitializer")
        fix = b.op(f"and {masks} {inexact}, {signs}")
        q = b.op(f"sub {wide} {q}, {b.op(f'zext {masks} {fix} to {wide}')}")
        r = _select(g, fix, wide, b.op(f"add {wide} {r}, {y}"), r)
    return q if quotient else r


# -------------------------------------------------------------------------------------------------- bits


def _bitwise(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    name = {"&": "and", "|": "or", "^": "xor"}[expr.operation]
    return g.b.op(f"{name} {vector(g, kind(expr.type))} {args[0]}, {args[1]}")


def _invert(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    k = kind(expr.type)
    return g.b.op(f"xor {vector(g, k)} {args[0]}, {splat(g, k, 'true' if k == 'i1' else '-1')}")


def _shift(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    name, k = expr.operation, kind(expr.type)
    wide, bits = vector(g, k), _BITS[k]
    if name.endswith(".trap"):
        g.hit(g.b.op(f"icmp uge {wide} {args[1]}, {splat(g, k, str(bits))}"))
    count = g.b.op(f"and {wide} {args[1]}, {splat(g, k, str(bits - 1))}")
    left = name in ("<<", "shl.trap")
    zeros = name in (">>>", "ushr.trap") or expr.type == t.U64
    return g.b.op(f"{'shl' if left else 'lshr' if zeros else 'ashr'} {wide} {args[0]}, {count}")


# -------------------------------------------------------------------------------------------- comparison

_ORDER: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def _less(g: RuleContext, relation: str, type_: t.Type, x: str, y: str) -> str:
    wide, name = vector(g, kind(type_)), _ORDER[relation]
    if type_ in t.FLOATS:
        return g.b.op(f"fcmp o{name} {wide} {x}, {y}")
    return g.b.op(f"icmp {'u' if type_ in (t.U64, t.BOOL) else 's'}{name} {wide} {x}, {y}")


def _relation(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    return _less(g, expr.operation, types[0], *args)


def _equal(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    (x, y), b, wide, masks = args, g.b, vector(g, kind(types[0])), vector(g, "i1")
    if types[0] not in t.FLOATS:
        return b.op(f"icmp {'ne' if expr.operation == '!=' else 'eq'} {wide} {x}, {y}")
    if expr.operation != "same":
        return b.op(f"fcmp {'une' if expr.operation == '!=' else 'oeq'} {wide} {x}, {y}")
    undefined = b.op(f"and {masks} {b.op(f'fcmp uno {wide} {x}, {x}')}, {b.op(f'fcmp uno {wide} {y}, {y}')}")
    return b.op(f"or {masks} {b.op(f'fcmp oeq {wide} {x}, {y}')}, {undefined}")


def _extreme(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    (x, y), k = args, kind(expr.type)
    wide = vector(g, k)
    found = _select(g, _less(g, "<" if expr.operation == "min" else ">", expr.type, y, x), wide, y, x)
    if expr.type not in t.FLOATS:
        return found
    return _select(g, g.b.op(f"fcmp uno {wide} {x}, {y}"), wide, splat(g, k, _NAN), found)


def _compare(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    b, (x, y), wide = g.b, args, vector(g, "i64")

    def before(p: str, q: str) -> str:
        found = _less(g, "<", types[0], p, q)
        if types[0] in t.FLOATS:
            each, masks = vector(g, kind(types[0])), vector(g, "i1")
            last = b.op(
                f"and {masks} {b.op(f'fcmp ord {each} {p}, {p}')}, {b.op(f'fcmp uno {each} {q}, {q}')}"
            )
            found = b.op(f"or {masks} {found}, {last}")
        return b.op(f"zext {vector(g, 'i1')} {found} to {wide}")

    return b.op(f"sub {wide} {before(y, x)}, {before(x, y)}")


def _negation(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    return _not(g, args[0])


# ------------------------------------------------------------------------------------------- conversions


def _double(g: RuleContext, type_: t.Type, reg: str) -> str:
    if type_ != t.F32:
        return reg
    return g.b.op(f"fpext {vector(g, 'float')} {reg} to {vector(g, 'double')}")


def _rounded(g: RuleContext, type_: t.Type, reg: str) -> str:
    if type_ != t.F32:
        return reg
    return g.b.op(f"fptrunc {vector(g, 'double')} {reg} to {vector(g, 'float')}")


def _real(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    source = types[0]
    if source == expr.type:
        return args[0]
    if source in t.FLOATS:
        return _rounded(g, expr.type, _double(g, source, args[0]))
    way = "uitofp" if source in (t.U64, t.BOOL) else "sitofp"
    return _rounded(
        g, expr.type, g.b.op(f"{way} {vector(g, kind(source))} {args[0]} to {vector(g, 'double')}")
    )


def _whole(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    """The conversions named after whole types, with `.sat` and `.wrap`."""
    type_, source, mode = expr.type, types[0], expr.operation.partition(".")[2]
    if source == type_:
        return args[0]
    if source in t.FLOATS:
        return _whole_of_float(g, type_, _double(g, source, args[0]), mode)
    b, k, found = g.b, kind(source), args[0]
    wide, wanted = vector(g, k), vector(g, kind(type_))
    low, high = BOUNDS[type_]
    least, most = (0, 1) if source == t.BOOL else BOUNDS[source]
    signed = source in (t.I32, t.I64)
    if mode != "wrap":
        sign = "s" if signed else "u"
        for edge, relation, outside in ((high, "gt", high < most), (low, "lt", low > least)):
            if outside:
                limit = splat(g, k, str(edge))
                beyond = b.op(f"icmp {sign}{relation} {wide} {found}, {limit}")
                if mode == "sat":
                    found = _select(g, beyond, wide, limit, found)
                else:
                    g.hit(beyond)
    if _BITS[k] == _BITS[kind(type_)]:
        return found
    way = "trunc" if _BITS[k] > _BITS[kind(type_)] else "sext" if signed else "zext"
    return b.op(f"{way} {wide} {found} to {wanted}")


def _whole_of_float(g: RuleContext, type_: t.Type, x: str, mode: str) -> str:
    b, (low, high), k = g.b, BOUNDS[type_], kind(type_)
    doubles, masks, wide = vector(g, "double"), vector(g, "i1"), vector(g, k)
    cut = _intrinsic(g, "trunc", "double", doubles, x)
    above = b.op(f"fcmp oge {doubles} {cut}, {splat(g, 'double', hexadecimal(float(high + 1)))}")
    below = b.op(f"fcmp olt {doubles} {cut}, {splat(g, 'double', hexadecimal(float(low)))}")
    undefined = b.op(f"fcmp uno {doubles} {cut}, zeroinitializer")
    outside = b.op(f"or {masks} {b.op(f'or {masks} {above}, {below}')}, {undefined}")
    if not mode:
        g.hit(outside)
    safe = _select(g, outside, doubles, "zeroinitializer", cut)
    whole = b.op(f"{'fptoui' if type_ == t.U64 else 'fptosi'} {doubles} {safe} to {wide}")
    if mode == "wrap":
        return _select(g, outside, wide, splat(g, k, str(low or -(1 << 63))), whole)
    if mode == "sat":
        whole = _select(g, above, wide, splat(g, k, str(high if type_ != t.U64 else -1)), whole)
        whole = _select(g, below, wide, splat(g, k, str(low)), whole)
    return whole


# ------------------------------------------------------------------------------------------------ floats


def _stored(g: RuleContext, kind_: str, args: Sequence[str]) -> list[str]:
    """Memory with vectors in it."""
    places: list[str] = []
    for arg in args:
        place = g.b.slot(f"[{g.lanes} x {kind_}]")
        g.b.slots[-1] = g.b.slots[-1].replace("align 16", "align 64")
        g.b.do(f"store {vector(g, kind_)} {arg}, ptr {place}, align 16")
        places.append(place)
    return places


def _by_lane(g: RuleContext, name: str, args: Sequence[str]) -> str:
    """A function of the C library, lane by lane: its bits are those of the scalar code."""
    b, doubles = g.b, vector(g, "double")
    places = _stored(g, "double", args)

    def one(i: str) -> None:
        at = [b.op(f"getelementptr inbounds double, ptr {place}, i64 {i}") for place in places]
        values = ", ".join(f"double {b.op(f'load double, ptr {place}')}" for place in at)
        b.do(f"store double {b.op(f'call double @river_{name}({values})')}, ptr {at[0]}")

    counted(b, str(g.lanes), one)
    return b.op(f"load {doubles}, ptr {places[0]}, align 16")


def _function(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    b, k = g.b, kind(expr.type)
    if expr.operation == "sqrt":
        values = [_double(g, *each) for each in zip(types, args, strict=True)]
        return _rounded(g, expr.type, _intrinsic(g, "sqrt", "double", vector(g, "double"), *values))
    places = _stored(g, k, args)
    name = functions.grouped(g.f.module, expr.operation, k)
    groups = f"i64 {g.lanes // functions.GROUP}"
    b.call("void", name, [f"ptr {places[0]}", *(f"ptr {place}" for place in places), groups])
    return b.op(f"load {vector(g, k)}, ptr {places[0]}, align 16")


def _fused(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    k = kind(expr.type)
    return _intrinsic(g, "fma", k, vector(g, k), *args)


def _cut(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    """floor, ceil, trunc, round: exact in the type itself."""
    b, k, x = g.b, kind(expr.type), args[0]
    wide = vector(g, k)
    if expr.operation != "round":
        return _intrinsic(g, expr.operation, k, wide, x)
    cut = _intrinsic(g, "trunc", k, wide, x)
    rest = _intrinsic(g, "fabs", k, wide, b.op(f"fsub {wide} {x}, {cut}"))
    one = _intrinsic(g, "copysign", k, wide, splat(g, k, "1.0"), x)
    up = b.op(f"fcmp oge {wide} {rest}, {splat(g, k, '0.5')}")
    found = _select(g, up, wide, b.op(f"fadd {wide} {cut}, {one}"), cut)
    return _intrinsic(g, "copysign", k, wide, found, x)


def _is_nan(g: RuleContext, expr: typed.Apply, args: Sequence[str], types: Sequence[t.Type]) -> str:
    return g.b.op(f"fcmp uno {vector(g, kind(types[0]))} {args[0]}, zeroinitializer")


_NUMBERS: Final = (*_WHOLE, t.F32, t.F64)
_TIMES: Final = (t.TIME, t.DURATION)
_ANY: Final = SCALARS
_FLOATS: Final = (t.F32, t.F64)

RULES: Final[dict[str, tuple[Rule, tuple[t.Type, ...]]]] = {
    **dict.fromkeys("+-*", (_checked, (*_NUMBERS, *_TIMES))),
    **dict.fromkeys(("+%", "-%", "*%"), (_wrapping, _WHOLE)),
    **dict.fromkeys(("neg", "neg%", "neg_wrap"), (_negate, _NUMBERS)),
    "abs": (_absolute, _NUMBERS),
    **dict.fromkeys(("/", "div.trap"), (_divide, _FLOATS)),
    **dict.fromkeys(
        ("div.trunc", "rem.trunc", "div.trunc.wrap", "rem.trunc.wrap", "div.floor", "mod.floor"),
        (_whole_division, _NUMBERS),
    ),
    **dict.fromkeys("&|^", (_bitwise, (t.BOOL, *_WHOLE))),
    "~": (_invert, _WHOLE),
    **dict.fromkeys(("<<", ">>", ">>>", "shl.trap", "shr.trap", "ushr.trap"), (_shift, _WHOLE)),
    **dict.fromkeys(("==", "!=", "same"), (_equal, _ANY)),
    **dict.fromkeys(_ORDER, (_relation, _ANY)),
    "compare": (_compare, _ANY),
    **dict.fromkeys(("min", "max"), (_extreme, _ANY)),
    "not": (_negation, (t.BOOL,)),
    **dict.fromkeys(
        [f"{name}{mode}" for name in ("i32", "i64", "u64") for mode in ("", ".sat", ".wrap")],
        (_whole, (t.BOOL, *_NUMBERS)),
    ),
    **dict.fromkeys(("f32", "f64"), (_real, (t.BOOL, *_NUMBERS))),
    **dict.fromkeys(("sqrt", *NAMES), (_function, _FLOATS)),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), (_cut, _FLOATS)),
    "fma": (_fused, _FLOATS),
    "is_nan": (_is_nan, _FLOATS),
}
"""By operation: what computes it, and of which operands."""


def fills(expr: typed.Apply) -> bool:
    """Whether an operation makes an array of one value, which needs no rule."""
    return expr.operation == "fill" and isinstance(expr.type, t.Array) and len(expr.args) == 1


def covered(expr: typed.Apply) -> bool:
    """Whether there is a rule for an operation on these operands."""
    found = RULES.get(expr.operation)
    return found is not None and expr.type in SCALARS and all(arg.type in found[1] for arg in expr.args)
