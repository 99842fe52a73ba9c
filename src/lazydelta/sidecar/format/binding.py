"""What binds a sidecar to one log, and the reason where it does not belong to the log at hand.

Why: a table that was restored, or dropped and made again, has the same versions but other files.
Contract: nothing is read where the e-tag of `N.json` settles it. Where it does not, because the log is a
copy, the first 64 KiB of `N.json` and of the checkpoint's files must be those of the build; where `N.json` is
gone, nothing but e-tags counts: a checkpoint made anew may begin like the old one and have its size. `N.crc`
is read only where the checkpoint's files are others, though the commit is the very same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from lazydelta import limits
from lazydelta.log.checksum import read_checksum
from lazydelta.log.segment import CheckpointFiles, LogFile, LogListing, LogSegment
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.sidecar.format.delta_file import DeltaFacts
from lazydelta.sidecar.format.manifest import Binding, BoundFile, Manifest
from lazydelta.storage import ObjectNotFoundError, ObjectTooShortError, Storage


def make_binding(
    storage: Storage,
    checkpoint: CheckpointFiles,
    commit: LogFile | None,
    *,
    num_files: int,
    total_bytes: int,
) -> Binding:
    """The binding to the checkpoint's files and, where it is still there, to `N.json`."""
    return Binding(
        commit=None if commit is None else bound_file(storage, commit, with_head=True),
        # A copy has other e-tags: then the files' heads stand in for them.
        checkpoint=tuple(
            bound_file(storage, file, with_head=len(checkpoint.files) <= limits.BINDING_HEADS_MAX)
            for file in checkpoint.files
        ),
        num_files=num_files,
        total_bytes=total_bytes,
    )


def bound_file(storage: Storage, file: LogFile, *, with_head: bool) -> BoundFile:
    """A file of the log as it is now."""
    return BoundFile(
        name=_below_log(file),
        size_bytes=file.info.size_bytes,
        etag=file.info.etag,
        head_sha256=_head_sha256(storage, file) if with_head else None,
    )


def mismatch(
    storage: Storage,
    manifest: Manifest,
    *,
    checkpoint: CheckpointFiles | None,
    commit: LogFile | None,
    crc: LogFile | None = None,
    table_id: str | None = None,
) -> str | None:
    """Why the manifest does not belong to this log; None if it does.

    `checkpoint`, `commit` and `crc` are what the log has now for the manifest's version, `table_id` the id of
    its metadata there, where known.
    """
    binding = manifest.binding
    if table_id is not None and table_id != manifest.table_id:
        return f"it is of the table {manifest.table_id}, not {table_id}"
    if commit is None or binding.commit is None:
        is_proven = checkpoint is not None and _has_etags_of(binding, checkpoint)
        reason = "the commit is gone, and the checkpoint is not provably the one it was built from"
        return None if is_proven else reason
    if not is_same(storage, binding.commit, commit):
        return f"{binding.commit.name} is not the commit it was built from"
    return _checkpoint_mismatch(
        storage, binding, checkpoint, crc, is_copy=not _has_etag(binding.commit, commit)
    )


def segment_mismatch(storage: Storage, manifest: Manifest, segment: LogSegment) -> str | None:
    """Why the manifest does not belong to the segment's checkpoint; None if it does."""
    return mismatch(
        storage,
        manifest,
        checkpoint=segment.checkpoint,
        commit=segment.checkpoint_commit,
        crc=next((crc for crc in segment.crcs if crc.version == segment.floor), None),
        table_id=manifest.metadata.id,
    )


def foreign_reason(
    storage: Storage, manifest: Manifest, log: LogListing, *, table_id: str | None = None
) -> str | None:
    """Why the manifest does not belong to the log that was listed; None if it does."""
    at_version = [found for found in log.checkpoints if found.version == manifest.version]
    bound = [file.name for file in manifest.binding.checkpoint]
    # Several checkpoints of one version are equals: the sidecar was made from one of them.
    same = [found for found in at_version if [_below_log(file) for file in found.files] == bound]
    return mismatch(
        storage,
        manifest,
        checkpoint=next(reversed(same or at_version), None),
        commit=log.commits.get(manifest.version),
        crc=log.crcs.get(manifest.version),
        table_id=table_id,
    )


def delta_mismatch(storage: Storage, facts: DeltaFacts, commits: Mapping[int, LogFile]) -> str | None:
    """Why a delta file does not stand for these commits; None if it does.

    Those of its commits that were cleaned up cannot be compared: `V.json` alone must be there.
    """
    last = commits.get(facts.until)
    if last is None:
        return f"{facts.commit.name} is gone, so it cannot be told whose it is"
    if len(facts.commit_sizes) != facts.until - facts.after:
        return "it does not tell the sizes of its commits"
    for version, size in enumerate(facts.commit_sizes, start=facts.after + 1):
        if version in commits and commits[version].info.size_bytes != size:
            return f"commit {version} is not the one it was made from"
    if not is_same(storage, facts.commit, last):
        return f"{facts.commit.name} is not the commit it was made from"
    return None


def is_same(storage: Storage, bound: BoundFile, file: LogFile) -> bool:
    """Whether the file is provably the bound one: name and size, and e-tag or the hash of its head."""
    if (bound.name, bound.size_bytes) != (_below_log(file), file.info.size_bytes):
        return False
    if _has_etag(bound, file):
        return True
    return bound.head_sha256 is not None and bound.head_sha256 == _head_sha256(storage, file)


def _has_etag(bound: BoundFile, file: LogFile) -> bool:
    return bound.etag is not None and bound.etag == file.info.etag


def _has_etags_of(binding: Binding, checkpoint: CheckpointFiles) -> bool:
    """Whether the checkpoint's files are the very objects of the build."""
    return _sizes(binding) == _sizes_now(checkpoint) and all(
        map(_has_etag, binding.checkpoint, checkpoint.files)
    )


def _begins_alike(storage: Storage, binding: Binding, checkpoint: CheckpointFiles) -> bool:
    """Whether files of these names and sizes begin as those of the build, as far as it kept their heads."""
    return all(
        was.head_sha256 is None or is_same(storage, was, now)
        for was, now in zip(binding.checkpoint, checkpoint.files, strict=True)
    )


def _checkpoint_mismatch(
    storage: Storage,
    binding: Binding,
    checkpoint: CheckpointFiles | None,
    crc: LogFile | None,
    *,
    is_copy: bool,
) -> str | None:
    has_sizes = checkpoint is not None and _sizes(binding) == _sizes_now(checkpoint)
    if not is_copy:
        return None if has_sizes else _counts_mismatch(storage, binding, crc)
    if checkpoint is not None and has_sizes and _begins_alike(storage, binding, checkpoint):
        return None
    return "the log is a copy, and its checkpoint is not the one that it was built from"


def _counts_mismatch(storage: Storage, binding: Binding, crc: LogFile | None) -> str | None:
    reason = "the checkpoint's files are not those it was built from"
    checksum = None if crc is None else read_checksum(storage, crc)
    if checksum is None or checksum.num_files is None or checksum.table_size_bytes is None:
        return reason
    if (checksum.num_files, checksum.table_size_bytes) != (binding.num_files, binding.total_bytes):
        return f"{reason}, and the counts in the .crc differ"
    return None


def _head_sha256(storage: Storage, file: LogFile) -> str | None:
    """Of the first 64 KiB; None where the file is gone or shorter than it was listed."""
    length = min(file.info.size_bytes, limits.BINDING_HEAD_BYTES)
    try:
        head = storage.get_range(file.name, 0, length) if length else b""
    except (ObjectNotFoundError, ObjectTooShortError):
        return None
    return hashlib.sha256(head).hexdigest()


def _below_log(file: LogFile) -> str:
    return file.name.removeprefix(f"{LOG_FOLDER}/")


def _sizes(binding: Binding) -> list[tuple[str, int]]:
    return [(file.name, file.size_bytes) for file in binding.checkpoint]


def _sizes_now(checkpoint: CheckpointFiles) -> list[tuple[str, int]]:
    return [(_below_log(file), file.info.size_bytes) for file in checkpoint.files]
