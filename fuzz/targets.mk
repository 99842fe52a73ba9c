# The long fuzzer. Inputs that escape, and the report, are kept in the cache.
.PHONY: fuzz

fuzz: venv ## Every parser, a million and a half inputs in watched processes: about twelve minutes.
	$(BIN)/python -m fuzz
