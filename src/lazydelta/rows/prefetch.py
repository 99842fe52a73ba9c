"""Prefetch: items loaded ahead of whoever consumes them, several side by side, handed out in order.

Why: a segment on a store takes a round trip or two, which the consumer's own work can hide.
Contract: pieces come in the order of their items, each item's in its own; nothing is pulled or loaded before
the first piece is asked for. Besides the item that is being consumed, `ahead` items are loaded; more, up to
`limits.PREFETCH_ADAPTIVE_MAX`, where the consumer had to wait. While `limits.PREFETCH_BYTES_MAX` wait to be
consumed nothing new is begun, and what runs is put aside; what items take while they are loaded (`weigh`) has
the same bound, but that the one being consumed is always loaded. Both come out of the share of the process's
memory: where it has no room nothing is loaded ahead, and the consumer waits for memory for its next item.
With `is_hurried` the consumer may stop soon: one item is loaded, a piece at a time, and each item consumed
lets one more be loaded ahead.
No thread ever waits for the consumer: a task loads until the bytes are reached, then ends, so that a consumer
that goes away leaves no thread behind, and the interpreter's exit has nothing to wait for. What fails is
raised where it would have come out; nothing comes after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from enum import Enum
from itertools import islice
from threading import Condition, Lock
from typing import Generic, TypeVar

from lazydelta import limits
from lazydelta.memory_budget import MemoryKind
from lazydelta.memory_share import MemoryShare

Item = TypeVar("Item")
Piece = TypeVar("Piece")


class PrefetchClosedError(Exception):
    """Another thread closed the stage while a piece was waited for."""


class _State(Enum):
    IDLE = "idle"  # not begun, or put aside
    QUEUED = "queued"  # a task will go on with it, unless the consumer does
    RUNNING = "running"
    DONE = "done"


class _Slot(Generic[Item, Piece]):
    """One item on its way."""

    __slots__ = ("error", "held", "is_begun", "item", "kind", "pieces", "state", "stream", "weight")

    def __init__(self, item: Item | None, weight: int = 0) -> None:
        self.item = item
        self.weight = weight  # while it is loaded
        self.held: int | None = None  # of the share, for the weight; None: not asked for yet
        self.kind = MemoryKind.AHEAD
        self.is_begun = False
        self.stream: Iterator[Piece] | None = None
        self.pieces: deque[tuple[Piece, int, int]] = deque()  # with their bytes, and those held of the share
        self.state = _State.IDLE
        self.error: BaseException | None = None


class Prefetch(Generic[Item, Piece]):
    """The pieces of all items, in order. One consumer at a time; `close` may come from any thread."""

    def __init__(
        self,
        items: Generator[Item, None, None],
        load: Callable[[Item], Iterator[Piece]],
        *,
        ahead: int,
        pool: Executor | None,
        size_of: Callable[[Piece], int] = lambda _: 0,
        weigh: Callable[[Item], int] = lambda _: 0,
        is_hurried: bool = False,
        share: MemoryShare | None = None,
    ) -> None:
        """Without a pool, or with `ahead` 0, everything is loaded as it is asked for, by whoever asks."""
        self._share = share or MemoryShare()
        self._is_scarce = False  # the share had no room for a piece, and pieces still wait
        self._items = items
        self._load = load
        self._pool = pool
        self._ahead_wanted = 0 if pool is None else ahead
        self._ahead = 0 if is_hurried else self._ahead_wanted
        self._size_of = size_of
        self._weigh = weigh
        self._slots: deque[_Slot[Item, Piece]] = deque()
        self._bytes = 0  # that wait to be consumed
        self._pulls_queued = 0
        self._items_done = 0
        self._waited_for: _Slot[Item, Piece] | None = None
        self._is_drained = False
        self._is_closed = False
        self._changed = Condition()
        self._pulling = Lock()  # items come in order: one thread pulls at a time

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        while True:
            with self._changed:
                if self._is_closed:
                    raise PrefetchClosedError
                slot = self._slots[0] if self._slots else None
                if slot is not None and slot.pieces:
                    return self._taken(slot)
                if slot is None and self._is_drained:
                    raise StopIteration
                if slot is not None and slot.state is _State.DONE and slot.error is None:
                    self._leave()
                    continue
                self._start_more()
                if slot is not None and slot.state is _State.RUNNING:
                    self._hurry_up(slot)
                    self._changed.wait()
                    continue
                if slot is not None and slot.error is None:
                    slot.state = _State.RUNNING
                    slot.is_begun = True
            if slot is None:
                self._pull(only_if_none=True)
            elif slot.error is not None:
                self.close()
                raise slot.error
            else:
                self._take_memory(slot)
                self._advance(slot, pieces_max=1)

    @property
    def ahead(self) -> int:
        """Items that are loaded besides the one being consumed, at most, as things stand."""
        return self._ahead

    @property
    def bytes_waiting(self) -> int:
        """Of pieces loaded and not yet consumed."""
        return self._bytes

    def close(self) -> None:
        """Stop: nothing more is begun; what is under way ends at its next piece."""
        with self._changed:
            self._is_closed = True
            aside = [slot.stream for slot in self._slots if slot.state is not _State.RUNNING]
            self._slots.clear()
            self._bytes = 0
            self._changed.notify_all()
        for stream in aside:
            _close(stream)
        self._close_items()

    def _taken(self, slot: _Slot[Item, Piece]) -> Piece:
        piece, size, held = slot.pieces.popleft()
        self._bytes -= size
        self._share.give(held)
        self._is_scarce &= self._bytes > 0
        self._start_more()
        return piece

    def _leave(self) -> None:
        """The first slot has given all it had."""
        slot = self._slots.popleft()
        self._share.give(slot.held or 0, slot.kind)
        self._items_done += 1
        if self._ahead < self._ahead_wanted:
            self._ahead += 1

    def _hurry_up(self, slot: _Slot[Item, Piece]) -> None:
        """The consumer waits for an item: look one further ahead, unless rows wait, or it is the first."""
        is_new = slot is not self._waited_for
        self._waited_for = slot
        may_grow = 0 < self._ahead_wanted <= self._ahead < limits.PREFETCH_ADAPTIVE_MAX
        if is_new and may_grow and self._items_done and self._bytes == 0:
            self._ahead += 1
            self._start_more()

    def _start_more(self) -> None:
        """Give the pool what may be done now; the lock is held."""
        if self._ahead == 0:
            return
        for slot in self._slots:
            if self._is_full:
                return
            if slot.state is _State.IDLE and self._has_room(slot):
                slot.state = _State.QUEUED
                self._submit(self._go_on, slot)
        while (
            not self._is_drained
            and not self._is_full
            and len(self._slots) + self._pulls_queued <= self._ahead
        ):
            self._pulls_queued += 1
            self._submit(self._pull_and_go_on)

    @property
    def _is_full(self) -> bool:
        return self._is_scarce or self._bytes >= limits.PREFETCH_BYTES_MAX

    def _submit(self, task: Callable[..., None], *arguments: object) -> None:
        assert self._pool is not None
        try:
            self._pool.submit(task, *arguments)
        except RuntimeError:  # the interpreter is about to end: the consumer does it all from here on
            self._ahead = self._ahead_wanted = 0

    def _pull_and_go_on(self) -> None:
        try:
            slot = self._pull()
        finally:
            with self._changed:
                self._pulls_queued -= 1
        if slot is not None:
            self._go_on(slot)

    def _go_on(self, slot: _Slot[Item, Piece]) -> None:
        with self._changed:
            if self._is_closed or slot.state not in (_State.IDLE, _State.QUEUED):
                return  # the consumer was faster
            if not self._has_room(slot):
                slot.state = _State.IDLE
                return
            slot.state = _State.RUNNING
            slot.is_begun = True
        self._advance(slot)

    def _has_room(self, slot: _Slot[Item, Piece]) -> bool:
        """Whether it may be loaded ahead: it was begun, or it is the first or fits beside those that were.

        Where the process has no memory for it, the consumer asks for it when its turn comes.
        """
        if slot.is_begun:
            return True
        if slot is not self._slots[0]:
            others = (other for other in islice(self._slots, 1, None) if other.is_begun)
            held = sum(other.weight for other in others if other.state is not _State.DONE)
            if self._bytes + held + slot.weight > limits.PREFETCH_BYTES_MAX:
                return False
        if slot.held is None and self._share.try_take(slot.weight):
            slot.held = slot.weight
        return slot.held is not None

    def _take_memory(self, slot: _Slot[Item, Piece]) -> None:
        """The consumer waits for what the slot takes, unless it was taken before."""
        if slot.held is None:
            slot.kind = MemoryKind.ROWS
            slot.held = self._share.take(slot.weight, slot.kind)

    def _pull(self, *, only_if_none: bool = False) -> _Slot[Item, Piece] | None:
        """The next item as a slot at the end of the line; None where there is none to pull."""
        slot: _Slot[Item, Piece] | None = None
        with self._pulling:
            if not (self._is_closed or self._is_drained or (only_if_none and self._slots)):
                slot = self._pulled()
        if self._is_closed:
            self._close_items()
        return slot

    def _pulled(self) -> _Slot[Item, Piece] | None:
        slot: _Slot[Item, Piece] | None = None
        try:
            item = next(self._items)
            slot = _Slot(item, self._weigh(item))
        except StopIteration:
            pass
        except BaseException as error:  # noqa: BLE001 - raised by the consumer, in its turn
            slot = _Slot(None)
            slot.error, slot.state = error, _State.DONE
        with self._changed:
            self._is_drained |= slot is None or slot.error is not None
            if slot is not None and not self._is_closed:
                self._slots.append(slot)
        return slot

    def _advance(self, slot: _Slot[Item, Piece], pieces_max: int = limits.NUMBER_MAX) -> None:
        """Load pieces of a slot that is `RUNNING` here, until there are none, so many, or enough bytes."""
        state = _State.RUNNING
        while state is _State.RUNNING:
            piece: Piece | None = None
            try:
                if slot.stream is None:
                    assert slot.item is not None
                    slot.stream = iter(self._load(slot.item))
                piece = next(slot.stream)
                pieces_max -= 1
            except StopIteration:
                state = _State.DONE
            except BaseException as error:  # noqa: BLE001 - raised by the consumer, in its turn
                slot.error, state = error, _State.DONE
            with self._changed:
                if self._is_closed:
                    break
                if piece is not None:
                    self._put(slot, piece)
                if state is not _State.DONE and (pieces_max <= 0 or self._is_full):
                    state = _State.IDLE
                slot.state = state
                if slot is self._slots[0]:  # whoever waits, waits for the first
                    self._changed.notify_all()
        else:
            return
        _close(slot.stream)

    def _put(self, slot: _Slot[Item, Piece], piece: Piece) -> None:
        """The piece waits; the lock is held. One that has no room is within the weight of its slot."""
        size = self._size_of(piece)
        has_room = self._share.try_take(size)
        self._is_scarce |= not has_room
        slot.pieces.append((piece, size, size if has_room else 0))
        self._bytes += size

    def _close_items(self) -> None:
        """Whoever is not pulling may close; who pulls does it afterwards."""
        if self._pulling.acquire(blocking=False):
            try:
                self._items.close()
            finally:
                self._pulling.release()


def _close(stream: Iterator[Piece] | None) -> None:
    if isinstance(stream, Generator):
        stream.close()
