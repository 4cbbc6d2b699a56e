"""Rows of epochs on their way to tables of Delta Lake, which knows what it has written before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from river.manifest import Epoch


def once(epoch: Epoch, output: str) -> dict[str, str]:
    """The options of a write of an output's rows of an epoch, which has no effect when it is done again.

    The name has the run's own, which every new checkpoint has another of: else the epochs of a run that begins anew would be
    taken for those that the table has, and left out.
    """
    return {"txnAppId": f"river-{epoch.run}-{output}", "txnVersion": str(epoch.epoch)}
