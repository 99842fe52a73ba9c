"""However a sidecar is found, half there or not at all: any growing table gives its live files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.growing_table import GrowingTable
from tests.support.hypothesis_profile import examples
from tests.support.plain_sidecar import write_plain
from tests.support.reading import STRATEGIES, keys
from tests.support.sidecar_damage import storage_of
from tests.support.sidecar_states import NO_CACHE

SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2)
PREDICATES = (None, "_event_hour >= '0000000003'", "_event_hour < '0000000002' or count is null", "value > 5")


@settings(max_examples=examples(12))
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(PREDICATES),
    st.sampled_from(STRATEGIES),
    st.sampled_from([None, 7]),
)
def test_a_table_is_read_right_whatever_is_found_of_its_sidecars(
    dice: Random, where: str | None, strategy: str, limit: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingTable(Path(folder), dice)
        for _ in range(dice.randint(1, 3)):
            growing.grow(dice.randint(0, 4))
            growing.checkpoint()
            _leave_something(growing, dice)
            growing.grow(dice.randint(0, 3))
            _check(growing, where, strategy, limit)


def _leave_something(growing: GrowingTable, dice: Random) -> None:
    """A sidecar whole, without its manifest, torn or of a part less; a plain one; none; commits gone."""
    table, lazy = growing.table, growing.path / "_delta_log" / "_lazy"
    kind = dice.choice(
        ["whole", "whole", "no manifest", "no manifest", "no part", "torn", "plain", "wrong", "none"]
    )
    if kind in {"plain", "wrong"}:
        share = 1 if kind == "plain" else 2
        write_plain(
            table,
            row_group_rows=dice.choice([2, 100]),
            change=lambda rows: rows.slice(0, rows.num_rows // share),
        )
    elif kind != "none":
        build_sidecar(storage_of(growing.path), config=SMALL, full=dice.random() < 0.5)
        parts = sorted(lazy.glob("*.parquet"))
        victim = dice.choice(parts) if parts else None
        if kind == "no manifest":
            (lazy / f"v{growing.version:020}.manifest.json").unlink()
        elif kind == "no part" and victim is not None:
            victim.unlink()
        elif kind == "torn" and victim is not None:
            victim.write_bytes(victim.read_bytes()[: -dice.randint(1, 200)])
    if dice.random() < 0.2:
        table.clean_up(before=dice.randint(0, growing.version))
    if dice.random() < 0.3:  # one more checkpoint, which has nothing: an older sidecar may serve
        growing.grow(dice.randint(0, 2))
        growing.checkpoint()


def _check(growing: GrowingTable, where: str | None, strategy: str, limit: int | None) -> None:
    url = str(growing.path)
    found = keys(ld.open(url, settings=NO_CACHE).scan(where, strategy=strategy, limit=limit).files())
    off = ld.open(url, storage_options={"delta.sidecar.enabled": "false", "cache_bytes": "0"}).scan(where)
    expected = set(keys(off.files()))
    assert len(found) == len(set(found))
    if where is None:
        assert expected == growing.table.live()
    if limit is None:
        assert set(found) == expected
    else:
        assert len(found) == min(limit, len(expected))
        assert set(found) <= expected
