"""Hypothesis strategies: regular expressions in RE2's syntax, and texts in which they occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    import random

LETTERS = "abcAB01 _-./:\né😀"

texts = st.text(st.sampled_from(LETTERS), max_size=12)

_CLASSES = (
    r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", ".", "[a-c]", "[^a]", "[a0-9_]", r"[^\d/:]", r"[\w.-]", "[A-B]", r"[^\sb]",
    "[é-ü]", r"[\x{80}-\x{10FFFF}]", "[[:^alpha:]b]",
)  # fmt: skip
_PLACES = ("^", "$", r"\b", r"\B", r"\A", r"\z", "")
_COUNTS = ("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}")
_FLAGS = ("", "(?i)", "(?m)", "(?s)", "(?U)", "(?ms)")

_Part = tuple[str, bool]  # a pattern, and whether the empty text may match

_letters = st.sampled_from(LETTERS).map(
    lambda c: ("\\n" if c == "\n" else "\\" + c if c in "./:-" else c, False)
)
_leaves: st.SearchStrategy[_Part] = (
    _letters
    | _letters
    | st.sampled_from(_CLASSES).map(lambda text: (text, False))
    | st.sampled_from(_PLACES).map(lambda text: (text, True))
)


def _joined(parts: list[_Part]) -> _Part:
    texts = [f"(?:{text})" if "|" in text else text for text, _ in parts]
    return "".join(texts), all(empty for _, empty in parts)


def _chosen(parts: list[_Part]) -> _Part:
    return f"(?:{'|'.join(text for text, _ in parts)})", any(empty for _, empty in parts)


def patterns(*, empty_rounds: bool) -> st.SearchStrategy[str]:
    """Patterns; `empty_rounds`: with loops over what may be empty, where engines differ in captures."""

    def repeated(made: tuple[_Part, str, str]) -> _Part:
        (text, empty), count, lazy = made
        if empty and not empty_rounds:
            return text, empty
        return f"(?:{text}){count}{lazy}", empty or count[0] in "*?" or count.startswith("{0")

    def extended(inner: st.SearchStrategy[_Part]) -> st.SearchStrategy[_Part]:
        several = st.lists(inner, min_size=2, max_size=3)
        return (
            several.map(_joined)
            | several.map(_chosen)
            | inner.map(lambda part: (f"({part[0]})", part[1]))
            | inner.map(lambda part: (f"(?i:{part[0]})", part[1]))
            | st.tuples(inner, st.sampled_from(_COUNTS), st.sampled_from(("", "", "?"))).map(repeated)
        )

    whole = st.recursive(_leaves, extended, max_leaves=8)
    return st.tuples(st.sampled_from(_FLAGS), whole).map(lambda made: made[0] + made[1][0])


_PIECES = (
    "a", "b", "ab", "é", "😀", " ", "/", r"\.", "[ab]", "[^ ]", r"[^\]/]", r"\d", r"\w", r"\s", r"\S", ".", "[0-9A-F]",
    "[a-c_é]", "[é-ü]", "[acegikm0]", "(?i:b)", "",
)  # fmt: skip
_ROUNDS = ("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{5}", "{0}", "*?", "+?", "??")


def lines(chance: random.Random, depth: int = 2) -> str:
    """A pattern as people write it for the parts of a line: classes, literals and groups one behind the other.

    Of many of them the next byte says at each place how to go on.
    """
    found: list[str] = []
    for _ in range(chance.randrange(1, 5)):
        piece = chance.choice(_PIECES)
        if depth and chance.random() < 0.3:
            ways = [lines(chance, depth - 1) for _ in range(chance.choice((1, 1, 2, 3)))]
            piece = f"{chance.choice(('(', '(', '(?:'))}{'|'.join(ways)})"
        elif len(piece) == 2 and piece[0] != "\\":
            piece = f"(?:{piece})"
        found.append(piece + (chance.choice(_ROUNDS) if piece and chance.random() < 0.5 else ""))
    return "".join(found)
