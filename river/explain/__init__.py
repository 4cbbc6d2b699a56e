"""What River knows of a program: facts about each operator, what is deterministic, what grows.

`explain` is pure; the command line shows its result as text or as JSON.
"""
