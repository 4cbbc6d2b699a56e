"""Declarations and statements: syntax to typed. All errors of a program are found at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, assert_never, cast

from frontends.sawzall import conversions, formats
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.calls import closed, drawing, draws, emitting, reached
from frontends.sawzall.expressions import Expressions
from frontends.sawzall.names import Known, Names, ResultBlock, both
from frontends.sawzall.operations import named
from frontends.sawzall.tables import KINDS, PRINTED
from frontends.sawzall.types import BASIC, PACKED, Proto, Recursive, kept_name, plain, spelled
from river.classes import define, evolve, field
from river.diagnostics import Severity, closest
from river.il.trees import fresh, walk
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
    checker = _Checker(report, names, ast, reassigned)
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


@define
class _Checker:
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
        found = self.resolved(expr, inside=inside)
        if excess := t.excess(found):
            raise self.report.error("sawzall-type", excess, expr.span)
        return found

    def resolved(self, expr: a.TypeExpr, *, inside: bool = False) -> t.Type:
        """As `type`, however large."""
        match expr:
            case s.TypeName("list", (item,)) if not isinstance(item, s.Expr):
                return t.List(self.resolved(item))
            case s.TypeName("map", (key, value)) if not isinstance(key, s.Expr) and not isinstance(
                value, s.Expr
            ):
                found = plain(self.resolved(key))
                if not t.is_key(found) or t.contains(found, Recursive):
                    message = f"`{spelled(found)}` cannot be the key of a map"
                    raise self.report.error("sawzall-key-type", message, key.span)
                return t.Map(found, self.resolved(value))
            case s.TypeName(name) if "." in name:
                return self.member_type(name, expr.span)
            case s.TypeName(name):
                found = self.names.type(name)
                if found is not None:
                    return found
                known = self.names.known(name)
                if known is not None and known.what == "type":
                    message = f"`{name}` is not complete here: a type has no part of its own kind"
                    raise self.report.error("sawzall-type", message, expr.span)
                if known is not None and known.what == "refused":
                    raise self.exprs.not_a_value(name, known.what, expr.span)
                names = [*BASIC, *(n for scope in self.names.outer.scopes for n in scope)]
                raise self.report.error(
                    "sawzall-unknown-type", f"unknown type `{name}`", expr.span, closest(name, names)
                )
            case s.OptionalType(inner) if inside:
                return t.Optional(self.resolved(inner))
            case s.OptionalType():
                hint = "any value may be undefined: `?` is for fields of records that may be missing"
                raise self.report.error("sawzall-optional", "only a field may be optional", expr.span, hint)
            case a.FunctionType(params, result):
                given = tuple(self.resolved(param.type) for param in params)
                return t.Function(given, None if result is None else self.resolved(result))
            case a.ProtoOf(name):
                found = self.resolved(s.TypeName(name, span=expr.span))
                if not isinstance(found, t.Record):
                    message = f"`{name}` is no tuple"
                    raise self.report.error("sawzall-type", message, expr.span)
                return self.numbered(found, expr.span)
            case a.TupleType():
                if expr.members:
                    hint = "`type T = {...};` gives it a name"
                    raise self.report.error(
                        "sawzall-type",
                        "only a tuple with a name has types and static values",
                        expr.span,
                        hint,
                    )
                return self.tuple(expr)
            case _:
                raise AssertionError(expr)  # the grammar has none of them

    def tuple(self, expr: a.TupleType) -> t.Record:
        """A tuple; a field without a name has one that the text cannot give."""
        fields: dict[str, t.Type] = {}
        for i, part in enumerate(expr.fields):
            name = part.name or f"_{i}"
            if name in fields:
                message = f"field `{name}` is declared twice"
                raise self.report.error("sawzall-duplicate", message, part.span)
            fields[name] = self.resolved(part.type, inside=True)
        found = t.Record(tuple(fields.items()))
        defaults = self.tags(expr)
        if any(part.tag is not None for part in expr.fields) or expr.word == "parsedmessage":
            return self.proto(expr, found, defaults)
        return self.numbered(found, expr.span) if expr.word == "proto" else found

    def proto(self, expr: a.TupleType, found: t.Record, defaults: tuple[object, ...]) -> Proto:
        """A tuple whose fields have tags."""
        kinds = tuple(
            self.packed(type_, part.kind, part.span)
            for (_, type_), part in zip(found.fields, expr.fields, strict=True)
        )
        tags = tuple(part.tag or 0 for part in expr.fields)
        return Proto(found.fields, tags, kinds, defaults, expr.word == "parsedmessage")

    def packed(self, type_: t.Type, kind: str | None, span: Span | None) -> str:
        """The type of a field in a protocol buffer; of arrays that of the items, of tuples none."""
        item = type_.item if isinstance(type_, t.List) else type_
        if isinstance(item, Proto) and kind is None:
            return ""
        if item not in PACKED:
            message = f"`{spelled(type_)}` has no form in a protocol buffer"
            if kind is not None and isinstance(item, Proto):
                message = f"a tuple is no `{kind}`"
            raise self.report.error("sawzall-tag", message, span, "fields of tuples with tags have tags, too")
        kind = "bool" if kind == "boolean" else kind
        if kind is not None and kind not in PACKED[item]:
            hint = f"`{spelled(item)}` is one of {', '.join(PACKED[item])} there"
            raise self.report.error("sawzall-tag", f"`{kind}` does not hold `{spelled(item)}`", span, hint)
        return kind or PACKED[item][0]

    def numbered(self, found: t.Record, span: Span | None) -> Proto:
        """`proto T`: a message whose fields have the numbers from 1 as tags."""
        if isinstance(found, Proto):
            return found
        fields = tuple(
            (name, self.numbered(type_, span) if isinstance(type_, t.Record) else type_)
            for name, type_ in found.fields
        )
        kinds = tuple(self.packed(type_, None, span) for _, type_ in fields)
        return Proto(fields, tuple(range(1, len(fields) + 1)), kinds, (None,) * len(fields), message=True)

    def tags(self, expr: a.TupleType) -> tuple[object, ...]:
        """The values that fields have where they are not there, None if it is not said.

        Refused: tags that only some fields have, or that two fields share.
        """
        defaults: list[object] = []
        seen: dict[int, str | None] = {}
        for part in expr.fields:
            defaults.append(None)
            if part.tag is None:
                if part.value is not None:
                    message = "a field without a tag has no value of its own"
                    raise self.report.error("sawzall-tag", message, part.value.span, "`name: T = value @ 1`")
                continue
            if part.name is None:
                raise self.report.error("sawzall-tag", "a field without a name has no tag", part.span)
            if part.tag in seen:
                message = f"`{seen[part.tag]}` has the tag {part.tag}, too"
                raise self.report.error("sawzall-tag", message, part.span)
            seen[part.tag] = part.name
            if part.value is not None:
                value = self.exprs.check(part.value, self.type(part.type))
                if isinstance(value, z.Constant):
                    defaults[-1] = value.value
                else:
                    hint = "a literal is known"
                    self.report.warn(
                        "sawzall-default", "this value is not known here, and ignored", value.span, hint
                    )
        bare = next((part for part in expr.fields if part.tag is None), None)
        if bare is not None and (seen or expr.word == "parsedmessage"):
            raise self.report.error(
                "sawzall-tag", "this field has no tag", bare.span, "all have one, or none"
            )
        return tuple(defaults)

    def member_type(self, path: str, span: Span | None) -> t.Type:
        """`T.U`: a type that is declared in a tuple."""
        words = path.split(".")
        first = next((i for i in range(len(words), 1, -1) if self.names.known(".".join(words[:i]))), 1)
        known = self.names.known(".".join(words[:first]))  # the first words may be those of a package
        for name in words[first:]:
            members = {} if known is None or known.what != "type" else self.names.members.get(known.index, {})
            known = members.get(name)
            if known is None:
                raise self.report.error(
                    "sawzall-unknown-type", f"unknown type `{path}`", span, closest(name, members)
                )
        if known is None or known.what != "type":
            raise self.report.error("sawzall-unknown-type", f"`{path}` is no type", span)
        return self.names.types[known.index]

    def type_decl(self, item: a.TypeDecl) -> None:
        """`type T = ...;`; what a tuple declares is known in it, and behind it as a part of `T`."""
        names = self.names
        if isinstance(item.type, s.TypeName) and not item.type.args:
            known = names.known(item.type.name)
            if known is not None and known.what == "type":  # another name of it
                names.declare(item.name, known, item.span)
                return
        fields = evolve(item.type, members=()) if isinstance(item.type, a.TupleType) else item.type
        if names.type(item.name) is None and _named(fields, item.name) is not None:
            self.recursive_type(item, fields)
            return
        if not isinstance(item.type, a.TupleType) or not item.type.members:
            found = self.type(item.type)
            names.declare(item.name, Known("type", len(names.types)), item.span)
            if isinstance(item.type, a.FunctionType):
                self.functional[len(names.types)] = item.type
            names.types.append(found)
            index = len(names.types) - 1
            with names.scope():
                for member in item.members:
                    self.statement(member)
                if item.members:
                    names.members[index] = names.frame.scopes[-1]
            return
        own, later = fields, item.type.members
        with names.scope():
            nodes = (node for member in later for node in walk(member))
            inner = any(isinstance(member, a.TypeDecl) and member.name == item.name for member in later)
            if not inner and any(isinstance(node, s.TypeName) and node.name == item.name for node in nodes):
                for (
                    member
                ) in later:  # static functions of the tuple take it: the type is known before they are
                    if isinstance(member, a.TypeDecl):
                        self.statement(member)
                later = tuple(member for member in later if not isinstance(member, a.TypeDecl))
                names.declare(item.name, Known("type", len(names.types)), None)
                names.types.append(self.type(own))
                index = len(names.types) - 1
                names.members[index] = names.frame.scopes[-1]  # those so far
            else:
                index = None
            for member in later:
                self.statement(member)
            members = dict(names.frame.scopes[-1])
            if not inner:
                members.pop(item.name, None)
            if index is None:
                names.types.append(self.type(own))
                index = len(names.types) - 1
        found = names.types[index]
        assert isinstance(found, t.Record)  # noqa: S101 - tuples are
        for name in members:
            if found.field(name) is not None:
                message = f"`{name}` is a field of the tuple, too"
                raise self.report.error("sawzall-duplicate", message, item.span)
        names.members[index] = members
        names.declare(item.name, Known("type", index), item.span)

    def recursive_type(self, item: a.TypeDecl, type_: a.TypeExpr) -> None:
        """`type T = ...;` that contains itself, in arrays and maps."""
        names, report = self.names, self.report
        direct = _named(type_, item.name, directly=True)
        if direct is not None:
            message, hint = f"`{item.name}` contains itself", "in an array or a map it may"
            raise report.error("sawzall-recursive-type", message, direct.span or item.span, hint)
        if isinstance(item.type, a.TupleType) and item.type.members:
            message = f"`{item.name}` contains itself, and has types or static values of its own"
            raise report.error("sawzall-recursive-type", message, item.span, "declare these outside of it")
        own = Recursive(item.name, len(names.recursive))
        names.recursive.append(t.UNIT)
        names.types.append(own)
        names.declare(item.name, Known("type", len(names.types) - 1), item.span)
        content = names.recursive[own.number] = self.type(type_)
        if t.contains(content, Proto, t.Function):
            what = "a protocol buffer" if t.contains(content, Proto) else "a function"
            message = f"`{item.name}` contains itself, and is {what}, or has one inside"
            raise report.error("sawzall-recursive-type", message, item.span, "keep that outside of it")

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
        self.finite(type_, item.span)
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
        types = [self.type(param.type) for param in item.params]
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

    def table_type(self, name: str) -> a.TableType | None:
        """What a name of a type of tables stands for."""
        known = self.names.known(name)
        return self.table_types[known.index] if known is not None and known.what == "table type" else None

    def table(self, name: str, item: a.TableType, span: Span | None) -> None:
        """`t: table kind...;`."""
        if name == UNDEFINED:
            message = f"`{UNDEFINED}` is where undefined values are reported"
            raise self.report.error("sawzall-duplicate", message, span, "rename the table")
        if item.kind not in KINDS:
            hint = closest(item.kind, KINDS) or f"tables are {', '.join(KINDS)}"
            raise self.report.error(
                "sawzall-unknown-table", f"unknown kind of table `{item.kind}`", item.kind_span, hint
            )
        kind = KINDS[item.kind]
        if kind.limit == "must" and item.limit is None:
            message, hint = f"`{item.kind}` takes a number", f"write `{item.kind}(10)`"
            raise self.report.error("sawzall-table", message, item.kind_span, hint)
        if kind.limit == "never" and item.limit is not None:
            raise self.report.error("sawzall-table", f"`{item.kind}` takes no number", item.kind_span)
        limit = None if item.limit is None else self.number(item.limit)
        if limit is not None and limit < kind.least:
            message = f"`{item.kind}` takes a number of {kind.least} at least"
            raise self.report.error("sawzall-table", message, item.kind_span)
        if item.index and not kind.indexed:
            raise self.report.error("sawzall-table", f"`{item.kind}` has no indices", item.index[0].span)
        value = plain(self.type(item.value.type))
        self.finite(value, item.value.span)
        if not kind.value(value):
            message = f"`{item.kind}` takes {kind.wants}, not `{spelled(value)}`"
            raise self.report.error("sawzall-table", message, item.value.span)
        index = [(element.name, self.key(element)) for element in item.index]
        weight = self.weight(item)
        clauses = self.told(item, value)
        if "format" in clauses:
            value = t.STRING
        found = self.fields(name, item, limit, index, value, weight, span)
        self.clauses[len(self.tables)] = item
        if "file" in clauses or "proc" in clauses:
            found = self.sent(found, clauses)
        self.tables.append(found)
        self.names.declare(name, Known("table", len(self.tables) - 1), span)
        if item.clauses:
            self.clauses_hold(item)

    def clauses_hold(self, item: a.TableType) -> None:
        """Checks what stands in the clauses of a table, to which perhaps nothing is sent; each `emit` checks it again."""
        before = len(self.report.found)
        with self.names.scope():
            for part in (*item.index, item.value):
                number = self.exprs.temporary(part.name or "part", self.type(part.type))
                self.names.assign(number)
                if part.name is not None:
                    self.names.declare(part.name, Known("variable", number), None)
            for clause in item.clauses:
                formats.formatting(self.exprs, clause.args, clause.span)
        here = self.report.found[before:]
        del self.report.found[before:]
        self.report.found += [each for each in here if each.severity is Severity.ERROR]  # `emit` warns

    def told(self, item: a.TableType, value: t.Type) -> dict[str, a.Clause]:
        """The clauses behind a table, by their words."""
        found: dict[str, a.Clause] = {}
        for clause in item.clauses:
            if clause.word in found:
                raise self.report.error("sawzall-table", f"`{clause.word}` stands here twice", clause.span)
            found[clause.word] = clause
        formatted = found.get("format")
        if formatted is not None and item.kind in ("sum", "mrcounter", "bootstrapsum", "recordio"):
            raise self.report.error("sawzall-table", f"`{item.kind}` takes no `format`", formatted.span)
        sent = found.get("file") or found.get("proc")
        if sent is None:
            return found
        if item.kind != "collection":
            raise self.report.error("sawzall-table", f"`{sent.word}` is for collections", sent.span)
        if "file" in found and "proc" in found:
            raise self.report.error(
                "sawzall-table", "values go to a file or to a command, not to both", sent.span
            )
        if formatted is None and value != t.BYTES:
            hint = 'add `format("%s\\n", x)`, or send bytes'
            raise self.report.error(
                "sawzall-table", f"`{sent.word}` takes bytes, not `{spelled(value)}`", item.value.span, hint
            )
        return found

    def sent(self, table: z.Table, clauses: dict[str, a.Clause]) -> z.Table:
        """A table whose values go to files or commands: standard output and standard error are known by their names."""
        clause = clauses.get("file") or clauses["proc"]
        match clause.word, clause.args:
            case "file", (s.String("/dev/stdout" | "/dev/stderr" as path),):
                return evolve(table, printed="stdout" if path.endswith("out") else "stderr", index=())
            case word, _:
                where = ((word, t.STRING),)
                return evolve(
                    table, sent="file" if word == "file" else "proc", index=where, value=(("data", t.BYTES),)
                )

    def finite(self, type_: t.Type, span: Span | None) -> None:
        """Refuses a type that contains itself where values come from outside, or go there."""
        if t.contains(type_, Recursive):
            message = f"`{spelled(type_)}` is, or has inside, a type that contains itself: tables and inputs hold none"
            hint = "`string(x)` is its text"
            raise self.report.error("sawzall-recursive-type", message, span, hint)

    def number(self, expr: s.Expr) -> int:
        """The value of a whole number that is known before the run: from literals and static values."""
        found = self.whole(self.exprs.check(expr, t.I64))
        if found is None:
            hint = "write a number, or a static value that is one"
            raise self.report.error("sawzall-table", "the size of a table is not known here", expr.span, hint)
        return found

    def whole(self, node: z.Expr) -> int | None:
        """The whole number that an expression of literals and static values is; None of another one."""
        match node:
            case z.Constant(t.I64, int() as value):
                return value
            case z.Read():
                value = self.known_static(node.variable)
                return None if value is None else self.whole(value)
            case z.Apply(_, "len", (of,)):
                value = self.known_static(of.variable) if isinstance(of, z.Read) else of
                return len(value.items) if isinstance(value, z.ArrayOf) else None
            case z.Apply(_, "neg", (inner,)):
                value = self.whole(inner)
                return None if value is None else -value
            case z.Apply(_, "+" | "-" | "*" | "/" | "min" | "max" as name, (left, right)):
                first, second = self.whole(left), self.whole(right)
                if first is None or second is None or (name == "/" and second == 0):
                    return None
                quotient = (
                    0
                    if second == 0
                    else abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
                )
                known = {
                    "+": first + second,
                    "-": first - second,
                    "*": first * second,
                    "/": quotient,
                    "min": min(first, second),
                    "max": max(first, second),
                }
                return known[name]
            case _:
                return None

    def key(self, element: a.Element) -> t.Type:
        """The type of an index."""
        type_ = plain(self.type(element.type))
        self.finite(type_, element.span)
        if not t.is_key(type_):
            raise self.report.error(
                "sawzall-key-type", f"`{spelled(type_)}` cannot be an index", element.span
            )
        return type_

    def weight(self, item: a.TableType) -> t.Type | None:
        """The type of the weight."""
        takes = KINDS[item.kind].weight
        if item.weight is None:
            if takes is not None:
                raise self.report.error(
                    "sawzall-table", f"`{item.kind}` needs a weight", item.kind_span, "... weight w: int"
                )
            return None
        type_ = plain(self.type(item.weight.type))
        self.finite(type_, item.weight.span)
        if takes is None:
            raise self.report.error("sawzall-table", f"`{item.kind}` takes no weight", item.weight.span)
        if not takes(type_):
            raise self.report.error(
                "sawzall-table", f"`{spelled(type_)}` cannot be a weight", item.weight.span
            )
        return type_

    def fields(
        self,
        name: str,
        item: a.TableType,
        limit: int | None,
        index: list[tuple[str | None, t.Type]],
        value: t.Type,
        weight: t.Type | None,
        span: Span | None,
    ) -> z.Table:
        """The table with a name for each field of its items. What the text does not name takes a name that is free."""
        whole = isinstance(value, t.Record) and bool(value.fields)
        given = [part for part, _ in index if part is not None]
        if isinstance(value, t.Record) and whole:
            given += [part for part, _ in value.fields]
        elif item.value.name is not None:
            given.append(item.value.name)
        if item.weight is not None and item.weight.name is not None:
            given.append(item.weight.name)
        for each in given:
            if given.count(each) > 1:
                message = f"the table has two fields `{each}`"
                raise self.report.error(
                    "sawzall-duplicate", message, span, "name the index, the value or the weight"
                )
        taken = set(given)

        def named(part: str | None, otherwise: str) -> str:
            found = part if part is not None else fresh(otherwise, taken)
            taken.add(found)
            return found

        keys = tuple((named(part, f"key{i}"), type_) for i, (part, type_) in enumerate(index))
        values = (
            value.fields
            if isinstance(value, t.Record) and whole
            else ((named(item.value.name, "value"), value),)
        )
        weights = (
            () if weight is None or item.weight is None else ((named(item.weight.name, "weight"), weight),)
        )
        if kept_name(name) in {table.name for table in self.tables}:
            message = (
                f"another block has a table `{name}`: tables are known by their names when the run has ended"
            )
            raise self.report.error("sawzall-duplicate", message, span, "rename one of them")
        return z.Table(kept_name(name), item.kind, limit, keys, values, weights, whole, span=span)

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
                self.type_decl(item)
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
                self.table(name, table, span)
                return ()
            case a.TableDecl(name, s.TypeName(known)) if (found := self.table_type(known)) is not None:
                self.table(name, found, span)
                return ()
            case a.TableDecl(name):
                raise self.report.error(
                    "sawzall-static", f"`{name}` has no value", span, "`static x: T = e;`"
                )
            case a.TableTypeDecl(name, table):
                names.declare(name, Known("table type", len(self.table_types)), span)
                self.table_types.append(table)
                return ()
            case a.Declare(name, s.TypeName(known), None) if (found := self.table_type(known)) is not None:
                self.table(name, found, span)
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
                return self.emit(a.Emit("output", (), written, None, span=span))
            case a.Do(value):
                return (self.do(value, span),)
            case a.Result(value):
                return (self.result(value, span),)
            case a.Include(_, path):
                self.report.warn("sawzall-included", f"`{path}` is included already", span, "leave it out")
                return ()
            case a.Emit():
                return self.emit(item)
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
        if item.name == UNDEFINED:
            hint = "rename the variable"
            raise self.report.error(
                "sawzall-duplicate", f"`{UNDEFINED}` is where undefined values are reported", item.span, hint
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

    def emit(self, item: a.Emit) -> tuple[z.Stmt, ...]:
        """`emit t[i] <- v weight w;`."""
        if self.names.known(item.table) is None and item.table in PRINTED:
            value = (("value", PRINTED[item.table]),)
            self.tables.append(
                z.Table(
                    item.table,
                    item.table,
                    None,
                    (),
                    value,
                    (),
                    whole=False,
                    printed="stderr" if item.table == "stderr" else "stdout",
                    span=item.span,
                )
            )
            self.names.outer.scopes[0][item.table] = Known("table", len(self.tables) - 1)
        known = self.names.find(item.table, item.table_span)
        if known.what == "refused":
            raise self.exprs.not_a_value(item.table, known.what, item.span)
        if known.what != "table":
            raise self.report.error("sawzall-emit", f"`{item.table}` is not a table", item.table_span)
        table, written = self.tables[known.index], self.clauses.get(known.index)
        if written is not None and written.clauses:
            return self.emit_told(item, known.index, written)
        if len(item.index) != len(table.index):
            count = len(table.index)
            message = (
                f"`{table.name}` has {count} {'index' if count == 1 else 'indices'}, {len(item.index)} given"
            )
            raise self.report.error("sawzall-emit", message, item.table_span)
        if (item.weight is None) != (not table.weight):
            message = f"`{table.name}` {'takes no' if item.weight is not None else 'needs a'} weight"
            raise self.report.error("sawzall-emit", message, item.span)
        exprs = self.exprs
        index = tuple(exprs.check(e, type_) for e, (_, type_) in zip(item.index, table.index, strict=True))
        value = exprs.check(item.value, t.Record(table.value) if table.whole else table.value[0][1])
        weight = None if item.weight is None else exprs.check(item.weight, table.weight[0][1])
        return (z.Emit(known.index, index, value, weight, span=item.span),)

    def emit_told(self, item: a.Emit, number: int, written: a.TableType) -> tuple[z.Stmt, ...]:
        """`emit` to a table with clauses: in these, index and value go by the names that the declaration gives them."""
        table, names = self.tables[number], self.names
        clauses = {clause.word: clause for clause in written.clauses}
        if len(item.index) != len(written.index):
            count = len(written.index)
            message = (
                f"`{table.name}` has {count} {'index' if count == 1 else 'indices'}, {len(item.index)} given"
            )
            raise self.report.error("sawzall-emit", message, item.table_span)
        if (item.weight is None) != (not table.weight):
            message = f"`{table.name}` {'takes no' if item.weight is not None else 'needs a'} weight"
            raise self.report.error("sawzall-emit", message, item.span)
        given = [
            (part.name, self.type(part.type), e) for part, e in zip(written.index, item.index, strict=True)
        ]
        given.append((written.value.name, self.type(written.value.type), item.value))
        nodes = [self.exprs.check(e, type_) for _, type_, e in given]
        weight = None if item.weight is None else self.exprs.check(item.weight, table.weight[0][1])
        before: list[z.Stmt] = []
        with names.scope():
            parts: list[z.Expr] = []
            for (name, type_, e), node in zip(given, nodes, strict=True):
                names.variables.append(z.Variable(name or "part", type_, "local", span=e.span))
                at = len(names.variables) - 1
                if name is not None:
                    names.declare(name, Known("variable", at), e.span)
                if not z.may_fail(node, self.failing()):
                    names.assign(at)
                before.append(z.Declare(at, node, span=e.span))
                parts.append(names.read(at, e.span))
            *index, value = parts
            if "format" in clauses:
                value = formats.formatting(self.exprs, clauses["format"].args, clauses["format"].span)
            sent = clauses.get("file") or clauses.get("proc")
            if table.sent is not None and sent is not None:
                index = [formats.formatting(self.exprs, sent.args, sent.span)]
                if value.type == t.STRING:
                    value = z.Apply(t.BYTES, named("bytes", (t.STRING,)), (value,), span=item.span)
            elif table.printed is not None:
                index = []
        return (*before, z.Emit(number, tuple(index), value, weight, span=item.span))

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
        node = None if value is None or wanted is None else self.exprs.check(value, wanted)
        names.sure = None
        return z.Return(node, span=span)


INPUT = "input"
"""The variable that holds a line."""

UNDEFINED = "undefined"
"""The output that reports undefined values."""


def _named(type_: a.TypeExpr, name: str, *, directly: bool = False) -> s.TypeName | None:
    """Where a type names another one. `directly`: not in an array, a map or the type of a function."""
    match type_:
        case s.TypeName(found, ()):
            return type_ if found == name else None
        case a.TupleType(fields=fields):
            inner = [field.type for field in fields]
        case s.OptionalType(item):
            inner = [item]
        case s.TypeName() | a.FunctionType() if directly:
            inner = []
        case s.TypeName(_, args):
            inner = [arg for arg in args if not isinstance(arg, s.Expr)]
        case a.FunctionType(params, result):
            inner = [param.type for param in params] + ([] if result is None else [result])
        case _:
            inner = []
    places = (_named(part, name, directly=directly) for part in inner)
    return next((place for place in places if place is not None), None)


def _mentions(expr: s.Expr, names: frozenset[str]) -> bool:
    return any(isinstance(node, s.Name) and node.name in names for node in walk(expr))
