"""Sources that a text uses without declaring them (River, Figure 3 b): what their rows must be, from how they are used.

Paper: River section 3.3, Figure 3(b).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from river.classes import define, field
from river.diagnostics import closest
from river.il.trees import children, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.report import Report
    from river.source import Span

STAMP = "ts"
INT = s.TypeName("int")
FLOATS = frozenset({"float", "real", "double", "f64", "f32"})


def assumed(decls: tuple[c.Decl, ...], report: Report) -> tuple[c.Decl, ...]:
    """Declarations of the streams that are used but not declared, each with a remark that says it.

    A use decides the type of a column that the select list gives to a declared column, plainly or aggregated. Names that
    are nearly those of something declared are taken for misspelt. Codes: cql-unknown-source, cql-assumed-source.
    """
    known = {decl.name for decl in decls}
    guesses: dict[str, _Guess] = {}
    for decl in decls:
        if decl.query is None:
            continue
        blocks = (node for node in walk(decl.query) if isinstance(node, q.Select))
        for block in blocks:  # a combination is of declarations
            for source in block.sources:
                if source.name not in known and not isinstance(source, q.Unnest):
                    guess = guesses.setdefault(source.name, _Guess(source.name, source.span))
                    guess.read(block, source, decl.type if block is decl.query.select else None)
    found: list[c.Decl] = []
    for guess in guesses.values():
        near = closest(guess.name, known)
        if near is not None or guess.open or not guess.types:
            unknown = f" (the type of `{guess.open[0]}` does not follow)" if guess.open else ""
            help_line = near or f"declare it: `{guess.name}: {{ts: int; ...}} stream by ts;`{unknown}"
            report.error("cql-unknown-source", f"unknown source `{guess.name}`", guess.span, help_line)
            continue
        decl = guess.decl()
        shown = "; ".join(f"{f.name}: {_shown(f.type)}" for f in guess.fields())
        message = f"`{guess.name}` is not declared: taken as `{{{shown}}} stream by {STAMP}`"
        report.remark("cql-assumed-source", message, guess.span)
        found.append(decl)
    return tuple(found)


@define
class _Guess:
    """What is known of an undeclared source: the types of its columns, in order of first use (None: not yet)."""

    name: str
    span: Span | None
    types: dict[str, s.TypeExpr | None] = field(factory=dict[str, s.TypeExpr | None])
    clashes: list[str] = field(factory=list[str])

    @property
    def open(self) -> list[str]:
        """The columns whose type does not follow from any use, or not in one way."""
        return [name for name, type_ in self.types.items() if type_ is None] + self.clashes

    def read(self, select: q.Select, source: q.Source, result: s.RecordType | None) -> None:
        """Notes what one query says of the source."""
        alone = len(select.sources) == 1
        clauses = [select.where, *select.group, select.having, *_keys(source)]
        fields = () if result is None else tuple(f for f in result.fields if isinstance(f, s.FieldType))
        plain = [item for item in select.items if isinstance(item, q.Item)]
        if len(plain) < len(select.items):
            self.clashes.append("*")
        told = len(fields) == len(plain) == len(select.items)  # a star stands for any number of fields
        types = [f.type for f in fields] if told else [None] * len(plain)
        for item, type_ in zip(plain, types, strict=True):
            for name in _columns(item.value, source.label, alone=alone):
                self.note(name, None)
            for name, kind in _decided(item.value, type_, source.label, alone=alone):
                self.note(name, kind)
        for clause in clauses:
            for name in () if clause is None else _columns(clause, source.label, alone=alone):
                self.note(name, None)

    def note(self, name: str, type_: s.TypeExpr | None) -> None:
        """A use of a column."""
        if name == STAMP:
            return
        before = self.types.setdefault(name, type_)
        if before is None:
            self.types[name] = type_
        elif type_ is not None and type_ != before:
            self.clashes.append(name)

    def fields(self) -> tuple[s.FieldType, ...]:
        """The columns, the stamp first."""
        known = [s.FieldType(name, type_) for name, type_ in self.types.items() if type_ is not None]
        return (s.FieldType(STAMP, INT), *known)

    def decl(self) -> c.Decl:
        """The declaration that stands for the missing one."""
        span = self.span
        return c.Decl(
            self.name, s.RecordType(self.fields()), "stream", STAMP, None, name_span=span, span=span
        )


def _keys(source: q.Source) -> tuple[s.Expr, ...]:
    match source:
        case c.Windowed(
            window=c.RowWindow(keys=keys)
            | c.Range(keys=keys)
            | c.Session(keys=keys)
            | c.WindowTable(keys=keys)
        ):
            return keys
        case _:
            return ()


def _columns(expr: s.Node, label: str, *, alone: bool) -> Iterable[str]:
    """The columns of the source that an expression names."""
    column = _column(expr, label, alone=alone)
    if column is not None:
        yield column
        return
    for child in children(expr):
        if not (isinstance(expr, q.Nested) and child is expr.query):  # which may have such columns of its own
            yield from _columns(child, label, alone=alone)


def _column(expr: s.Node, label: str, *, alone: bool) -> str | None:
    match expr:
        case s.Member(s.Name(source), name) if source == label:
            return name
        case s.Name(name) if alone and not isinstance(expr, q.Quoted):
            return name
        case _:
            return None


def _decided(
    expr: s.Expr, type_: s.TypeExpr | None, label: str, *, alone: bool
) -> Iterable[tuple[str, s.TypeExpr | None]]:
    """The column whose type a result column decides."""
    if type_ is None:
        return
    column = _column(expr, label, alone=alone)
    if column is not None:
        yield column, type_
        return
    inner = (
        type_.inner if isinstance(type_, s.OptionalType) else type_
    )  # an aggregate may be none, its argument is not
    match expr, aggregate_of(expr):
        case s.Call(_, (argument,)), "sum" | "avg":
            decided = inner if isinstance(inner, s.TypeName) and inner.name in FLOATS else INT
        case s.Call(_, (argument,)), "min" | "max":
            decided = inner
        case _:
            return
    name = _column(argument, label, alone=alone)
    if name is not None:
        yield name, decided


def _shown(type_: s.TypeExpr) -> str:
    match type_:
        case s.TypeName(name, ()):
            return name
        case _:
            return "?" if type_.span is None else type_.span.text
