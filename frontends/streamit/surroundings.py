"""What code may name besides its own locals: parameters, fields and functions of its stream, and what is around that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from river.classes import define, evolve, field
from river.il.trees import rebuild, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


CLOSED = (ty.Constant, ty.Param, ty.Apply, ty.Logic, ty.Choose, ty.At, ty.StructPart, ty.Make)
"""What an expression that is known when the graph is made consists of."""


@define
class Open:
    """A function of a filter that takes arrays of any size: what it becomes for the sizes of arguments."""

    ast: c.Helper
    block: str
    made: dict[tuple[ty.Expr, ...], ty.Helper] = field(factory=dict[tuple["ty.Expr", ...], "ty.Helper"])


@define
class Surroundings:
    """What the code of a stream may name besides its own locals: parameters, fields, functions, and what is around."""

    params: dict[str, ty.Parameter] = field(factory=dict[str, ty.Parameter])
    fields: dict[str, ty.FieldDecl] = field(factory=dict[str, ty.FieldDecl])
    begun: Mapping[str, ty.Expr] = field(factory=dict[str, ty.Expr])  # what `init` has set fields to for good
    helpers: dict[str, ty.Helper] = field(factory=dict[str, ty.Helper])
    input: ty.Type = ty.VOID
    output: ty.Type = ty.VOID
    outer: Callable[[str], ty.Expr | None] = field(default=lambda _: None)
    captures: dict[str, ty.Parameter] = field(factory=dict[str, ty.Parameter])
    changed: frozenset[str] = frozenset()  # names that the filter's code assigns to
    counter: str | None = None  # the field that counts firings
    generator: str | None = None  # the field that is the state of the random generator
    natives: frozenset[str] = frozenset()  # functions of other languages
    structs: Mapping[str, ty.Struct] = field(factory=dict[str, ty.Struct])
    outside: bool = False  # the code stands outside of the stream, and sees only what is around it
    decimals: int | None = None  # how many digits behind the point floats are printed with, if not the fewest
    sends: int = 0  # messages in the code so far
    alone: bool = False  # the code stands in no stream
    shared: Callable[[str], ty.Helper | None] = field(
        default=lambda _: None
    )  # functions for code that makes the graph
    open: dict[str, Open] = field(factory=dict[str, "Open"])  # functions that take arrays of any size

    def sized(self, helper: ty.Helper, args: Sequence[ty.Expr]) -> ty.Helper:
        """The function for arrays of the sizes that these have."""
        found = self.open.get(helper.name)
        if found is None:
            return helper
        triples = zip(helper.params, found.ast.params, args, strict=True)
        types = tuple(filled(param.type, of.type.sizes, arg.type) for param, of, arg in triples)
        sizes = tuple(size for type_ in types for size in sizes_of(type_))
        if sizes not in found.made:
            name = f"{helper.name}#{len(found.made)}"
            params = tuple(evolve(p, type=type_) for p, type_ in zip(helper.params, types, strict=True))
            self.helpers[name] = found.made[sizes] = evolve(helper, name=name, params=params)
        return found.made[sizes]

    def lookup(self, name: str) -> ty.Expr | None:
        """What a name denotes; something of the surroundings becomes a parameter."""
        if self.alone:
            return self.outer(name)
        if self.outside:
            found = self.outer(name)
            return self.hidden(found, name) if isinstance(found, ty.Local | ty.Param) else found
        if name in self.fields:
            return self.constant(name) or self.begun.get(name) or ty.Field(self.fields[name].type, name)
        if name not in self.params and name not in self.captures:
            found = self.outer(name)
            if found is None:
                return None
            self.captures[name] = ty.Parameter(name, self.seen_from_here(found.type), found)
        known = self.params.get(name) or self.captures[name]
        return ty.Param(known.type, name)

    def constant(self, name: str) -> ty.Expr | None:
        """The first value of a field that is a whole number and never changed, where it is known when the graph is made."""
        decl = self.fields[name]
        closed = decl.value is not None and all(isinstance(node, CLOSED) for node in walk(decl.value))
        return decl.value if closed and decl.type == ty.INT and name not in self.changed else None

    def seen_from_here(self, type_: ty.Type) -> ty.Type:
        """A type of the surroundings: what its sizes name becomes parameters, too."""
        match type_:
            case ty.Vector(item, size):
                return evolve(type_, item=self.seen_from_here(item), size=self.size(size))
            case ty.Struct(_, fields):
                return evolve(type_, fields=tuple((name, self.seen_from_here(part)) for name, part in fields))
            case _:
                return type_

    def size(self, expr: ty.Expr) -> ty.Expr:
        """A size of the surroundings."""
        match expr:
            case ty.Local(_, name) | ty.Param(_, name):
                return self.hidden(expr, name)
            case _:
                return rebuild(expr, self.size)  # pyright: ignore[reportArgumentType] - only expressions in it

    def hidden(self, expr: ty.Local | ty.Param, name: str) -> ty.Param:
        """The parameter for something of the surroundings, whose own name may mean something else here."""
        spelled = name.partition("#")[0]
        if spelled in self.fields or spelled in self.params or self.outer(spelled) != expr:
            spelled = f"{name}#"
            while self.captures.get(spelled, ty.Parameter(spelled, expr.type, expr)).value != expr:
                spelled += "#"
        self.captures.setdefault(spelled, ty.Parameter(spelled, self.seen_from_here(expr.type), expr))
        return ty.Param(self.captures[spelled].type, spelled)


def filled(wanted: ty.Type, written: Sequence[c.Expr | None], given: ty.Type) -> ty.Type:
    """The type of an array with the sizes of what is given where none are written."""
    if not written or not isinstance(wanted, ty.Vector) or not isinstance(given, ty.Vector):
        return wanted
    size = given.size if written[0] is None else wanted.size
    return ty.Vector(filled(wanted.item, written[1:], given.item), size)


def measured(array: ty.Expr, depth: int) -> ty.Type:
    """A type of which only the sizes are asked for: those that the array has, `depth` deep."""
    found: ty.Type = ty.VOID
    for inner in reversed(range(depth)):
        found = ty.Vector(found, ty.Size(ty.INT, array, inner, span=array.span))
    return found


def sizes_of(type_: ty.Type) -> tuple[ty.Expr, ...]:
    """The sizes of an array, the outermost first."""
    return (type_.size, *sizes_of(type_.item)) if isinstance(type_, ty.Vector) else ()
