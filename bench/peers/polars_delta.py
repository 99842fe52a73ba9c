"""Polars: the plan of `scan_delta`, which names every file."""

import re

import polars
from measure import Measurement, arguments, cannot

table, query = arguments()
if query == "predicate":
    cannot("polars", query, "its plan skips no file by the log's statistics")
else:
    run = Measurement("polars", query)
    run.start()
    plan = polars.scan_delta(table).head(100).explain()
    others = re.search(r"(\d+) other sources", plan)
    count = 1 + int(others[1]) if others else plan.count(".parquet")
    run.saw(count)
    run.finish(files=count, note="plan")
