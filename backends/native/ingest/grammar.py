"""The parser of a schema as source in the runtime's language.

A row is read by a loop that is left (`break`) where something is not as usual: such a row is noted for the general reader, and
its place in the columns stays free. The next row begins behind the next line feed, which is looked for first, so that the
processor is at several rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.ingest.form import sizes
from backends.native.ingest.values import WORD, indented, leave, string_at, value_at, when, word_of
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.native.ingest.form import Form, FormField

WIDE: Final = 64
GROUP: Final = 16
"""Cells of the widest record that one function reads; of wider ones, so many are read by each of several. What LLVM takes for a
function grows with more than its size."""

_POINTERS: Final = {1: "p8", 4: "p32", 8: "p64", 16: "p64"}


def source(form: Form) -> str:
    """The function `parse` of a covered form, and what it calls."""
    fields = form.fields()
    assert fields  # noqa: S101 - of a covered form
    more: list[str] = []
    wide = form.delimited and form.width > WIDE
    match form.format:
        case _ if form.delimited:
            row, more = (_wide(form), _groups(form, fields)) if wide else (_record(form, fields), [])
            blank = when("rare(e - at <= 1)", when("data[at] == LINE or data[at] == RETURN", _NEXT))
            before = [
                "inner = I.inner",
                "used = I.used",
                "moved = False",
                "start = line + inner",
                *(blank if form.width > 1 else []),
            ]
        case "jsonl":
            row, more = (
                [*_object(fields, "find"), "p = space(data, p)", *leave("data[p] != LINE")],
                _finds(fields, form),
            )
            before = ["start = line", "follow = I.follow", "base = i64(0)", *when("rare(e == at)", _NEXT)]
        case _:
            row, before = _line(fields[0]), ["start = line"]
    lines = [
        *more,
        "def parse(I: Ingest):",
        *indented([
            "data = I.data", "end = I.end", "room = I.room", "at = I.at", "r = I.row", "line = I.line",
            *([] if wide else _pointers(form, range(len(sizes(form.type))))),
            "while at < end and r < room:",
            *indented([
                "e = at + line_length(offset(data, at))",
                *before,
                "p = at",
                "good = False",
                "while True:",
                *indented([*row, "good = True", "break"]),
                *when("rare(good == False)", [
                    *(["I.inner = inner", "I.used = used", "e = record_end(I, at) - 1"] if form.delimited else []),
                    "doubt(I, r, at, e, start)",
                    *when("I.doubt == I.most", ["room = r + 1"]),
                ]),
                "r += 1", "line += 1", "at = e + 1",
            ]),
            "I.at = at", "I.row = r", "I.line = line",
        ]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _pointers(form: Form, wanted: Iterable[int]) -> list[str]:
    """The addresses of columns."""
    kinds = sizes(form.type)
    return [f"c{i} = {_POINTERS[kinds[i]]}(I.columns[{i}])" for i in wanted]


_NEXT: Final = ["at = e + 1", "line += 1", "continue"]


# ---------------------------------------------------------------------------------------------- cells, lines


def _record(form: Form, fields: tuple[FormField, ...]) -> list[str]:
    return [*_cells(form, fields, range(form.width)), *when("rare(moved)", ["e = p"])]


def _wide(form: Form) -> list[str]:
    """A record of many cells: a function reads some of them, and the next the next."""
    groups = range(0, form.width, GROUP)
    return [line for first in groups for line in (f"p = cells_{first}(I, at, p, r)", *leave("p < 0"))] + [
        "e = p"
    ]


def _groups(form: Form, fields: tuple[FormField, ...]) -> list[str]:
    """The functions for the cells of a wide record: from `p` on, of the record that begins at `at`; behind them, or -1."""
    of = dict(zip(form.places, fields, strict=True))
    lines: list[str] = []
    for first in range(0, form.width, GROUP):
        places = range(first, min(first + GROUP, form.width))
        read = [of[place] for place in places if place in of]
        lines += [
            "@apart",
            f"def cells_{first}(I: Ingest, at: i64, start: i64, r: i64) -> i64:",
            *indented([
                "data = I.data", "p = start", "moved = False",
                *_pointers(form, (field.value - field.optional + i for field in read for i in range(field.width))),
                "while True:",
                *indented([*_cells(form, fields, places), "return p"]),
                "return -1",
            ]),
        ]  # fmt: skip
    return lines


def _cells(form: Form, fields: tuple[FormField, ...], places: range) -> list[str]:
    of = dict(zip(form.places, fields, strict=True))
    lines: list[str] = []
    for place in places:
        last = place == form.width - 1
        lines += _cell(of.get(place), form, last=last)
        if last:
            lines += when("data[p] == RETURN", ["p += 1"])
            lines += leave("data[p] != LINE")
        else:
            lines += [*leave(f"data[p] != {ord(form.delimiter)}"), "p += 1"]
    return lines


def _cell(field: FormField | None, form: Form, *, last: bool) -> list[str]:
    if field is None or field.type == t.STRING:
        quoted = [f"p = quoted(I, p + 1, at, {field is not None})", *leave("p < 0"), "moved = True"]
        if field is None:
            return when("rare(data[p] == QUOTE)", quoted, ["p = cell(I, p)"])
        quoted += field.view("I.text, I.size, I.plain != 0")
        read = when("rare(data[p] == QUOTE)", quoted, ["q = cell(I, p)", *string_at(field, "q - p"), "p = q"])
    else:
        read = [
            "closing = False",
            *when("rare(data[p] == QUOTE)", ["closing = True", "p += 1"]),
            *value_at(field, strict=False),
            *when("rare(closing)", [*leave("data[p] != QUOTE"), "p += 1"]),
        ]
    if not field.optional:
        return read
    empty = "data[p] == LINE or data[p] == RETURN" if last else f"data[p] == {ord(form.delimiter)}"
    return when(empty, field.missing(), read)


def _line(field: FormField) -> list[str]:
    shorter = when("e > at", when("data[e - 1] == RETURN", ["q = e - 1"]))
    if field.type == t.BYTES:
        return ["q = e", *shorter, *field.view("offset(data, p), q - p, False")]
    string = [*string_at(field, "q - p"), "p = q"]
    read = string if field.type == t.STRING else value_at(field, strict=False)
    if field.optional:
        read = when("p == q", field.missing(), read)
    return ["q = e", *shorter, "stop = q", *read, *leave("p != stop")]


# --------------------------------------------------------------------------------------------------- objects


def _named(name: str, at: str) -> str:
    """Whether a name and its closing quote are at a position."""
    text = name.encode() + b'"'
    tests: list[str] = []
    for i in range(0, len(text), 8):
        part = text[i : i + 8]
        word = f"load64(data, {at} + {i})"
        mask = "" if len(part) == 8 else f" & {(1 << 8 * len(part)) - 1}"
        tests.append(f"{word}{mask} == {word_of(part)}")
    return " and ".join(tests)


def _finds(fields: tuple[FormField, ...], form: Form, name: str = "find") -> list[str]:
    """The function that finds a field by its name, those for the records in the fields, and their own."""
    lines = [f"def {name}(data: p8, p: i64) -> i64:"]
    for i, field in enumerate(fields):
        lines += indented(when(_named(field.name, "p"), [f"return {i}"]))
    lines += indented([f"return {len(fields)}"])
    for field in fields:
        if field.parts:
            lines += [*_finds(field.parts, form, f"find_{field.follow}"), *_inside(field, form)]
    return lines


def _inside(field: FormField, form: Form) -> list[str]:
    """The function for the record of a field: behind it, or -1. Names of members that are skipped are noted from `base` on.

    It is called by where its guesses lie: each record has its own, while a record and the first record in it begin at one column.
    """
    columns_ = range(field.value, field.value + sum(part.width for part in field.parts))
    return [
        f"def record_{field.follow}(I: Ingest, at: i64, r: i64, base: i64) -> i64:",
        *indented([
            "data = I.data", "p = at", f"follow = offset(I.follow, {field.follow})",
            *_pointers(form, columns_),
            "while True:",
            *indented([*_object(field.parts, f"find_{field.follow}"), "return p"]),
            "return -1",
        ]),
    ]  # fmt: skip


def _member(i: int, field: FormField) -> list[str]:
    """The member whose name is known to be at p."""
    size = len(field.name.encode()) + 2
    if field.type == t.STRING:
        plain = [
            "n = ctz(text_stops(offset(data, p)))",
            *when(
                "n != 64 and data[p + n] == QUOTE",
                [*string_at(field, "n"), "p += n + 1"],
                ["p = text_at(I, p)", *leave("p < 0"), *field.view("I.text, I.size, I.plain != 0")],
            ),
        ]
        read = [*leave("data[p] != QUOTE"), "p += 1", *plain]
    elif field.parts:
        read = [f"p = record_{field.follow}(I, p, r, base + extras)", *leave("p < 0"), *field.present()]
    else:
        read = value_at(field, strict=True)
    if field.optional:
        null = [*leave(f"load64(data, p) & {WORD} != {word_of(b'null')}"), "p += 4", *field.missing()]
        read = when("rare(data[p] == 110)", null, read)
    return [
        *leave(f"seen & {1 << i} != 0"),
        f"seen = seen | {1 << i}",
        f"p = space(data, p + {size})",
        *leave("data[p] != 58"),
        "p = space(data, p + 1)",
        *read,
    ]


def _object(fields: tuple[FormField, ...], find: str) -> list[str]:
    """An object at p; behind it afterwards."""
    count = len(fields)
    members = when(
        f"rare({find}(data, p + 1) != {count})",
        ["which = -1"],
        ["p = extra(I, p + 1, base, base + extras)", *leave("p < 0"), "extras += 1"],
    )
    for i in reversed(range(count)):
        member = when(_named(fields[i].name, "p + 1"), _member(i, fields[i]), ["which = -1"])
        members = when(f"which == {i}", member, members)
    every = (1 << count) - 1
    optional = sum(1 << i for i, field in enumerate(fields) if field.optional)
    absent: list[str] = []
    for i, field in enumerate(fields):
        if field.optional:
            absent += when(f"seen & {1 << i} == 0", field.missing())
    return [
        "p = space(data, p)",
        *leave("data[p] != 123"),
        "p = space(data, p + 1)",
        "seen = i64(0)", "extras = i64(0)", f"last = i64({count})", "done = False",
        "while True:",
        *indented([
            *leave("data[p] != QUOTE"),
            "which = i64(follow[last])",
            *members,
            *when("rare(which < 0)", [f"follow[last] = i8({find}(data, p + 1))", "continue"]),
            f"last = which if which < {count} else {count + 1}",
            "p = space(data, p)",
            *when("data[p] == 44", ["p = space(data, p + 1)", "continue"]),
            "done = data[p] == 125",
            "break",
        ]),
        *leave("done == False"),
        "p += 1",
        *when(f"rare(seen != {every})", [*when(f"seen | {optional} != {every}", ["break"]), *absent]),
    ]  # fmt: skip
