"""The parser of a form as machine code."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.ingest.form import Form, live, sizes, stated
from backends.native.ingest.grammar import source
from backends.native.jit import level
from backends.native.shared import ModuleText, shared
from river.classes import frozen
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.ir import FunctionText
    from backends.native.jit import Code
    from backends.native.rtlang import Unit

_EXPORTS: Final = {
    "parse": (("ptr",), "void"),
    "record_end": (("ptr", "i64"), "i64"),
    "border": (("ptr", "i64"), "i64"),
    "cut": (("ptr",), "i64"),
    "cut_slowly": (("ptr",), "i64"),
    "scatter": (("ptr", "ptr", "i64", "ptr", "i64"), "void"),
    "compact": (("ptr", "i64", "ptr", "i64", "i64"), "void"),
}


@frozen
class Parser:
    """Compiled functions of a form, and where the fields of the record `Ingest` lie, in words.

    `sizes`: bytes of an item of each column; `live`: which columns it fills; `stated`: which the file does not have.
    `texts`: whether rows have views into the text of the file.
    """

    code: Code
    words: dict[str, int]
    count: int
    sizes: tuple[int, ...]
    live: tuple[bool, ...]
    stated: tuple[bool, ...]
    texts: bool


@cache
def parser(form: Form) -> Parser:
    """The parser of a covered form."""

    def make() -> ModuleText:
        from backends.native.ingest.vectors import tables
        from backends.native.ir import module_text, reachable
        from backends.native.rtlang import compile_tree, parsed

        unit = _library(form)
        unit = _joined(compile_tree(parsed(source(form)), form.format, unit), unit)
        names = [name for name in _EXPORTS if name in unit.functions]
        exports = {f"ingest_{name}": _exported(name) for name in names}
        used = reachable(unit.functions | exports, exports)
        floats = any(function.name == "nearest" for function in used)
        text = module_text([tables(floats), *(function.text for function in used)])
        size, fields = unit.records["Ingest"]
        return ModuleText(text, tuple(exports), [size // 8, {n: at // 8 for n, (_, at) in fields.items()}])

    effort = level()
    code = shared(f"ingest {effort} {form.format} {form.delimiter} {source(form)}", make, effort)
    count, words = code.facts
    texts = t.contains(form.type, t.STRING, t.BYTES)
    return Parser(code, words, count, sizes(form.type), live(form), stated(form), texts)


def _joined(unit: Unit, known: Unit) -> Unit:
    """A unit with what it was compiled against."""
    from backends.native.rtlang import Unit

    return Unit(
        known.signatures | unit.signatures, known.functions | unit.functions,
        known.records | unit.records, known.constants | unit.constants,
    )  # fmt: skip


def _library(form: Form) -> Unit:
    from backends.native.ingest.vectors import vectors
    from backends.native.rtlang import compile_file
    from backends.native.runtime_library import runtime

    unit = _joined(vectors(form.delimiter), runtime())
    files: list[tuple[str, dict[str, int]]] = [("ingest.rt", {})]
    if form.delimited:
        files.append(("ingest_csv.rt", {"DELIMITER": ord(form.delimiter)}))
    if form.format == "jsonl":
        files.append(("ingest_json.rt", {}))
    for name, given in files:
        unit = _joined(compile_file(name, unit, given=given), unit)
    return unit


def _exported(name: str) -> FunctionText:
    from backends.native.ir import Builder

    params, result = _EXPORTS[name]
    b = Builder()
    found = b.call(result, name, [f"{kind} %a{i}" for i, kind in enumerate(params)])
    b.end(f"ret {result} {found}".rstrip())
    heads = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(params))
    return b.finish(f"ingest_{name}", f"define {result} @ingest_{name}({heads}) nounwind")
