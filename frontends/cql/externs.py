"""Functions that the user writes in Python: each call is an operator of its own, below the one that wants its value.

It stands on a relation of its own, whose rows have the value as one column more. So all other operators are as they always are. A
call is made for the rows for which its value is wanted: behind the conditions of `where` that do not call, and inside of a `case`
for those that come to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql.trees import record
from frontends.sql import typed as r
from frontends.sql.calls import EXTERN
from frontends.sql.operations import conjuncts
from frontends.sql.values import strip
from river.classes import define, evolve, field, frozen
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from frontends.cql import syntax as c
    from river.report import Report
    from river.source import Span


@frozen
class Extern:
    """A function in Python: `module:function`, what it takes and what it gives."""

    name: str
    target: str
    params: tuple[tuple[str, t.Type], ...]
    result: t.Type


@frozen
class Called(s.Node):
    """That rows `r` have a column more: what a function in Python gives for `operands(r)`, none if these are none."""

    column: str
    type: t.Type
    target: str
    operand_types: t.Type
    operands: s.Lambda


def stand_in(function: c.ExternFunction) -> s.Fn:
    """What expressions that are checked take for the function: its types."""
    params = tuple(s.Param(name, type_) for name, type_ in function.params)
    body = s.Block((s.Trap(f"`{function.name}` is called elsewhere"),))
    return s.Fn(f"{EXTERN}{function.name}", params, function.result, body, span=function.span)


def apart(
    relation: r.Relation,
    externs: Mapping[str, Extern],
    below: Callable[[r.Relation, Called], r.Relation],
    report: Report,
) -> r.Relation:
    """The relation over others that call the functions. `below(relation, called)` is what reads one of these.

    Codes: cql-extern (errors in the report).
    """
    if not externs or not _calls(relation):
        return relation
    found = _Apart(externs, below).relation(relation)
    refuse(found, report)
    return found


def refuse(node: s.Node, report: Report) -> None:
    """Notes the calls inside of what cannot call functions in Python (code cql-extern)."""
    for call in (node for node in walk(node) if isinstance(node, s.Call)):
        if call.function.startswith(EXTERN):
            name = call.function.removeprefix(EXTERN)
            message = f"`{name}` is written in Python, and cannot be called here"
            help_line = f"call it in the select list of a query below, as `{name}(...) as value`"
            report.error("cql-extern", message, call.span or node.span, help_line)


def _calls(*nodes: s.Node) -> bool:
    return any(
        isinstance(each, s.Call) and each.function.startswith(EXTERN) for node in nodes for each in walk(node)
    )


@define
class _Apart:
    """The way from a relation whose expressions call to one whose expressions read columns."""

    externs: Mapping[str, Extern]
    below: Callable[[r.Relation, Called], r.Relation]

    def relation(self, node: r.Relation) -> r.Relation:
        match node:
            case r.Input():
                return node
            case r.Filter():
                return self.filter(evolve(node, input=self.relation(node.input)))
            case r.Group():
                return self.group(evolve(node, input=self.relation(node.input)))
            case r.Join():
                return self.join(evolve(node, left=self.relation(node.left), right=self.relation(node.right)))
            case r.Outer() | r.Combine():
                return evolve(node, left=self.relation(node.left), right=self.relation(node.right))
            case r.Unnest() | r.Distinct() | r.Top():
                return evolve(node, input=self.relation(node.input))

    def filter(self, node: r.Filter) -> r.Relation:
        """Conditions that do not call come first, then those that do, then what is made of the rows that are left."""
        if not _calls(node.keep, node.make):
            return node
        rows, row = node.input, node.input.row
        conditions = list(conjuncts(node.keep.body))
        plain = [each for each in conditions if not _calls(each)]
        calling = [each for each in conditions if _calls(each)]
        if plain and node.keep != r.ALL:
            rows = r.Filter(rows, row, s.Lambda(("r",), _all(plain)), r.SAME, span=node.span)
        make = _written(row) if node.make == r.SAME else node.make
        if calling:
            rows, (keep,) = self.lifted(rows, (_all(calling),))
            rows = r.Filter(rows, row, s.Lambda(("r",), keep), _written(row), span=node.span)
        rows, (made,) = self.lifted(rows, (make.body,))
        return r.Filter(rows, node.row, r.ALL, evolve(make, body=made), span=node.span)

    def group(self, node: r.Group) -> r.Relation:
        """Keys and operands read columns of the rows, and what is made of a group those of rows that are groups."""
        values = (*(key.value for key in node.keys), *(a.argument for a in node.aggregates if a.argument))
        rows, lifted = self.lifted(node.input, values)
        made = iter(lifted)
        keys = tuple(evolve(key, value=next(made)) for key in node.keys)
        aggregates = tuple(evolve(a, argument=next(made)) if a.argument else a for a in node.aggregates)
        node = evolve(node, input=rows, keys=keys, aggregates=aggregates)
        if not _calls(node.keep, node.make):
            return node
        row = t.Record(tuple((each.name, each.type) for each in (*keys, *aggregates)))
        make = s.Lambda(("g",), record((name, s.Member(s.Name("g"), name)) for name, _ in row.fields))
        groups = evolve(node, row=row, keep=r.EVERY_GROUP, make=make)
        as_row = {"g": s.Name("r")}
        keep, shown = (s.Lambda(("r",), _renamed(f.body, as_row)) for f in (node.keep, node.make))
        return self.filter(r.Filter(groups, node.row, keep, shown, span=node.span))

    def join(self, node: r.Join) -> r.Relation:
        """Keys read columns of the two sides, and what is made of a pair those of rows that are pairs."""
        sides: list[tuple[r.Relation, s.Lambda]] = []
        for side, key in ((node.left, node.left_key), (node.right, node.right_key)):
            rows, (body,) = self.lifted(side, (key.body,), key.params[0])
            sides.append((rows, evolve(key, body=body)))
        (left, left_key), (right, right_key) = sides
        make, row = node.make, node.row
        if _calls(make) or left is not node.left or right is not node.right:
            pairs = t.Record((("l", node.left.row), ("r", node.right.row)))
            both = record(
                (name, _written(side.row, own).body)
                for name, side, own in zip(("l", "r"), (node.left, node.right), make.params, strict=True)
            )
            joined = evolve(
                node, left=left, right=right, left_key=left_key, right_key=right_key, row=pairs,
                make=s.Lambda(make.params, both),
            )  # fmt: skip
            names = {
                own: s.Member(s.Name("r"), name) for own, name in zip(make.params, ("l", "r"), strict=True)
            }
            shown = s.Lambda(("r",), _renamed(make.body, names))
            return self.filter(r.Filter(joined, row, r.ALL, shown, span=node.span))
        return node

    def lifted(
        self, rows: r.Relation, values: Sequence[s.Expr], param: str = "r"
    ) -> tuple[r.Relation, tuple[s.Expr, ...]]:
        """The values with columns in the place of calls, over the rows that have these."""
        work = _Lifting(self, rows, s.Name(param))
        found = tuple(work.value(each, ()) for each in values)
        return work.rows, found


@define
class _Lifting:
    """`rows`: with the columns found so far. `known`: the columns of calls, and of what must hold where they are made."""

    whole: _Apart
    rows: r.Relation
    row: s.Name
    known: dict[tuple[s.Expr, tuple[s.Expr, ...]], s.Expr] = field(
        factory=dict["tuple[s.Expr, tuple[s.Expr, ...]]", "s.Expr"]
    )

    def value(self, node: s.Expr, guards: tuple[s.Expr, ...]) -> s.Expr:
        """A value in which nothing calls; `guards` hold where it is wanted."""
        if not _calls(node):
            return node
        match node:
            case s.IfExpr(condition, then, other):
                test = self.value(condition, guards)
                chosen = self.value(then, (*guards, test))
                return s.IfExpr(test, chosen, self.value(other, (*guards, _not(test))), span=node.span)
            case s.Binary("and" | "or" as op, left, right):
                first = self.value(left, guards)
                second = self.value(right, (*guards, first if op == "and" else _not(first)))
                return evolve(node, left=first, right=second)
            case s.Call(name, args) if name.startswith(EXTERN):
                given = tuple(self.value(cast("s.Expr", arg), guards) for arg in args)
                return self.called(self.whole.externs[name], given, guards, node.span)
            case s.Comprehension():  # what it is of is no column
                return node
            case _:
                return rebuild(node, lambda child: self.part(child, guards))

    def part(self, node: s.Node, guards: tuple[s.Expr, ...]) -> s.Node:
        if isinstance(node, s.Lambda):  # what it is of is no column
            return node
        if isinstance(node, s.FieldValue):
            return rebuild(node, lambda child: self.part(child, guards))
        return self.value(cast("s.Expr", node), guards)

    def called(
        self, function: Extern, args: tuple[s.Expr, ...], guards: tuple[s.Expr, ...], span: Span | None
    ) -> s.Expr:
        """The column that a call is, where it is wanted."""
        call = s.Call(function.name, args)
        if (call, guards) in self.known:
            return self.known[call, guards]
        kinds: t.Type = t.Record(function.params)
        operands = record((name, arg) for (name, _), arg in zip(function.params, args, strict=True))
        type_ = function.result
        if guards:
            kinds, type_ = t.Optional(kinds), t.Optional(strip(type_))
            operands = s.IfExpr(_all(guards), operands, s.NoneValue())
        if self.row.name != "r":
            operands = _renamed(operands, {self.row.name: s.Name("r")})
        column = fresh(function.name, {name for name, _ in self.rows.row.fields})
        made = Called(column, type_, function.target, kinds, s.Lambda(("r",), operands), span=span)
        self.rows = self.whole.below(self.rows, made)
        found: s.Expr = s.Member(self.row, column, span=span)
        if type_ != function.result:
            found = s.Force(found, span=span)
        self.known[call, guards] = found
        return found


def _all(conditions: Sequence[s.Expr]) -> s.Expr:
    first, *rest = conditions
    for each in rest:
        first = s.Binary("and", first, each)
    return first


def _not(condition: s.Expr) -> s.Expr:
    return s.Unary("not", condition)


def _written(row: t.Record, param: str = "r") -> s.Lambda:
    """The projection to these columns."""
    return s.Lambda((param,), record((name, s.Member(s.Name(param), name)) for name, _ in row.fields))


def _renamed(node: s.Expr, names: Mapping[str, s.Expr]) -> s.Expr:
    """An expression with other values for these names."""

    def rewrite(inner: s.Node) -> s.Node:
        if isinstance(inner, s.Name) and inner.name in names:
            return names[inner.name]
        return rebuild(inner, rewrite)

    return cast("s.Expr", rewrite(node))
