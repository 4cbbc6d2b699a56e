"""Random operators, well-typed by construction, with items and states to fire them on.

A typed generator over syntax trees: it knows what is in scope, what may be written, and what is borrowed, and asks for an
expression of a type. Loops are bounded by what they range over, which is small.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

from hypothesis import strategies as st

from river.classes import define, fields, frozen
from river.il.program import Program, TypeDecl
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Declared, Scope
from river.lang.scope import expression as type_expression
from river.testing.expression_strategies import Expressions
from river.testing.scope_strategies import BASE, KEYS, SCALARS, Callee, InScope, Local, one_of, upto
from river.testing.value_strategies import values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


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


@define
class Statements(Expressions):
    """One operator under construction: its statements, and the functions that it calls."""

    # -- statements

    def statements(self, depth: int) -> s.Block:
        """A block; call it inside `block`."""
        found: list[s.Stmt] = []
        for _ in range(1 + self.draw(upto(3))):
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

    def add(self, local: Local) -> None:
        """Brings a name into scope."""
        self.scope.locals.append(local)

    def let(self, _depth: int) -> list[s.Stmt]:
        """`let`: what it may be a part of is not written while it lives."""
        type_, name = self.choice(self.palette), self.fresh()
        value = self.expr(type_)
        if not t.is_flat(type_):
            self.scope.borrowed.update(roots(value))
        self.add(Local(name, type_))
        return [s.Let(name, type_expression(type_), value)]

    def var(self, _depth: int) -> list[s.Stmt]:
        """`var`, with its type or without."""
        type_, name = self.choice(self.palette), self.fresh()
        if self.chance(30) and (place := self.read(type_)) is not None:
            statement = s.VarDecl(name, None, place)
        else:
            statement = s.VarDecl(name, type_expression(type_), self.expr(type_))
        self.add(Local(name, type_, writable=True))
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
        self.add(Local(name, fn.result, writable=True))
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
        with self.block(Local(name, type_.inner)):
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
        self.add(Local(counter, t.I64))
        more = s.Binary("<", s.Name(counter), s.Int(self.draw(upto(3))))
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
            with self.block(Local(name, value, writable=True), hidden={*self.scope.hidden, root}):
                body = self.statements(depth)
                if self.chance(30):
                    body = s.Block((*body.items, s.If(self.expr(t.BOOL, 1), s.Block((s.Drop(name),)))))
        return [s.With(name, s.Index(place, at), default, body)]

    # -- functions and the operator

    def fn(self, fns: tuple[Callee, ...], *, local: bool) -> Callee:
        """A function that may call those before it."""
        params = tuple((self.choice(self.palette), self.chance(40)) for _ in range(self.draw(upto(2))))
        named = [(self.fresh(), type_, ref) for type_, ref in params]
        base = self.fresh()
        result = self.choice((t.UNIT, *self.palette))
        locals_ = [Local(base, BASE), *(Local(name, type_, writable=ref) for name, type_, ref in named)]
        self.scope = InScope(locals_, s.Name(base), fns=fns, result=result, local=local, deep=True)
        body: s.Block | s.Expr
        if result != t.UNIT and self.chance(30):
            body = self.expr(result)
        else:
            body = self.statements(1)
            if result != t.UNIT:
                body = s.Block((*body.items, s.Return(self.expr(result))))
        head = (s.Param(base, s.TypeName("Base")), *(s.Param(n, type_expression(x), r) for n, x, r in named))
        source = s.Fn(self.fresh(), head, None if result == t.UNIT else type_expression(result), body)
        return Callee(source, params, result, local)


def roots(node: object) -> Iterator[str]:
    """The variables that an expression names."""
    match node:
        case s.Name(name):
            yield name
        case s.Var(name):
            yield f"${name}"
        case s.Node():
            yield from roots(
                tuple(getattr(node, part.name) for part in fields(type(node)) if part.name != "span")
            )
        case tuple():
            for part in cast("tuple[object, ...]", node):
                yield from roots(part)
        case _:
            return


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


def _container(draw: st.DrawFn, inner: Sequence[t.Type]) -> t.Type:
    """A type of containers of some of these, or of a record with one."""
    match draw(upto(7)):
        case 0:
            return t.List(one_of(draw, inner))
        case 1:
            return t.Map(one_of(draw, KEYS), one_of(draw, inner))
        case 2:
            return t.OMap(one_of(draw, KEYS), one_of(draw, inner))
        case 3:
            return t.Deque(one_of(draw, inner))
        case 4:
            return t.Bag(one_of(draw, KEYS))
        case 5:
            return t.Array(one_of(draw, inner), draw(upto(3)))
        case 6:
            return t.FSUM
        case _:
            return _triple(one_of(draw, inner), one_of(draw, inner))


def _triple(inner: t.Type, item: t.Type) -> t.Type:
    return t.Record((("n", t.I64), ("r", inner), ("s", t.List(item))))


@st.composite
def bodies(draw: st.DrawFn, firings: int = 3) -> BodyCase:
    """Operators with random bodies, and `firings` items at most to fire them on."""
    inner = draw(st.lists(_inner_types(), min_size=2, max_size=3))
    containers = [_container(draw, [t.I64, *inner]) for _ in range(2 + draw(upto(1)))]
    nested = [_container(draw, [*inner, *containers]) for _ in range(draw(upto(1)))]
    palette = tuple(dict.fromkeys([t.I64, *inner, *containers, *nested]))
    carried = [type_ for type_ in palette if t.is_item(type_)]
    fields = [(f"e{i}", one_of(draw, carried)) for i in range(draw(upto(2)))]
    extra = tuple(s.FieldType(name, type_expression(type_)) for name, type_ in fields)
    item = t.Record((("base", BASE), *fields))
    variables = [(f"s{i}", one_of(draw, palette)) for i in range(1 + draw(upto(2)))]
    if draw(st.booleans()):
        variables += [("left", containers[0]), ("right", containers[0])]
    outs = [(f"o{i}", one_of(draw, carried)) for i in range(1 + draw(upto(1)))]
    generator = Statements(draw, palette, tuple(outs))

    fns: tuple[Callee, ...] = ()
    for _ in range(draw(upto(2))):
        fns = (*fns, generator.fn(fns, local=generator.chance(60)))
    generator.fuel = 120
    rated = generator.chance(30)
    window: t.Type = t.Array(item, 2) if rated else item
    first = s.Index(s.Name("v"), s.Int(0)) if rated else s.Name("v")
    state = [Local(f"${name}", type_, writable=True) for name, type_ in variables]
    generator.scope = InScope([Local("v", window), *state], s.Member(first, "base"), fns=fns)
    if rated:
        generator.add(Local("now", item))  # bound by the first statement
    body = s.Block(tuple(one for _ in range(2 + draw(upto(5))) for one in generator.statement(2)))
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
    row = one_of(draw, rows)
    palette = tuple(dict.fromkeys([*rows, *containers]))
    value = t.Record((("base", BASE), *((f"c{i}", each) for i, each in enumerate(containers))))
    key = one_of(draw, [None, *KEYS])
    generator = Statements(draw, palette)
    locals_ = [Local("a", value), *([] if key is None else [Local("k", key)])]
    result = t.List(row)
    generator.scope = InScope(
        locals_, s.Member(s.Name("a"), "base"), result=result, local=False, deep=draw(st.booleans())
    )

    def returned() -> s.Block:
        with generator.block():
            before = generator.statements(1).items
            kind = draw(upto(2))
            if kind == 0:
                made: s.Expr = s.ListValue(tuple(generator.expr(row, 2) for _ in range(draw(upto(2)))))
            else:
                made = generator.comprehension(row, 2) if kind == 1 else generator.expr(result, 2)
            return s.Block((*before, s.Return(made)))

    body: s.Block | s.Expr
    match draw(upto(3)):
        case 0:
            body = generator.expr(result)
        case 1:
            body = s.Block((s.If(generator.expr(t.BOOL, 1), returned(), returned()),))
        case 2:
            body = s.Block((s.If(generator.expr(t.BOOL, 1), returned(), None), *returned().items))
        case _:
            push = s.Do(s.Call("push", (s.Name("made"), generator.expr(row, 2))))
            loop = s.For(None, ("i",), s.Range(s.Int(0), s.Int(draw(upto(3)))), s.Block((push,)))
            list_ = s.VarDecl("made", type_expression(result), s.ListValue(()))
            body = s.Block((list_, loop, s.Return(s.Name("made"))))
    params = [s.Param("a", type_expression(value))]
    if key is not None:
        params.insert(0, s.Param("k", type_expression(key)))
    type_ = value if key is None else one_of(draw, [t.Map, t.OMap])(key, value)
    function = s.Fn("rows", tuple(params), type_expression(result), body)
    return ViewCase(function, type_, row, draw(values_of(type_, 4)))
