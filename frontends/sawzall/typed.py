"""What a checked program means: every name resolved, every expression with its type, every table with its fields.

An expression may be *undefined*; `may_fail` says of which nodes that must be reckoned with. Whole numbers wrap; values
are copied by assignment; types are those of River (`int` is i64, `uint` u64, `float` f64, arrays are lists).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from frontends.sawzall.operations import OPERATIONS, Operation
from frontends.sawzall.times import OWN_ZONE, zone
from river.classes import frozen
from river.il.trees import Same, children, walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frontends.sawzall.syntax import Quantity
    from river.diagnostics import Diagnostic

# ---------------------------------------------------------------------------------------------- names


@frozen
class Variable(s.Node):
    """A variable. `loose`: some read of it may come before any assignment; `home`: the function it is of, -1: the body."""

    name: str
    type: t.Type
    kind: Literal["input", "static", "local", "parameter", "capture", "quantifier"]
    loose: bool = False
    home: int = -1


# ---------------------------------------------------------------------------------------------- expressions


@frozen
class Constant(s.Node):
    """A bool, int, float, str or bytes."""

    type: t.Type
    value: Any


@frozen
class Read(s.Node):
    """A variable. Not `definite`: perhaps nothing was assigned to it yet, then it is undefined."""

    type: t.Type
    variable: int
    definite: bool = True


@frozen
class Field(s.Node):
    """`e.name`. `missing`: the field may be absent, then it is undefined."""

    type: t.Type
    value: Expr
    name: str
    missing: bool = False


@frozen
class Item(s.Node):
    """`e[i]` of an array, string, byte string (undefined out of range) or map (undefined without such a key)."""

    type: t.Type
    value: Expr
    index: Expr


@frozen
class Slice(s.Node):
    """`e[i:j]`; bounds outside are moved to the ends."""

    type: t.Type
    value: Expr
    low: Expr
    high: Expr


@frozen
class Length(s.Node):
    """`$`: how long what is indexed is, of the nearest Item or Part whose index this stands in."""

    type: t.Type


@frozen
class Apply(s.Node):
    """An operation of `operations.OPERATIONS`."""

    type: t.Type
    operation: str
    args: tuple[Expr, ...]


@frozen
class Match(s.Node):
    """`match`, `matchstrs`, `matchposns`: a pattern on a string."""

    type: t.Type
    operation: str
    pattern: Expr
    value: Expr


@frozen
class Saw(s.Node):
    """`saw`, `sawn`, `sawzall`: the parts of a text that patterns find one behind the other.

    `rounds`: how often the patterns come in turn, until the text is at its end if it is negative. `takes`: what is kept of
    what each pattern finds. `rests`: places for what remains of the text behind so many patterns; of several rounds, at the end.
    `once`: it is `saw`.
    """

    type: t.Type
    rounds: Expr
    text: Expr
    patterns: tuple[Expr, ...]
    takes: tuple[Literal["whole", "skip", "submatch"], ...]
    rests: tuple[tuple[int, Expr], ...]
    once: bool


@frozen
class Unpacked(s.Node):
    """The tuple in bytes, which are a protocol buffer; undefined if they are none. `type` is a `types.Proto`."""

    type: t.Type
    value: Expr


@frozen
class Packed(s.Node):
    """The bytes of a tuple, whose type is a `types.Proto`; `counted`: how many fields in it are there."""

    type: t.Type
    value: Expr
    counted: bool = False


@frozen
class Opened(s.Node):
    """What a value is made of whose type contains itself; that type is a `types.Recursive`."""

    type: t.Type
    value: Expr


@frozen
class Closed(s.Node):
    """The value of a type that contains itself, which is a `types.Recursive`, of what it is made of."""

    type: t.Type
    value: Expr


@frozen
class There(s.Node):
    """`inproto(e.name)`: whether the field of a tuple was read, or was assigned to."""

    type: t.Type
    value: Expr
    name: str


@frozen
class Logic(s.Node):
    """`and`, `or`: the right side counts only if the left one does not decide."""

    type: t.Type
    op: str
    left: Expr
    right: Expr


@frozen
class Defined(s.Node):
    """`def(e)`."""

    type: t.Type
    value: Expr


@frozen
class Call(s.Node):
    """A function of the program on `args`; `captures` are variables outside of it that it reads, `lent` those that change."""

    type: t.Type
    function: int
    args: tuple[Expr, ...]
    captures: tuple[Read, ...] = ()
    lent: frozenset[int] = frozenset()


@frozen
class FunctionOf(s.Node):
    """A function of the program as a value."""

    type: t.Function
    function: int


@frozen
class Invoke(s.Node):
    """A call of a function value; none are left in a program that is checked."""

    type: t.Type
    callee: Expr
    args: tuple[Expr, ...]


@frozen
class StatementValue(s.Node):
    """`?{...}`: what the first Result gives."""

    type: t.Type
    body: tuple[Stmt, ...]


@frozen
class ArrayOf(s.Node):
    """`{a, b}`."""

    type: t.Type
    items: tuple[Expr, ...]


@frozen
class MapOf(s.Node):
    """`{k: v}` as a map; a later entry replaces an earlier one of the same key."""

    type: t.Type
    items: tuple[tuple[Expr, Expr], ...]


@frozen
class RecordOf(s.Node):
    """A record: values in the order of the type's fields."""

    type: t.Record
    values: tuple[Expr, ...]


Expr = (
    Constant
    | Read
    | Field
    | Item
    | Slice
    | Length
    | Apply
    | Match
    | Saw
    | Unpacked
    | Packed
    | Opened
    | Closed
    | There
    | Logic
    | Defined
    | Call
    | FunctionOf
    | Invoke
    | StatementValue
    | ArrayOf
    | MapOf
    | RecordOf
)


# ---------------------------------------------------------------------------------------------- statements


@frozen
class Declare(s.Node):
    """A variable comes into being, with a value or without. `needed`: an undefined value is as in any other statement."""

    variable: int
    value: Expr | None
    needed: bool = False


@frozen
class Assign(s.Node):
    """`place = value;` - a Read, Field, Item or Part."""

    place: Expr
    value: Expr


@frozen
class Within(s.Node):
    """A change of a part of the value at a place whose type contains itself. `variable`: what that is made of, which changes."""

    place: Expr
    variable: int
    change: Stmt


@frozen
class Step(s.Node):
    """`place++;` or `place--;`."""

    place: Expr
    by: Literal[1, -1]


@frozen
class Evaluate(s.Node):
    """An expression, for its effect."""

    value: Expr


@frozen
class Leave(s.Node):
    """`clearproto(e.name);`: the field of a tuple is not among its bytes any more."""

    place: Field


@frozen
class Append(s.Node):
    """An item behind the last of an array, which is a variable."""

    variable: int
    value: Expr


@frozen
class Assert(s.Node):
    """`assert(cond, text);`: the run ends if it does not hold."""

    cond: Expr
    text: Expr


@frozen
class Emit(s.Node):
    """One item for a table."""

    table: int
    index: tuple[Expr, ...]
    value: Expr
    weight: Expr | None


@frozen
class If(s.Node):
    """`if`."""

    cond: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


@frozen
class While(s.Node):
    """`while`."""

    cond: Expr
    body: tuple[Stmt, ...]


@frozen
class DoWhile(s.Node):
    """`do ... while`."""

    body: tuple[Stmt, ...]
    cond: Expr


@frozen
class For(s.Node):
    """`for (init; cond; step)`; without cond, for ever."""

    init: tuple[Stmt, ...]
    cond: Expr | None
    step: tuple[Stmt, ...]
    body: tuple[Stmt, ...]


@frozen
class Case(s.Node):
    """One of several values, and what to do then."""

    values: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@frozen
class Switch(s.Node):
    """The first case with a value that equals; else the default."""

    value: Expr
    cases: tuple[Case, ...]
    default: tuple[Stmt, ...]


@frozen
class Quantifier(s.Node):
    """A variable over the indices that any of `over` has, in order: of arrays and texts, and keys of maps as they came.

    `parted`: those of `over` of which it bounds a part; for them it is also the length.
    """

    quantity: Quantity
    variable: int
    over: tuple[Expr, ...]
    parted: frozenset[int] = frozenset()


@frozen
class When(s.Node):
    """`when`: the body for each (or the first) choice of the variables that meets the condition; `all` come last."""

    quantifiers: tuple[Quantifier, ...]
    cond: Expr
    body: tuple[Stmt, ...]


@frozen
class Break(s.Node):
    """Leaves the nearest loop or switch."""


@frozen
class Continue(s.Node):
    """Goes on with the nearest loop."""


@frozen
class Return(s.Node):
    """Ends the function, or the record."""

    value: Expr | None = None


@frozen
class Result(s.Node):
    """Ends the nearest `?{...}`."""

    value: Expr


Stmt = (
    Declare | Assign | Within | Step | Leave | Evaluate | Append | Assert | Emit | If | While | DoWhile | For | Switch | When
    | Break | Continue | Return | Result
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- program


@frozen
class Function(s.Node):
    """A function. `captures`: the variables outside that it, or a function that it calls, reads; by value if not `lent`.

    A capture is a pair: the variable outside, the variable inside. `lent`: the variables outside that some function changes.
    `fails`: the result may be undefined, because what is returned is. `ends`: something undefined in it may end the record.
    """

    name: str
    params: tuple[int, ...]
    captures: tuple[tuple[int, int], ...]
    result: t.Type | None
    body: tuple[Stmt, ...]
    fails: bool
    ends: bool = False
    lent: frozenset[int] = frozenset()


Fields = tuple[tuple[str, t.Type], ...]


@frozen
class Table(s.Node):
    """A table. `index`, `value`, `weight`: the fields of its items; `whole`: the value is a record, not one field.

    `printed`: values go to this stream as they are. `sent`: they go to files, or to commands, whose names are the index.
    """

    name: str
    kind: str
    limit: int | None
    index: Fields
    value: Fields
    weight: Fields
    whole: bool
    printed: Literal["stdout", "stderr"] | None = None
    sent: Literal["file", "proc"] | None = None


@frozen
class Program(s.Node):
    """`statics`: in order, with their values; `body`: what is done for each record of the input; `remarks`: warnings.

    `kept`: the variables that function values may use, which exist from the beginning to the end of their function. `skips`:
    something undefined ends the statement that meets it, not the record. `seed`: random numbers begin with it. `recursive`: what
    the types that contain themselves are made of, by their numbers. `zone`: that of times that name none.
    """

    input: int
    variables: tuple[Variable, ...]
    statics: tuple[tuple[int, Expr], ...]
    tables: tuple[Table, ...]
    functions: tuple[Function, ...]
    body: tuple[Stmt, ...]
    kept: frozenset[int] = frozenset()
    remarks: tuple[Diagnostic, ...] = ()
    skips: bool = False
    seed: int = 0
    recursive: tuple[t.Type, ...] = ()
    zone: str = "UTC"


# ---------------------------------------------------------------------------------------------- what may be undefined


def may_fail(node: s.Node, failing: frozenset[int]) -> bool:
    """Whether `node` may meet an undefined value; `failing`: the functions whose calls may."""
    match node:
        case Defined():
            return False
        case Read(_, _, definite):
            return not definite
        case Item() | Unpacked():
            return True
        case Field(_, _, _, True):
            return True
        case Apply(_, operation, args) if OPERATIONS[operation].undefined is not None and not _known_zone(
            OPERATIONS[operation], args
        ):
            return True
        case Call(_, function) if function in failing:
            return True
        case Invoke():
            return True
        case StatementValue(_, body) if not leaves(body):
            return True
        case Assign(Item(_, value, index), assigned) if isinstance(value.type, t.Map):
            return may_fail(value, failing) or may_fail(index, failing) or may_fail(assigned, failing)
        case Assign(Read(), value):
            return may_fail(value, failing)
        case Assign(Field(_, value, _, _), assigned):
            return may_fail(value, failing) or may_fail(assigned, failing)
        case _:
            return any(may_fail(child, failing) for child in children(node))


def _known_zone(operation: Operation, args: tuple[Expr, ...]) -> bool:
    """Whether all that an operation may lack is a zone, and that is known."""
    last = args[-1]
    return (
        operation.zoned
        and not operation.optional
        and isinstance(last, Constant)
        and (last.value == OWN_ZONE or zone(last.value) is not None)
    )


def may_end(body: tuple[Stmt, ...], functions: Sequence[Function]) -> bool:
    """Whether something undefined in statements may end the record, in them or in what they call.

    What a variable begins with may be undefined, and so may what is returned, and the condition of a `when`: it is no match.
    """
    failing = frozenset(i for i, f in enumerate(functions) if f.fails)

    def ends(part: s.Node) -> bool:
        match part:
            case Declare(_, None) | Declare(_, _, False) | Return() | Break() | Continue() | Quantifier():
                return False
            case When(_, _, body):
                return any(map(ends, body))
            case If() | While() | DoWhile() | For() | Switch() | Case():
                return any(map(ends, children(part)))
            case _:
                return may_fail(part, failing)

    return any(functions[each].ends for each in inside(body).called) or any(map(ends, body))


def tested(cond: Expr, *, whether: bool) -> frozenset[int]:
    """The variables that have a value where a condition is true, or where it is false."""
    match cond:
        case Defined(_, Read(_, variable)) if whether:
            return frozenset({variable})
        case Apply(_, "not", (inner,)):
            return tested(inner, whether=not whether)
        case Logic(_, "and", left, right) if whether:
            return tested(left, whether=True) | tested(right, whether=True)
        case Logic(_, "or", left, right) if not whether:
            return tested(left, whether=False) | tested(right, whether=False)
        case _:
            return frozenset()


def leaves(body: tuple[Stmt, ...]) -> bool:
    """Whether control never reaches the end of the statements: every path returns, or in `?{...}` has a result."""
    match body[-1:]:
        case (Return() | Result(),):
            return True
        case (If(_, then, other),):
            return leaves(then) and leaves(other)
        case (Switch(_, cases, default),):
            blocks = (*(case.body for case in cases), default)
            return all(leaves(block) and not any(map(breaks, block)) for block in blocks)
        case _:
            return False


def breaks(stmt: Stmt) -> bool:
    """Whether a `break` inside belongs to the loop or switch around the statement."""
    match stmt:
        case Break():
            return True
        case If(_, then, other):
            return any(map(breaks, (*then, *other)))
        case When(_, _, body):
            return any(map(breaks, body))
        case _:
            return False


N = TypeVar("N", bound=s.Node)


class Inside:
    """What statements or values are made of, by class: many ask for that, and it is gone through once."""

    def __init__(self, parts: Sequence[s.Node]) -> None:
        """All nodes of some parts of a program."""
        self._found: dict[type[s.Node], list[s.Node]] = {}
        for part in parts:
            for node in walk(part):
                self._found.setdefault(node.__class__, []).append(node)

    def of(self, kind: type[N]) -> Sequence[N]:
        """The nodes of a class, in the order of the text."""
        return cast("Sequence[N]", self._found.get(kind, ()))

    @cached_property
    def called(self) -> frozenset[int]:
        """The functions that are called."""
        return frozenset(each.function for each in self.of(Call))

    @cached_property
    def assigned(self) -> frozenset[int]:
        """The variables to which something is assigned, or of which a part is changed."""
        found = {each.variable for each in self.of(Append)}
        found.update(root(each.place) for kind in (Assign, Within, Step, Leave) for each in self.of(kind))
        found.update(root(place) for each in self.of(Saw) for _, place in each.rests)
        return frozenset(found).union(*(each.lent for each in self.of(Call)))


def inside(body: tuple[Stmt, ...]) -> Inside:
    """What the statements of a program or a function are made of."""
    return _inside(Same(body))


@lru_cache(maxsize=1024)
def _inside(body: Same[tuple[Stmt, ...]]) -> Inside:
    return Inside(body.value)


def changes(expr: Expr) -> bool:
    """Whether a variable is another one when an expression has been evaluated."""
    return not isinstance(expr, Read | Constant) and bool(Inside((expr,)).assigned)


def root(place: Expr) -> int:
    """The variable of which `place` is a part."""
    while isinstance(place, Field | Item | Slice):
        place = place.value
    assert isinstance(place, Read)  # noqa: S101 - the checker has seen to it
    return place.variable
