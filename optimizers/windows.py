"""What optimizations of rated operators have in common: windows put together from their items, and names kept apart."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from river.classes import evolve, frozen
from river.il.model import can_trap
from river.il.trees import Same, binders, fresh, names, rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang.ranges import inside, proven
from river.lang.rates import bounds
from river.lang.scope import integer
from river.lang.trees import children, nodes, reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.lang.ranges import Ranges


def filled(body: s.Block, window: str, items: Sequence[s.Expr], type_: s.TypeExpr) -> tuple[s.Stmt, ...]:
    """The statements of a body whose window consists of `items` of `type_`.

    Where all indices are numbers the items stand for themselves, else they are put into an array.
    """
    found = _places(body, window)
    uses = sum(isinstance(node, s.Name) and node.name == window for node in walk(body))
    if len(found) == uses and all(0 <= index < len(items) for index in found):
        return _direct(body, window, items).items
    array = s.TypeName("array", (type_, s.Int(len(items))))
    return (s.Let(window, array, s.ListValue(tuple(items))), *body.items)


def _places(body: s.Block, window: str) -> list[int]:
    """The numbers by which a window is indexed."""
    found = [
        integer(node.index)
        for node in walk(body)
        if isinstance(node, s.Index) and node.value == s.Name(window)
    ]
    return [index for index in found if index is not None]


def indices(body: typed.Block, slot: int) -> frozenset[int] | None:
    """The numbers by which the window in a slot is indexed; None if it is used in another way."""
    uses, found = 0, list[int]()
    for node in nodes(body):
        match node:
            case typed.At(_, typed.Local(_, at), typed.Literal(_, int(index)), _) if at == slot:
                found.append(index)
            case typed.Local(_, at) if at == slot:
                uses += 1
            case _:
                pass
    return frozenset(found) if uses == len(found) else None


def _direct(body: s.Block, window: str, items: Sequence[s.Expr]) -> s.Block:
    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Index(s.Name(name), index) if name == window and (at := integer(index)) is not None:
                return evolve(items[at], span=node.span)
            case _:
                return rebuild(node, rewrite)

    return rebuild(body, rewrite)


# -------------------------------------------------------------------------------------------------------------- emits


def sent(body: typed.Block, out: int, fns: tuple[typed.Fn, ...]) -> int | None:
    """How many items a body sends to an output, if it does so by statements of its own, one after the other."""
    count = sum(isinstance(item, typed.Emit) and item.out == out for item in body.items)
    return count if count == _emits(body, out, fns) and not _leaves(body) else None


def _emits(node: typed.Node, out: int, fns: tuple[typed.Fn, ...]) -> int:
    """All statements that send to an output, those of functions that are called among them (each but once)."""
    return sum(isinstance(each, typed.Emit) and each.out == out for each in reached(node, fns))


def _leaves(body: typed.Block) -> bool:
    return any(isinstance(each, typed.Return) for each in nodes(body))


# -------------------------------------------------------------------------------------------------------------- traps


def may_trap(op: typed.Operator) -> bool:
    """Whether some firing may trap; one that indexes an array by a number or a counter within its bounds does not."""
    return _may_trap(Same(op))


@lru_cache(maxsize=8192)
def _may_trap(same: Same[typed.Operator]) -> bool:
    """It is asked of each neighbour in each round, and operators that do not change are the same objects."""
    op = same.value
    safe = proven(op)
    sites = tuple(evolve(site, codes=()) if i in safe else site for i, site in enumerate(op.sites))
    return can_trap(evolve(op, sites=sites))


def bounded(op: typed.Operator, body: typed.Block, windows: Sequence[int]) -> frozenset[int]:
    """The windows of a firing, by slot, of which only items are used that are there for sure.

    Loops over the window itself do not count: they use all of it.
    """
    uses: dict[int, int] = dict.fromkeys(windows, 0)
    good = dict(uses)

    def look(node: typed.Node, counters: Ranges) -> None:
        match node:
            case typed.For(_, (slot,), _, typed.Counted() as range_, inner) if (
                known := bounds(range_)
            ) is not None:
                look(inner, {**counters, slot: (known[0], known[1] - 1)})
                return
            case typed.At(_, typed.Local(type_, slot), index, _) if slot in good:
                good[slot] += inside(type_, index, counters, op)
            case typed.Local(_, slot) if slot in uses:
                uses[slot] += 1
            case _:
                pass
        for each in children(node):
            look(each, counters)

    look(body, {})
    return frozenset(slot for slot in windows if good[slot] == uses[slot])


# -------------------------------------------------------------------------------------------------------------- names


@frozen
class JoinedNames:
    """The names of operators that become one: of values and functions, of ports and outputs, of variables."""

    values: set[str]
    ends: set[str]
    variables: set[str]

    @classmethod
    def of(cls, operator: s.Operator) -> JoinedNames:
        """The names of one operator."""
        found = cls(set(), set(), set())
        found.add(operator)
        return found

    def add(self, operator: s.Operator) -> None:
        """Knows the names of one more."""
        self.values.update(names(operator))
        self.ends.update(end.name for end in (*operator.ports, *operator.outs))
        self.variables.update(var.name for var in operator.vars)


def apart(operator: s.Operator, others: JoinedNames) -> s.Operator:
    """The operator with no name of a value, function, port, output or variable that others have."""
    mine = JoinedNames.of(operator)
    values = _fresh(
        (name for node in walk(operator) for name in binders(node)),
        others.values,
        mine.values | others.values,
    )
    ends = others.ends
    ports = _fresh((p.name for p in operator.ports), ends, ends | mine.ends)
    outs = _fresh((o.name for o in operator.outs), ends, ends | mine.ends | set(ports.values()))
    variables = _fresh((v.name for v in operator.vars), others.variables, others.variables | mine.variables)
    return _respelled(operator, values, ports, outs, variables)


def inside_apart(operator: s.Operator, body: s.Block, others: JoinedNames) -> s.Block:
    """A body of an operator, with names of its own for what is made inside of it; `others` knows them then."""
    inner = {name for node in walk(body) for name in binders(node)}
    renamed = _fresh(sorted(inner), others.values, others.values)
    others.values.update(renamed.values())
    (handler,) = _respelled(
        evolve(operator, consts=(), fns=(), handlers=(s.RatedHandler((), body),)), renamed, {}, {}, {}
    ).handlers
    assert isinstance(handler, s.RatedHandler)  # noqa: S101 - as it was
    return handler.body


def _fresh(mine: Iterable[str], theirs: Iterable[str], taken: Iterable[str]) -> Mapping[str, str]:
    """Other names for those of mine that are also theirs."""
    clashing, used = set(theirs), set(taken)
    found: dict[str, str] = {}
    for name in dict.fromkeys(mine):
        if name in clashing:
            found[name] = fresh(name, used)
            used.add(found[name])
    return found


def _respelled(
    operator: s.Operator,
    values: Mapping[str, str],
    ports: Mapping[str, str],
    outs: Mapping[str, str],
    variables: Mapping[str, str],
) -> s.Operator:
    def several(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(values.get(name, name) for name in found)

    def rewrite(node: s.Node) -> s.Node:
        node = rebuild(node, rewrite)
        match node:
            case (
                s.Name(name)
                | s.Let(name)
                | s.VarDecl(name)
                | s.With(name)
                | s.Drop(name)
                | s.Param(name)
                | s.Fn(name)
            ):
                return evolve(node, name=values.get(name, name))
            case s.Bind(_, name) | s.Const(name, _, _) | s.MarkHandler(name, _):
                return evolve(node, name=values.get(name, name))
            case (
                s.Rate(port, _, _, name, _) | s.ItemHandler(port, name, _) | s.PhaseHandler(_, port, name, _)
            ):
                return evolve(node, port=ports.get(port, port), name=values.get(name, name))
            case s.For(_, found, _, _) | s.Comprehension(_, found, _, _):
                return evolve(node, names=several(found))
            case s.Lambda(found, _):
                return evolve(node, params=several(found))
            case s.Call(name, _):
                return evolve(node, function=values.get(name, name))
            case s.Emit(out, _) | s.Mark(out, _):
                return evolve(node, out=outs.get(out, out))
            case s.Out(out):
                return evolve(node, name=outs.get(out, out))
            case s.Port(port):
                return evolve(node, name=ports.get(port, port))
            case s.Var(name) | s.VarParam(name, _):
                return evolve(node, name=variables.get(name, name))
            case _:
                return node

    return rebuild(operator, rewrite)
