"""The Brooklet calculus: syntax and semantics, executable, and nothing else. It is the oracle of the project.

The paper's letters (River §2; Brooklet) and our names:

    P       Program                       a program
    q       a `str`                       a queue: FIFO, at most one producer, at most one consumer
    v, $v   a `str`                       a variable
    op      Op                            (q', w) <- f(q, v): an operator
    f, F    a `str`, Program.functions    a function's name, and the environment that binds it
    d       Value                         a data item, or the value of a variable
    b       tuple[Value, ...]             a sequence of items: what a queue holds, what a firing pushes
    V, Q    Configuration                 the values of the variables and the contents of the queues
    ->      step                          E-FireQueue, the only rule

`run` is one execution under a schedule; `outcomes` is all of them; `observe` says when two results are equal.
same.
"""

from calculus.observe import Faulted, Finished, Observation, Outcome, observe
from calculus.outcomes import Exploration, LimitReached, is_confluent, outcomes
from calculus.program import Fault, Firing, Function, Op, Program, Value
from calculus.run import Run, run
from calculus.schedule import FirstCome, Moment, RoundRobin, Schedule, Scripted, ScriptError, Seeded
from calculus.state import Configuration, initial
from calculus.step import Event, NotEligible, WrongFiring, eligible, fire, step
from calculus.wellformed import IllFormed, check, problems

__all__ = [
    "Configuration",
    "Event",
    "Exploration",
    "Fault",
    "Faulted",
    "Finished",
    "Firing",
    "FirstCome",
    "Function",
    "IllFormed",
    "LimitReached",
    "Moment",
    "NotEligible",
    "Observation",
    "Op",
    "Outcome",
    "Program",
    "RoundRobin",
    "Run",
    "Schedule",
    "ScriptError",
    "Scripted",
    "Seeded",
    "Value",
    "WrongFiring",
    "check",
    "eligible",
    "fire",
    "initial",
    "is_confluent",
    "observe",
    "outcomes",
    "problems",
    "run",
    "step",
]
