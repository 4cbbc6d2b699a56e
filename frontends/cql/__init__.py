"""River-CQL: continuous queries over streams and relations (paper sections 3.1 to 3.3, Figure 3 b).

Nouns: `syntax` (what a text says), `typed` (windows, relational algebra, stream operators). Verbs: `parse`, `assume` (sources
that are not declared), `check`, `lower`, `algebra` (for people). The operators are templates, in `templates/*.river`, namespace
`cql`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from river.frontend import Language


class Cql(Language):
    """The frontend of River-CQL."""

    name: ClassVar[str] = "cql"
    suffix: ClassVar[str] = ".cql"
    package: ClassVar[str] = "frontends.cql"
    options: ClassVar[frozenset[str]] = frozenset({"params"})

    def algebra(self, typed: Any, /) -> str:
        """The algebra of a typed program, for people (see `Frontend`)."""
        return self._arrow("algebra")(typed)


FRONTEND = Cql()
