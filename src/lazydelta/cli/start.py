"""The entry point: what must be in place before anything else is loaded.

Why: importing the commands and Arrow takes a while, and Ctrl-C may come during it.
Contract: only light modules are imported here; the commands are loaded once interrupts are looked after.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder

from lazydelta.cli.prompt_exit import leave_on_interrupt, watch_for_interrupts

# Commands that make no frame and start no Spark.
_WITHOUT_PANDAS = frozenset(
    {"bench", "doctor", "explain", "files", "history", "info", "kql", "sample", "sql", "stats"}
)


def main() -> None:
    """Run the command line."""
    leave_on_interrupt()
    _occupy_standard_descriptors()
    watch_for_interrupts()
    if _WITHOUT_PANDAS.intersection(sys.argv[1:2]):
        _spare_pandas()
    from lazydelta.cli.app import run

    run(sys.argv[1:])


def _spare_pandas() -> None:
    """Arrow imports pandas with its first array, where it is installed: a third of a command's whole time."""
    sys.meta_path.insert(0, _NoPandas)


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas; asked by every import, compiled ones too."""

    @staticmethod
    def find_spec(fullname: str, *_: object) -> None:
        """None leaves a module to the other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("this command does without pandas", name=fullname)


def _occupy_standard_descriptors() -> None:
    """Where a stream was closed before the start, its number must not go to the next pipe or socket."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
