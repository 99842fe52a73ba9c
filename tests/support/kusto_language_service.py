"""Microsoft's own parser and binder of KQL, from npm: what it says of queries.

Contract: one process of Node reads all the queries that are given at once; its answers are in their order.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tests.support.node import installed, node

PACKAGE = {"private": True, "dependencies": {"@kusto/language-service-next": "12.4.1"}}
# Errors of the binder about names, which a query may have for want of a table.
UNKNOWN_NAME_CODES = ("KS142", "KS204", "KS208", "KS210")
_SCRIPT = Path(__file__).with_suffix(".js")


class Verdict(msgspec.Struct, frozen=True):
    """What it says of a query: errors as (code, place, text), and the columns that come out."""

    errors: list[tuple[str, int, str]]
    columns: list[tuple[str, str]] | None


def verdicts(asked: Iterable[tuple[str, Mapping[str, str]]]) -> list[Verdict]:
    """Of each query with its tables, whose schemas are as KQL writes them: `(a:long, b:string)`."""
    folder = installed("kusto-language-service", PACKAGE)
    lines = [json.dumps({"query": query, "tables": dict(tables)}) for query, tables in asked]
    done = subprocess.run(
        [node(), str(_SCRIPT), str(folder / "node_modules")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return [msgspec.json.decode(line, type=Verdict) for line in done.stdout.splitlines()]
