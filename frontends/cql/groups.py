"""Aggregates as fields of an accumulator: how each is kept, and how its value is read.

Paper: il.md P7 in this project's words: sums of whole numbers in 128 bits, exact sums of floats; extremes and distinct
counts by counting values in order, since rows may be deleted in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql.aggregates import PAIRS
from frontends.sql.columns import written_out
from frontends.sql.typed import mean_type
from river.classes import define, field
from river.il.trees import fresh, rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from frontends.sql import typed as r

KEPT = (
    "Sums",
    "FSums",
    "Orders",
    "Options",
    "Firsts",
    "Lasts",
    "Decimals",
    "Distinct",
    "FDistinct",
    "DDistinct",
    "Ranks",
    "Discs",
    "Modes",
    "Folds",
)
"""The kinds of fields."""
KINDS = (*KEPT, "Folded")
"""The parameters of the template: what a row is to each field, and what is done to a state behind the rows of an instant."""

_COUNTED = t.OMap(t.F64, t.I64)
_RANKS = t.Record((("low", _COUNTED), ("high", _COUNTED), ("below", t.I64), ("n", t.I64)))
"""Numbers on both sides of a quantile (`rank_in` in `templates/functions.river`)."""


@define
class Accumulator:
    """The fields of `#Acc` beside `n`, by kind, and the values of aggregates read from `a`.

    `always`: whether a group has at least one row. `growing`: whether no row goes. `listed`: the name of a function that lists
    counted values of a type, or the parts of that number of them (-1: themselves). `folding`: the name of a function that tells
    changes to a state of the user's aggregate. `folds`: the fields that are such states.
    """

    always: bool
    growing: bool
    listed: Callable[[t.Type, int], str]
    folding: Callable[[r.Fold, s.TypeExpr], str]
    folds: dict[str, r.Fold] = field(factory=dict[str, "r.Fold"])
    fields: dict[str, list[s.FieldArg]] = field(factory=lambda: {kind: [] for kind in KINDS})

    def read(self, aggregate: r.Aggregate) -> s.Expr:
        """The value of an aggregate, over `a: #Acc`; makes the fields that it needs."""
        if aggregate.argument is None or aggregate.argument_type is None:
            return _member("n")
        argument, loose = aggregate.argument, isinstance(aggregate.argument_type, t.Optional)
        title, kind = _title(argument), _strip(aggregate.argument_type)
        function, distinct = (
            aggregate.function.removesuffix("_distinct"),
            aggregate.function.endswith("_distinct"),
        )
        match function:
            case "count" if not distinct:
                return s.Call("i64_of", (self.present(argument, title),))
            case "count":
                return s.Call("len", (self.order(argument, title, kind, loose=loose),))
            case "min" | "max" | "min_by" | "max_by":
                least = function in ("min", "min_by")
                place = self.end(argument, title, kind, least=least, loose=loose)
                value = s.Call("first_key" if least else "last_key", (place,))
                if function in ("min", "max"):
                    return value if isinstance(aggregate.type, t.Optional) else s.Force(value)
                return _unless(s.IsNone(value), s.Member(s.Force(value), "1"), aggregate)
            case "bool_and" | "bool_or":
                other = self.truths(argument, title, truth=function == "bool_or", loose=loose)
                sign = "==" if function == "bool_and" else ">"
                return self.there(argument, title, s.Binary(sign, other, s.Int(0)), aggregate)
            case "fold" if aggregate.fold is not None:
                place, fold = self.fold(argument, title, aggregate.fold, loose=loose), aggregate.fold
                value = applied(fold.value, s.Force(s.Member(place, "state")))
                return self.there(argument, title, value, aggregate)
            case "quantile":
                (which,) = aggregate.parameters
                place = self.rank(argument, title, which, loose=loose)
                value = s.Call("cql.quantile_of", (place, which))
                return _unless(_is_zero(s.Member(place, "n")), value, aggregate)
            case "disc" | "disc_down":
                (part,) = aggregate.parameters
                place = self.disc(argument, title, kind, part, down=function == "disc_down", loose=loose)
                value = s.Call("last_key", (s.Member(place, "low"),))
                return value if isinstance(aggregate.type, t.Optional) else s.Force(value)
            case "mode":
                place = s.Member(self.mode(argument, title, kind, loose=loose), "order")
                value = s.Call("first_key", (place,))
                return _unless(s.IsNone(value), s.Member(s.Force(value), "1"), aggregate)
            case "string_agg" | "array_agg":
                place = self.order(argument, title, kind, loose=loose)
                value = self.in_order(function, place, kind, aggregate.parameters, distinct=distinct)
                return _unless(_is_zero(s.Call("len", (place,))), value, aggregate)
            case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
                return self.spread(function, argument, title, aggregate, loose=loose)
            case _ if function in PAIRS:
                return self.pairs(function, argument, title, loose=loose)
            case _ if distinct:
                return self.of_different(argument, title, kind, aggregate, loose=loose)
            case _:
                return self.of_all(argument, title, kind, aggregate, loose=loose)

    def of_different(
        self, argument: s.Expr, title: str, kind: t.Type, aggregate: r.Aggregate, *, loose: bool
    ) -> s.Expr:
        """The sum or the mean of different values."""
        place = self.different(argument, title, kind, loose=loose)
        total, count = s.Member(place, "sum"), s.Call("len", (s.Member(place, "seen"),))
        if kind in t.FLOATS:
            total = s.Call("value", (total,))
        if aggregate.function == "avg_distinct" and isinstance(kind, t.Decimal):
            value: s.Expr = s.Binary("/", total, s.Call("cql.decimal_of", (count,)))
        elif aggregate.function == "avg_distinct":
            value = _mean(total, count, kind)
        else:
            value = _narrowed(total, kind, aggregate)
        return _unless(_is_zero(count), value, aggregate)

    def of_all(
        self, argument: s.Expr, title: str, kind: t.Type, aggregate: r.Aggregate, *, loose: bool
    ) -> s.Expr:
        """The sum or the mean of all values."""
        count = self.present(argument, title) if loose else _member("n")
        value = self.sum(argument, title, kind, loose=loose)
        if aggregate.function == "avg" and isinstance(kind, t.Decimal):
            one: s.Expr = s.Int(1)
            counted = _if_none(argument, s.Int(0), one) if loose else one
            wide = mean_type(kind)
            present = _if_none(argument, s.Int(0), s.Force(argument)) if loose else argument
            total = self.place("Decimals", f"total_{title}", wide, s.Call("rescale", (present,)))
            value = s.Binary("/", total, self.place("Decimals", f"count_{title}", wide, counted))
        elif aggregate.function == "avg":
            value = _mean(value, count, kind)
        else:
            value = _narrowed(value, kind, aggregate)
        if self.always and not loose:
            return value
        return s.IfExpr(_is_zero(count), s.NoneValue(), value)

    def in_order(
        self, function: str, place: s.Expr, kind: t.Type, parameters: tuple[s.Expr, ...], *, distinct: bool
    ) -> s.Expr:
        """Values in an order, as a list or as one text."""
        *separator, part, falling = parameters
        if separator and part == s.Int(-1) and falling == s.Bool(value=False) and not distinct:
            return s.Call("cql.joined", (place, *separator))
        name = "keys" if distinct else self.listed(kind, cast("s.Int", part).value)
        value = s.Call(name, (place,))
        value = s.Call("reverse", (value,)) if falling == s.Bool(value=True) else value
        return s.Call("join", (value, *separator)) if separator else value

    def there(self, argument: s.Expr, title: str, value: s.Expr, aggregate: r.Aggregate) -> s.Expr:
        """`value`, or none where no value is there, if that can be."""
        if not isinstance(aggregate.type, t.Optional):
            return value
        loose = isinstance(aggregate.argument_type, t.Optional)
        count = self.present(argument, title) if loose else _member("n")
        return s.IfExpr(_is_zero(count), s.NoneValue(), value)

    def truths(self, argument: s.Expr, title: str, *, truth: bool, loose: bool) -> s.Expr:
        """How many values are true; or false."""
        held = argument if truth else s.Call("not3", (argument,)) if loose else s.Unary("not", argument)
        test = s.Call("is_true", (held,)) if loose else held
        counted = s.IfExpr(test, s.Int(1), s.Int(0))
        return self.place("Sums", f"{'true' if truth else 'false'}_{title}", t.I64, counted)

    def spread(
        self, function: str, argument: s.Expr, title: str, aggregate: r.Aggregate, *, loose: bool
    ) -> s.Expr:
        """Variance and standard deviation, of numbers as floats."""
        less = 1 if function.endswith("samp") else 0
        count = s.Call("i64_of", (self.present(argument, title),)) if loose else _member("n")
        value = _if_none(argument, s.Float(0.0), s.Force(argument)) if loose else argument
        rest = s.Call("cql.product_rest", (value, value))
        sums = (
            self.place("FSums", f"sum_{title}", t.F64, value),
            self.place("FSums", f"squares_{title}", t.F64, s.Binary("*", value, value)),
            self.place("FSums", f"rests_{title}", t.F64, rest),
        )
        found = s.Call("cql.variance_of", (count, *sums, s.Int(less)))
        if function.startswith("stddev"):
            found = s.Call("sqrt", (found,))
        return _unless(s.Binary("<=", count, s.Int(less)), found, aggregate)

    def pairs(self, function: str, argument: s.Expr, title: str, *, loose: bool) -> s.Expr:
        """Covariance, correlation and regression of pairs of floats `(y, x)`."""
        count = s.Call("i64_of", (self.present(argument, title),)) if loose else _member("n")

        def part(which: str) -> s.Expr:
            value: s.Expr = s.Member(s.Force(argument) if loose else argument, which)
            return _if_none(argument, s.Float(0.0), value) if loose else value

        def total(name: str, value: s.Expr) -> s.Expr:
            return self.place("FSums", f"{name}_{title}", t.F64, value)

        def spread(a: str, b: str) -> s.Expr:
            first, second = part(a), part(b)
            product = total("products", s.Binary("*", first, second))
            rest = total("rests", s.Call("cql.product_rest", (first, second)))
            return s.Call("cql.spread_of", (count, total("sum", first), total("sum", second), product, rest))

        y, x = "0", "1"
        match function:
            case "covar_pop" | "covar_samp":
                return s.Call(
                    "cql.covariance_of", (count, spread(y, x), s.Int(int(function == "covar_samp")))
                )
            case "regr_intercept":
                sums = total("sum", part(y)), total("sum", part(x))
                return s.Call("cql.intercept_of", (count, spread(y, x), spread(x, x), *sums))
            case "regr_slope":
                return s.Call("cql.ratio_of", (spread(y, x), spread(x, x)))
            case _:
                squared = s.Bool(value=function == "regr_r2")
                return s.Call("cql.correlation_of", (spread(y, x), spread(y, y), spread(x, x), squared))

    def present(self, argument: s.Expr, title: str) -> s.Expr:
        """How many values are there."""
        return self.place("Sums", f"count_{title}", t.I64, _if_none(argument, s.Int(0), s.Int(1)))

    def sum(self, argument: s.Expr, title: str, kind: t.Type, *, loose: bool) -> s.Expr:
        """The sum of what is there."""
        if kind in t.FLOATS:
            value = _if_none(argument, s.Float(0.0), s.Force(argument)) if loose else argument
            wide = value if kind == t.F64 else s.Call("f64", (value,))
            return s.Call("value", (self.place("FSums", f"sum_{title}", t.F64, wide),))
        value = _if_none(argument, s.Int(0), s.Force(argument)) if loose else argument
        if isinstance(kind, t.Decimal):
            wide = t.Decimal(38, kind.scale)
            return self.place("Decimals", f"sum_{title}", wide, s.Call("rescale", (value,)))
        return self.place("Sums", f"sum_{title}", kind, value)

    def order(self, argument: s.Expr, title: str, kind: t.Type, *, loose: bool) -> s.Expr:
        """The values in order, counted."""
        return self.place("Options" if loose else "Orders", f"values_{title}", kind, argument)

    def end(self, argument: s.Expr, title: str, kind: t.Type, *, least: bool, loose: bool) -> s.Expr:
        """The values in order, or the least or greatest one alone where none goes."""
        if not self.growing:
            return self.order(argument, title, kind, loose=loose)
        value = argument if loose else _perhaps(argument, argument, loose=False)
        return self.place(
            "Firsts" if least else "Lasts", f"{'least' if least else 'most'}_{title}", kind, value
        )

    def different(self, argument: s.Expr, title: str, kind: t.Type, *, loose: bool) -> s.Expr:
        """The different values, counted, and their sum."""
        name, total = ("FDistinct", t.FSUM) if kind in t.FLOATS else ("Distinct", t.I128)
        if isinstance(kind, t.Decimal):
            name, total = "DDistinct", kind
        type_ = t.Record((("seen", t.OMap(kind, t.I64)), ("sum", total)))
        value = argument if loose else _perhaps(argument, argument, loose=False)
        return self.place(name, f"different_{title}", type_, value)

    def mode(self, argument: s.Expr, title: str, kind: t.Type, *, loose: bool) -> s.Expr:
        """The values in the order of how often they are there."""
        order = t.OMap(t.Tuple((t.I64, kind)), t.BOOL)
        type_ = t.Record((("counts", t.Map(kind, t.I64)), ("order", order)))
        value = argument if loose else _perhaps(argument, argument, loose=False)
        return self.place("Modes", f"mode_{title}", type_, value)

    def rank(self, argument: s.Expr, title: str, which: s.Expr, *, loose: bool) -> s.Expr:
        """The values on both sides of a quantile."""
        value = s.Force(argument) if loose else argument
        told = s.RecordValue((s.FieldValue("v", value), s.FieldValue("p", which)))
        return self.place("Ranks", f"ranks_{title}", _RANKS, _perhaps(argument, told, loose=loose))

    def disc(
        self, argument: s.Expr, title: str, kind: t.Type, part: s.Expr, *, down: bool, loose: bool
    ) -> s.Expr:
        """The values on both sides of a place."""
        counted = t.OMap(kind, t.I64)
        type_ = t.Record(
            (
                ("low", counted),
                ("high", counted),
                ("below", t.I64),
                ("n", t.I64),
                ("part", t.F64),
                ("down", t.BOOL),
            )
        )
        value = s.Force(argument) if loose else argument
        told = s.RecordValue(
            (s.FieldValue("v", value), s.FieldValue("p", part), s.FieldValue("down", s.Bool(value=down)))
        )
        return self.place("Discs", f"disc_{title}", type_, _perhaps(argument, told, loose=loose))

    def fold(self, argument: s.Expr, title: str, fold: r.Fold, *, loose: bool) -> s.Expr:
        """What the user's aggregate keeps: its state, and how often what is to be told to it came, less how often it went."""
        if not loose:  # the template asks of each whether it is there
            argument = _perhaps(argument, argument, loose=False)
        payload = s.Lambda(("r",), argument, span=argument.span)
        changes = s.TypeName("omap", (expression(fold.operands), expression(t.I64)))
        kept = s.RecordType(
            (s.FieldType("state", s.OptionalType(expression(fold.state))), s.FieldType("changes", changes))
        )
        for known in self.fields["Folds"]:
            if known.payload == payload and known.type == kept and self.folds[known.name] == fold:
                return _member(known.name)
        name = self.unused(f"fold_{title}")
        self.folds[name] = fold
        self.fields["Folds"].append(s.FieldArg(name, kept, payload, span=argument.span))
        told = s.Lambda(("a",), s.Call(self.folding(fold, kept), (s.Name("a"),)), span=argument.span)
        self.fields["Folded"].append(s.FieldArg(name, kept, told, span=argument.span))
        return _member(name)

    def place(self, kind: str, name: str, type_: t.Type, value: s.Expr) -> s.Expr:
        """The field that keeps `value`: there is one for each."""
        payload = s.Lambda(("r",), value, span=value.span)
        for known in self.fields[kind]:
            if known.payload == payload and known.type == expression(type_):
                return _member(known.name)
        made = s.FieldArg(self.unused(name), expression(type_), payload, span=value.span)
        self.fields[kind].append(made)
        return _member(made.name)

    def unused(self, name: str) -> str:
        """A name for a field, like `name`."""
        return fresh(name, {"n", *(known.name for fields in self.fields.values() for known in fields)})

    def arguments(self) -> tuple[tuple[str, s.TemplateArg], ...]:
        """The fields as arguments of the template."""
        return tuple(
            (kind, s.FieldsArg(tuple(fields)) if (fields := self.fields[kind]) else s.RecordType(()))
            for kind in KINDS
        )

    def type(self) -> s.TypeExpr:
        """`#Acc`."""
        found = [s.FieldType("n", expression(t.I64))]
        for kind in KEPT:
            found += [s.FieldType(f.name, _kept(kind, f.type)) for f in self.fields[kind]]
        return s.RecordType(tuple(found))

    def zero(self) -> s.Expr:
        """The accumulator of no rows."""
        found = [s.FieldValue("n", s.Int(0))]
        for kind in KEPT:
            found += [s.FieldValue(f.name, _empty(kind)) for f in self.fields[kind]]
        return s.RecordValue(tuple(found))


def applied(function: s.Lambda, *values: s.Expr) -> s.Expr:
    """The body of a function with values in the places of its parameters."""
    places = dict(zip(function.params, values, strict=True))

    def rewrite(node: s.Node) -> s.Node:
        return (
            places[node.name] if isinstance(node, s.Name) and node.name in places else rebuild(node, rewrite)
        )

    return cast("s.Expr", rewrite(function.body))


def over(expr: s.Lambda, places: Mapping[str, s.Expr]) -> s.Expr:
    """The body of a function of a group `g` with the parts of the group read from their places."""
    return written_out(expr.body, "g", places)


def _kept(kind: str, type_: s.TypeExpr) -> s.TypeExpr:
    match kind:
        case "Sums":
            return expression(t.I128)
        case "FSums":
            return expression(t.FSUM)
        case "Decimals" | "Distinct" | "FDistinct" | "DDistinct" | "Ranks" | "Discs" | "Modes" | "Folds":
            return type_
        case _:
            return s.TypeName("omap", (type_, expression(t.I64)))


def _empty(kind: str) -> s.Expr:
    match kind:
        case "Folds":
            return s.RecordValue(
                (s.FieldValue("state", s.NoneValue()), s.FieldValue("changes", s.MapValue(())))
            )
        case "Distinct" | "FDistinct" | "DDistinct":
            none = s.Call("zero", ()) if kind == "FDistinct" else s.Int(0)
            return s.RecordValue((s.FieldValue("seen", s.MapValue(())), s.FieldValue("sum", none)))
        case "Ranks" | "Discs":
            sides = [s.FieldValue(side, s.MapValue(())) for side in ("low", "high")]
            sides += [s.FieldValue(count, s.Int(0)) for count in ("below", "n")]
            if kind == "Discs":
                sides += [s.FieldValue("part", s.Float(0.0)), s.FieldValue("down", s.Bool(value=False))]
            return s.RecordValue(tuple(sides))
        case "Modes":
            return s.RecordValue(
                (s.FieldValue("counts", s.MapValue(())), s.FieldValue("order", s.MapValue(())))
            )
        case "Sums" | "Decimals":
            return s.Int(0)
        case "FSums":
            return s.Call("zero", ())
        case _:
            return s.MapValue(())


def _title(argument: s.Expr) -> str:
    match argument:
        case s.Member(s.Name("r"), column):
            return column
        case _:
            return "value"


def _mean(total: s.Expr, count: s.Expr, kind: t.Type) -> s.Expr:
    """The mean of `count` values of `kind`, as a float."""
    real = total if kind in t.FLOATS else s.Call("f64", (total,))
    return s.Binary("/", real, s.Call("f64", (count,)))


def _narrowed(total: s.Expr, kind: t.Type, aggregate: r.Aggregate) -> s.Expr:
    """A sum of values of `kind` as a value of the aggregate's type; a sum of integers that does not fit traps."""
    if kind == t.U64:
        return s.Call("u64", (total,), span=aggregate.span)
    return s.Call("i64_of", (total,), span=aggregate.span) if kind in t.INTEGERS else total


def _is_zero(count: s.Expr) -> s.Expr:
    return s.Binary("==", count, s.Int(0))


def _unless(absent: s.Expr, value: s.Expr, aggregate: r.Aggregate) -> s.Expr:
    """`value`; none where it is absent, if that can be."""
    return s.IfExpr(absent, s.NoneValue(), value) if isinstance(aggregate.type, t.Optional) else value


def _strip(type_: t.Type) -> t.Type:
    return type_.inner if isinstance(type_, t.Optional) else type_


def _if_none(value: s.Expr, then: s.Expr, other: s.Expr) -> s.Expr:
    return s.IfExpr(s.IsNone(value), then, other)


def _perhaps(argument: s.Expr, value: s.Expr, *, loose: bool) -> s.Expr:
    """A value as one that may be none, which it is where the argument is."""
    test = s.IsNone(argument) if loose else s.Bool(value=False)
    return s.IfExpr(test, s.NoneValue(), value, span=argument.span)


def _member(name: str) -> s.Expr:
    return s.Member(s.Name("a"), name)
