"""The form of rows: their fields, the columns of these, and whether there is a parser for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.layout import columns
from river.classes import frozen
from river.io.delimited import KINDS, delimiter_of, has_header
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: Final = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.TIME, t.DURATION)
_MOST_FIELDS: Final = 60


@frozen
class FormField:
    """A field of the rows: its type without `?`, its columns, and whether anybody reads them.

    `parts`: the fields of a record in it, whose columns begin at `value`; `follow`: where its guesses lie (see `Reader`).
    """

    name: str
    type: t.Type
    optional: bool
    value: int
    live: bool
    parts: tuple[FormField, ...] = ()
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
    """What a parser is made for. `given`: the fields that are not in the file.

    `places`: the column of a file of `width` columns that each of the others is (CSV, TSV).
    """

    format: str
    type: t.Type
    used: frozenset[str] | None = None
    width: int = 0
    places: tuple[int, ...] = ()
    given: frozenset[str] = frozenset()

    @property
    def delimited(self) -> bool:
        """Whether rows are records of cells, which quotes may keep open over lines."""
        return self.format in KINDS

    @property
    def headed(self) -> bool:
        """Whether the first record says something of the columns, and is no row."""
        return self.delimited and has_header(self.format)

    @property
    def delimiter(self) -> str:
        """What stands between cells."""
        return delimiter_of(self.format)

    def fields(self) -> tuple[FormField, ...] | None:
        """The fields in the file, or None if there are some that this parser does not know."""
        if self.format == "lines":
            return (FormField("value", t.BYTES, optional=False, value=0, live=True),)
        named = self.type.fields if isinstance(self.type, t.Record) else (("value", self.type),)
        live = [
            self.used is None or name in self.used or not isinstance(self.type, t.Record) for name, _ in named
        ]
        count = len(named) - len(self.given) + 2
        return _fields(named, live, 0, count, nested=self.format == "jsonl", given=self.given)


def _fields(
    named: Iterable[tuple[str, t.Type]],
    live: Iterable[bool],
    column: int,
    follow: int,
    *,
    nested: bool,
    given: frozenset[str] = frozenset(),
) -> tuple[FormField, ...] | None:
    """Fields whose columns begin at `column`; the guesses of the records in them lie from `follow` on."""
    found: list[FormField] = []
    for (name, type_), used in zip(named, live, strict=True):
        if name in given:
            column += len(sizes(type_))
            continue
        optional = isinstance(type_, t.Optional)
        inner = type_.inner if isinstance(type_, t.Optional) else type_
        column += optional
        if inner in _PLAIN or isinstance(inner, t.Decimal):
            found.append(FormField(name, inner, optional, column, used))
        elif nested and isinstance(inner, t.Record) and inner.fields:
            count = len(inner.fields)
            parts = _fields(inner.fields, [used] * count, column, follow + count + 2, nested=True)
            if parts is None:
                return None
            found.append(FormField(name, inner, optional, column, used, parts, follow))
            follow += len(_guesses(parts))
        else:
            return None
        column += found[-1].width - optional
    return tuple(found)


def _guesses(fields: tuple[FormField, ...]) -> bytes:
    """At first each field is expected behind the one before it."""
    here = bytes((*range(1, len(fields)), 0, 0, 0))
    return here + b"".join(_guesses(field.parts) for field in fields if field.parts)


def guesses(form: Form) -> bytes:
    """By record: which field comes after which, which comes first, which after a member that is no field."""
    return _guesses(form.fields() or ()) if form.format == "jsonl" else b"\0"


def covered(form: Form) -> bool:
    """Whether there is a parser for a form."""
    fields = form.fields()
    if not fields:
        return False
    match form.format:
        case _ if form.delimited:
            return True
        case "jsonl":
            # A name is compared as it is spelled, without escapes.
            return isinstance(form.type, t.Record) and _members(fields)
        case "lines":
            return True
        case "text":
            return len(fields) == 1 and not fields[0].parts
        case _:
            return False


def _members(fields: tuple[FormField, ...]) -> bool:
    """Whether these can be told apart as members of an object."""
    return len(fields) <= _MOST_FIELDS and all(
        field.name.isprintable() and not set(field.name) & {'"', "\\"} and _members(field.parts)
        for field in fields
    )


def sizes(type_: t.Type) -> tuple[int, ...]:
    """Bytes of an item of each column."""
    return tuple(column.kind.size for column in columns(type_).columns)


def live(form: Form) -> tuple[bool, ...]:
    """Which columns are read, because somebody wants them."""
    found = [False] * len(sizes(form.type))
    for field in form.fields() or ():
        begin = field.value - field.optional
        found[begin : begin + field.width] = [field.live] * field.width
    return tuple(found)


def stated(form: Form) -> tuple[bool, ...]:
    """Which columns are those of fields that are not in the file."""
    named = form.type.fields if isinstance(form.type, t.Record) else (("value", form.type),)
    return tuple(name in form.given for name, type_ in named for _ in sizes(type_))
