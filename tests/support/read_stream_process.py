"""A stream of a table, a version a batch, in a process of its own that can be killed.

`python -m tests.support.read_stream_process TABLE PLACE [forever]`: writes PLACE/out, keeps PLACE/checkpoint;
reads what is there now, or goes on until it is killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lazydelta.spark import register
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session
from tests.support.spark import QUICK_JAVA

SETTINGS = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": QUICK_JAVA}


def main(table: str, place: Path, *, is_forever: bool) -> None:
    """Read from the first version on."""
    spark = get_session(SparkConfig(spark=SETTINGS))
    register(spark)
    frame = (
        spark.readStream.format("lazydelta")
        .option("startingVersion", "0")
        .option("maxFilesPerTrigger", "1")
        .load(table)
    )
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    writer = writer if is_forever else writer.trigger(availableNow=True)
    writer.start(str(place / "out")).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), is_forever=sys.argv[3:] == ["forever"])
