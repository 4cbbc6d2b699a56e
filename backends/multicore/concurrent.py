"""Which task runs an operator that several workers may be at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.multicore.parallel import Parallel
from backends.multicore.sharded import ShardedOperate
from backends.multicore.variables import DivisibleVariable
from river.il.model import Stateless
from river.il.regions import ByRows

if TYPE_CHECKING:
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.regions import Region
    from backends.multicore.variables import Store, Variables
    from river.il.graph import Instance


def concurrent(
    machine: Machine,
    instance: Instance,
    variables: Variables,
    region: Region,
    choices: Choices,
    store: Store,
    part: int,
) -> Parallel:
    """The task of an instance that several workers may run. `store`: of the variables, some of which may be divided.

    `part`: how many items are handed out at once; more of narrow ones, by an operator without state, if batches have more: as
    many as one worker would send at a time, but no more than two batches of what comes in.
    """
    native, index, name = machine.native, instance.index, instance.name
    if isinstance(region.how, Stateless):
        rated = machine.operator.rated
        pop = 1 if rated is None else max(1, *(rate.pop for rate in rated.rates))
        push = max((out.push or 1 for out in machine.operator.outs), default=1)
        firings = min(machine.batch // push, 2 * machine.batch // pop)
        most = part if machine.batch <= part else max(1, machine.batch // pop, firings)
        made = Parallel(index, machine, name, variables, [native], choices, most, region.degree - 1)
        made.adapt(region)
        return made
    if isinstance(region.how, ByRows):
        from backends.multicore.by_rows import ByRowsOperate

        return ByRowsOperate(index, machine, instance, variables, native, region, choices, store, part)
    divisible: list[DivisibleVariable | None] = []
    for i, paths in enumerate(region.how.variables):
        divisible.append(None if paths is None else DivisibleVariable(native.variables[i]))
        if (variable := divisible[-1]) is not None:
            store.keep(instance.variables[i], variable)
    made = ShardedOperate(index, machine, name, variables, native, region, choices, divisible, part)
    made.adapt(region)
    return made
