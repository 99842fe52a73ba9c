"""A scan inside DuckDB, Polars, pyarrow datasets, pandas."""
