"""Runs over what Spark reaches and River does not: addresses such as `s3a://bucket/log/`, and tables of Spark's catalog.

Inputs are DataFrames, and the program is run as over any DataFrames (`door`). Parquet and tables have typed columns, of which
Spark's reader and River's make the same rows; files of all other formats are read by River's own readers, each as a whole by
an executor. So no order of rows is known but that of their time stamps. What goes to an
address or to a table is written by Spark, from its executors. What goes elsewhere comes through this process, in order of
its columns, and is at its place only when all jobs of Spark have ended well.

Paper: River §2.4 (the platform is chosen late).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args
from urllib.parse import unquote

from backends.spark import kernels, sql
from backends.spark.delivery import hand_over
from backends.spark.door import frame_schema
from backends.spark.run import first_said, watched
from backends.spark.session import look_again, session
from backends.spark.task import ShippedProgram
from river.backend import Summary
from river.classes import evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.driver import (
    Results,
    Writer,
    check_folders,
    dividing,
    given_type,
    open_output,
    row_types,
    without_addresses,
)
from river.io.addresses import address, base, path_of, table
from river.io.appended import unlike
from river.io.folders import Mode, format_in
from river.io.given import check_given
from river.io.schema import columns
from river.io.several import Files, fixed, said
from river.io.sinks import Collector
from river.io.sources import format_of
from river.lang import types as t
from river.lang.scope import show
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from backends.spark import Spark
    from backends.spark.session import Session
    from river.driver import Compiled, CountedSink, Job

PARQUET: Final = "parquet"

SAME: Final = """river 1;
input files: {type};
output rows: {type};
operator same(file: {type}) -> (row: {type}) {{ on file(v) {{ emit row v; }} }}
(rows) <- same(files);
"""
"""A program that sends on what it gets."""


def run(backend: Spark, compiled: Compiled, job: Job) -> Results:
    """Runs a program some of whose inputs and outputs are such. Raises: Rejected; KeyboardInterrupt."""
    began = time.perf_counter()
    _check(job)
    backend.plan(compiled.graph, here(), job.options)  # refuses what cannot run here, before Spark starts
    with session(job.options.workers or here().cores, job.options.settings, chunks=False) as spark:
        far = _AddressedRun(backend, compiled, job, spark)
        far.through()
        rows = far.rows
    collected = {n: each.sink for n, each in far.sinks.items() if isinstance(each.sink, Collector)}
    return Results(collected, rows, Summary({}), time.perf_counter() - began, None, remarks=compiled.remarks)


def _refused(message: str, help_: str) -> Rejected:
    return Rejected([Diagnostic("spark-address", message, help=help_)])


def _check(job: Job) -> None:
    """Checks that what is asked can be done with data of which Spark alone knows. Raises: Rejected("spark-address")."""
    for what, asked in (
        ("`--lateness` is", bool(job.lateness)),
        ("`--until` is", job.options.until is not None),
        ("`--iterations` is", job.iterations is not None),
        (f"`--on-error {job.on_error.action}` is", job.on_error.action != "stop"),
        ("`--metrics` is", job.metrics is not None),
    ):
        if asked:
            raise _refused(
                f"{what} not for inputs and outputs at addresses, whose rows Spark reads and writes",
                "leave it out, or copy the data to files that your machine and all executors see",
            )
    if job.mode is not None and job.mode not in (modes := get_args(Mode)):
        message = f"there is no mode `{job.mode}`, by which outputs would be written"
        raise _refused(message, f"it is one of {', '.join(f'`{each}`' for each in modes)}")


@frozen
class _AddressedRun:
    """What such a run needs, its sinks here, and how many rows each output got."""

    backend: Spark
    compiled: Compiled
    job: Job
    spark: Session
    sinks: dict[str, CountedSink] = field(factory=dict[str, "CountedSink"], init=False)
    rows: dict[str, int] = field(factory=dict[str, int], init=False)

    def through(self) -> None:
        """Runs a job of Spark for each output."""
        job, graph = self.job, self.compiled.graph
        frames = {name: self.frame(name) for name in graph.inputs}
        try:
            found = self.backend.frames(graph, frames, order_by=job.order_by, externs=job.options.externs)
        except Rejected as rejected:
            raise Rejected(
                evolve(each, place=self.where(each.place)) for each in rejected.diagnostics
            ) from None
        types = row_types(graph)
        for name, type_ in types.items():
            self.check_target(name, type_)
        check_folders(without_addresses(job))
        try:
            for name, type_ in types.items():
                if address(job.outputs.get(name)) is None:
                    self.sinks[name] = open_output(job, name, type_, None)
                    hand_over(Writer(type_, self.sinks[name]), self.fetched(name, type_, found[name]))
            for counted in self.sinks.values():
                counted.complete()
            for name in types:
                if address(job.outputs.get(name)) is not None:
                    self.write(name, found[name])
            for counted in self.sinks.values():
                counted.sink.close()
        except BaseException:
            for counted in self.sinks.values():
                counted.sink.abort()
            raise
        self.rows.update({name: counted.rows for name, counted in self.sinks.items()})

    def watched(self, name: str, work: Callable[[], None]) -> None:
        """A job of Spark for an output. Raises: Rejected("spark-failed"); KeyboardInterrupt."""
        watched(self.spark, work, f"the plan of `{name}`", self.job.options)

    # -- in

    def where(self, place: str | None) -> str | None:
        """The address of an input that a diagnostic names as its place."""
        return place if place is None else address(self.job.inputs.get(place)) or place

    def frame(self, name: str) -> Any:
        """The rows of an input. Raises: Rejected("spark-address") for what Spark cannot read."""
        given: Any = self.job.inputs[name]
        place = address(given)
        if place is None:
            if hasattr(given, "mapInArrow"):
                return given
            if not isinstance(given, str | os.PathLike):
                return self.spark.createDataFrame(given)
            place = f"file://{Path(os.fspath(given)).absolute()}"  # Hadoop takes `%20` for three signs
        try:
            if (catalog := table(place)) is not None:
                return self.spark.read.table(catalog)
            return self.rows_of(name, place)
        except _spark_errors() as error:
            message = f"input `{name}`: Spark cannot read `{place}`"
            help_ = _PACKAGE.format(place.partition(":")[0]) if _unknown_scheme(error) else None
            raise _refused(message, help_ or f"Spark says: {first_said(error)}") from error

    def rows_of(self, name: str, place: str) -> Any:
        """The rows of files: Spark reads Parquet that it knows, River's readers all else, a file in a task. Raises: Rejected."""
        stated = self.job.formats.get(name)
        type_ = given_type(self.compiled.graph, name)
        kind = self.format(name, place)
        if kind in (PARQUET, None):
            try:
                found = self.parquet(place, type_)
                if not _otherwise(found, type_):
                    return found
            except _spark_errors() as error:
                if kind is None and "CANNOT_READ_FILE_FOOTER" in str(error):
                    message = f"input `{name}`: no name at `{place}` tells a format, and it is no Parquet"
                    help_ = f"say the format: `--in-format {name}=FORMAT`"
                    raise Rejected([Diagnostic("data-format", message, help=help_)]) from error
                if not any(code in str(error) for code in _RIVERS):
                    raise
            stated = PARQUET
        work = kernels.OutputWork(ShippedProgram(SAME.format(type=show(type_)), ()), "rows")
        files = self.spark.read.format("binaryFile").load(place).select("path", "content")
        return files.mapInArrow(partial(kernels.parsed, work.text(), stated, place), frame_schema(type_))

    def parquet(self, place: str, type_: t.Type) -> Any:
        """The rows of Parquet files. Columns that the names of folders say have the program's types, and Spark guesses none.

        So have numbers that are wider there: Spark looks into one file, and in others they may be as wide.

        Raises: Rejected("data-partition").
        """
        found = self.spark.read.parquet(place)
        if not isinstance(type_, t.Record):
            return found
        kinds = {each.name: each for each in frame_schema(type_).fields}
        if not kinds.keys() <= {*found.columns}:  # Spark has looked into one file, and others may have more
            found = self.merged(found, place, kinds)
        path = path_of(place)
        files = [path_of(unquote(each)) for each in sorted(found.inputFiles())]
        said_by = tuple(said(path, file) for file in files)
        stated: set[str] = set()
        if any(said_by):
            check_given(type_, Files(tuple(files), place, None, said_by))
            stated = {name for name, _ in said_by[0]} & kinds.keys()
        fields = [
            *(
                _widened(each, kinds.get(each.name))
                for each in found.schema.fields
                if each.name not in stated
            ),
            *(kinds[each] for each in stated),
        ]
        if not stated and fields == found.schema.fields:
            return found
        reader = self.spark.read.schema(import_module("pyspark.sql.types").StructType(fields))
        if any(said_by):
            reader = reader.option("basePath", base(place, fixed(path)))
        return reader.parquet(place)

    def merged(self, found: Any, place: str, kinds: Mapping[str, Any]) -> Any:
        """The rows with the columns of all files. Where types differ, `found` gets those it lacks."""
        try:
            return self.spark.read.option("mergeSchema", "true").parquet(place)
        except _spark_errors() as error:
            if "CANNOT_MERGE_SCHEMAS" not in str(error):
                raise
        lacking = {*kinds} - {*found.columns}
        fields = [*found.schema.fields]
        for file in sorted(found.inputFiles()):
            one = self.spark.read.parquet(unquote(file))
            more = [each for each in one.schema.fields if each.name in lacking]
            fields += more
            lacking -= {each.name for each in more}
            if not lacking:
                break
        return self.spark.read.schema(import_module("pyspark.sql.types").StructType(fields)).parquet(place)

    def format(self, name: str, place: str) -> str | None:
        """The format of what stands at an address, as it is stated, or its name tells, or those of the files; None if none does.

        Raises: Rejected("data-format") for files of several formats, ("spark-address") where there are none.
        """
        stated = self.job.formats.get(name)
        try:
            return format_of(place.rstrip("/*"), stated, name)[0]
        except Rejected:
            if stated is not None:
                raise
        listing = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        files = sorted(path_of(unquote(each)) for each in listing.load(place).inputFiles())
        if not files:
            raise _refused(f"input `{name}`: there is no file at `{place}`", "name where they are")
        found: dict[str, str] = {}
        for file in files:
            with suppress(Rejected):
                found.setdefault(format_of(file, None, name)[0], file)
        if len(found) > 1:
            kinds = ", ".join(f"`{file}`" for file in found.values())
            message = f"input `{name}`: the files at `{place}` have several formats: {kinds}"
            help_ = f"name those of one: `{place.rstrip('/')}/*.{min(found)}`"
            raise Rejected([Diagnostic("data-format", message, help=help_)])
        return next(iter(found), None)

    # -- out

    def check_target(self, name: str, type_: t.Type) -> None:
        """Checks what is said of an output at an address. Raises: Rejected("spark-address", "data-partition")."""
        place = address(self.job.outputs.get(name))
        if place is None:
            return
        dividing(self.job, name, type_)
        if (catalog := table(place)) is not None:
            self.check_table(name, type_, catalog)
        elif (kind := format_in(place, self.job.formats.get(name), name)) != PARQUET:
            raise _refused(
                f"output `{name}`: `{place}` is {kind}, and at addresses Spark writes Parquet, or tables of its catalog",
                "Spark writes texts otherwise than River does: name a file or a folder here, or write Parquet",
            )
        elif (self.job.mode or "error") == "error" and self.at(place):
            raise _refused(
                f"output `{name}`: there is something at `{place}` already",
                "say `--mode append`, or `--mode overwrite`, which puts the rows in its place",
            )
        elif self.job.mode == "append" and self.at(place):
            self.check_files(name, type_, place)

    def at(self, place: str) -> bool:
        """Whether there is anything at an address. What keeps Spark from looking shows when it writes there."""
        try:
            self.spark.read.format("binaryFile").load(place)
        except _spark_errors():
            return False
        return True

    def check_files(self, name: str, type_: t.Type, place: str) -> None:
        """Checks that rows may come beside the files at an address. Raises: Rejected("spark-address")."""
        help_ = "name another address; `--mode overwrite` puts the rows in the place of what is there"
        try:
            found = self.spark.read.parquet(place)
        except _spark_errors() as error:
            if not self.spark.read.format("binaryFile").load(place).inputFiles():
                return
            message = f"output `{name}`: what is at `{place}` is no Parquet, to which rows could be added"
            raise _refused(message, f"{help_}; Spark says: {first_said(error)}") from error
        by = [each.lower() for each in dividing(self.job, name, type_)]
        files = sorted(found.inputFiles())
        known = (
            [each.lower() for each, _ in said(path_of(place), path_of(unquote(files[0])))] if files else by
        )
        if known != by:
            message = f"output `{name}`: the files at `{place}` are divided by {_listed(known)}, and its rows by {_listed(by)}"
            stated = (
                f"say `--partition-by {name}={','.join(known)}`" if known else "leave `--partition-by` out"
            )
            raise _refused(message, f"{stated}, or {help_}")
        there = _kinds(found.schema.fields, by)
        if wrong := unlike(there, _kinds(frame_schema(type_).fields, by)):
            message = f"output `{name}`: its rows do not fit to the files at `{place}`: {'; '.join(wrong)}"
            raise _refused(message, help_)

    def check_table(self, name: str, type_: t.Type, catalog: str) -> None:
        """Checks that rows may go to a table that is there. Raises: Rejected("spark-address")."""
        mode = self.job.mode or "error"
        if not self.there(name, catalog) or mode == "overwrite":
            return
        if mode == "error":
            message = f"output `{name}`: there is a table `{catalog}` already"
            raise _refused(
                message, "say `--mode append`, or `--mode overwrite`, which puts a new table in its place"
            )
        known = self.spark.catalog.listColumns(catalog)
        there = {each.name.lower(): each.dataType for each in known}
        ours = {each.name.lower(): each.dataType.simpleString() for each in frame_schema(type_).fields}
        wrong = unlike([*there.items()], [*ours.items()])
        if wrong:
            message = f"output `{name}`: its rows do not fit into the table `{catalog}`: {'; '.join(wrong)}"
            help_ = "make the output's columns those of the table; `--mode overwrite` puts a new table in its place"
            raise _refused(message, help_)
        by = [each.name for each in known if each.isPartition]
        if [each.lower() for each in by] != [each.lower() for each in dividing(self.job, name, type_)]:
            stated = ",".join(by)
            message = f"output `{name}`: the table `{catalog}` is divided by {_listed(by)}"
            help_ = f"say `--partition-by {name}={stated}`" if by else "leave `--partition-by` out"
            raise _refused(message, help_)

    def there(self, name: str, catalog: str) -> bool:
        """Whether there is a table of that name. Raises: Rejected("spark-address") if there can be none."""
        try:
            if self.spark.catalog.tableExists(catalog):
                return True
            database = catalog.rpartition(".")[0]
            if not database or self.spark.catalog.databaseExists(database):
                return False
            known = [each.name for each in self.spark.catalog.listDatabases()]
        except _spark_errors() as error:
            message = f"output `{name}`: `{catalog}` is no name of a table for Spark: {first_said(error)}"
            raise _refused(message, "name it with its database: `table:sales.log`") from error
        message = f"output `{name}`: there is no database `{database}` for the table `{catalog}`"
        make = f"make it: `create database {database}`"
        raise _refused(
            message, closest(database, known) or f"{make}, or name one that is there, such as `{known[0]}`"
        )

    def fetched(self, name: str, type_: t.Type, frame: Any) -> list[Any]:
        """The rows of an output as record batches here, in order of the columns that have one."""
        plain = [column for column, kind in frame.dtypes if not kind.startswith(("map", "struct", "array"))]
        ordered = frame.sort(*map(sql.name, plain)) if plain else frame
        found: list[Any] = []
        self.watched(name, lambda: found.append(ordered.toArrow()))
        return kernels.unsigned(type_, found[0], f"output `{name}`").to_batches()

    def write(self, name: str, frame: Any) -> None:
        """Writes the rows of an output to an address, or to a table, from where they are; notes how many there are."""
        place = cast("str", address(self.job.outputs[name]))
        seen = import_module("pyspark.sql").Observation()
        functions = import_module("pyspark.sql.functions")
        writer = frame.observe(seen, functions.count(functions.lit(1)).alias("rows")).write
        writer = writer.mode(self.job.mode or "error")
        if by := dividing(self.job, name, row_types(self.compiled.graph)[name]):
            writer = writer.partitionBy(*by)
        catalog = table(place)
        self.watched(
            name, partial(writer.parquet, place) if catalog is None else partial(writer.saveAsTable, catalog)
        )
        self.rows[name] = seen.get["rows"]
        if catalog is not None:
            look_again(self.spark, catalog)


_RIVERS: Final = ("PARQUET_TYPE_ILLEGAL", "COLUMN_ALREADY_EXISTS")
"""What Spark says of Parquet that it does not read, and River does: times in nanoseconds, names that differ in case alone."""


def _otherwise(found: Any, type_: t.Type) -> bool:
    """Whether a column of Parquet is of numbers without sign, or of durations, for which Spark has other types than River."""
    wanted = {name: each.inner if isinstance(each, t.Optional) else each for name, each in columns(type_)}
    unsigned = (t.I32, t.I64)
    return any(
        (kind == "decimal(20,0)" and wanted.get(name) in unsigned)
        or (kind == "bigint" and wanted.get(name) == t.DURATION)
        for name, kind in found.dtypes
    )


def _widened(field_: Any, wanted: Any) -> Any:
    """A column of files, or a part of one, as the program has it, if Spark reads numbers of its type as such of the program's."""
    if wanted is None:
        return field_
    return type(field_)(
        field_.name, _wider(field_.dataType, wanted.dataType), field_.nullable, field_.metadata
    )


def _wider(found: Any, wanted: Any) -> Any:
    """A type of files, with numbers that are as wide as those of the program's type."""
    match found.typeName(), wanted.typeName():
        case "struct", "struct":
            kinds = {each.name: each for each in wanted.fields}
            return type(found)([_widened(each, kinds.get(each.name)) for each in found.fields])
        case "array", "array":
            return type(found)(_wider(found.elementType, wanted.elementType), found.containsNull)
        case "map", "map":
            parts = (_wider(found.keyType, wanted.keyType), _wider(found.valueType, wanted.valueType))
            return type(found)(*parts, found.valueContainsNull)
        case _:
            return wanted if wanted.simpleString() in _WIDER.get(found.simpleString(), ()) else found


_WIDER: Final = {
    "tinyint": ("int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""Types of numbers, and those as which Spark reads columns of such: other files may have these."""


def _kinds(fields: Iterable[Any], by: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of files with Spark's types; of those that folders say Spark guesses the types."""
    found = ((each.name.lower(), each.dataType.simpleString()) for each in fields)
    return [(name, kind) for name, kind in found if name not in by]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in names) or "nothing"


_PACKAGE: Final = (
    "Spark knows no file system `{}`: a package brings it, "
    "such as `--spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2` for `s3a`"
)


def _unknown_scheme(error: Exception) -> bool:
    """Whether Spark has no code for the file system of an address."""
    return "No FileSystem for scheme" in str(error) or "FileSystem not found" in str(error)


def _spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises: as its own, and what its Java tells of a task, which looked into a file."""
    return import_module("pyspark.errors").PySparkException, import_module("py4j.protocol").Py4JError
