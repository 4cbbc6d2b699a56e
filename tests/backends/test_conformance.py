"""Our backends keep what `river.testing.check_backend` asks of any; Spark has tests of its own, it is too slow for these."""

from __future__ import annotations

import pytest

from river import plugins
from river.testing import check_backend


@pytest.mark.parametrize("name", [name for name in plugins.backends() if name != "spark"])
def test_backends_keep_their_promises(name: str) -> None:
    check_backend(plugins.backend(name), examples=15)
