"""Open a table, list its newest files, read rows of the last hour, and see what that cost.

python examples/first_steps.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import lazydelta as ld
from lazydelta.sample.make import SampleSpec, make_sample


def main(folder: Path) -> None:
    """Each step prints what it found."""
    make_sample(folder / "telemetry", SampleSpec())
    table = ld.open(folder / "telemetry")
    print("version", table.version, "with", table.info().num_files, "files")
    print("columns", ", ".join(table.schema.names))

    # Nothing is read before the first file is pulled, and nothing more once nobody pulls.
    for file in table.scan(limit=2).files():
        print("newest file", file.path.partition("/")[0], file.size, "bytes")

    # A filter on the event time rules out files by the hour they belong to.
    last_hour = table.scan("event_time >= '2026-02-10T23:00:00Z'")
    rows = sum(batch.num_rows for batch in last_hour.batches(["device_id", "value"]))
    print("rows of the last hour", rows)

    report = table.scan("event_time >= '2026-02-10T23:00:00Z'").explain()
    print("files of the last hour", report.files_emitted, "found in", report.requests, "requests")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
