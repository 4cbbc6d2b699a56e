"""Syntax to its canonical text: `parse(pretty(tree)) == tree`, and a canonical text parses and prints as itself.

Canonical are: two spaces of indentation, lines of at most 110 columns where a bracket allows it, a statement per line,
parentheses only where precedence needs them (and around an `if` inside another expression, for the reader's sake).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import assert_never

from river.lang import syntax as s
from river.lang.layout import HARD, SPACE, WIDTH, Doc, Group, Nest, braced, enclosed, render, separated

OR, AND, NOT, COMPARE, BITS, SUM, PRODUCT, PREFIX, POSTFIX = range(1, 10)

_LEVELS = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), COMPARE),
    **dict.fromkeys(("&", "|", "^", "<<", ">>", ">>>"), BITS),
    **dict.fromkeys(("+", "-", "+%", "-%"), SUM),
    **dict.fromkeys(("*", "*%", "/"), PRODUCT),
}

Printable = (
    s.TypeExpr | s.FieldTypeItem | s.Argument | s.FieldValueItem | s.Range | s.Bind | s.Stmt | s.Block | s.Param | s.Fn
    | s.Const | s.Port | s.Out | s.VarParam | s.Rate | s.Handler | s.Operator | s.Extern | s.TemplateParam | s.Template
    | s.FieldsArg | s.FieldArg
)  # fmt: skip


def pretty(node: Printable, width: int = WIDTH) -> str:
    """The canonical text of a node of any sort, without a line end after it."""
    return render(document(node), width)


@lru_cache(maxsize=4096)
def spelled(name: str) -> str:
    """A name as it stands in a text: in backquotes, unless it is a plain word that is not reserved."""
    plain = name.isascii() and (name.isidentifier() or name.isdecimal()) and name not in s.RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def document(node: Printable) -> Doc:
    """The layout of a node of any sort."""
    match node:
        case (
            s.TypeName() | s.OptionalType() | s.RecordType() | s.TupleType() | s.FunctionType() | s.HoleType()
        ):
            return type_doc(node)
        case s.FieldType() | s.SpliceType() | s.EachType():
            return _field_type(node)
        case s.FieldValue() | s.EachValue():
            return _field_value(node)
        case s.Range():
            return _range(node, 0)
        case s.Bind():
            return _condition(node)
        case s.Block():
            return block_doc(node)
        case s.Param():
            return ("ref " if node.ref else "", node.name, ": ", type_doc(node.type))
        case s.Fn():
            return fn_doc(node)
        case s.Const():
            return ("const ", node.name, ": ", type_doc(node.type), " = ", expr_doc(node.value), ";")
        case s.Port():
            return _port(node)
        case s.Out():
            return _out(node)
        case s.VarParam():
            return ("$", node.name, ": ", type_doc(node.type))
        case s.Rate():
            return _rate(node)
        case s.ItemHandler() | s.RatedHandler() | s.PhaseHandler() | s.MergeHandler() | s.MarkHandler():
            return _handler(node)
        case s.Operator():
            return operator_doc(node)
        case s.Extern():
            return extern_doc(node)
        case s.TemplateParam():
            return _template_param(node)
        case s.Template():
            return template_doc(node)
        case s.FieldsArg() | s.FieldArg():
            return template_arg_doc(node)
        case (
            s.Let() | s.VarDecl() | s.Assign() | s.With() | s.Drop() | s.If() | s.For() | s.While() | s.Break()
            | s.Continue() | s.Return() | s.Emit() | s.Mark() | s.Trap() | s.Do() | s.Each()
        ):  # fmt: skip
            return stmt_doc(node)
        case _:
            return expr_doc(node)


# ---------------------------------------------------------------------------------------------- types


def type_doc(node: s.TypeExpr) -> Doc:
    """The layout of a type."""
    match node:
        case s.TypeName("decimal", args) if args:
            return ("decimal", enclosed("(", [_type_arg(a, 0) for a in args], ")"))
        case s.TypeName(name, args):
            return (name, enclosed("<", [_type_arg(a, SUM) for a in args], ">")) if args else name
        case s.OptionalType(inner):
            return (type_doc(inner), "?")
        case s.RecordType(fields):
            return enclosed("{", [_field_type(f) for f in fields], "}")
        case s.TupleType((only,)):
            return ("(", type_doc(only), ",)")
        case s.TupleType(items):
            return enclosed("(", [type_doc(item) for item in items], ")")
        case s.FunctionType(params, result):
            return ("fn", enclosed("(", [type_doc(p) for p in params], ")"), " -> ", type_doc(result))
        case s.HoleType(name):
            return "#" + name
    assert_never(node)


def _type_arg(node: s.TypeExpr | s.Expr, least: int) -> Doc:
    match node:
        case (
            s.TypeName() | s.OptionalType() | s.RecordType() | s.TupleType() | s.FunctionType() | s.HoleType()
        ):
            return type_doc(node)
        case _:
            return expr_doc(node, least)


def _field_type(node: s.FieldTypeItem) -> Doc:
    match node:
        case s.FieldType(name, kind):
            return (spelled(name), ": ", type_doc(kind))
        case s.SpliceType(hole):
            return "#" + hole
        case s.EachType(name, hole, fields):
            return ("#each ", name, " in #", hole, " ", enclosed("{", [_field_type(f) for f in fields], "}"))
    assert_never(node)


# ---------------------------------------------------------------------------------------------- expressions


def expr_doc(node: s.Argument, least: int = 0) -> Doc:
    """The layout of an expression, in parentheses if it binds weaker than `least`."""
    inner = _bare(node, least)
    return inner if not least or _level(node) >= least else ("(", inner, ")")


def _level(node: s.Argument) -> int:
    match node:
        case s.Name() | s.Member() | s.Call():  # which most are
            return POSTFIX
        case s.IfExpr() | s.Lambda():
            return 0
        case s.Binary(op):
            return _LEVELS[op]
        case s.Unary("not"):
            return NOT
        case s.Unary():
            return PREFIX
        case s.IsNone():
            return COMPARE
        case _:
            return POSTFIX


def _bare(node: s.Argument, least: int) -> Doc:
    match node:
        case s.Name(name):  # most are the first three
            return spelled(name)
        case s.Member(s.Int(value), name):
            return f"({value}).{spelled(name)}"  # `1.0` is a float
        case s.Member(value, name):
            whole = expr_doc(value, POSTFIX)
            return f"{whole}.{spelled(name)}" if isinstance(whole, str) else (whole, ".", spelled(name))
        case s.Call(function, args):
            return (function, _args(args))
        case s.Int(value):
            return str(value)
        case s.Float(value):
            return repr(value)
        case s.String(value):
            return quoted(value)
        case s.Bytes(value):
            return _quoted_bytes(value)
        case s.Bool(value):
            return "true" if value else "false"
        case s.NoneValue():
            return "none"
        case s.Var(name):
            return "$" + name
        case s.Hole(name, args):
            return "#" + name if args is None else ("#", name, _args(args))
        case s.Index(value, index):
            return (expr_doc(value, POSTFIX), "[", expr_doc(index), "]")
        case s.Slice(value, low, high):
            return (expr_doc(value, POSTFIX), "[", expr_doc(low), ":", expr_doc(high), "]")
        case s.Force(value):
            return (expr_doc(value, POSTFIX), "!")
        case s.IsNone(value):
            return (expr_doc(value, BITS), " is none")
        case s.Unary(op, value):
            return ("not ", expr_doc(value, NOT)) if op == "not" else (op, expr_doc(value, PREFIX))
        case s.Binary():
            return _binary(node)
        case s.IfExpr(cond, then, other):
            return ("if ", expr_doc(cond, OR), " {", expr_doc(then), "} else {", expr_doc(other), "}")
        case s.RecordValue(fields):
            return enclosed("{", [_field_value(f) for f in fields], "}")
        case s.MapValue(items):
            return enclosed("{", [(_key(k), ": ", expr_doc(v)) for k, v in items], "}")
        case s.TupleValue((only,)):
            return ("(", expr_doc(only), ",)")
        case s.TupleValue(items):
            return enclosed("(", [expr_doc(item) for item in items], ")")
        case s.ListValue(items):
            return enclosed("[", [expr_doc(item) for item in items], "]")
        case s.Comprehension(value, names, over, cond):
            parts: list[Doc] = [expr_doc(value), ("for " + ", ".join(names) + " in ", _range(over, OR))]
            if cond is not None:
                parts.append(("if ", expr_doc(cond, OR)))
            return Group(("[", Nest(separated(parts, SPACE)), "]"))
        case s.Lambda(params, body):
            return ("fn(" + ", ".join(params) + ") => ", expr_doc(body, least))
    assert_never(node)


def _binary(node: s.Binary) -> Doc:
    """Operators of one level in a row break together, each before its operator."""
    level = _LEVELS[node.op]
    chain: list[s.Binary] = [node]
    while level != COMPARE and isinstance(left := chain[-1].left, s.Binary) and _LEVELS[left.op] == level:
        chain.append(left)
    chain.reverse()
    rest = [(SPACE, link.op, " ", expr_doc(link.right, level + 1)) for link in chain]
    return Group((expr_doc(chain[0].left, level + 1), Nest(tuple(rest))))


def _args(args: tuple[s.Argument, ...]) -> Doc:
    return enclosed("(", [expr_doc(a) for a in args], ")")


def _key(key: s.Expr) -> Doc:
    """The key of a map; a bare name stands in parentheses, since without them it would be a field."""
    return ("(", spelled(key.name), ")") if isinstance(key, s.Name) else expr_doc(key)


def _field_value(node: s.FieldValueItem) -> Doc:
    match node:
        case s.FieldValue(name, value):
            return (spelled(name), ": ", expr_doc(value))
        case s.EachValue(name, hole, fields):
            return ("#each ", name, " in #", hole, " ", enclosed("{", [_field_value(f) for f in fields], "}"))
    assert_never(node)


def _range(node: s.Range | s.Expr, least: int) -> Doc:
    match node:
        case s.Range(low, high):
            return (expr_doc(low, OR), " .. ", expr_doc(high, OR))
        case _:
            return expr_doc(node, least)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\\": "\\\\", '"': '\\"'}


_UNUSUAL = re.compile(r'["\\]|[^ -~]')
"""Characters that may need an escape."""


def quoted(text: str) -> str:
    """The string literal of `text`; what cannot be printed is escaped."""

    def written(found: re.Match[str]) -> str:
        c = found[0]
        return _ESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}")

    return f'"{_UNUSUAL.sub(written, text)}"'


def _quoted_bytes(value: bytes) -> str:
    def written(found: re.Match[str]) -> str:
        return _ESCAPES.get(found[0]) or f"\\x{ord(found[0]):02x}"

    return f'b"{_UNUSUAL.sub(written, value.decode("latin-1"))}"'


# ---------------------------------------------------------------------------------------------- statements


def block_doc(node: s.Block) -> Doc:
    """The layout of a block: a statement per line."""
    return braced(stmt_doc(item) for item in node.items)


def stmt_doc(node: s.Stmt) -> Doc:
    """The layout of a statement."""
    match node:
        case s.Let(name, kind, value):
            return ("let ", name, _annotated(kind), " = ", expr_doc(value), ";")
        case s.VarDecl(name, kind, value):
            return ("var ", name, _annotated(kind), " = ", expr_doc(value), ";")
        case s.Assign(place, value):
            return (expr_doc(place), " = ", expr_doc(value), ";")
        case s.With(name, place, default, body):
            otherwise = (" else ", expr_doc(default, OR)) if default is not None else ()
            return ("with ", name, " = ", expr_doc(place), otherwise, " ", block_doc(body))
        case s.Drop(name):
            return ("drop ", name, ";")
        case s.If():
            return _if(node)
        case s.For(label, names, over, body):
            return (_label(label), "for " + ", ".join(names) + " in ", _range(over, OR), " ", block_doc(body))
        case s.While(label, cond, body):
            return (_label(label), "while ", expr_doc(cond, OR), " ", block_doc(body))
        case s.Break(label):
            return f"break {label};" if label else "break;"
        case s.Continue(label):
            return f"continue {label};" if label else "continue;"
        case s.Return(value):
            return "return;" if value is None else ("return ", expr_doc(value), ";")
        case s.Emit(out, value):
            return ("emit ", out, " ", expr_doc(value), ";")
        case s.Mark(out, value):
            return ("mark ", out, " ", expr_doc(value), ";")
        case s.Trap(text):
            return ("trap ", quoted(text), ";")
        case s.Do(call):
            return (expr_doc(call), ";")
        case s.Each(name, hole, body):
            return ("#each ", name, " in #", hole, " ", block_doc(body))
    assert_never(node)


def _annotated(kind: s.TypeExpr | None) -> Doc:
    return "" if kind is None else (": ", type_doc(kind))


def _label(label: str | None) -> str:
    return "" if label is None else label + ": "


def _if(node: s.If) -> Doc:
    """A chain of `else if` on one level."""
    parts: list[Doc] = ["if ", _condition(node.cond), " ", block_doc(node.then)]
    other = node.other
    while isinstance(other, s.If):
        parts += [" else if ", _condition(other.cond), " ", block_doc(other.then)]
        other = other.other
    if other is not None:
        parts += [" else ", block_doc(other)]
    return tuple(parts)


def _condition(node: s.Expr | s.Bind) -> Doc:
    match node:
        case s.Bind(value, name):
            return (expr_doc(value, BITS), " is ", name)
        case _:
            return expr_doc(node, OR)


# ---------------------------------------------------------------------------------------------- functions, operators


def fn_doc(node: s.Fn) -> Doc:
    """The layout of a function."""
    result = () if node.result is None else (" -> ", type_doc(node.result))
    head = ("fn ", node.name, enclosed("(", [document(p) for p in node.params], ")"), result)
    match node.body:
        case s.Block():
            return (*head, " ", block_doc(node.body))
        case _:
            return (*head, " = ", expr_doc(node.body), ";")


def operator_doc(node: s.Operator) -> Doc:
    """The layout of an operator: constants, functions, handlers."""
    parts = (*node.consts, *node.fns, *node.handlers)
    return (_signature(node), " ", braced(document(part) for part in parts))


def extern_doc(node: s.Extern) -> Doc:
    """The layout of an operator that is written in Python."""
    return (_signature(node), " = extern python ", "scalar " if node.scalar else "", quoted(node.target), ";")


def template_doc(node: s.Template) -> Doc:
    """The layout of a generic operator: its parameters stand on a line of their own."""
    return (
        "template ",
        enclosed("<", [_template_param(p) for p in node.params], ">"),
        HARD,
        operator_doc(node.operator),
    )


def template_arg_doc(node: s.TemplateArg | s.FieldArg) -> Doc:
    """The layout of an argument; operators weaker than `+` stand in parentheses, because `>` ends the arguments."""
    match node:
        case (
            s.TypeName() | s.OptionalType() | s.RecordType() | s.TupleType() | s.FunctionType() | s.HoleType()
        ):
            return type_doc(node)
        case s.FieldsArg(fields):
            return enclosed("{", [template_arg_doc(f) for f in fields], "}")
        case s.FieldArg(name, kind, payload):
            return (
                spelled(name),
                ": ",
                type_doc(kind),
                () if payload is None else (" = ", expr_doc(payload)),
            )
        case s.Lambda():
            return _bare(node, SUM)
        case _:
            return expr_doc(node, SUM)


def _signature(node: s.Operator | s.Extern) -> Doc:
    ports = separated([_port(port) for port in node.ports], (",", SPACE))
    if node.vars:
        variables = separated([document(v) for v in node.vars], (",", SPACE))
        ports = (ports, ";", SPACE if node.ports else " ", variables)
    outs = enclosed("(", [_out(out) for out in node.outs], ")")
    return ("operator ", node.name, enclosed("(", [ports] if ports else [], ")"), " -> ", outs)


def _port(node: s.Port) -> Doc:
    initial = () if node.initial is None else (" = ", expr_doc(node.initial))
    return (node.name, ": ", type_doc(node.type), _by(node.by), initial)


def _out(node: s.Out) -> Doc:
    push = () if node.push is None else ("[push ", expr_doc(node.push), "]")
    return (node.name, push, ": ", type_doc(node.type), _by(node.by))


def _by(by: str | None) -> str:
    return "" if by is None else " by " + spelled(by)


def _rate(node: s.Rate) -> Doc:
    peek = () if node.peek is None else ("peek ", expr_doc(node.peek), ", ")
    early = [(expr_doc(each.there), ": ", expr_doc(each.sent)) for each in node.early]
    sent = (", early ", separated(early, ", ")) if early else ()
    return (node.port, "[", peek, "pop ", expr_doc(node.pop), sent, "](", node.name, ")")


def _handler(node: s.Handler) -> Doc:
    match node:
        case s.ItemHandler(port, name, body):
            return ("on ", port, "(", name, ") ", block_doc(body))
        case s.RatedHandler(rates, body, first):
            listed = separated([_rate(rate) for rate in rates], ", ")
            return ("first on " if first else "on ", listed, " ", block_doc(body))
        case s.PhaseHandler(count, port, name, body):
            return ("phase ", expr_doc(count), " on ", port, "(", name, ") ", block_doc(body))
        case s.MergeHandler(sides, body):
            listed = ", ".join(f"{port}({name})" for port, name in sides)
            return ("on merge(", listed, ") ", block_doc(body))
        case s.MarkHandler(name, body):
            return ("on mark(", name, ") ", block_doc(body))
    assert_never(node)


def _template_param(node: s.TemplateParam) -> Doc:
    kind = node.kind
    return ("#", node.name, ": ", kind if isinstance(kind, str) else type_doc(kind))
