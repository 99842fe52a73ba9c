"""The exact set against Python's own, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.log.file_rows import vector_structs
from lazydelta.protocol.actions import DeletionVector
from lazydelta.scan import FileKeys, RemoveSet
from lazydelta.scan.keys import path_hashes

Key = tuple[str, DeletionVector | None]
PATHS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["a", "ab", "part-00000-0a1b2c3d-4e5f-6789-abcd-ef0123456789-c000.snappy.parquet"]),
    st.integers(0, 40).map(lambda n: f"date=2026-02-08/part-{n:05d}-c000.snappy.parquet"),
)
VECTORS = st.one_of(
    st.none(),
    st.builds(DeletionVector, st.just("u"), st.sampled_from("xy"), offset=st.sampled_from([None, 0, 1])),
)
BATCHES = st.lists(st.lists(st.tuples(PATHS, VECTORS), max_size=30), max_size=8)


def file_keys(keys: Sequence[Key]) -> FileKeys:
    return FileKeys(pa.array([path for path, _ in keys], pa.string()), vector_structs(v for _, v in keys))


def identity(key: Key) -> tuple[str, str | None]:
    return key[0], None if key[1] is None else key[1].dv_id


@pytest.mark.parametrize("memory_limit", [0, 1 << 20])
@given(batches=BATCHES)
def test_the_set_holds_exactly_what_was_put_in(memory_limit: int, batches: list[list[Key]]) -> None:
    truth: set[tuple[str, str | None]] = set()
    with closing(RemoveSet(memory_limit)) as removed:
        for batch in batches:
            assert removed.holds(file_keys(batch)).tolist() == [identity(key) in truth for key in batch]
            removed.remember(file_keys(batch))
            truth.update(identity(key) for key in batch)
            assert removed.holds(file_keys(batch)).all()


@pytest.mark.parametrize("memory_limit", [0, 1 << 20])
@given(first=st.lists(st.tuples(PATHS, VECTORS)), second=st.lists(st.tuples(PATHS, VECTORS)))
def test_absorbing_is_putting_in_both(memory_limit: int, first: list[Key], second: list[Key]) -> None:
    with closing(RemoveSet(memory_limit)) as mine, closing(RemoveSet(memory_limit)) as other:
        mine.remember(file_keys(first))
        other.remember(file_keys(second))
        mine.absorb(other)
        assert mine.holds(file_keys(first + second)).all()
        assert not mine.holds(file_keys([("never put in, surely", None)])).any()


@given(st.lists(PATHS, min_size=1))
def test_a_filter_hash_depends_on_its_own_path_alone(paths: list[str]) -> None:
    together = path_hashes(pa.array(paths, pa.string())).tolist()
    assert together == [int(path_hashes(pa.array([path], pa.string()))[0]) for path in paths]


def test_past_its_memory_limit_the_set_moves_to_disk_and_stays_exact() -> None:
    inside = [(f"date=2026-02-08/part-{n:05d}-in.parquet", None) for n in range(20_000)]
    outside = [(f"date=2026-02-08/part-{n:05d}-out.parquet", None) for n in range(20_000)]
    with closing(RemoveSet(memory_limit=100_000)) as removed:
        for start in range(0, len(inside), 1000):
            removed.remember(file_keys(inside[start : start + 1000]))
        assert removed.is_on_disk
        assert removed.holds(file_keys(inside)).all()
        assert not removed.holds(file_keys(outside)).any()


@pytest.mark.parametrize("memory_limit", [0, 1 << 20])
@pytest.mark.parametrize("count", [1, 10, 300, 5000])
def test_paths_of_one_hash_are_told_apart(memory_limit: int, count: int) -> None:
    def alike(numbers: range) -> FileKeys:
        return file_keys([(f"{'x' * 8}{number:06d}{'y' * 60}", None) for number in numbers])

    assert len(set(path_hashes(alike(range(20)).paths))) == 1
    with closing(RemoveSet(memory_limit)) as removed:
        removed.remember(alike(range(0, 2 * count, 2)))
        held = removed.holds(alike(range(2 * count + 1)))
        assert held.tolist() == [number % 2 == 0 and number < 2 * count for number in range(2 * count + 1)]
        removed.remember(alike(range(1, 4)))
        assert removed.holds(alike(range(1, 4))).all()


@pytest.mark.parametrize("pieces", [1, 63, 64, 200])
def test_many_small_pieces_are_all_held(pieces: int) -> None:
    with closing(RemoveSet()) as removed:
        for number in range(pieces):
            removed.remember(file_keys([(f"part-{number:05d}-c000.snappy.parquet", None)]))
        asked = [(f"part-{number:05d}-c000.snappy.parquet", None) for number in range(2 * pieces)]
        assert removed.holds(file_keys(asked)).tolist() == [number < pieces for number in range(2 * pieces)]
