"""Graph to explanation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from river.classes import evolve
from river.explain.facts import Explanation, Facts, Sent, VariableFacts
from river.explain.memory import Growth, growth
from river.explain.regions import blocks, groups, in_order, reads, regions, serial, shuffles
from river.il.expand import named_operators
from river.il.model import instance_model
from river.il.pretty import pretty_decl
from river.il.program import Instance as Made
from river.il.program import Lift
from river.lang import typed
from river.lang.operations import OPERATIONS
from river.lang.pretty import pretty
from river.lang.scope import show
from river.lang.trees import applied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.il.graph import Graph, Instance
    from river.il.model import Model
    from river.il.program import Decl
    from river.source import Span


ONE_LINE = 1 << 20  # columns


def explain(graph: Graph, name: str, *, several: bool = False, cores: int = 1) -> Explanation:
    """What is known of the verified program `graph`, which people call `name`.

    `several`: passes have looked for what several workers may run. `cores`: of the machine that it is to run on.
    """
    reasons = tuple(r for r in graph.remarks if r.code == "il-not-deterministic")
    decls = named_operators(graph.program)
    users = Counter(name for instance in graph.instances for name in set(instance.variables))
    facts = tuple(_facts(instance, decls.get(instance.use.operator), users) for instance in graph.instances)
    placed = groups(graph, cores) if cores > 1 else ()
    if not several:
        return Explanation(name, reasons, facts, regions(graph), shuffles(graph), groups=placed, cores=cores)
    parts = blocks(graph), in_order(graph), reads(graph, cores)
    alone = serial(graph, cores)
    return Explanation(name, reasons, facts, regions(graph), (), alone, *parts, several, placed, cores)


def place(span: Span | None) -> str | None:
    """`file:line:column`."""
    if span is None:
        return None
    line, column = span.source.position(span.start)
    return f"{span.source.name}:{line}:{column}"


def _facts(instance: Instance, decl: Decl | None, users: Mapping[str, int]) -> Facts:
    """`decl`: of its operator; `users`: how many operators have a variable."""
    use, operator = instance.use, instance.operator
    model = instance_model(instance)
    return Facts(
        name=instance.name,
        place=place(use.span),
        made_of=_made_of(decl),
        use=pretty_decl(evolve(use, annotations=()), ONE_LINE).removesuffix(";"),
        annotations=tuple(
            f"@{a.name}({', '.join(pretty(arg, ONE_LINE) for arg in a.args)})" for a in use.annotations
        ),
        state=_state(model, has_variables=bool(operator.vars)),
        rows=model.rows,
        sent=_sent(instance, model),
        reads=model.reads,
        order_reading=model.order_reading,
        commutative=model.commutative,
        can_trap=model.can_trap,
        traps=_traps(operator) if model.can_trap else (),
        kept=_kept(instance, users),
        host=_host(operator),
    )


def _made_of(decl: Decl | None) -> str | None:
    match decl:
        case Made(_, template):
            return template
        case Lift(_, lifted):
            return f"lift({lifted})"
        case _:
            return None


def _state(model: Model, *, has_variables: bool) -> str:
    shown = str(model.state)
    if shown == "unknown":
        shown = "of the operator as a whole"
    elif shown == "none" and has_variables:
        shown = "read only, or never touched"
    return f"{shown}, and hidden state" if model.hidden else shown


def _sent(instance: Instance, model: Model) -> tuple[Sent, ...]:
    return tuple(
        Sent(queue, str(rate), forwards)
        for queue, rate, forwards in zip(instance.outs, model.selectivity, model.forwarded, strict=True)
    )


def _traps(operator: typed.Operator | typed.Extern) -> tuple[str, ...]:
    match operator:
        case typed.Extern():
            return ("extern-failed",)
        case typed.Operator(sites=sites):
            return tuple(
                dict.fromkeys(code for site in sites for code in site.codes if code != "recursion-depth")
            )


def _kept(instance: Instance, users: Mapping[str, int]) -> tuple[VariableFacts, ...]:
    found: list[VariableFacts] = []
    named = zip(instance.variables, instance.operator.vars, growth(instance.operator), strict=True)
    for name, param, how in named:
        grows = how in (Growth.GROWS, Growth.GROWS_KEYS, Growth.UNKNOWN)
        found.append(VariableFacts(name, show(param.type), how.value, grows, shared=users[name] > 1))
    return tuple(found)


def _host(operator: typed.Operator | typed.Extern) -> tuple[str, ...]:
    """The library operations that native code has to ask Python for."""
    if isinstance(operator, typed.Extern):
        return (operator.target,)
    return tuple(dict.fromkeys(name for name in applied(operator) if OPERATIONS[name].native == "host"))
