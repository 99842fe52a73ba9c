"""The command line: arguments, output, exit codes; no decisions."""

from lazydelta.cli.start import main

__all__ = ["main"]
