"""River-StreamIt: graphs of filters with fixed rates, C-like code, and functions of the operator language.

Nouns: `syntax` (what a text says), `typed` (declarations with types, and the graph). Verbs: `parse`, `check` (with `code`,
`elaborate`, `rates`, `balance`), `lower` (with `operators`, `translate`). Paper: River section 3.3, Figure 3 (e) and (f).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from river.frontend import Language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frontends.streamit.syntax import Program
    from river.source import Source


class StreamIt(Language):
    """The frontend of River-StreamIt."""

    name: ClassVar[str] = "streamit"
    suffix: ClassVar[str] = ".str"
    legacy: ClassVar[str] = "latin-1"
    package: ClassVar[str] = "frontends.streamit"
    options: ClassVar[frozenset[str]] = frozenset({"seed", "decimals"})

    def whole(self, asts: Sequence[Program], main: str | None, /) -> Program:
        """The declarations of several texts as those of one, whose program is the stream `main` if it is named."""
        from frontends.streamit.syntax import Program

        return Program(
            tuple(stream for ast in asts for stream in ast.streams),
            tuple(static for ast in asts for static in ast.statics),
            tuple(helpers for ast in asts for helpers in ast.helpers),
            tuple(struct for ast in asts for struct in ast.structs),
            tuple(fn for ast in asts for fn in ast.fns),
            frozenset[str]().union(*(ast.natives for ast in asts)),
            frozenset[str]().union(*(ast.vectors for ast in asts)),
            next((ast.seed for ast in asts if ast.seed is not None), None),
            next((ast.decimals for ast in asts if ast.decimals is not None), None),
            main,
            span=asts[0].span,
        )

    def included(self, source: Source, /) -> tuple[Source, ...]:
        """The texts from which arrays of a program are read."""
        if "init_array" not in source.text:
            return ()
        from frontends.streamit.parse import included

        return included(source)


FRONTEND = StreamIt()
