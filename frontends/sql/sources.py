"""The sources of a block: how each is joined, which of their columns may be none behind the joins, and expressions over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import syntax as q
from frontends.sql.elements import Elements, elements
from frontends.sql.expressions import RowExpressions
from frontends.sql.operations import conjuncts
from frontends.sql.values import strip
from river.classes import define, evolve, field
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.lang.scope import Scope

_INSIDE = "inside of `unnest`"


def joined_by_name(block: q.Select, rows: tuple[t.Record, ...]) -> q.Select:
    """The query with the columns of its natural joins written out."""
    sources: list[q.Source] = []
    known: set[str] = set()
    for source, row in zip(block.sources, rows, strict=True):
        names = [name for name, _ in row.fields]
        if source.joining is not None and source.joining.natural:
            using = tuple(name for name in names if name in known)
            source = evolve(source, joining=evolve(source.joining, using=using, natural=False))
        sources.append(source)
        known.update(names)
    return evolve(block, sources=tuple(sources))


def with_elements(
    block: q.Select,
    row_of: Callable[[q.Source], t.Record],
    scope: Scope,
    report: Report,
    around: tuple[q.Source, ...] = (),
) -> q.Select:
    """The block with the columns of its sources of values; `around`: the sources of the blocks that it stands in."""
    sources: list[q.Source] = []
    for source in block.sources:
        if isinstance(source, q.Unnest):
            own = Sources(tuple(sources), tuple(map(row_of, sources)), scope, report)
            near = dict(zip(own.labels, own.rows, strict=True))
            both = {each.label: row_of(each) for each in around} | near
            source = evolve(source, row=_nearest(source, near, both, scope, report).row)
        sources.append(source)
    return evolve(block, sources=tuple(sources))


def _nearest(
    source: q.Unnest,
    near: Mapping[str, t.Record],
    around: Mapping[str, t.Record],
    scope: Scope,
    report: Report,
) -> Elements:
    """What a source of values is; names of the sources that are near hide those around."""
    try:
        return elements(source, RowExpressions(Report(), scope, tuple(near), tuple(near.values()), _INSIDE))
    except Failed:
        return elements(source, RowExpressions(report, scope, tuple(around), tuple(around.values()), _INSIDE))


@define
class Sources:
    """The sources of a block, which are joined from left to right; `own`: their rows before any join."""

    sources: tuple[q.Source, ...]
    own: tuple[t.Record, ...]
    scope: Scope
    report: Report
    labels: tuple[str, ...] = field(init=False)
    rows: tuple[t.Record, ...] = field(init=False)
    """Their rows behind all joins."""
    inputs: dict[int, int] = field(init=False)
    """The number of each source among those that are relations."""

    def __attrs_post_init__(self) -> None:
        self.labels = tuple(source.label for source in self.sources)
        self.rows = self.rows_at(len(self.own))
        real = [i for i, source in enumerate(self.sources) if not isinstance(source, q.Unnest)]
        self.inputs = {i: number for number, i in enumerate(real)}

    def kind(self, index: int) -> str:
        """How source `index` is joined with those before it."""
        joining = self.sources[index].joining
        return "inner" if joining is None else joining.kind

    def rows_at(self, end: int) -> tuple[t.Record, ...]:
        """The rows of the sources before number `end`, as their joins leave them: what may lack a partner may be none."""
        return tuple(_loosened(row) if self.lacks(i, end) else row for i, row in enumerate(self.own[:end]))

    def lacks(self, index: int, end: int) -> bool:
        """Whether the joins before number `end` may give rows without one of source `index`."""
        later = (self.kind(i) for i in range(index + 1, end))
        return self.kind(index) in ("left", "full") or any(kind in ("right", "full") for kind in later)

    @property
    def outer(self) -> bool:
        """Whether some join is an outer one: then each condition of `on` stays with its join."""
        return any(self.kind(i) != "inner" for i in range(len(self.own)))

    def unique_labels(self) -> None:
        """Refuses two sources of one name."""
        for i, source in enumerate(self.sources):
            if source.label in self.labels[:i]:
                help_line = "give one of them another name: `as other`"
                self.report.error(
                    "sql-duplicate-source", f"`{source.label}` stands twice", source.span, help_line
                )

    def merged(self) -> Mapping[str, int]:
        """The columns after `using`, and the source of each that a bare name means: that which always has it."""
        found: dict[str, int] = {}
        for i, source in enumerate(self.sources):
            joining = source.joining
            for name in () if joining is None or joining.kind == "full" else joining.using:
                first = next((j for j in range(i) if self.rows[j].field(name) is not None), i)
                found.setdefault(name, first)
                if joining is not None and joining.kind == "right":
                    found[name] = i
        return found

    def over_rows(self, place: str) -> RowExpressions:
        """Expressions over the sources' rows, in a clause."""
        return RowExpressions(self.report, self.scope, self.labels, self.rows, place, merged=self.merged())

    def elements(self, index: int) -> Elements:
        """What source `index`, one of values, is."""
        source = self.sources[index]
        assert isinstance(source, q.Unnest)  # noqa: S101 - it has no relation
        over = RowExpressions(self.report, self.scope, self.labels[:index], self.rows_at(index), _INSIDE)
        return elements(source, over)

    def seen(self, index: int) -> RowExpressions:
        """Expressions over what the condition of the join with source `index` sees: this source and those before it."""
        rows = (*self.rows_at(index), self.own[index])
        return RowExpressions(self.report, self.scope, self.labels[: index + 1], rows, "in `on`")

    def joining(self, index: int) -> tuple[s.Expr, ...]:
        """The conjuncts that join source `index` with those before it, `using` written out."""
        joining = self.sources[index].joining
        if joining is None:
            return ()
        found: list[s.Expr] = [] if joining.on is None else list(conjuncts(joining.on))
        span, before = joining.span, self.rows[:index]
        for name in joining.using:
            having = [i for i, row in enumerate(before) if row.field(name) is not None]
            if not having or self.rows[index].field(name) is None:
                side = "right" if having else "left"
                self.report.error("sql-unknown-column", f"the {side} side of the join has no `{name}`", span)
                continue
            own, other = (s.Member(s.Name(self.labels[i]), name, span=span) for i in (having[0], index))
            found.append(s.Binary("==", own, other, span=span))
        return tuple(found)

    def matched(self, index: int) -> tuple[s.Expr, ...]:
        """The checked conjuncts that join source `index` with those before it."""
        found: list[s.Expr] = []
        for conjunct in self.joining(index):
            with self.report.recover():
                found.append(self.seen(index).condition(conjunct))
        return tuple(found)


def _loosened(row: t.Record) -> t.Record:
    """Rows that may be missing: each column may be none."""
    return t.Record(tuple((name, t.Optional(strip(type_))) for name, type_ in row.fields))
