"""Profiles: what a run took of the time of each operator, kept in a file, and told to the passes by `@Cost`.

A profile is of the program as its text says it, before any pass; passes add up what they make one operator of. It says what pays,
and never changes a result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il.annotations import Cost, annotation, without
from river.il.program import Program, Use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.il.graph import Graph
    from river.metrics import Metrics
    from river.source import Source

VERSION: Final = 1

FIELDS: Final = ("nanoseconds", "items", "sent", "bytes")

SHOWN: Final = 3
"""Operators that are named in a warning."""


@frozen
class Profile:
    """What operators took, by the names that `river explain --no-optimize` shows (`operator#number`)."""

    operators: Mapping[str, Cost]

    @property
    def text(self) -> str:
        """As a file has it: JSON."""
        found = {
            name: {field: getattr(cost, field) for field in FIELDS} for name, cost in self.operators.items()
        }
        return json.dumps({"profile": VERSION, "operators": found}, indent=1) + "\n"


def parse(source: Source) -> Profile:
    """The profile in a file. Raises: Rejected("profile-format")."""
    try:
        found = json.loads(source.text)
        known = found["profile"] == VERSION
        operators = {name: _cost(said) for name, said in found["operators"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        known, operators = False, {}
    if not known:
        message = f"`{source.name}` is no profile of this version of River"
        help_ = "`river profile PROGRAM --in ... -o FILE` makes one"
        raise Rejected([Diagnostic("profile-format", message, help=help_)])
    return Profile(operators)


def _cost(said: Any) -> Cost:
    numbers = [said[field] for field in FIELDS]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError
    return Cost(*numbers)


def measured(graph: Graph, metrics: Metrics) -> Profile:
    """What a run of a program as it is has told."""
    found: dict[str, Cost] = {}
    for instance in graph.instances:
        figures = metrics.operators[instance.name]
        queues = [metrics.queues[name] for name in instance.outs]
        found[instance.name] = Cost(
            round(figures.seconds * 1e9),
            figures.fired,
            sum(queue.items for queue in queues),
            sum(queue.bytes for queue in queues),
        )
    return Profile(found)


def costed(program: Program, profile: Profile) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program with what its operators took, and a warning if the profile is not of this program."""
    names = {id(use): f"{use.operator}#{i}" for i, use in enumerate(program.uses)}

    def told(use: Use) -> Use:
        cost = profile.operators.get(names[id(use)])
        bare = without(use, "Cost")
        return bare if cost is None else evolve(bare, annotations=(*bare.annotations, annotation(cost)))

    found = Program(tuple(told(decl) if isinstance(decl, Use) else decl for decl in program.decls))
    missing = [name for name in names.values() if name not in profile.operators]
    strange = [name for name in profile.operators if name not in names.values()]
    if not missing and not strange:
        return found, ()
    said = [("does not know", missing), ("knows", strange)]
    words = " and ".join(f"{verb} {_shown(each)}" for verb, each in said if each)
    message = f"the profile is of another program: it {words}"
    help_ = "make it anew with `river profile`; what it knows is used"
    return found, (Diagnostic("profile-other", message, severity=Severity.WARNING, help=help_),)


def _shown(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:SHOWN]) + more
