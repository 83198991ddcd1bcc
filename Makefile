# `make demo` trains and reports, `make test` checks. Everything is installed into .venv on first use.
PYTHON ?= python3
VENV ?= .venv
SEED ?= 0
RUN := runs/demo-$(SEED)-$(shell date +%Y%m%d-%H%M%S)
BIN := $(VENV)/bin
STAMP := $(VENV)/.mle-gym-installed
FAST := not slow and not network and not gpu
ALL := not network and not gpu
# Two workers: tests wait for sandboxed programs more than they compute.
PYTEST := $(BIN)/python -m pytest -q -n 2

# One thread for each process: the programs, the learner and the tests share few cores.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint format docs clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## Install everything into .venv (only when something changed).

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: $(PYTHON) is missing or older than 3.11; call make with PYTHON=/path/to/python3.11." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,all]'
	@touch $@

demo: $(STAMP)  ## Train the small policy on real tasks and write a report; SEED=n.
	$(BIN)/mle-gym train --config recipes/demo.toml --seed $(SEED) --run $(RUN)
	$(BIN)/mle-gym report $(RUN)

test: $(STAMP)  ## The fast tests and the doctests, offline.
	$(PYTEST) -m '$(FAST)' --doctest-modules tests mle_gym

test-all: $(STAMP)  ## Every test that needs neither the Internet nor a GPU.
	$(PYTEST) -m '$(ALL)' --doctest-modules tests mle_gym

lint: $(STAMP)  ## ruff, mypy, codespell; changes nothing.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(STAMP)  ## Let ruff fix and format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## Fill the generated parts of the pages: task table, defaults.
	$(BIN)/python docs/generate.py

clean:  ## Remove caches and builds; runs/ and .venv stay.
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis htmlcov .coverage
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
