"""What follows from who calls whom, which is known when all functions are: captures, and which results may be undefined."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import evolve

from frontends.sawzall import typed as z
from frontends.sawzall.operations import DRAWS
from river.il.trees import rebuild, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.lang import syntax as s


def callees(node: s.Node) -> frozenset[int]:
    """The functions that something calls itself."""
    return frozenset(each.function for each in walk(node) if isinstance(each, z.Call))


def emitting(functions: Sequence[z.Function]) -> frozenset[int]:
    """The functions that emit, themselves or through others."""
    found = frozenset(i for i, f in enumerate(functions) if any(isinstance(node, z.Emit) for node in walk(f)))
    return _reaching(functions, found)


DRAWN = frozenset({"sample", "weightedsample", "bootstrapsum"})
"""Kinds of tables for whose items numbers are drawn."""


def draws(node: s.Node, tables: Sequence[z.Table]) -> bool:
    """Whether something draws random numbers itself."""
    return any(
        (isinstance(each, z.Apply) and each.operation in DRAWS)
        or (isinstance(each, z.Emit) and tables[each.table].kind in DRAWN)
        for each in walk(node)
    )


def drawing(functions: Sequence[z.Function], tables: Sequence[z.Table]) -> frozenset[int]:
    """The functions that draw random numbers, themselves or through others."""
    return _reaching(functions, frozenset(i for i, f in enumerate(functions) if draws(f, tables)))


def _reaching(functions: Sequence[z.Function], found: frozenset[int]) -> frozenset[int]:
    """Functions, and those that call them."""
    called = [callees(f) for f in functions]
    while more := frozenset(i for i, names in enumerate(called) if names & found) - found:
        found |= more
    return found


def closed(
    functions: Sequence[z.Function], variables: list[z.Variable], body: Sequence[z.Stmt]
) -> tuple[list[z.Function], tuple[z.Stmt, ...]]:
    """Functions that capture what those they call capture, and pass it on; `variables` grows by these captures."""
    captures = [dict(f.captures) for f in functions]
    called = [callees(f) for f in functions]
    left = list(range(len(functions)))
    while left:
        callee = left.pop()
        for caller, names in enumerate(called):
            if callee in names and (new := captures[callee].keys() - captures[caller].keys()):
                for outside in sorted(new):
                    captures[caller][outside] = len(variables)
                    known = variables[outside]
                    variables.append(z.Variable(known.name, known.type, "capture", span=known.span))
                left.append(caller)

    def passing(node: s.Node, inside: dict[int, int] | None) -> s.Node:
        """A tree whose calls pass captures on; `inside`: the captures of the function that it is in."""

        def rewrite(part: s.Node) -> s.Node:
            part = rebuild(part, rewrite)
            if not isinstance(part, z.Call):
                return part
            wanted = [outside if inside is None else inside[outside] for outside in captures[part.function]]
            if [read.variable for read in part.captures] == wanted:
                return part
            return evolve(part, captures=tuple(z.Read(variables[each].type, each) for each in wanted))

        return rewrite(node)

    found = [
        evolve(
            f, captures=tuple(own.items()), body=tuple(cast("z.Stmt", passing(part, own)) for part in f.body)
        )
        for f, own in zip(functions, captures, strict=True)
    ]
    return judged(found), tuple(cast("z.Stmt", passing(part, None)) for part in body)


def judged(functions: Sequence[z.Function]) -> list[z.Function]:
    """Functions that know whether their result may be undefined, and whether they may end the record."""
    found = list(functions)
    while True:
        failing = frozenset(i for i, f in enumerate(found) if f.fails)
        next_ = [
            evolve(
                f,
                fails=any(
                    isinstance(node, z.Return) and node.value is not None and z.may_fail(node.value, failing)
                    for part in f.body
                    for node in walk(part)
                ),
                ends=(f.result is not None and not z.leaves(f.body))
                or any(z.may_end(part, found) for part in f.body),
            )
            for f in found
        ]
        if next_ == found:
            return found
        found = next_
