# `make demo` and `make test` set everything up by themselves; they need Python 3.11 or newer and this file.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= auto
ARGS ?=

.PHONY: demo test lint format bench bench-ingest bench-size bench-hooks bench-live bench-backfill bench-continuity clients clean

demo: $(READY)
	@$(BIN)/python demo/run.py

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-ingest bench-size bench-hooks bench-live bench-continuity

bench-ingest bench-size bench-hooks bench-live bench-backfill: bench-%: $(READY)
	$(BIN)/python -m bench.$* $(ARGS)

bench-continuity: $(READY)
	$(BIN)/python -m bench.continuity $(ARGS)

# The real clients that the end-to-end tests drive (about 630 MB, from npm and PyPI).
clients: $(READY)
	$(BIN)/python tools/get_client.py all

$(READY): pyproject.toml requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3"; exit 1; }
	@echo "Setting up $(VENV) once; this takes a minute or so."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
