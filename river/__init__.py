"""River: one execution environment for many stream languages.

    import river
    program = river.compile("delays: ... = select ... ;", lang="cql")
    results = program.run({"flights": "flights.csv"})
    results["delays"]                       # a pyarrow.Table

Paper: Soulé, Hirzel, Gedik, Grimm, "From a Calculus to an Execution Environment for Stream Processing" (2011).
"""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from river.checkpoint import Checkpoint
    from river.diagnostics import Diagnostic, Rejected
    from river.driver import Compiled, Results
    from river.frontend import LanguageOptions
    from river.io.live import Follow, Live
    from river.manifest import Epoch

    __version__: str

__all__ = [
    "Checkpoint",
    "Compiled",
    "Diagnostic",
    "Epoch",
    "Live",
    "Rejected",
    "Results",
    "__version__",
    "compile",
    "epochs",
    "follow",
    "load",
]


def compile(  # noqa: A001 - the word of the trade
    text: str,
    lang: str,
    *,
    name: str | None = None,
    main: str | None = None,
    **options: Unpack[LanguageOptions],
) -> Compiled:
    """A program text in language `lang` (`cql`, `river`, ...) as a program that can be run.

    `name` is what messages call the text; `main`: in StreamIt, the stream that is the program. `options`: how the text is
    read, such as `params={"least": 3}` in CQL and `zone="Asia/Tokyo"` in Sawzall.

    Raises: Rejected, which carries every diagnostic.
    """
    from river.driver import compile_once, stated
    from river.source import Source

    return _ready(compile_once(stated(Source(name or f"<{lang}>", text), lang, options), lang, main=main))


def load(
    path: str | PathLike[str],
    lang: str | None = None,
    *,
    more: Sequence[str | PathLike[str]] = (),
    main: str | None = None,
    **options: Unpack[LanguageOptions],
) -> Compiled:
    """The program in the file at `path`; its suffix tells the language unless `lang` does.

    `more`: in StreamIt, the other files of the program; `main`: the stream that is the program; `options`: as in `compile`.
    Raises: Rejected.
    """
    from river.driver import compile_once, read_source, stated

    others = tuple(read_source(fspath(other)) for other in more)
    return _ready(
        compile_once(stated(read_source(fspath(path)), lang, options), lang, more=others, main=main)
    )


def follow(path: str | PathLike[str], format: str | None = None) -> Follow:
    """A file that grows or a folder that gets files, as an input: it is read, and what is added to it.

    `format`: csv, tsv, jsonl or text, where the suffix does not tell.
    """
    from river.io.live import Follow

    return Follow(fspath(path), format)


def epochs(folder: str | PathLike[str]) -> tuple[Epoch, ...]:
    """The epochs of a run on Spark whose state is in `folder`: which files of inputs each had, and which of outputs it has made.

    Raises: Rejected where a manifest is missing or damaged.
    """
    from river.manifest import epochs

    return epochs(folder)


def _ready(program: Compiled) -> Compiled:
    """The program, when what most runs need has been imported: then its first run takes hardly longer than the next."""
    from contextlib import suppress

    from river import plugins
    from river.backend import DEFAULT
    from river.diagnostics import Rejected

    with suppress(Rejected):  # who runs a program is told that the backend is broken
        ready = getattr(plugins.backend(DEFAULT), "ready", None)
        if ready is not None:
            ready()
    return program


def __getattr__(name: str) -> Any:
    """Public names that cost an import are fetched when first used."""
    if name in ("Compiled", "Results"):
        from river import driver

        return getattr(driver, name)
    if name == "Checkpoint":
        from river.checkpoint import Checkpoint

        return Checkpoint
    if name == "Live":
        from river.io.live import Live

        return Live
    if name == "Epoch":
        from river.manifest import Epoch

        return Epoch
    if name in ("Diagnostic", "Rejected"):
        from river import diagnostics

        return getattr(diagnostics, name)
    if name == "__version__":
        from river.entries import version

        return version("river-streams")
    raise AttributeError(f"module `river` has no attribute `{name}`")
