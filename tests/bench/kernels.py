"""The programs that are measured without optimization, optimized and with annotations by hand, and what these are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

import river

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = Path(__file__).parent / "programs"


@frozen
class Bench:
    """A program, the kinds of data of its inputs, and how many rows they have.

    `hand`: annotations of operators and inputs; `passes` obey them, before the run. `gain`: what the second core is to give.
    `form`: in which outputs are written, `reads`: in which rows of inputs are, where these are no samples.
    """

    inputs: Mapping[str, str]
    rows: int
    hand: Mapping[str, str]
    passes: str = ""
    gain: float = 1.6
    options: Mapping[str, Any] = field(factory=dict[str, Any])
    form: str = "csv"
    reads: str = "csv"


BENCHES: Mapping[str, Bench] = {
    "network_monitor.river": Bench(
        {"requests": "visits"},
        30_000,
        {
            "by_server": "@Parallel(2) @Region(a, seqno, server)",
            "by_user": "@Parallel(2) @Region(b, seqno, user)",
        },
    ),
    "page_rank.river": Bench({"webs": "webs"}, 1, {"multiply": "@Parallel(2) @Region(a, round_robin)"}),
    "tweet_words.river": Bench(
        {"tweets": "tweets"}, 12_000, {"words_of": "@Parallel(2) @Region(a, seqno_marks)"}, form="jsonl"
    ),
    "tweet_patterns.river": Bench(
        {"lines": "documents"},
        6_000,
        {
            "parse": "@Parallel(2) @Region(a, seqno_marks)",
            "match": "@Parallel(2) @Region(b, seqno_marks, author)",
        },
    ),
    "finance.river": Bench(
        {"trades": "trades", "quotes": "quotes"},
        25_000,
        {
            "vwap": "@Parallel(2) @Region(a, seqno, sym)",
            "project": "@Parallel(2) @Region(b, round_robin)",
        },
        gain=1.3,
    ),
    "query_log.szl": Bench(
        {"query": "queries"},
        4_000_000,
        {
            "query": "@Region(a, combine)",
            "map": "@Region(a, combine) @Parallel(2)",
            "origins_sum": "@Region(a, combine) @Parallel(2)",
            "targets_sum": "@Region(a, combine) @Parallel(2)",
        },
    ),
    "count_changes.cql": Bench(
        {"requests": "requests"},
        2_000_000,
        {
            "range_changes_requests": "@Parallel(2) @Region(a, time_merge, origin)",
            "group_changes": "@Parallel(2) @Region(a, time_merge, origin)",
            "istream_changes": "@Parallel(2) @Region(a, time_merge, origin)",
        },
    ),
    "linear_road.cql": Bench(
        {"reports": "reports"},
        1_500_000,
        {
            "last_by_entries_reports": "@Parallel(2) @Region(a, time_merge, vid)",
            "istream_entries": "@Parallel(2) @Region(a, time_merge, vid)",
        },
        options={"expressways": 4},
    ),
    "fm_radio.str": Bench({"input": "samples"}, 16_000_000, {"*": "@Fuse(a)"}, passes="fusion"),
}


def annotated(program: str, bench: Bench) -> river.Compiled:
    """The program with the annotations that a person gives it, in place of those that say the same."""
    text = river.load(str(PROGRAMS / program)).text

    def told(use: re.Match[str]) -> str:
        hand = bench.hand.get(use["operator"], bench.hand.get("*", ""))
        said = use["said"] if not hand else re.sub(r"@Parallel\(\)\s*", "", use["said"])
        return f"{hand} {said}{use['left']} <- {use['operator']}("

    for name in bench.inputs:
        said = f"{bench.hand.get(name, '')} @Parallel(2) @Region(read_{name}, seqno) "
        text = re.sub(rf"^(?=(?:@\w+\([^()]*\)\s*)*input {name}:)", said, text, flags=re.MULTILINE)
    pattern = r"^(?P<said>(?:@\w+\([^()]*\)\s*)*)(?P<left>\([^()]*\)) <- (?P<operator>\w+)\("
    found, uses = re.subn(pattern, told, text, flags=re.MULTILINE)
    operators = [name for name in bench.hand if name != "*" and name not in bench.inputs]
    missing = [name for name in operators if f" <- {name}(" not in text]
    assert uses
    assert not missing, missing
    return river.compile(found, lang="river")
