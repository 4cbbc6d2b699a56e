"""The states of an LALR(1) parser, made of the rules of a grammar (DeRemer and Pennello, TOPLAS 4(4), 1982).

lark makes them, too, of sets of objects, and takes seconds for a language of our size; here symbols, items and states are
numbers, and sets of terminals are the bits of a number. Where a terminal could be shifted or end a rule, it is shifted, and of
two rules that it could end the one of the greater priority is taken, as lark does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.lang.lalr import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Ambiguous(Exception):  # noqa: N818 - says what the grammar is
    """Two rules of the same priority may end at the same terminal, or (`strict`) one may end at it, or go on with it."""


@frozen
class Production:
    """A rule: what it makes, of what, and how much it is preferred to others."""

    origin: str
    parts: tuple[str, ...]
    priority: int = 0


@frozen
class States:
    """By number what is done at a terminal, or behind what a rule has made: the next state, or ~ the number of the rule.

    `start` and `end`: by the rule that a whole text is of, the first state, and the one behind such a text.
    """

    states: list[dict[str, int]]
    start: dict[str, int]
    end: dict[str, int]


def tabulate(rules: Sequence[Production], starts: Iterable[str], *, strict: bool = False) -> States:
    """The states of a grammar. Raises: Ambiguous; with `strict`, also where a terminal could be shifted or end a rule."""
    own = tuple(starts)
    made = _Maker([*rules, *(Production(f"$root_{name}", (name,)) for name in own)])
    first = {name: made.begin(len(rules) + i) for i, name in enumerate(own)}
    made.states()
    actions = made.actions(first, strict=strict)
    end = {name: made.next[state][made.number[name]] for name, state in first.items()}
    return States(actions, first, end)


_ACCEPT: Final = 1
"""The bit of the end of a text."""


class _Maker:
    """States under construction. An item, a rule of which some parts are read, is its number; the next number is one part on.

    Symbols are numbers: those that rules make come first. `kernels`: by state, the items that it came by. `next`: by state and
    symbol, the state behind it.
    """

    def __init__(self, rules: list[Production]) -> None:
        """No states yet."""
        self.rules = rules
        self.number: dict[str, int] = {}
        for rule in rules:
            self.number.setdefault(rule.origin, len(self.number))
        self.made = len(self.number)
        for rule in rules:
            for part in rule.parts:
                self.number.setdefault(part, len(self.number))
        self.names = list(self.number)
        self.of: list[list[int]] = [[] for _ in range(self.made)]  # the rules that make a symbol
        self.first: list[int] = []  # by rule its item of which nothing is read
        self.symbols: list[
            int
        ] = []  # by item the symbol that it waits for; ~ the rule where it is read to its end
        for i, rule in enumerate(rules):
            self.of[self.number[rule.origin]].append(i)
            self.first.append(len(self.symbols))
            self.symbols += [*(self.number[part] for part in rule.parts), ~i]
        self.inside = [self._inside(symbol) for symbol in range(self.made)]
        self.empty = self._empty()
        self.kernels: list[tuple[int, ...]] = []
        self.next: list[dict[int, int]] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._sets: dict[int, tuple[str, ...]] = {}

    def _inside(self, symbol: int) -> frozenset[int]:
        """The symbols that what begins with one that a rule makes may begin with, as far as rules make them."""
        found, left = {symbol}, [symbol]
        while left:
            for rule in self.of[left.pop()]:
                begin = self.symbols[self.first[rule]]
                if 0 <= begin < self.made and begin not in found:
                    found.add(begin)
                    left.append(begin)
        return frozenset(found)

    def _empty(self) -> set[int]:
        """The symbols that may be nothing."""
        found = set[int]()
        while True:
            more = {
                self.number[rule.origin] for rule in self.rules
                if all(self.number[part] in found for part in rule.parts)
            }  # fmt: skip
            if more <= found:
                return found
            found |= more

    # ------------------------------------------------------------------------------------------------ LR(0)

    def begin(self, rule: int) -> int:
        """The state in which a text of a rule begins."""
        return self._state((self.first[rule],))

    def _state(self, kernel: tuple[int, ...]) -> int:
        found = self._known.get(kernel)
        if found is None:
            found = self._known[kernel] = len(self.kernels)
            self.kernels.append(kernel)
        return found

    def states(self) -> None:
        """All states that can be reached."""
        symbols, first = self.symbols, self.first
        begun: dict[frozenset[int], list[tuple[int, list[int]]]] = {}
        while len(self.next) < len(self.kernels):
            kernel = self.kernels[len(self.next)]
            inside = self.closure(kernel)
            if inside not in begun:  # what states do that wait for the same symbols
                rules = sorted({rule for symbol in inside for rule in self.of[symbol]})
                begun[inside] = list(self._moved([first[rule] for rule in rules]).items())
            moves = {symbol: items[:] for symbol, items in begun[inside]}
            for item in kernel:
                if symbols[item] >= 0:
                    moves.setdefault(symbols[item], []).append(item + 1)
            self.next.append(
                {symbol: self._state(tuple(sorted(set(items)))) for symbol, items in moves.items()}
            )

    def closure(self, kernel: tuple[int, ...]) -> frozenset[int]:
        """The symbols that rules make and that may come next where these items wait."""
        waiting = {self.symbols[item] for item in kernel}
        every = [self.inside[symbol] for symbol in waiting if 0 <= symbol < self.made]
        return every[0] if len(every) == 1 else frozenset[int]().union(*every)

    def _moved(self, items: list[int]) -> dict[int, list[int]]:
        moves: dict[int, list[int]] = {}
        for item in items:
            symbol = self.symbols[item]
            if symbol >= 0:
                moves.setdefault(symbol, []).append(item + 1)
        return moves

    # -------------------------------------------------------------------------------------------- lookaheads

    def actions(self, first: Mapping[str, int], *, strict: bool) -> list[dict[str, int]]:
        """What each state does, by the names of symbols."""
        found = [{self.names[symbol]: to for symbol, to in moves.items()} for moves in self.next]
        ends = self._ends(first)
        for state, rules in enumerate(ends):
            here = found[state]
            if len(rules) > 1:
                rules = self._preferred(rules)
            for rule, bits in rules.items():
                for name in self._names(bits):
                    if here.setdefault(name, ~rule) != ~rule and strict:
                        raise Ambiguous(f"{_text(self.rules[rule])} may end at {name}, or go on with it")
        return found

    def _names(self, bits: int) -> tuple[str, ...]:
        """The terminals of a set."""
        found = self._sets.get(bits)
        if found is None:
            names = [END] if bits & _ACCEPT else []
            names += [name for i, name in enumerate(self.names[self.made :], 1) if bits >> i & 1]
            found = self._sets[bits] = tuple(names)
        return found

    def _preferred(self, rules: dict[int, int]) -> dict[int, int]:
        """The rules that end in a state, and the terminals at which they do; each terminal ends one."""
        found: dict[int, int] = {}
        taken = 0
        for rule in sorted(rules, key=lambda rule: -self.rules[rule].priority):
            if both := rules[rule] & taken:
                for other, bits in found.items():
                    if bits & both and self.rules[other].priority == self.rules[rule].priority:
                        texts = " and ".join(sorted(map(_text, (self.rules[rule], self.rules[other]))))
                        raise Ambiguous(f"{texts} may both end at {self._names(bits & both)[0]}")
            found[rule] = rules[rule] & ~taken
            taken |= rules[rule]
        return found

    def _parted(self, rule: int) -> tuple[list[int], list[int]]:
        """The parts of a rule, those apart that may be the last ones."""
        parts = self.symbols[self.first[rule] : self.symbols.index(~rule, self.first[rule])]
        last = max((i for i, part in enumerate(parts) if part not in self.empty), default=0)
        return parts[:last], parts[last:]

    def _ends(self, first: Mapping[str, int]) -> list[dict[int, int]]:
        """By state the rules that end there, and the terminals that may stand behind them."""
        ways = [
            (state, symbol) for state, moves in enumerate(self.next) for symbol in moves if symbol < self.made
        ]
        number = {way: i for i, way in enumerate(ways)}
        made, terminal = self.made, 1 - self.made
        seen: list[int] = []  # by way, the terminals that may come directly behind it
        reads: list[list[int]] = []
        for state, symbol in ways:
            to, bits, more = self.next[state][symbol], 0, list[int]()
            for then in self.next[to]:
                if then >= made:
                    bits |= 1 << then + terminal
                elif then in self.empty:
                    more.append(number[to, then])
            seen.append(bits)
            reads.append(more)
        for name, state in first.items():
            seen[number[state, self.number[name]]] |= _ACCEPT
        _closed(seen, reads)
        includes: list[list[int]] = [[] for _ in ways]
        behind: list[
            tuple[int, int, int]
        ] = []  # a state, the rule that ends there, and the way that it is then
        moves, parted = self.next, [self._parted(rule) for rule in range(len(self.rules))]
        for way, (state, symbol) in enumerate(ways):
            for rule in self.of[symbol]:
                at = state
                head, tail = parted[rule]
                for part in head:
                    at = moves[at][part]
                for part in tail:
                    if part < made:
                        includes[number[at, part]].append(way)
                    at = moves[at][part]
                behind.append((at, rule, way))
        _closed(seen, includes)
        ends: list[dict[int, int]] = [{} for _ in self.next]
        for state, rule, way in behind:
            ends[state][rule] = ends[state].get(rule, 0) | seen[way]
        return ends


def _text(rule: Production) -> str:
    return f"`{rule.origin}: {' '.join(rule.parts)}`"


def _closed(sets: list[int], related: list[list[int]]) -> None:
    """Puts into each set those of all that it is related to, directly or not: what is related in a circle has the same set."""
    number, low = [0] * len(sets), [0] * len(sets)
    done, count = len(sets) + 1, 0
    stack: list[int] = []
    for root in range(len(sets)):
        if number[root]:
            continue
        ways: list[tuple[int, Iterator[int]]] = []
        count += 1
        number[root] = low[root] = count
        stack.append(root)
        ways.append((root, iter(related[root])))
        while ways:
            at, others = ways[-1]
            for other in others:
                if not number[other]:
                    count += 1
                    number[other] = low[other] = count
                    stack.append(other)
                    ways.append((other, iter(related[other])))
                    break
                low[at] = min(low[at], low[other])
                sets[at] |= sets[other]
            else:
                ways.pop()
                if low[at] == number[at]:
                    while True:
                        one = stack.pop()
                        sets[one], low[one] = sets[at], done
                        if one == at:
                            break
                if ways:
                    before = ways[-1][0]
                    low[before] = min(low[before], low[at])
                    sets[before] |= sets[at]
