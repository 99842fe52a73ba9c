"""Write docs/reference/: the command line from `--help`, options and metrics from the code that reads them.

    python docs/generate_reference.py

Why generated: a reference that drifts is worse than none; `tests/test_docs.py` compares it with `pages()`.
Contract: the same code gives the same text, whatever the terminal. An option or a metric without a meaning
here is an error, so that none is published undescribed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from lazydelta.cli.app import app
from lazydelta.settings import CONFIG_VARIABLE, OPTIONS, Settings, variable_of
from lazydelta.telemetry import COUNTERS, GAUGES, PREFIX

FOLDER = Path(__file__).parent / "reference"
NOTICE = "<!-- Written by docs/generate_reference.py; change the code it reads, not this page. -->"

# Field of `Settings` -> what it means.
OPTION_MEANINGS = {
    "commit_read_parallelism": "Commits fetched side by side.",
    "batch_size": "Rows of an output batch, at most.",
    "checkpoint_row_groups_per_batch": "Row groups of a checkpoint read at once where every file is wanted.",
    "remove_set_memory_limit": "Bytes that the set of removed files may take before it moves to disk.",
    "request_timeout_seconds": "How long one request to a store may take, its attempts included.",
    "request_attempts_max": "How often a request is tried before it is an error.",
    "backoff_first_seconds": "The wait before the second attempt; it doubles after each further one.",
    "sidecar_enabled": "Whether files at a checkpoint are read from its stats sidecar, where one is there.",
    "sidecar_directory": "The folder of the sidecar, below `_delta_log`; builders write there, too.",
    "sidecar_row_groups_per_batch": "Row groups of a sidecar read at once; with a limit it is 1.",
    "memory_bytes": "Bytes that all scans of this process and its cache may hold together; 0 leaves it as it "
    "is: 1 GiB, unless an opening has said otherwise.",
    "cache_bytes": "Bytes that this process keeps of tables it has read, over all of them; 0 keeps nothing.",
    "max_staleness_seconds": "How old a cached listing of a log may be; 0 lists it at every opening.",
    "page_signing_key": "A secret that page tokens are signed with; without one they have a checksum only.",
    "scan_timeout_seconds": "How long a scan may take, and the opening of a table; 0 is no limit.",
    "allowed_roots": "By commas: where absolute paths in a log and links may lead, besides the table's own "
    "root; `*` is all of the table's own store.",
}
METRIC_MEANINGS = {
    "commits_scanned": "Commits whose files were read.",
    "files_emitted": "Live files handed out.",
    "fallback_triggered": "Times a scan took another way; by reason, too: `fallback_triggered.tripped`, …",
    "files_skipped": "Files kept out by a newer action, partition values or statistics.",
    "row_groups_read": "Row groups of checkpoints and sidecars read.",
    "row_groups_skipped": "Row groups of checkpoints and sidecars that could not hold a match.",
    "unknown_actions": "Actions in commits that this version does not know, and ignores.",
    "requests": "Requests to the store, every attempt counted.",
    "bytes_read": "Bytes read from the log.",
    "round_trips": "Requests that had to wait for one another.",
    "floors_read": "Scans that needed files at a checkpoint, not of the tail alone.",
    "sidecar_hits": "Those of them that a stats sidecar served; over `floors_read` it is the hit rate.",
    "memory_waits": "Times a scan waited for memory that other scans held.",
    "memory_wait_ms": "Milliseconds of those waits, in all.",
    "remove_set_size": "Keys in the set of removed and replaced files, at its peak.",
    "time_to_first_file_ms": "Milliseconds from the start of a scan to its first file.",
}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """File name -> text."""
    return {"cli.md": command_line_page(), "options.md": options_page(), "metrics.md": metrics_page()}


def command_names() -> list[str]:
    """The commands, in the order of `lazydelta --help`; those of a group as `group command`."""
    return [" ".join(words) for words in _commands(typer.main.get_command(app))]


def command_line_page() -> str:
    """`--help` of the program and of each command."""
    parts = [NOTICE, "# Command line", _help_text()]
    for name in command_names():
        parts += [f"## lazydelta {name}", _help_text(*name.split())]
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    """Every option with its environment variable, default and meaning."""
    defaults = Settings()
    intro = (
        "An option may be given as a storage option (`--storage-option delta.batch_size=100`, or in Python\n"
        "`storage_options={…}`), as an environment variable, or in a TOML file that the environment\n"
        f"variable `{CONFIG_VARIABLE}` names. The first of these that has it wins. Options that do not\n"
        "begin with `delta.` go to the store: [storage](../storage.md)."
    )
    rows = [
        f"| `{option}` | `{variable_of(option)}` | {getattr(defaults, field)} | {OPTION_MEANINGS[field]} |"
        for option, field in OPTIONS.items()
    ]
    table = "\n".join(["| option | environment variable | default | meaning |", "|---|---|---|---|", *rows])
    return "\n\n".join([NOTICE, "# Options", intro, table]) + "\n"


def metrics_page() -> str:
    """Every metric with its kind and meaning."""
    intro = (
        "`lazydelta.metrics()` gives the numbers of the process so far. Where OpenTelemetry is installed\n"
        "the same names go to its meter `lazydelta`: sums as counters, latest values as histograms."
    )
    kinds = [(name, "sum") for name in COUNTERS] + [(name, "latest value") for name in GAUGES]
    rows = [f"| `{PREFIX}{name}` | {kind} | {METRIC_MEANINGS[name]} |" for name, kind in kinds]
    table = "\n".join(["| metric | kind | meaning |", "|---|---|---|", *rows])
    return "\n\n".join([NOTICE, "# Metrics", intro, table]) + "\n"


def _commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command below a group; Any: typer's own class of groups has no public name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*before, name))
        else:
            yield (*before, name)


def _help_text(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="lazydelta")
    assert result.exit_code == 0, result.output
    lines = (line.rstrip() for line in result.output.strip().splitlines())
    return "```text\n$ " + " ".join(["lazydelta", *command, "--help"]) + "\n" + "\n".join(lines) + "\n```"


if __name__ == "__main__":
    main()
