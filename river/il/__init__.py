"""River IL: the annotated intermediate language (paper section 3.4, 4.2).

Nouns: `program` (what a `.river` text says), `graph` (what verification understood), `annotations`, `model`.
Verbs: `parse`, `pretty`, `templates`, `verify`, `erase`.
"""
