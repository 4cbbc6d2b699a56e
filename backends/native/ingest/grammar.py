"""The parser of a schema as source in the runtime's language.

A row is read by a loop that is left (`break`) where something is not as usual: such a row is noted for the general reader, and
its place in the columns stays free. The next row begins behind the next line feed, which is looked for first, so that the
processor is at several rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from backends.native.layout import columns
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

_POINTERS: Final = {1: "p8", 4: "p32", 8: "p64", 16: "p64"}
_PLAIN: Final = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.TIME, t.DURATION)
_WORD: Final = (1 << 32) - 1
_INFINITE: Final = 0x7F800000
_MOST_FIELDS: Final = 60


@frozen
class Field:
    """A field of the rows: its type without `?`, its columns, and whether anybody reads them.

    `parts`: the fields of a record in it, whose columns begin at `value`; `follow`: where its guesses lie (see `Reader`).
    """

    name: str
    type: t.Type
    optional: bool
    value: int
    live: bool
    parts: tuple[Field, ...] = ()
    follow: int = 0

    @property
    def valid(self) -> int:
        """The column that says whether there is a value."""
        return self.value - 1

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.optional + (sum(part.width for part in self.parts) or 1)

    def store(self, value: str, at: str = "r") -> list[str]:
        """The statements that give the row its value."""
        return [*self._known(), f"c{self.value}[{at}] = {value}"] if self.live else []

    def view(self, text: str) -> list[str]:
        """The statements that give the row a string: where, how many bytes, whether ASCII."""
        return [*self._known(), f"view(c{self.value}, r, {text})"] if self.live else []

    def _known(self) -> list[str]:
        return [f"c{self.valid}[r] = 1"] if self.optional else []

    def missing(self) -> list[str]:
        """The statements that leave the row without value."""
        return self._blank() if self.live else ["pass"]

    def _blank(self) -> list[str]:
        known = [f"c{self.valid}[r] = 0"] if self.optional else []
        if self.parts:
            return [*known, *(line for part in self.parts for line in part._blank())]  # noqa: SLF001 - of its own kind
        if self.type == t.STRING or isinstance(self.type, t.Decimal):
            return [*known, f"c{self.value}[r * 2] = 0", f"c{self.value}[r * 2 + 1] = 0"]
        return [*known, f"c{self.value}[r] = 0"]

    def present(self) -> list[str]:
        """The statements that say that a record is there, whose fields are known."""
        return self._known() if self.live else []


@frozen
class Form:
    """What a parser is made for. `places`: the column of a file of `width` columns that each field is (CSV, TSV)."""

    format: str
    type: t.Type
    used: frozenset[str] | None = None
    width: int = 0
    places: tuple[int, ...] = ()

    @property
    def delimiter(self) -> str:
        """What stands between cells."""
        return "\t" if self.format == "tsv" else ","

    def fields(self) -> tuple[Field, ...] | None:
        """The fields, or None if there are some that this parser does not know."""
        named = self.type.fields if isinstance(self.type, t.Record) else (("value", self.type),)
        live = [
            self.used is None or name in self.used or not isinstance(self.type, t.Record) for name, _ in named
        ]
        return _fields(named, live, 0, len(named) + 2, nested=self.format == "jsonl")


def _fields(
    named: Iterable[tuple[str, t.Type]], live: Iterable[bool], column: int, follow: int, *, nested: bool
) -> tuple[Field, ...] | None:
    """Fields whose columns begin at `column`; the guesses of the records in them lie from `follow` on."""
    found: list[Field] = []
    for (name, type_), used in zip(named, live, strict=True):
        optional = isinstance(type_, t.Optional)
        inner = type_.inner if isinstance(type_, t.Optional) else type_
        column += optional
        if inner in _PLAIN or isinstance(inner, t.Decimal):
            found.append(Field(name, inner, optional, column, used))
        elif nested and isinstance(inner, t.Record) and inner.fields:
            count = len(inner.fields)
            parts = _fields(inner.fields, [used] * count, column, follow + count + 2, nested=True)
            if parts is None:
                return None
            found.append(Field(name, inner, optional, column, used, parts, follow))
            follow += len(_guesses(parts))
        else:
            return None
        column += found[-1].width - optional
    return tuple(found)


def _guesses(fields: tuple[Field, ...]) -> bytes:
    """At first each field is expected behind the one before it."""
    here = bytes((*range(1, len(fields)), 0, 0, 0))
    return here + b"".join(_guesses(field.parts) for field in fields if field.parts)


def guesses(form: Form) -> bytes:
    """By record: which field comes after which, which comes first, which after a member that is no field."""
    return _guesses(form.fields() or ())


def covered(form: Form) -> bool:
    """Whether there is a parser for a form."""
    fields = form.fields()
    if not fields:
        return False
    match form.format:
        case "csv" | "tsv":
            return True
        case "jsonl":
            # A name is compared as it is spelled, without escapes.
            return isinstance(form.type, t.Record) and _members(fields)
        case "text":
            return not isinstance(form.type, t.Record)
        case _:
            return False


def _members(fields: tuple[Field, ...]) -> bool:
    """Whether these can be told apart as members of an object."""
    return len(fields) <= _MOST_FIELDS and all(
        field.name.isprintable() and not set(field.name) & {'"', "\\"} and _members(field.parts)
        for field in fields
    )


def sizes(type_: t.Type) -> tuple[int, ...]:
    """Bytes of an item of each column."""
    return tuple(column.kind.size for column in columns(type_).columns)


def live(form: Form) -> tuple[bool, ...]:
    """Which columns somebody reads."""
    return tuple(field.live for field in form.fields() or () for _ in range(field.width))


# ------------------------------------------------------------------------------------------------- source


def _in(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


def _if(condition: str, then: Iterable[str], other: Iterable[str] = ()) -> list[str]:
    otherwise = list(other)
    return [f"if {condition}:", *_in(then), *(["else:", *_in(otherwise)] if otherwise else [])]


def _leave(condition: str) -> list[str]:
    """The row is for the general reader if ..."""
    return _if(f"rare({condition})", ["break"])


def source(form: Form) -> str:
    """The function `parse` of a covered form, and what it calls."""
    fields = form.fields()
    assert fields  # noqa: S101 - of a covered form
    quotes = form.format in ("csv", "tsv")
    more: list[str] = []
    match form.format:
        case "csv" | "tsv":
            row = _record(form, fields)
            blank = _if("rare(e - at <= 1)", _if("data[at] == LINE or data[at] == RETURN", _NEXT))
            before = [
                "inner = I.inner",
                "moved = False",
                "start = line + inner",
                *(blank if form.width > 1 else []),
            ]
        case "jsonl":
            row, more = (
                [*_object(fields, "find"), "p = space(data, p)", *_leave("data[p] != LINE")],
                _finds(fields, form),
            )
            before = ["start = line", "follow = I.follow", "base = i64(0)", *_if("rare(e == at)", _NEXT)]
        case _:
            row, before = _line(fields[0]), ["start = line"]
    lines = [
        *more,
        "def parse(I: Ingest):",
        *_in([
            "data = I.data", "end = I.end", "room = I.room", "at = I.at", "r = I.row", "line = I.line",
            *_pointers(form, range(len(sizes(form.type)))),
            "while at < end and r < room:",
            *_in([
                "e = at + line_length(offset(data, at))",
                *before,
                "p = at",
                "good = False",
                "while True:",
                *_in([*row, "good = True", "break"]),
                *_if("rare(good == False)", [
                    *(["I.inner = inner", "e = record_end(I, at) - 1"] if quotes else []),
                    "doubt(I, r, at, e, start)",
                    *_if("I.doubt == I.most", ["room = r + 1"]),
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


# ------------------------------------------------------------------------------------------------- values


def _value(field: Field, *, strict: bool) -> list[str]:
    """A value at p, other than a string; `strict`: by the rules of JSON."""
    flag = "True" if strict else "False"
    match field.type:
        case t.BOOL:
            return _bool(field, strict=strict)
        case t.I32 | t.I64 | t.U64:
            return _whole(field, strict=strict)
        case t.F32 | t.F64:
            return _float(field, strict=strict)
        case t.Decimal(precision, scale):
            stores = field.store("I.number", "r * 2") + (field.store("I.high", "r * 2 + 1")[-1:])
            return [f"p = decimal_at(I, p, {flag}, {precision}, {scale})", *_leave("p < 0"), *stores]
        case _:
            name = "time_at" if field.type == t.TIME else "duration_at"
            read = [f"p = {name}(I, p)", *_leave("p < 0"), *field.store("I.number")]
            quote = [*_leave("data[p] != QUOTE"), "p += 1"]
            return [*quote, *read, *quote] if strict else read


def _bool(field: Field, *, strict: bool) -> list[str]:
    other = (
        ["break"]
        if strict
        else _if("data[p] != 48 and data[p] != 49", ["break"], ["v = i64(data[p]) - 48", "p += 1"])
    )
    false = f"w & 255 == 102 and load64(data, p + 1) & {_WORD} == {_bytes(b'alse')}"
    return [
        "w = load64(data, p)",
        "v = i64(1)",
        *_if(f"w & {_WORD} == {_bytes(b'true')}", ["p += 4"], _if(false, ["p += 5", "v = 0"], other)),
        *field.store("i8(v)"),
    ]


def _whole(field: Field, *, strict: bool) -> list[str]:
    signed = field.type != t.U64
    more = ["w = load64(data, p)", "k = digits(w)"]
    take = _if("k != 0", ["v = v * ten(k) + number(w, k)", "p += k"])
    third = [*more, *_leave("k > 3"), *take, *(_leave("v < 0") if signed else [])]
    return [
        *(
            ["negative = False", *_if("rare(data[p] == MINUS)", ["negative = True", "p += 1"])]
            if signed
            else []
        ),
        "w = load64(data, p)",
        "n = digits(w)",
        *_leave("n == 0"),
        *(_if("n > 1 and data[p] == ZERO", ["break"]) if strict else []),
        "v = number(w, n)",
        "p += n",
        *_if("n == 8", [*more, *take, *_if("k == 8", third)]),
        *(_leave("v > 2147483647") if field.type == t.I32 else []),
        *(["v = 0 - v if negative else v"] if signed else []),
        *field.store("i32(v)" if field.type == t.I32 else "v"),
    ]


def _float(field: Field, *, strict: bool) -> list[str]:
    usual = "n != 0 and n != 8 and data[p + n] == POINT and k != 0 and k != 8 and data[q] | 32 != 101"
    if strict:
        usual += " and (n == 1 or data[p] != ZERO)"
    quick = [
        "v = bits(quotient(f64(number(w, n) * ten(k) + number(x, k)), ten_float(k)))",
        "v = v | (u64(negative) << 63)",
        "p = q",
    ]
    slow = [f"p = float_at(I, first, {strict})", *_leave("p < 0"), "v = I.number"]
    single = ["s = single(v)", *_leave(f"s & {_INFINITE} == {_INFINITE}"), *field.store("s")]
    return [
        "first = p",
        "negative = False",
        *_if("rare(data[p] == MINUS)", ["negative = True", "p += 1"]),
        "w = load64(data, p)",
        "n = digits(w)",
        "x = load64(data, p + n + 1)",
        "k = digits(x)",
        "q = p + n + 1 + k",
        "v = i64(0)",
        *_if(usual, quick, slow),
        *(single if field.type == t.F32 else field.store("v")),
    ]


def _text(field: Field, size: str) -> list[str]:
    """The string of `size` bytes at p."""
    return [
        f"n = {size}",
        "k = i64(1)",
        *_if("rare(n >= 64)", ["k = utf8(offset(data, p), n)"], _if(
            "rare(tops(offset(data, p)) & ((1 << n) - 1) != 0)", ["k = utf8(offset(data, p), n)"])),
        *_leave("k < 0"),
        *field.view("offset(data, p), n, k != 0"),
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------- cells, lines


def _record(form: Form, fields: tuple[Field, ...]) -> list[str]:
    of = dict(zip(form.places, fields, strict=True))
    lines: list[str] = []
    for place in range(form.width):
        last = place == form.width - 1
        lines += _cell(of.get(place), form, last=last)
        if last:
            lines += _if("data[p] == RETURN", ["p += 1"])
            lines += _leave("data[p] != LINE")
        else:
            lines += [*_leave(f"data[p] != {ord(form.delimiter)}"), "p += 1"]
    return [*lines, *_if("rare(moved)", ["e = p"])]


def _cell(field: Field | None, form: Form, *, last: bool) -> list[str]:
    if field is None or field.type == t.STRING:
        quoted = [f"p = quoted(I, p + 1, {field is not None})", *_leave("p < 0"), "moved = True"]
        if field is None:
            return _if("rare(data[p] == QUOTE)", quoted, ["p = cell(I, p)"])
        quoted += field.view("I.text, I.size, I.plain != 0")
        read = _if("rare(data[p] == QUOTE)", quoted, ["q = cell(I, p)", *_text(field, "q - p"), "p = q"])
    else:
        read = [
            "closing = False",
            *_if("rare(data[p] == QUOTE)", ["closing = True", "p += 1"]),
            *_value(field, strict=False),
            *_if("rare(closing)", [*_leave("data[p] != QUOTE"), "p += 1"]),
        ]
    if not field.optional:
        return read
    empty = "data[p] == LINE or data[p] == RETURN" if last else f"data[p] == {ord(form.delimiter)}"
    return _if(empty, field.missing(), read)


def _line(field: Field) -> list[str]:
    shorter = _if("e > at", _if("data[e - 1] == RETURN", ["q = e - 1"]))
    string = [*_text(field, "q - p"), "p = q"]
    read = string if field.type == t.STRING else _value(field, strict=False)
    if field.optional:
        read = _if("p == q", field.missing(), read)
    return ["q = e", *shorter, "stop = q", *read, *_leave("p != stop")]


# --------------------------------------------------------------------------------------------------- objects


def _bytes(text: bytes) -> int:
    """A word of at most eight bytes as a signed number."""
    return int.from_bytes(text.ljust(8, b"\0"), "little", signed=True)


def _named(name: str, at: str) -> str:
    """Whether a name and its closing quote are at a position."""
    text = name.encode() + b'"'
    tests: list[str] = []
    for i in range(0, len(text), 8):
        part = text[i : i + 8]
        word = f"load64(data, {at} + {i})"
        mask = "" if len(part) == 8 else f" & {(1 << 8 * len(part)) - 1}"
        tests.append(f"{word}{mask} == {_bytes(part)}")
    return " and ".join(tests)


def _finds(fields: tuple[Field, ...], form: Form, name: str = "find") -> list[str]:
    """The function that finds a field by its name, those for the records in the fields, and their own."""
    lines = [f"def {name}(data: p8, p: i64) -> i64:"]
    for i, field in enumerate(fields):
        lines += _in(_if(_named(field.name, "p"), [f"return {i}"]))
    lines += _in([f"return {len(fields)}"])
    for field in fields:
        if field.parts:
            lines += [*_finds(field.parts, form, f"find_{field.value}"), *_inside(field, form)]
    return lines


def _inside(field: Field, form: Form) -> list[str]:
    """The function for the record of a field: behind it, or -1. Names of members that are skipped are noted from `base` on."""
    columns_ = range(field.value, field.value + sum(part.width for part in field.parts))
    return [
        f"def record_{field.value}(I: Ingest, at: i64, r: i64, base: i64) -> i64:",
        *_in([
            "data = I.data", "p = at", f"follow = offset(I.follow, {field.follow})",
            *_pointers(form, columns_),
            "while True:",
            *_in([*_object(field.parts, f"find_{field.value}"), "return p"]),
            "return -1",
        ]),
    ]  # fmt: skip


def _member(i: int, field: Field) -> list[str]:
    """The member whose name is known to be at p."""
    size = len(field.name.encode()) + 2
    if field.type == t.STRING:
        plain = [
            "n = ctz(text_stops(offset(data, p)))",
            *_if(
                "n != 64 and data[p + n] == QUOTE",
                [*_text(field, "n"), "p += n + 1"],
                ["p = text_at(I, p)", *_leave("p < 0"), *field.view("I.text, I.size, I.plain != 0")],
            ),
        ]
        read = [*_leave("data[p] != QUOTE"), "p += 1", *plain]
    elif field.parts:
        read = [f"p = record_{field.value}(I, p, r, base + extras)", *_leave("p < 0"), *field.present()]
    else:
        read = _value(field, strict=True)
    if field.optional:
        null = [*_leave(f"load64(data, p) & {_WORD} != {_bytes(b'null')}"), "p += 4", *field.missing()]
        read = _if("rare(data[p] == 110)", null, read)
    return [
        *_leave(f"seen & {1 << i} != 0"),
        f"seen = seen | {1 << i}",
        f"p = space(data, p + {size})",
        *_leave("data[p] != 58"),
        "p = space(data, p + 1)",
        *read,
    ]


def _object(fields: tuple[Field, ...], find: str) -> list[str]:
    """An object at p; behind it afterwards."""
    count = len(fields)
    members = _if(
        f"rare({find}(data, p + 1) != {count})",
        ["which = -1"],
        ["p = extra(I, p + 1, base, base + extras)", *_leave("p < 0"), "extras += 1"],
    )
    for i in reversed(range(count)):
        member = _if(_named(fields[i].name, "p + 1"), _member(i, fields[i]), ["which = -1"])
        members = _if(f"which == {i}", member, members)
    every = (1 << count) - 1
    optional = sum(1 << i for i, field in enumerate(fields) if field.optional)
    absent: list[str] = []
    for i, field in enumerate(fields):
        if field.optional:
            absent += _if(f"seen & {1 << i} == 0", field.missing())
    return [
        "p = space(data, p)",
        *_leave("data[p] != 123"),
        "p = space(data, p + 1)",
        "seen = i64(0)", "extras = i64(0)", f"last = i64({count})", "done = False",
        "while True:",
        *_in([
            *_leave("data[p] != QUOTE"),
            "which = i64(follow[last])",
            *members,
            *_if("rare(which < 0)", [f"follow[last] = i8({find}(data, p + 1))", "continue"]),
            f"last = which if which < {count} else {count + 1}",
            "p = space(data, p)",
            *_if("data[p] == 44", ["p = space(data, p + 1)", "continue"]),
            "done = data[p] == 125",
            "break",
        ]),
        *_leave("done == False"),
        "p += 1",
        *_if(f"rare(seen != {every})", [*_if(f"seen | {optional} != {every}", ["break"]), *absent]),
    ]  # fmt: skip
