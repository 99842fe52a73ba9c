"""Forked processes and stores: obstore's threads do not survive a fork.

Why: a child of a process that has asked a store for something would wait for ever for threads that it does
not have. Contract: such a child gets an error that says what to do, at once. A child of a process that has
asked no store reads as any other.
"""

from __future__ import annotations

import os

from lazydelta.errors import StorageError

_is_used = False  # whether this process, or the one that it was forked from, has asked a store for something
_is_orphan = False  # whether the threads for that are in another process


def check_fork(where: str) -> None:
    """Raise where nobody would answer; otherwise this process counts as one that asks."""
    global _is_used  # noqa: PLW0603 - of the process
    if _is_orphan:
        raise StorageError(
            "this process was forked from one that had read from a store, whose threads do not survive that",
            where,
            'start processes anew, as in multiprocessing.get_context("spawn"), or fork before the first read',
        )
    _is_used = True


def _forked() -> None:
    global _is_orphan  # noqa: PLW0603 - as above
    _is_orphan = _is_used


os.register_at_fork(after_in_child=_forked)
