"""The C-like code of filters and streams: from syntax to typed trees.

`int` and `float` mix as in C: a whole number becomes a float where one is wanted; the way back is a cast.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import constants
from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from frontends.streamit.rates import breaks, counted
from frontends.streamit.trees import breaks as breaks_out
from frontends.streamit.trees import named, pure, root, without_unread
from frontends.streamit.vectors import BOTH, LEFT, LIBRARY, RIGHT, VECTORS
from river.classes import define, evolve, field
from river.diagnostics import closest
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show as show_type
from river.lang.values import TrapSignal
from river.report import Failed

if TYPE_CHECKING:
    from frontends.streamit.rates import CountedLoop
    from river.report import Report
    from river.source import Span

PI = constants.apply("f32", (t.F64,), ty.FLOAT, (3.141592653589793,))

WORDS: Mapping[str, t.Type] = MappingProxyType({
    "int": ty.INT, "float": ty.FLOAT, "double": t.F64, "boolean": ty.BOOLEAN, "bit": ty.BIT, "void": ty.VOID,
})  # fmt: skip
COMPLEX_WORDS: Mapping[str, str] = MappingProxyType(
    {"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "eq"}
)
COMPLEX_FUNCTIONS: Mapping[str, ty.Type] = MappingProxyType({
    "abs": ty.FLOAT, "arg": ty.FLOAT,
    **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh"), ty.COMPLEX),
})  # fmt: skip
"""Functions of complex numbers, and what they give."""
RANKS: Mapping[ty.Type, int] = MappingProxyType({ty.BIT: 0, ty.INT: 1, ty.FLOAT: 2, t.F64: 3})
"""Numbers; those of a lower rank become those of a higher one where they meet."""

WHOLE = MappingProxyType({
    "+": "+%", "-": "-%", "*": "*%", "/": "div.trunc.wrap", "%": "rem.trunc.wrap", "<<": "<<", ">>": ">>",
    "&": "&", "|": "|", "^": "^",
})  # fmt: skip
REAL = MappingProxyType({"+": "+", "-": "-", "*": "*", "/": "/", "%": "rem.trunc"})
COMPARE = frozenset({"==", "!=", "<", "<=", ">", ">="})
BOOLEAN_OPERATIONS = MappingProxyType({"==": "==", "!=": "!=", "&": "min", "|": "max", "^": "!="})
"""Operations of booleans that look at both; false is less than true."""
BITWISE = frozenset({"&", "|", "^"})
LOGIC = MappingProxyType({"&&": "and", "||": "or"})

REAL_FUNCTIONS: Mapping[str, int] = MappingProxyType({
    **dict.fromkeys(
        ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sqrt", "exp", "log", "log2", "log10",
         "floor", "ceil", "round", "fabs"),
        1,
    ),
    "atan2": 2, "pow": 2, "fmod": 2,
})  # fmt: skip
"""Functions of floats, and how many they take."""

NUMBER_FUNCTIONS: Mapping[str, int] = MappingProxyType({"abs": 1, "min": 2, "max": 2})
LOADS: Mapping[str, ty.Type] = MappingProxyType({
    "init_array_1D_int": ty.INT, "init_array_1D_float": ty.FLOAT,
})  # fmt: skip
"""Functions that read arrays from texts, and of what."""
OF_C = MappingProxyType({"fabs": "abs", "fmod": "rem.trunc"})
"""Functions of C by the operations that they are; of floats, whatever is given."""
RINGS = (c.For, c.While, c.Switch)  # a `break` inside leaves them, and nothing around
CLOSED = (ty.Constant, ty.Param, ty.Apply, ty.Logic, ty.Choose, ty.At, ty.StructPart, ty.Make)
"""What an expression that is known when the graph is made consists of."""

STREAM_WORDS = ("push", "pop", "peek", "print", "println")


class CodePlace(Enum):
    """Where code stands; the value says it to people."""

    WORK = "a work function"
    INIT = "`init`"
    HELPER = "a function of a filter"
    FIELD = "a field"
    BUILD = "the body of a stream"


@define
class Open:
    """A function of a filter that takes arrays of any size: what it becomes for the sizes of arguments."""

    ast: c.Helper
    block: str
    made: dict[tuple[ty.Expr, ...], ty.Helper] = field(factory=dict[tuple["ty.Expr", ...], "ty.Helper"])


@define
class Surroundings:
    """What the code of a stream may name besides its own locals: parameters, fields, functions, and what is around."""

    params: dict[str, ty.Parameter] = field(factory=dict[str, ty.Parameter])
    fields: dict[str, ty.FieldDecl] = field(factory=dict[str, ty.FieldDecl])
    helpers: dict[str, ty.Helper] = field(factory=dict[str, ty.Helper])
    input: ty.Type = ty.VOID
    output: ty.Type = ty.VOID
    outer: Callable[[str], ty.Expr | None] = field(default=lambda _: None)
    captures: dict[str, ty.Parameter] = field(factory=dict[str, ty.Parameter])
    changed: frozenset[str] = frozenset()  # names that the filter's code assigns to
    counter: str | None = None  # the field that counts firings
    generator: str | None = None  # the field that is the state of the random generator
    natives: frozenset[str] = frozenset()  # functions of other languages
    structs: Mapping[str, ty.Struct] = field(factory=dict[str, ty.Struct])
    outside: bool = False  # the code stands outside of the stream, and sees only what is around it
    sends: int = 0  # messages in the code so far
    alone: bool = False  # the code stands in no stream
    shared: Callable[[str], ty.Helper | None] = field(
        default=lambda _: None
    )  # functions for code that makes the graph
    open: dict[str, Open] = field(factory=dict[str, "Open"])  # functions that take arrays of any size

    def sized(self, helper: ty.Helper, args: Sequence[ty.Expr]) -> ty.Helper:
        """The function for arrays of the sizes that these have."""
        found = self.open.get(helper.name)
        if found is None:
            return helper
        triples = zip(helper.params, found.ast.params, args, strict=True)
        types = tuple(filled(param.type, of.type.sizes, arg.type) for param, of, arg in triples)
        sizes = tuple(size for type_ in types for size in sizes_of(type_))
        if sizes not in found.made:
            name = f"{helper.name}#{len(found.made)}"
            params = tuple(evolve(p, type=type_) for p, type_ in zip(helper.params, types, strict=True))
            self.helpers[name] = found.made[sizes] = evolve(helper, name=name, params=params)
        return found.made[sizes]

    def lookup(self, name: str) -> ty.Expr | None:
        """What a name denotes; something of the surroundings becomes a parameter."""
        if self.alone:
            return self.outer(name)
        if self.outside:
            found = self.outer(name)
            return self.hidden(found, name) if isinstance(found, ty.Local | ty.Param) else found
        if name in self.fields:
            return self.constant(name) or ty.Field(self.fields[name].type, name)
        if name not in self.params and name not in self.captures:
            found = self.outer(name)
            if found is None:
                return None
            self.captures[name] = ty.Parameter(name, self.seen_from_here(found.type), found)
        known = self.params.get(name) or self.captures[name]
        return ty.Param(known.type, name)

    def constant(self, name: str) -> ty.Expr | None:
        """The first value of a field that is a whole number and never changed, where it is known when the graph is made."""
        decl = self.fields[name]
        closed = decl.value is not None and all(isinstance(node, CLOSED) for node in walk(decl.value))
        return decl.value if closed and decl.type == ty.INT and name not in self.changed else None

    def seen_from_here(self, type_: ty.Type) -> ty.Type:
        """A type of the surroundings: what its sizes name becomes parameters, too."""
        match type_:
            case ty.Vector(item, size):
                return evolve(type_, item=self.seen_from_here(item), size=self.size(size))
            case ty.Struct(_, fields):
                return evolve(type_, fields=tuple((name, self.seen_from_here(part)) for name, part in fields))
            case _:
                return type_

    def size(self, expr: ty.Expr) -> ty.Expr:
        """A size of the surroundings."""
        match expr:
            case ty.Local(_, name) | ty.Param(_, name):
                return self.hidden(expr, name)
            case _:
                return rebuild(expr, self.size)  # pyright: ignore[reportArgumentType] - only expressions in it

    def hidden(self, expr: ty.Local | ty.Param, name: str) -> ty.Param:
        """The parameter for something of the surroundings, whose own name may mean something else here."""
        spelled = name.partition("#")[0]
        if spelled in self.fields or spelled in self.params or self.outer(spelled) != expr:
            spelled = f"{name}#"
            while self.captures.get(spelled, ty.Parameter(spelled, expr.type, expr)).value != expr:
                spelled += "#"
        self.captures.setdefault(spelled, ty.Parameter(spelled, self.seen_from_here(expr.type), expr))
        return ty.Param(self.captures[spelled].type, spelled)


Functions = Callable[[str], "tuple[tuple[t.Type, ...], t.Type] | None"]
"""Parameter types and result type of a function of the operator language. Raises: Rejected with its errors."""

Creator = Callable[["BodyChecker", c.Add], ty.Stmt]
"""How a stream that is added becomes a creation."""

Handlers = Callable[[ty.Portal, str, "Span | None"], tuple[ty.Type, ...]]
"""The types of what a handler of a portal's filters takes. Raises: Failed, when it is reported that there is none."""


@define
class BodyChecker:
    """The checker of one body."""

    report: Report
    around: Surroundings
    place: CodePlace
    functions: Functions
    creator: Creator | None = None
    handlers: Handlers | None = None
    result: ty.Type = ty.VOID
    first_item: int = 0  # what `peek` counts from
    mark: str = ""  # in the keys of locals
    first: bool = False  # it is `prework`
    block_name: str = ""  # of the `helper` block around the function
    values: dict[str, ty.Expr] = field(factory=dict[str, ty.Expr])  # of locals that nothing changes, by key
    scopes: list[dict[str, ty.Expr]] = field(factory=lambda: [{}])
    counters: set[str] = field(
        factory=set[str]
    )  # locals, by key, in whose place loops have counters of their own
    count: int = 0
    loops: int = 0

    # -- names

    def lookup(self, name: str) -> ty.Expr | None:
        """What a name denotes."""
        for names in reversed(self.scopes):
            if name in names:
                return names[name]
        return self.around.lookup(name)

    def declare(self, name: str, type_: ty.Type, span: Span | None) -> ty.Local:
        """A new local variable."""
        if name in self.scopes[-1]:
            self.report.error("streamit-duplicate-name", f"`{name}` is declared twice", span)
        self.count += 1
        local = ty.Local(type_, f"{name}#{self.mark}{self.count}", span=span)
        self.scopes[-1][name] = local
        return local

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Names declared inside end with it."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def misplaced(self, what: str, span: Span | None, help_line: str | None = None) -> Failed:
        """The error that something does not belong here."""
        return self.report.error(
            "streamit-misplaced", f"{what} has no place in {self.place.value}", span, help_line
        )

    @property
    def runs(self) -> bool:
        """Whether the code runs when the graph is made."""
        return self.place is CodePlace.BUILD or self.around.alone

    # -- types

    def type(self, expr: c.TypeName, *, open_: bool = False) -> ty.Type:
        """What a type says; `open_`: sizes that are left out are 0 for now."""
        if expr.receiver is not None:
            return ty.Portal(expr.receiver)
        found: ty.Type = WORDS.get(expr.name) or self.struct(expr)
        if found == ty.VOID and expr.sizes:
            raise self.report.error("streamit-type", "there are no arrays of `void`", expr.span)
        for size in reversed(expr.sizes):
            if size is not None:
                found = ty.Vector(found, self.closed(self.expr(size, ty.INT), size.span))
            elif open_:
                found = ty.Vector(found, ty.Constant(ty.INT, 0, span=expr.span))
            else:
                message = "how many items this array has is not said"
                help_line = "write it, or give a variable a first value: `float[] a = {1, 2};`"
                raise self.report.error("streamit-size", message, expr.span, help_line)
        return found

    def sized(self, expr: c.TypeName, value: c.Expr | None) -> tuple[ty.Type, ty.Expr | None]:
        """The type of a variable, and its first value, which says the sizes that are left out."""
        wanted = self.value_type(expr, open_=value is not None)
        node = None if value is None else self.expr(value, wanted)
        if node is None:
            return wanted, None
        given = node.type
        if self.runs and isinstance(root(node), ty.Local | ty.Param) and pure(node):
            given = measured(node, len(expr.sizes))
        return filled(wanted, expr.sizes, given), node

    def struct(self, expr: c.TypeName) -> ty.Type:
        """A struct, or a complex number."""
        if expr.name == "complex":
            return ty.COMPLEX
        if expr.name not in self.around.structs:
            known = [*WORDS, "complex", *VECTORS, *self.around.structs]
            raise self.report.error(
                "streamit-unknown-type", f"unknown type `{expr.name}`", expr.span, closest(expr.name, known)
            )
        found = self.around.structs[expr.name]
        return found if self.mark == "static" else self.around.seen_from_here(found)

    def closed(self, node: ty.Expr, span: Span | None, params: frozenset[str] = frozenset()) -> ty.Expr:
        """A size or a rate, by what is known when the graph is made, and `params` of a function; refuses what is not."""
        if self.runs:
            return node
        node = self.known(node)
        others = (part for part in walk(node) if not isinstance(part, CLOSED))
        if not all(isinstance(part, ty.Local) and part.key in params for part in others):
            help_line = "sizes and rates are made of parameters and constants"
            self.report.error(
                "streamit-constant", "this is not known when the graph is made", span, help_line
            )
        return node

    def known(self, node: ty.Expr) -> ty.Expr:
        """The expression with the values of variables that nothing changes, and of parameters as they were given."""
        match node:
            case ty.Local(_, key) if key in self.values:
                return self.values[key]
            case ty.Field(type_, name) if name in self.around.params:
                return ty.Param(type_, name, span=node.span)
            case _:
                return rebuild(node, self.known)  # pyright: ignore[reportArgumentType] - only expressions in it

    def value_type(self, expr: c.TypeName, *, portal: bool = False, open_: bool = False) -> ty.Type:
        """The type of something that has a value; of a parameter or variable of a stream it may be a portal."""
        found = self.type(expr, open_=open_)
        if isinstance(found, ty.Portal) and not portal:
            help_line = "declare it among the streams, and give it to filters as a parameter"
            raise self.report.error("streamit-portal", "there is no portal here", expr.span, help_line)
        if found == ty.VOID:
            raise self.report.error("streamit-type", "nothing can have the type `void`", expr.span)
        return found

    # -- statements

    def block(self, items: Sequence[c.Stmt], span: Span | None) -> ty.Block:
        """Statements in a scope of their own; a wrong one is left out, so that all errors are found."""
        found: list[ty.Stmt] = []
        with self.scope():
            for item in items:
                with self.report.recover():
                    found.append(self.statement(item))
        return ty.Block(tuple(found), span=span)

    def whole_body(self, body: c.Block) -> ty.Block:
        """The body of a function."""
        return without_unread(self.block(body.items, body.span), self.counters)

    def body(self, item: c.Stmt) -> ty.Block:
        """The body of a loop or a branch."""
        return self.block(item.items if isinstance(item, c.Block) else (item,), item.span)

    def statement(self, item: c.Stmt) -> ty.Stmt:
        """One statement. Raises: Failed, when it is reported."""
        span = item.span
        match item:
            case c.Declare(type_, names):
                return self.declaration(type_, names, span)
            case c.Do(c.Call(("push" | "print" | "println") as word, args) as call):
                return self.effect(word, args, call)
            case c.Do(c.Call(name) as call) if self.portal(name) is not None:
                zero = s.Int(0, span=span)
                return self.send(call, c.LatencyRange(zero, zero, span=span), span)
            case c.Do(value):
                node = self.expr(value)
                if pure(node) and not isinstance(value, c.Call):
                    raise self.report.error("streamit-no-effect", "this value is not used", span)
                return ty.Do(node, span=span)
            case c.Block(items):
                return self.block(items, span)
            case c.If(cond, then, other):
                return ty.If(
                    self.cond(cond), self.body(then), None if other is None else self.body(other), span=span
                )
            case c.For():
                return self.for_loop(item)
            case c.While(cond, body, late):
                self.loops += 1
                inner = self.body(body)
                self.loops -= 1
                return ty.While(self.cond(cond), inner, late, span=span)
            case c.Switch(value, cases):
                return self.switch(value, cases, span)
            case c.Return(value):
                return self.return_(value, item)
            case c.Break() | c.Continue():
                if not self.loops:
                    raise self.report.error("streamit-loop", "there is no loop to leave here", span)
                return ty.Break(span=span) if isinstance(item, c.Break) else ty.Continue(span=span)
            case c.OutOfLine(targets, call):
                return self.out_of_line(targets, call, item)
            case c.Send(call, latency):
                return self.send(call, latency, span)
            case c.Add() | c.Split() | c.Join() | c.Enqueue():
                return self.build(item)
            case _:
                assert_never(item)

    def declaration(self, type_: c.TypeName, names: Sequence[c.Declarator], span: Span | None) -> ty.Stmt:
        """`int x = 1, y;`."""
        found: list[ty.Stmt] = []
        opened = None in type_.sizes
        portal = self.place is CodePlace.BUILD and self.mark != "static"
        try:
            whole = None if opened else self.value_type(type_, portal=portal)
        except Failed:
            whole = None
        for name in names:
            kind, value = whole, None
            with self.report.recover():
                if opened:
                    kind, value = self.sized(type_, name.value)
                elif whole is not None and name.value is not None:
                    value = self.expr(name.value, whole)
            if self.runs:
                kind = self.snapshot(kind or ty.INT, found)
            local = self.declare(name.name, kind or ty.INT, name.span)
            if value is not None and local.type == ty.INT and name.name not in self.around.changed:
                known = self.known(value)
                if all(isinstance(node, CLOSED) for node in walk(known)):
                    self.values[local.key] = known
            found.append(ty.Declare(local.key, local.type, value, span=name.span))
        return found[0] if len(found) == 1 else ty.Block(tuple(found), span=span)

    def snapshot(self, type_: ty.Type, before: list[ty.Stmt]) -> ty.Type:
        """The type of a variable of code that runs when the graph is made: what its sizes name may change, the array does not.

        `before` gets the declarations of what its sizes are now.
        """
        if not isinstance(type_, ty.Vector):
            return type_
        size = type_.size
        known = isinstance(size, ty.Constant) or (isinstance(size, ty.Local) and size.key[0] == "#")
        if not known and not any(isinstance(node, ty.Update) for node in walk(size)):
            self.count += 1
            kept = ty.Local(ty.INT, f"#{self.mark}{self.count}", span=size.span)
            before.append(ty.Declare(kept.key, ty.INT, size, span=size.span))
            size = kept
        return ty.Vector(self.snapshot(type_.item, before), size)

    def effect(self, word: str, args: Sequence[c.Expr], call: c.Call) -> ty.Stmt:
        """`push(e);`, `print(e);`, `println(e);`."""
        if word == "push" and self.place not in (CodePlace.WORK, CodePlace.HELPER):
            raise self.misplaced(f"`{word}`", call.span)
        if word == "println" and not args:
            return ty.Print(ty.Constant(ty.TEXT, "", span=call.span), line=True, span=call.span)
        self.arity(word, args, 1, call.span)
        if word == "push":
            if self.around.output == ty.VOID:
                raise self.report.error("streamit-type", "this filter has no output to push to", call.span)
            return ty.Push(self.expr(args[0], self.around.output), span=call.span)
        return ty.Print(self.text(self.expr(args[0])), word == "println", span=call.span)

    def portal(self, name: str) -> ty.Param | None:
        """The portal by which `p.change` sends."""
        base, dot, _ = name.partition(".")
        found = self.lookup(base) if dot else None
        return found if isinstance(found, ty.Param) and isinstance(found.type, ty.Portal) else None

    def send(self, call: c.Call, latency: c.LatencyRange, span: Span | None) -> ty.Stmt:
        """`p.change(3) [2:4];`."""
        base, _, handler = call.name.partition(".")
        if self.place not in (CodePlace.WORK, CodePlace.HELPER):
            raise self.misplaced("a message", span)
        portal = self.portal(call.name)
        if portal is None:
            message = f"`{base}` is no portal"
            raise self.report.error("streamit-portal", message, span, "declare it: `portal<Filter> name;`")
        assert isinstance(portal.type, ty.Portal)  # noqa: S101 - it is one
        assert self.handlers is not None  # noqa: S101 - functions of filters know them
        params = self.handlers(portal.type, handler, call.span)
        self.arity(call.name, call.args, len(params), call.span)
        args = tuple(self.expr(a, p) for a, p in zip(call.args, params, strict=True))
        least, most = (
            None if bound is None else self.closed(self.expr(bound, ty.INT), bound.span)
            for bound in (latency.least, latency.most)
        )
        self.around.sends += 1
        return ty.Send(portal, handler, args, least, most, self.around.sends - 1, span=span)

    def for_loop(self, item: c.For) -> ty.Stmt:
        """`for (...; ...; ...) ...`."""
        with self.scope():
            first = tuple(self.statement(stmt) for stmt in item.first)
            yes = ty.Constant(ty.BOOLEAN, value=True, span=item.span)
            cond = yes if item.cond is None else self.cond(item.cond)
            steps = tuple(self.expr(step) for step in item.steps)
            self.loops += 1
            body = self.body(item.body)
            self.loops -= 1
        return self.own_counter(ty.For(first, cond, steps, body, span=item.span))

    def own_counter(self, loop: ty.For) -> ty.Stmt:
        """`for (i = 0; ...)` as a loop with a counter of its own, where it can be counted; `i` is set behind it."""
        match loop:
            case ty.For((ty.Do(ty.Update(ty.INT, ty.Local(_, key) as outer, None, start)),)) if (
                self.place is not CodePlace.BUILD and pure(start)
            ):
                pass
            case _:
                return loop
        span = loop.span
        self.count += 1
        own = ty.Local(ty.INT, f"{key.partition('#')[0]}#{self.mark}{self.count}", span=span)

        def renamed(node: s.Node) -> s.Node:
            return own if isinstance(node, ty.Local) and node.key == key else rebuild(node, renamed)

        begun: tuple[ty.Stmt, ...] = ()
        if not isinstance(start, ty.Constant):
            self.count += 1
            begin = ty.Local(ty.INT, f"begin#{self.mark}{self.count}", span=span)
            begun, start = (ty.Declare(begin.key, ty.INT, start, span=span),), begin
        inner = rebuild(evolve(loop, first=()), renamed)
        inner = evolve(inner, first=(ty.Declare(own.key, ty.INT, start, span=span),))
        found = counted(inner)
        if found is None or any(map(breaks, found.body.items)):
            return loop
        self.counters.add(key)
        last = self.last(inner, found)
        behind = ty.Do(ty.Update(ty.INT, outer, None, last, span=span), span=span)
        return ty.Block((*begun, inner, behind), span=span)

    def last(self, loop: ty.For, found: CountedLoop) -> ty.Expr:
        """The value of the counter behind a loop."""
        span = loop.span

        def number(value: int) -> ty.Expr:
            return ty.Constant(ty.INT, value, span=span)

        assert isinstance(loop.cond, ty.Apply)  # noqa: S101 - it is counted
        low, high, size = found.start, found.bound, abs(found.step)
        away = "+" if found.step > 0 else "-"
        distance = self.binary("-", high, low, span) if found.step > 0 else self.binary("-", low, high, span)
        if size == 1:
            end = self.binary(away, high, number(1), span) if found.closed else high
        else:
            more = size if found.closed else size - 1
            turns = self.binary("/", self.binary("+", distance, number(more), span), number(size), span)
            end = self.binary(away, low, self.binary("*", turns, number(size), span), span)
        turned = self.fold(ty.Apply(ty.BOOLEAN, loop.cond.operation, (low, high), span=span))
        if isinstance(turned, ty.Constant):
            return end if turned.value else low
        return ty.Choose(ty.INT, turned, end, low, span=span)

    def switch(self, value: c.Expr, cases: Sequence[c.Case], span: Span | None) -> ty.Stmt:
        """`switch`, as a chain of `if`s: each has all that runs from its label to the next `break`."""
        with self.scope():
            local = self.declare("switch", ty.INT, span)
            first = ty.Declare(local.key, ty.INT, self.expr(value, ty.INT), span=value.span)
            seen: set[int] = set()
            rest: ty.Block | None = None
            chain: list[tuple[ty.Expr, ty.Block, Span | None]] = []
            for i, case in enumerate(cases):
                body = self.switched([item for each in cases[i:] for item in each.items], case.span)
                numbers = [self.label(label, seen) for label in case.labels if label.value is not None]
                if len(numbers) < len(case.labels):
                    if rest is not None:
                        raise self.report.error("streamit-case", "there is already a `default`", case.span)
                    rest = body
                tests = [self.binary("==", local, number, number.span) for number in numbers]
                if tests:
                    chain.append((reduce(_either, tests), body, case.span))
        for test, body, place in reversed(chain):
            rest = ty.Block((ty.If(test, body, rest, span=place),), span=place)
        return ty.Block((first, *(() if rest is None else rest.items)), span=span)

    def label(self, label: c.Label, seen: set[int]) -> ty.Expr:
        """The number of a `case`, which no other has."""
        assert label.value is not None  # noqa: S101 - the caller has seen to it
        node = self.expr(label.value, ty.INT)
        if not isinstance(node, ty.Constant):
            raise self.report.error("streamit-case", "the number of a `case` is a constant", label.span)
        if node.value in seen:
            raise self.report.error("streamit-case", f"there is already a `case {node.value}`", label.span)
        seen.add(node.value)
        return node

    def switched(self, items: Sequence[c.Stmt], span: Span | None) -> ty.Block:
        """What runs from a label on, up to `break`. One inside of an `if` leaves a loop that turns once."""
        items = _before_break(items)
        if not any(breaks_out(item, c.Break, RINGS) for item in items):
            return self.block(items, span)
        if any(isinstance(node, c.Continue) for item in items for node in walk(item)):
            message = "a `case` with `continue` has only one `break`, at its end"
            raise self.report.error("streamit-case", message, span, "use `if` and `else`")
        self.loops += 1
        inner = self.block(items, span)
        self.loops -= 1
        never = ty.Constant(ty.BOOLEAN, value=False, span=span)
        return ty.Block((ty.While(never, inner, late=True, span=span),), span=span)

    def return_(self, value: c.Expr | None, item: c.Return) -> ty.Stmt:
        """`return e;`: it ends a function, a firing, `init`, or the statements that make a stream."""
        if (value is None) != (self.result == ty.VOID):
            wanted = "no value" if self.result == ty.VOID else f"a value of `{shown(self.result)}`"
            raise self.report.error("streamit-type", f"{wanted} is to be returned", item.span)
        found = ty.Return(None if value is None else self.expr(value, self.result), span=item.span)
        counting = () if self.place is not CodePlace.WORK or self.first else self.counting(item.span)
        return ty.Block((*counting, found), span=item.span) if counting else found

    def counting(self, span: Span | None) -> tuple[ty.Stmt, ...]:
        """The end of a firing that is counted for `iter()`."""
        if self.around.counter is None:
            return ()
        one, place = ty.Constant(ty.INT, 1, span=span), ty.Field(ty.INT, self.around.counter, span=span)
        return (ty.Do(ty.Update(ty.INT, place, "+%", one, span=span), span=span),)

    def out_of_line(self, targets: Sequence[s.Name], call: c.Call, item: c.Stmt) -> ty.Stmt:
        """`s, y <- f(s, peek(1));`: what is a field keeps its value until the next firing."""
        if self.place is not CodePlace.WORK:
            raise self.misplaced("`<-`", item.span)
        signature = self.functions(call.name)
        if signature is None:
            raise self.unknown_function(call)
        node = self.function(call, signature)
        types = [signature[1]] if len(targets) == 1 else parts(signature[1])
        if types is None or len(types) != len(targets):
            message = f"`{call.name}` gives `{show_type(signature[1])}`, which is not {len(targets)} values"
            raise self.report.error("streamit-type", message, call.span)
        places: list[ty.Local | ty.Field] = []
        for target, type_ in zip(targets, types, strict=True):
            known = self.lookup(target.name)
            if known is None or isinstance(known, ty.Param):
                places.append(self.declare(target.name, type_, target.span))
            elif isinstance(known, ty.Field) and known.type == type_:
                places.append(evolve(known, span=target.span))
            elif isinstance(known, ty.Local):
                raise self.report.error(
                    "streamit-duplicate-name", f"`{target.name}` is set twice", target.span
                )
            else:
                raise self.mismatch(shown(type_), known.type, target.span)
        return ty.Bind(tuple(places), node, span=item.span)

    def build(self, item: c.Add | c.Split | c.Join | c.Enqueue) -> ty.Stmt:
        """A statement that builds the graph."""
        if self.place is not CodePlace.BUILD or self.creator is None:
            raise self.misplaced(_building(item), item.span)
        match item:
            case c.Add():
                return self.creator(self, item)
            case c.Split(weights):
                found = None if weights is None else tuple(self.expr(w, ty.INT) for w in weights)
                return ty.Split(found, span=item.span)
            case c.Join(weights):
                return ty.Join(tuple(self.expr(w, ty.INT) for w in weights), span=item.span)
            case c.Enqueue(value):
                return ty.Enqueue(self.expr(value), span=item.span)
            case _:
                assert_never(item)

    # -- expressions

    def cond(self, value: c.Expr) -> ty.Expr:
        """A condition."""
        return self.expr(value, ty.BOOLEAN)

    def expr(self, value: c.Expr, wanted: ty.Type | None = None) -> ty.Expr:
        """A typed expression, converted to the wanted type. Raises: Failed, when it is reported."""
        node = self.written(value, wanted) or self.plain(value)
        self.look_at_order(node)
        if node.type == ty.VOID:
            if wanted is None and isinstance(node, ty.Call | ty.Function):
                return node
            raise self.report.error("streamit-type", "this has no value", value.span)
        return node if wanted is None else self.convert(node, wanted, value.span)

    def look_at_order(self, node: ty.Expr) -> None:
        """Warns of a variable that an expression changes twice."""
        if not isinstance(node, ty.Apply | ty.Update | ty.At):
            return
        changes = [
            named(each.place)
            for each in walk(node)
            if isinstance(each, ty.Update) and isinstance(each.place, ty.Local | ty.Field)
        ]
        twice = next((name for i, name in enumerate(changes) if name in changes[:i]), None)
        if twice is not None:
            name = twice.partition("#")[0]
            message = f"`{name}` is changed twice here: from left to right, the value of an assignment before its place"
            self.report.warn("streamit-order", message, node.span, "use two statements")

    def written(self, value: c.Expr, wanted: ty.Type | None) -> ty.Expr | None:
        """What is written of something that has the type that is wanted: a number, or its parts in braces; else None."""
        match value, wanted:
            case c.Display(items), ty.Vector(item):
                nodes = tuple(self.expr(each, item) for each in items)
                size = ty.Constant(ty.INT, len(nodes), span=value.span)
                return ty.Display(ty.Vector(nodes[0].type if nodes else item, size), nodes, span=value.span)
            case c.Display(items), ty.Struct(name, fields):
                if len(items) != len(fields):
                    what = f"`{name}` has {len(fields)} part{'s' * (len(fields) != 1)}"
                    message = f"{what}, {len(items)} given"
                    raise self.report.error("streamit-size", message, value.span)
                pairs = zip(items, fields, strict=True)
                return self.make(wanted, [self.expr(each, part) for each, (_, part) in pairs], value.span)
            case c.Display(), _ if wanted is not None:
                message = f"expected `{shown(wanted)}`, found values in braces"
                raise self.report.error("streamit-type", message, value.span)
            case _:
                return self.literal(value, wanted)

    def make(self, type_: ty.Struct, items: Sequence[ty.Expr], span: Span | None) -> ty.Expr:
        """A struct of its parts."""
        values = tuple(item.value for item in items if isinstance(item, ty.Constant))
        if len(values) == len(items):
            return ty.Constant(type_, values, span=span)
        return ty.Make(type_, tuple(items), span=span)

    def literal(self, value: c.Expr, wanted: ty.Type | None) -> ty.Expr | None:
        """A number as it is written where a float or a double is wanted, else None."""
        match value, wanted:
            case s.Int(number), ty.FLOAT if number > 0xFFFFFFFF:
                exact = constants.apply("f32", (t.F64,), ty.FLOAT, (float(number),))
                return ty.Constant(ty.FLOAT, exact, span=value.span)
            case s.Int(number) | s.Float(number), t.F64:
                return ty.Constant(t.F64, float(number), span=value.span)
            case _:
                return None

    def convert(self, node: ty.Expr, wanted: ty.Type, span: Span | None) -> ty.Expr:
        """The expression as a value of another type, where C does that by itself."""
        found = node.type
        if found == wanted:
            return node
        match found, wanted:
            case _, ty.COMPLEX if found in RANKS:
                parts_ = (self.cast(ty.FLOAT, node, span), ty.Constant(ty.FLOAT, 0.0, span=span))
                if isinstance(parts_[0], ty.Constant):
                    return ty.Constant(ty.COMPLEX, (parts_[0].value, 0.0), span=span)
                return ty.Make(ty.COMPLEX, parts_, span=span)
            case _ if RANKS.get(found, 9) < RANKS.get(wanted, -1):
                if wanted == ty.INT:
                    return evolve(node, type=ty.INT)
                return self.fold(ty.Apply(wanted, show_type(constants.scalar(wanted)), (node,), span=span))
            case ty.INT, ty.BIT if isinstance(node, ty.Constant) and node.value in (0, 1):
                return evolve(node, type=ty.BIT)
            case ty.INT, ty.BIT:
                return self.cast(ty.BIT, node, span)
            case ((ty.BIT | ty.INT), ty.BOOLEAN):
                zero = ty.Constant(ty.INT, 0, span=span)
                return self.fold(ty.Apply(ty.BOOLEAN, "!=", (evolve(node, type=ty.INT), zero), span=span))
            case ty.BOOLEAN, _ if wanted in RANKS:
                return self.convert(self.cast(ty.INT, node, span), wanted, span)
            case _:
                raise self.mismatch(shown(found), wanted, span)

    def mismatch(self, found: str, wanted: ty.Type, span: Span | None) -> Failed:
        """The error that something has the wrong type."""
        name = shown(wanted)
        help_line = None
        if wanted in RANKS and any(found == shown(rank) for rank in RANKS):
            help_line = f"convert it: `({name})`"
        return self.report.error("streamit-type", f"expected `{name}`, found `{found}`", span, help_line)

    def fold(self, node: ty.Apply) -> ty.Expr:
        """The expression, or its value when all operands are known."""
        values = [arg.value for arg in node.args if isinstance(arg, ty.Constant)]
        if len(values) < len(node.args):
            return node
        try:
            value = constants.apply(node.operation, [arg.type for arg in node.args], node.type, values)
        except TrapSignal:
            return node  # it traps where it is reached
        return ty.Constant(node.type, value, span=node.span)

    def plain(self, value: c.Expr) -> ty.Expr:
        """A typed expression."""
        span = value.span
        match value:
            case s.Int(number):
                return ty.Constant(ty.INT, self.whole(number, span), span=span)
            case s.Float(number):
                return ty.Constant(ty.FLOAT, constants.apply("f32", (t.F64,), ty.FLOAT, (number,)), span=span)
            case s.Bool(known):
                return ty.Constant(ty.BOOLEAN, known, span=span)
            case s.String(text):
                return ty.Constant(ty.TEXT, text, span=span)
            case s.Name(name):
                return self.name(name, span)
            case c.Unary(op, inner):
                return self.unary(op, inner, span)
            case c.Binary(op, left, right):
                if op in LOGIC:
                    return ty.Logic(ty.BOOLEAN, LOGIC[op], self.cond(left), self.cond(right), span=span)
                return self.binary(op, *self.operands(left, right), span)
            case c.Choose(cond, then, other):
                test, a, b = self.cond(cond), self.expr(then), self.expr(other)
                type_ = b.type if RANKS.get(a.type, 9) < RANKS.get(b.type, -1) else a.type
                a, b = self.convert(a, type_, then.span), self.convert(b, type_, other.span)
                return ty.Choose(type_, test, a, b, span=span)
            case c.Cast(type_, inner):
                return self.cast(self.value_type(type_), self.expr(inner), span)
            case c.StructPart(inner, name):
                return self.part(self.expr(inner), name, span)
            case c.Imaginary(number):
                size = constants.apply("f32", (t.F64,), ty.FLOAT, (number,))
                return ty.Constant(ty.COMPLEX, (0.0, size), span=span)
            case c.Index(array, index):
                if index is None:
                    raise self.report.error("streamit-type", "`[]` stands in types only", span)
                base = self.expr(array)
                if not isinstance(base.type, ty.Vector):
                    raise self.report.error(
                        "streamit-type", f"`{shown(base.type)}` is not an array", array.span
                    )
                return ty.At(base.type.item, base, self.expr(index, ty.INT), span=span)
            case c.Call():
                return self.call(value)
            case c.Assign(place, op, inner):
                return self.assign(self.writable(place), op, inner, span)
            case c.Step(place, op, after):
                target = self.writable(place)
                one = self.convert(ty.Constant(ty.INT, 1, span=span), target.type, span)
                node = self.binary(op, target, one, span)
                if not isinstance(node, ty.Apply) or node.type != target.type:
                    raise self.mismatch(shown(target.type), ty.INT, span)
                return ty.Update(target.type, target, node.operation, one, after, span=span)
            case c.Display():
                help_line = "give it to a variable of that type: `float[2] a = {1, 2};`"
                message = "of which type the values in braces are is not known here"
                raise self.report.error("streamit-type", message, span, help_line)
            case _:
                assert_never(value)

    def part(self, value: ty.Expr, name: str, span: Span | None) -> ty.Expr:
        """`p.x`."""
        if not isinstance(value.type, ty.Struct):
            raise self.report.error("streamit-type", f"`{shown(value.type)}` has no parts", span)
        index = value.type.index(name)
        if index is None:
            known = [part for part, _ in value.type.fields]
            message = f"`{shown(value.type)}` has no part `{name}`"
            raise self.report.error("streamit-unknown-name", message, span, closest(name, known))
        type_ = value.type.fields[index][1]
        if isinstance(value, ty.Constant):
            return ty.Constant(type_, value.value[index], span=span)
        return ty.StructPart(type_, value, index, span=span)

    def operands(self, left: c.Expr, right: c.Expr) -> tuple[ty.Expr, ty.Expr]:
        """Two operands; a literal beside a float or a double is one."""
        a, b = (None if isinstance(each, s.Int | s.Float) else self.expr(each) for each in (left, right))
        a = self.expr(left) if a is None and b is None else a
        found_a = a if a is not None else self.literal(left, b.type if b else None) or self.expr(left)
        found_b = b if b is not None else self.literal(right, found_a.type) or self.expr(right)
        return found_a, found_b

    def whole(self, number: int, span: Span | None) -> int:
        """A literal as an int; hexadecimal ones wrap."""
        written = "" if span is None else span.text
        if number > 0xFFFFFFFF or (number > 1 << 31 and not written.lower().startswith("0x")):
            raise self.report.error("streamit-number", f"{number} is out of the range of `int`", span)
        return constants.apply("i32.wrap", (t.I64,), ty.INT, (number,))

    def name(self, name: str, span: Span | None) -> ty.Expr:
        """A variable, a field, a parameter, or pi."""
        found = self.lookup(name)
        if found is not None:
            return evolve(found, span=span)
        if name == "pi":
            return ty.Constant(ty.FLOAT, PI, span=span)
        known = [n for names in self.scopes for n in names] + [*self.around.fields, *self.around.params]
        raise self.report.error("streamit-unknown-name", f"unknown name `{name}`", span, closest(name, known))

    def unary(self, op: str, inner: c.Expr, span: Span | None) -> ty.Expr:
        """`-e`, `+e`, `~e`, `!e`."""
        if op == "!":
            return self.unary_not(self.cond(inner), span)
        node = self.expr(inner)
        if node.type == ty.COMPLEX and op in "+-":
            return node if op == "+" else self.fold(ty.Apply(ty.COMPLEX, "complex.neg", (node,), span=span))
        if op in "+-" and self.is_vector(node):
            helper = self.vector_function("neg", node)
            assert helper is not None  # noqa: S101 - vectors have it
            return node if op == "+" else ty.Call(helper.result, helper.name, (node,), span=span)
        if node.type not in RANKS or (op == "~" and node.type not in (ty.INT, ty.BIT)):
            raise self.mismatch(shown(node.type), ty.INT, span)
        if op == "+":
            return node
        if op == "~" and node.type == ty.BIT:
            return self.fold(ty.Apply(ty.BIT, "^", (node, ty.Constant(ty.BIT, 1, span=span)), span=span))
        node = self.convert(node, ty.INT, span) if node.type == ty.BIT else node
        name = "~" if op == "~" else "neg%" if node.type == ty.INT else "neg"
        return self.fold(ty.Apply(node.type, name, (node,), span=span))

    def binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands that are converted to what they have in common."""
        if op == "+" and ty.TEXT in (left.type, right.type):
            return self.fold(ty.Apply(ty.TEXT, "+", (self.text(left), self.text(right)), span=span))
        if op in BOOLEAN_OPERATIONS and left.type == right.type == ty.BOOLEAN:
            return self.fold(ty.Apply(ty.BOOLEAN, BOOLEAN_OPERATIONS[op], (left, right), span=span))
        if op in BITWISE and ty.BIT in (left.type, right.type):
            left, right = bit_literal(left), bit_literal(right)
        if ty.BOOLEAN in (left.type, right.type) and {left.type, right.type} <= {ty.BOOLEAN, *RANKS}:
            left, right = (  # a condition counts as 0 or 1
                self.cast(ty.INT, side, side.span) if side.type == ty.BOOLEAN else side
                for side in (left, right)
            )
        if ty.COMPLEX in (left.type, right.type):
            return self.complex_binary(op, left, right, span)
        if self.is_vector(left) or self.is_vector(right):
            return self.vector_binary(op, left, right, span)
        for side in (left, right):
            if side.type not in RANKS:
                message = f"`{op}` does not apply to `{shown(side.type)}`"
                raise self.report.error("streamit-type", message, side.span or span)
        if op in BITWISE and left.type == right.type == ty.BIT:
            common: ty.Type = ty.BIT
        else:
            common = max(left.type, right.type, ty.INT, key=lambda type_: RANKS[type_])
        table = WHOLE if common in (ty.INT, ty.BIT) else REAL
        if op not in COMPARE and op not in table:
            raise self.report.error("streamit-type", f"`{op}` does not apply to `{shown(common)}`", span)
        a, b = self.convert(left, common, left.span), self.convert(right, common, right.span)
        if op in COMPARE:
            return self.fold(ty.Apply(ty.BOOLEAN, op, (a, b), span=span))
        return self.fold(ty.Apply(common, table[op], (a, b), span=span))

    def complex_binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands of which one is complex."""
        if op == "!=":
            return self.unary_not(self.complex_binary("==", left, right, span), span)
        a, b = (self.convert(side, ty.COMPLEX, side.span or span) for side in (left, right))
        if op not in COMPLEX_WORDS:
            raise self.report.error("streamit-type", f"`{op}` does not apply to `complex`", span)
        result = ty.BOOLEAN if op == "==" else ty.COMPLEX
        return self.fold(ty.Apply(result, f"complex.{COMPLEX_WORDS[op]}", (a, b), span=span))

    def is_vector(self, node: ty.Expr) -> bool:
        """Whether the value is a `float2`, `float3` or `float4`, and no struct of the program's own."""
        return (
            isinstance(node.type, ty.Struct)
            and node.type.name in VECTORS
            and bool(self.vector_function("add", node))
        )

    def vector_function(self, name: str, node: ty.Expr) -> ty.Helper | None:
        """The function of that name for vectors like this one, where code may call it."""
        assert isinstance(node.type, ty.Struct)  # noqa: S101 - the caller has seen to it
        return self.around.helpers.get(f"{LIBRARY}.{name}{VECTORS[node.type.name]}")

    def vector_binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands of which one is a vector."""
        match self.is_vector(left), self.is_vector(right):
            case True, True if left.type == right.type:
                name = BOTH.get(op)
            case True, False:
                name, right = RIGHT.get(op), self.convert(right, ty.FLOAT, right.span or span)
            case False, True:
                name, left = LEFT.get(op), self.convert(left, ty.FLOAT, left.span or span)
            case _:
                name = None
        if name is None:
            message = f"`{op}` does not apply to `{shown(left.type)}` and `{shown(right.type)}`"
            raise self.report.error("streamit-type", message, span)
        helper = self.vector_function(name, left if self.is_vector(left) else right)
        assert helper is not None  # noqa: S101 - there is one for each operator
        return ty.Call(helper.result, helper.name, (left, right), span=span)

    def unary_not(self, node: ty.Expr, span: Span | None) -> ty.Expr:
        """The opposite of a condition."""
        return self.fold(ty.Apply(ty.BOOLEAN, "not", (node,), span=span))

    def text(self, node: ty.Expr) -> ty.Expr:
        """What is printed of a value."""
        if node.type == ty.COMPLEX:
            return self.fold(ty.Apply(ty.TEXT, "complex.text", (node,), span=node.span))
        if isinstance(node.type, ty.Vector | ty.Struct | ty.Portal) or node.type == ty.VOID:
            raise self.report.error("streamit-type", f"`{shown(node.type)}` cannot be printed", node.span)
        return (
            node if node.type == ty.TEXT else self.fold(ty.Apply(ty.TEXT, "string", (node,), span=node.span))
        )

    def cast(self, wanted: ty.Type, node: ty.Expr, span: Span | None) -> ty.Expr:
        """`(type) e`."""
        found = node.type
        if RANKS.get(found, 9) <= RANKS.get(wanted, -1) or found == wanted:
            return self.convert(node, wanted, span)
        if wanted == ty.INT and found in RANKS:
            return self.fold(ty.Apply(ty.INT, "i32.wrap", (node,), span=span))
        if wanted == ty.FLOAT and found == t.F64:
            return self.fold(ty.Apply(ty.FLOAT, "f32", (node,), span=span))
        if wanted == ty.BIT and found == ty.INT:
            return self.fold(
                ty.Apply(
                    ty.BIT, "&", (evolve(node, type=ty.BIT), ty.Constant(ty.BIT, 1, span=span)), span=span
                )
            )
        if found in RANKS and wanted == ty.COMPLEX:
            return self.convert(node, wanted, span)
        if found == ty.BOOLEAN and wanted in (ty.INT, ty.BIT):
            one, zero = ty.Constant(wanted, 1, span=span), ty.Constant(wanted, 0, span=span)
            return ty.Choose(wanted, node, one, zero, span=span)
        if wanted == ty.BOOLEAN and found in (ty.INT, ty.BIT):
            return self.binary("!=", node, ty.Constant(ty.INT, 0, span=span), span)
        raise self.report.error("streamit-type", f"`{shown(found)}` cannot become `{shown(wanted)}`", span)

    def writable(self, place: c.Expr) -> ty.Expr:
        """A place that may be changed."""
        node = self.expr(place)
        base = root(node)
        if (
            self.around.alone
            and isinstance(base, ty.Local)
            and not any(base in x.values() for x in self.scopes)
        ):
            base = ty.Param(base.type, base.key.partition("#")[0])
        elif isinstance(node, ty.Field | ty.Local) or (
            isinstance(node, ty.At | ty.StructPart) and isinstance(base, ty.Field | ty.Local)
        ):
            return node
        if isinstance(base, ty.Param) and self.place is CodePlace.BUILD and base.name in self.around.params:
            return node
        if isinstance(base, ty.Param):
            help_line = "what is around a stream is constant in it: copy it to a variable"
            what = f"`{base.name.rstrip('#')}`, declared around this stream,"
            raise self.report.error("streamit-place", f"{what} cannot be changed", place.span, help_line)
        raise self.report.error("streamit-place", "only variables and their parts can be changed", place.span)

    def assign(self, place: ty.Expr, op: str, value: c.Expr, span: Span | None) -> ty.Expr:
        """`place = e`, `place op= e`."""
        if not op:
            return ty.Update(place.type, place, None, self.expr(value, place.type), span=span)
        operand = self.literal(value, place.type) or self.expr(value)
        node = self.binary(op, place, operand, span)
        if isinstance(node, ty.Call) and pure(place):
            return ty.Update(place.type, place, None, node, span=span)
        if node.type != place.type or isinstance(node, ty.Call):
            if place.type != ty.INT or node.type not in RANKS or not pure(place):
                raise self.mismatch(shown(node.type), place.type, value.span)
            return ty.Update(place.type, place, None, self.cast(ty.INT, node, span), span=span)
        assert isinstance(node, ty.Apply)  # noqa: S101 - a place is no constant
        return ty.Update(place.type, place, node.operation, node.args[1], span=span)

    # -- calls

    def arity(self, name: str, args: Sequence[c.Expr], count: int, span: Span | None) -> None:
        """Refuses another number of arguments."""
        if len(args) != count:
            message = f"`{name}` takes {count} argument{'s' * (count != 1)}, {len(args)} given"
            raise self.report.error("streamit-arguments", message, span)

    def call(self, call: c.Call) -> ty.Expr:
        """A function of the filter, of the library, or of the operator language; or the next item."""
        name, args, span = call.name, call.args, call.span
        helper = self.helper(name)
        if helper is not None:
            self.arity(helper.name, args, len(helper.params), span)
            found = tuple(self.expr(a, p.type) for a, p in zip(args, helper.params, strict=True))
            helper = self.around.sized(helper, found)
            return ty.Call(helper.result, helper.name, found, self.changes(call, helper, found), span=span)
        if name in LOADS:
            return self.load(name, args, span)
        if name in COMPLEX_FUNCTIONS and len(args) == 1:
            node = self.expr(args[0])
            if node.type == ty.COMPLEX or name == "arg":
                node = self.convert(node, ty.COMPLEX, span)
                return self.fold(ty.Apply(COMPLEX_FUNCTIONS[name], f"complex.{name}", (node,), span=span))
        if name in REAL_FUNCTIONS:
            self.arity(name, args, REAL_FUNCTIONS[name], span)
            nodes = tuple(self.expr(a) for a in args)
            wide = t.F64 if any(node.type == t.F64 for node in nodes) else ty.FLOAT
            real = tuple(self.convert(n, wide, a.span) for n, a in zip(nodes, args, strict=True))
            return self.fold(ty.Apply(wide, OF_C.get(name, name), real, span=span))
        if name in NUMBER_FUNCTIONS:
            return self.number_function(call)
        if name == "iter" and self.around.counter is not None:
            self.arity(name, args, 0, span)
            if self.place not in (CodePlace.WORK, CodePlace.HELPER):
                raise self.misplaced("`iter`", span)
            return ty.Field(ty.INT, self.around.counter, span=span)
        if name == "random" and self.around.generator is not None and not self.around.outside:
            self.arity(name, args, 0, span)
            return self.random(self.around.generator, span)
        if name in VECTORS and name in self.around.structs:
            return self.vector(name, call)
        if name in STREAM_WORDS:
            return self.item(call)
        signature = self.functions(name)
        if signature is None:
            raise self.unknown_function(call)
        if self.place in (CodePlace.BUILD, CodePlace.FIELD):
            help_line = "functions of the operator language are for the code of filters"
            raise self.misplaced(f"`{name}`", span, help_line)
        return self.function(call, signature)

    def helper(self, name: str) -> ty.Helper | None:
        """The function of that name: of the same block, or of the filter, or of another block."""
        for whole in (f"{self.block_name}.{name}", name) if self.block_name else (name,):
            found = self.around.helpers.get(whole) or self.around.shared(whole)
            if found is not None:
                return found
        return None

    def load(self, name: str, args: Sequence[c.Expr], span: Span | None) -> ty.Expr:
        """`init_array_1D_int("taps.txt", n)`; for a filter it is a parameter, because it is read when the graph is made."""
        self.arity(name, args, 2, span)
        path = self.expr(args[0], ty.TEXT)
        if not isinstance(path, ty.Constant):
            raise self.report.error("streamit-constant", "the name of a file is written as it is", path.span)
        type_ = ty.Vector(LOADS[name], self.closed(self.expr(args[1], ty.INT), args[1].span))
        load = ty.Load(type_, path.value, span=span)
        if self.runs:
            return load
        captures = self.around.captures
        known = next((x for x in captures.values() if x.value == load), None)
        if known is None:
            known = ty.Parameter(fresh("file#", set(captures)), type_, load, span=span)
            captures[known.name] = known
        return ty.Param(type_, known.name, span=span)

    def changes(self, call: c.Call, helper: ty.Helper, args: Sequence[ty.Expr]) -> tuple[int, ...]:
        """The arguments, by number, that are arrays which the function changes; others are its own."""
        found: list[int] = []
        for i in sorted(helper.changes):
            base = root(args[i])
            if isinstance(base, ty.Param):
                self.writable(call.args[i])
            if isinstance(base, ty.Field | ty.Local):
                found.append(i)
                others = (
                    arg
                    for j, arg in enumerate(args)
                    if j != i and isinstance(arg.type, ty.Vector | ty.Struct)
                )
                if named(base) in (named(root(other)) for other in others):
                    what = named(base).partition("#")[0]
                    message = f"`{what}` is handed twice to `{call.name}`, which changes it"
                    raise self.report.error("streamit-alias", message, call.span, "hand over a copy")
        return tuple(found)

    def random(self, generator: str, span: Span | None) -> ty.Expr:
        """A random number from 0 to 1: what the state of the generator says, which takes its next step."""
        state = ty.Field(t.I64, generator, span=span)
        step = ty.Apply(t.I64, "random.next", (state,), span=span)
        before = ty.Update(t.I64, state, None, step, after=True, span=span)
        return ty.Apply(ty.FLOAT, "random.value", (before,), span=span)

    def vector(self, name: str, call: c.Call) -> ty.Expr:
        """`float3(x, y, z)`."""
        self.arity(name, call.args, VECTORS[name], call.span)
        items = [self.expr(arg, ty.FLOAT) for arg in call.args]
        type_ = self.type(c.TypeName(name, span=call.span))
        assert isinstance(type_, ty.Struct)  # noqa: S101 - vectors are
        return self.make(type_, items, call.span)

    def number_function(self, call: c.Call) -> ty.Expr:
        """`abs`, `min`, `max` of ints or of floats."""
        self.arity(call.name, call.args, NUMBER_FUNCTIONS[call.name], call.span)
        nodes = [self.expr(a) for a in call.args]
        for node in nodes:
            if node.type not in RANKS:
                raise self.mismatch(shown(node.type), ty.FLOAT, node.span)
        common = max((ty.INT, *(node.type for node in nodes)), key=lambda type_: RANKS[type_])
        args = tuple(self.convert(node, common, node.span) for node in nodes)
        if call.name == "abs" and common == ty.INT:  # of the smallest int it is that number itself, as in C
            return ty.Apply(ty.INT, "abs", args, span=call.span)
        return self.fold(ty.Apply(common, call.name, args, span=call.span))

    def item(self, call: c.Call) -> ty.Expr:
        """`pop()`, `peek(i)`."""
        if call.name not in ("pop", "peek"):
            raise self.report.error("streamit-type", f"`{call.name}` has no value", call.span)
        if self.place not in (CodePlace.WORK, CodePlace.HELPER):
            raise self.misplaced(f"`{call.name}`", call.span, "take items in `work`")
        self.arity(call.name, call.args, 1 if call.name == "peek" else 0, call.span)
        if self.around.input == ty.VOID:
            raise self.report.error("streamit-type", "this filter has no input", call.span)
        if call.name == "pop":
            return ty.Pop(self.around.input, span=call.span)
        index = self.expr(call.args[0], ty.INT)
        if self.first_item:
            index = self.binary("-", index, ty.Constant(ty.INT, self.first_item, span=call.span), call.span)
        return ty.Peek(self.around.input, index, span=call.span)

    def function(self, call: c.Call, signature: tuple[tuple[t.Type, ...], t.Type]) -> ty.Function:
        """A call of a function of the operator language."""
        params, result = signature
        self.arity(call.name, call.args, len(params), call.span)
        args = tuple(self.expr(a, p) for a, p in zip(call.args, params, strict=True))
        return ty.Function(result, call.name, args, span=call.span)

    def unknown_function(self, call: c.Call) -> Failed:
        """The error that nothing bears the name."""
        if call.name in self.around.natives:
            message = "functions of other languages cannot be called from StreamIt"
            help_line = "write it here: `helper Name {...}`"
            return self.report.error("streamit-native", message, call.span, help_line)
        known = [*self.around.helpers, *REAL_FUNCTIONS, *NUMBER_FUNCTIONS, *STREAM_WORDS]
        message = f"unknown function `{call.name}`"
        return self.report.error("streamit-unknown-function", message, call.span, closest(call.name, known))


def filled(wanted: ty.Type, written: Sequence[c.Expr | None], given: ty.Type) -> ty.Type:
    """The type of an array with the sizes of what is given where none are written."""
    if not written or not isinstance(wanted, ty.Vector) or not isinstance(given, ty.Vector):
        return wanted
    size = given.size if written[0] is None else wanted.size
    return ty.Vector(filled(wanted.item, written[1:], given.item), size)


def measured(array: ty.Expr, depth: int) -> ty.Type:
    """A type of which only the sizes are asked for: those that the array has, `depth` deep."""
    found: ty.Type = ty.VOID
    for inner in reversed(range(depth)):
        found = ty.Vector(found, ty.Size(ty.INT, array, inner, span=array.span))
    return found


def sizes_of(type_: ty.Type) -> tuple[ty.Expr, ...]:
    """The sizes of an array, the outermost first."""
    return (type_.size, *sizes_of(type_.item)) if isinstance(type_, ty.Vector) else ()


def _either(left: ty.Expr, right: ty.Expr) -> ty.Expr:
    return ty.Logic(ty.BOOLEAN, "or", left, right, span=left.span)


def _before_break(items: Sequence[c.Stmt]) -> Sequence[c.Stmt]:
    """What stands before the first `break` that is sure to be reached, also if that ends a block: `case 1: {...; break; }`."""
    for i, item in enumerate(items):
        match item:
            case c.Break():
                return items[:i]
            case c.Block(inner) if len(kept := _before_break(inner)) < len(inner):
                return [*items[:i], evolve(item, items=tuple(kept))]
            case _:
                pass
    return items


def _building(item: c.Add | c.Split | c.Join | c.Enqueue) -> str:
    match item:
        case c.Add():
            return "a stream"
        case c.Split():
            return "`split`"
        case c.Join():
            return "`join`"
        case c.Enqueue():
            return "`enqueue`"


def parts(type_: t.Type) -> list[t.Type] | None:
    """The types of what a result has, in order."""
    match type_:
        case t.Tuple(items):
            return list(items)
        case t.Record(fields):
            return [field_type for _, field_type in fields]
        case _:
            return None


def bit_literal(node: ty.Expr) -> ty.Expr:
    """A 0 or 1 as a `bit`, anything else as it is."""
    match node:
        case ty.Constant(t.I32, 0 | 1):
            return evolve(node, type=ty.BIT)
        case _:
            return node


def shown(type_: ty.Type) -> str:
    """The type in StreamIt's words."""
    if isinstance(type_, ty.Vector):
        return f"{shown(type_.item)}[]"
    if isinstance(type_, ty.Portal):
        return f"portal<{type_.receiver}>"
    if isinstance(type_, ty.Struct):
        return type_.name
    return next((word for word, known in WORDS.items() if known == type_), None) or show_type(type_)
