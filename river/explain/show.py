"""An explanation for people, and for programs."""

from __future__ import annotations

import json
import re
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from river.diagnostics import render
from river.explain.explain import place
from river.il.annotations import HALO, SERIAL
from river.il.groups import worker_names
from river.il.regions import BY_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from river.diagnostics import Diagnostic
    from river.explain.facts import Explanation, Facts, Region, VariableFacts

WIDTH = 110
COLUMN = 13  # of the names of facts
MERGES = {
    "round_robin": "merged in turns",
    "seqno": "merged by sequence numbers",
    "seqno_marks": "merged by sequence numbers, with marks",
    "time_merge": "merged by time",
    "unordered": "merged as items come, because nobody sees their order",
}
LONGEST = 24  # characters of a type; of a longer one, what sort it is


def text(explanation: Explanation, *, coloured: bool = False) -> str:
    """The explanation as text: the program, then a paragraph for each operator."""

    def bold(words: str) -> str:
        return f"\x1b[1m{words}\x1b[0m" if coloured else words

    parts = [
        "\n".join(_program(explanation)),
        *("\n".join(_operator(one, bold)) for one in explanation.operators),
    ]
    return "\n\n".join(parts) + "\n"


def _program(explanation: Explanation) -> Iterator[str]:
    if explanation.deterministic:
        yield f"{explanation.name}: deterministic by construction: one result, whatever the schedule and the backend"
    else:
        yield f"{explanation.name}: not deterministic by construction: results may depend on the schedule"
        for reason in explanation.reasons:
            yield from (f"  {line}" for line in render(reason).splitlines())
    growing = [(one.name, kept) for one in explanation.operators for kept in one.kept if kept.grows]
    for name, kept in growing:
        yield f"memory: ${kept.name} of {name} {kept.growth}"
    alike: dict[str, list[str]] = {}
    for region in explanation.regions:
        if explanation.several and region.strategy in (*SERIAL, BY_TIME, HALO):
            alike.setdefault(_workers(region), []).append(" with ".join(region.operators))
            continue
        count = "replicas as the platform has cores" if region.degree is None else f"{region.degree} replicas"
        divided = f"divided by {', '.join(region.keys)}" if region.keys else "any replica takes any item"
        shown = ", ".join(region.operators)
        yield f"region {region.id}: {shown}: {count}, {divided}, {MERGES.get(region.strategy, region.strategy)}"
    for each in explanation.blocks:
        how = f"where `{each.input}` is a file, each worker reads blocks of it; what these gather is combined at the end"
        if each.leaving:
            how += f", and {', '.join(f'`{name}`' for name in each.leaving)} sent on in the order of the file"
        yield from _listed("in blocks", each.operators, how)
    for each in explanation.in_order:
        yield from _listed("not in blocks", each.operators, each.reason)
    for each in explanation.read:
        how = (
            f"where it is a file of texts, up to {each.readers} workers read blocks of it; rows in its order"
        )
        yield from _listed("read", [f"`{name}`" for name in each.inputs], how)
    for how, names in alike.items():
        yield from _listed("parallel", names, how)
    for each in explanation.serial:
        yield from _listed("one by one", each.operators, each.reason)
    for group in explanation.groups:
        how = f"run by {worker_names(group.workers)} of {explanation.cores} alone"
        yield from _listed(f"group {group.id}", group.operators, how)
    for shuffle in explanation.shuffles:
        yield f"shuffle: {shuffle.queue} leads from every replica of {shuffle.source} to every replica of {shuffle.target}"


def _workers(region: Region) -> str:
    """How several workers run operators whose results keep their order."""
    count = (
        "as many workers as there are cores" if region.degree is None else f"up to {region.degree} workers"
    )
    if region.keys and region.strategy == BY_TIME:
        return f"{count}, each at rows with other values of {', '.join(region.keys)}; rows in order"
    if region.keys:
        return f"{count}, each at other values of {', '.join(region.keys)}; results in order"
    if region.strategy == HALO:
        return f"{count}, whoever is free takes the next windows, with the items that they share; results in order"
    return f"{count}, whoever is free takes what comes next; results in order"


def _listed(head: str, names: Sequence[str], what: str) -> Iterable[str]:
    """A line, or a few, of what is so of several operators."""
    return wrap(
        ": ".join(filter(None, (head, ", ".join(names), what))),
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
    )


def _operator(facts: Facts, bold: Callable[[str], str]) -> Iterator[str]:
    origin = ", ".join(filter(None, (facts.made_of, facts.place)))
    yield bold(facts.name) + (f"  ({origin})" if origin else "")
    yield f"  {facts.use}"
    if facts.annotations:
        yield from _fact("annotations", " ".join(facts.annotations))
    yield from _fact("state", facts.state)
    for kept in facts.kept:
        yield from _fact("", _kept(kept))
    for sent in facts.sent:
        yield from _fact("sends", f"{sent.queue}: {sent.rate} per firing")
        passed = ", ".join(a if a == b else f"{a} (from {b})" for a, b in sent.forwards)
        if passed:
            yield from _fact("", f"unchanged{' of each row' if facts.rows else ''}: {passed}")
    yield from _fact("reads", "anything" if facts.reads is None else ", ".join(facts.reads) or "no field")
    yield from _fact("order", _order(facts))
    yield from _fact("traps", ", ".join(facts.traps) or "never")
    if facts.host:
        yield from _fact("in Python", ", ".join(facts.host))


def _kept(kept: VariableFacts) -> str:
    shared = " (shared)" if kept.shared else ""
    sort = kept.type if len(kept.type) <= LONGEST else re.split(r"[<{(]", kept.type)[0] or "record"
    return f"${kept.name}{shared} {kept.growth} ({sort})"


def _order(facts: Facts) -> str:
    if facts.commutative and facts.kept:
        return "does not matter to the final state"
    if facts.commutative:
        return "does not matter"
    return "matters" if facts.order_reading else "does not matter"


def _fact(name: str, words: str) -> Iterable[str]:
    lines = wrap(words, WIDTH - COLUMN - 2, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {name:<{COLUMN}}{lines[0]}"
    yield from (f"  {'':<{COLUMN}}{line}" for line in lines[1:])


def as_json(explanation: Explanation, remarks: Iterable[Diagnostic], plan: str | None) -> str:
    """The explanation as one JSON object, with the remarks of passes, and the plan of a backend if one was asked for."""
    import attrs

    found: dict[str, Any] = {
        "program": explanation.name,
        "deterministic": explanation.deterministic,
        "reasons": [_diagnostic(reason) for reason in explanation.reasons],
        "operators": [attrs.asdict(one) for one in explanation.operators],
        "regions": [attrs.asdict(one) for one in explanation.regions],
        "shuffles": [attrs.asdict(one) for one in explanation.shuffles],
        "serial": [attrs.asdict(one) for one in explanation.serial],
        "blocks": [attrs.asdict(one) for one in explanation.blocks],
        "in_order": [attrs.asdict(one) for one in explanation.in_order],
        "read": [attrs.asdict(one) for one in explanation.read],
        "groups": [attrs.asdict(one) for one in explanation.groups],
        "remarks": [_diagnostic(remark) for remark in remarks],
    }
    if plan is not None:
        found["plan"] = plan
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": place(diagnostic.span) or diagnostic.place,
    }
