"""A text as a program ready to run: compiled by its frontend or read as River IL, and verified.

Paper: River section 4.6 (translation ahead of time).
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from river import plugins
from river.backend import DEFAULT, Options
from river.classes import evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected
from river.driver.execution import execute
from river.driver.inputs import read_by
from river.driver.job import Inputs, Job, Results, columns_of
from river.driver.libraries import library
from river.driver.outputs import row_types
from river.driver.places import program_place
from river.garbage import seldom
from river.platform import here
from river.source import Source, Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from river.checkpoint import Checkpoint
    from river.driver.streaming import RunningStream
    from river.frontend import Frontend, LanguageOptions
    from river.il.graph import Graph
    from river.il.program import Program
    from river.il.templates import Library
    from river.io.folders import Mode
    from river.io.live import Live
    from river.lang.types import Type
    from river.platform import Platform
    from river.profile import Profile
    from river.verified import Stored

IL_SUFFIX = ".river"

IL_NAMES = ("river", "il")


@frozen(slots=False, eq=False)
class Compiled:
    """A program ready to run: River IL, and what people should know about it.

    `lowered`: a frontend has checked and made it; else a person wrote the IL. Made by `compile_source`; `river.compile` is
    the door from Python. `keep` is told the graph when it has been verified. `name`: of the text, as a rule its file;
    `more`: of its other texts. `texts`: the texts, if it is kept on disk what passes make of them. `remarks`: what passes
    refused to do that it has gone through, and `after`: these, and the platform.
    """

    program: Program
    warnings: tuple[Diagnostic, ...] = ()
    lowered: bool = False
    keep: Callable[[Graph], None] | None = None
    name: str | None = None
    more: tuple[str, ...] = ()
    texts: Texts | None = field(default=None, repr=False)
    remarks: tuple[Diagnostic, ...] = ()
    after: tuple[str, Platform] | None = None
    _tuned: dict[tuple[str, Platform], Compiled] = field(
        factory=dict["tuple[str, Platform]", "Compiled"], init=False, repr=False
    )

    @cached_property
    def templates(self) -> Library:
        """The templates that the program refers to."""
        return library(self.program, written=not self.lowered)

    @cached_property
    def graph(self) -> Graph:
        """The verified program. Raises: Rejected with every error."""
        from river.il.verify import verify

        graph = verify(self.program, self.templates)
        if self.keep is not None:
            self.keep(graph)
        return graph

    def tuned(self, passes: str | None, platform: Platform | None = None) -> Compiled:
        """The program after the passes that a backend asks for, on this machine or another platform; made once.

        What they come to is kept on disk: neither templates nor graph of the program are read or made for what is there.
        """
        if passes is None:
            return self
        wanted = passes, platform or here()
        if self.after == wanted:
            return self
        if wanted not in self._tuned:
            self._tuned[wanted] = self._improved(*wanted)
        return self._tuned[wanted]

    def _improved(self, passes: str, platform: Platform) -> Compiled:
        from river.verified import Stored, place

        file = None if self.texts is None else place(self.texts, passes, platform)
        kept = None if file is None else file.read()
        if kept is None:
            from river.tuning import tuned

            graph, remarks = tuned(self.graph, self.templates, passes, platform)
            kept = Stored(graph, self.warnings, self.lowered, remarks)
            if file is not None:
                file.write(kept)
        elif self.keep is not None:
            _ = (
                self.graph
            )  # is kept with that: nobody else may ask for it, and the text would be read again each time
        return _of(kept, self.name, self.more, (passes, platform))

    @property
    def text(self) -> str:
        """The program as canonical River IL."""
        from river.il.pretty import pretty

        return pretty(self.program)

    @property
    def inputs(self) -> Mapping[str, Type]:
        """Item types of the input queues, by name."""
        return {name: self.graph.queues[name].type for name in self.graph.inputs}

    @property
    def outputs(self) -> Mapping[str, Type]:
        """Row types of the outputs as they are written (a relation as its change log), by name."""
        return row_types(self.graph)

    def run(
        self,
        inputs: Inputs,
        outputs: Mapping[str, Any] | None = None,
        *,
        backend: str = DEFAULT,
        on_error: str = "stop",
        formats: Mapping[str, str] | None = None,
        lateness: int = 0,
        iterations: int | None = None,
        live: Live | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        metrics: str | os.PathLike[str] | None = None,
        in_place: bool = False,
        mode: Mode | None = None,
        partition_by: Mapping[str, str | Sequence[str]] | None = None,
        order_by: Mapping[str, str | Sequence[str]] | None = None,
        **options: Any,
    ) -> Results:
        """Runs the program over `inputs`; outputs without a target in `outputs`, or in the program, are collected in memory.

        `outputs` maps names to paths, or to None: collected, also where the program says which file. `on_error` says
        what happens to rows and items that cannot be taken: `stop`, `skip`, or `dead-letter=FILE`. `formats`: of inputs and
        outputs whose suffix does not tell, by name: `{"log": "csv-noheader"}`. `lateness`: how
        far back in time, in units of the time stamp (ticks, or microseconds), rows may come. `iterations`: so many
        steady states of a StreamIt program, or ticks for the input `clock` of another one. `live`: how a run goes on
        and ends whose inputs do (`river.follow`, `tcp://...`, pipes, iterators that wait). `checkpoint`: a folder
        where the state of the run is kept, so that the same call goes on there after a crash (`river.Checkpoint` says
        how often). `metrics`: a file that gets a JSON object a second (docs/cli.md). `in_place`: an output may take
        the place of an input when the run has ended well; else no file that is read is written. An output `folder/` gets
        files of its own there; what becomes of a folder that is not empty says `mode`: `error`, `overwrite`, `append`;
        `partition_by` names columns by which its rows are divided among folders: `{"delays": ["day", "region"]}`.
        `order_by` names those that put the rows of an input in order which Spark reads from an address or a table.
        Further keywords: see `river.backend.Options`.

        Raises: Rejected for everything that is wrong with the program, the data or the arguments.
        """
        from river.io.errors import OnError as Policy

        if isinstance(checkpoint, str | os.PathLike):
            from river.checkpoint import Checkpoint as Wanted

            checkpoint = Wanted(checkpoint)
        job = Job(
            inputs,
            dict(outputs or {}),
            Policy.parse(on_error),
            formats=formats or {},
            lateness=lateness,
            iterations=iterations,
            options=Options(**options),
            live=live,
            checkpoint=checkpoint,
            metrics=metrics,
            in_place=in_place,
            mode=mode,
            partition_by=partition_by or {},
            order_by=columns_of(order_by),
            read=tuple(program_place(name) for name in (self.name, *self.more) if name is not None),
        )
        return execute(self, backend, job)

    def profile(self, inputs: Inputs, *, iterations: int | None = None, **options: Any) -> Profile:
        """What each operator takes over `inputs`, for `profiled`: outputs are dropped, one worker runs.

        Raises: Rejected, as `run` does.
        """
        from river.driver.profiling import profiled
        from river.io.errors import OnError as Policy

        job = Job(inputs, {}, Policy.parse("stop"), iterations=iterations, options=Options(**options))
        return profiled(self, job)

    def profiled(self, profile: Profile | str | os.PathLike[str]) -> Compiled:
        """The program for which passes know what its operators take: a profile, or the file of one. Results stay what they are.

        Raises: Rejected("missing-file"), ("profile-format").
        """
        from river.profile import Profile as Known
        from river.profile import costed, parse

        found = profile if isinstance(profile, Known) else parse(read_source(os.fspath(profile)))
        program, warnings = costed(self.program, found)
        texts = self.texts
        if texts is not None:
            texts = evolve(texts, texts=(*texts.texts, Source("profile", found.text)))
        warnings = (*self.warnings, *warnings)
        return Compiled(program, warnings, self.lowered, name=self.name, more=self.more, texts=texts)

    def on_spark(
        self,
        inputs: Mapping[str, Any],
        *,
        order_by: Mapping[str, str | Sequence[str]] | None = None,
        externs: Mapping[str, Callable[..., Any]] | None = None,
    ) -> dict[str, Any]:
        """The outputs as Spark DataFrames made of the inputs', by name; nothing is computed before Spark is asked for rows.

        A DataFrame has no order. Where the result depends on it, rows come in that of the input's time stamp, then of the
        columns that `order_by` names for the input, then of all columns. Outputs are bags of rows. Numbers without sign
        are `decimal(20,0)` there. `externs`: functions for `extern python`, which executors must be able to import. What is
        given for an input that no query uses is not looked at.

        Raises: Rejected("spark-order") where there is neither time stamp nor `order_by`; for columns that do not fit; for
            programs that executors cannot run. What is wrong with rows is raised by Spark, with the diagnostic in its text.
        """
        spark: Any = plugins.backend("spark")
        graph = self.tuned(spark.passes).graph
        order = read_by(self, columns_of(order_by))
        return spark.frames(graph, read_by(self, inputs), order_by=order, externs=externs or {})

    def write_stream(
        self,
        inputs: Inputs,
        outputs: Mapping[str, str | os.PathLike[str]],
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint,
        order_by: Mapping[str, str | Sequence[str]] | None = None,
        formats: Mapping[str, str] | None = None,
        on_error: str = "stop",
        lateness: int = 0,
        live: Live | None = None,
        metrics: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> RunningStream:
        """Runs the program on Spark over inputs without end, in epochs, exactly once; its outputs go to folders.

        `inputs`: streaming DataFrames (`spark.readStream`), or folders that get files (`river.follow`). In an epoch the rows of a
        DataFrame come in the order of the input's time stamp, then of the columns that `order_by` names, then of all columns.
        `formats`: of the files of outputs, Parquet unless stated; `checkpoint`: a folder, from which the same call goes on after
        a crash, or a `river.Checkpoint`, whose `every` says how often there is an epoch. The rest: as of `run`.

        What comes back has `stop`, with which the run ends well, and `wait`, which gives its `Results` or raises what went wrong.
        """
        from river.checkpoint import Checkpoint as Wanted
        from river.driver.streaming import RunningStream
        from river.io.errors import OnError as Policy
        from river.io.live import Live as Ending

        ending = live or Ending()
        job = Job(
            inputs,
            outputs,
            Policy.parse(on_error),
            formats=formats or {},
            lateness=lateness,
            options=Options(**options),
            live=ending,
            checkpoint=checkpoint if isinstance(checkpoint, Wanted) else Wanted(checkpoint),
            metrics=metrics,
            order_by=columns_of(order_by),
            read=tuple(program_place(name) for name in (self.name, *self.more) if name is not None),
        )
        return RunningStream(ending, lambda: execute(self, "spark", job))


def _of(
    kept: Stored, name: str | None, more: tuple[str, ...], after: tuple[str, Platform] | None = None
) -> Compiled:
    """What was kept, as a program that is verified already."""
    graph, warnings, remarks = kept.graph, kept.warnings, kept.remarks
    found = Compiled(
        graph.program, warnings, kept.lowered, name=name, more=more, remarks=remarks, after=after
    )
    vars(found)["graph"] = graph
    return found


def compile_source(
    source: Source, lang: str | None = None, *, more: Sequence[Source] = (), main: str | None = None
) -> Compiled:
    """A text to River IL. Without `lang` the suffix of the source's name decides.

    `more`: the other texts of the program, where the language makes one program of several. `main` names the part of
    the texts that is the program, where the language lets one choose.

    Raises: Rejected with syntax and type errors, unknown-language, usage-texts.
    """
    name = lang if lang is not None else _language(source.name)
    whole = None if name in IL_NAMES else getattr(plugins.frontend(name), "whole", None)
    if whole is None and (more or main is not None):
        what = "a program is one text" if more else "a text is one program, of which `--main` chooses nothing"
        raise Rejected([Diagnostic("usage-texts", f"in the language `{name}` {what}")])
    texts = Texts((source, *more), lang, main)
    if name in IL_NAMES:
        from river.il.parse import parse

        return Compiled(parse(source), name=source.name, texts=texts)
    frontend = plugins.frontend(name)
    ast = frontend.parse(source)
    if whole is not None:
        ast = whole((ast, *map(frontend.parse, more)), main)
    return compile_checked(frontend, frontend.check(ast), texts)


def compile_checked(frontend: Frontend[Any, Any], checked: Any, texts: Texts) -> Compiled:
    """What a front end makes of the program of some texts, which it has checked."""
    program, warnings = frontend.lower(checked), frontend.warnings(checked)
    first, *more = (each.name for each in texts.texts)
    return Compiled(program, warnings, lowered=True, name=first, more=tuple(more), texts=texts)


def stated(source: Source, lang: str | None, options: LanguageOptions, *, seed: int | None = None) -> Source:
    """A text that says itself what the `options` say of how it is read. `seed`: a number that counts where a language takes one.

    Raises: Rejected("usage-option") for one that the language does not take, and as the language does for values.
    """
    if not options and seed is None:
        return source
    name = lang if lang is not None else _language(source.name)
    frontend: Any = None if name in IL_NAMES else plugins.frontend(name)
    known: frozenset[str] = getattr(frontend, "options", frozenset())
    for option in options:
        if option not in known:
            takers = [
                f"`{each}`"
                for each in plugins.frontends()
                if option in getattr(plugins.frontend(each), "options", ())
            ]
            message = f"programs in `{name}` do not take the option `{option}`"
            hint = f"leave it out; those in {', '.join(takers)} do" if takers else "leave it out"
            raise Rejected([Diagnostic("usage-option", message, help=hint)])
    if seed is not None and "seed" in known:
        options = {**options, "seed": seed}
    return frontend.stated(source, options) if options else source


def algebra(compiled: Compiled) -> str:
    """The algebra of a program as its language tells it, for people. Raises: Rejected("usage-algebra")."""
    texts = compiled.texts
    name = None if texts is None else texts.lang or _language(texts.texts[0].name)
    frontend = None if name is None or name in IL_NAMES else plugins.frontend(name)
    told = getattr(frontend, "algebra", None)
    if frontend is None or texts is None or told is None:
        message = "no algebra is known of programs in this language"
        raise Rejected([Diagnostic("usage-algebra", message, help="`--algebra` is of programs in CQL")])
    return told(frontend.check(frontend.parse(texts.texts[0])))


@seldom()
def compile_once(
    source: Source,
    lang: str | None = None,
    *,
    more: Sequence[Source] = (),
    main: str | None = None,
    passes: str | None = None,
    platform: Platform | None = None,
) -> Compiled:
    """The same for texts that are to run: what they say is kept on disk, and neither parsed nor verified another time.

    With `passes` for a platform, what they have made of it, if that is there. Raises: Rejected, as `compile_source` does.
    """
    from river.verified import Stored, place

    texts, names = Texts((source, *more), lang, main), tuple(each.name for each in more)
    key = _with_included(texts, lang)
    after = None if passes is None else (passes, platform or here())
    if after is not None:
        tuned = place(key, *after)
        found = None if tuned is None else tuned.read()
        if found is not None:
            return _of(found, source.name, names, after)
    file = place(key)
    if file is None:
        return compile_source(source, lang, more=more, main=main)
    found = file.read()
    if found is None:
        compiled = compile_source(source, lang, more=more, main=main)
        warnings, lowered = compiled.warnings, compiled.lowered

        def keep(graph: Graph) -> None:
            file.write(Stored(graph, warnings, lowered))

        # Where passes follow, what they make is kept, and is all that is read again.
        return evolve(compiled, keep=keep if after is None else None, texts=key)
    compiled = evolve(_of(found, source.name, names), texts=key)
    vars(compiled)["graph"] = found.graph
    return compiled


def _with_included(texts: Texts, lang: str | None) -> Texts:
    """The texts and the files that they include, on which what is kept depends, too."""
    name = lang if lang is not None else _language(texts.texts[0].name)
    found = None if name in IL_NAMES else getattr(plugins.frontend(name), "included", None)
    if found is None:
        return texts
    return evolve(texts, texts=(*texts.texts, *(each for text in texts.texts for each in found(text))))


def _language(name: str) -> str:
    suffix = Path(name).suffix
    if suffix == IL_SUFFIX:
        return "river"
    found = plugins.frontend_for_suffix(suffix) if suffix else None
    if found is None:
        languages = ", ".join((*plugins.frontends(), "river"))
        message = f"cannot tell the language of `{name}`"
        raise Rejected(
            [Diagnostic("unknown-language", message, help=f"say it with `--lang`; languages: {languages}")]
        )
    return found.name


def read_source(path: str, text: str | bytes | None = None) -> Source:
    """The program text at `path` (or `text`, already read from standard input).

    Raises: Rejected("missing-file"), ("not-text").
    """
    name = "<stdin>" if path == "-" else path
    try:
        found = Path(path).read_bytes() if text is None else text
        if isinstance(found, bytes):
            found = _LINE_END.sub("\n", _decoded(found, path))
    except UnicodeDecodeError as error:
        utf16 = error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        message = f"`{name}` is {'UTF-16, ' if utf16 else ''}not UTF-8 text (byte {error.start})"
        raise Rejected([Diagnostic("not-text", message, help="save it as UTF-8")]) from None
    except OSError as error:
        raise Rejected([_missing(path, error)]) from None
    return Source(name, found.removeprefix("\ufeff"))  # some editors write a mark first


def _decoded(found: bytes, path: str) -> str:
    """A text in UTF-8, or in what its language had before. Raises: UnicodeDecodeError."""
    try:
        return found.decode()
    except UnicodeDecodeError:
        language = plugins.frontend_for_suffix(Path(path).suffix)
        legacy = getattr(language, "legacy", None)
        if legacy is None or found.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise
        return found.decode(legacy)


_LINE_END = re.compile(r"\r\n?")


def _missing(path: str, error: OSError) -> Diagnostic:
    if isinstance(error, FileNotFoundError):
        from river.io.errors import sought

        return Diagnostic("missing-file", f"there is no file `{path}`", help=sought(path))
    return Diagnostic("missing-file", f"cannot read `{path}`: {(error.strerror or str(error)).lower()}")
