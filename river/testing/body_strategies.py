"""Random operators, well-typed by construction, with items and states to fire them on.

A typed generator over syntax trees: it knows what is in scope, what may be written, and what is borrowed, and asks for an
expression of a type. It is a second opinion on the rules of the checker, a little stricter where that is simpler: it
guards whole variables where the checker guards parts. Loops are bounded by what they range over, which is small.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from hypothesis import strategies as st

from river.classes import define, evolve, field, fields, frozen
from river.il.program import Program, TypeDecl
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Declared, Scope, show
from river.lang.scope import expression as type_expression
from river.testing.value_strategies import values_of

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


@frozen
class BodyCase:
    """An operator with one input `x`, the library functions it may call, items for it, and a state to start from.

    Both name the type `Base`, which is BASE.
    """

    operator: s.Operator
    fns: tuple[s.Fn, ...]
    items: tuple[Any, ...]
    states: tuple[Any, ...]

    @property
    def program(self) -> Program:
        """The declarations as a program without a graph."""
        return Program((TypeDecl("Base", (), type_expression(BASE)), *self.fns, self.operator))

    @property
    def scope(self) -> Scope:
        """What the operator may name besides its own."""
        return check.scope({"Base": Declared((), type_expression(BASE))}, self.fns)


@frozen
class _Local:
    """A name in scope; `$v` for variables of the operator."""

    name: str
    type: t.Type
    writable: bool = False
    places: tuple[tuple[s.Expr, t.Type, str], ...] = field(init=False, eq=False, repr=False)
    """It and the parts inside of it, as expressions with their types, and its name: looked through for each expression."""

    def __attrs_post_init__(self) -> None:
        places = tuple((expr, type_, self.name) for expr, type_ in _parts(self.expr, self.type, 2))
        object.__setattr__(self, "places", places)

    @property
    def expr(self) -> s.Expr:
        return s.Var(self.name[1:]) if self.name.startswith("$") else s.Name(self.name)


@frozen
class _Fn:
    """A function that may be called, and whether it stands in the operator."""

    source: s.Fn
    params: tuple[tuple[t.Type, bool], ...]
    result: t.Type
    local: bool


@define
class _Scope:
    """What the statement or expression under construction may use."""

    locals: list[_Local]
    anchor: s.Expr  # of type BASE
    borrowed: set[str] = field(factory=set[str])  # not to be written
    hidden: set[str] = field(factory=set[str])  # not to be read either
    fns: tuple[_Fn, ...] = ()
    result: t.Type | None = None  # of the function; None in a handler
    local: bool = True  # may emit, and call functions that may
    loops: tuple[str, ...] = ()  # their labels, "" without one
    deep: bool = False  # inside a loop, or a function, which may be called from one


@define
class _Generator:
    """One operator under construction."""

    draw: st.DrawFn
    palette: tuple[t.Type, ...] = ()
    outs: tuple[tuple[str, t.Type], ...] = ()
    fuel: int = 60
    names: int = 0
    scope: _Scope = field(init=False)

    # -- choices

    def choice(self, options: Sequence[T]) -> T:
        """One of them; the first is the simplest."""
        return _one(self.draw, options) if len(options) > 1 else options[0]

    def chance(self, percent: int) -> bool:
        """Yes, this often; No is the simplest."""
        return self.draw(PERCENT) >= 100 - percent

    def fresh(self) -> str:
        """A name that nothing else bears."""
        self.names += 1
        return f"v{self.names}"

    @contextmanager
    def block(self, *locals_: _Local, **changes: Any) -> Generator[None, None, None]:
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

    # -- expressions

    def expr(self, type_: t.Type, depth: int = 3) -> s.Expr:
        """An expression of the type, for a place where the type is wanted."""
        self.fuel -= 1
        place = self.read(type_) if self.chance(50) else None
        if place is not None and (depth <= 0 or self.fuel <= 0 or self.chance(30)):
            return place
        if depth <= 0 or self.fuel <= 0 or self.chance(8):
            return self.literal(type_)
        options = [
            lambda: self.literal(type_),
            *self.general(type_, depth - 1),
            *self.special(type_, depth - 1),
        ]
        return self.choice(options)()

    def literal(self, type_: t.Type) -> s.Expr:
        """The simplest form of a value."""
        match type_:
            case t.BOOL:
                return s.Bool(self.draw(st.booleans()))
            case t.I32 | t.I64 | t.U64 | t.I128:
                low, high = (
                    (0, 1 << 64)
                    if type_ == t.U64
                    else (-(1 << WIDTHS.get(type_, 63)), 1 << WIDTHS.get(type_, 63))
                )
                value = self.draw(_number(low, high))
                return s.Int(value) if value >= 0 else s.Unary("-", s.Int(-value))
            case t.F32 | t.F64:
                return self.choice([
                    lambda: s.Float(self.choice([0.0, 1.0, 0.1, 2.5, 1e30])),
                    lambda: s.Unary("-", s.Float(self.choice([0.0, 1.5]))),
                    lambda: s.Call(self.choice(["inf", "nan"]), ()),
                    lambda: s.Int(self.draw(_upto(9))),
                ])()  # fmt: skip
            case t.Decimal():
                return s.Float(self.choice([0.5, 0.25, 12.75, 3.0]))
            case t.STRING:
                return s.String(self.choice(["", "a", "b c", 'é"\n', "-7"]))
            case t.BYTES:
                return s.Bytes(self.choice([b"", b"a", b"\xff\0"]))
            case t.TIME | t.DURATION:
                name = "time" if type_ == t.TIME else "duration"
                return s.Call(name, (s.Int(self.draw(_upto(5))),))
            case t.FSUM:
                return s.Call("zero", ())
            case t.UNIT:
                return s.TupleValue(())
            case t.Optional(inner):
                return s.NoneValue() if self.chance(40) else self.expr(inner, 0)
            case t.Record(fields):
                given = self.draw(st.permutations(fields)) if self.chance(30) else fields
                return s.RecordValue(tuple(s.FieldValue(name, self.expr(part, 0)) for name, part in given))
            case t.Tuple(items):
                return s.TupleValue(tuple(self.expr(part, 0) for part in items))
            case t.List(item):
                return s.ListValue(tuple(self.expr(item, 0) for _ in range(self.draw(_upto(2)))))
            case t.Array(item, size):
                if self.chance(50):
                    return s.Call("fill", (self.expr(item, 0),))
                return s.ListValue(tuple(self.expr(item, 0) for _ in range(size)))
            case t.Map(key, value) | t.OMap(key, value):
                pairs = tuple((self.expr(key, 0), self.expr(value, 0)) for _ in range(self.draw(_upto(2))))
                return s.MapValue(pairs)
            case _:
                return s.MapValue(())

    def general(self, type_: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """The forms that an expression of any type may have."""
        found: list[Callable[[], s.Expr]] = [
            lambda: s.IfExpr(self.expr(t.BOOL, depth), self.expr(type_, depth), self.expr(type_, depth))
        ]
        lists = self.places(
            lambda other: isinstance(other, t.List | t.Array | t.Deque) and other.item == type_
        )
        if lists:
            found.append(
                lambda: s.Call(
                    "get", (self.choice(lists)[0], self.expr(t.I64, depth), self.expr(type_, depth))
                )
            )
        maps = self.places(lambda other: isinstance(other, t.Map | t.OMap) and other.value == type_)
        for place, map_type, _ in maps[:2]:
            key = t.parts(map_type)[0]
            found.append(
                lambda p=place, k=key: s.Call("get", (p, self.expr(k, depth), self.expr(type_, depth)))
            )
            found.append(lambda p=place, k=key: s.Index(p, self.expr(k, depth)))
        if not isinstance(type_, t.Optional):
            optionals = self.places(lambda other: other == t.Optional(type_))
            if optionals:
                found.append(lambda: s.Call("coalesce", (self.choice(optionals)[0], self.expr(type_, depth))))
                found.append(lambda: s.Force(self.choice(optionals)[0]))
        callable_ = [
            fn for fn in self.callable() if fn.result == type_ and not any(ref for _, ref in fn.params)
        ]
        if callable_:
            found.append(lambda: self.call(self.choice(callable_), depth))
        return found

    def special(self, type_: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """The forms of one sort of type."""
        match type_:
            case t.BOOL:
                return self.truths(depth)
            case t.I32 | t.I64 | t.U64:
                return self.integers(type_, depth)
            case t.F32 | t.F64:
                return self.floats(type_, depth)
            case t.Decimal() | t.DURATION:
                return [
                    lambda: s.Binary(self.choice("+-"), self.expr(type_, depth), self.anchored(type_)),
                    lambda: s.Unary("-", self.anchored(type_)),
                ]
            case t.TIME:
                return [
                    lambda: s.Binary("+", self.anchored(type_), self.expr(t.DURATION, depth)),
                    lambda: s.Binary("-", self.anchored(type_), self.anchored(t.DURATION)),
                ]
            case t.STRING:
                return self.strings(depth)
            case t.Optional(inner):
                return self.optionals(inner, depth)
            case t.Record(fields):
                return [
                    lambda: s.RecordValue(
                        tuple(s.FieldValue(name, self.expr(part, depth)) for name, part in fields)
                    )
                ]
            case t.Tuple(items):
                return [lambda: s.TupleValue(tuple(self.expr(part, depth) for part in items))]
            case t.List(item):
                return self.lists(item, depth)
            case _:
                return []

    def truths(self, depth: int) -> list[Callable[[], s.Expr]]:
        """Conditions."""

        def compared() -> s.Expr:
            type_ = self.choice(ORDERED)
            operator = self.choice(["==", "<", "!=", "<=", ">", ">="])
            return s.Binary(operator, self.anchored(type_), self.expr(type_, depth))

        def equal() -> s.Expr:
            place, type_, _ = self.choice(self.places(lambda other: not isinstance(other, t.Function)))
            if self.chance(50):
                return s.Binary(self.choice(["==", "!="]), place, self.expr(type_, depth))
            return s.Call("same", (place, self.expr(type_, depth)))

        found: list[Callable[[], s.Expr]] = [
            compared,
            equal,
            lambda: s.Unary("not", self.expr(t.BOOL, depth)),
            lambda: s.Binary(self.choice(["and", "or"]), self.expr(t.BOOL, depth), self.expr(t.BOOL, depth)),
            lambda: s.Call("is_nan", (self.anchored(t.F64),)),
            lambda: s.Call("starts_with", (self.anchored(t.STRING), self.expr(t.STRING, depth))),
            lambda: s.IsNone(self.choice(self.places(lambda other: isinstance(other, t.Optional)))[0]),
        ]
        for place, type_, root in self.places(
            lambda other: isinstance(other, t.List | t.Map | t.OMap | t.Bag)
        )[:3]:
            item = t.parts(type_)[0]
            found.append(lambda p=place, i=item: s.Call("contains", (p, self.expr(i, depth))))
            if isinstance(type_, t.List):
                found.append(lambda p=place, i=item, r=root: self.lambda_call("any", p, i, r, t.BOOL, depth))
        return found

    def integers(self, type_: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """i32, i64, u64."""
        name = show(type_)

        def binary() -> s.Expr:
            operator = self.choice(["+", "-", "*", "+%", "-%", "*%", "&", "|", "^", "<<", ">>", ">>>"])
            return s.Binary(operator, self.expr(type_, depth), self.expr(type_, depth))

        def divided() -> s.Expr:
            operator = self.choice(
                ["div.trunc", "rem.trunc", "div.floor", "mod.floor", "min", "max", "div.trunc.wrap"]
            )
            return s.Call(operator, (self.expr(type_, depth), self.expr(type_, depth)))

        def converted() -> s.Expr:
            other = self.choice([t.I64, t.I32, t.U64, t.F64, t.BOOL])
            return s.Call(name + self.choice([".wrap", ".sat"]), (self.anchored(other),))

        found: list[Callable[[], s.Expr]] = [
            binary,
            divided,
            converted,
            lambda: s.Unary(self.choice(["~", "-%"]), self.expr(type_, depth)),
            lambda: s.Call(name, (self.anchored(self.choice([t.I64, t.I32, t.U64])),)),
        ]
        if type_ == t.I64:
            found += [
                lambda: s.Unary("-", self.anchored(type_)),
                lambda: s.Call("find", (self.anchored(t.STRING), self.expr(t.STRING, depth))),
                lambda: s.Call("len", (self.choice(self.places(_has_length))[0],)),
            ]
            for place, list_type, root in self.places(lambda other: isinstance(other, t.List))[:2]:
                item = t.parts(list_type)[0]
                found.append(lambda p=place, i=item, r=root: self.folded(p, i, r, depth))
            for place, bag_type, _ in self.places(lambda other: isinstance(other, t.Bag))[:1]:
                item = t.parts(bag_type)[0]
                found.append(lambda p=place, i=item: s.Call("count", (p, self.expr(i, depth))))
        if type_ == t.I32:
            found.append(lambda: s.Index(self.anchored(t.STRING), self.expr(t.I64, depth)))
        return found

    def floats(self, type_: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """f32, f64."""
        name = show(type_)

        def binary() -> s.Expr:
            return s.Binary(self.choice("+-*/"), self.expr(type_, depth), self.expr(type_, depth))

        found: list[Callable[[], s.Expr]] = [
            binary,
            lambda: s.Call(
                self.choice(["min", "max", "pow"]), (self.expr(type_, depth), self.expr(type_, depth))
            ),
            lambda: s.Call("fma", tuple(self.expr(type_, depth) for _ in range(3))),
            lambda: s.Call(
                self.choice(["sqrt", "abs", "sin", "round", "exp", "log"]), (self.expr(type_, depth),)
            ),
            lambda: s.Call(name, (self.anchored(self.choice([t.I64, t.F64, t.F32, t.I32, t.U64])),)),
        ]
        sums = self.places(lambda other: other == t.FSUM)
        if sums and type_ == t.F64:
            found.append(lambda: s.Call("value", (self.choice(sums)[0],)))
        return found

    def strings(self, depth: int) -> list[Callable[[], s.Expr]]:
        """string: it does not grow inside loops."""

        def sliced() -> s.Expr:
            return s.Slice(self.anchored(t.STRING), s.Int(0), self.expr(t.I64, depth))

        found: list[Callable[[], s.Expr]] = [
            lambda: s.Call("string", (self.anchored(self.choice(SCALARS)),)),
            lambda: s.Call(self.choice(["lower", "upper", "trim"]), (self.expr(t.STRING, depth),)),
            sliced,
        ]
        if not self.scope.deep:
            found.append(lambda: s.Binary("+", self.expr(t.STRING, depth), self.literal(t.STRING)))
        return found

    def optionals(self, inner: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """T?: what may be absent."""
        found: list[Callable[[], s.Expr]] = [lambda: self.expr(inner, depth)]
        for place, _, _ in self.places(
            lambda other: isinstance(other, t.List | t.Deque) and other.item == inner
        )[:2]:
            found.append(lambda p=place: s.Call("get", (p, self.expr(t.I64, depth))))
        for place, _, _ in self.places(lambda other: isinstance(other, t.OMap) and other.key == inner)[:2]:
            found.append(lambda p=place: s.Call(self.choice(["first_key", "last_key"]), (p,)))
            found.append(lambda p=place: s.Call(self.choice(["floor", "ceil"]), (p, self.expr(inner, depth))))
        for name, parsed in (("parse_f64", t.F64), ("parse_i64", t.I64)):
            if inner == parsed:
                found.append(lambda n=name: s.Call(n, (self.expr(t.STRING, depth),)))
        return found

    def lists(self, item: t.Type, depth: int) -> list[Callable[[], s.Expr]]:
        """list<T>: never longer than what it is made of, inside loops."""
        type_ = t.List(item)
        found: list[Callable[[], s.Expr]] = [
            lambda: s.ListValue(tuple(self.expr(item, depth) for _ in range(1 + self.draw(_upto(2))))),
            lambda: s.Call("fill", (self.expr(item, depth), s.Int(self.draw(_upto(3))))),
            lambda: self.comprehension(item, depth),
        ]
        for place, _, _ in self.places(lambda other: other == type_)[:2]:
            found.append(lambda p=place: s.Call("take", (p, self.expr(t.I64, depth))))
            found.append(lambda p=place: s.Call("reverse", (p,)))
            found.append(lambda p=place: s.Call("sort", (p,)))
            found.append(
                lambda p=place: s.Call("take", (s.Call("concat", (p, self.expr(type_, depth))), s.Int(4)))
            )
            if t.is_key(item):
                found.append(lambda p=place: s.Call("bag_minus", (p, self.expr(type_, depth))))
        for place, list_type, root in self.places(lambda other: isinstance(other, t.List))[:2]:
            other = t.parts(list_type)[0]
            if item in SCALARS or other == item:
                found.append(lambda p=place, o=other, r=root: self.lambda_call("map", p, o, r, item, depth))
            if list_type == type_:
                found.append(
                    lambda p=place, o=other, r=root: self.lambda_call("sort_by", p, o, r, t.I64, depth)
                )
        for place, map_type, _ in self.places(lambda other: isinstance(other, t.Map | t.OMap))[:2]:
            key, value = t.parts(map_type)
            if key == item:
                found.append(lambda p=place: s.Call("keys", (p,)))
            if value == item:
                found.append(lambda p=place: s.Call("values", (p,)))
        for place, _, _ in self.places(
            lambda other: isinstance(other, t.Bag | t.Deque) and other.item == item
        )[:2]:
            found.append(lambda p=place: s.Call("to_list", (p,)))
        return found

    def lambda_call(
        self, name: str, place: s.Expr, item: t.Type, root: str, result: t.Type, depth: int
    ) -> s.Expr:
        """`name(place, fn(v) => ...)`."""
        param = self.fresh()
        with self.block(_Local(param, item), deep=True):
            self.scope.borrowed.add(root)
            body = self.tell(result, depth)
        return s.Call(name, (place, s.Lambda((param,), body)))

    def tell(self, type_: t.Type, depth: int) -> s.Expr:
        """An expression that tells its type without being asked."""
        if type_ in SCALARS:
            if self.chance(50):
                return self.anchored(type_)
            return s.IfExpr(self.expr(t.BOOL, depth), self.anchored(type_), self.expr(type_, depth))
        place = self.read(type_)
        assert place is not None  # noqa: S101 - asked only where there is one
        return place

    def folded(self, place: s.Expr, item: t.Type, root: str, depth: int) -> s.Expr:
        """`fold(place, start, fn(a, b) => ...)`."""
        total, each = self.fresh(), self.fresh()
        start = self.anchored(t.I64)
        with self.block(_Local(total, t.I64), _Local(each, item), deep=True):
            self.scope.borrowed.add(root)
            body = s.Binary("+%", s.Name(total), self.expr(t.I64, depth))
        return s.Call("fold", (place, start, s.Lambda((total, each), body)))

    def comprehension(self, item: t.Type, depth: int) -> s.Expr:
        """`[e for names in range if cond]`."""
        names, range_, root = self.range(depth)
        with self.block(*names, deep=True):
            if root is not None:
                self.scope.borrowed.add(root)
            cond = self.expr(t.BOOL, depth) if self.chance(40) else None
            value = self.expr(item, depth)
        return s.Comprehension(value, tuple(local.name for local in names), range_, cond)

    def range(self, depth: int) -> tuple[list[_Local], s.Range | s.Expr, str | None]:
        """What a loop ranges over: its names, the range, and the variable that it borrows."""
        containers = self.places(lambda other: t.is_container(other) or other == t.STRING)
        if not containers or self.chance(30):
            high = self.draw(_upto(3))
            return (
                [_Local(self.fresh(), t.I64)],
                s.Range(s.Int(self.draw(_upto(1))), s.Int(high)),
                None,
            )
        place, type_, root = self.choice(containers)
        if self.scope.deep:  # bounded whatever it has grown to
            if isinstance(type_, t.List):
                return [_Local(self.fresh(), type_.item)], s.Call("take", (place, s.Int(2))), root
            return (
                [_Local(self.fresh(), t.I64)],
                s.Range(s.Int(0), s.Call("min", (s.Call("len", (place,)), s.Int(2)))),
                None,
            )
        types: tuple[t.Type, ...]
        match type_:
            case t.Map(key, value) | t.OMap(key, value):
                types = (key, value) if self.chance(60) else (key,)
            case t.Bag(item):
                types = (item,)
            case t.List(item) | t.Deque(item) | t.Array(item, _):
                types = (t.I64, item) if self.chance(30) else (item,)
            case _:
                types = (t.I64, t.I32) if self.chance(30) else (t.I32,)
        return [_Local(self.fresh(), each) for each in types], place, root

    # -- calls

    def callable(self) -> list[_Fn]:
        """The functions that may be called here."""
        return [fn for fn in self.scope.fns if self.scope.local or not fn.local]

    def call(self, fn: _Fn, depth: int) -> s.Call:
        """A call; `ref` arguments are different variables, which no other argument uses."""
        refs: dict[int, s.Expr] = {}
        roots: set[str] = set()
        for i, (type_, ref) in enumerate(fn.params):
            if ref:
                found = [
                    p
                    for p in self.places(lambda other, w=type_: other == w, writable=True)
                    if p[2] not in roots
                ]
                refs[i], _, root = self.choice(found)
                roots.add(root)
        args: list[s.Argument] = [self.scope.anchor]
        with self.hiding(*roots):
            args += [
                refs[i] if i in refs else self.expr(type_, depth) for i, (type_, _) in enumerate(fn.params)
            ]
        return s.Call(fn.source.name, tuple(args))

    def has_refs(self, fn: _Fn) -> bool:
        """Whether there are enough variables for the `ref` parameters of a function."""
        free = self.places(lambda _: True, writable=True)
        roots: set[str] = set()
        for type_, ref in fn.params:
            if ref:
                possible = [root for _, other, root in free if other == type_ and root not in roots]
                if not possible:
                    return False
                roots.update(root for _, other, root in free if other == type_)
        return True

    # -- statements

    def statements(self, depth: int) -> s.Block:
        """A block; call it inside `block`."""
        found: list[s.Stmt] = []
        for _ in range(1 + self.draw(_upto(3))):
            if self.fuel <= 0:
                break
            found += self.statement(depth)
        if self.chance(15):
            found += self.leave()
        return s.Block(tuple(found))

    def leave(self) -> list[s.Stmt]:
        """A way out of the block, at its end."""
        options: list[Callable[[], s.Stmt]] = [lambda: s.Trap("enough")]
        if self.scope.result is None or self.scope.result == t.UNIT:
            options.append(s.Return)
        if self.scope.loops:
            options += [lambda: s.Break(self.label()), lambda: s.Continue(self.label())]
        leave = self.choice(options)()
        return [s.If(self.expr(t.BOOL, 1), s.Block((leave,)))]

    def label(self) -> str | None:
        """The name of an enclosing loop, or None for the innermost."""
        named = [label for label in self.scope.loops if label]
        return self.choice(named) if named and self.chance(50) else None

    def statement(self, depth: int) -> list[s.Stmt]:
        """One statement, or a few that belong together."""
        options: list[Callable[[int], list[s.Stmt]]] = [self.let, self.var]
        if self.places(lambda other: other != t.UNIT, writable=True):
            options += [self.assign, self.change, self.copy, self.copy]
        if self.scope.local:
            options += [self.emit, self.emit]
        if [fn for fn in self.callable() if self.has_refs(fn)]:
            options += [self.do_call, self.do_call]
        if depth > 0:
            options += [self.if_, self.bind, self.loop]
            if self.places(lambda other: isinstance(other, t.Map | t.OMap), writable=True):
                options += [self.with_, self.with_]
            if not self.scope.deep:
                options.append(self.while_)
        return self.choice(options)(depth - 1)

    def add(self, local: _Local) -> None:
        """Brings a name into scope."""
        self.scope.locals.append(local)

    def let(self, _depth: int) -> list[s.Stmt]:
        """`let`: what it may be a part of is not written while it lives."""
        type_, name = self.choice(self.palette), self.fresh()
        value = self.expr(type_)
        if not t.is_flat(type_):
            self.scope.borrowed.update(_roots(value))
        self.add(_Local(name, type_))
        return [s.Let(name, type_expression(type_), value)]

    def var(self, _depth: int) -> list[s.Stmt]:
        """`var`, with its type or without."""
        type_, name = self.choice(self.palette), self.fresh()
        if self.chance(30) and (place := self.read(type_)) is not None:
            statement = s.VarDecl(name, None, place)
        else:
            statement = s.VarDecl(name, type_expression(type_), self.expr(type_))
        self.add(_Local(name, type_, writable=True))
        return [statement]

    def assign(self, _depth: int) -> list[s.Stmt]:
        """`place = e;`."""
        place, type_, _ = self.choice(self.places(lambda other: other != t.UNIT, writable=True))
        return [s.Assign(place, self.expr(type_))]

    def change(self, _depth: int, only: str | None = None) -> list[s.Stmt]:
        """A container changed in place (a part of `only`); where it may be empty, mostly after a test."""
        changeable = [
            found
            for found in self.places(lambda other: t.is_container(other) or other == t.FSUM, writable=True)
            if only in (None, found[2])
        ]
        if not changeable:
            return []
        place, type_, _ = self.choice(changeable)
        full = s.Binary(">", s.Call("len", (place,)), s.Int(0))

        def tested(statement: s.Stmt) -> s.Stmt:
            return s.If(full, s.Block((statement,))) if self.chance(80) else statement

        options: list[Callable[[], s.Stmt]]
        match type_:
            case t.List(item):
                options = [
                    lambda: s.Do(s.Call("push", (place, self.expr(item)))),
                    lambda: tested(s.Assign(s.Index(place, s.Int(0)), self.expr(item))),
                    lambda: tested(s.Do(s.Call("pop", (place,)))),
                    lambda: s.Do(s.Call("clear", (place,))),
                ]
            case t.Deque(item):
                options = [
                    lambda: s.Do(s.Call("push_back", (place, self.expr(item)))),
                    lambda: tested(self.popped(place, item)),
                ]
            case t.Bag(item):
                options = [
                    lambda: s.Do(s.Call("add", (place, self.expr(item)))),
                    lambda: tested(s.Do(s.Call("remove", (place, self.expr(item))))),
                ]
            case t.Map(key, value) | t.OMap(key, value):
                options = [
                    lambda: s.Assign(s.Index(place, self.expr(key, 1)), self.expr(value)),
                    lambda: s.Do(s.Call("delete", (place, self.expr(key, 1)))),
                ]
                if isinstance(type_, t.OMap):
                    options.append(
                        lambda: s.Do(s.Call(self.choice(["keep_first", "keep_last"]), (place, s.Int(2))))
                    )
            case t.Array(item, _):
                options = [lambda: tested(s.Assign(s.Index(place, s.Int(0)), self.expr(item)))]
            case _:
                options = [lambda: s.Do(s.Call(self.choice(["add", "sub"]), (place, self.expr(t.F64))))]
        return [self.choice(options)()]

    def copy(self, depth: int) -> list[s.Stmt]:
        """A container changed, copied into another variable, and one of the two changed again."""
        twins = [
            (a, b)
            for a in self.places(t.is_container, writable=True)
            for b in self.places(lambda other, w=a[1]: other == w, writable=True)
            if a[2] != b[2]
        ]
        if not twins:
            return self.change(depth)
        (source, type_, root), (target, _, other) = self.choice(twins)
        before = self.change(depth, root)
        after = self.change(depth, self.choice([root, other]))
        value: s.Expr = source
        if self.chance(30):
            value = s.IfExpr(self.expr(t.BOOL, 1), source, self.expr(type_, 1))
        return [*before, s.Assign(target, value), *after]

    def popped(self, place: s.Expr, item: t.Type) -> s.Stmt:
        """An item taken out of a deque, and mostly kept."""
        taken = s.Call(self.choice(["pop_front", "pop_back"]), (place,))
        kept = self.places(lambda other: other == item, writable=True)
        return s.Assign(self.choice(kept)[0], taken) if kept and self.chance(60) else s.Do(taken)

    def emit(self, _depth: int) -> list[s.Stmt]:
        """`emit out e;`."""
        name, type_ = self.choice(self.outs)
        return [s.Emit(name, self.expr(type_))]

    def do_call(self, _depth: int) -> list[s.Stmt]:
        """A function called for its effect, or for its value."""
        fn = self.choice([fn for fn in self.callable() if self.has_refs(fn)])
        call = self.call(fn, 1)
        if fn.result == t.UNIT or self.chance(40):
            return [s.Do(call)]
        name = self.fresh()
        self.add(_Local(name, fn.result, writable=True))
        return [s.VarDecl(name, None, call)]

    def if_(self, depth: int) -> list[s.Stmt]:
        """`if c {...} else {...}`."""
        cond = self.expr(t.BOOL)
        with self.block():
            then = self.statements(depth)
        other: s.Block | s.If | None = None
        if self.chance(40):
            with self.block():
                other = self.statements(depth)
            if self.chance(30):
                other = s.If(self.expr(t.BOOL, 1), other)
        return [s.If(cond, then, other)]

    def bind(self, depth: int) -> list[s.Stmt]:
        """`if e is x {...}`, or `if a is a {...}`, which narrows."""
        place, type_, root = self.choice(self.places(lambda other: isinstance(other, t.Optional)))
        assert isinstance(type_, t.Optional)  # noqa: S101 - those were asked for
        narrows = isinstance(place, s.Name) and self.chance(50)
        name = place.name if narrows and isinstance(place, s.Name) else self.fresh()
        with self.block(_Local(name, type_.inner)):
            if not t.is_flat(type_.inner):
                self.scope.borrowed.add(root)
            then = self.statements(depth)
        other = None
        if self.chance(30):
            with self.block():
                other = self.statements(depth)
        return [s.If(s.Bind(place, name), then, other)]

    def loop(self, depth: int) -> list[s.Stmt]:
        """`for`."""
        names, range_, root = self.range(1)
        label = self.fresh() if self.chance(40) else None
        with self.block(*names, loops=(*self.scope.loops, label or ""), deep=True):
            if root is not None:
                self.scope.borrowed.add(root)
            body = self.statements(depth)
        return [s.For(label, tuple(local.name for local in names), range_, body)]

    def while_(self, depth: int) -> list[s.Stmt]:
        """`while` with a counter that nothing else writes."""
        counter = self.fresh()
        self.add(_Local(counter, t.I64))
        more = s.Binary("<", s.Name(counter), s.Int(self.draw(_upto(3))))
        cond = s.Binary("and", more, self.expr(t.BOOL)) if self.chance(30) else more
        step = s.Assign(s.Name(counter), s.Binary("+", s.Name(counter), s.Int(1)))
        with self.block(loops=(*self.scope.loops, ""), deep=True):
            body = self.statements(depth)
        return [s.VarDecl(counter, None, s.Int(0)), s.While(None, cond, s.Block((step, *body.items)))]

    def with_(self, depth: int) -> list[s.Stmt]:
        """`with e = m[k] else init {...}`: nothing else of the variable is used inside."""
        place, type_, root = self.choice(
            self.places(lambda other: isinstance(other, t.Map | t.OMap), writable=True)
        )
        key, value = t.parts(type_)
        at = self.expr(key, 1)
        name = self.fresh()
        with self.hiding(root):
            default = self.expr(value, 1) if self.chance(80) else None
            with self.block(_Local(name, value, writable=True), hidden={*self.scope.hidden, root}):
                body = self.statements(depth)
                if self.chance(30):
                    body = s.Block((*body.items, s.If(self.expr(t.BOOL, 1), s.Block((s.Drop(name),)))))
        return [s.With(name, s.Index(place, at), default, body)]

    # -- functions and the operator

    def fn(self, fns: tuple[_Fn, ...], *, local: bool) -> _Fn:
        """A function that may call those before it."""
        params = tuple((self.choice(self.palette), self.chance(40)) for _ in range(self.draw(_upto(2))))
        named = [(self.fresh(), type_, ref) for type_, ref in params]
        base = self.fresh()
        result = self.choice((t.UNIT, *self.palette))
        locals_ = [_Local(base, BASE), *(_Local(name, type_, writable=ref) for name, type_, ref in named)]
        self.scope = _Scope(locals_, s.Name(base), fns=fns, result=result, local=local, deep=True)
        body: s.Block | s.Expr
        if result != t.UNIT and self.chance(30):
            body = self.expr(result)
        else:
            body = self.statements(1)
            if result != t.UNIT:
                body = s.Block((*body.items, s.Return(self.expr(result))))
        head = (s.Param(base, s.TypeName("Base")), *(s.Param(n, type_expression(x), r) for n, x, r in named))
        source = s.Fn(self.fresh(), head, None if result == t.UNIT else type_expression(result), body)
        return _Fn(source, params, result, local)


@cache
def _upto(most: int) -> st.SearchStrategy[int]:
    """Numbers from 0 to `most`: thousands are drawn for an operator, and a strategy that is made anew is looked at anew."""
    return st.integers(0, most)


@cache
def _number(low: int, high: int) -> st.SearchStrategy[int]:
    """Small numbers, and the ends of a range."""
    return st.integers(max(low, -3), 3) | st.sampled_from([low, high - 1])


def _parts(expr: s.Expr, type_: t.Type, depth: int) -> Iterator[tuple[s.Expr, t.Type]]:
    """A place and the fields inside it."""
    yield expr, type_
    if depth == 0:
        return
    match type_:
        case t.Record(fields):
            for name, part in fields:
                yield from _parts(s.Member(expr, name), part, depth - 1)
        case t.Tuple(items):
            for i, part in enumerate(items):
                yield from _parts(s.Member(expr, str(i)), part, depth - 1)
        case _:
            return


def _roots(node: object) -> Iterator[str]:
    """The variables that an expression names."""
    match node:
        case s.Name(name):
            yield name
        case s.Var(name):
            yield f"${name}"
        case s.Node():
            yield from _roots(
                tuple(getattr(node, part.name) for part in fields(type(node)) if part.name != "span")
            )
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from _roots(part)
        case _:
            return


def _has_length(type_: t.Type) -> bool:
    return t.is_container(type_) or type_ in (t.STRING, t.BYTES)


@cache
def _inner_types() -> st.SearchStrategy[t.Type]:
    """Scalars, optionals, and small records and tuples of them."""
    flat = st.sampled_from(SCALARS)
    pairs = st.tuples(flat, flat)
    return (
        flat
        | flat.map(t.Optional)
        | pairs.map(lambda p: t.Record((("p", p[0]), ("q", t.Optional(p[1])))))
        | pairs.map(t.Tuple)
    )


def _one(draw: st.DrawFn, options: Sequence[T]) -> T:
    """One of them; the first is the simplest."""
    return options[draw(_upto(len(options) - 1))]


def _container(draw: st.DrawFn, inner: Sequence[t.Type]) -> t.Type:
    """A type of containers of some of these, or of a record with one."""
    match draw(_upto(7)):
        case 0:
            return t.List(_one(draw, inner))
        case 1:
            return t.Map(_one(draw, KEYS), _one(draw, inner))
        case 2:
            return t.OMap(_one(draw, KEYS), _one(draw, inner))
        case 3:
            return t.Deque(_one(draw, inner))
        case 4:
            return t.Bag(_one(draw, KEYS))
        case 5:
            return t.Array(_one(draw, inner), draw(_upto(3)))
        case 6:
            return t.FSUM
        case _:
            return _triple(_one(draw, inner), _one(draw, inner))


def _triple(inner: t.Type, item: t.Type) -> t.Type:
    return t.Record((("n", t.I64), ("r", inner), ("s", t.List(item))))


@st.composite
def bodies(draw: st.DrawFn, firings: int = 3) -> BodyCase:
    """Operators with random bodies, and `firings` items at most to fire them on."""
    inner = draw(st.lists(_inner_types(), min_size=2, max_size=3))
    containers = [_container(draw, [t.I64, *inner]) for _ in range(2 + draw(_upto(1)))]
    nested = [_container(draw, [*inner, *containers]) for _ in range(draw(_upto(1)))]
    palette = tuple(dict.fromkeys([t.I64, *inner, *containers, *nested]))
    carried = [type_ for type_ in palette if t.is_item(type_)]
    fields = [(f"e{i}", _one(draw, carried)) for i in range(draw(_upto(2)))]
    extra = tuple(s.FieldType(name, type_expression(type_)) for name, type_ in fields)
    item = t.Record((("base", BASE), *fields))
    variables = [(f"s{i}", _one(draw, palette)) for i in range(1 + draw(_upto(2)))]
    if draw(st.booleans()):
        variables += [("left", containers[0]), ("right", containers[0])]
    outs = [(f"o{i}", _one(draw, carried)) for i in range(1 + draw(_upto(1)))]
    generator = _Generator(draw, palette, tuple(outs))

    fns: tuple[_Fn, ...] = ()
    for _ in range(draw(_upto(2))):
        fns = (*fns, generator.fn(fns, local=generator.chance(60)))
    generator.fuel = 120
    rated = generator.chance(30)
    window: t.Type = t.Array(item, 2) if rated else item
    first = s.Index(s.Name("v"), s.Int(0)) if rated else s.Name("v")
    state = [_Local(f"${name}", type_, writable=True) for name, type_ in variables]
    generator.scope = _Scope([_Local("v", window), *state], s.Member(first, "base"), fns=fns)
    if rated:
        generator.add(_Local("now", item))  # bound by the first statement
    body = s.Block(tuple(one for _ in range(2 + draw(_upto(5))) for one in generator.statement(2)))
    if rated:
        body = s.Block((s.Let("now", None, first), *body.items))
    operator = s.Operator(
        "random",
        (s.Port("x", s.RecordType((s.FieldType("base", s.TypeName("Base")), *extra))),),
        tuple(s.VarParam(name, type_expression(type_)) for name, type_ in variables),
        tuple(s.Out(name, type_expression(type_)) for name, type_ in outs),
        (),
        tuple(fn.source for fn in fns if fn.local),
        (
            s.RatedHandler((s.Rate("x", s.Int(2), s.Int(1), "v"),), body)
            if rated
            else s.ItemHandler("x", "v", body),
        ),
    )
    return BodyCase(
        operator,
        tuple(fn.source for fn in fns if not fn.local),
        tuple(draw(st.lists(values_of(item, 3), min_size=1, max_size=firings))),
        tuple(draw(values_of(type_, 3)) for _, type_ in variables),
    )


@frozen
class ViewCase:
    """A function `rows` of a view: of the entries of a map, or of a whole value; with values of the variable."""

    function: s.Fn
    type: t.Type
    row: t.Type
    value: Any

    @property
    def scope(self) -> Scope:
        """Where the function stands."""
        return check.scope({"Base": Declared((), type_expression(BASE))}, (self.function,))


@st.composite
def view_bodies(draw: st.DrawFn) -> ViewCase:
    """Views with random functions of random maps, or of records."""
    inner = draw(st.lists(_inner_types(), min_size=2, max_size=3))
    containers = [_container(draw, [t.I64, *inner]) for _ in range(2)]
    rows = tuple(
        dict.fromkeys([t.I64, *inner, t.List(inner[0]), t.Record((("p", inner[0]), ("q", inner[1])))])
    )
    row = _one(draw, rows)
    palette = tuple(dict.fromkeys([*rows, *containers]))
    value = t.Record((("base", BASE), *((f"c{i}", each) for i, each in enumerate(containers))))
    key = _one(draw, [None, *KEYS])
    generator = _Generator(draw, palette)
    locals_ = [_Local("a", value), *([] if key is None else [_Local("k", key)])]
    result = t.List(row)
    generator.scope = _Scope(
        locals_, s.Member(s.Name("a"), "base"), result=result, local=False, deep=draw(st.booleans())
    )

    def returned() -> s.Block:
        with generator.block():
            before = generator.statements(1).items
            kind = draw(_upto(2))
            if kind == 0:
                made: s.Expr = s.ListValue(tuple(generator.expr(row, 2) for _ in range(draw(_upto(2)))))
            else:
                made = generator.comprehension(row, 2) if kind == 1 else generator.expr(result, 2)
            return s.Block((*before, s.Return(made)))

    body: s.Block | s.Expr
    match draw(_upto(3)):
        case 0:
            body = generator.expr(result)
        case 1:
            body = s.Block((s.If(generator.expr(t.BOOL, 1), returned(), returned()),))
        case 2:
            body = s.Block((s.If(generator.expr(t.BOOL, 1), returned(), None), *returned().items))
        case _:
            push = s.Do(s.Call("push", (s.Name("made"), generator.expr(row, 2))))
            loop = s.For(None, ("i",), s.Range(s.Int(0), s.Int(draw(_upto(3)))), s.Block((push,)))
            list_ = s.VarDecl("made", type_expression(result), s.ListValue(()))
            body = s.Block((list_, loop, s.Return(s.Name("made"))))
    params = [s.Param("a", type_expression(value))]
    if key is not None:
        params.insert(0, s.Param("k", type_expression(key)))
    type_ = value if key is None else _one(draw, [t.Map, t.OMap])(key, value)
    function = s.Fn("rows", tuple(params), type_expression(result), body)
    return ViewCase(function, type_, row, draw(values_of(type_, 4)))
