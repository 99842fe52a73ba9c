# Demos and benchmarks. Tables and the readers' environments are kept in the cache.
.PHONY: demo demo-log bench bench-full bench-sidecar bench-sidecar-full ladder ladder-full bench-rows bench-rows-full

demo: venv ## Telemetry ingested on local Spark, its layout, scans and checks.
	$(WITH_JAVA) $(BIN)/python -m bench.demo

demo-log: venv ## A million-file log, scanned lazily beside delta-rs.
	$(BIN)/python -m bench.demo_log

bench: venv ## Every reader on 100,000 and a million files: minutes.
	$(WITH_JAVA) $(BIN)/python -m bench.run

bench-full: venv ## A million and ten million files, and every promise judged.
	$(WITH_JAVA) $(BIN)/python -m bench.run --full

bench-sidecar: venv ## Sidecars by both feeders and over a table that grows: minutes.
	$(WITH_JAVA) $(BIN)/python -m bench.sidecars

bench-sidecar-full: venv ## The same with a million files and a hundred checkpoints.
	$(WITH_JAVA) $(BIN)/python -m bench.sidecars --full

ladder: venv ## The ladder from L0 to L8 on a million files: about half an hour.
	$(WITH_JAVA) $(BIN)/python -m bench.ladder

ladder-full: venv ## The same on ten million files, every promise judged; writes docs/ladder.md.
	$(WITH_JAVA) $(BIN)/python -m bench.ladder --full

bench-rows: venv ## Rows beside other readers on a million files and half a gigabyte: minutes.
	$(BIN)/python -m bench.rows

bench-rows-full: venv ## The same on ten million files and 5 GB, every promise judged; writes docs/rows-figures.md.
	$(BIN)/python -m bench.rows --full

.PHONY: chaos
chaos: venv ## Writers, upkeep, kills and faults beside readers, every answer checked: ten minutes.
	$(WITH_JAVA) $(BIN)/python -m bench.chaos $(CHAOS)

.PHONY: bench-many soak

bench-many: venv ## 200 scans at once on a million files: memory within the budget, none starved.
	$(BIN)/python -m bench.many_scans

soak: venv ## Twenty minutes of mixed work: memory, handles and threads must stay flat.
	$(BIN)/python -m bench.soak --minutes 20

.PHONY: bench-faults
bench-faults: venv ## The last hour behind 30 ms and 5 % of connections reset, its promise judged: minutes.
	$(BIN)/python -m bench.faults

.PHONY: bench-kusto bench-kusto-full
bench-kusto: venv ## A million rows beside duckdb-kql's server, first frames of KQL beside scans: minutes.
	$(BIN)/python -m bench.serve_kusto

bench-kusto-full: venv ## The same on ten million files; writes docs/kusto-figures.md.
	$(BIN)/python -m bench.serve_kusto --full

.PHONY: bench-serve
bench-serve: venv ## Flight beside scans in process, a hundred clients, the memory of Delta Sharing: minutes.
	$(BIN)/python -m bench.serve
	$(BIN)/python -m bench.serve_sharing

.PHONY: scale
scale: venv ## The same queries from ten thousand files to a billion, on simulated tables: minutes.
	$(BIN)/python -m bench.scale.run

.PHONY: bench-spark-read
bench-spark-read: venv ## Reads in Spark beside Delta's own source, plans of a million files: minutes.
	$(WITH_JAVA) $(BIN)/python -m bench.spark_read

.PHONY: bench-spark-build
bench-spark-build: venv ## The sidecar of ten million files by Spark on two cores, and gone on with: minutes.
	$(WITH_JAVA) $(BIN)/python -m bench.spark_build
