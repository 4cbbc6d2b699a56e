"""River-StreamIt by definition: actors with lists for queues that fire while they can, and C run statement by statement.

Shares with the frontend its typed trees, and nothing behind them: no River IL, no operation table, no windows.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from contextlib import suppress
from typing import Any

from attrs import define, field

from frontends.streamit import typed as ty
from frontends.streamit.elaborate import prints
from river.il.trees import walk
from river.lang import types as t

Queue = deque[Any]


def single(value: float) -> float:
    """A float of 32 bits."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def wrap(value: int) -> int:
    """An int of 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class Trapped(Exception):  # noqa: N818
    """A division by zero, or an index outside."""


def run(program: ty.Program, items: dict[str, list[Any]], ticks: int = 0) -> dict[str, Any]:
    """What comes out of `output`, `stdout` (one text) and the files when `items` go into `input` and the files."""
    world = World(program, items)
    world.wire(program.graph, world.queue_of(program.graph, "input"), world.queue_of(program.graph, "output"))
    world.post(items, ticks)
    world.quiesce()
    for _ in range(ticks):
        for source in world.sources:
            source.tick()
        world.quiesce()
    found: dict[str, Any] = {name: list(queue) for name, queue in world.outputs.items()}
    if world.printers or program.said:
        said = (each if isinstance(each, str) else world.said[id(each)] for each in program.said)
        states = ticks if program.graph.input == ty.VOID else None
        found["stdout"] = "".join(said) + world.printed(states)
    return found


@define(eq=False)
class Actor:
    """What fires; `allowed` counts the firings that ticks permit (None: any)."""

    each: int = 1
    allowed: int | None = None

    def fire(self) -> bool:
        raise NotImplementedError

    def tick(self) -> None:
        self.allowed = (self.allowed or 0) + self.each


@define(eq=False)
class Splitter(Actor):
    into: list[tuple[int, Queue]] = field(factory=list)
    taken: Queue = field(factory=deque)
    copies: bool = False
    at: int = 0
    done: int = 0

    def fire(self) -> bool:
        if not self.taken:
            return False
        if self.copies:
            item = self.taken.popleft()
            for _, queue in self.into:
                queue.append(item)
            return True
        while self.done >= self.into[self.at][0]:
            self.at, self.done = (self.at + 1) % len(self.into), 0
        self.into[self.at][1].append(self.taken.popleft())
        self.done += 1
        return True


@define(eq=False)
class Joiner(Actor):
    parts: list[tuple[int, Queue]] = field(factory=list)
    given: Queue = field(factory=deque)
    at: int = 0
    done: int = 0
    allowed: int | None = None

    def fire(self) -> bool:
        while self.done >= self.parts[self.at][0]:
            self.at, self.done = (self.at + 1) % len(self.parts), 0
        if not self.parts[self.at][1] or self.allowed == 0:
            return False
        self.given.append(self.joined(self.parts[self.at][1].popleft()))
        self.done += 1
        if self.allowed is not None:
            self.allowed -= 1
        return True

    def joined(self, item: Any) -> Any:
        return item


@define(eq=False)
class Pass(Actor):
    taken: Queue = field(factory=deque)
    given: Queue = field(factory=deque)

    def fire(self) -> bool:
        if self.taken:
            self.given.append(self.taken.popleft())
            return True
        return False


@define(eq=False)
class World:
    program: ty.Program
    items: dict[str, list[Any]]
    actors: list[Actor] = field(factory=list)
    sources: list[Actor] = field(factory=list)
    outputs: dict[str, Queue] = field(factory=dict)
    printers: list[Filter] = field(factory=list)
    filters: list[Filter] = field(factory=list)
    said: dict[int, str] = field(factory=dict)

    def queue_of(self, graph: ty.Graph, side: str) -> Queue | None:
        if side == "input":
            return None if graph.input == ty.VOID else deque(self.items["input"])
        if graph.output == ty.VOID:
            return None
        return self.outputs.setdefault("output", deque())

    def firings(self, graph: ty.Graph) -> int:
        return self.program.firings.get(id(graph), 1)

    def starts(self, graph: ty.Graph) -> int:
        return self.program.starts.get(id(graph), 0)

    def wire(self, graph: ty.Graph, taken: Queue | None, given: Queue | None) -> None:
        match graph:
            case ty.Node():
                actor = self.kind(
                    node=graph,
                    taken=deque() if taken is None else taken,
                    given=deque() if given is None else given,
                    each=self.firings(graph),
                    allowed=self.starts(graph) - (graph.first is not None) if taken is None else None,
                )
                self.actors.append(actor)
                self.filters.append(actor)
                self.said[id(graph)] = actor.said
                if taken is None:
                    self.sources.append(actor)
                if prints(graph.filter, heard=any(each.receiver is graph for each in self.program.channels)):
                    self.printers.append(actor)
            case ty.Identity() if taken is not None and given is not None:
                self.actors.append(Pass(taken=taken, given=given))
            case ty.File(name) if given is not None:
                given.extend(self.items[name])
            case ty.File(name) if taken is not None:
                self.actors.append(Pass(taken=taken, given=self.outputs.setdefault(name, deque())))
            case ty.Pipeline(_, _, _, parts):
                for part in parts[:-1]:
                    queue: Queue = deque()
                    self.wire(part, taken, queue)
                    taken = queue
                self.wire(parts[-1], taken, given)
            case ty.SplitJoin(_, _, _, split, parts, join):
                ins = [None if part.input == ty.VOID else deque() for part in parts]
                outs = [None if part.output == ty.VOID else deque() for part in parts]
                weights = split or [1] * len(parts)
                if taken is not None:
                    into = [(w, q) for w, q in zip(weights, ins, strict=True) if q is not None]
                    self.actors.append(Splitter(into=into, taken=taken, copies=split is None))
                for part, a, b in zip(parts, ins, outs, strict=True):
                    self.wire(part, a, b)
                if given is not None:
                    joined = [(w, q) for w, q in zip(join, outs, strict=True) if q is not None]
                    self.actors.append(self.joiner(parts=joined, given=given))
            case ty.FeedbackLoop(_, _, _, join, body, loop, split, waiting):
                joined, made, into = deque(), deque(), deque()
                back: Queue = deque(waiting)
                outer = deque() if taken is None else taken
                joiner = self.joiner(parts=[(join[0], outer), (join[1], back)], given=joined)
                self.actors.append(joiner)
                if taken is None:
                    joiner.allowed, joiner.each = join[1] * self.starts(graph), join[1] * self.firings(graph)
                    self.sources.append(joiner)
                self.wire(body, joined, made)
                out = deque() if given is None else given
                pair = list(zip(split or (1, 1), (out, into), strict=True))
                self.actors.append(Splitter(into=pair, taken=made, copies=split is None))
                self.wire(loop, into, back)
            case _:
                raise NotImplementedError(graph)

    @property
    def kind(self) -> type[Filter]:
        return Filter

    @property
    def joiner(self) -> type[Joiner]:
        return Joiner

    def post(self, items: dict[str, list[Any]], ticks: int) -> None:
        """Tells filters who sends them messages, and when these are handled: by what firings depend on."""
        if not any(filter_.sends for filter_ in self.filters):
            return
        much = {name: list(range(3 * len(given) + 400)) for name, given in items.items()}
        fronts = Fronts(self.program, much)
        fronts.wire(
            self.program.graph,
            fronts.queue_of(self.program.graph, "input"),
            fronts.queue_of(self.program.graph, "output"),
        )
        fronts.quiesce()
        for _ in range(3 * ticks + 60):
            for source in fronts.sources:
                source.tick()
            fronts.quiesce()
        for sender in self.filters:
            for portal in dict.fromkeys(send.portal.name for send in sender.sends):
                for receiver in self.filters:
                    if sender.node.values[portal] in receiver.node.portals:
                        known = (fronts.of(sender), fronts.of(receiver))
                        channel = Channel(sender, portal, receiver, *known)
                        sender.out.append(channel)
                        receiver.channels.append(channel)

    def quiesce(self) -> None:
        going = True
        while going:
            going = False
            for actor in self.actors:
                while actor.fire():
                    going = True

    def printed(self, states: int | None) -> str:
        """The texts of firings in order of steady states, then of the graph; of so many steady states."""
        found: list[tuple[int, int, str]] = []
        for place, filter_ in enumerate(self.printers):
            begins = self.starts(filter_.node)
            for number, text in enumerate(filter_.texts):
                state = 0 if number < begins else 1 + (number - begins) // self.firings(filter_.node)
                if states is None or state <= states:
                    found.append((state, place, text))
        return "".join(text for _, _, text in sorted(found, key=lambda each: each[:2]))


# ---------------------------------------------------------------------------------------------- filters


class Short(Exception):  # noqa: N818
    """A firing asks for more items than there are."""


class Leave(Exception):  # noqa: N818
    """`break`, `continue`, `return`."""

    def __init__(self, how: str, value: Any = None) -> None:
        self.how, self.value = how, value


@define(eq=False)
class Fronts(World):
    """The same graph where items say nothing but on how many firings of each filter they depend."""

    @property
    def kind(self) -> type[Filter]:
        return Front

    @property
    def joiner(self) -> type[Joiner]:
        return Meeting

    def of(self, filter_: Filter) -> list[dict[int, int]]:
        fronts = (each for each in self.filters if isinstance(each, Front))
        return next(each.history for each in fronts if each.node is filter_.node)


@define(eq=False)
class Channel:
    """The messages of one filter to another: for each, before which firing of the receiver it is handled."""

    sender: Filter
    portal: str
    receiver: Filter
    senders: list[dict[int, int]]  # for each firing of the sender, the firings that it depends on
    receivers: list[dict[int, int]]
    waiting: list[tuple[int, str, list[Any]]] = field(factory=list)

    def due(self, firing: int, latency: int) -> int:
        """Downstream: before the first firing that depends on the sender's. Upstream: behind the last that it depends on."""
        at, sender, receiver = firing + latency, id(self.sender.node), id(self.receiver.node)
        if any(sender in front for front in self.receivers):
            fronts = enumerate(self.receivers, 1)
            return next((n for n, front in fronts if front.get(sender, 0) >= at), 1 << 40)
        return self.senders[at - 1].get(receiver, 0) + 1 if at <= len(self.senders) else 1 << 40

    def latency(self, send: ty.Send) -> int:
        if send.least is None:
            return 0
        down = any(id(self.sender.node) in front for front in self.receivers)
        least = self.sender.value(send.least)
        return least if down else max(least, 0)

    def known(self, firing: int) -> bool:
        """Whether all messages that are handled before a firing of the receiver have been sent, if they are."""
        own = [self.latency(send) for send in self.sender.sends if send.portal.name == self.portal]
        return self.due(self.sender.fired + 1, min(own)) > firing


@define(eq=False)
class Filter(Actor):
    node: ty.Node = field(kw_only=True)
    taken: Queue = field(factory=deque)
    given: Queue = field(factory=deque)
    fields: dict[str, Any] = field(factory=dict)
    locals: dict[str, Any] = field(factory=dict)
    texts: list[str] = field(factory=list)
    started: bool = False
    fired: int = 0
    out: list[Channel] = field(factory=list)
    channels: list[Channel] = field(factory=list)

    said: str = ""
    old: Any = None  # what the place of an assignment held

    def __attrs_post_init__(self) -> None:
        self.texts.append("")
        fields = self.node.filter.fields
        self.fields.update((decl.name, self.zero(decl.type)) for decl in fields)
        for decl in fields:
            if decl.value is not None:
                self.fields[decl.name] = copy(self.value(decl.value))
        if self.node.filter.init is not None:
            with suppress(Leave):  # `return`
                self.run(self.node.filter.init)
        self.said = self.texts.pop()

    @property
    def sends(self) -> list[ty.Send]:
        return [node for node in walk(self.node.filter) if isinstance(node, ty.Send)]

    def fire(self) -> bool:
        if not all(channel.known(self.fired + 1) for channel in self.channels):
            return False
        rates, work, prework = self.node.rates, self.node.filter.work, self.node.filter.prework
        if prework is not None and self.node.first is not None and not self.started:
            if len(self.taken) < self.node.first.peek:
                return False
            self.started = True
            if self.node.first.asks:
                self.started = self.ask(prework.body, first=True)
                return self.started
            self.work(prework.body, self.node.first.pop)
            return True
        if self.allowed == 0:
            return False
        if len(self.taken) < max(rates.peek, rates.pop):
            return False
        if rates.asks:
            return self.ask(work.body)
        if self.allowed is not None:
            self.allowed -= 1
        self.work(work.body, rates.pop)
        return True

    def ask(self, body: ty.Block, *, first: bool = False) -> bool:
        """A firing that asks for its items: as if nothing had been done, if there are not enough."""
        items, fields, given, texts = list(self.taken), copy(self.fields), len(self.given), len(self.texts)
        fired, sent = self.fired, [list(channel.waiting) for channel in self.out]
        try:
            self.work(body, 0)
        except Short:
            self.fired = fired
            for channel, waiting in zip(self.out, sent, strict=True):
                channel.waiting = waiting
            self.taken.clear()
            self.taken.extend(items)
            self.fields = fields
            while len(self.given) > given:
                self.given.pop()
            del self.texts[texts:]
            return False
        if len(self.taken) == len(items) and not first:
            raise Trapped
        return True

    def work(self, body: ty.Block, pop: int) -> None:
        self.locals = {}
        self.texts.append("")
        self.fired += 1
        for channel in self.channels:
            now = [each for each in channel.waiting if each[0] <= self.fired]
            channel.waiting = [each for each in channel.waiting if each[0] > self.fired]
            for _, handler, args in now:
                self.call(handler, args)
        left = len(self.taken) - pop
        with suppress(Leave):
            self.run(body)
        while len(self.taken) > left:
            self.taken.popleft()

    def zero(self, type_: ty.Type) -> Any:
        if isinstance(type_, ty.Vector):
            return [self.zero(type_.item) for _ in range(self.value(type_.size))]
        if isinstance(type_, ty.Struct):
            return [self.zero(part) for _, part in type_.fields]
        return 0.0 if type_ == t.F32 else False if type_ == t.BOOL else "" if type_ == t.STRING else 0

    # -- statements

    def run(self, item: Any) -> None:
        match item:
            case ty.Block(items):
                for inner in items:
                    self.run(inner)
            case ty.Declare(key, type_, value):
                self.locals[key] = self.zero(type_) if value is None else copy(self.value(value))
            case ty.Do(value):
                self.value(value)
            case ty.Push(value):
                self.given.append(freeze(self.value(value)))
            case ty.Print(value, line):
                self.texts[-1] += self.value(value) + ("\n" if line else "")
            case ty.Send(portal, handler, args):
                told = [copy(self.value(arg)) for arg in args]
                for channel in self.out:
                    if channel.portal == portal.name:
                        due = channel.due(self.fired, channel.latency(item))
                        channel.waiting.append((due, handler, copy(told)))
            case ty.If(cond, then, other):
                if self.value(cond):
                    self.run(then)
                elif other is not None:
                    self.run(other)
            case ty.For(first, cond, steps, body):
                for stmt in first:
                    self.run(stmt)
                while self.value(cond):
                    if self.turn(body):
                        return
                    for step in steps:
                        self.value(step)
            case ty.While(cond, body, late):
                while late or self.value(cond):
                    late = False
                    if self.turn(body):
                        return
            case ty.Break():
                raise Leave("break")
            case ty.Continue():
                raise Leave("continue")
            case ty.Return(value):
                raise Leave("return", None if value is None else copy(self.value(value)))
            case _:
                raise NotImplementedError(item)

    def turn(self, body: ty.Block) -> bool:
        try:
            self.run(body)
        except Leave as leave:
            if leave.how == "return":
                raise
            return leave.how == "break"
        return False

    # -- expressions

    def value(self, expr: Any) -> Any:
        match expr:
            case ty.Constant(_, value):
                return value
            case ty.Local(_, key):
                return self.locals[key]
            case ty.Field(_, name):
                return self.fields[name]
            case ty.Param(_, name):
                return self.node.values[name]
            case ty.Peek(_, index):
                where = self.value(index)
                if where >= len(self.taken):
                    raise Short
                return self.taken[where]
            case ty.Pop():
                if not self.taken:
                    raise Short
                return self.taken.popleft()
            case ty.Apply(type_, operation, args):
                return self.apply(operation, type_, [self.value(arg) for arg in args], args[0].type)
            case ty.Logic(_, operation, left, right):
                first = self.value(left)
                return first if first == (operation == "or") else self.value(right)
            case ty.Choose(_, cond, then, other):
                return self.value(then) if self.value(cond) else self.value(other)
            case ty.At(_, array, index):
                found, where = self.value(array), self.value(index)
                if not 0 <= where < len(found):
                    raise Trapped
                return found[where]
            case ty.Display(_, items) | ty.Make(_, items):
                return [self.value(item) for item in items]
            case ty.StructPart(_, whole, index):
                return self.value(whole)[index]
            case ty.Call(_, name, args, changes):
                given = enumerate(args)
                return self.call(
                    name, [self.value(x) if i in changes else copy(self.value(x)) for i, x in given]
                )
            case ty.Update():
                return self.update(expr)
            case ty.Old():
                return self.old
            case _:
                raise NotImplementedError(expr)

    def call(self, name: str, args: list[Any]) -> Any:
        helper = next(h for h in self.node.filter.helpers if h.name == name)
        saved, self.locals = self.locals, {p.key: a for p, a in zip(helper.params, args, strict=True)}
        try:
            self.run(helper.body)
        except Leave as leave:
            return leave.value
        finally:
            self.locals = saved
        return None

    def update(self, expr: ty.Update) -> Any:
        places: list[Any] = []
        base: Any = expr.place
        while isinstance(base, ty.At | ty.StructPart):
            places.insert(0, base.index)
            base = base.array if isinstance(base, ty.At) else base.value
        places = [place if isinstance(place, int) else self.value(place) for place in places]
        local = isinstance(base, ty.Local)
        holder: Any = self.locals if local else self.fields
        key: Any = base.key if local else base.name
        for place in places:
            holder, key = holder[key], place
            if not 0 <= key < len(holder):
                raise Trapped
        old, outer = copy(holder[key]), self.old
        self.old = old
        new = operand = copy(self.value(expr.value))
        self.old = outer
        if expr.operation is not None:
            new = self.apply(expr.operation, expr.type, [old, operand], expr.type)
        if isinstance(old, list):  # a function may change the array of its caller
            holder[key][:] = new
        else:
            holder[key] = new
        return old if expr.after else new

    def complex(self, operation: str, x: Any, y: Any) -> Any:
        """Operations of pairs, rounded after each step."""
        (a, b), (c, d) = x, y

        def f(value: float) -> float:
            return single(value)

        match operation:
            case "add" | "sub":
                sign = 1 if operation == "add" else -1
                return [f(a + sign * c), f(b + sign * d)]
            case "mul":
                return [f(f(a * c) - f(b * d)), f(f(a * d) + f(b * c))]
            case "div":
                size = f(f(c * c) + f(d * d))
                return [f(f(f(a * c) + f(b * d)) / size), f(f(f(b * c) - f(a * d)) / size)]
            case "neg":
                return [-a, -b]
            case "eq":
                return a == c and b == d
            case "abs":
                return f(math.sqrt(f(f(a * a) + f(b * b))))
            case "arg":
                return f(math.atan2(b, a))
            case "exp":
                size = f(math.exp(a))
                return [f(size * f(math.cos(b))), f(size * f(math.sin(b)))]
            case "log":
                return [f(math.log(f(math.sqrt(f(f(a * a) + f(b * b)))))), f(math.atan2(b, a))]
            case "sin" | "cos" | "sinh" | "cosh":
                x, y, turned = (a, b, False) if operation in ("sin", "cos") else (b, a, True)
                even, odd = f(f(math.cos(x)) * f(math.cosh(y))), f(f(math.sin(x)) * f(math.sinh(y)))
                left, right = f(f(math.sin(x)) * f(math.cosh(y))), f(f(math.cos(x)) * f(math.sinh(y)))
                if operation.startswith("cos"):
                    return [even, odd if turned else -odd]
                return [right, left] if turned else [left, right]
            case "text":
                re, im = text(a, t.F32), text(b, t.F32)
                return f"{re}{im}i" if im.startswith("-") else f"{re}+{im}i"
            case "sqrt":
                size = f(math.sqrt(f(math.sqrt(f(f(a * a) + f(b * b))))))
                angle = f(0.5 * f(math.atan2(b, a)))
                return [f(size * f(math.cos(angle))), f(size * f(math.sin(angle)))]
            case _:
                raise NotImplementedError(operation)

    def apply(self, operation: str, type_: Any, args: list[Any], of: Any) -> Any:
        a, b = args[0], args[-1]
        if operation == "complex.form":
            return f"{a % b[0]}{'' if (a % b[1]).startswith('-') else '+'}{a % b[1]}i"
        if operation.startswith("complex."):
            return self.complex(operation.removeprefix("complex."), a, b)
        match operation:
            case "random.next":
                return step(step(a))
            case "random.value":
                first, second = step(a), step(step(a))
                return single(((first >> 22 << 27) + (second >> 21)) / 2**53)
            case "+%":
                return wrap(a + b)
            case "-%":
                return wrap(a - b)
            case "*%":
                return wrap(a * b)
            case "neg%":
                return wrap(-a)
            case "abs" if type_ == t.I32:
                return wrap(abs(a))
            case "div.trunc.wrap" | "rem.trunc.wrap":
                if b == 0:
                    raise Trapped
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                return wrap(quotient if operation == "div.trunc.wrap" else a - quotient * b)
            case "&":
                return a & b
            case "|":
                return a | b
            case "^":
                return a ^ b
            case "~":
                return ~a
            case "<<":
                return wrap(a << (b % 32))
            case ">>":
                return a >> (b % 32)
            case "==" | "!=" | "<" | "<=" | ">" | ">=":
                return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[
                    operation
                ]
            case "not":
                return not a
            case "neg":
                return -a
            case "+":
                return a + b if type_ == t.STRING else single(a + b)
            case "-":
                return single(a - b)
            case "*":
                return single(a * b)
            case "/":
                if b == 0:
                    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
                return single(a / b)
            case "f32":
                return single(float(a))
            case "f64":
                return float(a)
            case "trunc":
                return float(math.trunc(a))
            case "round":
                return math.copysign(math.floor(abs(a) + 0.5), a)
            case "i32.wrap":
                return wrap(math.trunc(a)) if abs(a) < 1 << 31 else -(1 << 31)
            case "rem.trunc":
                return single(math.fmod(a, b))
            case "string":
                return text(a, of)
            case "format":
                return a % b
            case "min" | "max":
                return min(a, b) if operation == "min" else max(a, b)
            case "abs":
                return abs(a)
            case "sqrt" | "sin" | "cos" | "tan" | "atan" | "exp" | "log" | "pow" | "atan2" | "floor" | "ceil":
                return single(float(getattr(math, operation)(*args)))
            case _:
                raise NotImplementedError(operation)


@define(eq=False)
class Front(Filter):
    """A filter that only passes on what its firings depend on."""

    history: list[dict[int, int]] = field(factory=list)

    def work(self, body: ty.Block, pop: int) -> None:
        prework = self.node.first if body is not self.node.filter.work.body else None
        rates = prework or self.node.rates
        self.fired += 1
        front = dict(self.history[-1]) if self.history else {}
        for item in list(self.taken)[: max(rates.peek, rates.pop)]:
            front = later(front, item)
        front[id(self.node)] = self.fired
        self.history.append(front)
        for _ in range(rates.pop):
            self.taken.popleft()
        for _ in range(1 if rates.push is None else rates.push):  # enough will come of what differs
            self.given.append(front)


@define(eq=False)
class Meeting(Joiner):
    """A joiner whose items depend on all that went before them, from whichever side these came."""

    front: dict[int, int] = field(factory=dict)

    def joined(self, item: Any) -> Any:
        self.front = later(self.front, item)
        return self.front


def later(front: dict[int, int], item: Any) -> dict[int, int]:
    """What depends on both; an item of an input, or one that waits in a loop from the beginning, depends on nothing."""
    if not isinstance(item, dict):
        return front
    return {key: max(front.get(key, 0), item.get(key, 0)) for key in {*front, *item}}


def step(state: int) -> int:
    """The next state of a random generator, as it is known from Java."""
    return (state * 0x5DEECE66D + 0xB) % 2**48


def text(value: Any, type_: Any) -> str:
    """What is printed: of a float the fewest digits that read back to the same single."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_ != t.F32:
        return str(value)
    for digits in range(1, 10):
        short = float(f"{value:.{digits - 1}e}")
        if single(short) == value:
            return repr(short)
    return repr(value)


def copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: copy(item) for name, item in value.items()}
    return [copy(item) for item in value] if isinstance(value, list | tuple) else value


def freeze(value: Any) -> Any:
    return tuple(freeze(item) for item in value) if isinstance(value, list | tuple) else value
