# Every target sets up what it needs: a virtual environment in .venv, downloads in .cache.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CACHE := $(CURDIR)/.cache
# Processes that run tests side by side; `make WORKERS=0 test` runs all in one.
WORKERS ?= 2
# Above the first number `make test` warns, above the second it fails.
CPU_MINUTES ?= 35,60
# Runs a command so that it finds Java 17 or newer; where there is none, it is fetched into the cache.
WITH_JAVA := $(BIN)/python requirements/machine.py with-java
PYTEST := $(BIN)/pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export LAZYDELTA_CACHE := $(CACHE)
# Tests start the command hundreds of times: where this is set, each start would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help venv check unit test test-long demo bench bench-full docs docs-reference screenshots walk lock clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(VENV)/.stamp: requirements/dev.lock pyproject.toml
	@$(PYTHON) requirements/machine.py check
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

venv: $(VENV)/.stamp ## Make the virtual environment.

check: venv ## Format, lint, types, import contracts: no tests, under a minute when warm.
	$(BIN)/ruff format --check src tests bench fuzz requirements docs examples
	$(BIN)/ruff check src tests bench fuzz requirements docs examples
	$(BIN)/mypy
	$(BIN)/lint-imports

# PACKAGE=scan runs tests/unit/scan, and the files of tests/property whose names begin with it.
UNIT := tests/unit tests/property tests/test_tidy.py tests/test_private_parts.py tests/test_testing_page.py tests/test_walk.py
unit: venv ## The fast tests: no Spark, no servers; PACKAGE=scan runs those of one package.
	$(PYTEST) $(if $(PACKAGE),tests/unit/$(PACKAGE) $(wildcard tests/property/test_$(PACKAGE)*.py),$(UNIT))

walk: venv ## Record in docs/architecture.md what the code passes through for an open, a scan, SQL and KQL.
	$(BIN)/python -m tests.test_walk

test: venv check ## Everything: lint, types, imports, all tests with their real servers.
	$(WITH_JAVA) $(PYTEST) --cache-clear --cpu-minutes $(CPU_MINUTES)

test-long: venv ## What repeats or stresses: kill loops, soaks, large tables, many random examples. Hours.
	$(WITH_JAVA) $(PYTEST) --long --timeout 3600
	LAZYDELTA_EXAMPLES=400 $(PYTEST) --timeout 3600 tests/property

# Options, such as MUTANTS="--seed 2 --only scan"; MUTANTS=--help lists them.
.PHONY: mutants
mutants: venv ## Put 200 small faults into the source, one at a time, and count those that tests notice: hours.
	@$(BIN)/python -m tests.mutants $(MUTANTS)

screenshots: venv ## Make the pictures of docs/web-page.md anew, in a real browser.
	LAZYDELTA_SCREENSHOTS=1 $(BIN)/pytest --quiet --long tests/integration/serve/page/test_page_screenshots.py

docs-reference: venv ## Write the generated pages of docs/reference anew.
	$(BIN)/python docs/generate_reference.py

docs: venv ## The documentation as a site in build/site; dead links and pages left out are errors.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html, or, for its search: python3 -m http.server --bind 127.0.0.1 --directory build/site"

-include bench/targets.mk
-include fuzz/targets.mk
-include src/lazydelta/capi/targets.mk

lock: venv ## Write requirements/dev.lock anew from pyproject.toml.
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes \
	  --no-header --python-version 3.11 --output-file requirements/dev.lock

clean: ## Remove what the other targets made.
	rm -rf $(VENV) $(CACHE) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
