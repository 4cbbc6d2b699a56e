"""Operations of C-like code on typed operands: which types meet, what is converted by itself, and what is known.

`int` and `float` mix as in C: a whole number becomes a float where one is wanted; the way back is a cast.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.streamit import constants
from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from frontends.streamit.vectors import BOTH, LEFT, LIBRARY, RIGHT, VECTORS
from river.classes import define, evolve
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show as show_type
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from frontends.streamit.surroundings import Surroundings
    from river.report import Failed, Report
    from river.source import Span

WORDS: Mapping[str, t.Type] = MappingProxyType({
    "int": ty.INT, "float": ty.FLOAT, "double": t.F64, "boolean": ty.BOOLEAN, "bit": ty.BIT, "void": ty.VOID,
    "String": ty.TEXT,
})  # fmt: skip
COMPLEX_WORDS: Mapping[str, str] = MappingProxyType(
    {"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "eq"}
)
RANKS: Mapping[ty.Type, int] = MappingProxyType({ty.BIT: 0, ty.INT: 1, ty.FLOAT: 2, t.F64: 3})
"""Numbers; those of a lower rank become those of a higher one where they meet."""
WHOLE = MappingProxyType({
    "+": "+%", "-": "-%", "*": "*%", "/": "div.trunc.wrap", "%": "rem.trunc.wrap", "<<": "<<", ">>": ">>",
    "&": "&", "|": "|", "^": "^",
})  # fmt: skip
REAL = MappingProxyType({"+": "+", "-": "-", "*": "*", "/": "/", "%": "rem.trunc"})
COMPARE = frozenset({"==", "!=", "<", "<=", ">", ">="})
BOOLEAN_OPERATIONS = MappingProxyType({"==": "==", "!=": "!=", "&": "min", "|": "max", "^": "!="})
"""Operations of booleans that look at both; false is less than true."""
BITWISE = frozenset({"&", "|", "^"})


@define
class Arithmetic:
    """Operations on typed operands, in code with these surroundings."""

    report: Report
    around: Surroundings

    def make(self, type_: ty.Struct, items: Sequence[ty.Expr], span: Span | None) -> ty.Expr:
        """A struct of its parts."""
        values = tuple(item.value for item in items if isinstance(item, ty.Constant))
        if len(values) == len(items):
            return ty.Constant(type_, values, span=span)
        return ty.Make(type_, tuple(items), span=span)

    def literal(self, value: c.Expr, wanted: ty.Type | None) -> ty.Expr | None:
        """A number as it is written where a double is wanted, a character where a number is; else None."""
        match value, wanted:
            case s.String(text), _ if wanted is not None and wanted in RANKS and character(value):
                return self.convert(ty.Constant(ty.INT, ord(text), span=value.span), wanted, value.span)
            case s.Int(number) | s.Float(number), t.F64:
                return ty.Constant(t.F64, float(number), span=value.span)
            case _:
                return None

    def convert(self, node: ty.Expr, wanted: ty.Type, span: Span | None) -> ty.Expr:
        """The expression as a value of another type, where C does that by itself."""
        found = node.type
        if found == wanted:
            return node
        match found, wanted:
            case _, ty.COMPLEX if found in RANKS:
                parts_ = (self.cast(ty.FLOAT, node, span), ty.Constant(ty.FLOAT, 0.0, span=span))
                if isinstance(parts_[0], ty.Constant):
                    return ty.Constant(ty.COMPLEX, (parts_[0].value, 0.0), span=span)
                return ty.Make(ty.COMPLEX, parts_, span=span)
            case _ if RANKS.get(found, 9) < RANKS.get(wanted, -1):
                if wanted == ty.INT:
                    return evolve(node, type=ty.INT)
                return self.fold(ty.Apply(wanted, show_type(constants.scalar(wanted)), (node,), span=span))
            case ty.INT, ty.BIT if isinstance(node, ty.Constant) and node.value in (0, 1):
                return evolve(node, type=ty.BIT)
            case (ty.INT, ty.BIT) | (t.F64, ty.FLOAT):
                return self.cast(wanted, node, span)
            case ((ty.BIT | ty.INT), ty.BOOLEAN):
                zero = ty.Constant(ty.INT, 0, span=span)
                return self.fold(ty.Apply(ty.BOOLEAN, "!=", (evolve(node, type=ty.INT), zero), span=span))
            case ty.BOOLEAN, _ if wanted in RANKS:
                return self.convert(self.cast(ty.INT, node, span), wanted, span)
            case _:
                raise self.mismatch(shown(found), wanted, span)

    def cast(self, wanted: ty.Type, node: ty.Expr, span: Span | None) -> ty.Expr:
        """`(type) e`."""
        found = node.type
        if RANKS.get(found, 9) <= RANKS.get(wanted, -1) or found == wanted:
            return self.convert(node, wanted, span)
        if wanted == ty.INT and found in RANKS:
            return self.fold(ty.Apply(ty.INT, "i32.wrap", (node,), span=span))
        if wanted == ty.FLOAT and found == t.F64:
            return self.fold(ty.Apply(ty.FLOAT, "f32", (node,), span=span))
        if wanted == ty.BIT and found == ty.INT:
            return self.fold(
                ty.Apply(
                    ty.BIT, "&", (evolve(node, type=ty.BIT), ty.Constant(ty.BIT, 1, span=span)), span=span
                )
            )
        if found in RANKS and wanted == ty.COMPLEX:
            return self.convert(node, wanted, span)
        if found == ty.BOOLEAN and wanted in (ty.INT, ty.BIT):
            one, zero = ty.Constant(wanted, 1, span=span), ty.Constant(wanted, 0, span=span)
            return ty.Choose(wanted, node, one, zero, span=span)
        if wanted == ty.BOOLEAN and found in (ty.INT, ty.BIT):
            return self.binary("!=", node, ty.Constant(ty.INT, 0, span=span), span)
        raise self.report.error("streamit-type", f"`{shown(found)}` cannot become `{shown(wanted)}`", span)

    def mismatch(self, found: str, wanted: ty.Type, span: Span | None) -> Failed:
        """The error that something has the wrong type."""
        name = shown(wanted)
        help_line = None
        if wanted in RANKS and any(found == shown(rank) for rank in RANKS):
            help_line = f"convert it: `({name})`"
        return self.report.error("streamit-type", f"expected `{name}`, found `{found}`", span, help_line)

    def fold(self, node: ty.Apply) -> ty.Expr:
        """The expression, or its value when all operands are known."""
        values = [arg.value for arg in node.args if isinstance(arg, ty.Constant)]
        if len(values) < len(node.args):
            return node
        try:
            value = constants.apply(node.operation, [arg.type for arg in node.args], node.type, values)
        except TrapSignal:
            return node  # it traps where it is reached
        return ty.Constant(node.type, value, span=node.span)

    def binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands that are converted to what they have in common."""
        if op == "+" and ty.TEXT in (left.type, right.type):
            return self.fold(ty.Apply(ty.TEXT, "+", (self.text(left), self.text(right)), span=span))
        if op in ("==", "!=") and left.type == right.type == ty.TEXT:
            return self.fold(ty.Apply(ty.BOOLEAN, op, (left, right), span=span))
        if op in BOOLEAN_OPERATIONS and left.type == right.type == ty.BOOLEAN:
            return self.fold(ty.Apply(ty.BOOLEAN, BOOLEAN_OPERATIONS[op], (left, right), span=span))
        if op in BITWISE and ty.BIT in (left.type, right.type):
            left, right = bit_literal(left), bit_literal(right)
        if ty.BOOLEAN in (left.type, right.type) and {left.type, right.type} <= {ty.BOOLEAN, *RANKS}:
            left, right = (  # a condition counts as 0 or 1
                self.cast(ty.INT, side, side.span) if side.type == ty.BOOLEAN else side
                for side in (left, right)
            )
        if ty.COMPLEX in (left.type, right.type):
            return self.complex_binary(op, left, right, span)
        if self.is_vector(left) or self.is_vector(right):
            return self.vector_binary(op, left, right, span)
        for side in (left, right):
            if side.type not in RANKS:
                message = f"`{op}` does not apply to `{shown(side.type)}`"
                raise self.report.error("streamit-type", message, side.span or span)
        if op in BITWISE and left.type == right.type == ty.BIT:
            common: ty.Type = ty.BIT
        else:
            common = max(left.type, right.type, ty.INT, key=lambda type_: RANKS[type_])
        table = WHOLE if common in (ty.INT, ty.BIT) else REAL
        if op not in COMPARE and op not in table:
            raise self.report.error("streamit-type", f"`{op}` does not apply to `{shown(common)}`", span)
        a, b = self.convert(left, common, left.span), self.convert(right, common, right.span)
        if op in COMPARE:
            return self.fold(ty.Apply(ty.BOOLEAN, op, (a, b), span=span))
        return self.fold(ty.Apply(common, table[op], (a, b), span=span))

    def complex_binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands of which one is complex."""
        if op == "!=":
            return self.unary_not(self.complex_binary("==", left, right, span), span)
        a, b = (self.convert(side, ty.COMPLEX, side.span or span) for side in (left, right))
        if op not in COMPLEX_WORDS:
            raise self.report.error("streamit-type", f"`{op}` does not apply to `complex`", span)
        result = ty.BOOLEAN if op == "==" else ty.COMPLEX
        return self.fold(ty.Apply(result, f"complex.{COMPLEX_WORDS[op]}", (a, b), span=span))

    def unary_not(self, node: ty.Expr, span: Span | None) -> ty.Expr:
        """The opposite of a condition."""
        return self.fold(ty.Apply(ty.BOOLEAN, "not", (node,), span=span))

    def is_vector(self, node: ty.Expr) -> bool:
        """Whether the value is a `float2`, `float3` or `float4`, and no struct of the program's own."""
        return (
            isinstance(node.type, ty.Struct)
            and node.type.name in VECTORS
            and bool(self.vector_function("add", node))
        )

    def vector_function(self, name: str, node: ty.Expr) -> ty.Helper | None:
        """The function of that name for vectors like this one, where code may call it."""
        assert isinstance(node.type, ty.Struct)  # noqa: S101 - the caller has seen to it
        return self.around.helpers.get(f"{LIBRARY}.{name}{VECTORS[node.type.name]}")

    def vector_binary(self, op: str, left: ty.Expr, right: ty.Expr, span: Span | None) -> ty.Expr:
        """An infix operator on operands of which one is a vector."""
        match self.is_vector(left), self.is_vector(right):
            case True, True if left.type == right.type:
                name = BOTH.get(op)
            case True, False:
                name, right = RIGHT.get(op), self.convert(right, ty.FLOAT, right.span or span)
            case False, True:
                name, left = LEFT.get(op), self.convert(left, ty.FLOAT, left.span or span)
            case _:
                name = None
        if name is None:
            message = f"`{op}` does not apply to `{shown(left.type)}` and `{shown(right.type)}`"
            raise self.report.error("streamit-type", message, span)
        helper = self.vector_function(name, left if self.is_vector(left) else right)
        assert helper is not None  # noqa: S101 - there is one for each operator
        return ty.Call(helper.result, helper.name, (left, right), span=span)

    def text(self, node: ty.Expr) -> ty.Expr:
        """What is printed of a value."""
        decimals = self.around.decimals
        if decimals is not None and node.type in (ty.COMPLEX, ty.FLOAT, t.F64):
            form = ty.Constant(ty.TEXT, f"%.{decimals}f", span=node.span)
            if node.type == ty.COMPLEX:
                return self.fold(ty.Apply(ty.TEXT, "complex.form", (form, node), span=node.span))
            node = self.convert(node, t.F64, node.span)
            return self.fold(ty.Apply(ty.TEXT, "format", (form, node), span=node.span))
        if node.type == ty.COMPLEX:
            return self.fold(ty.Apply(ty.TEXT, "complex.text", (node,), span=node.span))
        if isinstance(node.type, ty.Vector | ty.Struct | ty.Portal) or node.type == ty.VOID:
            raise self.report.error("streamit-type", f"`{shown(node.type)}` cannot be printed", node.span)
        return (
            node if node.type == ty.TEXT else self.fold(ty.Apply(ty.TEXT, "string", (node,), span=node.span))
        )


def bit_literal(node: ty.Expr) -> ty.Expr:
    """A 0 or 1 as a `bit`, anything else as it is."""
    match node:
        case ty.Constant(t.I32, 0 | 1):
            return evolve(node, type=ty.BIT)
        case _:
            return node


def character(value: c.Expr) -> bool:
    """Whether it is a literal like `'c'`: a text, or where a number is wanted that of the letter."""
    return isinstance(value, s.String) and value.span is not None and value.span.text.startswith("'")


def large(literal: s.Int) -> bool:
    """Whether a number without a point is too large for an int, which makes it a float; hexadecimal ones are bits."""
    text = "" if literal.span is None else literal.span.text
    return literal.value >= 1 << 31 and not text.lower().startswith("0x")


def shown(type_: ty.Type) -> str:
    """The type in StreamIt's words."""
    if isinstance(type_, ty.Vector):
        return f"{shown(type_.item)}[]"
    if isinstance(type_, ty.Portal):
        return f"portal<{type_.receiver}>"
    if isinstance(type_, ty.Struct):
        return type_.name
    return next((word for word, known in WORDS.items() if known == type_), None) or show_type(type_)
