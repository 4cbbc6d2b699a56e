"""Declarations and statements: syntax to typed. All errors of a program are found at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, assert_never, cast

from frontends.sawzall import conversions, declared_tables, declared_types, formats
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.calls import closed, drawing, draws, emitting, reached
from frontends.sawzall.declared_types import parameter_type
from frontends.sawzall.expressions import Expressions
from frontends.sawzall.names import Known, Names, ResultBlock, both
from frontends.sawzall.times import default_zone
from frontends.sawzall.types import Proto, Recursive, kept_name, spelled
from river.classes import define, evolve, field
from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t
from river.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.source import Span

DECLARING = (a.StaticDecl, a.FunctionDecl, a.TableDecl, a.TableTypeDecl, a.TypeDecl, a.Declare)
"""Statements that give a name its meaning."""


def check(ast: a.Program) -> z.Program:
    """The program with every name and type resolved.

    Raises: Rejected with all errors.
    """
    report = Report()
    reassigned, changed = _stated(ast)
    names = Names(report, doubtful=changed if ast.skips else frozenset(), changed=changed)
    names.hints.update(_below(ast))
    checker = Checker(report, names, ast, reassigned)
    for item in reversed(ast.items):
        if isinstance(item, a.FunctionDecl) and item.name not in checker.reassigned:
            checker.later[item.name] = item
    for item in ast.items:
        with report.recover():
            checker.item(item)
            continue
        if isinstance(item, DECLARING):
            checker.names.refuse(item.name)
    checker.finish()
    report.remarks()
    found, statics = closed(
        checker.functions, checker.names.variables, checker.body, checker.statics, report, skips=ast.skips
    )
    checker.ordered(found.functions, found.kept)
    checker.steady(found.functions, statics)
    remarks = report.remarks()
    assert checker.input is not None  # noqa: S101 - finish has seen to it
    return z.Program(
        checker.input,
        tuple(_loosened(checker.names.variables, found.functions)),
        statics,
        tuple(checker.tables),
        tuple(found.functions),
        found.body,
        found.kept,
        remarks,
        ast.skips,
        ast.seed,
        tuple(checker.names.recursive),
        ast.zone or default_zone(),
        span=ast.span,
    )


def _stated(ast: a.Program) -> tuple[frozenset[str], frozenset[str]]:
    """The names to which something is assigned, and those of variables that statements change, or of which they change a part.

    A function to whose name something is assigned is a variable.
    """
    assigned: set[str] = set()
    found: set[str] = set()
    for node in walk(ast):
        match node:
            case a.Step(s.Name()):
                pass  # one that has a value keeps it
            case a.Assign(place=place) | a.Step(place=place) | a.Piece("rest", place):
                if isinstance(node, a.Assign) and isinstance(place, s.Name):
                    assigned.add(place.name)
                while isinstance(place, s.Member | s.Index | s.Slice):
                    place = place.value
                if isinstance(place, s.Name):
                    found.add(place.name)
            case _:
                pass
    return frozenset(assigned), frozenset(found)


def _loosened(variables: Sequence[z.Variable], functions: Sequence[z.Function]) -> list[z.Variable]:
    """The variables, with captures as loose as what they capture."""
    found = list(variables)
    for function in functions:
        for outside, inside in function.captures:
            found[inside] = evolve(found[inside], loose=found[outside].loose)
    return found


def _below(ast: a.Program) -> dict[str, str]:
    """What is said of names that the body declares where they are used in front of their declarations."""
    found: dict[str, str] = {}
    for item in reversed(ast.items):
        if isinstance(item, DECLARING) and item.span is not None:
            line, _ = item.span.source.position(item.span.start)
            found[item.name] = f"it is declared in line {line}: declare it before it is used"
    return found


@define
class Checker:
    """The state of a check: what is declared so far, and what the statements of the program are.

    Types are resolved in `declared_types`, tables and what is sent to them in `declared_tables`.
    """

    report: Report
    names: Names
    program: a.Program
    reassigned: frozenset[str]
    functions: list[z.Function] = field(factory=list[z.Function])
    tables: list[z.Table] = field(factory=list[z.Table])
    table_types: list[a.TableType] = field(factory=list[a.TableType])
    clauses: dict[int, a.TableType] = field(factory=dict[int, a.TableType])  # by table, what is written of it
    statics: list[tuple[int, z.Expr]] = field(factory=list[tuple[int, z.Expr]])
    constant: dict[int, z.Expr] = field(
        factory=dict[int, z.Expr]
    )  # variables of a text that is known and never changes
    body: list[z.Stmt] = field(factory=list[z.Stmt])
    input: int | None = None
    later: dict[str, a.FunctionDecl] = field(factory=dict[str, a.FunctionDecl])  # not declared yet
    announced: dict[int, frozenset[int] | None] = field(factory=dict[int, "frozenset[int] | None"])
    before: dict[int, int] = field(factory=dict[int, int])  # by function, the variables that stand before it
    functional: dict[int, a.FunctionType] = field(
        factory=dict[int, a.FunctionType]
    )  # types of functions, by number

    @property
    def exprs(self) -> Expressions:
        """The checker of expressions, as things stand."""
        return Expressions(
            self.report, self.names, self.type, self.functions, self.announce, self.line, self.place, self.statement_value,
            self.function_value, self.known_static, self.program,
        )  # fmt: skip

    def known_static(self, variable: int) -> z.Expr | None:
        """The value of a static variable, or of one that is a known text and never changes; None of another one."""
        value = next((value for index, value in self.statics if index == variable), None)
        return value or self.constant.get(self.names.first(variable))

    def finish(self) -> None:
        """What must be true of the whole program: it has an input."""
        if self.input is None:
            self.line(None)

    @property
    def lines(self) -> Known | None:
        """What `input` stands for, if it is used and has its own meaning."""
        return None if self.input is None else Known("variable", self.input)

    def line(self, span: Span | None) -> int:
        """The variable `input`: one line of a file, or nothing in a run without any."""
        if self.input is None:
            self.input = len(self.names.variables)
            self.names.variables.append(z.Variable(INPUT, t.BYTES, "input", span=span))
            self.names.outer.scopes[0].setdefault(INPUT, Known("variable", self.input))
            self.names.always.add(self.input)
        elif self.names.variables[self.input].type != t.BYTES:
            name = self.names.variables[self.input].name
            hint = f"the record is `{name}`"
            raise self.report.error("sawzall-input", "one program reads one input", span, hint)
        return self.input

    # -- types

    def type(self, expr: a.TypeExpr, *, inside: bool = False) -> t.Type:
        """The type that is written. `inside`: of a field, which may be optional."""
        found = declared_types.resolved(self, expr, inside=inside)
        if excess := t.excess(found):
            raise self.report.error("sawzall-type", excess, expr.span)
        return found

    # -- declarations

    def item(self, item: a.Stmt) -> None:
        """One declaration or statement of the program."""
        match item:
            case a.Declare(name, a_type, s.Name(value)) if (
                (a_type is not None and value == INPUT and self.names.known(INPUT) in (None, self.lines))
                and isinstance(found := self.type(a_type), t.Record)
                and not isinstance(found, Proto)
            ):
                self.record(name, found, item)
            case _:
                self.body += self.statement(item)

    def record(self, name: str, type_: t.Record, item: a.Declare) -> None:
        """`x: {...} = input;`: the record that the program is run for."""
        if self.input is not None:
            hint = "one program reads one input"
            raise self.report.error("sawzall-input", "there are two inputs", item.span, hint)
        declared_tables.finite(self, type_, item.span)
        if not type_.fields:
            hint = "name its fields: `{line: string}`"
            raise self.report.error("sawzall-input", "the input must be a record", item.span, hint)
        self.input = self.names.variable(name, type_, "input", item.span)
        self.names.variables[self.input] = evolve(self.names.variables[self.input], name=kept_name(name))
        self.names.assign(self.input)

    def static(self, item: a.StaticDecl) -> None:
        """`static x: T = e;`."""
        before = len(self.names.variables)
        wanted = None if item.type is None else self.type(item.type)
        value = (
            self.exprs.infer(item.value)
            if wanted is None
            else conversions.initial(self.exprs, item.value, wanted)
        )
        type_ = value.type
        for node in walk(value):
            match node:
                case z.Read(_, variable, _) if self.names.variables[variable].kind in (
                    "input",
                    "capture",
                ) or (self.names.variables[variable].kind != "static" and variable < before):
                    message = "a static value depends on nothing but other static values"
                    raise self.report.error("sawzall-static", message, node.span or item.value.span)
                case z.Emit():
                    raise self.report.error("sawzall-static", "a static value emits nothing", node.span)
                case _:
                    pass
        index = self.names.variable(item.name, type_, "static", item.span)
        self.names.assign(index)
        self.statics.append((index, value))

    def steady(self, functions: Sequence[z.Function], statics: Sequence[tuple[int, z.Expr]]) -> None:
        """Refuses static values that call functions which read variables or emit."""
        emits, random = emitting(functions), drawing(functions, self.tables)
        for _, value in statics:
            inside = z.Inside((value,))
            if draws(inside, self.tables):
                self.report.error("sawzall-static", "a static value draws no random numbers", value.span)
            for index in sorted(reached(inside.called, functions)):
                function = functions[index]
                if function.captures:
                    name = self.names.variables[function.captures[0][0]].name
                    message = f"a static value calls `{function.name}`, which reads `{name}`"
                    self.report.error("sawzall-static", message, value.span, f"declare `{name}` as `static`")
                elif index in random:
                    message = f"a static value calls `{function.name}`, which draws random numbers"
                    self.report.error("sawzall-static", message, value.span)
                elif index in emits:
                    message = f"a static value calls `{function.name}`, which emits"
                    self.report.error("sawzall-static", message, value.span)

    def announce(self, name: str) -> int | None:
        """The number of a function that is declared later, which functions before it may call."""
        item = self.later.get(name)
        if item is None or not self.names.inside or len(self.names.outer.scopes) > 1:
            return None
        index = self.declared(item)
        self.announced[index] = self.names.frame.start
        return index

    def declared(self, item: a.FunctionDecl) -> int:
        """What is known of a function before its body."""
        index = self.signature(item)
        if self.names.inside and self.later.get(item.name) is not item:
            self.names.declare(item.name, Known("function", index), item.span)
        else:
            self.names.announce(item.name, Known("function", index), item.span)
        if self.later.get(item.name) is item:
            del self.later[item.name]
        return index

    def signature(self, item: a.FunctionDecl) -> int:
        """The number of a function whose parameters and result are known, but not its body."""
        result = None if item.result is None else self.type(item.result)
        types = [parameter_type(self, param) for param in item.params]
        index = len(self.functions)
        params = tuple(
            self.names.unnamed(param.name, type_, index, param.span)
            for param, type_ in zip(item.params, types, strict=True)
        )
        self.functions.append(
            z.Function(item.name, params, (), result, (), fails=result is not None, span=item.span)
        )
        return index

    def function(self, item: a.FunctionDecl) -> None:
        """A function; its name is known inside, and so are those of the functions after it."""
        known = self.names.frame.scopes[-1].get(item.name)
        if known is not None and known.what == "function" and known.index in self.announced:
            index = known.index
            start = both(self.announced.pop(index), self.names.sure)
        else:
            index, start = self.declared(item), self.names.sure
        self.inner(item, index, start)

    def inner(self, item: a.FunctionDecl, index: int, start: frozenset[int] | None) -> None:
        """The body of a function. `start`: what surely has a value wherever it is called."""
        self.before[index] = len(self.names.variables)
        function = self.functions[index]
        with self.names.function(index, function.result, start) as frame:
            for param, number in zip(item.params, function.params, strict=True):
                self.names.declare(param.name, Known("variable", number), param.span)
                self.names.assign(number)
            body = self.statements(item.body)
            captures = tuple(frame.captures.items())
        alone = evolve(function, captures=captures, body=body, fails=False)
        self.functions[index] = alone
        failing = self.failing()
        returns = z.inside(body).of(z.Return)
        fails = any(each.value is not None and z.may_fail(each.value, failing) for each in returns)
        if self.program.skips and function.result is not None:
            fails = fails or not z.leaves(body)  # without a value it is undefined, and ends no record
        self.functions[index] = evolve(alone, fails=fails)

    def function_value(self, expr: a.FunctionValue) -> z.Expr:
        """`function(x: T): R {...}` as a value."""
        type_ = expr.type
        if not isinstance(type_, a.FunctionType):
            return self.named_value(expr)
        item = a.FunctionDecl("function", type_.params, type_.result, expr.body, span=expr.span)
        index = self.signature(item)
        self.inner(item, index, self.names.sure)
        return self.exprs.function_of(index, expr.span)

    def named_value(self, expr: a.FunctionValue) -> z.Expr:
        """`F {...}`: the parameters are those of the type."""
        assert isinstance(expr.type, s.TypeName)  # noqa: S101 - the grammar has no others
        known = self.names.known(expr.type.name)
        params = None if known is None or known.what != "type" else self.functional.get(known.index)
        if params is None:
            message = f"`{expr.type.name}` is no type of functions"
            raise self.report.error("sawzall-type", message, expr.type.span)
        return self.function_value(evolve(expr, type=params))

    def statement_value(self, expr: a.StatementValue, wanted: t.Type | None) -> z.Expr:
        """`?{...}`."""
        names = self.names
        found = ResultBlock(wanted)
        names.frame.results.append(found)
        names.frame.jumps.append("when")
        indexed, names.indexed = names.indexed, []
        try:
            body = self.block(expr.body)
        finally:
            names.frame.results.pop()
            names.frame.jumps.pop()
            names.indexed = indexed
        if found.type is None:
            hint = "`result e;` gives it a value"
            raise self.report.error("sawzall-result", "`?{...}` has no `result`", expr.span, hint)
        for end in found.ends:
            names.sure = both(names.sure, end)
        return z.StatementValue(found.type, body, span=expr.span)

    def result(self, value: a.Expr, span: Span | None) -> z.Stmt:
        """`result e;`."""
        if not self.names.frame.results:
            raise self.report.error("sawzall-result", "`result` stands in `?{...}`", span)
        found = self.names.frame.results[-1]
        if found.type is None:
            node = self.exprs.infer(value, found.wanted)
            found.type = node.type
        else:
            node = self.exprs.check(value, found.type)
        found.ends.append(self.names.sure)
        self.names.sure = None
        return z.Result(node, span=span)

    def ordered(self, functions: Sequence[z.Function], kept: frozenset[int]) -> None:
        """Refuses a function that stands before a variable that it reads through one declared later."""
        for index, (function, before) in enumerate(zip(functions, self.functions, strict=False)):
            own = dict(before.captures)
            for outside, _ in function.captures:
                variable = self.names.variables[outside]
                if outside not in own and outside not in kept and outside >= self.before[index]:
                    message = f"`{function.name}` calls functions that read `{variable.name}`, which is declared after it"
                    hint = f"declare `{variable.name}` before `{function.name}`"
                    self.report.error("sawzall-unknown-name", message, function.span, hint)

    # -- statements

    def statements(self, body: tuple[a.Stmt, ...]) -> tuple[z.Stmt, ...]:
        """Statements in the current scope."""
        found: list[z.Stmt] = []
        for item in body:
            with self.report.recover():
                found += self.statement(item)
                continue
            if isinstance(item, DECLARING):
                self.names.refuse(item.name)
        return tuple(found)

    def block(self, body: tuple[a.Stmt, ...]) -> tuple[z.Stmt, ...]:
        """Statements in a scope of their own."""
        with self.names.scope():
            return self.statements(body)

    def loop(self, body: tuple[a.Stmt, ...]) -> tuple[z.Stmt, ...]:
        """The body of a loop."""
        self.names.frame.jumps.append("loop")
        try:
            return self.block(body)
        finally:
            self.names.frame.jumps.pop()

    def statement(self, item: a.Stmt) -> tuple[z.Stmt, ...]:
        """One statement; a block becomes its statements."""
        span, exprs, names = item.span, self.exprs, self.names
        match item:
            case a.TypeDecl():
                declared_types.declare_type(self, item)
                return ()
            case a.StaticDecl(name, type_, a.FunctionValue(a.FunctionType(params, result), body)) if (
                name not in self.reassigned
                and (type_ is None or self.type(type_) == self.type(a.FunctionType(params, result)))
            ):
                self.function(a.FunctionDecl(name, params, result, body, span=span))
                return ()
            case a.StaticDecl():
                self.static(item)
                return ()
            case a.FunctionDecl(name, params, result, body) if name in self.reassigned:
                type_ = a.FunctionType(params, result, span=span)
                value = a.FunctionValue(type_, body, span=span)
                return (self.declare(a.Declare(name, type_, value, span=span)),)
            case a.FunctionDecl():
                self.function(item)
                return ()
            case a.TableDecl(name, a.TableType() as table):
                declared_tables.declare_table(self, name, table, span)
                return ()
            case a.TableDecl(name, s.TypeName(known)) if (
                found := declared_tables.table_type(self, known)
            ) is not None:
                declared_tables.declare_table(self, name, found, span)
                return ()
            case a.TableDecl(name):
                raise self.report.error(
                    "sawzall-static", f"`{name}` has no value", span, "`static x: T = e;`"
                )
            case a.TableTypeDecl(name, table):
                names.declare(name, Known("table type", len(self.table_types)), span)
                self.table_types.append(table)
                return ()
            case a.Declare(name, s.TypeName(known), None) if (
                found := declared_tables.table_type(self, known)
            ) is not None:
                declared_tables.declare_table(self, name, found, span)
                return ()
            case a.Block(body):
                return self.block(body)
            case a.Declare(name, type_, a.FunctionValue(a.FunctionType(params, result), body)) if (
                name not in self.reassigned
                and (type_ is None or self.type(type_) == self.type(a.FunctionType(params, result)))
            ):
                self.function(a.FunctionDecl(name, params, result, body, span=span))
                return ()
            case a.Declare():
                return (self.declare(item),)
            case a.Assign(s.Name(name) as place) if names.known(name) is None and name not in names.hints:
                hint = f"declare it: `{name}: int = ...;`, or `{name} := ...;`"
                raise self.report.error("sawzall-unknown-name", f"unknown name `{name}`", place.span, hint)
            case a.Assign(place, value):
                target = self.place(place)
                node = exprs.check(value, target.type)
                if isinstance(target, z.Read):
                    names.assign(target.variable)
                return (conversions.through(self.exprs, z.Assign(target, node, span=span)),)
            case a.Step(place, by):
                return (self.step(place, by, span),)
            case a.Do(s.Call("DEBUG", (s.String("print"), form, *rest))) if names.known("DEBUG") is None:
                written = s.Call("bytes", (s.Call("format", (form, *rest), span=span),), span=span)
                return declared_tables.emit(self, a.Emit("output", (), written, None, span=span))
            case a.Do(value):
                return (self.do(value, span),)
            case a.Result(value):
                return (self.result(value, span),)
            case a.Include(_, path):
                self.report.warn("sawzall-included", f"`{path}` is included already", span, "leave it out")
                return ()
            case a.Emit():
                return declared_tables.emit(self, item)
            case a.If(cond, then, other):
                condition = exprs.check(cond, t.BOOL)
                before = names.sure
                names.know(z.tested(condition, whether=True))
                first = self.block(then)
                after, names.sure = names.sure, before
                names.know(z.tested(condition, whether=False))
                second = self.block(other)
                names.sure = both(after, names.sure)
                return (z.If(condition, first, second, span=span),)
            case a.While(cond, body):
                condition = exprs.check(cond, t.BOOL)
                before = names.sure
                inner = self.loop(body)
                names.sure = before
                return (z.While(condition, inner, span=span),)
            case a.DoWhile(body, cond):
                before = names.sure
                inner = self.loop(body)
                names.sure = before
                return (z.DoWhile(inner, exprs.check(cond, t.BOOL), span=span),)
            case a.For():
                return self.for_(item)
            case a.Switch():
                return (self.switch(item),)
            case a.When():
                return (self.when(item),)
            case a.Break():
                if not names.frame.jumps or names.frame.jumps[-1] == "when":
                    raise self.report.error("sawzall-jump", "there is nothing to leave here", span)
                names.frame.broken = names.frame.broken or names.frame.jumps[-1] == "switch"
                names.sure = None
                return (z.Break(span=span),)
            case a.Continue():
                jumps = "".join(jump[0] for jump in names.frame.jumps)
                if "l" not in jumps.rpartition("w")[2]:
                    raise self.report.error("sawzall-jump", "there is no loop to go on with", span)
                names.sure = None
                return (z.Continue(span=span),)
            case a.Return(value):
                return (self.return_(value, span),)
            case _:
                assert_never(item)

    def declare(self, item: a.Declare) -> z.Stmt:
        """`x: T = e;`, `x: T;`, `x := e;`."""
        if item.name == declared_tables.UNDEFINED:
            hint = "rename the variable"
            raise self.report.error(
                "sawzall-duplicate",
                f"`{declared_tables.UNDEFINED}` is where undefined values are reported",
                item.span,
                hint,
            )
        wanted = None if item.type is None else self.type(item.type)
        index = None
        if isinstance(wanted, t.Function) and isinstance(item.value, a.FunctionValue):  # it may call itself
            index = self.names.variable(item.name, wanted, "local", item.span)
        value = None
        if item.value is not None:
            value = (
                self.exprs.infer(item.value)
                if wanted is None
                else conversions.initial(self.exprs, item.value, wanted)
            )
        type_ = wanted or (value.type if value is not None else t.UNIT)
        if index is None:
            index = self.names.variable(item.name, type_, "local", item.span)
        if value is None:
            self.names.empty.add(index)
        elif not z.may_fail(value, self.failing()):
            self.names.assign(index)
        if (
            value is not None
            and item.name not in self.names.changed
            and formats.known_text(self.exprs, value) is not None
        ):
            self.constant[index] = value
        return z.Declare(index, value, span=item.span)

    def step(self, place: s.Expr, by: Literal[1, -1], span: Span | None) -> z.Stmt:
        """`place++;` and `place--;`."""
        target = self.exprs.infer(place)
        changed = self.place(place)
        if target.type != t.I64:
            hint = "write `x = x + 1.0`" if target.type == t.F64 else None
            raise self.report.error(
                "sawzall-operands", f"`{spelled(target.type)}` is not counted", span, hint
            )
        if isinstance(changed, z.Item) and changed.value.type in (t.STRING, t.BYTES):
            operation, one = ("+" if by > 0 else "-"), z.Constant(t.I64, 1, span=span)
            changed = z.Assign(changed, z.Apply(t.I64, operation, (target, one), span=span), span=span)
            return conversions.through(self.exprs, changed)
        return conversions.through(self.exprs, z.Step(target, by, span=span))

    def failing(self) -> frozenset[int]:
        """The functions whose results may be undefined, as far as is known: those without a body yet may."""
        return frozenset(i for i, f in enumerate(self.functions) if f.fails)

    def place(self, expr: s.Expr) -> z.Expr:
        """What may be assigned to: a variable of this function, or a part of one."""
        match expr:
            case s.Name(name):
                known = self.names.find(name, expr.span)
                if known.what != "variable":
                    raise self.exprs.not_a_value(name, known.what, expr.span)
                variable = self.names.variables[known.index]
                kind = self.names.origin(known.index).kind
                if kind in ("static", "quantifier"):
                    what = "a static value" if kind == "static" else "bound by `when`"
                    message = f"`{name}` is {what} and cannot be changed"
                    raise self.report.error("sawzall-assign", message, expr.span, "copy it into a variable")
                return z.Read(variable.type, known.index, span=expr.span)
            case s.Member(value, name) if self.exprs.member(value, name) is not None:
                message = f"`{name}` is static and cannot be changed"
                raise self.report.error("sawzall-assign", message, expr.span, "copy it into a variable")
            case s.Member(value, name):
                return self.exprs.field(self.inside(value), name, expr.span)
            case s.Index(value, index):
                return self.exprs.item(self.inside(value), index, expr.span)
            case s.Slice(value, low, high):
                return self.exprs.part(self.inside(value), low, high, expr.span)
            case _:
                raise self.report.error("sawzall-assign", "this is not a place to assign to", expr.span)

    def inside(self, expr: s.Expr) -> z.Expr:
        """A place of which a part is changed: it is also read."""
        found = self.place(expr)
        if isinstance(found, z.Field) and found.missing:
            hint = "copy it into a variable, change that, and assign it"
            raise self.report.error(
                "sawzall-assign", "a part of a field that may be missing", expr.span, hint
            )
        return self.names.read(found.variable, expr.span) if isinstance(found, z.Read) else found

    def do(self, value: a.Expr, span: Span | None) -> z.Stmt:
        """An expression as a statement."""
        exprs = self.exprs
        match value:
            case s.Call("assert", (cond, *rest)) if len(rest) <= 1 and self.names.known("assert") is None:
                said = z.Constant(t.STRING, "assertion failed", span=span)
                text = exprs.check(rest[0], t.STRING) if rest else said
                return z.Assert(exprs.check(cond, t.BOOL), text, span=span)
            case s.Call("clearproto", args) if self.names.known("clearproto") is None:
                exprs.tagged("clearproto", args, span)
                place = self.place(cast("s.Expr", args[0]))
                assert isinstance(place, z.Field)  # noqa: S101 - `tagged` has seen to it
                return z.Leave(place, span=span)
            case s.Call(name, args) if exprs.is_function(name):
                return z.Evaluate(exprs.user_call(name, args, value.span), span=span)
            case a.CallValue(callee, args):
                return z.Evaluate(exprs.invoke(callee, args, value.span), span=span)
            case s.Call("saw" | "sawn" | "sawzall", args) if any(
                isinstance(arg, a.Piece) and arg.how == "rest" for arg in args
            ):
                return z.Evaluate(exprs.infer(value), span=span)
            case _:
                found = exprs.infer(value)
                if not any(isinstance(node, z.Call | z.Invoke | z.StatementValue) for node in walk(found)):
                    twice = re.match(r"(\+\+|--)\s*([\w.]+)$", value.span.text if value.span else "")
                    hint = "assign it to a variable" if twice is None else f"write `{twice[2]}{twice[1]};`"
                    self.report.warn("sawzall-no-effect", "this value is not used", value.span, hint)
                return z.Evaluate(found, span=span)

    def for_(self, item: a.For) -> tuple[z.Stmt, ...]:
        """`for`."""
        names = self.names
        with names.scope():
            init = () if item.init is None else self.statement(item.init)
            cond = None if item.cond is None else self.exprs.check(item.cond, t.BOOL)
            before = names.sure
            body = self.loop(item.body)
            names.sure = before
            step = () if item.step is None else self.statement(item.step)
            names.sure = before
        return (z.For(init, cond, step, body, span=item.span),)

    def switch(self, item: a.Switch) -> z.Stmt:
        """`switch`."""
        names = self.names
        value = self.exprs.infer(item.value)
        if not isinstance(value.type, t.Primitive) or isinstance(value.type, Recursive):
            message = f"a `switch` is over a value of a basic type, not `{spelled(value.type)}`"
            raise self.report.error("sawzall-type-mismatch", message, item.value.span)
        before, outer = names.sure, names.frame.broken
        ends: list[frozenset[int] | None] = []
        names.frame.broken = False
        names.frame.jumps.append("switch")
        cases: list[z.Case] = []
        for case in item.cases:
            names.sure = before
            values = tuple(self.exprs.check(v, value.type) for v in case.values)
            cases.append(z.Case(values, self.block(case.body), span=case.span))
            ends.append(names.sure)
        names.sure = before
        default = self.block(item.default)
        names.frame.jumps.pop()
        for end in ends:
            names.sure = both(names.sure, end)
        if names.frame.broken:
            names.sure = before
        names.frame.broken = outer
        return z.Switch(value, tuple(cases), default, span=item.span)

    def when(self, item: a.When) -> z.Stmt:
        """`when`."""
        names = self.names
        bound: list[z.Quantifier] = []
        inner = frozenset(node.name for node in walk(item.cond) if isinstance(node, a.Declare | a.StaticDecl))
        if not item.quantifiers:
            self.report.warn(
                "sawzall-no-quantifier", "this `when` has no quantifier", item.span, "write `if`"
            )
        with names.scope():
            for i, quantifier in enumerate(item.quantifiers):
                if quantifier.quantity != "all" and bound and bound[-1].quantity == "all":
                    raise self.report.error(
                        "sawzall-when", "`all` comes behind `some` and `each`", quantifier.span
                    )
                later = frozenset(q.name for q in item.quantifiers[i:]) | inner
                bound.append(self.quantifier(quantifier, item.cond, later))
            cond = self.exprs.check(item.cond, t.BOOL)
            for quantifier in item.quantifiers:
                if quantifier.quantity == "all":
                    del names.frame.scopes[-1][quantifier.name]
            before = names.sure
            names.frame.jumps.append("when")
            try:
                body = self.block(item.body)
            finally:
                names.frame.jumps.pop()
            names.sure = before
        return z.When(tuple(bound), cond, body, span=item.span)

    def quantifier(self, item: a.Quantifier, cond: s.Expr, later: frozenset[str]) -> z.Quantifier:
        """`i: some int;`: it ranges over the indices of all that the condition indexes by it."""
        type_ = self.type(item.type)
        index = s.Name(item.name)
        over: list[z.Expr] = []
        parted: set[int] = set()
        for node in walk(cond):
            match node:
                case s.Index(value, by) if by == index and not _mentions(value, later):
                    pass
                case s.Slice(value, low, high) if index in (low, high) and not _mentions(value, later):
                    pass
                case _:
                    continue
            whole = conversions.opened(self.exprs, self.exprs.infer(value))
            wanted = whole.type.key if isinstance(whole.type, t.Map) else t.I64
            if type_ != wanted:
                raise self.exprs.mismatch(wanted, type_, item.span)
            if whole not in over:
                over.append(whole)
            if isinstance(node, s.Slice):
                parted.add(over.index(whole))
        if not over:
            hint = f"write `a[{item.name}]` in it, for the array or map `a` that is meant"
            raise self.report.error(
                "sawzall-when", f"the condition indexes nothing by `{item.name}`", item.span, hint
            )
        number = self.names.variable(item.name, type_, "quantifier", item.span)
        self.names.assign(number)
        return z.Quantifier(item.quantity, number, tuple(over), frozenset(parted), span=item.span)

    def return_(self, value: s.Expr | None, span: Span | None) -> z.Stmt:
        """`return`."""
        names = self.names
        wanted = names.frame.result
        if value is not None and not names.inside:
            raise self.report.error(
                "sawzall-return", "a program returns no value", span, "`emit` sends a value to a table"
            )
        if (value is None) != (wanted is None):
            message = (
                "this function returns no value"
                if wanted is None
                else f"a `{spelled(wanted)}` must be returned"
            )
            raise self.report.error("sawzall-return", message, span)
        if isinstance(value, s.Name) and (known := names.known(value.name)) and known.what == "variable":
            names.empty.discard(known.index)  # `u: T; return u;` is how a function says that it has no result
        node = None if value is None or wanted is None else self.exprs.check(value, wanted)
        names.sure = None
        return z.Return(node, span=span)


INPUT = "input"
"""The variable that holds a line."""


def _mentions(expr: s.Expr, names: frozenset[str]) -> bool:
    return any(isinstance(node, s.Name) and node.name in names for node in walk(expr))
