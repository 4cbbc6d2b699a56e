"""Typed to River IL: a stateless map operator, and a reducer with a view for each table (calculus.md, core Sawzall).

Paper: River section 3.4; the annotations say what Sawzall makes safe by construction (section 4.2).
"""

from __future__ import annotations

from frontends.sawzall import typed as z
from frontends.sawzall.body import PRINTS, binary, handler, local_function, port, static
from frontends.sawzall.calls import drawing, draws, emitting, reached
from frontends.sawzall.declared_tables import UNDEFINED
from frontends.sawzall.functions import FUNCTIONS
from frontends.sawzall.itemwise import itemwise
from frontends.sawzall.messages import LOCALS as MESSAGE_LOCALS
from frontends.sawzall.messages import functions as messages
from frontends.sawzall.recursive import LOCALS
from frontends.sawzall.recursive import functions as recursive
from frontends.sawzall.reduce import Reducer, indexed, item_type, reducer
from frontends.sawzall.tables import DIRECT
from frontends.sawzall.typed import Inside, inside
from frontends.sawzall.types import expression
from frontends.sawzall.values import Consts, owned
from river.classes import define, field
from river.il import program as p
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.parse import RESERVED

REPORT = s.RecordType((s.FieldType("at", s.TypeName("string")), s.FieldType("why", s.TypeName("string"))))
"""The rows of the output `undefined`: line and column in the program, and the reason."""


def lower(program: z.Program) -> p.Program:
    """The program in River IL.

    The map operator has an output for each table, and `undefined` if something may be undefined. A collection is such an
    output itself; every other table is a variable that a reducer fills, seen through a view.
    """
    program = itemwise(program)
    bodies = (program.body, *(function.body for function in program.functions))
    drawn = any(draws(inside(body), program.tables) for body in bodies)
    return _Lowering(program, drawn).program()


@define
class _Lowering:
    """One program. `draws`: it draws random numbers; then its records are numbered."""

    typed: z.Program
    draws: bool
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
        reducers = [
            self.reducer(table)
            for table in typed.tables
            if table.kind not in DIRECT and table.printed is None
        ]
        queues = {r.table: r.queue for r in reducers}
        ends = [queues.get(name, name) for name, _ in self.outs()]
        records, numbering, numbered = self.numbering(source)
        uses = [
            *numbered,
            self.use(operator.name, ends, records, reports=reports),
            *(r.use for r in reducers),
        ]
        decls: list[p.Decl] = [self.input(source), *numbering]
        decls += [self.output(table, reducers) for table in typed.tables if table.printed is None]
        printed = {table.printed for table in typed.tables}
        if "stdout" in printed:
            decls.append(p.Output(PRINTS, expression(self.printed()), annotations=(p.Annotation("Printed"),)))
        if "stderr" in printed:
            to = (p.Annotation("Printed", (s.String("stderr"),)),)
            decls.append(p.Output("stderr", expression(t.STRING), annotations=to))
        if reports:
            decls.append(p.Output(UNDEFINED, REPORT, annotations=(p.Annotation("Errors"),), span=typed.span))
        for found in reducers:
            decls += [found.variable, found.rows]
        return p.Program(
            (
                *decls,
                *FUNCTIONS.needed(FUNCTIONS.called([operator])),
                operator,
                *(r.operator for r in reducers),
                *uses,
            )
        )

    def input(self, source: z.Variable) -> p.Input:
        """The records; a program that reads lines runs once where there are none to read."""
        if source.type != t.BYTES:
            return p.Input(source.name, expression(source.type), span=source.span)
        return p.Input(
            source.name,
            expression(t.BYTES),
            annotations=(p.Annotation("Once"), p.Annotation("Lines")),
            span=source.span,
        )

    def printed(self) -> t.Type:
        """What goes to standard output: bytes, if some of it is no text."""
        return t.BYTES if any(binary(table) for table in self.typed.tables) else t.STRING

    def outs(self) -> list[tuple[str, s.TypeExpr]]:
        """The outputs of the map operator with their items, but for `undefined`."""
        streams = {table.printed for table in self.typed.tables}
        found = {table.name: item_type(table) for table in self.typed.tables if table.printed is None}
        if "stderr" in streams:
            found["stderr"] = expression(t.STRING)
        if "stdout" in streams:
            found[PRINTS] = expression(self.printed())
        return list(found.items())

    def output(self, table: z.Table, reducers: list[Reducer]) -> p.Output:
        """The output of a table."""
        for found in reducers:
            if found.table == table.name:
                return found.output
        sent = indexed(table) if table.sent is None else (p.Annotation("Sent", (s.String(table.sent),)),)
        return p.Output(table.name, item_type(table), annotations=sent, span=table.span)

    def reducer(self, table: z.Table) -> Reducer:
        """What a table needs."""
        return reducer(
            table, self.unused(f"{table.name}_emits"), self.unused(f"{table.name}_{table.kind}"),
            self.unused(f"{table.name}_rows"),
        )  # fmt: skip

    def numbered(self, source: z.Variable) -> s.RecordType:
        """The records with their positions."""
        return s.RecordType(
            (s.FieldType("at", s.TypeName("i64")), s.FieldType("item", expression(source.type)))
        )

    def numbering(self, source: z.Variable) -> tuple[str, tuple[p.Decl, ...], tuple[p.Use, ...]]:
        """What numbers the records, and the queue on which they come behind it: equal ones draw different numbers."""
        if not self.draws:
            return source.name, (), ()
        queue, operator, count = (
            self.unused(name) for name in (f"{source.name}_numbered", "number", "records")
        )
        at = s.Var("n")
        item = s.RecordValue((s.FieldValue("at", at), s.FieldValue("item", s.Name("item"))))
        body = s.Block((s.Emit("numbered", item), s.Assign(at, s.Binary("+", at, s.Int(1)))))
        whole = s.TypeName("i64")
        made = s.Operator(
            operator, (s.Port("record", expression(source.type)),), (s.VarParam("n", whole),),
            (s.Out("numbered", self.numbered(source)),), (), (), (s.ItemHandler("record", "item", body),), span=source.span,
        )  # fmt: skip
        use = p.Use((queue, f"${count}"), operator, (source.name, f"${count}"), span=source.span)
        return queue, (p.Variable(count, whole, s.Int(0)), made), (use,)

    def use(self, operator: str, ends: list[str], records: str, *, reports: bool) -> p.Use:
        """The use of the map operator: the order of the records matters only where values and lines come out as they are."""
        outs = (*ends, UNDEFINED) if reports else tuple(ends)
        ordered = any(table.kind in DIRECT or table.printed is not None for table in self.typed.tables)
        annotations = (p.Annotation("Parallel"), *(() if ordered else (p.Annotation("Commutative"),)))
        return p.Use(outs, operator, (records,), annotations, span=self.typed.span)

    def locals(self) -> frozenset[str]:
        """The names in functions that are written for types, which no function and no static value has then."""
        typed = self.typed
        bodies = (typed.body, *(function.body for function in typed.functions))
        parts = (*map(inside, bodies), Inside([value for _, value in typed.statics]))
        packs = any(part.of(z.Packed) or part.of(z.Unpacked) for part in parts)
        nothing = frozenset[str]()
        return (MESSAGE_LOCALS if packs else nothing) | (LOCALS if typed.recursive else nothing)

    def map(self) -> tuple[s.Operator, bool]:
        """The map operator, and whether it reports undefined values."""
        typed = self.typed
        source = typed.variables[typed.input]
        names = {*OPERATIONS, *RESERVED, source.name, *self.locals()}
        fns: dict[int, str] = {}
        for i, function in enumerate(typed.functions):
            fns[i] = fresh(owned(function.name), names)
            names.add(fns[i])
        frozen: dict[int, str] = {}
        called = Inside([value for _, value in typed.statics]).called
        for i in sorted(reached(called, typed.functions)):
            frozen[i] = fresh(f"static_{typed.functions[i].name}", names)
            names.add(frozen[i])
        found = emitting(typed.functions)
        taken = {*fns.values(), *frozen.values(), *RESERVED, *self.locals()}
        consts = Consts(
            typed, fns, frozen, found, taken, binary=self.printed() == t.BYTES,
            drawing=drawing(typed.functions, typed.tables), draws=self.draws,
        )  # fmt: skip
        statics = [static(consts, index, value) for index, value in typed.statics]
        first = [fn for _, fn in statics if fn is not None]
        functions = [local_function(consts, i) for i in range(len(typed.functions))]
        functions += [local_function(consts, i, frozen=True) for i in frozen]
        body = handler(consts)
        first += messages(consts)
        first += recursive(consts, (*(const for const, _ in statics), *first, *functions, body))
        items = self.numbered(source) if self.draws else expression(source.type)
        ports = (s.Port(port(source.name), items, span=source.span),)
        outs = [s.Out(name, type_) for name, type_ in self.outs()]
        if consts.reports:
            outs.append(s.Out(UNDEFINED, REPORT))
        operator = s.Operator(
            self.unused("map"), ports, (), tuple(outs),
            (*consts.patterns(), *(const for const, _ in statics)), (*first, *functions), (body,), span=typed.span,
        )  # fmt: skip
        return operator, consts.reports
