"""A module under construction: the runtime, and what is derived from types: copy, drop, same, hash, canonical, maps.

Derived functions take addresses: `copy(arena, to, from)`, `drop(arena, at)`, `same(x, y) -> i1`,
`hash(h, x) -> i64` (a step per word of `values.hash64`), `canonical(at)` (of floats in keys, -0.0 becomes 0.0). A
temporary arena shares texts and drops nothing.
"""

from __future__ import annotations

from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from backends.native.ir import Builder, Function, module_text, reachable
from backends.native.layout import (
    KEY_AT,
    Keyed,
    Unsupported,
    entry_layout,
    is_plain,
    is_text,
    memory,
    register,
    shares,
    size_align,
)
from backends.native.library import runtime, tables
from backends.native.rtlang import Signature, compile_file
from backends.native.shared import BEGIN
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

_NEEDED: Final = {
    "key_order": Signature(("p8", "p8"), "i64"),
    "order": Signature(("Arena", "p8", "p8"), "i64"),
    "key_hash": Signature(("p8",), "i64"),
    "index_hash": Signature(("p8",), "i64"),
    "same": Signature(("p8", "p8"), "i1"),
    "number": Signature(("p8",), "i64"),
}  # what the templates of maps ask of keys
_NAN: Final = "0x7FF8000000000000"
LINE: Final = 64  # bytes that a processor fetches at once
_INTEGERS: Final = (t.I32, t.I64, t.U64)  # whose maps have a direct part


@define(eq=False, repr=False)
class Module:
    """What has been made so far. `texts`: globals. `debug`: every access is checked (see `debug.py`).

    `lends`: texts of inputs are emitted without being copied.
    """

    functions: dict[str, Function] = field(factory=lambda: dict(runtime().functions))
    texts: list[str] = field(factory=list[str])
    debug: bool = False
    lends: bool = False
    patterns: dict[str, str] = field(
        factory=dict[str, str]
    )  # by constant of type regex, the address of its table
    _begin: Builder = field(factory=Builder)  # what is done when the code has been linked
    _names: dict[tuple[str, t.Type], str] = field(factory=dict[tuple[str, t.Type], str])
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        if self.debug:
            self.functions = dict(runtime(debug=True).functions)

    def add(self, function: Function) -> None:
        """A finished function."""
        self.functions[function.name] = function

    def fresh(self, stem: str) -> str:
        """A name of the module that nothing else bears."""
        self._count += 1
        return f"{stem}.{self._count}"

    def text(self, exports: dict[str, Function]) -> str:
        """The module: `exports` and all that they need, and `BEGIN`, if something is to be done before they are called."""
        if self._begin.lines:
            exports = exports | {BEGIN: self._begun()}
        if not self.debug:
            used = reachable(self.functions | exports, exports)
            return module_text((*tables(used), *self.texts, *(f.text for f in used)))
        from backends.native import debug

        used = reachable(self.functions | exports, [*exports, *debug.NEEDED])
        texts = [*tables(used), *self.texts]
        return module_text((*texts, *debug.instrumented(texts, used)))

    def constant(self, type_: str, text: str) -> str:
        """A global constant; its name."""
        name = "@" + self.fresh("const")
        self.texts.append(f"{name} = private unnamed_addr constant {type_} {text}, align 16")
        return name

    def index(self, type_: t.Map | t.Bag, index: str, segments: int, size: int, first: str) -> None:
        """Has the index of a constant filled, from its first entry on, when the code has been linked."""
        b, name = self._begin, self.map_function("map_fill", type_)
        args = [f"ptr {index}", f"i64 {segments}", f"i64 {size}", f"i64 ptrtoint (ptr {first} to i64)"]
        on = b.fresh("on")
        b.branch(b.call("i1", name, args), on, "full")
        b.at(on)

    def _begun(self) -> Function:
        b = self._begin
        b.end("ret i1 true")
        b.at("full")
        b.end("ret i1 false")
        return b.finish(BEGIN, f"define i1 @{BEGIN}() nounwind")

    # -------------------------------------------------------------------------------------------- derived

    def derived(self, kind: str, type_: t.Type) -> str:
        """The name of the function of this kind for a type."""
        at = (kind, type_)
        if at not in self._names:
            self._names[at] = self.fresh(kind)
            _DERIVED[kind](self, type_, self._names[at])
        return self._names[at]

    def map_function(self, name: str, type_: Keyed | t.Bag) -> str:
        """The name of function `name` of `map.rt` or `omap.rt` for containers of this type."""
        at = ("map", type_)
        if at not in self._names:
            suffix = "." + self.fresh("m")
            self._names[at] = suffix
            value, entry = entry_layout(type_)
            key = t.parts(type_)[0]
            small = isinstance(type_, t.Map) and key in _INTEGERS
            bag = isinstance(type_, t.Bag)
            given = {"SMALL": int(small), "BAG": int(bag), "KEY": KEY_AT, "VALUE": value, "ENTRY": entry}
            given["ENTRY_LINES"] = int(entry > LINE)
            ordered = isinstance(type_, t.OMap)
            needs = (
                {"key_order": "key_order"}
                if ordered
                else {"key_hash": "index_hash", "key_same": "same", "key_number": "number"}
            )
            renamed = {alias: (self.derived(kind, key), _NEEDED[kind]) for alias, kind in needs.items()}
            file = "omap.rt" if ordered else "map.rt"
            found = compile_file(file, runtime(), given=given, suffix=suffix, renamed=renamed)
            self.functions.update(found.functions)
        return name + self._names[at]

    def minus_function(self, name: str, item_: t.Type) -> str:
        """The name of function `name` of `minus.rt` for items of this type."""
        at = ("minus", item_)
        if at not in self._names:
            suffix = "." + self.fresh("d")
            self._names[at] = suffix
            kinds = {"key_hash": "index_hash", "key_same": "same"}
            renamed = {alias: (self.derived(kind, item_), _NEEDED[kind]) for alias, kind in kinds.items()}
            self.functions.update(
                compile_file("minus.rt", runtime(), renamed=renamed, suffix=suffix).functions
            )
        return name + self._names[at]

    def sort_function(self, key: t.Type) -> str:
        """The name of `sort_numbers` of `sort.rt` for keys of a type."""
        at = ("sort", key)
        if at not in self._names:
            suffix = "." + self.fresh("s")
            self._names[at] = suffix
            order = (self.derived("order", key), _NEEDED["order"])
            found = compile_file("sort.rt", runtime(), renamed={"order": order}, suffix=suffix)
            self.functions.update(found.functions)
        return "sort_numbers" + self._names[at]

    def entries_function(self, type_: t.Map | t.OMap | t.Bag) -> str:
        """The name of `entries_order` of `entries.rt` for maps of a type, or for bags."""
        at = ("entries", type_)
        if at not in self._names:
            suffix = "." + self.fresh("e")
            self._names[at] = suffix
            key = t.parts(type_)[0]
            value = t.UNIT if isinstance(type_, t.Bag) else type_.value
            renamed = {
                "key_order": (self.derived("order", key), _NEEDED["order"]),
                "value_order": (self.derived("order", value), _NEEDED["order"]),
            }
            given = {"KEY": KEY_AT, "VALUE": entry_layout(type_)[0]}
            found = compile_file("entries.rt", runtime(), given=given, renamed=renamed, suffix=suffix)
            self.functions.update(found.functions)
        return "entries_order" + self._names[at]


# ------------------------------------------------------------------------------------------ single values


def load(b: Builder, type_: t.Type, at: str) -> str:
    """The register of a scalar in memory."""
    if type_ == t.BOOL:
        byte = b.op(f"load i8, ptr {at}")
        return b.op(f"icmp ne i8 {byte}, 0")
    return b.op(f"load {register(type_)}, ptr {at}")


def store(b: Builder, type_: t.Type, value: str, at: str) -> None:
    """A scalar to memory."""
    if type_ == t.BOOL:
        byte = b.op(f"zext i1 {value} to i8")
        b.do(f"store i8 {byte}, ptr {at}")
    else:
        b.do(f"store {register(type_)} {value}, ptr {at}")


def part(b: Builder, type_: t.Type, at: str, index: int) -> str:
    """The address of a field of a record, or of value (0) and presence (1) of an optional."""
    return b.op(f"getelementptr inbounds {memory(type_)}, ptr {at}, i32 0, i32 {index}")


def item(b: Builder, type_: t.Type, items: str, index: str) -> str:
    """The address of an item of `type_` among items."""
    return b.op(f"getelementptr inbounds {memory(type_)}, ptr {items}, i64 {index}")


def move(b: Builder, type_: t.Type, to: str, source: str) -> None:
    """Copies a value: its bytes, or part by part where that leaves out bytes between few parts.

    A copy of these would read what was written in pieces at once, for which the processor has to wait.
    """
    size, _ = size_align(type_)
    pieces = _pieces(type_)
    if len(pieces) <= _FEW_PIECES and sum(bytes_ for _, bytes_ in pieces) < size:
        for offset, bytes_ in pieces:
            ends = [b.op(f"getelementptr inbounds i8, ptr {at}, i64 {offset}") for at in (source, to)]
            b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {ends[1]}, ptr {ends[0]}, i64 {bytes_}, i1 false)")
        return
    b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")


_FEW_PIECES: Final = 8


@cache
def _pieces(type_: t.Type) -> tuple[tuple[int, int], ...]:
    """Where the parts of a value lie, and how many bytes each has."""
    match type_:
        case t.Optional(inner):
            parts = (inner, t.BOOL)
        case t.Record() | t.Tuple():
            parts = t.parts(type_)
        case _:
            return ((0, size_align(type_)[0]),)
    found: list[tuple[int, int]] = []
    at = 0
    for each in parts:
        size, align = size_align(each)
        at = -(-at // align) * align
        found += [(at + offset, bytes_) for offset, bytes_ in _pieces(each)]
        at += size
    return tuple(found)


def clear(b: Builder, type_: t.Type, at: str) -> None:
    """The zero of a type."""
    size, _ = size_align(type_)
    b.do(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")


def counted(b: Builder, count: str, body: Callable[[str], None], start: str = "0") -> None:
    """A loop from `start` to `count`; `body` gets the register of the number."""
    number = b.slot("i64")
    b.do(f"store i64 {start}, ptr {number}")
    again, inside, after = b.fresh("each"), b.fresh("inside"), b.fresh("done")
    b.at(again)
    i = b.op(f"load i64, ptr {number}")
    b.branch(b.op(f"icmp slt i64 {i}, {count}"), inside, after)
    b.at(inside)
    body(i)
    following = b.op(f"add nsw i64 {i}, 1")
    b.do(f"store i64 {following}, ptr {number}")
    b.go(again)
    b.at(after)


def if_(
    b: Builder, condition: str, then: Callable[[], None], other: Callable[[], None] | None = None
) -> None:
    """A branch."""
    yes, no, after = b.fresh("yes"), b.fresh("no"), b.fresh("after")
    b.branch(condition, yes, no if other else after)
    b.at(yes)
    then()
    if not b.ended:
        b.go(after)
    if other:
        b.at(no)
        other()
    b.at(after)


def entries(b: Builder, map_: str, body: Callable[[str], None]) -> None:
    """A loop over the entries of a map, in order; `body` gets the address of an entry."""
    head = b.op(f"getelementptr inbounds i64, ptr {map_}, i64 1")
    cursor = b.slot("i64")
    b.do(f"store i64 {b.op(f'load i64, ptr {head}')}, ptr {cursor}")
    again, inside, after = b.fresh("each"), b.fresh("inside"), b.fresh("done")
    b.at(again)
    e = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp ne i64 {e}, 0"), inside, after)
    b.at(inside)
    entry = b.op(f"inttoptr i64 {e} to ptr")
    following = b.op(f"load i64, ptr {entry}")
    b.do(f"store i64 {following}, ptr {cursor}")
    body(entry)
    b.go(again)
    b.at(after)


def key_of(b: Builder, entry: str) -> str:
    """The address of the key of an entry."""
    return b.op(f"getelementptr inbounds i8, ptr {entry}, i64 {KEY_AT}")


def value_of(b: Builder, type_: Keyed, entry: str) -> str:
    """The address of the value of an entry."""
    return b.op(f"getelementptr inbounds i8, ptr {entry}, i64 {entry_layout(type_)[0]}")


def list_parts(b: Builder, at: str) -> tuple[str, str]:
    """The items and the length of a list."""
    items = b.op(f"load ptr, ptr {at}")
    count = b.op(f"getelementptr inbounds i64, ptr {at}, i64 1")
    return items, b.op(f"load i64, ptr {count}")


def positions(b: Builder, type_: t.Type, at: str) -> tuple[Callable[[str], str], str]:
    """The addresses of the items of a list, array or deque, and how many there are."""
    match type_:
        case t.List(inner):
            items, count = list_parts(b, at)
            return lambda i: item(b, inner, items, i), count
        case t.Array(inner, size):
            return lambda i: item(b, inner, at, i), str(size)
        case t.Deque(inner):
            items, count = list_parts(b, at)
            room = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {at}, i64 2')}")
            first = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {at}, i64 3')}")
            mask = b.op(f"sub i64 {room}, 1")
            return lambda i: item(
                b, inner, items, b.op(f"and i64 {b.op(f'add i64 {first}, {i}')}, {mask}")
            ), count
        case _:
            raise Unsupported(f"positions of {type_}")


# ------------------------------------------------------------------------------------------ derived functions


def _copy(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()

    def copied(of: t.Type, to: str, source: str) -> None:
        if is_plain(of):
            move(b, of, to, source)
        elif is_text(of):
            b.call("void", "text_keep", ["ptr %arena", f"ptr {to}", f"ptr {source}"])
        else:
            b.call("void", module.derived("copy", of), ["ptr %arena", f"ptr {to}", f"ptr {source}"])

    match type_:
        case t.FSUM:
            b.call("void", "sum_copy", ["ptr %arena", "ptr %to", "ptr %from"])
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%from', 1)}")
            b.do(f"store i8 {flag}, ptr {part(b, type_, '%to', 1)}")
            if_(
                b, b.op(f"icmp ne i8 {flag}, 0"),
                lambda: copied(inner, part(b, type_, "%to", 0), part(b, type_, "%from", 0)),
                lambda: clear(b, inner, part(b, type_, "%to", 0)),
            )  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                copied(each, part(b, type_, "%to", i), part(b, type_, "%from", i))
        case t.Array(inner, size):
            counted(
                b, str(size), lambda i: copied(inner, item(b, inner, "%to", i), item(b, inner, "%from", i))
            )
        case t.List(inner):
            items, count = list_parts(b, "%from")
            fresh = b.slot("{ ptr, i64, i64 }")
            b.call(
                "void",
                "list_reserve",
                ["ptr %arena", f"ptr {fresh}", f"i64 {count}", f"i64 {size_align(inner)[0]}"],
            )
            to = b.op(f"load ptr, ptr {fresh}")
            if is_plain(inner):
                bytes_ = b.op(f"mul i64 {count}, {size_align(inner)[0]}")
                b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {items}, i64 {bytes_}, i1 false)")
            else:
                counted(b, count, lambda i: copied(inner, item(b, inner, to, i), item(b, inner, items, i)))
            b.do(f"store i64 {count}, ptr {b.op(f'getelementptr inbounds i64, ptr {fresh}, i64 1')}")
            move(b, type_, "%to", fresh)
        case t.Deque(inner):
            place, count = positions(b, type_, "%from")
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)
            size = size_align(inner)[0]
            counted(b, count, lambda i: copied(
                inner, b.call("ptr", "deque_push", ["ptr %arena", f"ptr {fresh}", f"i64 {size}"]), place(i)
            ))  # fmt: skip
            move(b, type_, "%to", fresh)
        case t.Bag(inner):
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)

            def add(entry: str) -> None:
                name = module.map_function("bag_add", type_)
                made = b.call("ptr", name, ["ptr %arena", f"ptr {fresh}", f"ptr {key_of(b, entry)}"])
                copied(inner, key_of(b, made), key_of(b, entry))

            entries(b, "%from", add)
            move(b, type_, "%to", fresh)
        case t.Map(key, value) | t.OMap(key, value):
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)

            def insert(entry: str) -> None:
                made = b.call(
                    "ptr",
                    module.map_function("map_insert", type_),
                    ["ptr %arena", f"ptr {fresh}", f"ptr {key_of(b, entry)}"],
                )
                copied(key, key_of(b, made), key_of(b, entry))
                copied(value, value_of(b, type_, made), value_of(b, type_, entry))

            entries(b, "%from", insert)
            move(b, type_, "%to", fresh)
        case _:
            copied(type_, "%to", "%from")
    b.end("ret void")
    module.add(b.finish(name, f"define internal void @{name}(ptr %arena, ptr %to, ptr %from) nounwind"))


def replaceable(type_: t.Type) -> bool:
    """Whether values have a function `replace`: texts, and records of these and of what is plain."""
    match type_:
        case t.STRING | t.BYTES:
            return True
        case t.Optional(inner):
            return is_plain(inner) or replaceable(inner)
        case t.Record() | t.Tuple():
            return all(is_plain(each) or replaceable(each) for each in t.parts(type_))
        case _:
            return False


def _replace(module: Module, type_: t.Type, name: str) -> None:
    """`replace(arena, to, from)`: a copy over a value of the arena; texts in it that stay the same are left where they are."""
    b = Builder()

    def replaced(of: t.Type, to: str, source: str) -> None:
        if is_plain(of):
            move(b, of, to, source)
        else:
            b.call("void", module.derived("replace", of), ["ptr %arena", f"ptr {to}", f"ptr {source}"])

    match type_:
        case t.Optional(inner):
            flags = [part(b, type_, at, 1) for at in ("%to", "%from")]
            there, comes = (b.op(f"icmp ne i8 {b.op(f'load i8, ptr {flag}')}, 0") for flag in flags)
            old, new = (part(b, type_, at, 0) for at in ("%to", "%from"))
            drop, copy = (module.derived(kind, inner) for kind in ("drop", "copy"))
            b.do(f"store i8 {b.op(f'zext i1 {comes} to i8')}, ptr {flags[0]}")
            if_(
                b, comes,
                lambda: if_(b, there, lambda: replaced(inner, old, new),
                            lambda: void(b, copy, "ptr %arena", f"ptr {old}", f"ptr {new}")),
                lambda: (
                    if_(b, there, lambda: void(b, drop, "ptr %arena", f"ptr {old}")), clear(b, inner, old)
                )[1],
            )  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                replaced(each, part(b, type_, "%to", i), part(b, type_, "%from", i))
        case _:
            b.call("void", "text_overwrite", ["ptr %arena", "ptr %to", "ptr %from"])
    b.end("ret void")
    module.add(b.finish(name, f"define internal void @{name}(ptr %arena, ptr %to, ptr %from) nounwind"))


def _drop(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()

    def dropped(of: t.Type, at: str) -> None:
        if not is_plain(of):
            b.call("void", module.derived("drop", of), ["ptr %arena", f"ptr {at}"])

    flag = b.op("getelementptr inbounds i64, ptr %arena, i64 4")
    temporary = b.op(f"icmp ne i64 {b.op(f'load i64, ptr {flag}')}, 0")
    b.branch(temporary, "over", "kept")
    b.at("over")
    b.end("ret void")
    b.at("kept")
    match type_:
        case t.STRING | t.BYTES | t.REGEX:
            b.call("void", "text_drop", ["ptr %arena", "ptr %at"])
        case t.FSUM:
            b.call("void", "sum_drop", ["ptr %arena", "ptr %at"])
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%at', 1)}")
            if_(b, b.op(f"icmp ne i8 {flag}, 0"), lambda: dropped(inner, part(b, type_, "%at", 0)))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                dropped(each, part(b, type_, "%at", i))
        case t.Array(inner, size):
            if not is_plain(inner):
                counted(b, str(size), lambda i: dropped(inner, item(b, inner, "%at", i)))
        case t.List(inner) | t.Deque(inner):
            items, _ = list_parts(b, "%at")
            place, count = positions(b, type_, "%at")
            if not is_plain(inner):
                counted(b, count, lambda i: dropped(inner, place(i)))
            room = b.op(f"load i64, ptr {b.op('getelementptr inbounds i64, ptr %at, i64 2')}")
            bytes_ = b.op(f"mul i64 {room}, {size_align(inner)[0]}")
            if_(b, b.op(f"icmp ne i64 {room}, 0"),
                lambda: void(b, "release", "ptr %arena", f"ptr {items}", f"i64 {bytes_}"))  # fmt: skip
        case t.Bag(inner):
            if not is_plain(inner):
                entries(b, "%at", lambda entry: dropped(inner, key_of(b, entry)))
            b.call("void", module.map_function("map_close", type_), ["ptr %arena", "ptr %at"])
        case t.Map(key, value) | t.OMap(key, value):

            def drop_entry(entry: str) -> None:
                dropped(key, key_of(b, entry))
                dropped(value, value_of(b, type_, entry))

            if not (is_plain(key) and is_plain(value)):
                entries(b, "%at", drop_entry)
            b.call("void", module.map_function("map_close", type_), ["ptr %arena", "ptr %at"])
        case _:
            pass
    b.end("ret void")
    module.add(b.finish(name, f"define internal void @{name}(ptr %arena, ptr %at) nounwind"))


def void(b: Builder, name: str, *args: str) -> None:
    """A call for its effect."""
    b.call("void", name, args)


def same_scalar(b: Builder, type_: t.Type, x: str, y: str) -> str:
    """Whether two scalars are the same; NaN is NaN."""
    kind = register(type_)
    if type_ == t.UNIT:
        return "true"
    if kind in ("float", "double"):
        equal, apart, joined = b.op(f"fcmp oeq {kind} {x}, {y}"), b.fresh("apart"), b.fresh("joined")
        before = b.block
        b.branch(b.op(f"fcmp uno {kind} {x}, {y}"), apart, joined, rare=True)
        b.at(apart)
        first, second = b.op(f"fcmp uno {kind} {x}, {x}"), b.op(f"fcmp uno {kind} {y}, {y}")
        both = b.op(f"and i1 {first}, {second}")
        b.at(joined)
        return b.op(f"phi i1 [ {equal}, %{before} ], [ {both}, %{apart} ]")
    return b.op(f"icmp eq {kind} {x}, {y}")


def _same(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()

    def differ(of: t.Type, x: str, y: str) -> None:
        """Leaves with false unless the same."""
        on = b.fresh("on")
        b.branch(compared(of, x, y), on, "different")
        b.at(on)

    def compared(of: t.Type, x: str, y: str) -> str:
        if register(of) is not None:
            return same_scalar(b, of, load(b, of, x), load(b, of, y))
        if is_text(of):
            return b.call("i1", "text_same", [f"ptr {x}", f"ptr {y}"])
        return b.call("i1", module.derived("same", of), [f"ptr {x}", f"ptr {y}"])

    def number(x: str, y: str) -> None:
        on = b.fresh("on")
        b.branch(b.op(f"icmp eq i64 {x}, {y}"), on, "different")
        b.at(on)

    match type_:
        case t.FSUM:
            rooms = [f"ptr {b.slot('[76 x i64]')}" for _ in range(2)]
            number(b.call("i64", "sum_order", ["ptr %x", "ptr %y", *rooms]), "0")
        case t.Optional(inner):
            flags = [b.op(f"load i8, ptr {part(b, type_, at, 1)}") for at in ("%x", "%y")]
            on = b.fresh("on")
            b.branch(b.op(f"icmp eq i8 {flags[0]}, {flags[1]}"), on, "different")
            b.at(on)
            if_(b, b.op(f"icmp ne i8 {flags[0]}, 0"),
                lambda: differ(inner, part(b, type_, "%x", 0), part(b, type_, "%y", 0)))  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                differ(each, part(b, type_, "%x", i), part(b, type_, "%y", i))
        case t.Array(inner, size):
            counted(b, str(size), lambda i: differ(inner, item(b, inner, "%x", i), item(b, inner, "%y", i)))
        case t.List(inner) | t.Deque(inner):
            (xs, m), (ys, n) = positions(b, type_, "%x"), positions(b, type_, "%y")
            number(m, n)
            counted(b, m, lambda i: differ(inner, xs(i), ys(i)))
        case t.Bag():
            m, n = b.op("load i64, ptr %x"), b.op("load i64, ptr %y")
            number(m, n)
            count = module.map_function("bag_count", type_)
            entries(b, "%x", lambda e: number(*(
                b.call("i64", count, [f"ptr {bag}", f"ptr {key_of(b, e)}"]) for bag in ("%x", "%y")
            )))  # fmt: skip
        case t.Map(_, value) | t.OMap(_, value):
            m, n = b.op("load i64, ptr %x"), b.op("load i64, ptr %y")
            number(m, n)

            def entry_same(entry: str) -> None:
                other = b.call(
                    "ptr", module.map_function("map_find", type_), ["ptr %y", f"ptr {key_of(b, entry)}"]
                )
                on = b.fresh("on")
                b.branch(b.op(f"icmp ne ptr {other}, null"), on, "different")
                b.at(on)
                differ(value, value_of(b, type_, entry), value_of(b, type_, other))

            entries(b, "%x", entry_same)
        case _:
            differ(type_, "%x", "%y")
    b.end("ret i1 true")
    b.at("different")
    b.end("ret i1 false")
    module.add(b.finish(name, f"define internal i1 @{name}(ptr %x, ptr %y) nounwind"))


def scalar_words(b: Builder, type_: t.Type, x: str) -> tuple[str, ...]:
    """The 64-bit words of a scalar that hashes are made of."""
    kind = register(type_)
    if type_ == t.UNIT:
        return ()
    if kind == "float":
        kind, x = "double", b.op(f"fpext float {x} to double")
    if kind == "double":
        positive = b.op(f"fadd double {x}, 0.0")
        undefined = b.op(f"fcmp uno double {x}, {x}")
        chosen = b.op(f"select i1 {undefined}, double {_NAN}, double {positive}")
        return (b.op(f"bitcast double {chosen} to i64"),)
    if kind == "i128":
        high = b.op(f"lshr i128 {x}, 64")
        return (b.op(f"trunc i128 {x} to i64"), b.op(f"trunc i128 {high} to i64"))
    if kind != "i64":
        x = b.op(f"{'zext' if kind == 'i1' else 'sext'} {kind} {x} to i64")
    return (x,)


@frozen
class _Hashing:
    """How a hash is made of words: the derived function, and the calls for a word, a text, the beginning, and the end."""

    derived: str
    word: Callable[[Builder, str, str], str]
    text: Callable[[Builder, str, str], str]
    begin: Callable[[Builder], str]
    end: str


_STABLE: Final = _Hashing(
    "hash",
    lambda b, h, word: b.call("i64", "fold", [f"i64 {h}", f"i64 {word}"]),
    lambda b, h, at: b.call("i64", "text_hash", [f"i64 {h}", f"ptr {at}"]),
    lambda _: str(runtime().constants["SEED"]),
    "fold_last",
)
"""`values.hash64`."""

SECRET: Final = _Hashing(
    "index_word",
    lambda b, h, word: index_step(b, h, "0", word),
    lambda b, h, at: index_step(b, h, "0", b.call("i64", "text_word", [f"ptr {at}"])),
    lambda b: b.call("i64", "index_begin", []),
    "index_end",
)
"""The hash of the index of maps, by the secrets of the process (`runtime/text.rt`). No key has a map or bag in it."""


def index_step(b: Builder, h: str, x: str, y: str) -> str:
    """The hash of an index with two words more."""
    return b.call("i64", "index_step", [f"i64 {h}", f"i64 {x}", f"i64 {y}"])


def _hash(module: Module, type_: t.Type, name: str, how: _Hashing = _STABLE) -> None:
    b = Builder()
    state = b.slot("i64")
    b.do(f"store i64 %h, ptr {state}")

    def word(x: str) -> None:
        h = b.op(f"load i64, ptr {state}")
        b.do(f"store i64 {how.word(b, h, x)}, ptr {state}")

    def hashed(of: t.Type, at: str) -> None:
        if register(of) is not None:
            for each in scalar_words(b, of, load(b, of, at)):
                word(each)
            return
        h = b.op(f"load i64, ptr {state}")
        args = [f"i64 {h}", f"ptr {at}"]
        h = how.text(b, h, at) if is_text(of) else b.call("i64", module.derived(how.derived, of), args)
        b.do(f"store i64 {h}, ptr {state}")

    match type_:
        case t.FSUM:
            raise Unsupported("hash64 of fsum")
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%x', 1)}")
            word(b.op(f"zext i8 {flag} to i64"))
            if_(b, b.op(f"icmp ne i8 {flag}, 0"), lambda: hashed(inner, part(b, type_, "%x", 0)))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                hashed(each, part(b, type_, "%x", i))
        case t.Array(inner, size):
            word(str(size))
            counted(b, str(size), lambda i: hashed(inner, item(b, inner, "%x", i)))
        case t.List(inner) | t.Deque(inner):
            place, count = positions(b, type_, "%x")
            word(count)
            counted(b, count, lambda i: hashed(inner, place(i)))
        case t.OMap(key, value):
            word(b.op("load i64, ptr %x"))

            def pair_hash(entry: str) -> None:
                hashed(key, key_of(b, entry))
                hashed(value, value_of(b, type_, entry))

            entries(b, "%x", pair_hash)
        case t.Map() | t.Bag():
            total = b.slot("i64")
            b.do(f"store i64 0, ptr {total}")
            word(b.op("load i64, ptr %x"))

            def entry_hash(entry: str) -> None:
                outer = b.op(f"load i64, ptr {state}")
                b.do(f"store i64 {how.begin(b)}, ptr {state}")
                hashed(t.parts(type_)[0], key_of(b, entry))
                if isinstance(type_, t.Map):
                    hashed(type_.value, value_of(b, type_, entry))
                last = b.call("i64", how.end, [f"i64 {b.op(f'load i64, ptr {state}')}"])
                b.do(f"store i64 {b.op(f'add i64 {last}, ' + b.op(f'load i64, ptr {total}'))}, ptr {total}")
                b.do(f"store i64 {outer}, ptr {state}")

            entries(b, "%x", entry_hash)
            word(b.op(f"load i64, ptr {total}"))
        case _:
            hashed(type_, "%x")
    b.end(f"ret i64 {b.op(f'load i64, ptr {state}')}")
    module.add(b.finish(name, f"define internal i64 @{name}(i64 %h, ptr %x) nounwind"))


def _index_word(module: Module, type_: t.Type, name: str) -> None:
    _hash(module, type_, name, SECRET)


def _key_hash(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()
    h = b.call("i64", module.derived("hash", type_), [f"i64 {runtime().constants['SEED']}", "ptr %x"])
    b.end(f"ret i64 {b.call('i64', 'fold_last', [f'i64 {h}'])}")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %x) nounwind"))


def _index_hash(module: Module, type_: t.Type, name: str) -> None:
    """The hash of the index of maps, which nothing outside of them sees: quicker than `values.hash64`, and secret."""
    b = Builder()
    words = _index_words(module, b, type_, "%x")
    if is_text(type_):
        h = words[0]
    else:
        h = SECRET.begin(b)
        for x, y in zip_longest(words[1::2], words[::2], fillvalue="0"):
            h = index_step(b, h, x, y)
    b.end(f"ret i64 {b.call('i64', SECRET.end, [f'i64 {h}'])}")
    near = " alwaysinline" if is_text(type_) or register(type_) is not None else ""
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %x){near} nounwind"))


def _index_words(module: Module, b: Builder, type_: t.Type, at: str) -> list[str]:
    """What the hash of a key is made of; one word stands for each text, and for each value whose words vary in number."""
    if is_text(type_):
        return [b.call("i64", "text_word", [f"ptr {at}"])]
    if register(type_) is not None:
        return list(scalar_words(b, type_, load(b, type_, at)))
    if isinstance(type_, t.Record | t.Tuple):
        parts = enumerate(t.parts(type_))
        return [word for i, each in parts for word in _index_words(module, b, each, part(b, type_, at, i))]
    begin = SECRET.begin(b)
    return [b.call("i64", module.derived(SECRET.derived, type_), [f"i64 {begin}", f"ptr {at}"])]


def _number(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()
    if type_ in _INTEGERS:
        x = load(b, type_, "%x")
        b.end(f"ret i64 {b.op(f'sext i32 {x} to i64') if type_ == t.I32 else x}")
    else:
        b.end("ret i64 -1")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %x) nounwind"))


def _canonical(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()

    def made(of: t.Type, at: str) -> None:
        if t.contains(of, t.F32, t.F64):
            b.call("void", module.derived("canonical", of), [f"ptr {at}"])

    match type_:
        case t.F32 | t.F64:
            positive = b.op(f"fadd {register(type_)} {load(b, type_, '%at')}, 0.0")
            store(b, type_, positive, "%at")
        case t.Optional(inner):
            made(inner, part(b, type_, "%at", 0))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                made(each, part(b, type_, "%at", i))
        case t.Array(inner, size):
            counted(b, str(size), lambda i: made(inner, item(b, inner, "%at", i)))
        case t.List(inner):
            items, count = list_parts(b, "%at")
            counted(b, count, lambda i: made(inner, item(b, inner, items, i)))
        case _:
            pass
    b.end("ret void")
    module.add(b.finish(name, f"define internal void @{name}(ptr %at) nounwind"))


def order_scalar(b: Builder, type_: t.Type, x: str, y: str) -> str:
    """-1, 0 or 1 by the total order of two scalars."""
    kind = register(type_)
    if type_ == t.UNIT:
        return "0"
    if kind in ("float", "double"):
        unknown = [b.op(f"fcmp uno {kind} {v}, {v}") for v in (x, y)]
        known = [b.op(f"xor i1 {u}, true") for u in unknown]
        above = b.op(f"or i1 {b.op(f'fcmp ogt {kind} {x}, {y}')}, {b.op(f'and i1 {unknown[0]}, {known[1]}')}")
        below = b.op(f"or i1 {b.op(f'fcmp olt {kind} {x}, {y}')}, {b.op(f'and i1 {known[0]}, {unknown[1]}')}")
    else:
        sign = "u" if type_ in (t.U64, t.BOOL) else "s"
        above, below = b.op(f"icmp {sign}gt {kind} {x}, {y}"), b.op(f"icmp {sign}lt {kind} {x}, {y}")
    return b.op(f"sub i64 {b.op(f'zext i1 {above} to i64')}, {b.op(f'zext i1 {below} to i64')}")


def _order(module: Module, type_: t.Type, name: str) -> None:
    b = Builder()
    result = b.slot("i64")

    def decide(found: str) -> None:
        """Leaves with -1 or 1; goes on with 0."""
        b.do(f"store i64 {found}, ptr {result}")
        on = b.fresh("on")
        b.branch(b.op(f"icmp eq i64 {found}, 0"), on, "decided")
        b.at(on)

    def compared(of: t.Type, x: str, y: str) -> str:
        if register(of) is not None:
            return order_scalar(b, of, load(b, of, x), load(b, of, y))
        if is_text(of):
            return b.call("i64", "text_compare", [f"ptr {x}", f"ptr {y}"])
        return b.call("i64", module.derived("order", of), ["ptr %arena", f"ptr {x}", f"ptr {y}"])

    match type_:
        case t.Optional(inner):
            flags = [b.op(f"load i8, ptr {part(b, type_, at, 1)}") for at in ("%x", "%y")]
            wide = [b.op(f"zext i8 {flag} to i64") for flag in flags]
            decide(b.op(f"sub i64 {wide[0]}, {wide[1]}"))
            if_(b, b.op(f"icmp ne i8 {flags[0]}, 0"),
                lambda: decide(compared(inner, part(b, type_, "%x", 0), part(b, type_, "%y", 0))))  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                decide(compared(each, part(b, type_, "%x", i), part(b, type_, "%y", i)))
        case t.List(inner) | t.Array(inner) | t.Deque(inner):
            (xs, m), (ys, n) = positions(b, type_, "%x"), positions(b, type_, "%y")
            least = b.op(f"select i1 {b.op(f'icmp slt i64 {m}, {n}')}, i64 {m}, i64 {n}")
            counted(b, least, lambda i: decide(compared(inner, xs(i), ys(i))))
            decide(order_scalar(b, t.I64, m, n))
        case t.FSUM:
            rooms = [f"ptr {b.slot('[76 x i64]')}" for _ in range(2)]
            decide(b.call("i64", "sum_order", ["ptr %x", "ptr %y", *rooms]))
        case t.Map() | t.OMap() | t.Bag():
            decide(b.call("i64", module.entries_function(type_), ["ptr %arena", "ptr %x", "ptr %y"]))
        case _:
            decide(compared(type_, "%x", "%y"))
    b.do(f"store i64 0, ptr {result}")
    b.at("decided")
    b.end(f"ret i64 {b.op(f'load i64, ptr {result}')}")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %arena, ptr %x, ptr %y) nounwind"))


def _key_order(module: Module, type_: t.Type, name: str) -> None:
    """The order of keys, which asks for no memory."""
    b = Builder()
    b.end(f"ret i64 {b.call('i64', module.derived('order', type_), ['ptr null', 'ptr %x', 'ptr %y'])}")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %x, ptr %y) nounwind"))


_DERIVED: Final[dict[str, Callable[[Module, t.Type, str], None]]] = {
    "copy": _copy, "drop": _drop, "replace": _replace, "same": _same, "hash": _hash, "key_hash": _key_hash, "number": _number,
    "canonical": _canonical, "order": _order, "key_order": _key_order, "index_hash": _index_hash,
    "index_word": _index_word,
}  # fmt: skip

__all__ = [
    "LINE",
    "SECRET",
    "Module",
    "clear",
    "counted",
    "entries",
    "if_",
    "item",
    "key_of",
    "list_parts",
    "load",
    "move",
    "part",
    "positions",
    "replaceable",
    "runtime",
    "same_scalar",
    "scalar_words",
    "shares",
    "store",
    "value_of",
    "void",
]
