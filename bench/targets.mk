# Benchmarks. Tables and the readers' environments are kept in the cache.
.PHONY: demo bench bench-full

demo: venv ## A million-file log, scanned lazily beside delta-rs.
	$(BIN)/python -m bench.demo

bench: java venv ## Every reader on 100,000 and a million files: minutes.
	$(BIN)/python -m bench.run

bench-full: java venv ## A million and ten million files, and every promise judged.
	$(BIN)/python -m bench.run --full
