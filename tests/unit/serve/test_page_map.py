"""The map of files: exact counts in few cells, whatever comes in whatever order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.serve.page.file_map import TIMES_MAX, FileMap, size_cells

DAY_MS = 86_400_000
NOW_MS = 1_770_681_600_000
files = st.lists(
    st.tuples(
        st.one_of(
            st.none(),
            st.integers(-5, 5),
            st.integers(NOW_MS - 3 * DAY_MS, NOW_MS),
            st.integers(1, 2 * NOW_MS),
        ),
        st.one_of(st.integers(0, 100), st.integers(0, 1 << 40)),
    ),
    max_size=30,
)


def batch(part: list[tuple[int | None, int]]) -> pa.RecordBatch:
    times, sizes = [at for at, _ in part], [size for _, size in part]
    return pa.record_batch(
        {"modification_time": pa.array(times, pa.int64()), "size": pa.array(sizes, pa.int64())}
    )


@given(st.lists(files, min_size=1, max_size=6))
def test_the_map_agrees_with_counting_every_file(parts: list[list[tuple[int | None, int]]]) -> None:
    found, seen = FileMap(), {}
    for part in parts:
        found.add(batch(part))
        news: dict[str, Any] = found.news()
        seen = {} if news["is_whole"] else seen
        seen |= {(at, size): (count, total) for at, size, count, total in news["cells"]}
    timed = [(at, size) for part in parts for at, size in part if at is not None and at > 0]
    width = found.width_ms
    sizes = [int(cell) for cell in size_cells(np.array([size for _, size in timed], np.int64))]
    counts = Counter((at // width, cell) for (at, _), cell in zip(timed, sizes, strict=True))
    totals: Counter[tuple[int, int]] = Counter()
    for (at, size), cell in zip(timed, sizes, strict=True):
        totals[at // width, cell] += size
    assert seen == {key: (count, totals[key]) for key, count in counts.items()}
    assert found.files == sum(map(len, parts))
    assert found.without_time == found.files - len(timed)
    assert found.bytes == sum(size for part in parts for _, size in part)
    columns = {at for at, _ in seen}
    assert not columns or max(columns) - min(columns) < TIMES_MAX


def test_a_million_files_of_a_year_fit_a_few_thousand_cells() -> None:
    found = FileMap()
    for start in range(0, 1_000_000, 100_000):
        at = np.arange(start, start + 100_000, dtype=np.int64)
        times, sizes = NOW_MS - at * 31_536, 1_000_000 + (at * 7919) % 9_000_000
        found.add(pa.record_batch({"modification_time": times, "size": sizes}))
    news = found.whole()
    assert news["files"] == 1_000_000 == sum(cell[2] for cell in news["cells"])
    assert len(news["cells"]) <= TIMES_MAX * 4 * 4  # between a million and ten there are 3.3 doublings


def test_only_what_changed_is_told_again() -> None:
    found = FileMap()
    found.add(batch([(NOW_MS, 10), (NOW_MS + 1, 1000)]))
    assert len(found.news()["cells"]) == 2
    assert found.news()["cells"] == []
    found.add(batch([(NOW_MS, 10)]))
    news = found.news()
    assert (news["is_whole"], len(news["cells"]), news["cells"][0][2]) == (False, 1, 2)
