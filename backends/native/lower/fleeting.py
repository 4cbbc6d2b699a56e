"""Lists that are only looked at: nobody keeps them, so they need no memory but that of the function that makes them.

    var ends = re_find(pattern, text);  ... if len(ends) > 0 { ... text[ends[0]:ends[1]] ... }

The place of such a list is used again when the operation that made it is evaluated again. So its items may be read one by one,
and it may be asked how many there are; who keeps an item copies it.
"""

from __future__ import annotations

from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS, Borrows, Change, Measure
from river.lang.trees import children, effect, root


def fleeting(body: typed.Block | typed.Expr) -> frozenset[int]:
    """The operations of a body, by `id`, whose lists are only looked at."""
    uses = _Uses()
    uses.walk(body)
    named = (each for slot, made in uses.made.items() if slot not in uses.kept for each in made)
    return frozenset((*uses.seen, *named))


class _Uses:
    """What becomes of new lists.

    `seen`: they are looked at where they are made; `made`: they are given to locals, by slot; `kept`: locals that are used in
    other ways than being looked at.
    """

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.made: dict[int, list[int]] = {}
        self.kept: set[int] = set()

    def walk(self, node: typed.Node) -> None:
        match node:
            case typed.Local(slot=slot):
                self.kept.add(slot)
            case typed.Let(slot=slot, value=value) | typed.Var(slot=slot, value=value) if _makes(value):
                self.given(slot, value)
            case typed.Assign(place=typed.Local(slot=slot), value=value):
                if _makes(value):
                    self.given(slot, value)
                else:
                    self.walk(value)
            case typed.Assign(place=place) | typed.With(container=place):
                self.written(place)
                self.inside(node)
            case typed.Apply(operation=name, args=(place, *_)) if OPERATIONS[name].mutates is not None:
                self.written(place)
                self.inside(node)
            case typed.Call(args=args):
                for arg in args:
                    self.written(arg)
                self.inside(node)
            case typed.Apply(args=(looked, *rest)) if _looks(node):
                self.looked(looked)
                for each in rest:
                    self.walk(each)
            case typed.At(value=looked, index=index):
                self.looked(looked)
                self.walk(index)
            case _:
                self.inside(node)

    def inside(self, node: typed.Node) -> None:
        for each in children(node):
            self.walk(each)

    def given(self, slot: int, value: typed.Expr) -> None:
        self.made.setdefault(slot, []).append(id(value))
        self.inside(value)

    def written(self, place: typed.Expr | typed.Lambda) -> None:
        match root(place):
            case typed.Local(slot=slot):
                self.kept.add(slot)
            case _:
                pass

    def looked(self, value: typed.Expr | typed.Lambda) -> None:
        match value:
            case typed.Local():
                pass
            case _ if _makes(value):
                self.seen.add(id(value))
                self.inside(value)
            case _:
                self.walk(value)


def _makes(value: typed.Expr | typed.Lambda) -> bool:
    """Whether an operation makes a list of its own."""
    match value:
        case typed.Apply(t.List()):
            return effect(value).borrows is Borrows.NOTHING
        case _:
            return False


def _looks(apply: typed.Apply) -> bool:
    """Whether an operation asks a list how many items it has, or gives one of them."""
    stated = effect(apply)
    gives = stated.borrows is Borrows.PART and stated.change is Change.NOTHING
    return isinstance(apply.args[0].type, t.List) and (gives or stated.measure is Measure.COUNT)
