"""Tables: how they are declared, and what `emit` sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall import formats
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.names import Known
from frontends.sawzall.operations import named
from frontends.sawzall.tables import KINDS, PRINTED
from frontends.sawzall.types import Recursive, kept_name, plain, spelled
from river.classes import evolve
from river.diagnostics import Severity, closest
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sawzall.check import Checker
    from river.source import Span

UNDEFINED = "undefined"
"""The output that reports undefined values."""


def table_type(checker: Checker, name: str) -> a.TableType | None:
    """What a name of a type of tables stands for."""
    known = checker.names.known(name)
    return checker.table_types[known.index] if known is not None and known.what == "table type" else None


def declare_table(checker: Checker, name: str, item: a.TableType, span: Span | None) -> None:
    """`t: table kind...;`."""
    if name == UNDEFINED:
        message = f"`{UNDEFINED}` is where undefined values are reported"
        raise checker.report.error("sawzall-duplicate", message, span, "rename the table")
    if item.kind not in KINDS:
        hint = closest(item.kind, KINDS) or f"tables are {', '.join(KINDS)}"
        raise checker.report.error(
            "sawzall-unknown-table", f"unknown kind of table `{item.kind}`", item.kind_span, hint
        )
    kind = KINDS[item.kind]
    if kind.limit == "must" and item.limit is None:
        message, hint = f"`{item.kind}` takes a number", f"write `{item.kind}(10)`"
        raise checker.report.error("sawzall-table", message, item.kind_span, hint)
    if kind.limit == "never" and item.limit is not None:
        raise checker.report.error(
            "sawzall-table", f"`{item.kind}` takes no number", item.kind_span, f"write `{item.kind}`"
        )
    limit = None if item.limit is None else size(checker, item.limit)
    if limit is not None and limit < kind.least:
        message = f"`{item.kind}` takes a number of {kind.least} at least"
        raise checker.report.error("sawzall-table", message, item.kind_span)
    if item.index and not kind.indexed:
        raise checker.report.error("sawzall-table", f"`{item.kind}` has no indices", item.index[0].span)
    value = plain(checker.type(item.value.type))
    finite(checker, value, item.value.span)
    if not kind.value(value):
        message = f"`{item.kind}` takes {kind.wants}, not `{spelled(value)}`"
        raise checker.report.error("sawzall-table", message, item.value.span)
    index = [(element.name, index_type(checker, element)) for element in item.index]
    weight = weight_type(checker, item)
    clauses = clauses_of(checker, item, value)
    if "format" in clauses:
        value = t.STRING
    found = table_of(checker, name, item, limit, index, value, weight, span)
    checker.clauses[len(checker.tables)] = item
    if "file" in clauses or "proc" in clauses:
        found = printed_or_sent(found, clauses)
    checker.tables.append(found)
    checker.names.declare(name, Known("table", len(checker.tables) - 1), span)
    if item.clauses:
        clauses_hold(checker, item)


def clauses_hold(checker: Checker, item: a.TableType) -> None:
    """Checks what stands in the clauses of a table, to which perhaps nothing is sent; each `emit` checks it again."""
    before, hints = len(checker.report.found), checker.names.hints
    value = plain(checker.type(item.value.type))
    fields = value.fields if isinstance(value, t.Record) else ()
    title = item.value.name
    how = f"write `{title}." if title is not None else "give the value a name, `of v: {...}`, and write `v."
    checker.names.hints = hints | {name: f"{how}{name}`" for name, _ in fields}
    with checker.names.scope():
        for part in (*item.index, item.value):
            number = checker.exprs.temporary(part.name or "part", checker.type(part.type))
            checker.names.assign(number)
            if part.name is not None:
                checker.names.declare(part.name, Known("variable", number), part.span)
        for clause in item.clauses:
            formats.formatting(checker.exprs, clause.args, clause.span)
    checker.names.hints = hints
    here = checker.report.found[before:]
    del checker.report.found[before:]
    checker.report.found += [each for each in here if each.severity is Severity.ERROR]  # `emit` warns


def clauses_of(checker: Checker, item: a.TableType, value: t.Type) -> dict[str, a.Clause]:
    """The clauses behind a table, by their words."""
    found: dict[str, a.Clause] = {}
    for clause in item.clauses:
        if clause.word in found:
            raise checker.report.error("sawzall-table", f"`{clause.word}` stands here twice", clause.span)
        found[clause.word] = clause
    formatted = found.get("format")
    if formatted is not None and item.kind in ("sum", "mrcounter", "bootstrapsum", "recordio"):
        raise checker.report.error("sawzall-table", f"`{item.kind}` takes no `format`", formatted.span)
    sent = found.get("file") or found.get("proc")
    if sent is None:
        return found
    if item.kind != "collection":
        raise checker.report.error("sawzall-table", f"`{sent.word}` is for collections", sent.span)
    if "file" in found and "proc" in found:
        raise checker.report.error(
            "sawzall-table", "values go to a file or to a command, not to both", sent.span
        )
    if formatted is None and value != t.BYTES:
        hint = 'add `format("%s\\n", x)`, or send bytes'
        raise checker.report.error(
            "sawzall-table", f"`{sent.word}` takes bytes, not `{spelled(value)}`", item.value.span, hint
        )
    return found


def printed_or_sent(table: z.Table, clauses: dict[str, a.Clause]) -> z.Table:
    """A table whose values go to files or commands: standard output and standard error are known by their names."""
    clause = clauses.get("file") or clauses["proc"]
    match clause.word, clause.args:
        case "file", (s.String("/dev/stdout" | "/dev/stderr" as path),):
            return evolve(table, printed="stdout" if path.endswith("out") else "stderr", index=())
        case word, _:
            where = ((word, t.STRING),)
            return evolve(
                table, sent="file" if word == "file" else "proc", index=where, value=(("data", t.BYTES),)
            )


def finite(checker: Checker, type_: t.Type, span: Span | None) -> None:
    """Refuses a type that contains itself where values come from outside, or go there."""
    if t.contains(type_, Recursive):
        message = (
            f"`{spelled(type_)}` is, or has inside, a type that contains itself: tables and inputs hold none"
        )
        hint = "`string(x)` is its text"
        raise checker.report.error("sawzall-recursive-type", message, span, hint)


def size(checker: Checker, expr: s.Expr) -> int:
    """The value of a whole number that is known before the run: from literals and static values."""
    found = known_whole(checker, checker.exprs.check(expr, t.I64))
    if found is None:
        hint = "write a number, or a static value that is one"
        raise checker.report.error("sawzall-table", "the size of a table is not known here", expr.span, hint)
    return found


def known_whole(checker: Checker, node: z.Expr) -> int | None:
    """The whole number that an expression of literals and static values is; None of another one."""
    match node:
        case z.Constant(t.I64, int() as value):
            return value
        case z.Read():
            value = checker.known_static(node.variable)
            return None if value is None else known_whole(checker, value)
        case z.Apply(_, "len", (of,)):
            value = checker.known_static(of.variable) if isinstance(of, z.Read) else of
            return len(value.items) if isinstance(value, z.ArrayOf) else None
        case z.Apply(_, "neg", (inner,)):
            value = known_whole(checker, inner)
            return None if value is None else -value
        case z.Apply(_, "+" | "-" | "*" | "/" | "min" | "max" as name, (left, right)):
            first, second = known_whole(checker, left), known_whole(checker, right)
            if first is None or second is None or (name == "/" and second == 0):
                return None
            quotient = (
                0 if second == 0 else abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
            )
            known = {
                "+": first + second,
                "-": first - second,
                "*": first * second,
                "/": quotient,
                "min": min(first, second),
                "max": max(first, second),
            }
            return known[name]
        case _:
            return None


def index_type(checker: Checker, element: a.Element) -> t.Type:
    """The type of an index."""
    type_ = plain(checker.type(element.type))
    finite(checker, type_, element.span)
    if not t.is_key(type_):
        raise checker.report.error("sawzall-key-type", f"`{spelled(type_)}` cannot be an index", element.span)
    return type_


_WEIGHTS = {
    "top": "weights are added: they are numbers, or tuples of them",
    **dict.fromkeys(
        ("distinctsample", "inversehistogram"),
        "weights are added: they are numbers or times, or tuples of them",
    ),
    "weightedsample": "weights are `int` or `float`",
    "bootstrapsum": "the weight is a `fingerprint`, by which is drawn: `fingerprintof(x)`",
}
"""What weighs in a table."""


def weight_type(checker: Checker, item: a.TableType) -> t.Type | None:
    """The type of the weight."""
    takes, counts = KINDS[item.kind].weight, KINDS[item.kind].counts
    if item.weight is None:
        if takes is not None and not counts:
            raise checker.report.error(
                "sawzall-table", f"`{item.kind}` needs a weight", item.kind_span, "... weight w: int"
            )
        return t.I64 if counts else None
    type_ = plain(checker.type(item.weight.type))
    finite(checker, type_, item.weight.span)
    if takes is None:
        raise checker.report.error("sawzall-table", f"`{item.kind}` takes no weight", item.weight.span)
    if not takes(type_):
        hint = _WEIGHTS.get(item.kind, "weights are of one basic type, or tuples of such")
        message = f"`{spelled(type_)}` cannot be a weight"
        raise checker.report.error("sawzall-table", message, item.weight.span, hint)
    return type_


def table_of(
    checker: Checker,
    name: str,
    item: a.TableType,
    limit: int | None,
    index: list[tuple[str | None, t.Type]],
    value: t.Type,
    weight: t.Type | None,
    span: Span | None,
) -> z.Table:
    """The table with a name for each field of its items.

    What the text does not name, or calls like another field, takes a name that is free.
    """
    whole = isinstance(value, t.Record) and bool(value.fields)
    fields = value.fields if isinstance(value, t.Record) and whole else ()
    own = [part for part, _ in index] + ([] if whole else [item.value.name])
    own.append(None if item.weight is None else item.weight.name)
    fixed = {part for part, _ in fields}  # these are in the type of the value: others give way
    given = {part for part in own if part is not None} | fixed
    taken: set[str] = set()

    def named(part: str | None, otherwise: str) -> str:
        if part is None or part in fixed | taken:
            part = fresh(otherwise, given | taken)
        taken.add(part)
        return part

    keys = tuple((named(part, f"key{i}"), type_) for i, (part, type_) in enumerate(index))
    values = fields if whole else ((named(item.value.name, "value"), value),)
    weighs = None if item.weight is None else item.weight.name
    weights = () if weight is None else ((named(weighs, "weight"), weight),)
    if kept_name(name) in {table.name for table in checker.tables}:
        message = (
            f"another block has a table `{name}`: tables are known by their names when the run has ended"
        )
        raise checker.report.error("sawzall-duplicate", message, span, "rename one of them")
    return z.Table(kept_name(name), item.kind, limit, keys, values, weights, whole, span=span)


def emit(checker: Checker, item: a.Emit) -> tuple[z.Stmt, ...]:
    """`emit t[i] <- v weight w;`."""
    if checker.names.known(item.table) is None and item.table in PRINTED:
        value = (("value", PRINTED[item.table]),)
        checker.tables.append(
            z.Table(
                item.table,
                item.table,
                None,
                (),
                value,
                (),
                whole=False,
                printed="stderr" if item.table == "stderr" else "stdout",
                span=item.span,
            )
        )
        checker.names.outer.scopes[0][item.table] = Known("table", len(checker.tables) - 1)
    if checker.names.known(item.table) is None and item.table not in checker.names.hints:
        tables = [table.name for table in checker.tables] + [*PRINTED]
        hint = closest(item.table, tables) or f"declare it: `{item.table}: table sum of int;`"
        raise checker.report.error(
            "sawzall-unknown-name", f"unknown table `{item.table}`", item.table_span, hint
        )
    known = checker.names.find(item.table, item.table_span)
    if known.what == "refused":
        raise checker.exprs.not_a_value(item.table, known.what, item.span)
    if known.what != "table":
        raise checker.report.error("sawzall-emit", f"`{item.table}` is not a table", item.table_span)
    table, written = checker.tables[known.index], checker.clauses.get(known.index)
    if written is not None and written.clauses:
        return emit_told(checker, item, known.index, written)
    emit_fits(checker, item, table, len(table.index))
    exprs = checker.exprs
    index = tuple(exprs.check(e, type_) for e, (_, type_) in zip(item.index, table.index, strict=True))
    value = exprs.check(item.value, t.Record(table.value) if table.whole else table.value[0][1])
    return (z.Emit(known.index, index, value, weight_of(checker, item, known.index), span=item.span),)


def emit_fits(checker: Checker, item: a.Emit, table: z.Table, count: int) -> None:
    """Refuses an `emit` that gives another number of indices than `count`."""
    if len(item.index) != count:
        noun = "index" if count == 1 else "indices"
        message = f"`{table.name}` has {count} {noun}, {len(item.index)} given"
        hint = f"write `emit {table.name}{'[...]' * count} <- ...;`"
        raise checker.report.error("sawzall-emit", message, item.table_span, hint)


def weight_of(checker: Checker, item: a.Emit, number: int) -> z.Expr | None:
    """What an `emit` weighs: 1, where the table has weights and its declaration none."""
    table, written = checker.tables[number], checker.clauses.get(number)
    counts = bool(table.weight) and written is not None and written.weight is None
    if (item.weight is None) != (counts or not table.weight):
        message = f"`{table.name}` {'takes no' if item.weight is not None else 'needs a'} weight"
        hint = f"write `emit {table.name} <- ... weight ...;`"
        if item.weight is not None:
            hint = "a table whose values weigh is declared by `... of v: T weight w: int;`"
        raise checker.report.error("sawzall-emit", message, item.span, hint)
    weight = s.Int(1, span=item.span) if counts else item.weight
    return None if weight is None else checker.exprs.check(weight, table.weight[0][1])


def emit_told(checker: Checker, item: a.Emit, number: int, written: a.TableType) -> tuple[z.Stmt, ...]:
    """`emit` to a table with clauses: in these, index and value go by the names that the declaration gives them."""
    table, names = checker.tables[number], checker.names
    clauses = {clause.word: clause for clause in written.clauses}
    emit_fits(checker, item, table, len(written.index))
    given = [
        (part.name, checker.type(part.type), e) for part, e in zip(written.index, item.index, strict=True)
    ]
    given.append((written.value.name, checker.type(written.value.type), item.value))
    nodes = [checker.exprs.check(e, type_) for _, type_, e in given]
    weight = weight_of(checker, item, number)
    before: list[z.Stmt] = []
    with names.scope():
        parts: list[z.Expr] = []
        for (name, type_, e), node in zip(given, nodes, strict=True):
            names.variables.append(z.Variable(name or "part", type_, "local", span=e.span))
            at = len(names.variables) - 1
            if name is not None:
                names.declare(name, Known("variable", at), e.span)
            if not z.may_fail(node, checker.failing()):
                names.assign(at)
            before.append(z.Declare(at, node, span=e.span))
            parts.append(names.read(at, e.span))
        *index, value = parts
        if "format" in clauses:
            value = formats.formatting(checker.exprs, clauses["format"].args, clauses["format"].span)
        sent = clauses.get("file") or clauses.get("proc")
        if table.sent is not None and sent is not None:
            index = [formats.formatting(checker.exprs, sent.args, sent.span)]
            if value.type == t.STRING:
                value = z.Apply(t.BYTES, named("bytes", (t.STRING,)), (value,), span=item.span)
        elif table.printed is not None:
            index = []
    return (*before, z.Emit(number, tuple(index), value, weight, span=item.span))
