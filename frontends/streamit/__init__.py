"""River-StreamIt: graphs of filters with fixed rates, C-like code, and functions of the operator language.

Nouns: `syntax` (what a text says), `typed` (declarations with types, and the graph). Verbs: `parse`, `check` (with `code`,
`elaborate`, `rates`, `balance`), `lower` (with `operators`, `translate`). Paper: River section 3.3, Figure 3 (e) and (f).
"""

from __future__ import annotations

from typing import ClassVar

from river.frontend import Language


class StreamIt(Language):
    """The frontend of River-StreamIt."""

    name: ClassVar[str] = "streamit"
    suffix: ClassVar[str] = ".str"
    package: ClassVar[str] = "frontends.streamit"


FRONTEND = StreamIt()
