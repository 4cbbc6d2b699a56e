"""What the checker understood: a tree in which every name is resolved and every expression has its type.

It is another type than `syntax` (style.md 2.3): the evaluator and the code generator read only this. Traps have site
numbers, given in order of evaluation within an operator (il.md P10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import field, frozen

if TYPE_CHECKING:
    from river.lang.types import Type
    from river.source import Span

Value = Any  # a value of the evaluator: see values.py for the Python form of each type


@frozen(kw_only=True)
class Node:
    """The base: where it stood."""

    span: Span | None = field(default=None, eq=False, repr=False)


# ---------------------------------------------------------------------------------------------- expressions


@frozen
class Literal(Node):
    """A constant value in its Python form."""

    type: Type
    value: Value = field(hash=False)


@frozen
class Local(Node):
    """A slot of the frame: a let, a var, a parameter, a loop name, a with-place. `ref`: the slot holds a reference."""

    type: Type
    slot: int
    name: str
    ref: bool = False


@frozen
class State(Node):
    """A variable of the operator, by its position in the signature."""

    type: Type
    index: int
    name: str


@frozen
class ConstRef(Node):
    """A constant of the operator, by its position."""

    type: Type
    index: int
    name: str


@frozen
class Get(Node):
    """A field of a record or tuple, by its position."""

    type: Type
    value: Expr
    index: int
    name: str


@frozen
class At(Node):
    """`c[k]`: an item of a list, array, deque (index), string (code point), or the entry of a map (key); traps.

    As a place it may be assigned and mutated (not for strings); assigning to an absent key of a map inserts it.
    """

    type: Type
    value: Expr
    index: Expr
    site: int


@frozen
class Apply(Node):
    """A library operation. If it mutates, the first argument is a place. `site` is None for operations without traps."""

    type: Type
    operation: str
    args: tuple[Expr | Lambda, ...]
    site: int | None = None


@frozen
class Call(Node):
    """A user function by its position in the operator's (or library's) `fns`; ref arguments are places."""

    type: Type
    function: int
    name: str
    args: tuple[Expr, ...]
    site: int


@frozen
class Some(Node):
    """A value seen as an optional that is present (no change of representation in the evaluator)."""

    type: Type
    value: Expr


@frozen
class If(Node):
    """`if c {a} else {b}`."""

    type: Type
    cond: Expr
    then: Expr
    other: Expr


@frozen
class Logic(Node):
    """Short-circuit `and`, `or`."""

    type: Type
    op: str
    left: Expr
    right: Expr


@frozen
class MakeRecord(Node):
    """A record or tuple (or unit) from its fields, in the order of the type. `order`: in which the text evaluates them."""

    type: Type
    values: tuple[Expr, ...]
    order: tuple[int, ...]


@frozen
class MakeList(Node):
    """A list or array."""

    type: Type
    values: tuple[Expr, ...]


@frozen
class MakeMap(Node):
    """An empty container of any kind, or a map (omap) with entries."""

    type: Type
    items: tuple[tuple[Expr, Expr], ...] = ()


@frozen
class Counted(Node):
    """The range `low .. high` of i64 (or i32)."""

    low: Expr
    high: Expr


@frozen
class Comprehension(Node):
    """A list built by a loop. `slots`: the loop names; two for maps (key, value) and for indexed (index, item)."""

    type: Type
    value: Expr
    slots: tuple[int, ...]
    names: tuple[str, ...]
    range: Counted | Expr
    cond: Expr | None


@frozen
class Lambda(Node):
    """An inlined function argument; parameters are slots of the enclosing frame."""

    type: Type
    slots: tuple[int, ...]
    names: tuple[str, ...]
    body: Expr


Expr = (
    Literal | Local | State | ConstRef | Get | At | Apply | Call | Some | If | Logic | MakeRecord | MakeList | MakeMap
    | Comprehension
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- statements


@frozen
class Let(Node):
    """A borrowed name."""

    slot: int
    name: str
    value: Expr


@frozen
class Var(Node):
    """An owned name."""

    slot: int
    name: str
    value: Expr


@frozen
class Assign(Node):
    """`place = e;`."""

    place: Expr
    value: Expr


@frozen
class With(Node):
    """An entry as a place: the slot owns the entry's value inside the body and is written back at its end."""

    slot: int
    name: str
    container: Expr
    key: Expr
    default: Expr | None
    body: Block
    site: int


@frozen
class Drop(Node):
    """Removes the entry bound to the slot."""

    slot: int
    name: str


@frozen
class Bind(Node):
    """`e is x`."""

    value: Expr
    slot: int
    name: str


@frozen
class Branch(Node):
    """`if`."""

    cond: Expr | Bind
    then: Block
    other: Block | None


@frozen
class For(Node):
    """A loop over a range or a container; `loop` identifies it for break and continue."""

    loop: int
    slots: tuple[int, ...]
    names: tuple[str, ...]
    range: Counted | Expr
    body: Block


@frozen
class While(Node):
    """A loop while a condition holds."""

    loop: int
    cond: Expr
    body: Block


@frozen
class Break(Node):
    """Leaves loop `loop`."""

    loop: int


@frozen
class Continue(Node):
    """Goes on with loop `loop`."""

    loop: int


@frozen
class Return(Node):
    """Leaves the function or handler."""

    value: Expr | None


@frozen
class Emit(Node):
    """Appends an item to output `out` (position)."""

    out: int
    value: Expr


@frozen
class Mark(Node):
    """Appends a mark to output `out` (position)."""

    out: int
    value: Expr


@frozen
class Trap(Node):
    """Ends the run with the user's text."""

    text: str
    site: int


@frozen
class Do(Node):
    """An operation or call for its effect."""

    call: Apply | Call


@frozen
class Block(Node):
    """Statements."""

    items: tuple[Stmt, ...]


Stmt = (
    Let
    | Var
    | Assign
    | With
    | Drop
    | Branch
    | For
    | While
    | Break
    | Continue
    | Return
    | Emit
    | Mark
    | Trap
    | Do
)


# ---------------------------------------------------------------------------------------------- functions, operators


@frozen
class Param(Node):
    """A parameter; it is slot number i of its function's frame."""

    name: str
    type: Type
    ref: bool


@frozen
class Fn(Node):
    """A function: parameters are slots 0 .. n-1 of a frame of `slots` slots. `emits`: its body may emit."""

    name: str
    params: tuple[Param, ...]
    result: Type
    slots: int
    body: Block | Expr
    emits: bool


@frozen
class Const(Node):
    """A constant, its expression closed (it may name earlier constants and functions)."""

    name: str
    type: Type
    value: Expr
    slots: int


@frozen
class Port(Node):
    """An input; `by` is the key field; `initial` the initial tail as list values (never None)."""

    name: str
    type: Type
    by: str | None
    initial: tuple[Value, ...] = field(default=(), hash=False)


@frozen
class Out(Node):
    """An output; `push` is the stated rate."""

    name: str
    type: Type
    by: str | None
    push: int | None


@frozen
class VarParam(Node):
    """A variable of the signature; `written` if some handler may write it."""

    name: str
    type: Type
    written: bool


@frozen
class ItemHandler(Node):
    """One item of port `port` in slot 0."""

    port: int
    slots: int
    body: Block


@frozen
class Rate(Node):
    """Consumption of one port by a rated firing: `peek >= pop`; the window is a list of `peek` items."""

    port: int
    peek: int
    pop: int


@frozen
class RatedHandler(Node):
    """Slots 0 .. n-1 hold the windows, in the order of `rates`.

    `early`: pairs (items there, items sent), in ascending order, of a handler of one port: before its window is complete it
    has sent so many of the items that it sends. They are made of the window so far, with zeros in place of what is to come.
    """

    rates: tuple[Rate, ...]
    slots: int
    body: Block
    first: bool
    early: tuple[tuple[int, int], ...] = ()

    def sent(self, there: int) -> int:
        """How many items of a firing have been sent when so many of its window are there, but not all."""
        return max((sent for least, sent in self.early if least <= there), default=0)


@frozen
class PhaseHandler(Node):
    """`count` firings on `port`, the item in slot 0."""

    count: int
    port: int
    slots: int
    body: Block


@frozen
class MergeHandler(Node):
    """Slot 0 holds the key, slots 1 .. n the sides (optionals) in the order of `ports`."""

    ports: tuple[int, ...]
    slots: int
    body: Block


@frozen
class MarkHandler(Node):
    """The mark's key in slot 0."""

    slots: int
    body: Block


@frozen
class TrapSite:
    """A place that can trap: the codes it may raise, and where it stands."""

    codes: tuple[str, ...]
    span: Span | None = field(default=None, eq=False, repr=False)


@frozen
class Operator(Node):
    """A checked operator. Exactly one of these holds: all of `items`; `rated` (with optional `first`); `phases`; `merge`."""

    name: str
    ports: tuple[Port, ...]
    vars: tuple[VarParam, ...]
    outs: tuple[Out, ...]
    consts: tuple[Const, ...]
    fns: tuple[Fn, ...]
    sites: tuple[TrapSite, ...]
    items: tuple[ItemHandler, ...] = ()
    first: RatedHandler | None = None
    rated: RatedHandler | None = None
    phases: tuple[PhaseHandler, ...] = ()
    merge: MergeHandler | None = None
    mark: MarkHandler | None = None


@frozen
class Extern(Node):
    """A user-defined Python operator: the signature, and `module:function`, called per item or, if `scalar`, per row."""

    name: str
    ports: tuple[Port, ...]
    vars: tuple[VarParam, ...]
    outs: tuple[Out, ...]
    target: str
    scalar: bool = False
