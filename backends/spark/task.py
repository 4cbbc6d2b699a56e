"""What a worker is told, as text: the program, the stage, and how to run it.

A process reads and verifies a program once. Nothing of ours is pickled: Spark sends the name of a function and a text.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from river.classes import frozen
from river.il.expand import expand_instances
from river.il.namespaces import Library
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.standard import NAMESPACE
from river.il.verify import verify
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.spark.plan import Plan
    from backends.spark.stages import Stage
    from river.il.graph import Graph


@frozen
class ShippedProgram:
    """A program that explains itself: expanded, so that only types and functions of its namespaces are left to find."""

    text: str
    namespaces: tuple[str, ...]


def portable(plan: Plan) -> ShippedProgram:
    """The program of a plan."""
    from river.driver import library

    program = plan.graph.program
    expanded = expand_instances(program, library(program))
    used = sorted({*library(expanded).namespaces} - {NAMESPACE})
    return ShippedProgram(pretty(expanded), tuple(used))


@lru_cache(maxsize=16)
def verified(program: ShippedProgram) -> Graph:
    """The graph of a program."""
    from river.plugins import frontend

    library = Library.on_demand({name: frontend(name).templates for name in program.namespaces})
    return verify(parse(Source("<program>", program.text)), library)


@frozen
class Task:
    """Stage number `stage` as a worker sees it. Instances and queues keep numbers and names from plan to worker.

    `prefix`: the instances without state that come first; `last`: the one with keyed state. `guarded`: the queues whose
    order nobody after this stage will see to. `joins`: for queues that come in parts, whether these are parts of
    deltas. `skip`: whether items that trap are left out, where that is allowed. `native`: see `river.backend.Options`.
    """

    program: ShippedProgram
    graph: Graph
    stage: int
    instances: tuple[int, ...]
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    prefix: tuple[int, ...]
    last: int | None
    keys: tuple[str, ...]
    rows: bool
    channels: int
    guarded: tuple[str, ...]
    joins: Mapping[str, bool]
    batch: int
    skip: bool
    native: str

    def queue(self, number: int) -> str:
        """The name of the queue with this number."""
        return tuple(self.graph.queues)[number]

    def number(self, queue: str) -> int:
        """The number of a queue."""
        return tuple(self.graph.queues).index(queue)


def text(plan: Plan, stage: Stage, program: ShippedProgram) -> str:
    """The task of a stage as JSON."""
    from backends.spark.stages import StageKind

    keyed = stage.kind is StageKind.KEYED
    before = {q: plan.producer(q) for q in stage.ins}
    consumers = {q: plan.graph.queues[q].consumer for q in stage.outs}
    strict = stage.kind is StageKind.ORDERED
    return json.dumps(
        {
            "program": program.text,
            "namespaces": program.namespaces,
            "stage": stage.number,
            "instances": stage.instances,
            "ins": stage.ins,
            "outs": stage.outs,
            "prefix": stage.instances[:-1] if keyed else stage.instances,
            "last": stage.instances[-1] if keyed else None,
            "keys": stage.role.keys,
            "rows": stage.role.rows,
            "channels": stage.role.channels,
            "guarded": [
                q
                for q, end in consumers.items()
                if strict and end is not None and plan.roles[end.instance].kind is not StageKind.ORDERED
            ],
            "joins": {
                q: s.role.rows for q, s in before.items() if s is not None and s.kind is StageKind.KEYED
            },
            "batch": plan.options.batch,
            "skip": plan.options.on_trap is not None,
            "native": plan.options.native,
        }
    )


@lru_cache(maxsize=64)
def read(text_: str) -> Task:
    """The task that a text states."""
    said: dict[str, Any] = json.loads(text_)
    program = ShippedProgram(said["program"], tuple(said["namespaces"]))
    return Task(
        program=program,
        graph=verified(program),
        stage=said["stage"],
        instances=tuple(said["instances"]),
        ins=tuple(said["ins"]),
        outs=tuple(said["outs"]),
        prefix=tuple(said["prefix"]),
        last=said["last"],
        keys=tuple(said["keys"]),
        rows=said["rows"],
        channels=said["channels"],
        guarded=tuple(said["guarded"]),
        joins=said["joins"],
        batch=said["batch"],
        skip=said["skip"],
        native=said["native"],
    )
