"""Code that is made once: the runtime's parts, what waits for what between threads, and variables made by type."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from importlib import import_module
from threading import Barrier, Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native, shared
from backends.native.jit import machine_code
from backends.native.lower.batches import Lowered, lower
from backends.native.rtlang import compile_file, parsed
from backends.native.runtime_library import BASE, module_text, part, parts, runtime
from backends.native.shared import ModuleText, TreeTexts, compile_text, side_by_side
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.source import Source

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "define i64 @f(i64 %x) nounwind {{\n  %y = mul i64 %x, {0}\n  ret i64 %y\n}}\n"


def operator(text: str) -> typed.Operator:
    graph = verify(parse(Source("test.river", "river 1;\n" + text)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


@pytest.mark.parametrize("debug", [False, True])
def test_every_function_of_the_runtime_compiles(*, debug: bool) -> None:
    functions = runtime(debug=debug).functions
    text = module_text(each.text for each in functions.values() if not each.calls - functions.keys())
    assert text.count("\ndefine ") > 100
    assert ("\ndeclare i64 @deque" in text or "\ndeclare void @deque_grow(" in text) != debug
    if debug:
        assert parts(text) == {}


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_a_module_declares_what_it_calls(architecture: str) -> None:
    lowered = lower(
        operator(
            "input t: f64; output o: f64; operator f(t: f64) -> (o: f64) { on t(x) { emit o x * 0.5; } } (o) <- f(t);"
        ),
        architecture,
    )
    assert isinstance(lowered, Lowered)
    llvm: Any = import_module("llvmlite.binding")
    module = llvm.parse_assembly(lowered.text, llvm.create_context())
    module.verify()
    declared = {each.name for each in module.functions if each.is_declaration}
    assert {"guard", "table_grow"} < declared
    called = re.findall(r"call [^@\n]*@([\w.]+)\(", lowered.text)
    assert declared <= set(called), declared


def test_parts_define_what_modules_declare() -> None:
    functions = runtime().functions
    declared = {name: of for each in functions.values() for name, of in parts(each.text).items()}
    assert {"arena_close", "table_grow"} <= {name for name, of in declared.items() if of == BASE}
    for of in set(declared.values()):
        text, exports = part(of)
        assert set(exports) == {name for name, where in declared.items() if where == of}
        assert all(f"@{name}(" in text for name in exports)
        assert of == BASE or set(parts(text).values()) <= {BASE}, (
            "a part holds all that it calls but the base"
        )


SHARES = 6


@pytest.mark.some(2)
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_part_links(share: int) -> None:
    """A share of the parts: most are linked by tests of what they do, too."""
    found = {of for each in runtime().functions.values() for of in parts(each.text).values()}
    for of in sorted(found)[share::SHARES]:
        text, exports = part(of)
        names = set(parts(text)) - set(exports)
        code = compile_text(text, exports)
        assert set(code.addresses) == set(exports)
        assert names <= set(runtime().functions)


def test_conditions_of_constants_are_decided_when_a_file_is_compiled() -> None:
    functions = runtime().functions
    assert "debug_mark" not in functions["alloc"].calls
    assert "debug_mark" in runtime(debug=True).functions["alloc"].calls


def test_functions_are_compiled_when_they_are_wanted() -> None:
    unit = compile_file("columns.rt", runtime())
    assert unit.signatures["shifted"].result == "void"
    assert unit.functions["shifted"].text.startswith("define internal void @shifted(")
    assert unit.functions["shifted"].text is unit.functions["shifted"].text


def test_threads_make_the_same_code_as_one() -> None:
    texts = [MODULE.format(i) for i in range(3, 15)]
    alone = [machine_code(text) for text in texts]
    found: dict[int, bytes] = {}
    side_by_side(lambda i: found.__setitem__(i, machine_code(texts[i])), range(len(texts)), 4)
    assert [found[i] for i in range(len(texts))] == alone


def test_code_with_one_key_is_made_once() -> None:
    made: list[int] = []
    barrier = Barrier(4)

    def make() -> ModuleText:
        made.append(1)
        return ModuleText(MODULE.format(17), ("f",))

    def want(_: int) -> None:
        barrier.wait()
        assert shared.shared("test: one key", make).addresses["f"]

    side_by_side(want, range(4), 4)
    assert len(made) <= 1, "not at all if it is on disk already"


def test_code_with_another_key_does_not_wait() -> None:
    began, go = Event(), Event()

    def slow() -> ModuleText:
        began.set()
        assert go.wait(10)
        return ModuleText(MODULE.format(19), ("f",))

    key = f"test: slow {id(began)}"
    thread = Thread(target=shared.shared, args=(key, slow))
    thread.start()
    try:
        assert began.wait(10)
        assert compile_text(MODULE.format(23), ["f"]).addresses["f"]
        assert thread.is_alive()
    finally:
        go.set()
        thread.join()


def test_what_a_job_raises_is_raised() -> None:
    done: list[int] = []

    def job(number: int) -> None:
        if number == 3:
            raise KeyError(number)
        done.append(number)

    with pytest.raises(KeyError):
        side_by_side(job, range(8), 2)
    assert set(done) < set(range(8))
    assert side_by_side(str, [100], 2) == ["100"]
    assert side_by_side(str, range(9), 2) == list("012345678")


STARTED = """
from threading import Barrier, Thread
from backends.native import jit
barrier, found = Barrier(6), []
def start():
    barrier.wait()
    found.append(jit._linker())
threads = [Thread(target=start) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
assert len({id(each) for each in found}) == 1
"""


def test_llvm_is_started_once(tmp_path: Path) -> None:
    """Two linkers would be two owners of code, and the code of one would go with it."""
    subprocess.run([sys.executable, "-c", STARTED], check=True, cwd=tmp_path)


FAR = """
import ctypes
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from backends.native.jit import linked, machine_code, secrets
code = machine_code('''
@table = private constant [2 x i64] [i64 11, i64 22]
@SECRETS = external constant [4 x i64]
define i64 @f(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %p
  %q = getelementptr i64, ptr @SECRETS, i64 %i
  %y = load i64, ptr %q
  %z = xor i64 %x, %y
  ret i64 %z
}''')
UNUSED = 0x4000  # MAP_NORESERVE
try:
    walls = [mmap(-1, 4096 if i % 2 else 3 << 30, MAP_PRIVATE | MAP_ANONYMOUS | UNUSED, 0) for i in range(400)]
except OSError:
    raise SystemExit(77)
for hole in walls[1::2]:
    hole.close()
for i in range(300):
    f = linked(code, ("f",), {}).function("f", (ctypes.c_int64,), ctypes.c_uint64)
    assert f(1) == 22 ^ secrets[1], i
"""


@pytest.mark.skipif(sys.platform != "linux", reason="says how Linux reserves addresses")
def test_code_and_its_tables_lie_together(tmp_path: Path) -> None:
    """Where free memory is in holes far from each other, code still finds its constants and the secrets."""
    status = subprocess.run([sys.executable, "-c", FAR], check=False, cwd=tmp_path).returncode
    if status == 77:
        pytest.skip("so many addresses are not given here")
    assert status == 0


COUNT = """input t: string; output o: i64; var $n: f64 = 0.0; var $m: map<string, i64> = {};
operator f(t: string; $n: f64, $m: map<string, i64>) -> (o: i64) {
  on t(x) { with c = $m[x] else 0 { c = c + 1; emit o c; } $n = $n + 1.0; }
}
(o, $n, $m) <- f(t, $n, $m);"""


def test_instances_check_themselves_side_by_side() -> None:
    """Code for debugging is shared, too: threads that fire instances of one operator do not check each other's memory."""
    native = compile_native(operator(COUNT), debug=True)
    assert isinstance(native, NativeOperator)
    items = [f"key number {i % 40}" for i in range(400)]
    expected = [i // 40 + 1 for i in range(400)]
    found: list[bool] = []

    def work() -> None:
        for _ in range(20):
            again = native.again()
            (items_,), fired = again.fire_batch([items])
            found.append(fired.trap is None and items_ == expected)

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 60


def test_variables_begin_at_zero_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    native = compile_native(operator(COUNT))
    assert isinstance(native, NativeOperator)
    number, counts = native.variables
    with monkeypatch.context() as patch:
        patch.setattr("backends.native.operator._moves", None)
        number.set(0.0)
        counts.set({})
        (items,), _ = native.fire_batch([["a", "b", "a"]])
        number.set(0.0)
    assert items == [1, 1, 2]
    assert (number.get(), dict(counts.get())) == (0.0, {"a": 2, "b": 1})
    number.set(-0.0)
    assert str(number.get()) == "-0.0", "which is no zero of bytes"
    number.set(float("nan"))
    assert number.get() != number.get()
    number.set(0.0)
    assert str(number.get()) == "0.0"


@pytest.mark.slow
def test_texts_of_the_runtime_are_parsed_by_several_threads() -> None:
    """Python 3.11 counts how deep a tree is in one number for all threads, which change in a collection of garbage."""
    lines = [f"x{i} = (a + {i}) * (a - {i})\n" for i in range(200)]
    texts = ["".join(" " * k + "if True:\n" for k in range(deep)) for deep in range(4)]
    texts = [start + "".join(" " * deep + line for line in lines) for deep, start in enumerate(texts)]
    wrong: list[BaseException] = []

    def read(text: str) -> None:
        try:
            for _ in range(20):
                parsed(text)
        except SystemError as error:
            wrong.append(error)

    def collected(*_: object) -> None:
        sum(range(50))  # Python's own code: another thread may go on

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(collected)
    try:
        gc.set_threshold(20, 1 << 30)  # the youngest only, however much there is
        sys.setswitchinterval(1e-6)
        threads = [Thread(target=read, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.slow
@pytest.mark.usefixtures("others_are_no_garbage")
def test_the_text_of_a_tree_is_made_once_while_the_tree_lives() -> None:
    made: list[str] = []

    def text(tree: object) -> str:
        made.append(repr(tree))
        return made[-1]

    texts = TreeTexts(text)
    one, other, equal = literal(1), literal(2), literal(1)
    for _ in range(3):
        assert [*map(texts.of, (one, other, equal))] == [*map(repr, (one, other, equal))]
    assert made == [repr(one), repr(other), repr(one)]
    del one, other
    gc.collect()
    assert len(texts._known) == 1  # pyright: ignore[reportPrivateUsage]
    assert [texts.of(tree) for tree in [literal(n) for n in range(9)]] == [repr(literal(n)) for n in range(9)]
    assert len(made) == 12


def literal(value: int) -> typed.Literal:
    return typed.Literal(t.I64, value)
