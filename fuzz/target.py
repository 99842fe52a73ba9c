"""What every target of the fuzzer is: a name, inputs out of dice, and a judge."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Protocol


class Target(Protocol):
    """One parser. `run` returns for a right answer and raises `LazyDeltaError` for a refusal."""

    name: str
    share: int  # of the inputs, in relation to the other targets'
    modules: tuple[str, ...]  # whose coverage is told, below src/lazydelta

    def prepare(self, seeds: Path) -> None:
        """Load what inputs are made from."""
        ...

    def make(self, dice: Random) -> bytes:
        """An input; text as UTF-8, half characters passed through."""
        ...

    def run(self, body: bytes) -> None:
        """Give it to the reader and judge what comes out; anything raised but a refusal is an escape."""
        ...
