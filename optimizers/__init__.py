"""The optimizers that River comes with: each a pass over River IL, safe by its guard.

A backend says which of them its programs go through, and in which order (`river.backend.Backend.passes`).
"""

from __future__ import annotations

from optimizers.expand import Expand
from optimizers.fission import Fission
from optimizers.fusion import Fusion
from optimizers.hoisting import Hoisting
from optimizers.linear import Linear
from optimizers.placement import Placement
from optimizers.sharing import Sharing
from optimizers.zipping import Zipping

__all__ = ["Expand", "Fission", "Fusion", "Hoisting", "Linear", "Placement", "Sharing", "Zipping"]
