# Everything a contributor types. Nothing is installed outside this folder, but a browser where
# make test runs as root on Debian and finds none.
#   make test ARGS="-k store"     extra words for the tool behind a target
#   make install PYTHON=python3.12     another interpreter than python3

BIN := .venv/bin
PAGE := $(BIN)/python -I hatch_build.py
ARGS =
EXAMPLES = 600
FUZZED = tests/protocol tests/web/test_framing.py tests/hub tests/proposals/test_patch.py \
	tests/proposals/test_hunks.py tests/proposals/test_choosing.py tests/sandbox/test_paths.py

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo test chaos fuzz clis check fmt lint types layers schema schema-check requirements \
	ui screenshots bench lock dev clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## Make .venv with the locked packages and agentcanvas (quick when nothing changed)
	@tools/bootstrap.sh

demo: install ## See a team mend a small repository, and check every step of it
	@$(BIN)/agentcanvas demo $(ARGS)

test: install ## Run all tests
	@$(if $(ARGS),,$(PAGE) test)
	@tools/browser.sh
	@tools/bubblewrap.sh
	@$(BIN)/python -m pytest $(ARGS)

chaos: install ## Cut whole runs off at every moment; some minutes
	@$(BIN)/python -m pytest -o python_files='chaos_*.py' tests/chaos $(ARGS)

fuzz: install ## Look longer for bytes, messages and patches that break a promise (EXAMPLES=600)
	@HYPOTHESIS_PROFILE=fuzz HYPOTHESIS_EXAMPLES=$(EXAMPLES) \
		$(BIN)/python -m pytest -q -m hypothesis $(FUZZED) $(ARGS)

clis: install ## Install the coding CLIs into .clis/ and drive each; ARGS="-k claude" for one
	@tools/clis.sh
	@$(BIN)/python -m pytest -n0 -o python_files='clis_*.py' tests/clis $(ARGS)

check: test lint types layers schema-check ## Do all that CI does

fmt: install ## Format the code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: install ## Check format and lint rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(PAGE) lint lock

types: install ## Check the types, strictly, tests included
	@$(BIN)/mypy
	@$(PAGE) types

layers: install ## Check who imports whom
	@$(BIN)/lint-imports

schema: install ## Write the exported schemas to schema/, the page's types, the patterns' templates
	@$(BIN)/agentcanvas schema --write schema
	@$(BIN)/python -m tools.ui_types
	@$(BIN)/python -m tools.patterns

schema-check: install ## Check that schema/ and the page's types are what the code exports
	@$(BIN)/agentcanvas schema --check schema
	@$(BIN)/python -m tools.ui_types --check
	@$(BIN)/python -m tools.patterns --check

requirements: install ## Note in docs/requirements.md what the tests show
	@$(BIN)/python -m tools.requirements

ui: install ## Build the page, also when the last try failed
	@$(PAGE)

screenshots: ui ## Take pictures of every view of the page (ARGS=folder)
	@$(BIN)/python -m tests.e2e.screenshots $(ARGS)

bench: install ## Run the benchmarks (ARGS="protocol --quick" for one, quickly)
	@$(BIN)/python -m bench $(ARGS)

lock: install ## Resolve the dependencies anew (ARGS=--upgrade for newer versions)
	@tools/lock.sh $(ARGS)

dev: install ## Serve the page from its sources, over the API of a running agentcanvas serve
	@echo 'Open the link of a running `agentcanvas serve` once (not on port 7717? say'
	@echo 'AGENTCANVAS_SERVER=http://127.0.0.1:PORT make dev), then'
	@echo 'http://127.0.0.1:5173, which shows each change of ui/src at once. Ctrl-C ends it.'
	@$(PAGE) dev

clean: ## Remove .venv, caches and built files
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist .browser
	@rm -rf ui/node_modules ui/dist src/agentcanvas/web/_ui
	@find bench src tests tools -type d -name __pycache__ -prune -exec rm -rf {} +
