"""Expressions of C-like code to expressions of the operator language.

Expressions of C may change things, those of the operator language may not: a change becomes a statement before, and what
was read before it is kept in a `let`. `pop` has no counterpart: a firing sees its items as a window, and the place of
the next one is known from the code before it (`Cursor`), or else counted at run time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.literals import known, literal, minus, number, plus, record, times, zero
from frontends.streamit.trees import Usage, named, root, updated
from river.classes import define, field
from river.il.trees import binders, fresh, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.parse import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from frontends.streamit.rates import Intervals
    from river.source import Span

INFIX = frozenset({
    "+", "-", "*", "/", "+%", "-%", "*%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
})  # fmt: skip
PREFIX = {"neg": "-", "neg%": "-%", "~": "~", "not": "not"}
SAME_IN_64_BITS = frozenset({"f32", "string", "==", "!=", "<", "<=", ">", ">="})
"""Operations that give the same for numbers of 32 bits and for the same numbers of 64."""


class NotStatic(Exception):  # noqa: N818 - no error: the place of the next item must be counted at run time
    """The code's paths take different numbers of items."""


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
    ahead: int | None = None  # how many items a firing looks at, where that is the same throughout
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
class ExpressionWriter:
    """The translation of the expressions of one body, of a handler or of a function, and what they need before them."""

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
    asking: Asking | None = None
    old: s.Expr | None = None  # what the place held to which this is assigned

    def __attrs_post_init__(self) -> None:
        self.seen = self.seen or self.setting.seen

    # -- names and blocks

    def unused(self, name: str, later: Sequence[s.Stmt] = ()) -> str:
        """A name like `name` that nothing in sight bears; `later`: what stands behind it, whose blocks may not hide it."""
        inside = (binders(node) for stmt in later for node in walk(stmt))
        taken = self.setting.taken.union(RESERVED, *self.scopes, *inside)
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
        borrows = has_array(type_) and not self.stable(value)
        if fixed and not borrows and not isinstance(type_, ty.Vector | ty.Portal):
            self.put(s.Let(name, kind, value, span=span))
        else:
            self.variable.add(name)
            self.put(s.VarDecl(name, kind, value, span=span))

    def pin(self, value: s.Expr, type_: ty.Type, later: Sequence[s.Stmt] = ()) -> s.Expr:
        """The value, kept as it is before what comes `later`."""
        name = self.unused("t", later)
        if has_array(type_):
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
                known_ = self.asking is None and not self.moves(index)
                at = self.behind(index, whole=not known_)
                at = at if known_ else self.looked_at(at, span) if self.asking is None else self.there(at)
                return s.Index(s.Name(self.cursor.window), at, span=span)
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
            case ty.Old():
                assert self.old is not None  # noqa: S101 - it stands in an assignment
                return self.old
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
                    old if i in places or self.stable(old) else self.pin(old, of.type, later)
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
                operand = operand if isinstance(operand, s.Name) else self.pin(operand, inner.type)
                return s.Call("max", (operand, s.Unary("-%", operand, span=span)), span=span)
            case _:
                args = self.numbers(value) or self.typed_operands(value)
        if operation in self.setting.routines:
            return s.Call(self.setting.routines[operation], tuple(args), span=span)
        if operation in INFIX:
            return s.Binary(operation, args[0], args[1], span=span)
        if operation in PREFIX:
            return s.Unary(PREFIX[operation], args[0], span=span)
        return s.Call(operation, tuple(args), span=span)

    def typed_operands(self, value: ty.Apply) -> list[s.Expr]:
        """Operands of an operation, one of them of a type that does not depend on what is wanted: else all would have 64 bits."""
        args = self.operands(value.args)
        if value.operation not in SAME_IN_64_BITS and args and all(map(loose, args)):
            first = next((i for i, arg in enumerate(args) if isinstance(arg, s.IfExpr)), 0)
            args[first] = self.pin(args[first], value.args[first].type)
        return args

    def numbers(self, value: ty.Apply) -> list[s.Expr] | None:
        """Operands of a comparison or conversion as i64, where that is the same and shorter."""
        if value.operation not in SAME_IN_64_BITS:
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
        """An assignment as a statement; its value. From left to right: indices of the place, what it holds, the value."""
        span, operation = value.span, value.operation
        base, path = steps(value.place)
        indices = [step.index for step in path if isinstance(step, ty.At)]
        places = self.operands(indices, indices=True)
        old = inside(self.expr(base), path, places)
        reads = operation is not None or any(isinstance(node, ty.Old) for node in walk(value.value))
        kept = reads and named(base) in self.changes(value.value)
        old = self.pin(old, value.type) if kept else old
        outer, self.old = self.old, old
        before = len(self.out)
        operand = self.expr(value.value)
        self.old = outer
        later = self.out[before:]
        if later and not all(map(self.stable, places)):
            del self.out[before:]
            places = [
                each if self.stable(each) else self.pin(each, of.type, later)
                for each, of in zip(places, indices, strict=True)
            ]
            self.out += later
        place = inside(self.expr(base), path, places)
        if not kept:
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
        return old if value.after else place

    def changes(self, value: ty.Expr) -> set[str]:
        """The locals and fields that evaluating the expression changes."""
        return {*updated(value), *self.setting.usage.changed((value,))}

    def part(self, value: ty.At | ty.StructPart) -> s.Expr:
        """A part of an array or a struct."""
        base, path = steps(value)
        found = self.expr(base)
        indices = [step.index for step in path if isinstance(step, ty.At)]
        return inside(found, path, self.operands(indices, indices=True))

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

    def behind(self, index: ty.Expr, *, whole: bool) -> s.Expr:
        """The position in the window of an item behind the next one; `whole`: as an i64."""
        assert self.cursor is not None  # noqa: S101 - only work functions peek
        at: s.Expr = self.cursor.at if self.cursor.counter is None else s.Name(self.cursor.counter)
        found = self.widened(index)
        if found is not None:
            return plus(at, found)
        narrow = self.narrow(index)
        if known(at) == 0 and not whole:
            return narrow
        return plus(s.Call("i64", (narrow,)), at)

    def there(self, at: s.Expr) -> s.Expr:
        """A position in the window at which there is an item: where firings ask for them, the try ends else."""
        assert self.cursor is not None  # noqa: S101 - only work functions see items
        assert self.asking is not None  # noqa: S101 - the caller has seen to it
        place = s.Name(self.unused("t"))
        self.put(s.Let(place.name, s.TypeName("i64"), at))
        size = s.Call("len", (s.Name(self.cursor.window),))
        self.put(s.If(s.Binary(">=", place, size), s.Block(self.asking.leave), None))
        return place

    def moves(self, index: ty.Expr) -> bool:
        """Whether data say how far a firing looks."""
        return any(seen.of(index) is None for seen in self.seen) and any(
            isinstance(node, ty.Local | ty.Pop | ty.Peek | ty.Call)
            or (isinstance(node, ty.Field) and node.name in self.changed)
            for node in walk(index)
        )

    def looked_at(self, at: s.Expr, span: Span | None) -> s.Expr:
        """A position in the window, compared with the rate, so that a trap can name that and not an array's index."""
        assert self.cursor is not None  # noqa: S101 - only work functions see items
        place = s.Name(self.unused("t"))
        self.put(s.Let(place.name, s.TypeName("i64"), at))
        size = s.Call("len", (s.Name(self.cursor.window),))
        beyond = s.Binary("or", s.Binary("<", place, s.Int(0)), s.Binary(">=", place, size))
        rate = (
            "its `peek` rate"
            if self.setting.ahead is None
            else f"its `peek` rate, which is {self.setting.ahead}"
        )
        text = (
            f"a firing looks beyond {rate}: write a larger one, or `peek *`, which waits for what it asks for"
        )
        self.put(s.If(beyond, s.Block((s.Trap(text, span=span),)), None))
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
        at = counter if self.asking is None else self.there(counter)
        item = s.Index(s.Name(cursor.window), at, span=value.span)
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
        handed = {*changed, *(named(root(value.args[i])) for i in value.changes)} - {""}
        for i, arg in enumerate(value.args):
            own = i in helper.changes and i not in value.changes
            if own or (i not in value.changes and has_array(arg.type) and named(root(arg)) in handed):
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


def steps(value: ty.Expr) -> tuple[ty.Expr, list[ty.At | ty.StructPart]]:
    """What an expression is a part of, and how one comes from there to it."""
    path: list[ty.At | ty.StructPart] = []
    while isinstance(value, ty.At | ty.StructPart):
        path.insert(0, value)
        value = value.array if isinstance(value, ty.At) else value.value
    return value, path


def inside(whole: s.Expr, path: Sequence[ty.At | ty.StructPart], places: Sequence[s.Expr]) -> s.Expr:
    """A part of something; `places`: the indices on the way."""
    left = iter(places)
    for step in path:
        match step:
            case ty.At():
                whole = s.Index(whole, next(left), span=path[-1].span)
            case ty.StructPart(_, of, index):
                assert isinstance(of.type, ty.Struct)  # noqa: S101 - the checker has seen to it
                whole = s.Member(whole, of.type.labels[index], span=path[-1].span)
    return whole


def loose(expr: s.Expr) -> bool:
    """Whether it is numbers, or choices of such, whose type is what is wanted."""
    match expr:
        case s.Int() | s.Float():
            return True
        case s.Unary("-", inner):
            return loose(inner)
        case s.IfExpr(_, then, other):
            return loose(then) and loose(other)
        case _:
            return False


def kept(body: s.Node) -> frozenset[str]:
    """The locals and fields below that are variables: what is changed, and structs with arrays that functions are given whole.

    An item of a queue stands there in pieces: as a variable it is put together once, and else at each call.
    """
    calls = (node for node in walk(body) if isinstance(node, ty.Call))
    given = {
        arg.key for call in calls for arg in call.args if isinstance(arg, ty.Local) and has_array(arg.type)
    }
    return frozenset(updated(body) | given)


def has_array(type_: ty.Type) -> bool:
    """Whether it is an array or has one in it: a `let` of such is no copy."""
    match type_:
        case ty.Struct(_, fields):
            return any(has_array(part) for _, part in fields)
        case _:
            return isinstance(type_, ty.Vector)
