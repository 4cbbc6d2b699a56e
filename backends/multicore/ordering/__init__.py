"""Several workers on one operator, its results in the order of its inputs.

`reorder` sends what concurrent firings made in the order of their serial numbers. `worklist` gives out the inputs of a
stateless operator, `hybrid` (and, to be compared with, `partitioned` and `shared`) those of a keyed one. `heuristics`
chooses the operator that a worker runs next.

No worker waits in here, but for the few instructions of a lock in `atomic`, and in the two schemes that the paper
compares with: `LockedReorder` and `SharedQueue`. One who gets nothing is told what to wait for, and leaves. A line that
touches what workers share touches it once, so that all interleavings of these very lines can be explored; what counts as
once is said in `atomic`.

Paper: Prasaad, Ramalingam, Rajan, Scaling Ordered Stream Processing on Shared-Memory Multicores.
"""
