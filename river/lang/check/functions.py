"""User functions: signatures first, bodies when they are first called, so that they may be recursive."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.check.environment import Context, FnEntry, Frame, StatementFailed
from river.lang.check.expressions import check, infer
from river.lang.check.statements import always_leaves, statements
from river.lang.scope import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable


DEEPEST_RESULT: Final = 50
"""Functions in a row, each of whose results is that of the next, as far as results are not stated."""


def function_index(c: Context, name: str) -> int | None:
    """The position of function `name` in the operator's table (it is added and checked at first use), or None."""
    local = c.sees_operator and name in c.local_fns
    source = c.local_fns[name] if local else c.scope.fns.get(name)
    if source is None:
        return None
    if (name, local) in c.refused:
        raise StatementFailed
    if (name, local) in c.fn_names:
        return c.fn_names[name, local]
    index = len(c.fns)
    c.refused.add((name, local))
    params = tuple(typed.Param(p.name, resolve(p.type, c.scope), p.ref, span=p.span) for p in source.params)
    result = None if source.result is None else resolve(source.result, c.scope)
    if result is None and isinstance(source.body, s.Block):
        result = t.UNIT
    c.refused.remove((name, local))
    c.fn_names[name, local] = index
    entry = FnEntry(source, params, result, local)
    c.fns.append(entry)
    if result is None:
        _inferred(c, entry)
    else:
        _declared(c, entry)
    return index


def _inferred(c: Context, entry: FnEntry) -> None:
    """Checks the body of a function now, because its type is the result of the function."""
    c.inferring += 1
    try:
        if c.inferring > DEEPEST_RESULT:
            name, help_line = entry.source.name, "state it: `fn f(x: T) -> U = ...`"
            message = f"the result of `{name}` depends on more than {DEEPEST_RESULT} functions in a row"
            entry.failed = True
            raise c.error("lang-result-depth", message, entry.source.span, help_line)
        _body(c, entry)
    finally:
        c.inferring -= 1


def _declared(c: Context, entry: FnEntry) -> None:
    """Has the body of a function checked when all that surrounds the call is: long chains of calls are not nested."""
    c.waiting.append(entry)
    if c.draining:
        return
    c.draining = True
    try:
        while c.waiting:
            with suppress(StatementFailed):  # it is reported, and what the function gives is known
                _body(c, c.waiting.pop())
    finally:
        c.draining = False


def _body(c: Context, entry: FnEntry) -> None:
    source = entry.source
    errors = len(c.report)
    saved = c.frame, c.may_emit, c.may_touch_state, c.sees_operator
    c.frame, c.may_emit, c.may_touch_state, c.sees_operator = (
        Frame(result=entry.result),
        entry.local,
        False,
        entry.local,
    )
    try:
        for param in entry.params:
            slot = c.bind(param.name, param.type, param.span, writable=param.ref, ref=param.ref)
            assert slot < len(entry.params)  # noqa: S101 - parameters are the first slots
        body: typed.Block | typed.Expr
        if isinstance(source.body, s.Block):
            errors = len(c.report)
            body = typed.Block(statements(c, source.body), span=source.body.span)
            if entry.result != t.UNIT and len(c.report) == errors and not always_leaves(body):
                c.error(
                    "lang-missing-return", f"`{source.name}` may end without returning a value", source.span
                )
        else:
            with c.recover():
                body = infer(c, source.body) if entry.result is None else check(c, source.body, entry.result)
                entry.result = body.type
                entry.done = typed.Fn(
                    source.name, entry.params, body.type, c.frame.slots, body, c.frame.emits, span=source.span
                )
                entry.calls = c.frame.calls
                return
            entry.failed = True
            raise StatementFailed
        assert entry.result is not None  # noqa: S101 - blocks have one
        entry.done = typed.Fn(
            source.name, entry.params, entry.result, c.frame.slots, body, c.frame.emits, span=source.span
        )
        entry.calls = c.frame.calls
    finally:
        c.frame, c.may_emit, c.may_touch_state, c.sees_operator = saved


def emitting(c: Context) -> set[int]:
    """The functions that emit, themselves or through others."""
    callers: dict[int, list[int]] = {}
    for i, entry in enumerate(c.fns):
        for called in entry.calls:
            callers.setdefault(called, []).append(i)
    left = [i for i, entry in enumerate(c.fns) if entry.done is not None and entry.done.emits]
    found = set(left)
    while left:
        more = [i for i in callers.get(left.pop(), ()) if i not in found]
        left += more
        found.update(more)
    return found


def finished(c: Context) -> tuple[typed.Fn, ...]:
    """All functions of the table, `emits` closed over calls. Only without errors in the report."""
    emit = emitting(c)
    return tuple(_done(c.fns, i in emit, i) for i in range(len(c.fns)))


def _done(entries: list[FnEntry], emits: bool, index: int) -> typed.Fn:
    fn = entries[index].done
    assert fn is not None  # noqa: S101 - a failed one has left an error in the report
    return typed.Fn(fn.name, fn.params, fn.result, fn.slots, fn.body, emits, span=fn.span)


def fn_table(fns: Iterable[s.Fn]) -> dict[str, s.Fn]:
    """Functions by name; the first of a name wins (duplicates are reported by the caller)."""
    table: dict[str, s.Fn] = {}
    for fn in fns:
        table.setdefault(fn.name, fn)
    return table
