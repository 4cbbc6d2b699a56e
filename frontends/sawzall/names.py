"""What a name means while a program is checked: scopes, captures, and which variables surely have a value."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from frontends.sawzall import typed as z
from frontends.sawzall.operations import CONSTANTS, FUNCTIONS, MATCHES
from frontends.sawzall.tables import PRINTED
from frontends.sawzall.types import BASIC
from river.classes import define, evolve, field, frozen
from river.diagnostics import closest

if TYPE_CHECKING:
    from collections.abc import Generator

    from river.lang import types as t
    from river.report import Report
    from river.source import Span


Jump = Literal["loop", "switch", "when"]
"""What a `break` or `continue` may be in; out of a `when` and out of `?{...}`, which counts as one, there is none."""


@frozen
class Known:
    """What a name stands for: a variable, function, table or type, by number."""

    what: Literal["variable", "function", "table", "type", "table type", "refused"]
    index: int


ALWAYS = (*CONSTANTS, *PRINTED, "input")
"""Names of values and tables that every program has."""

PREDEFINED = frozenset(
    {*BASIC, *CONSTANTS, *MATCHES, *PRINTED, *(f.name for f in FUNCTIONS), "def", "format", "input"}
    | {
        "DEBUG",
        "assert",
        "clearproto",
        "convert",
        "getenv",
        "load",
        "inproto",
        "inprotocount",
        "new",
        "now",
        "regex",
        "saw",
        "sawn",
        "sawzall",
    }
) - {"split"}
"""Names that have a meaning in every program."""


@define
class ResultBlock:
    """A `?{...}`: the type of its results, and what surely has a value after each of them."""

    wanted: t.Type | None
    type: t.Type | None = None
    ends: list[frozenset[int] | None] = field(factory=list["frozenset[int] | None"])


@define
class Frame:
    """One function, or the body of the program: its scopes, and its captures (variable outside to variable inside).

    `number`: that of the function, -1 of the body. `start`: the variables outside that surely have a value where the function
    is declared; `given`: the captures of them. `results`: the `?{...}` that are open.
    """

    number: int = -1
    scopes: list[dict[str, Known]] = field(factory=lambda: [{}])
    captures: dict[int, int] = field(factory=dict[int, int])
    start: frozenset[int] | None = frozenset()
    given: set[int] = field(factory=set[int])
    jumps: list[Jump] = field(factory=list["Jump"])
    broken: bool = False
    result: t.Type | None = None
    results: list[ResultBlock] = field(factory=list["ResultBlock"])


@define
class Names:
    """All names of a program.

    `sure`: the variables that surely have a value here; None where control does not come. `always`: those that have one
    wherever they can be named. `doubtful`: the names of variables that may lose their value, where statements are skipped.
    `changed`: those to which something is assigned anywhere; `empty`: the variables that begin without a value.
    `hints`: what is said of names that mean nothing where they stand.
    """

    report: Report
    variables: list[z.Variable] = field(factory=list[z.Variable])
    types: list[t.Type] = field(factory=list["t.Type"])
    members: dict[int, dict[str, Known]] = field(
        factory=dict[int, "dict[str, Known]"]
    )  # of types, by their number
    recursive: list[t.Type] = field(
        factory=list["t.Type"]
    )  # what the types that contain themselves are made of
    frames: list[Frame] = field(factory=lambda: [Frame()])
    sure: frozenset[int] | None = frozenset()
    always: set[int] = field(factory=set[int])
    indexed: list[t.Type | None] = field(
        factory=list["t.Type | None"]
    )  # whose index is checked; None in a call inside
    doubtful: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    empty: set[int] = field(factory=set[int])
    hints: dict[str, str] = field(factory=dict[str, str])

    @property
    def outer(self) -> Frame:
        """The body of the program."""
        return self.frames[0]

    @property
    def frame(self) -> Frame:
        """The function that is being checked, or the body."""
        return self.frames[-1]

    @property
    def inside(self) -> bool:
        """Whether a function is being checked."""
        return len(self.frames) > 1

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Names that are declared inside end with it."""
        self.frame.scopes.append({})
        try:
            yield
        finally:
            self.frame.scopes.pop()

    @contextmanager
    def function(
        self, number: int, result: t.Type | None, start: frozenset[int] | None
    ) -> Generator[Frame, None, None]:
        """A frame of its own. `start`: what surely has a value wherever the function is called."""
        before, indexed = self.sure, self.indexed
        if start is not None and self.inside:
            start = None if self.frame.start is None else start | self.frame.start
        self.frames.append(Frame(number, result=result, start=start))
        self.indexed = []
        try:
            yield self.frame
        finally:
            self.frames.pop()
            self.sure, self.indexed = before, indexed

    def declare(self, name: str, known: Known, span: Span | None) -> None:
        """Gives a name its meaning in the innermost scope."""
        if name in self.frame.scopes[-1]:
            raise self.report.error(
                "sawzall-duplicate", f"`{name}` is already declared here", span, "rename one of them"
            )
        if name in PREDEFINED and span is not None and known.what != "refused":
            self.report.warn(
                "sawzall-hidden", f"this hides what `{name}` is in every program", span, "rename it"
            )
        self.frame.scopes[-1][name] = known

    def variable(
        self,
        name: str,
        type_: t.Type,
        kind: Literal["input", "static", "local", "parameter", "quantifier"],
        span: Span | None,
    ) -> int:
        """A new variable."""
        index = len(self.variables)
        self.declare(name, Known("variable", index), span)
        self.variables.append(z.Variable(name, type_, kind, home=self.frame.number, span=span))
        return index

    def announce(self, name: str, known: Known, span: Span | None) -> None:
        """Gives a function its name, in the program's body."""
        inner, self.frames = self.frames, self.frames[:1]
        try:
            self.declare(name, known, span)
        finally:
            self.frames = inner

    def unnamed(self, name: str, type_: t.Type, function: int, span: Span | None) -> int:
        """A parameter of a function; its name is declared where the body is."""
        self.variables.append(z.Variable(name, type_, "parameter", home=function, span=span))
        return len(self.variables) - 1

    def refuse(self, name: str) -> None:
        """Makes uses of a name say nothing more."""
        self.frame.scopes[-1].setdefault(name, Known("refused", 0))

    def known(self, name: str) -> Known | None:
        """What a name that the program declares stands for here; variables are not captured."""
        for frame in reversed(self.frames):
            for scope in reversed(frame.scopes):
                if name in scope:
                    return scope[name]
        return None

    def type(self, name: str) -> t.Type | None:
        """The type of this name, unless it stands for something else."""
        known = self.known(name)
        if known is not None:
            return self.types[known.index] if known.what == "type" else None
        return BASIC.get(name)

    def find(self, name: str, span: Span | None) -> Known:
        """What a name stands for. A variable outside that a function names becomes a capture."""
        if (known := self.known(name)) is not None:
            return Known("variable", self.captured(known.index)) if known.what == "variable" else known
        names = [n for frame in self.frames for scope in frame.scopes for n in scope]
        hint = self.hints.get(name) or closest(name, [*names, *ALWAYS])
        if name.lower() in ("null", "nil", "none", "undefined", "undef"):
            hint = "a variable without a value is declared by `x: int;`, and `def(x)` is whether it has one"
        raise self.report.error("sawzall-unknown-name", f"unknown name `{name}`", span, hint)

    def name_of(self, type_: t.Type) -> str | None:
        """The name by which the program knows a type here, if it gives it one."""
        for frame in reversed(self.frames):
            for scope in reversed(frame.scopes):
                for name, known in scope.items():
                    if known.what == "type" and self.types[known.index] == type_:
                        return name
                    members = self.members.get(known.index, {}) if known.what == "type" else {}
                    for member, inner in members.items():
                        if inner.what == "type" and self.types[inner.index] == type_:
                            return f"{name}.{member}"
        return None

    def captured(self, index: int) -> int:
        """The variable by which the current function knows variable `index` of what is around it."""
        outside = self.variables[index]
        if outside.home == self.frame.number or outside.kind == "static":
            return index
        if index not in self.frame.captures:
            self.frame.captures[index] = len(self.variables)
            if self.frame.start is None or index in self.frame.start or index in self.always:
                self.frame.given.add(len(self.variables))
            self.variables.append(
                z.Variable(outside.name, outside.type, "capture", home=self.frame.number, span=outside.span)
            )
        return self.frame.captures[index]

    def origin(self, index: int) -> z.Variable:
        """The variable that a capture of the current function is of, or itself."""
        return self.variables[self.first(index)]

    def read(self, index: int, span: Span | None) -> z.Read:
        """A read of a variable, which is loose if it need not have a value."""
        definite = (
            self.sure is None or index in self.sure or index in self.frame.given or index in self.always
        ) and self.variables[index].name not in self.doubtful
        if not definite:
            self.loosen(index)
            if self.first(index) in self.empty and self.variables[index].name not in self.changed:
                name = self.variables[index].name
                self.report.warn("sawzall-undefined", f"`{name}` never has a value", span, f"`{name} = ...;`")
        return z.Read(self.variables[index].type, index, definite, span=span)

    def first(self, index: int) -> int:
        """The variable that a variable of the current function is a capture of, or itself."""
        return next((outside for outside, inside in self.frame.captures.items() if inside == index), index)

    def loosen(self, index: int) -> None:
        """Notes that variable `index`, and what it captures, may be read before it has a value."""
        self.variables[index] = evolve(self.variables[index], loose=True)
        for outside, inside in self.frame.captures.items():
            if inside == index:
                self.variables[outside] = evolve(self.variables[outside], loose=True)

    def know(self, known: frozenset[int]) -> None:
        """From here on these variables have a value, as a test has shown."""
        if self.sure is not None:
            self.sure |= known

    def assign(self, index: int) -> None:
        """From here on the variable has a value."""
        if self.sure is not None:
            self.sure |= {index}


def both(a: frozenset[int] | None, b: frozenset[int] | None) -> frozenset[int] | None:
    """What surely has a value after either of two ways."""
    if a is None or b is None:
        return a if b is None else b
    return a & b
