"""`lazydelta ui`: the web page of one table, served to this machine alone.

Contract: the address stands on stdout once the page can be opened; nothing is opened unless it is asked for.
The table is opened first, so that a wrong address ends with the error that every command gives. Ctrl-C ends
it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec
import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.prompt_exit import leave_interrupts_alone
from lazydelta.cli.streams import write_lines
from lazydelta.errors import InvalidRequestError

EXAMPLES = """\b
Examples:
  lazydelta ui ./orders
  lazydelta ui abfss://lake@account/telemetry --open
  lazydelta ui s3://lake/orders --port 8080 --name orders

Only this machine reaches the page, and nobody has to sign in; `lazydelta serve` shows
the same page, of many tables, to whom you choose. Ctrl-C ends it.
"""
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is a free one.")]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What queries call the table; by its address otherwise.", show_default=False
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open it in the browser, too.")]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}\Z")  # as configurations of the server have it
_PORT_KEY = "server.http_port"
_HOST = "127.0.0.1"
_OPTION = "LAZYDELTA_UI_OPTION_"  # in the server's environment alone, which no other process sees


def ui(
    url: arg.Url,
    *,
    port: Port = 0,
    name: Name = None,
    storage_option: arg.StorageOptions = None,
    open_browser: Open = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Show a table in the browser: files, versions, queries."""
    from lazydelta.engines.frames import needs

    table = name or table_name(url)
    if not _NAME.match(table):
        raise InvalidRequestError(
            f"--name: {table[:200]!r} cannot be a name", "--name", "use letters, digits, _ and -, 128 at most"
        )
    for module in ("starlette", "uvicorn", "google.protobuf"):
        needs(module, "serve,sql")
    arg.open_table(url, None, None, storage_option, debug=debug)
    from lazydelta.serve.log_lines import log_to
    from lazydelta.serve.process import serve_until_told

    log_to(sys.stderr, logging.INFO if debug else logging.WARNING)
    leave_interrupts_alone()
    options = arg.option_pairs(storage_option)
    references = {f"{_OPTION}{number}": value for number, value in enumerate(options.values())}
    with tempfile.TemporaryDirectory(prefix="lazydelta-ui-") as folder:
        path = Path(folder) / "serve.toml"
        path.write_text(config_text(url, table, port, list(options)), "utf-8")

        def tell(http_port: int | None) -> None:
            address = f"http://{_HOST}:{http_port}/ui/#table={quote(table)}"
            write_lines(
                [msgspec.json.encode({"url": address, "table": table}).decode() if as_json else address]
            )
            if open_browser:
                import webbrowser

                webbrowser.open(address)

        try:
            code = serve_until_told(
                str(path), environment={**os.environ, **references}, tell=lambda ports: tell(ports.http)
            )
        except InvalidRequestError as error:
            raise _of_option(error, str(path)) from error
    raise typer.Exit(code)


def _of_option(error: InvalidRequestError, path: str) -> InvalidRequestError:
    """The error as one of the options: who asks has written no file."""
    if error.where != path or not error.what.startswith(_PORT_KEY):
        return error
    what = error.what.replace(_PORT_KEY, "--port", 1)
    return InvalidRequestError(what, "--port", "choose another (0: a free one), or end what listens there")


def table_name(url: str) -> str:
    """The last part of the address, as SQL and KQL can name it without quotes."""
    last = url.rstrip("/").replace("\\", "/").rpartition("/")[2]
    if last in ("", ".", ".."):
        last = Path(url).resolve().name
    found = re.sub(r"[^A-Za-z0-9_]+", "_", last).strip("_")[:100]
    return found if found and not found[0].isdigit() else f"t_{found}".rstrip("_")


def config_text(url: str, table: str, port: int, options: list[str]) -> str:
    """A configuration that serves the table; options stand there by reference."""
    place = url if "://" in url else str(Path(url).absolute())
    lines = ["[server]", f'host = "{_HOST}"', f"http_port = {port}", "drain_seconds = 1.0"]
    lines += [f"[tables.{_quoted(table)}]", f"url = {_quoted(place)}"]
    if options:
        lines.append(f"[tables.{_quoted(table)}.storage_options]")
        lines += [f'{_quoted(key)} = {{env = "{_OPTION}{number}"}}' for number, key in enumerate(options)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """As TOML writes text: JSON's escapes are among its own."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
