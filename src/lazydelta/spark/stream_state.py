"""What a stream remembers beside Spark's own files in its checkpoint location, and what it then refuses.

Why: Delta's transactions are kept per application id, and batch numbers start at 0 in every checkpoint
location. The id must live exactly as long as the numbers do, and two streams must never share one.
Contract: in the folder `lazydelta`, `stream.json` is written once, before the first batch; `table` holds the
id of the table that rows went to; the last `settings-N.json` what decided which rows are bad. Every file
appears whole. `open_stream_state` refuses a location, a target and settings that do not belong together:
going on would lose rows or double them.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.stream_files import StreamFiles
from lazydelta.spark.stream_source import RATE_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = "lazydelta"
_STREAM = f"{_FOLDER}/stream.json"
_TABLE = f"{_FOLDER}/table"
_APP_PREFIX = "lazydelta"
# Settings that decide which rows are bad.
_JUDGING = (
    "format", "schema", "event_time", "event_time_format", "event_time_unit", "granularity", "time_zone",
)  # fmt: skip


class StreamIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Written once: what the batch numbers of this checkpoint location count."""

    app_id: str
    source: str


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the target's log says of itself: no id where there is no table yet."""

    table_id: str | None
    transactions: dict[str, int]


class StreamState:
    """The memory of one stream."""

    def __init__(self, files: StreamFiles, identity: StreamIdentity) -> None:
        self.app_id = identity.app_id
        self.table_id = files.read(_TABLE)  # that rows went to, once there were any
        self._files = files

    def keep_table_id(self, table_id: str | None) -> None:
        """Remember the table that rows went to."""
        if table_id is not None and self.table_id is None:
            self._files.write(_TABLE, table_id)
            self.table_id = table_id


def open_stream_state(
    spark: SparkSession, config: IngestConfig, *, source: str, location: str, read_again: bool = False
) -> StreamState:
    """The stream's memory, begun where there is none; refuses what would lose or double rows.

    `source` names what is read. `read_again` allows a new checkpoint location for a source whose rows the
    target has already.
    """
    files = StreamFiles(spark, location)
    facts = target_facts(spark, config.target)
    text = files.read(_STREAM)
    if text is None:
        _refuse_begun(files, facts, location=location, source=source, target=config.target, again=read_again)
        identity = _begin(files, source)
    else:
        identity = msgspec.json.decode(text, type=StreamIdentity)
    state = StreamState(files, identity)
    committed = facts.transactions.get(identity.app_id)
    _refuse_other_source(identity, source, location)
    _refuse_other_target(state, facts, config.target, location)
    _refuse_lost_offsets(files, committed, location)
    rejected = target_facts(spark, config.rejects_path).transactions.get(identity.app_id)
    _keep_settings(files, config, location, half_done=_half_done(files, committed, rejected))
    return state


def target_facts(spark: SparkSession, target: str) -> TargetFacts:
    """The id of the table and the transactions in its log, read afresh."""
    jvm: Any = spark._jvm  # Any: objects of the JVM
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = delta_log.forTableWithSnapshot(spark._jsparkSession, target)._2()
    if snapshot.version() < 0:
        return TargetFacts(table_id=None, transactions={})
    found = snapshot.setTransactions()
    transactions = [found.apply(position) for position in range(found.size())]
    return TargetFacts(
        table_id=snapshot.metadata().id(),
        transactions={transaction.appId(): transaction.version() for transaction in transactions},
    )


def _app_prefix(source: str) -> str:
    return f"{_APP_PREFIX}-{hashlib.sha256(source.encode()).hexdigest()[:16]}-"


def _begin(files: StreamFiles, source: str) -> StreamIdentity:
    identity = StreamIdentity(app_id=_app_prefix(source) + uuid.uuid4().hex, source=source)
    files.write(_STREAM, msgspec.json.encode(identity).decode())
    return identity


def _refuse_begun(
    files: StreamFiles, facts: TargetFacts, *, location: str, source: str, target: str, again: bool
) -> None:
    if _newest_batch(files, "offsets") is not None:
        raise InvalidRequestError(
            "the checkpoint location belongs to another streaming query",
            location,
            "name an empty folder, or one that lazydelta ingest made, as the checkpoint location",
        )
    if not again and any(app_id.startswith(_app_prefix(source)) for app_id in facts.transactions):
        raise InvalidRequestError(
            "the target has rows of this source already, and this checkpoint location does not know which",
            f"{target}, from {source}",
            f"name the checkpoint location of the earlier stream instead of {location}, or say "
            "--read-again to read everything once more: rows will then be in the table twice",
        )


def _refuse_other_source(identity: StreamIdentity, source: str, location: str) -> None:
    if identity.source != source:
        raise InvalidRequestError(
            f"the checkpoint location belongs to a stream from {identity.source}, not from {source}",
            location,
            "name another checkpoint location for this source",
        )


def _refuse_other_target(state: StreamState, facts: TargetFacts, target: str, location: str) -> None:
    known = state.table_id
    if known is not None and known != facts.table_id:
        now = "there is no table now" if facts.table_id is None else f"that table has the id {facts.table_id}"
        raise InvalidRequestError(
            f"the stream has written to the table with the id {known}, but {now}",
            f"{target}, checkpoint location {location}",
            "name the table it wrote to, or another checkpoint location to read everything anew",
        )


def _refuse_lost_offsets(files: StreamFiles, committed: int | None, location: str) -> None:
    # Spark notes a batch's offsets before it runs: the target can never be ahead of them.
    newest = _newest_batch(files, "offsets")
    if committed is not None and (newest is None or newest < committed):
        raise InvalidRequestError(
            f"the target has batch {committed} of this stream, but the checkpoint location knows "
            f"{'no batch' if newest is None else f'none after {newest}'}: new ones would pass for old ones",
            location,
            "restore the checkpoint location, or name a new one with --read-again",
        )


def _half_done(files: StreamFiles, committed: int | None, rejected: int | None) -> int | None:
    """The batch whose rejects are written and whose rows are not, where a run was cut off there."""
    newest, done = _newest_batch(files, "offsets"), _newest_batch(files, "commits")
    return rejected if rejected == newest and rejected not in (done, committed) else None


def _keep_settings(files: StreamFiles, config: IngestConfig, location: str, *, half_done: int | None) -> None:
    """Note what decides which rows are bad; it may not change in the middle of a batch."""
    now = {name: getattr(config, name) for name in _JUDGING}
    now["options"] = {
        name: value for name, value in config.options.items() if name.lower() not in RATE_OPTIONS
    }
    text = msgspec.json.encode(now, order="sorted").decode()
    names = sorted(name for name in files.names(_FOLDER) if re.fullmatch(r"settings-\d{5}\.json", name))
    before = files.read(f"{_FOLDER}/{names[-1]}") if names else None
    if before == text:
        return
    if half_done is not None and before is not None:
        old = msgspec.json.decode(before)
        changed = [name for name in now if msgspec.to_builtins(now[name]) != old.get(name)]
        raise InvalidRequestError(
            f"batch {half_done} was cut off when its rejects were written and its rows were not, "
            f"and other settings ({', '.join(changed)}) may call other rows bad",
            location,
            "run the stream once with the settings as they were, then change them",
        )
    files.write(f"{_FOLDER}/settings-{len(names):05}.json", text)


def _newest_batch(files: StreamFiles, log: str) -> int | None:
    """The newest batch in a log of Spark's: "offsets" of batches begun, or "commits" of those done."""
    return max((int(name) for name in files.names(log) if name.isdigit()), default=None)
