"""Faults that tests must find, each a small change of the program's text, and the test that finds it.

A fault stands for a mistake that somebody could make, or has made: whoever repairs a bug adds it here, with the test that came
with the repair. A test kills a fault if it passes without it, and fails with it by what it claims: not because something
cannot be imported, nor because time is over.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Mutant:
    """A fault: in `file`, `old`, which stands there once, becomes `new`; `test` finds it.

    `raises`: what the test raises where that is not its own claim but an error of the program that nobody expects.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    test: str
    raises: str = ""


_STEP: Final = "tests/calculus/test_calculus_step.py"
_OUTCOMES: Final = "tests/calculus/test_calculus_outcomes.py"
_EXPLORED: Final = "tests/backends/test_ordering_explored.py"
_IN_ORDER: Final = f"{_EXPLORED}::test_results_are_sent_once_and_in_order"
_AS_ONE: Final = f"{_EXPLORED}::test_a_keyed_operator_makes_what_one_worker_makes"
_SCHEDULED: Final = "tests/backends/test_scheduling_explored.py"
_CHECKPOINT: Final = "tests/backends/test_checkpoint.py"
_EPOCHS: Final = "tests/backends/test_spark_epochs.py"
_PARTS: Final = "tests/backends/test_parts.py"
_BAD: Final = "tests/frontends/test_sawzall_bad_data.py"
_COMBINE: Final = "tests/river/test_combine.py"
_TEXTS: Final = "tests/backends/test_native_texts.py"
_IN_BLOCKS: Final = "tests/backends/test_multicore_partial.py"

CALCULUS: Final = (
    Mutant(
        "queue-from-its-end",
        "a queue gives its last item away, not its first",
        "calculus/step.py",
        "queues[consumer.position] = queues[consumer.position][1:]",
        "queues[consumer.position] = queues[consumer.position][:-1]",
        f"{_STEP}::test_the_papers_execution",
    ),
    Mutant(
        "reader-and-writer-commute",
        "who reads a variable counts as independent of who writes it, so schedules are left out",
        "calculus/stubborn.py",
        "touched, touched_too = {*one.reads, *one.writes}, {*other.reads, *other.writes}",
        "touched, touched_too = {*one.writes}, {*other.writes}",
        f"{_OUTCOMES}::test_an_avoidable_fault_is_one_outcome_among_others",
    ),
    Mutant(
        "enablers-forgotten",
        "a queue that is empty now is not followed to who may fill it",
        "calculus/stubborn.py",
        "(self.dependents if queue in eligible else self.enablers)[queue] - closed",
        "(self.dependents[queue] if queue in eligible else frozenset()) - closed",
        f"{_OUTCOMES}::test_an_item_still_on_its_way_to_the_other_port_may_be_first",
    ),
    Mutant(
        "fault-hides-others",
        "after a firing that faults the other choices are not tried",
        "calculus/outcomes.py",
        "            self._end(Faulted(fault.info))\n            frame.widen()\n",
        "            self._end(Faulted(fault.info))\n",
        f"{_OUTCOMES}::test_each_fault_that_may_come_first_is_found",
    ),
    Mutant(
        "loop-hides-others",
        "around a loop the other choices are put off for ever",
        "calculus/outcomes.py",
        "                self.diverges = True\n                frame.widen()\n",
        "                self.diverges = True\n",
        f"{_OUTCOMES}::test_an_endless_loop_does_not_hide_a_fault_elsewhere",
    ),
    Mutant(
        "zeros-are-one",
        "0.0 and -0.0 get one number",
        "calculus/interning.py",
        "return (kind, value.hex())",
        "return (kind, value)",
        "tests/calculus/test_calculus_interning.py::test_numbers_are_finer_than_equality",
    ),
    Mutant(
        "two-consumers",
        "a queue may have two consumers",
        "calculus/wellformed.py",
        "if len(consumers) > 1:",
        "if len(consumers) > 2:",
        "tests/calculus/test_calculus_wellformed.py::test_each_rule_is_reported_alone",
    ),
    Mutant(
        "bag-without-counts",
        "a bag forgets how often an item occurs",
        "calculus/observe.py",
        "return cls(frozenset(Counter(items).items()))",
        "return cls(frozenset(dict.fromkeys(items, 1).items()))",
        "tests/calculus/test_calculus_observe.py::test_a_bag_counts_its_items",
    ),
)

ENGINE: Final = (
    Mutant(
        "variable-without-lock",
        "a shared variable that an instance does not use falls out of the partition",
        "backends/locks.py",
        "for part in (tuple(v for v in block if v in used), tuple(v for v in block if v not in used))",
        "for part in (tuple(v for v in block if v in used),)",
        "tests/backends/test_locks.py::test_every_shared_variable_is_under_exactly_one_lock",
    ),
    Mutant(
        "locks-in-own-order",
        "an instance takes its locks in the order of its variables, so two wait for each other",
        "backends/locks.py",
        "return tuple(i for i, variables in enumerate(locks) if not wanted.isdisjoint(variables))",
        "return tuple(next(i for i, own in enumerate(locks) if v in own) for v in reversed(list(used)) if any(v in own for own in locks))",
        "tests/backends/test_locks.py::test_locks_are_acquired_in_one_order",
    ),
    Mutant(
        "serial-given-twice",
        "the second input gets the number of the first",
        "backends/multicore/ordering/worklist.py",
        "self.given = serial + 1",
        "self.given = max(serial, 1)",
        _IN_ORDER + "[ReorderBuffer-{'serials': 3, 'capacity': 2}]",
    ),
    Mutant(
        "number-before-capacity",
        "a serial number is given out though there is no place for its result",
        "backends/multicore/ordering/worklist.py",
        "        if not self._order.admits(serial):\n            return Wait.NEXT\n",
        "",
        "tests/backends/test_ordering.py::test_a_worklist_gives_no_number_without_a_place_or_an_input",
    ),
    Mutant(
        "alone-while-another-drains",
        "a worker keeps the task while the sender of the last result is still draining",
        "backends/multicore/ordering/worklist.py",
        "        if back < self.given:\n            return False\n",
        "",
        _IN_ORDER + "[ReorderBuffer-{'serials': 3, 'capacity': 2, 'light': (1,)}]",
    ),
    Mutant(
        "alone-though-results-wait",
        "a worker keeps the task though results wait for room",
        "backends/multicore/ordering/worklist.py",
        "return self._order.next == self.given",
        "return True",
        "tests/backends/test_ordering.py::test_a_worker_is_alone_when_all_that_was_given_out_is_sent",
    ),
    Mutant(
        "result-comes-while-leaving",
        "who leaves the reorder buffer does not look whether a result came meanwhile",
        "backends/multicore/ordering/reorder.py",
        "            if self._slots[serial % self.capacity] is EMPTY:  # L40: did it come while the flag was set?\n                return True\n",
        "            return True\n",
        f"{_EXPLORED}::test_a_number_taken_before_capacity_is_a_deadlock",
    ),
    Mutant(
        "next-before-the-slot-is-free",
        "the slot of a result is given out again before it is empty",
        "backends/multicore/ordering/reorder.py",
        "                    self._slots[serial % self.capacity] = EMPTY  # L33, before that slot is given out again\n                    serial += 1\n                    self.next = serial  # L34\n",
        "                    self.next = serial + 1\n                    self._slots[serial % self.capacity] = EMPTY\n                    serial += 1\n",
        _IN_ORDER + "[ReorderBuffer-{'serials': 3, 'capacity': 1}]",
    ),
    Mutant(
        "what-failed-first-is-lost",
        "what was made before a failure is not sent",
        "backends/multicore/ordering/reorder.py",
        "                    if result.before is not NOTHING:\n                        self._send(result.before)\n                    self.failure = result.error\n",
        "                    self.failure = result.error\n",
        "tests/backends/test_ordering.py::test_nothing_is_sent_after_the_first_failure",
    ),
    Mutant(
        "partition-before-its-piece",
        "the master queue says that a piece is there before it is",
        "backends/multicore/ordering/hybrid.py",
        "        self._queues[partition].enqueue(piece)  # L4\n        self._master.enqueue(partition)  # L5\n",
        "        self._master.enqueue(partition)\n        self._queues[partition].enqueue(piece)\n",
        _AS_ONE + "[HybridQueue-{'batches': ['a', 'a', 'a']}]",
    ),
    Mutant(
        "two-own-a-partition",
        "a worker does not see that another fires the partition",
        "backends/multicore/ordering/hybrid.py",
        "if self._counts[partition].fetch_add() > 0:  # L10",
        "if self._counts[partition].fetch_add() > 1:",
        _AS_ONE + "[HybridQueue-{'batches': ['a', 'a'], 'most': 1}]",
    ),
    Mutant(
        "partition-fires-after-it-failed",
        "pieces behind one that failed fire, too",
        "backends/multicore/ordering/keyed.py",
        "if failure is None and part.partition not in self._failed:",
        "if True:",
        _AS_ONE + "[HybridQueue-{'batches': ['a', 'A', 'a'], 'capacity': 3}]",
    ),
    Mutant(
        "wake-up-lost",
        "input that came while a task ran does not make it ready again",
        "backends/multicore/scheduling/scheduler.py",
        "                if task.missed:\n                    self._queue(task)\n",
        "                pass\n",
        f"{_SCHEDULED}::test_nothing_is_lost_and_nobody_sleeps_for_ever[a reader that is blocked]",
    ),
    Mutant(
        "handed-out-to-nobody",
        "a worker that goes on with what it took out of a task wakes nobody for the rest",
        "backends/multicore/scheduling/scheduler.py",
        "            self._rouse(1, task.cores)\n            self._call(0, now)\n",
        "            pass\n",
        "tests/backends/test_scheduling_virtual.py::test_a_heavy_operator_without_state_takes_as_many_workers_as_there_are[4]",
    ),
    Mutant(
        "over-while-the-reader-sends",
        "after a trap the run is over though the reader has not sent all of its turn",
        "backends/multicore/scheduling/scheduler.py",
        "return self.reader is ReaderState.SENDING or (",
        "return (",
        f"{_SCHEDULED}::test_nothing_is_lost_and_nobody_sleeps_for_ever[a trap]",
    ),
    Mutant(
        "lock-taken-from-its-owner",
        "a task takes a lock that another one has",
        "backends/multicore/scheduling/scheduler.py",
        "            if lock.owner is not None:\n                lock.waiting.append(task)\n                return\n",
        "",
        f"{_SCHEDULED}::test_nothing_is_lost_and_nobody_sleeps_for_ever[locks]",
    ),
    Mutant(
        "room-forgotten",
        "room that was made while a task ran is not seen when it has found none",
        "backends/multicore/scheduling/scheduler.py",
        "if others or any(queue.room > 0 for queue in full):",
        "if others:",
        f"{_SCHEDULED}::test_nothing_is_lost_and_nobody_sleeps_for_ever[a line]",
    ),
    Mutant(
        "lock-not-taken",
        "an operator fires without the locks of its variables",
        "backends/multicore/tasks.py",
        "            return Outcome.LOCK if instance.ready() else Outcome.IDLE\n",
        "            pass\n",
        "tests/backends/test_multicore.py::test_operators_that_share_a_variable_fire_one_at_a_time",
    ),
    Mutant(
        "bound-off-by-one",
        "a queue holds one item more than its bound",
        "backends/firing/queues.py",
        "else self.bound - self.size\n",
        "else self.bound - self.size + 1\n",
        "tests/backends/test_multicore.py::test_a_bound_of_one_is_kept",
    ),
    Mutant(
        "sent-before-the-trap",
        "what a firing sent before it trapped stays",
        "backends/firing/instance.py",
        "            del elements[size:]\n",
        "            pass\n",
        "tests/backends/test_multicore.py::test_outputs_of_the_firing_that_traps_are_withdrawn[off]",
    ),
    Mutant(
        "early-items-sent-again",
        "a firing that is complete sends once more what it has sent early",
        "backends/firing/machine.py",
        "slice(self.sent, None)",
        "slice(0, None)",
        "tests/backends/test_early.py::test_the_rest_is_sent_when_the_window_is_complete[native]",
    ),
)

CHECKPOINTS: Final = (
    Mutant(
        "marks-lost-at-an-input",
        "a checkpoint does not keep the marks that wait between the items of an input",
        "backends/multicore/checkpoint.py",
        '"marks": [(at, mark.key) for at, mark in port.marks],',
        '"marks": [],',
        f"{_CHECKPOINT}::test_marks_that_wait_are_kept",
    ),
    Mutant(
        "marks-lost-in-a-queue",
        "a checkpoint does not keep the marks that wait in a queue",
        "backends/multicore/checkpoint.py",
        '"chunks": [self._chunk(found, type_, chunk) for chunk in chunks],',
        '"chunks": [self._chunk(found, type_, chunk) for chunk in chunks if not isinstance(chunk, Mark)],',
        f"{_CHECKPOINT}::test_marks_that_wait_are_kept",
    ),
    Mutant(
        "marks-of-an-output-forgotten",
        "a checkpoint does not keep which mark an output has sent",
        "backends/multicore/checkpoint.py",
        'out.marked = fields["outs"][out.queue.name]',
        "pass",
        f"{_CHECKPOINT}::test_marks_that_wait_are_kept",
    ),
    Mutant(
        "checksum-skipped",
        "a checkpoint with a wrong checksum is taken",
        "river/checkpoint.py",
        "if hashlib.sha256(body[:-_DIGEST]).digest() != body[-_DIGEST:]:",
        "if len(body[-_DIGEST:]) != _DIGEST:",
        f"{_CHECKPOINT}::test_the_checkpoint_before_a_damaged_one_is_used[value]",
    ),
    Mutant(
        "other-programs-state",
        "the state of another program is taken for this one's",
        "river/checkpoint.py",
        "if before.get(what) != json.loads(json.dumps(now)):",
        "if what not in before:",
        f"{_CHECKPOINT}::test_what_cannot_go_on_is_refused",
    ),
    Mutant(
        "state-shared-by-two-runs",
        "two runs may keep their state in one folder at once",
        "river/checkpoint.py",
        "            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            fcntl.flock(self._held, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
        f"{_CHECKPOINT}::test_a_folder_is_of_one_run_at_a_time",
    ),
    Mutant(
        "sent-before-it-is-certain",
        "items are sent although others of another input may come before them in a later part",
        "river/ingress/still.py",
        "        elif other.more and other.ended:\n",
        "        elif other.more and other.ended and other.last is None:\n",
        f"{_PARTS}::test_inputs_that_wait_for_each_other_are_merged_by_time[]",
    ),
    Mutant(
        "held-items-lost",
        "what was read in a part and could not be sent is forgotten",
        "backends/multicore/checkpoint.py",
        "found.put(self.graph.queues[n].type, items) for n, items in self.held.items()",
        "found.put(self.graph.queues[n].type, []) for n, items in self.held.items()",
        f"{_PARTS}::test_inputs_that_wait_for_each_other_are_merged_by_time[]",
    ),
    Mutant(
        "order-forgotten-between-epochs",
        "time stamps may go back from one epoch to the next",
        "backends/spark/sequels.py",
        "            reader.begin(0, 0, self.given)\n",
        "            reader.begin(0, 0, None)\n",
        f"{_EPOCHS}::test_what_is_wrong_ends_the_run_where_it_stands",
    ),
    Mutant(
        "epoch-left-out",
        "a run goes on behind an epoch whose manifest is gone",
        "backends/spark/continuous.py",
        "        if number != last.epoch + 1:\n",
        "        if number < last.epoch + 1:\n",
        f"{_EPOCHS}::test_what_is_missing_or_damaged_ends_the_run[last manifest gone]",
    ),
    Mutant(
        "late-attempt-kept",
        "the files of attempts that do not count stay",
        "backends/spark/manifests.py",
        "            return name not in known[epoch]\n",
        "            return False\n",
        f"{_EPOCHS}::test_late_attempts_do_no_harm_and_old_states_go",
    ),
    Mutant(
        "output-emptied-at-once",
        "an output that is there already is written in place",
        "river/io/atomic.py",
        "        if in_place or (final.exists() and not final.is_file()):\n",
        "        if in_place or final.exists():\n",
        "tests/river/test_io_roundtrip.py::test_an_output_appears_whole_or_not_at_all",
    ),
    Mutant(
        "living-part-removed",
        "the part of an output that another process writes is taken for stale",
        "river/io/atomic.py",
        "            if _claimed(files[0].fileno(), temporary):\n",
        "            if temporary.exists():\n",
        "tests/river/test_atomic.py::test_what_a_living_process_writes_is_left_alone",
    ),
)

DATA: Final = (
    Mutant(
        "doubled-quote-lost",
        "a doubled quote in a cell of CSV stays two",
        "river/io/delimited.py",
        "cells.append(cell.replace('\"\"', '\"') or EMPTY)",
        "cells.append(cell or EMPTY)",
        "tests/river/test_io_rows.py::test_the_scanner_agrees_with_the_csv_module",
    ),
    Mutant(
        "carriage-return-stays",
        "the last cell of a line that ends with CR LF keeps the CR",
        "river/io/delimited.py",
        'text[at:line].removesuffix("\\r")',
        "text[at:line]",
        "tests/river/test_io_rows.py::test_the_scanner_agrees_with_the_csv_module",
    ),
    Mutant(
        "lines-in-quotes-not-counted",
        "the lines inside a cell in quotes do not count for the places of errors",
        "river/io/delimited.py",
        '            self.line += text.count("\\n", at, end)\n',
        "            self.line += 1\n",
        "tests/river/test_io_rows.py::test_errors_have_their_place",
    ),
    Mutant(
        "two-columns-of-one-name",
        "the first of two columns of one name is read",
        "river/io/delimited.py",
        "elif header.count(name) > 1:",
        "elif header.count(name) > 2:",
        "tests/river/test_io_rows.py::test_a_column_that_is_there_twice_is_not_guessed",
    ),
    Mutant(
        "late-by-one",
        "a row that is as late as it may be is refused",
        "river/io/order.py",
        "if top is not None and now < top - self.lateness:",
        "if top is not None and now <= top - self.lateness:",
        "tests/river/test_io_order.py::test_order_is_that_of_the_definition",
    ),
    Mutant(
        "order-not-checked",
        "the time stamps of a batch may go back",
        "river/io/order.py",
        "if keys == sorted(keys) and (passed is None or passed <= keys[0]):",
        "if passed is None or passed <= keys[0]:",
        "tests/river/test_io_order.py::test_a_time_stamp_that_goes_back_stops_the_run_at_its_line",
    ),
)


FRONTENDS: Final = (
    Mutant(
        "place-without-parentheses",
        "a tree begins where its first part does, without what that part has around it",
        "river/lang/lalr.py",
        "begin = part.begin",
        "begin = part.start_pos",
        "tests/river/test_lalr.py::test_rules_of_each_kind",
    ),
    Mutant(
        "left-out-not-told",
        "nothing stands for what is left out at the end of a rule",
        "river/lang/lalr.py",
        "children += [None] * rule.missing",
        "children += []",
        "tests/river/test_lalr.py::test_rules_of_each_kind",
    ),
    Mutant(
        "keyword-in-a-word",
        "a keyword ends where a letter follows it",
        "river/lang/lalr.py",
        "word.end() > at",
        "word.end() > at + 1",
        "tests/river/test_lalr.py::test_rules_of_each_kind",
    ),
    Mutant(
        "window-one-tick-short",
        "a row leaves a range window one tick early",
        "frontends/cql/templates/range.river",
        "      let over = came + #span + #granule;\n",
        "      let over = came + #span;\n",
        "tests/frontends/test_cql_lower.py::test_a_window_speaks_when_it_lets_go",
    ),
    Mutant(
        "parser-known-by-its-text",
        "parsers of one column are the same for commas and for tabs",
        "backends/native/ingest/code.py",
        "{effort} {form.format} {form.delimiter} {source(form)}",
        "{effort} {source(form)}",
        "tests/backends/test_native_ingest_schemas.py::test_a_column_alone_ends_where_its_format_says",
    ),
    Mutant(
        "slide-before-the-first-instant",
        "when a row leaves is computed by way of a multiple that may lie before the first instant",
        "frontends/cql/templates/slide.river",
        "= t + #span + (#step - mod.floor(t + #span, #step));",
        "= t + #span - mod.floor(t + #span, #step) + #step;",
        "tests/properties/test_cql.py::test_windows_slide_from_the_first_instant_on",
    ),
    Mutant(
        "window-of-rows-one-too-many",
        "a window of n rows keeps n + 1",
        "frontends/cql/templates/rows.river",
        "      push_back($w, r);\n      if len($w) > #n { push(gone, pop_front($w)); }\n",
        "      push_back($w, r);\n      if len($w) > #n + 1 { push(gone, pop_front($w)); }\n",
        "tests/frontends/test_cql_lower.py::test_more_rows_in_an_instant_than_a_window_holds",
    ),
    Mutant(
        "distinct-goes-with-the-first",
        "a row that is there twice goes with its first copy",
        "frontends/cql/templates/distinct.river",
        "        if e.n == 0 {\n",
        "        if e.n <= 1 and len(x.del) > 0 {\n",
        "tests/frontends/test_cql_lower.py::test_a_distinct_row_goes_with_its_last_copy",
    ),
    Mutant(
        "distinct-sum-of-each-copy",
        "a value that is summed once leaves the sum with its first copy",
        "frontends/cql/templates/group.river",
        "if c == 0 { sub($a.f.sum, v); drop c; }",
        "sub($a.f.sum, v); if c == 0 { drop c; }",
        "tests/frontends/test_cql_aggregates.py::test_different_values_of_a_small_float_are_summed",
    ),
    Mutant(
        "quantile-on-one-side",
        "numbers that are too many below a quantile stay there",
        "frontends/cql/templates/functions.river",
        "  while q.below > wanted {\n",
        "  while q.below > wanted + 1 {\n",
        "tests/frontends/test_cql_aggregates.py::test_aggregates_say_at_every_instant_what_duckdb_says[False]",
    ),
    Mutant(
        "cql-part-without-number",
        "a row whose part is a float that is no number is not among its own",
        "frontends/cql/unnest.py",
        "return isinstance(kind, t.Optional) or t.contains(kind, *t.FLOATS)",
        "return isinstance(kind, t.Optional)",
        "tests/properties/test_cql_whole.py::test_what_is_no_number",
    ),
    Mutant(
        "cql-window-after-time",
        "a mark tells the window that ends with it, though no row says that time came so far",
        "frontends/cql/templates/tables.river",
        "if end > now or (end == now and not over) { break; }",
        "if end > now { break; }",
        "tests/frontends/test_cql_queries.py::test_a_window_that_ends_behind_the_last_row_is_not_told",
    ),
    Mutant(
        "instant-torn-apart",
        "a row is sent before its instant is over",
        "frontends/cql/borders.py",
        'over: s.Expr = s.Binary("<", s.Name("now"), at)',
        'over: s.Expr = s.Binary("<=", s.Name("now"), at)',
        "tests/frontends/test_cql_lower.py::test_time_stops_after_the_last_row",
    ),
    Mutant(
        "top-keeps-one-more",
        "a table of the n heaviest keeps n + 1",
        "frontends/sawzall/reduce.py",
        "s.Int(table.limit or 0)",
        "s.Int((table.limit or 0) + 1)",
        "tests/frontends/test_sawzall_run.py::test_top",
    ),
    Mutant(
        "maximum-keeps-one-fewer",
        "a table of the n greatest keeps n - 1",
        "frontends/sawzall/templates/extreme.river",
        "keep_last(e, #n);",
        "keep_last(e, #n - 1);",
        "tests/frontends/test_sawzall_run.py::test_maximum_and_minimum",
    ),
    Mutant(
        "maximum-from-below",
        "rows of maximum come out with the least first",
        "frontends/sawzall/reduce.py",
        "return reverse(rows);",
        "return rows;",
        "tests/frontends/test_sawzall_run.py::test_maximum_and_minimum",
    ),
    Mutant(
        "files-anywhere",
        "a program writes files outside of the folder that is named for them",
        "river/io/sent.py",
        "if path == root or root not in path.parents:",
        "if path == root:",
        "tests/frontends/test_sawzall_program.py::test_no_file_is_written_outside_of_the_folder",
    ),
    Mutant(
        "draws-repeat",
        "a record draws the same number again and again",
        "frontends/sawzall/values.py",
        's.Binary("+%", state, s.Int(1))',
        's.Binary("+%", state, s.Int(0))',
        "tests/frontends/test_sawzall_run.py::test_samples_are_even_and_weights_count",
    ),
    Mutant(
        "remembered-ahead",
        "state that holds an item to come begins with that item, too",
        "frontends/streamit/windows.py",
        "item.offset < 0",
        "item.offset < 9",
        "tests/frontends/test_streamit_windows.py::test_other_state_stays",
    ),
    Mutant(
        "a-try-counts",
        "a firing that asks for items changes the state before it has enough of them",
        "frontends/streamit/operators.py",
        "args += [s.Name(own.get(x, self.names[x])) for x in fields]",
        "args += [s.Var(self.names[x]) if x in own else s.Name(self.names[x]) for x in fields]",
        "tests/frontends/test_streamit_run.py::test_what_a_try_has_done_counts_only_with_enough_items",
    ),
    Mutant(
        "set-at-its-limit-is-over",
        "a set of just as many values as it may have counts as too large",
        "frontends/sawzall/templates/set.river",
        "if #n >= 0 and len(e.seen) > #n {",
        "if #n >= 0 and len(e.seen) >= #n {",
        "tests/frontends/test_sawzall_run.py::test_set_and_unique",
    ),
    Mutant(
        "assigned-fields-stay-out",
        "a field of a tuple with tags that was assigned to is not among its bytes",
        "frontends/sawzall/body.py",
        's.Binary("|", flags, s.Int(bit))',
        's.Binary("|", flags, s.Int(0))',
        "tests/frontends/test_sawzall_program.py::test_scripts_hold[messages.szl-reference]",
    ),
    Mutant(
        "unknown-tags-are-lost",
        "what a tuple with tags has no field for is not written again",
        "frontends/sawzall/messages.py",
        "return out + x.{type_.rest};",
        "return out;",
        "tests/frontends/test_sawzall_program.py::test_scripts_hold[messages.szl-reference]",
    ),
    Mutant(
        "skipped-variable-keeps-its-value",
        "a variable keeps its value where the assignment to it is skipped",
        "frontends/sawzall/body.py",
        "s.Assign(s.Name(changed), FALSE)",
        "s.Assign(s.Name(changed), TRUE)",
        "tests/frontends/test_sawzall_program.py::test_scripts_hold[skip.szl-reference]",
    ),
    Mutant(
        "possessive-gives-back",
        "a possessive quantifier gives back what comes next",
        "river/lang/patterns.py",
        "return [*rest[:i], Chars(_without(ranges, own)), *rest[i + 1 :]]",
        "return rest",
        "tests/river/test_patterns.py::test_possessive_quantifiers_give_nothing_back",
    ),
    Mutant(
        "rates-upside-down",
        "a filter behind one that gives more fires less often",
        "frontends/streamit/balance.py",
        "times = times * before.given / after.taken",
        "times = times * after.taken / before.given",
        "tests/frontends/test_streamit_check.py::test_a_steady_state_is_as_small_as_may_be",
    ),
    Mutant(
        "a-message-upstream-comes-late",
        "a message upstream is handled behind what another firing of the sender depends on",
        "frontends/streamit/messages.py",
        "return known(firing + least + (not down))",
        "return known(firing + least + 2 * (not down))",
        "tests/frontends/test_streamit_run.py::test_messages_are_handled_by_the_item",
    ),
    Mutant(
        "messages-that-come-twice",
        "messages are handled again at each list that is complete",
        "frontends/streamit/templates/message.river",
        "    emit y $held;\n    $held = [];\n    for",
        "    emit y $held;\n    for",
        "tests/frontends/test_streamit_run.py::test_a_loop_of_messages_is_one_region",
    ),
    Mutant(
        "lists-complete-too-soon",
        "the first firing of several completes the receiver's list",
        "frontends/streamit/lower.py",
        "before=s.Int(at)",
        "before=s.Int(0)",
        "tests/frontends/test_streamit_run.py::test_a_loop_of_messages_is_one_region",
    ),
    Mutant(
        "what-init-reads-is-left-out",
        "a field is computed without the statements of `init` on which others depend that it reads",
        "frontends/streamit/operators.py",
        "                needed.update(*map(read, code))\n",
        "",
        "tests/frontends/test_streamit_lower.py::test_of_init_runs_what_fields_depend_on",
        "KeyError",
    ),
    Mutant(
        "generators-in-step",
        "all filters that draw random numbers draw the same ones",
        "frontends/streamit/elaborate.py",
        "                    self.generators += 1\n",
        "",
        "tests/frontends/test_streamit_run.py::test_random_numbers_are_those_of_the_original_library",
    ),
    Mutant(
        "branch-that-piles-up",
        "branches that do not give what the joiner takes are accepted",
        "frontends/streamit/balance.py",
        "if turns is not None and turns != found:",
        "if False:",
        "tests/frontends/test_streamit_check.py::test_mistakes_are_told_at_their_place",
    ),
    Mutant(
        "bound-that-moves",
        "a loop whose bound looks at an item is counted as if taking some did not change that",
        "frontends/streamit/rates.py",
        "ty.Call in inside or (ty.Peek in kinds and ty.Pop in inside)",
        "ty.Call in inside",
        "tests/frontends/test_streamit_run.py::test_loops_whose_bounds_move",
    ),
)

PASSES: Final = (
    Mutant(
        "linear-comes-later",
        "linear filters that send their items one after the other become one that waits for all of them",
        "optimizers/linear.py",
        "costs > 0 and stream.at_once and fits",
        "costs > 0 and fits",
        "tests/optimizers/test_linear.py::test_what_would_come_later_is_left",
    ),
    Mutant(
        "linear-out-of-step",
        "behind a period, a linear filter's items are taken as those of the first one",
        "optimizers/linear.py",
        "terms = {(name, i + period * self.steps[name]): factor",
        "terms = {(name, i): factor",
        "tests/optimizers/test_linear.py::test_filters_behind_one_another_see_each_item_where_it_is",
    ),
    Mutant(
        "fission-of-a-loop",
        "an operator in a loop is replicated",
        "optimizers/fission.py",
        "if instance.index in graph.looping:",
        "if False:",
        "tests/optimizers/test_guards.py::test_fission_says_why_not",
    ),
    Mutant(
        "shards-in-a-loop",
        "state by key is dealt to shards though the operator feeds itself",
        "river/il/regions.py",
        "if instance.index in graph.looping:",
        "if False:",
        "tests/backends/test_multicore_keyed.py::test_keyed_state_in_a_loop_is_not_divided",
    ),
    Mutant(
        "shards-by-any-field",
        "a region is divided by fields that are not in the key of the state",
        "river/il/regions.py",
        "if stray := [key for key in keys if key not in names]:",
        "if stray := []:",
        "tests/backends/test_multicore_keyed.py::test_a_region_that_cannot_be_obeyed_is_a_remark",
    ),
    Mutant(
        "regions-over-groups",
        "operators of different groups are divided together",
        "river/il/regions.py",
        "if not one_group((before, instance)):",
        "if False:",
        "tests/backends/test_multicore_by_rows.py::test_what_may_be_divided_together",
    ),
    Mutant(
        "blocks-over-groups",
        "operators of different groups work on the same blocks of a file",
        "river/il/partial.py",
        "if not one_group((*first, instance)):",
        "if False:",
        "tests/backends/test_multicore_partial.py::test_what_is_in_another_group_does_not_work_on_the_same_blocks",
    ),
    Mutant(
        "groups-run-by-anybody",
        "tasks of operators in groups are run by any worker",
        "backends/multicore/assembly.py",
        "            task.cores = sets[plan.groups[group.id]]\n",
        "            pass\n",
        "tests/backends/test_multicore.py::test_operators_of_a_group_are_run_by_its_worker_and_those_of_none_by_any",
    ),
    Mutant(
        "improved-least-first",
        "code that hardly runs is optimised before what runs longest",
        "backends/native/tiers.py",
        "found = max(_KNOWN, key=_ran, default=None)",
        "found = min(_KNOWN, key=_ran, default=None)",
        "tests/backends/test_native_tiers.py::test_what_runs_longest_is_improved_first",
    ),
    Mutant(
        "lists-weigh-nothing",
        "an output is full by its items only, however many rows are in their lists",
        "backends/native/lower/firing.py",
        "for rows in (rows for tables in self._full.values() for rows in tables):",
        "for rows in (tables[0] for tables in self._full.values()):",
        "tests/backends/test_multicore_native.py::test_lists_that_firings_send_are_passed_on_before_they_are_many",
    ),
    Mutant(
        "rows-by-shard",
        "rows of one instant that shards sent stand shard by shard, not by their tags",
        "backends/native/runtime/deltas.rt",
        "if tags[at] > next:",
        "if tags[at] < 0:",
        "tests/backends/test_multicore_by_rows.py::test_what_is_dealt_and_put_together_is_as_before",
    ),
    Mutant(
        "shards-that-begin-late",
        "shards are not fired again on what came before the state was divided",
        "backends/multicore/by_rows.py",
        "if not self._again(noted):",
        "if not self._again(()):",
        "tests/backends/test_multicore_by_rows.py::test_order_inside_deltas_is_kept",
    ),
    Mutant(
        "tags-that-fall",
        "a list is filled for the rows of one side, and then for those of a side before it",
        "river/il/tagged.py",
        "before.last >= self.over[0]",
        "False",
        "tests/backends/test_multicore_by_rows.py::test_what_may_be_divided_by_rows",
    ),
    Mutant(
        "deletions-among-insertions",
        "what an operator of a region sends for rows that leave stands before what it sends for rows that come",
        "backends/multicore/by_rows.py",
        "behind(made, TAGS + depth)",
        "pass",
        "tests/backends/test_multicore_by_rows.py::test_a_chain_from_a_window_on_is_one_region",
    ),
    Mutant(
        "instants-that-shards-miss",
        "a window in a shard hears only of the instants at which rows of the shard come",
        "backends/native/deltas.py",
        "2 if self._lasting else int(shard == 0)",
        "int(shard == 0)",
        "tests/backends/test_multicore_by_rows.py::test_where_rows_may_stay_all_shards_get_all_instants_and_no_tag_comes_twice",
    ),
    Mutant(
        "rows-that-leave-twice",
        "an operator that sends a row while it stays in the deque is taken for one that sends rows as they leave",
        "river/il/carried.py",
        "and OPERATIONS[node.operation].mutates",
        "",
        "tests/backends/test_multicore_by_rows.py::test_what_only_keeps_rows_and_passes_them_on",
    ),
    Mutant(
        "regions-by-any-field",
        "operators are divided together by a field by which one of them does not keep rows apart",
        "river/il/regions.py",
        "if strangers := [name for name in keys if name not in found]:",
        "if strangers := list[str]():",
        "tests/backends/test_multicore_by_rows.py::test_what_may_be_divided_together",
    ),
    Mutant(
        "chains-measured-as-one",
        "a region is divided because it takes long, though its operators would share the time",
        "backends/multicore/by_rows.py",
        "wall * max(self._work) / work",
        "wall",
        "tests/backends/test_multicore_by_rows.py::test_a_chain_is_divided_only_if_the_run_would_wait_for_one_of_its_operators",
    ),
    Mutant(
        "fission-of-shared-state",
        "an operator that shares a variable is replicated",
        "optimizers/fission.py",
        "if len(users(graph, variable)) > 1:",
        "if len(users(graph, variable)) > 2:",
        "tests/optimizers/test_guards.py::test_fission_says_why_not",
    ),
    Mutant(
        "fission-of-a-full-map",
        "an operator is replicated though its map is not empty at first",
        "optimizers/fission.py",
        "return isinstance(variable.type, t.Map | t.OMap) and len(variable.initial) == 0",
        "return isinstance(variable.type, t.Map | t.OMap)",
        "tests/optimizers/test_guards.py::test_fission_says_why_not",
    ),
    Mutant(
        "unordered-before-who-looks",
        "a region sends in any order though who reads it sees the order",
        "optimizers/fission.py",
        "annotated(i.use).commutative and not i.operator.outs and not graph.queues[i.ins[0]].by for i in after",
        "not i.operator.outs and not graph.queues[i.ins[0]].by for i in after",
        "tests/optimizers/test_guards.py::test_how_fission_keeps_the_order",
    ),
    Mutant(
        "marks-from-every-replica",
        "an operator that sends marks of its own is replicated",
        "optimizers/fission.py",
        "if isinstance(op, typed.Operator) and any(found.marks for found in item_findings(op)):",
        "if False:",
        "tests/optimizers/test_guards.py::test_fission_says_why_not",
    ),
    Mutant(
        "fusion-across-a-border",
        "operators inside and outside of a parallel region are fused",
        "optimizers/fusion.py",
        'if _said(first.use, "Region") != _said(second.use, "Region"):',
        "if False:",
        "tests/optimizers/test_guards.py::test_fusion_says_why_not",
    ),
    Mutant(
        "fusion-of-two-groups",
        "operators that are placed in different groups are fused",
        "optimizers/fusion.py",
        "if len(groups) > 1:",
        "if len(groups) > 2:",
        "tests/optimizers/test_guards.py::test_fusion_says_why_not",
    ),
    Mutant(
        "group-given-twice",
        "what splits between two regions is in the group of its replica, and in that of the operators behind it",
        "optimizers/expand.py",
        "elif around.group is not None and not any(isinstance(each, a.Group) for each in said):",
        "elif around.group is not None:",
        "tests/optimizers/test_guards.py::test_what_takes_the_place_of_placed_operators_is_in_one_group",
    ),
    Mutant(
        "early-items-an-item-late",
        "of a steady state that is not complete a part is sent when one item more has come than it takes",
        "optimizers/playing.py",
        "early.append((width - 1, len(sent)))",
        "early.append((width, len(sent)))",
        "tests/optimizers/test_steady.py::test_a_steady_state_is_one_firing_and_computes_the_same[a part is sent early]",
    ),
)

_FUSION: Final = ("optimizers/fusion.py", "tests/optimizers/test_guards.py::test_fusion_says_why_not")
_RATED: Final = (
    "optimizers/rated.py",
    "tests/optimizers/test_zipping.py::test_what_does_not_keep_step_stays_apart",
)
_CIRCLES: Final = "optimizers/circles.py"
_LOOPS: Final = "tests/optimizers/test_loops.py::test_a_loop_that_became_one_operator_computes_the_same"
_ZIPPING: Final = (
    "optimizers/zipping.py",
    "tests/optimizers/test_zipping.py::test_what_is_not_the_same_stays_apart",
)
_SHARING: Final = (
    "optimizers/numbers.py",
    "tests/optimizers/test_sharing.py::test_what_may_differ_stays_two",
)


def _unguarded(
    where: tuple[str, str], name: str, what: str, old: str, new: str = "if False:", raises: str = ""
) -> Mutant:
    """A pass that does not ask for one of the conditions under which it is safe."""
    file, test = where
    return Mutant(name, what, file, old, new, test, raises)


GUARDS: Final = (
    Mutant(
        "loop-in-small-rings", "what waits in a loop has half the room that it takes", _CIRCLES,
        "1 << max(most - 1, 0).bit_length()", "1 << max(most - 2, 0).bit_length() // 2", _LOOPS, "Rejected",
    ),
    Mutant(
        "loop-without-what-waits", "what is enqueued in a loop is zero", _CIRCLES,
        "s.Index(s.Name(const), s.Name(i))", "s.Call('zero', ())", _LOOPS,
    ),
    Mutant(
        "loop-that-goes-round-once", "a loop is not gone round again until nobody can fire", _CIRCLES,
        "fired = s.Assign(s.Name(busy), s.Bool(True))", "fired = s.Assign(s.Name(busy), s.Bool(False))", _LOOPS,
    ),
    _unguarded(
        _FUSION, "fusion-of-externs", "operators without text are fused",
        "if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):", raises="AttributeError",
    ),
    _unguarded(
        _FUSION, "fusion-of-a-circle", "operators that feed one another are fused",
        "if first.index == second.index or first.index in successors(graph, second):",
    ),
    _unguarded(
        _FUSION, "fusion-around-a-path", "operators are fused though another path leads from one to the other",
        "if not only and not convex(graph, {first.index, second.index}):",
    ),
    _unguarded(
        _FUSION, "fusion-of-shared-state", "operators that share a variable are fused",
        "if shared := [v for v in first.variables if v in second.variables]:", "if shared := list[str]():",
    ),
    _unguarded(
        _FUSION, "fusion-of-who-reads-in-turns", "an operator that reads in turns is fused with who is behind it",
        "if one.merge is None and not one.items:",
    ),
    _unguarded(
        _FUSION, "fusion-of-who-waits", "an operator that waits for several inputs is fused with who feeds it",
        "if not other.items:",
    ),
    _unguarded(
        _FUSION, "fusion-of-stated-rates", "operators that state how many items they send are fused",
        "if any(out.push is not None for out in (*one.outs, *other.outs)):",
    ),
    _unguarded(
        _FUSION, "fusion-beside-an-ordered-input", "an operator with another input, in order, is fused with who feeds it",
        "if own and ordered:",
    ),
    _unguarded(
        _FUSION, "fusion-of-two-orders", "an operator that waits for marks on two queues is fused with who feeds both",
        "if len(linked) > 1 and any(port.by is not None for port in linked):",
    ),
    _unguarded(
        _RATED, "rated-behind-items", "who takes several items is fused with who sends one by one",
        "if one.rated is None:", raises="AttributeError",
    ),
    _unguarded(
        _RATED, "rated-with-a-beginning", "operators are fused of which one begins with another firing", "if op.first is not None:", raises="ValueError"
    ),
    _unguarded(
        _RATED, "rated-with-marks", "operators with windows are fused though they have an order",
        "if op.mark is not None or any(end.by is not None for end in (*op.ports, *op.outs)):",
    ),
    _unguarded(
        _RATED, "rated-of-any-number", "who sends any number of items at once is fused with who takes some",
        "if count is None:", raises="TypeError",
    ),
    _unguarded(
        _RATED, "rated-with-a-tail", "who has items to begin with is fused with who feeds it", "if other.ports[port].initial:"
    ),
    _unguarded(_RATED, "rated-looks-ahead", "who looks ahead is fused with who feeds it", "if rate.peek != rate.pop:"),
    _unguarded(
        _RATED, "rated-out-of-step", "operators are fused that send and take different numbers of items",
        "if rate.pop != count and (len(linked) > 1 or not repeats(first, second)):"
    ),
    _unguarded(
        _RATED, "rated-outputs-wait", "outputs wait for another operator's input", "if len(linked) < len(one.outs):"
    ),
    _unguarded(
        _RATED, "rated-variables-wait", "variables wait for another operator's input",
        "if any(param.written for param in one.vars):",
    ),
    _unguarded(_RATED, "rated-traps-wait", "traps wait for another operator's input", "if may_trap(one):"),
    _unguarded(
        _ZIPPING, "zipping-in-a-loop", "turns are dealt by others inside a loop",
        "if {first.index, second.index} & graph.looping:",
    ),
    _unguarded(
        _ZIPPING, "zipping-across-a-border", "turns are dealt across the border of a region", "if one.regions != other.regions:"
    ),
    _unguarded(
        _ZIPPING, "zipping-of-two-groups", "turns are dealt across groups",
        "if one.group is not None and other.group is not None and one.group != other.group:",
    ),
    _unguarded(
        _ZIPPING, "zipping-of-what-is-to-fuse", "turns are dealt by who is to be fused with others",
        "if one.fuse is not None or other.fuse is not None:",
    ),
    _unguarded(
        _ZIPPING, "zipping-for-an-extern", "an operator without text is to take turns",
        'if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):\n        return f"the body of `{reader',
        'if False:\n        return f"the body of `{reader', raises="AttributeError",
    ),
    _unguarded(_ZIPPING, "zipping-own-names", "a join goes though it has names of its own", "if one.consts or one.fns:"),
    _unguarded(
        _ZIPPING, "zipping-unread", "a join goes though it never reads one of its inputs",
        "if {phase.port for phase in turn} != set(range(len(one.ports))):", raises="KeyError",
    ),
    _unguarded(
        _ZIPPING, "zipping-with-a-tail", "a join goes though who reads it has items to begin with", "if other.ports[port].initial:"
    ),
    _unguarded(
        _ZIPPING, "zipping-with-a-beginning", "a join goes though the first firing of who reads it is another one",
        "elif other.first is not None:", "elif False:",
    ),
    _unguarded(
        _ZIPPING, "zipping-out-of-step", "a join goes though who reads it does not take whole turns",
        "if any(pop % len(turn) for pop in pops) or not any(pops):",
    ),
    _unguarded(
        _ZIPPING, "zipping-wide", "windows of any width are put together from turns", "if max(*peeks, len(turn)) > MOST:"
    ),
    _unguarded(
        _ZIPPING, "zipping-behind-a-loop", "a join goes that would never have told of its end", "if _endless(graph, join, reader):"
    ),
    _unguarded(
        _ZIPPING, "dealt-by-an-extern", "an operator without text is to deal in turns",
        'if isinstance(one, typed.Extern) or isinstance(other, typed.Extern):\n        return f"the body of `{sender',
        'if False:\n        return f"the body of `{sender', raises="AttributeError",
    ),
    _unguarded(
        _ZIPPING, "dealt-to-nobody", "a split goes though it never sends to one of its outputs",
        "if {_out(phase) for phase in turn} != set(range(len(other.outs))):",
    ),
    _unguarded(
        _ZIPPING, "dealt-behind-a-tail", "a split goes though it has items to begin with", "if other.ports[0].initial:"
    ),
    _unguarded(
        _ZIPPING, "dealt-in-order", "a split goes behind an operator that acts on order",
        "if one.merge is not None or one.mark is not None or any(port.by is not None for port in one.ports):",
    ),
    _unguarded(
        _ZIPPING, "dealt-any-number", "a split goes behind who sends any number of items",
        "if any(count is None for count in counts):",
    ),
    _unguarded(
        _ZIPPING, "dealt-out-of-step", "a split goes behind who does not send whole turns", "if count is None or count % len(turn):"
    ),
    _unguarded(
        _ZIPPING, "dealt-beside-the-rate", "a split goes behind who does not send what it states",
        "if push is not None and any(count != push for count in counts):",
    ),
    _unguarded(
        _ZIPPING, "dealt-long", "turns of any length are written out",
        "if len(turn) > MOST else None", "if False else None",
    ),
    _unguarded(
        _SHARING, "sharing-of-externs", "two externs become one", "if isinstance(op, typed.Extern):", raises="AttributeError"
    ),
    _unguarded(
        _SHARING, "sharing-of-promises", "operators become one of which different things are said",
        "if directives(one.use) != directives(other.use):",
    ),
    _unguarded(_SHARING, "sharing-of-replicas", "two replicas become one", "if annotated(one.use).regions:"),
    _unguarded(
        _SHARING, "sharing-of-chance", "operators become one that take items as they come", "if len(op.items) > 1:"
    ),
    _unguarded(_SHARING, "sharing-of-results", "two operators that write become one", "if param.written:"),
    _unguarded(
        _SHARING, "sharing-of-what-is-written", "operators become one though others write what they read",
        "if any(_writes(graph, index, name) for name in (mine, theirs) for index in users(graph, name)):",
    ),
    _unguarded(
        _SHARING, "sharing-of-other-beginnings", "operators become one whose variables begin differently",
        "if initial[mine] != initial[theirs]:",
    ),
    Mutant(
        "sharing-with-many", "the duplicates that many readers need all read the stream itself", "optimizers/sharing.py",
        "yield Use(group, self.duplicate(queue, len(group)), (made,))",
        "yield Use(group, self.duplicate(queue, len(group)), (source,))",
        "tests/optimizers/test_sharing.py::test_many_readers_are_fed_by_a_tree",
    ),
    Mutant(
        "placement-of-shared-state", "operators that share a variable are placed apart", "optimizers/placement.py",
        "if len(stated) > 1:", "if False:", "tests/optimizers/test_guards.py::test_placement_says_why_not",
    ),
)  # fmt: skip

NATIVE: Final = (
    Mutant(
        "scan-given-up-too-late",
        "a repetition takes what must stand behind it: a pattern is scanned whose steps the next byte does not decide",
        "river/lang/automata/direct.py",
        "if low != high and (first.bytes & then.bytes or (then.free",
        "if low != high and ((then.free",
        "tests/river/test_direct.py::test_what_is_left_to_the_automaton",
    ),
    Mutant(
        "kept-list-on-the-stack",
        "a list that is kept counts as one that is only looked at, and is written over",
        "backends/native/lower/fleeting.py",
        "named = (each for slot, made in uses.made.items() if slot not in uses.kept for each in made)",
        "named = (each for made in uses.made.values() for each in made)",
        "tests/backends/test_native_scanning.py::test_which_lists_are_only_looked_at",
    ),
    Mutant(
        "moved-and-borrowed",
        "a list is not copied though a name borrows an item of it",
        "backends/native/lower/moves.py",
        "return here > 1 or later or any(_names(node, used.slot) for node in nodes(lets))",
        "return here > 1 or later",
        "tests/backends/test_native_moves.py::test_what_is_moved",
    ),
    Mutant(
        "half-rounded-up",
        "a number halfway between two texts of so many digits is rounded up, not to the even one",
        "backends/native/runtime/formats.rt",
        "if rest > half or (rest == half and odd == 1):",
        "if rest >= half:",
        f"{_TEXTS}::test_numbers_in_forms",
    ),
    Mutant(
        "one-separator-of-many",
        "of the separators in 32 bytes of a text only the first one counts",
        "backends/native/runtime/times.rt",
        "found = found & (found - 1)",
        "found = 0",
        f"{_TEXTS}::test_texts_are_parted_and_put_together",
    ),
    Mutant(
        "text-steps-inner",
        "a text is gone through 8 bytes at a time, and what is left begins in the middle of a code point",
        "backends/native/runtime/text.rt",
        "        if p[i] & -64 != -128:\n            return text_walk(p, n, i, count)\n        i += 1\n",
        "        if i >= 0:\n            return text_walk(p, n, i, count)\n        i += 1\n",
        f"{_TEXTS}::test_parts_of_texts",
        raises="UnicodeDecodeError",
    ),
    Mutant(
        "text-length-inner",
        "bytes above 191 are taken for the inner ones of a code point",
        "backends/native/runtime/text.rt",
        "    return (w >> 7) & ((w >> 6) ^ -1) & ONES\n",
        "    return (w >> 7) & ONES\n",
        f"{_TEXTS}::test_parts_of_texts",
    ),
    Mutant(
        "short-text-before-long-one",
        "where one of two texts ends in a view and the other one goes on, their lengths are forgotten",
        "backends/native/runtime/text.rt",
        "    if m == n:\n        return 0\n    return -1 if m < n else 1",
        "    return 0",
        f"{_TEXTS}::test_texts_in_order",
    ),
    Mutant(
        "text-decided-early",
        "texts whose first bytes are equal count as decided, so what stands behind those does not sort",
        "backends/native/runtime/rank.rt",
        "if text == 1 and (w & 255) != GOES:",
        "if text == 1:",
        "tests/backends/test_native_views.py::test_rows_stand_in_the_total_order",
    ),
    Mutant(
        "view-of-the-first-shard",
        "of a map that several workers keep, only the first part's rows are shown",
        "backends/multicore/variables.py",
        "return tuple(whole.parts) or (whole.variable,)",
        "return tuple(whole.parts[:1]) or (whole.variable,)",
        "tests/backends/test_multicore_views.py::test_tables_that_several_workers_keep",
    ),
    Mutant(
        "lowest-number-negated",
        "machine code does not trap where the lowest number is negated",
        "backends/native/lower/arithmetic.py",
        """else f"icmp eq {kind} {a}, {BOUNDS[type_][0]}"\n""",
        """else f"icmp eq {kind} {a}, {BOUNDS[type_][1]}"\n""",
        "tests/backends/test_native_operations.py::test_an_operation_on_all_its_types[neg]",
    ),
    Mutant(
        "floor-rounds-to-zero",
        "machine code rounds div.floor towards zero",
        "backends/native/lower/arithmetic.py",
        """        fix = b.op(f"and i1 {inexact}, {signs}")\n""",
        """        fix = b.op(f"and i1 {inexact}, false")\n""",
        "tests/backends/test_native_operations.py::test_an_operation_on_all_its_types[div.floor]",
    ),
    Mutant(
        "unsigned-compared-as-signed",
        "machine code compares u64 as numbers with a sign",
        "backends/native/lower/arithmetic.py",
        'sign = "u" if type_ in (t.U64, t.BOOL) else "s"',
        'sign = "u" if type_ == t.BOOL else "s"',
        "tests/backends/test_native_operations.py::test_an_operation_on_all_its_types[<]",
    ),
    Mutant(
        "shifted-by-the-width",
        "machine code does not trap where a number is shifted by as many bits as it has",
        "backends/native/lower/arithmetic.py",
        'f.b.op(f"icmp uge {kind} {n}, {bits}"), "shift-range"',
        'f.b.op(f"icmp ugt {kind} {n}, {bits}"), "shift-range"',
        "tests/backends/test_native_operations.py::test_a_shift_by_the_width_is_too_far",
    ),
    Mutant(
        "nan-equals-numbers",
        "machine code takes a number and NaN for equal where it puts them in order",
        "backends/native/derived/ordering.py",
        "{b.op(f'and i1 {known[0]}, {unknown[1]}')}",
        "false",
        "tests/backends/test_native_operations.py::test_an_operation_on_all_its_types[compare]",
    ),
    Mutant(
        "all-rows-taken-for-one-shard",
        "rows are left as they lie though they are of two shards",
        "backends/native/deal.py",
        "return all(end in (0, rows) for end in ends)",
        "return ends[-1] == rows",
        "tests/backends/test_native_deal.py::test_rows_go_where_their_key_says_and_come_back",
    ),
)

SPARK: Final = (
    Mutant(
        "counts-of-the-last-task",
        "the counts of a stage are those of one of its tasks",
        "backends/spark/report.py",
        "        found.fired += report.fired\n",
        "        found.fired = report.fired\n",
        "tests/backends/test_spark_stages.py::test_counts_are_those_of_the_calculus",
    ),
    Mutant(
        "left-out-silently",
        "items that a task leaves out are told to nobody",
        "backends/spark/report.py",
        "        found.passed += report.passed\n",
        "",
        "tests/backends/test_spark_stages.py::test_items_that_trap_are_left_out_where_that_is_wanted",
    ),
    Mutant(
        "last-trap-of-all",
        "of several traps in a stage the last is told, not the first",
        "backends/spark/run.py",
        "raise min(traps, key=lambda caught: _serial(stage, caught)).trap",
        "raise max(traps, key=lambda caught: _serial(stage, caught)).trap",
        "tests/backends/test_spark_stages.py::test_the_first_trap_is_told_as_by_the_calculus",
    ),
    Mutant(
        "windows-of-a-part",
        "an operator on windows of items is given the items of some keys",
        "backends/spark/keys.py",
        "case Stateless() if isinstance(instance.operator, typed.Operator) and instance.operator.items:",
        "case Stateless():",
        "tests/backends/test_spark_frames.py::test_by_which_columns_an_input_is_divided",
    ),
    Mutant(
        "time-of-some-keys",
        "for the rows of some keys time ends with them",
        "backends/spark/files.py",
        "until=max(ends, default=None))",
        "until=errand.until)",
        "tests/backends/test_spark_files.py::test_rows_that_meet_by_key_are_sent_to_one_task",
    ),
    Mutant(
        "unfinished-appends-are-dropped",
        "files that a killed process had begun to add to a folder are removed, though some of them are there",
        "river/io/folders.py",
        "if hidden.parent == place and (hidden / _WHOLE).is_dir():",
        "if hidden.parent != place and (hidden / _WHOLE).is_dir():",
        "tests/river/test_folders.py::test_whoever_is_killed_leaves_all_or_nothing",
    ),
    Mutant(
        "empty-files-are-taken",
        "files without rows are taken into a folder, too",
        "river/io/folders.py",
        "full = [path for path, rows in found if rows]",
        "full = [path for path, _ in found]",
        "tests/river/test_folders.py::test_files_of_others_are_taken_and_those_that_come_late_are_not",
        raises="Rejected",
    ),
    Mutant(
        "time-begins-with-each-file",
        "of several files of an input, each may begin before the end of the one before",
        "river/io/several.py",
        "given = given if member.ordering is None else member.ordering.given",
        "given = None",
        "tests/river/test_several.py::test_time_goes_on_from_one_file_to_the_next",
    ),
    Mutant(
        "time-of-columns-begins-with-each-file",
        "the same where machine code reads them",
        "backends/native/ingest/several.py",
        "            reader.begin(0, 0, before)\n",
        "",
        "tests/river/test_several.py::test_time_goes_on_from_one_file_to_the_next",
    ),
    Mutant(
        "modules-in-a-zip-are-files",
        "a module of one file is looked for on the disk, also where it is in a zip file",
        "river/lang/tables.py",
        "    except NotADirectoryError:\n        return _archive(path)",
        "    except FileNotFoundError:\n        return _archive(path)",
        "tests/river/test_verified.py::test_packages_in_a_zip_file_have_versions_too",
        raises="NotADirectoryError",
    ),
    Mutant(
        "rows-counted-for-each-output",
        "the rows of a file are counted as often as they are read",
        "backends/spark/direct.py",
        "sum(telling.rows for telling in jobs[0])",
        "sum(telling.rows for telling in tellings)",
        "tests/backends/test_spark_files.py::test_executors_read_parts_of_files",
    ),
)


IL: Final = (
    Mutant(
        "merge-does-not-wait",
        "a merge fires though an input may still bring a smaller key",
        "river/il/erase.py",
        "if key is None or not all(p in heads or _beyond(p, key, progress) for p in handler.ports):",
        "if key is None:",
        "tests/river/test_erase.py::test_a_merge_waits_until_no_input_can_undercut_it",
    ),
    Mutant(
        "window-does-not-slide",
        "a rated handler takes its whole window away, not what it pops",
        "river/il/erase.py",
        "items = _put(items, rate.port, items[rate.port][rate.pop :])",
        "items = _put(items, rate.port, items[rate.port][rate.peek :])",
        "tests/river/test_erase.py::test_rated_handlers_slide_over_their_tail",
    ),
    Mutant(
        "keys-may-fall",
        "an item whose key is below the last one is taken",
        "river/il/erase.py",
        "if (mark is not None and key < mark) or (last is not None and key < last):",
        "if mark is not None and key < mark:",
        "tests/river/test_erase.py::test_what_comes_too_late_is_refused",
    ),
    Mutant(
        "rate-not-kept",
        "a firing may send another number of items than it states",
        "river/il/erase.py",
        'raise Fault((self.name, None, "rate-violation", consumed))',
        "pass",
        "tests/river/test_erase.py::test_the_stated_rate_holds",
    ),
    Mutant(
        "shared-variable-is-deterministic",
        "two operators with one variable count as deterministic by construction",
        "river/il/verify.py",
        "        if len(users) > 1:\n            shown = ",
        "        if len(users) > 2:\n            shown = ",
        "tests/river/test_verify.py::test_what_keeps_a_program_from_being_deterministic_is_named",
    ),
    Mutant(
        "marks-counted",
        "a loop at marks may end itself, so that many marks let go of more than one",
        "river/il/marks.py",
        "            return key.free(*steps) and not left\n",
        "            return key.free(*steps)\n",
        "tests/river/test_verify.py::test_what_is_done_at_marks_must_not_tell_how_many_there_are",
    ),
    Mutant(
        "items-not-told",
        "what an operator does at marks need not be what it does at items",
        "river/il/marks.py",
        "if own is None or not body.items or _step(body.items[0], own) != step:",
        "if own is None or not body.items:",
        "tests/river/test_verify.py::test_what_is_done_at_marks_must_not_tell_how_many_there_are",
    ),
    Mutant(
        "overflow-not-seen",
        "the largest number and one is no overflow",
        "river/lang/operations/arithmetic.py",
        "        if low <= result <= high:\n            return result\n        raise TrapSignal(code, a, b)\n",
        "        if low <= result <= high + 1:\n            return result\n        raise TrapSignal(code, a, b)\n",
        "tests/river/test_operations.py::test_traps",
    ),
    Mutant(
        "net-drops-copies",
        "what is inserted twice and deleted once is gone",
        "river/io/deltas.py",
        "        if away.get(item, 0):\n            away[item] -= 1\n",
        "        if away.get(item, 0):\n            pass\n",
        "tests/river/test_io_order.py::test_net_is_the_difference_of_bags_both_ways_and_keeps_order",
    ),
)

REPAIRED: Final = (
    Mutant(
        "band-join-taken-for-lasting",
        "a join above one by order takes away a pair before it comes",
        "frontends/cql/lower.py",
        "            return band is None and _lasts(",
        "            return _lasts(",
        "tests/frontends/test_cql_queries.py::test_queries_say_at_every_instant_what_sql_says",
    ),
    Mutant(
        "values-of-rows-that-do-not-stay",
        "what is made of a row that comes and goes within an instant may trap",
        "frontends/cql/lower.py",
        "        if not any(map(_may_trap, values)) or _lasts(",
        "        if True or _lasts(",
        "tests/frontends/test_cql_queries.py::test_what_is_in_no_bag_is_divided_by_nothing",
    ),
    Mutant(
        "case-looked-at-again",
        "each value of a `case` is looked at with all that are inside it",
        "frontends/sql/expressions.py",
        "        if strip(a.type) != strip(b.type):\n            return self.typed(made)\n",
        "        if made:\n            return self.typed(made)\n",
        "tests/frontends/test_cql_case.py::test_what_is_inside_is_not_looked_at_again",
    ),
    Mutant(
        "constant-conditions-before-joins",
        "a condition that reads no column is applied to one side of an outer join, not to what it makes",
        "frontends/sql/check.py",
        "if sources(c) and not sources(c) & lacking]",
        "if not sources(c) & lacking]",
        "tests/frontends/test_cql_lists.py::test_a_condition_without_columns_is_asked_behind_outer_joins",
    ),
    Mutant(
        "items-lose-their-row",
        "a row whose list has no item that meets the condition is forgotten by a left join",
        "frontends/cql/templates/unnest.river",
        "if not met {",
        "if false {",
        "tests/frontends/test_cql_lists.py::test_relations",
    ),
    Mutant(
        "case-takes-the-last",
        "in a group of alternatives the value is that of the last one, whichever is true",
        "frontends/sql/parse.py",
        "            value = chosen(before, value, span)\n",
        "",
        "tests/frontends/test_cql_case.py::test_groups_of_alternatives_mean_the_same",
    ),
    Mutant(
        "room-left-empty",
        "large constants are computed, but not put where code reads them",
        "backends/native/computed.py",
        "        ctypes.memmove(code.addresses[symbol], value.block.address + ARENA_SIZE, size_align(type_)[0])\n",
        "",
        "tests/backends/test_native_constants.py::test_machine_code_computes_large_constants",
    ),
    Mutant(
        "made-of-large",
        "what is made of a large constant is computed by the evaluator, which does not have that",
        "backends/native/computed.py",
        "found.append(has_room(const) or any(found[index] for index in named))",
        "found.append(has_room(const))",
        "tests/backends/test_native_constants.py::test_machine_code_computes_large_constants",
        raises="TypeError",
    ),
    Mutant(
        "hoisting-forgets-labels",
        "a hoisted selection builds its item of fields that have other names there",
        "optimizers/hoisting.py",
        "            case s.Emit():\n                return evolve(node, value=s.Name(item, span=node.span))\n",
        "",
        "tests/optimizers/test_guards.py::test_what_is_hoisted_computes_the_same",
    ),
    Mutant(
        "arrow-trusted",
        "the offsets of Arrow data from outside are followed unchecked",
        "river/io/validate.py",
        "            _bare(column).validate(full=True)\n",
        "            _bare(column).validate()\n",
        "tests/river/test_io_validate.py::test_columns_from_python_are_not_followed_out_of_their_buffers[number of rows without values]",
    ),
    Mutant(
        "parquet-checksum-skipped",
        "the checksums of pages of Parquet files are not looked at",
        "river/io/columnar.py",
        'arrow("parquet").ParquetFile(file, page_checksum_verification=True)',
        'arrow("parquet").ParquetFile(file)',
        "tests/river/test_io_validate.py::test_checksums_of_parquet_pages_are_checked",
    ),
    Mutant(
        "input-overwritten-through-a-link",
        "what is read and what is written is compared by name",
        "river/driver/places.py",
        "    if one.identity == other.identity:\n        return True\n",
        "    if one.target == other.target:\n        return True\n",
        "tests/river/test_places.py::test_what_is_read_is_not_written[compile soft]",
    ),
    Mutant(
        "ignored-signal-heeded",
        "a signal that the caller has us ignore ends the command",
        "river/cli/signals.py",
        "        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):\n",
        "        if signal.getsignal(number) is not None:\n",
        "tests/river/test_signals.py::test_a_signal_that_the_caller_has_ignored_is_ignored",
    ),
    Mutant(
        "one-outcome-too-few",
        "schedules that end differently count as one outcome where only variables differ",
        "river/driver/schedules.py",
        "    return tuple(outputs), seen.views, seen.variables\n",
        "    return tuple(outputs), seen.views\n",
        "tests/river/test_schedules.py::test_variables_are_seen",
    ),
    Mutant(
        "failed-quote-takes-all",
        "a quote that is not closed takes all lines behind it",
        "river/io/delimited.py",
        '    end = text.index("\\n", at) + 1\n    try:\n        scan(text[at:end], delimiter)\n',
        "    end = len(text)\n    try:\n        scan(text[at:end], delimiter)\n",
        "tests/river/test_io_rows.py::test_only_the_first_line_of_a_record_that_fails_is_lost",
    ),
    Mutant(
        "unstated-is-harmless",
        "an operation that does not state whether it reads order is taken not to",
        "river/lang/operations/effects.py",
        "    order: Order = Order.READS\n",
        "    order: Order = Order.IGNORES\n",
        "tests/river/test_model.py::test_an_operation_that_states_nothing_shows_order",
    ),
    Mutant(
        "all-bad-rows-at-once",
        "whatever is wrong with a block of a live text is held together",
        "backends/native/ingest/parse.py",
        "        return self.most is not None and self.bad >= self.most\n",
        "        return False\n",
        "tests/backends/test_native_live.py::test_few_bad_rows_are_held_at_a_time",
    ),
    Mutant(
        "chain-of-functions-inlined",
        "each function of a chain has all before it inside",
        "backends/native/lower/batches.py",
        "        if size > _INLINED:\n",
        "        if size > 1 << 60:\n",
        "tests/backends/test_native_scaling.py::test_a_chain_of_functions_is_optimised_in_linear_time",
    ),
    Mutant(
        "reset-completes-a-row",
        "a connection that is reset ends as one that is closed in order",
        "river/io/live/connections.py",
        """                if not self._over:
                    self.incomplete = "the connection was reset, and what it sent last is missing"
                return b""
""",
        """                return b""
""",
        "tests/river/test_connections.py::test_a_line_that_somebody_did_not_finish_is_no_row[reset-off]",
    ),
    Mutant(
        "reader-that-left-is-a-mistake",
        "a broken pipe behind standard output is told as an output that cannot be written, where it is Arrow",
        "river/io/sinks.py",
        """        except BrokenPipeError:  # the reader has had enough: for the command line to decide
            self.abort()
            raise
""",
        "",
        "tests/river/test_standard.py::test_a_reader_that_has_had_enough_is_no_mistake[arrow]",
    ),
    Mutant(
        "part-left-on-a-full-disk",
        "a file of the cache for which there is no room leaves its part",
        "river/lang/tables.py",
        "        part.unlink(missing_ok=True)\n",
        "",
        "tests/river/test_verified.py::test_what_there_is_no_room_for_leaves_nothing",
    ),
)

BLOCKS: Final = (
    Mutant(
        "initial-value-counts-twice",
        "copies of a reducer begin with the entries that were there at first",
        "river/il/combine.py",
        "        case Entries():\n            return default(type_)",
        "        case Entries():\n            return initial",
        f"{_COMBINE}::test_copies_combined_are_one[by key]",
    ),
    Mutant(
        "counts-from-anywhere",
        "a count by key may begin with another number than zero, and be counted apart",
        "river/il/combine.py",
        "            return value == _first(neutral, type_, value)",
        "            return True",
        f"{_COMBINE}::test_what_is_not_proven_has_no_combine[a count from another beginning]",
    ),
    Mutant(
        "what-is-behind-an-error-counts",
        "blocks behind the first error in a file are delivered",
        "backends/multicore/partial.py",
        "        if self._failure is not None:\n            return\n",
        "",
        f"{_IN_BLOCKS}::test_nothing_behind_an_error_is_delivered_and_all_before_it_is[row]",
    ),
    Mutant(
        "kept-entries-of-parts-are-all-kept",
        "of maps that keep their least or greatest entries the combined one keeps those of all parts",
        "river/il/combine.py",
        "    if found.bound is not None:\n        yield",
        "    if False and found.bound is not None:\n        yield",
        f"{_COMBINE}::test_copies_combined_are_one",
    ),
    Mutant(
        "key-that-leaves-out-a-field",
        "rows sorted by some of their fields count as in one order, whatever the map was that they come from",
        "river/il/arrangement.py",
        "return (is_exact(item) and (None in parts or whole <= parts)) or _tells_keys(parts, listed)",
        "return is_exact(item)",
        f"{_COMBINE}::test_a_view_that_shows_the_order_of_entries_keeps_its_variable_whole",
    ),
    Mutant(
        "lines-keep-returns",
        "machine code takes the carriage return at the end of a line for a part of it",
        "backends/native/ingest/grammar.py",
        'return ["q = e", *shorter, *field.view("offset(data, p), q - p, False")]',
        'return ["q = e", *field.view("offset(data, p), q - p, False")]',
        f"{_BAD}::test_lines_are_the_bytes_of_any_file[lines.csv-multicore]",
    ),
    Mutant(
        "lines-by-suffix",
        "a program that takes lines gets the cells of a file that is called so",
        "river/driver/borders.py",
        'return SUFFIXES.get(Path(os.fspath(target)).suffix.lower(), "text") in STREAMED',
        'return SUFFIXES.get(Path(os.fspath(target)).suffix.lower(), "text") == "text"',
        f"{_BAD}::test_lines_are_the_bytes_of_any_file[lines.csv-reference]",
    ),
    Mutant(
        "lines-counted-from-the-part",
        "the number of a line without an end counts from where the machine code has left the file",
        "backends/native/ingest/reader.py",
        "blocks(text, self.file.path, self.file.size, before)",
        "blocks(text, self.file.path, self.file.size)",
        "tests/backends/test_native_ingest.py::test_a_line_without_an_end_is_told_with_its_number",
    ),
    Mutant(
        "bytes-broken-at-once",
        "a byte that is no UTF-8 takes what is behind it along",
        "frontends/sawzall/functions.river",
        "      start = at + 1;\n      at = start;",
        "      start = at + 2;\n      at = start;",
        f"{_BAD}::test_lines_are_the_bytes_of_any_file[lines.csv-reference]",
    ),
    Mutant(
        "all-items-tried-at-once",
        "an operator that may take long is fired on all that is there before it is known what it takes",
        "backends/multicore/parallel.py",
        "instance.batch = min(FIRST, part)",
        "instance.batch = part",
        "tests/backends/test_multicore_keyed.py::test_few_items_are_tried_before_many_so_that_what_takes_long_is_shared_from_the_start[]",
    ),
    Mutant(
        "part-left-out",
        "the last part of a result is not combined with the others",
        "river/il/combined.py",
        "    for other in others:\n        fire(",
        "    for other in others[:-1]:\n        fire(",
        "tests/optimizers/test_combining.py::test_what_parts_have_gathered_is_one_value[reference-on]",
    ),
    Mutant(
        "skipped-with-state",
        "what may be skipped becomes one with what keeps state, whose traps end the run",
        "optimizers/fusion.py",
        "bool(other.outs) and not _skipped(one, other)",
        "bool(other.outs)",
        "tests/river/test_profile.py::test_what_may_be_skipped_stays_apart_from_state",
    ),
)

FAULTS: Final = (
    *CALCULUS,
    *BLOCKS,
    *ENGINE,
    *CHECKPOINTS,
    *DATA,
    *IL,
    *FRONTENDS,
    *PASSES,
    *GUARDS,
    *NATIVE,
    *SPARK,
    *REPAIRED,
)
