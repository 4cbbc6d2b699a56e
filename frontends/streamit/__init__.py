"""River-StreamIt: graphs of filters with fixed rates, C-like code, and functions of the operator language.

Nouns: `syntax` (what a text says), `typed` (declarations with types, and the graph). Verbs: `parse`, `check` (with `code`,
`elaborate`, `rates`, `balance`), `lower` (with `operators`, `translate`). Paper: River section 3.3, Figure 3 (e) and (f).
"""

from __future__ import annotations

from river.frontend import Language

FRONTEND = Language("streamit", ".str", "frontends.streamit")
