"""How deeply programs nest, and room on Python's stack for whoever reads their trees by recursion.

A text deeper than `MAX_DEPTH` is refused where it is read, and long chains are no depth: `and` and `or` over many operands are
balanced, functions that call one another are checked one after the other. So what is read by recursion is at most a
few times as deep as a text may be; Python's own limit, 1,000 calls of which the caller has used some, is too low for that.
"""

from __future__ import annotations

import sys
from typing import Final

MAX_DEPTH: Final = 200
"""Levels of nesting that a text may have; more would exhaust the stack of whoever reads the tree by recursion."""

_CALLS: Final = 20_000  # MAX_DEPTH levels that become five each, read by 20 nested functions each


def room(calls: int = _CALLS) -> None:
    """Lets Python calls nest so deeply, at first as the deepest text needs. They take no room on the C stack."""
    if sys.getrecursionlimit() < calls:
        sys.setrecursionlimit(calls)
