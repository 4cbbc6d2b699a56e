"""Typed programs as text: of each view the relational algebra that its query is, as a tree.

What is shown is what is lowered: subqueries have become joins with relations of their own, which stand before the view that
asked for them; conditions stand where they are applied, and columns that nobody reads are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, cast

from frontends.cql import typed as ty
from frontends.sql import typed as r
from frontends.sql.operations import COMPARISONS
from frontends.sql.values import spelled
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.pretty import pretty

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = 10_000  # an expression is one line, however long
_COMPARED = {three: two for two, three in COMPARISONS.items()}


def algebra(program: ty.Program) -> str:
    """The algebra of all views, each behind those that it reads."""
    return "\n".join("\n".join(_view(program, view)) + "\n" for view in program.views)


def _view(program: ty.Program, view: ty.View) -> Iterator[str]:
    shown = "output " if view.output else ""
    columns = ", ".join(f"{name}: {spelled(kind)}" for name, kind in view.row.fields)
    yield f"{shown}{view.kind} {view.name} {{{columns}}}"
    depth = 1
    if view.called is not None:
        called = view.called
        yield f"  call {called.target} {_text(called.operands)} as {called.column}"
        depth = 2
    if view.query.operator is not None:
        yield f"  {view.query.operator}"
        depth = 2
    yield from _tree(program, view.query, view.query.relation, depth)


def _tree(program: ty.Program, query: ty.Query, node: r.Relation, depth: int) -> Iterator[str]:
    for deeper, line in _lines(program, query, node):
        yield "  " * (depth + deeper) + line


def _lines(program: ty.Program, query: ty.Query, node: r.Relation) -> Iterator[tuple[int, str]]:
    """The lines of a node and of those below it, each with how much deeper it stands."""
    below: tuple[r.Relation, ...] = ()
    deep = 1
    match node:
        case r.Input(index, _):
            yield 0, _scan(program, query.sources[index])
        case r.Filter(input, _, keep, make):
            deep = 0
            if make != r.SAME:
                yield deep, f"project {_made(make)}"
                deep += 1
            if keep != r.ALL:
                yield deep, f"filter {_text(keep)}"
                deep += 1
            below = (input,)
        case r.Unnest(input, _, _, items, keep, _, alone):
            only = "" if keep.body == r.ALL.body else f" if {_text(keep)}"
            yield 0, f"{'unnest' if alone is None else 'left unnest'} {_text(items)}{only}"
            below = (input,)
        case r.Join(left, right, _, _, left_key, right_key, make, band):
            near = "" if band is None else f", {_near(band)}"
            yield 0, f"join {_keys(left_key, right_key)}{near}"
            below = (left, right)
        case r.Outer(
            left,
            right,
            _,
            _,
            left_key,
            right_key,
            _,
            left_can,
            right_can,
            left_alone,
            right_alone,
            meets,
            band,
        ):
            kinds = {(True, False): "left", (False, True): "right", (True, True): "full"}
            kind = kinds[left_alone is not None, right_alone is not None]
            conditions = [
                _text(each)
                for each in (left_can, right_can, meets)
                if each is not None and each.body != r.ALL.body
            ]
            also = f" if {' and '.join(conditions)}" if conditions else ""
            near = "" if band is None else f", {_near(band)}"
            yield 0, f"{kind} join {_keys(left_key, right_key)}{also}{near}"
            below = (left, right)
        case r.Group(input, _, keys, aggregates, keep, make):
            yield 0, f"project {_made(make)}"
            deep = 1
            if keep != r.EVERY_GROUP:
                yield deep, f"filter {_text(keep)}"
                deep += 1
            by = (
                f" by {', '.join(_named(key.name, _text(s.Lambda(('r',), key.value))) for key in keys)}"
                if keys
                else ""
            )
            yield (
                deep,
                f"aggregate {', '.join(_named(a.name, _aggregate(a)) for a in aggregates) or 'nothing'}{by}",
            )
            deep += 1
            below = (input,)
        case r.Distinct(input, _):
            yield 0, "distinct"
            below = (input,)
        case r.Combine(left, right, _, word, every):
            yield 0, f"{word}{' all' if every else ''}"
            below = (left, right)
        case r.Top(input, _, _, key, _, order, _, by, most, skipped):
            parts = [_text(s.Lambda(("r",), each)) for each in _parts(order.body)]
            keys = [_text(s.Lambda(("r",), each)) for each in _parts(key.body)]
            of = f" of each {', '.join(keys)}" if keys else ""
            first = "all" if most is None else f"the first {most} by {by}"
            behind = f" without {skipped}" if skipped else ""
            yield 0, f"top {first}{behind}{of} in order of {', '.join(parts) or 'the rows'}"
            below = (input,)
        case _:
            assert_never(node)
    for each in below:
        for deeper, line in _lines(program, query, each):
            yield deep + deeper, line


def _scan(program: ty.Program, source: ty.Source) -> str:
    alias = "" if source.label == source.name else f" as {source.label}"
    table = any(one.name == source.name and one.table for one in program.inputs)
    return f"scan {source.name}{' (a table)' if table else ''}{_window(program, source.window)}{alias}"


def _window(program: ty.Program, window: ty.Window | None) -> str:
    def length(ticks: int) -> str:
        return str(ticks) if program.tau == t.I64 else f"{ticks} us"

    def by(keys: tuple[str, ...]) -> str:
        return f"partition by {', '.join(keys)} " if keys else ""

    match window:
        case None:
            return ""
        case ty.Unbounded():
            return "[unbounded]"
        case ty.Range(0, 0):
            return "[now]"
        case ty.Range(span, slide):
            return f"[range {length(span)}{f' slide {length(slide)}' if slide else ''}]"
        case ty.RowWindow(count, keys):
            return f"[{by(keys)}rows {count}]"
        case ty.RowSteps(count, step):
            return f"[rows {count} slide {step}]"
        case ty.Expiring(keys, count, span):
            return f"[{by(keys)}{f'rows {count} ' if count else ''}expire after {length(span)}]"
        case ty.Recent(keys, count, span):
            return f"[{by(keys)}rows {count} range {length(span)}]"
        case ty.Buckets(size, step):
            return f"[hop {length(step)}, {length(size)}]"
        case ty.Sessions(keys, gap):
            return f"[{by(keys)}session {length(gap)}]"
    assert_never(window)


def _keys(left: s.Lambda, right: s.Lambda) -> str:
    pairs = zip(_parts(left.body), _parts(right.body), strict=True)
    found = [f"{_shown(a)} = {_shown(b)}" for a, b in pairs]
    return f"on {' and '.join(found)}" if found else "of all pairs"


def _near(band: r.Band) -> str:
    left, right = _shown(band.left.body), _shown(band.right.body)
    bounds = [f"{right} >= {left}{band.low:+d}" if band.low is not None else ""]
    bounds.append(f"{right} <= {left}{band.high:+d}" if band.high is not None else "")
    return "near: " + " and ".join(each.replace("+0", "") for each in bounds if each)


def _parts(value: s.Expr) -> tuple[s.Expr, ...]:
    match value:
        case s.TupleValue(items):
            return items
        case s.RecordValue(fields):
            return tuple(item.value for item in fields if isinstance(item, s.FieldValue))
        case _:
            return (value,)


def _aggregate(one: r.Aggregate) -> str:
    inner = "*" if one.argument is None else _text(s.Lambda(("r",), one.argument))
    more = "".join(f", {_shown(part)}" for part in one.parameters)
    name = one.function if one.fold is None else one.fold.name
    return f"{name}({inner}{more})"


def _made(make: s.Lambda) -> str:
    match make.body:
        case s.RecordValue(fields):
            made = (item for item in fields if isinstance(item, s.FieldValue))
            return ", ".join(_named(item.name, _text(s.Lambda(make.params, item.value))) for item in made)
        case _:
            return _text(make)


def _named(name: str, value: str) -> str:
    return name if name == value else f"{value} as {name}"


def _text(function: s.Lambda) -> str:
    """The body of a function; of one row, columns stand without it."""
    return _shown(function.body, function.params[0] if len(function.params) == 1 else None)


def _shown(value: s.Expr, row: str | None = None) -> str:
    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(s.Name(label), name) if label == row:
                return s.Name(name)
            case s.Call("is_true", (inner,)):
                return rewrite(inner)
            case s.Call(function, (left, right)) if function in _COMPARED:
                return s.Binary(
                    _COMPARED[function], cast("s.Expr", rewrite(left)), cast("s.Expr", rewrite(right))
                )
            case s.Call("and3" | "or3" as function, (left, right)):
                return s.Binary(function[:-1], cast("s.Expr", rewrite(left)), cast("s.Expr", rewrite(right)))
            case s.Call("not3", (inner,)):
                return s.Unary("not", cast("s.Expr", rewrite(inner)))
            case _:
                return rebuild(node, rewrite)

    return pretty(cast("s.Expr", rewrite(value)), _LINE)
