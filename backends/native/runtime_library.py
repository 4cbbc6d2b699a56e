"""The runtime library: the files of `runtime/` that depend on no type.

Its functions are text that becomes part of each module that calls them, and is optimised there with its callers. Large
functions and those for what is rare are not worth that: they are compiled once, in parts of their own, and modules only
declare them. A part is `BASE`, what nearly all operators need, or a large function with all that it calls.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.contract import BASE
from backends.native.ir import FunctionText, module_text, reachable
from backends.native.pages import HUGE
from backends.native.rtlang import ATTRIBUTES, Unit, Written, compile_file, llvm, written
from backends.native.tables import TABLES, constant

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILES: Final = (
    "arena.rt", "guard.rt", "wide.rt", "text.rt", "sums.rt", "times.rt", "regex.rt", "matches.rt", "floats.rt", "decimals.rt",
    "unicode.rt", "formats.rt",
)  # fmt: skip
_NAMED: Final = {
    "arena_close": BASE, "frame_close": BASE, "guard": BASE, "further": BASE, "table_grow": BASE,
    "list_grow": "growth", "deque_grow": "growth", "regex_begin": "regex", "regex_skip": "regex", "regex_remain": "regex",
    "regex_behind": "regex",
}  # fmt: skip
_LARGE: Final = 32
"""Lines from which on a function is a part: its calls cost nothing beside it."""

_NEAR: Final = ("regex_dfa", "regex_reach")  # are quicker where their pattern is known


_DECLARED: Final = re.compile(r"^declare [^@]*@(\w+)\(", re.MULTILINE)


@cache
def runtime(*, debug: bool = False) -> Unit:
    """The files, with declarations of what is in parts. Code that checks itself (`debug`) has no parts."""
    unit = _whole(debug=debug)
    if debug:
        return unit
    functions = unit.functions | {name: _declared(unit, written) for name, (_, written) in _apart().items()}
    return Unit(unit.signatures, functions, unit.records, unit.constants)


def parts(text: str) -> dict[str, str]:
    """The functions that a module declares, and the part of each."""
    apart = _apart()
    return {name: apart[name][0] for name in _DECLARED.findall(text) if name in apart}


def part(name: str) -> tuple[str, tuple[str, ...]]:
    """The module of a part, and what it exports."""
    unit, apart = _whole(), _apart()
    exports = tuple(function for function, (of, _) in apart.items() if of == name)
    base = {of: written for of, (where, written) in apart.items() if where == BASE != name}
    functions = unit.functions | {of: _declared(unit, written) for of, written in base.items()}
    used = reachable(functions, exports)
    seen = set(exports)
    texts = [f.text.replace("define internal", "define", 1) if f.name in seen else f.text for f in used]
    return module_text((*tables(used), *texts)), exports


def may_release(functions: dict[str, FunctionText], names: Iterable[str]) -> bool:
    """Whether a function of some, or one that it calls, may release memory of a kept arena (`arena.rt`).

    Functions of parts count as such, but for those of `BASE`.
    """
    apart = _apart()
    used = (each.name for each in reachable(functions, names))
    return any(name == "release" or (name in apart and apart[name][0] != BASE) for name in used)


def tables(used: Iterable[FunctionText]) -> list[str]:
    """The tables that functions name."""
    return [constant(name) for name in sorted({name for f in used for name in f.calls if name in TABLES})]


@cache
def _whole(*, debug: bool = False) -> Unit:
    unit = Unit()
    for name in (*_FILES, "debug.rt") if debug else _FILES:
        found = compile_file(name, unit, given={"DEBUG": int(debug), "HUGE": HUGE})
        found.functions.update(unit.functions)
        unit = found
    return unit


@cache
def _apart() -> dict[str, tuple[str, Written]]:
    """By name, the functions that modules declare: the part of each, and how it is written."""
    found: dict[str, tuple[str, Written]] = {}
    for file in _FILES:
        for each in written(file):
            if each.name in _NAMED:
                found[each.name] = (_NAMED[each.name], each)
            elif file == "arena.rt" and each.kind == "cold":
                found[each.name] = (BASE, each)
            elif each.kind != "inline" and each.lines >= _LARGE and each.name not in _NEAR:
                found[each.name] = (each.name, each)
    return found


def _declared(unit: Unit, function: Written) -> FunctionText:
    signature = unit.signatures[function.name]
    params = ", ".join(map(llvm, signature.params))
    head = f"declare {llvm(signature.result)} @{function.name}({params})"
    return FunctionText(function.name, f"{head} {ATTRIBUTES[function.kind]}\n")
