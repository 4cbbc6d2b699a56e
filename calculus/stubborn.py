"""Which eligible queues are enough to explore: stubborn sets, after Valmari, for Brooklet.

Call t_q the transition "queue q fires". Transitions t_p and t_q are *dependent* if their operators share a
variable that one of them writes, or if both belong to one operator that has output queues. Independent
transitions commute wherever both are eligible, with equal results and equal faults, and none makes the other
ineligible: a queue has one producer and one consumer, and a push to the tail and a pop from the head of a
non-empty FIFO do not see each other.

A set T of transitions is stubborn in a configuration if it has an eligible member and is closed under

1. with an eligible t_q, all transitions that depend on t_q;
2. with an ineligible t_q, all transitions of the operator that produces q (only they can make it eligible).

Take any execution t1 ... tn from here. (a) If some ti is in T, take the first: it is eligible here, else by
(2) one of t1 ... t(i-1) would be in T; and it is independent of those by (1), so it can go first without
changing the end. (b) If no ti is in T, an eligible member t of T is independent of them all: it is still
eligible at the end, and t followed by t1 ... tn is an execution too.

An execution that ends quiescent is never of case (b). So, by induction on n, exploring only the eligible
members of T in each configuration finds every quiescent end.

A faulting end may be of case (b), and then t must not be the wrong way to begin. It is wrong in two ways. If
t itself faults, t1 ... tn is lost: so where any explored choice faults, all choices are explored. If
exploration postpones t1 for ever, it does so around a cycle of configurations: so where a choice leads back
to a configuration that is still being explored (every cycle of a depth-first search contains one), all
choices are explored. In every other case t leads to a configuration with the same t1 ... tn and the same
fault, and the postponing ends after finitely many steps, by case (a) or by a configuration explored in full.
`outcomes` does both.

An execution without end survives as well: (a) and (b) give an endless execution that begins in T.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from calculus.program import Consumer, Program


def dependent(one: Consumer, other: Consumer) -> bool:
    """Whether the order of firing these two queues can matter."""
    if one.op is other.op and one.outs:
        return True
    touched, touched_too = {*one.reads, *one.writes}, {*other.reads, *other.writes}
    return not (touched_too.isdisjoint(one.writes) and touched.isdisjoint(other.writes))


@define
class StubbornSets:
    """The stubborn sets of one program; they depend on nothing but which queues are eligible.

    `dependents` are, for each queue with a consumer, the queues of rule 1, `enablers` those of rule 2.
    """

    dependents: dict[str, frozenset[str]]
    enablers: dict[str, frozenset[str]]
    _known: dict[tuple[str, ...], tuple[str, ...]] = field(factory=dict[tuple[str, ...], tuple[str, ...]])

    @classmethod
    def of(cls, program: Program) -> StubbornSets:
        """The static part, computed once for a program."""
        consumers = program.wiring.consumers
        producer = {queue: op for op in program.ops for queue in op.outs}
        return cls(
            {c.queue: frozenset(d.queue for d in consumers if dependent(c, d)) for c in consumers},
            {c.queue: frozenset(producer[c.queue].ins if c.queue in producer else ()) for c in consumers},
        )

    def choices(self, eligible: tuple[str, ...]) -> tuple[str, ...]:
        """The eligible members of the smallest stubborn set that one queue generates, in order."""
        if eligible not in self._known:
            candidates = (self._closure(queue, frozenset(eligible)) for queue in eligible)
            self._known[eligible] = min(
                (tuple(queue for queue in eligible if queue in closed) for closed in candidates),
                key=len,
                default=(),
            )
        return self._known[eligible]

    def _closure(self, seed: str, eligible: frozenset[str]) -> set[str]:
        closed = {seed}
        waiting = [seed]
        while waiting:
            queue = waiting.pop()
            new = (self.dependents if queue in eligible else self.enablers)[queue] - closed
            closed |= new
            waiting += new
        return closed
