"""What a program means: declared streams with all names and types known, and the graph that they make.

`Program.streams` are declarations, each checked once for all values of its parameters; sizes of arrays and rates are
still expressions there. `Program.graph` is what the program becomes when the stream-level statements have run: filters
with the values of their parameters, pipelines, splitjoins and feedback loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from river.classes import field, frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.diagnostics import Diagnostic
    from river.source import Span

# ---------------------------------------------------------------------------------------------- types


@frozen
class Vector:
    """An array; `size` is an expression over parameters, which comparison ignores: elaboration compares sizes."""

    item: Type
    size: Expr = field(eq=False)


@frozen
class Struct:
    """A struct, compared by its name: its parts, and what they are called in records."""

    name: str
    fields: tuple[tuple[str, Type], ...] = field(eq=False)
    labels: tuple[str, ...] = field(eq=False)

    def index(self, name: str) -> int | None:
        """The place of a part."""
        return next((i for i, (known, _) in enumerate(self.fields) if known == name), None)


@frozen
class Portal:
    """`portal<F>`: by which messages reach filters of the stream `receiver`. A value of it is a number of its own."""

    receiver: str


Type: TypeAlias = t.Type | Vector | Struct | Portal

VOID = t.UNIT
INT = t.I32
FLOAT = t.F32
BOOLEAN = t.BOOL
TEXT = t.STRING
BIT = t.Primitive("bit")
"""0 or 1; an i32 in the operator language."""
COMPLEX = Struct("complex", (("real", FLOAT), ("imag", FLOAT)), ("re", "im"))
"""A complex number. Its operations begin with `complex.`; see `frontends.streamit.routines`."""

SEED = "seed#"
"""The parameter of a filter that is what its random generator begins with: each filter of the graph has its own."""

# ---------------------------------------------------------------------------------------------- expressions


@frozen
class Constant(s.Node):
    """A known value; of an array, a tuple."""

    type: Type
    value: Any


@frozen
class Local(s.Node):
    """A local variable. Keys are unique in a body: `x#1`, `x#2`; of a constant: `x#static1`."""

    type: Type
    key: str


@frozen
class Field(s.Node):
    """A field of the filter."""

    type: Type
    name: str


@frozen
class Param(s.Node):
    """A parameter of the stream, or what it uses of its surroundings."""

    type: Type
    name: str


@frozen
class Peek(s.Node):
    """The item `index` places behind the next one."""

    type: Type
    index: Expr


@frozen
class Pop(s.Node):
    """The next item, which is taken."""

    type: Type


@frozen
class Apply(s.Node):
    """An operation of the operator language's table."""

    type: Type
    operation: str
    args: tuple[Expr, ...]


@frozen
class Logic(s.Node):
    """`and`, `or`: the right side only if the left one does not decide."""

    type: Type
    operation: str
    left: Expr
    right: Expr


@frozen
class Choose(s.Node):
    """`c ? a : b`."""

    type: Type
    cond: Expr
    then: Expr
    other: Expr


@frozen
class At(s.Node):
    """`a[i]`."""

    type: Type
    array: Expr
    index: Expr


@frozen
class StructPart(s.Node):
    """`p.x`, the part at `index` of a struct."""

    type: Type
    value: Expr
    index: int


@frozen
class Make(s.Node):
    """A struct of its parts."""

    type: Type
    items: tuple[Expr, ...]


@frozen
class Call(s.Node):
    """A function of the filter. `changes`: the arguments, by number, that are arrays of the caller's which it changes."""

    type: Type
    helper: str
    args: tuple[Expr, ...]
    changes: tuple[int, ...] = ()


@frozen
class Function(s.Node):
    """A function of the operator language."""

    type: Type
    name: str
    args: tuple[Expr, ...]


@frozen
class Display(s.Node):
    """`{a, b}`."""

    type: Type
    items: tuple[Expr, ...]


@frozen
class Update(s.Node):
    """`p = value`, or `p = p operation value`; its value is the new one, `after` the old one.

    From left to right: the indices of the place, what it holds (`Old` in the value is that, too), the value.
    """

    type: Type
    place: Expr
    operation: str | None
    value: Expr
    after: bool = False


@frozen
class Old(s.Node):
    """In the value of an `Update`: what its place held."""

    type: Type


@frozen
class Load(s.Node):
    """`init_array_1D_int("taps.txt", n)`: the numbers in the first lines of a text, as many as the array has items."""

    type: Type
    path: str


@frozen
class Size(s.Node):
    """How many items an array has, as it is given; `depth`: those inside of so many arrays of it."""

    type: Type
    array: Expr
    depth: int


Expr = (
    Constant | Local | Field | Param | Peek | Pop | Apply | Logic | Choose | At | StructPart | Make | Call | Function | Display
    | Update | Old | Load | Size
)  # fmt: skip

# ---------------------------------------------------------------------------------------------- statements


@frozen
class Declare(s.Node):
    """A local variable; without value it is zero."""

    key: str
    type: Type
    value: Expr | None


@frozen
class Do(s.Node):
    """An expression for its effect."""

    value: Expr


@frozen
class Push(s.Node):
    """`push(e)`."""

    value: Expr


@frozen
class Print(s.Node):
    """`print(e)`; `line`: `println(e)`. The value is a text."""

    value: Expr
    line: bool


@frozen
class Send(s.Node):
    """`p.change(3) [2:4];`: a message by a parameter that is a portal; without `least` at any time.

    `number`: which one of the filter's it is. `args` have the types of the handler's parameters but for sizes.
    """

    portal: Param
    handler: str
    args: tuple[Expr, ...]
    least: Expr | None
    most: Expr | None
    number: int


@frozen
class Bind(s.Node):
    """`s, y <- f(...)`: the parts of a result in places; a `Local` is declared by it."""

    targets: tuple[Local | Field, ...]
    call: Function


@frozen
class If(s.Node):
    """`if (c) ... else ...`."""

    cond: Expr
    then: Block
    other: Block | None


@frozen
class For(s.Node):
    """`for (first; cond; steps) body`."""

    first: tuple[Stmt, ...]
    cond: Expr
    steps: tuple[Expr, ...]
    body: Block


@frozen
class While(s.Node):
    """`while (c) body`; `late`: the condition is asked after the body."""

    cond: Expr
    body: Block
    late: bool


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
class Block(s.Node):
    """Statements."""

    items: tuple[Stmt, ...]


Role = Literal["add", "body", "loop"]


@frozen
class Create(s.Node):
    """A stream to be made: a declared one with arguments, or one of the library's with a type. `portals`: those it listens to."""

    stream: str
    type: Type | None
    args: tuple[Expr, ...]
    portals: tuple[Expr, ...] = ()


@frozen
class Add(s.Node):
    """`add`, `body`, `loop`."""

    role: Role
    creation: Create


@frozen
class Split(s.Node):
    """`split`; no weights: duplicate; empty weights: one each."""

    weights: tuple[Expr, ...] | None


@frozen
class Join(s.Node):
    """`join`; empty weights: one each."""

    weights: tuple[Expr, ...]


@frozen
class Enqueue(s.Node):
    """`enqueue e`."""

    value: Expr


Stmt = (
    Declare | Do | Push | Print | Send | Bind | If | For | While | Return | Break | Continue | Block | Add | Split | Join
    | Enqueue
)  # fmt: skip

# ---------------------------------------------------------------------------------------------- declarations


@frozen
class Parameter(s.Node):
    """A parameter; of a capture, `value` says what of the surroundings it is, or of other parameters."""

    name: str
    type: Type
    value: Expr | None = None


@frozen
class FieldDecl(s.Node):
    """A field of a filter; without value it is zero."""

    name: str
    type: Type
    value: Expr | None


@frozen
class Helper(s.Node):
    """A function of a filter. `params` are the keys of locals; `pop`, `peek`, `push`: its rates where they are written.

    `changes`: the parameters, by number, that are arrays which it changes, for whoever calls it, too.
    """

    name: str
    params: tuple[Declare, ...]
    result: Type
    body: Block
    pop: Expr | None = None
    peek: Expr | None = None
    push: Expr | None = None
    changes: frozenset[int] = frozenset()


@frozen
class Work(s.Node):
    """What one firing does. A rate that is not written is None; `free`: the push rate is not fixed, `asks`: `pop` or `peek`."""

    pop: Expr | None
    peek: Expr | None
    push: Expr | None
    free: bool
    body: Block
    asks: bool = False


@frozen
class Filter(s.Node):
    """A filter. `params` are those of the declaration, then the captures. `text`: the whole declaration."""

    name: str
    params: tuple[Parameter, ...]
    input: Type
    output: Type
    fields: tuple[FieldDecl, ...]
    helpers: tuple[Helper, ...]
    init: Block | None
    work: Work
    prework: Work | None
    text: Span | None = field(default=None, eq=False, repr=False)

    @property
    def first_code(self) -> tuple[s.Node, ...]:
        """What runs before the stream: `init`, and the first values of fields."""
        init = () if self.init is None else (self.init,)
        return (*init, *(each.value for each in self.fields if each.value is not None))


@frozen
class Composite(s.Node):
    """A pipeline, splitjoin or feedback loop. Types that are not written are None; `anonymous`: it has no name."""

    kind: Literal["pipeline", "splitjoin", "feedbackloop"]
    name: str
    params: tuple[Parameter, ...]
    input: Type | None
    output: Type | None
    body: Block


Stream = Filter | Composite

# ---------------------------------------------------------------------------------------------- the graph


@frozen
class Rates:
    """Items of one firing. `push` is None when it differs from firing to firing.

    `asks`: so does how many it takes; then it takes `pop` at least.
    """

    pop: int
    peek: int
    push: int | None
    asks: bool = False


@frozen(eq=False)
class Node(s.Node):
    """A filter in the graph: its declaration, the values of its parameters, and what follows from them.

    `values` has numbers, booleans and tuples of such. `sizes`: the values of all expressions that must be constant.
    `portals`: those by which messages reach it.
    """

    filter: Filter
    values: Mapping[str, Any]
    input: t.Type
    output: t.Type
    rates: Rates
    first: Rates | None
    portals: tuple[int, ...] = ()


@frozen(eq=False)
class Identity(s.Node):
    """Passes every item."""

    input: t.Type

    @property
    def output(self) -> t.Type:
        """The type of its output."""
        return self.input


@frozen(eq=False)
class File(s.Node):
    """A file that is an input (`reads`) or output of the program: its path, and the name of its queue.

    `bits`: its items are packed, eight in a byte.
    """

    name: str
    reads: bool
    item: t.Type
    path: str
    bits: bool

    @property
    def input(self) -> t.Type:
        """Nothing for a reader."""
        return VOID if self.reads else self.item

    @property
    def output(self) -> t.Type:
        """Nothing for a writer."""
        return self.item if self.reads else VOID


@frozen(eq=False)
class Pipeline(s.Node):
    """One after the other."""

    name: str
    input: t.Type
    output: t.Type
    parts: tuple[Graph, ...]


@frozen(eq=False)
class SplitJoin(s.Node):
    """Side by side. `split` is None for duplicate."""

    name: str
    input: t.Type
    output: t.Type
    split: tuple[int, ...] | None
    parts: tuple[Graph, ...]
    join: tuple[int, ...]


@frozen(eq=False)
class FeedbackLoop(s.Node):
    """join, body, split, loop, and back. `split` is None for duplicate; `waiting`: what is enqueued."""

    name: str
    input: t.Type
    output: t.Type
    join: tuple[int, int]
    body: Graph
    loop: Graph
    split: tuple[int, int] | None
    waiting: tuple[Any, ...]


Graph = Node | Identity | File | Pipeline | SplitJoin | FeedbackLoop


@frozen(eq=False)
class Channel(s.Node):
    """The messages that a filter sends to another by one of its portals, as lists: one for each firing of the receiver.

    So many empty lists are there from the beginning (`waiting`); then `gives` says how many follow each firing of the sender,
    which goes on with the last `period` numbers. `late`, beside each: for each message of the sender's code, how many lists
    later it is; nothing if all are in the first.
    """

    sender: Node
    portal: str
    receiver: Node
    waiting: int
    gives: tuple[int, ...]
    period: int
    late: Mapping[int, tuple[int, ...]]


@frozen
class Message:
    """What filters of one kind are told: the types of what each handler takes."""

    handlers: Mapping[str, tuple[t.Type, ...]]


@frozen
class Program(s.Node):
    """The checked program. `firings`: how often each part of the graph fires in one steady state, by identity.

    `starts`: how often before the first one, to fill the windows that look ahead. Both are empty when some rate is not
    fixed. `fns` are the program's functions of the operator language. `channels`: the messages, of the sorts `messages`, by the
    filter that gets them. `said`: what is printed before the first firing, as texts and as filters whose `init` prints.
    """

    streams: Mapping[str, Stream]
    graph: Graph
    firings: Mapping[int, int]
    starts: Mapping[int, int]
    fns: tuple[s.Fn, ...]
    channels: tuple[Channel, ...] = ()
    messages: Mapping[str, Message] = field(factory=dict[str, Message])
    said: tuple[str | Node, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
