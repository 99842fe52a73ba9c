"""Rule 15, time travel: which version a moment means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError, VersionNotFoundError
from tests.support import actions
from tests.support.actions import COMMIT_STEP_MS, FIRST_COMMIT_MS
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

ICT = actions.protocol(["deletionVectors", "v2Checkpoint", "inCommitTimestamp"])


def moment(ms: int) -> datetime:
    """A time in milliseconds as a user would give it."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def version_at(table: TableBuilder, ms: int) -> int:
    """The version lazydelta takes for that moment."""
    return int(ld.open(str(table.path), timestamp=moment(ms)).version)


def test_rule_15_a_moment_means_the_last_commit_at_or_before_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"])
    for version in range(3):
        at = FIRST_COMMIT_MS + version * COMMIT_STEP_MS
        assert version_at(table, at) == version
        if version < 2:
            assert version_at(table, at + COMMIT_STEP_MS - 1) == version


@pytest.mark.parametrize("spelled", ["iso", "iso with zone", "datetime"])
def test_rule_15_a_moment_may_be_text_or_a_datetime(tmp_path: Path, spelled: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"])
    when = moment(FIRST_COMMIT_MS + COMMIT_STEP_MS)
    spellings: dict[str, datetime | str] = {
        "iso": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "iso with zone": when.astimezone().isoformat(),
        "datetime": when,
    }
    opened = ld.open(str(tmp_path), timestamp=spellings[spelled])
    assert opened.version == 1
    assert set(keys(opened.scan().files())) == table.live(1)


def test_rule_15_file_times_are_made_strictly_increasing(tmp_path: Path) -> None:
    # Commit 1 seems older than commit 0 (a copied log): it counts as one millisecond after it.
    table = TableBuilder(tmp_path).commit(["a"], timestamp_ms=FIRST_COMMIT_MS)
    table.commit(["b"], timestamp_ms=FIRST_COMMIT_MS - 500_000).commit(
        ["c"], timestamp_ms=FIRST_COMMIT_MS + 10
    )
    assert version_at(table, FIRST_COMMIT_MS) == 0
    assert version_at(table, FIRST_COMMIT_MS + 1) == 1
    assert version_at(table, FIRST_COMMIT_MS + 10) == 2


def test_rule_15_a_moment_after_the_last_commit_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    with pytest.raises(VersionNotFoundError, match="2026"):
        ld.open(str(table.path), timestamp=moment(FIRST_COMMIT_MS + COMMIT_STEP_MS) + timedelta(seconds=1))


def test_rule_15_a_moment_before_the_first_commit_is_an_error_that_says_when_it_was(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    with pytest.raises(VersionNotFoundError) as caught:
        ld.open(str(table.path), timestamp=moment(FIRST_COMMIT_MS) - timedelta(days=1))
    assert "2026-02-02" in str(caught.value)


def test_rule_15_in_commit_timestamps_are_used_where_they_are_enabled(tmp_path: Path) -> None:
    # The file times say nothing: the log was copied yesterday.
    table = TableBuilder(tmp_path, in_commit_timestamps=True)
    for version in range(4):
        table.commit(
            [f"v{version}"], timestamp_ms=FIRST_COMMIT_MS * 2, in_commit_timestamp=1000 * (version + 1)
        )
    assert version_at(table, 1000) == 0
    assert version_at(table, 2999) == 1
    assert version_at(table, 4000) == 3
    with pytest.raises(VersionNotFoundError):
        version_at(table, 4001)
    with pytest.raises(VersionNotFoundError):
        version_at(table, 999)


def test_rule_15_from_the_enablement_version_on_only_in_commit_timestamps_count(tmp_path: Path) -> None:
    base = FIRST_COMMIT_MS
    table = TableBuilder(tmp_path).commit(["a"], timestamp_ms=base).commit(["b"], timestamp_ms=base + 1000)
    enabled = actions.metadata(
        configuration={
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "2",
            "delta.inCommitTimestampEnablementTimestamp": str(base + 5000),
        }
    )
    # The file time of version 2 is later than what the commit says of itself.
    table.commit(metadata=enabled, protocol=ICT, timestamp_ms=base + 60_000, in_commit_timestamp=base + 5000)
    table.commit(["c"], timestamp_ms=base + 60_001, in_commit_timestamp=base + 6000)
    assert version_at(table, base) == 0
    assert version_at(table, base + 4999) == 1
    assert version_at(table, base + 5000) == 2
    assert version_at(table, base + 6000) == 3


@pytest.mark.parametrize("enabled_at", ["two", "-2", "9" * 5000])
def test_rule_15_an_enablement_version_that_is_none_is_an_error_that_names_it(
    tmp_path: Path, enabled_at: str
) -> None:
    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": enabled_at,
    }
    table = TableBuilder(tmp_path).commit(
        metadata=actions.metadata(configuration=properties), protocol=ICT, in_commit_timestamp=FIRST_COMMIT_MS
    )
    with pytest.raises(CorruptLogError, match="inCommitTimestampEnablementVersion"):
        version_at(table, FIRST_COMMIT_MS)


def test_rule_15_times_before_the_enablement_never_reach_past_it(tmp_path: Path) -> None:
    # Version 1's file was touched long after version 2 was enabled: it is still older than version 2.
    base = FIRST_COMMIT_MS
    table = TableBuilder(tmp_path).commit(["a"], timestamp_ms=base).commit(["b"], timestamp_ms=base + 900_000)
    enabled = actions.metadata(
        configuration={
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "2",
            "delta.inCommitTimestampEnablementTimestamp": str(base + 5000),
        }
    )
    table.commit(metadata=enabled, protocol=ICT, timestamp_ms=base + 900_001, in_commit_timestamp=base + 5000)
    assert version_at(table, base + 4000) == 0
    assert version_at(table, base + 5000) == 2


def test_rule_15_a_moment_in_the_part_that_was_cleaned_up_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).checkpoint().commit(["d"])
    table.clean_up(before=2)
    with pytest.raises(VersionNotFoundError):
        version_at(table, FIRST_COMMIT_MS + COMMIT_STEP_MS)
    assert version_at(table, FIRST_COMMIT_MS + 2 * COMMIT_STEP_MS) == 2
    assert version_at(table, FIRST_COMMIT_MS + 3 * COMMIT_STEP_MS) == 3


def test_rule_15_a_version_and_a_moment_together_are_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(LazyDeltaError):
        ld.open(str(table.path), version=0, timestamp=moment(FIRST_COMMIT_MS))


@pytest.mark.parametrize("moment", [datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59-12:00"])
def test_a_time_beyond_pythons_years_is_after_the_last_commit(tmp_path: Path, moment: datetime | str) -> None:
    TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(VersionNotFoundError, match="after the last commit"):
        ld.open(tmp_path, timestamp=moment)


@pytest.mark.parametrize("ms", [1_094_945_674_320, 1_770_764_400_123, 2_173_933_884_548, -1])
def test_a_time_is_the_millisecond_that_it_says(tmp_path: Path, ms: int) -> None:
    table = TableBuilder(tmp_path, in_commit_timestamps=True)
    for version, at in enumerate((ms - 1, ms, ms + 1)):
        table.commit([f"v{version}"], in_commit_timestamp=at)
    exactly = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    moments = [exactly - timedelta(microseconds=1), exactly, exactly + timedelta(microseconds=999)]
    assert [ld.open(tmp_path, timestamp=moment).version for moment in moments] == [0, 1, 1]
