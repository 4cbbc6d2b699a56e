"""Which shared variables share a lock: the equivalence classes of Fig. 1, and the two naive ways to compare them with.

Paper: River §2.3, Fig. 1; §6.3 measures it against `one_lock` and `lock_each`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

Uses = Sequence[Collection[str]]
"""For each operator instance the variables that it uses."""

Locks = tuple[tuple[str, ...], ...]
"""A partition of the shared variables: each class is one lock. Their order is the standard order of acquisition."""

Scheme = Callable[[Uses], Locks]
"""A way to assign locks."""


def shared(uses: Uses) -> tuple[str, ...]:
    """The variables that two instances or more use, in the order of their first use: no other needs a lock."""
    counts = Counter(variable for used in uses for variable in dict.fromkeys(used))
    return tuple(variable for variable, count in counts.items() if count > 1)


def classes(uses: Uses) -> Locks:
    """The fewest locks under which an instance never locks a variable that it does not use.

    Every shared variable is under exactly one lock, and two of them are under separate locks only if some instance uses
    one and not the other.

    Paper: River Fig. 1.
    """
    variables = shared(uses)
    partition: list[tuple[str, ...]] = [variables] if variables else []
    for used in map(frozenset, uses):
        partition = [
            part
            for block in partition
            for part in (tuple(v for v in block if v in used), tuple(v for v in block if v not in used))
            if part
        ]
    return tuple(sorted(partition, key=lambda block: variables.index(block[0])))


def one_lock(uses: Uses) -> Locks:
    """One lock over all shared variables: the naive scheme of the coarse-grained experiment."""
    variables = shared(uses)
    return (variables,) if variables else ()


def lock_each(uses: Uses) -> Locks:
    """A lock for each shared variable: the naive scheme of the fine-grained experiment."""
    return tuple((variable,) for variable in shared(uses))


def lock_set(locks: Locks, used: Collection[str]) -> tuple[int, ...]:
    """The positions in `locks`, ascending, of those that an instance acquires before it fires.

    Paper: River Fig. 2, line 2.
    """
    wanted = frozenset(used)
    return tuple(i for i, variables in enumerate(locks) if not wanted.isdisjoint(variables))
