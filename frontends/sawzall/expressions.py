"""Expressions: syntax to typed. Values in braces, conversions, patterns and formats have modules of their own."""

from __future__ import annotations

import re
from itertools import product
from time import time_ns
from typing import TYPE_CHECKING, assert_never, cast

from frontends.sawzall import conversions, displays, formats, patterns
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.operations import (
    CONSTANTS,
    CONVERTERS,
    INTEGERS,
    MATCHES,
    NUMBERS,
    OPERATIONS,
    named,
)
from frontends.sawzall.times import OWN_ZONE, default_zone, microseconds, zone
from frontends.sawzall.types import BASIC, Proto, Recursive, kept_name, plain, spelled
from river.classes import define
from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from frontends.sawzall.names import Known, Names
    from river.report import Report
    from river.source import Span

SHAPED = (
    "def", "format", "convert", "new", "regex", "saw", "sawn", "sawzall", "getenv", "load", "now", "inprotocount",
)  # fmt: skip
"""Functions that are written in ways of their own."""

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
            return conversions.closed(self, expr, inner, converts=False)
        node = conversions.opened(self, self.infer(expr, inner))
        if plain(node.type) != plain(inner):
            raise self.mismatch(inner, node.type, expr.span)
        return conversions.shaped(self, node, inner)

    def tried(self, one: Callable[[], z.Expr]) -> z.Expr | None:
        """What `one` gives; None, and nothing is said, if it is refused."""
        before = len(self.report.found)
        try:
            return one()
        except Failed:
            del self.report.found[before:]
            return None

    def temporary(self, name: str, type_: t.Type) -> int:
        """A variable that no text can name."""
        self.names.variables.append(z.Variable(name, type_, "local", home=self.names.frame.number))
        return len(self.names.variables) - 1

    def mismatch(self, wanted: t.Type, found: t.Type, span: Span | None) -> Failed:
        """The error that something has another type."""
        help_line = None
        if {wanted, found} <= {*NUMBERS, t.STRING} or {wanted, found} == {t.STRING, t.BYTES}:
            help_line = f"convert it: `{spelled(wanted)}(...)`"
            if wanted == t.I64 and span is not None and re.fullmatch(r'"[^"\\]"', span.text):
                help_line = f"a character is written `'{span.text[1]}'`"
        elif wanted == t.BOOL and found in NUMBERS:
            help_line = "a condition compares: `x != 0`"
        elif isinstance(wanted, t.Record) and isinstance(found, t.Record):
            names, given = ([name for name, _ in record.fields] for record in (wanted, found))
            if names != given and [type_ for _, type_ in wanted.fields] == [
                type_ for _, type_ in found.fields
            ]:
                text = span.text if span is not None and re.fullmatch(r"[\w.]+", span.text) else "x"
                parts = ", ".join(f"{text}.{name}" for name in given)
                help_line = f"tuples whose fields have other names are of another type: `{{ {parts} }}`"
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
                found = microseconds(text, self.program.zone or default_zone())
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
                if known is not None and known.what == "function":
                    return self.function_of(known.index, span)
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
                return conversions.conversion(self, wanted_type, given[0], given[1:], span)
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
                return displays.array_value(self, items, wanted, span)
            case s.MapValue(items):
                return displays.map_value(self, items, wanted, span)
            case s.RecordValue(items):
                return displays.record_value(self, items, wanted, expr)
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
        value = conversions.opened(self, value)
        if not isinstance(value.type, t.List) and value.type not in (t.STRING, t.BYTES):
            raise self.error("sawzall-not-indexed", f"`{spelled(value.type)}` has no parts", span)
        first, last = self.index(low, t.I64, value.type), self.index(high, t.I64, value.type)
        return z.Slice(value.type, value, first, last, span=span)

    def field(self, value: z.Expr, name: str, span: Span | None) -> z.Expr:
        """`value.name`."""
        value = conversions.opened(self, value)
        if not isinstance(value.type, t.Record):
            from frontends.sawzall.habits import meant  # few texts need it

            hint = meant(name, value.type)
            raise self.error("sawzall-unknown-field", f"`{spelled(value.type)}` has no fields", span, hint)
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
        value = conversions.opened(self, value)
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
        other = len(args) > 1 and name not in CONVERTERS and not all(map(displays.composite, args))
        nodes = [None if other and displays.composite(arg) else self.infer(arg) for arg in args]
        if name not in ("==", "!=") or any(
            node is not None and not isinstance(node.type, Recursive) for node in nodes
        ):
            nodes = [None if node is None else conversions.opened(self, node) for node in nodes]
        if name == "bytes" and len(nodes) == 1 and nodes[0] is not None and isinstance(nodes[0].type, Proto):
            return z.Packed(t.BYTES, nodes[0], span=span)
        if name == "string" and len(nodes) == 1 and isinstance(nodes[0], z.FunctionOf):
            return z.Constant(t.STRING, self.functions[nodes[0].function].name, span=span)
        if name not in AS_THEY_ARE or len({node.type for node in nodes if node is not None}) > 1:
            nodes = [
                None if node is None else conversions.shaped(self, node, plain(node.type)) for node in nodes
            ]
        types = tuple(None if node is None else node.type for node in nodes)
        found = OPERATIONS.get(named(name, types))
        signature = None if found is None else found.rule(types)
        for at, arg in enumerate(args):  # as in `haskey({"a": 1}, "a")`: the other operand does not say it
            if signature is None and types[at] is None:
                types = (*types[:at], self.infer(arg).type, *types[at + 1 :])
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
            if last.value != OWN_ZONE and zone(last.value) is None:
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
                counted = conversions.opened(self, self.infer(value))
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
                return patterns.matched(self, name, pattern, text, span)
            case "format", (pattern, *rest):
                return formats.format_of_text(self, pattern, rest, span)
            case "saw" | "sawn" | "sawzall", (_, *_):
                return patterns.sawn(self, name, args, span)
            case "regex", (type_, *rest) if len(rest) <= 1:
                return z.Constant(t.STRING, patterns.pattern_of(self, type_, rest, span), span=span)
            case "new", (type_, *rest):
                return self.new(type_, rest, span)
            case "convert", (type_, value, *rest):
                if (wanted_type := self.type_of(type_)) is None:
                    raise self.error(
                        "sawzall-arguments", "`convert` takes a type first", span, "`convert(int, x)`"
                    )
                return conversions.conversion(self, wanted_type, value, tuple(rest), span)
            case _, (value, *rest) if (
                name not in BASIC and (wanted_type := self.names.type(name)) is not None
            ):
                return conversions.conversion(self, wanted_type, value, tuple(rest), span)
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
            at = microseconds(args[0].value, self.program.zone or default_zone())
            if at is not None:
                return z.Constant(t.TIME, at, span=span)
        if name in CONVERTERS or name in OPERATIONS:
            return self.operation(name, args, wanted, span)
        known = [*OPERATIONS, *CONVERTERS, *MATCHES, *SHAPED, *(f.name for f in self.functions)]
        if name in (*MATCHES, *SHAPED):
            raise self.error("sawzall-arguments", f"`{name}` takes other arguments", span)
        from frontends.sawzall.habits import ELSEWHERE  # few texts need it

        hint = self.names.hints.get(name) or ELSEWHERE.get(name.lower()) or closest(name, known)
        raise self.error("sawzall-unknown-function", f"unknown function `{name}`", span, hint)

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

    # -- displays


def _left_out(name: str, given: int) -> tuple[s.Expr, ...]:
    """What may be left out behind the operands of a function of times: how many days, and the zone."""
    most = 3 if name.startswith("add") or name == "formattime" else 2
    rest = (s.Int(1), s.String(OWN_ZONE)) if name.startswith("add") else (s.String(OWN_ZONE),)
    return rest[given - most :] if 0 < most - given <= len(rest) else ()


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


def _advice(name: str, types: tuple[t.Type | None, ...]) -> str | None:
    known = [type_ for type_ in types if type_ is not None]
    if name in ("int", "uint") and known == [t.BYTES]:
        return f'`{name}(string(b), 10)` is the number in a text, `{name}(b, "fixed32-big")` in bytes'
    if name in ("*", "/", "%", "<<", ">>") and t.TIME in known:
        return "a time is a number by `int(t)`, a number of microseconds a time by `time(n)`"
    if name in ("==", "!=") and set(known) == {t.I64, t.STRING}:
        return "a character is an `int`, as in `s[0] == 'a'`; a text is one by `string(...)`"
    if len(known) > 1 and known[0] != known[1] and set(known) <= {*NUMBERS, t.STRING}:
        other = t.STRING if name == "+" and t.STRING in known else known[0]
        return f"convert one of them, for instance `{spelled(other)}(...)`"
    if name == "+" and any(isinstance(one, t.List) and one.item == other for one in known for other in known):
        return "an item is put behind an array by `a + { x }`"
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
