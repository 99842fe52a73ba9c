"""Pages of any table, of any size, are the whole, cut; whatever comes between two of them."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, stats
from tests.support.cached import CACHED, UNCACHED
from tests.support.deletion_vector_writer import inline_vector
from tests.support.histories import History, build, histories, table_predicates
from tests.support.hypothesis_profile import examples
from tests.support.keys import Action
from tests.support.predicates import Predicate, to_sql
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

ORDERS = st.sampled_from(["asc", "desc"])
CACHES = st.sampled_from([CACHED, UNCACHED])
configs = st.builds(
    SidecarConfig,
    row_group_rows=st.sampled_from([1, 2, 3, 7]),
    row_groups_max=st.sampled_from([1, 2, 4]),
    level_ratio=st.sampled_from([2, 16]),
)


# --- files ---------------------------------------------------------------------


@settings(max_examples=examples(12))
@given(histories(), ORDERS, configs, CACHES, st.randoms(use_true_random=False))
def test_pages_of_files_are_the_whole_while_sidecars_come_and_go(
    history: History, order: str, config: SidecarConfig, options: dict[str, str], dice: random.Random
) -> None:
    versions = [axes["version"] for axes in history.checkpoints]
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        whole = keys(ld.open(folder, storage_options=UNCACHED).scan(order=order).files())
        found: list[Any] = []
        token: str | None = None
        while True:
            change_sidecars(Path(folder), versions, config, dice)
            scan = ld.open(folder, storage_options=options).scan()
            page = scan.file_page(dice.randint(1, 4), after=token, order=order)
            found += keys(page.files)
            token = page.next_token
            if token is None:
                break
        assert found == whole


@settings(max_examples=examples(12))
@given(histories(), ORDERS, configs, table_predicates(), st.randoms(use_true_random=False))
def test_pages_of_the_files_that_might_match_are_the_whole(
    history: History, order: str, config: SidecarConfig, predicate: Predicate, dice: random.Random
) -> None:
    size, has_sidecar = dice.randint(1, 5), dice.random() < 0.5
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        if has_sidecar and history.checkpoints:
            build_sidecar(open_storage(folder, Settings()), config=config)
        table = ld.open(folder)
        where = to_sql(predicate)
        found: list[Any] = []
        token: str | None = None
        while True:
            page = table.scan(where).file_page(size, after=token, order=order)
            found += keys(page.files)
            token = page.next_token
            if token is None:
                break
        assert found == keys(table.scan(where, order=order).files())


def change_sidecars(table: Path, versions: list[int], config: SidecarConfig, dice: random.Random) -> None:
    """Build one, or take all away, or tear one, or leave them."""
    lazy = table / "_delta_log" / "_lazy"
    match dice.choice(["build", "build", "remove", "tear", "nothing"]):
        case "build" if versions:
            build_sidecar(open_storage(str(table), Settings()), config=config, version=dice.choice(versions))
        case "remove":
            shutil.rmtree(lazy, ignore_errors=True)
        case "tear" if lazy.exists():
            path = dice.choice(sorted(lazy.glob("v*")) or [None])
            if path is not None:
                path.write_bytes(path.read_bytes()[: -dice.choice([1, 20, 300])])
        case _:
            pass


# --- rows ----------------------------------------------------------------------


class RowFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file: its hour, its values, which of them are deleted, and rows of a row group."""

    hour: str | None
    values: tuple[int | None, ...]
    deleted: frozenset[int] = frozenset()
    row_group_rows: int = 100


@st.composite
def row_files(draw: st.DrawFn) -> RowFile:
    """Any file; some are empty, some have all their rows deleted."""
    values = tuple(draw(st.lists(st.none() | st.integers(0, 6), max_size=8)))
    deleted = draw(st.frozensets(st.sampled_from(range(len(values))))) if values else frozenset()
    return RowFile(
        hour=draw(st.sampled_from(["01", "02", "03", None])),
        values=values,
        deleted=deleted,
        row_group_rows=draw(st.sampled_from([1, 3, 100])),
    )


class RowTable:
    """A table of such files, and its rows worked out without lazydelta."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        schema = {"id": "long", "value": "long", "hour": "string"}
        self.builder = TableBuilder(folder, schema=schema, partition_columns=["hour"])
        self.files: dict[str, RowFile] = {}
        self._written = 0

    def commit(self, files: list[RowFile], dice: random.Random) -> None:
        """Add these and drop some of the others."""
        gone = [name for name in self.files if dice.random() < 0.2]
        removes = [self._action(name) for name in gone]
        for name in gone:
            del self.files[name]
        added = [self._write(file, dice) for file in files]
        self.builder.commit([self._action(name) for name in added], removes)

    def rows(self, order: str) -> list[dict[str, Any]]:
        """All of them: by hour, then path, then as they lie; or that reversed."""
        found = []
        for name in sorted(self.files, key=lambda name: (self.files[name].hour or "", name)):
            file, first = self.files[name], int(name[2:6]) * 100
            for at, value in enumerate(file.values):
                if at not in file.deleted:
                    found.append({"id": first + at, "value": value, "hour": file.hour})
        return found if order == "asc" else found[::-1]

    def _write(self, file: RowFile, dice: random.Random) -> str:
        name = f"{dice.choice('abc')}-{self._written:04}.parquet"
        ids = range(self._written * 100, self._written * 100 + len(file.values))
        columns = {"id": pa.array(ids, pa.int64()), "value": pa.array(file.values, pa.int64())}
        pq.write_table(pa.table(columns), self.folder / name, row_group_size=file.row_group_rows)
        self.files[name] = file
        self._written += 1
        return name

    def _action(self, name: str) -> Action:
        file = self.files[name]
        size = (self.folder / name).stat().st_size
        action = add(name, partition={"hour": file.hour}, size=size, stats=stats(len(file.values)))
        return action | ({"deletionVector": inline_vector(file.deleted)} if file.deleted else {})


Row = dict[str, Any]
KEPT: dict[str | None, Callable[[Row], bool]] = {
    None: lambda _: True,
    "value > 2": lambda row: row["value"] is not None and row["value"] > 2,
    "hour >= '02'": lambda row: row["hour"] is not None and row["hour"] >= "02",
    "hour = '01' and value <= 3": lambda row: (
        row["hour"] == "01" and row["value"] is not None and row["value"] <= 3
    ),
    "value is null": lambda row: row["value"] is None,
    "id >= 105": lambda row: row["id"] >= 105,
}


@settings(max_examples=examples(12))
@given(
    st.lists(st.lists(row_files(), max_size=4), min_size=1, max_size=4),
    ORDERS,
    st.sampled_from(list(KEPT)),
    CACHES,
    st.randoms(use_true_random=False),
)
def test_pages_of_rows_are_the_whole_while_others_commit(
    commits: list[list[RowFile]],
    order: str,
    where: str | None,
    options: dict[str, str],
    dice: random.Random,
) -> None:
    size = dice.randint(1, 12)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("lazydelta.limits.PAGE_FILES_AT_ONCE", dice.choice([1, 2, 8192]))
        table = RowTable(Path(folder))
        for files in commits:
            table.commit(files, dice)
            if dice.random() < 0.3:
                table.builder.checkpoint()
        pinned = table.builder.version
        expected = [row for row in table.rows(order) if KEPT[where](row)]
        found: list[dict[str, Any]] = []
        token: str | None = None
        while True:
            page = ld.open(folder, storage_options=options).scan(where).page(size, after=token, order=order)
            assert page.version == pinned
            assert page.rows.num_rows == size or page.next_token is None
            found += page.rows.to_pylist()
            token = page.next_token
            if token is None:
                break
            meddle(table, pinned, dice)
        assert found == expected


def meddle(table: RowTable, pinned: int, dice: random.Random) -> None:
    """What others do between two pages."""
    match dice.choice(["commit", "checkpoint", "sidecar", "remove sidecars", "nothing"]):
        case "commit":
            table.commit([RowFile(hour=dice.choice(["01", None]), values=(1, 2))], dice)
        case "checkpoint":
            table.builder.checkpoint(version=dice.randint(0, pinned), hint=dice.random() < 0.5)
        case "sidecar" if list(table.builder.log.glob("*.checkpoint.parquet")):
            config = SidecarConfig(row_group_rows=dice.choice([1, 2]), row_groups_max=2)
            version = dice.choice(sorted(table.builder.log.glob("*.checkpoint.parquet"))).name[:20]
            storage = open_storage(str(table.folder), Settings())
            build_sidecar(storage, config=config, version=int(version))
        case "remove sidecars":
            shutil.rmtree(table.builder.log / "_lazy", ignore_errors=True)
        case _:
            pass
