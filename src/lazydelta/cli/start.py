"""The entry point: what must be in place before anything else is loaded.

Why: importing the commands and Arrow takes a while, and Ctrl-C may come during it.
Contract: only light modules are imported here; the commands are loaded once interrupts are looked after.
"""

from __future__ import annotations

import os
import sys

from lazydelta.cli.prompt_exit import leave_on_interrupt, watch_for_interrupts


def main() -> None:
    """Run the command line."""
    leave_on_interrupt()
    _occupy_standard_descriptors()
    watch_for_interrupts()
    from lazydelta.cli.app import run

    run(sys.argv[1:])


def _occupy_standard_descriptors() -> None:
    """Where a stream was closed before the start, its number must not go to the next pipe or socket."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
