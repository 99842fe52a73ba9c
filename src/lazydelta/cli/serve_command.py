"""`lazydelta serve` and `lazydelta serve-token`: tables served to other engines.

Contract: the ports stand on stdout as one line of JSON once everything listens; the access log and what goes
wrong go to stderr, as lines of JSON. The exit code is 0 where every scan ended by itself, 1 where some had to
be stopped.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import msgspec
import typer

from lazydelta.cli.prompt_exit import leave_interrupts_alone

EXAMPLES = """\b
Examples:
  lazydelta serve --config serve.toml
  lazydelta serve --config serve.toml --check

SIGHUP, or a change of the file, reads the configuration anew; SIGTERM and Ctrl-C let
scans end first, for as long as server.drain_seconds says; again ends at once.

On stdout: one JSON object with the ports; with --check one for each table. The access log
on stderr is JSON, too.
"""
TOKEN_EXAMPLES = """\b
Examples:
  lazydelta serve-token | jq -r .token

One JSON object: give the token to the client; write token_sha256 into its [[clients]].
"""
Config = Annotated[str, typer.Option(metavar="FILE", help="The configuration, as TOML.", show_default=False)]
Check = Annotated[bool, typer.Option("--check", help="Read it and open each table, without serving.")]


def serve(*, config: Config, check: Check = False) -> None:
    """Serve tables over Arrow Flight and HTTP."""
    from lazydelta.engines.frames import needs

    for module in ("starlette", "uvicorn", "google.protobuf"):
        needs(module, "serve")
    if check:
        raise typer.Exit(_checked(config))
    from lazydelta.serve.log_lines import log_to
    from lazydelta.serve.process import serve_until_told

    log_to(sys.stderr)
    leave_interrupts_alone()
    raise typer.Exit(serve_until_told(config))


def serve_token() -> None:
    """Make a token for a client, and its digest for the server."""
    from lazydelta.serve.sign_in import new_token, token_digest

    token = new_token()
    print(json.dumps({"token": token, "token_sha256": token_digest(token)}))


def _checked(config: str) -> int:
    """A line for each table; the exit code."""
    from lazydelta.serve.check import findings
    from lazydelta.settings import process_environment

    is_fine = True
    for found in findings(config, environment=process_environment()):
        print(msgspec.json.encode(found).decode(), flush=True)
        is_fine = is_fine and found.error is None
    return 0 if is_fine else 1
