"""Keys sought ahead: the memory of a large map answers late, but answers many questions at once.

Where a handler of items looks up an entry whose key is made of its item alone,

    on x(x) { with e = $m[{a: x.a, b: x.b}] { ... } }

and the map is large, the keys of some rows are hashed first, one after the other, and what the searches will read is fetched.
The firings find the hashes made. While the map is small a firing hashes its key itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.contract import ARENA_SIZE, CONTEXT
from backends.native.idioms import counted, void
from backends.native.ir import Builder
from backends.native.layout import register, shares
from backends.native.lower.expressions import value
from backends.native.lower.frame import Frame
from backends.native.lower.values import TEMPORARY
from river.classes import define, field
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.lower.firing import BatchWriter

ROWS: Final = 32
"""How many rows are looked at: more than a processor has loads under way, few enough to stay near."""

LARGE: Final = 16_384
"""Entries from which on looking ahead pays: with keys that come equally often from 4,096, with skewed ones later."""

_NEVER: Final = (1 << 63) - 1
_PARAMETERS: Final = "ptr noalias %context, ptr noalias %columns, ptr noalias %hashes, i64 %row, i64 %stop"


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


@define(eq=False, repr=False)
class Ahead:
    """The code before each firing on a row of type `slot`: every `ROWS` rows it looks at as many, if the map is large."""

    firing: BatchWriter
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
        look, fetch, looked, known, near, hashed = map(
            b.fresh, ("look", "fetch", "looked", "known", "near", "hashed")
        )
        b.branch(b.op(f"icmp sge i64 {row}, {b.op(f'load i64, ptr {self._until}')}"), look, looked, rare=True)
        b.at(look)
        beyond = b.op(f"add nsw i64 {row}, {ROWS}")
        b.do(f"store i64 {beyond}, ptr {self._until}")
        map_ = self._map(f)
        large = b.op(f"icmp sge i64 {b.op(f'load i64, ptr {map_}')}, {LARGE}")
        # A small map is near: no row is far enough behind the last one that was looked from.
        b.do(f"store i64 {b.op(f'select i1 {large}, i64 {row}, i64 {_NEVER}')}, ptr {self._first}")
        b.branch(large, fetch, looked)
        b.at(fetch)
        stop = b.op(f"select i1 {b.op(f'icmp slt i64 {beyond}, %to')}, i64 {beyond}, i64 %to")
        void(
            b,
            self._apart(),
            "ptr %context",
            "ptr %columns",
            f"ptr {self._hashes}",
            f"i64 {row}",
            f"i64 {stop}",
        )
        b.go(looked)
        b.at(looked)
        behind = b.op(f"sub i64 {row}, {b.op(f'load i64, ptr {self._first}')}")
        b.branch(b.op(f"icmp ult i64 {behind}, {ROWS}"), known, near)
        b.at(known)
        before = b.op(f"load i64, ptr {_word(b, self._hashes, behind)}")
        b.go(hashed)
        b.at(near)
        now = self._hash(f, row)
        last = b.block
        b.at(hashed)
        f.ahead = self.sought, b.op(f"phi i64 [ {before}, %{known} ], [ {now}, %{last} ]")

    def _map(self, f: Frame) -> str:
        container = self.sought.container
        assert isinstance(container, typed.State)  # noqa: S101 - by `sought`
        return f.b.op(
            f"getelementptr inbounds i8, ptr {f.block('variables', container.index)}, i64 {ARENA_SIZE}"
        )

    def _hash(self, f: Frame, row: str) -> str:
        f.slots = {0: f.row(self.slot, self.firing.starts[0], row)}
        key = f.ptr(value(f, self.sought.key, lent=True))
        return f.b.call("i64", f.module.derived("index_hash", self.sought.key.type), [f"ptr {key}"])

    def _apart(self) -> str:
        """A function that looks at the rows from %row to %stop: in the loop of the firings its numbers would take registers."""
        module, b, kind = self.firing.module, Builder(), self.sought.container.type
        assert isinstance(kind, t.Map)  # noqa: S101 - by `sought`
        b.do(f"{TEMPORARY} = getelementptr inbounds i8, ptr %context, i64 {CONTEXT['temporary']}")
        f = Frame(module, self.firing.operator, b, "never")
        at = 0
        for each in self.firing.f.columns:
            if each == "null":
                f.columns.append(each)
                continue
            f.columns.append(
                b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %columns, i64 {at}')}")
            )
            at += 1
        map_, count = self._map(f), b.op("sub nsw i64 %stop, %row")

        def hashed(i: str) -> None:
            b.do(f"store i64 {self._hash(f, b.op(f'add nsw i64 %row, {i}'))}, ptr {_word(b, '%hashes', i)}")

        counted(b, count, hashed)
        for name in ("map_ahead", "map_nearer"):
            function = module.map_function(name, kind)

            def fetched(i: str, function: str = function) -> None:
                hash_ = b.op(f"load i64, ptr {_word(b, '%hashes', i)}")
                void(b, function, f"ptr {map_}", f"i64 {hash_}")

            counted(b, count, fetched)
        b.end("ret void")
        name = module.fresh("ahead")
        module.add(b.finish(name, f"define internal void @{name}({_PARAMETERS}) noinline nounwind"))
        return name


def _word(b: Builder, words: str, index: str) -> str:
    return b.op(f"getelementptr inbounds i64, ptr {words}, i64 {index}")
