"""KQL, Kusto's query language, over lazy tables: translated to DuckDB's SQL and run as SQL is."""
