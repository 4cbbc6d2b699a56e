"""Sawzall scripts that work on texts, from a file of lines to their tables: against CPython, Perl and mawk on one core.

Each job is a Sawzall script and the straightforward scripts that do the same in the other languages, where they are
installed; all give the same lines. Seconds of the processor. `river` is a later run in the same process, from the start of
reading to the answers written; `river, fresh` is a process from its start to its end, as the others are. The log has more than
16 MB: on a smaller one, code that has not run for a quarter of a second in all is not optimised yet (`backends.native.tiers`).

Run: python tests/bench/bench_sawzall.py [--lines N] [--runs N] [--jobs NAME,...]
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import measure
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "access_log"

WORDS = r"""
count: table sum[word: string] of n: int;
lines: table sum[words: int] of n: int;
line: string = input;
found := sawzall(line, `[A-Za-z]+`);
here: map[string] of int = {:};
for (i := 0; i < len(found); i++) {
  w := lowercase(found[i]);
  here[w] = lookup(here, w, 0) + 1;
}
k := keys(here);
for (i := 0; i < len(k); i++) emit count[k[i]] <- here[k[i]];
emit lines[len(k)] <- 1;
"""
FIELDS = r"""
sent: table sum[host: string][status: string] of { n: int, bytes: int };
line: string = input;
f := split(line, " ");
if (len(f) == 10 && f[9] != "") {
  n: int = 0;
  if (f[9] != "-") n = int(f[9], 10);
  emit sent[f[0]][f[8]] <- { 1, n };
}
"""
FORMAT = r"""
shown: table collection of line: string;
line: string = input;
f := split(line, " ");
if (len(f) == 10 && f[9] != "") {
  n: int = 0;
  if (f[9] != "-") n = int(f[9], 10);
  emit shown <- format("%-12s|%08d|%.2f|%s", f[0], n, float(n) / 1024.0, uppercase(f[6]));
}
"""
PYTHON_HEAD = r"""
import re, sys
from collections import Counter, defaultdict
"""
ACCESS_PYTHON = r"""
import heapq
pattern = re.compile(r'(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) ([^ "]+)[^"]*" ([0-9]{3}) ([0-9]+|-)$')
image, kind = re.compile(r"\.(png|gif|jpe?g)$"), re.compile(r"\.(\w+)$")
answers, hours, pages, images = defaultdict(lambda: [0, 0]), Counter(), Counter(), Counter()
clients, largest, malformed = set(), [], 0
for line in open(sys.argv[1], encoding="utf-8"):
    found = pattern.match(line.rstrip("\n"))
    if found is None:
        malformed += 1
        continue
    client, at, method, page, status, size = found.groups()
    sent = 0 if size == "-" else int(size)
    answer = answers[int(status)]
    answer[0] += 1
    answer[1] += sent
    hours[int(at[12:14])] += 1
    clients.add(client)
    if len(largest) < 3:
        heapq.heappush(largest, (sent, page))
    else:
        heapq.heappushpop(largest, (sent, page))
    if image.search(page):
        images[kind.search(page)[1]] += 1
    else:
        pages[page] += 1
for status, (count, sent) in answers.items(): print("answers", status, count, sent)
for hour, count in hours.items(): print("hours", hour, count)
for page, count in sorted(pages.items(), key=lambda p: (-p[1], p[0]))[:5]: print("pages", page, count)
for kind, count in images.items(): print("images", kind, count)
print("clients", len(clients))
for sent, page in largest: print("largest", page, sent)
print("malformed", malformed)
"""
ACCESS_PERL = r"""
while (<>) {
  chomp;
  if (!/^(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) ([^ "]+)[^"]*" ([0-9]{3}) ([0-9]+|-)$/) { $malformed++; next; }
  my ($client, $at, $page, $status, $sent) = ($1, $2, $4, $5, $6 eq "-" ? 0 : $6);
  $count{$status}++; $bytes{$status} += $sent;
  $hours{int(substr($at, 12, 2))}++;
  $clients{$client} = 1;
  if (@largest < 3) { @largest = sort { $a->[0] <=> $b->[0] || $a->[1] cmp $b->[1] } (@largest, [$sent, $page]); }
  elsif ($sent > $largest[0][0] || $sent == $largest[0][0] && $page gt $largest[0][1]) {
    $largest[0] = [$sent, $page]; @largest = sort { $a->[0] <=> $b->[0] || $a->[1] cmp $b->[1] } @largest; }
  if ($page =~ /\.(png|gif|jpe?g)$/) { $page =~ /\.(\w+)$/; $images{$1}++; } else { $pages{$page}++; }
}
print "answers $_ $count{$_} $bytes{$_}\n" for keys %count;
print "hours $_ $hours{$_}\n" for keys %hours;
my @best = sort { $pages{$b} <=> $pages{$a} || $a cmp $b } keys %pages;
print "pages $_ $pages{$_}\n" for @best[0 .. ($#best < 4 ? $#best : 4)];
print "images $_ $images{$_}\n" for keys %images;
print "clients ", scalar(keys %clients), "\n";
print "largest $_->[1] $_->[0]\n" for @largest;
print "malformed ", $malformed + 0, "\n";
"""
WORDS_PYTHON = r"""
count, lines, pattern = Counter(), Counter(), re.compile(r"[A-Za-z]+")
for line in open(sys.argv[1], encoding="utf-8"):
    here = {}
    for word in pattern.findall(line):
        word = word.lower()
        here[word] = here.get(word, 0) + 1
    for word in sorted(here): count[word] += here[word]
    lines[len(here)] += 1
for word, n in count.items(): print("count", word, n)
for words, n in lines.items(): print("lines", words, n)
"""
WORDS_PERL = r"""
while (<>) {
  my %here;
  while (/([A-Za-z]+)/g) { $here{lc $1}++; }
  my $k = 0;
  for (sort keys %here) { $count{$_} += $here{$_}; $k++; }
  $lines{$k}++;
}
print "count $_ $count{$_}\n" for keys %count;
print "lines $_ $lines{$_}\n" for keys %lines;
"""
WORDS_AWK = r"""
{ split("", here); k = 0;
  while (match($0, /[A-Za-z]+/)) {
    w = tolower(substr($0, RSTART, RLENGTH)); if (!(w in here)) k++; here[w]++; $0 = substr($0, RSTART + RLENGTH); }
  for (w in here) count[w] += here[w];
  lines[k]++; }
END { for (w in count) print "count", w, count[w]; for (k in lines) print "lines", k, lines[k]; }
"""
FIELDS_PYTHON = r"""
sent = defaultdict(lambda: [0, 0])
for line in open(sys.argv[1], encoding="utf-8"):
    f = line.rstrip("\n").split(" ")
    if len(f) == 10 and f[9]:
        found = sent[f[0], f[8]]
        found[0] += 1
        found[1] += 0 if f[9] == "-" else int(f[9])
for (host, status), (n, size) in sent.items(): print("sent", host, status, n, size)
"""
FIELDS_PERL = r"""
while (<>) {
  chomp;
  my @f = split / /, $_, -1;
  if (@f == 10 && $f[9] ne "") { my $k = "$f[0] $f[8]"; $n{$k}++; $b{$k} += $f[9] eq "-" ? 0 : $f[9]; }
}
print "sent $_ $n{$_} $b{$_}\n" for keys %n;
"""
FIELDS_AWK = r"""
{ m = split($0, f, / /); if (m == 10 && f[10] != "") { k = f[1] " " f[9]; n[k]++; b[k] += f[10] == "-" ? 0 : f[10]; } }
END { for (k in n) print "sent", k, n[k], b[k]; }
"""
FORMAT_PYTHON = r"""
out = sys.stdout
for line in open(sys.argv[1], encoding="utf-8"):
    f = line.rstrip("\n").split(" ")
    if len(f) == 10 and f[9]:
        n = 0 if f[9] == "-" else int(f[9])
        out.write("shown %-12s|%08d|%.2f|%s\n" % (f[0], n, n / 1024.0, f[6].upper()))
"""
FORMAT_PERL = r"""
while (<>) {
  chomp;
  my @f = split / /, $_, -1;
  if (@f == 10 && $f[9] ne "") { my $n = $f[9] eq "-" ? 0 : $f[9];
    printf "shown %-12s|%08d|%.2f|%s\n", $f[0], $n, $n / 1024, uc $f[6]; }
}
"""
FORMAT_AWK = r"""
{ m = split($0, f, / /); if (m == 10 && f[10] != "") { n = f[10] == "-" ? 0 : f[10] + 0;
  printf "shown %-12s|%08d|%.2f|%s\n", f[1], n, n / 1024, toupper(f[7]); } }
"""


@frozen
class Job:
    """A script, what its tables are called, and the same in other languages."""

    script: str
    tables: tuple[str, ...]
    peers: dict[str, str]


JOBS = {
    "access": Job(
        (EXAMPLE / "access.szl").read_text(),
        ("answers", "hours", "pages", "images", "clients", "largest", "malformed"),
        {"python": ACCESS_PYTHON, "perl": ACCESS_PERL},
    ),
    "words": Job(WORDS, ("count", "lines"), {"python": WORDS_PYTHON, "perl": WORDS_PERL, "mawk": WORDS_AWK}),
    "fields": Job(FIELDS, ("sent",), {"python": FIELDS_PYTHON, "perl": FIELDS_PERL, "mawk": FIELDS_AWK}),
    "format": Job(FORMAT, ("shown",), {"python": FORMAT_PYTHON, "perl": FORMAT_PERL, "mawk": FORMAT_AWK}),
}


def rows(folder: Path) -> set[str]:
    """What the tables hold, a line for each row as the other languages print it."""
    found: set[str] = set()
    for file in folder.glob("*.csv"):
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        found |= {f"{file.stem} {line.replace(',', ' ')}" for line in lines}
    return found


def in_river(job: Job, script: Path, file: Path, folder: Path) -> None:
    """Runs a script twice; prints the processor's seconds of the second run, and how often machine code called Python in it."""
    import river

    program = river.load(str(script))
    outs = {name: str(folder / f"{name}.csv") for name in job.tables}
    for _ in range(2):
        began = time.process_time()
        results = program.run({"input": str(file)}, outs, workers=1)
        took = time.process_time() - began
    print(took, sum(results.summary.host_calls.values()))


def made(file: Path, lines: int) -> None:
    """The access log of the example, longer."""
    log = runpy.run_path(str(EXAMPLE / "make_data.py"), {"ROWS": lines})
    log["lines"].__globals__["ROWS"] = lines
    file.write_text("".join(f"{line}\n" for line in log["lines"]()), encoding="utf-8")


def compare(name: str, job: Job, file: Path, folder: Path, runs: int) -> None:
    """Prints what each way took, and keeps both contests; ends the benchmark where answers differ."""
    script = folder / f"{name}.szl"
    script.write_text(job.script, encoding="utf-8")
    out = folder / f"{name}.out"
    out.mkdir()
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    again = [sys.executable, __file__, "--child", name, "--file", file, "--folder", folder]
    outs = [part for table in job.tables for part in ("--out", f"{table}={out / f'{table}.csv'}")]
    fresh = [
        sys.executable,
        "-m",
        "river",
        "run",
        script,
        "--in",
        f"input={file}",
        *outs,
        "--workers",
        "1",
        "--quiet",
    ]
    ways: dict[str, Callable[[], measure.Took]] = {
        "river": partial(measure.process, again, env=cache),
        "river, fresh": partial(measure.process, fresh, env=cache),
    }
    interpreters = {"python": sys.executable, "perl": shutil.which("perl"), "mawk": shutil.which("mawk")}
    for language, text in job.peers.items():
        peer = folder / f"{name}.{language}"
        peer.write_text((PYTHON_HEAD if language == "python" else "") + text, encoding="utf-8")
        if (path := interpreters[language]) is not None:
            flags = ["-f"] if language == "mawk" else []
            ways[language] = partial(measure.process, [path, *flags, peer, file])
    for way, run in ways.items():  # fills the caches
        if not measure.skipped(way):
            run()
    found = measure.rounds(ways, runs)
    fastest = {way: min(each, key=lambda took: took.cpu) for way, each in found.items()}
    warm = [float(took.told.split()[0]) for took in found["river"]]
    calls = found["river"][0].told.split()[1]
    wanted = rows(out)
    for way in set(ways) & set(job.peers):
        if not measure.skipped(way) and set(fastest[way].told.splitlines()) != wanted:
            sys.exit(f"{name}: {way} says something else")
    times = {"river": warm} | {
        way: [took.cpu for took in each] for way, each in found.items() if way != "river"
    }
    measure.record(name, {way: each for way, each in times.items() if way != "river, fresh"})
    measure.record(
        f"{name}, fresh",
        {way if way != "river, fresh" else "river": each for way, each in times.items() if way != "river"},
    )
    ours = min(warm)
    shown = "  ".join(f"{way} {min(each):.2f} s ({min(each) / ours:.1f})" for way, each in times.items())
    print(f"{name:8} {shown}  calls of Python {calls}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=250_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        name = given.child
        in_river(JOBS[name], given.folder / f"{name}.szl", given.file, given.folder / f"{name}.out")
        return
    measure.begin("Sawzall on texts, seconds of the processor, beside each how many times those of River")
    with TemporaryDirectory() as place:
        folder = Path(place)
        made(folder / "access.log", given.lines)
        for name in given.jobs.split(","):
            compare(name, JOBS[name], folder / "access.log", folder, given.runs)


if __name__ == "__main__":
    main()
