"""Text of numbers, and numbers in text, against Python's: random bits, powers and their neighbours, halfway cases."""

from __future__ import annotations

import ast
import os
import struct
import sys
from decimal import Decimal, localcontext
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.native import NativeOperator, compile_native
from backends.native.layout import size_align
from backends.native.rtlang import Unit, compile_tree
from backends.native.tables import power_of_ten
from river.diagnostics import Rejected
from river.driver import compile_source
from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.operations.convert import parse_f64, single_text
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    import random

CASES = int(os.environ.get("RIVER_CASES", "3000"))


@cache
def native(name: str, args: tuple[t.Type, ...], result: t.Type) -> NativeOperator:
    """An operator that sends what an operation makes of its item."""
    item = t.Tuple(args)
    fields = tuple(typed.Get(arg, typed.Local(item, 0, "x"), i, str(i)) for i, arg in enumerate(args))
    op = typed.Operator(
        "one", (typed.Port("x", item, None),), (), (typed.Out("y", result, None, None),), (), (), (typed.TrapSite(()),),
        items=(typed.ItemHandler(0, 1, typed.Block((typed.Emit(0, typed.Apply(result, name, fields, 0)),))),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


def results(name: str, args: tuple[t.Type, ...], result: t.Type, rows: list[Any]) -> list[Any]:
    (found,), fired = native(name, args, result).fire_batch(
        [[row if len(args) > 1 else (row,) for row in rows]]
    )
    assert fired.trap is None
    return found


def doubles(chance: random.Random) -> list[float]:
    """Random bits, powers of 2 and 10 with their neighbours, short numbers, subnormal ones."""
    words = [chance.getrandbits(64) for _ in range(CASES)]
    for exponent in range(0, 2047, 7):
        words += [(exponent << 52) + step & (1 << 64) - 1 for step in (-1, 0, 1)]
    found = [struct.unpack("<d", struct.pack("<Q", word))[0] for word in words]
    found += [float(f"{sign}{digits}e{exponent}") for exponent in range(-330, 310, 9) for digits in (1, 5, 123)
              for sign in ("", "-")]  # fmt: skip
    found += [chance.randrange(-(10**9), 10**9) / 10 ** chance.randrange(9) for _ in range(CASES)]
    return [x for x in found if x == x] + [0.0, -0.0, 5e-324, sys.float_info.max, 9007199254740993.0]


def test_f64_as_text() -> None:
    values = doubles(seeds.chance("native texts", 1))
    assert results("string", (t.F64,), t.STRING, values) == list(map(repr, values))


def test_f32_as_text() -> None:
    chance = seeds.chance("native texts", 2)
    words = [chance.getrandbits(32) for _ in range(CASES)]
    words += [(exponent << 23) + step for exponent in range(1, 255) for step in (-1, 0, 1)] + list(
        range(1, 60)
    )
    values = [struct.unpack("<f", struct.pack("<I", word))[0] for word in words]
    values += [struct.unpack("<f", struct.pack("<f", i / 512))[0] for i in range(2000)]
    values = [x for x in values if x == x]
    assert results("string", (t.F32,), t.STRING, values) == list(map(single_text, values))


def texts(chance: random.Random) -> list[str]:
    """Numbers as they may be written: by repr, with many digits, halfway between two floats and next to that."""
    found = [repr(x) for x in doubles(chance)]
    with localcontext() as context:
        context.prec = 1200
        for _ in range(CASES // 10):
            bits = chance.randrange(1 << 63) if chance.random() < 0.7 else chance.randrange(1 << 53)
            low = struct.unpack("<d", struct.pack("<Q", bits))[0]
            high = struct.unpack("<d", struct.pack("<Q", bits + 1))[0]
            if high - high != 0.0 or low - low != 0.0:
                continue
            half = (Decimal(low) + Decimal(high)) / 2
            digits = f"{half:e}".partition("e")
            found += [f"{half:e}", f"{digits[0]}1e{digits[2]}", f"{half:f}"]
    for _ in range(CASES // 3):
        whole = "".join(chance.choice("0123456789") for _ in range(chance.choice((0, 1, 5, 19, 25, 400))))
        part = "".join(chance.choice("0123456789") for _ in range(chance.choice((0, 1, 5, 19, 25, 400))))
        exponent = chance.choice(
            ("", "", f"e{chance.randrange(-400, 400)}", f"E+{chance.randrange(20)}", "e", "e-")
        )
        found.append(chance.choice(("", "-", "+")) + whole + chance.choice(("", ".")) + part + exponent)
    found += ["", ".", "-", "+.e1", "1.", ".5", "inf", "-Infinity", "NaN", "+nan", "+-inf", "infinit", "1_0",
              "1e99999999999999999999",
              "1e-99999999999999999999", "0e99999", "0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", " 1", "1 ", "²",
              "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623159e308", "9007199254740993"]  # fmt: skip
    return found


def test_floats_in_text() -> None:
    given = texts(seeds.chance("native texts", 3))
    wanted = [parse_f64(text) for text in given]
    assert list(map(repr, results("parse_f64", (t.STRING,), t.Optional(t.F64), given))) == list(
        map(repr, wanted)
    )
    meaning = OPERATIONS["parse_f32"].meaning((t.STRING,), t.Optional(t.F32))
    found = results("parse_f32", (t.STRING,), t.Optional(t.F32), given)
    assert list(map(repr, found)) == [repr(meaning(text)) for text in given]


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_case_of_every_code_point(name: str) -> None:
    points = [*range(0xD800), *range(0xE000, 0x110000)]
    given = ["".join(map(chr, points[i : i + 64])) for i in range(0, len(points), 64)]
    chance = seeds.chance("native texts", 4)
    marks = ["Σ", "a", "1", ".", "\u0301", "ß", "İ", "ﬁ", "'", "\N{DESERET CAPITAL LETTER LONG I}", " "]
    given += ["".join(chance.choices(marks, weights=[3] + [1] * 10, k=6)) for _ in range(CASES)]
    assert results(name, (t.STRING,), t.STRING, given) == [getattr(text, name)() for text in given]


def test_sigma_beside_every_code_point() -> None:
    given = [f"{before}{chr(point)}Σ{chr(point)}" for point in range(0x110000) if not 0xD800 <= point < 0xE000
             and chr(point).isprintable() for before in "A1"] if CASES > 3000 else [
        f"{before}{chr(point)}Σ{chr(point)}" for point in range(0x3100) for before in "A1"]  # fmt: skip
    assert results("lower", (t.STRING,), t.STRING, given) == [text.lower() for text in given]


def test_utf8() -> None:
    chance = seeds.chance("native texts", 5)
    pieces = [b"a", "é".encode(), "€".encode(), "𝄞".encode(), b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
              b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xc3", b"\xe2\x82", b"\xf5", b"\xff",
              b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf"]  # fmt: skip
    given = [
        b"".join(chance.choices(pieces[:4] if i % 2 else pieces, k=chance.randrange(9))) for i in range(CASES)
    ]
    op = native("decode", (t.BYTES,), t.STRING)
    for data in given:
        (found,), fired = op.fire_batch([[(data,)]])
        try:
            assert found == [data.decode()]
        except UnicodeDecodeError:
            assert fired.trap is not None
            assert fired.trap.code == "bad-utf8"


def test_times_in_text() -> None:
    chance = seeds.chance("native texts", 6)
    forms = ["2024-02-29", "2023-02-29", "1969-12-31T23:59:59.999999Z", "2024-01-01 10:20", "2024-01-01T10:20:30,5+01:00",
             "+294247-01-10T04:00:54.775807Z", "+294247-01-10T04:00:54.775808Z", "-290308-12-21T19:59:05.224192Z",
             "+294247-01-10T05:00:54.775807+01:00", "2024-13-01", "2024-01-01T24:00",
             "2024-01-01t10:20z", "2024-01-01T10:20:30.1234567-0230"]  # fmt: skip
    given = list(forms)
    for _ in range(CASES):
        text = list(chance.choice(forms))
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(2)] = chance.choice(
                ["0", "1", "9", ":", "-", "T", "Z", "+", ".", " ", "é", ""]
            )
        given.append("".join(text))
    meaning = OPERATIONS["parse_time"].meaning((t.STRING,), t.Optional(t.TIME))
    assert results("parse_time", (t.STRING,), t.Optional(t.TIME), given) == [meaning(text) for text in given]


@pytest.mark.parametrize("kind", [t.Decimal(9, 2), t.Decimal(38, 10), t.Decimal(5, 5), t.Decimal(38, 0)])
def test_decimals_and_wide_numbers_in_text(kind: t.Type) -> None:
    chance = seeds.chance("native texts", 7)
    given = ["", ".", "-", "+.5", "5.", "00000000000000000000000000000000000000000001", "1.10", "1e5", str(2**127),
             str(-(2**127)), str(2**127 - 1), "9" * 38, "-" + "9" * 39, "1" * 200, "ff", "0." + "0" * 50]  # fmt: skip
    for _ in range(CASES):
        whole = "".join(chance.choice("0059") for _ in range(chance.choice((0, 1, 3, 7, 28, 38, 39))))
        part = "".join(chance.choice("0005") for _ in range(chance.choice((0, 1, 2, 5, 10, 12))))
        given.append(chance.choice(("", "-", "+")) + whole + chance.choice(("", ".")) + part)
    for name, type_ in (("parse_decimal", t.Optional(kind)), ("parse_i128", t.Optional(t.I128))):
        meaning = OPERATIONS[name].meaning((t.STRING,), type_)
        assert results(name, (t.STRING,), type_, given) == [meaning(text) for text in given]
    bases = [(text.replace(".", "z"), chance.randrange(40)) for text in given]
    meaning = OPERATIONS["parse_i128"].meaning((t.STRING, t.I64), t.Optional(t.I128))
    found = results("parse_i128", (t.STRING, t.I64), t.Optional(t.I128), bases)
    assert found == [meaning(text, base) for text, base in bases]


def test_powers_of_ten() -> None:
    assert power_of_ten(0, up=True) == 1 << 127
    assert power_of_ten(1, up=False) == 10 << 124
    for exponent in (-292, -5, 60, 324):
        low, high = power_of_ten(exponent, up=False), power_of_ten(exponent, up=True)
        assert high == low + 1
        assert low.bit_length() == 128


@pytest.mark.parametrize("debug", [False, True])
def test_the_parts_of_a_text_are_sent_from_a_loop(debug: bool) -> None:
    """The list of the parts lies beside the counters of loops: nothing may be written behind it."""
    text = """river 1; input lines: string; output parts: string; (parts) <- parted(lines);
    operator parted(x: string) -> (y: string) { on x(line) { for part in split(line, " ") { emit y part; } } }"""
    (instance,) = compile_source(Source("parts.river", text)).graph.instances
    assert isinstance(instance.operator, typed.Operator)
    found = compile_native(instance.operator, debug=debug)
    assert isinstance(found, NativeOperator)
    lines = [f"the {n % 7} of {n % 3} ways \u00e9{n}" for n in range(50)]
    (parts,), fired = found.fire_batch([lines])
    assert fired.row == len(lines)
    assert parts == [part for line in lines for part in line.split(" ")]


@pytest.mark.parametrize(
    ("file", "record", "type_"),
    [
        ("text.rt", "List", t.List(t.I64)),
        ("text.rt", "Deque", t.Deque(t.I64)),
        ("map.rt", "Map", t.Map(t.I64, t.I64)),
        ("omap.rt", "Map", t.OMap(t.I64, t.I64)),
        ("sums.rt", "Sum", t.FSUM),
    ],
)
def test_records_of_the_runtime_are_as_large_as_their_types(file: str, record: str, type_: t.Type) -> None:
    place = files("backends.native.runtime").joinpath(file).read_text(encoding="utf-8")
    classes: list[ast.stmt] = [item for item in ast.parse(place).body if isinstance(item, ast.ClassDef)]
    unit = compile_tree(ast.Module(classes, []), file, Unit())
    assert unit.records[record][0] == size_align(type_)[0]


PARTS = """
type Cut = {s: string, i: i64, j: i64};
input x: Cut;
output o: {middle: string, rest: string, size: i64};
operator cut(x: Cut) -> (o: {middle: string, rest: string, size: i64}) {
  on x(r) { let s = r.s; emit o {middle: s[r.i:r.j], rest: s[r.i:len(s)], size: len(s)}; }
}
(o) <- cut(x);
"""


def test_parts_of_texts() -> None:
    chance = seeds.chance("texts", "parts")
    compiled = river.compile(f"river 1; {PARTS}", lang="il")
    texts = [
        "".join(chance.choices("ab é€😀"[: 3 if i % 2 else 6], k=chance.randrange(90))) for i in range(400)
    ]
    bounds = [[chance.choice([-1, 0, chance.randrange(len(s) + 2), len(s)]) for _ in range(2)] for s in texts]
    cuts = [{"s": s, "i": i, "j": j} for s, (i, j) in zip(texts, bounds, strict=True)]
    inside = [cut for cut, s in zip(cuts, texts, strict=True) if 0 <= cut["i"] <= cut["j"] <= len(s)]
    found = compiled.run({"x": cuts}, on_error="skip")
    assert found["o"].to_pylist() == [
        {"middle": cut["s"][cut["i"] : cut["j"]], "rest": cut["s"][cut["i"] :], "size": len(cut["s"])}
        for cut in inside
    ]
    assert sum(found.summary.skipped.values()) == len(cuts) - len(inside)
    for cut in [{"s": "é€", "i": 3, "j": 3}, {"s": "ab", "i": 1, "j": 3}, {"s": "aé", "i": -1, "j": 2}]:
        said: list[str] = []
        for backend in ("reference", "multicore"):
            with pytest.raises(Rejected) as caught:
                compiled.run({"x": [cut]}, backend=backend)
            said.append(str(caught.value))
        assert said[0] == said[1]


def compiled(text: str, *, debug: bool = False) -> NativeOperator:
    """The operator of a program of one."""
    (instance,) = compile_source(Source("one.river", f"river 1; {text} (y) <- one(x);")).graph.instances
    assert isinstance(instance.operator, typed.Operator)
    found = compile_native(instance.operator, debug=debug)
    assert isinstance(found, NativeOperator), found
    return found


FIXED = ("%.2f", "%f", "%.0f", "%8.3f", "%-14.1f", "%012.4f", "%.17f", "%.18f", "%+.2f", "%.19f", "%09f")
WHOLE = ("%d", "%08d", "%-8d", "%5d", "%+d", "%.4d")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "forms"), [("f64", FIXED), ("i64", WHOLE)])
def test_numbers_in_forms(kind: str, forms: tuple[str, ...]) -> None:
    """Those that the runtime library writes itself, and those that it leaves to the system, as Python writes them."""
    chance = seeds.chance("native texts", "forms", kind)
    if kind == "f64":
        values: list[float] = [
            *doubles(chance),
            0.5,
            1.5,
            2.5,
            -0.5,
            0.125,
            0.375,
            1e18,
            2.0**63,
            2.0**62,
            99.995,
            0.9999999,
        ]
        values += [n / 2 ** chance.randrange(12) for n in range(-500, 500)]  # many are halfway
        values += [float("inf"), float("-inf"), float("nan")]
    else:
        values = [
            chance.choice((-1, 1)) * (chance.getrandbits(63) >> chance.randrange(63)) for _ in range(CASES)
        ]
        values += [
            0,
            -(2**63),
            2**63 - 1,
            *(sign * 10**n - less for n in range(19) for sign in (1, -1) for less in (0, 1)),
        ]
    texts_ = ", ".join(f'format("{form}", v)' for form in forms)
    operator = compiled(
        f"input x: {kind}; output y: list<string>; operator one(x: {kind}) -> (y: list<string>) "
        f"{{ on x(v) {{ emit y [{texts_}]; }} }}"
    )
    (found,), fired = operator.fire_batch([values])
    assert fired.trap is None
    of_type = t.F64 if kind == "f64" else t.I64
    meanings = OPERATIONS["format"].meaning((t.STRING, of_type), t.STRING)
    for value, made in zip(values, found, strict=True):
        assert list(made) == [meanings(form, value) for form in forms], value


@pytest.mark.parametrize("debug", [False, True])
def test_texts_are_parted_and_put_together(debug: bool) -> None:
    chance = seeds.chance("native texts", "parted", debug)
    signs = "ab ,é€"
    rows = [
        ("".join(chance.choices(signs[: chance.choice((3, 4, 6))], k=chance.randrange(chance.choice((5, 40, 140))))),
         chance.choice(("a", " ", ",", "é", "", ", ", "ab")))
        for _ in range(CASES // (10 if debug else 2))
    ]  # fmt: skip
    operator = compiled(
        "input x: {s: string, by: string}; output y: {parts: list<string>, whole: string}; "
        "operator one(x: {s: string, by: string}) -> (y: {parts: list<string>, whole: string}) { on x(v) { "
        "let parts = split(v.s, v.by); "
        'emit y {parts: parts, whole: parts[0] + "|" + v.by + v.s + ("" + (parts[len(parts) - 1] + "."))}; } }',
        debug=debug,
    )
    rows = [(s, by) for s, by in rows if s or by]
    (found,), fired = operator.fire_batch([rows])
    assert fired.trap is None
    wanted = [(list(s) if by == "" else s.split(by), s, by) for s, by in rows]
    assert [(list(parts), whole) for parts, whole in found] == [
        (parts, f"{parts[0]}|{by}{s}{parts[-1]}.") for parts, s, by in wanted
    ]


@pytest.mark.parametrize("debug", [False, True])
def test_a_text_is_read_from_where_it_was_read_last(debug: bool) -> None:
    chance = seeds.chance("native texts", "indices", debug)
    item = "{s: string, t: string, at: list<i64>}"
    operator = compiled(
        f"input x: {item}; output y: list<string>; operator one(x: {item}) -> (y: list<string>) {{ on x(v) {{ "
        'let made = v.s + "\u20ac"; var seen: list<string> = []; for i in v.at { '
        "if rem.trunc(i, 3) == 0 and i < len(v.t) { push(seen, v.t[i:i + 1]); } push(seen, char(i32(made[i]))); "
        "push(seen, made[i:i + 1]); push(seen, made[i:len(made)]); } emit y seen; } }",
        debug=debug,
    )

    def text() -> str:
        """Of always as many characters and bytes: those that are made lie at the same place in different firings."""
        return "".join(chance.sample("aé" * 40, 80))

    rows: list[Any] = [
        (text(), text(), [*chance.choices(range(81), k=12), *range(5), *range(80, 70, -1)])
        for _ in range(50 if debug else 200)
    ]
    (found,), fired = operator.fire_batch([rows])
    assert fired.trap is None
    for (s, other, at), seen in zip(rows, found, strict=True):
        made, wanted = s + "€", list[str]()
        for i in at:
            wanted += [*(other[i : i + 1] if i % 3 == 0 else ""), made[i], made[i], made[i:]]
        assert list(seen) == wanted


@pytest.mark.parametrize("debug", [False, True])
def test_texts_that_grow_change_none_that_were_made_of_them(debug: bool) -> None:
    chance = seeds.chance("native texts", "growing", debug)
    item = "list<{to: i64, of: i64, piece: string, comma: bool}>"
    operator = compiled(
        f"input x: {item}; output y: list<string>; operator one(x: {item}) -> (y: list<string>) {{ on x(v) {{ "
        'var made: list<string> = ["", "", "", ""]; var seen: list<string> = []; for c in v { '
        'if c.comma { made[c.to] = made[c.of] + c.piece + ","; } else { made[c.to] = made[c.of] + c.piece; } '
        "push(seen, made[c.to]); } emit y seen; } }",
        debug=debug,
    )
    pieces = ("", "a", "é", "a dozen and one", "x" * 70)
    rows = [
        [(to, to if chance.random() < 0.8 else chance.randrange(4), chance.choice(pieces), chance.random() < 0.4)
         for to in chance.choices(range(4), (6, 4, 1, 1), k=chance.randrange(120))]
        for _ in range(CASES // (100 if debug else 10))
    ]  # fmt: skip
    (found,), fired = operator.fire_batch([rows])
    assert fired.trap is None
    for row, seen in zip(rows, found, strict=True):
        made, wanted = [""] * 4, list[str]()
        for to, of, piece, comma in row:
            made[to] = made[of] + piece + "," * comma
            wanted.append(made[to])
        assert list(seen) == wanted


def test_a_text_that_is_made_of_many_pieces_is_not_copied_for_each() -> None:
    operator = compiled(
        "input x: i64; output y: i64; operator one(x: i64) -> (y: i64) { on x(v) { "
        'var s = ""; var t = ""; for i in 0..v { s = s + "some twenty letters."; t = t + "other" + string(i); } '
        "emit y len(s) + len(t); } }"
    )
    (found,), fired = operator.fire_batch(
        [[200_000]]
    )  # of 4 MB each: with a copy for each piece there is no room
    assert fired.trap is None
    assert list(found) == [200_000 * 25 + sum(len(str(i)) for i in range(200_000))]


def test_whole_numbers_in_text() -> None:
    chance = seeds.chance("native texts", "whole")
    given = [str(sign * (10**n + chance.randrange(-2, 2))) for n in range(24) for sign in (1, -1)]
    given += ["0" * n + "7" for n in range(1, 24)] + ["+" + "9" * n for n in range(17, 21)]
    given += [
        "",
        "+",
        "-",
        "--1",
        "1 ",
        " 1",
        "1_0",
        "0x1",
        "1a",
        "9" * 18 + ".",
        str(2**63),
        str(-(2**63)),
        str(2**63 - 1),
    ]
    meaning = OPERATIONS["parse_i64"].meaning((t.STRING,), t.Optional(t.I64))
    assert results("parse_i64", (t.STRING,), t.Optional(t.I64), given) == list(map(meaning, given))


def test_texts_in_order() -> None:
    """They differ in the bytes that a view has, behind them, or nowhere; zeros are characters, too."""
    chance = seeds.chance("native texts", "order")
    begins = [
        "",
        "a",
        "ab\0",
        "abc\0",
        "abcdefgh",
        "abcdefghijkl",
        "abcdefghijklmnop",
        "\0" * 12,
        "é" * 6,
        "abcé",
    ]
    some = [
        begin + "".join(chance.choices("\0ab\x7fé€", k=chance.randrange(9)))
        for begin in begins
        for _ in range(40)
    ]
    pairs = [(x, chance.choice((x, x + "\0", x[:-1], *chance.choices(some, k=8)))) for x in some * 3]
    operator = compiled(
        "input x: {a: string, b: string}; output y: {less: bool, most: bool}; "
        "operator one(x: {a: string, b: string}) -> (y: {less: bool, most: bool}) "
        "{ on x(v) { emit y {less: v.a < v.b, most: v.a <= v.b}; } }"
    )
    (found,), _ = operator.fire_batch([pairs])
    assert found == [(a < b, a <= b) for a, b in pairs]
