"""Code that is made once: in a process and, by the cache, across runs, without even making the text of the module.

What code depends on is told by a key (the typed tree of an operator, the schema of a file), the processor, LLVM, and the
compiler itself.
"""

from __future__ import annotations

import json
import zlib
from contextlib import contextmanager
from contextvars import copy_context
from ctypes import c_bool
from threading import RLock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref

from backends.native import tiers
from backends.native.cache import found, kept, name_of, note, noted, there
from backends.native.jit import OPTIMISATION, QUICK, Code, host, level, linked, machine_code, stated
from backends.native.tiers import Order, Tier, job
from river.classes import define, evolve, frozen
from river.diagnostics import InternalError
from river.digests import sha256
from river.lang import memory
from river.lang.tables import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

Job = TypeVar("Job")
Result = TypeVar("Result")

_LOCK: Final = RLock()
_MAKING: Final[dict[str, RLock]] = {}  # by key, what the others wait for
_KNOWN: Final[dict[str, Code]] = {}


@define
class _Clock:
    """The time in which at least one thread makes code that was not in the cache."""

    makers: int = 0
    since: float = 0.0
    seconds: float = 0.0

    @contextmanager
    def running(self) -> Generator[None]:
        with _LOCK:
            if not self.makers:
                self.since = perf_counter()
            self.makers += 1
        try:
            yield
        finally:
            with _LOCK:
                self.makers -= 1
                if not self.makers:
                    self.seconds += perf_counter() - self.since


_CLOCK: Final = _Clock()


def spent() -> float:
    """Seconds that this process has spent making code that was not in the cache."""
    return _CLOCK.seconds


@frozen
class ModuleText:
    """The text of a module, what it exports, and facts about it that are kept with the code (JSON)."""

    text: str
    exports: tuple[str, ...]
    facts: Any = None


class TreeTexts:
    """What trees say, made once for each as long as it lives: a tree that runs again is known by its place in memory."""

    def __init__(self, text: Callable[[Any], str]) -> None:
        self._text = text
        self._known: dict[int, tuple[ref[Any], str]] = {}

    def of(self, tree: Any) -> str:
        """The text of a tree, which does not change."""
        place = id(tree)
        found = self._known.get(place)
        if found is not None and found[0]() is tree:
            return found[1]
        text = self._text(tree)
        self._known[place] = ref(tree, lambda gone: self._forget(place, gone)), text
        return text

    def _forget(self, place: int, gone: ref[Any]) -> None:
        found = self._known.get(place)
        if found is not None and found[0] is gone:  # else another tree lies there already
            del self._known[place]


def shared(
    key: str,
    make: Callable[[], ModuleText],
    level: int = OPTIMISATION,
    begin: Callable[[Code], None] | None = None,
) -> Code:
    """The code that `make` gives the text of, unless code with this key is there already.

    `level`: how much it is optimised in the end (see `jit.level`); where a run waits for it, it may be made quickly at first
    (see `tiers`). `begin` is called once, when the code has been linked: if it raises, the code is not there. Threads that want
    different code do not wait for each other.
    """
    effort = _effort()
    if level and effort is not None:
        return _once(key, lambda: _begun(key, make, level, effort, begin))
    return _once(key, lambda: _ready(key, make, level, begin))


def _effort() -> int | None:
    """How much code is optimised that is made quickly at first; None where it is not."""
    return None if stated() else tiers.wanted()


def _once(key: str, make: Callable[[], Code]) -> Code:
    """The code with a key: what `make` gives, if it is not there."""
    with _LOCK:
        if key in _KNOWN:
            return _known(key)
        lock = _MAKING.setdefault(key, RLock())
    with lock:
        if key not in _KNOWN:
            _KNOWN[key] = make()
            _MAKING.pop(key, None)
        return _known(key)


def _known(key: str) -> Code:
    """Code that this process has. Where nobody would improve it later, it is good."""
    code = _KNOWN[key]
    if code.tier is not None:
        code.tier.again = code.tier.ran
        if tiers.wanted() is None:
            code.tier.improve()
    return code


def _begun(
    key: str,
    make: Callable[[], ModuleText],
    level: int,
    effort: int,
    begin: Callable[[Code], None] | None,
) -> Code:
    """The code as the cache has it, the best of it, else made quickly: it is improved when it has run for long.

    A run on much has some code that is new optimised before (`tiers.taken`).
    """
    depends = _depends(key)
    best = found(depends)
    if best is not None:
        return _linked(best, begin)
    there_now = next((kept for kept in (QUICK, 0) if there(name_of(_depends(_quickly(key, kept))))), None)
    if there_now is None:
        with _CLOCK.running():
            text = make()
        make = lambda: text  # noqa: E731 - what it was is made once
        if tiers.taken(len(text.text)):
            return _ready(key, make, level, begin)
    effort = effort if there_now is None else there_now
    quick_key = _quickly(key, effort)
    tier = Tier(
        lambda: _linked(kept(depends, lambda: _built(make, level)), begin),
        lambda ran: note(depends, ran),
        before=noted(depends),
        order=Order(name_of(_depends(quick_key)), name_of(depends), level),
    )
    quick = evolve(_ready(quick_key, make, effort, begin, parts=effort), tier=tier)
    tiers.known(tier)
    return quick


def _quickly(key: str, effort: int) -> str:
    """The key of what is made quickly."""
    return f"quick {effort} {key}"


def _ready(
    key: str,
    make: Callable[[], ModuleText],
    level: int,
    begin: Callable[[Code], None] | None = None,
    *,
    parts: int = OPTIMISATION,
) -> Code:
    """The code as the cache has it, else made now. `parts`: how much the parts of the runtime library are optimised."""

    def build() -> bytes:
        with _CLOCK.running():
            return _built(make, level)

    return _linked(kept(_depends(key), build), begin, parts)


BEGIN: Final = "river_begin"
"""A function without parameters that code may define: it is called once, when the code has been linked. False: it failed."""


def made_by() -> str:
    """What tells this version of the compiler from others. Who finds out first needs 4 ms, among threads all of them more."""
    return fingerprint("backends.native", "river.lang")


def _depends(key: str) -> tuple[str, ...]:
    """What code depends on."""
    machine = host()
    return made_by(), key, machine.triple, machine.cpu, machine.features, machine.llvm


def _built(make: Callable[[], ModuleText], level: int) -> bytes:
    """What is kept: a line of facts, and the code; of what is made quickly, the text behind it, for `improved`."""
    from backends.native.runtime_library import parts

    made = make()
    exports = [*made.exports, BEGIN] if f"define i1 @{BEGIN}(" in made.text else made.exports
    told = {"exports": exports, "facts": made.facts, "imports": parts(made.text)}
    code = machine_code(made.text, level)
    if level > QUICK:
        return _packed(told, code)
    return _packed({**told, "size": len(code)}, code + zlib.compress(made.text.encode(), 1))


def _packed(told: Any, code: bytes) -> bytes:
    return json.dumps(told).encode() + b"\n" + code


def _unpacked(data: bytes) -> tuple[Any, bytes, bytes]:
    """What is told, the code, and what is behind it."""
    head, _, code = data.partition(b"\n")
    told = json.loads(head)
    size = told.pop("size", len(code))
    return told, code[:size], code[size:]


def improved(data: bytes, level: int) -> bytes:
    """Of code that was made quickly, as it is kept, the better one. Parts of the runtime library that it needs are kept, too."""
    told, _, text = _unpacked(data)
    for part in set(told["imports"].values()):
        part_code(part)
    return _packed(told, machine_code(zlib.decompress(text).decode(), level))


def _linked(data: bytes, begin: Callable[[Code], None] | None, level: int = OPTIMISATION) -> Code:
    """The code that was kept, ready to be called; `level`: of the parts of the runtime library that it calls."""
    told, code, _ = _unpacked(data)
    imports = {name: part_code(of, level).addresses[name] for name, of in told["imports"].items()}
    made = evolve(linked(code, tuple(told["exports"]), imports), facts=told["facts"])
    if BEGIN in made.addresses and not made.function(BEGIN, (), c_bool)():
        raise InternalError("the index of a constant has no room for its keys")
    if begin is not None:
        begin(made)
    return made


def side_by_side(make: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> list[Result]:
    """The results of jobs that make code, on several threads.

    Raises: what a job raises.
    """
    workers = min(workers, len(jobs))
    if workers <= 1:
        return list(map(make, jobs))
    left, done, failures = iter(range(len(jobs))), dict[int, Result](), list[BaseException]()

    def work() -> None:
        job.failures = failures
        while not failures:
            with _LOCK:
                number = next(left, None)
            if number is None:
                return
            try:
                done[number] = make(jobs[number])
            except BaseException as failure:  # noqa: BLE001 - it is raised again below
                failures.append(failure)

    threads = [Thread(target=copy_context().run, args=(work,), name="compile") for _ in range(workers)]
    for thread in threads:
        memory.start(thread)
    try:
        for thread in threads:
            thread.join()
    except BaseException as stopped:  # by the user: the others end with the job that they are at
        failures.append(stopped)
        raise
    if failures:
        raise failures[0]
    return [done[number] for number in range(len(jobs))]


def part_code(name: str, level: int = OPTIMISATION) -> Code:
    """A part of the runtime library. Code that is made quickly calls parts that are: both levels may be there."""

    def make() -> ModuleText:
        from backends.native.runtime_library import part

        return ModuleText(*part(name))

    key = _part(name, level)
    return _once(key, lambda: _ready(key, make, level, parts=level))


def part_at_hand(name: str) -> Code:
    """The same, on whatever level it is there; else as code is made now."""
    effort = OPTIMISATION if tiers.roomy() else _effort()
    known = next((level for level in (OPTIMISATION, QUICK, 0) if _part(name, level) in _KNOWN), effort)
    return part_code(name, OPTIMISATION if known is None else known)


def _part(name: str, level: int) -> str:
    return f"part {level} {name}"


def compile_text(text: str, exports: Iterable[str]) -> Code:
    """The functions `exports` of an LLVM module.

    Raises: InternalError if the text is not a correct module.
    """
    effort = level()
    key = f"text {effort} {sha256(text.encode()).hexdigest()}"
    return shared(key, lambda: ModuleText(text, tuple(exports)), effort)
