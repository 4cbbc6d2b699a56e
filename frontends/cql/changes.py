"""What the changes of a relation are like, as its query shows: whether rows ever go, stay for an instant, or come in order.

Operators that know it of the relations that they read keep less, or need not say what changed in the end. No is always a
safe answer. The changes are the deltas of a queue: the rows that come at an instant and those that go.
"""

from __future__ import annotations

from frontends.cql import closed
from frontends.cql import typed as ty
from frontends.cql.trees import fields
from frontends.sql import typed as r
from river.lang import syntax as s


def only_comes(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never hold deletions: what is seen of streams stays, and what is made of it."""
    sources = (query.sources[i] for i in _sources(relation))
    return closed.grows(query.sources, relation) and all(_is_growing(program, one) for one in sources)


def _is_growing(program: ty.Program, source: ty.Source) -> bool:
    """Whether the deltas of a source never hold deletions."""
    match source.window:
        case ty.Unbounded() | ty.Buckets():
            return True
        case ty.Sessions(grows=grows):
            return grows
        case None:
            pass
        case _:
            return False
    for view in program.views:
        if view.name == source.name:
            return view.kind == "relation" and only_comes(program, view.query, view.query.relation)
    return any(one.table for one in program.inputs if one.name == source.name)


def lasts(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never delete a row at the instant at which it came."""
    match relation:
        case r.Input(index, _):
            source = query.sources[index]
            match source.window:
                case ty.RowWindow():
                    return bool(_last(query, index))
                case ty.Expiring(count=count):
                    return count == 0
                case ty.RowSteps() | ty.Recent():
                    return False
                case ty.Range() | ty.Buckets() | ty.Sessions():
                    return True
                case None | ty.Unbounded():
                    pass
            views = {view.name: view for view in program.views}
            if source.name in views:
                view = views[source.name]
                return view.kind == "stream" or lasts(program, view.query, view.query.relation)
            return all(one.kind == "stream" or one.table for one in program.inputs if one.name == source.name)
        case r.Filter(input, _, _, _) | r.Unnest(input):
            return lasts(program, query, input)
        case r.Join(left, right, band=band):
            return band is None and lasts(program, query, left) and lasts(program, query, right)
        case r.Group() | r.Distinct() | r.Top():
            return True
        case r.Outer():
            return False
        case r.Combine(left, right, _, word):
            return word != "union" or (lasts(program, query, left) and lasts(program, query, right))


def in_order(query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's rows, those of each key too, go in the order in which they came."""
    match relation:
        case r.Input(index, _):
            return isinstance(query.sources[index].window, ty.Range)
        case r.Filter(input, _, _, _):
            return in_order(query, input)
        case _:
            return False


def is_net(program: ty.Program, query: ty.Query, relation: r.Relation) -> bool:
    """Whether the operator's deltas never hold a row on both sides: each group, or part, shows its key."""
    if only_comes(program, query, query.relation):
        return True
    match relation:
        case r.Distinct():
            return True
        case r.Combine(word="except" | "intersect"):
            return True
        case r.Top(key=key):
            return key.body == s.TupleValue(())
        case r.Group(_, _, keys, _, _, make):
            shown = fields(make.body).values()
            return all(s.Member(s.Name("g"), key.name) in shown for key in keys)
        case r.Filter(r.Input(index, _), _, keep, make) if keep == r.ALL:
            shown = fields(make.body).values()
            return all(s.Member(s.Name("r"), key) in shown for key in _last(query, index) or ("",))
        case r.Filter(input, _, _, make) if make == r.SAME:
            return is_net(program, query, input)
        case r.Input(index, _):
            return bool(_last(query, index))
        case _:
            return False


def _last(query: ty.Query, index: int) -> tuple[str, ...]:
    """The keys of whose last rows a source consists, if it does."""
    window = query.sources[index].window
    return window.keys if isinstance(window, ty.RowWindow) and window.count == 1 else ()


def loud(program: ty.Program, now: frozenset[str]) -> frozenset[str]:
    """The relations whose instants without change matter to a query that uses them."""
    found: set[str] = set()
    for view in reversed(program.views):
        whole = (view.query.operator == "rstream" and view.name not in now) or (
            view.name in found and view.kind == "relation"
        )
        heard = _sources(view.query.relation) if whole else _sources_of_totals(view.query.relation)
        found |= {view.query.sources[i].name for i in heard if view.query.sources[i].window is None}
    return frozenset(found)


def _sources(relation: r.Relation) -> set[int]:
    match relation:
        case r.Input(index, _):
            return {index}
        case r.Join(left, right) | r.Outer(left, right) | r.Combine(left, right):
            return _sources(left) | _sources(right)
        case (
            r.Filter(input, _, _, _) | r.Unnest(input) | r.Distinct(input, _) | r.Group(input) | r.Top(input)
        ):
            return _sources(input)


def _sources_of_totals(relation: r.Relation) -> set[int]:
    """The sources below an aggregate without groups."""
    match relation:
        case r.Input():
            return set()
        case r.Join(left, right) | r.Outer(left, right) | r.Combine(left, right):
            return _sources_of_totals(left) | _sources_of_totals(right)
        case r.Group(input, _, keys):
            return _sources_of_totals(input) if keys else _sources(input)
        case r.Filter(input, _, _, _) | r.Unnest(input) | r.Distinct(input, _) | r.Top(input):
            return _sources_of_totals(input)
