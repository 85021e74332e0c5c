# For those whose fingers type make: each target is the command of the same name of develop.py.
PYTHON ?= python3

.PHONY: run test lint types unit integration slow proof reference wheel sanitize clean

run test lint types unit integration slow proof reference wheel sanitize:
	$(PYTHON) develop.py $@

clean:
	rm -rf .venv-* build dist *.egg-info out
