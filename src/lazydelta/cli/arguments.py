"""The arguments that commands share, and how they open a table.

Contract: values are handed to the library as they are; what they may be is decided there, and so are the
errors about them. A storage option is never repeated in a message: it may hold a secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lazydelta.cli.outcome import log_to_stderr
from lazydelta.cli.prompt_exit import raise_on_interrupt
from lazydelta.errors import InvalidRequestError

if TYPE_CHECKING:
    from lazydelta.settings import Settings
    from lazydelta.storage import Storage
    from lazydelta.table import Table

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="The table: a local path, file://, abfss://, az://, https://ACCOUNT.blob… or s3://.",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Leave out files that cannot hold a matching row.", show_default=False),
]
Limit = Annotated[
    int | None, typer.Option(metavar="N", help="Stop after N files, and stop reading.", show_default=False)
]
CommitLimit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=0, help="Stop after N commits.", show_default=False)
]
Strategy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which end of the log to read first: auto, reverse or forward. The files are the same.",
        show_default=False,
        autocompletion=lambda: ["auto", "reverse", "forward"],
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Sort by the sidecar's time column, then by path: asc or desc.",
        show_default=False,
        autocompletion=lambda: ["asc", "desc"],
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Attributes of a file, by commas: path,size,…", show_default=False),
]
WithStats = Annotated[bool, typer.Option("--with-stats", help="Show each file's statistics, too.")]
Version = Annotated[
    int | None, typer.Option(metavar="N", help="Read this version, not the newest.", show_default=False)
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Read the version of this time: 2026-02-08 or 2026-02-08T12:30:00Z (without a zone: UTC).",
        show_default=False,
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="An option of the store or of lazydelta (delta.…); may be given more than once.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write one JSON object per line.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="At the end, say on stderr what was read, skipped, and why.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Log what happens on stderr, one JSON object per line.")]


def as_texts(arguments: Sequence[str]) -> list[str]:
    """The arguments as Unicode; those that the locale could not decode are taken as UTF-8."""
    return [_as_text(argument, number) for number, argument in enumerate(arguments, start=1)]


def open_table(
    url: str,
    version: int | None,
    timestamp: str | None,
    storage_options: Sequence[str] | None,
    *,
    debug: bool,
) -> Table:
    """The table that the arguments name, read from now on with its events on stderr where they are wanted."""
    log_to_stderr(is_wanted=debug)
    options = option_pairs(storage_options)
    from lazydelta.table import open as open_delta_table

    raise_on_interrupt()  # all that takes long to import is there
    with _nameable(url):
        return open_delta_table(url, version=version, timestamp=timestamp, storage_options=options)


def open_store(url: str, storage_options: Sequence[str] | None) -> tuple[Storage, Settings]:
    """The store of the table that the arguments name, for commands that look after its log."""
    options = option_pairs(storage_options)
    from lazydelta.settings import build_settings
    from lazydelta.storage import open_storage

    raise_on_interrupt()
    settings = build_settings(options, environment=os.environ)
    with _nameable(url):
        return open_storage(url, settings), settings


def option_pairs(given: Sequence[str] | None, *, option: str = "--storage-option") -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping; the last one of a key wins. Values are not repeated in errors."""
    pairs = {}
    for number, text in enumerate(given or (), start=1):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidRequestError(
                f"{option} number {number} is not KEY=VALUE",
                option,
                f"write {option} name=value, once for each",
            )
        pairs[key.strip()] = value
    return pairs


def column_names(columns: str | None, *, usual: Sequence[str], with_stats: bool) -> list[str]:
    """`path, size` as a list, or the usual ones; the statistics once, where they are asked for."""
    names = list(usual) if columns is None else [name.strip() for name in columns.split(",")]
    return list(dict.fromkeys([*names, "stats"] if with_stats else names))


@contextmanager
def _nameable(url: str) -> Iterator[None]:
    """Explain a path that the locale cannot spell."""
    try:
        yield
    except UnicodeEncodeError as problem:
        if problem.encoding != sys.getfilesystemencoding():
            raise
        what = f"a path with {problem.object[problem.start]!r} has no name in this locale"
        raise InvalidRequestError(what, url, "set PYTHONUTF8=1, or LC_ALL to a UTF-8 locale") from None


def _as_text(argument: str, number: int) -> str:
    if not any("\ud800" <= character <= "\udfff" for character in argument):
        return argument
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        raise InvalidRequestError(
            f"argument number {number} is not UTF-8", "the command line", "write it in UTF-8"
        ) from None
