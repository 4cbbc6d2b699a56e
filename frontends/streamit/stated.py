"""How a program runs, said in its text: the seed of its random numbers, and with how many decimals it prints floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.diagnostics import Diagnostic, Rejected
from river.source import Source

if TYPE_CHECKING:
    from river.frontend import LanguageOptions


def stated(source: Source, options: LanguageOptions) -> Source:
    """The text of a program with what the options say behind it, as lines such as `#river decimals 6`.

    Raises: Rejected("usage") for another number of decimals than 0 to 99.
    """
    decimals = options.get("decimals")
    if decimals is not None and decimals not in range(100):
        raise Rejected([Diagnostic("usage", f"`decimals` is {decimals}", help="a number from 0 to 99")])
    said = {"seed": options.get("seed"), "decimals": decimals}
    lines = [f"\n#river {name} {value}" for name, value in said.items() if value is not None]
    return Source(source.name, source.text + "".join(lines))
