"""The machine code that puts rows of columns in the total order of values.

Numbers and the beginnings of texts become words that are sorted digit by digit; rows are compared as a whole only where words do
not decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from backends.native.arrow import module_text
from backends.native.derived.hashing import scalar_words
from backends.native.derived.ordering import order_scalar
from backends.native.egress.rows import Cursor
from backends.native.idioms import counted, if_
from backends.native.ir import Builder
from backends.native.layout import Unsupported, is_text, register, widths
from backends.native.module import Module
from backends.native.rtlang import Signature, compile_file
from backends.native.runtime_library import runtime
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.shared import ModuleText

_MOST: Final = 16  # parts of a row that become words
_SIGN: Final = -(1 << 63)
_WORD: Final = Signature(("p64", "i64", "i64", "i64"), "i64")
_TEXT: Final = Signature(("p64", "i64", "i64"), "p8")
_ORDER: Final = Signature(("p64", "i64", "i64"), "i64")


STEPS: Final = (
    "by_pairs", "rank_open", "rank_pack", "rank_again", "rank_begin", "rank_deal", "rank_settle", "rank_close"
)  # fmt: skip
"""The functions of `rank.rt` that `ranking` calls."""


def made(type_: t.Type) -> ModuleText:
    """The module of the functions `STEPS` for rows of a type. Raises: Unsupported."""
    module = Module()
    parts, whole = _parts(type_)
    texts = sum(1 << i for i, (of, _, _) in enumerate(parts) if is_text(of))
    given = {"PARTS": len(parts), "TEXTS": texts, "REST": int(not whole)}
    renamed = {
        "row_word": ("row_word", _WORD), "row_text": ("row_text", _TEXT), "row_order": ("row_order", _ORDER)
    }  # fmt: skip
    unit = compile_file("rank.rt", runtime(), given=given, renamed=renamed)
    module.functions.update(unit.functions)
    _add_row_word(module, parts)
    _add_row_text(module, parts)
    _add_row_order(module, type_)
    unit.functions = {name: unit.functions[name] for name in STEPS}
    return module_text(module, unit)


# ------------------------------------------------------------------------------------------------------------ words


def _parts(type_: t.Type) -> tuple[list[tuple[t.Type, int, int]], bool]:
    """The first parts of rows that become words: the scalar or text, its column, and which of its words.

    Beside that whether these are all parts of a row.
    """
    found: list[tuple[t.Type, int, int]] = []
    whole = _gathered(type_, 0, found)
    return found[:_MOST], whole and len(found) <= _MOST


def _gathered(type_: t.Type, column: int, found: list[tuple[t.Type, int, int]]) -> bool:
    """Adds the parts of a type whose columns begin at `column`; False where there are others behind them."""
    if len(found) > _MOST:
        return False
    match type_:
        case t.UNIT:
            return True
        case t.FSUM | t.Array() | t.List() | t.Deque() | t.Bag() | t.Map() | t.OMap() | t.Function():
            return False
        case t.Optional(inner):
            found.append((t.BOOL, column, 0))
            return _gathered(inner, column + 1, found)
        case t.Record() | t.Tuple():
            for part in t.parts(type_):
                if not _gathered(part, column, found):
                    return False
                column += widths(part)[0]
            return True
        case t.Primitive() | t.Decimal():
            count = 2 if register(type_) == "i128" else 1
            found += [(type_, column, word) for word in range(count)]
            return True
        case _:
            assert_never(type_)


def _add_row_word(module: Module, parts: list[tuple[t.Type, int, int]]) -> None:
    """Adds `row_word(x, i, part, chunk) -> i64`."""
    b = Builder()
    for number, (type_, column, word) in enumerate(parts):
        here, other = b.fresh("part"), b.fresh("other")
        b.branch(b.op(f"icmp eq i64 %part, {number}"), here, other)
        b.at(here)
        place = b.op(f"getelementptr inbounds ptr, ptr %x, i64 {column}")
        cursor = Cursor(b, type_, [b.op(f"load ptr, ptr {place}")])
        if is_text(type_):
            view = cursor.place("{ i64, i64 }", "%i")
            b.end(f"ret i64 {b.call('i64', 'text_word', [f'ptr {view}', 'i64 %chunk'])}")
        else:
            b.end(f"ret i64 {_ascending(b, type_, cursor.scalar(type_, '%i'), word)}")
        b.at(other)
    b.end("ret i64 0")
    head = "define internal i64 @row_word(ptr %x, i64 %i, i64 %part, i64 %chunk) nounwind"
    module.add(b.finish("row_word", head))


def _add_row_text(module: Module, parts: list[tuple[t.Type, int, int]]) -> None:
    """Adds `row_text(x, i, part) -> view`, of parts that are texts."""
    b = Builder()
    for number, (type_, column, _) in enumerate(parts):
        if is_text(type_):
            here, other = b.fresh("part"), b.fresh("other")
            b.branch(b.op(f"icmp eq i64 %part, {number}"), here, other)
            b.at(here)
            views = b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr %x, i64 {column}')}")
            b.end(f"ret ptr {b.op(f'getelementptr inbounds {{ i64, i64 }}, ptr {views}, i64 %i')}")
            b.at(other)
    b.end("ret ptr null")
    head = "define internal ptr @row_text(ptr %x, i64 %i, i64 %part) nounwind"
    module.add(b.finish("row_text", head))


def _ascending(b: Builder, type_: t.Type, value: str, word: int) -> str:
    """A word of a scalar; as numbers without sign, words have the total order of the scalars, 0.0 and -0.0 have one."""
    words = scalar_words(b, type_, value)
    if register(type_) == "i128":
        low, high = words
        return low if word else b.op(f"xor i64 {high}, {_SIGN}")
    (found,) = words
    if type_ in (t.F32, t.F64):
        negative = b.op(f"icmp slt i64 {found}, 0")
        positive = b.op(f"xor i64 {found}, {_SIGN}")
        return b.op(f"select i1 {negative}, i64 {b.op(f'xor i64 {found}, -1')}, i64 {positive}")
    return found if type_ in (t.U64, t.BOOL) else b.op(f"xor i64 {found}, {_SIGN}")


# ------------------------------------------------------------------------------------------------------------ rows


def _add_row_order(module: Module, type_: t.Type) -> None:
    """Adds `row_order(x, i, j) -> i64`: -1, 0 or 1 by the total order of two rows of columns x.

    Raises: Unsupported.
    """
    b = Builder()
    x, result = Cursor.of(b, type_, "%x"), b.slot("i64")

    def decide(found: str) -> None:
        b.do(f"store i64 {found}, ptr {result}")
        on = b.fresh("on")
        b.branch(b.op(f"icmp eq i64 {found}, 0"), on, "decided")
        b.at(on)

    def items(of: t.Type, first: str, other: str, count: str) -> None:
        at = x.at

        def item(n: str) -> None:
            x.at = at
            compare(of, b.op(f"add i64 {first}, {n}"), b.op(f"add i64 {other}, {n}"))

        counted(b, count, item)

    def compare(of: t.Type, i: str, j: str) -> None:
        match of:
            case t.UNIT:
                pass
            case t.STRING | t.BYTES | t.REGEX:
                column = x.take()
                views = [
                    f"ptr {b.op(f'getelementptr inbounds {{ i64, i64 }}, ptr {column}, i64 {row}')}"
                    for row in (i, j)
                ]
                decide(b.call("i64", "text_compare", views))
            case t.FSUM | t.Map() | t.Deque() | t.Bag() | t.OMap() | t.Function():
                raise Unsupported(f"the order of {of} in rows")
            case t.Primitive() | t.Decimal():
                at = x.at
                first = x.scalar(of, i)
                x.at = at
                decide(order_scalar(b, of, first, x.scalar(of, j)))
            case t.Optional(inner):
                at = x.at
                here = x.flag(i)
                x.at = at
                decide(order_scalar(b, t.BOOL, here, x.flag(j)))
                if_(b, here, lambda: compare(inner, i, j))
            case t.Record() | t.Tuple():
                for part in t.parts(of):
                    compare(part, i, j)
            case t.Array(item, size):
                items(item, b.op(f"mul i64 {i}, {size}"), b.op(f"mul i64 {j}, {size}"), str(size))
            case t.List(item):
                at = x.at
                first, after = x.extent(i)
                x.at = at
                other, end = x.extent(j)
                m, n = b.op(f"sub i64 {after}, {first}"), b.op(f"sub i64 {end}, {other}")
                least = b.op(f"select i1 {b.op(f'icmp slt i64 {m}, {n}')}, i64 {m}, i64 {n}")
                items(item, first, other, least)
                decide(order_scalar(b, t.I64, m, n))
            case _:
                assert_never(of)

    compare(type_, "%i", "%j")
    b.do(f"store i64 0, ptr {result}")
    b.at("decided")
    b.end(f"ret i64 {b.op(f'load i64, ptr {result}')}")
    module.add(b.finish("row_order", "define internal i64 @row_order(ptr %x, i64 %i, i64 %j) nounwind"))


__all__ = ["STEPS", "made"]
