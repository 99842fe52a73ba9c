"""DuckDB's delta extension: the first row for `hundred`, its own listing for `all`.

A predicate is planned only: EXPLAIN prunes the files but does not say how many are left.
"""

from pathlib import Path

import duckdb
import duckdb_extension_delta
from measure import HOUR_PREDICATE, LOW_PREDICATE, Measurement, arguments

table, query = arguments()
folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
run = Measurement("duckdb", query)
run.start()
if query == "hundred":
    rows = connection.execute(f"SELECT device_id FROM delta_scan('{table}') LIMIT 1").fetchall()
    run.saw(1)
    run.finish(files=None, complete=False, note="first row")
elif query == "all":
    (count,) = connection.execute(f"SELECT count(data_file) FROM delta_list_files('{table}')").fetchall()[0]
    run.saw(count)
    run.finish(files=count)
else:
    where = HOUR_PREDICATE if query == "hour" else LOW_PREDICATE
    connection.execute(f"EXPLAIN SELECT device_id FROM delta_scan('{table}') WHERE {where}").fetchall()
    run.saw(1)
    run.finish(files=None, note="plan")
