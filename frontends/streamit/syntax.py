"""What a River-StreamIt text says: streams, the statements that build them, and the C-like code of filters.

Leaves of expressions are the operator language's (`river.lang.syntax`); what has parts is C's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from river.classes import field, frozen
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span

# ---------------------------------------------------------------------------------------------- expressions


@frozen
class TypeName(s.Node):
    """`float[8][]`: a word and the sizes behind it, the outermost first, None where it is left out.

    `receiver`: the filter of a `portal<F>`.
    """

    name: str
    sizes: tuple[Expr | None, ...] = ()
    receiver: str | None = None


@frozen
class Unary(s.Node):
    """`op` is one of `-`, `+`, `!`, `~`."""

    op: str
    value: Expr


@frozen
class Binary(s.Node):
    """`op` is one of C's infix operators."""

    op: str
    left: Expr
    right: Expr


@frozen
class Choose(s.Node):
    """`c ? a : b`."""

    cond: Expr
    then: Expr
    other: Expr


@frozen
class Cast(s.Node):
    """`(float) e`."""

    type: TypeName
    value: Expr


@frozen
class Index(s.Node):
    """`a[i]`; `index` is None in `Point[] a`, whose type could be an expression until the name comes."""

    value: Expr
    index: Expr | None


@frozen
class StructPart(s.Node):
    """`p.x`."""

    value: Expr
    name: str


@frozen
class Imaginary(s.Node):
    """`2i`."""

    value: float


@frozen
class Call(s.Node):
    """`f(a, b)`; pop, peek, push and println are calls, too."""

    name: str
    args: tuple[Expr, ...]


@frozen
class Assign(s.Node):
    """`p = e`, `p += e`; `op` is the operator before the equals sign, empty for none."""

    place: Expr
    op: str
    value: Expr


@frozen
class Step(s.Node):
    """`++p`, `p--`; `op` is `+` or `-`; `after`: its value is the one before the step."""

    place: Expr
    op: str
    after: bool


@frozen
class Display(s.Node):
    """`{1, 2, 3}`: an array or a struct, whichever is wanted."""

    items: tuple[Expr, ...]


Expr = (
    s.Int
    | s.Float
    | s.Bool
    | s.String
    | s.Name
    | Unary
    | Binary
    | Choose
    | Cast
    | Index
    | StructPart
    | Imaginary
    | Call
    | Assign
    | Step
    | Display
)

# ---------------------------------------------------------------------------------------------- statements


@frozen
class Declarator(s.Node):
    """`x = e` in a declaration."""

    name: str
    value: Expr | None


@frozen
class Declare(s.Node):
    """`float x = 1, y;`."""

    type: TypeName
    names: tuple[Declarator, ...]


@frozen
class Do(s.Node):
    """`e;`."""

    value: Expr


@frozen
class Block(s.Node):
    """`{...}`."""

    items: tuple[Stmt, ...]


@frozen
class If(s.Node):
    """`if (c) s else s`."""

    cond: Expr
    then: Stmt
    other: Stmt | None


@frozen
class For(s.Node):
    """`for (first; c; steps) s`."""

    first: tuple[Stmt, ...]
    cond: Expr | None
    steps: tuple[Expr, ...]
    body: Stmt


@frozen
class While(s.Node):
    """`while (c) s`; `late`: `do s while (c);`."""

    cond: Expr
    body: Stmt
    late: bool = False


@frozen
class Label(s.Node):
    """`case e:`; `default:` has no value."""

    value: Expr | None


@frozen
class Case(s.Node):
    """`case 1: case 2: ...`: what runs from there on."""

    labels: tuple[Label, ...]
    items: tuple[Stmt, ...]


@frozen
class Switch(s.Node):
    """`switch (e) {...}`."""

    value: Expr
    cases: tuple[Case, ...]


@frozen
class Return(s.Node):
    """`return e;`."""

    value: Expr | None


@frozen
class Break(s.Node):
    """`break;`."""


@frozen
class Continue(s.Node):
    """`continue;`."""


@frozen
class OutOfLine(s.Node):
    """`s, y <- f(s, peek(1));`: results of a function of the operator language (paper Figure 3 (f))."""

    targets: tuple[s.Name, ...]
    call: Call


@frozen
class LatencyRange(s.Node):
    """`[2:4]`: from when to when a message is delivered, in firings of the sender; without either, at any time."""

    least: Expr | None
    most: Expr | None


@frozen
class Send(s.Node):
    """`p.change(3) [2:4];`: a message. Without a latency it is `p.change(3);`, which is read as a call."""

    call: Call
    latency: LatencyRange


@frozen
class Named(s.Node):
    """`LowPass(2.0, 64)`, `Identity<float>()`."""

    name: str
    type: TypeName | None
    args: tuple[Expr, ...]


Role = Literal["add", "body", "loop"]


@frozen
class Add(s.Node):
    """`add F(1) to p;`, `body ...`, `loop ...`, or a stream that stands alone. `portals`: by which messages reach it."""

    role: Role
    creation: Named | Stream
    portals: tuple[s.Name, ...] = ()


@frozen
class Split(s.Node):
    """`split duplicate;`, `split roundrobin(1, 2);`. `weights` is None for duplicate."""

    weights: tuple[Expr, ...] | None


@frozen
class Join(s.Node):
    """`join roundrobin(1, 2);`."""

    weights: tuple[Expr, ...]


@frozen
class Enqueue(s.Node):
    """`enqueue e;`."""

    value: Expr


Stmt = (
    Declare | Do | Block | If | For | While | Switch | Return | Break | Continue | OutOfLine | Send | Add | Split | Join
    | Enqueue
)  # fmt: skip

# ---------------------------------------------------------------------------------------------- streams


@frozen
class Param(s.Node):
    """`int n`."""

    type: TypeName
    name: str


@frozen
class Rate(s.Node):
    """`push 2`; `value` is None for a rate that is not fixed (`*`, `[0, 3]`)."""

    word: str
    value: Expr | None


@frozen
class Init(s.Node):
    """`init {...}`."""

    body: Block


@frozen
class Work(s.Node):
    """`work push 1 pop 1 {...}`; `first`: prework."""

    rates: tuple[Rate, ...]
    body: Block
    first: bool


@frozen
class Helper(s.Node):
    """`float f(float x) pop 1 {...}` inside a filter, or in `helper Name {...}`; a `handler` gives nothing."""

    type: TypeName
    name: str
    params: tuple[Param, ...]
    rates: tuple[Rate, ...]
    body: Block


Member = Declare | Init | Work | Helper
Kind = Literal["filter", "pipeline", "splitjoin", "feedbackloop"]


@frozen
class Stream(s.Node):
    """A declared or anonymous stream. `signature`: the types of its input and output, None where they are left out.

    Filters have `members`, the others a `body`. `name_span`: the name alone, or the word `filter`.
    """

    kind: Kind
    name: str | None
    signature: tuple[TypeName, TypeName] | None
    params: tuple[Param, ...]
    members: tuple[Member, ...] = ()
    body: tuple[Stmt, ...] = ()
    name_span: Span | None = field(default=None, eq=False, repr=False)


@frozen
class Static(s.Node):
    """`static {...}`: constants for the whole program."""

    body: tuple[Stmt, ...]


@frozen
class Struct(s.Node):
    """`struct Point { float x; float y; }`."""

    name: str
    fields: tuple[Param, ...]


@frozen
class Helpers(s.Node):
    """`helper Name {...}`: functions for all filters, which call them `Name.f`."""

    name: str
    functions: tuple[Helper, ...]


@frozen
class Natives(s.Node):
    """`native Name {...}`: functions of other languages, by their whole names."""

    names: frozenset[str]


@frozen
class Program(s.Node):
    """Streams, constants, functions of filters, and functions of the operator language.

    `natives`: functions of other languages, `Block.name`. `vectors`: which of `float2`, `float3` and `float4` the text
    mentions. `seed`: random numbers begin with it. `decimals`: floats are printed with so many digits
    behind the point. `main`: the stream that is the program, if it was chosen.
    """

    streams: tuple[Stream, ...]
    statics: tuple[Static, ...]
    helpers: tuple[Helpers, ...]
    structs: tuple[Struct, ...]
    fns: tuple[s.Fn, ...]
    natives: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    seed: int | None = None
    decimals: int | None = None
    main: str | None = None
