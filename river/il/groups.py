"""The cores of a machine on which the operators of each `@Group` run.

Groups are dealt to sets of cores in the order in which the text names them first. Where there are more cores than groups, each
has cores of its own, all about as many; where there are fewer, groups share a core. What is in no group runs on any core.

Paper: River §4.2, §4.5 (`@Group`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.il.annotations import annotated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.il.graph import Graph, Instance


def core_sets(graph: Graph, cores: int) -> Mapping[str, range]:
    """By group its cores, which are counted from 0. Two groups have the same ones, or none in common."""
    said = (annotated(instance.use).group for instance in graph.instances)
    ids = list(dict.fromkeys(group.id for group in said if group is not None))
    sets = min(len(ids), cores)
    return {id_: range(i % sets * cores // sets, (i % sets + 1) * cores // sets) for i, id_ in enumerate(ids)}


def cores_of(sets: Mapping[str, range], instance: Instance, cores: int) -> range:
    """On which of so many `cores` an operator may run."""
    group = annotated(instance.use).group
    return range(cores) if group is None else sets[group.id]


def worker_names(cores: Sequence[int]) -> str:
    """Neighbouring cores as people are told, who count from 1."""
    first, last = cores[0] + 1, cores[-1] + 1
    return f"worker {first}" if first == last else f"workers {first} to {last}"


def one_group(instances: Iterable[Instance]) -> bool:
    """Whether operators are in one group, or all in none: so that they may run as one."""
    return len({annotated(instance.use).group for instance in instances}) < 2


__all__ = ["core_sets", "cores_of", "one_group", "worker_names"]
