"""The declarations of River IL that a program becomes, while they are made: types, variables, operators and their uses.

Whoever makes operators, for inputs, views or outputs, adds them to the one `Declarations` of a program, which finds names that
nothing bears yet and knows the queue of each relation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from frontends.cql import changes
from frontends.cql import typed as ty
from frontends.cql.passing import passing
from frontends.cql.plan import Plan, plan
from frontends.sql import typed as r
from river.classes import define, evolve, field, frozen
from river.il import program as p
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.source import Span


Args = tuple[tuple[str, s.TemplateArg], ...]
"""What an instance of a template gives for its parameters."""


@frozen
class Deltas:
    """What travels along a queue: deltas of `row`, whose type is written `type`."""

    queue: str
    row: t.Record
    type: s.TypeExpr


@define
class Declarations:
    """What has been declared so far of the program that `source` becomes.

    `taken`: the names that are borne. `named`: the queue of each relation and stream; `copies`: those of its copies that no
    reader has taken yet. `loud`: the relations whose instants without change matter to a query that uses them.
    """

    source: ty.Program
    types: list[p.TypeDecl] = field(factory=list[p.TypeDecl])
    operators: list[p.Decl] = field(factory=list[p.Decl])
    variables: list[p.Decl] = field(factory=list[p.Decl])
    uses: list[p.Decl] = field(factory=list[p.Decl])
    taken: set[str] = field(factory=set[str])
    copies: dict[str, list[str]] = field(factory=dict[str, list[str]])
    named: dict[str, Deltas] = field(factory=dict[str, Deltas])
    stamps: list[s.Fn] = field(factory=list[s.Fn])
    functions: dict[tuple[t.Type, int], s.Fn] = field(factory=dict["tuple[t.Type, int]", s.Fn])
    folds: dict[r.Fold, s.Fn] = field(factory=dict["r.Fold", s.Fn])
    loud: frozenset[str] = frozenset()
    plan: Plan = field(init=False)
    passing: Mapping[str, ty.Input] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.plan = plan(self.source)
        self.passing = passing(self.source)
        named = (*self.source.inputs, *self.source.views, *self.source.functions)
        self.taken = {"delta", *(one.name for one in named)}
        self.loud = changes.loud(self.source, self.plan.now)

    # -- time

    @property
    def tau(self) -> s.TypeExpr:
        """The type of instants."""
        return expression(self.source.tau)

    def range(self, ticks: int) -> Args:
        """The arguments of a window of this length."""
        last = ("last", self.instant(self.last - ticks - 1))
        (kind, span), (_, one) = self.span(ticks), self.span(1)
        return ("Span", kind), ("span", span), ("granule", one), last

    def span(self, ticks: int) -> tuple[s.TypeExpr, s.Expr]:
        """The type of lengths of time, and one of them."""
        if self.source.tau == t.I64:
            return self.tau, s.Int(ticks)
        return expression(t.DURATION), s.Call("duration", (s.Int(ticks),))

    @property
    def last(self) -> int:
        """The last instant that there is."""
        return BOUNDS[self.source.tau][1]

    def instant(self, ticks: int) -> s.Expr:
        """An instant, as a text would have it."""
        number = s.signed(ticks)
        return number if self.source.tau == t.I64 else s.Call("time", (number,))

    # -- names and declarations

    def fresh(self, name: str) -> str:
        """`name`, or one like it that nothing bears yet."""
        found = fresh(_plain(name), self.taken)
        self.taken.add(found)
        return found

    def declare(self, title: str, type_: s.TypeExpr, span: Span | None) -> s.TypeExpr:
        """Declares a type under a name like `title`, in capitals; one that is there already is used again."""
        title = _plain(title)
        name = "".join(part[:1].upper() + part[1:] for part in title.split("_")) or title
        for known in self.types:
            if known.type == type_ and known.name == name:
                return s.TypeName(name)
        name = self.fresh(name)
        self.types.append(p.TypeDecl(name, (), type_, span=span))
        return s.TypeName(name)

    def variable(self, name: str, type_: s.TypeExpr, initial: s.Expr, span: Span | None) -> str:
        """Declares a variable; its name as it stands in uses."""
        own = self.fresh(name)
        self.variables.append(p.Variable(own, type_, initial, span=span))
        return f"${own}"

    def use(
        self,
        out: str,
        operator: str,
        ins: tuple[str, ...],
        variables: tuple[str, ...],
        span: Span | None,
        *notes: p.Annotation,
    ) -> None:
        """A use whose operator writes all of its variables."""
        self.uses.append(p.Use((out, *variables), operator, (*ins, *variables), notes, span=span))

    def instance(self, title: str, template: str, args: Args, span: Span | None) -> str:
        """Declares an instance of a template; its name."""
        name = self.fresh(title)
        self.operators.append(p.Instance(name, f"cql.{template}", args, span=span))
        return name

    def delta(self, row: s.TypeExpr) -> s.TypeExpr:
        """The type of a queue of deltas."""
        return s.TypeName("delta", (row,))

    # -- queues

    def mapped(self, rows: Deltas, row: t.Record, made: s.Expr, name: str, span: Span | None) -> Deltas:
        """Deltas with each row `r` as what is made of it."""
        type_ = self.declare(name, expression(row), span)
        args: Args = (
            ("R", rows.type), ("O", type_), ("Tau", self.tau), ("keep", r.ALL), ("row", s.Lambda(("r",), made)),
            ("quiet", s.Bool(value=False)),
        )  # fmt: skip
        queue = self.fresh(name)
        self.use(
            queue,
            self.instance(name, "select", args, span),
            (rows.queue,),
            (),
            span,
            p.Annotation("Parallel"),
        )
        return Deltas(queue, row, type_)

    def publish(self, name: str, rows: Deltas, span: Span | None, *extra: str) -> None:
        """Makes the queue of a name known, duplicated if several read it; `extra`: further readers."""
        readers = [
            source.label
            for view in self.source.views
            if view.name not in self.plan.own
            for source in view.query.sources
            if source.name == name
        ]
        count = len(readers) + len(extra)
        self.named[name] = rows
        if count < 2:
            self.copies[name] = [rows.queue]
            return
        copies = [self.fresh(f"{name}_{i + 1}") for i in range(count)]
        operator = self.fresh(f"copy_{name}")
        args: Args = (("T", self.delta(rows.type)), ("n", s.Int(count)), ("by", s.Name("tau")))
        self.operators.append(p.Instance(operator, "std.duplicate", args, span=span))
        self.uses.append(p.Use(tuple(copies), operator, (rows.queue,), span=span))
        self.copies[name] = copies

    def rename(self, queue: str, name: str) -> None:
        """Gives a queue the name of the output that it is."""
        for i, use in enumerate(self.uses):
            if isinstance(use, p.Use) and queue in use.outs:
                self.uses[i] = evolve(use, outs=tuple(name if out == queue else out for out in use.outs))


def _plain(name: str) -> str:
    """A name as a plain word, whatever the text calls it."""
    return re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)
