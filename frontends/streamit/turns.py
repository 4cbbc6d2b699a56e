"""How many steps a loop takes at least that makes the graph, where it counts: so it is told before it has run."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from frontends.streamit import constants
from frontends.streamit import typed as ty
from frontends.streamit.counters import COMPARE, STEPS, as_for, short
from frontends.streamit.trees import root
from river.classes import frozen
from river.il.trees import Same, walk
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.lang import syntax as s


@frozen
class _Count:
    """A loop that counts by `stride` from `begin` up or down to `bound`."""

    key: str
    begin: ty.Expr
    bound: ty.Expr
    stride: int
    last: bool
    """Whether the bound has a turn, too."""
    body: tuple[ty.Stmt, ...]
    whole: bool
    """Whether each turn reaches the end of the body."""
    changed: frozenset[str]


def least(item: ty.Stmt, values: Mapping[str, constants.Value], changed: frozenset[str] = frozenset()) -> int:
    """The steps that a statement surely takes; `changed`: names that have other values when it runs."""
    match item:
        case ty.Block(items):
            return 1 + sum(least(each, values, changed) for each in items)
        case ty.For(first):
            return 1 + len(first) + least_turns(item, values, changed)
        case ty.While():
            return 1 + least_turns(item, values, changed)
        case _:
            return 1


def least_turns(
    loop: ty.For | ty.While, values: Mapping[str, constants.Value], changed: frozenset[str] = frozenset()
) -> int:
    """The steps that the turns of a loop surely take."""
    count = _count(Same(loop))
    if count is None:
        return 0
    begin = _known(count.begin, values, changed)
    changed |= count.changed
    bound = _known(count.bound, values, changed)
    if begin is None or bound is None:
        return 0
    way = (bound - begin) * (1 if count.stride > 0 else -1)
    turns = way // abs(count.stride) + 1 if count.last else -(-way // abs(count.stride))
    each = sum(least(item, values, changed) for item in count.body) if count.whole else 0
    return max(0, turns) * (1 + each)


def _known(expr: ty.Expr, values: Mapping[str, constants.Value], changed: frozenset[str]) -> int | None:
    """The value that an expression will have, if it is known now."""
    if any(isinstance(node, ty.Local | ty.Param) and _name(node) in changed for node in walk(expr)):
        return None
    try:
        return constants.evaluate(expr, values)
    except (TrapSignal, LookupError):
        return None


def _name(node: s.Node) -> str:
    match node:
        case ty.Local(_, name) | ty.Param(_, name):
            return name
        case _:
            return ""


@lru_cache(maxsize=1024)
def _count(code: Same[ty.For | ty.While]) -> _Count | None:
    """How a loop counts; None for one that may end early, or of whose counter something else is said."""
    first = code.value.first if isinstance(code.value, ty.For) else ()
    loop = as_for(code.value, ()) if isinstance(code.value, ty.While) else code.value
    if loop is None:
        return None
    kinds = {node.__class__ for node in walk(loop.body)}
    if kinds & {ty.Break, ty.Return, ty.Add}:  # too many parts are told as such
        return None
    match loop.cond:
        case ty.Apply(_, compare, (ty.Local(ty.INT, key) as counter, bound)) if compare in COMPARE:
            pass
        case _:
            return None
    strides = [stride for step in loop.steps if (stride := _stride(step, key))]
    others = [step for step in loop.steps if not _stride(step, key)]
    changed = _changed(loop.body, *others)
    up = compare in ("<", "<=")
    if len(strides) != 1 or key in changed or (strides[0] > 0) != up:
        return None
    match first:
        case ():
            begin: ty.Expr = counter
        case (ty.Declare(name, _, value),) if name == key:
            begin = value or ty.Constant(ty.INT, 0)
        case (ty.Do(ty.Update(_, ty.Local(_, name), None, value)),) if name == key:
            begin = value
        case _:
            return None
    own = changed | {key} | _changed(*first)
    return _Count(
        key, begin, bound, strides[0], compare in ("<=", ">="), loop.body.items, ty.Continue not in kinds, own
    )


def _stride(step: ty.Expr, key: str) -> int:
    """By how much a step moves the counter; 0 for another."""
    match short(step):
        case ty.Update(ty.INT, ty.Local(_, moved), operation, ty.Constant(_, size)) if moved == key:
            return (size if operation == "+%" else -size) if operation in STEPS else 0
        case _:
            return 0


def _changed(*code: s.Node) -> frozenset[str]:
    """The names that have other values behind the code, or are declared in it."""
    found: set[str] = set()
    for node in (node for each in code for node in walk(each)):
        match node:
            case ty.Update(_, place):
                found.add(_name(root(place)))
            case ty.Call(_, _, args, changes):
                found.update(_name(root(args[i])) for i in changes)
            case ty.Declare(key):
                found.add(key)
            case _:
                pass
    return frozenset(found)
