"""The command line: arguments, output, exit codes; no decisions."""

from lazydelta.cli.app import main

__all__ = ["main"]
