"""Text to syntax: one builder mixin per grammar module, composed by whoever composes the grammar.

A builder's methods bear the names of the grammar's rules; each gets the tree and its children already built. The walk
is iterative, so a long text needs no deep stack; a deep one is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from river.diagnostics import Diagnostic, Rejected
from river.lang import syntax as s
from river.lang.grammar import EXPR, LEXICAL, QUOTED_NAMES, STMT, TYPES, compose
from river.lang.lalr import Tree
from river.nesting import MAX_DEPTH, room
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.lang.lalr import Token

    Args = list[Any]  # children: tokens, nodes that are already built, None for what is left out

RESERVED = s.RESERVED
BEHIND_A_POINT = frozenset({"trap"})
"""Those that stand behind a point in the name of an operation, as in `div.trap`."""

PORT_RESERVED = frozenset({"merge", "mark"})
"""Words that name no port, because `on merge(...)` and `on mark(...)` are handlers of their own."""

PARSER = compose(LEXICAL, TYPES, EXPR, STMT, QUOTED_NAMES, start=("expr", "type", "block", "operator"))
"""The operator language alone."""

_CONNECTIVES = frozenset({"and", "or", "&&", "||"})
"""Words between operands that may be grouped in any way."""


class Builder:
    """The walk itself, and what all mixins need."""

    reserved: ClassVar[frozenset[str]] = RESERVED
    behind_a_point: ClassVar[frozenset[str]] = BEHIND_A_POINT
    shallower: ClassVar[str] = "name parts of it by `let`, or move them into a `fn`"
    """What makes a text less deep."""
    deepening: ClassVar[frozenset[str]] = frozenset()
    """Rules that put children inside of what becomes of those before them: how deep, `deeper` says."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    def build(self, tree: Tree[Token]) -> Any:
        """What the method of the root's rule makes of the tree.

        Raises: Rejected with everything that the methods reported; Rejected("syntax-too-deep").
        """
        room()
        order = self._preorder(tree)
        methods: dict[str, Callable[[Tree[Token], Args], Any]] = {}
        built: dict[int, Any] = {}
        for node in reversed(order):
            rule = node.data
            method = methods.get(rule)
            if method is None:
                method = methods[rule] = getattr(self, rule)
            args = [built.pop(id(child), child) for child in node.children]
            built[id(node)] = method(node, args)
        if self.diagnostics:
            raise Rejected(sorted(self.diagnostics, key=lambda d: d.span.start if d.span else 0))
        return built[id(tree)]

    def _preorder(self, tree: Tree[Token]) -> list[Tree[Token]]:
        """All subtrees, each before its children; reserved words and depth are checked on the way."""
        order: list[Tree[Token]] = []
        stack = [(tree, 1)]
        while stack:
            node, depth = stack.pop()
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise Rejected([Diagnostic("syntax-too-deep", message, self.span(node), help=self.shallower)])
            order.append(node)
            if node.data in ("binary", "c_binary"):
                self._balance(node)
            children: list[Any] = node.children  # with None for what is left out
            deepens = node.data in self.deepening
            for i, child in enumerate(children, 1):
                if isinstance(child, str):
                    child = children[i - 1] = self.without_quotes(child)
                    if not (node.data == "member" and child in self.behind_a_point):
                        self._check_name(child)
                elif child is not None:
                    stack.append((child, depth + (self.deeper(i, len(children)) if deepens else 1)))
        return order

    def deeper(self, child: int, children: int) -> int:
        """How many levels below the node of a rule in `deepening` its child of that number stands, counted from 1."""
        del children
        return child

    def _balance(self, node: Tree[Token]) -> None:
        """Regroups the operands of a long chain of one `and` or `or` below `node`, so that the chain is not deep.

        The words between operands move along, so that the text's order is that of the tree.
        """
        word = str(node.children[1]).lower()
        if word not in _CONNECTIVES:
            return
        operands: list[Any] = []
        words: list[Any] = []
        at: Any = node
        while not isinstance(at, str) and at.data == node.data and str(at.children[1]).lower() == word:
            operands.append(at.children[2])
            words.append(at.children[1])
            at = at.children[0]
        operands.append(at)
        if len(operands) <= s.LONG:
            return
        operands.reverse()
        words.reverse()

        def tree(first: int, end: int) -> Any:
            if end - first == 1:
                return operands[first]
            middle = (first + end) // 2
            parts = [tree(first, middle), words[middle - 1], tree(middle, end)]
            return Tree[Any](node.data, parts, parts[0].start_pos, parts[2].end_pos)

        node.children = tree(0, len(operands)).children

    def without_quotes(self, token: Any) -> Any:
        """A token; one in quotes that is a name, as that name."""
        if token.type == "QUOTED_NAME":
            return token.update(value=token[1:-1].replace("``", "`"))
        return token

    def _check_name(self, token: Any) -> None:
        if token in self.reserved and token.type in {"NAME", "CAPITAL"}:
            self.report("syntax-reserved", f"`{token}` is a reserved word", self.token_span(token))

    def report(self, code: str, message: str, span: Span, help_line: str | None = None) -> None:
        """Notes a mistake; `build` raises all of them."""
        self.diagnostics.append(Diagnostic(code, message, span, help=help_line))

    def span(self, tree: Tree[Token]) -> Span:
        """The characters of a tree."""
        return Span(self.source, tree.start_pos or 0, tree.end_pos or 0)

    def token_span(self, token: Token) -> Span:
        """The characters of a token."""
        return Span(self.source, token.start_pos, token.end_pos)

    def tree_span(self, tree: Token | Tree[Token]) -> Span:
        """The characters of a token or of a tree."""
        return self.token_span(tree) if isinstance(tree, str) else self.span(tree)


class TypesBuilder(Builder):
    """`types.lark`."""

    def path(self, tree: Tree[Token], args: Args) -> str:
        return ".".join(args)

    def named_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        name, *rest = args
        return s.TypeName(str(name), tuple(a for a in rest if a is not None), span=self.span(tree))

    def sized_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("array", (args[0], args[1]), span=self.span(tree))

    def decimal_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TypeName("decimal", (args[0], args[1]), span=self.span(tree))

    def optional_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.OptionalType(args[0], span=self.span(tree))

    def tuple_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.TupleType(tuple(args), span=self.span(tree))

    def hole_type(self, tree: Tree[Token], args: Args) -> s.TypeExpr:
        return s.HoleType(args[0][1:], span=self.span(tree))

    def record_type(self, tree: Tree[Token], args: Args) -> s.RecordType:
        return s.RecordType(tuple(args), span=self.span(tree))

    def field_type(self, tree: Tree[Token], args: Args) -> s.FieldType:
        return s.FieldType(str(args[0]), args[1], span=self.span(tree))

    def splice_type(self, tree: Tree[Token], args: Args) -> s.SpliceType:
        return s.SpliceType(args[0][1:], span=self.span(tree))

    def each_type(self, tree: Tree[Token], args: Args) -> s.EachType:
        name, hole, record = args
        return s.EachType(str(name), hole[1:], record.fields, span=self.span(tree))


class ExprBuilder(Builder):
    """`expr.lark`."""

    def binary(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Binary(str(args[1]), args[0], args[2], span=self.span(tree))

    def shift(self, tree: Tree[Token], args: Args) -> s.Expr:
        (left, operator), right = args
        return s.Binary(operator, left, right, span=self.span(tree))

    def shift_right(self, tree: Tree[Token], args: Args) -> tuple[s.Expr, str]:
        left, *signs = args
        if signs[-1].start_pos - signs[0].start_pos != len(signs) - 1:
            self.report(
                "syntax-unexpected", "unexpected `>`", self.token_span(signs[1]), "a shift is written `>>`"
            )
        return left, ">" * len(signs)

    def is_none(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.IsNone(args[0], span=self.span(tree))

    def unary(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Unary(str(args[0]), args[1], span=self.span(tree))

    def member(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, name = args
        if name.type == "INT" and not name.isdecimal():
            self.report("syntax-number", f"`{name}` is not a position in a tuple", self.token_span(name))
        return s.Member(value, str(name), span=self.span(tree))

    def index(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Index(args[0], args[1], span=self.span(tree))

    def slice(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Slice(args[0], args[1], args[2], span=self.span(tree))

    def force(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Force(args[0], span=self.span(tree))

    def args(self, tree: Tree[Token], args: Args) -> tuple[s.Argument, ...]:
        return tuple(args)

    def call(self, tree: Tree[Token], args: Args) -> s.Expr:
        callee, arguments = args
        target = tree.children[0]
        if not isinstance(target, str) and target.data == "hole":
            return s.Hole(callee.name, arguments, span=self.span(tree))
        path = _path(target)
        if path is None:
            hint = "only a name, a dotted name, or a `#parameter` can be called"
            self.report("syntax-callee", "this cannot be called", self.tree_span(target), hint)
            return s.NoneValue(span=self.span(tree))
        return s.Call(path, arguments, span=self.span(tree))

    def function(self, tree: Tree[Token], args: Args) -> s.Lambda:
        return s.Lambda(args[0], args[1], span=self.span(tree))

    def names(self, tree: Tree[Token], args: Args) -> tuple[str, ...]:
        return tuple(str(a) for a in args if a is not None)

    def variable(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Name(str(args[0]), span=self.span(tree))

    def state(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Var(args[0][1:], span=self.span(tree))

    def hole(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Hole(args[0][1:], span=self.span(tree))

    def int_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        text = str(args[0])
        if len(text) > 1_000:  # Python itself refuses long decimals, at a length that the user may configure
            self.report("syntax-number", "a whole number of more than 1000 digits", self.span(tree))
            return s.Int(0, span=self.span(tree))
        return s.Int(int(text, 16 if text[:2] in {"0x", "0X"} else 10), span=self.span(tree))

    def float_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        value = float(args[0])
        if value == float("inf"):
            self.report(
                "syntax-number", f"`{args[0]}` is larger than any float", self.span(tree), "write `inf()`"
            )
        return s.Float(value, span=self.span(tree))

    def string_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.String(self.text(args[0]), span=self.span(tree))

    def bytes_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        token: Token = args[0]
        if not token.isascii():
            self.report("syntax-string", "a byte beyond ASCII is written \\xHH", self.span(tree))
            return s.Bytes(b"", span=self.span(tree))
        return s.Bytes(self.unescaped(token, 2, binary=True).encode("latin-1"), span=self.span(tree))

    def text(self, token: Token) -> str:
        """The value of a string token."""
        return self.unescaped(token, 1, binary=False)

    def unescaped(self, token: Token, start: int, *, binary: bool) -> str:
        """What the token's characters from `start` to the closing quote say."""
        body = str(token)[start:-1]
        if "\\" not in body:
            return body
        parts: list[str] = []
        end = 0
        for found in _ESCAPE.finditer(body):
            parts.append(body[end : found.start()])
            character = _escaped(found[1], binary=binary)
            if character is None:
                at = token.start_pos + start + found.start()
                span = Span(self.source, at, at + len(found[0]))
                other = "\\xHH" if binary else "\\u{HHHH}"
                hint = f'escapes are \\n \\r \\t \\0 \\\\ \\" and {other}'
                self.report("syntax-string", f"`{found[0]}` is not a character", span, hint)
            else:
                parts.append(character)
            end = found.end()
        return "".join(parts) + body[end:]

    def true_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Bool(True, span=self.span(tree))

    def false_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.Bool(False, span=self.span(tree))

    def none_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.NoneValue(span=self.span(tree))

    def if_expr(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.IfExpr(args[0], args[1], args[2], span=self.span(tree))

    def paren(self, tree: Tree[Token], args: Args) -> s.Expr:
        return args[0]

    def tuple_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.TupleValue(tuple(args), span=self.span(tree))

    def list_value(self, tree: Tree[Token], args: Args) -> s.Expr:
        return s.ListValue(tuple(args), span=self.span(tree))

    def comprehension(self, tree: Tree[Token], args: Args) -> s.Expr:
        value, first, second, over, cond = args
        return s.Comprehension(value, _names(first, second), over, cond, span=self.span(tree))

    def range(self, tree: Tree[Token], args: Args) -> s.Range:
        return s.Range(args[0], args[1], span=self.span(tree))

    def braces(self, tree: Tree[Token], args: Args) -> s.Expr:
        """A record when every key is a bare name, else a map; `{}` is a map without entries.

        `{(x): 1}` is a map with the value of x as its key.
        """
        items: list[Any] = args
        if items and all(isinstance(item, s.EachValue) or _bare(item[0]) for item in items):
            fields = tuple(
                item if isinstance(item, s.EachValue) else s.FieldValue(item[1].name, item[2], span=item[3])
                for item in items
            )
            return s.RecordValue(fields, span=self.span(tree))
        for item in items:
            if isinstance(item, s.EachValue):
                hint = "a map has no fields; name every field of a record by a bare name"
                self.report("syntax-record", "`#each` in a map", item.span or self.span(tree), hint)
                return s.MapValue((), span=self.span(tree))
        return s.MapValue(tuple((item[1], item[2]) for item in items), span=self.span(tree))

    def entry(self, tree: Tree[Token], args: Args) -> tuple[Any, s.Expr, s.Expr, Span]:
        return tree.children[0], args[0], args[1], self.span(tree)

    def each_value(self, tree: Tree[Token], args: Args) -> s.EachValue:
        name, hole, body = args
        if isinstance(body, s.RecordValue):
            fields = body.fields
        else:
            fields = ()
            if body.items:
                self.report("syntax-record", "`#each` makes fields: their keys are bare names", body.span)
        return s.EachValue(str(name), hole[1:], fields, span=self.span(tree))


class StmtBuilder(TypesBuilder, ExprBuilder):
    """`stmt.lark`."""

    def block(self, tree: Tree[Token], args: Args) -> s.Block:
        return s.Block(tuple(args), span=self.span(tree))

    def let(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Let(str(args[0]), args[1], args[2], span=self.span(tree))

    def var(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.VarDecl(str(args[0]), args[1], args[2], span=self.span(tree))

    def assign(self, tree: Tree[Token], args: Args) -> s.Stmt:
        self._place(tree.children[0])
        return s.Assign(args[0], args[1], span=self.span(tree))

    def do_call(self, tree: Tree[Token], args: Args) -> s.Stmt:
        (call,) = args
        if not isinstance(call, s.Call | s.Hole):
            hint = "a statement is a call, or an assignment with `=`"
            self.report("syntax-statement", "this value is not used", self.span(tree), hint)
        return s.Do(call, span=self.span(tree))

    def with_entry(self, tree: Tree[Token], args: Args) -> s.Stmt:
        name, place, default, body = args
        if isinstance(place, s.Index):
            self._place(tree.children[1])
        else:
            hint = "write `with e = m[k] {...}`"
            self.report(
                "syntax-place", "`with` binds an entry of a map", self.tree_span(tree.children[1]), hint
            )
        return s.With(str(name), place, default, body, span=self.span(tree))

    def _place(self, tree: Token | Tree[Token]) -> None:
        """Notes a mistake unless the tree is a name or a variable with fields and indices."""
        whole = tree
        while not isinstance(tree, str) and tree.data in {"member", "index"}:
            tree = tree.children[0]
        if isinstance(tree, str) or tree.data not in {"variable", "state"}:
            hint = "a place is a name or a `$variable`, followed by fields and indices"
            self.report("syntax-place", "this is not a place to assign to", self.tree_span(whole), hint)

    def drop(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Drop(str(args[0]), span=self.span(tree))

    def if_stmt(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.If(args[0], args[1], args[2], span=self.span(tree))

    def bind(self, tree: Tree[Token], args: Args) -> s.Bind:
        return s.Bind(args[0], str(args[1]), span=self.span(tree))

    def for_loop(self, tree: Tree[Token], args: Args) -> s.Stmt:
        label, first, second, over, body = args
        return s.For(_optional(label), _names(first, second), over, body, span=self.span(tree))

    def while_loop(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.While(_optional(args[0]), args[1], args[2], span=self.span(tree))

    def break_loop(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Break(_optional(args[0]), span=self.span(tree))

    def continue_loop(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Continue(_optional(args[0]), span=self.span(tree))

    def return_value(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Return(args[0], span=self.span(tree))

    def emit(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Emit(str(args[0]), args[1], span=self.span(tree))

    def mark(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Mark(str(args[0]), args[1], span=self.span(tree))

    def trap(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Trap(self.text(args[0]), span=self.span(tree))

    def each_stmt(self, tree: Tree[Token], args: Args) -> s.Stmt:
        return s.Each(str(args[0]), args[1][1:], args[2], span=self.span(tree))

    def fn(self, tree: Tree[Token], args: Args) -> s.Fn:
        name, params, result, body = args
        return s.Fn(str(name), params, result, body, span=self.span(tree))

    def params(self, tree: Tree[Token], args: Args) -> tuple[s.Param, ...]:
        return tuple(args)

    def param(self, tree: Tree[Token], args: Args) -> s.Param:
        return s.Param(str(args[0]), args[1], span=self.span(tree))

    def ref_param(self, tree: Tree[Token], args: Args) -> s.Param:
        return s.Param(str(args[0]), args[1], ref=True, span=self.span(tree))

    def operator(self, tree: Tree[Token], args: Args) -> s.Operator:
        (name, ports, variables, outs), *items = args
        return s.Operator(
            name,
            ports,
            variables,
            outs,
            tuple(item for item in items if isinstance(item, s.Const)),
            tuple(item for item in items if isinstance(item, s.Fn)),
            tuple(item for item in items if not isinstance(item, s.Const | s.Fn)),
            span=self.span(tree),
        )

    def extern(self, tree: Tree[Token], args: Args) -> s.Extern:
        (name, ports, variables, outs), scalar, quoted = args
        target = self.text(quoted)
        module, colon, function = target.partition(":")
        names = [*module.split("."), function]
        wrong = not (colon and all(name.isidentifier() for name in names))
        if wrong and (target or str(quoted) == '""'):  # a string that cannot be read is reported already
            self.report(
                "syntax-extern",
                f"`{target}` names no Python function",
                self.span(tree),
                'write "module:function"',
            )
        return s.Extern(name, ports, variables, outs, target, scalar is not None, span=self.span(tree))

    def scalar_word(self, tree: Tree[Token], args: Args) -> bool:
        return True

    def signature(self, tree: Tree[Token], args: Args) -> tuple[str, Any, Any, Any]:
        name, ports, variables, outs = args
        return str(name), ports, variables or (), outs

    def ports(self, tree: Tree[Token], args: Args) -> tuple[s.Port, ...]:
        return _present(args)

    def vars(self, tree: Tree[Token], args: Args) -> tuple[s.VarParam, ...]:
        return _present(args)

    def outs(self, tree: Tree[Token], args: Args) -> tuple[s.Out, ...]:
        return _present(args)

    def port(self, tree: Tree[Token], args: Args) -> s.Port:
        name, kind, by, initial = args
        if name in PORT_RESERVED:
            hint = f"`on {name}(...)` is a handler of its own"
            self.report("syntax-reserved", f"`{name}` cannot name an input", self.token_span(name), hint)
        return s.Port(str(name), kind, _optional(by), initial, span=self.span(tree))

    def var_param(self, tree: Tree[Token], args: Args) -> s.VarParam:
        return s.VarParam(args[0][1:], args[1], span=self.span(tree))

    def out(self, tree: Tree[Token], args: Args) -> s.Out:
        name, push, kind, by = args
        return s.Out(str(name), kind, _optional(by), push, span=self.span(tree))

    def const(self, tree: Tree[Token], args: Args) -> s.Const:
        return s.Const(str(args[0]), args[1], args[2], span=self.span(tree))

    def item_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        return s.ItemHandler(str(args[0]), str(args[1]), args[2], span=self.span(tree))

    def rated_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        return s.RatedHandler(args[0], args[1], span=self.span(tree))

    def first_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        return s.RatedHandler(args[0], args[1], first=True, span=self.span(tree))

    def phase_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        count, port, name, body = args
        return s.PhaseHandler(count, str(port), str(name), body, span=self.span(tree))

    def merge_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        *sides, body = args
        return s.MergeHandler(tuple(sides), body, span=self.span(tree))

    def mark_handler(self, tree: Tree[Token], args: Args) -> s.Handler:
        return s.MarkHandler(str(args[0]), args[1], span=self.span(tree))

    def rates(self, tree: Tree[Token], args: Args) -> tuple[s.Rate, ...]:
        return tuple(args)

    def rate(self, tree: Tree[Token], args: Args) -> s.Rate:
        port, peek, pop, early, name = args
        return s.Rate(str(port), peek, pop, str(name), early or (), span=self.span(tree))

    def earlies(self, tree: Tree[Token], args: Args) -> tuple[s.Early, ...]:
        return tuple(args)

    def early(self, tree: Tree[Token], args: Args) -> s.Early:
        return s.Early(*args, span=self.span(tree))

    def side(self, tree: Tree[Token], args: Args) -> tuple[str, str]:
        return str(args[0]), str(args[1])

    def template(self, tree: Tree[Token], args: Args) -> s.Template:
        *params, operator = args
        return s.Template(tuple(params), operator, span=self.span(tree))

    def template_param(self, tree: Tree[Token], args: Args) -> s.TemplateParam:
        hole, kind = args
        name = hole[1:]
        kind = str(kind) if isinstance(kind, str) else kind
        if name[0].isupper() != isinstance(kind, str):
            hint = "`type` and `fields` parameters begin with a capital letter, others do not"
            self.report("syntax-parameter", f"wrong first letter of `#{name}`", self.token_span(hole), hint)
        return s.TemplateParam(name, kind, span=self.span(tree))

    def fn_type(self, tree: Tree[Token], args: Args) -> s.FunctionType:
        *params, result = args
        return s.FunctionType(_present(params), result, span=self.span(tree))


def parse_expr(source: Source) -> s.Expr:
    """The expression that the text is.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    return StmtBuilder(source).build(PARSER.parse(source, "expr"))


def parse_type(source: Source) -> s.TypeExpr:
    """The type that the text is.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    return StmtBuilder(source).build(PARSER.parse(source, "type"))


def parse_block(source: Source) -> s.Block:
    """The statements in braces that the text is.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    return StmtBuilder(source).build(PARSER.parse(source, "block"))


def parse_operator(source: Source) -> s.Operator:
    """The operator that the text is.

    Raises: Rejected with `syntax-*` diagnostics.
    """
    return StmtBuilder(source).build(PARSER.parse(source, "operator"))


_ESCAPE = re.compile(r"\\(u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", '"': '"'}


def _escaped(escape: str, *, binary: bool) -> str | None:
    """The character that stands behind a backslash as `escape`, or None."""
    if escape in _ESCAPES:
        return _ESCAPES[escape]
    if len(escape) > 1 and binary == (escape[0] == "x"):
        code = int(escape.strip("xu{}"), 16)
        if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
    return None


def _path(tree: Token | Tree[Token]) -> str | None:
    """The dotted name that the tree is, or None."""
    names: list[str] = []
    while not isinstance(tree, str) and tree.data == "member":
        tree, name = tree.children
        if not isinstance(name, str) or name.type == "INT":
            return None
        names.append(name)
    if isinstance(tree, str) or tree.data != "variable":
        return None
    return ".".join([str(tree.children[0]), *reversed(names)])


def _bare(tree: Token | Tree[Token]) -> bool:
    return not isinstance(tree, str) and tree.data == "variable"


def _optional(token: Token | None) -> str | None:
    return None if token is None else str(token)


def _names(first: Token, second: Token | None) -> tuple[str, ...]:
    return (str(first),) if second is None else (str(first), str(second))


def _present(args: Iterable[Any]) -> tuple[Any, ...]:
    """All but what is left out."""
    return tuple(a for a in args if a is not None)
