"""The operator language: types, expressions, statements, operators; shared by the IL and by every frontend.

Nouns: `types`, `syntax` (what a text says), `typed` (what the checker understood), `values`, `operations` (the one
table of library operations). Verbs: `parse`, `pretty`, `check`, `evaluate`. Design: DESIGN.md, IL reference in docs/il.md.
"""
