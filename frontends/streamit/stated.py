"""The seed of a program's random numbers, said in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.source import Source

if TYPE_CHECKING:
    from river.frontend import LanguageOptions


def stated(source: Source, options: LanguageOptions) -> Source:
    """The text of a program with the seed of its random numbers behind it, as it says that itself."""
    seed = options.get("seed")
    return source if seed is None else Source(source.name, f"{source.text}\n#river seed {seed}")
