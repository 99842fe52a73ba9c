"""lazydelta: the same queries through its public face, and what `explain` says of reads."""

import contextlib
from typing import Any

from measure import LOW_PREDICATE, Measurement, arguments

# `import lazydelta` loads its parts at first use; a measured process has them loaded before the clock
# starts, as every other reader has.
import lazydelta.table as ld

with contextlib.suppress(ImportError):
    import opentelemetry.metrics  # noqa: F401 - lazydelta looks for it when it counts

FILES_WANTED = {"hundred": 100, "thousand": 1_000, "today": 100}
WHERE = {"today": "date = '2026-02-10'", "predicate": LOW_PREDICATE}


def main() -> None:
    table, query = arguments()
    run = Measurement("lazydelta", query)
    run.start()
    scan = ld.open(table).scan(where=WHERE.get(query), limit=FILES_WANTED.get(query))
    count = 0
    if query in FILES_WANTED:
        for count, file in enumerate(scan.files(), start=1):
            assert file.path
            run.saw(count)
    else:
        for batch in scan.file_batches(columns=["path", "size"]):
            count += batch.num_rows
            run.saw(count)
    run.finish(files=count, complete=query not in FILES_WANTED, **_reads(scan))


def _reads(scan: Any) -> dict[str, Any]:
    report = scan.explain()
    names = ("requests", "bytes_read", "round_trips", "commits_read", "row_groups_read")
    return {name: getattr(report, name) for name in names}


main()
