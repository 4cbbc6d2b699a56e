"""Keys sought ahead: the memory of a large map answers late, but answers many questions at once.

Where a handler of items looks up an entry whose key is made of its item alone,

    on x(x) { with e = $m[{a: x.a, b: x.b}] { ... } }

the keys of some rows are hashed first, one after the other; what the searches will read is fetched if the map is large. The
firings find the hashes made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import define, field

from backends.native.contract import ARENA_SIZE
from backends.native.layout import register
from backends.native.lower.expressions import value
from backends.native.module import counted, shares, void
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.lower.firing import Firing

ROWS: Final = 32
"""How many rows are looked at: more than a processor has loads under way, few enough to stay near."""

LARGE: Final = 512
"""Entries of a map that is not expected to be near."""


def sought(body: typed.Block) -> typed.With | None:
    """The lookup of a handler that can be looked ahead for, if it has one that is always reached."""
    for item in body.items:
        if isinstance(item, typed.With) and isinstance(item.container, typed.State):
            kind = item.container.type
            if isinstance(kind, t.Map) and kind.key not in (t.I32, t.I64, t.U64) and _of_item(item.key):
                return item
    return None


def _of_item(key: typed.Expr) -> bool:
    """Whether a key is parts of the item, put together."""
    plain = register(key.type) is not None or shares(key.type)
    match key:
        case typed.Local(slot=slot):
            return plain and slot == 0
        case typed.Get(value=inner):
            return plain and _is_part(inner)
        case typed.MakeRecord(values=values):
            return all(map(_of_item, values))
        case _:
            return False


def _is_part(expr: typed.Expr) -> bool:
    match expr:
        case typed.Local(slot=slot):
            return slot == 0
        case typed.Get(value=inner):
            return _is_part(inner)
        case _:
            return False


@define
class Ahead:
    """The code before each firing on a row of type `slot`: every `ROWS` rows it looks at as many."""

    firing: Firing
    slot: t.Type
    sought: typed.With
    _hashes: str = field(init=False)
    _first: str = field(init=False)
    _until: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        b = self.firing.f.b
        self._hashes, self._first, self._until = b.slot(f"[{ROWS} x i64]"), b.slot("i64"), b.slot("i64")
        b.do(f"store i64 %from, ptr {self._until}")

    def look(self, row: str) -> None:
        """Before the firing on a row; the frame then knows the hash of its key."""
        f, b = self.firing.f, self.firing.f.b
        container, kind = self.sought.container, self.sought.container.type
        assert isinstance(container, typed.State)  # noqa: S101 - by `sought`
        assert isinstance(kind, t.Map)  # noqa: S101 - likewise
        look, fetch, looked = b.fresh("look"), b.fresh("fetch"), b.fresh("looked")
        b.branch(b.op(f"icmp sge i64 {row}, {b.op(f'load i64, ptr {self._until}')}"), look, looked, rare=True)
        b.at(look)
        beyond = b.op(f"add nsw i64 {row}, {ROWS}")
        stop = b.op(f"select i1 {b.op(f'icmp slt i64 {beyond}, %to')}, i64 {beyond}, i64 %to")
        b.do(f"store i64 {stop}, ptr {self._until}")
        b.do(f"store i64 {row}, ptr {self._first}")
        map_ = b.op(
            f"getelementptr inbounds i8, ptr {f.block('variables', container.index)}, i64 {ARENA_SIZE}"
        )
        count = b.op(f"sub nsw i64 {stop}, {row}")

        def hashed(i: str) -> None:
            f.slots = {0: f.row(self.slot, self.firing.starts[0], b.op(f"add nsw i64 {row}, {i}"))}
            key = f.ptr(value(f, self.sought.key, lent=True))
            made = b.call("i64", f.module.derived("index_hash", kind.key), [f"ptr {key}"])
            b.do(f"store i64 {made}, ptr {self._word(i)}")

        counted(b, count, hashed)
        entries = b.op(f"load i64, ptr {map_}")
        b.branch(b.op(f"icmp sge i64 {entries}, {LARGE}"), fetch, looked)
        b.at(fetch)
        for name in ("map_ahead", "map_nearer"):
            function = f.module.map_function(name, kind)
            counted(
                b,
                count,
                lambda i, function=function: void(b, function, f"ptr {map_}", f"i64 {self._hash(i)}"),
            )
        b.go(looked)
        b.at(looked)
        first = b.op(f"load i64, ptr {self._first}")
        f.ahead = self.sought, self._hash(b.op(f"sub nsw i64 {row}, {first}"))

    def _hash(self, index: str) -> str:
        return self.firing.f.b.op(f"load i64, ptr {self._word(index)}")

    def _word(self, index: str) -> str:
        return self.firing.f.b.op(f"getelementptr inbounds i64, ptr {self._hashes}, i64 {index}")
