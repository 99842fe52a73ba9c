"""A target that misbehaves in every way there is, so that a test can see the fuzzer notice."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from lazydelta.errors import InvalidRequestError

_KINDS = (b"answer", b"refuse", b"raise", b"abort", b"hang", b"grow")


class Planted:
    """Its inputs say what it does."""

    name, share, modules = "planted", 0, ("errors.py",)

    def prepare(self, seeds: Path) -> None:
        """Nothing is needed."""
        del seeds

    def make(self, dice: Random) -> bytes:
        """One of the kinds."""
        return dice.choice(_KINDS)

    def run(self, body: bytes) -> None:
        """Do as told."""
        if body == b"refuse":
            raise InvalidRequestError("as planted", "here", "none")
        if body == b"raise":
            raise KeyError("as planted")
        if body == b"abort":
            os.abort()
        while body == b"hang":
            pass
        if body == b"grow":
            _ = b"x" * (600 << 20)  # zeros would take no memory
