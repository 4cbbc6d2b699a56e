"""Keys sought ahead: the memory of a large map answers late, but answers many questions at once.

Where a handler of items looks up an entry whose key is made of its item alone,

    on x(x) { with e = $m[{a: x.a, b: x.b}] { ... } }

and the map is large, the keys of some rows are hashed first, one after the other, and what the searches will read is fetched.
The firings find the hashes made, and what most likely are the entries, unless they may take some out. Where they take none out,
that is done from some hundred entries on: several searches are under way at once. While the map is small a firing hashes its key
itself.

The same goes for a map inside of an entry that such a handler looks up,

    on x(x) { with t = $m[{a: x.a}] { with e = t[{b: x.b}] { ... } } }

once there is much in the variable. Then only what will be read is fetched: the firings search by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.contract import ARENA_SIZE, CONTEXT
from backends.native.idioms import counted, if_, if_rare, value_of, void
from backends.native.ir import Builder
from backends.native.layout import register, shares
from backends.native.lower.expressions import value
from backends.native.lower.frame import Frame
from backends.native.lower.values import TEMPORARY
from river.classes import define, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.trees import effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.lower.firing import BatchWriter
    from backends.native.lower.values import Value

ROWS: Final = 128
"""How many rows are looked at: many more than a processor has loads under way, since for the first of them it has to wait."""

LARGE: Final = 16_384
"""Entries from which on it pays to fetch what searches read: if keys come equally often from 4,096, with skewed ones later."""

SOME: Final = 256
"""Entries from which on it pays to search for several keys one after the other, where what is found stays."""

FAR: Final = 2 << 20
"""Bytes of a variable from which on it pays for maps in its entries: what the caches near a processor hold."""

_USED, _INDEX = 24, 24  # where an arena has its size, and a map its index
_NEVER: Final = (1 << 63) - 1
_PARAMETERS: Final = (
    "ptr noalias %context, ptr noalias %columns, ptr noalias %hashes, ptr noalias %found, i64 %row, i64 %stop"
)


@frozen
class Looked:
    """What is known of a lookup before its firing: the hash of the key and, if no entry goes, what likely is its own, or 0.

    `asked`: what asks whether the key is there before.
    """

    node: typed.With
    asked: typed.Expr | None
    hash: str
    entry: str | None

    def tells(self, node: typed.Node | None) -> bool:
        """Whether that is known of what a node looks up."""
        return node is not None and (node is self.node or node is self.asked)


def sought(body: typed.Block) -> tuple[typed.With, typed.Expr | None] | None:
    """The lookup of a handler that can be looked ahead for, if it has one that is always reached.

    Or one that is reached if its key is there: then what asks that comes with it.
    """
    for item in body.items:
        match item:
            case typed.With():
                found, asked = item, None
            case typed.Branch(typed.Apply() as asked, typed.Block((typed.With() as found, *_))):
                if asked.args != (found.container, found.key) or not effect(asked).at_key:
                    continue
            case _:
                continue
        match found.container:
            case typed.State(t.Map(kind)) if kind not in (t.I32, t.I64, t.U64) and _of_item(found.key):
                return found, asked
            case _:
                pass
    return None


def inside(body: typed.Block) -> tuple[typed.With, typed.With] | None:
    """The lookups, one in the entry of the other, of a handler that can be looked ahead for, if it always reaches such."""
    for outer in body.items:
        match outer:
            case typed.With(container=typed.State(t.Map())) if _of_item(outer.key):
                pass
            case _:
                continue
        for inner in outer.body.items:
            match inner:
                case typed.With(container=typed.Local(t.Map() as kind, slot)) if slot == outer.slot:
                    if kind.key not in (t.I32, t.I64, t.U64) and _of_item(inner.key):
                        return outer, inner
                case _:
                    pass
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
class MapPrefetch:
    """The code before each firing: every `ROWS` rows it looks at as many, if the map is large.

    `item`: what is in slot 0 for a row; `asked`: see `Looked`. `stays`: no firing takes an entry out.
    """

    firing: BatchWriter
    item: Callable[[Frame, str], Value]
    sought: typed.With
    asked: typed.Expr | None
    stays: bool
    _hashes: str = field(init=False)
    _found: str = field(init=False)
    _first: str = field(init=False)
    _until: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        b = self.firing.f.b
        self._hashes, self._first, self._until = b.slot(f"[{ROWS} x i64]"), b.slot("i64"), b.slot("i64")
        self._found = b.slot(f"[{ROWS} x i64]") if self.stays else "null"
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
        large = b.op(f"icmp sge i64 {b.op(f'load i64, ptr {map_}')}, {SOME if self.stays else LARGE}")
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
            f"ptr {self._found}",
            f"i64 {row}",
            f"i64 {stop}",
        )
        b.go(looked)
        b.at(looked)
        behind = b.op(f"sub i64 {row}, {b.op(f'load i64, ptr {self._first}')}")
        b.branch(b.op(f"icmp ult i64 {behind}, {ROWS}"), known, near)
        b.at(known)
        before = b.op(f"load i64, ptr {_word(b, self._hashes, behind)}")
        likely = b.op(f"load i64, ptr {_word(b, self._found, behind)}") if self.stays else None
        b.go(hashed)
        b.at(near)
        now = self._hash(f, row)
        last = b.block
        b.at(hashed)
        hash_ = b.op(f"phi i64 [ {before}, %{known} ], [ {now}, %{last} ]")
        entry = None if likely is None else b.op(f"phi i64 [ {likely}, %{known} ], [ 0, %{last} ]")
        f.ahead = Looked(self.sought, self.asked, hash_, entry)

    def _map(self, f: Frame) -> str:
        return _map(f, self.sought)

    def _hash(self, f: Frame, row: str) -> str:
        f.slots = {0: self.item(f, row)}
        return _hash(f, self.sought)

    def _apart(self) -> str:
        """A function that looks at the rows from %row to %stop: in the loop of the firings its numbers would take registers."""
        module, b, kind = self.firing.module, Builder(), self.sought.container.type
        assert isinstance(kind, t.Map)  # noqa: S101 - by `sought`
        f = _frame(self.firing, b)
        map_, count = self._map(f), b.op("sub nsw i64 %stop, %row")

        def hashed(i: str) -> None:
            b.do(f"store i64 {self._hash(f, b.op(f'add nsw i64 %row, {i}'))}, ptr {_word(b, '%hashes', i)}")

        def asked(i: str, name: str) -> tuple[str, ...]:
            hash_ = b.op(f"load i64, ptr {_word(b, '%hashes', i)}")
            return module.map_function(name, kind), f"ptr {map_}", f"i64 {hash_}"

        def found(i: str) -> None:
            name, *args = asked(i, "map_likely")
            b.do(f"store i64 {b.call('i64', name, args)}, ptr {_word(b, '%found', i)}")

        def spelled(i: str) -> None:
            entry = b.op(f"load i64, ptr {_word(b, '%found', i)}")
            void(b, module.map_function("map_spelled", kind), f"i64 {entry}")

        def index() -> None:
            counted(b, count, lambda i: void(b, *asked(i, "map_ahead")))

        counted(b, count, hashed)
        if self.stays:
            large = b.op(f"icmp sge i64 {b.op(f'load i64, ptr {map_}')}, {LARGE}")
            if_(b, large, index)
            counted(b, count, found)
            if_(b, large, lambda: counted(b, count, spelled))
        else:
            index()
            counted(b, count, lambda i: void(b, *asked(i, "map_nearer")))
        return _finished(self.firing, b)


@define(eq=False, repr=False)
class NestedMapPrefetch:
    """The code before each firing: every `ROWS` rows it looks at as many, if the variable is large; `item`: see `MapPrefetch`."""

    firing: BatchWriter
    item: Callable[[Frame, str], Value]
    outer: typed.With
    inner: typed.With
    _until: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        b = self.firing.f.b
        self._until = b.slot("i64")
        b.do(f"store i64 %from, ptr {self._until}")

    def look(self, row: str) -> None:
        """Before the firing on a row."""
        f, b = self.firing.f, self.firing.f.b

        def fetch() -> None:
            beyond = b.op(f"add nsw i64 {row}, {ROWS}")
            b.do(f"store i64 {beyond}, ptr {self._until}")
            container = self.outer.container
            assert isinstance(container, typed.State)  # noqa: S101 - by `inside`
            used = b.op(
                f"getelementptr inbounds i8, ptr {f.block('variables', container.index)}, i64 {_USED}"
            )
            far = b.op(f"icmp sge i64 {b.op(f'load i64, ptr {used}')}, {FAR}")
            stop = b.op(f"select i1 {b.op(f'icmp slt i64 {beyond}, %to')}, i64 {beyond}, i64 %to")
            given = (
                "ptr %context", "ptr %columns", "ptr null", "ptr null", f"i64 {row}", f"i64 {stop}"
            )  # fmt: skip
            if_(b, far, lambda: void(b, self._apart(), *given))

        if_rare(b, b.op(f"icmp sge i64 {row}, {b.op(f'load i64, ptr {self._until}')}"), fetch)

    def _apart(self) -> str:
        """A function that fetches what the rows from %row to %stop will read."""
        module, b, kind = self.firing.module, Builder(), self.inner.container.type
        assert isinstance(kind, t.Map)  # noqa: S101 - by `inside`
        f = _frame(self.firing, b)
        maps, hashes = b.slot(f"[{ROWS} x ptr]"), b.slot(f"[{ROWS} x i64]")
        map_, count = _map(f, self.outer), b.op("sub nsw i64 %stop, %row")
        whole = self.outer.container.type
        assert isinstance(whole, t.Map)  # noqa: S101 - by `inside`

        def place(i: str) -> str:
            return b.op(f"getelementptr inbounds ptr, ptr {maps}, i64 {i}")

        def searched(i: str) -> None:
            f.slots = {0: self.item(f, b.op(f"add nsw i64 %row, {i}"))}
            b.do(f"store ptr null, ptr {place(i)}")
            entry = f.find(whole, map_, value(f, self.outer.key, lent=True))

            def indexed() -> None:
                found = value_of(b, whole, entry)
                index = b.op(f"getelementptr inbounds i8, ptr {found}, i64 {_INDEX}")

                def asked() -> None:
                    hash_ = _hash(f, self.inner)
                    b.do(f"store ptr {found}, ptr {place(i)}")
                    b.do(f"store i64 {hash_}, ptr {_word(b, hashes, i)}")
                    void(b, module.map_function("map_ahead", kind), f"ptr {found}", f"i64 {hash_}")

                if_(b, b.op(f"icmp ne ptr {b.op(f'load ptr, ptr {index}')}, null"), asked)

            if_(b, b.op(f"icmp ne ptr {entry}, null"), indexed)

        def named(i: str) -> None:
            found = b.op(f"load ptr, ptr {place(i)}")

            def asked() -> None:
                hash_ = b.op(f"load i64, ptr {_word(b, hashes, i)}")
                void(b, module.map_function("map_nearer", kind), f"ptr {found}", f"i64 {hash_}")

            if_(b, b.op(f"icmp ne ptr {found}, null"), asked)

        counted(b, count, searched)
        counted(b, count, named)
        return _finished(self.firing, b)


def _frame(firing: BatchWriter, b: Builder) -> Frame:
    """What a function apart knows of the columns of a firing."""
    b.do(f"{TEMPORARY} = getelementptr inbounds i8, ptr %context, i64 {CONTEXT['temporary']}")
    f = Frame(firing.module, firing.operator, b, "never")
    at = 0
    for each in firing.f.columns:
        if each == "null":
            f.columns.append(each)
            continue
        f.columns.append(b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %columns, i64 {at}')}"))
        at += 1
    return f


def _finished(firing: BatchWriter, b: Builder) -> str:
    """The name of the function that is complete with this."""
    b.end("ret void")
    name = firing.module.fresh("ahead")
    firing.module.add(b.finish(name, f"define internal void @{name}({_PARAMETERS}) noinline nounwind"))
    return name


def _map(f: Frame, sought: typed.With) -> str:
    container = sought.container
    assert isinstance(container, typed.State)  # noqa: S101 - by `sought` and `inside`
    return f.b.op(f"getelementptr inbounds i8, ptr {f.block('variables', container.index)}, i64 {ARENA_SIZE}")


def _hash(f: Frame, sought: typed.With) -> str:
    key = f.ptr(value(f, sought.key, lent=True))
    return f.b.call("i64", f.module.derived("index_hash", sought.key.type), [f"ptr {key}"])


def _word(b: Builder, words: str, index: str) -> str:
    return b.op(f"getelementptr inbounds i64, ptr {words}, i64 {index}")
