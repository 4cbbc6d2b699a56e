"""The relational algebra that a checked query is.

Expressions are trees of the operator language in which every name is resolved and every conversion stands; lambdas name
their parameters: `r` a row, `l` and `r` the rows of a join, `g` a group (a record of its keys and aggregates).
"""

from __future__ import annotations

from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t


@frozen
class Input(s.Node):
    """The relation that source number `index` of the query denotes."""

    index: int
    row: t.Record


@frozen
class Filter(s.Node):
    """The rows for which `keep` holds, each as what `make` makes of it: selection and projection in one."""

    input: Relation
    row: t.Record
    keep: s.Lambda
    make: s.Lambda


@frozen
class Band(s.Node):
    """That pairs of rows need not be looked at where `right(r)` does not lie in a range around `left(l)`.

    A pair meets what the query asks for only if left + low <= right <= left + high; a bound that is None does not hold. Bounds
    other than 0 are of whole numbers. What is equal to nothing (none, NaN) is no value of either side.
    """

    type: t.Type
    left: s.Lambda
    right: s.Lambda
    low: int | None = None
    high: int | None = None


@frozen
class Unnest(s.Node):
    """Of each row `l` one for each item `x` of the list `items(l)`, whose number is `n`: `make(l, x, n)`, if `keep(l, x, n)`.

    `item` is the type of the items. Rows of which there is none are what `alone(l)` makes of them; if it is None, nothing.
    """

    input: Relation
    row: t.Record
    item: t.Type
    items: s.Lambda
    keep: s.Lambda
    make: s.Lambda
    alone: s.Lambda | None = None


ITEM = ("l", "x", "n")
"""The parameters of what makes a row of a row, an item of it and the number of that."""


@frozen
class Join(s.Node):
    """For each pair of rows with equal keys, what `make(l, r)` makes of it. Without a key (unit), of every pair.

    `band`: which pairs may be left out, because a condition behind the join does not hold for them.
    """

    left: Relation
    right: Relation
    row: t.Record
    key: t.Type
    left_key: s.Lambda
    right_key: s.Lambda
    make: s.Lambda
    band: Band | None = None


@frozen
class Fold:
    """An aggregate that the user defines: what is kept of the rows, and how a row that comes, or goes, changes it.

    `operands` are what the aggregate reads of a row, `initial` is the state of no rows. Functions are of `state` and `row`, a
    record of operands. Where `remove` is None no row may go.
    """

    name: str
    operands: t.Record
    state: t.Record
    type: t.Type
    initial: s.Expr
    add: s.Lambda
    remove: s.Lambda | None
    value: s.Lambda


@frozen
class Key(s.Node):
    """A grouping column: its name in the group, and its value as an expression over the row `r`."""

    name: str
    type: t.Type
    value: s.Expr


@frozen
class Aggregate(s.Node):
    """An aggregate: its name in the group, its function and argument (over the row `r`; none for `count(*)`).

    `function` is one of count, sum, avg, min, max, min_by, max_by (of pairs: the second part of that with the least or
    greatest first part), covar_pop, covar_samp, corr, regr_slope, regr_intercept, regr_r2 (of pairs of floats: y, then x),
    bool_and, bool_or, array_agg, string_agg, quantile, disc, disc_down (of values that descend), mode, var_pop, var_samp,
    stddev_pop, stddev_samp, fold (what the user defines, of records of operands); with `_distinct` behind it each value
    counts once. Rows whose argument is none do not count. `type` is optional if the aggregate can be none: there may be no row
    that counts. `parameters` are constants: the part of the rows that lie below; a separator, then which part of the argument,
    a tuple, is the value that is put in the order of these (-1: it is the value), and whether that order falls.
    """

    name: str
    type: t.Type
    function: str
    argument: s.Expr | None = None
    argument_type: t.Type | None = None
    parameters: tuple[s.Expr, ...] = ()
    fold: Fold | None = None


def mean_type(type_: t.Decimal) -> t.Decimal:
    """The type of a mean of decimals: six more digits after the point, rounded half up."""
    return t.Decimal(38, min(type_.scale + 6, 38))


@frozen
class Group(s.Node):
    """One row `make(g)` for each group of equal keys for which `keep(g)` holds.

    Without keys there is one group, which exists (with count 0) from the first instant of the input.
    """

    input: Relation
    row: t.Record
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    keep: s.Lambda
    make: s.Lambda


@frozen
class Distinct(s.Node):
    """Each row once."""

    input: Relation
    row: t.Record


@frozen
class Combine(s.Node):
    """The rows of two relations of equal rows, counted on both sides.

    `word` is union (the sum of the counts), except (the difference), or intersect (the smaller). Without `every` a row of
    except and intersect is there once or not at all: except takes away what the right side has at all. A union has `every`
    row; `Distinct` around it makes the other.
    """

    left: Relation
    right: Relation
    row: t.Record
    word: str
    every: bool


@frozen
class Outer(s.Node):
    """An outer join: `make(l, r)` of each pair of rows with equal keys, and of rows without partner what says `..._alone`.

    Rows for which `left_can` or `right_can` does not hold have no partner; their keys are not computed. Of the other pairs
    with equal keys those are partners for which `meets(l, r)` holds (None: all). A side whose `..._alone` is None says nothing
    of rows without partner. `band`: pairs that need not be looked at, because `meets` does not hold for them.
    """

    left: Relation
    right: Relation
    row: t.Record
    key: t.Type
    left_key: s.Lambda
    right_key: s.Lambda
    make: s.Lambda
    left_can: s.Lambda
    right_can: s.Lambda
    left_alone: s.Lambda | None = None
    right_alone: s.Lambda | None = None
    meets: s.Lambda | None = None
    band: Band | None = None


@frozen
class Top(s.Node):
    """Of the rows of each key (unit: of all) in the order of `order(r)`, then of themselves, `make` of those that come first.

    `make` is of the row `r` and its numbers: `number` counts rows, `rank` is the number of the first row of equal order, `dense`
    counts orders. There are rows as long as the number that `by` names is at most `most` (None: all), without the first
    `skipped`.
    """

    input: Relation
    row: t.Record
    key_type: t.Type
    key: s.Lambda
    order_type: t.Record
    order: s.Lambda
    make: s.Lambda
    by: str = "number"
    most: int | None = None
    skipped: int = 0


NUMBERS = ("r", "number", "rank", "dense")
"""The parameters of what makes a row of a row and its numbers."""

Relation = Input | Filter | Unnest | Join | Outer | Group | Distinct | Combine | Top

ALL = s.Lambda(("r",), s.Bool(value=True))
"""The condition that every row meets."""

EVERY_GROUP = s.Lambda(("g",), s.Bool(value=True))
"""The condition that every group meets."""

SAME = s.Lambda(("r",), s.Name("r"))
"""The projection that changes nothing."""
