"""Fusion of operators that fire at stated rates: each firing of the second takes what one firing of the first sends.

The second's body follows the first's, in one handler; what went through the queue becomes local names. The second may have
other inputs, from which it takes its items as before: then the first waits with it, and must do nothing else.

Paper: River §4.3 (fusion optimizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from optimizers.counting import together
from optimizers.windows import JoinedNames, apart, bounded, filled, indices, inside_apart, may_trap, sent
from river.classes import evolve
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang.scope import integer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from river.il import graph as g


MOST_PORTS: Final = 64
MOST_STATEMENTS: Final = 400
MOST_TIMES: Final = 32
"""Firings that become one."""

WIDEST: Final = 256
"""Items of the window of several firings that are one."""


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
        if op.rated is not None and op.rated.early:
            return f"{name} sends items before its window is complete"
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
        if rate.pop != count and (len(linked) > 1 or not repeats(first, second)):
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


def repeats(first: g.Instance, second: g.Instance) -> tuple[frozenset[int], int] | None:
    """How many firings of the first feed one of the second, and those of them whose items are looked at.

    None if it pays not, because all of them are, or if it is not safe to leave the others out. Of one link only.
    """
    one, other = first.operator, second.operator
    assert isinstance(one, typed.Operator)  # noqa: S101 - the guard has approved
    assert isinstance(other, typed.Operator)  # noqa: S101 - the guard has approved
    if one.rated is None or other.rated is None or one.vars or len(one.outs) != 1 or len(one.ports) != 1:
        return None
    (linked,) = (
        rate
        for rate in other.rated.rates
        if other.ports[rate.port] is other.ports[second.ins.index(first.outs[0])]
    )
    count = sent(one.rated.body, 0, one.fns)
    slot = other.rated.rates.index(linked)
    seen = indices(other.rated.body, slot)
    if not count or linked.pop % count or linked.peek != linked.pop or seen is None:
        return None
    times, (rate,) = linked.pop // count, one.rated.rates
    used = frozenset(index // count for index in seen if 0 <= index < linked.pop)
    if not 1 < times <= MOST_TIMES or len(used) == times or rate.peek + (times - 1) * rate.pop > WIDEST:
        return None
    if 0 not in bounded(one, one.rated.body, [0]) or may_trap(one):
        return None
    return used, times


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


def repeated(operator: s.Operator, used: Collection[int], times: int) -> s.Operator:
    """The operator that does at each firing what it did in some; what is not `used` of these is not computed, but zero."""
    (handler,) = _rated(operator)
    (rate,), (out,) = handler.rates, operator.outs
    pop = integer(rate.pop)
    peek = pop if rate.peek is None else integer(rate.peek)
    assert pop is not None  # noqa: S101 - of a text that is written out
    assert peek is not None  # noqa: S101 - of a text that is written out
    known = JoinedNames.of(operator)
    statements: list[s.Stmt] = []
    for i in range(times):

        def rewrite(node: s.Node, shift: int = i * pop) -> s.Node:
            match node:
                case s.Index(s.Name(name), index) if name == rate.name:
                    inner = rebuild(index, rewrite)
                    at = integer(inner)
                    moved = s.Binary("+%", inner, s.Int(shift)) if at is None else s.Int(at + shift)
                    return evolve(node, index=moved if shift else inner)
                case _:
                    return rebuild(node, lambda each: rewrite(each, shift))

        if i in used:
            body = inside_apart(operator, handler.body, known)
            statements += rebuild(body, rewrite).items
        else:
            sends = sum(isinstance(statement, s.Emit) for statement in handler.body.items)
            statements += [s.Emit(out.name, s.Call("zero", ()))] * sends
    rates = (evolve(rate, peek=s.Int(peek + (times - 1) * pop), pop=s.Int(times * pop)),)
    push = None if out.push is None else s.Binary("*", out.push, s.Int(times))
    return evolve(
        operator,
        outs=(evolve(out, push=push),),
        handlers=(evolve(handler, rates=rates, body=s.Block(tuple(statements))),),
    )


def rated_joined(name: str, members: Sequence[s.Operator], linked: Sequence[Mapping[int, int]]) -> s.Operator:
    """The operator that does at each firing what all do, each of which feeds the next as `linked` says.

    Its ends are those of the first, then the other ones of those that follow.
    """
    parts = [members[0]]
    known = JoinedNames.of(members[0])
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
        for at, statement in enumerate(body.items):
            match statement:
                case s.Emit(out, value) if out in inner:
                    local = fresh(out, known.values)
                    known.values.add(local)
                    items[inner[out]].append(s.Name(local))
                    copied = not _is_plain(types[out]) and _changed(value, body.items[at + 1 :])
                    kept = s.VarDecl if copied else s.Let
                    statements.append(kept(local, types[out], value, span=statement.span))
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


def _is_plain(type_: s.TypeExpr) -> bool:
    """Whether the type is written by its name alone, as those of numbers and texts are."""
    return isinstance(type_, s.TypeName) and not type_.args


def _changed(value: s.Expr, later: Sequence[s.Stmt]) -> bool:
    """Whether what stands in a value may be changed later, so that what has been sent must be a copy."""
    names = {node for node in walk(value) if isinstance(node, s.Name | s.Var)}
    for node in (node for statement in later for node in walk(statement)):
        match node:
            case s.Assign(place):
                touched = [place]
            case s.Call(_, args):
                touched = list(args)
            case _:
                continue
        for each in touched:
            while isinstance(each, s.Index | s.Member):
                each = each.value
            if each in names:
                return True
    return False


def _rated(operator: s.Operator) -> list[s.RatedHandler]:
    return [handler for handler in operator.handlers if isinstance(handler, s.RatedHandler)]
