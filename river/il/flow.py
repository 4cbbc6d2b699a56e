"""What a body does with its item: a conservative abstract reading of one handler.

Every value is described by where it comes from: an unchanged part of the item, the key of the firing, a record or list
made of such, a place in a variable, or anything. Loops and functions are read until nothing changes. `model` and
`verify` ask the findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from attrs import define, field, frozen

from river.il.annotations import row_type
from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

Path = tuple[int | str, ...]
"""Positions of fields, and `ELEMENT` for any element of a list; `ROW` for any row of a delta, inserted or deleted."""

ELEMENT: Final = "*"
ROW: Final = "row"
DEPTH: Final = 12  # nested calls that are read; deeper ones (recursion) are taken for anything


@frozen
class Nothing:
    """No value has been seen yet."""


@frozen
class Anything:
    """A value of which nothing is known."""


@frozen
class Part:
    """An unchanged part of the item of `port`; the whole item if `path` is empty."""

    port: int
    path: Path = ()


@frozen
class Key:
    """The key of a merge, or of a mark."""


@frozen
class Made:
    """A record or tuple of these."""

    values: tuple[Origin, ...]


@frozen
class Items:
    """A list, all of whose elements come from `item`."""

    item: Origin


@frozen
class Place:
    """A place in variable `variable`: inside the entry of `key`, or (None) the variable as a whole."""

    variable: int
    key: Origin | None = None


Origin = Nothing | Anything | Part | Key | Made | Items | Place


def join(a: Origin, b: Origin) -> Origin:
    """What is true of both."""
    match a, b:
        case Nothing(), _:
            return b
        case _, Nothing():
            return a
        case _ if a == b:
            return a
        case Made(left), Made(right) if len(left) == len(right):
            return Made(tuple(map(join, left, right)))
        case Items(left), Items(right):
            return Items(join(left, right))
        case Place(left, _), Place(right, _) if left == right:
            return Place(left)
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

    `reads` are the parts of items whose value matters to anything but being passed on. `ordered`: the order of the rows
    inside an item, or of the entries of a variable, is looked at. `plain`: a variable's value is used in another way
    than being accumulated into; `accumulated` are the operations by which, per variable.
    """

    emits: list[tuple[int, Origin]] = field(factory=list[tuple[int, Origin]])
    marks: list[tuple[int, Origin]] = field(factory=list[tuple[int, Origin]])
    accesses: set[Access] = field(factory=set[Access])
    reads: set[Part] = field(factory=set[Part])
    ordered: bool = False
    plain: bool = False
    accumulated: set[tuple[int, str]] = field(factory=set[tuple[int, str]])

    def touched(self) -> int:
        """Grows whenever something new is seen."""
        return len(self.accesses) + len(self.reads) + len(self.accumulated) + self.ordered + self.plain


KEYED: Final = frozenset(
    {"get", "has", "contains", "delete", "set"}
)  # on one entry of a map: (map, key, ...)
GROWING: Final = frozenset(
    {"push", "push_back", "add"}
)  # put their second argument into a list, deque or bag
SHRINKING: Final = frozenset({"pop", "pop_front", "pop_back", "remove"})
POSITIONAL: Final = frozenset({
    "get", "set", "slice", "take", "drop_first", "reverse", "index_of", "front", "back", "pop", "pop_front", "pop_back",
    "fold", "remove", "bag_minus", "join",
})  # fmt: skip
ACCUMULATING: Final = frozenset({"+%", "*%", "&", "|", "^", "min", "max", "add"})


def item_findings(op: typed.Operator) -> tuple[Findings, ...]:
    """What each handler of `op` does, the mark handler last; `first` and rated windows are taken for anything."""
    found = [_read(op, h.body, {0: Part(h.port)}) for h in (*op.items, *op.phases)]
    for rated in (op.first, op.rated):
        if rated is not None:
            windows = {i: Items(Part(rate.port)) for i, rate in enumerate(rated.rates)}
            found.append(_read(op, rated.body, dict(windows)))
    if op.merge is not None:
        sides: dict[int, Origin] = {i + 1: Part(port) for i, port in enumerate(op.merge.ports)}
        found.append(_read(op, op.merge.body, {0: Key(), **sides}))
    if op.mark is not None:
        found.append(_read(op, op.mark.body, {0: Key()}))
    return tuple(found)


def _read(op: typed.Operator, body: typed.Block, slots: dict[int, Origin]) -> Findings:
    reader = _Reader(op, Findings(), dict(slots), 0)
    while True:
        before = dict(reader.slots), reader.findings.touched()
        reader.findings.emits.clear()
        reader.findings.marks.clear()
        reader.block(body)
        if before == (reader.slots, reader.findings.touched()):
            return reader.findings


@define
class _Reader:
    op: typed.Operator
    findings: Findings
    slots: dict[int, Origin]
    depth: int
    returned: Origin = field(factory=Nothing)

    # -- statements

    def block(self, body: typed.Block) -> None:
        for item in body.items:
            self.statement(item)

    def statement(self, item: typed.Stmt) -> None:
        match item:
            case typed.Let(slot, _, value) | typed.Var(slot, _, value):
                self.bind(slot, self.of(value))
            case typed.Assign(place, value):
                self.assign(place, value)
            case typed.With(slot, _, container, key, default, body, _):
                self.bind(slot, self.entry(self.of(container), container.type, key))
                if default is not None:
                    self.use(self.of(default))
                elif isinstance(self.slots[slot], Place):
                    self.findings.plain = True  # whether it traps depends on what came before
                self.block(body)
            case typed.Drop(slot, _):
                self.write(self.slots.get(slot, Anything()))
            case typed.Branch(cond, then, other):
                match cond:
                    case typed.Bind(value, slot, _):
                        origin = self.of(value)
                        if not isinstance(origin, Part) or origin.path:  # presence of a side is not a field
                            self.use(origin)
                        self.bind(slot, origin)
                    case _:
                        self.use(self.of(cond))
                self.block(then)
                if other is not None:
                    self.block(other)
            case typed.For(_, slots, _, range_, body):
                self.loop(range_, slots)
                self.block(body)
            case typed.While(_, cond, body):
                self.use(self.of(cond))
                self.block(body)
            case typed.Return(value):
                if value is not None:
                    self.returned = self.blend(self.returned, self.of(value))
            case typed.Emit(out, value):
                self.findings.emits.append((out, self.passed(self.of(value))))
            case typed.Mark(out, value):
                self.findings.marks.append((out, self.passed(self.of(value))))
            case typed.Do(call):
                self.of(call)
            case typed.Break() | typed.Continue() | typed.Trap():
                pass
            case _:
                assert_never(item)

    def bind(self, slot: int, origin: Origin) -> None:
        self.slots[slot] = self.blend(self.slots.get(slot, Nothing()), origin)

    def blend(self, a: Origin, b: Origin) -> Origin:
        """What is true of both; what is forgotten by that counts as used."""
        match a, b:
            case Made(left), Made(right) if len(left) == len(right):
                return Made(tuple(map(self.blend, left, right)))
            case Items(left), Items(right):
                return Items(self.blend(left, right))
            case _:
                both = join(a, b)
                for origin in (a, b):
                    if both not in (origin, Nothing()) and not isinstance(origin, Nothing):
                        self.use(origin)
                return both

    def assign(self, place: typed.Expr, value: typed.Expr) -> None:
        target = self.of(place)
        if isinstance(target, Place):
            self.write(target, _accumulation(place, value))
            operands = _others(place, value)
            for operand in (value,) if operands is None else operands:
                self.use(self.of(operand))
            return
        origin = self.of(value)
        match place:
            case typed.Local(_, slot, _, _):
                self.bind(slot, origin)
            case _:
                self.use(origin)
                self.spoil(place)

    def spoil(self, place: typed.Expr) -> None:
        """Forgets what was known of a local of which some part was changed."""
        while isinstance(place, typed.Get | typed.At):
            place = place.value
        if isinstance(place, typed.Local):
            self.bind(place.slot, Anything())

    def loop(self, range_: typed.Counted | typed.Expr, slots: tuple[int, ...]) -> None:
        if isinstance(range_, typed.Counted):
            self.use(self.of(range_.low))
            self.use(self.of(range_.high))
            self.bind(slots[0], Anything())
            return
        origin = self.of(range_)
        if len(slots) == 2 and isinstance(range_.type, t.List | t.Array | t.Deque):
            self.findings.ordered = True  # positions are visible
        element = self.element(origin)
        for slot in slots:
            single = len(slots) == 1 or (slot == slots[-1] and not isinstance(range_.type, t.Map | t.OMap))
            self.bind(slot, element if single else Anything())

    def element(self, origin: Origin) -> Origin:
        """What the elements of a container come from; looking at all of them."""
        match origin:
            case Items(item):
                return item
            case Part(port, (1,) | (2,)) if row_type(self.op.ports[port].type) is not None:
                return Part(port, (ROW,))
            case Part(port, path):
                return Part(port, (*path, ELEMENT))
            case Place():
                self.use(origin)
                self.findings.ordered = True
                return Anything()
            case _:
                self.use(origin)
                return Anything()

    # -- expressions

    def of(self, expr: typed.Expr) -> Origin:
        match expr:
            case typed.Literal() | typed.ConstRef():
                return Anything()
            case typed.Local(_, slot, _, _):
                return self.slots.get(slot, Nothing())
            case typed.State(_, index, _):
                return Place(index)
            case typed.Get(_, value, index, _):
                return self.part(self.of(value), index)
            case typed.At(_, value, index, _):
                return self.at(value, index)
            case typed.Apply():
                return self.apply(expr)
            case typed.Call():
                return self.call(expr)
            case typed.Some(_, value):
                return self.of(value)
            case typed.If(_, cond, then, other):
                self.use(self.of(cond))
                return self.blend(self.of(then), self.of(other))
            case typed.Logic(_, _, left, right):
                self.use(self.of(left))
                self.use(self.of(right))
                return Anything()
            case typed.MakeRecord(_, values, _):
                return Made(tuple(map(self.of, values)))
            case typed.MakeList(_, values):
                return Items(self.joined(map(self.of, values)))
            case typed.MakeMap(type_, items):
                for key, value in items:
                    self.use(self.of(key))
                    self.use(self.of(value))
                return Items(Nothing()) if isinstance(type_, t.List | t.Deque | t.Bag) else Anything()
            case typed.Comprehension(_, value, slots, _, range_, cond):
                self.loop(range_, slots)
                if cond is not None:
                    self.use(self.of(cond))
                return Items(self.of(value))
            case _:
                assert_never(expr)

    def joined(self, origins: Iterable[Origin]) -> Origin:
        found: Origin = Nothing()
        for origin in origins:
            found = self.blend(found, origin)
        return found

    def part(self, origin: Origin, index: int) -> Origin:
        match origin:
            case Part(port, path):
                return Part(port, (*path, index))
            case Made(values):
                return values[index]
            case Place() | Nothing():
                return origin
            case _:
                return Anything()

    def at(self, value: typed.Expr, index: typed.Expr) -> Origin:
        origin = self.of(value)
        if isinstance(value.type, t.Map | t.OMap):
            return self.entry(origin, value.type, index)
        self.use(self.of(index))
        self.findings.ordered = True
        if isinstance(origin, Place) and origin.key is None:
            return origin
        return origin if isinstance(origin, Place) else self.element(origin)

    def entry(self, origin: Origin, type_: t.Type, key: typed.Expr) -> Origin:
        """The entry of `key` in a map; the key of the outermost map counts."""
        found = self.of(key)
        if not isinstance(origin, Place):
            self.use(found)
            self.use(origin)
            return Anything()
        if origin.key is not None or not isinstance(type_, t.Map | t.OMap):
            self.use(found)
            return origin
        self.see(found)
        self.findings.accesses.add(Access(origin.variable, found, write=False))
        return Place(origin.variable, found)

    def apply(self, expr: typed.Apply) -> Origin:
        name, args = expr.operation, expr.args
        head = args[0] if args else None
        if head is None or isinstance(head, typed.Lambda):
            return Anything()
        origin = self.of(head)
        rest = args[1:]
        if name in KEYED and isinstance(head.type, t.Map | t.OMap) and not isinstance(rest[0], typed.Lambda):
            place = self.entry(origin, head.type, rest[0])
            self.arguments(rest[1:], origin)
            if name in ("delete", "set"):
                self.write(place)
                self.spoil(head)
            self.use(place)
            return Anything()
        if name == "force":
            return origin
        sequence = isinstance(head.type, t.List | t.Array | t.Deque | t.Bag)
        listing = name in ("keys", "values", "to_list") and not isinstance(head.type, t.OMap)
        if listing or (name in POSITIONAL and sequence):
            self.findings.ordered = True
        if OPERATIONS[name].mutates is not None:
            return self.mutation(name, head, origin, rest)
        self.use(origin)
        self.arguments(rest, origin)
        return Anything()

    def mutation(
        self, name: str, head: typed.Expr, origin: Origin, rest: tuple[typed.Expr | typed.Lambda, ...]
    ) -> Origin:
        """An operation that changes its first argument."""
        if isinstance(origin, Place):
            exact = head.type == t.FSUM and name in ("add", "sub", "merge")
            commutes = exact or (name == "add" and isinstance(head.type, t.Bag))
            self.write(origin, "sum" if exact else name if commutes else None)
            self.arguments(rest, origin)
            return Anything()
        operand = rest[0] if rest and not isinstance(rest[0], typed.Lambda) else None
        match head:
            case typed.Local(_, slot, _, _) if (
                name in GROWING and operand is not None and isinstance(origin, Items)
            ):
                self.bind(slot, Items(self.of(operand)))
                return Anything()
            case typed.Local() if name in SHRINKING and isinstance(origin, Items):
                self.arguments(rest, origin)
                return origin.item
            case _:
                self.arguments(rest, origin)
                self.spoil(head)
                return Anything()

    def arguments(self, args: tuple[typed.Expr | typed.Lambda, ...], origin: Origin) -> None:
        """Arguments whose values matter; the one parameter of a lambda is an element of `origin`."""
        for arg in args:
            if not isinstance(arg, typed.Lambda):
                self.use(self.of(arg))
                continue
            element = self.element(origin) if isinstance(origin, Items | Part) else Anything()
            if len(arg.slots) > 1:
                self.use(element)
            for slot in arg.slots:
                self.bind(slot, element if len(arg.slots) == 1 else Anything())
            self.use(self.of(arg.body))

    def call(self, expr: typed.Call) -> Origin:
        fn = self.op.fns[expr.function]
        args = [self.of(arg) for arg in expr.args]
        if self.depth >= DEPTH:
            for arg in args:
                self.use(arg)
                self.write(arg)
            return Anything()
        inner = _Reader(self.op, self.findings, dict(enumerate(args)), self.depth + 1)
        while True:
            before = dict(inner.slots), self.findings.touched()
            if isinstance(fn.body, typed.Block):
                inner.block(fn.body)
            else:
                inner.returned = inner.blend(inner.returned, inner.of(fn.body))
            if before == (inner.slots, self.findings.touched()):
                break
        for i, (param, arg) in enumerate(zip(fn.params, expr.args, strict=True)):
            if param.ref and not isinstance(args[i], Place):
                match arg:
                    case typed.Local(_, slot, _, _):
                        self.bind(slot, inner.slots[i])
                    case _:
                        self.use(inner.slots[i])
                        self.spoil(arg)
        return inner.returned

    # -- effects

    def see(self, origin: Origin) -> None:
        """The value matters: notes the parts of items that it is made of."""
        match origin:
            case Part():
                self.findings.reads.add(origin)
            case Made(values):
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
            case Place(variable, key):
                self.findings.plain = True
                self.findings.accesses.add(Access(variable, key, write=False))
            case Made(values):
                for value in values:
                    self.use(value)
            case Items(item):
                self.use(item)
            case _:
                pass

    def passed(self, origin: Origin) -> Origin:
        """The value leaves: parts of items do so unread, the values of variables are used."""
        match origin:
            case Place():
                self.use(origin)
                return Anything()
            case Made(values):
                return Made(tuple(map(self.passed, values)))
            case Items(item):
                return Items(self.passed(item))
            case _:
                return origin

    def write(self, origin: Origin, operation: str | None = None) -> None:
        """A variable is changed: accumulated into by `operation`, or in any other way."""
        match origin:
            case Place(variable, key):
                self.findings.accesses.add(Access(variable, key, write=True))
                if operation is None:
                    self.findings.plain = True
                else:
                    self.findings.accumulated.add((variable, operation))
            case _:
                pass


def _accumulation(place: typed.Expr, value: typed.Expr) -> str | None:
    """The operation by which `place = place op e` accumulates, if it may be done in any order."""
    if not isinstance(value, typed.Apply) or _others(place, value) is None:
        return None
    exact = value.type in t.INTEGERS  # sums of floats depend on their order
    return value.operation if exact and value.operation in ACCUMULATING else None


def _others(place: typed.Expr, value: typed.Expr) -> tuple[typed.Expr, ...] | None:
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
