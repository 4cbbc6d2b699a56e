"""Inputs that are read in several parts, one after the other, each by a run of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from river.classes import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Part:
    """That a run reads one of several parts of its inputs; it goes on from the state after those before.

    `more`: the inputs of which more follows in later parts: they have no end in this one. `held`: what was read in earlier
    parts and has not been sent. `reached`: the last key of each keyed input up to the end of this part, where the run gets only
    some of its items: time has come as far for it.
    """

    more: frozenset[str] = frozenset()
    held: Mapping[str, list[Any]] = field(factory=dict[str, "list[Any]"])
    reached: Mapping[str, int] = field(factory=dict[str, int])


WHOLE: Final = Part()
"""All of the inputs."""
