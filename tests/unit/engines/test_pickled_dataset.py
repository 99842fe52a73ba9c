"""Datasets and their files sent to other processes."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.dataset import LazyDataset
from lazydelta.engines.fragment import LazyFragment
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, readings_table


def rows_of_file(fragment: LazyFragment) -> list[int]:
    return list(fragment.to_table(columns=["id"])["id"].to_pylist())


def version_and_rows(dataset: LazyDataset) -> tuple[str, int]:
    return repr(dataset), dataset.count_rows()


def test_another_process_reads_the_same_version(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    dataset = ld.open(url).to_pyarrow_dataset(partitions=[("_event_hour", ">", "2026021000")])
    narrow = dataset.filter(pc.field("id") < 100)
    write_deltalake(url, dataset.head(5), mode="append")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(version_and_rows, (dataset,)) == (repr(dataset), (HOURS - 1) * ROWS_A_FILE)
        assert pool.apply(version_and_rows, (narrow,)) == (repr(dataset), 70)
        ids = pool.map(rows_of_file, list(narrow.get_fragments()))
    assert sorted(id_ for part in ids for id_ in part) == list(range(30, 100))


def test_what_was_read_is_not_in_the_pickle(tmp_path: Path) -> None:
    dataset = ld.open(readings_table(tmp_path)).to_pyarrow_dataset()
    fresh = len(pickle.dumps(dataset))
    dataset.to_table()
    assert len(pickle.dumps(dataset)) == fresh < 4096


def test_the_pickle_carries_storage_options_and_the_repr_does_not(tmp_path: Path) -> None:
    options = {"account_key": "c2VjcmV0", "delta.page.signing_key": "hidden"}
    dataset = ld.open(readings_table(tmp_path), storage_options=options).to_pyarrow_dataset()
    pickled = pickle.dumps(dataset)
    assert b"c2VjcmV0" in pickled
    assert b"hidden" not in pickled
    for shown in (repr(dataset), str(dataset), repr(next(dataset.get_fragments()))):
        assert "c2VjcmV0" not in shown
    again = pickle.loads(pickle.dumps(pickle.loads(pickled)))
    assert again.count_rows() == HOURS * ROWS_A_FILE


def test_a_version_that_is_gone_is_told_where_it_is_opened(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    pickled = pickle.dumps(ld.open(url, version=0).to_pyarrow_dataset())
    (Path(url) / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(ld.errors.LazyDeltaError):
        pickle.loads(pickled)


def test_a_dataset_of_no_table_of_its_own_is_refused(tmp_path: Path) -> None:
    source = ld.open(readings_table(tmp_path)).scan().source
    with pytest.raises(InvalidRequestError, match="cannot be pickled"):
        pickle.dumps(LazyDataset(source))
