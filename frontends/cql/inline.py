"""Parameters and the user's functions are written out where they are used; what is left are queries alone.

A function is a formula: its operands take the place of its parameters, each held to its type (`q.Stated`), and so is the result.
A call of an aggregate of the user's says what that does (`q.Folded`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql.aggregates import fold
from frontends.cql.externs import refuse
from frontends.cql.parse import NO_AGGREGATE, NUMBER_ROWS
from frontends.cql.quoted import texts
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of, is_known
from frontends.sql.calls import EXTERN
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frontends.cql import syntax as c
    from frontends.sql import typed as r
    from river.lang.scope import Scope
    from river.report import Report


def inlined(program: c.Program, scope: Scope, report: Report) -> c.Program:
    """The program without functions, aggregates and parameters. `scope`: the types and functions that all expressions may name.

    Codes: cql-parameter, cql-function, cql-aggregate, syntax-over (errors in the report).
    """
    functions: dict[str, c.ScalarFunction] = {}
    for function in program.functions:
        function = evolve(function, body=texts(function.body, frozenset(name for name, _ in function.params)))
        if is_known(function.name.lower()) or function.name in functions:
            message = f"there is a function `{function.name}` already"
            report.error("cql-function", message, function.span, "give it another name")
        names = [name for name, _ in function.params]
        if len(set(names)) < len(names):
            report.error("cql-function", f"two parameters of `{function.name}` have one name", function.span)
        functions[function.name] = function
    externs: dict[str, c.ExternFunction] = {}
    for extern in program.externs:
        if is_known(extern.name.lower()) or extern.name in (*functions, *externs):
            message = f"there is a function `{extern.name}` already"
            report.error("cql-function", message, extern.span, "give it another name")
        if len(dict(extern.params)) < len(extern.params):
            report.error("cql-function", f"two parameters of `{extern.name}` have one name", extern.span)
        externs[extern.name] = extern
    values = {parameter.name: texts(parameter.value) for parameter in program.parameters}
    for parameter in program.parameters:
        if any(isinstance(node, s.Name | s.Member) for node in walk(values[parameter.name])):
            message = f"the value of `:{parameter.name}` is written out"
            report.error("cql-parameter", message, parameter.span, "write a number, a text or a time")
            values[parameter.name] = s.NoneValue()
    work = _Inline(functions, externs, values, report)
    for aggregate in program.aggregates:
        if is_known(aggregate.name.lower()) or aggregate.name in (*functions, *externs, *work.folds):
            message = f"there is a function `{aggregate.name}` already"
            report.error("cql-aggregate", message, aggregate.span, "give it another name")
            continue
        work.folds[aggregate.name] = None
        with report.recover():
            known = frozenset(name for name, _ in aggregate.params)
            parts = tuple(
                (part, cast("s.Expr", work.written(texts(value, known), ())))
                for part, value in aggregate.parts
            )
            for _, part in parts:
                refuse(part, report)
            work.folds[aggregate.name] = fold(evolve(aggregate, parts=parts), scope, report)
    decls = tuple(cast("c.Decl", work.written(decl, ())) for decl in program.decls)
    return evolve(program, decls=decls, functions=(), aggregates=(), parameters=())


class _Inline:
    """What names stand for."""

    def __init__(
        self,
        functions: Mapping[str, c.ScalarFunction],
        externs: Mapping[str, c.ExternFunction],
        values: Mapping[str, s.Expr],
        report: Report,
    ) -> None:
        self.functions = functions
        self.externs = externs
        self.values = values
        self.report = report
        self.folds: dict[str, r.Fold | None] = {}
        """The user's aggregates; None: one that was refused."""

    def written(self, node: s.Node, inside: tuple[str, ...]) -> s.Node:
        """A part of the program with all of them written out; `inside`: the functions whose bodies it is in."""

        def rewrite(inner: s.Node) -> s.Node:
            return self.written(inner, inside)

        match node:
            case s.Name(name) if name.startswith(":"):
                return self.value(node)
            case s.Call(name, args) if name in self.functions:
                return self.called(node, self.functions[name], tuple(map(rewrite, args)), inside)
            case s.Call(name, args) if name in self.externs:
                given = self.given(node, self.externs[name], tuple(map(rewrite, args)))
                if given is None:  # it was refused
                    return s.NoneValue(span=node.span)
                return evolve(node, function=f"{EXTERN}{name}", args=tuple(given.values()))
            case s.Call(name, args) if name.removesuffix(".distinct") in self.folds:
                return self.aggregated(node, tuple(map(rewrite, args)))
            case q.Over("named", (s.Name(window),)):
                message = f"no window is called `{window}`"
                self.report.error(
                    "syntax-over",
                    message,
                    node.span,
                    "say it behind the groups: `window w as (partition by k order by ts)`",
                )
                return s.Call("count", (), span=node.span)
            case q.Over("aggregate"):
                over = rebuild(node, rewrite)
                if over.call is None or aggregate_of(over.call) is None:
                    self.report.error("syntax-over", NO_AGGREGATE, node.span, NUMBER_ROWS)
                return over
            case _:
                return rebuild(node, rewrite)

    def value(self, node: s.Name) -> s.Expr:
        """What a parameter stands for."""
        name = node.name.removeprefix(":")
        if name in self.values:
            return evolve(self.values[name], span=node.span)
        help_line = (
            closest(name, self.values) or f"say it: `--param {name}=5`, or `param {name} = 5;` in the program"
        )
        self.report.error("cql-parameter", f"parameter `:{name}` has no value", node.span, help_line)
        return s.NoneValue(span=node.span)

    def aggregated(self, call: s.Call, args: tuple[s.Node, ...]) -> s.Node:
        """A call of an aggregate of the user's."""
        name = call.function.removesuffix(".distinct")
        found = self.folds[name]
        if name != call.function:
            message, help_line = (
                f"`{name}` takes no `distinct`",
                "take different rows by `select distinct` below it",
            )
            self.report.error("cql-aggregate", message, call.span, help_line)
        if found is None or name != call.function:  # it was refused
            return s.Call("count", (), span=call.span)
        return q.Folded(name, cast("tuple[s.Expr, ...]", args), fold=found, span=call.span)

    def given(
        self, call: s.Call, function: c.ScalarFunction | c.ExternFunction, args: tuple[s.Node, ...]
    ) -> dict[str, s.Expr] | None:
        """The operands of a call, each held to the type of its parameter; None, and an error, if there are more or fewer."""
        if len(args) != len(function.params):
            message = f"`{function.name}` takes {len(function.params)} operands, not {len(args)}"
            self.report.error("cql-function", message, call.span)
            return None
        return {
            param: cast(
                "s.Expr",
                q.Stated(
                    cast("s.Expr", arg), type_, f"operand `{param}` of `{function.name}`", span=arg.span
                ),
            )
            for (param, type_), arg in zip(function.params, args, strict=True)
        }

    def called(
        self, call: s.Call, function: c.ScalarFunction, args: tuple[s.Node, ...], inside: tuple[str, ...]
    ) -> s.Node:
        """The body of a function over these operands."""
        name = function.name
        if name in inside:
            self.report.error("cql-function", f"`{name}` calls itself", call.span, "write it without that")
            return s.NoneValue(span=call.span)
        given = self.given(call, function, args)
        if given is None:
            return s.NoneValue(span=call.span)

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Name(param) if param in given:
                    return given[param]
                case s.Name(free) if not free.startswith(":"):
                    known = closest(free, given)
                    message = f"`{name}` knows its own parameters alone, not `{free}`"
                    self.report.error("cql-function", message, node.span, known)
                    return s.NoneValue(span=node.span)
                case _:
                    return rebuild(node, rewrite)

        body = rewrite(self.written(function.body, (*inside, name)))
        place = f"the result of `{name}`"
        return q.Stated(cast("s.Expr", body), function.result, place, name, span=call.span)
