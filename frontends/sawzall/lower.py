"""Typed to River IL: a stateless map operator, and a reducer with a view for each table (calculus.md, core Sawzall).

Paper: River section 3.4; the annotations say what Sawzall makes safe by construction (section 4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from frontends.sawzall.body import Undefined, handler, local_function, port
from frontends.sawzall.calls import emitting
from frontends.sawzall.check import UNDEFINED
from frontends.sawzall.reduce import Reducer, item_type, reducer
from frontends.sawzall.values import Consts, static
from river.il import program as p
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang.operations import OPERATIONS
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.sawzall import typed as z

REPORT = s.RecordType((s.FieldType("at", s.TypeName("string")), s.FieldType("why", s.TypeName("string"))))
"""The rows of the output `undefined`: line and column in the program, and the reason."""


def lower(program: z.Program) -> p.Program:
    """The program in River IL.

    The map operator has an output for each table, and `undefined` if something may be undefined. A collection is such an
    output itself; every other table is a variable that a reducer fills, seen through a view.
    """
    return _Lowering(program).program()


@define
class _Lowering:
    typed: z.Program
    taken: set[str] = field(factory=set[str])

    def unused(self, name: str) -> str:
        """A top-level name that is free."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def program(self) -> p.Program:
        """All declarations, in the order in which they are read best."""
        typed = self.typed
        source = typed.variables[typed.input]
        self.taken |= {source.name, *(table.name for table in typed.tables)}
        operator, reports = self.map()
        reducers = [self.reducer(table) for table in typed.tables if table.kind != "collection"]
        queues = {r.table: r.queue for r in reducers}
        ends = [queues.get(table.name, table.name) for table in typed.tables]
        uses = [self.use(operator.name, ends, source, reports=reports), *(r.use for r in reducers)]
        decls: list[p.Decl] = [p.Input(source.name, expression(source.type), span=source.span)]
        decls += [self.output(table, reducers) for table in typed.tables]
        if reports:
            decls.append(p.Output(UNDEFINED, REPORT, span=typed.span))
        for found in reducers:
            decls += [found.variable, found.rows]
        return p.Program((*decls, operator, *(r.instance for r in reducers), *uses))

    def output(self, table: z.Table, reducers: list[Reducer]) -> p.Output:
        """The output of a table."""
        for found in reducers:
            if found.table == table.name:
                return found.output
        return p.Output(table.name, item_type(table), span=table.span)

    def reducer(self, table: z.Table) -> Reducer:
        """What a table needs."""
        return reducer(
            table, self.unused(f"{table.name}_emits"), self.unused(f"{table.name}_{table.kind}"),
            self.unused(f"{table.name}_rows"),
        )  # fmt: skip

    def use(self, operator: str, ends: list[str], source: z.Variable, *, reports: bool) -> p.Use:
        """The use of the map operator: its outputs are bags, the order of the records does not matter."""
        outs = (*ends, UNDEFINED) if reports else tuple(ends)
        annotations = (p.Annotation("Parallel"), p.Annotation("Commutative"))
        return p.Use(outs, operator, (source.name,), annotations, span=self.typed.span)

    def map(self) -> tuple[s.Operator, bool]:
        """The map operator, and whether it reports undefined values."""
        typed = self.typed
        source = typed.variables[typed.input]
        names = {*OPERATIONS, source.name}
        fns: dict[int, str] = {}
        for i, function in enumerate(typed.functions):
            fns[i] = fresh(function.name, names)
            names.add(fns[i])
        found = emitting(typed.functions)
        consts = Consts(typed, fns, found, set(fns.values()))
        failures = Undefined()
        statics = [static(consts, index, value) for index, value in typed.statics]
        functions = [local_function(consts, i) for i in range(len(typed.functions))]
        body = handler(consts, failures)
        ports = (s.Port(port(source.name), expression(source.type), span=source.span),)
        outs = [s.Out(table.name, item_type(table), span=table.span) for table in typed.tables]
        if failures.met:
            outs.append(s.Out(UNDEFINED, REPORT))
        operator = s.Operator(
            self.unused("map"), ports, (), tuple(outs),
            (*consts.patterns(), *(const for found in statics for const in found)), tuple(functions), (body,), span=typed.span,
        )  # fmt: skip
        return operator, failures.met
