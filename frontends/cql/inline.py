"""Parameters and the user's functions are written out where they are used; what is left are queries alone.

A function is a formula: its operands take the place of its parameters, each held to its type (`q.Stated`), and so is the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import evolve

from frontends.cql.quoted import texts
from frontends.sql import syntax as q
from frontends.sql.expressions import AGGREGATES
from frontends.sql.functions import FUNCTIONS, SEVERAL
from river.diagnostics import closest
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frontends.cql import syntax as c
    from river.report import Report


def inlined(program: c.Program, report: Report) -> c.Program:
    """The program without functions and parameters.

    Codes: cql-parameter, cql-function (errors in the report).
    """
    functions: dict[str, c.ScalarFunction] = {}
    for function in program.functions:
        function = evolve(function, body=texts(function.body, frozenset(name for name, _ in function.params)))
        known = function.name.lower() in FUNCTIONS or function.name.lower() in (*SEVERAL, *AGGREGATES)
        if known or function.name in functions:
            message = f"there is a function `{function.name}` already"
            report.error("cql-function", message, function.span, "give it another name")
        names = [name for name, _ in function.params]
        if len(set(names)) < len(names):
            report.error("cql-function", f"two parameters of `{function.name}` have one name", function.span)
        functions[function.name] = function
    values = {parameter.name: texts(parameter.value) for parameter in program.parameters}
    for parameter in program.parameters:
        if any(isinstance(node, s.Name | s.Member) for node in walk(values[parameter.name])):
            message = f"the value of `:{parameter.name}` is written out"
            report.error("cql-parameter", message, parameter.span, "write a number, a text or a time")
            values[parameter.name] = s.NoneValue()
    work = _Inline(functions, values, report)
    decls = tuple(cast("c.Decl", work.written(decl, ())) for decl in program.decls)
    return evolve(program, decls=decls, functions=(), parameters=())


class _Inline:
    """What names stand for."""

    def __init__(
        self, functions: Mapping[str, c.ScalarFunction], values: Mapping[str, s.Expr], report: Report
    ) -> None:
        self.functions = functions
        self.values = values
        self.report = report

    def written(self, node: s.Node, inside: tuple[str, ...]) -> s.Node:
        """A part of the program with all of them written out; `inside`: the functions whose bodies it is in."""

        def rewrite(inner: s.Node) -> s.Node:
            return self.written(inner, inside)

        match node:
            case s.Name(name) if name.startswith(":"):
                return self.value(node)
            case s.Call(name, args) if name in self.functions:
                return self.called(node, self.functions[name], tuple(map(rewrite, args)), inside)
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

    def called(
        self, call: s.Call, function: c.ScalarFunction, args: tuple[s.Node, ...], inside: tuple[str, ...]
    ) -> s.Node:
        """The body of a function over these operands."""
        name = function.name
        if name in inside:
            self.report.error(
                "cql-function", f"`{name}` calls itself", function.span, "write it without that"
            )
            return s.NoneValue(span=call.span)
        if len(args) != len(function.params):
            message = f"`{name}` takes {len(function.params)} operands, not {len(args)}"
            self.report.error("cql-function", message, call.span)
            return s.NoneValue(span=call.span)
        given = {
            param: q.Stated(cast("s.Expr", arg), type_, f"operand `{param}` of `{name}`", span=arg.span)
            for (param, type_), arg in zip(function.params, args, strict=True)
        }

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
        return q.Stated(cast("s.Expr", body), function.result, f"the result of `{name}`", span=call.span)
