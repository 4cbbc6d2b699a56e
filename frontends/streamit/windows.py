"""State that only remembers the last items becomes a longer window: then firings of the filter may run side by side.

Most programs keep the samples of a filter in an array that a counter goes round, or that each firing moves by one place. Firings
are executed with unknown items (`river.lang.unknowns`) until what is kept comes to repeat: then it must be items that have
been and fixed numbers, and each firing of a round must send the same, counted from its own items. Whatever the items are, all
firings then do what the first of the round does, so it stands for all, and begins with what it finds in the window. Items
that lie before the first one have the values with which the state begins.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any, Final

from frontends.streamit.literals import literal
from river.classes import define, evolve, field, frozen
from river.diagnostics import Rejected
from river.il import program as p
from river.il.templates import instantiate
from river.il.trees import fresh, names, rebuild, walk
from river.lang import check, typed
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.operations.table import traps_of
from river.lang.scope import integer
from river.lang.trees import nodes
from river.lang.unknowns import Run, Undecided, Unknown, constants, copied, thawed
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from river.lang.scope import Scope

STEPS: Final = 400_000
"""Expressions that are executed of one filter, and items of its windows."""

ALL: Final = 2_000_000
"""Of all: what is left then keeps its state."""

LONGEST: Final = 4_096
"""Items that a window may reach back."""

SINGLE: Final = 64
"""Parts of the state that are set one by one."""

SHARE: Final = 4
"""Expressions of a firing for each part of the state: what only waits in long lines is better kept."""

Path = tuple[int, ...]
Key = tuple[str, tuple[s.Expr, ...]]
Alike = tuple[str, tuple[tuple[str, s.TemplateArg], ...]]
"""A filter and those of its arguments that may decide what it does."""


def windowed(program: p.Program, fixed: frozenset[str]) -> p.Program:
    """The program with windows in place of such states; variables of the names `fixed` stay."""
    return _Windows(program, fixed).program()


@define
class _Windows:
    given: p.Program
    fixed: frozenset[str]
    variables: dict[str, p.Variable] = field(init=False)
    operators: dict[str, p.Decl] = field(init=False)
    made: dict[Key, s.Operator | None] = field(factory=dict[Key, "s.Operator | None"])
    filters: dict[Alike, _Filter | None] = field(factory=dict[Alike, "_Filter | None"])
    budget: list[int] = field(factory=lambda: [ALL])

    def __attrs_post_init__(self) -> None:
        decls = self.given.decls
        self.variables = {decl.name: decl for decl in decls if isinstance(decl, p.Variable)}
        self.operators = {decl.name: decl for decl in decls if isinstance(decl, s.Operator | p.Instance)}
        self.operators |= {decl.operator.name: decl for decl in decls if isinstance(decl, s.Template)}

    def program(self) -> p.Program:
        """The program."""
        keys = {id(use): self.key(use) for use in self.given.uses}
        found = {at: key for at, key in keys.items() if key is not None and self.operator(key) is not None}
        if not found:
            return self.given
        stay = {use.operator for use in self.given.uses if id(use) not in found}
        names_, taken = dict[Key, str](), set(self.operators)
        for key in dict.fromkeys(found.values()):
            free = key[0] not in stay and key[0] not in names_.values()
            names_[key] = key[0] if free else fresh(key[0], taken)
            taken.add(names_[key])
        gone = {end[1:] for use in self.given.uses if id(use) in found for end in use.ins if end[0] == "$"}
        left = {
            decl.template for decl in self.given.decls if isinstance(decl, p.Instance) and decl.name in stay
        }
        decls: list[p.Decl] = []
        for decl in self.given.decls:
            match decl:
                case p.Variable(name) if name in gone:
                    pass
                case s.Operator(name) | p.Instance(name) if name not in stay:
                    pass
                case s.Template(_, inner) if inner.name not in left:
                    pass
                case p.Use() if id(decl) in found:
                    ends = [tuple(end for end in each if end[0] != "$") for each in (decl.outs, decl.ins)]
                    decls.append(evolve(decl, outs=ends[0], ins=ends[1], operator=names_[found[id(decl)]]))
                case _:
                    decls.append(decl)
        place = next(i for i, decl in enumerate(decls) if isinstance(decl, p.Use))
        own = [(self.operator(key), name) for key, name in names_.items()]
        decls[place:place] = [evolve(operator, name=name) for operator, name in own if operator is not None]
        return p.Program(tuple(decls))

    def key(self, use: p.Use) -> Key | None:
        """What a use is, if it keeps anything: its operator, and what its variables begin with."""
        ends = [end[1:] for end in use.ins if end[0] == "$"]
        if (
            not ends
            or len(use.ins) != len(ends) + 1
            or not self.fixed.isdisjoint(ends)
            or use.operator not in self.operators
        ):
            return None
        return use.operator, tuple(self.variables[end].initial for end in ends)

    def operator(self, key: Key) -> s.Operator | None:
        """The operator without state; None if it needs it."""
        if key not in self.made:
            try:
                self.made[key] = self.without_state(*key)
            except (Undecided, Rejected):
                self.made[key] = None
        return self.made[key]

    def without_state(self, name: str, initial: Sequence[s.Expr]) -> s.Operator:
        """The operator without state.

        Raises: Undecided; Rejected if it is wrong, which others tell.
        """
        decl, text = self.operators[name], self.text(name)
        alike = name, ()
        if isinstance(decl, p.Instance):
            template = self.operators[decl.template]
            assert isinstance(template, s.Template)  # noqa: S101 - `text` has asked
            floats = {param.name for param in template.params if _is_float(param.kind)}
            alike = decl.template, tuple(arg for arg in decl.args if arg[0] not in floats)
        scope = check.scope({}, [fn for fn in self.given.decls if isinstance(fn, s.Fn)])
        found = self.filter(alike, text, scope)
        if found is not None and not found.shared:
            found = self.filter((name, ()), text, scope)
        if found is None:
            raise Undecided("those like it have state")
        types = [var.type for var in found.operator.vars]
        first = [check.constant(value, type_, scope) for value, type_ in zip(initial, types, strict=True)]
        state = found.begin(first)
        return _Text(text, found.operator, state, [thawed(value) for value in first]).operator()

    def text(self, name: str) -> s.Operator:
        """The text of an operator of the program's own.

        Raises: Undecided.
        """
        decl = self.operators[name]
        if isinstance(decl, s.Operator):
            return decl
        assert isinstance(decl, p.Instance)  # noqa: S101 - uses name nothing else
        template = self.operators.get(decl.template)
        if not isinstance(template, s.Template):
            raise Undecided("it is a template of River's")
        return instantiate(template, decl.args, name, decl.span)

    def filter(self, alike: Alike, text: s.Operator, scope: Scope) -> _Filter | None:
        """What is known of such filters; None if it is seen at once that they have state."""
        if alike not in self.filters:
            self.filters[alike] = None
            operator = check.operator(text, scope)
            if isinstance(operator, typed.Operator) and _plain(operator):
                self.filters[alike] = found = _Filter(operator, self.budget)
                try:
                    found.try_()
                except Undecided:
                    self.filters[alike] = None
        return self.filters[alike]


def _is_float(kind: s.TypeExpr | str) -> bool:
    """Whether a parameter of a template is a float, or an array of such: then it decides nothing in `_Run`."""
    match kind:
        case s.TypeName(name, ()):
            return name in ("f32", "f64")
        case s.TypeName("array", (s.TypeName() as item, _)):
            return _is_float(item)
        case _:
            return False


def _plain(operator: typed.Operator) -> bool:
    """Whether an operator only fires for windows of one input, and keeps numbers."""
    if operator.rated is None or operator.first is not None or operator.items or operator.phases:
        return False
    if operator.merge is not None or operator.mark is not None or len(operator.ports) != 1:
        return False
    (rate,) = operator.rated.rates
    kept = all(_numbers(var.type) for var in operator.vars)
    return kept and rate.pop > 0 and not operator.ports[0].initial and _numbers(operator.ports[0].type)


def _numbers(type_: t.Type) -> bool:
    match type_:
        case t.Array(item, _):
            return _numbers(item)
        case t.Record():
            return all(map(_numbers, t.parts(type_)))
        case _:
            return type_ in (t.BOOL, t.I32, t.F32, t.F64)


def _floats(type_: t.Type) -> bool:
    match type_:
        case t.Array(item, _):
            return _floats(item)
        case t.Record():
            return all(map(_floats, t.parts(type_)))
        case _:
            return type_ in t.FLOATS


def _paths(type_: t.Type) -> Iterator[Path]:
    """Where the numbers of a type lie in it."""
    match type_:
        case t.Array(item, size):
            yield from ((i, *path) for i in range(size) for path in _paths(item))
        case t.Record():
            parts = enumerate(t.parts(type_))
            yield from ((i, *path) for i, part in parts for path in _paths(part))
        case _:
            yield ()


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


# ----------------------------------------------------------------------------------------------------------- execution


@frozen(eq=False)
class _Made(Unknown):
    """What an operation makes of unknowns: one for equal operands."""


@frozen
class _Item(Unknown):
    """A part of the item that lies so many places behind the first one of the window (before it, if negative)."""

    offset: int
    path: Path


@define
class _Run(Run):
    """An execution, whose unknowns are equal where they are made in the same way of the same.

    `trace`: what might trap; `computed`: constants have been computed that are no floats; `kinds`: operations by name and
    types, as numbers, which are quicker to look up.
    """

    operator: typed.Operator = field(kw_only=True)
    made: dict[Hashable, _Made] = field(factory=dict["Hashable", _Made], kw_only=True)
    trace: list[Hashable] = field(factory=list["Hashable"], kw_only=True)
    known: dict[int, Any] = field(factory=dict[int, Any], kw_only=True)
    computed: bool = field(default=False, kw_only=True)
    told: dict[int, tuple[int, bool]] = field(factory=dict[int, "tuple[int, bool]"], kw_only=True)
    kinds: dict[Hashable, int] = field(factory=dict["Hashable", int], kw_only=True)

    def constant(self, index: int, type_: t.Type) -> Any:
        """A constant; floats are unknown, so that what is found holds for whatever they are."""
        if index not in self.known:
            value = self.operator.consts[index].value
            if _floats(type_):
                self.known[index] = self.symbols(type_, (index,))
            elif isinstance(value, typed.Literal):
                self.known[index] = thawed(value.value)
            else:
                self.computed = True
                self.known[index] = constants(self.operator)[index]
        return self.known[index]

    def symbols(self, type_: t.Type, path: Path) -> Any:
        """Unknown numbers."""
        match type_:
            case t.Array(item, size):
                return [self.symbols(item, (*path, i)) for i in range(size)]
            case t.Record():
                return [self.symbols(part, (*path, i)) for i, part in enumerate(t.parts(type_))]
            case _:
                return self.node("constant", path)

    def node(self, *key: Hashable) -> _Made:
        """What is made so."""
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = _Made()
        return found

    def met(self, expr: typed.Apply, name: str, values: Sequence[Any]) -> Any:
        """A number."""
        told = self.told.get(id(expr))
        if told is None:
            types = tuple(arg.type for arg in expr.args)
            if not isinstance(expr.type, t.Primitive):
                raise Undecided(f"`{name}` is applied to items")
            kind = self.kinds.setdefault((name, expr.type, types), len(self.kinds))
            told = kind, bool(traps_of(OPERATIONS[name], types, expr.type))
            self.told[id(expr)] = told
        found = self.node(
            told[0], *[value if isinstance(value, Unknown) else _key(value) for value in values]
        )
        if told[1]:
            self.trace.append(found)
        return found

    def literal(self, expr: typed.Literal) -> Any:
        """What the text says; floats are unknown, too."""
        if not isinstance(expr.type, t.Primitive):
            raise Undecided("it has tables in its text")
        return self.node("literal", id(expr)) if expr.type in t.FLOATS else expr.value

    def choice(
        self, expr: typed.Expr, cond: typed.Expr, then: typed.Expr, other: typed.Expr, frame: list[Any]
    ) -> Any:
        """One of two values; if an item chooses, both are there, if they do nothing but compute."""
        chosen = self.of(cond, frame)
        if not isinstance(chosen, Unknown):
            return self.of(then if chosen else other, frame)
        if not isinstance(expr.type, t.Primitive) or any(
            isinstance(node, typed.Call) for side in (then, other) for node in nodes(side)
        ):
            raise Undecided("an item decides what a firing does")
        return self.node("if", chosen, _key(self.of(then, frame)), _key(self.of(other, frame)))


def _key(value: Any) -> Hashable:
    """A value as a key, equal only for what is the same, bit by bit."""
    match value:
        case Unknown():
            return value
        case list():
            return tuple(map(_key, value))  # pyright: ignore[reportUnknownArgumentType]
        case float():
            return "float", pack("<d", value)
        case _:
            return type(value).__name__, value


@define
class _Filter:
    """Filters that differ in floats. `size`: expressions of the last firing; `budget`: how many may be executed of all."""

    operator: typed.Operator
    budget: list[int]
    states: dict[Hashable, list[Any] | None] = field(factory=dict["Hashable", "list[Any] | None"])
    run: _Run = field(init=False)
    size: int = 0

    def __attrs_post_init__(self) -> None:
        outs = tuple([] for _ in self.operator.outs)
        self.run = _Run(self.operator.fns, (), outs, STEPS, operator=self.operator)

    @property
    def shared(self) -> bool:
        """Whether what is found holds for all of them."""
        return not self.run.computed

    @property
    def state(self) -> list[Any]:
        """What is kept."""
        assert self.run.state is not None  # noqa: S101 - firings begin with some
        return self.run.state

    def try_(self) -> None:
        """One firing, whatever the state begins with: most fail at once.

        Raises: Undecided.
        """
        self.run.state = [thawed(default(var.type)) for var in self.operator.vars]
        self.fire()
        if sum(1 for var in self.operator.vars for _ in _paths(var.type)) * SHARE > self.size:
            raise Undecided("it hardly looks at what it keeps")

    def fire(self) -> Hashable:
        """One firing more; what it sends, and what might have trapped.

        Raises: Undecided, also if it keeps something else than items and what is known.
        """
        run, handler, type_ = self.run, self.operator.rated, self.operator.ports[0].type
        assert handler is not None  # noqa: S101 - it is plain
        (rate,) = handler.rates
        run.left -= rate.peek  # what makes a window takes as long as expressions do
        if run.left < 0:
            raise Undecided("its windows are long")
        for out in run.outs:
            out.clear()
        run.trace.clear()
        before = run.left
        window = [_item(type_, offset) for offset in range(rate.peek)]
        run.block(handler.body, [window, *[None] * (handler.slots - 1)])
        self.size = before - run.left
        self.budget[0] -= self.size
        if self.budget[0] < 0:
            raise Undecided("the program has very many filters")
        run.state = [_behind(value, rate.pop) for value in self.state]
        return tuple(tuple(map(_key, out)) for out in run.outs), tuple(run.trace)

    def begin(self, first: Sequence[Any]) -> list[Any]:
        """The state at the beginning of a round, in place of the initial one.

        Raises: Undecided if there is none.
        """
        key = _key(thawed(tuple(first)))
        if key not in self.states:
            self.states[key] = None
            self.states[key] = self.rounds(first)
        found = self.states[key]
        if found is None:
            raise Undecided("those like it have state")
        return found

    def rounds(self, first: Sequence[Any]) -> list[Any]:
        """The same, not asked for before."""
        cells = sum(1 for var in self.operator.vars for _ in _paths(var.type))
        known = [_key(thawed(value)) for value in first]
        seen: dict[Hashable, int] = {}
        states: list[list[Any]] = []
        sent: list[Hashable] = []
        self.run.state = [thawed(value) for value in first]
        for _ in range(2 * cells + 3):
            key = _key(self.state)
            if key in seen:
                break
            seen[key] = len(states)
            states.append(copied(self.state))
            sent.append(self.fire())
        else:
            raise Undecided("what it keeps does not come to repeat")
        round_ = range(seen[key], len(states))
        if len({sent[i] for i in round_}) > 1:
            raise Undecided("its firings differ")
        for i in round_:
            if all(map(_fits, states[i], known)) and all(item.offset < 0 for item in _items(states[i])):
                return states[i]
        raise Undecided("it begins in another way")


def _item(type_: t.Type, offset: int, path: Path = ()) -> Any:
    match type_:
        case t.Array(item, size):
            return [_item(item, offset, (*path, i)) for i in range(size)]
        case t.Record():
            return [_item(part, offset, (*path, i)) for i, part in enumerate(t.parts(type_))]
        case _:
            return _Item(offset, path)


def _behind(value: Any, places: int) -> Any:
    """What is kept, seen from so many items later.

    Raises: Undecided.
    """
    match value:
        case list():
            return [_behind(part, places) for part in value]  # pyright: ignore[reportUnknownVariableType]
        case _Item(offset, path):
            if offset - places < -LONGEST:
                raise Undecided("it keeps what has been long ago")
            return _Item(offset - places, path)
        case Unknown():
            raise Undecided("it keeps what it has computed")
        case _:
            return value


def _fits(value: Any, initial: Hashable) -> bool:
    """Whether what is known of a value is as in the initial one."""
    if isinstance(value, list) and isinstance(initial, tuple):
        return all(map(_fits, value, initial))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, Unknown) or _key(value) == initial


# ----------------------------------------------------------------------------------------------------------------- text


@define
class _Text:
    """The text of the operator. `state`: that at the beginning of each firing; `initial`: that of the first one."""

    text: s.Operator
    known: typed.Operator
    state: list[Any]
    initial: list[Any]
    back: int = 0

    def operator(self) -> s.Operator:
        """The operator whose firings begin with the state that they find in the window."""
        (handler,) = self.text.handlers
        assert isinstance(handler, s.RatedHandler)  # noqa: S101 - it is plain
        assert self.known.rated is not None  # noqa: S101 - it is plain
        (rate,), (kind,), (port,) = handler.rates, self.known.rated.rates, self.text.ports
        self.back = max((-item.offset for item in _items(self.state)), default=0)
        taken = {*names(self.text), *(end.name for end in (*self.text.ports, *self.text.outs))}
        own: dict[str, str] = {}
        for var in self.text.vars:
            own[var.name] = fresh(var.name, taken)
            taken.add(own[var.name])
        counter = fresh("i", taken)
        body = _Reading(rate.name, self.back, own).block(handler.body)
        before = (
            self.before(self.known.ports[0].type) if self.back else None
        )  # what it keeps may always be the same
        given = evolve(port, initial=before)
        rate = evolve(rate, peek=s.Int(kind.peek + self.back), pop=s.Int(kind.pop))
        begin = list(self.locals(own, rate.name, counter))
        return evolve(
            self.text,
            ports=(given,),
            vars=(),
            handlers=(evolve(handler, rates=(rate,), body=s.Block((*begin, *body.items))),),
        )

    def before(self, type_: t.Type) -> s.Expr:
        """The items before the first one.

        Raises: Undecided if they would have to have several values.
        """
        items = [thawed(default(type_)) for _ in range(self.back)]
        set_: dict[_Item, Hashable] = {}
        for var, value, first in zip(self.known.vars, self.state, self.initial, strict=True):
            for path in _paths(var.type):
                item, wanted = _at(value, path), _at(first, path)
                if not isinstance(item, _Item):
                    continue
                if set_.setdefault(item, _key(wanted)) != _key(wanted):
                    raise Undecided("it begins in another way")
                if item.path:
                    _at(items[self.back + item.offset], item.path[:-1])[item.path[-1]] = wanted
                else:
                    items[self.back + item.offset] = wanted
        if all(_key(item) == _key(items[0]) for item in items):
            return s.Call("fill", (literal(items[0], type_), s.Int(self.back)))
        return s.ListValue(tuple(literal(item, type_) for item in items))

    def locals(self, own: Mapping[str, str], window: str, counter: str) -> Iterator[s.Stmt]:
        """The state as local variables.

        Raises: Undecided if that would take very many statements.
        """
        loops: dict[int, list[s.Stmt]] = {}
        single: list[s.Stmt] = []
        places = _Places(window, self.back, self.known.ports[0].type)
        for text, var, value in zip(self.text.vars, self.known.vars, self.state, strict=True):
            name = s.Name(own[text.name])
            if not isinstance(value, list):
                first = places.of(value) if isinstance(value, _Item) else literal(value, var.type)
                yield s.VarDecl(name.name, text.type, first)
                continue
            yield s.VarDecl(name.name, text.type, s.Call("zero", ()))
            for path in _paths(var.type):
                looped = isinstance(var.type, t.Array) and var.type.size > 2
                part = _at(value, path)
                if looped and path[0] > 0 and self.straight(value, path[1:]) is not None:  # pyright: ignore[reportUnknownArgumentType]
                    continue
                step = self.straight(value, path[1:]) if looped else None  # pyright: ignore[reportUnknownArgumentType]
                if step is not None and isinstance(var.type, t.Array):
                    cell = _part(s.Index(name, s.Name(counter)), var.type.item, path[1:])
                    loops.setdefault(var.type.size, []).append(
                        s.Assign(cell, places.of(part, s.Name(counter), step))
                    )
                elif isinstance(part, _Item):
                    single.append(s.Assign(_part(name, var.type, path), places.of(part)))
                elif _key(part) not in _ZEROS:
                    type_ = _type(var.type, path)
                    single.append(s.Assign(_part(name, var.type, path), literal(part, type_)))
        if len(single) > SINGLE:
            raise Undecided("what it keeps lies in no order")
        for size, set_ in loops.items():
            yield s.For(None, (counter,), s.Range(s.Int(0), s.Int(size)), s.Block(tuple(set_)))
        yield from single

    def straight(self, value: list[Any], path: Path) -> int | None:
        """By how many places the items in a part of an array's items follow one another, if they do."""
        cells = [_at(part, path) for part in value]
        if not all(isinstance(cell, _Item) for cell in cells):
            return None
        step = cells[1].offset - cells[0].offset
        straight = all(
            cell == _Item(cells[0].offset + step * i, cells[0].path) for i, cell in enumerate(cells)
        )
        return step if straight else None


_ZEROS: Final = (_key(0), _key(0.0), _key(False))


def _items(value: Any) -> Iterator[_Item]:
    if isinstance(value, list):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _items(part)
    elif isinstance(value, _Item):
        yield value


def _part(place: s.Expr, type_: t.Type, path: Path) -> s.Expr:
    """A part of a place."""
    for step in path:
        match type_:
            case t.Record(fields):
                name, type_ = fields[step]
                place = s.Member(place, name)
            case t.Array(item, _):
                place, type_ = s.Index(place, s.Int(step)), item
            case _:
                raise AssertionError(type_)
    return place


def _type(type_: t.Type, path: Path) -> t.Type:
    for step in path:
        type_ = type_.item if isinstance(type_, t.Array) else t.parts(type_)[step]
    return type_


@frozen
class _Places:
    """Items in the new window."""

    window: str
    back: int
    type: t.Type

    def of(self, item: _Item, counter: s.Expr | None = None, step: int = 0) -> s.Expr:
        """An item, or of a loop the one so many steps further."""
        index: s.Expr = s.Int(self.back + item.offset)
        if counter is not None:
            place = counter if step == 1 else s.Binary("*%", counter, s.Int(step))
            index = place if index == s.Int(0) else s.Binary("+%", place, index)
        return _part(s.Index(s.Name(self.window), index), self.type, item.path)


@frozen
class _Reading:
    """A body whose window begins `back` items earlier, and whose variables are local."""

    window: str
    back: int
    own: Mapping[str, str]

    def block(self, body: s.Block) -> s.Block:
        """The body.

        Raises: Undecided if it uses its window as a whole.
        """
        uses = sum(isinstance(node, s.Name) and node.name == self.window for node in walk(body))
        good = sum(isinstance(node, s.Index) and node.value == s.Name(self.window) for node in walk(body))
        if uses != good:
            raise Undecided("a function looks at its items")
        return rebuild(body, self.node)

    def node(self, node: s.Node) -> s.Node:
        """A part of it."""
        node = rebuild(node, self.node)
        match node:
            case s.Index(s.Name(name), index) if name == self.window:
                at = integer(index)
                moved = s.Binary("+%", index, s.Int(self.back)) if at is None else s.Int(at + self.back)
                return evolve(node, index=moved)
            case s.Var(name):
                return s.Name(self.own[name], span=node.span)
            case _:
                return node


__all__ = ["windowed"]
