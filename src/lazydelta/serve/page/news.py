"""What is new in a table while its page is open: later versions, with the files that they added.

Contract: one look, answered at once; the page asks every few seconds. Nothing is held between two looks, no
connection either: browsers give all pages of a server six, and pages that each held one would keep the
seventh from everything.
"""

from __future__ import annotations

import time

import msgspec

from lazydelta import limits
from lazydelta.serve.page.versions import NewFile, Version, new_files, versions_of
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client


class News(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is the newest; the rest is of those after the one that was asked about."""

    version: int
    versions: list[Version] = []
    files: list[NewFile] = []


def news(served: Served, name: str, client: Client, after: int | None) -> News:
    """What came after a version."""
    asked_at = time.monotonic() - limits.PAGE_NEWS_SECONDS  # several pages share a look
    table = served.catalog.open(name, client, asked_at=asked_at)
    if after is None or table.version <= after:
        return News(version=table.version)
    count = min(table.version - after, limits.PAGE_VERSIONS)
    with served.admission.admitted(client, f"news of {name}"):
        return News(
            version=table.version,
            versions=versions_of(table, newest=table.version, count=count),
            files=new_files(table, versions=count, count=limits.PAGE_NEW_FILES),
        )
