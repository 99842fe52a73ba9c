"""What is told to clients and logged, without where it lies.

Why: errors of tables and stores name the address they happened at, which says how the server is set up. What
clients sent is repeated in errors, too: an address that became a name there would tell them that they guessed
it. Contract: addresses and paths become `…`, whoever asks and whatever lies there. Only where an error says
that it happened at a table that the client may read, and there alone, the address becomes the table's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.config import ServedTable

_HIDDEN = "…"
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s'\"<>,;)\]}]+")
# At the start of a word: `a / b` is none.
_PATH = re.compile(r"(?<![\w.…>/])/(?:[^\s'\"<>,;:()\[\]{}/]+/)*[^\s'\"<>,;:()\[\]{}/]+/?")
_STORE = re.compile(r"\b(?:s3[an]?|abfss?|wasbs?|azure?|adls?|gs|https?)://[^\s'\"<>,;)\]}]+", re.IGNORECASE)
_END = r"(?![^\s'\"<>,;:)\]}/?#@])"  # no other address that begins the same


def concealed(text: str, tables: Iterable[ServedTable]) -> str:
    """The text without any address."""
    for place in _known(tables):
        text = re.sub(re.escape(place) + _END, _HIDDEN, text)
    return _PATH.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, text))


def concealed_error(
    error: LazyDeltaError, tables: Iterable[ServedTable], seen: Iterable[ServedTable] = ()
) -> str:
    """The error as a client may read it that may read the tables `seen`."""
    tables, names = list(tables), _known(seen)
    where, shown = error.where, ""
    for place, name in names.items():
        if found := re.match(re.escape(place) + _END, where):
            shown, where = name, where[found.end() :]
            break
    # Up to a blank it is a file of the table.
    below, blank, rest = where.partition(" ") if shown else ("", "", where)
    what, rest, fix = (concealed(text, tables) for text in (error.what, rest, error.fix))
    return f"{what}\n  where: {shown}{below}{blank}{rest}\n  fix:   {fix}"


def concealed_line(text: str, tables: Iterable[ServedTable]) -> str:
    """A line of the server's log: tables by their names, and no address of a store.

    Paths of this machine that are no table's stay: those of the configuration and of tracebacks.
    """
    for place, name in _known(tables).items():
        text = re.sub(re.escape(place) + _END, lambda _: name, text)  # noqa: B023 - used at once
    return _STORE.sub(_HIDDEN, text)


def _known(tables: Iterable[ServedTable]) -> dict[str, str]:
    """Places and the names of their tables, the longest first."""
    found = {place: table.name for table in tables for place in _places(table.url)}
    return {place: found[place] for place in sorted(found, key=len, reverse=True)}


def _places(url: str) -> list[str]:
    """The ways in which errors write the address."""
    bare = url.rstrip("/").removeprefix("file://")
    found = {bare, unquote(bare), quote(bare)}
    if "://" not in bare:
        found |= {f"file://{place}" for place in found}
    return [place for place in found if len(place) > 1]
