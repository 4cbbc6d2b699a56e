"""The optimizers that River comes with: each a pass over River IL, safe by its guard.

`ORDER` is the standard pipeline: selections first, because they make the rest cheaper; regions before fusion, because
fused operators must not span the border of a region; placement last, when it is known what is to be placed. Expansion is
not part of it: platforms with an ordered runtime run regions as they are annotated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from optimizers.expand import Expand
from optimizers.fission import Fission
from optimizers.fusion import Fusion
from optimizers.hoisting import Hoisting
from optimizers.placement import Placement
from optimizers.sharing import Sharing
from optimizers.zipping import Zipping

if TYPE_CHECKING:
    from river.passes import Pass

ORDER: Final[tuple[Pass[Any], ...]] = (Hoisting(), Fission(), Fusion(), Placement())

__all__ = ["ORDER", "Expand", "Fission", "Fusion", "Hoisting", "Placement", "Sharing", "Zipping"]
