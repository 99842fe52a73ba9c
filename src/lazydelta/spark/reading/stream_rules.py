"""Which commits a stream of rows may pass, and which end it: deletes, rewrites, another schema.

Why: a stream only adds. What a commit takes away, or writes again, its readers must have agreed to. Contract:
the options mean what they mean to Delta's own source. A commit that only deletes passes with `ignoreDeletes`
or `ignoreChanges`; one that rewrites passes with `ignoreChanges`, and its files come again; with
`skipChangeCommits` neither gives any file.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from lazydelta.errors import InvalidRequestError, LazyDeltaError, UnsupportedTableError
from lazydelta.log.snapshot import Snapshot
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.features import check_readable
from lazydelta.protocol.schema import table_schema
from lazydelta.spark.reading.options import ReadOptions
from lazydelta.spark.reading.stream_commits import CommitFacts

# Of a field's metadata what is for writers and people; inserts into an identity column tell some of it anew.
_WRITERS_OWN = re.compile(
    r"comment\Z|CURRENT_DEFAULT\Z|delta\.(identity\.|generationExpression|invariants|constraints)"
)


def objection(facts: CommitFacts, options: ReadOptions, pinned: Snapshot) -> LazyDeltaError | None:
    """Why the stream cannot go past this commit, or None."""
    return _to_removes(facts, options, pinned) or _to_state(facts, pinned)


def is_skipped(facts: CommitFacts, options: ReadOptions) -> bool:
    """Whether its files are left out."""
    return facts.has_removes and options.skipchangecommits


def _to_removes(facts: CommitFacts, options: ReadOptions, pinned: Snapshot) -> LazyDeltaError | None:
    if not facts.has_removes or options.skipchangecommits or options.ignorechanges:
        return None
    if facts.file_bytes:
        return InvalidRequestError(
            f"version {facts.version} rewrites rows that the stream may have read",
            pinned.storage.root,
            "give the option skipChangeCommits to pass such versions by, or ignoreChanges to read the files "
            "that they wrote, unchanged rows again among them",
        )
    if options.ignoredeletes:
        return None
    return InvalidRequestError(
        f"version {facts.version} deletes rows that the stream may have read",
        pinned.storage.root,
        "give the option ignoreDeletes, or skipChangeCommits, to go on",
    )


def _to_state(facts: CommitFacts, pinned: Snapshot) -> LazyDeltaError | None:
    root, metadata = pinned.storage.root, facts.metadata
    if metadata is not None and metadata.id != pinned.state.metadata.id:
        return UnsupportedTableError(
            f"version {facts.version} is of another table",
            root,
            "the table was replaced: start the stream anew, with a new checkpoint location",
        )
    if facts.version <= pinned.version:  # the schema is newer than what these versions wrote
        return None
    known = pinned.state.metadata
    if metadata is not None and (
        _as_readers_know_it(metadata, root) != _as_readers_know_it(known, root)
        or metadata.partition_columns != known.partition_columns
        or metadata.mapping_mode != known.mapping_mode
    ):
        return UnsupportedTableError(
            f"version {facts.version} changes the table's schema",
            root,
            "start the query again: it goes on from its checkpoint with the new schema",
        )
    if facts.protocol is not None:
        try:
            check_readable(facts.protocol, root)
        except LazyDeltaError as refused:
            return refused
    return None


def _as_readers_know_it(metadata: Metadata, root: str) -> Any:  # Any: the schema as data
    return _without_writers_own(msgspec.to_builtins(table_schema(metadata, root)))


def _without_writers_own(node: Any) -> Any:  # Any: the schema as data
    if isinstance(node, list | tuple):
        return [_without_writers_own(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {name: _without_writers_own(value) for name, value in node.items()}
    if "nullable" in node:  # a field
        metadata = node.get("metadata") or {}
        found["metadata"] = {name: value for name, value in metadata.items() if not _WRITERS_OWN.match(name)}
    return found
