"""Compiled operators: code that batches are fired on, and the variables it keeps between them.

A `NativeOperator` is used by one thread at a time; `again` gives another one with the same code. Variables may be shared
by operators, as in the graph, under the locks of whoever fires.
"""

from __future__ import annotations

import ctypes
import weakref
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch, OutputBlock, address_of, pointers
from backends.native.computed import fill
from backends.native.contract import (
    ARENA_SIZE,
    ARENA_USED,
    BASE,
    CODES,
    CONTEXT,
    CONTEXT_SIZE,
    FULL,
    SIDE,
    STOP,
    TRAPPED,
    Handler,
    NotCompiled,
    Reason,
    handlers_of,
    mark_type,
)
from backends.native.jit import Code, host, level
from backends.native.layout import size_align
from backends.native.llvm import available
from backends.native.pool import POOL, default_limit
from backends.native.shared import ModuleText, TreeTexts, part_at_hand, shared
from backends.native.spelled import spelled
from river.classes import define, evolve, field, frozen
from river.diagnostics import InternalError
from river.lang import types as t
from river.lang.values import Mark, default

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from backends.native.deadline import Deadline
    from backends.native.parameters import Parameters
    from backends.native.patterns import Patterns
    from river.lang import typed
    from river.lang.values import Value

UNLIMITED: Final = 1 << 62
SOON: Final = 1 << 13
"""Steps (`most_steps`) that are sooner done than other threads give the GIL back: some 10 us, where that takes 100."""

_CODED: Final = TreeTexts(lambda operator: spelled(coded(operator)))
_LATE: Final = 2  # in the word that says whether to stop
_CHECKING: Final = Lock()  # code for debugging notes in one place whose firing it checks
_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64


def coded(op: typed.Operator) -> typed.Operator:
    """What of an operator its code depends on: not its name, nor the items that wait at first, which come as others do."""
    return evolve(op, name="", ports=tuple(evolve(port, initial=()) for port in op.ports))


@frozen
class Refused:
    """Why an operator is not compiled: the evaluator runs it. One reason per place that was looked at."""

    operator: str
    reasons: tuple[Reason, ...]


@frozen
class NativeTrap:
    """The record of a trap: its code and site (il.md 2.4), the row of the batch, at most two operands, whole numbers."""

    code: str
    site: int
    row: int
    operands: tuple[int, ...]


@frozen
class Fired:
    """How a batch went: all rows before `row` were fired. `full`: the limit was reached, go on at `row`."""

    row: int
    full: bool = False
    stopped: bool = False
    trap: NativeTrap | None = None


class _Block:
    """Zeroed memory at a multiple of 16."""

    def __init__(self, size: int) -> None:
        self.buffer = ctypes.create_string_buffer(size + 16)
        self.address = -(-ctypes.addressof(self.buffer) // 16) * 16

    def word(self, offset: int) -> Any:
        """A 64-bit number inside."""
        return _I.from_address(self.address + offset)


@define(eq=False)
class NativeVariable:
    """A variable in native memory. `get` and `set` take and give frozen values."""

    type: t.Type
    debug: bool
    close: Callable[[int], None] = field(repr=False)  # gives back the memory of an arena
    block: _Block = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.block = _Block(ARENA_SIZE + size_align(self.type)[0])
        weakref.finalize(self, _dropped, self.close, self.block)

    def like(self) -> NativeVariable:
        """Another one of its type, at zero."""
        return NativeVariable(self.type, self.debug, self.close)

    def swap(self, other: NativeVariable) -> None:
        """Changes values with another one of its type. Nothing in them says where they are."""
        size = ARENA_SIZE + size_align(self.type)[0]
        mine = ctypes.string_at(self.block.address, size)
        ctypes.memmove(self.block.address, other.block.address, size)
        ctypes.memmove(other.block.address, mine, size)

    def get(self) -> Value:
        """Its value."""
        with self.columns() as batch:
            (value,) = batch.values()
        return value

    def set(self, value: Value) -> None:
        """Gives it another value."""
        batch = Batch.of(self.type, [value])
        if batch.alike(Batch.of(self.type, [default(self.type)])):
            self.clear()
        else:
            self.fill(batch)

    @contextmanager
    def columns(self) -> Generator[Batch]:
        """Its value as a batch of one row, to be read inside the block only."""
        out, context = OutputBlock(self.type), _context()
        try:
            save = _moves(self.type, debug=self.debug).function("save", (_P, _P, _P), _I)
            if save(context.address, out.address, self.block.address):
                raise MemoryError(f"a variable of type {self.type}")
            yield out.batch()
        finally:
            self._close(context)

    def fill(self, batch: Batch) -> None:
        """Gives it the value that is the one row of a batch."""
        self.clear()
        context = _context()
        addresses = (_P * len(batch.addresses))(*batch.addresses)
        load = _moves(self.type, debug=self.debug).function("load", (_P, _P, _P), _I)
        refused = load(context.address, addresses, self.block.address)
        self._close(context)
        if refused:
            self.clear()
            raise MemoryError(f"a variable of type {self.type}")

    @property
    def memory(self) -> int:
        """Bytes of memory that its arena has taken from the system."""
        return self.block.word(24).value

    def clear(self) -> None:
        """Gives all its memory back; its value is the zero of its type."""
        self.close(self.block.address)
        ctypes.memset(self.block.address, 0, ARENA_SIZE + size_align(self.type)[0])

    def _close(self, context: _Block) -> None:
        _closed(self.close, context)


def _moves(type_: t.Type, *, debug: bool) -> Code:
    """The functions that bring variables of a type in and out."""

    def make() -> ModuleText:
        from backends.native.lower.batches import moves

        return ModuleText(*moves(type_, debug=debug))

    effort = 0 if debug else level()
    return shared(f"variable {effort} {debug} {type_!r}", make, effort)


class _Texts:
    """The memory of the texts of outputs, moved out of a context."""

    __slots__ = ("_block", "_close")

    def __init__(self, close: Callable[[int], None], at: int) -> None:
        self._close = close
        self._block = _Block(ARENA_SIZE)
        ctypes.memmove(self._block.address, at, ARENA_SIZE)
        ctypes.memset(at, 0, ARENA_SIZE)

    def __del__(self) -> None:
        self._close(self._block.address)


_CURRENT: Final = 0  # where an arena has the address of what is free in its last chunk
_END: Final = 8  # where it has that of the chunk's end
_CHUNKS: Final = 16  # where it keeps the list of its memory


def _dropped(close: Callable[[int], None], block: _Block) -> None:
    close(block.address)


def _closed(close: Callable[[int], None], context: _Block) -> None:
    for name in ("temporary", "texts"):
        close(context.address + CONTEXT[name])


def _number(context: _Block, name: str) -> int:
    return context.word(CONTEXT[name]).value


def _context() -> _Block:
    """A context whose temporary arena is one."""
    block = _Block(CONTEXT_SIZE)
    block.word(CONTEXT["temporary"] + 32).value = 1
    block.word(CONTEXT["most"]).value = default_limit()
    block.word(CONTEXT["pool"]).value = POOL.address
    return block


@define(eq=False)
class Calls:
    """How often machine code has called Python, of an operator and the copies of it."""

    count: int = 0


@define(eq=False)
class NativeOperator:
    """An operator as machine code; `handlers` can be fired. `steps`: that a firing of these takes at most, if that is known.

    `fire` fires a handler (`item.0`, `rated`, `mark`, ...) on columns and appends to `outputs` and `marks`, which are the
    caller's to read and to `clear`. `fire_batch` does the same from and to lists of values.
    """

    operator: typed.Operator
    handlers: tuple[Handler, ...] = field(repr=False)
    code: Code = field(repr=False)
    debug: bool = False
    parameters: Parameters | None = field(default=None, repr=False)
    calls: Calls = field(factory=Calls, repr=False)
    variables: list[NativeVariable] = field(init=False, repr=False)
    outputs: tuple[OutputBlock, ...] = field(init=False, repr=False)
    marks: tuple[OutputBlock, ...] = field(init=False, repr=False)
    _lends: tuple[bool, ...] = field(init=False, repr=False)  # by output whether texts of inputs may be in it
    _close: Callable[[int], None] = field(init=False, repr=False)  # gives back the memory of an arena
    _context: _Block = field(init=False, repr=False)
    _constants: list[NativeVariable] = field(init=False, repr=False)  # at most one, behind the variables
    _tables: Any = field(init=False, repr=False)
    patterns: Patterns | None = field(default=None, init=False, repr=False)
    deadline: Deadline | None = field(default=None, init=False, repr=False)
    steps: int | None = field(init=False, repr=False)
    _lent: list[Batch] | None = field(default=None, init=False, repr=False)
    _fires: dict[tuple[str, bool], Callable[..., int]] = field(
        factory=dict[tuple[str, bool], "Callable[..., int]"], init=False, repr=False
    )
    _soon: int = field(init=False, repr=False)  # how many firings are soon over
    _limit: Any = field(init=False, repr=False)
    _texts: Any = field(init=False, repr=False)  # the list of the memory of texts

    def __attrs_post_init__(self) -> None:
        self._close = close = part_at_hand(BASE).function("arena_close", (_P,))
        self.variables = [NativeVariable(var.type, self.debug, close) for var in self.operator.vars]
        self._constants = []
        if self.parameters is not None:
            self._constants.append(NativeVariable(self.parameters.type, self.debug, close))
            self._constants[0].fill(Batch.of(self.parameters.type, [self.parameters.value]))
        self.outputs = tuple(OutputBlock(out.type) for out in self.operator.outs)
        taken = any(t.contains(port.type, t.STRING, t.BYTES) for port in self.operator.ports)
        self._lends = tuple(taken and t.contains(out.type, t.STRING, t.BYTES) for out in self.operator.outs)
        self.marks = tuple(OutputBlock(mark_type(out)) for out in self.operator.outs)
        self._context = context = _context()
        self._limit = context.word(CONTEXT["limit"])
        self._texts = context.word(CONTEXT["texts"] + _CHUNKS)
        weakref.finalize(self, _closed, close, self._context)
        self.steps = self.code.facts.get("steps")
        each = (
            0
            if self.steps is None
            else self.steps * max(1, sum(phase.count for phase in self.operator.phases))
        )
        self._soon = SOON // each if each else 0
        if self.code.facts["host"]:
            from backends.native.patterns import Patterns  # few operators make patterns while they run

            self.patterns = Patterns(self.calls)
            context.word(CONTEXT["patterns"]).value = self.patterns.address
        self._bind()

    def _bind(self) -> None:
        """Tells the context where variables and outputs are."""
        variables = (*self.variables, *self._constants)
        blocks = (_P * max(len(variables), 1))(*(v.block.address for v in variables))
        pairs = [each.address for pair in zip(self.outputs, self.marks, strict=True) for each in pair]
        outs = (_P * max(len(pairs), 1))(*pairs)
        self._tables = (blocks, outs)
        self._context.word(CONTEXT["variables"]).value = ctypes.addressof(blocks)
        self._context.word(CONTEXT["outs"]).value = ctypes.addressof(outs)

    def again(self) -> NativeOperator:
        """Another one with the same code and variables of its own."""
        made = NativeOperator(
            self.operator, self.handlers, self.code, self.debug, self.parameters, self.calls
        )
        made.deadline = self.deadline
        return made

    def share(self, index: int, variable: NativeVariable) -> None:
        """Uses a variable of another operator as variable `index`."""
        self.variables[index] = variable
        self._bind()

    @property
    def cycle_ports(self) -> tuple[int, ...]:
        """The inputs of a cycle of phases, in the order of their columns."""
        return tuple(dict.fromkeys(phase.port for phase in self.operator.phases if phase.count))

    def handler(self, name: str) -> Handler:
        """A handler by name.

        Raises: KeyError.
        """
        for each in self.handlers:
            if each.name == name:
                return each
        raise KeyError(name)

    def stop(self) -> None:
        """Asks the firing that is under way in another thread, and all that come, to end; `fire` says `stopped`."""
        self._context.word(CONTEXT["stop"]).value = 1

    def unstop(self) -> None:
        """Takes `stop` back: firings go on again. It is for whoever has called `stop`; `fire` does not do it."""
        self._context.word(CONTEXT["stop"]).value = 0

    @property
    def row(self) -> int:
        """The row that is being fired, while another thread fires."""
        return self._context.word(CONTEXT["row"]).value

    def late(self) -> None:
        """Ends the firing that is under way in another thread: the deadline has passed."""
        stop = self._context.word(CONTEXT["stop"])
        if not stop.value:
            stop.value = _LATE

    def _was_late(self) -> bool:
        """Whether a firing was ended by the deadline; takes it back."""
        stop = self._context.word(CONTEXT["stop"])
        if stop.value != _LATE:
            return False
        stop.value = 0
        return True

    def _late(self, name: str, columns: Sequence[int], row: int, end: int, limit: int) -> Fired:
        """What comes of rows of which one has met the deadline.

        It is the first, or one of those fired side by side with it: where nothing is lost by firing again, each is tried alone.
        """
        alone = name.split(".", 1)[0] in ("item", "rated") and not any(v.written for v in self.operator.vars)
        if not alone or end - row == 1:
            return Fired(row, trap=NativeTrap("deadline", _number(self._context, "site"), row, ()))
        fired = self.fire(name, columns, row, row + 1, limit)
        if fired.row == row or fired.stopped or fired.full:
            return fired
        return self.fire(name, columns, row + 1, end, limit)

    def _run(self, fire: Callable[..., int], table: Any, start: int, end: int) -> int:
        """Calls a batch function; the deadline, if there is one, sees it."""
        if self.deadline is None:
            return fire(self._context.address, table, start, end)
        self.deadline.begin(self)
        try:
            return fire(self._context.address, table, start, end)
        finally:
            self.deadline.end(self)

    def limit_memory(self, most: int) -> None:
        """The bytes that a firing, a variable or a column of an output may have; beyond, the firing traps."""
        self._context.word(CONTEXT["most"]).value = most

    def expect(self, firings: int, limit: int = UNLIMITED) -> None:
        """So many firings of windows are to come: outputs that state a rate get room for what they send, up to `limit`."""
        for out, block in zip(self.operator.outs, self.outputs, strict=True):
            if out.push:
                block.expect(min(firings * out.push, limit))

    @property
    def watched(self) -> bool:
        """Whether somebody has to see each call of `fire`: a deadline, code for debugging, patterns that may not be readable."""
        return self.debug or self.deadline is not None or self.patterns is not None

    def entry(self, name: str) -> tuple[int, int]:
        """For machine code that fires a handler, of an operator that is not `watched`: the function, and what it gets first."""
        self._limit.value = UNLIMITED
        return self.code.entry(f"fire.{name}"), self._context.address

    def fire(self, name: str, columns: Sequence[int], start: int, end: int, limit: int = UNLIMITED) -> Fired:
        """Fires a handler on rows `start` to `end` - 1 of columns, given by their addresses.

        The GIL is released, unless it is known that all is soon done.
        `limit`: no further firing begins once an output has so many items.
        """
        context = self._context
        self._limit.value = limit
        table = pointers(max(len(columns), 1))(*columns)
        how_called = name, end - start <= self._soon
        fire = self._fires.get(how_called)
        if fire is None:
            made = self.code.function(f"fire.{name}", (_P, _P, _I, _I), _I, short=how_called[1])
            self._fires[how_called] = fire = made
        if self.debug:
            regions = self._regions(table)
            context.word(CONTEXT["regions"]).value = ctypes.addressof(regions)
            with _CHECKING:
                left = self._run(fire, table, start, end)
        elif self.deadline is None:
            left = fire(context.address, table, start, end)
        else:
            left = self._run(fire, table, start, end)
        row, how = left >> 2, left & 3
        if how == STOP and self._was_late():
            return self._late(name, columns, row, end, limit)
        if how != TRAPPED:
            return Fired(row, full=how == FULL and row < end, stopped=how == STOP)
        if self.patterns is not None and self.patterns.failure is not None:
            failure, self.patterns.failure = self.patterns.failure, None
            raise failure
        code, site, at, given = (_number(context, name) for name in ("code", "site", "row", "given"))
        values = tuple(_number(context, name) for name in ("a", "b")[:given])
        if CODES[code] == "internal":
            raise InternalError(
                f"native code of {self.operator.name}: bad access at {values[0]:#x}, place {values[1]}"
            )
        return Fired(row, trap=NativeTrap(CODES[code], site, at, values))

    def _regions(self, table: Any) -> ctypes.Array[ctypes.c_int64]:
        """What code for debugging may reach: arenas, and memory by address and size; all where the input is not known."""
        context = self._context
        arenas = [context.address + CONTEXT[name] for name in ("temporary", "texts")]
        variables = (*self.variables, *self._constants)
        arenas += [variable.block.address for variable in variables]
        found = [(context.address, CONTEXT_SIZE), (ctypes.addressof(table), ctypes.sizeof(table))]
        found += [(ctypes.addressof(each), ctypes.sizeof(each)) for each in self._tables]
        found += [(v.block.address, ARENA_SIZE + size_align(v.type)[0]) for v in variables]
        found += [(each.address, ctypes.sizeof(each.words)) for each in (*self.outputs, *self.marks)]
        if self.patterns is not None:
            found += self.patterns.regions()
        if self._lent is None:
            found.append((0, UNLIMITED))
        for batch in self._lent or ():
            found += [(address_of(each), memoryview(each).nbytes) for each in batch.kept if len(each)]
        words = [len(arenas), len(found), *arenas, *(word for region in found for word in region)]
        return (_I * len(words))(*words)

    def fire_batch(
        self, items: Sequence[Sequence[Value]], name: str = "item.0", limit: int = UNLIMITED
    ) -> tuple[tuple[list[Any], ...], Fired]:
        """Fires on values, a sequence per slot of the handler; all that fit. Gives items and marks by output."""
        handler = self.handler(name)
        rated = name in ("first", "rated")
        batches: list[Batch] = []
        firings = UNLIMITED
        for slot, pop, values in zip(handler.slots, handler.pops, items, strict=True):
            if rated and isinstance(slot, t.Array):
                batches.append(Batch.of(slot.item, values))
                possible = 1 if pop == 0 else max(0, (len(values) - slot.size) // pop + 1)
                firings = min(firings, possible if len(values) >= slot.size else 0)
            else:
                batches.append(Batch.of(slot, values))
                firings = min(firings, len(values))
        if name == "first":
            firings = min(firings, 1)
        table = [a for batch in batches for a in batch.addresses]
        if name == "cycle":
            needs = [
                sum(p.count for p in self.operator.phases if p.port == port) for port in self.cycle_ports
            ]
            firings = min(len(values) // need for values, need in zip(items, needs, strict=True))
        elif name == "merge":
            firings = UNLIMITED
            state = (_I * (SIDE * len(items)))(*(word for values in items for word in (0, len(values), 0, 1)))
            table.append(ctypes.addressof(state))
            batches.append(Batch(t.UNIT, 0, (), [state]))
        self._lent = batches
        fired = self.fire(name, table, 0, firings, limit)
        self._lent = None
        found = tuple(map(_merged, self.outputs, self.marks))
        self.clear()
        return found, fired

    def take(self, inputs: Sequence[Any] = ()) -> Iterator[tuple[int, Batch, Batch | None]]:
        """What was emitted, by output: items and marks (see `lower.statements.MARK`), which belong to the caller then.

        `inputs`: what the columns lay in that were fired on (`Batch.kept`), if texts of theirs are lent.
        """
        texts: _Texts | None = None
        size = 0
        if self._texts.value:
            arena = CONTEXT["texts"]
            words = [self._context.word(arena + at).value for at in (_CURRENT, _END, ARENA_USED)]
            size = words[2] - (words[1] - words[0])
            texts = _Texts(self._close, self._context.address + arena)
        for i, (output, marks) in enumerate(zip(self.outputs, self.marks, strict=True)):
            marked = marks.rows != 0
            if marked or output.rows:
                lent = (texts, inputs) if self._lends[i] else texts
                yield i, output.take(lent, size), marks.take() if marked else None

    def rest(self) -> None:
        """Fires no more: gives back the memory of outputs that nobody reads."""
        for each in (*self.outputs, *self.marks):
            each.rest()

    def clear(self) -> None:
        """Empties the outputs; batches read from them are void."""
        for each in (*self.outputs, *self.marks):
            each.clear()
        self._close(self._context.address + CONTEXT["texts"])


def _merged(output: OutputBlock, marks: OutputBlock) -> list[Any]:
    """Items and marks in the order in which they were sent."""
    items = output.batch().values()
    found: list[Any] = []
    done = 0
    for before, key in marks.batch().values():
        found += items[done:before]
        found.append(Mark(key))
        done = before
    return found + items[done:]


def compile_native(
    op: typed.Operator, *, debug: bool = False, lend: bool = False, parameters: Parameters | None = None
) -> NativeOperator | Refused:
    """The operator as machine code with variables at zero, or why it has none.

    `debug`: it checks every access. `lend`: texts of inputs are emitted without being copied; who fires keeps the inputs
    as long as what was emitted (see `take`). `parameters`: how it reads its constants, if they are not in its code.
    """
    if not available():
        return Refused(op.name, (Reason("llvmlite is not installed", op.span),))

    def make() -> ModuleText:
        from backends.native.lower.batches import Lowered, lower
        from river.lang.steps import most_steps

        lowered = lower(written, host().architecture, debug=debug, lend=lend)
        if not isinstance(lowered, Lowered):
            raise NotCompiled(lowered)
        symbols = (symbol for _, symbol in lowered.rooms)
        return ModuleText(
            lowered.text,
            (*lowered.exports, *symbols),
            {"host": lowered.host, "rooms": lowered.rooms, "steps": most_steps(written)},
        )

    def begin(code: Code) -> None:
        failed = fill(written, code, code.facts["rooms"], debug=debug)
        if failed is not None:
            raise NotCompiled((failed,))

    written = op if parameters is None else parameters.operator
    try:
        effort = 0 if debug else level()
        code = shared(f"operator {effort} {debug} {lend} {_CODED.of(written)}", make, effort, begin)
    except NotCompiled as refused:
        return Refused(op.name, refused.reasons)
    return NativeOperator(op, handlers_of(op), code, debug, parameters)


__all__ = ["Fired", "NativeOperator", "NativeTrap", "NativeVariable", "Refused", "compile_native", "default"]
