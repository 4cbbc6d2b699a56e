"""Everything that the documents show is true: commands print what stands below them, programs compile, files exist.

A document's blocks run in their order, in a folder of their own that has a copy of `examples/`:

    ```console              each line `$ command` runs; what stands below it is what it prints. `...` alone at the end:
                            and more. `river` runs in this process; `cat FILE` shows a file; `make`, `pip` and the like
                            are not run.
    ```python               one after the other, names live on through the document; a block that is a file is only written
    ```pycon                the same, with what Python answers
    ```cql                  (or another language, or `river`) a complete program: it is compiled. Not with `fragment`
                            behind the language.
    <!-- file: NAME -->     on the line above a block: its text is also a file; so does a paragraph that is only `NAME`:

A block with `spark` behind its language runs only in the test marked `spark`. `pytest --update-golden tests/house/test_docs.py`
writes below the commands what they print now, and the table of operations.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from attrs import define, field, frozen

from river import plugins
from river.cli import main
from river.diagnostics import Rejected
from river.driver import compile_source
from river.lang.operations import GROUPS
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("README.md")]
)
NOT_RUN = {"cd", "eval", "git", "make", "pip", "python", "source"}
FENCE = re.compile(r"```(?P<lang>\w*)[ ]?(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:<!-- file: (?P<hidden>\S+) -->\n|^`(?P<shown>[\w./-]+\.\w+)`:\n\n?)\Z", re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
ERROR = re.compile(r"^(\S+: )?error\[", re.MULTILINE)
SUMMARY = re.compile(r"^[\d,]+ items in .*\n", re.MULTILINE)
SECONDS = re.compile(r" +\d+\.\d\d s\b")


@frozen
class Block:
    """A fenced block: where its text stands in the document."""

    lang: str
    info: tuple[str, ...]
    text: str
    start: int
    line: int
    file: str | None


def blocks(document: str) -> Iterator[Block]:
    for found in FENCE.finditer(document):
        if found.start() and document[found.start() - 1] != "\n":
            continue
        named = FILE.search(document[: found.start()])
        yield Block(
            found["lang"],
            tuple(found["info"].split()),
            found["text"],
            found.start("text"),
            document.count("\n", 0, found.start("text")) + 1,
            None if named is None else named["hidden"] or named["shown"],
        )


@frozen
class Command:
    """A command of a console block, and what stands below it; `end` is where that begins."""

    text: str
    shown: str
    end: int
    line: int


def commands(block: Block) -> Iterator[Command]:
    lines = block.text.splitlines(keepends=True)
    i = 0
    while i < len(lines):
        assert lines[i].startswith("$ "), f"line {block.line + i}: a console block begins with `$ command`"
        first, text = i, lines[i][2:]
        while text.endswith("\\\n"):
            i += 1
            text = text[:-2] + " " + lines[i].strip() + "\n"
        i += 1
        below = i
        while i < len(lines) and not lines[i].startswith("$ "):
            i += 1
        end = block.start + sum(map(len, lines[:below]))
        yield Command(text.strip(), "".join(lines[below:i]), end, block.line + first)


@frozen
class Printed:
    status: int
    out: str
    err: str

    @property
    def ways(self) -> tuple[str, ...]:
        """What a document may show of it: with or without the diagnostics, never how long it took."""
        said = SUMMARY.sub("", self.err)
        return tuple(SECONDS.sub(" 0.00 s", text) for text in (self.out, said + self.out, self.out + said))

    def shows(self, text: str) -> bool:
        text = SECONDS.sub(" 0.00 s", text)
        if text == "...\n" or text.endswith("\n...\n"):
            return any(way.startswith(text.removesuffix("...\n")) for way in self.ways)
        return text in self.ways


def execute(text: str) -> Printed | None:
    """Runs a command in the current folder; None if it is one that is not run."""
    words = shlex.split(text, comments=True)
    if "|" in words:
        cut = words.index("|")
        assert words[cut + 1] == "head", f"only `| head -N` is understood: {text}"
        first = execute(shlex.join(words[:cut]))
        assert first is not None
        kept = "".join(first.out.splitlines(keepends=True)[: int(words[cut + 2].removeprefix("-"))])
        return Printed(first.status, kept, first.err)
    target = None
    if len(words) > 2 and words[-2] == ">":
        *words, _, target = words
    match words:
        case ["river", *argv] if (
            "--memory" in argv
        ):  # which is for a whole process, not for what these tests have
            done = subprocess.run(
                [sys.executable, "-m", "river", *argv],
                check=False,
                capture_output=True,
                text=True,
                timeout=300,
            )
            printed = Printed(done.returncode, done.stdout, done.stderr)
        case ["river", *argv]:
            out, err = io.StringIO(), io.StringIO()
            status = main(argv, io.StringIO(), out, err)
            printed = Printed(status, out.getvalue(), err.getvalue())
        case ["cat", *files]:
            printed = Printed(0, "".join(Path(file).read_text(encoding="utf-8") for file in files), "")
        case [first, *_]:
            assert first in NOT_RUN, f"`{first}` is not a command that documents may show"
            return None
        case _:
            raise AssertionError(f"no command: {text}")
    if target is not None:
        Path(target).write_text(printed.out, encoding="utf-8")
        printed = Printed(printed.status, "", printed.err)
    return printed


@define
class Reading:
    """A document being read: its faults, and the text that would be right."""

    path: Path
    text: str
    faults: list[str] = field(factory=list)
    edits: list[tuple[int, int, str]] = field(factory=list)
    names: ModuleType = field(factory=lambda: ModuleType("document"))

    def fault(self, line: int, what: str) -> None:
        self.faults.append(f"{self.path.relative_to(ROOT)}:{line}: {what}")

    def block(self, block: Block) -> None:
        if block.file is not None:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        match block.lang:
            case "console":
                for command in commands(block):
                    self.command(command)
            case "python" if block.file is None:
                self.python(block)
            case "pycon":
                self.dialogue(block)
            case lang if lang in (*plugins.frontends(), "river") and "fragment" not in block.info:
                try:
                    _ = compile_source(Source(f"{self.path.name}:{block.line}", block.text), lang).graph
                except Rejected as rejected:
                    self.fault(block.line, f"does not compile:\n{rejected}")
            case _:
                pass

    def command(self, command: Command) -> None:
        printed = execute(command.text)
        if printed is None:
            return
        wrong = ERROR.search(command.shown) is not None
        if (printed.status != 0) != wrong:
            self.fault(command.line, f"`{command.text}` ends with status {printed.status}:\n{printed.err}")
        elif command.shown and not printed.shows(command.shown):
            self.fault(command.line, f"`{command.text}` prints\n{printed.out}{printed.err}")
            said = "warning[" in command.shown or "remark[" in command.shown or wrong
            now = printed.ways[1] if said else printed.out
            self.edits.append((command.end, command.end + len(command.shown), now))

    def python(self, block: Block) -> None:
        script = Path(f".{self.path.stem}.py")
        script.write_text("\n" * (block.line - 1) + block.text, encoding="utf-8")
        try:
            vars(self.names).update(runpy.run_path(str(script), vars(self.names)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the document's fault
            self.fault(block.line, f"{type(error).__name__}: {error}")

    def dialogue(self, block: Block) -> None:
        found = doctest.DocTestParser().get_doctest(
            block.text, vars(self.names), self.path.name, None, block.line
        )
        report = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        runner.run(found, out=report.write, clear_globs=False)
        vars(self.names).update(found.globs)
        if runner.failures:
            self.fault(block.line, report.getvalue())

    def updated(self) -> str:
        text = self.text
        for start, end, now in sorted(self.edits, reverse=True):
            text = text[:start] + now + text[end:]
        return text


def read(path: Path, folder: Path, *, spark: bool) -> Reading:
    reading = Reading(path, path.read_text(encoding="utf-8"))
    shutil.copytree(ROOT / "examples", folder / "examples")
    beside = folder / path.parent.relative_to(ROOT)
    home = beside if path.parent.is_relative_to(ROOT / "examples") and _local(reading.text) else folder
    with contextlib.chdir(home):
        for block in blocks(reading.text):
            if spark or "spark" not in block.info:
                reading.block(block)
    return reading


def _local(text: str) -> bool:
    """Whether an example's commands are written for its own folder."""
    return "examples/" not in "".join(b.text for b in blocks(text) if b.lang in ("console", "python"))


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """No colours, no cache in the home folder, the path of modules as it was."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_document(path, tmp_path, pytestconfig, monkeypatch):
    quick = tuple(name for name in plugins.backends() if name != "spark")
    # `river check` without Spark, which takes its time to start
    monkeypatch.setattr(plugins, "backends", lambda: quick)
    reading = read(path, tmp_path, spark=False)
    if reading.edits and pytestconfig.getoption("--update-golden"):
        path.write_text(reading.updated(), encoding="utf-8")
        return
    assert not reading.faults, "\n".join(reading.faults) + "\nif that is right: pytest --update-golden"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if any("spark" in b.info for b in blocks(path.read_text(encoding="utf-8")))],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_the_blocks_on_spark(path, tmp_path):
    reading = read(path, tmp_path, spark=True)
    assert not reading.faults, "\n".join(reading.faults)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_files_that_a_document_names_exist(path):
    text = path.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", CODE.sub("", prose)) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
    quoted = re.findall(r"`((?:examples|docs|tests|river|frontends)/[\w./-]*\w)`", prose)
    assert [name for name in quoted if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_anchors_that_a_document_names_exist(path):
    text = path.read_text(encoding="utf-8")
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#([\w-]+)\)", CODE.sub("", FENCE.sub("", text))):
        if "://" not in link:
            target = (path.parent / link) if link else path
            heads = re.findall(r"^#+ (.*)$", FENCE.sub("", target.read_text(encoding="utf-8")), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{link}#{anchor}"


# ------------------------------------------------------------------------------------------ the table of operations

IL = ROOT / "docs" / "il.md"
BEGIN, END = (
    "<!-- operations: written by `pytest --update-golden tests/house/test_docs.py` -->\n",
    "<!-- end -->\n",
)
TITLES = {
    "arithmetic": "Arithmetic",
    "division": "Division",
    "bits": "Bits",
    "floats": "Floating point",
    "compare": "Comparison and logic",
    "convert": "Conversion",
    "times": "Time",
    "text": "Text",
    "regex": "Regular expressions",
    "sequences": "Lists, arrays, deques, strings",
    "lists": "Functions over lists",
    "maps": "Maps, ordered maps, bags",
    "sums": "Exact sums",
    "optionals": "Optional values",
}


CHANGES = " *(changes its first operand)*"


def table() -> str:
    lines: list[str] = []
    for module in GROUPS:
        lines += [f"### {TITLES[module.__name__.rpartition('.')[2]]}", ""]
        lines += ["| operation | meaning | traps | native |", "|---|---|---|---|"]
        for one in module.OPERATIONS:
            traps = "by type" if callable(one.traps) else ", ".join(one.traps)
            name, doc = (text.replace("|", "\\|") for text in (one.name, one.doc))
            lines.append(f"| `{name}` | {doc}{CHANGES if one.mutates else ''} | {traps} | {one.native} |")
        lines.append("")
    return "\n".join(lines)


def test_the_table_of_operations_is_that_of_the_checker(pytestconfig):
    text = IL.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, f"docs/il.md has no line {BEGIN}"
    assert end, f"docs/il.md has no line {END}"
    expected = head + begin + "\n" + table() + end + tail
    if text != expected and pytestconfig.getoption("--update-golden"):
        IL.write_text(expected, encoding="utf-8")
        return
    assert text == expected, "run `pytest --update-golden tests/house/test_docs.py`"


# ------------------------------------------------------------------------------------------------ the reader itself

DOCUMENT = """\
# A document
```console
$ river version | head -1
nothing like this
$ make demo
$ river compile nowhere.cql
error[missing-file]: there is no file `nowhere.cql`
  = help: it is sought from the folder in which River was started
```
<!-- file: a/b.txt -->
```text
hello
```
```console
$ cat a/b.txt
hello
$ cat \\
  a/b.txt > c.txt
$ cat c.txt
...
```
```cql
x: relation = select;
```
```cql fragment
select
```
```python
import math
x = 1 / 0
```
```pycon
>>> math.floor(2.5)
3
```
"""


def test_the_reader_finds_what_is_wrong_and_only_that(tmp_path):
    reading = Reading(ROOT / "docs/example.md", DOCUMENT)
    with contextlib.chdir(tmp_path):
        for block in blocks(DOCUMENT):
            reading.block(block)
    places = [re.match(r"docs/example.md:(\d+): ", fault) for fault in reading.faults]
    assert [int(place[1]) for place in places if place] == [3, 23, 29, 33]
    assert "river 0." in reading.updated().split("nothing like this")[0]
    assert "nothing like this" not in reading.updated()


def test_unknown_commands_are_refused():
    with pytest.raises(AssertionError, match="`rm` is not a command"):
        execute("rm -rf x")
