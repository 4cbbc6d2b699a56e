"""Text to syntax: River's grammar modules and our own, joined, and one method for each of our rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, TYPES, compose, module
from river.lang.parse import ExprBuilder, TypesBuilder

from . import syntax as y

if TYPE_CHECKING:
    from river.lang.lalr import Token, Tree
    from river.lang.parse import Args
    from river.source import Source

PARSER = compose(LEXICAL, TYPES, EXPR, module("river_steps", "grammar.lark"), start=("program",))


def parse(source: Source) -> y.Program:
    """The pipeline that the text says. Raises: Rejected with `syntax-*` diagnostics."""
    return StepsBuilder(source).build(PARSER.parse(source))


class StepsBuilder(TypesBuilder, ExprBuilder):
    """`grammar.lark`."""

    def program(self, tree: Tree[Token], args: Args) -> y.Program:
        origin, *steps, sink = args
        return y.Program(origin, tuple(steps), sink, span=self.span(tree))

    def origin(self, tree: Tree[Token], args: Args) -> y.Source:
        return y.Source(str(args[0]), args[1], span=self.span(tree))

    def keep(self, tree: Tree[Token], args: Args) -> y.Step:
        return y.Keep(args[0], span=self.span(tree))

    def map(self, tree: Tree[Token], args: Args) -> y.Step:
        return y.Map(args[0], span=self.span(tree))

    def count(self, tree: Tree[Token], args: Args) -> y.Step:
        return y.Count(tuple(args), span=self.span(tree))

    def key(self, tree: Tree[Token], args: Args) -> s.Name:
        return s.Name(str(args[0]), span=self.span(tree))

    def sink(self, tree: Tree[Token], args: Args) -> y.Sink:
        return y.Sink(str(args[0]), span=self.span(tree))
