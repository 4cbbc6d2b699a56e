"""Select-from-where: the sublanguage of queries over relations. It is no language of its own: CQL builds on it.

Nouns: `syntax` (what a query says), `typed` (its relational algebra). Verbs: `parse` (a grammar module and its builder),
`check`. Paper: River section 3.5 (a language is composed of sublanguages).
"""
