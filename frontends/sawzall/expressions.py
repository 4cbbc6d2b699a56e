"""Expressions: syntax to typed. Literals, arrays, maps and records take their type from what is wanted of them."""

from __future__ import annotations

import re
from itertools import product
from time import time_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, assert_never, cast

from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.operations import (
    CONSTANTS,
    CONVERTERS,
    INTEGERS,
    MATCHES,
    NUMBERS,
    OPERATIONS,
    PLACE,
    named,
    shown,
)
from frontends.sawzall.times import default_zone, microseconds, zone
from frontends.sawzall.types import BASIC, FINGERPRINT, Proto, Recursive, kept_name, plain, spelled
from river.classes import define, evolve
from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations.text import form_of
from river.lang.patterns import BadPattern, compile_pattern
from river.report import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from frontends.sawzall.names import Known, Names
    from river.report import Report
    from river.source import Span

SHAPED = (
    "def", "format", "convert", "new", "regex", "saw", "sawn", "sawzall", "getenv", "load", "now", "inprotocount",
)  # fmt: skip
"""Functions that are written in ways of their own."""

NUMERALS = "diouxXeEfgG"
"""The places of a format that take a number, whose form is that of C."""

VERBS: Mapping[str, tuple[t.Type, ...]] = MappingProxyType({
    **dict.fromkeys("dixXouck", (t.I64, t.U64)), **dict.fromkeys("eEfgG", (t.F64,)),
    "s": (t.STRING,), "q": (t.STRING,), "b": (t.BOOL,), "t": (t.TIME,), "p": (FINGERPRINT,), "v": (),
})  # fmt: skip
"""The places of a format, and the types that they take."""


ENCODED = frozenset({"string", "bytes", "int", "uint"})
ENCODINGS = ("utf-8", "latin-1", "hex", "array-literal")
PACKINGS = (
    "varint", "zigzag", "fixed32-little", "fixed32-big", "fixed64-little", "fixed64-big", "szl", "saw",
)  # fmt: skip
"""How texts and whole numbers are written as bytes by the conversions `ENCODED`."""

_NOT_ZONED = OPERATIONS["=="]

_SHOWN = 6
"""How many ways to use an operation an error tells of."""

AS_THEY_ARE = frozenset({"len", "+", "keys", "haskey", "lookup"})
"""Operations on tuples with tags that know of them whether fields are there."""


@define
class Expressions:
    """The checker of expressions. `functions`: those that are declared so far; `line`: the variable `input`; `program`: all."""

    report: Report
    names: Names
    type: Callable[[a.TypeExpr], t.Type]
    functions: list[z.Function]
    announce: Callable[[str], int | None]
    line: Callable[[Span | None], int]
    place: Callable[[s.Expr], z.Expr]
    statement_value: Callable[[a.StatementValue, t.Type | None], z.Expr]
    function_value: Callable[[a.FunctionValue], z.Expr]
    static: Callable[[int], z.Expr | None]
    program: a.Program

    def error(self, code: str, message: str, span: Span | None, help_line: str | None = None) -> Failed:
        """Notes an error, to be raised."""
        return self.report.error(code, message, span, help_line)

    def check(self, expr: a.Expr, wanted: t.Type) -> z.Expr:
        """The typed form of `expr`, which must be a `wanted` (or what is inside, if that is optional)."""
        inner = wanted.inner if isinstance(wanted, t.Optional) else wanted
        if isinstance(inner, Recursive):
            return self.closed(expr, inner, converts=False)
        node = self.opened(self.infer(expr, inner))
        if plain(node.type) != plain(inner):
            raise self.mismatch(inner, node.type, expr.span)
        return self.shaped(node, inner)

    def opened(self, node: z.Expr) -> z.Expr:
        """What a value is made of, if its type contains itself."""
        if not isinstance(node.type, Recursive):
            return node
        if isinstance(node, z.Closed):
            return node.value
        return z.Opened(self.names.recursive[node.type.number], node, span=node.span)

    def closed(self, expr: a.Expr, wanted: Recursive, *, converts: bool) -> z.Expr:
        """The typed form of `expr` as a value of a type that contains itself. `converts`: as `initial`, else as `check`."""
        content = self.names.recursive[wanted.number]
        if composite(expr):
            made = self.initial(expr, content) if converts else self.check(expr, content)
            return z.Closed(wanted, made, span=expr.span)
        node = self.infer(expr, content)
        if node.type == wanted:
            return node
        if not converts and plain(node.type) != plain(content):
            raise self.mismatch(wanted, node.type, expr.span)
        return self.converted_basic(node, wanted, expr.span)

    def shaped(self, node: z.Expr, wanted: t.Type) -> z.Expr:
        """A value as one of a type that differs in nothing but the tags of tuples: all fields are there then."""
        span = node.span
        match node, wanted:
            case _, type_ if node.type == type_:
                return node
            case z.RecordOf(_, values), t.Record(fields):
                parts = (self.shaped(value, to) for value, (_, to) in zip(values, fields, strict=True))
                return z.RecordOf(wanted, tuple(parts), span=span)
            case z.Read() | z.Field(), t.Record(fields):
                assert isinstance(node.type, t.Record)  # noqa: S101 - they are alike
                given = node.type.fields
                values = (
                    self.shaped(z.Field(of, node, name, span=span), to)
                    for (name, to), (_, of) in zip(fields, given, strict=True)
                )
                return z.RecordOf(wanted, tuple(values), span=span)
            case _, t.Record():
                whole = self.temporary("whole", node.type)
                result = z.Result(self.shaped(z.Read(node.type, whole, span=span), wanted), span=span)
                return z.StatementValue(
                    wanted, (z.Declare(whole, node, needed=True, span=span), result), span=span
                )
            case _, t.List(item):
                return self.items(node, lambda each: self.shaped(each, item), wanted, span)
            case _, t.Map():
                return self.reshaped(node, wanted, span)
            case _:
                raise self.mismatch(wanted, node.type, span)

    def reshaped(self, node: z.Expr, wanted: t.Map, span: Span | None) -> z.Expr:
        """As `shaped`, of a map."""
        assert isinstance(node.type, t.Map)  # noqa: S101 - they are alike
        keys = t.List(node.type.key)
        whole, found, named_, at = (
            self.temporary("map", node.type), self.temporary("shaped", wanted), self.temporary("keys", keys),
            self.temporary("at", t.I64),
        )  # fmt: skip
        index = z.Read(t.I64, at)
        key = z.Item(node.type.key, z.Read(keys, named_), index, span=span)
        value = z.Item(node.type.value, z.Read(node.type, whole), key, span=span)
        put = z.Assign(
            z.Item(wanted.value, z.Read(wanted, found), key, span=span),
            self.shaped(value, wanted.value),
            span=span,
        )
        less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (z.Read(keys, named_),))))
        return z.StatementValue(
            wanted,
            (
                z.Declare(whole, node, needed=True, span=span),
                z.Declare(named_, z.Apply(keys, "keys", (z.Read(node.type, whole),))),
                z.Declare(found, z.MapOf(wanted, ())),
                z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), (put,), span=span),
                z.Result(z.Read(wanted, found), span=span),
            ),
            span=span,
        )

    def initial(self, expr: a.Expr, wanted: t.Type) -> z.Expr:
        """The typed form of what a variable begins with: it is converted to the type of the variable."""
        if isinstance(wanted, Recursive):
            return self.closed(expr, wanted, converts=True)
        if not composite(expr):
            node = self.opened(self.infer(expr, wanted))
            if plain(node.type) == plain(wanted):
                return self.shaped(node, wanted)
            return self.converted(node, wanted, expr.span)
        found = self.tried(lambda: self.check(expr, wanted))
        if found is None:
            found = self.tried(lambda: self.converted(self.infer(expr), wanted, expr.span))
        return self.check(expr, wanted) if found is None else found

    def tried(self, one: Callable[[], z.Expr]) -> z.Expr | None:
        """What `one` gives; None, and nothing is said, if it is refused."""
        before = len(self.report.found)
        try:
            return one()
        except Failed:
            del self.report.found[before:]
            return None

    def converted(self, node: z.Expr, wanted: t.Type, span: Span | None) -> z.Expr:
        """A value as one of another type; bytes by way of a string; arrays item by item, also to tuples and maps."""
        match node.type, wanted:
            case t.List(item), t.List(to):
                return self.items(node, lambda each: self.converted_basic(each, to, span), wanted, span)
            case t.List(item), t.Record(fields):
                return self.as_tuple(node, fields, wanted, span)
            case t.List(item), t.Map(key, value):
                del item
                return self.as_map(node, key, value, span)
            case _:
                return self.converted_basic(node, wanted, span)

    def converted_basic(self, node: z.Expr, wanted: t.Type, span: Span | None) -> z.Expr:
        """A value as one of another basic type, or as a text."""
        wanted = wanted.inner if isinstance(wanted, t.Optional) else wanted
        if plain(node.type) == plain(wanted):
            return self.shaped(node, wanted)
        if isinstance(wanted, Recursive) and not isinstance(node.type, Recursive):
            content = self.names.recursive[wanted.number]
            alike = plain(node.type) == plain(content)
            made = self.shaped(node, content) if alike else self.converted(node, content, span)
            return z.Closed(wanted, made, span=span)
        node = self.opened(node)
        if node.type == t.BYTES and isinstance(wanted, Proto):
            return z.Unpacked(wanted, node, span=span)
        if isinstance(node.type, Proto) and wanted == t.BYTES:
            return z.Packed(t.BYTES, node, span=span)
        if node.type == t.BYTES and wanted not in (t.STRING, t.BYTES, FINGERPRINT):
            node = self.converted_basic(node, t.STRING, span)
        if isinstance(node, z.Constant) and (node.type, wanted) == (t.I64, t.F64):
            return z.Constant(t.F64, float(node.value), span=span)
        name = next((name for name, type_ in BASIC.items() if type_ == wanted), None)
        found = None if name is None else OPERATIONS.get(named(name, (node.type,)))
        if name is None or found is None or name not in CONVERTERS or found.rule((node.type,)) is None:
            raise self.mismatch(wanted, node.type, span)
        return z.Apply(wanted, named(name, (node.type,)), (node,), span=span)

    def temporary(self, name: str, type_: t.Type) -> int:
        """A variable that no text can name."""
        self.names.variables.append(z.Variable(name, type_, "local", home=self.names.frame.number))
        return len(self.names.variables) - 1

    def items(
        self, node: z.Expr, each: Callable[[z.Expr], z.Expr], wanted: t.List, span: Span | None
    ) -> z.Expr:
        """An array of what `each` makes of the items of another one."""
        assert isinstance(node.type, t.List)  # noqa: S101 - asked before
        if isinstance(node, z.ArrayOf):
            return z.ArrayOf(wanted, tuple(map(each, node.items)), span=span)
        whole, found, at = (
            self.temporary("items", node.type), self.temporary("converted", wanted), self.temporary("at", t.I64),
        )  # fmt: skip
        read, index = z.Read(node.type, whole), z.Read(t.I64, at)
        less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
        body = (z.Append(found, each(z.Item(node.type.item, read, index, span=span)), span=span),)
        return z.StatementValue(
            wanted,
            (
                z.Declare(whole, node, needed=True, span=span),
                z.Declare(found, z.ArrayOf(wanted, ())),
                z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), body, span=span),
                z.Result(z.Read(wanted, found), span=span),
            ),
            span=span,
        )

    def as_tuple(
        self, node: z.Expr, fields: tuple[tuple[str, t.Type], ...], wanted: t.Type, span: Span | None
    ) -> z.Expr:
        """An array as a tuple of so many fields."""
        assert isinstance(node.type, t.List)  # noqa: S101 - asked before
        assert isinstance(wanted, t.Record)  # noqa: S101 - asked before
        if isinstance(node, z.ArrayOf):
            if len(node.items) != len(fields):
                raise self.mismatch(wanted, node.type, span)
            values = (
                self.converted_basic(item, to, span) for item, (_, to) in zip(node.items, fields, strict=True)
            )
            return z.RecordOf(wanted, tuple(values), span=span)
        whole = self.temporary("items", node.type)
        read = z.Read(node.type, whole)
        length = z.Apply(t.I64, "len", (read,))
        unequal = z.Apply(t.BOOL, "!=", (length, z.Constant(t.I64, len(fields))))
        parts = tuple(
            self.converted_basic(z.Item(node.type.item, read, z.Constant(t.I64, i), span=span), to, span)
            for i, (_, to) in enumerate(fields)
        )
        refuse = z.Evaluate(z.Item(node.type.item, read, length, span=span), span=span)
        return z.StatementValue(
            wanted,
            (
                z.Declare(whole, node, needed=True, span=span),
                z.If(unequal, (refuse,)),
                z.Result(z.RecordOf(wanted, parts, span=span), span=span),
            ),
            span=span,
        )

    def as_map(self, node: z.Expr, key: t.Type, value: t.Type, span: Span | None) -> z.Expr:
        """An array of keys and values as a map."""
        assert isinstance(node.type, t.List)  # noqa: S101 - asked before
        wanted = t.Map(key, value)
        if isinstance(node, z.ArrayOf) and len(node.items) % 2 == 0:
            keys = (self.converted_basic(each, key, span) for each in node.items[::2])
            values = (self.converted_basic(each, value, span) for each in node.items[1::2])
            return z.MapOf(wanted, tuple(zip(keys, values, strict=True)), span=span)
        whole, found, at = (
            self.temporary("items", node.type), self.temporary("entries", wanted), self.temporary("at", t.I64),
        )  # fmt: skip
        read, index = z.Read(node.type, whole), z.Read(t.I64, at)
        two = z.Constant(t.I64, 2)
        behind = z.Apply(t.I64, "+", (index, z.Constant(t.I64, 1)))
        first = self.converted_basic(z.Item(node.type.item, read, index, span=span), key, span)
        second = self.converted_basic(z.Item(node.type.item, read, behind, span=span), value, span)
        less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
        put = z.Assign(z.Item(value, z.Read(wanted, found), first, span=span), second, span=span)
        step = z.Assign(index, z.Apply(t.I64, "+", (index, two)))
        return z.StatementValue(
            wanted,
            (
                z.Declare(whole, node, needed=True, span=span),
                z.Declare(found, z.MapOf(wanted, ())),
                z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (step,), (put,), span=span),
                z.Result(z.Read(wanted, found), span=span),
            ),
            span=span,
        )

    def mismatch(self, wanted: t.Type, found: t.Type, span: Span | None) -> Failed:
        """The error that something has another type."""
        help_line = (
            f"convert it: `{spelled(wanted)}(...)`" if {wanted, found} <= {*NUMBERS, t.STRING} else None
        )
        message = f"expected `{spelled(wanted)}`, found `{spelled(found)}`"
        return self.error("sawzall-type-mismatch", message, span, help_line)

    def infer(self, expr: a.Expr, wanted: t.Type | None = None) -> z.Expr:
        """The typed form of `expr`; `wanted` is a hint for what has no type of its own."""
        span = expr.span
        match expr:
            case s.Int(value):
                return self.number(value, span)
            case s.Float(value):
                return z.Constant(t.F64, value, span=span)
            case s.String(value):
                return z.Constant(t.STRING, value, span=span)
            case s.Bytes(value):
                return z.Constant(t.BYTES, value, span=span)
            case s.Bool(value):
                return z.Constant(t.BOOL, value, span=span)
            case a.Number(kind, value):
                if value >= 1 << (63 if kind == "time" else 64):
                    raise self.error(
                        "sawzall-literal-range", f"{value} is out of the range of `{kind}`", span
                    )
                return z.Constant(BASIC[kind], value, span=span)
            case a.TimeText(text):
                found = microseconds(text)
                if found is None:
                    hint = 'write `T"Mon Oct 16 09:30:00 PDT 2006"`'
                    raise self.error("sawzall-time", f"`{text}` is no time", span, hint)
                return z.Constant(t.TIME, found, span=span)
            case a.Piece(how):
                hint = "these words stand before patterns of `saw`, `sawn` and `sawzall`"
                raise self.error("sawzall-arguments", f"`{how}` has no meaning here", span, hint)
            case a.TypeValue():
                raise self.error("sawzall-not-a-value", "a type is no value", span)
            case s.Name(name):
                if self.names.known(name) is None:
                    if name in CONSTANTS:
                        return z.Constant(*CONSTANTS[name], span=span)
                    if name == "input":
                        self.line(span)
                if self.names.known(name) is None and (index := self.announce(name)) is not None:
                    return self.function_of(index, span)
                known = self.names.find(name, span)
                if known.what == "function":
                    return self.function_of(known.index, span)
                if known.what != "variable":
                    raise self.not_a_value(name, known.what, span)
                return self.names.read(known.index, span)
            case s.Member(value, name):
                known = self.member(value, name)
                if known is not None and known.what == "variable":
                    return self.names.read(known.index, span)
                return self.field(self.infer(value), name, span)
            case s.Index(value, index):
                return self.item(self.infer(value), index, span)
            case s.Slice(value, low, high):
                return self.part(self.infer(value), low, high, span)
            case a.Dollar():
                if not self.names.indexed or (over := self.names.indexed[-1]) is None:
                    raise self.error(
                        "sawzall-dollar", "`$` stands in an index", span, "`a[$ - 1]` is the last item"
                    )
                if isinstance(over, t.Map):
                    raise self.error("sawzall-dollar", "a map has no last key", span, "write `len(...)`")
                return z.Length(t.I64, span=span)
            case a.CallValue(callee, (value, *rest)) if (
                wanted_type := self.declared_type(callee)
            ) is not None:
                given = cast("tuple[s.Argument, ...]", (value, *rest))
                return self.conversion(wanted_type, given[0], given[1:], span)
            case a.CallValue(callee, args):
                found = self.invoke(callee, args, span)
                if found.type == t.UNIT:
                    raise self.error("sawzall-no-result", "this function has no result", span)
                return found
            case a.FunctionValue():
                return self.function_value(expr)
            case a.StatementValue():
                return self.statement_value(expr, wanted)
            case s.Unary("-", s.Int(value)):
                return self.number(-value, span)
            case s.Unary(op, value):
                return self.operation({"-": "neg", "+": "pos"}.get(op, op), (value,), wanted, span)
            case s.Binary(a.BOTH | a.EITHER as op, left, right):
                word, sign = ("and", "&&") if op == a.BOTH else ("or", "||")
                hint = f"`{sign}` looks at the right side only where the left one does not decide"
                self.report.warn(
                    "sawzall-deprecated", f"`{word}` looks at both sides, and is deprecated", span, hint
                )
                sides = (self.check(left, t.BOOL), self.check(right, t.BOOL))
                return z.Apply(t.BOOL, "&" if op == a.BOTH else "|", sides, span=span)
            case s.Binary("and" | "or" as op, left, right):
                first = self.check(left, t.BOOL)
                before = self.names.sure
                self.names.know(z.tested(first, whether=op == "and"))
                second = self.check(right, t.BOOL)
                self.names.sure = before
                return z.Logic(t.BOOL, op, first, second, span=span)
            case s.Binary(op, left, right):
                return self.operation(op, (left, right), wanted, span)
            case s.Call(function, args):
                return self.call(function, args, wanted, expr)
            case s.ListValue(items):
                return self.array(items, wanted, span)
            case s.MapValue(items):
                return self.entries(items, wanted, span)
            case s.RecordValue(items):
                return self.fields(items, wanted, expr)
            case (
                s.NoneValue() | s.Var() | s.Hole() | s.Force() | s.IsNone() | s.IfExpr()
                | s.TupleValue() | s.Comprehension() | s.Lambda()
            ):  # fmt: skip
                raise AssertionError(expr)  # the grammar has none of them
            case _:
                assert_never(expr)

    def not_a_value(self, name: str, what: str, span: Span | None) -> Failed:
        """The error that a function or a table stands where a value should."""
        if what == "refused":
            return Failed()  # its declaration has an error, which is reported
        hint = {"function": "functions are called", "table": f"a table takes `emit {name} <- ...`"}.get(what)
        return self.error("sawzall-not-a-value", f"`{name}` is a {what}, not a value", span, hint)

    def number(self, value: int, span: Span | None) -> z.Expr:
        """A whole number."""
        if not -(1 << 63) <= value < 1 << 63:
            message = f"{value} is out of the range of `int`"
            raise self.error("sawzall-literal-range", message, span)
        return z.Constant(t.I64, value, span=span)

    def member(self, value: a.Expr, name: str) -> Known | None:
        """What the tuple type that `value` names, or its type, declares as `name`, if it does."""
        names = self.names
        known = self.declared(value)
        if known is None:
            return None
        if known.what == "type":
            return names.members.get(known.index, {}).get(name)
        if known.what == "variable" and isinstance(value, s.Name):
            type_ = names.variables[known.index].type
            for index, members in names.members.items():
                if names.types[index] == type_ and name in members:
                    return members[name]
        return None

    def declared(self, expr: a.Expr) -> Known | None:
        """What a name stands for, with the name of its package or of the tuples that it is declared in, if it has one."""
        match expr:
            case s.Name(name):
                return self.names.known(name)
            case s.Member(inner, name):
                path = _path(expr)
                found = None if path is None else self.names.known(path)
                return found or self.member(inner, name)
            case _:
                return None

    def declared_type(self, expr: a.Expr) -> t.Type | None:
        """The type that a name stands for, if it does."""
        if isinstance(expr, s.Name):
            return self.names.type(expr.name)
        known = self.declared(expr)
        return self.names.types[known.index] if known is not None and known.what == "type" else None

    def function_of(self, index: int, span: Span | None) -> z.Expr:
        """A function of the program as a value."""
        function = self.functions[index]
        params = tuple(self.names.variables[param].type for param in function.params)
        return z.FunctionOf(t.Function(params, function.result), index, span=span)

    def index(self, expr: s.Expr, wanted: t.Type, over: t.Type) -> z.Expr:
        """An index of a value of type `over`, whose length is `$` in it."""
        self.names.indexed.append(over)
        try:
            return self.check(expr, wanted)
        finally:
            self.names.indexed.pop()

    def part(self, value: z.Expr, low: s.Expr, high: s.Expr, span: Span | None) -> z.Expr:
        """`value[low:high]`."""
        value = self.opened(value)
        if not isinstance(value.type, t.List) and value.type not in (t.STRING, t.BYTES):
            raise self.error("sawzall-not-indexed", f"`{spelled(value.type)}` has no parts", span)
        first, last = self.index(low, t.I64, value.type), self.index(high, t.I64, value.type)
        return z.Slice(value.type, value, first, last, span=span)

    def field(self, value: z.Expr, name: str, span: Span | None) -> z.Expr:
        """`value.name`."""
        value = self.opened(value)
        if not isinstance(value.type, t.Record):
            raise self.error("sawzall-unknown-field", f"`{spelled(value.type)}` has no fields", span)
        name = kept_name(name)
        type_ = value.type.field(name)
        if type_ is None:
            fields = [field for field, _ in value.type.fields]
            help_line = closest(name, fields) or f"it has {', '.join(f'`{f}`' for f in fields)}"
            raise self.error("sawzall-unknown-field", f"no field `{name}` in this record", span, help_line)
        if isinstance(type_, t.Optional):
            return z.Field(type_.inner, value, name, missing=True, span=span)
        return z.Field(type_, value, name, span=span)

    def item(self, value: z.Expr, index: s.Expr, span: Span | None) -> z.Expr:
        """`value[index]`."""
        value = self.opened(value)
        match value.type:
            case t.List(item):
                return z.Item(item, value, self.index(index, t.I64, value.type), span=span)
            case t.Map(key, item):
                return z.Item(item, value, self.index(index, key, value.type), span=span)
            case t.STRING | t.BYTES:
                return z.Item(t.I64, value, self.index(index, t.I64, value.type), span=span)
            case type_:
                raise self.error("sawzall-not-indexed", f"`{spelled(type_)}` cannot be indexed", span)

    # -- operations and calls

    def operation(
        self, name: str, args: tuple[s.Argument, ...], wanted: t.Type | None, span: Span | None
    ) -> z.Expr:
        """An operator or built-in function applied; braces take the type of the other operand."""
        other = len(args) > 1 and name not in CONVERTERS and not all(map(composite, args))
        nodes = [None if other and composite(arg) else self.infer(arg) for arg in args]
        if name not in ("==", "!=") or any(
            node is not None and not isinstance(node.type, Recursive) for node in nodes
        ):
            nodes = [None if node is None else self.opened(node) for node in nodes]
        if name == "bytes" and len(nodes) == 1 and nodes[0] is not None and isinstance(nodes[0].type, Proto):
            return z.Packed(t.BYTES, nodes[0], span=span)
        if name == "string" and len(nodes) == 1 and isinstance(nodes[0], z.FunctionOf):
            return z.Constant(t.STRING, self.functions[nodes[0].function].name, span=span)
        if name not in AS_THEY_ARE or len({node.type for node in nodes if node is not None}) > 1:
            nodes = [None if node is None else self.shaped(node, plain(node.type)) for node in nodes]
        types = tuple(None if node is None else node.type for node in nodes)
        found = OPERATIONS.get(named(name, types))
        signature = None if found is None else found.rule(types)
        if (
            signature is None and None in types
        ):  # as in `haskey({"a": 1}, "a")`: the other operand does not say it
            types = tuple(
                self.infer(arg).type if type_ is None else type_
                for arg, type_ in zip(args, types, strict=True)
            )
            found = OPERATIONS.get(named(name, types))
            signature = None if found is None else found.rule(types)
        if signature is None:
            sign = "-" if name == "neg" else name
            shown = ", ".join("`int`" if type_ is None else f"`{spelled(type_)}`" for type_ in types)
            raise self.error(
                "sawzall-operands",
                f"`{sign}` does not apply to {shown or 'nothing'}",
                span,
                _advice(name, types),
            )
        params, result = signature
        if name in CONVERTERS and len(args) == 1:
            self.doubtful(name, params[0], result, span)
        operands = tuple(
            self.check(arg, param) if node is None else node
            for arg, node, param in zip(args, nodes, params, strict=True)
        )
        self.certain(name, operands, span)
        return z.Apply(result, named(name, params), operands, span=span)

    def certain(self, name: str, operands: tuple[z.Expr, ...], span: Span | None) -> None:
        """Warns of what is undefined for certain: division by a zero, an encoding or a zone that there is not."""
        last = operands[-1] if operands else None
        if not isinstance(last, z.Constant):
            return
        if name in ("/", "%") and last.value == 0:
            self.report.warn("sawzall-zero", "division by zero: this has no value", span)
        elif OPERATIONS.get(named(name, tuple(each.type for each in operands)), _NOT_ZONED).zoned:
            if zone(last.value) is None:
                hint = "such as `America/Los_Angeles`"
                self.report.warn("sawzall-zone", f"there is no zone `{last.value}`", last.span, hint)
        elif name in ENCODED and len(operands) == 2 and last.type == t.STRING:
            known = PACKINGS if {*INTEGERS} & {operands[0].type, BASIC[name]} else ENCODINGS
            if isinstance(operands[0].type, t.Primitive) and last.value.lower() not in known:
                hint = f"known are {', '.join(known)}"
                self.report.warn("sawzall-encoding", f"there is no encoding `{last.value}`", last.span, hint)

    def doubtful(self, name: str, given: t.Type, result: t.Type, span: Span | None) -> None:
        """Warns of conversions that do nothing, or whose base the data decide."""
        if given == result:
            self.report.warn("sawzall-conversion", f"this is of type `{spelled(result)}` already", span)
        elif given == t.STRING and result in (t.I64, t.U64):
            hint = f"write `{name}(s, 10)`"
            self.report.warn("sawzall-base", "without a base the text says it: `010` is 8", span, hint)

    def call(self, name: str, args: tuple[s.Argument, ...], wanted: t.Type | None, expr: s.Call) -> z.Expr:
        """A call of a function that gives a value."""
        self.names.indexed.append(None)
        try:
            return self.called(name, args, wanted, expr.span)
        finally:
            self.names.indexed.pop()

    def called(
        self, name: str, args: tuple[s.Argument, ...], wanted: t.Type | None, span: Span | None
    ) -> z.Expr:
        """As `call`; no index is open."""
        if self.is_function(name):
            call = self.user_call(name, args, span)
            if call.type == t.UNIT:
                raise self.error("sawzall-no-result", f"`{name}` has no result", span)
            return call
        match name, args:
            case "sort" | "sortx", (items, by):
                return self.sorted(name, items, by, wanted, span)
            case "getenv" | "load", (asked,):
                return self.named_outside(name, asked, span)
            case "now", ():
                return z.Constant(t.TIME, time_ns() // 1000, span=span)
            case "inproto", _:
                place = self.tagged(name, args, span)
                return z.There(t.BOOL, place.value, place.name, span=span)
            case "inprotocount", (value,):
                counted = self.opened(self.infer(value))
                if not isinstance(counted.type, Proto):
                    hint = "tags make it a protocol buffer: `{ a: int @ 1 }`"
                    raise self.error("sawzall-tag", "`inprotocount` takes a tuple with tags", span, hint)
                return z.Packed(t.I64, counted, counted=True, span=span)
            case "def", (value,):
                node = self.infer(value)
                if not z.may_fail(node, frozenset(i for i, f in enumerate(self.functions) if f.fails)):
                    self.report.warn("sawzall-def", "this always has a value", span, "leave `def` out")
                return z.Defined(t.BOOL, node, span=span)
            case "match" | "matchstrs" | "matchposns", (pattern, text):
                return self.match(name, pattern, text, span)
            case "format", (pattern, *rest):
                return self.format(pattern, rest, span)
            case "saw" | "sawn" | "sawzall", (_, *_):
                return self.saw(name, args, span)
            case "regex", (type_, *rest) if len(rest) <= 1:
                return z.Constant(t.STRING, self.pattern_of(type_, rest, span), span=span)
            case "new", (type_, *rest):
                return self.new(type_, rest, span)
            case "convert", (type_, value, *rest):
                if (wanted_type := self.type_of(type_)) is None:
                    raise self.error(
                        "sawzall-arguments", "`convert` takes a type first", span, "`convert(int, x)`"
                    )
                return self.conversion(wanted_type, value, tuple(rest), span)
            case _, (value, *rest) if (
                name not in BASIC and (wanted_type := self.names.type(name)) is not None
            ):
                return self.conversion(wanted_type, value, tuple(rest), span)
            case "assert", _:
                raise self.error("sawzall-no-result", "`assert` is a statement", span)
            case _:
                pass
        if name in OPERATIONS and OPERATIONS[name].zoned:
            args = (*args, *_left_out(name, len(args)))
        if (
            name in ("string", "bytes")
            and len(args) == 1
            and isinstance(args[0], s.ListValue)
            and args[0].items
        ):
            to = BASIC[name]
            found = self.tried(lambda: self.check(args[0], to))  # of characters or bytes, as szl takes it
            if found is not None:
                return found
        if name == "time" and len(args) == 1 and isinstance(args[0], s.String):
            at = microseconds(args[0].value)
            if at is not None:
                return z.Constant(t.TIME, at, span=span)
        if name in CONVERTERS or name in OPERATIONS:
            return self.operation(name, args, wanted, span)
        known = [*OPERATIONS, *CONVERTERS, *MATCHES, *SHAPED, *(f.name for f in self.functions)]
        if name in (*MATCHES, *SHAPED):
            raise self.error("sawzall-arguments", f"`{name}` takes other arguments", span)
        raise self.error("sawzall-unknown-function", f"unknown function `{name}`", span, closest(name, known))

    def sorted(
        self, name: str, items: s.Argument, by: s.Argument, wanted: t.Type | None, span: Span | None
    ) -> z.Expr:
        """`sort(a, f)`: the function is only checked, as in szl."""
        found, order = self.operation(name, (items,), wanted, span), self.infer(by)
        assert isinstance(found, z.Apply)  # noqa: S101 - what an operation gives
        given = found.args[0].type
        item = given.item if isinstance(given, t.List) else given
        if order.type != t.Function((item, item), t.I64):
            shown = spelled(t.Function((item, item), t.I64))
            raise self.error("sawzall-type-mismatch", f"here goes a `{shown}`", by.span)
        return found

    def named_outside(self, name: str, asked: s.Argument, span: Span | None) -> z.Expr:
        """`getenv(name)` and `load(file)`: what the command line names, all else is undefined."""
        variables = {each: s.String(value) for each, value in self.program.environment}
        files = {each: s.Bytes(value) for each, value in self.program.files}
        known = variables if name == "getenv" else files
        type_, option = (t.STRING, "--env") if name == "getenv" else (t.BYTES, "--load")
        index = self.check(asked, t.STRING)
        if isinstance(index, z.Constant) and index.value not in known:
            message = f"the command line does not name `{index.value}`: this has no value"
            self.report.warn("sawzall-outside", message, span, f"`{option} {index.value}`")
        entries = s.MapValue(tuple((s.String(each), value) for each, value in known.items()))
        return z.Item(type_, self.check(entries, t.Map(t.STRING, type_)), index, span=span)

    def tagged(self, name: str, args: tuple[s.Argument, ...], span: Span | None) -> z.Field:
        """The field that `inproto` and `clearproto` are about."""
        match args:
            case (s.Member(value, field),) if self.member(value, field) is None:
                found = self.infer(args[0])
            case _:
                found = None
        if not isinstance(found, z.Field):
            raise self.error(
                "sawzall-arguments", f"`{name}` takes the field of a tuple", span, f"`{name}(t.f)`"
            )
        if not isinstance(found.value.type, Proto):
            hint = "tags make it a protocol buffer: `{ a: int @ 1 }`"
            raise self.error("sawzall-tag", "the fields of this tuple have no tags", span, hint)
        return found

    def type_of(self, arg: a.Expr) -> t.Type | None:
        """The type that an argument names, if it does."""
        match arg:
            case a.TypeValue(type_):
                return self.type(type_)
            case s.Name() | s.Member():
                return self.declared_type(arg)
            case _:
                return None

    def conversion(
        self, wanted: t.Type, value: s.Argument, params: tuple[s.Argument, ...], span: Span | None
    ) -> z.Expr:
        """`convert(T, value, ...)`, or `T(value, ...)` of a declared type."""
        name = next((name for name, type_ in BASIC.items() if type_ == wanted), None)
        if wanted == t.List(t.I64) and len(params) == 1 and self.infer(value).type == t.STRING:
            return self.points(value, params[0], span)
        if name is not None and params:
            return self.operation(name, (value, *params), wanted, span)
        if isinstance(wanted, t.List) and params:
            return self.each_converted(value, params, wanted, span)
        return self.initial(value, wanted)

    def each_converted(
        self, value: s.Argument, params: tuple[s.Argument, ...], wanted: t.List, span: Span | None
    ) -> z.Expr:
        """`convert(array of T, a, how)`: each item is converted so."""
        node, given = self.infer(value), tuple(map(self.infer, params))
        name = next((name for name, type_ in BASIC.items() if type_ == wanted.item), "")
        types = (
            node.type.item if isinstance(node.type, t.List) else node.type,
            *(each.type for each in given),
        )
        found = OPERATIONS.get(named(name, types)) if name in CONVERTERS else None
        if not isinstance(node.type, t.List) or found is None or found.rule(types) is None:
            raise self.mismatch(wanted, node.type, span)
        return self.items(
            node,
            lambda each: z.Apply(wanted.item, named(name, types), (each, *given), span=span),
            wanted,
            span,
        )

    def points(self, value: s.Argument, how: s.Argument, span: Span | None) -> z.Expr:
        """`convert(array of int, text, "unicode")`: the code points of a text."""
        wanted = t.List(t.I64)
        if not isinstance(how, s.String) or how.value.lower() != "unicode":
            raise self.error("sawzall-arguments", "code points are those of `unicode`", span, '`"unicode"`')
        text, found, at = (
            self.temporary("text", t.STRING), self.temporary("points", wanted), self.temporary("at", t.I64),
        )  # fmt: skip
        read, index = z.Read(t.STRING, text), z.Read(t.I64, at)
        less = z.Apply(t.BOOL, "<", (index, z.Apply(t.I64, "len", (read,))))
        body = (z.Append(found, z.Item(t.I64, read, index, span=span), span=span),)
        return z.StatementValue(
            wanted,
            (
                z.Declare(text, self.check(value, t.STRING), needed=True, span=span),
                z.Declare(found, z.ArrayOf(wanted, ())),
                z.For((z.Declare(at, z.Constant(t.I64, 0)),), less, (z.Step(index, 1),), body, span=span),
                z.Result(z.Read(wanted, found), span=span),
            ),
            span=span,
        )

    def new(self, type_: a.Expr, args: list[s.Argument], span: Span | None) -> z.Expr:
        """`new(array of T, n, value)`, `new(string, n, character)`, `new(map [K] of V)`."""
        wanted = self.type_of(type_)
        match wanted, args:
            case t.List(item), (count, value):
                return z.Apply(wanted, "new", (self.check(count, t.I64), self.check(value, item)), span=span)
            case t.BYTES, (count, byte):
                return z.Apply(
                    t.BYTES,
                    "copies of a byte",
                    (self.check(count, t.I64), self.check(byte, t.I64)),
                    span=span,
                )
            case t.STRING, (count, letter):
                point = z.Apply(t.STRING, "character", (self.check(letter, t.I64),), span=span)
                return z.Apply(
                    t.STRING, "copies of a character", (self.check(count, t.I64), point), span=span
                )
            case t.Map(), ():
                return z.MapOf(wanted, (), span=span)
            case t.Map(), (count,):
                self.check(count, t.I64)
                return z.MapOf(wanted, (), span=span)
            case _:
                hint = "write `new(array of int, n, 0)`, `new(string, n, 'x')` or `new(map [string] of int)`"
                raise self.error("sawzall-arguments", "`new` makes an array, a string or a map", span, hint)

    def is_function(self, name: str) -> bool:
        """Whether a name is that of a function of the program, or of a variable that holds one."""
        known = self.names.known(name)
        if known is None:
            return self.announce(name) is not None
        return known.what in {"function", "variable"}

    def user_call(self, name: str, args: tuple[s.Argument, ...], span: Span | None) -> z.Call | z.Invoke:
        """A call of a function of the program, or of a value; its type is unit if it has no result."""
        known = self.names.find(name, span)
        if known.what == "variable":
            return self.invoke(s.Name(name, span=span), args, span)
        function = self.functions[known.index]
        types = tuple(self.names.variables[param].type for param in function.params)
        values = self.arguments(f"`{name}`", types, args, span)
        captures = tuple(self.pass_on(outside) for outside, _ in function.captures)
        return z.Call(function.result or t.UNIT, known.index, values, captures, span=span)

    def invoke(self, callee: a.Expr, args: tuple[a.Expr, ...], span: Span | None) -> z.Invoke:
        """A call of a function value."""
        node = self.infer(callee)
        if not isinstance(node.type, t.Function):
            raise self.error(
                "sawzall-not-a-function", f"`{spelled(node.type)}` cannot be called", callee.span
            )
        values = self.arguments("this function", node.type.params, args, span)
        return z.Invoke(node.type.result or t.UNIT, node, values, span=span)

    def arguments(
        self, what: str, types: tuple[t.Type, ...], args: tuple[a.Expr, ...], span: Span | None
    ) -> tuple[z.Expr, ...]:
        """The arguments of a call."""
        if len(args) != len(types):
            count = len(types)
            message = f"{what} takes {count} argument{'s' * (count != 1)}, {len(args)} given"
            raise self.error("sawzall-arguments", message, span)
        self.names.indexed.append(None)
        try:
            return tuple(self.check(arg, type_) for arg, type_ in zip(args, types, strict=True))
        finally:
            self.names.indexed.pop()

    def pass_on(self, outside: int) -> z.Read:
        """What a capture of a called function is here: nothing is read of it yet."""
        index = self.names.captured(outside)
        return z.Read(self.names.variables[index].type, index)

    def match(self, name: str, pattern: s.Argument, text: s.Argument, span: Span | None) -> z.Expr:
        """`match(pattern, text)` and its like."""
        whole = self.infer(text)
        if whole.type == t.BYTES:
            return self.match_bytes(name, pattern, whole, span)
        found = self.pattern(pattern)
        if name == "match" and isinstance(found, z.Constant):  # what is matched is not asked for
            found = evolve(found, value=_before_a_line_end(found.value))
        return z.Match(MATCHES[name][1], name, found, self.check(text, t.STRING), span=span)

    def match_bytes(self, name: str, pattern: s.Argument, whole: z.Expr, span: Span | None) -> z.Expr:
        """`match(pattern, bytes)`: of a text with a character for each byte, and the pattern is one, too, if it is of bytes."""
        form = self.infer(pattern)
        if isinstance(form, z.Constant) and isinstance(form.value, bytes):
            form = z.Constant(t.STRING, form.value.decode("latin-1"), span=form.span)
        elif form.type == t.BYTES:
            form = z.Apply(t.STRING, "characters", (form,), span=form.span)
        elif form.type != t.STRING:
            raise self.mismatch(t.STRING, form.type, form.span)
        self.right(form)
        text = z.Apply(t.STRING, "characters", (whole,), span=span)
        found = z.Match(MATCHES[name][1], name, form, text, span=span)
        if name != "matchstrs":
            return found
        wanted = t.List(t.BYTES)
        return self.items(
            found, lambda each: z.Apply(t.BYTES, "bytes of characters", (each,), span=span), wanted, span
        )

    def saw(self, name: str, args: tuple[s.Argument, ...], span: Span | None) -> z.Expr:
        """`saw(text, pattern, skip pattern, submatch pattern, rest variable)`, `sawn(n, text, ...)`, `sawzall(text, ...)`."""
        given: list[a.Expr] = list(args)
        rounds: z.Expr = z.Constant(t.I64, 1 if name == "saw" else -1)
        if name == "sawn":
            rounds = self.check(given.pop(0), t.I64)
        if not given or isinstance(given[0], a.Piece):
            wanted = "a number, a text and patterns" if name == "sawn" else "a text and patterns"
            raise self.error("sawzall-arguments", f"`{name}` takes {wanted}", span)
        text = self.check(given[0], t.STRING)
        patterns: list[z.Expr] = []
        takes: list[Literal["whole", "skip", "submatch"]] = []
        rests: list[tuple[int, z.Expr]] = []
        for i, arg in enumerate(given[1:], 1):
            match arg:
                case a.Piece("rest", variable):
                    if name != "saw" and i + 1 < len(given):
                        raise self.error("sawzall-arguments", f"`rest` comes last in `{name}`", arg.span)
                    place = self.place(cast("s.Expr", variable))
                    if place.type != t.STRING:
                        raise self.error("sawzall-arguments", "`rest` takes a place for a string", arg.span)
                    rests.append((len(patterns), place))
                case a.Piece("skip" | "submatch" as how, pattern):
                    takes.append(how)
                    patterns.append(self.pattern(pattern))
                case pattern:
                    takes.append("whole")
                    patterns.append(self.pattern(pattern))
        if not patterns:
            raise self.error("sawzall-arguments", f"`{name}` takes patterns behind the text", span)
        once = name == "saw"
        found = z.Saw(
            t.List(t.STRING), rounds, text, tuple(patterns), tuple(takes), tuple(rests), once, span=span
        )
        return self.rests_within(found)

    def rests_within(self, saw: z.Saw) -> z.Expr:
        """What is left of a text goes into a variable first, where its place is in a value whose type contains itself."""
        before: list[z.Stmt] = []
        behind: list[z.Stmt] = []
        rests: list[tuple[int, z.Expr]] = []
        for at, place in saw.rests:
            changed = self.through(z.Assign(place, z.Constant(t.STRING, ""), span=place.span))
            if isinstance(changed, z.Assign):
                rests.append((at, place))
                continue
            rest = z.Read(t.STRING, self.temporary("rest", t.STRING), span=place.span)
            before.append(z.Declare(rest.variable, place, needed=True, span=place.span))
            behind.append(self.through(z.Assign(place, rest, span=place.span)))
            rests.append((at, rest))
        if not before:
            return saw
        parts = self.temporary("parts", saw.type)
        found = z.Declare(parts, evolve(saw, rests=tuple(rests)), needed=True, span=saw.span)
        result = z.Result(z.Read(saw.type, parts), span=saw.span)
        return z.StatementValue(saw.type, (*before, found, *behind, result), span=saw.span)

    def through(self, stmt: z.Assign | z.Step) -> z.Stmt:
        """A change of a part of a value whose type contains itself: the value is opened, changed and closed again."""
        opened = _opened(stmt.place)
        if opened is None:
            return stmt
        whole = self.temporary("opened", opened.type)

        def within(node: s.Node) -> s.Node:
            if node is opened:
                return z.Read(opened.type, whole, span=opened.span)
            assert isinstance(node, z.Field | z.Item | z.Slice | z.Opened)  # noqa: S101 - it leads there
            return evolve(node, value=within(node.value))

        change = self.through(evolve(stmt, place=within(stmt.place)))
        return z.Within(opened.value, whole, change, span=stmt.span)

    def pattern(self, expr: a.Expr) -> z.Expr:
        """A pattern; what is wrong with one that is known is an error."""
        found = self.check(expr, t.STRING)
        self.right(found)
        return found

    def right(self, pattern: z.Expr) -> None:
        """Refuses a pattern that is known and wrong."""
        if isinstance(pattern, z.Constant):
            try:
                compile_pattern(pattern.value)
            except BadPattern as bad:
                raise self.error(
                    "sawzall-pattern", f"not a regular expression: {bad}", pattern.span
                ) from None

    def pattern_of(self, type_: a.Expr, rest: list[s.Argument], span: Span | None) -> str:
        """The pattern `regex(int)`, `regex(int, base)` or `regex(float)`."""
        wanted = self.type_of(type_)
        base = self.check(rest[0], t.I64) if rest else z.Constant(t.I64, 0)
        if wanted == t.F64 and not rest:
            return r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        bases = (0, *range(2, 37))
        if wanted != t.I64 or not isinstance(base, z.Constant) or base.value not in bases:
            hint = "write `regex(int)`, `regex(float)`, or a base from 2 to 36 as in `regex(int, 16)`"
            raise self.error("sawzall-arguments", "`regex` makes patterns of numbers", span, hint)
        if base.value == 0:
            return r"[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+)"
        letters = "abcdefghijklmnopqrstuvwxyz"[: max(0, base.value - 10)]
        digits = f"0-{min(base.value, 10) - 1}" + (
            f"a-{letters[-1]}A-{letters[-1].upper()}" if letters else ""
        )
        return rf"[-+]?(?:0[xX])?[{digits}]+" if base.value == 16 else rf"[-+]?[{digits}]+"

    def formatting(self, args: tuple[s.Argument, ...], span: Span | None) -> z.Expr:
        """What `format`, `file` and `proc` behind a table say: a format and its values."""
        if not args:
            raise self.error("sawzall-format", "there is no format", span)
        return self.format(args[0], list(args[1:]), span)

    def format(self, pattern: s.Argument, args: list[s.Argument], span: Span | None) -> z.Expr:
        """`format("... %d ...", ...)` as a sum of strings."""
        said = self.check(pattern, t.STRING)
        form = self.known_text(said)
        if form is None:
            return self.format_of_data(said, args, span)
        rest = iter(args)
        found: list[z.Expr] = []
        for place in re.finditer(r"[^%]+|%([-+ 0#]*)(\d*)(\.\d*)?(.?)", form, re.DOTALL):
            flags, width, precision, verb = place.groups()
            if verb is None or place[0] == "%%":
                found.append(z.Constant(t.STRING, "%" if verb else place[0], span=pattern.span))
                continue
            arg = next(rest, None)
            if arg is None:
                raise self.error("sawzall-format", f"no value for `{place[0]}`", span)
            if len(width) > 2 or len(precision or "") > 3:
                message, hint = (
                    f"`{place[0]}` is too wide",
                    "at most 99 characters, and 99 digits behind the point",
                )
                raise self.error("sawzall-format", message, pattern.span, hint)
            text = self.formatted(place[0], self.bare(arg))
            if precision and verb in "sq":
                zero, most = (z.Constant(t.I64, n) for n in (0, int(precision[1:] or "0")))
                text = z.Slice(t.STRING, text, zero, most, span=arg.span)
            if width and verb not in NUMERALS:
                blanks = z.Constant(t.STRING, " " * int(width))
                text = z.Apply(
                    t.STRING, "pad right" if "-" in flags else "pad left", (text, blanks), span=arg.span
                )
            found.append(text)
        if next(rest, None) is not None:
            raise self.error("sawzall-format", "there are more values than places for them", span)
        whole: z.Expr = z.Constant(t.STRING, "", span=span)
        for i, part in enumerate(found):
            whole = part if i == 0 else z.Apply(t.STRING, "+", (whole, part), span=span)
        return whole

    def known_text(self, node: z.Expr) -> str | None:
        """A text that is made of literals and of static values that are, if it is."""
        match node:
            case z.Constant(t.STRING, str() as value):
                return value
            case z.Read(_, variable) if (value := self.static(variable)) is not None:
                return self.known_text(value)
            case z.Apply(_, "+", (left, right)):
                first, second = self.known_text(left), self.known_text(right)
                return None if first is None or second is None else first + second
            case _:
                return None

    def bare(self, arg: s.Argument) -> z.Expr:
        """A value without the tags of tuples."""
        node = self.opened(self.infer(arg))
        return self.shaped(node, plain(node.type))

    def format_of_data(self, form: z.Expr, args: list[s.Argument], span: Span | None) -> z.Expr:
        """A format that is not known before the run: of each place is asked which of those it is that its value may have."""
        nodes = [self.bare(arg) for arg in args]
        kinds = [
            "".join(
                verb for verb, types in VERBS.items() if (shown(n.type) if verb == "v" else n.type in types)
            )
            for n in nodes
        ]
        letters = z.ArrayOf(t.List(t.STRING), tuple(z.Constant(t.STRING, f"{each}T") for each in kinds))
        places, whole = self.temporary("places", t.List(PLACE)), self.temporary("text", t.STRING)
        asked = z.Apply(t.List(PLACE), "places of a format", (form, letters), span=form.span)
        body: list[z.Stmt] = [
            z.Declare(places, asked, needed=True, span=span),
            z.Declare(whole, z.Constant(t.STRING, "")),
        ]

        def add(text: z.Expr) -> None:
            longer = z.Apply(t.STRING, "+", (z.Read(t.STRING, whole), text))
            body.append(z.Assign(z.Read(t.STRING, whole), longer))

        for i, (node, verbs) in enumerate(zip(nodes, kinds, strict=True)):
            value, place, text = (
                self.temporary("value", node.type), self.temporary("place", PLACE), self.temporary("part", t.STRING),
            )  # fmt: skip
            found = z.Item(PLACE, z.Read(t.List(PLACE), places), z.Constant(t.I64, i), span=span)
            body += [
                z.Declare(value, node, needed=True, span=span),
                z.Declare(place, found, needed=True),
                z.Declare(text, z.Constant(t.STRING, "")),
                *self.placed(z.Read(node.type, value, span=node.span), z.Read(PLACE, place), text, verbs),
            ]
            add(z.Field(t.STRING, z.Read(PLACE, place), "before"))
            add(z.Read(t.STRING, text))
        last = z.Item(PLACE, z.Read(t.List(PLACE), places), z.Constant(t.I64, len(nodes)), span=span)
        add(z.Field(t.STRING, last, "before"))
        return z.StatementValue(t.STRING, (*body, z.Result(z.Read(t.STRING, whole), span=span)), span=span)

    def placed(self, value: z.Expr, place: z.Expr, text: int, verbs: str) -> tuple[z.Stmt, ...]:
        """The statements that put a value into the variable `text` as a place says that may have one of `verbs`."""
        made = z.Read(t.STRING, text)
        verb, blanks, most = (
            z.Field(type_, place, name) for name, type_ in PLACE.fields if name in ("verb", "blanks", "most")
        )
        cut = z.Slice(t.STRING, made, z.Constant(t.I64, 0), most)
        left, right = (z.Apply(t.STRING, f"pad {side}", (made, blanks)) for side in ("left", "right"))
        wide: tuple[z.Stmt, ...] = (
            z.If(z.Field(t.BOOL, place, "left"), (z.Assign(made, right),), (z.Assign(made, left),)),
        )
        asked: tuple[z.Stmt, ...] = ()
        if set(verbs) & set(NUMERALS):
            number = z.Apply(t.STRING, "format number", (z.Field(t.STRING, place, "number"), value))
            asked = (z.Assign(made, number),)
        for letter in (*(each for each in verbs if each not in NUMERALS), "T"):
            put: tuple[z.Stmt, ...] = (z.Assign(made, self.formatted(f"%{letter}", value)),)
            if letter in "sq":
                there = z.Apply(t.BOOL, ">=", (most, z.Constant(t.I64, 0)))
                put = (*put, z.If(there, (z.Assign(made, cut),)))
            is_it = z.Apply(t.BOOL, "==", (verb, z.Constant(t.STRING, letter)))
            asked = (z.If(is_it, (*put, *wide), asked),)
        return asked

    def formatted(self, part: str, node: z.Expr) -> z.Expr:
        """One value in a format, before it is filled up to its width."""
        verb, arg = part[-1], node
        if verb == "T":
            return z.Constant(t.STRING, spelled(node.type), span=arg.span)
        if verb not in VERBS:
            hint = (
                "places are %d %i %o %u %x %X %e %f %g %E %G %s %q %c %k %b %p %t %T, %v for anything, and %%"
            )
            raise self.error("sawzall-format", f"`{part}` is no place for a value", arg.span, hint)
        if not (shown(node.type) if verb == "v" else node.type in VERBS[verb]):
            raise self.error("sawzall-format", f"`{part}` does not take `{spelled(node.type)}`", arg.span)
        if verb in NUMERALS and part not in ("%d", "%i"):
            form = form_of(part, node.type)
            if form is None:
                raise self.error("sawzall-format", f"`{part}` is no place for a value", arg.span)
            return z.Apply(t.STRING, "format number", (z.Constant(t.STRING, form), node), span=arg.span)
        match verb:
            case "s":
                return node
            case "q":
                return z.Apply(t.STRING, "quote", (node,), span=arg.span)
            case "c" | "k":
                number = node if node.type == t.I64 else z.Apply(t.I64, "int:u64", (node,), span=arg.span)
                letter = z.Apply(t.STRING, "character", (number,), span=arg.span)
                return (
                    letter if verb == "c" else z.Apply(t.STRING, "quoted character", (letter,), span=arg.span)
                )
            case "v" if node.type == t.STRING:
                return node
            case _:
                text = z.Apply(t.STRING, named("string", (node.type,)), (node,), span=arg.span)
                if verb != "p":
                    return text
                last = z.Constant(t.I64, 18)
                return z.Slice(t.STRING, text, z.Constant(t.I64, 0), last, span=arg.span)

    # -- displays

    def array(self, items: tuple[s.Expr, ...], wanted: t.Type | None, span: Span | None) -> z.Expr:
        """`{a, b}`: an array, or the values of a record in order; of different types a record without names."""
        match wanted:
            case t.List(item):
                return z.ArrayOf(wanted, tuple(self.check(i, item) for i in items), span=span)
            case t.Record(fields):
                if len(items) != len(fields):
                    message = f"the record has {len(fields)} fields, {len(items)} values given"
                    raise self.error("sawzall-type-mismatch", message, span)
                values = tuple(self.check(i, type_) for i, (_, type_) in zip(items, fields, strict=True))
                return z.RecordOf(wanted, values, span=span)
            case t.STRING | t.BYTES if not items:
                return z.Constant(wanted, "" if wanted == t.STRING else b"", span=span)
            case t.STRING | t.BYTES:
                numbers = z.ArrayOf(t.List(t.I64), tuple(self.check(i, t.I64) for i in items), span=span)
                if wanted == t.BYTES:
                    return z.Apply(wanted, "bytes of items", (numbers,), span=span)
                how = z.Constant(t.STRING, "unicode", span=span)
                return z.Apply(wanted, "string:?:text", (numbers, how), span=span)
            case t.Map() if not items:
                message = "`{}` is an empty array, not a map"
                raise self.error("sawzall-type-mismatch", message, span, "an empty map is `{:}`")
            case _:
                if not items:
                    hint = "state it: `x: array of int = {};`"
                    raise self.error("sawzall-needs-type", "the type of `{}` is not known here", span, hint)
                plain = [self.infer(i) for i in items if not composite(i)]
                inner = (found for i in items if (found := self.tried(lambda i=i: self.infer(i))) is not None)
                item = plain[0].type if plain else next((found.type for found in inner), None)
                if item is not None:
                    alike = self.tried(
                        lambda: z.ArrayOf(t.List(item), tuple(self.check(i, item) for i in items), span=span)
                    )
                    if alike is not None:
                        return alike
                nodes = tuple(map(self.infer, items))
                type_ = t.Record(tuple((f"_{i}", n.type) for i, n in enumerate(nodes)))
                return z.RecordOf(type_, nodes, span=span)

    def fields(
        self, items: tuple[s.FieldValueItem, ...], wanted: t.Type | None, expr: s.RecordValue
    ) -> z.Expr:
        """`{a: v}`: a record; where a map is wanted, `a` is an expression."""
        given = [item for item in items if isinstance(item, s.FieldValue)]
        names = [item.name for item in given]
        variables = all(
            (known := self.names.known(name)) is not None and known.what == "variable" for name in names
        )
        if isinstance(wanted, t.Map) or (variables and not isinstance(wanted, t.Record)):
            return self.entries(
                tuple((s.Name(i.name, span=i.span), i.value) for i in given), wanted, expr.span
            )
        names = [kept_name(name) for name in names]
        if len(set(names)) < len(names):
            raise self.error("sawzall-duplicate", "a field is given twice", expr.span)
        if not isinstance(wanted, t.Record):
            nodes = tuple(self.infer(item.value) for item in given)
            type_ = t.Record(tuple((name, node.type) for name, node in zip(names, nodes, strict=True)))
            return z.RecordOf(type_, nodes, span=expr.span)
        if sorted(names) != sorted(name for name, _ in wanted.fields):
            shown = ", ".join(f"`{name}`" for name, _ in wanted.fields)
            raise self.error(
                "sawzall-type-mismatch", f"the record has the fields {shown}, each once", expr.span
            )
        values = {item.name: item.value for item in given}
        ordered = tuple(self.check(values[name], type_) for name, type_ in wanted.fields)
        return z.RecordOf(wanted, ordered, span=expr.span)

    def entries(
        self, items: tuple[tuple[s.Expr, s.Expr], ...], wanted: t.Type | None, span: Span | None
    ) -> z.Expr:
        """`{k: v}`: a map."""
        if isinstance(wanted, t.Map):
            pairs = tuple((self.check(k, wanted.key), self.check(v, wanted.value)) for k, v in items)
            return z.MapOf(wanted, pairs, span=span)
        if not items:
            hint = "state it: `x: map [string] of int = {:};`"
            raise self.error("sawzall-needs-type", "the type of `{:}` is not known here", span, hint)
        key, value = self.infer(items[0][0]).type, self.infer(items[0][1]).type
        if not t.is_key(key):
            raise self.error("sawzall-key-type", f"`{spelled(key)}` cannot be the key of a map", span)
        return self.entries(items, t.Map(key, value), span)


def _left_out(name: str, given: int) -> tuple[s.Expr, ...]:
    """What may be left out behind the operands of a function of times: how many days, and the zone."""
    most = 3 if name.startswith("add") or name == "formattime" else 2
    rest = (s.Int(1), s.String(default_zone())) if name.startswith("add") else (s.String(default_zone()),)
    return rest[given - most :] if 0 < most - given <= len(rest) else ()


_DOLLAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def _before_a_line_end(pattern: str) -> str:
    """A pattern whose `$` is also met in front of a line end that is the last of the text."""
    if "(?" in pattern.replace("(?:", "") or "\\Q" in pattern:
        return pattern
    return _DOLLAR.sub(lambda found: r"(?:\n?\z)" if found[0] == "$" else found[0], pattern)


def _path(expr: a.Expr) -> str | None:
    """`a.b.c` as it is written, if an expression is nothing but names."""
    match expr:
        case s.Name(name):
            return name
        case s.Member(inner, name):
            path = _path(inner)
            return None if path is None else f"{path}.{name}"
        case _:
            return None


def composite(expr: a.Expr) -> bool:
    """Whether `expr` is values in braces, whose type is that of what they stand beside."""
    return isinstance(expr, s.ListValue | s.MapValue | s.RecordValue)


def _opened(place: z.Expr) -> z.Opened | None:
    """The outermost value in a place whose type contains itself: none stands around it."""
    found = None
    while isinstance(place, z.Field | z.Item | z.Slice | z.Opened):
        if isinstance(place, z.Opened):
            found = place
        place = place.value
    return found


def _advice(name: str, types: tuple[t.Type | None, ...]) -> str | None:
    known = [type_ for type_ in types if type_ is not None]
    if len(known) > 1 and known[0] != known[1] and set(known) <= {*NUMBERS, t.STRING}:
        return f"convert one of them, for instance `{spelled(known[0])}(...)`"
    if name not in OPERATIONS:
        return None
    takes = _taken(name, len(types))
    return OPERATIONS[name].doc + (f"; it takes {takes}" if takes else "")


def _taken(name: str, count: int) -> str:
    """What an operation takes of basic types, for people: as many operands as there are, or what number of them fits."""
    for many in (count, *(other for other in range(4) if other != count)):
        fits = [
            types
            for types in product(BASIC.values(), repeat=many)
            if OPERATIONS[name].rule(types) is not None
        ]
        if fits:
            shown = [f"({', '.join(map(spelled, types))})" for types in fits[:_SHOWN]]
            return ", ".join(shown) + (", ..." if len(fits) > _SHOWN else "")
    return ""
