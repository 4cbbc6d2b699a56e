"""The rules of a whole program: from Program to the Graph that erasure, models and planners read.

All errors are found at once. An error shows its neighbourhood: the declarations and uses that it is about.
"""

from __future__ import annotations

from collections import ChainMap
from functools import lru_cache
from typing import TYPE_CHECKING, ParamSpec, TypeVar, assert_never, cast

from river.classes import define, evolve, field, frozen
from river.diagnostics import Diagnostic, Note, Rejected, Severity, closest
from river.il import annotations, marks
from river.il.borders import border
from river.il.combined import combination
from river.il.expand import expand, named_operators
from river.il.flow import Construction, ItemPart, Key, Origin, item_findings
from river.il.graph import End, Graph, Instance, Queue, Variable, View
from river.il.graph import Result as ResultUnion
from river.il.namespaces import check_template
from river.il.program import (
    Decl,
    Input,
    Lift,
    Output,
    Program,
    Result,
    TypeDecl,
    Use,
)
from river.il.program import Instance as InstanceDecl
from river.il.program import Queue as QueueDecl
from river.il.program import Variable as VariableDecl
from river.il.sources import check_sources
from river.il.trees import Same, SameBody, is_number, walk
from river.lang import check, typed
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Declared, Scope, show
from river.nesting import room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

    from river.il.namespaces import Library, Namespace
    from river.source import Span

T = TypeVar("T")
P = ParamSpec("P")

KEYS = (t.I64, t.I32, t.U64, t.TIME, t.DURATION)


def verify(program: Program, library: Library, before: Graph | None = None) -> Graph:
    """The program with every name resolved, every operator checked and every queue typed.

    `before`: the verified program, with the same library, that this one was made of. A use that stands in both, of the same
    operator, was right there: what is asked of a use alone is not asked of it again.

    Raises: Rejected with all errors: il-duplicate-name, il-unknown-operator, il-unknown-queue, il-unknown-variable,
        il-arity, il-queue-type, il-queue-key, il-producers, il-consumers, il-input-produced, il-output-consumed,
        il-no-producer, il-no-consumer, il-variable-type, il-variable-written, il-variable-repeated, il-view, il-result,
        il-item-type, il-mark, il-mark-counted, the codes of `annotations.check` and `check_regions`, of `check_sources`,
        of templates, and the checker's own.
    """
    room()
    known = {} if before is None else {id(instance.use): instance for instance in before.instances}
    return _Verifier(program, library, known).graph()


# ------------------------------------------------------------------------------------------------------------ memory


@lru_cache(maxsize=64)
def _scope(
    types: tuple[Same[TypeDecl], ...], fns: tuple[Same[s.Fn], ...], spaces: tuple[Same[Namespace], ...]
) -> Scope:
    declared: dict[str, Declared] = {}
    for decl in (*(same.value for same in types), *(d for same in spaces for d in same.value.types)):
        declared.setdefault(decl.name, Declared(decl.params, decl.type, decl.span))
    found = check.scope(declared, [same.value for same in fns])
    spaced = [cast("MutableMapping[str, s.Fn]", same.value.fns) for same in spaces]
    return Scope(found.types, ChainMap(dict(found.fns), *spaced))


def scope(program: Program, library: Library) -> Scope:
    """What the program's operators may name: its types and functions, and those of all namespaces."""
    types = [d for d in program.decls if isinstance(d, TypeDecl)]
    fns = [d for d in program.decls if isinstance(d, s.Fn)]
    return _scope(
        tuple(map(Same, types)), tuple(map(Same, fns)), tuple(map(Same, library.namespaces.values()))
    )


@lru_cache(maxsize=8192)
def _operator(decl: Same[s.Operator | s.Extern], scope: Same[Scope]) -> typed.Operator | typed.Extern:
    op = decl.value
    if (
        isinstance(op, s.Operator)
        and op.consts
        and all(_alone(const.value, op, scope.value) for const in op.consts)
    ):
        try:
            other = _alike(SameBody(op), scope)
        except Rejected:
            pass  # what is wrong is told of this one
        else:
            found = check.with_constants(op, other, scope.value)
            if found is not None:
                return found
    return check.operator(op, scope.value)


def _alone(value: s.Expr, op: s.Operator, scope: Scope) -> bool:
    """Whether a constant's value calls no function."""
    if is_number(value):
        return True
    calls = {node.function for node in walk(value) if isinstance(node, s.Call)}
    return not any(name in scope.fns for name in calls) and calls.isdisjoint(fn.name for fn in op.fns)


@lru_cache(maxsize=8192)
def _alike(op: Same[s.Operator], scope: Same[Scope]) -> typed.Operator:
    """The checked operator but for the values of its constants, once for all that differ in nothing else."""
    consts = tuple(evolve(const, value=s.Call("zero", ())) for const in op.value.consts)
    found = check.operator(evolve(op.value, consts=consts), scope.value)
    assert isinstance(found, typed.Operator)  # noqa: S101 - its text is none of an extern
    return found


@lru_cache(maxsize=1024)
def _initial(value: Same[s.Expr], type_: t.Type, scope: Same[Scope]) -> typed.Value:
    """The first value of a variable; a call that gives those of several is made once."""
    match value.value:
        case s.Member(s.Call(name, ()) as call, label) if name in scope.value.fns:
            table, index = check.function(name, scope.value)
            result = table[index].result
            if isinstance(result, t.Record) and (label, type_) in result.fields and not table[index].params:
                whole = _initial(Same(call), result, scope)
                return whole[[each for each, _ in result.fields].index(label)]
        case _:
            pass
    return check.constant(value.value, type_, scope.value)


# ------------------------------------------------------------------------------------------------------- the verifier


@frozen
class _Side:
    """A use's end of a queue: what the operator says about it. `what`: whether it is an input or an output of the operator."""

    what: str
    end: End
    use: Use
    type: t.Type
    by: str | None
    name: str

    @property
    def span(self) -> Span | None:
        """Where the use stands."""
        return self.use.span

    @property
    def side(self) -> str:
        """How people call it."""
        return f"{self.what} `{self.name}` of `{self.use.operator}`"


@define
class _Verifier:
    """`known`: by the identity of uses that were right in another program, what these are; `new`: those that were in none."""

    program: Program
    templates: Library
    known: Mapping[int, Instance]
    new: list[Instance] = field(factory=list[Instance])
    errors: list[Diagnostic] = field(factory=list[Diagnostic])
    scope: Scope = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.scope = scope(self.program, self.templates)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *notes: Note,
        help: str | None = None,
    ) -> None:
        """Notes an error."""
        self.errors.append(Diagnostic(code, message, span, notes=notes, help=help))

    def graph(self) -> Graph:
        """The verified graph."""
        self.names()
        self.types_and_fns()
        operators = self.operators()
        variables = self.variables()
        declared = self.declared_queues()
        instances = self.instances(operators, variables)
        queues = self.queues(declared, instances)
        for decl in (*self.program.inputs, *self.program.outputs):
            self.guarded(border, decl)
        results = self.results(variables)
        views = self.views(variables | self.combined(results, variables))
        for instance in self.new:
            self.marks(instance)
            self.steadiness(instance)
            items = [port.type for port in instance.operator.ports]
            self.errors += annotations.check(instance.use, items)
        if not self.errors:
            self.errors += annotations.check_regions(instances)
            self.errors += check_sources(self.program.inputs, queues, instances)
            self.combinations(results, instances, variables)
        if self.errors:
            raise Rejected(self.errors)
        return Graph(
            program=self.program,
            inputs=tuple(d.name for d in self.program.inputs),
            outputs=tuple(d.name for d in self.program.outputs if d.view is None),
            views=views,
            queues=queues,
            variables=tuple(variables.values()),
            results=results,
            instances=instances,
            remarks=tuple(_determinism(self.program, instances)),
        )

    # -- names

    def names(self) -> None:
        """Refuses two declarations of one name."""
        seen: dict[tuple[str, str], s.Node] = {}
        for decl in self.program.decls:
            for kind, name in _names(decl):
                before = seen.setdefault((kind, name), decl)
                if before is not decl:
                    note = Note("the first", before.span)
                    self.error("il-duplicate-name", f"{kind} `{name}` is declared twice", decl.span, note)

    def types_and_fns(self) -> None:
        """Checks the declared types and functions, used or not."""
        for decl in self.program.decls:
            match decl:
                case TypeDecl(_, (), type_):
                    self.guarded(check.resolve, type_, self.scope)
                case TypeDecl(_, params, type_):
                    params_as_units = {param: Declared((), s.TypeName("unit")) for param in params}
                    self.guarded(check.resolve, type_, self.scope.extended(params_as_units))
                case _:
                    pass
        names = [decl.name for decl in self.program.decls if isinstance(decl, s.Fn)]
        self.guarded(check.functions, names, self.scope)

    def guarded(self, arrow: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `arrow` makes, or None with its errors noted."""
        try:
            return arrow(*args, **kwargs)
        except Rejected as rejected:
            self.errors += [d for d in rejected.diagnostics if d not in self.errors]
            return None

    # -- operators

    def operators(self) -> Mapping[str, typed.Operator | typed.Extern | None]:
        """The checked operators by name; None for a refused one."""
        decls = named_operators(self.program)
        found: dict[str, typed.Operator | typed.Extern | None] = {}
        for name, decl in decls.items():
            match decl:
                case s.Operator() | s.Extern():
                    found[name] = self.guarded(_operator, Same(decl), Same(self.scope))
                case InstanceDecl() | Lift():
                    found[name] = self.instance(decl, decls)
                case s.Template() if template_errors := check_template(decl):
                    self.errors += template_errors
                case _:
                    pass
        return found

    def instance(
        self, decl: InstanceDecl | Lift, decls: Mapping[str, Decl]
    ) -> typed.Operator | typed.Extern | None:
        """The checked operator of an instance or lift; errors inside say which instance it was."""
        made_of = decl.operator if isinstance(decl, Lift) else decl.template
        origin = decls.get(made_of)
        if isinstance(origin, s.Template) and check_template(origin):
            return None  # said at the template
        try:
            return _operator(Same(expand(decl, decls, self.templates)), Same(self.scope))
        except Rejected as rejected:
            what = "the lift" if isinstance(decl, Lift) else "an instance"
            note = Note(f"in `{decl.name}`, {what} of `{made_of}`", decl.span)
            self.errors += [
                d if d.span == decl.span else evolve(d, notes=(*d.notes, note)) for d in rejected.diagnostics
            ]
            return None

    # -- variables

    def variables(self) -> dict[str, Variable]:
        """The program's variables with their initial values."""
        found: dict[str, Variable] = {}
        for decl in self.program.decls:
            if isinstance(decl, VariableDecl) and decl.name not in found:
                type_ = self.guarded(check.resolve, decl.type, self.scope)
                if type_ is None:
                    continue
                value = self.guarded(self.first_value, decl, type_)
                found[decl.name] = Variable(decl.name, type_, value)
        return found

    def first_value(self, decl: VariableDecl, type_: t.Type) -> typed.Value:
        """The first value of a variable. Raises: Rejected, which says what users call the use that has the variable."""
        try:
            return _initial(Same(decl.initial), type_, Same(self.scope))
        except Rejected as rejected:
            uses = (use for use in self.program.decls if isinstance(use, Use) and f"${decl.name}" in use.ins)
            paths = [Note(f"in `{path}`") for use in uses for path, _ in use.within[:1]]
            raise Rejected([evolve(d, notes=(*d.notes, *paths)) for d in rejected.diagnostics]) from None

    def declared_variable(self, name: str) -> bool:
        """Whether the text declares the variable, rightly or not."""
        return any(isinstance(d, VariableDecl) and d.name == name for d in self.program.decls)

    # -- queues

    def declared_queues(self) -> dict[str, _Declared]:
        """Inputs, queue outputs and stated inner queues."""
        found: dict[str, _Declared] = {}
        for decl in self.program.decls:
            match decl:
                case Input(name, type_, by) | QueueDecl(name, type_, by):
                    pass
                case Output(name, type_, by, None):
                    pass
                case _:
                    continue
            item = self.guarded(check.resolve, type_, self.scope)
            if item is not None and not t.is_item(item):
                help_ = "omap, bag, deque, fsum, i128 and regex are for variables"
                self.error(
                    "il-item-type",
                    f"`{show(item)}` cannot travel along queue `{name}`",
                    decl.span,
                    help=help_,
                )
            if item is not None and by is not None:
                self.key_field(name, item, by, decl.span)
            found.setdefault(name, _Declared(decl, item, by))
        return found

    def key_field(self, name: str, item: t.Type, by: str, span: Span | None) -> None:
        """Refuses a key that is no field, or no whole number."""
        fields = dict(item.fields) if isinstance(item, t.Record) else {}
        if by not in fields:
            message = f"the items of `{name}` have no field `{by}` to order by"
            self.error("il-queue-key", message, span, help=closest(by, fields))
        elif fields[by] not in KEYS:
            message = f"`{name}` cannot be ordered by `{by}`: it is no whole number, time or duration"
            self.error("il-queue-key", message, span)

    # -- uses

    def instances(
        self, operators: Mapping[str, typed.Operator | typed.Extern | None], variables: Mapping[str, Variable]
    ) -> tuple[Instance, ...]:
        """The uses with their operators; one that does not fit its operator is left out."""
        found: list[Instance] = []
        for use in self.program.uses:
            if use.operator not in operators:
                what = (
                    "a template: name an instance of it"
                    if use.operator in named_operators(self.program)
                    else None
                )
                help_ = what or closest(use.operator, operators)
                self.error("il-unknown-operator", f"unknown operator `{use.operator}`", use.span, help=help_)
                continue
            operator = operators[use.operator]
            if operator is None:
                continue
            known = self.known.get(id(use))
            right = known is not None and known.operator is operator
            if known is not None and right:
                instance = Instance(len(found), use, operator, known.ins, known.outs, known.variables)
            else:
                ends = _queues(use.ins), _queues(use.outs), _variables(use.ins)
                instance = Instance(len(found), use, operator, *ends)
                if not self.fits(instance):
                    continue
                self.new.append(instance)
            if instance.variables or not right:
                self.instance_variables(instance, variables)
            found.append(instance)
        return tuple(found)

    def fits(self, instance: Instance) -> bool:
        """Whether the use has as many ends as its operator; notes what is wrong."""
        use, operator = instance.use, instance.operator
        fine = True
        for what, given, wanted in (
            ("input", instance.ins, operator.ports),
            ("output", instance.outs, operator.outs),
            ("variable", instance.variables, operator.vars),
        ):
            if len(given) != len(wanted):
                wants = f"{len(wanted)} {what}{'s' * (len(wanted) != 1)}"
                message = f"`{use.operator}` has {wants}, {len(given)} given"
                self.error("il-arity", message, use.span, Note("its signature", operator.span))
                fine = False
        return fine

    def instance_variables(self, instance: Instance, variables: Mapping[str, Variable]) -> None:
        """Checks names, types and sides of the variables of a use."""
        use, operator = instance.use, instance.operator
        for name in sorted({name for name in instance.variables if instance.variables.count(name) > 1}):
            message = f"`${name}` stands for two variables of `{use.operator}`, which would be one"
            self.error("il-variable-repeated", message, use.span)
        for name, param in zip(instance.variables, operator.vars, strict=True):
            variable = variables.get(name)
            if variable is None:
                if not self.declared_variable(name):
                    near = closest(f"${name}", [f"${known}" for known in variables])
                    self.error("il-unknown-variable", f"unknown variable `${name}`", use.span, help=near)
            elif variable.type != param.type:
                message = f"`${name}` is `{show(variable.type)}`, but `${param.name}` is `{show(param.type)}`"
                self.error("il-variable-type", message, use.span, Note("the parameter", param.span))
        written = [n for n, param in zip(instance.variables, operator.vars, strict=True) if param.written]
        left = list(_variables(use.outs))
        for name in dict.fromkeys(left):
            if name not in instance.variables:
                message = f"`${name}` is written, but not given to `{use.operator}`"
                self.error("il-variable-written", message, use.span, help=f"add `${name}` on the right")
            elif name not in written:
                message = f"`{use.operator}` only reads `${name}`: it does not belong on the left"
                self.error("il-variable-written", message, use.span)
        for name in written:
            if name not in left:
                message = f"`{use.operator}` writes `${name}`: it must also stand on the left"
                self.error("il-variable-written", message, use.span)
        if set(left) == set(written) and left != written:
            order = ", ".join(f"`${name}`" for name in written)
            self.error(
                "il-variable-written", f"the variables on the left stand in this order: {order}", use.span
            )

    def queues(self, declared: Mapping[str, _Declared], instances: tuple[Instance, ...]) -> dict[str, Queue]:
        """Every queue with its type and its two ends."""
        producers: dict[str, list[_Side]] = {}
        consumers: dict[str, list[_Side]] = {}
        for i in instances:
            for k, (name, out) in enumerate(zip(i.outs, i.operator.outs, strict=True)):
                side = _Side("output", End(i.index, k), i.use, out.type, out.by, out.name)
                producers.setdefault(name, []).append(side)
            for k, (name, port) in enumerate(zip(i.ins, i.operator.ports, strict=True)):
                side = _Side("input", End(i.index, k), i.use, port.type, port.by, port.name)
                consumers.setdefault(name, []).append(side)
        complete = len(instances) == len(self.program.uses)  # a refused use may have been the missing end
        found: dict[str, Queue] = {}
        for name in dict.fromkeys([*declared, *producers, *consumers]):
            queue = self.queue(
                name, declared.get(name), producers.get(name, []), consumers.get(name, []), complete=complete
            )
            if queue is not None:
                found[name] = queue
        return found

    def queue(
        self,
        name: str,
        declared: _Declared | None,
        produced: list[_Side],
        consumed: list[_Side],
        *,
        complete: bool,
    ) -> Queue | None:
        """One queue; notes what is wrong with its ends."""
        decl = None if declared is None else declared.decl
        is_input, is_output = isinstance(decl, Input), isinstance(decl, Output)
        around: list[Note] = []
        if (len(produced), len(consumed)) != (int(not is_input), int(not is_output)):
            around += [Note("declared here", decl.span)] if decl is not None else []
            around += [Note("produced here", side.use.span) for side in produced]
            around += [Note("consumed here", side.use.span) for side in consumed]
        if len(produced) > 1:
            message = f"queue `{name}` has {len(produced)} producers, it may have one"
            help_ = "an operator that reads both makes one queue of two"
            self.error("il-producers", message, produced[1].use.span, *around, help=help_)
        if len(consumed) > 1:
            message = f"queue `{name}` has {len(consumed)} consumers, it may have one"
            help_ = f"`std.duplicate<T = .., n = {len(consumed)}>` makes as many queues"
            self.error("il-consumers", message, consumed[1].use.span, *around, help=help_)
        if is_input and produced:
            self.error(
                "il-input-produced",
                f"`{name}` is an input: nobody produces it",
                produced[0].use.span,
                *around,
            )
        if is_output and consumed:
            message = f"`{name}` is an output: nobody consumes it"
            help_ = "`std.duplicate` makes a second queue of it"
            self.error("il-output-consumed", message, consumed[0].use.span, *around, help=help_)
        if not is_input and not produced and complete:
            span = consumed[0].use.span if consumed else decl.span if decl is not None else None
            if decl is None:
                near = closest(name, [d.name for d in self.program.inputs])
                self.error("il-unknown-queue", f"unknown queue `{name}`: nobody produces it", span, help=near)
            else:
                self.error("il-no-producer", f"queue `{name}` has no producer", span, *around)
        if not is_input and not is_output and not consumed and complete and (produced or decl is not None):
            span = produced[0].use.span if produced else decl.span if decl is not None else None
            help_ = f"`output {name}: ..;` lets it leave the program"
            self.error("il-no-consumer", f"queue `{name}` has no consumer", span, *around, help=help_)
        producer, consumer = next(iter(produced), None), next(iter(consumed), None)
        self.agree(name, declared, producer, consumer)
        type_ = declared.type if declared is not None else producer.type if producer is not None else None
        by = declared.by if declared is not None else producer.by if producer is not None else None
        if type_ is None:
            return None
        return Queue(name, type_, by, producer and producer.end, consumer and consumer.end)

    def agree(
        self, name: str, declared: _Declared | None, producer: _Side | None, consumer: _Side | None
    ) -> None:
        """Refuses a queue on whose type or key its declaration and its ends do not agree."""
        if declared is not None and declared.type is not None:
            if producer is not None:
                self.compare(name, producer, declared, both=True)
            if consumer is not None:
                self.compare(name, declared, consumer, both=False)
        elif producer is not None and consumer is not None:
            self.compare(name, producer, consumer, both=False)

    def compare(self, name: str, made: _Side | _Declared, taken: _Side | _Declared, *, both: bool) -> None:
        """Refuses two sides of a queue that differ; a side that does not order takes any order, unless `both` must."""
        if made.type != taken.type and made.type is not None and taken.type is not None:
            made_type, taken_type = show(made.type), show(taken.type)
            message = (
                f"queue `{name}` carries `{made_type}` by {made.side}, but `{taken_type}` by {taken.side}"
            )
            self.error("il-queue-type", message, taken.span, Note("the other side", made.span))
        if made.by != taken.by and (both or taken.by is not None):
            message = f"queue `{name}` is {_ordered(made.by)} by {made.side}, but {_ordered(taken.by)} by {taken.side}"
            self.error("il-queue-key", message, taken.span, Note("the other side", made.span))

    # -- observations

    def views(self, variables: Mapping[str, Variable]) -> tuple[View, ...]:
        """The outputs that are views of variables."""
        found: list[View] = []
        for decl in self.program.outputs:
            if decl.view is None:
                continue
            item = self.guarded(check.resolve, decl.type, self.scope)
            variable = variables.get(decl.view.variable)
            if variable is None and not self.declared_variable(decl.view.variable):
                near = closest(f"${decl.view.variable}", [f"${known}" for known in variables])
                message = f"unknown variable `${decl.view.variable}`"
                if any(isinstance(d, Result) and d.name == decl.view.variable for d in self.program.decls):
                    message = f"`${decl.view.variable}` is kept in parts"
                    near = "a view looks at one variable, or at a result that is combined"
                self.error("il-unknown-variable", message, decl.view.span or decl.span, help=near)
            function = decl.view.function
            if function not in self.scope.fns:
                near = closest(function, self.scope.fns)
                self.error(
                    "il-view", f"unknown function `{function}`", decl.view.span or decl.span, help=near
                )
                continue
            try:
                fns, index = check.function(function, self.scope)
            except Rejected:
                continue  # said at the function
            if item is not None and variable is not None:
                self.view_signature(decl, item, variable, fns[index])
                found.append(View(decl.name, variable.name, item, fns, index, decl.view.leading))
        return tuple(found)

    def view_signature(self, decl: Output, item: t.Type, variable: Variable, fn: typed.Fn) -> None:
        """Refuses a function that does not make rows of the output's type out of the variable."""
        params = tuple(param.type for param in fn.params)
        wanted: list[tuple[t.Type, ...]] = [(variable.type,)]
        match variable.type:
            case t.Map(key, value) | t.OMap(key, value):
                wanted.append((key, value))
            case _:
                pass
        note = Note("the function", fn.span)
        if params not in wanted:
            shown = " or ".join(f"({', '.join(map(show, types))})" for types in wanted)
            message = f"`{fn.name}` takes ({', '.join(map(show, params))}), a view of `${variable.name}` gives {shown}"
            self.error("il-view", message, decl.span, note)
        leading = None if decl.view is None else decl.view.leading
        if leading is not None and (not isinstance(item, t.Record) or leading > len(item.fields)):
            message = (
                f"rows of `{show(item)}` do not have {leading} field{'s' * (leading != 1)} to be ordered by"
            )
            self.error("il-view", message, decl.span)
        if fn.result != t.List(item):
            message = f"`{fn.name}` returns `{show(fn.result)}`, `{decl.name}` wants `{show(t.List(item))}`"
            self.error("il-view", message, decl.span, note)
        if any(param.ref for param in fn.params):
            self.error("il-view", f"`{fn.name}` would change what it looks at", decl.span, note)
        if decl.by is not None:
            self.error("il-view", f"`{decl.name}` is a view: it has no order", decl.span)

    def results(self, variables: Mapping[str, Variable]) -> tuple[ResultUnion, ...]:
        """The declared unions of variables."""
        found: list[ResultUnion] = []
        for decl in self.program.decls:
            if not isinstance(decl, Result):
                continue
            types: dict[t.Type, str] = {}
            for part in decl.parts:
                if part in variables:
                    types.setdefault(variables[part].type, part)
                elif not self.declared_variable(part):
                    near = closest(f"${part}", [f"${known}" for known in variables])
                    self.error("il-unknown-variable", f"unknown variable `${part}`", decl.span, help=near)
            if len(types) > 1:
                message = f"the parts of `${decl.name}` have different types"
                notes = (Note(f"`${part}` is `{show(type_)}`") for type_, part in types.items())
                self.error("il-result", message, decl.span, *notes)
            for type_ in () if decl.combined else types:
                if not isinstance(type_, t.Map | t.OMap | t.Bag):
                    message = f"`${decl.name}` is a union of maps or bags, not of `{show(type_)}`"
                    self.error("il-result", message, decl.span)
            for part in sorted({part for part in decl.parts if decl.parts.count(part) > 1}):
                self.error("il-result", f"`${part}` is named twice", decl.span)
            found.append(ResultUnion(decl.name, decl.parts, decl.combined))
        return tuple(found)

    def combined(
        self, results: Iterable[ResultUnion], variables: Mapping[str, Variable]
    ) -> dict[str, Variable]:
        """The results that are combined, as variables at which views may look."""
        firsts = {each.name: variables.get(each.parts[0]) for each in results if each.combined}
        return {name: evolve(first, name=name) for name, first in firsts.items() if first is not None}

    def combinations(
        self,
        results: Iterable[ResultUnion],
        instances: Sequence[Instance],
        variables: Mapping[str, Variable],
    ) -> None:
        """Refuses results whose parts cannot be combined."""
        for each in results:
            found = combination(each, instances, tuple(variables.values())) if each.combined else None
            if isinstance(found, str):
                decl = next(d for d in self.program.decls if isinstance(d, Result) and d.name == each.name)
                help_ = "`union` puts maps or bags together whose keys or items differ"
                self.error(
                    "il-result",
                    f"the parts of `${each.name}` cannot be combined: {found}",
                    decl.span,
                    help=help_,
                )

    # -- marks

    def marks(self, instance: Instance) -> None:
        """Refuses ordered outputs for which marks cannot be forwarded as they are (il.md 2.5)."""
        op = instance.operator
        if all(out.by is None for out in op.outs) or all(port.by is None for port in op.ports):
            return
        if isinstance(op, typed.Extern) and op.scalar:  # it passes the key on
            return
        why = "its body is not text" if isinstance(op, typed.Extern) else mark_obstacle(op)
        if why is not None:
            message = f"`{op.name}` must state `on mark`: {why}"
            help_ = "the marks of an ordered output follow those of the input only if the key is passed on unchanged"
            place, note = _place(op.span, instance.use.span)
            error = Diagnostic("il-mark", message, place, notes=(note,), help=help_)
            if not any(d.code == "il-mark" and d.message == message for d in self.errors):
                self.errors.append(error)

    def steadiness(self, instance: Instance) -> None:
        """Refuses operators whose results may depend on how many marks there are, unless they promise otherwise."""
        op = instance.operator
        if isinstance(op, typed.Extern) or any(a.name == "Steady" for a in instance.use.annotations):
            return
        if (why := marks.obstacle(op)) is not None:
            assert op.mark is not None  # noqa: S101 - else nothing is in the way
            message = f"what `{op.name}` does at marks may depend on how many there are: {why}"
            help_ = (
                "let a function do it in a loop which the key only ends, and call it first in the other handlers, too; "
                "`@Steady()` promises that the number of marks does not matter"
            )
            place, note = _place(op.mark.span, instance.use.span)
            error = Diagnostic("il-mark-counted", message, place, notes=(note,), help=help_)
            if not any(d.code == "il-mark-counted" and d.message == message for d in self.errors):
                self.errors.append(error)


def _place(place: Span | None, use: Span | None) -> tuple[Span | None, Note]:
    """Where a mistake of an operator is told, and what else is shown: in the user's text, if the operator is a template's."""
    if place is not None and use is not None and place.source is not use.source:
        return use, Note("the template", place)
    return place, Note("used here", use)


@frozen
class _Declared:
    """What the program says of a queue; `type`: None where it is refused."""

    decl: Input | QueueDecl | Output
    type: t.Type | None
    by: str | None

    @property
    def span(self) -> Span | None:
        """Where it says so."""
        return self.decl.span

    @property
    def side(self) -> str:
        """How people call it."""
        return "its declaration"


def _ordered(by: str | None) -> str:
    return "in no order" if by is None else f"ordered by `{by}`"


def _queues(ends: Iterable[str]) -> tuple[str, ...]:
    return tuple(end for end in ends if not end.startswith("$"))


def _variables(ends: Iterable[str]) -> tuple[str, ...]:
    return tuple(end[1:] for end in ends if end.startswith("$"))


def _names(decl: Decl) -> tuple[tuple[str, str], ...]:
    """The kinds and names that a declaration takes."""
    match decl:
        case TypeDecl(name):
            return (("type", name),)
        case Input(name) | Output(name) | QueueDecl(name):
            return (("queue", name),)
        case VariableDecl(name) | Result(name):
            return (("variable", f"${name}"),)
        case s.Fn(name):
            return (("function", name),)
        case s.Operator(name) | s.Extern(name) | InstanceDecl(name) | Lift(name):
            return (("operator", name),)
        case s.Template(_, operator):
            return (("operator", operator.name),)
        case Use():
            return ()
        case _:
            assert_never(decl)


# ----------------------------------------------------------------------------------------------------- keys and marks


def mark_obstacle(op: typed.Operator) -> str | None:
    """Why the marks of the inputs may not be forwarded as they are; None if they may.

    They may if each item sent on an ordered output bears the key of the item, or of the merge, that caused it. An
    operator without ordered inputs has no marks to forward: it makes an order of its own, and the marks for it.
    """
    ordered = [i for i, out in enumerate(op.outs) if out.by is not None]
    if op.mark is not None or not ordered or all(port.by is None for port in op.ports):
        return None
    if op.rated is not None or op.phases:
        return "items wait inside a rated or phase handler while marks pass"
    found = item_findings(op)
    ports = [h.port for h in op.items] if op.merge is None else [-1]
    for port, findings in zip(ports, found, strict=True):
        for out, origin in findings.emits:
            if out in ordered and not _carries_key(op, op.outs[out], port, origin):
                return f"the key `{op.outs[out].by}` of `{op.outs[out].name}` is not that of the input"
    return None


def _carries_key(op: typed.Operator, out: typed.Out, port: int, origin: Origin) -> bool:
    """Whether an item of this origin has the key of the firing; `port` is -1 in a merge, where any side has it."""
    assert isinstance(out.type, t.Record)  # noqa: S101 - the checker has seen to it
    assert out.by is not None  # noqa: S101 - asked of ordered outputs only
    position = out.type.index(out.by)
    assert position is not None  # noqa: S101 - the checker has seen to it
    match origin:
        case Construction(values):
            key = values[position]
        case ItemPart(source, path):
            key = ItemPart(source, (*path, position))
        case _:
            return False
    match key:
        case Key():
            return port == -1
        case ItemPart(source, (index,)):
            side = op.ports[source]
            own = (
                side.type.index(side.by) if side.by is not None and isinstance(side.type, t.Record) else None
            )
            return index == own and port in (-1, source)
        case _:
            return False


# ------------------------------------------------------------------------------------------------------- determinism


def _determinism(program: Program, instances: tuple[Instance, ...]) -> Iterable[Diagnostic]:
    """Remarks on all that keeps the program from being deterministic by construction (il.md P1)."""
    for instance in instances:
        op = instance.operator
        if len(op.ports) < 2 or (isinstance(op, typed.Operator) and not op.items):
            continue
        ports = ", ".join(f"`{port.name}`" for port in op.ports)
        message = f"`{op.name}` takes items from {ports} in whatever order they arrive"
        help_ = "a merge, phase or rated handler decides the order"
        note = Note("its definition", op.span)
        yield Diagnostic("il-not-deterministic", message, instance.use.span, Severity.REMARK, (note,), help_)
    written = {
        name
        for instance in instances
        for name, param in zip(instance.variables, instance.operator.vars, strict=True)
        if param.written
    }
    for name in dict.fromkeys(name for instance in instances for name in instance.variables):
        if name not in written:
            continue
        users = [instance for instance in instances if name in instance.variables]
        if len(users) > 1:
            shown = ", ".join(f"`{user.use.operator}`" for user in users)
            message = f"`${name}` is shared by {shown}, whose firings may come in any order"
            notes = tuple(Note("used here", user.use.span) for user in users)
            span = next(
                (d.span for d in program.decls if isinstance(d, VariableDecl) and d.name == name), None
            )
            yield Diagnostic("il-not-deterministic", message, span, Severity.REMARK, notes)
