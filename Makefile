# One verb per need; continuous integration calls the same ones.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export CTXSTREAM_MODELS ?= $(CURDIR)/.models

.PHONY: test-dg test-legacy-grammars help setup sweep test check bench dev docs format clean

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 28

setup: $(STAMP)  ## create the environment and install everything

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev -e ".[embedded]"
	@touch $@

sweep: setup  ## ask the bundled question of the bundled corpus, and show the truth beside the answer
	$(BIN)/python -m assets.first_sweep

dev: setup  ## open the Dagster UI on http://127.0.0.1:3000
	$(BIN)/ctxstream dev

test: setup  ## everything that needs no GPU
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not stack"
	@# One Dagster stack at a time: two starve each other on a small machine. Their daemons keep their own time, so a run
	@# that met a busy machine may be tried once more, whole.
	$(BIN)/python -m pytest -m stack || $(BIN)/python -m pytest -m stack

check: setup  ## format, lint, types, import contracts, documentation drift
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/reference.py --check

format: setup  ## rewrite the code in house format, and the generated parts of the documentation
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python docs/reference.py

bench: setup  ## every benchmark, side by side; tables on the screen, JSON in benchmarks/results
	@for benchmark in benchmarks/*.py; do echo "== $$benchmark"; $(BIN)/python $$benchmark || exit 1; done

docs: setup  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A bare comma would end an argument of $(call).
comma := ,

# An environment without the official wheels: $(1) is its directory, $(2) the parser and the bundle in it.
define test-bundle
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet $(2) pathspec rustworkx editables pytest pytest-timeout hypothesis
	$(1)/bin/python -m pip install --quiet --no-deps -e .
	$(1)/bin/python -m pytest tests/planning/codegraph/test_bundled_grammars.py
endef

test-legacy-grammars:  ## both bundles of grammars, each in an environment of its own (Python 3.12 or older)
	$(call test-bundle,.venv-legacy,tree-sitter==0.21.3 tree-sitter-languages==1.10.2)
	$(call test-bundle,.venv-pack,"tree-sitter>=0.26.1$(comma)<0.27" "tree-sitter-language-pack<1")

test-dg:  ## a sweep written by Dagster's own `dg`, which pins Dagster and so needs an environment of its own
	$(PYTHON) -m venv .venv-dg
	.venv-dg/bin/python -m pip install --quiet dagster-dg-cli -e . pytest pytest-timeout hypothesis
	.venv-dg/bin/python -m pytest tests/cli/test_dg.py

clean:  ## remove the environment and all state
	rm -rf $(VENV) .venv-legacy .venv-pack .venv-dg .dagster .ctxstream .models site
