# Every target sets itself up. The environment is .venv (Python from $(PYTHON), versions from requirements.lock).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-long dev bench lint docs lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# The demo and the Dagster UI need the example's packages only; tests and lint need all of them.
$(VENV)/.example-ready: pyproject.toml requirements.lock scripts/bootstrap.sh
	@sh scripts/bootstrap.sh "$(PYTHON)" $(VENV) example
	@touch $@

$(VENV)/.dev-ready: pyproject.toml requirements.lock scripts/bootstrap.sh
	@sh scripts/bootstrap.sh "$(PYTHON)" $(VENV) dev
	@touch $@ $(VENV)/.example-ready

demo: $(VENV)/.example-ready  ## four runs on real data: what drifted, and with what (about a minute, no Java)
	@$(BIN)/python -m example_project.demo

test: $(VENV)/.dev-ready  ## all tests but the long ones (Spark tests need a Java virtual machine)
	@$(BIN)/python -m pytest -m "not long"

test-long: $(VENV)/.dev-ready  ## the long tests, whole
	@UBUNYE_LONG=1 $(BIN)/python -m pytest -m long --timeout 3600

dev: $(VENV)/.example-ready  ## the Dagster UI on the example, with an instance that persists in .dagster_home
	@mkdir -p .dagster_home && touch .dagster_home/dagster.yaml
	@DAGSTER_HOME="$(CURDIR)/.dagster_home" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dagster dev

bench: $(VENV)/.dev-ready  ## timings, as ratios measured side by side
	@$(BIN)/python -m benchmarks

lint: $(VENV)/.dev-ready  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(VENV)/.dev-ready  ## run the README's examples and refresh their output
	@$(BIN)/python scripts/refresh_readme.py

lock:  ## resolve requirements.lock anew (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --upgrade --no-header --no-annotate -q -o requirements.lock

clean:  ## remove the environment and everything that runs leave behind
	@rm -rf $(VENV) .ubunye .dagster_home .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
