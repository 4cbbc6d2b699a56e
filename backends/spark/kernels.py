"""What runs inside Spark's Python processes for programs over DataFrames: rows of inputs in, rows of an output out.

Each function is the body of one `mapInArrow`; its first argument is the work as text (`door.Work`). What the data or the
program has wrong is raised: Spark has nothing else to tell its caller by.

Paper: River §4.4 (mappers and reducers of one program), §4.6.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from backends.native.arrow import to_arrow
from backends.native.combine import compile_combine
from backends.native.llvm import available
from backends.native.operator import NativeOperator, Refused, compile_native
from backends.native.ranking import ranked
from backends.native.views import compile_view
from backends.spark.columns import as_batch
from backends.spark.marshal import Piece, coder, values_of
from backends.spark.report import Report
from backends.spark.rowwise import Rowwise, Trapped, imported
from backends.spark.task import ShippedProgram, Task, verified
from backends.spark.worker import Chain
from river.backend import BATCH, Options
from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected
from river.driver import Compiled, Job, execute, given_type, trap_diagnostic, traps_told, wholes
from river.il.combine import combining, start
from river.il.partial import Partial, partial
from river.il.views import rows_of
from river.io.addresses import path_of
from river.io.columnar import Tables
from river.io.errors import OnError
from river.io.schema import arrow, arrow_schema, arrow_type, columns, growable, to_batch
from river.io.several import Files, said
from river.io.sinks import Collector
from river.io.sources import open_source
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import compile_operator
from river.lang.values import freezer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from backends.native.combine import NativeCombine
    from backends.native.operator import NativeVariable
    from river.il.combine import Combine
    from river.il.graph import Graph, Instance, View
    from river.io.batches import ItemSource

NUMBER: Final = "river_input"
"""The column that tells to which input a row belongs, by its number, where there are several."""

LAST: Final = "river_last"
"""What the columns are called that hold the last instants of whole inputs, where a part of them is run by itself."""

VARIABLE: Final = "variable"
"""The column that tells which variable a part is of, by its number in the graph."""

LEAST: Final = 1 << 20
"""Bytes of parts from which on machine code puts them together: the evaluator takes some tenths of a second."""

ROWS: Final = 1 << 17
"""Rows that a program is run on at once where none depends on another."""

PARTS: Final = "variable int, value binary"
"""What copies of a program leave: one row for each variable that they have accumulated into."""


@frozen
class OutputWork:
    """What to compute, as a worker sees it: one output of a program. `externs`: the functions of Python that it may call."""

    program: ShippedProgram
    output: str
    externs: tuple[str, ...] = ()

    def text(self) -> str:
        """As JSON."""
        return json.dumps([self.program.text, self.program.namespaces, self.output, self.externs])

    @staticmethod
    def read(text: str) -> OutputWork:
        """The work that a text states."""
        program, namespaces, output, externs = json.loads(text)
        return OutputWork(ShippedProgram(program, tuple(namespaces)), output, tuple(externs))


def apart(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The output's rows for the rows of one input, of which no result depends on another."""
    work = OutputWork.read(text)
    (name,) = verified(work.program).inputs
    for table in runs(batches):
        yield from _ran(work, {name: readable(verified(work.program), name, table)})


def runs(batches: Iterable[Any]) -> Iterator[Any]:
    """The rows as tables of about `ROWS`: Spark's batches are small, and each run of a program costs some milliseconds."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= ROWS:
            yield arrow().Table.from_batches(held)
            held = []
    if held:
        yield arrow().Table.from_batches(held)


def whole(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The output's rows for all rows of all inputs: those of an input stand together, in their order."""
    work = OutputWork.read(text)
    yield from _ran(work, _by_input(work, list(batches)))


def keyed(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The output's rows for those rows of inputs, in order, that have certain keys; columns `LAST` say how far time goes."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    work = OutputWork.read(text)
    lasts = (found[0].column(name)[0] for name in found[0].schema.names if name.startswith(LAST))
    until = max((instant(each) for each in lasts if each.is_valid), default=None)
    yield from _ran(work, _by_input(work, found), until)


def instant(value: Any) -> int:
    """A time stamp as a number: ticks, or microseconds."""
    pa, kind = arrow(), arrow("types")
    if kind.is_date(value.type):
        value = value.cast(pa.timestamp("us"))
    return value.as_py() if kind.is_integer(value.type) else value.cast(pa.int64()).as_py()


def renamed(names: Sequence[str], function: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """What a function makes of batches, whose columns have other names for it."""
    return function(batch.rename_columns(names) for batch in batches)


def _by_input(work: OutputWork, batches: Sequence[Any]) -> dict[str, Any]:
    """The tables of inputs that have rows."""
    graph = verified(work.program)
    if len(graph.inputs) != 1:
        return tagged(graph, batches)
    return {
        name: readable(graph, name, arrow().Table.from_batches(batches)) for name in graph.inputs if batches
    }


def tagged(graph: Graph, batches: Iterable[Any], names: Sequence[str] | None = None) -> dict[str, Any]:
    """The tables of inputs that have rows: `NUMBER` says whose one is, and a column of each input has its rows.

    `names`: the inputs that are numbered, all if not stated.
    """
    pa, compute = arrow(), arrow("compute")
    found: dict[str, list[Any]] = {name: [] for name in (graph.inputs if names is None else names)}
    for batch in batches:
        for number, parts in enumerate(found.values()):
            rows = batch.column(1 + number).filter(compute.equal(batch.column(0), number))
            if len(rows):
                parts.append(pa.RecordBatch.from_struct_array(rows))
    return {
        name: readable(graph, name, pa.Table.from_batches(parts)) for name, parts in found.items() if parts
    }


def readable(graph: Graph, name: str, table: Any) -> Any:
    """The rows of an input, see `unsigned`. Raises: Rejected("data-range")."""
    return unsigned(given_type(graph, name), table, f"input `{name}`")


def unsigned(type_: t.Type, table: Any, place: str) -> Any:
    """A table with numbers of 64 bits where Spark has decimals for want of such without sign. Raises: Rejected("data-range")."""
    pa, fields = arrow(), dict(columns(type_))
    for at, column in enumerate(table.column_names):
        if column not in fields or _signed(fields[column]) == fields[column]:
            continue
        wanted = arrow_type(_nullable(growable(fields[column])))
        try:
            table = table.set_column(at, column, table.column(at).cast(wanted))
        except pa.ArrowInvalid as error:
            if "decimal" not in str(table.column(at).type):
                continue  # numbers with a sign, of which who reads them says what is wrong
            message = f"field `{column}`: a number is out of the range of `u64`"
            raise Rejected([Diagnostic("data-range", message, place=place)]) from error
    return table


def parsed(text: str, stated: str | None, place: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of files: of each there are the address and what is in it. `stated`: the format, if names do not tell.

    `place`: the folder or pattern where they were found.

    The work is a program that sends on what it gets, so that files are read as all are that River reads.
    """
    work = OutputWork.read(text)
    (name,) = verified(work.program).inputs
    formats = {} if stated is None else {name: stated}
    for batch in batches:
        for address, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            with TemporaryDirectory(prefix="river-") as folder:
                file = Path(folder) / PurePosixPath(address).name
                file.write_bytes(content.as_buffer())
                try:
                    folders = said(path_of(place), path_of(address))
                    given = Files((str(file),), address, None, (folders,)) if folders else str(file)
                    yield from _ran(work, {name: given}, formats=formats)
                except Rejected as rejected:
                    raise Rejected(
                        evolve(each, place=each.place and each.place.replace(str(file), address))
                        for each in rejected.diagnostics
                    ) from None


def _ran(
    work: OutputWork,
    tables: dict[str, Any],
    until: int | None = None,
    formats: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Any]:
    """The output's rows, as Spark's columns; an input without a table has no rows. `until`: see `Options`."""
    compiled = ready(work.program)
    inputs = {name: tables.get(name, []) for name in compiled.graph.inputs}
    options = Options(workers=1, until=until, externs={target: imported(target) for target in work.externs})
    job = Job(inputs, {}, OnError.parse("stop"), formats, options=options, default=_wanted(work.output))
    found = execute(compiled, "multicore", job).collected[work.output]
    yield from told(compiled.outputs[work.output], found.table())


class _Lost(Collector):
    """A sink that keeps nothing."""

    def write(self, items: Any) -> None:
        """Nobody wants them."""

    def write_table(self, batch: Any) -> None:
        """Nobody wants it."""


def _wanted(name: str) -> Callable[[str, t.Type], Collector]:
    """What keeps the rows of one output, and lets those of others go."""
    return lambda output, type_: (Collector if output == name else _Lost)(type_)


@lru_cache(maxsize=16)
def ready(program: ShippedProgram) -> Compiled:
    """The program, ready to run."""
    graph = verified(program)
    found = Compiled(graph.program, lowered=True)
    vars(found)["graph"] = graph
    return found


def told(type_: t.Type, table: Any) -> Iterator[Any]:
    """Rows of a type as batches of Spark's columns."""
    schema = spoken_schema(type_)
    if not isinstance(type_, t.Record):
        table = table.rename_columns(schema.names)
    if table.num_rows:
        yield from table.cast(schema).to_batches()


def spoken_schema(type_: t.Type) -> Any:
    """The columns of rows of a type in Spark's words, as Arrow has them."""
    return arrow_schema(_nullable(spoken(type_)))


def _nullable(type_: t.Type, *, within: bool = False) -> t.Type:
    """A type in which each field of a record that may be missing, `within` which it stands, may be missing, too.

    Arrow does not cast a column where records are missing whose fields must be there, and PySpark's `toArrow` casts.
    """
    match type_:
        case t.Optional(inner):
            return t.Optional(_nullable(inner, within=True))
        case t.Record(fields):
            return t.Record(tuple((name, _field(each, within=within)) for name, each in fields))
        case t.Tuple(items):
            return t.Tuple(tuple(_field(each, within=within) for each in items))
        case t.List(item):
            return t.List(_nullable(item))
        case t.Map(key, value):
            return t.Map(key, _nullable(value))
        case _:
            return type_


def _field(type_: t.Type, *, within: bool) -> t.Type:
    """The type of a field. Nothing is null already."""
    found = _nullable(type_, within=within)
    return t.Optional(found) if within and found != t.UNIT and not isinstance(found, t.Optional) else found


def spoken(type_: t.Type) -> t.Type:
    """A type in Spark's words: which has no numbers without sign, and lists alone."""
    return _signed(growable(type_))


def _signed(type_: t.Type) -> t.Type:
    match type_:
        case t.Primitive("u64"):
            return t.Decimal(20, 0)
        case t.List(item):
            return t.List(_signed(item))
        case t.Optional(inner):
            return t.Optional(_signed(inner))
        case t.Record(fields):
            return t.Record(tuple((name, _signed(field)) for name, field in fields))
        case t.Tuple(items):
            return t.Tuple(tuple(map(_signed, items)))
        case t.Map(key, value):
            return t.Map(_signed(key), _signed(value))
        case _:
            return type_


# ------------------------------------------------------------------------------------------------- in parts


def reduced(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """What a copy of the program's operators accumulates of some rows of its input: rows as `PARTS` says."""
    work = OutputWork.read(text)
    graph = verified(work.program)
    found = parts_of(graph, work.output)
    assert found is not None  # noqa: S101 - by who made the plan
    copy = Copy(work.program, graph, found)
    type_ = graph.queues[found.input].type
    for batch in batches:
        table = readable(graph, found.input, arrow().Table.from_batches([batch]))
        source = open_source(table, type_, name=found.input)
        copy.take(_columns(source) if copy.columns else source)
    rows = copy.left()
    pa = arrow()
    yield pa.record_batch(
        [
            pa.array([number for number, _ in rows], pa.int32()),
            pa.array([value for _, value in rows], pa.binary()),
        ],
        [VARIABLE, "value"],
    )


def united(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The rows of a view of a variable, of which the batches have the parts."""
    work = OutputWork.read(text)
    compiled = ready(work.program)
    parts = [value.as_py() for batch in batches for value in batch.column(1)]
    yield from told(compiled.outputs[work.output], shown(compiled.graph, work.output, parts))


def variable_of(graph: Graph, output: str) -> int:
    """The number of the variable that an output is a view of."""
    name = next(view.variable for view in graph.views if view.name == output)
    return [variable.name for variable in graph.variables].index(name)


def parts_of(graph: Graph, output: str) -> Partial | None:
    """The operators that accumulate apart into the variable that an output is a view of; None if they do not."""
    view = next((each for each in graph.views if each.name == output), None)
    if view is None or len(graph.inputs) != 1 or wholes(graph.program):
        return None
    found = partial(graph, graph.inputs[0])
    if not isinstance(found, Partial) or view.variable not in dict(found.combined):
        return None
    return found if len(graph.users[view.variable]) == 1 else None


class Copy:
    """A copy of the operators behind an input, with variables of its own that begin with what is neutral."""

    def __init__(
        self,
        program: ShippedProgram,
        graph: Graph,
        found: Partial,
        native: Literal["on", "off", "debug"] = "on",
    ) -> None:
        members = (*found.maps, *found.reducers)
        nothing: dict[str, bool] = {}
        task = Task(
            program, graph, 0, members, (found.input,), (), members, None, (), rows=False, channels=1,
            guarded=(), joins=nothing, batch=BATCH, skip=False, native=native if available() else "off",
        )  # fmt: skip
        self._graph = graph
        self._input = found.input
        self._report = Report()
        self._chain = Chain(task, self._report)
        initial = {variable.name: variable.initial for variable in graph.variables}
        types = {variable.name: variable.type for variable in graph.variables}
        self._homes: dict[str, tuple[Any, int]] = {}
        for name, how in found.combined:
            (index,) = graph.users[name]
            instance = graph.instances[index]
            step, at = self._chain.steps[instance.ins[0]], instance.variables.index(name)
            first = start(how, types[name], initial[name])
            self._homes[name] = step, at
            if isinstance(step, Rowwise):
                step.variables[at] = first
            else:
                step.native.variables[at].set(first)

    @property
    def columns(self) -> bool:
        """Whether it fires on columns; else on values."""
        return self._chain.columns(self._input)

    def take(self, batches: Iterable[Any], leaves: Callable[[str, Piece], None] | None = None) -> None:
        """Fires on items, in columns or not; what leaves the operators by a queue is for `leaves`.

        Raises: Rejected for rows that are none, and for a trap.
        """
        try:
            for batch in batches:
                items = batch if self.columns else values_of(batch)
                for queue, made in self._chain(0, self._input, Piece(range(len(items)), items)):
                    if leaves is not None:
                        leaves(queue, made)
        except Trapped as trapped:
            raise Rejected([trap_diagnostic(trapped.caught.trap)]) from trapped

    def report(self) -> Report:
        """What has been fired so far, and what Python ran."""
        self._chain.code.tell(self._report, self._graph)
        return self._report

    def left(self) -> list[tuple[int, bytes]]:
        """What the variables hold, each with its number in the graph."""
        types = {variable.name: variable.type for variable in self._graph.variables}
        numbers = {name: number for number, name in enumerate(types)}
        return [
            (numbers[name], coder(types[name]).encode(self._held(name, types[name]))) for name in self._homes
        ]

    def _held(self, name: str, type_: t.Type) -> Any:
        """The value of a variable, as the one item of a piece."""
        step, at = self._homes[name]
        if isinstance(step, Rowwise):
            freeze = freezer(type_)
            return [step.variables[at] if freeze is None else freeze(step.variables[at])]
        if coder(type_).records is None:
            return [step.native.variables[at].get()]
        with step.native.variables[at].columns() as batch:
            return to_arrow(type_, batch, copied=True)


def _columns(source: ItemSource) -> Iterator[Any]:
    """The items of a source of Arrow data as columns."""
    from backends.native.ingest.tables import converted

    tables = source.unordered
    assert isinstance(tables, Tables)  # noqa: S101 - it is
    return converted(source, tables, BATCH)


def shown(graph: Graph, output: str, parts: Sequence[bytes]) -> Any:
    """The rows of a view, as an Arrow table, of a variable of which there are parts. Raises: Rejected for a trap."""
    found = parts_of(graph, output)
    assert found is not None  # noqa: S101 - by who made the plan
    view = next(each for each in graph.views if each.name == output)
    (index,) = graph.users[view.variable]
    initial = graph.variables[variable_of(graph, output)].initial
    with traps_told():
        return _shown(view, graph.instances[index], dict(found.combined)[view.variable], initial, parts)


def combined(graph: Graph, found: Partial, name: str, parts: Sequence[Any], size: int) -> Any:
    """The value of a variable, of which there are values that copies of its operator left, of `size` bytes. Raises: Trap."""
    (index,) = graph.users[name]
    instance, how = graph.instances[index], dict(found.combined)[name]
    op, at = instance.operator, instance.variables.index(name)
    assert isinstance(op, typed.Operator)  # noqa: S101 - its variables have a combine
    first, *others = parts
    code = _combine_code(op, at, how, size)
    if code is None:
        return _evaluated(op, at, how, first, others)
    native, combine = code
    into, other = native.variables[at], native.again().variables[at]
    into.set(first)
    for part in others:
        other.set(part)
        combine.combine(into, other)
    return into.get()


def _combine_code(
    op: typed.Operator, at: int, how: Combine, size: int
) -> tuple[NativeOperator, NativeCombine] | None:
    """Machine code that combines a variable, where there is enough of it and such code."""
    native = compile_native(op) if size > LEAST and available() else None
    code = compile_combine(op, at, how) if isinstance(native, NativeOperator) else None
    return None if code is None or not isinstance(native, NativeOperator) else (native, code)


def _evaluated(op: typed.Operator, at: int, how: Combine, first: Any, others: Iterable[Any]) -> Any:
    """The same by the evaluator, frozen."""
    (fire,) = compile_operator(combining(op, at, how)).item
    assert fire is not None  # noqa: S101 - it has one handler
    variables = [first]
    for part in others:
        fire(variables, part, [])
    freeze = freezer(op.vars[at].type)
    return variables[0] if freeze is None else freeze(variables[0])


def _shown(view: View, instance: Instance, how: Combine, initial: Any, parts: Sequence[bytes]) -> Any:
    """The same of a variable that begins with `initial`."""
    op = instance.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - its variables have a combine
    at = instance.variables.index(view.variable)
    type_ = op.vars[at].type
    found = _combine_code(op, at, how, sum(map(len, parts)))
    if found is not None:
        native, code = found
        return _shown_natively(view, native.variables[at], native.again().variables[at], code, initial, parts)
    values = (coder(type_).decode(part)[0] for part in parts)
    rows = rows_of(view, _evaluated(op, at, how, initial, values))
    return arrow().Table.from_batches([to_batch(view.type, rows)])


def _shown_natively(
    view: View,
    into: NativeVariable,
    other: NativeVariable,
    code: NativeCombine,
    initial: Any,
    parts: Sequence[bytes],
) -> Any:
    into.set(initial)
    found = coder(into.type)
    for part in parts:
        if found.records is None:
            other.set(found.decode(part)[0])
        else:
            other.fill(as_batch(into.type, found.records(part)))
        code.combine(into, other)
    made = compile_view(view, into.type)
    if isinstance(made, Refused):
        return arrow().Table.from_batches([to_batch(view.type, rows_of(view, into.get()))])
    rows = made.rows([into], lambda _done, _of: None)
    batches = [to_arrow(view.type, part, copied=True) for part in ranked(rows, view.order).parts(BATCH)]
    return arrow().Table.from_batches(batches, arrow_schema(view.type))
