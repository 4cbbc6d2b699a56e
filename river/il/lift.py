"""The one transformer of bodies: an operator on items that carry a tag (il.md (d))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import evolve
from river.diagnostics import Diagnostic, Note, Rejected
from river.il.trees import fresh, names, rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.source import Span


def lift(operator: s.Operator | s.Extern, tag: str, span: Span | None = None) -> s.Operator:
    """The operator on tagged items: ports and outputs carry `{tag: i64, v: T}` by the tag (il.md (d)).

    All items of one firing bear the tag of the item that caused them; a merge by the tag restores their order, and so that of
    their keys. Total on operators with one port, an item handler and no marks of their own.

    Raises: Rejected with il-lift.
    """

    def refuse(why: str) -> Rejected:
        message = f"`{operator.name}` cannot be lifted: {why}"
        return Rejected([Diagnostic("il-lift", message, span, notes=(Note("the operator", operator.span),))])

    match operator:
        case s.Extern():
            raise refuse("its body is not text")
        case s.Operator(_, (port,), _, _, _, _, (s.ItemHandler() as handler,)):
            marks = any(isinstance(node, s.Mark) for node in walk(operator))
        case s.Operator():
            raise refuse("only operators with one input, read by `on x(..)`, can be")
    if marks:
        raise refuse("it sends marks of its own, which would tell nothing of tags")
    return _Lifting(operator, tag).lifted(port, handler)


class _Lifting:
    """The threading of the tag through one body: a local, and a parameter of the local functions that emit."""

    def __init__(self, operator: s.Operator, tag: str) -> None:
        taken = names(operator)
        self.operator = operator
        self.tag = tag
        self.tagged = fresh("tagged", taken)
        self.serial = fresh(tag, taken | {self.tagged})
        self.emitting = _emitting(operator.fns)

    def lifted(self, port: s.Port, handler: s.ItemHandler) -> s.Operator:
        """The lifted operator."""
        item = s.Let(handler.name, None, s.Member(s.Name(self.tagged), "v"))
        serial = s.Let(self.serial, None, s.Member(s.Name(self.tagged), self.tag))
        body = s.Block((serial, item, *rebuild(handler.body, self.node).items), span=handler.body.span)
        return evolve(
            self.operator,
            ports=(evolve(port, type=self.type(port.type), by=self.tag),),
            outs=tuple(evolve(out, type=self.type(out.type), by=self.tag) for out in self.operator.outs),
            fns=tuple(self.fn(fn) for fn in self.operator.fns),
            handlers=(evolve(handler, name=self.tagged, body=body),),
        )

    def type(self, inner: s.TypeExpr) -> s.TypeExpr:
        return s.RecordType((s.FieldType(self.tag, s.TypeName("i64")), s.FieldType("v", inner)))

    def fn(self, fn: s.Fn) -> s.Fn:
        if fn.name not in self.emitting:
            return fn
        return evolve(rebuild(fn, self.node), params=(s.Param(self.serial, s.TypeName("i64")), *fn.params))

    def node(self, node: s.Node) -> s.Node:
        node = rebuild(node, self.node)
        match node:
            case s.Emit(_, value):
                record = s.RecordValue(
                    (s.FieldValue(self.tag, s.Name(self.serial)), s.FieldValue("v", value))
                )
                return evolve(node, value=record)
            case s.Call(name, args) if name in self.emitting:
                return evolve(node, args=(s.Name(self.serial), *args))
            case _:
                return node


def _emitting(fns: Sequence[s.Fn]) -> frozenset[str]:
    """The local functions that emit, themselves or through others."""
    calls = {fn.name: {n.function for n in walk(fn) if isinstance(n, s.Call)} for fn in fns}
    found = {fn.name for fn in fns if any(isinstance(n, s.Emit) for n in walk(fn))}
    while more := {name for name, called in calls.items() if name not in found and called & found}:
        found |= more
    return frozenset(found)
