"""Results that are combined of parts, at the end of a run: by machine code where it keeps the parts.

Paper: River §6 (Sawzall: the tables of the mappers are merged).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.il.combined import Combination, combination

if TYPE_CHECKING:
    from backends.multicore.plan import Plan
    from backends.multicore.variables import Store


def combine(plan: Plan, store: Store) -> None:
    """Combines the parts of results into the first of them; what stays apart the evaluator combines when it is asked for.

    So it does all where the state is kept: there the parts are what a run goes on from. Raises: Trap.
    """
    for result in plan.graph.results:
        if not result.combined or plan.options.keeper is not None:
            continue
        parts = [store.parts(part) for part in result.parts]
        found = combination(result, plan.graph.instances, plan.graph.variables)
        if isinstance(found, Combination) and all(len(each) == 1 for each in parts):
            from backends.native.combine import compile_combine

            debug = plan.options.native == "debug"
            code = compile_combine(found.operator, found.position, found.how, debug=debug)
            if code is not None:
                ((first,), *others) = parts
                for (other,) in others:
                    code.combine(first, other)
                store.combined(result.name, first, result.parts)
