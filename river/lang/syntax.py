"""What a text of the operator language says, before anybody knows what it means.

One frozen class per production of il.md 2.1. The span is a keyword-only field that equality ignores, so that trees
compare by structure. Names in `each` positions: inside `#each f in #F {...}` the name `f` stands for a field's name,
`#f` for its type (in a type) or its payload (in an expression).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from river.classes import field, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.source import Span


@frozen(kw_only=True)
class Node:
    """The base of all trees: where in which text it stood."""

    span: Span | None = field(default=None, eq=False, repr=False)


# ---------------------------------------------------------------------------------------------- types


@frozen
class TypeName(Node):
    """A named type with arguments: `i64`, `list<T>`, `array<f32, 64>`, `decimal(10, 2)`, `delta<Row>`.

    Arguments of `array` and `decimal` are a type and an expression, and two expressions.
    """

    name: str
    args: tuple[TypeExpr | Expr, ...] = ()


@frozen
class OptionalType(Node):
    """`T?`."""

    inner: TypeExpr


@frozen
class FieldType(Node):
    """`name: T` in a record type."""

    name: str
    type: TypeExpr


@frozen
class SpliceType(Node):
    """`#F` among the fields of a record type: all fields of the argument."""

    hole: str


@frozen
class EachType(Node):
    """`#each f in #F {name: T, ...}` among the fields of a record type."""

    name: str
    hole: str
    fields: tuple[FieldTypeItem, ...]


@frozen
class RecordType(Node):
    """`{a: i64, b: string}`."""

    fields: tuple[FieldTypeItem, ...]


@frozen
class TupleType(Node):
    """`(i64, string)`."""

    items: tuple[TypeExpr, ...]


@frozen
class FunctionType(Node):
    """`fn(T) -> K`: only the type of a template parameter."""

    params: tuple[TypeExpr, ...]
    result: TypeExpr


@frozen
class HoleType(Node):
    """`#T` in a type."""

    name: str


FieldTypeItem = FieldType | SpliceType | EachType
TypeExpr = TypeName | OptionalType | RecordType | TupleType | FunctionType | HoleType


# ---------------------------------------------------------------------------------------------- expressions


@frozen
class Int(Node):
    """A whole number without sign."""

    value: int


@frozen
class Float(Node):
    """A number with a point or an exponent; printed as Python's repr."""

    value: float


@frozen
class String(Node):
    """A string literal, unescaped."""

    value: str


@frozen
class Bytes(Node):
    """A byte literal `b"..."`, unescaped."""

    value: bytes


@frozen
class Bool(Node):
    """`true` or `false`."""

    value: bool


@frozen
class NoneValue(Node):
    """`none`."""


@frozen
class Name(Node):
    """A local, a constant, a parameter, or an each-variable."""

    name: str


@frozen
class Var(Node):
    """`$v`; `name` is without the dollar sign."""

    name: str


@frozen
class Hole(Node):
    """`#n`, or `#key(r)` when `args` is not None."""

    name: str
    args: tuple[Argument, ...] | None = None


@frozen
class Member(Node):
    """`e.name`."""

    value: Expr
    name: str


@frozen
class Index(Node):
    """`e[i]`."""

    value: Expr
    index: Expr


@frozen
class Slice(Node):
    """`e[i:j]`."""

    value: Expr
    low: Expr
    high: Expr


@frozen
class Force(Node):
    """`e!`: the value of an optional, or a trap."""

    value: Expr


@frozen
class IsNone(Node):
    """`e is none`."""

    value: Expr


@frozen
class Unary(Node):
    """`op` is one of `-`, `-%`, `~`, `not`."""

    op: str
    value: Expr


@frozen
class Binary(Node):
    """`op` is one of `+ - * / +% -% *% & | ^ << >> >>> == != < <= > >= and or`."""

    op: str
    left: Expr
    right: Expr


RESERVED: Final = frozenset({
    "let", "var", "with", "drop", "if", "else", "for", "in", "while", "break", "continue", "return", "emit", "trap",
    "is", "none", "true", "false", "not", "and", "or", "fn",
})  # fmt: skip
"""Words that name nothing without quotes. All other keywords are names wherever the grammar does not ask for them."""

LONG: Final = 32
"""Operands of one `and` or `or` that a tree which leans to the left holds; more are held by a balanced one."""


def signed(value: float, span: Span | None = None) -> Expr:
    """A number, whole or with a point, as texts have it: literals have no sign."""
    if str(value).startswith("-"):  # -0.0, too
        return Unary("-", signed(-value, span), span=span)
    return Int(value, span=span) if isinstance(value, int) else Float(value, span=span)


def joined(op: Literal["and", "or"], operands: Sequence[Expr], span: Span | None = None) -> Expr:
    """One or more operands under `and` or `or`. Many are held by a balanced tree: it means the same, and is shallow.

    `span`: the text of the whole; without it, each part lies where its last operand does.
    """

    def tree(first: int, end: int) -> Expr:
        if end - first == 1:
            return operands[first]
        middle = (first + end) // 2 if len(operands) > LONG else end - 1
        place = operands[end - 1].span if span is None else span
        return Binary(op, tree(first, middle), tree(middle, end), span=place)

    return tree(0, len(operands))


@frozen
class Call(Node):
    """`f(a, b)`, `div.trunc(a, b)`; `function` is the dotted name."""

    function: str
    args: tuple[Argument, ...]


@frozen
class IfExpr(Node):
    """`if c {a} else {b}`."""

    cond: Expr
    then: Expr
    other: Expr


@frozen
class FieldValue(Node):
    """`name: e` in a record."""

    name: str
    value: Expr


@frozen
class EachValue(Node):
    """`#each f in #F {name: e, ...}` among the fields of a record."""

    name: str
    hole: str
    fields: tuple[FieldValueItem, ...]


@frozen
class RecordValue(Node):
    """`{a: 1, b: x}`."""

    fields: tuple[FieldValueItem, ...]


@frozen
class TupleValue(Node):
    """`(a, b)`; `()` is the value of type unit."""

    items: tuple[Expr, ...]


@frozen
class ListValue(Node):
    """`[a, b]`: a list or an array, by what is expected."""

    items: tuple[Expr, ...]


@frozen
class MapValue(Node):
    """`{k: v}` whose first key is not a bare name; `{}` is any empty container or record, by what is expected."""

    items: tuple[tuple[Expr, Expr], ...]


@frozen
class Range(Node):
    """`low .. high`, high excluded."""

    low: Expr
    high: Expr


@frozen
class Comprehension(Node):
    """`[e for a, b in range if cond]`."""

    value: Expr
    names: tuple[str, ...]
    range: Range | Expr
    cond: Expr | None = None


@frozen
class Lambda(Node):
    """`fn(a, b) => e`."""

    params: tuple[str, ...]
    body: Expr


FieldValueItem = FieldValue | EachValue
Expr = (
    Int | Float | String | Bytes | Bool | NoneValue | Name | Var | Hole | Member | Index | Slice | Force | IsNone
    | Unary | Binary | Call | IfExpr | RecordValue | TupleValue | ListValue | MapValue | Comprehension
)  # fmt: skip
Argument = Expr | Lambda


# ---------------------------------------------------------------------------------------------- statements


@frozen
class Let(Node):
    """`let x: T = e;` borrows."""

    name: str
    type: TypeExpr | None
    value: Expr


@frozen
class VarDecl(Node):
    """`var x: T = e;` owns."""

    name: str
    type: TypeExpr | None
    value: Expr


@frozen
class Assign(Node):
    """`place = e;`."""

    place: Expr
    value: Expr


@frozen
class With(Node):
    """`with e = m[k] else init {...}`: binds the entry of a map as a place with one lookup."""

    name: str
    place: Index
    default: Expr | None
    body: Block


@frozen
class Drop(Node):
    """`drop e;` removes the entry bound by `with`."""

    name: str


@frozen
class Bind(Node):
    """The condition `e is x`: true when the optional has a value, which is bound to x."""

    value: Expr
    name: str


@frozen
class If(Node):
    """`if c {...} else ...`; `other` is a block, a further If, or nothing."""

    cond: Expr | Bind
    then: Block
    other: Block | If | None = None


@frozen
class For(Node):
    """`label: for a, b in range {...}`."""

    label: str | None
    names: tuple[str, ...]
    range: Range | Expr
    body: Block


@frozen
class While(Node):
    """`label: while c {...}`."""

    label: str | None
    cond: Expr
    body: Block


@frozen
class Break(Node):
    """`break label;`."""

    label: str | None = None


@frozen
class Continue(Node):
    """`continue label;`."""

    label: str | None = None


@frozen
class Return(Node):
    """`return e;`."""

    value: Expr | None = None


@frozen
class Emit(Node):
    """`emit out e;`."""

    out: str
    value: Expr


@frozen
class Mark(Node):
    """`mark out e;`."""

    out: str
    value: Expr


@frozen
class Trap(Node):
    """`trap "text";`."""

    text: str


@frozen
class Do(Node):
    """A call for its effect: `push(l, x);`, `#touch(a);`."""

    call: Call | Hole


@frozen
class Each(Node):
    """`#each f in #F {...}` as a statement: the block once for each field."""

    name: str
    hole: str
    body: Block


@frozen
class Block(Node):
    """Statements in braces."""

    items: tuple[Stmt, ...] = ()


Stmt = (
    Let | VarDecl | Assign | With | Drop | If | For | While | Break | Continue | Return | Emit | Mark | Trap | Do | Each
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- functions, operators


@frozen
class Param(Node):
    """`ref x: T`."""

    name: str
    type: TypeExpr
    ref: bool = False


@frozen
class Fn(Node):
    """`fn f(x: T) -> R {...}` or `fn f(x: T) -> R = e;`."""

    name: str
    params: tuple[Param, ...]
    result: TypeExpr | None
    body: Block | Expr


@frozen
class Const(Node):
    """`const h: T = e;`: evaluated once, by the evaluator."""

    name: str
    type: TypeExpr
    value: Expr


@frozen
class Port(Node):
    """An input of an operator: `a: T by key = initial tail`."""

    name: str
    type: TypeExpr
    by: str | None = None
    initial: Expr | None = None


@frozen
class Out(Node):
    """An output of an operator: `y[push 1]: T by key`."""

    name: str
    type: TypeExpr
    by: str | None = None
    push: Expr | None = None


@frozen
class VarParam(Node):
    """A variable of an operator: `$v: T`."""

    name: str
    type: TypeExpr


@frozen
class ItemHandler(Node):
    """`on port(x) {...}`: one item of one port."""

    port: str
    name: str
    body: Block


@frozen
class Early(Node):
    """`n: m`: where n items of a window are there, the first m that its firing sends are sent."""

    there: Expr
    sent: Expr


@frozen
class Rate(Node):
    """`port[peek p, pop o, early n: m](w)`; no peek means as many as are popped."""

    port: str
    peek: Expr | None
    pop: Expr
    name: str
    early: tuple[Early, ...] = ()


@frozen
class RatedHandler(Node):
    """`on a[pop 2](v), b[pop 3](w) {...}`; `first` marks prework."""

    rates: tuple[Rate, ...]
    body: Block
    first: bool = False


@frozen
class PhaseHandler(Node):
    """`phase n on port(x) {...}`: n firings on this port, then the next phase."""

    count: Expr
    port: str
    name: str
    body: Block


@frozen
class MergeHandler(Node):
    """`on merge(a(x), b(y)) {...}`: fires for the smallest key; sides are optionals; `key` is bound in the body."""

    sides: tuple[tuple[str, str], ...]
    body: Block


@frozen
class MarkHandler(Node):
    """`on mark(k) {...}`: replaces the default forwarding of marks."""

    name: str
    body: Block


Handler = ItemHandler | RatedHandler | PhaseHandler | MergeHandler | MarkHandler


@frozen
class Operator(Node):
    """`operator f(ports; vars) -> (outs) { consts fns handlers }`."""

    name: str
    ports: tuple[Port, ...]
    vars: tuple[VarParam, ...]
    outs: tuple[Out, ...]
    consts: tuple[Const, ...] = ()
    fns: tuple[Fn, ...] = ()
    handlers: tuple[Handler, ...] = ()


@frozen
class Extern(Node):
    """`operator f(ports; vars) -> (outs) = extern python "module:function";`; `scalar`: a function of values."""

    name: str
    ports: tuple[Port, ...]
    vars: tuple[VarParam, ...]
    outs: tuple[Out, ...]
    target: str
    scalar: bool = False


@frozen
class TemplateParam(Node):
    """`#T: type`, `#F: fields`, `#n: i64`, `#key: fn(T) -> K`; type and fields parameters begin with a capital."""

    name: str
    kind: TypeExpr | str  # "type", "fields", or the type of an expression or of a lambda


@frozen
class Template(Node):
    """`template <#T: type> operator ...`: a generic operator."""

    params: tuple[TemplateParam, ...]
    operator: Operator


@frozen
class FieldArg(Node):
    """One field of a fields argument: `name: T`, or `name: T = payload`."""

    name: str
    type: TypeExpr
    payload: Argument | None = None


@frozen
class FieldsArg(Node):
    """The argument of a fields parameter: `{n: i64, s: f64 = fn(r) => r.v}`."""

    fields: tuple[FieldArg, ...]


TemplateArg = TypeExpr | FieldsArg | Argument
