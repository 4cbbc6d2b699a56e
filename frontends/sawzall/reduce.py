"""Tables in River IL: the reducer's instance, its variable, and the view that makes rows of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from frontends.sawzall.operations import NUMBERS
from frontends.sawzall.sums import accumulating, gathered, kept_sums
from frontends.sawzall.types import expression, lowered
from river.classes import frozen
from river.il import program as p
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from frontends.sawzall import typed as z

K, A = s.Name("k"), s.Name("a")
"""The parameters of a view: the index, and what the reducer keeps for it."""


@frozen
class Reducer:
    """The declarations that a table becomes; `queue` leads from the map operator to the reducer."""

    table: str
    queue: str
    operator: p.Instance | s.Operator
    variable: p.Variable
    rows: s.Fn
    output: p.Output
    use: p.Use


@frozen
class _Reduction:
    """One kind of table: its template with arguments, the type of what is kept for an index, and the rows of it.

    Without a template it is a sum of anything. `ranked`: rows of an index come out as the function lists them, not in the
    order of their values.
    """

    template: str
    args: tuple[tuple[str, s.TemplateArg], ...]
    type: s.TypeExpr
    fields: z.Fields
    body: s.Block
    ranked: bool = False


def item_type(table: z.Table) -> s.TypeExpr:
    """The type of the items that the map operator sends to a table; for a sum of numbers, whole ones stand before floats."""
    value = table.value
    if table.kind in ("sum", "mrcounter", "bootstrapsum") and all(type_ in NUMBERS for _, type_ in value):
        ints, floats = _apart(value)
        value = (*ints, *floats)
    if table.kind == "recordio":
        value = ((value[0][0], t.BYTES),)
    weight = () if table.kind == "bootstrapsum" else weighed(table)
    return _record((*table.index, *value, *weight, *hidden(table)))


def weighed(table: z.Table) -> z.Fields:
    """The fields of the items of a table that hold the weight: its numbers one by one, where weights are summed."""
    if table.kind not in WEIGHED:
        return table.weight
    ints, floats = _apart(
        tuple((name, t.I64 if type_ == t.TIME else type_) for name, type_, _ in _weights(table))
    )
    return (*ints, *floats)


def weight_parts(table: z.Table, weight: s.Expr) -> dict[str, s.Expr]:
    """The values of these fields of a weight, which may be named more than once, in the order of the weight."""
    found: dict[str, s.Expr] = {}
    for name, type_, path in _weights(table):
        part = weight
        for field in path:
            part = _member(part, field)
        found[name] = s.Call("micros", (part,)) if type_ == t.TIME and table.kind in WEIGHED else part
    return found


WEIGHED = frozenset({"top", "distinctsample", "inversehistogram"})
"""Kinds that sum weights."""


def _weights(table: z.Table) -> list[tuple[str, t.Type, tuple[str, ...]]]:
    """The numbers of a weight that is summed: their names in items, and where they are in it; of others all of it."""
    taken = {name for name, _ in (*table.index, *table.value, *table.weight)}

    def inside(type_: t.Type, path: tuple[str, ...]) -> Iterable[tuple[t.Type, tuple[str, ...]]]:
        if isinstance(type_, t.Record) and table.kind in WEIGHED:
            for name, inner in type_.fields:
                yield from inside(inner, (*path, name))
        else:
            yield type_, path

    found: list[tuple[str, t.Type, tuple[str, ...]]] = []
    for weight, type_ in table.weight:
        for part, path in inside(type_, ()):
            name = fresh("_".join((weight, *path)), taken) if path else weight
            taken.add(name)
            found.append((name, part, path))
    return found


def _weight(table: z.Table, total: str) -> str:
    """The weight whose numbers are summed in `total`, in the operator language."""
    names = iter(_weights(table))

    def made(type_: t.Type) -> str:
        match type_:
            case t.Record(fields):
                return "{" + ", ".join(f"{name}: {made(inner)}" for name, inner in fields) + "}"
            case t.F64:
                return f"value({total}.{next(names)[0]})"
            case t.TIME:
                return f"time({total}.{next(names)[0]})"
            case _:
                return f"{total}.{next(names)[0]}"

    ((_, type_),) = table.weight
    return made(type_)


def indexed(table: z.Table) -> tuple[p.Annotation, ...]:
    """What an output says of the index of a table, and of the deviations of the weights of a `top`."""
    exact = (s.Int(len(_weights(table))),) if table.kind == "top" else ()
    known = table.index or exact
    return (p.Annotation("Index", (s.Int(len(table.index)), *exact)),) if known else ()


def reducer(table: z.Table, queue: str, operator: str, function: str) -> Reducer:
    """What a table becomes; the names of its queue, operator and function are given."""
    kept = _kept(table)
    row = _record(kept.fields)
    index = _record(table.index)
    params = (s.Param("k", index), s.Param("a", kept.type))
    rows = s.Fn(function, params, s.TypeName("list", (row,)), kept.body, span=table.span)
    state = s.TypeName("map", (index, kept.type))
    keys = (p.Annotation("Keys", tuple(s.Name(name) for name, _ in table.index)),) if table.index else ()
    variable = f"${table.name}"
    made = (
        p.Instance(operator, kept.template, (("Ix", index), *kept.args), span=table.span)
        if kept.template
        else accumulating(operator, table, kept.type)
    )
    return Reducer(
        table.name,
        queue,
        made,
        p.Variable(table.name, state, s.MapValue(()), span=table.span),
        rows,
        p.Output(
            table.name,
            row,
            view=p.View(table.name, function, len(table.index) if kept.ranked else None),
            annotations=indexed(table),
            span=table.span,
        ),
        p.Use(
            (variable,), operator, (queue, variable),
            (p.Annotation("Parallel"), *keys, p.Annotation("Commutative")), span=table.span,
        ),
    )  # fmt: skip


def _kept(table: z.Table) -> _Reduction:
    values = ("Vs", _record(table.value))
    limit = -1 if table.limit is None or table.kind == "unique" else table.limit
    number = s.signed(limit)
    match table.kind:
        case "sum" | "mrcounter" if all(type_ in NUMBERS for _, type_ in table.value):
            return _sum(table)
        case "sum" | "mrcounter":
            body = gathered(table, _record(shown_fields(table)))
            return _Reduction("", (), kept_sums(table.value), shown_fields(table), body)
        case "top":
            return _top(table, values)
        case "set" if table.limit is None:
            row = _row((table.index, K), (table.value, s.Name("v")))
            rows = s.Comprehension(row, ("v",), s.Call("keys", (A,)))
            kept = s.TypeName("omap", (_record(table.value), s.TypeName("i64")))
            return _Reduction("sawzall.count_table", (values,), kept, shown_fields(table), _returned(rows))
        case "set":
            seen = _member(A, "seen")
            row = _row((table.index, K), (table.value, s.Name("v")))
            rows = s.Comprehension(row, ("v",), s.Call("keys", (seen,)))
            fields = shown_fields(table)
            return _Reduction(
                "sawzall.set_table", (values, ("n", number)), _seen(table), fields, _returned(rows)
            )
        case "unique":
            count = fresh("count", {name for name, _ in table.index})
            row = s.RecordValue((*_row((table.index, K)).fields, s.FieldValue(count, s.Call("len", (A,)))))
            nothing = _record(())
            kept = s.TypeName("map", (_record(table.value), nothing))
            args, fields = (values, ("Ints", nothing), ("Floats", nothing)), (*table.index, (count, t.I64))
            return _Reduction("sawzall.top_table", args, kept, fields, _returned(s.ListValue((row,))))
        case _:
            return _sampled(table, values, number)


def shown_fields(table: z.Table) -> z.Fields:
    """The fields of a row of a table without weights."""
    return (*table.index, *table.value)


def _sampled(table: z.Table, values: tuple[str, s.TemplateArg], number: s.Expr) -> _Reduction:
    """What is kept of some values, or tells of all: of these tables the rows are written in the operator language."""
    ints, floats = _apart(weighed(table))
    sums = (("Ints", _record(ints)), ("Floats", _record(floats)))
    key = s.RecordType((s.FieldType("hash", s.TypeName("u64")), s.FieldType("value", _record(table.value))))
    distinct = s.RecordType((
        s.FieldType("n", s.TypeName("i64")),
        s.FieldType("kept", s.TypeName("omap", (key, _accumulator(ints, floats)))),
    ))  # fmt: skip
    at = "".join(f"{name}: k.{name}, " for name, _ in table.index)
    of = "".join(f"{name}: @VALUE@.{name}, " for name, _ in table.value)
    named = {"IX": at, "N": str(table.limit), "VALUE": "v"}

    def kept(
        template: str,
        args: tuple[tuple[str, s.TemplateArg], ...],
        type_: s.TypeExpr,
        fields: z.Fields,
        text: str,
    ) -> _Reduction:
        row = show(lowered(t.Record(fields)))
        for hole, filled in {**named, "ROW": row}.items():
            text = text.replace(f"@{hole}@", filled)
        ranked = table.kind in ("maximum", "minimum", "quantile", "inversehistogram", "bootstrapsum")
        return _Reduction(f"sawzall.{template}", args, type_, fields, block(text), ranked=ranked)

    match table.kind:
        case "quantile":
            type_ = s.TypeName("omap", (_record(table.value), s.TypeName("i64")))
            return kept("count_table", (values,), type_, shown_fields(table), _QUANTILES.replace("@VS@", of))
        case "distinctsample":
            ((name, _),) = table.weight
            row = f"{{@IX@ {of.replace('@VALUE@', 'e.value')} {name}: {_weight(table, 'w')}}}"
            fields = (*shown_fields(table), *table.weight)
            text = f"return [{row} for e, w in a.kept];"
            return kept("distinct_table", (values, *sums, ("n", number)), distinct, fields, text)
        case "inversehistogram":
            ((name, type_),) = table.weight
            fraction = fresh("fraction", {name, *(n for n, _ in table.index)})
            text = _HISTOGRAM.replace("@WEIGHT@", _weight(table, "w")).replace("@TYPE@", show(lowered(type_)))
            text = text.replace("@NAME@", name).replace("@FRACTION@", fraction)
            fields = (*table.index, (name, type_), (fraction, t.F64))
            return kept("distinct_table", (values, *sums, ("n", number)), distinct, fields, text)
        case "bootstrapsum":
            ints, floats = _apart(table.value)
            args = (
                ("Ints", _record(ints)),
                ("Floats", _record(floats)),
                ("Seed", _record(hidden(table))),
                ("n", number),
            )
            type_ = s.TypeName("map", (s.TypeName("i64"), _accumulator(ints, floats)))
            parts = (f"{n}: value(w.{n})" if of == t.F64 else f"{n}: w.{n}" for n, of in table.value)
            text = f"return [{{@IX@ {', '.join(parts)}}} for w in [a[i] for i in 0..@N@]];"
            return kept("bootstrap_table", args, type_, shown_fields(table), text)
        case _:
            least, drawn = table.kind in ("minimum", "sample"), hidden(table)
            given = table.value if table.kind == "sample" else (*table.value, *table.weight)
            ahead, behind = (drawn, given) if drawn else (table.weight, table.value)
            type_ = s.TypeName("omap", (_record((*ahead, *behind)), s.TypeName("i64")))
            row = "".join(f"{name}: e.{name}, " for name, _ in given)
            args = (("Vs", _record(behind)), ("Ws", _record(ahead)), ("n", number))
            template, text = ("minimum_table", _FIRST) if least else ("maximum_table", _LAST)
            return kept(template, args, type_, (*table.index, *given), text.replace("@FIELDS@", row))


def hidden(table: z.Table) -> z.Fields:
    """Fields of the items of a table that no row has: numbers that are drawn."""
    taken = {name for name, _ in (*table.index, *table.value, *table.weight)}
    chance = fresh("chance", taken)
    match table.kind:
        case "sample" | "bootstrapsum":
            return ((chance, t.U64),)
        case "weightedsample":
            return ((fresh("ahead", taken), t.F64), (chance, t.U64))
        case _:
            return ()


_FIRST = """
  var rows: list<@ROW@> = [];
  var left = @N@;
  for e, c in a {
    for i in 0..min(c, left) { push(rows, {@IX@ @FIELDS@}); }
    left = left - min(c, left);
  }
  return rows;
"""
"""The first items, each as often as it came, until there are so many."""

_LAST = """
  var rows: list<@ROW@> = [];
  var over = -@N@;
  for e, c in a { over = over + min(c, @N@); }
  for e, c in a {
    let many = min(c, @N@);
    let out = min(max(over, 0), many);
    for i in out..many { push(rows, {@IX@ @FIELDS@}); }
    over = over - out;
  }
  return reverse(rows);
"""
"""The last items, likewise, the very last one first."""

_QUANTILES = """
  var rows: list<@ROW@> = [];
  var many = 0;
  for @VALUE@, c in a { many = many + c; }
  var done = 0;
  var next = 0;
  for @VALUE@, c in a {
    done = done + c;
    while next < @N@ - 1 and (next == 0 or div.floor(next * many + @N@ - 2, @N@ - 1) <= done) {
      push(rows, {@IX@ @VS@});
      next = next + 1;
    }
  }
  if last_key(a) is @VALUE@ { push(rows, {@IX@ @VS@}); }
  return rows;
"""
"""The first value, those at equal distances in the order of all, and the last one."""

_HISTOGRAM = """
  var rows: list<@ROW@> = [];
  let many = len(a.kept);
  var unique = f64(many);
  if many >= @N@ {
    if last_key(a.kept) is e { unique = min(f64(@N@) * (18446744073709551616.0 / (f64(e.hash) + 1.0)), f64(a.n)); }
  }
  push(rows, {@IX@ @NAME@: zero(), @FRACTION@: unique});
  var counts: omap<@TYPE@, i64> = {};
  for e, w in a.kept { with c = counts[@WEIGHT@] else 0 { c = c + 1; } }
  for w, c in counts { push(rows, {@IX@ @NAME@: w, @FRACTION@: f64(c) / f64(many)}); }
  return rows;
"""
"""An estimate of how many different values there are, then of each weight the share of those that have it."""


@lru_cache(maxsize=256)
def block(text: str) -> s.Block:
    """Statements of the operator language. Tables that differ in their names only have the same ones."""
    from river.il.parse import parse

    (decl,) = parse(Source("<rows>", f"river 1; fn rows() {{ {text} }}")).decls
    assert isinstance(decl, s.Fn)  # noqa: S101 - the text says so
    assert isinstance(decl.body, s.Block)  # noqa: S101 - the same
    return decl.body


def _sum(table: z.Table) -> _Reduction:
    """One row for each index: the sums."""
    ints, floats = _apart(table.value)
    body = s.ListValue((s.RecordValue((*_row((table.index, K)).fields, *_sums(table.value, A))),))
    args = (("Ints", _record(ints)), ("Floats", _record(floats)))
    fields = (*table.index, *table.value)
    return _Reduction("sawzall.sum_table", args, _accumulator(ints, floats), fields, _returned(body))


def _top(table: z.Table, values: tuple[str, s.TemplateArg]) -> _Reduction:
    """The `limit` values of greatest total weight; among equal weights the least values."""
    ints, floats = _apart(weighed(table))
    ((weight, _),) = table.weight
    kept = s.TypeName("map", (_record(table.value), _accumulator(ints, floats)))
    fields = [f"{n}: k.{n}" for n, _ in table.index] + [f"{n}: v.{n}" for n, _ in table.value]
    row = ", ".join((*fields, f"{weight}: {_weight(table, 'w')}"))
    every = cast("s.Return", block(f"return [{{{row}}} for v, w in a];").items[0]).value
    r = s.Name("r")
    types = dict(weighed(table))
    heaviest = [
        s.Unary("-" if types[name] == t.F64 else "~", part)  # ~ turns the order round, MIN too
        for name, part in weight_parts(table, _member(r, weight)).items()
    ]
    order = s.Lambda((r.name,), s.TupleValue((*heaviest, *(_member(r, name) for name, _ in table.value))))
    assert every is not None  # noqa: S101 - the text says so
    body = s.Call("take", (s.Call("sort_by", (every, order)), s.Int(table.limit or 0)))
    args = (values, ("Ints", _record(ints)), ("Floats", _record(floats)))
    fields = (*table.index, *table.value, *table.weight)
    return _Reduction("sawzall.top_table", args, kept, fields, _returned(body), ranked=True)


# ---------------------------------------------------------------------------------------------- small trees


def _apart(fields: z.Fields) -> tuple[z.Fields, z.Fields]:
    """The fields that are whole numbers, and those that are floats."""
    return tuple(f for f in fields if f[1] != t.F64), tuple(f for f in fields if f[1] == t.F64)


def _accumulator(ints: z.Fields, floats: z.Fields) -> s.TypeExpr:
    return _record((*ints, *((name, t.FSUM) for name, _ in floats)))


def _seen(table: z.Table) -> s.TypeExpr:
    seen = s.TypeName("map", (_record(table.value), s.TypeName("bool")))
    return s.RecordType((s.FieldType("over", s.TypeName("bool")), s.FieldType("seen", seen)))


def _sums(fields: z.Fields, source: s.Expr) -> Iterable[s.FieldValue]:
    for name, type_ in fields:
        part = _member(source, name)
        yield s.FieldValue(name, s.Call("value", (part,)) if type_ == t.F64 else part)


def _row(*parts: tuple[z.Fields, s.Expr]) -> s.RecordValue:
    """A record of the fields of several records."""
    return s.RecordValue(
        tuple(s.FieldValue(name, _member(source, name)) for fields, source in parts for name, _ in fields)
    )


def _member(value: s.Expr, name: str) -> s.Expr:
    return s.Member(value, name)


def _returned(value: s.Expr) -> s.Block:
    return s.Block((s.Return(value),))


def _record(fields: Iterable[tuple[str, t.Type]]) -> s.RecordType:
    return s.RecordType(tuple(s.FieldType(name, expression(type_)) for name, type_ in fields))
