"""One folder of a store, from an offset, page by page, without its sub-folders.

Why not `list_with_delimiter`: obstore's has no offset and collects every page before it answers, so a log of
a million commits would be listed whole to find its last ten. `list` with an offset is served by the store
(`start-after` on S3, `startFrom` on Azure) but descends into sub-folders. Where a page ends inside one
(`_delta_log/_sidecars/` with its thousands of files), the listing begins anew behind that sub-folder: one
request instead of all its pages. In a Delta log they sort after the commits, so most readers never get there.

Contract: a page is asked for when the caller wants it. A page that fails is asked for again from the last
key seen. A store that does not list in key order cannot be resumed that way; it is read on without jumps,
and a failure in the middle is final. A listing ends: a page that does not come in time is given up for good
(a store may hand out empty pages for ever, which obstore puts together), and so is one that comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import obstore
from obstore.store import AzureStore, S3Store

from lazydelta.errors import StorageError
from lazydelta.storage.endless import CycleWatch, next_within

ObjectMeta = Any  # obstore's, a TypedDict that exists for type checkers only
ListStream = Any  # obstore's as well
Page = Sequence[ObjectMeta]
Run = Callable[[Callable[[], Page]], Page]
# Sorts after every name that begins with an ASCII character, and is legal in a URL and in XML.
_LAST_NAME = "~"


class ListingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to list. `page_objects` is the store's own page size, so that a chunk is a request."""

    folder: str  # key prefix without a trailing slash; empty for the whole container
    after: str | None
    page_objects: int
    page_seconds: float  # that one may take
    offset_is_served: bool = True

    @property
    def prefix(self) -> str:
        """What every key below the folder begins with."""
        return f"{self.folder}/" if self.folder else ""


def pages(store: AzureStore | S3Store, plan: ListingPlan, run: Run) -> Iterator[list[tuple[str, ObjectMeta]]]:
    """Pages of (base name, metadata) of the objects directly below the folder, after the offset."""
    cursor = _Cursor(store, plan)
    jumped: set[str] = set()
    while not cursor.is_last:
        page = run(cursor.next_page)
        yield _direct(page, plan, cursor.floor)
        folder = _ends_inside(page, plan)
        if folder is None or folder in jumped or not cursor.may_jump:
            continue
        jumped.add(folder)
        cursor.restart_after(f"{plan.prefix}{folder}/{_LAST_NAME}")


class _Cursor:
    """A listing that can be taken up again behind a key."""

    def __init__(self, store: AzureStore | S3Store, plan: ListingPlan) -> None:
        self._store = store
        self._plan = plan
        self._offset = plan.prefix + plan.after if plan.after and plan.offset_is_served else None
        self._last_key = ""
        self._is_sorted = True
        self.is_last = False
        self.floor = ""  # a store that ignored the offset of a restart would repeat keys up to this one
        self._stream: ListStream = None
        self._cycle = CycleWatch()

    @property
    def may_jump(self) -> bool:
        return self._plan.offset_is_served and self._is_sorted and not self.is_last

    def restart_after(self, key: str) -> None:
        self._offset, self._last_key, self._stream = key, key, None

    def next_page(self) -> Page:
        """The next page, perhaps empty. After a failure the same call resumes behind the last key."""
        if self._stream is None:
            self._stream = self._open()
        stream, self._stream = self._stream, None  # a stream that failed is not used again
        page = self._in_time(stream)
        self._stream = stream
        self._remember(page)
        return page

    def _in_time(self, stream: ListStream) -> Page:
        try:
            return next_within(stream, self._plan.page_seconds)
        except TimeoutError:
            pass
        raise StorageError(
            f"a page of the listing did not come within {self._plan.page_seconds:g} s",
            self._plan.folder,
            "check the store; where it is only slow, raise the storage option delta.request.timeout_seconds",
        )

    def _open(self) -> ListStream:
        if self._last_key and not (self._is_sorted and self._plan.offset_is_served):
            raise StorageError(
                "a listing broke off, and this store cannot resume one", self._plan.folder, "try again"
            )
        self.floor = self._last_key
        self._cycle = CycleWatch()
        return obstore.list(
            self._store, self._plan.folder or None, offset=self._offset, chunk_size=self._plan.page_objects
        )

    def _remember(self, page: Page) -> None:
        keys = [meta["path"] for meta in page]
        self.is_last = len(keys) < self._plan.page_objects
        if not keys:
            return
        if self._cycle.has_seen(keys):
            raise StorageError(
                "the store's listing begins again from the start, and would not end",
                self._plan.folder,
                "check what answers at the endpoint: it does not list as a store does",
            )
        self._is_sorted = self._is_sorted and self._last_key < keys[0] and keys == sorted(keys)
        self._last_key = keys[-1]
        if self._plan.offset_is_served:
            self._offset = self._last_key


def _direct(page: Page, plan: ListingPlan, floor: str) -> list[tuple[str, ObjectMeta]]:
    """Entries that are objects of the folder itself."""
    found = []
    for meta in page:
        base_name = meta["path"][len(plan.prefix) :]
        is_below = "/" in base_name or not base_name
        is_before = meta["path"] <= floor or (plan.after is not None and base_name <= plan.after)
        if not (is_below or is_before or _is_folder_marker(base_name, meta["size"])):
            found.append((base_name, meta))
    return found


def _is_folder_marker(base_name: str, size_bytes: int) -> bool:
    """Hierarchical namespaces and old Hadoop drivers keep empty objects that stand for folders.

    A log file always has a dot in its name, so an empty one (a torn commit, say) stays visible.
    """
    return size_bytes == 0 and "." not in base_name


def _ends_inside(page: Page, plan: ListingPlan) -> str | None:
    """The sub-folder in which the page ends, if it does."""
    if not page:
        return None
    folder, slash, _ = page[-1]["path"][len(plan.prefix) :].partition("/")
    return folder if slash else None
