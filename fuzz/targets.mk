# The long fuzzer. Inputs that escape, and the report, are kept in the cache.
.PHONY: fuzz

fuzz: venv ## Every parser, four million inputs in watched processes: about twenty minutes.
	$(BIN)/python -m fuzz
