"""The arrow from typed programs to River IL: one operator for each operator of the algebra, on queues of deltas.

`inputs` makes deltas of what comes, `queries` the operators of each view, `outputs` what the world reads; all of them add to
the same `declarations`.

Paper: River sections 3.1, 3.4. A queue carries `{tau, ins, del}` at ascending instants tau, and nothing where nothing changes;
what feeds an `rstream`, or an aggregate without groups, also carries instants without change: it is not quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import inputs, outputs, passing, present, streams
from frontends.cql import typed as ty
from frontends.cql.declarations import Declarations, Deltas
from frontends.cql.queries import Query
from frontends.cql.trees import as_read, record
from river.classes import evolve
from river.il import program as p
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.externs import Called


def lower(program: ty.Program) -> p.Program:
    """The program as River IL; its operators are instances of the templates of namespace `cql`."""
    whole = Declarations(program)
    delta = s.RecordType(
        (
            s.FieldType("tau", whole.tau),
            *(s.FieldType(n, s.TypeName("list", (s.TypeName("R"),))) for n in ("ins", "del")),
        )
    )
    if len(whole.passing) < len(program.views):
        whole.types.append(p.TypeDecl("delta", ("R",), delta))
    read = [inputs.read(whole, one) for one in program.inputs]
    told = [output for view in program.views for output in _view(whole, view)]
    decls = (
        *whole.types,
        *program.functions,
        *whole.functions.values(),
        *whole.folds.values(),
        *whole.stamps,
        *read,
        *whole.variables,
        *whole.operators,
        *whole.uses,
        *told,
    )
    return p.Program(tuple(rebuild(decl, as_read) for decl in decls))


def _view(whole: Declarations, view: ty.View) -> tuple[p.Output, ...]:
    """A query, and what the world sees of it."""
    if view.name in whole.plan.looked_up:
        return ()
    if view.name in whole.passing:
        return (passing.lower(whole, view, whole.passing[view.name]),)
    own = whole.declare(view.name, expression(view.row), view.span)
    quiet = view.query.operator != "rstream" and view.name not in whole.loud
    inner = Query(whole, view)
    if view.name in whole.plan.now:
        rows = present.stream(inner, own)
    else:
        rows = inner.relation(view.query.relation, quiet=quiet)
        if view.query.operator is not None:
            rows = streams.stream(inner, rows, view.query.operator, own, quiet=quiet)
    if view.called is not None:
        rows = _called(whole, rows, view, view.called, own)
    shown = [
        source for other in whole.source.views for source in other.query.sources if source.name == view.name
    ]
    if not shown:
        return (outputs.output(whole, view, evolve(rows, row=view.row, type=own)),)
    extra = ("output",) if view.output else ()
    whole.publish(view.name, Deltas(rows.queue, view.row, own), view.span, *extra)
    if not view.output:
        return ()
    return (outputs.output(whole, view, Deltas(whole.copies[view.name].pop(), view.row, own)),)


def _called(whole: Declarations, rows: Deltas, view: ty.View, called: Called, own: s.TypeExpr) -> Deltas:
    """Deltas with what a function in Python gives for each row."""
    columns = tuple((n, s.Member(s.Name("r"), n)) for n, _ in rows.row.fields)
    given = t.Record((*rows.row.fields, (called.column, called.operand_types)))
    made = record((*columns, (called.column, called.operands.body)))
    before = whole.mapped(rows, given, made, f"{view.name}_operands", called.span)
    operator, queue = whole.fresh(f"{view.name}_python"), whole.fresh(f"{view.name}_values")
    port, out = s.Port("x", whole.delta(before.type), "tau"), s.Out("y", whole.delta(own), "tau")
    whole.operators.append(
        s.Extern(operator, (port,), (), (out,), called.target, scalar=True, span=called.span)
    )
    whole.use(queue, operator, (before.queue,), (), called.span)
    return Deltas(queue, view.row, own)
