"""Regular expressions: `match` and its like, `saw`, `regex`. What is wrong with a pattern that is known is an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, cast

from frontends.sawzall import conversions
from frontends.sawzall import syntax as a
from frontends.sawzall import typed as z
from frontends.sawzall.operations import MATCHES
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t
from river.lang.patterns import BadPattern, compile_pattern

if TYPE_CHECKING:
    from frontends.sawzall.expressions import Expressions
    from river.source import Span

_DOLLAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def _before_a_line_end(pattern: str) -> str:
    """A pattern whose `$` is also met in front of a line end that is the last of the text."""
    if "(?" in pattern.replace("(?:", "") or "\\Q" in pattern:
        return pattern
    return _DOLLAR.sub(lambda found: r"(?:\n?\z)" if found[0] == "$" else found[0], pattern)


def matched(
    checker: Expressions, name: str, pattern: s.Argument, text: s.Argument, span: Span | None
) -> z.Expr:
    """`match(pattern, text)` and its like."""
    whole = checker.infer(text)
    if whole.type == t.BYTES:
        return match_bytes(checker, name, pattern, whole, span)
    found = pattern_value(checker, pattern)
    if name == "match" and isinstance(found, z.Constant):  # what is matched is not asked for
        found = evolve(found, value=_before_a_line_end(found.value))
    return z.Match(MATCHES[name][1], name, found, checker.check(text, t.STRING), span=span)


def match_bytes(
    checker: Expressions, name: str, pattern: s.Argument, whole: z.Expr, span: Span | None
) -> z.Expr:
    """`match(pattern, bytes)`: of a text with a character for each byte, and the pattern is one, too, if it is of bytes."""
    form = checker.infer(pattern)
    if isinstance(form, z.Constant) and isinstance(form.value, bytes):
        form = z.Constant(t.STRING, form.value.decode("latin-1"), span=form.span)
    elif form.type == t.BYTES:
        form = z.Apply(t.STRING, "characters", (form,), span=form.span)
    elif form.type != t.STRING:
        raise checker.mismatch(t.STRING, form.type, form.span)
    check_pattern(checker, form)
    text = z.Apply(t.STRING, "characters", (whole,), span=span)
    found = z.Match(MATCHES[name][1], name, form, text, span=span)
    if name != "matchstrs":
        return found
    wanted = t.List(t.BYTES)
    return conversions.each_item(
        checker, found, lambda each: z.Apply(t.BYTES, "bytes of characters", (each,), span=span), wanted, span
    )


def sawn(checker: Expressions, name: str, args: tuple[s.Argument, ...], span: Span | None) -> z.Expr:
    """`saw(text, pattern, skip pattern, submatch pattern, rest variable)`, `sawn(n, text, ...)`, `sawzall(text, ...)`."""
    given: list[a.Expr] = list(args)
    rounds: z.Expr = z.Constant(t.I64, 1 if name == "saw" else -1)
    if name == "sawn":
        rounds = checker.check(given.pop(0), t.I64)
    if not given or isinstance(given[0], a.Piece):
        wanted = "a number, a text and patterns" if name == "sawn" else "a text and patterns"
        raise checker.error("sawzall-arguments", f"`{name}` takes {wanted}", span)
    text = checker.check(given[0], t.STRING)
    patterns: list[z.Expr] = []
    takes: list[Literal["whole", "skip", "submatch"]] = []
    rests: list[tuple[int, z.Expr]] = []
    for i, arg in enumerate(given[1:], 1):
        match arg:
            case a.Piece("rest", variable):
                if name != "saw" and i + 1 < len(given):
                    raise checker.error("sawzall-arguments", f"`rest` comes last in `{name}`", arg.span)
                place = checker.place(cast("s.Expr", variable))
                if place.type != t.STRING:
                    raise checker.error("sawzall-arguments", "`rest` takes a place for a string", arg.span)
                rests.append((len(patterns), place))
            case a.Piece("skip" | "submatch" as how, pattern):
                takes.append(how)
                patterns.append(pattern_value(checker, pattern))
            case pattern:
                takes.append("whole")
                patterns.append(pattern_value(checker, pattern))
    if not patterns:
        raise checker.error("sawzall-arguments", f"`{name}` takes patterns behind the text", span)
    once = name == "saw"
    found = z.Saw(
        t.List(t.STRING), rounds, text, tuple(patterns), tuple(takes), tuple(rests), once, span=span
    )
    return rests_within(checker, found)


def rests_within(checker: Expressions, saw: z.Saw) -> z.Expr:
    """What is left of a text goes into a variable first, where its place is in a value whose type contains itself."""
    before: list[z.Stmt] = []
    behind: list[z.Stmt] = []
    rests: list[tuple[int, z.Expr]] = []
    for at, place in saw.rests:
        changed = conversions.through(checker, z.Assign(place, z.Constant(t.STRING, ""), span=place.span))
        if isinstance(changed, z.Assign):
            rests.append((at, place))
            continue
        rest = z.Read(t.STRING, checker.temporary("rest", t.STRING), span=place.span)
        before.append(z.Declare(rest.variable, place, needed=True, span=place.span))
        behind.append(conversions.through(checker, z.Assign(place, rest, span=place.span)))
        rests.append((at, rest))
    if not before:
        return saw
    parts = checker.temporary("parts", saw.type)
    found = z.Declare(parts, evolve(saw, rests=tuple(rests)), needed=True, span=saw.span)
    result = z.Result(z.Read(saw.type, parts), span=saw.span)
    return z.StatementValue(saw.type, (*before, found, *behind, result), span=saw.span)


def pattern_value(checker: Expressions, expr: a.Expr) -> z.Expr:
    """A pattern; what is wrong with one that is known is an error."""
    found = checker.check(expr, t.STRING)
    check_pattern(checker, found)
    return found


def check_pattern(checker: Expressions, pattern: z.Expr) -> None:
    """Refuses a pattern that is known and wrong."""
    if isinstance(pattern, z.Constant):
        try:
            compile_pattern(pattern.value)
        except BadPattern as bad:
            raise checker.error("sawzall-pattern", f"not a regular expression: {bad}", pattern.span) from None


def pattern_of(checker: Expressions, type_: a.Expr, rest: list[s.Argument], span: Span | None) -> str:
    """The pattern `regex(int)`, `regex(int, base)` or `regex(float)`."""
    wanted = checker.type_of(type_)
    base = checker.check(rest[0], t.I64) if rest else z.Constant(t.I64, 0)
    if wanted == t.F64 and not rest:
        return r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    bases = (0, *range(2, 37))
    if wanted != t.I64 or not isinstance(base, z.Constant) or base.value not in bases:
        hint = "write `regex(int)`, `regex(float)`, or a base from 2 to 36 as in `regex(int, 16)`"
        raise checker.error("sawzall-arguments", "`regex` makes patterns of numbers", span, hint)
    if base.value == 0:
        return r"[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+)"
    letters = "abcdefghijklmnopqrstuvwxyz"[: max(0, base.value - 10)]
    digits = f"0-{min(base.value, 10) - 1}" + (f"a-{letters[-1]}A-{letters[-1].upper()}" if letters else "")
    return rf"[-+]?(?:0[xX])?[{digits}]+" if base.value == 16 else rf"[-+]?[{digits}]+"
