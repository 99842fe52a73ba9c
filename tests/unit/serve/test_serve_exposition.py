"""Numbers as Prometheus reads them: whatever labels hold, they come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.serve.exposition import Exposition
from lazydelta.serve.metrics import SECONDS, ServeMetrics
from tests.support.prometheus_text import parsed

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(values=st.dictionaries(texts, st.floats(0, 1e18) | st.integers(0, 2**62), min_size=1, max_size=4))
def test_labels_and_values_come_back(values: dict[str, float]) -> None:
    out = Exposition()
    out.counter("things_total", "Things.", {(("name", text),): value for text, value in values.items()})
    found = parsed(out.text())["things_total"]
    assert found.samples == {
        ("things_total", frozenset({("name", text)})): float(value) for text, value in values.items()
    }


@given(seconds=st.lists(st.floats(0, 1000), min_size=1, max_size=30))
def test_a_histogram_counts_each_call_below_every_bound_that_it_keeps(seconds: list[float]) -> None:
    metrics = ServeMetrics()
    for each in seconds:
        metrics.ended(protocol="p", method="m", status="ok", seconds=each, table="", rows=0)
    out = Exposition()
    out.histogram("call_seconds", "Calls.", SECONDS, metrics._buckets, metrics._seconds)
    found = parsed(out.text())["call_seconds"].samples
    labels = {("protocol", "p"), ("method", "m")}
    for bound in SECONDS:
        upper = str(int(bound)) if bound.is_integer() else repr(bound)
        assert found["call_seconds_bucket", frozenset({*labels, ("le", upper)})] == sum(
            each <= bound for each in seconds
        )
    assert found["call_seconds_sum", frozenset(labels)] == pytest.approx(sum(seconds))
    assert found["call_seconds_count", frozenset(labels)] == len(seconds)
