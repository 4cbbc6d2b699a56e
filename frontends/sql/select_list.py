"""The select list as the text has it: stars, numbers of items, names of items elsewhere, and what a column is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import fresh, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.sql.sources import Sources
    from river.report import Report
    from river.source import Span


def written_out(items: tuple[q.Item | q.Star, ...], sources: Sources, *, named: bool) -> tuple[q.Item, ...]:
    """The select list with its stars written out. `named`: columns get their names from it."""
    found: list[q.Item] = []
    for item in items:
        match item:
            case q.Item():
                found.append(item)
            case q.Star(label, without):
                if label is not None and label not in sources.labels:
                    near = closest(label, sources.labels)
                    sources.report.error(
                        "sql-unknown-source", f"no source is called `{label}`", item.span, near
                    )
                every = _every_column(label, sources, item.span, named=named)
                titles = [title(each.value) for each in every]
                for name in (name for name in without if name not in titles and not item.spread):
                    near = closest(name, [each for each in titles if each])
                    sources.report.error("sql-unknown-column", f"unknown column `{name}`", item.span, near)
                found += [each for each, of in zip(every, titles, strict=True) if of not in without]
    return _apart(found) if named else tuple(found)


def _apart(items: list[q.Item]) -> tuple[q.Item, ...]:
    """The items with names for those that would be called alike and have no `as`: their sources in front, or by their number.

    A name that is stated twice stays: it is a slip.
    """
    titles = [None if item.name is not None else title(item.value) for item in items]
    taken = {item.name for item in items} | set(titles)
    found = list(items)
    for name in dict.fromkeys(each for each in titles if each is not None and titles.count(each) > 1):
        places = [i for i, each in enumerate(titles) if each == name]
        origins = {_origin(items[i].value) for i in places}
        if None not in origins and len(origins) == len(places):
            given = {i: f"{_origin(items[i].value)}_{name}" for i in places}
        else:
            given = {i: f"column{i + 1}" for i in places[1:]}
        for i, made in given.items():
            unused = fresh(made, {each for each in taken if each})
            taken.add(unused)
            found[i] = evolve(items[i], name=unused)
    return tuple(found)


def _origin(expr: s.Expr) -> str | None:
    """The source that a column is said to be of."""
    match expr:
        case s.Member(s.Name(label)):
            return label
        case _:
            return None


def _every_column(label: str | None, sources: Sources, span: Span | None, *, named: bool) -> list[q.Item]:
    """The columns of one source or of all; of all, those alike get the source's name in front."""
    shown = [
        (own, row) for own, row in zip(sources.labels, sources.rows, strict=True) if label in (None, own)
    ]
    found: list[q.Item] = []
    merged = sources.merged() if label is None else dict[str, int]()
    hidden = {(source.label, source.hidden) for source in sources.sources}
    names = [name for own, row in shown for name, _ in row.fields if (own, name) not in hidden]
    for own, row in shown:
        for name, _ in row.fields:
            if (own, name) in hidden or (name in merged and sources.labels[merged[name]] != own):
                continue
            value = s.Member(s.Name(own, span=span), name, span=span)
            alike = named and names.count(name) > 1 and name not in merged
            found.append(q.Item(value, f"{own}_{name}" if alike else None, span=span))
    return found


def without_aliases(block: q.Select, items: tuple[q.Item, ...], sources: Sources) -> q.Select:
    """The query with names from the select list written out in `group by` and `having`; columns come first."""
    known = {name for row in sources.rows for name, _ in row.fields}
    values = {item.name: item.value for item in items if item.name is not None and item.name not in known}

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name in values:
                return evolve(values[name], span=node.span)
            case s.Call(_, args) if aggregate_of(node):
                return evolve(node, args=args)
            case _:
                return rebuild(node, rewrite)

    group = tuple(cast("s.Expr", rewrite(numbered(expr, items, sources.report))) for expr in block.group)
    having = None if block.having is None else cast("s.Expr", rewrite(block.having))
    return evolve(block, group=group, having=having)


def numbered(expr: s.Expr, items: tuple[q.Item, ...], report: Report) -> s.Expr:
    """What `group by 2` means: the second item of the select list."""
    if not isinstance(expr, s.Int):
        return expr
    if not 1 <= expr.value <= len(items):
        message = f"the select list has no item {expr.value}"
        raise report.error("sql-group-number", message, expr.span)
    return evolve(items[expr.value - 1].value, span=expr.span)


def title(expr: s.Expr) -> str | None:
    """The name of a column of this value, if it is a column or an aggregate of one."""
    match expr:
        case s.Name(name) | s.Member(_, name):
            return name
        case s.Call("filter" | "ordered", (s.Call() as call, *_)):
            return title(call)
        case s.Call(_, args) if (function := aggregate_of(expr)) is not None:
            if isinstance(expr, q.Folded):
                function = expr.function
            if not args:
                return function
            return f"{function}_{args[0].name}" if isinstance(args[0], s.Name | s.Member) else None
        case _:
            return None
