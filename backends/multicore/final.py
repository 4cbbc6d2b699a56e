"""The variables of a run that has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.multicore.sharded import Whole
    from backends.native.operator import Variable


class Final(Mapping[str, Any]):
    """Variables by name, frozen. What machine code keeps becomes a value when it is first asked for: a window may be long."""

    def __init__(
        self, names: Iterable[str], known: Mapping[str, Any], native: Mapping[str, Variable | Whole]
    ) -> None:
        self._names = tuple(names)
        self._known = dict(known)
        self._native = dict(native)

    def __getitem__(self, name: str) -> Any:
        if name not in self._known and name in self._native:
            self._known[name] = self._native.pop(name).get()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"
