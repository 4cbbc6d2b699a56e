"""C-like code to statements of the operator language.

Expressions of C may change things, those of the operator language may not: a change becomes a statement before, and what
was read before it is kept in a `let`. `pop` has no counterpart: a firing sees its items as a window, and the place of
the next one is known from the code before it (`Cursor`), or else counted at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.rates import CountedLoop, Intervals, breaks, counted, leaves
from frontends.streamit.trees import Usage, named, root, updated
from river.classes import define, evolve, field
from river.il.trees import fresh, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.parse import RESERVED
from river.lang.scope import expression

if TYPE_CHECKING:
    from river.source import Span

INFIX = frozenset({
    "+", "-", "*", "/", "+%", "-%", "*%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
})  # fmt: skip
PREFIX = {"neg": "-", "neg%": "-%", "~": "~", "not": "not"}


class NotStatic(Exception):  # noqa: N818 - no error: the place of the next item must be counted at run time
    """The code's paths take different numbers of items."""


# ---------------------------------------------------------------------------------------------- whole numbers, exactly


def number(value: int, span: Span | None = None) -> s.Expr:
    """A whole number."""
    return s.Int(value, span=span) if value >= 0 else s.Unary("-", s.Int(-value, span=span), span=span)


def known(expr: s.Expr) -> int | None:
    """The value of a written number."""
    match expr:
        case s.Int(value):
            return value
        case s.Unary("-", s.Int(value)):
            return -value
        case _:
            return None


def plus(a: s.Expr, b: s.Expr) -> s.Expr:
    """The sum, written as short as may be."""
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return number(x + y)
    if x == 0 or y == 0:
        return b if x == 0 else a
    if y is not None:
        match a:
            case s.Binary("+" | "-" as op, left, right) if (z := known(right)) is not None:
                return plus(left, number((z if op == "+" else -z) + y))
            case _:
                return s.Binary("-", a, s.Int(-y)) if y < 0 else s.Binary("+", a, b)
    return s.Binary("+", a, b)


def times(a: s.Expr, b: s.Expr) -> s.Expr:
    """The product, written as short as may be."""
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return number(x * y)
    if 1 in (x, y):
        return b if x == 1 else a
    return s.Int(0) if 0 in (x, y) else s.Binary("*", a, b)


def minus(a: s.Expr, b: s.Expr) -> s.Expr:
    """The difference, written as short as may be."""
    y = known(b)
    return plus(a, number(-y)) if y is not None else s.Binary("-", a, b)


# ---------------------------------------------------------------------------------------------- what code stands in


@define
class FilterScope:
    """What the code of one filter may name in the operator language.

    `seen`: what is known in each use of the filter. `constant`: the expression of a whole number that is the same
    throughout each use, from literals and holes; `whole` takes a hole of its own if need be.
    `param`: the constant that a parameter is.
    """

    usage: Usage
    seen: tuple[Intervals, ...]
    constant: Callable[[ty.Expr], s.Expr | None]
    whole: Callable[[ty.Expr], s.Expr | None]
    param: Callable[[ty.Param], s.Expr]
    type: Callable[[ty.Type], s.TypeExpr]
    field_type: Callable[[str], ty.Type]
    functions: Mapping[str, str]  # the names of the filter's functions
    taken: frozenset[str]  # names that locals do not hide
    routines: Mapping[str, str]  # what operations of complex numbers are called
    messages: Mapping[str, ty.Message] = field(factory=dict[str, ty.Message])  # by the filters that get them
    sent: tuple[str, ...] = ()  # the portals to which somebody listens
    window: s.TypeExpr | None = None  # the type of the window that functions look at
    given: s.TypeExpr | None = None  # where a firing asks for items: the type of the list of what it gives


@define
class Cursor:
    """Where the next item of the window is; `counter` when that is counted at run time, up to `limit`."""

    window: str
    at: s.Expr = field(factory=lambda: s.Int(0))
    counter: str | None = None
    limit: s.Expr | None = None  # how many items a firing may take


@define
class Asking:
    """A firing that asks for its items: it is tried on those that are there, and ends early if there are not enough.

    `given`: the list of what it pushes; `short`: says to whoever called a function that there were not enough; `leave`: ends
    the try.
    """

    given: s.Expr
    short: s.Expr
    leave: tuple[s.Stmt, ...]


@define
class Writer:
    """The translation of one body: of a handler, or of a function."""

    setting: FilterScope
    fields: dict[str, s.Expr]
    changed: frozenset[str]  # locals and fields that the body changes
    cursor: Cursor | None = None
    printed: s.Expr | None = (
        None  # what the firing has printed; without it, the one text that it prints is sent at once
    )
    sent: dict[str, s.Expr] = field(factory=dict[str, s.Expr])  # the messages of the firing, by portal
    names: dict[str, s.Expr] = field(factory=dict[str, s.Expr])
    wide: dict[str, s.Expr] = field(factory=dict[str, s.Expr])  # counters that are i64
    variable: set[str] = field(factory=set[str])  # names that are declared by `var`
    scopes: list[set[str]] = field(factory=lambda: [set[str]()])
    out: list[s.Stmt] = field(factory=list[s.Stmt])
    seen: tuple[Intervals, ...] = ()
    exit: s.Stmt = field(factory=lambda: s.Return(None))  # how a firing ends before its end
    function: bool = False  # it is the body of a function
    result: s.Expr | None = None  # what the body gives wherever it ends
    asking: Asking | None = None
    again: list[Callable[[], None]] = field(
        factory=list[Callable[[], None]]
    )  # what stands before a loop's next turn

    def __attrs_post_init__(self) -> None:
        self.seen = self.seen or self.setting.seen

    # -- names and blocks

    def unused(self, name: str) -> str:
        """A name like `name` that nothing in sight bears."""
        taken = self.setting.taken.union(RESERVED, *self.scopes)
        found = fresh(name, taken)
        self.scopes[-1].add(found)
        return found

    @contextmanager
    def block(self) -> Generator[list[s.Stmt], None, None]:
        """Statements of a block of their own."""
        before, seen = self.out, self.seen
        self.out = inside = []
        self.scopes.append(set())
        try:
            yield inside
        finally:
            self.scopes.pop()
            self.out, self.seen = before, seen

    def put(self, stmt: s.Stmt) -> None:
        """The next statement."""
        self.out.append(stmt)

    def bind(self, key: str, type_: ty.Type, value: s.Expr, span: Span | None, *, fixed: bool) -> None:
        """A local variable: `let` when nothing changes it, nor what it is a part of."""
        name = self.unused(key.partition("#")[0])
        self.names[key] = s.Name(name)
        kind = self.setting.type(type_)
        borrows = _has_array(type_) and not self.stable(value)
        if fixed and not borrows and not isinstance(type_, ty.Vector | ty.Portal):
            self.put(s.Let(name, kind, value, span=span))
        else:
            self.variable.add(name)
            self.put(s.VarDecl(name, kind, value, span=span))

    def pin(self, value: s.Expr, type_: ty.Type) -> s.Expr:
        """The value, kept as it is now."""
        name = self.unused("t")
        if _has_array(type_):
            self.put(s.VarDecl(name, self.setting.type(type_), value, span=value.span))
        else:
            self.put(s.Let(name, self.setting.type(type_), value, span=value.span))
        return s.Name(name, span=value.span)

    def stable(self, value: s.Expr) -> bool:
        """Whether no statement changes what the expression gives."""
        return not any(
            isinstance(node, s.Var | s.Call) or (isinstance(node, s.Name) and node.name in self.variable)
            for node in walk(value)
        )

    # -- statements

    def body(self, items: Sequence[ty.Stmt]) -> s.Block:
        """Statements as a block."""
        with self.block() as inside:
            self.statements(items)
        return s.Block(tuple(inside))

    def statements(self, items: Sequence[ty.Stmt]) -> None:
        """Statements, one after the other."""
        for item in items:
            self.statement(item)

    def statement(self, item: ty.Stmt) -> None:
        """One statement."""
        span = item.span
        match item:
            case ty.Declare(key, type_, value):
                fixed = value is not None and key not in self.changed
                found = zero(type_) if value is None else self.expr(value)
                self.bind(key, type_, found, span, fixed=fixed)
                if fixed and type_ == ty.INT and value is not None:
                    self.seen = tuple(seen.within({key: seen.of(value)}) for seen in self.seen)
            case ty.Do(value):
                self.effect(value)
            case ty.Push(value) if self.asking is not None:
                given = (self.asking.given, self.expr(value))
                self.put(s.Do(s.Call("push", given, span=span), span=span))
            case ty.Push(value):
                self.put(s.Emit("y", self.expr(value), span=span))
            case ty.Print(value, line):
                self.print(self.expr(value), span, line=line)
            case ty.Send():
                self.send(item)
            case ty.Bind(targets, call):
                self.results(targets, call, span)
            case ty.If(cond, then, other):
                self.branch(self.expr(cond), then, other, span)
            case ty.For():
                self.for_loop(item)
            case ty.While(cond, body, late):
                self.while_loop(cond, body, (), span, late=late)
            case ty.Break():
                self.put(s.Break(span=span))
            case ty.Continue():
                self.again[-1]()
                self.put(s.Continue(span=span))
            case ty.Return(value):
                found = None if value is None else self.expr(value)
                if self.function or self.result is not None:
                    self.put(s.Return(self.result if found is None else found, span=span))
                else:
                    self.end()
                    self.put(evolve(self.exit, span=span))
            case ty.Block(items):
                self.statements(items)
            case ty.Add() | ty.Split() | ty.Join() | ty.Enqueue():
                raise AssertionError  # the checker refuses them in filters
            case _:
                assert_never(item)

    def end(self) -> None:
        """The end of a firing: what it has printed is sent."""
        if self.cursor is not None and self.cursor.counter is not None and self.cursor.limit is not None:
            more = s.Binary(">", s.Name(self.cursor.counter), self.cursor.limit)
            text = "a firing took more items than its `pop` rate"
            self.put(s.If(more, s.Block((s.Trap(text, span=self.cursor.limit.span),))))
        if self.printed is not None and self.asking is None:
            self.put(s.Emit("print", self.printed))
        for portal, messages in self.sent.items():
            self.put(s.Emit(message_port(portal), messages))

    def print(self, text: s.Expr, span: Span | None, *, line: bool) -> None:
        """More of what the firing prints."""
        if line:
            text = ended(text)
        if self.printed is None:
            self.put(s.Emit("print", text, span=span))
        else:
            self.put(s.Assign(self.printed, s.Binary("+", self.printed, text, span=span), span=span))

    def send(self, item: ty.Send) -> None:
        """One more message of the firing. What nobody listens to is only computed."""
        if item.portal.name not in self.sent:
            for arg in item.args:
                self.effect(arg)
            return
        assert isinstance(item.portal.type, ty.Portal)  # noqa: S101 - it is one
        message = self.setting.messages[item.portal.type.receiver]
        given = dict(zip(message_labels(message)[item.handler], self.operands(item.args), strict=True))
        handler = list(message.handlers).index(item.handler)
        values = {"handler": s.Int(handler), "send": s.Int(item.number), **given}
        labels = ("handler", "send", *(label for each in message_labels(message).values() for label in each))
        parts = tuple(s.FieldValue(label, values.get(label) or s.Call("zero", ())) for label in labels)
        record = s.RecordValue(parts, span=item.span)
        self.put(s.Do(s.Call("push", (self.sent[item.portal.name], record), span=item.span), span=item.span))

    def hear(self, message: ty.Message, lists: s.Expr) -> None:
        """Handles the messages of a list, one after the other."""
        each = self.unused("message")
        chain: s.Block | None = None
        for number, (handler, labels) in reversed(list(enumerate(message_labels(message).items()))):
            helper = self.setting.usage.helpers[handler]
            args: list[ty.Expr] = []
            for label, param in zip(labels, helper.params, strict=True):
                self.names[f"#{label}"] = s.Member(s.Name(each), label)
                args.append(ty.Local(param.type, f"#{label}"))
            with self.block() as inside:
                self.effect(ty.Call(ty.VOID, handler, tuple(args), span=helper.span))
            cond = s.Binary("==", s.Member(s.Name(each), "handler"), s.Int(number))
            only = len(message.handlers) == 1
            chain = s.Block(tuple(inside)) if only else s.Block((s.If(cond, s.Block(tuple(inside)), chain),))
        assert chain is not None  # noqa: S101 - a message has a handler
        self.put(s.For(None, (each,), lists, chain))

    def results(self, targets: Sequence[ty.Local | ty.Field], call: ty.Function, span: Span | None) -> None:
        """`s, y <- f(...)`."""
        value = self.expr(call)
        if len(targets) == 1:
            values = [value]
        else:
            whole = self.pin(value, call.type)
            parts = call.type.fields if isinstance(call.type, t.Record) else ()
            labels = [label for label, _ in parts] or [str(i) for i in range(len(targets))]
            values = [s.Member(whole, label, span=span) for label in labels]
        for target, part in zip(targets, values, strict=True):
            match target:
                case ty.Field(_, name):
                    self.put(s.Assign(self.fields[name], part, span=span))
                case ty.Local(type_, key):
                    self.bind(key, type_, part, target.span, fixed=True)

    def branch(self, cond: s.Expr, then: ty.Block, other: ty.Block | None, span: Span | None) -> None:
        """`if`; both sides take the same number of items."""
        before = self.here()
        first = self.body(then.items)
        after = self.here()
        self.move(before)
        second = None if other is None else self.body(other.items)
        if ends(other):
            self.move(after)
        elif not ends(then) and self.here() != after:
            raise NotStatic
        self.put(s.If(cond, first, second, span=span))

    @property
    def counts(self) -> bool:
        """Whether the place of the next item is known from the code."""
        return self.cursor is not None and self.cursor.counter is None

    def here(self) -> s.Expr:
        """Where the next item is."""
        return s.Int(0) if self.cursor is None else self.cursor.at

    def move(self, at: s.Expr) -> None:
        """The next item is there."""
        if self.cursor is not None:
            self.cursor.at = at

    # -- loops

    def for_loop(self, item: ty.For) -> None:
        """`for`: a counted loop if it is one."""
        found = counted(item)
        if found is None or not (self.counted_loop(found, item) or self.plain_loop(found, item)):
            self.statements(item.first)
            self.while_loop(item.cond, item.body, item.steps, item.span, late=False)

    def counted_loop(self, loop: CountedLoop, item: ty.For) -> bool:
        """A loop whose turns are known from the parameters and from loops around: its counter is an i64."""
        turns = [seen.turns(loop) for seen in self.seen]
        start = self.widened(loop.start) or self.setting.whole(loop.start)
        bound = self.widened(loop.bound) or self.setting.whole(loop.bound)
        if start is None or bound is None or None in turns:
            return False
        bound = plus(bound, number(loop.step // abs(loop.step))) if loop.closed else bound
        count = self.turns(loop, start, bound)
        before = self.here()
        with self.block() as inside:
            if loop.step == 1:
                turn = counter = s.Name(self.unused(loop.key.partition("#")[0]))
                around, range_ = minus(counter, start), s.Range(start, bound, span=item.span)
                self.wide[loop.key] = counter
            else:
                turn = around = s.Name(self.unused("k"))
                range_ = s.Range(s.Int(0), count, span=item.span)
                self.wide[loop.key] = self.stepped(start, turn, loop.step)
            self.seen = tuple(
                seen.within({loop.key: found[1]})
                for seen, found in zip(self.seen, turns, strict=True)
                if found
            )
            takes = self.taken(loop.body)
            self.move(plus(before, times(around, takes)))
            self.again.append(lambda: None)
            body = self.body(loop.body.items)
            self.again.pop()
            if body.items:
                self.put(s.For(None, (turn.name,), range_, body, span=item.span))
        self.out += inside
        self.move(plus(before, times(count, takes)))
        return True

    def turns(self, loop: CountedLoop, start: s.Expr, bound: s.Expr) -> s.Expr:
        """How often a loop turns; `bound` is not reached."""
        distance = minus(bound, start) if loop.step > 0 else minus(start, bound)
        size = abs(loop.step)
        value = known(distance)
        if value is not None:
            return number(max(0, -(-value // size)))
        whole = (
            distance if size == 1 else s.Call("div.trunc", (plus(distance, number(size - 1)), number(size)))
        )
        forward = True
        for seen in self.seen:
            a, b = seen.of(loop.start), seen.of(loop.bound)
            ends = (a, b) if loop.step > 0 else (b, a)
            forward = forward and ends[0] is not None and ends[1] is not None and ends[0][1] <= ends[1][0]
        return whole if forward else s.Call("max", (whole, s.Int(0)))

    def stepped(self, start: s.Expr, turn: s.Expr, step: int) -> s.Expr:
        """The counter in a turn of a loop with another step than 1."""
        if step == -1:
            return minus(start, turn)
        product = times(turn, number(abs(step)))
        return plus(start, product) if step > 0 else minus(start, product)

    def plain_loop(self, loop: CountedLoop, item: ty.For) -> bool:
        """A loop upwards by 1 to a bound that is only known at run time: its counter is an i32."""
        if loop.step != 1 or loop.closed:
            return False
        if self.counts and (
            self.popping(loop.body) or any(isinstance(node, ty.Pop) for node in walk(loop.body))
        ):
            raise NotStatic
        low, high = self.operands([loop.start, loop.bound])
        if isinstance(loop.start, ty.Constant) and isinstance(loop.bound, ty.Constant):
            return False
        with self.block():
            name = self.unused(loop.key.partition("#")[0])
            self.names[loop.key] = s.Name(name)
            self.again.append(lambda: None)
            body = self.body(loop.body.items)
            self.again.pop()
        self.put(s.For(None, (name,), s.Range(low, high, span=item.span), body, span=item.span))
        return True

    def while_loop(
        self, cond: ty.Expr, body: ty.Block, steps: Sequence[ty.Expr], span: Span | None, *, late: bool
    ) -> None:
        """`while`, `do`, and `for` that is not counted."""
        before = self.here()

        def step() -> None:
            for value in steps:
                self.effect(value)

        def ask() -> None:
            self.put(s.If(negated(self.expr(cond)), s.Block((s.Break(span=span),)), None, span=span))

        with self.block() as tests:
            test = self.expr(cond)
        simple = not tests and not late
        self.again.append(ask if late else step)
        with self.block() as inside:
            if not simple and not late:
                ask()
            self.statements(body.items)
            if not body.items or not isinstance(body.items[-1], ty.Continue | ty.Break | ty.Return):
                self.again[-1]()
        self.again.pop()
        if self.here() != before:
            raise NotStatic
        loop = s.While(None, test if simple else s.Bool(True), s.Block(tuple(inside)), span=span)
        self.put(loop)

    def taken(self, body: ty.Block) -> s.Expr:
        """How many items a turn of a loop takes. Raises: NotStatic, when that differs."""
        popping = any(isinstance(node, ty.Pop) for node in walk(body)) or self.popping(body)
        if self.cursor is None or not self.counts or not popping:
            return s.Int(0)
        if any(breaks(item) or leaves(item) for item in body.items) or self.popping(body):
            raise NotStatic
        saved = (self.cursor.at, self.seen, dict(self.names), dict(self.wide), set(self.variable))
        self.cursor.at = s.Int(0)
        with self.block():
            self.again.append(lambda: None)
            self.statements(body.items)
            self.again.pop()
        found = self.cursor.at
        self.cursor.at, self.seen, self.names, self.wide, self.variable = saved
        if any(isinstance(node, s.Name | s.Var) for node in walk(found)):
            raise NotStatic
        return found

    # -- expressions

    def effect(self, value: ty.Expr) -> None:
        """An expression for its effect."""
        match value:
            case ty.Update():
                self.update(value, used=False)
            case ty.Call():
                call = self.call(value)
                self.put(s.Do(call, span=value.span))
                self.enough(value)
            case ty.Pop():
                self.pop(value, used=False)
            case ty.Function(_, name, args):
                self.put(s.Do(s.Call(name, tuple(self.operands(args)), span=value.span), span=value.span))
            case _:
                self.pin(self.expr(value), value.type)

    def expr(self, value: ty.Expr) -> s.Expr:
        """An expression; what it changes stands in statements before."""
        span = value.span
        match value:
            case ty.Constant(type_, known_value):
                return literal(known_value, type_, span)
            case ty.Local(_, key):
                return (
                    s.Call("i32.wrap", (self.wide[key],), span=span) if key in self.wide else self.names[key]
                )
            case ty.Field(_, name):
                return self.fields[name]
            case ty.Param():
                return self.setting.param(value)
            case ty.Peek(_, index):
                assert self.cursor is not None  # noqa: S101 - only work functions peek
                at = self.behind(index)
                return s.Index(s.Name(self.cursor.window), self.there(at), span=span)
            case ty.Pop():
                return self.pop(value, used=True)
            case ty.Apply():
                return self.apply(value)
            case ty.Logic(_, operation, left, right):
                return self.logic(operation, left, right, span)
            case ty.Choose(type_, cond, then, other):
                return self.choose(type_, cond, then, other, span)
            case ty.At() | ty.StructPart():
                return self.part(value)
            case ty.Make(type_, items):
                return record(type_, self.operands(items), span)
            case ty.Call():
                call = self.call(value)
                helper = self.setting.usage.helpers[value.helper]
                found = self.pin(call, helper.result) if self.acts(helper) else call
                self.enough(value)
                return found
            case ty.Function(_, name, args):
                return s.Call(name, tuple(self.operands(args)), span=span)
            case ty.Display(_, items):
                return s.ListValue(tuple(self.operands(items)), span=span)
            case ty.Update():
                return self.update(value, used=True)
            case ty.Load() | ty.Size():
                raise AssertionError  # they are parameters
            case _:
                assert_never(value)

    def operands(
        self, values: Sequence[ty.Expr], *, indices: bool = False, places: Sequence[int] = ()
    ) -> list[s.Expr]:
        """Expressions from left to right; `indices`: each indexes an array; `places`: those, by number, that stay places."""
        found: list[s.Expr] = []
        for value in values:
            before = len(self.out)
            node = self.index(value) if indices else self.expr(value)
            later = self.out[before:]
            if later:
                del self.out[before:]
                found = [
                    old if i in places or self.stable(old) else self.pin(old, of.type)
                    for i, (old, of) in enumerate(zip(found, values, strict=False))
                ]
                self.out += later
            found.append(node)
        return found

    def apply(self, value: ty.Apply) -> s.Expr:
        """An operation."""
        operation, span = value.operation, value.span
        match value:
            case ty.Apply(t.I32, "abs", (inner,)):
                operand = self.expr(inner)
                simple = isinstance(operand, s.Name) or known(operand) is not None
                operand = operand if simple else self.pin(operand, inner.type)
                return s.Call("max", (operand, s.Unary("-%", operand, span=span)), span=span)
            case _:
                args = self.numbers(value) or self.operands(value.args)
        if operation in self.setting.routines:
            return s.Call(self.setting.routines[operation], tuple(args), span=span)
        if operation in INFIX:
            return s.Binary(operation, args[0], args[1], span=span)
        if operation in PREFIX:
            return s.Unary(PREFIX[operation], args[0], span=span)
        return s.Call(operation, tuple(args), span=span)

    def numbers(self, value: ty.Apply) -> list[s.Expr] | None:
        """Operands of a comparison or conversion as i64, where that is the same and shorter."""
        if value.operation not in ("f32", "string", "==", "!=", "<", "<=", ">", ">="):
            return None
        found = [self.widened(arg) for arg in value.args if arg.type == ty.INT]
        whole = [node for node in found if node is not None]
        return whole if len(whole) == len(value.args) else None

    def logic(self, operation: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> s.Expr:
        """`and`, `or`; the right side only if it is asked."""
        first = self.expr(left)
        before = self.here()
        name = self.unused("t")
        with self.block() as inside:
            second = self.expr(right)
        if self.here() != before:
            raise NotStatic
        if not inside:
            self.scopes[-1].discard(name)
            return s.Binary(operation, first, second, span=span)
        inside.append(s.Assign(s.Name(name), second, span=span))
        self.variable.add(name)
        self.put(s.VarDecl(name, s.TypeName("bool"), first, span=span))
        cond: s.Expr = s.Name(name) if operation == "and" else s.Unary("not", s.Name(name))
        self.put(s.If(cond, s.Block(tuple(inside)), None, span=span))
        return s.Name(name, span=span)

    def choose(
        self, type_: ty.Type, cond: ty.Expr, then: ty.Expr, other: ty.Expr, span: Span | None
    ) -> s.Expr:
        """`c ? a : b`."""
        test = self.expr(cond)
        before = self.here()
        name = self.unused("t")
        with self.block() as left:
            first = self.expr(then)
        after = self.here()
        self.move(before)
        with self.block() as right:
            second = self.expr(other)
        if self.here() != after:
            raise NotStatic
        if not left and not right:
            self.scopes[-1].discard(name)
            return s.IfExpr(test, first, second, span=span)
        self.variable.add(name)
        self.put(s.VarDecl(name, self.setting.type(type_), zero(type_), span=span))
        blocks = [
            s.Block((*part, s.Assign(s.Name(name), value)))
            for part, value in ((left, first), (right, second))
        ]
        self.put(s.If(test, blocks[0], blocks[1], span=span))
        return s.Name(name, span=span)

    # -- places and indices

    def update(self, value: ty.Update, *, used: bool) -> s.Expr:
        """An assignment as a statement; its value. What is assigned comes before the place."""
        span, operation = value.span, value.operation
        operand = self.expr(value.value)
        before = len(self.out)
        place = self.expr(value.place)
        if before < len(self.out) and not self.stable(operand):
            later = self.out[before:]
            del self.out[before:]
            operand = self.pin(operand, value.value.type)
            self.out += later
        old = self.pin(place, value.type) if used and value.after else place
        new = operand
        if operation is not None:
            infix = operation in INFIX
            new = (
                s.Binary(operation, old, operand, span=span)
                if infix
                else s.Call(self.setting.routines.get(operation, operation), (old, operand), span=span)
            )
        self.put(s.Assign(place, new, span=span))
        return old

    def part(self, value: ty.At | ty.StructPart) -> s.Expr:
        """A part of an array or a struct."""
        path: list[ty.At | ty.StructPart] = []
        base: ty.Expr = value
        while isinstance(base, ty.At | ty.StructPart):
            path.insert(0, base)
            base = base.array if isinstance(base, ty.At) else base.value
        places = iter(self.operands([step.index for step in path if isinstance(step, ty.At)], indices=True))
        found = self.expr(base)
        for step in path:
            match step:
                case ty.At():
                    found = s.Index(found, next(places), span=value.span)
                case ty.StructPart(_, whole, index):
                    assert isinstance(whole.type, ty.Struct)  # noqa: S101 - the checker has seen to it
                    found = s.Member(found, whole.type.labels[index], span=value.span)
        return found

    def index(self, value: ty.Expr) -> s.Expr:
        """A whole number as an index: an i64 where no 32 bits can overflow, else an i32."""
        return self.widened(value) or self.narrow(value)

    def narrow(self, value: ty.Expr) -> s.Expr:
        """An `int` where nothing says so: a number of one branch alone would be taken for one of 64 bits, unlike the other's."""
        found = self.expr(value)
        return self.pin(found, ty.INT) if any(isinstance(node, s.IfExpr) for node in walk(found)) else found

    def widened(self, value: ty.Expr) -> s.Expr | None:
        """The number as an i64, if that is the same."""
        match value:
            case ty.Constant(_, int() as known_value):
                return number(known_value, value.span)
            case ty.Local(_, key):
                return self.wide.get(key)
            case ty.Param():
                return self.setting.constant(value)
            case ty.Apply() if (found := self.setting.constant(value)) is not None:
                return found
            case ty.Apply(_, "+%" | "-%" | "*%" as operation, (left, right)):
                if any(seen.of(value) is None for seen in self.seen):
                    return None
                a, b = self.widened(left), self.widened(right)
                if a is None or b is None:
                    return None
                return {"+%": plus, "-%": minus, "*%": times}[operation](a, b)
            case _:
                return None

    # -- items

    def behind(self, index: ty.Expr) -> s.Expr:
        """The position in the window of an item behind the next one."""
        assert self.cursor is not None  # noqa: S101 - only work functions peek
        at: s.Expr = self.cursor.at if self.cursor.counter is None else s.Name(self.cursor.counter)
        found = self.widened(index)
        if found is not None:
            return plus(at, found)
        narrow = self.narrow(index)
        if known(at) == 0:
            return narrow
        return plus(s.Call("i64", (narrow,)), at)

    def there(self, at: s.Expr) -> s.Expr:
        """A position in the window at which there is an item: where firings ask for them, the try ends else."""
        if self.asking is None:
            return at
        assert self.cursor is not None  # noqa: S101 - only work functions see items
        place = s.Name(self.unused("t"))
        self.put(s.Let(place.name, s.TypeName("i64"), at))
        size = s.Call("len", (s.Name(self.cursor.window),))
        self.put(s.If(s.Binary(">=", place, size), s.Block(self.asking.leave), None))
        return place

    def enough(self, value: ty.Call) -> None:
        """Ends the try if there were not enough items for a function."""
        body = self.setting.usage.helpers[value.helper].body
        if self.asking is not None and self.setting.usage.streams((body,)):
            self.put(s.If(self.asking.short, s.Block(self.asking.leave), None))

    def pop(self, value: ty.Pop, *, used: bool) -> s.Expr:
        """The next item."""
        cursor = self.cursor
        assert cursor is not None  # noqa: S101 - only work functions pop
        if cursor.counter is None:
            item = s.Index(s.Name(cursor.window), cursor.at, span=value.span)
            cursor.at = plus(cursor.at, s.Int(1))
            return item
        counter = s.Name(cursor.counter)
        if self.asking is None:
            beyond = s.Binary(">=", counter, s.Call("len", (s.Name(cursor.window),)))
            text = "a firing takes more items than its `pop` rate"
            self.put(s.If(beyond, s.Block((s.Trap(text, span=value.span),)), None))
        item = s.Index(s.Name(cursor.window), self.there(counter), span=value.span)
        found = self.pin(item, value.type) if used else item
        self.put(s.Assign(counter, s.Binary("+", counter, s.Int(1)), span=value.span))
        return found

    # -- functions of the filter

    def acts(self, helper: ty.Helper) -> bool:
        """Whether calling the function does more than giving a value."""
        usage = self.setting.usage
        changes = bool(helper.changes) or bool(usage.changed((helper.body,)))
        looks = self.asking is not None and usage.has((helper.body,), ty.Peek)
        return changes or looks or usage.has((helper.body,), ty.Print, ty.Pop, ty.Push, ty.Send)

    def popping(self, body: s.Node) -> bool:
        """Whether functions that the code calls take items."""
        usage = self.setting.usage
        calls = [node for node in walk(body) if isinstance(node, ty.Call)]
        return any(usage.has((usage.helpers[call.helper].body,), ty.Pop) for call in calls)

    def call(self, value: ty.Call) -> s.Call:
        """A call; the function gets the fields that it uses."""
        usage = self.setting.usage
        helper = usage.helpers[value.helper]
        args = self.operands(value.args, places=value.changes)
        changed = usage.changed((helper.body,))
        for i, arg in enumerate(value.args):
            own = i in helper.changes and i not in value.changes
            if own or (isinstance(arg.type, ty.Vector) and named(root(arg)) in changed):
                args[i] = self.pin(args[i], arg.type)
        args += self.window(helper)
        args += [self.fields[name] for name in usage.touched((helper.body,))]
        if usage.prints((helper.body,)) and self.printed is not None:
            args.append(self.printed)
        args += [self.sent[portal] for portal in usage.portals((helper.body,)) if portal in self.sent]
        return s.Call(self.setting.functions[value.helper], tuple(args), span=value.span)

    def window(self, helper: ty.Helper) -> list[s.Expr]:
        """The window, and where the next item is, for a function that looks at items; if it takes some, to be counted."""
        usage, cursor = self.setting.usage, self.cursor
        if self.asking is not None and usage.streams((helper.body,)):
            assert cursor is not None  # noqa: S101 - only work functions have such
            assert cursor.counter is not None  # noqa: S101 - it counts
            return [s.Name(cursor.window), s.Name(cursor.counter), self.asking.given, self.asking.short]
        pops = usage.has((helper.body,), ty.Pop)
        if not pops and not usage.has((helper.body,), ty.Peek):
            return []
        assert cursor is not None  # noqa: S101 - only work functions have such
        if cursor.counter is not None:
            return [s.Name(cursor.window), s.Name(cursor.counter)]
        if pops:
            raise NotStatic
        return [s.Name(cursor.window), cursor.at]


def ends(block: ty.Block | None) -> bool:
    """Whether the code ends the function."""
    return block is not None and any(
        isinstance(item, ty.Return) or (isinstance(item, ty.Block) and ends(item)) for item in block.items
    )


def function(setting: FilterScope, helper: ty.Helper) -> s.Fn:
    """A function of the filter as one of the operator: the window and the fields that it uses become parameters."""
    usage, body = setting.usage, helper.body
    writer = Writer(setting, {}, frozenset(updated(body)), function=True)
    params: list[s.Param] = []
    for i, param in enumerate(helper.params):
        name = writer.unused(param.key.partition("#")[0])
        kind = setting.type(param.type)
        shared = i in helper.changes
        if param.key in writer.changed and not shared:
            writer.bind(param.key, param.type, s.Name(name), param.span, fixed=False)
        else:
            writer.names[param.key] = s.Name(name)
        if shared:
            writer.variable.add(name)
        params.append(s.Param(name, kind, shared, span=param.span))
    pops = usage.has((body,), ty.Pop)
    if setting.given is not None and usage.streams((body,)):
        writer.cursor, more = _asking(setting, writer)
        params += more
        assert writer.asking is not None  # noqa: S101 - it has just been set
        nothing = None if helper.result == ty.VOID else zero(helper.result)
        writer.asking.leave = (s.Assign(writer.asking.short, s.Bool(True)), s.Return(nothing))
    elif pops or usage.has((body,), ty.Peek):
        assert setting.window is not None  # noqa: S101 - only work functions have such
        window, at = writer.unused("w"), writer.unused("at")
        writer.cursor = Cursor(window, counter=at)
        writer.variable.add(at)
        params += [s.Param(window, setting.window), s.Param(at, s.TypeName("i64"), ref=pops)]
    changed = usage.changed((body,))
    for name in usage.touched((body,)):
        own = writer.unused(name)
        writer.fields[name] = s.Name(own)
        if name in changed:
            writer.variable.add(own)
        params.append(s.Param(own, setting.type(setting.field_type(name)), name in changed))
    if usage.prints((body,)):
        own = writer.unused("printed")
        writer.printed = s.Name(own)
        writer.variable.add(own)
        params.append(s.Param(own, s.TypeName("string"), ref=True))
    for send in usage.sends((body,)):
        portal = send.portal.name
        if portal in setting.sent and portal not in writer.sent:
            own = writer.unused("sent")
            writer.sent[portal] = s.Name(own)
            writer.variable.add(own)
            params.append(s.Param(own, message_list(setting, send.portal), ref=True))
    writer.statements(body.items)
    if helper.result != ty.VOID and any(isinstance(item, ty.While | ty.For) for item in body.items[-1:]):
        writer.put(s.Return(zero(helper.result)))  # behind a loop that only `return` leaves
    result = None if helper.result == ty.VOID else setting.type(helper.result)
    return s.Fn(
        setting.functions[helper.name], tuple(params), result, s.Block(tuple(writer.out)), span=helper.span
    )


def message_labels(message: ty.Message) -> dict[str, tuple[str, ...]]:
    """What the arguments of each handler are called in a message."""
    return {name: tuple(f"{name}_{i}" for i in range(len(types))) for name, types in message.handlers.items()}


def message_type(message: ty.Message) -> s.RecordType:
    """A message: the number of its handler, which of its sender's messages it is, and the arguments of all handlers."""
    fields = [s.FieldType("handler", s.TypeName("i64")), s.FieldType("send", s.TypeName("i64"))]
    labels = message_labels(message)
    for name, types in message.handlers.items():
        fields += [
            s.FieldType(label, expression(type_)) for label, type_ in zip(labels[name], types, strict=True)
        ]
    return s.RecordType(tuple(fields))


def message_list(setting: FilterScope, portal: ty.Param) -> s.TypeExpr:
    """The type of the messages of a firing."""
    assert isinstance(portal.type, ty.Portal)  # noqa: S101 - it is one
    return s.TypeName("list", (message_type(setting.messages[portal.type.receiver]),))


def message_port(portal: str) -> str:
    """The output of the messages that go to a portal."""
    return f"to_{portal.replace('#', '_')}"


def _has_array(type_: ty.Type) -> bool:
    """Whether it is an array or has one in it: a `let` of such is no copy."""
    match type_:
        case ty.Struct(_, fields):
            return any(_has_array(part) for _, part in fields)
        case _:
            return isinstance(type_, ty.Vector)


def _asking(setting: FilterScope, writer: Writer) -> tuple[Cursor, list[s.Param]]:
    """What code of a firing that asks for its items is handed: where it looks for them, and the parameters."""
    assert setting.window is not None  # noqa: S101 - it has an input
    assert setting.given is not None  # noqa: S101 - it asks
    window, at, given, short = map(writer.unused, ("w", "at", "given", "short"))
    writer.variable |= {at, given, short}
    writer.asking = Asking(s.Name(given), s.Name(short), (s.Return(s.Bool(False)),))
    return Cursor(window, counter=at), [
        s.Param(window, setting.window),
        s.Param(at, s.TypeName("i64"), ref=True),
        s.Param(given, setting.given, ref=True),
        s.Param(short, s.TypeName("bool"), ref=True),
    ]


def tried(setting: FilterScope, name: str, work: ty.Work, *, printing: bool) -> s.Fn:
    """A firing that asks for its items, as a function that says whether there were enough."""
    usage, body = setting.usage, work.body
    writer = Writer(setting, {}, frozenset(updated(body)))
    writer.cursor, params = _asking(setting, writer)
    changed = usage.changed((body,))
    for field_ in usage.touched((body,)):
        own = writer.unused(field_)
        writer.fields[field_] = s.Name(own)
        if field_ in changed:
            writer.variable.add(own)
        params.append(s.Param(own, setting.type(setting.field_type(field_)), field_ in changed))
    if printing:
        own = writer.unused("printed")
        writer.printed = s.Name(own)
        writer.variable.add(own)
        params.append(s.Param(own, s.TypeName("string"), ref=True))
    writer.exit = s.Return(s.Bool(True))
    writer.statements(body.items)
    if not ends(body):
        writer.put(writer.exit)
    return s.Fn(name, tuple(params), s.TypeName("bool"), s.Block(tuple(writer.out)), span=work.span)


# ---------------------------------------------------------------------------------------------- values


def ended(text: s.Expr) -> s.Expr:
    """The text with a line end."""
    match text:
        case s.String(value):
            return s.String(value + "\n", span=text.span)
        case s.Binary("+", left, s.String(value)):
            return s.Binary("+", left, s.String(value + "\n"), span=text.span)
        case _:
            return s.Binary("+", text, s.String("\n"), span=text.span)


def negated(cond: s.Expr) -> s.Expr:
    """The opposite."""
    match cond:
        case s.Unary("not", inner):
            return inner
        case _:
            return s.Unary("not", cond, span=cond.span)


def zero(type_: ty.Type) -> s.Expr:
    """Zero of a type."""
    match type_:
        case ty.INT | ty.BIT:
            return s.Int(0)
        case ty.FLOAT | t.F64:
            return s.Float(0.0)
        case ty.BOOLEAN:
            return s.Bool(False)
        case ty.TEXT:
            return s.String("")
        case _:
            return s.Call("zero", ())


def literal(value: Any, type_: ty.Type, span: Span | None = None) -> s.Expr:
    """A known value."""
    match type_:
        case ty.Vector(item) | t.Array(item):
            return s.ListValue(tuple(literal(each, item, span) for each in value), span=span)
        case ty.Struct(_, fields):
            parts = [literal(each, part, span) for each, (_, part) in zip(value, fields, strict=True)]
            return record(type_, parts, span)
        case t.Record(fields):
            pairs = zip(fields, value, strict=True)
            return s.RecordValue(
                tuple(s.FieldValue(name, literal(each, part, span)) for (name, part), each in pairs),
                span=span,
            )
        case _:
            pass
    match value:
        case bool():
            return s.Bool(value, span=span)
        case int():
            return number(value, span)
        case str():
            return s.String(value, span=span)
        case _ if isnan(value):
            return s.Call("nan", (), span=span)
        case _ if abs(value) == float("inf"):
            infinity = s.Call("inf", (), span=span)
            return infinity if value > 0 else s.Unary("-", infinity, span=span)
        case _:
            negative = str(value).startswith("-")
            size = s.Float(_shortest(-value if negative else value, type_), span=span)
            return s.Unary("-", size, span=span) if negative else size


def record(type_: ty.Type, parts: Sequence[s.Expr], span: Span | None) -> s.Expr:
    """A struct of its parts."""
    assert isinstance(type_, ty.Struct)  # noqa: S101 - the checker has seen to it
    pairs = zip(type_.labels, parts, strict=True)
    return s.RecordValue(tuple(s.FieldValue(label, part) for label, part in pairs), span=span)


def _shortest(value: float, type_: ty.Type) -> float:
    """The shortest number that is the same in the type."""
    if type_ != ty.FLOAT:
        return value
    return float(_text()(value))


@cache
def _text() -> Callable[[float], str]:
    """What writes the shortest text of a float."""
    return OPERATIONS["string"].meaning((t.F32,), t.STRING)
