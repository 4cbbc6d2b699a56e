"""A pass: filters that keep everything are taken out of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import evolve, frozen

from river.diagnostics import Note
from river.il import program as p
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.passes import Verified
    from river.platform import Platform


@frozen
class Trim:
    """`trim`: no `std.filter` whose condition is `true`. Its fields would be its options."""

    name: ClassVar[str] = "trim"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[p.Use]:
        idle = {d.name for d in verified.program.decls if isinstance(d, p.Instance) and _keeps_all(d)}
        return [use for use in verified.program.uses if use.operator in idle]

    def guard(self, verified: Verified, site: p.Use, /) -> Note | None:
        (before,), (after,) = site.ins, site.outs
        if before in verified.graph.inputs and after in verified.graph.outputs:
            return Note(f"without `{site.operator}`, `{after}` has no producer", site.span)
        return None

    def rewrite(self, verified: Verified, site: p.Use, /) -> p.Program:
        (before,), (after,) = site.ins, site.outs
        gone, kept = (before, after) if after in verified.graph.outputs else (after, before)

        def renamed(ends: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(kept if end == gone else end for end in ends)

        found: list[p.Decl] = []
        for decl in verified.program.decls:
            match decl:
                case p.Use() if decl is not site:
                    found.append(evolve(decl, ins=renamed(decl.ins), outs=renamed(decl.outs)))
                case p.Queue(name) if name == gone:
                    pass
                case p.Use():
                    pass
                case _:
                    found.append(decl)
        return p.Program(tuple(found))


def _keeps_all(instance: p.Instance) -> bool:
    where = dict(instance.args).get("where")
    return instance.template == "std.filter" and isinstance(where, s.Lambda) and where.body == s.Bool(True)
