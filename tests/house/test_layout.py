"""The repository keeps its own rules: where code is found, what it imports, what it is called."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("calculus", "river", "frontends", "optimizers", "backends")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FORBIDDEN = {"base", "common", "core", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
HEAVY = {"duckdb", "hypothesis", "llvmlite", "networkx", "numpy", "pandas", "pyarrow", "pyspark", "rich"}


def python(code: str, cwd: Path = ROOT) -> str:
    """What `code` prints in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_packages_resolve_inside_this_repository(tmp_path: Path) -> None:
    code = (
        f"import importlib\nfor name in {PACKAGES}:\n"
        "    try:\n        print(name, importlib.import_module(name).__file__)\n"
        "    except ImportError:\n        print(name, 'not found: run `pip install -e .`')"
    )
    found = dict(line.split(" ", 1) for line in python(code, cwd=tmp_path).splitlines())
    assert found == {name: str(ROOT / name / "__init__.py") for name in PACKAGES}


def test_what_is_declared_can_be_loaded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["scripts"], *project["entry-points"].values()]
    for value in (value for group in groups for value in group.values()):
        module, _, name = value.partition(":")
        assert hasattr(importlib.import_module(module), name), value


def test_imports_go_down_only() -> None:
    pytest.importorskip("importlinter")
    python("from importlinter.cli import lint_imports\nraise SystemExit(lint_imports(no_cache=True))")


def test_starting_up_imports_nothing_heavy() -> None:
    loaded = python("import river.cli.commands, river.lang.operations, sys\nprint(*sys.modules)").split()
    assert "river.cli" in loaded
    assert (HEAVY | {"importlib.resources"}).isdisjoint(loaded)


def test_a_run_from_the_cache_imports_nothing_that_reads_programs(tmp_path: Path) -> None:
    """What a text has become is kept, and so is its machine code: who runs it again waits for no language, pass or calculus.

    Nor for what makes machine code, nor, before results are asked for, for Arrow's packages.
    """
    (tmp_path / "log.csv").write_text("origin,target\na,b\na,c\n")
    (tmp_path / "counts.szl").write_text(
        "counts: table sum[string] of int;\nrow: { origin: string, target: string } = input;\n"
        "emit counts[row.origin] <- 1;\n"
    )
    code = (
        "import sys\nfrom river.cli import run\n"
        "sys.argv = ['river', 'run', 'counts.szl', '--in', 'row=log.csv', '--out', 'counts=out.csv']\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert not end.code\n"
        "import river\nresults = river.load('counts.szl').run({'row': 'log.csv'}, outputs={'counts': None})\n"
        "print(*sys.modules)\nassert results['counts'].to_pylist() == [{'key0': 'a', 'value': 2}]"
    )
    python(code, cwd=tmp_path)
    modules = python(code, cwd=tmp_path).split()
    assert (tmp_path / "out.csv").read_text() == "key0,value\na,2\n"
    assert {"backends.multicore", "backends.native.llvm"} <= set(modules)
    wholes = {"attr", "attrs", "calculus", "lark", "optimizers", *HEAVY}
    assert sorted(wholes & {name.partition(".")[0] for name in modules}) == []
    parts = (
        "frontends.sawzall.",
        "river.explain",
        "river.passes",
        "river.pictures",
        "river.testing",
        "river.tuning",
    )
    assert [name for name in modules if name.startswith(parts)] == []


@pytest.mark.slow
def test_large_files_and_tables_from_the_cache_import_little_besides(tmp_path: Path) -> None:
    """What a run imports before it reads, and before it writes, all workers wait for."""
    rows = "".join(f"origin-{i % 10_000},target\n" for i in range(300_000))
    (tmp_path / "log.csv").write_text(f"origin,target\n{rows}")
    (tmp_path / "counts.szl").write_text(
        "counts: table sum[string] of int;\nrow: { origin: string, target: string } = input;\n"
        "emit counts[row.origin] <- 1;\n"
    )
    code = (
        "import river, sys\n"
        "river.load('counts.szl').run({'row': 'log.csv'}, {'counts': 'out.csv'}, workers=2)\n"
        "print(*sys.modules)"
    )
    python(code, cwd=tmp_path)
    modules = python(code, cwd=tmp_path).split()
    assert (tmp_path / "out.csv").read_text().count("\n") == 10_001
    assert {"backends.multicore.partial", "backends.native.combine", "backends.native.ranking"} <= set(
        modules
    )
    spared = {"concurrent.futures", "gzip", "importlib.resources", "shutil", "wave"}
    spared |= {"backends.native.rtlang", "backends.native.row_order", "river.checkpoint", "river.restart"}
    assert sorted(spared & set(modules)) == []


def test_what_a_run_needs_is_imported_with_the_program(tmp_path: Path) -> None:
    """So a first run takes as long as the next. What few programs or files need is imported when they do."""
    (tmp_path / "log.csv").write_text("ts,origin,target\n1,a,b\n2,a,c\n")
    (tmp_path / "few.cql").write_text(
        "register stream log (ts int, origin string, target string);\nfew: select ts, origin from log where target = 'b';\n"
    )
    code = (
        "import river, sys\n"
        "program = river.load('few.cql')\n"
        "before = set(sys.modules)\n"
        "program.run({'log': 'log.csv'}, {'few': 'few.csv'})\n"
        "print(*sorted({n for n in sys.modules if n.startswith(('river', 'backends'))} - before))"
    )
    python(code, cwd=tmp_path)
    assert python(code, cwd=tmp_path).split() == []
    assert (tmp_path / "few.csv").read_text() == "tau,ts,origin\n1,1,a\n"


_PARQUET = (
    "import sys\nimport river\n"
    "sys.argv = ['river', 'run', 'big.cql', '--in', 's=s.parquet', '--out', 'big=big.parquet', '-q']\n"
)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("code", "numpy"),
    [
        ("try:\n    river.cli.run()\nexcept SystemExit as end:\n    assert not end.code", False),
        ("river.cli.main(sys.argv[1:], *[sys.stdin, sys.stdout, sys.stderr])", True),
        ("sys.argv += ['--extern', 'functions']\ntry:\n    river.cli.run()\nexcept SystemExit as end:\n    pass", True),
        ("river.load('big.cql').run({'s': 's.parquet'}, {'big': 'big.parquet'})", True),
    ],
)  # fmt: skip
def test_only_a_process_that_ends_with_its_command_has_arrow_without_numpy(
    tmp_path: Path, code: str, numpy: bool
) -> None:
    """It is most of what importing pyarrow takes, with what knows other machines. Who else is in the process may want it."""
    (tmp_path / "functions.py").write_text("def one():\n    return 1\n")
    (tmp_path / "big.cql").write_text(
        "s: { ts: int; n: int; name: string } stream by ts;\n"
        "big: stream by ts = select n, name from s where n > 1;\n"
    )
    rows = {"ts": [1, 2, 3], "n": [1, 2, 3], "name": ["a", "b", "c"]}
    parquet.write_table(pa.table(rows), tmp_path / "s.parquet")
    names = ("numpy", "pyarrow._s3fs", "ssl")
    found = python(
        f"{_PARQUET}import river.cli\n{code}\nprint(*(name in sys.modules for name in {names}))", cwd=tmp_path
    )
    assert found.split() == [str(numpy)] * len(names)
    assert parquet.read_table(tmp_path / "big.parquet").to_pydict() == {
        "ts": [2, 3],
        "n": [2, 3],
        "name": ["b", "c"],
    }


def test_a_file_is_open_before_what_plans_and_runs_is_imported(tmp_path: Path) -> None:
    """Its first rows are decoded meanwhile."""
    (tmp_path / "big.cql").write_text(
        "s: { ts: int; n: int } stream by ts;\nbig: stream = select n from s;\n"
    )
    parquet.write_table(pa.table({"ts": [1, 2], "n": [1, 2]}), tmp_path / "s.parquet")
    code = (
        f"{_PARQUET}import river.cli\ntry:\n    river.cli.run()\nexcept SystemExit:\n    print(*sys.modules)"
    )
    for _ in range(2):  # a text is read once; what it has become is kept
        modules = python(code, cwd=tmp_path).split()
    later = (
        "backends.multicore.plan",
        "backends.multicore.run",
        "backends.native.batch",
        "river.lang.operations",
    )
    assert all(modules.index("pyarrow.parquet") < modules.index(name) for name in later)


@pytest.mark.skipif(sys.platform != "linux", reason="it is done on Linux only")
@pytest.mark.parametrize(("before", "loaded"), [("", True), ("import pyarrow; ", False)])
def test_libraries_are_loaded_before_python_wants_them(before: str, loaded: bool) -> None:
    code = (
        f"import sys, threading\nfrom river.io import preload\n{before}"
        "from river.classes import evolve\nfrom river.platform import here\n"
        "preload.here = lambda: evolve(here(), cores=2)\npreload.preload()\n"
        "found = [each for each in threading.enumerate() if each.name == 'river-libraries']\n"
        "for each in found:\n    each.join()\n"
        "print(bool(found), 'libarrow.so' in open('/proc/self/maps').read())"
    )
    assert python(code).split() == [str(loaded), "True"]


def test_numbered_texts_are_taken_without_what_computes_on_arrow_data() -> None:
    """Parquet has texts as numbers, and to import that takes a third of what importing pyarrow does."""
    code = (
        "import struct, sys\nimport pyarrow as pa\nfrom backends.native.arrow import from_arrow\n"
        "from backends.native.jit import optimised\nfrom river.lang import types as t\n"
        "def array(kind, n, *parts):\n"
        "    return pa.Array.from_buffers(kind, n, [None, *map(pa.py_buffer, parts)])\n"
        "different = array(pa.string(), 2, struct.pack('3i', 0, 1, 14), b'aa longer text')\n"
        "numbers = array(pa.int32(), 3, struct.pack('3i', 1, 0, 1))\n"
        "texts = pa.DictionaryArray.from_arrays(numbers, different)\n"
        "with optimised(0):\n    found = from_arrow(t.STRING, pa.record_batch([texts], names=['value'])).values()\n"
        "print(found, 'pyarrow.compute' in sys.modules)"
    )
    assert python(code).strip() == "['a longer text', 'a', 'a longer text'] False"


def test_every_public_module_has_a_docstring() -> None:
    public = [path for path in MODULES if path.stem == "__init__" or not path.stem.startswith("_")]
    silent = [relative(path) for path in public if not path.read_text("utf-8").startswith(('"""', 'r"""'))]
    assert silent == []


def test_no_module_has_a_name_without_a_meaning() -> None:
    names = {relative(path): {path.stem, path.parent.name} for path in MODULES}
    assert [path for path, parts in names.items() if parts & FORBIDDEN] == []


def test_the_tests_are_not_a_package() -> None:
    """`tests/river/__init__.py` would make `river.test_x` of `tests/river/test_x.py`, and hide the real `river`."""
    assert [relative(path) for path in (ROOT / "tests").rglob("__init__.py")] == []
