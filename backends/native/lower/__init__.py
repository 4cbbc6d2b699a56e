"""Typed trees to LLVM: expressions, statements, functions, batches of firings."""
