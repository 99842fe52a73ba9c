"""Statistics looked up by path: the same from every source, and what the log says, for any history."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from tests.property.test_sidecar_reads import build_some
from tests.support.actions import physical_name
from tests.support.eager_twin import replay
from tests.support.growing_table import grown_in_steps
from tests.support.histories import History, build, histories
from tests.support.hypothesis_profile import examples
from tests.support.keys import Action

SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2, delta_commits_min=2)
PLAIN = Settings(sidecar_enabled=False)
COLUMNS = ["value", "count", "device_id", "region"]


@settings(max_examples=examples(15))
@given(histories(), st.randoms(use_true_random=False))
def test_look_ups_tell_what_the_log_says_of_each_live_path(history: History, dice: random.Random) -> None:
    told = [
        axes | {"stats": "json" if axes["stats"] == "none" else axes["stats"]} for axes in history.checkpoints
    ]
    # The twin reads statistics as JSON, so from commits.
    history = msgspec.structs.replace(history, checkpoints=tuple(told), clean_up=False)
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        build_some(Path(folder), [axes["version"] for axes in history.checkpoints], dice)
        live = replay(Path(folder)).live
        times = Counter(path for path, _ in live)
        actions = {path: action for (path, _), action in live.items() if times[path] == 1}
        asked = [*actions, "gone.parquet", "region=x/gone.parquet", "file:///elsewhere/gone"] * 2
        dice.shuffle(asked)
        through = looked_up(folder, asked, COLUMNS)
        assert same(through, looked_up(folder, asked, COLUMNS, settings=PLAIN))
        assert same(through, [expected(path, actions.get(path), history.column_mapping) for path in asked])


@settings(max_examples=examples(6))
@given(st.randoms(use_true_random=False))
def test_look_ups_agree_at_every_step_of_a_growing_table_whatever_is_damaged(dice: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for growing in grown_in_steps(Path(folder), dice, SMALL):
            damage(Path(folder), dice)
            live = replay(Path(folder)).paths()
            known = sorted({path for state in growing.table.states for path, _ in state.live})
            asked = dice.sample(known, min(len(known), dice.choice([1, 3, 40])))
            through = looked_up(folder, asked, ["value", "count", "_event_hour"])
            assert [row["live"] for row in through] == [path in live for path in asked]
            assert same(through, looked_up(folder, asked, ["value", "count", "_event_hour"], settings=PLAIN))


def damage(table: Path, dice: random.Random) -> None:
    """Perhaps cut, empty or delete a file of the sidecar; what is drawn does not depend on the files."""
    kind, which, kept = dice.randrange(6), dice.random(), dice.random()
    files = sorted((table / "_delta_log" / "_lazy").glob("v*"))
    if not files or kind > 2:
        return
    path = files[int(which * len(files))]
    match kind:
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(b"")
        case _:
            path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])


def looked_up(
    folder: str, paths: list[str], columns: list[str], settings: Settings | None = None
) -> list[dict[str, Any]]:
    rows = ld.open(folder, settings=settings).get_stats_for_files(paths, columns).to_pylist()
    assert [row["path"] for row in rows] == paths
    return list(rows)


def same(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """NaN is equal to itself here."""
    return repr(rows) == repr(others)


def expected(path: str, action: Action | None, column_mapping: str | None) -> dict[str, Any]:
    """The row that the action stands for, worked out by hand."""
    row: dict[str, Any] = {"path": path, "live": action is not None}
    try:
        stats = json.loads((action or {}).get("stats") or "{}")
    except json.JSONDecodeError:
        stats = {}
    row |= {"num_records": stats.get("numRecords"), "tight_bounds": stats.get("tightBounds")}
    vector = (action or {}).get("deletionVector")
    row["deleted_rows"] = None if action is None else 0 if vector is None else vector["cardinality"]
    for name in COLUMNS[:3]:
        physical = physical_name(name, column_mapping)
        for label, kind in (("min", "minValues"), ("max", "maxValues"), ("null_count", "nullCount")):
            value = stats.get(kind, {}).get(physical)
            row[f"{label}.{name}"] = (
                float(value) if name == "value" and label != "null_count" and value is not None else value
            )
    region = None if action is None else action["partitionValues"][physical_name("region", column_mapping)]
    nulls = None if action is None else 0 if region is not None else stats.get("numRecords")
    return row | {"min.region": region, "max.region": region, "null_count.region": nulls}
