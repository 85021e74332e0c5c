# Two commands for newcomers: `make run` and `make test`. Each makes its own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint types unit integration clean

run: $(VENV)/.run
	$(BIN)/python -m beam_pipelines.run --overwrite

test: $(VENV)/.test lint types unit

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: setup.cfg setup.py pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[beam,report]'
	touch $@

$(VENV)/.test: setup.cfg setup.py pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

lint: $(VENV)/.test
	$(BIN)/python -m flake8 pa_river beam_pipelines tests setup.py

types: $(VENV)/.test
	$(BIN)/python -m mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "not slow" --cov --cov-fail-under=90 --cov-report=term:skip-covered

integration: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

clean:
	rm -rf $(VENV) build dist *.egg-info out
