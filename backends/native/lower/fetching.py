"""Entries of maps are fetched from memory some rows before a loop needs them.

    for r in rows { let k = r.key; with e = $m[k] else {...} {...} }

The keys of such a loop are known beforehand, if they are columns of the rows. Before each `STRIP` rows their keys are hashed,
and the words of the index are asked for; then the index is searched, and the entries that it names are asked for. Hashes and
entries are kept for the rows, where the keys are compared. Items of list variables whose numbers are in the rows are fetched
likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backends.native.idioms import counted, if_, item, list_parts, load, void
from backends.native.layout import entry_lines, memory, register, shares
from backends.native.lower.hints import replaced
from river.classes import define, evolve, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Borrows, Change
from river.lang.trees import children, effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backends.native.lower.frame import Frame
    from backends.native.lower.values import Value

STRIP: Final = 32
"""Rows that are looked at together: more than a processor has loads under way."""

_MOST: Final = 2  # searches of a loop that are looked after
_INDEX, _DIRECT, _REACH = 3, 10, 11  # words of a map (`map.rt`)


@frozen(eq=False)
class Search:
    """A search in a variable: the node that does it, the map or list, the key, and the names that the key is made of.

    `stays`: nothing in the loop empties the map.
    """

    node: typed.Node
    map: typed.State
    key: typed.Expr
    lets: tuple[typed.Let, ...]
    stays: bool = True


@frozen
class Sought:
    """What is known of a key when its row comes: its hash, and what likely is its entry, if one was looked for."""

    hash: str
    entry: str | None


def searches(body: typed.Block, slot: int) -> tuple[Search, ...]:
    """The searches in each round of a loop over the rows in `slot` whose keys nothing but the row decides."""
    found: list[Search] = []
    _gather(body, (), frozenset({slot}), found)
    near = [each for each in found if register(each.key.type) is not None or shares(each.key.type)]
    return tuple(evolve(each, stays=not replaced(body, each.map.index)) for each in near[:_MOST])


def _gather(node: Any, lets: tuple[typed.Let, ...], known: frozenset[int], found: list[Search]) -> None:
    """Adds the searches of a tree; what stands in inner loops is not looked at."""
    match node:
        case typed.Block(items):
            for item in items:
                if isinstance(item, typed.Let) and _plain(item.value, known):
                    lets, known = (*lets, item), known | {item.slot}
                else:
                    _gather(item, lets, known, found)
        case typed.With(container=typed.State(t.Map()) as map_, key=key) if _plain(key, known):
            found.append(Search(node, map_, key, lets))
        case typed.Apply(args=(typed.State(t.Map()) as map_, key, *_)) if _looks_up(node) and _plain(
            key, known
        ):
            assert not isinstance(key, typed.Lambda)  # noqa: S101 - by the rule
            found.append(Search(node, map_, key, lets))
        case typed.Branch(cond, then, _):
            _gather(cond, lets, known, found)
            _gather(then, lets, known, found)
        case typed.Bind(value) | typed.Let(value=value):
            _gather(value, lets, known, found)
        case typed.For(range=range_):
            _gather(range_, lets, known, found)
        case typed.Do() | typed.Assign():
            for at in _items(node, known):
                if isinstance(at.value, typed.State):
                    found.append(Search(at, at.value, at.index, lets))
                break
        case _:
            pass


def _looks_up(apply: typed.Apply) -> bool:
    """Whether an operation gives the value of a key."""
    stated = effect(apply)
    return stated.at_key and stated.change is Change.NOTHING and stated.borrows is Borrows.PART


def _items(node: typed.Node, known: frozenset[int]) -> Iterator[typed.At]:
    """The items of list variables in a tree whose numbers are known."""
    match node:
        case typed.At(_, typed.State(t.List()), index) if index.type == t.I64 and _plain(index, known):
            yield node
        case typed.For() | typed.While():
            pass
        case _:
            for each in children(node):
                yield from _items(each, known)


def _plain(expr: Any, known: frozenset[int]) -> bool:
    """Whether an expression is made of parts of the row: then it may be computed at any time."""
    match expr:
        case typed.Local(slot=slot):
            return slot in known
        case typed.Get(_, value):
            return _plain(value, known)
        case typed.MakeRecord(_, values):
            return all(_plain(each, known) for each in values)
        case _:
            return False


@define(eq=False, repr=False)
class Fetching:
    """The searches of one loop. `evaluate`: the value of an expression."""

    f: Frame
    slot: int
    searches: tuple[Search, ...]
    reach: Callable[[typed.State], str]
    evaluate: Callable[[typed.Expr], Value]
    hashes: list[str] = field(init=False)
    entries: list[str] = field(init=False)
    _start: str = field(default="", init=False)  # the first of the rows that were looked at

    def __attrs_post_init__(self) -> None:
        self.hashes = [self.f.b.slot(f"[{STRIP} x i64]") for _ in self.searches]
        self.entries = [self.f.b.slot(f"[{STRIP} x i64]") for _ in self.searches]

    def look(self, item_at: Callable[[str], Value], start: str, end: str) -> None:
        """Before some rows."""
        self._start = start
        counted(self.f.b, end, lambda row: self._far(item_at, row), start)
        counted(self.f.b, end, lambda row: self._near(item_at, row), start)

    def step(self, row: str) -> None:
        """In each round, before the row is bound."""
        b = self.f.b
        for search, hashes, entries in zip(self.searches, self.hashes, self.entries, strict=True):
            if not _small(search):
                h, entry = (b.op(f"load i64, ptr {self._place(each, row)}") for each in (hashes, entries))
                self.f.sought[id(search.node)] = Sought(h, entry if search.stays else None)

    def end(self) -> None:
        """After the loop's body has been written."""
        for search in self.searches:
            self.f.sought.pop(id(search.node), None)

    def _key(self, search: Search, one: Value) -> str:
        """The address of the key of a row."""
        f = self.f
        before = dict(f.slots)
        f.slots[self.slot] = one
        for let in search.lets:
            f.slots[let.slot] = self.evaluate(let.value)
        at = f.ptr(self.evaluate(search.key))
        f.slots = before
        return at

    def _far(self, item_at: Callable[[str], Value], row: str) -> None:
        b, one = self.f.b, item_at(row)
        for search, hashes in zip(self.searches, self.hashes, strict=True):
            if isinstance(search.map.type, t.List):
                continue
            at = self._key(search, one)
            if _small(search):
                self._direct(search, at, self._fetch)
                continue
            h = b.call("i64", self.f.module.derived("index_hash", search.key.type), [f"ptr {at}"])
            b.do(f"store i64 {h}, ptr {self._place(hashes, row)}")
            self._indexed(search, "map_ahead", h)

    def _near(self, item_at: Callable[[str], Value], row: str) -> None:
        b = self.f.b
        for search, hashes, entries in zip(self.searches, self.hashes, self.entries, strict=True):
            if not _small(search):
                h, to = b.op(f"load i64, ptr {self._place(hashes, row)}"), self._place(entries, row)
                b.do(f"store i64 0, ptr {to}")
                self._indexed(search, "map_likely", h, to)
                continue
            key = self._key(search, item_at(row))
            if isinstance(search.map.type, t.List):
                self._item(search.map, b.op(f"load i64, ptr {key}"))
            else:
                self._direct(search, key, lambda place, search=search: self._entry(search, place))

    def _item(self, items: typed.State, number: str) -> None:
        """Fetches an item of a list, if it has so many."""
        b, list_ = self.f.b, self.reach(items)
        first, count = list_parts(b, list_)
        inner = t.parts(items.type)[0]
        if_(b, b.op(f"icmp ult i64 {number}, {count}"), lambda: self._fetch(item(b, inner, first, number)))

    def _entry(self, search: Search, place: str) -> None:
        """Fetches an entry of a map."""
        b = self.f.b
        assert isinstance(search.map.type, t.Map)  # noqa: S101 - others have no direct part
        entry = b.op(f"load ptr, ptr {place}")
        for at in entry_lines(search.map.type):
            self._fetch(b.op(f"getelementptr i8, ptr {entry}, i64 {at}"))

    def _fetch(self, at: str) -> None:
        self.f.b.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    def _place(self, hashes: str, row: str) -> str:
        b = self.f.b
        return b.op(
            f"getelementptr inbounds i64, ptr {hashes}, i64 {b.op(f'sub nsw i64 {row}, {self._start}')}"
        )

    def _word(self, map_: str, word: int, type_: str) -> str:
        b = self.f.b
        return b.op(f"load {type_}, ptr {b.op(f'getelementptr inbounds i64, ptr {map_}, i64 {word}')}")

    def _direct(self, search: Search, key: str, then: Callable[[str], None]) -> None:
        """Does something with the place of a key in the direct part of a map, if it has one there."""
        b, map_ = self.f.b, self.reach(search.map)
        number = load(b, search.key.type, key)
        if memory(search.key.type) == "i32":
            number = b.op(f"sext i32 {number} to i64")

        def inside() -> None:
            places = self._word(map_, _DIRECT, "ptr")
            then(b.op(f"getelementptr inbounds i64, ptr {places}, i64 {number}"))

        if_(b, b.op(f"icmp ult i64 {number}, {self._word(map_, _REACH, 'i64')}"), inside)

    def _indexed(self, search: Search, function: str, h: str, to: str | None = None) -> None:
        """Calls a function for a hash, if the map has an index; `to`: where its result goes."""
        b, map_ = self.f.b, self.reach(search.map)
        assert isinstance(search.map.type, t.Map)  # noqa: S101 - by `searches`
        name = self.f.module.map_function(function, search.map.type)
        indexed = b.op(f"icmp ne ptr {self._word(map_, _INDEX, 'ptr')}, null")
        args = [f"ptr {map_}", f"i64 {h}"]
        if to is None:
            if_(b, indexed, lambda: void(b, name, *args))
        else:
            if_(b, indexed, lambda: b.do(f"store i64 {b.call('i64', name, args)}, ptr {to}"))


def _small(search: Search) -> bool:
    """Whether the map has a direct part; so has a list."""
    return search.key.type in (t.I32, t.I64, t.U64)


__all__ = ["Fetching", "Search", "Sought", "searches"]
