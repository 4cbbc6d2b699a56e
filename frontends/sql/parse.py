"""The grammar module of select-from-where, and the mixin that builds its trees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from frontends.sql import syntax as q
from frontends.sql.aggregates import has_aggregate
from frontends.sql.intervals import interval
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang.grammar import module
from river.lang.parse import RESERVED, ExprBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args
    from river.source import Span

SQL = module("frontends.sql", "grammar.lark")


GROUP: Final = 32
"""Alternatives of a `case` that stand one inside the other; where there are more, as many groups of them do."""


def group_size(arms: int) -> int:
    """How many alternatives of so many are a group; 1 if there are no groups."""
    size = 1
    while size * GROUP < arms:
        size *= GROUP
    return size


def depth(arm: int, arms: int) -> int:
    """How deep `chosen` puts an alternative, counted from 0, of so many; the other value is where the last one is."""
    size = group_size(arms)
    return arm // size + (1 if size == 1 else 1 + depth(arm % size, size))


def chosen(arms: Sequence[tuple[s.Expr, s.Expr]], other: s.Expr, span: Span) -> s.Expr:
    """The value of the first condition that is true, else the other one.

    Of many alternatives it is first asked in which group one is true: so nothing is deep, and each condition is evaluated
    once, and of one group once more.
    """
    size = group_size(len(arms))
    found = other
    for start in reversed(range(0, len(arms), size)):  # hence `deepening`
        group = arms[start : start + size]
        condition, value = group[-1]
        if len(group) > 1:
            truths = [s.Call("is_true", (each,), span=each.span) for each, _ in group]
            condition = s.joined("or", truths)
            before = list(group[:-1])
            while before and isinstance(before[-1][1], s.NoneValue) and isinstance(value, s.NoneValue):
                before.pop()  # nothing, too: and nothing else would tell its type
            value = chosen(before, value, span)
        found = s.IfExpr(condition, value, found, span=span)
    return found


def _columns_read(expr: s.Expr) -> s.Expr:
    """A list, in which double quotes are those of names."""

    def rewrite(node: s.Node) -> s.Node:
        return s.Name(node.name, span=node.span) if isinstance(node, q.Quoted) else rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))


class SqlBuilder(ExprBuilder):
    """`sql/grammar.lark`."""

    reserved: ClassVar[frozenset[str]] = RESERVED
    deepening: ClassVar[frozenset[str]] = frozenset({"case_value"})

    def deeper(self, child: int, children: int) -> int:
        arms = children - 2  # besides the value that is compared, and the other one
        return depth(min(max(child - 2, 0), arms - 1), arms)

    def select(self, tree: Tree[Token], args: Args) -> q.Select:
        distinct, items, sources, where, group, having, _, qualify = args
        return q.Select(
            items,
            sources,
            where,
            group or (),
            having,
            distinct is not None and not distinct,
            qualify=qualify,
            first_of=distinct or (),
            span=self.span(tree),
        )

    def written_row(self, tree: Tree[Token], args: Args) -> q.Select:
        """A query that reads nothing: one row that is written out."""
        span, values, names = self.span(tree), list[s.Expr](), list[str]()
        for i, item in enumerate(args[0]):
            if (
                isinstance(item, q.Item)
                and isinstance(item.value, s.Name)
                and item.value.name.lower() == "from"
            ):
                place = item.value.span or span  # read as the name of a column
                self.report("syntax-unexpected", "unexpected `from`", place, "say what is selected before it")
                continue
            if isinstance(item, q.Star) or has_aggregate(item.value):
                message = "this is of the rows of a source, and the query has none"
                self.report("syntax-from", message, item.span or span, "write `from` and a source")
                continue
            values.append(item.value)
            names.append(item.name or f"column{i + 1}")
        rows = q.Unnest("", "values", rows=(tuple(values),), columns=tuple(names), span=span)
        return q.Select((q.Star(span=span),), (rows,), span=span)

    def distinct(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...] | None:
        """What the rows are distinct on; nothing: they are different as a whole. None: all rows, as without a word."""
        if args[0].type == "ALL":
            return None
        return args[1] if len(args) > 1 else ()

    def items(self, tree: Tree[Token], args: Args) -> tuple[q.Item | q.Star, ...]:
        return tuple(args)

    def plain_item(self, tree: Tree[Token], args: Args) -> q.Item:
        return q.Item(args[0], span=self.span(tree))

    def named_item(self, tree: Tree[Token], args: Args) -> q.Item:
        return q.Item(args[0], str(args[-1]), span=self.span(tree))

    def star(self, tree: Tree[Token], args: Args) -> q.Star:
        match args:
            case []:
                return q.Star(span=self.span(tree))
            case [s.Name(name)]:
                return q.Star(name, span=self.span(tree))
            case _:
                self.report("syntax-star", "only a source has `.*`", self.span(tree), "write `source.*`")
                return q.Star(span=self.span(tree))

    def star_without(self, tree: Tree[Token], args: Args) -> q.Star:
        *of, _, names = args
        return evolve(self.star(tree, of), without=tuple(map(str, names)))

    def sources(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        groups: list[tuple[q.Source, ...]] = [_as_tuple(arg) for arg in args]
        for group in groups if len(groups) > 1 else ():
            for source in group:
                if source.joining is not None and source.joining.kind in ("right", "full"):
                    message = f"a {source.joining.kind} join stands alone after `from`, without commas"
                    self.report(
                        "syntax-join", message, self.span(tree), "write `cross join` instead of the comma"
                    )
        return tuple(source for group in groups for source in group)

    def join_word(self, tree: Tree[Token], args: Args) -> str:
        words = [str(arg).lower() for arg in args if arg is not None]
        return "inner" if words[0] == "join" else words[0]

    def join_on(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        before, kind, source, condition = args
        span = self.span(tree)
        if (condition is None) != (kind == "cross"):
            what = "has no condition" if kind == "cross" else "says by what: `on` or `using`"
            hint = (
                None
                if kind == "cross"
                else "write `join s on s.k = r.k`, `join s using (k)`, or `cross join s` for all pairs"
            )
            self.report(
                "syntax-join", f"a join that is {kind} {what}", self.tree_span(tree.children[2]), hint
            )
        word = (_as_tuple(before)[-1].alias or "").lower()
        if word in _JOINS:
            self.report("syntax-join", f"there is no {word} join", span, _JOINS[word])
        joining = q.Joining("inner" if kind == "cross" else kind, condition, span=span)
        return (*_as_tuple(before), evolve(source, joining=joining))

    def join_natural(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        before, kind, source = args
        if kind == "cross":
            self.report("syntax-join", "a cross join has no condition", self.span(tree))
        joining = q.Joining(kind, natural=True, span=self.span(tree))
        return (*_as_tuple(before), evolve(source, joining=joining))

    def join_using(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        before, kind, source, columns = args
        if kind == "cross":
            self.report("syntax-join", "a cross join has no condition", self.span(tree))
        joining = q.Joining(kind, using=columns, span=self.span(tree))
        return (*_as_tuple(before), evolve(source, joining=joining))

    def source_of(self, tree: Tree[Token], args: Args) -> q.Source:
        return q.Source(str(args[0]), None if args[-1] is None else str(args[-1]), span=self.span(tree))

    def unnested(self, tree: Tree[Token], args: Args) -> q.Source:
        _, items, ordinality, *alias = args
        name, columns = ([*alias, None, None])[:2]
        return q.Unnest(
            "", str(name) if name is not None else "unnest", items=_columns_read(items), columns=columns or (),
            ordinality=ordinality is not None, span=self.span(tree),
        )  # fmt: skip

    def lateral_view(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        before, word, items, name, column = args
        span = self.span(tree)
        outer = "outer" in str(word).lower()
        joining = q.Joining("left", s.Bool(value=True, span=span), span=span) if outer else None
        columns = () if column is None else (str(column),)
        source = q.Unnest("", str(name), joining, items=_columns_read(items), columns=columns, span=span)
        return (*_as_tuple(before), source)

    def unnest_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Call("unnest", (args[1],), span=self.span(tree))

    def columns(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        return tuple(args)

    def grouping_sets(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Call("grouping sets", args[1], span=self.span(tree))

    def binary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[1]).lower()
        op, left, right = _SPELLED.get(written, written), args[0], args[2]
        match right:
            case q.Nested("any" | "all", _, None) if op in ("==", "!=", "<", "<=", ">", ">="):
                return cast("s.Expr", evolve(right, value=left, op=op, span=self.span(tree)))
            case _:
                return self.compared(op, left, right, self.span(tree))

    def compared(self, op: str, left: s.Expr, right: s.Expr, span: Span) -> s.Expr:
        """Two values with an operator between them; rows are compared part by part, so that one may be none."""
        match left, right:
            case s.TupleValue(mine), s.TupleValue(theirs) if len(mine) == len(theirs) and op in _OF_ROWS:
                pass
            case s.TupleValue(mine), s.TupleValue(theirs) if op in _OF_ROWS:
                message = f"a row of {len(mine)} values is compared with one of {len(theirs)}"
                self.report("syntax-row", message, span, "compare rows of as many values: `(a, b) = (c, d)`")
                return s.Bool(value=False, span=span)
            case _:
                return s.Binary(op, left, right, span=span)

        def part(op: str, a: s.Expr, b: s.Expr) -> s.Expr:
            if isinstance(a, s.NoneValue) or isinstance(b, s.NoneValue):
                return s.Call("unknown", (), span=span)
            return self.compared(op, a, b, span)

        parts = list(zip(mine, theirs, strict=True))
        if op in ("==", "!="):
            equal = s.joined("and", [part("==", a, b) for a, b in parts])
            return self.unless(op == "!=", equal)
        found = part(op, *parts[-1])
        for a, b in reversed(parts[:-1]):
            tied = s.Binary("and", part("==", a, b), found, span=span)
            found = s.Binary("or", part(op[0], a, b), tied, span=span)
        return found

    def without_quotes(self, token: Any) -> Any:
        """See `Builder`; double quotes are those of names, too."""
        if token.type != "STRING":
            return super().without_quotes(token)
        name = self.text(token)
        if not name or name[0] in "$:":
            self.report("syntax-name", f"`{name}` is no name", self.token_span(token), _NO_NAME)
        return token.update(value=name)

    def variable(self, tree: Tree[Token], args: Args) -> s.Expr:
        match args[0].type:
            case "STRING":
                return q.Quoted(str(args[0]), span=self.span(tree))
            case "QUOTED_NAME":
                return super().variable(tree, args)
            case _:
                pass
        match str(args[0]).lower():
            case "null" | "none":
                return s.NoneValue(span=self.span(tree))
            case "true" | "false" as truth:
                return s.Bool(truth == "true", span=self.span(tree))
            case _:
                return super().variable(tree, args)

    def negation(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Unary("not", args[0], span=self.span(tree))

    def is_none(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.joined("and", self.absences(tree, args))

    def is_some(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.joined("and", [s.Unary("not", each, span=each.span) for each in self.absences(tree, args)])

    def absences(self, tree: Tree[Token], args: Args) -> list[s.Expr]:
        """Whether a value is none, or each of a row."""
        span = self.span(tree)
        values = args[0].items if isinstance(args[0], s.TupleValue) and args[0].items else (args[0],)
        return [s.IsNone(value, span=span) for value in values]

    def not_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def between(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, low, high = args
        span = self.span(tree)
        least, most = self.compared("<=", low, value, span), self.compared("<=", value, high, span)
        return self.unless(inverted, s.Binary("and", least, most, span=span))

    def one_of(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, given = args
        span, written = self.span(tree), tree.children[2]
        kind = "" if isinstance(written, str) else str(written.data)
        match kind, given:
            case _, q.Nested("value"):
                nested = evolve(given, word="in", value=value, span=span)
                return self.unless(inverted, cast("s.Expr", nested))
            case "paren", _:
                items: tuple[s.Expr, ...] = (given,)
            case "tuple_value", s.TupleValue(items) if items:
                pass
            case _:  # only `position(a in b)` has it so, which takes it apart
                return self.unless(inverted, s.Call("in", (value, given), span=span))
        return self.unless(inverted, self.among(value, items, span))

    def among(self, value: s.Expr, items: tuple[s.Expr, ...], span: Span) -> s.Expr:
        """Whether a value is one of those that are written out."""
        found: list[s.Expr] = [
            s.Call("unknown", (), span=span)
            if isinstance(item, s.NoneValue)
            else self.compared("==", value, item, span)
            for item in items
        ]
        return s.joined("or", found, span)

    def like(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, word, pattern, escape = args
        escaped = tuple(s.String(_unquoted(token)) for token in (escape,) if token is not None)
        if escape is not None and len(escaped[0].value) != 1:
            message = "what `escape` names is one character"
            self.report("syntax-like", message, self.token_span(escape), "write it so: `escape '!'`")
        name = str(word).lower()
        return self.unless(inverted, s.Call(name, (value, pattern, *escaped), span=self.span(tree)))

    def unary_plus(self, tree: Tree[Token], args: Args) -> s.Expr:
        return args[-1]

    def floor_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, value, unit = args
        span = self.span(tree)
        word = callee.name.lower() if isinstance(callee, s.Name) else "?"
        if word not in ("floor", "ceil", "ceiling"):
            message = "only `floor` and `ceil` take `to`"
            self.report("syntax-from", message, span, "write `floor(t to hour)`")
        part = s.String(str(unit).lower(), span=span)
        begin = s.Call("date_trunc", (part, value), span=span)
        if word == "floor":
            return begin
        end = s.Call("timestampadd", (part, s.Int(1), begin), span=span)
        return chosen([(s.Binary("==", begin, value, span=span), value)], end, span)

    def is_truth(self, tree: Tree[Token], args: Args) -> s.Expr:
        if str(args[1]).lower() == "unknown":
            return s.IsNone(args[0], span=self.span(tree))
        return s.Call(f"is_{str(args[1]).lower()}", (args[0],), span=self.span(tree))

    def is_not_truth(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Unary("not", self.is_truth(tree, args), span=self.span(tree))

    def alike(self, tree: Tree[Token], args: Args) -> s.Expr:
        left, right = args
        if isinstance(right, s.NoneValue):
            return s.IsNone(left, span=self.span(tree))
        return s.Call("alike", (left, right), span=self.span(tree))

    def distinct_from(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Unary("not", self.alike(tree, args), span=self.span(tree))

    def unless(self, inverted: bool | None, condition: s.Expr) -> s.Expr:
        """The condition, or its opposite."""
        return s.Unary("not", condition, span=condition.span) if inverted else condition

    def case(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, s.Expr]:
        return args[0], args[1]

    def case_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        subject, *cases, other = args
        span = self.span(tree)
        arms = [
            (when if subject is None else self.compared("==", subject, when, when.span or span), then)
            for when, then in cases
        ]
        return chosen(arms, s.NoneValue(span=span) if other is None else other, span)

    def count_all(self, tree: Tree[Token], args: Args) -> s.Expr:
        span = self.span(tree)
        if not isinstance(args[0], s.Name) or args[0].name.lower() != "count":
            near = isinstance(args[0], s.Name) and closest(args[0].name.lower(), ("count",))
            self.report("syntax-star", "only `count` takes `*`", span, near or None)
        return s.Call("count", (), span=span)

    def call(self, tree: Tree[Token], args: Args) -> s.Expr:
        found = super().call(tree, args)
        match found:
            case s.Call(name, values) if name.lower() == "row" and len(values) > 1:
                return s.TupleValue(cast("tuple[s.Expr, ...]", values), span=found.span)
            case s.Call(name, (s.Call("in", (part, text)),)) if name.lower() == "position":
                return s.Call("position", (text, part), span=found.span)
            case s.Call(name, (s.Name(unit, span=span), *rest)) if (
                name.lower() in OF_UNITS and len(rest) == 2
            ):
                return evolve(
                    found, args=(s.String(unit, span=span), *rest)
                )  # no column, whatever is called so
            case s.Call(name, (s.Name(unit, span=span), value)) if name.lower() in (
                "date_trunc",
                "date_part",
            ):
                return evolve(found, args=(s.String(unit.lower(), span=span), value))
            case _:
                return found

    def cast_type(self, tree: Tree[Token], args: Args) -> s.Expr:
        span = self.span(tree)
        name = re.sub(r"(?i)\s+with(out)?(\s+local)?\s+time\s+zone$", "", span.text)
        return s.String(re.sub(r"\s+", "", name), span=span)

    def cast_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, value, kind = args
        name = callee.name.lower() if isinstance(callee, s.Name) else "?"
        if name not in ("cast", "try_cast"):
            self.report("syntax-cast", "only `cast` takes `as`", self.span(tree), "write `cast(x as int)`")
        return s.Call(name, (value, kind), span=self.span(tree))

    def returning_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, *given = args
        at = next(i for i, each in enumerate(given) if getattr(each, "type", "") == "RETURNING")
        name, kind = callee.name if isinstance(callee, s.Name) else "?", given[at + 1]
        if name.lower() != "json_value":
            message = "only `json_value` says what it is returning"
            self.report("syntax-cast", message, self.span(tree), "write `cast(x as int)`")
        found = s.Call(name, tuple(given[:at]), span=self.span(tree))
        return s.Call("cast", (found, kind), span=self.span(tree))

    def array_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Call("array of", args[1], span=self.span(tree))

    def cast_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Call("cast", (args[0], args[1]), span=self.span(tree))

    def from_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, first, second, third = args
        span = self.span(tree)
        more = () if third is None else (third,)
        match callee, first:
            case s.Name(name), s.Name(part) if name.lower() == "extract" and not more:
                return s.Call("extract", (s.String(part.lower(), span=first.span), second), span=span)
            case s.Name(name), _ if name.lower() in ("substring", "substr"):
                return s.Call("substring", (first, second, *more), span=span)
            case s.Name(name), _ if name.lower() == "trim" and not more:
                return s.Call("trim", (second, first), span=span)
            case _:
                message = "`from` stands between operands of `extract`, `substring` and `trim` alone"
                self.report("syntax-from", message, span, "write commas between operands")
                return s.NoneValue(span=span)

    def filtered(self, tree: Tree[Token], args: Args) -> s.Expr:
        call, _, condition = args
        return s.Call("filter", (call, condition), span=self.span(tree))

    def timestamp_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        from river.lang.operations import times

        span, text = self.span(tree), _quoted_part(args[0])
        found = times.parse_time(text)
        if found is None:
            message = f"`{text}` is no time"
            self.report("syntax-time", message, span, "write it as in `timestamp '2026-01-31 12:00:00'`")
        time = s.Call("time", (s.Int(found or 0),), span=span)
        if re.match(r"(?i)date\s*'", args[0]):
            return s.Call("cast", (time, s.String("date")), span=span)
        return time

    def interval_value(self, tree: Tree[Token], args: Args) -> s.Call:
        text = _quoted_part(args[0])
        if "'" not in args[0]:
            text = re.sub(r"(?i)^interval", "", args[0])
        units = (
            re.sub(r"\([^()]*\)", " ", str(args[0]).rpartition("'")[2]).lower().split()
            if "'" in args[0]
            else []
        )
        return self.interval_of(text, units, self.span(tree))

    def interval_of(self, text: str, units: Sequence[str], span: Span) -> s.Call:
        """What `interval 'text' unit` is: `duration(n)`, or `months(n)` with one behind it."""
        found = interval(text, units[:1], units[2:])
        if found is None:
            help_line = "write `interval '1 month 2 days'`, `interval '1-2' year to month` or `interval '1 2:30' day to minute`"
            self.report("syntax-interval", "this is no length of time", span, help_line)
            return s.Call("duration", (s.Int(0),), span=span)
        months, micros = found
        if max(abs(micros), abs(months)) >= 1 << 63:
            self.report("syntax-interval", "no length of time is that long", span, "write a shorter one")
            months, micros = 0, 0
        length = s.Call("duration", (s.Int(micros),), span=span)
        if not months:
            return length
        return s.Call("months", (s.Int(months), *((length,) if micros else ())), span=span)

    def distinct_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, *values = args
        name = callee.name if isinstance(callee, s.Name) else "?"
        return s.Call(f"{name}.distinct", tuple(values), span=self.span(tree))

    def all_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        """`count(all x)`, which means `count(x)`."""
        callee, _, *values = args
        name = callee.name if isinstance(callee, s.Name) else "?"
        return s.Call(name, tuple(values), span=self.span(tree))

    def quoted_value(self, tree: Tree[Token], args: list[Any]) -> s.Expr:
        return s.String(_unquoted(args[0]), span=self.span(tree))


_NO_NAME = (
    "names in double quotes are not empty, and do not begin with `$` or `:`; texts stand in single quotes"
)

_JOINS = {
    "asof": "a relation is seen as it is at the row's instant: join with `s[now]`",
    "semi": "write `where exists (select ...)`",
    "anti": "write `where not exists (select ...)`",
}
"""Words of joins that would be read as names."""

_SPELLED = {"=": "==", "<>": "!=", "mod": "%"}
_OF_ROWS = ("==", "!=", "<", "<=", ">", ">=")


OF_UNITS: Final = frozenset({"date_add", "dateadd", "timestampadd", "date_diff", "datediff", "timestampdiff"})
"""Functions whose first operand of three names a unit of time."""


def _as_tuple(sources: q.Source | tuple[q.Source, ...]) -> tuple[q.Source, ...]:
    return sources if isinstance(sources, tuple) else (sources,)


def _unquoted(token: str) -> str:
    return token[1:-1].replace("''", "'")


def _quoted_part(token: str) -> str:
    """What stands between the quotes of a literal with a word before it."""
    return str(token).partition("'")[2].rpartition("'")[0]
