"""What follows from who calls whom, which is known when all functions are: captures, and which results may be undefined.

Function values become numbers, and a call of one a call of a function that calls the function of that number
(defunctionalisation). What the functions of a number capture, its callers pass on to it, as to any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sawzall import typed as z
from frontends.sawzall.operations import DRAWS
from river.classes import evolve, frozen
from river.il.trees import rebuild, walk
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from river.lang import syntax as s
    from river.report import Report


@frozen
class Closed:
    """The functions and the body of a program in which each call passes on what is captured.

    `kept`: the variables that functions that are values may use.
    """

    functions: list[z.Function]
    body: tuple[z.Stmt, ...]
    kept: frozenset[int]


def emitting(functions: Sequence[z.Function]) -> frozenset[int]:
    """The functions that emit, themselves or through others."""
    found = frozenset(i for i, f in enumerate(functions) if z.inside(f.body).of(z.Emit))
    return _reaching(functions, found)


DRAWN = frozenset({"sample", "weightedsample", "bootstrapsum"})
"""Kinds of tables for whose items numbers are drawn."""


def draws(parts: z.Inside, tables: Sequence[z.Table]) -> bool:
    """Whether something draws random numbers itself."""
    return any(each.operation in DRAWS for each in parts.of(z.Apply)) or any(
        tables[each.table].kind in DRAWN for each in parts.of(z.Emit)
    )


def drawing(functions: Sequence[z.Function], tables: Sequence[z.Table]) -> frozenset[int]:
    """The functions that draw random numbers, themselves or through others."""
    found = frozenset(i for i, f in enumerate(functions) if draws(z.inside(f.body), tables))
    return _reaching(functions, found)


def _reaching(functions: Sequence[z.Function], found: frozenset[int]) -> frozenset[int]:
    """Functions, and those that call them."""
    called = [z.inside(f.body).called for f in functions]
    while more := frozenset(i for i, names in enumerate(called) if names & found) - found:
        found |= more
    return found


def reached(roots: Iterable[int], functions: Sequence[z.Function]) -> frozenset[int]:
    """Functions, and those that they call, themselves or through others."""
    found: set[int] = set()
    left = list(roots)
    while left:
        if (index := left.pop()) not in found:
            found.add(index)
            left += z.inside(functions[index].body).called
    return frozenset(found)


def closed(
    functions: Sequence[z.Function],
    variables: list[z.Variable],
    body: Sequence[z.Stmt],
    statics: Sequence[tuple[int, z.Expr]],
    report: Report,
    *,
    skips: bool = False,
) -> tuple[Closed, tuple[tuple[int, z.Expr], ...]]:
    """Functions that capture what those they call capture, and pass it on, and the static values. `skips`: see `z.Program`.

    `variables` grows by these captures. Reported: function values that outlive what they capture.
    """
    body = tuple(body)
    bodies = (body, *(f.body for f in functions))
    parts = [*map(z.inside, bodies), z.Inside([value for _, value in statics])]
    values = frozenset(each.function for part in parts for each in part.of(z.FunctionOf))
    callers = _Callers(list(functions), variables, values)
    body = callers.body(body)
    statics = tuple((index, cast("z.Expr", callers.direct(value))) for index, value in statics)
    for index in range(len(functions)):
        old = callers.functions[index]
        callers.functions[index] = evolve(old, body=callers.body(old.body))
    found = callers.functions
    captures = _captures(found, variables)
    kept = frozenset(outside for index in values for outside in captures[index])
    changed = _changed(found, captures)
    _refuse_survivors(found, captures, variables, values, report)

    def passing(body: tuple[z.Stmt, ...], number: int) -> tuple[z.Stmt, ...]:
        """Statements whose calls pass captures on; `number`: the function that they are in."""
        inside = captures[number] if number >= 0 else {}

        def passed(call: z.Call) -> z.Call:
            wanted = [inside.get(outside, outside) for outside in captures[call.function]]
            lent = frozenset(inside.get(o, o) for o in captures[call.function] if o in changed)
            if [read.variable for read in call.captures] == wanted and call.lent == lent:
                return call
            return evolve(
                call, captures=tuple(z.Read(variables[each].type, each) for each in wanted), lent=lent
            )

        def rewrite(part: s.Node) -> s.Node:
            part = rebuild(part, rewrite)
            return passed(part) if isinstance(part, z.Call) else part

        if all(passed(call) is call for call in z.inside(body).of(z.Call)):
            return body
        return tuple(cast("z.Stmt", rewrite(part)) for part in body)

    while True:  # a call that lends a variable changes it, too
        found = [
            evolve(
                f,
                captures=tuple(own.items()),
                lent=changed & own.keys(),
                body=passing(f.body, i),
            )
            for i, (f, own) in enumerate(zip(found, captures, strict=True))
        ]
        body = passing(body, -1)
        more = _changed(found, captures)
        if more <= changed:
            return Closed(judged(found, skips=skips), body, kept), statics
        changed |= more


def _changed(functions: Sequence[z.Function], captures: Sequence[dict[int, int]]) -> frozenset[int]:
    """The variables outside of functions that they change."""
    return frozenset(
        outside
        for f, own in zip(functions, captures, strict=True)
        for outside, inside in own.items()
        if inside in z.inside(f.body).assigned
    )


def _captures(functions: Sequence[z.Function], variables: list[z.Variable]) -> list[dict[int, int]]:
    """The captures of each function, and those of the functions that it calls, but for its own variables."""
    captures = [dict(f.captures) for f in functions]
    called = [z.inside(f.body).called for f in functions]
    left = list(range(len(functions)))
    while left:
        callee = left.pop()
        for caller, names in enumerate(called):
            if callee not in names:
                continue
            new = [o for o in captures[callee] if o not in captures[caller] and variables[o].home != caller]
            for outside in sorted(new):
                captures[caller][outside] = len(variables)
                known = variables[outside]
                variables.append(z.Variable(known.name, known.type, "capture", home=caller, span=known.span))
            if new:
                left.append(caller)
    return captures


class _Callers:
    """Calls of function values as calls of functions, one for each type of function values."""

    def __init__(
        self, functions: list[z.Function], variables: list[z.Variable], values: frozenset[int]
    ) -> None:
        self.functions = functions
        self.variables = variables
        self.values = sorted(values)
        self.made: dict[t.Function, int] = {}

    def body(self, body: tuple[z.Stmt, ...]) -> tuple[z.Stmt, ...]:
        """Statements without Invoke."""
        if not z.inside(body).of(z.Invoke):
            return body
        return tuple(cast("z.Stmt", self.direct(part)) for part in body)

    def direct(self, node: s.Node) -> s.Node:
        """The tree without Invoke."""
        node = rebuild(node, self.direct)
        if not isinstance(node, z.Invoke):
            return node
        assert isinstance(node.callee.type, t.Function)  # noqa: S101 - the checker has seen to it
        return z.Call(node.type, self.caller(node.callee.type), (node.callee, *node.args), span=node.span)

    def caller(self, type_: t.Function) -> int:
        """The function that calls the function of a number."""
        if type_ in self.made:
            return self.made[type_]
        index = self.made[type_] = len(self.functions)
        params = [len(self.variables) + i for i in range(len(type_.params) + 1)]
        for i, each in enumerate((t.I64, *type_.params)):
            name = "callee" if i == 0 else f"argument{i}"
            self.variables.append(z.Variable(name, each, "parameter", home=index))
        self.functions.append(
            z.Function("call", tuple(params), (), type_.result, (), fails=type_.result is not None)
        )
        body: tuple[z.Stmt, ...] = ()
        args = tuple(z.Read(self.variables[p].type, p) for p in params[1:])
        for number in reversed(self.taken(type_)):
            call = z.Call(type_.result or t.UNIT, number, args)
            does: z.Stmt = z.Evaluate(call) if type_.result is None else z.Return(call)
            is_it = z.Apply(t.BOOL, "==", (z.Read(t.I64, params[0]), z.Constant(t.I64, number)))
            body = (z.If(is_it, (does,), body),) if body else (does,)
        self.functions[index] = evolve(self.functions[index], body=body)
        return index

    def taken(self, type_: t.Function) -> list[int]:
        """The functions of a type that are values somewhere."""
        return [i for i in self.values if _type_of(self.functions[i], self.variables) == type_]


def _refuse_survivors(
    functions: Sequence[z.Function],
    captures: Sequence[dict[int, int]],
    variables: Sequence[z.Variable],
    values: frozenset[int],
    report: Report,
) -> None:
    """Refuses a function value where it could be called when what it captures is gone."""
    homes = {
        index: frozenset(variables[outside].home for outside in captures[index]) - {-1} for index in values
    }
    if not any(homes.values()):
        return
    recursive = {i for i, f in enumerate(functions) if i in reached(z.inside(f.body).called, functions)}
    for index, home in homes.items():
        if home & recursive:
            name = functions[next(iter(home & recursive))].name
            message = f"a function value that uses variables of `{name}`, which calls itself"
            hint = "pass what it needs as an argument"
            report.error("sawzall-function-value", message, functions[index].span, hint)
    for number, f in enumerate(functions):
        local = {_type_of(functions[i], variables) for i, home in homes.items() if number in home}
        if not local:
            continue
        for node in (n for part in f.body for n in walk(part)):
            match node:
                case z.Return(value) if value is not None and _may_be(value, local, homes, number):
                    pass
                case z.Assign(place, value) if variables[z.root(place)].kind == "capture" and _may_be(
                    value, local, homes, number
                ):
                    pass
                case _:
                    continue
            message = f"a function value that uses variables of `{f.name}` would outlive them"
            report.error("sawzall-function-value", message, node.span, "declare the function outside")


def _type_of(function: z.Function, variables: Sequence[z.Variable]) -> t.Function:
    return t.Function(tuple(variables[param].type for param in function.params), function.result)


def _may_be(value: z.Expr, local: set[t.Function], homes: dict[int, frozenset[int]], number: int) -> bool:
    """Whether a value may be, or hold, a function that uses variables of function `number`."""
    if isinstance(value, z.FunctionOf):
        return number in homes[value.function]
    return any(_holds(value.type, each) for each in local)


def _holds(type_: t.Type, wanted: t.Function) -> bool:
    return type_ == wanted or any(_holds(part, wanted) for part in t.parts(type_))


def judged(functions: Sequence[z.Function], *, skips: bool = False) -> list[z.Function]:
    """Functions that know whether their result may be undefined, and whether they may end the record.

    Where undefined statements are skipped none does, and a function that ends without `return` has no result.
    """
    found = list(functions)
    called = [z.inside(f.body).called for f in found]
    left = range(len(found))
    while left:
        failing = frozenset(i for i, f in enumerate(found) if f.fails)
        next_ = {i: _judged(found[i], found, failing, skips=skips) for i in left}
        changed = {i for i, f in next_.items() if (f.fails, f.ends) != (found[i].fails, found[i].ends)}
        for i in changed:
            found[i] = next_[i]
        left = [i for i, names in enumerate(called) if not names.isdisjoint(changed)]
    return found


def _judged(
    function: z.Function, functions: Sequence[z.Function], failing: frozenset[int], *, skips: bool
) -> z.Function:
    """A function as it is by what is known of those that it calls."""
    missing = function.result is not None and not z.leaves(function.body)
    returned = (each.value for each in z.inside(function.body).of(z.Return))
    fails = any(value is not None and z.may_fail(value, failing) for value in returned)
    return evolve(
        function,
        fails=fails or (skips and missing),
        ends=not skips and (missing or z.may_end(function.body, functions)),
    )
