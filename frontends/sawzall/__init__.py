"""River-Sawzall: a program for each record, and tables that gather what it emits (paper section 3.3, Figure 3 d).

Nouns: `syntax` (what a text says), `typed` (names resolved, types known), `operations` (operators and functions), `tables`
(kinds of tables). Verbs: `parse`, `check` (with `expressions`, `names`), `lower` (with `body`, `reduce`). The reducers are
templates, in `templates/*.river`, namespace `sawzall`.
"""

from __future__ import annotations

from river.frontend import Language

FRONTEND = Language("sawzall", ".szl", "frontends.sawzall")
