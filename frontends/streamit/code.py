"""The C-like code of filters and streams: statements, from syntax to typed trees."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from frontends.streamit.arithmetic import shown
from frontends.streamit.counters import as_for, short
from frontends.streamit.expressions import CodePlace, Expressions
from frontends.streamit.rates import breaks, counted
from frontends.streamit.surroundings import CLOSED
from frontends.streamit.trees import breaks as breaks_out
from frontends.streamit.trees import pure, without_unread
from river.classes import define, evolve, field
from river.il.trees import rebuild, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show as show_type
from river.report import Failed

if TYPE_CHECKING:
    from frontends.streamit.rates import CountedLoop
    from river.source import Span

RINGS = (c.For, c.While, c.Switch)  # a `break` inside leaves them, and nothing around

Creator = Callable[["BodyChecker", c.Add], ty.Stmt]
"""How a stream that is added becomes a creation."""

Handlers = Callable[[ty.Portal, str, "Span | None"], tuple[ty.Type, ...]]
"""The types of what a handler of a portal's filters takes. Raises: Failed, when it is reported that there is none."""


@define
class BodyChecker(Expressions):
    """The checker of one body."""

    creator: Creator | None = None
    streams: Container[str] = ()  # the names of those that it may add
    handlers: Handlers | None = None
    result: ty.Type = ty.VOID
    first: bool = False  # it is `prework`
    counters: set[str] = field(factory=set[str])
    """Locals, by key, in whose place loops have counters of their own."""
    loops: int = 0

    def block(self, items: Sequence[c.Stmt], span: Span | None) -> ty.Block:
        """Statements in a scope of their own; a wrong one is left out, so that all errors are found."""
        found: list[ty.Stmt] = []
        with self.scope():
            for item in items:
                with self.report.recover():
                    found.append(self.with_counter(self.statement(item), found))
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
            case c.Do(s.Name(name) | c.Call(name)) if name in self.streams and self.lookup(name) is None:
                message = f"`{name}` is a stream: as it stands, it is no part"
                raise self.report.error(
                    "streamit-misplaced", message, span, f"write `add {span.text if span else name}`"
                )
            case c.Do(
                s.Name("duplicate" | "roundrobin" as name) | c.Call("duplicate" | "roundrobin" as name)
            ) if self.lookup(name) is None:
                words = (
                    "`split duplicate;`"
                    if name == "duplicate"
                    else "`split roundrobin;` or `join roundrobin;`"
                )
                raise self.report.error(
                    "streamit-misplaced",
                    f"`{name}` stands behind a word that says what it does",
                    span,
                    f"write {words}",
                )
            case c.Do(value):
                node = self.expr(value)
                if pure(node) and not isinstance(value, c.Call):
                    help_line = "assign it, `x = ...;`, or leave it out"
                    raise self.report.error("streamit-no-effect", "this value is not used", span, help_line)
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
            steps = tuple(short(self.expr(step)) for step in item.steps)
            self.loops += 1
            body = self.body(item.body)
            self.loops -= 1
        return self.own_counter(ty.For(first, cond, steps, body, span=item.span))

    def with_counter(self, item: ty.Stmt, before: Sequence[ty.Stmt]) -> ty.Stmt:
        """A statement; a loop whose counter stands outside, and which can be counted, is one with a counter of its own."""
        loop = as_for(item, before) if isinstance(item, ty.While | ty.For) else None
        if loop is None:
            return item
        found = self.own_counter(loop)
        return item if found is loop else found

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
