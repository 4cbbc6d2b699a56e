"""A River IL program: declarations in the order of its text, and the graph of operator uses.

The graph language is the paper's (section 3.4 and 4.2); operators, types and functions are the operator language's
(`river.lang.syntax`). A Program is a frozen value; passes make new ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from river.classes import field, frozen
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span


@frozen
class TypeDecl(s.Node):
    """`type delta<R> = {...};`."""

    name: str
    params: tuple[str, ...]
    type: s.TypeExpr


@frozen
class Annotation(s.Node):
    """`@Keys(symbol)`: an extensible annotation of an operator use (paper section 4.2), or of an input or output."""

    name: str
    args: tuple[s.Expr, ...] = ()


@frozen
class Input(s.Node):
    """`@A() input q: T by key;`: a queue that the world fills."""

    name: str
    type: s.TypeExpr
    by: str | None = None
    annotations: tuple[Annotation, ...] = ()


@frozen
class View(s.Node):
    """`rows($v, f)`: an output that is a view of a variable, read when the run drains (il.md P2).

    `rows($v, f, n)`: only the `leading` n fields put the rows in order; else all do.
    """

    variable: str
    function: str
    leading: int | None = None


@frozen
class Output(s.Node):
    """`@A() output q: T by key;` or `output t: T = rows($v, f);`."""

    name: str
    type: s.TypeExpr
    by: str | None = None
    view: View | None = None
    annotations: tuple[Annotation, ...] = ()


@frozen
class Queue(s.Node):
    """`queue q: T by key;`: a stated type for an inner queue (without one, it is that of the producer)."""

    name: str
    type: s.TypeExpr
    by: str | None = None


@frozen
class Variable(s.Node):
    """`var $v: T = e;`."""

    name: str
    type: s.TypeExpr
    initial: s.Expr


@frozen
class Result(s.Node):
    """`result $v = union($v.0, $v.1);`, or `combine(...)`: the program's variable, split by fission."""

    name: str
    parts: tuple[str, ...]
    combined: bool = False


@frozen
class Instance(s.Node):
    """`operator a = std.merge_seq<T = Trade, n = 2>;`: a template applied."""

    name: str
    template: str
    args: tuple[tuple[str, s.TemplateArg], ...] = ()


@frozen
class Lift(s.Node):
    """`operator c = lift(count, seq);`: the operator with its items tagged by a sequence number (il.md (d))."""

    name: str
    operator: str
    tag: str


@frozen
class Use(s.Node):
    """`@A() (q, $v) <- f(p, $v);`; variables are spelled with their dollar sign in `outs` and `ins`.

    `within`: what users call the parts of their program whose work it does, and where the text of each stands.
    """

    outs: tuple[str, ...]
    operator: str
    ins: tuple[str, ...]
    annotations: tuple[Annotation, ...] = ()
    within: tuple[tuple[str, Span | None], ...] = field(default=(), eq=False, repr=False)


Decl = (
    TypeDecl | Input | Output | Queue | Variable | Result | s.Fn | s.Operator | s.Extern | s.Template | Instance | Lift
    | Use
)  # fmt: skip


@frozen(slots=False)
class Program:
    """Declarations in the order of the text."""

    decls: tuple[Decl, ...]

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The input queues."""
        return tuple(d for d in self.decls if isinstance(d, Input))

    def input(self, name: str) -> Input:
        """The input of this name, which there is."""
        return next(decl for decl in self.inputs if decl.name == name)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs: queues and views."""
        return tuple(d for d in self.decls if isinstance(d, Output))

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The operator uses: the stream graph."""
        return tuple(d for d in self.decls if isinstance(d, Use))
