"""Text to syntax: the grammar composed of the shared modules and Sawzall's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from frontends.sawzall import syntax as z
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, TYPES, compose, module
from river.lang.parse import RESERVED, ExprBuilder, TypesBuilder

if TYPE_CHECKING:
    from lark import Token, Tree

    from river.lang.parse import Args
    from river.source import Source

SAWZALL = module("frontends.sawzall", "grammar.lark")
PARSER = compose(LEXICAL, TYPES, EXPR, SAWZALL, start=("program",))

WORDS = frozenset({"input", "static", "type", "do", "switch", "case", "default", "when", "emit"})
"""Words that name nothing in Sawzall, besides those of the operator language."""


def parse(source: Source) -> z.Program:
    """The declarations and statements of the text.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    return SawzallBuilder(source).build(PARSER.parse(source))


class SawzallBuilder(TypesBuilder, ExprBuilder):
    """`sawzall/grammar.lark`."""

    reserved: ClassVar[frozenset[str]] = RESERVED | WORDS

    # -- declarations

    def program(self, tree: Tree[Token], args: Args) -> z.Program:
        return z.Program(_flat(args), span=self.span(tree))

    def type_decl(self, tree: Tree[Token], args: Args) -> z.Item:
        return z.TypeDecl(str(args[0]), args[1], span=self.span(tree))

    def static_decl(self, tree: Tree[Token], args: Args) -> z.Item:
        return z.StaticDecl(str(args[0]), args[1], args[2], span=self.span(tree))

    def input_decl(self, tree: Tree[Token], args: Args) -> z.Item:
        return z.InputDecl(str(args[0]), args[1], span=self.span(tree))

    def function_decl(self, tree: Tree[Token], args: Args) -> z.Item:
        name, params, result, body = args
        return z.FunctionDecl(str(name), params, result, body.body, span=self.token_span(name))

    def params(self, tree: Tree[Token], args: Args) -> tuple[z.Param, ...]:
        return tuple(args)

    def param(self, tree: Tree[Token], args: Args) -> z.Param:
        return z.Param(str(args[0]), args[1], span=self.span(tree))

    def table_decl(self, tree: Tree[Token], args: Args) -> z.Item:
        name, kind, limit, *index, value, weight = args
        return z.TableDecl(
            str(name), str(kind), None if limit is None else int(limit, 0), tuple(index), value, weight,
            self.token_span(kind), span=self.span(tree),
        )  # fmt: skip

    def table_index(self, tree: Tree[Token], args: Args) -> z.Element:
        return args[0]

    def element(self, tree: Tree[Token], args: Args) -> z.Element:
        return z.Element(None if args[0] is None else str(args[0]), args[1], span=self.span(tree))

    # -- types

    def array_of(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("list", (args[0],), span=self.span(tree))

    def map_of(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("map", (args[0], args[1]), span=self.span(tree))

    # -- statements

    def simple_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return args[0]

    def empty(self, tree: Tree[Token], args: Args) -> tuple[z.Stmt, ...]:
        return ()

    def block(self, tree: Tree[Token], args: Args) -> z.Block:
        return z.Block(_flat(args), span=self.span(tree))

    def emit(self, tree: Tree[Token], args: Args) -> z.Stmt:
        name, *index, value, weight = args
        return z.Emit(str(name), tuple(index), value, weight, self.token_span(name), span=self.span(tree))

    def emit_index(self, tree: Tree[Token], args: Args) -> s.Expr:
        return args[0]

    def break_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Break(span=self.span(tree))

    def continue_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Continue(span=self.span(tree))

    def return_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Return(args[0], span=self.span(tree))

    def do_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.DoWhile(_body(args[0]), args[1], span=self.span(tree))

    def switch_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        value, *cases, default = args
        return z.Switch(value, tuple(cases), default or (), span=self.span(tree))

    def case(self, tree: Tree[Token], args: Args) -> z.Case:
        values = tuple(a for a in args if isinstance(a, s.Expr))
        return z.Case(values, _flat(args[len(values) :]), span=self.span(tree))

    def default(self, tree: Tree[Token], args: Args) -> tuple[z.Stmt, ...]:
        return _flat(args)

    def if_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        cond, then, *other = args
        return z.If(cond, _body(then), _body(other[0]) if other else (), span=self.span(tree))

    def while_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.While(args[0], _body(args[1]), span=self.span(tree))

    def for_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        init, cond, step, body = args
        if isinstance(step, z.Declare):
            self.report("syntax-statement", "a step declares nothing", self.tree_span(tree.children[2]))
        return z.For(init, cond, step, _body(body), span=self.span(tree))

    def when_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt:
        *quantifiers, cond, body = args
        return z.When(tuple(quantifiers), cond, _body(body), span=self.span(tree))

    def quantifier(self, tree: Tree[Token], args: Args) -> z.Quantifier:
        name, quantity, type_ = args
        words: dict[str, z.Quantity] = {"some": "some", "each": "each", "all": "all"}
        return z.Quantifier(str(name), words[quantity], type_, span=self.span(tree))

    def declare(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Declare(str(args[0]), args[1], args[2], span=self.span(tree))

    def define(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Declare(str(args[0]), None, args[1], span=self.span(tree))

    def assign(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return z.Assign(args[0], args[1], span=self.span(tree))

    def increment(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return self.step(tree, args, 1)

    def decrement(self, tree: Tree[Token], args: Args) -> z.Stmt:
        return self.step(tree, args, -1)

    def step(self, tree: Tree[Token], args: Args, by: Literal[1, -1]) -> z.Stmt:
        """`place++` or `place--`."""
        return z.Step(args[0], by, span=self.span(tree))

    def call_stmt(self, tree: Tree[Token], args: Args) -> z.Stmt | tuple[z.Stmt, ...]:
        (call,) = args
        if not isinstance(call, s.Call):
            hint = "a statement is a call, or an assignment with `=`"
            self.report("syntax-statement", "this value is not used", self.span(tree), hint)
            return ()
        return z.Do(call, span=self.span(tree))

    # -- expressions

    def binary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[1])
        return s.Binary(_SPELLED.get(written, written), args[0], args[2], span=self.span(tree))

    def unary(self, tree: Tree[Token], args: Args) -> s.Expr:
        written = str(args[0])
        return s.Unary(_SPELLED.get(written, written), args[1], span=self.span(tree))

    def raw_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.String(args[0][1:-1], span=self.span(tree))

    def char_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        text = self.text(args[0]) if args[0] != "'\\''" else "'"
        if len(text) != 1:
            hint = 'a string is written `"..."`'
            self.report("syntax-character", f"`{args[0]}` is not one character", self.span(tree), hint)
            return s.Int(0, span=self.span(tree))
        return s.Int(ord(text), span=self.span(tree))

    def array_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.ListValue(tuple(args), span=self.span(tree))

    def map_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        """Fields when every key is a bare name; `{(x): 1}` has the value of x as its key."""
        if args and all(bare for bare, _, _ in args):
            fields = tuple(s.FieldValue(key.name, value, span=key.span) for _, key, value in args)
            return s.RecordValue(fields, span=self.span(tree))
        return s.MapValue(tuple((key, value) for _, key, value in args), span=self.span(tree))

    def pair(self, tree: Tree[Token], args: Args) -> tuple[bool, s.Expr, s.Expr]:
        key = tree.children[0]
        return not isinstance(key, str) and key.data == "variable", args[0], args[1]


_SPELLED = {"&&": "and", "||": "or", "!": "not"}


def _flat(args: Args) -> tuple[Any, ...]:
    """Items or statements without the empty ones."""
    return tuple(a for a in args if a != ())


def _body(statement: z.Stmt | tuple[z.Stmt, ...]) -> tuple[z.Stmt, ...]:
    """The statements under a head: those of a block, or the only one."""
    match statement:
        case z.Block(body):
            return body
        case tuple():
            return statement
        case _:
            return (statement,)
