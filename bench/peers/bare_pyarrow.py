"""The floor: stream path and size of the checkpoint with pyarrow's defaults. No tail, nothing removed."""

from pathlib import Path

import pyarrow.parquet as pq
from measure import Measurement, arguments, cannot

table, query = arguments()
if query == "predicate":
    cannot("bare stream", query, "it reads no statistics")
else:
    run = Measurement("bare stream", query)
    run.start()
    count = 0
    for path in sorted(Path(table, "_delta_log").glob("*.checkpoint*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(columns=["add.path", "add.size"]):
            adds = batch.column(0)
            count += len(adds) - adds.null_count
            run.saw(count)
            if query == "hundred":
                break
    run.finish(files=count, complete=query == "all", note="checkpoint only")
