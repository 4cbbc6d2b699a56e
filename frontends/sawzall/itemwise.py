"""Variables of bytes that loops change byte by byte are kept as arrays of whole numbers: else each change would copy them.

Only their bytes and their lengths are read of the arrays; what reads more makes bytes of them again, which takes as long as they
are. So a variable is kept in this way only if no loop does that which does not also change a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sawzall import typed as z
from river.classes import define, evolve, field
from river.il.trees import children, rebuild
from river.lang import types as t

if TYPE_CHECKING:
    from river.lang import syntax as s

_ITEMS = t.List(t.I64)


def itemwise(program: z.Program) -> z.Program:
    """The program with such variables."""
    shared = {*program.kept, *(outside for f in program.functions for outside, _ in f.captures)}
    wanted = {
        i
        for i, variable in enumerate(program.variables)
        if variable.type == t.BYTES and variable.kind in ("local", "parameter") and i not in shared
    }
    if not wanted:
        return program
    uses = _Uses()
    for body in (program.body, *(function.body for function in program.functions)):
        for stmt in body:
            uses.visit(stmt, ())
    chosen = {i for i in wanted if uses.pays(i)}
    return _Writer(program, chosen).program() if chosen else program


@define
class _Uses:
    """Of each variable, the loops in which an item is assigned to, and the innermost loops of what reads all of it."""

    loops: int = 0
    assigned: dict[int, set[int]] = field(factory=dict[int, "set[int]"])
    whole: dict[int, set[int]] = field(factory=dict[int, "set[int]"])
    refused: set[int] = field(factory=set[int])

    def pays(self, variable: int) -> bool:
        """Whether to keep the variable as an array makes it cheaper."""
        found = self.assigned.get(variable, set())
        return bool(found) and variable not in self.refused and self.whole.get(variable, set()) <= found

    def visit(self, node: s.Node, around: tuple[int, ...]) -> None:
        """Takes in a part of the program; `around`: the loops that it is in."""
        match node:
            case z.Assign(z.Item(_, z.Read(_, variable), index), value):
                self.assigned.setdefault(variable, set()).update(around)
                self.visit(index, around)
                self.visit(value, around)
            case z.Assign(z.Read(), value):
                self.visit(value, around)
            case z.Assign(z.Slice(_, z.Read(_, variable))):
                self.refused.add(variable)
                self.every(node, around)
            case z.Item(_, z.Read(), index):
                self.visit(index, around)
            case z.Apply(_, "len", (z.Read(),)) | z.Defined(_, z.Read()):
                pass
            case z.Read(_, variable):
                if around:
                    self.whole.setdefault(variable, set()).add(around[-1])
            case z.For(init, cond, step, body):
                for part in init:
                    self.visit(part, around)
                inner = self.within(around)
                for part in (*(() if cond is None else (cond,)), *body, *step):
                    self.visit(part, inner)
            case z.While() | z.DoWhile() | z.When():
                self.every(node, self.within(around))
            case _:
                self.every(node, around)

    def every(self, node: s.Node, around: tuple[int, ...]) -> None:
        """Takes in what a node is made of."""
        for child in children(node):
            self.visit(child, around)

    def within(self, around: tuple[int, ...]) -> tuple[int, ...]:
        """The loops around what is in one more."""
        self.loops += 1
        return (*around, self.loops)


@define
class _Writer:
    """Writes a program in which some variables of bytes are arrays; parameters, which stay bytes, have variables beside them."""

    typed: z.Program
    chosen: set[int]
    beside: dict[int, int] = field(factory=dict[int, int])

    def program(self) -> z.Program:
        """The program."""
        variables = [
            evolve(v, type=_ITEMS) if i in self.chosen and v.kind == "local" else v
            for i, v in enumerate(self.typed.variables)
        ]
        for i in sorted(self.chosen):
            if (parameter := self.typed.variables[i]).kind == "parameter":
                self.beside[i] = len(variables)
                variables.append(evolve(parameter, type=_ITEMS, kind="local"))
        return evolve(
            self.typed,
            variables=tuple(variables),
            functions=tuple(map(self.function, self.typed.functions)),
            body=tuple(cast("z.Stmt", self.put(stmt)) for stmt in self.typed.body),
        )

    def function(self, function: z.Function) -> z.Function:
        """A function; what is chosen of its parameters becomes arrays at its begin."""
        begin = tuple(
            z.Declare(self.beside[i], _items(z.Read(t.BYTES, i))) for i in function.params if i in self.beside
        )
        body = tuple(cast("z.Stmt", self.put(stmt)) for stmt in function.body)
        return evolve(function, body=(*begin, *body))

    def put(self, node: s.Node) -> s.Node:
        """A part of the program."""
        match node:
            case z.Declare(variable, value) if value is not None and variable in self.chosen:
                return evolve(node, value=_items(self.expr(value)))
            case z.Assign(z.Read(_, variable) as place, value) if variable in self.chosen:
                return evolve(node, place=self.array(place), value=_items(self.expr(value)))
            case z.Assign(z.Item(_, z.Read(_, variable) as whole, index) as place, value) if (
                variable in self.chosen
            ):
                lowest = (self.expr(value), z.Constant(t.I64, 255))
                return evolve(
                    node,
                    place=evolve(place, value=self.array(whole), index=self.expr(index)),
                    value=z.Apply(t.I64, "&", lowest, span=value.span),
                )
            case z.Item(_, z.Read(_, variable) as whole, index) if variable in self.chosen:
                return evolve(node, value=self.array(whole), index=self.expr(index))
            case z.Apply(_, "len", (z.Read(_, variable) as whole,)) if variable in self.chosen:
                return evolve(node, args=(self.array(whole),))
            case z.Defined(_, z.Read(_, variable) as whole) if variable in self.chosen:
                return evolve(node, value=self.array(whole))
            case z.Read(_, variable) if variable in self.chosen:
                return z.Apply(t.BYTES, "bytes of items", (self.array(node),), span=node.span)
            case _:
                return rebuild(node, self.put)

    def expr(self, expr: z.Expr) -> z.Expr:
        """An expression."""
        return cast("z.Expr", self.put(expr))

    def array(self, read: z.Read) -> z.Read:
        """The variable as the array that it is."""
        return evolve(read, type=_ITEMS, variable=self.beside.get(read.variable, read.variable))


def _items(value: z.Expr) -> z.Expr:
    """The bytes of a value as whole numbers."""
    return z.Apply(_ITEMS, "items of bytes", (value,), span=value.span)
