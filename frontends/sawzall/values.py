"""Expressions in the operator language.

An expression becomes an expression in front of which statements may stand: tests that leave when something is undefined,
temporary values, the right side of `and` and `or`. Leaving means a row in the output `undefined` and the end of the record;
in what a variable begins with, no value; in what a function returns, none; in `def` and in the condition of a `when`, false.
A function that may end the record has a parameter by which it tells.
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, assert_never, cast

from frontends.sawzall import typed as z
from frontends.sawzall.declared_tables import UNDEFINED
from frontends.sawzall.functions import PREFIX
from frontends.sawzall.operations import (
    CLOCKS,
    CLOSE,
    DRAWS,
    MATCHES,
    OPEN,
    OPERATIONS,
    UNKNOWN_ZONE,
    recursive,
)
from frontends.sawzall.saw import saw
from frontends.sawzall.times import OWN_ZONE, Zone, zone
from frontends.sawzall.types import FINGERPRINT, Proto, expression
from river.classes import define, evolve, field
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from frontends.sawzall.types import Recursive
    from river.source import Span

    Leave = Callable[[Span | None, str], tuple[s.Stmt, ...]]

BOOL, REGEX, STRING, BYTES = map(s.TypeName, ("bool", "regex", "string", "bytes"))
CLOCKS_TYPE = s.RecordType((
    s.FieldType("starts", s.TypeName("list", (s.TypeName("i64"),))),
    s.FieldType("offsets", s.TypeName("list", (s.TypeName("i64"),))),
    s.FieldType("names", s.TypeName("list", (s.TypeName("string"),))),
))  # fmt: skip
Message = Literal["read", "write", "count"]
"""What is done with a tuple that is a protocol buffer."""

TRUE, FALSE = s.Bool(value=True), s.Bool(value=False)


def owned(name: str) -> str:
    """A name of the program that no name of the library is."""
    return f"own_{name}" if name.startswith(PREFIX) else name


_UNSET = re.compile(r"\)(?:[?*]|\{0)|\|")
"""What may leave a group of a pattern without a match: that it is optional, or of an alternative."""


@define
class Consts:
    """What all bodies of the map operator share: names of functions, constants, and patterns.

    `frozen`: the names of functions as static values call them: what is undefined in them ends the run, before any record.
    `emitting`: the functions that emit; `drawing`: those that draw random numbers. `taken`: names that no local may have.
    `binary`: whether bytes go to standard output, too.
    `draws`: whether the program draws random numbers. `reports`: whether something that is written reports what is undefined.
    """

    program: z.Program
    fns: dict[int, str]
    frozen: dict[int, str]
    emitting: frozenset[int]
    taken: set[str]
    binary: bool = False
    drawing: frozenset[int] = frozenset()
    draws: bool = False
    reports: bool = False
    names: dict[int, str] = field(factory=dict[int, str])
    regexes: dict[str, str] = field(factory=dict[str, str])
    lists: dict[s.Expr, s.Const] = field(factory=dict["s.Expr", "s.Const"])
    messages: dict[tuple[Message, Proto], str] = field(
        factory=dict["tuple[Message, Proto]", str]
    )  # the functions of tuples that are protocol buffers

    def told(self, span: Span | None) -> str:
        """Line and column of a place; in a file that is included with the file's path, from the program's folder on."""
        if span is None:
            return "0:0"
        line, column = span.source.position(span.start)
        main = self.program.span
        if main is None or span.source.name == main.source.name:
            return f"{line}:{column}"
        path, folder = PurePath(span.source.name), PurePath(main.source.name).parent
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        return f"{shown.as_posix()}:{line}:{column}"

    @property
    def failing(self) -> frozenset[int]:
        """The functions whose results may be undefined."""
        return frozenset(i for i, f in enumerate(self.program.functions) if f.fails)

    def unused(self, name: str) -> str:
        """A name that is free in all bodies."""
        found = fresh(owned(name), self.taken)
        self.taken.add(found)
        return found

    def pattern(self, text: str) -> str:
        """The constant that holds a pattern."""
        if text not in self.regexes:
            self.regexes[text] = self.unused("pattern")
        return self.regexes[text]

    def message(self, what: Message, type_: t.Type) -> str:
        """The function that reads or writes the bytes of a tuple, or counts the fields that are there."""
        assert isinstance(type_, Proto)  # noqa: S101 - the checker has seen to it
        if (what, type_) not in self.messages:
            self.messages[what, type_] = self.unused(f"{what}_tuple")
        return self.messages[what, type_]

    def clocks(self, name: str) -> str | None:
        """The constant that holds the clocks of a zone; None if there is no such zone."""
        found = zone(self.program.zone if name == OWN_ZONE else name)
        return None if found is None else self.list("clocks", CLOCKS_TYPE, _clocks(found))

    def all_clocks(self) -> str:
        """The constant that holds the clocks of all zones that the program names in a text."""
        names = {
            node.value
            for node in walk(self.program)
            if isinstance(node, z.Constant) and node.type == t.STRING
        }
        known = {
            name: found
            for name in sorted({*names, self.program.zone, "UTC", "GMT"})
            if (found := zone(name)) is not None
        }
        value = s.MapValue(tuple((s.String(name), _clocks(found)) for name, found in known.items()))
        return self.list("clocks", s.TypeName("map", (s.TypeName("string"), CLOCKS_TYPE)), value)

    def list(self, hint: str, type_: s.TypeExpr, value: s.Expr) -> str:
        """The constant that holds a list, a map or a record."""
        if value not in self.lists:
            self.lists[value] = s.Const(self.unused(hint), type_, value)
        return self.lists[value].name

    def patterns(self) -> tuple[s.Const, ...]:
        """The patterns as constants of the operator, then the other ones that bodies share."""
        alone = (
            s.Const(name, REGEX, s.Call("regex", (s.String(text),))) for text, name in self.regexes.items()
        )
        return (*alone, *self.lists.values())


def _clocks(found: Zone) -> s.Expr:
    """The clocks of a zone as a record of lists."""
    parts = (("starts", found.starts), ("offsets", found.offsets), ("names", found.names))
    return s.RecordValue(
        tuple(
            s.FieldValue(
                name,
                s.ListValue(tuple(constant(t.STRING if isinstance(v, str) else t.I64, v) for v in values)),
            )
            for name, values in parts
        )
    )


@define
class Loop:
    """A loop of the operator language that is open; its label is written only if something needs it."""

    label: str
    needed: bool = False

    def written(self) -> str | None:
        """The label, if it is needed."""
        return self.label if self.needed else None


@define
class Attempt:
    """What is written until something is undefined; then `loop` is left."""

    found: list[s.Stmt]
    loop: Loop


@define
class Values:
    """Expressions of one function, or of the handler. `frozen`: for static values."""

    consts: Consts
    function: z.Function | None = None
    frozen: bool = False
    out: list[s.Stmt] = field(factory=list[s.Stmt])
    wholes: list[s.Expr] = field(factory=list[s.Expr])  # what is indexed, innermost last
    results: list[tuple[s.Name, Loop, Leave]] = field(
        factory=list["tuple[s.Name, Loop, Leave]"]
    )  # of the `?{...}` that are open: the name, the loop, and what is done if it is undefined
    names: dict[int, str] = field(factory=dict[int, str])
    flags: dict[int, str] = field(factory=dict[int, str])
    taken: set[str] = field(init=False)
    loops: list[Loop] = field(factory=list[Loop])
    within: set[tuple[s.Expr, s.Expr]] = field(factory=set[tuple[s.Expr, s.Expr]])
    ended: str | None = None
    chance: str | None = None
    leave: Leave = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Names start from those that all bodies share; what is undefined ends the record."""
        self.taken = set(self.consts.taken)
        self.leave = self.end

    # -- names and statements

    def unused(self, name: str) -> str:
        """A name that is free in this body, and that no constant has."""
        found = name = owned(name)
        while found in self.taken or found in self.consts.taken:
            found = fresh(name, self.taken | self.consts.taken)
        self.taken.add(found)
        return found

    def variable(self, index: int) -> z.Variable:
        """A variable of the program."""
        return self.consts.program.variables[index]

    def parameter(self, index: int, written: frozenset[int]) -> str:
        """The name of a parameter; one that is written to becomes a variable at once."""
        variable = self.variable(index)
        if index not in written:
            self.names[index] = self.unused(variable.name)
            return self.names[index]
        given = self.unused(f"given_{variable.name}")
        self.names[index] = self.unused(variable.name)
        self.out.append(
            s.VarDecl(self.names[index], expression(variable.type), s.Name(given), span=variable.span)
        )
        return given

    def end(self, span: Span | None, why: str) -> tuple[s.Stmt, ...]:
        """Ends the record: it is reported, and those who called are told."""
        if self.frozen:
            return (s.Trap(why, span=span),)
        self.consts.reports = True
        at = s.String(self.consts.told(span))
        row = s.RecordValue((s.FieldValue("at", at), s.FieldValue("why", s.String(why))))
        report = s.Emit(UNDEFINED, row, span=span)
        if self.function is None:
            return report, self.quit(span)
        assert self.ended is not None  # noqa: S101 - what may end the record has it
        return report, s.Assign(s.Name(self.ended), TRUE, span=span), self.quit(span)

    def quit(self, span: Span | None) -> s.Stmt:
        """Leaves the handler or the function, whose result nobody looks at."""
        if self.function is None or self.function.result is None:
            return s.Return(span=span)
        return s.Return(s.NoneValue() if self.function.fails else s.Call("zero", ()), span=span)

    @contextmanager
    def leaving(self, how: Leave) -> Generator[None, None, None]:
        """What is undefined inside leaves in another way."""
        before, self.leave = self.leave, how
        try:
            yield
        finally:
            self.leave = before

    @contextmanager
    def attempt(self, name: str) -> Generator[Attempt, None, None]:
        """What is written inside is left where something is undefined; what comes behind goes on in any case."""
        with self.loop(name) as loop:

            def leave(span: Span | None, _why: str) -> tuple[s.Stmt, ...]:
                label = None if self.loops[-1] is loop else self.needed(loop)
                return (s.Break(label, span=span),)

            with self.leaving(leave), self.block() as found:
                yield Attempt(found, loop)

    def attempted(self, attempt: Attempt, done: tuple[s.Stmt, ...]) -> None:
        """Writes an attempt, and what is done where nothing was undefined."""
        match attempt.found:
            case [*lets, s.If(cond, s.Block((s.Break(None),)), None)] if all(
                isinstance(x, s.Let | s.VarDecl) for x in lets
            ):
                self.out += lets
                self.out.append(s.If(negated(cast("s.Expr", cond)), s.Block(done)))
            case [*lets] if all(isinstance(x, s.Let | s.VarDecl) for x in lets):
                self.out += lets
                self.out += done
            case found:
                body = s.Block((*found, *done, s.Break()))
                self.out.append(s.While(attempt.loop.written(), TRUE, body))

    def tried(self, value: z.Expr, hint: str) -> s.Name:
        """The value of an expression; empty, or 0, if it is undefined."""
        name = s.Name(self.unused(hint))
        self.out.append(s.VarDecl(name.name, expression(value.type), s.Call("zero", ())))
        with self.attempt("tried") as attempt:
            last = self.expr(value)
        self.attempted(attempt, (s.Assign(name, last),))
        return name

    def holding(self, cond: z.Expr) -> s.Expr:
        """Whether a condition holds; what is undefined does not."""
        with self.attempt("tried") as attempt:
            last = self.expr(cond)
        if not attempt.found:
            return last
        holds = s.Name(self.unused("holds"))
        self.out.append(s.VarDecl(holds.name, None, FALSE))
        self.attempted(attempt, (s.Assign(holds, last),))
        return holds

    @contextmanager
    def block(self) -> Generator[list[s.Stmt], None, None]:
        """Statements written inside go to a list of their own."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def loop(self, name: str) -> Generator[Loop, None, None]:
        """A loop is open inside."""
        loop = Loop(self.unused(name))
        self.loops.append(loop)
        try:
            yield loop
        finally:
            self.loops.pop()

    def unless(self, bad: s.Expr, span: Span | None, why: str) -> None:
        """Leaves if `bad` holds."""
        self.out.append(s.If(bad, s.Block(self.leave(span, why)), span=span))

    def bound(self, expr: s.Expr, type_: t.Type, hint: str) -> s.Expr:
        """`expr` as something that may be evaluated again, at the same price and with the same value."""
        if _repeatable(expr):
            return expr
        return self.kept(expr, type_, hint)

    def kept(self, expr: s.Expr, type_: t.Type, hint: str) -> s.Expr:
        """`expr` as it is now, under a name."""
        name = self.unused(hint)
        shown = expression(type_) if _display(expr) else None
        borrows = t.is_flat(type_) or self.is_call(expr)
        self.out.append((s.Let if borrows else s.VarDecl)(name, shown, expr, span=expr.span))
        return s.Name(name, span=expr.span)

    def begun(self, hint: str, first: s.Expr, type_: s.TypeExpr | None = None) -> s.Name:
        """A new variable that may be changed, by its first value."""
        name = self.unused(hint)
        self.out.append(s.VarDecl(name, type_, first, span=first.span))
        return s.Name(name)

    def is_call(self, expr: s.Expr) -> bool:
        """Whether it is a call of a function of the program: its result is fresh."""
        return isinstance(expr, s.Call) and (
            expr.function in self.consts.fns.values() or expr.function in self.consts.frozen.values()
        )

    # -- expressions

    def expr(self, expr: z.Expr) -> s.Expr:
        """The value of an expression; what must happen before is written."""
        return evolve(self.plain(expr), span=expr.span)

    def plain(self, expr: z.Expr) -> s.Expr:
        """As `expr`, without the span of its root."""
        span = expr.span
        match expr:
            case z.Constant(type_, value):
                return constant(type_, value)
            case z.Read(_, variable, definite):
                if not definite:
                    flag = s.Unary("not", s.Name(self.flags[variable]))
                    self.unless(flag, span, f"`{self.variable(variable).name}` has no value")
                return s.Name(self.named(variable))
            case z.Field(_, value, name, missing):
                found = s.Member(self.expr(value), name, span=span)
                if not missing:
                    return found
                found = self.bound(found, t.Optional(expr.type), name)
                self.unless(s.IsNone(found), span, f"`{text_of(span)}`: the field is missing")
                return s.Force(found)
            case z.Item():
                return self.item(expr)
            case z.Slice(type_, value, low, high):
                return self.part(self.bound(self.expr(value), type_, "whole"), low, high)
            case z.Length():
                return s.Call("len", (self.wholes[-1],))
            case z.Apply():
                return self.apply(expr)
            case z.Match(_, operation, pattern, value):
                return self.match(operation, pattern, value)
            case z.Saw():
                return saw(self, expr)
            case z.Packed(_, value, counted):
                function = self.consts.message("count" if counted else "write", value.type)
                return s.Call(function, (self.expr(value),))
            case z.Unpacked(type_, value):
                read = s.Call(self.consts.message("read", type_), (self.expr(value),))
                found = self.bound(read, t.Optional(type_), "result")
                self.unless(s.IsNone(found), span, f"`{text_of(span)}`: no protocol buffer")
                return s.Force(found)
            case z.Opened(_, value):
                return s.Call(f"{OPEN}{cast('Recursive', value.type).number}", (self.expr(value),))
            case z.Closed(type_, value):
                return s.Call(f"{CLOSE}{cast('Recursive', type_).number}", (self.expr(value),))
            case z.There(_, value, name):
                assert isinstance(value.type, Proto)  # noqa: S101 - the checker has seen to it
                where, bit = value.type.flag(name)
                return s.Binary("!=", s.Binary("&", s.Member(self.expr(value), where), s.Int(bit)), s.Int(0))
            case z.Logic(_, op, left, right):
                return self.logic(op, left, right)
            case z.Defined(_, value):
                return self.defined(value)
            case z.Call():
                return self.call(expr)
            case z.FunctionOf(_, function):
                return s.Int(function)
            case z.StatementValue():
                return self.statement_value(expr)
            case z.Invoke():
                raise AssertionError(expr)  # the checker leaves none
            case z.ArrayOf(_, items):
                return s.ListValue(self.every(items))
            case z.MapOf(_, items):
                flat = self.every(tuple(part for pair in items for part in pair))
                return s.MapValue(tuple(zip(flat[::2], flat[1::2], strict=True)))
            case z.RecordOf(type_, values):
                return record(type_, self.every(values))
            case _:
                assert_never(expr)

    def part(self, whole: s.Expr, low: z.Expr, high: z.Expr) -> s.Expr:
        """`whole[low:high]`."""
        length = s.Call("len", (whole,))
        start = self.index(whole, low)
        start = start if isinstance(start, s.Int) else s.Call("max", (start, s.Int(0)))
        start = self.bound(s.Call("min", (start, length)), t.I64, "low")
        end = s.Call("max", (s.Call("min", (self.index(whole, high), length)), start))
        return s.Slice(whole, start, self.bound(end, t.I64, "high"))

    def every(self, exprs: tuple[z.Expr, ...]) -> tuple[s.Expr, ...]:
        """The values of expressions, from left to right."""
        changing = [False, *map(z.changes, exprs[1:])]
        if not any(changing):
            return tuple(self.expr(e) for e in exprs)
        found: list[s.Expr] = []
        for i, e in enumerate(exprs):
            value = self.expr(e)
            changes = any(changing[i + 1 :]) and not isinstance(e, z.Constant)
            found.append(self.kept(value, e.type, "before") if changes else value)
        return tuple(found)

    def index(self, whole: s.Expr, index: z.Expr) -> s.Expr:
        """An index of something."""
        self.wholes.append(whole)
        try:
            return self.expr(index)
        finally:
            self.wholes.pop()

    def statement_value(self, expr: z.StatementValue) -> s.Expr:
        """`?{...}`: what its statements do is written; a `result` that does not come last leaves a loop."""
        raise NotImplementedError  # Body has statements

    def named(self, variable: int) -> str:
        """The name of a variable."""
        return self.names[variable] if variable in self.names else self.consts.names[variable]

    def match(self, operation: str, pattern: z.Expr, value: z.Expr) -> s.Expr:
        """What a pattern finds. Groups behind the last one that is found are left out, as PCRE and so szl do."""
        if operation == "match" or (isinstance(pattern, z.Constant) and not _UNSET.search(pattern.value)):
            return s.Call(MATCHES[operation][0], (self.regex(pattern), self.expr(value)))
        form = (
            self.regex(pattern)
            if isinstance(pattern, z.Constant)
            else s.Call("regex", (self.bound(self.expr(pattern), t.STRING, "form"),), span=pattern.span)
        )
        text = self.bound(self.expr(value), t.STRING, "text")
        places = s.Call("re_find", (form, text))
        if operation == "matchposns":
            return s.Call(f"{PREFIX}found_places", (places,))
        return s.Call(f"{PREFIX}found_texts", (s.Call("re_strs", (form, text)), places))

    def regex(self, pattern: z.Expr) -> s.Expr:
        """A pattern, which is a constant if its text is one."""
        if isinstance(pattern, z.Constant):
            return s.Name(self.consts.pattern(pattern.value))
        return s.Call("regex", (self.expr(pattern),), span=pattern.span)

    def stored(self, place: z.Expr, value: s.Expr) -> None:
        """Writes what is assigned to a place."""
        raise NotImplementedError  # Body has statements

    def item(self, expr: z.Item) -> s.Expr:
        """`value[index]`, tested."""
        span = expr.span
        value = self.bound(self.expr(expr.value), expr.value.type, "whole")
        match expr.value.type:
            case t.Map(key, item):
                index = self.bound(self.index(value, expr.index), key, "key")
                why = f"`{text_of(span)}`: no such key"
                if not t.is_flat(item):
                    self.unless(s.Unary("not", s.Call("has", (value, index))), span, why)
                    return s.Index(value, index)
                found = self.bound(s.Call("get", (value, index)), t.Optional(item), "found")
                self.unless(s.IsNone(found), span, why)
                return s.Force(found)
            case type_:
                index = self.position(value, expr.index, span)
                found = s.Index(value, index, span=span)
                return found if isinstance(type_, t.List) else s.Call("i64", (found,))

    def position(self, value: s.Expr, index: z.Expr, span: Span | None) -> s.Expr:
        """An index of an array, string or byte string, tested."""
        found = self.bound(self.index(value, index), t.I64, "index")
        length = s.Call("len", (value,))
        match found:
            case s.Int(number):
                bad = s.Binary("<=", length, s.Int(number))
            case _:
                bad = s.Binary("or", s.Binary("<", found, s.Int(0)), s.Binary(">=", found, length))
        if (value, found) not in self.within:
            self.unless(bad, span, f"`{text_of(span)}`: index out of range")
        return found

    def apply(self, expr: z.Apply) -> s.Expr:
        """An operation, tested if it may have no result."""
        operation = OPERATIONS[expr.operation]
        types = tuple(arg.type for arg in expr.args)
        if operation.name in DRAWS:
            return self.random(expr)
        args = self.every(expr.args)
        again = operation.repeats or operation.guard is not None or any(map(recursive, types))
        args = tuple(
            self.bound(arg, type_, "operand") if again or _display(arg) else arg
            for arg, type_ in zip(args, types, strict=True)
        )
        why = f"`{text_of(expr.span)}`: {operation.undefined}"
        if operation.guard is not None and not _harmless(operation.name, args):
            self.unless(operation.guard(args, types), expr.span, why)
        found = operation.river(args, types)
        if any(t.contains(type_, t.TIME) for type_ in (*types, expr.type)):
            found = self.with_clocks(found, expr.span)
        if not operation.optional:
            return found
        found = self.bound(found, t.Optional(expr.type), "result")
        self.unless(s.IsNone(found), expr.span, why)
        return s.Force(found)

    def with_clocks(self, found: s.Expr, span: Span | None) -> s.Expr:
        """An expression with the clocks of zones for their names. `span`: of what asks for them."""

        def put(node: s.Node) -> s.Node:
            node = rebuild(node, put)
            match node:
                case s.Call(function, (given,)) if function == CLOCKS:
                    if (
                        isinstance(given, s.String)
                        and (clocks := self.consts.clocks(given.value)) is not None
                    ):
                        return s.Name(clocks)
                    name = cast("s.Expr", given)
                    known = s.Name(self.consts.all_clocks())
                    missing = s.Unary("not", s.Call("has", (known, name)))
                    self.unless(missing, span, f"`{text_of(span)}`: {UNKNOWN_ZONE}")
                    return s.Index(known, name)
                case _:
                    return node

        return cast("s.Expr", put(found))

    def random(self, expr: z.Apply) -> s.Expr:
        """`rand()` or `nrand(n)`."""
        below = [self.bound(self.expr(arg), t.I64, "below") for arg in expr.args]
        if not below:
            return s.Call(f"{PREFIX}even", (self.drawn(),))
        why = f"`{text_of(expr.span)}`: there is no such number"
        self.unless(s.Binary("<=", below[0], s.Int(0)), expr.span, why)
        return s.Call(f"{PREFIX}below", (self.drawn(), below[0]))

    def drawn(self) -> s.Expr:
        """A number of 64 bits that is drawn now."""
        assert self.chance is not None  # noqa: S101 - who draws has it
        state = s.Name(self.chance)
        self.out.append(s.Assign(state, s.Binary("+%", state, s.Int(1))))
        name = self.unused("chance")
        self.out.append(s.Let(name, None, s.Call("hash64", (state,))))
        return s.Name(name)

    def logic(self, op: str, left: z.Expr, right: z.Expr) -> s.Expr:
        """`and`, `or`: what the right side needs happens only if the left one does not decide."""
        first = self.expr(left)
        with self.block() as before:
            second = self.expr(right)
        if not before:
            return s.Binary(op, first, second)
        name = self.unused("holds")
        self.out.append(s.VarDecl(name, None, first))
        result = s.Name(name)
        cond = result if op == "and" else s.Unary("not", result)
        self.out.append(s.If(cond, s.Block((*before, s.Assign(result, second)))))
        return result

    def defined(self, value: z.Expr) -> s.Expr:
        """`def(value)`."""
        with self.attempt("defined") as attempt:
            last = self.expr(value)
            if self.is_call(last):
                self.bound(last, value.type, "value")
        exits = (s.Break(),)
        match attempt.found:
            case [*lets, s.If(cond, s.Block(stmts), None)] if stmts == exits and all(
                isinstance(x, s.Let) for x in lets
            ):
                self.out += lets
                return negated(cast("s.Expr", cond))
            case [*lets] if all(isinstance(x, s.Let | s.VarDecl) for x in lets):
                self.out += lets
                return TRUE
            case _:
                result = s.Name(self.unused("known"))
                self.out.append(s.VarDecl(result.name, None, FALSE))
                self.attempted(attempt, (s.Assign(result, TRUE),))
                return result

    def needed(self, loop: Loop) -> str:
        """The label of a loop, which is needed."""
        loop.needed = True
        return loop.label

    def call(self, expr: z.Call) -> s.Expr:
        """A call of a function of the program, with a result."""
        call = self.called(expr)
        function = self.consts.program.functions[expr.function]
        if function.fails:
            found = self.bound(call, t.Optional(expr.type), "result")
            self.follow(function, expr.span)
            self.unless(s.IsNone(found), expr.span, f"`{text_of(expr.span)}`: the result is undefined")
            return s.Force(found)
        if not function.ends and expr.function not in self.consts.emitting:
            return call
        found = self.bound(call, expr.type, "result")
        self.follow(function, expr.span)
        return found

    def follow(self, function: z.Function, span: Span | None) -> None:
        """After a call: where the record has ended in it, it ends here, too."""
        if function.ends and not self.frozen:
            assert self.ended is not None  # noqa: S101 - who calls such a function has it
            self.out.append(s.If(s.Name(self.ended), s.Block((self.quit(span),)), span=span))

    def called(self, expr: z.Call) -> s.Call:
        """The call itself."""
        function = self.consts.program.functions[expr.function]
        args = list(self.every(expr.args))
        if expr.lent:  # what is lent must not be a part of an argument
            args = [
                arg if t.is_flat(e.type) or isinstance(e, z.Constant) else self.kept(arg, e.type, "argument")
                for arg, e in zip(args, expr.args, strict=True)
            ]
        for (outside, _), capture in zip(function.captures, expr.captures, strict=True):
            args += self.passed(outside, capture, expr.span)
        if function.ends and not self.frozen:
            assert self.ended is not None  # noqa: S101 - who calls such a function has it
            args.append(s.Name(self.ended, span=expr.span))
        if expr.function in self.consts.drawing:
            assert self.chance is not None  # noqa: S101 - who calls such a function has it
            args.append(s.Name(self.chance, span=expr.span))
        names = self.consts.frozen if self.frozen else self.consts.fns
        return s.Call(names[expr.function], tuple(args), span=expr.span)

    def passed(self, outside: int, capture: z.Read, span: Span | None) -> tuple[s.Expr, ...]:
        """A variable that is captured, and whether it has a value; one that is not at hand is not looked at."""
        loose = self.variable(outside).loose
        if capture.variable in self.names:
            name = s.Name(self.named(capture.variable), span=span)
            return (name, s.Name(self.flags[capture.variable], span=span)) if loose else (name,)
        name = s.Name(self.unused("nothing"))
        self.out.append(s.VarDecl(name.name, expression(capture.type), s.Call("zero", ()), span=span))
        if not loose:
            return (name,)
        flag = s.Name(self.unused("nothing_set"))
        self.out.append(s.VarDecl(flag.name, None, FALSE, span=span))
        return name, flag


def _repeatable(expr: s.Expr) -> bool:
    """Whether an expression costs little, changes nothing, and means the same when it is evaluated again."""
    match expr:
        case s.Name() | s.Int() | s.Float() | s.Bool() | s.String() | s.Bytes():
            return True
        case s.Member(value, _) | s.Force(value) | s.Unary("-", value):
            return _repeatable(value)
        case s.Index(value, index):
            return _repeatable(value) and _repeatable(index)
        case _:
            return False


def _display(expr: s.Expr) -> bool:
    """Whether the type of an expression is not seen from it alone."""
    return isinstance(expr, s.ListValue | s.MapValue | s.RecordValue | s.Comprehension)


def _harmless(name: str, args: tuple[s.Expr, ...]) -> bool:
    """Whether a division is by a number that is not zero."""
    return name in ("/", "%") and isinstance(args[1], s.Int | s.Float) and args[1].value != 0


def negated(cond: s.Expr) -> s.Expr:
    """The opposite of a condition."""
    match cond:
        case s.Unary("not", value):
            return value
        case _:
            return s.Unary("not", cond)


def record(type_: t.Record, values: tuple[s.Expr, ...]) -> s.RecordValue:
    """A record of values in the order of the type's fields."""
    found = tuple(s.FieldValue(name, value) for (name, _), value in zip(type_.fields, values, strict=True))
    if isinstance(type_, Proto):  # all its fields are there
        flags = zip(type_.there, type_.all_there(), strict=True)
        hidden = (
            *(s.FieldValue(name, s.Int(bits)) for name, bits in flags),
            s.FieldValue(type_.rest, s.Bytes(b"")),
        )
        found = (*found, *hidden)
    return s.RecordValue(found)


def constant(type_: t.Type, value: object) -> s.Expr:
    """A value as a literal."""
    match value:
        case bool():
            return s.Bool(value)
        case int() if type_ == t.TIME:
            return s.Call("time", (constant(t.I64, value),))
        case int() if type_ in (t.U64, FINGERPRINT):
            return s.Call("u64.wrap", (constant(t.I64, value - (value >> 63 << 64)),))
        case int() if type_ != t.F64:
            return s.signed(value)
        case int() | float():
            number = float(value)
            if not math.isfinite(number):
                top = 0.0 if math.isnan(number) else math.copysign(1.0, number)
                return s.Binary("/", constant(t.F64, top), s.Float(0.0))
            return s.signed(number)
        case str():
            return s.String(value)
        case bytes():
            return s.Bytes(value)
        case _:
            raise AssertionError(value)  # the checker makes no other constants


def text_of(span: Span | None) -> str:
    """The text of an expression, on one line."""
    return "" if span is None else " ".join(span.text.split())
