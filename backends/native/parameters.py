"""Operators that differ in constants only, as instances of a template do: one code, which reads these from a variable.

Code with constants in it is faster, so this is for many operators: compiling each would take longer than it saves. The
constants that all agree in stay in the code, and so do patterns. Of operators that fire at stated rates, which are fast by
what the compiler knows, only a crowd shares code, and the bounds of loops and the indices of arrays stay as well.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import define, evolve, field, fields, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.trees import nodes
from river.lang.values import default

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MANY: Final = 16
"""Operators that must differ in constants only before they share code."""

CROWD: Final = 32
"""The same for operators that fire at stated rates."""

OUTLINE: Final = 24
"""Nodes of an operator that tell whether a closer look may be worth it: those that differ mostly do so early."""

_MOVABLE: Final = frozenset((t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION))
_LEAVES: Final = frozenset((str, int, bool, type(None)))
_HANDLERS: Final = ("items", "phases", "rated", "merge", "mark")


@frozen(eq=False)
class Parameters:
    """An operator whose last variable, of type `type`, has `value` instead of constants of its own."""

    operator: typed.Operator
    type: t.Tuple
    value: tuple[Any, ...]


def parameters(operators: Sequence[typed.Operator]) -> list[Parameters | None]:
    """For each operator how it reads its constants, or None if they are part of its code."""
    found: list[Parameters | None] = [None] * len(operators)
    if len(operators) < MANY:
        return found
    different = {id(each): each for each in operators if each.first is None}  # one may be used many times
    outlines: dict[tuple[Any, ...], list[typed.Operator]] = defaultdict(list)
    for each in different.values():
        outlines[_outline(each)].append(each)
    alike: dict[tuple[Any, ...], list[tuple[int, _Shape]]] = defaultdict(list)
    shapes: dict[int, tuple[list[tuple[int, _Shape]], _Shape]] = {}  # by operator; with all that are alike
    for outlined in outlines.values():
        if len(outlined) >= _least(outlined[0]):
            for each in outlined:
                shape = _shape(each)
                shapes[id(each)] = alike[tuple(shape.atoms)], shape
    for i, operator in enumerate(operators):
        if id(operator) in shapes:
            group, shape = shapes[id(operator)]
            group.append((i, shape))
    for group in alike.values():
        if len({shape.told for _, shape in group}) < _least(operators[group[0][0]]):
            continue
        columns = zip(*(shape.told for _, shape in group), strict=True)
        moved = [place for place, told in enumerate(columns) if len(set(told)) > 1]
        first, shape = group[0]
        type_ = t.Tuple(tuple(shape.types[place] for place in moved))
        operator = _rewritten(operators[first], shape, type_, {place: n for n, place in enumerate(moved)})
        for i, each in group:
            found[i] = Parameters(operator, type_, tuple(each.values[place] for place in moved))
    return found


def _least(operator: typed.Operator) -> int:
    """How many operators like this one must differ in constants only before they share code."""
    return MANY if operator.rated is None else CROWD


def _outline(op: typed.Operator) -> tuple[Any, ...]:
    """What operators of one shape have in common, and most others do not, from a look at the first of their nodes."""
    ends = tuple(each.type for each in (*op.ports, *op.vars, *op.outs))
    bodies = [getattr(op, name) for name in _HANDLERS]
    parts = (*(body for body in bodies if body is not None), op.fns)
    first = tuple(node.__class__ for node in islice(nodes(cast("tuple[typed.Node, ...]", parts)), OUTLINE))
    return ends, tuple(const.type for const in op.consts), len(op.fns), len(op.sites), first


@define
class _Shape:
    """An operator without its movable constants: `atoms`; and these, those of `consts` first.

    `consts`: whether the constants of the operator are movable, each as a whole. `rated`: whether it fires at stated rates.
    `fixed`: whether a constant of the operator is named where constants must be known when the code is made.
    """

    consts: bool
    rated: bool
    atoms: list[Any] = field(factory=list[Any])
    types: list[t.Type] = field(factory=list[t.Type])
    values: list[Any] = field(factory=list[Any])
    fixed: bool = False

    @property
    def told(self) -> tuple[str, ...]:
        """The constants as text, which tells 0.0 from -0.0."""
        return tuple(map(repr, self.values))

    def add(self, node: Any, *, movable: bool) -> None:
        """Takes in a part of the tree."""
        match node:
            case typed.Literal(type_, value):
                if movable and type_ in _MOVABLE:
                    self.types.append(type_)
                    self.values.append(value)
                    value = None
                self.atoms += (typed.Literal, type_, repr(value))
            case tuple():
                self.atoms.append(len(node))  # pyright: ignore[reportUnknownArgumentType]
                for each in node:  # pyright: ignore[reportUnknownVariableType]
                    self.add(each, movable=movable)
            case typed.At() if self.rated:
                self.atoms.append(typed.At)
                self.add((node.type, node.value, node.site), movable=movable)
                self.add(node.index, movable=False)
            case typed.Node() | typed.TrapSite():
                if not movable and isinstance(node, typed.ConstRef):
                    self.fixed = True
                inside = movable and not _fixed(node, rated=self.rated)
                self.atoms.append(node.__class__)
                for name in _fields(node.__class__):
                    part = getattr(node, name)
                    if part.__class__ in _LEAVES or isinstance(part, t.Type):
                        self.atoms.append(part)
                    else:
                        self.add(part, movable=inside)
            case str() | int() | None:
                self.atoms.append(node)
            case _ if isinstance(node, t.Type):
                self.atoms.append(node)
            case _:
                self.atoms.append(repr(node))


def _shape(op: typed.Operator) -> _Shape:
    rated = op.rated is not None
    if all(_movable(const.type, rated=rated) for const in op.consts):
        shape = _Shape(consts=True, rated=rated)
        shape.add(op.fns, movable=True)
        _add_handlers(shape, op)
        constants = _constants(op) if not (shape.fixed and op.consts) else None
        if constants is not None:
            _add_ends(shape, op)
            shape.atoms += [(const.name, const.type) for const in op.consts]
            shape.types[:0] = [const.type for const in op.consts]
            shape.values[:0] = constants
            return shape
    shape = _Shape(consts=False, rated=rated)
    shape.add(op.fns, movable=False)  # else constants may be computed by them
    _add_handlers(shape, op)
    _add_ends(shape, op)
    shape.add(op.consts, movable=False)
    return shape


def _add_handlers(shape: _Shape, op: typed.Operator) -> None:
    for name in _HANDLERS:
        shape.add(getattr(op, name), movable=True)


def _add_ends(shape: _Shape, op: typed.Operator) -> None:
    ports = tuple(evolve(port, initial=()) for port in op.ports)  # what waits at first is no part of the code
    for part in (ports, op.vars, op.outs, op.sites):
        shape.add(part, movable=False)


def _constants(op: typed.Operator) -> tuple[Any, ...] | None:
    """The values of the operator's constants, unless one has none."""
    from backends.native.computed import constant
    from river.lang.evaluate import Trap

    values: list[Any] = []
    for index, const in enumerate(op.consts):
        if isinstance(const.value, typed.Literal) and const.type in _MOVABLE:
            values.append(const.value.value)
            continue
        try:
            values.append(constant(op, index, values))
        except Trap:
            return None
    return tuple(values)


def _rewritten(op: typed.Operator, shape: _Shape, type_: t.Tuple, moved: dict[int, int]) -> typed.Operator:
    """The operator that reads the constants at the places `moved` from a variable more."""
    state = typed.State(type_, len(op.vars), "constants")
    place = len(op.consts) if shape.consts else 0

    def read(place: int) -> typed.Get:
        return typed.Get(type_.items[moved[place]], state, moved[place], str(moved[place]))

    def change(node: typed.Expr) -> typed.Expr:
        nonlocal place
        match node:
            case typed.Literal(kind, _) if kind in _MOVABLE:
                place += 1
                return read(place - 1) if place - 1 in moved else node
            case typed.ConstRef(_, index, _) if shape.consts and index in moved:
                return read(index)
            case _:
                return node

    consts = op.consts
    if shape.consts:
        consts = tuple(
            evolve(
                const,
                value=typed.Literal(const.type, default(const.type) if i in moved else shape.values[i]),
                slots=0,
            )
            for i, const in enumerate(op.consts)
        )
    fns = _changed(op.fns, change, rated=shape.rated) if shape.consts else op.fns
    handlers = {name: _changed(getattr(op, name), change, rated=shape.rated) for name in _HANDLERS}
    variables = (*op.vars, typed.VarParam("constants", type_, written=False))
    return evolve(op, vars=variables, consts=consts, fns=fns, **handlers)


def _changed(node: Any, change: Callable[[typed.Expr], typed.Expr], *, rated: bool) -> Any:
    """The tree with other constants; they are met in the order of `_Shape.add`."""
    match node:
        case typed.Literal() | typed.ConstRef():
            return change(node)
        case tuple():
            return tuple(_changed(each, change, rated=rated) for each in node)  # pyright: ignore[reportUnknownVariableType]
        case typed.At(_, value, _, _) if rated:
            return evolve(node, value=_changed(value, change, rated=rated))
        case typed.Node() if not _fixed(node, rated=rated):
            parts = {name: getattr(node, name) for name in _fields(type(node))}
            changed = {name.lstrip("_"): _changed(part, change, rated=rated) for name, part in parts.items()}
            return evolve(node, **changed)
        case _:
            return node


def _movable(type_: t.Type, *, rated: bool) -> bool:
    """Whether a constant of an operator may be read from a variable: of rated ones also arrays, such as taps of filters."""
    if rated and isinstance(type_, t.Array):
        return _movable(type_.item, rated=True)
    return type_ in _MOVABLE


def _fixed(node: Any, *, rated: bool) -> bool:
    """Whether the constants inside must be known when the code is made: those of patterns, or the bounds of a loop."""
    return (rated and isinstance(node, typed.Counted)) or (
        isinstance(node, typed.Apply) and node.type == t.REGEX
    )


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name != "span")
