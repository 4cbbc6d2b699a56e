"""The arrow from sources and conditions to joins, from left to right: inner and outer ones, and those with what rows hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import typed as r
from frontends.sql.bands import Near, bands
from frontends.sql.columns import Column, columns, sources, substitute
from frontends.sql.joined import Joined, key_of, key_type, renamed
from frontends.sql.operations import conjunction, total
from frontends.sql.pairs import equality
from river.classes import define, evolve, field
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frontends.sql.elements import Elements
    from frontends.sql.expressions import RowExpressions
    from frontends.sql.pairs import Pair
    from frontends.sql.sources import Sources
    from river.source import Span


def joined(of: Sources, conditions: tuple[s.Expr, ...], needed: set[Column], span: Span | None) -> Joined:
    """The sources joined from left to right; `needed`: columns that the rest of the query reads."""
    if len(of.rows) == 1:
        places: dict[Column, s.Expr] = {
            Column(0, name): s.Member(s.Name("r"), name) for name, _ in of.rows[0].fields
        }
        rest = tuple(substitute(c, places) for c in conditions)
        return Joined(r.Input(0, of.rows[0], span=of.sources[0].span), places, rest)
    over = of.over_rows("in `where`")
    if not of.outer:
        return _Joins(span, over, list(conditions), needed, of).joined()
    lacking = {i for i in range(len(of.rows)) if of.lacks(i, len(of.rows))}
    # what reads no column says something of joined rows, too: before a join it would only make rows lack partners
    early = [c for c in conditions if sources(c) and not sources(c) & lacking]
    late = [c for c in conditions if c not in early]
    on = tuple(of.matched(i) for i in range(len(of.rows)))
    return _Joins(span, over, early, needed, of, late, on).joined()


@define
class _Joins:
    """Joins sources from left to right. A condition is applied as early as it can be without trapping more often."""

    span: Span | None
    over: RowExpressions
    waiting: list[s.Expr]
    needed: set[Column]
    sources: Sources
    late: list[s.Expr] = field(factory=list[s.Expr])
    """Conditions on rows that may lack a partner: they come after all joins."""
    on: tuple[tuple[s.Expr, ...], ...] = ()
    """The conditions of each join that stay with it, if there are outer joins."""

    def joined(self) -> Joined:
        """All sources."""
        found = {
            i: self.sources.elements(i) for i in range(len(self.over.rows)) if i not in self.sources.inputs
        }
        self.needed = self.needed.union(*(columns(each.items) for each in found.values()))
        left = self.single(0)
        for right in range(1, len(self.over.rows)):
            if right in found:
                left = self.unnested(left, right, found[right])
                continue
            step = self.step if self.sources.kind(right) == "inner" else self.outer
            left = step(left, right)
        return Joined(left.relation, left.places, tuple(left.read(c) for c in (*self.waiting, *self.late)))

    def single(self, index: int) -> Joined:
        """One source with the conditions on it alone."""
        source, row = self.sources.sources[index], self.sources.own[index]
        places: dict[Column, s.Expr] = {
            Column(index, name): s.Member(s.Name("r"), name) for name, _ in row.fields
        }
        relation = r.Input(self.sources.inputs[index], row, span=source.span)
        return self.narrowed(Joined(relation, places, ()), {index}, source.span)

    def narrowed(self, found: Joined, done: set[int], span: Span | None) -> Joined:
        """A relation with the waiting conditions that can be applied to it."""
        own = [c for c in self.waiting if sources(c) <= done and total(c)]
        self.waiting = [c for c in self.waiting if c not in own]
        return found.filtered(own, span)

    def step(self, left: Joined, index: int) -> Joined:
        """`left` joined with source `index`."""
        source = self.sources.sources[index]
        right = self.single(index)
        done = {column.source for column in left.places}
        own = list(self.on[index]) if self.on else []
        asked = self.waiting + own
        over = self.sources.seen(index)
        pairs = {i: p for i, c in enumerate(asked) if (p := equality(c, done, index, over)) is not None}
        own = [c for i, c in enumerate(asked) if i not in pairs and i >= len(self.waiting)]
        self.waiting = [c for i, c in enumerate(self.waiting) if i not in pairs]
        near = self.near([*own, *self.waiting], done, index, keyed=bool(pairs))
        sides = [p.present for p in pairs.values()] + ([] if near is None else [near.present])
        left = left.filtered([c for side, _ in sides for c in side], source.span)
        right = right.filtered([c for _, side in sides for c in side], source.span)
        kept = self.kept(left, right, index, own)
        names = self.names(kept)
        values = tuple(
            s.FieldValue(names[c], renamed(left.places[c], "l") if c in left.places else right.places[c])
            for c in kept
        )
        relation = r.Join(
            left.relation,
            right.relation,
            self.row(names, index),
            *_keys(left, right, list(pairs.values())),
            s.Lambda(("l", "r"), s.RecordValue(values)),
            None if near is None else near.band(lambda e: renamed(left.read(e), "l"), right.read),
            span=source.span,
        )
        found = _behind(relation, names)
        if own:
            found = found.filtered(own, source.span)
        if index + 1 == len(self.over.rows):
            return found
        return self.narrowed(found, done | {index}, self.span)

    def kept(self, left: Joined, right: Joined, index: int, own: list[s.Expr]) -> list[Column]:
        """The columns of a join with source `index` that something behind it reads; `own`: conditions right behind it."""
        later = [c for conditions in self.on[index + 1 :] for c in conditions]
        read = (*self.waiting, *self.late, *later, *own)
        still = self.needed | {column for c in read for column in columns(c)}
        return [c for c in (*left.places, *right.places) if c in still] or [next(iter(left.places))]

    def unnested(self, left: Joined, index: int, found: Elements) -> Joined:
        """`left` joined with the items of a list that each row holds."""
        source, kind = self.sources.sources[index], self.sources.kind(index)
        if kind in ("right", "full"):
            message = f"a {kind} join with what each row holds has no rows of its own"
            raise self.sources.report.error("sql-unnest", message, source.span, "write `left join`")
        places = {
            Column(index, name): value
            for (name, _), value in zip(found.row.fields, found.values, strict=True)
        }
        own = list(self.on[index]) if self.on else []
        kept = self.kept(left, Joined(left.relation, places, ()), index, [])
        names = self.names(kept)
        sides = {column: renamed(value, "l") for column, value in left.places.items()} | places
        values = tuple(s.FieldValue(names[column], sides[column]) for column in kept)
        nothing = (
            value
            if value.name in {names[c] for c in kept if c in left.places}
            else evolve(value, value=s.NoneValue())
            for value in values
        )
        relation = r.Unnest(
            left.relation,
            self.row(names, index),
            found.type,
            s.Lambda(("l",), renamed(left.read(found.items), "l")),
            s.Lambda(r.ITEM, conjunction(substitute(condition, sides) for condition in own)),
            s.Lambda(r.ITEM, s.RecordValue(values)),
            s.Lambda(("l",), s.RecordValue(tuple(nothing))) if kind == "left" else None,
            span=source.span,
        )
        joined = _behind(relation, names)
        if index + 1 == len(self.over.rows):
            return joined
        return self.narrowed(joined, {column.source for column in left.places} | {index}, self.span)

    def outer(self, left: Joined, index: int) -> Joined:
        """`left` joined with source `index` by an outer join."""
        source, kind, right = self.sources.sources[index], self.sources.kind(index), self.single(index)
        done = {column.source for column in left.places}
        pairs, left_can, right_can, both = self.sorted(done, index)
        near = self.near(both, done, index, keyed=bool(pairs))
        if near is not None:
            left_can += near.present[0]
            right_can += near.present[1]
        names = self.names(self.kept(left, right, index, []))
        sides = {c: renamed(value, "l") for c, value in left.places.items()} | dict(right.places)

        def made(side: Joined | None) -> s.Expr:
            there = sides if side is None else side.places
            return s.RecordValue(
                tuple(
                    s.FieldValue(name, sides[c] if c in there else s.NoneValue()) for c, name in names.items()
                )
            )

        relation = r.Outer(
            left.relation,
            right.relation,
            self.row(names, index),
            *_keys(left, right, pairs),
            s.Lambda(("l", "r"), made(None)),
            s.Lambda(("l",), renamed(conjunction(map(left.read, left_can)), "l")),
            s.Lambda(("r",), conjunction(map(right.read, right_can))),
            s.Lambda(("l",), made(left)) if kind in ("left", "full") else None,
            s.Lambda(("r",), made(right)) if kind in ("right", "full") else None,
            s.Lambda(("l", "r"), conjunction(substitute(c, sides) for c in both)) if both else None,
            None if near is None else near.band(lambda e: renamed(left.read(e), "l"), right.read),
            span=source.span,
        )
        return _behind(relation, names)

    def sorted(
        self, done: set[int], index: int
    ) -> tuple[list[Pair], list[s.Expr], list[s.Expr], list[s.Expr]]:
        """The conditions of an outer join: its keys, those on rows of the left alone, of the right alone, and on both."""
        pairs: list[Pair] = []
        left: list[s.Expr] = []
        right: list[s.Expr] = []
        both: list[s.Expr] = []
        over = self.sources.seen(index)
        for condition in self.on[index]:
            pair = equality(condition, done, index, over)
            if pair is not None:
                pairs.append(pair)
            elif sources(condition) <= {index}:
                right.append(condition)
            elif index not in sources(condition):
                left.append(condition)
            else:
                both.append(condition)
        left += [c for p in pairs for c in p.present[0]]
        right += [c for p in pairs for c in p.present[1]]
        return pairs, left, right, both

    def near(self, conditions: list[s.Expr], done: set[int], index: int, *, keyed: bool) -> Near | None:
        """The bands among the conditions of a join; beside keys only those that have two ends."""
        typed = self.sources.seen(index).typed
        found = bands(conditions, lambda e: sources(e) <= done, lambda e: sources(e) == {index}, typed)
        return None if found is None or (keyed and None in (found.low, found.high)) else found

    def names(self, kept: list[Column]) -> Mapping[Column, str]:
        """The names of columns in a joined row: their own, with the source's in front where two are alike."""
        found: dict[Column, str] = {}
        for column in kept:
            alike = sum(other.name == column.name for other in kept) > 1
            name = f"{self.over.labels[column.source]}_{column.name}" if alike else column.name
            found[column] = fresh(name, set(found.values()))
        return found

    def row(self, names: Mapping[Column, str], index: int) -> t.Record:
        """The rows behind the join with source `index`."""
        rows = [dict(row.fields) for row in self.sources.rows_at(index + 1)]
        return t.Record(tuple((name, rows[c.source][c.name]) for c, name in names.items()))


def _keys(left: Joined, right: Joined, pairs: list[Pair]) -> tuple[t.Type, s.Lambda, s.Lambda]:
    """The keys of a join: their type, and what they are of a row of the left and of the right."""
    return (
        key_type([p.key[0].type for p in pairs]),
        s.Lambda(("l",), key_of([renamed(left.read(p.key[0].expr), "l") for p in pairs])),
        s.Lambda(("r",), key_of([right.read(p.key[1].expr) for p in pairs])),
    )


def _behind(relation: r.Relation, names: Mapping[Column, str]) -> Joined:
    """What is joined, where columns have these names."""
    return Joined(relation, {column: s.Member(s.Name("r"), name) for column, name in names.items()}, ())
