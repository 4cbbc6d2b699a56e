"""A program as one table of 32-bit words, for machine code: tagged DFAs if they are small, and the program itself.

The table: {slots, test DFA, capturing DFA, program, its length, its start, registers, context of the program, words of the
table}; the parts by word, 0 if absent. A DFA: {words of a state, symbol of the end, 8 first states, where the moves of
transitions, the saves of matches, the lists of moves and the ranges begin}, 256 bytes of symbols, then the states: by
symbol the next state with flags; the transition back to the state itself that most bytes take (-1: none); where the
ranges of the bytes that leave it stand (0: there are none). A first state is found by its context: 1 after a word byte, 2
after a newline, 3 at the start, and 4 more if an empty match does not count.
Ranges are four times {least byte, how many}, then a word: 0 if these bytes leave the state, -1 if all others do. The same
once more for the byte after it: if that is none of these, two transitions lead back to the state, and nothing happens.

A capturing DFA moves registers {-1, the position, the slots of the match, a spare one, the slots of each thread}. A match
is saved when it is seen, or later: if no transition before the next match writes what it would read, the place is
only noted (flag NOTED).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from river.lang.automata.machine import MOST_STATES, Step, Threads, step
from river.lang.automata.program import (
    AFTER_LINE,
    AFTER_WORD,
    AT_START,
    BYTE,
    END,
    HOLDS,
    NOT_EMPTY,
    SAVE,
    SPLIT,
    Program,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HEAD: Final = 9  # words of a table before its parts
DFA_HEAD: Final = 14
STATES: Final = DFA_HEAD + 64  # where the states of a DFA begin

MOVES: Final = 1 << 30  # a transition has moves, or (test) there is a match
NOTED: Final = 1 << 29
STAYS: Final = 1 << 28  # the next state is another one, which few bytes leave, or in which each byte is noted
DEAD: Final = 1 << 27  # there is no next state
FLAGS: Final = MOVES | NOTED | STAYS | DEAD
RARELY: Final = 0.12  # how likely a byte of common text leaves such a state at most
MOST_RANGES: Final = 4
_ANY: Final = (0, 0, -1)
MATCHED: Final = 1 << 30  # of the moves of a transition: they save a match

UNSET, POSITION, RESULT = 0, 1, 2  # registers

MOST_WORK: Final = 1_500_000  # threads visited while a DFA is made: about half a second
_CONTEXTS: Final = (0, AFTER_WORD, AFTER_LINE, AT_START)

State = tuple[Threads, int]


@define
class _Dfa:
    """All states, each with its steps by symbol (None: nothing is reached, nothing matched)."""

    firsts: list[int]
    rows: list[list[tuple[int, Step] | None]]


def table(program: Program, most: int = MOST_STATES, work: int = MOST_WORK) -> array[int]:
    """The table of a program; a DFA of more than `most` states, or one that takes more `work`, is left out."""
    test, captures = (_explored(program, most, work, captures=captures) for captures in (False, True))
    parts: list[array[int]] = []
    at = [0, 0, 0]
    registers = 0
    if test is not None:
        parts.append(_test_words(program, test))
    if captures is not None:
        words, registers = _capture_words(program, captures)
        parts.append(words)
    parts.append(array("i", [word for one in program.instructions for word in one]))
    here = HEAD
    present = (test is not None, captures is not None, True)
    following = iter(parts)
    for i, there in enumerate(present):
        if there:
            at[i] = here
            here += len(next(following))
    registers = max(registers, RESULT + program.slots)
    head = [program.slots, *at, len(program.instructions), program.start, registers, program.context, here]
    found = array("i", head)
    for part in parts:
        found += part
    return found


def _explored(program: Program, most: int, work: int, *, captures: bool) -> _Dfa | None:
    """The whole automaton, or None if it is too large."""
    numbers: dict[State, int] = {}
    states: list[State] = []

    def number(state: State) -> int:
        if state not in numbers:
            numbers[state] = len(states) + 1
            states.append(state)
        return numbers[state]

    places = [one | more for more in (0, NOT_EMPTY) for one in _CONTEXTS] if captures else [AT_START]
    firsts = [number(((program.start,), place & program.context)) for place in places]
    rows: list[list[tuple[int, Step] | None]] = []
    while len(rows) < len(states):
        threads, context = states[len(rows)]
        row: list[tuple[int, Step] | None] = []
        for byte in program.bytes:
            taken = step(program, threads, context, byte)
            work -= taken.work
            following = taken.threads
            if not captures:
                following = () if taken.match else tuple(sorted(following))
            to = number((following, program.after(byte))) if following and byte != END else 0
            row.append((to, taken) if to or taken.match else None)
        rows.append(row)
        if len(states) > most or work < 0:
            return None
    return _Dfa(firsts * (8 // len(firsts)), rows)


def _shares() -> list[float]:
    """By byte, how much of common text it is: English letters, some digits and marks, hardly anything else."""
    found = [0.0002] * 256
    letters = "etaoinsrhdlucmfywgpbvkxqjz"
    percent = (
        10,
        7.5,
        6.5,
        6.2,
        5.7,
        5.7,
        5.3,
        5,
        4,
        3.5,
        3.3,
        2.3,
        2.3,
        2,
        1.8,
        1.7,
        1.6,
        1.5,
        1.5,
        1.3,
        0.8,
        0.6,
        *[0.2] * 4,
    )
    for letter, share in zip(letters, percent, strict=True):
        found[ord(letter)] = share / 100
        found[ord(letter.upper())] = share / 1000
    for digit in b"0123456789":
        found[digit] = 0.008
    for mark in b"!\"#$%&'()*+-:;<=>?@[\\]^_`{|}~":
        found[mark] = 0.002
    found[ord(" ")] = 0.15
    for mark in b".,/\n":
        found[mark] = 0.01
    return found


_SHARES: Final = _shares()


@define(eq=False)
class _Alphabet:
    """The symbols of a program that are bytes: how much of common text each is, and what sets of them are as ranges."""

    program: Program
    shares: list[float] = field(init=False)
    _ranges: dict[frozenset[int], tuple[int, ...] | None] = field(
        factory=dict[frozenset[int], "tuple[int, ...] | None"]
    )

    def __attrs_post_init__(self) -> None:
        self.shares = [0.0] * self.program.end
        for byte, symbol in enumerate(self.program.symbols):
            self.shares[symbol] += _SHARES[byte]

    def stay(self, row: list[int], own: int) -> tuple[int, frozenset[int]]:
        """The transition from a state to itself, with or without a note, that most bytes take (-1: none); the others."""
        best, least, left = -1, 1.0, frozenset[int]()
        for wanted in (own, own | NOTED):
            others = frozenset(symbol for symbol in range(self.program.end) if row[symbol] != wanted)
            share = sum(self.shares[symbol] for symbol in others)
            if len(others) < self.program.end and (best < 0 or share < least):
                best, least, left = wanted, share, others
        return best, left

    def share(self, symbols: frozenset[int]) -> float:
        """How much of common text they are together."""
        return sum(self.shares[symbol] for symbol in symbols)

    def ranges(self, symbols: frozenset[int]) -> tuple[int, ...] | None:
        """They as three words, if they or all others are few ranges of bytes."""
        if symbols not in self._ranges:
            self._ranges[symbols] = self._found(symbols)
        return self._ranges[symbols]

    def _found(self, symbols: frozenset[int]) -> tuple[int, ...] | None:
        inside = [symbol in symbols for symbol in self.program.symbols]
        edges = [byte for byte in range(1, 256) if inside[byte] != inside[byte - 1]]
        pieces = [*zip([0, *edges], [*edges, 256], strict=True)]
        for wanted, flip in ((True, 0), (False, -1)):
            found = [(low, high - low) for low, high in pieces if inside[low] == wanted]
            if len(found) <= MOST_RANGES and all(count < 256 for _, count in found):
                pairs = [*found, *[(0, 0)] * (MOST_RANGES - len(found))]
                return (*array("i", bytes(number for pair in pairs for number in pair)), flip)
        return None

    def following(
        self, transitions: list[list[int]], place: int, leaving: frozenset[int]
    ) -> tuple[int, ...] | None:
        """Which bytes after one that leaves a state do not lead straight back, as three words; None: there is no telling."""
        stride = len(self.program.bytes) + 2
        own = (place + 1) * stride
        back = frozenset(range(self.program.end))
        for symbol in leaving:
            to = transitions[place][symbol]
            if to & NOTED or not to & ~FLAGS:
                return None
            row = transitions[(to & ~FLAGS) // stride - 1]
            back = frozenset(other for other in back if row[other] == own)
        return self.ranges(frozenset(range(self.program.end)) - back)


def _words(program: Program, dfa: _Dfa, transitions: list[list[int]], rest: list[array[int]]) -> array[int]:
    """A DFA: its head, symbols, states, and the arrays that come after them."""
    stride = len(program.bytes) + 2
    alphabet = _Alphabet(program)
    stays = [alphabet.stay(row, (i + 1) * stride) for i, row in enumerate(transitions)]
    calm = {
        (i + 1) * stride
        for i, (stay, leaving) in enumerate(stays)
        if stay >= 0 and (stay & NOTED or alphabet.share(leaving) <= RARELY)
    }
    starts: list[int] = []
    here = STATES + stride * (len(dfa.rows) + 1)
    for part in rest:
        starts.append(here)
        here += len(part)
    starts += [0] * (3 - len(starts))
    pool = array("i")
    places: dict[tuple[int, ...], int] = {}
    states = array("i", [DEAD] * stride)
    for i, row in enumerate(transitions):
        own = (i + 1) * stride
        for word in row:
            to = word & ~FLAGS
            states.append(word | (DEAD if not to else STAYS if to in calm and to != own else 0))
        stay, leaving = stays[i]
        ranges = alphabet.ranges(leaving) if own in calm else None
        if ranges is not None:
            lists = rest[0] if rest else None
            matching = lists is not None and any(word & MATCHED for word in lists[own : own + stride])
            ranges += _ANY if matching else alphabet.following(transitions, i, leaving) or _ANY
        if ranges is not None and ranges not in places:
            places[ranges] = here + len(pool)
            pool.extend(ranges)
        states.extend((stay, 0 if ranges is None else places[ranges]))
    firsts = [first * stride | (STAYS if first * stride in calm else 0) for first in dfa.firsts]
    found = array("i", [stride, program.end, *firsts, *starts, here])
    found.frombytes(program.symbols)
    found += states
    for part in (*rest, pool):
        found += part
    return found


def _test_words(program: Program, dfa: _Dfa) -> array[int]:
    stride = len(program.bytes) + 2
    rows = [[0 if to is None else MOVES if to[1].match else to[0] * stride for to in row] for row in dfa.rows]
    return _words(program, dfa, rows, [])


# ------------------------------------------------------------------------------------------------- captures


@frozen
class _Moves:
    """The moves of a transition, (to, from): those that save a match, those of the threads."""

    save: tuple[tuple[int, int], ...]
    rest: tuple[tuple[int, int], ...]

    @property
    def reads(self) -> int:
        """The registers that a save reads, a bit each."""
        return _bits(source for _, source in self.save if source > POSITION)

    @property
    def writes(self) -> int:
        """The registers of threads that are written."""
        return _bits(to for to, _ in self.rest)


def _bits(registers: Iterable[int]) -> int:
    found = 0
    for register in registers:
        found |= 1 << register
    return found


@define
class _Pool:
    """Lists of moves, each {how many, to, from, to, from ...}, once; they are known by where they begin."""

    words: array[int] = field(factory=lambda: array("i", [0]))
    places: dict[tuple[tuple[int, int], ...], int] = field(factory=dict[tuple[tuple[int, int], ...], int])

    def place(self, moves: tuple[tuple[int, int], ...]) -> int:
        if not moves:
            return 0
        if moves not in self.places:
            self.places[moves] = len(self.words)
            self.words.append(len(moves))
            self.words.extend(word for pair in moves for word in pair)
        return self.places[moves]


def _capture_words(program: Program, dfa: _Dfa) -> tuple[array[int], int]:
    """The DFA, and how many registers it needs."""
    settable = _settable(program)
    spare = RESULT + program.slots
    banks: dict[tuple[int, int], int] = {}
    moves = [
        [None if to is None else _moves(program, settable, threads, to[1], banks) for to in row]
        for row, threads in zip(dfa.rows, _threads(program, dfa), strict=True)
    ]
    later = _written_later(dfa, moves)
    stride = len(program.bytes) + 2
    pool = _Pool()
    rows: list[list[int]] = []
    lists, saves = (array("i", [0] * (stride * (len(dfa.rows) + 1))) for _ in range(2))
    for i, row in enumerate(dfa.rows):
        words: list[int] = []
        for symbol, to in enumerate(row):
            made = moves[i][symbol]
            if to is None or made is None:
                words.append(0)
                continue
            following, taken = to
            at = (i + 1) * stride + symbol
            word, rest = following * stride, made.rest
            if taken.match:
                if made.reads & (made.writes | later[following]):
                    rest = made.save + made.rest
                    lists[at] = MATCHED
                else:
                    word |= NOTED
                    saves[at] = pool.place(made.save)
            if rest:
                word |= MOVES
                lists[at] |= pool.place(rest)
            words.append(word)
        rows.append(words)
    return _words(program, dfa, rows, [lists, saves, pool.words]), spare + 1 + len(banks)


def _threads(program: Program, dfa: _Dfa) -> list[Threads]:
    """The threads of each state."""
    found: list[Threads] = [(program.start,)] * len(dfa.rows)
    for row in dfa.rows:
        for to in row:
            if to is not None and to[0]:
                found[to[0] - 1] = to[1].threads
    return found


def _settable(program: Program) -> dict[int, int]:
    """The slots that may be set when a thread is at an instruction, a bit each."""
    found = {program.start: 0}
    todo = [program.start]
    while todo:
        at = todo.pop()
        what, a, b, on = program.instructions[at]
        slots = found[at] | (1 << a if what == SAVE else 0)
        ways = (a, b) if what == SPLIT else (on,) if what in (BYTE, SAVE, HOLDS) else ()
        for way in ways:
            if way not in found or slots & ~found[way]:
                found[way] = found.get(way, 0) | slots
                todo.append(way)
    return found


def _moves(
    program: Program, settable: Mapping[int, int], threads: Threads, taken: Step, banks: dict[tuple[int, int], int]
) -> _Moves:  # fmt: skip
    """The moves of a step. `banks`: the register of a slot of a thread, by its number, given when it is first needed."""
    slots, spare = program.slots, RESULT + program.slots

    def bank(thread: int, slot: int) -> int:
        return banks.setdefault((thread, slot), spare + 1 + len(banks))

    save: list[tuple[int, int]] = []
    if taken.match:
        number, tags = taken.match
        known = settable[threads[number]]
        for slot in range(slots):
            source = POSITION if slot in tags else bank(number, slot) if known >> slot & 1 else UNSET
            save.append((RESULT + slot, source))
    copies: dict[int, int] = {}
    fresh: list[tuple[int, int]] = []
    for i, (at, (number, tags)) in enumerate(zip(taken.threads, taken.origins, strict=True)):
        known = settable[threads[number]]
        for slot in range(slots):
            if settable[at] >> slot & 1:
                to = bank(i, slot)
                if slot in tags:
                    fresh.append((to, POSITION))
                elif known >> slot & 1:
                    copies[to] = bank(number, slot)
                else:
                    fresh.append((to, UNSET))
    return _Moves(tuple(save), (*_sequenced(copies, spare), *fresh))


def _sequenced(copies: dict[int, int], spare: int) -> list[tuple[int, int]]:
    """Copies that mean what all of them at once mean."""
    left = {to: source for to, source in copies.items() if to != source}
    found: list[tuple[int, int]] = []
    while left:
        read = set(left.values())
        free = [to for to in left if to not in read]
        if free:
            found += [(to, left.pop(to)) for to in free]
        else:  # only cycles: one is cut
            cut = next(iter(left))
            found.append((spare, cut))
            left.update({to: spare for to, source in left.items() if source == cut})
    return found


def _written_later(dfa: _Dfa, moves: list[list[_Moves | None]]) -> list[int]:
    """By state (0: none), the registers that may be written from there on before the next match."""
    found = [0] * (len(dfa.rows) + 1)
    before: list[set[int]] = [set() for _ in found]
    for i, row in enumerate(dfa.rows):
        for symbol, to in enumerate(row):
            made = moves[i][symbol]
            if to is not None and made is not None and not to[1].match:
                found[i + 1] |= made.writes
                before[to[0]].add(i + 1)
    todo = list(range(1, len(found)))
    while todo:
        state = todo.pop()
        for earlier in before[state]:
            if found[state] & ~found[earlier]:
                found[earlier] |= found[state]
                todo.append(earlier)
    return found
