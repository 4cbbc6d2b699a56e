"""Numbered rows of which only the first are asked for: the operator that numbers them looks no further.

`select * from (select *, row_number() over (...) as n from s) where n <= 3` is a relation of all rows with their numbers, and a
filter behind it. If nobody else reads the numbered rows, there are as many as the filter lets through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql.trees import fields
from frontends.sql import typed as r
from frontends.sql.operations import conjuncts
from river.classes import evolve
from river.il.trees import walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from frontends.cql import typed as ty


def narrowed(views: tuple[ty.View, ...]) -> tuple[ty.View, ...]:
    """The same views, with as few numbered rows as are asked for."""
    known = {view.name: view for view in views}
    readers = [source.name for view in views for source in view.query.sources]
    for view in views:
        for index, column, most in _bounds(view.query.relation):
            name: str = view.query.sources[index].name
            while name in known and readers.count(name) == 1 and not known[name].output:
                inner = known[name]
                match inner.query.relation:
                    case r.Top(input, make=make) as top if _number(make, column) in r.NUMBERS[1:]:
                        del input
                        if top.most is None or top.by == _number(make, column):
                            by, least = (
                                _number(make, column),
                                most if top.most is None else min(most, top.most),
                            )
                            relation = evolve(top, by=by, most=least)
                            known[name] = evolve(inner, query=evolve(inner.query, relation=relation))
                        break
                    case r.Filter(r.Input(source), _, _, make) if isinstance(
                        value := _shown(make, column), s.Member
                    ):
                        name, column = inner.query.sources[source].name, value.name
                    case _:
                        break
    return tuple(known[view.name] for view in views)


def _shown(make: s.Lambda, column: str) -> s.Expr | None:
    """What a column of a projection is."""
    return s.Member(s.Name("r"), column) if make == r.SAME else fields(make.body).get(column)


def _number(make: s.Lambda, column: str) -> str:
    """Which number of its row a column is, or nothing."""
    value = fields(make.body).get(column)
    return value.name if isinstance(value, s.Name) else ""


def _bounds(relation: r.Relation) -> Iterator[tuple[int, str, int]]:
    """The sources of which only rows are read whose column is at most so great."""
    for node in walk(relation):
        match node:
            case r.Filter(r.Input(index), _, keep, _):
                for condition in conjuncts(keep.body):
                    match condition:
                        case s.Binary("<=" | "==", s.Member(s.Name("r"), column), s.Int(most)):
                            yield index, column, most
                        case s.Binary("<", s.Member(s.Name("r"), column), s.Int(most)):
                            yield index, column, most - 1
                        case s.Binary(">=" | "==", s.Int(most), s.Member(s.Name("r"), column)):
                            yield index, column, most
                        case s.Binary(">", s.Int(most), s.Member(s.Name("r"), column)):
                            yield index, column, most - 1
                        case _:
                            pass
            case _:
                pass
