"""Texts to trees by the tables of a grammar: a contextual lexer and an LALR(1) parser.

lark makes the tables (`river.lang.tables`), and its parser says what a tree is: with the places of its parts, and `None` for
what is left out. This one takes a third of the time. Who reads a first text does not wait for lark either, nor for a pattern
for each state that the text comes to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from river.classes import field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Leaf = TypeVar("Leaf")

END: Final = "$END"
"""The terminal behind the last one of a text."""

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


class Token(str):
    """A word of a text: its terminal, and where it stands."""

    __slots__ = ("end_pos", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int

    def update(self, value: str) -> Token:
        """Another text in its place: what it means, where it stands in quotes."""
        token = Token(value)
        token.type, token.start_pos, token.end_pos = self.type, self.start_pos, self.end_pos
        return token


class Tree(Generic[Leaf]):
    """What a text is by a rule: the rule's name or alias, and its parts: trees, tokens, and None where one is left out.

    `start_pos`, `end_pos`: its characters, None if it has none. `begin`, `end`: these with those around it of rules that it
    stands for, such as parentheses; a tree begins where its first part does with these.
    """

    __slots__ = ("begin", "children", "data", "end", "end_pos", "start_pos")

    def __init__(
        self, data: str, children: list[Any], start_pos: int | None = None, end_pos: int | None = None
    ) -> None:
        """A tree of the characters `start_pos` to `end_pos`."""
        self.data = data
        self.children: list[Tree[Leaf] | Leaf] = children
        self.start_pos = self.begin = start_pos
        self.end_pos = self.end = end_pos


_NODE: Final[type[Tree[Any]]] = Tree


class Unexpected(Exception):  # noqa: N818 - says what there is
    """No text of the grammar has the `length` characters at offset `at`; if there are none, it does not end there."""

    def __init__(self, at: int, length: int) -> None:
        """The characters at an offset."""
        super().__init__(at, length)
        self.at, self.length = at, length


@frozen
class Rule:
    """What is done where parts of a text are something by a rule, `origin`. `parts`: terminals and rules by name.

    `single`: one part alone stands for the tree. `kept`: the parts that stay, by number, whether in place of each stand its
    own parts, and how many before it are left out; None if all stay as they are. `missing`: how many are left out at the end.
    """

    origin: str
    parts: Sequence[str]
    data: str
    single: bool
    kept: Sequence[tuple[int, bool, int]] | None
    missing: int
    renames: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Whether it leaves its only part as it is: `sum: product`."""
        if len(self.parts) == 1 and self.single and self.kept is None:
            object.__setattr__(self, "renames", True)


@frozen
class Terminal:
    """A terminal: its pattern, or its text, in small letters if `folded`: capitals may stand for them.

    `words`: the terminals with a text that a word is, in their order, where it is exactly a word of this one's pattern.
    """

    name: str
    pattern: str
    text: str | None
    folded: bool
    words: Sequence[str]


@frozen(eq=False)
class _Scanner:
    """What a text goes on with where some terminals may stand: one that `match` finds by pattern, else one of `texts`.

    `words`: what words that a pattern matches are as they stand, and in small letters. `texts`: by their first characters.
    """

    match: Callable[[str, int], re.Match[str] | None]
    words: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]
    texts: Mapping[str, Sequence[tuple[str, bool, str]]]


@frozen(slots=False, eq=False)
class Tables:
    """The tables of a grammar. `terminals`: in the order in which they are tried; `ignored`: those that are not told.

    `states`: by number; what is done at a terminal, or behind what a rule has made: the next state, or ~ the rule.
    """

    start: Mapping[str, int]
    end: Mapping[str, int]
    states: Mapping[int, Mapping[str, int]]
    rules: Sequence[Rule]
    terminals: Mapping[str, Terminal]
    ignored: frozenset[str]
    _scanners: dict[int, _Scanner] = field(factory=dict[int, _Scanner], init=False, repr=False)
    _alike: dict[frozenset[str], _Scanner] = field(
        factory=dict[frozenset[str], _Scanner], init=False, repr=False
    )
    _patterns: dict[str, re.Pattern[str]] = field(factory=dict[str, re.Pattern[str]], init=False, repr=False)
    _ranks: dict[tuple[int, int, str], int] = field(
        factory=dict[tuple[int, int, str], int], init=False, repr=False
    )

    def tree(self, text: str, start: str, reserved: frozenset[str] = frozenset()) -> Tree[Token]:
        """The tree of a text, by the rule `start`; `reserved`: words that name nothing. Raises: Unexpected."""
        return self._read(text, start, END, reserved)[1][0]

    def accepted(self, text: str, start: str, reserved: frozenset[str] = frozenset()) -> list[str]:
        """The terminals that may stand behind a text. Raises: Unexpected if no text of the rule begins so."""
        stack, _ = self._read(text, start, None, reserved)
        return [kind for kind in self.states[stack[-1]] if self._takes(stack[:], kind, self.end[start])]

    def _read(
        self, text: str, start: str, last: str | None, reserved: frozenset[str]
    ) -> tuple[list[int], list[Any]]:
        """The states that a text leads to, and their values; with `last`, a terminal that stands behind the text.

        A word that is a terminal with a text in another place is a name where only a name can stand.
        """
        states, rules, ignored, scanners = self.states, self.rules, self.ignored, self._scanners
        ranks = self._ranks
        end, length = self.end[start], len(text)
        stack: list[int] = [self.start[start]]
        values: list[Any] = []
        at, before = 0, -1
        while True:
            scanner = scanners.get(stack[-1]) or self._scanner_of(stack[-1])
            kind, stop = last, at
            while at < length:
                found = scanner.match(text, at)
                if found is None:
                    kind, stop = _text(scanner, text, at)
                    break
                kind, stop = found.lastgroup, found.end()
                if kind not in ignored:
                    words = scanner.words.get(kind or "")
                    if words is not None:
                        word = found.group()
                        other = words[0].get(word) or words[1].get(word.lower())
                        if other is not None and (word in reserved or self._takes(stack[:], other, end)):
                            kind = other
                    break
                at, kind = stop, last
            if at == length:
                if kind is None:
                    return stack, values
                token = None
            elif kind is None:
                raise Unexpected(at, self._longest(text, at))
            else:
                token = Token(text[at:stop])
                token.type, token.start_pos, token.end_pos = kind, at, stop
                if before == at and text[at] in _LETTERS and _glued(text, values, at):
                    raise Unexpected(at, stop - at)
            while True:
                action = states[stack[-1]].get(kind)
                if action is None:
                    raise Unexpected(at, stop - at)
                if action >= 0:
                    stack.append(action)
                    values.append(token)
                    at = before = stop
                    break
                rule = rules[~action]
                if rule.renames:
                    below, top = stack[-2:]
                    stack[-1] = ranks.get((below, top, kind)) or self._rank(below, top, kind)
                else:
                    size = len(rule.parts)
                    parts: list[Any] = []
                    if size:
                        parts = values[-size:]
                        del values[-size:], stack[-size:]
                    values.append(_tree(rule, parts))
                    stack.append(states[stack[-1]][rule.origin])
                if kind == END and stack[-1] == end:
                    return stack, values

    def _rank(self, below: int, top: int, kind: str) -> int:
        """The state for one part that comes to stand for more and more before a terminal: a name is a product, a sum, ...

        Most of what is done with an expression is this; a text of one kind has few ways in which it comes about.
        """
        state, ends = top, self.end.values()
        while (action := self.states[state].get(kind, 0)) < 0 and self.rules[~action].renames:
            state = self.states[below][self.rules[~action].origin]
            if state in ends:
                break
        self._ranks[below, top, kind] = state
        return state

    def _takes(self, stack: list[int], kind: str, end: int) -> bool:
        """Whether a terminal may come where the states of `stack` have led to."""
        while (action := self.states[stack[-1]].get(kind)) is not None:
            if action >= 0:
                return kind == END or kind in self.terminals
            rule = self.rules[~action]
            del stack[len(stack) - len(rule.parts) :]
            stack.append(self.states[stack[-1]][rule.origin])
            if kind == END and stack[-1] == end:
                return True
        return False

    def _longest(self, text: str, at: int) -> int:
        """How many characters a terminal has that could stand there in another place; 1 if there is none."""
        scanner = self._scanner(frozenset(self.terminals))
        found = scanner.match(text, at)
        return max(1, (_text(scanner, text, at)[1] if found is None else found.end()) - at)

    def _scanner_of(self, state: int) -> _Scanner:
        """What a text goes on with in a state."""
        allowed = self.ignored.union(name for name in self.states[state] if name in self.terminals)
        found = self._scanners[state] = self._scanner(allowed)
        return found

    def _scanner(self, allowed: frozenset[str]) -> _Scanner:
        """What a text goes on with where these terminals may stand."""
        if allowed in self._alike:
            return self._alike[allowed]
        every = [terminal for name, terminal in self.terminals.items() if name in allowed]
        first = max((i for i, terminal in enumerate(every, 1) if terminal.text is None), default=0)
        pattern = "|".join(f"(?P<{each.name}>{each.pattern})" for each in every[:first]) or "(?!)"
        if pattern not in self._patterns:  # few differ: it is the texts that are others in each state
            self._patterns[pattern] = re.compile(pattern)
        words: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        for each in every[:first]:
            exact: dict[str, str] = {}
            folded: dict[str, str] = {}
            for word in (self.terminals[name] for name in each.words if name in allowed):
                for known in (exact, folded) if word.folded else (exact,):
                    known.setdefault(word.text or "", word.name)
            if exact:
                words[each.name] = exact, folded
        texts: dict[str, list[tuple[str, bool, str]]] = {}
        for each in every[first:]:
            text = each.text or ""
            for begin in {text[0], text[0].upper()} if each.folded else text[0]:
                texts.setdefault(begin, []).append((text, each.folded, each.name))
        made = self._alike[allowed] = _Scanner(self._patterns[pattern].match, words, texts)
        return made


def _text(scanner: _Scanner, text: str, at: int) -> tuple[str | None, int]:
    """The terminal with a text that stands there, and where it ends; None if there is none."""
    for each, folded, kind in scanner.texts.get(text[at], ()):
        stop = at + len(each)
        if text.startswith(each, at) or (folded and text[at:stop].lower() == each):
            return kind, stop
    return None, at


def _glued(text: str, values: list[Any], at: int) -> bool:
    """Whether the last word goes on at an offset: `orx` is not `or x`, also where no name can stand."""
    word = _WORD.match(text, values[-1].start_pos)
    return word is not None and word.end() > at


def _tree(rule: Rule, parts: list[Any]) -> Any:
    """What parts of a text are by a rule."""
    children = parts
    if rule.kept is not None:
        children: list[Any] = []
        for number, inside, missing in rule.kept:
            if missing:
                children += [None] * missing
            if not inside:
                children.append(parts[number])
            elif children:
                children += parts[number].children
            else:  # nobody else has the list: what repeats grows in place
                children = parts[number].children
        if rule.missing:
            children += [None] * rule.missing
    made: Any = None
    if rule.single and len(children) == 1:
        made = children[0]
        if made.__class__ is not Tree:
            return made
    else:
        made = _NODE(rule.data, children)
    for part in parts:
        if part.__class__ is Token:
            begin = part.start_pos
            break
        if part is not None and part.begin is not None:
            begin = part.begin
            break
    else:
        return made
    for part in reversed(parts):
        if part.__class__ is Token:
            end = part.end_pos
            break
        if part is not None and part.end is not None:
            end = part.end
            break
    else:
        raise AssertionError("a part has a beginning and no end")
    made.begin, made.end = begin, end
    if made.start_pos is None:
        made.start_pos, made.end_pos = begin, end
    return made
