# Two commands for newcomers: `make run` and `make test`. Each makes its own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint types unit integration sanitize clean

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

# A fuzz of the compiled core under AddressSanitizer (gcc): the modules are built apart, in build/asan.
sanitize: $(VENV)/.test
	CFLAGS="-fsanitize=address,undefined -fno-omit-frame-pointer -g -O1" PA_REQUIRE_NATIVE=1 \
		$(BIN)/python setup.py -q build --build-temp build/asan-objects --build-lib build/asan
	cd build/asan && LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PA_RIVER_NATIVE=1 PYTHONPATH=. \
		$(CURDIR)/$(BIN)/python $(CURDIR)/tests/fuzz_core.py --seconds 60

clean:
	rm -rf $(VENV) build dist *.egg-info out
