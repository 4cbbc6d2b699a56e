"""C-like code to statements of the operator language: handlers, and functions of filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.literals import ended, known, minus, negated, number, plus, times, zero
from frontends.streamit.rates import CountedLoop, breaks, counted, leaves
from frontends.streamit.translate_expressions import Asking, Cursor, ExpressionWriter, FilterScope, NotStatic
from frontends.streamit.trees import updated
from river.classes import define, evolve, field
from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.source import Span


@define
class Writer(ExpressionWriter):
    """The translation of one body: of a handler, or of a function."""

    exit: s.Stmt = field(factory=lambda: s.Return(None))  # how a firing ends before its end
    function: bool = False  # it is the body of a function
    result: s.Expr | None = None  # what the body gives wherever it ends
    again: list[Callable[[], None]] = field(factory=list[Callable[[], None]])
    """What stands before a loop's next turn."""

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
        if self.asking is not None:
            return  # who tries the firing sends, if it succeeds
        if self.printed is not None:
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

    def listed(self, portal: str, send: ty.Send, params: list[s.Param]) -> None:
        """One more parameter: the list to which messages to a portal are added."""
        own = self.unused("sent")
        self.sent[portal] = s.Name(own)
        self.variable.add(own)
        params.append(s.Param(own, message_list(self.setting, send.portal), ref=True))

    def hear(self, message: ty.Message, lists: s.Expr) -> None:
        """Handles the messages of a list, one after the other."""
        each = self.unused("message")
        chain: s.Block | None = None
        for place, (handler, labels) in reversed(list(enumerate(message_labels(message).items()))):
            helper = self.setting.usage.helpers[handler]
            args: list[ty.Expr] = []
            for label, param in zip(labels, helper.params, strict=True):
                self.names[f"#{label}"] = s.Member(s.Name(each), label)
                args.append(ty.Local(param.type, f"#{label}"))
            with self.block() as inside:
                self.effect(ty.Call(ty.VOID, handler, tuple(args), span=helper.span))
            cond = s.Binary("==", s.Member(s.Name(each), "handler"), s.Int(place))
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
            writer.listed(portal, send, params)
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


def tried(
    setting: FilterScope, name: str, work: ty.Work, sends: Mapping[str, ty.Send], *, printing: bool
) -> s.Fn:
    """A firing that asks for its items, as a function that says whether there were enough.

    `sends`: a message for each portal to which somebody listens.
    """
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
    for portal, send in sends.items():
        writer.listed(portal, send, params)
    writer.exit = s.Return(s.Bool(True))
    writer.statements(body.items)
    if not ends(body):
        writer.put(writer.exit)
    return s.Fn(name, tuple(params), s.TypeName("bool"), s.Block(tuple(writer.out)), span=work.span)
