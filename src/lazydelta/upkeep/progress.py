"""What a long piece of work tells while it runs: named events with plain facts, in order.

Contract: whoever listens must not raise; the work does not depend on being listened to.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the name of an event and its facts."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Something happened."""
        ...


def silent(event: str, /, **facts: object) -> None:
    """Tell nobody."""
