"""Openings that are shared: once for many, and never older than who asks."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import StorageError
from lazydelta.serve.config import load_config
from lazydelta.serve.served import Served
from lazydelta.serve.shared_opening import SharedOpening
from lazydelta.serve.sign_in import ANYONE
from tests.support.row_tables import eventually, reading, readings_table


def test_many_who_ask_at_once_share_openings_that_began_after_they_asked() -> None:
    began: list[float] = []
    asking: list[float] = []

    def slow() -> Any:
        mine = time.monotonic()
        began.append(mine)
        assert eventually(lambda: len(asking) == 40)  # the first one takes until all have asked
        time.sleep(0.05)
        return mine

    opening = SharedOpening(slow)
    answers: list[tuple[float, Any]] = []

    def ask() -> None:
        asked = time.monotonic()
        asking.append(asked)
        answers.append((asked, opening.newest()))

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 40
    assert len(began) < 20
    assert all(found >= asked for asked, found in answers)


def test_who_waited_before_it_came_is_served_by_what_began_meanwhile() -> None:
    counted: list[int] = []
    opening: Any = SharedOpening(lambda: counted.append(0) or len(counted))  # type: ignore[func-returns-value, arg-type, return-value]
    early = time.monotonic()
    assert [opening.newest(early) for _ in range(5)] == [1] * 5
    assert opening.newest(time.monotonic()) == 2
    assert opening.newest(early) == 2
    assert opening.newest() == 3


def test_an_error_is_told_to_everybody_and_not_kept() -> None:
    failures = [StorageError("down", "there", "wait")]

    def once() -> Any:
        if failures:
            raise failures.pop()
        return "open"

    opening: Any = SharedOpening(once)
    with pytest.raises(StorageError):
        opening.newest()
    assert opening.newest() == "open"


def test_a_catalog_gives_the_newest_version_and_keeps_older_ones_open(tmp_path: Path) -> None:
    url = readings_table(tmp_path, hours=1)
    config = tmp_path / "serve.toml"
    config.write_text(f'[server]\nflight_port = 0\n[tables.readings]\nurl = "{url}"\n', "utf-8")
    served = Served(load_config(str(config), environment={}))
    old = served.catalog.open("readings", ANYONE)
    write_deltalake(url, pa.Table.from_pylist([reading(90)]), mode="append")
    new = served.catalog.open("readings", ANYONE)
    assert (old.version, new.version) == (0, 1)
    assert served.catalog.open("readings", ANYONE, version=0) is old
    assert new.to_arrow() == ld.open(url).to_arrow()
    served.catalog.replace(load_config(str(config), environment={}).tables.values())
    assert served.catalog.open("readings", ANYONE, version=0) is old, "nothing has changed"
    config.write_text(config.read_text("utf-8") + 'comment = "other"\n', "utf-8")
    served.catalog.replace(load_config(str(config), environment={}).tables.values())
    assert served.catalog.open("readings", ANYONE, version=0) is not old
