"""What binds a sidecar to one log: restored, copied and rewritten logs are told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lazydelta import limits
from lazydelta.log import LogSegment, find_segment
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar import (
    DeltaFacts,
    Manifest,
    assemble,
    bound_file,
    delta_mismatch,
    make_binding,
    mismatch,
)
from lazydelta.storage import ObjectInfo, Storage
from tests.support.table_builder import TableBuilder
from tests.unit.sidecar.samples import BUILD, layout_for, storage_at

Files = Callable[[ObjectInfo], ObjectInfo]
BIG_COMMIT = {"commit_info": {"operation": "WRITE", "note": "x" * 3 * limits.BINDING_HEAD_BYTES}}


def table(folder: Path, **commit: Any) -> TableBuilder:
    return TableBuilder(folder).commit(adds=["a"]).commit(adds=["b"], **commit).checkpoint().crc()


def segment_of(storage: Storage, etags: Files = lambda info: info) -> LogSegment:
    """The segment, with each file's listing as `etags` has it."""
    segment = find_segment(storage)
    assert segment.checkpoint is not None
    assert segment.checkpoint_commit is not None

    def relisted(file: Any) -> Any:
        return msgspec.structs.replace(file, info=etags(file.info))

    files = tuple(relisted(file) for file in segment.checkpoint.files)
    return msgspec.structs.replace(
        segment,
        checkpoint=msgspec.structs.replace(segment.checkpoint, files=files),
        checkpoint_commit=relisted(segment.checkpoint_commit),
    )


def without_etag(info: ObjectInfo) -> ObjectInfo:
    return msgspec.structs.replace(info, etag=None)


def with_etag(info: ObjectInfo) -> ObjectInfo:
    return msgspec.structs.replace(info, etag=f"e{info.size_bytes}")


def manifest_of(storage: Storage, segment: LogSegment, *, has_commit: bool = True) -> Manifest:
    assert segment.checkpoint is not None
    commit = segment.checkpoint_commit if has_commit else None
    binding = make_binding(storage, segment.checkpoint, commit, num_files=2, total_bytes=2000)
    empty = msgspec.structs.replace(binding, num_files=0)
    manifest = assemble(
        version=1,
        build=BUILD,
        layout=layout_for({"v": "long"}),
        parts=[],
        protocol=Protocol(min_reader_version=1),
        metadata=Metadata(id="t"),
        binding=empty,
    )
    return msgspec.structs.replace(manifest, binding=binding)


def reason(storage: Storage, manifest: Manifest, segment: LogSegment, **more: Any) -> str | None:
    given = {
        "checkpoint": segment.checkpoint,
        "commit": segment.checkpoint_commit,
        "crc": segment.crcs[0] if segment.crcs else None,
        "table_id": "t",
    }
    return mismatch(storage, manifest, **(given | more))


def test_a_sidecar_belongs_to_the_log_it_was_built_from(tmp_path: Path) -> None:
    table(tmp_path)
    storage = storage_at(tmp_path)
    segment = segment_of(storage)
    manifest = manifest_of(storage, segment)
    assert manifest.binding.commit is not None
    assert manifest.binding.commit.name == f"{1:020}.json"
    assert manifest.binding.checkpoint[0].name == f"{1:020}.checkpoint.parquet"
    assert reason(storage, manifest, segment) is None


def test_of_a_copied_log_heads_of_64_kib_are_read_and_with_equal_etags_nothing(tmp_path: Path) -> None:
    table(tmp_path, **BIG_COMMIT)
    storage = storage_at(tmp_path)
    segment = segment_of(storage, without_etag)
    manifest = manifest_of(storage, segment)
    before = storage.counters.snapshot()
    assert reason(storage, manifest, segment) is None
    after = storage.counters.snapshot()
    assert segment.checkpoint is not None
    heads = [min(file.info.size_bytes, limits.BINDING_HEAD_BYTES) for file in segment.checkpoint.files]
    assert after.bytes_read - before.bytes_read == limits.BINDING_HEAD_BYTES + sum(heads)
    tagged = segment_of(storage, with_etag)
    manifest = manifest_of(storage, tagged)
    before = storage.counters.snapshot()
    assert reason(storage, manifest, tagged) is None
    assert storage.counters.snapshot().bytes_read == before.bytes_read


def test_a_commit_of_another_size_or_content_is_another_log(tmp_path: Path) -> None:
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    manifest = manifest_of(storage, segment_of(storage))
    commit = builder.log / f"{1:020}.json"
    body = commit.read_text()
    commit.write_text(body.replace('"b"', '"c"'))
    assert "not the commit" in str(reason(storage_at(tmp_path), manifest, segment_of(storage)))
    commit.write_text(body + "\n")
    assert "not the commit" in str(reason(storage_at(tmp_path), manifest, segment_of(storage)))


def test_a_copied_log_has_other_etags_and_the_same_bytes(tmp_path: Path) -> None:
    table(tmp_path)
    storage = storage_at(tmp_path)
    manifest = manifest_of(storage, segment_of(storage, with_etag))
    copied = segment_of(storage, lambda info: msgspec.structs.replace(info, etag="other"))
    assert reason(storage, manifest, copied) is None


def test_another_tables_sidecar_is_refused_by_its_id(tmp_path: Path) -> None:
    table(tmp_path)
    storage = storage_at(tmp_path)
    segment = segment_of(storage)
    assert "table t" in str(reason(storage, manifest_of(storage, segment), segment, table_id="u"))


@pytest.mark.parametrize("etags", [with_etag, lambda info: info])
def test_where_the_commit_was_cleaned_up_the_checkpoint_must_prove_it(tmp_path: Path, etags: Files) -> None:
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    segment = segment_of(storage, etags)
    for has_commit in (True, False):
        manifest = manifest_of(storage, segment, has_commit=has_commit)
        assert reason(storage, manifest, segment, commit=None) is None
        assert "gone" in str(reason(storage, manifest, segment, commit=None, checkpoint=None))
    checkpoint = builder.log_file("*.checkpoint.parquet")
    body = checkpoint.read_bytes()
    checkpoint.write_bytes(body[:100] + b"\0" + body[101:])
    changed = segment_of(storage, lambda info: msgspec.structs.replace(etags(info), etag=None))
    assert "gone" in str(reason(storage, manifest, changed, commit=None))


def test_a_rewritten_checkpoint_is_fine_where_the_crc_has_the_same_counts(tmp_path: Path) -> None:
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    manifest = manifest_of(storage, segment_of(storage))
    whole = builder.log_file("*.checkpoint.parquet")
    whole.rename(builder.log / f"{1:020}.checkpoint.0000000001.0000000001.parquet")
    segment = segment_of(storage)
    assert reason(storage, manifest, segment) is None
    assert "not those" in str(reason(storage, manifest, segment, crc=None))
    builder.crc(numFiles=3)
    assert "counts" in str(reason(storage, manifest, segment_of(storage)))
    builder.crc(numFiles=None)
    assert "not those" in str(reason(storage, manifest, segment_of(storage)))
    for nonsense in ("{", '{"later":' + "[" * 200_000):
        (builder.log / f"{1:020}.crc").write_text(nonsense)
        assert "not those" in str(reason(storage, manifest, segment_of(storage)))


def test_a_crc_that_is_too_large_is_not_read_to_prove_a_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    manifest = manifest_of(storage, segment_of(storage))
    whole = builder.log_file("*.checkpoint.parquet")
    whole.rename(builder.log / f"{1:020}.checkpoint.0000000001.0000000001.parquet")
    monkeypatch.setattr(limits, "CRC_BYTES_MAX", builder.log_file("*1.crc").stat().st_size - 1)
    segment, before = segment_of(storage), storage.counters.snapshot().bytes_read
    assert "not those" in str(reason(storage, manifest, segment))
    assert storage.counters.snapshot().bytes_read == before


def test_a_commit_that_vanished_since_the_listing_proves_nothing(tmp_path: Path) -> None:
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    segment = segment_of(storage, without_etag)
    manifest = manifest_of(storage, segment)
    builder.delete_commit(1)
    assert "not the commit" in str(reason(storage, manifest, segment))


def test_a_checkpoint_made_anew_with_the_old_beginning_is_not_proven_once_the_commit_is_gone(
    tmp_path: Path,
) -> None:
    """Equal names, sizes and heads: only e-tags can tell."""
    table(tmp_path)
    storage = storage_at(tmp_path)
    built = segment_of(storage, with_etag)
    manifest = manifest_of(storage, built)
    assert reason(storage, manifest, built, commit=None) is None
    anew = segment_of(storage, without_etag)
    assert "not provably" in str(reason(storage, manifest, anew, commit=None))


def test_an_equal_commit_over_another_checkpoint_is_another_log(tmp_path: Path) -> None:
    """Of a copy, the heads of the checkpoint's files count, too; equal counts in a .crc do not."""
    builder = table(tmp_path)
    storage = storage_at(tmp_path)
    manifest = manifest_of(storage, segment_of(storage))
    checkpoint = next(builder.log.glob("*.checkpoint.parquet"))
    body = bytearray(checkpoint.read_bytes())
    body[20] ^= 1
    checkpoint.write_bytes(body)
    anew = storage_at(tmp_path)
    assert "the log is a copy" in str(reason(anew, manifest, segment_of(anew, without_etag)))


def test_a_delta_file_is_bound_to_every_commit_in_it(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"]).commit(["c"])
    storage = storage_at(tmp_path)
    commits = {commit.version: commit for commit in find_segment(storage).commits}
    facts = DeltaFacts(
        checkpoint_version=0,
        after=0,
        until=2,
        table_id="t",
        commit=bound_file(storage, commits[2], with_head=True),
        commit_sizes=tuple(commits[version].info.size_bytes for version in (1, 2)),
    )
    assert delta_mismatch(storage, facts, commits) is None
    assert delta_mismatch(storage, facts, {2: commits[2]}) is None  # the others were cleaned up
    assert "is gone" in str(delta_mismatch(storage, facts, {1: commits[1]}))
    silent = msgspec.structs.replace(facts, commit_sizes=())
    assert "does not tell the sizes" in str(delta_mismatch(storage, silent, commits))
    builder.append_to_commit(1, "\n")
    changed = {commit.version: commit for commit in find_segment(storage).commits}
    assert "commit 1 is not the one" in str(delta_mismatch(storage, facts, changed))
