"""Operators: signature, constants, handlers. Which handlers go together is rule P1 of il.md."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar, assert_never

from river.classes import evolve
from river.diagnostics import Rejected, closest
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.check.environment import Binding, Context, Frame
from river.lang.check.expressions import check
from river.lang.check.functions import emitting, finished, fn_table, function_index
from river.lang.check.statements import key_type, statements
from river.lang.rates import emitted
from river.lang.scope import Scope, integer, resolve, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

N = TypeVar("N", bound=typed.Node)

KEYS = (t.I64, t.I32, t.U64, t.TIME, t.DURATION)


def _adds_column(port: typed.Port, out: typed.Out) -> bool:
    """Whether deltas on an output are those of the input but for the last column, which is a record there, or none."""
    match port.type, out.type:
        case (
            t.Record((("tau", at), ("ins", t.List(t.Record(rows)) as ins), ("del", gone))),
            t.Record((("tau", to), ("ins", t.List(t.Record(made)) as outs), ("del", left))),
        ) if ins == gone and outs == left and port.by == out.by and rows and made:
            operands, value = rows[-1][1], made[-1][1]
            if isinstance(operands, t.Optional):
                operands = operands.inner if isinstance(value, t.Optional) else operands
            return at == to and rows[:-1] == made[:-1] and isinstance(operands, t.Record)
        case _:
            return False


def operator(op: s.Operator | s.Extern, scope: Scope) -> typed.Operator | typed.Extern:
    """The checked operator.

    Raises: Rejected with every error of the signature and the bodies (codes lang-*).
    """
    c = Context(scope)
    ports = _ports(c, op.ports)
    outs = tuple(o for o in (_out(c, out) for out in op.outs) if o is not None)
    variables = _variables(c, op.vars)
    _unique(c, [*op.ports, *op.outs], "port")
    if c.report:
        raise Rejected(c.report)
    if isinstance(op, s.Extern):
        params = tuple(typed.VarParam(name, type_, written=True) for name, type_ in variables)
        if op.scalar and not (
            len(ports) == len(outs) == 1 and not params and _adds_column(ports[0], outs[0])
        ):
            message = f"`{op.name}` is no operator that puts a value in the place of operands"
            hint = "the last field of the rows of its one input is a record of operands, of its output their value"
            c.error("lang-scalar-extern", message, op.span, hint)
            raise Rejected(c.report)
        return typed.Extern(op.name, ports, params, outs, op.target, op.scalar, span=op.span)
    c.outs, c.variables = outs, variables
    c.local_fns = fn_table(op.fns)
    _unique(c, op.fns, "function")
    consts = _consts(c, op.consts)
    for fn in op.fns:
        with c.recover():
            function_index(c, fn.name)
    found = _Handlers(c, ports).check_all(op)
    if c.report:
        raise Rejected(c.report)
    params = tuple(
        typed.VarParam(name, type_, written=i in c.written) for i, (name, type_) in enumerate(variables)
    )
    result = evolve(found, vars=params, outs=outs, consts=consts, fns=finished(c), sites=tuple(c.sites))
    _check_early(c, result)
    _check_rates(c, result)
    if c.report:
        raise Rejected(c.report)
    return result


def with_constants(op: s.Operator, other: typed.Operator, scope: Scope) -> typed.Operator | None:
    """The checked operator, if `other` is that of a text which is the same but for its name and the values of its constants.

    The values call no functions. None if they are wrong, or may trap: then more depends on them than the constants themselves.
    """
    c = Context(scope)
    consts = _consts(c, op.consts)
    if c.report or c.sites:
        return None
    return evolve(other, name=op.name, consts=consts, span=op.span)


def _ports(c: Context, ports: tuple[s.Port, ...]) -> tuple[typed.Port, ...]:
    found: list[typed.Port] = []
    for port in ports:
        with c.recover():
            type_ = resolve(port.type, c.scope)
            _key(c, port, type_, port.by)
            initial: tuple[typed.Value, ...] = ()
            if port.initial is not None:
                initial = constant(port.initial, t.List(type_), c.scope)
            found.append(typed.Port(port.name, type_, port.by, initial, span=port.span))
    return tuple(found)


def _out(c: Context, out: s.Out) -> typed.Out | None:
    with c.recover():
        type_ = resolve(out.type, c.scope)
        _key(c, out, type_, out.by)
        push = None if out.push is None else _constant_integer(c, out.push, "a push rate", 0)
        return typed.Out(out.name, type_, out.by, push, span=out.span)
    return None


def _key(c: Context, node: s.Port | s.Out, type_: t.Type, by: str | None) -> None:
    if not t.is_item(type_):
        help_ = "omap, bag, deque, fsum, i128 and regex are for variables: send a value or a list made of it"
        raise c.error("lang-item-type", f"`{show(type_)}` cannot travel along a queue", node.span, help_)
    if by is None:
        return
    if not isinstance(type_, t.Record) or type_.field(by) is None:
        names = [name for name, _ in type_.fields] if isinstance(type_, t.Record) else []
        raise c.error(
            "lang-key",
            f"the items of `{node.name}` have no field `{by}` to order by",
            node.span,
            closest(by, names),
        )
    if type_.field(by) not in KEYS:
        raise c.error(
            "lang-key", f"`{by}` must be a whole number, a time or a duration to order by", node.span
        )


def _variables(c: Context, variables: tuple[s.VarParam, ...]) -> tuple[tuple[str, t.Type], ...]:
    found: list[tuple[str, t.Type]] = []
    for variable in variables:
        with c.recover():
            found.append((variable.name, resolve(variable.type, c.scope)))
    _unique(c, variables, "variable")
    return tuple(found)


def _unique(c: Context, nodes: Iterable[s.Port | s.Out | s.VarParam | s.Fn | s.Const], what: str) -> None:
    seen: set[tuple[type, str]] = set()
    for node in nodes:
        if (type(node), node.name) in seen:
            c.error("lang-duplicate-name", f"{what} `{node.name}` is declared twice", node.span)
        seen.add((type(node), node.name))


def _consts(c: Context, consts: tuple[s.Const, ...]) -> tuple[typed.Const, ...]:
    found: list[typed.Const] = []
    _unique(c, consts, "constant")
    for const in consts:
        type_ = None
        with c.recover():
            type_ = resolve(const.type, c.scope)
            c.frame = Frame()
            value = check(c, const.value, type_)
            if c.frame.calls & emitting(c):
                raise c.error("lang-emit", "a constant cannot call a function that emits", const.span)
            c.consts[const.name] = Binding(type_, len(found), const=True)
            found.append(typed.Const(const.name, type_, value, c.frame.slots, span=const.span))
            continue
        c.consts[const.name] = Binding(None, len(found), const=True)
    return tuple(found)


def _constant_integer(c: Context, expr: s.Expr, what: str, least: int) -> int:
    value = integer(expr)
    if value is None:
        value = constant(expr, t.I64, c.scope)
    assert isinstance(value, int)  # noqa: S101 - an i64
    if value < least:
        raise c.error("lang-rate", f"{what} must be at least {least}, not {value}", expr.span)
    return value


def constant(expr: s.Expr, type_: t.Type, scope: Scope) -> typed.Value:
    """The frozen value of a closed expression of type `type_`.

    Raises: Rejected, also when the evaluation traps (code lang-constant).
    """
    from river.lang import evaluate

    c = Context(scope)
    with c.recover():
        node = check(c, expr, type_)
        if not c.report:
            try:
                return evaluate.first_value(node, finished(c), tuple(c.sites), c.frame.slots)
            except evaluate.Trap as trap:
                reason = trap.diagnostic()
                message = f"this constant cannot be computed: {reason.message}"
                c.error("lang-constant", message, reason.span or expr.span)
    raise Rejected(c.report)


class _Handlers:
    """Checks the handlers of one operator and sorts them by kind."""

    def __init__(self, c: Context, ports: tuple[typed.Port, ...]) -> None:
        self.c = c
        self.ports = ports

    def check_all(self, op: s.Operator) -> typed.Operator:
        """The operator with its handlers, the rest of its parts still empty."""
        c = self.c
        result = typed.Operator(op.name, self.ports, (), (), (), (), (), span=op.span)
        kinds: set[str] = set()
        for handler in op.handlers:
            with c.recover():
                match handler:
                    case s.ItemHandler():
                        kinds.add("item")
                        result = evolve(result, items=(*result.items, self.item(handler, result.items)))
                    case s.RatedHandler():
                        kinds.add("rated")
                        node = self.rated(handler)
                        if handler.first:
                            result = evolve(result, first=self.once(result.first, node, handler))
                        else:
                            result = evolve(result, rated=self.once(result.rated, node, handler))
                    case s.PhaseHandler():
                        kinds.add("phase")
                        result = evolve(result, phases=(*result.phases, self.phase(handler)))
                    case s.MergeHandler():
                        kinds.add("merge")
                        result = evolve(result, merge=self.once(result.merge, self.merge(handler), handler))
                    case s.MarkHandler():
                        result = evolve(result, mark=self.once(result.mark, self.mark(handler), handler))
                    case _:
                        assert_never(handler)
        if not c.report:
            self.complete(op, result, kinds)
        return result

    def once(self, before: N | None, node: N, handler: s.Handler) -> N:
        """Refuses a second handler of a kind."""
        if before is not None:
            raise self.c.error("lang-handlers", "there is already a handler of this kind", handler.span)
        return node

    def complete(self, op: s.Operator, result: typed.Operator, kinds: set[str]) -> None:
        """Refuses mixtures, and ports that nothing reads."""
        if len(kinds) > 1:
            shown = " and ".join(sorted(kinds))
            self.c.error("lang-handlers", f"an operator cannot mix {shown} handlers", op.span)
            return
        if result.first is not None and result.rated is None:
            self.c.error("lang-handlers", "`first` needs a further rated handler", op.span)
            return
        read = {h.port for h in (*result.items, *result.phases)}
        read |= {rate.port for rated in (result.rated,) if rated is not None for rate in rated.rates}
        read |= set() if result.merge is None else set(result.merge.ports)
        for index, port in enumerate(self.ports):
            if index not in read:
                self.c.error("lang-handlers", f"no handler reads `{port.name}`", port.span)
            if port.initial and not result.phases and result.rated is None:
                message = f"`{port.name}` has an initial tail: only rated and phase handlers read one"
                self.c.error("lang-handlers", message, port.span)

    def port(self, name: str, handler: s.Node) -> int:
        """The position of a port."""
        for index, port in enumerate(self.ports):
            if port.name == name:
                return index
        help_ = closest(name, [port.name for port in self.ports])
        raise self.c.error("lang-unknown-port", f"unknown input `{name}`", handler.span, help_)

    def body(self, names: Sequence[tuple[str, t.Type]], body: s.Block) -> tuple[int, typed.Block]:
        """A handler's body in a fresh frame whose first slots are `names`."""
        c = self.c
        c.frame, c.may_emit, c.may_touch_state = Frame(), True, True
        for name, type_ in names:
            if name in c.frame.names[-1]:
                raise c.error("lang-duplicate-name", f"`{name}` is already bound here", body.span)
            c.bind(name, type_, body.span)
        found = typed.Block(statements(c, body), span=body.span)
        c.may_emit = c.may_touch_state = False
        return c.frame.slots, found

    def item(self, handler: s.ItemHandler, before: tuple[typed.ItemHandler, ...]) -> typed.ItemHandler:
        """The handler `on q(x)`."""
        port = self.port(handler.port, handler)
        if any(h.port == port for h in before):
            raise self.c.error("lang-handlers", f"`{handler.port}` already has a handler", handler.span)
        slots, body = self.body([(handler.name, self.ports[port].type)], handler.body)
        return typed.ItemHandler(port, slots, body, span=handler.span)

    def rated(self, handler: s.RatedHandler) -> typed.RatedHandler:
        """The handler `on q[peek p, pop o](w)`."""
        c = self.c
        rates: list[typed.Rate] = []
        names: list[tuple[str, t.Type]] = []
        early: list[tuple[int, int]] = []
        for rate in handler.rates:
            port = self.port(rate.port, rate)
            pop = _constant_integer(c, rate.pop, "a pop rate", 0)
            peek = pop if rate.peek is None else max(pop, _constant_integer(c, rate.peek, "a peek rate", 0))
            if any(r.port == port for r in rates):
                raise c.error("lang-handlers", f"`{rate.port}` is named twice", rate.span)
            rates.append(typed.Rate(port, peek, pop, span=rate.span))
            early += (
                (
                    _constant_integer(c, each.there, "a number of items", 1),
                    _constant_integer(c, each.sent, "a number of items", 1),
                )
                for each in rate.early
            )
            names.append((rate.name, t.Array(self.ports[port].type, peek)))
        if not handler.first and all(rate.pop == 0 for rate in rates):
            raise c.error("lang-rate", "a firing must pop something, or it would never end", handler.span)
        slots, body = self.body(names, handler.body)
        return typed.RatedHandler(tuple(rates), slots, body, handler.first, tuple(early), span=handler.span)

    def phase(self, handler: s.PhaseHandler) -> typed.PhaseHandler:
        """`phase n on q(x)`."""
        count = _constant_integer(self.c, handler.count, "a phase", 0)
        port = self.port(handler.port, handler)
        slots, body = self.body([(handler.name, self.ports[port].type)], handler.body)
        return typed.PhaseHandler(count, port, slots, body, span=handler.span)

    def merge(self, handler: s.MergeHandler) -> typed.MergeHandler:
        """A firing for the smallest key of several inputs."""
        c = self.c
        ports = tuple(self.port(name, handler) for name, _ in handler.sides)
        if len(set(ports)) != len(ports):
            raise c.error("lang-handlers", "a merge names each input once", handler.span)
        keys = [key_type(self.ports[p].type, self.ports[p].by) for p in ports]
        if any(key is None or key != keys[0] for key in keys):
            raise c.error(
                "lang-key", "the inputs of a merge must be ordered `by` keys of one type", handler.span
            )
        first = keys[0]
        assert first is not None  # noqa: S101 - just checked
        sides = [
            (name, t.Optional(_some(c, self.ports[p], handler)))
            for p, (_, name) in zip(ports, handler.sides, strict=True)
        ]
        slots, body = self.body([("key", first), *sides], handler.body)
        return typed.MergeHandler(ports, slots, body, span=handler.span)

    def mark(self, handler: s.MarkHandler) -> typed.MarkHandler:
        """What replaces the forwarding of marks."""
        c = self.c
        keys = {key_type(port.type, port.by) for port in self.ports if port.by is not None}
        if len(keys) != 1:
            raise c.error("lang-key", "`on mark` needs inputs ordered `by` keys of one type", handler.span)
        key = keys.pop()
        assert key is not None  # noqa: S101 - ports are checked
        slots, body = self.body([(handler.name, key)], handler.body)
        return typed.MarkHandler(slots, body, span=handler.span)


def _some(c: Context, port: typed.Port, handler: s.Node) -> t.Type:
    if isinstance(port.type, t.Optional):
        raise c.error(
            "lang-nested-optional",
            f"`{port.name}` carries optionals, which a merge cannot tell from absence",
            handler.span,
        )
    return port.type


def _check_early(c: Context, op: typed.Operator) -> None:
    """Refuses items that are sent early where it would not be clear which ones these are."""
    for handler in (op.first, op.rated):
        if handler is None or not handler.early:
            continue
        theirs, ours = op.ports, op.outs
        if (
            op.first is not None
            or op.vars
            or (len(theirs), len(ours)) != (1, 1)
            or any(end.by is not None for end in (*theirs, *ours))
            or ours[0].push is None
            or handler.rates[0].peek != handler.rates[0].pop
        ):
            message = "only an operator of one window, all of which it pops, and of one output with a push rate can send early"
            c.error("lang-early", message, handler.span, "it has no variables, order or `first`, either")
            continue
        most = (handler.rates[0].pop - 1, ours[0].push)
        numbers = [(0, 0), *handler.early]
        for before, found in pairwise(numbers):
            if not all(low < n <= high for low, n, high in zip(before, found, most, strict=True)):
                message = f"`{found[0]}: {found[1]}` is out of order, or more than `{most[0]}: {most[1]}`"
                c.error("lang-early", message, handler.span, "both numbers ascend")
                break


def _check_rates(c: Context, op: typed.Operator) -> None:
    """Refuses a body that provably emits another number of items than its output states."""
    for handler in (*op.items, *((op.rated,) if op.rated is not None else ()), *op.phases):
        for index, out in enumerate(op.outs):
            if out.push is None:
                continue
            low, high = emitted(handler.body, index, op.fns)
            if low > out.push or (high is not None and high < out.push):
                found = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
                message = f"`{out.name}` states push {out.push}, but a firing emits {found}"
                c.error("lang-push-rate", message, out.span or handler.span)
