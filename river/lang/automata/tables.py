"""A program as one table of 32-bit words, for machine code: a tagged DFA if it is small, and the program itself.

The table: {slots, DFA that tests, DFA that captures, program, its length, its start, registers, context of the program,
words of the table, DFA that reads backwards (`behind.py`)}; the parts by word, 0 if absent. The first two DFAs are the same
one; if that is too large, there may be one that only tests. A DFA of these: {symbol of the end, kinds of symbols in pairs, 8
first states, where in a state its pairs begin, where the states without pairs begin, where the lists of moves and those of
origins begin (0: there are none)}, 256 bytes of symbols, 256 of kinds, then the states, a dead one first. A first state is
found by its context: 1 after a word byte, 2 after a newline, 3 at the start, and 4 more if an empty match does not count.

A state: by symbol the next state with flags; the transition back to the state itself that most bytes take (-1: none); how
to pass over bytes (0: not at all). If it captures, by symbol the moves of the transition, then the saves of its match,
then its origins. Last, by two symbols, the state after both if neither transition has a flag but MOVES, else HIT; the
last kind may stand for all symbols that only longer code points than of two bytes have. The first states have pairs, none
that only such code points lead to.

To pass over the bytes that leave a state as it is: four times {least byte, how many}, then a word: 0 if these bytes leave
the state, -1 if all others do. The same once more for the byte after it: if that is none of these, two transitions lead
back to the state, and nothing happens. To pass over places where no match begins (a negative place), `skipping.checks`.

A capturing DFA moves registers {-1, the position, the slots of the match, a spare one, the slots of each thread}. A match
is saved when it is seen, or later: if no transition before the next match writes what it would read, the place is
only noted (flag NOTED). Origins are, by thread, the number of the thread it came from, -1 if it begins here: so the start
of a match is found backwards, without moves.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from river.classes import define, evolve, field, frozen
from river.lang.automata.behind import DEAD, HIT, STAYS, behind
from river.lang.automata.machine import MOST_STATES, Threads, Transition, step
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
    PatternProgram,
    close,
)
from river.lang.automata.skipping import ANY, RARELY, RARELY_IN_PAIRS, Alphabet, checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.lang.automata.skipping import Words

HEAD: Final = 10  # words of a table before its parts
DFA_HEAD: Final = 14
KINDS: Final = DFA_HEAD + 64
STATES: Final = KINDS + 64  # where the states of a DFA begin

MOVES: Final = 1 << 30  # a transition has moves
NOTED: Final = 1 << 29
FLAGS: Final = MOVES | NOTED | STAYS | DEAD | HIT
MATCHED: Final = 1 << 30  # of the moves of a transition: they save a match

UNSET, POSITION, RESULT = 0, 1, 2  # registers

MOST_WORK: Final = 1_500_000  # threads visited while a DFA is made: about half a second
MOST_PAIRS: Final = 8192  # words: beyond that they would not stay in the nearest cache
MOST_ORIGINS: Final = 1 << 16  # words
_CONTEXTS: Final = (0, AFTER_WORD, AFTER_LINE, AT_START)
_COMMON: Final = (0x80, 0xE0)  # ASCII and what two bytes encode: the bytes before

State = tuple[Threads, int]
Steps = list[tuple[int, Transition] | None]


@define
class _Dfa:
    """The states that lead to a match, from 1, each with its threads and its steps by symbol (None: nothing is reached).

    `common`: how many of them, the first, are all that code points of one or two bytes lead to.
    """

    firsts: list[int]
    threads: list[Threads]
    rows: list[Steps]
    common: int


def table(program: PatternProgram, most: int = MOST_STATES, work: int = MOST_WORK) -> array[int]:
    """The table of a program; a DFA of more than `most` states, or one that takes more `work`, is left out."""
    at = [0, 0]
    registers = RESULT + program.slots
    parts = array("i")
    for captures in (True, False):
        dfa = _explored(program, most, work, captures=captures)
        if dfa is not None:
            rows, lists, needed = _captures(program, dfa) if captures else (_tests(dfa), None, 0)
            parts = _words(program, dfa, rows, lists)
            registers = max(registers, needed)
            at = [HEAD, HEAD if captures else 0]
            break
    here = HEAD + len(parts)
    parts.extend(word for one in program.instructions for word in one)
    count = len(program.instructions)
    backwards = behind(program, most, work, alone=not at[0])
    end = HEAD + len(parts)
    size = end + len(backwards)
    head = [program.slots, *at, here, count, program.start, registers, program.context]
    return array("i", [*head, size, end if backwards else 0]) + parts + backwards


def _explored(program: PatternProgram, most: int, work: int, *, captures: bool) -> _Dfa | None:
    """The whole automaton, or None if it is too large."""
    numbers: dict[State, int] = {}
    states: list[State] = []

    def number(state: State) -> int:
        if state not in numbers:
            numbers[state] = len(states) + 1
            states.append(state)
        return numbers[state]

    places = [one | more for more in (0, NOT_EMPTY) for one in _CONTEXTS]
    firsts = [number(((program.start,), place & program.context)) for place in places]
    rows: list[Steps] = []
    while len(rows) < len(states):
        threads, context = states[len(rows)]
        row: Steps = []
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
    return _useful(program, _Dfa(firsts, [threads for threads, _ in states], rows, 0))


def _useful(program: PatternProgram, dfa: _Dfa) -> _Dfa:
    """Without the states from which no match is reached; what ASCII leads to is first, then what two bytes do."""
    before: list[list[int]] = [[] for _ in range(len(dfa.rows) + 1)]
    good: set[int] = set()
    for i, row in enumerate(dfa.rows, 1):
        for to in row:
            if to is not None:
                before[to[0]].append(i)
                if to[1].match:
                    good.add(i)
    close(good, before)
    common = {first for first in dfa.firsts if first in good}
    order: dict[int, None] = {}
    for least in _COMMON:
        few = range(_before(program, least))
        ways = [[to[0] for to in map(row.__getitem__, few) if to and to[0] in good] for row in dfa.rows]
        close(common, [[], *ways])
        order |= dict.fromkeys(sorted(common))
    order |= dict.fromkeys(sorted(good))
    numbers = {one: i for i, one in enumerate(order, 1)}

    def kept(to: tuple[int, Transition] | None) -> tuple[int, Transition] | None:
        if to is None:
            return None
        number = numbers.get(to[0], 0)
        if number:
            return number, to[1]
        return (0, evolve(to[1], threads=(), origins=())) if to[1].match else None

    return _Dfa(
        [numbers.get(first, 0) for first in dfa.firsts],
        [dfa.threads[one - 1] for one in order],
        [[kept(to) for to in dfa.rows[one - 1]] for one in order],
        len(common),
    )


@define
class _Row:
    """A state. `words`: by symbol the number of the next state with flags; by symbol, places in lists, if there are such."""

    words: list[int]
    lists: tuple[list[int], ...] = ()


@frozen
class _Lists:
    """The lists of moves and those of origins."""

    moves: array[int]
    origins: array[int]


def _tests(dfa: _Dfa) -> list[_Row]:
    return [
        _Row([DEAD if to is None else HIT | DEAD if to[1].match else to[0] for to in row]) for row in dfa.rows
    ]


def _words(program: PatternProgram, dfa: _Dfa, rows: list[_Row], lists: _Lists | None) -> array[int]:
    """A DFA: its head, symbols, states, and the lists that come after them."""
    columns = len(program.bytes)
    width = columns * (4 if lists else 1) + 2
    kinds = _before(program, _COMMON[-1])
    classes = min(kinds + 1, program.end)
    common = min(dfa.common, MOST_PAIRS // classes**2)
    paired = width + (classes * classes if common else 0)
    places = [0, *(i * paired for i in range(1, common + 1))]
    places += [(common + 1) * paired + i * width for i in range(len(rows) - common)]
    size = (common + 1) * paired + (len(rows) - common) * width
    end = STATES + size + (len(lists.moves) + len(lists.origins) if lists else 0)
    skips = _Skips(program, dfa, rows, common, end)
    flagged = [
        [word | STAYS if skips.found[word & ~FLAGS] and word & ~FLAGS not in (0, i) else word for word in row.words]
        for i, row in enumerate(rows, 1)
    ]  # fmt: skip
    placed = [[places[word & ~FLAGS] | word & FLAGS for word in row] for row in flagged]
    plain = [
        [HIT] * classes,
        *([HIT if word & ~MOVES > common else word & ~MOVES for word in row] for row in flagged[:common]),
    ]
    states = array("i", [DEAD] * columns + [-1, 0] + [0] * (width - columns - 2) + [HIT] * (paired - width))
    for i, row in enumerate(placed, 1):
        stay = skips.stays[i]
        states.extend(row)
        states.extend((stay if stay < 0 else places[i] | stay & FLAGS, skips.found[i]))
        for each in rows[i - 1].lists:
            states.extend(each)
        if i <= common:
            rest = [HIT] * (classes - kinds)
            for word in plain[i][:kinds]:
                pairs = plain[0] if word == HIT else plain[word][:kinds] + rest
                states.extend([each if each == HIT else places[each] for each in pairs])
            states.extend(plain[0] * (classes - kinds))
    firsts = [places[first] | (STAYS if skips.found[first] else 0) for first in dfa.firsts]
    moves = STATES + size if lists else 0
    origins = moves + len(lists.moves) if lists and lists.origins else 0
    found = array(
        "i", [program.end, classes, *firsts, width, (common + 1) * paired if common else 0, moves, origins]
    )
    found.frombytes(program.symbols)
    found.frombytes(bytes(min(symbol, classes - 1) for symbol in program.symbols))
    found += states
    if lists:
        found += lists.moves + lists.origins
    return found + skips.pool


def _before(program: PatternProgram, least: int) -> int:
    """How many symbols the bytes before one have: they are the first."""
    return sum(0 <= byte < least for byte in program.bytes)


@define(eq=False)
class _Skips:
    """By state (0: dead), the word that stays there, and the place of what it may pass over; the first states have pairs."""

    program: PatternProgram
    dfa: _Dfa
    rows: list[_Row]
    paired: int
    begin: int
    stays: list[int] = field(init=False)
    found: list[int] = field(init=False)
    pool: array[int] = field(factory=lambda: array("i"))
    _places: dict[Words, int] = field(factory=dict["Words", int])

    def __attrs_post_init__(self) -> None:
        alphabet = Alphabet(self.program)
        searching = checks(self.program) if any(self.dfa.firsts[:3]) else None
        firsts = set(self.dfa.firsts)
        self.stays, self.found = [-1], [0]
        for i, row in enumerate(self.rows, 1):
            stay, leaving = alphabet.stay(row.words, (i, i | NOTED | HIT))
            self.stays.append(stay)
            if i in firsts and searching is not None:
                self.found.append(-self.place(searching))
                continue
            noted = stay >= 0 and stay & NOTED != 0
            share = alphabet.share(leaving) if stay >= 0 else 1.0
            words = alphabet.ranges(leaving) if noted or share <= RARELY else None
            if words is not None and not noted:
                after = self.following(i, leaving)
                following = alphabet.ranges(after)
                share *= 1 if following is None else min(alphabet.share(after), 1)
                words = None if share > RARELY_IN_PAIRS and i <= self.paired else words + (following or ANY)
            elif words is not None:
                words += ANY
            self.found.append(0 if words is None else self.place(words))

    def place(self, words: Words) -> int:
        if words not in self._places:
            self._places[words] = self.begin + len(self.pool)
            self.pool.extend(words)
        return self._places[words]

    def following(self, state: int, leaving: frozenset[int]) -> frozenset[int]:
        """Which symbols after one that leaves a state may not lead straight back."""
        symbols = frozenset(range(self.program.end))
        back = symbols
        for symbol in leaving:
            to = self.rows[state - 1].words[symbol]
            if to & (HIT | DEAD):
                return symbols
            row = self.rows[(to & ~FLAGS) - 1].words
            back = frozenset(other for other in back if row[other] == state)
        return symbols - back


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


def _captures(program: PatternProgram, dfa: _Dfa) -> tuple[list[_Row], _Lists, int]:
    """The states, their lists, and how many registers they need."""
    settable = _settable(program)
    spare = RESULT + program.slots
    banks: dict[tuple[int, int], int] = {}
    moves = [
        [None if to is None else _moves(program, settable, threads, to[1], banks) for to in row]
        for row, threads in zip(dfa.rows, dfa.threads, strict=True)
    ]
    later = _written_later(dfa, moves)
    pool = _Pool()
    rows: list[_Row] = []
    for row, made_row in zip(dfa.rows, moves, strict=True):
        words: list[int] = []
        lists, saves = [0] * len(row), [0] * len(row)
        for symbol, (to, made) in enumerate(zip(row, made_row, strict=True)):
            if to is None or made is None:
                words.append(DEAD)
                continue
            word, taken = to
            rest = made.rest
            if taken.match:
                if made.reads & (made.writes | later[word]):
                    rest = made.save + made.rest
                    lists[symbol] = MATCHED
                else:
                    word |= NOTED
                    saves[symbol] = pool.place(made.save)
                word |= HIT
            if rest:
                word |= MOVES
                lists[symbol] |= pool.place(rest)
            words.append(word if to[0] else word | DEAD)
        rows.append(_Row(words, (lists, saves)))
    return rows, _Lists(pool.words, _origins(program, dfa, rows)), spare + 1 + len(banks)


def _origins(program: PatternProgram, dfa: _Dfa, rows: list[_Row]) -> array[int]:
    """The lists of origins, whose places rows are given; none where matches only begin at the start, or they are too long."""
    pool = array("i", [0])
    places: dict[tuple[int, ...], int] = {}
    for row, steps, threads in zip(rows, dfa.rows, dfa.threads, strict=True):
        last = len(threads) - 1 if threads[-1] == program.start else -1
        found = [0] * len(steps)
        for symbol, to in enumerate(steps):
            if to is None or not to[0]:
                continue
            numbers = tuple([-1 if number == last else number for number, _ in to[1].origins])
            if numbers not in places:
                places[numbers] = len(pool)
                pool.extend(numbers)
            found[symbol] = places[numbers]
        row.lists += (found,)
    return pool if any(dfa.firsts[:3]) and len(pool) <= MOST_ORIGINS else array("i")


def _settable(program: PatternProgram) -> dict[int, int]:
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
    program: PatternProgram, settable: Mapping[int, int], threads: Threads, taken: Transition, banks: dict[tuple[int, int], int]
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
