"""Speed, always as a ratio within one run: `python -m benchmarks [name...]`."""
