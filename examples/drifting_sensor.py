"""Which sensor drifts? The same question in SQL and in KQL; only the last three hours are read.

python examples/drifting_sensor.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import lazydelta as ld
from lazydelta.sample.make import SampleSpec, make_sample

SQL = """
    select device_id, round(avg(value), 1) as average, count(*) as readings
    from t
    where event_time >= timestamptz '2026-02-10 21:00:00+00'
    group by device_id
    order by average desc
    limit 2
"""
KQL = """
    t
    | where event_time >= datetime(2026-02-10 21:00:00)
    | summarize average = round(avg(value), 1), readings = count() by device_id
    | top 2 by average
"""


def main(folder: Path) -> None:
    """Ask in both languages."""
    make_sample(folder / "telemetry", SampleSpec())
    table = ld.open(folder / "telemetry")
    for language, answer in (("SQL", table.sql(SQL)), ("KQL", table.kql(KQL))):
        with answer:
            for row in answer.read_all().to_pylist():
                print(language, row["device_id"], row["average"], row["readings"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
