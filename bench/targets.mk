# Demos and benchmarks. Tables and the readers' environments are kept in the cache.
.PHONY: demo demo-log bench bench-full bench-sidecar bench-sidecar-full ladder ladder-full bench-rows bench-rows-full

demo: java venv ## Telemetry ingested on local Spark, its layout, scans and checks.
	$(BIN)/python -m bench.demo

demo-log: venv ## A million-file log, scanned lazily beside delta-rs.
	$(BIN)/python -m bench.demo_log

bench: java venv ## Every reader on 100,000 and a million files: minutes.
	$(BIN)/python -m bench.run

bench-full: java venv ## A million and ten million files, and every promise judged.
	$(BIN)/python -m bench.run --full

bench-sidecar: java venv ## Sidecars by both feeders and over a table that grows: minutes.
	$(BIN)/python -m bench.sidecars

bench-sidecar-full: java venv ## The same with a million files and a hundred checkpoints.
	$(BIN)/python -m bench.sidecars --full

ladder: java venv ## The ladder from L0 to L8 on a million files: about half an hour.
	$(BIN)/python -m bench.ladder

ladder-full: java venv ## The same on ten million files, every promise judged; writes docs/ladder.md.
	$(BIN)/python -m bench.ladder --full

bench-rows: venv ## Rows beside other readers on a million files and half a gigabyte: minutes.
	$(BIN)/python -m bench.rows

bench-rows-full: venv ## The same on ten million files and 5 GB, every promise judged; writes docs/rows-figures.md.
	$(BIN)/python -m bench.rows --full

.PHONY: chaos
chaos: java venv ## Writers, upkeep, kills and faults beside readers, every answer checked: ten minutes.
	$(BIN)/python -m bench.chaos $(CHAOS)

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
bench-spark-read: java venv ## Reads in Spark beside Delta's own source, plans of a million files: minutes.
	$(BIN)/python -m bench.spark_read

.PHONY: bench-spark-build
bench-spark-build: java venv ## The sidecar of ten million files by Spark on two cores, and gone on with: minutes.
	$(BIN)/python -m bench.spark_build
