"""What optimizations of rated operators have in common: windows put together from their items, and names kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import evolve, frozen
from river.il.model import model
from river.il.trees import binders, fresh, names, rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.scope import integer
from river.lang.trees import children, nodes, reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
    unsafe = _Bounds(op).unsafe()
    sites = tuple(site if i in unsafe else evolve(site, codes=()) for i, site in enumerate(op.sites))
    return model(evolve(op, sites=sites)).can_trap


class _Bounds:
    """Which sites of an operator's firings do not index arrays within their bounds."""

    def __init__(self, op: typed.Operator) -> None:
        self.op = op
        self.found: set[int] = set()
        self.called: set[int] = set()

    def unsafe(self) -> frozenset[int]:
        for handler in (
            *self.op.items,
            *self.op.phases,
            self.op.rated,
            self.op.first,
            self.op.merge,
            self.op.mark,
        ):
            if handler is not None:
                self.walk(handler, {})
        return frozenset(self.found)

    def walk(self, node: typed.Node, counters: Mapping[int, tuple[int, int]]) -> None:
        match node:
            case typed.For(_, (slot,), _, typed.Counted(typed.Literal(_, low), typed.Literal(_, high)), body):
                self.walk(body, {**counters, slot: (low, high - 1)})
                return
            case typed.At(_, value, index, _) if _inside(value.type, index, counters):
                self.walk(value, counters)
                return
            case typed.Call(_, function) if function not in self.called:
                self.called.add(function)
                self.walk(self.op.fns[function].body, {})
            case typed.At() | typed.Apply() | typed.With() | typed.Trap():
                if node.site is not None:
                    self.found.add(node.site)
            case _:
                pass
        for each in children(node):
            self.walk(each, counters)


def _inside(type_: t.Type, index: typed.Expr, counters: Mapping[int, tuple[int, int]]) -> bool:
    match index:
        case typed.Literal(_, value):
            low = high = value
        case typed.Local(_, slot) if slot in counters:
            low, high = counters[slot]
        case _:
            return False
    return isinstance(type_, t.Array) and low >= 0 and high < type_.size


# -------------------------------------------------------------------------------------------------------------- names


@frozen
class Known:
    """The names of operators that become one: of values and functions, of ports and outputs, of variables."""

    values: set[str]
    ends: set[str]
    variables: set[str]

    @classmethod
    def of(cls, operator: s.Operator) -> Known:
        """The names of one operator."""
        found = cls(set(), set(), set())
        found.add(operator)
        return found

    def add(self, operator: s.Operator) -> None:
        """Knows the names of one more."""
        self.values.update(names(operator))
        self.ends.update(end.name for end in (*operator.ports, *operator.outs))
        self.variables.update(var.name for var in operator.vars)


def apart(operator: s.Operator, others: Known) -> s.Operator:
    """The operator with no name of a value, function, port, output or variable that others have."""
    mine = Known.of(operator)
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
            case s.Rate(port, _, _, name) | s.ItemHandler(port, name, _) | s.PhaseHandler(_, port, name, _):
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
