from __future__ import annotations

import os

import pytest

from river.platform import Platform, here


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not pin processes")
def test_here_counts_the_processors_we_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert here() == Platform(cores=1, machines=1)
    finally:
        os.sched_setaffinity(0, allowed)
    assert here().cores == len(allowed)


@pytest.mark.parametrize("counts", [{"cores": 0}, {"cores": 1, "machines": 0}])
def test_a_platform_has_at_least_one_of_each(counts: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a platform of"):
        Platform(**counts)
