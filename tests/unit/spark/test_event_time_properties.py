"""What the pipeline writes into a table's properties is what a filter on the event time reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lazydelta.predicate import event_time_of, period_format, source_bounds
from lazydelta.protocol.schema import Field, PrimitiveType, StructType
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.layout_check import time_properties
from lazydelta.spark.time_column import PERIODS

CLOCK = "2026-02-10 14:25:36"


@pytest.mark.parametrize("granularity", sorted(PERIODS))
def test_every_granularity_of_the_pipeline_is_understood(granularity: str) -> None:
    config = IngestConfig(source="in", target="out", event_time="ts", granularity=granularity)
    column = config.time_column_name
    schema = StructType(
        (Field("ts", PrimitiveType("timestamp"), True, {}), Field(column, PrimitiveType("string"), True, {}))
    )
    found = event_time_of(time_properties(config, "ts"), schema, [column])
    assert found is not None
    assert found.source == ("ts",)
    # The pipeline's own rule: the first characters of the wall clock, without what stands between digits.
    format_, length = PERIODS[granularity]
    text = pa.array([CLOCK[:length].translate(str.maketrans("", "", "- :"))])
    assert period_format(text) == format_ == found.period.format
    bounds = source_bounds(found.period, "timestamp", text, text)
    assert bounds is not None
    assert bounds.min is not None
    assert bounds.max is not None
    moment = datetime.fromisoformat(CLOCK).replace(tzinfo=UTC)
    assert bounds.min[0].as_py() <= moment <= bounds.max[0].as_py()
