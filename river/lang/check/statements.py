"""Statements: untyped to typed. An error ends its statement only, so that all errors of a body are found at once."""

from __future__ import annotations

from typing import assert_never

from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.check.environment import Context, path_of
from river.lang.check.expressions import borrowed, check, infer, loop_names, mismatch, place, steady
from river.lang.operations import OPERATIONS
from river.lang.scope import resolve, show


def block(c: Context, body: s.Block) -> typed.Block:
    """A block in a scope of its own."""
    with c.block():
        return typed.Block(statements(c, body), span=body.span)


def statements(c: Context, body: s.Block) -> tuple[typed.Stmt, ...]:
    """The statements of a block, in the current scope."""
    found: list[typed.Stmt] = []
    for item in body.items:
        names = len(c.frame.names)
        with c.recover():
            found.append(_statement(c, item))
            continue
        del c.frame.names[names:]
        if isinstance(item, s.Let | s.VarDecl):
            c.poison(item.name)
    return tuple(found)


def _statement(c: Context, item: s.Stmt) -> typed.Stmt:
    span = item.span
    match item:
        case s.Let(name, type_, value):
            node = _value(c, type_, value)
            for path in borrowed(node):
                c.guard(path, reads=False, name=name, why="borrows from it")
            return typed.Let(c.bind(name, node.type, span), name, node, span=span)
        case s.VarDecl(name, type_, value):
            node = _value(c, type_, value)
            return typed.Var(c.bind(name, node.type, span, writable=True), name, node, span=span)
        case s.Assign(target, value):
            node = place(c, target, "an assignment")
            return typed.Assign(node, check(c, value, node.type), span=span)
        case s.With():
            return _with(c, item)
        case s.Drop(name):
            binding = c.lookup(name)
            if binding is None or binding.slot not in c.frame.droppable:
                raise c.error("lang-drop", f"`{name}` is not the entry of a `with`", span)
            if binding.slot in c.frame.dropped:
                raise c.error("lang-drop", f"`{name}` may have been dropped before", span)
            if len(c.frame.loops) > c.frame.droppable[binding.slot]:
                raise c.error(
                    "lang-drop", f"`{name}` cannot be dropped inside a loop", span, "drop it after the loop"
                )
            c.frame.dropped.add(binding.slot)
            return typed.Drop(binding.slot, name, span=span)
        case s.If():
            return _if(c, item)
        case s.For():
            return _for(c, item)
        case s.While(label, cond, body):
            condition = check(c, cond, t.BOOL)
            loop = _open(c, label)
            inner = block(c, body)
            c.frame.loops.pop()
            return typed.While(loop, condition, inner, span=span)
        case s.Break(label):
            return typed.Break(_loop(c, label, item), span=span)
        case s.Continue(label):
            return typed.Continue(_loop(c, label, item), span=span)
        case s.Return(value):
            return _return(c, value, item)
        case s.Emit(out, value):
            index = _out(c, out, item)
            return typed.Emit(index, check(c, value, c.outs[index].type), span=span)
        case s.Mark(out, value):
            index = _out(c, out, item)
            key = key_type(c.outs[index].type, c.outs[index].by)
            if key is None:
                raise c.error("lang-mark", f"output `{out}` has no key: declare it `by` a field", span)
            return typed.Mark(index, check(c, value, key), span=span)
        case s.Trap(text):
            return typed.Trap(text, c.site(("assert",), span), span=span)
        case s.Do(call):
            return _do(c, call, item)
        case s.Each():
            raise c.error("lang-hole", "`#each` stands only in templates", span)
        case _:
            assert_never(item)


def key_type(type_: t.Type, by: str | None) -> t.Type | None:
    """The type of the key field `by` of an item type, None without key."""
    return type_.field(by) if by is not None and isinstance(type_, t.Record) else None


def _value(c: Context, type_: s.TypeExpr | None, value: s.Expr) -> typed.Expr:
    return infer(c, value) if type_ is None else check(c, value, resolve(type_, c.scope))


def _with(c: Context, item: s.With) -> typed.With:
    container = place(c, item.place.value, "`with`")
    if not isinstance(container.type, t.Map | t.OMap):
        raise c.error(
            "lang-with", f"`with` needs the entry of a map, not of `{show(container.type)}`", item.place.span
        )
    key = check(c, item.place.index, container.type.key)
    default = None if item.default is None else check(c, item.default, container.type.value)
    steady(c, (container, key) if default is None else (container, key, default), item)
    site = c.site(("key-missing",) if default is None else (), item.place.span)
    with c.block():
        c.guard(
            path_of(container),
            reads=True,
            name=_name(item.place.value),
            why=f"has its entry bound to `{item.name}`",
        )
        slot = c.bind(item.name, container.type.value, item.span, writable=True)
        c.frame.droppable[slot] = len(c.frame.loops)
        body = typed.Block(statements(c, item.body), span=item.body.span)
    return typed.With(slot, item.name, container, key, default, body, site, span=item.span)


def _name(expr: s.Expr) -> str:
    match expr:
        case s.Var(name):
            return f"${name}"
        case s.Name(name):
            return name
        case s.Member(value, name):
            return f"{_name(value)}.{name}"
        case _:
            return "the map"


def _if(c: Context, item: s.If) -> typed.Branch:
    before = set(c.frame.dropped)
    with c.block():
        match item.cond:
            case s.Bind(value, name):
                node = infer(c, value)
                if not isinstance(node.type, t.Optional):
                    raise c.error("lang-not-optional", f"`{show(node.type)}` is never none", item.cond.span)
                for path in borrowed(node):
                    c.guard(path, reads=False, name=name, why="borrows from it")
                narrows = isinstance(value, s.Name) and value.name == name
                bind = (
                    c.rebind(name, node.type.inner)
                    if narrows
                    else c.bind(name, node.type.inner, item.cond.span)
                )
                cond: typed.Expr | typed.Bind = typed.Bind(node, bind, name, span=item.cond.span)
            case value:
                cond = check(c, value, t.BOOL)
        then = block(c, item.then)
    after = set(c.frame.dropped)
    c.frame.dropped = set(before)
    match item.other:
        case None:
            other = None
        case s.If():
            with c.block():
                other = typed.Block((_if(c, item.other),), span=item.other.span)
        case s.Block():
            other = block(c, item.other)
    if other is not None and always_leaves(other):
        c.frame.dropped = set(before)
    if not always_leaves(then):
        c.frame.dropped |= after
    return typed.Branch(cond, then, other, span=item.span)


def _for(c: Context, item: s.For) -> typed.For:
    with c.block():
        range_, slots = loop_names(c, item.names, item.range, item)
        loop = _open(c, item.label)
        body = block(c, item.body)
        c.frame.loops.pop()
    return typed.For(loop, slots, item.names, range_, body, span=item.span)


def _open(c: Context, label: str | None) -> int:
    c.loops += 1
    c.frame.loops.append((c.loops, label))
    return c.loops


def _loop(c: Context, label: str | None, item: s.Stmt) -> int:
    for loop, name in reversed(c.frame.loops):
        if label is None or label == name:
            return loop
    if label is None:
        raise c.error("lang-loop", "there is no loop to leave here", item.span)
    labels = [name for _, name in c.frame.loops if name is not None]
    raise c.error("lang-loop", f"no enclosing loop is labelled `{label}`", item.span, closest(label, labels))


def _return(c: Context, value: s.Expr | None, item: s.Return) -> typed.Return:
    result = c.frame.result
    if value is None:
        if result is not None and result != t.UNIT:
            raise c.error("lang-return", f"a value of `{show(result)}` must be returned", item.span)
        return typed.Return(None, span=item.span)
    if result is None:
        raise c.error("lang-return", "a handler returns no value", item.span, "`emit` sends an item")
    return typed.Return(check(c, value, result), span=item.span)


def _out(c: Context, name: str, item: s.Stmt) -> int:
    if not c.may_emit:
        raise c.error("lang-emit", "only handlers and an operator's own functions may emit", item.span)
    c.frame.emits = True
    for index, out in enumerate(c.outs):
        if out.name == name:
            return index
    help_ = closest(name, [out.name for out in c.outs])
    raise c.error("lang-unknown-output", f"unknown output `{name}`", item.span, help_)


def _do(c: Context, call: s.Call | s.Hole, item: s.Do) -> typed.Do:
    if isinstance(call, s.Hole):
        raise c.error("lang-hole", f"`#{call.name}` stands only in templates", call.span)
    node = infer(c, call)
    if not isinstance(node, typed.Apply | typed.Call):
        raise mismatch(c, call, t.UNIT, node.type)
    if isinstance(node, typed.Apply) and OPERATIONS[node.operation].mutates is None:
        raise c.error("lang-no-effect", f"`{call.function}` has no effect: its result is not used", item.span)
    return typed.Do(node, span=item.span)


def always_leaves(body: typed.Block) -> bool:
    """Whether control never reaches the end of the block: every path returns or traps."""
    return any(_leaves(item) for item in body.items)


def _leaves(item: typed.Stmt) -> bool:
    match item:
        case typed.Return() | typed.Trap():
            return True
        case typed.Branch(_, then, other):
            return other is not None and always_leaves(then) and always_leaves(other)
        case typed.With(_, _, _, _, _, body, _):
            return always_leaves(body)
        case typed.While(loop, typed.Literal(_, True), body):
            return not _breaks(body, loop)
        case _:
            return False


def _breaks(body: typed.Block, loop: int) -> bool:
    for item in body.items:
        match item:
            case typed.Break(target):
                if target == loop:
                    return True
            case typed.Branch(_, then, other):
                if _breaks(then, loop) or (other is not None and _breaks(other, loop)):
                    return True
            case (
                typed.With(_, _, _, _, _, inner, _) | typed.For(_, _, _, _, inner) | typed.While(_, _, inner)
            ):
                if _breaks(inner, loop):
                    return True
            case _:
                pass
    return False
