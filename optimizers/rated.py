"""Fusion of operators that fire at stated rates: each firing of the second takes what one firing of the first sends.

The second's body follows the first's, in one handler; what went through the queue becomes local names. The second may have
other inputs, from which it takes its items as before: then the first waits with it, and must do nothing else.

Paper: River §4.3 (fusion optimizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from optimizers.counting import together
from optimizers.windows import apart, filled, may_trap, sent
from river.classes import evolve
from river.il.trees import fresh, names
from river.lang import syntax as s
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def rated_joined(name: str, first: s.Operator, second: s.Operator, linked: Mapping[int, int]) -> s.Operator:
    """The operator that does at each firing what both do. Its ends are those of the first, and the other ones of the second."""
    inner = {first.outs[out].name: port for out, port in linked.items()}
    second = apart(second, first)
    (handler,), (other,) = _rated(first), _rated(second)
    taken = set(names(first) | names(second))
    items: dict[int, list[s.Expr]] = {port: [] for port in linked.values()}
    statements: list[s.Stmt] = []
    types = {out.name: out.type for out in first.outs}
    for statement in handler.body.items:
        match statement:
            case s.Emit(out, value) if out in inner:
                local = fresh(out, taken)
                taken.add(local)
                items[inner[out]].append(s.Name(local))
                statements.append(s.Let(local, types[out], value, span=statement.span))
            case _:
                statements.append(statement)
    body = other.body
    windows = {rate.port: rate.name for rate in other.rates}
    for port in linked.values():
        end = second.ports[port]
        body = s.Block(filled(body, windows[end.name], items[port], end.type))
    gone = {second.ports[port].name for port in linked.values()}
    return s.Operator(
        name,
        (*first.ports, *(port for port in second.ports if port.name not in gone)),
        (*first.vars, *second.vars),
        (*(out for out in first.outs if out.name not in inner), *second.outs),
        (*first.consts, *second.consts),
        (*first.fns, *second.fns),
        (
            evolve(
                handler,
                rates=(*handler.rates, *(rate for rate in other.rates if rate.port not in gone)),
                body=together(s.Block((*statements, *body.items))),
            ),
        ),
        span=first.span,
    )


def _rated(operator: s.Operator) -> list[s.RatedHandler]:
    return [handler for handler in operator.handlers if isinstance(handler, s.RatedHandler)]
