# The long fuzzer. Inputs that escape, and the report, are kept in the cache.
.PHONY: fuzz

fuzz: venv ## Every parser, 1.2 million inputs in watched processes: about half an hour.
	$(BIN)/python -m fuzz
