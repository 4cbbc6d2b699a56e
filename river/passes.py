"""The contract of an optimization, pipelines of them, and the loop that applies them.

A pass is policy (`sites`), safety (`guard`) and mechanism (`rewrite`). The loop takes the next site whose guard passes,
rewrites, verifies the new program and sees that its interface is what it was. A refusal is kept as a remark: people can
ask why an operator was not replicated. A rewrite consumes the directive that asked for it, so a pass applied twice is a
pass applied once.

A rewrite that does not verify is a mistake of the pass, not of the program: the program stays as it is, and a warning with a
code of its own says so. No test of a pass may meet one.

Paper: River §4.1 (safety guard and rewrite rule), §4.2 (policy and mechanism).
"""

from __future__ import annotations

import re
import types
import typing
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, Union, cast

from river.classes import field, frozen
from river.diagnostics import Diagnostic, InternalError, Note, Rejected, Severity, closest
from river.il.annotations import private
from river.il.expand import named_operators
from river.il.pretty import pretty
from river.il.program import TypeDecl
from river.il.verify import scope, verify
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from river.il.graph import Graph
    from river.il.program import Decl, Program
    from river.il.templates import Library
    from river.platform import Platform

Site = TypeVar("Site")

MOST: Final = 10_000  # rewrites of one pass: more is a pass that does not consume its directives


@frozen(slots=False, eq=False)
class Verified:
    """A program that verification has seen, with what it understood, and the templates that the program may name."""

    program: Program
    graph: Graph
    templates: Library
    _tried: list[tuple[object, object, Verified]] = field(factory=list[Any], init=False, repr=False)

    @cached_property
    def operators(self) -> Mapping[str, Decl]:
        """What the program calls an operator, by name (see `river.il.expand.named_operators`)."""
        return named_operators(self.program)

    @cached_property
    def type_names(self) -> Mapping[t.Type, str]:
        """The program's own names of record types."""
        inside = scope(self.program, self.templates)
        found: dict[t.Type, str] = {}
        for decl in self.program.decls:
            if isinstance(decl, TypeDecl) and not decl.params:
                type_ = resolve(s.TypeName(decl.name), inside)  # verification has resolved them all
                if isinstance(type_, t.Record):
                    found.setdefault(type_, decl.name)
        return found

    @classmethod
    def of(cls, program: Program, library: Library) -> Verified:
        """The program, verified. Raises: Rejected with every error."""
        return cls(program, verify(program, library), library)

    def become(self, program: Program) -> Verified:
        """What a pass has made of it, verified, but for the parts that it has kept. Raises: Rejected with every error."""
        return Verified(program, verify(program, self.templates, self.graph), self.templates)

    def rewritten(self, one: Pass[Site], site: Site) -> Verified:
        """The program with a site rewritten, verified; what a guard has tried is not made again. Raises: Rejected."""
        for tried, at, found in self._tried:
            if tried is one and at is site:
                return found
        found = self.become(one.rewrite(self, site))
        self._tried[:] = [(one, site, found)]
        return found


class Pass(Protocol[Site]):
    """An optimization: IL to IL. A frozen class, whose fields are its options.

    Registered under the entry-point group `river.passes`.
    """

    name: ClassVar[str]

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        """Policy: where it is asked for, or pays."""
        ...

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        """Safety: why the site must be left alone, or None. The note's place is where people are told."""
        ...

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        """Mechanism: the program with the site rewritten, of which the guard has approved."""
        ...


class Together(Pass[Site], Protocol[Site]):
    """A pass that can rewrite several sites at once, so that the program is verified once for all of them."""

    def together(self, verified: Verified, sites: Sequence[Site], /) -> Program:
        """The program with all or some of the sites rewritten, one at least; the guard has approved of each."""
        ...


@frozen
class Applied:
    """What passes made of a program, and what they refused to do."""

    program: Program
    remarks: tuple[Diagnostic, ...] = ()


def apply(program: Program, passes: Iterable[Pass[Any]], platform: Platform, library: Library) -> Applied:
    """The program after all passes, each applied until it finds nothing more to do.

    Raises: Rejected if `program` does not verify; InternalError if a pass does not end.
    """
    verified, remarks = improved(Verified.of(program, library), passes, platform)
    return Applied(verified.program, remarks)


def improved(
    verified: Verified, passes: Iterable[Pass[Any]], platform: Platform
) -> tuple[Verified, tuple[Diagnostic, ...]]:
    """The verified program after all passes, each applied until it finds nothing more to do, and what they refused.

    Raises: InternalError if a pass does not end.
    """
    remarks: dict[Diagnostic, None] = {}
    for one in passes:
        verified, refused = fixpoint(one, verified, platform)
        remarks |= dict.fromkeys(refused)
    return verified, tuple(remarks)


def fixpoint(one: Pass[Any], verified: Verified, platform: Platform) -> tuple[Verified, list[Diagnostic]]:
    """The program after a pass that has nothing more to do, the same object if it had nothing to do; what it refused.

    Raises: InternalError if the pass does not end.
    """
    for _ in range(MOST):
        refused: list[Diagnostic] = []
        sites = one.sites(verified, platform)
        if hasattr(one, "together"):
            sites = tuple(sites)
            several = _several(cast("Together[Any]", one), verified, sites)
            if several is not None:
                verified = several
                continue
        rewritten: Verified | None = None
        for site in sites:
            reason = one.guard(verified, site)
            if reason is not None:
                refused.append(remark(one.name, reason))
                continue
            tried = _tried(one, verified, site)
            if isinstance(tried, Verified):
                rewritten = tried
                break
            refused.append(tried)
        if rewritten is None:
            return verified, refused
        verified = rewritten
    raise InternalError(f"pass `{one.name}` does not end on\n{pretty(verified.program)}")


def remark(name: str, reason: Note) -> Diagnostic:
    """A refusal of the pass `name`, for people."""
    message = f"no {name}: {reason.message}"
    return Diagnostic("pass-refused", message, reason.span, Severity.REMARK, place=name)


def _several(one: Together[Any], before: Verified, sites: Sequence[object]) -> Verified | None:
    """The program with several sites rewritten; None where there are not several, or something is wrong with one of them."""
    approved = [site for site in sites if one.guard(before, site) is None] if len(sites) > 1 else []
    if len(approved) < 2:
        return None
    try:
        after = before.become(one.together(before, approved))
    except Rejected:
        return None
    return after if _alike(before, after) is None else None


def _tried(one: Pass[Any], before: Verified, site: object) -> Verified | Diagnostic:
    """The program with a site rewritten, or what is wrong with it."""
    try:
        after = before.rewritten(one, site)
    except Rejected as rejected:
        return unverified(one.name, "; ".join(d.message for d in rejected.diagnostics))
    reason = _alike(before, after)
    return after if reason is None else unverified(one.name, reason)


def _alike(before: Verified, after: Verified) -> str | None:
    """What users would see of a rewriting; None if nothing."""
    if (changed := _interface(before.graph)) != _interface(after.graph):
        return f"the interface would not be {changed}"
    if lost := set(_observed(before.graph)) - set(_observed(after.graph)):
        return f"the variables {sorted(lost)} would be lost"
    return None


def unverified(name: str, reason: str) -> Diagnostic:
    """A rewrite of the pass `name` that its guard let through and verification did not."""
    message = f"no {name}: what it made is no program that could stand for this one: {reason}"
    help_ = "this is a mistake of the pass; the program is right as it is. Please report it"
    return Diagnostic("pass-unverified", message, severity=Severity.WARNING, place=name, help=help_)


def _interface(graph: Graph) -> object:
    """What the world sees of a program before it runs."""
    inputs = [(name, graph.queues[name].type, graph.queues[name].by) for name in graph.inputs]
    outputs = [(name, graph.queues[name].type, graph.queues[name].by) for name in graph.outputs]
    return inputs, outputs, [(view.name, view.type) for view in graph.views]


def _observed(graph: Graph) -> Iterable[str]:
    """The variables and unions that are part of a result."""
    parts = {part for result in graph.results for part in result.parts} | private(graph)
    yield from (v.name for v in graph.variables if v.name not in parts)
    yield from (result.name for result in graph.results)


# ---------------------------------------------------------------------------------------------------------- pipelines

Find = typing.Callable[[str], type[Pass[Any]]]
"""From the name of a pass to its class; raises Rejected for an unknown one."""


def pipeline(text: str, find: Callable[[str], type[Pass[Any]]]) -> tuple[Pass[Any], ...]:
    """The passes that a text like `fusion,fission{degree=2,epoch=64}` names, in its order.

    Raises: Rejected with all of pass-syntax, pass-unknown-option, pass-option, and what `find` raises.
    """
    found: list[Pass[Any]] = []
    errors: list[Diagnostic] = []
    for item in _items(text):
        try:
            found.append(_pass(item, find))
        except Rejected as rejected:
            errors += rejected.diagnostics
    if errors:
        raise Rejected(errors)
    return tuple(found)


def show(passes: Sequence[Pass[Any]]) -> str:
    """The text of a pipeline, with the options that are not the defaults; `pipeline` reads it back."""
    return ",".join(f"{one.name}{_options(one)}" for one in passes)


def _options(one: Pass[Any]) -> str:
    import attrs

    given = [
        (f.name, getattr(one, f.name)) for f in attrs.fields(type(one)) if getattr(one, f.name) != f.default
    ]
    written = ",".join(f"{name}={_text(value)}" for name, value in given)
    return f"{{{written}}}" if written else ""


def _text(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


_PASS: Final = re.compile(r"([A-Za-z_][\w-]*)(?:\{([^{}]*)\})?")


def _items(text: str) -> list[str]:
    """The text cut at the commas that stand outside braces."""
    return [item.strip() for item in re.split(r",(?![^{}]*\})", text)]


def _pass(item: str, find: Callable[[str], type[Pass[Any]]]) -> Pass[Any]:
    import attrs

    matched = _PASS.fullmatch(item)
    if matched is None:
        help_ = "write `name` or `name{option=value,...}`, with commas between passes"
        raise Rejected([Diagnostic("pass-syntax", f"`{item}` does not name a pass", help=help_)])
    kind = find(matched[1])
    errors: list[Diagnostic] = []
    options: dict[str, Any] = {}
    kinds = typing.get_type_hints(kind)
    known = [f.name for f in attrs.fields(kind)]
    for option in filter(None, map(str.strip, (matched[2] or "").split(","))):
        name, equals, value = (part.strip() for part in option.partition("="))
        if not equals or not name or not value:
            errors.append(
                Diagnostic("pass-syntax", f"`{option}` is not of the form option=value", help=f"in `{item}`")
            )
        elif name not in known:
            shown = ", ".join(f"`{k}`" for k in known) or "none"
            message = f"pass `{kind.name}` has no option `{name}`"
            help_ = closest(name, known) or f"options: {shown}"
            errors.append(Diagnostic("pass-unknown-option", message, help=help_))
        elif name in options:
            errors.append(Diagnostic("pass-option", f"`{name}` is given twice in `{item}`"))
        else:
            try:
                options[name] = _value(value, kinds[name])
            except ValueError as error:
                errors.append(_wrong(kind, name, value, str(error)))
    if errors:
        raise Rejected(errors)
    try:
        return kind(**options)
    except ValueError as error:  # an attrs validator of the pass
        raise Rejected([Diagnostic("pass-option", f"pass `{kind.name}`: {error.args[0]}")]) from error


def _wrong(kind: type[Pass[Any]], name: str, value: str, wants: str) -> Diagnostic:
    return Diagnostic("pass-option", f"option `{name}` of pass `{kind.name}` wants {wants}, not `{value}`")


def _value(text: str, kind: Any) -> Any:
    """The value of an option of type `kind`. Raises: ValueError that says what is wanted."""
    choices = typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(None) in choices and text == "none":
        return None
    for choice in choices:
        if choice is bool and text in ("true", "false"):
            return text == "true"
        if choice is int and re.fullmatch(r"-?[0-9]+", text):
            return int(text)
        if choice is str:
            return text
    words = {bool: "true or false", int: "a whole number", type(None): "none"}
    raise ValueError(" or ".join(words[choice] for choice in choices if choice in words))
