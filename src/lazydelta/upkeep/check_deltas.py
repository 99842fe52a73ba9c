"""Delta files of a sidecar's folder against the commits that they stand for.

Contract: every add, remove, protocol and metaData of those commits, in the order of the lines, with typed
statistics. Both sides are streams, a slice of a commit at a time. Columns pair up by role and path; one that
the file lacks is no difference. A file whose commits the log no longer holds is not compared, and noted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.commits import ReverseCommitReader
from lazydelta.log.segment import LogListing
from lazydelta.log.snapshot import Snapshot, open_snapshot
from lazydelta.protocol.actions import ActionLine
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.delta_file import DeltaFacts, DeltaFileReader, delta_rows, delta_schema
from lazydelta.sidecar.format.folder import ListedFile
from lazydelta.sidecar.format.layout import SidecarLayout, field_path, layout_of
from lazydelta.storage import Storage
from lazydelta.upkeep.compare_rows import column_pairs, differing_in
from lazydelta.upkeep.findings import Findings
from lazydelta.upkeep.inventory import Inventory, base_name, delta_state

_STATE_ACTIONS = ("protocol", "metaData")
_JSON_COLUMNS = ("protocol", "metadata")


def check_deltas(storage: Storage, inventory: Inventory, findings: Findings, notes: list[str]) -> int:
    """Compare every delta file; how many could be."""
    return sum(_is_checked(storage, file, inventory.log, findings, notes) for file in inventory.deltas)


def _is_checked(
    storage: Storage, file: ListedFile, log: LogListing, findings: Findings, notes: list[str]
) -> bool:
    name = base_name(file.info)
    state = delta_state(storage, file, log)
    if state.facts is None:
        findings.note("delta", name, state.problem or "")
        return True
    facts = state.facts
    gone = [version for version in range(facts.after + 1, facts.until + 1) if version not in log.commits]
    if gone:
        notes.append(f"{name} was not compared: commit {gone[0]} is gone")
        return False
    if state.problem is not None:
        findings.note("delta", name, state.problem)
        return True
    snapshot = open_snapshot(storage, version=facts.until, parallelism=limits.COMMIT_PARALLELISM)
    if facts.table_id != snapshot.state.metadata.id:
        findings.note("delta", name, f"it is of the table {facts.table_id}")
    try:
        problem = _difference(storage, file, facts, log, snapshot)
    except DamagedSidecarError as damage:
        problem = damage.what
    if problem is not None:
        findings.note("delta", name, problem)
    return True


def _difference(
    storage: Storage, file: ListedFile, facts: DeltaFacts, log: LogListing, snapshot: Snapshot
) -> str | None:
    """The first row that is not what the log says, in words."""
    others: Counter[str] = Counter()
    with (
        closing(DeltaFileReader(storage, file.info.name, file.info.size_bytes)) as reader,
        closing(ReverseCommitReader(storage)) as commits,
    ):
        paths = {path for field in reader.schema if (path := field_path(field)) is not None}
        layout = layout_of(
            snapshot.state.metadata, snapshot.schema, stats_paths=sorted(paths), time_column=None
        )
        files = [log.commits[version] for version in range(facts.after + 1, facts.until + 1)]
        rows = _expected_rows(commits.lines(files), layout, storage.root, others)
        expected = _Aligned(rows, delta_schema(layout))
        with closing(reader.batches()) as stream:
            for found in stream:
                told = expected.take(found.num_rows)
                if told.num_rows < found.num_rows:
                    extra = found.slice(told.num_rows, 1).to_pylist()[0]
                    return f"it has a row too many: {extra['action']} {extra['path'] or ''}"
                problem = _row_problem(told, pa.Table.from_batches([found]))
                if problem is not None:
                    return problem
        missing = expected.take(1)
    if missing.num_rows:
        row = missing.to_pylist()[0]
        return f"it lacks {row['action']} {row['path'] or ''} of commit {row['version']} and what follows"
    if dict(others) != facts.other_actions:
        return f"it counts {facts.other_actions} besides, the commits have {dict(others)}"
    return None


def _expected_rows(
    commits: Iterator[tuple[int, list[ActionLine], Counter[str]]],
    layout: SidecarLayout,
    root: str,
    others: Counter[str],
) -> Iterator[pa.RecordBatch]:
    for version, lines, other in commits:
        others.update({name: count for name, count in other.items() if name not in _STATE_ACTIONS})
        yield delta_rows([(version, line) for line in lines], layout, root)


def _row_problem(told: pa.Table, found: pa.Table) -> str | None:
    """The first row that differs, with the columns that do."""
    differing = differing_in(told, found, column_pairs(told.schema, found.schema))
    for pair in list(differing):
        if pair.in_part in _JSON_COLUMNS:
            differing[pair] &= ~_same_json(told.column(pair.in_log), found.column(pair.in_part))
    flags = [flags for flags in differing.values() if flags.any()]
    if not flags:
        return None
    row = int(np.flatnonzero(np.logical_or.reduce(flags))[0])
    names = ", ".join(pair.in_part for pair, flags in differing.items() if flags[row])
    path = told.column("path")[row].as_py() or ""
    action, version = told.column("action")[row].as_py(), told.column("version")[row].as_py()
    return f"{action} {path} of commit {version} differs in {names}"


def _same_json(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Texts that say the same, whatever fields a version of lazydelta writes; few rows have any."""
    same = np.zeros(len(left), np.bool_)
    for row in np.flatnonzero(left.is_valid().to_numpy() & right.is_valid().to_numpy()):
        same[row] = _meaning(left[row].as_py()) == _meaning(right[row].as_py())
    return same


def _meaning(text: str) -> object:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return {name: value for name, value in document.items() if value not in (None, [], {})}


class _Aligned:
    """A stream of batches that is taken in portions as large as the other side's."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self._schema = schema
        self._left: list[pa.RecordBatch] = []

    def take(self, row_count: int) -> pa.Table:
        """As many rows, or what is left of them."""
        while sum(batch.num_rows for batch in self._left) < row_count:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._left.append(batch)
        held = pa.Table.from_batches(self._left, self._schema)
        self._left = held.slice(row_count).to_batches()
        return held.slice(0, row_count)
