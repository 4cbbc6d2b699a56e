"""Texts that are nearly programs: a program with a few words taken out, doubled, exchanged or put in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
STRANGE: Final = (
    "(", ")", "{", "}", "[", "]", "<", ">", ";", ",", ":", ".", "=", "+", "-", "*", "/", "#", "$", "@", "'", '"', "/*",
    "0", "1", "-1", "9223372036854775808", "1e999", "none", "true", "if", "x", "é", "\0", "\n", "",
)  # fmt: skip
"""Words that a text may not expect."""


@st.composite
def broken(draw: st.DrawFn, texts: Sequence[str], most: int = 3) -> str:
    """One of `texts` after at most `most` accidents; new words come from all of them, and from `STRANGE`."""
    words = WORD.findall(draw(st.sampled_from(texts)))
    known = sorted({word for text in texts for word in WORD.findall(text) if not word.isspace()})
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, len(words)))
        match draw(st.sampled_from(["replace", "insert", "delete", "double", "exchange", "cut"])):
            case "replace":
                words[at : at + 1] = [draw(st.sampled_from(known))]
            case "insert":
                words[at:at] = [draw(st.sampled_from([*STRANGE, *known]))]
            case "delete":
                del words[at : at + draw(st.integers(1, 5))]
            case "double":
                words[at:at] = words[at : at + draw(st.integers(1, 20))]
            case "exchange":
                other = draw(st.integers(0, len(words)))
                low, high = sorted((at, other))
                words[low : low + 1], words[high : high + 1] = words[high : high + 1], words[low : low + 1]
            case _:
                del words[at:]
    return "".join(words)
