"""What the checker knows while it walks one operator: names, slots, sites, places that must not be touched."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from river.classes import define, field, frozen
from river.diagnostics import Diagnostic, Note, Rejected, closest
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from river.lang.scope import Scope
    from river.source import Span

Path = tuple[
    str | int, ...
]  # ("local", slot) or ("state", index), then field positions and "*" for any entry


class StatementFailed(Exception):  # noqa: N818 - not an error of ours: the error is already reported, this leaves the statement
    """The statement is given up; its diagnostic is in the report."""


@frozen
class Binding:
    """A name in scope. `type` is None when its declaration was refused (no further errors for it)."""

    type: t.Type | None
    slot: int
    writable: bool = False
    ref: bool = False
    const: bool = False


@frozen
class Guard:
    """A place that may not be written (a borrow or a loop over it) or not even read (the map of an open `with`)."""

    path: Path
    reads: bool
    name: str
    why: str


@define
class Frame:
    """The slots and names of one function or handler."""

    slots: int = 0
    names: list[dict[str, Binding]] = field(factory=lambda: [{}])
    guards: list[Guard] = field(factory=list[Guard])
    loops: list[tuple[int, str | None]] = field(factory=list[tuple[int, str | None]])
    droppable: dict[int, int] = field(
        factory=dict[int, int]
    )  # entries bound by `with`: inside how many loops
    dropped: set[int] = field(factory=set[int])
    result: t.Type | None = None  # None: return takes no value (handlers)
    calls: set[int] = field(factory=set[int])
    emits: bool = False

    def slot(self) -> int:
        """A fresh slot."""
        self.slots += 1
        return self.slots - 1


@define
class FnEntry:
    """A function of the operator's table while it is being checked."""

    source: s.Fn
    params: tuple[typed.Param, ...]
    result: t.Type | None
    local: bool
    done: typed.Fn | None = None
    failed: bool = False  # its body has errors, which are reported
    calls: set[int] = field(factory=set[int])


@define
class Context:
    """The state of one check."""

    scope: Scope
    report: list[Diagnostic] = field(factory=list[Diagnostic])
    sites: list[typed.TrapSite] = field(factory=list[typed.TrapSite])
    fns: list[FnEntry] = field(factory=list[FnEntry])
    fn_names: dict[tuple[str, bool], int] = field(
        factory=dict[tuple[str, bool], int]
    )  # True: of the operator itself
    refused: set[tuple[str, bool]] = field(
        factory=set[tuple[str, bool]]
    )  # functions whose signature has errors, which are reported
    waiting: list[FnEntry] = field(factory=list[FnEntry])  # whose bodies are still to be checked
    draining: bool = False  # somebody checks those
    inferring: int = 0  # functions that are being checked because another one asks for its result
    local_fns: Mapping[str, s.Fn] = field(factory=dict[str, s.Fn])
    outs: tuple[typed.Out, ...] = ()
    variables: tuple[tuple[str, t.Type], ...] = ()
    written: set[int] = field(factory=set[int])
    consts: dict[str, Binding] = field(factory=dict[str, Binding])
    frame: Frame = field(factory=Frame)
    may_emit: bool = False
    may_touch_state: bool = False
    sees_operator: bool = True  # its constants and functions; library functions do not
    loops: int = 0

    def declares(self, name: str) -> bool:
        """Whether the program has a function of that name which can be called here, maybe instead of an operation."""
        return (self.sees_operator and name in self.local_fns) or name in self.scope.fns

    # -- reporting

    def error(
        self, code: str, message: str, span: Span | None, help: str | None = None, *notes: Note
    ) -> StatementFailed:
        """Reports an error and returns what to raise."""
        self.report.append(Diagnostic(code, message, span, help=help, notes=notes))
        return StatementFailed()

    def site(self, codes: tuple[str, ...], span: Span | None) -> int:
        """A fresh trap site."""
        self.sites.append(typed.TrapSite(codes, span))
        return len(self.sites) - 1

    @contextmanager
    def recover(self) -> Generator[None, None, None]:
        """Statements end here when they fail; refusals of inner arrows join the report."""
        try:
            yield
        except StatementFailed:
            pass
        except Rejected as rejected:
            self.report += rejected.diagnostics

    # -- names

    @contextmanager
    def block(self) -> Generator[None, None, None]:
        """A scope of names; guards of its borrows end with it."""
        frame = self.frame
        frame.names.append({})
        guards = len(frame.guards)
        try:
            yield
        finally:
            frame.names.pop()
            del frame.guards[guards:]

    def lookup(self, name: str) -> Binding | None:
        """The innermost binding of `name`."""
        for names in reversed(self.frame.names):
            if name in names:
                return names[name]
        return self.consts.get(name) if self.sees_operator else None

    def bind(
        self, name: str, type_: t.Type | None, span: Span | None, *, writable: bool = False, ref: bool = False
    ) -> int:
        """Binds a fresh slot to `name`. A name may not hide another one of the same frame, nor a constant."""
        if any(name in names for names in self.frame.names) or (self.sees_operator and name in self.consts):
            self.error(
                "lang-duplicate-name",
                f"`{name}` is already bound here",
                span,
                "names do not hide one another: rename it",
            )
        slot = self.frame.slot()
        self.frame.names[-1][name] = Binding(type_, slot, writable, ref)
        return slot

    def rebind(self, name: str, type_: t.Type, *, narrowed: bool = False) -> int:
        """Binds a fresh slot to `name`, hiding an earlier one: only `e is x`, where `a is a` narrows, may do so."""
        slot = self.frame.slot()
        self.frame.names[-1][name] = Binding(type_, slot, writable=narrowed)
        return slot

    def poison(self, name: str) -> None:
        """Binds `name` so that its uses say nothing more."""
        self.frame.names[-1].setdefault(name, Binding(None, self.frame.slot(), writable=True))

    def unknown(self, name: str, span: Span | None) -> StatementFailed:
        """An unknown name, with the nearest one."""
        known = [n for names in self.frame.names for n in names] + list(self.consts)
        return self.error("lang-unknown-name", f"unknown name `{name}`", span, closest(name, known))

    # -- places

    def guard(self, path: Path | None, *, reads: bool, name: str, why: str) -> None:
        """Forbids writes (and reads, for the map of a `with`) of a place until the block ends."""
        if path is not None:
            self.frame.guards.append(Guard(path, reads, name, why))

    def use(self, path: Path | None, span: Span | None, *, write: bool) -> None:
        """Refuses a use of a place that a guard forbids."""
        if path is None:
            return
        for guard in self.frame.guards:
            if (write or guard.reads) and overlap(path, guard.path):
                verb = "written" if write else "used"
                raise self.error(
                    "lang-borrowed", f"this cannot be {verb} here: `{guard.name}` {guard.why}", span,
                    "copy what is needed into a `var` before" if not guard.reads else "use the entry that is bound",
                )  # fmt: skip


def overlap(a: Path, b: Path) -> bool:
    """Whether two places share storage: one path begins with the other."""
    return all(x == y for x, y in zip(a, b, strict=False))


def path_of(expr: typed.Expr) -> Path | None:
    """The path of a place, or None if `expr` is a temporary."""
    match expr:
        case typed.Local(_, slot, _, _):
            return ("local", slot)
        case typed.State(_, index, _):
            return ("state", index)
        case typed.Get(_, value, index, _):
            inner = path_of(value)
            return None if inner is None else (*inner, index)
        case typed.At(_, value, _, _):
            inner = path_of(value)
            return None if inner is None else (*inner, "*")
        case _:
            return None
