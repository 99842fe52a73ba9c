"""Rule 4: protocol and metadata at V are known before any file comes out, and cheaply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, UnsupportedTableError
from tests.support import actions
from tests.support.checkpoint_writer import KINDS
from tests.support.reading import live_keys
from tests.support.table_builder import TableBuilder

OTHER_SCHEMA = {"device_id": "string", "value": "double", "added": "long", "date": "date"}


def columns(table: TableBuilder, version: int | None = None) -> list[str]:
    """The column names lazydelta sees."""
    return list(ld.open(str(table.path), version=version).schema.names)


@pytest.mark.parametrize("kind", KINDS)
def test_rule_4_the_newest_metadata_wins_whether_in_the_tail_or_in_the_checkpoint(
    tmp_path: Path, kind: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(metadata=actions.metadata(OTHER_SCHEMA)).commit(["b"])
    assert columns(table) == list(OTHER_SCHEMA)
    table.checkpoint(kind)
    assert columns(table) == list(OTHER_SCHEMA)
    table.commit(metadata=actions.metadata(actions.TELEMETRY)).commit(["c"])
    assert columns(table) == list(actions.TELEMETRY)
    assert columns(table, version=0) == list(actions.TELEMETRY)
    assert columns(table, version=2) == list(OTHER_SCHEMA)


@pytest.mark.parametrize("crc_at", [1, 2, 3, 4])
def test_rule_4_a_crc_is_overridden_by_the_commits_after_it(tmp_path: Path, crc_at: int) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"])
    table.commit(metadata=actions.metadata(OTHER_SCHEMA)).commit(["d"]).crc(crc_at)
    assert columns(table) == list(OTHER_SCHEMA)
    assert live_keys(tmp_path) == table.live()


def test_rule_4_a_stale_crc_left_by_a_rewritten_log_is_dropped(tmp_path: Path) -> None:
    # The log was rewritten from another table's: the `.crc` of version 1 tells of a commit that is gone.
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    stale = actions.metadata(OTHER_SCHEMA, table_id="99999999-0000-0000-0000-000000000000")
    table.crc(txnId="ffffffff-0000-4000-8000-000000000001", metadata=stale)
    opened = ld.open(str(tmp_path))
    assert opened.metadata.id == table.metadata["id"]
    assert columns(table) == list(actions.TELEMETRY)


def test_rule_4_a_stale_crc_must_not_hide_an_unreadable_protocol(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    table.commit(protocol=actions.protocol(["timeCrystals"]))
    table.crc(txnId="ffffffff-0000-4000-8000-000000000001", protocol=actions.protocol())
    with pytest.raises(UnsupportedTableError, match="timeCrystals"):
        list(ld.open(str(tmp_path)).scan().files())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"protocol": 3}', b"\xff\xfe"])
def test_rule_4_an_unreadable_crc_is_a_shortcut_lost_and_no_more(tmp_path: Path, content: bytes) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).crc()
    table.corrupt("*2.crc", content)
    assert live_keys(tmp_path) == table.live()


def test_rule_4_a_crc_below_the_checkpoint_does_not_count(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).crc()
    table.commit(metadata=actions.metadata(OTHER_SCHEMA)).checkpoint().commit(["b"])
    assert columns(table) == list(OTHER_SCHEMA)


@pytest.mark.parametrize("missing", ["protocol", "metadata"])
@pytest.mark.parametrize("place", ["commits", "checkpoint"])
def test_rule_4_a_log_without_protocol_or_metadata_is_an_error_that_names_it(
    tmp_path: Path, missing: str, place: str
) -> None:
    without: dict[str, Any] = {missing: None}
    table = TableBuilder(tmp_path).commit(["a"], **without)
    if place == "checkpoint" and missing == "protocol":
        table.checkpoint().commit(["b"]).clean_up(before=1)
    else:
        table.commit(["b"])
    with pytest.raises(CorruptLogError, match="protocol" if missing == "protocol" else "metaData"):
        list(ld.open(str(tmp_path)).scan().files())


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_rule_4_a_checkpoint_without_protocol_or_metadata_is_not_mended_from_older_commits(
    tmp_path: Path, missing: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    if missing == "protocol":
        table.states[1].protocol = None
        table.checkpoint()
        with pytest.raises(CorruptLogError, match="protocol"):
            list(ld.open(str(tmp_path)).scan().files())
    else:
        table.checkpoint("v2-json")
        path = table.log_file("*.checkpoint.*.json")
        lines = [line for line in path.read_text().splitlines() if "metaData" not in json.loads(line)]
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(CorruptLogError, match="metaData"):
            list(ld.open(str(tmp_path)).scan().files())


@pytest.mark.parametrize(
    ("protocol", "word"),
    [
        (actions.protocol([], reader_version=4, writer_version=7), "4"),
        (actions.protocol(["deletionVectors", "timeCrystals"]), "timeCrystals"),
        (actions.protocol(["catalogManaged"]), "catalog"),
        (actions.protocol(["catalogOwned-preview"]), "catalog"),
    ],
)
def test_rule_4_what_the_reader_cannot_honour_is_an_error_that_names_it(
    tmp_path: Path, protocol: dict[str, object], word: str
) -> None:
    TableBuilder(tmp_path, protocol=protocol).commit(["a"])
    with pytest.raises(UnsupportedTableError, match=word) as caught:
        list(ld.open(str(tmp_path)).scan().files())
    assert str(tmp_path) in caught.value.where


def test_rule_4_unknown_writer_features_are_ignored(tmp_path: Path) -> None:
    protocol = actions.protocol(["deletionVectors"])
    protocol["writerFeatures"] = ["deletionVectors", "timeCrystals", "icebergCompatV9"]
    table = TableBuilder(tmp_path, protocol=protocol).commit(["a"])
    assert live_keys(tmp_path) == table.live()


@pytest.mark.parametrize("versions", [(1, 2), (1, 7), (2, 5)])
def test_rule_4_old_protocols_without_features_are_read(tmp_path: Path, versions: tuple[int, int]) -> None:
    reader, writer = versions
    protocol = actions.protocol(["columnMapping"], reader_version=reader, writer_version=writer)
    table = TableBuilder(tmp_path, protocol=protocol).commit(["a"]).checkpoint().commit(["b"])
    assert live_keys(tmp_path) == table.live()


@pytest.mark.parametrize(
    "feature",
    [
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    ],
)
def test_rule_4_every_reader_feature_that_the_protocol_lists_is_honoured(
    tmp_path: Path, feature: str
) -> None:
    table = TableBuilder(tmp_path, protocol=actions.protocol([feature])).commit(["a"])
    assert live_keys(tmp_path) == table.live()


def test_rule_4_row_tracking_and_in_commit_timestamps_disturb_nobody(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, row_tracking=True, in_commit_timestamps=True, column_mapping="id")
    table.commit(["a"]).commit(["b"], ["a"]).checkpoint().commit(["c"])
    assert live_keys(tmp_path) == table.live()


def test_rule_4_a_schema_of_later_types_is_told(tmp_path: Path) -> None:
    schema = {"id": "timestamp_ntz", "v": "variant", "d": "decimal(38,18)", "date": "date"}
    table = TableBuilder(tmp_path, schema=schema, protocol=actions.protocol(["variantType", "timestampNtz"]))
    table.commit(["a"])
    assert columns(table) == list(schema)


def test_rule_4_metadata_without_a_schema_is_an_empty_table_to_spark_and_opens(tmp_path: Path) -> None:
    metadata = actions.metadata(partition_columns=())
    del metadata["schemaString"]
    table = TableBuilder(tmp_path).commit(["a"], metadata=metadata)
    assert live_keys(tmp_path) == table.live()
    assert columns(table) == []
