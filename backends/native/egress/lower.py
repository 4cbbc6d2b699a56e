"""Functions from columns to text: csv, tsv, jsonl, text and entries, byte for byte what `river.io.sinks` writes.

`i64 encode(out*, columns*, from, to)` puts rows from .. to - 1 into the buffer of `out` (`runtime/egress.rt`) and returns how
many rows of text these are; -1 if a text is no line (format text). A delta is its rows in the change log.
"""

from __future__ import annotations

from functools import cache
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, assert_never

from backends.native.egress import entries
from backends.native.egress.rows import Cursor, add_row_hash, add_row_same
from backends.native.idioms import counted, if_
from backends.native.ir import Builder
from backends.native.layout import Unsupported, columns, is_text
from backends.native.module import Module
from backends.native.rtlang import Signature, Unit, compile_file
from backends.native.runtime_library import runtime
from river.classes import define
from river.io import deltas, scalars
from river.io import schema as data
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from river.io.display import Entry

DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
_NET: Final = {
    "row_same": ("row_same", Signature(("p64", "i64", "p64", "i64"), "i1")),
    "row_hash": ("row_hash", Signature(("p64", "i64"), "i64")),
}
_LONGEST: Final = {
    "bool": 5, "i32": 11, "i64": 20, "u64": 20, "f32": 128, "f64": 128, "time": 32, "duration": 24, "unit": 2,
}  # fmt: skip
"""Bytes that the text of a scalar may take, and what its function may write behind it."""


@cache
def library() -> Unit:
    """The runtime of egress."""
    text = _with(runtime(), compile_file("egress.rt", runtime()))
    return _with(text, compile_file("egress_floats.rt", text))


def _with(first: Unit, second: Unit) -> Unit:
    second.functions.update(first.functions)
    return second


def net(module: Module, row: t.Type) -> Unit:
    """The runtime with the function `net` for rows of a type, which the module then has.

    Raises: Unsupported.
    """
    add_row_same(module, row, "row_same")
    add_row_hash(module, row, "row_hash")
    unit = _with(library(), compile_file("egress_net.rt", library(), renamed=_NET))
    module.functions.update(unit.functions)
    return unit


def encode_text(type_: t.Type, format_: str, name: str, entry: Entry | None = None) -> str:
    """The module with the function `encode`, called `name`, for items of a type. `entry`: of the format `entries`.

    Raises: Unsupported for what does not travel or has no text in this format.
    """
    module = Module()
    module.functions.update(library().functions)
    b = Builder()
    writer = Writer(module, b, b.slot("ptr"), DELIMITERS.get(format_, ""))
    start = b.call("ptr", "out_begin", ["ptr %out"])
    b.do(f"store ptr {start}, ptr {writer.cursor}")
    lines = _deltas if deltas.is_delta(type_) else _items
    rows = lines(writer, type_, format_, entry)
    b.call("void", "out_end", ["ptr %out", f"ptr {writer.place()}"])
    b.end(f"ret i64 {rows}")
    head = f"define i64 @{name}(ptr noalias %out, ptr %columns, i64 %from, i64 %to) nounwind"
    return module.text({name: b.finish(name, head)})


def _items(writer: Writer, type_: t.Type, format_: str, entry: Entry | None) -> str:
    """A line per item; how many lines."""
    b = writer.b
    cursor = Cursor.of(b, type_, "%columns")

    def line(row: str) -> None:
        if entry is not None:
            entries.line(
                writer, entry, [entries.field(writer, of, cursor, row) for _, of in data.columns(type_)]
            )
            return
        match format_:
            case "jsonl":
                writer.json(type_, cursor, row)
            case "text" if isinstance(type_, t.Record) and len(type_.fields) == 1:
                writer.plain(type_.fields[0][1], cursor, row)
            case "text":
                writer.plain(type_, cursor, row)
            case _ if isinstance(type_, t.Record):
                writer.cells([field for _, field in data.columns(type_)], cursor, row)
            case _:
                writer.cell(type_, cursor, row)
        writer.literal("\n")
        writer.flush()

    counted(b, "%to", line, "%from")
    return b.op("sub i64 %to, %from")


def _deltas(writer: Writer, type_: t.Type, format_: str, entry: Entry | None) -> str:
    """The lines of the change log (`river.io.deltas.changelog_rows`); how many."""
    b, module = writer.b, writer.module
    log, row_type = deltas.changelog(type_), deltas.row_type(type_)
    tau, many = log.fields[0][1], len(columns(row_type).columns)
    first = len(columns(tau).columns)
    net(module, row_type)
    number = b.slot("i64")
    b.do(f"store i64 0, ptr {number}")

    def place(at: int) -> str:
        return b.op(f"getelementptr inbounds ptr, ptr %columns, i64 {at}")

    inserted, deleted = place(first + 1), place(first + 2 + many)
    offsets = [Cursor(b, t.I64, [b.op(f"load ptr, ptr {place(at)}")]) for at in (first, first + 1 + many)]
    instant = Cursor.of(b, tau, "%columns")

    def line(row: str, cursor: Cursor, item: str, op: str) -> None:
        instant.at = cursor.at = 0
        if entry is not None:
            operation: entries.Put = lambda: writer.literal(op)  # noqa: E731
            fields = [entries.field(writer, of, cursor, item) for _, of in log.fields[2:]]
            entries.line(writer, entry, [entries.field(writer, tau, instant, row), (1, operation), *fields])
            return
        match format_:
            case "jsonl":
                names = [encode_basestring(name) for name, _ in log.fields]
                writer.literal("{" + names[0] + ":")
                writer.json(tau, instant, row)
                writer.literal(f',{names[1]}:"{op}"')
                for name, (_, field) in zip(names[2:], log.fields[2:], strict=True):
                    writer.literal(f",{name}:")
                    writer.json(field, cursor, item)
                writer.literal("}\n")
            case _:
                writer.cell(tau, instant, row)
                writer.literal(writer.delimiter + op + writer.delimiter * bool(row_type.fields))
                writer.cells([field for _, field in row_type.fields], cursor, item)
                writer.literal("\n")
        writer.flush()

    def delta(row: str) -> None:
        for each in offsets:
            each.at = 0
        (a, a_end), (d, d_end) = (each.extent(row) for each in offsets)
        m, n = b.op(f"sub i64 {a_end}, {a}"), b.op(f"sub i64 {d_end}, {d}")
        marks = b.slot("ptr")
        b.do(f"store ptr null, ptr {marks}")
        both = b.op(f"and i1 {b.op(f'icmp ne i64 {m}, 0')}, {b.op(f'icmp ne i64 {n}, 0')}")

        def netted() -> None:
            args = [
                "ptr %out",
                f"ptr {inserted}",
                f"i64 {a}",
                f"i64 {m}",
                f"ptr {deleted}",
                f"i64 {d}",
                f"i64 {n}",
            ]
            b.do(f"store ptr {b.call('ptr', 'net', args)}, ptr {marks}")

        if_(b, both, netted)
        found = b.op(f"load ptr, ptr {marks}")
        nothing = b.op(f"icmp eq ptr {found}, null")
        for op, table, start, after, before in (
            (deltas.DELETED, deleted, d, d_end, m), (deltas.INSERTED, inserted, a, a_end, "0"),
        ):  # fmt: skip
            cursor = Cursor.of(b, row_type, table)

            def one(
                item: str, *, start: str = start, before: str = before, cursor: Cursor = cursor, op: str = op
            ) -> None:
                over, write, on = b.fresh("over"), b.fresh("write"), b.fresh("on")
                b.branch(nothing, write, over)
                b.at(over)
                at = b.op(f"add i64 {b.op(f'sub i64 {item}, {start}')}, {before}")
                mark = b.op(f"load i8, ptr {b.op(f'getelementptr inbounds i8, ptr {found}, i64 {at}')}")
                b.branch(b.op(f"icmp ne i8 {mark}, 0"), on, write)
                b.at(write)
                line(row, cursor, item, op)
                count = b.op(f"load i64, ptr {number}")
                b.do(f"store i64 {b.op(f'add i64 {count}, 1')}, ptr {number}")
                b.at(on)

            counted(b, after, one, start)

    counted(b, "%to", delta, "%from")
    return b.op(f"load i64, ptr {number}")


@define
class Writer:
    """Puts values at the cursor. `literal` text waits until the next value makes room for both."""

    module: Module
    b: Builder
    cursor: str
    delimiter: str
    _waiting: bytes = b""

    def place(self) -> str:
        """Where the next byte goes."""
        return self.b.op(f"load ptr, ptr {self.cursor}")

    def literal(self, text: str) -> None:
        """Constant text."""
        self._waiting += text.encode()

    def flush(self, room: int = 0) -> None:
        """Writes the constant text that waits, and makes room behind it."""
        text, self._waiting = self._waiting, b""
        if not text and not room:
            return
        b = self.b
        p = b.call("ptr", "out_room", ["ptr %out", f"ptr {self.place()}", f"i64 {len(text) + room}"])
        for at in range(0, len(text), 8):
            piece = text[at : at + 8]
            to = b.op(f"getelementptr inbounds i8, ptr {p}, i64 {at}")
            b.do(f"store i{8 * len(piece)} {int.from_bytes(piece, 'little')}, ptr {to}, align 1")
        self.move(b.op(f"getelementptr inbounds i8, ptr {p}, i64 {len(text)}"))

    def move(self, p: str) -> None:
        """Goes on at p."""
        self.b.do(f"store ptr {p}, ptr {self.cursor}")

    def put(self, name: str, *args: str, out: bool = True) -> None:
        """Calls a function of the runtime that writes at the cursor."""
        head = ["ptr %out"] if out else []
        self.move(self.b.call("ptr", name, [*head, f"ptr {self.place()}", *args]))

    # ---------------------------------------------------------------------------------------------- scalars

    def scalar(self, type_: t.Type, cursor: Cursor, row: str) -> None:
        """The text of a scalar that is not a string, as it is in a cell."""
        b = self.b
        if is_text(type_):
            self.flush()
            self.put("out_base64", f"ptr {cursor.place('{ i64, i64 }', row)}")
            return
        if isinstance(type_, t.Decimal):
            self.flush(64)
            self.put("put_decimal", f"i128 {cursor.scalar(type_, row)}", f"i64 {type_.scale}")
            return
        if not isinstance(type_, t.Primitive) or type_.name not in _LONGEST:
            raise Unsupported(f"the text of {type_}")
        if type_ == t.UNIT:
            self.literal("()")
            return
        value = cursor.scalar(type_, row)
        self.flush(_LONGEST[type_.name])
        match type_.name:
            case "bool":
                self._bool(value)
            case "i32":
                self.put("put_signed", f"i64 {b.op(f'sext i32 {value} to i64')}")
            case "u64":
                self.put("put_unsigned", f"i64 {value}")
            case "f32":
                self.put("put_single", f"double {b.op(f'fpext float {value} to double')}", out=False)
            case "f64":
                self.put("put_double", f"double {value}", out=False)
            case name:
                self.put(
                    {"time": "put_time", "duration": "put_duration"}.get(name, "put_signed"), f"i64 {value}"
                )

    def _bool(self, value: str) -> None:
        b = self.b
        yes, no = (int.from_bytes(text, "little") for text in (b"true", b"false"))
        p = self.place()
        b.do(f"store i40 {b.op(f'select i1 {value}, i40 {yes}, i40 {no}')}, ptr {p}, align 1")
        size = b.op(f"select i1 {value}, i64 4, i64 5")
        self.move(b.op(f"getelementptr inbounds i8, ptr {p}, i64 {size}"))

    def plain(self, type_: t.Type, cursor: Cursor, row: str) -> None:
        """A scalar as a line of text; the function ends with -1 if it is no line."""
        if not scalars.is_scalar(type_):
            raise Unsupported(f"a line of text for {type_}")
        if type_ != t.STRING:
            self.scalar(type_, cursor, row)
            return
        b = self.b
        view = cursor.place("{ i64, i64 }", row)
        good, bad = b.fresh("line"), b.fresh("lines")
        b.branch(b.call("i1", "is_line", [f"ptr {view}"]), good, bad)
        b.at(bad)
        b.end("ret i64 -1")
        b.at(good)
        self.put("out_text", f"ptr {view}")

    # ------------------------------------------------------------------------------------------------ cells

    def cells(self, types: list[t.Type], cursor: Cursor, row: str) -> None:
        """A record of cells."""
        for i, type_ in enumerate(types):
            if i:
                self.literal(self.delimiter)
            self.cell(type_, cursor, row)

    def cell(self, type_: t.Type, cursor: Cursor, row: str) -> None:
        """A cell: none is empty, an empty text for an optional is quoted."""
        b = self.b
        if isinstance(type_, t.Optional):
            here, inner = cursor.flag(row), type_.inner
            self.flush()

            def some() -> None:
                before = self.place()
                self.cell(inner, cursor, row)
                self.flush()
                if is_text(inner):
                    empty = b.op(f"icmp eq ptr {before}, {self.place()}")
                    if_(b, empty, self._empty)

            if_(b, here, some)
        elif type_ == t.STRING:
            view = cursor.place("{ i64, i64 }", row)
            self.flush()
            self.put("out_cell", f"ptr {view}", f"i64 {self._mask()}")
        elif scalars.is_scalar(type_):
            self.scalar(type_, cursor, row)
        else:
            self.flush()
            start = b.call("i64", "out_place", ["ptr %out", f"ptr {self.place()}"])
            self.json(type_, cursor, row)
            self.flush()
            args = ["ptr %out", f"i64 {start}", f"ptr {self.place()}", f"i64 {self._mask()}"]
            self.move(b.call("ptr", "out_quoted", args))

    def _empty(self) -> None:
        self.literal('""')
        self.flush()

    def _mask(self) -> int:
        """A word full of delimiters."""
        return int.from_bytes(self.delimiter.encode() * 8, "little")

    # ------------------------------------------------------------------------------------------------- json

    def json(self, type_: t.Type, cursor: Cursor, row: str) -> None:
        """JSON on one line (`river.io.encode`)."""
        match type_:
            case t.STRING:
                view = cursor.place("{ i64, i64 }", row)
                self.flush()
                self.put("out_json", f"ptr {view}")
            case t.UNIT:
                self.literal("[]")
            case t.BYTES | t.TIME | t.DURATION:
                self.literal('"')
                self.scalar(type_, cursor, row)
                self.literal('"')
            case t.F32 | t.F64:
                self._json_float(type_, cursor, row)
            case t.Primitive() | t.Decimal():
                self.scalar(type_, cursor, row)
            case t.Optional(inner):
                here = cursor.flag(row)
                self.flush()
                if_(self.b, here, lambda: self._some(inner, cursor, row), self._null)
            case t.Record(fields):
                self.literal("{")
                for i, (name, field) in enumerate(fields):
                    self.literal("," * bool(i) + encode_basestring(name) + ":")
                    self.json(field, cursor, row)
                self.literal("}")
            case t.Tuple(items):
                self.literal("[")
                for i, item in enumerate(items):
                    self.literal("," * bool(i))
                    self.json(item, cursor, row)
                self.literal("]")
            case t.List(item):
                self.sequence("[,]", *cursor.extent(row), lambda i: self.json(item, cursor, i))
            case t.Array(item, size):
                first = self.b.op(f"mul i64 {row}, {size}")
                after = self.b.op(f"add i64 {first}, {size}")
                self.sequence("[,]", first, after, lambda i: self.json(item, cursor, i))
            case t.Map(key, value):
                self._map(key, value, cursor, row)
            case t.Deque() | t.Bag() | t.OMap() | t.Function():
                raise Unsupported(f"items of {type_}")
            case _:
                assert_never(type_)

    def _null(self) -> None:
        self.literal("null")
        self.flush()

    def _some(self, inner: t.Type, cursor: Cursor, row: str) -> None:
        self.json(inner, cursor, row)
        self.flush()

    def _json_float(self, type_: t.Type, cursor: Cursor, row: str) -> None:
        """A number, or the strings nan, inf and -inf."""
        b = self.b
        self.flush(128)
        kind = "float" if type_ == t.F32 else "double"
        value = cursor.scalar(type_, row)
        if type_ == t.F32:
            value = b.op(f"fpext float {value} to double")
        finite = b.op(
            f"fcmp one double {b.op(f'call double @llvm.fabs.f64(double {value})')}, 0x7FF0000000000000"
        )
        name = "put_single" if kind == "float" else "put_double"

        def infinite() -> None:
            self.literal('"')
            self.flush(128)
            self.put(name, f"double {value}", out=False)
            self.literal('"')
            self.flush()

        if_(b, finite, lambda: self.put(name, f"double {value}", out=False), infinite)

    def sequence(self, marks: Sequence[str], first: str, after: str, put: Callable[[str], None]) -> None:
        """Items between marks: the one that stands between two is put behind each, the last is taken back."""
        begin, between, end = marks
        b = self.b
        self.literal(begin)
        self.flush()

        def item(i: str) -> None:
            put(i)
            self.literal(between)
            self.flush()

        counted(b, after, item, first)
        some = b.op(f"icmp slt i64 {first}, {after}")
        back = b.op(f"select i1 {some}, i64 {-len(between)}, i64 0")
        self.move(b.op(f"getelementptr inbounds i8, ptr {self.place()}, i64 {back}"))
        self.literal(end)

    def _map(self, key: t.Type, value: t.Type, cursor: Cursor, row: str) -> None:
        named = key == t.STRING

        def entry(i: str) -> None:
            self.literal("" if named else "[")
            self.json(key, cursor, i)
            self.literal(":" if named else ",")
            self.json(value, cursor, i)
            self.literal("" if named else "]")

        self.sequence("{,}" if named else "[,]", *cursor.extent(row), entry)
