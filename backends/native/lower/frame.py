"""A function under construction: where it leaves, how values are read, put together, owned and kept in it.

The evaluator's rules of owning become three questions: may a later write be seen through a value (`snapshot`), is it
part of a place (`owned` copies), does it stay beyond the firing (`keep` copies into the arena of a variable).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from backends.native.contract import CODES, CONTEXT
from backends.native.deadline import in_loop
from backends.native.derived.copying import replaceable
from backends.native.idioms import (
    clear,
    counted,
    item,
    key_of,
    load,
    move,
    part,
    positions,
    store,
    value_of,
    void,
)
from backends.native.layout import (
    TEXT,
    WITHIN,
    Unsupported,
    is_plain,
    is_text,
    memory,
    register,
    shares,
    size_align,
    starts,
    text_room,
)
from backends.native.lower.values import TEMPORARY, Memory, Parts, Row, Scalar, Sent, Value
from river.classes import define, field, frozen
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.ir import Builder
    from backends.native.lower.ahead import Looked
    from backends.native.lower.fetching import Sought
    from backends.native.lower.hints import Noted
    from backends.native.module import Module
    from river.lang import typed


@frozen
class Loop:
    """Where `break` and `continue` go, and how many clean-ups were pending at its start."""

    leave: str
    again: str
    depth: int


@define(eq=False, repr=False)
class Frame:
    """A function under construction.

    `exit`: where a trap goes. `columns`: registers of the columns' addresses. `cleanups`: of the entries bound by
    `with`, innermost last. By `id`: `fleeting`, operations whose lists are only looked at; `moved`, uses of locals that are the
    last ones. By slot (see `hints`): `noted`, of lists of keys what is noted of them; `at_hand`, of keys the entry that is bound;
    `hints`, of keys what is noted of the list that they are from, and likely the entry; `targets`, of lists that are sent as they
    are made (see `sending`) the output and the field.
    """

    module: Module
    operator: typed.Operator
    b: Builder
    exit: str
    slots: dict[int, Value] = field(factory=dict[int, Value])
    flags: dict[int, str] = field(factory=dict[int, str])  # of entries: whether dropped
    columns: list[str] = field(factory=list[str])
    loops: dict[int, Loop] = field(factory=dict[int, Loop])
    cleanups: list[Callable[[], None]] = field(factory=list[Callable[[], None]])
    finish: Callable[[Value | None], None] | None = None
    result_owned: frozenset[int] = frozenset()
    constants: tuple[Value, ...] = ()
    functions: tuple[str, ...] = ()
    depth: str = "0"
    recursive: bool = False  # whether functions of the operator may call themselves
    stands: int = -1  # the loop or function that is written (see `deadline`)
    unpolled: int = 1  # how often the innermost loop may go round without asking whether to stop
    blocks: dict[tuple[str, int], str] = field(factory=dict[tuple[str, int], str])
    fleeting: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()
    noted: dict[int, Noted] = field(factory=dict[int, "Noted"])
    at_hand: dict[int, str] = field(factory=dict[int, str])
    hints: dict[int, tuple[Noted, str]] = field(factory=dict[int, tuple["Noted", str]])
    targets: dict[int, tuple[int, int]] = field(factory=dict[int, tuple[int, int]])
    sought: dict[int, Sought] = field(
        factory=dict[int, "Sought"]
    )  # what is known of keys, by the node that seeks them (see `fetching`)
    compared: dict[tuple[Value, Value, object], str] = field(
        factory=dict[tuple["Value", "Value", object], str]
    )  # lists of the input, by what they were compared with, and how, to where it says whether anything was taken away
    ahead: Looked | None = None  # what is known of an entry that is sought ahead

    # ---------------------------------------------------------------------------------------------- traps

    def context(self, name: str) -> str:
        """The address of a part of the context."""
        return self.b.op(f"getelementptr inbounds i8, ptr %context, i64 {CONTEXT[name]}")

    def block(self, table: str, index: int) -> str:
        """The address of a variable, or of an output (2n) or its marks (2n + 1): read once, at the start of the function."""
        at = (table, index)
        if at not in self.blocks:
            b = self.b
            names = ["%" + b.fresh("h") for _ in range(4)]
            b.slots += [
                f"  {names[0]} = getelementptr inbounds i8, ptr %context, i64 {CONTEXT[table]}",
                f"  {names[1]} = load ptr, ptr {names[0]}",
                f"  {names[2]} = getelementptr inbounds ptr, ptr {names[1]}, i64 {index}",
                f"  {names[3]} = load ptr, ptr {names[2]}",
            ]
            self.blocks[at] = names[3]
        return self.blocks[at]

    def trap(self, code: str, site: int, operands: tuple[str, ...] = ()) -> None:
        """Records a trap and leaves."""
        self.b.do(f"store i64 {CODES.index(code)}, ptr {self.context('code')}")
        self.b.do(f"store i64 {site}, ptr {self.context('site')}")
        self.b.do(f"store i64 {min(len(operands), 2)}, ptr {self.context('given')}")
        for name, operand in zip("ab", operands, strict=False):
            self.b.do(f"store i64 {operand}, ptr {self.context(name)}")
        self.b.go(self.exit)

    def trap_if(self, condition: str, code: str, site: int | None, operands: tuple[str, ...] = ()) -> None:
        """Traps when a condition holds."""
        if site is None:
            raise Unsupported(f"a trap {code} without a site")
        if code in ("index-range", "overflow") and site in self.module.proven(self.operator):
            return
        bad, good = self.b.fresh("bad"), self.b.fresh("good")
        self.b.branch(condition, bad, good, rare=True)
        self.b.at(bad)
        self.trap(code, site, operands)
        self.b.at(good)

    def poll(self) -> None:
        """Leaves if the operator is to stop, and tells where."""
        stop = self.b.op(f"load volatile i64, ptr {self.context('stop')}")
        stops, goes = self.b.fresh("stops"), self.b.fresh("goes")
        self.b.branch(self.b.op(f"icmp ne i64 {stop}, 0"), stops, goes, rare=True)
        self.b.at(stops)
        self.b.do(f"store i64 {self.stands}, ptr {self.context('site')}")
        self.b.go(self.exit)
        self.b.at(goes)

    @contextmanager
    def going_round(self, item: typed.For | typed.While) -> Generator[None, None, None]:
        """What is written now is in a loop."""
        before = self.stands
        if item.span is not None:  # else no text was written for it
            self.stands = in_loop(item.loop)
        yield
        self.stands = before

    # --------------------------------------------------------------------------------------------- reading

    def load(self, type_: t.Type, ptr: str, arena: str = TEMPORARY, *, lent: bool = False) -> Value:
        """The value at an address."""
        if register(type_) is not None:
            return Scalar(type_, load(self.b, type_, ptr))
        return Memory(type_, ptr, arena, lent)

    def is_lent(self, value: Value) -> bool:
        """Whether all texts of a value are the input's."""
        match value:
            case Memory(lent=lent):
                return lent or is_plain(value.type)
            case Parts(_, values):
                return all(map(self.is_lent, values))
            case Row():
                return is_plain(value.type) or self.module.lends
            case Scalar():
                return True
            case Sent():
                return False

    def row(self, type_: t.Type, column: int, row: str) -> Value:
        """The value in a row of columns; scalars are read at once, views and the rest where they are."""
        b = self.b
        if type_ == t.UNIT:
            return Scalar(type_, "0")
        if is_text(type_):
            place = b.op(f"getelementptr inbounds {TEXT}, ptr {self.columns[column]}, i64 {row}")
            return Memory(type_, place, lent=self.module.lends)
        if register(type_) is not None:
            return Scalar(type_, load(b, type_, item(b, type_, self.columns[column], row)))
        if isinstance(type_, t.Array):
            return Row(type_, column, b.op(f"mul nsw i64 {row}, {type_.size}"))
        return Row(type_, column, row)

    def reg(self, value: Value) -> str:
        """The register of a scalar."""
        assert isinstance(value, Scalar)  # noqa: S101 - by its type
        return value.reg

    def ptr(self, value: Value) -> str:
        """The address of a value, which is put there if it has none."""
        match value:
            case Memory(_, ptr, _):
                return ptr
            case Scalar() | Parts() | Row() | Sent():
                slot = self.b.slot(memory(value.type))
                self.put(value, slot)
                return slot

    def put(self, value: Value, to: str) -> None:
        """Writes a value to an address, sharing what it refers to."""
        b = self.b
        match value:
            case Scalar(type_, reg):
                store(b, type_, reg, to)
            case Memory(type_, ptr, _):
                move(b, type_, to, ptr)
            case Parts(type_, values):
                if not values:
                    b.do(f"store i8 0, ptr {to}")
                for i, each in enumerate(values):
                    self.put(each, part(b, type_, to, i))
            case Row():
                self.gather(value, to, TEMPORARY)
            case Sent():
                raise AssertionError(value)
            case _:
                assert_never(value)

    def field(self, value: Value, index: int) -> Value:
        """A field of a record or tuple."""
        type_ = t.part(value.type, index)
        match value:
            case Memory(record, ptr, arena, lent):
                return self.load(type_, part(self.b, record, ptr, index), arena, lent=lent)
            case Parts(_, values):
                return values[index]
            case Row(record, column, row):
                return self.row(type_, column + starts(record)[index][0], row)
            case Scalar() | Sent():
                raise AssertionError(value)

    def present(self, value: Value) -> str:
        """Whether an optional has a value, as i1."""
        match value:
            case Row(_, column, row):
                place = self.b.op(f"getelementptr inbounds i8, ptr {self.columns[column]}, i64 {row}")
            case _:
                place = part(self.b, value.type, self.ptr(value), 1)
        return self.b.op(f"icmp ne i8 {self.b.op(f'load i8, ptr {place}')}, 0")

    def inner(self, value: Value) -> Value:
        """The value of an optional that has one."""
        assert isinstance(value.type, t.Optional)  # noqa: S101 - by its type
        match value:
            case Row(_, column, row):
                return self.row(value.type.inner, column + 1, row)
            case Memory(_, ptr, arena):
                return self.load(value.type.inner, part(self.b, value.type, ptr, 0), arena)
            case _:
                return self.load(value.type.inner, part(self.b, value.type, self.ptr(value), 0))

    def found(self, type_: t.Optional, there: str, value: Callable[[], str]) -> Value:
        """The optional of a scalar: what `value` gives in a register where it is `there`."""
        return self.choice(
            type_,
            there,
            lambda: self.optional(type_, Scalar(type_.inner, value())),
            lambda: self.optional(type_, None),
        )

    def optional(self, type_: t.Optional, value: Value | None) -> Value:
        """An optional from its value, or none."""
        slot = self.b.slot(memory(type_))
        if value is None:
            clear(self.b, type_, slot)
        else:
            self.put(value, part(self.b, type_, slot, 0))
            self.b.do(f"store i8 1, ptr {part(self.b, type_, slot, 1)}")
        return Memory(type_, slot)

    def choice(
        self, type_: t.Type, condition: str, then: Callable[[], Value], other: Callable[[], Value]
    ) -> Value:
        """One of two values of a type."""
        b = self.b
        yes, no, after = b.fresh("yes"), b.fresh("no"), b.fresh("join")
        b.branch(condition, yes, no)
        found: list[tuple[str, str]] = []
        for label, make in ((yes, then), (no, other)):
            b.at(label)
            value = make()
            text = value.reg if isinstance(value, Scalar) else self.ptr(value)
            if b.ended:
                b.at(b.fresh("dead"))
            found.append((text, b.block))
            b.go(after)
        b.at(after)
        kind = register(type_) or "ptr"
        joined = b.op(f"phi {kind} " + ", ".join(f"[ {text}, %{label} ]" for text, label in found))
        return Scalar(type_, joined) if kind != "ptr" else Memory(type_, joined)

    # ------------------------------------------------------------------------------------------ containers

    def extent(self, value: Value) -> tuple[Callable[[str], Value], str]:
        """What gives the item at a position of a list or array, and how many there are."""
        b, kind = self.b, value.type
        match kind, value:
            case ((t.List(inner) | t.Deque(inner)), Row(_, column, row)):
                offsets = self.columns[column]
                start = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {offsets}, i64 {row}')}")
                following = b.op(
                    f"getelementptr inbounds i64, ptr {offsets}, i64 {b.op(f'add nsw i64 {row}, 1')}"
                )
                count = b.op(f"sub nsw i64 {b.op(f'load i64, ptr {following}')}, {start}")
                return lambda i: self.row(inner, column + 1, b.op(f"add nsw i64 {start}, {i}")), count
            case t.Array(inner, size), Row(_, column, row):
                return lambda i: self.row(inner, column, b.op(f"add nsw i64 {row}, {i}")), str(size)
            case ((t.List(inner) | t.Array(inner) | t.Deque(inner)), _):
                arena = value.arena if isinstance(value, Memory) else TEMPORARY
                place, count = positions(b, kind, self.ptr(value))
                return lambda i: self.load(inner, place(i), arena), count
            case _:
                raise Unsupported(f"items of {kind}")

    def empty(self, type_: t.Type) -> str:
        """The address of a fresh zero."""
        slot = self.b.slot(memory(type_))
        clear(self.b, type_, slot)
        return slot

    def pushed(self, list_: str, inner: t.Type, arena: str = TEMPORARY) -> str:
        """The place of a new last item of a list."""
        return self.b.call(
            "ptr", "list_push", [f"ptr {arena}", f"ptr {list_}", f"i64 {size_align(inner)[0]}"]
        )

    # --------------------------------------------------------------------------------------------- owning

    def owned(self, value: Value) -> Value:
        """A copy that no place shares, for the time of the firing."""
        if isinstance(value, Scalar):
            return value
        slot = self.b.slot(memory(value.type))
        if not shares(value.type):
            self.keep(value, slot, TEMPORARY)
            return Memory(value.type, slot)
        self.put(value, slot)
        return Memory(value.type, slot, lent=self.is_lent(value))

    def snapshot(self, value: Value) -> Value:
        """The value as it is now, if it is flat; containers that are borrowed are not written meanwhile."""
        return self.owned(value) if isinstance(value, Memory) and t.is_flat(value.type) else value

    def keep(self, value: Value, to: str, arena: str) -> None:
        """Writes a copy that lives in an arena to an address whose old content is dropped already or garbage."""
        b = self.b
        if isinstance(value, Scalar) or is_plain(value.type):
            self.put(value, to)
        elif isinstance(value, Parts):
            for i, each in enumerate(value.values):
                self.keep(each, part(b, value.type, to, i), arena)
        elif isinstance(value, Row):
            self.gather(value, to, arena)
        elif isinstance(value, Sent):
            raise AssertionError(value)
        elif is_text(value.type):
            void(b, "text_keep", f"ptr {arena}", f"ptr {to}", f"ptr {value.ptr}")
        else:
            void(b, self.module.derived("copy", value.type), f"ptr {arena}", f"ptr {to}", f"ptr {value.ptr}")

    def assign(self, value: Value, to: str, arena: str, *, fresh: bool) -> None:
        """Writes a value to a place, dropping what was there. `fresh`: nothing else has part in the value."""
        type_ = value.type
        if isinstance(value, Scalar) or is_plain(type_) or (arena == TEMPORARY and (fresh or shares(type_))):
            if isinstance(value, Parts):
                value = Memory(type_, self.ptr(value))
            self.put(value, to)
            return
        if replaceable(type_):
            name = self.module.derived("replace", type_)
            void(self.b, name, f"ptr {arena}", f"ptr {to}", f"ptr {self.ptr(value)}")
            return
        slot = self.b.slot(memory(type_))
        self.keep(value, slot, arena)
        void(self.b, self.module.derived("drop", type_), f"ptr {arena}", f"ptr {to}")
        move(self.b, type_, to, slot)

    # --------------------------------------------------------------------------------------------- columns

    def gather(self, value: Row, to: str, arena: str) -> None:
        """Puts a row of columns together at an address; what it refers to goes to the arena."""
        b = self.b
        match value.type:
            case t.Optional(inner):
                flag = b.op(f"zext i1 {self.present(value)} to i8")
                b.do(f"store i8 {flag}, ptr {part(b, value.type, to, 1)}")
                self.keep(self.row(inner, value.column + 1, value.row), part(b, value.type, to, 0), arena)
            case t.Record() | t.Tuple():
                for i in range(len(t.parts(value.type))):
                    self.keep(self.field(value, i), part(b, value.type, to, i), arena)
            case t.Array(inner, _):
                at, count = self.extent(value)
                counted(b, count, lambda i: self.keep(at(i), item(b, inner, to, i), arena))
            case t.List(inner):
                at, count = self.extent(value)
                size = size_align(inner)[0]
                void(b, "list_reserve", f"ptr {arena}", f"ptr {to}", f"i64 {count}", f"i64 {size}")
                items = b.op(f"load ptr, ptr {to}")
                counted(b, count, lambda i: self.keep(at(i), item(b, inner, items, i), arena))
                b.do(f"store i64 {count}, ptr {b.op(f'getelementptr inbounds i64, ptr {to}, i64 1')}")
            case t.Deque(inner) | t.Bag(inner):
                clear(b, value.type, to)
                at, count = self.extent(Row(t.List(inner), value.column, value.row))
                if isinstance(value.type, t.Bag):
                    counted(b, count, lambda i: self.add(value.type, to, arena, at(i)))
                else:
                    counted(b, count, lambda i: self.keep(at(i), self.pushed_back(to, inner, arena), arena))
            case t.Map(key, inner) | t.OMap(key, inner):
                clear(b, value.type, to)
                pairs, count = self.extent(Row(t.List(t.Tuple((key, inner))), value.column, value.row))

                def insert(i: str) -> None:
                    pair = pairs(i)
                    entry = self.entry(value.type, to, arena, self.field(pair, 0))
                    self.keep(self.field(pair, 1), entry, arena)

                counted(b, count, insert)
            case t.FSUM:
                words = b.op(
                    f"getelementptr inbounds i64, ptr {self.columns[value.column]}, i64 {b.op(f'mul i64 {value.row}, 76')}"
                )
                void(b, "sum_import", f"ptr {arena}", f"ptr {to}", f"ptr {words}")
            case _:
                raise Unsupported(f"columns of {value.type}")

    def entry(self, type_: t.Type, map_: str, arena: str, key: Value, node: typed.Node | None = None) -> str:
        """The place of the value of a key in a map where the key is absent; what is there is garbage. `node` as of `find`."""
        assert isinstance(type_, t.Map | t.OMap)  # noqa: S101 - by its type
        b, at = self.b, self.canonical(key)
        sought: Sought | Looked | None = self.sought.get(id(node))
        if sought is None and self.ahead is not None and self.ahead.tells(node):
            sought = self.ahead
        name, given = ("map_insert", f"ptr {at}") if sought is None else ("map_add", f"i64 {sought.hash}")
        name = self.module.map_function(name, type_)
        made = b.call("ptr", name, [f"ptr {arena}", f"ptr {map_}", given])
        place = key_of(b, made)
        if room := text_room(type_):
            within = b.op(f"getelementptr inbounds i8, ptr {made}, i64 {WITHIN}")
            void(
                b, "text_within", f"ptr {arena}", f"ptr {place}", f"ptr {at}", f"ptr {within}", f"i64 {room}"
            )
        else:
            self.keep(self.load(type_.key, at), place, arena)
        return value_of(b, type_, made)

    def canonical(self, key: Value) -> str:
        """The address of a key as maps and bags have it."""
        at, type_ = self.ptr(key), key.type
        if not t.contains(type_, t.F32, t.F64):
            return at
        slot = self.b.slot(memory(type_))
        if shares(type_):
            move(self.b, type_, slot, at)
        else:
            void(self.b, self.module.derived("copy", type_), f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {at}")
        void(self.b, self.module.derived("canonical", type_), f"ptr {slot}")
        return slot

    def add(self, type_: t.Type, bag: str, arena: str, item_: Value) -> None:
        """Adds an item to a bag."""
        assert isinstance(type_, t.Bag)  # noqa: S101 - by its type
        at = self.canonical(item_)
        made = self.b.call(
            "ptr", self.module.map_function("bag_add", type_), [f"ptr {arena}", f"ptr {bag}", f"ptr {at}"]
        )
        self.keep(self.load(type_.item, at), key_of(self.b, made), arena)

    def pushed_back(self, deque: str, inner: t.Type, arena: str) -> str:
        """The place of a new last item of a deque."""
        return self.b.call(
            "ptr", "deque_push", [f"ptr {arena}", f"ptr {deque}", f"i64 {size_align(inner)[0]}"]
        )

    def find(self, type_: t.Type, map_: str, key: Value, node: typed.Node | None = None) -> str:
        """The entry of a key, or null; of a bag the oldest. `node`: what seeks it, if something may be known already."""
        assert isinstance(type_, t.Map | t.OMap | t.Bag)  # noqa: S101 - by its type
        known, sure = self.sought.get(id(node)), "map_found"
        if known is None and self.ahead is not None and self.ahead.tells(node):
            known, sure = self.ahead, "map_sure"
        if known is not None:
            name = self.module.map_function("map_seek" if known.entry is None else sure, type_)
            likely = [] if known.entry is None else [f"i64 {known.entry}"]
            return self.b.call(
                "ptr", name, [f"ptr {map_}", f"ptr {self.ptr(key)}", f"i64 {known.hash}", *likely]
            )
        return self.b.call(
            "ptr", self.module.map_function("map_find", type_), [f"ptr {map_}", f"ptr {self.ptr(key)}"]
        )
