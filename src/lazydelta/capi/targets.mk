# The C ABI. The library looks for Python in this virtual environment (docs/c-api.md).
.PHONY: capi bench-capi
capi: venv ## The C library libdelta_lazy.so and its header, in build/capi.
	$(BIN)/python -m lazydelta.capi.build --into build/capi

bench-capi: venv ## What the C ABI costs a file, beside Python, on a million files: a minute.
	$(BIN)/python -m bench.capi
