"""Our languages keep what `river.testing.check_frontend` asks of any, on our examples and on texts that are nearly those."""

from __future__ import annotations

from pathlib import Path

import pytest

from river import plugins
from river.testing import check_frontend

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MORE = {
    "cql": (
        """
s: {ts: int; k: string; n: int} stream by ts;
v: relation = select distinct k, n from s[partition by k rows 2] where n > 0 or k <> 'a';
output w: {k: string; m: int} stream
  = istream(select v.k, max(s.n) from v, s[now] where v.k = s.k group by v.k having count(*) > 1);
""",
        "r: {at: time; k: int?} relation by at;\nq: {n: int; m: float?} relation = select count(k), avg(k) from r;\n",
    ),
    "sawzall": (
        """
best: table maximum(2)[k: string] of v: int weight w: float;
every: table collection of {k: string; n: int};
r: {k: string; ns: array of int} = input;
twice: function(x: int): int { return 2 * x; };
for (i := 0; i < len(r.ns); i++) {
  if (r.ns[i] > 3 && r.k != "") emit best[r.k] <- twice(r.ns[i]) weight float(i);
  else emit every <- {r.k, r.ns[i]};
}
""",
    ),
}


PARTS_OF_EACH = 3
"""Into how many parts the texts of a language go, each with a test of its own."""

TEXTS = {
    name: (*(path.read_text("utf-8") for path in sorted(EXAMPLES.rglob(f"*{suffix}"))), *MORE.get(name, ()))
    for name, suffix in ((name, plugins.frontend(name).suffix) for name in plugins.frontends())
}


PARTS = {
    f"{name}-{first}": (name, texts[first::PARTS_OF_EACH])
    for name, texts in TEXTS.items()
    for first in range(min(PARTS_OF_EACH, len(texts)))
}


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("part", PARTS)
def test_languages_keep_their_promises(part: str) -> None:
    name, texts = PARTS[part]
    check_frontend(plugins.frontend(name), texts, examples=12)
