"""Questions that passes ask of a program: who feeds whom, who shares what, and the text behind an operator."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, assert_never

from river.classes import evolve
from river.il.expand import expand, named_operators
from river.il.program import Instance, Lift, Program, Use, Variable
from river.il.trees import Same, fresh
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified


# ---------------------------------------------------------------------------------------------------------- the graph


def successors(graph: g.Graph, instance: g.Instance) -> tuple[int, ...]:
    """The operators that consume what `instance` sends, each once, in the order of its outputs."""
    consumers = (graph.queues[out].consumer for out in instance.outs)
    return tuple(dict.fromkeys(end.instance for end in consumers if end is not None))


def downstream(graph: g.Graph, start: Iterable[int]) -> frozenset[int]:
    """The operators of `start` and all that their items can reach."""
    found, left = set[int](), list(start)
    while left:
        index = left.pop()
        if index not in found:
            found.add(index)
            left += successors(graph, graph.instances[index])
    return frozenset(found)


def convex(graph: g.Graph, members: Collection[int]) -> bool:
    """Whether no path leaves `members` and comes back."""
    outside = {
        after
        for member in members
        for after in successors(graph, graph.instances[member])
        if after not in members
    }
    return downstream(graph, outside).isdisjoint(members)


def topological(graph: g.Graph) -> tuple[int, ...]:
    """The operators, each after those that feed it; those in loops where their loop is first entered."""
    return _topological(Same(graph))


@lru_cache(maxsize=4)
def _topological(same: Same[g.Graph]) -> tuple[int, ...]:
    """The same: every pass asks for it, and most leave the graph as it is."""
    graph = same.value
    found: list[int] = []
    seen: set[int] = set()
    for root in reversed(range(len(graph.instances))):  # so that what is free follows the text
        stack: list[tuple[int, bool]] = [(root, False)]
        while stack:
            index, done = stack.pop()
            if done:
                found.append(index)
            elif index not in seen:
                seen.add(index)
                stack.append((index, True))
                stack += [(after, False) for after in successors(graph, graph.instances[index])]
    return tuple(reversed(found))


def users(graph: g.Graph, variable: str) -> tuple[int, ...]:
    """The operators that read or write a variable."""
    return graph.users[variable]


# ----------------------------------------------------------------------------------------------------------- the text


def source(verified: Verified, name: str) -> s.Operator | s.Extern | None:
    """The text of operator `name` of the program, instances and lifts expanded."""
    decls = verified.operators
    match decls.get(name):
        case s.Operator() | s.Extern() as operator:
            return operator
        case Instance() | Lift() as decl:
            return expand(decl, decls, verified.templates)
        case _:
            return None


def changed(
    program: Program,
    change: Callable[[Decl], Decl | Iterable[Decl] | None],
    added: Iterable[Decl] = (),
) -> Program:
    """The program with each declaration replaced, and new ones before its first use.

    Operators that were used before and are not any more go.
    """
    before = used(program)
    decls: list[Decl] = []
    for decl in program.decls:
        after = change(decl)
        if after is None:
            continue
        decls += [after] if isinstance(after, s.Node) else list(after)
    place = next((i for i, decl in enumerate(decls) if isinstance(decl, Use)), len(decls))
    result = Program((*decls[:place], *added, *decls[place:]))
    idle = before - used(result)
    return Program(tuple(d for d in result.decls if _operator_name(d) not in idle))


class Alike:
    """The operators of a program, by what they are up to their names."""

    def __init__(self, decls: Iterable[Decl]) -> None:
        self._names: dict[s.Operator, str] = {}
        for decl in decls:
            if isinstance(decl, s.Operator):
                self.add(decl)

    def name(self, operator: s.Operator) -> str | None:
        """The name of the first operator like this one, if there is one."""
        return self._names.get(evolve(operator, name=""))

    def add(self, operator: s.Operator) -> None:
        """Knows one more."""
        self._names.setdefault(evolve(operator, name=""), operator.name)


def again(decls: Iterable[Decl], operator: s.Operator) -> str | None:
    """The name of an operator among declarations that is `operator` up to its name; for several ask `Alike`."""
    here = (d for d in decls if isinstance(d, s.Operator) and d.handlers == operator.handlers)
    return next((d.name for d in here if evolve(d, name=operator.name) == operator), None)


def used(program: Program) -> frozenset[str]:
    """The operators that uses name, and those that lifts of these are made of."""
    names = {use.operator for use in program.uses}
    lifts = {d.name: d.operator for d in program.decls if isinstance(d, Lift)}
    while more := {lifts[name] for name in names if name in lifts} - names:
        names |= more
    return frozenset(names)


def _operator_name(decl: Decl) -> str | None:
    match decl:
        case s.Operator(name) | s.Extern(name) | Instance(name) | Lift(name):
            return name
        case _:
            return None


class Names:
    """Fresh names for what a rewriting adds to a program."""

    def __init__(self, program: Program) -> None:
        self.operators = set(named_operators(program))
        self.queues = {end for use in program.uses for end in (*use.ins, *use.outs)}
        self.queues |= {d.name for d in (*program.inputs, *program.outputs)}
        self.variables = {d.name for d in program.decls if isinstance(d, Variable)}

    def operator(self, wanted: str) -> str:
        """A name for an operator."""
        return _taken(wanted, self.operators)

    def queue(self, wanted: str) -> str:
        """A name for a queue."""
        return _taken(wanted, self.queues)

    def variable(self, wanted: str) -> str:
        """A name for a variable, without its dollar sign."""
        return _taken(wanted, self.variables)


LONGEST: Final = 60


def joint(first: str, second: str) -> str:
    """A name for what two operators become; not longer, however many there were."""
    return f"{first}_{second}"[:LONGEST].rstrip("_")


def _taken(wanted: str, names: set[str]) -> str:
    found = fresh(wanted, names)
    names.add(found)
    return found


# ------------------------------------------------------------------------------------------------------------- types


@cache
def _container(kind: type) -> str:
    return kind.__name__.lower()


def type_text(type_: t.Type, names: Mapping[t.Type, str]) -> s.TypeExpr:
    """A text for a type, by the program's own names where it has one."""

    def inner(part: t.Type) -> s.TypeExpr:
        return type_text(part, names)

    if type_ in names:
        return s.TypeName(names[type_])
    match type_:
        case t.Primitive(name):
            return s.TypeName(name)
        case t.Decimal(precision, scale):
            return s.TypeName("decimal", (s.Int(precision), s.Int(scale)))
        case t.Optional(part):
            return s.OptionalType(inner(part))
        case t.Record(fields):
            return s.RecordType(tuple(s.FieldType(name, inner(part)) for name, part in fields))
        case t.Tuple(items):
            return s.TupleType(tuple(map(inner, items)))
        case t.Array(item, size):
            return s.TypeName("array", (inner(item), s.Int(size)))
        case t.List(item) | t.Deque(item) | t.Bag(item):
            return s.TypeName(_container(type(type_)), (inner(item),))
        case t.Map(key, value) | t.OMap(key, value):
            return s.TypeName(_container(type(type_)), (inner(key), inner(value)))
        case t.Function():
            raise AssertionError("no queue carries functions")
        case _:
            assert_never(type_)
