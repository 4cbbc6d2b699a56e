"""River-Sawzall: a program for each record, and tables that gather what it emits (paper section 3.3, Figure 3 d).

Nouns: `syntax` (what a text says), `typed` (names resolved, types known), `types`, `operations` (operators and functions),
`times` (their texts), `tables` (kinds of tables), `library` (functions in the operator language, `*.river`). Verbs:
`parse` (with `protofile`, `habits`), `check` (with `expressions`, `names`, `calls`), `lower` (with `itemwise`, `body`, `values`,
`messages`, `recursive`, `reduce`).
The reducers are templates, in `templates/*.river`, namespace `sawzall`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from river.frontend import Language

if TYPE_CHECKING:
    from river.source import Source


class Sawzall(Language):
    """The frontend of River-Sawzall."""

    name: ClassVar[str] = "sawzall"
    suffix: ClassVar[str] = ".szl"
    package: ClassVar[str] = "frontends.sawzall"
    options: ClassVar[frozenset[str]] = frozenset({"undefined", "zone", "env", "load", "seed"})

    def included(self, source: Source, /) -> tuple[Source, ...]:
        """The other files that make the program: see `Frontend`."""
        if not any(word in source.text for word in ("include", "proto", "now", "resourcestats")):
            return ()
        from frontends.sawzall.parse import included

        return included(source)


FRONTEND = Sawzall()
