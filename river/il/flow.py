"""What a body does with its item: a conservative abstract reading of one handler.

Every value is described by where it comes from: an unchanged part of the item, the key of the firing, a record or list
made of such, a place in a variable, or anything. `model` and `verify` ask the findings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from river.classes import define, field, frozen
from river.il.annotations import row_type
from river.il.trees import Same, SameBody
from river.lang import typed
from river.lang import types as t
from river.lang.dataflow import Loop, Reading
from river.lang.operations import OPERATIONS, Borrows, Change
from river.lang.trees import effect, nodes, root

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

Path = tuple[int | str, ...]
"""Positions of fields, and `ELEMENT` for any element of a list; `ROW` for any row of a delta, inserted or deleted."""

ELEMENT: Final = "*"
ROW: Final = "row"


@frozen
class Nothing:
    """No value has been seen yet."""


@frozen
class Anything:
    """A value of which nothing is known."""


@frozen
class ItemPart:
    """An unchanged part of the item of `port`; the whole item if `path` is empty."""

    port: int
    path: Path = ()


@frozen
class Key:
    """The key of a merge, or of a mark."""


@frozen
class Construction:
    """A record or tuple of these."""

    values: tuple[Origin, ...]


@frozen
class Items:
    """A list, all of whose elements come from `item`."""

    item: Origin


@frozen
class StatePlace:
    """A place in variable `variable`: inside the entry of `key`, or (None) the variable as a whole."""

    variable: int
    key: Origin | None = None


Origin = Nothing | Anything | ItemPart | Key | Construction | Items | StatePlace


def join(a: Origin, b: Origin) -> Origin:
    """What is true of both."""
    match a, b:
        case Nothing(), _:
            return b
        case _, Nothing():
            return a
        case _ if a == b:
            return a
        case Construction(left), Construction(right) if len(left) == len(right):
            return Construction(tuple(map(join, left, right)))
        case (Construction(values), ItemPart() as whole) | (ItemPart() as whole, Construction(values)) if (
            values
        ):
            return join(Construction(values), _apart(whole, len(values)))
        case Items(left), Items(right):
            return Items(join(left, right))
        case StatePlace(left, _), StatePlace(right, _) if left == right:
            return StatePlace(left)
        case _:
            return Anything()


def _apart(whole: ItemPart, count: int) -> Construction:
    """A record or tuple as one of its fields."""
    return Construction(tuple(part(whole, i) for i in range(count)))


def part(origin: Origin, index: int) -> Origin:
    """Where a field of a value comes from."""
    match origin:
        case ItemPart(port, path):
            return ItemPart(port, (*path, index))
        case Construction(values):
            return values[index]
        case StatePlace() | Nothing():
            return origin
        case _:
            return Anything()


@frozen
class Access:
    """A touch of variable `variable`: of the entry of `key`, or of the whole (None)."""

    variable: int
    key: Origin | None
    write: bool


@define
class Findings:
    """What was seen in one handler.

    `reads` are the parts of items whose value matters to anything but being passed on. `plain`: a variable's value is used
    in another way than being accumulated into; `accumulated` are the operations by which, per variable, and `begun` what an
    entry begins with that is not there, per variable and type. `bounded`: entries are taken out at an end of a variable.
    """

    emits: list[tuple[int, Origin]] = field(factory=list[tuple[int, Origin]])
    marks: list[tuple[int, Origin]] = field(factory=list[tuple[int, Origin]])
    accesses: set[Access] = field(factory=set[Access])
    reads: set[ItemPart] = field(factory=set[ItemPart])
    plain: bool = False
    bounded: bool = False
    accumulated: set[tuple[int, str]] = field(factory=set[tuple[int, str]])
    begun: dict[tuple[int, t.Type], typed.Expr] = field(factory=dict["tuple[int, t.Type]", typed.Expr])

    def touched(self) -> int:
        """Grows whenever something new is seen."""
        return len(self.accesses) + len(self.reads) + len(self.accumulated) + self.plain + self.bounded


def item_findings(op: typed.Operator) -> tuple[Findings, ...]:
    """What each handler of `op` does, the mark handler last; `first` and rated windows are taken for anything."""
    return _item_findings(SameBody(op))


@lru_cache(8192)
def _item_findings(same: Same[typed.Operator]) -> tuple[Findings, ...]:
    """They are asked for often while passes look at a program; operators that do not change are the same objects."""
    op = same.value
    found = [_read(op, h.body, {0: ItemPart(h.port)}) for h in (*op.items, *op.phases)]
    for rated in (op.first, op.rated):
        if rated is not None:
            windows = {i: Items(ItemPart(rate.port)) for i, rate in enumerate(rated.rates)}
            found.append(_read(op, rated.body, dict(windows)))
    if op.merge is not None:
        sides: dict[int, Origin] = {i + 1: ItemPart(port) for i, port in enumerate(op.merge.ports)}
        found.append(_read(op, op.merge.body, {0: Key(), **sides}))
    if op.mark is not None:
        found.append(_read(op, op.mark.body, {0: Key()}))
    return tuple(found)


def stamps_by_items(op: typed.Operator, out: int) -> bool:
    """Whether what leaves by a stamped output may have stamps that are made of anything in items but their stamps.

    Such stamps need not ascend. Nor need those of a variable, but where only this operator writes it, it counts up, as a rule.
    """
    type_, by = op.outs[out].type, op.outs[out].by
    place = type_.index(by) if isinstance(type_, t.Record) and by is not None else None
    if place is None:
        return False
    for found in item_findings(op):
        for stamp in (part(value, place) for sent, value in found.emits if sent == out):
            match stamp:
                case Key() | StatePlace() | Nothing():
                    made = False
                case Anything():
                    made = not all(_is_stamp(op, read) for read in found.reads)
                case _:
                    made = not _is_stamp(op, stamp)
            if made:
                return True
    return False


def _is_stamp(op: typed.Operator, origin: Origin) -> bool:
    if not isinstance(origin, ItemPart):
        return False
    port = op.ports[origin.port]
    return (
        port.by is not None and isinstance(port.type, t.Record) and origin.path == (port.type.index(port.by),)
    )


def _read(op: typed.Operator, body: typed.Block, slots: dict[int, Origin]) -> Findings:
    reading = _Origins(op.fns, dict(slots), Nothing(), op=op, findings=Findings())

    def once() -> None:
        reading.findings.emits.clear()
        reading.findings.marks.clear()
        reading.known.clear()
        reading.block(body)

    reading.settle(once)
    return reading.findings


@define(eq=False, kw_only=True)
class _Origins(Reading[Origin]):
    """The reading of one handler, or of a function that it calls. What is forgotten where two facts meet counts as used."""

    op: typed.Operator
    findings: Findings

    # -- the lattice

    def join(self, a: Origin, b: Origin) -> Origin:
        match a, b:
            case Construction(left), Construction(right) if len(left) == len(right):
                return Construction(tuple(map(self.join, left, right)))
            case (Construction(values), ItemPart() as whole) | (
                ItemPart() as whole,
                Construction(values),
            ) if values:
                return self.join(Construction(values), _apart(whole, len(values)))
            case Items(left), Items(right):
                return Items(self.join(left, right))
            case _:
                both = join(a, b)
                for origin in (a, b):
                    if both not in (origin, Nothing()) and not isinstance(origin, Nothing):
                        self.use(origin)
                return both

    def nothing(self) -> Origin:
        return Nothing()

    def found(self) -> Hashable:
        return self.findings.touched()

    # -- statements

    def present(self, _bind: typed.Bind, fact: Origin, /) -> Origin:
        if not isinstance(fact, ItemPart) or fact.path:  # presence of a side is not a field
            self.use(fact)
        return fact

    def decide(self, _node: typed.Branch | Loop, fact: Origin, /) -> None:
        self.use(fact)

    def assign(self, item: typed.Assign) -> None:
        place, value = item.place, item.value
        target = self.of(place)
        if isinstance(target, StatePlace):
            self.write(target, accumulation(place, value))
            others = other_operands(place, value)
            for operand in (value,) if others is None else others:
                self.use(self.of(operand))
            return
        origin = self.of(value)
        match place:
            case typed.Local(_, slot, _, _):
                self.bind(slot, origin)
            case _:
                self.use(origin)
                self.spoil(place)

    def spoil(self, place: typed.Expr | typed.Lambda) -> None:
        """Forgets what was known of a local of which some part was changed."""
        changed = root(place)
        if isinstance(changed, typed.Local):
            self.bind(changed.slot, Anything())

    def enter(self, item: typed.With) -> None:
        place = self.entry(self.of(item.container), item.container.type, self.of(item.key))
        self.bind(item.slot, place)
        if item.default is not None:
            self.use(self.of(item.default))
        if not isinstance(place, StatePlace):
            return
        if item.default is None or not is_closed(item.default):
            self.findings.plain = True  # whether it traps, or how it begins, depends on what came before
        else:
            first = self.findings.begun.setdefault((place.variable, item.default.type), item.default)
            self.findings.plain = self.findings.plain or first != item.default

    def drop(self, item: typed.Drop) -> None:
        self.write(self.slots.get(item.slot, Anything()))

    def items(self, loop: typed.For | typed.Comprehension, fact: Origin | None) -> tuple[Origin, ...]:
        if fact is None or isinstance(loop.range, typed.Counted):
            return (Anything(),)
        element = self.element(fact)
        pairs = isinstance(loop.range.type, t.Map | t.OMap)
        last = len(loop.slots) - 1
        return tuple(
            element if last == 0 or (i == last and not pairs) else Anything() for i in range(last + 1)
        )

    def element(self, origin: Origin) -> Origin:
        """What the elements of a container come from; looking at all of them."""
        match origin:
            case Items(item):
                return item
            case ItemPart(port, (1,) | (2,)) if row_type(self.op.ports[port].type) is not None:
                return ItemPart(port, (ROW,))
            case ItemPart(port, path):
                return ItemPart(port, (*path, ELEMENT))
            case _:
                self.use(origin)
                return Anything()

    def send(self, item: typed.Emit | typed.Mark) -> None:
        found = self.findings.emits if isinstance(item, typed.Emit) else self.findings.marks
        found.append((item.out, self.passed(self.of(item.value))))

    # -- expressions

    def leaf(self, expr: typed.Literal | typed.ConstRef | typed.State) -> Origin:
        return StatePlace(expr.index) if isinstance(expr, typed.State) else Anything()

    def made(self, expr: typed.Expr, facts: tuple[Origin, ...]) -> Origin:
        match expr:
            case typed.Get(_, _, index, _):
                return part(facts[0], index)
            case typed.At(_, value, _, _):
                return self.at(value.type, *facts)
            case typed.Apply():
                return self.operation(expr, facts)
            case typed.Some():
                return facts[0]
            case typed.If():
                self.use(facts[0])
                return self.join(facts[1], facts[2])
            case typed.MakeRecord():
                return Construction(facts)
            case typed.MakeList():
                return Items(self.joined(facts))
            case typed.Comprehension():
                return Items(facts[0])
            case _:
                for fact in facts:
                    self.use(fact)
                empty = isinstance(expr, typed.MakeMap) and isinstance(expr.type, t.List | t.Deque | t.Bag)
                return Items(Nothing()) if empty else Anything()

    def joined(self, origins: Iterable[Origin]) -> Origin:
        found: Origin = Nothing()
        for origin in origins:
            found = self.join(found, origin)
        return found

    def at(self, type_: t.Type, origin: Origin, index: Origin) -> Origin:
        if isinstance(type_, t.Map | t.OMap):
            return self.entry(origin, type_, index)
        self.use(index)
        return origin if isinstance(origin, StatePlace) else self.element(origin)

    def entry(self, origin: Origin, type_: t.Type, key: Origin) -> Origin:
        """The entry of `key` in a map; the key of the outermost map counts."""
        if not isinstance(origin, StatePlace):
            self.use(key)
            self.use(origin)
            return Anything()
        if origin.key is not None or not isinstance(type_, t.Map | t.OMap):
            self.use(key)
            return origin
        self.see(key)
        self.findings.accesses.add(Access(origin.variable, key, write=False))
        return StatePlace(origin.variable, key)

    def operation(self, expr: typed.Apply, facts: tuple[Origin, ...]) -> Origin:
        head = expr.args[0] if expr.args else None
        if head is None or isinstance(head, typed.Lambda):
            return Anything()
        stated, changes = effect(expr), OPERATIONS[expr.operation].mutates is not None
        origin, rest = facts[0], facts[1:]
        if stated.at_key and isinstance(head.type, t.Map | t.OMap):
            place = self.entry(origin, head.type, rest[0])
            self.use_all(rest[1:])
            if changes:
                self.write(place)
                self.spoil(head)
            self.use(place)
            return Anything()
        if stated.borrows is Borrows.ITSELF:
            return origin
        if changes:
            return self.mutation(expr, head, facts)
        self.use(origin)
        self.use_all(rest)
        return Anything()

    def mutation(self, expr: typed.Apply, head: typed.Expr, facts: tuple[Origin, ...]) -> Origin:
        """An operation that changes its first argument."""
        stated, origin = effect(expr), facts[0]
        if isinstance(origin, StatePlace):
            if stated.bounds:
                self.findings.accesses.add(Access(origin.variable, origin.key, write=True))
                self.findings.bounded = True
            else:
                self.write(origin, stated.combines)
            self.use_all(facts[1:])
            return Anything()
        if isinstance(head, typed.Local) and isinstance(origin, Items):
            if stated.change is Change.GROWS and stated.puts is not None:
                self.bind(head.slot, Items(facts[stated.puts]))
                return Anything()
            if stated.change is Change.SHRINKS:
                self.use_all(facts[1:])
                return origin.item
        self.use_all(facts[1:])
        self.spoil(head)
        return Anything()

    def use_all(self, origins: Iterable[Origin]) -> None:
        for origin in origins:
            self.use(origin)

    def given(
        self, _expr: typed.Apply, function: typed.Lambda, facts: tuple[Origin, ...], /
    ) -> tuple[Origin, ...]:
        """The one parameter of a lambda is an element of the first operand."""
        element = self.element(facts[0]) if facts and isinstance(facts[0], Items | ItemPart) else Anything()
        if len(function.slots) == 1:
            return (element,)
        self.use(element)
        return (Anything(),) * len(function.slots)

    # -- functions

    def opaque(self, _expr: typed.Call, args: tuple[Origin, ...], /) -> Origin:
        for arg in args:
            self.use(arg)
            self.write(arg)
        return Anything()

    def back(self, expr: typed.Call, inner: Reading[Origin]) -> None:
        for i, (param, arg) in enumerate(zip(self.fns[expr.function].params, expr.args, strict=True)):
            fact = inner.slots[i]
            if not param.ref or isinstance(fact, StatePlace):
                continue
            match arg:
                case typed.Local(_, slot, _, _):
                    self.bind(slot, fact)
                case _:
                    self.use(fact)
                    self.spoil(arg)

    # -- effects

    def see(self, origin: Origin) -> None:
        """The value matters: notes the parts of items that it is made of."""
        match origin:
            case ItemPart():
                self.findings.reads.add(origin)
            case Construction(values):
                for value in values:
                    self.see(value)
            case Items(item):
                self.see(item)
            case _:
                pass

    def use(self, origin: Origin) -> None:
        """The value matters; a use of a variable's value is an access to it."""
        self.see(origin)
        match origin:
            case StatePlace(variable, key):
                self.findings.plain = True
                self.findings.accesses.add(Access(variable, key, write=False))
            case Construction(values):
                for value in values:
                    self.use(value)
            case Items(item):
                self.use(item)
            case _:
                pass

    def passed(self, origin: Origin) -> Origin:
        """The value leaves: parts of items do so unread, the values of variables are used."""
        match origin:
            case StatePlace():
                self.use(origin)
                return Anything()
            case Construction(values):
                return Construction(tuple(map(self.passed, values)))
            case Items(item):
                return Items(self.passed(item))
            case _:
                return origin

    def write(self, origin: Origin, operation: str | None = None) -> None:
        """A variable is changed: accumulated into by `operation`, or in any other way."""
        match origin:
            case StatePlace(variable, key):
                self.findings.accesses.add(Access(variable, key, write=True))
                if operation is None:
                    self.findings.plain = True
                else:
                    self.findings.accumulated.add((variable, operation))
            case _:
                pass


def is_closed(expr: typed.Expr) -> bool:
    """Whether an expression has the same value in every firing."""
    return not any(isinstance(node, typed.Local | typed.State) for node in nodes(expr))


def accumulation(place: typed.Expr, value: typed.Expr) -> str | None:
    """The name by which `place = place op e` accumulates, if it may be done in any order."""
    if not isinstance(value, typed.Apply) or other_operands(place, value) is None:
        return None
    return effect(value).combines


def other_operands(place: typed.Expr, value: typed.Expr) -> tuple[typed.Expr, ...] | None:
    """The other operand of `place op e` or `e op place`, None if `value` is no such."""
    match value:
        case typed.Apply(_, _, (left, right), _) if not isinstance(left, typed.Lambda) and not isinstance(
            right, typed.Lambda
        ):
            if left == place:
                return (right,)
            return (left,) if right == place else None
        case _:
            return None
