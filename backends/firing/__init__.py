"""The rules by which an operator instance fires, in the evaluator and as machine code; used by multicore and Spark."""
