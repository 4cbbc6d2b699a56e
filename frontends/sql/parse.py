"""The grammar module of select-from-where, and the mixin that builds its trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from frontends.sql import syntax as q
from river.lang import syntax as s
from river.lang.grammar import module
from river.lang.parse import RESERVED, ExprBuilder

if TYPE_CHECKING:
    from lark import Token, Tree

    from river.lang.parse import Args

SQL = module("frontends.sql", "grammar.lark")


class SqlBuilder(ExprBuilder):
    """`sql/grammar.lark`."""

    reserved: ClassVar[frozenset[str]] = RESERVED
    deepening: ClassVar[frozenset[str]] = frozenset({"case_value"})

    def select(self, tree: Tree[Token], args: Args) -> q.Select:
        distinct, items, sources, where, group, having = args
        return q.Select(
            items, sources, where, group or (), having, distinct is not None, span=self.span(tree)
        )

    def distinct(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def items(self, tree: Tree[Token], args: Args) -> tuple[q.Item | q.Star, ...]:
        return tuple(args)

    def plain_item(self, tree: Tree[Token], args: Args) -> q.Item:
        return q.Item(args[0], span=self.span(tree))

    def named_item(self, tree: Tree[Token], args: Args) -> q.Item:
        return q.Item(args[0], str(args[1]), span=self.span(tree))

    def star(self, tree: Tree[Token], args: Args) -> q.Star:
        match args:
            case []:
                return q.Star(span=self.span(tree))
            case [s.Name(name)]:
                return q.Star(name, span=self.span(tree))
            case _:
                self.report("syntax-star", "only a source has `.*`", self.span(tree), "write `source.*`")
                return q.Star(span=self.span(tree))

    def sources(self, tree: Tree[Token], args: Args) -> tuple[q.Source, ...]:
        return tuple(args)

    def source_of(self, tree: Tree[Token], args: Args) -> q.Source:
        return q.Source(str(args[0]), None if args[1] is None else str(args[1]), span=self.span(tree))

    def columns(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, ...]:
        return tuple(args)

    def binary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[1]).lower()
        return s.Binary(_SPELLED.get(written, written), args[0], args[2], span=self.span(tree))

    def variable(self, tree: Tree[Token], args: Args) -> s.Expr:
        match str(args[0]).lower():
            case "null" | "none":
                return s.NoneValue(span=self.span(tree))
            case "true" | "false" as truth:
                return s.Bool(truth == "true", span=self.span(tree))
            case _:
                return super().variable(tree, args)

    def negation(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Unary("not", args[0], span=self.span(tree))

    def is_some(self, tree: Tree[Token], args: Args) -> s.Expr:
        span = self.span(tree)
        return s.Unary("not", s.IsNone(args[0], span=span), span=span)

    def not_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def between(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, low, high = args
        span = self.span(tree)
        least, most = s.Binary("<=", low, value, span=span), s.Binary("<=", value, high, span=span)
        return self.unless(inverted, s.Binary("and", least, most, span=span))

    def one_of(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, *items = args
        span = self.span(tree)
        found = [s.Binary("==", value, item, span=span) for item in items]
        return self.unless(inverted, s.joined("or", found, span))

    def like(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, inverted, pattern = args
        if not isinstance(pattern, s.String):
            message, help_line = "the pattern of `like` is a text", "write it out: `k like 'a%'`"
            self.report("syntax-like", message, self.span(tree), help_line)
        return self.unless(inverted, s.Call("like", (value, pattern), span=self.span(tree)))

    def unless(self, inverted: bool | None, condition: s.Expr) -> s.Expr:
        """The condition, or its opposite."""
        return s.Unary("not", condition, span=condition.span) if inverted else condition

    def case(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, s.Expr]:
        return args[0], args[1]

    def case_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        subject, *cases, other = args
        span = self.span(tree)
        found = s.NoneValue(span=span) if other is None else other
        for when, then in reversed(cases):  # hence `deepening`
            condition = when if subject is None else s.Binary("==", subject, when, span=when.span)
            found = s.IfExpr(condition, then, found, span=span)
        return found

    def count_all(self, tree: Tree[Token], args: Args) -> s.Expr:
        span = self.span(tree)
        if not isinstance(args[0], s.Name) or args[0].name.lower() != "count":
            self.report("syntax-star", "only `count` takes `*`", span)
        return s.Call("count", (), span=span)

    def distinct_call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, value = args
        name = callee.name if isinstance(callee, s.Name) else "?"
        return s.Call(f"{name}.distinct", (value,), span=self.span(tree))

    def quoted_value(self, tree: Tree[Token], args: list[Any]) -> s.Expr:
        return s.String(args[0][1:-1].replace("''", "'"), span=self.span(tree))


_SPELLED = {"=": "==", "<>": "!="}
