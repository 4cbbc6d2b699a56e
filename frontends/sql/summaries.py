"""Aggregates over the rows of a group: their operands and constants, `filter`, `order by`, and the type of what they give.

Each function takes the expressions over groups for which it works, and often those over the rows inside of the aggregate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import syntax as q
from frontends.sql.aggregates import IN_ORDER, OF_TWO, PAIRS
from frontends.sql.expressions import RowExpressions
from frontends.sql.texts import as_text
from frontends.sql.typed import Aggregate, mean_type
from frontends.sql.values import Found, as_decimal, convert, is_number, is_whole, loosened, spelled, strip
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.groups import Groups


def summary(groups: Groups, function: str, expr: s.Call) -> Aggregate:
    """The aggregate without a name."""
    inside = RowExpressions(
        groups.report, groups.scope, groups.labels, groups.rows, "inside an aggregate", merged=groups.merged
    )
    condition: s.Expr | None = None
    if expr.function == "filter":
        call, test = expr.args
        condition = inside.condition(cast("s.Expr", test))
        expr = cast("s.Call", call)
    by: tuple[s.Expr, ...] = ()
    down = False
    if expr.function == "ordered":
        call, order, falling = expr.args
        expr, by = cast("s.Call", call), cast("s.TupleValue", order).items
        down = cast("s.Bool", falling).value
        if function.removesuffix("_distinct") not in IN_ORDER:
            message = f"`{function}` is the same in any order"
            raise groups.report.error("sql-aggregate-order", message, expr.span, "leave `order by` out")
    if isinstance(expr, q.Folded):
        return _folded(groups, expr, condition, inside)
    if function in ("first", "last", "first_distinct", "last_distinct"):
        better = "min_by" if function.startswith("first") else "max_by"
        message = f"the rows of a group have no order, so none is its {function.removesuffix('_distinct')}"
        help_line = f"say by what: `{better}(x, ts)`"
        raise groups.report.error("sql-aggregate-order", message, expr.span, help_line)
    if not expr.args:
        return _of_rows(groups, function, expr, condition, inside)
    return _of_values(groups, function, expr, condition, (by, down), inside)


def _of_rows(
    groups: Groups, function: str, expr: s.Call, condition: s.Expr | None, inside: RowExpressions
) -> Aggregate:
    """An aggregate without operands: `count(*)`."""
    if function != "count":
        raise groups.report.error("sql-aggregate-argument", f"`{function}` takes a column", expr.span)
    if condition is None:
        return Aggregate("", t.I64, "count", span=expr.span)
    counted = _when(condition, Found(s.Int(1), t.I64), inside)
    return Aggregate("", t.I64, "count", counted.expr, counted.type, span=expr.span)


def _of_values(
    groups: Groups, function: str, expr: s.Call, condition: s.Expr | None, order: tuple[tuple[s.Expr, ...], bool],
    inside: RowExpressions,
) -> Aggregate:  # fmt: skip
    """An aggregate of its operands; `order`: what the rows are ordered by, and whether they descend."""
    operands = inside.operands(cast("tuple[s.Expr, ...]", expr.args))
    argument, parameters = _operand(groups, function, operands, expr, inside)
    if function.startswith("count_if"):
        test = s.Call("is_true", (argument.expr,)) if isinstance(argument.type, t.Optional) else argument.expr
        condition = test if condition is None else s.Binary("and", condition, test)
        function, argument = "count", Found(s.Int(1), t.I64)
    if function == "regr_count":
        function = "count"
    if condition is not None:
        argument = _when(condition, argument, inside)
    kind = strip(argument.type)
    loose = isinstance(argument.type, t.Optional) or not groups.always
    type_ = _type_of(groups, function, kind, expr, argument)
    if not t.is_key(kind):
        message = f"values of `{spelled(argument.type)}` cannot be compared"
        raise groups.report.error("sql-aggregate-argument", message, expr.span)
    if function in ("sum_distinct", "avg_distinct") and isinstance(type_, t.Decimal):
        argument = as_decimal(argument, type_)
    if function.removesuffix("_distinct") in IN_ORDER:
        argument, parameters = _in_order(groups, function, argument, parameters, order, expr, inside)
    result = t.Optional(type_) if loose or function.endswith("_samp") or function in PAIRS else type_
    if function.startswith("count"):
        result = t.I64
    if function == "count" and not isinstance(argument.type, t.Optional):
        return Aggregate("", t.I64, "count", span=expr.span)  # a value that is always there counts like a row
    if function == "median":
        function, parameters = "quantile", (s.Float(0.5),)
    return Aggregate("", result, function, argument.expr, argument.type, parameters, span=expr.span)


def _folded(groups: Groups, expr: q.Folded, condition: s.Expr | None, inside: RowExpressions) -> Aggregate:
    """What the user's aggregate makes of a group: of the rows that have all operands that it cannot do without."""
    fold, name = expr.fold, expr.function
    if len(expr.args) != len(fold.operands.fields):
        message = f"`{name}` takes {len(fold.operands.fields)} operands, not {len(expr.args)}"
        raise groups.report.error("sql-aggregate-argument", message, expr.span)
    found: list[Found] = []
    for operand, (column, kind) in zip(
        inside.operands(cast("tuple[s.Expr, ...]", expr.args)), fold.operands.fields, strict=True
    ):
        value = convert(operand, t.F64) if is_whole(operand.type) and strip(kind) == t.F64 else operand
        if strip(value.type) != strip(kind):
            message = f"operand `{column}` of `{name}` is `{spelled(kind)}`, this is `{spelled(value.type)}`"
            raise groups.report.error("sql-aggregate-argument", message, operand.expr.span or expr.span)
        found.append(value)
    loose_kinds = [isinstance(kind, t.Optional) for _, kind in fold.operands.fields]

    def row(parts: tuple[s.Expr, ...]) -> s.Expr:
        there = iter(parts)
        values = [
            loosened(value) if may_be_none else next(there)
            for value, may_be_none in zip(found, loose_kinds, strict=True)
        ]
        named = zip(fold.operands.fields, values, strict=True)
        return s.RecordValue(tuple(s.FieldValue(column, value) for (column, _), value in named))

    needed = tuple(value for value, may_be_none in zip(found, loose_kinds, strict=True) if not may_be_none)
    argument = inside.lifted(needed, row, expr)
    if condition is not None:
        argument = _when(condition, argument, inside)
    loose = isinstance(argument.type, t.Optional) or not groups.always
    type_ = t.Optional(strip(fold.type)) if loose else fold.type
    return Aggregate("", type_, "fold", argument.expr, argument.type, fold=fold, span=expr.span)


def _in_order(
    groups: Groups, function: str, value: Found, parameters: tuple[s.Expr, ...], order: tuple[tuple[s.Expr, ...], bool],
    expr: s.Call, inside: RowExpressions,
) -> tuple[Found, tuple[s.Expr, ...]]:  # fmt: skip
    """What an aggregate in an order is of: the value, or what orders it and the value behind that."""
    by, down = order
    keys = inside.operands(by)
    if not keys or [key.expr for key in keys] == [value.expr]:
        return value, (*parameters, s.Int(-1), s.Bool(value=down))
    if function.endswith("_distinct"):
        message = "different values are in their own order"
        raise groups.report.error("sql-aggregate-order", message, expr.span, "order by the value itself")
    behind = tuple(  # none comes last
        part
        for key in keys
        for part in ((s.IsNone(key.expr), key.expr) if isinstance(key.type, t.Optional) else (key.expr,))
    )
    made = inside.lifted((value,), lambda parts: s.TupleValue((*behind, *parts)), expr)
    return made, (*parameters, s.Int(len(behind)), s.Bool(value=down))


def _when(condition: s.Expr, value: Found, inside: RowExpressions) -> Found:
    """A value where a condition holds, else none."""
    return inside.typed(s.IfExpr(condition, value.expr, s.NoneValue()))


def _operand(
    groups: Groups, function: str, operands: tuple[Found, ...], expr: s.Call, inside: RowExpressions
) -> tuple[Found, tuple[s.Expr, ...]]:
    """What an aggregate is of, and its constants."""
    plain = function.removesuffix("_distinct")
    if plain == "string_agg" and len(operands) == 1:
        operands = (*operands, Found(s.String(","), t.STRING))
    wanted = 2 if plain in OF_TWO or plain in PAIRS else 1
    if len(operands) != wanted:
        message = f"`{plain}` takes {'two operands' if wanted == 2 else 'one operand'}"
        raise groups.report.error("sql-aggregate-argument", message, expr.span)
    first = operands[0]
    match plain:
        case "min_by" | "max_by":
            value, by = operands
            return inside.lifted((by, value), s.TupleValue, expr), ()
        case "string_agg":
            if not isinstance(operands[1].expr, s.String):
                message = "the separator of `string_agg` is a text that is written out"
                raise groups.report.error("sql-aggregate-argument", message, expr.span)
            return as_text(inside, first), (operands[1].expr,)
        case "quantile" | "median" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            number = is_number(strip(first.type))
            if not number or plain != function:
                message = f"`{plain}` takes numbers, this is `{spelled(first.type)}`"
                if number:
                    message = f"`{plain}` takes no `distinct`"
                raise groups.report.error("sql-aggregate-argument", message, expr.span)
            if plain != "quantile":
                return convert(first, t.F64), ()
            return convert(first, t.F64), (_fraction(groups, operands[1].expr, expr),)
        case "disc" | "disc_down" if plain == function:
            return first, (_fraction(groups, operands[1].expr, expr),)
        case "disc" | "disc_down":
            message = "`percentile_disc` takes no `distinct`"
            raise groups.report.error("sql-aggregate-argument", message, expr.span)
        case _ if plain in PAIRS:
            if plain != function or not all(is_number(strip(each.type)) for each in operands):
                message = f"`{plain}` takes two numbers, and no `distinct`"
                raise groups.report.error("sql-aggregate-argument", message, expr.span)
            numbers = tuple(convert(each, t.F64) for each in operands)
            return inside.lifted(numbers, s.TupleValue, expr), ()
        case _:
            return first, ()


def _fraction(groups: Groups, part: s.Expr, expr: s.Call) -> s.Expr:
    """Which part of the rows lies below."""
    if not isinstance(part, s.Float | s.Int) or not 0 <= part.value <= 1:
        message = "which part of the rows lies below is a number from 0 to 1 that is written out"
        raise groups.report.error("sql-aggregate-argument", message, expr.span)
    return s.Float(float(part.value))


def _type_of(groups: Groups, function: str, kind: t.Type, expr: s.Call, argument: Found) -> t.Type:
    """The type of an aggregate of values of `kind`, where there are any."""
    function, distinct = function.removesuffix("_distinct"), function.endswith("_distinct")
    match function:
        case "count":
            return t.I64
        case "mode" if distinct:
            message, help_line = (
                "`mode` takes no `distinct`",
                "leave `distinct` out: each value would be there once",
            )
            raise groups.report.error("sql-aggregate-argument", message, expr.span, help_line)
        case "min" | "max" | "mode" | "disc" | "disc_down":
            return kind
        case "min_by" | "max_by" if isinstance(kind, t.Tuple):
            return kind.items[1]
        case "string_agg":
            return t.STRING
        case "array_agg":
            return t.List(kind)
        case _ if function in PAIRS:
            return t.F64
        case "bool_and" | "bool_or" if kind == t.BOOL:
            return t.BOOL
        case "sum" if kind in (t.I32, t.I64):
            return t.I64
        case "sum" if kind == t.U64:
            return t.U64
        case "sum" if isinstance(kind, t.Decimal):
            return t.Decimal(38, kind.scale)
        case "avg" if isinstance(kind, t.Decimal):
            return mean_type(kind)
        case "sum" | "avg" if kind in t.FLOATS or (function == "avg" and kind in (t.I32, t.I64, t.U64)):
            return t.F64
        case "quantile" | "median" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return t.F64
        case _:
            wanted = "conditions" if function in ("bool_and", "bool_or") else "numbers"
            message = f"`{function}` takes {wanted}, this is `{spelled(argument.type)}`"
            counted = function in ("sum", "avg") and kind == t.BOOL
            help_line = "conditions that hold are counted by `count_if(c)`" if counted else None
            raise groups.report.error("sql-aggregate-argument", message, expr.span, help_line)
