"""What to write instead where a program is not understood: words of SQL's that CQL does not have, and those that are misspelt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from river.classes import evolve
from river.diagnostics import closest
from river.source import Span

if TYPE_CHECKING:
    from river.diagnostics import Diagnostic

WORDS = (
    "select", "distinct", "from", "where", "group", "having", "union", "except", "intersect", "join", "inner", "left", "right",
    "outer", "cross", "using", "stream", "relation", "output", "istream", "dstream", "rstream", "range", "unbounded", "partition",
    "slide", "order", "limit", "with", "between",
)  # fmt: skip
"""Words that are misspelt."""


LAST_WORD = r"\b([A-Za-z_]+)(?:\s+|\s*\(\s*(?:select\s+)?)$"

BEGUN = (
    (r"(?i)=\s*(merge)\s+$", "rows of a relation come and go by changes"),
    (r"(?i)=\s*(insert)\s+$", "it is a declaration of its own: `insert into v select ...;`"),
    (r"(?i)\b(if)\s*\([^{};]*$", "write `case when c then a else b end`"),
    (r"(?i)\b(overlay)\s*\([^()]*$", "write `left(s, 2) || 'x' || substring(s, 4)`"),
    (r"(?i)\b(date|time)\s+$", "write `timestamp '2026-01-31'`"),
    (r"(?i):\s*(row|struct)\s*[<(][^<>()]*$", "a record of fields is `{ lat: float; lon: float }`"),
    (r"(?i):\s*(decimal|numeric)\s*$", "say how many digits it has: `decimal(10, 2)`"),
    (r"(?i)\bfrom\b[^;]*\s(for)\s+$", "a query changes nothing: there is nothing to lock"),
    (r"(?i)\bselect\b[^;()]*,\s*(from)\b[^;()]*$", "behind the last item of the select list stands no `,`"),
    (
        r"(?im)(?:^|;)[ \t]*(stream|relation)\s+$",
        "write `register stream s (ts int, x int);`, or `s: { ts: int; x: int } stream by ts;`",
    ),
    (
        r"(?i)\bfrom\s+(select)\b[^;]*$",
        "a query after `from` stands in parentheses: `from (select ...) as t`",
    ),
    (r"(?i)\bfrom\b[^;()]*,\s*(where|group|having|order)\b[^;()]*$", "behind the last source stands no `,`"),
    (r"(?i)\b(with)\s+\w+\s*\(\s*select\s+$", "write `with a as (select ...)`"),
    (
        r"(?i)\bfrom\s+(pattern)\s*\[[^\]]*$",
        "there are no patterns over rows: join the stream with itself",
    ),
)
"""What SQL has of more than a word, as it stands before the place where it is not understood."""

INSTEAD = {
    "order": "`order by` stands last, before `limit`",
    "limit": "`limit n` stands last, with a whole number; the last rows of a stream are `[rows n]`",
    "offset": "`limit n offset m` stands last",
    "fetch": "`limit n` stands last",
    "lateral": "a query after `from` that reads the sources before it is `lateral (select ... where t.k = r.k)`",
    "over": "what it is over stands behind it: `over (partition by a order by b)`",
    "rows": "a window of the last rows is `from s[rows 10]`",
    "+": "a number is positive without a sign",
    "~": "it is written `regexp_like(s, 'pattern')`",
    "!~": "it is written `not regexp_like(s, 'pattern')`",
    "`": "a name in backquotes ends with another one",
    "#window": "windows stand in brackets behind a stream: `s[range 5 minutes]`",
    "distinct": "`union` alone is of different rows",
    "for": "a query changes nothing: there is nothing to lock",
    "glob": "it is written `regexp_like(s, 'pattern')`",
    "with": "`with q as (...)` stands before the query; several groupings are `group by rollup(a, b)`",
    "recursive": "a query cannot use itself",
    "unknown": "it is written `is null`",
    "apply": "a query that reads columns of the rows before it stands in an expression: `(select ...)`",
    "bernoulli": "rows are not sampled",
    "create": "it is a declaration of its own: `create view v as select ...;`",
    "delete": "rows of a relation go by changes with `-`",
    "update": "rows of a relation change by `-` and `+`",
    "output": "a relation tells its changes; at steps of time it is `[range n slide m]`",
    "timestamp": "the time stamp is declared with the stream: `s: {ts: time; ...} stream by ts;`",
    "within": "windows stand behind the sources: `a[range 1 hour] join b[range 1 hour] on ...`",
    "partition": "what is kept apart stands in brackets, `s[partition by k rows 3]`, or behind `over`",
    "zone": "times are UTC: add the offset, `t + interval '1' hour`",
    "emit": "a relation tells its changes; at steps of time it is `[range n slide m]`",
    "into": "the name of a result stands before its query: `name: stream = select ...;`",
    "match_recognize": "there are no patterns over rows: join the stream with itself",
    "pivot": "write a column for each value: `sum(x) filter (where k = 'a')`",
    "unpivot": "write a query for each column, and `union all`",
    "regexp": "it is written `regexp_like(s, 'pattern')`",
    "rlike": "it is written `regexp_like(s, 'pattern')`",
    "similar": "it is written `regexp_like(s, 'pattern')`",
    "symmetric": "write `between least(a, b) and greatest(a, b)`",
    "tablesample": "rows are not sampled",
    "top": "the first rows are `order by ... limit n`",
    "window": "windows stand behind the source, `s[range 5 minutes]`, or around it, `tumble(s, 5 minutes)`; `over` names none",
    "values": "rows that are written out stand in parentheses: `values (1, 'a'), (2, 'b')`",
}
"""Help at words that people know from SQL and from other kinds of CQL."""


ALIKE = 0.7
"""How like a word a name is at least for the word to be meant: names are often somewhat like one."""

_COMBINING = re.compile(r"(?i)\b(?:union|except|minus|intersect)\s*$")


def advised(found: Diagnostic) -> Diagnostic:
    """A word of SQL's that CQL does not have, with what does instead."""
    if found.span is None:
        return found
    plain = _plain(found, found.span)
    if plain is not None:
        return plain
    span, word = found.span, found.span.text.lower().partition(" ")[0]
    text = span.source.text
    before = re.search(LAST_WORD, text[: span.start])  # a word of SQL's may have been read as a name
    if word not in INSTEAD and before is not None and before[1].lower() in INSTEAD:
        span, word = Span(span.source, before.start(1), before.end(1)), before[1].lower()
        found = evolve(found, message=f"unexpected `{before[1]}`", span=span)
    for pattern, help_line in BEGUN:
        begun = re.search(pattern, text[: span.start])
        if begun is not None:
            where = Span(span.source, begun.start(), begun.end(1))
            return evolve(found, message=f"unexpected `{begun[1]}`", span=where, help=help_line)
    if word in INSTEAD and (word != "distinct" or _COMBINING.search(text[: span.start])):
        return evolve(found, help=INSTEAD[word])
    meant = before is not None and before[1].lower() not in WORDS and closest(before[1].lower(), WORDS, ALIKE)
    if before is not None and meant:  # it was read as a name
        where = Span(span.source, before.start(1), before.end(1))
        return evolve(found, message=f"unexpected `{before[1]}`", span=where, help=meant)
    meant = None if word in WORDS else closest(word, WORDS, ALIKE)
    return evolve(found, help=meant) if meant else found


_ITEM = re.compile(r"(?i)\bselect\b[^;]*[\w)\]]\s+(\w+)$")
_BEHIND = frozenset(
    {*WORDS, "and", "or", "not", "in", "as", "on", "by", "case", "when", "then", "else", "over", "filter"}
)
"""Words behind which no item ends."""


NEXT = re.compile(r"[\"`]?\w+[\"`]?\s*:(?!:)")
"""How a declaration begins."""


_SHAPES = (
    (
        r"(?i)(where|group|having|order|limit)\b",
        r"(?i)[:=]\s*([idr]stream)\s*\([^;]*\)\s*$",
        "it stands in the brackets: `#(select ... where ...)`",
    ),
    (
        r"(?i)(stream|relation)\b",
        r"(?:^|[;\n])[ \t]*(\w+)\s+$",
        "a declaration has a colon: `#: stream = select ...;`",
    ),
    (r"\[", r"\(\s*(\w+)\s*$", "with a window it is a query: `select * from #[...]`"),
    (r"-", r"(?i)\[[^\[\]]*\b(range|slide|rows|session)\s*$", "what stands behind `#` is not negative"),
    (r"\.[0-9]", r"(?i)\[[^\[\]]*\b(rows?|limit)\s+[0-9]+$", "`#` counts whole rows"),
    (
        r",",
        r"(?i)(\[[^\[\]]*\b(?:range|rows?|session)\b[^\[\]]*)$",
        "the parts of a window have no `,` between: `[range 5 slide 2]`",
    ),
    (
        r"\[",
        r"(\])\s*$",
        "a stream is seen through one window; a second one is of a query: `(select * from s[...]) [...]`",
    ),
    (r"&", r"&$", "conditions are joined by `and`"),
    (r"!(?!=)", r"", "the opposite of a condition is written `not c`"),
    (
        r"['\w]",
        r"(?i)[^<>=!](?:[<>=]|<>|!=|<=|>=)[^=<>;]*\|\|[^=<>;]*[=<>]\s*$",
        "`||` puts texts together: conditions are joined by `or`",
    ),
    (r"(?i)where\b", r"(?i)\b(group|having|order|limit)\b[^;()]*$", "`where` stands before `#`"),
    (r"(?i)group\b", r"(?i)\b(having|order|limit)\b[^;()]*$", "`group by` stands before `#`"),
    (r"[0-9]", r"\bfrom\b[^;]*\w\s*\[\s*$", "say what it is of: `[range 5 seconds]`, or `[rows 5]`"),
    (
        r"(?i)(tumbl|hop|slid)\w*",
        r"\[\s*$",
        "windows are `tumble(s, 10 seconds)`, `hop(s, 1 second, 10 seconds)` and `[range 10 seconds slide 1 second]`",
    ),
    (r",", r"(?i)\blimit\s+[0-9]+\s*$", "rows are left out by `limit n offset m`"),
    (r"=", r"(?:^|[;\n])\s*(\w+)\s*$", "a declaration has a colon: `#: select ...;`"),
    (
        r"\w",
        r"(?:^|[;\n])\s*(\w+)\s*:\s*\(\s*\w+\s+$",
        "columns stand in braces: `#: { ts: int; x: int } stream by ts;`",
    ),
    (
        r"\)",
        r"(?i)\bbetween\s+\w+\s+(?:preceding|following|row)\s*$",
        "a frame has two ends: `between unbounded preceding and current row`",
    ),
    (
        r"\*",
        r"(?i)\bcount\s*\(\s*distinct\s*$",
        "different rows are counted so: `select count(*) from (select distinct * from s)`",
    ),
    (r"\w", r"(?i)\b(exists)\s+$", "it asks for the rows of a query: `exists (select * from ...)`"),
    (
        r"(?i)[;)]|or\b|then\b|group\b|$",
        r"(?i)\b(between)\s+(?:(?!\band\b)[^;])*$",
        "it has two ends: `x between 1 and 2`",
    ),
    (
        r"\w",
        r"(?i)\b(interval)\s*'[^']*'\s*$",
        "units are `microsecond`, `millisecond`, `second`, `minute`, `hour`, `day`, `week`, `month`, `quarter` and `year`",
    ),
    (
        r"['0-9]",
        r"(?i)\b(is)\s+(?:not\s+)?$",
        "`is` asks for `null`, `true` or `false`; values are compared by `=`",
    ),
    (r"=>", r"(\w|\))\s*$", "greater or equal is written `>=`"),
    (r"<", r"(=)\s*$", "less or equal is written `<=`"),
    (r"\w", r"(?i)\b(using)\s+$", "its columns stand in parentheses: `using (k)`"),
    (r"\w", r"(?i)\b(order)\s+$", "it is written `order by x`"),
    (
        r"(?i)then\b",
        r"(?i)\b(case)\b(?![^;]*\bwhen\b)[^;]*$",
        "a condition stands behind `when`: `case when c then a else b end`",
    ),
    (
        r"\(",
        r"(?i)\b([idr]stream)\s*\(\s*[idr]stream\s*$",
        "what it is of is a relation, which a stream is none of: leave one of both out",
    ),
    (
        r"(?i)[,;)]|from\b|as\b",
        r"(?i)(?:\bselect|,)\s*(case|not|in|is|like|between|and|or|when|then|exists)\s*$",
        'as a name, a word of the language stands in double quotes: `"#"`',
    ),
)
"""What stands there and before it, and what is written instead, in which `#` is a part of what stands before."""


NEAR: Final = 2_000
"""Characters before a mistake that are looked at for a shape: to search long texts can take the square of their length."""


def _plain(found: Diagnostic, span: Span) -> Diagnostic | None:
    """A text that does not end, a `;` that is left out, and forms that look like declarations."""
    text, at = span.source.text, span.start
    if text.startswith("'", at) and "'" not in text[at + 1 :].partition("\n")[0]:
        return evolve(
            found,
            message="a text without an end",
            help="texts end with `'` on the line they begin, and have `''` for `'`",
        )
    before = re.sub(r"(--|//)[^\n]*", lambda comment: " " * len(comment[0]), text[:at])
    here = before.rstrip()
    begins = "\n" in before[len(here) :] and NEXT.match(text, at) is not None
    behind = re.search(r"\n[ \t]*[\"`]?\w+[\"`]?$", here) if text.startswith(":", at) else None
    if behind is not None:  # the name was read as one of what stands before it
        here = before[: behind.start()].rstrip()
    ended = found.code == "syntax-end" and "`;`" in (found.help or "")
    if (begins or behind is not None or ended) and here and here[-1] not in ";{":
        line = here.count("\n") + 1
        return evolve(found, help=f"put `;` at the end of line {line}: declarations end with it")
    pointed = text[at : at + 1] == "." and not text[at + 1 : at + 2].isdigit()
    item = _ITEM.search(before) if pointed or text[at : at + 1] == "(" else None
    if item is not None and item[1].lower() not in _BEHIND:
        return evolve(found, help=f"is there a `,` missing in front of `{item[1]}`?")
    if re.search(r"(?:^|;)\s*(\w+)\s*\(\s*\w+\s+$", before):
        columns = "columns are declared by `s: { ts: int; speed: int } stream by ts;`, or `create stream s (ts int, speed int);`"
        return evolve(found, help=columns)
    near = before[-NEAR:]
    for begins, ends, help_line in _SHAPES:
        there, shape = re.match(begins, text[at:]), re.search(ends, near)
        if there is not None and shape is not None:
            return evolve(found, help=help_line.replace("#", shape[1] if shape.re.groups else "#"))
    if text[at : at + 1] in tuple("+-*/") and re.search(r"(?i):\s*\(\s*select\b[^;]*\)\s*$", before):
        return evolve(
            found,
            help="a value that is made of queries is selected: `select (select ...) / (select ...) as x`",
        )
    return None
