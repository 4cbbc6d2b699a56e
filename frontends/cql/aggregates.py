"""The user's aggregates: a state, what a row that comes or goes makes of it, and its value.

They are in the manner of ESL's (initialize, iterate, expire, terminate), as formulas. All names in them are parameters and
fields of the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql.trees import fields
from frontends.sql import typed as r
from frontends.sql.columns import Column, substitute
from frontends.sql.expressions import RowExpressions
from frontends.sql.values import Found, convert, spelled, strip
from river.classes import define
from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import resolve
from river.report import Failed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frontends.cql import syntax as c
    from river.lang.scope import Scope
    from river.report import Report
    from river.source import Span

PARTS = ("init", "add", "remove", "value")
OF_OTHERS = {
    "initialize": "init", "initialise": "init", "iterate": "add", "accumulate": "add", "expire": "remove", "retract": "remove",
    "terminate": "value", "result": "value",
}  # fmt: skip
"""What the parts are called elsewhere."""


def fold(definition: c.AggregateFunction, scope: Scope, report: Report) -> r.Fold:
    """What an aggregate of the user's does.

    Raises: Failed; the errors (codes cql-aggregate, sql-*, lang-*) are in the report.
    """
    return _Definition(definition, scope, report).fold()


@define
class _Definition:
    text: c.AggregateFunction
    scope: Scope
    report: Report

    def fold(self) -> r.Fold:
        """The whole of it."""
        parts = self.parts()
        before = self.report.errors
        operands = t.Record(tuple((name, resolve(type_, self.scope)) for name, type_ in self.text.params))
        names = [name for name, _ in operands.fields]
        initial = self.record("init", parts["init"], ())
        state = t.Record(tuple((name, value.type) for name, value in initial.items()))
        for twice in (name for i, name in enumerate(names) if name in (*names[:i], *initial)):
            self.error(
                f"`{twice}` is two things in `{self.text.name}`", parts["init"].span, "rename one of them"
            )
        add = self.changed("add", parts["add"], operands, state)
        remove = self.changed("remove", parts["remove"], operands, state) if "remove" in parts else None
        value = self.value(parts["value"], state)
        if self.report.errors > before:
            raise Failed
        start = s.RecordValue(tuple(s.FieldValue(name, value.expr) for name, value in initial.items()))
        made = s.Lambda(("state",), _read(value.expr, t.Record(()), state))
        return r.Fold(self.text.name, operands, state, value.type, start, add, remove, made)

    def error(self, message: str, span: Span | None, help_line: str | None = None) -> Failed:
        """What is wrong with the text."""
        return self.report.error("cql-aggregate", message, span or self.text.span, help_line)

    def parts(self) -> Mapping[str, s.Expr]:
        """The parts by name; those that must be there are."""
        found: dict[str, s.Expr] = {}
        name = self.text.name
        for word, value in self.text.parts:
            part = word.lower()
            if part not in PARTS:
                better = OF_OTHERS.get(part)
                near = f"it is called `{better}`" if better else closest(part, PARTS)
                raise self.error(
                    f"an aggregate has no part `{word}`",
                    value.span,
                    near or f"its parts are {_listed(PARTS)}",
                )
            if part in found:
                raise self.error(f"`{part}` stands twice in `{name}`", value.span)
            found[part] = value
        for part in ("init", "add", "value"):
            if part not in found:
                help_line = {
                    "init": "say what is kept, and what it is of no rows: `init: {total: 0}`",
                    "add": "say what a row that comes makes of it: `add: {total: total + x}`",
                    "value": "say what it comes to: `value: total`",
                }[part]
                raise self.error(f"`{name}` has no part `{part}`", self.text.span, help_line)
        return found

    def record(self, part: str, value: s.Expr, rows: tuple[t.Record, ...]) -> Mapping[str, Found]:
        """The fields of a part that is a record."""
        values = fields(value)
        if not values:
            raise self.error(
                f"`{part}` is a record of what is kept", value.span, f"write `{part}: {{total: ...}}`"
            )
        over = RowExpressions(
            self.report, self.scope, tuple(f"{part} {i}" for i in range(len(rows))), rows, f"in `{part}`"
        )
        found: dict[str, Found] = {}
        for name, each in values.items():
            with self.report.recover():
                found[name] = over.find(each)
        if len(found) < len(values):
            raise Failed
        return found

    def changed(self, part: str, value: s.Expr, operands: t.Record, state: t.Record) -> s.Lambda:
        """The state that `add` and `remove` make: what they do not name stays."""
        kinds = dict(state.fields)
        made = self.record(part, value, (operands, state))
        found: list[s.FieldValue] = []
        for name in made:
            if name not in kinds:
                near = closest(name, kinds) or f"there are {_listed(tuple(kinds))}"
                self.error(f"`{part}` changes `{name}`, which `init` does not have", value.span, near)
        for name, kind in state.fields:
            new = made.get(name)
            if new is None:
                found.append(s.FieldValue(name, s.Member(s.Name("state"), name)))
                continue
            new = self.fitted(new, kind, f"`{name}` after `{part}`")
            found.append(s.FieldValue(name, _read(new.expr, operands, state)))
        return s.Lambda(("state", "row"), s.RecordValue(tuple(found), span=value.span), span=value.span)

    def value(self, value: s.Expr, state: t.Record) -> Found:
        """What the aggregate comes to; it may be none whatever is declared."""
        over = RowExpressions(
            self.report, self.scope, ("no row", "state"), (t.Record(()), state), "in `value`"
        )
        declared = resolve(self.text.result, self.scope)
        found = self.fitted(
            over.find(value), t.Optional(strip(declared)), f"the result of `{self.text.name}`"
        )
        if isinstance(declared, t.Optional) and not isinstance(found.type, t.Optional):
            return Found(s.IfExpr(s.Bool(value=False), s.NoneValue(), found.expr), declared)
        return found

    def fitted(self, found: Found, kind: t.Type, place: str) -> Found:
        """A value as the type that it has to be of."""
        if strip(kind) == t.F64 and strip(found.type) in t.INTEGERS:
            found = convert(found, t.F64)
        if strip(found.type) != strip(kind):
            message = f"{place} is `{spelled(kind)}`, this is `{spelled(found.type)}`"
            raise self.error(message, found.expr.span)
        if isinstance(found.type, t.Optional) and not isinstance(kind, t.Optional):
            help_line = "say what stands for none: `coalesce(..., 0)`"
            raise self.error(f"{place} may be none, but is `{spelled(kind)}`", found.expr.span, help_line)
        return found


def _read(expr: s.Expr, operands: t.Record, state: t.Record) -> s.Expr:
    """A checked expression over the operands and the state, read from `row` and `state`."""
    places: dict[Column, s.Expr] = {
        Column(number, name): s.Member(s.Name(place), name)
        for number, place, row in ((0, "row", operands), (1, "state", state))
        for name, _ in row.fields
    }
    return substitute(expr, places)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
