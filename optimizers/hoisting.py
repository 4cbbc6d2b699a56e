"""Selection hoisting: `(q1) <- a(q0); (q2) <- sel(q1)` becomes `(q1) <- sel(q0); (q2) <- a(q1)`.

What the selection drops need not be computed. Safe if the first keeps no state, the selection only asks for fields that the
first passes on unchanged, and neither can trap on an item that the other would have kept from it.

A selection may build its item again, `emit out {k: v.k, l: v.l}`. Items of the first's input have other fields: what is sent
there is the item itself.

Paper: River §4.1 (the third of Brooklet's optimizations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from optimizers.queries import Names, changed, source, successors, topological
from river.classes import evolve, frozen
from river.diagnostics import Note
from river.il.annotations import bordered, row_type
from river.il.model import Stateless, instance_model
from river.il.program import Program, Queue
from river.il.trees import rebuild, walk
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform


@frozen
class Site:
    """An operator and the selection that follows it."""

    operator: int
    selection: int


@frozen
class Hoisting:
    """`hoisting`: selections go before the operators that compute what they do not look at."""

    name: ClassVar[str] = "hoisting"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        graph = verified.graph
        for index in topological(graph):
            instance = graph.instances[index]
            after = successors(graph, instance)
            if (
                len(instance.outs) == 1 == len(instance.ins)
                and len(after) == 1
                and not _selects(verified, instance)
            ):
                selection = graph.instances[after[0]]
                if _selects(verified, selection) and not instance.variables:
                    yield Site(index, after[0])

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        one, selection = (verified.graph.instances[i] for i in (site.operator, site.selection))
        text = source(verified, selection.use.operator)
        assert isinstance(text, s.Operator)  # noqa: S101 - by the policy
        reason = _obstacle(one, selection, _asked(text))
        names = f"`{selection.use.operator}` stays behind `{one.use.operator}`"
        return None if reason is None else Note(f"{names}: {reason}", selection.use.span)

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        one, selection = (verified.graph.instances[i] for i in (site.operator, site.selection))
        first, second = source(verified, one.use.operator), source(verified, selection.use.operator)
        assert isinstance(first, s.Operator)  # noqa: S101 - the guard has approved
        assert isinstance(second, s.Operator)  # noqa: S101 - the guard has approved
        names = Names(verified.program)
        hoisted = _hoisted(first, second, instance_model(one).forwarded[0])
        hoisted = evolve(hoisted, name=names.operator(f"{second.name}_first"))
        middle = names.queue(f"{one.ins[0]}_kept")
        earlier = evolve(selection.use, operator=hoisted.name, ins=one.ins, outs=(middle,))
        later = evolve(one.use, ins=(middle,), outs=selection.outs)

        def change(decl: Decl) -> Decl | Iterable[Decl] | None:
            if decl is one.use:
                return (earlier, later)
            gone = isinstance(decl, Queue) and decl.name == one.outs[0]
            return None if gone or decl is selection.use else decl

        return changed(verified.program, change, (hoisted,))


def _selects(verified: Verified, instance: g.Instance) -> bool:
    """Whether an operator only sends its items on, or does not."""
    op = instance.operator
    if not isinstance(op, typed.Operator) or len(op.ports) != 1 or len(op.outs) != 1 or len(op.items) != 1:
        return False
    type_ = op.ports[0].type
    if op.outs[0].type != type_:
        return False
    model = instance_model(instance)
    fields = (
        [name for name, _ in type_.fields] if isinstance(type_, t.Record) and row_type(type_) is None else []
    )
    text = source(verified, instance.use.operator)
    whole = isinstance(text, s.Operator) and _plain(text)
    sent = model.selectivity[0]
    selective = sent.least == 0 and sent.most == 1 and isinstance(model.state, Stateless) and op.mark is None
    return whole and selective and bool(fields) and model.forwards(0, fields)


def _plain(operator: s.Operator) -> bool:
    """Whether the body uses its item by its fields, and sends it as it is: then another item will do as well."""
    match operator.handlers:
        case (s.ItemHandler() as handler,) if not operator.vars:
            pass
        case _:
            return False
    nodes = list(walk(handler.body))
    sent = [node.value for node in nodes if isinstance(node, s.Emit)]
    uses = sum(isinstance(node, s.Name) and node.name == handler.name for node in nodes)
    by_field = sum(_field_of(node, handler.name) is not None for node in nodes)
    whole = sum(isinstance(value, s.Name) for value in sent)
    again = any(_binds(node, handler.name) for node in nodes)
    sends = any(isinstance(n, s.Emit | s.Mark) for fn in operator.fns for n in walk(fn))
    return (
        uses == by_field + whole
        and all(_item(value, handler.name) for value in sent)
        and not (again or sends or any(isinstance(node, s.Mark) for node in nodes))
    )


def _field_of(node: s.Node, item: str) -> str | None:
    """The field, if a node is a field of the item."""
    match node:
        case s.Member(s.Name(name), field) if name == item:
            return field
        case _:
            return None


def _binds(node: s.Node, item: str) -> bool:
    """Whether another value may have the item's name somewhere."""
    match node:
        case s.Lambda(params, _):
            return item in params
        case s.Bind(_, name):
            return name == item
        case _:
            return False


def _asked(operator: s.Operator) -> tuple[str, ...]:
    """The fields by which a selection decides: those that it looks at, other than to send its item."""
    (handler,) = operator.handlers
    assert isinstance(handler, s.ItemHandler)  # noqa: S101 - selections are
    found: dict[str, None] = {}

    def look(node: s.Node) -> s.Node:
        if (field := _field_of(node, handler.name)) is not None:
            found[field] = None
        return node if isinstance(node, s.Emit) else rebuild(node, look)

    look(handler.body)
    return tuple(found)


def _item(value: s.Expr, item: str) -> bool:
    """Whether a value that is sent is the item, or made of its fields alone; which ones, the model knows."""
    match value:
        case s.Name(name):
            return name == item
        case s.RecordValue(fields):
            return all(isinstance(f, s.FieldValue) and _field_of(f.value, item) is not None for f in fields)
        case _:
            return False


def _obstacle(one: g.Instance, selection: g.Instance, asked: Iterable[str]) -> str | None:
    """Why a selection, which asks for some fields, cannot go before an operator."""
    op, model = one.operator, instance_model(one)
    wants = instance_model(selection)
    if not isinstance(op, typed.Operator) or not op.items:
        return "that is not read item by item"
    if op.mark is not None:
        return "that acts on marks"
    if bordered(one.use, selection.use):
        return "a border of a parallel region is between them"
    if model.can_trap:
        return "that might trap on an item which would now be dropped"
    if wants.can_trap and model.selectivity[0].least == 0:
        return "it might trap on an item which that does not send"
    forwarded = dict(model.forwarded[0])
    if missing := [name for name in asked if name not in forwarded]:
        return f"it asks for `{missing[0]}`, which that computes"
    return None


def _hoisted(first: s.Operator, second: s.Operator, forwarded: Iterable[tuple[str, str]]) -> s.Operator:
    """The selection on the items of the first's input: their type and order, and the names that fields have there."""
    names: Mapping[str, str] = dict(forwarded)
    (handler,) = second.handlers
    assert isinstance(handler, s.ItemHandler)  # noqa: S101 - selections are
    item = handler.name
    (port,), (own,), (out,) = first.ports, second.ports, second.outs

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Emit():
                return evolve(node, value=s.Name(item, span=node.span))
            case s.Member(s.Name(name) as value, field) if name == item:
                return s.Member(value, names[field], span=node.span)
            case _:
                return rebuild(node, rewrite)

    return evolve(
        second,
        ports=(evolve(own, type=port.type, by=port.by),),
        outs=(evolve(out, type=port.type, by=port.by),),
        handlers=(evolve(handler, body=rebuild(handler.body, rewrite)),),
    )
