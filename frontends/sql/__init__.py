"""Select-from-where: the sublanguage of queries over relations. It is no language of its own: CQL builds on it.

Nouns: `syntax` (what a query says), `typed` (its relational algebra). Verbs: `parse` (a grammar module and its builder),
`check`. Paper: River section 3.5 (a language is composed of sublanguages).

`check` goes by parts of a block: `sources`, `select_list`, `order`, `joins` (`joined`, `pairs`, `bands`), `results`, `groups`.
These ask `expressions`, which finds the rule of an expression in a module of its topic: `operators`, `months`, `texts`, `lists`,
`choices`, `calls`, `casts`, `times`, and for aggregates `summaries`. The rules make `values`, which know their type.
"""
