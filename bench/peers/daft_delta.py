"""Daft: the first row. It has no listing of files, and skips none by the log's statistics."""

import daft
from measure import Measurement, arguments, cannot

table, query = arguments()
if query != "hundred":
    cannot(
        "daft", query, "it lists no files" if query == "all" else "it skips no file by the log's statistics"
    )
else:
    run = Measurement("daft", query)
    run.start()
    # Daft refuses tables with deletion vectors unless told to ignore them.
    rows = daft.read_deltalake(table, ignore_deletion_vectors=True).limit(1).to_pydict()
    assert len(rows["device_id"]) == 1
    run.saw(1)
    run.finish(files=None, complete=False, note="first row, deletion vectors ignored")
