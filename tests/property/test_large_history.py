"""One history large enough for every boundary: several batches a row group, several row groups a part.

Small random histories find wrong rules; this one finds slices, offsets and batches that do not add up.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.actions import add, relative_dv, remove, stats
from tests.support.eager_twin import TableState, replay
from tests.support.keys import Action, FileKey
from tests.support.reading import STRATEGIES, keys
from tests.support.table_builder import TableBuilder

FILES = 12_000
COMMITS = 12
DAYS = [f"2026-02-{day:02}" for day in range(1, 29)]


ONE_KIND = pytest.mark.long("the same history in another kind of checkpoint")


@pytest.fixture(scope="module", params=[pytest.param("v1-multipart", marks=ONE_KIND), "v2-parquet"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Twelve thousand files in a checkpoint; a tail that removes, re-adds and deletes rows of thousands."""
    dice = random.Random(20260208)
    built = TableBuilder(tmp_path_factory.mktemp("large"))
    built.commit([new_file(f"part-{number:05}.parquet", number, dice) for number in range(FILES)])
    built.checkpoint(request.param, stats="both", row_group_rows=2500)
    for commit in range(COMMITS):
        adds: list[Action] = [
            new_file(f"tail-{commit}-{n}.parquet", n, dice) for n in range(dice.randrange(400))
        ]
        removes: list[Action] = []
        for body in dice.sample(list(built.states[-1].live.values()), 500):
            old = body.get("deletionVector")
            if dice.random() < 0.4:
                removes.append(remove(body["path"], deletion_vector=old))
            elif dice.random() < 0.5:
                removes.append(remove(body["path"], deletion_vector=old))
                adds.append(body | {"deletionVector": relative_dv(offset=commit * 10_000 + len(adds))})
            else:
                adds.append(body | {"size": body["size"] + 1})
        built.commit(adds, removes)
    return built


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("batch_size", "memory_limit"),
    [(1000, 1 << 25), (8192, 1), (7, 1 << 25)],
    ids=["usual", "on disk", "tiny"],
)
def test_a_large_history_gives_the_eager_twins_files(
    table: TableBuilder, strategy: str, batch_size: int, memory_limit: int
) -> None:
    truth = truth_of(table.path)
    scan = ld.open(str(table.path)).scan(
        strategy=strategy, batch_size=batch_size, remove_set_memory_limit=memory_limit
    )
    files = list(scan.files())
    assert len(files) == len(truth.live)
    assert {key: file.size for key, file in zip(keys(files), files, strict=True)} == {
        key: action["size"] for key, action in truth.live.items()
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("day", [DAYS[0], DAYS[13]])
def test_a_predicate_on_a_large_history_keeps_exactly_what_may_match(
    table: TableBuilder, strategy: str, day: str
) -> None:
    found = keys(
        ld.open(str(table.path)).scan(where=f"date = '{day}' and count = 7", strategy=strategy).files()
    )
    assert len(found) == len(set(found))
    assert set(found) == matching(table, day, 7)


@cache
def truth_of(path: Path) -> TableState:
    """The eager twin's answer, made once a table."""
    return replay(path)


def new_file(path: str, number: int, dice: random.Random) -> Action:
    """A file of one day whose count lies within ten of its number."""
    low = {"count": number % 100}
    high = {"count": number % 100 + 10}
    return add(path, partition={"date": dice.choice(DAYS)}, stats=stats(low=low, high=high), size=number + 1)


def matching(table: TableBuilder, day: str, count: int) -> set[FileKey]:
    """The live files of that day whose bounds include the count."""
    bounds = {f'"minValues":{{"count":{low}}}' for low in range(count - 10, count + 1)}
    return {
        key
        for key, action in truth_of(table.path).live.items()
        if action["partitionValues"]["date"] == day and any(bound in action["stats"] for bound in bounds)
    }
