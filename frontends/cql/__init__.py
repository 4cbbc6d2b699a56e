"""River-CQL: continuous queries over streams and relations (paper sections 3.1 to 3.3, Figure 3 b).

Nouns: `syntax` (what a text says), `typed` (windows, relational algebra, stream operators). Verbs: `parse`, `assume` (sources
that are not declared), `check`, `lower`. The operators are templates, in `templates/*.river`, namespace `cql`.
"""

from __future__ import annotations

from river.frontend import Language

FRONTEND = Language("cql", ".cql", "frontends.cql")
