"""Our backends keep what `river.testing.check_backend` asks of any."""

from __future__ import annotations

import pytest

from river import plugins
from river.testing import check_backend

SPARK = pytest.mark.spark


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SPARK) if name == "spark" else name for name in plugins.backends()]
)
def test_backends_keep_their_promises(name: str) -> None:
    check_backend(plugins.backend(name), examples=15)
