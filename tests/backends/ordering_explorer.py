"""All interleavings of threads that run the ordering structures: not of a model of them, of their own text.

`stepped` reads the modules and makes generators of all methods, which stop before each statement that touches what
threads share. `explore` runs such threads in every order, and looks at every state once. A state is all that can be
reached from the shared objects, and where each thread stands with its local variables; of states the 64-bit hash is
kept. That a statement touches shared things once is checked here; that this one touch cannot be divided is stated in
`backends.multicore.ordering.atomic`.
"""

from __future__ import annotations

import ast
import inspect
from collections import deque
from importlib import import_module
from threading import Lock
from types import FrameType, GeneratorType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    Thread = Generator[Any, None, Any]

PACKAGE = "backends.multicore.ordering"
MODULES = ("reorder", "worklist", "keyed", "hybrid", "partitioned", "shared")
CALLBACKS = {"_send", "_drain", "_operate"}
"""What the test gives as generators; other callbacks happen at once."""
FIXED = {
    "capacity", "order", "_order", "serial", "batch", "parts", "partition", "rows", "positions", "before", "error",
    "_split", "_join", "ROOM", "NEXT",
}  # fmt: skip
"""Fields that are never written once their object is seen by others, nor is what they hold."""
GUARDED = {"given", "_source", "_waiting", "pending"}
"""Fields that are touched only under the lock, or by who set the flag or has the task, that guards them."""
LOCK = type(Lock())
PLAIN = {int, str, bool, type(None)}


class Violation(AssertionError):  # noqa: N818 - the word of the trade
    """Something that must not happen, and the threads' turns that lead there."""


# -- the text, step by step


def stepped(*faults: tuple[str, str, str]) -> SimpleNamespace:
    """The classes with generators for methods. `faults`: module, a text that stands in it once, and another for it."""
    names: dict[str, Any] = {"__name__": __name__}
    trees: list[ast.Module] = []
    left = list(faults)
    for module in MODULES:
        text = inspect.getsource(import_module(f"{PACKAGE}.{module}"))
        for fault in faults:
            if fault[0] == module:
                assert text.count(fault[1]) == 1, f"{module} does not have once: {fault[1]}"
                text = text.replace(fault[1], fault[2])
                left.remove(fault)
        trees.append(ast.parse(text))
    assert not left
    methods = CALLBACKS | {
        function.name for tree in trees for class_ in _classes(tree) for function in _methods(class_)
    }
    for module, tree in zip(MODULES, trees, strict=True):
        ours = {f"{PACKAGE}.{name}" for name in MODULES}
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module in ours)
        ]
        for class_ in _classes(tree):
            for function in _methods(class_):
                function.body = _Steps(methods).block(function.body)
                function.body.append(ast.parse("if 0: yield").body[0])
        code = compile(ast.fix_missing_locations(tree), f"<stepped {module}>", "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - our own modules
    return SimpleNamespace(**names)


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes that threads share; a protocol has no code."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and node.name not in ("Sequencer", "Missing", "Wait", "FailedResult", "Part", "Parent")
    ]


def _methods(class_: ast.ClassDef) -> list[ast.FunctionDef]:
    """Those that become generators. A property is one look."""
    return [
        node
        for node in class_.body
        if isinstance(node, ast.FunctionDef)
        and node.name not in ("__init__", "waiting")
        and not any(isinstance(each, ast.Name) for each in node.decorator_list)
    ]


@frozen
class _Steps:
    """Rewrites statements. `methods`: calls of these are gone through step by step, too."""

    methods: set[str]

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [made for statement in body for made in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.With(items=[ast.withitem(context_expr=lock)], body=body):
                acquired = [ast.Expr(ast.Yield(lock)), ast.Expr(_method(lock, "acquire"))]
                released = [ast.Expr(_method(lock, "release"))]
                return [*acquired, *self._finally(self.block(body), self.block(released))]
            case ast.Try(body=body, handlers=[], orelse=[], finalbody=final):
                return self._finally(self.block(body), self.block(final))
            case ast.While(test=test, body=body, orelse=[]):
                leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
                return [ast.While(ast.Constant(True), [*self.statement(leave), *self.block(body)], [])]
            case ast.If(test=test, body=body, orelse=orelse):
                before, test = self._expression(test)
                return [*before, ast.If(test, self.block(body), self.block(orelse))]
            case ast.For(body=body):
                node.body = self.block(body)
                return [node]
            case ast.Return(value=value) if value is not None:  # kept where the explorer sees it
                assign = ast.Assign([ast.Name("_result", ast.Store())], value)
                return [*self.statement(assign), ast.Return(ast.Name("_result", ast.Load()))]
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=lock, attr="acquire"), args=[], keywords=[])
            ):
                return [ast.Expr(ast.Yield(lock)), node]
            case ast.Assign() | ast.AnnAssign() | ast.Expr():
                assert node.value is not None
                targets = [] if isinstance(node, ast.Expr) else _targets(node)
                before, node.value = self._expression(node.value, targets)
                return [*before, node]
            case ast.AugAssign(target=ast.Name(), value=ast.Constant()):
                return [node]
            case ast.Raise() | ast.Break() | ast.Continue() | ast.Return():
                return [node]
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _expression(
        self, value: ast.expr, targets: Sequence[ast.expr] = ()
    ) -> tuple[list[ast.stmt], ast.expr]:
        """The step before what is computed and assigned, if it needs one; and the expression, calls gone through."""
        text = ast.unparse(value)
        through = _Through(self.methods)
        made = through.visit(value)
        touches = _Touches()
        for each in (made, *targets):
            touches.visit(each)
        assert touches.count + through.count <= 1, f"touches shared things twice: {text}"
        return ([ast.Expr(ast.Yield(None))] if touches.count else []), made

    def _finally(self, body: list[ast.stmt], final: list[ast.stmt]) -> list[ast.stmt]:
        """try-finally; a generator that is given up does not go through the steps of the end."""
        text = "_given_up = False\ntry: pass\nexcept GeneratorExit:\n _given_up = True\n raise\nfinally:\n if not _given_up: pass"
        first, try_ = ast.parse(text).body
        assert isinstance(try_, ast.Try)
        try_.body = body
        guard = try_.finalbody[0]
        assert isinstance(guard, ast.If)
        guard.body = final
        return [first, try_]


@define
class _Through(ast.NodeTransformer):
    """`self.method(...)` becomes `(yield from self.method(...))`."""

    methods: set[str]
    count: int = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr in self.methods:
            self.count += 1
            return ast.YieldFrom(node)
        return self.generic_visit(node)


@define
class _Touches(ast.NodeVisitor):
    """Counts the places of an expression that touch what threads share: `a.b[i].c()` is one."""

    count: int = 0

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        assert isinstance(node.value, ast.Call)
        for argument in node.value.args:
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.count += node.attr not in FIXED | GUARDED


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _method(value: ast.expr, name: str) -> ast.Call:
    return ast.Call(ast.Attribute(value, name, ast.Load()), [], [])


# -- threads in every order


@define
class Scenario:
    """Threads that share `shared`. A thread yields None before a step, or what it waits for: a lock, or a condition.

    `check` holds in all states, `end` when all threads have ended. `alike`: the threads do the same, and what some
    of them reach, but not `shared`, is told apart by its content: then it does not matter which of them stands where.
    """

    threads: list[Thread]
    shared: list[Any]
    end: Callable[[], None]
    check: Callable[[], None] = lambda: None
    alike: bool = False
    waits: list[Any] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.waits = [next(thread) for thread in self.threads]

    def step(self, i: int) -> None:
        try:
            self.waits[i] = next(self.threads[i])
        except StopIteration:
            self.waits[i] = _ENDED

    def enabled(self) -> list[int]:
        return [i for i, wait in enumerate(self.waits) if _may_go(wait)]

    @property
    def ended(self) -> bool:
        return all(wait is _ENDED for wait in self.waits)

    def key(self) -> int:
        seen: dict[int, int] = {}
        shared = _frozen(self.shared, seen)
        if self.alike:
            return hash((shared, *sorted(hash(_stands(thread, dict(seen))) for thread in self.threads)))
        return hash((shared, *(_stands(thread, seen) for thread in self.threads)))


_ENDED = object()


def _may_go(wait: Any) -> bool:
    if wait is None:
        return True
    if wait is _ENDED:
        return False
    return not wait.locked() if isinstance(wait, LOCK) else bool(wait())


def _stands(thread: Any, seen: dict[int, int]) -> Any:
    """Where a thread stands, in each of the calls that it is in."""
    found: list[Any] = []
    while isinstance(thread, GeneratorType):
        frame: FrameType | None = thread.gi_frame
        if frame is None:
            break
        variables, code = (
            frame.f_locals,
            frame.f_code,
        )  # without those around it, which belong to what is shared
        found.append((id(code), frame.f_lasti))
        found += [(name, _frozen(variables[name], seen)) for name in code.co_varnames if name in variables]
        thread = thread.gi_yieldfrom
    return tuple(found)


def _frozen(value: Any, seen: dict[int, int]) -> Any:
    """All that can be reached from a value. An object met again is only numbered, so that who shares it shows."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, tuple):
        return _each(value, seen)
    if id(value) in seen:
        return -1, seen[id(value)]
    seen[id(value)] = len(seen)
    if kind is list or kind is deque:
        return kind is list, _each(value, seen)
    if kind is LOCK:
        return value.locked()
    if kind is set:
        return frozenset(value)
    if hasattr(value, "__dict__"):
        return "code" if callable(value) else _each(vars(value).values(), seen)
    if hasattr(value, "__slots__"):
        return _each([getattr(value, name) for name in value.__slots__ if name != "__weakref__"], seen)
    return kind.__name__  # code, or an iterator, which the variables of its loop tell of


def _each(values: Iterable[Any], seen: dict[int, int]) -> tuple[Any, ...]:
    """Several. Most are plain: half of the time was to ask for each of them."""
    return tuple([value if type(value) in PLAIN else _frozen(value, seen) for value in values])


@frozen
class Explored:
    """How much was looked at."""

    states: int
    steps: int
    ends: int

    def __str__(self) -> str:
        return f"{self.states} states, {self.steps} steps, {self.ends} ends"


def explore(make: Callable[[], Scenario], most: int = 1_000_000) -> Explored:
    """Runs a scenario, which `make` sets up anew, in every order.

    Raises: Violation where a check fails, a thread raises, or no thread can go on.
    """
    run = make()
    seen = {run.key()}
    path: list[int] = []
    left = [run.enabled()]
    steps = ends = 0
    fresh = True  # `run` stands where `path` leads
    while left:
        if not left[-1]:
            left.pop()
            if path:
                path.pop()
            fresh = False
            continue
        turn = left[-1].pop()
        if not fresh:
            run = make()
            for each in path:
                run.step(each)
            fresh = True
        path.append(turn)
        steps += 1
        try:
            run.step(turn)
            key = run.key()
            if key in seen:
                path.pop()
                fresh = False
                continue
            run.check()
            enabled = run.enabled()
            if not enabled:
                assert run.ended, "no thread can go on"
                run.end()
                ends += 1
        except Exception as error:
            turns = "".join(map(str, path))
            raise Violation(f"{type(error).__name__}: {error}; turns {turns}; {len(seen)} states") from error
        seen.add(key)
        assert len(seen) <= most, "too many states"
        left.append(enabled)
    return Explored(len(seen), steps, ends)
