"""`lazydelta stats`: statistics of files that are named by their paths.

Contract: one line for each path, in the order given. A path that is not live is told on its line and again at
the end, where it makes the exit code 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.errors import InvalidRequestError, LazyDeltaError

EXAMPLES = """\b
Examples:
  lazydelta stats ./orders part-00001.parquet --columns value,payload.price
  lazydelta files ./orders | lazydelta stats ./orders - --columns value
  lazydelta stats ./orders date=2026-02-08/part-1.parquet --json

Paths are as `lazydelta files` prints them, or the same below the table's address. On a
pipe: path, live, num_records, tight_bounds, deleted_rows, then min, max and null_count
of each column, separated by tabs; nulls are empty. A statistic that the log does not
have is null. A path that is not live at the version has "false" and nulls, and the exit
code is 1 then.
"""
_NAMED_MAX = 3
# A name may be quoted, as in a filter: "`a,b`" is one.
_COLUMN = re.compile(r'(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^,`"])+')

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Files of the table; - reads them from stdin, one a line."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Columns by commas; dots lead inside structs. Default: counts alone.",
        show_default=False,
    ),
]


def stats(
    url: arg.Url,
    paths: Paths,
    *,
    columns: Columns = None,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Show min, max and null counts of files."""
    table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.cli.show_stats import show_stats

    asked = _asked(paths)
    found = table.get_stats_for_files(asked, _names(columns))
    show_stats(found, as_json=as_json)
    is_live = found.column("live").to_pylist()
    gone = list(dict.fromkeys(path for path, live in zip(asked, is_live, strict=True) if not live))
    if gone:
        raise _not_live(gone, len(set(asked)), table.version, url)


def _asked(paths: Sequence[str]) -> list[str]:
    """The paths, with those of stdin in the place of `-`."""
    found: list[str] = []
    for path in paths:
        found.extend(_lines() if path == "-" else [path])
    return found


def _lines() -> list[str]:
    if sys.stdin is None:
        raise InvalidRequestError("stdin is closed", "PATH -", "give paths, or pipe them in")
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InvalidRequestError(
            "the paths on stdin are not UTF-8", "PATH -", "write them in UTF-8"
        ) from None
    return [line for line in text.split("\n") if line]


def _names(columns: str | None) -> list[str]:
    return [] if columns is None else [name.strip() for name in _COLUMN.findall(columns)]


def _not_live(gone: Sequence[str], asked_count: int, version: int, url: str) -> LazyDeltaError:
    more = "" if len(gone) <= _NAMED_MAX else ", …"
    verb = "is" if len(gone) == 1 else "are"
    return LazyDeltaError(
        f"{len(gone):,} of {asked_count:,} path{'' if asked_count == 1 else 's'} {verb} not live at version "
        f"{version:,}: {', '.join(gone[:_NAMED_MAX])}{more}",
        url,
        "see what is live with lazydelta files, or name the version that has them with --version",
    )
