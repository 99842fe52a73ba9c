"""Files to rows: Parquet, deletion vectors, column mapping, prefetch; filter, limit, pages."""
