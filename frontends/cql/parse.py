"""Text to syntax: the grammar composed of the shared modules, SQL's and CQL's own."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from frontends.cql import syntax as c
from frontends.cql.dialects import (
    TOLD,
    Computed,
    Insertion,
    ScriptFile,
    Watermark,
    declared,
    filled,
    kind_of,
    settled,
    with_files,
)
from frontends.cql.ksql import in_groups, windows_said, within_said
from frontends.cql.lateral import without_lateral
from frontends.cql.ranked import numbered
from frontends.cql.views import viewed
from frontends.cql.window_tables import Named, TableOperand, micros, window_table
from frontends.sql import syntax as q
from frontends.sql.absent import ABSENT
from frontends.sql.aggregates import aggregate_of, is_known
from frontends.sql.functions import SIZED
from frontends.sql.operations import COMPARISONS
from frontends.sql.parse import SQL, SqlBuilder
from river.classes import evolve
from river.diagnostics import Rejected
from river.il.trees import rebuild, walk
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, QUOTED_NAMES, TYPES, compose, module
from river.lang.operations import OPERATIONS
from river.lang.parse import TypesBuilder
from river.source import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args
    from river.source import Source

CQL = module("frontends.cql", "grammar.lark")
PARSER = compose(LEXICAL, TYPES, EXPR, QUOTED_NAMES, SQL, CQL, start=("program",))


def parse(source: Source) -> c.Program:
    """The declarations that the text makes.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    try:
        tree = PARSER.parse(source)
    except Rejected as rejected:
        from frontends.cql.advice import advised  # few texts need it

        raise Rejected([advised(found) for found in rejected.diagnostics]) from None
    return CqlBuilder(source).build(tree)


_CHARS = re.compile(r"char[0-9]+")
"""Texts of a length, as forms of STREAM have them."""

OF_SOME = ("sum", "avg", "min", "max", "count", "median", "stddev")
"""Aggregates behind whose operand Esper writes of which rows they are."""
LISTS = ("string_agg", "listagg", "array_agg")
NUMBERED = ("row_number", "rank", "dense_rank")
NO_AGGREGATE = "over rows there are aggregates, and `row_number()`, `rank()`, `lag(x)` and the like"
NUMBER_ROWS = "number the rows, and compute what it is of the numbers"
"""What stands before `over`, what is said of other functions, and what to do instead."""


def _as_of(block: q.Select) -> q.Select:
    """A block in which relations are seen as they are at the instants of a stream's rows: the `rstream` of these rows."""
    stamps = [source for source in block.sources if isinstance(source, c.AsOf)]
    if not stamps:
        return block
    found: list[q.Source] = []
    for place, source in enumerate(block.sources):
        of = next(
            (each for each in stamps if each.label_of in (source.label, None if place == 0 else "")), None
        )
        if isinstance(source, c.AsOf):
            source = q.Source(source.name, source.alias, source.joining, span=source.span)
        elif of is not None and type(source) is q.Source:
            window = c.Now(of.stamp, span=source.span)
            source = c.Windowed(source.name, source.alias, source.joining, window, span=source.span)
        found.append(source)
    return evolve(block, sources=tuple(found), operator="rstream")


def _with_lists(builder: SqlBuilder, block: q.Select) -> q.Select:
    """A block that has the lists after `from` whose items it selects: `select unnest(xs) as x from s`."""
    added: list[q.Source] = []
    items: list[q.Item | q.Star] = []
    for item in block.items:
        match item:
            case q.Item(s.Call(name, (s.Node() as given,)), title) if name.lower() in ("unnest", "explode"):
                label = f"unnest {len(added)}"
                column = title or "unnest"
                added.append(
                    q.Unnest("", label, items=cast("s.Expr", given), columns=(column,), span=item.span)
                )
                items.append(evolve(item, value=s.Member(s.Name(label), column, span=item.span), name=title))
            case _:
                items.append(item)
    if not added:
        return block
    if len(added) > 1:
        message = "one list of a row is taken apart in a select list"
        span = added[1].span or Span(builder.source, 0, 0)
        builder.report("syntax-unnest", message, span, "write it after `from`: `unnest(xs) as x`")
    labels = [source.label for source in block.sources]
    shown = tuple(
        each
        for item in items
        for each in (item.of(labels) if isinstance(item, q.Star) and item.source is None else (item,))
    )
    return evolve(block, items=shown, sources=(*block.sources, *added))


class CqlBuilder(SqlBuilder, TypesBuilder):
    """`cql/grammar.lark`."""

    shallower: ClassVar[str] = "name parts of it in a query below it, or move them into a `fn`"

    def program(self, tree: Tree[Token], args: Args) -> c.Program:
        whole = with_files(arg for arg in args if isinstance(arg, s.Node))
        decls = settled([each for each in whole if isinstance(each, c.Decl | Insertion)])
        for each in (each for each in whole if isinstance(each, ScriptFile)):
            message = "`source` says where the data of a table are, and no table stands before it"
            help_line = "write it behind `table : register stream s (...);`, once"
            self.report("syntax-source", message, each.span or self.span(tree), help_line)
        ends = [arg for arg in args if isinstance(arg, bool)]
        ticks = [arg for arg in args if isinstance(arg, c.Length)]
        if len(ends) > 1 or len(ticks) > 1:
            what = "windows" if len(ends) > 1 else "tick"
            self.report("syntax-option", f"`{what}` is said twice", self.span(tree), "say it once")
        return c.Program(
            decls,
            half_open=True in ends,
            tick=ticks[0] if ticks else None,
            parameters=tuple(arg for arg in args if isinstance(arg, c.Parameter)),
            functions=tuple(arg for arg in args if isinstance(arg, c.ScalarFunction)),
            aggregates=tuple(arg for arg in args if isinstance(arg, c.AggregateFunction)),
            externs=tuple(arg for arg in args if isinstance(arg, c.ExternFunction)),
            span=self.span(tree),
        )

    def parameter(self, tree: Tree[Token], args: Args) -> c.Parameter:
        return c.Parameter(str(args[1]), args[2], span=self.span(tree))

    def parameter_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Name(str(args[0]), span=self.span(tree))

    def fn_param(self, tree: Tree[Token], args: Args) -> tuple[str, s.TypeExpr]:
        return str(args[0]), args[1]

    def function_decl(self, tree: Tree[Token], args: Args) -> c.ScalarFunction:
        name, *params, result, body = args
        given = tuple(each for each in params if each is not None)
        return c.ScalarFunction(str(name), given, result, body, span=self.span(tree))

    def extern_decl(self, tree: Tree[Token], args: Args) -> c.ExternFunction:
        name, *params, result, quoted = args
        given, target = tuple(each for each in params if each is not None), str(quoted).strip("'")
        module, colon, function = target.partition(":")
        if not (colon and all(part.isidentifier() for part in (*module.split("."), function))):
            message = f"`{target}` names no Python function"
            self.report("syntax-extern", message, self.token_span(quoted), "write 'module:function'")
        return c.ExternFunction(str(name), given, result, target, span=self.span(tree))

    def aggregate_part(self, tree: Tree[Token], args: Args) -> tuple[str, s.Expr]:
        return str(args[0]), args[1]

    def aggregate_decl(self, tree: Tree[Token], args: Args) -> c.AggregateFunction:
        _, name, *rest = args
        at = next(i for i, each in enumerate(rest) if isinstance(each, s.Node))
        params = tuple(each for each in rest[:at] if each is not None)
        return c.AggregateFunction(str(name), params, rest[at], tuple(rest[at + 1 :]), span=self.span(tree))

    def ends_option(self, tree: Tree[Token], args: Args) -> bool:
        return str(args[0]).lower().endswith("half-open")

    def tick_option(self, tree: Tree[Token], args: Args) -> c.Length:
        return args[-1]

    def decl(self, tree: Tree[Token], args: Args) -> c.Decl:
        output, name, kind_of_rows, kind, by, hidden, query = args
        column = by.name if isinstance(by, s.Name) else None
        return c.Decl(
            str(name), kind_of_rows, str(kind).lower(), column, query, output is not None,
            self.token_span(name), hidden=hidden is not None, stamp=None if column is not None else by,
            by_span=None if by is None else by.span, span=self.span(tree),
        )  # fmt: skip

    def asked(self, tree: Tree[Token], args: Args) -> c.Decl:
        (query,) = args
        return c.Decl("", None, "query", None, query, name_span=query.span, span=self.span(tree))

    def asked_named(self, tree: Tree[Token], args: Args) -> c.Decl:
        output, name, query = args
        return c.Decl(
            str(name),
            None,
            "query",
            None,
            query,
            output is not None,
            self.token_span(name),
            span=self.span(tree),
        )

    def annotated(self, tree: Tree[Token], args: Args) -> c.Decl:
        """`@name('v') select ...;`, as Esper names a statement."""
        word, query = args
        name = re.split("['\"]", word)[1]
        return c.Decl(name, None, "query", None, query, name_span=self.token_span(word), span=self.span(tree))

    def asked_columns(self, tree: Tree[Token], args: Args) -> c.Decl:
        """`name(a, b): select ...;`, as the paper writes views."""
        output, name, columns, query = args
        return self.asked_named(tree, [output, name, evolve(query, columns=columns)])

    def table_column(self, tree: Tree[Token], args: Args) -> s.FieldType:
        name, type_ = args
        return s.FieldType(str(name), type_, span=self.span(tree))

    def computed_column(self, tree: Tree[Token], args: Args) -> Computed:
        name, value = args
        return Computed(str(name), value, span=self.span(tree))

    def table_keys(self, tree: Tree[Token], args: Args) -> None:
        """What is different in all rows is no matter of what they mean."""

    def watermark(self, tree: Tree[Token], args: Args) -> Watermark:
        return Watermark(str(args[0]).split()[2].strip('`"'))

    def created(self, tree: Tree[Token], args: Args) -> c.Decl:
        word, name, *parts = args
        columns = tuple(part for part in parts if isinstance(part, s.FieldType | Computed))
        stamps = [part.column for part in parts if isinstance(part, Watermark)]
        span = self.span(tree)
        decl = declared(str(name), kind_of(str(word)), columns, stamps, span)
        return evolve(decl, name_span=self.token_span(name), span=span)

    def created_as(self, tree: Tree[Token], args: Args) -> c.Decl:
        word, name, columns, query = args
        query = query if columns is None else evolve(query, columns=columns)
        kind = TOLD if kind_of(str(word)) == "stream" else "query"
        where = self.token_span(name)
        return c.Decl(str(name), None, kind, None, query, name_span=where, span=self.span(tree))

    def named_view(self, tree: Tree[Token], args: Args) -> c.Decl:
        query, *declaration = args
        return filled(self.created(tree, declaration), query)

    def script_file(self, tree: Tree[Token], args: Args) -> ScriptFile:
        word, _, path = str(args[0]).partition(":")
        return ScriptFile(word.strip().lower(), path.strip(), span=self.span(tree))

    def inserted(self, tree: Tree[Token], args: Args) -> Insertion:
        name, columns, query = args
        query = query if columns is None else evolve(query, columns=columns)
        return Insertion(str(name), query, self.token_span(name), span=self.span(tree))

    def hidden_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def output_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def with_query(self, tree: Tree[Token], args: Args) -> tuple[str, c.Query]:
        name, columns, query = args
        return str(name), query if columns is None else evolve(query, columns=columns)

    def with_queries(self, tree: Tree[Token], args: Args) -> c.Query:
        *within, query = args
        return evolve(query, within=tuple(within), span=self.span(tree))

    def union_word(self, tree: Tree[Token], args: Args) -> tuple[str, bool]:
        word = str(args[0]).lower()
        return "except" if word == "minus" else word, args[1] is not None

    def intersect_word(self, tree: Tree[Token], args: Args) -> tuple[str, bool]:
        return str(args[0]).lower(), args[1] is not None

    def combination(self, tree: Tree[Token], args: Args) -> c.Combined:
        left, (word, every), right = args
        return c.Combined(word, every, self.relation(left), self.relation(right), span=self.span(tree))

    def named(self, tree: Tree[Token], args: Args) -> q.Select:
        name, span = str(args[0]), self.span(tree)
        return q.Select((q.Star(span=span),), (q.Source(name, name, span=span),), span=span)

    def in_parentheses(self, tree: Tree[Token], args: Args) -> q.Select:
        names: list[Any] = args[0]
        if len(names) != 1:
            several = "several names in parentheses are no query"
            message = several if names else "there is no query in the parentheses"
            help_line = "one name is all of what is called so: `(R) union (Q)`"
            self.report("syntax-query", message, self.span(tree), help_line)
        return self.named(tree, names[:1] or ["?"])

    def in_expr_part(self, tree: Tree[Token], args: Args) -> q.Select | c.Combined:
        """A part of a combination inside of an expression: a query, or the name of what is declared."""
        (part,) = args
        span = self.span(tree)
        match part:
            case c.Query(within=()):
                return self.relation(part.select)
            case c.Query() | q.Nested("value"):
                query = cast("c.Query", part.query) if isinstance(part, q.Nested) else part
                inner = c.Derived("all", "all", None, query, span=span)
                return q.Select((q.Star(span=span),), (inner,), span=span)
            case s.Name(name) | q.Quoted(name):
                return q.Select((q.Star(span=span),), (q.Source(name, name, span=span),), span=span)
            case _:
                message = "a value is no query"
                help_line = "what is combined are queries, or names of what is declared: `(R) union (Q)`"
                self.report("syntax-query", message, span, help_line)
                return self.named(tree, ["?"])

    def values_row(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        return args[0]

    def values_query(self, tree: Tree[Token], args: Args) -> q.Select:
        span = self.span(tree)
        rows = q.Unnest("", "values", rows=tuple(args[1:]), span=span)
        return q.Select((q.Star(span=span),), (rows,), span=span)

    def derived(self, tree: Tree[Token], args: Args) -> q.Source:
        query, window, *named = args
        alias, columns = ([*named, None, None])[:2]
        span = self.span(tree)
        if columns is not None:
            query = evolve(query, columns=columns)
        name = (
            f"derived_{span.start}" if alias is None else str(alias)
        )  # nobody else writes a name with a place
        return c.Derived(name, name, None, query, window, span=span)

    def derived_stream(self, tree: Tree[Token], args: Args) -> q.Source:
        word, body, *behind = args
        operator = str(word).partition("(")[0].strip().lower()
        query = c.Query(self.relation(body), operator, span=self.span(tree))
        return self.derived(tree, [query, *behind])

    def lateral(self, tree: Tree[Token], args: Args) -> q.Source:
        _, query, *named = args
        return evolve(self.derived(tree, [query, None, *named]), lateral=True)

    def ordered(self, tree: Tree[Token], args: Args) -> q.Select:
        body, order, limit = args
        return self.first_of(body, order, limit, self.span(tree))

    def limited(self, tree: Tree[Token], args: Args) -> q.Select:
        return self.first_of(args[0], (), args[1], self.span(tree))

    def first_of(
        self,
        body: q.Select | c.Combined,
        order: tuple[q.OrderKey, ...],
        limit: tuple[int, int] | None,
        span: Span,
    ) -> q.Select:
        """A block with an order and a number of rows; of a combination, and of one that has these, one around it."""
        if isinstance(body, c.Combined) or body.limit is not None or body.offset:
            inner = c.Derived("all", "all", None, c.Query(body, span=body.span), span=body.span)
            body = q.Select((q.Star(span=span),), (inner,), span=span)
        most, before = limit or (None, 0)
        if max(most or 0, before) >= 1 << 53:
            message = "no relation has so many rows"
            self.report("syntax-limit", message, span, "leave it out, or write a smaller number")
            most, before = 1, 0
        return evolve(body, order=order, limit=most, offset=before, span=span)

    def first_rows(self, block: q.Select) -> q.Select:
        """A block without `distinct on`: the first row of each part, in its order, is the one with number 1."""
        number = cast("s.Expr", q.Over("number", block.first_of, block.order, span=block.span))
        first = s.Binary("==", number, s.Int(1), span=block.span)
        both = first if block.qualify is None else s.Binary("and", block.qualify, first, span=block.span)
        return evolve(block, first_of=(), qualify=both, order=() if block.limit is None else block.order)

    def orders(self, tree: Tree[Token], args: Args) -> tuple[q.OrderKey, ...]:
        return tuple(args)

    def order(self, tree: Tree[Token], args: Args) -> q.OrderKey:
        value, direction, first = args
        return q.OrderKey(value, str(direction).lower() == "desc", first, span=self.span(tree))

    def nulls(self, tree: Tree[Token], args: Args) -> bool:
        return str(args[0]).lower() == "first"

    def most(self, tree: Tree[Token], args: Args) -> int:
        return 1 if args[0] is None else self.whole(args[0])

    def limit(self, tree: Tree[Token], args: Args) -> tuple[int | None, int]:
        most, before = args
        return most, 0 if before is None else self.whole(before)

    def limit_behind(self, tree: Tree[Token], args: Args) -> tuple[int | None, int]:
        before, most = args
        return most, self.whole(before)

    def with_windows(self, block: q.Select, windows: dict[str, tuple[Any, ...]]) -> q.Select:
        """A block with what stands behind `window` in the places of its names."""

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case q.Over("named", (s.Name(name),), call=s.Call() as call, span=Span() as span) if (
                    name in windows
                ):
                    return self.over(call, windows[name], span)
                case q.Nested():
                    return node
                case _:
                    return rebuild(node, rewrite)

        return evolve(
            block,
            items=tuple(cast("q.Item | q.Star", rewrite(item)) for item in block.items),
            qualify=None if block.qualify is None else cast("s.Expr", rewrite(block.qualify)),
        )

    def windows(self, tree: Tree[Token], args: Args) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for name, parts in args[1:]:
            if name in found:
                self.report("syntax-over", f"two windows are called `{name}`", self.span(tree))
            found[name] = parts
        return found

    def window_named(self, tree: Tree[Token], args: Args) -> tuple[str, tuple[Any, ...]]:
        return str(args[0]), args[1]

    def over_parts(self, tree: Tree[Token], args: Args) -> tuple[Any, ...]:
        return tuple(args)

    def over_value(self, tree: Tree[Token], args: Args) -> s.Expr | q.Over:
        call, parts = args
        return self.over(call, parts, self.span(tree))

    def over_named(self, tree: Tree[Token], args: Args) -> q.Over:
        call, name = args
        return q.Over(
            "named", (s.Name(str(name), span=self.token_span(name)),), (), call, span=self.span(tree)
        )

    def over(self, call: s.Expr, parts: tuple[Any, ...], span: Span) -> s.Expr | q.Over:
        """What is over the rows that `parts` say: keys, order, frame."""
        keys, order, frame = parts
        call = _when(call)
        name = call.function.lower() if isinstance(call, s.Call) else "?"
        if isinstance(call, s.Call):
            other = numbered(call, keys or (), order or (), frame, span)
            if other is not None:
                return other
        rows, reach = (None, frame) if isinstance(frame, s.Int | s.Call) else (frame, None)
        if reach is not None and len(order or ()) != 1:
            message = "a frame of `range` is of an aggregate, by one order"
            self.report("syntax-over", message, span, "write `sum(x) over (order by ts range between ...)`")
        own = isinstance(call, s.Call) and not is_known(name) and name not in (*NUMBERED, *ABSENT)
        if aggregate_of(call) is not None or own:  # an aggregate of the user's, as far as is known here
            return q.Over("aggregate", keys or (), order or (), call, rows, reach, span=span)
        if name not in NUMBERED or not isinstance(call, s.Call) or call.args or frame is not None:
            self.report("syntax-over", NO_AGGREGATE, span, ABSENT.get(name, NUMBER_ROWS))
        return q.Over(
            {"row_number": "number", "dense_rank": "dense"}.get(name, name),
            keys or (),
            order or (),
            span=span,
        )

    def frame(self, tree: Tree[Token], args: Args) -> tuple[int | None, int | None] | s.Expr | None:
        word, low, high = (*args, 0)[:3]
        if word == "rows" and not isinstance(low, s.Call) and not isinstance(high, s.Call):
            return low, high
        if word == "range" and (low, high) == (None, 0):
            return None
        if word == "range" and low is None and high is None:
            return None, None
        if word == "range" and high == 0 and isinstance(low, s.Call):
            return low
        if word == "range" and high == 0 and isinstance(low, int) and low < 0:
            return s.Int(-low)
        message = "a frame is of so many rows, or of a range up to the present one"
        help_line = "write `rows between 3 preceding and 1 following`, or `range interval '1' hour preceding`"
        self.report("syntax-over", message, self.span(tree), help_line)
        return None

    def frame_word(self, tree: Tree[Token], args: Args) -> str:
        return str(args[0]).lower()

    def at_zone(self, tree: Tree[Token], args: Args) -> s.Expr:
        zone = self.quoted_value(tree, [args[2]])
        return s.Call("at_zone", (args[0], zone), span=self.span(tree))

    def bound(self, tree: Tree[Token], args: Args) -> int | s.Expr | None:
        first, second = (str(arg).lower() for arg in args)
        if args[0].type == "INTERVAL":
            length = self.interval_value(tree, args[:1])
            return length if second == "preceding" and length.function == "duration" else 1
        if first == "unbounded":
            return None
        size = 0 if first == "current" else self.whole(args[0])
        return -size if second == "preceding" else size

    def json_member(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, name = args
        step = s.Int(self.whole(name)) if name.type == "INT" else self.quoted_value(tree, [name])
        inside = value.args if isinstance(value, s.Call) and value.function == "json at" else (value,)
        return s.Call("json at", (*inside, step), span=self.span(tree))

    def within_group(self, tree: Tree[Token], args: Args) -> s.Expr:
        call, order = args
        span = self.span(tree)
        match call:
            case s.Call(name, (s.Float() | s.Int() as part,)) if name.lower() == "percentile_cont":
                below = s.Float(1 - part.value) if order.descending else part
                return s.Call("percentile_cont", (order.value, below), span=span)
            case s.Call(name, (s.Float() | s.Int() as part,)) if name.lower() == "percentile_disc":
                named = "percentile_disc desc" if order.descending else "percentile_disc"
                return s.Call(named, (order.value, part), span=span)
            case s.Call(name, ()) if name.lower() == "mode":
                return s.Call("mode", (order.value,), span=span)
            case s.Call(name, (_, *_)) if name.lower() in (*LISTS, *(f"{each}.distinct" for each in LISTS)):
                return self.in_order(evolve(call, span=span), (order,), span)
            case _:
                pass
        message = "rows of a group have an order for `percentile_cont(p)`, `percentile_disc(p)`, `mode()` and `listagg(x, s)`"
        help_line = "rows are chosen by `row_number() over (order by ...)`; p is a number that is written out"
        self.report("syntax-within", message, span, help_line)
        return s.NoneValue(span=span)

    def one_of(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, given = args
        written = tree.children[2]
        nested = not isinstance(written, str) and str(written.data) == "nested_value"
        rows = _written_rows(given.query) if isinstance(given, q.Nested) else None
        if (
            rows is not None
            and nested
            and (isinstance(value, s.TupleValue) or all(len(row) == 1 for row in rows))
        ):
            items = tuple(row[0] if len(row) == 1 else s.TupleValue(row, span=given.span) for row in rows)
            return self.unless(inverted, self.among(value, items, self.span(tree)))
        if nested and not isinstance(given, q.Nested):  # the one value of a query that reads nothing
            return self.unless(inverted, self.among(value, (given,), self.span(tree)))
        return super().one_of(tree, args)

    def nested_value(self, tree: Tree[Token], args: Args) -> s.Node:
        self.value_of(args[0])
        match _written_rows(args[0]):
            case ((value,),) if not isinstance(value, s.NoneValue) and not _may_aggregate(value):
                return value
            case _:
                pass
        return q.Nested("value", args[0], span=self.span(tree))

    def value_of(self, query: c.Query) -> None:
        """Sees that a query inside of an expression is a relation."""
        if query.operator is not None:
            message = f"`{query.operator}` makes a stream, which is no value"
            self.report("syntax-nested", message, query.span or Span(self.source, 0, 0), "leave it out")

    def nested_call(self, tree: Tree[Token], args: Args) -> q.Nested:
        callee, query = args
        self.value_of(query)
        word = callee.name.lower() if isinstance(callee, s.Name) else "?"
        if word not in ("exists", "any", "some", "all"):
            message = "a query is no operand"
            help_line = "one value of a query stands in parentheses of its own: `f((select ...))`"
            self.report("syntax-nested", message, self.span(tree), help_line)
        return q.Nested({"some": "any"}.get(word, word), query, span=self.span(tree))

    def select(self, tree: Tree[Token], args: Args) -> q.Select:
        block, windows = _as_of(in_groups(_with_lists(self, super().select(tree, args)))), args[-2]
        block = without_lateral(self, block)
        return block if windows is None else self.with_windows(block, windows)

    def written_row(self, tree: Tree[Token], args: Args) -> q.Select:
        """A query without sources that has queries in it is one row, which is there when the first of them is."""
        nested = next((node for item in args[0] for node in walk(item) if isinstance(node, q.Nested)), None)
        read = _block(nested.query) if nested is not None else None
        if read is None:
            return super().written_row(tree, args)
        span = self.span(tree)
        here = q.Select((q.Item(s.Call("count", ()), "here", span=span),), read.sources, span=span)
        return q.Select(
            args[0], (c.Derived("here", "here", None, c.Query(here, span=span), span=span),), span=span
        )

    def select_stream(self, tree: Tree[Token], args: Args) -> q.Select:
        word, *rest = args
        block = self.select(tree, rest)
        match block.items:
            case (q.Item(s.TupleValue(values), None),):  # `istream(a, b)`
                block = evolve(block, items=tuple(q.Item(value, span=value.span) for value in values))
            case _:
                pass
        operator = str(word).rstrip("( \t\n\r").lower()
        return block if operator == "stream" else evolve(block, operator=operator)

    def plain_query(self, tree: Tree[Token], args: Args) -> c.Query:
        body, span = args[0], self.span(tree)
        operator = body.operator if isinstance(body, q.Select) else None
        if operator is not None:
            body = evolve(body, operator=None)
        return c.Query(self.relation(body), operator, span=span)

    def stream_query(self, tree: Tree[Token], args: Args) -> c.Query:
        return c.Query(self.relation(args[1]), str(args[0]).lower(), span=self.span(tree))

    def relation(self, body: q.Select | c.Combined) -> q.Select | c.Combined:
        """A part of a query, which is no stream by itself."""
        if isinstance(body, q.Select) and body.first_of:
            body = self.first_rows(body)
        if isinstance(body, q.Select) and body.operator is not None:
            message = f"`{body.operator}` makes a stream, but this is a part of a query"
            help_line = "it stands around the whole: `istream(select ...)`"
            self.report("syntax-stream", message, body.span or Span(self.source, 0, 0), help_line)
            return evolve(body, operator=None)
        return body

    def in_windows(self, tree: Tree[Token], args: Args) -> q.Source:
        name, *alias, words = args
        own = None if alias[-1] is None else str(alias[-1])
        span = self.token_span(words)
        window = windows_said(self, str(words), span)
        return c.Windowed(str(name), own, None, window, span=self.span(tree))

    def join_within(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        before, kind, source, words, condition = args
        joined = self.join_on(tree, [before, kind, source, condition])
        *others, first, second = joined
        ends = within_said(self, str(words), self.token_span(words))
        if others or type(first) is not q.Source or type(second) is not q.Source:
            message = "two streams without windows are joined within a time"
            help_line = "windows stand behind the sources: `a[range 1 hour] join b[range 1 hour] on ...`"
            self.report("syntax-within-time", message, self.token_span(words), help_line)
            return joined
        return tuple(
            c.Windowed(each.name, each.alias, each.joining, c.Range(length, span=each.span), span=each.span)
            for each, length in zip((first, second), reversed(ends), strict=True)
        )

    def as_of(self, tree: Tree[Token], args: Args) -> q.Source:
        name, _, first, second, alias = args
        label, stamp = (None, first) if second is None else (str(first), second)
        own, column = None if alias is None else str(alias), s.Name(str(stamp), span=self.token_span(stamp))
        return c.AsOf(str(name), own, label_of=label, stamp=column, span=self.span(tree))

    def view(self, tree: Tree[Token], args: Args) -> tuple[Token, tuple[c.Length | str, ...]]:
        word, *operands = args
        return word, tuple(
            one if isinstance(one, c.Length) else str(one) for one in operands if one is not None
        )

    def directed(self, tree: Tree[Token], args: Args) -> str:
        return f"{args[0]} {args[1]}"

    def viewed_some(self, tree: Tree[Token], args: Args) -> q.Source:
        some, *views, alias = args
        span = self.span(tree)
        if not isinstance(some, c.Derived):
            message, help_line = "a window has no other windows", "write `tumble(s, 10 seconds)` alone"
            self.report("syntax-view", message, span, help_line)
            return some
        own = some.alias if alias is None else str(alias)
        return evolve(some, alias=own, window=viewed(self, views, span), span=span)

    def viewed(self, tree: Tree[Token], args: Args) -> q.Source:
        name, *views, alias = args
        window = viewed(self, views, self.span(tree))
        return c.Windowed(
            str(name), None if alias is None else str(alias), None, window, span=self.span(tree)
        )

    def windowed(self, tree: Tree[Token], args: Args) -> q.Source:
        name, window, alias = args[0], args[1], args[-1]
        own = None if alias is None else str(alias)
        return c.Windowed(str(name), own, None, window, span=self.span(tree))

    def windowed_behind(self, tree: Tree[Token], args: Args) -> q.Source:
        """A window that stands behind the name that a stream gets."""
        name, alias, window, where = args
        if where is None:
            return self.windowed(tree, [name, window, alias])
        return self.windowed_some(tree, [name, window, where, alias])

    def windowed_some(self, tree: Tree[Token], args: Args) -> q.Source:
        """A window of those rows of a stream that meet a condition."""
        name, window, where, *alias = args
        label, span = str(alias[-1] or name), self.span(tree)
        some = q.Select((q.Star(span=span),), (q.Source(str(name), label, span=span),), where, span=span)
        query = c.Query(some, "istream", span=span)
        return c.Derived(label, label, None, query, window, span=span)

    def trim_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, side, characters, value = args
        if not isinstance(callee, s.Name) or callee.name.lower() != "trim":
            self.report(
                "syntax-from", f"only `trim` takes `{side}`", self.span(tree), "write `trim(both ' ' from s)`"
            )
        function = {"leading": "ltrim", "trailing": "rtrim"}.get(str(side).lower(), "trim")
        return s.Call(function, (value, characters), span=self.span(tree))

    def now(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Now(span=self.span(tree))

    def unbounded(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Unbounded(span=self.span(tree))

    def range_window(self, tree: Tree[Token], args: Args) -> c.Window:
        keys, length, slide = args
        return c.Range(length, slide, keys or (), span=self.span(tree))

    def rows_window(self, tree: Tree[Token], args: Args) -> c.Window:
        slide = None if args[1] is None else self.whole(args[1])
        return c.RowWindow(self.whole(args[0]), (), slide, span=self.span(tree))

    def partition_window(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.RowWindow(self.whole(args[1]), _partition(args[0]), None, args[2], span=self.span(tree))

    def recent_window(self, tree: Tree[Token], args: Args) -> c.Window:
        keys = _partition(args[0] or ())
        return c.RowWindow(self.whole(args[1]), keys, None, None, args[2], span=self.span(tree))

    def session_window(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Session(args[1], args[0] or (), span=self.span(tree))

    def length(self, tree: Tree[Token], args: Args) -> c.Length:
        span = self.span(tree)
        if len(args) == 1:
            return self.micros(self.interval_value(tree, args), span)
        number, unit = args
        count = Fraction(int(number, 16) if number[:2] in ("0x", "0X") else str(number))
        return c.Length(count, None if unit is None else str(unit), span=span)

    def quoted_length(self, tree: Tree[Token], args: Args) -> c.Length:
        """`'10' seconds`, `'10 seconds'`, and whatever may stand behind `interval`."""
        quoted, unit = args
        span, plain = self.span(tree), _PLAIN_LENGTH.fullmatch(str(quoted))
        if plain is not None and not (unit and plain[2]):
            return c.Length(Fraction(plain[1]), str(unit) if unit else plain[2], span=span)
        return self.micros(self.interval_of(str(quoted)[1:-1], [str(unit)] if unit else [], span), span)

    def micros(self, interval: s.Call, span: Span) -> c.Length:
        """A length of time of a window."""
        if interval.function != "duration":
            message = "windows are of lengths of time, months have none"
            self.report("syntax-interval", message, span, "count days")
            return c.Length(Fraction(1), span=span)
        return micros(interval, span)

    def windows_keys(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        (given,), span = args, self.span(tree)
        return tuple(s.Name(str(name), span=span) for name in ((given,) if isinstance(given, str) else given))

    def windows_table(self, tree: Tree[Token], args: Args) -> TableOperand:
        *words, keys = args if isinstance(args[-1], tuple | None) else (*args, None)
        if len(words) == 2 and str(words[0]).lower() != "table":
            self.report("syntax-window-function", f"unexpected `{words[0]}`", self.token_span(words[0]))
        return TableOperand(str(words[-1]), keys or ())

    def named_value(self, tree: Tree[Token], args: Args) -> Named:
        return Named(str(args[0]), args[1])

    def windows_of(self, tree: Tree[Token], args: Args) -> q.Source:
        function, *given = args
        return window_table(self, function, tuple(given), self.span(tree))

    def through_windows(self, tree: Tree[Token], args: Args) -> q.Source:
        source = args[-2]
        alias = source.alias if args[-1] is None else str(args[-1])
        return evolve(source, alias=alias, span=self.span(tree))

    def list_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("list", (args[0],), span=self.span(tree))

    def named_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        name, *rest = args
        word = str(name).lower()
        if _CHARS.fullmatch(word):
            return s.TypeName("string", span=self.span(tree))
        return super().named_type(tree, ["list" if word == "array" else word, *rest])

    def row_field(self, tree: Tree[Token], args: Args) -> s.FieldType:
        return self.table_column(tree, args)

    def row_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.RecordType(tuple(args), span=self.span(tree))

    def sized(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        name, size = args
        word, span = name.lower(), self.span(tree)
        if word in ("decimal", "numeric"):
            return s.TypeName("decimal", (s.Int(self.whole(size)), s.Int(0)), span=span)
        if word not in SIZED:
            self.report("syntax-type", f"`{name}` takes no length", span, "texts are `string` or `char(n)`")
        return s.TypeName(word, span=span)

    def precise(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        if args[0].lower() != "double":
            self.report(
                "syntax-type", "unexpected `precision`", self.span(tree), "write `float`, or `decimal(10, 2)`"
            )
        return s.TypeName("double", span=self.span(tree))

    def zoned(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return args[0]

    def filled(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return args[0]

    def call(self, tree: Tree[Token], args: Args) -> s.Expr:
        found = super().call(tree, args)
        match found:
            case s.Call(name, (value, s.Binary(op) as condition)) if (
                op in COMPARISONS and name.lower() in OF_SOME
            ):
                return s.Call("filter", (evolve(found, args=(value,)), condition), span=found.span)
            case _:
                return found

    def ordered_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, *values, orders = args
        name, span = callee.name if isinstance(callee, s.Name) else "?", self.span(tree)
        return self.in_order(s.Call(name, tuple(values), span=span), orders, span)

    def ordered_distinct(self, tree: Tree[Token], args: Args) -> s.Expr:
        *call, orders = args
        return self.in_order(cast("s.Call", self.distinct_call(tree, call)), orders, self.span(tree))

    def in_order(self, call: s.Call, orders: tuple[q.OrderKey, ...], span: Span) -> s.Expr:
        """An aggregate of rows in an order."""
        name = call.function.lower()
        if name in ("first", "last", "first_value", "last_value") and len(call.args) == 1:
            values = tuple(order.value for order in orders)
            by = values[0] if len(values) == 1 else s.TupleValue(values, span=span)
            least = name.startswith("first") != orders[0].descending
            if len({order.descending for order in orders}) == 1:
                return s.Call("min_by" if least else "max_by", (*call.args, by), span=span)
        directions = {order.descending for order in orders}
        if len(directions) > 1 or any(order.first is not None for order in orders):
            message = "the rows of an aggregate are in an order that ascends, or descends, as a whole"
            self.report("syntax-within", message, span, "order by the first value alone")
        by = s.TupleValue(tuple(order.value for order in orders), span=span)
        return s.Call("ordered", (call, by, s.Bool(value=True in directions)), span=span)

    def whole(self, token: Token) -> int:
        """The value of a whole number."""
        return int(token, 16 if token[:2] in {"0x", "0X"} else 10)


_PLAIN_LENGTH = re.compile(r"'\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]+)?\s*'")
"""A number in quotes, and perhaps its unit."""


def _partition(keys: Sequence[s.Expr]) -> tuple[s.Expr, ...]:
    """The columns by which a window is partitioned, without the names of their source."""
    return tuple(s.Name(key.name, span=key.span) if isinstance(key, s.Member) else key for key in keys)


def _block(query: s.Node) -> q.Select | None:
    """The first block of a query."""
    body = query.select if isinstance(query, c.Query) else query
    while isinstance(body, c.Combined):
        body = body.left
    return body if isinstance(body, q.Select) else None


def _written_rows(query: s.Node) -> tuple[tuple[s.Expr, ...], ...] | None:
    """The rows of a query that is nothing but rows that are written out."""
    match query:
        case c.Query(
            q.Select((q.Star(None),), (q.Unnest(items=None, rows=rows) as source,)) as select, None, ()
        ) if select == q.Select(select.items, (source,)) and rows:
            return rows
        case _:
            return None


def _may_aggregate(value: s.Expr) -> bool:
    """Whether a value calls what may be an aggregate of the program's own, which is of the rows of its query."""
    names = (node.function for node in walk(value) if isinstance(node, s.Call))
    return any(not is_known(name.lower()) and name not in OPERATIONS and name not in _CASTS for name in names)


def _when(call: s.Expr) -> s.Expr:
    """An aggregate without `filter`: of the other rows, its first operand is none, which counts nowhere."""
    match call:
        case s.Call("filter", (s.Call(name, args) as inner, condition)) if is_known(
            name.partition(".")[0].lower()
        ):
            value = cast("s.Expr", args[0]) if args else s.Int(1, span=call.span)
            some = s.IfExpr(cast("s.Expr", condition), value, s.NoneValue(), span=call.span)
            return evolve(inner, args=(some, *args[1:]))
        case _:
            return call


_CASTS = frozenset({"cast", "try_cast", "extract", "date_trunc", "date_part", "like", "ilike", "json at"})
"""Functions that are read by themselves."""
