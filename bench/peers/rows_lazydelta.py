"""lazydelta: `select * limit 100` by a scan of rows, or in SQL where the query is named `limit-sql`."""

import contextlib
import sys
from collections.abc import Iterator

from rows_measure import first_rows

# `import lazydelta` loads its parts at first use; a measured process has them loaded before the clock
# starts, as every other reader has.
import lazydelta.engines.sql as _  # noqa: F401 - SQL loads it at first use
import lazydelta.table as ld

with contextlib.suppress(ImportError):
    import duckdb  # noqa: F401 - SQL loads it at first use
    import opentelemetry.metrics  # noqa: F401 - lazydelta looks for it when it counts


def by_scan(table: str) -> Iterator[int]:
    with ld.open(table).scan(limit=100).batches() as batches:
        for batch in batches:
            yield batch.num_rows


def by_sql(table: str) -> Iterator[int]:
    with ld.open(table).sql("select * from t limit 100") as batches:
        for batch in batches:
            yield batch.num_rows


if sys.argv[-1] == "limit-sql":
    first_rows("lazydelta SQL", by_sql)
else:
    first_rows("lazydelta", by_scan)
