"""Questions about trees, before and after their types are known; walking them is `river.il.trees`'s."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from frontends.streamit import syntax as c
from frontends.streamit import typed as ty
from river.classes import frozen
from river.il.trees import Same, children, rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def assigned(bodies: Iterable[s.Node]) -> frozenset[str]:
    """The names that something is assigned to below, whatever they denote there."""
    return frozenset(name for body in bodies for name in settings(body))


def settings(body: s.Node) -> Iterator[str]:
    """The same, as often as something is assigned to each."""
    for node in walk(body):
        match node:
            case c.Assign(place) | c.Step(place):
                yield from _root_name(place)
            case c.OutOfLine(targets):
                yield from (target.name for target in targets)
            case _:
                pass


def _root_name(place: c.Expr) -> set[str]:
    """The name of what a place is a part of, if it has one."""
    while isinstance(place, c.Index | c.StructPart):
        place = place.value
    return {place.name} if isinstance(place, s.Name) else set()


def handed(
    bodies: Iterable[s.Node], changing: Mapping[str, frozenset[int]], block: str = ""
) -> frozenset[str]:
    """The names of what is handed to functions that change it; `block`: that of the functions whose bodies these are."""
    found: set[str] = set()
    for node in (node for body in bodies for node in walk(body)):
        if isinstance(node, c.Call):
            inside = f"{block}.{node.name}"
            numbers = changing.get(inside if inside in changing else node.name, frozenset[int]())
            found.update(*(_root_name(arg) for i, arg in enumerate(node.args) if i in numbers))
    return frozenset(found)


def changing(helpers: Mapping[str, c.Helper]) -> Mapping[str, frozenset[int]]:
    """For each function the parameters, by number, that are arrays which it or a function that it calls changes."""
    found = {name: frozenset[int]() for name in helpers}
    while True:
        more: dict[str, frozenset[int]] = {}
        for name, helper in helpers.items():
            changed = assigned((helper.body,)) | handed((helper.body,), found, name.partition(".")[0])
            more[name] = frozenset(
                i for i, param in enumerate(helper.params) if param.type.sizes and param.name in changed
            )
        if more == found:
            return found
        found = more


def called(bodies: Iterable[s.Node]) -> frozenset[str]:
    """The names that are called below."""
    return frozenset(node.name for body in bodies for node in walk(body) if isinstance(node, c.Call))


def root(place: ty.Expr) -> ty.Expr:
    """What a place is a part of."""
    while isinstance(place, ty.At | ty.StructPart):
        place = place.array if isinstance(place, ty.At) else place.value
    return place


def pure(expr: ty.Expr) -> bool:
    """Whether evaluating the expression takes nothing, changes nothing and calls nothing."""
    return not any(isinstance(node, ty.Update | ty.Pop | ty.Call | ty.Function) for node in walk(expr))


def breaks(item: s.Node, word: type[s.Node], rings: tuple[type[s.Node], ...]) -> bool:
    """Whether a `break` in the statement leaves what is around it; `rings` keep those inside of them."""
    if isinstance(item, rings):
        return False
    return isinstance(item, word) or any(breaks(child, word, rings) for child in children(item))


@frozen
class _Facts:
    """What stands in a piece of code, functions that it calls aside."""

    changed: frozenset[str]
    read: frozenset[str]
    called: frozenset[str]
    kinds: frozenset[type[s.Node]]


@lru_cache(maxsize=4096)
def _facts(code: Same[s.Node]) -> _Facts:
    """The same for all who ask about a piece of code: it is gone through once."""
    changed: set[str] = set()
    found: set[str] = set()
    called_: set[str] = set()
    kinds: set[type[s.Node]] = set()
    for node in walk(code.value):
        kinds.add(node.__class__)
        match node:
            case ty.Update(_, place):
                changed.add(named(root(place)))
            case ty.Bind(targets):
                changed.update(named(target) for target in targets)
            case ty.Call(_, name, args, changes):
                called_.add(name)
                changed.update(named(root(args[i])) for i in changes)
            case ty.Local(_, name) | ty.Field(_, name):
                found.add(name)
            case _:
                pass
    return _Facts(frozenset(changed), frozenset(found), frozenset(called_), frozenset(kinds))


def updated(body: s.Node) -> frozenset[str]:
    """The locals (by key) and fields (by name) that are changed below, functions aside."""
    return _facts(Same(body)).changed


def read(body: s.Node) -> frozenset[str]:
    """The locals and fields that stand below."""
    return _facts(Same(body)).read


def without_unread(body: ty.Block, keys: Iterable[str]) -> ty.Block:
    """The code without those of these locals that nothing reads."""
    places: list[ty.Local] = []
    keep: set[str] = set()
    for node in walk(body):
        match node:
            case ty.Do(ty.Update(_, ty.Local() as place, None, value)) if pure(value):
                places.append(place)
            case ty.Declare(key, _, value) if value is not None and not pure(value):
                keep.add(key)
            case _:
                pass
    stored = {id(place) for place in places}
    keep |= {node.key for node in walk(body) if isinstance(node, ty.Local) and id(node) not in stored}
    gone = set(keys) - keep

    def rewrite(node: s.Node) -> s.Node | tuple[s.Node, ...]:
        match node:
            case ty.Do(ty.Update(_, ty.Local(_, key))) | ty.Declare(key) if key in gone:
                return ()
            case _:
                return rebuild(node, rewrite)

    return rebuild(body, rewrite) if gone else body


def named(place: ty.Expr) -> str:
    """The key of a local, the name of a field."""
    match place:
        case ty.Local(_, name) | ty.Field(_, name):
            return name
        case _:
            return ""


@frozen(slots=False)
class Usage:
    """What the functions of a filter do, with all that they call."""

    helpers: Mapping[str, ty.Helper]
    fields: tuple[str, ...]

    @classmethod
    def of(cls, filter_: ty.Filter) -> Usage:
        """The usage of a filter's functions."""
        return cls({helper.name: helper for helper in filter_.helpers}, tuple(f.name for f in filter_.fields))

    def reached(self, bodies: Iterable[s.Node]) -> tuple[ty.Helper, ...]:
        """The functions that the code calls, directly or not, in the order of the text."""
        if not self.helpers:
            return ()
        found: set[str] = set()
        waiting = list(bodies)
        while waiting:
            new = _facts(Same(waiting.pop())).called - found
            found |= new
            waiting += (self.helpers[name].body for name in new)
        return tuple(helper for name, helper in self.helpers.items() if name in found)

    def all(self, bodies: Iterable[s.Node]) -> tuple[s.Node, ...]:
        """The code and that of all functions that it calls."""
        own = tuple(bodies)
        return (*own, *(helper.body for helper in self.reached(own)))

    def touched(self, bodies: Iterable[s.Node]) -> tuple[str, ...]:
        """The fields that the code reads or changes."""
        every = self.all(bodies)
        found = set[str]().union(*map(read, every), *map(updated, every))
        return tuple(name for name in self.fields if name in found)

    def changed(self, bodies: Iterable[s.Node]) -> tuple[str, ...]:
        """The fields that the code changes."""
        found = set[str]().union(*map(updated, self.all(bodies)))
        return tuple(name for name in self.fields if name in found)

    def has(self, bodies: Iterable[s.Node], *kinds: type[s.Node]) -> bool:
        """Whether one of these stands in the code, or in functions that it calls."""
        return any(not _facts(Same(body)).kinds.isdisjoint(kinds) for body in self.all(bodies))

    def sends(self, bodies: Iterable[s.Node]) -> tuple[ty.Send, ...]:
        """The messages of the code, in the order of the text."""
        every = (body for body in self.all(bodies) if ty.Send in _facts(Same(body)).kinds)
        found = {node.number: node for body in every for node in walk(body) if isinstance(node, ty.Send)}
        return tuple(found[number] for number in sorted(found))

    def portals(self, bodies: Iterable[s.Node]) -> tuple[str, ...]:
        """The parameters by which the code sends messages."""
        return tuple(dict.fromkeys(send.portal.name for send in self.sends(bodies)))

    def prints(self, bodies: Iterable[s.Node]) -> bool:
        """Whether the code prints."""
        return self.has(bodies, ty.Print)

    def streams(self, bodies: Iterable[s.Node]) -> bool:
        """Whether the code takes, looks at, or gives items."""
        return self.has(bodies, ty.Pop, ty.Peek, ty.Push)
