# For those whose fingers type make: each target is the command of the same name of develop.py.
PYTHON ?= python3

.PHONY: run test lint types unit integration sanitize clean

run test lint types unit integration:
	$(PYTHON) develop.py $@

# A fuzz of the compiled core under AddressSanitizer (gcc): the modules are built apart, in build/asan.
sanitize: $(VENV)/.test
	CFLAGS="-fsanitize=address,undefined -fno-omit-frame-pointer -g -O1" PA_REQUIRE_NATIVE=1 \
		$(BIN)/python setup.py -q build --build-temp build/asan-objects --build-lib build/asan
	cd build/asan && LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PA_RIVER_NATIVE=1 PYTHONPATH=. \
		$(CURDIR)/$(BIN)/python $(CURDIR)/tests/fuzz_core.py --seconds 60

clean:
	rm -rf .venv-* build dist *.egg-info out
