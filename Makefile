# Needs make and a Python >= 3.11 with venv and pip; everything else is installed into .venv.

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A Python to build .venv with; empty: the first of CANDIDATES that fits.
PYTHON ?=
CANDIDATES := python3.13 python3.12 python3.11 python3

FLIGHTS := examples/flights/delays.cql --in flights=examples/flights/flights.csv
PYTEST := $(BIN)/python -m pytest -q
# loadgroup: the tests on Spark share one session (tests/conftest.py)
PARALLEL := -n 2 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help venv demo test long campaigns mutants check format bench bench-spark bench-compare experiments clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.dev ## make .venv with everything that development needs

demo: $(VENV)/.runtime ## run examples/flights: delays per airport over the last hour
	@echo
	@echo "The query (examples/flights/delays.cql):"
	@echo
	@sed 's/^/    /' examples/flights/delays.cql
	@echo
	@echo "Its result changes whenever a flight leaves, and when one has left an hour ago: + comes, - goes."
	@echo "'ts' counts minutes from 2013-01-01 00:00. The first changes, computed by machine code:"
	@echo
	$(BIN)/river run $(FLIGHTS) --format table --limit 20
	@echo
	@echo "Is that right? The calculus, which defines what a program means, computes it again:"
	@echo
	$(BIN)/river check $(FLIGHTS) --backend multicore
	@echo
	@echo "Next: docs/tutorial.md, or $(BIN)/river --help"

test: $(VENV)/.dev ## run all tests but those that take many minutes
	$(PYTEST) $(PARALLEL) -m "not long"

long: $(VENV)/.dev ## run the tests that take many minutes: all operations, all interleavings, RIVER_CASES random programs
	$(PYTEST) $(PARALLEL) --every-case -m "long or slow or some"

campaigns: $(VENV)/.dev ## run every law at length, which takes hours; the results go into docs/trust.md
	$(BIN)/python tests/campaigns/run.py --workers 2 --table docs/trust.md

mutants: $(VENV)/.dev ## plant faults one by one: each must be found by the test that is named with it (minutes)
	$(BIN)/python tests/mutants/run.py

check: $(VENV)/.dev ## format, lint, types, layers, one case of each fast test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	@# The types beside the tests: what checks them uses one processor well, and two not much better.
	@$(BIN)/pyright --pythonpath $(BIN)/python & types=$$!; trap 'kill $$types' INT TERM; \
	  RIVER_HYPOTHESIS=check $(PYTEST) $(PARALLEL) --sample 1 -m "not slow and not long and not spark"; tests=$$?; \
	  wait $$types && exit $$tests

format: $(VENV)/.dev ## format the code and apply the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

bench: $(VENV)/.dev ## run the benchmarks, or those that NAMES says; one table at the end, and build/bench.json
	$(BIN)/python tests/bench/run_all.py $(NAMES)

bench-spark: $(VENV)/.dev ## programs on Spark beside the same by hand, in turns, in seven rounds; the driver; the start
	$(BIN)/python tests/bench/bench_frames.py
	$(BIN)/python tests/bench/bench_keyed.py
	$(BIN)/python tests/bench/bench_spark_start.py
	$(BIN)/python tests/bench/bench_driver.py

bench-compare: $(VENV)/.dev ## what is faster or slower than at BASE=commit by more than the spread, in build/bench-compare.json
	$(BIN)/python tests/bench/compare.py $(or $(BASE),$(error say BASE=commit)) $(NAMES)

experiments: $(VENV)/.dev ## run the figures of the ordered multicore paper, with plots in build/experiments
	@for name in skew latency reordering; do \
	  $(BIN)/python tests/bench/experiments/$$name.py --out build/experiments || exit 1; \
	done

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of dependencies: installed again only when pyproject.toml changes.
$(VENV)/.runtime: $(BIN)/python pyproject.toml
	@echo "installing River into $(VENV) ..."
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	@echo "installing River and its development tools into $(VENV) (takes about a minute) ..."
	@$(PIP) wheel # pyspark comes as sources, which older versions of pip build without a warning only if it is there
	@$(PIP) --no-compile -e '.[dev]' # what is used is compiled then: an eighth of all modules
	@touch $(VENV)/.runtime $@

$(BIN)/python:
	@for python in $(or $(strip $(PYTHON)),$(CANDIDATES)); do \
	  if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "creating $(VENV) with $$($$python --version) ..."; \
	    exec $$python -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "River needs Python 3.11 or later, with the modules venv and ensurepip; tried:" \
	  "$(or $(strip $(PYTHON)),$(CANDIDATES)). Install one, or say which: make PYTHON=/path/to/python3" >&2; \
	exit 1
