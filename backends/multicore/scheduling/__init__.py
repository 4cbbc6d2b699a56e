"""Scheduling as a state machine: no thread, no lock of the machine and no clock are in here.

`task` is what is scheduled, `ready` the tasks that may run and the heuristics that order them, `scheduler` the machine itself:
events are its methods, decisions what these return or leave in `woken`. Threads call it under one mutex and obey
(`backends.multicore.dispatch`); tests call it in every order, and with a clock of their own.

Paper: River Fig. 2, §2.4; Ordered multicore (seed 001) §6.
"""
