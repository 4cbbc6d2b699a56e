"""The arrow from syntax to typed trees. All errors of a text are found at once and raised as one Rejected.

Public: `scope`, `resolve`, `operator`, `with_constants`, `function`, `functions`, `constant`, `expression`. Paper
section 3.5: checkers compose by calls; a frontend's checker ends in `expression` with the one type representation and scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.diagnostics import Rejected
from river.lang.check.environment import Context
from river.lang.check.expressions import check as _check
from river.lang.check.expressions import infer as _infer
from river.lang.check.functions import finished, fn_table, function_index
from river.lang.check.operators import constant, operator, with_constants
from river.lang.scope import Declared, Scope, resolve, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.lang import syntax as s
    from river.lang import typed
    from river.lang import types as t

__all__ = [
    "Scope",
    "constant",
    "expression",
    "function",
    "functions",
    "operator",
    "resolve",
    "scope",
    "show",
    "with_constants",
]


def scope(types: Mapping[str, Declared], fns: Iterable[s.Fn] = ()) -> Scope:
    """A scope of declared types and library functions."""
    return Scope(dict(types), fn_table(fns))


def function(name: str, scope: Scope) -> tuple[tuple[typed.Fn, ...], int]:
    """A library function and all that it calls: the table, and the position of the named one.

    Raises: Rejected with lang-unknown-function or the errors of the bodies.
    """
    c = Context(scope)
    with c.recover():
        index = function_index(c, name)
        if index is None:
            c.error("lang-unknown-function", f"unknown function `{name}`", None)
        elif not c.report:
            return finished(c), index
    raise Rejected(c.report)


def functions(names: Iterable[str], scope: Scope) -> None:
    """Checks library functions and all that they call, each once.

    Raises: Rejected with the errors of all.
    """
    c = Context(scope)
    for name in names:
        with c.recover():
            function_index(c, name)
    if c.report:
        raise Rejected(c.report)


def expression(
    expr: s.Expr,
    locals: Mapping[str, t.Type],
    scope: Scope,
    wanted: t.Type | None = None,
) -> typed.Expr:
    """The typed form of an expression over named locals (slots in their order): for frontends.

    Raises: Rejected with all errors found.
    """
    c = Context(scope)
    for name, type_ in locals.items():
        c.bind(name, type_, None)
    with c.recover():
        node = _infer(c, expr) if wanted is None else _check(c, expr, wanted)
        if not c.report:
            return node
    raise Rejected(c.report)
