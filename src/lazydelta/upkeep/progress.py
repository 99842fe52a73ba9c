"""What a long piece of work tells while it runs."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the name of an event and its facts; it must not raise."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Something happened."""
        ...


def silent(event: str, /, **facts: object) -> None:
    """Tell nobody."""
