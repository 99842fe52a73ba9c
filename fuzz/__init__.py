"""The long fuzzer of every parser: `make fuzz`. Not part of the package."""
