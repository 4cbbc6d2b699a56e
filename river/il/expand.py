"""The arrow from instances and lifts to the operators that they stand for: what `--expand` prints."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from river.classes import evolve
from river.diagnostics import Diagnostic, Rejected, closest
from river.il.instantiate import instantiate
from river.il.lift import lift
from river.il.namespaces import check_template
from river.il.program import Decl, Instance, Lift, Program
from river.il.trees import Same
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.il.namespaces import Library


def expand(decl: Instance | Lift, decls: Mapping[str, Decl], library: Library) -> s.Operator | s.Extern:
    """The operator that an instance or a lift stands for; `decls` are the program's operators and templates by name.

    The same declarations give the same object again.

    Raises: Rejected with the codes of `instantiate` and `lift`, and il-template-unknown, il-unknown-operator,
        il-lift-cycle.
    """
    return _expand(decl, decls, library, ())


def _expand(
    decl: Instance | Lift, decls: Mapping[str, Decl], library: Library, open_: tuple[str, ...]
) -> s.Operator | s.Extern:
    match decl:
        case Instance(_, template, _):
            own = decls.get(template)
            return _instance(Same(decl), Same(own if isinstance(own, s.Template) else None), Same(library))
        case Lift(name, operator, _):
            inner = decls.get(operator)
            if operator in (*open_, name):
                message = f"`{name}` is made of itself"
                raise Rejected([Diagnostic("il-lift-cycle", message, decl.span)])
            if isinstance(inner, Instance | Lift):
                inner = _expand(inner, decls, library, (*open_, name))
            if not isinstance(inner, s.Operator | s.Extern):
                known = [n for n, d in decls.items() if not isinstance(d, s.Template)]
                message = f"unknown operator `{operator}`"
                raise Rejected(
                    [Diagnostic("il-unknown-operator", message, decl.span, help=closest(operator, known))]
                )
            return _lifted(Same(decl), Same(inner))


@lru_cache(maxsize=8192)
def _instance(decl: Same[Instance], own: Same[s.Template | None], library: Same[Library]) -> s.Operator:
    name, template, args = decl.value.name, decl.value.template, decl.value.args
    if own.value is not None:
        if errors := check_template(own.value):
            raise Rejected(errors)
        return instantiate(own.value, args, name, decl.value.span)
    found, left = library.value.template(template, args, decl.value.span)
    return instantiate(found, left, name, decl.value.span)


@lru_cache(maxsize=8192)
def _lifted(decl: Same[Lift], inner: Same[s.Operator | s.Extern]) -> s.Operator:
    return evolve(lift(inner.value, decl.value.tag, decl.value.span), name=decl.value.name)


def expand_instances(program: Program, library: Library) -> Program:
    """The program with a full operator in place of every instance and lift; its templates are no longer needed.

    Types and functions of a namespace keep their qualified names.

    Raises: Rejected with all errors of the instances.
    """
    operators = named_operators(program)
    errors: list[Diagnostic] = []
    decls: list[Decl] = []
    for decl in program.decls:
        match decl:
            case Instance() | Lift():
                try:
                    decls.append(expand(decl, operators, library))
                except Rejected as rejected:
                    errors += rejected.diagnostics
            case s.Template():
                pass
            case _:
                decls.append(decl)
    if errors:
        raise Rejected(errors)
    return Program(tuple(decls))


def named_operators(program: Program) -> dict[str, Decl]:
    """The operators, instances, lifts and templates of a program by name; the first of a name wins."""
    found: dict[str, Decl] = {}
    for decl in program.decls:
        match decl:
            case s.Template(_, operator):
                found.setdefault(operator.name, decl)
            case s.Operator(name) | s.Extern(name) | Instance(name) | Lift(name):
                found.setdefault(name, decl)
            case _:
                pass
    return found
