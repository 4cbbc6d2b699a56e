"""Text to syntax: the grammar composed of the shared modules, SQL's and CQL's own."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from attrs import evolve

from frontends.cql import syntax as c
from frontends.cql.window_tables import Named, Table, micros, window_table
from frontends.sql import syntax as q
from frontends.sql.parse import SQL, SqlBuilder
from river.diagnostics import Rejected
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, TYPES, compose, module
from river.lang.parse import TypesBuilder
from river.source import Span

if TYPE_CHECKING:
    from lark import Token, Tree

    from river.diagnostics import Diagnostic
    from river.lang.parse import Args
    from river.source import Source

CQL = module("frontends.cql", "grammar.lark")
PARSER = compose(LEXICAL, TYPES, EXPR, SQL, CQL, start=("program",))


def parse(source: Source) -> c.Program:
    """The declarations that the text makes.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    try:
        tree = PARSER.parse(source)
    except Rejected as rejected:
        raise Rejected([_advised(found) for found in rejected.diagnostics]) from None
    return CqlBuilder(source).build(tree)


def _advised(found: Diagnostic) -> Diagnostic:
    """A word of SQL's that CQL does not have, with what does instead."""
    if found.span is None:
        return found
    span, word = found.span, found.span.text.lower()
    text = span.source.text
    before = LAST_WORD.search(text[: span.start])  # a word of SQL's may have been read as a name
    if word not in INSTEAD and before is not None and before[1].lower() in INSTEAD:
        span, word = Span(span.source, before.start(1), before.end(1)), before[1].lower()
        found = evolve(found, message=f"unexpected `{before[1]}`", span=span)
    return evolve(found, help=INSTEAD[word]) if word in INSTEAD else found


LAST_WORD = re.compile(r"\b([A-Za-z]+)(?:\s+|\s*\(\s*(?:select\s+)?)$")

INSTEAD = {
    "order": "`order by` stands last, before `limit`",
    "limit": "`limit n` stands last; the last rows of a stream are `[rows n]`",
    "offset": "`limit n offset m` stands last",
    "fetch": "`limit n` stands last",
    "natural": "say by which columns: `join s using (a, b)`",
    "lateral": "a query after `from` does not see the other sources",
    "over": "of windows over rows there are `row_number()`, `rank()`, `dense_rank()`: `over (partition by a order by b)`",
    "rows": "there are no frames: a window of the last rows is `from s[rows 10]`",
    "within": "rows of a group have no order",
    "minus": "the difference of queries is `except`",
    "values": "rows that are written out are a file of an input",
}
"""Help at words that people know from SQL and from other kinds of CQL."""


class CqlBuilder(SqlBuilder, TypesBuilder):
    """`cql/grammar.lark`."""

    def program(self, tree: Tree[Token], args: Args) -> c.Program:
        decls = tuple(arg for arg in args if isinstance(arg, c.Decl))
        ends = [arg for arg in args if isinstance(arg, bool)]
        ticks = [arg for arg in args if isinstance(arg, c.Length)]
        if len(ends) > 1 or len(ticks) > 1:
            what = "windows" if len(ends) > 1 else "tick"
            self.report("syntax-option", f"`{what}` is said twice", self.span(tree), "say it once")
        return c.Program(
            decls, half_open=True in ends, tick=ticks[0] if ticks else None, span=self.span(tree)
        )

    def ends_option(self, tree: Tree[Token], args: Args) -> bool:
        return str(args[0]).lower().endswith("half-open")

    def tick_option(self, tree: Tree[Token], args: Args) -> c.Length:
        return args[-1]

    def decl(self, tree: Tree[Token], args: Args) -> c.Decl:
        output, name, kind_of_rows, kind, by, query = args
        return c.Decl(
            str(name), kind_of_rows, str(kind).lower(), None if by is None else str(by), query, output is not None,
            self.token_span(name), span=self.span(tree),
        )  # fmt: skip

    def output_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def with_query(self, tree: Tree[Token], args: Args) -> tuple[str, c.Query]:
        return str(args[0]), args[1]

    def with_queries(self, tree: Tree[Token], args: Args) -> c.Query:
        *within, query = args
        return evolve(query, within=tuple(within), span=self.span(tree))

    def union_word(self, tree: Tree[Token], args: Args) -> tuple[str, bool]:
        return str(args[0]).lower(), args[1] is not None

    def intersect_word(self, tree: Tree[Token], args: Args) -> tuple[str, bool]:
        return str(args[0]).lower(), args[1] is not None

    def combination(self, tree: Tree[Token], args: Args) -> c.Combined:
        left, (word, every), right = args
        return c.Combined(word, every, left, right, span=self.span(tree))

    def derived(self, tree: Tree[Token], args: Args) -> q.Source:
        query, window, alias = args[0], args[1], args[-1]
        span = self.span(tree)
        if alias is None:
            self.report(
                "syntax-derived", "a query after `from` needs a name", span, "write `(select ...) as name`"
            )
        name = str(alias or "derived")
        return c.Derived(name, name, None, query, window, span=span)

    def ordered(self, tree: Tree[Token], args: Args) -> q.Select:
        body, order, limit = args
        return self.first_of(body, order, limit, self.span(tree))

    def limited(self, tree: Tree[Token], args: Args) -> q.Select:
        return self.first_of(args[0], (), args[1], self.span(tree))

    def first_of(
        self,
        body: q.Select | c.Combined,
        order: tuple[q.Order, ...],
        limit: tuple[int, int] | None,
        span: Span,
    ) -> q.Select:
        """A block with an order and a number of rows; of a combination, one around it."""
        if isinstance(body, c.Combined):
            inner = c.Derived("all", "all", None, c.Query(body, span=body.span), span=body.span)
            body = q.Select((q.Star(span=span),), (inner,), span=span)
        most, before = limit or (None, 0)
        return evolve(body, order=order, limit=most, offset=before, span=span)

    def orders(self, tree: Tree[Token], args: Args) -> tuple[q.Order, ...]:
        return tuple(args)

    def order(self, tree: Tree[Token], args: Args) -> q.Order:
        value, direction, first = args
        return q.Order(value, str(direction).lower() == "desc", first, span=self.span(tree))

    def nulls(self, tree: Tree[Token], args: Args) -> bool:
        return str(args[0]).lower() == "first"

    def limit(self, tree: Tree[Token], args: Args) -> tuple[int | None, int]:
        most, before = args
        return self.whole(most), 0 if before is None else self.whole(before)

    def limit_behind(self, tree: Tree[Token], args: Args) -> tuple[int | None, int]:
        before, most = args
        return None if most is None else self.whole(most), self.whole(before)

    def over_value(self, tree: Tree[Token], args: Args) -> q.Over:
        call, keys, order = args
        span = self.span(tree)
        name = call.function.lower() if isinstance(call, s.Call) else "?"
        if name not in ("row_number", "rank", "dense_rank") or call.args:
            message = "only `row_number()`, `rank()` and `dense_rank()` are over ordered rows"
            help_line = "aggregates are of groups: join with a query that has `group by`"
            self.report("syntax-over", message, span, help_line)
        return q.Over(
            {"row_number": "number", "dense_rank": "dense"}.get(name, name),
            keys or (),
            order or (),
            span=span,
        )

    def nested_value(self, tree: Tree[Token], args: Args) -> q.Nested:
        return q.Nested("value", args[0], span=self.span(tree))

    def nested_call(self, tree: Tree[Token], args: Args) -> q.Nested:
        callee, query = args
        word = callee.name.lower() if isinstance(callee, s.Name) else "?"
        if word not in ("exists", "any", "some", "all"):
            message = "a query is no operand"
            help_line = "one value of a query stands in parentheses of its own: `f((select ...))`"
            self.report("syntax-nested", message, self.span(tree), help_line)
        return q.Nested({"some": "any"}.get(word, word), query, span=self.span(tree))

    def plain_query(self, tree: Tree[Token], args: Args) -> c.Query:
        return c.Query(args[0], span=self.span(tree))

    def stream_query(self, tree: Tree[Token], args: Args) -> c.Query:
        return c.Query(args[1], str(args[0]).lower(), span=self.span(tree))

    def windowed(self, tree: Tree[Token], args: Args) -> q.Source:
        name, window, alias = args[0], args[1], args[-1]
        own = None if alias is None else str(alias)
        return c.Windowed(str(name), own, None, window, span=self.span(tree))

    def now(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Now(span=self.span(tree))

    def unbounded(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Unbounded(span=self.span(tree))

    def range_window(self, tree: Tree[Token], args: Args) -> c.Window:
        keys, length, slide = args
        return c.Range(length, slide, keys or (), span=self.span(tree))

    def rows_window(self, tree: Tree[Token], args: Args) -> c.Window:
        slide = None if args[1] is None else self.whole(args[1])
        return c.Rows(self.whole(args[0]), (), slide, span=self.span(tree))

    def partition_window(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Rows(self.whole(args[1]), args[0], None, args[2], span=self.span(tree))

    def session_window(self, tree: Tree[Token], args: Args) -> c.Window:
        return c.Session(args[1], args[0] or (), span=self.span(tree))

    def length(self, tree: Tree[Token], args: Args) -> c.Length:
        span = self.span(tree)
        if len(args) == 1:
            return micros(self.interval_value(tree, args), span)
        number, unit = args
        count = Fraction(int(number, 16) if number[:2] in ("0x", "0X") else str(number))
        return c.Length(count, None if unit is None else str(unit), span=span)

    def windows_keys(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        (given,), span = args, self.span(tree)
        return tuple(s.Name(name, span=span) for name in ((given,) if isinstance(given, str) else given))

    def windows_table(self, tree: Tree[Token], args: Args) -> Table:
        *words, keys = args if isinstance(args[-1], tuple | None) else (*args, None)
        if len(words) == 2 and str(words[0]).lower() != "table":
            self.report("syntax-window-function", f"unexpected `{words[0]}`", self.token_span(words[0]))
        return Table(str(words[-1]), keys or ())

    def named_value(self, tree: Tree[Token], args: Args) -> Named:
        return Named(str(args[0]), args[1])

    def windows_of(self, tree: Tree[Token], args: Args) -> c.Windowed:
        function, *given = args
        return window_table(self, function, tuple(given), self.span(tree))

    def through_windows(self, tree: Tree[Token], args: Args) -> q.Source:
        alias = None if args[-1] is None else str(args[-1])
        return evolve(args[-2], alias=alias, span=self.span(tree))

    def sized_text(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        name, _ = args
        if name.lower() not in ("char", "varchar"):
            self.report(
                "syntax-type", f"`{name}` takes no length", self.span(tree), "texts are `string` or `char(n)`"
            )
        return s.TypeName("string", span=self.span(tree))

    def whole(self, token: Token) -> int:
        """The value of a whole number."""
        return int(token, 16 if token[:2] in {"0x", "0X"} else 10)
