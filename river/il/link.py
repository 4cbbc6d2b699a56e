"""Several programs made one, whatever languages they come from: outputs of one become inputs of another.

    linked = link({"log": log, "report": report}, [Connection("log", "requests", "report", "requests")])

Programs keep their names where these are free, and else get that of their program in front. `ordered` states an order
that a language does not speak of (Sawzall has no time) and another needs.

Paper: River §1, §2 (one calculus for many languages); queues are one-to-one, so are connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import define, evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.il.program import (
    Annotation,
    Decl,
    Input,
    Instance,
    Lift,
    Output,
    Program,
    Queue,
    Result,
    TypeDecl,
    Use,
    Variable,
    View,
)
from river.il.trees import fresh, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from river.source import Span

IDENTIFIED: Final = {"Fuse": "Fuse", "Region": "Region", "Exits": "Region"}
"""Annotations whose first argument tells which uses belong together, and of what it is the name: those of two programs do not."""


@frozen
class Connection:
    """Output queue `output` of program `producer` is what program `consumer` reads as its input `input`."""

    producer: str
    output: str
    consumer: str
    input: str


def link(programs: Mapping[str, Program], connections: Iterable[Connection]) -> Program:
    """The programs as one, in their order; its inputs and outputs are those that are not connected.

    Types and orders are compared when the result is verified. Inputs and outputs are never renamed.

    Raises: Rejected with il-link-unknown (no such program or queue), il-link-view (a view is no queue), il-link-twice (a
    queue that is connected already), il-link-name (two inputs or outputs of one name).
    """
    connections = tuple(connections)
    errors = _errors(programs, connections)
    if errors:
        raise Rejected(errors)
    sent = {(c.producer, c.output) for c in connections}
    fed = {(c.consumer, c.input): c for c in connections}
    taken: dict[str, set[str]] = {kind: set() for kind in KINDS}
    taken["queue"] |= {
        d.name
        for name, program in programs.items()
        for d in (*program.inputs, *program.outputs)
        if (name, d.name) not in sent and (name, d.name) not in fed
    }
    renamings: dict[str, _Renaming] = {}
    for name, program in programs.items():
        renaming = renamings[name] = _Renaming()
        for kind, own in dict.fromkeys(_declared(program)):
            outside = any(d.name == own for d in (*program.inputs, *program.outputs))
            if kind == "queue" and outside and (name, own) not in sent | fed.keys():
                continue  # the world knows it by this name
            if kind == "queue" and (name, own) in fed:
                continue  # it gets the name of what it is fed by
            new = own if own not in taken[kind] else fresh(f"{name}_{own}", taken[kind])
            taken[kind].add(new)
            if new != own:
                renaming.names[kind, own] = new
    for connection in fed.values():
        made = renamings[connection.producer].name("queue", connection.output)
        renamings[connection.consumer].names["queue", connection.input] = made
    decls: list[Decl] = []
    for name, program in programs.items():
        for decl in program.decls:
            match decl:
                case Output(own) if (name, own) in sent:
                    pass
                case Input(own) if (name, own) in fed:
                    pass
                case _:
                    decls.append(renamings[name].decl(decl))
    return Program(tuple(decls))


def ordered(program: Program, queues: Mapping[str, str]) -> Program:
    """The program with these queues ordered by a field: where they are declared, and at their operators' ends.

    An operator that takes them and is not written out, or used twice, goes on to take them in any order. One that orders
    what it emits is no longer `@Commutative()`. Whether the order holds is seen when the program is verified (the key has
    to be passed on as it came) and runs.

    Raises: Rejected with il-link-unknown (no such queue), il-link-order (it comes out of an operator that is used twice,
    or not written out).
    """
    own = {d.name: d for d in program.decls if isinstance(d, s.Operator)}
    used = [use.operator for use in program.uses]
    ends: dict[str, tuple[dict[int, str], dict[int, str]]] = {}
    errors = [
        Diagnostic("il-link-unknown", f"there is no queue `{queue}`", help=closest(queue, _queues(program)))
        for queue in queues
        if queue not in _queues(program)
    ]
    for use in program.uses:
        ins, outs = _ordered(use.ins, queues), _ordered(use.outs, queues)
        if not ins and not outs:
            continue
        fixed = use.operator not in own or used.count(use.operator) > 1
        if fixed and not outs:
            continue  # it takes any order
        if fixed:
            why = "is used twice" if used.count(use.operator) > 1 else "is not written out"
            message = f"the outputs of `{use.operator}` cannot be ordered: it {why}"
            errors.append(
                Diagnostic("il-link-order", message, use.span, help="give it an operator of its own")
            )
        ends[use.operator] = (ins, outs)
    if errors:
        raise Rejected(errors)

    def changed(decl: Decl) -> Decl:
        match decl:
            case Input(name) | Output(name) | Queue(name) if name in queues:
                return evolve(decl, by=queues[name])
            case s.Operator(name) if name in ends:
                ins, outs = ends[name]
                ports = tuple(evolve(port, by=ins.get(i, port.by)) for i, port in enumerate(decl.ports))
                sends = tuple(evolve(out, by=outs.get(i, out.by)) for i, out in enumerate(decl.outs))
                return evolve(decl, ports=ports, outs=sends)
            case Use(_, operator) if operator in ends and ends[operator][1]:
                kept = tuple(a for a in decl.annotations if a.name != "Commutative")
                return evolve(decl, annotations=kept)
            case _:
                return decl

    return Program(tuple(map(changed, program.decls)))


def _ordered(ends: tuple[str, ...], queues: Mapping[str, str]) -> dict[int, str]:
    """The keys by the positions of queues among ends."""
    plain = [end for end in ends if not end.startswith("$")]
    return {i: queues[queue] for i, queue in enumerate(plain) if queue in queues}


def _queues(program: Program) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for kind, name in _declared(program) if kind == "queue"))


# -------------------------------------------------------------------------------------------------------------- errors


def _errors(programs: Mapping[str, Program], connections: tuple[Connection, ...]) -> list[Diagnostic]:
    errors: list[Diagnostic] = []
    seen: set[tuple[str, str]] = set()
    for c in connections:
        outputs = {d.name: d for d in programs[c.producer].outputs} if c.producer in programs else {}
        inputs = {d.name: d for d in programs[c.consumer].inputs} if c.consumer in programs else {}
        sides = ((c.producer, c.output, "output", outputs), (c.consumer, c.input, "input", inputs))
        for program, name, what, known in sides:
            if program not in programs:
                help_ = closest(program, programs)
                errors.append(Diagnostic("il-link-unknown", f"there is no program `{program}`", help=help_))
            elif name not in known:
                message = f"program `{program}` has no {what} `{name}`"
                errors.append(Diagnostic("il-link-unknown", message, help=closest(name, known)))
            elif (program, name) in seen:
                help_ = (
                    "queues are one-to-one: `std.duplicate` makes two of one" if what == "output" else None
                )
                message = f"{what} `{name}` of `{program}` is connected twice"
                errors.append(Diagnostic("il-link-twice", message, _span(known[name]), help=help_))
            seen.add((program, name))
        output = outputs.get(c.output)
        if output is not None and output.view is not None:
            message = (
                f"output `{c.output}` is a view of `${output.view.variable}`, which is read at the end only"
            )
            errors.append(Diagnostic("il-link-view", message, output.span))
    names: dict[str, str] = {}
    for program, decls in programs.items():
        for decl in (*decls.inputs, *decls.outputs):
            if (program, decl.name) in seen:
                continue
            if names.setdefault(decl.name, program) != program:
                message = f"both `{names[decl.name]}` and `{program}` have an input or output `{decl.name}`"
                help_ = "connect them, or rename one"
                errors.append(Diagnostic("il-link-name", message, decl.span, help=help_))
    return errors


def _span(decl: Input | Output) -> Span | None:
    return decl.span


# --------------------------------------------------------------------------------------------------------------- names


KINDS: Final = ("type", "function", "operator", "queue", "variable", *sorted(set(IDENTIFIED.values())))


def _declared(program: Program) -> Iterable[tuple[str, str]]:
    """The kinds and names of all that a program declares; a queue also where it is only used."""
    for decl in program.decls:
        match decl:
            case TypeDecl(name):
                yield "type", name
            case s.Fn(name):
                yield "function", name
            case (
                s.Operator(name)
                | s.Extern(name)
                | Instance(name)
                | Lift(name)
                | s.Template(_, s.Operator(name))
            ):
                yield "operator", name
            case Input(name, annotations=annotations):
                yield "queue", name
                yield from _identified(annotations)
            case Output(name) | Queue(name):
                yield "queue", name
            case Variable(name) | Result(name):
                yield "variable", name
            case Use(outs, _, ins, annotations):
                yield from (("queue", end) for end in (*outs, *ins) if not end.startswith("$"))
                yield from _identified(annotations)


def _identified(annotations: Iterable[Annotation]) -> Iterator[tuple[str, str]]:
    """What annotations name that stands at several places."""
    return ((IDENTIFIED[a.name], _word(a)) for a in annotations if a.name in IDENTIFIED and a.args)


def _word(annotation: Annotation) -> str:
    match annotation.args[0]:
        case s.Name(word) | s.String(word):
            return word
        case s.Int(number):
            return str(number)
        case _:
            return ""


@define
class _Renaming:
    """New names of one program, by kind and old name."""

    names: dict[tuple[str, str], str] = field(factory=dict[tuple[str, str], str])

    def name(self, kind: str, name: str) -> str:
        """The new name."""
        return self.names.get((kind, name), name)

    def end(self, end: str) -> str:
        """The new name of an end of a use."""
        return f"${self.name('variable', end[1:])}" if end.startswith("$") else self.name("queue", end)

    def decl(self, decl: Decl) -> Decl:
        """The declaration with its own name and those that it mentions."""
        hidden = _hidden(decl)

        def rewrite(node: s.Node) -> s.Node:
            inside = rebuild(node, rewrite)
            match inside:
                case s.TypeName(name) if name not in hidden:
                    return evolve(inside, name=self.name("type", name))
                case s.Call(function) if function not in hidden:
                    return evolve(inside, function=self.name("function", function))
                case _:
                    return inside

        return self.titled(rebuild(decl, rewrite))

    def titled(self, decl: Decl) -> Decl:
        """The declaration with the names that are no expressions or types."""
        match decl:
            case TypeDecl(name):
                return evolve(decl, name=self.name("type", name))
            case s.Fn(name):
                return evolve(decl, name=self.name("function", name))
            case s.Operator(name) | s.Extern(name):
                return evolve(decl, name=self.name("operator", name))
            case s.Template(_, operator):
                named = evolve(operator, name=self.name("operator", operator.name))
                return evolve(decl, operator=named)
            case Instance(name, template):
                return evolve(
                    decl, name=self.name("operator", name), template=self.name("operator", template)
                )
            case Lift(name, operator):
                return evolve(
                    decl, name=self.name("operator", name), operator=self.name("operator", operator)
                )
            case Input(name, annotations=annotations):
                said = tuple(map(self.annotation, annotations))
                return evolve(decl, name=self.name("queue", name), annotations=said)
            case Queue(name):
                return evolve(decl, name=self.name("queue", name))
            case Output(name, _, _, view):
                return evolve(decl, name=self.name("queue", name), view=view and self.view(view))
            case Variable(name):
                return evolve(decl, name=self.name("variable", name))
            case Result(name, parts):
                found = tuple(self.name("variable", part) for part in parts)
                return evolve(decl, name=self.name("variable", name), parts=found)
            case Use(outs, operator, ins, annotations):
                return evolve(
                    decl,
                    outs=tuple(map(self.end, outs)),
                    operator=self.name("operator", operator),
                    ins=tuple(map(self.end, ins)),
                    annotations=tuple(map(self.annotation, annotations)),
                )

    def view(self, view: View) -> View:
        """The view of a renamed variable by a renamed function."""
        variable, function = self.name("variable", view.variable), self.name("function", view.function)
        return evolve(view, variable=variable, function=function)

    def annotation(self, annotation: Annotation) -> Annotation:
        """The annotation, if it tells what belongs together, with the new name of that."""
        if annotation.name not in IDENTIFIED or not annotation.args:
            return annotation
        old = _word(annotation)
        new = self.name(IDENTIFIED[annotation.name], old)
        return annotation if new == old else evolve(annotation, args=(s.Name(new), *annotation.args[1:]))


def _hidden(decl: Decl) -> frozenset[str]:
    """Names inside the declaration that mean something of its own."""
    match decl:
        case TypeDecl(_, params):
            return frozenset(params)
        case s.Operator(fns=fns) | s.Template(_, s.Operator(fns=fns)):
            return frozenset(fn.name for fn in fns)
        case _:
            return frozenset()
