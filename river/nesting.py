"""How deeply programs nest, and room on Python's stack for whoever reads their trees by recursion.

A text deeper than `MAX_DEPTH` is refused where it is read, and long chains are no depth: `and` and `or` over many operands are
balanced, functions that call one another are checked one after the other. So what is read by recursion is at most a
few times as deep as a text may be; Python's own limit, 1,000 calls of which the caller has used some, is too low for that.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_DEPTH: Final = 200
"""Levels of nesting that a text may have; more would exhaust the stack of whoever reads the tree by recursion."""

_CALLS: Final = 20_000  # MAX_DEPTH levels that become five each, read by 20 nested functions each


def room() -> None:
    """Lets Python calls nest as deeply as the deepest program needs. They take no room on the C stack."""
    if sys.getrecursionlimit() < _CALLS:
        sys.setrecursionlimit(_CALLS)


@contextmanager
def more_room(calls: int) -> Generator[None]:
    """Lets Python calls nest so deeply inside the block: for what a text makes, which may be deeper than any text."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, calls))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
