"""Random expressions of a type that is asked for, well-typed by construction."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from river.classes import define
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show
from river.testing.scope_strategies import ORDERED, SCALARS, WIDTHS, Callee, Local, Scoped, upto

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def _number(low: int, high: int) -> st.SearchStrategy[int]:
    """Small numbers, and the ends of a range."""
    return st.integers(max(low, -3), 3) | st.sampled_from([low, high - 1])


def _has_length(type_: t.Type) -> bool:
    return t.is_container(type_) or type_ in (t.STRING, t.BYTES)


@define
class Expressions(Scoped):
    """One operator under construction: its expressions."""

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
                return s.signed(value)
            case t.F32 | t.F64:
                return self.choice([
                    lambda: s.Float(self.choice([0.0, 1.0, 0.1, 2.5, 1e30])),
                    lambda: s.Unary("-", s.Float(self.choice([0.0, 1.5]))),
                    lambda: s.Call(self.choice(["inf", "nan"]), ()),
                    lambda: s.Int(self.draw(upto(9))),
                ])()  # fmt: skip
            case t.Decimal():
                return s.Float(self.choice([0.5, 0.25, 12.75, 3.0]))
            case t.STRING:
                return s.String(self.choice(["", "a", "b c", 'é"\n', "-7"]))
            case t.BYTES:
                return s.Bytes(self.choice([b"", b"a", b"\xff\0"]))
            case t.TIME | t.DURATION:
                name = "time" if type_ == t.TIME else "duration"
                return s.Call(name, (s.Int(self.draw(upto(5))),))
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
                return s.ListValue(tuple(self.expr(item, 0) for _ in range(self.draw(upto(2)))))
            case t.Array(item, size):
                if self.chance(50):
                    return s.Call("fill", (self.expr(item, 0),))
                return s.ListValue(tuple(self.expr(item, 0) for _ in range(size)))
            case t.Map(key, value) | t.OMap(key, value):
                pairs = tuple((self.expr(key, 0), self.expr(value, 0)) for _ in range(self.draw(upto(2))))
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
            lambda: s.ListValue(tuple(self.expr(item, depth) for _ in range(1 + self.draw(upto(2))))),
            lambda: s.Call("fill", (self.expr(item, depth), s.Int(self.draw(upto(3))))),
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
        with self.block(Local(param, item), deep=True):
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
        with self.block(Local(total, t.I64), Local(each, item), deep=True):
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

    def range(self, depth: int) -> tuple[list[Local], s.Range | s.Expr, str | None]:
        """What a loop ranges over: its names, the range, and the variable that it borrows."""
        containers = self.places(lambda other: t.is_container(other) or other == t.STRING)
        if not containers or self.chance(30):
            high = self.draw(upto(3))
            return (
                [Local(self.fresh(), t.I64)],
                s.Range(s.Int(self.draw(upto(1))), s.Int(high)),
                None,
            )
        place, type_, root = self.choice(containers)
        if self.scope.deep:  # bounded whatever it has grown to
            if isinstance(type_, t.List):
                return [Local(self.fresh(), type_.item)], s.Call("take", (place, s.Int(2))), root
            return (
                [Local(self.fresh(), t.I64)],
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
        return [Local(self.fresh(), each) for each in types], place, root

    # -- calls

    def callable(self) -> list[Callee]:
        """The functions that may be called here."""
        return [fn for fn in self.scope.fns if self.scope.local or not fn.local]

    def call(self, fn: Callee, depth: int) -> s.Call:
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

    def has_refs(self, fn: Callee) -> bool:
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
