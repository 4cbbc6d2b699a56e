"""Programs over DataFrames: from the inputs' frames to a frame for each output, of which nothing is computed yet.

| how | which outputs | tasks |
|---|---|---|
| `_related` | those that Spark's SQL can say (`relations`) | Spark's own |
| `apart` | what operators without state make of the rows of one input | one for each partition of the input |
| `in parts` | views of variables into which copies of the operators accumulate (`river.il.partial`) | the same, then one |
| `keyed` | those for which rows with other keys have nothing to do with one another (`keys`) | Spark's partitions by key |
| `whole` | all others, for which the order of all rows matters | one |

A DataFrame has no order. Rows are put in that of the input's time stamp (`by`), of the columns that the caller names, and
then of all their columns, so that equal data give equal results however they are partitioned.

Paper: River §2.4 (the platform is chosen late), §4.4 (mappers, reducers).
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial, reduce
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, assert_never

from backends.spark import kernels, sql, task
from backends.spark.executors import carried, see_here
from backends.spark.kernels import LAST, NUMBER, PARTS, VARIABLE, OutputWork
from backends.spark.keys import division, without_others
from backends.spark.plan import plan, see_to_externs
from backends.spark.relations import Selected, Summed, key, read_by, relation, shown_as, total
from backends.spark.stages import in_one_order
from river.backend import Options
from river.classes import evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.driver import check_names, given_type, row_types, stamps, wholes
from river.il.model import Stateless, instance_model
from river.io import columnar
from river.io.batches import Origin
from river.io.schema import arrow, columns
from river.lang import types as t
from river.lang.scope import show
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.spark.keys import Partitioning
    from backends.spark.relations import Relation
    from river.il.graph import Graph

Frame = Any
"""A DataFrame of pyspark, of a session of this process or of Spark Connect."""


def frames(
    graph: Graph,
    inputs: Mapping[str, Frame],
    *,
    order_by: Mapping[str, Sequence[str]],
    externs: Mapping[str, Callable[..., Any]],
) -> dict[str, Frame]:
    """The outputs' frames, by name; no job is run.

    Raises: Rejected("unknown-input", "missing-input", "data-column", "data-type", "spark-order", "spark-extern", "run-extern").
    """
    check_names("input", 'on_spark({"NAME": frame})', graph.inputs, inputs, required=True)
    see_to_externs(graph, externs)
    door = _Door(graph, inputs, order_by, cache(lambda: _portable(graph, externs)), externs)
    if endless := next((name for name, frame in inputs.items() if frame.isStreaming), None):
        message = f"input `{endless}` is a DataFrame without end"
        raise Rejected([Diagnostic("data-format", message, help="run the program with `write_stream`")])
    return {name: door.frame(name) for name in (*graph.outputs, *(view.name for view in graph.views))}


def streamed(
    graph: Graph, inputs: Mapping[str, Frame], order_by: Mapping[str, Sequence[str]]
) -> tuple[Frame, Frame | None, list[Any], dict[str, tuple[str, ...]]]:
    """The rows of frames without end, and those of the others, tagged by input (`kernels.tagged`); what puts them in order.

    At last by which columns the rows of each input stand in that order, if Arrow can put them in it, too; else nothing.

    Raises: Rejected, as `frames` does.
    """
    door = _Door(graph, inputs, order_by, lambda: _portable(graph, {}), {})
    outputs = (*graph.outputs, *(view.name for view in graph.views))
    shows = [each for each in outputs if kernels.parts_of(graph, each) is None and not door.apart(each)]
    output = min(shows, default="")
    tagged = door.tagged([*inputs], {})
    pairs = [*zip(tagged, inputs.values(), strict=True)]
    tables = [rows for rows, frame in pairs if not frame.isStreaming]
    streams = _union([rows for rows, frame in pairs if frame.isStreaming])
    columns_ = {name: tuple(door.order(name, output)) for name in inputs}
    here_too = all(_sorted_alike(door.plain(name).schema[each]) for name in inputs for each in columns_[name])
    order = door.tagged_order([*inputs], output)
    return streams, _union(tables) if tables else None, order, columns_ if here_too else {}


def _portable(graph: Graph, externs: Mapping[str, Callable[..., Any]]) -> task.ShippedProgram:
    """The program as executors get it."""
    return task.portable(plan(graph, here(), Options(externs=externs)))


@frozen
class _Check:
    """What must be true of the column `seen`, and what ends the job where it is not."""

    seen: str
    right: str
    refusal: str

    def holds(self, then: str) -> str:
        """A condition that ends the job or is what `then` says."""
        return f"if({self.right}, {then}, {self.refusal})"

    def present(self) -> str:
        """The column, of which Spark knows that it is never null."""
        return f"coalesce({self.seen}, {self.refusal})"


@frozen
class _Door:
    """`program`: what executors run, which is made for outputs that Spark's SQL cannot say."""

    graph: Graph
    inputs: Mapping[str, Frame]
    order_by: Mapping[str, Sequence[str]]
    program: Callable[[], task.ShippedProgram]
    given: Mapping[str, Callable[..., Any]]
    parts: dict[str, Frame] = field(factory=dict[str, Frame], init=False)
    named: dict[str, Frame] = field(factory=dict[str, Frame], init=False)

    def __attrs_post_init__(self) -> None:
        strangers = [name for name in self.order_by if name not in self.graph.inputs]
        if strangers:
            names = ", ".join(f"`{name}`" for name in self.graph.inputs) or "none"
            message = f"`order_by` names `{strangers[0]}`, which is no input"
            help_ = closest(strangers[0], self.graph.inputs) or f"inputs: {names}"
            raise Rejected([Diagnostic("spark-order", message, help=help_)])
        for name, frame in self.inputs.items():
            self.check(name)
            see_here(frame.sparkSession)
            self.named[name] = _by_bytes(self.told_apart(name))

    def check(self, name: str) -> None:
        """Sees that an input's frame has the columns. Raises: Rejected."""
        frame = self.inputs[name]
        if not hasattr(frame, "mapInArrow"):
            message = f"input `{name}`: a {type(frame).__name__} is no DataFrame of Spark"
            raise Rejected(
                [Diagnostic("data-format", message, help="make one: `spark.createDataFrame(...)`")]
            )
        type_ = kernels.spoken(given_type(self.graph, name))
        found, kinds = _columns(frame), dict(frame.dtypes)
        for column, field_ in columns(type_):
            at = found.get_field_index(column)
            if at >= 0 and arrow("types").is_null(found.types[at]) and kinds[column] not in _NOTHING:
                message = f"field `{column}`: Spark's type `{kinds[column]}` does not hold `{show(field_)}`"
                raise Rejected([Diagnostic("data-type", message, place=name)])
        try:
            columnar.check(found, type_, Origin(name))
        except Rejected as rejected:
            raise Rejected(
                evolve(each, help=each.help or (_CAST if each.code == "data-type" else None))
                for each in rejected.diagnostics
            ) from None
        for column in self.order_by.get(name, ()):
            if column not in frame.columns:
                message = f"`order_by` names the column `{column}`, which the frame of `{name}` does not have"
                known = ", ".join(f"`{each}`" for each in frame.columns)
                help_ = closest(column, frame.columns) or f"the columns are {known}"
                raise Rejected([Diagnostic("spark-order", message, help=help_)])

    def told_apart(self, name: str) -> Frame:
        """An input's frame, whose columns have other names where Spark would not know which of two is meant.

        Raises: Rejected("data-column") where the program wants both.
        """
        frame = self.inputs[name]
        known: list[str] = frame.columns
        alike = Counter(column.lower() for column in known)
        if all(count == 1 for count in alike.values()):
            return frame
        if frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
            return frame
        fields = (column for column, _ in columns(given_type(self.graph, name)))
        wanted = dict.fromkeys((*fields, *self.order_by.get(name, ())))
        lower = Counter(column.lower() for column in wanted if column in known)
        if twice := [column for column in wanted if lower[column.lower()] > 1]:
            message = f"the columns `{twice[0]}` and `{twice[1]}` are one for Spark"
            help_ = "rename one of them, in the program and in the DataFrame"
            raise Rejected([Diagnostic("data-column", message, place=name, help=help_)])
        return frame.toDF(
            *(
                column if column in wanted or alike[column.lower()] == 1 else f"river_other_{number}"
                for number, column in enumerate(known)
            )
        )

    def frame(self, output: str) -> Frame:
        """That of an output."""
        found = relation(self.graph, output)
        checked = None if found is None else self.checked(found)
        if found is not None and checked is not None:
            return _related(*checked, found)
        text = OutputWork(self.program(), output, tuple(self.given)).text()
        schema = frame_schema(row_types(self.graph)[output])
        found = kernels.parts_of(self.graph, output)
        if found is not None:
            if found.input not in self.parts:
                self.parts[found.input] = _mapped(self.plain(found.input), kernels.reduced, text, PARTS)
            number = kernels.variable_of(self.graph, output)
            one = self.parts[found.input].where(f"{VARIABLE} = {number}").repartition(1)
            return _mapped(one, kernels.united, text, schema)
        if self.apart(output):
            (name,) = self.graph.inputs
            frame = self.plain(name)
            if self.graph.queues[name].by is not None:
                frame = frame.sortWithinPartitions(*self.sorted_by(name, output))
            return _mapped(frame, kernels.apart, text, schema)
        alone = without_others(self.graph, output) if output in self.graph.outputs else None
        found = None if alone is None else division(alone, output)
        if alone is not None and found is not None and self.alike(found):
            text = OutputWork(_portable(alone, self.given), output, tuple(self.given)).text()
            return _mapped(self.divided(output, found), kernels.keyed, text, schema)
        return _mapped(self.ordered(output), kernels.whole, text, schema)

    def alike(self, found: Partitioning) -> bool:
        """Whether Spark's keys of several inputs are equal where the program's are: of times and dates it is only within a type.

        It takes those without a zone for times in the zone of the session.
        """
        kinds = {name: dict(self.named[name].dtypes) for name in found.columns}
        of_keys = zip(
            *([kinds[name][key] for key in keys] for name, keys in found.columns.items()), strict=True
        )
        return all(len({*each} & {"date", "timestamp", "timestamp_ntz"}) < 2 for each in of_keys)

    def apart(self, output: str) -> bool:
        """Whether an output is made of one input, row by row."""
        if output not in self.graph.outputs or len(self.graph.inputs) != 1 or wholes(self.graph.program):
            return False
        end = self.graph.queues[output].producer
        while end is not None:
            instance = self.graph.instances[end.instance]
            if in_one_order(instance.operator) is not None or instance.index in self.graph.looping:
                return False
            if not isinstance(instance_model(instance).state, Stateless) or self.written(instance.variables):
                return False
            end = self.graph.queues[instance.ins[0]].producer
        return True

    def written(self, names: Sequence[str]) -> bool:
        """Whether some operator writes one of these variables."""
        return any(
            param.written and name in names
            for instance in self.graph.instances
            for param, name in zip(instance.operator.vars, instance.variables, strict=True)
        )

    # -- rows of inputs

    def checked(self, found: Relation) -> tuple[Frame, tuple[_Check, ...]] | None:
        """The columns that a relation reads as Spark's SQL reads them, which ends the job for a row that is wrong there.

        None if Spark's type of a column has other values than the program's. Each row is looked at, whether it is left out or
        not, and no column can be null behind that: else Spark would look for others than null first, and never tell of them.
        Where all rows are summed by a column, it is enough to look at the sums: checks for these are given, too.
        """
        name, texts, changed = found.input, read_by(found), False
        keys = found.keys if isinstance(found, Summed) and not found.conditions else ()
        behind: list[_Check] = []
        record = isinstance(given_type(self.graph, name), t.Record)
        frame = self.named[name] if record else self.plain(name)
        kinds = dict(frame.dtypes)
        schema = _columns(frame)
        before: list[_Check] = []
        wanted: list[str] = []
        for column, type_ in columns(given_type(self.graph, name)):
            optional = isinstance(type_, t.Optional)
            inner = type_.inner if isinstance(type_, t.Optional) else type_
            read, kind = sql.name(column), sql.spelled(inner)
            if not any(read in text for text in texts):
                continue  # and Spark need not scan it
            if kind is None or kinds[column] not in (kind, *_NARROWER.get(inner, ())):
                return None
            later = read in keys
            seen, checks = (_key_of(found, keys.index(read)), behind) if later else (read, before)
            needed = schema.field(column).nullable and not optional
            check = _check(name, column, type_, seen, needed=needed)
            checks.extend([] if check is None else [check])
            if check is not None and needed:
                read = read if later else check.present()
            if kinds[column] != kind:
                read = f"cast({read} as {kind})"
            changed = changed or bool(before) or read != sql.name(column)
            wanted.append(f"{read} as {sql.name(column)}")
        if changed or not wanted:  # else who reads the columns chooses among them
            frame = _checked(frame, before, "true").selectExpr(*wanted or ["0 as river_none"])
        return frame, tuple(behind)

    def plain(self, name: str) -> Frame:
        """The columns of an input that the program has, in any order of rows."""
        frame, type_ = self.named[name], given_type(self.graph, name)
        wanted = [column for column, _ in columns(type_)]
        if not isinstance(type_, t.Record) and len(frame.columns) == 1:
            return frame.toDF(*wanted)
        extra = [column for column in self.order_by.get(name, ()) if column not in wanted]
        return frame.select(*map(sql.name, [*wanted, *extra]))

    def order(self, name: str, output: str) -> list[str]:
        """The columns that put the rows of an input in order, for an output, or for none, to which no order matters.

        Raises: Rejected("spark-order").
        """
        computed = name in stamps(self.graph.program)  # of which Spark knows nothing
        by, given = None if computed else self.graph.queues[name].by, self.order_by.get(name, ())
        if output and by is None and not given and name not in wholes(self.graph.program):
            message = f"the output `{output}` depends on the order of the rows of `{name}`, and a DataFrame has none"
            help_ = f'say which columns put them in order: `order_by={{"{name}": [...]}}`, or `--order-by {name}=COLUMN,...`'
            raise Rejected([Diagnostic("spark-order", message, help=help_)])
        every = self.plain(name).columns
        return list(dict.fromkeys([*([by] if by is not None else ()), *given, *every]))

    def divided(self, output: str, found: Partitioning) -> Frame:
        """The rows of inputs, those with equal keys in one partition, in their order; with the last instant of all."""
        names = tuple(found.columns)
        if len(names) == 1:
            frame, order = self.plain(names[0]), self.sorted_by(names[0], output)
            keys = [sql.name(column) for column in found.columns[names[0]]]
        else:
            frame, order = self.together(names, output, found.columns)
            keys = [key(number) for number in range(len(found.columns[names[0]]))]
        if found.timed:
            frame = frame.crossJoin(self.last().hint("broadcast"))
        return frame.repartition(*keys).sortWithinPartitions(*order)

    def last(self) -> Frame:
        """The last instants of the inputs that have time stamps, each in a column: time goes as far for each of them.

        Spark has several types of times, and would make them one by the zone of the session.
        """
        timed = {name: by for name in self.graph.inputs if (by := self.graph.queues[name].by) is not None}
        found: Frame = None
        for number, (name, by) in enumerate(timed.items()):
            column = f"{LAST}_{number}"
            frame = self.plain(name)
            one = frame.groupBy().agg(_expression(frame, f"max({sql.name(by)}) as {column}"))
            found = one if found is None else found.crossJoin(one)
        return found

    def ordered(self, output: str) -> Frame:
        """All rows of all inputs in one partition, one input after the other, each in its order."""
        if len(self.inputs) == 1:
            ((name, _),) = self.inputs.items()
            return self.plain(name).repartition(1).sortWithinPartitions(*self.sorted_by(name, output))
        together, order = self.together(self.graph.inputs, output, {})
        return together.repartition(1).sortWithinPartitions(*order)

    def together(
        self, names: Sequence[str], output: str, keys: Mapping[str, Sequence[str]]
    ) -> tuple[Frame, list[Any]]:
        """The rows of inputs, with the number of the input and the columns `keys` of it; and what puts them in order."""
        return _union(self.tagged(names, keys)), self.tagged_order(names, output)

    def tagged(self, names: Sequence[str], keys: Mapping[str, Sequence[str]]) -> list[Frame]:
        """The rows of each input, with its number and a column for those of each."""
        kinds = [_spelled(self.plain(name).schema) for name in names]
        tagged: list[Frame] = []
        for number, name in enumerate(names):
            fields = ", ".join(map(sql.name, self.plain(name).columns))
            rows = [f"cast(null as {kind}) as {NUMBER}_{each}" for each, kind in enumerate(kinds)]
            rows[number] = f"struct({fields}) as {NUMBER}_{number}"
            rows += [f"{sql.name(column)} as {key(n)}" for n, column in enumerate(keys.get(name, ()))]
            tagged.append(self.plain(name).selectExpr(f"{number} as {NUMBER}", *rows))
        return tagged

    def tagged_order(self, names: Sequence[str], output: str) -> list[Any]:
        """What puts such rows in order: one input after the other, each in its order. Raises: Rejected("spark-order")."""
        order = [
            each
            for n, name in enumerate(names)
            for each in self.sorted_by(name, output, within=f"{NUMBER}_{n}.")
        ]
        return [NUMBER, *order]

    def sorted_by(self, name: str, output: str, within: str = "") -> list[Any]:
        """What Spark sorts the rows of an input by, which stand `within` a column: names of columns, and expressions for maps."""
        frame = self.plain(name)
        kinds = dict(frame.dtypes)
        found: list[Any] = []
        for column in self.order(name, output):
            place, kind = f"{within}{sql.name(column)}", kinds[column]
            if kind in _FLOATS:  # Spark knows of numbers where to look first
                found += [place, _expression(frame, _zero(place))]
            elif any(word in kind for word in ("map<", *_FLOATS)):
                found.append(_expression(frame, _sortable(place, frame.schema[column].dataType)))
            else:
                found.append(place)
        return found


def _expression(frame: Frame, text: str) -> Any:
    """A column as an expression of Spark's says it."""
    where = "pyspark.sql" if hasattr(frame, "_jdf") else "pyspark.sql.connect"
    functions: Any = import_module(f"{where}.functions")
    return functions.expr(text)


def _sortable(place: str, type_: Any, depth: int = 0) -> str:
    """An expression by which Spark puts values in an order in which only equal ones have the same place.

    It has no order of maps, for which lists of their entries stand, in that of their keys; and none of the two zeros.
    """
    each = f"river_each_{depth}"
    match type_.typeName():
        case "map":
            key_ = _sortable(f"{each}.key", type_.keyType, depth + 1)
            value = _sortable(f"{each}.value", type_.valueType, depth + 1)
            return f"array_sort(transform(map_entries({place}), {each} -> struct({key_}, {value})))"
        case kind if kind in _FLOATS:
            return f"struct({place}, {_zero(place)})"
        case "array":
            return f"transform({place}, {each} -> {_sortable(each, type_.elementType, depth + 1)})"
        case "struct":
            fields = (_sortable(f"{place}.{sql.name(f.name)}", f.dataType, depth) for f in type_.fields)
            return f"struct({', '.join([f'{place} is not null', *fields])})"
        case _:
            return place


_FLOATS: Final = ("double", "float")


def _zero(place: str) -> str:
    """What tells the two zeros apart, which Spark has in one place: the one with a sign comes first. Of others nothing."""
    return f"if({place} = 0, cast({place} as string), '')"


def _sorted_alike(field_: Any) -> bool:
    """Whether Arrow puts the values of a column in the order in which Spark does: texts by their bytes."""
    kind = field_.dataType.simpleString()
    return kind in _SORTED or kind.startswith("decimal(")


_SORTED: Final = frozenset([
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz",
])  # fmt: skip


def _by_bytes(frame: Frame) -> Frame:
    """A frame whose texts are compared by their bytes, as the program's are, whatever collation they have."""
    if not any(_COLLATED in kind for _, kind in frame.dtypes):
        return frame
    read = ((sql.name(each.name), each.dataType) for each in frame.schema.fields)
    shown = (
        f"cast({name} as {_spelled(type_)}) as {name}" if _COLLATED in type_.simpleString() else name
        for name, type_ in read
    )
    return frame.selectExpr(*shown)


_COLLATED: Final = "string collate "


def _mapped(frame: Frame, kernel: Callable[..., Any], text: str, schema: Any) -> Frame:
    """The rows that a kernel makes of those of a frame. PySpark's `mapInArrow` takes dots in the names of columns for paths."""
    session, names = frame.sparkSession, frame.columns
    function = partial(carried(session, kernel), text)
    if any(sign in name for name in names for sign in ".`"):
        frame = frame.toDF(*(f"river_column_{number}" for number in range(len(names))))
        function = partial(carried(session, kernels.renamed), names, function)
    return frame.mapInArrow(function, schema)


def _spelled(type_: Any) -> str:
    """A type of Spark's as its expressions have it, whatever the names in it; texts are compared by their bytes."""
    match type_.typeName():
        case "struct":
            return f"struct<{', '.join(f'{sql.name(each.name)}: {_spelled(each.dataType)}' for each in type_.fields)}>"
        case "array":
            return f"array<{_spelled(type_.elementType)}>"
        case "map":
            return f"map<{_spelled(type_.keyType)}, {_spelled(type_.valueType)}>"
        case "string":
            return "string"
        case _:
            return type_.simpleString()


def _union(frames: Sequence[Frame]) -> Frame:
    """The rows of all."""
    first, *others = frames
    for each in others:
        first = first.unionAll(each)
    return first


def _related(frame: Frame, behind: Sequence[_Check], found: Relation) -> Frame:
    """What the rows of an input come to as a relation of Spark's own. `behind`: what has to hold of sums."""
    frame = _where(frame, found.conditions)
    match found:
        case Selected(columns=shown):
            return frame.selectExpr(*(f"{text} as {sql.name(column)}" for column, text in shown))
        case Summed():
            return _summed(frame, behind, found)
        case _:
            assert_never(found)


def _key_of(found: Relation, number: int) -> str:
    """The column of a part of a key where it has been summed by."""
    name = key(number)
    return sql.name(shown_as(found).get(name, name) if isinstance(found, Summed) else name)


def _summed(frame: Frame, behind: Sequence[_Check], found: Summed) -> Frame:
    """Sums by key, in as few steps of Spark's as there can be."""
    names = shown_as(found)

    def named(text: str, placeholder: str) -> Any:
        return _expression(frame, f"{text} as {sql.name(names.get(placeholder, placeholder))}")

    by = [named(text, key(n)) for n, text in enumerate(found.keys)] or [named("false", key(0))]
    added = [named(text, total(n)) for n, text in enumerate(found.totals)]
    if frame.sparkSession.conf.get("spark.sql.retainGroupColumns") == "false":
        added = [*by, *added]
    # In front of what it does not know before there are rows Spark moves no condition, so none is asked before these.
    entries = _checked(frame.groupBy(*by).agg(*added), behind, "spark_partition_id() >= 0")
    if names:
        return entries
    return entries.selectExpr(*(f"{text} as {sql.name(column)}" for column, text in found.columns))


def _checked(frame: Frame, checks: Sequence[_Check], then: str) -> Frame:
    """The rows of which no check ends the job, and that meet a condition."""
    return (
        frame.where(reduce(lambda held, check: check.holds(held), reversed(checks), then))
        if checks
        else frame
    )


def _where(frame: Frame, conditions: Sequence[str]) -> Frame:
    """The rows that meet all conditions."""
    return frame.where(" and ".join(f"({each})" for each in conditions)) if conditions else frame


def _check(name: str, column: str, type_: t.Type, seen: str, *, needed: bool) -> _Check | None:
    """What must not be true of a column of an input. `needed`: it can be null, and must not be.

    One condition and one refusal, which tells why: the longer a plan is, the longer Spark takes to make code of it.
    """
    text = (type_.inner if isinstance(type_, t.Optional) else type_) == t.STRING
    broken = _message(name, "data-utf8", f"field `{column}`: it is not valid UTF-8")
    missing = _message(name, "data-type", f"field `{column}`: is null, and `{show(type_)}` is not optional")
    match text, needed:
        case True, True:  # of no text Spark does not know whether it is valid, which is not to be true
            why = f"if({seen} is null, {missing}, {broken})"
            return _Check(seen, f"is_valid_utf8({seen})", f"raise_error({why})")
        case True, False:
            return _Check(seen, f"coalesce(is_valid_utf8({seen}), true)", f"raise_error({broken})")
        case False, True:
            return _Check(seen, f"{seen} is not null", f"raise_error({missing})")
        case _:
            return None


def _message(name: str, code: str, message: str) -> str:
    """What is said of a row of an input, as a text of Spark's."""
    return sql.text(str(Rejected([Diagnostic(code, message, place=f"input `{name}`")])))


_NARROWER: Final[dict[t.Type, tuple[str, ...]]] = {
    t.I32: ("smallint", "tinyint"),
    t.I64: ("int", "smallint", "tinyint"),
}
"""Other types of Spark's that have no values that the program's have not: of texts only those are that are compared by bytes."""


_CAST: Final = (
    "cast the column of the DataFrame, or declare it otherwise; of columns that folders say Spark guesses the types,"
    " unless `spark.sql.sources.partitionColumnTypeInference.enabled` is `false`"
)


_NOTHING: Final = ("void", "null")
"""What columns of nulls alone are called. Those of types that Arrow does not have are such columns for `_columns`, too."""


def frame_schema(type_: t.Type) -> Any:
    """The columns of rows of a type, as Spark has them."""
    return _types().from_arrow_schema(kernels.spoken_schema(type_))


def _columns(frame: Frame) -> Any:
    """The columns of a frame, as Arrow has them; those that it does not have as columns of nulls.

    Newer versions of PySpark want to be told where times are shown.
    """
    function = _types().to_arrow_schema
    where = {"timezone": "UTC"} if "timezone" in signature(function).parameters else {}
    try:
        return function(frame.schema, **where)
    except _unsupported():
        pa = arrow()
        found: list[Any] = []
        for each in frame.schema.fields:
            try:
                found += function(type(frame.schema)([each]), **where)
            except _unsupported():
                found.append(pa.field(each.name, pa.null()))
        return pa.schema(found)


def _unsupported() -> type[Exception]:
    return import_module("pyspark.errors").PySparkTypeError


def _types() -> Any:
    """What PySpark knows of Arrow's types."""
    return import_module("pyspark.sql.pandas.types")
