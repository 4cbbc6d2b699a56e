"""A module under construction: the runtime, finished functions, constants, and what is made for types when it is asked for.

That is derived functions (see `derived`) and the functions of templates (see `derived.templates`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from backends.native.derived import DERIVED
from backends.native.derived.templates import SIGNATURES, Template, differences, entries, maps, sorting
from backends.native.ir import Builder, FunctionText, module_text, reachable
from backends.native.rtlang import compile_file
from backends.native.runtime_library import runtime, tables
from backends.native.shared import BEGIN
from river.classes import define, field
from river.lang import types as t
from river.lang.ranges import proven

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.layout import Keyed
    from river.lang import typed
    from river.lang.patterns import Regex

Of = TypeVar("Of", bound=t.Type)


@define(eq=False, repr=False)
class Module:
    """What has been made so far. `texts`: globals. `debug`: every access is checked (see `debug.py`).

    `lends`: texts of inputs are emitted without being copied. What is made for types is found by its kind or template, and the
    type: the names of derived functions, and the suffixes of templates' functions.
    """

    functions: dict[str, FunctionText] = field(factory=lambda: dict(runtime().functions))
    texts: list[str] = field(factory=list[str])
    debug: bool = False
    lends: bool = False
    patterns: dict[str, Regex] = field(factory=dict[str, "Regex"])  # by constant of type regex, what it is
    tables: dict[str, str] = field(
        factory=dict[str, str]
    )  # by the same, the address of its table, if anybody needs it
    _begin: Builder = field(factory=Builder)  # what is done when the code has been linked
    _names: dict[tuple[str, t.Type], str] = field(factory=dict[tuple[str, t.Type], str])
    _suffixes: dict[tuple[object, t.Type], str] = field(factory=dict[tuple[object, t.Type], str])
    _proven: dict[int, tuple[typed.Operator, frozenset[int]]] = field(
        factory=dict[int, tuple["typed.Operator", "frozenset[int]"]]
    )
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        if self.debug:
            self.functions = dict(runtime(debug=True).functions)

    def add(self, function: FunctionText) -> None:
        """A finished function."""
        self.functions[function.name] = function

    def fresh(self, stem: str) -> str:
        """A name of the module that nothing else bears."""
        self._count += 1
        return f"{stem}.{self._count}"

    def proven(self, operator: typed.Operator) -> frozenset[int]:
        """The sites at which an operator does not trap, so that nothing needs to be checked there."""
        if self.debug:
            return frozenset()
        if id(operator) not in self._proven:
            self._proven[id(operator)] = operator, proven(operator)
        return self._proven[id(operator)][1]

    def text(self, exports: dict[str, FunctionText]) -> str:
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

    def room(self, type_: str) -> str:
        """The symbol of memory for a value that is stored when the code has been linked."""
        name = self.fresh("room")
        self.texts.append(f"@{name} = global {type_} zeroinitializer, align 16")
        return name

    def index(self, type_: t.Map | t.Bag, index: str, segments: int, size: int, first: str) -> None:
        """Has the index of a constant filled, from its first entry on, when the code has been linked."""
        b, name = self._begin, self.map_function("map_fill", type_)
        args = [f"ptr {index}", f"i64 {segments}", f"i64 {size}", f"i64 ptrtoint (ptr {first} to i64)"]
        on = b.fresh("on")
        b.branch(b.call("i1", name, args), on, "full")
        b.at(on)

    def _begun(self) -> FunctionText:
        b = self._begin
        b.end("ret i1 true")
        b.at("full")
        b.end("ret i1 false")
        return b.finish(BEGIN, f"define i1 @{BEGIN}() nounwind")

    # -------------------------------------------------------------------------------------- made for types

    def derived(self, kind: str, type_: t.Type) -> str:
        """The name of the function of this kind for a type."""
        at = (kind, type_)
        if at not in self._names:
            self._names[at] = name = self.fresh(kind)
            self.add(DERIVED[kind](self, type_, name))
        return self._names[at]

    def map_function(self, name: str, type_: Keyed | t.Bag) -> str:
        """The name of function `name` of `map.rt` or `omap.rt` for containers of this type."""
        return name + self._suffix(maps, type_)

    def minus_function(self, name: str, item_: t.Type) -> str:
        """The name of function `name` of `minus.rt` for items of this type."""
        return name + self._suffix(differences, item_)

    def sort_function(self, key: t.Type) -> str:
        """The name of `sort_numbers` of `sort.rt` for keys of a type."""
        return "sort_numbers" + self._suffix(sorting, key)

    def entries_function(self, type_: t.Map | t.OMap | t.Bag) -> str:
        """The name of `entries_order` of `entries.rt` for maps of a type, or for bags."""
        return "entries_order" + self._suffix(entries, type_)

    def _suffix(self, template: Callable[[Of], Template], type_: Of) -> str:
        """What the names of a template's functions for a type end with."""
        at = (template, type_)
        if at not in self._suffixes:
            made = template(type_)
            self._suffixes[at] = suffix = "." + self.fresh(made.stem)
            renamed = {
                alias: (self.derived(kind, of), SIGNATURES[kind]) for alias, (kind, of) in made.needs.items()
            }
            found = compile_file(made.file, runtime(), given=made.given, renamed=renamed, suffix=suffix)
            self.functions.update(found.functions)
        return self._suffixes[at]
