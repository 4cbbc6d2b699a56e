"""What random operators may name where they are written: the choices and the scopes of a typed generator.

A second opinion on the rules of the checker, a little stricter where that is simpler: it guards whole variables where the
checker guards parts.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hypothesis import strategies as st

from river.classes import define, evolve, field, frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

T = TypeVar("T")

MONEY: Final = t.Decimal(9, 2)
BASE: Final = t.Record((
    ("b", t.BOOL), ("i", t.I64), ("n", t.I32), ("u", t.U64), ("f", t.F64), ("g", t.F32), ("h", t.STRING), ("y", t.BYTES),
    ("t", t.TIME), ("d", t.DURATION), ("m", MONEY), ("o", t.Optional(t.I64)),
))  # fmt: skip
"""A field of each scalar type: what an operand reads whose type nothing else tells."""

SCALARS: Final = (t.I64, t.BOOL, t.STRING, t.F64, t.I32, t.U64, t.F32, t.TIME, t.DURATION, MONEY)
ORDERED: Final = (t.I64, t.I32, t.U64, t.F64, t.F32, t.STRING, t.BYTES, t.BOOL, t.TIME, t.DURATION, MONEY)
KEYS: Final[tuple[t.Type, ...]] = (
    t.I64,
    t.STRING,
    t.F64,
    t.Tuple((t.BOOL, t.I32)),
    t.Record((("k", t.STRING),)),
)
WIDTHS: Final = {t.I32: 31, t.I64: 63, t.U64: 64}
PERCENT: Final = st.integers(0, 99)


@cache
def upto(most: int) -> st.SearchStrategy[int]:
    """Numbers from 0 to `most`: thousands are drawn for an operator, and a strategy that is made anew is looked at anew."""
    return st.integers(0, most)


def one_of(draw: st.DrawFn, options: Sequence[T]) -> T:
    """One of them; the first is the simplest."""
    return options[draw(upto(len(options) - 1))]


def parts(expr: s.Expr, type_: t.Type, depth: int) -> Iterator[tuple[s.Expr, t.Type]]:
    """A place and the fields inside it."""
    yield expr, type_
    if depth == 0:
        return
    match type_:
        case t.Record(fields):
            for name, part in fields:
                yield from parts(s.Member(expr, name), part, depth - 1)
        case t.Tuple(items):
            for i, part in enumerate(items):
                yield from parts(s.Member(expr, str(i)), part, depth - 1)
        case _:
            return


@frozen
class Local:
    """A name in scope; `$v` for variables of the operator."""

    name: str
    type: t.Type
    writable: bool = False
    places: tuple[tuple[s.Expr, t.Type, str], ...] = field(init=False, eq=False, repr=False)
    """It and the parts inside of it, as expressions with their types, and its name: looked through for each expression."""

    def __attrs_post_init__(self) -> None:
        places = tuple((expr, type_, self.name) for expr, type_ in parts(self.expr, self.type, 2))
        object.__setattr__(self, "places", places)

    @property
    def expr(self) -> s.Expr:
        return s.Var(self.name[1:]) if self.name.startswith("$") else s.Name(self.name)


@frozen
class Callee:
    """A function that may be called, and whether it stands in the operator."""

    source: s.Fn
    params: tuple[tuple[t.Type, bool], ...]
    result: t.Type
    local: bool


@define
class InScope:
    """What the statement or expression under construction may use."""

    locals: list[Local]
    anchor: s.Expr  # of type BASE
    borrowed: set[str] = field(factory=set[str])  # not to be written
    hidden: set[str] = field(factory=set[str])  # not to be read either
    fns: tuple[Callee, ...] = ()
    result: t.Type | None = None  # of the function; None in a handler
    local: bool = True  # may emit, and call functions that may
    loops: tuple[str, ...] = ()  # their labels, "" without one
    deep: bool = False  # inside a loop, or a function, which may be called from one


@define
class Scoped:
    """One operator under construction: what is drawn for it, and what may be named where it is being written."""

    draw: st.DrawFn
    palette: tuple[t.Type, ...] = ()
    outs: tuple[tuple[str, t.Type], ...] = ()
    fuel: int = 60
    names: int = 0
    scope: InScope = field(init=False)

    # -- choices

    def choice(self, options: Sequence[T]) -> T:
        """One of them; the first is the simplest."""
        return one_of(self.draw, options) if len(options) > 1 else options[0]

    def chance(self, percent: int) -> bool:
        """Yes, this often; No is the simplest."""
        return self.draw(PERCENT) >= 100 - percent

    def fresh(self) -> str:
        """A name that nothing else bears."""
        self.names += 1
        return f"v{self.names}"

    @contextmanager
    def block(self, *locals_: Local, **changes: Any) -> Generator[None, None, None]:
        """A scope of its own, with further names; a narrowed name hides the old one."""
        before = self.scope
        new = {local.name for local in locals_}
        kept = [local for local in before.locals if local.name not in new]
        inside = {
            "locals": [*kept, *locals_],
            "borrowed": set(before.borrowed),
            "hidden": set(before.hidden),
            **changes,
        }
        self.scope = evolve(before, **inside)
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def hiding(self, *roots: str) -> Generator[None, None, None]:
        """No use of these variables inside."""
        before = set(self.scope.hidden)
        self.scope.hidden.update(roots)
        try:
            yield
        finally:
            self.scope.hidden = before

    # -- places

    def places(
        self, wanted: Callable[[t.Type], bool], *, writable: bool = False
    ) -> list[tuple[s.Expr, t.Type, str]]:
        """All places of the wanted types: the expression, its type, and the variable it is a part of."""
        found: list[tuple[s.Expr, t.Type, str]] = []
        for local in self.scope.locals:
            if local.name in self.scope.hidden:
                continue
            if writable and (not local.writable or local.name in self.scope.borrowed):
                continue
            found += [place for place in local.places if wanted(place[1])]
        return found

    def read(self, type_: t.Type) -> s.Expr | None:
        """A place of exactly this type, if there is one."""
        found = self.places(lambda other: other == type_)
        return self.choice(found)[0] if found else None

    def anchored(self, type_: t.Type) -> s.Expr:
        """An expression of a scalar type that tells its type by itself."""
        place = self.read(type_) if self.chance(70) else None
        if place is not None:
            return place
        (name,) = (name for name, other in BASE.fields if other == type_)
        return s.Member(self.scope.anchor, name)
