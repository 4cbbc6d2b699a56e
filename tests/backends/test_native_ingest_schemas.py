"""Random types of rows: the parser that is made for one and the general reader agree on files of such rows, good and damaged.

`RIVER_CASES` says how many types; each has several files. Nearly all parsers are made without optimisation, because
what is looked for here is the text that they are made from.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from backends.native import shared
from backends.native.ingest import open_native
from backends.native.jit import OPTIMISATION, optimised
from river.io.errors import SKIP, STOP
from river.io.sources import open_source
from river.lang import types as t
from river.lang.scope import show
from river.testing import seeds
from tests.backends.ingest_files import FOLDER, quoted, taken
from tests.backends.test_native_ingest_many import CSV_TOKENS, JSON_TOKENS, OTHERS, cell, damaged

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from river.io.batches import ItemSource
    from river.io.errors import OnError, Refusals

pytest.importorskip("llvmlite")

CHUNK = 20
FILES = 6  # of a type
CASES = int(os.environ.get("RIVER_CASES", "10"))
OPTIMISED = 0.02
NAMES = ["a", "b", "ab", "value", "ts", "ü", "x_1", "exactly8", "exactly_7", "seven_b", "sixteen_bytes_ab", "of_seventeen_byte",
         "a_name_that_is_quite_long_indeed", "日本", "_", "null", "true", "parse", "find", "base", "data", "at"]  # fmt: skip
SCALARS = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.TIME, t.DURATION)


# ------------------------------------------------------------------------------------------------------ types of rows


def scalar(chance: random.Random) -> t.Type:
    if chance.random() < 0.15:
        precision = chance.randrange(1, 39)
        return t.Decimal(precision, chance.randrange(precision + 1))
    return chance.choice(SCALARS)


def field_type(chance: random.Random, deep: int) -> t.Type:
    """A type of a field; records lie at most `deep` deep in it."""
    what = chance.random()
    if deep and what < 0.35:
        found: t.Type = record(chance, deep - 1)
    elif what > 0.985:
        found = chance.choice([t.List(scalar(chance)), t.Tuple((t.I64, t.STRING)), t.Array(t.I32, 2)])
    else:
        found = scalar(chance)
    return t.Optional(found) if chance.random() < 0.3 else found


def record(chance: random.Random, deep: int) -> t.Record:
    most = chance.choice([1, 2, 3, 5, 9, 20] if deep < 2 else [1, 2, 3, 5])
    names = chance.sample(NAMES, min(most, len(NAMES)))
    return t.Record(tuple((name, field_type(chance, deep)) for name in names))


def parsed(type_: t.Type, *, nested: bool) -> bool:
    """Whether there is a parser for rows of a type, told without the code under test."""
    match type_:
        case t.Optional(inner):
            return parsed(inner, nested=nested)
        case t.Record(fields):
            return nested and all(parsed(of, nested=True) for _, of in fields)
        case _:
            return isinstance(type_, t.Decimal) or type_ in SCALARS


# ------------------------------------------------------------------------------------------------------------- files


def text_of(type_: t.Type, chance: random.Random) -> str:
    """A cell, mostly one that can be read."""
    if isinstance(type_, t.Optional):
        return "" if chance.random() < 0.2 else text_of(type_.inner, chance)
    if isinstance(type_, t.Decimal) and chance.random() < 0.8:
        whole = 10 ** chance.randrange(type_.precision - type_.scale + 1)
        sign, part = chance.choice(["", "-"]), "".join(chance.choices("0123456789", k=type_.scale))
        return f"{sign}{chance.randrange(whole)}" + (f".{part}" if part else "")
    return cell(type_, chance) if parsed(type_, nested=False) else chance.choice(OTHERS)


def spelled(type_: t.Type, chance: random.Random, wild: float) -> str:
    """The type's JSON; `wild`: how often it is something else."""
    if chance.random() < wild:
        return chance.choice(OTHERS)
    match type_:
        case t.Optional(inner):
            return "null" if chance.random() < 0.25 else spelled(inner, chance, wild)
        case t.Record(fields):
            return an_object(fields, chance, wild)
        case t.STRING | t.TIME | t.DURATION:
            return f'"{text_of(type_, chance)}"'
        case t.List() | t.Array() | t.Tuple():
            return '[1, "x"]' if isinstance(type_, t.Tuple) else "[1, 2]"
        case _:
            return text_of(type_, chance)


def an_object(fields: Iterable[tuple[str, t.Type]], chance: random.Random, wild: float) -> str:
    comma, colon = chance.choice([(",", ":"), (",", ":"), (", ", ": "), (" ,\t", " : ")])
    members = [(name, spelled(of, chance, wild)) for name, of in fields]
    if chance.random() < 0.3:
        chance.shuffle(members)
    if chance.random() < 0.2:
        other = (chance.choice([*NAMES, "other", "\\u0061"]), chance.choice(OTHERS))
        members.insert(chance.randrange(len(members) + 1), other)
    if members and chance.random() < 0.1 * (wild > 0):
        members.pop(chance.randrange(len(members)))
    return "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"


def json_file(type_: t.Record, chance: random.Random) -> bytes:
    wild = chance.choice([0, 0, 0.02])
    rows = [an_object(type_.fields, chance, wild) for _ in range(chance.randrange(1, 10))]
    text = "".join(row + chance.choice(["\n", "\n", "\n", "\r\n", "\n\n"]) for row in rows)
    data = text.removesuffix("\n").encode() if chance.random() < 0.2 else text.encode()
    return damaged(data, JSON_TOKENS, chance) if wild else data


def table_file(type_: t.Record, header: list[str], between: str, chance: random.Random) -> bytes:
    types, end = dict(type_.fields), chance.choice(["\n", "\n", "\r\n"])
    rows = [
        [text_of(types.get(name, t.STRING), chance) for name in header] for _ in range(chance.randrange(10))
    ]
    lines = [between.join(quoted(x) if chance.random() < 0.15 else x for x in row) for row in rows]
    return (between.join(header) + end).encode() + damaged(end.join(lines).encode(), CSV_TOKENS, chance)


def text_file(type_: t.Type, chance: random.Random) -> bytes:
    rows = [text_of(type_, chance) for _ in range(chance.randrange(1, 10))]
    return damaged("\n".join(rows).encode(), CSV_TOKENS, chance)


def a_case(chance: random.Random) -> tuple[str, t.Type, Callable[[], bytes]]:
    """The end of a file's name, what its rows are, and how to make one."""
    match chance.choice(["jsonl", "jsonl", "jsonl", "csv", "tsv", "text"]):
        case "jsonl":
            type_ = record(chance, chance.choice([0, 1, 1, 2, 2, 3, 4]))
            return "x.jsonl", type_, lambda: json_file(type_, chance)
        case "text":
            single = t.Optional(scalar(chance)) if chance.random() < 0.3 else scalar(chance)
            return "x.txt", single, lambda: text_file(single, chance)
        case format_:
            rows, between = record(chance, 0), "," if format_ == "csv" else "\t"
            header = [name for name, _ in rows.fields] + ["other"] * chance.randrange(2)
            chance.shuffle(header)
            return f"x.{format_}", rows, lambda: table_file(rows, header, between, chance)


# ---------------------------------------------------------------------------------------------------------- the test


def projected(rows: Iterable[Any], type_: t.Type, used: frozenset[str] | None) -> list[Any]:
    """The rows, with those fields only that somebody reads."""
    if used is None or not isinstance(type_, t.Record):
        return list(rows)
    places = [i for i, (name, _) in enumerate(type_.fields) if name in used]
    return [[row[i] for i in places] for row in rows]


def opened(path: Path, type_: t.Type, refusals: Refusals | OnError, by: str | None) -> ItemSource:
    return open_source(path, type_, name="in", on_error=refusals, batch=3, by=by)


def compared(path: Path, type_: t.Type, used: frozenset[str] | None, chance: random.Random) -> None:
    """Both readers on a file, with and without a field that rows must ascend by. `used`: the fields that are wanted."""
    fields = type_.fields if isinstance(type_, t.Record) else ()
    numbers = [name for name, of in fields if of in (t.I64, t.TIME)]
    by = chance.choice([None, None, *numbers])
    block, rows = chance.choice([4, 7, 40, 100, 1000, 1 << 20]), chance.choice([1, 2, 5, 1 << 16])

    def natively(refusals: Refusals) -> Iterable[list[Any]]:
        reader = open_native(opened(path, type_, refusals, by), rows, used, block=block)
        assert reader is not None
        for batch in reader:
            yield projected(batch.values(), type_, used)

    for policy in (SKIP, STOP):
        ours = taken(policy, natively)
        theirs = taken(
            policy, lambda refusals: (projected(x, type_, used) for x in opened(path, type_, refusals, by))
        )
        assert ours == theirs, (show(type_), by, used, path.read_bytes(), block)


def many(chunk: int, count: int, make: pytest.MonkeyPatch) -> None:
    chance = seeds.chance("schemas", chunk)
    make.setattr(shared, "kept", lambda _, build: build())  # once is enough
    for _ in range(count):
        end, type_, file = a_case(chance)
        path = FOLDER / f"schema-{end}"
        fields = type_.fields if isinstance(type_, t.Record) else (("value", type_),)
        used = frozenset(name for name, _ in fields if chance.random() < 0.5)
        used = used if chance.random() < 0.5 else None
        covered = all(parsed(of, nested=end == "x.jsonl") for _, of in fields)
        with optimised(OPTIMISATION if chance.random() < OPTIMISED else 0):
            for _ in range(FILES):
                path.write_bytes(file())
                if covered:
                    compared(path, type_, used, chance)
                    continue
                source = opened(path, type_, SKIP, None)
                assert open_native(source, 10) is None, show(type_)
                source.close()


@pytest.mark.slow
def test_parsers_of_random_types_agree_with_the_general_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    many(0, 6, monkeypatch)


def test_a_column_alone_ends_where_its_format_says() -> None:
    """The text of such a parser says nothing of what stands between columns, by which it is known all the same."""
    type_ = t.Record((("alone", t.STRING),))
    for end, rows in (("tsv", ["('a,b',)", "('c',)"]), ("csv", ["('c',)"])):
        path = FOLDER / f"alone.{end}"
        path.write_bytes(b"alone\na,b\nc\n")

        def natively(refusals: Refusals, path: Path = path) -> Iterable[list[Any]]:
            reader = open_native(opened(path, type_, refusals, None), 10)
            assert reader is not None
            for batch in reader:
                yield batch.values()

        assert taken(SKIP, natively).items == rows


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(1, 1 + -(-CASES // CHUNK)))
def test_parsers_of_many_random_types_agree(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    many(chunk, min(CHUNK, CASES - CHUNK * (chunk - 1)), monkeypatch)
