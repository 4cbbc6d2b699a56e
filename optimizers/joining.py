"""The mechanism of fusion: of two operators' texts, one, in which the first calls what the second does.

A handler of the second becomes a local function, called wherever the first emitted; its variables are handed down as
parameters. Names of one that mean something else in the other are spelled anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from river.classes import evolve, frozen
from river.il.trees import fresh, names, rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

N = TypeVar("N", bound=s.Node)


@frozen
class Link:
    """How two operators are connected.

    `ports`: from an output of the first to the port of the second that it feeds. `written`: the variables that the second
    writes. `key`: the type of the second's key, if it has one. `forwards`: whether the second is told of the marks of the
    first. `explicit`: the fused operator states its marks, because those of the input are not simply forwarded.
    """

    ports: Mapping[str, str]
    written: frozenset[str]
    key: s.TypeExpr | None
    forwards: bool
    explicit: bool


def joined(name: str, first: s.Operator, second: s.Operator, link: Link) -> s.Operator:
    """The operator that does at each firing of the first what both do.

    Its ports are those of the first and the other ones of the second, and so are its outputs and variables.
    """
    first = _respelled(first, {n for n in _own(first) if n in names(second)}, names(first) | names(second))
    second = _respelled(second, {n for n in _own(second) if n in names(first)}, names(first) | names(second))
    second, written = _ends_apart(first, second, link)
    return _Joining(name, first, second, evolve(link, written=written)).operator()


def _own(operator: s.Operator) -> frozenset[str]:
    """The names that hold in the whole operator."""
    return frozenset(d.name for d in (*operator.consts, *operator.fns))


def _respelled(operator: s.Operator, clashing: set[str], taken: frozenset[str]) -> s.Operator:
    """The operator with some of its constants and functions under fresh names."""
    new: dict[str, str] = {}
    for old in sorted(clashing):
        new[old] = fresh(old, taken | set(new.values()))
    consts = {c.name: new[c.name] for c in operator.consts if c.name in new}
    fns = {f.name: new[f.name] for f in operator.fns if f.name in new}

    def rewrite(node: s.Node) -> s.Node:
        node = rebuild(node, rewrite)
        match node:
            case s.Name(old) | s.Const(old, _, _) if old in consts:
                return evolve(node, name=consts[old])
            case s.Fn(old, _, _, _) if old in fns:
                return evolve(node, name=fns[old])
            case s.Call(old, _) if old in fns:
                return evolve(node, function=fns[old])
            case _:
                return node

    return rebuild(operator, rewrite) if new else operator


def _ends_apart(first: s.Operator, second: s.Operator, link: Link) -> tuple[s.Operator, frozenset[str]]:
    """The second with outputs, variables and other ports called unlike those of the first; what it writes."""
    ends = {e.name for e in (*first.ports, *first.outs) if e.name not in link.ports}
    variables = {v.name for v in first.vars}
    outs: dict[str, str] = {}
    ports: dict[str, str] = {}
    for out in second.outs:
        outs[out.name] = fresh(out.name, ends)
        ends.add(outs[out.name])
    for port in second.ports:
        ports[port.name] = port.name if port.name in link.ports.values() else fresh(port.name, ends)
        ends.add(ports[port.name])
    renamed: dict[str, str] = {}
    for variable in second.vars:
        renamed[variable.name] = fresh(variable.name, variables)
        variables.add(renamed[variable.name])

    def rewrite(node: s.Node) -> s.Node:
        node = rebuild(node, rewrite)
        match node:
            case s.Emit(out, _) | s.Mark(out, _):
                return evolve(node, out=outs[out])
            case s.Out(out):
                return evolve(node, name=outs[out])
            case s.Port(port):
                return evolve(node, name=ports[port])
            case s.ItemHandler(port, _, _):
                return evolve(node, port=ports[port])
            case s.Var(variable) | s.VarParam(variable, _):
                return evolve(node, name=renamed[variable])
            case _:
                return node

    return rebuild(second, rewrite), frozenset(renamed[name] for name in link.written)


class _Joining:
    """One fusion: the functions that the second's handlers become, and how they are called."""

    def __init__(self, name: str, first: s.Operator, second: s.Operator, link: Link) -> None:
        self.name = name
        self.first = first
        self.second = second
        self.link = link
        self.taken = set(names(first) | names(second))
        self.params = {v.name: self.unused(v.name) for v in second.vars}
        self.fns: dict[str, s.Fn] = {}
        self.mark_fn: s.Fn | None = None
        self.inside = False  # a function of the first, where variables are parameters

    def unused(self, name: str) -> str:
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    # -- the second's handlers as functions

    def operator(self) -> s.Operator:
        """The fused operator."""
        first, second = self.first, self.second
        linked = set(self.link.ports.values())
        mark: s.MarkHandler | None = None
        others: list[s.Handler] = []
        for handler in second.handlers:
            match handler:
                case s.ItemHandler(port, item, body) if port in linked:
                    (type_,) = (p.type for p in second.ports if p.name == port)
                    title = second.name if len(linked) == 1 else f"{second.name}_{port}"
                    self.fns[port] = self.fn(title, s.Param(item, type_), body)
                case s.MarkHandler():
                    mark = handler
                case _:
                    others.append(handler)
        if mark is not None and self.link.forwards and self.link.key is not None:
            self.mark_fn = self.fn(f"{second.name}_mark", s.Param(mark.name, self.link.key), mark.body)
        handlers = [*(rebuild(h, self.node) for h in first.handlers), *others]
        if self.link.explicit:
            handlers.append(self.marks())
        threaded = self.threaded()
        self.inside = True
        fns = tuple(self.threading(fn) if fn.name in threaded else fn for fn in first.fns)
        own = (*self.fns.values(), *(() if self.mark_fn is None else (self.mark_fn,)))
        return s.Operator(
            self.name,
            (*first.ports, *(p for p in second.ports if p.name not in linked)),
            (*first.vars, *second.vars),
            (*(o for o in first.outs if o.name not in self.link.ports), *second.outs),
            (*first.consts, *second.consts),
            (*second.fns, *own, *fns),
            tuple(handlers),
            span=first.span,
        )

    def fn(self, title: str, item: s.Param, body: s.Block) -> s.Fn:
        """A handler as a function of its item and of the variables."""

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Var(name):
                    return s.Name(self.params[name], span=node.span)
                case _:
                    return rebuild(node, rewrite)

        return s.Fn(
            self.unused(title), (item, *self.declared()), None, rebuild(body, rewrite), span=body.span
        )

    def declared(self) -> tuple[s.Param, ...]:
        """The variables of the second as parameters; those that it writes by reference."""
        return tuple(
            s.Param(self.params[v.name], v.type, v.name in self.link.written) for v in self.second.vars
        )

    def given(self) -> tuple[s.Expr, ...]:
        """The variables of the second as arguments, here."""
        if self.inside:
            return tuple(s.Name(self.params[v.name]) for v in self.second.vars)
        return tuple(s.Var(v.name) for v in self.second.vars)

    # -- the first, calling them

    def threaded(self) -> frozenset[str]:
        """The functions of the first that need the second's variables: they send to it, or call some that do."""
        if not self.second.vars:
            return frozenset(fn.name for fn in self.first.fns if self.sends(fn))
        found = {fn.name for fn in self.first.fns if self.sends(fn)}
        calls = {fn.name: {n.function for n in walk(fn) if isinstance(n, s.Call)} for fn in self.first.fns}
        while more := {name for name, called in calls.items() if name not in found and called & found}:
            found |= more
        return frozenset(found)

    def sends(self, fn: s.Fn) -> bool:
        return any(isinstance(n, s.Emit | s.Mark) and n.out in self.link.ports for n in walk(fn))

    def threading(self, fn: s.Fn) -> s.Fn:
        return evolve(rebuild(fn, self.node), params=(*self.declared(), *fn.params))

    def node(self, node: s.Node) -> s.Node | tuple[s.Node, ...]:
        """A node of the first: what it sent to the second, it now does."""
        match node:
            case s.Emit(out, value) if out in self.link.ports:
                call = s.Call(
                    self.fns[self.link.ports[out]].name, (self.inner(value), *self.given()), span=node.span
                )
                return s.Do(call, span=node.span)
            case s.Mark(out, value) if out in self.link.ports:
                return self.marked(self.inner(value))
            case s.Call(name, _) if name in self.threaded():
                inner = self.inner(node)
                return evolve(inner, args=(*self.given(), *inner.args))
            case _:
                return self.inner(node)

    def inner(self, node: N) -> N:
        return rebuild(node, self.node)

    # -- marks

    def marked(self, value: s.Expr) -> tuple[s.Stmt, ...]:
        """What a mark of the first to the second does."""
        ordered = [out.name for out in self.second.outs if out.by is not None]
        if self.link.forwards and self.mark_fn is not None:
            return (s.Do(s.Call(self.mark_fn.name, (value, *self.given()))),)
        if not self.link.forwards or not ordered:
            return (
                ()
                if isinstance(value, s.Name | s.Var | s.Member)
                else (s.Let(self.unused("mark"), None, value),)
            )
        if len(ordered) == 1:
            return (s.Mark(ordered[0], value),)
        if isinstance(value, s.Name):
            return tuple(s.Mark(out, value) for out in ordered)
        key = self.unused("mark")
        return (s.Let(key, None, value), *(s.Mark(out, s.Name(key)) for out in ordered))

    def marks(self) -> s.MarkHandler:
        """What the first and the second would do with a mark, one after the other."""
        key = self.unused("k")
        statements: list[s.Stmt] = []
        told = False
        for out in self.first.outs:
            if out.by is None:
                continue
            if out.name not in self.link.ports:
                statements.append(s.Mark(out.name, s.Name(key)))
            elif not told:
                told = True
                statements += self.marked(s.Name(key))
        return s.MarkHandler(key, s.Block(tuple(statements)))
