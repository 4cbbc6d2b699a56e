"""Lanes: one handler fired on several rows at once, a row per element of vectors (il.md P9).

`uniformity` says whether that is possible; `body` makes the code of a block of firings; `block` the loop over blocks
around it, with the scalar code (the twin) for the rest, and for blocks in which a lane traps.
"""

from backends.native.lanes.block import widen
from backends.native.lanes.uniformity import Lanes, Scalar, fireable, lanes_of

__all__ = ["Lanes", "Scalar", "fireable", "lanes_of", "widen"]
