"""Which streams of a graph are equal: queues numbered by value.

Paper: Cocke, Schwartz, "Programming languages and their compilers" (1970), section on value numbers.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, cast

from optimizers.queries import topological, users
from river.classes import define, field, fields, has_fields
from river.il.annotations import annotated, directives
from river.il.trees import Same
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from river.il import graph as g


@define
class Numbers:
    """Which streams are equal.

    `number`: of each queue, the queue whose stream it bears. `duplicates`: the plain ones. `pairs`: (kept, gone).
    `apart`: the pairs that would be equal but for what the guard tells. `twins`: ports of an operator that always show the
    same windows as an earlier one, which is given.
    """

    graph: g.Graph
    number: dict[str, str] = field(factory=dict[str, str])
    duplicates: set[int] = field(factory=set[int])
    pairs: list[tuple[int, int]] = field(factory=list["tuple[int, int]"])
    apart: list[tuple[int, int]] = field(factory=list["tuple[int, int]"])
    twins: dict[int, Mapping[int, int]] = field(factory=dict[int, "Mapping[int, int]"])

    @classmethod
    def of(cls, graph: g.Graph) -> Numbers:
        """The numbers of a graph. Operators of loops are never equal, because what they read depends on what they send."""
        return _numbers(Same(graph))

    @classmethod
    def found(cls, graph: g.Graph) -> Numbers:
        """The same, found anew."""
        found = cls(graph, {name: name for name in graph.queues})
        circling = graph.looping
        # By what is read, and constants: texts are compared where these are the same.
        first: dict[tuple[Hashable, ...], g.Instance] = {}
        seen: dict[Hashable, list[g.Instance]] = {}
        for index in topological(graph):
            instance = graph.instances[index]
            op = instance.operator
            if index in circling:
                continue
            inputs = tuple(found.number[queue] for queue in instance.ins)
            if plain_duplicate(graph, instance):
                found.duplicates.add(index)
                found.number |= dict.fromkeys(instance.outs, inputs[0])
                continue
            before = len(found.pairs)
            constants = exact(op.consts) if isinstance(op, typed.Operator) else ()
            other = first.setdefault((inputs, constants), instance)
            if other is not instance:
                seen.setdefault((_body(Same(other.operator)), inputs), [other])
                found.meet(instance, seen.setdefault((_body(Same(op)), inputs), []))
            if len(found.pairs) == before and (twins := _twins(op, inputs)):
                found.twins[index] = twins
        return found

    def meet(self, instance: g.Instance, others: list[g.Instance]) -> None:
        """The operator becomes one of `others`, which look like it, or joins them."""
        for other in others:
            if obstacle(self.graph, other, instance) is None:
                self.pairs.append((other.index, instance.index))
                same = zip(instance.outs, other.outs, strict=True)
                self.number |= {queue: self.number[first] for queue, first in same}
                return
        if others:
            self.apart.append((others[0].index, instance.index))
        others.append(instance)


@lru_cache(maxsize=2)
def _numbers(graph: Same[g.Graph]) -> Numbers:
    """The numbers of a graph, which are asked for where sites are found, and again where these are rewritten."""
    return Numbers.found(graph.value)


@lru_cache(maxsize=2048)
def _body(op: Same[typed.Operator | typed.Extern]) -> Hashable:
    """What an operator computes, as a key; the graph of each round of passes has mostly the operators of the one before."""
    return exact(op.value)


def _twins(op: typed.Operator | typed.Extern, inputs: tuple[str, ...]) -> Mapping[int, int]:
    """The ports of a rated operator that show the same windows as an earlier one, with that."""
    if (
        not isinstance(op, typed.Operator)
        or op.rated is None
        or len(set(inputs)) == len(inputs)
        or any(port.by is not None for port in op.ports)
    ):
        return {}
    rates: dict[int, list[tuple[int, int]]] = {}
    for rate in (*op.rated.rates, *(() if op.first is None else op.first.rates)):
        rates.setdefault(rate.port, []).append((rate.peek, rate.pop))
    first: dict[Hashable, int] = {}
    found: dict[int, int] = {}
    for port, origin in enumerate(inputs):
        kept = first.setdefault((origin, exact(op.ports[port].initial), tuple(rates.get(port, ()))), port)
        if kept != port:
            found[port] = kept
    return found


def exact(value: object) -> Hashable:
    """A typed tree without names and places, as a key: equal only for trees that compute the same, bit for bit."""
    match value:
        case typed.Node() | typed.TrapSite():
            kind = type(value)
            return (kind.__name__, *(exact(getattr(value, part)) for part in _parts(kind)))
        case tuple():
            return tuple(map(exact, cast("tuple[object, ...]", value)))
        case float():
            return "float", struct.pack("<d", value)
        case bool() | int() | str() | bytes() | None:
            return type(value).__name__, value
        case _:
            return _other(value)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a class of nodes that say what it computes."""
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "name", "names"))


def _other(value: object) -> Hashable:
    """A type is a key; values of other forms (frozen maps, decimals ...) are told by their whole text."""
    return value if has_fields(type(value)) else (type(value).__name__, repr(value))


# -------------------------------------------------------------------------------------------------------------- guard


def plain_duplicate(graph: g.Graph, instance: g.Instance) -> bool:
    """Whether an operator sends each of its items once to each output, and does nothing else."""
    op = instance.operator
    if (
        not isinstance(op, typed.Operator)
        or len(op.ports) != 1
        or not op.outs
        or op.vars
        or directives(instance.use)
    ):
        return False
    port = op.ports[0]
    ends = [(end.type, end.by) for end in (port, *op.outs)]
    ends += [(graph.queues[name].type, graph.queues[name].by) for name in (*instance.ins, *instance.outs)]
    if (
        len(set(ends)) > 1
        or port.initial
        or op.mark is not None
        or any(out.push not in (None, 1) for out in op.outs)
    ):
        return False
    body = (
        op.items[0].body if op.items else op.rated.body if _one_by_one(op) and op.rated is not None else None
    )
    if body is None:
        return False
    sent = [item.out for item in body.items if isinstance(item, typed.Emit) and _is_item(item.value)]
    return len(sent) == len(body.items) and sorted(sent) == list(range(len(op.outs)))


def _one_by_one(op: typed.Operator) -> bool:
    """Whether a rated operator takes one item after the other, and looks at no other."""
    return op.first is None and op.rated is not None and [(r.peek, r.pop) for r in op.rated.rates] == [(1, 1)]


def _is_item(value: typed.Expr) -> bool:
    """Whether an expression is the item of a firing, or the only one of its window."""
    match value:
        case typed.At(_, typed.Local(_, 0), typed.Literal(_, 0)):
            return True
        case typed.Local(_, 0):
            return True
        case _:
            return False


def obstacle(graph: g.Graph, one: g.Instance, other: g.Instance) -> str | None:
    """Why two operators of one body and with equal inputs must not become one."""
    op = one.operator
    if isinstance(op, typed.Extern):
        return "what an extern does is not known"
    if directives(one.use) != directives(other.use):
        return "their annotations differ"
    if annotated(one.use).regions:
        return "they are parts of parallel regions"
    if len(op.items) > 1:
        return "they take the items of their inputs as they come"
    initial = {variable.name: (variable.type, exact(variable.initial)) for variable in graph.variables}
    for param, mine, theirs in zip(op.vars, one.variables, other.variables, strict=True):
        if param.written:
            return (
                f"`${mine}` and `${theirs}` are both results" if mine != theirs else f"both write `${mine}`"
            )
        if any(_writes(graph, index, name) for name in (mine, theirs) for index in users(graph, name)):
            return (
                f"`${mine}` is written by another operator"
                if mine == theirs
                else f"`${mine}` or `${theirs}` is written"
            )
        if initial[mine] != initial[theirs]:
            return f"`${mine}` and `${theirs}` begin with different values"
    return None


def _writes(graph: g.Graph, index: int, variable: str) -> bool:
    instance = graph.instances[index]
    params = zip(instance.operator.vars, instance.variables, strict=True)
    return any(param.written and name == variable for param, name in params)
