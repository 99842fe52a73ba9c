"""Streams of a store that would not end: a page that is waited for in vain, pages that come again and again.

Why: a store, or what answers in its place, may hand out the same continuation for ever. obstore follows it:
with empty pages one call never returns, with full ones the pages never end.
Contract: a page that does not come in time is cancelled, so that nothing goes on asking in the background. A
cycle is found at the latest when as many pages have come again as were read before, in memory for one key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from lazydelta.storage.own_thread import OwnThread

Stream = Any  # obstore's streams exist for type checkers only


def next_within(stream: Stream, seconds: float) -> Sequence[Any]:
    """The stream's next page, empty at its end, or a `TimeoutError`."""

    async def page() -> Sequence[Any]:
        try:
            return await asyncio.wait_for(stream.__anext__(), seconds)
        except StopAsyncIteration:
            return ()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(page())
    # A caller's own loop runs in this thread.
    return OwnThread("lazydelta-page").submit(lambda: asyncio.run(page())).result()


class CycleWatch:
    """Remembers one key, a later one each time the number of pages has doubled (Brent's method)."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._pages = 0
        self._next_at = 1

    def has_seen(self, keys: Sequence[str]) -> bool:
        """Whether the listing has begun again, as far as this page tells."""
        if self._key in keys or len(set(keys)) < len(keys):
            return True
        self._pages += 1
        if self._pages == self._next_at:
            self._key, self._next_at = keys[0], self._next_at * 2
        return False
