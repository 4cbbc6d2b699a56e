"""Regular expressions as automata of our own: the same tables serve the evaluator and machine code (il.md P6)."""
