"""Tens of thousands of damaged files, made quickly: native ingest and the general readers agree on each.

What `hypothesis` finds in hundreds of files it finds with care; this finds what only numbers find. `RIVER_CASES` says how many.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from river.io.errors import SKIP, STOP
from river.lang import types as t
from river.testing import seeds
from tests.backends.ingest_files import FOLDER, TYPES, general, inner, native, quoted

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytest.importorskip("llvmlite")

CHUNK = 250
CASES = int(os.environ.get("RIVER_CASES", "120"))  # of each kind of file

WHOLES = ["", "-", "+5", "-0", "0", "007", "1_0", " 1", "1 ", "1.0", "1e3", "٣", "9223372036854775807", "9223372036854775808",
          "-9223372036854775808", "-9223372036854775809", "2147483647", "2147483648", "-2147483648", "-2147483649",
          "18446744073709551615", "18446744073709551616", "99999999999999999999999999"]  # fmt: skip
FLOATS = ["", ".5", "5.", "-0", "-0.0", "0.0", "00.5", "1e400", "-1e-400", "4.9e-324", "2.47e-324", "nan", "inf", "1e", "NaN",
          "Infinity", "9007199254740993", "3.4028236e38", "1.7976931348623157e308", "1.7976931348623159e308", "1e5", "1E+05",
          "123456789012345678.5", "8.5e22", "1e23", "-", "1.e5", "1..5", "1e-", "0x1", "2.2250738585072011e-308"]  # fmt: skip
STRINGS = ["", "a", "twelve bytes", "thirteen byte", "é" * 20, "x" * 31, "x" * 32, "y" * 33, "x" * 64, "null", "true", "😀", " ",
           "a\x00b", "日本語", "a b c", "'", "/", "#"]  # fmt: skip
TIMES = ["2024-02-30", "2024-02-29", "1900-02-29", "2024-01-01T24:00", "2024-01-01T12:30", "2024-01-01T12:30:00+02:00",
         "2024-1-1", "+12024-01-01", "2024-01-01T10:00:00.1234567", "2024-01-01T10:00:00.", "2024-01-01x", "2024-01-01T10:00:00Z",
         "", "9999-12-31T23:59:59.999999", "0001-01-01", "2024-13-01", "2024-01-01T23:59:60", "2024-01-01 10:00:00-00:30",
         "-0001-01-01", "0000-01-01", "2024-01-01T1:00:00"]  # fmt: skip
DURATIONS = ["", "1s", "1.5s", "-3ms", "10us", "1h", "1d", "2min", "1", "1m", "+1s", "0.0000001s", "9223372036854775807us",
             "9223372036854775808us", "106751991d", "106751992d", "1.s", ".5s", "1 s", "1e3s"]  # fmt: skip
BOOLS = ["true", "false", "1", "0", "True", "FALSE", "", "truex", "fals", " true"]
DECIMALS = ["", "0", "1.25", "-1.25", "1.255", "9999999.99", "10000000.00", "-9999999.99", "1e2", "1.2e-1", ".5", "5.", "-",
            "0.00", "00.1", "123456789012345678.12345678901234567890", "1234567890123456789.1", "-0.00", "1.250"]  # fmt: skip
OF = {"i64": WHOLES, "i32": WHOLES, "u64": WHOLES, "f64": FLOATS, "f32": FLOATS, "string": STRINGS, "bool": BOOLS, "time": TIMES,
      "duration": DURATIONS}  # fmt: skip
CSV_TOKENS = [b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\x00", b"\\", b" ",
              b"9", b"-", b".", b"e", b"x" * 33, b"\xef\xbb\xbf", b"\t"]  # fmt: skip
JSON_TOKENS = [*CSV_TOKENS, b"{", b"}", b"[", b"]", b":", b"null", b"true", b'\\"', b"\\u0041", b"\\ud83d\\ude00",
               b"\\ud800", b"\\x", b'"a":', b'"b":1,', b"{}", b"[1]", b"1e5"]  # fmt: skip
OTHERS = ["null", "1", '"x"', "true", "[1]", "{}", '"\\u00e9"', "1.5", "-", '"\\ud800"', "1e5", '{"a": 1, "a": 2}',
          "[1,]", "01", '{"x": [true, null , {"y":"z"}], "q": -1.5e3 }', "[" * 40 + "]" * 40, '"a\\tb"', "NaN", "-0", "1.0",
          "Infinity"]  # fmt: skip


def a_number(chance: random.Random) -> str:
    """Any whole number, of any size."""
    return str(chance.randrange(-(1 << chance.randrange(1, 70)), 1 << chance.randrange(1, 70)))


def a_float(chance: random.Random) -> str:
    """Any float, or digits that look like one."""
    if chance.random() < 0.5:
        return repr(struct.unpack("d", chance.randbytes(8))[0])
    return f"{chance.randrange(10 ** chance.randrange(1, 22))}.{chance.randrange(10**6)}e{chance.randrange(-30, 30)}"


def cell(type_: t.Type, chance: random.Random) -> str:
    """A text for a value of a type, mostly one that can be read."""
    kind = inner(type_)
    if isinstance(kind, t.Decimal):
        return chance.choice(DECIMALS) if chance.random() < 0.2 else f"{chance.randrange(-999, 999)}.25"
    assert isinstance(kind, t.Primitive)
    if chance.random() < 0.15:
        return chance.choice(OF[kind.name])
    match kind.name:
        case "f64" | "f32":
            return a_float(chance)
        case "bool":
            return chance.choice(BOOLS[:2])
        case "string":
            return chance.choice(STRINGS)
        case "time":
            day = f"{chance.randrange(1, 9999):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
            return day + chance.choice(["", "T10:11", " 10:11:12", "T10:11:12.5Z", "T23:59:59.123456+01:00"])
        case "duration":
            return f"{chance.randrange(-(10**6), 10**6)}{chance.choice(['s', 'ms', 'us', 'h'])}"
        case _:
            return str(chance.randrange(10000)) if chance.random() < 0.7 else a_number(chance)


def csv_row(names: Sequence[str], types: dict[str, t.Type], chance: random.Random, between: str) -> str:
    cells = [cell(types.get(name, t.STRING), chance) for name in names]
    return between.join(quoted(x) if chance.random() < 0.15 else x for x in cells)


def csv_file(type_: t.Record, chance: random.Random, between: str = ",") -> bytes:
    declared = [name for name, _ in type_.fields]
    names = chance.choice([declared, [*declared[::-1], "x"]])  # each is compiled
    types, end = dict(type_.fields), chance.choice(["\n", "\n", "\r\n"])
    rows = [csv_row(names, types, chance, between) for _ in range(chance.randrange(8))]
    head = (between.join(names) + end).encode()
    return head + damaged(end.join(rows).encode() + chance.choice([b"", end.encode()]), CSV_TOKENS, chance)


def spelling(type_: t.Type, chance: random.Random) -> str:
    if chance.random() < 0.1:
        return chance.choice(OTHERS)
    text = cell(type_, chance)
    return f'"{text}"' if inner(type_) in (t.STRING, t.TIME, t.DURATION) else text


def json_file(type_: t.Record, chance: random.Random) -> bytes:
    lines: list[str] = []
    for _ in range(chance.randrange(8)):
        comma, colon = chance.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
        members = [(name, spelling(kind, chance)) for name, kind in type_.fields]
        if chance.random() < 0.2:
            chance.shuffle(members)
        if chance.random() < 0.2:
            members.insert(
                chance.randrange(len(members) + 1),
                (chance.choice(["x", "a", "\\u0061", "é"]), chance.choice(OTHERS)),
            )
        if chance.random() < 0.1:
            members.pop(chance.randrange(len(members)))
        lines.append("{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}")
    end = chance.choice(["\n", "\n", "\r\n"])
    return damaged(end.join(lines).encode() + chance.choice([b"", end.encode()]), JSON_TOKENS, chance)


def damaged(data: bytes, tokens: Sequence[bytes], chance: random.Random) -> bytes:
    """Bytes with some put in, taken away, overwritten, or said twice."""
    for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data = data[:at] + data[at + chance.randrange(1, 4) :]
            case 1:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 2:
                data = data[:at] + data[max(0, at - chance.randrange(40)) :]
            case _:
                data = data[:at] + chance.choice(tokens) + data[at:]
    return data


def fuzzed(name: str, make: Callable[[t.Record, random.Random], bytes], chunk: int) -> None:
    chance = seeds.chance(name, chunk)
    path = FOLDER / f"many-{name}"
    for _ in range(min(CHUNK, CASES - CHUNK * chunk)):
        type_ = TYPES[chance.choice(list(TYPES))]
        data = make(type_, chance)
        path.write_bytes(data)
        agree(path, type_, chance, data)


def agree(path: Path, type_: t.Record, chance: random.Random, data: bytes) -> None:
    block, rows = chance.choice([4, 7, 40, 100, 1000, 1 << 20]), chance.choice([1, 2, 5, 1 << 16])
    by = chance.choice([None, "a"]) if type_.fields[0][1] == t.I64 else None
    for policy in (SKIP, STOP):
        assert native(path, type_, policy, block, rows, by) == general(path, type_, policy, by), (data, block)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(-(-CASES // CHUNK)))
def test_many_csv_files(chunk: int) -> None:
    fuzzed("x.csv", csv_file, chunk)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(-(-CASES // CHUNK)))
def test_many_tsv_files(chunk: int) -> None:
    fuzzed("x.tsv", lambda type_, chance: csv_file(type_, chance, "\t"), chunk)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(-(-CASES // CHUNK)))
def test_many_json_files(chunk: int) -> None:
    fuzzed("x.jsonl", json_file, chunk)
