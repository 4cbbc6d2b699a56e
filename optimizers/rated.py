"""Fusion of operators that fire at stated rates: each firing of the second takes what one firing of the first sends.

The second's body follows the first's, in one handler; what went through the queue becomes local names. The second may have
other inputs, from which it takes its items as before: then the first waits with it, and must do nothing else.

Paper: River §4.3 (fusion optimizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from optimizers.counting import together
from optimizers.windows import Known, apart, filled, may_trap, sent
from river.classes import evolve
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.il import graph as g


MOST_PORTS: Final = 64
MOST_STATEMENTS: Final = 400


def rated_obstacle(first: g.Instance, second: g.Instance) -> str | None:
    """Why two operators with text, one of which fires at stated rates, cannot become one."""
    one, other = first.operator, second.operator
    assert isinstance(one, typed.Operator)  # noqa: S101 - asked of operators with text
    assert isinstance(other, typed.Operator)  # noqa: S101 - asked of operators with text
    names_ = [f"`{instance.use.operator}`" for instance in (first, second)]
    if one.rated is None:
        return f"{names_[1]} waits for a stated number of items"
    if other.rated is None:
        return f"{names_[0]} fires at stated rates"
    for name, op in zip(names_, (one, other), strict=True):
        if op.first is not None:
            return f"the first firing of {name} is another one"
        if op.mark is not None or any(end.by is not None for end in (*op.ports, *op.outs)):
            return f"{name} has marks to tell of"
    linked = links(first, second)
    rates = {rate.port: rate for rate in other.rated.rates}
    for out, port in linked.items():
        count, rate = sent(one.rated.body, out, one.fns), rates[port]
        if count is None:
            return f"{names_[0]} does not send its items one after the other"
        if other.ports[port].initial:
            return f"{names_[1]} has items to begin with"
        if rate.peek != rate.pop:
            return f"{names_[1]} looks ahead"
        if rate.pop != count:
            return f"{names_[0]} sends {count} items at once, {names_[1]} takes {rate.pop}"
    if len(linked) == len(other.ports):
        return None
    if len(linked) < len(one.outs):
        return f"{names_[1]} has another input, for which the other outputs of {names_[0]} would wait"
    if any(param.written for param in one.vars):
        return f"{names_[1]} has another input, for which the variables of {names_[0]} would wait"
    if may_trap(one):
        return f"{names_[1]} has another input, and {names_[0]} might trap on items that never get their counterpart"
    return None


def small(*operators: typed.Operator | typed.Extern) -> bool:
    """Whether operators that fire at stated rates are together small enough to be worth one handler."""
    handlers = [op.rated for op in operators if isinstance(op, typed.Operator) and op.rated is not None]
    ports = sum(len(handler.rates) for handler in handlers)
    statements = sum(len(handler.body.items) for handler in handlers)
    return len(handlers) == len(operators) and ports <= MOST_PORTS and statements <= MOST_STATEMENTS


def links(first: g.Instance, second: g.Instance) -> Mapping[int, int]:
    """From an output of the first to the port of the second that it feeds."""
    ports = {queue: port for port, queue in enumerate(second.ins)}
    return {out: ports[queue] for out, queue in enumerate(first.outs) if queue in ports}


def rated_joined(name: str, members: Sequence[s.Operator], linked: Sequence[Mapping[int, int]]) -> s.Operator:
    """The operator that does at each firing what all do, each of which feeds the next as `linked` says.

    Its ends are those of the first, then the other ones of those that follow.
    """
    parts = [members[0]]
    known = Known.of(members[0])
    for member in members[1:]:
        parts.append(apart(member, known))
        known.add(parts[-1])
    ports, outs = list[s.Port](), list[s.Out]()
    rates, statements = list[s.Rate](), list[s.Stmt]()
    items: dict[str, list[s.Expr]] = {}  # by port that the one before feeds
    for i, part in enumerate(parts):
        (handler,) = _rated(part)
        body = handler.body
        windows = {rate.port: rate.name for rate in handler.rates}
        for end in part.ports:
            if end.name in items:
                body = s.Block(filled(body, windows[end.name], items[end.name], end.type))
        ports += (port for port in part.ports if port.name not in items)
        rates += (rate for rate in handler.rates if rate.port not in items)
        inner: dict[str, str] = {}
        if i < len(linked):
            inner = {part.outs[out].name: parts[i + 1].ports[port].name for out, port in linked[i].items()}
        outs += (out for out in part.outs if out.name not in inner)
        items = {port: [] for port in inner.values()}
        types = {out.name: out.type for out in part.outs}
        for statement in body.items:
            match statement:
                case s.Emit(out, value) if out in inner:
                    local = fresh(out, known.values)
                    known.values.add(local)
                    items[inner[out]].append(s.Name(local))
                    statements.append(s.Let(local, types[out], value, span=statement.span))
                case _:
                    statements.append(statement)
    (handler,) = _rated(members[0])
    return s.Operator(
        name,
        tuple(ports),
        tuple(var for part in parts for var in part.vars),
        tuple(outs),
        tuple(const for part in parts for const in part.consts),
        tuple(fn for part in parts for fn in part.fns),
        (evolve(handler, rates=tuple(rates), body=together(s.Block(tuple(statements)))),),
        span=members[0].span,
    )


def _rated(operator: s.Operator) -> list[s.RatedHandler]:
    return [handler for handler in operator.handlers if isinstance(handler, s.RatedHandler)]
