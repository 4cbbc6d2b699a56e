"""What authors of plugins test with: strategies and laws. The only code here that imports hypothesis.

`check_frontend`, `check_pass` and `check_backend` say whether a plugin keeps its promises (style: the three contracts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from river.testing.conformance import check_backend, check_frontend, check_pass

__all__ = ["check_backend", "check_frontend", "check_pass"]


def __getattr__(name: str) -> Any:
    """The three functions, imported when they are asked for: the strategies below need none of each other."""
    if name in __all__:
        from river.testing import conformance

        return getattr(conformance, name)
    raise AttributeError(f"module `river.testing` has no attribute `{name}`")
