"""Every line of the table: its result, its traps, and its types."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from river.lang import types as t
from river.lang import values as v
from river.lang.operations import OPERATIONS, Signature, effect_of, traps_of
from river.lang.patterns import compile_pattern
from river.lang.values import BOUNDS, NAN, TrapSignal

INF = math.inf
I32, I64, U64, I128, F32, F64 = t.I32, t.I64, t.U64, t.I128, t.F32, t.F64
BOOL, STRING, BYTES, TIME, DURATION = t.BOOL, t.STRING, t.BYTES, t.TIME, t.DURATION
MAYBE, TRUTH = t.Optional(I64), t.Optional(BOOL)
MAX, MIN = (1 << 63) - 1, -(1 << 63)
INTS, STRINGS = t.List(I64), t.List(STRING)
ARRAY, QUEUE, BAG = t.Array(I64, 3), t.Deque(I64), t.Bag(F64)
MAP, OMAP, FMAP = t.Map(STRING, I64), t.OMap(I64, STRING), t.Map(F64, I64)
MONEY = t.Decimal(6, 2)
SECOND = 1_000_000


def apply(name: str, types: tuple[t.Type, ...], args: tuple[Any, ...], wanted: t.Type | None = None) -> Any:
    """The result of an operation, applied as the evaluator does."""
    operation = OPERATIONS[name]
    signature = operation.rule(types, wanted)
    assert signature is not None, (name, types)
    assert len(signature.params) == len(types)
    result = operation.meaning(signature.params, signature.result)(*args)
    return result[1] if operation.mutates == "value" else result


def omap(*pairs: tuple[int, str]) -> v.OMap:
    return v.OMap(None, pairs)


def total(*numbers: float) -> v.Sum:
    found = v.ZERO_SUM
    for number in numbers:
        found = v.add_to_sum(found, number)
    return found


def nan(value: Any) -> bool:
    return value is NAN


def rx(pattern: str):
    return compile_pattern(pattern)


# name, operand types, operands, result (or a test of it), type wanted
Case = (
    tuple[str, tuple[t.Type, ...], tuple[Any, ...], Any]
    | tuple[str, tuple[t.Type, ...], tuple[Any, ...], Any, t.Type]
)
CASES: list[Case] = [
    ("format", (STRING, I64), ("%05d", -42), "-0042"),
    ("format", (STRING, F64), ("%8.3f", 2.5), "   2.500"), ("format", (STRING, U64), ("%#x", 255), "0xff"),
    ("format", (STRING, I64), ("%#x", 0), "0"), ("format", (STRING, I64), ("%#5o", 8), "  010"),
    ("format", (STRING, I64), ("%#.0o", 0), "0"), ("format", (STRING, I64), ("%+.0d", 0), "+"),
    ("parse_utf8", (BYTES,), (b"\xc3\xa9",), "\u00e9"), ("parse_utf8", (BYTES,), (b"\xc3",), None),
    ("+", (I64, I64), (2, 3), 5), ("+", (I64, I64), (MAX, -1), MAX - 1), ("+", (F64, F64),
    (0.1, 0.2), 0.30000000000000004),
    ("+", (F64, F64), (1e308, 1e308), INF), ("+", (F64, F64), (INF, -INF), nan), ("+", (F32, F32),
    (1.0, 2.0**-30), 1.0),
    ("+", (F32, F32), (3e38, 3e38), INF), ("+", (STRING, STRING), ("a", "b"), "ab"), ("+", (BYTES, BYTES),
    (b"a", b"b"), b"ab"),
    ("+", (TIME, DURATION), (5, 3), 8), ("+", (DURATION, TIME), (5, 3), 8), ("+", (MONEY, MONEY),
    (150, 250), 400),
    ("+", (t.Decimal(4, 1), t.Decimal(4, 3)), (15, 1), 1501), ("+", (U64, U64), (1, 2), 3),
    ("+", (I128, I128), (MAX, 1), MAX + 1),
    ("-", (I32, I32), (2, 3), -1), ("-", (F64, F64), (INF, INF), nan), ("-", (TIME, TIME), (9, 4), 5),
    ("-", (TIME, DURATION), (9, 4), 5),
    ("-", (DURATION, DURATION), (1, 4), -3), ("-", (F32, F32), (1.0, 2.0**-30), 1.0), ("-", (MONEY, MONEY),
    (1, 2), -1),
    ("*", (I64, I64), (-4, 3), -12), ("*", (F64, F64), (0.0, INF), nan), ("*", (DURATION, I64), (3, 4), 12),
    ("*", (I64, DURATION), (3, 4), 12), ("*", (MONEY, MONEY), (150, 200), 30000), ("*", (F32, F32),
    (1e20, 1e20), INF),
    ("+%", (I64, I64), (MAX, 1), MIN), ("+%", (U64, U64), ((1 << 64) - 1, 2), 1), ("-%", (I32, I32),
    (-(1 << 31), 1), (1 << 31) - 1),
    ("-%", (U64, U64), (0, 1), (1 << 64) - 1), ("*%", (I64, I64), (MAX, 2), -2), ("*%", (I32, I32),
    (3, 5), 15),
    ("neg", (I64,), (5,), -5), ("neg", (F64,), (0.0,), lambda x: repr(x) == "-0.0"), ("neg", (MONEY,),
    (5,), -5), ("neg", (F64,), (NAN,), nan),
    ("neg", (U64,), (0,), 0), ("neg%", (I64,), (MIN,), MIN), ("neg%", (U64,), (1,), (1 << 64) - 1),
    ("neg_wrap", (I32,), (7,), -7),
    ("abs", (I64,), (-5,), 5), ("abs", (F64,), (-0.0,), lambda x: repr(x) == "0.0"), ("abs", (F32,),
    (NAN,), nan), ("abs", (DURATION,), (-2,), 2),
    ("/", (F64, F64), (1.0, 4.0), 0.25), ("/", (F64, F64), (1.0, 0.0), INF), ("/", (F64, F64),
    (1.0, -0.0), -INF),
    ("/", (F64, F64), (-1.0, 0.0), -INF), ("/", (F64, F64), (0.0, 0.0), nan), ("/", (F64, F64),
    (NAN, 0.0), nan),
    ("/", (F64, F64), (INF, INF), nan), ("/", (F64, F64), (1.0, NAN), nan), ("/", (F32, F32),
    (1.0, 3.0), v.single(1 / 3)),
    ("/", (MONEY, MONEY), (100, 300), 33), ("/", (MONEY, MONEY), (200, 300), 67), ("/", (MONEY, MONEY),
    (-100, 800), -13),
    ("/", (MONEY, MONEY), (100, 300), 3333, t.Decimal(8, 4)), ("/", (t.Decimal(9, 4), t.Decimal(9, 0)),
    (12345, 2), 6, t.Decimal(9, 1)),
    ("div.trap", (F64, F64), (1.0, 4.0), 0.25), ("div.trap", (F32, F32), (1.0, 3.0), v.single(1 / 3)),
    ("div.trap", (F64, F64), (1.0, NAN), nan),
    ("div.trunc", (I64, I64), (-7, 2), -3), ("div.trunc", (I64, I64), (7, -2), -3), ("div.trunc", (I64, I64),
    (-7, -2), 3),
    ("div.trunc", (DURATION, I64), (-7, 2), -3), ("div.trunc", (DURATION, DURATION), (7, 2), 3),
    ("div.trunc", (U64, U64), (7, 2), 3),
    ("rem.trunc", (I64, I64), (-7, 2), -1), ("rem.trunc", (I64, I64), (7, -2), 1), ("rem.trunc", (F64, F64),
    (-5.5, 2.0), -1.5),
    ("rem.trunc", (F64, F64), (1.0, 0.0), nan), ("rem.trunc", (F64, F64), (INF, 2.0), nan),
    ("rem.trunc", (F64, F64), (2.0, INF), 2.0),
    ("rem.trunc", (MONEY, MONEY), (-700, 300), -100), ("rem.trunc", (F32, F32), (5.5, 2.0), 1.5),
    ("rem.trunc", (DURATION, DURATION), (-7, 2), -1),
    ("div.trunc.wrap", (I64, I64), (MIN, -1), MIN), ("div.trunc.wrap", (I32, I32), (-7, 2), -3),
    ("rem.trunc.wrap", (I64, I64), (MIN, -1), 0), ("rem.trunc.wrap", (I64, I64), (-7, 2), -1),
    ("div.floor", (I64, I64), (-7, 2), -4), ("div.floor", (TIME, DURATION), (-7, 2), -4),
    ("mod.floor", (I64, I64), (-7, 2), 1),
    ("mod.floor", (I64, I64), (7, -2), -1), ("mod.floor", (TIME, DURATION), (-7, 5), 3),
    ("mod.floor", (U64, U64), (7, 4), 3),
    ("&", (I64, I64), (-4, 7), 4), ("&", (BOOL, BOOL), (True, False), False), ("|", (I64, I64), (4, 1), 5),
    ("^", (I64, I64), (-1, 1), -2),
    ("~", (I64,), (0,), -1), ("~", (U64,), (0,), (1 << 64) - 1), ("<<", (I64, I64), (1, 63), MIN),
    ("<<", (I64, I64), (1, 65), 2),
    ("<<", (I32, I32), (3, 31), -(1 << 31)), ("<<", (I64, I64), (1, -1), MIN), (">>", (I64, I64),
    (-8, 1), -4), (">>", (U64, U64), (1 << 63, 63), 1),
    (">>>", (I64, I64), (-1, 1), MAX), (">>>", (I32, I32), (-1, 28), 15), (">>>", (I128, I128), (-1, 127), 1),
    ("shl.trap", (I64, I64), (1, 63), MIN), ("shr.trap", (I64, I64), (-8, 1), -4), ("ushr.trap", (I64, I64),
    (-1, 63), 1),
    ("min", (I64, I64), (2, 1), 1), ("min", (F64, F64), (NAN, 1.0), nan), ("min", (F64, F64),
    (1.0, NAN), nan), ("min", (STRING, STRING), ("b", "a"), "a"),
    ("max", (I64, I64), (2, 1), 2), ("max", (F64, F64), (NAN, 1.0), nan), ("max", (TIME, TIME), (1, 2), 2),
    ("sqlmin", (MAYBE, MAYBE), (None, 1), 1), ("sqlmin", (MAYBE, MAYBE), (2, None), 2),
    ("sqlmin", (I64, I64), (2, 1), 1),
    ("sqlmin", (F64, F64), (NAN, 1.0), 1.0), ("sqlmin", (MAYBE, MAYBE), (None, None), None),
    ("sqlmax", (F64, F64), (NAN, 1.0), nan),
    ("sqlmax", (MAYBE, I64), (None, 1), 1),
    ("sqrt", (F64,), (9.0,), 3.0), ("sqrt", (F64,), (-1.0,), nan), ("sqrt", (F32,),
    (2.0,), v.single(math.sqrt(2))),
    ("exp", (F64,), (1000.0,), INF), ("exp", (F64,), (-1000.0,), 0.0), ("exp", (F64,), (NAN,), nan),
    ("exp", (F64,), (0.0,), 1.0),
    ("log", (F64,), (0.0,), -INF), ("log", (F64,), (-1.0,), nan), ("log", (F64,), (1.0,), 0.0),
    ("log", (F64,), (NAN,), nan),
    ("log2", (F64,), (8.0,), 3.0), ("log2", (F64,), (-0.0,), -INF), ("log10", (F64,), (1000.0,), 3.0),
    ("log10", (F64,), (INF,), INF),
    ("pow", (F64, F64), (2.0, 10.0), 1024.0), ("pow", (F64, F64), (0.0, -1.0), INF), ("pow", (F64, F64),
    (-0.0, -1.0), -INF),
    ("pow", (F64, F64), (-0.0, -2.0), INF), ("pow", (F64, F64), (-8.0, 0.5), nan), ("pow", (F64, F64),
    (1.0, NAN), 1.0),
    ("pow", (F64, F64), (NAN, 0.0), 1.0), ("pow", (F64, F64), (10.0, 400.0), INF), ("pow", (F64, F64),
    (-10.0, 401.0), -INF),
    ("pow", (F32, F32), (10.0, 39.0), INF),
    ("fma", (F64,) * 3, (2.0, 3.0, 4.0), 10.0), ("fma", (F64,) * 3, (1e308, 1e308, -INF), -INF),
    ("fma", (F64,) * 3, (1e308, 10.0, -1e308), INF), ("fma", (F64,) * 3, (0.0, INF, 1.0), nan),
    ("fma", (F64,) * 3, (-1e-300, 1e-300, 0.0), lambda x: repr(x) == "-0.0"),
    ("fma", (F64,) * 3, (-1.0, 0.0, 0.0), lambda x: repr(x) == "0.0"),
    ("fma", (F64,) * 3, (1 + 2.0**-30, 1 - 2.0**-30, -1.0), -(2.0**-60)),
    ("fma", (F32,) * 3, (1 + 2.0**-23, 1 + 2.0**-23, 2.0**30), v.single(2.0**30 + 1)),
    ("fma", (F32,) * 3, (1 + 2.0**-23, 2.0**24, 2.0**-60), v.single(2.0**24 + 2)),
    ("fma", (F32,) * 3, (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60), 1 + 2.0**-11 + 2.0**-23),
    ("fma", (F32,) * 3, (1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-60)), 1 + 2.0**-11),
    ("fma", (F32,) * 3, (3e38, 10.0, -3e38), INF), ("fma", (F32,) * 3, (NAN, 1.0, 1.0), nan),
    ("sin", (F64,), (0.0,), 0.0), ("sin", (F64,), (INF,), nan), ("cos", (F64,), (0.0,), 1.0), ("cos", (F64,),
    (-INF,), nan),
    ("tan", (F64,), (0.0,), 0.0), ("tan", (F64,), (INF,), nan), ("asin", (F64,), (1.0,), math.pi / 2),
    ("asin", (F64,), (2.0,), nan),
    ("acos", (F64,), (1.0,), 0.0), ("acos", (F64,), (-2.0,), nan), ("atan", (F64,), (INF,), math.pi / 2),
    ("atan2", (F64, F64), (0.0, -1.0), math.pi),
    ("sinh", (F64,), (-1000.0,), -INF), ("sinh", (F64,), (0.0,), 0.0), ("cosh", (F64,), (-1000.0,), INF),
    ("cosh", (F64,), (0.0,), 1.0),
    ("tanh", (F64,), (1000.0,), 1.0), ("tanh", (F64,), (NAN,), nan),
    ("floor", (F64,), (-1.5,), -2.0), ("floor", (F64,), (-0.0,), lambda x: repr(x) == "-0.0"),
    ("floor", (F64,), (1e300,), 1e300),
    ("floor", (F64,), (NAN,), nan), ("floor", (F32,), (1.5,), 1.0), ("ceil", (F64,),
    (-0.5,), lambda x: repr(x) == "-0.0"), ("ceil", (F64,), (1.2,), 2.0),
    ("ceil", (F64,), (INF,), INF), ("round", (F64,), (2.5,), 3.0), ("round", (F64,), (-2.5,), -3.0),
    ("round", (F64,), (0.49999999999999994,), 0.0),
    ("round", (F64,), (4503599627370495.5,), 4503599627370496.0), ("trunc", (F64,), (-1.7,), -1.0),
    ("trunc", (F64,), (-INF,), -INF),
    ("is_nan", (F64,), (NAN,), True), ("is_nan", (F32,), (1.0,), False), ("inf", (), (), INF), ("nan", (),
    (), nan, F32),
    ("==", (F64, F64), (NAN, NAN), False), ("==", (F64, F64), (0.0, -0.0), True),
    ("==", (t.Optional(F64),) * 2, (NAN, NAN), True),
    ("==", (INTS, INTS), ([1, 2], (1, 2)), True), ("==", (MAP, MAP),
    ({"a": 1, "b": 2}, v.FrozenMap(b=2, a=1)), True),
    ("==", (t.Decimal(4, 1), t.Decimal(6, 3)), (15, 1500), True), ("==", (STRING, STRING),
    ("a", "b"), False), ("==", (MONEY, MONEY), (1, 1), True),
    ("!=", (F64, F64), (NAN, NAN), True), ("!=", (t.Tuple((F64,)),) * 2, ((NAN,), (NAN,)), False),
    ("!=", (I64, I64), (1, 2), True),
    ("!=", (t.Decimal(4, 1), t.Decimal(6, 3)), (15, 1501), True),
    ("same", (F64, F64), (NAN, NAN), True), ("same", (F64, F64), (0.0, -0.0), True), ("same", (QUEUE, QUEUE),
    ((1,), v.thaw(QUEUE, (1,))), True),
    ("same", (BAG, BAG), (v.Bag([1.0, 2.0]), v.FrozenBag([2.0, 1.0])), True),
    ("compare", (F64, F64), (NAN, INF), 1), ("compare", (MAYBE, MAYBE), (None, MIN), -1),
    ("compare", (INTS, INTS), ([1, 2], (1, 2)), 0),
    ("<", (I64, I64), (1, 2), True), ("<", (F64, F64), (1.0, NAN), False), ("<", (STRING, STRING),
    ("B", "a"), True),
    ("<", (t.Decimal(4, 1), t.Decimal(6, 3)), (15, 1501), True), ("<=", (I64, I64), (2, 2), True),
    (">", (TIME, TIME), (1, 2), False),
    (">=", (BOOL, BOOL), (True, False), True), (">=", (F64, F64), (NAN, NAN), False),
    ("eq3", (MAYBE, MAYBE), (None, None), None), ("eq3", (MAYBE, I64), (1, 1), True), ("eq3", (F64, F64),
    (NAN, NAN), True),
    ("ne3", (MAYBE, I64), (1, 2), True), ("ne3", (MAYBE, I64), (None, 2), None), ("lt3", (MAYBE, I64),
    (1, 2), True), ("lt3", (F64, F64), (INF, NAN), True),
    ("le3", (MAYBE, I64), (None, 2), None), ("le3", (I64, I64), (2, 2), True), ("gt3", (MAYBE, I64),
    (3, 2), True), ("ge3", (MAYBE, I64), (1, 2), False),
    ("not", (BOOL,), (True,), False), ("and3", (TRUTH, TRUTH), (None, False), False),
    ("and3", (TRUTH, TRUTH), (None, True), None),
    ("and3", (BOOL, BOOL), (True, True), True), ("or3", (TRUTH, TRUTH), (None, True), True),
    ("or3", (TRUTH, TRUTH), (None, False), None),
    ("or3", (BOOL, BOOL), (False, False), False), ("not3", (TRUTH,), (None,), None), ("not3", (TRUTH,),
    (False,), True),
    ("is_true", (TRUTH,), (None,), False), ("is_true", (TRUTH,), (True,), True), ("is_none", (MAYBE,),
    (None,), True), ("is_none", (MAYBE,), (0,), False),
    ("hash64", (I64,), (5,), v.hash64(I64, 5)), ("hash64", (INTS,), ([5],), v.hash64(INTS, (5,))),
    ("i32", (I64,), (5,), 5), ("i32", (BOOL,), (True,), lambda x: type(x) is int and x == 1), ("i32", (F64,),
    (-1.9,), -1),
    ("i64", (MONEY,), (-199,), -1), ("i64", (F64,), (-2.0**63,), MIN), ("i64", (STRING,), ("-12",), -12),
    ("i64", (TIME,), (7,), 7),
    ("u64", (I64,), (5,), 5), ("u64", (F64,), (2.0**63,), 1 << 63), ("i128", (U64,), ((1 << 64) - 1,),
    (1 << 64) - 1), ("i128", (F64,), (1e30,), int(1e30)),
    ("i32.sat", (I64,), (MAX,), (1 << 31) - 1), ("i32.sat", (F64,), (NAN,), 0), ("i32.sat", (F64,),
    (-INF,), -(1 << 31)), ("i64.sat", (F64,), (1e30,), MAX),
    ("i64.sat", (U64,), (1 << 63,), MAX), ("u64.sat", (I64,), (-1,), 0), ("i128.sat", (F64,), (INF,),
    (1 << 127) - 1),
    ("i32.wrap", (I64,), (1 << 31,), -(1 << 31)), ("i32.wrap", (F64,), (3e9,), -(1 << 31)),
    ("i32.wrap", (F64,), (-3.9,), -3), ("i64.wrap", (F64,), (NAN,), MIN),
    ("i64.wrap", (U64,), ((1 << 64) - 1,), -1), ("u64.wrap", (I64,), (-1,), (1 << 64) - 1),
    ("u64.wrap", (F64,), (-1.0,), 1 << 63),
    ("i128.wrap", (I64,), (-1,), -1), ("i128.wrap", (F64,), (1e300,), -(1 << 127)),
    ("f64", (I64,), ((1 << 53) + 1,), 2.0**53), ("f64", (MONEY,), (125,), 1.25), ("f64", (STRING,),
    ("1e400",), INF), ("f64", (F32,), (0.5,), 0.5),
    ("f32", (F64,), (0.1,), v.single(0.1)), ("f32", (F64,), (1e39,), INF), ("f32", (I64,),
    ((1 << 24) + 1,), 2.0**24), ("f32", (STRING,), ("0.1",), v.single(0.1)),
    ("i64_of", (I128,), (MAX,), MAX), ("to_decimal", (I64,), (7,), 700, MONEY), ("to_decimal", (F64,),
    (0.125,), 13, MONEY),
    ("to_decimal", (F64,), (-0.125,), -13, MONEY), ("to_decimal", (t.Decimal(8, 4),), (12350,), 124, MONEY),
    ("rescale", (MONEY,), (125,), 13, t.Decimal(4, 1)), ("rescale", (MONEY,), (-124,), -1, t.Decimal(4, 0)),
    ("string", (BOOL,), (True,), "true"), ("string", (I64,), (-5,), "-5"), ("string", (F64,),
    (1e16,), "1e+16"), ("string", (F64,), (NAN,), "nan"),
    ("string", (F32,), (v.single(0.1),), "0.1"), ("string", (F32,), (v.single(1e10),), "10000000000.0"),
    ("string", (F32,), (16777216.0,), "16777216.0"),
    ("string", (F32,), (-0.0,), "-0.0"), ("string", (MONEY,), (-5,), "-0.05"), ("string", (t.Decimal(3, 0),),
    (12,), "12"), ("string", (STRING,), ("x",), "x"),
    ("string", (TIME,), (0,), "1970-01-01T00:00:00Z"), ("string", (TIME,),
    (-1,), "1969-12-31T23:59:59.999999Z"),
    ("string", (TIME,), (MAX,), "+294247-01-10T04:00:54.775807Z"), ("string", (DURATION,),
    (-1500000,), "-PT1.500000S"), ("string", (DURATION,), (300 * SECOND,), "PT300S"),
    ("parse_i32", (STRING,), ("2147483647",), (1 << 31) - 1), ("parse_i32", (STRING,),
    ("2147483648",), None), ("parse_i64", (STRING,), ("+7",), 7),
    ("parse_i64", (STRING,), (" 7",), None), ("parse_i64", (STRING,), ("1_0",), None),
    ("parse_i64", (STRING,), ("٣",), None), ("parse_i64", (STRING,), ("",), None),
    ("parse_i64", (STRING, I64), ("-fF", 16), -255), ("parse_i64", (STRING, I64), ("0x10", 16), None),
    ("parse_i64", (STRING, I64), ("1", 1), None),
    ("parse_i64", (STRING,), ("0" * 5000 + "1",), 1), ("parse_i64", (STRING,), ("9" * 5000,), None),
    ("parse_u64", (STRING,), ("-1",), None),
    ("parse_u64", (STRING,), ("18446744073709551615",), (1 << 64) - 1), ("parse_i128", (STRING,),
    (str(1 << 100),), 1 << 100),
    ("parse_f64", (STRING,), ("1.5e3",), 1500.0), ("parse_f64", (STRING,), (".5",), 0.5),
    ("parse_f64", (STRING,), ("5.",), 5.0), ("parse_f64", (STRING,), ("-Inf",), -INF),
    ("parse_f64", (STRING,), ("nan",), nan), ("parse_f64", (STRING,), ("+-inf",), None),
    ("parse_f64", (STRING,), ("1_0",), None), ("parse_f64", (STRING,), ("0x1p3",), None),
    ("parse_f64", (STRING,), ("-nan",), nan), ("parse_f32", (STRING,), ("0.1",), v.single(0.1)),
    ("parse_f32", (STRING,), ("x",), None),
    ("parse_bool", (STRING,), ("true",), True), ("parse_bool", (STRING,), ("True",), None),
    ("parse_time", (STRING,), ("1970-01-02",), 86400 * SECOND), ("parse_time", (STRING,),
    ("1970-01-01T01:00:00.5+01:00",), SECOND // 2),
    ("parse_time", (STRING,), ("1970-01-01 00:00:00.0000019Z",), 1), ("parse_time", (STRING,),
    ("2023-02-29",), None), ("parse_time", (STRING,), ("2024-02-29T24:00:00",), None),
    ("parse_time", (STRING,), ("1970-01-01T00:00:00-00:01",), 60 * SECOND), ("parse_time", (STRING,),
    ("+294247-01-10T04:00:54.775808Z",), None),
    ("parse_time", (STRING,), ("soon",), None), ("parse_time", (STRING,), ("1970-01-01T00:00+24:00",), None),
    ("parse_decimal", (STRING,), ("-1.50",), -150, t.Optional(MONEY)), ("parse_decimal", (STRING,),
    ("1.505",), None, t.Optional(MONEY)),
    ("parse_decimal", (STRING,), ("1.5000",), 150, MONEY), ("parse_decimal", (STRING,),
    ("12345.0",), None, MONEY), ("parse_decimal", (STRING,), (".",), None, MONEY),
    ("year", (TIME,), (-1,), 1969), ("month", (TIME,), (-1,), 12), ("day", (TIME,), (-1,), 31),
    ("hour", (TIME,), (-1,), 23), ("minute", (TIME,), (-1,), 59),
    ("second", (TIME,), (-1,), 59), ("microsecond", (TIME,), (-1,), 999_999), ("weekday", (TIME,), (0,), 4),
    ("yearday", (TIME,), (-1,), 365),
    ("time", (I64,), (5,), 5), ("duration", (I64,), (5,), 5), ("micros", (TIME,), (5,), 5),
    ("micros", (DURATION,), (5,), 5),
    ("civil", (I64, I64, I64), (2000, 2, 29), 951782400 * SECOND),
    ("civil", (I64,) * 6, (1970, 1, 1, 0, 1, 2), 62 * SECOND),
    ("find", (STRING, STRING), ("äbc", "c"), 2), ("find", (STRING, STRING), ("abc", "d"), -1),
    ("find", (STRING, STRING, I64), ("abab", "a", 1), 2),
    ("find", (STRING, STRING, I64), ("ab", "a", -5), 0), ("starts_with", (STRING, STRING),
    ("abc", "ab"), True), ("ends_with", (STRING, STRING), ("abc", "ab"), False),
    ("split", (STRING, STRING), ("a,b,", ","), ["a", "b", ""]), ("split", (STRING, STRING),
    ("ab", ""), ["a", "b"]), ("join", (STRINGS, STRING), (("a", "b"), "-"), "a-b"),
    ("replace", (STRING,) * 3, ("aba", "a", "x"), "xbx"), ("replace", (STRING,) * 3, ("ab", "", "x"), "ab"),
    ("lower", (STRING,), ("ÄB",), "äb"), ("upper", (STRING,), ("ß",), "SS"),
    ("trim", (STRING,), (" \ta b\n",), "a b"), ("trim", (STRING,), ("\u00a0a",), "\u00a0a"),
    ("code_points", (STRING,), ("aä",), [97, 228]), ("char", (I32,), (228,), "ä"),
    ("from_code_points", (t.List(I32),), ((97, 228),), "aä"), ("encode", (STRING,), ("ä",), b"\xc3\xa4"),
    ("decode", (BYTES,), (b"\xc3\xa4",), "ä"),
    ("regex", (STRING,), ("a+",), rx("a+")), ("re_test", (t.REGEX, STRING), (rx("b+"), "abb"), True),
    ("re_test", (t.REGEX, STRING), (rx("^b"), "ab"), False),
    ("re_strs", (t.REGEX, STRING), (rx("(a)|(b)"), "xb"), ["b", "", "b"]), ("re_strs", (t.REGEX, STRING),
    (rx("c"), "xb"), []),
    ("re_find", (t.REGEX, STRING), (rx("(a)|(b)"), "äb"), [1, 2, -1, -1, 1, 2]),
    ("re_find", (t.REGEX, STRING), (rx("c"), "b"), []),
    ("re_replace", (t.REGEX, STRING, STRING), (rx("(a)(b)?"), "ab-a", r"\2\1\\"), "ba\\-a\\"),
    ("len", (INTS,), ([1, 2],), 2), ("len", (STRING,), ("äb",), 2), ("len", (BYTES,), (b"abc",), 3),
    ("len", (MAP,), ({"a": 1},), 1), ("len", (BAG,), (v.Bag([1.0]),), 1),
    ("get", (INTS, I64), ([5], 0), 5), ("get", (INTS, I64), ([5], -1), None), ("get", (INTS, I64, I64),
    ((), 0, 9), 9), ("get", (MAP, STRING), ({"a": 1}, "a"), 1),
    ("get", (MAP, STRING, I64), ({}, "a", 7), 7), ("get", (FMAP, F64), ({0.0: 1}, -0.0), 1),
    ("get", (QUEUE, I64), (v.thaw(QUEUE, (4,)), 0), 4), ("get", (OMAP, I64), (omap(), 0), None),
    ("slice", (INTS, I64, I64), ((1, 2, 3), 1, 3), (2, 3)), ("slice", (STRING, I64, I64),
    ("äbc", 0, 2), "äb"), ("slice", (QUEUE, I64, I64), (v.thaw(QUEUE, (1, 2, 3)), 1, 2), [2]),
    ("slice", (BYTES, I64, I64), (b"abc", 3, 3), b""), ("slice", (ARRAY, I64, I64), ([1, 2, 3], 0, 1), [1]),
    ("take", (INTS, I64), ([1, 2, 3], 2), [1, 2]), ("take", (INTS, I64), ([1], 5), [1]),
    ("take", (INTS, I64), ([1], -5), []), ("drop_first", (INTS, I64), ([1, 2, 3], 2), [3]),
    ("drop_first", (INTS, I64), ([1], -1), [1]), ("fill", (I64, I64), (7, 2), [7, 7]), ("fill", (I64,),
    (7,), [7, 7, 7], ARRAY), ("fill", (I64, I64), (7, 3), [7, 7, 7], ARRAY),
    ("fill", (I64, I64), (7, -1), []), ("fill", (INTS, I64), ([1], 2), [(1,), (1,)]),
    ("concat", (INTS, INTS), ((1,), [2]), [1, 2]), ("concat", (STRING, STRING), ("a", "b"), "ab"),
    ("reverse", (INTS,), ((1, 2),), [2, 1]), ("reverse", (STRING,), ("ab",), "ba"),
    ("contains", (STRING, STRING), ("abc", "bc"), True), ("contains", (INTS, I64), ([1], 2), False),
    ("contains", (t.List(F64), F64), ([NAN], NAN), True), ("contains", (BAG, F64),
    (v.Bag([0.0]), -0.0), True), ("contains", (t.List(INTS), INTS), ([[1]], (1,)), True),
    ("index_of", (INTS, I64), ((5, 6), 6), 1), ("index_of", (QUEUE, I64), (v.thaw(QUEUE, (5,)), 7), -1),
    ("sort", (t.List(F64),), ([NAN, 2.0, 1.0],), lambda x: x[:2] == [1.0, 2.0] and nan(x[2])),
    ("sort", (t.List(MAYBE),), ((3, None),), [None, 3]),
    ("sort_by", (INTS, t.Function((I64,), I64)), ((11, 2, 21), lambda x: x % 10), [11, 21, 2]),
    ("bag_minus", (INTS, INTS), ((1, 2, 1, 3, 1), (1, 1, 9)), [2, 3, 1]),
    ("bag_minus", (t.List(F64), t.List(F64)), ((-0.0, NAN), (0.0, NAN)), []),
    ("bag_minus", (INTS, INTS, t.Function((I64,), I64)), ((11, 2, 21, 1), (31, 41), lambda x: x % 10), [2, 1]),
    ("bag_minus", (INTS, INTS, t.Function((I64,), BOOL)), ((), (0,), lambda x: 1 // x > 0), []),
    ("map", (INTS, t.Function((I64,), STRING)), ((1, 2), str), ["1", "2"]),
    ("map", (ARRAY, t.Function((I64,), I64)), ((1, 2, 3), lambda x: -x), [-1, -2, -3]),
    ("map", (INTS, t.Function((I64,), INTS)), ((1,), lambda x: [x]), [(1,)]),
    ("any", (INTS, t.Function((I64,), BOOL)), ((1, 2), lambda x: x > 1), True),
    ("any", (INTS, t.Function((I64,), BOOL)), ((), lambda x: x > 1), False),
    ("all", (INTS, t.Function((I64,), BOOL)), ((1, 2), lambda x: x > 1), False),
    ("all", (BAG, t.Function((F64,), BOOL)), ((), lambda x: x > 1), True),
    ("fold", (INTS, I64, t.Function((I64, I64), I64)), ((1, 2, 3), 10, lambda a, x: a - x), 4),
    ("sum", (INTS,), ((MAX, 1, -1),), MAX), ("sum", (t.List(F64),), ((1e308, 1e308, -1e308),), 1e308),
    ("sum", (t.List(F32),), ((3e38, 3e38),), INF), ("sum", (t.List(MONEY),), ((1, 2),), 3),
    ("to_list", (QUEUE,), (v.thaw(QUEUE, (1, 2)),), [1, 2]), ("to_list", (BAG,),
    (v.FrozenBag([1.0]),), [1.0]),
    ("front", (QUEUE,), ((1, 2),), 1), ("back", (QUEUE,), ((1, 2),), 2), ("has", (MAP, STRING),
    ({"a": 1}, "a"), True), ("has", (FMAP, F64), ({0.0: 1}, -0.0), True),
    ("has", (BAG, F64), (v.FrozenBag([NAN]), NAN), True), ("has", (OMAP, I64), (omap((1, "a")), 2), False),
    ("keys", (OMAP,), (omap((2, "b"), (1, "a")),), [1, 2]),
    ("keys", (MAP,), ({"b": 1, "a": 2},), ["b", "a"]), ("values", (OMAP,), (omap((2, "b"),
    (1, "a")),), ["a", "b"]), ("values", (MAP,), ({"b": 1},), [1]),
    ("first_key", (OMAP,), (omap((2, "b"), (1, "a")),), 1), ("first_key", (OMAP,), (omap(),), None),
    ("last_key", (OMAP,), (omap((2, "b"), (1, "a")),), 2), ("last_key", (OMAP,), (omap(),), None),
    ("floor", (OMAP, I64), (omap((2, "b"), (5, "a")), 4), 2), ("floor", (OMAP, I64), (omap(), 4), None),
    ("ceil", (OMAP, I64), (omap((2, "b"), (5, "a")), 3), 5),
    ("range", (OMAP, I64, I64), (omap((1, ""), (2, ""), (3, "")), 1, 3), [1, 2]), ("count", (BAG, F64),
    (v.Bag([0.0, 0.0]), -0.0), 2), ("count", (BAG, F64), (v.FrozenBag([1.0]), 1.0), 1),
    ("force", (MAYBE,), (0,), 0), ("coalesce", (MAYBE, I64), (None, 5), 5), ("coalesce", (MAYBE, I64),
    (0, 5), 0), ("coalesce", (MAYBE, MAYBE), (None, None), None),
    ("zero", (), (), v.FrozenMap(), MAP), ("zero", (), (), (0, None), t.Tuple((I64, MAYBE))),
    ("value", (t.FSUM,), (total(0.1, 0.2, -0.3),), 2.7755575615628914e-17),
]  # fmt: skip

# name, operand types, operands, code, type wanted
TRAPS: list[Any] = [
    ("format", (STRING, I64), ("%s", 1), "conversion-range"),
    ("+", (I64, I64), (MAX, 1), "overflow"), ("+", (U64, U64), ((1 << 64) - 1, 1), "overflow"),
    ("+", (TIME, DURATION), (MAX, 1), "overflow"),
    ("+", (MONEY, MONEY), (999999, 1), "decimal-precision"), ("-", (U64, U64), (0, 1), "overflow"),
    ("-", (I32, I32), (-(1 << 31), 1), "overflow"),
    ("-", (MONEY, MONEY), (-999999, 1), "decimal-precision"), ("i64", (STRING,), ("1.0",), "bad-parse"),
    ("*", (I64, I64), (MAX, 2), "overflow"), ("*", (MONEY, MONEY),
    (999999, 999999), "decimal-precision", t.Decimal(6, 4)), ("neg", (I64,), (MIN,), "overflow"),
    ("neg", (U64,), (1,), "overflow"), ("abs", (I32,), (-(1 << 31),), "overflow"), ("/", (MONEY, MONEY),
    (1, 0), "division-by-zero"),
    ("/", (MONEY, MONEY), (999999, 1), "decimal-precision"), ("div.trap", (F64, F64),
    (1.0, -0.0), "division-by-zero"), ("div.trunc", (I64, I64), (1, 0), "division-by-zero"),
    ("div.trunc", (I64, I64), (MIN, -1), "overflow"), ("rem.trunc", (I64, I64), (1, 0), "division-by-zero"),
    ("rem.trunc", (I64, I64), (MIN, -1), "overflow"),
    ("rem.trunc", (MONEY, MONEY), (1, 0), "division-by-zero"), ("div.trunc.wrap", (I64, I64),
    (1, 0), "division-by-zero"), ("rem.trunc.wrap", (I64, I64), (1, 0), "division-by-zero"),
    ("div.floor", (I64, I64), (MIN, -1), "overflow"), ("div.floor", (I64, I64), (1, 0), "division-by-zero"),
    ("mod.floor", (I64, I64), (1, 0), "division-by-zero"),
    ("mod.floor", (I64, I64), (MIN, -1), "overflow"), ("shl.trap", (I64, I64), (1, 64), "shift-range"),
    ("shr.trap", (I64, I64), (1, -1), "shift-range"), ("ushr.trap", (I32, I32), (1, 32), "shift-range"),
    ("i32", (I64,), (1 << 31,), "conversion-range"), ("i32", (STRING,), ("x",), "bad-parse"), ("i64", (F64,),
    (NAN,), "conversion-range"), ("i64", (F64,), (2.0**63,), "conversion-range"),
    ("u64", (I64,), (-1,), "conversion-range"), ("i128", (F64,), (INF,), "conversion-range"),
    ("f64", (STRING,), ("x",), "bad-parse"), ("f32", (STRING,), ("",), "bad-parse"),
    ("i64_of", (I128,), (MAX + 1,), "overflow"), ("to_decimal", (I64,),
    (10000,), "decimal-precision", MONEY), ("to_decimal", (F64,), (NAN,), "conversion-range", MONEY),
    ("rescale", (t.Decimal(9, 0),), (10000,), "decimal-precision", MONEY), ("civil", (I64, I64, I64),
    (2023, 2, 29), "conversion-range"), ("char", (I32,), (0xD800,), "conversion-range"),
    ("from_code_points", (t.List(I32),), ((-1,),), "conversion-range"), ("decode", (BYTES,),
    (b"\xff",), "bad-utf8"), ("regex", (STRING,), ("(?=a)",), "bad-regex"),
    ("re_replace", (t.REGEX, STRING, STRING), (rx("a"), "b", r"\1"), "bad-regex"),
    ("re_replace", (t.REGEX, STRING, STRING), (rx("a"), "b", "\\"), "bad-regex"), ("pop", (INTS,),
    ([],), "remove-missing"),
    ("set", (INTS, I64, I64), ([1], 1, 5), "index-range"), ("slice", (INTS, I64, I64),
    ([1], 0, 2), "index-range"), ("slice", (STRING, I64, I64), ("abc", 2, 1), "index-range"),
    ("slice", (STRING, I64, I64), ("abc", -1, 1), "index-range"), ("fill", (I64, I64),
    (1, 2), "index-range", ARRAY), ("sum", (INTS,), ((MAX, 1),), "overflow"), ("sum", (t.List(MONEY),),
    ((999999, 1),), "decimal-precision"),
    ("pop_front", (QUEUE,), (v.thaw(QUEUE, ()),), "remove-missing"), ("pop_back", (QUEUE,),
    (v.thaw(QUEUE, ()),), "remove-missing"), ("front", (QUEUE,), ((),), "remove-missing"),
    ("back", (QUEUE,), ((),), "remove-missing"), ("remove", (BAG, F64), (v.Bag(), 1.0), "remove-missing"),
    ("force", (MAYBE,), (None,), "optional-empty"),
]  # fmt: skip

# name, operand types, first operand, the others, result, first operand afterwards
CHANGES: list[Any] = [
    ("push", (INTS, I64), [1], (2,), (), [1, 2]), ("pop", (INTS,), [1, 2], (), 2, [1]),
    ("set", (INTS, I64, I64), [1, 2], (1, 5), (), [1, 5]),
    ("set", (MAP, STRING, I64), {}, ("a", 5), (), {"a": 5}), ("set", (FMAP, F64, I64), {}, (-0.0, 5),
    (), {0.0: 5}), ("push_back", (QUEUE, I64), v.thaw(QUEUE, (1,)), (2,), (), v.thaw(QUEUE, (1, 2))),
    ("pop_front", (QUEUE,), v.thaw(QUEUE, (1, 2)), (), 1, v.thaw(QUEUE, (2,))),
    ("pop_back", (QUEUE,), v.thaw(QUEUE, (1, 2)), (), 2, v.thaw(QUEUE, (1,))),
    ("delete", (MAP, STRING), {"a": 1, "b": 2}, ("a",), True, {"b": 2}),
    ("delete", (MAP, STRING), {}, ("a",), False, {}), ("delete", (OMAP, I64), omap((1, "a"), (2, "b")),
    (2,), True, omap((1, "a"))),
    ("keep_first", (OMAP, I64), omap((1, "a"), (2, "b"), (3, "c")), (2,), (), omap((1, "a"), (2, "b"))),
    ("keep_first", (OMAP, I64), omap((1, "a")), (-1,), (), omap()),
    ("keep_last", (OMAP, I64), omap((1, "a"), (2, "b"), (3, "c")), (1,), (), omap((3, "c"))),
    ("keep_last", (OMAP, I64), omap((1, "a")), (1,), (), omap((1, "a"))),
    ("remove", (BAG, F64), v.Bag([1.0, 0.0, 1.0]), (1.0,), (), v.Bag([0.0, 1.0])),
    ("remove", (BAG, F64), v.Bag([0.0]), (-0.0,), (), v.Bag()),
    ("add", (BAG, F64), v.Bag([1.0]), (-0.0,), (), v.Bag([1.0, 0.0])),
    ("add", (BAG, F64), v.FrozenBag([1.0]), (1.0,), (), v.Bag([1.0, 1.0])),
    ("add", (t.FSUM, F64), v.ZERO_SUM, (1.5,), (), total(1.5)),
    ("add", (t.FSUM, F32), v.ZERO_SUM, (1.5,), (), total(1.5)), ("sub", (t.FSUM, F64), total(1.5, INF),
    (INF,), (), total(1.5)), ("merge", (t.FSUM, t.FSUM), total(1.5), (total(2.0),), (), total(3.5)),
    ("clear", (INTS,), [1], (), (), ()), ("clear", (ARRAY,), [1, 2, 3], (), (), (0, 0, 0)),
]  # fmt: skip


def shown(case: Any) -> str:
    return f"{case[0]}-{'-'.join(getattr(x, 'name', type(x).__name__) for x in case[1])}"


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_results(case: Case) -> None:
    name, types, args, expected, *wanted = case
    assert OPERATIONS[name].mutates is None
    found = apply(name, types, args, *wanted)
    if callable(expected) and not isinstance(expected, v.FrozenMap):
        assert expected(found)
        return
    assert type(found) is type(expected)
    assert found == expected
    if isinstance(found, float) and isinstance(expected, float):
        assert math.copysign(1.0, found) == math.copysign(1.0, expected)


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_results_are_values_of_the_result_type(case: Case) -> None:
    name, types, args, _expected, *wanted = case
    signature = OPERATIONS[name].rule(types, *(wanted or [None]))
    assert signature is not None
    freeze = v.freezer(signature.result) or (lambda value: value)
    assert v.well_typed(signature.result, freeze(apply(name, types, args, *wanted)))


@pytest.mark.parametrize("case", TRAPS, ids=shown)
def test_traps(case: Any) -> None:
    name, types, args, code, *wanted = case
    with pytest.raises(TrapSignal) as signal:
        apply(name, types, args, *wanted)
    assert signal.value.code == code
    signature = OPERATIONS[name].rule(types, *(wanted or [None]))
    assert signature is not None
    assert code in traps_of(OPERATIONS[name], signature.params, signature.result)


@pytest.mark.parametrize("case", CHANGES, ids=shown)
def test_changes(case: Any) -> None:
    name, types, first, others, result, after = case
    operation = OPERATIONS[name]
    signature = operation.rule(types, None)
    assert signature is not None
    meaning = operation.meaning(signature.params, signature.result)
    if operation.mutates == "value":
        first, found = meaning(first, *others)
    else:
        assert operation.mutates == "container"
        found = meaning(first, *others)
    assert found == result
    assert type(first) is type(after)
    assert first == after


def test_every_operation_is_tested() -> None:
    tested = {case[0] for case in CASES} | {case[0] for case in CHANGES}
    assert tested == set(OPERATIONS)


def test_results_of_whole_numbers_are_those_of_numbers_without_end():
    found = {name for name, each in OPERATIONS.items() if effect_of(each, (I64, I64)).whole is not None}
    assert {"+", "-", "*", "neg", "+%", "-%", "*%", "i32", "i64", "i32.wrap", "i64.sat"} <= found
    numbers = (-(1 << 40), -7, 0, 3, 1 << 40)
    for name in found:
        types = (I64,) if OPERATIONS[name].rule((I64, I64), None) is None else (I64, I64)
        whole = effect_of(OPERATIONS[name], types).whole
        signature = OPERATIONS[name].rule(types, None)
        assert whole is not None
        assert signature is not None
        low, high = BOUNDS[signature.result]
        for args in product(numbers, repeat=len(types)):
            if low <= whole(*args) <= high:
                assert apply(name, types, args) == whole(*args), (name, args)
        for rest in product(numbers, repeat=len(types) - 1):
            for at in range(len(types)):
                results = [whole(*rest[:at], number, *rest[at:]) for number in numbers]
                assert sorted(results) in (results, results[::-1]), name


def test_every_code_that_an_operation_states_is_tested() -> None:
    tested = {(case[0], case[3]) for case in TRAPS}
    for name, operation in OPERATIONS.items():
        if not callable(operation.traps):
            assert {code for n, code in tested if n == name} == set(operation.traps), name
    stated = set()
    for case in [*CASES, *TRAPS]:
        name, types, _, _, *wanted = case
        signature = OPERATIONS[name].rule(types, *(wanted or [None]))
        assert signature is not None
        stated |= {(name, code) for code in traps_of(OPERATIONS[name], signature.params, signature.result)}
    assert stated - tested == set()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
def test_every_line_is_documented_and_closed(operation) -> None:
    assert operation.doc
    assert not operation.doc.endswith(".")
    codes = {
        "overflow", "division-by-zero", "shift-range", "conversion-range", "index-range", "key-missing",
        "remove-missing",
        "optional-empty", "decimal-precision", "bad-utf8", "bad-parse", "bad-regex",
    }  # fmt: skip
    if not callable(operation.traps):
        assert set(operation.traps) <= codes


ALL_TYPES = [
    None, BOOL, I32, I64, U64, I128, F32, F64, STRING, BYTES, TIME, DURATION, t.UNIT, t.REGEX, t.FSUM, MONEY,
    MAYBE, INTS, ARRAY, QUEUE,
    MAP, OMAP, BAG, t.Tuple((I64,)), t.Function((I64,), BOOL),
]  # fmt: skip


ALL_WANTED = (None, BOOL, I64, F32, MONEY, INTS, ARRAY, t.Optional(MONEY), MAP)
UP_TO_TWO: list[Any] = [(), *((a,) for a in ALL_TYPES), *((a, b) for a in ALL_TYPES for b in ALL_TYPES)]
OPERANDS = [(types, wanted) for types in UP_TO_TWO for wanted in ALL_WANTED] + [
    (
        (a, b, c),
        ALL_WANTED[(i + 2 * j) % len(ALL_WANTED)],
    )  # each `b`, and each `c`, with all that may be wanted
    for a in (INTS, MAP, STRING, None)
    for i, b in enumerate(ALL_TYPES)
    for j, c in enumerate(ALL_TYPES)
]


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
def test_rules_answer_for_all_operands(operation) -> None:
    """A rule says None or a signature with as many parameters, of known types, whatever it is given."""
    rule = operation.rule
    for types, wanted in OPERANDS:
        found = rule(types, wanted)
        if found is not None:
            assert isinstance(found, Signature)
            assert len(found.params) == len(types)
            for given, param in zip(types, found.params, strict=True):
                assert (
                    given is None
                    or given == param
                    or t.Optional(given) == param
                    or isinstance(given, t.Function)
                )


@pytest.mark.parametrize(
    ("name", "types", "wanted", "expected"),
    [
        ("+", (None, F32), None, Signature((F32, F32), F32)),
        ("+", (None, None), F64, Signature((F64, F64), F64)),
        ("+", (None, None), None, Signature((I64, I64), I64)),
        ("+", (I64, I32), None, None),
        ("+", (TIME, None), None, Signature((TIME, DURATION), TIME)),
        ("+", (None, DURATION), TIME, Signature((TIME, DURATION), TIME)),
        ("+", (DURATION, None), TIME, Signature((DURATION, TIME), TIME)),
        ("+", (TIME, TIME), None, None),
        ("+", (None, MONEY), None, Signature((MONEY, MONEY), MONEY)),
        ("+", (None, None), MONEY, Signature((MONEY, MONEY), MONEY)),
        ("+", (MONEY, t.Decimal(8, 1)), None, Signature((MONEY, t.Decimal(8, 1)), t.Decimal(10, 2))),
        ("-", (TIME, None), DURATION, Signature((TIME, TIME), DURATION)),
        ("-", (TIME, None), None, Signature((TIME, DURATION), TIME)),
        ("-", (None, TIME), None, Signature((TIME, TIME), DURATION)),
        ("-", (None, DURATION), TIME, Signature((TIME, DURATION), TIME)),
        ("-", (DURATION, None), None, Signature((DURATION, DURATION), DURATION)),
        ("-", (DURATION, TIME), None, None),
        ("*", (None, DURATION), None, Signature((I64, DURATION), DURATION)),
        ("*", (MONEY, None), None, Signature((MONEY, MONEY), t.Decimal(12, 4))),
        ("*", (t.Decimal(38, 20), t.Decimal(38, 20)), None, None),
        ("/", (I64, I64), None, None),
        ("/", (None, None), None, Signature((F64, F64), F64)),
        ("/", (MONEY, t.Decimal(4, 0)), None, None),
        ("div.trunc", (DURATION, None), None, Signature((DURATION, I64), DURATION)),
        ("div.trunc", (DURATION, None), I64, Signature((DURATION, DURATION), I64)),
        ("==", (MAYBE, None), BOOL, Signature((MAYBE, MAYBE), BOOL)),
        ("==", (I64, STRING), BOOL, None),
        ("<", (INTS, INTS), BOOL, None),
        ("eq3", (I64, MAYBE), None, Signature((MAYBE, MAYBE), TRUTH)),
        ("eq3", (None, MAYBE), None, Signature((MAYBE, MAYBE), TRUTH)),
        ("push", (t.List(MAYBE), I64), None, Signature((t.List(MAYBE), MAYBE), t.UNIT)),
        ("push", (INTS, STRING), None, None),
        ("get", (t.List(MAYBE), None), None, Signature((t.List(MAYBE), I64), MAYBE)),
        ("get", (MAP, None, None), None, Signature((MAP, STRING, I64), I64)),
        ("get", (MAP, I64), None, None),
        ("take", (None, None), INTS, Signature((INTS, I64), INTS)),
        ("fill", (None, None), t.List(F64), Signature((F64, I64), t.List(F64))),
        ("fill", (None,), t.Array(F64, 5), Signature((F64,), t.Array(F64, 5))),
        ("fill", (None,), None, None),
        ("sort_by", (INTS, None), None, Signature((INTS, t.Function((I64,), None)), INTS)),
        ("sort_by", (None, None), INTS, Signature((INTS, t.Function((I64,), None)), INTS)),
        ("any", (INTS, None), None, Signature((INTS, t.Function((I64,), BOOL)), BOOL)),
        ("any", (INTS, t.Function((I64,), I64)), None, None),
        (
            "map",
            (ARRAY, t.Function((I64,), F64)),
            None,
            Signature((ARRAY, t.Function((I64,), F64)), t.Array(F64, 3)),
        ),
        ("fold", (INTS, None, None), F64, Signature((INTS, F64, t.Function((F64, I64), F64)), F64)),
        ("fold", (INTS, None, None), None, Signature((INTS, I64, t.Function((I64, I64), I64)), I64)),
        ("force", (None,), I64, Signature((MAYBE,), I64)),
        ("coalesce", (None, I64), None, Signature((MAYBE, I64), I64)),
        ("coalesce", (MAYBE, None), None, Signature((MAYBE, I64), I64)),
        ("zero", (), None, None),
        ("inf", (), F32, Signature((), F32)),
        ("to_decimal", (I64,), None, None),
        ("parse_decimal", (STRING,), t.Optional(MONEY), Signature((STRING,), t.Optional(MONEY))),
        ("parse_decimal", (STRING,), None, None),
        ("hash64", (t.FSUM,), None, None),
        ("bag_minus", (t.List(MAP), t.List(MAP)), None, None),
        (
            "bag_minus",
            (t.List(MAP), t.List(MAP), None),
            None,
            Signature((t.List(MAP), t.List(MAP), t.Function((MAP,), None)), t.List(MAP)),
        ),
        ("bag_minus", (INTS, INTS, t.Function((I64,), MAP)), None, None),
        ("bag_minus", (INTS, INTS, I64), None, None),
        ("and3", (BOOL, None), None, Signature((TRUTH, TRUTH), TRUTH)),
        ("i64", (None,), None, Signature((I64,), I64)),
        ("civil", (None,) * 4, None, None),
    ],
)
def test_rules(name, types, wanted, expected) -> None:
    assert OPERATIONS[name].rule(types, wanted) == expected


def test_filled_items_share_nothing_that_changes() -> None:
    first, second = apply("fill", (INTS, I64), ([1], 2))
    assert type(first) is type(second) is tuple


@pytest.mark.parametrize(
    "micros", [0, -1, 951782400 * SECOND, MIN, MAX, 253402300800 * SECOND, -62167219201 * SECOND]
)
def test_time_texts_read_back(micros: int) -> None:
    assert apply("parse_time", (STRING,), (apply("string", (TIME,), (micros,)),)) == micros


def test_the_calendar_is_that_of_datetime() -> None:
    from datetime import UTC, datetime, timedelta

    start = datetime(1, 1, 1, tzinfo=UTC)
    for days in range(0, 3_650_000, 997):
        day = start + timedelta(days=days)
        micros = (day - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        fields = [apply(name, (TIME,), (micros,)) for name in ("year", "month", "day", "weekday", "yearday")]
        assert fields == [day.year, day.month, day.day, day.isoweekday(), day.timetuple().tm_yday]
        assert apply("civil", (I64,) * 3, (day.year, day.month, day.day)) == micros
