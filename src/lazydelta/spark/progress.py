"""What the pipeline tells while it runs: named events with plain fields, in order.

Events of one batch: `reading`, `counted` (rows, rejected, periods), `rejects` (version, rows), `writing`
(tasks, files planned), `committed` (version, files, bytes) or `replayed`, then `sidecar` or
`sidecar_failed`. While Spark works, `running` (tasks done, tasks) comes in between.
Contract: whoever listens must not raise; a batch does not depend on being listened to.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A listener."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Hear of one event."""


def silent(event: str, /, **fields: object) -> None:
    """Nobody listens."""
