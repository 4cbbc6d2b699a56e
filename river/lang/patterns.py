r"""Regular expressions in RE2's syntax: text to tree, and the value of type regex.

Matching is leftmost-first, like RE2 and Perl, and linear in the text (`river.lang.automata`). `\d \s \w \b` and `(?i)`
are ASCII; `\B` never holds inside a code point. `\p{Lu}` is a general category of Unicode, `\p{Greek}` a script, and
there is `\p{Any}`, which is also `\C`. A possessive quantifier stands where no match depends on giving back what it took,
or where the text says what may not follow. There are no look-around, back references or nested quantifiers (il.md P6).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NoReturn, assert_never

from river.classes import field, frozen
from river.lang.automata.machine import Machine
from river.lang.automata.program import TooLarge, program
from river.lang.automata.tree import (
    LAST_CODE_POINT,
    Assertion,
    Chars,
    Choice,
    Group,
    Pattern,
    Ranges,
    Repeat,
    Sequence,
    nullable,
)
from river.source import packaged

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_REPEATS: Final = 1000  # RE2's bound on counted repetition, nested counts multiplied

DEEPEST_GROUP: Final = 100

_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_LETTER: Final[Ranges] = ((65, 90), (97, 122))
_PUNCTUATION: Final[Ranges] = ((33, 47), (58, 64), (91, 96), (123, 126))
_PERL: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": (*_DIGIT, *_LETTER), "alpha": _LETTER, "ascii": ((0, 127),), "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)), "digit": _DIGIT, "graph": ((33, 126),), "lower": ((97, 122),),
    "print": ((32, 126),), "punct": _PUNCTUATION, "space": ((9, 13), (32, 32)), "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_CONTROL: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ASSERTIONS: Final = {"A": "text-start", "z": "text-end", "b": "word", "B": "not-word"}


class BadPattern(Exception):  # noqa: N818 - it names what the text is
    """The text is not a pattern; the argument says why."""


@frozen
class Regex:
    """A compiled pattern: a value of type regex."""

    pattern: str
    tree: Pattern = field(eq=False, repr=False)
    groups: int = field(eq=False)
    machine: Machine = field(eq=False, repr=False)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Regex:
    """The compiled form of `pattern`.

    Raises: BadPattern.
    """
    parser = _Parser(pattern)
    tree = parser.parse()
    try:
        machine = Machine(program(tree, parser.groups))
    except TooLarge:
        raise BadPattern("the pattern is too large") from None
    return Regex(pattern, tree, parser.groups, machine)


def parse(pattern: str) -> Pattern:
    """The tree of `pattern`.

    Raises: BadPattern.
    """
    return _Parser(pattern).parse()


def _union(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in _union(ranges):
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST_CODE_POINT:
        found.append((start, LAST_CODE_POINT))
    return tuple(found)


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    """The ranges without what is in others."""
    return _others(_union((*_others(ranges), *others)))


def _first(tree: Pattern) -> Ranges:
    """The characters with which a match may begin."""
    match tree:
        case Chars(ranges):
            return ranges
        case Assertion(kind):
            return () if kind in ("text-end", "line-end") else ((0, LAST_CODE_POINT),)
        case Sequence(items):
            found: Ranges = ()
            for item in items:
                found = _union((*found, *_first(item)))
                if not nullable(item):
                    break
            return found
        case Choice(items):
            return _union(tuple(part for item in items for part in _first(item)))
        case Repeat(item) | Group(_, item):
            return _first(item)
        case _:
            assert_never(tree)


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """The code points of a general category of Unicode, of all of its letter, or of a script; none if there is none."""
    if name == "Any":
        return ((0, LAST_CODE_POINT),)
    if len(name) > 2:
        return _scripts().get(name, ())
    found: list[tuple[int, int]] = []
    for category, first, last in _categories():
        if category.startswith(name):
            if found and found[-1][1] == first - 1:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
    return tuple(found)


@cache
def _categories() -> tuple[tuple[str, int, int], ...]:
    """The general category of each code point, as runs of equal ones: without a step of Python for each of a million."""
    from itertools import groupby
    from unicodedata import category

    found: list[tuple[str, int, int]] = []
    first = 0
    for name, run in groupby(map(category, map(chr, range(LAST_CODE_POINT + 1)))):
        length = len(list(run))
        found.append((name, first, first + length - 1))
        first += length
    return tuple(found)


@cache
def _scripts() -> Mapping[str, Ranges]:
    """The code points of the scripts of Unicode, which Python has no table of."""
    found: dict[str, Ranges] = {}
    for line in packaged("river.lang", "scripts.txt").text.splitlines()[1:]:
        name, *parts = line.split(" ")
        ends = (part.partition("-") for part in parts)
        found[name] = tuple((int(low, 16), int(high or low, 16)) for low, _, high in ends)
    return found


def _folded(ranges: Ranges) -> Ranges:
    """The ranges with the other case of each ASCII letter in them."""
    found = list(ranges)
    for low, high in ranges:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            a, b = max(low, first), min(high, last)
            if a <= b:
                found.append((a + shift, b + shift))
    return _union(tuple(found))


class _Parser:
    """Recursive descent over RE2's grammar; `flags` are those in force."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.names: set[str] = set()
        self.flags: frozenset[str] = frozenset()
        self.depth = 0
        self.ending: list[Repeat] = []  # possessive, and what follows is not known yet

    def parse(self) -> Pattern:
        tree = self.choice()
        if self.ending:
            self.settle(tree, ())
        if self.at < len(self.text):
            self.fail("unbalanced `)`")
        if _repeats(tree) > MOST_REPEATS:
            self.fail(f"more than {MOST_REPEATS} repetitions")
        return tree

    def fail(self, why: str) -> NoReturn:
        raise BadPattern(f"{why} at position {self.at}")

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def next(self) -> str:
        if self.at >= len(self.text):
            self.fail("unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            self.fail(f"missing `{end}`")
        found = self.text[self.at : stop]
        self.at = stop + len(end)
        return found

    def choice(self) -> Pattern:
        items = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            items.append(self.sequence())
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def sequence(self) -> Pattern:
        items: list[Pattern] = []
        keeping: list[int] = []  # what is possessive
        while self.peek() not in ("", "|", ")"):
            atom = self.quoted(items) if self.peek(2) == "\\Q" else self.atom()
            if atom is None:
                continue
            bounds = self.quantifier()
            if bounds is not None:
                lazy = self.peek() == "?"
                possessive = self.peek() == "+"
                self.at += lazy or possessive
                if self.peek() in ("*", "+", "?") or self.quantifier() is not None:
                    self.fail("nested quantifier")
                atom = Repeat(atom, *bounds, greedy=possessive or lazy == ("U" in self.flags))
                if possessive:
                    keeping.append(len(items))
            items.append(atom)
        for i in reversed(keeping):
            items[i + 1 :] = self.behind(items[i], items[i + 1 :])
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def behind(self, taken: Pattern, rest: list[Pattern]) -> list[Pattern]:
        """What comes behind a possessive repetition of characters: it begins with none that this would have taken."""
        if not isinstance(taken, Repeat) or not isinstance(taken.item, Chars):
            self.fail("a possessive quantifier is for one character")
        own = taken.item.ranges
        for i, item in enumerate(rest):
            match item:
                case Assertion("text-end" | "line-end"):
                    return rest
                case Chars(ranges) if taken.high is None:
                    return [*rest[:i], Chars(_without(ranges, own)), *rest[i + 1 :]]
                case Repeat(Chars(ranges) as first, low, high, greedy) if low > 0 and taken.high is None:
                    left = Repeat(first, low - 1, None if high is None else high - 1, greedy)
                    return [*rest[:i], Chars(_without(ranges, own)), left, *rest[i + 1 :]]
                case Chars(ranges) | Repeat(Chars(ranges)) if _without(ranges, own) == ranges:
                    if isinstance(item, Chars) or item.low > 0:
                        return rest
                case _:
                    break
        self.ending.append(taken)
        return rest

    def settle(self, tree: Pattern, follow: Ranges) -> None:
        """Refuses the possessive quantifiers `ending` behind which may stand what they take, among `follow`."""
        match tree:
            case Sequence(items) | Choice(items):
                for item in reversed(items):
                    self.settle(item, follow)
                    if isinstance(tree, Sequence):
                        follow = _union((*_first(item), *(follow if nullable(item) else ())))
            case Repeat(item):
                if any(tree is each for each in self.ending) and _without(_first(item), follow) != _first(
                    item
                ):
                    self.fail("a possessive quantifier in front of what it takes")
                self.settle(item, _union((*follow, *_first(item))))
            case Group(_, item):
                self.settle(item, follow)
            case _:
                pass

    def quoted(self, before: list[Pattern]) -> Pattern | None:
        r"""The last literal of `\Q...\E`; those before it join the sequence."""
        self.at += 2
        text, _, _ = self.text[self.at :].partition("\\E")
        self.at = min(len(self.text), self.at + len(text) + 2)
        literals = [self.literal(((ord(c), ord(c)),)) for c in text]
        before += literals[:-1]
        return literals[-1] if literals else None

    def quantifier(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.peek())
        if simple is not None:
            self.at += 1
            return simple
        found = re.compile(r"\{([0-9]{1,6})(?:(,)([0-9]{1,6})?)?\}").match(self.text, self.at)
        if found is None:
            return None  # anything else in braces is literal, as in RE2
        low = int(found[1])
        high = low if found[2] is None else None if found[3] is None else int(found[3])
        if low > MOST_REPEATS or (high is not None and (high > MOST_REPEATS or high < low)):
            self.fail("bad repetition count")
        self.at = found.end()
        return low, high

    def atom(self) -> Pattern | None:
        c = self.next()
        if c in "*+?":
            self.fail("nothing to repeat")
        match c:
            case "(":
                return self.group()
            case "[":
                return self.klass()
            case ".":
                return Chars(((0, LAST_CODE_POINT),) if "s" in self.flags else _others(((10, 10),)))
            case "^":
                return Assertion("line-start" if "m" in self.flags else "text-start")
            case "$":
                return Assertion("line-end" if "m" in self.flags else "text-end")
            case "\\":
                escaped = self.escape()
                return escaped if isinstance(escaped, Assertion) else self.literal(escaped.ranges)
            case _:
                return self.literal(((ord(c), ord(c)),))

    def literal(self, ranges: Ranges) -> Chars:
        return Chars(_folded(ranges) if "i" in self.flags else _union(ranges))

    def escape(self) -> Chars | Assertion:
        c = self.next()
        if c in _ASSERTIONS:
            return Assertion(_ASSERTIONS[c])
        if c.lower() in _PERL:
            ranges = _PERL[c.lower()]
            return Chars(_others(ranges) if c.isupper() else ranges)
        if c == "C":
            return Chars(((0, LAST_CODE_POINT),))
        if c in "pP":
            name = self.until("}") if self.peek() == "{" and self.next() else self.next()
            ranges = _category(name.removeprefix("^"))
            if not ranges:
                self.fail(f"unknown class `\\p{{{name}}}`")
            return Chars(_others(ranges) if (c == "P") != name.startswith("^") else ranges)
        if c in _CONTROL:
            return Chars(((_CONTROL[c], _CONTROL[c]),))
        if c == "x":
            digits = self.until("}") if self.peek() == "{" and self.next() else self.next() + self.next()
            if re.fullmatch("[0-9A-Fa-f]{1,8}", digits) is None or int(digits, 16) > LAST_CODE_POINT:
                self.fail("bad code point")
            return Chars(((int(digits, 16), int(digits, 16)),))
        if c == "0":
            octal = re.compile("[0-7]{0,2}").match(self.text, self.at)
            digits = "" if octal is None else octal[0]
            self.at += len(digits)
            code = int("0" + digits, 8)
            return Chars(((code, code),))
        if c.isalnum():
            self.fail(f"unsupported escape `\\{c}`")
        return Chars(((ord(c), ord(c)),))

    def klass(self) -> Chars:
        negative = self.peek() == "^"
        self.at += negative
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.peek() != "]":
            first = False
            if self.peek(2) == "[:":
                self.at += 2
                name = self.until(":]")
                if name.removeprefix("^") not in _POSIX:
                    self.fail(f"unknown class `[:{name}:]`")
                chosen = _POSIX[name.removeprefix("^")]
                ranges += _others(chosen) if name.startswith("^") else chosen
                continue
            low = self.member()
            if isinstance(low, tuple):
                ranges += low
                continue
            high = low
            if self.peek() == "-" and self.peek(2) not in ("-", "-]"):
                self.at += 1
                last = self.member()
                if isinstance(last, tuple) or last < low:
                    self.fail("bad range")
                high = last
            ranges.append((low, high))
        self.at += 1
        chosen = _folded(tuple(ranges)) if "i" in self.flags else _union(tuple(ranges))
        return Chars(_others(chosen) if negative else chosen)

    def member(self) -> int | Ranges:
        r"""One code point of a class, or the ranges of an escape such as `\d`."""
        c = self.next()
        if c != "\\":
            return ord(c)
        letter = self.peek()
        if letter == "C":
            self.fail("`\\C` inside a class")
        escaped = self.escape()
        if isinstance(escaped, Assertion):
            self.fail("an assertion inside a class")
        return escaped.ranges if letter.lower() in (*_PERL, "p") else escaped.ranges[0][0]

    def group(self) -> Pattern | None:
        outer = self.flags
        number = None
        self.depth += 1
        if self.depth > DEEPEST_GROUP:
            self.fail("groups nested too deeply")
        if self.peek() != "?":
            number = self.open()
        else:
            self.at += 1
            if self.peek(2) == "P<" or (self.peek() == "<" and self.peek(2) not in ("<=", "<!")):
                self.until("<")
                name = self.until(">")
                if re.fullmatch("[A-Za-z0-9_]+", name) is None or name in self.names:
                    self.fail(f"bad group name `{name}`")
                self.names.add(name)
                number = self.open()
            elif self.switch():
                self.depth -= 1
                return None  # `(?i)`: until the end of the enclosing group
        item = self.choice()
        if self.peek() != ")":
            self.fail("missing `)`")
        self.at += 1
        self.depth -= 1
        self.flags = outer
        return item if number is None else Group(number, item)

    def open(self) -> int:
        self.groups += 1
        return self.groups

    def switch(self) -> bool:
        """Reads flags; whether the group ended right after them."""
        found = re.compile("([imsU]*)(-[imsU]+)?([:)])").match(self.text, self.at)
        if found is None or found[0] == ")":
            self.fail("unsupported group (look-around and other extensions are not regular)")
        self.at = found.end()
        self.flags = (self.flags | set(found[1])) - set(found[2] or "")
        return found[3] == ")"


def _repeats(tree: Pattern) -> int:
    """The greatest product of nested counts."""
    match tree:
        case Chars() | Assertion():
            return 1
        case Sequence(items) | Choice(items):
            return max((_repeats(item) for item in items), default=1)
        case Repeat(item, low, high, _):
            return max(low, high or 1, 1) * _repeats(item)
        case Group(_, item):
            return _repeats(item)
        case _:
            assert_never(tree)
