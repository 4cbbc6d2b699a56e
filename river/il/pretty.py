"""Program to canonical IL text.

A declaration per line; a blank line between declarations of different sorts, and around those that have a body.
"""

from __future__ import annotations

from typing import assert_never

from river.il import program as p
from river.lang import syntax as s
from river.lang.layout import SPACE, WIDTH, Doc, Group, enclosed, render, separated
from river.lang.pretty import (
    expr_doc,
    extern_doc,
    fn_doc,
    operator_doc,
    spelled,
    template_arg_doc,
    template_doc,
    type_doc,
)


def pretty(program: p.Program, width: int = WIDTH) -> str:
    """The canonical text of the program, with its version line; `parse` reads it back as the same program."""
    lines = ["river 1;\n"]
    last = ""
    for decl in program.decls:
        sort = _sort(decl)
        if sort != last or sort == "body":
            lines.append("\n")
        lines.append(render(decl_doc(decl), width) + "\n")
        last = sort
    return "".join(lines)


def pretty_decl(decl: p.Decl, width: int = WIDTH) -> str:
    """The canonical text of one declaration, without a line end after it."""
    return render(decl_doc(decl), width)


def _sort(decl: p.Decl) -> str:
    match decl:
        case p.TypeDecl():
            return "types"
        case p.Input() | p.Output() | p.Queue() | p.Variable() | p.Result():
            return "queues and variables"
        case s.Extern() | p.Instance() | p.Lift():
            return "instances"
        case p.Use():
            return "uses"
        case s.Fn() | s.Operator() | s.Template():
            return "body"
    assert_never(decl)


def decl_doc(decl: p.Decl) -> Doc:
    """The layout of a declaration."""
    match decl:
        case p.TypeDecl(name, params, body):
            generic = "<" + ", ".join(params) + ">" if params else ""
            return ("type ", name, generic, " = ", type_doc(body), ";")
        case p.Input(name, kind, by, annotations):
            return _annotated(annotations, ("input ", _queue(name, kind, by), ";"))
        case p.Output(name, kind, by, view, annotations):
            leading = "" if view is None or view.leading is None else f", {view.leading}"
            source = f" = rows(${view.variable}, {view.function}{leading})" if view else ""
            return _annotated(annotations, ("output ", _queue(name, kind, by), source, ";"))
        case p.Queue(name, kind, by):
            return ("queue ", _queue(name, kind, by), ";")
        case p.Variable(name, kind, initial):
            return ("var $", name, ": ", type_doc(kind), " = ", expr_doc(initial), ";")
        case p.Result(name, parts, combined):
            how = " = combine" if combined else " = union"
            return ("result $", name, how, enclosed("(", ["$" + part for part in parts], ")"), ";")
        case p.Instance(name, template, args):
            given = (
                enclosed("<", [(key, " = ", template_arg_doc(arg)) for key, arg in args], ">") if args else ""
            )
            return ("operator ", name, " = ", template, given, ";")
        case p.Lift(name, operator, tag):
            return f"operator {name} = lift({operator}, {tag});"
        case p.Use(outs, operator, ins, annotations):
            use = (enclosed("(", _ends(outs), ")"), " <- ", operator, enclosed("(", _ends(ins), ")"), ";")
            return _annotated(annotations, use)
        case s.Fn():
            return fn_doc(decl)
        case s.Operator():
            return operator_doc(decl)
        case s.Extern():
            return extern_doc(decl)
        case s.Template():
            return template_doc(decl)
    assert_never(decl)


def _queue(name: str, kind: s.TypeExpr, by: str | None) -> Doc:
    return (spelled(name), ": ", type_doc(kind), "" if by is None else " by " + spelled(by))


def _ends(names: tuple[str, ...]) -> list[Doc]:
    """Queues, and variables behind a `$`."""
    return [name if name.startswith("$") else spelled(name) for name in names]


def _annotated(annotations: tuple[p.Annotation, ...], decl: Doc) -> Doc:
    return Group(separated([*(_annotation(a) for a in annotations), decl], SPACE)) if annotations else decl


def _annotation(annotation: p.Annotation) -> Doc:
    return ("@", annotation.name, enclosed("(", [expr_doc(a) for a in annotation.args], ")"))
