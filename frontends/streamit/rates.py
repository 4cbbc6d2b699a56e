"""How many items a firing takes, sees and gives: found by intervals, for one choice of parameters."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from frontends.streamit import constants
from frontends.streamit import typed as ty
from frontends.streamit.trees import breaks as breaks_out
from frontends.streamit.trees import pure, read, updated
from river.classes import evolve, frozen
from river.il.trees import children, walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from river.report import Report

Interval = tuple[int, int]
Known = Mapping[str, "Interval | None"]

THIRD = MappingProxyType({"push": "pushes", "pop": "pops", "peek": "looks at"})

LOW, HIGH = -(1 << 31), (1 << 31) - 1

# ---------------------------------------------------------------------------------------------- counted loops


@frozen
class CountedLoop:
    """`for (int key = start; key < bound; key += step)` whose body leaves the counter and the bound alone."""

    key: str
    start: ty.Expr
    bound: ty.Expr
    closed: bool  # the bound itself is counted, too
    step: int
    body: ty.Block


def counted(loop: ty.For) -> CountedLoop | None:
    """The loop as a counted one, or None."""
    match loop:
        case ty.For(
            (ty.Declare(key, t.I32, start),),
            ty.Apply(_, ("<" | "<=" | ">" | ">=") as compare, (ty.Local(_, tested), bound)),
            (ty.Update(_, ty.Local(_, stepped), ("+%" | "-%") as operation, ty.Constant(_, size)),),
            body,
        ) if start is not None and key == tested == stepped and size != 0:
            step = size if operation == "+%" else -size
            changed = updated(body)
            steady = pure(bound) and not {key, *changed} & read(bound) and key not in changed
            steady = steady and not _moves(body, bound)
            if (step > 0) == (compare in ("<", "<=")) and steady:
                return CountedLoop(key, start, bound, compare in ("<=", ">="), step, body)
        case _:
            pass
    return None


def _moves(body: ty.Block, bound: ty.Expr) -> bool:
    """Whether the body might change a field or an item in the bound: by calling a function, or by taking an item."""
    kinds = {type(node) for node in walk(bound)}
    inside = {type(node) for node in walk(body)}
    return bool(kinds & {ty.Field, ty.Peek}) and (
        ty.Call in inside or (ty.Peek in kinds and ty.Pop in inside)
    )


def trips(start: int, bound: int, *, closed: bool, step: int) -> int:
    """How often the body runs."""
    distance = (bound - start) * (1 if step > 0 else -1) + closed
    return max(0, -(-distance // abs(step)))


# ---------------------------------------------------------------------------------------------- intervals


@frozen
class Intervals:
    """What is known of whole numbers: parameters exactly, counters of loops between bounds."""

    values: Mapping[str, Any]
    known: Known

    def within(self, more: Known) -> Intervals:
        """The same, knowing more."""
        return evolve(self, known={**self.known, **more})

    def exact(self, expr: ty.Expr) -> Any:
        """The value of an expression, None when it is not known."""
        pinned = {
            key: found[0] for key, found in self.known.items() if found is not None and found[0] == found[1]
        }
        try:
            return constants.evaluate(expr, ChainMap(pinned, dict(self.values)))
        except (LookupError, TrapSignal):
            return None

    def of(self, expr: ty.Expr) -> Interval | None:
        """Least and greatest value of a whole number, None when that is not known."""
        exact = self.exact(expr)
        if isinstance(exact, int):
            return exact, exact
        match expr:
            case ty.Local(_, key):
                return self.known.get(key)
            case ty.Apply(_, operation, (left, right)):
                a, b = self.of(left), self.of(right)
                return None if a is None or b is None else _combine(operation, a, b)
            case ty.Apply(_, "neg%", (value,)):
                a = self.of(value)
                return None if a is None else _fit(-a[1], -a[0])
            case ty.Choose(_, cond, then, other):
                truth = self.truth(cond)
                if truth is not None:
                    return self.of(then if truth else other)
                a, b = self.of(then), self.of(other)
                return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
            case _:
                return None

    def truth(self, cond: ty.Expr) -> bool | None:
        """Whether a condition holds, None when it may or may not."""
        exact = self.exact(cond)
        if isinstance(exact, bool):
            return exact
        match cond:
            case ty.Apply(_, "not", (value,)):
                truth = self.truth(value)
                return None if truth is None else not truth
            case ty.Logic(_, operation, left, right):
                decides = operation == "or"
                sides = (self.truth(left), self.truth(right))
                return decides if decides in sides else None if None in sides else not decides
            case ty.Apply(_, ("<" | "<=" | ">" | ">=") as compare, (left, right)):
                a, b = self.of(left), self.of(right)
                if a is None or b is None:
                    return None
                if compare in (">", ">="):
                    a, b = b, a
                gap = 1 if compare in ("<", ">") else 0
                return True if a[1] + gap <= b[0] else False if a[0] + gap > b[1] else None
            case _:
                return None

    def turns(self, loop: CountedLoop) -> tuple[Interval, Interval] | None:
        """How often a counted loop turns, and the values of its counter."""
        start, bound = self.of(loop.start), self.of(loop.bound)
        if start is None or bound is None:
            return None
        ends = [trips(a, b, closed=loop.closed, step=loop.step) for a in start for b in bound]
        least, most = min(ends), max(ends)
        reach = max(0, most - 1) * loop.step
        counter = (start[0], start[1] + reach) if loop.step > 0 else (start[0] + reach, start[1])
        return ((least, most), counter) if counter[0] >= LOW and counter[1] <= HIGH else None


def _combine(operation: str, a: Interval, b: Interval) -> Interval | None:
    match operation:
        case "+%":
            return _fit(a[0] + b[0], a[1] + b[1])
        case "-%":
            return _fit(a[0] - b[1], a[1] - b[0])
        case "*%":
            corners = [x * y for x in a for y in b]
            return _fit(min(corners), max(corners))
        case "div.trunc.wrap" if b[0] > 0 and a[0] >= 0:
            return a[0] // b[1], a[1] // b[0]
        case "rem.trunc.wrap" if b[0] > 0 and a[0] >= 0:
            return 0, min(a[1], b[1] - 1)
        case "&" if b[0] >= 0:
            return 0, b[1]
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def _fit(low: int, high: int) -> Interval | None:
    return (low, high) if low >= LOW and high <= HIGH else None


# ---------------------------------------------------------------------------------------------- counting

Count = tuple[int, "int | None"]
ZERO: Count = (0, 0)


@frozen
class Effect:
    """Items that code takes and gives, at least and at most; and how many it must see (`need`).

    None: no bound is known. `sure`: the need is met on every path.
    """

    pops: Count = ZERO
    pushes: Count = ZERO
    need: int | None = 0
    sure: bool = True

    @property
    def nothing(self) -> bool:
        """Whether it has none."""
        return self.pops == self.pushes == ZERO and self.need == 0

    def then(self, other: Effect) -> Effect:
        """This, then the other."""
        behind = _sum(self.pops[1], other.need) if other.need != 0 else 0
        return Effect(
            _add(self.pops, other.pops), _add(self.pushes, other.pushes),
            None if self.need is None or behind is None else max(self.need, behind),
            self.sure and other.sure and (other.need == 0 or self.pops[0] == self.pops[1]),
        )  # fmt: skip

    def either(self, other: Effect) -> Effect:
        """This or the other."""
        need = None if self.need is None or other.need is None else max(self.need, other.need)
        sure = self.sure and other.sure and self.need == other.need
        return Effect(
            _hull(self.pops, other.pops),
            _hull(self.pushes, other.pushes),
            need,
            sure,
        )

    def times(self, turns: Count) -> Effect:
        """This, so many times."""
        if self.nothing:
            return self
        low, high = turns
        last = None if high is None else 0 if self.pops[1] == 0 else _product(max(0, high - 1), self.pops[1])
        need = 0 if self.need == 0 or high == 0 else _sum(last, self.need)
        sure = self.need == 0 or (self.sure and low == high)
        return Effect(_scale(self.pops, turns), _scale(self.pushes, turns), need, sure)


NOTHING = Effect()
UNKNOWN = Effect((0, None), (0, None), None, sure=False)


def _add(a: Count, b: Count) -> Count:
    return a[0] + b[0], _sum(a[1], b[1])


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _product(a: int, b: int | None) -> int | None:
    return None if b is None else a * b


def _hull(a: Count, b: Count) -> Count:
    return min(a[0], b[0]), None if a[1] is None or b[1] is None else max(a[1], b[1])


def _scale(a: Count, turns: Count) -> Count:
    if a == ZERO:
        return ZERO
    return a[0] * turns[0], None if a[1] is None or turns[1] is None else a[1] * turns[1]


@frozen
class _Counter:
    helpers: Mapping[str, ty.Helper]
    changed: frozenset[str]
    open: tuple[str, ...] = ()

    def block(self, items: Sequence[ty.Stmt], seen: Intervals) -> Effect:
        """The effect of statements."""
        total = NOTHING
        certain = True
        for item in items:
            effect, seen = self.statement(item, seen)
            total = total.then(effect if certain else effect.either(NOTHING))
            certain = certain and not leaves(item)
        return total

    def statement(self, item: ty.Stmt, seen: Intervals) -> tuple[Effect, Intervals]:
        """The effect of a statement, and what is known behind it."""
        match item:
            case ty.Declare(key, type_, value):
                effect = NOTHING if value is None else self.expr(value, seen)
                if type_ == ty.INT and value is not None and key not in self.changed:
                    seen = seen.within({key: seen.of(value)})
                return effect, seen
            case ty.Block(items):
                for inner in items:
                    if isinstance(inner, ty.Declare):  # `int a = 1, b = a;`: its names stay
                        seen = self.statement(inner, seen)[1]
                return self.block(items, seen), seen
            case ty.Push(value):
                return self.expr(value, seen).then(Effect(pushes=(1, 1))), seen
            case ty.If(cond, then, other):
                return self.branch(cond, then.items, () if other is None else other.items, seen), seen
            case ty.For():
                return self.loop(item, seen), seen
            case ty.While(cond, body, late):
                if late and seen.truth(cond) is False:  # it turns once
                    return self.block(body.items, seen), seen
                effect = self.block(body.items, seen).then(self.expr(cond, seen)).times((int(late), None))
                return self.expr(cond, seen).then(effect), seen
            case _:
                total = NOTHING
                for child in children(item):
                    total = total.then(self.expr(child, seen))
                return total, seen

    def branch(
        self, cond: ty.Expr, then: Sequence[ty.Stmt], other: Sequence[ty.Stmt], seen: Intervals
    ) -> Effect:
        """One of two blocks."""
        effect, truth = self.expr(cond, seen), seen.truth(cond)
        if truth is not None:
            return effect.then(self.block(then if truth else other, seen))
        return effect.then(self.block(then, seen).either(self.block(other, seen)))

    def loop(self, item: ty.For, seen: Intervals) -> Effect:
        """A `for` loop."""
        found = counted(item)
        turns = None if found is None else seen.turns(found)
        if found is None or turns is None:
            begin = self.block(item.first, seen)
            steps = [ty.Do(step) for step in item.steps]
            inner = self.block([*item.body.items, *steps], seen).then(self.expr(item.cond, seen))
            return begin.then(self.expr(item.cond, seen)).then(inner.times((0, None)))
        count, counter = turns
        inner = self.block(found.body.items, seen.within({found.key: counter}))
        may_end = any(breaks(stmt) for stmt in found.body.items)
        return self.expr(found.start, seen).then(inner.times((0, count[1]) if may_end else count))

    def expr(self, node: s.Node, seen: Intervals) -> Effect:
        """The effect of evaluating an expression."""
        match node:
            case ty.Pop():
                return Effect(pops=(1, 1), need=1)
            case ty.Peek(_, index):
                where = seen.of(index)
                need = Effect(need=None, sure=False) if where is None else Effect(need=max(0, where[1] + 1))
                return self.expr(index, seen).then(need)
            case ty.Logic(_, _, left, right):
                return self.expr(left, seen).then(self.expr(right, seen).either(NOTHING))
            case ty.Choose(_, cond, then, other):
                truth = seen.truth(cond)
                a, b = self.expr(then, seen), self.expr(other, seen)
                return self.expr(cond, seen).then(a.either(b) if truth is None else a if truth else b)
            case ty.Call(_, name, args):
                total = NOTHING
                for arg in args:
                    total = total.then(self.expr(arg, seen))
                return total.then(self.helper(name, args, seen))
            case _:
                total = NOTHING
                for child in children(node):
                    total = total.then(self.expr(child, seen))
                return total

    def helper(self, name: str, args: Sequence[ty.Expr], seen: Intervals) -> Effect:
        """What a function of the filter takes and gives; its written rates rule, where the call says what they are."""
        helper = self.helpers[name]
        given = {p.key: seen.of(a) for p, a in zip(helper.params, args, strict=True) if p.type == ty.INT}
        called = Intervals(seen.values, given)
        pop, peek, push = (
            None if rate is None else called.exact(rate) for rate in (helper.pop, helper.peek, helper.push)
        )
        if name in self.open:
            found = UNKNOWN if self.streams(name) else NOTHING
        else:
            changed = frozenset(updated(helper.body))
            inner = evolve(self, open=(*self.open, name), changed=changed)
            steady = {key: value for key, value in given.items() if key not in changed}
            found = inner.block(helper.body.items, Intervals(seen.values, steady))
        if pop is not None:
            need = max(pop, peek or 0, found.need or 0)
            found = evolve(found, pops=(pop, pop), need=need, sure=found.sure and found.need is not None)
        return found if push is None else evolve(found, pushes=(push, push))

    def streams(self, name: str) -> bool:
        """Whether a function takes, sees or gives items, or one that it calls."""
        waiting, known = [name], {name}
        while waiting:
            for node in walk(self.helpers[waiting.pop()].body):
                if isinstance(node, ty.Push | ty.Pop | ty.Peek):
                    return True
                if isinstance(node, ty.Call) and node.helper not in known:
                    known.add(node.helper)
                    waiting.append(node.helper)
        return False


def leaves(item: ty.Stmt) -> bool:
    """Whether control may leave the middle of the block around the statement."""
    match item:
        case ty.Break() | ty.Continue() | ty.Return():
            return True
        case ty.If(_, then, other):
            return any(map(leaves, then.items)) or (other is not None and any(map(leaves, other.items)))
        case ty.Block(items):
            return any(map(leaves, items))
        case ty.For() | ty.While():
            return any(isinstance(node, ty.Return) for node in walk(item))
        case _:
            return False


def breaks(item: ty.Stmt) -> bool:
    """Whether the statement may end the loop around it."""
    return breaks_out(item, ty.Break, (ty.For, ty.While)) or any(
        isinstance(node, ty.Return) for node in walk(item)
    )


# ---------------------------------------------------------------------------------------------- the rates of a filter


def rates(filter_: ty.Filter, work: ty.Work, values: Mapping[str, Any], report: Report) -> ty.Rates:
    """The rates of a work function for values of the parameters: as stated, or else as counted.

    Raises: Failed, when it is reported (codes streamit-rate, streamit-pop-rate, streamit-push-rate, streamit-peek-rate).
    """
    helpers = {helper.name: helper for helper in filter_.helpers}
    counter = _Counter(helpers, frozenset(updated(work.body)))
    numbers = {name: (v, v) for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool)}
    effect = counter.block(work.body.items, Intervals(values, numbers))
    stated = _Stated(work, values, report)
    pop, push, peek = (
        stated.rate(work.pop, "pop"),
        stated.rate(work.push, "push"),
        stated.rate(work.peek, "peek"),
    )
    same = effect.pops == (pop, pop)
    if work.asks and (
        (pop is None and effect.pops[0] != effect.pops[1]) or (effect.need is None and (same or pop is None))
    ):
        least = max(1, effect.pops[0])
        return ty.Rates(least, least, stated.pushes(push, effect.pushes), asks=True)
    if pop is None:
        if effect.pops[0] != effect.pops[1]:
            raise stated.unknown("pop")
        pop = effect.pops[0]
    elif effect.pops[0] > pop:
        raise stated.wrong("streamit-pop-rate", "pop", pop, effect.pops)
    elif effect.pops[1] is not None and effect.pops[1] < pop:
        stated.fewer(pop, effect.pops)
    push = stated.pushes(push, effect.pushes)
    if peek is None:
        read_off = work.pop is None or work.asks
        if effect.need is None and read_off:
            raise stated.unknown("peek")
        peek = max(pop, effect.need or 0) if read_off or effect.sure else pop
    if effect.need is not None and effect.sure and effect.need > max(peek, pop):
        message = f"a firing looks at {effect.need} items, but `peek` is {max(peek, pop)}"
        help_line = (
            f"write `peek {effect.need}`; `peek(0)` is the next item, `peek({effect.need - 1})` the last"
        )
        raise report.error("streamit-peek-rate", message, (work.peek or work).span, help_line)
    return ty.Rates(pop, max(peek, pop), push)


def _allowed(rate: int, count: Count) -> bool:
    return count[0] <= rate and (count[1] is None or rate <= count[1])


@frozen
class _Stated:
    work: ty.Work
    values: Mapping[str, Any]
    report: Report

    def rate(self, expr: ty.Expr | None, word: str) -> int | None:
        """The value of a rate that is written."""
        if expr is None:
            return None
        value = Intervals(self.values, {}).exact(expr)
        if value is None or value < 0:
            said = "cannot be computed" if value is None else f"is {value}"
            raise self.report.error("streamit-rate", f"the {word} rate {said}", expr.span)
        return value

    def pushes(self, rate: int | None, found: Count) -> int | None:
        """How many items a firing gives, from the rate that is written and what the code says; None if that differs."""
        if rate is None:
            return found[0] if found[0] == found[1] and not self.work.free else None
        if not _allowed(rate, found):
            raise self.wrong("streamit-push-rate", "push", rate, found)
        return rate

    def unknown(self, word: str) -> Exception:
        """The error that a rate must be written."""
        message = f"how many items a firing {THIRD[word]} differs, or cannot be told from its code"
        help_line = f"state it: `work {word} ...`" + (
            "; `work pop *`, if it differs" if word == "pop" else ""
        )
        return self.report.error("streamit-rate", message, self.work.span, help_line)

    def fewer(self, rate: int, count: Count) -> None:
        """Warns that the code takes less than is stated."""
        found = f"{count[0]}" if count[0] == count[1] else f"{count[0]} to {count[1]}"
        span = (self.work.pop or self.work).span
        message = f"`pop` is {rate}, but a firing pops {found}: the rest is dropped"
        if not any(known.code == "streamit-pop-rate" and known.span == span for known in self.report.found):
            self.report.warn("streamit-pop-rate", message, span)

    def wrong(self, code: str, word: str, rate: int, count: Count) -> Exception:
        """The error that the code does something else than is stated."""
        low, high = count
        found = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
        span = ((self.work.pop if word == "pop" else self.work.push) or self.work).span
        help_line = (
            f"write `{word} {low}`, or change what it does" if low == high else f"`{word} *` leaves it open"
        )
        message = f"`{word}` is {rate}, but a firing {THIRD[word]} {found}"
        return self.report.error(code, message, span, help_line)
