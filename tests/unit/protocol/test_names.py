"""Which file of the log is which."""

from __future__ import annotations

import pytest

from lazydelta.protocol.names import LogFileKind, parse_log_name

V = "00000000000000000010"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{V}.json", LogFileKind.COMMIT),
        (f"{V}.crc", LogFileKind.CRC),
        (f"{V}.checkpoint.parquet", LogFileKind.CHECKPOINT),
        (f"{V}.checkpoint.0000000001.0000000003.parquet", LogFileKind.CHECKPOINT),
        (f"{V}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet", LogFileKind.CHECKPOINT),
        (f"{V}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", LogFileKind.CHECKPOINT),
        (f"{V}.00000000000000000015.compacted.json", LogFileKind.COMPACTED),
    ],
)
def test_files_of_the_log_are_recognised(name: str, kind: LogFileKind) -> None:
    parsed = parse_log_name(name)
    assert parsed is not None
    assert (parsed.kind, parsed.version) == (kind, 10)


def test_a_multi_part_name_tells_part_and_parts() -> None:
    parsed = parse_log_name(f"{V}.checkpoint.0000000002.0000000003.parquet")
    assert parsed is not None
    assert (parsed.part, parsed.parts, parsed.unique) == (2, 3, None)


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "10.json",
        f".{V}.json.crc",
        f"{V}.json.tmp",
        f"{V}.checkpoint.json",
        f"{V}.checkpoint.parquet.tmp",
        f"_commits/{V}.json",
        f"x{V}.json",
        f"{V}.compacted.json",
        f"{V}.json\n",  # a second commit of the version otherwise
        f"{V[:-1]}\N{ARABIC-INDIC DIGIT NINE}.json",
    ],
)
def test_other_names_are_none_of_deltas(name: str) -> None:
    assert parse_log_name(name) is None
