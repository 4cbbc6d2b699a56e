"""How variables into which copies of an operator accumulate apart from each other become one: their `combine`.

An operator that only accumulates may be run as several copies, each with a variable of its own that begins with what is
neutral. How two such variables are combined is derived from the body: the cells into which it accumulates are combined by
the same operation (or that of the same name that takes two cells), entries of maps one by one, whatever key they have.
Where only the entries at one end of a map are kept, so are those of both together: what one took out, it would take out again.
That is associative and commutative because the steps are; what is not proven to be so has no combine.

Paper: Auto-parallelizing §3 (commutative operators); River §3.4 (Sawzall's tables).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Final, assert_never

from river.classes import define, evolve, field, frozen
from river.il.flow import accumulation, is_closed, item_findings
from river.il.trees import Same as SameTree
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, evaluate_const
from river.lang.operations import OPERATIONS, Neutral, effect_of
from river.lang.patience import GivenUp, giving_up
from river.lang.trees import children, effect, nodes, root
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from river.lang.operations import Operation
    from river.lang.values import Value

Path = tuple[int | str, ...]
"""Positions of fields, and `ENTRY` for the entry of any key of a map."""

ENTRY: Final = "entry"


@frozen
class Cell:
    """What is accumulated into. `operation` combines two of them; `neutral`: what they may begin with."""

    operation: str
    neutral: Neutral


@frozen
class Fields:
    """A record or tuple."""

    values: tuple[Combine, ...]


@frozen
class Bound:
    """Of the entries of a map `operation` keeps those at one end, `most` of them: a closed expression."""

    operation: str
    most: typed.Expr


@frozen
class Entries:
    """A map: entries of the same key are combined. `default`: what an entry begins with, a closed expression.

    `bound`: which entries are kept, where not all are.
    """

    default: typed.Expr
    value: Combine
    bound: Bound | None = None


@frozen
class Unchanged:
    """What is never changed: it is the same everywhere."""


Combine = Cell | Fields | Entries | Unchanged


def combines(op: typed.Operator | typed.Extern) -> tuple[Combine | None, ...]:
    """For each variable of an operator how those of several copies of it are combined; None where that is not known."""
    return _combines(SameTree(op)) if isinstance(op, typed.Operator) else (None,) * len(op.vars)


@lru_cache(1_000)
def _combines(same: SameTree[typed.Operator]) -> tuple[Combine | None, ...]:
    op = same.value
    nothing = (None,) * len(op.vars)
    if len(op.items) != 1 or op.mark is not None or any(found.plain for found in item_findings(op)):
        return nothing
    steps = _Steps(op)
    steps.open.update(steps.places(steps.block(op.items[0].body)))
    found = {(variable, name) for (variable, _), name in steps.named.items()}
    if steps.failed or found != {pair for each in item_findings(op) for pair in each.accumulated}:
        return nothing
    return tuple(
        steps.combine(var.type, i, ()) if var.written else Unchanged() for i, var in enumerate(op.vars)
    )


@define(eq=False)
class _Steps:
    """The places of a handler that are accumulated into: by what name, and what entries begin with.

    `bound`: what is kept of the entries of a map; `open`: maps to which entries may come without that being done afterwards.
    `failed`: a place is changed in a way that is not followed here, such as by a function.
    """

    op: typed.Operator
    slots: dict[int, tuple[int, Path]] = field(factory=dict[int, "tuple[int, Path]"])
    named: dict[tuple[int, Path], str] = field(factory=dict["tuple[int, Path]", str])
    begun: dict[tuple[int, Path], typed.Expr] = field(factory=dict["tuple[int, Path]", typed.Expr])
    bound: dict[tuple[int, Path], Bound] = field(factory=dict["tuple[int, Path]", Bound])
    open: set[tuple[int, Path]] = field(factory=set["tuple[int, Path]"])
    failed: bool = False

    def place(self, expr: typed.Expr | typed.Lambda) -> tuple[int, Path] | None:
        """Where in a variable a place is; None if it is in none."""
        match expr:
            case typed.State(_, index, _):
                return index, ()
            case typed.Local(_, slot, _, _):
                return self.slots.get(slot)
            case typed.Get(_, value, index, _):
                found = self.place(value)
                return None if found is None else (found[0], (*found[1], index))
            case typed.At(_, value, _, _):  # whether it traps depends on what came before
                self.failed = self.failed or self.place(value) is not None
                return None
            case _:
                return None

    def places(self, maps: Iterable[typed.Expr]) -> Iterator[tuple[int, Path]]:
        return (place for each in maps if (place := self.place(each)) is not None)

    def block(self, block: typed.Block) -> list[typed.Expr]:
        """Reads statements; the maps to which entries may have come since the last time that some were taken out."""
        added: list[typed.Expr] = []
        for item in block.items:
            match item:
                case typed.Do(
                    typed.Apply(
                        _, operation, (typed.State() | typed.Local() | typed.Get() as map_, most)
                    ) as apply
                ) if effect(apply).bounds and not isinstance(most, typed.Lambda):
                    self.keep(self.place(map_), Bound(operation, most))
                    added = [each for each in added if each != map_]
                case _:
                    added += self.statement(item)
            own = tuple(part for part in children(item) if not isinstance(part, typed.Block))
            for node in nodes(own):  # blocks inside have been read
                if isinstance(node, typed.Call) and any(self.place(arg) is not None for arg in node.args):
                    self.failed = True
        return added

    def keep(self, place: tuple[int, Path] | None, bound: Bound) -> None:
        """Some of the entries of a map are kept, the others taken out."""
        if place is not None:
            self.failed = (
                self.failed or not is_closed(bound.most) or self.bound.setdefault(place, bound) != bound
            )

    def within(self, item: typed.With) -> list[typed.Expr]:
        """Reads what is done with an entry; the maps to which entries may have come, this one among them."""
        place = self.place(item.container)
        self.slots.pop(item.slot, None)
        if place is not None and item.default is not None:
            self.slots[item.slot] = place[0], (*place[1], ENTRY)
            self.failed = self.failed or self.begun.setdefault(place, item.default) != item.default
        added = self.block(item.body)
        inside = [each for each in added if _within(each, item.slot)]
        self.open.update(self.places(inside))  # outside, nobody can say which entry they are in
        return [item.container, *(each for each in added if not _within(each, item.slot))]

    def statement(self, item: typed.Stmt) -> list[typed.Expr]:
        added: list[typed.Expr] = []
        match item:
            case typed.With():
                added = self.within(item)
            case typed.Branch(_, then, other):
                added = [*self.block(then), *self.block(typed.Block(()) if other is None else other)]
            case typed.For(body=body) | typed.While(body=body):
                added = self.block(body)
            case typed.Assign(target, value):
                self.step(self.place(target), accumulation(target, value))
            case typed.Do(typed.Apply(_, operation, args, _) as apply):
                changes = OPERATIONS[operation].mutates is not None
                self.step(self.place(args[0]) if args and changes else None, effect(apply).combines)
            case (
                typed.Let() | typed.Var() | typed.Drop() | typed.Break() | typed.Continue() | typed.Return()
                | typed.Emit() | typed.Mark() | typed.Trap() | typed.Do()
            ):  # fmt: skip
                pass
            case _:
                assert_never(item)
        return added

    def step(self, place: tuple[int, Path] | None, name: str | None) -> None:
        if place is not None:
            self.failed = self.failed or name is None or self.named.setdefault(place, name) != name

    def combine(self, type_: t.Type, variable: int, path: Path) -> Combine | None:
        """That of the part of a variable at a path."""
        name = self.named.get((variable, path))
        below = any(
            v == variable and p[: len(path)] == path for v, p in (*self.named, *self.begun, *self.bound)
        )
        if name is not None:
            inside = {p for v, p in (*self.named, *self.begun) if v == variable and p[: len(path)] == path}
            return _cell(name, type_) if inside == {path} else None
        if not below:
            return Unchanged()
        match type_:
            case t.Record() | t.Tuple():
                parts = [self.combine(part, variable, (*path, i)) for i, part in enumerate(t.parts(type_))]
                known = tuple(part for part in parts if part is not None)
                return Fields(known) if len(known) == len(parts) else None
            case t.Map() | t.OMap():
                first = self.begun.get((variable, path))
                value = self.combine(type_.value, variable, (*path, ENTRY))
                bound = self.bound.get((variable, path))
                if first is None or value is None or not self.begins(value, first):
                    return None
                if bound is not None and ((variable, path) in self.open or self.leaves):
                    return None
                return Entries(first, value, bound)
            case _:
                return None

    @property
    def leaves(self) -> bool:
        """Whether something may be left out of what the handler does."""
        return any(
            isinstance(node, typed.Return | typed.Break | typed.Continue)
            for node in nodes(self.op.items[0].body)
        )

    def begins(self, found: Combine, first: typed.Expr) -> bool:
        """Whether entries that begin with the value of a closed expression may be combined."""
        fns, poll = self.op.fns, giving_up()
        try:
            consts: list[Value] = []
            for const in self.op.consts:
                consts.append(evaluate_const(const.value, fns, consts, const.slots, poll))
            value = evaluate_const(first, fns, consts, self.op.items[0].slots, poll)
        except (Trap, GivenUp):
            return False
        return _neutral(found, first.type, value)


def _within(place: typed.Expr, slot: int) -> bool:
    """Whether a place is in what a slot stands for."""
    found = root(place)
    return isinstance(found, typed.Local) and found.slot == slot


def _cell(name: str, type_: t.Type) -> Cell | None:
    """The cell of a type that is accumulated into by steps of a name: the operation of that name on two such cells."""
    for operation in OPERATIONS.values():
        stated = effect_of(operation, (type_, type_))
        if stated.combines == name and stated.neutral is not None and _takes_two(operation, type_):
            return Cell(operation.name, stated.neutral)
    return None


def _takes_two(operation: Operation, type_: t.Type) -> bool:
    found = operation.rule((type_, type_), None)
    result = type_ if operation.mutates is None else t.UNIT
    return found is not None and found.params == (type_, type_) and found.result == result


def _neutral(found: Combine, type_: t.Type, value: Value) -> bool:
    """Whether a frozen value may be what several copies begin with."""
    match found:
        case Cell(_, neutral):
            return value == _first(neutral, type_, value)
        case Unchanged():
            return True
        case Fields(values):
            return all(
                _neutral(part, of, one) for part, of, one in zip(values, t.parts(type_), value, strict=True)
            )
        case Entries():
            return not len(value)
        case _:
            assert_never(found)


def _first(neutral: Neutral, type_: t.Type, value: Value) -> Value:
    """What a cell begins with in a copy, where it begins with a value in the first."""
    match neutral:
        case Neutral.ZERO:
            return default(type_)
        case Neutral.ONE:
            return 1
        case Neutral.ANY:
            return value
        case _:
            assert_never(neutral)


# ------------------------------------------------------------------------------------------------------ copies of it


def start(found: Combine, type_: t.Type, initial: Value) -> Value:
    """What the variables of copies begin with beside one that begins with the initial value: that counts once."""
    match found:
        case Cell(_, neutral):
            return _first(neutral, type_, initial)
        case Entries():
            return default(type_)
        case Unchanged():
            return initial
        case Fields(values):
            parts = zip(values, t.parts(type_), initial, strict=True)
            return tuple(start(part, of, one) for part, of, one in parts)
        case _:
            assert_never(found)


def may_begin(found: Combine, initial: Value) -> bool:
    """Whether a variable may have a value at first.

    Where a cell begins with anything, the entries of maps must begin with the default in all copies. A map of which only some
    entries are kept must be empty: others might be taken out by who does not have them.
    """
    match found:
        case Cell() | Unchanged():
            return True
        case Fields(values):
            return all(may_begin(part, one) for part, one in zip(values, initial, strict=True))
        case Entries(_, value, bound):
            return not len(initial) or (bound is None and not _any(value) and not _bounded(value))
        case _:
            assert_never(found)


def _any(found: Combine) -> bool:
    """Whether some cell begins with anything."""
    match found:
        case Cell(_, neutral):
            return neutral is Neutral.ANY
        case Fields(values):
            return any(map(_any, values))
        case Entries(value=value):
            return _any(value)
        case Unchanged():
            return False
        case _:
            assert_never(found)


def _bounded(found: Combine) -> bool:
    """Whether some map keeps but some of its entries."""
    match found:
        case Cell() | Unchanged():
            return False
        case Fields(values):
            return any(map(_bounded, values))
        case Entries(_, value, bound):
            return bound is not None or _bounded(value)
        case _:
            assert_never(found)


# ----------------------------------------------------------------------------------------------------- as an operator


def combining(op: typed.Operator, variable: int, found: Combine, *, entry: bool = False) -> typed.Operator:
    """An operator that combines a variable with its items, which are such variables.

    `entry`: with the entries of a map that is such a variable; slots 0 to 2 of the handlers are the key, the value and the place
    of an entry. If all entries are kept there is a second port, for entries whose key is there: it sends the places of the
    others, and puts none in. So several may do that at once, with different entries.
    """
    var = op.vars[variable]
    into = typed.State(var.type, 0, var.name)
    slots, site = count(3 if entry else 2), len(op.sites)
    ports: tuple[t.Type, ...] = (var.type,)
    met: tuple[typed.Block, ...] = ()
    if entry:
        assert isinstance(found, Entries)  # noqa: S101 - the caller has a map
        assert isinstance(var.type, t.Map | t.OMap)  # noqa: S101 - the same
        key, value = typed.Local(var.type.key, 0, "k"), typed.Local(var.type.value, 1, "v")
        put = _entry(found, var.type, into, key, value, slots, site)
        body = typed.Block((put, *_kept(found, into)))
        ports = (t.I64,)
        if found.bound is None:
            there = typed.Apply(t.BOOL, "has", (into, key))
            other = typed.Block((typed.Emit(0, typed.Local(t.I64, 2, "place")),))
            met = (typed.Block((typed.Branch(there, typed.Block((evolve(put, default=None),)), other),)),)
            ports = (t.I64, t.I64)
    else:
        body = typed.Block(tuple(_combined(found, into, typed.Local(var.type, 0, "x"), slots, site)))
    calls = any(isinstance(node, typed.Call | typed.ConstRef) for node in nodes(body))
    last = next(slots)
    return typed.Operator(
        f"{op.name}_combine",
        ports=tuple(typed.Port("xy"[i], type_, None) for i, type_ in enumerate(ports)),
        vars=(typed.VarParam(var.name, var.type, written=True),),
        outs=(typed.Out("others", t.I64, None, None),) if met else (),
        consts=op.consts if calls else (),
        fns=op.fns if calls else (),
        sites=(*op.sites, typed.TrapSite(())),
        items=tuple(typed.ItemHandler(port, last, each) for port, each in enumerate((body, *met))),
        span=op.span,
    )


def _combined(
    found: Combine, into: typed.Expr, other: typed.Expr, slots: Iterator[int], site: int
) -> Iterator[typed.Stmt]:
    """The statements that combine a place with a value. `site`: one that never traps."""
    match found:
        case Cell(operation):
            if OPERATIONS[operation].mutates is None:
                yield typed.Assign(into, typed.Apply(into.type, operation, (into, other)))
            else:
                yield typed.Do(typed.Apply(t.UNIT, operation, (into, other)))
        case Fields(values):
            for i, part in enumerate(values):
                yield from _combined(part, _part(into, i), _part(other, i), slots, site)
        case Entries():
            type_ = into.type
            assert isinstance(type_, t.Map | t.OMap)  # noqa: S101 - of such a type
            k, v = next(slots), next(slots)
            key, value = typed.Local(type_.key, k, "k"), typed.Local(type_.value, v, "v")
            body = typed.Block((_entry(found, type_, into, key, value, slots, site),))
            yield typed.For(k, (k, v), ("k", "v"), other, body)
            yield from _kept(found, into)
        case Unchanged():
            pass
        case _:
            assert_never(found)


def _entry(
    found: Entries,
    type_: t.Map | t.OMap,
    into: typed.Expr,
    key: typed.Expr,
    value: typed.Expr,
    slots: Iterator[int],
    site: int,
) -> typed.With:
    slot = next(slots)
    place = typed.Local(type_.value, slot, "c")
    body = typed.Block(tuple(_combined(found.value, place, value, slots, site)))
    return typed.With(slot, "c", into, key, found.default, body, site)


def _kept(found: Entries, into: typed.Expr) -> Iterator[typed.Stmt]:
    """What takes out the entries that are not kept."""
    if found.bound is not None:
        yield typed.Do(typed.Apply(t.UNIT, found.bound.operation, (into, found.bound.most)))


def _part(of: typed.Expr, index: int) -> typed.Get:
    name = of.type.fields[index][0] if isinstance(of.type, t.Record) else str(index)
    return typed.Get(t.parts(of.type)[index], of, index, name)


__all__ = [
    "Bound", "Cell", "Combine", "Entries", "Fields", "Unchanged", "combines", "combining", "may_begin", "start",
]  # fmt: skip
