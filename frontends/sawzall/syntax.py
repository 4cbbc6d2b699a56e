"""What a River-Sawzall text says. Types and expressions are those of the operator language.

An array `{1, 2}` is a ListValue, `{"a": 1}` a MapValue, `{a: 1}` a RecordValue, from which the checker makes a map where
one is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from river.classes import field, frozen
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span

# ---------------------------------------------------------------------------------------------- expressions

BOTH, EITHER = "both", "either"
"""The operators of the words `and` and `or`, which look at both sides, as `Binary` has them."""

Kind = Literal["uint", "time", "fingerprint"]


@frozen
class Number(s.Node):
    """`5U`, `5T` (microseconds) or `5P`."""

    kind: Kind
    value: int


@frozen
class TimeText(s.Node):
    """`T"Mon Oct 16 09:30:00 PDT 2006"`."""

    text: str


@frozen
class TypeValue(s.Node):
    """A type among the arguments of a call: `new(array of int, 3, 0)`."""

    type: TypeExpr


@frozen
class Piece(s.Node):
    """`skip e`, `submatch e` or `rest v` among the arguments of `saw`."""

    how: Literal["skip", "submatch", "rest"]
    value: s.Argument


@frozen
class Dollar(s.Node):
    """`$` in an index: how long what is indexed is."""


@frozen
class CallValue(s.Node):
    """A call of what an expression gives: `f[1](x)`."""

    callee: Expr
    args: tuple[Expr, ...]


@frozen
class FunctionValue(s.Node):
    """`function(x: T): R {...}`; after the name of a type of functions only the body is written."""

    type: TypeExpr
    body: tuple[Stmt, ...]


@frozen
class StatementValue(s.Node):
    """`?{...}`, whose value a `result` in it gives."""

    body: tuple[Stmt, ...]


Expr = (
    s.Argument | Piece | Number | TimeText | TypeValue | Dollar | CallValue | FunctionValue | StatementValue
)
"""What may stand where a value may; the shared nodes take these, too, for their parts."""

# ---------------------------------------------------------------------------------------------- types


@frozen
class FunctionType(s.Node):
    """`function(x: T): R`."""

    params: tuple[Param, ...]
    result: TypeExpr | None


@frozen
class Tagged(s.Node):
    """A field of a tuple, which may have no name: `name: T = value @ tag : kind`. `kind`: the type in a protocol buffer."""

    name: str | None
    type: TypeExpr
    value: Expr | None
    tag: int | None
    kind: str | None


@frozen
class TupleType(s.Node):
    """`{a: int, string, static K := 5}`. `word`: `proto` or `parsedmessage`, if it stands before the tuple."""

    fields: tuple[Tagged, ...]
    members: tuple[TypeDecl | StaticDecl, ...] = ()
    word: Literal["proto", "parsedmessage"] | None = None


@frozen
class ProtoOf(s.Node):
    """`proto T`."""

    name: str


TypeExpr = s.TypeExpr | FunctionType | TupleType | ProtoOf
"""What may stand where a type may."""

# ---------------------------------------------------------------------------------------------- declarations


@frozen
class TypeDecl(s.Node):
    """`type T = ...;`. `members`: what an enumeration declares, whose type is no tuple."""

    name: str
    type: TypeExpr
    members: tuple[TypeDecl | StaticDecl, ...] = ()


@frozen
class StaticDecl(s.Node):
    """`static x: T = e;` or `static x := e;`: evaluated once, before any record."""

    name: str
    type: TypeExpr | None
    value: Expr


@frozen
class Param(s.Node):
    """`x: T`, or `unnamed` only the type."""

    name: str
    type: TypeExpr
    unnamed: bool = False


@frozen
class FunctionDecl(s.Node):
    """`f: function(x: T): R {...}`."""

    name: str
    params: tuple[Param, ...]
    result: TypeExpr | None
    body: tuple[Stmt, ...]


@frozen
class Element(s.Node):
    """An index, the value or the weight of a table: a type, perhaps with a name."""

    name: str | None
    type: TypeExpr


Clausal = Literal["file", "proc", "format"]


@frozen
class Clause(s.Node):
    """`file("name.%s", index)`, `proc("command")` or `format("%s", value)` behind the declaration of a table."""

    word: Clausal
    args: tuple[s.Argument, ...]


@frozen
class TableType(s.Node):
    """`table kind(limit)[index]... of value weight w clauses`. `kind_span`: the kind alone."""

    kind: str
    limit: s.Expr | None
    index: tuple[Element, ...]
    value: Element
    weight: Element | None
    clauses: tuple[Clause, ...] = ()
    kind_span: Span | None = field(default=None, eq=False, repr=False)


@frozen
class TableDecl(s.Node):
    """`t: table ...;`, or `static t: T;` with the name of such a type."""

    name: str
    table: TableType | s.TypeExpr


@frozen
class TableTypeDecl(s.Node):
    """`type T = table ...;`."""

    name: str
    table: TableType


# ---------------------------------------------------------------------------------------------- statements


@frozen
class Declare(s.Node):
    """`x: T = e;`, `x: T;`, `x := e;`."""

    name: str
    type: TypeExpr | None
    value: Expr | None


@frozen
class Assign(s.Node):
    """`place = e;`."""

    place: s.Expr
    value: s.Expr


@frozen
class Step(s.Node):
    """`place++;`, `place--;`."""

    place: s.Expr
    by: Literal[1, -1]


@frozen
class Do(s.Node):
    """An expression, which is evaluated for its effect."""

    value: Expr


@frozen
class Emit(s.Node):
    """`emit table[index]... <- value weight w;`. `table_span`: the table's name alone."""

    table: str
    index: tuple[s.Expr, ...]
    value: s.Expr
    weight: s.Expr | None
    table_span: Span | None = field(default=None, eq=False, repr=False)


@frozen
class If(s.Node):
    """`if (c) ... else ...`."""

    cond: s.Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...]


@frozen
class While(s.Node):
    """`while (c) ...`."""

    cond: s.Expr
    body: tuple[Stmt, ...]


@frozen
class DoWhile(s.Node):
    """`do ... while (c);`."""

    body: tuple[Stmt, ...]
    cond: s.Expr


@frozen
class For(s.Node):
    """`for (init; c; step) ...`."""

    init: Stmt | None
    cond: s.Expr | None
    step: Stmt | None
    body: tuple[Stmt, ...]


@frozen
class Case(s.Node):
    """`case 1, 2: ...`."""

    values: tuple[s.Expr, ...]
    body: tuple[Stmt, ...]


@frozen
class Switch(s.Node):
    """`switch (e) {case ...: ... default: ...}`; a case does not fall through to the next."""

    value: s.Expr
    cases: tuple[Case, ...]
    default: tuple[Stmt, ...]


Quantity = Literal["some", "each", "all"]


@frozen
class Quantifier(s.Node):
    """`i: some int;` in the head of a `when`."""

    name: str
    quantity: Quantity
    type: TypeExpr


@frozen
class When(s.Node):
    """`when (quantifiers c) ...`."""

    quantifiers: tuple[Quantifier, ...]
    cond: s.Expr
    body: tuple[Stmt, ...]


@frozen
class Block(s.Node):
    """`{...}`: names declared inside end there."""

    body: tuple[Stmt, ...]


@frozen
class Break(s.Node):
    """`break;` leaves the nearest loop or switch."""


@frozen
class Continue(s.Node):
    """`continue;`."""


@frozen
class Result(s.Node):
    """`result e;` ends the `?{...}` around it."""

    value: Expr


@frozen
class Include(s.Node):
    """`include "file"`. `word`: `include` or `proto`."""

    word: Literal["include", "proto"]
    path: str


@frozen
class Return(s.Node):
    """`return e;`; outside of functions, the record is done."""

    value: s.Expr | None


Stmt = (
    TypeDecl | StaticDecl | FunctionDecl | TableDecl | TableTypeDecl | Declare | Assign | Step | Do | Emit | If | While | DoWhile
    | For | Switch | When | Block | Break | Continue | Return | Result | Include
)  # fmt: skip


@frozen
class Program(s.Node):
    """Declarations and statements in the order of the text.

    `skips`: something undefined ends the statement that meets it, not the record. `seed`: random numbers begin with it.
    `environment`, `files`: the variables and the files that it may ask for, with their values. `zone`: that of times that name
    none, where the program says it.
    """

    items: tuple[Stmt, ...]
    skips: bool = False
    seed: int = 0
    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    zone: str | None = None
