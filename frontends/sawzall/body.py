"""Statements in the operator language: the handler of the map operator, and its local functions."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never, cast

from frontends.sawzall import typed as z
from frontends.sawzall.functions import PREFIX
from frontends.sawzall.operations import CLOSE, DRAWS, OPEN, OPERATIONS
from frontends.sawzall.reduce import hidden, weighed, weight_parts
from frontends.sawzall.types import Proto, expression
from frontends.sawzall.values import (
    BOOL,
    FALSE,
    TRUE,
    Consts,
    Loop,
    Values,
    constant,
    negated,
    record,
    text_of,
)
from river.classes import define, field
from river.il.trees import children, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.parse import PORT_RESERVED

if TYPE_CHECKING:
    from collections.abc import Generator

    from frontends.sawzall.types import Recursive
    from river.source import Span


PRINTS = "stdout"
"""The output of the map operator for what goes to standard output, lines and bytes."""


def binary(table: z.Table) -> bool:
    """Whether a table prints bytes."""
    return table.printed == "stdout" and table.value[0][1] == t.BYTES


def handler(consts: Consts) -> s.ItemHandler:
    """The body of the program as the handler of its input."""
    program = consts.program
    source = program.variables[program.input]
    parts = z.inside(program.body)
    body = BodyWriter(consts, written=parts.assigned)
    if any(program.functions[each].ends for each in parts.called):
        body.ended = body.unused("ended")
        body.out.append(s.VarDecl(body.ended, None, FALSE))
    name = body.parameter(program.input, body.written)
    body.flag(program.input)
    if consts.draws:
        numbered = s.Name(body.unused("numbered"))
        body.chance = body.unused("chance")
        seed = (
            ("seed", constant(t.I64, program.seed)),
            ("input", s.String(source.name)),
            ("at", s.Member(numbered, "at")),
        )
        first = s.RecordValue(tuple(s.FieldValue(part, value) for part, value in seed))
        body.out[:0] = (
            s.VarDecl(body.chance, s.TypeName("u64"), s.Call("hash64", (first,))),
            s.Let(name, None, s.Member(numbered, "item")),
        )
        name = numbered.name
    body.keep(-1, program.body)
    for stmt in program.body:
        body.stmt(stmt)
    return s.ItemHandler(port(source.name), name, s.Block(tuple(body.out)), span=program.span)


def port(name: str) -> str:
    """The name of the map operator's input."""
    return f"{name}_item" if name in PORT_RESERVED else name


def local_function(consts: Consts, index: int, *, frozen: bool = False) -> s.Fn:
    """A function of the program as a local function of the map operator. `frozen`: as static values call it."""
    function = consts.program.functions[index]
    written = z.inside(function.body).assigned
    body = BodyWriter(consts, function=function, frozen=frozen, written=written)
    params: list[s.Param] = []
    lent = {inside for outside, inside in function.captures if outside in function.lent}
    for inside in (*function.params, *(inside for _, inside in function.captures)):
        variable = consts.program.variables[inside]
        name = body.parameter(inside, frozenset() if inside in lent else written)
        params.append(s.Param(name, expression(variable.type), ref=inside in lent, span=variable.span))
        if inside in function.params:
            body.flag(inside)
        elif variable.loose:
            body.flags[inside] = body.unused(f"{variable.name}_set")
            params.append(s.Param(body.flags[inside], BOOL, ref=inside in lent, span=variable.span))
    if function.ends and not frozen:
        body.ended = body.unused("ended")
        params.append(s.Param(body.ended, BOOL, ref=True, span=function.span))
    if index in consts.drawing:
        body.chance = body.unused("chance")
        params.append(s.Param(body.chance, s.TypeName("u64"), ref=True, span=function.span))
    body.keep(index, function.body)
    for stmt in function.body:
        body.stmt(stmt)
    if function.result is not None and not z.leaves(function.body):
        if consts.program.skips:
            body.out.append(s.Return(s.NoneValue(), span=function.span))
        else:
            body.out += body.end(function.span, f"`{function.name}` ends without `return`")
    result = None if function.result is None else expression(function.result)
    if result is not None and function.fails:
        result = s.OptionalType(result)
    name = (consts.frozen if frozen else consts.fns)[index]
    return s.Fn(name, tuple(params), result, s.Block(tuple(body.out)), span=function.span)


def static(consts: Consts, index: int, value: z.Expr) -> tuple[s.Const, s.Fn | None]:
    """A static value as a constant; one that needs statements is the result of a function."""
    variable = consts.program.variables[index]
    body = BodyWriter(consts, frozen=True, written=z.Inside((value,)).assigned)
    expr = body.expr(value)
    consts.names[index] = consts.unused(variable.name)
    type_ = expression(variable.type)
    if not body.out:
        return s.Const(consts.names[index], type_, expr, span=variable.span), None
    name = consts.unused(f"first_{variable.name}")
    block = s.Block((*body.out, s.Return(expr)))
    call = s.Const(consts.names[index], type_, s.Call(name, ()), span=variable.span)
    return call, s.Fn(name, (), type_, block, span=variable.span)


# ---------------------------------------------------------------------------------------------- loops


@define
class Target:
    """Where `break` and `continue` of Sawzall lead: how the loop is left, and how it goes on (None in a switch)."""

    leave: Loop
    go_on: tuple[type[s.Break | s.Continue], Loop] | None


@define
class BodyWriter(Values):
    """One function, the handler or a static value, while it is being written. `written`: the variables that it changes."""

    written: frozenset[int] = frozenset()
    targets: list[Target] = field(factory=list[Target])

    def flag(self, index: int) -> None:
        """What comes with a value may lose it, where statements are skipped: then it has a flag."""
        if self.variable(index).loose:
            self.flags[index] = self.unused(f"{self.variable(index).name}_set")
            self.out.append(s.VarDecl(self.flags[index], None, TRUE))

    def keep(self, number: int, body: tuple[z.Stmt, ...]) -> None:
        """Variables of a function that function values may use exist from its beginning."""
        if not self.consts.program.kept:
            return
        parts = z.inside(body)
        declared = {each.variable for kind in (z.Declare, z.Quantifier) for each in parts.of(kind)}
        for index in sorted(declared & self.consts.program.kept):
            variable = self.variable(index)
            if variable.home != number or variable.kind == "static":
                continue
            name = self.names[index] = self.unused(variable.name)
            first = s.Call("zero", ())
            self.out.append(s.VarDecl(name, expression(variable.type), first, span=variable.span))
            if variable.loose:
                self.flags[index] = self.unused(f"{variable.name}_set")
                self.out.append(s.VarDecl(self.flags[index], None, FALSE, span=variable.span))

    def statement_value(self, expr: z.StatementValue) -> s.Expr:
        """`?{...}`: what its statements do is written; a `result` that does not come last leaves a loop."""
        before, last = expr.body[:-1], expr.body[-1]  # a `result` is among them
        early = any(isinstance(n, z.Result) for part in before for n in _own(part))
        if isinstance(last, z.Result) and not early:
            for part in before:
                self.stmt(part)
            return self.kept(self.expr(last.value), expr.type, "result")
        result = s.Name(self.unused("result"))
        self.out.append(s.VarDecl(result.name, expression(expr.type), s.Call("zero", ())))
        with self.loop("value") as loop:
            self.results.append((result, loop, self.leave))
            with self.block() as found:
                for part in expr.body:
                    self.stmt(part)
                if not z.leaves(expr.body):
                    found += self.leave(expr.span, f"`{text_of(expr.span)}`: there is no result")
            self.results.pop()
        self.out.append(s.While(loop.written(), TRUE, s.Block(tuple(found))))
        return result

    def stmts(self, body: tuple[z.Stmt, ...]) -> s.Block:
        """Statements as a block."""
        with self.block() as found:
            for stmt in body:
                self.stmt(stmt)
        return s.Block(tuple(found))

    def jump(self, word: type[s.Break | s.Continue], loop: Loop, span: Span | None = None) -> s.Stmt:
        """`break` or `continue` of an open loop."""
        if self.loops[-1] is loop:
            return word(span=span)
        loop.needed = True
        return word(loop.label, span=span)

    # -- statements

    def stmt(self, stmt: z.Stmt) -> None:
        """Writes a statement; where the program says so, one that can be skipped."""
        match stmt:
            case _ if not self.consts.program.skips:
                self.write(stmt)
            case z.If(tested) | z.Switch(tested):
                self.skippable(stmt, tested)
            case (
                z.Assign()
                | z.Within()
                | z.Step()
                | z.Leave()
                | z.Evaluate()
                | z.Append()
                | z.Assert()
                | z.Emit()
            ):
                self.skippable(stmt, stmt)
            case _:
                self.write(stmt)

    def skippable(self, stmt: z.Stmt, tested: s.Node) -> None:
        """A statement that is skipped if something in `tested` is undefined; what it would have changed is undefined then."""
        if not z.may_fail(tested, self.consts.failing):
            self.write(stmt)
            return
        changing = isinstance(stmt, z.Assign | z.Within | z.Step)
        changed = self.flags.get(z.root(stmt.place)) if changing else None
        done = s.Name(self.unused("done"))
        if changed is not None:
            self.out.append(s.VarDecl(done.name, None, FALSE))
        with self.attempt("skipped") as attempt:
            self.write(stmt)
        after = (s.Assign(done, TRUE),) if changed is not None else ()
        self.out.append(s.While(attempt.loop.written(), TRUE, s.Block((*attempt.found, *after, s.Break()))))
        if changed is not None:
            self.out.append(s.If(negated(done), s.Block((s.Assign(s.Name(changed), FALSE),))))

    @contextmanager
    def ending(self, loop: Loop) -> Generator[None, None, None]:
        """What is undefined inside ends a loop, where statements are skipped."""

        def leave(span: Span | None, _why: str) -> tuple[s.Stmt, ...]:
            return (self.jump(s.Break, loop, span),)

        with self.leaving(leave if self.consts.program.skips else self.leave):
            yield

    def write(self, stmt: z.Stmt) -> None:
        """Writes a statement that is not skipped."""
        span = stmt.span
        match stmt:
            case z.Declare(variable, value, needed):
                self.declare(variable, value, span, needed=needed)
            case z.Assign(z.Item(_, whole, index), value) if whole.type in (t.STRING, t.BYTES):
                self.letter(whole, index, value, span)
            case z.Assign(z.Slice(type_, whole, low, high), value):
                target = self.inner(whole)
                part = cast("s.Slice", self.part(target, low, high))
                zero = s.Int(0)
                before = s.Slice(target, zero, part.low)
                behind = s.Slice(target, part.high, s.Call("len", (target,)))
                add = OPERATIONS["+"].river
                inner = add((before, self.expr(value)), (type_, type_))
                self.out.append(s.Assign(target, add((inner, behind), (type_, type_)), span=span))
                self.present(whole, target)
            case z.Assign(place, z.Apply(t.List(), "+", (left, z.ArrayOf(_, items)))) if _appends(
                place, left, items
            ):
                self.append(place, left, items, span)
            case z.Assign(place, value):
                target = self.place(place)
                self.put(place, target, self.expr(value), span)
            case z.Within(place, variable, change):
                self.within_value(place, variable, change)
            case z.Step(place, by):
                self.step(place, by, span)
            case z.Leave(place):
                target = self.place(place)
                self.present(place.value, cast("s.Member", target).value)
                where, bit = cast("Proto", place.value.type).flag(place.name)
                flags = s.Member(cast("s.Member", target).value, where)
                self.out.append(s.Assign(flags, s.Binary("&", flags, s.Unary("~", s.Int(bit))), span=span))
            case z.Evaluate(z.Call() as call):
                self.evaluate(call)
            case z.Evaluate(value):
                self.kept(self.expr(value), value.type, "unused")
            case z.Append(variable, value):
                self.out.append(
                    s.Do(s.Call("push", (s.Name(self.named(variable)), self.expr(value))), span=span)
                )
            case z.Assert(cond, text):
                said = text.value if isinstance(text, z.Constant) else f"not `{text_of(cond.span)}`"
                self.out.append(
                    s.If(negated(self.expr(cond)), s.Block((s.Trap(said, span=span),)), span=span)
                )
            case z.Emit():
                self.emit(stmt)
            case z.If(cond, then, other):
                condition = self.expr(cond)
                first = self.stmts(then)
                self.out.append(s.If(condition, first, _otherwise(self.stmts(other)), span=span))
            case z.While(cond, body):
                self.forever(cond, body, (), span)
            case z.DoWhile(body, cond):
                self.do_while(body, cond, span)
            case z.For():
                self.for_(stmt)
            case z.Switch():
                self.switch(stmt)
            case z.When():
                self.when(stmt)
            case z.Break():
                self.out.append(self.jump(s.Break, self.targets[-1].leave, span))
            case z.Continue():
                word, loop = next(
                    target.go_on for target in reversed(self.targets) if target.go_on is not None
                )
                self.out.append(self.jump(word, loop, span))
            case z.Return(value):
                self.return_(value, span)
            case z.Result(value):
                name, loop, leave = self.results[-1]
                with self.leaving(leave if self.consts.program.skips else self.leave):
                    self.out.append(s.Assign(name, self.expr(value), span=span))
                self.out.append(self.jump(s.Break, loop, span))
            case _:
                assert_never(stmt)

    def append(self, place: z.Expr, left: z.Expr, items: tuple[z.Expr, ...], span: Span | None) -> None:
        """`a = a + {x};` and `m[k] = lookup(m, k, {}) + {x};`: the array is not copied."""
        entry = cast("z.Item", place) if isinstance(left, z.Apply) else None
        target = self.place(place) if entry is not None else self.inner(left)
        values = [self.expr(item) for item in items]
        own = z.root(place)
        if entry is not None or len(values) > 1 or any(_reads(item, own) for item in items):
            values = [self.kept(v, item.type, "added") for v, item in zip(values, items, strict=True)]
        part = target if entry is None else s.Name(self.unused("part"))
        pushed = tuple(s.Do(s.Call("push", (part, value)), span=span) for value in values)
        if entry is None:
            self.out += pushed
        else:
            name = cast("s.Name", part).name
            self.out.append(
                s.With(name, cast("s.Index", target), s.Call("zero", ()), s.Block(pushed), span=span)
            )
        self.present(place, target)

    def stored(self, place: z.Expr, value: s.Expr) -> None:
        """Writes what is assigned to a place."""
        self.put(place, self.place(place), value, place.span)

    def put(self, place: z.Expr, target: s.Expr, value: s.Expr, span: Span | None) -> None:
        """Writes what is assigned to a place, which is `target`; a variable has a value then."""
        self.out.append(s.Assign(target, value, span=span))
        self.present(place, target)
        if isinstance(place, z.Read) and place.variable in self.flags:
            self.out.append(s.Assign(s.Name(self.flags[place.variable]), TRUE, span=span))

    def declare(self, index: int, value: z.Expr | None, span: Span | None, *, needed: bool) -> None:
        """A variable comes into being. One that may be read too early has a flag that says whether it has a value."""
        variable = self.variable(index)
        if value is not None and not needed and z.may_fail(value, self.consts.failing):
            self.declare_tried(index, value, span)
            return
        if index in self.consts.program.kept:
            first = s.Call("zero", ()) if value is None else self.expr(value)
            self.out.append(s.Assign(s.Name(self.names[index]), first, span=span))
            if variable.loose:
                self.out.append(s.Assign(s.Name(self.flags[index]), TRUE if value is not None else FALSE))
            return
        first = s.Call("zero", ()) if value is None else self.expr(value)
        name = self.names[index] = self.unused(variable.name)
        fixed = value is not None and t.is_flat(variable.type) and index not in self.written
        self.out.append((s.Let if fixed else s.VarDecl)(name, expression(variable.type), first, span=span))
        if variable.loose:
            flag = self.flags[index] = self.unused(f"{variable.name}_set")
            self.out.append(s.VarDecl(flag, None, TRUE if value is not None else FALSE, span=span))

    def declare_tried(self, index: int, value: z.Expr, span: Span | None) -> None:
        """A variable comes into being, and has no value if what it begins with is undefined."""
        variable = self.variable(index)
        with self.attempt("tried") as attempt:
            last = self.expr(value)
        if kept := index in self.consts.program.kept:
            name = self.names[index]
            self.out.append(s.Assign(s.Name(name), s.Call("zero", ()), span=span))
        else:
            name = self.names[index] = self.unused(variable.name)
            self.out.append(s.VarDecl(name, expression(variable.type), s.Call("zero", ()), span=span))
        done: tuple[s.Stmt, ...] = (s.Assign(s.Name(name), last, span=span),)
        if variable.loose and kept:
            flag = self.flags[index]
            self.out.append(s.Assign(s.Name(flag), FALSE, span=span))
            done = (*done, s.Assign(s.Name(flag), TRUE, span=span))
        elif variable.loose:
            flag = self.flags[index] = self.unused(f"{variable.name}_set")
            self.out.append(s.VarDecl(flag, None, FALSE, span=span))
            done = (*done, s.Assign(s.Name(flag), TRUE, span=span))
        self.attempted(attempt, done)

    def letter(self, whole: z.Expr, index: z.Expr, value: z.Expr, span: Span | None) -> None:
        """Another character in a text, or another byte in bytes."""
        target = self.inner(whole)
        at = self.position(target, index, span)
        if whole.type == t.BYTES:
            one = self.expr(
                z.Apply(t.BYTES, "copies of a byte", (z.Constant(t.I64, 1), value), span=value.span)
            )
            behind = s.Slice(target, s.Binary("+", at, s.Int(1)), s.Call("len", (target,)))
            parts = s.Binary("+", s.Binary("+", s.Slice(target, s.Int(0), at), one), behind)
            self.out.append(s.Assign(target, parts, span=span))
            self.present(whole, target)
            return
        one = self.expr(z.Apply(t.STRING, "character", (value,), span=value.span))
        changed = OPERATIONS["other character"].river((target, at, one), (t.STRING, t.I64, t.STRING))
        self.out.append(s.Assign(target, changed, span=span))
        self.present(whole, target)

    def present(self, place: z.Expr, target: s.Expr) -> None:
        """Notes that the fields on the way to a place are there, of tuples that know it."""
        match place, target:
            case z.Field(_, value, name, _), s.Member(whole, _):
                if isinstance(value.type, Proto):
                    where, bit = value.type.flag(name)
                    flags = s.Member(whole, where)
                    self.out.append(s.Assign(flags, s.Binary("|", flags, s.Int(bit))))
                self.present(value, whole)
            case z.Item(_, value, _), s.Index(whole, _):
                self.present(value, whole)
            case _:
                pass

    def place(self, place: z.Expr) -> s.Expr:
        """A place to assign to; the last index of a map need not be there."""
        match place:
            case z.Read(_, variable, _):
                return s.Name(self.named(variable), span=place.span)
            case z.Field(_, value, name, _):
                return s.Member(self.inner(value), name, span=place.span)
            case z.Item(_, value, index):
                whole = self.inner(value)
                if isinstance(value.type, t.Map):
                    key = self.bound(self.index(whole, index), value.type.key, "key")
                    return s.Index(whole, key, span=place.span)
                return s.Index(whole, self.position(whole, index, place.span), span=place.span)
            case _:
                raise AssertionError(place)  # the checker makes no other places

    def inner(self, place: z.Expr) -> s.Expr:
        """A place of which a part is changed: it must be there."""
        if isinstance(place, z.Read):
            return self.expr(place)
        found = self.place(place)
        if isinstance(place, z.Item) and isinstance(place.value.type, t.Map) and isinstance(found, s.Index):
            missing = s.Unary("not", s.Call("has", (found.value, found.index)))
            self.unless(missing, place.span, f"`{text_of(place.span)}`: no such key")
        return found

    def within_value(self, place: z.Expr, variable: int, change: z.Stmt) -> None:
        """A change of a part of what the value at a place is made of."""
        kind = cast("Recursive", place.type).number
        target = self.inner(place)
        whole = s.Name(self.unused(self.variable(variable).name))
        self.names[variable] = whole.name
        first = s.Call(f"{OPEN}{kind}", (target,))
        self.out.append(s.VarDecl(whole.name, expression(self.variable(variable).type), first))
        self.write(change)
        self.out.append(s.Assign(target, s.Call(f"{CLOSE}{kind}", (whole,)), span=place.span))
        self.present(place, target)

    def step(self, place: z.Expr, by: int, span: Span | None) -> None:
        """`place++;`."""
        target = self.inner(place)
        before = target
        if isinstance(place, z.Field) and place.missing:
            self.unless(s.IsNone(target), place.span, f"`{text_of(place.span)}`: the field is missing")
            before = s.Force(target)
        sign = "+" if by > 0 else "-"
        op = sign if place.type == t.F64 else f"{sign}%"
        self.out.append(s.Assign(target, s.Binary(op, before, constant(place.type, 1)), span=span))
        self.present(place, target)

    def evaluate(self, call: z.Call) -> None:
        """A call for its effect."""
        function = self.consts.program.functions[call.function]
        if function.result is not None:
            found = self.call(call)
            if self.is_call(found):
                self.out.append(s.Do(cast("s.Call", found), span=call.span))
            return
        self.out.append(s.Do(self.called(call), span=call.span))
        self.follow(function, call.span)

    def emit(self, stmt: z.Emit) -> None:
        """One item for a table."""
        table = self.consts.program.tables[stmt.table]
        if table.printed is not None:
            self.show(table, stmt.value, stmt.span)
            return
        values = list(self.every(stmt.index))
        match stmt.value:
            case z.RecordOf(_, parts) if table.whole:
                values += self.every(parts)
            case value if table.whole:
                whole = self.bound(self.expr(value), value.type, "whole")
                values += [s.Member(whole, name, span=value.span) for name, _ in table.value]
            case value:
                values.append(self.expr(value))
        weight = None if stmt.weight is None else self.expr(stmt.weight)
        fields = (*table.index, *table.value, *table.weight)
        match table.kind, weight:
            case "sample", _:
                values.append(self.drawn())
            case "recordio", _:
                values = [self.recorded(table.value[0][1], values[0])]
                fields = ((table.value[0][0], t.BYTES),)
            case _, None:
                pass
            case "weightedsample", heavy:
                self.emit_weighted(table, values, heavy, stmt.span)
                return
            case "bootstrapsum", seed:
                values.append(self.seeded(seed))
                fields = (*table.index, *table.value)
            case _, heavy:
                if len(weighed(table)) > 1:
                    heavy = self.bound(heavy, table.weight[0][1], "weight")
                parts = weight_parts(table, heavy)
                values += [parts[name] for name, _ in weighed(table)]
                fields = (*table.index, *table.value, *weighed(table))
        row = t.Record((*fields, *hidden(table)))
        self.out.append(s.Emit(table.name, record(row, tuple(values)), span=stmt.span))

    def emit_weighted(self, table: z.Table, values: list[s.Expr], weight: s.Expr, span: Span | None) -> None:
        """An item for a weighted sample: the more it weighs, the farther ahead is the number that is drawn for it.

        That is the logarithm of an even number divided by the weight (Efraimidis and Spirakis 2006). What weighs nothing is
        left out.
        """
        heavy = self.bound(weight, table.weight[0][1], "weight")
        chance = self.drawn()
        real = heavy if table.weight[0][1] == t.F64 else s.Call("f64", (heavy,))
        ahead = s.Binary("/", s.Call("log", (s.Call(f"{PREFIX}even", (chance,)),)), real)
        row = t.Record((*table.index, *table.value, *table.weight, *hidden(table)))
        item = s.Emit(table.name, record(row, (*values, heavy, ahead, chance)), span=span)
        self.out.append(s.If(s.Binary(">", heavy, s.Int(0)), s.Block((item,)), span=span))

    def seeded(self, seed: s.Expr) -> s.Expr:
        """The seed of an item for a table of sums that are drawn: a number that is drawn, where it is 0."""
        name = s.Name(self.unused("seed"))
        self.out.append(s.VarDecl(name.name, s.TypeName("u64"), seed))
        with self.block() as body:
            body.append(s.Assign(name, self.drawn()))
        self.out.append(s.If(s.Binary("==", name, s.Int(0)), s.Block(tuple(body))))
        return name

    def recorded(self, type_: t.Type, value: s.Expr) -> s.Expr:
        """A value as a record of a file: whole numbers have 8 bytes, the highest first, floats too, the lowest first."""
        match type_:
            case t.BYTES:
                data = value
            case t.STRING:
                data = s.Call("encode", (value,))
            case t.F64:
                data = s.Call(f"{PREFIX}float_bytes", (value,))
            case t.BOOL:
                data = s.Call(f"{PREFIX}whole_bytes", (s.IfExpr(value, s.Int(1), s.Int(0)),))
            case t.TIME:
                data = s.Call(f"{PREFIX}whole_bytes", (s.Call("micros", (value,)),))
            case _:
                data = s.Call(f"{PREFIX}whole_bytes", (s.Call("i64.wrap", (value,)),))
        return s.Call(f"{PREFIX}recorded", (data,))

    def show(self, table: z.Table, value: z.Expr, span: Span | None) -> None:
        """A line, or bytes, that the program prints."""
        text = self.expr(value)
        if table.kind in ("stdout", "stderr"):
            text = s.Binary("+", text, s.String("\n"), span=span)
        if table.printed == "stderr":
            self.out.append(s.Emit("stderr", text, span=span))
            return
        bytes_ = self.consts.binary and not binary(table)
        self.out.append(s.Emit(PRINTS, s.Call("encode", (text,)) if bytes_ else text, span=span))

    def return_(self, value: z.Expr | None, span: Span | None) -> None:
        """`return`."""
        if value is None:
            self.out.append(s.Return(span=span))
            return

        def leave(_span: Span | None, _why: str) -> tuple[s.Stmt, ...]:
            return (s.Return(s.NoneValue(), span=span),)

        with self.leaving(leave):
            self.out.append(s.Return(self.expr(value), span=span))

    # -- loops

    def forever(
        self, cond: z.Expr | None, body: tuple[z.Stmt, ...], step: tuple[z.Stmt, ...], span: Span | None
    ) -> None:
        """`while (cond) {body; step}`; `continue` comes to the step."""
        with self.loop("loop") as loop, self.block() as found:
            with self.ending(loop):
                condition = TRUE if cond is None else self.expr(cond)
            if found:
                found.append(s.If(negated(condition), s.Block((s.Break(),))))
                condition = TRUE
            self.round(loop, body, step)
        self.out.append(s.While(loop.written(), condition, s.Block(tuple(found)), span=span))

    def round(self, loop: Loop, body: tuple[z.Stmt, ...], step: tuple[z.Stmt, ...]) -> None:
        """One round of a loop: the body, then the step."""
        if not step or not any(map(_continues, body)):
            self.targets.append(Target(loop, (s.Continue, loop)))
            self.out += self.stmts(body).items
        else:
            with self.loop("once") as once:
                self.targets.append(Target(loop, (s.Break, once)))
                inner = self.stmts(body)
            self.out.append(s.While(once.written(), TRUE, s.Block((*inner.items, s.Break()))))
        self.targets.pop()
        for stmt in step:
            self.stmt(stmt)

    def do_while(self, body: tuple[z.Stmt, ...], cond: z.Expr, span: Span | None) -> None:
        """`do body while (cond);` - `continue` comes to the condition."""
        with self.loop("loop") as loop, self.block() as found:
            if any(map(_continues, body)):
                with self.loop("once") as once:
                    self.targets.append(Target(loop, (s.Break, once)))
                    inner = self.stmts(body)
                self.out.append(s.While(once.written(), TRUE, s.Block((*inner.items, s.Break()))))
            else:
                self.targets.append(Target(loop, (s.Continue, loop)))
                self.out += self.stmts(body).items
            self.targets.pop()
            with self.ending(loop):
                self.out.append(s.If(negated(self.expr(cond)), s.Block((s.Break(),))))
        self.out.append(s.While(loop.written(), TRUE, s.Block(tuple(found)), span=span))

    def for_(self, stmt: z.For) -> None:
        """`for`: counted where the text shows that it is."""
        counted = _counted(stmt, z.inside(stmt.body).assigned)
        if counted is None or counted[0] in self.consts.program.kept:
            for part in stmt.init:
                self.stmt(part)
            self.forever(stmt.cond, stmt.body, stmt.step, stmt.span)
            return
        index, low, high = counted
        range_ = s.Range(self.expr(low), self.expr(high))
        name = self.names[index] = self.unused(self.variable(index).name)
        steady = (
            (range_.high.args[0], s.Name(name)) if isinstance(range_.high, s.Call) and low == _ZERO else None
        )
        with self.loop("loop") as loop, self.inside(cast("tuple[s.Expr, s.Expr] | None", steady)):
            self.targets.append(Target(loop, (s.Continue, loop)))
            body = self.stmts(stmt.body)
            self.targets.pop()
        self.out.append(s.For(loop.written(), (name,), range_, body, span=stmt.span))

    @contextmanager
    def inside(self, pair: tuple[s.Expr, s.Expr] | None) -> Generator[None, None, None]:
        """An index is known to be in the range of a value."""
        new = pair is not None and pair not in self.within
        if pair is not None and new:
            self.within.add(pair)
        yield
        if pair is not None and new:
            self.within.remove(pair)

    def switch(self, stmt: z.Switch) -> None:
        """`switch`: a chain of tests; in a loop that is left at once, where a `break` needs one."""
        value = self.bound(self.expr(stmt.value), stmt.value.type, "value")
        if not any(map(z.breaks, (*(part for case in stmt.cases for part in case.body), *stmt.default))):
            self.targets.append(Target(Loop(""), None))
            self.cases(value, stmt.cases, stmt.default)
            self.targets.pop()
            return
        with self.loop("switch") as loop:
            self.targets.append(Target(loop, None))
            with self.block() as found:
                self.cases(value, stmt.cases, stmt.default)
                found.append(s.Break())
            self.targets.pop()
        self.out.append(s.While(loop.written(), TRUE, s.Block(tuple(found)), span=stmt.span))

    def cases(self, value: s.Expr, cases: tuple[z.Case, ...], default: tuple[z.Stmt, ...]) -> None:
        """The first case that fits, or the default."""
        if not cases:
            for part in default:
                self.stmt(part)
            return
        case = cases[0]
        tests = [self.matches(value, label, case.span) for label in case.values]
        cond: s.Expr = tests[0]
        for test in tests[1:]:
            cond = s.Binary("or", cond, test)
        then = self.stmts(case.body)
        with self.block() as rest:
            self.cases(value, cases[1:], default)
        self.out.append(s.If(cond, then, _otherwise(s.Block(tuple(rest))), span=case.span))

    def matches(self, value: s.Expr, label: z.Expr, span: Span | None) -> s.Expr:
        """Whether a label is the value of a `switch`; where statements are skipped, one that is undefined is not."""
        if not self.consts.program.skips:
            return s.Binary("==", value, self.expr(label))
        with self.attempt("tried") as attempt:
            last = self.expr(label)
        if not attempt.found:
            return s.Binary("==", value, last)
        fits = s.Name(self.unused("fits"))
        self.out.append(s.VarDecl(fits.name, None, FALSE, span=span))
        self.attempted(attempt, (s.Assign(fits, s.Binary("==", value, last)),))
        return fits

    def when(self, stmt: z.When) -> None:
        """`when`: nested loops; `some` is left after the body, `all` tests before it."""
        self.choose(stmt, 0, [])

    def choose(self, stmt: z.When, depth: int, found: list[tuple[z.Quantifier, Loop, s.Name | None]]) -> None:
        """Writes the loop of quantifier number `depth`, and what is inside."""
        if depth == len(stmt.quantifiers) or stmt.quantifiers[depth].quantity == "all":
            self.chosen(stmt, depth, found)
            return
        quantifier = stmt.quantifiers[depth]
        range_, pair = self.range(quantifier, stmt.body)
        later = [q.quantity for q in stmt.quantifiers[depth + 1 :]]
        flag = None
        if quantifier.quantity == "some" and "each" in later:
            flag = s.Name(self.unused("found"))
            self.out.append(s.VarDecl(flag.name, None, FALSE))
        name = self.named(quantifier.variable)
        with self.loop(f"{quantifier.quantity}_{name}") as loop, self.inside(pair), self.block() as body:
            name = self.chosen_by(quantifier)
            self.choose(stmt, depth + 1, [*found, (quantifier, loop, flag)])
            if flag is not None:
                body.append(s.If(flag, s.Block((s.Break(),))))
        self.out.append(s.For(loop.written(), (name,), range_, s.Block(tuple(body)), span=quantifier.span))

    def chosen(self, stmt: z.When, depth: int, found: list[tuple[z.Quantifier, Loop, s.Name | None]]) -> None:
        """The condition, under the `all` that remain, then the body, then out of the `some`."""
        if depth == len(stmt.quantifiers):
            cond = self.holding(stmt.cond)
        else:
            cond = s.Name(self.unused("holds"))
            self.out.append(s.VarDecl(cond.name, None, TRUE))
            self.require(stmt, depth, cond, None)
        with self.block() as body:
            for part in stmt.body:
                self.stmt(part)
            if not z.leaves(stmt.body):
                self.onwards(found)
        self.out.append(s.If(cond, s.Block(tuple(body)), span=stmt.span))

    def onwards(self, found: list[tuple[z.Quantifier, Loop, s.Name | None]]) -> None:
        """After the body: the loops of `some` end, up to the next `each`."""
        for _, _, flag in found:
            if flag is not None:
                self.out.append(s.Assign(flag, TRUE))
        last: Loop | None = None
        for quantifier, loop, _ in reversed(found):
            if quantifier.quantity != "some":
                break
            last = loop
        if last is not None:
            self.out.append(self.jump(s.Break, last))

    def require(self, stmt: z.When, depth: int, holds: s.Name, outermost: Loop | None) -> None:
        """The loops of `all`: the first choice that does not meet the condition decides."""
        quantifier = stmt.quantifiers[depth]
        range_, pair = self.range(quantifier, ())
        with (
            self.loop(f"all_{self.named(quantifier.variable)}") as loop,
            self.inside(pair),
            self.block() as body,
        ):
            name = self.chosen_by(quantifier)
            first = outermost or loop
            if depth + 1 < len(stmt.quantifiers):
                self.require(stmt, depth + 1, holds, first)
            else:
                cond = self.holding(stmt.cond)
                out = self.jump(s.Break, first)
                body.append(s.If(negated(cond), s.Block((s.Assign(holds, FALSE), out))))
        self.out.append(s.For(loop.written(), (name,), range_, s.Block(tuple(body)), span=quantifier.span))

    def chosen_by(self, quantifier: z.Quantifier) -> str:
        """The name of the variable of a quantifier's loop, from which one that function values may use takes its value."""
        own = self.named(quantifier.variable)
        if quantifier.variable not in self.consts.program.kept:
            return own
        name = self.unused("chosen")
        self.out.append(s.Assign(s.Name(own), s.Name(name)))
        return name

    def range(
        self, quantifier: z.Quantifier, body: tuple[z.Stmt, ...]
    ) -> tuple[s.Range | s.Expr, tuple[s.Expr, s.Expr] | None]:
        """What a quantifier ranges over, and what is known of its variable."""
        kept = quantifier.variable in self.consts.program.kept
        overs = [
            self.tried(over, "whole")
            if z.may_fail(over, self.consts.failing)
            else self.bound(self.expr(over), over.type, "whole")
            for over in quantifier.over
        ]
        if not kept:
            self.names[quantifier.variable] = self.unused(self.variable(quantifier.variable).name)
        name = self.names[quantifier.variable]
        maps = [o for o, over in zip(overs, quantifier.over, strict=True) if isinstance(over.type, t.Map)]
        ends: list[s.Expr] = [s.Call("len", (o,)) for o in overs]
        for i in quantifier.parted:
            ends[i] = s.Binary("+", ends[i], s.Int(1))
        if not maps:
            lengths = ends
            fixed = (
                not kept
                and not quantifier.parted
                and len(overs) == 1
                and _steady(quantifier.over[0], z.inside(body).assigned)
            )
            most: s.Expr = lengths[0]
            for length in lengths[1:]:
                most = s.Call("max", (most, length))
            return s.Range(s.Int(0), most), (overs[0], s.Name(name)) if fixed else None
        type_ = self.variable(quantifier.variable).type
        if len(overs) == 1:
            return s.Call("keys", (overs[0],)), None
        seen = s.Name(self.unused("indices"))
        self.out.append(s.VarDecl(seen.name, expression(t.Map(type_, t.BOOL)), s.MapValue(())))
        for over, end in zip(overs, ends, strict=True):
            each = s.Name(self.unused("each"))
            ranges = s.Call("keys", (over,)) if over in maps else s.Range(s.Int(0), end)
            add = s.Assign(s.Index(seen, each), TRUE)
            self.out.append(s.For(None, (each.name,), ranges, s.Block((add,))))
        return s.Call("keys", (seen,)), None


_ZERO = z.Constant(t.I64, 0)


def _counted(stmt: z.For, written: frozenset[int]) -> tuple[int, z.Expr, z.Expr] | None:
    """The variable and bounds of a loop that counts up by one, when the body changes neither."""
    match stmt:
        case z.For(
            (z.Declare(index, low),), z.Apply(_, "<", (z.Read(t.I64, read, True), high)),
            (z.Step(z.Read(_, stepped, _), 1),), _,
        ) if low is not None and index == read == stepped and index not in written:  # fmt: skip
            return (index, low, high) if _steady(high, written | {index}) else None
        case _:
            return None


def _steady(expr: z.Expr, written: frozenset[int]) -> bool:
    """Whether an expression always has the same value while only `written` change."""
    match expr:
        case z.Constant():
            return True
        case z.Read(_, variable, definite):
            return definite and variable not in written
        case z.Field(_, value, _, missing):
            return not missing and _steady(value, written)
        case z.Apply(_, "len", (value,)):
            return _steady(value, written)
        case _:
            return False


def _appends(place: z.Expr, left: z.Expr, items: tuple[z.Expr, ...]) -> bool:
    """Whether items are added to the array at `place`, which is `left`, or what `left` finds there, if anything."""
    if not items or any(map(z.changes, items)):
        return False
    match place, left:
        case z.Item(_, of, key), z.Apply(_, "lookup", (whole, given, z.ArrayOf(_, ()))):
            return _same_place(of, whole) and _same_value(key, given)
        case _:
            return _same_place(place, left)


def _same_place(place: z.Expr, other: z.Expr) -> bool:
    """Whether two expressions name the same place."""
    match place, other:
        case z.Read(_, variable, _), z.Read(_, read, _):
            return variable == read
        case z.Field(_, value, name, False), z.Field(_, of, field, False):
            return name == field and _same_place(value, of)
        case z.Item(_, value, index), z.Item(_, of, at):
            return _same_value(index, at) and _same_place(value, of)
        case _:
            return False


def _same_value(expr: z.Expr, other: z.Expr) -> bool:
    """Whether two expressions have one value, if nothing changes between them."""
    match expr, other:
        case z.Constant(_, value), z.Constant(_, given):
            return value == given
        case z.Read(_, variable, _), z.Read(_, read, _):
            return variable == read
        case z.Field(_, value, name, False), z.Field(_, of, field, False):
            return name == field and _same_value(value, of)
        case z.Item(_, value, index), z.Item(_, of, at):
            return _same_value(value, of) and _same_value(index, at)
        case z.Slice(_, value, low, high), z.Slice(_, of, first, last):
            return _same_value(value, of) and _same_value(low, first) and _same_value(high, last)
        case z.Length(), z.Length():  # of the same, because what they stand in is
            return True
        case z.Apply(_, operation, args), z.Apply(_, name, given):
            alike = operation == name and name not in DRAWS and len(args) == len(given)
            return alike and all(map(_same_value, args, given))
        case _:
            return False


def _reads(expr: z.Expr, variable: int) -> bool:
    return any(isinstance(node, z.Read) and node.variable == variable for node in walk(expr))


def _own(node: s.Node) -> Generator[s.Node]:
    """The nodes in a statement but for those of a `?{...}` inside."""
    yield node
    if not isinstance(node, z.StatementValue):
        for child in children(node):
            yield from _own(child)


def _continues(stmt: z.Stmt) -> bool:
    """Whether a `continue` inside belongs to the loop around the statement."""
    match stmt:
        case z.Continue():
            return True
        case z.If(_, then, other):
            return any(map(_continues, (*then, *other)))
        case z.Switch(_, cases, default):
            return any(map(_continues, (*(part for case in cases for part in case.body), *default)))
        case z.When(_, _, body):
            return any(map(_continues, body))
        case _:
            return False


def _otherwise(block: s.Block) -> s.Block | s.If | None:
    """What stands behind `else`."""
    match block.items:
        case ():
            return None
        case (s.If() as only,):
            return only
        case _:
            return block
